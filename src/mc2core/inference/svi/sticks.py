"""Stick-breaking weights: the weights of n atoms are beta_i = v_i prod_{l<i} (1 - v_l) with v_n = 1.

A posterior is an array (2, ..., n - 1), float64 > 0, with the two parameters of the Beta distribution of each v_i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln
from scipy.special import digamma as array_digamma

from mc2core.base.storage import Stored


def stick_posterior(counts: np.ndarray, concentration: float) -> np.ndarray:
    """Return the stick parameters Beta(1 + counts_i, concentration + sum_{l>i} counts_l) (UAI16, eq. 2).

    If ``counts`` has the shape (..., n), the result has the shape (2, ..., n - 1). Its first axis contains the two
    parameters of each Beta distribution.
    """
    later = np.flip(np.cumsum(np.flip(counts, -1), -1), -1)[..., 1:]
    return np.stack([1.0 + counts[..., :-1], concentration + later])


def stick_counts(sticks: np.ndarray, concentration: float) -> np.ndarray:
    """Return the counts (..., n) from which :func:`stick_posterior` computes ``sticks``.

    If ``sticks`` was computed with another concentration, the last count is inexact, but at least 0.
    """
    last = np.maximum(sticks[1, ..., -1:] - concentration, 0.0)
    return np.concatenate([sticks[0] - 1.0, last], -1)


def expected_log_sticks(sticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (E ln v, E ln(1 - v)), each (..., n - 1)."""
    total = array_digamma(sticks.sum(axis=0))
    return array_digamma(sticks[0]) - total, array_digamma(sticks[1]) - total


def expected_log_weights(sticks: np.ndarray) -> np.ndarray:
    """Return E ln beta_i, (..., n)."""
    log_v, log_remaining = expected_log_sticks(sticks)
    none = np.zeros((*log_v.shape[:-1], 1))
    return np.concatenate([log_v, none], -1) + np.concatenate([none, np.cumsum(log_remaining, -1)], -1)


def expected_weights(sticks: np.ndarray) -> np.ndarray:
    """Return E beta_i, (..., n), which sums to 1 over the last axis."""
    v = sticks[0] / sticks.sum(axis=0)
    one = np.ones((*v.shape[:-1], 1))
    return np.concatenate([v, one], -1) * np.concatenate([one, np.cumprod(1.0 - v, -1)], -1)


def stick_divergence(sticks: np.ndarray, concentration: float, log_concentration: float) -> float:
    """Return the sum over sticks of KL(Beta posterior || Beta(1, c)) in nats, given E[c] and E[ln c]."""
    log_v, log_remaining = expected_log_sticks(sticks)
    log_q = (sticks[0] - 1.0) * log_v + (sticks[1] - 1.0) * log_remaining - betaln(sticks[0], sticks[1])
    return float(np.sum(log_q - log_concentration - (concentration - 1.0) * log_remaining))


class ClusterWeights(NamedTuple):
    """Posterior q(beta) of the cluster weights: stick-breaking, or the Dirichlet distribution of a finite mixture.

    * If ``n_clusters`` is N, then beta ~ Dir(alpha / N, ..., alpha / N), and the parameters ``q`` have shape (1, N).
    * If ``is_truncated`` (UAI16), ``q`` has shape (2, K - 1), and the last cluster has the remaining mass.
    * Otherwise, ``q`` has shape (2, K), and the remaining mass is the weight of all unused clusters.
    """

    n_clusters: int | None
    is_truncated: bool = False

    @property
    def stored(self) -> Stored:
        """Type and shape of ``q`` in a checkpoint."""
        return Stored("f", "2 K-1" if self.is_truncated else "2 K" if self.n_clusters is None else "1 K")

    def posterior(self, n_k: np.ndarray, alpha: float) -> np.ndarray:
        """Return the parameters of q(beta), given the expected number of documents per cluster, (K,)."""
        if self.n_clusters is not None:
            return (alpha / self.n_clusters + n_k)[None]
        return stick_posterior(n_k if self.is_truncated else np.append(n_k, 0.0), alpha)

    def n_k(self, q: np.ndarray, alpha: float) -> np.ndarray:
        """Return the expected number of documents per cluster from which ``q`` was computed, (K,) float64."""
        if self.is_truncated:
            return stick_counts(q, alpha)
        return q[0] - (1.0 if self.n_clusters is None else alpha / self.n_clusters)

    def expected_logs(self, q: np.ndarray) -> np.ndarray:
        """Return E ln beta_k of the existing clusters, (K,) float64."""
        if self.n_clusters is not None:
            return np.asarray(array_digamma(q[0]) - array_digamma(q[0].sum()))
        logs = expected_log_weights(q)
        return logs if self.is_truncated else logs[:-1]

    def expected(self, q: np.ndarray) -> np.ndarray:
        """Return E beta, (n,) float64 with n >= K and sum 1; the weight of unused clusters is last."""
        return expected_weights(q) if self.n_clusters is None else q[0] / q[0].sum()

    def sticks(self, q: np.ndarray) -> np.ndarray:
        """Return the stick parameters that depend on alpha, (2, sticks); empty for a finite mixture."""
        return q if self.n_clusters is None else np.empty((2, 0))

    def divergence(self, q: np.ndarray, alpha: float) -> float:
        """Return KL(q(beta) || Dir(alpha / N, ...)) in nats; 0 for sticks (see :func:`stick_divergence`)."""
        if self.n_clusters is None:
            return 0.0
        each = alpha / self.n_clusters
        log_constants = gammaln(q.sum()) - gammaln(alpha) - np.sum(gammaln(q[0]) - gammaln(each))
        return float(log_constants + np.sum((q[0] - each) * self.expected_logs(q)))
