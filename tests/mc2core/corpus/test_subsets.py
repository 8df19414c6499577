"""Halves and missing contexts: fixed by ids and seeds, nested, and nothing else changes."""

import hashlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.corpus.subsets import HALVES, half, without_contexts


def make(n=101, seed=0):
    rng = np.random.default_rng(seed)
    return Corpus(
        rng.poisson(1.0, (n, 6)),
        contexts={"tag": sp.csr_matrix(1 + rng.poisson(1.0, (n, 4))), "year": rng.normal(size=n)},
        labels=rng.integers(0, 3, n),
        documents=pd.DataFrame({"id": [f"d{j}" for j in range(n)]}),
        context_names={"tag": list("abcd")},
        units={"year": (1990.0, 5.0)},
    )


# -- halves ----------------------------------------------------------------------------------------------------
def test_halves_share_the_documents_by_the_rank_of_their_digests():
    whole = make()
    validation, report = (half(whole, which) for which in HALVES)
    assert (validation.n_documents, report.n_documents) == (50, 51)
    ranked = sorted(whole.documents["id"], key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    assert set(validation.documents["id"]) == set(ranked[:50])
    assert set(report.documents["id"]) == set(ranked[50:])
    rows = [int(one[1:]) for one in report.documents["id"]]
    assert rows == sorted(rows)
    assert (report.content != whole.content[rows]).nnz == 0
    assert (report.labels == whole.labels[rows]).all()


def test_halves_do_not_depend_on_the_order_of_documents(tmp_path):
    whole = make()
    order = np.random.default_rng(1).permutation(whole.n_documents)
    assert set(half(whole.subset(order), "report").documents["id"]) == set(half(whole, "report").documents["id"])
    whole.save(tmp_path / "corpus")
    assert half(Corpus.load(tmp_path / "corpus"), "report").digest == half(whole, "report").digest


def test_halves_stay_those_of_figures_that_were_reported():
    """As sha256sum ranks them: another rule would mix documents that defaults were chosen on into the figures."""
    names = ["1945-Truman", "1963-Kennedy", "train-1", "polo/image_0001.jpg", "0001011"]
    corpus = Corpus(np.eye(5), documents=pd.DataFrame({"id": names}))
    assert half(corpus, "validation").documents["id"].tolist() == ["1963-Kennedy", "train-1"]


@pytest.mark.parametrize(
    ("corpus", "which", "message"),
    [
        (make(), "test", "half is 'test'; it must be one of validation, report"),
        (Corpus(np.eye(3)), "report", "documents needs a column 'id'"),
        (make(1), "report", "a corpus of one document has no halves"),
    ],
)
def test_what_cannot_be_halved_is_refused(corpus, which, message):
    with pytest.raises(ValueError, match=message):
        half(corpus, which)


# -- missing contexts ------------------------------------------------------------------------------------------
def test_contexts_are_missing_in_the_share_and_nested():
    whole = make()
    before = set()
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        part = without_contexts(whole, share, seed=3)
        gone = part.missing("tag")
        assert gone.sum() == round(share * 101)
        assert (part.missing("year") == gone).all()
        assert before <= set(np.flatnonzero(gone))
        before = set(np.flatnonzero(gone))
        assert (part.contexts["tag"][~gone] != whole.contexts["tag"][~gone]).nnz == 0
        assert (part.contexts["year"][~gone] == whole.contexts["year"][~gone]).all()
        assert part.content is whole.content
        assert (part.context_names, part.units) == (whole.context_names, whole.units)
    assert not whole.missing("tag").any()


def test_documents_without_contexts_are_drawn_by_the_seed(tmp_path):
    whole = make()
    whole.save(tmp_path / "corpus")
    half_gone = without_contexts(whole, 0.5, seed=0)
    assert half_gone.digest == without_contexts(Corpus.load(tmp_path / "corpus"), 0.5, seed=0).digest != whole.digest
    assert (half_gone.missing("tag") != without_contexts(whole, 0.5, seed=1).missing("tag")).any()
    assert without_contexts(whole, 0.0, seed=0).digest == whole.digest


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half", True, None])
def test_a_wrong_share_is_refused(share):
    with pytest.raises(ValueError, match=r"share of documents without contexts .*it must lie between 0 and 1"):
        without_contexts(make(), share, seed=0)
