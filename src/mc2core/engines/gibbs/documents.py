"""Collapsed sweep over documents: z_j given everything else (ICML14 section 3.2 and appendix A.2).

    P(z_j = k)   prop. to n_k f_k(x_j) G(v + n_k.) / G(v + n_k. + N_j)
                          prod_m G(v eps_m + n_km + c_jm) / G(v eps_m + n_km)          (counts without document j)
    P(z_j = new) prop. to alpha, times the same with all counts 0.

The appendix sums v eps_m over the topics in use where the Dirichlet's total is v, and its new-cluster term misprints
the counts; the form above is the one tested.

Counts are held topic by topic, so that one topic of the document is weighed for all clusters in one vector loop. A
ratio of gamma functions is a short product for few tokens (logarithms are taken of the products of many topics), else
one Stirling series minus a kept log-gamma.
"""

from __future__ import annotations

import math

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log, log_gamma, stirling
from mc2core.engines.gibbs.state import Assignments, Concentrations, no_cluster
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts

_FEW = 8  # tokens up to which the ratio of gamma functions is a product; Stirling's series is exact from 8 on
_BITS = 960.0  # a product of factors stays within a float64 as long as their exponents sum to less


@kernel(error_model="numpy", fastmath={"contract"})
def _multiply(prior, n, count, n_slots, product):
    """product[k] *= G(prior + n[k] + count) / G(prior + n[k]) for k < n_slots, for a small count."""
    for i in range(count):
        for k in range(n_slots):
            product[k] *= prior + (n[k] + i)


@kernel(error_model="numpy", fastmath={"contract"})
def _take_logs(n_slots, product, weight):
    """weight[k] += ln product[k]; product[k] = 1."""
    for k in range(n_slots):
        weight[k] += log(product[k])
        product[k] = 1.0


@kernel(error_model="numpy", fastmath={"contract"})
def _add_stirling(prior, n, kept, count, n_slots, weight):
    """weight[k] += ln G(prior + n[k] + count) - kept[k], for prior + n[k] + count >= 8."""
    for k in range(n_slots):
        weight[k] += stirling(prior + (n[k] + count)) - kept[k]


@kernel(error_model="numpy", fastmath={"contract"})
def _add_log_gamma(prior, n, kept, count, n_slots, weight):
    """The same for any arguments."""
    for k in range(n_slots):
        weight[k] += log_gamma(prior + (n[k] + count)) - kept[k]


@kernel(error_model="numpy", fastmath={"contract"})
def _subtract_totals(v, n, kept, length, n_slots, weight):
    """weight[k] += ln G(v + n[k]) - ln G(v + n[k] + length), the first being ``kept``."""
    for k in range(n_slots):
        weight[k] += kept[k] - log_gamma(v + (n[k] + length))


@kernel(error_model="numpy", fastmath={"contract"})
def _log_gammas(x, n):
    """x = ln G(x), in place, for its first n entries."""
    for i in range(n):
        x[i] = log_gamma(x[i])


@kernel(error_model="numpy", fastmath={"contract"})
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


