"""Read the configuration, and define functions that the rules share."""

import copy
import re
import sys
from functools import cache, partial
from itertools import chain
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import local
from snakemake.logging import logger
from snakemake.utils import update_config

from mc2core.compute.spark import missing
from mc2papers import inputs, configuration, targets
from mc2papers.code_digest import code_digest
from mc2papers.datasets.download.fetch import read_catalogue


def own_part(path):
    """Return the Path of a file of this workflow, from any working directory.

    A Path as a parameter of a rule does not rerun the rule if the path changes.
    """
    return Path(workflow.source_path(f"../../{path}"))


def table(path):
    """Return a file of config/ from the working directory or, if it is not there, from this workflow."""
    return Path(path) if Path(path).is_file() else own_part(path)


EXPERIMENTS = "config/experiments.tsv"
CATALOGUE = "config/datasets.tsv"
KINDS = {name: [*target.inputs.values()] for name, target in targets.registry().items()}
IS_MAIN = workflow.modifier.is_main_snakefile()

try:
    if workflow.is_main_process and IS_MAIN:
        for file in workflow.configfiles:
            configuration.read_yaml(file)  # Snakemake does not notice a repeated key
    # a configuration, even if it is passed to a module, contains only the differences to config.yaml
    given, config = config, configuration.read_yaml(own_part("config/config.yaml"))
    update_config(config, copy.deepcopy(given))
    CONFIGURATION = configuration.read_configuration(
        config,
        [
            own_part(f"workflow/schemas/{name}.schema.yaml")
            for name in ("config", "datasets", "experiments")
        ],
        table(EXPERIMENTS),
        table(CATALOGUE),
        KINDS,
        lack=missing(),
        builds=workflow.is_main_process,
        must_exist=IS_MAIN,
    )
except ValueError as error:
    raise WorkflowError(str(error)) from None

if workflow.is_main_process:
    for note in CONFIGURATION.notes:
        logger.warning(note)
config, RUNS = CONFIGURATION.config, CONFIGURATION.runs
SEEDS = CONFIGURATION.seeds
GROUPS = CONFIGURATION.groups()
TIMED = [run for run in RUNS if "uai2016_table1" in RUNS[run]["targets"]]
# runs with one job per fit
ALONE = [run for run in RUNS if run not in {*chain.from_iterable(GROUPS)}]
# A resource of one machine. A job that measures times takes all of it, so that no other job runs at the same time.
# Threads cannot serve for this, because their number has to be the same within a job of a cluster.
MACHINE = 1000
workflow.register_resource("machine", MACHINE)


def one_of(names):
    """Return the pattern of a wildcard that matches any of these names; "none" if there are no names."""
    return "|".join(names) or "none"


# the resource limits the jobs of one machine, but not all jobs of a cluster together
resource_scopes:
    machine="local",


wildcard_constraints:
    dataset="|".join(config["corpora"]),
    run=one_of(RUNS),
    seed=r"\d+",
    engine="|".join(configuration.ENGINES),


def takes(mem_mb, alone=False):
    """Return the resources of a job.

    ``mem_mb`` is the memory in MB, or a function of the wildcards; it is doubled for each further attempt. If ``alone``
    is true, no other job runs on the same machine at the same time.
    """

    def memory(wildcards, attempt):
        first = mem_mb(wildcards) if callable(mem_mb) else mem_mb
        return first * 2 ** (attempt - 1)

    share = (
        {"machine": MACHINE, "slurm_extra": "--exclusive"} if alone else {"machine": 1}
    )
    return {"mem_mb": memory} | share


def runs_of(target):
    """Return the experiments that a target uses. Raises WorkflowError if there is none on the chosen datasets."""
    try:
        return CONFIGURATION.runs_of(target)
    except ValueError as error:
        raise WorkflowError(str(error)) from None


@cache
def fit_code(engine):
    """Return a digest of the code of a fit, so that the fit runs again if its engine or a model changes."""
    return code_digest(
        "mc2core.inference.running.files",
        "mc2core.models",
        configuration.ENGINES[engine],
    )


