"""Non-negative matrix factorisation of the counts, with one cluster per factor."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import positive, whole
from mc2papers.baselines.base import ByNumber, cluster_numbers, random_state, weighting_of


class NMF(ByNumber):
    """Cluster documents by their largest factor in a least-squares factorisation counts ~ W H with W, H >= 0.

    The cluster of a document is the largest entry of its row of W (Xu, Liu and Gong, 2003). First, each row of H is
    scaled to Euclidean length 1, because W and H are unique only up to the scales of factors. The start is a singular
    value decomposition with zeros replaced by small random numbers ("nndsvdar" of Boutsidis and Gallopoulos, 2008).

    Parameters
    ----------
    n_clusters : int in [1, inf) or list of different int in [1, inf), default (10, 20, 30, 40)
        Numbers of factors, with one solution per number. ICML14 (section 4.2) has 10 to 40 and reports their spread.
    weighting : {"counts", "tfidf"}, default "tfidf"
        Weighting of words and contexts, see :func:`mc2papers.baselines.base.features`.
    max_iterations : int in [1, inf), default 500
        Largest number of iterations of coordinate descent.
    tolerance : float in (0, inf), default 0.001
        The descent stops if the change of the factors is less than this fraction of the change in the first iteration.
    """

    name: ClassVar[str] = "nmf"
    title: ClassVar[str] = "NMF"
    citation: ClassVar[str] = "Xu, Liu and Gong (2003), Document clustering based on non-negative matrix factorization"

    def __init__(
        self, *, n_clusters: Any = (10, 20, 30, 40), weighting: str = "tfidf", max_iterations: int = 500,
        tolerance: float = 0.001,
    ) -> None:  # fmt: skip
        self.n_clusters = cluster_numbers(n_clusters)
        self.weighting = weighting_of(weighting)
        self.max_iterations = whole("max_iterations", max_iterations)
        self.tolerance = positive("tolerance", tolerance)

    def _points(self, table: sp.csr_matrix, seed: int) -> Any:
        if max(self.n_clusters) > table.shape[1]:
            raise ValueError(
                f"n_clusters is {max(self.n_clusters)}, but the corpus has {table.shape[1]} words and context columns; "
                "NMF takes no more clusters"
            )
        return table

    def _solve(self, k: int, points: Any, seed: int) -> tuple[np.ndarray, int, bool]:
        from sklearn import decomposition

        found = decomposition.NMF(
            k, init="nndsvdar", tol=self.tolerance, max_iter=self.max_iterations, random_state=random_state(seed, "nmf")
        )
        factors = found.fit_transform(points)
        labels = np.argmax(factors * np.linalg.norm(found.components_, axis=1), axis=1)
        return labels, found.n_iter_, found.n_iter_ < self.max_iterations
