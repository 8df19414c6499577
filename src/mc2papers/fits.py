"""Fit and score runs of the experiments table; jobs of the workflow call these functions."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mc2core.corpus import Corpus

#: entries of the provenance of a fit that are copied to its scores
_OF_THE_FIT = ("seed", "iterations", "seconds", "cpu_seconds", "compile_seconds", "threads")

Runs = Mapping[str, Mapping[str, Any]]
"""Runs by name, as returned by :meth:`mc2papers.configuration.Configuration.fits_of`."""


def fit_runs(results: Path, runs: Runs, *, checkpoint_every: int, threads: int = 1) -> None:
    """Fit each run with each of its seeds, and score the fits of runs that have estimators of perplexity.

    The checkpoints of finished fits are deleted when all fits are finished. If the job is killed, the next job skips
    the finished fits.
    """
    corpora, checkpoints = _corpora(results), []
    for name, run, seed in _seeds(runs):
        logging.info("%s, seed %d", name, seed)
        train = corpora(run["dataset"], "train")
        if "model" in run["fit"]:
            checkpoints += _fit(results, train, name, run, seed, checkpoint_every, threads)
        else:
            _fit_baseline(results, train, name, run, seed)
    score_runs(results, {name: run for name, run in runs.items() if run["estimators"]})
    for path in checkpoints:
        path.unlink(missing_ok=True)


def score_runs(results: Path, runs: Runs) -> None:
    """Score the fits of each run, and write one file per seed."""
    if not runs:
        return
    from mc2core.base import storage
    from mc2core.posterior import Posterior, clustering
    from mc2core.posterior.scores import evaluate
    from mc2papers.baselines.assignments import Assignments, evaluate_assignments

    corpora = _corpora(results)
    for name, run, seed in _seeds(runs):
        about = storage.read_json(results / "corpora" / run["dataset"] / "source.json")
        train = corpora(run["dataset"], "train")
        test = corpora(run["dataset"], "test") if about["test_documents"] else None
        folder = results / "fits" / name / str(seed)
        fit = storage.read_json(folder / "provenance.json")
        kept = {one: fit[one] for one in _OF_THE_FIT}
        kept |= {"model": fit.get("model", {}).get("name"), "engine": fit["engine"]["name"]}
        kept |= {"converged": fit.get("converged", {}), "missing": fit.get("missing", 0.0)}
        kept |= {"inferred": fit.get("inferred", {}), "run": name, "method": run["method"]}
        kept |= {"contexts": sorted(run["fit"]["contexts"])}
        if run["result"] == "assignments.tsv":
            scores = evaluate_assignments(Assignments.load(folder / run["result"]), train, test)
        else:
            posterior = Posterior.load(folder / run["result"])
            scores = evaluate(posterior, train, test, run["estimators"])
            if "purity" in scores:
                # table 4 of UAI16 prints this value as purity
                scores["exchanged_purity"] = clustering.purity(posterior.cluster, train.labels)
        storage.write_json(results / "scores" / name / f"{seed}.json", about | kept | scores)


def _seeds(runs: Runs) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    for name, run in runs.items():
        for seed in run["seeds"]:
            yield name, run, seed


def _corpora(results: Path) -> Callable[[str, str], Corpus]:
    """Return a function that loads the train or test part of a dataset and keeps the last two parts in memory."""
    from mc2core.corpus import Corpus

    return functools.lru_cache(2)(lambda dataset, part: Corpus.load(results / "corpora" / dataset / part))


def _fit(
    results: Path, corpus: Corpus, name: str, run: Mapping[str, Any], seed: int, checkpoint_every: int, threads: int
) -> list[Path]:
    """Fit a run by an engine, and return its checkpoints."""
    from mc2core.inference.running.files import fit_corpus
    from mc2core.inference.running.loop import checkpoints_of
    from mc2core.inference.running.summary import sentence
    from mc2papers.engines import engine_of

    fit, checkpoint = run["fit"], results / "checkpoints" / f"{name}-{seed}.npz"
    looks: dict[str, Any] = {}
    if run["n_snapshots"]:
        from mc2papers.uai2016.curves import snapshot_times

        looks["snapshots_file"] = results / "snapshots" / name / str(seed) / "snapshots.npz"
        looks["snapshots"] = snapshot_times(fit["iterations"], run["n_snapshots"])
    done = fit_corpus(
        corpus,
        results / "fits" / name / str(seed),
        **fit | {"engine": engine_of(fit["engine"])},
        seed=seed,
        **looks,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        keep_checkpoint=True,
        threads=threads,
        follow_labels=run["follows_labels"],
    )
    logging.info("%s", sentence(done["inferred"]))
    return [Path(path) for path in checkpoints_of(checkpoint, fit.get("chains", 1))]


def _fit_baseline(results: Path, corpus: Corpus, name: str, run: Mapping[str, Any], seed: int) -> None:
    from mc2papers.baselines.files import fit_baseline

    fit, folder = run["fit"], results / "fits" / name / str(seed)
    fit_baseline(
        corpus,
        engine=fit["engine"],
        settings=fit["settings"],
        contexts=sorted(fit["contexts"]),
        seed=seed,
        output=folder / run["result"],
        provenance=folder / "provenance.json",
        model=results / "fits" / fit["of"] / str(seed) / "posterior.npz" if fit["of"] else None,
    )
