"""Gauss-Wishart clusters: factors, densities, transition matrices, a plain twin, resume."""

import re

import numpy as np
import pytest
from helpers.fastex_twin import (
    TINY,
    A,
    B,
    G,
    K,
    assert_invariant,
    first_uniform,
    log_joint,
    matrices,
    posterior,
    predictive,
    settings_of,
)
from helpers.fits import fastex
from scipy.stats import multivariate_t

from mc2core import Corpus
from mc2core.base import memory
from mc2core.compute import streams
from mc2core.families.factors import change_by_rank_one, squared_distance
from mc2core.inference.fastex.components import GAUSS_WISHART, GAUSSIAN
from mc2core.inference.fastex.exact import ExactState
from mc2core.inference.fastex.gauss_wishart import (
    FactoredClusters,
    GaussWishartState,
    Priors,
    add_or_remove,
    log_evidence_with,
    no_clusters,
    refresh_all,
    weigh_document,
    workspace,
    write_document,
)
from mc2core.inference.running.loop import fit


def state_of(x, cluster, n_clusters=K):
    return GaussWishartState(Corpus(x), settings_of(GAUSS_WISHART, n_clusters=n_clusters), np.asarray(cluster))


def scores_of(state, j):
    """(K,) log densities with ln(n + G), of document j, the others being where they are in ``state``."""
    work = workspace(*state.clusters.sums.shape)
    write_document(state.documents, j, work.x)
    weigh_document(state.priors, state.clusters, int(state.cluster[j]), work)
    return work.scores - 0.5 * len(work.x) * np.log(np.pi)


def plain_scores(x, cluster, j, n_clusters=K):
    """The twin of :func:`scores_of`, written from the model."""
    others = np.arange(len(x)) != j
    groups = [x[others & (cluster == k)] for k in range(n_clusters)]
    return np.array([np.log(len(rows) + G) + predictive(rows, x[j]) for rows in groups])


class TestFactors:
    def test_factors_follow_a_thousand_changes(self):
        generator = np.random.default_rng(0)
        matrix, window = np.eye(6), list(generator.normal(size=(20, 6)))
        for v in window:
            matrix += np.outer(v, v)
        factor = np.linalg.cholesky(matrix).T.copy()
        for _ in range(1000):
            window.append(10.0 ** generator.uniform(-1, 1) * generator.normal(size=6))
            assert change_by_rank_one(factor, window[-1].copy(), 1)
            assert change_by_rank_one(factor, window.pop(0).copy(), -1)
        matrix = np.eye(6) + np.sum([np.outer(v, v) for v in window], axis=0)
        np.testing.assert_allclose(np.triu(factor), np.linalg.cholesky(matrix).T, rtol=1e-9, atol=1e-9)
        v = generator.normal(size=6)
        assert squared_distance(factor, v.copy()) == pytest.approx(v @ np.linalg.solve(matrix, v), rel=1e-9)

    def test_downdates_that_would_lose_digits_say_so(self):
        for length, kept in ((50.0, True), (1000.0, False)):  # a pivot's square keeps 1 / (1 + length**2) of itself
            v = np.array([length, 0.0, 0.0])
            factor = np.linalg.cholesky(np.eye(3) + np.outer(v, v)).T.copy()
            assert change_by_rank_one(factor, v.copy(), -1) == kept

    def test_moves_refresh_a_factor_that_may_have_lost_digits(self):
        """A document as long as 10**6 leaves no digits of the others in the factor; then it is made from whole
        numbers."""
        x = np.random.default_rng(1).poisson(3.0, (30, 4))
        x[0] = 10**6
        state, work = state_of(x, np.zeros(30, int)), workspace(K, 4)

        def move(j, k, sign):
            write_document(state.documents, j, work.x)
            add_or_remove(state.priors, state.documents, state.clusters, j, k, sign, work)
            work.x[:] = 0.0

        def error():
            rows = x[1:] if state.clusters.n_k[0] == 29 else x
            total = rows.sum(axis=0)
            psi = 2 * B * np.eye(4) + rows.T @ rows - np.outer(total, total) / (A + len(rows))
            factor = np.triu(state.clusters.factor[0])
            return np.abs(factor.T @ factor - psi).max() / np.abs(psi).max()

        move(0, 0, -1)
        assert state.clusters.downdates[0] == 0
        assert error() < 1e-14
        for repeat in range(1, 251):
            move(1, 0, -1)
            move(1, 0, 1)
            assert state.clusters.downdates[0] == repeat % 101  # anew at every 101st
        assert error() < 1e-13


