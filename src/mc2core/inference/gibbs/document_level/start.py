"""The starting state of a chain with a document level.

Topics settle while all documents are in one cluster; then, with topics held, clusters are found from that one and from
some at random, and the likelier of both are where the chain begins. From one alone, hundreds of topics leave one or two
clusters, since no single split of them pays; from many, those of short documents stay in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.collapsed import contexts_of
from mc2core.inference.gibbs.document_level.cluster_moves import ClusterConstants, SplitWork, evaluate
from mc2core.inference.gibbs.document_level.state import DocumentLevel, DocumentLevelState
from mc2core.inference.gibbs.document_level.sweep import LEAST, count_topics
from mc2core.inference.gibbs.partition import log_openings
from mc2core.inference.gibbs.state import Assignments, Concentrations
from mc2core.inference.gibbs.weights import GammaPrior
from mc2core.models.base import DOCUMENT

#: sweeps in which documents stay in one cluster ...
SETTLING = 20
#: ... and those after them, in which tokens stay with their topics
SORTING = 40


def settle(
    corpus: Corpus, state: DocumentLevelState, start_clusters: int, seed: int, pool: Executor | None
) -> DocumentLevelState:
    """Sweeps that hold clusters and omega while topics are still as if at random; then documents given topics."""
    state.move_all_but_tokens(seed, -SETTLING, pool, is_settled=False)
    with work("topics settle", SETTLING, "sweeps") as told:
        for iteration in range(1 - SETTLING, 1):
            state.move_tokens(corpus, seed, iteration)
            state.move_all_but_tokens(seed, iteration, pool, is_settled=False)
            told.advance()
    if not state.model.has_clusters:
        return state
    starts = [start_clusters] if state.model.n_clusters else sorted({1, min(start_clusters, corpus.n_documents)})
    return max((_sort(state, n, seed, pool) for n in starts), key=likelihood)


def likelihood(state: DocumentLevelState) -> float:
    """:func:`log_clustering` of a state."""
    priors = {**vars(state.priors), DOCUMENT: state.omega_prior}
    return log_clustering(state.assignments, state.level, state.concentrations, priors, state.contexts)


def _sort(state: DocumentLevelState, n_clusters: int, seed: int, pool: Executor | None) -> DocumentLevelState:
    """A state with the topics of ``state``, from this number of clusters."""
    assignments, level = scatter(state.assignments, state.level, n_clusters, streams.generator(seed, "sort"))
    state = replace(state, assignments=assignments, concentrations=replace(state.concentrations), level=level)
    first = -SETTLING - SORTING * n_clusters
    with work(f"documents into clusters, {n_clusters} at first", SORTING, "sweeps") as told:
        for sweep in range(SORTING):
            state.move_all_but_tokens(seed, first + sweep, pool, is_settled=sweep > 0)
            told.advance()
    return state


def scatter(
    assignments: Assignments, level: DocumentLevel, n_clusters: int, rng: np.random.Generator
) -> tuple[Assignments, DocumentLevel]:
    """Every document in one of these many clusters at random, all with the proportions of one; topics are shared."""
    _, cluster = np.unique(rng.integers(n_clusters, size=len(assignments.cluster)), return_inverse=True)
    scattered = replace(assignments, cluster=cluster.astype(np.int32), topic_weights=assignments.topic_weights.copy())
    scattered.count()
    proportions = np.tile(level.proportions[:1], (scattered.n_clusters, 1))
    return scattered, DocumentLevel(proportions, scattered.n_km.copy(), level.omega)


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
    level: DocumentLevel,
    concentrations: Concentrations,
    priors: Mapping[str, GammaPrior | None],
    contexts: StackedContexts,
) -> float:
    """ln p(z, x, epsilon, concentrations, l), theta and tau summed out, up to what l alone decides.

    tau is summed out by the estimate of :mod:`mc2core.inference.gibbs.document_level.cluster_moves`, within a few nats
    a cluster. ``priors`` are those of "group", "table", "topic" and "document", None where that one is not learnt.
    """
    counts, omega = count_topics(assignments), level.omega
    n_documents, lengths = len(assignments.cluster), np.diff(assignments.document_start)
    alpha, v, eta, law = concentrations.group, concentrations.table, concentrations.topic, concentrations.partition
    topics = v * np.append(assignments.topic_weights, assignments.rest)
    constants, stacked = ClusterConstants(law, v, omega, np.maximum(topics, LEAST), 0.0), contexts_of(contexts)
    g, shape, tau, base = np.empty((4, 3, len(topics)))
    work = SplitWork(
        np.empty(n_documents, np.int64), np.empty(n_documents, np.int8), g, shape, tau, base, np.empty(len(topics)),
        np.empty((2, len(stacked.natural))), np.empty((2, len(stacked.codes))), np.empty(1),
    )  # fmt: skip
    result = _evaluate_all(assignments.cluster, assignments.n_clusters, counts, constants, stacked, work)
    result += log_openings(law, assignments.n_clusters)
    result += gammaln(alpha) - gammaln(alpha + n_documents) + (gammaln(omega) - gammaln(omega + lengths)).sum()
    result += len(assignments.topic_weights) * math.log(eta) - np.log(assignments.topic_weights).sum()
    result += (eta - 1.0) * math.log(max(assignments.rest, LEAST))
    for role, value in {"group": alpha, "table": v, "topic": eta, "document": omega}.items():
        if (prior := priors[role]) is not None:
            result += (prior.shape - 1.0) * math.log(value) - prior.rate * value
    return float(result)
