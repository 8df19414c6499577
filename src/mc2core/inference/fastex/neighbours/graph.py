"""Each document's nearest documents by the rare words they share, from an inverted index read to a budget.

Words are read in ascending document frequency, from two documents on, equally frequent ones in a keyed order: whole
lists, the first in any case, as long as they fit into the budget together. Each adds log(J / df) to the documents on
it; those with the largest sums are the neighbours, the last places among equal sums being drawn by a keyed hash. A
first list beyond the budget is read in part: documents stand in a keyed order, and each reads on from its own place,
around the end. So no more entries than the budget are read for a document, no pair of documents is stored, and the
result depends on corpus, settings and seed alone.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import prefetch
from mc2core.compute.threads import in_blocks

#: stands for a neighbour where fewer were found; these come last
NOBODY = -1
_BLOCK = 2000  # documents whose neighbours one thread looks for at a time
_PARTS = 4  # of the documents, from which threads build the index
_PREFETCH_LINES = 4  # of the list that is read next
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: the high bits of its multiples are spread evenly
_PURPOSE = "fastex neighbours"


class Index(NamedTuple):
    """Documents by word. R words are read: those of at least two documents, and not of all."""

    order: np.ndarray  # (J,) int32: the document at each place
    rank: np.ndarray  # (V,) int32: number of a word in the order of reading, -1 of one that is not read
    starts: np.ndarray  # (R + 1,) int64: the list of word r is lists[starts[r]:starts[r + 1]]
    lists: np.ndarray  # (entries,) int32: places of documents, ascending
    gain: np.ndarray  # (R,) float32: log(J / df)


class Sums(NamedTuple):
    """Sums of gains of the documents on a document's lists: an open hash table of a power of 2 of slots."""

    places: np.ndarray  # (S,) int32, NOBODY in empty slots
    totals: np.ndarray  # (S,) float32
    touched: np.ndarray  # (S,) int32: slots in use, in the order of their first entries


def index_bytes(content: sp.csr_matrix) -> int:
    """Bytes of the :class:`Index` of (J, V) ``content``, at most."""
    return 4 * content.nnz + (24 + 8 * _PARTS) * content.shape[1] + 16 * content.shape[0]


def is_read(frequency: np.ndarray, n_documents: int) -> np.ndarray:
    """(V,) bool: words whose lists tell one document from another, by their document frequency."""
    return (frequency >= 2) & (frequency < n_documents)


def find_neighbours(
    content: sp.csr_matrix, n_neighbours: int, list_budget: int, seed: int, pool: Executor | None = None
) -> np.ndarray:
    """(J, n_neighbours) int32: neighbours of each document, never itself; :data:`NOBODY` where there are fewer."""
    index = _build_index(content, seed, pool)
    indptr, words = content.indptr.astype(np.int64), np.ascontiguousarray(content.indices, dtype=np.int32)
    found = np.full((content.shape[0], n_neighbours), NOBODY, np.int32)
    key = streams.key(seed, _PURPOSE)

    def find(first: int, last: int) -> None:
        _find(key, first, last, indptr, words, index, list_budget, found)

    in_blocks(pool, find, content.shape[0], _BLOCK)
    return found


def refuse_graph(neighbours: np.ndarray) -> None:
    """ValueError where a graph that was stored has a document as its own neighbour, or gaps between neighbours."""
    is_own = (neighbours == np.arange(len(neighbours))[:, None]).any(axis=1)
    if is_own.any():
        raise ValueError(f"'neighbours' names document {np.argmax(is_own)} as its own neighbour")
    has_gap = ((neighbours[:, 1:] >= 0) & (neighbours[:, :-1] < 0)).any(axis=1)
    if has_gap.any():
        raise ValueError(f"'neighbours' has gaps in the row of document {np.argmax(has_gap)}")


