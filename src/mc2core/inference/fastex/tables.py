"""Tables of counts and log-gammas from which FastEx scores every cluster, in rows and in lists of words."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import Settings, log_gamma_of, word_term
from mc2core.inference.fastex.hashed.passes import JOINT_UNIT
from mc2core.inference.fastex.limits import refuse_beyond_memory

#: a word is frequent that has more than one document for so many clusters; 2 and 16 were measured slower
CLUSTERS_PER_DOCUMENT = 4

#: bytes kept of each cluster beside its counts
BYTES_PER_CLUSTER = 56

_MIN_TABULATED = 1 << 14  # counts whose log-gamma is tabulated, at least


class Cells(NamedTuple):
    """The corpus as the sweep reads it: of each document first the frequent words, then the rare ones."""

    indptr: np.ndarray  # (J + 1,) int64
    rare: np.ndarray  # (J,) int64: where the document's rare words begin
    place: np.ndarray  # (cells,) int64: row of Tables.terms of a frequent word; where the list of a rare one begins
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64, tokens; Gaussian: squared length


class Tables(NamedTuple):
    """Counts n_kd word by word: F frequent words with R rows of terms, and lists of rare words."""

    word: np.ndarray  # (R,) int64: frequent word f of each row
    x: np.ndarray  # (R,) int64: the count in a document that the row is for
    rows: np.ndarray  # (F + 1,) int64: rows of f are rows[f] to rows[f + 1] - 1
    counts: np.ndarray  # (F, K) int32
    terms: np.ndarray  # (R, K) float32
    starts: np.ndarray  # (rare words,) int64: where lists begin
    lists: np.ndarray  # (L, 2) int32: for each rare word (length, 0), then a (cluster, count) for each n_kd > 0


def is_frequent(document_frequency: np.ndarray, n_clusters: int) -> np.ndarray:
    """(V,) bool: words that get rows over the clusters, not lists."""
    return CLUSTERS_PER_DOCUMENT * document_frequency > n_clusters


def count_log_gammas(corpus: Corpus, frequent: np.ndarray) -> int:
    """How many log-gammas are tabulated: those of all counts of words that are not ``frequent``, (V,) bool."""
    totals = np.bincount(corpus.content.indices, weights=corpus.content.data, minlength=corpus.n_words)
    return max(_MIN_TABULATED, int(totals[~frequent].max(initial=0)) + 1)


def table_bytes(corpus: Corpus, n_clusters: int) -> int:
    """Most bytes of tables of counts and terms; a word has no more rows than documents, or its largest count.

    What is tabulated for any corpus is left out.
    """
    frequency = np.bincount(corpus.content.indices, minlength=corpus.n_words)
    frequent = is_frequent(frequency, n_clusters)
    largest_count = np.zeros(corpus.n_words, np.int64)
    np.maximum.at(largest_count, corpus.content.indices, corpus.content.data)
    rows = np.minimum(frequency, largest_count)[frequent]
    beside_rows = int((frequency[~frequent] + 1).sum()) + count_log_gammas(corpus, frequent) - _MIN_TABULATED
    return 4 * n_clusters * int((rows + 1).sum()) + 8 * beside_rows


def build_tables(corpus: Corpus, settings: Settings, mass: np.ndarray) -> tuple[Cells, Tables]:
    """The corpus in the sweep's order, and tables without a document; ValueError where they exceed memory."""
    content, n_clusters = corpus.content, settings.n_clusters
    frequency = np.bincount(content.indices, minlength=corpus.n_words)
    frequent = is_frequent(frequency, n_clusters)
    in_rows = frequent[content.indices]
    unit = int(content.data.max(initial=0)) + 1
    pairs = np.unique(content.indices[in_rows].astype(np.int64) * unit + content.data[in_rows])
    room = np.where(frequent | (frequency == 0), 0, frequency + 1)
    starts = np.cumsum(room) - room
    n_frequent, n_entries = int(frequent.sum()), int(room.sum())
    n_bytes = BYTES_PER_CLUSTER * n_clusters + 4 * n_clusters * (n_frequent + len(pairs))
    n_bytes += 8 * (n_entries + count_log_gammas(corpus, frequent))
    refuse_beyond_memory("exact", n_bytes, corpus.n_words, settings)
    word = np.searchsorted(np.flatnonzero(frequent), pairs // unit)
    cells = Cells(
        content.indptr.astype(np.int64), np.empty(corpus.n_documents, np.int64), np.empty(content.nnz, np.int64),
        np.empty(content.nnz, np.int32), mass,
    )  # fmt: skip
    _order_cells(content.indices, content.data, frequent, pairs, unit, starts, cells)
    tables = Tables(
        word, pairs % unit, np.searchsorted(word, np.arange(n_frequent + 1)),
        np.zeros((n_frequent, n_clusters), np.int32), np.zeros((len(pairs), n_clusters), np.float32),
        starts[room > 0], np.zeros((n_entries, 2), np.int32),
    )  # fmt: skip
    return cells, tables


@kernel
def _order_cells(words, counts, frequent, pairs, unit, starts, cells):
    """Write each document's words to ``cells``, frequent ones first.

    ``pairs`` (R,) int64, ascending: word * unit + count of the rows; ``starts`` (V,) int64: where lists begin.
    """
    indptr, rare, place, ordered = cells.indptr, cells.rare, cells.place, cells.counts
    for j in range(rare.size):
        end = indptr[j]
        for in_rows in (True, False):
            rare[j] = end
            for cell in range(indptr[j], indptr[j + 1]):
                d, x = np.int64(words[cell]), np.int64(counts[cell])
                if frequent[d] == in_rows:
                    place[end] = np.searchsorted(pairs, d * unit + x) if in_rows else starts[d]
                    ordered[end] = x
                    end += 1


@numba.njit(inline="always")
def term(component, log_gamma, word_prior, n, x):
    """What a word's count x adds to the score of a cluster that has the word n times, over one that lacks it."""
    return word_term(component, log_gamma, word_prior, n, x) - word_term(component, log_gamma, word_prior, 0, x)


@kernel
def fill_tables(component, word_prior, log_gamma, cells, tables, cluster, squares):
    """Count all documents into tables without any; (K,) int64 ``squares`` get each cluster's sum of squared counts."""
    place, counts, word, table, lists = cells.place, cells.counts, tables.word, tables.counts, tables.lists
    for j in range(cluster.size):
        for cell in range(cells.indptr[j], cells.rare[j]):
            table[word[place[cell]], cluster[j]] += counts[cell]
        for cell in range(cells.rare[j], cells.indptr[j + 1]):
            start = place[cell]
            lists[start, 0] += 1
            lists[start + lists[start, 0], 0], lists[start + lists[start, 0], 1] = cluster[j], counts[cell]
    rows, x, terms = tables.rows, tables.x, tables.terms
    for f in range(table.shape[0]):
        for k in range(squares.size):
            n = np.int64(table[f, k])
            if n:
                squares[k] += n * n
                for row in range(rows[f], rows[f + 1]):
                    terms[row, k] = term(component, log_gamma, word_prior, n, x[row])
    entry_of = np.full(squares.size, -1)  # of each cluster, in the list in hand or one before it
    for start in tables.starts:
        last = start
        for i in range(start + 1, start + 1 + lists[start, 0]):
            own, x_own = lists[i, 0], lists[i, 1]
            if entry_of[own] <= start:
                last += 1
                entry_of[own] = last
                lists[last, 0], lists[last, 1] = own, 0
            lists[entry_of[own], 1] += x_own
        lists[start, 0] = last - start
        for i in range(start + 1, last + 1):
            squares[lists[i, 0]] += np.int64(lists[i, 1]) ** 2


@kernel
def add_or_remove(model, log_gamma, cells, tables, j, k, sign):
    """Add document j to cluster k (sign 1) or take it out (-1); returns the change of the cluster's squares."""
    # arrays of named tuples are bound to names first: each access in a loop would count references, atomically
    place, counts, lists, word, x = cells.place, cells.counts, tables.lists, tables.word, tables.x
    rows, table, terms = tables.rows, tables.counts, tables.terms
    component, word_prior = model.component, model.word_prior
    squares = np.int64(0)
    for cell in range(cells.indptr[j], cells.rare[j]):
        change = np.int64(sign * counts[cell])
        f = word[place[cell]]
        n = table[f, k] + change
        squares += change * (2 * n - change)
        table[f, k] = n
        for row in range(rows[f], rows[f + 1]):
            terms[row, k] = term(component, log_gamma, word_prior, n, x[row])
    for cell in range(cells.rare[j], cells.indptr[j + 1]):
        change = np.int64(sign * counts[cell])
        start = place[cell]
        last = start + lists[start, 0]
        i = start + 1
        while i <= last and lists[i, 0] != k:
            i += 1
        if i > last:
            lists[start, 0] += 1
            lists[i, 0], lists[i, 1] = k, 0
        n = lists[i, 1] + change
        squares += change * (2 * n - change)
        lists[i, 1] = n
        if n == 0:
            lists[start, 0] -= 1
            lists[i, 0], lists[i, 1] = lists[last, 0], lists[last, 1]
    return squares


@kernel
def log_cells(tables, log_gamma, word_prior):
    """Sum over cells of ln G(n + a) - ln G(a) in units of 1 / JOINT_UNIT: whole numbers, so the order is free."""
    table, lists, starts = tables.counts, tables.lists, tables.starts
    total = np.int64(0)
    for f in range(table.shape[0]):
        for k in range(table.shape[1]):
            if table[f, k]:
                total += np.int64((log_gamma_of(log_gamma, word_prior, table[f, k]) - log_gamma[0]) * JOINT_UNIT)
    for start in starts:
        for i in range(start + 1, start + 1 + lists[start, 0]):
            total += np.int64((log_gamma[lists[i, 1]] - log_gamma[0]) * JOINT_UNIT)
    return total
