"""The plan, checked: configuration, sheets, and what each target needs."""

import copy
import re
from functools import cache, partial
from itertools import chain
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import local
from snakemake.logging import logger
from snakemake.utils import update_config

from mc2core.compute.spark import missing
from mc2papers import inputs, plan, schemas, targets
from mc2papers.code_digest import code_digest
from mc2papers.datasets.download.fetch import read_catalogue


def own_part(path):
    """A file of this workflow, wherever it runs. A Path: as a parameter of a rule it is no reason to run it again."""
    return Path(workflow.source_path(f"../../{path}"))


def own_schema(name):
    return own_part(f"workflow/schemas/{name}")


def sheet(path):
    """A file of config/: that of the working directory, if it is there, or this workflow's own."""
    return Path(path) if Path(path).is_file() else own_part(path)


EXPERIMENTS = "config/experiments.tsv"
CATALOGUE = "config/datasets.tsv"
CONFIG_SCHEMA, DATASETS_SCHEMA, EXPERIMENTS_SCHEMA = (
    schemas.read(own_schema(f"{name}.schema.yaml"))
    for name in ("config", "datasets", "experiments")
)
DEFAULT_PLAN = plan.read_yaml(own_part("config/config.yaml"))

# datasets that are parts of another one's files
FILES_OF = {"pnas": "pubmed", "w100": "wikipedia", "w1000": "wikipedia"}

try:
    if workflow.is_main_process and workflow.modifier.is_main_snakefile():
        for file in workflow.configfiles:
            plan.read_yaml(
                file
            )  # stricter than Snakemake, which overlooks a key that comes twice
    # a configuration, also one that is passed to a module, holds what differs
    given, config = config, copy.deepcopy(DEFAULT_PLAN)
    update_config(config, copy.deepcopy(given))
    schemas.check_keys(config, CONFIG_SCHEMA, "configuration")
    schemas.read_numbers(config, CONFIG_SCHEMA)
    schemas.check_values(config, CONFIG_SCHEMA, "configuration")
    plan.check_mirror(config)
    ASKED = plan.choose_datasets(config)
    SOURCES = plan.read_sheet(
        sheet(CATALOGUE),
        DATASETS_SCHEMA,
        key="file",
    )
    SHEET, WITHOUT_CONTEXT = plan.leave_out_runs(
        plan.read_experiments(
            sheet(EXPERIMENTS),
            EXPERIMENTS_SCHEMA,
            config,
            config["corpora"],
        ),
        config,
        CONFIG_SCHEMA,
    )
    if workflow.is_main_process:
        # once, not in each job: engines take a second to load
        from mc2papers.run_checks import check_runs

        check_runs(EXPERIMENTS, SHEET, config, targets.registry())
    plan.check_files(config, SOURCES, ASKED, FILES_OF)
    # a workflow that has this one as a module may make them
    plan.check_own_files(
        config, ASKED, must_exist=workflow.modifier.is_main_snakefile()
    )
    CHOSEN, LEFT_OUT = plan.leave_out(config, CONFIG_SCHEMA, SOURCES, ASKED)
except ValueError as error:
    # one sentence instead of a traceback
    raise WorkflowError(str(error)) from None

if workflow.is_main_process:
    if len(LEFT_OUT) > 1 and not config["mirror"]:
        names = ", ".join(reason.partition(" ")[0] for reason in LEFT_OUT)
        logger.warning(
            f"{names} are left out: no mirror (--config mirror=FOLDER) has their files; --config datasets=NAME says which"
        )
    else:
        for reason in LEFT_OUT:
            logger.warning(reason)
    for reason in WITHOUT_CONTEXT:
        logger.warning(reason)

RUNS, WITHOUT_SPARK = plan.leave_out_spark(
    {name: run for name, run in SHEET.items() if run["dataset"] in CHOSEN},
    config,
    missing(),
)
if workflow.is_main_process:
    for reason in WITHOUT_SPARK:
        logger.warning(reason)
