"""Tables of a fit against sums over documents, written out."""

import dataclasses
import re
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from helpers.explored_fits import HOSTILE, corpus, data_of, fastex, gibbs, of_contexts_alone, svi
from helpers.fits import at_strength
from helpers.small_posteriors import word_given_cluster

import mc2core
from mc2core import Corpus
from mc2core.base.extras import MissingPackage
from mc2core.corpus.building.cells import parse_date
from mc2core.explore import describe, documents, html_report, shares, steps, tables
from mc2core.explore.clusters import cluster_tables
from mc2core.explore.description import Description, _sizes
from mc2core.explore.summary import summary
from mc2core.explore.topics import _find_typical
from mc2core.explore.variables import CONTEXT, Variable, own_unit
from mc2core.models import MC2
from mc2core.posterior.hierarchy import Hierarchy


@pytest.fixture(scope="module")
def description():
    made = corpus()
    return Description.from_posterior(gibbs(made), made)


@pytest.fixture(scope="module")
def made(description):
    return tables.tables_of(description)


def place_of(description, number):
    """Size and number there, from 0, of a cluster or a cluster of a cut, counted from 1."""
    first = 0
    cuts = sorted(description.cuts, reverse=True)
    for size in dict.fromkeys([description.recommended, description.n_clusters, *cuts]):
        if number - 1 < first + size:
            return size, number - 1 - first
        first += size


def documents_of(description, number):
    """Documents of a cluster or a cluster of a cut, counted from 1."""
    size, place = place_of(description, number)
    found = description.posterior.hierarchy.cut(size)
    return np.flatnonzero(found == place)


def test_clusters_and_those_of_levels_have_their_documents(description, made):
    assert description.n_clusters >= 4
    kept = description.posterior.hierarchy
    assert description.recommended == kept.recommended < description.n_clusters
    assert made["clusters"]["documents"].tolist() == np.bincount(kept.cut(kept.recommended)).tolist()
    assert made["clusters"]["documents"].is_monotonic_decreasing
    assert made["documents"]["cluster"].tolist() == (kept.cut(kept.recommended) + 1).tolist()
    assert list(description.cuts) == list(range(kept.n_clusters - 1, 0, -1))
    assert len(made["cut_clusters"]) == sum(description.cuts) + description.n_clusters - kept.recommended
    for row in made["cut_clusters"].itertuples():
        assert (row.cut, row.number - 1) == place_of(description, row.cluster)
        assert row.documents == (kept.cut(row.cut) == row.number - 1).sum()
    assert made["hierarchy"]["clusters"].tolist() == list(range(1, kept.n_clusters + 1))
    assert made["hierarchy"]["loss"].iloc[:-1].tolist() == pytest.approx((np.diff(kept.scores) / 60).tolist())
    assert made["summary"].set_index("name").loc["recommended number of clusters", "value"] == str(kept.recommended)
    assert made["summary"].set_index("name").loc["chains", "value"] == "one chain; another start may differ"


def test_new_documents_have_levels_by_those_of_the_fit(description):
    new = description.corpus.subset(np.arange(7))
    other = Description.from_posterior(description.posterior, new)
    sample, cut = description.posterior.representative, description.posterior.hierarchy.cut(2)
    into = [[np.mean(cut[sample.cluster == k] == g) for g in (0, 1)] for k in range(sample.n_clusters)]
    expected = (description.posterior.predict_proba(new) @ np.array(into)).argmax(axis=1)
    assert other.cuts[2].tolist() == expected.tolist()
    without = Description.from_posterior(dataclasses.replace(description.posterior, hierarchy=None), new)
    assert (without.cuts, without.sizes) == ({}, [description.n_clusters])


def test_which_levels_are_described():
    n = 100
    scores = np.append(np.arange(42.0), np.full(n - 42, 41.0))
    none, pairs = np.zeros(0, np.int32), np.column_stack([np.zeros(n - 1), np.arange(1, n)]).astype(np.int32)
    joined = np.arange(n, dtype=np.int32), pairs, np.zeros(n, np.int64), none, none
    made = Hierarchy(*joined, scores, np.full(n, np.nan), 42)
    assert _sizes(made) == [97, 78, 63, 51, 42, 41, 33, 27, 22, 18, 15, *range(12, 0, -1)]


