"""Kernels of the document level, against plain twins and closed forms; what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fits import gibbs
from helpers.gibbs_twin import (
    CONCENTRATIONS,
    PRIOR,
    assert_counted,
    assignments_of,
    draw_or_stay,
    open_topic,
    small_corpus,
    tokens_of,
)
from scipy.special import gammaln

from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.inference.gibbs.assignments import Assignments, count_topics, topics_of_words
from mc2core.inference.gibbs.state import topic_proposals
from mc2core.inference.gibbs.tokens import add_columns, keep_used, sweep_document_topics, topics_before
from mc2core.inference.gibbs.weights import Concentrations, draw_proportions, log_documents, sample_document_tables
from mc2core.inference.running.loop import fit


def proportions_of(assignments, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(assignments.n_topics + 1, 0.7), assignments.n_clusters)


def plain_document_level_sweep(assignments, corpus, tau, omega, concentrations, key):
    """Tokens in order of documents; float64; weights from scratch for every token."""
    document, word = tokens_of(corpus)
    topic, cluster = assignments.topic.astype(int), assignments.cluster
    eps, remaining = list(assignments.topic_weights), assignments.remaining
    columns, tau_remaining = [column.copy() for column in tau[:, :-1].T], tau[:, -1].copy()
    v, eta, n_words = concentrations.table, concentrations.topic, corpus.n_words
    state = np.zeros(2, np.uint64)
    for j in range(corpus.n_documents):
        streams.seek(state, key, j)
        k = cluster[j]
        for i in np.flatnonzero(document == j):
            others = np.arange(len(topic)) != i
            weights = []
            for m in range(len(eps)):
                here = others & (topic == m)
                weights.append(
                    (np.sum(here & (document == j)) + omega * columns[m][k])
                    * (np.sum(here & (word == word[i])) + PRIOR) / (np.sum(here) + n_words * PRIOR)
                )  # fmt: skip
            topic[i] = draw_or_stay([*weights, omega * tau_remaining[k] / n_words], topic[i], state)
            if topic[i] == len(eps):
                remaining = open_topic(state, k, eps, remaining, columns, tau_remaining, v, eta)
    used = np.unique(topic)
    unused = np.setdiff1d(np.arange(len(eps)), used)
    left = tau_remaining + sum((columns[m] for m in unused), np.zeros(len(tau_remaining)))
    return topic, used, np.array(eps), remaining, np.column_stack([*(columns[m] for m in used), left])


@pytest.mark.parametrize("omega", [0.6, 25.0])
@pytest.mark.parametrize("seed", range(3))
def test_token_sweep_equals_its_plain_twin(seed, omega):
    corpus = small_corpus(seed)
    assignments = assignments_of(corpus, seed=seed)
    tau, key = proportions_of(assignments, seed), streams.key(seed, "test")
    topic, used, eps, remaining, expected = plain_document_level_sweep(
        assignments, corpus, tau, omega, CONCENTRATIONS, key
    )
    assert omega < 1 or len(eps) > 5  # topics are born
    found, n_wm = sweep_document_topics(assignments, corpus.content, tau, omega, CONCENTRATIONS, PRIOR, key)
    np.testing.assert_array_equal(assignments.topic, np.searchsorted(used, topic))
    np.testing.assert_allclose(assignments.topic_weights, eps[used], rtol=1e-12)
    assert assignments.remaining == pytest.approx(remaining + eps.sum() - eps[used].sum(), rel=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(n_wm, topics_of_words(corpus.content, assignments.topic, assignments.n_topics))
    assert_counted(assignments)


def test_token_sweep_resumes_where_topics_outgrow_their_arrays():
    """The twin starts with 407 topics, nearly all of weight 0, so its arrays are outgrown at other tokens."""
    corpus = small_corpus(5, mean=60)
    many, key = Concentrations(1.0, 400.0, 300.0), streams.key(0, "test")
    assignments, twin = assignments_of(corpus), assignments_of(corpus)
    tau = proportions_of(assignments)
    twin.topic_weights = np.concatenate([twin.topic_weights, np.full(402, 1e-300)])
    twin.count()
    padded = np.column_stack([tau[:, :-1], np.zeros((3, 402)), tau[:, -1]])
    found, _ = sweep_document_topics(assignments, corpus.content, tau, 400.0, many, PRIOR, key)
    other, _ = sweep_document_topics(twin, corpus.content, padded, 400.0, many, PRIOR, key)
    assert assignments.n_topics > 32
    np.testing.assert_array_equal(assignments.topic, twin.topic)
    np.testing.assert_allclose(assignments.topic_weights, twin.topic_weights, rtol=1e-12)
    np.testing.assert_allclose(found, other, rtol=1e-12)


def test_tables_of_documents_equal_their_plain_twin():
    """The law of one draw is that of ``test_tables_follow_antoniaks_law``."""
    corpus = small_corpus(1)
    assignments, key = assignments_of(corpus), streams.key(3, "test")
    prior, (document, _) = 4.0 * proportions_of(assignments)[:, :-1], tokens_of(corpus)
    found = sample_document_tables(assignments, count_topics(assignments), prior, key, None)
    stream, tables = np.zeros(2, np.uint64), []
    for j in range(corpus.n_documents):
        streams.seek(stream, key, j)
        for m, n in zip(*np.unique(assignments.topic[document == j], return_counts=True), strict=True):
            a = prior[assignments.cluster[j], m]
            tables += [m] * (1 + sum(streams.uniform(stream) * (a + i) < a for i in range(1, n)))
    assert len(document) > len(tables) > corpus.n_documents
    np.testing.assert_array_equal(found.topic, tables)


def test_tables_do_not_depend_on_threads():
    corpus = small_corpus(1, n_documents=700)
    assignments = assignments_of(corpus)
    prior = 4.0 * proportions_of(assignments)[:, :-1]
    one = sample_document_tables(assignments, count_topics(assignments), prior, streams.key(0, "test"), None)
    with thread_budget(3) as pool:
        three = sample_document_tables(assignments, count_topics(assignments), prior, streams.key(0, "test"), pool)
    np.testing.assert_array_equal(one.topic, three.topic)
    np.testing.assert_array_equal(one.n_km, three.n_km)


def test_proportions_have_the_mean_of_their_dirichlet():
    """2,000 draws, 18 entries, 5 errors: a false alarm has a chance of 1e-5."""
    assignments = assignments_of(small_corpus(2))
    rng, tables = np.random.default_rng(0), np.array([[0, 1, 4, 2, 0], [3, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    drawn = np.array([draw_proportions(tables, assignments, CONCENTRATIONS, rng) for _ in range(2000)])
    prior = CONCENTRATIONS.table * np.append(assignments.topic_weights, assignments.remaining)
    mean = (prior + np.column_stack([tables, np.zeros(3)])) / (prior.sum() + tables.sum(axis=1, keepdims=True))
    assert (abs(drawn.mean(axis=0) - mean) < 5 * drawn.std(axis=0) / math.sqrt(2000)).all()


@pytest.mark.parametrize("omega", [1e-6, 0.7, 300.0])
def test_log_documents_is_a_dirichlet_multinomial(omega):
    corpus = small_corpus(3, mean=200)
    assignments = assignments_of(corpus)
    tau = proportions_of(assignments)
    document, _ = tokens_of(corpus)
    expected = 0.0
    for j in range(corpus.n_documents):
        a = omega * tau[assignments.cluster[j], :-1]
        n = np.bincount(assignments.topic[document == j], minlength=5)
        expected += gammaln(omega) - gammaln(omega + n.sum()) + (gammaln(a + n) - gammaln(a)).sum()
    lengths, counts = np.diff(assignments.document_start), count_topics(assignments)
    found = log_documents(lengths, assignments.cluster, counts, tau, omega)
    assert found == pytest.approx(expected, rel=1e-12)


def test_kernels_are_the_same_move():
    corpus = small_corpus(1)
    rows = []
    for kernel in ("collapsed", "interleaved"):
        engine = gibbs(document_level=True, kernel=kernel, start_topics=4, start_clusters=3)
        state = engine.init(corpus, 0)
        rows.append([engine.step(corpus, state, 0, iteration) for iteration in range(1, 6)])
    assert rows[0] == rows[1]
    omegas = [row["document_concentration"] for row in rows[0]]
    assert len(set(omegas)) == 5


def test_a_number_holds_omega():
    corpus = small_corpus(1)
    engine = gibbs(document_concentration=3.0, start_topics=4, start_clusters=3)
    state = engine.init(corpus, 0)
    assert engine.step(corpus, state, 0, 1)["document_concentration"] == 3.0
    sample = engine.sample(corpus, state)
    assert sample.document_concentration == 3.0
    prior = state.concentrations.table * sample.topic_weights
    mean = prior + state.tables
    np.testing.assert_allclose(sample.topic_given_cluster, mean / mean.sum(axis=1, keepdims=True))
    shared = gibbs(start_topics=4, start_clusters=3)
    assert shared.sample(corpus, shared.init(corpus, 0)).document_concentration == math.inf


def test_a_state_that_does_not_fit_is_refused():
    corpus = small_corpus(1)
    engine = gibbs(document_level=True, start_topics=4, start_clusters=3)
    arrays = engine.init(corpus, 0).arrays()
    for changes, message in (
        ({"proportions": arrays["proportions"][:, 1:]}, "'proportions' has the shape"),
        ({"tables": arrays["tables"] * 1.0}, "'tables' holds float64; whole numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.restore(corpus, arrays | changes)
    with pytest.raises(ValueError, match="'proportions' is missing"):
        engine.restore(corpus, gibbs(start_topics=4).init(corpus, 0).arrays())


@pytest.mark.usefixtures("short_starts")
@pytest.mark.parametrize(
    ("omega", "v", "eta", "kernel"),
    crossed(
        [1e-10, 1e10, "learn"],
        [(1e-10, 1e-10), (1e10, 1e10), (1e-10, 1e10)],
        ["collapsed", "parallel"],
        every=2,
    ),
)
def test_extreme_settings_leave_a_chain_and_its_scores_finite(omega, v, eta, kernel):
    corpus = small_corpus(1, n_documents=7)
    engine = gibbs(
        document_concentration=omega, table_concentration=v, topic_concentration=eta, group_concentration=1,
        start_topics=3, start_clusters=2, kernel=kernel,
    )  # fmt: skip
    done = fit(corpus, *engine, iterations=6, progress=False)
    assert np.isfinite(done.trace["log_joint"]).all()
    assert np.isfinite(done.posterior.log_likelihood(corpus, "left_to_right")).all()
    np.testing.assert_allclose(done.posterior.predict_proba(corpus).sum(axis=1), 1.0)


def test_proposals_of_topics_go_by_tokens():
    """As many for a dozen tokens took most of the time of fits of a few documents."""
    assert [topic_proposals(n_tokens) for n_tokens in (0, 6, 1200, 3000, 10**7)] == [6, 6, 60, 150, 150]


def test_topics_that_end_empty_leave_their_shares_to_the_rest():
    topic, start = np.array([0, 2, 2], np.int32), np.array([0, 1, 3])
    assignments = Assignments(np.array([0, 1], np.int32), topic, start, np.array([0.5, 0.2, 0.2]), 0.1)
    assignments.count()
    tau = np.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.3, 0.4, 0.2]])
    topics = topics_before(assignments, tau, np.zeros((0, 4), np.int32), np.zeros(4, np.int64))
    topics = add_columns(topics, 2)
    assert topics.tau.shape == (2, 6)
    found = keep_used(assignments, topics, np.array([1, 0, 2]))
    np.testing.assert_allclose(found, [[0.5, 0.2, 0.3], [0.1, 0.4, 0.5]])
    np.testing.assert_array_equal(assignments.topic, [0, 1, 1])
    np.testing.assert_allclose([*assignments.topic_weights, assignments.remaining], [0.5, 0.2, 0.3])
