"""Collapsed sweep over tokens: l_ji given everything else (ICML14 section 3.2 and appendix A.2).

    P(l_ji = m)         prop. to (n_km + v eps_m) (n_mw + s) / (n_m + V s)     (counts without the token)
    P(l_ji = new topic) prop. to v eps_new / V

**Order.** Document clusters are fixed during the sweep, so any order of tokens that depends on them alone is valid.
Tokens are visited word by word and, within a word, cluster by cluster: the counts n_mw of the word at hand are
one short vector, counted when the word is entered (no V x M table exists), and all tokens of one
(cluster, word) share one vector of weights, of which a move changes two entries.

**Draw.** A token is first asked whether it stays (the order of the categories in an inverse-CDF draw is free as long
as it does not depend on the uniform number); only tokens that leave search the blocks of 16 weights.

**Rounding.** Weights are float32, recomputed from integer counts whenever a count changes; their sums are float64 and
live only while one (cluster, word) is visited, so nothing drifts.

**Speed.** Phases of the sweep are written into it (``inline``), so that no arrays are handed to a call for each word
and each cluster of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import LANES, find_lane, weigh_counts
from mc2core.inference.gibbs.cells import WordCells, order_by_cluster
from mc2core.inference.gibbs.state import Assignments, Concentrations, no_topic

_F32_ONE = np.float32(1.0)
_WORD, _TOKEN, _TOPICS = 0, 1, 2
_DONE, _FULL, _FAILED = 0, 1, 2


class Topics(NamedTuple):
    """Counts and weights of the topics, a column for each; columns from the number of topics on are spare."""

    n_km: np.ndarray  # (K, columns) int32
    n_m: np.ndarray  # (columns,) int64
    eps: np.ndarray  # (columns,) float64
    rest: np.ndarray  # (1,) float64: eps_new


class Constants(NamedTuple):
    """What a sweep does not change."""

    v: float  # table concentration
    eta: float  # topic concentration
    s: np.float32  # prior of a topic's words ...
    vs: np.float32  # ... and its sum over all words
    n_words: int


class Weights(NamedTuple):
    """What the weights of topics are made of, for the word (and its cluster) at hand; a column for each topic."""

    prior: np.ndarray  # (columns,) float32: v eps_m
    inverse: np.ndarray  # (columns,) float32: 1 / (n_m + V s)
    h: np.ndarray  # (columns,) float32: (n_mw + s) / (n_m + V s)
    p: np.ndarray  # (columns,) float32: the weights
    n_w: np.ndarray  # (columns,) int32: n_mw
    block: np.ndarray  # (columns / 16,) float64: sums of 16 weights


class WordTokens(NamedTuple):
    """The tokens of the word at hand, cluster by cluster: a run of tokens for each cluster that has some."""

    token: np.ndarray  # (largest,) int64: its number in CSR order
    topic: np.ndarray  # (largest,) int32
    run_cluster: np.ndarray  # (widest,) int64
    run_end: np.ndarray  # (widest,) int64: the run's last token is the one before
    sorting: np.ndarray  # (K + 1,) int64 zeros, for order_by_cluster
    order: np.ndarray  # (widest,) int64, likewise


@kernel(error_model="numpy")
def _weights(topics, constants, n_topics):
    """Weights whose ``prior`` and ``inverse`` are those of the topics; the rest belongs to a word."""
    capacity = topics.n_m.size
    prior, inverse = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
    for m in range(n_topics):
        prior[m] = constants.v * topics.eps[m]
        inverse[m] = _F32_ONE / (np.float32(topics.n_m[m]) + constants.vs)
    h, p = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
    return Weights(prior, inverse, h, p, np.zeros(capacity, np.int32), np.zeros(capacity // LANES, np.float64))


@numba.njit(inline="always")
def _collect(w, cells, cluster, topic, found):
    """Fill ``found`` with the tokens of word w; returns the numbers of runs and of tokens."""
    tokens, topics, run_cluster, run_end, order = (
        found.token, found.topic, found.run_cluster, found.run_end, found.order,
    )  # fmt: skip
    document, first_token, count = cells.document, cells.token, cells.counts
    begin, end = cells.start[w], cells.start[w + 1]
    order_by_cluster(document[begin:end], cluster, found.sorting, order)
    n_tokens = n_runs = 0
    previous = -1
    for c in range(end - begin):
        cell = begin + order[c]
        k = cluster[document[cell]]
        if k != previous:
            run_cluster[n_runs] = k
            n_runs += 1
            previous = k
        i = first_token[cell]
        last = n_tokens + count[cell]
        while n_tokens < last:
            tokens[n_tokens] = i
            topics[n_tokens] = topic[i]
            i += 1
            n_tokens += 1
        run_end[n_runs - 1] = n_tokens
    return n_runs, n_tokens


@numba.njit(inline="always")
def _count_word(topic_of, n_tokens, n_topics, s, inverse, n_w, h):
    """Count the word's tokens in each topic: n_w, and with it h."""
    n_w[:n_topics] = 0
    for t in range(n_tokens):
        n_w[topic_of[t]] += 1
    for m in range(n_topics):
        h[m] = (np.float32(n_w[m]) + s) * inverse[m]


