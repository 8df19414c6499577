"""Wikipedia's graph of categories: SQL dumps, nearest top-level categories, dumps gone wrong."""

import bz2
import gzip
import itertools
import re
from collections import defaultdict

import numpy as np
import pytest
from helpers.paths import DATA_FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2papers.datasets.dumps import categorygraph, shards, wikipedia

LINKS = DATA_FOLDER / "wikipedia/aawiki-20260101-categorylinks.sql.gz"


def quoted(value):
    if isinstance(value, int):
        return str(value)
    for sign, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ('"', '\\"'), ("\0", "\\0")):
        value = value.replace(sign, escaped)
    return f"'{value}'"


def sql(path, table, columns, rows, per_line=2, end="-- Dump completed on 2026-01-01\n"):
    lines = [f"CREATE TABLE `{table}` (", *(f"  `{name}` int NOT NULL," for name in columns), "  PRIMARY KEY (`x`)"]
    lines.append(") ENGINE=InnoDB;")
    for first in range(0, len(rows), per_line):
        values = ",".join(f"({','.join(map(quoted, row))})" for row in rows[first : first + per_line])
        lines.append(f"INSERT INTO `{table}` VALUES {values};")
    path.write_bytes(gzip.compress("\n".join([*lines, end]).encode()))
    return path


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 10**9), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))))
def test_rows_are_read_as_written(tmp_path_factory, rows):
    path = sql(tmp_path_factory.mktemp("sql") / "t.sql.gz", "t", ["a", "b"], rows)
    found = [(text.decode(), int(number)) for text, number in categorygraph.sql_rows(path, "t", ("b", "a"))]
    assert found == [(text, number) for number, text in rows]


def brute_force(links, root):
    """Every distance by itself: shortest ways up from each category to each top."""
    parents = defaultdict(set)
    for child, parent in links:
        if child != root:
            parents[child].add(parent)
    tops = sorted({child for child, parent in links if parent == root})
    found = {}
    for name in set(itertools.chain.from_iterable(links)) - {root}:
        level, seen, steps = {name}, set(), 0
        while level and name not in found:
            if level & set(tops):
                found[name] = steps, frozenset(tops.index(top) for top in level & set(tops))
            seen |= level
            level, steps = set().union(*(parents[one] for one in level)) - seen - {root}, steps + 1
    return tops, found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from("Rabcdefgh")] * 2).filter(lambda pair: pair[0] != pair[1]), max_size=30))
def test_nearest_tops_by_brute_force(links):
    links = [*links, ("a", "R"), ("b", "R")]
    assert categorygraph.nearest_tops(links, "R") == brute_force(links, "R")


def test_topics_of_articles(tmp_path):
    pages = {101: "Science", 102: "Arts", 103: "Physics", 104: "Film", 105: "Optics", 106: "Loop"}
    numbers = {1: "Main_topics", 2: "Science", 3: "Arts", 4: "Physics", 5: "Optics", 6: "Loop"}
    columns = ["cl_from", "cl_sortkey", "cl_type", "cl_target_id"]
    links = [
        (101, "S", "subcat", 1), (102, "A", "subcat", 1), (103, "P", "subcat", 2), (104, "It's", "subcat", 3),
        (105, "O", "subcat", 4), (105, "O", "subcat", 3), (106, "L", "subcat", 5), (103, "P", "subcat", 6),
        (7, "x", "page", 2), (999, "?", "subcat", 2), (103, "P", "subcat", 77),
    ]  # fmt: skip
    body = "word [[Category:Film]] {}".format
    xml = "<mediawiki>" + "".join(
        f"<page><title>{title}</title><ns>{ns}</ns><id>{key}</id><revision><id>1</id><text>{text}</text></revision></page>"
        for key, title, ns, text in [
            *((key, f"Category:{name}", 14, "") for key, name in pages.items()),
            (1, "One", 0, "word [[Category:Optics]] [[Category:Loop]]"),
            (2, "Two", 0, body("[[Category:Physics]]")),
            (3, "Three", 0, "word [[Category:Unknown]]"),
            (4, "Four", 0, "word [[Category:Physics]]"),
        ]
    )
    (tmp_path / "d.xml.bz2").write_bytes(bz2.compress(f"{xml}</mediawiki>".encode()))
    wikipedia.parse_pages(tmp_path / "d.xml.bz2", tmp_path / "s")
    gathered = shards.gather(shards.choose([tmp_path / "s"]), ["word"])
    assert categorygraph.category_pages([tmp_path / "s"]) == pages
    targets = categorygraph.read_targets(
        sql(tmp_path / "lt.gz", "linktarget", ["lt_id", "lt_namespace", "lt_title"],
            [(key, 14, name) for key, name in numbers.items()] + [(77, 0, "An_article")])
    )  # fmt: skip
    path = sql(tmp_path / "cl.gz", "categorylinks", columns, links)
    tops, found = categorygraph.nearest_tops(categorygraph.read_links(path, pages, targets), "Main topics")
    assert tops == ["Arts", "Science"]
    categorygraph.add_topics(gathered, tops, found)
    # optics is one step below arts, two below science
    assert gathered.members["topic"][0].toarray().tolist() == [[1, 0], [1, 1], [0, 0], [0, 1]]
    named = [(*row[:3], numbers.get(row[3], "Nothing")) for row in links]
    older = sql(tmp_path / "old.gz", "categorylinks", [*columns[:3], "cl_to"], named)
    assert categorygraph.nearest_tops(categorygraph.read_links(older, pages), "Main topics") == (tops, found)
    with pytest.raises(ValueError, match="names categories by number: the dump linktarget is needed"):
        list(categorygraph.read_links(path, pages))
    with pytest.raises(ValueError, match="the category 'Sport' has no subcategories"):
        categorygraph.nearest_tops([("a", "b")], "Sport")


def test_bad_dumps_are_refused(tmp_path):
    good = gzip.decompress(sql(tmp_path / "x.gz", "t", ["a", "b"], [(1, "x"), (2, "y"), (3, "z")]).read_bytes())
    cases = {
        "is cut off: the line": good.replace(b"-- Dump completed", b"--"),
        "does not create the table 't'": b"-- nothing\n",
        "table 't' has no column 'b'; it has a": good.replace(b"  `b` int NOT NULL,\n", b""),
        "is not of the table 't': b\"INSERT INTO `u`": good.replace(b"INSERT INTO `t`", b"INSERT INTO `u`"),
        "byte 23: b\"(1,'x,(2,'y');\" is no row of 't'": good.replace(b"'x')", b"'x"),
        "b\"(3);\" is no row": good.replace(b"(3,'z')", b"(3)"),
        "is an HTML page": b"<html>",
    }  # fmt: skip
    for message, content in cases.items():
        (tmp_path / "bad.sql").write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(message.replace('b"(3);"', "b'(3);'"))):
            list(categorygraph.sql_rows(tmp_path / "bad.sql", "t", ("a", "b")))


@pytest.mark.skipif(not LINKS.is_file(), reason=f"the real dump {LINKS} is not there (set MC2_DATA_FOLDER)")
def test_real_links():
    rows = list(categorygraph.sql_rows(LINKS, "categorylinks", ("cl_from", "cl_type", "cl_target_id")))
    assert rows[0] == (b"1341", b"page", b"208")
    assert {kind for _, kind, _ in rows} <= {b"page", b"subcat", b"file"}
    assert len(np.unique([int(page) for page, _, _ in rows])) > 50
