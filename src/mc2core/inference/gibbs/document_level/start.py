"""Clusters of the starting state where documents have proportions of their own: random ones, and how likely some are.

Topics settle while all documents are in one cluster; then, with topics held, clusters are found from that one and from
some at random, and the likelier of both are where the chain begins. From one alone, hundreds of topics leave one or two
clusters, since no single split of them pays; from many, those of short documents stay in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from mc2core.compute.kernels import kernel
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.document_level.counts import count_topics
from mc2core.inference.gibbs.document_level.documents import OwnDocuments
from mc2core.inference.gibbs.document_level.sides import LEAST, Constants, Work, evaluate
from mc2core.inference.gibbs.documents import contexts_of
from mc2core.inference.gibbs.state import Assignments, Concentrations
from mc2core.inference.gibbs.weights import GammaPrior

#: sweeps in which documents stay in one cluster ...
SETTLING = 20
#: ... and those after them, in which tokens stay with their topics
SORTING = 40


def scatter(
    assignments: Assignments, own: OwnDocuments, n_clusters: int, rng: np.random.Generator
) -> tuple[Assignments, OwnDocuments]:
    """Every document in one of these many clusters at random, all with the proportions of one; topics are shared."""
    _, cluster = np.unique(rng.integers(n_clusters, size=len(assignments.cluster)), return_inverse=True)
    scattered = replace(assignments, cluster=cluster.astype(np.int32), topic_weights=assignments.topic_weights.copy())
    scattered.count()
    proportions = np.tile(own.proportions[:1], (scattered.n_clusters, 1))
    return scattered, OwnDocuments(proportions, scattered.n_km.copy(), own.omega)


@kernel(error_model="numpy")
def _evaluate_all(cluster, n_clusters, counts, constants, contexts, work):
    result = 0.0
    for k in range(n_clusters):
        n = 0
        for j in range(cluster.size):
            if cluster[j] == k:
                work.members[n], work.side[n] = j, 0
                n += 1
        result += evaluate(work.members, n, work.side, 0, counts, constants, contexts, work, 0)[1]
    return result


def log_clustering(
    assignments: Assignments,
    own: OwnDocuments,
    concentrations: Concentrations,
    priors: Mapping[str, GammaPrior | None],
    contexts: StackedContexts,
) -> float:
    """ln p(z, x, epsilon, concentrations, l), theta and tau summed out, up to what l alone decides.

    tau is summed out by the estimate of :mod:`mc2core.inference.gibbs.document_level.sides`, within a few nats a
    cluster. ``priors`` are those of "group", "table", "topic" and "document", None where that one is not learnt.
    """
    counts, omega = count_topics(assignments), own.omega
    n_documents, lengths = len(assignments.cluster), np.diff(assignments.document_start)
    alpha, v, eta = concentrations.group, concentrations.table, concentrations.topic
    topics = v * np.append(assignments.topic_weights, assignments.rest)
    constants, stacked = Constants(alpha, v, omega, np.maximum(topics, LEAST), 0.0), contexts_of(contexts)
    g, shape, tau, base = np.empty((4, 3, len(topics)))
    work = Work(
        np.empty(n_documents, np.int64), np.empty(n_documents, np.int8), g, shape, tau, base, np.empty(len(topics)),
        np.empty((2, len(stacked.natural))), np.empty((2, len(stacked.codes))), np.empty(1),
    )  # fmt: skip
    result = _evaluate_all(assignments.cluster, assignments.n_clusters, counts, constants, stacked, work)
    result += gammaln(alpha) - gammaln(alpha + n_documents) + (gammaln(omega) - gammaln(omega + lengths)).sum()
    result += len(assignments.topic_weights) * math.log(eta) - np.log(assignments.topic_weights).sum()
    result += (eta - 1.0) * math.log(max(assignments.rest, LEAST))
    for role, value in {"group": alpha, "table": v, "topic": eta, "document": omega}.items():
        if (prior := priors[role]) is not None:
            result += (prior.shape - 1.0) * math.log(value) - prior.rate * value
    return float(result)
