"""Local step of SVI-MC2 by direct assignment of tokens to topics, for documents without their own proportions.

**Documents** (UAI16, eq. 1): lse_k(w) is the logarithm of the expected likelihood of a word w in cluster k, with the
topic or table of the token summed out. It is the same in every document, so it is computed once per distinct word of a
mini-batch. The cluster responsibilities of a document need no other term of its words (:func:`assign_documents`):

    ln mu_jk = E ln beta_k + E ln p(x_j | phi_k) + sum_w x_jw lse_k(w) - ln Z_j,

The global step needs only small sums over documents, which another process can compute.

**Words** need two dense matrix products before the documents are assigned, and two afterwards (docs/model.md, Direct
assignment). Let P_m(w) = exp(E ln psi_mw) and W_km = exp(E ln tau_km). Then lse_k(w) = ln sum_m W_km P_m(w). Let R_k(w)
be the expected number of tokens of word w in cluster k, and Q = R / (P W^T). Then

    n_km = W_km (Q^T P)_km,    tokens of word w in topic m = P_m(w) (Q W)_wm.

P is divided by its largest value per word, and W by its largest value per cluster, because exp(digamma(.001)) is 0 in
float64. A pair of a word and a cluster whose sum still underflows is called *lost*. For lost pairs, lse is first
replaced by an upper bound. If a document with the word has a responsibility for the cluster, lse is computed in
logarithms, and all documents are assigned again.

Sums are taken over fixed blocks in a fixed order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import kernel
from mc2core.compute.records import record
from mc2core.compute.special import log
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.assign import Assign, assign_documents
from mc2core.inference.svi.documents import Batch, Expectations
from mc2core.inference.svi.empirical_bayes import STEPS_OF_BATCH, STEPS_OF_FULL
from mc2core.inference.svi.globals import Globals, LocalStep
from mc2core.inference.svi.words import MIN_FACTOR, MIN_SUM, WORD_BLOCK, WordScores, blend

# a block is multiplied as a sparse matrix if less than 1 / _SPARSE of its entries are nonzero
_SPARSE = 8
# number of partial sums of the topic counts of clusters: block b of words is added to partial sum b % _SHARES
_SHARES = 8


@record
class WordTopics(NamedTuple):
    """Word likelihoods under topics and clusters, for the U distinct words of a batch.

    of_topics : expected log probabilities of the words under each topic
    sums : (U, K) float64, sum_m tau_km weights_m; may underflow
    log_likelihood : (U, K) float64, lse_k(w); an upper bound for lost pairs that are not in ``exact``
    has_lost : bool, whether there are lost pairs
    exact : set of (word, cluster), lost pairs whose lse has been computed in logarithms
    log_tau, tau : (K, M) float64, E ln tau, and its exponential divided by the largest value of each cluster
    buffers : the buffers of the state, which contain the arrays over words until the next step
    """

    of_topics: WordScores
    sums: np.ndarray
    log_likelihood: np.ndarray
    has_lost: bool
    exact: set[tuple[int, int]]
    log_tau: np.ndarray
    tau: np.ndarray
    buffers: Buffers


@kernel
def fill_likelihoods(weights, top, tau, highest, first, last, sums, log_likelihood):
    """Fill rows first..last-1 of ``sums`` and ``log_likelihood``, given ``tau`` (M, K).

    Returns whether a sum underflows.
    """
    np.dot(weights[first:last], tau, sums[first:last])
    has_lost = False
    for u in range(first, last):
        for k in range(highest.size):
            has_lost |= sums[u, k] < MIN_SUM
            log_likelihood[u, k] = log(max(sums[u, k], MIN_SUM)) + (top[u] + highest[k])
    return has_lost


def word_topics(
    state: Globals, log_tau: np.ndarray, expected: Expectations, words: np.ndarray, pool: Executor | None
) -> WordTopics:
    """Compute E ln psi and lse of ``words`` under the current global parameters, in the buffers of the state."""
    of_topics, highest = state.word_scores(expected, words, pool), log_tau.max(axis=1)
    tau = np.exp(log_tau - highest[:, None])
    tau[tau < MIN_FACTOR] = 0.0
    by_topic = np.ascontiguousarray(tau.T)
    sums, lse = (state.buffers.empty(name, len(words), len(tau)) for name in ("sums", "log_likelihood"))

    def work(first: int, last: int) -> bool:
        return fill_likelihoods(of_topics.weights, of_topics.top, by_topic, highest, first, last, sums, lse)

    has_lost = any(in_blocks(pool, work, len(words), WORD_BLOCK))
    return WordTopics(of_topics, sums, lse, has_lost, set(), log_tau, tau, state.buffers)


@kernel
def sum_block(word_mass, sums, weights, tau, first, last, is_there, n_km, topic_words):
    """Write topic_words[u] = P (Q W) for words first..last-1, and add Q^T P to ``n_km``, except for lost pairs.

    ``is_there`` (K,) marks the clusters whose rows of ``n_km`` have been initialised.
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
    # in a small batch, each word occurs in few clusters, so most ratios are 0
    is_sparse = _SPARSE * n < (last - first) * n_clusters
    q = np.empty((0 if is_sparse else last - first, n_clusters))
    weight, out = np.empty((2, n_topics))
    for u in range(first, last):
        for m in range(n_topics):
            weight[m], out[m] = weights[u, m], 0.0
        for k in range(n_clusters):
            is_known = word_mass[u, k] > 0.0 and sums[u, k] >= MIN_SUM
            ratio = word_mass[u, k] / sums[u, k] if is_known else 0.0
            if not is_sparse:
                q[u - first, k] = ratio
            elif is_known:
                for m in range(n_topics):
                    out[m] += ratio * tau[k, m]
                for m in range(n_topics):
                    n_km[k, m] += ratio * weight[m]
        if is_sparse:
            for m in range(n_topics):
                topic_words[u, m] = out[m] * weight[m]
    if not is_sparse:
        np.dot(q, tau, topic_words[first:last])
        product = np.dot(q.T, weights[first:last])
        for k in range(n_clusters):
            if is_there[k]:
                n_km[k] += product[k]
        for u in range(first, last):
            for m in range(n_topics):
                topic_words[u, m] *= weights[u, m]


