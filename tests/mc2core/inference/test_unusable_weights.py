"""Weights that cannot be drawn from are refused with a sentence, and never give an index."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.engines import ENGINES
from helpers.fits import gibbs, svi
from helpers.gibbs_twin import small_corpus

from mc2core.compute import streams
from mc2core.families import NormalGamma
from mc2core.inference.gibbs import blocked
from mc2core.inference.running.loop import fit

CLUSTERS = r"document \d+: the weights of its clusters have no finite sum above 0; check"
TOPICS = r"document \d+: the weights of a token's topics have no finite sum above 0; check"


def document_level(**more):
    return svi(max_clusters=3, max_topics=4, batch_size=5, document_level=True, **more)


@pytest.mark.parametrize("engine", [*ENGINES.values(), document_level], ids=[*ENGINES, "svi document level"])
def test_a_context_that_is_no_number_is_named(engine):
    corpus = small_corpus(1)
    engine = engine(contexts={"year": NormalGamma()})
    state = engine.init(corpus, 0)
    state.contexts.statistics.data[:] = np.nan  # of all documents: those in small clusters stay there in a blocked move
    with pytest.raises(ValueError, match=CLUSTERS):
        engine.step(corpus, state, 0, 1)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_a_topic_weight_that_is_no_number_is_named(weight):
    corpus = small_corpus(1)
    engine = gibbs(kernel="collapsed", model="hdp")
    state = engine.init(corpus, 0)
    state.assignments.topic_weights[0] = weight
    with pytest.raises(ValueError, match=TOPICS):
        engine.step(corpus, state, 0, 1)


@pytest.mark.parametrize("mass", [np.nan, np.inf])
def test_blocked_tokens_without_finite_mass_are_named(mass, monkeypatch):
    corpus = small_corpus(1)
    engine = gibbs(kernel="blocked", model="hdp")
    state = engine.init(corpus, 0)
    draw_psi = blocked.draw_psi

    def spoilt(*arguments):
        draw_psi(*arguments)
        arguments[-2][0, 0] = mass

    monkeypatch.setattr(blocked, "draw_psi", spoilt)
    with pytest.raises(ValueError, match=TOPICS):
        engine.step(corpus, state, 0, 1)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, np.nan], [np.inf, 1.0], []])
def test_a_choice_needs_weights(weights):
    with pytest.raises(ValueError, match=r"the weights of seeds sum to .*; a draw needs a finite sum above 0"):
        streams.choose(np.array(weights), np.random.default_rng(0), "seeds")


@pytest.mark.parametrize("estimator", ["marginal", "icml14", "importance", "left_to_right"])
def test_scores_of_a_model_that_is_no_number_name_a_document(estimator):
    corpus = small_corpus(1)
    model = fit(corpus, *gibbs(), iterations=2, progress=False).posterior
    model.representative.topic_words.data = model.representative.topic_words.data.astype(float)
    model.representative.topic_words.data[0] = np.inf
    broken = r"document \d+: its log likelihood under the posterior is nan; the posterior's"
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=broken):
        model.log_likelihood(corpus, estimator)
    broken = r"document \d+: its log likelihood in all clusters together is nan; the posterior's"
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=broken):
        model.predict_proba(corpus)
