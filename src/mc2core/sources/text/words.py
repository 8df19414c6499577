"""Words of many texts, counted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp


def count_words(texts: Iterable[Iterable[str]]) -> tuple[sp.csr_matrix, list[str]]:
    """Count the words of each text: ((J, A) int32 counts, the A distinct words in alphabetical order)."""
    column: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for words in texts:
        columns.extend(column.setdefault(word, len(column)) for word in words)
        ends.append(len(columns))
    names = sorted(column)
    rank = np.empty(len(names), dtype=np.int32)
    rank[[column[word] for word in names]] = np.arange(len(names), dtype=np.int32)
    counts = sp.csr_matrix(
        (np.ones(len(columns), dtype=np.int32), rank[columns], np.array(ends)),
        shape=(len(ends) - 1, len(names)),
    )
    counts.sum_duplicates()
    return counts, names
