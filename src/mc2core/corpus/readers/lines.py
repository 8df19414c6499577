"""Documents from a stream of JSON lines with the columns of a model, the counterpart of ``mc2 import --like``.

Lines that wait in a pipe are processed together; no batch waits for further lines.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import shown
from mc2core.base.faults import BadRow, Fault
from mc2core.base.records import MAX_LINE_BYTES, record_of
from mc2core.corpus import Corpus
from mc2core.corpus.alignment import HasSchema, Schema, align, schema_of
from mc2core.corpus.building.cells import parse_number
from mc2core.corpus.building.columns import CONTENT_KINDS, POOLED, Layout, Names, Numbers
from mc2core.corpus.building.counts import damped
from mc2core.corpus.building.settings import TABLE, complete, layout_of, parse_contexts
from mc2core.corpus.embeddings import Projection, projection_of

_CHUNK = 1 << 16

Line = tuple[int, bytes | Fault]
"""Number from 1, and the line without its end; a Fault for one that is too long."""

_REMEMBERED = 1 << 14  # size of the cache of words: a stream may be endless


class Documents(NamedTuple):
    """Documents from some lines.

    ``corpus`` has the documents that could be read, or is None. ``lines`` and ``ids`` have their line numbers and ids
    (or None), and ``bad`` has the errors of the others.
    """

    corpus: Corpus | None
    lines: list[int]
    ids: list[Any]
    bad: list[BadRow]


class LineReader:
    """Reads documents for a model.

    Parameters
    ----------
    like : as in :func:`mc2core.corpus.readers.reading.read_own`.
    given : settings "text", "bag", "counts", "contexts" and "id", as there; by default those of the model's import.
        Without these, the key of running text is "text", the key of a bag of words is "words", the key of a context is
        its name, and the key of an id is "id". A vector is a list of numbers; an embedding has the length before the
        reduction.

    Raises ValueError if a setting is determined by the model, or if its words were made by a function of the user.
    """

    def __init__(self, like: HasSchema, options: Mapping[str, Any]) -> None:
        schema = schema_of(like)
        layout = _layout(schema, {name: value for name, value in options.items() if value not in (None, [])})
        self._id = str(options.get("id") or schema.settings.get("id") or "id")
        self._word_counts = layout.word_counts
        plain = layout.tokeniser.for_contexts()
        layout.tokeniser.remembered.most = plain.remembered.most = _REMEMBERED
        content = layout.reader(layout.content, layout.content_kind, layout.tokeniser, is_content=True)
        self._columns: list[Any] = [Names(layout.content, content, schema.words)]
        self._contexts = [*layout.contexts, *schema.vectors]
        for name, context in layout.contexts.items():
            values = schema.columns[name]
            self._columns.append(
                Numbers(context.column, context.kind, layout.missing, layout.date_format)
                if values is None
                else Names(context.column, layout.reader(context.column, context.kind, plain), values, POOLED)
            )
        projection = projection_of(like.imported)
        self._columns += [
            _Vectors(name, length, projection if projection and projection.name == name else None)
            for name, length in schema.vectors.items()
        ]
        self._columns[0].append({schema.words[0]: 1})
        for column in self._columns[1:]:
            column.append(column.parse(None, None))
        content, contexts = self._take()
        names = {name: values for name, values in schema.columns.items() if values is not None}
        self._template = Corpus(content, schema.words, contexts, context_names=names)
        self._template.imported = like.imported
        stated = [one.partition(":")[0].partition("=")[0] for one in options.get("contexts") or ()]
        #: keys named by ``options`` that no line has had so far, by their kind
        self.unseen = {f"context {name!r}": layout.contexts[name].column for name in stated if name in layout.contexts}
        if options.get("id"):
            self.unseen["the id"] = self._id

    def read(self, lines: Iterable[Line]) -> Documents:
        """Return the documents of some lines, in order; blank lines are skipped."""
        documents = Documents(None, [], [], [])
        for number, line in lines:
            if isinstance(line, bytes) and not line.strip():
                continue
            record = line if isinstance(line, Fault) else record_of(line, is_first=number == 1)
            if not isinstance(record, Fault) and self._columns[0].column not in record:
                keys = ", ".join(record)[:200]
                record = Fault(f"has no key {self._columns[0].column!r}, which holds the words (keys: {keys!r})")
            if isinstance(record, Fault):
                documents.bad.append(BadRow(number, None, *record))
                continue
            if self.unseen:
                self.unseen = {source: key for source, key in self.unseen.items() if key not in record}
            row = list[Any]()
            try:
                for one in self._columns:
                    row.append(one.parse(record.get(one.column), number))
            except ValueError as error:
                documents.bad.append(BadRow(number, self._columns[len(row)].column, str(error)))
                continue
            for one, cell in zip(self._columns, row, strict=True):
                one.append(cell)
            documents.lines.append(number)
            documents.ids.append(record.get(self._id))
        return documents._replace(corpus=self._template.with_documents(*self._take())) if documents.lines else documents

    def _take(self) -> tuple[sp.csr_matrix, dict[str, Any]]:
        """Return counts and contexts of the rows so far."""
        content, *contexts = [one.take() for one in self._columns]
        return damped(content, self._word_counts), dict(zip(self._contexts, contexts, strict=True))

    def without(self, documents: Documents, wrong: Mapping[int, tuple[str, str]]) -> Documents:
        """Move documents whose contexts are ``wrong``, by number, from the corpus of ``documents`` to its bad lines."""
        if not wrong or documents.corpus is None:
            return documents
        column_of = {name: one.column for name, one in zip(self._contexts, self._columns[1:], strict=True)}
        bad = [BadRow(documents.lines[j], column_of[name], why) for j, (name, why) in wrong.items()]
        valid = [j for j in range(len(documents.lines)) if j not in wrong]
        return Documents(
            documents.corpus.subset(np.array(valid)) if valid else None,
            [documents.lines[j] for j in valid],
            [documents.ids[j] for j in valid],
            sorted([*documents.bad, *bad], key=lambda one: one.place),
        )


def _layout(schema: Schema, options: Mapping[str, Any]) -> Layout:
    """Return the columns of words and contexts in a line."""
    names = [*options, *(schema.settings if schema.form == TABLE else ())]
    if not any(kind in names for kind in CONTENT_KINDS):
        options = {**options, **({"text": "text"} if "tokeniser" in schema.settings else {"bag": "words"})}
    settings, _ = align(replace(schema, unused={}), TABLE, options)
    stated = parse_contexts(settings["contexts"])
    other_contexts = [f"{name}={name}:{schema.kind_of(name)}" for name in schema.columns if name not in stated]
    return layout_of(complete(settings | {"contexts": [*settings["contexts"], *other_contexts]}))


def batches_of_lines(stream: IO[bytes], most: int) -> Iterator[list[Line]]:
    """Yield batches of at most ``most`` lines of ``stream``, which has a descriptor, without waiting for more.

    At most a batch and a line of MAX_LINE_BYTES are in memory.
    """
    descriptor, batch = stream.fileno(), list[Line]()
    for line in _lines(descriptor):
        if line is not None:
            batch.append(line)
        if batch and (line is None or len(batch) == most):
            yield batch
            batch = []
    if batch:
        yield batch


def _lines(descriptor: int) -> Iterator[Line | None]:
    """Yield lines, and None before waiting for more input."""
    number, begun, length = 0, list[bytes](), 0
    too_long = Fault(f"has more than {MAX_LINE_BYTES} bytes, the most that is allowed")
    while True:
        if not select.select([descriptor], [], [], 0.0)[0]:
            yield None
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        *ended, tail = chunk.split(b"\n")
        for end in ended:
            number += 1
            yield number, b"".join([*begun, end]) if length + len(end) <= MAX_LINE_BYTES else too_long
            begun, length = [], 0
        length += len(tail)
        begun = [*begun, tail] if length <= MAX_LINE_BYTES else []
    if length:
        yield number + 1, b"".join(begun) if length <= MAX_LINE_BYTES else too_long


class _Vectors:
    """A list of numbers in each line, of embeddings (``projection``) as they are before they are reduced."""

    def __init__(self, column: str, length: int, projection: Projection | None) -> None:
        self.column, self._length, self._values = column, length, list[list[float]]()
        self._projection, self._input_length = projection, length if projection is None else projection.length
        self.append = self._values.append

    def parse(self, value: Any, place: Any) -> list[float]:
        """Parse a list of numbers, NaN for null. Raises ValueError if it has another length or type."""
        if value is None:
            return [np.nan] * self._length
        if not isinstance(value, list) or len(value) != self._input_length:
            raise ValueError(f"found {shown(value)}; a list of {self._input_length} numbers, or null, is needed")
        numbers = [parse_number(one) for one in value]
        if self._projection is None:
            return numbers
        if not np.isfinite(numbers).all():
            raise ValueError(f"found {shown(value)}; a vector has no gaps, and its numbers are finite")
        reduced: list[float] = self._projection.apply([numbers])[0].tolist()
        return reduced

    def take(self) -> np.ndarray:
        """Return the vectors so far, (J, D) float64 with NaN for missing coordinates, and start again."""
        vectors = np.array(self._values, np.float64)
        self._values.clear()
        return vectors
