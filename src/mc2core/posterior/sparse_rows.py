"""Rows that mostly hold their column's smallest value, as the context parameters of clusters do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class SparseRows:
    """A dense (K, D) float64 matrix, kept as the smallest value of each column and all entries above it.

    Natural parameters of a Dirichlet are its prior, the smallest value, plus counts, most of which are 0: with 12,000
    authors a cluster has met some dozens of them. The dense matrix comes back to the last bit.

    Attributes
    ----------
    least : (D,) float64
    above : (K, D) float64 CSR, the values (not differences) of the entries that are not ``least``
    """

    least: np.ndarray
    above: sp.csr_matrix

    @classmethod
    def of(cls, dense: np.ndarray) -> SparseRows:
        """Of a (K, D) matrix, K >= 1."""
        dense = np.asarray(dense, np.float64)
        least = dense.min(axis=0)
        row, column = np.nonzero(dense != least)
        start = np.searchsorted(row, np.arange(len(dense) + 1))
        return cls(least, sp.csr_matrix((dense[row, column], column.astype(np.int32), start), shape=dense.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """(K, D)."""
        return self.above.shape

    def dense(self, columns: slice = slice(None)) -> np.ndarray:
        """(K, D) float64, or some columns of it."""
        rows = np.tile(self.least, (self.shape[0], 1))
        # not by a sum: an entry may be 0
        rows[np.repeat(np.arange(self.shape[0]), np.diff(self.above.indptr)), self.above.indices] = self.above.data
        return rows[:, columns]
