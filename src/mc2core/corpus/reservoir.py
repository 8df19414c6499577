"""A uniform sample of bounded size from a stream of documents (Vitter 1985, algorithm R).

Every document so far is in the sample with the same probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus.corpus import Corpus

#: number of documents in the sample
MOST = 2000
_PREFIX = "kept."


def places(n_before: int, n_new: int, most: int) -> np.ndarray:
    """Return (n,) int64, the documents of the sample after ``n_new`` documents follow ``n_before`` earlier ones.

    An earlier document is identified by its place in the sample, and new document i by the size of the sample plus i.
    """
    number = n_before + np.arange(n_new)
    chance = streams.generator(0, "documents kept", n_before).random(n_new)
    position = np.where(number < most, number, (chance * (number + 1)).astype(np.int64))
    n_kept = min(n_before, most)
    rows = np.arange(min(n_before + n_new, most))
    new = np.flatnonzero(position < most)
    rows[position[new]] = n_kept + new  # of two at a place the later one stays
    return rows


def sample(corpus: Corpus) -> Corpus:
    """Return the sample of the documents of a first corpus."""
    return corpus.subset(places(0, corpus.n_documents, MOST)) if corpus.n_documents > MOST else corpus


def update(kept: Corpus, n_before: int, new: Corpus) -> Corpus:
    """Return the sample after the documents ``new``, which follow ``n_before`` others and have the same columns."""
    rows = places(n_before, new.n_documents, MOST)
    contexts = {name: _rows_of(one, new.contexts[name], rows) for name, one in kept.contexts.items()}
    return kept.with_documents(_rows_of(kept.content, new.content, rows), contexts)


def _rows_of(one: Any, other: Any, rows: np.ndarray) -> Any:
    """Return ``rows`` of two tables, stacked vertically."""
    if sp.issparse(one):
        return sp.csr_matrix(sp.vstack([one, other], format="csr")[rows])
    return np.concatenate([one, other])[rows]


# -- on disk -------------------------------------------------------------------------------------------------------
def pack_reservoir(kept: Corpus) -> dict[str, np.ndarray]:
    """Return words and contexts as plain arrays with names that start with "kept."."""
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
    """Return the sample of :func:`pack_reservoir`, or None. Raises ValueError if the arrays are invalid.

    ``columns``: number of columns of each context of counts; None for numbers and vectors.
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
