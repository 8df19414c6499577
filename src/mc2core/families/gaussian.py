"""Real values (timestamps) and vectors of them (embeddings) with Normal-Gamma priors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln

from mc2core.base.checks import finite, prior_count, prior_scale
from mc2core.corpus.checks import kind_of
from mc2core.families.base import Family, ScalarFamily
from mc2core.families.kernels import LAST_DIGIT, NORMAL_GAMMA

_LOG_2PI = np.log(2.0 * np.pi)
_LEAST_PRECISION = 1e-200
#: natural parameters and statistics of a coordinate
STATISTICS = 4


class _Gaussian(Family):
    """Independent Gaussian coordinates, each with a Normal-Gamma prior of the same hyper-parameters.

    Natural parameters (..., 4 D) are those of the coordinates side by side, four of each.
    """

    code = NORMAL_GAMMA

    def __init__(
        self, mu0: float = 0.0, kappa0: float = 1.0, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0
    ) -> None:
        super().__init__(strength)
        own = type(self).__name__
        self.mu0 = finite(f"{own} mu0", mu0)
        self.kappa0 = prior_count(f"{own} kappa0", kappa0)
        self.a0 = prior_count(f"{own} a0", a0)
        self.b0 = prior_scale(f"{own} b0", b0)
        if abs(self.mu0) > self._most(self.kappa0):
            raise ValueError(
                f"{own} mu0 is {mu0!r}; with kappa0 {self.kappa0:g} and b0 {self.b0:g} it must lie within "
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
        of_each = [self.kappa0 * self.mu0, self.kappa0, self.a0, self.b0 + 0.5 * self.kappa0 * self.mu0**2]
        return np.tile(of_each, dimension // STATISTICS)

    def positive(self, dimension: int) -> np.ndarray:
        return np.arange(dimension) % STATISTICS > 0

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
                f"{type(self).__name__}: document {documents[first]} holds {observed[first]:g}; with b0 {self.b0:g} "
                f"values must lie within {most:g} of 0, or their squares lose b0: standardise them"
            )

    def _rows(self, observed: np.ndarray) -> np.ndarray:
        return np.stack([observed, np.ones_like(observed), np.full_like(observed, 0.5), 0.5 * observed**2], axis=1)

    def _log_normalisers(self, natural: np.ndarray) -> np.ndarray:
        """A of each coordinate."""
        _, kappa, a, b = self.standard(natural)
        return gammaln(a) - a * np.log(b) - 0.5 * np.log(kappa) + 0.5 * _LOG_2PI

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        precision = a / b
        expected = precision * mu, -0.5 * (precision * mu**2 + 1.0 / kappa), digamma(a) - np.log(b), -precision
        return np.stack(expected, axis=-1).reshape(np.shape(natural))

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        # what underflows would be 0; at this precision no value is likely
        precision = np.maximum(generator.standard_gamma(a) / b, _LEAST_PRECISION)
        centre = mu + generator.standard_normal(mu.shape) / np.sqrt(kappa * precision)
        drawn = precision * centre, -0.5 * precision * centre**2, np.log(precision), -precision
        return np.stack(drawn, axis=-1).reshape(np.shape(natural))

    @staticmethod
    def _draw(parameters: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """(...,) values, one for each t(phi) of (..., 4) ``parameters``."""
        precision = -parameters[..., 3]
        return parameters[..., 0] / precision + generator.standard_normal(precision.shape) / np.sqrt(precision)

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.standard(natural)[0]


class NormalGamma(_Gaussian, ScalarFamily):
    """x ~ Normal(mu, 1/lambda); mu ~ Normal(mu0, 1/(kappa0 lambda)), lambda ~ Gamma(a0, rate b0).

    T(x) = (x, 1, 1/2, x**2/2), t(phi) = (lambda mu, -lambda mu**2/2, ln lambda, -lambda),
    eta = (kappa mu, kappa, a, b + kappa mu**2/2) (docs/model.md). With a = a0 + N/2 the power of lambda in the
    prior density is a - 1/2, so A(eta) = ln G(a) - a ln b - ln(kappa)/2 + ln(2 pi)/2.

    Values should be centred and of unit size, or the sum of squares loses digits
    (:meth:`mc2core.Corpus.standardised`).
    """

    name: ClassVar[str] = "normal_gamma"
    _dimension = STATISTICS

    def log_base(self, context: Any) -> np.ndarray:
        return np.where(np.isnan(self._values(context)), 0.0, -0.5 * _LOG_2PI)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        return self._log_normalisers(natural)

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        return np.where(np.asarray(sizes) > 0, self._draw(parameters, generator), np.nan)

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import t as student  # where it is needed: it takes a third of a second

        mu, kappa, a, b = NormalGamma.standard(natural)
        return student(2.0 * a, mu, np.sqrt(b * (kappa + 1.0) / (a * kappa)))


class DiagonalNormalGamma(_Gaussian):
    """A vector of D numbers: given the cluster, each coordinate is a :class:`NormalGamma` number of its own.

    So means are shrunk to ``mu0``, by as much as ``kappa0`` documents are worth, and variances to b0 / a0, by as much
    as 2 ``a0`` documents; of a standardised context (:meth:`mc2core.Corpus.standardised`) ``mu0`` 0 is the mean of the
    corpus. T(x) is that of the coordinates side by side, 4 D numbers. NaN is a missing coordinate, a row of them a
    missing vector.

    The likelihoods of D coordinates multiply: a long vector outweighs a document's words. A ``strength`` of 1 / D lets
    it count as much as one number.
    """

    name: ClassVar[str] = "diagonal_normal_gamma"
    kind: ClassVar[str] = "vector"

    @property
    def of_coordinate(self) -> NormalGamma:
        """The family of one coordinate."""
        return NormalGamma(**self.settings())

    @staticmethod
    def standard(natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(mu, kappa, a, b), each (..., D), of (..., 4 D) natural parameters."""
        natural = np.asarray(natural, dtype=np.float64)
        return _Gaussian.standard(natural.reshape(*natural.shape[:-1], -1, STATISTICS))

    def dimension(self, context: Any) -> int:
        return STATISTICS * self._values(context).shape[1]

    def _values(self, context: Any) -> np.ndarray:
        if kind_of(context) != "vector":
            raise ValueError(
                "DiagonalNormalGamma needs a vector for each document, a dense (J, D) matrix of floats, "
                f"not {'a matrix of counts' if sp.issparse(context) else 'one number'}"
            )
        return np.asarray(context, dtype=np.float64)

    def statistics(self, context: Any) -> sp.csr_matrix:
        values = self._values(context)
        known = ~np.isnan(values)
        documents, coordinates = np.nonzero(known)
        observed = values[known]
        self._check(observed, documents)
        # built by hand: a statistic that happens to be 0 is stored like any other
        return sp.csr_matrix(
            (
                self._rows(observed).ravel(),
                (STATISTICS * coordinates.astype(np.int32)[:, None] + np.arange(STATISTICS, dtype=np.int32)).ravel(),
                np.concatenate([[0], np.cumsum(STATISTICS * known.sum(axis=1))]),
            ),
            shape=(len(values), STATISTICS * values.shape[1]),
        )

    def log_base(self, context: Any) -> np.ndarray:
        return -0.5 * _LOG_2PI * (~np.isnan(self._values(context))).sum(axis=1)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        return self._log_normalisers(natural).sum(axis=-1)

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        values = self._draw(parameters.reshape(len(parameters), -1, STATISTICS), generator)
        return np.where(np.asarray(sizes)[:, None] > 0, values, np.nan)
