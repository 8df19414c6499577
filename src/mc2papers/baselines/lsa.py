"""Latent semantic analysis, and clusters of documents in its space: k-means, and a Gaussian mixture."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mc2core.base.checks import whole
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2papers.baselines.assignments import Assignments
from mc2papers.baselines.base import (
    Baseline,
    Fitted,
    cluster_numbers,
    features,
    one_thread,
    random_state,
    refuse_few_documents,
    weighting_of,
)


class _InLSASpace(Baseline):
    """Clusters of documents by their first left singular vectors, scaled, each row of Euclidean length 1."""

    takes_contexts: ClassVar[bool] = True

    def __init__(
        self, *, n_clusters: Any = (10, 20, 30, 40), weighting: str = "tfidf", dimension: int = 100, starts: int = 10,
        max_iterations: int = 300,
    ) -> None:  # fmt: skip
        self.n_clusters = cluster_numbers(n_clusters)
        self.weighting = weighting_of(weighting)
        self.dimension = whole("dimension", dimension)
        self.starts = whole("starts", starts)
        self.max_iterations = whole("max_iterations", max_iterations)

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        from sklearn import decomposition, preprocessing

        refuse_few_documents(corpus, self.n_clusters)
        table, state = features(corpus, self.weighting, self.title), random_state(seed, self.name)
        solutions: dict[str, np.ndarray] = {}
        iterations, converged = 0, {}
        if min(table.shape) < 2:
            raise ValueError(f"the corpus has {table.shape[1]} words and context columns; {self.title} needs two")
        with one_thread():
            # ARPACK takes fewer dimensions than the table has
            dimension = min(self.dimension, *(size - 1 for size in table.shape))
            reduction = decomposition.TruncatedSVD(dimension, algorithm="arpack", random_state=state)
            points = preprocessing.normalize(reduction.fit_transform(table))
            for k in self.n_clusters:
                solutions[f"k{k}"], steps = self._cluster(points, k, state)
                iterations += steps
                converged[f"k{k}"] = steps < self.max_iterations
        return Fitted(Assignments(solutions), iterations, converged)

    @abstractmethod
    def _cluster(self, points: np.ndarray, k: int, state: int) -> tuple[np.ndarray, int]:
        """(J,) clusters of (J, D) points, and the iterations of the best start."""


class LSAKMeans(_InLSASpace):
    """K-means on the documents' coordinates of latent semantic analysis, by scikit-learn.

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        K; a solution for each.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Of words and contexts, see :func:`mc2papers.baselines.base.features`.
    dimension : int in [1, inf), default 100
        Singular vectors; fewer where the corpus is smaller.
    starts : int in [1, inf), default 10
        The start whose end has the smallest sum of squares is kept.
    max_iterations : int in [1, inf), default 300
        Of each start, at most.
    """

    name: ClassVar[str] = "lsa_kmeans"
    title: ClassVar[str] = "LSA + K-means"
    citation: ClassVar[str] = "Deerwester et al. (1990), Indexing by latent semantic analysis; Lloyd (1982)"

    def _cluster(self, points: np.ndarray, k: int, state: int) -> tuple[np.ndarray, int]:
        from sklearn import cluster

        found = cluster.KMeans(k, n_init=self.starts, max_iter=self.max_iterations, random_state=state).fit(points)
        return found.labels_, int(found.n_iter_)


class LSAMixture(_InLSASpace):
    """A Gaussian mixture, diagonal covariances, of the documents' coordinates of LSA, by scikit-learn.

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        K; a solution for each.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Of words and contexts, see :func:`mc2papers.baselines.base.features`.
    dimension : int in [1, inf), default 100
        Singular vectors; fewer where the corpus is smaller.
    starts : int in [1, inf), default 10
        The start whose end has the greatest likelihood is kept; each begins with k-means.
    max_iterations : int in [1, inf), default 300
        Of each start, at most.
    """

    name: ClassVar[str] = "lsa_mixture"
    title: ClassVar[str] = "LSA + Gaussian mixture"
    citation: ClassVar[str] = "Deerwester et al. (1990); Dempster, Laird and Rubin (1977), Maximum likelihood by EM"

    def _cluster(self, points: np.ndarray, k: int, state: int) -> tuple[np.ndarray, int]:
        from sklearn import mixture

        found = mixture.GaussianMixture(
            k, covariance_type="diag", n_init=self.starts, max_iter=self.max_iterations, random_state=state
        ).fit(points)
        return found.predict(points), int(found.n_iter_)
