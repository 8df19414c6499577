"""Associations with contexts: notable where they are, and not where contexts are at random."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import fits
from helpers.explored_fits import corpus, gibbs
from scipy import stats

from mc2core import Corpus
from mc2core.explore.associations import MAX_FALSE, MIN_DOCUMENTS, Associations, at_least, notable
from mc2core.explore.clusters import cluster_tables
from mc2core.explore.description import Description
from mc2core.explore.shares import shares_tables
from mc2core.explore.topics import topic_tables
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit


@pytest.fixture(scope="module")
def description():
    made = corpus(180)
    return Description.from_posterior(gibbs(made), made)


def permuted(documents, seed):
    rng = np.random.default_rng(seed)
    order = {name: rng.permutation(documents.n_documents) for name in documents.contexts}
    return documents.with_contexts({name: one[order[name]] for name, one in documents.contexts.items()})


def test_tails_are_those_of_the_binomial():
    count, n = np.array([0.0, 1.0, 3.0, 7.0, 7.0]), np.array([5.0, 5.0, 9.0, 7.0, 20.0])
    assert at_least(count, n, np.full(5, 0.3)) == pytest.approx(stats.binom.sf(count - 1, n, 0.3))
    assert at_least(np.array([2.0]), np.array([2.0]), np.array([1.0])) == 1.0


def test_rows_are_tested_together():
    p = np.array([0.001, np.nan, 0.04, 0.9, 0.01])
    known = np.isfinite(p)
    expected = np.zeros(5, bool)
    expected[known] = stats.false_discovery_control(p[known]) <= MAX_FALSE
    assert notable(p).tolist() == expected.tolist() == [True, False, False, False, True]
    assert notable(np.full(3, np.nan)).tolist() == [False] * 3
    assert notable(np.zeros(0)).tolist() == []


def test_an_author_of_a_cluster_and_a_topic_is_notable(description):
    """Each group of the corpus has two authors of its own, and each number in the table is that of its documents."""
    tables = cluster_tables(description) | topic_tables(description, with_map=False)
    rows = tables["cluster_values"].query("context == 'author' and cluster <= @description.recommended")
    authors = description.corpus.contexts["author"].toarray() > 0
    names = description.corpus.context_names["author"]
    of_groups = rows[rows["value"].isin(names[:6])]
    assert of_groups.query("is_notable and lift > 1")["value"].nunique() == 6
    for row in rows[rows["is_notable"]].itertuples():
        inside = authors[description.at(description.recommended) == row.cluster - 1, names.index(row.value)].sum()
        assert row.lift < 1 or inside >= MIN_DOCUMENTS
    assert not rows[rows["value"] == "Zola & Sons"]["is_notable"].any()  # four documents
    assert tables["topic_values"].query("is_notable and lift > 1")["value"].nunique() >= 6
    shares = shares_tables(description)
    marked = shares["shares"].query("is_notable and of == 'cluster' and number <= @description.recommended")
    assert set(names[:6]) <= set(marked["value"])
    assert shares["trends"]["is_notable"].any()


def test_contexts_at_random_are_hardly_ever_notable(description):
    """The fit does not see them, so the documents of a cluster have values at random."""
    posterior = dataclasses.replace(description.posterior, families={})
    n_notable = n = 0
    for seed in range(10):
        found = Description.from_posterior(posterior, permuted(description.corpus, seed))
        for name in ("author", "year"):
            for sign in found.once(Associations).values[name].values():
                n_notable, n = n_notable + np.count_nonzero(sign), n + sign.size
        n_notable += found.once(Associations).trends.query("context == 'year'")["is_notable"].sum()
    assert n > 1000
    assert n_notable <= n / 200


def test_clusters_that_contexts_made_are_not_notable():
    """Words are noise, so the clusters are those of the authors and years that the model saw."""
    rng = np.random.default_rng(0)
    author = sp.csr_matrix((np.ones(120), (np.arange(120), np.arange(120) % 4)), shape=(120, 4))
    contexts = {"author": author, "year": 10.0 * (np.arange(120) % 4)}
    made = Corpus(rng.multinomial(8, np.full(20, 0.05), 120), [f"word{w}" for w in range(20)], contexts)
    made = made.standardised("year")
    families = {"author": DirichletCategorical(0.1), "year": NormalGamma()}
    posterior = fit(made, *fits.gibbs(contexts=families, start_clusters=6), iterations=20, seed=1).posterior
    found = Description.from_posterior(posterior, made)
    clusters = found.at(found.n_clusters)
    assert all((clusters[j] == clusters[j % 4]) for j in range(100))  # the author alone decides
    assert len(set(clusters.tolist())) > 1
    assert not any(values["cluster"].any() for values in found.once(Associations).values.values())
    assert not found.once(Associations).trends.query("of == 'cluster'")["is_notable"].any()
    as_they_are = dataclasses.replace(found)
    as_they_are.__dict__["by_words"] = sp.csr_matrix(found.documents_of.T), found.document_topics
    assert as_they_are.once(Associations).values["author"]["cluster"].any()


def test_a_trend_is_a_slope_over_documents_with_its_interval(description):
    """Weighted least squares with the HC3 variance written out; the tables have the same numbers."""
    trends = description.once(Associations).trends
    year = description.corpus.contexts["year"] * description.corpus.units["year"][1] + 1994.0
    seen = np.flatnonzero(~np.isnan(year))
    x = np.column_stack([np.ones(len(seen)), year[seen]])
    members, tokens = description.by_words
    length = np.asarray(description.corpus.document_lengths, float)[seen]
    for what, y, weight in (
        ("cluster", members[seen].toarray(), np.ones(len(seen))),
        ("topic", tokens[seen].toarray() / length[:, None], length),
    ):
        inverse = np.linalg.inv(x.T @ (weight[:, None] * x))
        beta = inverse @ x.T @ (weight[:, None] * y)
        leverage = weight * np.einsum("ij,jk,ik->i", x, inverse, x)
        bread = (inverse @ (weight[:, None] * x).T)[1]
        error = np.sqrt((bread / (1.0 - leverage)) ** 2 @ (y - x @ beta) ** 2)
        part = trends[trends["of"] == what]
        assert part["trend"].to_numpy() == pytest.approx(beta[1], abs=1e-9)
        middle = (part["low"] + part["high"]) / 2
        has = middle.notna().to_numpy()  # not if most samples lack it or have the other sign
        assert has.any()
        assert middle[has].to_numpy() == pytest.approx(part["trend"][has].to_numpy(), abs=1e-9)
        half = (part["high"] - part["low"]).to_numpy() / 2
        assert (half[has] >= (1.96 * error * (error > 1e-9))[has]).all()  # one cluster has all documents
        assert (half[has] < 1e3 * np.ptp(y) / np.ptp(year[seen])).all()
        assert (part["is_notable"] <= ((part["low"] > 0) | (part["high"] < 0))).all()
        assert part["is_notable"].any()
    topics = topic_tables(description, with_map=False)
    numbers = topics["topic_numbers"].set_index("topic")
    of_topics = topics["topics"].set_index("topic").loc[numbers.index]
    for column, name in (("trend", "trend"), ("low", "trend_low"), ("high", "trend_high")):
        pd.testing.assert_series_equal(numbers[column], of_topics[f"year_{name}"], check_names=False)
