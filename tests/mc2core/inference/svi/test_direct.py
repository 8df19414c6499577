"""SVI-MC2 with direct assignment proved: against a per-token twin, enumeration and finite differences."""

import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fits import FIXED, at_strength, svi
from helpers.svi_twin import (
    FAMILIES,
    corpus_of,
    engine_of,
    log_evidence_given_weights,
    log_words,
    naive_direct,
    naive_direct_elbo,
    small_corpus,
    some_families,
    state_that_fits_nowhere,
)

from mc2core import Corpus
from mc2core.compute.buffers import Buffers
from mc2core.families.stacked import StackedContexts
from mc2core.inference.running.loop import fit
from mc2core.inference.svi.documents import take_batch
from mc2core.inference.svi.empirical_bayes import Objective, TopicWeights, best_topic_prior, prior_terms
from mc2core.inference.svi.local.direct import (
    WordTopics,
    local_step,
    lost_pairs,
    recompute_in_logarithms,
    topic_statistics,
    word_topics,
)
from mc2core.inference.svi.words import WORD_BLOCK, WordScores


def direct(n_clusters=3, n_topics=4, **settings):
    return engine_of(n_clusters, None, n_topics, **settings)


def some_weights(rng, n_topics):
    drawn = rng.dirichlet(np.ones(n_topics + 1))
    return TopicWeights(drawn[:-1], drawn[-1], float(rng.gamma(2.0)))


def words_of(state, n):
    """Of the first n words."""
    return word_topics(state, state.tau.expected_log_tau(), state.expectations(), np.arange(n), None)


def gradient(objective, weights):
    """Central differences with respect to (M,) eps, eps_rest (as if they were free) and ln v."""

    def slope(h, **fields):
        at = [objective.value(weights._replace(**{name: f(x) for name, f in fields.items()})) for x in (h, -h)]
        return (at[0] - at[1]) / (2 * h)

    topics, remaining, v = weights
    one = np.eye(len(topics))
    by_topics = [slope(1e-6 * topics[m], topics=lambda h, m=m: topics + h * one[m]) for m in range(len(topics))]
    return np.array(by_topics), slope(1e-7, remaining=lambda h: remaining + h), slope(1e-5, v=lambda h: v * np.exp(h))


TINY = {
    "words": (corpus_of([[0, 0, 1], [0, 1], [2, 2]], 3), {}),
    "two kinds": (
        corpus_of([[0] * 8 + [1], [0] * 6, [2] * 7 + [3], [2] * 5, [2] * 6], 4, contexts={"time": np.arange(5.0)}),
        {"time": FAMILIES["time"]},
    ),
}