@numba.njit(inline="always")
def weigh(n_km, row, prior, h, p, block, n_blocks, new):
    """Weigh all topics for the tokens of one cluster: p, block; returns the total, ``new`` for new topics included."""
    total = new
    for b in range(n_blocks):
        block[b] = weigh_counts(n_km, row, prior, h, p, b * LANES)
        total += block[b]
    return total


@numba.njit(inline="always")
def find_block(block, n_blocks, u):
    """The first block whose running sum exceeds ``u`` (``n_blocks`` if none does), and the sum before it."""
    running = before = 0.0
    b = 0
    for i in range(n_blocks):
        running += block[i]
        if running <= u:
            b = i + 1
            before = running
    return b, before


@numba.njit(inline="always")
def find_topic(p, first, u, m):
    """The topic that ``u`` falls to among the 16 from ``first`` on, of which m, the token's own, is left out."""
    chosen = first + find_lane(p, first, u, m)
    if chosen == first + LANES:  # rounding alone went past the block: its last weight
        chosen -= 1
        while chosen > first and (p[chosen] == np.float32(0.0) or chosen == m):
            chosen -= 1
    if p[chosen] == np.float32(0.0):  # only rounding was left in the block: the token returns
        chosen = m
    return chosen


@numba.njit(inline="always")
def _join(k, m, n_km, n_m, n_w, prior, inverse, h, p, block, s, vs):
    """Count a token of cluster k to topic m; returns what the topic's weight gains."""
    before = np.float64(p[m])
    n_km[k, m] += 1
    n_w[m] += 1
    n_m[m] += 1
    inverse[m] = _F32_ONE / (np.float32(n_m[m]) + vs)
    h[m] = (np.float32(n_w[m]) + s) * inverse[m]
    p[m] = (np.float32(n_km[k, m]) + prior[m]) * h[m]
    gain = np.float64(p[m]) - before
    block[m // LANES] += gain
    return gain


@kernel(error_model="numpy")
def open_topic(m, stream, topics, weights, constants):
    """Break topic m's weight off the rest, as a stick of GEM(eta)."""
    share = 1.0 - (1.0 - streams.uniform(stream)) ** (1.0 / constants.eta)
    topics.eps[m] = share * topics.rest[0]
    topics.rest[0] -= topics.eps[m]
    weights.prior[m] = constants.v * topics.eps[m]
    if m % LANES == 0:  # the first topic of a block
        weights.block[m // LANES] = 0.0
        for i in range(m, m + LANES):
            weights.p[i] = np.float32(0.0)


@kernel(error_model="numpy")
def _sweep(key, stream, position, cells, cluster, topic, topics, constants, found):
    """Sweep from ``position`` on; says why it stopped.

    _DONE: after all words; _FULL: a new topic needs more capacity; _FAILED: the weights of token position[_TOKEN] have
    no finite sum above 0.

    ``position`` (3,) int64: word, token within the word, number of topics; ``stream``: state of the word's random
    numbers. Both are left so that a call after growing the arrays goes on with the very same draw.
    """
    n_topics = position[_TOPICS]
    weights = _weights(topics, constants, n_topics)
    # arrays of named tuples are bound to names first: each access in a loop would count references, atomically
    n_km, n_m, rest = topics.n_km, topics.n_m, topics.rest
    prior, inverse, h, p, n_w, block = weights
    token_of, topic_of, run_cluster, run_end = found.token, found.topic, found.run_cluster, found.run_end
    v, s, vs, n_words, capacity = constants.v, constants.s, constants.vs, constants.n_words, n_m.size
    for w in range(position[_WORD], n_words):
        resume = position[_TOKEN]
        if resume == 0:
            streams.seek(stream, key, w)
        n_runs, n_tokens = _collect(w, cells, cluster, topic, found)
        _count_word(topic_of, n_tokens, n_topics, s, inverse, n_w, h)
        for r in range(n_runs):
            k = run_cluster[r]
            begin = resume if r == 0 else max(run_end[r - 1], resume)
            if run_end[r] <= begin:
                continue
            n_blocks = (n_topics + LANES - 1) // LANES
            new = v * rest[0] / n_words
            total = weigh(n_km, k * capacity, prior, h, p, block, n_blocks, new)
            for t in range(begin, run_end[r]):
                # stay or move?
                m = topic_of[t]
                old = np.float64(p[m])
                h_less = (np.float32(n_w[m] - 1) + s) / (np.float32(n_m[m] - 1) + vs)
                less = (np.float32(n_km[k, m] - 1) + prior[m]) * h_less
                others = total - old
                rewind = stream[0]
                u = streams.uniform(stream) * (others + np.float64(less)) - np.float64(less)
                if u < 0.0:
                    continue
                if not 0.0 < others + np.float64(less) < np.inf:
                    position[_TOKEN] = token_of[t]
                    return _FAILED
                # draw among the others
                block[m // LANES] -= old
                b, before = find_block(block, n_blocks, u)
                if b < n_blocks:
                    chosen = find_topic(p, b * LANES, u - before, m)
                elif n_topics < capacity:
                    chosen = n_topics
                    open_topic(chosen, stream, topics, weights, constants)
                    n_topics += 1
                    n_blocks = (n_topics + LANES - 1) // LANES
                    others -= new
                    new = v * rest[0] / n_words
                    others += new
                else:
                    stream[0] = rewind
                    position[_WORD], position[_TOKEN], position[_TOPICS] = w, t, n_topics
                    return _FULL
                # leave ...
                n_km[k, m] -= 1
                n_w[m] -= 1
                n_m[m] -= 1
                inverse[m] = _F32_ONE / (np.float32(n_m[m]) + vs)
                h[m] = h_less
                p[m] = less
                block[m // LANES] += np.float64(less)
                # ... and join
                gain = _join(k, chosen, n_km, n_m, n_w, prior, inverse, h, p, block, s, vs)
                total = others + np.float64(less) + gain
                topic[token_of[t]] = chosen
                topic_of[t] = chosen
        position[_TOKEN], position[_TOPICS] = 0, n_topics
    return _DONE


def grown(array: np.ndarray, capacity: int) -> np.ndarray:
    """A copy with ``capacity`` entries along the last axis, zeros after what there was."""
    grown = np.zeros((*array.shape[:-1], capacity), array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def sweep_topics(
    assignments: Assignments, cells: WordCells, concentrations: Concentrations, topic_prior: float, key: np.uint64
) -> None:
    """One collapsed sweep over all tokens, in place; topics that end empty are dropped.

    ``key`` (:func:`mc2core.compute.streams.key`) names the sweep's family of streams: one stream for each word.
    """
    n_words = len(cells.start) - 1
    n_topics = assignments.n_topics
    capacity = LANES * (n_topics // LANES + 1)
    n_km = grown(assignments.n_km, capacity)
    eps = grown(assignments.topic_weights, capacity)
    topics = Topics(n_km, n_km.sum(axis=0, dtype=np.int64), eps, np.array([assignments.rest]))
    s, vs = np.float32(topic_prior), np.float32(topic_prior * n_words)
    constants = Constants(float(concentrations.table), float(concentrations.topic), s, vs, n_words)
    found = WordTokens(
        token=np.zeros(cells.largest, np.int64),
        topic=np.zeros(cells.largest, np.int32),
        run_cluster=np.zeros(cells.widest, np.int64),
        run_end=np.zeros(cells.widest, np.int64),
        sorting=np.zeros(assignments.n_clusters + 1, np.int64),
        order=np.zeros(cells.widest, np.int64),
    )
    position = np.array([0, 0, n_topics], np.int64)
    stream = np.zeros(2, np.uint64)
    stopped = _FULL
    while stopped == _FULL:
        stopped = _sweep(key, stream, position, cells, assignments.cluster, assignments.topic, topics, constants, found)
        if stopped == _FULL:
            capacity += LANES
            n_km, n_m, eps = (grown(array, capacity) for array in topics[:3])
            topics = Topics(n_km, n_m, eps, topics.rest)
    if stopped == _FAILED:
        raise no_topic(assignments.document_of(int(position[_TOKEN])), concentrations, topic_prior)
    n_topics = int(position[_TOPICS])
    assignments.topic_weights, assignments.rest = topics.eps[:n_topics].copy(), float(topics.rest[0])
    assignments.n_km = np.ascontiguousarray(topics.n_km[:, :n_topics])
    assignments.compact()
