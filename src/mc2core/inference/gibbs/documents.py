"""Sweeps that move documents between clusters (ICML14 section 3.2 and appendix A.2).

**Given tokens or tables**, with tau summed out, the full conditional of z_j is

    P(z_j = k)   prop. to n_k f_k(x_j) G(v + n_k.) / G(v + n_k. + N_j)
                          prod_m G(v eps_m + n_km + c_jm) / G(v eps_m + n_km)          (counts without document j)
    P(z_j = new) prop. to alpha, times the same factors with all counts 0.

If there are at most N clusters, n_k + alpha / N and alpha (1 - K / N) replace n_k and alpha
(:mod:`mc2core.inference.gibbs.weights`).

The appendix has two misprints: it sums v eps_m over the topics in use although the Dirichlet's total is v, and the
counts in its new-cluster term are wrong. The tests confirm the formula above.

Counts are stored topic by topic, so that one vector loop computes a topic's factors for all clusters. If a document has
few tokens in a topic, the ratio of gamma functions is a short product, and a single logarithm is taken of the product
over many topics. Otherwise, the log ratio is one Stirling series minus a stored log-gamma.

**Given tau**, at the document level and with theta summed out, a second move draws z_j from

    P(z_j = k) prop. to (n_k + b) f_k(x_j) prod_m G(omega tau_km + n_jm) / G(omega tau_km)    (n_k, f_k without j)

over the clusters in use (b = 0 unless the number of clusters is bounded). Documents that are alone in their cluster do
not move. No cluster is added or removed, so the choice of clusters is the same before and after the move. Tables drawn
under one cluster make a document unlikely to leave it. This move does not condition on tables, so they must be drawn
again after it.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.special import MIN_POSITIVE, exp, log, log_gamma, stirling
from mc2core.compute.streams import index_of
from mc2core.compute.threads import in_blocks
from mc2core.families.columns import add_predictives, add_to_column, empty_column
from mc2core.families.stacked import StackedContexts
from mc2core.families.vectors import VectorClusters, Vectors, add_log_predictives, describe_cluster
from mc2core.inference.gibbs.assignments import Assignments, TopicCounts
from mc2core.inference.gibbs.weights import Concentrations, PartitionLaw, no_cluster, weight_of_new

# -- given tokens or tables ----------------------------------------------------------------------------------
_FEW = 8  # largest number of tokens for which the gamma ratio is a product; Stirling's series is accurate from 8 on
_SPARE = 8  # spare slots for new clusters before the arrays are rebuilt
_BITS = 960.0  # largest sum of binary exponents of the factors of a product, so that it fits into a float64


@record
class DocumentTokens(NamedTuple):
    """Topics of the tokens and clusters of the documents."""

    start: np.ndarray  # (J + 1,) int64: first token of each document
    topic: np.ndarray  # (n_tokens,) int32: topic of each token
    cluster: np.ndarray  # (J,) int32: cluster of each document


@record
class Contexts(NamedTuple):
    """Sufficient statistics of the documents' contexts (CSR) and the prior; see :mod:`mc2core.families.kernels`."""

    indptr: np.ndarray  # (J + 1,) int64: CSR row pointers
    indices: np.ndarray  # (nnz,) int64: CSR column indices
    values: np.ndarray  # (nnz,) float64: CSR values
    offsets: np.ndarray  # (C + 1,) int64: first column of each context
    codes: np.ndarray  # (C,) int64: family code of each context
    natural: np.ndarray  # (D,) float64: natural parameters of the prior
    totals: np.ndarray  # (C,) float64: sums of ``natural`` over each context's columns
    vectors: Vectors


@record
class ClusterTables(NamedTuple):
    """Counts and stored log-gammas, one slot per cluster. Slots after the clusters in use are empty clusters."""

    n_k: np.ndarray  # (slots,) int64: documents of each cluster
    n_tokens: np.ndarray  # (slots,) int64: tokens of each cluster
    n_mk: np.ndarray  # (M, slots) int32: tokens of each topic in each cluster
    kept_k: np.ndarray  # (slots,) float64: ln G(v + n_tokens)
    kept_mk: np.ndarray  # (M, slots) float64: ln G(v eps_m + n_mk)
    natural: np.ndarray  # (D, slots) float64: natural parameters of the contexts
    totals: np.ndarray  # (C, slots) float64: sums of ``natural`` over each context's columns
    vectors: VectorClusters


