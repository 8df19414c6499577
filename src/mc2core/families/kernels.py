"""Compiled posterior predictives of the families, for engines that visit documents one by one.

The same values follow from ``Family.log_normaliser`` as A(eta + T) - A(eta); tests/mc2core/families/test_families.py
compares both.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.families.factors import factorise, squared_distance

#: codes of the families for which :func:`log_predictive` has a branch
CODES = DIRICHLET, NORMAL_GAMMA, GAMMA_POISSON, BETA_BERNOULLI, GAUSS_WISHART = range(5)
#: code of a context that :func:`log_predictive` skips, because another function computes its predictive
SKIPPED = -1
_SMALL_COUNT = 16.0
_LARGE = 1e8
LAST_DIGIT = 2.0**-53
MIN_SHAPE = 1e-300
_LEAST, _MOST = 1e-100, 1e100  # products of numbers up to about 1e150 stay within float64


@numba.njit(inline="always")
def log_rising(a, n):
    """Return ln G(a + n) - ln G(a) for a > 0 and n >= 0 in float64."""
    if n <= _SMALL_COUNT and n == math.floor(n):
        # a product of few factors is cheaper than two lgamma values and has no cancellation
        product = 1.0
        for i in range(int(n)):
            product *= a + i
        if product > 0.0 and product < 1e300:
            return math.log(product)
    if a > _LARGE:
        # difference of two Stirling formulas, because the difference of two lgamma values would cancel all digits
        return n * math.log(a) + (a + n - 0.5) * math.log1p(n / a) - n
    return math.lgamma(a + n) - math.lgamma(a)


@inner_kernel
def _dirichlet(indices, values, start, end, natural, total):
    result = 0.0
    size = 0.0
    for position in range(start, end):
        result += log_rising(natural[indices[position]], values[position])
        size += values[position]
    return result - log_rising(total, size)


@inner_kernel
def _normal_gamma(indices, values, start, end, natural):
    """Return the log predictive density of a number, without the base measure."""
    first = indices[start]
    kappa_mu, kappa, a, rest = natural[first], natural[first + 1], natural[first + 2], natural[first + 3]
    b = max(rest - 0.5 * kappa_mu * kappa_mu / kappa, LAST_DIGIT * rest)
    kappa_mu_new = kappa_mu + values[start]
    kappa_new = kappa + values[start + 1]
    a_new = a + values[start + 2]
    rest_new = rest + values[start + 3]
    b_new = max(rest_new - 0.5 * kappa_mu_new * kappa_mu_new / kappa_new, LAST_DIGIT * rest_new)
    rising = math.lgamma(a_new) - math.lgamma(a)
    return rising - a_new * math.log(b_new) + a * math.log(b) - 0.5 * math.log(kappa_new / kappa)


@inner_kernel
def _normal_gammas(indices, values, start, end, natural):
    """Return the log predictive density of a vector, without the base measure; each coordinate has four columns.

    Logarithms are taken of products over consecutive coordinates with equal kappa and a. Without missing coordinates,
    these are all coordinates.
    """
    result, log_b, log_b_new, product, product_new = 0.0, 0.0, 0.0, 1.0, 1.0
    kappa, a, kappa_new, a_new, inverse, inverse_new = 1.0, 1.0, 1.0, 1.0, 0.5, 0.5
    n = 0
    for position in range(start, end, 4):
        first = indices[position]
        if natural[first + 1] != kappa or natural[first + 2] != a:
            if n > 0:
                rising = math.lgamma(a_new) - math.lgamma(a) - 0.5 * math.log(kappa_new / kappa)
                result += n * rising - a_new * (log_b_new + math.log(product_new)) + a * (log_b + math.log(product))
            log_b, log_b_new, product, product_new, n = 0.0, 0.0, 1.0, 1.0, 0
            kappa, a = natural[first + 1], natural[first + 2]
        if n == 0:
            kappa_new, a_new = kappa + values[position + 1], a + values[position + 2]
            inverse, inverse_new = 0.5 / kappa, 0.5 / kappa_new
        kappa_mu, rest = natural[first], natural[first + 3]
        kappa_mu_new, rest_new = kappa_mu + values[position], rest + values[position + 3]
        product *= max(rest - kappa_mu * kappa_mu * inverse, LAST_DIGIT * rest)
        product_new *= max(rest_new - kappa_mu_new * kappa_mu_new * inverse_new, LAST_DIGIT * rest_new)
        if not (_LEAST < product < _MOST and _LEAST < product_new < _MOST):
            log_b += math.log(product)
            log_b_new += math.log(product_new)
            product, product_new = 1.0, 1.0
        n += 1
    rising = math.lgamma(a_new) - math.lgamma(a) - 0.5 * math.log(kappa_new / kappa)
    return result + n * rising - a_new * (log_b_new + math.log(product_new)) + a * (log_b + math.log(product))


@inner_kernel
def _gamma_poisson(indices, values, start, end, natural):
    """Return the log predictive density of a vector of counts; each coordinate has two columns."""
    result = 0.0
    for position in range(start, end, 2):
        first = indices[position]
        # after adding and removing a large count, a small a0 may be lost by rounding
        a, b = max(natural[first], MIN_SHAPE), natural[first + 1]
        a_new, b_new = a + values[position], b + values[position + 1]
        result += math.lgamma(a_new) - math.lgamma(a) - a_new * math.log(b_new) + a * math.log(b)
    return result


@inner_kernel
def _beta_bernoulli(indices, values, start, end, natural):
    """Return the log predictive density of a vector of zeros and ones; each coordinate has two columns."""
    result = 0.0
    for position in range(start, end, 2):
        first = indices[position]
        a, b, more_a, more_b = natural[first], natural[first + 1], values[position], values[position + 1]
        result += log_rising(a, more_a) + log_rising(b, more_b) - log_rising(a + b, more_a + more_b)
    return result


@inner_kernel
def _gauss_wishart(values, start, end, natural, first):
    """Return the log predictive density of a vector with full covariance.

    The columns of the vector are x, 1, 1 and x x', multiplied by the strength.
    """
    dimension = int(math.sqrt(4.0 * (end - start) - 7.0)) // 2
    strength, kappa = values[start + dimension], natural[first + dimension]
    freedom = natural[first + dimension + 1] + dimension
    if strength == 0.0:
        return 0.0
    sums, scatter = natural[first : first + dimension], natural[first + dimension + 2 : first + end - start]
    factor, v = np.empty((dimension, dimension)), np.zeros(dimension)
    factorise(kappa, sums, scatter.reshape(dimension, dimension), v, 0.0, factor)
    result, log_det = 0.5 * strength * dimension * math.log(2.0), 0.0
    for d in range(dimension):
        v[d] = values[start + d] / strength - sums[d] / kappa
        log_det += 2.0 * math.log(factor[d, d])
        result += math.lgamma(0.5 * (freedom + strength - d)) - math.lgamma(0.5 * (freedom - d))
    more = math.log1p(kappa * strength / (kappa + strength) * squared_distance(factor, v))
    result -= 0.5 * (strength * log_det + (freedom + strength) * more)
    return result - 0.5 * dimension * math.log1p(strength / kappa)


@kernel
def log_predictive(indptr, indices, values, j, natural, totals, offsets, codes):
    """Return the log posterior predictive of document j's contexts under one cluster, without the base measure.

    Parameters
    ----------
    indptr, indices, values : int64, int64 and float64 arrays
        CSR matrix (J, D) of the stacked statistics, multiplied by the strengths, with sorted indices.
    j : int
        Document.
    natural : (D,) float64
        Natural parameters of the cluster without document j.
    totals : (C,) float64
        Sums of ``natural`` over each context's columns.
    offsets : (C + 1,) int64
        First column of each context.
    codes : (C,) int64
        Code of each context, one of CODES or SKIPPED.

    Notes
    -----
    The result equals ``sum_c A_c(natural_c + T_jc) - A_c(natural_c)``. A missing context adds 0.
    """
    result = 0.0
    position = indptr[j]
    last = indptr[j + 1]
    for c in range(len(codes)):
        start = position
        if c == len(codes) - 1:
            position = last
        while position < last and indices[position] < offsets[c + 1]:
            position += 1
        if position > start:
            if codes[c] == DIRICHLET:
                result += _dirichlet(indices, values, start, position, natural, totals[c])
            elif codes[c] == NORMAL_GAMMA and position == start + 4:
                result += _normal_gamma(indices, values, start, position, natural)
            elif codes[c] == NORMAL_GAMMA:
                result += _normal_gammas(indices, values, start, position, natural)
            elif codes[c] == GAMMA_POISSON:
                result += _gamma_poisson(indices, values, start, position, natural)
            elif codes[c] == BETA_BERNOULLI:
                result += _beta_bernoulli(indices, values, start, position, natural)
            elif codes[c] == GAUSS_WISHART:
                result += _gauss_wishart(values, start, position, natural, offsets[c])
    return result


@kernel
def log_predictive_all(indptr, indices, values, natural, totals, offsets, codes, out):
    """Fill (J, K) ``out`` with :func:`log_predictive` of every document under every cluster."""
    for j in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[j, k] = log_predictive(indptr, indices, values, j, natural[k], totals[k], offsets, codes)


@inner_kernel
def add_statistics(indptr, indices, values, j, sign, natural, totals, offsets):
    """Add document j's statistics to ``natural`` (D,) and ``totals`` (C,) in place (sign 1.0), or subtract (-1.0)."""
    c = 0
    for position in range(indptr[j], indptr[j + 1]):
        while indices[position] >= offsets[c + 1]:
            c += 1
        natural[indices[position]] += sign * values[position]
        totals[c] += sign * values[position]


@kernel
def sum_statistics(indptr, indices, values, cluster, natural):
    """Add each document's statistics to its cluster's row of ``natural`` (K, D); skip documents with cluster -1."""
    for j in range(cluster.size):
        if cluster[j] >= 0:
            row = natural[cluster[j]]
            for position in range(indptr[j], indptr[j + 1]):
                row[indices[position]] += values[position]
