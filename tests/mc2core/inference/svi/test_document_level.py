"""SVI with a document level proved: plain twin, enumeration, finite differences, limits."""

import math

import numpy as np
import pytest
from helpers.crossed import first
from helpers.fits import FIXED, svi
from helpers.svi_twin import (
    dirichlet_logs,
    engine_of,
    log_weights,
    naive_direct,
    resumed_in_parts,
    small_corpus,
    state_that_fits_nowhere,
)
from scipy.special import digamma, gammaln, logsumexp

from mc2core import Corpus, clustering
from mc2core.inference.running.loop import fit
from mc2core.inference.svi import start
from mc2core.inference.svi.documents import take_batch
from mc2core.inference.svi.local import document_level
from mc2core.inference.svi.local.document_level import DocumentPosteriors, log_evidence, tables_of
from mc2core.inference.svi.rising import expected_tables, log_rising_factorial, tables_of_lengths, uncertain_tables


def engine(n_clusters=3, n_topics=4, document_concentration="learn", **settings):
    return engine_of(n_clusters, None, n_topics, document_concentration=document_concentration, **settings)


def visit(state, corpus):
    """The local step of all documents, free and without counts to start from, as in a mini-batch."""
    state.n_updates, state.settings = 1, state.settings._replace(batch_size=corpus.n_documents)
    return document_level.local_step(state, take_batch(corpus, state.contexts, np.arange(corpus.n_documents)), None)


def twin(corpus, state):
    """Token by token: (score (J, K), counts (J, K, M), sums of squared shares (J, K, M), topic words (J, K, V, M))."""
    log_tau, log_psi = dirichlet_logs(state)
    omega = state.document_concentration
    a = omega * np.exp(log_tau[:, :-1])
    beta = log_weights(state.group_weights)[:-1]
    mean = np.exp(beta) / np.exp(beta).sum() @ a
    context = state.contexts.log_likelihood(state.contexts.expected_parameters(state.natural))
    n_clusters, n_topics = a.shape
    score = np.zeros((corpus.n_documents, n_clusters))
    counts, squares = np.zeros((2, corpus.n_documents, n_clusters, n_topics))
    topic_words = np.zeros((corpus.n_documents, n_clusters, corpus.n_words, n_topics))

    def passes(tokens, priors, n, most):
        """Under every prior until the counts have settled under all of them."""
        gamma = np.zeros((len(priors), len(tokens), n_topics))
        for _ in range(most):
            before = n
            log_gamma = log_psi[:, tokens].T + np.where(n.any(), digamma(priors + n), 0.0)[:, None]
            gamma[:] = np.exp(log_gamma - logsumexp(log_gamma, axis=2, keepdims=True))
            n = gamma.sum(axis=1)
            if abs(n - before).sum(axis=1).max() < 1e-3 * len(tokens):
                break
        return gamma, n

    for j, row in enumerate(corpus.content.toarray()):
        tokens = np.repeat(np.arange(corpus.n_words), row)
        start = passes(tokens, mean[None], np.zeros(n_topics), document_level.SCREENING_PASSES)[1]
        for k, (gamma, n) in enumerate(zip(*passes(tokens, a, start, document_level.PASSES), strict=True)):
            entropy = -np.sum(gamma[gamma > 0] * np.log(gamma[gamma > 0]))
            value = sum(gamma[i] @ log_psi[:, w] for i, w in enumerate(tokens)) + entropy
            value += gammaln(omega) - gammaln(omega + len(tokens)) + np.sum(gammaln(a[k] + n) - gammaln(a[k]))
            score[j, k], counts[j, k] = value + beta[k] + context[j, k], n
            squares[j, k] = np.sum(gamma**2, axis=0)
            np.add.at(topic_words[j, k], tokens, gamma)
    return score, counts, squares, topic_words


def some_local(rng, n_documents=5, n_clusters=3, n_topics=4):
    cluster = np.array([rng.permutation(n_clusters)[:2] for _ in range(n_documents)], np.int32)
    counts = rng.gamma(0.5, 8.0, (n_documents, 2, n_topics))
    lengths = rng.integers(1, 40, n_documents).astype(float)
    return DocumentPosteriors(cluster, rng.dirichlet([1, 1], n_documents), counts, 0.3 * counts, lengths)


