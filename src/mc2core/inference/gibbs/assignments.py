"""Assignments of documents to clusters and of tokens to topics, with their counts and starting values."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compute.kernels import kernel
from mc2core.compute.records import record
from mc2core.compute.threads import in_blocks, n_threads
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.seeding import cluster_documents


@record
class TopicCounts(NamedTuple):
    """Counts n_jm of tokens per document and topic, in CSR form; topics of a document are in ascending order."""

    start: np.ndarray  # (J + 1,) int64: first entry of each document
    topic: np.ndarray  # (entries,) int32: topic of each entry
    n: np.ndarray  # (entries,) int32: tokens of the document in this topic, at least 1


@kernel
def _count(cluster, topic, document_start, n_km):
    for j in range(cluster.size):
        row = n_km[cluster[j]]
        for i in range(document_start[j], document_start[j + 1]):
            row[topic[i]] += 1


@kernel
def _count_rows(cluster, start, topic, n, n_km):
    for j in range(cluster.size):
        row = n_km[cluster[j]]
        for c in range(start[j], start[j + 1]):
            row[topic[c]] += n[c]


@kernel
def _relabel(labels, new_label):
    for i in range(labels.size):
        labels[i] = new_label[labels[i]]


@dataclass
class Assignments:
    """Variables z, l and epsilon of the sampler, and the counts derived from z and l.

    Attributes
    ----------
    cluster : (J,) int32
        Cluster z_j of each document, in 0..K-1.
    topic : (n_tokens,) int32
        Topic l_ji of each token, in 0..M-1; tokens are in CSR order.
    document_start : (J + 1,) int64
        First token of each document.
    topic_weights : (M,) float64
        Positive weights epsilon_1..M; together with ``remaining``, they sum to 1.
    remaining : float
        epsilon_new, the weight of all topics not in use.
    n_km : (K, M) int32
        Number of tokens of topic m in cluster k.
    n_k : (K,) int64
        Number of documents of cluster k.
    """

    cluster: np.ndarray
    topic: np.ndarray
    document_start: np.ndarray
    topic_weights: np.ndarray
    remaining: float
    n_km: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    n_k: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def n_clusters(self) -> int:
        """Number K of clusters for which counts are stored; after :meth:`compact`, number of clusters in use."""
        return len(self.n_k)

    @property
    def n_topics(self) -> int:
        """Number M of topics with a weight; after :meth:`compact`, number of topics in use."""
        return len(self.topic_weights)

    def document_of(self, token: int) -> int:
        """Return the index of the document that contains a token."""
        return int(np.searchsorted(self.document_start, token, side="right")) - 1

    def count(self, n_clusters: int | None = None, counts: TopicCounts | None = None) -> None:
        """Recompute n_km and n_k from the assignments, for ``n_clusters`` clusters or for all clusters in use.

        If the token counts n_jm are given as ``counts``, they are summed, which is faster than counting tokens.
        """
        if n_clusters is None:
            n_clusters = int(self.cluster.max(initial=-1)) + 1
        self.n_k = np.bincount(self.cluster, minlength=n_clusters)
        self.n_km = np.zeros((n_clusters, self.n_topics), np.int32)
        if counts is None:
            _count(self.cluster, self.topic, self.document_start, self.n_km)
        else:
            _count_rows(self.cluster, *counts, self.n_km)

    def compact(self) -> np.ndarray:
        """Remove empty clusters and topics, and return the old indices of the remaining clusters, in their old order.

        The weights of removed topics are added to ``remaining``.
        """
        clusters = np.flatnonzero(self.n_k)
        if len(clusters) < self.n_clusters:
            new_label = np.zeros(self.n_clusters, np.int32)
            new_label[clusters] = np.arange(len(clusters), dtype=np.int32)
            _relabel(self.cluster, new_label)
            self.n_k = self.n_k[clusters]
            self.n_km = self.n_km[clusters]
        used = self.n_km.any(axis=0)
        if not used.all():
            topics = np.flatnonzero(used)
            new_label = np.zeros(self.n_topics, np.int32)
            new_label[topics] = np.arange(len(topics), dtype=np.int32)
            _relabel(self.topic, new_label)
            self.remaining += float(self.topic_weights[~used].sum())
            self.topic_weights = self.topic_weights[topics]
            self.n_km = np.ascontiguousarray(self.n_km[:, topics])
        return clusters


# -- tokens of every document in each topic, n_jm -------------------------------------------------------------
_COUNTED_BLOCK = 256  # documents per block of work of a thread


@kernel
def _count_topics(first, last, start, topic, n_topics, size, row_topic, row_count):
    """Write the topics and counts of documents j = first..last-1 from ``start[j]`` on, and their number to ``size``."""
    n_j = np.zeros(n_topics, np.int32)
    for j in range(first, last):
        for i in range(start[j], start[j + 1]):
            n_j[topic[i]] += 1
        place = start[j]
        if start[j + 1] > start[j]:
            for m in range(n_topics):
                if n_j[m] > 0:
                    row_topic[place], row_count[place] = m, n_j[m]
                    n_j[m] = 0
                    place += 1
        size[j] = place - start[j]


@kernel
def close_up(start, size, spread, closed):
    """Copy the ``size[j]`` entries from index ``start[j]`` on of every document j to ``closed``, without gaps."""
    place = 0
    for j in range(size.size):
        for i in range(start[j], start[j] + size[j]):
            closed[place] = spread[i]
            place += 1


def count_topics(assignments: Assignments, pool: Executor | None = None) -> TopicCounts:
    """Return the counts n_jm of the assignments; threads in ``pool`` do not change the result."""
    start, n_documents, n_tokens = assignments.document_start, len(assignments.cluster), len(assignments.topic)
    size, spread = np.zeros(n_documents, np.int64), np.empty((2, n_tokens), np.int32)

    def count(first: int, last: int) -> None:
        _count_topics(first, last, start, assignments.topic, assignments.n_topics, size, *spread)

    in_blocks(pool, count, n_documents, _COUNTED_BLOCK)
    rows = np.concatenate([[0], np.cumsum(size)])
    closed = np.empty((2, rows[-1]), np.int32)
    for which in range(2):
        close_up(start, size, spread[which], closed[which])
    return TopicCounts(rows, *closed)


# -- words in topics ------------------------------------------------------------------------------------------
_SAMPLED = 10_000  # number of cells (up to twice as many) sampled to divide the words among threads


@kernel
def _count_words(first, last, word, counts, topic, n_wm):
    """Add the tokens of words first..last-1 in each topic to ``n_wm``, given the cells of a CSR matrix (J, V)."""
    end = 0
    for cell in range(word.size):
        w, begin, end = word[cell], end, end + counts[cell]
        if first <= w < last:
            for i in range(begin, end):
                n_wm[w, topic[i]] += 1


def topics_of_words(
    content: sp.csr_matrix, topic: np.ndarray, columns: int, pool: Executor | None = None
) -> np.ndarray:
    """Return the tokens of each word in each topic, (V, columns) int32; ``columns`` is at least M.

    Each thread of ``pool`` reads all cells and counts its own words.
    """
    n_wm = np.zeros((content.shape[1], columns), np.int32)

    def count(first: int, last: int) -> None:
        _count_words(first, last, content.indices, content.data, topic, n_wm)

    _share_words(content, count, pool)
    return n_wm


@kernel
def _count_tokens(word, counts, n_w):
    for cell in range(word.size):
        n_w[word[cell]] += counts[cell]


@kernel
def _list_topics(first, last, word, counts, topic, place, listed):
    """List the topics of the tokens of words first..last-1, for word w from place[w] on; place[w] is advanced."""
    end = 0
    for cell in range(word.size):
        w, begin, end = word[cell], end, end + counts[cell]
        if first <= w < last:
            for i in range(begin, end):
                listed[place[w]] = topic[i]
                place[w] += 1


def topics_by_word(
    content: sp.csr_matrix, topic: np.ndarray, pool: Executor | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the topics of all tokens grouped by word: first token of each word (V + 1,), and topics (n_tokens,) int32.

    Tokens of a word are in the order of documents. Threads are used as in :func:`topics_of_words`.
    """
    n_w, listed = np.zeros(content.shape[1], np.int64), np.empty(len(topic), np.int32)
    _count_tokens(content.indices, content.data, n_w)
    start = np.concatenate([[0], np.cumsum(n_w)])
    place = start[:-1].copy()

    def list_topics(first: int, last: int) -> None:
        _list_topics(first, last, content.indices, content.data, topic, place, listed)

    _share_words(content, list_topics, pool)
    return start, listed