@record
class DocumentConstants(NamedTuple):
    """Constants of a sweep over documents."""

    law: PartitionLaw
    v: float  # table concentration
    topics: np.ndarray  # (M,) float64: v eps_m
    bits: np.ndarray  # (M,) float64: bound on the absolute binary exponent of a factor of each topic


@record
class ClusterSweepWork(NamedTuple):
    """Workspace for the current document: its topic counts and the weights of the clusters."""

    counts: np.ndarray  # (M,) int64: tokens of the document in each topic; zeros between documents
    present: np.ndarray  # (M,) int64: topics of the document in the first entries
    weight: np.ndarray  # (slots,) float64: weight or log weight of each cluster
    product: np.ndarray  # (slots,) float64: product of the factors of each cluster; ones between uses
    log_gammas: np.ndarray  # (M,) float64: scratch for the log-gammas of the document's topics
    row: np.ndarray  # (D,) float64: scratch for one row of statistics


@inner_kernel(fastmath={"contract"})
def _multiply(prior, n, count, n_slots, product):
    """product[k] *= G(prior + n[k] + count) / G(prior + n[k]) for k < n_slots, for a small count."""
    for i in range(count):
        for k in range(n_slots):
            product[k] *= prior + (n[k] + i)


@inner_kernel(fastmath={"contract"})
def _take_logs(n_slots, product, weight):
    """weight[k] += ln product[k]; product[k] = 1."""
    for k in range(n_slots):
        weight[k] += log(product[k])
        product[k] = 1.0


@inner_kernel(fastmath={"contract"})
def _add_stirling(prior, n, kept, count, n_slots, weight):
    """weight[k] += ln G(prior + n[k] + count) - kept[k], for prior + n[k] + count >= 8."""
    for k in range(n_slots):
        weight[k] += stirling(prior + (n[k] + count)) - kept[k]


@inner_kernel(fastmath={"contract"})
def _add_log_gamma(prior, n, kept, count, n_slots, weight):
    """weight[k] += ln G(prior + n[k] + count) - kept[k], for any arguments."""
    for k in range(n_slots):
        weight[k] += log_gamma(prior + (n[k] + count)) - kept[k]


@inner_kernel(fastmath={"contract"})
def _subtract_totals(v, n, kept, length, n_slots, weight):
    """weight[k] += ln G(v + n[k]) - ln G(v + n[k] + length), where ``kept`` stores ln G(v + n[k])."""
    for k in range(n_slots):
        weight[k] += kept[k] - log_gamma(v + (n[k] + length))


@inner_kernel(fastmath={"contract"})
def _log_gammas(x, n):
    """x[i] = ln G(x[i]) for i < n, in place."""
    for i in range(n):
        x[i] = log_gamma(x[i])


@inner_kernel(fastmath={"contract"})
def _exponentiate(weight, n_slots):
    """weight = exp(weight - max), in place; return the sum."""
    top = weight[0]
    for k in range(1, n_slots):
        top = max(top, weight[k])
    for k in range(n_slots):
        weight[k] = exp(weight[k] - top)
    total = 0.0
    for k in range(n_slots):
        total += weight[k]
    return total


@inner_kernel
def count_topics_of(documents, j, counts, present):
    """Count the tokens of document j in each topic; return the number of its topics."""
    topic, n_present = documents.topic, 0
    for i in range(documents.start[j], documents.start[j + 1]):
        m = topic[i]
        if counts[m] == 0:
            present[n_present] = m
            n_present += 1
        counts[m] += 1
    return n_present


