"""Passes over one document whose proportions are its own: which topics its tokens have under a given prior.

A pass takes gamma_wm prop. to exp(E ln psi_mw + digamma(a_m + n_m)) with the counts n of the pass before
(:mod:`mc2core.inference.svi.document_level.documents`). Without counts to start from the first pass leaves gamma to the
words alone: even counts N / M would not do, since where N is below M their digamma is -M / N, and a topic that the
prior prefers would take all of a short document.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, exp, log
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.direct.words import LEAST_FACTOR, LEAST_SUM, fill_weights
from mc2core.inference.svi.document_level.state import OwnExpectations, OwnGlobals
from mc2core.inference.svi.local import WORD_BLOCK

_TOLERANCE = 1e-3  # tokens that change their topics in a pass, relative to all, at which passes end
# sums of products may be taken in any order: vector code
SUMS = {"contract", "reassoc", "nsz"}


class Words(NamedTuple):
    """E ln psi of a batch's words: ``scores`` (U, M), ``top`` (U,) their maxima, ``weights`` exp(scores - top).

    Those over words and topics are in the state's buffers, until its next step.
    """

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray


def topic_scores(state: OwnGlobals, expected: OwnExpectations, words: np.ndarray, pool: Executor | None) -> Words:
    """E ln psi of the given words under the current globals."""
    shape = len(words), len(expected.log_topic_total)
    scores, weights = (state.buffers.empty(name, *shape) for name in ("scores", "weights"))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        known = state.topic_words, state.shrink, words, state.topic_prior, expected.log_topic_total
        fill_weights(*known, first, last, scores, top, weights)

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return Words(scores, top, weights)


@kernel(error_model="numpy", fastmath=SUMS)
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
        theta[m] = theta[m] if theta[m] > LEAST_FACTOR else 0.0


@kernel(error_model="numpy")
def _give_whole(ratio, total, x, u, used, scores, log_theta, best, fresh):
    """Cells whose sum is too small for float64 go to their likeliest topic: ``best`` of one prior, and fresh += x."""
    for c in range(x.size):
        best[c] = -1
        if total[c] >= LEAST_SUM:
            ratio[c] = x[c] / total[c]
            continue
        ratio[c] = 0.0
        best[c] = 0
        for i in range(used.size):
            if scores[u[c], used[i]] + log_theta[i] > scores[u[c], used[best[c]]] + log_theta[best[c]]:
                best[c] = i
        fresh[best[c]] += x[c]


@kernel(error_model="numpy")
def settle(p, words, x, u, used, a, n, theta, total, best, n_passes):
    """At most ``n_passes`` passes of one document over the topics ``used`` (A,), under C priors ``a`` (C, A) together.

    ``p`` (A, cells) are the weights of its words ``u``, ``x`` their counts: a pass is two matrix products for all
    priors. ``n`` (C, A) holds the counts it starts from, zeros where there are none, and those of the last pass;
    ``theta`` (C, A), ``total`` (C, cells) and ``best`` (C, cells) are filled. Passes end when the counts under each
    prior have settled. Returns (C,) sum_w x ln sum_m psi theta - sum_m n ln theta.
    """
    n_priors, n_topics = a.shape
    log_theta, theta[:] = np.zeros_like(a), 1.0
    fresh, extra, ratio = np.empty_like(a), np.empty_like(a), np.empty_like(total)
    n_tokens = x.sum()
    for number in range(n_passes):
        for k in range(n_priors):
            if number > 0 or n[k].max() > 0.0:
                _proportions(a[k], n[k], log_theta[k], theta[k])
        np.dot(theta, p, total)
        extra[:] = 0.0
        for k in range(n_priors):
            _give_whole(ratio[k], total[k], x, u, used, words.scores, log_theta[k], best[k], extra[k])
        np.dot(ratio, p.T, fresh)
        most = 0.0
        for k in range(n_priors):
            change = 0.0
            for i in range(n_topics):
                new = fresh[k, i] * theta[k, i] + extra[k, i]
                change += abs(new - n[k, i])
                n[k, i] = new
            most = max(most, change)
        if most < _TOLERANCE * n_tokens:
            break
    value = np.zeros(n_priors)
    for k in range(n_priors):
        for c in range(x.size):
            if best[k, c] < 0:
                value[k] += x[c] * (words.top[u[c]] + log(total[k, c]))
            else:
                value[k] += x[c] * (words.scores[u[c], used[best[k, c]]] + log_theta[k, best[k, c]])
        for i in range(n_topics):
            if n[k, i] > 0.0:
                value[k] -= n[k, i] * log_theta[k, i]
    return value
