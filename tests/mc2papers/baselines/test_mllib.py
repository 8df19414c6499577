"""MLlib's LDA as a baseline: what it finds, and that its model is the one MLlib has."""

import numpy as np
import pytest

from mc2core import Corpus
from mc2core.compute import spark
from mc2core.posterior.scores import evaluate
from mc2papers.baselines.mllib import MLlibLDA


def two_kinds(n_documents=60):
    rng = np.random.default_rng(0)
    kind = np.arange(n_documents) % 2
    return Corpus(rng.poisson(0.05 + 3.0 * (np.arange(10) // 5 == kind[:, None])), labels=kind)


@pytest.mark.needs("spark")
def test_clear_clusters_are_found_and_scored_with_mllibs_prior():
    corpus = two_kinds()
    method = MLlibLDA(n_topics=2, iterations=8, batch_fraction=0.5, learning_offset=2)
    with spark.session({"spark.master": method.master}):
        fitted = method.fit(corpus, 0)
    model = fitted.result
    scores = evaluate(model, corpus, corpus)
    assert scores["purity"] == 1.0
    assert scores["estimator"] == "left_to_right"
    assert 5.0 < scores["perplexity"]["left_to_right"] < 7.0  # five words of one kind, and a few strays
    sample = model.representative
    assert sample.topic_words.sum() == pytest.approx(corpus.n_tokens, rel=0.2)  # lambda, less its prior
    assert sample.table_concentration != pytest.approx(0.2)  # learnt: it began at 2 x 0.1