@kernel
def add_shares(sums, is_there, tau, n_km):
    """Write to ``n_km`` W times the total of the partial sums ``sums`` (shares, K, M).

    ``is_there`` (shares, K) marks the rows of ``sums`` that have been initialised.
    """
    for k in range(tau.shape[0]):
        for m in range(tau.shape[1]):
            n_km[k, m] = 0.0
        for share in range(sums.shape[0]):
            if is_there[share, k]:
                for m in range(tau.shape[1]):
                    n_km[k, m] += sums[share, k, m]
        for m in range(tau.shape[1]):
            n_km[k, m] *= tau[k, m]


def lost_pairs(likelihoods: WordTopics, word_mass: np.ndarray) -> list[tuple[int, int]]:
    """Return (word, cluster) of the lost pairs with expected tokens, that is, with R_k(w) > 0."""
    if not likelihoods.has_lost:
        return []
    words, clusters = np.nonzero((likelihoods.sums < MIN_SUM) & (word_mass > 0))
    return list(zip(words.tolist(), clusters.tolist(), strict=True))


def recompute_in_logarithms(likelihoods: WordTopics, pairs: list[tuple[int, int]]) -> bool:
    """Compute lse of lost pairs in logarithms, in place. Returns whether any of these pairs is new."""
    new = set(pairs) - likelihoods.exact
    for word, k in sorted(new):
        likelihoods.log_likelihood[word, k] = logsumexp(likelihoods.of_topics.scores[word] + likelihoods.log_tau[k])
    likelihoods.exact.update(new)
    return bool(new)


def topic_statistics(
    likelihoods: WordTopics, word_mass: np.ndarray, pool: Executor | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected tokens per cluster and topic, (K, M), and per word and topic, (U, M).

    ``word_mass`` (U, K) is R_k(w), the expected number of tokens of each word in each cluster.
    """
    n_words, n_topics = likelihoods.of_topics.weights.shape
    n_clusters, n_blocks = len(likelihoods.tau), -(-n_words // WORD_BLOCK)
    n_shares = min(_SHARES, n_blocks)
    topic_words = likelihoods.buffers.empty("topic_words", n_words, n_topics)
    sums = likelihoods.buffers.empty("n_km", n_shares, n_clusters, n_topics)
    is_there = np.zeros((n_shares, n_clusters), bool)
    known = word_mass, likelihoods.sums, likelihoods.of_topics.weights, likelihoods.tau

    def work(share: int, _: int) -> None:
        for block in range(share, n_blocks, n_shares):
            first = block * WORD_BLOCK
            last = min(first + WORD_BLOCK, n_words)
            sum_block(*known, first, last, is_there[share], sums[share], topic_words)

    in_blocks(pool, work, n_shares, 1)
    n_km = np.empty_like(likelihoods.tau)
    add_shares(sums, is_there, likelihoods.tau, n_km)
    for word, k in lost_pairs(likelihoods, word_mass):
        share = likelihoods.of_topics.scores[word] + likelihoods.log_tau[k] - likelihoods.log_likelihood[word, k]
        n = word_mass[word, k] * np.exp(share)
        n_km[k] += n
        topic_words[word] += n
    return n_km, topic_words


@dataclass
class DirectStep(LocalStep):
    """Result of a local step by direct assignment.

    words : word likelihoods used by the local step
    n_km : (K, M) float64, expected number of tokens of each topic in each cluster
    """

    words: WordTopics
    n_km: np.ndarray

    def step(self, state: Globals, scale: float, rate: float, pool: Executor | None) -> None:
        blend(state.tau.n_km, scale * self.n_km, rate)
        state.tau.step_weights(STEPS_OF_FULL if rate == 1.0 else STEPS_OF_BATCH)

    def log_words(self) -> float:
        return float(np.sum(self.topic_words * self.words.of_topics.scores))

    def change_of_proportions(self, state: Globals, pool: Executor | None) -> float:
        return float(np.sum(self.n_km * (state.tau.expected_log_tau() - self.words.log_tau)))


def local_step(state: Globals, batch: Batch, pool: Executor | None, assign: Assign = assign_documents) -> DirectStep:
    """Run the local step of a mini-batch.

    The assignment of documents is repeated while lost pairs with expected tokens have no exact lse.
    """
    expected = state.expectations(batch.columns)
    words = word_topics(state, state.tau.expected_log_tau(), expected, batch.words, pool)
    documents = assign(batch, words.log_likelihood, expected, pool)
    while recompute_in_logarithms(words, lost_pairs(words, documents.word_mass)):
        documents = assign(batch, words.log_likelihood, expected, pool)
    n_km, topic_words = topic_statistics(words, documents.word_mass, pool)
    return DirectStep(expected, documents, topic_words, words, n_km)
