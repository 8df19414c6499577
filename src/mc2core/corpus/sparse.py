"""Rows of sparse matrices that may be memory-mapped."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def take_rows(matrix: sp.csr_matrix, rows: np.ndarray) -> sp.csr_matrix:
    """``matrix[rows]`` for CSR, touching only those rows.

    SciPy's own indexing first brings all of a memory-mapped matrix to one index type, which reads it whole.
    """
    start = matrix.indptr[rows].astype(np.int64)
    length = matrix.indptr[rows + 1].astype(np.int64) - start
    indptr = np.concatenate([[0], np.cumsum(length)])
    positions = np.repeat(start - indptr[:-1], length) + np.arange(indptr[-1])
    taken = sp.csr_matrix(
        (np.asarray(matrix.data[positions]), np.asarray(matrix.indices[positions]), indptr),
        shape=(len(rows), matrix.shape[1]),
    )
    taken.has_canonical_format = True
    return taken
