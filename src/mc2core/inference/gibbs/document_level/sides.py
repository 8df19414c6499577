"""One side of a split or merge of clusters: an estimate of its tau, a proposal around it, and what it weighs.

The formulas are those of :mod:`mc2core.inference.gibbs.document_level.split_merge`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.special import log, log_gamma
from mc2core.compute.variates import log_gamma_variate
from mc2core.families.kernels import add_statistics, log_predictive

ROUGH, FINE = 2, 6  # passes of an estimate of tau: for proposals, and for ratios
LEAST = 1e-300


class Constants(NamedTuple):
    """What the moves do not change."""

    alpha: float
    v: float
    omega: float
    topics: np.ndarray  # (M + 1,) float64: v eps_m, the rest last
    slack: float  # of the first decision


class Work(NamedTuple):
    """Two sides of a split, and the union."""

    members: np.ndarray  # (J,) int64
    side: np.ndarray  # (J,) int8, of each member
    g: np.ndarray  # (3, M + 1) float64
    shape: np.ndarray  # (3, M + 1) float64: e
    tau: np.ndarray  # (3, M + 1) float64
    base: np.ndarray  # (3, M + 1) float64: ln G(omega tau)
    u: np.ndarray  # (M + 1,) float64: expected tables
    natural: np.ndarray  # (2, D) float64
    totals: np.ndarray  # (2, C) float64
    weights: np.ndarray  # (slots,) float64, of the clusters to merge with


@numba.njit(inline="always")
def copy(source, target):
    """Copy one array into another."""
    # a loop: an assignment of arrays makes numba compile the text of its error, which takes seconds
    for i in range(target.size):
        target[i] = source[i]


@kernel(error_model="numpy", fastmath={"contract"})
def log_gammas(x, scale, out):
    """out = ln G(scale x); arguments below LEAST count as that."""
    for m in range(out.size):
        out[m] = log_gamma(max(scale * x[m], LEAST))


@kernel(error_model="numpy")
def estimate(members, n, side, which, counts, constants, n_passes, g, u):
    """Estimate tau of one side from epsilon on, in place: g = (v eps + u) / (v + u.), u tables expected at omega g."""
    start, topic, count = counts
    v, omega, topics = constants.v, constants.omega, constants.topics
    for m in range(g.size):
        g[m] = max(topics[m] / v, LEAST)
    for _ in range(n_passes):
        u[:] = 0.0
        for i in range(n):
            if side[i] != which:
                continue
            for c in range(start[members[i]], start[members[i] + 1]):
                m, n_jm = topic[c], count[c]
                u[m] += 1.0
                if n_jm > 1:
                    a = omega * g[m]
                    u[m] += a * log((a + n_jm - 0.5) / (a + 0.5))
        total = v
        for m in range(g.size):
            total += u[m]
        for m in range(g.size):
            g[m] = max((topics[m] + u[m]) / total, LEAST)


@numba.njit(inline="always")
def log_document(j, counts, omega, g, base):
    """sum over topics of ln G(omega g_m + n_jm) / G(omega g_m), the last from ``base``."""
    start, topic, count = counts
    result = 0.0
    for c in range(start[j], start[j + 1]):
        m = topic[c]
        a = max(omega * g[m], LEAST)
        result += log(a) if count[c] == 1 else log_gamma(a + count[c]) - base[m]
    return result


@kernel(error_model="numpy")
def _find_shapes(members, n, side, which, counts, constants, g, shape):
    """e of one side, in place: v eps_m + sum over its documents of (expected - variance of tables)."""
    start, topic, count = counts
    copy(constants.topics, shape)
    for i in range(n):
        if side[i] == which:
            for c in range(start[members[i]], start[members[i] + 1]):
                m, n_jm = topic[c], count[c]
                shape[m] += 1.0
                if n_jm > 1:
                    a = constants.omega * g[m]
                    shape[m] += a * a * (1.0 / (a + 0.5) - 1.0 / (a + n_jm - 0.5))


@kernel(error_model="numpy")
def log_at(members, n, side, which, counts, constants, g, shape, tau, base):
    """What of ln R_k depends on tau: prior over proposal density, and the documents of one side."""
    topics, total, scaled, result = constants.topics, 0.0, 0.0, 0.0
    for m in range(tau.size):
        total += shape[m]
        scaled += shape[m] / g[m] * tau[m]
        if shape[m] != topics[m]:
            result += (topics[m] - shape[m]) * log(tau[m])
    result += total * log(scaled)
    log_gammas(tau, constants.omega, base)
    for i in range(n):
        if side[i] == which:
            result += log_document(members[i], counts, constants.omega, tau, base)
    return result


@kernel(error_model="numpy")
def evaluate(members, n, side, which, counts, constants, contexts, work, row):
    """(what of ln R_k does not depend on tau, ln R_k at g) of one side; leaves g and e in ``row`` of the work."""
    indptr, indices, values, offsets, codes, prior, prior_totals = contexts
    g, shape, topics = work.g[row], work.shape[row], constants.topics
    estimate(members, n, side, which, counts, constants, FINE, g, work.u)
    _find_shapes(members, n, side, which, counts, constants, g, shape)
    natural, totals = work.natural[0], work.totals[0]
    copy(prior, natural)
    copy(prior_totals, totals)
    size, result = 0, log(constants.alpha)
    for i in range(n):
        if side[i] == which:
            size += 1
            if codes.size > 0:
                result += log_predictive(indptr, indices, values, members[i], natural, totals, offsets, codes)
                add_statistics(indptr, indices, values, members[i], 1.0, natural, totals, offsets)
    result += log_gamma(np.float64(size)) + log_gamma(constants.v)
    total = 0.0
    for m in range(g.size):
        total += shape[m]
        result -= shape[m] * log(shape[m] / g[m])
        if shape[m] != topics[m]:
            result += log_gamma(shape[m]) - log_gamma(topics[m])
    result -= log_gamma(total)
    return result, result + log_at(members, n, side, which, counts, constants, g, shape, g, work.base[row])


@kernel(error_model="numpy")
def draw_tau(stream, g, shape, tau):
    """Gammas of these shapes and means over their sum, in place."""
    top, total = -np.inf, 0.0
    for m in range(tau.size):
        tau[m] = log_gamma_variate(stream, max(shape[m], LEAST)) + math.log(g[m] / shape[m])
        top = max(top, tau[m])
    for m in range(tau.size):
        tau[m] = math.exp(tau[m] - top)
        total += tau[m]
    for m in range(tau.size):
        tau[m] = max(tau[m] / total, LEAST)
