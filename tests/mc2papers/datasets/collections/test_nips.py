"""NIPS 0-12: the real file where it is, and files gone wrong."""

import re

import numpy as np
import pytest
from helpers.nips_files import small, text_members, write_zip
from helpers.paths import DATA_FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2papers.datasets.collections import nips

ZIP = DATA_FOLDER / "nips/nips-corpus-20111211.zip"
needs_data_folder = pytest.mark.skipif(
    not ZIP.is_file(), reason=f"the real NIPS file is not in {DATA_FOLDER} (set MC2_DATA_FOLDER)"
)


@pytest.fixture(scope="module")
def real():
    return nips.read(ZIP)


@needs_data_folder
def test_real_counts(real):
    lengths = real.document_lengths
    assert (real.n_documents, real.n_words, real.n_tokens) == (1740, 13_649, 2_301_375)
    assert real.content.nnz == 933_295
    assert (lengths.min(), round(lengths.mean(), 1), lengths.max()) == (147, 1322.6, 4198)
    assert np.asarray(real.content.sum(axis=0)).min() == 6
    assert np.bincount(real.content.indices).min() == 6
    assert {word for word in real.vocabulary if len(word) == 2} == {"em", "rl", "ml", "ai", "eq", "sv"}
    assert all(re.fullmatch("[a-z]+", word) for word in real.vocabulary)


@needs_data_folder
def test_real_contexts(real):
    author = real.contexts["author"]
    assert author.shape == (1740, 2037)
    assert author.nnz == author.sum() == 3990
    assert (np.asarray(author.sum(axis=0)).ravel() == 1).sum() == 1361
    volumes = np.bincount((real.contexts["year"] - 1987).astype(int))
    assert volumes.tolist() == [90, 95, 101, 143, 144, 127, 144, 140, 152, 152, 151, 151, 150]
    assert real.documents["title"][1] == "Stochastic Learning Networks and their Electronic Implementation"
    words = real.context_names["title"]
    row = real.contexts["title"][[1]]
    assert {words[w] for w in row.indices} == {"stochastic", "learning", "networks", "electronic", "implementation"}
    assert real.context_names["author"][0] == "Aazhang_B"


@needs_data_folder
def test_real_labels(real):
    assert real.label_names[50] == "Uncategorised"
    assert (real.labels == 50).sum() == 99
    assert len(np.unique(real.labels)) == 48


def check(corpus, data):
    assert (corpus.content.toarray() == data["counts"]).all()
    assert corpus.vocabulary == data["words"]
    assert (corpus.contexts["author"].toarray() == data["authors"]).all()
    assert corpus.context_names["author"] == data["author_names"]
    assert corpus.contexts["year"].tolist() == [1987 + int(name[4:6]) for name in data["names"]]
    assert list(corpus.documents["title"]) == data["titles"]
    titles = [" ".join(corpus.context_names["title"][w] for w in row.indices) for row in corpus.contexts["title"]]
    assert titles == [f"{title[-3:]} number title" for title in data["titles"]]  # in the order of the alphabet


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), n_documents=st.integers(1, 12), n_words=st.integers(1, 12), n_authors=st.integers(1, 6)
)
def test_what_is_written_is_read(tmp_path_factory, seed, n_documents, n_words, n_authors):
    data = small(seed, n_documents, n_words, n_authors)
    folder = tmp_path_factory.mktemp("nips")
    from_text = nips.read(write_zip(folder / "a.zip", text_members(data)))
    check(from_text, data)
    assert from_text.labels.tolist() == data["labels"].tolist()


WHOLE = "must be whole numbers in the form 'nterms id:count"


