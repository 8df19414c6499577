"""K-means on the rows of counts or in the space of latent semantic analysis."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import whole
from mc2papers.baselines.base import ByNumber, cluster_numbers, lsa_space, random_state, weighting_of


class KMeans(ByNumber):
    """K-means (Lloyd's algorithm from k-means++ starts, the best of several), by scikit-learn.

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        Numbers of clusters K, with one solution per number. ICML14 (section 4.2) has 10 to 40 and reports their spread.
    dimension : int in [1, inf) or None, default None
        Dimension of the space of :func:`mc2papers.baselines.base.lsa_space`. With None, the rows are not reduced.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Weighting of words and contexts, see :func:`mc2papers.baselines.base.features`.
    starts : int in [1, inf), default 10
        Number of starts. The solution with the smallest sum of squares is kept.
    max_iterations : int in [1, inf), default 300
        Largest number of iterations per start.
    """

    name: ClassVar[str] = "kmeans"
    title: ClassVar[str] = "K-means"
    citation: ClassVar[str] = "Lloyd (1982), Least squares quantization in PCM; Arthur and Vassilvitskii (2007)"

    def __init__(
        self, *, n_clusters: Any = (10, 20, 30, 40), dimension: int | None = None, weighting: str = "tfidf",
        starts: int = 10, max_iterations: int = 300,
    ) -> None:  # fmt: skip
        self.n_clusters = cluster_numbers(n_clusters)
        self.dimension = None if dimension is None else whole("dimension", dimension)
        self.weighting = weighting_of(weighting)
        self.starts = whole("starts", starts)
        self.max_iterations = whole("max_iterations", max_iterations)

    def _points(self, table: sp.csr_matrix, seed: int) -> Any:
        return table if self.dimension is None else lsa_space(table, self.dimension, random_state(seed, "lsa"))

    def _solve(self, k: int, points: Any, seed: int) -> tuple[np.ndarray, int, bool]:
        from sklearn import cluster

        found = cluster.KMeans(
            k, n_init=self.starts, max_iter=self.max_iterations, random_state=random_state(seed, "kmeans")
        ).fit(points)
        return found.labels_, found.n_iter_, found.n_iter_ < self.max_iterations
