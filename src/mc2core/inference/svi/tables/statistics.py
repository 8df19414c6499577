"""Statistics of SVI-MC2 over tables and topics: what the global step needs of a mini-batch's word masses R_k(w).

N_kt(w) = R_k(w) r_kt(w), the tokens of word w at table t of cluster k, is made from three small factors where it is
summed (:class:`TableMass`). Sums over words are taken in fixed blocks, in their order: bits do not depend on threads.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.local import LEAST_SUM, WORD_BLOCK
from mc2core.inference.svi.tables.words import TableRows, WordTables

# the sums over tables are done in this many shares: cluster k belongs to share k % _SHARES
_SHARES = 8


class TableMass(NamedTuple):
    """N_kt(w) = exp(E ln tau_kt) ratio_k(w) weights[row[k, t]], and where it is not zero.

    ratio : (U, K), R_k(w) / sums; 0 where the sum vanished (*lost* pairs)
    start : (blocks + 1, K) int64, pairs of cluster k in word block b are start[b, k]:start[b + 1, k]
    word : (pairs,) int32, numbers in the batch of the words with R_k(w) > 0, by cluster
    word_mass : (U, K), R_k(w)
    lost : (2, some) int64, word and cluster of pairs whose mass is R_k(w) exp(score + E ln tau - lse) instead
    """

    ratio: np.ndarray
    start: np.ndarray
    word: np.ndarray
    word_mass: np.ndarray
    lost: np.ndarray


@kernel(error_model="numpy")
def fill_ratio(word_mass, sums, first, last, ratio, n_pairs):
    """``ratio`` of words first..last-1 and n_pairs[k], how many of them have R_k(u) > 0; returns how many are lost."""
    n_lost = 0
    for k in range(n_pairs.size):
        n_pairs[k] = 0
    for u in range(first, last):
        for k in range(n_pairs.size):
            is_there = word_mass[u, k] > 0.0
            is_lost = is_there and sums[u, k] < LEAST_SUM
            ratio[u, k] = word_mass[u, k] / sums[u, k] if is_there and not is_lost else 0.0
            n_pairs[k] += is_there
            n_lost += is_lost
    return n_lost


@kernel(error_model="numpy")
def fill_pairs(word_mass, first, last, place, word):
    """Write the words of the pairs of words first..last-1 from ``place`` (K,) on; ``place`` moves."""
    for u in range(first, last):
        for k in range(place.size):
            if word_mass[u, k] > 0.0:
                word[place[k]] = u
                place[k] += 1


def table_mass(tables: WordTables, word_mass: np.ndarray, pool: Executor | None) -> TableMass:
    """N_kt(w) = R_k(w) r_kt(w) given R (U, K)."""
    n_words, n_clusters = word_mass.shape
    n_pairs = np.zeros((max(1, -(-n_words // WORD_BLOCK)), n_clusters), np.int64)
    ratio = np.empty_like(word_mass)

    def divide(first: int, last: int) -> int:
        return fill_ratio(word_mass, tables.sums, first, last, ratio, n_pairs[first // WORD_BLOCK])

    n_lost = sum(in_blocks(pool, divide, n_words, WORD_BLOCK))
    ends = np.cumsum(n_pairs.T.ravel()).reshape(n_clusters, -1).T
    start = np.vstack([(ends - n_pairs)[:1], ends])
    word = np.empty(int(n_pairs.sum()), np.int32)

    def fill(first: int, last: int) -> None:
        fill_pairs(word_mass, first, last, start[first // WORD_BLOCK].copy(), word)

    in_blocks(pool, fill, n_words, WORD_BLOCK)
    lost = np.array(np.nonzero((word_mass > 0) & (tables.sums < LEAST_SUM))) if n_lost else np.zeros((2, 0), np.int64)
    return TableMass(ratio, start, word, word_mass, lost)


@kernel(error_model="numpy")
def sum_pairs(word, start, first_cluster, ratio, weights, row, table, scores, n_kt, log_likelihood):
    """n_kt[k] = sum_w N_kt(w), log_likelihood[k] = sum_w N_kt(w) E ln psi_mw for clusters k of one share.

    The share is first_cluster, first_cluster + _SHARES, ... Its clusters take turns at each block of words, whose rows
    of ``weights`` and ``scores`` then come from the cache.
    """
    n_clusters, n_tables, n_topics = log_likelihood.shape
    mass, log_psi = np.empty((WORD_BLOCK, n_tables)), np.empty((WORD_BLOCK, n_topics))
    part = np.empty((n_tables, n_topics))
    for block in range(start.shape[0] - 1):
        for k in range(first_cluster, n_clusters, _SHARES):
            first, last = start[block, k], start[block + 1, k]
            if first == last:
                continue
            for p in range(first, last):
                u = word[p]
                own, all_scores, r = weights[u], scores[u], ratio[u, k]
                for t in range(n_tables):
                    mass[p - first, t] = r * table[k, t] * own[row[k, t]]
                for m in range(n_topics):
                    log_psi[p - first, m] = all_scores[m]
            np.dot(mass[: last - first].T, log_psi[: last - first], part)
            for p in range(last - first):
                for t in range(n_tables):
                    n_kt[k, t] += mass[p, t]
            for t in range(n_tables):
                for m in range(n_topics):
                    log_likelihood[k, t, m] += part[t, m]


@kernel(error_model="numpy")
def sum_tables(ratio, weights, was, table, now, soft, first, last, topic_words):
    """topic_words[u] = sum_kt mu_kt N_kt(u) for words u in first..last-1; rows of tables: ``was`` then, ``now`` now."""
    n_topics = topic_words.shape[1]
    mass = np.empty(n_topics + soft.shape[0])
    for u in range(first, last):
        for d in range(mass.size):
            mass[d] = 0.0
        own, out = weights[u], topic_words[u]
        for k in range(now.shape[0]):
            r = ratio[u, k]
            if r > 0.0:
                for t in range(now.shape[1]):
                    mass[now[k, t]] += r * table[k, t] * own[was[k, t]]
        for m in range(n_topics):
            out[m] = mass[m]
        for d in range(soft.shape[0]):
            n = mass[n_topics + d]
            if n > 0.0:
                for m in range(n_topics):
                    out[m] += n * soft[d, m]


def lost_mass(tables: WordTables, mass: TableMass) -> np.ndarray:
    """(T, lost): N_kt of the lost pairs."""
    word, cluster = mass.lost
    log_share = tables.scores[word, tables.rows.row[cluster].T] + tables.log_table[cluster].T
    return mass.word_mass[word, cluster] * np.exp(log_share - tables.log_likelihood[word, cluster])


def table_statistics(tables: WordTables, mass: TableMass, pool: Executor | None) -> tuple[np.ndarray, np.ndarray]:
    """(K, T) float64 n_kt = sum_w N_kt(w), and (K, T, M) float64 sum_w N_kt(w) E ln psi_mw."""
    n_clusters, n_tables = tables.log_table.shape
    n_topics = tables.rows.soft.shape[1]
    n_kt = np.zeros((n_clusters, n_tables))
    log_likelihood = np.zeros((n_clusters, n_tables, n_topics))
    table = np.exp(tables.log_table)

    def work(share: int, _: int) -> None:
        known = mass.ratio, tables.weights, tables.rows.row, table, tables.scores
        sum_pairs(mass.word, mass.start, share, *known, n_kt, log_likelihood)

    in_blocks(pool, work, min(_SHARES, n_clusters), 1)
    for n, word, k in zip(lost_mass(tables, mass).T, *mass.lost, strict=True):
        n_kt[k] += n
        log_likelihood[k] += n[:, None] * tables.scores[word, :n_topics]
    return n_kt, log_likelihood


def topic_statistics(tables: WordTables, mass: TableMass, table_topic: np.ndarray, pool: Executor | None) -> np.ndarray:
    """(U, M) float64: sum_kt mu_ktm N_kt(w) given (K, T, M) mu, which may have moved since ``tables``."""
    now, table = TableRows.of(table_topic), np.exp(tables.log_table)
    topic_words = np.empty((len(mass.ratio), table_topic.shape[2]))

    def work(first: int, last: int) -> None:
        known = mass.ratio, tables.weights, tables.rows.row, table, now.row, now.soft
        sum_tables(*known, first, last, topic_words)

    in_blocks(pool, work, len(topic_words), WORD_BLOCK)
    for n, word, k in zip(lost_mass(tables, mass).T, *mass.lost, strict=True):
        topic_words[word] += n @ table_topic[k]
    return topic_words
