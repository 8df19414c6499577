"""What the words of documents, and their other contexts, say of a context that they do not show.

    p(x_j | w_j, y_j, fit) = 1/S sum_s sum_k P_s(z_j = k | w_j, y_j) p_s(x_j | k)

over the S samples of a fit and the clusters of each: who most likely wrote a document (ICML14, section 4.2), when,
with which tags. w_j are its words, y_j its contexts but for the one that is asked for, p_s(x | k) the posterior
predictive of cluster k. A cluster that no document of the fit is in has no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mc2core.families.gaussian import STATISTICS

if TYPE_CHECKING:
    import pandas as pd

    from mc2core.corpus.checks import Unit
    from mc2core.families import DiagonalNormalGamma
    from mc2core.families.base import ScalarFamily

# shares of clusters below this are left out
_LEAST = 1e-12
# documents whose columns are ranked together
_BLOCK = 1024
# halvings of the range in which a quantile lies: to the last digits of it
_HALVINGS = 60


@dataclass(frozen=True)
class PredictedNames:
    """Names (authors, tags) of a context that documents do not show.

    Attributes
    ----------
    names : list of A texts, the columns of the context
    shares : (J, C) float64 CSR, rows sum to 1: of each document, over the clusters of all samples
    probabilities : (C, A) float64, rows sum to 1: of one entry of the context in each of these clusters
    """

    names: list[str]
    shares: sp.csr_matrix
    probabilities: np.ndarray

    def of(self, rows: Any) -> np.ndarray:
        """(n, A) float64, rows sum to 1: the probability of each name, for an entry of each of the documents ``rows``
        (indices or a slice).
        """
        return np.asarray(self.shares[rows] @ self.probabilities)

    def ranking(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(J, n) int64 columns, the likeliest first (of equals the first), and (J, n) float64 their probabilities."""
        if n < 1:
            raise ValueError(f"{n} names of each document were asked for; it must be at least 1")
        least = min(n, len(self.names))
        columns, found = [np.zeros((0, least), np.int64)], [np.zeros((0, least))]
        for first in range(0, self.shares.shape[0], _BLOCK):
            probability = self.of(slice(first, first + _BLOCK))
            order = np.argsort(-probability, axis=1, kind="stable")[:, :n]
            columns.append(order)
            found.append(np.take_along_axis(probability, order, axis=1))
        return np.concatenate(columns), np.concatenate(found)

    def table(self, n: int = 5) -> pd.DataFrame:
        """Columns document, rank (both from 1), name, probability: a row for each of a document's n likeliest names."""
        import pandas as pd

        columns, found = self.ranking(n)
        document, rank = (place.ravel() + 1 for place in np.indices(columns.shape))
        name = [self.names[column] for column in columns.ravel()]
        return pd.DataFrame({"document": document, "rank": rank, "name": name, "probability": found.ravel()})


@dataclass(frozen=True)
class PredictedNumbers:
    """Numbers (years, counts) of a context that documents do not show, in the unit of the corpus' file.

    Attributes
    ----------
    shares : (J, C) float64 CSR, rows sum to 1: of each document, over the clusters of all samples
    natural : (C, D) float64: natural parameters of each of these clusters
    family : what the context was fitted with
    unit : (mean, sd) by which the values of the fit were standardised
    """

    shares: sp.csr_matrix
    natural: np.ndarray
    family: ScalarFamily
    unit: tuple[float, float]

    @property
    def mean(self) -> np.ndarray:
        """(J,) float64: the expected value, of the means of the clusters."""
        return self.shares @ self.family.mean(self.natural) * self.unit[1] + self.unit[0]

    def density(self, values: np.ndarray) -> np.ndarray:
        """(J, n) float64: density at (n,) ``values`` (of counts their probability)."""
        values = (np.asarray(values, np.float64) - self.unit[0]) / self.unit[1]
        predictive = self.family.predictive(self.natural[:, None])
        of_value = predictive.pmf if self.family.is_discrete else predictive.pdf
        return self.shares @ of_value(values) / self.unit[1]

    def quantile(self, share: float) -> np.ndarray:
        """(J,) float64: the least value that a document's is at or below with probability ``share``, in (0, 1)."""
        if not 0.0 < share < 1.0:
            raise ValueError(f"a quantile at {share!r} was asked for; it must lie between 0 and 1")
        start, predictive = self.shares.indptr[:-1], self.family.predictive(self.natural[self.shares.indices])
        own = predictive.ppf(share)  # the mixture's lies between those of its clusters
        low, high = np.minimum.reduceat(own, start), np.maximum.reduceat(own, start)
        document = np.repeat(np.arange(len(low)), np.diff(self.shares.indptr))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            below = np.add.reduceat(self.shares.data * predictive.cdf(middle[document]), start) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (np.rint(high) if self.family.is_discrete else high) * self.unit[1] + self.unit[0]

    def interval(self, share: float = 0.9) -> np.ndarray:
        """(J, 2) float64: the central interval that holds a document's value with probability ``share``, in (0, 1)."""
        return np.stack([self.quantile(0.5 - share / 2.0), self.quantile(0.5 + share / 2.0)], axis=1)

    def table(self, share: float = 0.9) -> pd.DataFrame:
        """A row for each document: document (from 1), mean, low, high, the bounds of :meth:`interval`."""
        import pandas as pd

        low, high = self.interval(share).T
        return pd.DataFrame({"document": np.arange(len(low)) + 1, "mean": self.mean, "low": low, "high": high})


@dataclass(frozen=True)
class PredictedVectors:
    """Vectors (embeddings) of a context that documents do not show, in the unit of the corpus' file.

    Attributes
    ----------
    shares : (J, C) float64 CSR, rows sum to 1: of each document, over the clusters of all samples
    natural : (C, 4 D) float64: natural parameters of each of these clusters
    family : what the context was fitted with
    unit : (mean, sd) by which the values of the fit were standardised, of each coordinate
    """

    shares: sp.csr_matrix
    natural: np.ndarray
    family: DiagonalNormalGamma
    unit: Unit

    @property
    def mean(self) -> np.ndarray:
        """(J, D) float64: the expected vector, of the means of the clusters."""
        return self.shares @ self.family.mean(self.natural) * np.asarray(self.unit[1]) + np.asarray(self.unit[0])

    def coordinate(self, number: int) -> PredictedNumbers:
        """The coordinate ``number``, 0 to D - 1, by itself, with its density and intervals."""
        n = self.natural.shape[1] // STATISTICS
        if not 0 <= number < n:
            raise ValueError(f"coordinate {number} was asked for; it must be 0 to {n - 1}")
        mean, sd = (float(np.broadcast_to(part, n)[number]) for part in self.unit)
        natural = self.natural[:, STATISTICS * number : STATISTICS * (number + 1)]
        return PredictedNumbers(self.shares, natural, self.family.of_coordinate, (mean, sd))

    def table(self) -> pd.DataFrame:
        """A row for each document: document (from 1), and the mean of each coordinate, 0 to D - 1."""
        import pandas as pd

        table = pd.DataFrame(self.mean).rename(columns=str)
        table.insert(0, "document", np.arange(len(table)) + 1)
        return table


def mixed(shares: list[np.ndarray]) -> sp.csr_matrix:
    """(J, C) CSR: the clusters' shares (J, K_s) of the S samples side by side, each sample's sums to 1/S; tiny ones
    are left out.
    """
    side_by_side = np.hstack(shares)
    side_by_side[side_by_side < _LEAST] = 0.0
    return sp.csr_matrix(side_by_side / side_by_side.sum(axis=1, keepdims=True))
