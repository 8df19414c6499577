"""The law of the clusters of documents: a Dirichlet process, or a finite mixture of N clusters.

    pi ~ GEM(alpha), or pi ~ Dir(alpha / N, ..., alpha / N);   z_j ~ pi

With pi summed out, K clusters in use and b = alpha / N, a partition of J documents has the probability

    p(z) = N! / (N - K)! G(alpha) / G(alpha + J) prod_k G(n_k + b) / G(b)
         = G(alpha) / G(alpha + J) prod_{i < K} alpha (1 - i / N) prod_k G(n_k + b) / G(1 + b)

so that one more document joins a cluster of n_k in proportion to n_k + b and a new one in proportion to
alpha (1 - K / N). The Dirichlet process is N = infinity, to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from scipy.special import gammaln


class PartitionLaw(NamedTuple):
    """What kernels need of it."""

    alpha: float  # group concentration
    most: float  # N, infinite for a Dirichlet process
    each: float  # b
    log_gamma_one: float  # ln G(1 + b)

    @classmethod
    def of(cls, alpha: float, most: float = math.inf) -> PartitionLaw:
        """With the group concentration ``alpha`` and at most so many clusters."""
        return cls(float(alpha), float(most), alpha / most, math.lgamma(1.0 + alpha / most))


@register_jitable(error_model="numpy")
def weight_of_new(law, n_clusters):
    """Of clusters not in use, all together, beside ``n_clusters`` that are; 0 where these are N."""
    return law.alpha * (1.0 - n_clusters / law.most)


def log_openings(law: PartitionLaw, n_clusters: int) -> float:
    """ln prod_{i < K} (1 - i / N): what the K-th power of alpha leaves out."""
    return float(np.log1p(-np.arange(n_clusters) / law.most).sum())


def log_partition(law: PartitionLaw, n_k: np.ndarray) -> float:
    """ln p(z) in nats of clusters with (K,) ``n_k`` documents, each at least 1."""
    result = len(n_k) * np.log(law.alpha) + (gammaln(n_k + law.each) - law.log_gamma_one).sum()
    result += log_openings(law, len(n_k))
    return float(result + (gammaln(law.alpha) - gammaln(law.alpha + n_k.sum())))
