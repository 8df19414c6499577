"""NIPS as scanned text: the third format of the NIPS reader."""

import io
import tarfile
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.sources import catalogue
from mc2core.sources.collections import nips, nips_raw

WORDS = [f"word{a}{b}" for a in "abcdef" for b in "abcdef"]


def write_tgz(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            content = text if isinstance(text, bytes) else text.encode("latin-1")
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def papers(n=7, text="Neural networks learn.\n"):
    return {f"nipstxt/nips{j % 13:02d}/{j:04d}.txt": text for j in range(n)}


@settings(max_examples=20, deadline=None)
@given(
    bags=st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=8),
    min_documents=st.integers(1, 3),
    shuffle=st.randoms(use_true_random=False),
)
def test_what_is_written_is_read(tmp_path_factory, bags, min_documents, shuffle):
    members = [(f"nipstxt/nips{j % 13:02d}/{j:04d}.txt", "\n".join(bag).upper()) for j, bag in enumerate(bags)]
    names = [name.removeprefix("nipstxt/") for name, _ in sorted(members)]
    by_name = dict(zip([name.removeprefix("nipstxt/") for name, _ in members], bags, strict=True))
    shuffle.shuffle(members)
    found = nips_raw.read_counts(write_tgz(tmp_path_factory.mktemp("raw") / "a.tgz", dict(members)), min_documents)
    spread = Counter(word for bag in bags for word in set(bag))
    assert found.names == names
    assert found.words == sorted(word for word, n in spread.items() if n >= min_documents)
    for row, name in zip(found.counts.toarray(), names, strict=True):
        expected = Counter(by_name[name])
        assert row.tolist() == [expected[word] for word in found.words]
    assert sum(one.number for one in found.dropped if one.what == "words") == len(spread) - len(found.words)


def test_the_reader_tells_the_format_and_gives_years(tmp_path):
    texts = papers(7) | {"nipstxt/RAW_DATA_NOTES": "not a paper", "nipstxt/idx/a0.txt": "neither"}
    corpus = nips.read(write_tgz(tmp_path / "nips12raw_str602.tgz", texts))
    assert corpus.vocabulary == ["learn", "networks", "neural"]
    assert corpus.contexts["year"].tolist() == [1987.0 + j for j in range(7)]
    assert list(corpus.documents["name"][:2]) == ["nips00/0000.txt", "nips01/0001.txt"]
    assert (corpus.content.toarray() == 1).all()


def test_broken_words_are_joined_and_odd_bytes_do_no_harm(tmp_path):
    scanned = b"The recogni-\n  tion of Schr\xf6dinger\x0c\x00 non-linear X-\nray pro-\r\ncess\n"
    counts = nips_raw.read_counts(write_tgz(tmp_path / "a.tgz", papers(6, scanned)))
    assert counts.words == ["linear", "non", "process", "ray", "recognition", "schrodinger"]


def test_rare_words_are_dropped_and_counted(tmp_path):
    members = papers(6) | {"nipstxt/nips00/0100.txt": "unique unique neural"}
    found = nips_raw.read_counts(write_tgz(tmp_path / "a.tgz", members))
    assert "unique" not in found.words
    assert [(one.what, one.number) for one in found.dropped] == [("words", 1), ("tokens", 2)]
    assert found.dropped[0].why == "in fewer than 6 documents"
    assert np.asarray(found.counts.sum(axis=0)).tolist() == [[6, 6, 7]]
    files = {"files": [tmp_path / "a.tgz"]}
    catalogue.prepare("nips", tmp_path / "corpus", source="real", files=files)
    sheet = (tmp_path / "corpus" / "datasheet.md").read_text()
    assert "- 1 words: in fewer than 6 documents\n- 2 tokens: of a word in fewer than 6 documents" in sheet


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"nipstxt/readme": "x"}, "has no paper: no member is named nipsNN/NNNN.txt"),
        ({"a/nips00/0001.txt": "x", "b/nips00/0001.txt": "y"}, "holds nips00/0001.txt in two folders"),
        ({"../nips00/0001.txt": "x"}, "unsafe name"),
        ({"nipstxt/nips00/0001.txt": "x" * (nips_raw.MAX_PAPER_BYTES + 1)}, "unpacks to more than 4194304 bytes"),
    ],
)
def test_wrong_archives_are_refused(tmp_path, members, message):
    with pytest.raises(ValueError, match=message):
        nips.read(write_tgz(tmp_path / "a.tgz", members))


def test_a_cut_archive_is_refused(tmp_path):
    path = write_tgz(tmp_path / "a.tgz", papers())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a\.tgz is damaged or cut off"):
        nips.read(path)
