"""Affinity propagation on rows of counts, and on the topic proportions of an HDP."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mc2core.base import memory
from mc2core.base.checks import finite, whole
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2papers.baselines.assignments import Assignments
from mc2papers.baselines.base import Baseline, Fitted, features, one_thread, random_state, weighting_of

# number of J x J float64 matrices in memory: similarities, a copy of them, three with messages, one with distances
_TABLES = 6


def symmetric_kl(shares: np.ndarray) -> np.ndarray:
    """Return (J, J) float64 KL(p_i || p_j) + KL(p_j || p_i) in nats, for positive (J, M) ``shares`` whose rows sum to
    1."""
    cross = shares @ np.log(shares).T
    own = np.diag(cross)
    # rounding must not make the divergence of equal documents negative
    return np.maximum(own[:, None] + own[None, :] - cross - cross.T, 0.0)


class _Propagation(Baseline):
    def __init__(self, *, damping: float = 0.9, preference: float | None = None, max_iterations: int = 1000) -> None:
        self.damping = finite("damping", damping)
        if not 0.5 <= self.damping < 1.0:
            raise ValueError(f"damping is {damping!r}; it must be at least 0.5 and below 1")
        self.preference = None if preference is None else finite("preference", preference)
        self.max_iterations = whole("max_iterations", max_iterations)

    def _refuse_too_much(self, n_documents: int) -> None:
        memory.need(
            8 * _TABLES * n_documents**2,
            f"{self.title} of {n_documents} documents",
            "it stores similarities of all pairs of documents: take fewer documents",
        )

    def _propagate(self, similarities: np.ndarray, seed: int) -> Fitted:
        """Cluster (J, J) similarities. Raises ValueError if no exemplar was found."""
        from sklearn import cluster

        with one_thread():
            found = cluster.AffinityPropagation(
                damping=self.damping,
                preference=self.preference,
                max_iter=self.max_iterations,
                affinity="precomputed",
                random_state=random_state(seed, self.name),
            ).fit(similarities)
        if (found.labels_ < 0).any():
            raise ValueError(
                f"{self.title} found no exemplar in {self.max_iterations} iterations; "
                "try a damping nearer to 1, or more iterations"
            )
        # scikit-learn stops early if the exemplars have not changed for several iterations
        converged = found.n_iter_ < self.max_iterations
        return Fitted(Assignments({"cluster": found.labels_}), found.n_iter_, {"cluster": converged})


class Affinity(_Propagation):
    """Affinity propagation on the negative squared Euclidean distances of documents, by scikit-learn.

    Parameters
    ----------
    weighting : {"counts", "tfidf"}, default "tfidf"
        Weighting of words and contexts, see :func:`mc2papers.baselines.base.features`.
    damping : float in [0.5, 1), default 0.9
        Share of the last messages that is kept.
    preference : float or None, default None
        Similarity of each document to itself. Larger values give more clusters. None means the median similarity.
    max_iterations : int in [1, inf), default 1000
        Largest number of iterations.
    """

    name: ClassVar[str] = "affinity"
    title: ClassVar[str] = "affinity propagation"
    citation: ClassVar[str] = "Frey and Dueck (2007), Clustering by passing messages between data points"
    takes_contexts: ClassVar[bool] = True

    def __init__(
        self, *, weighting: str = "tfidf", damping: float = 0.9, preference: float | None = None,
        max_iterations: int = 1000,
    ) -> None:  # fmt: skip
        super().__init__(damping=damping, preference=preference, max_iterations=max_iterations)
        self.weighting = weighting_of(weighting)

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        from sklearn.metrics import pairwise

        self._refuse_too_much(corpus.n_documents)
        table = features(corpus, self.weighting, self.title)
        with one_thread():
            distances = pairwise.euclidean_distances(table, squared=True)
        return self._propagate(-distances, seed)


class HDPAffinity(_Propagation):
    """HDP + AP of ICML14: affinity propagation on the symmetric Kullback-Leibler divergence between documents.

    A document is represented by its topic proportions in the representative sample of an HDP. All unused topics count
    as one topic.

    Parameters
    ----------
    damping : float in [0.5, 1), default 0.9
        Share of the last messages that is kept.
    preference : float or None, default None
        Similarity of each document to itself. Larger values give more clusters. None means the median similarity.
    max_iterations : int in [1, inf), default 1000
        Largest number of iterations.
    """

    name: ClassVar[str] = "hdp_affinity"
    title: ClassVar[str] = "HDP + AP"
    citation: ClassVar[str] = "Teh et al. (2006), Hierarchical Dirichlet processes; Frey and Dueck (2007)"
    models: ClassVar[tuple[str, ...]] = ("hdp",)

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        if model is None or not model.representative.documents_are_clusters:
            raise ValueError(f"{self.title} needs the posterior of an HDP, in which each document is its own cluster")
        model.check_fitted(corpus)
        self._refuse_too_much(corpus.n_documents)
        sample = model.representative
        new = sample.new_topic_weight[:, None]
        shares = np.hstack([(1.0 - new) * model.topic_given_cluster, new])[sample.cluster]
        shares = np.maximum(shares, np.finfo(np.float64).tiny)  # rounding may make the weight of a topic 0
        with one_thread():
            distances = symmetric_kl(shares)
        return self._propagate(-distances, seed)
