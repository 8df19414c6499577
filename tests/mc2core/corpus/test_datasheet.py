"""The datasheet says what is in a corpus, beside what the paper says; its table cannot be broken by names."""

import numpy as np
import pandas as pd
import pytest
from helpers.paths import ROOT

from mc2core import Corpus
from mc2core.base.pages import plain
from mc2core.corpus import datasheet, row_blocks
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.datasheet import PaperCount

PAPER = ROOT / "workflow/paper/datasets.csv"


def corpus():
    return Corpus(
        np.array([[3, 0], [0, 0], [1, 4]]),
        contexts={"tag": np.array([[1, 1, 0], [0, 0, 0], [2, 0, 0]]), "year": [1990.0, np.nan, 1994.0]},
        labels=[0, 2, 2],
        documents=pd.DataFrame({"part": ["train", "test", "train"]}),
    )


def test_quantities():
    assert datasheet.quantities(corpus()) == {
        "documents": "3",
        "words": "2",
        "tokens": "8",
        "tokens per document, least / mean / most": "0 / 2.7 / 5",
        "documents without a word": "1 (33.3%)",
        "documents with the same words as an earlier one": "0 (0.0%)",
        "train documents": "2",
        "test documents": "1",
        "tag: values": "3",
        "tag: values in one document only": "1",
        "tag: distinct values per document": "1.50",
        "tag: missing": "1 (33.3%)",
        "year: range": "1990 to 1994",
        "year: missing": "1 (33.3%)",
        "labels in use": "2",
    }
    assert datasheet.quantities(corpus().standardised("year"))["year: range"] == "1990 to 1994"


def test_repeated_documents(monkeypatch):
    """Counts are compared, in any block; documents without words repeat none."""
    counts = np.array([[3, 0], [0, 0], [1, 4], [3, 0], [2, 0], [0, 0], [3, 0]])
    for block in (1, 2, 100):
        monkeypatch.setattr(row_blocks, "_BLOCK", block)
        sheet = datasheet.quantities(Corpus(counts))
        assert sheet["documents with the same words as an earlier one"] == "2 (28.6%)"


def test_the_most_frequent_names_are_shown():
    """Words by their tokens, values by the documents that have them; equal ones in their order, ten at most."""
    counts = np.array([[1, 5, 0, 2], [1, 0, 0, 0]])
    tags = np.array([[9, 1, 0, 0], [0, 1, 1, 0]])
    sheet = datasheet.quantities(
        Corpus(
            counts,
            ["ash", "birch", "cedar", "a|b\u2028" + 60 * "x"],
            {"tag": tags},
            context_names={"tag": list("pqrs")},
        )
    )
    assert sheet["words: most frequent"] == f"birch (5), ash (2), a|b {33 * 'x'}... (2)"
    assert sheet["tag: most frequent"] == "q (2), p (1), r (1)"
    many = Corpus(np.arange(20, 0, -1)[None], [f"n{i}" for i in range(20)])
    assert datasheet.quantities(many)["words: most frequent"].split(", ") == [f"n{i} ({20 - i})" for i in range(10)]
    nameless = corpus().with_contexts({"tag": np.zeros((3, 0), int)})
    assert not [name for name in datasheet.quantities(nameless) if "frequent" in name]


def test_a_context_nobody_has():
    bare = corpus().with_contexts({"year": [np.nan] * 3, "tag": np.zeros((3, 1), int)})
    sheet = datasheet.quantities(bare)
    assert (sheet["year: range"], sheet["tag: distinct values per document"]) == ("-", "-")
    assert sheet["year: missing"] == "3 (100.0%)"


def test_the_file(tmp_path):
    path = tmp_path / "datasheet.md"
    datasheet.write(
        path,
        "Small",
        "real,\nfrom a | b",
        corpus(),
        dropped=[Dropped("documents", 1234, "no text"), Dropped("tokens", 0, "never")],
        warnings=["file x is\ncut off"],
        paper={"documents": PaperCount("79,800", "ICML14"), "pages": PaperCount("7", "ICML14")},
    )
    lines = path.read_text().splitlines()
    assert lines[:3] == ["# Small", "", "Source: real, from a \\| b"]
    assert "| documents | 3 | 79,800 | ICML14 |" in lines
    assert "| words | 2 |  |  |" in lines
    assert "| pages | - | 7 | ICML14 |" in lines
    assert lines[-7:] == ["## Left out", "", "- 1,234 documents: no text", "", "## Warnings", "", "- file x is cut off"]
    datasheet.write(path, "Small", "own", corpus())
    table = [line for line in path.read_text().splitlines() if line.startswith("|")]
    assert table[:3] == ["| quantity | here |", "| --- | --- |", "| documents | 3 |"]
    assert all(line.count(" | ") == 1 for line in table)
    assert path.read_text().endswith("## Left out\n\nNothing.\n")


def test_names_are_no_markup(tmp_path):
    hostile = "<b>*x*</b>|[y](z)"
    tags = {"by_tag": np.array([[1], [1]])}
    made = Corpus(np.array([[1], [2]]), [hostile], tags, context_names={"by_tag": [hostile]})
    datasheet.write(
        tmp_path / "a.md", hostile, hostile, made, [Dropped("words", 1, hostile)], [hostile], notes=[hostile]
    )
    said = (tmp_path / "a.md").read_text()
    escaped = r"&lt;b&gt;\*x\*&lt;/b&gt;\|\[y\](z)"
    assert said.count(escaped) == 7
    assert "<" not in said.replace(escaped, "")
    assert f"| by_tag: most frequent | {escaped} (2) |" in said
    assert plain("_a_b_\nc") == r"\_a_b\_ c"


def test_the_papers_counts_use_the_names_of_the_datasheet():
    counts = datasheet.read_paper_counts(PAPER, "nuswide")
    assert counts["train documents"] == PaperCount("2,054", "ICML14")
    assert datasheet.read_paper_counts(PAPER, "nothing") == {}
    of_authors = {f"author: {one}" for one in ("values", "values in one document only")}
    known = set(datasheet.quantities(corpus())) | of_authors
    assert {
        name
        for one in ("nips", "pnas", "nuswide", "wikipedia", "pubmed", "aua", "w100")
        for name in datasheet.read_paper_counts(PAPER, one)
    } <= known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the header must be dataset,quantity,count,source"),
        ("dataset,quantity,count,source\nnips,words,3\n", "line 2 has 3 fields, but the header has 4"),
        ("dataset,quantity,count,source\nnips,a,1,x\nnips,a,2,x\n", "line 3 gives nips, a a second time"),
    ],
)
def test_a_wrong_table_of_paper_counts(tmp_path, text, message):
    (tmp_path / "paper.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        datasheet.read_paper_counts(tmp_path / "paper.csv", "nips")


@pytest.mark.parametrize(
    ("kind", "called"), [("numbers", "numbers"), ("counts", "counts"), ("binary", "zeros or ones")]
)
def test_values_of_observations_are_called_what_they_are(kind, called):
    corpus = Corpus.from_observations([[0, 1, 1], [1, 0, 1]], [0, 1], kind=kind)
    sheet = datasheet.quantities(corpus)
    assert (sheet[called], sheet["observations"]) == ("3", "2")
    assert "documents without an observation" in sheet
