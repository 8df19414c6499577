"""Documents with proportions around their cluster's: likelihoods against enumeration over clusters and topics.

Statistical tests use fixed seeds; each has a false-alarm rate below 1e-4 over the choice of seed.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.posterior_samples import (
    COUNTS,
    V,
    clusters_of,
    corpus_of,
    draw_sample,
    enumerate_document,
    model_of,
    tokens_of,
    topics_of,
)
from scipy.special import gammaln, logsumexp

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.posterior import Posterior, document_level, mixture, perplexity_kernels, scores
from mc2core.posterior.sample import Sample, SparseRows

OMEGA = 1.7
EVERY = pytest.mark.parametrize("estimator", ["importance", "left_to_right"])
WORDS = np.flatnonzero(COUNTS.sum(axis=1))


def exact_of(sample, new=None):
    """(J, K): pi_k p(w_j | z_j = k) by the sum over the topics of all tokens."""
    weights, tau = clusters_of(sample, new)
    psi = topics_of(sample)
    return np.array([
        [p * enumerate_document(tokens_of(row), sample.document_concentration * one, psi)
         for p, one in zip(weights, tau, strict=True)]
        for row in COUNTS
    ])  # fmt: skip


def ratios(sample, estimator, exact):
    """(samples, documents) estimates of p(w_j) over ``exact``; the streams of a sample are those of its number."""
    found = []
    for seed in range(300):
        found.append(np.exp(model_of(sample).log_likelihood(corpus_of(), estimator, seed=seed)[WORDS]))
    return np.array(found) / exact[WORDS]


@EVERY
def test_the_estimate_is_unbiased_over_clusters_and_topics(estimator, monkeypatch):
    """Means of 300 estimates of four documents within 4.5 standard errors: false alarm 3e-5."""
    monkeypatch.setattr("mc2core.posterior.perplexity.IMPORTANCE_DRAWS", 100)
    monkeypatch.setattr("mc2core.posterior.perplexity.LEFT_TO_RIGHT_PARTICLES", 2)
    sample = replace(draw_sample(1, new_cluster=0.0), document_concentration=OMEGA)
    ratio = ratios(sample, estimator, exact_of(sample).sum(axis=1))
    error = ratio.std(axis=0) / np.sqrt(len(ratio))
    assert (error < 0.03).all()
    assert (abs(ratio.mean(axis=0) - 1) < 4.5 * error + 1e-12).all()


def test_of_several_modes_importance_is_mostly_low():
    """All tokens of one topic, or all of the other: under omega = 0.01 the enumerated p(w) is the sum of two modes."""
    sample = replace(
        draw_sample(1, new_cluster=0.0), document_concentration=0.01, cluster_weights=np.ones(1),
        topic_given_cluster=np.full((1, 2), 0.5), new_topic_weight=np.full(1, 0.01), topic_word_prior=0.01,
        topic_words=sp.csr_matrix(np.array([[30, 30, 5, 5, 30], [5, 30, 30, 30, 5]])), cluster=np.zeros(1, np.int32),
    )  # fmt: skip
    counts = np.array([[2, 3, 2, 1, 0]])
    _, (tau,) = clusters_of(sample, None)
    psi, tokens = topics_of(sample), tokens_of(counts[0])
    exact = enumerate_document(tokens, 0.01 * tau, psi)
    modes = [0.01 * tau[m] / 0.01 * np.prod(psi[m, tokens]) for m in (0, 1)]
    assert sum(modes) == pytest.approx(exact, rel=0.1)
    assert min(modes) > 0.1 * exact
    ratio = {}
    for estimator in ("importance", "left_to_right"):
        model = model_of(sample)
        found = [model.log_likelihood(Corpus(counts), estimator, seed=seed)[0] for seed in range(300)]
        ratio[estimator] = np.exp(found) / exact
    near = ratio["left_to_right"]
    assert abs(near.mean() - 1) < 4.5 * near.std() / np.sqrt(300)
    assert np.median(near) > 0.93
    assert np.median(ratio["importance"]) < 0.9
    assert ratio["importance"].max() > 5  # what the mean owes to a few draws
    assert near.std() < 0.3 * ratio["importance"].std()


@EVERY
def test_a_new_cluster_has_its_mass_and_drawn_proportions(estimator):
    """Four documents and 40 samples, each with its own draw, within a few hundredths."""
    sample = replace(draw_sample(2, new_cluster=0.6), document_concentration=OMEGA)
    expected = np.zeros(len(COUNTS))
    for number in range(40):
        expected += exact_of(sample, mixture.SampleMixture(sample, 3, number).tau[-1]).sum(axis=1) / 40
    found = model_of(*[sample] * 40).log_likelihood(corpus_of(), estimator, seed=3)
    np.testing.assert_allclose(np.exp(found[WORDS]), expected[WORDS], rtol=0.05)
    assert found[1] == 0


def test_where_all_mass_is_a_new_clusters_only_that_counts():
    """The HDP of three levels."""
    sample = replace(draw_sample(2, new_cluster=1.0), document_concentration=OMEGA)
    new = mixture.SampleMixture(sample, 0, 0).tau[-1]
    expected = [enumerate_document(tokens_of(row), OMEGA * new, topics_of(sample)) for row in COUNTS[WORDS]]
    found = model_of(sample).log_likelihood(corpus_of(), "left_to_right")
    np.testing.assert_allclose(np.exp(found[WORDS]), expected, rtol=0.2)


@EVERY
def test_leaving_clusters_out_only_lowers_the_estimate(estimator, monkeypatch):
    """With one cluster of three the mean estimate lies between the best cluster's part less its error and the whole."""
    sample = replace(draw_sample(1, new_cluster=0.0), document_concentration=OMEGA)
    exact = exact_of(sample)
    monkeypatch.setattr(document_level, "CLUSTERS", 1)
    ratio = ratios(sample, estimator, exact.sum(axis=1))
    error = ratio.std(axis=0) / np.sqrt(len(ratio))
    best = (exact.max(axis=1) / exact.sum(axis=1))[WORDS]
    assert (ratio.mean(axis=0) < best + 4.5 * error).all()
    assert (best < 0.95).all()
    assert (ratio.mean(axis=0) > 0.5 * best).all()  # the one is chosen by few draws, not always the best


