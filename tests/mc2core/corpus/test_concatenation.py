"""Corpora as one, in columns united by names; and an import that appends."""

import json
import os
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.commands import mc2

from mc2core import Corpus
from mc2core.corpus import alignment, checks


def corpus(words, counts, authors=None, who=None, **more):
    contexts, names = more.pop("contexts", {}), {}
    if authors is not None:
        contexts, names = contexts | {"author": np.array(who)}, {"author": authors}
    return Corpus(np.array(counts), words, contexts, context_names=names, **more)


def by_name(one):
    """What each document has, by names: content and contexts, however columns lie."""
    documents = []
    for j in range(one.n_documents):
        row = dict(zip(one.vocabulary, one.content[j].toarray()[0].tolist(), strict=True))
        row = {word: n for word, n in row.items() if n}
        about = {}
        for name, context in one.contexts.items():
            if sp.issparse(context):
                values = zip(one.context_names[name], context[j].toarray()[0].tolist(), strict=True)
                about[name] = {value: n for value, n in values if n}
            else:
                mean, sd = one.units.get(name, (0.0, 1.0))
                about[name] = round(float(context[j] * sd + mean), 9)
        documents.append((row, about))
    return documents


def test_names_decide_what_is_the_same_column():
    one = corpus(["ash", "birch"], [[1, 2], [0, 3]], ["ann", "bob"], [[1, 0], [1, 1]])
    other = corpus(["cedar", "birch"], [[4, 5]], ["eve", "ann"], [[1, 2]])
    both = Corpus.concatenate([one, other])
    assert both.vocabulary == ["ash", "birch", "cedar"]
    assert both.context_names == {"author": ["ann", "bob", "eve"]}
    assert both.content.toarray().tolist() == [[1, 2, 0], [0, 3, 0], [0, 5, 4]]
    assert both.contexts["author"].toarray().tolist() == [[1, 0, 0], [1, 1, 0], [2, 0, 1]]
    assert by_name(both) == by_name(one) + by_name(other)
    turned = corpus(["birch", "ash"], [[2, 1], [3, 0]], ["bob", "ann"], [[0, 1], [1, 1]])
    assert by_name(Corpus.concatenate([turned, other])) == by_name(both)
    assert Corpus.concatenate([one]).digest == one.digest


def test_numbers_are_in_one_unit_and_absent_values_missing():
    one = corpus(["ash"], [[1], [2]], contexts={"year": np.array([1990.0, 2000.0])}).standardised("year")
    other = corpus(["ash"], [[3]], ["ann"], [[1]], contexts={"year": np.array([2010.0])})
    both = Corpus.concatenate([one, other])
    assert both.units == one.units
    assert [about["year"] for _, about in by_name(both)] == [1990.0, 2000.0, 2010.0]
    assert both.missing("author").tolist() == [True, True, False]
    back = Corpus.concatenate([other, one])
    assert (back.units, back.contexts["year"].tolist()) == ({}, [2010.0, 1990.0, 2000.0])
    assert set(Corpus.concatenate([corpus(["ash"], [[1]]), one]).units) == {"year"}


def test_vectors_are_in_one_unit_and_of_one_length():
    place = np.array([[1.0, 2.0], [3.0, np.nan]])
    one = corpus(["ash"], [[1], [2]], contexts={"place": place, "year": np.array([1990.0, 2000.0])})
    one, other = one.standardised("place"), corpus(["ash"], [[3]], contexts={"place": np.array([[5.0, 7.0]])})
    both, back = Corpus.concatenate([one, other]), Corpus.concatenate([other, one])
    assert both.units == one.units
    np.testing.assert_allclose(both.contexts["place"], [[-1, 0], [1, np.nan], [3, 5]])
    np.testing.assert_allclose(back.contexts["place"], [[5, 7], *place])
    assert Corpus.concatenate([one]).digest == one.digest
    without = Corpus.concatenate([corpus(["ash"], [[1]]), one])
    assert without.units == one.units
    assert without.missing("place").tolist() == [True, False, False]
    with pytest.raises(ValueError, match="'place' has vectors with 3 numbers, but 2 in the corpus"):
        Corpus.concatenate([one, corpus(["ash"], [[1]], contexts={"place": np.ones((1, 3))})])
    with pytest.raises(ValueError, match="'place' is read as numbers, but the corpus has vectors there"):
        Corpus.concatenate([one, corpus(["ash"], [[1]], contexts={"place": np.ones(1)})])


