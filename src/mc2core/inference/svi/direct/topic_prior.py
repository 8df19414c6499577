"""A point estimate of s, of the symmetric Dirichlet prior of topics, by Newton steps that never lower the bound.

With q(psi_m) = Dir(s + n_m) at its optimum, all of the ELBO that s enters is

    L(s) = sum_m [ln G(V s) - ln G(V s + n_m) + sum_w ln G(s + n_mw) - ln G(s)],

to which the density of ln s under s ~ Gamma(a, b) relative to its mode is added, which is at most 0.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln, polygamma

from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, log_gamma
from mc2core.compute.threads import in_blocks

_WORD_BLOCK = 1024
_STEPS, _HALVINGS = 20, 30
# Newton steps of ln s: longest, and short enough to end
_LONGEST, _SHORTEST = 1.0, 1e-4
_LEAST, _MOST = 1e-10, 1e10


@kernel(error_model="numpy")
def trigamma(x):
    """Derivative of digamma for x > 0: shifted by 8, then the asymptotic series."""
    total = 0.0
    for i in range(8):
        total += 1.0 / ((x + i) * (x + i))
    r = 1.0 / (x + 8.0)
    z = r * r
    series = 1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0))))
    return total + r + 0.5 * z + z * r * series


@kernel(error_model="numpy")
def sum_over_words(topic_words, s, first, last):
    """Sums over words first..last-1 and topics of ln G(s + n) - ln G(s) and of its two derivatives by s."""
    at_s = log_gamma(s), digamma(s), trigamma(s)
    value, slope, curve = 0.0, 0.0, 0.0
    for w in range(first, last):
        for m in range(topic_words.shape[1]):
            n = topic_words[w, m]
            if n > 0.0:
                value += log_gamma(s + n) - at_s[0]
                slope += digamma(s + n) - at_s[1]
                curve += trigamma(s + n) - at_s[2]
    return value, slope, curve


def prior_terms(
    topic_words: np.ndarray, s: float, prior: tuple[float, float], pool: Executor | None
) -> tuple[float, float, float]:
    """L(s) and the density of ln s, in nats, given (V, M) expected tokens, and its two derivatives by ln s."""
    n_words, n_topics = topic_words.shape
    parts = in_blocks(pool, lambda first, last: sum_over_words(topic_words, s, first, last), n_words, _WORD_BLOCK)
    value, slope, curve = (float(sum(part)) for part in zip(*parts, strict=True))
    total, totals = n_words * s, n_words * s + topic_words.sum(axis=0)
    value += float(np.sum(gammaln(total) - gammaln(totals)))
    slope += n_words * float(n_topics * array_digamma(total) - np.sum(array_digamma(totals)))
    curve += n_words**2 * float(n_topics * polygamma(1, total) - np.sum(polygamma(1, totals)))
    value += density_of_log(s, prior)
    return value, s * slope + prior[0] - prior[1] * s, s * slope + s * s * curve - prior[1] * s


def density_of_log(s: float, prior: tuple[float, float]) -> float:
    """ln of the density of ln s under s ~ Gamma(shape, rate), relative to its mode: at most 0."""
    shape, rate = prior
    return shape * float(np.log(s * rate / shape)) - rate * s + shape


def best_topic_prior(topic_words: np.ndarray, s: float, prior: tuple[float, float], pool: Executor | None) -> float:
    """The s, from ``s`` on, at a maximum of the bound given the topics' expected tokens ``topic_words`` (V, M)."""
    now, slope, curve = prior_terms(topic_words, s, prior, pool)
    for _ in range(_STEPS):
        step = -slope / curve if curve < 0 else np.sign(slope) * _LONGEST
        step = float(np.clip(step, -_LONGEST, _LONGEST))
        for _ in range(_HALVINGS):
            new = float(np.clip(s * np.exp(step), _LEAST, _MOST))
            terms = prior_terms(topic_words, new, prior, pool)
            if terms[0] >= now:
                s, (now, slope, curve) = new, terms
                break
            step *= 0.5
        if abs(step) < _SHORTEST:
            break
    return s
