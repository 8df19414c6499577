"""Conversion of rows of a file, data frame or lists to a corpus. Bad rows are collected and reported together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.faults import BadRow, Fault, place_text
from mc2core.base.progress import work
from mc2core.corpus.building.columns import Facts, Labels, Layout, Names, Numbers
from mc2core.corpus.building.counts import Dropped, VocabularyRule, damped
from mc2core.corpus.checks import NUMBERS

#: :class:`mc2core.Corpus`, or a function with the same arguments
Make: TypeAlias = Callable[..., Any]
#: largest number of bad rows that a message shows
MAX_SHOWN = 20


@dataclass
class BadRows:
    """Bad rows of one import.

    allowed : largest number of bad rows that are left out without an error.
    can_allow : whether messages mention the option to leave out bad rows.
    first : faults of the first bad rows, up to the larger of ``allowed`` and MAX_SHOWN rows.
    number : number of all bad rows.
    """

    allowed: int = 0
    can_allow: bool = False
    first: list[BadRow] = field(default_factory=list)
    number: int = 0

    def add(self, faults: Sequence[BadRow]) -> None:
        """Record the faults of one row."""
        self.number += 1
        if len(self.first) < max(self.allowed, MAX_SHOWN):
            self.first += faults

    def check(self, where: str, n_rows: int) -> None:
        """Raise ValueError if there are more than ``allowed`` bad rows, or if all ``n_rows`` rows are bad."""
        if self.number <= self.allowed and self.number < max(n_rows, 1):
            return
        remedies = "".join(f"; {remedy}" for remedy in dict.fromkeys(one.remedy for one in self.first) if remedy)
        remedies = remedies if self.can_allow else ""
        if self.number == 1:
            other_faults = "".join(f"; column {one.column!r}: {one.message}" for one in self.first[1:])
            raise ValueError(f"{where}, {self.first[0]}{other_faults}{remedies}")
        shown = self.first[:MAX_SHOWN]
        listed = "".join(f"\n  {one}" for one in shown)
        n_more = self.number - len({one.place for one in shown})
        listed += f"\n  and {n_more:,} more" if n_more else ""
        can_skip = self.can_allow and self.number < n_rows
        skip = f" (--skip-bad {self.number}, 'skip_bad' in a configuration, leaves them out)" if can_skip else ""
        raise ValueError(f"{where}: {self.number:,} of {n_rows:,} rows cannot be read{skip}{remedies}:{listed}")

    def write(self, path: Path) -> None:
        """Write a tab-separated list of the bad rows: place, column and reason."""
        with storage.replacing(path) as stream:
            stream.write("row\tcolumn\twhy\n")
            for place, column, message, _ in self.first:
                stream.write("\t".join((place_text(place), column or "", " ".join(message.split()))) + "\n")


def corpus_of_rows(
    make: Make,
    where: str,
    rows: Iterable[tuple[Any, Sequence[Any] | Fault]],
    layout: Layout,
    vocabulary: Sequence[str] | None = None,
    rule: VocabularyRule | None = None,
    bad: BadRows | None = None,
    decimal_comma: bool = False,
    followed: Sequence[str] | None = None,
) -> tuple[Any, list[Dropped]]:
    """Build a corpus from rows of cells.

    Parameters
    ----------
    make : callable
        The class Corpus.
    where : str
        Name of the source in messages.
    rows : iterable
        Place (line number, or text) of each row, and its cells in the order of ``layout.columns`` or a Fault.
    layout : Layout
        Roles of the columns.
    vocabulary : sequence of str, optional
        The words to count, in column order. By default, all words are counted that ``rule`` selects.
    rule : VocabularyRule, optional
        Rule by which words are selected. A rule and a ``vocabulary`` must not be given together.
    bad : BadRows, optional
        Collector of bad rows.
    decimal_comma : bool, optional
        Whether numbers may have a decimal comma.
    followed : sequence of str, optional
        Words of an earlier corpus or a model, which become the words of the corpus if no document has a word.

    Returns
    -------
    corpus : Corpus
        Documents in the order of the rows, including documents without words.
    dropped : list of Dropped
        The parts left out, with reasons.

    Raises
    ------
    ValueError
        If there are too many bad rows. The message has the source, and place, column and fault of bad rows.
    """
    if vocabulary is not None and rule is not None:
        raise ValueError("min_df, max_df and max_features cannot be given with a vocabulary, which is used as it is")
    bad = BadRows() if bad is None else bad
    parts = _Parts(layout, vocabulary, decimal_comma)
    appenders = [part.append for part in parts]

    def take(place: Any, cells: list[Any]) -> None:
        for append, cell in zip(appenders, cells, strict=True):
            append(cell)

    n_rows = gather(rows, list(parts), take, bad)
    bad.check(where, n_rows)
    if n_rows == 0:
        raise ValueError(f"{where} has no documents")
    counts, words = parts.content.builder.finish()
    dropped = [
        Dropped("documents", bad.number, "bad rows"),
        *layout.missing.dropped(),
        Dropped("tokens", parts.content.builder.outside, "of a word that the given vocabulary lacks"),
    ]
    if vocabulary is None:
        counts, words, by_rule = (rule or VocabularyRule()).apply(counts, words)
        dropped += by_rule
    contexts: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    for name, context in parts.contexts.items():
        if isinstance(context, Numbers):
            contexts[name] = context.take()
            continue
        contexts[name], names[name] = context.builder.finish()
        if name in layout.rare:
            contexts[name], names[name], rare = layout.rare[name].apply(name, contexts[name], names[name])
            dropped += rare
    labels, label_names = _labels(where, parts.labels[0], layout) if parts.labels else (None, None)
    dropped += [
        Dropped(f"characters of {one.column!r}", one.replaced, "control characters, each replaced by U+FFFD")
        for one in parts.facts
    ]
    dropped = [one for one in dropped if one.number]
    if followed is not None and not words:
        counts, words = sp.csr_matrix((counts.shape[0], len(followed)), dtype=np.int32), list(followed)
    elif counts.nnz == 0 and not (contexts and words):
        raise ValueError(
            f"{where}, column {layout.content!r}: {_without_words(layout, parts.content.builder.outside, dropped)}"
        )
    corpus = make(
        damped(counts, layout.word_counts),
        words,
        contexts=contexts,
        labels=labels,
        documents=pd.DataFrame({one.column: one.values for one in parts.facts}) if parts.facts else None,
        context_names=names,
        label_names=label_names,
    )
    return corpus, dropped


class _Parts:
    """Parsers of the cells of each column, in the order of ``layout.columns``."""

    def __init__(self, layout: Layout, vocabulary: Sequence[str] | None, decimal_comma: bool) -> None:
        plain = layout.tokeniser.for_contexts()
        content = layout.reader(layout.content, layout.content_kind, layout.tokeniser, is_content=True)
        self.content = Names(layout.content, content, vocabulary)
        self.contexts: dict[str, Names | Numbers] = {
            name: Numbers(one.column, one.kind, layout.missing, layout.date_format, decimal_comma)
            if one.kind in NUMBERS
            else Names(one.column, layout.reader(one.column, one.kind, plain))
            for name, one in layout.contexts.items()
        }
        self.labels = [Labels(one, layout.reader(one, "bag", plain)) for one in [layout.labels] if one]
        self.facts = [Facts(layout.id, layout.missing, unique=True)] if layout.id else []
        self.facts += [Facts(column, layout.missing) for column in layout.keep]

    def __iter__(self) -> Iterator[Any]:
        return iter([self.content, *self.contexts.values(), *self.labels, *self.facts])


def gather(
    rows: Iterable[tuple[Any, Sequence[Any] | Fault]],
    parts: Sequence[Any],
    take: Callable[[Any, list[Any]], None],
    bad: BadRows,
    what: str = "documents",
) -> int:
    """Parse rows, and return the number of rows.

    ``take`` is called with the place and the parsed cells of each valid row; it may reject a row by ValueError.
    """
    n_rows = 0
    parsers = [(part.column, part.parse, part.remedy) for part in parts]
    with work(f"reading {what}", unit=what) as progress:
        for place, values in rows:
            n_rows += 1
            progress.advance()
            if isinstance(values, Fault):
                bad.add([BadRow(place, None, *values)])
                continue
            parsed, faults = [], []
            for (column, parse, remedy), value in zip(parsers, values, strict=True):
                try:
                    parsed.append(parse(value, place))
                except ValueError as error:
                    faults.append(BadRow(place, column, str(error), remedy))
            if not faults:
                try:
                    take(place, parsed)
                except ValueError as error:
                    faults.append(BadRow(place, None, str(error)))
            if faults:
                bad.add(faults)
    return n_rows


def _without_words(layout: Layout, outside: int, dropped: Sequence[Dropped]) -> str:
    """Return the reason why no document has a word, for a message."""
    if outside or any(one.what in ("words", "tokens") for one in dropped):
        return "the vocabulary keeps none of its words"
    rule = f"; running text is cut into {layout.tokeniser}"
    return "no document has a word" + (rule if layout.content_kind == "text" else "")


def _labels(where: str, column: Labels, layout: Layout) -> tuple[Any, list[str] | None]:
    """Return labels and their names.

    Labels are numbers (J,) if each document has one label, otherwise memberships (J, L). Labels are None if the column
    is optional and a document has no label.
    """
    counts, names = column.builder.finish()
    membership = damped(counts, "presence")
    lengths = np.diff(membership.indptr)
    if (lengths == 1).all():
        return membership.indices.astype(np.int64), names
    if column.without:
        if column.column in layout.optional:
            return None, None
        n, of = len(column.without), len(lengths)
        gaps = f" ({n:,} of {of:,} documents have none)" if n > 1 else ""
        codes = ", ".join(map(repr, layout.missing.read.get(column.column, ())))
        hint = f"; {codes} is read as missing (--missing none reads it as a name)" if codes else ""
        raise ValueError(
            f"{where}, {place_text(column.without[0])} has no value in column {column.column!r}{gaps}; each document "
            f"needs a label{hint}"
        )
    return membership, names
