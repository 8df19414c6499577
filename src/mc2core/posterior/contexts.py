"""Predictions of a context of documents from their words and their other contexts.

    p(x_j | w_j, y_j, fit) = 1/S sum_s sum_k P_s(z_j = k | w_j, y_j) p_s(x_j | k)

The sums are over the S samples of a fit and over the clusters k of each sample. w_j are the words of document j, y_j
its contexts except the predicted one, and p_s(x | k) is the posterior predictive of cluster k. Clusters without fitted
documents are left out. For example, these formulas predict the authors, date or tags of a document (ICML14, section
4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    import pandas as pd

    from mc2core.corpus.checks import Unit
    from mc2core.families import VectorFamily
    from mc2core.families.base import ScalarFamily

# number of documents whose names are ranked together
_BLOCK = 1024
# largest number of points at which the distributions of all clusters are evaluated to bracket the quantiles
_MAX_NODES = 256
# accuracy of the probability of a quantile, and largest number of steps
_NEAR, _STEPS = 1e-10, 60


@dataclass(frozen=True)
class PredictedNames:
    """Predicted names (authors, tags) of a context, per document.

    Attributes
    ----------
    names : list of str
        The A names of the context.
    shares : (J, C) float64 CSR, rows sum to 1
        Probability of each cluster for each document. The C clusters are the clusters of all samples.
    probabilities : (C, A) float64, rows sum to 1
        Probability of each name in each cluster, for one entry of a document.
    """

    names: list[str]
    shares: sp.csr_matrix
    probabilities: np.ndarray

    def of(self, rows: Any) -> np.ndarray:
        """Return the probability of each name for one entry of each document, (n, A) float64; rows sum to 1.

        ``rows`` are the indices of n documents, or a slice.
        """
        return np.asarray(self.shares[rows] @ self.probabilities)

    def ranking(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the n likeliest names of each document and their probabilities, (J, n) each."""
        if n < 1:
            raise ValueError(f"n is {n}; it must be at least 1")
        least = min(n, len(self.names))
        columns, probabilities = [np.zeros((0, least), np.int64)], [np.zeros((0, least))]
        for first in range(0, self.shares.shape[0], _BLOCK):
            probability = self.of(slice(first, first + _BLOCK))
            order = _find_largest(probability, least)
            columns.append(order)
            probabilities.append(np.take_along_axis(probability, order, axis=1))
        return np.concatenate(columns), np.concatenate(probabilities)

    def table(self, n: int = 5) -> pd.DataFrame:
        """Return a table of the n likeliest names of each document: document, rank (from 1), name and probability."""
        import pandas as pd

        columns, probability = self.ranking(n)
        document, rank = (index.ravel() + 1 for index in np.indices(columns.shape))
        name = [self.names[column] for column in columns.ravel()]
        return pd.DataFrame({"document": document, "rank": rank, "name": name, "probability": probability.ravel()})


