"""Tables and pictures of a fit of observations against sums written out, and what it does not have."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from helpers.explored_fits import data_of
from helpers.fits import gibbs
from helpers.observed import crossed_corpus

from mc2core import Corpus, Fit, fit, plots
from mc2core.explore import describe, html_report, tables
from mc2core.explore.agreement import found_topics
from mc2core.explore.description import Description


def corpus():
    made, _ = crossed_corpus(n_documents=24, n_observations=15, seed=4)
    sizes = 10.0 * made.labels + np.arange(24) % 4
    titles = pd.DataFrame({"title": [f"School {j}" for j in range(24)]})
    names = ["maths", "reading", "sport"]
    values = made.observations.copy()
    values[:, 1] = 5.0  # a constant number
    return Corpus.from_observations(
        values, np.repeat(np.arange(24), 15), {"size": sizes}, made.labels, titles, names=names
    ).standardised("size")


@pytest.fixture(scope="module")
def description():
    made = corpus()
    engine = gibbs(start_topics=5, start_clusters=3)  # no document level: tokens of topics follow in one step
    return Description.from_posterior(fit(made, *engine, iterations=6, seed=1, burn_in=3, chains=1).posterior, made)


@pytest.fixture(scope="module")
def made(description):
    return tables.tables_of(description)


def students_t(x, natural):
    """ln density of (D,) standardised numbers under (4 D,) natural parameters of a topic (Murphy 2007, eq. 110)."""
    from scipy import stats

    first, kappa, a, second = natural.reshape(-1, 4).T
    mu = first / kappa
    b = second - kappa * mu**2 / 2
    return stats.t.logpdf(x, 2 * a, mu, np.sqrt(b * (kappa + 1) / (a * kappa))).sum()


def test_topics_have_means_in_place_of_words(description, made):
    contents, names = description.posterior.contents, description.corpus.vocabulary
    topics = made["topics"].set_index("topic")
    assert not {"words", "distinctive_words", "npmi"} & set(topics.columns)
    assert not {"topic_words", "cluster_words"} & set(made)
    values = description.corpus.observations
    for topic, row in topics.iterrows():
        for d, name in enumerate(names):
            assert row[f"{name}_mean"] == pytest.approx(contents.mean[topic - 1, d])
            assert row[f"{name}_sd"] == pytest.approx(contents.sd[topic - 1, d])
        away = np.abs(contents.mean[topic - 1] - values.mean(axis=0)) / np.where(
            values.std(axis=0) > 0, values.std(axis=0), 1
        )
        order = np.argsort(-away, kind="stable")
        assert row["name"] == ", ".join(f"{names[d]} {contents.mean[topic - 1, d]:.3g}" for d in order)
        told = made["topic_means"].query("topic == @topic")
        assert told["name"].tolist() == [names[d] for d in order]
        np.testing.assert_allclose(told["mean_of_all"], values.mean(axis=0)[order])
    assert topics["tokens"].sum() == pytest.approx(24 * 15)


def test_clusters_have_means_and_are_named_by_their_topics(description, made):
    length, values = 15, description.corpus.observations.reshape(24, 15, 3)
    shares = description.document_topics.toarray() / length
    topics = made["topics"].set_index("topic")["name"]
    k = description.n_clusters  # noqa: F841
    of_fit = made["clusters"].assign(cut=description.recommended, number=made["clusters"]["cluster"])
    for row in pd.concat([of_fit, made["cut_clusters"]]).query("cut == @k").itertuples():
        cluster = np.argsort(description.posterior.by_size)[row.number - 1]
        own = np.flatnonzero(description.cluster == cluster)
        told = made["cluster_means"].query("cluster == @row.cluster").set_index("name")
        for d, name in enumerate(description.corpus.vocabulary):
            assert told["mean"][name] == pytest.approx(values[own, :, d].mean())
            assert told["sd"][name] == pytest.approx(values[own, :, d].std(), abs=1e-9)
        of_cluster = description.posterior.topic_given_cluster[cluster]
        of_cluster = of_cluster * (1 - description.posterior.representative.new_topic_weight[cluster])
        most = np.argsort(-of_cluster * np.log(of_cluster / shares.mean(axis=0)))
        assert row.name == f"{topics[most[0] + 1]}; {topics[most[1] + 1]}"
        assert row.topics.split()[:2] == [str(one + 1) for one in most[:2]]
        near = made["cluster_documents"].query("cluster == @row.cluster")
        overlap = np.sqrt(shares * of_cluster).sum(axis=1)
        assert near["overlap"].tolist() == pytest.approx(sorted(overlap[own], reverse=True)[: len(near)])


def test_topics_of_documents_follow_from_the_densities(description):
    sample, contents = description.posterior.representative, description.posterior.contents
    values = (description.corpus.observations - contents.centre) / contents.scale
    for j in (0, 7):
        tau = sample.topic_given_cluster[description.cluster[j]]
        log_p = np.array(
            [[students_t(x, natural) for natural in contents.natural] for x in values[15 * j : 15 * j + 15]]
        )
        p = tau * np.exp(log_p - log_p.max(axis=1, keepdims=True))
        expected = (p / p.sum(axis=1, keepdims=True)).sum(axis=0)
        np.testing.assert_allclose(description.document_topics.toarray()[j], expected, rtol=1e-6, atol=1e-9)


def test_a_topic_is_found_where_another_sample_has_a_similar_one(description):
    sample = description.posterior.representative
    far = dataclasses.replace(sample.contents, centre=sample.contents.centre + 1000.0)
    near = dataclasses.replace(sample.contents, centre=sample.contents.centre + 0.1)
    fewer = dataclasses.replace(far, natural=far.natural[1:])
    samples = [sample, *(dataclasses.replace(sample, contents=one) for one in (far, near, fewer))]
    posterior = dataclasses.replace(description.posterior, samples=samples)
    posterior.__dict__["representative"] = sample
    found = found_topics(dataclasses.replace(description, posterior=posterior))
    assert found.shape == (4, sample.n_topics)
    assert found.all(axis=1).tolist() == [True, False, True, False]
    assert not found[1].any()


def test_page_and_summary_speak_of_observations(description, made, tmp_path):
    describe.describe(description.posterior, description.corpus, tmp_path / "out")
    said = (tmp_path / "out/summary.md").read_text()
    assert "| topic | name | share |" in said
    assert "words" not in said
    assert dict(made["summary"].to_numpy())["observations"] == "360"
    assert "words" not in set(made["summary"]["name"])
    shown = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    data = data_of(shown)
    assert data["of_observations"]
    assert {"topic_means", "cluster_means"} <= set(data["tables"])
    assert "distinctive_words" not in data["nodes"]
    many = made | {"topic_means": pd.concat([made["topic_means"]] * 9).sort_values("topic", kind="stable")}
    kept = dict(html_report._parts(description, many))["topic_means"]
    assert (kept.groupby("topic").size() == html_report.MAX_MEANS).all()


@pytest.mark.parametrize(("kind", "called"), [("counts", "counts"), ("binary", "zeros or ones")])
def test_columns_are_called_by_their_kind(kind, called):
    rng = np.random.default_rng(0)
    made = Corpus.from_observations(rng.integers(2, size=(40, 3)).astype(float), np.arange(40) // 5, kind=kind)
    posterior = fit(made, *gibbs(start_topics=2, start_clusters=2), iterations=1, progress=False).posterior
    said = dict(tables.tables_of(Description.from_posterior(posterior, made))["summary"].to_numpy())
    assert said[called] == "3"
    assert "numbers" not in said


def test_frames_and_pictures_of_observations(description):
    found = Fit(description.posterior, description.corpus)
    assert "maths_mean" in found.topics()
    assert "maths_trend" not in found.topics()
    assert "size_trend" in found.topics()
    assert found.documents()["tokens"].eq(15).all()
    assert len(found.document_topics())
    assert set(found.contexts()["context"]) == {"size", "label"}
    found.rename({"topic": {1: "strong"}})
    assert found.topics().set_index("topic")["name"][1] == "strong"
    named = found.clusters()
    assert any("strong" in name for name in named["name"])
    assert plots.topics_over_time(found, "size").get_ylabel() == "share of the observations"
    for made in (plots.clusters_by_context(found, "size"), plots.map_of_documents(found)):
        assert made.figure is not None
    for given in ({"topic": 1}, {"cluster": 1}):
        with pytest.raises(ValueError, match="topics emit observations, not words"):
            plots.words(found, **given)
