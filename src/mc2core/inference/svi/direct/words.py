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
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import kernel
from mc2core.compute.special import log
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi import local
from mc2core.inference.svi.direct.state import DirectExpectations, DirectGlobals
from mc2core.inference.svi.local import WORD_BLOCK, exponentiate, fill_log_psi, row_maxima

# Smaller factors of the products are 0: subnormal numbers take a hundred times as long to multiply. Sums of at least
# LEAST_SUM lose less than rounding by that, smaller ones are lost
LEAST_FACTOR, LEAST_SUM = 1e-150, 1e-130
# a block is multiplied as a sparse matrix where fewer than one in this many of its entries are not 0
_SPARSE = 8
# tokens of topics in clusters are summed in this many shares: block b of words belongs to share b % _SHARES
_SHARES = 8


class WordTopics(NamedTuple):
    """What the documents of a batch share, over its U distinct words.

    scores : (U, M) float64, E ln psi
    weights : (U, M) float64, exp(scores - the word's highest score)
    sums : (U, K) float64, sum_m tau_km weights_m; may vanish
    log_likelihood : (U, K) float64, lse_k(w); of lost pairs that are not ``exact`` something above it
    has_lost : whether there are lost pairs
    exact : set of (word, cluster), lost pairs whose lse is known
    log_tau, tau : (K, M) float64, E ln tau, and its exponential divided by the cluster's largest
    buffers : Buffers of the arrays over words, which are those of the state and last as long as its next step
    """

    scores: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray
    has_lost: bool
    exact: set[tuple[int, int]]
    log_tau: np.ndarray
    tau: np.ndarray
    buffers: Buffers


class _Topics(NamedTuple):
    """The globals that likelihoods read: what :func:`.local.fill_log_psi` takes, (M, K) ``tau`` transposed, and the
    (K,) logarithms it was divided by."""

    topic_words: np.ndarray
    shrink: float
    words: np.ndarray
    prior: float
    log_total: np.ndarray
    by_topic: np.ndarray
    highest: np.ndarray


class _Rows(NamedTuple):
    """Arrays of :class:`WordTopics` to be filled, and (U,) the highest score of each word."""

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray


@kernel(error_model="numpy")
def fill_weights(topic_words, shrink, words, prior, log_total, first, last, scores, top, weights):
    """E ln psi of words first..last-1, its maxima, and exp of what it is below them, as of :class:`WordTopics`."""
    for u in range(first, last):  # a row at a time, which stays in the cache
        fill_log_psi(topic_words, shrink, words, prior, log_total, u, u + 1, scores)
        row_maxima(scores, u, u + 1, top)
        exponentiate(scores, top, u, u + 1, weights)
        for m in range(weights.shape[1]):
            weights[u, m] = weights[u, m] if weights[u, m] >= LEAST_FACTOR else 0.0


@kernel(error_model="numpy")
def fill_likelihoods(topics, rows, first, last):
    """Rows first..last-1 of :class:`_Rows`, given :class:`_Topics`; whether a pair of these words is lost."""
    highest = topics.highest
    scores, top, weights, sums, likelihood = rows
    fill_weights(
        topics.topic_words, topics.shrink, topics.words, topics.prior, topics.log_total, first, last,
        scores, top, weights,
    )  # fmt: skip
    np.dot(weights[first:last], topics.by_topic, sums[first:last])
    has_lost = False
    for u in range(first, last):
        for k in range(highest.size):
            has_lost |= sums[u, k] < LEAST_SUM
            likelihood[u, k] = log(max(sums[u, k], LEAST_SUM)) + (top[u] + highest[k])
    return has_lost


def word_topics(
    state: DirectGlobals, expected: DirectExpectations, words: np.ndarray, pool: Executor | None
) -> WordTopics:
    """E ln psi and lse of the given words under the current globals, in the state's buffers."""
    n_clusters, n_topics = expected.log_tau.shape
    highest = expected.log_tau.max(axis=1)
    tau = np.exp(expected.log_tau - highest[:, None])
    tau[tau < LEAST_FACTOR] = 0.0
    topics = _Topics(
        state.topic_words, state.shrink, words, state.topic_prior, expected.log_topic_total,
        np.ascontiguousarray(tau.T), highest,
    )  # fmt: skip
    scores, weights = (state.buffers.empty(name, len(words), n_topics) for name in ("scores", "weights"))
    sums, log_likelihood = (state.buffers.empty(name, len(words), n_clusters) for name in ("sums", "log_likelihood"))
    rows = _Rows(scores, np.empty(len(words)), weights, sums, log_likelihood)

    def work(first: int, last: int) -> bool:
        return fill_likelihoods(topics, rows, first, last)

    has_lost = any(in_blocks(pool, work, len(words), WORD_BLOCK))
    return WordTopics(scores, weights, sums, log_likelihood, has_lost, set(), expected.log_tau, tau, state.buffers)