def test_words_of_levels_have_the_weighted_probabilities(description, made):
    sample, vocabulary = description.posterior.representative, description.corpus.vocabulary
    everywhere = np.asarray(description.corpus.content.sum(axis=0)).ravel() + sample.topic_word_prior
    everywhere = everywhere / everywhere.sum()
    table = made["cluster_words"]
    for number in (1, int(made["cut_clusters"]["cluster"].iloc[-2])):
        own = documents_of(description, number)
        parts = [np.isin(np.flatnonzero(sample.cluster == k), own).mean() for k in range(sample.n_clusters)]
        weights = np.eye(sample.n_clusters)[0] if number == 1 else parts * sample.cluster_weights
        expected = np.average(word_given_cluster(sample), axis=0, weights=weights)
        part = table[table["cluster"] == number]
        places = [vocabulary.index(word) for word in part["word"]]
        assert part["probability"].to_numpy() == pytest.approx(expected[places])
        assert part["lift"].to_numpy() == pytest.approx(expected[places] / everywhere[places])
        assert part["word"].iloc[0] == vocabulary[int(expected.argmax())]
        assert sorted(part["by_probability"])[:3] == [1, 2, 3]


def test_contexts_are_those_of_the_documents_in_their_own_unit(description, made):
    centre, sd = description.corpus.units["year"]
    years = description.corpus.contexts["year"] * sd + centre
    authors = description.corpus.contexts["author"].toarray()
    for number in made["cut_clusters"]["cluster"].tolist():
        own = documents_of(description, number)
        row = made["cluster_numbers"].query("cluster == @number").iloc[0]
        met = years[own][~np.isnan(years[own])]
        expected = pytest.approx([len(met), met.mean(), met.std(), met.min(), met.max()])
        assert row[["documents", "mean", "sd", "least", "most"]].tolist() == expected
        counts = authors[own].sum(axis=0)
        values = made["cluster_values"].query("cluster == @number").set_index("value")
        assert len(values) == (counts > 0).sum()
        for name, value in values.iterrows():
            author = description.corpus.context_names["author"].index(name)
            share = counts[author] / counts.sum()
            assert (value["count"], value["share"]) == (counts[author], pytest.approx(share))
            assert value["lift"] == pytest.approx(share / (authors[:, author].sum() / authors.sum()))


def test_typical_documents_overlap_most_with_their_cluster(description, made):
    own = documents_of(description, 1)
    share = description.corpus.content[own].toarray() / description.corpus.document_lengths[own][:, None]
    overlap = np.sqrt(share * word_given_cluster(description.posterior.representative)[0]).sum(axis=1)
    part = made["cluster_documents"].query("cluster == 1")
    assert part["document"].tolist() == (own[np.argsort(-overlap, kind="stable")][:10] + 1).tolist()
    assert part["overlap"].to_numpy() == pytest.approx(np.sort(overlap)[::-1][:10])


def test_typical_documents_of_topics_come_by_their_share():
    """A short document whose words are all of the topic comes before a long one with more words of it."""
    tokens = sp.csr_matrix(np.array([[3.0, 0.0], [10.0, 6.0]]))
    table = _find_typical(SimpleNamespace(clusters_are_topics=False, document_topics=tokens)).query("topic == 1")
    assert table[["rank", "document", "share"]].to_numpy().tolist() == [[1, 1, 1.0], [2, 2, 0.625]]


def test_labels_are_counted_and_scored_at_every_cut(description, made):
    from sklearn import metrics

    for row in made["hierarchy"].itertuples():
        whole = row.clusters == description.n_clusters
        group = description.cluster if whole else description.posterior.hierarchy.cut(row.clusters)
        assert row.ari == pytest.approx(metrics.adjusted_rand_score(description.corpus.labels, group))
        assert row.nmi == pytest.approx(metrics.normalized_mutual_info_score(description.corpus.labels, group))
    own = documents_of(description, 1)
    counts = made["cluster_labels"].query("cluster == 1").set_index("label")["documents"]
    names = np.array(["water", "land", "sky"])[description.corpus.labels[own]]
    assert counts.to_dict() == pd.Series(names).value_counts().to_dict()


