"""What a Gibbs chain carries from move to move: the corpus word by word, assignments, concentrations; its start."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import log_gamma
from mc2core.compute.threads import in_blocks, n_threads
from mc2core.corpus import Corpus
from mc2core.families import Family
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.partition import PartitionLaw
from mc2core.inference.seeding import cluster_documents


# -- the corpus word by word ----------------------------------------------------------------------------------
class WordCells(NamedTuple):
    """The corpus seen word by word: cell = one (document, word) pair with a positive count.

    Cells of word w are ``start[w]:start[w + 1]``, in ascending order of documents.
    """

    start: np.ndarray  # (V + 1,) int64
    document: np.ndarray  # (cells,) int32
    token: np.ndarray  # (cells,) int32 where that holds all tokens, else int64: its first token in CSR order
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
    token = np.empty(cells, np.int32 if tokens_of.sum() <= np.iinfo(np.int32).max else np.int64)
    _transpose(indptr, indices, counts, start[:-1].copy(), document, token, count)
    largest, widest = int(tokens_of.max(initial=0)), int(documents_of.max(initial=0))
    return WordCells(start, document, token, count, largest, widest)


@inner_kernel
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


# -- the state ------------------------------------------------------------------------------------------------
class TopicCounts(NamedTuple):
    """n_jm: row j holds the topics of document j in ascending order and its tokens in each."""

    start: np.ndarray  # (J + 1,) int64
    topic: np.ndarray  # int32
    n: np.ndarray  # int32, at least 1


@dataclass
class Concentrations:
    """alpha, v and eta of ICML14, in this order (all > 0), and N, the most clusters that there can be."""

    group: float
    table: float
    topic: float
    most_clusters: float = math.inf

    @property
    def partition(self) -> PartitionLaw:
        """The law of the clusters of documents."""
        return PartitionLaw.of(self.group, self.most_clusters)


def no_cluster(document: int, contexts: StackedContexts, concentrations: Concentrations) -> ValueError:
    """What to raise where a document's weights over clusters cannot be drawn from."""
    priors = "".join(f", {name}: {family!r}" for name, family in zip(contexts.names, contexts.families, strict=True))
    return ValueError(
        f"document {document}: the weights of the clusters it could be in have no finite sum above 0; look at its "
        f"contexts and the priors (group_concentration {concentrations.group:g}, "
        f"table_concentration {concentrations.table:g}{priors})"
    )


def no_topic(document: int, concentrations: Concentrations, prior: float | Family) -> ValueError:
    """What to raise where the weights of a token's topics cannot be drawn from; ``prior`` is s, or the content's."""
    of_content = f"content {prior!r}" if isinstance(prior, Family) else f"topic_word_prior {prior:g}"
    return ValueError(
        f"document {document}: the weights of a token's topics have no finite sum above 0; look at the priors "
        f"(table_concentration {concentrations.table:g}, topic_concentration {concentrations.topic:g}, "
        f"{of_content})"
    )


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
    """Who sits where: the sampler's state z, l, epsilon, and the counts that follow from z and l.

    Attributes
    ----------
    cluster : (J,) int32
        z_j, each in 0..K-1.
    topic : (n_tokens,) int32
        l_ji in 0..M-1, tokens in CSR order.
    document_start : (J + 1,) int64
        First token of each document.
    topic_weights : (M,) float64, > 0
        epsilon_1..M; they and ``rest`` sum to 1.
    rest : float
        epsilon_new, the weight of all topics not in use.
    n_km : (K, M) int32
        Tokens of topic m in cluster k.
    n_k : (K,) int64
        Documents of cluster k.
    """

    cluster: np.ndarray
    topic: np.ndarray
    document_start: np.ndarray
    topic_weights: np.ndarray
    rest: float
    n_km: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    n_k: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def n_clusters(self) -> int:
        """K, clusters in the tables (after :meth:`compact`: those in use)."""
        return len(self.n_k)

    @property
    def n_topics(self) -> int:
        """M, topics that carry a weight (after :meth:`compact`: those in use)."""
        return len(self.topic_weights)

    def document_of(self, token: int) -> int:
        """The document of a token (both numbers)."""
        return int(np.searchsorted(self.document_start, token, side="right")) - 1

    def count(self, n_clusters: int | None = None, counts: TopicCounts | None = None) -> None:
        """Recompute n_km and n_k from the assignments, for ``n_clusters`` or all clusters in use.

        From ``counts``, n_jm of the tokens, where these are known: there are far fewer of them than of tokens.
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
        """Drop empty clusters and topics, keeping the order of the others; weights of dropped topics go to ``rest``.

        Returns the old numbers of the clusters that stay.
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
            self.rest += float(self.topic_weights[~used].sum())
            self.topic_weights = self.topic_weights[topics]
            self.n_km = np.ascontiguousarray(self.n_km[:, topics])
        return clusters


# -- the starting state ---------------------------------------------------------------------------------------
def document_start(corpus: Corpus) -> np.ndarray:
    """(J + 1,) int64: where each document's tokens begin."""
    return np.concatenate([[0], np.cumsum(corpus.document_lengths, dtype=np.int64)])


def start_assignments(
    corpus: Corpus, contexts: StackedContexts, n_clusters: int | None, n_topics: int, rng: np.random.Generator,
    topic: np.ndarray | None = None,
) -> Assignments:  # fmt: skip
    """Clusters by :func:`cluster_documents` (None: one for each document); topics as given, (n_tokens,) int32, or at
    random.
    """
    if n_clusters is None:
        cluster = np.arange(corpus.n_documents, dtype=np.int32)
    else:
        cluster = cluster_documents(corpus, contexts, n_clusters, rng).astype(np.int32)
    topic = rng.integers(0, n_topics, corpus.n_tokens, dtype=np.int32) if topic is None else topic.copy()
    weights = np.full(n_topics, 1.0 / (n_topics + 1))
    assignments = Assignments(cluster, topic, document_start(corpus), weights, 1.0 / (n_topics + 1))
    assignments.count()
    assignments.compact()
    return assignments


# -- words in topics ------------------------------------------------------------------------------------------
_SAMPLED = 10_000  # cells, at most twice as many, by which threads share words out


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
    """(V, columns) int32 tokens of each word in each topic, ``columns`` at least M.

    Each of the threads ``pool`` looks at all cells and counts words of its own.
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
    """List the topics of the tokens of words first..last-1, those of word w from place[w] on, which is moved on."""
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
    """The topics of all tokens, word by word: (V + 1,) int64, where each word's begin, and (n_tokens,) int32, in the
    order of documents. Threads as in :func:`topics_of_words`.
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
    """``work(first, last)`` of the words of each thread, which have about as many cells as those of the others."""
    n_words, n = content.shape[1], n_threads(pool)
    some = np.append(np.sort(content.indices[:: 1 + len(content.indices) // _SAMPLED]), n_words)
    bounds = np.concatenate([[0], some[len(some) * np.arange(1, n) // n], [n_words]]).astype(np.int64)
    in_blocks(pool, lambda thread, _: work(bounds[thread], bounds[thread + 1]), n, 1)


@kernel(error_model="numpy")
def log_words(n_wm, s):
    """Sum over topics and words of ln G(n_wm + s) - ln G(s)."""
    result = 0.0
    at_zero = log_gamma(s)
    for w in range(n_wm.shape[0]):
        for m in range(n_wm.shape[1]):
            if n_wm[w, m] > 0:
                result += log_gamma(n_wm[w, m] + s) - at_zero
    return result
