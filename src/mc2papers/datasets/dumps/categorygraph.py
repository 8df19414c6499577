"""Find top-level categories of Wikipedia articles in the graph of categories (De Vries et al. 2010, INEX XML mining).

The subcategories of one root, usually "Main topic classifications", are the top-level categories. An article belongs to
the top-level categories that are nearest to its own categories, by the number of steps up the graph. Several top-level
categories may be equally near.

The graph comes from SQL dumps. ``categorylinks`` has the categories of each page: newer dumps have their numbers
(``cl_target_id``, which is ``lt_id`` in the dump ``linktarget``), older dumps their names (``cl_to``). The names of
category pages are in ``category_pages.npz`` of the shards.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mc2core.base import storage, xmlstream
from mc2core.base.xmlstream import DamagedInput
from mc2papers.datasets.dumps import shards, wikitext

CATEGORY_NAMESPACE = 14
_MAX_LINE_BYTES = 64 * 2**20
_COLUMN = re.compile(rb"\s+`([a-z_]+)` ")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"Z": b"\x1a"}


def sql_rows(path: str | os.PathLike[str], table: str, columns: Sequence[str]) -> Iterator[tuple[bytes, ...]]:
    """Yield the unescaped values of the given columns for each row of a MediaWiki SQL dump (gz or plain).

    A pattern made from the CREATE TABLE statement reads the rows; no statement is executed.

    Raises
    ------
    DamagedInput
        If the dump is cut off, has another table, lacks a column, or has an invalid row; the message has the line and
        its content.
    """
    path = Path(path)
    known: list[str] = []
    row: re.Pattern[bytes] | None = None
    places: list[int] = []
    insert = f"INSERT INTO `{table}` VALUES ".encode()
    complete = False
    for number, line in enumerate(_lines(path), start=1):
        if row is None and (match := _COLUMN.match(line)):
            known.append(match[1].decode())
        elif row is None and line.startswith(b") ENGINE"):
            missing = [name for name in columns if name not in known]
            if missing:
                raise DamagedInput(f"{path}: table {table!r} has no column {missing[0]!r}; it has {', '.join(known)}")
            value = rb"(NULL|-?[0-9.]+|'(?:[^'\\]|\\.)*+')"
            row = re.compile(rb"\(" + rb",".join([value] * len(known)) + rb"\)([,;])", re.DOTALL)
            places = [known.index(name) + 1 for name in columns]
        elif line.startswith(b"INSERT INTO"):
            if row is None or not line.startswith(insert):
                raise DamagedInput(f"{path}, line {number} is not of the table {table!r}: {line[:60]!r}")
            position = len(insert)
            while position < len(line):
                match = row.match(line, position)
                if match is None:
                    found = line[position : position + 60]
                    raise DamagedInput(f"{path}, line {number}, byte {position}: {found!r} is no row of {table!r}")
                yield tuple(_value(match[place]) for place in places)
                position = match.end()
                if match[len(known) + 1] == b";":
                    break
        complete = complete or line.startswith(b"-- Dump completed")
    if row is None:
        raise DamagedInput(f"{path} does not create the table {table!r}")
    if not complete:
        raise DamagedInput(f"{path} is cut off: the line '-- Dump completed' is missing")


def _lines(path: Path) -> Iterator[bytes]:
    rest = b""
    for block in xmlstream.blocks(path, text=True):
        if b"\n" not in block:
            rest += block
            if len(rest) > _MAX_LINE_BYTES:
                raise DamagedInput(f"{path} has a line of more than {_MAX_LINE_BYTES} bytes")
            continue
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _value(value: bytes) -> bytes:
    if not value.startswith(b"'"):
        return value
    if b"\\" not in value:
        return value[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), value[1:-1])


def _naming_column(path: Path) -> str:
    """Return the column of categorylinks with the category: its number or, in older dumps, its name."""
    head = itertools.takewhile(lambda line: not line.startswith(b") ENGINE"), _lines(path))
    return "cl_target_id" if any(b"`cl_target_id`" in line for line in head) else "cl_to"


def read_targets(path: str | os.PathLike[str]) -> dict[int, str]:
    """Return the names of categories by ``lt_id`` from the dump ``linktarget``."""
    return {
        int(key): wikitext.category_name(title.decode("utf-8", "replace"))
        for key, namespace, title in sql_rows(path, "linktarget", ("lt_id", "lt_namespace", "lt_title"))
        if int(namespace) == CATEGORY_NAMESPACE
    }


def category_pages(folders: Iterable[str | os.PathLike[str]]) -> dict[int, str]:
    """Return the names of categories by page id from shards of Wikipedia."""
    names: dict[int, str] = {}
    for folder in shards.ordered(folders):
        arrays = storage.read_arrays(folder / "category_pages.npz")
        names.update(zip(arrays["id"].tolist(), shards.unpack_lines(arrays["title"]), strict=True))
    return names


def read_links(
    path: str | os.PathLike[str], pages: Mapping[int, str], targets: Mapping[int, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (subcategory, category) for each link between categories; links of unknown pages or targets are skipped.

    Raises ValueError if the dump has numbers of categories and ``targets`` is missing.
    """
    column = _naming_column(Path(path))
    if column == "cl_target_id" and targets is None:
        raise ValueError(f"{path} names categories by number: the dump linktarget is needed too")
    for page, kind, target in sql_rows(path, "categorylinks", ("cl_from", "cl_type", column)):
        if kind != b"subcat":
            continue
        child = pages.get(int(page))
        if column == "cl_target_id":
            parent = (targets or {}).get(int(target))
        else:
            parent = wikitext.category_name(target.decode("utf-8", "replace"))
        if child is not None and parent is not None and child != parent:
            yield child, parent


Nearest = tuple[int, frozenset[int]]


def nearest_tops(links: Iterable[tuple[str, str]], root: str) -> tuple[list[str], dict[str, Nearest]]:
    """Return the top-level categories below ``root`` and, for each category, the steps to its nearest ones and these.

    The search is breadth first from all top-level categories at once. A category that is first reached at step d gets
    the top-level categories of all its parents that were reached at step d - 1. Paths through the root are not used.
    Cycles, which are frequent, have no effect.

    Raises ValueError if the root has no subcategories.
    """
    children: dict[str, set[str]] = {}
    for child, parent in links:
        children.setdefault(parent, set()).add(child)
    tops = sorted(children.get(root, ()))
    if not tops:
        raise ValueError(f"the category {root!r} has no subcategories in the graph")
    found: dict[str, Nearest] = {root: (0, frozenset())}
    level: dict[str, frozenset[int]] = {top: frozenset([m]) for m, top in enumerate(tops)}
    steps = 0
    while level:
        found.update({name: (steps, nearest) for name, nearest in level.items()})
        below: dict[str, set[int]] = {}
        for name, nearest in level.items():
            for child in children.get(name, ()):
                if child not in found:
                    below.setdefault(child, set()).update(nearest)
        level, steps = {name: frozenset(nearest) for name, nearest in below.items()}, steps + 1
    del found[root]
    return tops, found


def add_topics(gathered: shards.Gathered, tops: Sequence[str], found: Mapping[str, Nearest]) -> None:
    """Add the context ``topic`` in place: the top-level categories that are nearest to the categories of an article."""
    matrix, names = gathered.members["category"]
    rows: list[list[str]] = []
    for j in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]
        reached = [found[names[column]] for column in columns if names[column] in found]
        least = min((steps for steps, _ in reached), default=0)
        rows.append([tops[m] for m in sorted({m for steps, nearest in reached if steps == least for m in nearest})])
    gathered.members["topic"] = shards.membership(rows)