class TestStep:
    @pytest.mark.parametrize("topic_word_prior", [0.3, 1e-3])
    def test_a_local_step_equals_the_per_token_twin(self, topic_word_prior):
        for seed in range(3):
            corpus = small_corpus(seed)
            state = direct(topic_word_prior=topic_word_prior).init(corpus, seed)
            rng = np.random.default_rng(seed)
            state.tau.n_km *= rng.random(state.tau.n_km.shape)
            batch = take_batch(corpus, state.contexts, np.arange(corpus.n_documents))
            step, twin = local_step(state, batch, None), naive_direct(corpus, state)
            np.testing.assert_allclose(step.documents.shares, twin[0], rtol=1e-10, atol=1e-12)
            assert step.documents.log_evidence == pytest.approx(twin[1].sum(), rel=1e-12)
            np.testing.assert_allclose(step.n_km, twin[2], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(step.topic_words, twin[3][batch.words], rtol=1e-10, atol=1e-12)

    def test_words_that_no_topic_expects(self):
        """At s = .001 and a topic of weight 1e-4, exp(E ln psi) and exp(E ln tau) are both 0 in float64."""
        corpus = small_corpus(0)
        state = direct(3, 3, topic_word_prior=1e-3).init(corpus, 0)
        state.topic_words[:] = np.array([[40.0, 0, 0], [0, 40.0, 0], [0, 0, 40.0], [40.0, 0, 0], [0, 0, 0]])
        state.rescale()
        state.tau.n_km = np.diag([50.0, 60.0, 70.0])[: len(state.tau.n_km)]
        state.tau.topic_weights, state.tau.remaining = np.full(3, 1e-4), 1 - 3e-4
        words = words_of(state, corpus.n_words)
        assert (words.sums == 0).sum() == 5
        mass = np.full(words.sums.shape, 0.5)
        assert recompute_in_logarithms(words, lost_pairs(words, mass))
        assert not recompute_in_logarithms(words, lost_pairs(words, mass))
        n_km, topic_words = topic_statistics(words, mass, None)
        twin = naive_direct(corpus, state, word_mass=0.5)
        np.testing.assert_allclose(words.log_likelihood, twin[4], rtol=1e-10)
        np.testing.assert_allclose(n_km, twin[2], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(topic_words, twin[3], rtol=1e-9, atol=1e-12)
        assert topic_words.sum() == pytest.approx(0.5 * words.sums.size)

    @pytest.mark.parametrize("density", [0.02, 0.9])
    def test_topic_statistics_over_many_blocks_equal_matrix_products(self, density):
        """Masses that are few and many, over more blocks of words than shares."""
        rng = np.random.default_rng(3)
        n_words, n_clusters, n_topics = 9 * WORD_BLOCK + 5, 6, 4
        weights, tau = rng.random((n_words, n_topics)), rng.random((n_clusters, n_topics))
        mass = np.where(rng.random((n_words, n_clusters)) < density, rng.random((n_words, n_clusters)), 0.0)
        mass[:, 2] = 0.0
        sums, nothing = weights @ tau.T, np.empty(0)
        of_topics = WordScores(nothing, nothing, weights)
        words = WordTopics(of_topics, sums, nothing, False, set(), nothing, tau, Buffers())
        words.buffers.empty("n_km", 8 * tau.size)[:] = np.nan
        n_km, topic_words = topic_statistics(words, mass, None)
        np.testing.assert_allclose(n_km, ((mass / sums).T @ weights) * tau, rtol=1e-10)
        np.testing.assert_allclose(topic_words, (mass / sums) @ tau * weights, rtol=1e-10)

    def test_batches_use_the_same_memory(self):
        """The pages of new arrays took a sixth of an epoch of small batches."""
        corpus = small_corpus(0)
        state = direct().init(corpus, 0)
        one, other = (words_of(state, n) for n in (corpus.n_words, 3))
        for name in ("sums", "log_likelihood"):
            assert np.shares_memory(getattr(one, name), getattr(other, name))
        assert np.shares_memory(one.of_topics.scores, other.of_topics.scores)
        assert np.shares_memory(one.of_topics.weights, other.of_topics.weights)

    def test_shares_of_a_document_that_fits_nowhere(self):
        """Its words are lost in every cluster: bounds from above alone would give it any shares."""
        corpus, state = state_that_fits_nowhere()
        step = local_step(state, take_batch(corpus, state.contexts, np.arange(3)), None)
        assert step.words.exact
        np.testing.assert_allclose(step.documents.shares, naive_direct(corpus, state)[0], rtol=1e-9, atol=1e-18)


class TestWeights:
    def test_expected_tables_are_the_slope_of_the_bound(self):
        rng = np.random.default_rng(0)
        for _ in range(5):
            n_km = rng.gamma(0.3, 20.0, (4, 3)) * (rng.random((4, 3)) < 0.7)
            objective, weights = Objective(n_km, 1.7, (0.7, 1.3)), some_weights(rng, 3)
            known = weights.topics * gradient(objective, weights)[0]
            np.testing.assert_allclose(objective.expected_tables(weights), known, rtol=1e-5, atol=1e-5)

    def test_steps_end_at_zero_gradient(self):
        rng = np.random.default_rng(1)
        n_km = rng.gamma(0.5, 30.0, (6, 4))
        objective = Objective(n_km, 1.2, (2.0, 0.5))
        weights = objective.improved(some_weights(rng, 4), 400)
        by_topics, by_remaining, by_log_v = gradient(objective, weights)
        np.testing.assert_allclose(by_topics, by_remaining, rtol=1e-4)
        assert abs(by_log_v) < 1e-4
        assert weights.topics.sum() + weights.remaining == pytest.approx(1.0, abs=1e-12)

    def test_steps_below_one_token_never_lower_the_objective(self):
        """With n = .001 expected tables exceed the tokens by far: the argument for them as an ascent needs n >= 1."""
        one = Objective(np.array([[0.001]]), 1.0, None)
        assert one.expected_tables(TopicWeights(np.array([0.001]), 0.999, 1.0))[0] == pytest.approx(0.5, abs=0.01)
        rng = np.random.default_rng(2)
        for _ in range(300):
            objective = Objective(10 ** rng.uniform(-5, 0, (3, 2)), 10 ** rng.uniform(-3, 1), (1.0, 1.0))
            weights = some_weights(rng, 2)
            once = objective.step_topics(weights)
            assert objective.value(once) >= objective.value(weights)
            assert objective.value(objective.step_v(once)) >= objective.value(once)


class TestTopicPrior:
    @pytest.mark.parametrize("s", [0.003, 0.05, 2.0])
    def test_derivatives(self, s):
        rng = np.random.default_rng(3)
        topic_words = rng.gamma(0.1, 20.0, (40, 5)) * (rng.random((40, 5)) < 0.6)
        _, slope, curve = prior_terms(topic_words, s, (1.5, 0.7), None)
        h = 1e-5
        above, below = (prior_terms(topic_words, s * np.exp(step), (1.5, 0.7), None) for step in (h, -h))
        assert slope == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-5, abs=1e-4)
        assert curve == pytest.approx((above[1] - below[1]) / (2 * h), rel=1e-5, abs=1e-4)

    def test_recovered_from_drawn_topics(self):
        rng = np.random.default_rng(4)
        topic_words = np.stack([rng.multinomial(3000, rng.dirichlet(np.full(300, 0.2))) for _ in range(20)], axis=1)
        state = direct(1, 1, contexts={}, topic_word_prior="learn").init(small_corpus(0), 0)
        for start in (1e-3, 0.2, 30.0):
            state.topic_words, state.topic_word_prior = topic_words.astype(float), start
            state.topic_word_prior = best_topic_prior(state.topic_words, state.topic_word_prior, state.s_prior, None)
            # the estimate's sd is 1.6 %, from the curvature
            assert state.topic_word_prior == pytest.approx(0.2, rel=0.08)
            assert abs(prior_terms(state.topic_words, state.topic_word_prior, (1.0, 1.0), None)[1]) < 1.0

    def test_learnt_only_if_asked_for(self):
        corpus = small_corpus(1, n_documents=12, n_words=8, mean_count=1.5)
        for prior, is_learnt in ((0.01, False), ("learn", True)):
            model = fit(corpus, *direct(topic_word_prior=prior, batch_size=5), iterations=2, progress=False).posterior
            assert (model.representative.topic_word_prior != 0.01) == is_learnt


class TestBound:
    def test_divergence_equals_the_written_out_one(self):
        corpus = small_corpus(1)
        engine = direct(group_concentration=0.7, table_concentration=1, topic_concentration=2.0)
        state = engine.init(corpus, 1)
        known = state.concentrations()
        elbo = naive_direct(corpus, state)[1].sum() - state.divergence()
        assert elbo == pytest.approx(naive_direct_elbo(corpus, state, known.mean[0]), abs=1e-9)

    @pytest.mark.parametrize(
        ("strength", "is_fixed", "concentrations"),
        crossed(
            [(0.25, False), (1.0, False), (1.0, True)],
            [
                *(FIXED, {}, {"group_concentration": 1}, {"table_concentration": 1, "topic_word_prior": "learn"}),
                *({"document_concentration": omega} for omega in ("learn", 0.01, 2.0, 1e6)),
            ],
        ),
    )
    def test_full_batch_never_lowers_the_elbo(self, strength, is_fixed, concentrations):
        for seed, (n_clusters, n_topics) in enumerate([(1, 1), (3, 2), (2, 5), (6, 6)]):
            corpus = small_corpus(seed, n_documents=12, n_words=8, mean_count=1.5)
            contexts = at_strength(some_families(seed), strength)
            engine = direct(
                n_clusters, n_topics, is_fixed=is_fixed, contexts=contexts,
                initialisation=["seeded", "random"][seed % 2], **({"topic_word_prior": 0.05} | concentrations),
            )  # fmt: skip
            trace = fit(corpus, *engine, iterations=15, seed=seed, progress=False).trace
            assert np.diff(trace.elbo).min() > (-1e-7 if engine.model.document_level else -1e-9)
            assert trace.elbo.iloc[-1] > trace.elbo.iloc[0] or n_clusters == 1

    @pytest.mark.parametrize(
        ("strength", "is_fixed", "settings", "topic_word_prior"),
        crossed(
            [(0.25, False), (1.0, False), (1.0, True)],
            [
                *(({"table_concentration": v}, s) for v, s in ((1.3, 0.4), ("learn", 0.05), (1.3, 0.05))),
                *(({"document_concentration": w}, s) for w, s in (("learn", 0.4), (0.7, 0.05), ("learn", 0.05))),
            ],
        ),
    )
    def test_elbo_stays_below_the_enumerated_evidence(self, strength, is_fixed, settings, topic_word_prior):
        """Below ln p(w, x | eps, v, omega) at the fit's own, so below its largest value over them."""
        content = np.array([[2, 1, 0], [0, 0, 2], [0, 1, 1]])
        corpus = Corpus(content, contexts={"time": np.array([0.5, np.nan, -1.0])})
        families = at_strength({"time": FAMILIES["time"]}, strength)
        contexts = StackedContexts(corpus, families)
        gaps, has_level = [], "document_concentration" in settings
        for seed in range(4):
            engine = direct(
                2, 2, is_fixed=is_fixed, contexts=families, topic_word_prior=topic_word_prior,
                group_concentration=0.8, topic_concentration=0.6, **settings,
            )  # fmt: skip
            state = fit(corpus, *engine, iterations=25, seed=seed, progress=False).state
            words = log_words(corpus, topic_word_prior)
            given = 2, 0.8, state.tau.weights, is_fixed, words, state.document_concentration
            known = log_evidence_given_weights(corpus.document_lengths, contexts, *given)
            penalty = state.tau.objective.terms(state.tau.weights)[1] + (state.theta.penalty() if has_level else 0.0)
            assert penalty <= 0
            gaps.append(known + penalty - state.elbo)
        assert min(gaps) > 0
        # q keeps to one of the 2 x 2 ways to name clusters and topics: at most their logarithm, and mean field's cost
        assert min(gaps) < np.log(4) + 1.0 + has_level

    @pytest.mark.parametrize("name", TINY)
    def test_larger_truncations_cost_nothing(self, name):
        """The best ELBO over starts; with tables it falls by five nats on the first corpus."""
        corpus, contexts = TINY[name]
        known = {
            "group_concentration": 0.9,
            "table_concentration": 1.4,
            "topic_concentration": 1.7,
            "topic_word_prior": 0.5,
        }
        best = {}
        for truncations in ((2, 3), (8, 12)):
            runs = [
                fit(
                    corpus,
                    *direct(*truncations, contexts=contexts, initialisation=start, **known),
                    iterations=30, seed=seed, progress=False,
                ).state.elbo
                for start, seed in [("seeded", 0), ("gibbs", 0), ("gibbs", 1), *(("random", seed) for seed in range(4))]
            ]  # fmt: skip
            best[truncations] = max(runs)
        assert best[8, 12] > best[2, 3] - 0.5


class TestRun:
    def test_unused_clusters_and_topics_leave_the_arrays(self):
        corpus = TINY["two kinds"][0]
        for batch_size in (None, 2):
            engine = direct(5, 9, contexts={}, topic_word_prior=0.05, initialisation="seeded", batch_size=batch_size)
            result = fit(corpus, *engine, iterations=30, progress=False)
            n_clusters, n_topics = result.state.tau.n_km.shape
            assert 2 <= n_clusters <= 4
            assert n_topics < 9
            assert result.state.tau.topic_weights.sum() + result.state.tau.remaining == pytest.approx(1.0, abs=1e-9)
            assert (np.diff(result.state.n_k) <= 0).all() or batch_size
            assert result.state.cluster.max() == n_clusters - 1
            sample = result.posterior.representative
            assert 0 < sample.new_cluster_weight < 1
            assert sample.topic_weights.sum() < 1
            np.testing.assert_allclose(sample.topic_given_cluster.sum(axis=1), 1.0, rtol=1e-12)

    def test_a_state_beyond_the_truncations_is_refused(self):
        corpus = small_corpus(9, n_documents=30)
        arrays = direct(9, 4).init(corpus, 0).arrays()
        with pytest.raises(ValueError, match=r"'n_km' has the shape .*; it must be from \(1, 1\) to \(2, 4\)"):
            direct(2, 4).restore(corpus, arrays)

    def test_a_gibbs_state_loses_no_token_without_tables(self):
        corpus = small_corpus(12, n_documents=6, mean_count=3.0)
        engine = direct(3, 4, initialisation="gibbs")
        state = engine.init(corpus, 3)
        np.testing.assert_allclose(state.topic_words.sum(axis=1), np.asarray(corpus.content.sum(axis=0)).ravel())
        assert state.tau.n_km.sum() == pytest.approx(corpus.n_tokens)

    @pytest.mark.parametrize(("n_documents", "n_clusters"), [(1, 2), (41, 11), (1409, 320), (10**6, 320)])
    def test_truncations_by_rule(self, n_documents, n_clusters):
        corpus = Corpus(np.ones((1, 2), int)).subset(np.zeros(n_documents, int))
        assert svi().truncations(corpus) == {"clusters": n_clusters, "topics": 2 * n_clusters}
        assert svi(max_clusters=7).truncations(corpus) == {"clusters": 7, "topics": 14}
        assert svi(max_tables=20).truncations(corpus) == {"clusters": 40, "topics": 120}