@pytest.mark.parametrize("omega", [None, 2.0])
def test_topics_are_counted_by_tokens_given_the_clusters(omega):
    made = corpus()
    description = Description.from_posterior(
        gibbs(made, **({} if omega is None else {"document_concentration": omega})), made
    )
    sample = description.posterior.representative
    psi, tau = sample.word_given_topic, (1 - sample.new_topic_weight)[:, None] * sample.topic_given_cluster
    got = description.document_topics.toarray()
    assert got.sum(axis=1) == pytest.approx(made.document_lengths)
    for j in (0, 17):
        counts = made.content[[j]].toarray().ravel()
        shares = tau[description.cluster[j]]
        for _ in range(1 if omega is None else 20):
            each = shares[:, None] * psi
            tokens = (counts * each / each.sum(axis=0)).sum(axis=1)
            shares = omega * tau[description.cluster[j]] + tokens if omega is not None else shares
        assert got[j] == pytest.approx(tokens)


def test_threads_give_the_same_tokens_of_topics(description):
    again = dataclasses.replace(description, threads=3)
    assert np.array_equal(again.document_topics.toarray(), description.document_topics.toarray())


def test_of_several_samples_documents_are_in_their_consensus(description):
    posterior, known = description.posterior, description.corpus
    sample, rng = posterior.samples[0], np.random.default_rng(0)
    moved = [np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), sample.cluster).astype(np.int32) for _ in range(4)]
    fewer = {"topic_weights": sample.topic_weights[:2], "topic_words": sample.topic_words[:2]}
    fewer["topic_given_cluster"] = sample.topic_given_cluster[:, :2]
    samples = [sample, *(dataclasses.replace(sample, cluster=one, **fewer) for one in moved)]
    posterior = dataclasses.replace(posterior, samples=samples, hierarchy=None)
    found = tables.tables_of(Description.from_posterior(posterior, known))
    assert (posterior.cluster == sample.cluster).mean() > 0.9
    own, probability = posterior.assign(known, cut="recommended")
    assert found["documents"]["cluster"].tolist() == (own + 1).tolist()
    assert found["documents"]["probability"].tolist() == pytest.approx(probability[np.arange(60), own].tolist())
    assert (probability[np.arange(60), own] < 1).any()
    said = found["summary"].set_index("name")["value"]
    k, m = sample.n_clusters, sample.n_topics
    assert said["clusters in 90 % of the samples"] == str(k)
    assert said["main clusters in 90 % of the samples"] == str(k)
    assert "topics in 90 % of the samples" not in said
    assert said["topics"] == str(m)
    assert "clusters by run" not in said


def test_clusters_that_only_some_chains_found_are_counted_apart(description):
    """Of four chains, two agree with the fit, and two have the documents of clusters 2 and 3 anywhere in these."""
    sample, rng = description.posterior.samples[0], np.random.default_rng(0)
    by_size = Description.from_posterior(description.posterior, description.corpus).at(description.recommended)
    apart = sample.cluster.copy()
    apart[by_size != 0] = rng.permutation(apart[by_size != 0])
    samples = [sample, sample, *(dataclasses.replace(sample, cluster=apart) for _ in range(2))]
    provenance = description.posterior.provenance | {"chains": [1, 1, 1, 1]}
    posterior = dataclasses.replace(description.posterior, samples=samples, provenance=provenance)
    found = tables.tables_of(Description.from_posterior(posterior, description.corpus))
    sure = found["clusters"][found["clusters"]["chains"] == 4]
    assert 0 < len(sure) < len(found["clusters"])
    n, documents = len(found["clusters"]), sure["documents"].sum()
    told = f"{len(sure)} of the {n} clusters ({documents} documents) were found in all four"
    said = found["summary"].set_index("name")["value"]["clusters by run"]
    assert said == f"four runs from different starts: {told}"
    page = summary(Description.from_posterior(posterior, description.corpus), found, "x")
    assert f"Four runs from different starts: {told}." in page


def test_of_an_unsure_document_the_second_cluster_is_shown():
    known = pd.DataFrame({"document": [1, 2, 3], "cluster": [1, 2, 3], "probability": [0.4, 0.9, 0.3]})
    of_clusters = pd.DataFrame(
        [(1, 1, 0.4), (1, 5, 0.35), (1, 2, 0.25), (2, 2, 0.9), (2, 1, 0.1), (3, 4, 0.6), (3, 3, 0.3)],
        columns=["document", "cluster", "probability"],
    )
    assert html_report._next_clusters(known, of_clusters).to_numpy().tolist() == [[1, 5, 0.35], [3, 4, 0.6]]


