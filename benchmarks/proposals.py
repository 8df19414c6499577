"""Compare the quality and the processor time of FastEx's proposals, for thousands of clusters.

    python -m benchmarks.proposals --clusters 1000 10000 --folder /tmp/proposals

Corpora are simulated encyclopaedias that no figure of the workflow uses. Every chain runs in its own process on one
thread; ``--repeats`` is the number of runs per chain. Times are processor seconds. They include the start, but not
compilation and scoring. Memory is measured as in :mod:`benchmarks.scale`.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp

from benchmarks.scale import measured
from benchmarks.suite import processor_seconds
from mc2core import Corpus
from mc2core.corpus.matching import as_stored
from mc2core.inference import FastEx
from mc2core.inference.registry import specify
from mc2core.models import Mixture
from mc2core.posterior.clustering import variation_of_information
from mc2core.posterior.mixture import log_likelihood_of_clusters
from mc2papers.datasets.simulated.encyclopaedia import Encyclopaedia, simulate
from mc2papers.nips2012.convergence import OUR_PRIORS

PROPOSALS = ("exact", "hash", "neighbours")
_SEED = 7
_HELD_OUT = 50


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.proposals", description=__doc__.split("\n")[0])
    options.add_argument("--clusters", type=int, nargs="+", default=[1000, 2000, 5000, 10_000, 20_000])
    options.add_argument("--per-cluster", type=int, default=6, help="documents per category")
    options.add_argument("--distinct-words", type=float, default=100.0, help="mean per document")
    options.add_argument("--typical-share", type=float, default=0.3, help="share of tokens typical of the category")
    options.add_argument("--words", type=int, default=50_000, help="words of the vocabulary")
    options.add_argument("--proposals", nargs="+", choices=PROPOSALS, default=PROPOSALS)
    options.add_argument("--sweeps", type=int, default=8)
    options.add_argument("--repeats", type=int, default=1)
    options.add_argument(
        "--set", dest="settings", action="append", default=[], help="setting of the model or of FastEx"
    )
    options.add_argument("--folder", type=Path, required=True, help="folder for files; files that exist are replaced")
    options.add_argument("--chain", choices=PROPOSALS, help="run one chain on the corpora in FOLDER, and print JSON")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw a corpus for each number of clusters, run the chains, and print a Markdown table."""
    given = parser().parse_args(arguments)
    if given.chain:
        for row in follow(given):
            print(json.dumps(row), flush=True)
        return 0
    print("| K | proposal | sweep | µs of CPU per document | CPU s | VI, bits | log joint | held out | memory, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n_clusters in given.clusters:
        draw(given, n_clusters)
        runs: dict[str, list[tuple[list[dict[str, Any]], int]]] = {name: [] for name in given.proposals}
        for _ in range(given.repeats):
            for name, found in runs.items():
                found.append(run(given, n_clusters, name))
        for name, found in runs.items():
            memory = max(most for _, most in found)
            for line in summarised(n_clusters, name, [chain for chain, _ in found], memory):
                print(line, flush=True)
    return 0


def draw(given: argparse.Namespace, n_clusters: int) -> None:
    """Draw a corpus with this number of categories, and save its documents to fit and its held-out documents."""
    n = n_clusters * given.per_cluster
    shape = Encyclopaedia(
        n_clusters, n + _HELD_OUT, given.words,
        distinct_words=given.distinct_words, typical_share=given.typical_share,
    )  # fmt: skip
    corpus = simulate(shape, _SEED)
    corpus.subset(np.arange(n)).save(given.folder / "fitted")
    corpus.subset(np.arange(n, n + _HELD_OUT)).save(given.folder / "held_out")


def run(given: argparse.Namespace, n_clusters: int, proposal: str) -> tuple[list[dict[str, Any]], int]:
    """Run a chain in its own process; return the rows of its sweeps and the peak anonymous memory in bytes."""
    log = given.folder / f"{proposal}.jsonl"
    settings = [part for setting in given.settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "benchmarks.proposals", "--chain", proposal, "--clusters", str(n_clusters)]
    command += ["--sweeps", str(given.sweeps), "--folder", str(given.folder), *settings]
    taken = measured(command, log, None)
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()], taken.memory


def follow(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run a chain, and yield time and quality after each sweep; sweep 0 is the start."""
    fitted, held_out = Corpus.load(given.folder / "fitted"), Corpus.load(given.folder / "held_out")
    own = {name: ast.literal_eval(value) for name, _, value in (one.partition("=") for one in given.settings)}
    settings = {**OUR_PRIORS, "n_clusters": given.clusters[0], "proposal": given.chain, **own}
    model, engine = specify("mixture", "fastex", settings)
    assert isinstance(model, Mixture)
    assert isinstance(engine, FastEx)
    few = as_stored(fitted.subset(np.arange(min(50, fitted.n_documents))), fitted)
    state = engine.init(model, few, 0)  # compiles kernels
    for iteration in engine.to_warm(model, few)[1]:
        engine.step(few, state, 0, iteration)
    states: list[Any] = []
    used = processor_seconds(lambda: states.append(engine.init(model, fitted, 0)))
    state, n = states[0], fitted.n_documents
    yield {"sweep": 0, "of_sweep": 1e6 * used / n, "seconds": used}
    for sweep in range(1, given.sweeps + 1):
        rows: list[dict[str, float]] = []
        seconds = processor_seconds(lambda sweep=sweep, rows=rows: rows.append(engine.step(fitted, state, 0, sweep)))
        used += seconds
        sample = engine.sample(fitted, state)
        likelihood = log_likelihood_of_clusters(held_out, sample) + np.log(sample.cluster_weights)
        yield {
            "sweep": sweep,
            "of_sweep": 1e6 * seconds / n,
            "seconds": used,
            "vi": variation_of_information(fitted.labels, state.cluster),
            "log_joint": rows[0]["log_joint"] / n,
            "held_out": float(logsumexp(likelihood, axis=1).sum() / held_out.n_tokens),
        }


def summarised(n_clusters: int, proposal: str, chains: list[list[dict[str, Any]]], memory: int) -> Iterator[str]:
    """Yield one Markdown row per sweep, with median times over the repeats and the quality of the first repeat.

    The joint density is in nats per document, the held-out likelihood in nats per token.
    """
    for same in zip(*chains, strict=True):
        time = [statistics.median(one[name] for one in same) for name in ("of_sweep", "seconds")]
        last, one = "", same[0]
        quality = " | | "
        if one["sweep"]:
            quality = f"{one['vi']:.2f} | {one['log_joint']:.2f} | {one['held_out']:.4f}"
        if one["sweep"] == len(chains[0]) - 1:
            last = f"{memory / 1e6:,.0f}"
        cells = f"{n_clusters:,} | {proposal} | {one['sweep']} | {time[0]:.1f} | {time[1]:.2f} | {quality} | {last}"
        yield f"| {cells} |"


if __name__ == "__main__":
    sys.exit(main())
