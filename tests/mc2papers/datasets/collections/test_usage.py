"""Usage logs: what is written as CSV, Parquet or JSON Lines is read, and bad rows are named."""

import csv
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2papers.datasets.collections import usage

USERS, FUNCTIONS, PRODUCTS = ("ann", "bob", "cy"), ("crop", "fill", "undo"), ("draw", "film")


def write(folder, name, suffix, columns, rows):
    path = folder / f"{name}{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table({column: [row[i] for row in rows] for i, column in enumerate(columns)}), path)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([columns, *rows])
    return path


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(USERS), st.sampled_from(FUNCTIONS), st.integers(1, 50)), min_size=1, max_size=15
    ),
    owned=st.lists(st.tuples(st.sampled_from((*USERS, "stranger")), st.sampled_from(PRODUCTS)), min_size=1, max_size=8),
    suffix=st.sampled_from([".csv", ".parquet", ".jsonl"]),
)
def test_what_is_written_is_read(tmp_path_factory, rows, owned, suffix):
    folder = tmp_path_factory.mktemp("usage")
    users = sorted({user for user, _, _ in rows})
    write(folder, "functions", suffix, ("user", "function", "count"), rows)
    write(folder, "products", suffix, ("user", "product"), owned)
    write(folder, "paid", suffix, ("user", "paid"), [(user, "yes" if user == "bob" else "no") for user in USERS])
    corpus, dropped = usage.read(folder)
    assert list(corpus.documents["user"]) == users
    for user, counts in zip(users, corpus.content.toarray(), strict=True):
        for function, count in zip(corpus.vocabulary, counts, strict=True):
            assert count == sum(n for one, what, n in rows if (one, what) == (user, function))
    names = corpus.context_names["product"]
    for user, row in zip(users, corpus.contexts["product"].toarray(), strict=True):
        assert {name for name, n in zip(names, row, strict=True) if n == 1} == {
            what for one, what in owned if one == user
        }
        assert row.max(initial=0) <= 1
    assert [corpus.label_names[label] for label in corpus.labels] == [
        "yes" if user == "bob" else "no" for user in users
    ]
    unknown = {"rows of products": sum(user not in users for user, _ in owned), "rows of paid": len(USERS) - len(users)}
    assert {one.what: one.number for one in dropped} == {what: n for what, n in unknown.items() if n}


def test_functions_alone_are_enough(tmp_path):
    write(tmp_path, "functions", ".csv", ("count", "user", "function"), [(2, "ann", "crop"), (0, "bob", "crop")])
    corpus, dropped = usage.read(tmp_path)
    assert corpus.content.toarray().tolist() == [[2], [0]]
    assert (corpus.contexts, corpus.labels, dropped) == ({}, None, [])


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        (
            "functions",
            ("ann", "crop", "many"),
            "functions.csv, line 3, column 'count': found 'many'; a whole number from 0",
        ),
        ("functions", ("ann", "crop", "-1"), "line 3, column 'count': found '-1'"),
        ("functions", ("ann", "crop", "1.5"), "line 3, column 'count': found '1.5'"),
        ("functions", ("ann", "crop", "9" * 5000), "line 3, column 'count': found '999"),
        ("functions", ("ann", "crop", str(2**31 - 1)), "the rows of user 'ann' add up to more than 2147483647"),
        ("functions", (" ", "crop", "1"), "line 3, column 'user': found ' '; a name or a number is needed"),
        ("functions", ("ann", "a\x00b", "1"), "line 3, column 'function': found 'a\\x00b'"),
        ("products", ("ann", ""), "products.csv, line 3, column 'product': found ''"),
        ("paid", ("ann", "no"), "paid.csv, line 3 gives the user 'ann' a second value of 'paid'"),
    ],
)
def test_a_bad_row_is_named(tmp_path, name, row, message):
    tables = {
        "functions": (("user", "function", "count"), [("ann", "crop", "1")]),
        "products": (("user", "product"), [("ann", "draw")]),
        "paid": (("user", "paid"), [("ann", "yes")]),
    }
    tables[name][1].append(row)
    for one, (columns, rows) in tables.items():
        write(tmp_path, one, ".csv", columns, rows)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        usage.read(tmp_path)
    assert len(str(caught.value)) < 400


def test_counts_of_parquet_are_checked(tmp_path):
    for count in (1.5, float("nan"), float("inf"), -1, True, None):
        write(tmp_path, "functions", ".parquet", ("user", "function", "count"), [("ann", "crop", count)])
        with pytest.raises(ValueError, match=r"functions\.parquet, line 1, column 'count': found"):
            usage.read(tmp_path)
    write(tmp_path, "functions", ".parquet", ("user", "function", "count"), [(7, "crop", 2.0)])
    assert usage.read(tmp_path)[0].n_tokens == 2


def test_tables_that_lack_or_come_twice(tmp_path):
    with pytest.raises(ValueError, match="is not a folder with the tables"):
        usage.read(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"has no table functions \(functions\.jsonl, "):
        usage.read(tmp_path)
    write(tmp_path, "functions", ".csv", ("user", "function", "count"), [])
    with pytest.raises(ValueError, match=r"functions\.csv has no row"):
        usage.read(tmp_path)
    write(tmp_path, "functions", ".csv", ("user", "function", "count"), [("ann", "crop", 1), ("bob", "crop", 1)])
    write(tmp_path, "paid", ".csv", ("user", "paid"), [("ann", "yes")])
    with pytest.raises(ValueError, match=r"paid\.csv has no row for 1 of 2 users, such as 'bob'; each user needs"):
        usage.read(tmp_path)
    write(tmp_path, "paid", ".jsonl", ("user", "paid"), [("ann", "yes")])
    with pytest.raises(ValueError, match=r"has the table paid twice: paid\.jsonl and paid\.csv"):
        usage.read(tmp_path)
