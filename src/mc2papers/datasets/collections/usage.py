"""Read a usage log of an application, in the same form as AUA of UAI16, which is not public.

A folder has up to three tables, each as CSV, TSV, Parquet or JSON Lines:

* ``functions`` has the columns user, function and count. A user is a document, and a function is a word. Counts of the
  same user and function are added.
* ``products`` (optional) has the columns user and product. The products that a user has are the context ``product``;
  each product counts once.
* ``paid`` (optional) has the columns user and paid. The values of paid ("yes", "monthly", ...) are the labels.
"""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import shown
from mc2core.base.records import ENDINGS, read_rows
from mc2core.corpus import Corpus
from mc2core.corpus.building.counts import MAX_COUNT, Dropped


def read(folder: str | os.PathLike[str]) -> tuple[Corpus, list[Dropped]]:
    """Read a folder of tables.

    Returns
    -------
    corpus : users (``documents["user"]``), functions and products are in alphabetical order.
    dropped : number of rows of users who are not in ``functions``.

    Raises
    ------
    ValueError
        If a table is missing or occurs twice, if a user or name is empty, if a count is not a whole number of at least
        0, or if a user has two values or no value in ``paid``. The message has the file, line and column.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder with the tables functions, products and paid")
    path = _table(folder, "functions")
    if path is None:
        raise ValueError(f"{folder} has no table functions ({', '.join('functions' + ending for ending in ENDINGS)})")
    content, users, functions = _read_counts(path)
    row_of = {user: row for row, user in enumerate(users)}
    contexts: dict[str, sp.csr_matrix] = {}
    context_names: dict[str, list[str]] = {}
    labels, label_names, unknown = None, None, {}
    if path := _table(folder, "products"):
        contexts["product"], context_names["product"], unknown["products"] = _read_products(path, row_of)
    if path := _table(folder, "paid"):
        labels, label_names, unknown["paid"] = _read_paid(path, row_of, users)
    why = "the user is not in the table 'functions'"
    return Corpus(
        content,
        functions,
        contexts=contexts,
        labels=labels,
        documents=pd.DataFrame({"user": users}),
        context_names=context_names,
        label_names=label_names,
    ), [Dropped(f"rows of {name}", number, why) for name, number in unknown.items() if number]


def _table(folder: Path, name: str) -> Path | None:
    found = [folder / (name + ending) for ending in ENDINGS if (folder / (name + ending)).is_file()]
    if len(found) > 1:
        raise ValueError(f"{folder} has the table {name} twice: {found[0].name} and {found[1].name}")
    return found[0] if found else None


class _Names:
    """Number names in the order of their appearance, and renumber them in alphabetical order at the end."""

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        self.number_of: dict[str, int] = {}
        self._seen: dict[str, int] = {}  # number by the text in the file, so that each text is checked only once

    def number(self, line: int, value: Any) -> int:
        """Return the number of a name. Raises ValueError if the value is not a name."""
        if type(value) is str and (known := self._seen.get(value)) is not None:
            return known
        name = _name(self._path, line, self._column, value)
        number = self.number_of.setdefault(name, len(self.number_of))
        if type(value) is str:
            self._seen[value] = number
        return number

    def finish(self) -> tuple[list[str], np.ndarray]:
        """Return the names in alphabetical order, and an array with the new number of each old number."""
        names = sorted(self.number_of)
        rank = np.empty(len(names), dtype=np.int64)
        rank[[self.number_of[name] for name in names]] = np.arange(len(names))
        return names, rank


def _read_counts(path: Path) -> tuple[sp.csr_matrix, list[str], list[str]]:
    users, functions = _Names(path, "user"), _Names(path, "function")
    rows, columns, counts = array("q"), array("q"), array("q")
    for line, (user, function, count) in read_rows(path, ["user", "function", "count"]):
        rows.append(users.number(line, user))
        columns.append(functions.number(line, function))
        counts.append(_count(path, line, count))
    if not rows:
        raise ValueError(f"{path} has no row")
    user_names, user_rank = users.finish()
    function_names, function_rank = functions.finish()
    content = sp.csr_matrix(
        (np.array(counts), (user_rank[np.array(rows)], function_rank[np.array(columns)])),
        shape=(len(user_names), len(function_names)),
    )
    if content.data.max(initial=0) > MAX_COUNT:
        user = int(np.searchsorted(content.indptr, content.data.argmax(), side="right")) - 1
        raise ValueError(f"{path}: the rows of user {shown(user_names[user])} add up to more than {MAX_COUNT}")
    return content, user_names, function_names


def _read_products(path: Path, row_of: dict[str, int]) -> tuple[sp.csr_matrix, list[str], int]:
    products, n_unknown = _Names(path, "product"), 0
    rows, columns = array("q"), array("q")
    for line, (user, product) in read_rows(path, ["user", "product"]):
        row = row_of.get(_name(path, line, "user", user), -1)
        if row < 0:
            n_unknown += 1
        else:
            rows.append(row)
            columns.append(products.number(line, product))
    names, rank = products.finish()
    owned = sp.csr_matrix(
        (np.ones(len(rows), np.int32), (np.array(rows, np.int64), rank[np.array(columns, np.int64)])),
        shape=(len(row_of), len(names)),
    )
    owned.sum_duplicates()
    owned.data[:] = 1
    return owned, names, n_unknown


def _read_paid(path: Path, row_of: dict[str, int], users: list[str]) -> tuple[np.ndarray, list[str], int]:
    paid: list[str | None] = [None] * len(users)
    n_unknown = 0
    for line, (user, value) in read_rows(path, ["user", "paid"]):
        row = row_of.get(_name(path, line, "user", user), -1)
        name = _name(path, line, "paid", value)
        if row < 0:
            n_unknown += 1
        elif paid[row] is not None:
            raise ValueError(f"{path}, line {line} gives the user {shown(users[row])} a second value of 'paid'")
        else:
            paid[row] = name
    values = [value for value in paid if value is not None]
    if len(values) < len(users):
        raise ValueError(
            f"{path} has no row for {len(users) - len(values)} of {len(users)} users, such as "
            f"{shown(users[paid.index(None)])}; each user needs a value"
        )
    names, label = np.unique(values, return_inverse=True)
    return label, names.tolist(), n_unknown


def _name(path: Path, line: int, column: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    name = " ".join(value.split()) if isinstance(value, str) else ""
    if not name or not name.isprintable():
        raise ValueError(f"{path}, line {line}, column {column!r}: found {shown(value)}; a name or a number is needed")
    return name


def _count(path: Path, line: int, value: Any) -> int:
    if type(value) is str:
        digits = value.strip()
        count = int(digits) if digits.isdecimal() and len(digits) < 12 else -1
    else:
        try:
            count = int(value) if value == int(value) else -1  # Parquet and JSON may hold 2.0
        except (TypeError, ValueError, OverflowError):
            count = -1
    if isinstance(value, bool) or not 0 <= count <= MAX_COUNT:
        raise ValueError(
            f"{path}, line {line}, column 'count': found {shown(value)}; a whole number from 0 to {MAX_COUNT} is needed"
        )
    return count
