"""Topics that emit observations (vectors of D values): statistics and compiled predictive densities.

A family (:class:`mc2core.families.base.ContentFamily`) passes its ``code`` and ``prior_sums`` to the kernels. Sweeps
only add an observation to a topic, remove it, and compute densities. All densities are without the base measure, which
is the same in all topics. A topic stores two sums over its observations, which include the prior. The densities are:

* **Diagonal Normal-Gamma** with (kappa, mu, a, b), where mu and b have one value per coordinate: a product of
  Student t densities,

      p(x) prop. to prod_d G(a + 1/2) / G(a) sqrt(c_d) (1 + c_d (x_d - mu_d)^2)^-(a + 1/2),

  with c_d = kappa / (2 b_d (kappa + 1)),

  and, if x is one of the n observations of the topic and is removed,

      p(x) prop. to prod_d G(a) / G(a - 1/2) sqrt(r c_d) (kappa - 1) / kappa (1 - r c_d (x_d - mu_d)^2)^(a - 1/2),

  with r = (kappa + 1) / (kappa - 1)

* **Gamma-Poisson** of (a_d, b_d), in units e_d: prod_d G(a_d + x_d) / G(a_d) (b_d / (b_d + e_d))^a_d (b_d + e_d)^-x_d
* **Beta-Bernoulli** of (a_d, b_d): prod_d b_d / (a_d + b_d) (a_d / b_d)^x_d
* **Gauss-Wishart**: a Student t density, computed by the inverse W of each topic's Cholesky factor
  (:mod:`mc2core.families.factors`). With q = |W (x - m)|^2 and c, kappa and r as above,

      p(x) prop. to |W| c^(D/2) G(a + D/2) / G(a) (1 + c q)^-(a + D/2)

  and, if x is one of the topic's observations and is removed, proportional to

      |W| ((kappa - 1) / kappa)^(D/2) G(a + (D - 1)/2) / G(a - 1/2) (1 - r c q)^(a + D/2 - 1)

The terms of each topic are stored and updated when an observation is added or removed. Powers and logarithms are taken
of products over coordinates. tests/mc2core/families/test_contents.py compares the densities with
``Family.log_normaliser``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import gammaln

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.special import log
from mc2core.families.base import ContentFamily
from mc2core.families.factors import (
    MAX_DOWNDATES,
    MIN_LEFT,
    change_inverse_by_rank_one,
    factorise,
    invert,
    log_student_anew,
    shift_of,
)
from mc2core.families.kernels import BETA_BERNOULLI, GAMMA_POISSON, GAUSS_WISHART, LAST_DIGIT, NORMAL_GAMMA, log_rising

# number of factors, each below 1e19, that are multiplied before a logarithm is taken
_TOGETHER = 16
# number of factors of a wider range that are multiplied before a logarithm is taken
_FEW_TOGETHER = 8
# largest count whose factors are multiplied one by one
_MAX_FACTORS = 100.0
# largest number of decimal digits of a product, and number of digits of the largest sum of counts
_MAX_DIGITS, _DIGITS_OF_SUMS = 290.0, 12.0
#: smallest log density relative to the maximum; its exponential times a weight is negligible, but still positive
MIN_LOG = -600.0
_HALF_LOG_2 = 0.5 * math.log(2.0)
_NEAR_WHOLE = 1e-6  # largest distance from an integer that is rounded off in a number of observations


@record
class ContentTables(NamedTuple):
    """Statistics and density terms of topics, one column per topic. All sums include the statistics of the prior.

    NG, GP, BB and GW abbreviate the Normal-Gamma, Gamma-Poisson, Beta-Bernoulli and Gauss-Wishart families. Arrays that
    a family does not need are empty or unused.
    """

    code: int  # code of the family
    n: np.ndarray  # (columns,) float64: number of observations; not an integer if it is an expectation
    first: np.ndarray  # (D, columns) float64: sum of x
    second: np.ndarray  # (D, columns) float64: sum of x**2 / 2 (NG), e (GP) or 1 - x (BB)
    scatter: np.ndarray  # (columns, D, D) float64: upper triangle of the sum of x x' of each topic (GW)
    inverse: np.ndarray  # (D (D + 1) / 2, columns) float64: inverse factor W, row by row (GW)
    room: np.ndarray  # (D + 1, D) float64: scratch (GW)
    mean: np.ndarray  # (D, columns) float64: mu (NG), 1 / (b - e) (GP) or W mu (GW)
    slope: np.ndarray  # (D, columns) float64: c (NG; GW in the first row), 1 / (b + e) (GP) or a / b (BB)
    power: np.ndarray  # (columns,) float64: a + 1/2 (NG) or a + D / 2 (GW)
    constant: np.ndarray  # (columns,) float64: logarithm of all terms that do not depend on x
    own_constant: np.ndarray  # (columns,) float64: the same logarithm after removing one observation of the topic
    own_ratio: np.ndarray  # (columns,) float64: r (NG, GW)
    downdates: np.ndarray  # (columns,) int64: number of downdates since the factor was recomputed (GW)
    unit: np.ndarray  # (D,) float64: unit e of each coordinate
    prior: np.ndarray  # (5,) float64: ContentFamily.prior_sums
    log_gammas: np.ndarray  # (N + D + 1,) float64: ln G(a0 + i / 2) (NG, GW)
    together: int  # number of factors that are multiplied before a logarithm is taken (GP)


@inner_kernel
def _renew_normal(m, n, first, second, mean, slope, power, constant, own_constant, own_ratio, prior, log_gammas):
    """Recompute the columns that depend on the sums of topic m."""
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
        if (d + 1) % _FEW_TOGETHER == 0 or d == dimension - 1:
            log_slopes += math.log(product)
            product = 1.0
    power[m] = a + 0.5
    whole = int(count)
    if whole == count and whole + 1 < log_gammas.size:
        now, above, below = log_gammas[whole], log_gammas[whole + 1], log_gammas[max(whole - 1, 0)]
    else:
        now, above, below = math.lgamma(a), math.lgamma(a + 0.5), math.lgamma(max(a - 0.5, prior[2]))
    constant[m] = dimension * (above - now + _HALF_LOG_2) + 0.5 * log_slopes
    if count > 0.0:
        # ln (kappa - 1) / (kappa b) = ln 2 c + ln (kappa - 1) (kappa + 1) / kappa**2
        of_kappa = 0.5 * math.log((kappa - 1.0) * (kappa + 1.0) / (kappa * kappa))
        own_constant[m] = dimension * (now - below + of_kappa + _HALF_LOG_2) + 0.5 * log_slopes
        own_ratio[m] = (kappa + 1.0) / (kappa - 1.0)


@inner_kernel
def _renew_counts(m, n, first, second, mean, slope, constant, own_constant, unit):
    constant[m] = own_constant[m] = 0.0
    for d in range(unit.size):
        a, b = first[d, m], second[d, m]
        slope[d, m] = 1.0 / (b + unit[d])
        constant[m] += a * math.log1p(-unit[d] * slope[d, m])
        if n[m] > 0.0:
            mean[d, m] = 1.0 / (b - unit[d])
            own_constant[m] += a * math.log1p(-unit[d] / b)


@inner_kernel
def _renew_ones(m, n, first, second, slope, constant, own_constant):
    dimension, both = first.shape[0], first[0, m] + second[0, m]
    logs, product = 0.0, 1.0
    for d in range(dimension):
        slope[d, m] = first[d, m] / second[d, m]
        product *= second[d, m]
        if (d + 1) % _FEW_TOGETHER == 0 or d == dimension - 1:
            logs += math.log(product)
            product = 1.0
    constant[m] = logs - dimension * math.log(both)
    if n[m] > 0.0:
        own_constant[m] = -dimension * math.log(both - 1.0)


@inner_kernel
def _renew_vectors(m, n, first, mean, slope, power, constant, own_constant, own_ratio, inverse, prior, log_gammas):
    dimension, count = first.shape[0], n[m]
    kappa, half = prior[1] + count, prior[2] + 0.5 * count
    half_log_det, product = 0.0, 1.0
    for r in range(dimension):
        row, total = r * (r + 1) // 2, 0.0
        for s in range(r + 1):
            total += inverse[row + s, m] * first[s, m]
        mean[r, m] = total / kappa
        product *= inverse[row + r, m]
        if (r + 1) % _FEW_TOGETHER == 0 or r == dimension - 1:
            half_log_det -= math.log(product)
            product = 1.0
    slope[0, m], power[m] = kappa / (kappa + 1.0), half + 0.5 * dimension
    whole = int(count)
    if whole == count and whole + dimension < log_gammas.size:
        below, now = log_gammas[max(whole - 1, 0)], log_gammas[whole]
        far_below, far = log_gammas[max(whole + dimension - 1, 0)], log_gammas[whole + dimension]
    else:
        below, now = math.lgamma(max(half - 0.5, prior[2])), math.lgamma(half)
        far_below, far = math.lgamma(power[m] - 0.5), math.lgamma(power[m])
    constant[m] = far - now - half_log_det + dimension * (_HALF_LOG_2 + 0.5 * math.log(slope[0, m]))
    if count > 0.0:
        own = dimension * (_HALF_LOG_2 + 0.5 * math.log((kappa - 1.0) / kappa))
        own_constant[m] = far_below - below - half_log_det + own
        own_ratio[m] = (kappa + 1.0) / (kappa - 1.0)


@inner_kernel
def _renew(m, tables):
    """Recompute the columns that depend on the sums and the inverse factor of topic m."""
    code, n, first, second, slope = tables.code, tables.n, tables.first, tables.second, tables.slope
    mean, power, constant, own_constant = tables.mean, tables.power, tables.constant, tables.own_constant
    if code == NORMAL_GAMMA:
        _renew_normal(
            m, n, first, second, mean, slope, power, constant, own_constant, tables.own_ratio, tables.prior,
            tables.log_gammas,
        )  # fmt: skip
    elif code == GAMMA_POISSON:
        _renew_counts(m, n, first, second, mean, slope, constant, own_constant, tables.unit)
    elif code == BETA_BERNOULLI:
        _renew_ones(m, n, first, second, slope, constant, own_constant)
    else:
        _renew_vectors(
            m, n, first, mean, slope, power, constant, own_constant, tables.own_ratio, tables.inverse, tables.prior,
            tables.log_gammas,
        )  # fmt: skip


@inner_kernel
def _factorise(m, tables):
    zeros, factor = tables.room[0], tables.room[1:]
    zeros[:] = 0.0
    factorise(tables.prior[1] + tables.n[m], tables.first[:, m], tables.scatter[m], zeros, 0.0, factor)
    invert(factor, tables.inverse, m)


@kernel
def renew_all(tables):
    """Recompute the density terms of all topics from their counts and sums."""
    for m in range(tables.n.size):
        if tables.code == GAUSS_WISHART:
            _factorise(m, tables)
            tables.downdates[m] = 0
        _renew(m, tables)


@numba.njit(inline="always")
def _add_sums(code, values, i, m, sign, first, second, scatter, unit):
    """Add observation i to the sums of topic m (``sign`` 1.0) or subtract it (-1.0)."""
    dimension = first.shape[0]
    for d in range(dimension):
        x = values[i, d]
        first[d, m] += sign * x
        if code == NORMAL_GAMMA:
            second[d, m] += sign * 0.5 * x * x
        elif code == GAMMA_POISSON:
            second[d, m] += sign * unit[d]
        elif code == BETA_BERNOULLI:
            second[d, m] += sign * (1.0 - x)
        else:
            for e in range(d, dimension):
                scatter[m, d, e] += sign * x * values[i, e]


@kernel
def sum_observations(code, values, topic, n, first, second, scatter, unit):
    """Add every observation to the count and the sums of its topic."""
    for i in range(topic.size):
        n[topic[i]] += 1.0
        _add_sums(code, values, i, topic[i], 1.0, first, second, scatter, unit)


@inner_kernel
def add_observation(tables, values, i, m, sign):
    """Add observation i to topic m (``sign`` 1) or remove it (-1)."""
    code, n, first, second, scatter, prior = (
        tables.code, tables.n, tables.first, tables.second, tables.scatter, tables.prior
    )  # fmt: skip
    if code == GAUSS_WISHART:
        shift, sums = tables.room[0], tables.room[1]
        strength = prior[1] + n[m] - (sign < 0)  # strength without observation i
        shift_of(strength, first[:, m], values[i], sign, shift)
    n[m] += sign
    _add_sums(code, values, i, m, sign, first, second, scatter, tables.unit)
    if n[m] == 0.0:  # the sums are set to the prior exactly, because rounding errors would remain
        first[:, m] = prior[0]
        if code == GAUSS_WISHART:
            scatter[m] = prior[4]
            for d in range(first.shape[0]):
                scatter[m, d, d] = prior[3]
        else:
            second[:, m] = prior[3]
    if code == GAUSS_WISHART:
        downdates = tables.downdates
        downdates[m] += sign < 0
        is_near = n[m] > 0.0 and downdates[m] <= MAX_DOWNDATES
        if not (is_near and change_inverse_by_rank_one(tables.inverse, m, shift, sign, sums)):
            _factorise(m, tables)
            downdates[m] = 0
    _renew(m, tables)


@inner_kernel(fastmath={"contract"})
def log_normal(values, i, n_columns, product, out, mean, slope, power, constant):
    """Compute :func:`log_densities` for Normal-Gamma."""
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


@inner_kernel(fastmath={"contract"})
def log_counts(values, i, n_columns, product, out, first, slope, constant, together):
    """Compute :func:`log_densities` for Gamma-Poisson."""
    taken = 0
    for m in range(n_columns):
        out[m] = constant[m]
        product[m] = 1.0
    for d in range(first.shape[0]):
        x, a, c = values[i, d], first[d], slope[d]
        if x > _MAX_FACTORS:
            for m in range(n_columns):
                out[m] += log_rising(a[m], x) + x * log(c[m])
            continue
        for step in range(int(x)):
            if taken == together:
                for m in range(n_columns):
                    out[m] += log(product[m])
                    product[m] = 1.0
                taken = 0
            for m in range(n_columns):
                product[m] *= (a[m] + step) * c[m]
            taken += 1
    for m in range(n_columns):
        out[m] += log(product[m])


@inner_kernel(fastmath={"contract"})
def log_ones(values, i, n_columns, product, out, slope, constant):
    """Compute :func:`log_densities` for Beta-Bernoulli."""
    taken = 0
    for m in range(n_columns):
        out[m] = constant[m]
        product[m] = 1.0
    for d in range(slope.shape[0]):
        if values[i, d] == 0.0:
            continue
        c = slope[d]
        for m in range(n_columns):
            product[m] *= c[m]
        taken += 1
        if taken == _FEW_TOGETHER:
            for m in range(n_columns):
                out[m] += log(product[m])
                product[m] = 1.0
            taken = 0
    for m in range(n_columns):
        out[m] += log(product[m])


@inner_kernel(fastmath={"contract"})
def log_vectors(values, i, n_columns, product, out, mean, slope, power, constant, inverse):
    """Compute :func:`log_densities` for Gauss-Wishart, and write the squared distances to ``product``."""
    for m in range(n_columns):
        product[m] = 0.0
    for r in range(mean.shape[0]):
        mu, s, row = mean[r], 0, r * (r + 1) // 2
        for m in range(n_columns):
            out[m] = -mu[m]
        while s + 3 <= r:  # four products per access of ``out``, since an access takes as long as a product
            x, y, z, u = values[i, s], values[i, s + 1], values[i, s + 2], values[i, s + 3]
            of_x, of_y, of_z, of_u = inverse[row + s], inverse[row + s + 1], inverse[row + s + 2], inverse[row + s + 3]
            for m in range(n_columns):
                out[m] += of_x[m] * x + of_y[m] * y + (of_z[m] * z + of_u[m] * u)
            s += 4
        while s <= r:
            x, of_x = values[i, s], inverse[row + s]
            for m in range(n_columns):
                out[m] += of_x[m] * x
            s += 1
        for m in range(n_columns):
            product[m] += out[m] * out[m]
    c = slope[0]
    for m in range(n_columns):
        out[m] = constant[m] - power[m] * log(1.0 + c[m] * product[m])


@inner_kernel
def log_densities(tables, values, i, n_columns, out, product):
    """Fill ``out[:n_columns]`` with ln p(observation i | topic) without the base measure.

    ``product`` (columns,) is filled for :func:`log_vector_without`.
    """
    code, mean, slope, power, constant = tables.code, tables.mean, tables.slope, tables.power, tables.constant
    if code == NORMAL_GAMMA:
        log_normal(values, i, n_columns, product, out, mean, slope, power, constant)
    elif code == GAMMA_POISSON:
        log_counts(values, i, n_columns, product, out, tables.first, slope, constant, tables.together)
    elif code == BETA_BERNOULLI:
        log_ones(values, i, n_columns, product, out, slope, constant)
    else:
        log_vectors(values, i, n_columns, product, out, mean, slope, power, constant, tables.inverse)


@inner_kernel
def log_normal_without(values, i, m, mean, slope, power, own_constant, own_ratio):
    """Return ln p(observation i | other observations of topic m) without the base measure, for Normal-Gamma.

    Observation i must be in topic m, which must have at least two observations.
    """
    dimension, ratio, product, logs = mean.shape[0], own_ratio[m], 1.0, 0.0
    for d in range(dimension):
        z = values[i, d] - mean[d, m]
        product *= max(1.0 - ratio * slope[d, m] * z * z, LAST_DIGIT)
        if (d + 1) % _TOGETHER == 0 or d == dimension - 1:
            logs += math.log(product)
            product = 1.0
    return own_constant[m] + (power[m] - 1.0) * logs


@inner_kernel
def log_counts_without(values, i, m, first, mean, own_constant, together):
    """Compute :func:`log_normal_without` for Gamma-Poisson."""
    result, product, taken = own_constant[m], 1.0, 0
    for d in range(first.shape[0]):
        x, c = values[i, d], mean[d, m]
        a = first[d, m] - x
        if x > _MAX_FACTORS:
            result += log_rising(a, x) + x * math.log(c)
            continue
        for step in range(int(x)):
            if taken == together:
                result += math.log(product)
                product, taken = 1.0, 0
            product *= (a + step) * c
            taken += 1
    return result + math.log(product)


@inner_kernel
def log_ones_without(values, i, m, first, second, own_constant):
    """Compute :func:`log_normal_without` for Beta-Bernoulli."""
    dimension, result, product = first.shape[0], own_constant[m], 1.0
    for d in range(dimension):
        product *= (first[d, m] if values[i, d] == 1.0 else second[d, m]) - 1.0
        if (d + 1) % _FEW_TOGETHER == 0 or d == dimension - 1:
            result += math.log(product)
            product = 1.0
    return result


@inner_kernel
def log_vector_without(m, product, slope, power, own_constant, own_ratio):
    """Compute :func:`log_normal_without` for Gauss-Wishart from squared distances; NaN if cancellation is too large."""
    left = 1.0 - own_ratio[m] * slope[0, m] * product[m]  # ratio of determinants without and with the observation
    return own_constant[m] + (power[m] - 1.0) * math.log(left) if left >= MIN_LEFT else math.nan


@inner_kernel
def log_vector_anew(tables, values, i, m):
    """Compute :func:`log_vector_without` with a recomputed factor, without cancellation."""
    strength, freedom = tables.prior[1] + tables.n[m] - 1.0, 2.0 * tables.prior[2] + tables.n[m] - 1.0
    v, room = tables.room[0], tables.room[1:]
    result = log_student_anew(strength, freedom, tables.first[:, m], tables.scatter[m], 0.0, values[i], v, room)
    return result + v.size * _HALF_LOG_2


@kernel
def _all_log_densities(tables, values, out, product):
    for i in range(out.shape[0]):
        log_densities(tables, values, i, out.shape[1], out[i], product)


def log_gammas_of(family: ContentFamily, shape: tuple[int, int]) -> np.ndarray:
    """Return ln G(a0 + i / 2), (N + D + 1,) float64, for Gaussian topics of at most N observations of D numbers."""
    of_gauss = family.code in (NORMAL_GAMMA, GAUSS_WISHART)
    return gammaln(family.prior_sums[2] + 0.5 * np.arange(sum(shape) + 1)) if of_gauss else np.zeros(0)


def _factors_together(family: ContentFamily) -> int:
    """Return the number of factors (a + step) / (b + e) that can be multiplied before a logarithm is taken."""
    if family.code != GAMMA_POISSON:
        return 0
    a, b = family.prior_sums[[0, 3]]
    return max(int(_MAX_DIGITS / (_DIGITS_OF_SUMS + abs(np.log10(a)) + abs(np.log10(b)))), 1)


def content_tables(
    family: ContentFamily,
    natural: np.ndarray,
    columns: int,
    unit: np.ndarray,
    log_gammas: np.ndarray | None = None,
) -> ContentTables:
    """Return the tables for ``natural`` parameters (M, P); columns from M on have the prior.

    ``unit`` (D,) is the scale of the family's unit. ``log_gammas`` is the result of :func:`log_gammas_of`, or None if
    no observations are added.
    """
    of_all = np.tile(family.prior(family.n_parameters(len(unit))), (columns, 1))
    of_all[: len(natural)] = natural
    n, first, of_each, scatter = _columns(*family.parts(of_all, unit))
    length = len(unit)
    mean, slope = np.empty((2, *first.shape))
    size = length if scatter.size else 0
    room, inverse = np.empty((size + 1, size)), np.empty((size * (size + 1) // 2, columns))
    power, constant, own_constant, own_ratio = np.zeros((4, columns))
    tables = ContentTables(
        family.code, n, first, of_each, scatter, inverse, room, mean, slope, power, constant, own_constant,
        own_ratio, np.zeros(columns, np.int64), np.ascontiguousarray(unit), family.prior_sums,
        np.zeros(0) if log_gammas is None else log_gammas, _factors_together(family),
    )  # fmt: skip
    renew_all(tables)
    return tables


def with_columns(tables: ContentTables, family: ContentFamily, columns: int) -> ContentTables:
    """Return the tables extended to ``columns`` columns."""
    known = family.natural_of(tables.n, tables.first.T, _second(tables.second, tables.scatter))
    return content_tables(family, known, columns, tables.unit, tables.log_gammas)


def natural_of_topics(
    family: ContentFamily, values: np.ndarray, topic: np.ndarray, n_topics: int, unit: np.ndarray
) -> np.ndarray:
    """Return the posterior natural parameters of the topics, (M, P), given the observations ``values`` and topics."""
    prior = np.tile(family.prior(family.n_parameters(len(unit))), (n_topics, 1))
    n, first, of_each, scatter = _columns(*family.parts(prior, unit))
    sum_observations(family.code, values, topic, n, first, of_each, scatter, unit)
    return family.natural_of(n, first.T, _second(of_each, scatter))


def _columns(n: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, ...]:
    """Copy the results of ``ContentFamily.parts`` to ``n``, ``first``, ``second``, ``scatter`` of a ContentTables."""
    nearest = np.rint(n)
    n = np.where(abs(n - nearest) < _NEAR_WHOLE, nearest, n)  # removes rounding errors of integer numbers
    if second.ndim == 3:
        return n, first.T.copy(), np.zeros((0, len(n))), second.copy()
    return n, first.T.copy(), second.T.copy(), np.zeros((0, 0, 0))


def _second(of_each: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Return the second sums as for ``ContentFamily.natural_of``: (M, D), or full symmetric matrices (M, D, D)."""
    return np.triu(scatter) + np.triu(scatter, 1).transpose(0, 2, 1) if scatter.size else of_each.T


