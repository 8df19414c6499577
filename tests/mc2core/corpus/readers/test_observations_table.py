"""Tables with an observation to a row: what is read, and bad rows named."""

import json
import re

import numpy as np
import pytest
from helpers.commands import mc2

from mc2core import Corpus
from mc2core.corpus.readers.reading import read_own

ROWS = """school,maths,size,region,reading,head
B,3,200,north; coast,4,Ann
A,1.5,90,south,2,Bob
B,5,200,north; coast,6,Ann
A,-1,90,south,0,Bob
C,7,,,8,Cy
"""
SETTINGS = {
    "document": "school",
    "observations": "maths,reading",
    "contexts": ["size:number", "region:bag"],
    "keep": ["head"],
}


def read(tmp_path, rows, name="points.csv", **settings):
    path = tmp_path / name
    path.write_text(rows, encoding="utf-8")
    return read_own(path, SETTINGS | settings)[0]


def test_rows_are_observations_of_their_documents(tmp_path):
    corpus = read(tmp_path, ROWS)
    assert corpus.is_of_observations
    assert corpus.vocabulary == ["maths", "reading"]
    np.testing.assert_array_equal(corpus.observations, [[3, 4], [5, 6], [1.5, 2], [-1, 0], [7, 8]])
    np.testing.assert_array_equal(corpus.document_lengths, [2, 2, 1])
    np.testing.assert_array_equal(corpus.contexts["size"], [200, 90, np.nan])
    assert corpus.context_names["region"] == ["coast", "north", "south"]
    np.testing.assert_array_equal(corpus.contexts["region"].toarray(), [[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert corpus.documents["school"].tolist() == ["B", "A", "C"]
    assert corpus.documents["head"].tolist() == ["Ann", "Bob", "Cy"]


def test_codes_are_missing_in_the_contexts_of_documents(tmp_path):
    """Each document counts once, though its rows repeat them."""
    rows = ROWS.replace("200,north; coast", "-99,NA; coast")
    (tmp_path / "points.csv").write_text(rows, encoding="utf-8")
    corpus, dropped = read_own(tmp_path / "points.csv", SETTINGS | {"missing": ["-99"]})
    np.testing.assert_array_equal(corpus.contexts["size"], [np.nan, 90, np.nan])
    assert corpus.context_names["region"] == ["coast", "south"]
    assert sorted(map(str, dropped)) == [
        "1 value of 'region': read as missing: 'NA' (1)",
        "1 value of 'size': read as missing: '-99' (1)",
    ]


def test_other_tables_are_read_alike(tmp_path):
    lines = [line.split(",") for line in ROWS.splitlines()]
    records = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    numbers = [record | {one: float(record[one]) for one in ("maths", "reading")} for record in records]
    text = "".join(json.dumps(record) + "\n" for record in numbers)
    other, first = read(tmp_path, text, "points.jsonl"), read(tmp_path, ROWS)
    assert other.digest == first.digest
    comma = read(tmp_path, ROWS.replace("; coast", "").replace(",", ";").replace("1.5", "1,5"))
    np.testing.assert_array_equal(comma.observations, first.observations)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("B,5,", "B,,", "line 4, column 'maths': it is missing; every number of an observation is needed"),
        ("B,5,", "B,five,", "line 4, column 'maths': found 'five'; a finite number"),
        ("B,5,", "B,inf,", "line 4, column 'maths': found 'inf'; a finite number"),
        ("B,5,", ",5,", "line 4, column 'school': it names no document"),
        ("B,5,", "B\x00,5,", "line 4, column 'school': found 'B\\x00'; text has no control characters"),
        ("5,200", "5,201", "line 4 'size' is '201', but '200' in line 2, of the same document"),
        ("A,1.5,90", "A,1.5,many", "line 3, column 'size': found 'many'"),
        ("B,5,", "B,-99.0,", "line 4, column 'maths': it is missing; every number of an observation is needed"),
        ("B,5,", "unknown,5,", "line 4, column 'school': it names no document"),
        ("B,5,200,", "B,5,", "line 4 has 5 fields, but the header has 6"),
    ],
)
def test_bad_rows_are_named(tmp_path, old, new, said):
    text = ROWS.replace(old, new)
    if "many" in new:
        text = text.replace("-1,90", "-1,many")
    with pytest.raises(ValueError, match=r"points\.csv, ") as caught:
        read(tmp_path, text, missing="unknown,-99")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        ("counts", "3,200", "3.5,200", "line 2, column 'maths': found '3.5'; counts are whole numbers of at least 0"),
        ("counts", "3,200", "-3,200", "line 2, column 'maths': found '-3'; counts are whole numbers of at least 0"),
        ("binary", "0,8", "2,8", "line 3, column 'maths': found '2'; of the kind 'binary' values are 0 or 1"),
    ],
)
def test_observations_are_of_the_kind_that_is_told(tmp_path, kind, old, new, said):
    rows = "school,maths,size\nA,3,200\nA,0,200\n" if kind == "counts" else "school,maths,size\nA,1,8\nA,0,8\n"
    told = {"document": "school", "observations": "maths", "kind": kind, "keep": None, "contexts": []}
    corpus = read(tmp_path, rows, **told)
    assert corpus.content_kind == kind
    np.testing.assert_array_equal(corpus.observations, [[3], [0]] if kind == "counts" else [[1], [0]])
    with pytest.raises(ValueError, match=re.escape(said)):
        read(tmp_path, rows.replace(old, new), **told)


