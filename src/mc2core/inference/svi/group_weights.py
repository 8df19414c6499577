"""q(beta), the weights of clusters: sticks of a Dirichlet process, or the Dirichlet of a finite mixture.

* beta ~ GEM(alpha): (2, K) sticks (:mod:`mc2core.inference.svi.sticks`); the last weight, behind the last stick, is
  that of all clusters not in use.
* beta ~ Dir(alpha / N, ..., alpha / N): q(beta) = Dir(alpha / N + n_1, ..., alpha / N + n_N), the optimum given
  expected documents n, as one row (1, N). All N clusters stay where they are, in use or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from mc2core.inference.svi import sticks


class GroupWeights(NamedTuple):
    """How parameters ``q`` of q(beta) are made and read; ``n_clusters`` is N, None of a Dirichlet process."""

    n_clusters: int | None

    def posterior(self, n_k: np.ndarray, alpha: float) -> np.ndarray:
        """q given (K,) expected documents; K is N of a finite mixture."""
        if self.n_clusters is None:
            return sticks.stick_posterior(np.append(n_k, 0.0), alpha)
        return (alpha / self.n_clusters + n_k)[None]

    def n_k(self, q: np.ndarray, alpha: float) -> np.ndarray:
        """(K,) float64: the expected documents behind q."""
        return q[0] - (1.0 if self.n_clusters is None else alpha / self.n_clusters)

    def expected_logs(self, q: np.ndarray) -> np.ndarray:
        """(K,) float64: E ln beta_k of the clusters that there are."""
        if self.n_clusters is None:
            return sticks.expected_log_weights(q)[:-1]
        return digamma(q[0]) - digamma(q[0].sum())

    def expected(self, q: np.ndarray) -> np.ndarray:
        """(K + 1,) float64, and of a finite mixture (N,): E beta, which sums to 1."""
        return sticks.expected_weights(q) if self.n_clusters is None else q[0] / q[0].sum()

    def sticks(self, q: np.ndarray) -> np.ndarray:
        """(2, sticks): those behind alpha, of which a finite mixture has none."""
        return q if self.n_clusters is None else np.empty((2, 0))

    def divergence(self, q: np.ndarray, alpha: float) -> float:
        """KL(q(beta) || Dir(alpha / N, ...)) in nats; 0 of sticks, whose divergences are counted with the others'."""
        if self.n_clusters is None:
            return 0.0
        each = alpha / self.n_clusters
        log_constants = gammaln(q.sum()) - gammaln(alpha) - np.sum(gammaln(q[0]) - gammaln(each))
        return float(log_constants + np.sum((q[0] - each) * self.expected_logs(q)))
