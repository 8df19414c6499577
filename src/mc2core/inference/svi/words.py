"""Expected log probabilities of words, and natural-gradient steps of arrays with one row per word or context column."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import digamma, exp, log_gamma
from mc2core.compute.threads import in_blocks

WORD_BLOCK = 512
ROW_BLOCK = 1024
# smaller factors are set to 0, because multiplying subnormal numbers takes a hundred times as long
MIN_FACTOR = 1e-150
# in sums of at least this size, setting small factors to 0 changes less than rounding; smaller sums are recomputed
MIN_SUM = 1e-130


class WordScores(NamedTuple):
    """Expected log probabilities of words (E ln psi) or expected log densities of observations, under each topic.

    ``scores`` (U, M) contains these values, ``top`` (U,) their maxima, and ``weights`` (U, M) exp(scores - top). The
    arrays are in the buffers of the state and are valid until its next step.
    """

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray


@inner_kernel(fastmath={"contract"})
def fill_log_psi(topic_words, shrink, words, prior, log_total, first, last, log_psi):
    """Write log_psi[u, m] = digamma(shrink n_wm + s) - digamma(total_m) for u in first..last-1."""
    for u in range(first, last):
        counts, out = topic_words[words[u]], log_psi[u]
        for m in range(counts.size):
            out[m] = digamma(shrink * counts[m] + prior) - log_total[m]


# a maximum does not depend on the order, so its loop may be vectorised
@inner_kernel(fastmath={"nnan", "ninf", "nsz", "reassoc"})
def row_maxima(scores, first, last, top):
    """Write top[u] = max scores[u] for u in first..last-1."""
    for u in range(first, last):
        highest = scores[u, 0]
        for d in range(1, scores.shape[1]):
            highest = max(highest, scores[u, d])
        top[u] = highest


@inner_kernel
def exponentiate(scores, top, first, last, weights):
    """Write weights[u] = exp(scores[u] - top[u]) for u in first..last-1."""
    for u in range(first, last):
        for d in range(scores.shape[1]):
            weights[u, d] = exp(scores[u, d] - top[u])


@kernel
def fill_weights(topic_words, shrink, words, prior, log_total, first, last, scores, top, weights):
    """Fill rows first..last-1 of :class:`WordScores`."""
    for u in range(first, last):  # row by row, so that each row stays in the cache
        if log_total.size > 0:  # scores of observations have been computed before
            fill_log_psi(topic_words, shrink, words, prior, log_total, u, u + 1, scores)
        row_maxima(scores, u, u + 1, top)
        exponentiate(scores, top, u, u + 1, weights)
        for m in range(weights.shape[1]):
            weights[u, m] = weights[u, m] if weights[u, m] >= MIN_FACTOR else 0.0


def blend(old: np.ndarray, new: np.ndarray, rate: float) -> None:
    """Set ``old`` to (1 - rate) old + rate new, in place."""
    old *= 1.0 - rate
    old += rate * new


def blend_rows(
    table: np.ndarray,
    shrink: float,
    rows: np.ndarray,
    counts: np.ndarray,
    scale: float,
    rate: float,
    pool: Executor | None = None,
) -> tuple[float, np.ndarray]:
    """Multiply ``shrink * table`` by 1 - rate, then add rate scale ``counts`` (R, n) to its ``rows`` (R,).

    Modifies ``table`` in place. Returns the new ``shrink`` and the column sums of ``counts``, (n,).
    """
    if rate == 1.0:
        table[:] = 0.0
        shrink = 1.0
    else:
        shrink *= 1.0 - rate
    factor = rate * scale / shrink

    def work(first: int, last: int) -> np.ndarray:
        return add_rows(table, rows, counts, factor, first, last)

    return shrink, sum(in_blocks(pool, work, len(rows), ROW_BLOCK), start=np.zeros(counts.shape[1]))


@kernel
def add_rows(table, rows, values, factor, first, last):
    """Add factor * values[u] to table[rows[u]] for u in first..last-1, and return the column sums of these values."""
    total = np.zeros(values.shape[1])
    for u in range(first, last):
        row, value = table[rows[u]], values[u]
        for m in range(value.size):
            row[m] += factor * value[m]
            total[m] += value[m]
    return total


@kernel(fastmath={"contract"})
def sum_topic_divergence(topic_words, shrink, prior, log_total, log_gamma_prior, first, last):
    """Return the sum of n E ln psi - lnG(s + n) + lnG(s) over words first..last-1 and topics.

    Here n is shrink * topic_words, and s is ``prior``.
    """
    total = 0.0
    for w in range(first, last):
        for m in range(topic_words.shape[1]):
            n = shrink * topic_words[w, m]
            x = prior + n
            total += n * (digamma(x) - log_total[m]) - log_gamma(x) + log_gamma_prior
    return total