def test_a_context_that_counts_less_than_in_the_model_is_said_to(description, made):
    said = made["summary"].set_index("name")["value"]
    assert said["contexts of the model"] == "author, year"
    families = description.posterior.families
    families = families | at_strength({"year": families["year"]}, 0.25)
    weak = dataclasses.replace(description.posterior, families=families)
    said = tables.tables_of(Description.from_posterior(weak, description.corpus))["summary"].set_index("name")["value"]
    assert said["contexts of the model"] == "author, year (strength 0.25)"


def test_clusters_without_documents_have_no_row(description):
    few = description.corpus.subset(np.flatnonzero(description.corpus.labels == 0))
    part = Description.from_posterior(description.posterior, few)
    made = tables.tables_of(part)
    found = part.at(part.recommended)
    assert made["clusters"]["cluster"].tolist() == (np.unique(found) + 1).tolist()
    assert 0 < len(made["clusters"]) < part.recommended
    said = made["summary"].set_index("name")["value"]
    used = len(np.unique(part.cluster))
    assert (said["clusters"], said["clusters with a document"]) == (str(part.n_clusters), str(used))
    told = f"{part.recommended} clusters, recommended of the {part.n_clusters} found, "
    assert told in summary(part, made, "few").splitlines()[2]
    assert set(made["cut_clusters"]["cut"]) == {part.n_clusters, *part.cuts} - {part.recommended}
    assert (made["cut_clusters"]["documents"] > 0).all()


@pytest.mark.parametrize("kind", ["context of names", "kept groups", "kept numbers"])
def test_what_users_call_as_our_columns_stands_beside_these(description, made, kind):
    known = description.corpus
    ours = [*dict.fromkeys([*made["cut_clusters"], *made["clusters"]])]
    if kind == "context of names":
        given = sp.csr_matrix(np.eye(3, dtype=int)[known.labels])
        contexts, documents_ = dict.fromkeys(ours, given), None
    else:
        of_each = np.array(["low", "mid", "high"])[known.labels] if kind == "kept groups" else known.labels / 4
        contexts, documents_ = {}, pd.DataFrame(dict.fromkeys(ours, of_each))
    named = Corpus(
        known.content, known.vocabulary, {**known.contexts, **contexts}, known.labels, documents_,
        context_names=known.context_names, label_names=known.label_names, units=known.units,
    )  # fmt: skip
    about = Description.from_posterior(description.posterior, named)
    found = cluster_tables(about)
    for name in ("clusters", "cut_clusters"):
        pd.testing.assert_frame_equal(found[name][list(made[name])], made[name])
        prefix = "document_" if contexts == {} else "context_"
        assert {f"{prefix}{one}{'_mean' * (kind == 'kept numbers')}" for one in ours} <= set(found[name])
    head = summary(about, made | found, "x").splitlines()[6]
    assert all(f"{prefix}{one}" in head.split(" | ") for one in ("share", "name", "words"))


def test_shares_of_topics_are_those_of_the_fitted_tokens(description, made):
    counts = np.asarray(description.posterior.representative.topic_words.sum(axis=1)).ravel()
    assert counts.sum() == description.corpus.n_tokens
    table = made["topics"]
    assert table["share"].tolist() == (counts / counts.sum())[table["topic"] - 1].tolist()
    assert table["share"].is_monotonic_decreasing
    few = Description.from_posterior(description.posterior, description.corpus.subset(np.arange(10)))
    again = tables.tables_of(few)["topics"]
    assert again[["topic", "share"]].equals(table[["topic", "share"]])
    assert again["tokens"].sum() == pytest.approx(few.corpus.n_tokens)


