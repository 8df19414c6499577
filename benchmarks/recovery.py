"""Recovery of simulated corpora by a default fit, compared with a chain from the truth: ``python -m
benchmarks.recovery``.

Each row is a corpus drawn from MC2 with a document level. It is fitted twice with the same number of sweeps: from the
default start, and from the true clusters and topics. If the fit from the default start has a lower joint density or a
worse held-out score, the search is at fault and not the model.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference import Gibbs
from mc2core.inference.gibbs.assignments import Assignments, document_start
from mc2core.inference.gibbs.state import DocumentLevelState, GibbsState
from mc2core.inference.running.loop import fit
from mc2core.models import MC2, TopicModel
from mc2core.posterior.clustering import adjusted_rand_index

CLUSTERS, DOCUMENTS, LENGTHS, OMEGAS = (3, 8, 20), (300, 1000), (10, 50, 300), (5.0, 20.0, 100.0)
_TOPICS, _WORDS, _WORDS_PRIOR, _TABLE_CONCENTRATION = 12, 500, 0.01, 5.0
_HELD_OUT = 50


@dataclass(frozen=True)
class Cell:
    """Settings with which a corpus is drawn; with an infinite ``omega``, there is no document level."""

    clusters: int
    documents: int
    length: int
    omega: float


#: each number of clusters with each length, and 300 documents; the values of omega take turns
ROUTINE = tuple(
    Cell(clusters, 300, length, OMEGAS[(i + j) % 3])
    for i, clusters in enumerate(CLUSTERS)
    for j, length in enumerate(LENGTHS)
)
GRID = tuple(Cell(*values) for values in product(CLUSTERS, DOCUMENTS, LENGTHS, OMEGAS))


@dataclass(frozen=True)
class Drawn:
    """A corpus to fit with its true assignments and parameters, and a held-out corpus."""

    corpus: Corpus
    held_out: Corpus
    cluster: np.ndarray  # (J,) int32
    topic: np.ndarray  # (tokens,) int32, in CSR order
    proportions: np.ndarray  # (K, M) float64: tau of the clusters in use
    topic_weights: np.ndarray  # (M,) float64: epsilon


def draw(cell: Cell, seed: int, words_prior: float = _WORDS_PRIOR) -> Drawn:
    """Draw documents from the model, with 12 topics, clusters of similar size, and theta ~ Dir(omega tau)."""
    rng = np.random.default_rng([seed, cell.clusters, cell.documents, cell.length, int(min(cell.omega, 1e9))])
    words = rng.dirichlet(np.full(_WORDS, words_prior), _TOPICS)
    weights = rng.dirichlet(np.full(_TOPICS, 5.0))
    tau = np.maximum(rng.dirichlet(_TABLE_CONCENTRATION * weights, cell.clusters), 1e-9)
    shares = rng.dirichlet(np.full(cell.clusters, 5.0))
    n = cell.documents + _HELD_OUT
    cluster = rng.choice(cell.clusters, n, p=shares)
    counts, topics = np.zeros((n, _WORDS), np.int64), []
    for j in range(n):
        own = tau[cluster[j]]
        theta = rng.dirichlet(cell.omega * own) if np.isfinite(cell.omega) else own / own.sum()
        tokens = rng.multinomial(rng.multinomial(cell.length, theta), words)
        counts[j] = tokens.sum(axis=0)
        # tokens of a document are sorted by word, and tokens of a word by topic
        topics.append(np.tile(np.arange(_TOPICS), _WORDS).repeat(tokens.T.ravel()))
    vocabulary = [f"word {w}" for w in range(_WORDS)]
    used, cluster = np.unique(cluster[: cell.documents], return_inverse=True)
    return Drawn(
        Corpus(sp.csr_matrix(counts[: cell.documents]), vocabulary),
        Corpus(sp.csr_matrix(counts[cell.documents :]), vocabulary),
        cluster.astype(np.int32), np.concatenate(topics[: cell.documents]).astype(np.int32), tau[used], weights,
    )  # fmt: skip


class FromTruth(Gibbs):
    """The Gibbs engine, started with the true clusters and topics."""

    truth: Drawn

    def init(self, model: TopicModel, corpus: Corpus, seed: int) -> GibbsState:
        if corpus is not self.truth.corpus:  # the few documents on which a fit compiles
            return super().init(model, corpus, seed)
        truth, used = self.truth, np.unique(self.truth.topic)
        weights = truth.topic_weights[used]
        assignments = Assignments(
            truth.cluster.copy(), np.searchsorted(used, truth.topic).astype(np.int32), document_start(corpus),
            weights * 0.99 / weights.sum(), 0.01,
        )  # fmt: skip
        assignments.count()
        state = DocumentLevelState.from_assignments(model, corpus, StackedContexts(corpus, {}), assignments)
        proportions = truth.proportions[:, used]
        proportions = proportions * 0.99 / proportions.sum(axis=1, keepdims=True)
        state.proportions = np.column_stack([proportions, np.full(len(proportions), 0.01)])
        state.move_all_but_tokens(seed, 0, None, is_burn_in=True)
        state.log_joint = state.compute_log_joint()
        return state


def figures(drawn: Drawn, engine: Gibbs, iterations: int, seed: int) -> dict[str, float]:
    """Fit the corpus by this engine, and return the measures of the fit."""
    found = fit(drawn.corpus, MC2(), engine, iterations=iterations, seed=seed, progress=False)
    last, posterior = found.trace.iloc[-1], found.posterior
    return {
        "joint": last["log_joint"],
        "held_out": posterior.perplexity(drawn.held_out, progress=False),
        "K": int(last["clusters"]),
        "M": int(last["topics"]),
        "omega": last["document_concentration"],
        "ARI": adjusted_rand_index(drawn.cluster, posterior.cluster),
        "CPU_s": found.provenance["cpu_seconds"],
    }


def rows(cells: Sequence[Cell], seeds: Sequence[int], iterations: int) -> Iterator[dict[str, Any]]:
    """Yield one row per cell and seed: settings, and measures of both chains."""
    for cell, seed in product(cells, seeds):
        drawn, at_truth = draw(cell, seed), FromTruth()
        at_truth.truth = drawn
        chains = {"": Gibbs(), "truth_": at_truth}
        settings = {"clusters": cell.clusters, "documents": cell.documents, "length": cell.length}
        row: dict[str, Any] = {**settings, "omega_true": cell.omega, "seed": seed}
        for prefix, engine in chains.items():
            row |= {prefix + name: value for name, value in figures(drawn, engine, iterations, seed).items()}
        yield row


def keeps_up(row: Mapping[str, Any]) -> dict[str, bool]:
    """Return, for each measure with an aim, whether the default chain is as good as the chain from the truth."""

    def within(one: float, other: float, factor: float) -> bool:
        return 1 / factor <= one / other <= factor

    return {
        "joint": row["joint"] >= row["truth_joint"],
        "held out": row["held_out"] <= row["truth_held_out"],
        "K within 25 %": abs(row["K"] - row["truth_K"]) <= 0.25 * row["truth_K"],
        "M within 1.5 times": within(row["M"], row["truth_M"], 1.5),
        **({"omega within 1.5 times": within(row["omega"], row["omega_true"], 1.5)} if row["length"] >= 50 else {}),
    }


def as_markdown(table: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table with pairs "default / from the truth", and how often the default is as good."""
    pairs = {"joint": ",.0f", "held_out": ".2f", "K": "d", "M": "d", "omega": ".3g", "ARI": ".2f", "CPU_s": ".1f"}
    heads = ["clusters", "documents", "length", "omega_true", "seed"]
    lines = ["| " + " | ".join([*heads, *pairs]) + " |", "|---" * (len(heads) + len(pairs)) + "|"]
    for row in table:
        cells = [f"{row[name]:g}" for name in heads]
        cells += [f"{row[name]:{kind}} / {row['truth_' + name]:{kind}}" for name, kind in pairs.items()]
        lines.append("| " + " | ".join(cells) + " |")
    judged = [keeps_up(row) for row in table]
    for name in {name: None for one in judged for name in one}:
        here = [one[name] for one in judged if name in one]
        lines.append(f"\n{name}: {sum(here)} of {len(here)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recovery", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--grid", action="store_true", help="all 54 cells, which takes hours; nine of them otherwise")
    parser.add_argument("--cells", nargs="+", metavar="K:J:WORDS:OMEGA", help="these cells alone")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of corpus and chains (default: 0)")
    parser.add_argument("--iterations", type=int, default=Gibbs.default_iterations, help="after the start")
    parser.add_argument("--out", type=Path, help="write OUT.csv and OUT.md")
    given = parser.parse_args()
    cells = GRID if given.grid else ROUTINE
    if given.cells:
        parts = [one.split(":") for one in given.cells]
        cells = tuple(Cell(int(k), int(j), int(length), float(omega)) for k, j, length, omega in parts)
    table = []
    for row in rows(cells, given.seeds, given.iterations):
        table.append(row)
        print(", ".join(f"{key} {value:.6g}" for key, value in row.items()), file=sys.stderr, flush=True)
    print(as_markdown(table), end="")
    if given.out:
        with given.out.with_suffix(".csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
        given.out.with_suffix(".md").write_text(as_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main()
