"""Unions of topics and clusters in SVI with a document level: what they change, what is refused, what is recovered."""

import numpy as np
import pytest
from helpers.fits import FIXED, svi
from helpers.svi_twin import dirichlet_logs, engine_of, small_corpus
from scipy.special import gammaln

from mc2core import Corpus, clustering, models
from mc2core.inference.running.loop import fit
from mc2core.inference.svi.documents import sum_by
from mc2core.inference.svi.merging import (
    Proposal,
    SampledDocuments,
    apart,
    cluster_gains,
    merge,
    merge_pairs,
    near_topics,
    numbers,
    topic_gains,
)
from mc2core.inference.svi.sticks import expected_log_weights, stick_divergence, stick_posterior


def simulated(omega, seed=1, n_clusters=3, n_documents=300, n_topics=6, n_words=300, length=50):
    """(corpus, clusters, tokens of each word in each topic, and of each topic in each cluster) drawn from the model."""
    rng = np.random.default_rng(seed)
    psi = rng.dirichlet(np.full(n_words, 0.05), n_topics)
    tau = rng.dirichlet(np.full(n_topics, 3.0 / n_topics), n_clusters)
    truth = np.sort(rng.integers(n_clusters, size=n_documents))
    rows = np.zeros((n_documents, n_words), int)
    words, topics = np.zeros((n_words, n_topics)), np.zeros((n_clusters, n_topics))
    for j, k in enumerate(truth):
        counts = rng.multinomial(length, rng.dirichlet(np.maximum(omega * tau[k], 1e-6)))
        topics[k] += counts
        for m in np.flatnonzero(counts):
            tokens = rng.multinomial(counts[m], psi[m])
            rows[j] += tokens
            words[:, m] += tokens
    return Corpus(rows), truth, words, topics


def small_state(seed, batch_size=None, **settings):
    corpus = small_corpus(seed, n_documents=14, n_words=9, mean_count=1.5)
    one = engine_of(4, None, 6, document_concentration=2.0, batch_size=batch_size, **settings)
    state = one.init(corpus, seed)
    rng = np.random.default_rng(seed)
    state.tau.n_km *= rng.random(state.tau.n_km.shape)
    return corpus, one, state


def log_ratio(prior, n):
    return np.sum(gammaln(prior + n) - gammaln(prior))


class TestStates:
    def test_unions_add_what_states_hold(self):
        _, _, state = small_state(0)
        rng = np.random.default_rng(1)
        n_clusters, n_topics = state.tau.n_km.shape
        state.theta.local_cluster = rng.integers(-1, n_clusters, state.theta.local_cluster.shape).astype(np.int32)
        state.theta.local_counts = rng.random(state.theta.local_counts.shape)
        cluster_of, topic_of = np.arange(n_clusters) // 2, np.arange(n_topics) % 3
        joined = state.copy()
        merge(joined, cluster_of, topic_of)
        n_k = np.bincount(cluster_of, state.n_k)
        order = np.argsort(-n_k, kind="stable")  # clusters stay in order of size
        np.testing.assert_allclose(joined.n_k, n_k[order])
        for k, old in enumerate(order):
            rows = np.flatnonzero(cluster_of == old)
            for m in range(3):
                assert joined.tau.n_km[k, m] == pytest.approx(state.tau.n_km[np.ix_(rows, topic_of == m)].sum())
            np.testing.assert_allclose(
                joined.natural[k], (state.natural - state.contexts.prior)[rows].sum(axis=0) + state.contexts.prior
            )
            np.testing.assert_array_equal(joined.cluster == k, np.isin(state.cluster, rows))
        for m in range(3):
            np.testing.assert_allclose(joined.topic_words[:, m], state.topic_words[:, topic_of == m].sum(axis=1))
            np.testing.assert_allclose(
                joined.theta.local_counts[:, :, m], state.theta.local_counts[:, :, topic_of == m].sum(axis=2)
            )
        np.testing.assert_allclose(joined.n_m, joined.topic_words.sum(axis=0))
        assert joined.tau.topic_weights.sum() + joined.tau.remaining == pytest.approx(1.0)
        for before, after in zip(state.theta.local_cluster, joined.theta.local_cluster, strict=True):
            left = after[after >= 0]
            assert len(set(left)) == len(left)
            assert set(order[left]) == set(cluster_of[before[before >= 0]])

    def test_pairs_have_no_part_in_common(self):
        pairs = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [4, 5]])
        assert apart(pairs, np.array([1.0, 5.0, 4.0, 3.0, -2.0])).tolist() == [[1, 2], [0, 3], [4, 5]]