def test_clusters_that_fall_behind_get_fewer_draws():
    """Of 20 exp(-nats behind / max(3, tokens / 50)), by the tokens of each topic; a kernel of the test's own sees them.

    Of four samples, each has half of them.
    """
    weights = np.array([0.5, 0.3, 0.2])
    sample = replace(
        draw_sample(1, new_cluster=0.0), document_concentration=50.0, cluster_weights=weights,
        topic_given_cluster=np.array([[0.99, 0.01], [0.01, 0.99], [0.7, 0.3]]), new_topic_weight=np.full(3, 0.01),
        topic_words=sp.csr_matrix(np.array([[60, 0, 0, 20, 20], [0, 60, 0, 20, 20]])),
    )  # fmt: skip
    counts = np.array([[6, 0, 0, 0, 0], [0, 6, 0, 0, 0], [400, 0, 0, 0, 0]])
    block, seen = mixture.Block(Corpus(counts), np.arange(3)), {}

    def kernel(*arguments):
        asked, passes, first, last, out = arguments[5:]
        assert passes == 5
        for j in range(first, last):
            for k, n in zip(asked.chosen[j], asked.draws[j], strict=True):
                seen[j, k] = n
        out[first:last] = 0.0

    def draws_of(n_samples):
        mixtures = [mixture.SampleMixture(sample, 0, number) for number in range(n_samples)]
        document_level.log_likelihood(kernel, (20, 5), "test", block, mixtures, 0, 1, lambda n_done: None)
        return np.array([[seen[j, k] for k in range(3)] for j in range(3)])

    # all tokens are of the topic that has the word
    tau = mixture.SampleMixture(sample).tau
    prior = 50.0 * ((1 - document_level.SHARED) * tau + document_level.SHARED * weights @ tau)
    logs = np.log(weights) + np.array([
        [gammaln(a[m] + n) - gammaln(a[m]) for a in prior] for m, n in ((0, 6), (1, 6), (0, 400))
    ])  # fmt: skip
    behind = logs.max(axis=1, keepdims=True) - logs
    found = draws_of(1)
    np.testing.assert_allclose(found, 20 * np.exp(-behind / np.array([[3], [3], [8]])), rtol=1e-6)
    assert found[2].min() < 1.0
    np.testing.assert_allclose(draws_of(4), found / 2)


