"""The exact rival inside FastEx: score every cluster from a dense table, word by word, and draw (collapsed Gibbs).

ln(n_kd + a) stands in a table with one row of K entries for each word, so a document's score under all clusters is a
sum of its words' rows: vector additions, at the speed at which memory delivers the rows. The table takes 8 K V bytes.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import Executor

import numba
import numpy as np
from scipy.special import gammaln

from mc2core import numerics, rng
from mc2core.corpus import Corpus
from mc2core.engines.base import State
from mc2core.engines.fastex_hash import MULTINOMIAL
from mc2core.engines.fastex_state import JOINT_UNIT, Plan, log_joint_of_sizes

_REPEATS = 16  # counts above are scored by the difference of two log-gamma
_BLOCK = 64


@numba.njit(cache=True, nogil=True)
def _head(component, n_words, word_prior, weight_prior, rate_prior, n_k, n_tokens):
    """Per-cluster score and, for Poisson, its part for each token: see :func:`fastex_hash.log_cluster_term`."""
    mass = n_tokens + n_words * word_prior
    weight = math.log(n_k + weight_prior)
    if component == MULTINOMIAL:
        return weight + math.lgamma(mass), 0.0
    rate = n_k + rate_prior
    return weight - mass * math.log1p(1.0 / rate), -math.log(rate + 1.0)


@numba.njit(cache=True, nogil=True)
def _add(words, counts, first, last, sign, k, word_prior, table, logs):
    for cell in range(first, last):
        n = table[words[cell], k] + sign * counts[cell]
        table[words[cell], k] = n
        logs[words[cell], k] = math.log(n + word_prior)


@numba.njit(cache=True, nogil=True)
def score_clusters(words, counts, first, last, word_prior, table, logs, scores):
    """Add sum_d ln G(n_kd + a + x_d) - ln G(n_kd + a) to (K,) float64 ``scores``."""
    for cell in range(first, last):
        row = logs[words[cell]]
        for k in range(scores.size):
            scores[k] += row[k]
        x = counts[cell]
        if x > 1:
            n = table[words[cell]]
            if x <= _REPEATS:
                for i in range(1, x):
                    for k in range(scores.size):
                        scores[k] += numerics.log(n[k] + (word_prior + i))
            else:
                for k in range(scores.size):
                    low = n[k] + (word_prior + 1.0)
                    scores[k] += numerics.log_gamma(low + (x - 1)) - numerics.log_gamma(low)


@numba.njit(cache=True, nogil=True)
def draw_from_logs(stream, scores):
    """Index drawn in proportion to exp(scores); (K,) float64 ``scores`` are used up."""
    top = scores.max()
    for k in range(scores.size):
        scores[k] = numerics.exp(scores[k] - top)
    u = rng.uniform(stream) * scores.sum()
    k = 0
    while k < scores.size - 1 and u >= scores[k]:
        u -= scores[k]
        k += 1
    return k


@numba.njit(cache=True, nogil=True)
def sweep_exact(
    key, indptr, words, counts, length, cluster, component, word_prior, weight_prior, rate_prior,
    table, logs, n_k, n_tokens, moves,
):  # fmt: skip
    """One Gibbs draw for each document in order, in place; ``moves`` (2,) int64 as in :func:`fastex_hash.sweep`."""
    n_words, n_clusters = table.shape
    head = np.empty(n_clusters)
    slope = np.empty(n_clusters)
    mass = np.empty(n_clusters)
    scores = np.empty(n_clusters)
    for k in range(n_clusters):
        mass[k] = n_tokens[k] + n_words * word_prior
        head[k], slope[k] = _head(component, n_words, word_prior, weight_prior, rate_prior, n_k[k], n_tokens[k])
    stream = np.zeros(2, np.uint64)
    for j in range(cluster.size):
        old = cluster[j]
        new = old
        for sign in (-1, 1):
            _add(words, counts, indptr[j], indptr[j + 1], sign, new, word_prior, table, logs)
            n_k[new] += sign
            n_tokens[new] += sign * length[j]
            mass[new] = n_tokens[new] + n_words * word_prior
            head[new], slope[new] = _head(
                component, n_words, word_prior, weight_prior, rate_prior, n_k[new], n_tokens[new]
            )
            if sign == 1:
                break
            if component == MULTINOMIAL:
                for k in range(n_clusters):
                    scores[k] = head[k] - numerics.log_gamma(mass[k] + length[j])
            else:
                for k in range(n_clusters):
                    scores[k] = head[k] + length[j] * slope[k]
            score_clusters(words, counts, indptr[j], indptr[j + 1], word_prior, table, logs, scores)
            rng.seek(stream, key, j)
            new = draw_from_logs(stream, scores)
        if new != old:
            cluster[j] = new
            moves[0] += 1
            moves[1] += 1


@numba.njit(cache=True, nogil=True)
def _log_cells(table, log_gamma, word_prior):
    total = np.int64(0)
    for word in range(table.shape[0]):
        for k in range(table.shape[1]):
            n = table[word, k]
            if n:
                value = log_gamma[n] if n < log_gamma.size else math.lgamma(n + word_prior)
                total += np.int64((value - log_gamma[0]) * JOINT_UNIT)
    return total


def refuse_tables_beyond_memory(proposal: str, cell_bytes: int, n_words: int, n_clusters: int) -> None:
    """ValueError where a (V, K) table would take more than 0.8 of this machine's memory."""
    gigabytes = 1e-9 * cell_bytes * n_words * n_clusters
    memory = 1e-9 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if gigabytes > 0.8 * memory:
        raise ValueError(
            f"proposal={proposal!r} needs a table of {gigabytes:.1f} GB for {n_clusters} clusters and "
            f"{n_words} words, but this machine has {memory:.1f} GB; use proposal='hash'"
        )


