"""Compiled Gibbs kernels against plain twins that draw the same random numbers, and their conditionals alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs
from helpers.gibbs_twin import (
    CONCENTRATIONS,
    PRIOR,
    assert_counted,
    assignments_of,
    cells_of,
    plain_cluster_draw,
    plain_cluster_sweep,
    plain_topic_draw,
    plain_topic_sweep,
    small_corpus,
    tokens_of,
)

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs import blocked
from mc2core.inference.gibbs.assignments import topics_by_word, topics_of_words
from mc2core.inference.gibbs.documents import sweep_clusters
from mc2core.inference.gibbs.tokens import DocumentRows, sweep_topics, word_cells
from mc2core.inference.gibbs.weights import Concentrations


# -- tokens --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_topic_sweep_equals_its_plain_twin(seed):
    corpus = small_corpus(seed)
    assignments = assignments_of(corpus, seed=seed)
    key = streams.key(seed, "test")
    topic, eps, remaining = plain_topic_sweep(assignments, corpus, key)
    used = np.unique(topic)
    sweep_topics(assignments, cells_of(corpus), CONCENTRATIONS, PRIOR, key)
    np.testing.assert_array_equal(assignments.topic, np.searchsorted(used, topic))
    np.testing.assert_allclose(assignments.topic_weights, eps[used], rtol=1e-12)
    assert assignments.remaining == pytest.approx(remaining + eps.sum() - eps[used].sum(), rel=1e-9)
    assert_counted(assignments)


def test_topic_sweep_resumes_where_topics_outgrow_their_arrays():
    # with v = 400 nearly every token opens a topic: from 5 to far over the first capacity of 16. The twin starts with
    # 407 topics, so its arrays are outgrown at other tokens
    corpus = small_corpus(5, mean=60)
    many = Concentrations(1.0, 400.0, 300.0)
    assignments = assignments_of(corpus)
    twin = assignments_of(corpus)
    twin.topic_weights = np.concatenate([twin.topic_weights, np.full(402, 1e-300)])  # other capacities
    twin.count()
    key = streams.key(0, "test")
    sweep_topics(assignments, cells_of(corpus), many, PRIOR, key)
    sweep_topics(twin, cells_of(corpus), many, PRIOR, key)
    assert assignments.n_topics > 32
    np.testing.assert_array_equal(assignments.topic, twin.topic)
    np.testing.assert_allclose(assignments.topic_weights, twin.topic_weights, rtol=1e-12)


# -- documents -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mean", "alpha", "n_clusters"),
    [(4, 1.3, 3), (4, 1.3, 12), (60, 1.3, 3), (400, 1.3, 3), (4, 1e6, 3)],  # 12: many become empty and are used again
)
@pytest.mark.parametrize(
    "families",
    [
        {},
        {"year": NormalGamma(), "tag": DirichletCategorical(0.3)},
        {"year": NormalGamma(), "place": DiagonalNormalGamma(strength=0.5), "shape": DiagonalNormalGamma()},
    ],
)
def test_cluster_sweep_equals_its_plain_twin(families, mean, alpha, n_clusters):
    """``place`` is a vector that documents have or lack, of ``shape`` one lacks a part."""
    corpus, rng = small_corpus(2, mean=mean, n_documents=16), np.random.default_rng(0)
    vectors = {"place": rng.normal(size=(16, 9)), "shape": rng.normal(size=(16, 2))}
    vectors["place"][[2, 5]] = vectors["shape"][7, 1] = np.nan
    corpus = Corpus(corpus.content, contexts=corpus.contexts | vectors)
    concentrations = Concentrations(alpha, CONCENTRATIONS.table, CONCENTRATIONS.topic)
    contexts = StackedContexts(corpus, families)
    for seed in range(3):
        assignments = assignments_of(corpus, n_clusters=n_clusters, seed=seed)
        key = streams.key(seed, "test")
        prior = CONCENTRATIONS.table * assignments.topic_weights
        cluster = plain_cluster_sweep(assignments, corpus, contexts, key, alpha, CONCENTRATIONS.table, prior)
        sweep_clusters(assignments, contexts, concentrations, key)
        np.testing.assert_array_equal(assignments.cluster, np.searchsorted(np.unique(cluster), cluster))
        # more than the eight spare slots were filled: the sweep went on with larger tables
        assert alpha < 1e6 or assignments.n_clusters > 11


def test_cluster_sweep_keeps_products_within_range():
    # a short document alone uses topics 1 to 4, whose prior masses multiply to 1e-400; only topic 5 tells its clusters
    # apart, and strongly so
    corpus = small_corpus(2, mean=30, n_documents=16)
    contexts = StackedContexts(corpus, {})
    document, _ = tokens_of(corpus)
    concentrations = Concentrations(1e-9, CONCENTRATIONS.table, CONCENTRATIONS.topic)
    for seed in range(20):
        assignments = assignments_of(corpus, n_topics=7, seed=seed)
        assignments.topic = np.where(assignments.cluster[document] == 0, 5, 6).astype(np.int32)
        assignments.topic[document == 12] = [1, 2, 3, 4, 5, 5, 5, 5, 5]
        assignments.topic_weights[:5] *= 1e-100
        assignments.count()
        key = streams.key(seed, "test")
        v, alpha = concentrations.table, concentrations.group
        cluster = plain_cluster_sweep(assignments, corpus, contexts, key, alpha, v, v * assignments.topic_weights)
        sweep_clusters(assignments, contexts, concentrations, key)
        np.testing.assert_array_equal(assignments.cluster, np.searchsorted(np.unique(cluster), cluster))


# -- blocked -------------------------------------------------------------------------------------------------------
def cut(column, label):
    """G_0's topics with the columns ``column`` (-1: small) of those in use and the topics ``label`` of the columns."""
    column = np.array(column, np.int32)
    small = np.flatnonzero(column < 0)
    place = np.zeros(len(column), np.int32)
    place[small] = np.arange(len(small))
    return blocked.CutTopics(np.zeros(len(column)), 0.0, np.array(label, np.int32), column, small, place)


