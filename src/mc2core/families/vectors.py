"""Compiled posterior predictives of vectors under all clusters at once, for :class:`DiagonalNormalGamma`.

A document of strength s adds s to kappa and s / 2 to a of each of the D coordinates. If every document has all or none
of the coordinates, the coordinates of a cluster share kappa and a. The log predictive of x is then

    D (ln G(a') - ln G(a) - ln(kappa' / kappa) / 2) - (a' - a) sum_d ln b_d - a' ln prod_d (1 + ((x_d - mu_d) r_d)**2)

with kappa' = kappa + s, a' = a + s / 2 and r_d**2 = s kappa / (2 kappa' b_d). mu, r and the other terms are stored for
each cluster until the cluster changes. A document then needs three operations per coordinate and cluster, in loops over
clusters that compile to vector code, and few logarithms. Vectors with some missing coordinates use
:func:`mc2core.families.kernels.log_predictive`.

Each factor of the product is below 2**110, because values are within sqrt(2**53 b0) of 0, b is at least 2**-53 b0 and s
is at most 1. A product of eight factors therefore does not overflow a float64.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import inner_kernel
from mc2core.compute.records import record
from mc2core.compute.special import log, log_gamma
from mc2core.families.kernels import BETA_BERNOULLI, DIRICHLET, GAMMA_POISSON, LAST_DIGIT, NORMAL_GAMMA, SKIPPED
from mc2core.families.stacked import StackedContexts

_FACTORS = 8  # number of factors that are multiplied before a logarithm is taken
_MOST = 1e100  # bound of a product that allows another factor without overflow


@record
class Vectors(NamedTuple):
    """Description of the contexts, of which "vector contexts" are complete or missing in each document."""

    row: np.ndarray  # (C,) int64: first row of a vector context in the arrays of VectorClusters, -1 for other contexts
    strength: np.ndarray  # (C,) float64: strength of each context
    codes: np.ndarray  # (C,) int64: code of each context, SKIPPED for vector contexts
    n_others: int  # number of contexts that are not vector contexts
    slow_codes: np.ndarray  # (C,) int64: codes of contexts that columns.py passes to log_predictive, else SKIPPED
    n_slow: int  # number of contexts that columns.py passes to log_predictive

    @classmethod
    def from_contexts(cls, contexts: StackedContexts) -> Vectors:
        """Describe the contexts of a corpus."""
        is_vector = contexts.are_whole_vectors
        lengths = np.where(is_vector, np.diff(contexts.offsets) // 4, 0)
        row = np.where(is_vector, np.cumsum(lengths) - lengths, -1)
        strength = np.array([family.strength for family in contexts.families], np.float64)
        codes = np.where(is_vector, SKIPPED, contexts.codes)
        is_number = (codes == NORMAL_GAMMA) & (np.diff(contexts.offsets) == 4)
        has_loop = is_number | np.isin(codes, (DIRICHLET, GAMMA_POISSON, BETA_BERNOULLI))
        slow_codes = np.where(has_loop, SKIPPED, codes)
        return cls(row, strength, codes, int((~is_vector).sum()), slow_codes, int((slow_codes != SKIPPED).sum()))

    def clusters(self, offsets: np.ndarray, n_slots: int) -> VectorClusters:
        """Return the arrays for ``n_slots`` clusters."""
        n_rows = int((np.diff(offsets)[self.row >= 0] // 4).sum())
        mean, scale = np.empty((2, n_rows, n_slots))
        power, constant = np.empty((2, len(self.row), n_slots))
        return VectorClusters(mean, scale, power, constant, np.ones(n_slots), np.zeros(n_slots))


@record
class VectorClusters(NamedTuple):
    """Terms of the predictive densities of clusters, one column per cluster, and scratch arrays."""

    mean: np.ndarray  # (rows, slots) float64: mu
    scale: np.ndarray  # (rows, slots) float64: r
    power: np.ndarray  # (C, slots) float64: a'
    constant: np.ndarray  # (C, slots) float64: terms that do not depend on x
    product: np.ndarray  # (slots,) float64: scratch, ones between uses
    log_product: np.ndarray  # (slots,) float64: scratch, zeros between uses


@inner_kernel
def describe_cluster(k, natural, vectors, offsets, clusters):
    """Compute column k of ``clusters`` from the natural parameters (D,) of the cluster."""
    mean, scale = clusters.mean, clusters.scale
    for c in range(vectors.row.size):
        row, s, first = vectors.row[c], vectors.strength[c], offsets[c]
        if row < 0:
            continue
        n = (offsets[c + 1] - first) // 4
        kappa, a = natural[first + 1], natural[first + 2]
        kappa_new, a_new = kappa + s, a + 0.5 * s
        inverse, ratio = 1.0 / kappa, 0.5 * s * kappa / kappa_new
        log_b, product = 0.0, 1.0
        for d in range(n):
            kappa_mu, rest = natural[first + 4 * d], natural[first + 4 * d + 3]
            mu = kappa_mu * inverse
            b = max(rest - 0.5 * kappa_mu * mu, LAST_DIGIT * rest)
            mean[row + d, k], scale[row + d, k] = mu, math.sqrt(ratio / b)
            log_b, product = _multiplied(log_b, product, b)
        log_b += math.log(product)
        rising = log_gamma(a_new) - log_gamma(a) - 0.5 * math.log(kappa_new / kappa)
        clusters.constant[c, k] = n * rising - (a_new - a) * log_b
        clusters.power[c, k] = a_new


@inner_kernel
def _multiplied(log_product, product, factor):
    """Multiply the number exp(log_product) * product by a factor; return the new (log_product, product)."""
    product *= factor
    if not 1.0 / _MOST < product < _MOST:
        return log_product + math.log(product), 1.0
    return log_product, product


@inner_kernel(fastmath={"contract"})
def _multiply(x, mean, scale, n_slots, product):
    for k in range(n_slots):
        z = (x - mean[k]) * scale[k]
        product[k] *= 1.0 + z * z


@inner_kernel(fastmath={"contract"})
def _take_logs(n_slots, product, log_product):
    for k in range(n_slots):
        log_product[k] += log(product[k])
        product[k] = 1.0


@inner_kernel(fastmath={"contract"})
def _add(power, constant, n_slots, log_product, weight):
    for k in range(n_slots):
        weight[k] += constant[k] - power[k] * log_product[k]
        log_product[k] = 0.0


@inner_kernel
def add_log_predictives(indptr, indices, values, j, vectors, offsets, clusters, n_slots, weight):
    """weight[k] += log predictive of document j's vectors under cluster k < n_slots, without the base measure."""
    mean, scale, product, log_product = clusters.mean, clusters.scale, clusters.product, clusters.log_product
    position, last = indptr[j], indptr[j + 1]
    for c in range(vectors.row.size):
        row, end = vectors.row[c], offsets[c + 1]
        if row < 0:
            while position < last and indices[position] < end:
                position += 1
            continue
        if position == last or indices[position] >= end:
            continue  # document j has no such vector
        n, inverse = (end - offsets[c]) // 4, 1.0 / vectors.strength[c]
        for d in range(n):
            if d > 0 and d % _FACTORS == 0:
                _take_logs(n_slots, product, log_product)
            _multiply(values[position + 4 * d] * inverse, mean[row + d], scale[row + d], n_slots, product)
        _take_logs(n_slots, product, log_product)
        _add(clusters.power[c], clusters.constant[c], n_slots, log_product, weight)
        position += 4 * n
