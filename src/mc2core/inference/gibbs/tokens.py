"""Collapsed Gibbs sweeps over tokens: word by word, or document by document at the document level (docs/model.md).

**Word by word.** If documents share the topic proportions tau_k of their cluster k = z_j, tau is summed out:

    P(l_ji = m)         prop. to (n_km + v eps_m) (n_mw + s) / (n_m + V s)          (counts without the token)
    P(l_ji = new topic) prop. to v eps_new / V

Clusters of documents are fixed during the sweep, so any order of tokens that depends only on the clusters is valid.
Tokens are visited word by word and, within a word, cluster by cluster. The counts n_mw of the current word are one
short vector, which is computed when the word begins, so no V x M table is stored. All tokens with the same cluster and
word share one vector of weights, and a move changes two of its entries.

**Document by document.** At the document level, tau is given and theta is summed out:

    P(l_ji = m)         prop. to (n_jm + omega tau_km) (n_mw + s) / (n_m + V s)
    P(l_ji = new topic) prop. to omega tau_k,new / V

The factors (n_jm + omega tau_km) / (n_m + V s) of all topics are stored while a document is visited. The weights of a
word are these factors times (n_mw + s), where n_mw is the word's row of the (V, M) table of counts.

Both sweeps have the same structure. A *visit* is a word in the first sweep and a document in the second; a *row* is a
cluster in the first and a word in the second. The weight of a topic is the product of a row term and a visit factor.
The row term is a count of the row plus a prior. The visit factor is a count of the visit plus a prior, divided by
n_m + V s.

**Draw.** The first category of the inverse-CDF draw is the token's current topic. This is valid because the order of
the categories does not depend on the uniform number. Only tokens that change their topic search the blocks of 16
weights.

**New topics.** The weight eps_m of a new topic is a stick of GEM(eta). At the document level, the new topic also takes
a share of the mass of tau_k that belongs to topics not in use. The share is Beta(v eps_m + 1, v eps_new) in the token's
cluster and Beta(v eps_m, v eps_new) in every other cluster; the 1 accounts for the token itself. If a topic is empty
at the end of the sweep, its epsilon and every tau_km are added back to the remaining mass.

**Rounding.** Weights are float32 and are recomputed from integer counts whenever a count changes. Their sums are
float64 and are used only while one row is visited, so rounding errors do not accumulate.

**Speed.** The phases of a sweep are inlined, and the code that runs for each token is written directly in its loop.
Arrays passed to a function call are reference-counted, which took as long per row as all other work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.simd import LANES, find_lane, prefetch, weigh_counts
from mc2core.compute.special import MIN_POSITIVE
from mc2core.compute.streams import log_gamma_variate
from mc2core.families import Family
from mc2core.inference.gibbs.assignments import Assignments, topics_of_words
from mc2core.inference.gibbs.weights import Concentrations, no_topic

#: entries of the position of a sweep: the word or document, the token, and the number of topics
VISIT, TOKEN, TOPICS = 0, 1, 2
#: reasons why a sweep stops: all tokens are done, columns are full, or a token's weights have no finite sum above 0
DONE, FULL, FAILED = 0, 1, 2
_F32_ONE = np.float32(1.0)


# -- the topics of a sweep ------------------------------------------------------------------------------------
@record
class SweptTopics(NamedTuple):
    """Counts and weights of the topics, one column per topic; columns from the number of topics on are spare."""

    counts: np.ndarray  # (rows, columns) int32: tokens of each row (cluster or word) in each topic
    n_m: np.ndarray  # (columns,) int64: tokens of each topic
    eps: np.ndarray  # (columns,) float64: weight epsilon_m of each topic
    remaining: np.ndarray  # (1,) float64: eps_new, the weight of all topics not in use
    tau: np.ndarray  # (K, columns) float64: topic proportions of the clusters; no rows without a document level
    tau_remaining: np.ndarray  # (K,) float64: proportion of all topics not in use in each cluster


class TopicConstants(NamedTuple):
    """Constants of sweeps over tokens and of moves of topics."""

    omega: float  # document concentration
    v: float  # table concentration
    eta: float  # topic concentration
    s: float | np.float32  # Dirichlet parameter of each word in a topic (float32 in a sweep)
    vs: float | np.float32  # V s, the sum of the Dirichlet parameters over all words


@record
class SweepWeights(NamedTuple):
    """Terms of the weights of topics for the current visit and row, one column per topic."""

    row_prior: np.ndarray  # (columns,) float32: prior of the row, v eps_m or s
    prior: np.ndarray  # (columns,) float32: prior of the visit, s or omega tau_km
    n: np.ndarray  # (columns,) int32: counts of the visit, n_mw or n_jm
    inverse: np.ndarray  # (columns,) float32: 1 / (n_m + V s)
    scale: np.ndarray  # (columns,) float32: visit factor, (n + prior) * inverse
    p: np.ndarray  # (columns,) float32: weights of the topics
    block: np.ndarray  # (columns / 16,) float64: sum of the weights of each block of 16 topics


def extended(array: np.ndarray, columns: int) -> np.ndarray:
    """Return a copy of the array, padded with zeros to ``columns`` entries along the last axis."""
    longer = np.zeros((*array.shape[:-1], columns), array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


def topics_before(assignments: Assignments, tau: np.ndarray, counts: np.ndarray, n_m: np.ndarray) -> SweptTopics:
    """Return the topics at the start of a sweep, with the columns of ``counts``.

    The last column of ``tau`` (K, M + 1) is the mass of all topics not in use.
    """
    columns = counts.shape[1]
    eps, by_topic = extended(assignments.topic_weights, columns), extended(np.ascontiguousarray(tau[:, :-1]), columns)
    return SweptTopics(counts, n_m, eps, np.array([assignments.remaining]), by_topic, tau[:, -1].copy())


def add_columns(topics: SweptTopics, n: int) -> SweptTopics:
    """Return the same topics with n more spare columns."""
    counts, n_m, eps, remaining, tau, tau_remaining = topics
    counts, n_m, eps, tau = (extended(array, array.shape[-1] + n) for array in (counts, n_m, eps, tau))
    return SweptTopics(counts, n_m, eps, remaining, tau, tau_remaining)


def keep_used(
    assignments: Assignments, topics: SweptTopics, n_m: np.ndarray, n_km: np.ndarray | None = None
) -> np.ndarray:
    """Copy the topics of a sweep into ``assignments`` and drop the topics without tokens.

    ``n_m`` (M,) is the number of tokens of each topic. ``n_km``, if it is known, has at least M columns. Returns tau of
    the remaining topics, (K, M + 1), with the mass of all other topics in the last column.
    """
    n_topics, used = len(n_m), n_m > 0
    assignments.topic_weights, assignments.remaining = topics.eps[:n_topics].copy(), float(topics.remaining[0])
    left = topics.tau_remaining + topics.tau[:, :n_topics][:, ~used].sum(axis=1)
    if n_km is None:
        assignments.count()
    else:
        assignments.n_km = np.ascontiguousarray(n_km[:, :n_topics])
    assignments.compact()
    return np.column_stack([topics.tau[:, :n_topics][:, used], left])


T = TypeVar("T")


def run_sweep(
    sweep: Callable[[T, np.ndarray, np.ndarray], int],
    topics: T,
    add_room: Callable[[T], T],
    assignments: Assignments,
    concentrations: Concentrations,
    prior: float | Family,
) -> tuple[T, int]:
    """Call ``sweep(topics, position, stream)`` until it is done, adding columns each time the topics are full.

    A sweep stores ``position`` (3,) int64 and ``stream``, the state of the random numbers, so that the next call
    continues with the same draw. Returns the topics and their number. Raises ValueError if the topic weights of a token
    have no finite sum above 0; the message names the ``prior`` of words or of observations.
    """
    position, stream = np.array([0, 0, assignments.n_topics], np.int64), np.zeros(2, np.uint64)
    while (stopped := sweep(topics, position, stream)) == FULL:
        topics = add_room(topics)
    if stopped == FAILED:
        raise no_topic(assignments.document_of(int(position[TOKEN])), concentrations, prior)
    return topics, int(position[TOPICS])


def _new_weights(topics: SweptTopics, constants: TopicConstants, row_prior: Any, prior: Any) -> SweepWeights:
    columns = len(topics.n_m)
    inverse = _F32_ONE / (topics.n_m.astype(np.float32) + constants.vs)
    scale, p = np.zeros((2, columns), np.float32)
    row_prior, prior = (np.array(np.broadcast_to(one, columns), np.float32) for one in (row_prior, prior))
    n, block = np.zeros(columns, np.int32), np.zeros(columns // LANES)
    return SweepWeights(row_prior, prior, n, inverse, scale, p, block)


# -- stay or move ---------------------------------------------------------------------------------------------
@numba.njit(inline="always")
def weigh(counts, row, next_row, row_prior, scale, p, block, n_blocks, new):
    """Compute ``p`` and ``block`` for the tokens of one row; return the total weight, with ``new`` for new topics.

    Meanwhile, the counts from ``next_row`` on are prefetched, because they are not expected to be in the cache.
    """
    total = new
    for b in range(n_blocks):
        prefetch(counts, next_row + b * LANES)
        block[b] = weigh_counts(counts, row, row_prior, scale, p, b * LANES)
        total += block[b]
    return total


@numba.njit(inline="always")
def find_block(block, n_blocks, u):
    """Return the first block whose cumulative sum exceeds ``u`` (``n_blocks`` if none does), and the sum before it."""
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
    """Return the topic at the cumulative weight ``u`` in the block from ``first`` on, without the token's topic m."""
    chosen = first + find_lane(p, first, u, m)
    if chosen == first + LANES:  # only rounding can put u past the block: choose the last topic with a weight
        chosen -= 1
        while chosen > first and (p[chosen] == np.float32(0.0) or chosen == m):
            chosen -= 1
    if p[chosen] == np.float32(0.0):  # the block sum was only a rounding error: the token keeps its topic
        chosen = m
    return chosen


