"""Sparse counts n_kd of words in clusters: one open hash table of 64-bit slots.

A slot holds the cell's key k V + d in its high bits and the count in its low bits; 0 is an empty slot (cells with count
0 are not kept). The table uses linear probing, is at most 70% full, and grows by a third. It needs between 11.4 and
15.3 bytes per non-zero cell after it has grown, for any V and K. While it grows, the old and the new table are both in
memory.

The contents of the table do not depend on the order of additions and removals, but the places of cells do. Therefore,
no result may depend on the order of slots.

A document's log evidence in one cluster takes as many probes of the table as the document has words. Arguments of its
kernels are named tuples: ``documents`` with the fields of :class:`.components.DocumentCells`, ``clusters`` with those
of :class:`.components.ClusterSizes`, ``constants`` with what :func:`evidence_constants` returns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from scipy.special import gammaln

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.simd import prefetch
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import (
    GAUSSIAN,
    JOINT_UNIT,
    ChainSettings,
    log_evidence,
    log_gamma_of,
    log_joint_of_sizes,
    word_term,
)
from mc2core.inference.fastex.state import MixtureState

#: fullest a table gets
MAX_LOAD = 0.7
#: a table larger than this is made smaller
MAX_BYTES_PER_CELL = 16
_GROWTH = 4.0 / 3.0
_MIN_SLOTS = 64
_32 = np.uint64(32)
_EMPTY = np.uint64(0)


def count_bits(n_clusters: int, n_words: int, largest: int) -> int:
    """Return the number of low bits of a slot that hold the count, given the ``largest`` count of a cell.

    Raises ValueError if key and count together do not fit in 64 bits.
    """
    key_bits = max(n_clusters * n_words - 1, 1).bit_length()
    bits = 64 - key_bits
    if largest >= 1 << bits:
        raise ValueError(
            f"{n_clusters} clusters x {n_words} words leave {bits} bits for a count, but a word occurs {largest} times"
        )
    return bits


def empty_table(n_cells: int) -> np.ndarray:
    """Return (S,) uint64 empty slots for ``n_cells`` non-zero cells."""
    return np.zeros(max(_MIN_SLOTS, int(n_cells / MAX_LOAD) + 1), dtype=np.uint64)


@numba.njit(inline="always")
def preferred_slot(key, size):
    """Return the preferred slot of a key in a table of ``size`` < 2**32 slots."""
    return np.int64(((streams.mix(key) >> _32) * np.uint64(size)) >> _32)


@numba.njit(inline="always")
def count_at(slots, shift, key):
    """Count of the cell ``key`` (uint64), int64; 0 if it is not in the table. ``shift``: count bits, uint64."""
    i = preferred_slot(key, slots.size)
    while True:
        slot = slots[i]
        if slot >> shift == key and slot != _EMPTY:
            return np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
        if slot == _EMPTY:
            return np.int64(0)
        i += 1
        if i == slots.size:
            i = 0


@inner_kernel
def _remove(slots, shift, i):
    """Empty slot ``i`` and move later cells of its run up, so that no probe sequence is broken."""
    size = slots.size
    j = i
    while True:
        j = j + 1 if j + 1 < size else 0
        if slots[j] == _EMPTY:
            slots[i] = _EMPTY
            return
        from_home = j - preferred_slot(slots[j] >> shift, size)
        from_hole = j - i
        if from_home < 0:
            from_home += size
        if from_hole < 0:
            from_hole += size
        if from_home >= from_hole:
            slots[i] = slots[j]
            i = j


@inner_kernel
def add_to(slots, shift, key, change, used):
    """Add ``change`` to the cell ``key``; returns its count before. ``used`` (1,) int64 counts non-zero cells.

    The table must have a free slot, and the count may not fall below 0; both are the caller's duty.
    """
    i = preferred_slot(key, slots.size)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    while slots[i] != _EMPTY:
        if slots[i] >> shift == key:
            before = np.int64(slots[i] & mask)
            if before + change == 0:
                used[0] -= 1
                _remove(slots, shift, i)
            else:
                slots[i] = (key << shift) | np.uint64(before + change)
            return before
        i = i + 1 if i + 1 < slots.size else 0
    used[0] += 1
    slots[i] = (key << shift) | np.uint64(change)
    return np.int64(0)


@kernel
def _rehash(old, shift, new):
    for slot in old:
        if slot != _EMPTY:
            i = preferred_slot(slot >> shift, new.size)
            while new[i] != _EMPTY:
                i = i + 1 if i + 1 < new.size else 0
            new[i] = slot


def grown(slots: np.ndarray, shift: np.uint64, n_cells: int) -> np.ndarray:
    """Return a table with the same cells and space for at least ``n_cells`` cells."""
    if n_cells <= MAX_LOAD * len(slots):
        return slots
    new = np.zeros(max(int(len(slots) * _GROWTH), int(n_cells / MAX_LOAD) + 1), dtype=np.uint64)
    _rehash(slots, shift, new)
    return new


def shrunk(slots: np.ndarray, shift: np.uint64, n_cells: int) -> np.ndarray:
    """Return a table with the same ``n_cells`` cells. It is smaller if the table uses more than 16 bytes per cell."""
    if slots.nbytes <= MAX_BYTES_PER_CELL * max(n_cells, _MIN_SLOTS):
        return slots
    new = empty_table(n_cells)
    _rehash(slots, shift, new)
    return new


# -- documents and cells --------------------------------------------------------------------------------------------


@kernel
def count_documents(documents, shift, n_words, slots, used, cluster, first):
    """Add documents first, first + 1, ... to the counts of their clusters; returns the first that has no room."""
    for j in range(first, cluster.size):
        if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
            return j
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            key = np.uint64(cluster[j]) * np.uint64(n_words) + np.uint64(documents.words[cell])
            add_to(slots, shift, key, np.int64(documents.counts[cell]), used)
    return cluster.size


@numba.njit(inline="always")
def cell_of(slot, shift, n_words):
    """Return (cluster, word, count) of a slot in use."""
    key = slot >> shift
    n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
    k = key // np.uint64(n_words)
    return np.int64(k), np.int64(key - k * np.uint64(n_words)), n


@kernel
def log_cells(slots, constants):
    """Sum over cells of ln G(n + a) - ln G(a) in units of 1 / JOINT_UNIT: whole numbers, so the order is free."""
    table, prior, shift = constants.log_gamma, constants.topic_word_prior, constants.shift
    total = np.int64(0)
    if constants.component == GAUSSIAN:
        return total
    for slot in slots:
        if slot:
            n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
            total += np.int64((log_gamma_of(table, prior, n) - table[0]) * JOINT_UNIT)
    return total


# -- a document's log evidence --------------------------------------------------------------------------------------

#: counts whose logarithms are tabulated; 192 kB stay in the second-level cache
N_TABULATED = 1 << 14


def evidence_constants(corpus: Corpus, settings: ChainSettings) -> dict[str, Any]:
    """Return the scalars and a table of a run, by name; ``shift`` is the number of count bits of the sparse counts.

    Raises ValueError if a cell of the sparse counts does not fit into 64 bits.
    """
    totals = np.bincount(corpus.content.indices, weights=corpus.content.data, minlength=corpus.n_words)
    return {
        "component": settings.component,
        "n_words": corpus.n_words,
        "shift": np.uint64(count_bits(settings.n_clusters, corpus.n_words, int(totals.max(initial=0)))),
        "topic_word_prior": settings.topic_word_prior,
        "weight_prior": settings.weight_prior,
        "rate_prior": settings.rate_prior,
        "log_gamma": gammaln(np.arange(N_TABULATED) + settings.topic_word_prior),
    }


@inner_kernel
def fetch_cells(documents, slots, n_words, j, k):
    """Prefetch document j's cells of cluster k. In a table larger than the caches, waiting for each cell in turn is
    slow."""
    words, first_key = documents.words, np.uint64(k) * np.uint64(n_words)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        prefetch(slots, preferred_slot(first_key + np.uint64(words[cell]), slots.size))


@inner_kernel
def words_in(documents, slots, constants, j, k, is_inside):
    """Sum of word terms of document j in cluster k, and its share of the cluster's squares.

    ``is_inside``: 1 where the cluster's counts include the document, which is then taken out; else 0.
    """
    words, counts, table, prior = documents.words, documents.counts, constants.log_gamma, constants.topic_word_prior
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    component = constants.component
    total = 0.0
    squares = np.int64(0)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        x = np.int64(counts[cell])
        n = count_at(slots, shift, first_key + np.uint64(words[cell])) - is_inside * x
        total += word_term(component, table, prior, n, x)
        squares += x * (2 * n + x)
    return total, is_inside * squares


@inner_kernel
def log_evidence_in(documents, clusters, slots, constants, j, k, is_inside):
    """Log evidence of document j in cluster k without it; ``is_inside`` as in :func:`words_in`."""
    words, squares = words_in(documents, slots, constants, j, k, is_inside)
    mass = documents.mass[j]
    n_documents, others = clusters.n_k[k] - is_inside, clusters.mass[k] - is_inside * mass
    return log_evidence(constants, n_documents, others, clusters.squares[k] - squares, words, mass)


# -- a state -------------------------------------------------------------------------------------------------------
class CountedState(MixtureState):
    """A state that keeps the counts of words in clusters in a sparse table.

    Attributes
    ----------
    documents, clusters, constants : arguments of kernels, see the module
    slots, used : the table of counts and its number of non-zero cells
    """

    documents: Any
    constants: Any
    slots: np.ndarray
    used: np.ndarray

    @property
    @abstractmethod
    def chain(self) -> Any:
        """Arguments of kernels: documents, clusters, constants and more."""

    @property
    def _data(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        return self.chain, self.slots, self.used, self.cluster

    def _count(self, room: int = 0) -> None:
        """Count all documents in their current clusters, in a table with initial space for ``room`` cells."""
        self.slots, self.used = empty_table(room), np.zeros(1, np.int64)
        data = self.documents, self.constants.shift, self.constants.n_words
        self._go_through(
            0, len(self.cluster), lambda first: count_documents(*data, self.slots, self.used, self.cluster, first)
        )

    def _go_through(self, first: int, stop: int, go_on: Callable[[int], int]) -> None:
        """Call ``go_on`` from document ``first`` on until it reaches ``stop``; when it halts, the table grows."""
        while (first := go_on(first)) < stop:
            self._refuse_unfinished(first)
            words = int(self.documents.indptr[first + 1] - self.documents.indptr[first])
            self.slots = grown(self.slots, self.constants.shift, int(self.used[0]) + words)

    def _shrink(self) -> None:
        """Give back the room that the table does not need."""
        self.slots = shrunk(self.slots, self.constants.shift, int(self.used[0]))

    @property
    def log_joint(self) -> float:
        cells = log_cells(self.slots, self.constants) / JOINT_UNIT
        sizes = self.clusters.n_k, self.clusters.mass, self.clusters.squares
        return log_joint_of_sizes(self.settings, self.constants.n_words, len(self.cluster), *sizes) + cells
