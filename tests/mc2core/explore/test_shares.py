"""Shares by groups and over numbers, and their intervals, against sums, simulation and the bootstrap written out."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.explored_fits import corpus, gibbs
from scipy import stats

from mc2core.explore import shares, variables
from mc2core.explore.description import Description
from mc2core.posterior.proportions import DocumentTopics


@pytest.fixture(scope="module")
def description():
    made = corpus()
    party = np.where(np.arange(60) % 3 == 0, "Blue", "Green").astype(object)
    party[4] = None
    made._documents = made.documents.assign(party=party, pages=np.arange(60) // 2, id=np.arange(60), place="here")
    return Description.from_posterior(gibbs(made), made)


def variable(description, name):
    return next(one for one in variables.variables_of(description) if one.name == name)


def test_contexts_columns_and_labels_are_variables(description):
    found = {one.name: one.role for one in variables.variables_of(description)}
    assert found == {
        "author": variables.MODELLED,
        "year": variables.MODELLED,
        "party": variables.KEPT,
        "pages": variables.KEPT,
        "label": variables.LABEL,
    }
    alone = dataclasses.replace(description, posterior=dataclasses.replace(description.posterior, families={}))
    assert variable(alone, "year").role == variables.CONTEXT
    year = variable(description, "year").values
    assert np.isnan(year[5])
    assert set(year[~np.isnan(year)]) <= set(range(1990, 2001))
    assert variable(description, "party").names == ["Blue", "Green"]
    assert variable(description, "party").values[[3, 4]].toarray().tolist() == [[1, 0], [0, 0]]


def test_shares_by_value_are_those_of_the_documents_that_have_it(description):
    table = shares.shares_by_value(description, variable(description, "author"))
    authors = description.corpus.contexts["author"].toarray() > 0
    names = description.corpus.context_names["author"]
    recommended = description.at(description.recommended)
    for row in table.query("of == 'cluster' and number <= @description.recommended").itertuples():
        own = authors[:, names.index(row.value)]
        x, n = (own & (recommended == row.number - 1)).sum(), own.sum()
        assert (row.count, row.documents, row.share) == (x, n, pytest.approx(x / n))
        low, high = stats.beta(x + 0.5, n - x + 0.5).ppf([0.05, 0.95])
        assert row.low == pytest.approx(low if x else 0.0)
        assert row.high == pytest.approx(high if x < n else 1.0)
    of_topics = table.query("of == 'topic'")
    assert of_topics.groupby("value")["share"].sum().to_numpy() == pytest.approx(np.ones(len(names)))
    assert (of_topics["low"] < of_topics["high"]).all()


def test_intervals_are_not_stretched_to_hold_the_share(description):
    """Where the samples put two thirds of a cluster elsewhere, the share of the clusters shown is above them."""
    party, sample = variable(description, "party"), description.posterior.samples[0]
    others = np.where(np.arange(60) % 3 > 0, (sample.cluster + 1) % sample.n_clusters, sample.cluster)
    samples = [sample, *[dataclasses.replace(sample, cluster=others)] * 8]
    posterior = dataclasses.replace(description.posterior, samples=samples)
    table = shares.shares_by_value(dataclasses.replace(description, posterior=posterior), party)
    table = table.query("of == 'cluster' and count > 0 and count < documents")
    is_outside = (table["share"] < table["low"]) | (table["share"] > table["high"])
    assert is_outside.any()
    assert not np.isin(table["share"], [table["low"], table["high"]]).any()


def test_an_effect_is_the_difference_of_shares_or_the_slope(description):
    party = variable(description, "party")
    of_party, both = shares.effects(description, [party]), shares.shares_by_value(description, party)
    blue, green = (both[both["value"] == name].set_index(["of", "number"])["share"] for name in ("Blue", "Green"))
    found = of_party.set_index(["of", "number"])
    assert set(zip(of_party["context"], of_party["value"], of_party["reference"], strict=True)) == {
        ("party", "Blue", "Green")
    }
    assert set(of_party["documents"]) == {20}
    pd.testing.assert_series_equal(found["effect"], blue - green, check_names=False)
    year = variable(description, "year")
    known, table = ~np.isnan(year.values), shares.effects(description, [year]).set_index(["of", "number"])
    tokens = description.document_topics.toarray()[known]
    length = tokens.sum(axis=1)
    for topic in range(tokens.shape[1]):
        slope = np.polyfit(year.values[known], tokens[:, topic] / length, 1, w=np.sqrt(length))[0]
        assert table.loc[("topic", topic + 1), "effect"] == pytest.approx(slope)
    assert table["value"].isna().all()
    assert (table["low"] <= table["effect"]).all()


def test_effects_are_told_apart_where_contexts_go_together():
    """Of shares that only a number changes, groups that lean on the number have no effect beside it; nine of ten
    intervals hold the truth though documents vary unequally.
    """
    rng, held = np.random.default_rng(1), np.zeros(3)
    for _ in range(1000):
        number = rng.normal(size=120)
        group = (number + rng.normal(size=120) > 0).astype(float)
        y = 0.3 + 0.05 * number + rng.normal(size=120) * (0.02 + 0.05 * np.abs(number))
        x, weight = np.column_stack([np.ones(120), number, group]), rng.integers(10, 200, 120).astype(float)
        effect, variance = shares._coefficients(x, y[:, None], shares._regression(x, weight))
        half = stats.t.ppf(0.95, 117) * np.sqrt(variance[:, 0])
        held += np.abs(effect[:, 0] - [0.3, 0.05, 0.0]) <= half
    assert held / 1000 == pytest.approx(0.9, abs=0.05)


def test_effects_beside_one_that_decides_all_are_exactly_nought():
    rng = np.random.default_rng(0)
    group, number = (rng.random(200) < 0.3).astype(float), rng.normal(size=200) * 1e6
    x = np.column_stack([np.ones(200), group, number])
    effect, _ = shares._coefficients(x, group[:, None], shares._regression(x, np.ones(200)))
    assert effect[[0, 2], 0].tolist() == [0.0, 0.0]
    assert effect[1, 0] == pytest.approx(1.0)


def test_effects_that_cannot_be_told_are_refused(description):
    year, party, author = (variable(description, name) for name in ("year", "party", "author"))
    twice = dataclasses.replace(year, name="decade", values=year.values / 10)
    constant = dataclasses.replace(year, name="same", values=np.ones(60))
    for several in ([year, twice], [party, constant]):
        with pytest.raises(ValueError, match="effects of these contexts cannot be separated"):
            shares.effects(description, several)
    with pytest.raises(ValueError, match="documents have several values of 'author'"):
        shares.effects(description, [author])
    nowhere = dataclasses.replace(year, name="age", values=np.full(60, np.nan))
    with pytest.raises(ValueError, match="no document has all of party, age"):
        shares.effects(description, [party, nowhere])


def test_samples_that_disagree_widen_effects(description):
    sample, rng = description.posterior.samples[0], np.random.default_rng(0)
    drawn = [np.where(rng.random(60) < 0.7, sample.cluster, rng.permutation(sample.cluster)) for _ in range(9)]
    samples = [dataclasses.replace(sample, cluster=one) for one in [sample.cluster, *drawn]]
    several = dataclasses.replace(description, posterior=dataclasses.replace(description.posterior, samples=samples))
    width = [
        table.set_index(["of", "number"]).eval("high - low")
        for table in (shares.effects(one, [variable(one, "year")]) for one in (description, several))
    ]
    clusters = [("cluster", number) for number in np.unique(description.cluster) + 1]
    assert (width[1][clusters] > width[0][clusters]).all()
    assert (width[1]["topic"] > width[0]["topic"]).mean() > 0.5


def test_topics_of_samples_are_matched_by_their_words(description):
    """A sample with the same topics in another order, and one of which two are the halves of one."""
    sample = description.posterior.samples[0]
    m = sample.n_topics
    order = np.roll(np.arange(m), 1)
    halves = np.append(np.arange(m), m - 1)
    weight = np.where(halves == m - 1, 0.5, 1.0)
    changed = [
        dataclasses.replace(
            sample,
            topic_words=sp.diags(part) @ sample.topic_words[into],
            topic_weights=sample.topic_weights[into] * part,
            topic_given_cluster=sample.topic_given_cluster[:, into] * part,
        )
        for into, part in ((order, np.ones(m)), (halves, weight))
    ]  # fmt: skip
    posterior = dataclasses.replace(description.posterior, samples=[sample, *changed])
    same, turned, halved = dataclasses.replace(description, posterior=posterior).matched_topics
    cluster = sample.cluster.astype(np.int64)
    expected = DocumentTopics(posterior.representative).tokens(description.corpus, cluster, 1)
    assert same.toarray() == pytest.approx(expected.toarray())
    assert turned.toarray() == pytest.approx(same.toarray())
    assert halved.toarray() == pytest.approx(same.toarray(), abs=0.05)


def test_nine_of_ten_intervals_hold_a_clusters_share_and_effect():
    """2,000 clusters, each with documents of its own: half of those of one group and 3 of 10 of those of the other."""
    rng, n, m = np.random.default_rng(6), 120, 2000
    group = np.arange(n) % 2
    inside = rng.random((m, n)) < np.where(group, 0.5, 0.3)
    one = variables.Variable("group", "", sp.csr_matrix(np.eye(2)[group]), ["first", "second"])
    made = SimpleNamespace(
        corpus=SimpleNamespace(n_documents=n), documents_of=sp.csr_matrix(inside, dtype=float), matched_samples=[],
        matched_topics=[], document_topics=sp.csr_matrix((n, 0)),
    )  # fmt: skip
    share, effect = shares.shares_by_value(made, one), shares.effects(made, [one])
    assert set(effect["value"]) == {"second"}
    for table, truth in ((share, share["value"].map({"first": 0.3, "second": 0.5})), (effect, 0.2)):
        assert ((table["low"] <= truth) & (truth <= table["high"])).mean() == pytest.approx(0.9, abs=0.03)


def test_intervals_of_topics_are_as_wide_as_by_bootstrap(description):
    table = shares.shares_by_value(description, variable(description, "party")).query("of == 'topic'")
    tokens, rng = description.document_topics.toarray(), np.random.default_rng(0)
    own = tokens[variable(description, "party").values.toarray()[:, 1] > 0]
    drawn = own[rng.integers(0, len(own), (4000, len(own)))]
    again = drawn.sum(axis=1) / drawn.sum(axis=(1, 2))[:, None]
    width = np.diff(np.quantile(again, [0.05, 0.95], axis=0), axis=0)[0]
    got = table.query("value == 'Green'").sort_values("number")
    large = got["share"].to_numpy() > 0.1
    assert large.any()
    assert (got["high"] - got["low"]).to_numpy()[large] == pytest.approx(width[large], rel=0.2)


def test_only_the_commonest_values_have_shares(description, monkeypatch):
    monkeypatch.setattr(shares, "MAX_VALUES", 2)
    table = shares.shares_by_value(description, variable(description, "author"))
    counts = pd.Series(
        (description.corpus.contexts["author"] > 0).sum(axis=0).A1, description.corpus.context_names["author"]
    )
    assert set(table["value"]) == set(counts.sort_values(ascending=False, kind="stable").index[:2])


def test_a_step_without_documents_has_no_share(description):
    two = variables.Variable("x", "", np.repeat([1.0, 9.5], 30), [])
    table = shares.shares_over(description, two)
    empty = table[(table["start"] > 1) & (table["end"] < 9.5)]
    assert len(empty) > 0
    assert empty[["share", "low", "high"]].isna().all(axis=None)
    assert (empty["documents"] == 0).all()
    assert shares.shares_over(description, variables.Variable("x", "", np.ones(60), [])).empty


def test_a_label_column_of_its_own_name_does_not_hide_the_labels(description):
    made = corpus().with_contexts({"label": sp.csr_matrix(np.eye(2)[np.arange(60) % 2])})
    names = [one.name for one in variables.variables_of(dataclasses.replace(description, corpus=made))]
    assert {"label", "true label"} <= set(names)


def test_intervals_are_those_of_the_mixture_over_samples(description):
    posterior, sample = description.posterior, description.posterior.samples[0]
    rng, recommended = np.random.default_rng(2), description.at(description.recommended)
    clusters = np.unique(recommended)
    moved = []
    for part in (0.0, 0.1, 0.3, 0.4):  # of each sample that many of the first cluster's documents are in the next one
        goes = (recommended == clusters[0]) & (rng.random(60) < part)
        moved.append(np.where(goes, clusters[1], recommended).astype(np.int32))
    samples = [dataclasses.replace(sample, cluster=one) for one in moved]
    several = dataclasses.replace(description, posterior=dataclasses.replace(posterior, samples=samples))
    party = variable(description, "party")
    has = party.values.toarray()[:, 1] > 0
    got = shares.shares_by_value(several, party).query("of == 'cluster' and value == 'Green'").set_index("number")
    for cluster in clusters[:2]:
        hits = [np.sum(has & (one == cluster)) for one in moved]
        drawn = np.concatenate([rng.beta(k + 0.5, has.sum() - k + 0.5, 100_000) for k in hits])
        row = got.loc[cluster + 1]
        assert [row["low"], row["high"]] == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=0.01)
