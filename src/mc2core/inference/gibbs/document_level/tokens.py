"""Sweep over tokens at the document level (docs/model.md, section 2), theta summed out.

    P(l_ji = m)         prop. to (n_jm + omega tau_km) (n_mw + s) / (n_m + V s)     (counts without the token)
    P(l_ji = new topic) prop. to omega tau_k,new / V,    k = z_j

tau is given, so documents of a cluster share nothing that moves. Tokens are visited document by document: the scale
(n_jm + omega tau_km) / (n_m + V s) of all topics is kept while a document is visited, and the weights of a word are its
row of the table of counts (V, M) times that scale, as :mod:`mc2core.inference.gibbs.collapsed` draws from them.

**New topics.** A new topic is an atom of tau_k's rest, picked with the weight it has there: in the token's cluster it
breaks Beta(v eps_m + 1, v eps_new) off the rest, the 1 being this pick, and Beta(v eps_m, v eps_new) in every other,
with eps_m a stick of GEM(eta). A topic that ends the sweep empty gives epsilon and every tau_km back to the rests.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.simd import LANES, prefetch
from mc2core.compute.variates import log_gamma_variate
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.collapsed import find_block, find_topic, grown, weigh
from mc2core.inference.gibbs.document_level.sweep import LEAST
from mc2core.inference.gibbs.state import Assignments, Concentrations, no_topic, topics_of_words

_DOCUMENT, _TOKEN, _TOPICS = 0, 1, 2
_DONE, _FULL, _FAILED = 0, 1, 2
_F32_ONE = np.float32(1.0)
_LINE = 16  # float32 in a cache line


class DocumentCells(NamedTuple):
    """The corpus document by document: cells are its (document, word) pairs, tokens of a cell follow each other."""

    indptr: np.ndarray  # (J + 1,) first cell of each document
    word: np.ndarray  # (cells,)
    counts: np.ndarray  # (cells,)
    start: np.ndarray  # (J + 1,) int64: first token of each document
    cluster: np.ndarray  # (J,) int32


class DocumentLevelTopics(NamedTuple):
    """Counts and weights of the topics, a column for each; columns from the number of topics on are spare."""

    n_wm: np.ndarray  # (V, columns) int32
    n_m: np.ndarray  # (columns,) int64
    eps: np.ndarray  # (columns,) float64
    rest: np.ndarray  # (1,) float64: eps_new
    tau: np.ndarray  # (K, columns) float64
    tau_rest: np.ndarray  # (K,) float64


class TopicConstants(NamedTuple):
    """What a sweep over tokens, or moves of topics, do not change."""

    omega: float  # document concentration
    v: float  # table concentration
    eta: float  # topic concentration
    s: float | np.float32  # prior of a topic's words (float32 in a sweep) ...
    vs: float | np.float32  # ... and its sum over all words


class DocumentWeights(NamedTuple):
    """What the weights of topics are made of, for the document and word at hand; a column for each topic."""

    s: np.ndarray  # (columns,) float32: prior of a topic's words
    inverse: np.ndarray  # (columns,) float32: 1 / (n_m + V s)
    prior: np.ndarray  # (columns,) float32: omega tau_km
    n_j: np.ndarray  # (columns,) int32: n_jm
    scale: np.ndarray  # (columns,) float32: (n_jm + omega tau_km) / (n_m + V s)
    p: np.ndarray  # (columns,) float32: the weights
    block: np.ndarray  # (columns / 16,) float64: sums of 16 weights


def _weights(topics: DocumentLevelTopics, constants: TopicConstants) -> DocumentWeights:
    columns = len(topics.n_m)
    inverse = (1.0 / (topics.n_m + np.float64(constants.vs))).astype(np.float32)
    prior, scale, p = np.zeros((3, columns), np.float32)
    s = np.full(columns, constants.s, np.float32)
    return DocumentWeights(s, inverse, prior, np.zeros(columns, np.int32), scale, p, np.zeros(columns // LANES))


@inner_kernel(error_model="numpy")
def _break_off(stream, shape, rest_shape):
    """ln of a Beta(shape, rest_shape) variate and of 1 less it."""
    log_x = log_gamma_variate(stream, max(shape, LEAST))
    log_y = log_gamma_variate(stream, max(rest_shape, LEAST))
    larger = max(log_x, log_y)
    log_sum = larger + math.log(math.exp(log_x - larger) + math.exp(log_y - larger))
    return log_x - log_sum, log_y - log_sum


@inner_kernel(error_model="numpy")
def open_topic(m, k, stream, topics, constants):
    """Break topic m, picked by a token of cluster k, off the rests of epsilon and of every tau."""
    eps, rest, tau, tau_rest = topics.eps, topics.rest, topics.tau, topics.tau_rest
    left = (1.0 - streams.uniform(stream)) ** (1.0 / constants.eta)
    eps[m] = (1.0 - left) * rest[0]
    rest[0] *= left
    for other in range(tau_rest.size):
        picked = 1.0 if other == k else 0.0
        log_share, log_left = _break_off(stream, constants.v * eps[m] + picked, constants.v * rest[0])
        tau[other, m] = tau_rest[other] * math.exp(log_share)
        tau_rest[other] *= math.exp(log_left)


@numba.njit(inline="always")
def _enter(j, k, n_topics, documents, topic, topics, constants, weights):
    """Count document j's topics and scale all topics for it."""
    n_j, prior, scale, inverse, tau = weights.n_j, weights.prior, weights.scale, weights.inverse, topics.tau
    n_j[:] = 0
    for i in range(documents.start[j], documents.start[j + 1]):
        n_j[topic[i]] += 1
    for m in range(n_topics):
        prior[m] = constants.omega * tau[k, m]
        scale[m] = (np.float32(n_j[m]) + prior[m]) * inverse[m]