def test_trends_share_out_every_year(description, made):
    centre, sd = description.corpus.units["year"]
    years = np.round(description.corpus.contexts["year"] * sd + centre)
    of_clusters = made["trends"].query("of == 'cluster' and number <= @description.recommended")
    for start, part in of_clusters.groupby("start"):
        found = description.at(description.recommended)[years == start]
        expected = np.bincount(found, minlength=description.recommended)
        assert part["count"].tolist() == expected.tolist()
        assert part["share"].sum() == pytest.approx(1.0 if expected.any() else 0.0)
    assert steps.bounds_of(np.array([0.5, 2.0])).tolist() == pytest.approx(np.linspace(0.5, 2.0, 21).tolist())


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ("2019-03-01", "2019-03-03", ["2019-03-01", "2019-03-02", "2019-03-03"]),
        ("2018-12-31", "2020-03-01", [str(pd.Period("2018-12", "M") + i) for i in range(16)]),
        ("2019-12-31", "2024-01-01", [str(pd.Period("2019Q4", "Q") + i) for i in range(18)]),
        ("1999-02-03", "2021-06-30", [str(year) for year in range(1999, 2022)]),
        ("1787", "1821", [str(year) for year in range(1787, 1822)]),
        ("1787", "1999", [str(year) for year in range(1780, 2000, 10)]),
    ],
)
def test_trends_over_dates_have_days_months_quarters_or_years(description, first, last, names):
    """A document at the first moment of each period, and one at its last date, are in it."""
    dates = np.array([parse_date(first), parse_date(last)])
    periods = steps.periods_of(dates)
    assert [str(one) for one in periods] == names
    starts = [max(parse_date(first), steps._start(one)) for one in periods]
    values = np.full(60, np.nan)
    values[: len(starts) + 1] = [*np.round(starts, 9), dates[1]]  # as they are after they were standardised
    found = shares.shares_over(description, Variable("when", CONTEXT, values, [], is_date=True))
    found = found.query("of == 'cluster' and number == 1")
    assert found["period"].astype(str).tolist() == names
    assert found["documents"].tolist() == [*np.ones(len(names) - 1, int), 2]
    assert found["start"].tolist() == found["end"].shift(fill_value=found["start"].iloc[0]).tolist()


def test_a_document_of_another_clusters_words_is_a_misfit(description):
    content = description.corpus.content.toarray()
    content[0] = content[1]  # of another group
    moved = dataclasses.replace(description, corpus=Corpus(content, description.corpus.vocabulary))
    found = documents.misfit(moved)
    assert found.argmax() == 0
    assert found[0] > 3
    assert abs(np.median(found)) < 0.5


@pytest.mark.parametrize("missing", [["author"], ["year"], ["author", "year"]])
def test_summary_has_no_values_of_a_context_missing_in_all(description, missing):
    """The height is known in all documents, so that a table of numbers is there."""
    fitted = description.corpus
    nowhere = {"year": np.full(60, np.nan), "author": sp.csr_matrix((60, 7), dtype=np.int64)}
    contexts = fitted.contexts | {"height": np.arange(60.0)} | {name: nowhere[name] for name in missing}
    without = fitted.with_contexts(contexts)
    without.context_names = dict(fitted.context_names)
    again = Description.from_posterior(description.posterior, without)
    lines = summary(again, tables.tables_of(again), "New").splitlines()
    head = lines.index("## Clusters") + 2
    columns, first = ([cell.strip() for cell in lines[line].strip("|").split("|")] for line in (head, head + 2))
    said = dict(zip(columns, first, strict=True))
    assert [name for name in ("author", "year") if not said[f"context_{name}"]] == missing
    assert said["context_height"]


def test_documents_have_titles_probabilities_and_a_place(description, made):
    table = made["documents"]
    assert table["title"][2] == HOSTILE
    assert table["label"].tolist()[:3] == ["water", "land", "sky"]
    assert table["probability"].to_numpy() == pytest.approx(description.in_recommended.max(axis=1))
    assert table[["x", "y"]].to_numpy().min() == 0.0
    assert table[["x", "y"]].to_numpy().max() == 1.0
    assert documents.layout(description, 0).tolist() == table[["x", "y"]].to_numpy().tolist()
    sums = made["document_clusters"].groupby("document")["probability"].sum()
    assert (sums > 0.9).all()
    places = table[["x", "y"]].to_numpy()
    near = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(near, np.inf)
    assert (description.cluster[near.argmin(axis=1)] == description.cluster).mean() > 0.8


def test_documents_without_titles_are_named_by_their_words():
    corpus = mc2core.Corpus.from_texts(["iron iron nail stone", "tree leaf stone", "stone", ""], min_df=1)
    numbers = [f"document {j + 1}" for j in range(4)]
    named = documents.with_words(numbers, corpus)
    assert named[0] == "document 1: iron, nail, stone"
    assert set(named[1].removeprefix("document 2: ").split(", ")[:2]) == {"tree", "leaf"}
    assert named[2:] == ["document 3: stone", "document 4"]
    assert documents.with_words(["A title", "document 2", "", "x"], corpus)[0] == "A title"
    nameless = mc2core.Corpus(corpus.content)
    assert documents.with_words(numbers, nameless) == numbers


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-40])
def test_what_is_all_alike_stands_in_a_row(noise):
    features = np.ones((40, 3)) if noise == 0.0 else noise * np.random.default_rng(0).standard_normal((40, 3))
    place = documents.flattened(features, 30, 0)
    assert place.tolist() == np.column_stack([np.linspace(0, 1, 40), np.full(40, 0.5)]).tolist()


