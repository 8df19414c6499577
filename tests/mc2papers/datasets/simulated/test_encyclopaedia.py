"""The simulated encyclopaedia: sizes, skew, shared words, and the folder the workflow keeps it in."""

import numpy as np
import pytest

from mc2core.base import storage
from mc2core.corpus import Corpus
from mc2papers.datasets import catalogue
from mc2papers.datasets.simulated import encyclopaedia
from mc2papers.datasets.simulated.encyclopaedia import W100, W1000, Encyclopaedia, scaled, simulate


def test_shapes_are_those_of_the_paper_with_growing_vocabulary():
    assert (W100.n_categories, W100.n_documents, W100.n_words) == (100, 292_000, 2_500_000)
    assert (W1000.n_categories, W1000.n_documents, W1000.n_words) == (1000, 710_000, 5_600_000)
    half = scaled(W1000, 0.5)
    assert (half.n_categories, half.n_documents, half.n_words) == (1000, 355_000, 2_800_000)
    assert scaled(W100, 0.001).n_words == 5 * W100.typical_words
    for scale in (0.0, -1.0, float("nan"), float("inf"), 1e-9):
        with pytest.raises(ValueError, match="must be a number above 0"):
            scaled(W100, scale)


def test_articles_have_skewed_categories_shared_and_own_words():
    shape = Encyclopaedia(n_categories=20, n_documents=2000, n_words=20_000)
    corpus = simulate(shape, seed=1)
    assert (corpus.content != simulate(shape, seed=1).content).nnz == 0
    assert (corpus.content != simulate(shape, seed=2).content).nnz > 0
    assert np.diff(corpus.content.indptr).mean() == pytest.approx(100.0, rel=0.1)  # distinct words of an article
    sizes = np.bincount(corpus.labels, minlength=20)
    assert sizes[:3].mean() > 2.5 * sizes[-3:].mean()  # in expectation 3.4 times; sds of both are below a tenth
    totals = np.array([corpus.content[corpus.labels == k].sum(axis=0).A1 for k in range(20)])
    assert (totals[:, :20] > 0).all()  # the commonest words are everyone's
    share = totals / totals.sum(axis=1, keepdims=True)
    own = np.maximum(share - 3 * share.mean(axis=0), 0).sum(axis=1)
    assert (own > 0.1).all()  # and each category has words it prefers


def test_workflow_folder_has_labels_and_says_it_is_simulated(tmp_path):
    about = catalogue.prepare("w100", tmp_path / "w100", source="simulated", test_size=0, settings={"scale": 0.001})
    assert (about["documents"], about["words"], about["test_documents"]) == (292, 10_000, 0)
    assert catalogue.describe(about) == "W100-shaped, simulated (mixture of multinomials), 292 documents"
    corpus = Corpus.load(tmp_path / "w100/train")
    assert (corpus.labels == encyclopaedia.simulate(scaled(W100, 0.001), 0).labels).all()
    assert not (tmp_path / "w100/truth.npz").exists()
    assert storage.read_json(tmp_path / "w100/source.json") == about
    sheet = (tmp_path / "w100/datasheet.md").read_text()
    assert "W100-shaped, simulated (mixture of multinomials)" in sheet