def test_blocked_kernels_equal_their_plain_twins():
    corpus = small_corpus(3)
    content, cells = corpus.content, cells_of(corpus)
    assignments = assignments_of(corpus)
    rng = np.random.default_rng(0)
    topics = cut(column=[0, -1, 1, 2, -1], label=[0, 2, 3, 5])  # two small topics and one new
    psi = np.zeros((corpus.n_words, 16), np.float32)
    psi[:, :4] = rng.gamma(0.3, size=(corpus.n_words, 4))
    tau = np.zeros((4, 16), np.float32)
    tau[:, :4] = rng.dirichlet(np.ones(4), 4)
    log_small = np.log(rng.random((2, 4)))
    is_active = np.array([0, -1, 2], np.int32)
    log_prior, log_context = np.log(rng.dirichlet(np.ones(4))), rng.normal(size=(corpus.n_documents, 4))
    log_mass = np.empty((corpus.n_words, 4), np.float32)
    blocked.centred_log(psi @ tau.T, log_mass)
    mass = np.log(psi.astype(float) @ tau.T.astype(float))
    np.testing.assert_allclose(log_mass, mass - mass.max(axis=1, keepdims=True), atol=2e-6)

    key = streams.key(0, "test")
    expected = plain_cluster_draw(assignments, corpus, key, topics, log_prior, log_context, log_small, mass, is_active)
    documents = DocumentRows.from_counts(content, assignments.document_start, assignments.cluster)
    factors = blocked.LogFactors(log_prior, log_small, log_mass)
    cluster = assignments.cluster.copy()
    for first, last in ((0, 5), (5, corpus.n_documents)):
        context = log_context[first:last]
        blocked.draw_clusters(
            key, first, last, documents, assignments.topic, topics, factors, context, is_active, cluster
        )
    np.testing.assert_array_equal(cluster, expected)

    row_of = np.where(is_active[assignments.cluster] >= 0, cluster + 1, 0).astype(np.int32)
    expected = plain_topic_draw(assignments, corpus, key, topics, row_of, tau, psi)
    topic = assignments.topic.copy()
    for first, last in ((0, 4), (4, corpus.n_words)):
        blocked.draw_topics(key, first, last, cells, topics, row_of, tau, psi, topic)
    np.testing.assert_array_equal(topic, expected)


