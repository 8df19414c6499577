"""How well K distributions over words can describe documents at best, whatever the model that finds them.

A sample of MC2 without a document level has one distribution over words per cluster, so that no document has a higher
likelihood than that of the best of K unsmoothed distributions, one for each part of a partition into K.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams

_MAX_ROUNDS = 100
#: tokens of the corpus' distribution in each start; without them, no document could leave the part that it starts in
_START_TOKENS = 1000.0
#: added to each count while documents move, smaller and smaller
_SMOOTHING = (0.1, 0.01, 0.001)


def least_perplexity(words: sp.csr_matrix, n_clusters: int, n_starts: int) -> float:
    """Return the least perplexity of documents under the best of K unsmoothed word distributions, as far as found.

    Hard EM from documents drawn at random; a local optimum, so that the true least value may be lower.

    Parameters
    ----------
    words : (J, V) counts, the documents that the distributions are estimated from and judged by
    n_clusters : K
    n_starts : number of random starts, of which the best counts
    """
    words = sp.csr_matrix(words, dtype=np.float64)
    words = words[:, np.flatnonzero(words.getnnz(axis=0))]
    rng = streams.generator(0, "word bound", iteration=n_clusters)
    best = min(_partitioned(words, n_clusters, rng) for _ in range(n_starts))
    return float(np.exp(best / words.sum()))


def _partitioned(words: sp.csr_matrix, n_clusters: int, rng: np.random.Generator) -> float:
    """Minus the log likelihood at the end of one start."""
    n_documents = words.shape[0]
    n_clusters = min(n_clusters, n_documents)
    overall = np.asarray(words.sum(axis=0)).ravel() / words.sum()
    first = words[rng.choice(n_documents, n_clusters, replace=False)].toarray() + _START_TOKENS * overall
    part = _nearest(words, first)
    for smoothing in _SMOOTHING:
        for _ in range(_MAX_ROUNDS):
            moved = _nearest(words, _counts(words, part, n_clusters) + smoothing)
            if np.array_equal(moved, part):
                break
            part = moved
    counts = _counts(words, part, n_clusters)
    used = counts[counts > 0]
    totals = counts.sum(axis=1)
    return float(totals[totals > 0] @ np.log(totals[totals > 0]) - used @ np.log(used))


def _counts(words: sp.csr_matrix, part: np.ndarray, n_clusters: int) -> np.ndarray:
    """Count each word in each part, (K, V)."""
    n = len(part)
    chosen = sp.csr_matrix((np.ones(n), part, np.arange(n + 1)), shape=(n, n_clusters))
    return (chosen.T @ words).toarray()


def _nearest(words: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """Find the part (J,) under whose distribution, of weights (K, V), each document is likeliest."""
    return np.asarray(words @ np.log(weights / weights.sum(axis=1, keepdims=True)).T).argmax(axis=1)
