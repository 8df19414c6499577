"""Saved corpora: what cannot have been saved is refused when the folder is opened, any other change on request."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.base import storage
from mc2core.corpus.files import check_entries, load_context

V = 6
COUNTS = np.array([[1, 0, 2, 0, 0, 1], [0, 0, 0, 0, 0, 0], [0, 3, 0, 0, 1, 0]])


@pytest.fixture
def folder(tmp_path):
    corpus = Corpus(
        COUNTS,
        [f"word{word}" for word in range(V)],
        {"year": np.array([0.5, np.nan, 2.0]), "author": sp.csr_matrix([[1, 0], [0, 2], [1, 1]])},
        labels=[0, 1, 0],
        label_names=["a", "b"],
        context_names={"author": ["p", "q"]},
        documents=pd.DataFrame({"title": ["x", "y", "z"]}),
    ).standardised("year")
    corpus.save(tmp_path / "corpus")
    return tmp_path / "corpus"


def put(folder, name, position, value):
    array = np.load(folder / name)
    array[position] = value
    np.save(folder / name, array)


@pytest.mark.parametrize(
    ("name", "position", "value", "message"),
    [
        ("content.indices.npy", 1, 2**30, r"the column 1073741824 in row 0; it must lie in 0\.\.5"),
        ("content.indices.npy", 3, -(2**30), r"the column -1073741824 in row 2; it must lie in 0\.\.5"),
        ("content.indices.npy", 4, V, r"the column 6 in row 2; it must lie in 0\.\.5"),
        ("content.indices.npy", 1, 0, "columns that do not rise in row 0"),
        ("content.indices.npy", 4, 0, "columns that do not rise in row 2"),
        ("context.author.indices.npy", 3, 2, r"the column 2 in row 2; it must lie in 0\.\.1"),
        ("context.author.indices.npy", 0, -1, r"the column -1 in row 0; it must lie in 0\.\.1"),
        ("content.data.npy", 3, 0, "the count 0 in row 2; it must be at least 1"),
        ("context.author.data.npy", 1, -2, "the count -2 in row 1; it must be at least 1"),
        ("content.data.npy", 0, 2**31 - 1, "has 2,147,483,654 tokens, but corpus.json says 8"),
        ("context.year.npy", 2, np.inf, "context.year.npy is infinite at document 2"),
        ("labels.npy", 1, -1, "labels.npy holds -1; a label is a whole number of at least 0"),
        ("labels.npy", 1, 2, "label_names.txt has 2 lines, but labels go up to 2"),
        ("content.indptr.npy", 0, 1, "indptr.npy does not rise from 0"),
        ("content.indptr.npy", 3, 2**62, r"indices.npy holds \(5,\) int32; 4611686018427387904 values"),
    ],
)
def test_what_no_corpus_holds_is_refused_when_it_is_opened(folder, name, position, value, message):
    """Columns outside the table ended in SIGSEGV within a fit, a count of 2**31 - 1 in no answer."""
    put(folder, name, position, value)
    with pytest.raises(ValueError, match=message) as caught:
        Corpus.load(folder)
    assert "\n" not in str(caught.value)


def test_entries_are_looked_at_across_chunks(monkeypatch):
    """Every position of a matrix of rows of all lengths, with chunks of 3 entries."""
    monkeypatch.setattr("mc2core.corpus.files._CHUNK", 3)
    indptr = np.array([0, 0, 4, 5, 5, 9])
    indices = np.array([0, 2, 5, 7, 7, 1, 2, 3, 4], dtype=np.int32)
    counts = np.ones(9, np.int32)
    check_entries("x", indptr, indices, counts, 8)
    row = [1, 1, 1, 1, 2, 4, 4, 4, 4]
    for entry in range(9):
        for wrong, message in ((8, "the column 8 in"), (-1, "the column -1 in")):
            changed = indices.copy()
            changed[entry] = wrong
            with pytest.raises(ValueError, match=rf"{message} row {row[entry]};"):
                check_entries("x", indptr, changed, counts, 8)
        fewer = counts.copy()
        fewer[entry] = 0
        with pytest.raises(ValueError, match=rf"count 0 in row {row[entry]};"):
            check_entries("x", indptr, indices, fewer, 8)
        if entry and row[entry] == row[entry - 1]:
            changed = indices.copy()
            changed[entry] = changed[entry - 1]
            with pytest.raises(ValueError, match=rf"do not rise in row {row[entry]}"):
                check_entries("x", indptr, changed, counts, 8)


@pytest.mark.parametrize("old", [False, True])
def test_verify_finds_every_changed_byte(folder, old):
    """Each third byte of each file; ``old``: a corpus from before digests of files, which has that of its arrays."""
    if old:
        make_old(folder)
    seen_by_engines = {"content", "context"}
    for path in sorted(folder.iterdir()):
        if old and (path.name.split(".")[0] not in seen_by_engines or path.suffix != ".npy"):
            continue
        whole = path.read_bytes()
        expected = Corpus.load(folder, verify=True).digest
        for position in range(0, len(whole), 3):
            damaged = bytearray(whole)
            damaged[position] ^= 0x11
            path.write_bytes(damaged)
            try:
                found = Corpus.load(folder, verify=True)
            except ValueError:
                continue
            assert old, f"{path.name}, byte {position}"
            assert found.digest == expected
        path.write_bytes(whole)


def make_old(folder):
    meta = storage.read_json(folder / "corpus.json")
    storage.write_json(folder / "corpus.json", {name: meta[name] for name in meta if name not in ("files", "checksum")})


def test_a_corpus_from_before_digests_of_files_loads(folder):
    new = Corpus.load(folder)
    make_old(folder)
    old = Corpus.load(folder, verify=True)
    assert (old.content != new.content).nnz == 0
    assert (old.vocabulary, old.units, old.label_names) == (new.vocabulary, new.units, new.label_names)


def test_a_changed_description_is_refused(folder):
    text = (folder / "corpus.json").read_text()
    mean = str(Corpus.load(folder).units["year"][0])
    (folder / "corpus.json").write_text(text.replace(mean, "1.5"))
    with pytest.raises(ValueError, match=r"corpus\.json was changed after it was saved: its checksum differs"):
        Corpus.load(folder)


def test_a_missing_or_changed_file_is_named(folder):
    (folder / "vocabulary.txt").write_text("word0\nword1\nword2\nword4\nword3\nword5\n")
    assert Corpus.load(folder).vocabulary[3] == "word4"
    with pytest.raises(ValueError, match=r"vocabulary\.txt was changed after it was saved: its digest differs"):
        Corpus.load(folder, verify=True)
    (folder / "vocabulary.txt").unlink()
    with pytest.raises(ValueError, match=r"vocabulary\.txt is missing"):
        Corpus.load(folder, verify=True)


def test_no_flipped_bit_of_a_header_ends_in_another_error(folder):
    """Byte 10 of a .npy file ended in tokenize.TokenError."""
    whole = (folder / "content.data.npy").read_bytes()
    refused = 0
    for position in range(128):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            (folder / "content.data.npy").write_bytes(damaged)
            try:
                found = Corpus.load(folder)
            except ValueError:
                refused += 1
                continue
            np.testing.assert_array_equal(found.content.toarray(), COUNTS)
    assert refused > 1000  # "<i4" as "|i4" says the same, and so do a few others


def other(folder):
    """Another corpus of as many documents, words and names."""
    known = Corpus.load(folder)
    Corpus(
        COUNTS[::-1],
        [f"other{word}" for word in range(V)],
        {"year": np.array([9.0, 8.0, np.nan]), "author": sp.csr_matrix([[0, 1], [1, 0], [0, 1]])},
        labels=[1, 1, 0],
        label_names=["c", "d"],
        context_names={"author": ["r", "s"]},
        documents=pd.DataFrame({"title": ["1", "2", "3"]}),
    ).standardised("year").save(folder)
    return known


@pytest.mark.parametrize("is_large", [False, True])
def test_a_loaded_corpus_survives_replacement_of_its_folder(folder, tmp_path, monkeypatch, is_large):
    """Words and the table of documents were read later, by path: those of the new corpus, with the old counts."""
    monkeypatch.setattr("mc2core.corpus.corpus._TABLE_ROWS", 2 if is_large else 100)
    expected = Corpus.load(folder)
    titles, words = expected.documents["title"].tolist(), expected.vocabulary
    known = other(folder)
    known.save(tmp_path / "again")
    again = Corpus.load(tmp_path / "again", verify=True)
    for one in (known, again):
        assert [title for block in one.document_blocks() for title in block["title"]] == titles == ["x", "y", "z"]
        assert one.vocabulary == words == [f"word{word}" for word in range(V)]
        assert (one.context_names, one.label_names) == ({"author": ["p", "q"]}, ["a", "b"])
        assert (one.content.toarray() == COUNTS).all()
    assert known.subset([2, 0]).documents["title"].tolist() == ["z", "x"]


def test_a_folder_that_is_replaced_during_reading_is_read_again(folder, monkeypatch):
    load, names = load_context, []

    def replaced(*arguments):
        names.append(arguments[1])
        if names == ["content"]:
            other(folder)
        return load(*arguments)

    monkeypatch.setattr("mc2core.corpus.files.load_context", replaced)
    found = Corpus.load(folder)
    monkeypatch.undo()
    assert names.count("content") > 1
    assert found.digest == Corpus.load(folder).digest
    assert found.vocabulary[0] == "other0"
    assert (found.content.toarray() == COUNTS[::-1]).all()


def test_a_missing_file_of_names_or_documents_is_named_at_once(folder):
    for name in ("vocabulary.txt", "documents.csv"):
        whole = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(ValueError, match=rf"{name} is missing"):
            Corpus.load(folder)
        (folder / name).write_bytes(whole)


def test_names_have_a_digest_of_their_own(folder):
    corpus, renamed = Corpus.load(folder), Corpus.load(folder)
    renamed._vocabulary = ["renamed", *corpus.vocabulary[1:]]
    assert renamed.digest == corpus.digest
    moved = corpus.with_contexts(corpus.contexts)
    moved.units = {"year": (1.0, 2.0)}
    unnamed = corpus.with_contexts(corpus.contexts)
    unnamed.context_names = {"author": ["p", "r"]}
    assert len({one.names_digest for one in (corpus, renamed, moved, unnamed)}) == 4


def test_what_is_no_corpus_is_named(folder, tmp_path):
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit/posterior.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"fit holds no corpus: corpus\.json is missing; it is the folder of a fit"):
        Corpus.load(tmp_path / "fit")
    with pytest.raises(ValueError, match="it is a file; mc2 import makes the folder of a corpus of documents"):
        Corpus.load(tmp_path / "fit/posterior.npz")
    for path in (folder, tmp_path / "fit"):
        what = "a folder that holds a corpus" if path == folder else "a folder"
        with pytest.raises(ValueError, match=f"is {what}; the folder of a fit or an array file"):
            storage.read_arrays(path)


NAMES = (
    *("km/h", "a\\b", ".", "..", "../x", "-x", "--out", "content", "documents.csv", "corpus.json", "Title", "title"),
    *(
        "naïve", "nai\u0308ve", "年", "\u202eabc", "x" * 5000, "a,b", 'q"q', "line\nbreak", "cr\rlf", " lead",
        "Unnamed: 0",
    ),
    *("0", "index", "a.1", "None", "nan", "#c", "=1+1", "tab\tbed", "\x1b[31m", "\ufeffbom"),
)  # fmt: skip


def test_any_name_of_a_kept_column_is_read_back(tmp_path):
    """A corpus with a column 'km/h' was written, and could not be read again."""
    table = pd.DataFrame({name: [f"{number}", "", "x/y"] for number, name in enumerate(NAMES)})
    Corpus(COUNTS, documents=table).save(tmp_path / "own")
    found = Corpus.load(tmp_path / "own", verify=True).documents
    assert found.columns.tolist() == list(NAMES)
    with pytest.raises(ValueError, match=r"the column 'nul\\x00'; no table can hold a zero byte"):
        Corpus(COUNTS, documents=pd.DataFrame({"nul\0": ["a", "b", "c"]}))
    assert found.equals(table)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("km/h", "must be a plain identifier"),
        ("..", "must be a plain identifier"),
        ("-x", "must be a plain identifier"),
        ("a\0b", "must be a plain identifier"),
        ("é" * 101, "has more than 200 bytes, too many for a file name"),
    ],
)
def test_a_context_that_no_file_can_be_named_by_is_refused(context, message):
    with pytest.raises(ValueError, match=message):
        Corpus(COUNTS, contexts={context: np.zeros(3)})


@pytest.mark.parametrize("pair", [("Year", "year"), ("\u00e9t", "e\u0301t"), ("\u017f", "s")])
def test_contexts_whose_files_would_coincide_are_refused(tmp_path, pair):
    corpus = Corpus(COUNTS, contexts={name: np.array([1.0, 2.0, 3.0]) for name in pair})
    with pytest.raises(ValueError, match="differ only in case"):
        corpus.save(tmp_path / "own")
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize("name", ["names", "content", "data", "labels", "indptr", "été", "a" * 200])
def test_contexts_may_be_named_like_files(tmp_path, name):
    counts = sp.csr_matrix([[1, 0], [0, 2], [1, 1]])
    corpus = Corpus(COUNTS, contexts={name: counts, "year": np.zeros(3)}, context_names={name: ["p", "q"]})
    for _ in range(2):
        corpus.save(tmp_path / "own")  # the second replaces the first
        found = Corpus.load(tmp_path / "own", verify=True)
        assert (found.contexts[name] != counts).nnz == 0


def test_no_file_outside_a_corpus_is_named_by_its_description(folder):
    meta = storage.read_json(folder / "corpus.json")
    meta["files"]["../secret"] = "0"
    storage.write_json(folder / "corpus.json", meta)
    with pytest.raises(ValueError, match=r"'../secret' is not a file of a corpus"):
        Corpus.load(folder)


def test_a_table_of_counts_names_its_words_and_no_word_twice():
    """The names of its columns were forgotten."""
    frame = pd.DataFrame(COUNTS, columns=list("abcdef"))
    assert Corpus(frame).vocabulary == Corpus(frame.astype(pd.SparseDtype("int64", 0))).vocabulary == list("abcdef")
    assert not Corpus(pd.DataFrame(COUNTS)).has_vocabulary
    assert Corpus(frame, list("uvwxyz")).vocabulary == list("uvwxyz")
    with pytest.raises(ValueError, match="vocabulary has 'b' twice, at 1 and 4; each name stands for one column"):
        Corpus(COUNTS, list("abcdbf"))
    with pytest.raises(ValueError, match="vocabulary has 'b' twice"):
        Corpus(pd.DataFrame(COUNTS, columns=list("abcdbf")))
    values = pd.DataFrame({"x": [1.0, 2.0], "y": [0.5, 1.5]})
    assert Corpus.from_observations(values, [0, 1]).vocabulary == ["x", "y"]
    with pytest.raises(ValueError, match="names has 'x' twice"):
        Corpus.from_observations(values, [0, 1], names=["x", "x"])
