"""Configurations of the workflow, without the checks of its files."""

from helpers.paths import ROOT

from mc2papers import configuration


def configured(*files):
    """The default configuration with what some files change, as a run has it."""
    config = configuration.read_yaml(ROOT / "config/config.yaml")
    for file in files:
        for key, value in configuration.read_yaml(ROOT / "config" / file).items():
            own = config[key]
            if key == "fit":
                value = own | {name: own[name] | one for name, one in value.items()}
            config[key] = own | value if isinstance(own, dict) else value
    rows = configuration.read_yaml(ROOT / "workflow/schemas/experiments.schema.yaml")
    runs = configuration.read_experiments(ROOT / "config/experiments.tsv", rows, config, config["datasets"])
    return configuration.Configuration(config, config["datasets"], runs)
