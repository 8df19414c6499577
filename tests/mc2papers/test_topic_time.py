"""ICML14 figure 4: a topic over time, against sums by hand."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs
from matplotlib import pyplot as plt
from scipy import integrate, stats

from mc2core.families import NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.posterior import SparseRows
from mc2papers import targets
from mc2papers.datasets.simulated import shapes
from mc2papers.icml2014 import topic_time


@pytest.fixture(scope="module")
def dated():
    whole, _ = shapes.simulate(shapes.PNAS, seed=2, scale=0.004)
    corpus = whole.standardised("year")
    return corpus, fit(corpus, *gibbs(contexts={"year": NormalGamma()}), iterations=4, burn_in=3, seed=0).posterior


def test_density_of_a_topic_over_time_is_a_mixture_of_clusters(dated):
    corpus, model = dated
    time = np.linspace(1700.0, 2200.0, 4001)
    density = topic_time.time_given_topic(model, time)
    assert integrate.trapezoid(density, time, axis=1) == pytest.approx(np.ones(model.representative.n_topics), abs=0.01)
    mean, sd = corpus.units["year"]
    mu, kappa, a, b = NormalGamma.standard(model.representative.natural)
    scale = sd * np.sqrt(b * (kappa + 1) / (a * kappa))
    by_hand = sum(
        model.cluster_weights[k]
        * model.topic_given_cluster[k, 1]
        * stats.t.pdf(1950.0, 2 * a[k], mean + sd * mu[k], scale[k])
        for k in range(model.representative.n_clusters)
    )
    weight = model.cluster_weights @ model.topic_given_cluster[:, 1]
    at_1950 = topic_time.time_given_topic(model, np.array([1950.0]))[1, 0]
    assert at_1950 == pytest.approx(by_hand / weight, rel=1e-9)


def test_topic_over_time_is_found_by_word_and_counts_documents(dated):
    corpus, model = dated
    word = model.top_words(3)[2][1]
    table = topic_time.describe(corpus, model, word, n_words=3)
    topic = int(np.argmax(model.word_given_topic[:, model.vocabulary.index(word)]))
    assert table[table["part"] == "words"]["text"].tolist() == model.top_words(3)[topic]
    assert word in model.top_words(3)[topic]
    documents = table[table["part"] == "documents"]
    column = np.asarray(corpus.content[:, [corpus.vocabulary.index(word)]].todense()).ravel() > 0
    assert documents["value"].sum() == column.sum()
    mean, sd = corpus.units["year"]
    years = np.rint(corpus.contexts["year"] * sd + mean)
    assert dict(zip(documents["year"], documents["value"], strict=True)) == Counter(years[column])
    figure = topic_time.draw(table, "simulated data, PNAS-shaped")
    assert {"Data: simulated data, PNAS-shaped", "year"} <= {text.get_text() for text in figure.findobj(match=plt.Text)}
    plt.close(figure)


def test_topic_over_time_without_a_word_has_the_narrowest_peak(dated):
    corpus, model = dated
    sharp = replace(
        model.representative, topic_given_cluster=np.eye(model.representative.n_clusters, model.representative.n_topics)
    )
    natural = np.tile(NormalGamma().prior(4) * [1, 20, 20, 20], (model.representative.n_clusters, 1))
    natural[1, 3] = 0.2
    one = replace(model, samples=[replace(sharp, contexts=SparseRows.from_dense(natural))])
    assert topic_time.narrowest(one, np.linspace(1900.0, 2010.0, 441)) == 1
    assert topic_time.describe(corpus, model)["part"].unique().tolist() == ["topic", "all", "documents", "words"]


@pytest.mark.parametrize(("word", "message"), [("nonsense", "has no such word"), (None, "no topic of the model")])
def test_unknown_words_and_words_without_a_topic_are_refused(dated, word, message):
    corpus, model = dated
    counts = sp.csr_matrix(model.representative.topic_words).tolil()
    counts[:, 5] = 0
    bare = replace(model, samples=[replace(model.representative, topic_words=counts.tocsr())])
    with pytest.raises(ValueError, match=f"figure4.word is .*{message}"):
        topic_time.describe(corpus, bare, word or model.vocabulary[5])


def test_the_match_with_google_scholar_is_said_to_be_left_out(dated, tmp_path):
    corpus, model = dated
    corpus.save(tmp_path / "train")
    about = {"title": "PNAS", "source": "simulated", "drawn_from": "MC2", "dataset": "pnas", "documents": 320}
    (tmp_path / "source.json").write_text(json.dumps(about))
    model.save(tmp_path / "posterior.npz")
    files = {"corpora": [tmp_path], "models": [tmp_path / "posterior.npz"]}
    options = {"figure4": {"word": None, "n_words": 4}}
    (claim,) = targets.registry()["icml2014_figure4"].build(files, options).claims
    assert (claim.dataset, claim.verdict) == ("PNAS", "not run")
    assert "Google Scholar" in claim.text
