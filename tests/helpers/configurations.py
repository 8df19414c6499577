"""Configurations of the workflow, without the checks of its files."""

from helpers.paths import ROOT

from mc2papers import configuration

SCHEMAS = {
    name: configuration.read_yaml(ROOT / f"workflow/schemas/{name}.schema.yaml")
    for name in ("config", "datasets", "experiments")
}


def default_configuration(**changes):
    return configuration.read_yaml(ROOT / "config/config.yaml") | changes


def experiments(config, path=ROOT / "config/experiments.tsv", datasets=None):
    """Runs of a table on all datasets of a configuration, or on some."""
    return configuration.read_experiments(path, SCHEMAS["experiments"], config, datasets or config["corpora"])


def configured(*files):
    """The default configuration with what some files change, as a run has it."""
    config = default_configuration()
    for file in files:
        for key, value in configuration.read_yaml(ROOT / "config" / file).items():
            own = config[key]
            if key == "fit":
                value = own | {name: own[name] | one for name, one in value.items()}
            config[key] = own | value if isinstance(own, dict) else value
    return configuration.Configuration(config, config["datasets"], experiments(config, datasets=config["datasets"]))
