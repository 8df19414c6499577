"""Families of numbers (such as dates) and vectors (such as embeddings), with Normal-Gamma and Gauss-Wishart priors."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln

from mc2core.base.checks import finite, prior_count, prior_scale
from mc2core.families.base import (
    ContentFamily,
    CoordinateFamily,
    Family,
    OutsideDomain,
    ScalarFamily,
    stored_statistics,
)
from mc2core.families.kernels import GAUSS_WISHART, LAST_DIGIT, NORMAL_GAMMA

_LOG_2PI = np.log(2.0 * np.pi)
_MIN_PRECISION = 1e-200
#: number of natural parameters, and of statistics, of a coordinate
STATISTICS = 4


class _Gaussian(Family):
    """Base class of Gaussian families, with the same prior of mean and precision for every coordinate."""

    is_standardised: ClassVar[bool] = True

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
                f"{self._most(self.kappa0):g} of 0, or rounding loses b0: shift the values"
            )

    def settings(self) -> dict[str, float]:
        return {"mu0": self.mu0, "kappa0": self.kappa0, "a0": self.a0, "b0": self.b0, "strength": self.strength}

    def _most(self, n: float) -> float:
        """Return the largest |x| for which the rounding error of n halved squares is below b0."""
        return float(np.sqrt(2.0**53 * self.b0 / n))

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        most = self._most(1.0)
        if (np.abs(observed) > most).any():
            first = int(np.flatnonzero(np.abs(observed) > most)[0])
            why = f"values must lie within {most:g} of 0, or rounding loses b0: standardise them"
            raise OutsideDomain(self, documents[first], f"holds {observed[first]:g}; with b0 {self.b0:g} {why}")


class NormalGamma(_Gaussian, ScalarFamily):
    """Family of numbers: x ~ Normal(mu, 1/lambda); mu ~ Normal(mu0, 1/(kappa0 lambda)), lambda ~ Gamma(a0, rate b0).

    As an exponential family (docs/model.md, section 1), T(x) = (x, 1, 1/2, x**2/2), t(phi) = (lambda mu, -lambda
    mu**2/2, ln lambda, -lambda) and the natural parameters are eta = (kappa mu, kappa, a, b + kappa mu**2/2). The
    density of (mu, lambda) has the factor lambda**(a - 1/2), so A(eta) = ln G(a) - a ln b - ln(kappa)/2 + ln(2 pi)/2.
    Here G is the gamma function.

    Sums of squares lose precision unless values are centred and scaled. :func:`mc2core.fit` therefore standardises
    values. The parameters ``mu0``, ``kappa0``, ``a0`` and ``b0`` refer to the standardised values.
    """

    code = NORMAL_GAMMA
    name: ClassVar[str] = "normal_gamma"
    n_statistics = STATISTICS

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.kappa0 * self.mu0, self.kappa0, self.a0, self.b0 + 0.5 * self.kappa0 * self.mu0**2])

    @staticmethod
    def standard(natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the parameters mu, kappa, a, b, each (...,), for (..., 4) natural parameters. b is always positive."""
        kappa_mu, kappa, a, rest = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        mu = kappa_mu / kappa
        return mu, kappa, a, np.maximum(rest - 0.5 * kappa_mu * mu, LAST_DIGIT * rest)

    def rows(self, observed: np.ndarray) -> np.ndarray:
        return np.stack([observed, np.ones_like(observed), np.full_like(observed, 0.5), 0.5 * observed**2], axis=1)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        _, kappa, a, b = self.standard(natural)
        return gammaln(a) - a * np.log(b) - 0.5 * np.log(kappa) + 0.5 * _LOG_2PI

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        precision = a / b
        expected = precision * mu, -0.5 * (precision * mu**2 + 1.0 / kappa), digamma(a) - np.log(b), -precision
        return np.stack(expected, axis=-1)

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        mu, kappa, a, b = self.standard(natural)
        # the bound avoids a precision of 0 by underflow; at this precision, every value is very unlikely
        precision = np.maximum(generator.standard_gamma(a) / b, _MIN_PRECISION)
        centre = mu + generator.standard_normal(mu.shape) / np.sqrt(kappa * precision)
        drawn = precision * centre, -0.5 * precision * centre**2, np.log(precision), -precision
        return np.stack(drawn, axis=-1)

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.standard(natural)[0]

    def log_base(self, context: Any) -> np.ndarray:
        return np.where(np.isnan(self._values(context)), 0.0, -0.5 * _LOG_2PI)

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import t as student  # imported at its first use, because the import takes a third of a second

        mu, kappa, a, b = NormalGamma.standard(natural)
        return student(2.0 * a, mu, np.sqrt(b * (kappa + 1.0) / (a * kappa)))