@pytest.mark.slow
def test_of_many_clusters_those_of_its_topics_are_estimated():
    """40 clusters, each mostly of 2 of 20 topics: the 8 that are chosen hold the likelihood of a document but for 0.1
    nats, by many particles for each of the 40; the 8 largest do not."""
    generator = np.random.default_rng(0)
    n_clusters, n_topics, per_topic = 40, 20, 5
    pairs = np.array([generator.choice(n_topics, 2, replace=False) for _ in range(n_clusters)])
    tau = np.full((n_clusters, n_topics), 0.002)
    for k, pair in enumerate(pairs):
        tau[k, pair] = (0.6, 0.364)
    psi = np.kron(np.eye(n_topics), np.full(per_topic, 0.8 / per_topic)) + 0.2 / (n_topics * per_topic)
    weights = generator.dirichlet(np.full(n_clusters, 5.0))
    sample = Sample(
        cluster_weights=weights, topic_given_cluster=tau, new_topic_weight=np.zeros(n_clusters),
        topic_words=sp.csr_matrix(psi * 1e6), topic_weights=np.full(n_topics, 1 / n_topics),
        table_concentration=5.0, topic_word_prior=1e-9, new_cluster_weight=0.0, document_concentration=OMEGA,
        cluster=np.arange(n_clusters), contexts=SparseRows.from_dense(np.zeros((n_clusters, 0))),
    )  # fmt: skip
    own = generator.integers(0, n_clusters, 30)
    words = [generator.multinomial(40, generator.dirichlet(OMEGA * tau[k]) @ psi) for k in own]
    block, mixed = mixture.Block(Corpus(np.array(words)), np.arange(30)), mixture.SampleMixture(sample)
    priors, psi_of = OMEGA * mixed.tau, mixed.words(block.words)
    keys = np.array([streams.key(k, "test") for k in range(n_clusters)])
    every, exact = np.tile(np.arange(n_clusters), (30, 1)), np.empty((30, n_clusters))
    given = perplexity_kernels.Asked(priors, keys, every, np.full(every.shape, 100.0)), 5
    perplexity_kernels.left_to_right(*block.arrays, block.words, psi_of, *given, 0, 30, exact)
    exact += np.log(weights)

    def lost(chosen):
        kept = np.take_along_axis(exact, chosen, axis=1)
        return (logsumexp(exact, axis=1) - logsumexp(kept, axis=1)).mean()

    chosen, _ = document_level.choose_clusters(block, priors, mixed.log_weights, psi_of, threads=1)
    assert chosen.shape == (30, document_level.CLUSTERS)
    assert lost(chosen) < 0.1
    assert lost(np.tile(np.argsort(-weights)[:8], (30, 1))) > 3


def test_a_large_document_concentration_is_the_marginal_of_mc2():
    sample = draw_sample(4, new_cluster=0.15)
    shared = model_of(sample).log_likelihood(corpus_of(), "marginal", seed=2)
    for estimator in ("importance", "left_to_right"):
        own = model_of(sample, document_concentration=1e9).log_likelihood(corpus_of(), estimator, seed=2)
        np.testing.assert_allclose(own, shared, atol=1e-5)


def test_predictions_are_the_posterior_of_the_cluster(monkeypatch):
    """Enumerated over topics; 20,000 sweeps leave errors below 0.005, a third of what is allowed."""
    monkeypatch.setattr(document_level, "SWEEPS", 20_000)
    sample = replace(draw_sample(5), document_concentration=OMEGA)
    exact = exact_of(sample)
    exact /= exact.sum(axis=1, keepdims=True)
    found = model_of(sample).predict_proba(corpus_of(), use_context=False)
    np.testing.assert_allclose(found[WORDS], exact[WORDS], atol=0.015)
    np.testing.assert_allclose(found[1], sample.cluster_weights, atol=1e-12)
    shared = model_of(replace(sample, document_concentration=np.inf)).predict_proba(corpus_of(), use_context=False)
    assert abs(found - shared).max() > 0.05


def test_a_prediction_may_leave_a_cluster_without_shared_topics():
    """Three clusters of two topics each, whose words are alike: enumerated; by the draws of every prediction.

    A chain that draws the cluster given the tokens' topics never leaves the first one that it meets: errors up to 0.9.
    """
    tau, generator = np.kron(np.eye(3), [[0.7, 0.3]]) * (1 - 6e-9) + 1e-9, np.random.default_rng(0)
    words = generator.dirichlet([4.0] * V, 6) * 200
    sample = replace(
        draw_sample(1, new_cluster=0.0), document_concentration=OMEGA, cluster_weights=np.array([0.5, 0.3, 0.2]),
        topic_given_cluster=tau, new_topic_weight=np.full(3, 1e-9), topic_words=sp.csr_matrix(np.round(words)),
        topic_weights=np.full(6, 1 / 6), cluster=np.zeros(1, np.int32),
        contexts=SparseRows.from_dense(np.zeros((3, 0))),
    )  # fmt: skip
    counts = generator.multinomial(3, [1 / V] * V, 12)
    _, used = clusters_of(sample, None)
    exact = np.array([[enumerate_document(tokens_of(row), OMEGA * one, topics_of(sample)) for one in used]
                      for row in counts]) * sample.cluster_weights  # fmt: skip
    exact /= exact.sum(axis=1, keepdims=True)
    found = model_of(sample).predict_proba(Corpus(counts), use_context=False)
    assert exact.max(axis=1).min() < 0.6
    assert abs(found - exact).max() < 0.1
    assert np.sqrt(((found - exact) ** 2).mean()) < 0.03


