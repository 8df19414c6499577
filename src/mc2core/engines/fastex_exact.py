"""The exact rival inside FastEx: score every cluster from a dense table, word by word, and draw (collapsed Gibbs).

ln(n_kd + a) stands in a table with one row of K entries for each word, so a document's score under all clusters is a
sum of its words' rows: vector additions, at the speed at which memory delivers the rows. With the counts beside it,
the table takes 8 K V bytes.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import Executor

import numba
import numpy as np
from scipy.special import gammaln

from mc2core import numerics, rng
from mc2core.compiling import kernel
from mc2core.corpus import Corpus
from mc2core.engines.base import State
from mc2core.engines.fastex_components import (
    GAUSSIAN,
    MULTINOMIAL,
    POISSON,
    Plan,
    document_mass,
    log_gaussian,
    log_joint_of_sizes,
    precision_rate,
    precision_shape,
)
from mc2core.engines.fastex_state import JOINT_UNIT

_REPEATS = 16  # counts above are scored by the difference of two log-gamma
#: of each word in each cluster: an int32 count and a float32 logarithm
TABLE_CELL_BYTES = 8


@kernel
def _terms(component, n_words, word_prior, weight_prior, rate_prior, n_documents, mass, squares):
    """A cluster's (head, slope, tail, shape), from which :func:`_finish` makes ``log_evidence`` of any document."""
    weight = math.log(n_documents + weight_prior)
    if component == GAUSSIAN:
        strength = word_prior + n_documents + 1.0
        shape = precision_shape(n_words, n_documents + 1)
        head = weight - log_gaussian(n_words, word_prior, rate_prior, n_documents, mass, squares)
        head += numerics.log_gamma(shape) - 0.5 * n_words * math.log(strength)
        return head, 1.0 / strength, precision_rate(rate_prior, word_prior, n_documents + 1, mass, squares), shape
    total = mass + n_words * word_prior
    if component == MULTINOMIAL:
        return weight + math.lgamma(total), 0.0, total, 0.0
    rate = n_documents + rate_prior
    return weight - total * math.log1p(1.0 / rate), -math.log(rate + 1.0), 0.0, 0.0


@kernel
def _finish(component, mass, head, slope, tail, shape, scores):
    """Turn (K,) float64 ``scores``, sums of word terms of a document of this mass, into its log evidence."""
    if component == MULTINOMIAL:
        for k in range(scores.size):
            scores[k] += head[k] - numerics.log_gamma(tail[k] + mass)
    elif component == POISSON:
        for k in range(scores.size):
            scores[k] += head[k] + mass * slope[k]
    else:
        for k in range(scores.size):
            # what the rate of the precision's posterior becomes with the document
            rate = tail[k] + 0.5 * mass * (1.0 - slope[k]) - scores[k] * slope[k]
            scores[k] = head[k] - shape[k] * numerics.log(rate)


@numba.njit(inline="always")
def _log_of(component, word_prior, n):
    """Entry of ``logs`` for the count n."""
    return np.float64(n) if component == GAUSSIAN else math.log(n + word_prior)


@kernel
def _add(component, words, counts, first, last, sign, k, word_prior, table, logs):
    """Add a document's words to cluster k (sign 1) or take them out (-1); returns the change of its squares."""
    squares = np.int64(0)
    for cell in range(first, last):
        n = np.int64(table[words[cell], k]) + sign * counts[cell]
        squares += sign * counts[cell] * (2 * n - sign * counts[cell])
        table[words[cell], k] = n
        logs[words[cell], k] = _log_of(component, word_prior, n)
    return squares


@kernel
def _fill_logs(component, word_prior, table, logs):
    """Fill (V, K) float32 ``logs`` from the counts, in place: NumPy would make float64 tables of the same shape."""
    for word in range(table.shape[0]):
        for k in range(table.shape[1]):
            logs[word, k] = _log_of(component, word_prior, table[word, k])


@kernel
def score_clusters(component, words, counts, first, last, word_prior, table, logs, scores):
    """Fill (K,) float64 ``scores`` with the sum over words of :func:`fastex_components.word_term`."""
    scores[:] = 0.0
    for cell in range(first, last):
        row, x = logs[words[cell]], counts[cell]
        if component == GAUSSIAN:
            for k in range(scores.size):
                scores[k] += np.float64(x) * row[k]
            continue
        for k in range(scores.size):
            scores[k] += row[k]
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


