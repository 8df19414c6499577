"""Search for the K distributions over words that describe documents best.

A sample of MC2 without a document level has one distribution over words per cluster. For training documents, its
likelihood is therefore at most the likelihood of the best partition into K parts, with one unsmoothed distribution per
part. This bound holds only for one sample: a perplexity averages the probability of words over samples inside the
logarithm, and different samples together have more than K distributions.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.compute import streams

_MAX_ROUNDS = 100
#: tokens from the distribution of the corpus in each start; without these tokens, no document could change its part
_START_TOKENS = 1000.0
#: decreasing pseudo-counts of words while documents move
_SMOOTHING = (0.1, 0.01, 0.001)
#: pseudo-count of words for held-out documents: the "smooth" of ICML14, A.4
_HELD_OUT_SMOOTHING = 0.1


def searched_perplexities(train: sp.csr_matrix, test: sp.csr_matrix, n_clusters: int, n_starts: int) -> pd.DataFrame:
    """Return perplexities with K word distributions that hard EM finds, averaged over 1, 2, 4 and more solutions.

    Hard EM starts from random documents. Each start ends in a local optimum, so better solutions may exist. A training
    document has the unsmoothed distribution of its part. A held-out document has the smoothed distribution under which
    it is likeliest.

    Parameters
    ----------
    train, test : (J, V) counts
    n_clusters : K
    n_starts : number of solutions

    Returns
    -------
    One row per number of averaged solutions (1, 2, 4 and so on up to all). Solutions are sorted, the best for training
    documents first. The columns are clusters, solutions, training and held_out (averaged probabilities of documents),
    and training_by_token and held_out_by_token (averaged probabilities of tokens, as in ICML14, A.4).
    """
    train, test = (sp.csr_matrix(words, dtype=np.float64) for words in (train, test))
    rng, used = streams.generator(0, "word bound", iteration=n_clusters), np.flatnonzero(train.getnnz(axis=0))
    found = []
    for _ in range(n_starts):
        part = _partition(train[:, used], n_clusters, rng)
        counts = _counts(train, part, n_clusters)
        smoothed = counts + _HELD_OUT_SMOOTHING
        found.append((_token_logs(train, counts, part), _token_logs(test, smoothed, _nearest(test, smoothed))))
    logs = {name: np.array(of) for name, of in zip(("training", "held_out"), zip(*found, strict=True), strict=True)}
    best_first = np.argsort(-(logs["training"] @ train.data))
    rows = []
    for n in sorted({n_starts, *(2**power for power in range(n_starts.bit_length()) if 2**power <= n_starts)}):
        row: dict[str, float] = {"clusters": n_clusters, "solutions": n}
        for (name, of), words in zip(logs.items(), (train, test), strict=True):
            some, document = of[best_first[:n]], _rows(words)
            whole = np.array([np.bincount(document, one * words.data) for one in some])
            row[name] = np.exp(-(logsumexp(whole, axis=0) - np.log(n)).sum() / words.sum())
            row[f"{name}_by_token"] = np.exp(-(words.data @ (logsumexp(some, axis=0) - np.log(n))) / words.sum())
        rows.append(row)
    return pd.DataFrame(rows)


def _partition(words: sp.csr_matrix, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Search for a partition of documents into K parts by hard EM from one random start."""
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
    return part


def _counts(words: sp.csr_matrix, part: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the (K, V) counts of words in each part."""
    n = len(part)
    chosen = sp.csr_matrix((np.ones(n), part, np.arange(n + 1)), shape=(n, n_clusters))
    return (chosen.T @ words).toarray()


def _nearest(words: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """Return the (J,) parts under whose distributions the documents are likeliest; ``weights`` (K, V) are unscaled."""
    return np.asarray(words @ np.log(weights / weights.sum(axis=1, keepdims=True)).T).argmax(axis=1)


def _token_logs(words: sp.csr_matrix, weights: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the log probability of each stored word of each document under the distribution of its part."""
    parts = part[_rows(words)]
    return np.log(weights[parts, words.indices] / weights.sum(axis=1)[parts])


def _rows(words: sp.csr_matrix) -> np.ndarray:
    """Return the document of each stored word."""
    return np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
