"""Words under tables: S_kt(w) = sum_m mu_ktm E ln psi_mw + E ln tau_kt and lse_k(w) = ln sum_t exp S_kt(w).

**Hard tables.** After the first steps nearly every q(c_kt) is a single topic up to rounding. Such a table's row
sum_m mu_ktm E ln psi_mw is a column of E ln psi, and all tables that serve a topic share it, so the K T rows of the
product shrink to M and a few dozen of *soft* tables (:class:`TableRows`). exp is taken of these, and a product with
the tables' weights exp(E ln tau_kt) sums over tables. The result is the same either way; only the cost follows.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.local import LEAST_SHARE, WORD_BLOCK, exponentiate, fill_log_psi, row_maxima, take_logs
from mc2core.inference.svi.tables.state import TableExpectations, TableGlobals


@kernel(error_model="numpy")
def find_rows(shares):
    """(rows,) int64: the one topic of a hard row of ``shares`` (rows, M); M, M + 1, ... for the soft rows in order."""
    row = np.empty(shares.shape[0], np.int64)
    n_soft = 0
    for i in range(shares.shape[0]):
        n_known = 0
        for m in range(shares.shape[1]):
            if shares[i, m] > LEAST_SHARE:
                n_known += 1
                row[i] = m
        if n_known > 1:
            row[i] = shares.shape[1] + n_soft
            n_soft += 1
    return row


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
        n_topics = table_topic.shape[-1]
        row = find_rows(table_topic.reshape(-1, n_topics))
        soft = table_topic.reshape(-1, n_topics)[row >= n_topics]
        return cls(row.reshape(table_topic.shape[:-1]), np.where(soft > LEAST_SHARE, soft, 0.0))


class WordTables(NamedTuple):
    """What the documents of a batch share, over its U distinct words.

    scores : (U, rows) float64, sum_m mu_m E ln psi_mw of every row of ``rows``: the first M columns are E ln psi
    weights : (U, rows) float64, exp(scores - the word's highest score)
    sums : (U, K) float64, sum_t exp(E ln tau_kt) weights[row[k, t]]; may vanish
    log_likelihood : (U, K) float64, lse_k(w)
    rows : TableRows
    log_table : (K, T) float64, E ln tau
    """

    scores: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray
    rows: TableRows
    log_table: np.ndarray


def word_tables(
    state: TableGlobals, expected: TableExpectations, words: np.ndarray, pool: Executor | None
) -> WordTables:
    """E ln psi and lse of the given words under the current globals."""
    rows = TableRows.of(expected.table_topic)
    n_clusters, _, n_topics = expected.table_topic.shape
    n_rows = n_topics + len(rows.soft)
    weight = np.zeros((n_rows, n_clusters))
    np.add.at(weight, (rows.row, np.arange(n_clusters)[:, None]), np.exp(expected.log_table))
    soft = np.ascontiguousarray(rows.soft.T)  # the layout that BLAS is fastest with
    scores, weights = np.empty((2, len(words), n_rows))
    sums, log_likelihood = np.empty((2, len(words), n_clusters))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        total = expected.log_topic_total
        fill_log_psi(state.topic_words, state.shrink, words, state.topic_prior, total, first, last, scores)
        np.matmul(scores[first:last, :n_topics], soft, out=scores[first:last, n_topics:])
        row_maxima(scores, first, last, top)
        exponentiate(scores, top, first, last, weights)
        np.matmul(weights[first:last], weight, out=sums[first:last])
        take_logs(sums, top, scores, rows.row, expected.log_table, first, last, log_likelihood)

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return WordTables(scores, weights, sums, log_likelihood, rows, expected.log_table)
