"""A uniform random sample of bounded size from a stream of documents (Vitter 1985, algorithm R).

Each document of the stream is in the sample with the same probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus.corpus import Corpus

#: largest number of documents in the sample
MOST = 2000
_PREFIX = "kept."


def places(n_before: int, n_new: int, most: int) -> np.ndarray:
    """Return the documents of the sample after ``n_new`` documents follow ``n_before`` earlier documents, (n,) int64.

    An earlier document is given by its position in the sample, and new document i by the size of the sample plus i.
    """
    number = n_before + np.arange(n_new)
    chance = streams.generator(0, "documents kept", n_before).random(n_new)
    position = np.where(number < most, number, (chance * (number + 1)).astype(np.int64))
    n_kept = min(n_before, most)
    rows = np.arange(min(n_before + n_new, most))
    new = np.flatnonzero(position < most)
    rows[position[new]] = n_kept + new  # if several documents get one position, the last stays
    return rows


def sample(corpus: Corpus) -> Corpus:
    """Return the sample after the documents of the first corpus of the stream."""
    return corpus.subset(places(0, corpus.n_documents, MOST)) if corpus.n_documents > MOST else corpus


def update(kept: Corpus, n_before: int, new: Corpus) -> Corpus:
    """Return the sample after the documents ``new``, given the sample ``kept`` of ``n_before`` earlier documents."""
    rows = places(n_before, new.n_documents, MOST)
    contexts = {name: _rows_of(one, new.contexts[name], rows) for name, one in kept.contexts.items()}
    return kept.with_documents(_rows_of(kept.content, new.content, rows), contexts)


def _rows_of(one: Any, other: Any, rows: np.ndarray) -> Any:
    """Return the rows ``rows`` of two vertically stacked tables."""
    if sp.issparse(one):
        return sp.csr_matrix(sp.vstack([one, other], format="csr")[rows])
    return np.concatenate([one, other])[rows]


# -- on disk -------------------------------------------------------------------------------------------------------
def pack_reservoir(kept: Corpus) -> dict[str, np.ndarray]:
    """Return the words and contexts of the sample as arrays with names that start with "kept."."""
    tables = {"content": kept.content} | {f"context.{name}": one for name, one in kept.contexts.items()}
    arrays: dict[str, np.ndarray] = {}
    for name, table in tables.items():
        if sp.issparse(table):
            parts = ("indptr", "indices", "data")
            arrays |= {f"{_PREFIX}{name}.{part}": np.asarray(getattr(table, part)) for part in parts}
        else:
            arrays[f"{_PREFIX}{name}"] = np.asarray(table)
    return arrays


def unpack_reservoir(
    arrays: Mapping[str, np.ndarray], n_words: int, columns: Mapping[str, int | None]
) -> Corpus | None:
    """Return the sample from the arrays of :func:`pack_reservoir`, or None if there are no such arrays.

    ``columns`` has the number of columns of each context of counts, and None for contexts of numbers and vectors.
    Raises ValueError if the arrays are invalid.
    """
    if f"{_PREFIX}content.indptr" not in arrays:
        return None

    def table(name: str, n_columns: int | None) -> Any:
        if n_columns is None:
            return arrays[f"{_PREFIX}{name}"]
        indptr, indices, data = (arrays[f"{_PREFIX}{name}.{part}"] for part in ("indptr", "indices", "data"))
        return sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))

    contexts = {name: table(f"context.{name}", width) for name, width in columns.items()}
    return Corpus(table("content", n_words), contexts=contexts)
