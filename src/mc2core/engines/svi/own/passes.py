"""Passes over one document whose proportions are its own: which topics its tokens have under a given prior.

A pass takes gamma_wm prop. to exp(E ln psi_mw + digamma(a_m + n_m)) with the counts n of the pass before
(:mod:`mc2core.engines.svi.own.documents`). Without counts to start from the first pass leaves gamma to the words alone:
even counts N / M would not do, since where N is below M their digamma is -M / N, and a topic that the prior prefers
would take all of a short document.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, exp, log
from mc2core.compute.threads import in_blocks
from mc2core.engines.svi.local import WORD_BLOCK, exponentiate, fill_log_psi, row_maxima
from mc2core.engines.svi.own.state import OwnExpectations, OwnGlobals

_TOLERANCE = 1e-3  # tokens that change their topics in a pass, relative to all, at which passes end
_LEAST_FACTOR, _LEAST_SUM = 1e-150, 1e-130  # as in engines.svi.direct.words
# sums of products may be taken in any order: vector code
_SUMS = {"contract", "reassoc", "nsz"}


class Words(NamedTuple):
    """E ln psi of a batch's words: ``scores`` (U, M), ``top`` (U,) their maxima, ``weights`` exp(scores - top)."""

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray


def topic_scores(state: OwnGlobals, expected: OwnExpectations, words: np.ndarray, pool: Executor | None) -> Words:
    """E ln psi of the given words under the current globals."""
    scores, weights = np.empty((2, len(words), len(expected.log_topic_total)))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        fill_log_psi(
            state.topic_words, state.shrink, words, state.topic_prior, expected.log_topic_total, first, last, scores
        )
        row_maxima(scores, first, last, top)
        exponentiate(scores, top, first, last, weights)
        weights[first:last][weights[first:last] < _LEAST_FACTOR] = 0.0

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return Words(scores, top, weights)


@kernel(error_model="numpy", fastmath=_SUMS)
def _proportions(a, n, log_theta, theta):
    """log_theta = digamma(a + n) less its largest, and its exponential."""
    highest = -np.inf
    for m in range(a.size):
        log_theta[m] = digamma(a[m] + n[m])
    for m in range(a.size):
        highest = max(highest, log_theta[m])
    for m in range(a.size):
        log_theta[m] -= highest
        theta[m] = exp(log_theta[m])
    for m in range(a.size):
        theta[m] = theta[m] if theta[m] > _LEAST_FACTOR else 0.0


@kernel(error_model="numpy", fastmath=_SUMS)
def _add_cell(p, theta, x, fresh):
    """Sum of p theta, and fresh += x p / sum where that has not vanished."""
    total = 0.0
    for m in range(p.size):
        total += p[m] * theta[m]
    if total >= _LEAST_SUM:
        r = x / total
        for m in range(p.size):
            fresh[m] += r * p[m]
    return total


@kernel(error_model="numpy")
def settle(p, words, x, u, used, a, n, theta, total, best, n_passes):
    """At most ``n_passes`` passes of one document under the prior ``a`` (A,) over the topics ``used`` (A,).

    ``p`` (cells, A) are the weights of its words ``u``, ``x`` their counts. ``n`` (A,) holds the counts it starts from,
    zeros where there are none, and those of the last pass; ``theta`` (A,), ``total`` (cells,) and ``best`` (cells,)
    are filled. Returns sum_w x ln sum_m psi theta - sum_m n ln theta.
    """
    fresh, extra, log_theta = np.empty(a.size), np.zeros(a.size), np.empty(a.size)
    n_tokens = x.sum()
    value = 0.0
    scores, top = words.scores, words.top
    is_even = n.max() == 0.0
    for _ in range(n_passes):
        if is_even:
            log_theta[:] = 0.0
            theta[:] = 1.0
        else:
            _proportions(a, n, log_theta, theta)
        is_even = False
        fresh[:] = 0.0
        extra[:] = 0.0
        value = 0.0
        for c in range(x.size):
            total[c] = _add_cell(p[c], theta, x[c], fresh)
            best[c] = -1
            if total[c] >= _LEAST_SUM:
                value += x[c] * (top[u[c]] + log(total[c]))
                continue
            # too small for float64: all of it to the likeliest topic
            highest = -np.inf
            for i in range(a.size):
                score = scores[u[c], used[i]] + log_theta[i]
                if score > highest:
                    highest = score
                    best[c] = i
            value += x[c] * highest
            extra[best[c]] += x[c]
        change = 0.0
        for i in range(a.size):
            new = fresh[i] * theta[i] + extra[i]
            change += abs(new - n[i])
            n[i] = new
        if change < _TOLERANCE * n_tokens:
            break
    for i in range(a.size):
        if n[i] > 0.0:
            value -= n[i] * log_theta[i]
    return value