@kernel(error_model="numpy")
def sum_block(word_mass, sums, weights, tau, first, last, is_there, n_km, topic_words):
    """Words first..last-1: topic_words[u] = P (Q W), and Q^T P is added to ``n_km``, lost pairs left out.

    Rows of ``n_km`` hold something where ``is_there`` (K,) says so.
    """
    n_clusters, n_topics = tau.shape
    n = 0
    for u in range(first, last):
        for k in range(n_clusters):
            if word_mass[u, k] > 0.0:
                n += 1
                if not is_there[k]:
                    is_there[k] = True
                    n_km[k] = 0.0
    # documents of a small batch are in few clusters each, so that most ratios are 0
    is_sparse = _SPARSE * n < (last - first) * n_clusters
    q = np.empty((0 if is_sparse else last - first, n_clusters))
    own, out = np.empty((2, n_topics))
    for u in range(first, last):
        for m in range(n_topics):
            own[m], out[m] = weights[u, m], 0.0
        for k in range(n_clusters):
            is_known = word_mass[u, k] > 0.0 and sums[u, k] >= LEAST_SUM
            ratio = word_mass[u, k] / sums[u, k] if is_known else 0.0
            if not is_sparse:
                q[u - first, k] = ratio
            elif is_known:
                for m in range(n_topics):
                    out[m] += ratio * tau[k, m]
                for m in range(n_topics):
                    n_km[k, m] += ratio * own[m]
        if is_sparse:
            for m in range(n_topics):
                topic_words[u, m] = out[m] * own[m]
    if not is_sparse:
        np.dot(q, tau, topic_words[first:last])
        part = np.dot(q.T, weights[first:last])
        for k in range(n_clusters):
            if is_there[k]:
                n_km[k] += part[k]
        for u in range(first, last):
            for m in range(n_topics):
                topic_words[u, m] *= weights[u, m]


@kernel(error_model="numpy")
def add_shares(parts, is_there, tau, n_km):
    """n_km = W (the sum of ``parts`` (shares, K, M), whose rows hold something where ``is_there`` says so)."""
    for k in range(tau.shape[0]):
        for m in range(tau.shape[1]):
            n_km[k, m] = 0.0
        for share in range(parts.shape[0]):
            if is_there[share, k]:
                for m in range(tau.shape[1]):
                    n_km[k, m] += parts[share, k, m]
        for m in range(tau.shape[1]):
            n_km[k, m] *= tau[k, m]


def lost_pairs(likelihoods: WordTopics, word_mass: np.ndarray) -> list[tuple[int, int]]:
    """(word, cluster) of the lost pairs that have a mass R_k(w)."""
    if not likelihoods.has_lost:
        return []
    words, clusters = np.nonzero((likelihoods.sums < LEAST_SUM) & (word_mass > 0))
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
    n_words, n_topics = likelihoods.weights.shape
    n_clusters, n_blocks = len(likelihoods.tau), -(-n_words // WORD_BLOCK)
    n_shares = min(_SHARES, n_blocks)
    topic_words = likelihoods.buffers.empty("topic_words", n_words, n_topics)
    parts = likelihoods.buffers.empty("n_km", n_shares, n_clusters, n_topics)
    is_there = np.zeros((n_shares, n_clusters), bool)
    known = word_mass, likelihoods.sums, likelihoods.weights, likelihoods.tau

    def work(share: int, _: int) -> None:
        for block in range(share, n_blocks, n_shares):
            first = block * WORD_BLOCK
            last = min(first + WORD_BLOCK, n_words)
            sum_block(*known, first, last, is_there[share], parts[share], topic_words)

    in_blocks(pool, work, n_shares, 1)
    n_km = np.empty_like(likelihoods.tau)
    add_shares(parts, is_there, likelihoods.tau, n_km)
    for word, k in lost_pairs(likelihoods, word_mass):
        share = likelihoods.scores[word] + likelihoods.log_tau[k] - likelihoods.log_likelihood[word, k]
        n = word_mass[word, k] * np.exp(share)
        n_km[k] += n
        topic_words[word] += n
    return n_km, topic_words
