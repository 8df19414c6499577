"""Sparse counts n_kd of words d in clusters k: a hash table with open addressing and 64-bit slots.

A slot contains the key k V + d of a *cell* (a pair of a cluster and a word) in its high bits, and the count in its low
bits. An empty slot is 0, and cells with count 0 are not stored. The table uses linear probing, is at most 70% full, and
grows by a third. After growth, it needs between 11.4 and 15.3 bytes per non-zero cell, for any V and K. During growth,
the old and the new table are both in memory.

The contents of the table do not depend on the order of additions and removals, but the positions of cells do.
Therefore, no result may depend on the order of slots.

The log evidence of a document in one cluster needs one lookup per distinct word of the document. Kernels have named
tuples as arguments: ``documents`` has the fields of :class:`.components.DocumentCells`, and ``clusters`` has the fields
of :class:`.components.ClusterSizes`. ``constants`` has the entries of :func:`evidence_constants`.
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

#: largest fraction of slots in use
MAX_LOAD = 0.7
#: a table with more bytes per non-zero cell is replaced by a smaller table
MAX_BYTES_PER_CELL = 16
_GROWTH = 4.0 / 3.0
_MIN_SLOTS = 64
_32 = np.uint64(32)
_EMPTY = np.uint64(0)


def count_bits(n_clusters: int, n_words: int, largest: int) -> int:
    """Return the number of low bits of a slot that store the count; ``largest`` is the largest count of a cell.

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
    """Return an empty table for ``n_cells`` non-zero cells, (S,) uint64."""
    return np.zeros(max(_MIN_SLOTS, int(n_cells / MAX_LOAD) + 1), dtype=np.uint64)


@numba.njit(inline="always")
def preferred_slot(key, size):
    """Return the slot at which the search for a key begins, in a table of ``size`` < 2**32 slots."""
    return np.int64(((streams.mix(key) >> _32) * np.uint64(size)) >> _32)


@numba.njit(inline="always")
def count_at(slots, shift, key):
    """Return the count of the cell ``key`` (uint64), int64; ``shift`` is the number of count bits (uint64)."""
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
    """Empty slot ``i``, and shift later cells of its run, so that linear probing still finds them."""
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
    """Add ``change`` to the count of the cell ``key``, and return the count before.

    ``used`` (1,) int64 is the number of non-zero cells, which is updated. The caller must make sure that the table has
    a free slot and that the count does not fall below 0.
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
    """Return a smaller table with the same ``n_cells`` cells if ``slots`` uses more than 16 bytes per cell."""
    if slots.nbytes <= MAX_BYTES_PER_CELL * max(n_cells, _MIN_SLOTS):
        return slots
    new = empty_table(n_cells)
    _rehash(slots, shift, new)
    return new


# -- documents and cells --------------------------------------------------------------------------------------------


@kernel
def count_documents(documents, shift, n_words, slots, used, cluster, first):
    """Add the word counts of documents from ``first`` on to their clusters.

    Returns the first document for which the table must grow, or the number of documents.
    """
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
    """Return the sum of ln G(n + a) - ln G(a) over all counts n, in units of 1 / JOINT_UNIT.

    Terms are rounded to integers, so the sum does not depend on their order.
    """
    table, prior, shift = constants.log_gamma, constants.topic_word_prior, constants.shift
    total = np.int64(0)
    if constants.component == GAUSSIAN:
        return total
    for slot in slots:
        if slot:
            n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
            total += np.int64((log_gamma_of(table, prior, n) - table[0]) * JOINT_UNIT)
    return total


# -- log evidence of a document -------------------------------------------------------------------------------------

#: number of counts whose log-gamma is tabulated; the tables (192 kB) stay in the second-level cache
N_TABULATED = 1 << 14


def evidence_constants(corpus: Corpus, settings: ChainSettings) -> dict[str, Any]:
    """Return the constants that kernels need for log evidence, by name; ``shift`` is the number of count bits.

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
    """Prefetch the cells of document j in cluster k, because a large table is not in the caches."""
    words, first_key = documents.words, np.uint64(k) * np.uint64(n_words)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        prefetch(slots, preferred_slot(first_key + np.uint64(words[cell]), slots.size))


@inner_kernel
def words_in(documents, slots, constants, j, k, is_inside):
    """Return the sum of word terms of document j in cluster k, and its contribution to the squares of the cluster.

    ``is_inside`` is 1 if the counts of the cluster include the document, which is then removed; otherwise 0.
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
    """Return the log evidence of document j in cluster k without the document; ``is_inside`` as in :func:`words_in`."""
    words, squares = words_in(documents, slots, constants, j, k, is_inside)
    mass = documents.mass[j]
    n_documents, others = clusters.n_k[k] - is_inside, clusters.mass[k] - is_inside * mass
    return log_evidence(constants, n_documents, others, clusters.squares[k] - squares, words, mass)


# -- a state -------------------------------------------------------------------------------------------------------
class CountedState(MixtureState):
    """Base class of states that store the counts of words in clusters in a hash table.

    Attributes
    ----------
    documents, clusters, constants : arguments of kernels, see the module docstring
    slots : (S,) uint64, hash table of counts
    used : (1,) int64, number of non-zero cells
    """

    documents: Any
    constants: Any
    slots: np.ndarray
    used: np.ndarray

    @property
    @abstractmethod
    def chain(self) -> Any:
        """Arguments of the sweep kernels, including documents, clusters and constants."""

    @property
    def _data(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        return self.chain, self.slots, self.used, self.cluster

    def _count(self, room: int = 0) -> None:
        """Build the table of counts from the current assignments, with initial space for ``room`` cells."""
        self.slots, self.used = empty_table(room), np.zeros(1, np.int64)
        data = self.documents, self.constants.shift, self.constants.n_words
        self._go_through(
            0, len(self.cluster), lambda first: count_documents(*data, self.slots, self.used, self.cluster, first)
        )

    def _go_through(self, first: int, stop: int, go_on: Callable[[int], int]) -> None:
        """Call ``go_on`` repeatedly until it has processed all documents from ``first`` to ``stop`` - 1.

        ``go_on(first)`` processes documents from ``first`` on, and returns the document at which the table must grow.
        """
        while (first := go_on(first)) < stop:
            self._refuse_unfinished(first)
            words = int(self.documents.indptr[first + 1] - self.documents.indptr[first])
            self.slots = grown(self.slots, self.constants.shift, int(self.used[0]) + words)

    def _shrink(self) -> None:
        """Free the memory that the table does not need."""
        self.slots = shrunk(self.slots, self.constants.shift, int(self.used[0]))

    @property
    def log_joint(self) -> float:
        cells = log_cells(self.slots, self.constants) / JOINT_UNIT
        sizes = self.clusters.n_k, self.clusters.mass, self.clusters.squares
        return log_joint_of_sizes(self.settings, self.constants.n_words, len(self.cluster), *sizes) + cells