@inner_kernel
def add_or_remove(clusters, contexts, priors, work, j, k, sign, length, n_present):
    """Add document j, whose counts are in ``work``, to cluster k (sign 1) or remove it from k (sign -1)."""
    n_mk, kept_mk, prior = clusters.n_mk, clusters.kept_mk, priors.topics
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
        add_to_column(contexts, j, np.float64(sign), clusters.natural, clusters.totals, k)
    else:
        add_to_column(contexts, j, -1.0, clusters.natural, clusters.totals, k)
        empty_column(contexts, clusters.natural, clusters.totals, k)
    describe_cluster(k, clusters.natural[:, k], contexts.vectors, contexts.offsets, clusters.vectors)


@inner_kernel
def weigh_contexts(contexts, j, natural, totals, vectors, n_slots, row, weight):
    """weight[k] += ln f_k(x_j), the log posterior predictive of document j's contexts in cluster k."""
    if contexts.vectors.n_others > 0:
        add_predictives(contexts, j, natural, totals, n_slots, vectors.product, row, weight)
    indptr, indices, values = contexts.indptr, contexts.indices, contexts.values
    add_log_predictives(indptr, indices, values, j, contexts.vectors, contexts.offsets, vectors, n_slots, weight)


@inner_kernel
def _weigh_sizes_and_contexts(clusters, contexts, law, j, empty, n_slots, row, weight):
    """weight[k] = ln (n_k + b) + ln f_k(x_j); slot ``empty`` gets the new cluster's weight, other empty slots -inf."""
    n_k, n_used = clusters.n_k, 0
    for k in range(n_slots):
        if n_k[k] > 0:
            weight[k] = log(n_k[k] + law.each)
            n_used += 1
        else:
            weight[k] = -np.inf
    new = weight_of_new(law, n_used)
    if new > 0.0:
        weight[empty] = log(new)
    weigh_contexts(contexts, j, clusters.natural, clusters.totals, clusters.vectors, n_slots, row, weight)


@inner_kernel
def weigh_topics(clusters, priors, work, length, n_present, n_slots):
    """weight[k] += ln of the probability of the current document's topics given the topics of cluster k's tokens."""
    if length > 0:
        _subtract_totals(priors.v, clusters.n_tokens, clusters.kept_k, length, n_slots, work.weight)
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


@inner_kernel
def _move_document(stream, j, n_clusters, documents, contexts, clusters, priors, work):
    """Draw the cluster of document j; return the cluster, or -1 if the weights have no finite sum above 0."""
    n_k, cluster, weight = clusters.n_k, documents.cluster, work.weight
    length = documents.start[j + 1] - documents.start[j]
    n_present = count_topics_of(documents, j, work.counts, work.present)
    add_or_remove(clusters, contexts, priors, work, j, np.int64(cluster[j]), -1, length, n_present)
    # the first empty slot represents the new cluster
    empty = n_clusters
    for slot in range(n_clusters):
        if n_k[slot] == 0:
            empty = slot
            break
    n_slots = max(n_clusters, empty + 1)
    _weigh_sizes_and_contexts(clusters, contexts, priors.law, j, empty, n_slots, work.row, weight)
    weigh_topics(clusters, priors, work, length, n_present, n_slots)
    total = _exponentiate(weight, n_slots)
    if not 0.0 < total < np.inf:
        return -1
    chosen = index_of(weight, n_slots, streams.uniform(stream) * total, empty)
    cluster[j] = chosen
    add_or_remove(clusters, contexts, priors, work, j, chosen, 1, length, n_present)
    for p in range(n_present):
        work.counts[work.present[p]] = 0
    return chosen


@kernel
def _sweep_clusters(key, first, n_clusters, documents, contexts, clusters, priors, work):
    """Sweep the documents from ``first`` on; stop early if no slot is spare.

    Returns the next document and the number of clusters. If the weights of document j have no finite sum above 0, the
    first value is -1 - j.
    """
    stream, n_documents = np.zeros(2, np.uint64), documents.cluster.size
    for j in range(first, n_documents):
        if n_clusters == clusters.n_k.size:
            return j, n_clusters
        streams.seek(stream, key, j)
        chosen = _move_document(stream, j, n_clusters, documents, contexts, clusters, priors, work)
        if chosen < 0:
            return -1 - j, n_clusters
        n_clusters = max(n_clusters, chosen + 1)
    return n_documents, n_clusters