class TestDensities:
    def test_densities_are_students_t(self):
        """Of documents outside and inside of clusters: among many, alone, far away, and of clusters without
        documents."""
        generator = np.random.default_rng(2)
        x = generator.poisson(generator.gamma(2.0, 2.0, (25, 5)))
        x[3], x[4] = 40_000, 0
        cluster = np.array([0] * 20 + [1] + [2] * 4)
        state = state_of(x, cluster, n_clusters=5)
        for j in (0, 1, 3, 4, 20, 21):
            np.testing.assert_allclose(scores_of(state, j), plain_scores(x, cluster, j, 5), rtol=1e-9, atol=1e-9)

    def test_prior_predictive_is_the_documented_one(self):
        """Mean 0 worth a documents; V + 1 degrees of freedom, so each word has df 2 whatever V is, and scale 2 b."""
        for n_words in (1, 3, 8):
            x = np.arange(1.0, n_words + 1)
            model, clusters = Priors(A, 1.0, B), no_clusters(1, n_words)
            refresh_all(model, clusters)
            found = log_evidence_with(
                model, 0, clusters.sums[0], clusters.factor[0], clusters.head[0], x, np.empty(n_words)
            )
            shape = 2 * B * (A + 1) / (2 * A) * np.eye(n_words)
            expected = multivariate_t.logpdf(x, shape=shape, df=2)
            assert found - 0.5 * n_words * np.log(np.pi) == pytest.approx(expected, rel=1e-12)

    def test_log_joint_is_that_of_the_model(self):
        for cluster in ([0, 1, 2, 0], [1, 1, 1, 1], [2, 0, 0, 0]):
            state = state_of(TINY.content.toarray(), cluster)
            assert state.log_joint == pytest.approx(log_joint(np.array(cluster), GAUSS_WISHART), rel=1e-12)

    def test_of_one_word_it_is_the_gaussian(self):
        x, cluster = np.array([[3], [0], [7], [1], [12]]), np.array([0, 1, 0, 2, 0])
        gaussian = ExactState(Corpus(x), settings_of(GAUSSIAN), cluster)
        assert state_of(x, cluster).log_joint == pytest.approx(gaussian.log_joint, rel=1e-12)


def correlated_corpus(n_documents=240):
    """Two clusters of the same means and variances, one with words that go together, one with words that do not."""
    generator = np.random.default_rng(8)
    truth = np.arange(n_documents) % 2
    shared, own = generator.poisson(60, (n_documents, 1)), generator.poisson(60, (n_documents, 3))
    return Corpus(np.where(truth[:, None] == 0, shared + generator.poisson(1, (n_documents, 3)), own + 1)), truth


