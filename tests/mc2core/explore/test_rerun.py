"""A fit that is run again: the same result, and what is said if the documents, versions or results differ."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import fits
from helpers.commands import mc2

import mc2core
from mc2core import Corpus, Posterior
from mc2core.app.cli import main
from mc2core.explore.methods import burn_in_of
from mc2core.explore.rerun import other_versions, rerun
from mc2core.families import DirichletCategorical, NormalGamma

WORDS = [["ferry", "harbour", "sail", "tide"], ["bread", "crust", "flour", "oven"], ["moon", "star", "comet", "orbit"]]


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(4)
    which = np.arange(45) % 3
    texts = [" ".join(rng.choice(WORDS[k], 10)) for k in which]
    return Corpus.from_texts(
        texts, contexts={"year": (1990.0 + which).tolist(), "who": [["ann", "bob", "cid"][k] for k in which]}
    )


def fitted(corpus, **lengths):
    contexts = {"year": NormalGamma(), "who": DirichletCategorical(0.5)}
    engine = fits.gibbs(contexts=contexts, start_topics=4, start_clusters=4)
    return mc2core.fit(corpus, *engine, seed=3, progress=False, **lengths).posterior


@pytest.mark.parametrize(
    "lengths",
    [{"chains": 2, "iterations": 6}, {"chains": 1, "iterations": 7, "burn_in": 2, "thin": 2}],
    ids=["default", "named"],
)
def test_a_fit_comes_out_the_same_after_it_was_saved(corpus, tmp_path, lengths):
    fitted(corpus, **lengths).save(tmp_path / "one.npz")
    found = mc2core.Fit(Posterior.load(tmp_path / "one.npz"), corpus, threads=2).rerun()
    assert found.differing == found.versions == []
    n = 6 if lengths["chains"] == 2 else 2
    assert str(found) == f"the rerun gives the same result, bit by bit ({n} samples)"


def test_one_other_bit_is_another_result(corpus):
    arrays = fitted(corpus, iterations=6, chains=1).arrays()
    names = [name for name, one in arrays.items() if one.dtype == np.float64 and one.size and "hierarchy" not in name]
    changed = arrays[names[0]].copy()
    changed.flat[-1] = np.nextafter(changed.flat[-1], np.inf)
    found = rerun(Posterior.from_arrays({**arrays, names[0]: changed}, "changed"), corpus, progress=False)
    assert found.differing == [names[0]]
    assert str(found).startswith("the rerun gives another result (1 array of its")


@pytest.mark.parametrize("engine", [fits.svi, fits.fastex], ids=["svi", "fastex"])
def test_other_engines_come_out_the_same(corpus, engine):
    settings = {"max_clusters": 4, "batch_size": None} if engine is fits.svi else {"n_clusters": 4}
    words = corpus.with_contexts({})
    first = mc2core.fit(words, *engine(**settings), iterations=2, seed=1, progress=False).posterior
    assert rerun(first, words, progress=False).differing == []


def test_a_continued_fit_discards_half_of_all_iterations(corpus, tmp_path):
    settings = {"chains": 1, "checkpoint": tmp_path / "run.npz"}
    fitted(corpus, iterations=4, **settings)
    longer = fitted(corpus, iterations=8, **settings)
    assert burn_in_of(longer) == 4
    assert rerun(longer, corpus, progress=False).differing == []
    assert burn_in_of(fitted(corpus, iterations=8, chains=1, burn_in=2)) == 2


def test_clusters_merged_by_hand_are_merged_again(corpus):
    from mc2core.explore.merging import merge_clusters

    merged = merge_clusters(fitted(corpus, iterations=6, chains=1), [1, 2])
    found = rerun(merged, corpus, progress=False)
    assert found.differing == []
    assert found.posterior.hierarchy.recommended == merged.hierarchy.recommended
    unmerged = replace(merged, provenance={**merged.provenance, "merged": []})
    assert "hierarchy.merged" in rerun(unmerged, corpus, progress=False).differing


def test_what_differs_is_said(corpus, tmp_path, capsys):
    first = fitted(corpus, iterations=6, chains=1)
    changed = replace(first, provenance=first.provenance | {"seed": 4})
    changed.provenance["versions"] = first.provenance["versions"] | {"numpy": "1.0"}
    changed.save(tmp_path / "posterior.npz")
    corpus.save(tmp_path / "corpus")
    mc2(f"verify {tmp_path} {tmp_path}/corpus")
    now = first.provenance["versions"]["numpy"]
    said = capsys.readouterr().out.splitlines()[-1]
    assert f"is the corpus of the fit; the fit was made with other versions: numpy 1.0, now {now}" in said
    assert main(["verify", str(tmp_path), str(tmp_path / "corpus"), "--rerun"]) == 2
    said = capsys.readouterr().out.splitlines()[-1]
    assert "the rerun gives another result" in said
    assert f"other versions: numpy 1.0, now {now}; recommended clusters: " in said
    assert other_versions(replace(first, provenance={})) == ["the fit does not record its versions"]


def test_what_cannot_be_run_again_is_said(corpus, tmp_path, capsys, refused):
    first = fitted(corpus, iterations=6, chains=1)
    other = corpus.subset(np.arange(40))
    with pytest.raises(ValueError, match="the corpus is not the corpus of the fit"):
        rerun(first, other)
    for change, said in (
        ({"updates": [{}]}, "documents were added to this fit"),
        ({"stopped_at": 2.5}, r"stopped at iteration 2\.5; finish it"),
        ({"iterations": None}, "does not record the iterations"),
    ):
        with pytest.raises(ValueError, match=said):
            rerun(replace(first, provenance=first.provenance | change), corpus)
    first.save(tmp_path / "posterior.npz")
    other.save(tmp_path / "corpus")
    assert main(["verify", str(tmp_path), str(tmp_path / "corpus")]) == 2
    assert "is not the corpus of the fit; the fit was made with the installed versions" in capsys.readouterr().out
    refused(f"verify {tmp_path} --rerun", "--rerun needs one fit and one corpus")
