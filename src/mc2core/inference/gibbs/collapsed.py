"""Collapsed sweeps over documents and over tokens (ICML14 section 3.2 and appendix A.2).

**Documents**, z_j given everything else:

    P(z_j = k)   prop. to n_k f_k(x_j) G(v + n_k.) / G(v + n_k. + N_j)
                          prod_m G(v eps_m + n_km + c_jm) / G(v eps_m + n_km)          (counts without document j)
    P(z_j = new) prop. to alpha, times the same with all counts 0.

Where there are at most N clusters, n_k + alpha / N and alpha (1 - K / N) take the place of n_k and alpha
(:mod:`mc2core.inference.gibbs.partition`).

The appendix sums v eps_m over the topics in use where the Dirichlet's total is v, and its new-cluster term misprints
the counts; the form above is the one tested.

Counts are held topic by topic, so that one topic of the document is weighed for all clusters in one vector loop. A
ratio of gamma functions is a short product for few tokens (logarithms are taken of the products of many topics), else
one Stirling series minus a kept log-gamma.

**Tokens**, l_ji given everything else:

    P(l_ji = m)         prop. to (n_km + v eps_m) (n_mw + s) / (n_m + V s)     (counts without the token)
    P(l_ji = new topic) prop. to v eps_new / V

*Order.* Document clusters are fixed during the sweep, so any order of tokens that depends on them alone is valid.
Tokens are visited word by word and, within a word, cluster by cluster: the counts n_mw of the word at hand are
one short vector, counted when the word is entered (no V x M table exists), and all tokens of one
(cluster, word) share one vector of weights, of which a move changes two entries.

*Draw.* A token is first asked whether it stays (the order of the categories in an inverse-CDF draw is free as long
as it does not depend on the uniform number); only tokens that leave search the blocks of 16 weights.

*Rounding.* Weights are float32, recomputed from integer counts whenever a count changes; their sums are float64 and
live only while one (cluster, word) is visited, so nothing drifts.

*Speed.* Phases of the sweep are written into it (``inline``), so that no arrays are handed to a call for each word
and each cluster of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.simd import LANES, find_lane, weigh_counts
from mc2core.compute.special import exp, log, log_gamma, stirling
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.partition import PartitionLaw, weight_of_new
from mc2core.inference.gibbs.state import Assignments, Concentrations, WordCells, no_cluster, no_topic, order_by_cluster

# -- documents ------------------------------------------------------------------------------------------------
_FEW = 8  # tokens up to which the ratio of gamma functions is a product; Stirling's series is exact from 8 on
_SPARE = 8  # clusters that can be born before tables grow
_BITS = 960.0  # a product of factors stays within a float64 as long as their exponents sum to less


class DocumentTokens(NamedTuple):
    """The documents' tokens and clusters."""

    start: np.ndarray  # (J + 1,) int64: first token
    topic: np.ndarray  # (n_tokens,) int32
    cluster: np.ndarray  # (J,) int32


class Contexts(NamedTuple):
    """Statistics of the documents' contexts (CSR) and the prior, see :mod:`mc2core.families.kernels`."""

    indptr: np.ndarray  # (J + 1,) int64
    indices: np.ndarray  # int64
    values: np.ndarray  # float64
    offsets: np.ndarray  # (C + 1,) int64
    codes: np.ndarray  # (C,) int64
    natural: np.ndarray  # (D,) float64, of the prior
    totals: np.ndarray  # (C,) float64: its sums over each context's columns


class ClusterTables(NamedTuple):
    """Counts of the clusters and what is kept of them, a slot for each; slots past those in use are empty clusters."""

    n_k: np.ndarray  # (slots,) int64, documents
    n_tokens: np.ndarray  # (slots,) int64
    n_mk: np.ndarray  # (M, slots) int32
    kept_k: np.ndarray  # (slots,) float64: ln G(v + n_tokens)
    kept_mk: np.ndarray  # (M, slots) float64: ln G(v eps_m + n_mk)
    natural: np.ndarray  # (slots, D) float64: natural parameters of the contexts
    totals: np.ndarray  # (slots, C) float64: their sums over each context's columns