def drawn_corpus(seed, n_clusters=4, n_documents=160, n_topics=8, n_words=80, length=60):
    """Documents of clusters that prefer topics, each with proportions around its cluster's (omega 6)."""
    rng = np.random.default_rng(seed)
    psi, tau = rng.dirichlet(np.full(n_words, 0.08), n_topics), rng.dirichlet(np.full(n_topics, 0.25), n_clusters)
    truth = np.arange(n_documents) % n_clusters
    rows = [rng.multinomial(length, rng.dirichlet(6.0 * tau[k] + 1e-3) @ psi) for k in truth]
    return Corpus(np.array(rows)), truth


class TestLocalStep:
    @pytest.mark.parametrize("omega", [0.5, 10.0])
    def test_a_local_step_equals_its_plain_twin(self, omega, monkeypatch):
        monkeypatch.setattr(document_level, "_MIN_COUNT", 0.0)  # the twin leaves no topic out
        for seed in range(3):
            corpus = small_corpus(seed, mean_count=2.0)
            state = engine(document_concentration=omega).init(corpus, seed)
            rng = np.random.default_rng(seed)
            state.tau.n_km *= rng.random(state.tau.n_km.shape)
            step = visit(state, corpus)
            score, counts, squares, topic_words = twin(corpus, state)
            evidence = logsumexp(score, axis=1)
            mu = np.exp(score - evidence[:, None])
            np.testing.assert_allclose(step.documents.shares, mu, rtol=1e-9, atol=1e-12)
            assert step.documents.log_evidence == pytest.approx(evidence.sum(), rel=1e-11)
            place = step.posteriors.cluster[:, :, None]
            np.testing.assert_allclose(np.take_along_axis(counts, place, 1), step.posteriors.counts, atol=1e-10)
            np.testing.assert_allclose(np.take_along_axis(squares, place, 1), step.posteriors.squares, atol=1e-10)
            batch = take_batch(corpus, state.contexts, np.arange(corpus.n_documents))
            known = np.einsum("jk,jkwm->wm", mu, topic_words)
            np.testing.assert_allclose(step.topic_words, known[batch.words], atol=1e-10)

    def test_large_omega_is_shared_proportions(self):
        corpus = small_corpus(2, mean_count=2.0)
        state = engine(document_concentration=1e9).init(corpus, 0)
        step = visit(state, corpus)
        known = naive_direct(corpus, state)
        np.testing.assert_allclose(step.documents.shares, known[0], rtol=1e-5, atol=1e-9)
        assert step.documents.log_evidence == pytest.approx(known[1].sum(), abs=1e-5)
        np.testing.assert_allclose(tables_of(step.posteriors, state.theta.prior(state.tau))[0], known[2], atol=1e-4)
        assert step.topic_words.sum() == pytest.approx(corpus.n_tokens)

    def test_words_whose_sums_vanish(self):
        corpus, state = state_that_fits_nowhere(document_concentration=1e-3)
        step = visit(state, corpus)
        assert np.isfinite(step.documents.log_evidence)
        np.testing.assert_allclose(step.documents.shares.sum(axis=1), 1.0)
        assert step.topic_words.sum() == pytest.approx(corpus.n_tokens)


