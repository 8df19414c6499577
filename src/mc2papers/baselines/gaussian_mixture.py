"""A Gaussian mixture of documents' coordinates of latent semantic analysis."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import whole
from mc2papers.baselines.base import ByNumber, cluster_numbers, lsa_space, random_state, weighting_of


class GaussianMixture(ByNumber):
    """Gaussian mixture with diagonal covariances (scikit-learn): EM from k-means, the best of several starts.

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        Numbers of clusters K, with one solution per number.
    dimension : int in [1, inf), default 100
        Dimension of the space of :func:`mc2papers.baselines.base.lsa_space`.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Weighting of words and contexts, see :func:`mc2papers.baselines.base.features`.
    starts : int in [1, inf), default 10
        Number of starts. The solution with the greatest likelihood is kept.
    max_iterations : int in [1, inf), default 300
        Largest number of iterations per start.
    """

    name: ClassVar[str] = "gaussian_mixture"
    title: ClassVar[str] = "LSA + Gaussian mixture"
    citation: ClassVar[str] = "Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via EM"

    def __init__(
        self, *, n_clusters: Any = (10, 20, 30, 40), dimension: int = 100, weighting: str = "tfidf", starts: int = 10,
        max_iterations: int = 300,
    ) -> None:  # fmt: skip
        self.n_clusters = cluster_numbers(n_clusters)
        self.dimension = whole("dimension", dimension)
        self.weighting = weighting_of(weighting)
        self.starts = whole("starts", starts)
        self.max_iterations = whole("max_iterations", max_iterations)

    def _points(self, table: sp.csr_matrix, seed: int) -> Any:
        return lsa_space(table, self.dimension, random_state(seed, "gaussian mixture"))

    def _solve(self, k: int, points: Any, seed: int) -> tuple[np.ndarray, int, bool]:
        from sklearn import mixture

        state = random_state(seed, "gaussian mixture")
        found = mixture.GaussianMixture(
            k, covariance_type="diag", n_init=self.starts, max_iter=self.max_iterations, random_state=state
        ).fit(points)
        return found.predict(points), found.n_iter_, found.converged_
