"""NIPS12's baseline: its posterior by enumeration, threads and resume."""

from dataclasses import replace

import numba
import numpy as np
import pytest
from helpers.crossed import first
from helpers.fastex_twin import STATES, TINY, A, B, G, K, assert_stationary, posterior, settings_of
from helpers.fits import uncollapsed
from scipy.special import gammaln

from mc2core import Corpus
from mc2core.base import memory
from mc2core.compute import streams
from mc2core.inference.fastex.components import GAUSSIAN, MULTINOMIAL, POISSON
from mc2core.inference.running.loop import fit
from mc2papers.baselines import uncollapsed as of_baseline
from mc2papers.baselines.uncollapsed import (
    UncollapsedState,
    assign,
    draw_means,
    draw_parameters,
    draw_precisions,
    weigh_clusters,
)


@numba.njit
def count_states(n, seed, component, documents, n_words, cluster, visits):
    """UncollapsedState.sweep without Python, for tables this small."""
    indptr, words, counts, document_mass = documents
    parameters = np.empty((n_words, K), np.float32)
    head, slope, precision = np.empty(K), np.empty(K), np.ones(K)
    place = 3 ** np.arange(cluster.size - 1, -1, -1)
    columns = np.empty(n_words * K, np.int32)
    cells = np.empty(n_words * K, np.int64)
    for t in range(n):
        table, n_k, totals = np.zeros((n_words, K), np.int64), np.zeros(K, np.int64), np.zeros(K)
        mass, squares = np.zeros(K), np.zeros(K)
        for j in range(cluster.size):
            n_k[cluster[j]] += 1
            mass[cluster[j]] += document_mass[j]
            for cell in range(indptr[j], indptr[j + 1]):
                table[words[cell], cluster[j]] += counts[cell]
        pointers = np.zeros(n_words + 1, np.int64)
        used = 0
        for word in range(n_words):
            for k in range(K):
                squares[k] += table[word, k] ** 2
                if table[word, k]:
                    columns[used], cells[used] = k, table[word, k]
                    used += 1
            pointers[word + 1] = used
        key = seed + np.uint64(4 * t)
        if component == GAUSSIAN:
            draw_precisions(key + np.uint64(3), n_words, A, B, n_k, mass, squares, precision)
            block = key + np.uint64(1), 0, n_words, pointers, columns, cells
            draw_means(*block, A + n_k, precision, parameters, totals)
        else:
            draw_parameters(key + np.uint64(1), 0, n_words, pointers, columns, cells, A, parameters, totals)
        weigh_clusters(key + np.uint64(2), component, n_k, G, B, parameters, precision, totals, head, slope)
        assign(key, 0, cluster.size, documents, head, slope, precision, parameters, cluster)
        visits[(cluster * place).sum()] += 1


@pytest.mark.parametrize("component", first([MULTINOMIAL, POISSON, GAUSSIAN]))
def test_chain_has_the_enumerated_posterior(component):
    state = UncollapsedState(TINY, settings_of(component), np.array([0, 1, 2, 0]))
    data = state.documents, TINY.n_words
    batches = np.zeros((40, len(STATES)), np.int64)
    for batch, visits in enumerate(batches):
        count_states(3000, streams.key(1, "test", batch), component, *data, state.cluster, visits)
    assert_stationary(batches, posterior(component))


@pytest.mark.parametrize("component", [MULTINOMIAL, POISSON, GAUSSIAN])
def test_sweep_is_that_of_the_kernels(component):
    state = UncollapsedState(TINY, settings_of(component), np.array([0, 1, 2, 0]))
    data, cluster = (state.documents, TINY.n_words), state.cluster.copy()
    for t in range(20):
        state.sweep(streams.key(2, "test", t), np.zeros(2, np.int64))
        count_states(1, streams.key(2, "test", t), component, *data, cluster, np.zeros(len(STATES), np.int64))
        assert np.array_equal(state.cluster, cluster)


def test_empty_clusters_at_a_small_word_prior():
    """All words of an empty cluster's draw underflow in 4 of 5 draws; what its words weigh then was 0 / 0.

    With one word in use every cluster that has documents gives it all its weight, so that the chain mixes.
    """
    corpus, prior = Corpus(np.array([[2, 0, 0], [1, 0, 0], [3, 0, 0], [0, 0, 0]])), 1e-4
    state = UncollapsedState(corpus, replace(settings_of(), topic_word_prior=prior), np.array([0, 1, 2, 0]))
    place = 3 ** np.arange(3, -1, -1)
    batches = np.zeros((40, len(STATES)), np.int64)
    for batch, visits in enumerate(batches):
        for t in range(200):
            state.sweep(streams.key(3, "test", 200 * batch + t), np.zeros(2, np.int64))
            visits[state.cluster @ place] += 1
    # the evidence of a cluster whose tokens are all of one word, times its weight
    tokens = np.array([[corpus.document_lengths[cluster == k].sum() for k in range(K)] for cluster in STATES])
    sizes = np.array([np.bincount(cluster, minlength=K) for cluster in STATES])
    words = gammaln(tokens + prior) - gammaln(prior) + gammaln(3 * prior) - gammaln(tokens + 3 * prior)
    p = np.exp(np.sum(gammaln(sizes + G) + words, axis=1))
    assert_stationary(batches, p / p.sum())


class TestRefused:
    """In a sentence, as FastEx does; never an index."""

    small = Corpus(np.random.default_rng(0).poisson(1.0, (5, 4)))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"component": "gaussian", "rate_prior": 1e300}, r"document 0 has .* rate_prior = 1e\+300"),
            ({"topic_word_prior": 1e-90}, "document 0 has .* topic_word_prior = 1e-90"),
        ],
    )
    @pytest.mark.parametrize("threads", [1, 2])
    def test_infinite_scores_name_the_document_and_the_prior(self, settings, message, threads):
        with pytest.raises(ValueError, match=message):
            fit(self.small, *uncollapsed(n_clusters=9, threads=threads, **settings), iterations=3, seed=0)

    def test_the_document_is_one_of_the_corpus(self, monkeypatch):
        """Not of those three on which a fit compiles its kernels before it begins."""
        monkeypatch.setattr(of_baseline, "assign", lambda key, first, last, *rest: -1 - (last - 1))
        with pytest.raises(ValueError, match="document 7 has scores"):
            fit(Corpus(np.ones((8, 3), int)), *uncollapsed(n_clusters=3), iterations=1, seed=0)

    def test_too_many_clusters_no_words_and_covariances(self, monkeypatch):
        with pytest.raises(ValueError, match="component='gauss_wishart' needs engine='fastex'"):
            uncollapsed(component="gauss_wishart")
        with pytest.raises(ValueError, match="Uncollapsed clusters documents by their words, but the corpus has none"):
            fit(Corpus(np.zeros((3, 2), int), contexts={"year": np.arange(3.0)}), *uncollapsed(), iterations=1, seed=0)
        monkeypatch.setattr(memory, "available_bytes", lambda: 5 * 10**9)
        message = r"^uncollapsed with 2147483647 clusters and 4 words would take 34\.4 GB .*; use fewer clusters$"
        with pytest.raises(ValueError, match=message):
            fit(self.small, *uncollapsed(n_clusters=2**31 - 1), iterations=1, seed=0)