@pytest.mark.filterwarnings("error")
def test_equal_documents_are_described_without_a_warning(tmp_path):
    same = Corpus(np.ones((40, 3), int), contexts={"year": np.full(40, 2000.0)})
    posterior = mc2core.fit(same, MC2(contexts=["year"]), iterations=4, progress=False).posterior
    describe.describe(posterior, same, tmp_path)
    assert pd.read_csv(tmp_path / "documents.csv")["cluster"].nunique() == 1


def test_of_one_feature_all_stand_where_it_says():
    place = documents.flattened(np.array([[3.0], [1.0], [1.5], [5.0], [1.0]]), 8, 0)
    assert place.tolist() == [[0.5, 0.5], [0.0, 0.5], [0.125, 0.5], [1.0, 0.5], [0.0, 0.5]]


def test_of_contexts_alone_there_are_clusters_and_no_topics(tmp_path):
    done = of_contexts_alone()
    assert done.clusters()["documents"].tolist() == [20, 20]
    assert len(done.topics()) == len(done.document_topics()) == 0
    assert set(done.effects("x")["of"]) == {"cluster"}
    describe.describe(done.posterior, done.corpus, tmp_path / "out")
    topics = pd.read_csv(tmp_path / "out/topics.csv")
    assert (len(topics), {"topic", "name", "share", "found", "x", "y"} <= set(topics)) == (0, True)
    assert (tmp_path / "out/summary.md").read_text("utf-8").splitlines()[2].startswith("40 documents, 2 clusters, 0 to")


def test_documents_have_their_topics(description, made):
    table, tokens = made["document_topics"], description.document_topics.toarray()
    assert tokens.sum() == pytest.approx(description.corpus.n_tokens)
    for document in (0, 17):
        own = table[table["document"] == document + 1]
        share = tokens[document] / description.corpus.document_lengths[document]
        assert sorted(own["topic"] - 1) == np.flatnonzero(share >= 0.01).tolist()
        assert own["share"].to_numpy() == pytest.approx(share[own["topic"] - 1])
        assert own["share"].is_monotonic_decreasing
        assert own["tokens"].sum() == pytest.approx(tokens[document][share >= 0.01].sum())
    alone = corpus().with_contexts({})  # where clusters are topics, documents have one each
    assert "document_topics" not in tables.tables_of(Description.from_posterior(fastex(alone), alone))


def test_documents_have_their_contexts_with_counts(description):
    corpus = description.corpus.with_contexts({"author": description.corpus.contexts["author"] * 2})
    corpus.context_names = {"author": description.corpus.context_names["author"]}
    again = dataclasses.replace(description, corpus=corpus)
    said = documents.document_tables(again)["documents"]
    for row in (0, 7):
        counts = corpus.contexts["author"][[row]].toarray().ravel()
        expected = [f"{name}:{n}" for name, n in zip(corpus.context_names["author"], counts, strict=True) if n]
        assert said["context_author"][row] == "; ".join(expected)


def test_a_large_corpus_is_sampled_on_the_map_and_not_in_tables(description, monkeypatch):
    monkeypatch.setattr(documents, "MAX_POINTS", 20)
    table = documents.document_tables(description)["documents"]
    assert (len(table), table["x"].notna().sum()) == (60, 20)


def test_of_too_many_documents_some_are_drawn(description, tmp_path, monkeypatch):
    part = Description.from_posterior(description.posterior, description.corpus, most=25, seed=3)
    rows = part.drawn
    assert (len(set(rows.tolist())), part.n_documents) == (25, 60)
    for size in description.first:
        assert part.at(size).tolist() == description.at(size)[rows].tolist()
    assert part.posterior.was_fitted_on(part.corpus)
    table = documents.document_tables(part, with_map=False)["documents"]
    whole = documents.document_tables(description, with_map=False)["documents"]
    assert table["corpus_document"].tolist() == (rows + 1).tolist()
    for name in ("tokens", "cluster", "context_author", "probability"):
        assert table[name].tolist() == whole[name][rows].tolist()
    assert Description.from_posterior(description.posterior, description.corpus, most=60).drawn is None
    monkeypatch.setattr(describe, "MAX_DOCUMENTS", 25)
    texts = [f"said in {number}." for number in range(60)]
    describe.describe(description.posterior, description.corpus, tmp_path / "out", seed=3, texts=texts)
    assert "25 documents, drawn from 60, " in (tmp_path / "out/summary.md").read_text()
    told = (tmp_path / "out/index.html").read_text()
    assert [number for number in range(60) if f"said in {number}." in told] == rows.tolist()