KINDS = {name: [*target.inputs.values()] for name, target in targets.registry().items()}
PLAN = plan.Plan(config, CHOSEN, RUNS, KINDS)
SEEDS = PLAN.seeds
GROUPS = PLAN.groups()
# runs of which each fit is a job
ALONE = [run for run in RUNS if run not in chain.from_iterable(GROUPS)]
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
    engine="|".join(plan.ENGINES),


def takes(mem_mb, alone=False):
    """Resources of a job: MB, a number or by wildcards, doubled at each further attempt; a machine of its own or not."""

    def memory(wildcards, attempt):
        first = mem_mb(wildcards) if callable(mem_mb) else mem_mb
        return first * 2 ** (attempt - 1)

    share = (
        {"machine": MACHINE, "slurm_extra": "--exclusive"} if alone else {"machine": 1}
    )
    return {"mem_mb": memory} | share


def runs_of(target):
    """Runs of the sheet that feed a target; an error where the chosen datasets leave none."""
    try:
        return PLAN.runs_of(target)
    except ValueError as error:
        raise WorkflowError(str(error)) from None


@cache
def fit_code(engine):
    """Digest of all a fit is made of: it runs again when its engine or a model changes."""
    return code_digest(
        "mc2core.inference.running.files",
        "mc2core.models",
        f"mc2core.inference.{engine}.engine",
    )


def group_code(group):
    """Digest of all that the fits and scores of a group are made of."""
    engines = {RUNS[run]["fit"]["engine"] for run in group}
    modules = [f"mc2core.inference.{one}.engine" for one in engines & {*plan.ENGINES}]
    modules += ["mc2core.inference.running.files", "mc2core.models"] if modules else []
    modules += ["mc2papers.baselines.files"] if engines - {*plan.ENGINES} else []
    if any(PLAN.is_scored_at_once(run) for run in group):
        modules += ["mc2core.posterior.scores", "mc2papers.baselines.assignments"]
    return code_digest(*sorted(modules))


def inputs_of_group(group):
    """Corpora, compiled kernels, and models of the runs that baselines of a group cluster by."""
    fits = [RUNS[run]["fit"] for run in group]
    engines = sorted({fit["engine"] for fit in fits} & {*plan.ENGINES})
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


# runs on corpora of one's own, which no table shows: each gets a page
OWN = [
    run
    for run in RUNS
    if RUNS[run]["dataset"] == "mine" and PLAN.result_of(run) == "posterior.npz"
]


def explored():
    return [f"results/explore/{run}" for run in OWN]


def default_files():
    """What the default target makes, every file by name: Snakemake leaves a missing one alone that only pages need.

    A run on own corpora alone ends in their pages, and leaves those of an earlier run on the papers as they are.
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
        for seed in PLAN.seeds_of(run)
    ]


def said_of(run):
    """A sentence on a run of the sheet."""
    fit = RUNS[run]["fit"]
    contexts = ", ".join(sorted(fit["contexts"])) or "none"
    return (
        f"{run}: {RUNS[run]['method']} ({fit['engine']}) on {RUNS[run]['dataset']}, contexts {contexts}, "
        f"{fit.get('iterations') or 'no'} iterations; results/fits/{run}/*/provenance.json"
    )


def scored_runs():
    """Runs whose fits are made for the targets of this plan, not snapshots alone."""
    names = {target.name for target in POSSIBLE if "scores" in target.inputs.values()}
    return [run for run in RUNS if names & set(RUNS[run]["targets"])]


def entry_of(target):
    """What the page of the run says of a target."""
    return {
        "name": target.name,
        "paper": target.paper,
        "title": target.title,
        "caption": target.caption(target.options(PLAN, target.name)),
        "files": {
            kind: path for kind, path in target.outputs().items() if kind != "claims"
        },
        "runs": {
            run: said_of(run) for run in RUNS if target.name in RUNS[run]["targets"]
        },
    }
