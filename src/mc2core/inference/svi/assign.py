"""Responsibilities of clusters for documents, given the log likelihoods of words (UAI16, eq. 1)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.documents import Batch, DocumentStatistics, Expectations, statistics_of
from mc2core.inference.svi.words import WORD_BLOCK

_DOCUMENT_BLOCK = 4
# smaller probabilities (of a cluster in a document, or of a topic at a table) are lost to rounding in any sum
LOST_SHARE = 1e-18
#: signature of :func:`assign_documents`; on Spark, the result may lack the responsibilities
Assign = Callable[[Batch, np.ndarray, Expectations, Executor | None], DocumentStatistics]


@kernel
def assign_in_block(indptr, indices, counts, log_likelihood, first, last, shares, log_evidence):
    """Compute the responsibilities mu_jk of documents first..last-1.

    ``shares`` (B, K) float64 initially contains the expected log weights of clusters plus the log likelihoods of
    contexts. It is overwritten with mu_jk. ``log_evidence`` (B,) is overwritten with ln Z_j.
    """
    n_clusters = shares.shape[1]
    score = np.empty(n_clusters)
    for j in range(first, last):
        for k in range(n_clusters):
            score[k] = shares[j, k]
        for cell in range(indptr[j], indptr[j + 1]):
            x = np.float64(counts[cell])
            u = indices[cell]
            for k in range(n_clusters):
                score[k] += x * log_likelihood[u, k]
        top = -np.inf
        for k in range(n_clusters):
            top = max(top, score[k])
        total = 0.0
        for k in range(n_clusters):
            score[k] = np.exp(score[k] - top)
            total += score[k]
        log_evidence[j] = top + np.log(total)
        for k in range(n_clusters):
            shares[j, k] = score[k] / total


@kernel
def cells_by_word(indptr, indices, counts, n_words):
    """Transpose the word counts of documents: return indptr (n_words + 1,) int64, documents int32 and counts int32.

    The documents of each word are in ascending order.
    """
    start = np.zeros(n_words + 1, np.int64)
    for cell in range(indices.size):
        start[indices[cell] + 1] += 1
    for u in range(n_words):
        start[u + 1] += start[u]
    place = start[:-1].copy()
    documents, of_word = np.empty((2, indices.size), np.int32)
    for j in range(indptr.size - 1):
        for cell in range(indptr[j], indptr[j + 1]):
            u = indices[cell]
            documents[place[u]] = j
            of_word[place[u]] = counts[cell]
            place[u] += 1
    return start, documents, of_word


@kernel
def add_word_mass(indptr, documents, counts, start, cluster, share, first, last, word_mass):
    """Write word_mass[u, k] = sum_j mu_jk x_ju for words u in first..last-1.

    ``indptr``, ``documents`` and ``counts`` are the result of :func:`cells_by_word`. ``cluster`` and ``share`` contain
    the clusters of document j with a responsibility that is not negligible, at indices start[j]..start[j + 1] - 1.
    """
    for u in range(first, last):
        for k in range(word_mass.shape[1]):
            word_mass[u, k] = 0.0
        for cell in range(indptr[u], indptr[u + 1]):
            j = documents[cell]
            for i in range(start[j], start[j + 1]):
                word_mass[u, cluster[i]] += counts[cell] * share[i]


def assign_documents(
    batch: Batch, log_likelihood: np.ndarray, expected: Expectations, pool: Executor | None
) -> DocumentStatistics:
    """Compute the responsibilities q(z_j) of all documents, and the statistics of the batch.

    ``log_likelihood`` (U, K) contains lse_k(w), the expected log likelihood of each word in each cluster.
    """
    shares = batch.contexts.log_likelihood(expected.contexts) + expected.log_group
    log_evidence = np.empty(batch.n_documents)
    word_mass = np.empty_like(log_likelihood)

    def work(first: int, last: int) -> None:
        assign_in_block(batch.indptr, batch.indices, batch.counts, log_likelihood, first, last, shares, log_evidence)

    in_blocks(pool, work, batch.n_documents, _DOCUMENT_BLOCK)
    by_word = cells_by_word(batch.indptr, batch.indices, batch.counts, len(word_mass))
    document, cluster = np.nonzero(shares > LOST_SHARE)
    start = np.searchsorted(document, np.arange(batch.n_documents + 1))
    share = shares[document, cluster]

    def add(first: int, last: int) -> None:
        add_word_mass(*by_word, start, cluster, share, first, last, word_mass)

    in_blocks(pool, add, len(word_mass), WORD_BLOCK)
    return statistics_of(batch, shares, log_evidence, word_mass)
