"""Clusters of documents given tau, theta summed out: a move beside that given the tables of documents.

    P(z_j = k) prop. to n_k f_k(x_j) prod_m G(omega tau_km + n_jm) / G(omega tau_km)          (n_k, f_k without j)

over the clusters in use, for documents that are not alone in theirs. Neither clusters are born nor die, so that the
clusters to choose from are the same before and after. Tables drawn under one cluster hold a document there; this move
does not know them. Tables must be drawn anew after it.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.document_level.counts import TopicCounts
from mc2core.inference.gibbs.documents import contexts_of
from mc2core.inference.gibbs.state import Assignments

_BLOCK = 64  # documents that a thread takes at a time
_LEAST = 1e-300


@kernel(error_model="numpy", fastmath={"contract"})
def _log_gammas(prior, out):
    for m in range(prior.shape[0]):
        for k in range(prior.shape[1]):
            out[m, k] = log_gamma(prior[m, k])


@kernel(error_model="numpy", fastmath={"contract"})
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
def _choose(key, scores, contexts, natural, totals, n_k, cluster):
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
            weight[k] = scores[j, k] + log(np.float64(n_k[k]))
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
    by_topic = np.maximum(np.ascontiguousarray(prior.T), _LEAST)
    kept, scores = np.empty(by_topic.shape), np.zeros((n_documents, n_clusters))
    _log_gammas(by_topic, kept)
    in_blocks(pool, lambda first, last: _score(first, last, *counts, by_topic, kept, scores), n_documents, _BLOCK)
    natural = contexts.natural(assignments.cluster, n_clusters)
    _choose(key, scores, contexts_of(contexts), natural, contexts.totals(natural), assignments.n_k, assignments.cluster)
    assignments.count(n_clusters)
