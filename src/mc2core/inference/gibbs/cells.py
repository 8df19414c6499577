"""The corpus word by word, as sweeps over tokens visit it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel


class WordCells(NamedTuple):
    """The corpus seen word by word: cell = one (document, word) pair with a positive count.

    Cells of word w are ``start[w]:start[w + 1]``, in ascending order of documents.
    """

    start: np.ndarray  # (V + 1,) int64
    document: np.ndarray  # (cells,) int32
    token: np.ndarray  # (cells,) int64: its first token in CSR order
    counts: np.ndarray  # (cells,) int32: its tokens, which follow each other
    largest: int  # tokens of the most frequent word
    widest: int  # documents of the most widespread word


@kernel
def _transpose(indptr, indices, counts, start, document, token, count):
    n_tokens = 0
    for j in range(indptr.size - 1):
        for cell in range(indptr[j], indptr[j + 1]):
            place = start[indices[cell]]
            start[indices[cell]] += 1
            document[place] = j
            token[place] = n_tokens
            count[place] = counts[cell]
            n_tokens += counts[cell]


def word_cells(indptr: np.ndarray, indices: np.ndarray, counts: np.ndarray, n_words: int) -> WordCells:
    """Transpose a canonical CSR matrix of counts (J, V) into cells grouped by word."""
    documents_of = np.bincount(indices, minlength=n_words)
    tokens_of = np.bincount(indices, weights=counts, minlength=n_words)
    start = np.concatenate([[0], np.cumsum(documents_of, dtype=np.int64)])
    cells = len(indices)
    document, count = np.empty(cells, np.int32), np.empty(cells, np.int32)
    token = np.empty(cells, np.int64)
    _transpose(indptr, indices, counts, start[:-1].copy(), document, token, count)
    largest, widest = int(tokens_of.max(initial=0)), int(documents_of.max(initial=0))
    return WordCells(start, document, token, count, largest, widest)


@kernel
def order_by_cluster(document, cluster, work_count, work_order):
    """Stable counting sort of a word's cells by their documents' clusters, at least 0: ``work_order`` gets the order.

    ``work_count`` (largest cluster + 2,) int64 zeros, left as zeros.
    """
    cells = document.size
    in_order = True
    highest = 0
    for c in range(cells):
        k = cluster[document[c]]
        if c > 0 and k < cluster[document[c - 1]]:
            in_order = False
        highest = max(highest, k)
        work_order[c] = c
    if in_order:
        return
    for c in range(cells):
        work_count[cluster[document[c]] + 1] += 1
    for k in range(1, highest + 1):
        work_count[k] += work_count[k - 1]
    for c in range(cells):
        k = cluster[document[c]]
        work_order[work_count[k]] = c
        work_count[k] += 1
    for k in range(highest + 2):
        work_count[k] = 0
