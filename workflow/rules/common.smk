"""The plan, checked: configuration, sheets, and what each target needs."""

import re
from pathlib import Path

from snakemake.exceptions import WorkflowError

from mc2core.experiments import plan
from mc2core.experiments.code_digest import code_digest
from mc2core.sources.download.fetch import read_catalogue

SCHEMAS = Path(workflow.basedir) / "workflow" / "schemas"
EXPERIMENTS = "config/experiments.tsv"
CONFIG_SCHEMA = plan.read_yaml(SCHEMAS / "config.schema.yaml")

# datasets that are parts of another one's files
FILES_OF = {"pnas": "pubmed", "w100": "wikipedia", "w1000": "wikipedia"}

# what each target draws on: any one of these datasets, or none at all
TARGETS = {
    "icml2014_figure1": (),
    "icml2014_figure2": ("letters",),
    "icml2014_table1": ("nips", "pnas"),
    "icml2014_figure3": ("nips",),
    "icml2014_figure7": ("letters",),
    "uai2016_figure1": (),
    "uai2016_figure2": (),
    "uai2016_figure3": ("nips", "nuswide"),
    "uai2016_table1": ("nips", "nuswide"),
    "nips2012_figure1": ("w100",),
    "nips2012_table1": (),
    "nips2012_table2": ("w100", "w1000", "nips"),
}

try:
    if workflow.is_main_process:
        for file in workflow.configfiles:
            plan.read_yaml(
                file
            )  # stricter than Snakemake, which overlooks a key that comes twice
    plan.check_keys(config, CONFIG_SCHEMA, "configuration")
    plan.read_numbers(config, CONFIG_SCHEMA)
    plan.check_values(config, CONFIG_SCHEMA, "configuration")
    plan.check_mirror(config)
    CHOSEN = plan.choose_datasets(config)
    SOURCES = plan.read_sheet(
        "config/datasets.tsv",
        plan.read_yaml(SCHEMAS / "datasets.schema.yaml"),
        key="file",
    )
    SHEET = plan.read_experiments(
        EXPERIMENTS,
        plan.read_yaml(SCHEMAS / "experiments.schema.yaml"),
        config,
        config["corpora"],
    )
    if workflow.is_main_process:
        # once, not in each job: engines take a second to load
        from mc2core.experiments.run_checks import check_runs

        check_runs(EXPERIMENTS, SHEET, config, CONFIG_SCHEMA, TARGETS)
    plan.check_files(config, SOURCES, CHOSEN, FILES_OF)
except ValueError as error:
    # one sentence instead of a traceback
    raise WorkflowError(str(error)) from None

RUNS = {name: run for name, run in SHEET.items() if run["dataset"] in CHOSEN}
SEEDS = range(config["seeds"])
NIPS2012_SEEDS = range(config["nips2012"]["seeds"])
# Parts of one machine. A timed job takes them all, so that nothing runs beside it: threads would not do, since their
# number has to be the same within a job of a cluster.
MACHINE = 1000
workflow.register_resource("machine", MACHINE)
FIGURE7_CELLS = [
    f"{axis}-{size}"
    for axis in ("n_tokens", "n_documents")
    for size in config["figure7"][axis]
]
# those whose numbers are held against what the paper claims
CLAIMING = (
    "icml2014_figure2",
    "icml2014_table1",
    "icml2014_figure7",
    "uai2016_figure3",
    "uai2016_table1",
    "nips2012_figure1",
    "nips2012_table1",
    "nips2012_table2",
)
# those that show how near the clusters are to the labels after each iteration
OVER_TIME = {"nips2012_figure1", "nips2012_table2"}


# a limit on this machine, none on all jobs of a cluster together
resource_scopes:
    machine="local",


wildcard_constraints:
    dataset="|".join(config["corpora"]),
    run="|".join(RUNS) or "none",
    seed=r"\d+",
    engine="|".join(config["engines"]),
    cell="|".join(FIGURE7_CELLS),


def takes(mem_mb, alone=False):
    """Resources of a job: MB, a number or by wildcards, doubled at each further attempt; a machine of its own or not."""

    def memory(wildcards, attempt):
        first = mem_mb(wildcards) if callable(mem_mb) else mem_mb
        return first * 2 ** (attempt - 1)

    share = (
        {"machine": MACHINE, "slurm_extra": "--exclusive"} if alone else {"machine": 1}
    )
    return {"mem_mb": memory} | share


def possible(prefix=""):
    """Targets that the chosen datasets allow."""
    return [
        target
        for target, needs in TARGETS.items()
        if target.startswith(prefix) and (not needs or set(needs) & set(CHOSEN))
    ]


def target_files(prefix=""):
    """The file that stands for each target: the table or picture itself."""
    return [
        f"results/{target.partition('_')[0]}/{target}.{'csv' if '_table' in target else 'png'}"
        for target in possible(prefix)
    ]


def runs_of(target):
    """Runs of the sheet that feed a target; an error where the chosen datasets leave none."""
    runs = [name for name, run in RUNS.items() if target in run["targets"]]
    if not runs:
        needs = " or ".join(TARGETS[target])
        raise WorkflowError(
            f"{target} has no run in config/experiments.tsv on the datasets of this plan (it needs {needs})"
        )
    return runs


def is_over_time(run):
    return not OVER_TIME.isdisjoint(RUNS[run]["targets"])


def traces_of(target):
    return lambda wildcards: expand(
        "results/fits/{run}/{seed}/trace.tsv", run=runs_of(target), seed=NIPS2012_SEEDS
    )


def fit_code(engine):
    """Digest of all a fit is made of: it runs again when its engine changes."""
    return code_digest(
        "mc2core.engines.running.files", f"mc2core.engines.{engine}.engine"
    )


def corpus_of(wildcards):
    return f"results/corpora/{RUNS[wildcards.run]['dataset']}"


def warm_of(wildcards):
    return f"results/warm_kernels/{RUNS[wildcards.run]['fit']['engine']}.done"


def models_of(target, seeds=SEEDS):
    return lambda wildcards: expand(
        "results/fits/{run}/{seed}/model.npz", run=runs_of(target), seed=seeds
    )


def scores_of(target):
    return lambda wildcards: expand(
        "results/scores/{run}/{seed}.json", run=runs_of(target), seed=SEEDS
    )


def snapshots_on(wildcards):
    runs = [
        run
        for run in runs_of("uai2016_figure3")
        if RUNS[run]["dataset"] == wildcards.dataset
    ]
    return expand("results/snapshots/{run}/{seed}/snapshots.npz", run=runs, seed=SEEDS)


def curves_of(target):
    return lambda wildcards: sorted(
        {f"results/curves/{RUNS[run]['dataset']}.csv" for run in runs_of(target)}
    )


def speed_of(target):
    return lambda wildcards: expand("results/speed/{run}.csv", run=runs_of(target))


def corpora_of(target):
    return lambda wildcards: sorted(
        {f"results/corpora/{RUNS[run]['dataset']}" for run in runs_of(target)}
    )


def claims_files():
    """Claims of the targets that the chosen datasets allow."""
    return [
        f"results/{target.partition('_')[0]}/{target}_claims.csv"
        for target in possible()
        if target in CLAIMING
    ]