def _build_index(content: sp.csr_matrix, seed: int, pool: Executor | None) -> Index:
    n_documents, n_words = content.shape
    indptr, words = content.indptr.astype(np.int64), content.indices
    rng = streams.generator(seed, _PURPOSE)
    order = rng.permutation(n_documents).astype(np.int32)
    part = -(-n_documents // _PARTS)
    ends = np.zeros((_PARTS, n_words), np.int64)  # where a part's places on a word's list end so far; counts at first

    def count(first: int, last: int) -> None:
        _count_words(first, last, indptr, words, order, ends[first // part])

    def fill(first: int, last: int) -> None:
        _fill_lists(first, last, indptr, words, order, ends[first // part], lists)

    in_blocks(pool, count, n_documents, part)
    frequency = ends.sum(axis=0)
    keyed = np.empty(n_words, np.int64)
    keyed[rng.permutation(n_words)] = np.arange(n_words)
    by_frequency = _in_order(frequency, keyed, n_documents)
    read = by_frequency[is_read(frequency[by_frequency], n_documents)]
    rank = np.full(n_words, -1, np.int32)
    rank[read] = np.arange(len(read))
    starts = np.concatenate([[0], np.cumsum(frequency[read])])
    begin = np.zeros(n_words, np.int64)
    begin[read] = starts[:-1]
    for of_part in ends:
        begin += of_part
        np.subtract(begin, of_part, out=of_part)
    ends[:, rank < 0] = -1
    lists = np.empty(starts[-1], np.int32)
    in_blocks(pool, fill, n_documents, part)
    return Index(order, rank, starts, lists, np.log(n_documents / frequency[read]).astype(np.float32))


@kernel
def _count_words(first, last, indptr, words, order, counts):
    """Add the documents at places ``first`` to ``last - 1`` to the ``counts`` (V,) of their words."""
    for place in range(first, last):
        j = order[place]
        for cell in range(indptr[j], indptr[j + 1]):
            counts[words[cell]] += 1


@kernel
def _in_order(frequency, keyed, n_documents):
    """Words in ascending frequency, equally frequent ones in the order of ``keyed``: a counting sort."""
    ends = np.zeros(n_documents + 2, np.int64)
    for frequency_of_one in frequency:
        ends[frequency_of_one + 1] += 1
    ends = ends.cumsum()
    ordered = np.empty_like(keyed)
    for word in keyed:
        ordered[ends[frequency[word]]] = word
        ends[frequency[word]] += 1
    return ordered


@kernel
def _fill_lists(first, last, indptr, words, order, ends, lists):
    """Write the places ``first`` to ``last - 1`` to the lists of their words, from ``ends`` (V,) on; -1: not read."""
    for place in range(first, last):
        j = order[place]
        for cell in range(indptr[j], indptr[j + 1]):
            entry = ends[words[cell]]
            if entry >= 0:
                lists[entry] = place
                ends[words[cell]] = entry + 1


@kernel
def _find(key, first, last, indptr, words, index, budget, found):
    """Fill the rows of ``found`` that belong to the documents at places ``first`` to ``last - 1``."""
    order, rank, starts, lists = index.order, index.rank, index.starts, index.lists
    n_neighbours, n_slots = found.shape[1], 64
    while n_slots < 2 * min(budget, order.size):
        n_slots *= 2
    # sums by place, in a table that stays in the caches: one of all documents would not
    sums = Sums(np.full(n_slots, NOBODY, np.int32), np.zeros(n_slots, np.float32), np.empty(n_slots, np.int32))
    own = np.empty(64, np.int32)
    best, score, tie = np.empty(n_neighbours, np.int64), np.empty(n_neighbours, np.float32), np.empty(n_neighbours)
    for place in range(first, last):
        j = order[place]
        n_cells = indptr[j + 1] - indptr[j]
        if n_cells > own.size:
            own = np.empty(2 * n_cells, np.int32)
        n_own = 0
        for cell in range(indptr[j], indptr[j + 1]):
            r = rank[words[cell]]
            if r >= 0:
                own[n_own] = r
                n_own += 1
        own[:n_own].sort()
        n_touched = n_entries = 0
        for i in range(n_own):
            length = starts[own[i] + 1] - starts[own[i]]
            if i > 0 and n_entries + length > budget:
                break
            if i + 1 < n_own:
                for line in range(0, 16 * _PREFETCH_LINES, 16):
                    prefetch(lists, starts[own[i + 1]] + line)
            n_entries += length
            n_touched = _add_list(index, own[i], place, budget, sums, n_touched)
        n_best = 0
        for i in range(n_touched):
            slot = sums.touched[i]
            other, total = np.int64(sums.places[slot]), sums.totals[slot]
            sums.places[slot], sums.totals[slot] = NOBODY, 0.0
            n_best = _keep_best(key, place, other, total, order.size, best, score, tie, n_best)
        for i in range(n_best):
            found[j, i] = order[best[i]]


@kernel
def _add_list(index, r, place, budget, sums, n_touched):
    """Add word r's gain to the places on its list, but for ``place``; returns how many are touched now."""
    lists, gain, places, totals, touched = index.lists, index.gain[r], sums.places, sums.totals, sums.touched
    mask = np.uint64(places.size - 1)
    begin, end = index.starts[r], index.starts[r + 1]
    entry = begin
    if end - begin > budget:
        entry += np.searchsorted(lists[begin:end], place)
    for _ in range(min(end - begin, budget)):
        if entry == end:
            entry = begin
        other = lists[entry]
        entry += 1
        if other == place:
            continue
        slot = (np.uint64(other) * _SPREAD >> np.uint64(32)) & mask
        while places[slot] != other and places[slot] != NOBODY:
            slot = (slot + np.uint64(1)) & mask
        if places[slot] == NOBODY:
            places[slot] = other
            touched[n_touched] = slot
            n_touched += 1
        totals[slot] += gain
    return n_touched


@kernel
def _keep_best(key, place, other, total, n_documents, best, score, tie, n_best):
    """Put ``other`` among the ``best`` if it belongs there; returns how many these are.

    The last of ``best`` is the worst of them once all have been found.
    """
    full = n_best == best.size
    worst = best.size - 1
    if full and total < score[worst]:
        return n_best
    own_tie = np.float64(streams.mix(key + np.uint64(place) * np.uint64(n_documents) + np.uint64(other)))
    if full and total == score[worst] and own_tie <= tie[worst]:
        return n_best
    i = worst if full else n_best
    while i > 0 and (score[i - 1] < total or (score[i - 1] == total and tie[i - 1] < own_tie)):
        best[i], score[i], tie[i] = best[i - 1], score[i - 1], tie[i - 1]
        i -= 1
    best[i], score[i], tie[i] = other, total, own_tie
    return n_best + (not full)