@kernel
def _exponents(prior, most):
    """Return (M,) float64 bits: if no factor is above 2**most, factors of topic m are in [2**-bits[m], 2**bits[m]]."""
    return np.array([max(most, -math.log2(a)) for a in prior])


@kernel(fastmath={"contract"})
def _log_gamma_table(prior, n_mk, kept_mk):
    for m in range(n_mk.shape[0]):
        a, row, kept = prior[m], n_mk[m], kept_mk[m]
        for k in range(row.size):
            kept[k] = log_gamma(a + row[k])


def constants_of(assignments: Assignments, concentrations: Concentrations) -> DocumentConstants:
    """Return the constants of the moves of documents."""
    v = float(concentrations.table)
    prior = v * assignments.topic_weights
    bits = _exponents(prior, math.log2(v + assignments.document_start[-1] + 1.0))
    return DocumentConstants(concentrations.partition, v, prior, bits)


def tables_of(
    stacked: Contexts, priors: DocumentConstants, cluster: np.ndarray, n_mk: np.ndarray, n_k: np.ndarray
) -> ClusterTables:
    """Return the cluster tables for (M, slots) token counts ``n_mk`` and (slots,) document counts ``n_k``."""
    n_tokens = n_mk.sum(axis=0, dtype=np.int64)
    kept_mk, kept_k = np.empty(n_mk.shape), np.empty((1, len(n_k)))
    _log_gamma_table(priors.topics, n_mk, kept_mk)
    _log_gamma_table(np.array([priors.v]), n_tokens[None, :].astype(n_mk.dtype), kept_k)
    return ClusterTables(n_k, n_tokens, n_mk, kept_k[0], kept_mk, *columns_of(stacked, cluster, len(n_k)))


def work_of(n_topics: int, slots: int, dimension: int) -> ClusterSweepWork:
    """Return the workspace for one document, with ``slots`` cluster slots."""
    counts, present = np.zeros((2, n_topics), np.int64)
    return ClusterSweepWork(counts, present, np.zeros(slots), np.ones(slots), np.zeros(n_topics), np.empty(dimension))


def contexts_of(contexts: StackedContexts) -> Contexts:
    """Return the documents' contexts as arrays for compiled kernels."""
    statistics = contexts.statistics
    return Contexts(
        statistics.indptr.astype(np.int64), statistics.indices.astype(np.int64), statistics.data, contexts.offsets,
        contexts.codes, contexts.prior, contexts.totals(contexts.prior[None, :])[0], Vectors.from_contexts(contexts),
    )  # fmt: skip


@kernel
def _fill_columns(contexts, cluster, natural, totals, clusters):
    for j in range(cluster.size):
        add_to_column(contexts, j, 1.0, natural, totals, np.int64(cluster[j]))
    for k in range(totals.shape[1]):
        describe_cluster(k, natural[:, k], contexts.vectors, contexts.offsets, clusters)


def columns_of(contexts: Contexts, cluster: np.ndarray, slots: int) -> tuple[np.ndarray, np.ndarray, VectorClusters]:
    """Return the clusters' natural parameters (D, slots), their totals (C, slots) and the clusters' vectors."""
    natural, totals = (np.repeat(one[:, None], slots, axis=1) for one in (contexts.natural, contexts.totals))
    clusters = contexts.vectors.clusters(contexts.offsets, slots)
    _fill_columns(contexts, cluster, natural, totals, clusters)
    return natural, totals, clusters


