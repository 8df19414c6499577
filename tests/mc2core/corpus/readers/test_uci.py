"""The bag-of-words format of the UCI repository."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.base import memory
from mc2core.corpus import row_blocks
from mc2core.corpus.readers import uci
from mc2core.corpus.readers.reading import read_own


def write(folder, header, entries, words=("a", "b", "c"), end="\n", compressed=False):
    path = folder / ("docword.x.txt.gz" if compressed else "docword.x.txt")
    lines = [*map(str, header), *(entry if isinstance(entry, str) else " ".join(map(str, entry)) for entry in entries)]
    text = (end.join(lines) + end).encode()
    path.write_bytes(gzip.compress(text) if compressed else text)
    (folder / "vocab.x.txt").write_text("".join(f"{word}\n" for word in words))
    return path


@pytest.mark.parametrize("names", [("DOCWORD.X.TXT", "VOCAB.X.TXT"), ("docword.x.TXT", "vocab.x.txt")])
def test_the_case_of_names_does_not_matter(tmp_path, names):
    write(tmp_path, [1, 3, 1], [(1, 2, 5)]).rename(tmp_path / names[0])
    (tmp_path / "vocab.x.txt").rename(tmp_path / names[1])
    assert read_own(tmp_path / names[0], {})[0].content.toarray().tolist() == [[0, 5, 0]]


@settings(max_examples=40, deadline=None)
@given(
    counts=st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=1, max_size=8)
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    compressed=st.booleans(),
    block=st.integers(1, 9),
    order=st.integers(0, 2),
    held=st.sampled_from([2, 1 << 23]),
)
def test_what_is_written_is_read(tmp_path_factory, counts, end, compressed, block, order, held):
    """In the order of documents, of documents from the last to the first, or of words; in memory and in files."""
    counts = np.array(counts)
    counts[0, 0] = 7  # a corpus has a word
    entries = [(j + 1, w + 1, counts[j, w]) for j, w in zip(*np.nonzero(counts), strict=True)]
    words = [f"word{w}" for w in range(counts.shape[1])]
    entries = [entries, entries[::-1], sorted(entries, key=lambda entry: entry[1])][order]
    path = write(tmp_path_factory.mktemp("uci"), (*counts.shape, len(entries)), entries, words, end, compressed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uci, "_BLOCK", block)
        patch.setattr(row_blocks, "_MAX_HELD", held)
        patch.setattr(row_blocks, "_BLOCK", 2)
        write_block, written = row_blocks.Growing._write, []
        patch.setattr(row_blocks.Growing, "_write", lambda one: (written.append(1), write_block(one)))
        corpus = uci.read(path)
    assert (corpus.content.toarray() == counts).all()
    assert corpus.vocabulary == words
    assert bool(written) == (len(entries) > held)


@pytest.mark.parametrize(
    ("header", "entries", "message"),
    [
        ((2, 3, 1), ["1 1"], "line 4 is b'1 1'; three whole numbers are needed: document, word, count"),
        ((2, 3, 2), [(1, 1, 1), "1 2 -3"], "line 5 has the count -3; it must lie between 0 and 2147483647"),
        ((2, 3, 2), [(1, 1, 1), "1 2 0.5"], "line 5 is b'1 2 0.5'; three whole numbers"),
        ((2, 3, 2), ["1 1 1 1", "2 2"], "line 4 is b'1 1 1 1'; three whole numbers"),
        ((2, 3, 1), [(3, 1, 1)], "line 4 has the document 3; it must lie between 1 and 2"),
        ((2, 3, 2), [(1, 1, 1), (1, 0, 1)], "line 5 has the word 0; it must lie between 1 and 3"),
        ((2, 3, 1), [(1, 1, 2**31)], "line 4 has the count 2147483648; it must lie between 0 and 2147483647"),
        ((2, 3, 2), [(1, 1, 1)], "has 1 entry, but line 3 announces 2"),
        ((2, 3, 1), [(1, 1, 1), (1, 2, 1)], "has more than the 1 entry that line 3 announces"),
        ((2, 3, 2), [(1, 1, 1), (1, 1, 1)], "gives 1 word of a document a second time"),
        ((2, 4, 1), [(1, 1, 1)], "announces 4 words, but the vocabulary has 3"),
        (("two", 3, 1), [(1, 1, 1)], "line 1 is b'two'; one whole number"),
        ((2, "9" * 99, 1), [(1, 1, 1)], "line 2 is b'9999"),
        ((2, 3, 1), ["1 1 " + "1" * 5000], "line 4 is b'1 1 1111111"),
    ],
)
def test_damage_is_refused(tmp_path, monkeypatch, header, entries, message):
    monkeypatch.setattr(uci, "_BLOCK", 2)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        uci.read(write(tmp_path, header, entries))
    assert "\n" not in str(caught.value)


def test_blank_lines_at_the_end_and_a_missing_last_line_end(tmp_path):
    path = write(tmp_path, (1, 3, 2), [(1, 1, 1), (1, 2, 5)])
    for tail in (b"", b"\n", b"\n\n \n"):
        path.write_bytes(path.read_bytes().rstrip() + tail)
        assert uci.read(path).content.toarray().tolist() == [[1, 5, 0]]


def test_names_of_the_files(tmp_path):
    path = write(tmp_path, (1, 3, 1), [(1, 1, 1)])
    other = path.rename(tmp_path / "counts.txt")
    with pytest.raises(ValueError, match=r"counts\.txt does not begin as .* and is not named docword\.<name>\.txt"):
        uci.read(other)
    assert uci.read(other, tmp_path / "vocab.x.txt").n_tokens == 1
    with pytest.raises(ValueError, match=r"vocab\.y\.txt is missing"):
        uci.read(other.rename(tmp_path / "docword.y.txt"))
    with pytest.raises(ValueError, match="is missing"):
        uci.read(tmp_path / "docword.z.txt")


def test_a_cut_gzip_is_refused(tmp_path):
    path = write(tmp_path, (1, 3, 1), [(1, 1, 1)], compressed=True)
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(ValueError, match=r"docword\.x\.txt\.gz is damaged or cut off"):
        uci.read(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_impossible_sizes_are_refused_before_allocation(tmp_path, monkeypatch, compressed):
    """1,500,000,000 documents of one entry asked for 12 GB of row pointers, or took two minutes."""
    path = write(tmp_path, (1_500_000_000, 3, 1), [(1, 1, 1)], compressed=compressed)
    with pytest.raises(ValueError, match="announces 1,500,000,000 documents but 1 entry; at most 10000000 documents"):
        uci.read(path)
    path = write(tmp_path, (2**31 - 1, 3, 2**31 - 1), [(1, 1, 1)], compressed=compressed)
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 10**9)
    with pytest.raises(ValueError, match=r"announces would take 68\.7 GB of memory, but 8\.0 GB are available"):
        uci.read(path)


def test_unsorted_entries_are_refused_if_sorting_exceeds_memory(tmp_path, monkeypatch):
    entries = [(j, w, 1) for j in (2, 1) for w in (1, 2, 3)]
    path = write(tmp_path, (2, 3, 6), entries)
    monkeypatch.setattr(memory, "available_bytes", lambda: 100)
    with pytest.raises(ValueError, match=r"putting the entries of .* in order would take"):
        uci.read(path)
    assert uci.read(write(tmp_path, (2, 3, 6), sorted(entries))).n_tokens == 6


def test_a_full_disk_is_not_told_as_a_damaged_file(tmp_path, monkeypatch):
    class Full:
        def __init__(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(row_blocks, "_MAX_HELD", 0)
    monkeypatch.setattr(row_blocks.tempfile, "TemporaryFile", Full)
    with pytest.raises(OSError, match=r"a temporary file in .* \(set TMPDIR to use another folder\).*No space left"):
        uci.read(write(tmp_path, (1, 3, 1), [(1, 1, 1)]))