class DocumentConstants(NamedTuple):
    """What a sweep does not change."""

    law: PartitionLaw
    v: float  # table concentration
    topics: np.ndarray  # (M,) float64: v eps_m
    bits: np.ndarray  # (M,) float64: bounds the exponent of a factor of the topic


class CollapsedWork(NamedTuple):
    """The document at hand and its weights."""

    counts: np.ndarray  # (M,) int64: its tokens in each topic, zeros between documents
    present: np.ndarray  # (M,) int64: its topics, as many as there are
    weight: np.ndarray  # (slots,) float64
    product: np.ndarray  # (slots,) float64, ones between uses
    log_gammas: np.ndarray  # (M,) float64


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _multiply(prior, n, count, n_slots, product):
    """product[k] *= G(prior + n[k] + count) / G(prior + n[k]) for k < n_slots, for a small count."""
    for i in range(count):
        for k in range(n_slots):
            product[k] *= prior + (n[k] + i)


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _take_logs(n_slots, product, weight):
    """weight[k] += ln product[k]; product[k] = 1."""
    for k in range(n_slots):
        weight[k] += log(product[k])
        product[k] = 1.0


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _add_stirling(prior, n, kept, count, n_slots, weight):
    """weight[k] += ln G(prior + n[k] + count) - kept[k], for prior + n[k] + count >= 8."""
    for k in range(n_slots):
        weight[k] += stirling(prior + (n[k] + count)) - kept[k]


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _add_log_gamma(prior, n, kept, count, n_slots, weight):
    """The same for any arguments."""
    for k in range(n_slots):
        weight[k] += log_gamma(prior + (n[k] + count)) - kept[k]


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _subtract_totals(v, n, kept, length, n_slots, weight):
    """weight[k] += ln G(v + n[k]) - ln G(v + n[k] + length), the first being ``kept``."""
    for k in range(n_slots):
        weight[k] += kept[k] - log_gamma(v + (n[k] + length))


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _log_gammas(x, n):
    """x = ln G(x), in place, for its first n entries."""
    for i in range(n):
        x[i] = log_gamma(x[i])


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _exponentiate(weight, n_slots):
    """weight = exp(weight - max), in place; returns the sum."""
    top = weight[0]
    for k in range(1, n_slots):
        top = max(top, weight[k])
    for k in range(n_slots):
        weight[k] = exp(weight[k] - top)
    total = 0.0
    for k in range(n_slots):
        total += weight[k]
    return total


@numba.njit(inline="always")
def _count_topics(documents, j, counts, present):
    """Count document j's tokens in each topic; returns the number of its topics."""
    topic, n_present = documents.topic, 0
    for i in range(documents.start[j], documents.start[j + 1]):
        m = topic[i]
        if counts[m] == 0:
            present[n_present] = m
            n_present += 1
        counts[m] += 1
    return n_present


@inner_kernel(error_model="numpy")
def _add_or_remove(clusters, contexts, priors, work, j, k, sign, length, n_present):
    """Add document j, the one at hand, to cluster k (sign 1) or take it out (-1)."""
    n_mk, kept_mk, prior, natural = clusters.n_mk, clusters.kept_mk, priors.topics, clusters.natural[k]
    counts, present, log_gammas = work.counts, work.present, work.log_gammas
    clusters.n_k[k] += sign
    clusters.n_tokens[k] += sign * length
    clusters.kept_k[k] = log_gamma(priors.v + clusters.n_tokens[k])
    for p in range(n_present):
        m = present[p]
        n_mk[m, k] += sign * counts[m]
        log_gammas[p] = prior[m] + n_mk[m, k]
    _log_gammas(log_gammas, n_present)
    for p in range(n_present):
        kept_mk[present[p], k] = log_gammas[p]
    if clusters.n_k[k] > 0:
        add_statistics(
            contexts.indptr, contexts.indices, contexts.values, j, np.float64(sign), natural, clusters.totals[k],
            contexts.offsets,
        )  # fmt: skip
        return
    # loops: an assignment of arrays makes numba compile the text of its error, which takes seconds
    for d in range(natural.size):
        natural[d] = contexts.natural[d]
    for c in range(contexts.totals.size):
        clusters.totals[k, c] = contexts.totals[c]


