"""Point estimates of epsilon and v under direct assignment, by steps that never lower the bound.

With q(tau_k) = Dir(v eps + n_k) at its optimum, all of the ELBO that epsilon and v enter is

    F(eps, v) = sum_k [ln B(v eps + n_k) - ln B(v eps)],  ln B(a) = sum_i ln G(a_i) - ln G(sum_i a_i),

to which two terms are added that are at most 0: eta ln eps_rest, since the weights of the topics in use have a density
prop. to prod_m eps_m^o_m eps_rest^eta in log-ratio coordinates given numbers of tables o (Teh et al. 2006), and, where
v is learnt, the density of ln v under v ~ Gamma(a, b) relative to its mode, a ln(v b / a) - b v + a.

For given v this is concave in epsilon, since ln G(x + n) - ln G(x) is concave in x. The expected tables
o_m = sum_k v eps_m (digamma(v eps_m + n_km) - digamma(v eps_m)), with eta for the rest, brought to sum 1, are a point
towards which it rises (its slope is the variance of the gradient under epsilon). For whole numbers n_km going there is
a step of EM and never lowers it; below one token that argument does not hold, so steps are halved where they lose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, log_gamma
from mc2core.inference.svi.direct.topic_prior import density_of_log

# a topic without tokens keeps this weight until it is folded
_LEAST_WEIGHT = 1e-12
_LEAST_V, _MOST_V = 1e-8, 1e8
_HALVINGS = 30


class Weights(NamedTuple):
    """``topics`` (M,) float64 > 0 and ``rest`` > 0, which sum to 1, and ``v`` > 0."""

    topics: np.ndarray
    rest: float
    v: float


@kernel(error_model="numpy")
def sum_over_clusters(n_km, a, value, slope):
    """value[m] = sum_k ln G(a_m + n_km) - ln G(a_m), and slope[m], its derivative with respect to a_m."""
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


class Terms(NamedTuple):
    """F ``f`` and the terms that are at most 0 ``penalty``, in nats; (M,) ``slope``: see :meth:`Objective.terms`."""

    f: float
    penalty: float
    slope: np.ndarray


@dataclass
class Objective:
    """F and the terms beside it, given (K, M) expected tokens ``n_km``.

    ``prior`` is (shape, rate) of the Gamma prior of v, None where v is fixed.
    """

    n_km: np.ndarray
    eta: float
    prior: tuple[float, float] | None
    _latest: tuple[Weights, Terms] | None = field(default=None, init=False, repr=False)

    def terms(self, weights: Weights) -> Terms:
        """F in nats, the terms that are at most 0, and (M,) dF / d(v eps_m) but for what v alone enters.

        Those of the weights asked for last are kept: a step asks several times, and begins where the last one ended.
        """
        if self._latest is None or self._latest[0] is not weights:
            self._latest = weights, self._terms(weights)
        return self._latest[1]

    def _terms(self, weights: Weights) -> Terms:
        value, slope = np.empty((2, len(weights.topics)))
        sum_over_clusters(self.n_km, weights.v * weights.topics, value, slope)
        totals = self.n_km.sum(axis=1)
        f = float(value.sum() - np.sum(gammaln(weights.v + totals) - gammaln(weights.v)))
        penalty = self.eta * float(np.log(weights.rest))
        if self.prior is not None:
            penalty += density_of_log(weights.v, self.prior)
        return Terms(f, penalty, slope)

    def value(self, weights: Weights) -> float:
        """Nats."""
        f, penalty, _ = self.terms(weights)
        return f + penalty

    def gradient(self, weights: Weights) -> tuple[np.ndarray, float, float]:
        """Derivatives with respect to (M,) eps, eps_rest (as if they were free) and ln v."""
        slope = self.terms(weights)[2]
        v, totals = weights.v, self.n_km.sum(axis=1)
        by_v = float(weights.topics @ slope - np.sum(array_digamma(v + totals) - array_digamma(v)))
        if self.prior is not None:
            by_v += self.prior[0] / v - self.prior[1]
        return v * slope, self.eta / weights.rest, v * by_v


def expected_tables(objective: Objective, weights: Weights) -> np.ndarray:
    """(M,): sum_k v eps_m (digamma(v eps_m + n_km) - digamma(v eps_m))."""
    return weights.v * weights.topics * objective.terms(weights)[2]


def step_topics(objective: Objective, weights: Weights) -> Weights:
    """epsilon some way towards the expected tables; never lower."""
    tables = expected_tables(objective, weights)
    total = tables.sum() + objective.eta
    now = objective.value(weights)
    share = 1.0
    for _ in range(_HALVINGS):
        topics = np.maximum((1.0 - share) * weights.topics + share * tables / total, _LEAST_WEIGHT)
        rest = max((1.0 - share) * weights.rest + share * objective.eta / total, _LEAST_WEIGHT)
        whole = topics.sum() + rest
        new = Weights(topics / whole, rest / whole, weights.v)
        if objective.value(new) >= now:
            return new
        share *= 0.5
    return weights


def step_v(objective: Objective, weights: Weights) -> Weights:
    """v some way towards where its expected tables would put it, in logarithms; never lower."""
    if objective.prior is None:
        return weights
    shape, rate = objective.prior
    lost = np.sum(array_digamma(weights.v + objective.n_km.sum(axis=1)) - array_digamma(weights.v))
    goal = (float(expected_tables(objective, weights).sum()) + shape) / (float(lost) + rate)
    now = objective.value(weights)
    share = 1.0
    for _ in range(_HALVINGS):
        v = float(np.clip(weights.v * (goal / weights.v) ** share, _LEAST_V, _MOST_V))
        new = weights._replace(v=v)
        if objective.value(new) >= now:
            return new
        share *= 0.5
    return weights


def step_weights(objective: Objective, weights: Weights, n_steps: int) -> Weights:
    """``n_steps`` steps of epsilon and v in turn."""
    for _ in range(n_steps):
        weights = step_v(objective, step_topics(objective, weights))
    return weights