def sweep_clusters(
    assignments: Assignments, contexts: StackedContexts, concentrations: Concentrations, key: np.uint64
) -> None:
    """Make one collapsed Gibbs sweep over all documents, in place, and drop the clusters that end empty.

    ``key`` (:func:`mc2core.compute.streams.key`) has one random stream per document. The natural parameters of the
    contexts are first recomputed from the assignments. Rounding errors of adding and removing documents therefore do
    not accumulate from sweep to sweep.
    """
    stacked, priors = contexts_of(contexts), constants_of(assignments, concentrations)
    documents = DocumentTokens(assignments.document_start, assignments.topic, assignments.cluster)
    first, n_clusters = 0, assignments.n_clusters
    while first < len(assignments.cluster):
        assignments.count(n_clusters)
        n_k = np.append(assignments.n_k, np.zeros(_SPARE, np.int64))
        n_mk = np.zeros((assignments.n_topics, len(n_k)), np.int32)
        n_mk[:, :n_clusters] = assignments.n_km.T
        clusters = tables_of(stacked, priors, assignments.cluster, n_mk, n_k)
        work = work_of(assignments.n_topics, len(n_k), contexts.dimension)
        first, n_clusters = _sweep_clusters(key, first, n_clusters, documents, stacked, clusters, priors, work)
        if first < 0:
            raise no_cluster(-1 - first, contexts, concentrations)
    assignments.n_km = np.ascontiguousarray(clusters.n_mk[:, :n_clusters].T)
    assignments.n_k = clusters.n_k[:n_clusters].copy()
    assignments.compact()


# -- given tau ------------------------------------------------------------------------------------------------
_SCORING_BLOCK = 64  # documents per block of work of a thread


@kernel(fastmath={"contract"})
def _log_gamma_of_priors(prior, out):
    for m in range(prior.shape[0]):
        for k in range(prior.shape[1]):
            out[m, k] = log_gamma(prior[m, k])


@inner_kernel(fastmath={"contract"})
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


@inner_kernel
def _draw_member(stream, j, scores, contexts, natural, totals, clusters, each, n_k, cluster, weight, row):
    """Draw the cluster of document j among the clusters in use."""
    old, has_contexts = np.int64(cluster[j]), contexts.offsets.size > 1
    n_k[old] -= 1
    if has_contexts:
        add_to_column(contexts, j, -1.0, natural, totals, old)
        describe_cluster(old, natural[:, old], contexts.vectors, contexts.offsets, clusters)
    for k in range(n_k.size):
        weight[k] = scores[j, k] + log(n_k[k] + each)
    if has_contexts:
        weigh_contexts(contexts, j, natural, totals, clusters, n_k.size, row, weight)
    total = _exponentiate(weight, n_k.size)
    new = index_of(weight, n_k.size, streams.uniform(stream) * total, old)
    cluster[j] = new
    n_k[new] += 1
    if has_contexts:
        add_to_column(contexts, j, 1.0, natural, totals, new)
        describe_cluster(new, natural[:, new], contexts.vectors, contexts.offsets, clusters)


@kernel
def _draw_members(key, scores, contexts, natural, totals, clusters, each, n_k, cluster):
    stream, weight, row = np.zeros(2, np.uint64), np.empty(n_k.size), np.empty(contexts.natural.size)
    for j in range(cluster.size):
        if n_k[cluster[j]] > 1:
            streams.seek(stream, key, j)
            _draw_member(stream, j, scores, contexts, natural, totals, clusters, each, n_k, cluster, weight, row)


def sweep_members(
    assignments: Assignments,
    counts: TopicCounts,
    prior: np.ndarray,
    contexts: StackedContexts,
    law: PartitionLaw,
    key: np.uint64,
    pool: Executor | None,
) -> None:
    """Make one sweep over all documents given tau, in place.

    Parameters
    ----------
    counts : TopicCounts
        Numbers n_jm of tokens of each document in each topic.
    prior : (K, M) float64
        omega tau_km.
    key : np.uint64
        Key with one random stream per document.
    pool : Executor or None
        Threads; they do not change the result.
    """
    n_documents, n_clusters = len(assignments.cluster), assignments.n_clusters
    if n_clusters == 1:
        return
    by_topic = np.maximum(np.ascontiguousarray(prior.T), MIN_POSITIVE)
    kept, scores = np.empty(by_topic.shape), np.zeros((n_documents, n_clusters))
    _log_gamma_of_priors(by_topic, kept)

    def score(first: int, last: int) -> None:
        _score(first, last, *counts, by_topic, kept, scores)

    in_blocks(pool, score, n_documents, _SCORING_BLOCK)
    stacked = contexts_of(contexts)
    columns = columns_of(stacked, assignments.cluster, n_clusters)
    _draw_members(key, scores, stacked, *columns, law.each, assignments.n_k, assignments.cluster)
    assignments.count(n_clusters, counts)
