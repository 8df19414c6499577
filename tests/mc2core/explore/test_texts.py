"""Texts for a page: where they come from, and that they are those of the documents."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.explored_fits import HOSTILE, corpus, gibbs

from mc2core import Corpus
from mc2core.explore import texts
from mc2core.explore.description import Description
from mc2core.explore.summary import summary
from mc2core.explore.tables import tables_of

ROWS = [{"id": f"d{j}", "body": f"lake {'wood ' * j}star.\nLine two."} for j in range(4)]


def imported(tmp_path, name="own.csv", rows=ROWS, **settings):
    """A file, and what is imported of it."""
    from mc2core.corpus.readers.reading import read_own

    path = tmp_path / name
    pd.DataFrame(rows).to_csv(path, index=False)
    return path, read_own(path, {"text": "body", **settings})[0]


def test_a_kept_column_is_taken_as_it_is(tmp_path):
    _, own = imported(tmp_path, keep=["body"])
    assert texts.texts_of(own, "body")[1] == "lake wood star. Line two."


def test_a_file_is_read_again_by_the_ids_of_the_corpus(tmp_path):
    path, own = imported(tmp_path, id="id")
    pd.DataFrame(ROWS[::-1]).to_csv(path, index=False)
    part = own.subset(np.array([2, 0]))
    assert texts.texts_of(part, path) == [ROWS[2]["body"], ROWS[0]["body"]]
    pd.DataFrame(ROWS[1:]).to_csv(path, index=False)
    with pytest.raises(ValueError, match="has no document with the id 'd0', which the corpus has"):
        texts.texts_of(part, path)


def test_ids_are_compared_as_they_were_imported(tmp_path):
    path, own = imported(tmp_path, rows=[{"id": " a  1", "body": "red"}, {"id": "b", "body": "sea"}], id="id")
    assert texts.texts_of(own, path) == ["red", "sea"]


def test_missing_texts_are_empty():
    assert texts.texts_of(Corpus([[1]] * 4), [None, float("nan"), pd.NA, "lake"]) == ["", "", "", "lake"]


def test_without_ids_the_rows_must_be_the_documents(tmp_path):
    path, own = imported(tmp_path)
    assert texts.texts_of(own, path) == [row["body"] for row in ROWS]
    with pytest.raises(
        ValueError, match="has 4 documents, the corpus 3; import them with --id, or keep the texts with --keep body"
    ):
        texts.texts_of(own.subset(np.arange(3)), path)


def test_a_file_that_was_changed_since_its_import_is_refused(tmp_path):
    """Without ids as many other texts stood beside the clusters of the old ones."""

    path, out = tmp_path / "own.csv", tmp_path / "data"
    pd.DataFrame(ROWS).to_csv(path, index=False)
    mc2(f"import {path} --text body --out {out}")
    assert texts.texts_of(Corpus.load(out), path) == [row["body"] for row in ROWS]
    pd.DataFrame(ROWS[::-1]).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"own\.csv is not the file that was imported, or was changed since"):
        texts.texts_of(Corpus.load(out), path)


def test_a_column_of_ids_may_have_any_name(tmp_path):
    rows = [{"key": row["id"], "body": row["body"]} for row in ROWS]
    path, own = imported(tmp_path, rows=rows, id="key")
    pd.DataFrame(rows[::-1]).to_csv(path, index=False)
    assert texts.texts_of(own, path) == [row["body"] for row in ROWS]


def test_what_is_neither_file_nor_column_is_refused():
    made = corpus()
    with pytest.raises(ValueError, match=r"texts: body is neither a file nor a kept column \(title, place\)"):
        texts.texts_of(made, "body")
    with pytest.raises(ValueError, match="texts are given for 2 documents, but the corpus has 60"):
        texts.texts_of(made, ["a", "b"])


def test_texts_of_a_cluster_are_together_in_long_scripts(monkeypatch):
    monkeypatch.setattr(texts, "MAX_INSIDE", 100)
    monkeypatch.setattr(texts, "PER_SCRIPT", 60)
    cluster, rows = np.arange(30) % 3, np.arange(1, 30)
    parts = texts.in_scripts(["x" * 10] * 30, rows, cluster)
    order = np.concatenate(parts)
    assert sorted(order) == rows.tolist()
    assert (np.diff(cluster[order]) >= 0).all()
    assert all(len(part) == 6 for part in parts[:-1])
    assert len(texts.in_scripts(["x"] * 30, rows, cluster)) == 1


def test_long_texts_are_cut_and_unwritable_characters_replaced():
    assert texts.shortened("a" * 20_001) == "a" * 20_000 + " …"
    assert texts.shortened("a\ud800b").encode("utf-8") == b"a?b"


def test_the_summary_tells_of_the_marked_cut_and_holds_no_markup():
    made = corpus()
    made._documents = made.documents.assign(**{f"{HOSTILE} | *kept*": ["a", "b"] * 30})
    description = Description.from_posterior(gibbs(made), made, names={"topic": {1: f"{HOSTILE} | *x*"}})
    tables = tables_of(description)
    said = summary(description, tables, "A | <b>title</b>")
    lines = said.splitlines()
    assert lines[0] == r"# A \| &lt;b&gt;title&lt;/b&gt;"
    assert "<" not in said
    assert "*kept*" not in said.replace(r"\*", "")
    assert "kept" in said
    year = tables["cluster_numbers"].query("context == 'year'").iloc[0]
    assert f"| middle half {year['lower_quarter']:.6g} to {year['upper_quarter']:.6g} |" in said
    chosen = description.posterior.hierarchy.recommended
    *rows, _, head = [line for line in lines[lines.index("## Topics") - 1 :: -1] if line.startswith("| ")]
    assert len(rows) == chosen
    sizes = sorted(np.bincount(description.at(chosen)).tolist(), reverse=True)
    assert sorted((int(row.split(" | ")[2]) for row in rows), reverse=True) == sizes
    assert {row.count(" | ") for row in rows} == {head.count(" | ")}


def test_the_command_puts_texts_in_the_page(tmp_path):
    from mc2core.app.cli import main

    made = corpus()
    made._documents = made.documents.assign(text=[f"text of {j}" for j in range(60)])
    posterior = dataclasses.replace(gibbs(made))
    made.save(tmp_path / "corpus")
    posterior.save(tmp_path / "posterior.npz")
    files = [str(tmp_path / name) for name in ("posterior.npz", "corpus")]
    for options, is_there in (([], False), (["--texts", "text"], True)):
        mc2(["describe", *files, *options, "--out", tmp_path / "out"])
        assert ("text of 17" in (tmp_path / "out/index.html").read_text(encoding="utf-8")) == is_there
    assert main(["describe", *files, "--texts", "nowhere", "--out", str(tmp_path / "out")]) == 2
    assert isinstance(made, Corpus)
