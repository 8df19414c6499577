"""What the columns of a table of documents are, and how their cells are gathered.

A row gives a document's words, as running text or as a bag, and any number of contexts. A bag is a list of names or an
object ``{name: count}``; in text, names with a separator between, a semicolon unless another is named
(``graph; tree``): no other sign separates. An integer, True or False is a name as Python writes it. Only in a column of
kind "counts" does a number after a colon count the name before it, 1 where there is none (``graph:2; tree``); elsewhere
a colon belongs to the name, as in ``http://x.org:8080``.
A label is a bag. A date is a year and its fraction (:func:`mc2core.corpus.building.cells.parse_date`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import choice, shown
from mc2core.base.faults import place_text
from mc2core.base.kinds import KINDS, NUMBERS
from mc2core.corpus.building.cells import (
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
from mc2core.corpus.checks import check_context_name

CONTENT_KINDS = ("text", "bag", "counts")
SEPARATOR = ";"
#: what rare values of a context are counted as together
POOLED = "(rare)"


@dataclass(frozen=True)
class ContextColumn:
    """A column that is a context, of one of KINDS: "text" is its words; an empty number or date is missing."""

    column: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"context column {self.column!r} is of kind {self.kind!r}; kinds are {', '.join(KINDS)}")


@dataclass(frozen=True)
class Rare:
    """Values of a context in fewer than ``min_documents`` documents are dropped, or counted together as POOLED."""

    min_documents: int
    is_pooled: bool = False

    def apply(
        self, name: str, counts: sp.csr_matrix, names: list[str]
    ) -> tuple[sp.csr_matrix, list[str], list[Dropped]]:
        """Counts and names that are kept, POOLED last, and what was dropped or pooled."""
        spread = np.bincount(counts.indices, minlength=len(names))
        rare = spread < self.min_documents
        kept = [value for value, is_rare in zip(names, rare, strict=True) if not is_rare]
        if not rare.any():
            return counts, names, []
        why = f"in fewer than {self.min_documents} documents" + (f", counted as {POOLED!r}" if self.is_pooled else "")
        dropped = [Dropped(f"values of {name}", int(rare.sum()), why)]
        if not kept and not self.is_pooled:
            raise ValueError(f"context {name!r} has no value in {self.min_documents} documents or more")
        column = np.where(rare, len(kept), np.cumsum(~rare) - 1)
        place = sp.csr_matrix(
            (np.ones(len(names), np.int32), (np.arange(len(names)), column)), (len(names), len(kept) + 1)
        )
        counts = sp.csr_matrix(counts @ place)
        counts.sort_indices()
        return (counts, [*kept, POOLED], dropped) if self.is_pooled else (counts[:, : len(kept)], kept, dropped)


@dataclass(frozen=True)
class Layout:
    """Which column is what.

    content : column of the words.
    content_kind : "text" (cut into words by ``tokeniser``), "bag" (names as they are) or "counts" (names with counts).
    contexts : ``{name of the context: its column}``.
    labels : column of the true group: one name or number, or a list of them (several groups).
    id : column of a name that no two documents share.
    keep : columns kept beside the documents, such as a title.
    tokeniser : of running text; for contexts of text, without its n-grams.
    optional : columns that nobody named for this file, which may lack them; what they are is left out then (but for
        ``content``), and so are labels where a document lacks one.
    separators : ``{column: sign between the names of a bag}``, of "" for all columns that are not named.
    date_format : of dates (:func:`mc2core.corpus.building.cells.parse_date`).
    rare : ``{name of a context: what becomes of its rare values}``.
    word_counts : "raw", "presence" or "log" (:func:`mc2core.corpus.building.counts.damped`), of ``content``.
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

    def __post_init__(self) -> None:
        if self.content_kind not in CONTENT_KINDS:
            raise ValueError(f"content is of kind {self.content_kind!r}; kinds are {', '.join(CONTENT_KINDS)}")
        for name in self.contexts:
            check_context_name(name)
        bags = [name for name, one in self.contexts.items() if one.kind not in NUMBERS]
        for name in self.rare:
            if name not in bags:
                raise ValueError(f"rare values of {name!r} cannot be left out: it is no context of names")
        for column, separator in self.separators.items():
            if separator is not None and (not separator or separator.isalnum()):
                raise ValueError(f"the separator {separator!r} is none; a sign such as ',' or '|' is needed")
            if column and column not in self.columns:
                raise ValueError(f"the separator {separator!r} is for the column {column!r}, which is not used")
        choice("word_counts", self.word_counts, WORD_COUNTS)

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        contexts = [one.column for one in self.contexts.values()]
        return [column for column in (self.content, *contexts, self.labels, self.id, *self.keep) if column]

    def among(self, columns: Sequence[str], where: str) -> Layout:
        """This layout without its optional columns that are none of ``columns``.

        ValueError, which begins with ``where``: the words stood in one of them, or there are no columns at all.
        """
        if not columns:
            raise ValueError(f"{where} has no document")
        lacking = set(self.optional) - set(columns)
        if self.content in lacking:
            raise ValueError(
                f"{where} has no column {self.content!r}, where the words stood; --text COLUMN (text= in Python) names "
                f"another (columns: {', '.join(columns)[:200]!r})"
            )
        contexts = {name: one for name, one in self.contexts.items() if one.column not in lacking}
        return replace(
            self,
            contexts=contexts,
            labels=None if self.labels in lacking else self.labels,
            id=None if self.id in lacking else self.id,
            keep=[column for column in self.keep if column not in lacking],
            separators={column: one for column, one in self.separators.items() if column not in lacking},
            rare={name: one for name, one in self.rare.items() if name in contexts},
        )

    def reader(self, column: str, kind: str, tokeniser: Tokeniser) -> Callable[[Any], Mapping[str, int]]:
        """What reads a cell of a column of names: of text by a tokeniser, of bags with the sign between its names."""
        if kind == "text":
            return partial(parse_text, count=tokeniser.count)
        separator = self.separators.get(column, self.separators.get("", SEPARATOR))
        return partial(parse_bag, is_counted=kind == "counts", separator=separator)


