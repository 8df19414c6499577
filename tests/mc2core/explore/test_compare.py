"""Two fits compared: pairs, splits and merges that are known, agreement, and what changes in effects."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2

import mc2core
from mc2core import Corpus, Fit, compare, robustness
from mc2core.explore.compare import _pairs
from mc2core.models import MC2
from mc2core.posterior.clustering import adjusted_rand_index

MODEL = MC2(n_clusters=3, burstiness=False)


def pairs(of_a, of_b):
    rows = np.arange(len(of_a))
    clusters, table = _pairs(np.array(of_a), np.array(of_b), rows, rows)
    return clusters, table


def test_pairs_splits_and_merges_are_named():
    # A: 1 stays; 2 is split into 2 and 3 of B; 3 and 4 are merged into 4; B's 5 has documents of no pair
    of_a = [0] * 6 + [1] * 6 + [2] * 4 + [3] * 3
    of_b = [0] * 6 + [1] * 4 + [2] * 2 + [3] * 7
    clusters, table = pairs(of_a, of_b)
    assert table.to_numpy().tolist() == [[6, 0, 0, 0], [0, 4, 2, 0], [0, 0, 0, 4], [0, 0, 0, 3]]
    found = [tuple(None if pd.isna(one) else int(one) for one in row) for row in clusters[["a", "b"]].to_numpy()]
    changes = dict(zip(found, clusters["change"], strict=True))
    assert changes == {
        (1, 1): "same", (2, 2): "split", (3, 4): "merged", (4, None): "merged", (None, 3): "split",
    }  # fmt: skip
    assert clusters["shared"].tolist() == [6, 4, 4, 0, 0]
    assert clusters["jaccard"].round(3).tolist() == [1.0, 0.667, 0.571, 0.0, 0.0]


def test_clusters_without_a_partner_are_of_one_fit_only():
    clusters, _ = pairs([0, 0, 0, 1, 1, 2], [0, 0, 0, 1, 1, 1])
    assert clusters["change"].tolist() == ["same", "merged", "merged"]
    clusters, _ = pairs([0] * 8, [0] * 3 + [1] * 3 + [2] * 2)
    assert clusters["change"].tolist() == ["split", "split", "split"]


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(3)
    words = [
        ["ferry", "harbour", "sail", "tide"],
        ["bread", "crust", "flour", "oven"],
        ["moon", "star", "comet", "orbit"],
    ]
    which = np.arange(60) % 3
    texts = [" ".join(rng.choice(words[k], 10)) for k in which]
    ids = pd.DataFrame({"id": [f"d{j}" for j in range(60)]})
    return Corpus.from_texts(texts, contexts={"who": [["ann", "bob", "cid"][k] for k in which]}, documents=ids)


@pytest.fixture(scope="module")
def fits(corpus):
    return [mc2core.fit(corpus, MODEL, iterations=10, seed=seed, progress=False) for seed in (0, 1)]


def test_fits_of_other_seeds_agree(fits, corpus):
    found = compare(*fits)
    first, second = (fit.posterior for fit in fits)
    assert found.n_documents == (60, 60, 60)
    cuts = [one.hierarchy.cut(one.hierarchy.recommended) for one in (first, second)]
    assert found.agreement["level"].tolist() == ["recommended"]  # the other levels equal it in both fits
    assert found.agreement["ari"].tolist()[0] == pytest.approx(adjusted_rand_index(*cuts))
    assert found.agreement["vi_bits"].tolist()[0] == pytest.approx(mc2core.clustering.variation_of_information(*cuts))
    assert (found.clusters["change"] == "same").all()
    for row in found.clusters.itertuples():
        assert row.name_a == fits[0].clusters()["name"][row.a]
        assert row.name_b == fits[1].clusters()["name"][row.b]
        assert found.table.loc[row.a, row.b] == row.shared == row.documents_a
    effects = found.effects("who")
    assert set(effects["agree"]) <= {"yes", ""}
    assert (effects["agree"] == "yes").any()
    one = fits[0].effects("who").set_index(["of", "number", "value"])["effect"]
    for row in effects.itertuples():
        assert row.effect_a == one["cluster", row.a, row.value]


def test_documents_of_other_orders_are_matched_by_ids(fits, corpus, tmp_path, capsys):
    from mc2core.corpus.fingerprints import fingerprints_of

    order = np.random.default_rng(0).permutation(60)[:50]
    other = mc2core.fit(corpus.subset(order), MODEL, iterations=10, seed=2, progress=False)
    with pytest.raises(ValueError, match=r"different documents \(60 and 50\) and no ids"):
        compare(fits[0], other)
    fits[0].posterior.fingerprints = fingerprints_of(corpus)
    other.posterior.fingerprints = fingerprints_of(corpus.subset(order))
    found = compare(fits[0], other)
    assert found.n_documents == (60, 50, 50)
    assert found.agreement["ari"][0] == 1.0
    for name, one in (("a", fits[0]), ("b", other)):
        one.posterior.save(tmp_path / f"{name}.npz")
    mc2(f"compare {tmp_path}/a.npz {tmp_path}/b.npz")
    said = capsys.readouterr()
    assert "50 documents in both fits (A has 60, B 50)" in said.err
    assert said.out.startswith("a,name_a,documents_a,b,name_b,documents_b,shared,jaccard,change\n1,")
    mc2(f"compare {tmp_path}/a.npz {tmp_path}/b.npz --table")
    assert pd.read_csv(io.StringIO(capsys.readouterr().out), index_col=0).to_numpy().sum() == 50
    fits[0].posterior.fingerprints = None


def test_levels_that_differ_in_a_fit_are_compared(fits):
    kept = fits[0].posterior.hierarchy
    broader = replace(fits[0].posterior, hierarchy=replace(kept, other=2))
    found = compare(broader, fits[1]).agreement.set_index("level")
    assert found.index.tolist() == ["broad", "recommended"]
    assert found["clusters_a"].tolist() == [2, 3]
    assert found["clusters_b"].tolist() == [3, 3]


def moved(posterior, documents, cluster):
    """A fit whose ``documents`` are in another cluster; it has no hierarchy, so these are its recommended clusters."""
    own = np.array(posterior.hierarchy.cut(3), np.int64)
    own[documents] = cluster
    sample = replace(posterior.representative, cluster=own)
    return replace(posterior, samples=[sample] * len(posterior.samples), hierarchy=None)


def test_robustness_counts_the_fits_in_which_a_cluster_stands(fits, corpus):
    first = fits[0].posterior
    own = first.hierarchy.cut(3)
    one, two = np.flatnonzero(own == 0), np.flatnonzero(own == 1)
    assert len(one) == len(two) == 20
    others = [moved(first, one[:5], 1), moved(first, one[:12], 1), first]
    found = robustness([fits[0], *others])
    table = found.clusters.set_index("cluster")
    # 15 of 20 documents stay, then 8; the second cluster has 5 and then 12 more
    expected = {1: [0.75, 8 / 20, 1.0], 2: [20 / 25, 20 / 32, 1.0], 3: [1.0, 1.0, 1.0]}
    for number, jaccards in expected.items():
        assert table.loc[number, ["jaccard_2", "jaccard_3", "jaccard_4"]].tolist() == pytest.approx(jaccards)
        assert table["mean_jaccard"][number] == pytest.approx(np.mean(jaccards))
        assert table["match_4"][number] == number
        assert table["name"][number] == fits[0].clusters()["name"][number]
    assert table["stands_in"].tolist() == [2, 3, 3]
    assert str(found).startswith("2 of 3 clusters of the first fit were found again in all of the 3 other fits (")
    assert robustness([fits[0], *others], least=0.78).clusters["stands_in"].tolist() == [1, 2, 3]


def test_robust_effects_are_those_of_standing_clusters(fits, corpus):
    other = Fit(moved(fits[0].posterior, np.flatnonzero(fits[0].posterior.hierarchy.cut(3) == 0)[:12], 1), corpus)
    found = robustness([fits[0], fits[1], other]).effects("who")
    found = found[found["effect"].abs() > 1e-9].set_index(["cluster", "value"])  # others are 0 but for rounding
    # the first cluster, of both names, does not stand in the last fit; the others have one name each
    assert {value: found["same_in"][1, value] for value in ("bob", "cid")} == {"bob": 1, "cid": 1}
    assert found.drop(1)["same_in"].droplevel("cluster").sort_index().to_dict() == {"bob": 2, "cid": 2}
    assert found["opposite_in"].tolist() == [0, 0, 0, 0]
    turned = robustness([fits[0], other], least=0.1).effects("who").set_index(["cluster", "value"])
    assert turned["same_in"][1, "bob"] == 1
    year = fits[0].posterior.hierarchy.cut(3) + np.arange(60) % 7 / 7.0  # the effects of a number have no value
    dated = corpus.with_contexts({**corpus.contexts, "year": year})
    years = robustness([Fit(fit.posterior, dated) for fit in (*fits, fits[0])]).effects("year")
    assert years["same_in"].tolist() == [2, 0, 2]  # documents of the second cluster are in the middle


def test_more_than_two_fits_on_the_command_line(fits, tmp_path, capsys, refused):
    paths = [str(tmp_path / f"{number}.npz") for number in range(3)]
    for path, fit in zip(paths, [*fits, fits[0]], strict=True):
        fit.posterior.save(path)
    mc2(["compare", *paths, "--least", "0.9"])
    said = capsys.readouterr()
    assert "3 of 3 clusters of the first fit were found again in all of the 2 other fits" in said.err
    assert "(Jaccard index of at least 0.9)" in said.err
    table = pd.read_csv(io.StringIO(said.out))
    assert table["stands_in"].tolist() == [2, 2, 2]
    refused(["compare", *paths, "--table"], "--table needs exactly two fits")
    refused(["compare", *paths[:2], "--least", "0.9"], "--least needs more than two fits")
    with pytest.raises(ValueError, match="at least two fits"):
        robustness(paths[:1])
    with pytest.raises(ValueError, match="least is 0; it must be above 0"):
        robustness(paths, least=0.0)


def test_what_cannot_be_compared_is_said(fits, corpus):
    with pytest.raises(ValueError, match="found int; a Fit, a Posterior or the path of a fit is needed"):
        compare(fits[0], 3)
    with pytest.raises(ValueError, match="effects need the documents"):
        compare(fits[0].posterior, fits[1].posterior).effects("who")
    moved = replace(fits[1].posterior, provenance={"corpus": "other"})
    with pytest.raises(ValueError, match="the fits have different documents"):
        compare(fits[0], Fit(moved, corpus))
