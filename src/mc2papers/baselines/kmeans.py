"""K-means on the rows of counts or in the space of latent semantic analysis."""

from __future__ import annotations

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
    lsa_space,
    one_thread,
    random_state,
    refuse_few_documents,
    weighting_of,
)


class KMeans(Baseline):
    """K-means (Lloyd's algorithm from k-means++ starts, the best of several), by scikit-learn.

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        K; a solution for each. ICML14 (section 4.2) has 10 to 40 and reports their spread.
    dimension : int in [1, inf) or None, default None
        Of the space of :func:`mc2papers.baselines.base.lsa_space`; None is the rows as they are.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Of words and contexts, see :func:`mc2papers.baselines.base.features`.
    starts : int in [1, inf), default 10
        The start whose end has the smallest sum of squares is kept.
    max_iterations : int in [1, inf), default 300
        Of each start, at most.
    """

    name: ClassVar[str] = "kmeans"
    title: ClassVar[str] = "K-means"
    citation: ClassVar[str] = "Lloyd (1982), Least squares quantization in PCM; Arthur and Vassilvitskii (2007)"
    takes_contexts: ClassVar[bool] = True

    def __init__(
        self, *, n_clusters: Any = (10, 20, 30, 40), dimension: int | None = None, weighting: str = "tfidf",
        starts: int = 10, max_iterations: int = 300,
    ) -> None:  # fmt: skip
        self.n_clusters = cluster_numbers(n_clusters)
        self.dimension = None if dimension is None else whole("dimension", dimension)
        self.weighting = weighting_of(weighting)
        self.starts = whole("starts", starts)
        self.max_iterations = whole("max_iterations", max_iterations)

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        from sklearn import cluster

        refuse_few_documents(corpus, self.n_clusters)
        table: Any = features(corpus, self.weighting, self.title)
        solutions: dict[str, np.ndarray] = {}
        iterations, converged = 0, {}
        with one_thread():
            if self.dimension is not None:
                table = lsa_space(table, self.dimension, random_state(seed, "lsa"))
            for k in self.n_clusters:
                found = cluster.KMeans(
                    k, n_init=self.starts, max_iter=self.max_iterations, random_state=random_state(seed, "kmeans")
                ).fit(table)
                solutions[f"k{k}"] = found.labels_
                iterations += found.n_iter_
                converged[f"k{k}"] = found.n_iter_ < self.max_iterations
        return Fitted(Assignments(solutions), iterations, converged)
