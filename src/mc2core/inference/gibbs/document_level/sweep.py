"""Moves at the document level given the topics of tokens: clusters given tau, omega, tables of documents, tau.

theta_j ~ DP(omega, tau_k), k = z_j, is summed out of all of them; all look at n_jm, the tokens of document j in topic
m, kept as sparse rows.

**Clusters given tau**, beside the move given the tables of documents:

    P(z_j = k) prop. to (n_k + b) f_k(x_j) prod_m G(omega tau_km + n_jm) / G(omega tau_km)    (n_k, f_k without j)

(b = 0 unless the number of clusters is bounded, :mod:`mc2core.inference.gibbs.partition`)
over the clusters in use, for documents that are not alone in theirs. Neither clusters are born nor die, so that the
clusters to choose from are the same before and after. Tables drawn under one cluster hold a document there; this move
does not know them. Tables must be drawn again after it.

**Tables.** Document j's tokens sit at tables whose topics are drawn from tau_k. Given t_jm, the number of its tables
with topic m, the tables of a cluster's documents are to tau_k what tokens are in MC2, so z, v, epsilon, eta and alpha
are moved as there, with tables in place of tokens and tau summed out.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor

import numpy as np

from mc2core.base.checks import MAX_PRIOR, MIN_PRIOR
from mc2core.compute import streams, variates
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import exp, log, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.collapsed import contexts_of
from mc2core.inference.gibbs.partition import PartitionLaw
from mc2core.inference.gibbs.state import Assignments, Concentrations, TopicCounts
from mc2core.inference.gibbs.weights import GammaPrior

#: arguments of log-gammas and of logarithms below it count as it
LEAST = 1e-300


# -- tokens of every document in each topic, n_jm -------------------------------------------------------------
_COUNTED_BLOCK = 256  # documents that a thread takes at a time


@kernel
def _count_topics(first, last, start, topic, n_topics, size, row_topic, row_count):
    """Rows of documents first..last-1, from each one's first token on, and how long they are."""
    n_j = np.zeros(n_topics, np.int32)
    for j in range(first, last):
        for i in range(start[j], start[j + 1]):
            n_j[topic[i]] += 1
        place = start[j]
        if start[j + 1] > start[j]:
            for m in range(n_topics):
                if n_j[m] > 0:
                    row_topic[place], row_count[place] = m, n_j[m]
                    n_j[m] = 0
                    place += 1
        size[j] = place - start[j]


@kernel
def _close_up(start, size, spread, closed):
    """Copy ``size[j]`` entries of every document j, which begin at its first token, one after the other."""
    place = 0
    for j in range(size.size):
        for i in range(start[j], start[j] + size[j]):
            closed[place] = spread[i]
            place += 1


def count_topics(assignments: Assignments, pool: Executor | None = None) -> TopicCounts:
    """n_jm of the assignments; the threads ``pool`` change no bit."""
    start, n_documents, n_tokens = assignments.document_start, len(assignments.cluster), len(assignments.topic)
    size, spread = np.zeros(n_documents, np.int64), np.empty((2, n_tokens), np.int32)

    def count(first: int, last: int) -> None:
        _count_topics(first, last, start, assignments.topic, assignments.n_topics, size, *spread)

    in_blocks(pool, count, n_documents, _COUNTED_BLOCK)
    rows = np.concatenate([[0], np.cumsum(size)])
    closed = np.empty((2, rows[-1]), np.int32)
    for which in range(2):
        _close_up(start, size, spread[which], closed[which])
    return TopicCounts(rows, *closed)


# -- omega ----------------------------------------------------------------------------------------------------
#: tokens up to which a ratio of gamma functions is a product: a float for any omega
FEW_TOKENS = 16
_SLICE_WIDTH = 0.1  # of the slice sampler's first interval, in ln omega
_MAX_STEPS = 200
_SUMMED_BLOCK = 256  # documents that a thread takes at a time


@inner_kernel(error_model="numpy")
def log_rising_factorial(a, n):
    """ln of a (a + 1) ... (a + n - 1)."""
    if n > FEW_TOKENS:
        return log_gamma(a + n) - log_gamma(a)
    product = 1.0
    for i in range(n):
        product *= a + i
    return log(product)


@kernel(error_model="numpy")
def _log_documents(first, last, lengths, cluster, start, topic, count, tau, omega):
    result = 0.0
    for j in range(first, last):
        result -= log_rising_factorial(omega, lengths[j])
        for c in range(start[j], start[j + 1]):
            result += log_rising_factorial(max(omega * tau[cluster[j], topic[c]], LEAST), count[c])
    return result


