"""Measure the microseconds per document of FastEx by number of clusters and bits (NIPS12, table 1)."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.inference.fastex.hashed import FIT_PROJECTION_AFTER
from mc2core.inference.fastex.hashed_kernels import propose_all
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit
from mc2papers.datasets.simulated.encyclopaedia import Encyclopaedia, simulate
from mc2papers.nips2012.convergence import (
    AS_PRINTED,
    BALANCED,
    EXACT,
    FASTEX,
    NEIGHBOURS,
    OUR_PRIORS,
    PLAIN,
    WORD_PRIOR,
)
from mc2papers.nips2012.standard import microseconds_per_document
from mc2papers.nips2012.table1 import PROPOSAL, STANDARD, TOTAL
from mc2papers.other_work import OtherWork

logger = logging.getLogger(__name__)
_MORE_SWEEPS = 3
_PLAIN = {name: value for name, value in AS_PRINTED.items() if name != "failure_probability"}
_Cell = tuple[str, int, dict[str, Any]]  # method, bits, settings


def _seconds_of_proposals(state: Any, repeats: int) -> float:
    """Return the median seconds to propose clusters for all documents of a FastEx state, without compilation."""
    proposed = np.zeros(len(state.cluster), np.int32)
    seconds = []
    for repeat in range(1 + repeats):
        started = time.perf_counter()
        key = streams.key(0, "timed proposals", repeat)
        propose_all(key, state.documents, state.clusters, state.constants, proposed)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[1:]))


def time_documents(
    settings: Mapping[str, Any],
    n_clusters: Sequence[int],
    bits: Sequence[int],
    n_documents: int,
    n_words: int,
    sweeps: int,
    more_clusters: Sequence[int] = (),
    n_seeds: int = 1,
) -> pd.DataFrame:
    """Measure the times of all methods for every K and, with hashing, for every length of signatures.

    The methods are FastEx as printed and with plain estimates, our variants, exact scoring and the standard sampler.
    The engine ``settings`` are used in all cells, except for settings that the grid varies. Each chain has ``sweeps``
    sweeps, at least 5, because the projection changes in the first sweeps. With hashing, there are ``n_seeds`` chains.
    ``more_clusters`` are further values of K without hashing; their chains have three sweeps over ``n_documents``
    documents, or over 2 K documents if this is more.

    Returns the columns part, method, clusters, bits (0 without hashing), seed, microseconds_per_document, in_use
    (number of clusters with documents at the end of the chain) and other_cores (mean number of cores that other
    processes used).
    """
    rows, other = [], OtherWork()
    printed = {"proposal": "hash", **AS_PRINTED, "topic_word_prior": WORD_PRIOR}
    hashed: list[_Cell] = [(FASTEX, b, {**printed, "bits": b}) for b in bits]
    hashed += [(PLAIN, b, {"proposal": "hash", **_PLAIN, "bits": b}) for b in bits]
    hashed.append((BALANCED, max(bits), {"proposal": "hash", "bits": max(bits)}))
    others: list[_Cell] = [
        (NEIGHBOURS, 0, {"proposal": "neighbours", "exact_sweeps": []}),
        (EXACT, 0, {"proposal": "exact"}),
    ]
    grid = [(k, n_documents, sweeps, hashed + others) for k in n_clusters]
    grid += [(k, max(n_documents, 2 * k), _MORE_SWEEPS, others) for k in more_clusters]
    with tempfile.TemporaryDirectory() as folder:
        for k, size, iterations, cells in grid:
            # saved and loaded like the corpora of fits, because writable arrays would need other compiled kernels
            simulate(Encyclopaedia(k, size, n_words), seed=0).save(f"{folder}/{k}")
            corpus = Corpus.load(f"{folder}/{k}")
            if k in n_clusters:  # for larger K, the dense counts of the standard sampler do not fit in memory
                for seed in range(n_seeds):
                    took = microseconds_per_document(corpus, k, seed)
                    rows.append((TOTAL, STANDARD, k, 0, seed, took, k))
                    logger.info("K = %d, %s: %.2f us per document", k, STANDARD, took)
            for method, b, own in cells:
                pair = specify("mixture", "fastex", {**OUR_PRIORS, **settings, "n_clusters": k, **own})
                for seed in range(n_seeds if b else 1):  # the claims are only on methods with hashing
                    done = fit(corpus, *pair, iterations=iterations, seed=seed)
                    seconds_of_sweep = done.trace.set_index("iteration")["seconds"].diff()
                    fits = FIT_PROJECTION_AFTER if b else ()
                    parts = {TOTAL: float(seconds_of_sweep[~seconds_of_sweep.index.isin(fits)].median())}
                    in_use = int(done.trace["clusters"].iloc[-1])
                    if b:
                        parts[PROPOSAL] = _seconds_of_proposals(done.state, sweeps)
                    for part, seconds in parts.items():
                        rows.append((part, method, k, b, seed, seconds / size * 1e6, in_use))
                        logger.info("K = %d, %s, %d bits, %s: %.2f us per document", k, method, b, part, rows[-1][-2])
    columns = ["part", "method", "clusters", "bits", "seed", "microseconds_per_document", "in_use"]
    table = pd.DataFrame(rows, columns=columns).assign(other_cores=other.cores())
    return table.sort_values("part", kind="stable", ignore_index=True)
