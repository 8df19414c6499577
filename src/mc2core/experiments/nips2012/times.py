"""Microseconds a document that FastEx takes, by number of clusters and bits (NIPS12 table 1)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.engines.fastex.engine import FIT_PROJECTION_AFTER
from mc2core.engines.fastex.hashed.moves import workspace
from mc2core.engines.fastex.hashed.proposal import draw, proposal_scores, weigh
from mc2core.engines.registry import make_engine
from mc2core.engines.running.loop import fit
from mc2core.experiments.nips2012.table1 import PROPOSAL, TOTAL
from mc2core.sources.simulated.encyclopaedia import Encyclopaedia, simulate

logger = logging.getLogger(__name__)


@kernel
def propose_all(key, documents, clusters, constants, proposed):
    """Fill (J,) int32 ``proposed`` with a draw from each document's proposal, given the clusters as they are.

    Arguments are attributes of :class:`mc2core.engines.fastex.hashed.state.FastExState`; the document stays in its
    cluster.
    """
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(proposed.size):
        streams.seek(stream, key, j)
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
        propose_all(
            streams.key(0, "timed proposals", repeat), state.documents, state.clusters, state.constants, proposed
        )
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
            parts = {TOTAL: float(seconds_of_sweep[~seconds_of_sweep.index.isin(FIT_PROJECTION_AFTER)].median())}
            if b:
                parts[PROPOSAL] = _seconds_of_proposals(done.state, sweeps)
            for part, seconds in parts.items():
                rows.append((part, method, k, b, seconds / n_documents * 1e6))
                logger.info("K = %d, %s, %d bits, %s: %.2f microseconds a document", k, method, b, part, rows[-1][-1])
    table = pd.DataFrame(rows, columns=["part", "method", "clusters", "bits", "microseconds_per_document"])
    return table.sort_values("part", kind="stable", ignore_index=True)