class TestTables:
    @pytest.mark.parametrize("a", [1e-100, 1e-9, 0.3, 20.0, 9.9e3, 1.01e4, 1e9])
    def test_rising_factorials(self, a):
        """Whole numbers by their products; between them, by what one more adds."""
        for n in (0, 1, 2, 700):
            assert log_rising_factorial(a, n) == pytest.approx(
                math.fsum(math.log(a + i) for i in range(n)), rel=1e-12, abs=1e-9
            )
            tables = math.fsum(a / (a + i) for i in range(n))
            assert expected_tables(a, n) == pytest.approx(tables, rel=1e-9, abs=1e-8)
        for n in (0.01, 0.5, 33.3):
            assert log_rising_factorial(a, n + 1) - log_rising_factorial(a, n) == pytest.approx(
                math.log(a + n), abs=1e-9
            )
            assert expected_tables(a, n + 1) - expected_tables(a, n) == pytest.approx(a / (a + n), abs=1e-8)

    def test_derivatives_by_tau_and_omega(self):
        rng = np.random.default_rng(0)
        documents, log_tau, omega = some_local(rng), np.log(rng.dirichlet(np.ones(4), 3)), 3.7

        def value(log_tau, omega):
            return log_evidence(documents, omega * np.exp(log_tau), omega, None)

        (tables, of_document), h = tables_of(documents, omega * np.exp(log_tau)), 1e-5
        for k, m in np.ndindex(3, 4):
            step = np.zeros((3, 4))
            step[k, m] = h
            slope = (value(log_tau + step, omega) - value(log_tau - step, omega)) / (2 * h)
            assert tables[k, m] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        slope = (value(log_tau, omega * np.exp(h)) - value(log_tau, omega * np.exp(-h))) / (2 * h)
        slopes = of_document - tables_of_lengths(documents.lengths, omega)
        assert slopes.sum() == pytest.approx(slope, rel=1e-6)
        for j in range(len(slopes)):
            alone = DocumentPosteriors(*(one[[j]] for one in documents))
            assert tables_of(alone, omega * np.exp(log_tau))[0].sum() == pytest.approx(of_document[j])

    @pytest.mark.parametrize("a", [0.02, 0.7, 5.0, 80.0])
    def test_tables_of_numbers_of_tokens_that_are_not_certain(self, a):
        """Against the distribution of the number of tokens, one after another; exactly where it is certain."""
        for tokens in (np.array([0.9]), np.full(8, 0.02), np.linspace(0.05, 0.95, 12), np.full(40, 0.3)):
            number = np.ones(1)
            for gamma in tokens:
                number = np.convolve(number, [1.0 - gamma, gamma])
            tables = [math.fsum(a / (a + i) for i in range(n)) for n in range(len(number))]
            known = float(number @ tables)
            assert uncertain_tables(a, tokens.sum(), tokens @ tokens) == pytest.approx(known, rel=0.05)
            fixed = math.fsum(a / (a + i) for i in range(len(tokens)))
            assert uncertain_tables(a, len(tokens), len(tokens)) == pytest.approx(fixed, rel=1e-9)


class TestClusters:
    @pytest.mark.parametrize("batch_size", [None, 20])
    def test_clusters_are_recovered(self, batch_size):
        corpus, truth = drawn_corpus(1)
        one = engine(8, 24, contexts={}, batch_size=batch_size, topic_word_prior=0.05, initialisation="seeded")
        result = fit(corpus, *one, iterations=12, seed=0, progress=False)
        assert clustering.nmi(truth, result.state.cluster) > 0.6
        assert 2.0 < result.state.document_concentration < 20.0
        assert result.posterior.representative.document_concentration == result.state.document_concentration
        assert result.trace.document_concentration.iloc[-1] == result.state.document_concentration

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", first(range(3)))
    def test_short_documents_keep_topics_apart(self, seed):
        """20 tokens each under the truncations of a large corpus, 25 times the truth.

        A document's counts are then below one for each topic, and all tokens went to the one that all clusters have:
        there were 1 cluster and 1 topic after two epochs. The truth is 5 clusters, which tell the documents' to NMI
        0.86 to 0.90 (each document by the likelihood of its counts under the true proportions), and 10 topics.
        """
        corpus, truth = drawn_corpus(seed, n_clusters=5, n_documents=800, n_topics=10, n_words=200, length=20)
        one = engine(32, 256, contexts={}, batch_size=25, initialisation="seeded")
        state = fit(corpus, *one, iterations=8, seed=0, progress=False).state
        sizes, shares = np.bincount(state.cluster), state.n_m / state.n_m.sum()
        assert 5 <= np.count_nonzero(sizes >= 0.01 * len(truth)) <= 15
        assert 7 <= np.count_nonzero(shares >= 0.01) <= 25
        assert shares.max() < 0.3
        assert clustering.nmi(truth, state.cluster) > 0.5

    def test_unseen_documents_join_the_nearest_cluster(self, monkeypatch):
        monkeypatch.setattr(start, "_SAMPLE", 40)
        corpus, _ = drawn_corpus(2, n_documents=160)
        corpus = Corpus(np.vstack([corpus.content.toarray(), np.zeros((2, corpus.n_words), int)]))
        settings = {"contexts": {}, "batch_size": 20, "initialisation": "seeded"}
        seated = (
            engine_of(5, None, 9, **settings).init(corpus, 0).cluster
        )  # the same start without seats for the others
        state = engine(5, 9, **settings).init(corpus, 0)
        roots = np.sqrt(corpus.content.toarray() / np.maximum(corpus.document_lengths, 1)[:, None])
        centres = np.array([roots[seated == k].sum(axis=0) for k in range(5)])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-300)
        nearest = np.argmin(np.linalg.norm(roots[:, None] - centres, axis=2), axis=1)
        known = np.where(seated >= 0, seated, np.where(corpus.document_lengths > 0, nearest, -1))
        assert np.count_nonzero(seated < 0) >= 122 > np.count_nonzero(state.cluster < 0)
        np.testing.assert_array_equal(state.cluster, known)
        begun = state.cluster.copy()
        for rows in corpus.batches(20, 0, 1):
            engine(5, 9, **settings).batch_step(corpus, state, rows, 0.1, None)
        np.testing.assert_array_equal(state.cluster[known >= 0], begun[known >= 0])

    def test_documents_are_held_for_an_epoch(self):
        corpus, _ = drawn_corpus(2, n_documents=30)
        one = engine(5, 9, contexts={}, batch_size=7, topic_word_prior=0.05, initialisation="seeded")
        state = one.init(corpus, 0)
        start = state.cluster.copy()
        for rows in corpus.batches(7, 0, 1):
            one.batch_step(corpus, state, rows, 0.1, None)
        np.testing.assert_array_equal(state.cluster, start)


