"""Microseconds a document that FastEx takes, by number of clusters and bits (NIPS12 table 1)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2core import rng
from mc2core.compiling import kernel
from mc2core.engines.fastex import AIM_AFTER
from mc2core.engines.fastex_hash import workspace
from mc2core.engines.fastex_proposal import draw, proposal_scores, weigh
from mc2core.engines.loop import fit
from mc2core.engines.registry import make_engine
from mc2core.sources.categories import Encyclopaedia, simulate
from mc2core.tables import claim

logger = logging.getLogger(__name__)

PROPOSAL, TOTAL = "proposal", "total"
#: the paper's own figures grow 1.3 to 1.5 times
HARDLY = 1.5
NOTES = (
    "Microseconds a document on one core, compilation excluded: the median over sweeps of a chain that starts at "
    "random, but for those that end with a new fit of the projection (10 of the first 32). The job runs alone on its "
    "machine.",
    "Data: simulated articles of K categories, about 100 distinct words each. The paper's are Wikipedia's, on its own "
    "machine of 2012: compare how the columns grow, not their levels.",
    "proposal: a cluster drawn for every document from the signatures as they are at the end. total: all that a sweep "
    "does, moves of documents included. collapsed Gibbs scores every cluster exactly, from a table.",
)


@kernel
def propose_all(key, documents, clusters, constants, proposed):
    """Fill (J,) int32 ``proposed`` with a draw from each document's proposal, given the clusters as they are.

    Arguments are attributes of :class:`mc2core.engines.fastex_state.FastExState`; the document stays in its cluster.
    """
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(proposed.size):
        rng.seek(stream, key, j)
        proposal_scores(
            clusters.columns, documents.signature[j], documents.norm[j], documents.mass[j], constants.bits,
            constants.slack, constants.flatness, work.weights, work.blocks,
        )  # fmt: skip
        weigh(work.weights, work.blocks)
        proposed[j] = draw(stream, clusters.n_k.size, work.weights, work.blocks)


def _seconds_of_proposals(state: Any, repeats: int) -> float:
    """Median seconds of proposals for all documents of a FastEx state; a first call compiles and does not count."""
    proposed = np.zeros(len(state.cluster), np.int32)
    seconds = []
    for repeat in range(1 + repeats):
        started = time.perf_counter()
        propose_all(rng.key(0, "timed proposals", repeat), state.documents, state.clusters, state.constants, proposed)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[1:]))


def time_documents(
    settings: Mapping[str, Any],
    n_clusters: Sequence[int],
    bits: Sequence[int],
    n_documents: int,
    n_words: int,
    sweeps: int,
) -> pd.DataFrame:
    """Time every K with every length of signature, and exact scoring beside them.

    ``settings`` of the engine hold for all cells, but for those that the grid sets. ``sweeps`` of each chain, at least
    5: the first after which the projection stays as it is. Returns the columns part, method,
    clusters, bits (0 where nothing is hashed) and microseconds_per_document.
    """
    rows = []
    for k in n_clusters:
        corpus = simulate(Encyclopaedia(k, n_documents, n_words), seed=0)
        cells: list[tuple[str, int, dict[str, Any]]] = [("FastEx", b, {"proposal": "hash", "bits": b}) for b in bits]
        for method, b, own in [*cells, ("collapsed Gibbs", 0, {"proposal": "exact"})]:
            engine = make_engine("fastex", {**settings, "n_clusters": k, **own}, {})
            done = fit(corpus, engine, iterations=sweeps, seed=0, progress=False)
            seconds_of_sweep = done.trace.set_index("iteration")["seconds"].diff()
            parts = {TOTAL: float(seconds_of_sweep[~seconds_of_sweep.index.isin(AIM_AFTER)].median())}
            if b:
                parts[PROPOSAL] = _seconds_of_proposals(done.state, sweeps)
            for part, seconds in parts.items():
                rows.append((part, method, k, b, seconds / n_documents * 1e6))
                logger.info("K = %d, %s, %d bits, %s: %.2f microseconds a document", k, method, b, part, rows[-1][-1])
    table = pd.DataFrame(rows, columns=["part", "method", "clusters", "bits", "microseconds_per_document"])
    return table.sort_values("part", kind="stable", ignore_index=True)


def speed_table(times: pd.DataFrame, paper: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """NIPS12 table 1: ours beside the paper's (columns part, clusters, bits, microseconds_per_document), and its claim.

    The claim: the total hardly grows with K. It is judged by the factor from the least to the largest K at each
    number of bits, which must not exceed :data:`HARDLY` anywhere.
    """
    keys = ["part", "clusters", "bits"]
    printed = paper.rename(columns={"microseconds_per_document": "paper_microseconds_per_document"})
    table = times.merge(printed, on=keys, how="left")
    hashed = times[(times["part"] == TOTAL) & (times["bits"] > 0)]
    wide = hashed.pivot(index="bits", columns="clusters", values="microseconds_per_document").sort_index(axis=1)
    least, most = wide.columns[0], wide.columns[-1]
    text = f"total hardly grows from K = {least:,} to {most:,} (at most {HARDLY:g} times)"
    if least == most:
        return table, [claim("nips2012_table1", "simulated articles", text, None, f"only K = {least:,} was timed")]
    growth = wide[most] / wide[least]
    numbers = ", ".join(f"{bits} bits {times:.2f}" for bits, times in growth.items())
    verdict = bool((growth <= HARDLY).all())
    return table, [claim("nips2012_table1", "simulated articles", text, verdict, f"times: {numbers}")]


def format_speed_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`speed_table` as text for people: a row for each part, method and bits."""
    rows = []
    for (part, method, bits), here in table.groupby(["part", "method", "bits"], sort=False):
        row = {"part": part, "method": method, "bits": f"{bits}" if bits else ""}
        for _, cell in here.iterrows():
            row[f"K = {cell['clusters']:,}, ours"] = f"{cell['microseconds_per_document']:.2f}"
            known = cell["paper_microseconds_per_document"]
            row[f"K = {cell['clusters']:,}, paper"] = "" if pd.isna(known) else f"{known:.2f}"
        rows.append(row)
    return pd.DataFrame(rows).fillna("")
