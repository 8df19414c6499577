"""Fingerprints of documents: the same for the same id, and none where there are no ids."""

import numpy as np
import pandas as pd

from mc2core import Corpus
from mc2core.corpus.fingerprints import fingerprints_of

WORDS = ["bread", "crust", "ferry", "oven", "sail", "tide"]


def test_documents_without_ids_have_no_marks():
    """Those with the same words had the same fingerprint: of short texts many are the same and came from others."""
    assert fingerprints_of(Corpus(np.ones((3, 6), int), WORDS)) is None
    assert (
        fingerprints_of(Corpus(np.ones((3, 6), int), WORDS, documents=pd.DataFrame({"title": ["a", "b", "c"]}))) is None
    )


def test_an_id_alone_decides():
    named = [
        Corpus(np.eye(3, 6, place, dtype=int), WORDS, documents=pd.DataFrame({"id": ids}))
        for place, ids in enumerate((["a", "b", "c"], ["c", "d", "a"]))
    ]
    one, other = map(fingerprints_of, named)
    assert (one[0], one[2]) == (other[2], other[0])
    assert len({*one.tolist(), *other.tolist()}) == 4


def test_a_saved_table_of_documents_is_read_in_blocks(tmp_path, monkeypatch):
    table = pd.DataFrame({"id": [f"d{j}" for j in range(11)], "title": [f"a\n{j}" for j in range(11)]})
    whole = Corpus(np.ones((11, 1), int), documents=table)
    whole.save(tmp_path / "c")
    monkeypatch.setattr("mc2core.corpus.corpus._TABLE_ROWS", 4)
    stored = Corpus.load(tmp_path / "c")
    assert [len(block) for block in stored.document_blocks()] == [4, 4, 3]
    assert np.array_equal(fingerprints_of(stored), fingerprints_of(whole))
    rows = np.array([9, 0, 4, 4, 10])
    taken = stored.subset(rows).documents
    pd.testing.assert_frame_equal(taken, table.iloc[rows].reset_index(drop=True), check_dtype=False)
    assert stored._documents is None  # the whole table is not kept
