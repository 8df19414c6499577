"""Reading of documents from a stream of JSON lines with the words and contexts of a model, like ``mc2 import --like``.

Lines that are available in a pipe are processed together as a batch. A batch never waits for further lines.
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
"""Number of a line, from 1, and the line without its end, or a Fault if the line is too long."""

_REMEMBERED = 1 << 14  # size of the cache of words, which is limited because a stream may be endless


class Documents(NamedTuple):
    """Documents that were read from a batch of lines.

    ``corpus`` contains the documents, or is None if no line could be read. ``lines`` and ``ids`` are the line number
    and the id (or None) of each document. ``bad`` has the errors of the other lines.
    """

    corpus: Corpus | None
    lines: list[int]
    ids: list[Any]
    bad: list[BadRow]


class LineReader:
    """Reads documents from lines for a model.

    Parameters
    ----------
    like : Corpus or Posterior
        As in :func:`mc2core.corpus.readers.reading.read_own`.
    options : mapping
        Settings "text", "bag", "counts", "contexts" and "id" of :func:`mc2core.corpus.readers.reading.read_own`; by
        default, the settings of the model's import. Without an import, the key of running text is "text", the key of a
        bag of words is "words", the key of a context is its name, and the key of an id is "id". A vector is a list of
        numbers. An embedding is given with its length before the reduction.

    Raises ValueError if a setting is determined by the model, or if its words were extracted by a user's function.
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
        #: keys in ``options`` that no line has had so far, by their role
        self.unseen = {f"context {name!r}": layout.contexts[name].column for name in stated if name in layout.contexts}
        if options.get("id"):
            self.unseen["the id"] = self._id

    def read(self, lines: Iterable[Line]) -> Documents:
        """Return the documents of a batch of lines, in order; blank lines are skipped."""
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
        """Return the counts of words and the contexts of the rows since the last call."""
        content, *contexts = [one.take() for one in self._columns]
        return damped(content, self._word_counts), dict(zip(self._contexts, contexts, strict=True))

    def without(self, documents: Documents, wrong: Mapping[int, tuple[str, str]]) -> Documents:
        """Move invalid documents from ``documents.corpus`` to ``documents.bad``, and return the result.

        ``wrong`` has the context and the reason for each invalid document, by row number.
        """
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
    """Return the layout of words and contexts in a line."""
    names = [*options, *(schema.settings if schema.form == TABLE else ())]
    if not any(kind in names for kind in CONTENT_KINDS):
        options = {**options, **({"text": "text"} if "tokeniser" in schema.settings else {"bag": "words"})}
    settings, _ = align(replace(schema, unused={}), TABLE, options)
    stated = parse_contexts(settings["contexts"])
    other_contexts = [f"{name}={name}:{schema.kind_of(name)}" for name in schema.columns if name not in stated]
    return layout_of(complete(settings | {"contexts": [*settings["contexts"], *other_contexts]}))


def batches_of_lines(stream: IO[bytes], most: int) -> Iterator[list[Line]]:
    """Yield batches of at most ``most`` lines of ``stream``, which must have a file descriptor.

    A batch with at least one line does not wait for further lines. At most one batch and one line of MAX_LINE_BYTES
    are in memory.
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
    """A context of vectors, given as a list of numbers in each line. Embeddings are reduced by ``projection``."""

    def __init__(self, column: str, length: int, projection: Projection | None) -> None:
        self.column, self._length, self._values = column, length, list[list[float]]()
        self._projection, self._input_length = projection, length if projection is None else projection.length
        self.append = self._values.append

    def parse(self, value: Any, place: Any) -> list[float]:
        """Parse a list of numbers; null gives NaN. Raises ValueError if the value has another length or type."""
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
        """Return the vectors since the last call, (J, D) float64, NaN for missing coordinates."""
        vectors = np.array(self._values, np.float64)
        self._values.clear()
        return vectors
