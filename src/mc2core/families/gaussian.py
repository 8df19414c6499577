"""Real values (timestamps) with a Normal-Gamma prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from mc2core.base.checks import finite, prior_count, prior_scale
from mc2core.families.base import ScalarFamily
from mc2core.families.kernels import LAST_DIGIT, NORMAL_GAMMA

_LOG_2PI = np.log(2.0 * np.pi)
_LEAST_PRECISION = 1e-200


class NormalGamma(ScalarFamily):
    """x ~ Normal(mu, 1/lambda); mu ~ Normal(mu0, 1/(kappa0 lambda)), lambda ~ Gamma(a0, rate b0).

    T(x) = (x, 1, 1/2, x**2/2), t(phi) = (lambda mu, -lambda mu**2/2, ln lambda, -lambda),
    eta = (kappa mu, kappa, a, b + kappa mu**2/2) (docs/model.md). With a = a0 + N/2 the power of lambda in the
    prior density is a - 1/2, so A(eta) = ln G(a) - a ln b - ln(kappa)/2 + ln(2 pi)/2.

    Values should be centred and of unit size, or the sum of squares loses digits
    (:meth:`mc2core.Corpus.standardised`).
    """

    code = NORMAL_GAMMA
    name: ClassVar[str] = "normal_gamma"
    first_positive: ClassVar[int] = 1
    _dimension = 4

    def __init__(
        self, mu0: float = 0.0, kappa0: float = 1.0, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0
    ) -> None:
        super().__init__(strength)
        self.mu0 = finite("NormalGamma mu0", mu0)
        self.kappa0 = prior_count("NormalGamma kappa0", kappa0)
        self.a0 = prior_count("NormalGamma a0", a0)
        self.b0 = prior_scale("NormalGamma b0", b0)
        if abs(self.mu0) > self._most(self.kappa0):
            raise ValueError(
                f"NormalGamma mu0 is {mu0!r}; with kappa0 {self.kappa0:g} and b0 {self.b0:g} it must lie within "
                f"{self._most(self.kappa0):g} of 0, or the sum of squares loses b0: shift the values"
            )

    def settings(self) -> dict[str, float]:
        return {
            "mu0": self.mu0,
            "kappa0": self.kappa0,
            "a0": self.a0,
            "b0": self.b0,
            "strength": self.strength,
        }

    @property
    def mean_sd(self) -> float:
        """Prior standard deviation of mu at the prior's mean of lambda: sqrt(b0 / (a0 kappa0))."""
        return float(np.sqrt(self.b0 / (self.a0 * self.kappa0)))

    def _most(self, n: float) -> float:
        """The largest |x| whose n observations' sum of squares, halved, has a last digit below b0."""
        return float(np.sqrt(2.0**53 * self.b0 / n))

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.kappa0 * self.mu0, self.kappa0, self.a0, self.b0 + 0.5 * self.kappa0 * self.mu0**2])

    @staticmethod
    def standard(natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(mu, kappa, a, b), each (...,), of (..., 4) natural parameters; rounding does not take b to 0."""
        kappa_mu, kappa, a, rest = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        mu = kappa_mu / kappa
        return mu, kappa, a, np.maximum(rest - 0.5 * kappa_mu * mu, LAST_DIGIT * rest)

    def _check(self, observed: np.ndarray, documents: np.ndarray) -> None:
        most = self._most(1.0)
        if (np.abs(observed) > most).any():
            first = int(np.flatnonzero(np.abs(observed) > most)[0])
            raise ValueError(
                f"NormalGamma: document {documents[first]} holds {observed[first]:g}; with b0 {self.b0:g} values must "
                f"lie within {most:g} of 0, or their squares lose b0: standardise them"
            )

    def _rows(self, observed: np.ndarray) -> np.ndarray:
        return np.stack([observed, np.ones_like(observed), np.full_like(observed, 0.5), 0.5 * observed**2], axis=1)

    def log_base(self, context: Any) -> np.ndarray:
        return np.where(np.isnan(self._values(context)), 0.0, -0.5 * _LOG_2PI)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        _, kappa, a, b = self.standard(natural)
        return gammaln(a) - a * np.log(b) - 0.5 * np.log(kappa) + 0.5 * _LOG_2PI

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        precision = a / b
        return np.stack(
            [precision * mu, -0.5 * (precision * mu**2 + 1.0 / kappa), digamma(a) - np.log(b), -precision], axis=-1
        )

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        # what underflows would be 0; at this precision no value is likely
        precision = np.maximum(generator.standard_gamma(a) / b, _LEAST_PRECISION)
        centre = mu + generator.standard_normal(mu.shape) / np.sqrt(kappa * precision)
        return np.stack([precision * centre, -0.5 * precision * centre**2, np.log(precision), -precision], axis=-1)

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        precision = -parameters[:, 3]
        values = parameters[:, 0] / precision + generator.standard_normal(len(parameters)) / np.sqrt(precision)
        return np.where(np.asarray(sizes) > 0, values, np.nan)

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import t as student  # where it is needed: it takes a third of a second

        mu, kappa, a, b = NormalGamma.standard(natural)
        return student(2.0 * a, mu, np.sqrt(b * (kappa + 1.0) / (a * kappa)))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.standard(natural)[0]