def column(packed):
    if isinstance(packed, list):
        return packed
    return [packed["levels"][code] if code >= 0 else "" for code in packed["codes"]]


@pytest.mark.parametrize(
    "fit", [gibbs, fastex, partial(gibbs, document_concentration=2.0), svi], ids=["gibbs", "fastex", "own", "svi"]
)
def test_every_number_on_the_page_is_in_a_table(fit, tmp_path):
    made = corpus()
    fitted = fit(made)
    describe.describe(fitted, made, tmp_path / "out", "<b>Title</b>")
    text = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert "<b>Title</b>" not in text
    assert HOSTILE not in text
    data = data_of(text)
    paths = (tmp_path / "out").glob("*.csv")
    files = {path.stem: pd.read_csv(path, keep_default_na=False, na_values=[""]) for path in paths}
    assert set(data["tables"]) <= set(files)
    for name, packed in data["tables"].items():
        shown = pd.DataFrame({key: column(one) for key, one in packed.items()})
        in_file = files[name][list(shown.columns)]
        if name == "document_topics":  # the commonest of each document
            in_file = in_file[in_file["share"] >= 0.05].groupby("document").head(3)
        if name == "document_clusters":  # the likeliest other cluster of unsure documents
            of_page = set(zip(shown["document"], shown["cluster"], strict=True))
            in_file = in_file[[one in of_page for one in zip(in_file["document"], in_file["cluster"], strict=True)]]
        assert len(shown) > 0
        assert sorted(map(str, shown.astype(object).where(shown.notna(), None).to_numpy().tolist())) == sorted(
            map(str, in_file.astype(object).where(in_file.notna(), None).to_numpy().tolist())
        ) or _same(shown, in_file, 5e-4)  # shares have four digits on the page
    nodes = pd.DataFrame({key: column(one) for key, one in data["nodes"].items()})
    alone = files["clusters"].assign(cut=data["recommended"], number=files["clusters"]["cluster"])
    rows = pd.concat([alone, files["cut_clusters"]])[list(nodes.columns)].reset_index(drop=True)
    assert _same(nodes, rows)
    assert [name for name, _ in data["summary"]] == files["summary"]["name"].tolist()
    for name, shown in data["contexts"].items():
        column_of = f"{'document' if shown['kept'] else 'context'}_{name}"
        rows = files["documents"][column_of][np.array(shown["document"]) - 1]
        if "number" in shown:
            assert np.allclose(rows.astype(float), np.array(shown["number"], float), rtol=1e-5, atol=0, equal_nan=True)
        else:
            said = ["; ".join(shown["names"][one] for one in several) for several in shown["values"]]
            assert rows.fillna("").tolist() == said


def _same(shown, in_file, tolerance=1e-5):
    """Row by row; numbers to the digits of the files, unless told otherwise."""
    for name in shown:
        one, other = shown[name], in_file[name]
        if pd.api.types.is_numeric_dtype(other):
            if not np.allclose(one.astype(float), other.astype(float), rtol=tolerance, atol=0, equal_nan=True):
                return False
        elif [str(x) for x in one] != ["" if pd.isna(x) else str(x) for x in other]:
            return False
    return True


def test_only_what_is_left_near_the_top_is_on_the_page(description, monkeypatch):
    monkeypatch.setattr("mc2core.explore.description.MAX_GROUPS", 2)
    few = Description.from_posterior(description.posterior, description.corpus)
    k = description.n_clusters
    assert (list(few.cuts), few.sizes) == ([2, 1], [1, 2])
    assert few.shown == {k, k + 1, k + 2}
    made = tables.tables_of(few)
    assert set(made["cluster_words"]["cluster"]) == set(range(1, k + 4))
    assert set(html_report._nodes(few, made)["cluster"]) == {k + 1, k + 2, k + 3}
    assert set(html_report._cuts(few, np.arange(3))) == {1, 2}


