"""What FastEx cannot use it refuses in a sentence: scores that are no numbers, sizes, priors; never an index."""

import re

import numpy as np
import pytest
from helpers.fastex_twin import TINY, settings_of
from helpers.fits import fastex

from mc2core import Corpus
from mc2core.base import memory
from mc2core.compute import streams
from mc2core.compute.streams import argmax, draw_from_logs, select_likely
from mc2core.inference.fastex.components import GAUSSIAN, MULTINOMIAL, POISSON
from mc2core.inference.fastex.exact import ExactState
from mc2core.inference.fastex.hashed import HashedState
from mc2core.inference.fastex.hashed_kernels import BLOCK, choose, draw, workspace
from mc2core.inference.running.loop import fit

SMALL = Corpus(np.random.default_rng(0).poisson(1.0, (5, 4)))
EXTREME = "the most extreme"


class TestNumbers:
    @pytest.mark.parametrize("threads", [1, 2])
    def test_infinite_scores_name_the_document_and_the_prior(self, threads):
        pair = fastex(n_clusters=9, threads=threads, proposal="hash", component="gaussian", topic_word_prior=1e-90)
        with pytest.raises(ValueError, match=r"cluster [0-9]+ has .* topic_word_prior = 1e-90"):
            fit(SMALL, *pair, iterations=3, seed=0)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("n", [1, 3, 8, 21])
    def test_draws_from_logs_refuse_what_are_no_numbers(self, bad, n):
        """Wherever a NaN or an infinity stands; minus infinity has no weight, unless all are."""
        stream = np.array([5, 7], np.uint64)
        for place in range(n):
            scores = np.linspace(-1.0, 0.0, n)
            scores[place] = bad
            likely = np.empty(n, np.int64)
            n_likely = select_likely(scores, scores[argmax(scores)] - 45.0, likely)
            drawn = draw_from_logs(stream, scores[:n_likely])
            if bad == -np.inf and n > 1:
                assert drawn >= 0
                assert likely[drawn] != place
            else:
                assert drawn == -1
        assert draw_from_logs(stream, np.full(n, bad)) == -1

    @pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
    def test_draws_from_weights_refuse_what_are_no_numbers(self, bad):
        weights, stream = np.full(2 * BLOCK, bad, np.float32), np.array([5, 7], np.uint64)
        assert draw(stream, BLOCK + 3, weights, weights.reshape(2, -1).sum(axis=1)) == -1

    @pytest.mark.parametrize("component", [MULTINOMIAL, POISSON, GAUSSIAN])
    @pytest.mark.parametrize("name", ["norm", "constant", "slope"])
    def test_hashed_moves_refuse_columns_that_are_no_numbers(self, component, name):
        """As if the arithmetic had left a NaN in what a cluster is proposed by, or in its exact likelihood."""
        state = HashedState(TINY, settings_of(component), np.array([0, 1, 2, 0]))
        getattr(state.clusters.columns, name)[:3] = np.nan
        args = state.documents, state.clusters, state.projection, state.constants, state.slots
        state.clusters.squares[:] = -(2**62)  # no Gaussian has these, nor a mass below 0:
        state.clusters.mass[:] = -(2**62)
        assert choose(*args, 0, 0, np.array([5, 7], np.uint64), workspace(state.clusters))[0] == -1
        with pytest.raises(ValueError, match=EXTREME):
            state.sweep(streams.key(0, "test", 0), np.zeros(2, np.int64))

    @pytest.mark.parametrize("component", [MULTINOMIAL, POISSON, GAUSSIAN])
    def test_exact_draws_refuse_scores_that_are_no_numbers(self, component):
        state = ExactState(TINY, settings_of(component), np.array([0, 1, 2, 0]))
        state.tables.terms[:, 1] = np.nan
        with pytest.raises(ValueError, match="document 0 has scores that are not finite"):
            state.sweep(streams.key(0, "test", 0), np.zeros(2, np.int64))


class TestSizes:
    @pytest.mark.parametrize("proposal", ["auto", "hash", "exact"])
    def test_too_many_clusters_are_refused_with_what_they_would_need(self, proposal, monkeypatch):
        monkeypatch.setattr(memory, "available_bytes", lambda: 5 * 10**9)
        name = "exact" if proposal == "auto" else proposal
        message = (
            rf"^proposal='{name}' with 2147483647 clusters and 4 words would take [0-9.,]+ GB of memory, but 5\.0 GB"
        )
        with pytest.raises(ValueError, match=message):
            fit(SMALL, *fastex(n_clusters=2**31 - 1, proposal=proposal), iterations=1, seed=0)

    def test_counts_out_of_range(self):
        large = Corpus(np.array([[2**31 - 1, 0], [0, 1], [2**31 - 1, 1]]))
        with pytest.raises(ValueError, match=r"word 0 occurs 4294967294 times in all, .* proposal='exact'"):
            fastex(n_clusters=2, proposal="exact").init(large, 0)
        with pytest.raises(ValueError, match=r"word 0 occurs 4294967294 times in all, .* proposal='neighbours'"):
            fastex(n_clusters=2, proposal="neighbours", exact_sweeps=[3]).init(large, 0)
        fastex(n_clusters=2, proposal="neighbours", exact_sweeps=[]).init(large, 0)
        with pytest.raises(ValueError, match=r"word 0 occurs 4294967294 times in all, .* component='gaussian'"):
            fastex(n_clusters=2, proposal="hash", component="gaussian").init(large, 0)
        assert np.isfinite(fit(large, *fastex(n_clusters=2, proposal="hash"), iterations=1, seed=0).state.log_joint)


class TestPriors:
    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("topic_word_prior", "each of 4 words; it must be at most 2.5e+08, because"),
            ("weight_prior", "each of 100 clust"),
        ],
    )
    def test_out_of_range(self, name, rule):
        with pytest.raises(ValueError, match=re.escape(f"{name} is 1e+300 for {rule}")):
            fastex(**{name: 1e300}).init(SMALL, 0)

    @pytest.mark.parametrize("proposal", ["hash", "exact"])
    @pytest.mark.parametrize("component", ["multinomial", "poisson", "gaussian"])
    def test_extremes_that_are_allowed_give_numbers(self, proposal, component):
        """More clusters than documents, empty documents, one word, large and small priors: a finite fit or a
        sentence."""
        draw_ = np.random.default_rng(1)
        corpora = [TINY, Corpus(np.array([[1], [0], [7]])), Corpus(draw_.poisson(0.3, (30, 5)))]
        n_fits = 0
        for corpus, word, weight, rate in zip(
            corpora * 5, 10.0 ** draw_.uniform(-20, 6, 15), 10.0 ** draw_.uniform(-20, 6, 15),
            10.0 ** draw_.uniform(-20, 20, 15), strict=True,
        ):  # fmt: skip
            engine = fastex(
                n_clusters=70,
                proposal=proposal,
                component=component,
                topic_word_prior=word,
                weight_prior=weight,
                **({} if component == "multinomial" else {"rate_prior": rate}),
            )
            try:
                done = fit(corpus, *engine, iterations=2, seed=0)
            except ValueError as error:
                assert EXTREME in str(error)  # noqa: PT017
                continue
            n_fits += 1
            assert done.state.cluster.min() >= 0
            assert done.state.cluster.max() < 70
            assert np.isfinite(done.state.log_joint)
            assert done.posterior.cluster_weights.sum() == pytest.approx(1.0)
        assert n_fits > 8