def group_code(group):
    """Return a digest of the code of the fits and scores of a group."""
    engines = {RUNS[run]["fit"]["engine"] for run in group}
    modules = [configuration.ENGINES[one] for one in engines & {*configuration.ENGINES}]
    modules += ["mc2core.inference.running.files", "mc2core.models"] if modules else []
    modules += (
        ["mc2papers.baselines.files"] if engines - {*configuration.ENGINES} else []
    )
    if any(CONFIGURATION.is_scored_at_once(run) for run in group):
        modules += ["mc2core.posterior.scores", "mc2papers.baselines.assignments"]
    return code_digest(*sorted(modules))


def inputs_of_group(group):
    """Return the inputs of a group: corpora, compiled kernels, and models whose results the baselines cluster."""
    fits = [RUNS[run]["fit"] for run in group]
    engines = sorted({fit["engine"] for fit in fits} & {*configuration.ENGINES})
    of = sorted({fit["of"] for fit in fits if fit.get("of")})
    datasets = sorted({RUNS[run]["dataset"] for run in group})
    return {
        "corpora": expand("results/corpora/{dataset}", dataset=datasets),
        "warm": expand("results/warm_kernels/{engine}.done", engine=engines),
        "models": expand("results/fits/{of}/{seed}/posterior.npz", of=of, seed=SEEDS),
    }


def corpus_of(wildcards):
    return f"results/corpora/{RUNS[wildcards.run]['dataset']}"


def warm_of(wildcards):
    return f"results/warm_kernels/{RUNS[wildcards.run]['fit']['engine']}.done"


def curves_on(wildcards):
    runs = [
        run
        for run in runs_of("uai2016_figure3")
        if RUNS[run]["dataset"] == wildcards.dataset
    ]
    return {
        "snapshots": expand(
            "results/snapshots/{run}/{seed}/snapshots.npz", run=runs, seed=SEEDS
        ),
        "fits": expand("results/fits/{run}/{seed}/posterior.npz", run=runs, seed=SEEDS),
    }


# experiments on the user's corpus; no table shows them, so each has an HTML report
OWN = [
    run
    for run in RUNS
    if RUNS[run]["dataset"] == "mine"
    and CONFIGURATION.result_of(run) == "posterior.npz"
]


def explored():
    return [f"results/explore/{run}" for run in OWN]


def default_files():
    """Return all files of the default target.

    Every file is listed, because Snakemake does not make a missing file again if only existing reports use it. If the
    user's corpus is the only dataset, only its HTML reports are made, and reports of an earlier run do not change.
    """
    if not POSSIBLE:
        return explored()
    return [
        *explored(),
        *(path for target in POSSIBLE for path in target.outputs().values()),
        *(f"results/claims.{kind}" for kind in ("csv", "md", "tex", "html")),
        "results/index.html",
        "results/report.html",
    ]


def found_by(runs):
    """Return the provenance files of all fits of these runs."""
    return [
        f"results/fits/{run}/{seed}/provenance.json"
        for run in runs
        for seed in CONFIGURATION.seeds_of(run)
    ]


def said_of(run):
    """Return a sentence that describes a run of the experiments table."""
    fit = RUNS[run]["fit"]
    contexts = ", ".join(sorted(fit["contexts"])) or "none"
    return (
        f"{run}: {RUNS[run]['method']} ({fit['engine']}) on {RUNS[run]['dataset']}, contexts {contexts}, "
        f"{fit.get('iterations') or 'no'} iterations; results/fits/{run}/*/provenance.json"
    )


def scored_runs():
    """Return the runs whose scores the targets of this configuration use."""
    names = {target.name for target in POSSIBLE if "scores" in target.inputs.values()}
    return [run for run in RUNS if names & set(RUNS[run]["targets"])]


def entry_of(target):
    """Return the entry of a target in the reproduction report."""
    return {
        "name": target.name,
        "paper": target.paper,
        "title": target.title,
        "caption": target.caption(target.options(CONFIGURATION, target.name)),
        "files": {
            kind: path for kind, path in target.outputs().items() if kind != "claims"
        },
        "runs": {
            run: said_of(run) for run in RUNS if target.name in RUNS[run]["targets"]
        },
    }
