"""Files of the workflow that targets are made from, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mc2papers.plan import Plan


def _models(plan: Plan, target: str) -> list[str]:
    return _fits(plan, target, "posterior.npz")


def _first_models(plan: Plan, target: str) -> list[str]:
    return [f"results/fits/{run}/0/posterior.npz" for run in plan.runs_of(target)]


def _traces(plan: Plan, target: str) -> list[str]:
    return _fits(plan, target, "trace.tsv")


def _fits(plan: Plan, target: str, file: str) -> list[str]:
    return [f"results/fits/{run}/{seed}/{file}" for run in plan.runs_of(target) for seed in plan.seeds_of(run)]


def _scores(plan: Plan, target: str) -> list[str]:
    return [f"results/scores/{run}/{seed}.json" for run in plan.runs_of(target) for seed in plan.seeds_of(run)]


def _corpora(plan: Plan, target: str) -> list[str]:
    return [f"results/corpora/{dataset}" for dataset in _datasets(plan, target)]


def _curves(plan: Plan, target: str) -> list[str]:
    return [f"results/curves/{dataset}.csv" for dataset in _datasets(plan, target)]


def _datasets(plan: Plan, target: str) -> list[str]:
    return sorted({plan.runs[run]["dataset"] for run in plan.runs_of(target)})


def _speed(plan: Plan, target: str) -> list[str]:
    return [f"results/speed/{run}.csv" for run in plan.runs_of(target)]


def _batches(plan: Plan, target: str) -> list[str]:
    return [f"results/batches/{run}.csv" for run in plan.runs_of(target)]


def _epochs(plan: Plan, target: str) -> list[str]:
    return [f"results/epochs/{run}.csv" for run in plan.runs_of(target)]


def _sizes(plan: Plan, target: str) -> list[str]:
    return ["results/sizes/icml2014.csv"]


def _times(plan: Plan, target: str) -> list[str]:
    return ["results/times/nips2012.csv"]


#: kind: function of the plan and a target's name that gives the files
KINDS: dict[str, Callable[[Plan, str], list[str]]] = {
    "batches": _batches,  # agreement of each mini-batch, a file for each run
    "corpora": _corpora,  # of the target's runs, a folder each
    "curves": _curves,  # perplexity over time, a file for each corpus
    "epochs": _epochs,  # seconds of an epoch on threads and on Spark, a file for each run
    "first models": _first_models,  # of the first seed
    "models": _models,
    "scores": _scores,
    "sizes": _sizes,  # the fits of ICML14 figure 7
    "speed": _speed,  # seconds over threads, a file for each run
    "times": _times,  # microseconds a document
    "traces": _traces,  # of fits that follow the labels
}
