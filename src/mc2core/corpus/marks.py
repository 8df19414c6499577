"""Marks by which it is seen that a document came before: of its id, or where there is none of what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from mc2core.corpus.building.columns import POOLED

if TYPE_CHECKING:
    from mc2core.corpus import Corpus

# documents that are looked at together
_BLOCK = 10_000


def marks_of(
    corpus: Corpus,
    words: Iterable[str] | None = None,
    contexts: Mapping[str, Iterable[str] | None] | None = None,
) -> np.ndarray:
    """(J,) int64, one number for each document, the same for the same document in whatever columns.

    The id is in the column of ``documents`` that the import called so, or else in the column ``id``. Where there is
    none, documents with the same counts of all words, the same names and the same numbers have the same mark. Two
    others have the same with probability 2^-64.

    Parameters
    ----------
    words : those that are looked at; all if not given
    contexts : ``{context: names that are looked at}``, None for numbers; all contexts and names if not given
    """
    column = (corpus.imported or {}).get("settings", {}).get("id", "id")
    named = []
    for block in corpus.document_blocks():
        if column not in block:
            break
        named.append(_named("id", block[column].astype(str)))
    else:
        return np.concatenate(named).view(np.int64)
    if contexts is None:
        contexts = dict.fromkeys(corpus.contexts)
    parts = [(corpus.content, _columns("word", corpus.vocabulary, words))]
    for name in sorted(contexts.keys() & corpus.contexts.keys()):
        context = corpus.contexts[name]
        if sp.issparse(context):
            names = corpus.context_names.get(name) or map(str, range(context.shape[1]))
            parts.append((context, _columns(f"value of {name}", names, contexts[name])))
        else:
            mean, sd = map(np.asarray, corpus.units.get(name, (0.0, 1.0)))
            # to fewer digits than standardising changes
            values = np.float32(context * sd + mean).reshape(corpus.n_documents, -1)
            numbers = sp.csr_matrix(np.where(np.isnan(values), 0, values.view(np.uint32).astype(np.int64) + 1))
            parts.append((numbers, _columns(f"number of {name}", map(str, range(values.shape[1])), None)))
    blocks = range(0, corpus.n_documents, _BLOCK)
    total = [sum(_sums(table, column, first) for table, column in parts) for first in blocks]
    return np.concatenate(total).view(np.int64)


def _named(what: str, names: Iterable[str]) -> np.ndarray:
    """(n,) uint64 of names."""
    digests = (hashlib.blake2b(f"{what} {name}".encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), np.uint64)


def _columns(what: str, names: Iterable[str], known: Iterable[str] | None) -> np.ndarray:
    """(A,) uint64 of the columns with these names, 0 for those that are not looked at.

    What POOLED stands for depends on which columns there are, so it is never looked at.
    """
    names = list(names)
    wanted = set(names if known is None else known) - {POOLED}
    return np.where([name in wanted for name in names], _named(what, names), np.uint64(0))


def _sums(table: sp.csr_matrix, column: np.ndarray, first: int) -> np.ndarray:
    """(documents,) uint64: sums of mixed columns and counts over the rows of the block from ``first`` on."""
    indptr = table.indptr[first : first + _BLOCK + 1]
    begin, end = indptr[0], indptr[-1]
    of = column[table.indices[begin:end]]
    mixed = np.where(of > 0, _mix(of + table.data[begin:end].astype(np.uint64)), np.uint64(0))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return total[indptr[1:] - begin] - total[indptr[:-1] - begin]


def _mix(x: np.ndarray) -> np.ndarray:
    """splitmix64's last steps: sums of what it gives differ where sums of ``x`` do not."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
