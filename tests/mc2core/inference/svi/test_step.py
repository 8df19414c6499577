"""Steps of SVI-MC2 proved: against a per-token twin, finite differences and quadrature."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import FIXED
from helpers.svi_twin import engine_of, local_and_statistics, log_weights, naive, naive_elbo, small_corpus
from scipy import integrate, stats
from scipy.special import digamma, log_softmax, logsumexp, polygamma, softmax

from mc2core.families import DirichletCategorical
from mc2core.inference.running.loop import fit
from mc2core.inference.svi.documents import take_batch
from mc2core.inference.svi.local import local_step
from mc2core.inference.svi.local.tables import table_mass, table_statistics, topic_statistics, word_tables
from mc2core.inference.svi.proportions import topic_shares
from mc2core.inference.svi.sticks import stick_posterior


def beta_fisher(a, b):
    together = polygamma(1, a + b)
    return np.array([[polygamma(1, a) - together, -together], [-together, polygamma(1, b) - together]])


def gradient(function, array):
    """Central differences of ``function()`` with respect to ``array``, which is changed and put back."""
    out = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        kept, h = array[index], 1e-5 * max(1.0, abs(array[index]))
        values = []
        for sign in (1, -1):
            array[index] = kept + sign * h
            values.append(function())
        array[index] = kept
        out[index] = (values[0] - values[1]) / (2 * h)
    return out


@pytest.fixture(scope="module")
def at_a_point():
    """A state off any optimum, the ELBO as a function of it, and the targets of a step at rate 1."""
    corpus = small_corpus(2)
    given = {"batch_size": corpus.n_documents, "global_step": "joint"}  # all targets are those at the point
    engine = engine_of(**(FIXED | {"table_concentration": 1.7} | given))
    state = engine.init(corpus, 2)
    # soft tables: the gradient of a hard one is zero whatever its target
    state.proportions.table_topic[:] = np.random.default_rng(2).normal(size=state.proportions.table_topic.shape)
    known = state.concentrations()
    target, batch = copy.deepcopy(state), take_batch(corpus, state.contexts, np.arange(corpus.n_documents))
    target.step(batch, local_step(target, batch, None), 1.0, 1.0, None)
    return state, target, lambda: naive_elbo(corpus, state, known.mean)


def wide_corpus(n_columns=60):
    corpus = small_corpus(6, n_documents=20)
    tags = np.zeros((20, n_columns), int)
    tags[np.arange(20), np.random.default_rng(6).integers(n_columns, size=20)] = 2
    return corpus.with_contexts({**corpus.contexts, "tag": sp.csr_matrix(tags)})


class TestLocalStep:
    def test_a_word_that_no_table_of_a_cluster_expects(self):
        """exp(-1000) vanishes beside other clusters' terms; its logarithm must not."""
        corpus = small_corpus(0)
        state = engine_of(topic_word_prior=1e-3).init(corpus, 0)
        state.topic_words[1] = [0.0, 0.0, 5.0]
        state.rescale()
        state.proportions.table_topic[:] = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])[:, None] * 50.0
        expected = state.expectations()
        tables = word_tables(state, expected, np.arange(corpus.n_words), None)
        dirichlet = state.topic_words + 1e-3
        log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=0))
        assert log_psi[1, 0] < log_psi[1, 2] - 900
        # three clusters of hard tables, each on a topic of its own; exp(E ln tau) sums to less than 1
        known = log_psi + logsumexp(log_weights(state.proportions.table_sticks), axis=1)
        np.testing.assert_allclose(tables.log_likelihood, known, rtol=1e-10)

    def test_tokens_of_such_a_word(self):
        """A word's document sits in one cluster for sure, by its context, and no table there expects the word."""
        corpus = small_corpus(0)
        state = engine_of(topic_word_prior=1e-3).init(corpus, 0)
        state.topic_words[1] = [0.0, 0.0, 5.0]
        state.rescale()
        state.proportions.table_topic[:] = np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 1.0]])[:, None] * 50.0
        state.proportions.table_topic[1, 0] = [0.5, 0.2, -60.0]
        state.context_counts[:] = np.eye(*state.context_counts.shape) * 300.0
        expected = state.expectations()
        tables = word_tables(state, expected, np.arange(corpus.n_words), None)
        mass = table_mass(tables, np.full((corpus.n_words, 3), 0.5), None)
        assert mass.lost.tolist() == [[1, 1], [0, 1]]
        moved = np.random.default_rng(0).dirichlet(np.ones(3), (3, 2))
        n_kt, log_likelihood = table_statistics(tables, mass, None)
        topic_words = topic_statistics(tables, mass, moved, None)
        dirichlet = state.topic_words + 1e-3
        log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=0))
        score = np.einsum("ktm,wm->wkt", tables.table_topic, log_psi) + log_weights(state.proportions.table_sticks)
        n = 0.5 * softmax(score, axis=-1)
        np.testing.assert_allclose(n_kt, n.sum(axis=0), rtol=1e-9)
        np.testing.assert_allclose(log_likelihood, np.einsum("wkt,wm->ktm", n, log_psi), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(topic_words, np.einsum("wkt,ktm->wm", n, moved), rtol=1e-9, atol=1e-12)

    def test_topic_shares_are_the_softmax(self):
        scores = np.random.default_rng(0).normal(size=(3, 4, 9)) * np.array([1.0, 30.0, 400.0])[:, None, None]
        log_shares, shares = topic_shares(scores)
        np.testing.assert_allclose(log_shares, log_softmax(scores, axis=-1), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(shares, softmax(scores, axis=-1), rtol=1e-13, atol=1e-300)

    @pytest.mark.parametrize("tables", ["hard", "soft", "mixed"])
    @pytest.mark.parametrize("topic_word_prior", [0.3, 1e-3])
    def test_word_tables_equal_the_per_token_twin(self, tables, topic_word_prior):
        tolerance = 1e-10
        for seed in range(3):
            corpus = small_corpus(seed)
            state = engine_of(max_tables=4, topic_word_prior=topic_word_prior).init(corpus, seed)
            soft = {"hard": 0.0, "soft": 1.0, "mixed": np.random.default_rng(seed).integers(2, size=(3, 4, 1))}[tables]
            state.proportions.table_topic[:] = np.where(
                soft, np.random.default_rng(seed).normal(size=(3, 4, 3)), state.proportions.table_topic
            )
            shares, documents, n_kt, log_likelihood, topic_words = local_and_statistics(corpus, state)
            twin = naive(corpus, state)
            np.testing.assert_allclose(shares, twin[0], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(documents.log_evidence, twin[1].sum(), rtol=tolerance)
            np.testing.assert_allclose(documents.n_k, twin[0].sum(axis=0), rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(
                documents.contexts, twin[0].T @ state.contexts.statistics.toarray(), rtol=tolerance, atol=tolerance
            )
            np.testing.assert_allclose(n_kt, twin[2], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(log_likelihood, twin[3], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(topic_words, twin[4], rtol=tolerance, atol=tolerance)


class TestGlobalStep:
    def test_divergence_equals_the_written_out_one(self):
        corpus = small_corpus(1)
        engine = engine_of(group_concentration=0.7, table_concentration=1, topic_concentration=2.0)
        state = engine.init(corpus, 1)
        known = state.concentrations()
        elbo = naive(corpus, state)[1].sum() - state.divergence()
        assert elbo == pytest.approx(naive_elbo(corpus, state, known.mean), abs=1e-9)

    @pytest.mark.parametrize("name", ["group_weights", "table_sticks", "topic_sticks"])
    def test_stick_gradients(self, at_a_point, name):
        state, target, elbo = at_a_point
        one, then = (getattr(part if hasattr(part, name) else part.proportions, name) for part in (state, target))
        change = then - one
        numeric = gradient(elbo, one)
        for index in np.ndindex(one.shape[1:]):
            np.testing.assert_allclose(
                numeric[(slice(None), *index)],
                beta_fisher(*one[(slice(None), *index)]) @ change[(slice(None), *index)],
                rtol=1e-5, atol=1e-7,
            )  # fmt: skip

    def test_table_topic_gradient(self, at_a_point):
        state, target, elbo = at_a_point
        numeric = gradient(elbo, state.proportions.table_topic)
        assert np.abs(numeric).max() > 0.01
        change = target.proportions.table_topic - state.proportions.table_topic
        for k, t in np.ndindex(change.shape[:2]):
            mu = softmax(state.proportions.table_topic[k, t])
            np.testing.assert_allclose(
                numeric[k, t], (np.diag(mu) - np.outer(mu, mu)) @ change[k, t], rtol=1e-5, atol=1e-7
            )

    def test_topic_word_gradient(self, at_a_point):
        state, target, elbo = at_a_point
        numeric = gradient(elbo, state.topic_words)
        change = target.topic_words - state.topic_words
        for m in range(change.shape[1]):
            dirichlet = state.topic_words[:, m] + state.topic_word_prior
            fisher = np.diag(polygamma(1, dirichlet)) - polygamma(1, dirichlet.sum())
            np.testing.assert_allclose(numeric[:, m], fisher @ change[:, m], rtol=1e-5, atol=1e-7)

    def test_context_gradient(self, at_a_point):
        state, target, elbo = at_a_point
        numeric = gradient(elbo, state.context_counts).T
        for k in range(len(numeric)):
            fisher = np.stack(
                [
                    gradient(
                        lambda i=i, k=k: state.contexts.expected_parameters(state.natural[k])[i],
                        state.context_counts[:, k],
                    )
                    for i in range(state.contexts.dimension)
                ]
            )
            np.testing.assert_allclose(
                numeric[k], fisher @ (target.natural[k] - state.natural[k]), rtol=1e-4, atol=1e-6
            )

    def test_joint_step_from_one_point(self):
        """UAI16, Algorithm 1: a mini-batch that is the whole corpus, at rate 1, takes each global to its target."""
        corpus = small_corpus(2)
        ends = {}
        for global_step in ("joint", "sequential"):
            engine = engine_of(batch_size=corpus.n_documents, learning_offset=0.0, global_step=global_step, **FIXED)
            state = engine.init(corpus, 2)
            state.proportions.table_topic[:] = np.random.default_rng(2).normal(size=state.proportions.table_topic.shape)
            n_kt, log_likelihood, topic_words = local_and_statistics(corpus, state)[2:]
            known, log_topic = state.concentrations(), log_weights(state.proportions.topic_sticks)
            at_start = topic_shares(state.proportions.table_topic)[1].sum(axis=(0, 1))
            engine.step(corpus, state, 2, 1)
            ends[global_step] = state, topic_words, stick_posterior(at_start, known.mean[2])
            np.testing.assert_allclose(state.proportions.table_topic, log_topic + log_likelihood, rtol=1e-10)
            np.testing.assert_allclose(state.proportions.table_sticks, stick_posterior(n_kt, known.mean[1]), rtol=1e-10)
        state, topic_words, topic_sticks = ends["joint"]
        np.testing.assert_allclose(state.topic_words, topic_words, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(state.proportions.topic_sticks, topic_sticks, rtol=1e-10)
        state, topic_words, topic_sticks = ends["sequential"]
        assert np.abs(state.topic_words - topic_words).max() > 0.1
        assert np.abs(state.proportions.topic_sticks - topic_sticks).max() > 0.01

    def test_rate_one_with_the_whole_corpus_is_the_batch_update(self):
        corpus = small_corpus(4, n_documents=20)
        full, batch = engine_of(), engine_of(batch_size=20, learning_offset=0.0)
        states = [engine.init(corpus, 4) for engine in (full, batch)]
        for engine, state in zip((full, batch), states, strict=True):
            engine.step(corpus, state, 4, 1)
        # every token has a topic and nothing of the start is left
        assert states[0].topic_words.sum() == pytest.approx(corpus.n_tokens)
        for name in ("group_weights", "table_sticks", "topic_sticks", "table_topic", "topic_words", "natural"):
            np.testing.assert_allclose(
                *(getattr(one if hasattr(one, name) else one.proportions, name) for one in reversed(states)),
                rtol=1e-12,
                atol=1e-12,
            )

    def test_shrunken_counts_are_the_blended_ones(self):
        corpus = small_corpus(5)
        state = engine_of().init(corpus, 5)
        twin = state.topic_words.copy()
        rng = np.random.default_rng(5)
        for step in range(40):
            words = np.sort(rng.permutation(corpus.n_words)[:2])
            counts, rate = rng.random((2, 3)), 0.99 if step < 35 else 0.3
            twin *= 1 - rate
            twin[words] += rate * counts
            state.blend_topic_words(words, counts / 3.0, 3.0, rate)
            np.testing.assert_allclose(state.n_m, twin.sum(axis=0), rtol=1e-9)
        assert state.shrink != 1.0  # folded on the way, when it got too small, and in use again
        np.testing.assert_allclose(state.shrink * state.topic_words, twin, rtol=1e-9)
        state.rescale()
        np.testing.assert_allclose(state.topic_words, twin, rtol=1e-9)
        assert state.shrink == 1.0


class TestConcentrations:
    def test_zero_gradient(self):
        corpus = small_corpus(2)
        engine = engine_of(max_tables=3, concentration_priors={"group": (2.0, 0.5), "topic": (0.7, 3.0)})
        state = engine.init(corpus, 2)

        def slope():
            return gradient(lambda: state.divergence(), state.concentration_rates)

        assert (np.abs(slope()) > 1e-2).all()
        state.step_concentrations()
        np.testing.assert_allclose(slope(), 0.0, atol=1e-7)

    def test_divergence_by_quadrature(self):
        engine = engine_of(max_tables=3, concentration_priors={"group": (2.0, 0.5), "topic": (0.7, 3.0)})
        state = engine.init(small_corpus(2), 2)
        learnt = state.concentrations()
        total = 0.0
        for i, (n_sticks, prior) in enumerate([(2, (2.0, 0.5)), (6, (1.0, 1.0)), (2, (0.7, 3.0))]):
            q = stats.gamma(prior[0] + n_sticks, scale=1 / state.concentration_rates[i])
            p = stats.gamma(prior[0], scale=1 / prior[1])
            total += integrate.quad(lambda c, q=q, p=p: q.pdf(c) * (q.logpdf(c) - p.logpdf(c)), 0, 60, limit=200)[0]
            assert learnt.mean[i] == pytest.approx(q.mean())
            assert learnt.mean_log[i] == pytest.approx(
                integrate.quad(lambda c, q=q: q.pdf(c) * np.log(c), 0, 60)[0], rel=1e-6
            )
        assert learnt.divergence == pytest.approx(total, rel=1e-6)

    def test_numbers_are_kept(self):
        corpus = small_corpus(2)
        engine = engine_of(group_concentration=0.3, topic_concentration=4.0)
        state = fit(corpus, *engine, iterations=3, seed=0, progress=False).state
        mean = state.concentrations().mean
        assert (mean[0], mean[2]) == (0.3, 4.0)
        assert mean[1] != 1.0


class TestContextsOfManyColumns:
    @pytest.mark.parametrize("max_tables", [None, 2])
    def test_only_columns_of_the_batch_are_looked_at(self, monkeypatch, max_tables):
        """With 12,447 authors a fit took three times as long."""
        corpus = wide_corpus()
        engine = engine_of(max_tables=max_tables, batch_size=5)
        state = engine.init(corpus, 0)
        seen = []
        whole = DirichletCategorical.expected_parameters

        def watched(self, natural, total=None):
            seen.append(natural.shape[1])
            return whole(self, natural, total)

        monkeypatch.setattr(DirichletCategorical, "expected_parameters", watched)
        engine.batch_step(corpus, state, np.arange(5, 10), 0.3, None)
        assert 0 < max(seen) <= 5

    @pytest.mark.parametrize("max_tables", [None, 2])
    def test_blended_as_if_all_were_looked_at(self, max_tables):
        """As UAI16 prints it: natural = (1 - rate) natural + rate (prior + scale statistics), on all columns."""
        corpus = wide_corpus()
        engine = engine_of(max_tables=max_tables, batch_size=5)
        state = engine.init(corpus, 0)
        rng = np.random.default_rng(0)
        for step in range(40):
            rows, rate = rng.permutation(20)[:5], 0.99 if step < 35 else 0.3
            before, natural = copy.deepcopy(state), state.natural
            documents = engine.batch_step(corpus, state, rows, rate, None)[1].documents
            batch = take_batch(corpus, before.contexts, rows)
            whole = local_step(before, batch, None).documents
            assert documents.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)
            twin = (1 - rate) * natural + rate * (state.contexts.prior + 4.0 * whole.contexts)
            np.testing.assert_allclose(state.natural, twin, rtol=1e-9)
            np.testing.assert_allclose(
                state.context_totals.T,
                state.contexts.totals(state.natural - state.contexts.prior),
                rtol=1e-9,
                atol=1e-9,
            )
        assert state.context_shrink != 1.0  # folded on the way, when it got too small, and in use again
        state.rescale()
        np.testing.assert_allclose(state.natural, twin, rtol=1e-9)