@numba.njit(inline="always")
def _weigh_sizes_and_contexts(clusters, contexts, law, j, empty, n_slots, weight):
    """weight[k] = ln (n_k + b) + ln f_k(x_j), that of a new cluster in slot ``empty``; other empty slots get none."""
    indptr, indices, values, codes = contexts.indptr, contexts.indices, contexts.values, contexts.codes
    n_k, natural, totals, offsets = clusters.n_k, clusters.natural, clusters.totals, contexts.offsets
    n_used = 0
    for k in range(n_slots):
        if n_k[k] > 0:
            weight[k] = log(n_k[k] + law.each)
            n_used += 1
        else:
            weight[k] = -np.inf
    new = weight_of_new(law, n_used)
    if new > 0.0:
        weight[empty] = log(new)
    if codes.size > 0:
        for k in range(n_slots):
            if weight[k] > -np.inf:
                weight[k] += log_predictive(indptr, indices, values, j, natural[k], totals[k], offsets, codes)


@numba.njit(inline="always")
def _weigh_topics(clusters, priors, work, n_present, n_slots):
    """weight[k] += sum over the document's topics of ln G(v eps_m + n_mk + c_jm) - ln G(v eps_m + n_mk)."""
    n_mk, kept_mk, prior, bits = clusters.n_mk, clusters.kept_mk, priors.topics, priors.bits
    counts, present, weight, product = work.counts, work.present, work.weight, work.product
    used_bits = 0.0
    for p in range(n_present):
        m = present[p]
        exponents = counts[m] * bits[m]
        if counts[m] > _FEW:
            _add_stirling(prior[m], n_mk[m], kept_mk[m], counts[m], n_slots, weight)
        elif exponents > _BITS:
            _add_log_gamma(prior[m], n_mk[m], kept_mk[m], counts[m], n_slots, weight)
        else:
            if used_bits + exponents > _BITS:
                _take_logs(n_slots, product, weight)
                used_bits = 0.0
            _multiply(prior[m], n_mk[m], counts[m], n_slots, product)
            used_bits += exponents
    _take_logs(n_slots, product, weight)


@numba.njit(inline="always")
def _choose(weight, n_slots, u, usual):
    """The slot that ``u``, of the weights' total, falls to; ``usual`` where no weight is above 0."""
    chosen = usual
    for k in range(n_slots):
        if weight[k] > 0.0:
            chosen = k
            if u < weight[k]:
                break
            u -= weight[k]
    return chosen


@kernel(error_model="numpy")
def _sweep_documents(key, first, n_clusters, documents, contexts, clusters, priors, work):
    """Sweep documents ``first``...; returns (next document, clusters). It stops early when no slot is spare.

    (-1 - j, clusters): the weights of document j have no finite sum above 0.
    """
    n_k, cluster, weight = clusters.n_k, documents.cluster, work.weight
    stream = np.zeros(2, np.uint64)
    for j in range(first, cluster.size):
        if n_clusters == n_k.size:
            return j, n_clusters
        streams.seek(stream, key, j)
        length = documents.start[j + 1] - documents.start[j]
        n_present = _count_topics(documents, j, work.counts, work.present)
        _add_or_remove(clusters, contexts, priors, work, j, np.int64(cluster[j]), -1, length, n_present)
        # one empty slot stands for the new cluster: the first one
        empty = n_clusters
        for slot in range(n_clusters):
            if n_k[slot] == 0:
                empty = slot
                break
        n_slots = max(n_clusters, empty + 1)
        _weigh_sizes_and_contexts(clusters, contexts, priors.law, j, empty, n_slots, weight)
        if length > 0:
            _subtract_totals(priors.v, clusters.n_tokens, clusters.kept_k, length, n_slots, weight)
        _weigh_topics(clusters, priors, work, n_present, n_slots)
        total = _exponentiate(weight, n_slots)
        if not 0.0 < total < np.inf:
            return -1 - j, n_clusters
        chosen = _choose(weight, n_slots, streams.uniform(stream) * total, empty)
        n_clusters = max(n_clusters, chosen + 1)
        cluster[j] = chosen
        _add_or_remove(clusters, contexts, priors, work, j, chosen, 1, length, n_present)
        for p in range(n_present):
            work.counts[work.present[p]] = 0
    return cluster.size, n_clusters