class TestGains:
    @pytest.mark.parametrize("batch_size", [None, 5])
    def test_unions_of_topics_change_the_bound_as_said(self, batch_size):
        """Token by token: words, tables, proportions and entropies before and after, shares of tokens being added."""
        for seed in range(3):
            corpus, _, state = small_state(seed, batch_size)
            documents = SampledDocuments.from_corpus(corpus, state, None)
            words, visit, _ = documents.local_step(state)
            log_psi = dirichlet_logs(state)[1]
            n_topics = len(state.n_m)
            gammas = []  # (share, cluster, words of tokens, their shares of topics)
            topic_words = np.zeros_like(state.topic_words)
            for j, row in enumerate(corpus.content.toarray()):
                tokens = np.repeat(np.arange(corpus.n_words), row)
                for i in np.flatnonzero(visit.share[j] > 1e-12):
                    share, k = visit.share[j, i], visit.cluster[j, i]
                    gamma = np.exp(log_psi[:, tokens].T) * visit.theta[j, i]
                    gamma /= gamma.sum(axis=1, keepdims=True)
                    np.testing.assert_allclose(gamma.sum(axis=0), visit.counts[j, i], atol=1e-9)
                    gammas.append((share, k, gamma))
                    np.add.at(topic_words, tokens, share * gamma)
            state.topic_words, state.n_m = topic_words, topic_words.sum(axis=0)
            s, v, omega = state.topic_word_prior, state.tau.table_concentration, state.document_concentration

            def bound(one, topic_of, s=s, v=v, omega=omega, gammas=gammas, n_words=corpus.n_words):
                value = sum(log_ratio(s, n) - log_ratio(s * n_words, n.sum()) for n in one.topic_words.T)
                log_tau = dirichlet_logs(one)[0][:, :-1]
                value += log_ratio(v * one.tau.topic_weights, one.tau.n_km) - np.sum(one.tau.n_km * log_tau)
                for share, k, gamma in gammas:
                    gamma = np.stack([gamma[:, topic_of == m].sum(axis=1) for m in range(len(one.n_m))], axis=1)
                    value -= share * np.sum(gamma[gamma > 0] * np.log(gamma[gamma > 0]))
                    value += share * log_ratio(omega * np.exp(log_tau[k]), gamma.sum(axis=0))
                return value

            pairs = near_topics(state)
            gains = topic_gains(state, documents, words, visit, pairs)
            now = bound(state, np.arange(n_topics))
            for pair, gain in zip(pairs, gains, strict=True):
                topic_of = numbers(pair[None], n_topics)
                joined = state.copy()
                merge(joined, np.arange(state.n_clusters), topic_of)
                assert bound(joined, topic_of) - now == pytest.approx(gain, abs=1e-7)

    def test_gains_of_clusters_are_log_marginals(self):
        corpus, _, state = small_state(3, **FIXED | {"group_concentration": 0.6})  # at 1 its logarithm is 0
        documents = SampledDocuments.from_corpus(corpus, state, None)
        visit = documents.local_step(state).candidates
        pairs, gains = cluster_gains(state, visit, 1.0)
        assert len(pairs) == len(state.tau.n_km) * (len(state.tau.n_km) - 1) // 2
        shares = visit.shares
        v, alpha = state.tau.table_concentration, state.model.group_concentration

        def evidence(n_km, natural, n_k, shares):
            value = log_ratio(v * state.tau.topic_weights, n_km) - log_ratio(v, n_km.sum(axis=1))
            value += state.contexts.log_marginal(natural).sum()
            n_k = -np.sort(-n_k)
            posterior = stick_posterior(np.append(n_k, 0.0), alpha)
            value += n_k @ expected_log_weights(posterior)[:-1] - stick_divergence(posterior, alpha, np.log(alpha))
            return value - np.sum(shares[shares > 0] * np.log(shares[shares > 0]))

        now = evidence(state.tau.n_km, state.natural, state.n_k, shares)
        for (k, o), gain in zip(pairs, gains, strict=True):
            number = numbers(np.array([[k, o]]), len(state.tau.n_km))
            parts = [sum_by(number, one) for one in (state.tau.n_km, state.natural - state.contexts.prior, state.n_k)]
            joined = sum_by(number, shares.T).T
            assert evidence(parts[0], parts[1] + state.contexts.prior, parts[2], joined) - now == pytest.approx(gain)