class _GaussianVector(_Gaussian):
    """Base class of families of real vectors. As observations, the vectors are standardised over the corpus."""

    def unit(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # by rounding, the standard deviation of a constant column can differ from 0, so its range is tested
        scale = np.where(np.ptp(values, axis=0) > 0.0, values.std(axis=0), 0.0)
        return np.where(scale > 0.0, values.mean(axis=0), values[0]), np.where(scale > 0.0, scale, 1.0)


class DiagonalNormalGamma(_GaussianVector, CoordinateFamily, ContentFamily):
    """Family of vectors of D numbers. Given the cluster or topic, they are independent; each is :class:`NormalGamma`.

    The prior shrinks means towards ``mu0`` with the weight of ``kappa0`` documents. It shrinks variances towards ``b0``
    / ``a0`` with the weight of 2 ``a0`` documents. For a standardised context (:meth:`mc2core.Corpus.standardised`),
    ``mu0`` = 0 is the mean of the corpus. T(x) consists of 4 D numbers, the concatenated statistics of the coordinates.
    NaN marks a missing coordinate. If all coordinates are NaN, the vector is missing.

    The likelihood of a vector is the product over its D coordinates, so a long vector can outweigh the words of a
    document. With a ``strength`` of 1 / D, the vector has the weight of one number.
    """

    code = NORMAL_GAMMA
    name: ClassVar[str] = "diagonal_normal_gamma"

    @cached_property
    def of_coordinate(self) -> NormalGamma:
        return NormalGamma(**self.settings())

    def standard(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the parameters mu, kappa, a, b, each (..., D), for (..., 4 D) natural parameters."""
        return NormalGamma.standard(self.by_coordinate(natural))

    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        _, _, a, b = self.standard(natural)
        return np.sqrt(b / a) * scale

    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        of_each = self.by_coordinate(natural)
        return of_each[:, 0, 1] - self.kappa0, of_each[..., 0], of_each[..., 3]

    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        n = n[:, None] + np.zeros(first.shape[1])
        return np.stack([first, self.kappa0 + n, self.a0 + 0.5 * n, second], axis=-1).reshape(len(first), -1)

    @property
    def prior_sums(self) -> np.ndarray:
        return np.append(self.of_coordinate.prior(STATISTICS), 0.0)


class GaussWishart(_GaussianVector, ContentFamily):
    """Family of vectors of D numbers with a full covariance.

    The model is x ~ Normal(mu, Lambda^-1), mu ~ Normal(mu0, (kappa0 Lambda)^-1) and Lambda ~ Wishart(nu0, (2 b0 I)^-1),
    with nu0 = D - 1 + 2 a0. The marginal distribution of each number is :class:`NormalGamma` with the same
    hyper-parameters. For D = 1, the two families are the same. One topic can describe correlated numbers, for which
    :class:`DiagonalNormalGamma` needs several topics. The cost grows with the square of D.

    As an exponential family (docs/model.md, section 1), T(x) = (x, 1, 1, x x') and t(phi) = (Lambda mu, -mu' Lambda mu
    / 2, ln det(Lambda) / 2, -Lambda / 2). The natural parameters are the D + 2 + D**2 numbers eta = (kappa mu, kappa,
    nu - D, Psi + kappa mu mu'), and A(eta) = ln G_D(nu / 2) + nu D / 2 ln 2 - nu / 2 ln det(Psi) - D / 2 ln(kappa / 2
    pi). If all coordinates are NaN, the vector is missing. A vector in which only some coordinates are NaN is rejected.
    """

    code = GAUSS_WISHART
    name: ClassVar[str] = "gauss_wishart"

    def n_parameters(self, length: int) -> int:
        return length + 2 + length**2

    def length(self, size: int) -> int:
        return math.isqrt(4 * (size - 2) + 1) // 2

    def prior(self, dimension: int) -> np.ndarray:
        length = self.length(dimension)
        mean = np.full((1, length), self.mu0)
        products = 2.0 * self.b0 * np.eye(length) + self.kappa0 * mean.T @ mean
        return self.natural_of(np.zeros(1), self.kappa0 * mean, products[None])[0]

    def standard(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return mu (..., D), kappa (...,), nu (...,) and Psi (..., D, D) for (..., P) natural parameters."""
        natural = np.asarray(natural, dtype=np.float64)
        length = self.length(natural.shape[-1])
        kappa, freedom = natural[..., length], natural[..., length + 1] + length
        mu = natural[..., :length] / kappa[..., None]
        products = natural[..., length + 2 :].reshape(*natural.shape[:-1], length, length)
        return mu, kappa, freedom, products - kappa[..., None, None] * mu[..., :, None] * mu[..., None, :]

    def check(self, values: np.ndarray) -> None:
        self.check_each(values.ravel(), np.repeat(np.arange(len(values)), values.shape[1]))

    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        products = (values[:, :, None] * values[:, None, :]).reshape(len(values), values.shape[1] ** 2)
        return np.hstack([values, np.ones((len(values), 2)), products])

    def statistics(self, context: Any) -> sp.csr_matrix:
        values = self._values(context)
        missing = np.isnan(values)
        documents = np.flatnonzero(~missing.all(axis=1))
        if missing[documents].any():
            first = documents[missing[documents].any(axis=1)][0]
            raise OutsideDomain(self, first, "lacks part of its vector; only DiagonalNormalGamma allows that")
        self.check(values)
        return stored_statistics(self.rows(values[documents], np.ones(values.shape[1])), ~missing.all(axis=1)[:, None])

    def log_base(self, context: Any) -> np.ndarray:
        values = self._values(context)
        return np.where(np.isnan(values).all(axis=1), 0.0, -0.5 * values.shape[1] * _LOG_2PI)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        _, kappa, freedom, psi = self.standard(natural)
        length = psi.shape[-1]
        gammas = gammaln(0.5 * (freedom[..., None] - np.arange(length))).sum(axis=-1)
        gammas += 0.25 * length * (length - 1) * np.log(np.pi)
        of_scatter = 0.5 * freedom * (length * np.log(2.0) - np.linalg.slogdet(psi)[1])
        return gammas + of_scatter - 0.5 * length * (np.log(kappa) - _LOG_2PI)

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        mu, kappa, freedom, psi = self.standard(natural)
        length = psi.shape[-1]
        precision = freedom[..., None, None] * np.linalg.inv(psi)
        shift = np.einsum("...de,...e->...d", precision, mu)
        log_det = digamma(0.5 * (freedom[..., None] - np.arange(length))).sum(axis=-1)
        log_det += length * np.log(2.0) - np.linalg.slogdet(psi)[1]
        square = (shift * mu).sum(axis=-1) + length / kappa
        return _side_by_side(shift, -0.5 * square, 0.5 * log_det, -0.5 * precision)

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        mu, kappa, freedom, psi = self.standard(natural)
        length = psi.shape[-1]
        # Bartlett decomposition: normal variates below the diagonal, and roots of chi-squared variates on it
        triangle = np.tril(generator.standard_normal(psi.shape), -1)
        chi = np.sqrt(2.0 * generator.standard_gamma(0.5 * (freedom[:, None] - np.arange(length))))
        triangle[:, np.arange(length), np.arange(length)] = np.maximum(chi, np.sqrt(_MIN_PRECISION))
        root = np.linalg.cholesky(np.linalg.inv(psi)) @ triangle
        precision = root @ root.transpose(0, 2, 1)
        noise = generator.standard_normal((len(mu), length, 1))
        centre = mu + np.linalg.solve(root.transpose(0, 2, 1), noise)[..., 0] / np.sqrt(kappa)[:, None]
        shift = np.einsum("kde,ke->kd", precision, centre)
        log_det = 2.0 * np.log(abs(np.diagonal(root, axis1=1, axis2=2))).sum(axis=1)
        return _side_by_side(shift, -0.5 * (shift * centre).sum(axis=1), 0.5 * log_det, -0.5 * precision)

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.standard(natural)[0]

    def coordinate(self, natural: np.ndarray, number: int) -> tuple[NormalGamma, np.ndarray]:
        mu, kappa, freedom, psi = self.standard(natural)
        shift, length = kappa * mu[:, number], psi.shape[-1]
        b = 0.5 * psi[:, number, number]
        a = 0.5 * (freedom - (length - 1))
        return NormalGamma(**self.settings()), np.stack([shift, kappa, a, b + 0.5 * shift * mu[:, number]], axis=-1)

    def covariance(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        _, _, freedom, psi = self.standard(natural)
        return psi / freedom[:, None, None] * scale[:, None] * scale

    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.sqrt(np.diagonal(self.covariance(natural, scale), axis1=1, axis2=2))

    def first_alike(self, length: int) -> np.ndarray:
        row, column = np.indices((length, length)).reshape(2, -1)
        of_products = length + 2 + np.minimum(row, column) * length + np.maximum(row, column)
        return np.concatenate([np.arange(length), [length, length], of_products])

    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        length = len(scale)
        products = natural[:, length + 2 :].reshape(-1, length, length)
        return natural[:, length] - self.kappa0, natural[:, :length], products

    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return _side_by_side(first, self.kappa0 + n, 2.0 * self.a0 - 1.0 + n, second)

    @property
    def prior_sums(self) -> np.ndarray:
        square = self.kappa0 * self.mu0**2
        return np.array([self.kappa0 * self.mu0, self.kappa0, self.a0, 2.0 * self.b0 + square, square])


def _side_by_side(first: np.ndarray, second: np.ndarray, third: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Concatenate vectors (..., D), two numbers (...,) and matrices (..., D, D) to rows (..., D + 2 + D**2)."""
    flat = matrix.reshape(*matrix.shape[:-2], matrix.shape[-1] ** 2)
    return np.concatenate([first, second[..., None], third[..., None], flat], axis=-1)
