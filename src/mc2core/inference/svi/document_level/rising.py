"""Tables of documents with proportions of their own: sums over documents, and what tau and omega raise.

With theta_j summed out and n_jkm expected tokens of topic m in document j under cluster k, the bound holds

    sum_jk mu_jk [ln G(omega) - ln G(omega + N_j) + sum_m (ln G(a_km + n_jkm) - ln G(a_km))]

with a_km = omega exp(E ln tau_km).

It is one of the expectation over l and tau: ln G(a + n) is convex in n, and ln G(a + n) - ln G(a) is convex in ln a for
every whole number n (Jensen twice; Teh, Kurihara and Welling 2008). Its derivative by E ln tau_km are expected tables,

    t_km = sum_j mu_jk a_km (digamma(a_km + n_jkm) - digamma(a_km)).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, log_gamma
from mc2core.compute.threads import in_blocks

#: a_km is at least this: logarithms and digamma of it are numbers
LEAST_PRIOR = 1e-100
# from here on differences of log-gamma functions are taken by their series
_LARGE = 1e4
_BLOCK = 64
# shares of clusters below this say nothing
LEAST_SHARE = 1e-12


@kernel(error_model="numpy")
def log_rising(a, n):
    """ln G(a + n) - ln G(a) for a > 0, n >= 0."""
    if a < _LARGE:
        return log_gamma(a + n) - log_gamma(a)
    series = 1.0 / (12.0 * (a + n)) - 1.0 / (12.0 * a)
    return (a - 0.5) * np.log1p(n / a) + n * (np.log(a + n) - 1.0) + series


@kernel(error_model="numpy")
def expected_tables(a, n):
    """a (digamma(a + n) - digamma(a)): its derivative by ln a."""
    if a < _LARGE:
        return a * (digamma(a + n) - digamma(a))
    b = a + n
    return a * np.log1p(n / a) + 0.5 * n / b - (a / (b * b) - 1.0 / a) / 12.0


class Local(NamedTuple):
    """Local posteriors of some documents, C candidate clusters each.

    cluster : (B, C) int32, -1 where a document has fewer
    share : (B, C) float64, mu_jk
    counts : (B, C, M) float64, n_jkm
    lengths : (B,) float64, N_j
    """

    cluster: np.ndarray
    share: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray


@kernel(error_model="numpy")
def sum_rising(cluster, share, counts, prior, first, last):
    """Sum over documents first..last-1 of mu_jk ln G(a_km + n_jkm) - ln G(a_km)."""
    total = 0.0
    for j in range(first, last):
        for i in range(cluster.shape[1]):
            if share[j, i] < LEAST_SHARE:
                continue
            own, one = 0.0, prior[cluster[j, i]]
            for m in range(one.size):
                if counts[j, i, m] > 0.0:
                    own += log_rising(one[m], counts[j, i, m])
            total += share[j, i] * own
    return total


@kernel(error_model="numpy")
def add_tables(cluster, share, counts, prior, first, last, tables):
    """tables[k, m] += mu_jk a (digamma(a + n_jkm) - digamma(a)) over documents first..last-1."""
    for j in range(first, last):
        for i in range(cluster.shape[1]):
            if share[j, i] < LEAST_SHARE:
                continue
            k = cluster[j, i]
            for m in range(prior.shape[1]):
                if counts[j, i, m] > 0.0:
                    tables[k, m] += share[j, i] * expected_tables(prior[k, m], counts[j, i, m])


def log_evidence(local: Local, prior: np.ndarray, omega: float, pool: Executor | None) -> float:
    """The sum above in nats, given (K, M) ``prior`` a."""
    parts = in_blocks(
        pool,
        lambda first, last: sum_rising(local.cluster, local.share, local.counts, prior, first, last),
        len(local.lengths),
        _BLOCK,
    )
    return float(sum(parts) + np.sum(gammaln(omega) - gammaln(omega + local.lengths)))


def tables_of(local: Local, prior: np.ndarray) -> np.ndarray:
    """(K, M) float64: t_km."""
    tables = np.zeros_like(prior)
    add_tables(local.cluster, local.share, local.counts, prior, 0, len(local.lengths), tables)
    return tables


def log_remainder(lengths: np.ndarray, omega: float) -> float:
    """sum_j digamma(omega + N_j) - digamma(omega)."""
    return float(np.sum(array_digamma(omega + lengths) - array_digamma(omega)))


def never_lower(value: Callable[[float], float], now: float, halvings: int = 30) -> float:
    """The first share 1, 1/2, 1/4, ... of a step at which ``value`` is at least ``now``; 0 where there is none."""
    share = 1.0
    for _ in range(halvings):
        if value(share) >= now:
            return share
        share *= 0.5
    return 0.0
