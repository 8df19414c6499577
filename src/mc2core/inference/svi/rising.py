"""Logarithms of rising factorials, and expected numbers of tables, for counts that need not be integers."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.compute.kernels import inner_kernel
from mc2core.compute.special import digamma, log_gamma

# for larger arguments, differences of log-gamma functions are computed by their asymptotic series
_LARGE = 1e4


@inner_kernel
def log_rising_factorial(a, n):
    """Return ln G(a + n) - ln G(a) for a > 0, n >= 0."""
    if a < _LARGE:
        return log_gamma(a + n) - log_gamma(a)
    series = 1.0 / (12.0 * (a + n)) - 1.0 / (12.0 * a)
    return (a - 0.5) * np.log1p(n / a) + n * (np.log(a + n) - 1.0) + series


@inner_kernel
def expected_tables(a, n):
    """Return a (digamma(a + n) - digamma(a)), the derivative of :func:`log_rising_factorial` with respect to ln a."""
    if a < _LARGE:
        return a * (digamma(a + n) - digamma(a))
    b = a + n
    return a * np.log1p(n / a) + 0.5 * n / b - (a / (b * b) - 1.0 / a) / 12.0


@inner_kernel
def tetragamma(x):
    """Return the second derivative of digamma for x >= 1, from the recurrence up to x + 6 and the asymptotic series."""
    total = 0.0
    for i in range(6):
        total += 2.0 / ((x + i) * (x + i) * (x + i))
    r = 1.0 / (x + 6.0)
    z = r * r
    return -total - z * (1.0 + r + z * (0.5 - z * (1.0 / 6.0 - z / 6.0)))


@inner_kernel
def uncertain_tables(a, n, square):
    """Return E[a (digamma(a + N) - digamma(a))] for a random integer N with mean ``n`` and variance n - ``square``.

    P(N = 0) is taken from a binomial distribution with this mean and variance. For N > 0, the expectation is
    approximated to second order around the mean (Teh, Kurihara and Welling 2008).
    """
    p = min(square / n, 1.0 - 1e-12)
    log_none = n * (np.log1p(-p) / p if p > 1e-9 else -1.0)
    seen = -np.expm1(log_none)
    mean = max(n / seen, 1.0)
    variance = max((n - square) / seen - np.exp(log_none) * mean * mean, 0.0)
    return seen * (expected_tables(a, mean) + 0.5 * a * tetragamma(a + mean) * variance)


def tables_of_lengths(lengths: np.ndarray, omega: float) -> np.ndarray:
    """Return omega (digamma(omega + N_j) - digamma(omega)), the expected tables of documents with N_j tokens."""
    return omega * (array_digamma(omega + lengths) - array_digamma(omega))


def log_rising(prior: np.ndarray | float, n: np.ndarray) -> np.ndarray:
    """Return ln G(prior + n) - ln G(prior)."""
    return np.asarray(gammaln(prior + n) - gammaln(prior))