class TestRun:
    @pytest.mark.parametrize("batch_size", [None, 4])
    def test_resumed_within_an_epoch(self, tmp_path, batch_size):
        pair = engine(9, 11, batch_size=batch_size, initialisation="seeded")
        resumed_in_parts(pair, small_corpus(9, n_documents=30), tmp_path, 3)

    @pytest.mark.parametrize("value", [1e-10, 1e10])
    @pytest.mark.parametrize(
        "name", ["group_concentration", "table_concentration", "topic_concentration", "topic_word_prior"]
    )
    def test_concentrations_at_the_ends_of_their_range(self, name, value):
        corpus = small_corpus(1, n_documents=8, mean_count=1.5)
        for batch_size in (None, 3):
            one = engine(3, 4, batch_size=batch_size, **(FIXED | {name: value}))
            assert np.isfinite(fit(corpus, *one, iterations=4, progress=False).trace.elbo).all()


class TestSettings:
    @pytest.mark.parametrize(
        ("n_documents", "length", "truncations"),
        [
            (1, 50_000, (2, 16)),
            (33, 2400, (9, 72)),
            (300, 2, (20, 21)),
            (1566, 1322, (63, 504)),
            (3700, 99, (100, 366)),
            (10**5, 2, (100, 200)),
        ],
    )
    def test_truncations_by_rule(self, n_documents, length, truncations):
        corpus = Corpus(np.array([[length]])).subset(np.zeros(n_documents, int))
        pair = svi(document_level=True)
        settings = pair.engine.resolved(pair.model, corpus.n_documents, corpus.n_tokens)
        assert (settings.n_clusters, settings.n_topics) == truncations
        assert pair.truncations(corpus) == {"topics": truncations[1]}  # clusters are joined: they do not follow it

    @pytest.mark.parametrize(
        ("n_documents", "batch_size", "used"),
        [
            (1566, "auto", 49),
            (100, "auto", 20),
            (10**5, "auto", 400),
            (1566, 400, 400),
            (100, 30, 30),
            (100, None, None),
        ],
    )
    def test_batch_size_by_rule(self, n_documents, batch_size, used):
        corpus = Corpus(np.array([[1]])).subset(np.zeros(n_documents, int))
        for has_level, size in ((True, used), (False, 400 if batch_size == "auto" else batch_size)):
            model, one = svi(document_level=has_level, batch_size=batch_size)
            assert one.resolved(model, corpus.n_documents, corpus.n_tokens).batch_size == size
