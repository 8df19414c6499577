"""Local step and global step of the proportions in SVI-MC2 with tables, as in UAI16.

q(epsilon) and q(tau_k) are truncated stick-breaking posteriors, and q(c_kt) is categorical. K, T and M are the
truncations of clusters, of tables per cluster, and of topics.

**Words under tables.** S_kt(w) = sum_m mu_ktm E ln psi_mw + E ln tau_kt and lse_k(w) = ln sum_t exp S_kt(w).

**Hard tables.** After the first steps, nearly every q(c_kt) is a single topic up to rounding. For such a *hard* table,
sum_m mu_ktm E ln psi_mw equals E ln psi_mw of its topic. All other tables are *soft*. Therefore, this sum is computed
for M topics and a few dozen soft tables instead of all K T tables (:class:`TableRows`). The exponentials of the sums
are then multiplied by the weights exp(E ln tau_kt) of tables. This saves time and does not change the result.

**Statistics.** The global step needs sums of N_kt(w) = R_k(w) r_kt(w), the expected tokens of word w at table t of
cluster k. R_k(w) is the expected number of tokens of word w in cluster k in a mini-batch. N is not stored, but computed
from three small factors during the summation (:class:`TableMass`). Sums over words are taken over fixed blocks in a
fixed order, so results do not depend on the number of threads.

**Global step** (UAI16, eq. 2-5, corrected). The step first updates sticks and tables, then the topics, given the new
q(c_kt). The optimum of q(c_kt) depends on q(psi_m), and vice versa. A joint step, which updates both at once, could
therefore lower the ELBO even with the whole corpus and learning rate 1.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.records import record
from mc2core.compute.special import exp, log
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.assign import LOST_SHARE, Assign, assign_documents
from mc2core.inference.svi.concentrations import TABLE, TOPIC
from mc2core.inference.svi.documents import Batch, Expectations
from mc2core.inference.svi.globals import Globals, LocalStep
from mc2core.inference.svi.proportions import TableProportions, topic_shares
from mc2core.inference.svi.sticks import expected_log_weights, stick_posterior
from mc2core.inference.svi.words import WORD_BLOCK, blend, exponentiate, row_maxima

# number of parallel tasks of the sums over tables: task k % _SHARES processes cluster k
_SHARES = 8
# smaller sums over tables underflow and are recomputed in logarithms
_MIN_SUM = 1e-250


@kernel
def find_rows(shares):
    """Return the index of the distinct row for each table, (rows,) int64, given its topic probabilities ``shares``.

    The index of a hard table is its topic. Soft tables are numbered M, M + 1, ... in order.
    """
    row = np.empty(shares.shape[0], np.int64)
    n_soft = 0
    for i in range(shares.shape[0]):
        n_known = 0
        for m in range(shares.shape[1]):
            if shares[i, m] > LOST_SHARE:
                n_known += 1
                row[i] = m
        if n_known > 1:
            row[i] = shares.shape[1] + n_soft
            n_soft += 1
    return row


@record
class TableRows(NamedTuple):
    """Distinct rows among the topic probabilities mu_kt of tables: one per topic, then one per soft table.

    row : (K, T) int64, index of the distinct row of each table; index m < M is topic m
    soft : (rows - M, M) float64, topic probabilities of the soft tables
    """

    row: np.ndarray
    soft: np.ndarray

    @classmethod
    def from_probabilities(cls, table_topic: np.ndarray) -> TableRows:
        """Return the distinct rows of the topic probabilities mu, (K, T, M)."""
        n_topics = table_topic.shape[-1]
        row = find_rows(table_topic.reshape(-1, n_topics))
        soft = table_topic.reshape(-1, n_topics)[row >= n_topics]
        return cls(row.reshape(table_topic.shape[:-1]), np.where(soft > LOST_SHARE, soft, 0.0))


@kernel
def take_logs(sums, top, scores, row, log_table, first, last, log_likelihood):
    """Write log_likelihood[u, k] = top[u] + ln sums[u, k] for words first..last-1.

    A sum that underflows is recomputed relative to its largest term.
    """
    for u in range(first, last):
        for k in range(sums.shape[1]):
            log_likelihood[u, k] = top[u] + log(max(sums[u, k], _MIN_SUM))
        for k in range(sums.shape[1]):
            if sums[u, k] < _MIN_SUM:
                highest = -np.inf
                for t in range(row.shape[1]):
                    highest = max(highest, scores[u, row[k, t]] + log_table[k, t])
                total = 0.0
                for t in range(row.shape[1]):
                    total += exp(scores[u, row[k, t]] + log_table[k, t] - highest)
                log_likelihood[u, k] = highest + log(total)


@record
class WordTables(NamedTuple):
    """Word likelihoods under tables and clusters, for the U distinct words of a batch.

    scores : (U, rows) float64, sum_m mu_m E ln psi_mw of each distinct row; the first M columns are E ln psi
    weights : (U, rows) float64, exp(scores - highest score of the word)
    sums : (U, K) float64, sum_t exp(E ln tau_kt) weights[row[k, t]]; may underflow
    log_likelihood : (U, K) float64, lse_k(w)
    rows : distinct topic probabilities of tables
    log_table, log_topic : (K, T) and (M,) float64, E ln tau and E ln epsilon
    table_topic : (K, T, M) float64, topic probabilities mu of all tables
    """

    scores: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray
    rows: TableRows
    log_table: np.ndarray
    log_topic: np.ndarray
    table_topic: np.ndarray


def word_tables(state: Globals, expected: Expectations, words: np.ndarray, pool: Executor | None) -> WordTables:
    """Return E ln psi and the log likelihoods of ``words`` under the current global parameters."""
    assert isinstance(state.proportions, TableProportions)
    table_topic = topic_shares(state.proportions.table_topic)[1]
    log_table = expected_log_weights(state.proportions.table_sticks)
    log_topic = expected_log_weights(state.proportions.topic_sticks)
    rows = TableRows.from_probabilities(table_topic)
    n_clusters, _, n_topics = table_topic.shape
    n_rows = n_topics + len(rows.soft)
    weight = np.zeros((n_rows, n_clusters))
    np.add.at(weight, (rows.row, np.arange(n_clusters)[:, None]), np.exp(log_table))
    soft = np.ascontiguousarray(rows.soft.T)  # BLAS is fastest with this layout
    scores, weights = np.empty((2, len(words), n_rows))
    sums, log_likelihood = np.empty((2, len(words), n_clusters))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        state.fill_scores(expected, words, first, last, scores)
        np.matmul(scores[first:last, :n_topics], soft, out=scores[first:last, n_topics:])
        row_maxima(scores, first, last, top)
        exponentiate(scores, top, first, last, weights)
        np.matmul(weights[first:last], weight, out=sums[first:last])
        take_logs(sums, top, scores, rows.row, log_table, first, last, log_likelihood)

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return WordTables(scores, weights, sums, log_likelihood, rows, log_table, log_topic, table_topic)


@record
class TableMass(NamedTuple):
    """Factors of the expected tokens N_kt(w) = exp(E ln tau_kt) ratio_k(w) weights[row[k, t]].

    ratio : (U, K) float64, R_k(w) / sums; 0 for *lost* pairs, whose sum underflows
    start : (blocks + 1, K) int64; word[start[b, k]:start[b + 1, k]] are the words of cluster k in block b of words
    word : (pairs,) int32, indices of the words with R_k(w) > 0, sorted by cluster k
    word_mass : (U, K) float64, R_k(w), the expected number of tokens of word w in cluster k
    lost : (2, n_lost) int64, words and clusters of lost pairs, for which N_kt(w) = R_k(w) exp(score + E ln tau - lse)
    """

    ratio: np.ndarray
    start: np.ndarray
    word: np.ndarray
    word_mass: np.ndarray
    lost: np.ndarray


@kernel
def fill_ratio(word_mass, sums, first, last, ratio, n_pairs):
    """Fill ``ratio`` for words first..last-1, and set n_pairs[k] to the number of these words with R_k(u) > 0.

    Returns the number of lost pairs.
    """
    n_lost = 0
    for k in range(n_pairs.size):
        n_pairs[k] = 0
    for u in range(first, last):
        for k in range(n_pairs.size):
            is_there = word_mass[u, k] > 0.0
            is_lost = is_there and sums[u, k] < _MIN_SUM
            ratio[u, k] = word_mass[u, k] / sums[u, k] if is_there and not is_lost else 0.0
            n_pairs[k] += is_there
            n_lost += is_lost
    return n_lost


@kernel
def fill_pairs(word_mass, first, last, place, word):
    """Append words first..last-1 with R_k(u) > 0 to ``word`` from index place[k] on, and advance ``place`` (K,)."""
    for u in range(first, last):
        for k in range(place.size):
            if word_mass[u, k] > 0.0:
                word[place[k]] = u
                place[k] += 1


def table_mass(tables: WordTables, word_mass: np.ndarray, pool: Executor | None) -> TableMass:
    """Return the factors of N_kt(w) = R_k(w) r_kt(w), given ``word_mass`` R, (U, K)."""
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
    lost = np.array(np.nonzero((word_mass > 0) & (tables.sums < _MIN_SUM))) if n_lost else np.zeros((2, 0), np.int64)
    return TableMass(ratio, start, word, word_mass, lost)


@kernel
def sum_pairs(word, start, first_cluster, ratio, weights, row, table, scores, n_kt, log_likelihood):
    """Add sum_w N_kt(w) to n_kt[k] and sum_w N_kt(w) E ln psi_mw to log_likelihood[k], for the clusters of one task.

    The task has the clusters first_cluster, first_cluster + _SHARES, ... It processes all of them for one block of
    words before the next block, so that the rows of ``weights`` and ``scores`` stay in the cache.
    """
    n_clusters, n_tables, n_topics = log_likelihood.shape
    mass, log_psi = np.empty((WORD_BLOCK, n_tables)), np.empty((WORD_BLOCK, n_topics))
    product = np.empty((n_tables, n_topics))
    for block in range(start.shape[0] - 1):
        for k in range(first_cluster, n_clusters, _SHARES):
            first, last = start[block, k], start[block + 1, k]
            if first == last:
                continue
            for p in range(first, last):
                u = word[p]
                weight, score, r = weights[u], scores[u], ratio[u, k]
                for t in range(n_tables):
                    mass[p - first, t] = r * table[k, t] * weight[row[k, t]]
                for m in range(n_topics):
                    log_psi[p - first, m] = score[m]
            np.dot(mass[: last - first].T, log_psi[: last - first], product)
            for p in range(last - first):
                for t in range(n_tables):
                    n_kt[k, t] += mass[p, t]
            for t in range(n_tables):
                for m in range(n_topics):
                    log_likelihood[k, t, m] += product[t, m]


@kernel
def sum_tables(ratio, weights, was, table, now, soft, first, last, topic_words):
    """Write topic_words[u] = sum_kt mu_kt N_kt(u) for words u in first..last-1.

    ``was`` and ``now`` (K, T) are the distinct rows of tables before and after the update of q(c). ``soft`` contains
    the new topic probabilities of the soft tables.
    """
    n_topics = topic_words.shape[1]
    mass = np.empty(n_topics + soft.shape[0])
    for u in range(first, last):
        for d in range(mass.size):
            mass[d] = 0.0
        weight, out = weights[u], topic_words[u]
        for k in range(now.shape[0]):
            r = ratio[u, k]
            if r > 0.0:
                for t in range(now.shape[1]):
                    mass[now[k, t]] += r * table[k, t] * weight[was[k, t]]
        for m in range(n_topics):
            out[m] = mass[m]
        for d in range(soft.shape[0]):
            n = mass[n_topics + d]
            if n > 0.0:
                for m in range(n_topics):
                    out[m] += n * soft[d, m]


def lost_mass(tables: WordTables, mass: TableMass) -> np.ndarray:
    """Return N_kt(w) of the lost pairs, (T, n_lost)."""
    word, cluster = mass.lost
    log_share = tables.scores[word, tables.rows.row[cluster].T] + tables.log_table[cluster].T
    return mass.word_mass[word, cluster] * np.exp(log_share - tables.log_likelihood[word, cluster])


def table_statistics(tables: WordTables, mass: TableMass, pool: Executor | None) -> tuple[np.ndarray, np.ndarray]:
    """Return n_kt = sum_w N_kt(w), (K, T) float64, and sum_w N_kt(w) E ln psi_mw, (K, T, M) float64."""
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
    """Return sum_kt mu_ktm N_kt(u), (U, M) float64.

    ``table_topic`` (K, T, M) is mu, which may be newer than the topic probabilities in ``tables``.
    """
    now, table = TableRows.from_probabilities(table_topic), np.exp(tables.log_table)
    topic_words = np.empty((len(mass.ratio), table_topic.shape[2]))

    def work(first: int, last: int) -> None:
        known = mass.ratio, tables.weights, tables.rows.row, table, now.row, now.soft
        sum_tables(*known, first, last, topic_words)

    in_blocks(pool, work, len(topic_words), WORD_BLOCK)
    for n, word, k in zip(lost_mass(tables, mass).T, *mass.lost, strict=True):
        topic_words[word] += n @ table_topic[k]
    return topic_words


@dataclass
class TableStep(LocalStep):
    """Result of a local step with tables.

    words, mass : word likelihoods, and factors of the expected tokens at tables
    n_kt : (K, T) float64, expected number of tokens at each table
    log_likelihood : (K, T, M) float64, expected log likelihood of these tokens under each topic
    """

    words: WordTables
    mass: TableMass
    n_kt: np.ndarray
    log_likelihood: np.ndarray

    def step(self, state: Globals, scale: float, rate: float, pool: Executor | None) -> None:
        """Update sticks and tables in place, and compute ``topic_words`` for the update of the topics.

        The optimum of the natural parameters of q(c_kt) is a_ktm in eq. 5 of UAI16: E ln eps_m + sum_w N_kt(w) E ln
        psi_mw. The topics of tables are global, so the counts of q(epsilon) are not multiplied by J / B. In UAI16, eq.
        4 lacks the factor 1/J that would cancel this scale. A test with finite differences confirms the version without
        the scale (tests/mc2core/inference/svi/test_engine.py).
        """
        assert isinstance(state.proportions, TableProportions)
        own, concentrations = state.proportions, state.concentrations()
        blend(own.table_sticks, stick_posterior(scale * self.n_kt, concentrations.mean[TABLE]), rate)
        blend(own.table_topic, self.words.log_topic + scale * self.log_likelihood, rate)
        shares = self.words.table_topic if state.settings.is_joint else topic_shares(own.table_topic)[1]
        self.topic_words = topic_statistics(self.words, self.mass, shares, pool)
        blend(own.topic_sticks, stick_posterior(shares.sum(axis=(0, 1)), concentrations.mean[TOPIC]), rate)

    def log_words(self) -> float:
        return float(np.sum(self.words.table_topic * self.log_likelihood))

    def change_of_proportions(self, state: Globals, pool: Executor | None) -> float:
        assert isinstance(state.proportions, TableProportions)
        now = expected_log_weights(state.proportions.table_sticks)
        return float(np.sum(self.n_kt * (now - self.words.log_table)))


def local_step(state: Globals, batch: Batch, pool: Executor | None, assign: Assign = assign_documents) -> TableStep:
    """Run the local step of a mini-batch with tables."""
    expected = state.expectations(batch.columns)
    words = word_tables(state, expected, batch.words, pool)
    documents = assign(batch, words.log_likelihood, expected, pool)
    mass = table_mass(words, documents.word_mass, pool)
    return TableStep(expected, documents, np.empty(0), words, mass, *table_statistics(words, mass, pool))
