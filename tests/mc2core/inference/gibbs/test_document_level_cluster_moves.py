"""Moves of clusters and of omega at the document level, each by itself.

Exact transition matrices where weights are listed; else frequencies and log ratios against exact probabilities as in
test_exact.py, at most 30 a test: a false alarm with probability near 8e-6. Seeds are fixed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.document_level_states import EPS, assignments_at, corpus_and_state, log_contexts
from helpers.gibbs_chains import BATCHES, assert_visits_follow, log_ratios, one_wrong
from helpers.gibbs_enumeration import canonical, log_clusters, partitions
from helpers.gibbs_transitions import FAMILIES, ClusterDraw, assert_invariant, paths
from helpers.gibbs_twin import assignments_of, small_corpus, tokens_of
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs import assignments as assignments_module
from mc2core.inference.gibbs import documents
from mc2core.inference.gibbs.assignments import Assignments, count_topics
from mc2core.inference.gibbs.cluster_moves import split_and_merge_clusters
from mc2core.inference.gibbs.documents import sweep_members
from mc2core.inference.gibbs.weights import Concentrations, GammaPrior, PartitionLaw, draw_omega, log_documents


# -- counts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_of_topics_are_those_of_the_tokens(threads, monkeypatch):
    monkeypatch.setattr(assignments_module, "_COUNTED_BLOCK", 2)
    corpus = small_corpus(1)
    assignments = assignments_of(corpus)
    with thread_budget(threads) as pool:
        found = count_topics(assignments, pool)
    document, _ = tokens_of(corpus)
    expected = np.zeros((corpus.n_documents, assignments.n_topics), int)
    np.add.at(expected, (document, assignments.topic), 1)
    dense = sp.csr_matrix((found.n, found.topic, found.start), shape=expected.shape).toarray()
    np.testing.assert_array_equal(dense, expected)
    assert (found.n > 0).all()
    # those of clusters, from the rows and from tokens, with a cluster more than is in use
    n_km = np.array([expected[assignments.cluster == k].sum(axis=0) for k in range(assignments.n_clusters + 1)])
    for counts in (None, found):
        assignments.count(len(n_km), counts)
        np.testing.assert_array_equal(assignments.n_km, n_km)


# -- documents given tau -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("families", [{}, FAMILIES], ids=["words", "words and contexts"])
@pytest.mark.parametrize(("omega", "n_clusters"), [(1e-3, math.inf), (2.5, math.inf), (1e5, math.inf), (2.5, 4)])
def test_sweep_given_tau_leaves_its_posterior_invariant(omega, n_clusters, families, monkeypatch):
    """z given l, tau and omega over all states in which each of three clusters, or of two, has a document."""
    contexts, start, n_jm = corpus_and_state(families)
    n_used = 3 if n_clusters == math.inf else 2
    tau = np.random.default_rng(2).dirichlet(np.full(4, 0.8), n_used)[:, :-1]
    states = [z for z in itertools.product(range(n_used), repeat=4) if len(set(z)) == n_used]
    log_pi = np.zeros(len(states))
    for i, z in enumerate(states):
        a = omega * tau[list(z)]
        log_pi[i] = log_clusters(z, 1.3, n_clusters) + log_contexts(contexts, z)
        log_pi[i] += (gammaln(a + n_jm) - gammaln(a)).sum()
    matrix = np.zeros((len(states), len(states)))
    for i, z in enumerate(states):

        def run(z=z):
            assignments = assignments_at(z, start)
            law = PartitionLaw.from_concentration(1.3, n_clusters)
            sweep_members(assignments, count_topics(assignments), omega * tau, contexts, law, np.uint64(0), None)
            return tuple(assignments.cluster.tolist())

        for probability, result in paths(
            run, documents, ("_draw_members", "_draw_member", "index_of"), monkeypatch, ClusterDraw
        ):
            matrix[i, states.index(result)] += probability
    assert (matrix.diagonal() < 1).any()
    assert_invariant(matrix, log_pi, 1e-10, 1e-8)  # at omega = 1e5 log-gammas agree to 11 digits


def test_sweep_given_tau_does_not_depend_on_threads():
    corpus = small_corpus(1, n_documents=300)
    one, three = assignments_of(corpus), assignments_of(corpus)
    contexts = StackedContexts(corpus, {})
    prior = 4.0 * np.random.default_rng(0).dirichlet(np.full(6, 0.7), 3)[:, :-1]
    law, key = PartitionLaw.from_concentration(1.3), streams.key(0, "test")
    sweep_members(one, count_topics(one), prior, contexts, law, key, None)
    with thread_budget(3) as pool:
        sweep_members(three, count_topics(three), prior, contexts, law, key, pool)
    np.testing.assert_array_equal(one.cluster, three.cluster)
    assert (one.cluster != assignments_of(corpus).cluster).any()


# -- splits and merges ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("families", "alpha", "n_clusters"),
    [({}, 1.3, math.inf), (FAMILIES, 1.3, math.inf), (FAMILIES, 3.0, 2), ({}, 4.0, 3)],
    ids=["words", "words and contexts", "at most two clusters", "at most three"],
)
def test_splits_and_merges_have_the_exact_posterior(families, alpha, n_clusters):
    """z given the tables: the 15 partitions of four documents, or those of at most so many clusters, by these moves
    alone.
    """
    contexts, start, n_jm = corpus_and_state(families)
    states = [z for z in partitions(4) if max(z) < n_clusters]

    def exact_of(alpha, v):
        logs = np.array([log_clusters(z, alpha, n_clusters) + log_contexts(contexts, z) for z in states])
        for i, z in enumerate(states):
            for k in range(max(z) + 1):
                n = n_jm[np.array(z) == k].sum(axis=0)
                logs[i] += gammaln(v) - gammaln(v + n.sum()) + (gammaln(v * EPS + n) - gammaln(v * EPS)).sum()
        return dict(zip(states, np.exp(logs - logsumexp(logs)), strict=True))

    numbers = {"alpha": alpha, "v": 2.0}
    exact = exact_of(**numbers)
    probability = np.array(list(exact.values()))
    ratios = log_ratios(exact, [exact_of(**wrong) for wrong in one_wrong(numbers)])
    each = np.eye(len(states))[(probability > 0.04) & (probability < 0.96)]
    together = np.array([[z[a] == z[b] for z in states] for a in range(4) for b in range(a)], float)
    assert len(each) > 3
    assignments, concentrations = assignments_at((0, 1, 1, 1), start), Concentrations(alpha, 2.0, 1.0, n_clusters)
    visits, made, calls = np.zeros((BATCHES, len(states))), np.zeros(2, np.int64), 5000
    for i in range(calls):
        made += split_and_merge_clusters(assignments, contexts, concentrations, streams.key(i, "test"), 4)
        visits[i * BATCHES // calls, states.index(canonical(assignments.cluster))] += 1
    assert abs(made[0] - made[1]) < 4
    assert made.min() > calls / 10
    assert_visits_follow(visits, np.vstack([each, together, ratios]), probability)


def test_a_cluster_in_pieces_is_one_after_a_few_proposals():
    rng = np.random.default_rng(5)
    topic, cluster = rng.choice(6, (90, 12), p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05]), rng.integers(6, size=90)
    assignments = Assignments(
        cluster.astype(np.int32), topic.ravel().astype(np.int32), np.arange(91) * 12, np.full(6, 0.15), 0.1
    )
    assignments.count()
    contexts = StackedContexts(Corpus(np.ones((90, 1), int)), {})
    splits, merges = split_and_merge_clusters(
        assignments, contexts, Concentrations(1.0, 3.0, 1.0), streams.key(0, "test"), 100
    )
    assert assignments.n_clusters == 6 + splits - merges <= 2
    assert assignments.n_k.sum() == 90


# -- omega ---------------------------------------------------------------------------------------------------------
def test_omega_has_its_posterior():
    """Mean of ln omega over 4,000 draws of the slice sampler against quadrature."""
    _, start, n_jm = corpus_and_state({})
    z = np.array([0, 1, 1, 0], np.int32)
    counts, lengths = count_topics(assignments_at(z, start)), np.diff(start)
    tau, prior = np.random.default_rng(3).dirichlet(np.ones(4), 2), GammaPrior(2.0, 0.5)

    def log_density(x):
        a = math.exp(x) * tau[z][:, :-1]
        value = (gammaln(a + n_jm) - gammaln(a)).sum()
        value += (gammaln(math.exp(x)) - gammaln(math.exp(x) + lengths)).sum()
        assert log_documents(lengths, z, counts, tau, math.exp(x)) == pytest.approx(value, abs=1e-9)
        return value + prior.shape * x - prior.rate * math.exp(x)

    total = quad(lambda x: math.exp(log_density(x)), -9, 5)[0]
    mean = quad(lambda x: x * math.exp(log_density(x)), -9, 5)[0] / total
    rng, omega, draws = np.random.default_rng(0), 1.0, []
    for _ in range(4000):
        omega = draw_omega(lengths, z, counts, tau, omega, prior, rng)
        draws.append(math.log(omega))
    batches = np.array(draws).reshape(BATCHES, -1).mean(axis=1)
    assert abs(batches.mean() - mean) < 6 * batches.std(ddof=1) / math.sqrt(BATCHES)
    assert batches.std() < 0.5