@numba.njit(inline="always")
def _fetch_row(n_wm, w, n_columns):
    """Ask for a word's counts, which are in no near cache."""
    for m in range(0, n_columns, _LINE):
        prefetch(n_wm, w * n_wm.shape[1] + m)


@numba.njit(inline="always")
def _join(m, w, n_wm, n_m, s, inverse, prior, n_j, scale, p, block, vs):
    """Count a token of word w to topic m; returns what the topic's weight gains."""
    before = np.float64(p[m])
    n_wm[w, m] += 1
    n_j[m] += 1
    n_m[m] += 1
    inverse[m] = _F32_ONE / (np.float32(n_m[m]) + vs)
    scale[m] = (np.float32(n_j[m]) + prior[m]) * inverse[m]
    p[m] = (np.float32(n_wm[w, m]) + s) * scale[m]
    gain = np.float64(p[m]) - before
    block[m // LANES] += gain
    return gain


@kernel(error_model="numpy")
def _sweep(key, stream, position, documents, topic, topics, constants, weights):
    """Sweep from ``position`` on; says why it stopped.

    _DONE: after all documents; _FULL: a new topic needs more capacity; _FAILED: the weights of token position[_TOKEN]
    have no finite sum above 0.

    ``position`` (3,) int64: document, token, number of topics; ``stream``: state of the document's random numbers. Both
    are left so that a call after growing the arrays goes on with the very same draw.
    """
    n_topics = position[_TOPICS]
    indptr, word, counts, start, cluster = documents
    n_wm, n_m, _, _, _, tau_rest = topics
    s_of, inverse, prior, n_j, scale, p, block = weights
    s, vs, n_words, columns = constants.s, constants.vs, n_wm.shape[0], n_m.size
    for j in range(position[_DOCUMENT], cluster.size):
        resume, k, last = position[_TOKEN], cluster[j], start[j]
        if resume <= last:
            streams.seek(stream, key, j)
        _enter(j, k, n_topics, documents, topic, topics, constants, weights)
        n_blocks = (n_topics + LANES - 1) // LANES
        new = constants.omega * tau_rest[k] / n_words
        for cell in range(indptr[j], indptr[j + 1]):
            begin, last, w = max(last, resume), last + counts[cell], word[cell]
            if last <= begin:
                continue
            if cell + 1 < word.size:
                _fetch_row(n_wm, word[cell + 1], n_blocks * LANES)
            total = weigh(n_wm, w * columns, s_of, scale, p, block, n_blocks, new)
            for i in range(begin, last):
                # stay or move?
                m = topic[i]
                old = np.float64(p[m])
                inverse_less = _F32_ONE / (np.float32(n_m[m] - 1) + vs)
                scale_less = (np.float32(n_j[m] - 1) + prior[m]) * inverse_less
                less = (np.float32(n_wm[w, m] - 1) + s) * scale_less
                others = total - old
                rewind = stream[0]
                u = streams.uniform(stream) * (others + np.float64(less)) - np.float64(less)
                if u < 0.0:
                    continue
                if not 0.0 < others + np.float64(less) < np.inf:
                    position[_TOKEN] = i
                    return _FAILED
                # draw among the others
                block[m // LANES] -= old
                b, before = find_block(block, n_blocks, u)
                if b < n_blocks:
                    chosen = find_topic(p, b * LANES, u - before, m)
                elif n_topics < columns:
                    chosen = n_topics
                    open_topic(chosen, k, stream, topics, constants)
                    prior[chosen] = constants.omega * topics.tau[k, chosen]
                    n_topics += 1
                    if n_topics > n_blocks * LANES:  # the first topic of a block
                        block[n_blocks] = 0.0
                        n_blocks += 1
                    others -= new
                    new = constants.omega * tau_rest[k] / n_words
                    others += new
                else:
                    stream[0] = rewind
                    position[_DOCUMENT], position[_TOKEN], position[_TOPICS] = j, i, n_topics
                    return _FULL
                # leave ...
                n_wm[w, m] -= 1
                n_j[m] -= 1
                n_m[m] -= 1
                inverse[m], scale[m], p[m] = inverse_less, scale_less, less
                block[m // LANES] += np.float64(less)
                # ... and join
                gain = _join(chosen, w, n_wm, n_m, s, inverse, prior, n_j, scale, p, block, vs)
                total = others + np.float64(less) + gain
                topic[i] = chosen
        position[_TOKEN], position[_TOPICS] = 0, n_topics
    return _DONE


def topics_before(assignments: Assignments, tau: np.ndarray, n_wm: np.ndarray, n_m: np.ndarray) -> DocumentLevelTopics:
    """Topics of a sweep, as many columns as ``n_wm`` has; ``tau`` (K, M + 1), the rest in the last column."""
    columns = n_wm.shape[1]
    eps, by_topic = grown(assignments.topic_weights, columns), grown(np.ascontiguousarray(tau[:, :-1]), columns)
    return DocumentLevelTopics(n_wm, n_m, eps, np.array([assignments.rest]), by_topic, tau[:, -1].copy())


def with_room(topics: DocumentLevelTopics, columns: int) -> DocumentLevelTopics:
    """The same topics, with more columns."""
    n_wm, n_m, eps, rest, tau, tau_rest = topics
    n_wm, n_m, eps, tau = (grown(array, columns) for array in (n_wm, n_m, eps, tau))
    return DocumentLevelTopics(n_wm, n_m, eps, rest, tau, tau_rest)


def keep_used(assignments: Assignments, topics: DocumentLevelTopics, n_m: np.ndarray) -> np.ndarray:
    """Take over a sweep's topics, (M,) ``n_m`` tokens each, and drop those without any.

    Returns (K, M + 1) tau over the others, and the rest.
    """
    n_topics, used = len(n_m), n_m > 0
    assignments.topic_weights, assignments.rest = topics.eps[:n_topics].copy(), float(topics.rest[0])
    left = topics.tau_rest + topics.tau[:, :n_topics][:, ~used].sum(axis=1)
    assignments.count()
    assignments.compact()
    return np.column_stack([topics.tau[:, :n_topics][:, used], left])


def sweep_document_topics(
    assignments: Assignments,
    corpus: Corpus,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    topic_word_prior: float,
    key: np.uint64,
    pool: Executor | None = None,
) -> np.ndarray:
    """One sweep over all tokens, in place; topics that end empty are dropped.

    Parameters
    ----------
    tau : (K, M + 1) float64
        Topic proportions of the clusters, the rest in the last column.
    omega : float, > 0
        Concentration of a document's proportions around its cluster's.
    key : one stream for each document (:func:`mc2core.compute.streams.key`)
    pool : threads that count words before the sweep, and change no bit

    Returns
    -------
    (K, M + 1) float64
        tau over the topics now in use, and the rest.
    """
    content, n_topics = corpus.content, assignments.n_topics
    columns = LANES * (n_topics // LANES + 1)
    documents = DocumentCells(
        content.indptr, content.indices, content.data, assignments.document_start, assignments.cluster
    )
    n_wm = topics_of_words(content, assignments.topic, columns, pool)
    topics = topics_before(assignments, tau, n_wm, n_wm.sum(axis=0, dtype=np.int64))
    s, vs = np.float32(topic_word_prior), np.float32(topic_word_prior * corpus.n_words)
    constants = TopicConstants(float(omega), float(concentrations.table), float(concentrations.topic), s, vs)
    position = np.array([0, 0, n_topics], np.int64)
    stream = np.zeros(2, np.uint64)
    stopped = _FULL
    while stopped == _FULL:
        weights = _weights(topics, constants)
        stopped = _sweep(key, stream, position, documents, assignments.topic, topics, constants, weights)
        if stopped == _FULL:
            columns += LANES
            topics = with_room(topics, columns)
    if stopped == _FAILED:
        raise no_topic(assignments.document_of(int(position[_TOKEN])), concentrations, topic_word_prior)
    return keep_used(assignments, topics, topics.n_m[: position[_TOPICS]])
