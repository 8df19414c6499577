"""Best description of documents by K distributions over words, as far as a search finds it.

A sample of MC2 without a document level has one distribution over words per cluster. Therefore, the likelihood of the
training documents is at most that of the best K unsmoothed distributions, one for each part of a partition into K
parts. This bound holds for one sample. A perplexity averages the probability of words over samples inside the
logarithm, and different samples together have more than K distributions.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.compute import streams

_MAX_ROUNDS = 100
#: tokens of the corpus' distribution in each start; without them, no document could leave the part that it starts in
_START_TOKENS = 1000.0
#: added to each count while documents move, smaller and smaller
_SMOOTHING = (0.1, 0.01, 0.001)
#: added to each count for held-out documents: the "smooth" of ICML14 A.4
_HELD_OUT_SMOOTHING = 0.1


def searched_perplexities(train: sp.csr_matrix, test: sp.csr_matrix, n_clusters: int, n_starts: int) -> pd.DataFrame:
    """Return perplexities under K word distributions found by hard EM, averaged over more and more solutions.

    Hard EM starts from documents drawn at random. Each start ends in a local optimum, so that better solutions may
    exist. Training documents have the unsmoothed distribution of the part that they are in, held-out ones the smoothed
    distribution under which they are likeliest.

    Parameters
    ----------
    train, test : (J, V) counts
    n_clusters : K
    n_starts : number of solutions

    Returns
    -------
    A row per number of solutions that are averaged (1, 2, 4 and so on up to all), the best on the training documents
    first, with columns clusters, solutions, training, held_out (probabilities of documents averaged) and
    training_by_token, held_out_by_token (probabilities of tokens averaged, as in ICML14 A.4).
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
    """Count each word in each part, (K, V)."""
    n = len(part)
    chosen = sp.csr_matrix((np.ones(n), part, np.arange(n + 1)), shape=(n, n_clusters))
    return (chosen.T @ words).toarray()


def _nearest(words: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """Find the part (J,) under whose distribution, of weights (K, V), each document is likeliest."""
    return np.asarray(words @ np.log(weights / weights.sum(axis=1, keepdims=True)).T).argmax(axis=1)


def _token_logs(words: sp.csr_matrix, weights: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the log probability of each stored word of each document under the distribution of its part."""
    parts = part[_rows(words)]
    return np.log(weights[parts, words.indices] / weights.sum(axis=1)[parts])


def _rows(words: sp.csr_matrix) -> np.ndarray:
    """Return the document of each stored word."""
    return np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
