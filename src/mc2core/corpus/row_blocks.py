"""Matrices of counts that may be larger than memory.

Small matrices stay in memory. Larger matrices are stored in unnamed temporary files in the folder ``TMPDIR``, with
memory-mapped arrays, and are processed in blocks of rows.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import IO

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.corpus.checks import Context, csr_of

# largest number of values in memory, 32 MB
_MAX_HELD = 1 << 23
# approximate number of entries in a block of rows
_BLOCK = 1 << 20


class Growing:
    """A growing list of whole numbers, as int32."""

    def __init__(self) -> None:
        self._buffer, self._n_written = array("i"), 0
        self._file: IO[bytes] | None = None

    def extend(self, numbers: Iterable[int]) -> None:
        """Append numbers. Raises OSError, with the folder, if the disk is full."""
        if isinstance(numbers, np.ndarray):
            self._buffer.frombytes(numbers.astype(np.int32).tobytes())
        else:
            self._buffer.extend(numbers)
        if len(self._buffer) > _MAX_HELD:
            self._write()

    def __len__(self) -> int:
        return self._n_written + len(self._buffer)

    def _write(self) -> None:
        with storage.naming(f"a temporary file in {tempfile.gettempdir()} (set TMPDIR to use another folder)"):
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
            self._buffer.tofile(self._file)
            self._file.flush()
        self._n_written += len(self._buffer)
        self._buffer = array("i")

    def all(self) -> np.ndarray:
        """Return all appended numbers, (n,) int32."""
        if self._file is None:
            return np.array(self._buffer, np.int32)
        self._write()
        return np.memmap(self._file, np.int32, "r", shape=(self._n_written,))


def by_rows(function: Callable[..., sp.csr_matrix], *matrices: sp.csr_matrix) -> sp.csr_matrix:
    """Return the result of a row-wise ``function`` of CSR matrices with equal numbers of rows, canonical int32 CSR.

    ``function`` is called with copies of the rows, in blocks if the matrices are large.
    """
    if sum(one.nnz for one in matrices) <= _MAX_HELD:
        return function(*(_copy_rows(one, 0, one.shape[0]) for one in matrices))
    columns, counts, ends = Growing(), Growing(), [np.zeros(1, np.int64)]
    for first, last in _blocks(matrices):
        part = function(*(_copy_rows(one, first, last) for one in matrices))
        ends.append(len(columns) + part.indptr[1:].astype(np.int64))
        columns.extend(part.indices)
        counts.extend(part.data)
    indptr = np.concatenate(ends)
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    result = csr_of(indptr, columns.all(), counts.all(), part.shape[1])
    result.has_canonical_format = True
    return result


def _blocks(matrices: tuple[sp.csr_matrix, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block and the row after its last row. A block has at least one row."""
    n_rows = matrices[0].shape[0]
    ends = np.asarray(sum(one.indptr.astype(np.int64) for one in matrices))
    first = 0
    while first < n_rows:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _BLOCK, side="right")) - 1)
        yield first, last
        first = last


def _copy_rows(matrix: sp.csr_matrix, first: int, last: int) -> sp.csr_matrix:
    """Return a copy of the rows from ``first`` to ``last`` - 1."""
    start, end = matrix.indptr[first], matrix.indptr[last]
    indptr = (matrix.indptr[first : last + 1] - start).astype(np.int32)
    return csr_of(indptr, np.array(matrix.indices[start:end]), np.array(matrix.data[start:end]), matrix.shape[1])


def count_columns(matrix: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of entries and the sum of each column of a canonical CSR matrix, (A,) int64 each."""
    spread, totals = np.zeros((2, matrix.shape[1]), np.int64)
    for first in range(0, matrix.nnz, _BLOCK):
        indices, data = (np.asarray(one[first : first + _BLOCK]) for one in (matrix.indices, matrix.data))
        spread += np.bincount(indices, minlength=len(spread))
        totals += np.bincount(indices, data, len(spread)).astype(np.int64)
    return spread, totals


def count_repeated_rows(matrix: sp.csr_matrix) -> int:
    """Return the number of rows with entries that equal an earlier row, of a canonical CSR matrix."""
    # a sum with random weights has the same value for two rows only if they are equal, up to a chance of 1e-16 per pair
    weights = np.random.default_rng(0).random(matrix.shape[1])
    sums = [_copy_rows(matrix, first, last) @ weights for first, last in _blocks((matrix,))]
    has_entries = np.diff(matrix.indptr) > 0
    return int(has_entries.sum()) - len(np.unique(np.concatenate(sums)[has_entries]))


def take_rows(matrix: sp.csr_matrix, rows: np.ndarray) -> sp.csr_matrix:
    """Return ``matrix[rows]`` of a CSR matrix, and read only these rows.

    SciPy's indexing may first convert all indices to another type, which reads all of a memory-mapped matrix.
    """
    start = matrix.indptr[rows].astype(np.int64)
    length = matrix.indptr[rows + 1].astype(np.int64) - start
    indptr = np.concatenate([[0], np.cumsum(length)])
    positions = np.repeat(start - indptr[:-1], length) + np.arange(indptr[-1])
    part = sp.csr_matrix(
        (np.asarray(matrix.data[positions]), np.asarray(matrix.indices[positions]), indptr),
        shape=(len(rows), matrix.shape[1]),
    )
    part.has_canonical_format = True
    return part


def indicator(labels: np.ndarray, n_labels: int) -> sp.csr_matrix:
    """Return a matrix with a one at the label of each row, (J, n_labels) float64 CSR; rows with label -1 are empty."""
    has_label = labels >= 0
    start = np.concatenate([[0], np.cumsum(has_label)])
    return sp.csr_matrix((np.ones(start[-1]), labels[has_label], start), shape=(len(labels), n_labels))


def take(context: Context, rows: np.ndarray) -> Context:
    """Return the rows ``rows`` of a context."""
    return take_rows(context, rows) if sp.issparse(context) else np.asarray(context[rows])


def with_columns(counts: sp.csr_matrix, columns: np.ndarray, n_columns: int) -> sp.csr_matrix:
    """Return ``counts`` with column i moved to column ``columns[i]`` of ``n_columns``; the counts are not copied."""
    return sp.csr_matrix((counts.data, columns[counts.indices], counts.indptr), shape=(counts.shape[0], n_columns))