def log_documents(
    lengths: np.ndarray,
    cluster: np.ndarray,
    counts: TopicCounts,
    tau: np.ndarray,
    omega: float,
    pool: Executor | None = None,
) -> float:
    """ln p(l | z, tau, omega), theta summed out: a Dirichlet-multinomial for each document, in the sequence form.

    Parameters
    ----------
    lengths : (J,) int64, tokens
    cluster : (J,) int32
    counts : n_jm
    tau : (K, M + 1) float64
    pool : threads, which change no bit
    """

    def of_documents(first: int, last: int) -> float:
        return _log_documents(first, last, lengths, cluster, *counts, tau, omega)

    return float(sum(in_blocks(pool, of_documents, len(cluster), _SUMMED_BLOCK)))


def draw_omega(
    lengths: np.ndarray,
    cluster: np.ndarray,
    counts: TopicCounts,
    tau: np.ndarray,
    omega: float,
    prior: GammaPrior,
    rng: np.random.Generator,
    pool: Executor | None = None,
) -> float:
    """One step of a slice sampler (Neal 2003) in ln omega; tables would hold omega where it is.

    Returns the nearest value that settings may hold.
    """

    def log_density(x: float) -> float:
        value = math.exp(x)
        return prior.shape * x - prior.rate * value + log_documents(lengths, cluster, counts, tau, value, pool)

    x = math.log(omega)
    level = log_density(x) + math.log1p(-rng.random())
    low = x - _SLICE_WIDTH * rng.random()
    high = low + _SLICE_WIDTH
    # steps to the left and to the right share a budget, so that no density makes them endless
    left = int(rng.random() * _MAX_STEPS)
    right = _MAX_STEPS - 1 - left
    while left > 0 and log_density(low) > level:
        low, left = low - _SLICE_WIDTH, left - 1
    while right > 0 and log_density(high) > level:
        high, right = high + _SLICE_WIDTH, right - 1
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new) > level or new == x:
            return min(max(math.exp(new), MIN_PRIOR), MAX_PRIOR)
        low, high = (new, high) if new < x else (low, new)


# -- clusters given tau ---------------------------------------------------------------------------------------
_SCORING_BLOCK = 64  # documents that a thread takes at a time


@kernel(error_model="numpy", fastmath={"contract"})
def _log_gammas(prior, out):
    for m in range(prior.shape[0]):
        for k in range(prior.shape[1]):
            out[m, k] = log_gamma(prior[m, k])


@inner_kernel(error_model="numpy", fastmath={"contract"})
def _add_topic(prior, n, kept, scores):
    """scores[k] += ln G(prior[k] + n) - kept[k]."""
    if n == 1:
        for k in range(scores.size):
            scores[k] += log(prior[k])
        return
    for k in range(scores.size):
        scores[k] += log_gamma(prior[k] + n) - kept[k]


@kernel
def _score(first, last, start, topic, count, prior, kept, scores):
    for j in range(first, last):
        for c in range(start[j], start[j + 1]):
            _add_topic(prior[topic[c]], count[c], kept[topic[c]], scores[j])


@kernel(error_model="numpy")
def _choose(key, scores, contexts, natural, totals, each, n_k, cluster):
    indptr, indices, values, offsets, codes, _, _ = contexts
    stream, weight = np.zeros(2, np.uint64), np.empty(n_k.size)
    for j in range(cluster.size):
        old = cluster[j]
        if n_k[old] == 1:
            continue
        streams.seek(stream, key, j)
        n_k[old] -= 1
        if codes.size > 0:
            add_statistics(indptr, indices, values, j, -1.0, natural[old], totals[old], offsets)
        top = -np.inf
        for k in range(n_k.size):
            weight[k] = scores[j, k] + log(n_k[k] + each)
            if codes.size > 0:
                weight[k] += log_predictive(indptr, indices, values, j, natural[k], totals[k], offsets, codes)
            top = max(top, weight[k])
        total = 0.0
        for k in range(n_k.size):
            weight[k] = exp(weight[k] - top)
            total += weight[k]
        u, new = streams.uniform(stream) * total, old
        for k in range(n_k.size):
            if weight[k] > 0.0:
                new = k
                if u < weight[k]:
                    break
                u -= weight[k]
        cluster[j] = new
        n_k[new] += 1
        if codes.size > 0:
            add_statistics(indptr, indices, values, j, 1.0, natural[new], totals[new], offsets)


