"""Reading of tables with one observation per row. A row has the name of a document and numbers of the observation."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mc2core.base.checks import choice, shown
from mc2core.base.faults import place_text
from mc2core.base.records import has_decimal_commas, rows_or_faults
from mc2core.corpus import Corpus
from mc2core.corpus.building.cells import Missing, is_missing, parse_number, plain_text
from mc2core.corpus.building.columns import Layout
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.rows import BadRows, corpus_of_rows, gather
from mc2core.corpus.building.settings import complete, layout_of
from mc2core.corpus.checks import CONTENT_KINDS, not_of_kind


def read(path: Path, settings: Mapping[str, Any], bad: BadRows) -> tuple[Corpus, list[Dropped]]:
    """Return a corpus of observations, with documents in the order of their first rows, and the parts left out.

    The table of documents has the name of each document. Contexts, labels and kept columns must be equal in all rows of
    a document. ``settings`` is as in :func:`mc2core.corpus.readers.reading.read_own`; ``bad`` collects bad rows.

    Raises ValueError if the column of documents or of observations is missing or given twice, if a row lacks its
    document or a number, if a number has the wrong kind, or if a row contradicts an earlier row of its document.
    """
    setting, document = settings.get("observations", ()), settings.get("document")
    numbers = [name.strip() for name in setting.split(",")] if isinstance(setting, str) else list(setting)
    if not (numbers and all(numbers) and document):
        raise ValueError("give both --document COLUMN and --observations COLUMN,... (one observation per row)")
    for index, name in enumerate(numbers):
        if name in numbers[:index]:
            raise ValueError(f"--observations names {name!r} twice")
    kind = choice("kind", settings.get("kind", "numbers"), CONTENT_KINDS)
    shared = "contexts", "separators", "date_format", "missing", "labels", "keep", "rare"
    shared_settings = {name: settings[name] for name in shared if name in settings}
    # documents are read like other tables: the name of a document is its only word and its id
    layout = layout_of(complete({"bag": document, "id": document, **shared_settings}))
    collector = _Collector([column for column in layout.columns if column != document])
    number = partial(_number, missing=layout.missing, kind=kind, decimal_comma=has_decimal_commas(path))
    columns = [_Column(document, partial(_name, missing=layout.missing)), *(_Column(name, number) for name in numbers)]
    columns += [_Column(name, lambda cell, place: cell) for name in collector.columns]
    rows = rows_or_faults(path, [one.column for one in columns])
    n_rows = gather(rows, columns, partial(collector.add, len(numbers)), bad, "observations")
    bad.check(str(path), n_rows)
    if not collector.of:
        raise ValueError(f"{path} has no observation")
    cells, dropped = corpus_of_rows(
        Corpus, str(path), collector.rows(layout), layout, decimal_comma=has_decimal_commas(path)
    )
    if bad.number:
        dropped = [Dropped("observations", bad.number, "bad rows"), *dropped]
    corpus = Corpus.from_observations(
        np.array(collector.values).reshape(-1, len(numbers)), np.array(collector.of), cells.contexts, cells.labels,
        cells.documents, kind=kind, names=numbers, context_names=cells.context_names, label_names=cells.label_names,
    )  # fmt: skip
    return corpus, dropped


class _Collector:
    """Observations so far, and the cells of the first row of each document in the ``columns`` that describe
    documents."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.values, self.of = array("d"), array("q")
        self.first: dict[str, tuple[int, Any, Sequence[Any]]] = {}

    def add(self, n_numbers: int, place: Any, row: Sequence[Any]) -> None:
        """Add a row: document, numbers, and cells of the document.

        Raises ValueError if these cells differ from those in the first row of the document.
        """
        document, values, cells = row[0], row[1 : n_numbers + 1], row[n_numbers + 1 :]
        number, before, earlier_cells = self.first.setdefault(document, (len(self.first), place, cells))
        for column, cell, earlier in zip(self.columns, cells, earlier_cells, strict=True):
            if cell != earlier and not (cell != cell and earlier != earlier):
                raise ValueError(
                    f"{column!r} is {shown(cell)}, but {shown(earlier)} in {place_text(before)}, of the same document"
                )
        self.of.append(number)
        self.values.extend(values)

    def rows(self, layout: Layout) -> Iterator[tuple[Any, Sequence[Any]]]:
        """Yield one row per document, in the order of ``layout.columns``."""
        for name, (_, place, cells) in self.first.items():
            values = dict(zip(self.columns, cells, strict=True))
            yield place, [[name], *(values.get(column, name) for column in layout.columns[1:])]


class _Column(NamedTuple):
    """A column, and the function that parses its cells."""

    column: str
    parse: Callable[[Any, Any], Any]
    remedy: str = ""


def _name(cell: Any, place: Any, missing: Missing) -> str:
    """Return the name of a document in a cell. Raises ValueError if the cell has no name."""
    name = "" if missing.code_of(cell) or is_missing(cell) or isinstance(cell, list | dict) else plain_text(str(cell))
    if not name:
        raise ValueError("it names no document")
    return name


def _number(cell: Any, place: Any, missing: Missing, kind: str, decimal_comma: bool) -> float:
    """Return the number in a cell. Raises ValueError if the number is missing or not of the ``kind``."""
    value = np.nan if missing.code_of(cell) else parse_number(cell, decimal_comma)
    if np.isnan(value) or missing.code_of(value):
        raise ValueError("it is missing; every number of an observation is needed")
    if kind != "numbers":
        wrong, needed = not_of_kind(np.array(value), kind)
        if wrong:
            raise ValueError(f"found {shown(cell)}; {needed}")
    return value