@kernel(error_model="numpy")
def _sweep(
    key, first, n_clusters, document_start, topic, cluster, n_mk, n_k, n_tokens, prior, alpha, v,
    kept_mk, kept_k, indptr, indices, values, natural, totals, offsets, codes, natural_0, totals_0,
):  # fmt: skip
    """Sweep documents ``first``...; returns (next document, clusters). It stops early when no slot is spare.

    (-1 - j, clusters): the weights of document j have no finite sum above 0.

    Slots ``n_clusters``... of every table are empty clusters (counts 0, natural parameters of the prior).
    """
    capacity = n_k.size
    n_topics = prior.size
    stream = np.zeros(2, np.uint64)
    counts = np.zeros(n_topics, np.int64)
    present = np.zeros(n_topics, np.int64)
    product = np.ones(capacity)
    most = math.log2(v + n_tokens.sum() + 1.0)
    bits = np.array([max(most, -math.log2(a)) for a in prior])  # bounds the exponent of a factor
    weight = np.zeros(capacity)
    work = np.zeros(n_topics)
    for j in range(first, cluster.size):
        if n_clusters == capacity:
            return j, n_clusters
        streams.seek(stream, key, j)
        length = document_start[j + 1] - document_start[j]
        n_present = 0
        for i in range(document_start[j], document_start[j + 1]):
            m = topic[i]
            if counts[m] == 0:
                present[n_present] = m
                n_present += 1
            counts[m] += 1
        # the document leaves its cluster
        k = cluster[j]
        n_k[k] -= 1
        n_tokens[k] -= length
        kept_k[k] = log_gamma(v + n_tokens[k])
        for p in range(n_present):
            m = present[p]
            n_mk[m, k] -= counts[m]
            work[p] = prior[m] + n_mk[m, k]
        _log_gammas(work, n_present)
        for p in range(n_present):
            kept_mk[present[p], k] = work[p]
        if n_k[k] == 0:
            # loops: an assignment of arrays makes numba compile the text of its error, which takes seconds
            for d in range(natural_0.size):
                natural[k, d] = natural_0[d]
            for c in range(totals_0.size):
                totals[k, c] = totals_0[c]
        else:
            add_statistics(indptr, indices, values, j, -1.0, natural[k], totals[k], offsets)
        # one empty slot stands for the new cluster: the first one
        empty = n_clusters
        for slot in range(n_clusters):
            if n_k[slot] == 0:
                empty = slot
                break
        n_slots = max(n_clusters, empty + 1)
        for k in range(n_slots):
            if n_k[k] > 0:
                weight[k] = log(np.float64(n_k[k]))
            elif k == empty:
                weight[k] = log(alpha)
            else:
                weight[k] = -np.inf
            if codes.size > 0 and weight[k] > -np.inf:
                weight[k] += log_predictive(indptr, indices, values, j, natural[k], totals[k], offsets, codes)
        if length > 0:
            _subtract_totals(v, n_tokens, kept_k, length, n_slots, weight)
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
        total = _exponentiate(weight, n_slots)
        if not 0.0 < total < np.inf:
            return -1 - j, n_clusters
        u = streams.uniform(stream) * total
        chosen = empty
        for k in range(n_slots):
            if weight[k] > 0.0:
                chosen = k
                if u < weight[k]:
                    break
                u -= weight[k]
        # ... and joins the chosen one
        n_clusters = max(n_clusters, chosen + 1)
        cluster[j] = chosen
        n_k[chosen] += 1
        n_tokens[chosen] += length
        kept_k[chosen] = log_gamma(v + n_tokens[chosen])
        for p in range(n_present):
            m = present[p]
            n_mk[m, chosen] += counts[m]
            counts[m] = 0
            work[p] = prior[m] + n_mk[m, chosen]
        _log_gammas(work, n_present)
        for p in range(n_present):
            kept_mk[present[p], chosen] = work[p]
        add_statistics(indptr, indices, values, j, 1.0, natural[chosen], totals[chosen], offsets)
    return cluster.size, n_clusters


@kernel(error_model="numpy", fastmath={"contract"})
def _log_gamma_table(prior, n_mk, kept_mk):
    for m in range(n_mk.shape[0]):
        a, row, kept = prior[m], n_mk[m], kept_mk[m]
        for k in range(row.size):
            kept[k] = log_gamma(a + row[k])


def sweep_clusters(
    assignments: Assignments, contexts: StackedContexts, concentrations: Concentrations, key: np.uint64
) -> None:
    """One collapsed sweep over all documents, in place; clusters that end empty are dropped.

    ``key`` (:func:`mc2core.compute.streams.key`) names the sweep's family of streams: one stream for each document.
    The natural
    parameters of the contexts are rebuilt from the assignments first, so that adding and removing documents does not
    drift from sweep to sweep.
    """
    prior = concentrations.table * assignments.topic_weights
    statistics = contexts.statistics
    indptr, indices = statistics.indptr.astype(np.int64), statistics.indices.astype(np.int64)
    first, n_clusters = 0, assignments.n_clusters
    while first < len(assignments.cluster):
        capacity = n_clusters + 8
        assignments.count(n_clusters)
        n_mk = np.zeros((assignments.n_topics, capacity), np.int32)
        n_mk[:, :n_clusters] = assignments.n_km.T
        n_k = np.zeros(capacity, np.int64)
        n_k[:n_clusters] = assignments.n_k
        n_tokens = n_mk.sum(axis=0, dtype=np.int64)
        kept_mk = np.empty(n_mk.shape)
        _log_gamma_table(prior, n_mk, kept_mk)
        kept_k = np.empty((1, capacity))
        _log_gamma_table(np.array([concentrations.table]), n_tokens[None, :], kept_k)
        natural = contexts.natural(assignments.cluster, capacity)
        first, n_clusters = _sweep(
            key, first, n_clusters, assignments.document_start, assignments.topic, assignments.cluster,
            n_mk, n_k, n_tokens, prior, concentrations.group, concentrations.table, kept_mk, kept_k[0],
            indptr, indices, statistics.data, natural, contexts.totals(natural), contexts.offsets, contexts.codes,
            contexts.prior, contexts.totals(contexts.prior[None, :])[0],
        )  # fmt: skip
        if first < 0:
            raise no_cluster(-1 - first, contexts, concentrations)
    assignments.n_km = np.ascontiguousarray(n_mk[:, :n_clusters].T)
    assignments.n_k = n_k[:n_clusters].copy()
    assignments.compact()
