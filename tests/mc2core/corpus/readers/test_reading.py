"""``mc2 import`` and the datasets that come with a datasheet and an official split."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.paths import ROOT

from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.readers.lines import LineReader
from mc2core.corpus.readers.reading import read_own
from mc2papers.cli import main as prepare
from mc2papers.datasets import catalogue
from mc2papers.datasets.dumps.corpora import Reading
from mc2papers.datasets.origins import ORIGINS


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "papers.jsonl"
    rows = [
        {"key": "a", "text": "Trees and graphs", "Year": 1990, "who": ["ann"], "kind": "x", "title": "One"},
        {"key": "b", "text": "Graphs", "Year": None, "who": {"bob": 2}, "kind": "y", "title": "Two"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_later_documents_have_the_codes_of_the_first(tmp_path):
    """In another file of the same form, and in lines of mc2 predict."""
    rows = [{"text": "trees and graphs", "year": 1990, "who": ["ann"]}, {"text": "graphs", "year": -99, "who": ["?"]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"text": "text", "contexts": ["year:number", "who:bag"], "missing": ["?", "-99"]}
    first, _ = read_own(tmp_path / "a.jsonl", given)
    again, dropped = read_own(tmp_path / "a.jsonl", {}, like=first)
    assert [str(one) for one in dropped] == [
        "1 value of 'year': read as missing: '-99' (1)",
        "1 value of 'who': read as missing: '?' (1)",
    ]
    lines = LineReader(first, {}).read(enumerate((tmp_path / "a.jsonl").read_bytes().splitlines(), start=1)).corpus
    for corpus in (first, again, lines):
        assert np.array_equal(corpus.contexts["year"], [1990, np.nan], equal_nan=True)
        assert corpus.missing("who").tolist() == [False, True]


def test_codes_of_missing_values_may_begin_with_a_dash(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("text,year\ntrees and graphs,1990\ngraphs,-99\ntrees,-\n")
    command = ["import", str(tmp_path / "a.csv"), "--text", "text", "--context", "year:number"]
    mc2([*command, "--missing", "-99,-", "--out", tmp_path / "own"])
    assert Corpus.load(tmp_path / "own").missing("year").tolist() == [False, True, True]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*command, "--missing", "--out", str(tmp_path / "other")])
    assert "--missing: expected one argument" in capsys.readouterr().err


def test_a_table_becomes_a_corpus_with_a_datasheet(tmp_path, table, capsys):
    options = [
        "--context", "year=Year:number", "--context", "who:bag", "--labels", "kind", "--id", "key", "--keep",
        "title",
    ]  # fmt: skip
    command = ["import", str(table), "--text", "text", *options, "--min-df", "2", "--out", str(tmp_path / "own")]
    mc2(command)
    corpus = Corpus.load(tmp_path / "own")
    assert corpus.vocabulary == ["graphs"]
    assert corpus.content.toarray().tolist() == [[1], [1]]
    assert np.array_equal(corpus.contexts["year"], [1990, np.nan], equal_nan=True)
    assert corpus.contexts["who"].toarray().tolist() == [[1, 0], [0, 2]]
    assert corpus.label_names == ["x", "y"]
    assert corpus.documents.to_dict("list") == {"key": ["a", "b"], "title": ["One", "Two"]}
    sheet = (tmp_path / "own/datasheet.md").read_text()
    said = capsys.readouterr()
    assert (said.out, said.err) == (sheet, "")
    assert "- 1 word: in fewer than 2 documents" in sheet


def test_a_corpus_is_replaced_if_that_is_asked_for_alone(tmp_path, table, capsys, refused):
    """One was lost under a running fit."""
    command = ["import", str(table), "--text", "text", "--out", str(tmp_path / "own")]
    mc2(command)
    before = (tmp_path / "own/corpus.json").read_bytes()
    assert main(["import", str(table), "--bag", "who", *command[4:]]) == 2
    said = f"--out {tmp_path}/own holds a corpus of 2 documents; --overwrite replaces it, --append adds to it\n"
    assert capsys.readouterr().err == f"mc2: error: {said}"
    assert (tmp_path / "own/corpus.json").read_bytes() == before
    refused([*command, "--overwrite", "--append"], "give one of them")
    mc2(["import", table, "--bag", "who", "--overwrite", *command[4:]])
    assert Corpus.load(tmp_path / "own").vocabulary == ["ann", "bob"]
    (tmp_path / "own/corpus.json").write_text("{")  # what a damaged one holds may be wanted, too
    refused(command, "holds a corpus; --overwrite replaces it")


def test_uci_files_are_told_by_their_name(tmp_path):
    (tmp_path / "docword.x.txt").write_text("1\n2\n1\n1 2 5\n")
    (tmp_path / "vocab.x.txt").write_text("a\nb\n")
    mc2(f"import {tmp_path}/docword.x.txt --out {tmp_path}/own")
    assert Corpus.load(tmp_path / "own").content.toarray().tolist() == [[0, 5]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give one column of words by --text, --bag or --counts (text, bag or counts in a configuration and in"),
        (["--counts", "who", "--context", "who:counts", "--context", "who:bag"], "context 'who' is given twice"),
        (["--text", "txt"], "no record has the key 'txt'"),
        (["--text", "text", "--kind", "counts"], "'kind' cannot be used with"),
        (["--text", "text", "--context", "Year"], "context 'Year' must have the form COLUMN:KIND or NAME=COLUMN:KIND"),
        (["--text", "text", "--context", "Year:time"], "context column 'Year' is of kind 'time'; kinds are number"),
        (["--text", "text", "--context", "my year=Year:number"], "context name 'my year' must be a plain identifier"),
        (["--text", "text", "--context", "key:number"], "papers.jsonl: 2 of 2 rows cannot be read"),
        (["--text", "text", "--max-features", "0"], "--max-features is 0; it must be a whole number of at least 1"),
        (["--text", "text", "--min-df", "0"], "--min-df is 0; it must be a whole number of at least 1"),
        (["--text", "text", "--vocabulary", "/nothing.txt"], "/nothing.txt is missing"),
        (["--like", "/nothing"], "--like /nothing is missing; give a fit or the folder of a corpus"),
        (["--like", str(ROOT)], "holds no corpus: corpus.json is missing"),
        (["--like", __file__], "is not a complete array file: File is not a zip file"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(tmp_path, table, capsys, options, message):
    assert main(["import", str(table), *options, "--out", str(tmp_path / "own")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1 or "rows cannot be read" in error
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize("options", [[], ["--text", "text"], ["--context", "emb=X_pca:vector"]])
def test_a_file_of_another_form_is_named_with_what_can_be_read(tmp_path, capsys, options):
    path = tmp_path / "cells.h5ad"
    path.write_bytes(b"\x89HDF")
    assert main(["import", str(path), *options, "--out", str(tmp_path / "own")]) == 2
    known = ".jsonl, .ndjson, .csv, .tsv, .parquet, .xlsx"
    assert capsys.readouterr().err == (
        f"mc2: error: {path} has the ending '.h5ad'; supported endings are {known}. In Python, "
        "mc2core.Corpus(counts, vocabulary) takes a matrix of counts\n"
    )
    assert not (tmp_path / "own").exists()


def test_a_folder_without_corpus_json_is_no_corpus(tmp_path, refused):
    own = tmp_path / "own"
    own.mkdir()
    (own / "documents.csv").write_text("text,title\nred lake,one\n")
    why = "holds documents.csv, but not corpus.json, so it is no earlier output; the folder will not be replaced"
    refused(f"import {own}/documents.csv --text text --keep title --out {own}", f"own {why}")
    with pytest.raises(ValueError, match=why):
        Corpus([[1]]).save(own)
    assert (own / "documents.csv").read_text() == "text,title\nred lake,one\n"


def test_a_file_of_the_corpus_is_not_imported_into_it(tmp_path, table, refused):
    mc2(f"import {table} --text text --keep text --out {tmp_path}/own")
    kept = tmp_path / "own/documents.csv"
    refused(f"import {kept} --text text --out {tmp_path}/own --overwrite", f"{kept} is in --out {tmp_path}/own, which")


def test_a_folder_of_something_else_is_never_replaced(tmp_path, table, capsys, refused):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter.txt").write_text("dear")
    error = "home holds letter.txt, which is not part of this output"
    refused(f"import {table} --text text --out {tmp_path}/home", error)
    assert prepare(["corpus", "letters", "--out", str(tmp_path / "home")]) == 2
    assert "home holds letter.txt, which is not part of this output" in capsys.readouterr().err
    with pytest.raises(ValueError, match="will not be replaced"):
        Corpus([[1]]).save(tmp_path / "home")
    with pytest.raises(ValueError, match="not a folder"):
        Corpus([[1]]).save(tmp_path / "home/letter.txt")
    assert (tmp_path / "home/letter.txt").read_text() == "dear"


@pytest.mark.parametrize("out", [".", "..", "{folder}"])
def test_the_current_folder_is_not_replaced(tmp_path, table, refused, monkeypatch, out):
    (tmp_path / "outer/here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "outer/here")
    out = out.format(folder=tmp_path / "outer/here")
    error = f"{out} is or contains the current folder, which cannot be replaced"
    refused(f"import {table} --text text --out {out}", error)


def test_notes_beside_a_corpus_are_kept(tmp_path, table, capsys, refused):
    again = ["import", str(table), "--text", "text", "--overwrite", "--out", str(tmp_path / "own")]
    assert main(again) == main(again) == 0
    (tmp_path / "own/notes.txt").write_text("mine")
    refused(again, "own holds notes.txt")
    (tmp_path / "own/notes.txt").unlink()
    letters = ["corpus", "letters", "--out"]
    assert prepare([*letters, str(tmp_path / "own")]) == 2  # a corpus is no dataset, with its train and test parts
    assert "own holds " in capsys.readouterr().err
    assert prepare([*letters, str(tmp_path / "letters")]) == prepare([*letters, str(tmp_path / "letters")]) == 0
    (tmp_path / "letters/train/notes.txt").write_text("mine")
    assert prepare([*letters, str(tmp_path / "letters")]) == 2
    assert "letters holds train/notes.txt" in capsys.readouterr().err


def test_an_official_split_is_kept_and_the_datasheet_written(tmp_path, monkeypatch):
    def read(files, seed):
        documents = pd.DataFrame({"part": ["train", "test", "train"]})
        return Reading(Corpus(np.eye(3, dtype=int), documents=documents), [Dropped("images", 4, "no tag")])

    monkeypatch.setitem(catalogue.DATASETS, "nuswide", catalogue.Dataset(lambda seed: None, read))
    paper = tmp_path / "paper.csv"
    paper.write_text('dataset,quantity,count,source\nnuswide,train documents,"2,054",ICML14\n')
    catalogue.prepare(
        "nuswide", tmp_path / "out", source="real", files={"files": [tmp_path / "Imagelist.txt"]}, paper=paper
    )
    assert Corpus.load(tmp_path / "out/train").content.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert Corpus.load(tmp_path / "out/test").content.toarray().tolist() == [[0, 1, 0]]
    sheet = (tmp_path / "out/datasheet.md").read_text()
    assert "Source: real, Imagelist.txt" in sheet
    assert "| train documents | 2 | 2,054 | ICML14 |" in sheet
    assert "- 4 images: no tag" in sheet


@pytest.mark.parametrize(
    "name", [name for name in catalogue.DATASETS if ORIGINS[name].model and not ORIGINS[name].by_paper]
)
def test_every_dataset_can_be_simulated(tmp_path, name):
    about = catalogue.prepare(name, tmp_path / name, source="simulated", settings={"scale": 0.001})
    assert about["documents"] >= 20
    assert (
        f"Source: {about['title']}-shaped, simulated ({about['drawn_from']})"
        in (tmp_path / name / "datasheet.md").read_text()
    )


def test_the_first_documented_command_reads_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = (ROOT / "docs/start.md").read_text().splitlines()
    line = next(one for one in lines if one.startswith(".venv/bin/mc2 import"))
    command = shlex.split(line)[1:]
    mc2([*command[:-1], tmp_path / "mine"])
    corpus = Corpus.load(tmp_path / "mine")
    assert (corpus.n_documents, set(corpus.contexts)) == (240, {"year", "author"})


def test_an_excerpt_says_so():
    about = {"source": "real excerpt", "title": "Wikipedia", "documents": 1227}
    assert catalogue.describe(about) == "Wikipedia, an excerpt of the real data, 1,227 documents"
    assert catalogue.describe(about | {"source": "real"}) == catalogue.describe(about | {"source": "own"}) == ""


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("mine", {"source": "simulated"}, "dataset 'mine' cannot have the source 'simulated'; it can only be read"),
        ("letters", {"source": "real"}, "dataset 'letters' cannot have the source 'real'; it can only be simulated"),
        ("nips", {"source": "reel"}, "source of dataset 'nips' is 'reel'; it must be one of simulated, real, real exc"),
        ("nips", {"source": "real"}, "dataset 'nips' with the source 'real' needs files: give the file to read"),
        ("nips", {"settings": {"scael": 1}}, "dataset 'nips' has no setting 'scael'; did you mean 'scale'?"),
    ],
)
def test_a_source_that_cannot_be_is_refused(tmp_path, name, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        catalogue.prepare(name, tmp_path / "x", **({"source": "simulated"} | change))
    assert not (tmp_path / "x").exists()