class TestUnions:
    def test_what_lowers_the_bound_is_left_apart(self):
        corpus, truth, words, topics = simulated(20.0)
        one = svi(document_level=True, max_clusters=3, max_topics=6, document_concentration=20.0)
        state = at_truth(one, corpus, truth, words, topics)
        documents = SampledDocuments.from_corpus(corpus, state, None)
        now = Proposal(state, documents.local_step(state).bound)
        for of_topics, size in ((True, 6), (False, 3)):
            for pair in np.argwhere(np.triu(np.ones((size, size)), 1)):
                assert merge_pairs(documents, now, pair[None], of_topics) is now
        for _ in range(2):
            one.step(corpus, state, 0, 1)
        assert state.tau.n_km.shape == (3, 6)

    @pytest.mark.parametrize("of_topics", [True, False])
    def test_halves_are_joined_again(self, of_topics):
        """Topics, or clusters, of the truth that were cut into two at random."""
        corpus, truth, words, topics = simulated(20.0)
        rng = np.random.default_rng(0)
        one = svi(document_level=True, max_clusters=6, max_topics=12, document_concentration=20.0)
        if of_topics:
            half = rng.binomial(words.astype(int), 0.5)
            words, topics = np.hstack([half, words - half]), np.hstack([topics, topics]) / 2
        else:
            truth, topics = truth + 3 * rng.integers(2, size=len(truth)), np.vstack([topics, topics]) / 2
        state = at_truth(one, corpus, truth, words, topics)
        for epoch in range(1, 7):
            one.step(corpus, state, 0, epoch)
        assert state.tau.n_km.shape == (3, 6)


def at_truth(one, corpus, truth, words, topics):
    """A state whose documents, topics and proportions are those they were drawn from."""
    state = one.init(corpus, 0)
    n_clusters, n_topics = topics.shape
    state.topic_words, state.n_m, state.cluster = words.copy(), words.sum(axis=0), truth.astype(np.int32)
    state.tau.n_km = topics / 2.5  # 20 tables for 50 tokens at omega 20, roughly
    state.theta.local_counts = np.zeros((*state.theta.local_counts.shape[:2], n_topics))
    state.context_counts, state.context_totals = np.zeros((0, n_clusters)), np.zeros((0, n_clusters))
    n_k = np.bincount(truth, minlength=n_clusters).astype(float)
    state.group_weights = stick_posterior(np.append(n_k, 0.0), 1.0)
    state.tau.topic_weights, state.tau.remaining = (np.full(n_topics, 1 / (n_topics + 1)), 1 / (n_topics + 1))
    state.tau.step_weights(30)
    return state


class TestRecovery:
    """Three clusters, six topics, 50 words a document; ten epochs."""

    def fitted(self, monkeypatch, omega, begin, n_clusters, n_documents=600):
        monkeypatch.setitem(models._START, models.DOCUMENT, begin)
        corpus, truth, *_ = simulated(omega, n_documents=n_documents)
        one = svi(document_level=True, max_clusters=n_clusters)
        state = fit(corpus, *one, iterations=10, seed=0, progress=False).state
        return state, clustering.nmi(truth, state.cluster)

    @pytest.mark.slow
    def test_omega_does_not_depend_on_its_start(self, monkeypatch):
        omega = 5.0
        found = [self.fitted(monkeypatch, omega, begin, 12)[0].document_concentration for begin in (1.0, 100.0)]
        assert max(found) < 1.5 * min(found)
        assert max(found) < 1.5 * omega
        assert min(found) > omega / 1.5

    @pytest.mark.slow
    def test_clusters_do_not_follow_the_truncation(self, monkeypatch):
        for n_clusters in (12, 40):
            state, nmi = self.fitted(monkeypatch, 20.0, 10.0, n_clusters, 300)
            assert len(np.unique(state.cluster)) == 3
            assert nmi > 0.9
