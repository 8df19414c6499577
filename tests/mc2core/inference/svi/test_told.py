"""SVI told the number of clusters: a finite mixture, whose N clusters stay. Bounds are in the tests of both levels."""

import numpy as np
import pytest
from helpers.fits import svi
from helpers.svi_twin import resumed_in_parts, small_corpus
from scipy import stats

from mc2core import Corpus, clustering
from mc2core.inference.running.loop import fit
from mc2core.inference.svi.sticks import ClusterWeights

BOTH_LEVELS = pytest.mark.parametrize("document_level", [False, True])


def told(n_clusters, document_level, **settings):
    return svi(n_clusters=n_clusters, document_level=document_level, **({"contexts": ["time", "tag"]} | settings))


class TestWeights:
    def test_expectations_are_those_of_a_dirichlet(self):
        n_k, alpha = np.array([7.5, 0.0, 2.25]), 4.0
        law = ClusterWeights(3)
        q = law.posterior(n_k, alpha)
        known = stats.dirichlet(n_k + alpha / 3)
        np.testing.assert_allclose(law.expected(q), known.mean(), rtol=1e-12)
        marginals = [stats.beta(a, (n_k + alpha / 3).sum() - a) for a in n_k + alpha / 3]
        np.testing.assert_allclose(law.expected_logs(q), [one.expect(np.log) for one in marginals], rtol=1e-6)
        np.testing.assert_allclose(law.n_k(q, alpha), n_k, atol=1e-12)
        drawn = known.rvs(200_000, random_state=0)
        prior = stats.dirichlet(np.full(3, alpha / 3))
        terms = known.logpdf(drawn.T) - prior.logpdf(drawn.T)
        assert law.divergence(q, alpha) == pytest.approx(terms.mean(), abs=5 * terms.std() / len(terms) ** 0.5)

    def test_nothing_seen_costs_nothing(self):
        law = ClusterWeights(4)
        assert law.divergence(law.posterior(np.zeros(4), 40.0), 40.0) == pytest.approx(0.0, abs=1e-9)


class TestRun:
    @BOTH_LEVELS
    @pytest.mark.parametrize("batch_size", [None, 5])
    @pytest.mark.parametrize("n_clusters", [1, 3, 25])
    def test_clusters_stay_in_place(self, n_clusters, batch_size, document_level):
        """25 are more than documents: those without any stay, and weigh what their prior says."""
        corpus = small_corpus(3, n_documents=20)
        one = told(n_clusters, document_level, batch_size=batch_size)
        result = fit(corpus, *one, iterations=5, progress=False)
        state, sample = result.state, result.posterior.representative
        assert state.tau.n_km.shape[0] == state.context_counts.shape[1] == n_clusters
        assert state.n_k.min() > -1e-9
        assert state.n_k.sum() == pytest.approx(20)
        in_use = np.unique(state.cluster)
        alpha = min(10.0 * n_clusters, 100.0)
        expected = (state.n_k + alpha / n_clusters) / (20 + alpha)
        left = 1.0 - expected[in_use].sum()
        assert sample.new_cluster_weight == pytest.approx(left if len(in_use) < n_clusters else 0.0, abs=1e-9)
        np.testing.assert_allclose(sample.cluster_weights, expected[in_use] / expected[in_use].sum(), rtol=1e-9)
        assert np.isfinite(result.posterior.perplexity(corpus))
        assert one.truncations(corpus).keys() == {"topics"}

    @BOTH_LEVELS
    def test_resumed_within_an_epoch(self, tmp_path, document_level):
        corpus = small_corpus(9, n_documents=200)
        one = told(4, document_level, batch_size=4)
        state, _ = resumed_in_parts(one, corpus, tmp_path, 2)
        with pytest.raises(ValueError, match=r"'group_weights' has the shape \(1, 4\); \(1, 5\) is needed"):
            told(5, document_level, batch_size=4).restore(corpus, state.arrays())
        found = svi(
            max_clusters=4, max_topics=40, document_level=document_level, contexts=["time", "tag"], batch_size=4
        )
        with pytest.raises(ValueError, match=r"'group_weights' has the shape \(1, 4\); \(2, "):
            found.restore(corpus, state.arrays())

    @BOTH_LEVELS
    @pytest.mark.parametrize("initialisation", ["random", "gibbs"])
    def test_from_every_start(self, initialisation, document_level):
        trace = fit(
            small_corpus(4, n_documents=15), *told(3, document_level, initialisation=initialisation, batch_size=None),
            iterations=8, progress=False,
        ).trace  # fmt: skip
        assert np.diff(trace.elbo).min() > -1e-7

    @BOTH_LEVELS
    def test_as_many_clusters_as_are_asked_for(self, document_level):
        """Six classes of documents with topics of their own: those, told 6; and no more than 3, told 3."""
        rng = np.random.default_rng(5)
        truth = np.arange(240) % 6
        topics = rng.dirichlet(np.full(60, 0.05), 6)
        corpus = Corpus(np.array([rng.multinomial(40, topics[k]) for k in truth]))
        for n_clusters in (6, 3):
            cluster = fit(
                corpus, *told(n_clusters, document_level, contexts={}), iterations=10, progress=False
            ).posterior.cluster
            assert len(np.unique(cluster)) == n_clusters
            if n_clusters == 6:
                assert clustering.adjusted_rand_index(truth, cluster) > 0.95
