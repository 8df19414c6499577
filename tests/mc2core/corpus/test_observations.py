"""Corpora of observations: order, parts, files, and bad input named."""

import numpy as np
import pytest

from mc2core import Corpus

VALUES = np.arange(12.0).reshape(6, 2)
DOCUMENT = [2, 0, 2, 0, 3, 0]


def made(**more):
    return Corpus.from_observations(
        VALUES, DOCUMENT, {"year": [1.0, 2.0, np.nan, 4.0]}, [0, 0, 1, 1], names=["maths", "reading"], **more
    )


def test_observations_are_kept_by_document_in_their_order():
    corpus = made()
    np.testing.assert_array_equal(corpus.observations, VALUES[[1, 3, 5, 0, 2, 4]])
    np.testing.assert_array_equal(corpus.document_lengths, [3, 0, 2, 1])
    assert (corpus.n_documents, corpus.n_words, corpus.n_tokens) == (4, 2, 6)
    assert corpus.vocabulary == ["maths", "reading"]
    assert repr(corpus) == "Corpus(4 documents, 6 observations of 2 numbers, contexts: year (numbers))"
    assert Corpus.from_observations([1.0, 2.0], [0, 1]).observations.shape == (2, 1)
    assert Corpus.from_observations(VALUES, DOCUMENT, n_documents=7).n_documents == 7


def test_a_part_has_the_observations_of_its_documents():
    part = made().subset([3, 0])
    np.testing.assert_array_equal(part.observations, VALUES[[4, 1, 3, 5]])
    np.testing.assert_array_equal(part.document_lengths, [1, 3])
    again = part.subset(np.array([False, True]))
    np.testing.assert_array_equal(again.observations, VALUES[[1, 3, 5]])
    train, test = made().split(0.5, seed=1)
    assert len(train.observations) + len(test.observations) == 6


def test_what_is_saved_is_loaded(tmp_path):
    corpus = made().subset([2, 3, 0])
    corpus.save(tmp_path / "corpus")
    loaded = Corpus.load(tmp_path / "corpus", verify=True)
    np.testing.assert_array_equal(loaded.observations, corpus.observations)
    np.testing.assert_array_equal(loaded.document_lengths, corpus.document_lengths)
    assert loaded.vocabulary == corpus.vocabulary
    assert loaded.digest == corpus.digest
    np.testing.assert_array_equal(loaded.subset([1]).observations, corpus.subset([1]).observations)
    # saved over
    made().save(tmp_path / "corpus")
    assert len(Corpus.load(tmp_path / "corpus").observations) == 6


def test_the_digest_is_of_the_observations_too():
    other = Corpus.from_observations(VALUES + 1.0, DOCUMENT, {"year": [1.0, 2.0, np.nan, 4.0]})
    assert other.digest != made().digest


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.full((6, 2), np.nan), "holds NaN"),
        (np.zeros((5, 2)), "holds \\(5, 2\\)"),
        (np.zeros((6, 3)), "holds \\(6, 3\\)"),
        (np.zeros((6, 2), np.float32), "float32"),
    ],
)
def test_damage_is_found(tmp_path, values, said):
    made().save(tmp_path / "corpus")
    np.save(tmp_path / "corpus" / "observations.npy", values)
    with pytest.raises(ValueError, match=said):
        Corpus.load(tmp_path / "corpus")


def test_content_that_miscounts_observations_is_damage(tmp_path):
    made().save(tmp_path / "corpus")
    np.save(tmp_path / "corpus" / "content.data.npy", np.array([2, 1, 1, 1, 1, 1], np.int32))
    with pytest.raises(ValueError, match="does not count each of 6 observations once"):
        Corpus.load(tmp_path / "corpus")


@pytest.mark.parametrize(
    ("values", "document", "said"),
    [
        ([[1.0, np.nan]], [0], "observation 0 holds nan in column 1"),
        ([1.0, np.inf], [0, 0], "observation 1 holds inf in column 0"),
        (["a"], [0], "values must hold numbers"),
        (np.zeros((0, 2)), [], "a row of numbers for each observation"),
        (np.zeros((2, 2, 2)), [0, 0], "a row of numbers for each observation"),
        (VALUES, [0, 1], "a whole number for each of 6 observations"),
        (VALUES, np.zeros(6), "type float64"),
        (VALUES, [0, 0, -1, 0, 0, 0], "holds -1 at observation 2; it must lie in 0"),
    ],
)
def test_bad_input_is_named(values, document, said):
    with pytest.raises(ValueError, match=said):
        Corpus.from_observations(values, document)


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("counts", [[1, 2], [3, -1]], "observation 1 holds -1.0 in column 1; counts are whole numbers"),
        ("counts", [[0.5, 2]], "observation 0 holds 0.5 in column 0; counts are whole numbers"),
        ("counts", [[2.0**31]], "and below 2\\*\\*31"),
        ("counts", [[np.inf]], "observation 0 holds inf in column 0; leave it out"),
        ("binary", [[0, 1], [1, 2]], "observation 1 holds 2.0 in column 1; of the kind 'binary' values are 0 or 1"),
        ("binary", [[np.nan]], "observation 0 holds nan in column 0; leave it out"),
        ("count", [[1]], "kind is 'count'; allowed: numbers, counts, binary; did you mean 'counts'"),
        ("counts", np.zeros((2, 0)), "a row of numbers for each observation"),
    ],
)
def test_values_are_of_the_kind(kind, values, said):
    with pytest.raises(ValueError, match=said):
        Corpus.from_observations(values, np.zeros(len(values), int), kind=kind)


def test_the_kind_is_kept(tmp_path):
    values = [[0, 3], [1, 1]]
    corpus = Corpus.from_observations(values, [0, 1], kind="counts")
    assert (corpus.content_kind, made().content_kind) == ("counts", "numbers")
    assert "2 observations of 2 counts" in repr(corpus)
    assert corpus.digest != Corpus.from_observations(values, [0, 1]).digest
    corpus.save(tmp_path / "corpus")
    assert Corpus.load(tmp_path / "corpus", verify=True).content_kind == corpus.subset([0]).content_kind == "counts"
    np.save(tmp_path / "corpus" / "observations.npy", np.array([[0.5, 3.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="observation 0 holds"):
        Corpus.load(tmp_path / "corpus")


def test_corpora_of_observations_are_not_concatenated():
    with pytest.raises(ValueError, match=r"give all rows to Corpus\.from_observations"):
        Corpus.concatenate([made(), made()])


def test_a_document_beyond_their_number_is_named():
    with pytest.raises(ValueError, match=r"holds 3 at observation 4; it must lie in 0\.\.2"):
        Corpus.from_observations(VALUES, DOCUMENT, n_documents=3)
    with pytest.raises(ValueError, match="names has 1 name; needed: 2"):
        Corpus.from_observations(VALUES, DOCUMENT, names=["maths"])
