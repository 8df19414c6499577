"""Tables with an observation to a row: each names its document and has the numbers that take the place of words."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base.checks import choice, shown
from mc2core.base.faults import BadRow, Fault, place_text
from mc2core.base.progress import work
from mc2core.base.records import has_decimal_commas, rows_or_faults
from mc2core.corpus import Corpus
from mc2core.corpus.building.cells import is_missing, parse_number, plain_text
from mc2core.corpus.building.columns import Layout
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.rows import BadRows, corpus_of_rows
from mc2core.corpus.building.settings import complete, layout_of
from mc2core.corpus.checks import CONTENT_KINDS, not_of_kind


def read(path: Path, settings: Mapping[str, Any], bad: BadRows) -> tuple[Corpus, list[Dropped]]:
    """Documents in the order of their first rows, with the column ``document`` among what is known of them.

    Contexts, labels and kept columns are of documents: all rows of one have the same. ``settings`` are those of
    :func:`mc2core.corpus.readers.reading.read_own`; ``bad`` takes up the bad rows.

    ValueError: no column of documents or of observations, or one that is named twice, and rows without a document or a
    number, with a number that is not of the kind, or with something else of their document than the rows before.
    """
    given, document = settings.get("observations", ()), settings.get("document")
    numbers = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if not (numbers and all(numbers) and document):
        raise ValueError("--document COLUMN and --observations COLUMN,... go together, for a row to each observation")
    for place, name in enumerate(numbers):
        if name in numbers[:place]:
            raise ValueError(f"--observations names {name!r} twice")
    kind = choice("kind", settings.get("kind", "numbers"), CONTENT_KINDS)
    known = {name: settings[name] for name in ("contexts", "separators", "date_format", "labels", "keep", "rare")
             if name in settings}  # fmt: skip
    # the rows of documents go the way of all tables: the name of each is its only word, and its id
    layout = layout_of(complete({"bag": document, "id": document, **known}))
    seen = _Seen([column for column in layout.columns if column != document])
    rows = rows_or_faults(path, [document, *numbers, *seen.columns])
    n_rows = _gather(rows, numbers, kind, seen, bad, has_decimal_commas(path))
    bad.check(str(path), n_rows)
    if not seen.of:
        raise ValueError(f"{path} has no observation")
    found, dropped = corpus_of_rows(
        Corpus, str(path), seen.rows(layout), layout, decimal_comma=has_decimal_commas(path)
    )
    if bad.number:
        dropped = [Dropped("observations", bad.number, "bad rows"), *dropped]
    corpus = Corpus.from_observations(
        np.array(seen.values).reshape(-1, len(numbers)), np.array(seen.of), found.contexts, found.labels,
        found.documents, kind=kind, names=numbers, context_names=found.context_names, label_names=found.label_names,
    )  # fmt: skip
    return corpus, dropped


class _Seen:
    """Observations, and what the first row of each document holds in the ``columns`` that are of documents."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.values, self.of = array("d"), array("q")
        self.first: dict[str, tuple[int, Any, Sequence[Any]]] = {}

    def add(self, document: str, values: list[float], place: Any, cells: Sequence[Any]) -> None:
        """ValueError where ``cells`` of the document's own are not those of its first row."""
        number, before, known = self.first.setdefault(document, (len(self.first), place, cells))
        for column, cell, other in zip(self.columns, cells, known, strict=True):
            if cell != other and not (cell != cell and other != other):
                raise ValueError(
                    f"{column!r} is {shown(cell)}, but {shown(other)} in {place_text(before)}, of the same document"
                )
        self.of.append(number)
        self.values.extend(values)

    def rows(self, layout: Layout) -> Iterator[tuple[Any, Sequence[Any]]]:
        """A row for each document, in the order of ``layout.columns``."""
        for name, (_, place, cells) in self.first.items():
            own = dict(zip(self.columns, cells, strict=True))
            yield place, [[name], *(own.get(column, name) for column in layout.columns[1:])]


def _gather(rows: Any, numbers: Sequence[str], kind: str, seen: _Seen, bad: BadRows, decimal_comma: bool) -> int:
    """Put every good row into ``seen``; the number of rows."""
    n_rows = 0
    with work("reading observations", unit="observations") as told:
        for place, cells in rows:
            n_rows += 1
            told.advance()
            if isinstance(cells, Fault):
                bad.add([BadRow(place, None, *cells)])
                continue
            faults, values = [], []
            for column, cell in zip(numbers, cells[1:], strict=False):
                try:
                    values.append(_number(cell, decimal_comma))
                except ValueError as error:
                    faults.append(BadRow(place, column, str(error), ""))
            if kind != "numbers" and not faults:
                wrong, needed = not_of_kind(np.array(values), kind)
                faults = [
                    BadRow(place, column, f"found {shown(cell)}", needed)
                    for column, cell in compress(zip(numbers, cells[1:], strict=False), wrong)
                ]
            document = ""
            try:
                if not (is_missing(cells[0]) or isinstance(cells[0], list | dict)):
                    document = plain_text(str(cells[0]))
                if not document:
                    faults.append(BadRow(place, None, "names no document", ""))
            except ValueError as error:
                faults.append(BadRow(place, None, str(error), ""))
            if not faults:
                try:
                    seen.add(document, values, place, cells[len(numbers) + 1 :])
                except ValueError as error:
                    faults.append(BadRow(place, None, str(error), ""))
            if faults:
                bad.add(faults)
    return n_rows


def _number(cell: Any, decimal_comma: bool) -> float:
    """ValueError for a missing one."""
    value = parse_number(cell, decimal_comma)
    if np.isnan(value):
        raise ValueError("it is missing; every number of an observation is needed")
    return value
