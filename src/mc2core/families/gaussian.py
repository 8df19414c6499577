"""Real values (timestamps) with a Normal-Gamma prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from mc2core.families.base import ScalarFamily, finite, positive

_LOG_2PI = np.log(2.0 * np.pi)


class NormalGamma(ScalarFamily):
    """x ~ Normal(mu, 1/lambda); mu ~ Normal(mu0, 1/(kappa0 lambda)), lambda ~ Gamma(a0, rate b0).

    T(x) = (x, 1, 1/2, x**2/2), t(phi) = (lambda mu, -lambda mu**2/2, ln lambda, -lambda),
    eta = (kappa mu, kappa, a, b + kappa mu**2/2): MODEL section 1. With a = a0 + N/2 the power of lambda in the
    prior density is a - 1/2, so A(eta) = ln G(a) - a ln b - ln(kappa)/2 + ln(2 pi)/2.

    Values should be centred and of unit size, or the sum of squares loses digits
    (:meth:`mc2core.Corpus.standardised`).
    """

    code = 1
    name: ClassVar[str] = "normal_gamma"
    _dimension = 4

    def __init__(self, mu0: float = 0.0, kappa0: float = 1.0, a0: float = 1.0, b0: float = 1.0) -> None:
        self.mu0 = finite("NormalGamma mu0", mu0)
        self.kappa0 = positive("NormalGamma kappa0", kappa0)
        self.a0 = positive("NormalGamma a0", a0)
        self.b0 = positive("NormalGamma b0", b0)

    def settings(self) -> dict[str, float]:
        return {"mu0": self.mu0, "kappa0": self.kappa0, "a0": self.a0, "b0": self.b0}

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.kappa0 * self.mu0, self.kappa0, self.a0, self.b0 + 0.5 * self.kappa0 * self.mu0**2])

    @staticmethod
    def standard(natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(mu, kappa, a, b), each (...,), of (..., 4) natural parameters."""
        kappa_mu, kappa, a, rest = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        mu = kappa_mu / kappa
        return mu, kappa, a, rest - 0.5 * kappa_mu * mu

    def _rows(self, observed: np.ndarray) -> np.ndarray:
        return np.stack([observed, np.ones_like(observed), np.full_like(observed, 0.5), 0.5 * observed**2], axis=1)

    def log_base(self, context: Any) -> np.ndarray:
        return np.where(np.isnan(self._values(context)), 0.0, -0.5 * _LOG_2PI)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        _, kappa, a, b = self.standard(natural)
        return gammaln(a) - a * np.log(b) - 0.5 * np.log(kappa) + 0.5 * _LOG_2PI

    def expected_parameters(self, natural: np.ndarray) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        precision = a / b
        return np.stack(
            [precision * mu, -0.5 * (precision * mu**2 + 1.0 / kappa), digamma(a) - np.log(b), -precision], axis=-1
        )

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        precision = generator.standard_gamma(a) / b
        centre = mu + generator.standard_normal(mu.shape) / np.sqrt(kappa * precision)
        return np.stack([precision * centre, -0.5 * precision * centre**2, np.log(precision), -precision], axis=-1)

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        precision = -parameters[:, 3]
        values = parameters[:, 0] / precision + generator.standard_normal(len(parameters)) / np.sqrt(precision)
        return np.where(np.asarray(sizes) > 0, values, np.nan)

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.standard(natural)[0]