def test_psi_has_the_moments_of_its_dirichlet():
    # means of 4,000 draws; 6 standard errors, 27 values: false alarm below 1e-7
    corpus = small_corpus(4)
    cells, assignments = cells_of(corpus), assignments_of(corpus)
    topics = cut(column=[0, 1, -1, 2, -1], label=[0, 1, 3])
    _, word = tokens_of(corpus)
    counts = (
        np.array([np.bincount(word[assignments.topic == m], minlength=corpus.n_words) for m in (0, 1, 3)]).T + PRIOR
    )
    draws = np.empty((4000, corpus.n_words, 3))
    for i in range(len(draws)):
        psi, sums = np.zeros((corpus.n_words, 16), np.float32), np.zeros(16)
        key = streams.key(i, "test")
        blocked.draw_psi(key, 0, corpus.n_words, cells, topics, assignments.topic, PRIOR, psi, sums)
        np.testing.assert_allclose(sums[:3], psi[:, :3].sum(axis=0, dtype=float), rtol=1e-6)
        draws[i] = psi[:, :3]
    assert np.abs((draws.mean(axis=0) - counts) / np.sqrt(counts / len(draws))).max() < 6


def test_tau_is_drawn_from_the_dirichlet_of_its_counts(monkeypatch):
    """Active topics in use, a new one, small ones in use, and the rest, in which a new topic is that is not active."""
    shapes, v, n_km = [], 3.0, np.array([[4, 0, 2, 7, 1], [0, 3, 0, 1, 5]])
    monkeypatch.setattr(
        blocked.streams, "dirichlet", lambda given, _: shapes.append(given) or given / given.sum(axis=1)[:, None]
    )
    w = np.array([0.2, 0.1, 0.15, 0.05, 0.1, 0.12, 0.08])
    topics = cut(column=[0, -1, 1, 2, -1], label=[0, 2, 3, 5])._replace(weights=w, remaining=0.2)
    sums = np.arange(1.0, 17.0)
    tau, of_small = blocked.draw_tau(n_km, topics, sums, v, np.random.default_rng(0))
    prior = v * np.array([*w[[0, 2, 3, 5, 1, 4]], 0.2 + w[6]])
    expected = prior + np.column_stack([n_km[:, [0, 2, 3]], [0, 0], n_km[:, [1, 4]], [0, 0]])
    np.testing.assert_allclose(shapes[0], expected)
    drawn = expected / (v + n_km.sum(axis=1))[:, None]
    np.testing.assert_allclose(tau[:, :4] * sums[:4] / blocked._TAU_UNIT, drawn[:, :4], rtol=1e-6)
    np.testing.assert_allclose(of_small, drawn[:, 4:6])


# -- the engine ----------------------------------------------------------------------------------------------------
def run(corpus, iterations, state=None, first=1, **settings):
    engine = gibbs(
        contexts={"year": NormalGamma(), "tag": DirichletCategorical(0.3)},
        **{"start_topics": 5, **({} if "n_clusters" in settings else {"start_clusters": 3}), **settings},
    )  # fmt: skip
    state = engine.init(corpus, 0) if state is None else engine.restore(corpus, state)
    for iteration in range(first, iterations + 1):
        engine.step(corpus, state, 0, iteration)
    return engine, state


def assert_same(one, other):
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name], err_msg=name)


def test_bits_do_not_depend_on_threads():
    # more documents and words than one block of either
    corpus = small_corpus(6, n_documents=300, n_words=1200, mean=40)
    assert_same(run(corpus, 4, threads=1)[1], run(corpus, 4, threads=2)[1])


@pytest.mark.parametrize("kernel", ["collapsed", "blocked", "interleaved"])
def test_a_restored_state_goes_on_bit_for_bit(kernel):
    corpus = small_corpus(7)
    half = run(corpus, 3, kernel=kernel)[1]
    stored = {name: array.copy() for name, array in half.arrays().items()}
    assert_same(run(corpus, 6, stored, 4, kernel=kernel)[1], run(corpus, 6, kernel=kernel)[1])


#: a Dirichlet process, and mixtures of all of their clusters and of more than are in use
TOLD = [{}, {"n_clusters": 2}, {"n_clusters": 30, "group_concentration": 1.5}]