def _share_words(content: sp.csr_matrix, work: Callable[[int, int], None], pool: Executor | None) -> None:
    """Run ``work(first, last)`` on one range of words per thread; all ranges have about the same number of cells."""
    n_words, n = content.shape[1], n_threads(pool)
    some = np.append(np.sort(content.indices[:: 1 + len(content.indices) // _SAMPLED]), n_words)
    bounds = np.concatenate([[0], some[len(some) * np.arange(1, n) // n], [n_words]]).astype(np.int64)
    in_blocks(pool, lambda thread, _: work(bounds[thread], bounds[thread + 1]), n, 1)


# -- the starting state ---------------------------------------------------------------------------------------
def document_start(corpus: Corpus) -> np.ndarray:
    """Return the index of the first token of each document, (J + 1,) int64."""
    return np.concatenate([[0], np.cumsum(corpus.document_lengths, dtype=np.int64)])


def start_assignments(
    corpus: Corpus, contexts: StackedContexts, n_clusters: int | None, n_topics: int, rng: np.random.Generator,
    topic: np.ndarray | None = None, directions: np.ndarray | None = None
) -> Assignments:  # fmt: skip
    """Return starting assignments.

    :func:`cluster_documents` sets the clusters, from the embeddings ``directions`` if given. If ``n_clusters`` is None,
    every document is its own cluster. Topics are ``topic``, (n_tokens,) int32, or drawn uniformly.
    """
    if n_clusters is None:
        cluster = np.arange(corpus.n_documents, dtype=np.int32)
    else:
        cluster = cluster_documents(corpus, contexts, n_clusters, rng, directions).astype(np.int32)
    topic = rng.integers(0, n_topics, corpus.n_tokens, dtype=np.int32) if topic is None else topic.copy()
    weights = np.full(n_topics, 1.0 / (n_topics + 1))
    assignments = Assignments(cluster, topic, document_start(corpus), weights, 1.0 / (n_topics + 1))
    assignments.count()
    assignments.compact()
    return assignments