class ExactState(State):
    """Assignments and dense tables.

    Attributes
    ----------
    cluster : (J,) int32
    table : (V, K) int32 counts n_kd; logs : (V, K) float32, ln(n_kd + a)
    n_k, n_tokens : (K,) int64
    """

    def __init__(self, corpus: Corpus, plan: Plan, cluster: np.ndarray) -> None:
        refuse_tables_beyond_memory("exact", 8, corpus.n_words, plan.n_clusters)
        content = corpus.content
        self.plan = plan
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)
        self.indptr = content.indptr.astype(np.int64)
        self.words = np.ascontiguousarray(content.indices, dtype=np.int32)
        self.counts = np.ascontiguousarray(content.data, dtype=np.int32)
        self.length = corpus.document_lengths
        self.n_k = np.bincount(self.cluster, minlength=plan.n_clusters).astype(np.int64)
        self.n_tokens = np.bincount(self.cluster, weights=self.length, minlength=plan.n_clusters).astype(np.int64)
        self.table = np.zeros((corpus.n_words, plan.n_clusters), np.int32)
        cells = np.repeat(self.cluster, np.diff(self.indptr))
        np.add.at(self.table, (self.words, cells), self.counts)
        self.logs = np.log(self.table + np.float64(plan.word_prior)).astype(np.float32)
        self._log_gamma = gammaln(np.arange(1 << 14) + plan.word_prior)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One sweep over all documents in order, on one thread; moves are added to both entries of ``moves``."""
        plan = self.plan
        sweep_exact(
            key, self.indptr, self.words, self.counts, self.length, self.cluster, plan.component, plan.word_prior,
            plan.weight_prior, plan.rate_prior, self.table, self.logs, self.n_k, self.n_tokens, moves,
        )  # fmt: skip

    @property
    def sizes(self) -> np.ndarray:
        """(K,) int64: documents of each cluster."""
        return self.n_k

    @property
    def log_joint(self) -> float:
        """As :attr:`fastex_state.FastExState.log_joint`."""
        cells = _log_cells(self.table, self._log_gamma, self.plan.word_prior) / JOINT_UNIT
        return log_joint_of_sizes(self.plan, len(self.table), len(self.cluster), self.n_k, self.n_tokens) + cells

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cluster": self.cluster}
