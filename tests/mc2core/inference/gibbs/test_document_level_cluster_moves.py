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
from helpers.crossed import crossed
from helpers.document_level_states import EPS, assignments_at, corpus_and_state, log_contexts, log_topics_of_cluster
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
from mc2core.inference.gibbs import cluster_moves, documents
from mc2core.inference.gibbs.assignments import Assignments, count_topics
from mc2core.inference.gibbs.cluster_moves import ClusterConstants, ClusterWorkspace, split_and_merge_clusters
from mc2core.inference.gibbs.documents import contexts_of, sweep_members
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
            law = PartitionLaw.of(1.3, n_clusters)
            sweep_members(assignments, count_topics(assignments), omega * tau, contexts, law, np.uint64(0), None)
            return tuple(assignments.cluster.tolist())

        for probability, result in paths(run, documents, ("_draw_members", "index_of"), monkeypatch, ClusterDraw):
            matrix[i, states.index(result)] += probability
    assert (matrix.diagonal() < 1).any()
    assert_invariant(matrix, log_pi, 1e-10, 1e-8)  # at omega = 1e5 log-gammas agree to 11 digits


def test_sweep_given_tau_does_not_depend_on_threads():
    corpus = small_corpus(1, n_documents=300)
    one, three = assignments_of(corpus), assignments_of(corpus)
    contexts = StackedContexts(corpus, {})
    prior = 4.0 * np.random.default_rng(0).dirichlet(np.full(6, 0.7), 3)[:, :-1]
    law, key = PartitionLaw.of(1.3), streams.key(0, "test")
    sweep_members(one, count_topics(one), prior, contexts, law, key, None)
    with thread_budget(3) as pool:
        sweep_members(three, count_topics(three), prior, contexts, law, key, pool)
    np.testing.assert_array_equal(one.cluster, three.cluster)
    assert (one.cluster != assignments_of(corpus).cluster).any()


# -- splits and merges ---------------------------------------------------------------------------------------------


CASES = [
    (30.0, 1.3, math.inf, -100.0),
    (0.0, 1.3, math.inf, -100.0),
    (30.0, 3.0, 2, -100.0),
    (0.0, 4.0, 3, -100.0),
    (30.0, 1.3, math.inf, 0.0),  # many launches end after a scan
]


