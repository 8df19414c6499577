"""Your own documents: a table with one document to a row becomes a Corpus.

A row gives a document's words, as running text or as a bag, and any number of contexts. JSON Lines, CSV, TSV and
Parquet files are read in one pass (:mod:`mc2core.sources.formats.records`); only counts are held in memory, eight
bytes for each distinct word of a document.

A bag is, in JSON, a list of names or an object ``{name: count}``; in CSV, names with semicolons between
(``graph; tree``). Only in a column of kind "counts" does a number after a colon count the name before it, 1 where there
is none (``graph:2; tree``); elsewhere a colon belongs to the name, as in ``http://x.org:8080``. A label is a bag.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core.corpus import Corpus
from mc2core.sources.datasheet import Dropped
from mc2core.sources.formats.records import columns_of, lines_of, read_rows, shown
from mc2core.sources.text import words as text
from mc2core.sources.text.counts import MAX_COUNT, CountsBuilder, VocabularyRule

KINDS = ("number", "bag", "text", "counts")
CONTENT_KINDS = ("text", "bag", "counts")
_COUNTED = re.compile(r"(.*\S)\s*:\s*([-+]?[0-9][0-9.eE+-]*)")
_MISSING_NUMBERS = ("", "na", "n/a", "nan", "null", "none")


@dataclass(frozen=True)
class ContextColumn:
    """A column that is a context: of kind "number" (empty: missing), "bag", "text" (its words) or "counts"."""

    column: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"context column {self.column!r} is of kind {self.kind!r}; kinds are {', '.join(KINDS)}")


@dataclass(frozen=True)
class Layout:
    """Which column is what.

    content : column of the words.
    content_kind : "text" (split into words by :func:`mc2core.sources.text.words.words_of`), "bag" (names as they are)
    or
        "counts" (names with counts).
    contexts : ``{name of the context: its column}``.
    label : column of the true group: one name or number, or in JSON a list of them (several groups).
    id : column of a name that no two documents share.
    keep : columns kept beside the documents, such as a title.
    min_letters : of a word in running text.
    optional : columns that the file may lack; what they are is left out then, and so is a label that a document lacks.
    """

    content: str
    content_kind: str = "text"
    contexts: Mapping[str, ContextColumn] = field(default_factory=dict)
    label: str | None = None
    id: str | None = None
    keep: Sequence[str] = ()
    min_letters: int = 3
    optional: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.content_kind not in CONTENT_KINDS:
            raise ValueError(f"content is of kind {self.content_kind!r}; kinds are {', '.join(CONTENT_KINDS)}")
        if self.min_letters < 1:
            raise ValueError(f"min_letters is {self.min_letters}; it must be at least 1")
        for name in self.contexts:
            if not name.isidentifier():
                raise ValueError(f"context name {name!r} must be a plain identifier such as 'year'")

    def within(self, path: Path) -> Layout:
        """This layout without the optional columns that the file lacks."""
        lacking = set(self.optional)
        lacking -= set(columns_of(path)) if lacking else set()
        return replace(
            self,
            contexts={name: one for name, one in self.contexts.items() if one.column not in lacking},
            label=None if self.label in lacking else self.label,
            id=None if self.id in lacking else self.id,
            keep=[column for column in self.keep if column not in lacking],
        )


def read_table(
    path: str | os.PathLike[str],
    layout: Layout,
    vocabulary: Sequence[str] | None = None,
    rule: VocabularyRule | None = None,
) -> tuple[Corpus, list[Dropped]]:
    """Read a file of documents.

    Parameters
    ----------
    vocabulary : the words, in this order; others are dropped. None: the words that are seen and that ``rule`` keeps.
    rule : not together with ``vocabulary``.

    Returns
    -------
    corpus : documents in the order of the file; a document without words stays, empty.
    dropped : what was left out and why.

    Raises
    ------
    ValueError
        One sentence naming file, line and column, what was found and what is allowed.
    """
    path = Path(path)
    if vocabulary is not None and rule is not None:
        raise ValueError("a fixed vocabulary and a rule for one exclude each other")
    layout = layout.within(path)
    content = _Bags(layout.content, layout.content_kind, layout.min_letters, vocabulary)
    contexts: dict[str, _Bags | _Numbers] = {
        name: _Numbers(one.column) if one.kind == "number" else _Bags(one.column, one.kind, layout.min_letters)
        for name, one in layout.contexts.items()
    }
    labels = [_Bags(layout.label, "label", layout.min_letters)] if layout.label else []
    ids = [_Facts(layout.id, unique=True)] if layout.id else []
    facts = [*ids, *(_Facts(column) for column in layout.keep)]
    parts: list[_Bags | _Numbers | _Facts] = [content, *contexts.values(), *labels, *facts]
    adders: list[tuple[int, str, Callable[[Any, int], None]]] = [
        (place, part.column, part.add) for place, part in enumerate(parts)
    ]
    for line, values in read_rows(path, [part.column for part in parts]):
        for place, column, add in adders:
            try:
                add(values[place], line)
            except ValueError as error:
                raise ValueError(f"{path}, line {line}, column {column!r}: {error}") from None
    counts, words = content.builder.finish()
    if counts.shape[0] == 0:
        raise ValueError(f"{path} has no document")
    dropped = [Dropped("tokens", content.builder.outside, "of a word that the given vocabulary lacks")]
    if vocabulary is None:
        counts, words, by_rule = (rule or VocabularyRule()).apply(counts, words)
        dropped += by_rule
    bags = {name: one.builder.finish() for name, one in contexts.items() if isinstance(one, _Bags)}
    numbers = {name: np.array(one.values) for name, one in contexts.items() if isinstance(one, _Numbers)}
    dropped = [one for one in dropped if one.number]
    is_optional = layout.label in layout.optional
    label_values, label_names = _labels(path, labels[0], is_optional) if labels else (None, None)
    if counts.nnz == 0 and not (contexts and words):
        raise ValueError(f"{path}, column {layout.content!r}: {_without_words(layout, bool(dropped))}")
    return Corpus(
        counts,
        words,
        contexts={name: bags[name][0] if name in bags else numbers[name] for name in contexts},
        labels=label_values,
        documents=pd.DataFrame({one.column: one.values for one in facts}) if facts else None,
        context_names={name: names for name, (_, names) in bags.items()},
        label_names=label_names,
    ), dropped


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    """Words, one to a line. ValueError names the line of a blank one or of one that comes a second time."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    words: dict[str, int] = {}
    for number, line in lines_of(path):
        word = line.strip()
        if not word:
            raise ValueError(f"{path}, line {number} is blank; each line is one word")
        if word in words:
            raise ValueError(f"{path}, line {number} repeats the word {shown(word)} of line {words[word]}")
        words[word] = number
    if not words:
        raise ValueError(f"{path} has no word")
    return list(words)