@kernel(error_model="numpy")
def _exponents(prior, most):
    """(M,) float64: no factor of topic m is above 2**bits[m] or below 2**-bits[m], if none is above 2**most."""
    return np.array([max(most, -math.log2(a)) for a in prior])


@kernel(error_model="numpy", fastmath={"contract"})
def _log_gamma_table(prior, n_mk, kept_mk):
    for m in range(n_mk.shape[0]):
        a, row, kept = prior[m], n_mk[m], kept_mk[m]
        for k in range(row.size):
            kept[k] = log_gamma(a + row[k])


def _tables(
    assignments: Assignments, contexts: StackedContexts, v: float, prior: np.ndarray, n_clusters: int
) -> ClusterTables:
    """Tables of the clusters, counted from the assignments, with eight spare slots."""
    slots = n_clusters + _SPARE
    assignments.count(n_clusters)
    n_mk = np.zeros((assignments.n_topics, slots), np.int32)
    n_mk[:, :n_clusters] = assignments.n_km.T
    n_k = np.zeros(slots, np.int64)
    n_k[:n_clusters] = assignments.n_k
    n_tokens = n_mk.sum(axis=0, dtype=np.int64)
    kept_mk, kept_k = np.empty(n_mk.shape), np.empty((1, slots))
    _log_gamma_table(prior, n_mk, kept_mk)
    _log_gamma_table(np.array([v]), n_tokens[None, :].astype(n_mk.dtype), kept_k)
    natural = contexts.natural(assignments.cluster, slots)
    return ClusterTables(n_k, n_tokens, n_mk, kept_k[0], kept_mk, natural, contexts.totals(natural))


def contexts_of(contexts: StackedContexts) -> Contexts:
    """The documents' contexts for compiled kernels."""
    statistics = contexts.statistics
    return Contexts(
        statistics.indptr.astype(np.int64), statistics.indices.astype(np.int64), statistics.data, contexts.offsets,
        contexts.codes, contexts.prior, contexts.totals(contexts.prior[None, :])[0],
    )  # fmt: skip


def sweep_clusters(
    assignments: Assignments, contexts: StackedContexts, concentrations: Concentrations, key: np.uint64
) -> None:
    """One collapsed sweep over all documents, in place; clusters that end empty are dropped.

    ``key`` (:func:`mc2core.compute.streams.key`) names the sweep's family of streams: one stream for each document.
    The natural parameters of the contexts are rebuilt from the assignments first, so that adding and removing documents
    does not drift from sweep to sweep.
    """
    v, n_topics = float(concentrations.table), assignments.n_topics
    prior = v * assignments.topic_weights
    bits = _exponents(prior, math.log2(v + assignments.document_start[-1] + 1.0))
    priors = DocumentConstants(concentrations.partition, v, prior, bits)
    documents = DocumentTokens(assignments.document_start, assignments.topic, assignments.cluster)
    stacked = contexts_of(contexts)
    first, n_clusters = 0, assignments.n_clusters
    while first < len(assignments.cluster):
        clusters = _tables(assignments, contexts, v, prior, n_clusters)
        slots = len(clusters.n_k)
        work = CollapsedWork(
            counts=np.zeros(n_topics, np.int64),
            present=np.zeros(n_topics, np.int64),
            weight=np.zeros(slots),
            product=np.ones(slots),
            log_gammas=np.zeros(n_topics),
        )
        first, n_clusters = _sweep_documents(key, first, n_clusters, documents, stacked, clusters, priors, work)
        if first < 0:
            raise no_cluster(-1 - first, contexts, concentrations)
    assignments.n_km = np.ascontiguousarray(clusters.n_mk[:, :n_clusters].T)
    assignments.n_k = clusters.n_k[:n_clusters].copy()
    assignments.compact()


