"""Corpora that are larger than what is held in memory, against those that are not."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.corpus import corpus as of_corpora
from mc2core.corpus import row_blocks
from mc2core.corpus.building.columns import ContextColumn, Layout
from mc2core.corpus.building.counts import VocabularyRule
from mc2core.corpus.readers.table import read_table

# of which one is a stop word, and one becomes two
WORDS = ["apple", "Pear", "plum's", "the", "été", "北京市", "fig", "kiwi", "lime", "nut"]


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(row_blocks, "_MAX_HELD", 60)
    monkeypatch.setattr(row_blocks, "_BLOCK", 25)


def documents(path, n=90):
    rng = np.random.default_rng(3)
    rows = [
        {
            "text": " ".join(rng.choice(WORDS, rng.integers(0, 12))),
            "author": [f"a{number}" for number in rng.integers(0, 20, rng.integers(0, 4))],
            "kind": f"k{rng.integers(3)}",
        }
        for _ in range(n)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def is_mapped(array):
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


@pytest.mark.parametrize("word_counts", ["raw", "log"])
def test_an_import_of_more_than_memory_holds_is_the_same(tmp_path, word_counts, little_memory, monkeypatch):
    path = documents(tmp_path / "rows.jsonl")
    layout = Layout("text", contexts={"author": ContextColumn("author", "bag")}, labels="kind", word_counts=word_counts)
    rule = VocabularyRule(min_df=32, max_df=0.45)
    large, dropped = read_table(path, layout, rule=rule)
    for array in (large.content.data, large.content.indices, large.contexts["author"].data):
        assert is_mapped(array)
    large.save(tmp_path / "large")
    monkeypatch.undo()
    small, also_dropped = read_table(path, layout, rule=rule)
    assert not is_mapped(small.content.data)
    assert (small.vocabulary, small.context_names, dropped) == (large.vocabulary, large.context_names, also_dropped)
    assert 1 < small.n_words < 9
    assert small.labels.tolist() == large.labels.tolist()
    assert small.digest == large.digest == Corpus.load(tmp_path / "large", verify=True).digest


def test_numbers_go_on_in_a_file(little_memory):
    numbers = row_blocks.Growing()
    for first in range(0, 200, 10):
        numbers.extend(range(first, first + 10))
    numbers.extend(np.arange(200, 205, dtype=np.int64))
    assert len(numbers) == 205
    assert numbers.all().tolist() == list(range(205))


def test_rows_longer_than_a_block_and_empty_ones(little_memory):
    dense = np.zeros((9, 70), np.int32)
    dense[[2, 5]], dense[7, 3] = 2, 9
    doubled = row_blocks.by_rows(lambda rows: rows * 2, sp.csr_matrix(dense))
    assert is_mapped(doubled.data)
    assert (doubled.toarray() == 2 * dense).all()
    spread, totals = row_blocks.count_columns(doubled)
    assert (spread == (dense > 0).sum(axis=0)).all()
    assert (totals == 2 * dense.sum(axis=0)).all()


def test_lengths_are_summed_in_parts(monkeypatch):
    monkeypatch.setattr(of_corpora, "_ROWS", 3)
    content = np.random.default_rng(0).integers(0, 3, (11, 6))
    content[[0, 2, 3, 10]] = 0
    assert Corpus(content).document_lengths.tolist() == content.sum(axis=1).tolist()


def test_a_count_that_is_none_is_named_wherever_it_is(monkeypatch):
    from mc2core.corpus import checks

    monkeypatch.setattr(checks, "_CHUNK", 4)
    content = sp.csr_matrix(np.ones((4, 3)))
    content.data[10] = 0.5
    with pytest.raises(ValueError, match=r"content: row 3, column 1 holds 0\.5"):
        Corpus(content)


def test_rows_without_a_label_are_empty():
    labels = np.array([2, -1, 0, 2], np.int32)
    found = row_blocks.indicator(labels, 4)
    assert found.has_canonical_format
    assert (found.toarray() == np.where(labels[:, None] < 0, 0.0, np.eye(4)[labels])).all()
