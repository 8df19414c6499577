"""Files of the workflow that targets are made from, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration


def _models(configuration: Configuration, target: str) -> list[str]:
    return _fits(configuration, target, "posterior.npz")


def _first_models(configuration: Configuration, target: str) -> list[str]:
    return [f"results/fits/{run}/0/posterior.npz" for run in configuration.runs_of(target)]


def _traces(configuration: Configuration, target: str) -> list[str]:
    return _fits(configuration, target, "trace.tsv")


def _fits(configuration: Configuration, target: str, file: str) -> list[str]:
    return [
        f"results/fits/{run}/{seed}/{file}"
        for run in configuration.runs_of(target)
        for seed in configuration.seeds_of(run)
    ]


def _scores(configuration: Configuration, target: str) -> list[str]:
    return [
        f"results/scores/{run}/{seed}.json"
        for run in configuration.runs_of(target)
        for seed in configuration.seeds_of(run)
    ]


def _corpora(configuration: Configuration, target: str) -> list[str]:
    return [f"results/corpora/{dataset}" for dataset in _datasets(configuration, target)]


def _curves(configuration: Configuration, target: str) -> list[str]:
    return [f"results/curves/{dataset}.csv" for dataset in _datasets(configuration, target)]


def _datasets(configuration: Configuration, target: str) -> list[str]:
    return sorted({configuration.runs[run]["dataset"] for run in configuration.runs_of(target)})


def _speed(configuration: Configuration, target: str) -> list[str]:
    return [f"results/speed/{run}.csv" for run in configuration.runs_of(target)]


def _batches(configuration: Configuration, target: str) -> list[str]:
    return [f"results/batches/{run}.csv" for run in configuration.runs_of(target)]


def _epochs(configuration: Configuration, target: str) -> list[str]:
    return [f"results/epochs/{run}.csv" for run in configuration.runs_of(target)]


def _sizes(configuration: Configuration, target: str) -> list[str]:
    return ["results/sizes/icml2014.csv"]


def _context_strength(configuration: Configuration, target: str) -> list[str]:
    return ["results/sizes/context_strength.csv"]


def _times(configuration: Configuration, target: str) -> list[str]:
    return ["results/times/nips2012.csv"]


#: kind: function of the configuration and a target's name that gives the files
KINDS: dict[str, Callable[[Configuration, str], list[str]]] = {
    "batches": _batches,  # agreement of each mini-batch, a file for each run
    "context strength": _context_strength,  # fits with contexts of known strength
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