# -- tokens ---------------------------------------------------------------------------------------------------
_F32_ONE = np.float32(1.0)
_WORD, _TOKEN, _TOPICS = 0, 1, 2
_DONE, _FULL, _FAILED = 0, 1, 2


class Topics(NamedTuple):
    """Counts and weights of the topics, a column for each; columns from the number of topics on are spare."""

    n_km: np.ndarray  # (K, columns) int32
    n_m: np.ndarray  # (columns,) int64
    eps: np.ndarray  # (columns,) float64
    rest: np.ndarray  # (1,) float64: eps_new


class TokenConstants(NamedTuple):
    """What a sweep does not change."""

    v: float  # table concentration
    eta: float  # topic concentration
    s: np.float32  # prior of a topic's words ...
    vs: np.float32  # ... and its sum over all words
    n_words: int


class WordWeights(NamedTuple):
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


@inner_kernel(error_model="numpy")
def _weights(topics, constants, n_topics):
    """Weights whose ``prior`` and ``inverse`` are those of the topics; the rest belongs to a word."""
    capacity = topics.n_m.size
    prior, inverse = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
    for m in range(n_topics):
        prior[m] = constants.v * topics.eps[m]
        inverse[m] = _F32_ONE / (np.float32(topics.n_m[m]) + constants.vs)
    h, p = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
    return WordWeights(prior, inverse, h, p, np.zeros(capacity, np.int32), np.zeros(capacity // LANES, np.float64))


@numba.njit(inline="always")
def _collect(w, cells, cluster, topic, word_tokens):
    """Fill ``word_tokens`` with the tokens of word w; returns the numbers of runs and of tokens."""
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


@inner_kernel(error_model="numpy")
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
def _sweep_tokens(key, stream, position, cells, cluster, topic, topics, constants, word_tokens):
    """Sweep from ``position`` on; says why it stopped.

    _DONE: after all words; _FULL: a new topic needs more capacity; _FAILED: the weights of token position[_TOKEN] have
    no finite sum above 0.

    ``position`` (3,) int64: word, token within the word, number of topics; ``stream``: state of the word's random
    numbers. Both are left so that a call after growing the arrays goes on with the very same draw.
    """
    n_topics = position[_TOPICS]
    weights = _weights(topics, constants, n_topics)
    n_km, n_m, rest = topics.n_km, topics.n_m, topics.rest
    prior, inverse, h, p, n_w, block = weights
    token_of, topic_of, run_cluster, run_end, _, _ = word_tokens
    v, s, vs, n_words, capacity = constants.v, constants.s, constants.vs, constants.n_words, n_m.size
    for w in range(position[_WORD], n_words):
        resume = position[_TOKEN]
        if resume == 0:
            streams.seek(stream, key, w)
        n_runs, n_tokens = _collect(w, cells, cluster, topic, word_tokens)
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
    assignments: Assignments, cells: WordCells, concentrations: Concentrations, topic_word_prior: float, key: np.uint64
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
    s, vs = np.float32(topic_word_prior), np.float32(topic_word_prior * n_words)
    constants = TokenConstants(float(concentrations.table), float(concentrations.topic), s, vs, n_words)
    word_tokens = WordTokens(
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
        stopped = _sweep_tokens(
            key, stream, position, cells, assignments.cluster, assignments.topic, topics, constants, word_tokens
        )
        if stopped == _FULL:
            capacity += LANES
            n_km, n_m, eps = (grown(array, capacity) for array in topics[:3])
            topics = Topics(n_km, n_m, eps, topics.rest)
    if stopped == _FAILED:
        raise no_topic(assignments.document_of(int(position[_TOKEN])), concentrations, topic_word_prior)
    n_topics = int(position[_TOPICS])
    assignments.topic_weights, assignments.rest = topics.eps[:n_topics].copy(), float(topics.rest[0])
    assignments.n_km = np.ascontiguousarray(topics.n_km[:, :n_topics])
    assignments.compact()