@numba.njit(inline="always")
def draw_other(p, block, n_blocks, m, old, u):
    """Subtract m's weight ``old`` from its block; return the topic other than m at the cumulative weight ``u``.

    Returns -1, for a new topic, if ``u`` is beyond the weights of all topics.
    """
    block[m // LANES] -= old
    b, before = find_block(block, n_blocks, u)
    return find_topic(p, b * LANES, u - before, m) if b < n_blocks else -1


@numba.njit(inline="always")
def break_off(m, stream, eps, remaining, eta):
    """Draw the weight of the new topic m as a stick of GEM(eta) and subtract it from ``remaining``."""
    left = (1.0 - streams.uniform(stream)) ** (1.0 / eta)
    eps[m] = (1.0 - left) * remaining[0]
    remaining[0] *= left


@inner_kernel
def open_topic(m, k, stream, topics, constants):
    """Draw epsilon and every tau of the new topic m, opened by a token of cluster k, from the remaining masses."""
    eps, remaining, tau, tau_remaining = topics.eps, topics.remaining, topics.tau, topics.tau_remaining
    break_off(m, stream, eps, remaining, constants.eta)
    for other in range(tau_remaining.size):
        picked = 1.0 if other == k else 0.0
        # logarithms of a Beta variate and its complement
        log_x = log_gamma_variate(stream, max(constants.v * eps[m] + picked, MIN_POSITIVE))
        log_y = log_gamma_variate(stream, max(constants.v * remaining[0], MIN_POSITIVE))
        larger = max(log_x, log_y)
        log_sum = larger + math.log(math.exp(log_x - larger) + math.exp(log_y - larger))
        tau[other, m] = tau_remaining[other] * math.exp(log_x - log_sum)
        tau_remaining[other] *= math.exp(log_y - log_sum)


@numba.njit(inline="always")
def _count_visit(first, last, topic, n_topics, n, prior, inverse, scale):
    """Count the topics of tokens first..last-1, which are the tokens of the visit, and compute the visit factors."""
    n[:n_topics] = 0
    for t in range(first, last):
        n[topic[t]] += 1
    for m in range(n_topics):
        scale[m] = (np.float32(n[m]) + prior[m]) * inverse[m]


@numba.njit(inline="always")
def join(m, row, counts, n_m, row_prior, prior, n, inverse, scale, p, block, vs):
    """Add a token of a row to topic m; return the increase of the topic's weight."""
    before = np.float64(p[m])
    counts[row, m] += 1
    n[m] += 1
    n_m[m] += 1
    inverse[m] = _F32_ONE / (np.float32(n_m[m]) + vs)
    scale[m] = (np.float32(n[m]) + prior[m]) * inverse[m]
    p[m] = (np.float32(counts[row, m]) + row_prior[m]) * scale[m]
    gain = np.float64(p[m]) - before
    block[m // LANES] += gain
    return gain


# -- word by word ---------------------------------------------------------------------------------------------
@record
class WordCells(NamedTuple):
    """The corpus grouped by word. A cell is a (document, word) pair with a positive count.

    Cells of word w are ``start[w]:start[w + 1]``, in ascending order of documents.
    """

    start: np.ndarray  # (V + 1,) int64: first cell of each word
    document: np.ndarray  # (cells,) int32: document of each cell
    token: np.ndarray  # (cells,) int32, or int64 for huge corpora: first token of each cell in CSR order
    counts: np.ndarray  # (cells,) int32: number of tokens of each cell; they are consecutive
    largest: int  # number of tokens of the most frequent word
    widest: int  # number of documents of the most widespread word


@kernel
def _transpose(indptr, indices, counts, start, document, token, count):
    n_tokens = 0
    for j in range(indptr.size - 1):
        for cell in range(indptr[j], indptr[j + 1]):
            place = start[indices[cell]]
            start[indices[cell]] += 1
            document[place] = j
            token[place] = n_tokens
            count[place] = counts[cell]
            n_tokens += counts[cell]


def word_cells(indptr: np.ndarray, indices: np.ndarray, counts: np.ndarray, n_words: int) -> WordCells:
    """Transpose a canonical CSR matrix of counts (J, V) into cells grouped by word."""
    documents_of = np.bincount(indices, minlength=n_words)
    tokens_of = np.bincount(indices, weights=counts, minlength=n_words)
    start = np.concatenate([[0], np.cumsum(documents_of, dtype=np.int64)])
    cells = len(indices)
    document, count = np.empty(cells, np.int32), np.empty(cells, np.int32)
    token = np.empty(cells, np.int32 if tokens_of.sum() <= np.iinfo(np.int32).max else np.int64)
    _transpose(indptr, indices, counts, start[:-1].copy(), document, token, count)
    largest, widest = int(tokens_of.max(initial=0)), int(documents_of.max(initial=0))
    return WordCells(start, document, token, count, largest, widest)


@inner_kernel
def order_by_cluster(document, cluster, work_count, work_order):
    """Sort a word's cells by the clusters of their documents (stable counting sort); write the order to ``work_order``.

    Clusters are at least 0. ``work_count`` (largest cluster + 2,) int64 must be zeros and is zeros again afterwards.
    """
    cells = document.size
    in_order = True
    highest = 0
    for c in range(cells):
        k = cluster[document[c]]
        if c > 0 and k < cluster[document[c - 1]]:
            in_order = False
        highest = max(highest, k)
        work_order[c] = c
    if in_order:
        return
    for c in range(cells):
        work_count[cluster[document[c]] + 1] += 1
    for k in range(1, highest + 1):
        work_count[k] += work_count[k - 1]
    for c in range(cells):
        k = cluster[document[c]]
        work_order[work_count[k]] = c
        work_count[k] += 1
    for k in range(highest + 2):
        work_count[k] = 0


@record
class WordTokens(NamedTuple):
    """The tokens of the current word, grouped by cluster. A run is all tokens of the word in one cluster."""

    token: np.ndarray  # (largest,) int64: index of each token in CSR order
    topic: np.ndarray  # (largest,) int32: topic of each token
    run_cluster: np.ndarray  # (widest,) int64: cluster of each run
    run_end: np.ndarray  # (widest,) int64: end of each run (exclusive)
    sorting: np.ndarray  # (K + 1,) int64 zeros: work_count of order_by_cluster
    order: np.ndarray  # (widest,) int64: work_order of order_by_cluster


@numba.njit(inline="always")
def collect_word(w, cells, cluster, topic, word_tokens):
    """Fill ``word_tokens`` with the tokens of word w; return the numbers of runs and of tokens."""
    tokens, topics, run_cluster, run_end, order = (
        word_tokens.token, word_tokens.topic, word_tokens.run_cluster, word_tokens.run_end, word_tokens.order,
    )  # fmt: skip
    document, first_token, count = cells.document, cells.token, cells.counts
    begin, end = cells.start[w], cells.start[w + 1]
    order_by_cluster(document[begin:end], cluster, word_tokens.sorting, order)
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


@kernel
def _sweep_words(key, stream, position, cells, cluster, topic, topics, constants, weights, word_tokens):
    """Sweep word by word from ``position`` on; return DONE, FULL or FAILED for :func:`run_sweep`."""
    token_of, topic_of, run_cluster = word_tokens.token, word_tokens.topic, word_tokens.run_cluster
    run_end = word_tokens.run_end
    n_km, n_m, remaining = topics.counts, topics.n_m, topics.remaining
    row_prior, prior, n, inverse, scale = weights.row_prior, weights.prior, weights.n, weights.inverse, weights.scale
    p, block = weights.p, weights.block
    n_words, n_topics, columns, vs = cells.start.size - 1, position[TOPICS], n_m.size, constants.vs
    for w in range(position[VISIT], n_words):
        resume = position[TOKEN]
        if resume == 0:
            streams.seek(stream, key, w)
        n_runs, n_tokens = collect_word(w, cells, cluster, topic, word_tokens)
        _count_visit(0, n_tokens, topic_of, n_topics, n, prior, inverse, scale)
        begin = 0
        for r in range(n_runs):
            first, last, k = max(begin, resume), run_end[r], run_cluster[r]
            begin = last
            if last <= first:
                continue
            n_blocks, new = (n_topics + LANES - 1) // LANES, constants.v * remaining[0] / n_words
            next_row = run_cluster[min(r + 1, n_runs - 1)] * columns
            total = weigh(n_km, k * columns, next_row, row_prior, scale, p, block, n_blocks, new)
            for t in range(first, last):
                # does the token keep its topic?
                m = topic_of[t]
                old = np.float64(p[m])
                inverse_less = _F32_ONE / (np.float32(n_m[m] - 1) + vs)
                scale_less = (np.float32(n[m] - 1) + prior[m]) * inverse_less
                less = (np.float32(n_km[k, m] - 1) + row_prior[m]) * scale_less
                others = total - old
                rewind = stream[0]
                u = streams.uniform(stream) * (others + np.float64(less)) - np.float64(less)
                if u < 0.0:
                    continue
                if not 0.0 < others + np.float64(less) < np.inf:
                    position[TOKEN] = token_of[t]
                    return FAILED
                # draw among the others
                chosen = draw_other(p, block, n_blocks, m, old, u)
                if chosen < 0:
                    if n_topics == columns:
                        stream[0] = rewind
                        position[VISIT], position[TOKEN], position[TOPICS] = w, t, n_topics
                        return FULL
                    chosen = n_topics
                    open_topic(chosen, k, stream, topics, constants)
                    row_prior[chosen] = constants.v * topics.eps[chosen]
                    n_topics += 1
                    if n_topics > n_blocks * LANES:  # the first topic of a block
                        block[n_blocks] = 0.0
                        n_blocks += 1
                    others -= new
                    new = constants.v * remaining[0] / n_words
                    others += new
                # leave and join
                n_km[k, m] -= 1
                n[m] -= 1
                n_m[m] -= 1
                inverse[m], scale[m], p[m] = inverse_less, scale_less, less
                block[m // LANES] += np.float64(less)
                gain = join(chosen, k, n_km, n_m, row_prior, prior, n, inverse, scale, p, block, vs)
                total = others + np.float64(less) + gain
                topic[token_of[t]] = chosen
                topic_of[t] = chosen
        position[TOKEN], position[TOPICS] = 0, n_topics
    return DONE


def sweep_topics(
    assignments: Assignments, cells: WordCells, concentrations: Concentrations, topic_word_prior: float, key: np.uint64
) -> None:
    """Make one sweep over all tokens word by word, in place, and drop the topics that end empty.

    ``key`` (:func:`mc2core.compute.streams.key`) has one random stream per word.
    """
    n_words, n_topics = len(cells.start) - 1, assignments.n_topics
    n_km = extended(assignments.n_km, LANES * (n_topics // LANES + 1))
    topics = topics_before(assignments, np.zeros((0, n_topics + 1)), n_km, n_km.sum(axis=0, dtype=np.int64))
    v, s, vs = float(concentrations.table), np.float32(topic_word_prior), np.float32(topic_word_prior * n_words)
    constants = TopicConstants(math.inf, v, float(concentrations.topic), s, vs)
    word_tokens = WordTokens(
        token=np.zeros(cells.largest, np.int64),
        topic=np.zeros(cells.largest, np.int32),
        run_cluster=np.zeros(cells.widest, np.int64),
        run_end=np.zeros(cells.widest, np.int64),
        sorting=np.zeros(assignments.n_clusters + 1, np.int64),
        order=np.zeros(cells.widest, np.int64),
    )
    cluster, topic = assignments.cluster, assignments.topic

    def sweep(topics: SweptTopics, position: np.ndarray, stream: np.ndarray) -> int:
        weights = _new_weights(topics, constants, v * topics.eps, s)
        return _sweep_words(key, stream, position, cells, cluster, topic, topics, constants, weights, word_tokens)

    topics, n_topics = run_sweep(
        sweep, topics, lambda one: add_columns(one, LANES), assignments, concentrations, topic_word_prior
    )
    keep_used(assignments, topics, topics.n_m[:n_topics], topics.counts)


# -- document by document -------------------------------------------------------------------------------------
@record
class DocumentRows(NamedTuple):
    """The corpus by document. A cell is a (document, word) pair; the tokens of a cell are consecutive."""

    indptr: np.ndarray  # (J + 1,) int32 or int64: first cell of each document
    word: np.ndarray  # (cells,) int32 or int64: word of each cell
    counts: np.ndarray  # (cells,) integers: number of tokens of each cell
    start: np.ndarray  # (J + 1,) int64: first token of each document
    cluster: np.ndarray  # (J,) int32: cluster of each document

    @classmethod
    def from_counts(cls, content: sp.csr_matrix, start: np.ndarray, cluster: np.ndarray) -> DocumentRows:
        """Return the rows of a corpus with the CSR counts ``content``."""
        return cls(content.indptr, content.indices, content.data, start, cluster)


@kernel
def _sweep_documents(key, stream, position, documents, topic, topics, constants, weights):
    """Sweep document by document from ``position`` on; return DONE, FULL or FAILED for :func:`run_sweep`."""
    indptr, word, counts, start = documents.indptr, documents.word, documents.counts, documents.start
    cluster = documents.cluster
    n_wm, n_m, tau, tau_remaining = topics.counts, topics.n_m, topics.tau, topics.tau_remaining
    row_prior, prior, n, inverse, scale = weights.row_prior, weights.prior, weights.n, weights.inverse, weights.scale
    p, block = weights.p, weights.block
    n_words, n_topics, columns, vs = n_wm.shape[0], position[TOPICS], n_m.size, constants.vs
    for j in range(position[VISIT], cluster.size):
        resume, k, last = position[TOKEN], cluster[j], start[j]
        if resume <= last:
            streams.seek(stream, key, j)
        for m in range(n_topics):
            prior[m] = constants.omega * tau[k, m]
        _count_visit(start[j], start[j + 1], topic, n_topics, n, prior, inverse, scale)
        n_blocks, new = (n_topics + LANES - 1) // LANES, constants.omega * tau_remaining[k] / n_words
        for cell in range(indptr[j], indptr[j + 1]):
            first, last, w = max(last, resume), last + counts[cell], word[cell]
            if last <= first:
                continue
            next_row = word[min(cell + 1, word.size - 1)] * columns
            total = weigh(n_wm, w * columns, next_row, row_prior, scale, p, block, n_blocks, new)
            for t in range(first, last):
                # does the token keep its topic?
                m = topic[t]
                old = np.float64(p[m])
                inverse_less = _F32_ONE / (np.float32(n_m[m] - 1) + vs)
                scale_less = (np.float32(n[m] - 1) + prior[m]) * inverse_less
                less = (np.float32(n_wm[w, m] - 1) + row_prior[m]) * scale_less
                others = total - old
                rewind = stream[0]
                u = streams.uniform(stream) * (others + np.float64(less)) - np.float64(less)
                if u < 0.0:
                    continue
                if not 0.0 < others + np.float64(less) < np.inf:
                    position[TOKEN] = t
                    return FAILED
                # draw among the others
                chosen = draw_other(p, block, n_blocks, m, old, u)
                if chosen < 0:
                    if n_topics == columns:
                        stream[0] = rewind
                        position[VISIT], position[TOKEN], position[TOPICS] = j, t, n_topics
                        return FULL
                    chosen = n_topics
                    open_topic(chosen, k, stream, topics, constants)
                    prior[chosen] = constants.omega * tau[k, chosen]
                    n_topics += 1
                    if n_topics > n_blocks * LANES:  # the first topic of a block
                        block[n_blocks] = 0.0
                        n_blocks += 1
                    others -= new
                    new = constants.omega * tau_remaining[k] / n_words
                    others += new
                # leave and join
                n_wm[w, m] -= 1
                n[m] -= 1
                n_m[m] -= 1
                inverse[m], scale[m], p[m] = inverse_less, scale_less, less
                block[m // LANES] += np.float64(less)
                gain = join(chosen, w, n_wm, n_m, row_prior, prior, n, inverse, scale, p, block, vs)
                total = others + np.float64(less) + gain
                topic[t] = chosen
        position[TOKEN], position[TOPICS] = 0, n_topics
    return DONE


def sweep_document_topics(
    assignments: Assignments,
    content: sp.csr_matrix,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    topic_word_prior: float,
    key: np.uint64,
    pool: Executor | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make one sweep over all tokens document by document, in place, and drop the topics that end empty.

    Parameters
    ----------
    content : (J, V) csr_matrix
        Counts of words in documents.
    tau : (K, M + 1) float64
        Topic proportions of the clusters; the last column is the mass of all topics not in use.
    omega : float, > 0
        Concentration of the topic proportions of documents around the proportions of their cluster.
    key : np.uint64
        Key with one random stream per document (:func:`mc2core.compute.streams.key`).
    pool : Executor or None
        Threads that count words before the sweep; they do not change the result.

    Returns
    -------
    (K, M + 1) float64
        tau of the topics now in use; the last column is the mass of all other topics.
    (V, M) int32
        Number of tokens of each word in each topic.
    """
    columns, topic = LANES * (assignments.n_topics // LANES + 1), assignments.topic
    documents = DocumentRows.from_counts(content, assignments.document_start, assignments.cluster)
    n_wm = topics_of_words(content, topic, columns, pool)
    topics = topics_before(assignments, tau, n_wm, n_wm.sum(axis=0, dtype=np.int64))
    s, vs = np.float32(topic_word_prior), np.float32(topic_word_prior * content.shape[1])
    constants = TopicConstants(float(omega), float(concentrations.table), float(concentrations.topic), s, vs)

    def sweep(topics: SweptTopics, position: np.ndarray, stream: np.ndarray) -> int:
        weights = _new_weights(topics, constants, s, 0.0)
        return _sweep_documents(key, stream, position, documents, topic, topics, constants, weights)

    topics, n_topics = run_sweep(
        sweep, topics, lambda one: add_columns(one, LANES), assignments, concentrations, topic_word_prior
    )
    n_m = topics.n_m[:n_topics]
    return keep_used(assignments, topics, n_m), np.compress(n_m > 0, topics.counts[:, :n_topics], axis=1)
