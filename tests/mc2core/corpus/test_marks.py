"""Marks of documents: the same for the same document, whatever columns it is in."""

import numpy as np
import pandas as pd
import pytest

from mc2core import Corpus
from mc2core.corpus.marks import marks_of

WORDS = ["bread", "crust", "ferry", "oven", "sail", "tide"]


@pytest.fixture
def corpus():
    rng = np.random.default_rng(0)
    contexts = {
        "author": rng.integers(0, 2, (200, 3)),
        "year": np.where(rng.random(200) < 0.1, np.nan, 1990 + rng.random(200)),
        "place": rng.standard_normal((200, 2)),
    }
    names = {"author": ["ann", "bob", "eve"]}
    return Corpus(rng.integers(0, 30, (200, 6)), WORDS, contexts, context_names=names)


def test_columns_in_another_order_and_unit_and_part_change_nothing(corpus):
    marks, order = marks_of(corpus), np.array([3, 1, 0, 5, 4, 2])
    assert len(set(marks.tolist())) == 200
    content = np.concatenate([corpus.content.toarray()[:, order], np.zeros((200, 1), int)], axis=1)
    authors = {"author": corpus.contexts["author"].toarray()[:, ::-1]}
    other = Corpus(
        content, [*(WORDS[word] for word in order), "snow"], corpus.contexts | authors,
        context_names={"author": ["eve", "bob", "ann"]},
    ).standardised("year").standardised("place")  # fmt: skip
    assert np.array_equal(marks_of(other), marks)
    rows = np.array([150, 3, 77])
    assert np.array_equal(marks_of(corpus.subset(rows)), marks[rows])


@pytest.mark.parametrize("what", ["word", "author", "year", "place"])
def test_one_other_count_name_or_number_is_another_document(corpus, what):
    content, contexts = corpus.content.toarray(), {name: one.copy() for name, one in corpus.contexts.items()}
    contexts["author"] = contexts["author"].toarray()
    contexts["year"][np.isnan(contexts["year"])] = 1980.0
    before = marks_of(Corpus(content, WORDS, contexts, context_names=corpus.context_names))
    changed = {
        "word": content[7],
        "author": contexts["author"][7],
        "year": contexts["year"],
        "place": contexts["place"][7],
    }
    changed[what][7 if what == "year" else 1] += 1
    after = marks_of(Corpus(content, WORDS, contexts, context_names=corpus.context_names))
    assert np.flatnonzero(before != after).tolist() == [7]


def test_what_is_not_looked_at_does_not_count(corpus):
    known = {"author": ["ann", "bob"], "year": None}
    content, authors = corpus.content.toarray(), corpus.contexts["author"].toarray()
    content[:, 5], authors[:, 2] = 0, 9
    other = Corpus(
        content, WORDS, {"author": authors, "year": corpus.contexts["year"]}, context_names=corpus.context_names
    )
    assert np.array_equal(marks_of(other, WORDS[:5], known), marks_of(corpus, WORDS[:5], known))
    assert not np.array_equal(marks_of(other, WORDS, known), marks_of(corpus, WORDS, known))


def test_an_id_alone_decides_where_there_is_one(corpus):
    named = [
        Corpus(corpus.content[rows], WORDS, documents=pd.DataFrame({"id": ids}))
        for rows, ids in ((np.arange(3), ["a", "b", "c"]), (np.arange(9, 12), ["c", "d", "a"]))
    ]
    one, other = map(marks_of, named)
    assert (one[0], one[2]) == (other[2], other[0])
    assert len({*one.tolist(), *other.tolist()}) == 4


def test_a_saved_table_of_documents_is_read_in_blocks(tmp_path, monkeypatch):
    table = pd.DataFrame({"id": [f"d{j}" for j in range(11)], "title": [f"a\n{j}" for j in range(11)]})
    whole = Corpus(np.ones((11, 1), int), documents=table)
    whole.save(tmp_path / "c")
    monkeypatch.setattr("mc2core.corpus.corpus._TABLE_ROWS", 4)
    stored = Corpus.load(tmp_path / "c")
    assert [len(block) for block in stored.document_blocks()] == [4, 4, 3]
    assert np.array_equal(marks_of(stored), marks_of(whole))
    rows = np.array([9, 0, 4, 4, 10])
    taken = stored.subset(rows).documents
    pd.testing.assert_frame_equal(taken, table.iloc[rows].reset_index(drop=True), check_dtype=False)
    assert stored._documents is None  # the whole table is not kept