@pytest.mark.parametrize(
    ("families", "slack", "alpha", "n_clusters", "least"),
    crossed({"words": {}, "words and contexts": FAMILIES}, CASES, every=2),
)
def test_splits_and_merges_have_the_exact_posterior(families, slack, alpha, n_clusters, least):
    """z given l, epsilon and the concentrations: the 15 partitions of four documents, or those of at most so many
    clusters, by these moves alone.
    """
    contexts, start, n_jm = corpus_and_state(families)
    concentrations, omega = Concentrations(alpha, 2.0, 1.0, n_clusters), 2.5
    states = [z for z in partitions(4) if max(z) < n_clusters]

    def exact_of(alpha, v, omega):
        logs = np.array([log_clusters(z, alpha, n_clusters) + log_contexts(contexts, z) for z in states])
        for i, z in enumerate(states):
            logs[i] += sum(log_topics_of_cluster(n_jm[np.array(z) == k], EPS, v, omega) for k in range(max(z) + 1))
        return dict(zip(states, np.exp(logs - logsumexp(logs)), strict=True))

    numbers = {"alpha": alpha, "v": concentrations.table, "omega": omega}
    exact = exact_of(**numbers)
    probability = np.array(list(exact.values()))
    ratios = log_ratios(exact, [exact_of(**wrong) for wrong in one_wrong(numbers)])
    each = np.eye(len(states))[(probability > 0.04) & (probability < 0.96)]
    together = np.array([[z[a] == z[b] for z in states] for a in range(4) for b in range(a)], float)
    assert len(each) > 3
    assignments = assignments_at((0, 1, 1, 1), start)
    counts, tau = count_topics(assignments), np.random.default_rng(0).dirichlet(np.ones(4), 2)
    visits, made, calls = np.zeros((BATCHES, len(states))), np.zeros(2, np.int64), 5000
    for i in range(calls):
        key = streams.key(i, "test")
        tau, done = split_and_merge_clusters(
            assignments, counts, tau, contexts, concentrations, omega, key, 4, slack, least
        )
        made += done
        visits[i * BATCHES // calls, states.index(canonical(assignments.cluster))] += 1
    assert abs(made[0] - made[1]) < 4
    assert made.min() > calls / 10
    assert_visits_follow(visits, np.vstack([each, together, ratios]), probability)


@pytest.mark.parametrize("families", [{}, FAMILIES], ids=["words", "words and contexts"])
def test_proposals_on_several_threads_are_those_of_one(families):
    """Documents in two clusters at random and topics that tell six: of 300 proposals many are made."""
    rng = np.random.default_rng(5)
    group, results = np.arange(90) % 6, []
    topic = np.concatenate([rng.choice(6, 12, p=np.where(np.arange(6) == k, 0.75, 0.05)) for k in group])
    corpus = Corpus(
        sp.csr_matrix(np.full((90, 12), 1)),
        contexts={"tag": sp.csr_matrix(np.eye(6)[group]), "visits": group, "year": group + rng.normal(0, 0.1, 90)}
        | {"place": group[:, None] + rng.normal(0, 0.5, (90, 2))},
    )
    start, weights = np.arange(91) * 12, np.full(6, 0.15)
    cluster = rng.integers(2, size=90).astype(np.int32)
    for threads in (1, 2, 3):
        assignments = Assignments(cluster.copy(), topic.astype(np.int32), start, weights, 0.1)
        assignments.count()
        with thread_budget(threads) as pool:
            tau, made = split_and_merge_clusters(
                assignments, count_topics(assignments), np.random.default_rng(1).dirichlet(np.ones(7), 2),
                StackedContexts(corpus, families), Concentrations(1.0, 3.0, 1.0), 5.0, streams.key(0, "test"), 300,
                pool=pool,
            )  # fmt: skip
        results.append((assignments.cluster, tau, made))
    assert (results[0][2] > 4).all()
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("n_clusters", "times"), [(math.inf, 1), (4, 1), (math.inf, 5)])
def test_what_a_side_weighs_equals_its_plain_twin(n_clusters, times):
    """ln R_k = alpha G(n_k + b) / G(1 + b) f_k Dir(tau; v eps) / q(tau) prod of documents, q a scaled Dirichlet of
    these g and e.
    """
    contexts, start, n_jm = corpus_and_state(FAMILIES)
    counts = count_topics(assignments_at((0, 0, 0, 0), start))
    counts, n_jm = counts._replace(n=counts.n * np.int32(times)), n_jm * times
    assert (n_jm.max() > cluster_moves.FEW) == (times > 1)
    v, omega, alpha = 2.0, 2.5, 1.3
    topics = v * np.append(EPS, 1.0 - EPS.sum())
    constants, stacked = (
        ClusterConstants(PartitionLaw.of(alpha, n_clusters), v, omega, topics, 30.0, -100.0),
        contexts_of(contexts),
    )
    work = ClusterWorkspace.of(4, 4, stacked, 4)
    work.members[:], work.component[:] = np.arange(4), [1, 0, 1, 1]
    cluster_moves.tally(work.members, 4, work.component, 0, 1, counts, work)
    fixed, hint = cluster_moves.evaluate(work.members, 4, work.component, 1, counts, constants, stacked, work)
    mine, g, e = n_jm[work.component == 1], work.g[1], work.shape[1]
    u = sum(omega * g[m] / (omega * g[m] + i) for m in range(3) for n in mine[:, m] for i in range(n))
    assert u == pytest.approx(work.u.sum(), rel=0.05)
    variance = [sum(omega * g[m] * i / (omega * g[m] + i) ** 2 for n in mine[:, m] for i in range(n)) for m in range(3)]
    np.testing.assert_allclose(e[:3] - topics[:3], work.u[:3] - variance, rtol=0.2)
    assert e[3] == topics[3]

    def log_weight(tau):
        beta = e / g
        log_q = gammaln(e.sum()) - gammaln(e).sum() + (e * np.log(beta) + (e - 1) * np.log(tau)).sum()
        log_q -= e.sum() * np.log((beta * tau).sum())
        log_p = gammaln(v) - gammaln(topics).sum() + ((topics - 1) * np.log(tau)).sum()
        a = omega * tau[:3]
        each = alpha / n_clusters
        log_p += math.log(alpha) + gammaln(3 + each) - gammaln(1 + each) + (gammaln(a + mine) - gammaln(a)).sum()
        members_of = contexts.statistics[np.flatnonzero(work.component == 1)]
        statistics = np.asarray(members_of.sum(axis=0)).ravel()
        return log_p + float(contexts.log_marginal(contexts.prior + statistics)) - log_q

    for tau in np.random.default_rng(1).dirichlet(np.ones(4), 3):
        found = fixed + cluster_moves.log_at(work.members, 4, work.component, 1, counts, constants, work, tau)
        assert found == pytest.approx(log_weight(tau), abs=1e-9)
    assert hint == pytest.approx(log_weight(g), abs=1e-9)


@pytest.mark.parametrize("times", [1, 5])
def test_probability_of_a_split_equals_its_plain_twin(times):
    """That of the sides of documents 2 and 3 given those of all: of 0 and 3 the second, of 1 and 2 the first."""
    contexts, start, n_jm = corpus_and_state({})
    counts = count_topics(assignments_at((0, 0, 0, 0), start))
    counts, n_jm = counts._replace(n=counts.n * np.int32(times)), n_jm * times
    v, omega, alpha = 2.0, 2.5, 1.3
    topics, stacked = v * np.append(EPS, 1.0 - EPS.sum()), contexts_of(contexts)
    constants = ClusterConstants(PartitionLaw.of(alpha, 4), v, omega, topics, 30.0, -100.0)
    work = ClusterWorkspace.of(4, 4, stacked, 4)
    work.members[:], given, proposed = np.arange(4), np.array([1, 0, 0, 1], np.int8), np.array([0, 1, 0, 1], np.int8)
    work.given[:], work.component[:] = given, proposed
    stream = np.zeros(2, np.uint64)
    moving = stream, work.members, 4, 4, work.component
    found = cluster_moves._scan(*moving, False, True, counts, constants, stacked, work)
    expected = 0.0
    for j in (2, 3):
        log_p = np.zeros(2)
        for which in range(2):
            a = omega * work.g[which][:3]
            log_p[which] = math.log(2.0 + alpha / 4) + (gammaln(a + n_jm[j]) - gammaln(a)).sum()
        expected += (log_p - np.logaddexp(*log_p))[proposed[j]]
    assert found == pytest.approx(expected, abs=1e-9)
    assert abs(work.g[0] - work.g[1]).max() > 0.01
    for which in range(2):  # g is the mean of tau given tables expected at the estimate before it, of two passes
        g = topics / v
        for _ in range(2):
            a = omega * g[:3]
            u = sum(
                np.where(n > 0, 1 + a * np.log((a + np.maximum(n, 1) - 0.5) / (a + 0.5)), 0)
                for n in n_jm[given == which]
            )
            g = (topics + np.append(u, 0.0)) / (v + u.sum())
        np.testing.assert_allclose(work.g[which], g, rtol=1e-12)


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
