"""Kinds of columns in a table of documents, and collection of their cells.

A row has the words of a document, as running text or as a bag, and any number of contexts. A bag is a list of names, a
dict ``{name: count}``, or a text with separated names (``graph; tree``). The default separator is a semicolon.
Integers, True and False are converted to names by ``str``. In columns of kind "counts", a number after a colon is the
count of the name before the colon (``graph:2; tree``). Without a number, the count is 1. In other columns, a colon
belongs to the name, as in ``http://x.org:8080``. A label is a bag. A date is a fractional year
(:func:`mc2core.corpus.building.cells.parse_date`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import choice, shown
from mc2core.base.faults import place_text
from mc2core.corpus.building.cells import (
    Missing,
    is_null,
    parse_bag,
    parse_date,
    parse_number,
    parse_text,
    plain_text,
    without_controls,
)
from mc2core.corpus.building.counts import WORD_COUNTS, CountsBuilder, Dropped
from mc2core.corpus.building.tokens import Tokeniser
from mc2core.corpus.checks import FAMILY_OF_KIND, NUMBERS, check_context_name

CONTENT_KINDS = ("text", "bag", "counts")
SEPARATOR = ";"
#: name under which rare values of a context are pooled
POOLED = "(rare)"


@dataclass(frozen=True)
class ContextColumn:
    """Name and kind of the column of a context."""

    column: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in FAMILY_OF_KIND:
            kinds = ", ".join(FAMILY_OF_KIND)
            raise ValueError(f"context column {self.column!r} is of kind {self.kind!r}; kinds are {kinds}")


@dataclass(frozen=True)
class Rare:
    """Rule for values of a context in fewer than ``min_documents`` documents: they are dropped, or pooled as POOLED."""

    min_documents: int
    is_pooled: bool = False

    def apply(
        self, name: str, counts: sp.csr_matrix, names: list[str]
    ) -> tuple[sp.csr_matrix, list[str], list[Dropped]]:
        """Return the remaining counts and names (POOLED last), and the number of dropped or pooled values."""
        spread = np.bincount(counts.indices, minlength=len(names))
        rare = spread < self.min_documents
        common = [value for value, is_rare in zip(names, rare, strict=True) if not is_rare]
        if not rare.any():
            return counts, names, []
        why = f"in fewer than {self.min_documents} documents" + (f", counted as {POOLED!r}" if self.is_pooled else "")
        dropped = [Dropped(f"values of {name}", int(rare.sum()), why)]
        if not common and not self.is_pooled:
            raise ValueError(f"context {name!r} has no value in {self.min_documents} documents or more")
        column = np.where(rare, len(common), np.cumsum(~rare) - 1)
        indicator = sp.csr_matrix(
            (np.ones(len(names), np.int32), (np.arange(len(names)), column)), (len(names), len(common) + 1)
        )
        counts = sp.csr_matrix(counts @ indicator)
        counts.sort_indices()
        return (counts, [*common, POOLED], dropped) if self.is_pooled else (counts[:, : len(common)], common, dropped)


@dataclass(frozen=True)
class Layout:
    """Assignment of the columns of a table to words, contexts and other roles.

    content : column of the words.
    content_kind : "text" (split into words by ``tokeniser``), "bag" (list of names) or "counts" (names with counts).
    contexts : column of each context, by name.
    labels : column of the true labels: one name or number, or a list of names or numbers.
    id : column of unique document ids.
    keep : further columns to keep, such as a title.
    tokeniser : tokeniser of running text; contexts of text do not use its n-grams.
    optional : columns that were not given for this file. If an optional column is absent, its context, labels or kept
        column is left out; only ``content`` must be present. Optional labels are also left out if a document lacks one.
    separators : separator of names in a bag, by column; the key "" stands for all other columns.
    date_format : format of dates (:func:`mc2core.corpus.building.cells.parse_date`).
    rare : rule for rare values of each context, by name.
    word_counts : "raw", "presence" or "log" (:func:`mc2core.corpus.building.counts.damped`) for ``content``.
    missing : codes of missing values, for whole cells and for single names of contexts and labels.
    """

    content: str
    content_kind: str = "text"
    contexts: Mapping[str, ContextColumn] = field(default_factory=dict)
    labels: str | None = None
    id: str | None = None
    keep: Sequence[str] = ()
    tokeniser: Tokeniser = field(default_factory=Tokeniser)
    optional: Collection[str] = ()
    separators: Mapping[str, str | None] = field(default_factory=dict)
    date_format: str | None = None
    rare: Mapping[str, Rare] = field(default_factory=dict)
    word_counts: str = "raw"
    missing: Missing = field(default_factory=Missing)

    def __post_init__(self) -> None:
        if self.content_kind not in CONTENT_KINDS:
            raise ValueError(f"content is of kind {self.content_kind!r}; kinds are {', '.join(CONTENT_KINDS)}")
        for name in self.contexts:
            check_context_name(name)
        bags = [name for name, one in self.contexts.items() if one.kind not in NUMBERS]
        for name in self.rare:
            if name not in bags:
                raise ValueError(f"rare values of {name!r} cannot be left out: it is not a context of names")
        for column, separator in self.separators.items():
            if separator is not None and (not separator or separator.isalnum()):
                raise ValueError(f"the separator {separator!r} is not valid; use a character such as ',' or '|'")
            if column and column not in self.columns:
                raise ValueError(f"the separator {separator!r} is for the column {column!r}, which is not used")
        choice("word_counts", self.word_counts, WORD_COUNTS)

    @property
    def columns(self) -> list[str]:
        """Names of all columns that are read."""
        contexts = [one.column for one in self.contexts.values()]
        return [column for column in (self.content, *contexts, self.labels, self.id, *self.keep) if column]

    def among(self, columns: Sequence[str], where: str) -> Layout:
        """Return this layout without optional columns that are not in ``columns``, the columns of a file.

        Raises ValueError, with a message that begins with ``where``, if there are no columns, or if the column of words
        is an absent optional column.
        """
        if not columns:
            raise ValueError(f"{where} has no documents")
        missing = set(self.optional) - set(columns)
        if self.content in missing:
            raise ValueError(
                f"{where} has no column {self.content!r}, which held the words; name another with --text COLUMN "
                f"(text= in Python; columns: {', '.join(columns)[:200]!r})"
            )
        contexts = {name: one for name, one in self.contexts.items() if one.column not in missing}
        return replace(
            self,
            contexts=contexts,
            labels=None if self.labels in missing else self.labels,
            id=None if self.id in missing else self.id,
            keep=[column for column in self.keep if column not in missing],
            separators={column: one for column, one in self.separators.items() if column not in missing},
            rare={name: one for name, one in self.rare.items() if name in contexts},
        )

    def reader(
        self, column: str, kind: str, tokeniser: Tokeniser, is_content: bool = False
    ) -> Callable[[Any], Mapping[str, int]]:
        """Return a function that parses a cell to ``{name: count}``: texts by a tokeniser, bags by their separator.

        Cells that are codes of missing values are empty. Names in a bag that are codes are left out, unless the names
        are words (``is_content``).
        """
        blank = partial(self.missing.blank, column)
        if kind == "text":
            return lambda cell: parse_text(blank(cell), tokeniser.count)
        separator = self.separators.get(column, self.separators.get("", SEPARATOR))
        parse = partial(parse_bag, is_counted=kind == "counts", separator=separator)
        if is_content:
            return lambda cell: parse(blank(cell))
        return lambda cell: self.missing.known(column, parse(blank(cell)))


class Names:
    """A column of words, names or labels.

    ``read`` converts a cell to ``{name: count}`` or raises ValueError. ``names`` and ``others`` are as in
    :class:`CountsBuilder`.
    """

    remedy = ""

    def __init__(
        self,
        column: str,
        read: Callable[[Any], Mapping[str, int]],
        names: Sequence[str] | None = None,
        others: str | None = None,
    ) -> None:
        self.column, self.builder, self._read = column, CountsBuilder(names, others), read
        self.append = self.builder.add

    def parse(self, value: Any, place: Any) -> Mapping[str, int]:
        """Parse a cell to ``{name: count}``."""
        return self._read(value)

    def take(self) -> sp.csr_matrix:
        """Return the counts of the cells since the last call, (J, A) CSR."""
        return self.builder.finish()[0]


class Labels:
    """A column of labels. ``read`` parses a cell; ``without`` has the places of documents without labels."""

    remedy = ""

    def __init__(self, column: str, read: Callable[[Any], Mapping[str, int]]) -> None:
        self.column, self.builder, self.without, self._read = column, CountsBuilder(), list[Any](), read

    def parse(self, value: Any, place: Any) -> tuple[Mapping[str, int], Any]:
        """Return the labels of a cell, and its place."""
        return self._read(value), place

    def append(self, parsed: tuple[Mapping[str, int], Any]) -> None:
        """Append parsed labels."""
        labels, place = parsed
        if not labels:
            self.without.append(place)
        self.builder.add(labels)


class Numbers:
    """A column of numbers or dates, NaN if missing. ``remedy`` is advice in messages on values that cannot be read."""

    def __init__(
        self, column: str, kind: str, missing: Missing, date_format: str | None = None, decimal_comma: bool = False
    ) -> None:
        self.column, self.values, self._missing = column, array("d"), missing
        self.remedy = f"a context of names is of kind bag: {column}:bag, and one of dates {column}:date"
        if kind == "date":
            self.remedy = (
                "" if date_format else "--date-format '%d/%m/%Y %H:%M:%S' reads dates such as 31/12/2021 23:59:58"
            )
        self._is_date, self._date_format, self._decimal_comma = kind == "date", date_format, decimal_comma
        self.append = self.values.append

    def parse(self, value: Any, place: Any) -> float:
        """Parse the number in a cell."""
        value = self._missing.blank(self.column, value)
        number = parse_date(value, self._date_format) if self._is_date else parse_number(value, self._decimal_comma)
        return math.nan if self._missing.blank(self.column, number) is None else number

    def take(self) -> np.ndarray:
        """Return the numbers of the cells since the last call, (J,) float64."""
        numbers = np.array(self.values)
        del self.values[:]
        return numbers


class Facts:
    """A column that is kept as text. If ``unique`` is True, all values must differ.

    ``replaced`` is the number of control characters that were replaced by U+FFFD in columns that are not unique.
    """

    remedy = ""

    def __init__(self, column: str, missing: Missing, unique: bool = False) -> None:
        self.column, self.values, self.replaced, self._missing = column, list[str](), 0, missing
        self._places: dict[str, Any] | None = {} if unique else None

    def parse(self, value: Any, place: Any) -> tuple[str, Any]:
        """Return the text of a cell on one line, and its place."""
        if isinstance(value, list | dict):
            raise ValueError(f"found {shown(value)}; text or a number is needed")
        cell = self._missing.blank(self.column, value)
        text = "" if is_null(cell) else str(cell)
        if self._places is None:
            return " ".join(text.split()), place
        key = plain_text(text)
        if not key:
            hint = f"{shown(value)} is read as missing (--missing none reads it as a name)"
            raise ValueError(f"{'it is empty' if cell is value else hint}; every document needs an id")
        if key in self._places:
            raise ValueError(f"{shown(key)} is the id of the document of {place_text(self._places[key])} already")
        return key, place

    def append(self, parsed: tuple[str, Any]) -> None:
        """Append a parsed text."""
        text, place = parsed
        if self._places is not None:
            self._places[text] = place
        elif not text.isprintable():
            text, replaced = without_controls(text)
            self.replaced += replaced
        self.values.append(text)
