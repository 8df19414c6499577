"""Gamma posteriors of the concentrations with sticks, and priors of the concentrations with point estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.models import MC2, ROLES

GROUP, TABLE, TOPIC = range(3)


@dataclass(frozen=True)
class ConcentrationPriors:
    """Starting values and Gamma(shape, rate) priors of the concentrations with sticks, in the order alpha, v, eta.

    If a concentration c has the prior Gamma(a, b) and n sticks v_i ~ Beta(1, c), its posterior is
    Gamma(a + n, b - sum_i E ln(1 - v_i)).
    """

    start: np.ndarray
    is_learnt: np.ndarray
    shape: np.ndarray
    rate: np.ndarray

    @classmethod
    def from_model(cls, model: MC2, n: int) -> ConcentrationPriors:
        """Return the priors of the first ``n`` concentrations: all three with tables, only alpha without tables."""
        roles = ROLES[:n]
        priors = np.array([model.prior_of(role) for role in roles])
        start, is_learnt = (np.array([of(role) for role in roles]) for of in (model.start_of, model.is_learnt))
        return cls(start, is_learnt, priors[:, 0], priors[:, 1])

    def starting_rates(self, stick_arrays: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the rates for which the posterior means equal the starting values."""
        return (self.shape + [one[0].size for one in stick_arrays]) / self.start

    def posteriors(self, rates: np.ndarray, stick_arrays: tuple[np.ndarray, ...]) -> Concentrations:
        """Return the expectations of the concentrations, given the rates of their Gamma posteriors.

        A fixed concentration has its starting value.
        """
        learnt, a0, b0, b = self.is_learnt, self.shape, self.rate, rates
        a = a0 + [one[0].size for one in stick_arrays]
        kl = (a - a0) * array_digamma(a) - gammaln(a) + gammaln(a0) + a0 * (np.log(b) - np.log(b0)) + a * (b0 / b - 1.0)
        return Concentrations(
            mean=np.where(learnt, a / b, self.start),
            mean_log=np.where(learnt, array_digamma(a) - np.log(b), np.log(self.start)),
            divergence=float(kl[learnt].sum()),
        )


class Concentrations(NamedTuple):
    """Expectations E[c] and E[ln c] of all concentrations, and the KL divergence of the learnt ones in nats."""

    mean: np.ndarray
    mean_log: np.ndarray
    divergence: float


def gamma_prior(model: MC2, role: str) -> tuple[float, float] | None:
    """Return (shape, rate) of the Gamma prior of a concentration; None if the concentration is fixed."""
    return model.prior_of(role) if model.is_learnt(role) else None


def log_density_of_log(s: float, prior: tuple[float, float] | None) -> float:
    """Return the log density of ln s under s ~ Gamma(shape, rate) relative to its mode; 0 if s is fixed."""
    if prior is None:
        return 0.0
    shape, rate = prior
    return shape * float(np.log(s * rate / shape)) - rate * s + shape
