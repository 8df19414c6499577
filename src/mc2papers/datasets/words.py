"""Count the words of many texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import scipy.sparse as sp

from mc2core.corpus.building.counts import CountsBuilder


def count_words(texts: Iterable[Iterable[str]]) -> tuple[sp.csr_matrix, list[str]]:
    """Return (J, A) int32 counts of the words of each text, and the A distinct words in alphabetical order."""
    builder = CountsBuilder()
    for words in texts:
        builder.add(Counter(words))
    return builder.finish()
