"""Collection of bags of names, one document after another, and the rule for selecting words."""

from __future__ import annotations

import collections
import itertools
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import counted, finite, whole
from mc2core.corpus.checks import csr_of
from mc2core.corpus.row_blocks import Growing, by_rows, count_columns

MAX_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Dropped:
    """Number of items (``what``, such as "documents" or "tokens") that a reader left out, and the reason ``why``."""

    what: str
    number: int
    why: str

    def __str__(self) -> str:
        return f"{counted(self.number, self.what)}: {self.why}"


class CountsBuilder:
    """Collects rows of named counts, with eight bytes per distinct name of a row, in a temporary file if large.

    Parameters
    ----------
    names : sequence of str, optional
        Names of the columns, in order. By default, all names get columns, in alphabetical order.
    others : str, optional
        Name in ``names`` as which other names are counted. By default, other names are left out. The attribute
        ``outside`` is the number of counts of other names.
    """

    def __init__(self, names: Sequence[str] | None = None, others: str | None = None) -> None:
        self._names = None if names is None else list(names)
        self._others = others if others in (names or ()) else None
        self._column: dict[str, int] = collections.defaultdict(itertools.count().__next__)
        self._column.update((name, column) for column, name in enumerate(names or ()))
        self.outside = 0
        self._start()

    def _start(self) -> None:
        self._columns, self._counts, self._ends = Growing(), Growing(), array("q", [0])

    def add(self, bag: Mapping[str, int]) -> None:
        """Append a row. Counts must be between 0 and ``MAX_COUNT``."""
        column_of = self._column
        if self._names is not None:
            inside = {name: count for name, count in bag.items() if name in column_of}
            outside = sum(bag.values()) - sum(inside.values())
            if outside and self._others is not None:
                inside[self._others] = inside.get(self._others, 0) + outside
            self.outside += outside
            bag = inside
        if 0 in bag.values():
            bag = {name: count for name, count in bag.items() if count}
        self._columns.extend(list(map(column_of.__getitem__, bag)))
        self._counts.extend(bag.values())
        self._ends.append(len(self._columns))

    def finish(self) -> tuple[sp.csr_matrix, list[str]]:
        """Return the counts of the rows since the last call, (rows, A) int32 CSR, and the A names."""
        names = sorted(self._column) if self._names is None else self._names
        rank = None
        if self._names is None:
            rank = np.empty(len(names), dtype=np.int32)
            rank[[self._column[name] for name in names]] = np.arange(len(names), dtype=np.int32)

        def ordered(counts: sp.csr_matrix) -> sp.csr_matrix:
            indices = counts.indices if rank is None else rank[counts.indices]
            counts = sp.csr_matrix((counts.data, indices, counts.indptr), shape=counts.shape)
            counts.sum_duplicates()
            return counts

        table = by_rows(ordered, csr_of(np.array(self._ends), self._columns.all(), self._counts.all(), len(names)))
        self._start()
        return table, names


WORD_COUNTS = ("raw", "presence", "log")


def damped(counts: sp.csr_matrix, how: str) -> sp.csr_matrix:
    """Return ``counts`` (J, V) with fewer repetitions of words, for models in which each token counts separately.

    A count n is replaced by 1 if ``how`` is "presence", and by 1 + floor(log2(n)) if ``how`` is "log". "raw" changes
    nothing.
    """
    if how == "raw":
        return counts

    def of_rows(counts: sp.csr_matrix) -> sp.csr_matrix:
        damped = counts.copy()
        # frexp gives n = fraction * 2**exponent with a fraction in [1/2, 1); the exponent is 1 + floor(log2 n)
        damped.data = np.ones_like(counts.data) if how == "presence" else np.frexp(counts.data)[1].astype(np.int32)
        return damped

    return by_rows(of_rows, counts)


@dataclass(frozen=True)
class VocabularyRule:
    """Rule by which words are selected.

    min_df : smallest number of documents with the word.
    max_df : largest share of documents with the word.
    max_features : largest number of words; the words with the most tokens are kept (ties in alphabetical order).
    """

    min_df: int = 1
    max_features: int | None = None
    max_df: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < finite("max_df", self.max_df) <= 1:
            raise ValueError(f"max_df is {self.max_df}; it must be above 0 and at most 1")
        for name in ("min_df", "max_features"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))

    def apply(self, counts: sp.csr_matrix, words: Sequence[str]) -> tuple[sp.csr_matrix, list[str], list[Dropped]]:
        """Return the counts and names of selected words, in order, and the numbers of words and tokens left out."""
        spread, totals = count_columns(counts)
        rare = spread < self.min_df
        common = spread > self.max_df * counts.shape[0]
        support = np.flatnonzero(~(rare | common))
        if self.max_features is not None:
            # words are in alphabetical order, which a stable sort keeps among ties
            support = np.sort(support[np.argsort(-totals[support], kind="stable")[: self.max_features]])
        beyond = ~(rare | common)
        beyond[support] = False
        dropped = []
        for mask, why in (
            (rare, f"in fewer than {self.min_df} documents"),
            (common & ~rare, f"in more than {100 * self.max_df:g}% of the documents"),
            (beyond, f"not among the {self.max_features} most frequent words"),
        ):
            dropped += [Dropped("words", int(mask.sum()), why)]
            dropped += [Dropped("tokens", int(totals[mask].sum()), f"of a word {why}")]
        kept_counts = counts if len(support) == len(words) else by_rows(lambda rows: rows[:, support], counts)
        return kept_counts, [words[word] for word in support.tolist()], [one for one in dropped if one.number]