# -- columns -------------------------------------------------------------------------------------------------
class _Bags:
    """A column of bags, of labels or of running text."""

    def __init__(self, column: str, kind: str, min_letters: int, names: Sequence[str] | None = None) -> None:
        self.column, self.builder = column, CountsBuilder(names)
        self._kind, self._min_letters = kind, min_letters

    def add(self, value: Any, line: int) -> None:
        if self._kind != "text":
            self.builder.add(parse_bag(value, is_counted=self._kind == "counts"))
        elif value is None or isinstance(value, str):
            self.builder.add(Counter(text.words_of(value or "", self._min_letters)))
        else:
            raise ValueError(f"found {shown(value)}; text is needed")


class _Numbers:
    """A column of numbers, NaN where one is missing."""

    def __init__(self, column: str) -> None:
        self.column, self.values = column, array("d")

    def add(self, value: Any, line: int) -> None:
        self.values.append(parse_number(value))


class _Facts:
    """A column kept as text."""

    def __init__(self, column: str, unique: bool = False) -> None:
        self.column, self.values = column, list[str]()
        self._lines: dict[str, int] | None = {} if unique else None

    def add(self, value: Any, line: int) -> None:
        if isinstance(value, list | dict):
            raise ValueError(f"found {shown(value)}; text or a number is needed")
        kept = "" if value is None else _plain(str(value))
        if self._lines is not None:
            if not kept:
                raise ValueError("it is empty; every document needs an id")
            if kept in self._lines:
                raise ValueError(f"{shown(kept)} is the id of the document of line {self._lines[kept]} already")
            self._lines[kept] = line
        self.values.append(kept)