def test_predictions_use_what_is_known_before_the_words(monkeypatch):
    """Weights of a document's own in place of the clusters', as its context gives them; enumerated."""
    monkeypatch.setattr(document_level, "SWEEPS", 20_000)
    sample = replace(draw_sample(5), document_concentration=OMEGA)
    prior = np.random.default_rng(0).dirichlet([0.5] * sample.n_clusters, len(COUNTS))
    exact = exact_of(sample) / sample.cluster_weights * prior
    exact /= exact.sum(axis=1, keepdims=True)
    found = document_level.ClusterChains(sample).probabilities(corpus_of(), np.log(prior) + 3.0, threads=1)
    np.testing.assert_allclose(found[WORDS], exact[WORDS], atol=0.015)
    np.testing.assert_allclose(found[1], prior[1], atol=1e-12)


def test_predictions_depend_neither_on_threads_nor_on_company(monkeypatch, told):
    model = model_of(replace(draw_sample(5), document_concentration=OMEGA))
    corpus = Corpus(np.random.default_rng(1).poisson(1.5, (23, V)))
    alone = model.predict_proba(corpus, use_context=False)
    assert ("clusters of documents", 23, 23) in told
    told.clear()
    assert np.array_equal(model.predict_proba(corpus, use_context=False, threads=3, progress=False), alone)
    assert told == []
    monkeypatch.setattr(document_level, "_DRAWN_BLOCK", 4)
    assert np.array_equal(model.predict_proba(corpus, use_context=False, threads=2), alone)
    monkeypatch.setattr(mixture, "_CELLS", 21)
    assert np.array_equal(model.predict_proba(corpus, use_context=False), alone)
    assert np.array_equal(model.predict_proba(corpus.subset([20, 3, 11]), use_context=False), alone[[20, 3, 11]])
    with pytest.raises(ValueError, match="threads is 0; it must be a whole number of at least 1"):
        model.predict_proba(corpus, use_context=False, threads=0)


def test_predictions_of_long_documents_ignore_random_numbers():
    """200 tokens, three clusters: two orders of the same words' numbers give other streams, and the same shares.

    They differ by 0.09 at most; estimates of each cluster's likelihood by 100 draws, used before, by 0.30.
    """
    generator = np.random.default_rng(4)
    sample = replace(draw_sample(1), document_concentration=OMEGA)
    counts = np.array([generator.multinomial(200, generator.dirichlet([1.0] * V)) for _ in range(20)])
    order = generator.permutation(V)
    turned = replace(sample, topic_words=sample.topic_words[:, order])
    found = model_of(sample).predict_proba(Corpus(counts), use_context=False)
    again = model_of(turned).predict_proba(Corpus(counts[:, order]), use_context=False)
    assert abs(found - again).max() < 0.2
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("estimator", ["marginal", "context", "icml14"])
def test_estimators_for_shared_proportions_are_refused(estimator):
    model = model_of(draw_sample(1), document_concentration=OMEGA)
    with pytest.raises(
        ValueError, match=f"estimator is '{estimator}', which needs documents that share .* use left_to_"
    ):
        model.log_likelihood(corpus_of(), estimator)


def test_such_a_model_is_scored_by_left_to_right():
    model = model_of(draw_sample(1), document_concentration=OMEGA)
    by_default = model.log_likelihood(corpus_of())
    np.testing.assert_array_equal(by_default, model.log_likelihood(corpus_of(), "left_to_right"))
    assert model.perplexity(corpus_of()) == model.perplexity(corpus_of(), "left_to_right")
    assert scores.estimators_of(model, ["marginal", "context", "icml14"]) == ["left_to_right"]
    assert scores.estimators_of(model, ["importance", "marginal"]) == ["importance", "left_to_right"]
    found = scores.evaluate(model, Corpus(COUNTS[:4]), Corpus(COUNTS), ["marginal"])
    assert found["estimator"] == "left_to_right"
    assert found["clusters"] == 3


def test_a_posterior_keeps_its_document_concentration(tmp_path):
    path = tmp_path / "m.npz"
    model = model_of(draw_sample(1), document_concentration=OMEGA)
    model.save(path)
    assert Posterior.load(path).representative.document_concentration == OMEGA
    model_of(draw_sample(1)).save(path)
    assert Posterior.load(path).representative.document_concentration == np.inf
