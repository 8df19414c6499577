"""Point estimates of s, the prior count of words in topics, and of epsilon and v of the topic proportions.

The objectives are derived in docs/model.md.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln, polygamma

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import digamma, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.concentrations import log_density_of_log
from mc2core.inference.svi.words import ROW_BLOCK

_NEWTON_STEPS = 20
# length of Newton steps of ln s: the limit, and the length below which the iteration ends
_LONGEST_STEP, _SHORTEST_STEP = 1.0, 1e-4
_MIN_S, _MAX_S = 1e-10, 1e10
# smallest weight of a topic: a topic without tokens has it until it is removed
_MIN_WEIGHT = 1e-12
_MIN_V, _MAX_V = 1e-8, 1e8
# number of steps of epsilon and v in the initial state, after a full batch and after a mini-batch
STEPS_AT_START, STEPS_OF_FULL, STEPS_OF_BATCH = 30, 5, 1


def backtracked(value: Callable[[float], float], now: float) -> float:
    """Return the first fraction 1, 1/2, 1/4, ... of a step at which ``value`` is at least ``now``; 0 if none is."""
    share = 1.0
    for _ in range(30):
        if value(share) >= now:
            return share
        share *= 0.5
    return 0.0


@inner_kernel
def trigamma(x):
    """Return the derivative of digamma for x > 0, from the recurrence up to x + 8 and the asymptotic series."""
    total = 0.0
    for i in range(8):
        total += 1.0 / ((x + i) * (x + i))
    r = 1.0 / (x + 8.0)
    z = r * r
    series = 1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0))))
    return total + r + 0.5 * z + z * r * series


@kernel
def sum_over_words(topic_words, s, first, last):
    """Return the sums of ln G(s + n) - ln G(s), and of its first two derivatives with respect to s.

    The sums are over words first..last-1 and all topics; n is ``topic_words``.
    """
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
    """Return the bound as a function of s plus the log prior density of ln s, and two derivatives with respect to ln s.

    ``topic_words`` (V, M) contains the expected number of tokens per word and topic.
    """
    n_words, n_topics = topic_words.shape
    blocks = in_blocks(pool, lambda first, last: sum_over_words(topic_words, s, first, last), n_words, ROW_BLOCK)
    value, slope, curve = (float(sum(terms)) for terms in zip(*blocks, strict=True))
    total, totals = n_words * s, n_words * s + topic_words.sum(axis=0)
    value += float(np.sum(gammaln(total) - gammaln(totals)))
    slope += n_words * float(n_topics * array_digamma(total) - np.sum(array_digamma(totals)))
    curve += n_words**2 * float(n_topics * polygamma(1, total) - np.sum(polygamma(1, totals)))
    value += log_density_of_log(s, prior)
    return value, s * slope + prior[0] - prior[1] * s, s * slope + s * s * curve - prior[1] * s


def best_topic_prior(topic_words: np.ndarray, s: float, prior: tuple[float, float], pool: Executor | None) -> float:
    """Return the s that maximises the bound, given the expected tokens ``topic_words`` (V, M), by Newton steps."""
    now = prior_terms(topic_words, s, prior, pool)
    for _ in range(_NEWTON_STEPS):
        step = -now[1] / now[2] if now[2] < 0 else np.sign(now[1]) * _LONGEST_STEP
        step = float(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        latest = s, now

        def value(share: float, s: float = s, step: float = step) -> float:
            nonlocal latest
            new = float(np.clip(s * np.exp(share * step), _MIN_S, _MAX_S))
            latest = new, prior_terms(topic_words, new, prior, pool)
            return latest[1][0]

        share = backtracked(value, now[0])
        if share:
            s, now = latest
        if abs(share * step) < _SHORTEST_STEP:
            break
    return s


class TopicWeights(NamedTuple):
    """Point estimates of epsilon and v.

    topics : (M,) float64 > 0, weights epsilon of topics
    remaining : float > 0, total weight of all further topics; ``topics`` and ``remaining`` sum to 1
    v : float > 0, table concentration
    """

    topics: np.ndarray
    remaining: float
    v: float


@kernel
def sum_over_clusters(n_km, a, value, slope):
    """Write value[m] = sum_k (ln G(a_m + n_km) - ln G(a_m)), and its derivative slope[m] with respect to a_m."""
    n_topics = a.size
    log_gamma_a, digamma_a = np.empty(n_topics), np.empty(n_topics)
    for m in range(n_topics):
        log_gamma_a[m] = log_gamma(a[m])
        digamma_a[m] = digamma(a[m])
        value[m] = 0.0
        slope[m] = 0.0
    for k in range(n_km.shape[0]):
        for m in range(n_topics):
            x = a[m] + n_km[k, m]
            value[m] += log_gamma(x) - log_gamma_a[m]
            slope[m] += digamma(x) - digamma_a[m]


class ObjectiveTerms(NamedTuple):
    """Objective F of epsilon and v, with its penalty and its derivative.

    f : float, F in nats
    penalty : float, log prior densities of epsilon and v in nats
    slope : (M,) float64, dF / d(v eps_m) without terms that depend only on v
    """

    f: float
    penalty: float
    slope: np.ndarray


@dataclass
class Objective:
    """Objective of epsilon and v: F plus a penalty (docs/model.md).

    n_km : (K, M) float64, expected number of tokens or tables of each topic in each cluster
    eta : float, topic concentration
    prior : (shape, rate) of the Gamma prior of v; None if v is fixed
    """

    n_km: np.ndarray
    eta: float
    prior: tuple[float, float] | None
    _latest: tuple[TopicWeights, ObjectiveTerms] | None = field(default=None, init=False, repr=False)

    def terms(self, weights: TopicWeights) -> ObjectiveTerms:
        """Return the terms of the objective at ``weights``.

        The latest terms are cached, because a step uses them several times.
        """
        if self._latest is None or self._latest[0] is not weights:
            value, slope = np.empty((2, len(weights.topics)))
            sum_over_clusters(self.n_km, weights.v * weights.topics, value, slope)
            totals = self.n_km.sum(axis=1)
            f = float(value.sum() - np.sum(gammaln(weights.v + totals) - gammaln(weights.v)))
            penalty = self.eta * float(np.log(weights.remaining))
            penalty += log_density_of_log(weights.v, self.prior)
            self._latest = weights, ObjectiveTerms(f, penalty, slope)
        return self._latest[1]

    def value(self, weights: TopicWeights) -> float:
        """Return the objective including the penalty, in nats."""
        f, penalty, _ = self.terms(weights)
        return f + penalty

    def expected_tables(self, weights: TopicWeights) -> np.ndarray:
        """Return the expected tables per topic, sum_k v eps_m (digamma(v eps_m + n_km) - digamma(v eps_m)), (M,)."""
        return np.asarray(weights.v * weights.topics * self.terms(weights)[2])

    def step_topics(self, weights: TopicWeights) -> TopicWeights:
        """Move epsilon towards the normalised expected tables, as far as this does not lower the objective."""
        tables = self.expected_tables(weights)
        total = tables.sum() + self.eta

        def at(share: float) -> TopicWeights:
            topics = np.maximum((1.0 - share) * weights.topics + share * tables / total, _MIN_WEIGHT)
            remaining = max((1.0 - share) * weights.remaining + share * self.eta / total, _MIN_WEIGHT)
            whole = topics.sum() + remaining
            return TopicWeights(topics / whole, remaining / whole, weights.v)

        return self._line_search(at, weights)

    def step_v(self, weights: TopicWeights) -> TopicWeights:
        """Move ln v towards its EM update, as far as this does not lower the objective."""
        if self.prior is None:
            return weights
        shape, rate = self.prior
        lost = np.sum(array_digamma(weights.v + self.n_km.sum(axis=1)) - array_digamma(weights.v))
        goal = (float(self.expected_tables(weights).sum()) + shape) / (float(lost) + rate)

        def at(share: float) -> TopicWeights:
            return weights._replace(v=float(np.clip(weights.v * (goal / weights.v) ** share, _MIN_V, _MAX_V)))

        return self._line_search(at, weights)

    def _line_search(self, at: Callable[[float], TopicWeights], weights: TopicWeights) -> TopicWeights:
        """Return ``at(share)`` for the first fraction of a step that does not lower the objective, else ``weights``."""
        now = self.value(weights)

        def value(share: float) -> float:
            return self.value(at(share))

        # the cache contains the weights that the line search has accepted
        return self._latest[0] if backtracked(value, now) and self._latest else weights

    def improved(self, weights: TopicWeights, n_steps: int) -> TopicWeights:
        """Return the weights after ``n_steps`` alternating steps of epsilon and v."""
        for _ in range(n_steps):
            weights = self.step_v(self.step_topics(weights))
        return weights