def relative_densities(log_p: np.ndarray, out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return densities divided by the maximum of each row, (n, M), given their logarithms, and the log maxima, (n,).

    Relative densities are at least exp(:data:`MIN_LOG`). A weighted sum over topics is therefore positive even if the
    topic with the maximum has weight 0. They are written to ``out`` if it is given.
    """
    highest = log_p.max(axis=1)
    return np.exp(np.maximum(log_p - highest[:, None], MIN_LOG), out=out), highest


@dataclass(frozen=True)
class Contents:
    """Posterior parameters of topics that emit observations.

    Attributes
    ----------
    family : ContentFamily
        Family of the observations.
    centre, scale : (D,) float64
        Unit of the family. Standardised numbers are (x - centre) / scale. Rates of counts in the original unit are
        the rates of the family times ``scale``.
    natural : (M, P) float64
        Posterior natural parameters of each topic.
    """

    family: ContentFamily
    centre: np.ndarray
    scale: np.ndarray
    natural: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """(M, D) float64: expected mean of the observations of each topic, in the original unit."""
        return self.family.mean(self.natural) * self.scale + self.centre

    @property
    def sd(self) -> np.ndarray:
        """(M, D) float64: standard deviation of the observations of each topic, in the original unit.

        It is computed at the expected parameters (for Gaussians, at the expected precision).
        """
        return self.family.sd(self.natural, self.scale)

    @property
    def covariance(self) -> np.ndarray:
        """(M, D, D) float64: covariance of the observations of each topic, at the expected parameters.

        Only ``GaussWishart`` has off-diagonal entries.
        """
        return self.family.covariance(self.natural, self.scale)

    @property
    def n_observations(self) -> np.ndarray:
        """(M,) float64: number of observations of each topic."""
        return self.family.parts(self.natural, self.scale)[0]

    def log_densities(self, values: np.ndarray) -> np.ndarray:
        """Return ln p(x | topic), (n, M + 1), for observations (n, D) in the original unit.

        The last column is for a new topic. Raises ValueError for a value outside the domain of the family.
        """
        columns = len(self.natural) + 1
        out = np.empty((len(values), columns))
        in_unit = self.family.in_unit(np.asarray(values, np.float64), self.centre, self.scale)
        tables = content_tables(self.family, self.natural, columns, self.scale)
        _all_log_densities(tables, in_unit, out, np.empty(columns))
        return out + self.family.log_base_in(in_unit, self.scale)[:, None]