class TestChain:
    def test_draws_leave_the_enumerated_posterior_as_it_is(self):
        def rows(cluster):
            state = state_of(TINY.content.toarray(), cluster)
            logs = np.array([scores_of(state, j) for j in range(TINY.n_documents)])
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            return weights / weights.sum(axis=1, keepdims=True)

        assert_invariant(posterior(GAUSS_WISHART), matrices(rows))

    def test_sweeps_are_those_of_a_plain_twin(self):
        """Every draw of 15 sweeps, by the same uniform numbers from densities that scipy computes."""
        x = np.random.default_rng(3).poisson(1.0, (20, 3))
        cluster = np.arange(20) % 4
        state, moves, moved = state_of(x, cluster, n_clusters=4), np.zeros(2, np.int64), 0
        for t in range(15):
            key = streams.key(4, "test", t)
            state.sweep(key, moves)
            for j in range(20):
                weights = np.exp(plain_scores(x, cluster, j, 4))
                new = np.searchsorted(np.cumsum(weights), first_uniform(key, j) * weights.sum())
                moved += new != cluster[j]
                cluster[j] = new
            assert np.array_equal(state.cluster, cluster)
        assert moves.tolist() == [moved, moved]
        assert moved > 50

    def test_what_a_sweep_leaves_depends_on_the_assignments_alone(self):
        x = np.random.default_rng(5).poisson(1.0, (60, 4))
        state, moves = state_of(x, np.arange(60) % 6, n_clusters=6), np.zeros(2, np.int64)
        for t in range(20):
            state.sweep(streams.key(0, "test", t), moves)
        assert moves[0] > 200
        fresh = state_of(x, state.cluster, n_clusters=6)
        for name in FactoredClusters._fields:
            assert np.array_equal(getattr(state.clusters, name), getattr(fresh.clusters, name)), name
        assert state.log_joint == fresh.log_joint

    def test_finds_clusters_that_differ_by_their_covariance_alone(self):
        corpus, truth = correlated_corpus()
        for component, least, most in (("gauss_wishart", 0.9, 1.0), ("gaussian", 0.5, 0.65)):
            engine = fastex(n_clusters=2, component=component, proposal="exact")
            right = np.mean(fit(corpus, *engine, iterations=60, seed=3, progress=False).state.cluster == truth)
            assert least < max(right, 1 - right) < most

    def test_threads_and_resume_leave_the_bits_as_they_are(self, tmp_path):
        corpus, _ = correlated_corpus()
        settings = {"n_clusters": 6, "component": "gauss_wishart"}
        whole = fit(corpus, *fastex(**settings), iterations=8, seed=1, progress=False)
        path = tmp_path / "run.npz"
        fit(corpus, *fastex(**settings), iterations=3, seed=1, checkpoint=path, progress=False)
        rest = fit(corpus, *fastex(**settings, threads=2), iterations=8, seed=1, checkpoint=path, progress=False)
        assert np.array_equal(whole.state.cluster, rest.state.cluster)
        assert whole.trace["log_joint"].tolist() == rest.trace["log_joint"].tolist()
        again = fit(corpus, *fastex(**settings), iterations=8, seed=1, checkpoint=path, progress=False)
        assert again.state.log_joint == whole.state.log_joint


class TestRefused:
    @pytest.mark.parametrize("proposal", ["hash", "neighbours"])
    def test_other_proposals(self, proposal):
        with pytest.raises(ValueError, match=f"not {proposal!r}|not 'gauss_wishart'"):
            fastex(component="gauss_wishart", proposal=proposal)

    def test_auto_is_exact_and_memory_is_asked_for(self, monkeypatch):
        engine = fastex(component="gauss_wishart", n_clusters=5000)
        assert engine.chosen_proposal(TINY) == "exact"
        monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
        message = "proposal='exact' with 5000 clusters and 400 words would take 12.8 GB of memory, but 1.0 GB"
        with pytest.raises(
            ValueError, match=re.escape(message) + ".*; use fewer clusters or words, since each cluster"
        ):
            engine.init(Corpus(np.ones((3, 400), int)), 0)

    def test_counts_whose_squares_do_not_fit(self):
        large = Corpus(np.array([[2**31 - 1, 0], [0, 1], [2**31 - 1, 1]]))
        with pytest.raises(ValueError, match=r"word 0 occurs 4294967294 times in all, .* component='gauss_wishart'"):
            fastex(n_clusters=2, component="gauss_wishart").init(large, 0)

    @pytest.mark.parametrize("rate_prior", [1e-90, 1e-6, 1e6, 1e90])
    @pytest.mark.parametrize("topic_word_prior", [1e-90, 1e6])
    def test_extremes_that_are_allowed_give_numbers(self, topic_word_prior, rate_prior):
        """Words that no document has, empty documents, equal ones, more clusters than documents."""
        corpus = Corpus(np.array([[5, 5, 0, 10**5], [5, 5, 0, 10**5], [0, 0, 0, 0], [1, 2, 0, 3], [0, 0, 0, 0]]))
        engine = fastex(
            component="gauss_wishart", n_clusters=9, topic_word_prior=topic_word_prior, rate_prior=rate_prior
        )
        try:
            done = fit(corpus, *engine, iterations=5, seed=0, progress=False)
        except ValueError as error:
            assert "the most extreme" in str(error)  # noqa: PT017
            assert rate_prior == 1e-90  # which rounding of counts' squares leaves nothing of
            return
        assert np.isfinite(done.state.log_joint)
        assert done.posterior.cluster_weights.sum() == pytest.approx(1.0)
