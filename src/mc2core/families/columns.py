"""Compiled posterior predictives of a document's contexts under all clusters at once.

The natural parameters of the clusters are stored column by column, (D, slots), so that loops over clusters compile to
vector code. Ratios of gamma functions for small counts are computed as products. Their logarithm is taken when the next
factor might overflow a float64. Contexts without such a loop use :func:`mc2core.families.kernels.log_predictive`, and
complete vectors use :mod:`mc2core.families.vectors`.
"""

from __future__ import annotations

import math

import numba

from mc2core.compute.kernels import inner_kernel
from mc2core.compute.special import log, log_gamma
from mc2core.families.kernels import (
    BETA_BERNOULLI,
    DIRICHLET,
    GAMMA_POISSON,
    LAST_DIGIT,
    MIN_SHAPE,
    NORMAL_GAMMA,
    SKIPPED,
    log_predictive,
    log_rising,
)

_FEW = 64.0  # largest count for which a ratio of gamma functions is computed as a product
# number of natural parameters, each between 1e-10 and 2**64, whose product fits into a float64 (half for ratios)
_FACTORS = 15


@inner_kernel
def add_to_column(contexts, j, sign, natural, totals, k):
    """Add document j's statistics to column k of natural (D, slots) and totals (C, slots), or subtract (sign -1.0).

    If no other document of the cluster has a value of a Dirichlet context, its count is set to the prior exactly.
    """
    indices, values, offsets, prior, vectors = (
        contexts.indices, contexts.values, contexts.offsets, contexts.natural, contexts.vectors
    )  # fmt: skip
    c = 0
    for position in range(contexts.indptr[j], contexts.indptr[j + 1]):
        d = indices[position]
        while d >= offsets[c + 1]:
            c += 1
        new = natural[d, k] + sign * values[position]
        if sign < 0.0 and vectors.codes[c] == DIRICHLET and new < prior[d] + 0.5 * vectors.strength[c]:
            new = prior[d]
        natural[d, k] = new
        total = totals[c, k] + sign * values[position]
        totals[c, k] = max(total, contexts.totals[c]) if vectors.codes[c] == DIRICHLET else total


@inner_kernel
def empty_column(contexts, natural, totals, k):
    """Set column k, whose cluster is empty, to the prior. For Dirichlets, only the totals can still differ from it."""
    for c in range(contexts.totals.size):
        totals[c, k] = contexts.totals[c]
        if contexts.vectors.codes[c] != DIRICHLET:
            for d in range(contexts.offsets[c], contexts.offsets[c + 1]):
                natural[d, k] = contexts.natural[d]


@inner_kernel(fastmath={"contract"})
def _multiply(a, more, n_slots, product):
    for k in range(n_slots):
        product[k] *= a[k] + more


@inner_kernel(fastmath={"contract"})
def _multiply_share(a, b, least, n_slots, product):
    for k in range(n_slots):
        part = max(a[k], least)
        product[k] *= part / (part + b[k])


@inner_kernel(fastmath={"contract"})
def _take_logs(sign, n_slots, product, weight):
    for k in range(n_slots):
        weight[k] += sign * log(product[k])
        product[k] = 1.0


@inner_kernel
def _add_rising(a, n, sign, used, n_slots, product, weight):
    """Add sign (ln G(a[k] + n) - ln G(a[k])) to weight[k]; return the number of factors still in ``product``.

    ``product`` contains factors whose logarithm is not yet added; ``used`` is their number before the call.
    """
    if n > _FEW or n != math.floor(n):
        for k in range(n_slots):
            weight[k] += sign * log_rising(a[k], n)
        return used
    for i in range(int(n)):
        if used == _FACTORS:
            _take_logs(sign, n_slots, product, weight)
            used = 0
        _multiply(a, float(i), n_slots, product)
        used += 1
    return used


