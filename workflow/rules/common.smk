"""The configuration, and what each target needs."""

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
    """A file of this workflow, wherever it runs. A Path: as a parameter of a rule it is no reason to run it again."""
    return Path(workflow.source_path(f"../../{path}"))


def table(path):
    """A file of config/: that of the working directory, if it is there, or this workflow's own."""
    return Path(path) if Path(path).is_file() else own_part(path)


EXPERIMENTS = "config/experiments.tsv"
CATALOGUE = "config/datasets.tsv"
KINDS = {name: [*target.inputs.values()] for name, target in targets.registry().items()}
IS_MAIN = workflow.modifier.is_main_snakefile()

try:
    if workflow.is_main_process and IS_MAIN:
        for file in workflow.configfiles:
            configuration.read_yaml(
                file
            )  # Snakemake overlooks a key that is given twice
    # a configuration, also one that is passed to a module, holds what differs
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
# runs of which each fit is a job
ALONE = [run for run in RUNS if run not in {*chain.from_iterable(GROUPS)}]
# Parts of one machine. A timed job takes them all, so that nothing runs beside it: threads would not do, since their
# number has to be the same within a job of a cluster.
MACHINE = 1000
workflow.register_resource("machine", MACHINE)


def one_of(names):
    """Pattern of a wildcard that is one of some names; "none" where there are none."""
    return "|".join(names) or "none"


# a limit on this machine, none on all jobs of a cluster together
resource_scopes:
    machine="local",


wildcard_constraints:
    dataset="|".join(config["corpora"]),
    run=one_of(RUNS),
    seed=r"\d+",
    engine="|".join(configuration.ENGINES),


def takes(mem_mb, alone=False):
    """Resources of a job: MB, a number or by wildcards, doubled at each further attempt; a machine of its own or
    not."""

    def memory(wildcards, attempt):
        first = mem_mb(wildcards) if callable(mem_mb) else mem_mb
        return first * 2 ** (attempt - 1)

    share = (
        {"machine": MACHINE, "slurm_extra": "--exclusive"} if alone else {"machine": 1}
    )
    return {"mem_mb": memory} | share


def runs_of(target):
    """Runs of the experiments table that feed a target; an error where the chosen datasets leave none."""
    try:
        return CONFIGURATION.runs_of(target)
    except ValueError as error:
        raise WorkflowError(str(error)) from None


@cache
def fit_code(engine):
    """Digest of all a fit is made of: it runs again when its engine or a model changes."""
    return code_digest(
        "mc2core.inference.running.files",
        "mc2core.models",
        configuration.ENGINES[engine],
    )


def group_code(group):
    """Digest of all that the fits and scores of a group are made of."""
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
    """Corpora, compiled kernels, and models of the runs that baselines of a group cluster by."""
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


def snapshots_on(wildcards):
    runs = [
        run
        for run in runs_of("uai2016_figure3")
        if RUNS[run]["dataset"] == wildcards.dataset
    ]
    return expand("results/snapshots/{run}/{seed}/snapshots.npz", run=runs, seed=SEEDS)


# runs on corpora of one's own, which no table shows: each gets an HTML report
OWN = [
    run
    for run in RUNS
    if RUNS[run]["dataset"] == "mine"
    and CONFIGURATION.result_of(run) == "posterior.npz"
]


def explored():
    return [f"results/explore/{run}" for run in OWN]


def default_files():
    """What the default target makes, every file by name: Snakemake leaves a missing one alone that only pages need.

    A run on own corpora alone ends in their HTML reports, and leaves those of an earlier run on the papers as they are.
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
    """Provenance of fits, which says what they found."""
    return [
        f"results/fits/{run}/{seed}/provenance.json"
        for run in runs
        for seed in CONFIGURATION.seeds_of(run)
    ]


def said_of(run):
    """A sentence on a run of the experiments table."""
    fit = RUNS[run]["fit"]
    contexts = ", ".join(sorted(fit["contexts"])) or "none"
    return (
        f"{run}: {RUNS[run]['method']} ({fit['engine']}) on {RUNS[run]['dataset']}, contexts {contexts}, "
        f"{fit.get('iterations') or 'no'} iterations; results/fits/{run}/*/provenance.json"
    )


def scored_runs():
    """Runs whose fits are made for the targets of this configuration, not snapshots alone."""
    names = {target.name for target in POSSIBLE if "scores" in target.inputs.values()}
    return [run for run in RUNS if names & set(RUNS[run]["targets"])]


def entry_of(target):
    """What the reproduction report says of a target."""
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