def test_the_command_writes_a_folder_and_replaces_no_other(description, tmp_path, capsys, refused):
    description.corpus.save(tmp_path / "corpus")
    description.posterior.save(tmp_path / "posterior.npz")
    command = ["describe", str(tmp_path / "posterior.npz"), str(tmp_path / "corpus"), "--out", str(tmp_path / "out")]
    for _ in range(2):
        mc2(command)
    assert "index.html" in capsys.readouterr().out
    title = f"<title>Clusters and topics of {tmp_path.name}</title>"  # of the folder that holds the corpus
    assert title in (tmp_path / "out/index.html").read_text(encoding="utf-8")
    (tmp_path / "out/notes.txt").write_text("mine")
    refused(command, "out holds notes.txt, which is not part of this output")


def test_charts_are_there_without_what_made_them(description, tmp_path, monkeypatch):
    for package in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, package, None)
    describe.describe(description.posterior, description.corpus, tmp_path / "out")
    text = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    charts = data_of(text, "CHARTS")
    assert set(charts) == {"map", "topics", "bars", "means", "trend", "groups", "course", "heat", "tree"}
    assert "University of Washington" in text  # Vega's licence asks for it


def test_a_missing_package_is_named_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "sklearn" else object())
    with pytest.raises(MissingPackage, match="the HTML report needs the package scikit-learn, which is not installed"):
        describe.describe(None, None, tmp_path / "out")


def test_tables_for_papers_escape_names_and_round_numbers(description, tmp_path):
    table = pd.DataFrame({"cluster": [1, 2], "context_year_mean": [2012.83, np.nan], "name": ["A & B_1", "50 %"]})
    latex = tables.for_paper(table.assign(x=0.5), "latex")
    assert latex.splitlines()[2:6] == [
        r"cluster & context year mean & name \\", r"\midrule", r"1 & 2013 & A \& B\_1 \\", r"2 &  & 50 \% \\",
    ]  # fmt: skip
    names = pd.DataFrame({"context_who": ["a; b; c; d", None], "chains": [1, 2]})
    assert tables.for_paper(names, "latex").splitlines()[2:5:2] == [r"context who \\", r"a; b; c \\"]
    cells = re.findall("<td>(.*?)</td>", tables.for_paper(table, "html"))
    assert cells == ["1", "2013", "A &amp; B_1", "2", "", "50 %"]
    numbers = {"date": [2026.7012, 2026.6951, np.nan], "year": [1999.71, 2019.87, 2011.0], "share": [0.1481, 0.0, 2e-5]}
    numbers |= {"size": [123456.0, 1234.5, 0.5], "odd": [np.inf, 1.0, np.nan]}
    cells = re.findall("<td>(.*?)</td>", tables.for_paper(pd.DataFrame(numbers), "html"))
    assert cells[:5] == ["2026.7012", "1999.7", "0.148", "123456", "inf"]
    assert cells[5:] == ["2026.6951", "2019.9", "0", "1234", "1", "", "2011", "2e-05", "0.5", ""]
    with pytest.raises(ValueError, match="form is 'word'; allowed: latex, html"):
        tables.for_paper(table, "word")
    description.corpus.save(tmp_path / "corpus")
    description.posterior.save(tmp_path / "posterior.npz")
    command = ["describe", str(tmp_path), str(tmp_path / "corpus"), "--out", str(tmp_path / "out")]
    for _ in range(2):  # the second one replaces the first
        mc2([*command, "--tables", "latex", "--tables", "html"])
    wanted = {"clusters.tex", "clusters.html", "topics.tex", "topics.html"}
    assert {one.name for one in (tmp_path / "out").iterdir()} >= wanted
    mc2(command)
    assert not {one.name for one in (tmp_path / "out").iterdir()} & wanted


@pytest.mark.parametrize("values", [[3e-11, 8e-11, 5e-11], [1999.0, 2004.0, 2010.0], [1e-100, 2e-100, 4e-100]])
def test_values_have_their_own_unit_again(values):
    corpus = Corpus(np.ones((3, 1), int), contexts={"p": np.array(values)}).standardised("p")
    np.testing.assert_allclose(own_unit(corpus, "p"), values, rtol=0 if values[0] > 1 else 1e-11)