@pytest.mark.parametrize("told", TOLD)
def test_log_joint_equals_its_factors_written_out(told):
    corpus = small_corpus(8)
    engine, state = run(corpus, 3, **told)
    document, word = tokens_of(corpus)
    z, topics = state.cluster, state.topic
    alpha, v = state.concentrations.group, state.concentrations.table
    expected, most = 0.0, told.get("n_clusters", math.inf)
    for j in range(corpus.n_documents):  # clusters one by one
        before, n_used = np.sum(z[:j] == z[j]), len(set(z[:j]))
        weight = before + alpha / most if before else alpha * (1 - n_used / most)
        expected += math.log(weight / (j + alpha))
    for i in range(corpus.n_tokens):  # tokens one by one
        m, past = topics[i], np.arange(corpus.n_tokens) < i
        in_cluster = past & (z[document] == z[document[i]])
        expected += math.log(
            (np.sum(in_cluster & (topics == m)) + v * state.assignments.topic_weights[m]) / (in_cluster.sum() + v)
        )
        of_topic = past & (topics == m)
        s = engine.model.topic_word_prior
        expected += math.log((np.sum(of_topic & (word == word[i])) + s) / (of_topic.sum() + s * corpus.n_words))
    contexts = state.contexts
    for k in range(state.assignments.n_clusters):
        natural = contexts.prior + np.asarray(contexts.statistics[z == k].sum(axis=0)).ravel()
        expected += contexts.log_marginal(natural)
    assert state.log_joint == pytest.approx(expected + contexts.log_base.sum(), rel=1e-10)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_words_in_topics_are_counted_by_any_number_of_threads(threads):
    corpus = small_corpus(4, n_words=7)  # few words, some threads may have none
    document, word = tokens_of(corpus)
    topic, expected = (3 * document + word).astype(np.int32) % 6, np.zeros((corpus.n_words, 8), int)
    np.add.at(expected, (word, topic), 1)
    with thread_budget(threads) as pool:
        np.testing.assert_array_equal(topics_of_words(corpus.content, topic, 8, pool), expected)
        start, listed = topics_by_word(corpus.content, topic, pool)
        nothing = topics_of_words(sp.csr_matrix((2, 3), dtype=np.int32), np.zeros(0, np.int32), 1, pool)
    assert start.tolist() == [0, *np.cumsum(np.bincount(word, minlength=corpus.n_words))]
    assert listed.tolist() == [m for w in range(corpus.n_words) for m in topic[word == w]]
    assert nothing.tolist() == [[0]] * 3


def test_the_corpus_is_held_word_by_word_if_a_kernel_uses_it(monkeypatch):
    corpus = small_corpus(9)
    level = {"document_level": True}
    for settings, is_held in (level, False), (level | {"kernel": "parallel"}, False), ({}, True):
        engine, state = run(corpus, 1, **settings)
        engine.sample(corpus, state)
        assert ("cells" in vars(state)) == is_held
    # 12 bytes a cell, as long as all tokens have numbers of 4 bytes
    assert [array.dtype.itemsize for array in state.cells[1:4]] == [4, 4, 4]
    most = np.iinfo(np.int32).max
    for counts, size in ((most, 0), 4), ((most, 1), 8):
        cells = word_cells(*(np.array(one, np.int32) for one in ([0, 2], [0, 1], counts)), 2)
        assert cells.token.dtype.itemsize == size
        assert cells.token.tolist() == [0, most]


@pytest.mark.parametrize("told", TOLD)
def test_sample_has_the_counts_and_mean_weights_of_the_state(told):
    corpus = small_corpus(9)
    engine, state = run(corpus, 3, **told)
    sample = engine.sample(corpus, state)
    # E[pi] given z: clusters not in use share what is left
    alpha, n_k, most = state.concentrations.group, np.bincount(state.cluster), told.get("n_clusters", math.inf)
    mean = (n_k + alpha / most) / (corpus.n_documents + alpha)
    np.testing.assert_allclose(sample.cluster_weights, mean / mean.sum())
    assert sample.new_cluster_weight == pytest.approx(1 - mean.sum(), abs=1e-12)
    assert (sample.new_cluster_weight == 0.0) == (len(n_k) == most)
    _, word = tokens_of(corpus)
    words = np.zeros((state.assignments.n_topics, corpus.n_words))
    np.add.at(words, (state.topic, word), 1)
    np.testing.assert_array_equal(sample.topic_words.toarray(), words)
    np.testing.assert_allclose(sample.topic_given_cluster.sum(axis=1), 1)
    mass = state.assignments.n_km.sum(axis=1) + state.concentrations.table
    np.testing.assert_allclose(sample.new_topic_weight, state.concentrations.table * state.assignments.remaining / mass)
