"""A Gaussian mixture of documents' coordinates of latent semantic analysis."""

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


class GaussianMixture(Baseline):
    """Diagonal covariances, EM from k-means, the best of several starts, by scikit-learn.

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        K; a solution for each.
    dimension : int in [1, inf), default 100
        Of the space of :func:`mc2papers.baselines.base.lsa_space`.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Of words and contexts, see :func:`mc2papers.baselines.base.features`.
    starts : int in [1, inf), default 10
        The start whose end has the greatest likelihood is kept.
    max_iterations : int in [1, inf), default 300
        Of each start, at most.
    """

    name: ClassVar[str] = "gaussian_mixture"
    title: ClassVar[str] = "LSA + Gaussian mixture"
    citation: ClassVar[str] = "Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via EM"
    takes_contexts: ClassVar[bool] = True

    def __init__(
        self, *, n_clusters: Any = (10, 20, 30, 40), dimension: int = 100, weighting: str = "tfidf", starts: int = 10,
        max_iterations: int = 300,
    ) -> None:  # fmt: skip
        self.n_clusters = cluster_numbers(n_clusters)
        self.dimension = whole("dimension", dimension)
        self.weighting = weighting_of(weighting)
        self.starts = whole("starts", starts)
        self.max_iterations = whole("max_iterations", max_iterations)

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        from sklearn import mixture

        refuse_few_documents(corpus, self.n_clusters)
        table, state = features(corpus, self.weighting, self.title), random_state(seed, "gaussian mixture")
        solutions: dict[str, np.ndarray] = {}
        iterations, converged = 0, {}
        with one_thread():
            points = lsa_space(table, self.dimension, state)
            for k in self.n_clusters:
                found = mixture.GaussianMixture(
                    k, covariance_type="diag", n_init=self.starts, max_iter=self.max_iterations, random_state=state
                ).fit(points)
                solutions[f"k{k}"] = found.predict(points)
                iterations += found.n_iter_
                converged[f"k{k}"] = found.converged_
        return Fitted(Assignments(solutions), iterations, converged)