def parse_number(value: Any) -> float:
    """A finite number; None, and text that is empty, NA, NaN, null or none, are NaN. ValueError for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        if value.strip().lower() in _MISSING_NUMBERS:
            return math.nan
        try:
            number = float(value)
        except ValueError:
            number = math.inf
    else:
        try:
            number = math.inf if isinstance(value, bool | list | dict) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.inf
        if math.isnan(number):  # Parquet has NaN for a missing number
            return number
    if not math.isfinite(number):
        raise ValueError(f"found {shown(value)}; a finite number, or nothing where it is missing, is needed")
    return number


def parse_bag(value: Any, is_counted: bool) -> Mapping[str, int]:
    """``{name: count}`` of a bag in any of its forms (see the module's text). ValueError for anything else.

    is_counted : in text, a number after a colon is a count and no part of the name.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        bag: Counter[str] = Counter()
        for entry in value.split(";"):
            if entry := entry.strip():
                match = _COUNTED.fullmatch(entry) if is_counted else None
                if match and not (match[2].isdecimal() and len(match[2]) < 12):
                    raise ValueError(f"found {shown(entry)}; the count after a colon is a whole number of at least 0")
                bag[_name(match[1] if match else entry)] += int(match[2]) if match else 1
    elif isinstance(value, list):
        bag = Counter(_name(one) for one in value)
    elif isinstance(value, dict):
        bag = Counter()
        for name, count in value.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise ValueError(f"{shown(name)} has the count {shown(count)}; counts are whole numbers of at least 0")
            bag[_name(name)] += count
    elif isinstance(value, int) and not isinstance(value, bool):
        bag = Counter([str(value)])
    else:
        raise ValueError(f"found {shown(value)}; a list of names or names with counts is needed")
    for name, count in bag.items():
        if count > MAX_COUNT:
            raise ValueError(f"{shown(name)} has the count {count}; the highest allowed is {MAX_COUNT}")
    return bag


def _name(name: Any) -> str:
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if not isinstance(name, str):
        raise ValueError(f"found the name {shown(name)}; names are text")
    if not (plain := _plain(name)):
        raise ValueError("found an empty name; leave it out")
    return plain


def _plain(value: str) -> str:
    """Text on one line; control characters and halves of surrogate pairs, which no text file can keep, are refused."""
    plain = " ".join(value.split())
    if not plain.isprintable() and any(unicodedata.category(sign) in ("Cc", "Cs") for sign in plain):
        raise ValueError(f"found {shown(value)}; text has no control characters")
    return plain


def _without_words(layout: Layout, was_dropped: bool) -> str:
    """Why no document of a file has a word."""
    if was_dropped:
        return "none of its words is kept by the vocabulary or the rule for it"
    rule = f"; running text is cut into runs of at least {layout.min_letters} letters a-z, stop words left out"
    return "no document has a word" + (rule if layout.content_kind == "text" else "")


def _labels(path: Path, column: _Bags, is_optional: bool) -> tuple[Any, list[str] | None]:
    """One number for each document where each has one label, else the (J, L) membership; None for optional gaps."""
    membership, names = column.builder.finish()
    membership.data[:] = 1
    lengths = np.diff(membership.indptr)
    if (lengths == 1).all():
        return membership.indices.astype(np.int64), names
    if (lengths == 0).any():
        if is_optional:
            return None, None
        document = int(np.flatnonzero(lengths == 0)[0]) + 1
        raise ValueError(f"{path}: document {document} has no value in column {column.column!r}; each needs a label")
    return membership, names