@inner_kernel(fastmath={"contract"})
def _add_number(kappa_mu, kappa, a, rest, x, s, more_a, more_rest, n_slots, weight):
    for k in range(n_slots):
        b = max(rest[k] - 0.5 * kappa_mu[k] * kappa_mu[k] / kappa[k], LAST_DIGIT * rest[k])
        kappa_mu_new, kappa_new, rest_new = kappa_mu[k] + x, kappa[k] + s, rest[k] + more_rest
        b_new = max(rest_new - 0.5 * kappa_mu_new * kappa_mu_new / kappa_new, LAST_DIGIT * rest_new)
        rising = log_gamma(a[k] + more_a) - log_gamma(a[k])
        weight[k] += rising - (a[k] + more_a) * log(b_new) + a[k] * log(b) - 0.5 * log(kappa_new / kappa[k])


@inner_kernel(fastmath={"contract"})
def _add_poisson(a, b, n, s, n_slots, weight):
    for k in range(n_slots):
        shape = max(a[k], MIN_SHAPE)
        weight[k] += log_gamma(shape + n) - log_gamma(shape) - (shape + n) * log(b[k] + s) + shape * log(b[k])


@numba.njit(inline="always")
def add_predictives(contexts, j, natural, totals, n_slots, product, row, weight):
    """weight[k] += log predictive of document j's contexts, except complete vectors, under cluster k < n_slots.

    Parameters
    ----------
    contexts : Contexts
        Contexts of :mod:`mc2core.inference.gibbs.documents`.
    j : int
        Document.
    natural : (D, slots) float64
        Natural parameters of the clusters.
    totals : (C, slots) float64
        Sums of ``natural`` over each context's columns.
    product : (slots,) float64
        Scratch, ones between uses.
    row : (D,) float64
        Scratch.
    weight : (slots,) float64
        Log weights of the clusters; updated in place.
    """
    indices, values, offsets, prior, vectors = (
        contexts.indices, contexts.values, contexts.offsets, contexts.natural, contexts.vectors
    )  # fmt: skip
    position, last = contexts.indptr[j], contexts.indptr[j + 1]
    for c in range(vectors.codes.size):
        start, code = position, vectors.codes[c]
        while position < last and indices[position] < offsets[c + 1]:
            position += 1
        if position == start or vectors.slow_codes[c] != SKIPPED:
            continue
        used = 0
        if code == DIRICHLET:
            size = 0.0
            for p in range(start, position):
                used = _add_rising(natural[indices[p]], values[p], 1.0, used, n_slots, product, weight)
                size += values[p]
            _take_logs(1.0, n_slots, product, weight)
            _add_rising(totals[c], size, -1.0, 0, n_slots, product, weight)
            _take_logs(-1.0, n_slots, product, weight)
        elif code == NORMAL_GAMMA:
            d = indices[start]
            _add_number(
                natural[d], natural[d + 1], natural[d + 2], natural[d + 3], values[start], values[start + 1],
                values[start + 2], values[start + 3], n_slots, weight,
            )  # fmt: skip
        elif code == GAMMA_POISSON:
            for p in range(start, position, 2):
                d = indices[p]
                _add_poisson(natural[d], natural[d + 1], values[p], values[p + 1], n_slots, weight)
        elif code == BETA_BERNOULLI:
            for p in range(start, position, 2):
                d = indices[p]
                if values[p] + values[p + 1] == 1.0 and values[p] * values[p + 1] == 0.0:
                    a, b = (d, d + 1) if values[p] == 1.0 else (d + 1, d)
                    if used == _FACTORS // 2:
                        _take_logs(1.0, n_slots, product, weight)
                        used = 0
                    _multiply_share(natural[a], natural[b], prior[a], n_slots, product)
                    used += 1
                else:
                    for k in range(n_slots):
                        a_k, b_k = natural[d, k], natural[d + 1, k]
                        weight[k] += log_rising(a_k, values[p]) + log_rising(b_k, values[p + 1])
                        weight[k] -= log_rising(a_k + b_k, values[p] + values[p + 1])
            _take_logs(1.0, n_slots, product, weight)
    if vectors.n_slow > 0:
        for k in range(n_slots):
            if weight[k] > -math.inf:
                for c in range(vectors.codes.size):
                    if vectors.slow_codes[c] != SKIPPED:
                        for d in range(offsets[c], offsets[c + 1]):
                            row[d] = natural[d, k]
                weight[k] += log_predictive(
                    contexts.indptr, indices, values, j, row, contexts.totals, offsets, vectors.slow_codes
                )