class Names:
    """A column of words, names or labels.

    ``read`` makes a cell ``{name: count}``, or raises a ValueError; ``names`` and ``others`` are those of
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
        """``{name: count}`` of a cell."""
        return self._read(value)

    def take(self) -> sp.csr_matrix:
        """(J, A) counts of the cells so far; those added later begin anew."""
        return self.builder.finish()[0]


class Labels:
    """A column of labels, which ``read`` makes of a cell; ``without``: places of the documents that have none."""

    remedy = ""

    def __init__(self, column: str, read: Callable[[Any], Mapping[str, int]]) -> None:
        self.column, self.builder, self.without, self._read = column, CountsBuilder(), list[Any](), read

    def parse(self, value: Any, place: Any) -> tuple[Mapping[str, int], Any]:
        """Labels of a cell, and its place."""
        return self._read(value), place

    def append(self, parsed: tuple[Mapping[str, int], Any]) -> None:
        """Keep what was parsed."""
        labels, place = parsed
        if not labels:
            self.without.append(place)
        self.builder.add(labels)


class Numbers:
    """A column of numbers or dates, NaN where one is missing; ``remedy``: what can be done where one cannot be read."""

    def __init__(self, column: str, kind: str, date_format: str | None = None, decimal_comma: bool = False) -> None:
        self.column, self.values = column, array("d")
        self.remedy = f"a context of names is of kind bag: {column}:bag, and one of dates {column}:date"
        if kind == "date":
            self.remedy = (
                "" if date_format else "--date-format '%d/%m/%Y %H:%M:%S' reads dates such as 31/12/2021 23:59:58"
            )
        self._is_date, self._date_format, self._decimal_comma = kind == "date", date_format, decimal_comma
        self.append = self.values.append

    def parse(self, value: Any, place: Any) -> float:
        """The number of a cell."""
        return parse_date(value, self._date_format) if self._is_date else parse_number(value, self._decimal_comma)

    def take(self) -> np.ndarray:
        """(J,) float64 of the cells so far; those added later begin anew."""
        taken = np.array(self.values)
        del self.values[:]
        return taken


class Facts:
    """A column kept as text; ``unique``: no two rows share a value.

    ``replaced``: control characters in values that need not be unique, each of which became U+FFFD.
    """

    remedy = ""

    def __init__(self, column: str, unique: bool = False) -> None:
        self.column, self.values, self.replaced = column, list[str](), 0
        self._places: dict[str, Any] | None = {} if unique else None

    def parse(self, value: Any, place: Any) -> tuple[str, Any]:
        """Text of a cell on one line, and its place."""
        if isinstance(value, list | dict):
            raise ValueError(f"found {shown(value)}; text or a number is needed")
        text = "" if is_null(value) else str(value)
        if self._places is None:
            return " ".join(text.split()), place
        kept = plain_text(text)
        if not kept:
            raise ValueError("it is empty; every document needs an id")
        if kept in self._places:
            raise ValueError(f"{shown(kept)} is the id of the document of {place_text(self._places[kept])} already")
        return kept, place

    def append(self, parsed: tuple[str, Any]) -> None:
        """Keep what was parsed."""
        kept, place = parsed
        if self._places is not None:
            self._places[kept] = place
        elif not kept.isprintable():
            kept, replaced = without_controls(kept)
            self.replaced += replaced
        self.values.append(kept)
