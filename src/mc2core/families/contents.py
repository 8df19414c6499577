"""Topics that emit observations, vectors of D numbers: what they know of them, and compiled predictive densities.

Of :class:`mc2core.families.gaussian.DiagonalNormalGamma` on standardised numbers. With (kappa, mu, a, b) of a topic, of
a coordinate each but for kappa and a, its predictive density is a product of Student's t,

    p(x) = prod_d G(a + 1/2) / G(a) sqrt(c_d / pi) (1 + c_d (x_d - mu_d)^2)^-(a + 1/2)
    c_d = kappa / (2 b_d (kappa + 1))

and that without one of its own n observations, x,

    p(x) = prod_d G(a) / G(a - 1/2) sqrt((kappa - 1) / (2 pi kappa b_d)) (1 - r_d (x_d - mu_d)^2)^(a - 1/2)
    r_d = c_d (kappa + 1) / (kappa - 1)

so that tables of mu, c and the constants of each topic, renewed when it gains or loses an observation, are all that
is needed, and powers are taken of products over coordinates. Plain twin: ``Family.log_normaliser``
(tests/mc2core/families/test_contents.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import gammaln

from mc2core.compute.kernels import kernel
from mc2core.compute.special import log
from mc2core.families.gaussian import STATISTICS, DiagonalNormalGamma
from mc2core.families.kernels import LAST_DIGIT

# coordinates whose factors, each below 1e19, are multiplied before a logarithm is taken
_TOGETHER = 16
# the same of slopes, which may be smaller
_SLOPES_TOGETHER = 8
_HALF_LOG_PI = 0.5 * math.log(math.pi)


class ContentTables(NamedTuple):
    """What topics know, a column for each; columns without observations are the prior's."""

    n: np.ndarray  # (columns,) int64: observations
    first: np.ndarray  # (D, columns) float64: kappa mu
    second: np.ndarray  # (D, columns) float64: b + kappa mu**2 / 2
    mean: np.ndarray  # (D, columns) float64: mu
    slope: np.ndarray  # (D, columns) float64: c
    power: np.ndarray  # (columns,) float64: a + 1/2
    constant: np.ndarray  # (columns,) float64: ln of all before the power
    own_constant: np.ndarray  # (columns,) float64: the same without one of the topic's own
    own_ratio: np.ndarray  # (columns,) float64: (kappa + 1) / (kappa - 1)
    prior: np.ndarray  # (4,) float64: natural parameters of a coordinate
    log_gammas: np.ndarray  # (most + 2,) float64: ln G(a0 + i / 2)


# arrays of named tuples are handed over one by one: each access to a tuple's would count references, atomically
@kernel(error_model="numpy")
def _renew(m, n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas):
    """What follows from the sums of topic m."""
    dimension, count = first.shape[0], n[m]
    kappa, a = prior[1] + count, prior[2] + 0.5 * count
    inverse, half = 1.0 / kappa, 0.5 * kappa / (kappa + 1.0)
    log_slopes, product = 0.0, 1.0
    for d in range(dimension):
        mu = first[d, m] * inverse
        b = max(second[d, m] - 0.5 * first[d, m] * mu, LAST_DIGIT * second[d, m])
        mean[d, m] = mu
        slope[d, m] = half / b
        product *= slope[d, m]
        if (d + 1) % _SLOPES_TOGETHER == 0 or d == dimension - 1:
            log_slopes += math.log(product)
            product = 1.0
    power[m] = a + 0.5
    rising = log_gammas[count + 1] - log_gammas[count]
    constant[m] = dimension * (rising - _HALF_LOG_PI) + 0.5 * log_slopes
    if count > 0:
        # ln (kappa - 1) / (2 pi kappa b) = ln c + ln (kappa - 1) (kappa + 1) / (pi kappa**2)
        rising = log_gammas[count] - log_gammas[count - 1]
        of_kappa = 0.5 * math.log((kappa - 1.0) * (kappa + 1.0) / (kappa * kappa))
        own_constant[m] = dimension * (rising + of_kappa - _HALF_LOG_PI) + 0.5 * log_slopes
        own_ratio[m] = (kappa + 1.0) / (kappa - 1.0)


@kernel(error_model="numpy")
def renew_all(n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas):
    """Fill in all that follows from counts and sums."""
    for m in range(n.size):
        _renew(m, n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas)


@kernel(error_model="numpy")
def add_observation(tables, values, i, m, sign):
    """Add observation i to topic m (``sign`` 1) or take it out (-1)."""
    n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas = tables
    n[m] += sign
    for d in range(first.shape[0]):
        if n[m] == 0:  # exactly, or differences would stay
            first[d, m], second[d, m] = prior[0], prior[3]
        else:
            first[d, m] += sign * values[i, d]
            second[d, m] += sign * 0.5 * values[i, d] * values[i, d]
    _renew(m, n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas)


