"""p(words of a document) of admixtures (HDP, LDA), against enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.fits import gibbs
from helpers.posterior_samples import enumerate_document, tokens_of

from mc2core import Corpus
from mc2core.inference.running.loop import fit
from mc2core.posterior import scores
from mc2papers.baselines.lda import LDA

TRAIN = Corpus(np.random.default_rng(0).poisson([[2.0, 1.0, 0.3, 0.1], [0.1, 0.4, 1.0, 3.0]] * 6))
TEST = Corpus([[2, 1, 0, 0], [0, 0, 1, 3], [1, 1, 1, 1], [0, 0, 0, 0], [5, 0, 0, 0]], labels=np.zeros(5, int))


def hdp(n_samples):
    engine = gibbs(kernel="collapsed", model="hdp", start_topics=3, topic_word_prior=0.5)
    return fit(TRAIN, *engine, iterations=10 + n_samples, burn_in=10, seed=1, progress=False).posterior


def exact_hdp(model):
    """Mean over samples of the sum over topics of all tokens: topics in use and one, uniform, for the rest."""
    rows = []
    for sample in model.samples:
        words = sample.topic_words.toarray() + sample.topic_word_prior
        psi = np.vstack([words / words.sum(axis=1, keepdims=True), np.full(4, 0.25)])
        alpha = sample.table_concentration * np.append(sample.topic_weights, 1 - sample.topic_weights.sum())
        rows.append([enumerate_document(tokens_of(row), alpha, psi) for row in TEST.content.toarray()])
    return np.log(np.mean(rows, axis=0))


def exact_lda(model):
    """The prior of LDA as it was set, and the topics that the model names."""
    psi, alpha = model.word_given_topic, np.full(3, 0.4)
    return np.log([enumerate_document(tokens_of(row), alpha, psi) for row in TEST.content.toarray()])


def test_left_to_right_of_an_hdp_is_the_enumeration(monkeypatch):
    """160 streams of each of three samples: 0.06 nats are 5 standard deviations over seeds (0.012, from 50 seeds)."""
    monkeypatch.setattr("mc2core.posterior.perplexity.LEFT_TO_RIGHT_PARTICLES", 440)  # 20 in each sample
    model = hdp(3)
    assert 2 <= max(sample.n_topics for sample in model.samples) <= 6
    many = replace(model, samples=model.samples * 160)
    np.testing.assert_allclose(many.log_likelihood(TEST, "left_to_right"), exact_hdp(model), atol=0.06)


def test_left_to_right_of_lda_is_the_enumeration(monkeypatch):
    """480 streams: 0.04 nats are 5 standard deviations over seeds (0.008); a prior added twice is off by 0.2."""
    monkeypatch.setattr("mc2core.posterior.perplexity.LEFT_TO_RIGHT_PARTICLES", 440)  # 20 in each sample
    model = LDA(n_topics=3, document_prior=0.4, topic_word_prior=0.3).fit(TRAIN, 0).result
    many = replace(model, samples=model.samples * 480)
    np.testing.assert_allclose(many.log_likelihood(TEST, "left_to_right"), exact_lda(model), atol=0.04)


def test_each_model_is_scored_by_the_estimators_that_suit_it():
    asked = ["marginal", "icml14"]
    words = gibbs(kernel="collapsed", start_topics=3)
    for model, names in (
        (fit(TRAIN, *words, iterations=2, seed=0, progress=False).posterior, asked),
        (hdp(1), ["left_to_right"]),
        (LDA(n_topics=3).fit(TRAIN, 0).result, ["left_to_right"]),
    ):
        found = scores.evaluate(model, TRAIN, TEST, asked)
        assert found["estimator"] == names[0]
        assert list(found["perplexity"]) == names
        assert found["perplexity"][names[0]] == pytest.approx(model.perplexity(TEST, names[0]))
    assert scores.estimators_of(model, ["marginal", "context", "left_to_right"]) == ["left_to_right"]


def test_agreement_is_of_clusters_not_of_documents_by_themselves():
    labelled = Corpus(TRAIN.content, labels=np.arange(12) % 2)
    found = scores.evaluate(hdp(1), labelled, None)
    assert "purity" not in found
    assert found["clusters"] is None
    assert scores.evaluate(LDA(n_topics=2).fit(TRAIN, 0).result, labelled, None)["purity"] > 0.5
