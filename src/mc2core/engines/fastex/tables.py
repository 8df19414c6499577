"""Tables of counts and log-gammas from which FastEx scores every cluster, in rows and in lists of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.corpus import Corpus
from mc2core.engines.fastex.components import (
    Settings,
)
from mc2core.engines.fastex.limits import refuse_beyond_memory

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
    indptr = content.indptr.astype(np.int64)
    frequency = np.bincount(content.indices, minlength=corpus.n_words)
    frequent = is_frequent(frequency, n_clusters)
    document = np.repeat(np.arange(corpus.n_documents), np.diff(indptr))
    order = np.argsort(2 * document + ~frequent[content.indices], kind="stable")
    words, counts = content.indices[order].astype(np.int64), content.data[order].astype(np.int32)
    in_rows = frequent[words]
    unit = int(counts.max(initial=0)) + 1
    pairs, row = np.unique(words[in_rows] * unit + counts[in_rows], return_inverse=True)
    room = np.where(frequent | (frequency == 0), 0, np.minimum(frequency, n_clusters) + 1)
    starts = np.cumsum(room) - room
    place = starts[words]
    place[in_rows] = row
    n_frequent, n_entries = int(frequent.sum()), int(room.sum())
    n_bytes = BYTES_PER_CLUSTER * n_clusters + 4 * n_clusters * (n_frequent + len(pairs))
    n_bytes += 8 * (n_entries + count_log_gammas(corpus, frequent))
    refuse_beyond_memory("exact", n_bytes, corpus.n_words, settings)
    word = np.searchsorted(np.flatnonzero(frequent), pairs // unit)
    tables = Tables(
        word, pairs % unit, np.searchsorted(word, np.arange(n_frequent + 1)),
        np.zeros((n_frequent, n_clusters), np.int32), np.zeros((len(pairs), n_clusters), np.float32),
        starts[room > 0], np.zeros((n_entries, 2), np.int32),
    )  # fmt: skip
    rare = indptr[:-1] + np.bincount(document[in_rows], minlength=corpus.n_documents)
    return Cells(indptr, rare, place, counts, mass), tables