@kernel(error_model="numpy", fastmath={"contract"})
def log_densities(values, i, n_columns, product, out, mean, slope, power, constant):
    """Fill in ``out[:n_columns]`` with ln p(observation i | topic); ``product`` (columns,) is room to work in."""
    dimension = mean.shape[0]
    for m in range(n_columns):
        out[m] = 0.0
        product[m] = 1.0
    for d in range(dimension):
        x, mu, c = values[i, d], mean[d], slope[d]
        for m in range(n_columns):
            z = x - mu[m]
            product[m] *= 1.0 + c[m] * z * z
        if (d + 1) % _TOGETHER == 0 or d == dimension - 1:
            for m in range(n_columns):
                out[m] += log(product[m])
                product[m] = 1.0
    for m in range(n_columns):
        out[m] = constant[m] - power[m] * out[m]


@numba.njit(inline="always")
def log_density_without(values, i, m, mean, slope, power, own_constant, own_ratio):
    """ln p(observation i | topic m without it), of a topic of at least two."""
    dimension, ratio, product, logs = mean.shape[0], own_ratio[m], 1.0, 0.0
    for d in range(dimension):
        z = values[i, d] - mean[d, m]
        product *= max(1.0 - ratio * slope[d, m] * z * z, LAST_DIGIT)
        if (d + 1) % _TOGETHER == 0 or d == dimension - 1:
            logs += math.log(product)
            product = 1.0
    return own_constant[m] + (power[m] - 1.0) * logs


@kernel(error_model="numpy")
def _all_log_densities(tables, values, out):
    mean, slope, power, constant, product = (
        tables.mean,
        tables.slope,
        tables.power,
        tables.constant,
        np.empty(len(out.T)),
    )
    for i in range(out.shape[0]):
        log_densities(values, i, out.shape[1], product, out[i], mean, slope, power, constant)


def log_gammas_of(family: DiagonalNormalGamma, most: int) -> np.ndarray:
    """(most + 2,) float64: ln G(a0 + i / 2), of topics of at most so many observations."""
    return gammaln(family.a0 + 0.5 * np.arange(most + 2))


def content_tables(
    family: DiagonalNormalGamma, natural: np.ndarray, columns: int, log_gammas: np.ndarray | None = None
) -> ContentTables:
    """Tables of (M, 4 D) ``natural`` parameters, and of the prior from column M on.

    ``log_gammas`` of :func:`log_gammas_of`; None: topics do not grow.
    """
    n_topics, dimension = len(natural), natural.shape[1] // STATISTICS
    prior = family.prior(STATISTICS)
    of_all = np.tile(family.prior(STATISTICS * dimension), (columns, 1))
    of_all[:n_topics] = natural
    by_coordinate = of_all.reshape(columns, dimension, STATISTICS)
    n = np.rint(by_coordinate[:, 0, 1] - family.kappa0).astype(np.int64)
    first, second = (np.ascontiguousarray(by_coordinate[:, :, part].T) for part in (0, 3))
    mean, slope = np.empty((2, dimension, columns))
    power, constant, own_constant, own_ratio = np.zeros((4, columns))
    log_gammas = log_gammas_of(family, n.max()) if log_gammas is None else log_gammas
    tables = ContentTables(
        n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas
    )  # fmt: skip
    renew_all(*tables)
    return tables


def with_columns(tables: ContentTables, family: DiagonalNormalGamma, columns: int) -> ContentTables:
    """The same tables, with more columns."""
    n, prior = tables.n[:, None] + np.zeros(len(tables.first)), tables.prior
    natural = np.stack([tables.first.T, prior[1] + n, prior[2] + 0.5 * n, tables.second.T], axis=-1)
    return content_tables(family, natural.reshape(len(n), -1), columns, tables.log_gammas)


@dataclass(frozen=True)
class Contents:
    """What topics that emit observations are known to be.

    Attributes
    ----------
    family : DiagonalNormalGamma
    centre, scale : (D,) float64
        Standardised numbers, of which the family is, are (x - centre) / scale.
    natural : (M, 4 D) float64
        Posterior natural parameters of each topic.
    """

    family: DiagonalNormalGamma
    centre: np.ndarray
    scale: np.ndarray
    natural: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """(M, D): the expected mean of each topic's observations, in their own unit."""
        return self.family.standard(self.natural)[0] * self.scale + self.centre

    @property
    def sd(self) -> np.ndarray:
        """(M, D): the standard deviation of each topic's observations, at the expected precision, in their own unit."""
        _, _, a, b = self.family.standard(self.natural)
        return np.sqrt(b / a) * self.scale

    @property
    def n_observations(self) -> np.ndarray:
        """(M,) float64: how many observations each topic has."""
        return self.family.standard(self.natural)[1][:, 0] - self.family.kappa0

    def log_densities(self, values: np.ndarray) -> np.ndarray:
        """(n, M + 1): ln p(x | topic) of (n, D) observations in their own unit; the last column is a new topic's."""
        columns = len(self.natural) + 1
        out = np.empty((len(values), columns))
        standardised = np.ascontiguousarray((values - self.centre) / self.scale)
        _all_log_densities(content_tables(self.family, self.natural, columns), standardised, out)
        return out - np.log(self.scale).sum()