@kernel
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


@kernel
def sweep_exact(
    key, indptr, words, counts, document_mass, cluster, component, word_prior, weight_prior, rate_prior,
    table, logs, n_k, mass, squares, moves,
):  # fmt: skip
    """One Gibbs draw for each document in order, in place; ``moves`` (2,) int64 as in :func:`fastex_hash.sweep`."""
    n_words, n_clusters = table.shape
    head, slope, tail, shape = np.empty(n_clusters), np.empty(n_clusters), np.empty(n_clusters), np.empty(n_clusters)
    scores = np.empty(n_clusters)
    priors = word_prior, weight_prior, rate_prior
    for k in range(n_clusters):
        sizes = n_k[k], mass[k], squares[k]
        head[k], slope[k], tail[k], shape[k] = _terms(component, n_words, *priors, *sizes)
    stream = np.zeros(2, np.uint64)
    for j in range(cluster.size):
        cells = indptr[j], indptr[j + 1]
        new = cluster[j]
        for sign in (-1, 1):
            squares[new] += _add(component, words, counts, *cells, sign, new, word_prior, table, logs)
            n_k[new] += sign
            mass[new] += sign * document_mass[j]
            sizes = n_k[new], mass[new], squares[new]
            head[new], slope[new], tail[new], shape[new] = _terms(component, n_words, *priors, *sizes)
            if sign == -1:
                score_clusters(component, words, counts, *cells, word_prior, table, logs, scores)
                _finish(component, document_mass[j], head, slope, tail, shape, scores)
                rng.seek(stream, key, j)
                new = draw_from_logs(stream, scores)
        if new != cluster[j]:
            cluster[j] = new
            moves[0] += 1
            moves[1] += 1


@kernel
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
    table : (V, K) int32 counts n_kd; logs : (V, K) float32, ln(n_kd + a), for the Gaussian n_kd
    n_k, mass, squares : (K,) int64, see :mod:`mc2core.engines.fastex_components`
    """

    def __init__(self, corpus: Corpus, plan: Plan, cluster: np.ndarray) -> None:
        refuse_tables_beyond_memory("exact", TABLE_CELL_BYTES, corpus.n_words, plan.n_clusters)
        content = corpus.content
        self.plan = plan
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)
        self.indptr = content.indptr.astype(np.int64)
        self.words = np.ascontiguousarray(content.indices, dtype=np.int32)
        self.counts = np.ascontiguousarray(content.data, dtype=np.int32)
        self.document_mass = document_mass(plan.component, self.counts, self.indptr)
        self.n_k = np.bincount(self.cluster, minlength=plan.n_clusters).astype(np.int64)
        self.mass = np.bincount(self.cluster, weights=self.document_mass, minlength=plan.n_clusters).astype(np.int64)
        self.table = np.zeros((corpus.n_words, plan.n_clusters), np.int32)
        cells = np.repeat(self.cluster, np.diff(self.indptr))
        np.add.at(self.table, (self.words, cells), self.counts)
        self.squares = np.einsum("dk,dk->k", self.table, self.table, dtype=np.int64)
        self.logs = np.empty(self.table.shape, np.float32)
        _fill_logs(plan.component, plan.word_prior, self.table, self.logs)
        self._log_gamma = gammaln(np.arange(1 << 14) + plan.word_prior)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One sweep over all documents in order, on one thread; moves are added to both entries of ``moves``."""
        plan = self.plan
        sweep_exact(
            key, self.indptr, self.words, self.counts, self.document_mass, self.cluster, plan.component,
            plan.word_prior, plan.weight_prior, plan.rate_prior, self.table, self.logs, self.n_k, self.mass,
            self.squares, moves,
        )  # fmt: skip

    @property
    def sizes(self) -> np.ndarray:
        """(K,) int64: documents of each cluster."""
        return self.n_k

    @property
    def log_joint(self) -> float:
        """As :attr:`fastex_state.FastExState.log_joint`."""
        sizes = self.n_k, self.mass, self.squares
        of_sizes = log_joint_of_sizes(self.plan, len(self.table), len(self.cluster), *sizes)
        if self.plan.component == GAUSSIAN:
            return of_sizes
        return of_sizes + _log_cells(self.table, self._log_gamma, self.plan.word_prior) / JOINT_UNIT

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cluster": self.cluster}