def sweep_members(
    assignments: Assignments,
    counts: TopicCounts,
    prior: np.ndarray,
    contexts: StackedContexts,
    law: PartitionLaw,
    key: np.uint64,
    pool: Executor | None,
) -> None:
    """One sweep over all documents, in place.

    Parameters
    ----------
    counts : n_jm
    prior : (K, M) float64
        omega tau_km.
    key : one stream for each document
    pool : threads, which change no bit
    """
    n_documents, n_clusters = len(assignments.cluster), assignments.n_clusters
    if n_clusters == 1:
        return
    by_topic = np.maximum(np.ascontiguousarray(prior.T), LEAST)
    kept, scores = np.empty(by_topic.shape), np.zeros((n_documents, n_clusters))
    _log_gammas(by_topic, kept)

    def score(first: int, last: int) -> None:
        _score(first, last, *counts, by_topic, kept, scores)

    in_blocks(pool, score, n_documents, _SCORING_BLOCK)
    natural = contexts.natural(assignments.cluster, n_clusters)
    stacked, totals = contexts_of(contexts), contexts.totals(natural)
    _choose(key, scores, stacked, natural, totals, law.each, assignments.n_k, assignments.cluster)
    assignments.count(n_clusters, counts)


# -- tables of documents, and tau given these -----------------------------------------------------------------
_SEATING_BLOCK = 256  # documents that a thread takes at a time


@kernel(error_model="numpy")
def _seat(key, first, last, cluster, topic, start, prior, n_j, tables, n_tables):
    """Topics of the tables of documents first..last, from each one's first token on, and how many it has."""
    stream = np.zeros(2, np.uint64)
    n_topics = prior.shape[1]
    for j in range(first, last):
        streams.seek(stream, key, j)
        n_j[:] = 0
        for i in range(start[j], start[j + 1]):
            n_j[topic[i]] += 1
        place = start[j]
        for m in range(n_topics):
            if n_j[m] == 0:
                continue
            a = prior[cluster[j], m]
            tables[place] = m
            place += 1
            # token i opens a table with probability a / (a + i)
            for i in range(1, n_j[m]):
                if streams.uniform(stream) * (a + i) < a:
                    tables[place] = m
                    place += 1
        n_tables[j] = place - start[j]


def draw_document_tables(
    assignments: Assignments, prior: np.ndarray, key: np.uint64, pool: Executor | None
) -> Assignments:
    """Draw t_jm given l: documents whose "tokens" are their tables, a topic t_jm times over.

    t_jm = sum over i < n_jm of Bernoulli(omega tau_km / (omega tau_km + i)), the first being 1 (Antoniak's law).

    Parameters
    ----------
    prior : (K, M) float64
        omega tau_km.
    key : one stream for each document
    pool : threads, which change no bit

    Returns
    -------
    Assignments
        Clusters (copied) and topic weights of ``assignments``, tables for tokens, counted.
    """
    start, topic, n_documents = assignments.document_start, assignments.topic, len(assignments.cluster)
    tables, n_tables = np.empty(len(topic), np.int32), np.zeros(n_documents, np.int64)

    def seat(first: int, last: int) -> None:
        n_j = np.zeros(assignments.n_topics, np.int64)
        _seat(key, first, last, assignments.cluster, topic, start, prior, n_j, tables, n_tables)

    in_blocks(pool, seat, n_documents, _SEATING_BLOCK)
    table_start = np.concatenate([[0], np.cumsum(n_tables)])
    closed = np.empty(table_start[-1], np.int32)
    _close_up(start, n_tables, tables, closed)
    seated = Assignments(
        assignments.cluster.copy(), closed, table_start, assignments.topic_weights, assignments.rest
    )  # fmt: skip
    seated.count(assignments.n_clusters)
    return seated


def draw_proportions(
    tables: np.ndarray, assignments: Assignments, concentrations: Concentrations, rng: np.random.Generator
) -> np.ndarray:
    """(K, M + 1) float64: tau_k ~ Dir(v epsilon + t_k), the rest in the last column, given (K, M) ``tables``."""
    prior = concentrations.table * np.append(assignments.topic_weights, assignments.rest)
    shape = np.tile(prior, (len(tables), 1))
    shape[:, :-1] += tables
    return variates.dirichlet(shape, rng)
