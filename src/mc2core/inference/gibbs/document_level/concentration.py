"""omega, the concentration of documents' proportions, given z, l and tau with theta and its tables summed out."""

from __future__ import annotations

import math

import numpy as np

from mc2core.base.checks import LEAST_PRIOR, MOST_PRIOR
from mc2core.compute.kernels import kernel
from mc2core.compute.special import log, log_gamma
from mc2core.inference.gibbs.document_level.counts import TopicCounts
from mc2core.inference.gibbs.weights import GammaPrior

_LEAST = 1e-300
_FEW = 16  # tokens up to which a ratio of gamma functions is a product: exact for any omega
_WIDTH = 0.1  # of the slice sampler's first interval, in ln omega
_MOST_STEPS = 200


@kernel(error_model="numpy")
def log_rising(a, n):
    """ln of a (a + 1) ... (a + n - 1)."""
    if n > _FEW:
        return log_gamma(a + n) - log_gamma(a)
    result = 0.0
    for i in range(n):
        result += log(a + i)
    return result


@kernel(error_model="numpy")
def _log_documents(lengths, cluster, start, topic, count, tau, omega):
    result = 0.0
    for j in range(cluster.size):
        result -= log_rising(omega, lengths[j])
        for c in range(start[j], start[j + 1]):
            result += log_rising(max(omega * tau[cluster[j], topic[c]], _LEAST), count[c])
    return result


def log_documents(
    lengths: np.ndarray, cluster: np.ndarray, counts: TopicCounts, tau: np.ndarray, omega: float
) -> float:
    """ln p(l | z, tau, omega), theta summed out: a Dirichlet-multinomial for each document, in the sequence form.

    Parameters
    ----------
    lengths : (J,) int64, tokens
    cluster : (J,) int32
    counts : n_jm
    tau : (K, M + 1) float64
    """
    return float(_log_documents(lengths, cluster, *counts, tau, omega))


def draw_omega(
    lengths: np.ndarray,
    cluster: np.ndarray,
    counts: TopicCounts,
    tau: np.ndarray,
    omega: float,
    prior: GammaPrior,
    rng: np.random.Generator,
) -> float:
    """One step of a slice sampler (Neal 2003) in ln omega; tables would hold omega where it is.

    Returns the nearest value that settings may hold.
    """

    def log_density(x: float) -> float:
        value = math.exp(x)
        return prior.shape * x - prior.rate * value + log_documents(lengths, cluster, counts, tau, value)

    x = math.log(omega)
    level = log_density(x) + math.log1p(-rng.random())
    low = x - _WIDTH * rng.random()
    high = low + _WIDTH
    # steps to the left and to the right share a budget, so that no density makes them endless
    left = int(rng.random() * _MOST_STEPS)
    right = _MOST_STEPS - 1 - left
    while left > 0 and log_density(low) > level:
        low, left = low - _WIDTH, left - 1
    while right > 0 and log_density(high) > level:
        high, right = high + _WIDTH, right - 1
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new) > level or new == x:
            return min(max(math.exp(new), LEAST_PRIOR), MOST_PRIOR)
        low, high = (new, high) if new < x else (low, new)