def test_bad_rows_may_be_left_out(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(ROWS.replace("B,5,", "B,,"), encoding="utf-8")
    corpus, dropped = read_own(path, SETTINGS | {"skip_bad": 1})
    assert len(corpus.observations) == 4
    assert str(dropped[0]) == "1 observation: bad rows"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"observations": ""}, "give both --document COLUMN and --observations COLUMN,... (one"),
        ({"document": None}, "give both --document COLUMN and --observations COLUMN,... (one"),
        ({"observations": "maths,,reading"}, "give both --document COLUMN and --observations COLUMN,... (one"),
        ({"observations": "maths,maths"}, "--observations names 'maths' twice"),
        ({"observations": "maths,writing"}, "has no column 'writing'"),
        ({"text": "head"}, "'text' cannot be used with"),
        ({"max_features": 3}, "'max_features' cannot be used with"),
        ({"kind": "sums"}, "kind is 'sums'; allowed: numbers, counts, binary"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read(tmp_path, ROWS, **settings)


def test_a_table_without_rows_and_one_that_follows_words(tmp_path):
    with pytest.raises(ValueError, match="has no observation"):
        read(tmp_path, ROWS.splitlines()[0] + "\n")
    like = Corpus([[1, 2]], ["a", "b"])
    with pytest.raises(
        ValueError, match="the corpus has words, but these data are observations; import them without it"
    ):
        read_own(tmp_path / "points.csv", {"document": "school", "observations": "maths"}, like)


@pytest.mark.slow
def test_from_the_shell_to_scores_and_page(tmp_path, capsys, output_of):
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 10.0], [30.0, -20.0]])
    lines = ["school,maths,reading"]
    for i in range(200):
        x, y = centres[int(i % 4 == 0)] + rng.standard_normal(2)
        lines.append(f"S{i % 10},{x:.4f},{y:.4f}")
    (tmp_path / "points.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data, out = str(tmp_path / "data"), tmp_path / "fit"
    told = ["--document", "school", "--observations", "maths,reading"]
    said = output_of(["import", tmp_path / "points.csv", *told, "--out", data])
    assert "| observations | 200 |" in said
    assert "| maths: mean, sd | 7." in said
    assert "word" not in said
    mc2(f"fit {data} --iterations 6 --out {out}")
    capsys.readouterr()
    posterior = str(out / "posterior.npz")
    mc2(f"evaluate {posterior} {data}")
    scores, errors = capsys.readouterr()
    found = json.loads(scores)
    assert (found["documents"], found["observations"]) == (10, 200)
    # at best that of two Gaussians of sd 1, chosen with 3/4 and 1/4; topics are wider, by the prior
    entropy = np.log(2 * np.pi * np.e) - 0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert -entropy - 1.0 < found["log_density"]["left_to_right"] < -entropy + 0.15
    assert "held-out documents have a lower log density" in errors
    mc2(f"clusters {posterior} {data}")
    assert capsys.readouterr().out.startswith("document,cluster,cluster_name,probability,document_school\n1,")
    mc2(f"describe {posterior} {data} --out {tmp_path}/page")
    assert "S3" in (tmp_path / "page/documents.csv").read_text()
