"""Words under direct assignment: two dense products forward, two back.

With P_m(w) = exp(E ln psi_mw) and W_km = exp(E ln tau_km), the likelihoods are lse_k(w) = ln sum_m W_km P_m(w), and the
documents' masses R_k(w) say, by Q = R / (P W^T),

    n_km = W_km (Q^T P)_km,    tokens of word w in topic m = P_m(w) (Q W)_wm.

P is divided by its largest value of each word and W by that of each cluster, since exp(digamma(.001)) is 0 in float64.
Pairs of a word and a cluster whose sum vanishes all the same (*lost* pairs) have a bound of lse from above at first;
where a document has a share in such a cluster all the same, they are done one by one in logarithms and it is assigned
anew.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.engines.svi import local
from mc2core.engines.svi.direct.state import DirectExpectations, DirectGlobals
from mc2core.engines.svi.local import WORD_BLOCK, exponentiate, fill_log_psi, row_maxima

# Smaller factors of the products are 0: subnormal numbers take a hundred times as long to multiply. Sums of at least
# _LEAST_SUM lose less than rounding by that, smaller ones are lost
_LEAST_FACTOR, _LEAST_SUM = 1e-150, 1e-130
# a block is multiplied as a sparse matrix where fewer than one in this many of its entries are not 0
_SPARSE = 8


class WordTopics(NamedTuple):
    """What the documents of a batch share, over its U distinct words.

    scores : (U, M) float64, E ln psi
    weights : (U, M) float64, exp(scores - the word's highest score)
    sums : (U, K) float64, sum_m tau_km weights_m; may vanish
    log_likelihood : (U, K) float64, lse_k(w); of lost pairs that are not ``exact`` something above it
    exact : set of (word, cluster), lost pairs whose lse is known
    log_tau, tau : (K, M) float64, E ln tau, and its exponential divided by the cluster's largest
    """

    scores: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray
    exact: set[tuple[int, int]]
    log_tau: np.ndarray
    tau: np.ndarray


def word_topics(
    state: DirectGlobals, expected: DirectExpectations, words: np.ndarray, pool: Executor | None
) -> WordTopics:
    """E ln psi and lse of the given words under the current globals."""
    n_clusters, n_topics = expected.log_tau.shape
    highest = expected.log_tau.max(axis=1)
    tau = np.exp(expected.log_tau - highest[:, None])
    tau[tau < _LEAST_FACTOR] = 0.0
    by_topic = np.ascontiguousarray(tau.T)
    scores, weights = np.empty((2, len(words), n_topics))
    sums, log_likelihood = np.empty((2, len(words), n_clusters))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        total = expected.log_topic_total
        fill_log_psi(state.topic_words, state.shrink, words, state.topic_prior, total, first, last, scores)
        row_maxima(scores, first, last, top)
        exponentiate(scores, top, first, last, weights)
        weights[first:last][weights[first:last] < _LEAST_FACTOR] = 0.0
        np.matmul(weights[first:last], by_topic, out=sums[first:last])
        np.log(np.maximum(sums[first:last], _LEAST_SUM), out=log_likelihood[first:last])
        log_likelihood[first:last] += top[first:last, None] + highest

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return WordTopics(scores, weights, sums, log_likelihood, set(), expected.log_tau, tau)


@kernel(error_model="numpy")
def fill_ratios(word_mass, sums, first, last, indptr, column, ratio):
    """CSR of R / sums of words first..last-1, lost pairs left out; returns the number of its entries."""
    n = 0
    for u in range(first, last):
        for k in range(word_mass.shape[1]):
            if word_mass[u, k] > 0.0 and sums[u, k] >= _LEAST_SUM:
                column[n] = k
                ratio[n] = word_mass[u, k] / sums[u, k]
                n += 1
        indptr[u - first + 1] = n
    return n


@kernel(error_model="numpy")
def has_lost(word_mass, sums):
    """Whether any lost pair has a mass."""
    for u in range(word_mass.shape[0]):
        for k in range(word_mass.shape[1]):
            if word_mass[u, k] > 0.0 and sums[u, k] < _LEAST_SUM:
                return True
    return False


def lost_pairs(likelihoods: WordTopics, word_mass: np.ndarray) -> list[tuple[int, int]]:
    """(word, cluster) of the lost pairs that have a mass R_k(w)."""
    if not has_lost(word_mass, likelihoods.sums):
        return []
    words, clusters = np.nonzero((likelihoods.sums < _LEAST_SUM) & (word_mass > 0))
    return list(zip(words.tolist(), clusters.tolist(), strict=True))


def make_exact(likelihoods: WordTopics, pairs: list[tuple[int, int]]) -> bool:
    """Compute lse of lost pairs in logarithms, in place; whether any was not known before."""
    new = set(pairs) - likelihoods.exact
    for word, k in sorted(new):
        likelihoods.log_likelihood[word, k] = logsumexp(likelihoods.scores[word] + likelihoods.log_tau[k])
    likelihoods.exact.update(new)
    return bool(new)


def assign_documents(
    batch: local.Batch,
    likelihoods: WordTopics,
    expected: DirectExpectations,
    pool: Executor | None,
    assign: local.Assign = local.assign_documents,
) -> tuple[np.ndarray, local.DocumentStatistics]:
    """What ``assign`` does, repeated while documents have a share in lost pairs that are not exact."""
    while True:
        shares, documents = assign(batch, likelihoods.log_likelihood, expected, pool)
        if not make_exact(likelihoods, lost_pairs(likelihoods, documents.word_mass)):
            return shares, documents


def topic_statistics(
    likelihoods: WordTopics, word_mass: np.ndarray, pool: Executor | None
) -> tuple[np.ndarray, np.ndarray]:
    """(K, M) float64 expected tokens of each topic in each cluster, and (U, M) of each word, given R (U, K)."""
    n_words, n_topics = likelihoods.scores.shape
    n_clusters = word_mass.shape[1]
    topic_words = np.empty((n_words, n_topics))

    def work(first: int, last: int) -> np.ndarray:
        indptr = np.zeros(last - first + 1, np.int32)
        column, ratio = np.empty((last - first) * n_clusters, np.int32), np.empty((last - first) * n_clusters)
        n = fill_ratios(word_mass, likelihoods.sums, first, last, indptr, column, ratio)
        weights = likelihoods.weights[first:last]
        q: Any = sp.csr_matrix((ratio[:n], column[:n], indptr), shape=(last - first, n_clusters))
        # documents of a small batch are in few clusters each, so that most ratios are 0
        q = q if _SPARSE * n < len(ratio) else q.toarray()
        np.multiply(q @ likelihoods.tau, weights, out=topic_words[first:last])
        return np.asarray(q.T @ weights)

    n_km = np.zeros_like(likelihoods.tau)
    for part in in_blocks(pool, work, n_words, WORD_BLOCK):
        n_km += part
    n_km *= likelihoods.tau
    for word, k in lost_pairs(likelihoods, word_mass):
        share = likelihoods.scores[word] + likelihoods.log_tau[k] - likelihoods.log_likelihood[word, k]
        n = word_mass[word, k] * np.exp(share)
        n_km[k] += n
        topic_words[word] += n
    return n_km, topic_words