@pytest.mark.parametrize(
    ("member", "edit", "message"),
    [
        ("nips.corpus", lambda s: s.replace(b":", b";", 1), f"nips.corpus, line 1 {WHOLE}"),
        ("nips.corpus", lambda s: b"x" + s, f"nips.corpus, line 1 {WHOLE}"),
        ("nips.corpus", lambda s: s.replace(b":1", b":-1", 1), WHOLE),
        ("nips.corpus", lambda s: s.replace(b":1", b":1.5", 1), WHOLE),
        ("nips.corpus", lambda s: s.replace(b":1", b":" + b"9" * 30, 1), WHOLE),
        ("nips.corpus", lambda s: s.replace(b"\n", b"\n\n", 1), f"line 2 {WHOLE}"),
        ("nips.corpus", lambda s: b"", f"line 1 {WHOLE}"),
        ("nips.corpus", lambda s: b"9" + s[1:], "line 1 announces 9 words, but lists"),
        ("nips.corpus", lambda s: b"1 6:1\n" + s, "line 1 has word 6, but nips.vocab ends at word 5"),
        ("nips.corpus", lambda s: b"2 1:1 1:1\n" + s, "line 1 lists a word twice"),
        ("nips.corpus", lambda s: b"1 0:1\n" + s, "has 5 lines, but nips.corpus has 6 documents"),
        ("nips.corpus", lambda s: b"1 0:7" + s[s.index(b"\n") :], "nips.vocab gives 'worda' "),
        ("nips.vocab", lambda s: s.replace(b" = 1 = ", b" = 2 = "), "nips.vocab, line 2 is 'wordb = 2"),
        ("nips.vocab", lambda s: s.replace(b"wordb", b"worda"), "has the word 'worda' twice"),
        ("nips.authors", lambda s: b"4\n" + s[s.index(b"\n") + 1 :], "line 1 has the number 4, but 3 is the highest"),
        ("nips.authors", lambda s: b"one\n" + s[s.index(b"\n") + 1 :], "nips.authors, line 1 is 'one'"),
        ("nips.docs", lambda s: s + b"more\n", "nips.docs has 6 lines, but nips.corpus has 5"),
        ("nips.docnames", lambda s: s.replace(b"nips00", b"icml00"), "is 'icml00/0000.txt', not of the form"),
        ("nips.vols", lambda s: b"7" + s[1:], "nips.vols, line 1 says volume '7', but the document is nips00/"),
        ("nips.labels", lambda s: b"3" + s[1:], "nips.labels, line 1 has the number 3, but 2 is the highest"),
        ("nips.labels", lambda s: b"0 1" + s[1:], "nips.labels, line 1 holds 2 numbers"),
    ],
)
def test_damaged_text_is_refused(tmp_path, member, edit, message):
    members = text_members(small())
    members[member] = edit(members[member])
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        nips.read(write_zip(tmp_path / "bad.zip", members))
    assert "bad.zip: " in str(caught.value)


def test_line_ends_and_blank_last_lines_do_not_matter(tmp_path):
    members = text_members(small())
    plain = nips.read(write_zip(tmp_path / "a.zip", members))
    dos = {name: text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + b"\r\n" for name, text in members.items()}
    assert nips.read(write_zip(tmp_path / "b.zip", dos)).digest == plain.digest
    bare = {name: text.replace(b"\r\n", b"\n").rstrip(b"\n") for name, text in members.items()}
    bare["nips.authors"] = members["nips.authors"]  # a paper without authors is an empty line, the last one too
    assert nips.read(write_zip(tmp_path / "c.zip", bare)).digest == plain.digest


def test_papers_without_authors_at_the_end_are_kept(tmp_path):
    data = small()
    data["authors"][-2:] = False
    check(nips.read(write_zip(tmp_path / "a.zip", text_members(data))), data)


def test_a_missing_member_and_a_cut_zip_are_refused(tmp_path):
    members = text_members(small())
    content = write_zip(tmp_path / "a.zip", members).read_bytes()
    (tmp_path / "cut.zip").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"cut\.zip is damaged or cut off"):
        nips.read(tmp_path / "cut.zip")
    del members["nips.vols"]
    with pytest.raises(ValueError, match=r"a\.zip has no member nips\.vols"):
        nips.read(write_zip(tmp_path / "a.zip", members))
    with pytest.raises(ValueError, match=r"nothing\.zip is missing"):
        nips.read(tmp_path / "nothing.zip")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a.zip"
    for content in (b"<html><body>Not found</body></html>" * 20, b"MATLAB 5.0 MAT-file" + bytes(600), b""):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.zip (is damaged or cut off: |has no member nips\.corpus)"):
            nips.read(path)


@settings(max_examples=200, deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6))
def test_random_damage_never_escapes_as_another_error(tmp_path_factory, edits):
    path = tmp_path_factory.mktemp("nips") / "file"
    write_zip(path, text_members(small()))
    content = bytearray(path.read_bytes())
    for place, byte in edits:
        content[place % len(content)] = byte
    path.write_bytes(bytes(content))
    try:
        nips.read(path)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right, a third is not
