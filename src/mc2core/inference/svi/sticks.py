"""Truncated stick-breaking weights under independent Beta variables (the variational posteriors of UAI16).

Weights of n atoms are beta_i = v_i prod_{l<i} (1 - v_l) with v_n = 1, so n - 1 sticks say all. A posterior is one array
``sticks`` (2, ..., n - 1), float64 > 0: ``sticks[0]`` and ``sticks[1]`` are the two parameters of each Beta.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma


def stick_posterior(counts: np.ndarray, concentration: float) -> np.ndarray:
    """(2, ..., n - 1): Beta(1 + counts_i, concentration + sum_{l>i} counts_l) given (..., n) counts (UAI16, eq. 2)."""
    later = np.flip(np.cumsum(np.flip(counts, -1), -1), -1)[..., 1:]
    return np.stack([1.0 + counts[..., :-1], concentration + later])


def weighed(sticks: np.ndarray, concentration: float, factor: float) -> np.ndarray:
    """The posterior of ``factor`` times the counts that are behind ``sticks``."""
    last = np.maximum(sticks[1, ..., -1:] - concentration, 0.0)
    return stick_posterior(factor * np.concatenate([sticks[0] - 1.0, last], -1), concentration)


def expected_logs(sticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(E ln v, E ln(1 - v)), each (..., n - 1)."""
    total = digamma(sticks.sum(axis=0))
    return digamma(sticks[0]) - total, digamma(sticks[1]) - total


def expected_log_weights(sticks: np.ndarray) -> np.ndarray:
    """(..., n): E ln beta_i."""
    log_v, log_rest = expected_logs(sticks)
    none = np.zeros((*log_v.shape[:-1], 1))
    return np.concatenate([log_v, none], -1) + np.concatenate([none, np.cumsum(log_rest, -1)], -1)


def expected_weights(sticks: np.ndarray) -> np.ndarray:
    """(..., n): E beta_i; the last axis sums to 1."""
    v = sticks[0] / sticks.sum(axis=0)
    one = np.ones((*v.shape[:-1], 1))
    return np.concatenate([v, one], -1) * np.concatenate([one, np.cumprod(1.0 - v, -1)], -1)


def divergence(sticks: np.ndarray, concentration: float, log_concentration: float) -> float:
    """Sum over all sticks of KL(Beta posterior || Beta(1, c)), in nats.

    ``concentration`` is E[c] and ``log_concentration`` E[ln c] where c has a posterior, too (what is returned is
    then E_c of the divergence), else c and ln c.
    """
    log_v, log_rest = expected_logs(sticks)
    log_q = (sticks[0] - 1.0) * log_v + (sticks[1] - 1.0) * log_rest - betaln(sticks[0], sticks[1])
    return float(np.sum(log_q - log_concentration - (concentration - 1.0) * log_rest))