def test_labels_and_documents_are_united():
    tables = [pd.DataFrame({"title": ["a", "b"], "n": [1, 2]}), pd.DataFrame({"n": [3.5]})]
    one = corpus(["ash"], [[1], [2]], labels=[1, 0], label_names=["wood", "tree"], documents=tables[0])
    other = corpus(["ash"], [[3]], labels=[0], label_names=["tree"], documents=tables[1])
    both = Corpus.concatenate([one, other])
    assert [both.label_names[label] for label in both.labels] == ["tree", "wood", "tree"]
    assert both.documents["title"].tolist() == ["a", "b", ""]
    assert both.documents["n"].tolist() == [1.0, 2.0, 3.5]
    many = [
        corpus(["ash"], [[1]], labels=sp.csr_matrix([[1, 0]]), label_names=["wood", "tree"]),
        corpus(["ash"], [[1]], labels=sp.csr_matrix([[1, 1]]), label_names=["tree", "sea"]),
    ]
    assert Corpus.concatenate(many).labels.toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    plain = Corpus.concatenate([corpus(["ash"], [[1]], labels=[3]), corpus(["ash"], [[1]], labels=[0])])
    assert plain.labels.tolist() == [3, 0]


@pytest.mark.parametrize(("is_reversed", "most"), [(False, 1.5), (True, 2.0)])
def test_columns_that_stay_are_not_copied_on_the_way(is_reversed, most, monkeypatch):
    """Beside the counts of all there is one copy of those whose columns move, at most."""
    names, rng = [f"word {number}" for number in range(1000)], np.random.default_rng(0)
    one = Corpus(sp.csr_matrix((rng.random((2000, 1000)) < 0.2).astype(np.int32)), names)
    other = Corpus(one.content, names[::-1] if is_reversed else names)
    monkeypatch.setattr(checks, "_CHUNK", 1 << 12)
    Corpus.concatenate([one, other])  # what is imported then is there
    tracemalloc.start()
    united = Corpus.concatenate([one, other])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    content = united.content
    assert peak < most * (content.data.nbytes + content.indices.nbytes)
    assert np.array_equal(content[:2000].toarray(), one.content.toarray())
    assert np.array_equal(content[2000:].toarray()[:, :: -1 if is_reversed else 1], one.content.toarray())
    united.content.data[:] = 9  # those of the corpora are theirs
    assert one.content.data.max() == 1


def test_what_cannot_be_one_is_refused_in_a_sentence():
    one = corpus(["ash"], [[1]], contexts={"year": np.array([1.0])})
    with pytest.raises(ValueError, match="there are no corpora to concatenate"):
        Corpus.concatenate([])
    with pytest.raises(ValueError, match="the corpus does not name its words"):
        Corpus.concatenate([one, Corpus(np.array([[1]]))])
    named = corpus(["ash"], [[1]], ["ann"], [[1]])
    unnamed = corpus(["ash"], [[1]], contexts={"author": np.array([[1]])})
    with pytest.raises(ValueError, match="does not name its columns of context 'author'"):
        Corpus.concatenate([named, unnamed])
    number = corpus(["ash"], [[1]], contexts={"author": np.array([1.0])})
    with pytest.raises(ValueError, match="context 'author' is read as numbers, but the corpus has names there"):
        Corpus.concatenate([named, number])
    with pytest.raises(ValueError, match="corpus 1 has no labels, but corpus 0 has labels without names"):
        Corpus.concatenate([corpus(["ash"], [[1]], labels=[0]), one])


def test_a_name_gets_a_column_where_enough_documents_have_it():
    known = corpus(["ash"], [[1]], ["ann"], [[1]])
    new = corpus(["ash", "birch", "cedar"], [[1, 7, 0], [0, 1, 2]], ["bob", "eve"], [[1, 0], [1, 1]])
    for least, words, authors in ((1, ["birch", "cedar"], ["bob", "eve"]), (2, ["birch"], ["bob"]), (3, [], [])):
        schema, names = alignment.extended(alignment.schema_of(known), new, least)
        assert names == alignment.NewColumns(words, {"author": authors} if authors else {})
        assert schema.words == ["ash", *words]
        placed, _ = alignment.reindex_to_schema(Corpus, new, schema)
        assert alignment.new_to(known, placed) == names
    with pytest.raises(ValueError, match="new_columns is 0; it must be"):
        alignment.extended(alignment.schema_of(known), new, 0)


ROWS = [
    {"id": "a", "text": "The ferry left the harbour", "by": ["Ann"], "year": 1990},
    {"id": "b", "text": "Bread from the oven", "by": ["Bob"], "year": 1995},
    {"id": "c", "text": "The harbour froze", "by": ["Eve", "Ann"], "year": 2001},
    {"id": "d", "text": "An oven in the harbour", "by": ["Bob"], "year": 2002},
]
COLUMNS = ["--text", "text", "--context", "author=by:bag", "--context", "year:number"]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def files(tmp_path):
    return {
        "all": written(tmp_path / "all.jsonl", ROWS),
        "first": written(tmp_path / "first.jsonl", ROWS[:2]),
        "second": written(tmp_path / "second.jsonl", ROWS[2:]),
    }


