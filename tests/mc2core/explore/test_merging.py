"""Clusters merged by hand: all that is said of documents follows, and a saved fit keeps it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2

import mc2core
from mc2core import Corpus, Fit, Posterior
from mc2core.app.answers import Answers
from mc2core.app.cli import main
from mc2core.explore.words import of_words, top_of
from mc2core.models import MC2

WORDS = [
    ["ferry", "harbour", "sail", "tide"],
    ["bread", "crust", "flour", "oven"],
    ["moon", "star", "comet", "orbit"],
    ["anvil", "forge", "iron", "smith"],
]
GROUP = np.repeat(np.arange(4), [24, 20, 16, 10])


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(5)
    return Corpus.from_texts([" ".join(rng.choice(WORDS[k], 12)) for k in GROUP])


@pytest.fixture(scope="module")
def posterior(corpus):
    fit = mc2core.fit(corpus, MC2(n_clusters=4, burstiness=False), iterations=10, seed=0, progress=False)
    assert (fit.documents()["cluster"] == GROUP + 1).all()
    return fit.posterior


@pytest.fixture
def fit(posterior, corpus):
    return Fit(posterior, corpus)


#: clusters 3 and 4 (16 and 10 documents) become the first (26 documents)
MERGED = np.array([2, 3, 1, 1])[GROUP]


def test_tables_and_predictions_follow_a_merge(fit, corpus, tmp_path):
    before = fit.clusters()
    other = fit.posterior.assign(corpus, cut=2)[0]
    fit.merge_clusters([3, 4])
    assert (fit.documents()["cluster"] == MERGED).all()
    assert fit.clusters()["documents"].tolist() == [26, 24, 20]
    assert fit.clusters()["name"].tolist()[1:] == before["name"].tolist()[:2]
    assert fit.clusters(4)["documents"].tolist() == before["documents"].tolist()
    assert (fit.posterior.assign(corpus, cut=2)[0] == other).all()
    cluster, probability = fit.posterior.assign(corpus, cut="recommended")
    assert (cluster + 1 == MERGED).all()
    assert probability.sum(axis=1) == pytest.approx(np.ones(70))
    new = Corpus.from_texts(
        ["iron smith forge iron anvil", "comet star orbit", "bread oven"], vocabulary=corpus.vocabulary
    )
    assert (fit.posterior.assign(new, cut="recommended")[0] + 1).tolist() == [1, 1, 3]
    assert [one["cluster"] for one in Answers(fit.posterior, 3, 1).of(new)] == [1, 1, 3]
    fit.report(tmp_path / "report")
    assert pd.read_csv(tmp_path / "report" / "clusters.csv")["documents"].tolist() == [26, 24, 20]
    assert "2 of 4 recommended clusters were merged by hand" in (tmp_path / "report" / "summary.md").read_text()


def test_a_saved_fit_keeps_its_merges(fit, posterior, corpus, tmp_path):
    fit.merge_clusters([3, 4])
    fit.merge_clusters([1, 3])  # with 20 documents more
    fit.posterior.save(tmp_path / "one.npz")
    read = Posterior.load(tmp_path / "one.npz")
    expected = np.array([2, 1, 1, 1])[GROUP]
    assert (read.assign(corpus, cut="recommended")[0] + 1 == expected).all()
    said = read.provenance["merged"]
    assert [one["clusters"] for one in said] == [[3, 4], [1, 3]]
    assert [one["of"] for one in said] == [4, 3]
    assert not posterior.hierarchy.merged
    assert "hierarchy.merged" not in posterior.arrays()  # files of other fits are as before
    arrays = read.arrays()
    arrays["hierarchy.merged"] = np.array([0, 0, 0, 0])
    with pytest.raises(ValueError, match="'merged' does not give the recommended clusters"):
        Posterior.from_arrays(arrays, "file")


def test_the_methods_paragraph_names_merged_clusters(corpus):
    fit = mc2core.fit(corpus, MC2(n_clusters=4, burstiness=False), iterations=4, seed=0, progress=False)
    names = fit.clusters()["name"]
    assert "merged" not in fit.methods()
    fit.merge_clusters([4, 3])
    assert f"2 of 4 recommended clusters were merged by hand after the fit: {names[4]}; {names[3]}." in fit.methods()
    assert "a cut of these into 3 clusters" in fit.methods()


def test_names_move_with_their_clusters(fit):
    fit.rename({"cluster": {1: "Sea", 2: "Food"}, "topic": {1: "One"}})
    fit.merge_clusters([3, 4])
    assert fit.clusters()["name"].tolist()[1:] == ["Sea", "Food"]
    assert fit.names["topic"] == {1: "One"}


def test_merge_on_the_command_line(posterior, corpus, tmp_path, capsys, output_of, refused):
    posterior.save(tmp_path / "posterior.npz")
    corpus.save(tmp_path / "corpus")
    out = str(tmp_path / "merged")
    mc2(f"merge {tmp_path} 3 4 --out {out}")
    assert "2 of 4 recommended clusters were merged by hand after the fit:" in capsys.readouterr().out
    lines = output_of(f"clusters {out} {tmp_path}/corpus").splitlines()
    column = lines[0].split(",").index("cluster")
    assert [int(one.split(",")[column]) for one in lines[1:]] == MERGED.tolist()
    refused(f"merge {tmp_path} 3 4 --out {out}", "give a new folder")
    for wrong in (["3"], ["3", "3"], ["0", "1"], ["4", "5"]):
        error = "two or more different numbers of clusters from 1 to 4 are needed"
        refused(["merge", tmp_path, *wrong, "--out", out + "2"], error)


def test_the_file_of_names_marks_clusters_and_their_names(
    posterior, corpus, tmp_path, monkeypatch, capsys, output_of, refused
):
    rows = [
        ("cluster", 1, "Sea", "3"),
        ("cluster", 2, "Food", "2"),
        ("cluster", 3, "Sky", "3"),
        ("cluster", 4, "w", "2"),
    ]
    names = pd.DataFrame([*rows, ("topic", 1, "One", "")], columns=["of", "number", "name", "merge"])
    names.assign(level=["recommended"] * 4 + [""], default=["", "", "", "w", ""]).to_csv(
        tmp_path / "names.csv", index=False
    )
    posterior.save(tmp_path / "posterior.npz")
    corpus.save(tmp_path / "corpus")
    out = tmp_path / "merged"
    said = output_of(f"merge {tmp_path} --names {tmp_path}/names.csv --out {out}")
    assert said.count("were merged by hand") == 2
    assert f"next: mc2 describe {out} CORPUS --names {out}/names.csv --out {out}/description" in said
    found = Fit(Posterior.load(out), corpus)
    assert (found.documents()["cluster"] == np.array([1, 2, 1, 2])[GROUP]).all()  # 24 + 16 and 20 + 10 documents
    found.rename(out / "names.csv")
    assert found.clusters()["name"].tolist() == ["Sky", "Food"]
    assert found.names["topic"] == {1: "One"}
    again = tmp_path / "again"  # a merge of merged clusters
    names = pd.DataFrame({"of": "cluster", "number": [1, 2], "name": ["All", "All"], "merge": ["1", "1"]})
    names.to_csv(tmp_path / "names.csv", index=False)
    mc2(f"merge {out} --names {tmp_path}/names.csv --out {again}")
    assert pd.read_csv(again / "names.csv").to_numpy().tolist() == [["cluster", 1, "All"]]
    for chosen in ([], ["3", "4", "--names", str(tmp_path / "names.csv")]):
        error = "give the numbers of clusters, or --names names.csv"
        refused(["merge", tmp_path, *chosen, "--out", tmp_path / "none"], error)
    names.drop(columns="merge").to_csv(tmp_path / "names.csv", index=False)
    error = "no clusters are marked in the column merge"
    refused(f"merge {tmp_path} --names {tmp_path}/names.csv --out {tmp_path}/none", error)
    chosen = ["merge", str(tmp_path), "3", "4", "--out", str(tmp_path / "killed")]
    monkeypatch.setattr(Posterior, "save", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(chosen)
    monkeypatch.undo()
    mc2(chosen)  # nothing is in the way
    assert "next: mc2 describe" in capsys.readouterr().out


def test_what_cannot_be_merged_is_said(fit, posterior):
    with pytest.raises(ValueError, match="contains no hierarchy"):
        mc2core.Fit(replace(posterior, hierarchy=None), fit.corpus).merge_clusters([1, 2])
    loss = posterior.hierarchy.merged_by_hand([2, 3]).table()
    assert loss.loc[loss["clusters"] == 3, ["log_marginal", "loss", "agreement"]].isna().all(axis=None)
    for clusters in (3, "12", ["a", "b"], [1.0, 2.0]):
        with pytest.raises(ValueError, match="clusters to merge are a list of numbers"):
            fit.merge_clusters(clusters)
    with pytest.raises(ValueError, match="names are by kind and number"):
        fit.rename({1: "x"})


def test_equal_names_are_told_apart(fit):
    fit.rename({"cluster": {1: "Craft", 2: "Craft", 3: "Sky"}})
    names = fit.clusters()["name"].tolist()
    assert names[0] != names[1]
    assert all(one.startswith("Craft (") and one.endswith(")") for one in names[:2])
    assert names[2] == "Sky"
    base = np.full(6, 0.1)
    one, two = (
        top_of(np.array(p), base, np.ones(6, bool))
        for p in ([0.3, 0.3, 0.3, 0.2, 0.01, 0.01], [0.3, 0.3, 0.3, 0.01, 0.2, 0.01])
    )
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
    assert of_words("cluster", [one, two], words).names == ["alpha, bravo, charlie"] * 2
    told = of_words("cluster", [one, two], words, [[0, 1]]).names
    assert len(set(told)) == 2
    assert of_words("cluster", [one, one], words, [[0, 1]]).names[0].count(",") == 2  # nothing tells them apart


def test_an_update_keeps_a_merge(posterior):
    from mc2core.posterior.added import GrownHierarchy

    merged = posterior.hierarchy.merged_by_hand([2, 3])
    added = [np.append(one, [one[0], one[-1]]) for one in posterior.clusterings]  # as the largest, and as the smallest
    grown = GrownHierarchy.from_hierarchy(merged, added, np.zeros(2, np.int32), np.full(2, -1, np.int32))
    assert grown.recommended == 3
    assert (grown.cut(3) + 1).tolist() == [*MERGED, 2, 1]
    assert grown.table()["loss"].isna().tolist() == [False, False, True, True]
    with pytest.raises(ValueError, match="merge clusters before mc2 update"):
        grown.merged_by_hand([0, 1])