@dataclass(frozen=True)
class PredictedNumbers:
    """Predicted numbers (years, counts) of a context, per document, in the original unit.

    Attributes
    ----------
    shares : (J, C) float64 CSR, rows sum to 1
        Probability of each cluster for each document. The C clusters are the clusters of all samples.
    natural : (C, D) float64
        Natural parameters of the context in each cluster.
    family : ScalarFamily
        Family of the context.
    unit : pair of float
        Mean and standard deviation by which the fitted values were standardised.
    index : Index or None
        Index of the documents (:attr:`mc2core.Corpus.index`).
    """

    shares: sp.csr_matrix
    natural: np.ndarray
    family: ScalarFamily
    unit: tuple[float, float]
    index: Any = None

    @property
    def mean(self) -> np.ndarray:
        """Expected value for each document, (J,) float64: the mean of the cluster means, weighted by ``shares``."""
        return self.shares @ self.family.mean(self.natural) * self.unit[1] + self.unit[0]

    def density(self, values: np.ndarray) -> np.ndarray:
        """Return the density (for counts, the probability) of each of ``values`` (n,) for each document, (J, n)
        float64."""
        values = (np.asarray(values, np.float64) - self.unit[0]) / self.unit[1]
        predictive = self.family.predictive(self.natural[:, None])
        of_value = predictive.pmf if self.family.is_discrete else predictive.pdf
        return self.shares @ of_value(values) / self.unit[1]

    def quantile(self, share: float) -> np.ndarray:
        """Return the ``share`` quantile of each document's predictive distribution, (J,) float64."""
        if not 0.0 < share < 1.0:
            raise ValueError(f"share is {share!r}; it must lie between 0 and 1")
        natural, centre, sd = self.natural[np.unique(self.shares.indices)], self.unit[0], self.unit[1]
        if not len(natural):
            return np.zeros(0)
        # the quantile of the mixture lies between the smallest and the largest quantile of its clusters
        grid = np.unique(self.family.predictive(natural).ppf(share))
        grid = grid[np.linspace(0, len(grid) - 1, min(len(grid), _MAX_NODES)).astype(int)]
        of_clusters = self.family.predictive(self.natural[:, None]).cdf(grid)
        excess = self.shares @ of_clusters - share
        above = np.clip((excess < 0.0).sum(axis=1), min(1, len(grid) - 1), len(grid) - 1)
        bounds = np.maximum(above - 1, 0), above
        at = (excess[np.arange(len(excess)), index] for index in bounds)
        return self._bisect(share, *(grid[index] for index in bounds), *at) * sd + centre

    def _bisect(
        self, share: float, low: np.ndarray, high: np.ndarray, at_low: np.ndarray, at_high: np.ndarray
    ) -> np.ndarray:
        """Return the standardised quantiles between the bounds ``low`` and ``high``, (J,) each.

        ``at_low`` and ``at_high`` are the cumulative probabilities at the bounds minus ``share``. Discrete families use
        bisection, and densities the Illinois method.
        """
        start = self.shares.indptr[:-1]
        document = np.repeat(np.arange(len(low)), np.diff(self.shares.indptr))
        predictive = self.family.predictive(self.natural[self.shares.indices])

        def excess(values: np.ndarray) -> np.ndarray:
            return np.add.reduceat(self.shares.data * predictive.cdf(values[document]), start) - share

        if self.family.is_discrete:
            while (high - low).max() > 0.25:
                middle = 0.5 * (low + high)
                below = excess(middle) < 0.0
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            return np.rint(high)
        last = np.zeros(len(low))
        for _ in range(_STEPS):
            span = at_high - at_low
            middle = np.where(span > 0.0, low - at_low * (high - low) / np.where(span > 0.0, span, 1.0), high)
            middle = np.clip(middle, low, high)
            at_middle = excess(middle)
            if abs(at_middle).max() < _NEAR:
                break
            side = np.where(at_middle < 0.0, -1.0, 1.0)
            # the value at a bound that stays is halved, otherwise this bound could stay for ever
            at_low, at_high = (
                np.where(side < 0, at_middle, np.where(side == last, 0.5 * at_low, at_low)),
                np.where(side > 0, at_middle, np.where(side == last, 0.5 * at_high, at_high)),
            )
            low, high, last = np.where(side < 0, middle, low), np.where(side > 0, middle, high), side
        return middle

    def interval(self, share: float = 0.9) -> np.ndarray:
        """Return, for each document, the central interval that contains its value with probability ``share``, (J, 2)
        float64."""
        return np.stack([self.quantile(0.5 - share / 2.0), self.quantile(0.5 + share / 2.0)], axis=1)

    def table(self, share: float = 0.9) -> pd.DataFrame:
        """Return a table with one row per document: document (from 1), mean, low and high (:meth:`interval`)."""
        import pandas as pd

        low, high = self.interval(share).T
        columns = {"document": np.arange(len(low)) + 1, "mean": self.mean, "low": low, "high": high}
        return pd.DataFrame(columns, index=self.index)


@dataclass(frozen=True)
class PredictedVectors:
    """Predicted vectors (embeddings) of a context, per document, in the original unit.

    Attributes
    ----------
    shares : (J, C) float64 CSR, rows sum to 1
        Probability of each cluster for each document. The C clusters are the clusters of all samples.
    natural : (C, P) float64
        Natural parameters of the context in each cluster.
    family : VectorFamily
        Family of the context.
    unit : pair
        Mean and standard deviation by which each coordinate of the fitted vectors was standardised.
    index : Index or None
        Index of the documents (:attr:`mc2core.Corpus.index`).
    """

    shares: sp.csr_matrix
    natural: np.ndarray
    family: VectorFamily
    unit: Unit
    index: Any = None

    @property
    def mean(self) -> np.ndarray:
        """Expected vector for each document, (J, D) float64: the mean of the cluster means, weighted by ``shares``."""
        return self.shares @ self.family.mean(self.natural) * np.asarray(self.unit[1]) + np.asarray(self.unit[0])

    def coordinate(self, number: int) -> PredictedNumbers:
        """Return the predictions of the coordinate with index ``number``, from 0 to D - 1."""
        n = self.family.mean(self.natural).shape[1]
        if not 0 <= number < n:
            raise ValueError(f"number is {number}; coordinates are numbered from 0 to {n - 1}")
        mean, sd = (float(np.broadcast_to(part, n)[number]) for part in self.unit)
        family, natural = self.family.coordinate(self.natural, number)
        return PredictedNumbers(self.shares, natural, family, (mean, sd))

    def table(self) -> pd.DataFrame:
        """Return a table with one row per document: document (from 1), and the mean of each coordinate, 0 to D - 1."""
        import pandas as pd

        table = pd.DataFrame(self.mean, index=self.index).rename(columns=str)
        table.insert(0, "document", np.arange(len(table)) + 1)
        return table


def _find_largest(probability: np.ndarray, n: int) -> np.ndarray:
    """Return the columns of the n largest entries of each row, in descending order, (J, n); the first among ties."""
    if n < probability.shape[1]:
        order = np.sort(np.argpartition(-probability, n - 1, axis=1)[:, :n], axis=1)
        least = np.take_along_axis(probability, order, axis=1).min(axis=1)
        is_tied = (probability >= least[:, None]).sum(axis=1) > n
        order[is_tied] = np.sort(np.argsort(-probability[is_tied], axis=1, kind="stable")[:, :n], axis=1)
    else:
        order = np.tile(np.arange(n), (len(probability), 1))
    ranks = np.argsort(-np.take_along_axis(probability, order, axis=1), axis=1, kind="stable")
    return np.take_along_axis(order, ranks, axis=1)
