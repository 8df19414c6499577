"""Split and merge moves of document clusters given the tables of their documents (docs/model.md, section 2).

With theta and tau summed out, a cluster of documents with tables t_jm has a marginal likelihood in closed form. It is
the product of the posterior predictives of its documents, each given the documents before it
(:mod:`mc2core.inference.gibbs.documents`).

A move draws two documents i and j. If both are in one cluster, the move proposes to split this cluster; otherwise it
proposes to merge their clusters. Document i starts component 0 and document j starts component 1. All other documents
of these clusters follow in random order. Each is assigned to component c with probability proportional to

    w_c = (n_c + b) f_c(x) p(t | documents of component c)           (sequential allocation, Dahl 2005).

A merge makes the same pass, but each document is assigned to the component of its current cluster. Let w be the weight
of a document in the union of both components. Then a split has the Metropolis-Hastings ratio

    alpha (1 - K / N) p(x_j, t_j) / w(j)  prod over all other documents of (w_0 + w_1) / w,

and the merge that reverses the split has the inverse ratio. The weights of the chosen components cancel, because their
product is the joint density of the two components.
"""

from __future__ import annotations

import math

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import log_gamma
from mc2core.families.stacked import StackedContexts
from mc2core.families.vectors import describe_cluster
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.documents import (
    DocumentTokens,
    add_or_remove,
    constants_of,
    contexts_of,
    count_topics_of,
    tables_of,
    weigh_contexts,
    weigh_topics,
    work_of,
)
from mc2core.inference.gibbs.weights import Concentrations, weight_of_new

_UNION = 2  # slot of the union of both components


@inner_kernel
def _empty_slots(clusters, contexts, priors):
    for slot in range(clusters.n_k.size):
        clusters.n_k[slot] = clusters.n_tokens[slot] = 0
        clusters.kept_k[slot] = log_gamma(priors.v)
        for d in range(contexts.natural.size):
            clusters.natural[d, slot] = contexts.natural[d]
        for c in range(contexts.totals.size):
            clusters.totals[c, slot] = contexts.totals[c]
        describe_cluster(slot, clusters.natural[:, slot], contexts.vectors, contexts.offsets, clusters.vectors)
    for m in range(priors.topics.size):
        kept = log_gamma(priors.topics[m])
        for slot in range(clusters.n_k.size):
            clusters.n_mk[m, slot], clusters.kept_mk[m, slot] = 0, kept


@inner_kernel
def _gather(stream, i, j, cluster, members):
    """List i, j and, in random order, all other documents of their clusters; return the number of documents."""
    a, b, n = cluster[i], cluster[j], 2
    members[0], members[1] = i, j
    for other in range(cluster.size):
        if other != i and other != j and (cluster[other] == a or cluster[other] == b):
            r = min(2 + np.int64(streams.uniform(stream) * (n - 1)), n)  # an inside-out shuffle
            members[n], members[r] = members[r], other
            n += 1
    return n


@inner_kernel
def _allocate(stream, members, n, is_split, documents, contexts, clusters, priors, work, component):
    """Draw the components of a split, or assign the documents of a merge to their current clusters.

    Returns the log Metropolis-Hastings ratio of the split without the factor alpha (1 - K / N).
    """
    cluster, weight, result, chosen = documents.cluster, work.weight, 0.0, 0
    for position in range(n):
        d = members[position]
        length = documents.start[d + 1] - documents.start[d]
        n_present = count_topics_of(documents, d, work.counts, work.present)
        for slot in range(3):
            weight[slot] = math.log(clusters.n_k[slot] + priors.law.each) if clusters.n_k[slot] > 0 else 0.0
        weigh_contexts(contexts, d, clusters.natural, clusters.totals, clusters.vectors, 3, work.row, weight)
        weigh_topics(clusters, priors, work, length, n_present, 3)
        if position == 1:
            chosen = 1
            result += weight[1] - weight[_UNION]
        elif position > 1:
            odds = weight[1] - weight[0]
            result += weight[0] + max(odds, 0.0) + math.log1p(math.exp(-abs(odds))) - weight[_UNION]
            if is_split:
                chosen = int(streams.uniform(stream) * (1.0 + math.exp(-odds)) < 1.0)
            else:
                chosen = int(cluster[d] != cluster[members[0]])
        component[position] = chosen
        for slot in (chosen, _UNION):
            add_or_remove(clusters, contexts, priors, work, d, slot, 1, length, n_present)
        for p in range(n_present):
            work.counts[work.present[p]] = 0
    return result


@kernel
def _split_and_merge(key, n_proposals, n_used, documents, contexts, clusters, priors, work, members, component):
    """Make proposals in place; return the numbers of splits and merges. New clusters are numbered from ``n_used``."""
    cluster, n_documents, stream = documents.cluster, documents.cluster.size, np.zeros(2, np.uint64)
    n_slots, splits, merges = n_used, 0, 0
    for proposal in range(n_proposals):
        streams.seek(stream, key, proposal)
        i = min(np.int64(streams.uniform(stream) * n_documents), n_documents - 1)
        j = min(np.int64(streams.uniform(stream) * (n_documents - 1)), n_documents - 2)
        j += j >= i
        a, b = cluster[i], cluster[j]
        is_split = a == b
        if is_split and n_used == priors.law.most:
            continue
        n = _gather(stream, i, j, cluster, members)
        _empty_slots(clusters, contexts, priors)
        ratio = _allocate(stream, members, n, is_split, documents, contexts, clusters, priors, work, component)
        ratio += math.log(weight_of_new(priors.law, n_used if is_split else n_used - 1))
        if not math.log(streams.uniform(stream)) < (ratio if is_split else -ratio):
            continue
        for position in range(n):
            cluster[members[position]] = n_slots if is_split and component[position] == 1 else a
        if is_split:
            n_slots, n_used, splits = n_slots + 1, n_used + 1, splits + 1
        else:
            n_used, merges = n_used - 1, merges + 1
    return splits, merges


def split_and_merge_clusters(
    assignments: Assignments, contexts: StackedContexts, concentrations: Concentrations, key: np.uint64,
    n_proposals: int
) -> tuple[int, int]:  # fmt: skip
    """Make ``n_proposals`` proposals to split or merge clusters, in place, and drop the clusters that end empty.

    Parameters
    ----------
    assignments : Assignments
        Assignments of the tables (at the document level) or of the tokens.
    key : np.uint64
        Key with one random stream per proposal.

    Returns
    -------
    int, int
        Numbers of accepted splits and merges.
    """
    n_documents = len(assignments.cluster)
    if n_documents < 2:
        return 0, 0
    stacked, priors = contexts_of(contexts), constants_of(assignments, concentrations)
    documents = DocumentTokens(assignments.document_start, assignments.topic, assignments.cluster)
    n_mk, n_k = np.zeros((assignments.n_topics, 3), np.int32), np.zeros(3, np.int64)
    clusters = tables_of(stacked, priors, np.zeros(0, np.int32), n_mk, n_k)
    work = work_of(assignments.n_topics, 3, contexts.dimension)
    members, component = np.empty(n_documents, np.int64), np.empty(n_documents, np.int8)
    made = _split_and_merge(
        key, n_proposals, assignments.n_clusters, documents, stacked, clusters, priors, work, members, component
    )
    assignments.count(assignments.n_clusters + made[0])
    assignments.compact()
    return made
