"""The standard collapsed Gibbs sampler of a mixture of multinomials, which scores every cluster word by word.

No fit uses this sampler. NIPS12 claims that its time is linear in the number of clusters, and table 1 tests this claim.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.corpus import Corpus

#: number of documents for which the time is measured
_TIMED = 200
_ALPHA, _WORD_PRIOR = 1.0, 0.01


@kernel
def log_conditional(words, counts, n_documents, word_counts, totals, alpha, topic_word_prior):
    """Return the (K,) float64 values log p(z = k | all other documents) + constant for a document without a cluster.

    words, counts : (L,) distinct words of the document and their counts
    n_documents, totals : (K,) numbers of documents and tokens of each cluster
    word_counts : (K, V) counts of words in each cluster
    """
    n_clusters, n_words = word_counts.shape
    length = counts.sum()
    logs = np.empty(n_clusters)
    for k in range(n_clusters):
        one = np.log(n_documents[k] + alpha / n_clusters)
        for i in range(len(words)):
            for repeat in range(counts[i]):
                one += np.log(word_counts[k, words[i]] + topic_word_prior + repeat)
        for token in range(length):
            one -= np.log(totals[k] + topic_word_prior * n_words + token)
        logs[k] = one
    return logs


@kernel
def sweep(indptr, indices, data, rows, cluster, n_documents, word_counts, totals, alpha, topic_word_prior, uniform):
    """Draw the clusters of the documents ``rows`` one by one, in place; ``uniform`` has a number in [0, 1) for each."""
    for place in range(len(rows)):
        j = rows[place]
        words, counts = indices[indptr[j] : indptr[j + 1]], data[indptr[j] : indptr[j + 1]]
        for sign in (-1, 1):
            if sign == 1:
                logs = log_conditional(words, counts, n_documents, word_counts, totals, alpha, topic_word_prior)
                weights = np.cumsum(np.exp(logs - logs.max()))
                cluster[j] = np.searchsorted(weights, uniform[place] * weights[-1], side="right")
            k = cluster[j]
            n_documents[k] += sign
            totals[k] += sign * counts.sum()
            for i in range(len(words)):
                word_counts[k, words[i]] += sign * counts[i]


def microseconds_per_document(corpus: Corpus, n_clusters: int, seed: int) -> float:
    """Return the microseconds per document from a random start, over at most _TIMED documents, without compilation."""
    content: Any = corpus.content
    indptr, indices = np.asarray(content.indptr), np.asarray(content.indices)
    data = np.asarray(content.data).astype(np.int64)
    rng = np.random.default_rng(seed)
    cluster = rng.integers(n_clusters, size=corpus.n_documents)
    word_counts = np.zeros((n_clusters, content.shape[1]), np.int32)
    np.add.at(word_counts, (np.repeat(cluster, np.diff(indptr)), indices), data)
    state = (
        cluster, np.bincount(cluster, minlength=n_clusters), word_counts, word_counts.sum(axis=1, dtype=np.int64),
        _ALPHA, _WORD_PRIOR,
    )  # fmt: skip
    rows = rng.permutation(corpus.n_documents)[: _TIMED + 1]
    took = 0.0
    for part in (rows[:1], rows[1:]):  # the first document compiles
        uniform = rng.random(len(part))
        started = time.perf_counter()
        sweep(indptr, indices, data, part, *state, uniform)
        took = time.perf_counter() - started
    return 1e6 * took / len(rows[1:])
