"""Documents from lines of JSON as they come, in the columns of a model: what ``mc2 import --like`` does with a file."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import shown
from mc2core.base.faults import BadRow, Fault
from mc2core.base.pipes import Line
from mc2core.base.records import record_of
from mc2core.corpus import Corpus
from mc2core.corpus.building.cells import parse_number
from mc2core.corpus.building.columns import CONTENT_KINDS, POOLED, Bags, Layout, Texts, number_parser
from mc2core.corpus.building.counts import damped
from mc2core.corpus.building.settings import TABLE, complete, layout_of, parse_contexts
from mc2core.corpus.building.tokens import Tokeniser
from mc2core.corpus.following import Followed, Pattern, follow, pattern_of

# runs of letters, and what words they hold, that are remembered
_REMEMBERED = 1 << 14


class Documents(NamedTuple):
    """Some lines as documents.

    ``corpus`` is of those that could be read, None where there are none, ``lines`` and ``ids`` hold the number of each
    and its id (None where it has none), ``bad`` what is wrong with the others.
    """

    corpus: Corpus | None
    lines: list[int]
    ids: list[Any]
    bad: list[BadRow]


class LineReader:
    """Reads documents for a model.

    Parameters
    ----------
    like : as of :func:`mc2core.corpus.readers.reading.read_own`.
    given : settings "text", "bag", "counts", "contexts" and "id", as there. Where neither they nor the import that the
        model comes from say it, running text stands under "text", if the model's words were made of it, or a bag of
        words under "words", a context under its name, and an id under "id". A vector is a list of numbers
        under its name.

    ValueError: a setting that the model has decided, or words that were made by a function of the user's.
    """

    def __init__(self, like: Followed, given: Mapping[str, Any]) -> None:
        pattern = pattern_of(like)
        layout = _layout(pattern, {name: value for name, value in given.items() if value not in (None, [])})
        self._id = str(given.get("id") or pattern.settings.get("id") or "id")
        self._word_counts = layout.word_counts
        plain = layout.tokeniser.for_contexts()
        self._columns: list[_Names | _Numbers | _Vectors] = [
            _Names(layout, layout.content, layout.content_kind, layout.tokeniser, pattern.words)
        ]
        self._contexts = [*layout.contexts, *pattern.vectors]
        for name, one in layout.contexts.items():
            known = pattern.columns[name]
            self._columns.append(
                _Numbers(one.column, one.kind, layout.date_format)
                if known is None
                else _Names(layout, one.column, one.kind, plain, known, POOLED)
            )
        self._columns += [_Vectors(name, length) for name, length in pattern.vectors.items()]
        content = sp.csr_matrix(([1], ([0], [0])), (1, len(pattern.words)), np.int32)
        contexts = {name: column.gather([column.parse(None)]) for name, column in self._of_contexts()}
        names = {name: known for name, known in pattern.columns.items() if known is not None}
        self._like = Corpus(content, pattern.words, contexts, context_names=names)

    def read(self, lines: Iterable[Line]) -> Documents:
        """Documents of some lines, in their order; blank lines are skipped."""
        found, rows = Documents(None, [], [], []), list[list[Any]]()
        for number, line in lines:
            if isinstance(line, bytes) and not line.strip():
                continue
            record = line if isinstance(line, Fault) else record_of(line, is_first=number == 1)
            if not isinstance(record, Fault) and self._columns[0].name not in record:
                keys = ", ".join(record)[:200]
                record = Fault(f"has no key {self._columns[0].name!r}, where the words stand (keys: {keys!r})")
            if isinstance(record, Fault):
                found.bad.append(BadRow(number, None, *record))
                continue
            row = list[Any]()
            try:
                for column in self._columns:
                    row.append(column.parse(record.get(column.name)))
            except ValueError as error:
                found.bad.append(BadRow(number, self._columns[len(row)].name, str(error)))
                continue
            rows.append(row)
            found.lines.append(number)
            found.ids.append(record.get(self._id))
        if not rows:
            return found
        content = damped(self._columns[0].gather([row[0] for row in rows]), self._word_counts)
        contexts = {
            name: column.gather([row[place] for row in rows])
            for place, (name, column) in enumerate(self._of_contexts(), start=1)
        }
        return found._replace(corpus=self._like.with_documents(content, contexts))

    def without(self, found: Documents, wrong: Mapping[int, tuple[str, str]]) -> Documents:
        """``found`` without documents that are wrong in a context: which and why, by their number; they are bad."""
        if not wrong or found.corpus is None:
            return found
        column = dict(self._of_contexts())
        bad = [BadRow(found.lines[j], column[name].name, why) for j, (name, why) in wrong.items()]
        kept = [j for j in range(len(found.lines)) if j not in wrong]
        return Documents(
            found.corpus.subset(np.array(kept)) if kept else None,
            [found.lines[j] for j in kept],
            [found.ids[j] for j in kept],
            sorted([*found.bad, *bad], key=lambda one: one.place),
        )

    def _of_contexts(self) -> Iterable[tuple[str, _Names | _Numbers | _Vectors]]:
        return zip(self._contexts, self._columns[1:], strict=True)


def _layout(pattern: Pattern, given: Mapping[str, Any]) -> Layout:
    """Where words and contexts stand in a line."""
    known = [*given, *(pattern.settings if pattern.form == TABLE else ())]
    if not any(kind in known for kind in CONTENT_KINDS):
        given = {**given, **({"text": "text"} if "tokeniser" in pattern.settings else {"bag": "words"})}
    settings, _ = follow(replace(pattern, unused={}), TABLE, given)
    told = parse_contexts(settings["contexts"])
    others = [f"{name}={name}:{pattern.kind_of(name)}" for name in pattern.columns if name not in told]
    return layout_of(complete(settings | {"contexts": [*settings["contexts"], *others]}))


class _Numbers:
    """A number or date in each line."""

    def __init__(self, name: str, kind: str, date_format: str | None) -> None:
        self.name, self.parse = name, number_parser(kind, date_format, False)

    def gather(self, cells: Sequence[Any]) -> Any:
        """(J,) float64, NaN where it is missing."""
        return np.array(cells, np.float64)


class _Vectors:
    """A list of numbers in each line."""

    def __init__(self, name: str, length: int) -> None:
        self.name, self._length = name, length

    def parse(self, value: Any) -> list[float]:
        """The numbers of a cell, NaN for null; ValueError where it is no list of so many."""
        if value is None:
            return [np.nan] * self._length
        if not isinstance(value, list) or len(value) != self._length:
            raise ValueError(f"found {shown(value)}; a list of {self._length} numbers, or null, is needed")
        return [parse_number(one) for one in value]

    def gather(self, cells: Sequence[Any]) -> Any:
        """(J, D) float64, NaN where a coordinate is missing."""
        return np.array(cells, np.float64)


class _Names:
    """Words or names in each line; those that are not ``known`` are left out, or counted as ``others`` if that is."""

    def __init__(
        self,
        layout: Layout,
        name: str,
        kind: str,
        tokeniser: Tokeniser,
        known: Sequence[str],
        others: str | None = None,
    ) -> None:
        self.name, self._n_columns = name, len(known)
        self._column_of = {one: column for column, one in enumerate(known)}
        self._other = None if others is None else self._column_of.get(others)
        is_text = kind == "text"
        self._cells = Texts(name, tokeniser) if is_text else Bags(name, kind == "counts", layout.separator_of(name))
        self._columns_of_run = functools.lru_cache(_REMEMBERED)(
            lambda run: [self._column(word) for word in tokeniser.words_of(run) if word is not None]
        )
        self._is_text = is_text

    def _column(self, word: str) -> int | None:
        return self._column_of.get(word, self._other)

    def parse(self, value: Any) -> dict[int, int]:
        """Columns of a cell and their counts; ValueError where it is no text or no bag."""
        parsed: Any = self._cells.parse(value, None)
        runs, words = parsed if self._is_text else ({}, parsed)
        found: dict[int, int] = {}
        counted = [(column, count) for run, count in runs.items() for column in self._columns_of_run(run)]
        counted += [(self._column(word), count) for word, count in words.items()]
        for column, count in counted:
            if column is not None and count:
                found[column] = found.get(column, 0) + count
        return found

    def gather(self, cells: Sequence[Any]) -> Any:
        """(J, A) int32 counts."""
        ends = np.cumsum([0, *map(len, cells)])
        columns = np.fromiter((column for cell in cells for column in cell), np.int32, ends[-1])
        counts = np.fromiter((count for cell in cells for count in cell.values()), np.int32, ends[-1])
        matrix = sp.csr_matrix((counts, columns, ends), shape=(len(cells), self._n_columns))
        matrix.sort_indices()
        return matrix
