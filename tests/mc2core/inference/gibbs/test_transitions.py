"""Exact transition matrices of the tokens Gibbs sweeps on finite states, from the weights that the kernels compute.

A kernel runs as plain Python along every path of its draws: where it asks for a uniform number it gets an object that
notes the weights it is compared with and takes one option after the other. A sweep's transition probability is then
the sum over paths of products of the kernel's own weights over their own totals, and pi P = pi can be checked to
rounding: there is no sampling error in which a wrong weight could hide. pi is written out with log-gamma functions.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fits import at_strength
from helpers.gibbs_chains import corpus_of
from helpers.gibbs_enumeration import canonical, log_clusters, log_words, partitions
from helpers.gibbs_transitions import (
    CONTEXTS,
    FAMILIES,
    ClusterDraw,
    InFloat64,
    TopicDraw,
    assert_invariant,
    compiled_weigh_counts,
    paths,
    take_lane,
)
from helpers.gibbs_twin import plain_weigh_counts
from scipy.special import gammaln

from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs import documents as document_sweeps
from mc2core.inference.gibbs import tokens
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.tokens import word_cells
from mc2core.inference.gibbs.weights import Concentrations

SMALL = (1e-4, 1e-2, 1.3)


# -- documents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "v", "n_clusters", "families"),
    crossed(
        [
            (1.3, 1.7, math.inf),
            *((alpha, v, math.inf) for alpha, v in itertools.product(SMALL[:2], repeat=2)),
            (1.3, 1.7, 2),
            (1.3, 1.7, 3),
            (3.0, 1e-2, 3),
            (1e-2, 1.7, 4),
        ],
        {
            "words": {},
            "words and contexts": FAMILIES,
            "weak contexts": at_strength(FAMILIES, 0.25),
            "contexts of strength 0": at_strength(FAMILIES, 0.0),
        },
        every=2,
    ),
)
def test_document_sweep_leaves_its_posterior_invariant(alpha, v, n_clusters, families, monkeypatch):
    """z given l and epsilon, new clusters among it: the partitions of four documents, one of them empty, of which there
    are 15, or those of at most so many clusters.
    """
    corpus = corpus_of([[0, 0, 1], [1, 1], [], [0, 2]], 3, CONTEXTS)
    topic, weights = np.array([0, 1, 1, 1, 1, 0, 2], np.int32), np.array([0.5, 0.2, 1e-6])
    document = np.repeat(np.arange(4), corpus.document_lengths)
    start = np.concatenate([[0], np.cumsum(corpus.document_lengths)])
    contexts, concentrations = StackedContexts(corpus, families), Concentrations(alpha, v, 1.0, n_clusters)
    states = [z for z in partitions(4) if max(z) < n_clusters]
    log_pi = np.array([log_clusters(z, alpha, n_clusters) for z in states])
    for i, z in enumerate(states):
        for k in range(max(z) + 1):
            members = np.flatnonzero(np.array(z) == k)
            n = np.bincount(topic[np.isin(document, members)], minlength=3)
            log_pi[i] += gammaln(v) - gammaln(v + n.sum()) + (gammaln(v * weights + n) - gammaln(v * weights)).sum()
            statistics = np.asarray(contexts.statistics[members].sum(axis=0)).ravel()
            log_pi[i] += contexts.log_marginal(contexts.prior + statistics)
    matrix = np.zeros((len(states), len(states)))
    for i, z in enumerate(states):

        def run(z=z):
            assignments = Assignments(np.array(z, np.int32), topic.copy(), start, weights, 1 - weights.sum())
            assignments.count()
            document_sweeps.sweep_clusters(assignments, contexts, concentrations, np.uint64(0))
            return canonical(assignments.cluster)

        for probability, result in paths(
            run, document_sweeps, ("_sweep_clusters", "_move_document", "index_of"), monkeypatch, ClusterDraw
        ):
            matrix[i, states.index(result)] += probability
    assert_invariant(matrix, log_pi, 1e-12, 1e-9)


# -- tokens --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("v", "s", "precision", "tolerances"),
    crossed(
        [(1.7, 0.4), *itertools.product(SMALL[:2], repeat=2)],
        [("float32", (1e-6, 1e-5)), ("float64", (1e-12, 1e-9))],
        every=2,
    ),
)
def test_token_sweep_leaves_its_posterior_invariant(v, s, precision, tolerances, monkeypatch):
    """l given z and epsilon, three topics and no new one; weights in float32 as they are, and the same in float64."""
    documents, cluster, eps = [[0, 0], [1], [0]], np.array([0, 1, 1], np.int32), np.array([0.5, 0.3, 0.2])
    corpus = corpus_of(documents, 2)
    words, document = [0, 0, 1, 0], np.array([0, 0, 1, 2])
    content = corpus.content
    cells = word_cells(content.indptr, content.indices, content.data, 2)
    if precision == "float64":
        monkeypatch.setattr(tokens, "np", InFloat64())
        monkeypatch.setattr(tokens, "_F32_ONE", 1.0)
    compiled = precision == "float32"
    monkeypatch.setattr(tokens, "weigh_counts", compiled_weigh_counts if compiled else plain_weigh_counts)
    monkeypatch.setattr(tokens, "prefetch", lambda *_: None)
    monkeypatch.setattr(tokens, "find_lane", take_lane)
    states = list(itertools.product(range(3), repeat=4))
    log_pi = np.array([log_words(topics, words, 2, s) for topics in states])
    for i, topics in enumerate(states):
        n_km = np.zeros((2, 3))
        np.add.at(n_km, (cluster[document], list(topics)), 1)
        log_pi[i] += (gammaln(v * eps + n_km) - gammaln(v * eps)).sum()
    matrix = np.zeros((len(states), len(states)))
    for i, topics in enumerate(states):

        def run(topics=topics):
            assignments = Assignments(cluster, np.array(topics, np.int32), np.array([0, 2, 3, 4]), eps, 0.0)
            assignments.count()
            monkeypatch.setattr(assignments, "compact", lambda: None)  # topics keep their numbers
            tokens.sweep_topics(assignments, cells, Concentrations(1.0, v, 1.0), s, np.uint64(0))
            return tuple(assignments.topic.tolist())

        kernels = "_sweep_words", "_count_visit", "weigh", "join", "draw_other", "find_block", "find_topic"
        for probability, result in paths(run, tokens, kernels, monkeypatch, TopicDraw):
            matrix[i, states.index(result)] += probability
    assert_invariant(matrix, log_pi, *tolerances)
