"""Blocked move: all (z_j, l_j) at once given the random measures, drawn from their conditionals first.

Given z, l and epsilon, the measures that the collapsed sampler integrates out are drawn: G_0 (weights epsilon, topics
psi), pi, each cluster's tau_k and phi_k. Then documents are independent, and z_j is drawn with its tokens' topics
summed out:

    P(z_j = k | measures) prop. to pi_k f(x_j | phi_k) prod_i sum_m tau_km psi_m,w_ji,      l_ji ~ tau_{z_j} psi_.,w_ji.

**Births, exactly and without slice variables.** G_0 has infinitely many atoms. Its atoms not in use are split off
``rest`` by GEM(eta) until less than ``SMALLEST_TOPIC`` remains, so every atom above that weight (a *big* one) is known;
likewise every cluster with pi_k above that of ``SMALLEST_CLUSTER`` documents. A token in a small topic stays there
(it enters its document's weight as a factor tau_k,l), a document in a small cluster stays as it is, and everything
else moves among the big atoms. Big and small are properties of the measures, not of z and l, and what moves stays
among the big, so the move is a Gibbs step on the whole model. Collapsed sweeps and the next draw of epsilon move the
rest.

**Threads.** Words, then documents, then words again are cut into fixed blocks; streams of random numbers belong to
words and documents, and sums over blocks are taken in their order, so bits do not depend on the number of threads.

**Zeros.** psi and tau are float32. Gammas of psi below 1e-18 become 0, and so do entries of tau below 1e-38 of their
topic's sum: they carry less than rounding, and subnormal products would cost a hundred cycles each. A token's own
topic always has psi and tau of a Gamma with shape above 1, so the present state never becomes impossible. All Gammas of
a topic or cluster not in use may underflow, if the prior of its words or v is small; they are then drawn in logarithms.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from mc2core.compute import streams
from mc2core.compute.threads import in_blocks
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.blocked.documents import Documents, LogFactors, centred_log, draw_clusters
from mc2core.inference.gibbs.blocked.measures import WORD_BLOCK, Measures, draw_measures
from mc2core.inference.gibbs.blocked.tokens import draw_topics
from mc2core.inference.gibbs.cells import WordCells
from mc2core.inference.gibbs.state import Assignments, Concentrations, no_cluster, no_topic

_DOCUMENT_BLOCK = 128


def _log_factors(measures: Measures, pool: Executor | None) -> LogFactors:
    psi, tau = measures.psi, measures.tau
    log_mass = np.empty((len(psi), len(tau)), np.float32)

    def fill(first: int, last: int) -> None:
        centred_log(psi[first:last] @ tau.T, log_mass[first:last])

    in_blocks(pool, fill, len(psi), WORD_BLOCK)
    with np.errstate(divide="ignore"):
        log_small = np.log(np.ascontiguousarray(measures.tau_small.T))
    return LogFactors(np.log(measures.pi), log_small, log_mass)


def _move_documents(
    assignments: Assignments,
    content: Any,
    contexts: StackedContexts,
    measures: Measures,
    key: np.uint64,
    rng: np.random.Generator,
    pool: Executor | None,
) -> tuple[np.ndarray, int]:
    """Draw the clusters of documents in big ones, in place.

    Returns (J,) int32, 1 + the document's place among the big clusters or 0, and the first document that has no weights
    to draw from, or -1: then nothing has changed.
    """
    big, n_big = measures.big, len(measures.big)
    is_big = np.full(measures.n_clusters, -1, np.int32)
    is_big[big] = np.arange(n_big, dtype=np.int32)
    factors = _log_factors(measures, pool)
    natural = contexts.natural(assignments.cluster, measures.n_clusters)[big]
    parameters = contexts.draw_parameters(natural, rng)
    documents = Documents(content.indptr, content.indices, content.data, assignments.document_start, assignments.topic)
    chosen = assignments.cluster.copy()

    def move(first: int, last: int) -> int:
        log_context = np.zeros((0, n_big))
        if contexts.dimension:
            log_context = np.asarray(contexts.statistics[first:last] @ parameters.T)
        return draw_clusters(key, first, last, documents, measures.topics, factors, log_context, is_big, chosen)

    failed = max(in_blocks(pool, move, len(chosen), _DOCUMENT_BLOCK))
    moves = is_big[assignments.cluster] >= 0
    if failed < 0:
        cluster = assignments.cluster.copy()
        cluster[moves] = big[chosen[moves]]  # there may be no big cluster at all
        assignments.cluster = cluster
    return np.where(moves, chosen + 1, 0).astype(np.int32), failed


def move_blocked(
    assignments: Assignments,
    content: Any,
    cells: WordCells,
    contexts: StackedContexts,
    concentrations: Concentrations,
    topic_prior: float,
    seed: int,
    iteration: int,
    pool: Executor | None = None,
    *,
    clusters_are_fixed: bool = False,
) -> None:
    """One blocked move, in place; clusters and topics that end empty are dropped.

    ``content``: the corpus's CSR counts; ``pool``: threads to use; ``clusters_are_fixed``: move tokens only.
    """
    rng = streams.generator(seed, "measures", iteration)
    key = streams.key(seed, "psi", iteration)
    measures = draw_measures(
        assignments, cells, concentrations, topic_prior, key, rng, pool, clusters_are_fixed=clusters_are_fixed
    )
    if clusters_are_fixed:
        row_of = assignments.cluster + np.int32(1)
    else:
        key = streams.key(seed, "blocked clusters", iteration)
        row_of, failed = _move_documents(assignments, content, contexts, measures, key, rng, pool)
        if failed >= 0:
            raise no_cluster(failed, contexts, concentrations)
    key = streams.key(seed, "blocked topics", iteration)
    topics, tau, psi = measures.topics, measures.tau, measures.psi

    def move_tokens(first: int, last: int) -> int:
        return draw_topics(key, first, last, cells, topics, row_of, tau, psi, assignments.topic)

    failed = max(in_blocks(pool, move_tokens, len(psi), WORD_BLOCK))
    if failed >= 0:
        raise no_topic(assignments.document_of(failed), concentrations, topic_prior)
    assignments.topic_weights, assignments.rest = topics.weights, topics.rest
    assignments.count(measures.n_clusters)
    assignments.compact()
