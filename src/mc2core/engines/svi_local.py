"""Local step of SVI-MC2 and its statistics: exact tree inference of q(z_j, t_j) (UAI16, eq. 1).

For a word w, S_kt(w) = sum_m mu_ktm E ln psi_mw + E ln tau_kt is the same in every document, and so are
lse_k(w) = ln sum_t exp S_kt(w) and the tables' shares r_kt(w) = exp(S_kt(w) - lse_k(w)). They are computed once for
each distinct word of a mini-batch (:func:`word_tables`); a document needs lse only (:func:`assign_documents`),

    ln mu_jk = E ln beta_k + E ln p(x_j | phi_k) + sum_w x_jw lse_k(w) - ln Z_j,

and all that the global step needs of the documents is n_k = sum_j mu_jk, R_k(w) = sum_j mu_jk x_jw, the contexts'
statistics and sum_j ln Z_j (:class:`DocumentStatistics`): small sums over documents, which may come from anywhere. The
tables' mass is N_kt(w) = R_k(w) r_kt(w) (:func:`table_mass`), most of it zero in a small batch.

**Hard tables.** After the first steps nearly every q(c_kt) is a single topic up to rounding. Such a table's row
sum_m mu_ktm E ln psi_mw is a column of E ln psi, and all tables that serve a topic share it, so the K T rows of the
product shrink to M and a few dozen of *soft* tables (:class:`TableRows`). exp is taken of these, and a product with
the tables' weights exp(E ln tau_kt) sums over tables. The result is the same either way; only the cost follows.

Sums over documents and words are taken in fixed blocks, in their order: bits do not depend on the threads.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from mc2core.corpus import Corpus, take_rows
from mc2core.engines.parallel import in_blocks
from mc2core.engines.svi_state import Expectations, Globals
from mc2core.families.stacked import StackedContexts
from mc2core.numerics import digamma, exp, log

_WORD_BLOCK = 512
_DOCUMENT_PARTS = 8
_LEAST_DOCUMENTS = 32
# shares below this are lost in the rounding of any sum they could join: a cluster's in a document, a topic's at a table
_LEAST_SHARE = 1e-18
_LEAST_LOG_SHARE = np.log(_LEAST_SHARE)
_LEAST_SUM = 1e-250


class Batch(NamedTuple):
    """Some documents over their distinct words.

    words : (U,) int64, ascending numbers of the words in the corpus
    indptr (B + 1,) int64, indices (cells,) int32, counts (cells,) int32 : CSR of the counts over ``words``
    contexts : StackedContexts of the documents
    """

    words: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray
    contexts: StackedContexts

    @property
    def n_documents(self) -> int:
        """B."""
        return len(self.indptr) - 1


def take_batch(corpus: Corpus, contexts: StackedContexts, rows: np.ndarray) -> Batch:
    """The documents ``rows`` of a corpus whose contexts were stacked before."""
    taken = take_rows(corpus.content, rows)
    number = np.zeros(corpus.n_words, np.int32)
    number[taken.indices] = 1
    words = np.flatnonzero(number)
    number[words] = np.arange(len(words), dtype=np.int32)
    return Batch(words, taken.indptr.astype(np.int64), number[taken.indices], taken.data, contexts.take(rows))


class TableRows(NamedTuple):
    """The distinct rows mu_kt. of q(c): row m < M is topic m alone, soft tables have rows of their own behind.

    row : (K, T) int64
    soft : (rows - M, M) float64
    """

    row: np.ndarray
    soft: np.ndarray

    @classmethod
    def of(cls, table_topic: np.ndarray) -> TableRows:
        """The rows of (K, T, M) mu."""
        known = table_topic > _LEAST_SHARE
        is_soft = known.sum(axis=-1) > 1
        row = table_topic.argmax(axis=-1)
        row[is_soft] = table_topic.shape[-1] + np.arange(is_soft.sum())
        return cls(row, np.where(known, table_topic, 0.0)[is_soft])


class WordTables(NamedTuple):
    """What the documents of a batch share, over its U distinct words.

    scores : (U, rows) float64, sum_m mu_m E ln psi_mw of every row of ``rows``: the first M columns are E ln psi
    log_likelihood : (U, K) float64, lse_k(w)
    rows : TableRows
    log_table : (K, T) float64, E ln tau
    """

    scores: np.ndarray
    log_likelihood: np.ndarray
    rows: TableRows
    log_table: np.ndarray

    @property
    def log_psi(self) -> np.ndarray:
        """(U, M): E ln psi_mw."""
        return self.scores[:, : self.rows.soft.shape[1]]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_log_psi(topic_words, shrink, words, prior, log_total, first, last, log_psi):
    """log_psi[u, m] = digamma(shrink n_wm + s) - digamma(total_m) for u in first..last-1."""
    for u in range(first, last):
        counts, out = topic_words[words[u]], log_psi[u]
        for m in range(counts.size):
            out[m] = digamma(shrink * counts[m] + prior) - log_total[m]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def exponentiate(scores, first, last, top, weights):
    """weights[u - first] = exp(scores[u] - top[u]), top[u] = max scores[u], for u in first..last-1."""
    for u in range(first, last):
        row, out = scores[u], weights[u - first]
        highest = -np.inf
        for d in range(row.size):
            highest = max(highest, row[d])
        top[u] = highest
        for d in range(row.size):
            out[d] = exp(row[d] - highest)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def take_logs(sums, top, scores, row, log_table, first, last):
    """sums[u, k] = sum_t exp(scores + E ln tau - top) becomes lse_k(u); anew where all of its terms vanished."""
    for u in range(first, last):
        for k in range(sums.shape[1]):
            total, highest = sums[u, k], top[u]
            if total < _LEAST_SUM:
                highest = -np.inf
                for t in range(row.shape[1]):
                    highest = max(highest, scores[u, row[k, t]] + log_table[k, t])
                total = 0.0
                for t in range(row.shape[1]):
                    total += exp(scores[u, row[k, t]] + log_table[k, t] - highest)
            sums[u, k] = highest + log(total)


def word_tables(state: Globals, expected: Expectations, words: np.ndarray, pool: Executor | None) -> WordTables:
    """E ln psi and lse of the given words under the current globals."""
    rows = TableRows.of(expected.table_topic)
    n_clusters, _, n_topics = expected.table_topic.shape
    n_rows = n_topics + len(rows.soft)
    weight = np.zeros((n_rows, n_clusters))
    np.add.at(weight, (rows.row, np.arange(n_clusters)[:, None]), np.exp(expected.log_table))
    scores = np.empty((len(words), n_rows))
    log_likelihood = np.empty((len(words), n_clusters))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        total = expected.log_topic_total
        fill_log_psi(state.topic_words, state.shrink, words, state.topic_prior, total, first, last, scores)
        scores[first:last, n_topics:] = scores[first:last, :n_topics] @ rows.soft.T
        weights = np.empty((last - first, n_rows))
        exponentiate(scores, first, last, top, weights)
        np.matmul(weights, weight, out=log_likelihood[first:last])
        take_logs(log_likelihood, top, scores, rows.row, expected.log_table, first, last)

    in_blocks(pool, work, len(words), _WORD_BLOCK)
    return WordTables(scores, log_likelihood, rows, expected.log_table)


@dataclass
class DocumentStatistics:
    """Sums over documents; parts are added with ``+``.

    n_documents : int
    log_evidence : float, sum_j ln Z_j in nats
    n_k : (K,) float64, sum_j mu_jk
    word_mass : (U, K), R_k(w)
    contexts : (K, D) float64, sum_j mu_jk T(x_j)
    """

    n_documents: int
    log_evidence: float
    n_k: np.ndarray
    word_mass: np.ndarray
    contexts: np.ndarray

    def __add__(self, other: DocumentStatistics) -> DocumentStatistics:
        return DocumentStatistics(
            self.n_documents + other.n_documents,
            self.log_evidence + other.log_evidence,
            self.n_k + other.n_k,
            self.word_mass + other.word_mass,
            self.contexts + other.contexts,
        )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def assign(indptr, indices, counts, log_likelihood, first, last, shares, log_evidence, word_mass):
    """Documents first..last-1: ``shares`` (B, K) float64 holds ln E p(z) + context and becomes mu_jk.

    Fills ``log_evidence`` (B,) and adds mu_jk x_jw to ``word_mass`` (U, K).
    """
    n_clusters = shares.shape[1]
    some = np.empty(n_clusters, np.int64)
    for j in range(first, last):
        row = shares[j]
        for cell in range(indptr[j], indptr[j + 1]):
            x = np.float64(counts[cell])
            word = log_likelihood[indices[cell]]
            for k in range(n_clusters):
                row[k] += x * word[k]
        top = -np.inf
        for k in range(n_clusters):
            top = max(top, row[k])
        total = 0.0
        for k in range(n_clusters):
            row[k] = np.exp(row[k] - top)
            total += row[k]
        log_evidence[j] = top + np.log(total)
        n_some = 0
        for k in range(n_clusters):
            row[k] /= total
            if row[k] > _LEAST_SHARE:
                some[n_some] = k
                n_some += 1
        for cell in range(indptr[j], indptr[j + 1]):
            mass = word_mass[indices[cell]]
            for i in range(n_some):
                mass[some[i]] += counts[cell] * row[some[i]]


def assign_documents(
    batch: Batch, log_likelihood: np.ndarray, expected: Expectations, pool: Executor | None
) -> tuple[np.ndarray, DocumentStatistics]:
    """q(z_j) of every document given lse (U, K): (B, K) float64 mu_jk, rows summing to 1, and their statistics."""
    shares = batch.contexts.log_likelihood(expected.contexts) + expected.log_group
    log_evidence = np.empty(batch.n_documents)

    def work(first: int, last: int) -> DocumentStatistics:
        word_mass = np.zeros_like(log_likelihood)
        assign(batch.indptr, batch.indices, batch.counts, log_likelihood, first, last, shares, log_evidence, word_mass)
        rows = shares[first:last]
        contexts = np.asarray(batch.contexts.statistics[first:last].T @ rows).T
        return DocumentStatistics(
            last - first, float(log_evidence[first:last].sum()), rows.sum(axis=0), word_mass, contexts
        )

    part = max(_LEAST_DOCUMENTS, -(-batch.n_documents // _DOCUMENT_PARTS))
    parts = in_blocks(pool, work, batch.n_documents, part)
    return shares, sum(parts[1:], start=parts[0])


class TableMass(NamedTuple):
    """N_kt(w) where R_k(w) > 0: (cluster, word) pairs in order of cluster, then word.

    start : (blocks + 1, K) int64, pairs of cluster k in word block b are start[b, k]:start[b + 1, k]
    word : (pairs,) int32, number in the batch
    mass : (pairs, T)
    """

    start: np.ndarray
    word: np.ndarray
    mass: np.ndarray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def count_pairs(word_mass, first, last, n_pairs):
    """n_pairs[k] = number of words u in first..last-1 with R_k(u) > 0."""
    for k in range(n_pairs.size):
        n_pairs[k] = 0
    for u in range(first, last):
        for k in range(n_pairs.size):
            n_pairs[k] += word_mass[u, k] > 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_pairs(word_mass, scores, row, log_table, log_likelihood, first, last, place, word, mass):
    """Write the pairs of words first..last-1 from ``place`` (K,) on; ``place`` moves."""
    for u in range(first, last):
        for k in range(place.size):
            if word_mass[u, k] > 0:
                p = place[k]
                place[k] += 1
                word[p] = u
                for t in range(row.shape[1]):
                    mass[p, t] = scores[u, row[k, t]]
                for t in range(row.shape[1]):
                    log_share = mass[p, t] + log_table[k, t] - log_likelihood[u, k]
                    share = exp(log_share)
                    mass[p, t] = word_mass[u, k] * share if log_share > _LEAST_LOG_SHARE else 0.0


def table_mass(tables: WordTables, word_mass: np.ndarray, pool: Executor | None) -> TableMass:
    """N_kt(w) = R_k(w) r_kt(w)."""
    n_words, n_clusters = word_mass.shape
    n_pairs = np.zeros((max(1, -(-n_words // _WORD_BLOCK)), n_clusters), np.int64)

    def count(first: int, last: int) -> None:
        count_pairs(word_mass, first, last, n_pairs[first // _WORD_BLOCK])

    in_blocks(pool, count, n_words, _WORD_BLOCK)
    ends = np.cumsum(n_pairs.T.ravel()).reshape(n_clusters, -1).T
    start = np.vstack([(ends - n_pairs)[:1], ends])
    total = int(n_pairs.sum())
    word, mass = np.empty(total, np.int32), np.empty((total, tables.log_table.shape[1]))

    def fill(first: int, last: int) -> None:
        place = start[first // _WORD_BLOCK].copy()
        known = tables.scores, tables.rows.row, tables.log_table, tables.log_likelihood
        fill_pairs(word_mass, *known, first, last, place, word, mass)

    in_blocks(pool, fill, n_words, _WORD_BLOCK)
    return TableMass(start, word, mass)


def table_statistics(tables: WordTables, pairs: TableMass, pool: Executor | None) -> tuple[np.ndarray, np.ndarray]:
    """(K, T) float64 n_kt = sum_w N_kt(w), and (K, T, M) float64 sum_w N_kt(w) E ln psi_mw."""
    log_psi = tables.log_psi
    n_clusters, n_tables = tables.log_table.shape
    n_kt = np.zeros((n_clusters, n_tables))
    log_likelihood = np.zeros((n_clusters, n_tables, log_psi.shape[1]))

    def work(k: int, _: int) -> None:
        own = slice(pairs.start[0, k], pairs.start[-1, k])
        mass = pairs.mass[own]
        n_kt[k] = mass.sum(axis=0)
        log_likelihood[k] = mass.T @ log_psi[pairs.word[own]]

    in_blocks(pool, work, n_clusters, 1)
    return n_kt, log_likelihood


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_row_words(start, end, word, mass, row, row_words):
    """row_words[w, row[k, t]] += N_kt(w) for the pairs start[k]..end[k]-1 of every cluster k."""
    for k in range(start.size):
        for p in range(start[k], end[k]):
            for t in range(mass.shape[1]):
                row_words[word[p], row[k, t]] += mass[p, t]


def topic_statistics(n_words: int, pairs: TableMass, table_topic: np.ndarray, pool: Executor | None) -> np.ndarray:
    """(U, M) float64: sum_kt mu_ktm N_kt(w) given (K, T, M) mu."""
    rows, n_topics = TableRows.of(table_topic), table_topic.shape[2]
    row_words = np.zeros((n_words, n_topics + len(rows.soft)))
    topic_words = np.empty((n_words, n_topics))

    def work(first: int, last: int) -> None:
        block = first // _WORD_BLOCK
        add_row_words(pairs.start[block], pairs.start[block + 1], pairs.word, pairs.mass, rows.row, row_words)
        topic_words[first:last] = row_words[first:last, :n_topics] + row_words[first:last, n_topics:] @ rows.soft

    in_blocks(pool, work, n_words, _WORD_BLOCK)
    return topic_words


def expected_topic_words(
    state: Globals, expected: Expectations, words: np.ndarray, counts: np.ndarray, pool: Executor | None
) -> float:
    """sum_wm counts_wm E ln psi_mw under the current globals, nats; ``counts`` (U, M) at ``words`` (U,)."""

    def work(first: int, last: int) -> float:
        log_psi = np.empty((last - first, counts.shape[1]))
        own = words[first:last]
        total = expected.log_topic_total
        fill_log_psi(state.topic_words, state.shrink, own, state.topic_prior, total, 0, len(own), log_psi)
        return float(np.sum(counts[first:last] * log_psi))

    return sum(in_blocks(pool, work, len(words), _WORD_BLOCK))