def test_appending_is_importing_all_at_once(files, tmp_path, output_of):
    whole, out = str(tmp_path / "whole"), str(tmp_path / "out")
    mc2(["import", files["all"], *COLUMNS, "--out", whole])
    mc2(["import", files["first"], *COLUMNS, "--out", out])
    sheet = output_of(f"import {files['second']} --append --out {out}")
    assert "## New\n\n- 2 documents: second.jsonl\n- 1 word: 'froze'\n- 1 value of author: 'Eve'\n" in sheet
    assert by_name(Corpus.load(out, verify=True)) == by_name(Corpus.load(whole))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert "are in" in output_of(f"import {files['second']} --append --out {out}")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    third = written(tmp_path / "third.jsonl", [{"text": "snow snow ice", "by": ["Zoe"]}, {"text": "snow"}])
    mc2(f"import {third} --append --new-columns 2 --out {out}")
    grown = Corpus.load(out)
    assert ("snow" in grown.vocabulary, "ice" in grown.vocabulary, grown.n_documents) == (True, False, 6)
    assert grown.context_names["author"] == ["Ann", "Bob", "Eve"]
    assert [one["file"] for one in grown.imported["appended"]] == ["second.jsonl", "third.jsonl"]


def test_appending_the_imported_file_again_changes_nothing(files, tmp_path, capsys):
    """Its documents were there twice: only what had been appended was known."""
    out = str(tmp_path / "out")
    mc2(["import", files["first"], *COLUMNS, "--out", out])
    mc2(f"import {files['first']} --append --out {out}")
    said = f"the documents of {files['first']} are in {out} already; nothing to do\n"
    assert capsys.readouterr().out.endswith(said)
    assert Corpus.load(out).n_documents == 2


def test_new_columns_beside_like(files, tmp_path):
    first, new = str(tmp_path / "first"), str(tmp_path / "new")
    mc2(["import", files["first"], *COLUMNS, "--out", first])
    mc2(f"import {files['second']} --like {first} --out {new}")
    assert Corpus.load(new).vocabulary == Corpus.load(first).vocabulary
    mc2(f"import {files['second']} --like {first} --new-columns 1 --overwrite --out {new}")
    assert Corpus.load(new).vocabulary == [*Corpus.load(first).vocabulary, "froze"]
    assert Corpus.load(new).context_names["author"] == ["Ann", "Bob", "Eve"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--append", "--like", "{out}"], "--like cannot be given"),
        (["--new-columns", "2", *COLUMNS], "--new-columns needs --append or --like"),
        (["--append", "--new-columns", "0"], "--new-columns is 0; it must be"),
    ],
)
def test_options_that_exclude_each_other_are_refused(files, tmp_path, refused, arguments, message):
    out = str(tmp_path / "out")
    mc2(["import", files["first"], *COLUMNS, "--out", out])
    refused(["import", files["second"], *(one.format(out=out) for one in arguments), "--out", out], message)
    assert Corpus.load(out).n_documents == 2


def test_a_known_document_and_a_folder_of_no_corpus_are_refused(files, tmp_path, refused):
    out = str(tmp_path / "out")
    refused(f"import {files['second']} --append --out {out}", "there is no corpus in")
    mc2(["import", files["first"], *COLUMNS, "--id", "id", "--out", out])
    error = "'id' 'a' is the id of a document that is in the corpus already"
    refused(f"import {files['all']} --append --out {out}", error)
    assert Corpus.load(out).n_documents == 2


KILL = """
import os, signal, sys
from mc2core.base import storage
from mc2core.app.cli import main
left = int(sys.argv[1])
def killing(function):
    def call(*arguments, **more):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return function(*arguments, **more)
    return call
os.replace = killing(os.replace)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
def test_killed_anywhere_and_run_again_nothing_is_lost_or_twice(files, tmp_path):
    """Before each call that puts a file or folder in its place; the corpus may be away between two of them."""
    first, undisturbed = tmp_path / "first", tmp_path / "undisturbed"
    for folder in (first, undisturbed):
        mc2(["import", files["first"], *COLUMNS, "--out", folder])
    mc2(f"import {files['second']} --append --out {undisturbed}")
    wanted = {path.name: path.read_bytes() for path in undisturbed.iterdir()}
    out, killed = first, 0
    for left in range(20):
        command = ["import", files["second"], "--append", "--out", str(out)]
        code = subprocess.run([sys.executable, "-c", KILL, str(left), *command], capture_output=True).returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        if out.exists():
            assert Corpus.load(out, verify=True).n_documents in (2, 4)
    assert killed >= 5
    mc2(f"import {files['second']} --append --out {out}")
    got = {path.name: path.read_bytes() for path in out.iterdir()}
    for name in wanted.keys() - {"datasheet.md"}:  # whose title is the folder's name
        assert got[name] == wanted[name], name
    assert not [path for path in os.listdir(tmp_path) if path.endswith(".part")]
