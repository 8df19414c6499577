"""Checks of the parts of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import choice, counted, several, shown, whole

if TYPE_CHECKING:
    import pandas as pd

_NO_NUMBERS = {"category": "categories", "b": "booleans", "M": "dates", "m": "time spans"}
_CHUNK = 1 << 20  # number of entries that are checked together
_LONGEST_NAME = 200  # largest number of bytes in the name of a context
Context: TypeAlias = Any
"""Values of a context: numbers, (J,) float64, NaN if missing; counts, (J, A) int32 CSR, an empty row if missing; or
vectors, (J, D) float64, NaN for missing coordinates."""
Unit: TypeAlias = tuple[Any, Any]
"""Original mean and standard deviation of a standardised context: two floats, or two tuples of D floats for vectors."""
CONTENT_KINDS = {"numbers": "numbers", "counts": "counts", "binary": "zeros or ones"}
"""Kinds of observations of a corpus, with the word for their values in messages."""
KINDS = {"number": "numbers", "counts": "names", "vector": "vectors"}
"""Kinds of contexts of a corpus, with the word for their values in messages."""
FAMILY_OF_KIND = {
    "number": "normal_gamma",
    "date": "normal_gamma",
    "bag": "dirichlet",  # names
    "text": "dirichlet",  # words
    "counts": "dirichlet",  # names with counts
    "vector": "diagonal_normal_gamma",  # from a separate file
}
"""Default family of each kind of context. Tables and configurations use the names of these kinds."""
NUMBERS = ("number", "date")
"""Kinds of columns that give a context of numbers. All other kinds, except "vector", give a context of counts."""


def kind_of(context: Context) -> str:
    """Return the kind of a context, a key of KINDS, by its type.

    A sparse matrix or a dense matrix of integers is "counts", a dense matrix of floats "vector". Other values are
    "number".
    """
    if sp.issparse(context):
        return "counts"
    if np.ndim(context) != 2:
        return "number"
    return "vector" if np.asarray(context).dtype.kind == "f" else "counts"


def placeholders(n_words: int) -> list[str]:
    """Return placeholders for words without names. Comparisons treat placeholders as missing names."""
    return [f"w{word}" for word in range(n_words)]


def widened(matrix: Any) -> Any:
    """Return a sparse matrix of integers as int64 if its conversion to CSR adds entries, which would overflow."""
    adds = sp.issparse(matrix) and matrix.format not in ("csr", "csc") and matrix.dtype.kind in "iub"
    return matrix.astype(np.int64) if adds else matrix


def whole_counts(matrix: Any, name: str, rows: int | None = None) -> sp.csr_matrix:
    """Check a matrix of counts and return it as canonical CSR (int32 counts, sorted, no stored zeros).

    Raises ValueError, with ``name`` and the row, if a count is negative, fractional, not finite or above 2**31 - 1, or
    if the number of rows is not ``rows``.
    """
    if not sp.issparse(matrix):
        array = np.asarray(matrix)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must be a two-dimensional matrix of counts, not {array.ndim}-dimensional {array.dtype}"
            )
        matrix = array
    counts = sp.csr_matrix(widened(matrix))
    if rows is not None and counts.shape[0] != rows:
        size = counted(counts.shape[0], "rows")
        raise ValueError(f"{name} has {size}, but the corpus has {counted(rows, 'documents')}")
    try:
        counts.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a well-formed sparse matrix: {error}") from error
    if counts.data.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {counts.data.dtype} values; counts are whole numbers of at least 0")
    _check_counts(counts, name)
    if not counts.has_canonical_format or counts.data.min(initial=1) == 0:
        # a copy, because the caller's matrix must not change, in int64, because sums of entries may exceed int32
        counts = counts.astype(np.int64, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        _check_counts(counts, name)
    return counts if counts.data.dtype == np.int32 else counts.astype(np.int32)


def _check_counts(counts: sp.csr_matrix, name: str) -> None:
    for first in range(0, counts.nnz, _CHUNK):
        data = np.asarray(counts.data[first : first + _CHUNK])
        with np.errstate(invalid="ignore"):
            bad = ~((data >= 0) & (data <= np.iinfo(np.int32).max) & (data == np.floor(data)))
        if bad.any():
            position = first + int(np.flatnonzero(bad)[0])
            row = int(np.searchsorted(counts.indptr, position, side="right")) - 1
            raise ValueError(
                f"{name}: row {row}, column {counts.indices[position]} holds {counts.data[position]}; "
                "counts are whole numbers of at least 0 (and below 2**31)"
            )


def check_values(values: Any, name: str, rows: int) -> np.ndarray:
    """Return the values of a context of numbers, (J,), or vectors, (J, D), as float64 with NaN for missing values.

    Raises ValueError for categories, booleans, dates, infinite values and vectors without coordinates, and if the
    number of values is not ``rows``.
    """
    kind = "category" if str(getattr(values, "dtype", "")) == "category" else np.asarray(values).dtype.kind
    if kind in _NO_NUMBERS:
        raise ValueError(f"context {name!r} holds {_NO_NUMBERS[kind]}; Corpus.from_texts and from_dataframe read them")
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"context {name!r} must hold numbers (NaN where missing): {error}") from error
    if array.ndim not in (1, 2) or len(array) != rows:
        raise ValueError(f"context {name!r} has shape {array.shape}, but the corpus has {rows} documents")
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"context {name!r} has vectors without coordinates; at least one coordinate is needed")
    if np.isinf(array).any():
        row = int(np.nonzero(np.isinf(array))[0][0])
        raise ValueError(f"context {name!r}: document {row} is infinite; use NaN where a value is missing")
    return array


def check_context_name(name: Any) -> str:
    """Return ``name``. Raises ValueError unless it is an identifier that is short enough for a file name."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"context name {name!r} must be a plain identifier such as 'author'")
    if len(name.encode()) > _LONGEST_NAME:
        raise ValueError(f"context name {shown(name)} has more than {_LONGEST_NAME} bytes, too many for a file name")
    return name


def check_context(name: Any, context: Any, rows: int) -> Context:
    """Check a context of any kind (:func:`kind_of`) and return it in standard form (:data:`Context`).

    Raises ValueError if the name or a value is invalid.
    """
    check_context_name(name)
    if kind_of(context) == "counts":
        if not sp.issparse(context) and np.asarray(context).dtype.kind in "OSU":
            raise ValueError(
                f"context {name!r} is a matrix of text; a list of names for each document goes to Corpus.from_texts or "
                "from_dataframe, a matrix holds counts or vectors"
            )
        return whole_counts(context, f"context {name!r}", rows)
    return check_values(context, name, rows)


def check_unit(unit: Any, length: int | None = None) -> Unit:
    """Return (mean, sd) as two floats, or as two tuples of ``length`` floats for vectors.

    Raises ValueError unless all values are finite and each sd is above 0.
    """
    mean, sd = unit
    values = np.array([mean, sd])
    is_real = values.dtype.kind in "iuf" and np.isfinite(values).all()
    if not is_real or not (values[1] > 0).all() or values.shape[1:] not in ((), (length,)):
        raise ValueError(f"the unit is {str(unit)[:60]}; a mean and a standard deviation above 0 are needed")
    mean, sd = values.astype(np.float64).tolist()
    return (tuple(mean), tuple(sd)) if values.ndim == 2 else (mean, sd)


def all_missing(kind: str, rows: int, size: int) -> Context:
    """Return a context that is missing in all documents; ``size`` is its number of columns or coordinates."""
    if kind == "counts":
        return sp.csr_matrix((rows, size), dtype=np.int32)
    return np.full((rows, size) if kind == "vector" else rows, np.nan)


def csr_of(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_columns: int) -> sp.csr_matrix:
    """Return a CSR matrix that shares these arrays; SciPy's constructor would copy memory-mapped arrays."""
    matrix = sp.csr_matrix((len(indptr) - 1, n_columns), dtype=data.dtype)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    return matrix


def ones(counts: np.ndarray) -> sp.csr_matrix:
    """Return a matrix with ``counts[j]`` ones in row j, each in its own column, (J, sum of counts) int32 CSR."""
    start = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    n = int(start[-1])
    return sp.csr_matrix((np.ones(n, np.int32), np.arange(n, dtype=np.int32), start), shape=(len(counts), n))


def check_observations(values: Any, document: Any, n_documents: int | None, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the observations, (N, D) float64, and the document of each observation, (N,) int64.

    Raises ValueError if there are no rows, if the shapes differ, or if a value is not finite or not of the ``kind``.
    """
    choice("kind", kind, CONTENT_KINDS)
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values must hold numbers: {error}") from error
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not table.size:
        raise ValueError(f"values has shape {np.shape(values)}; a row of numbers for each observation is needed")
    check_kind_of_values(table, kind)
    of = np.asarray(document)
    if of.shape != (len(table),) or of.dtype.kind not in "iu":
        raise ValueError(
            f"document has shape {of.shape} and type {of.dtype}; a whole number for each of {len(table)} observations "
            "is needed"
        )
    limit = np.iinfo(np.int32).max if n_documents is None else whole("n_documents", n_documents)
    wrong = np.flatnonzero((of < 0) | (of >= limit))
    if len(wrong):
        raise ValueError(f"document holds {of[wrong[0]]} at observation {wrong[0]}; it must lie in 0..{limit - 1}")
    return table, of.astype(np.int64)


def check_kind_of_values(table: np.ndarray, kind: str) -> None:
    """Raise ValueError if a value of ``table`` (N, D) is not finite or not of the ``kind``, a key of CONTENT_KINDS."""
    bad, needed = ~np.isfinite(table), "leave it out"
    if kind != "numbers" and not bad.any():
        bad, needed = not_of_kind(table, kind)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(f"values: observation {row} holds {table[row, column]} in column {column}; {needed}")


def not_of_kind(values: np.ndarray, kind: str) -> tuple[np.ndarray, str]:
    """Return whether each finite value is not of the ``kind`` ("counts" or "binary"), and a phrase on valid values."""
    if kind == "counts":
        wrong = (values < 0) | (values != np.floor(values)) | (values >= 2.0**31)
        return wrong, "counts are whole numbers of at least 0 and below 2**31"
    return (values != 0.0) & (values != 1.0), "of the kind 'binary' values are 0 or 1"


def check_labels(labels: Any, n_documents: int) -> Context | None:
    """Return labels as (J,) int64 of at least 0, or as memberships (J, L) CSR. Raises ValueError for other values."""
    if labels is None:
        return None
    if sp.issparse(labels) or np.ndim(labels) == 2:
        return whole_counts(labels, "labels", n_documents)
    array = np.asarray(labels)
    if array.shape != (n_documents,):
        raise ValueError(f"labels has shape {array.shape}, but the corpus has {counted(n_documents, 'documents')}")
    if array.dtype.kind not in "iu" or (array < 0).any():
        raise ValueError("labels must be whole numbers of at least 0, one for each document")
    return array.astype(np.int64)


def count_labels(labels: Context) -> int:
    """Return the number of labels L."""
    return labels.shape[1] if sp.issparse(labels) else int(labels.max(initial=-1)) + 1


def check_documents(documents: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the table of documents with rows numbered from 0.

    Raises ValueError unless there are ``rows`` rows and the names of columns are different texts without zero bytes.
    """
    if not hasattr(documents, "columns"):
        raise ValueError(f"documents is {shown(documents)}; a pandas DataFrame is needed")
    if len(documents) != rows:
        size = counted(len(documents), "rows")
        raise ValueError(f"documents has {size}, but the corpus has {counted(rows, 'documents')}")
    names = documents.columns.tolist()
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise ValueError(f"documents has the column {name!r}; the name of a column is text of at least one letter")
        if name in names[:index]:
            raise ValueError(f"documents has the column {name!r} twice")
        if "\0" in name:
            raise ValueError(f"documents has the column {name!r}; no table can hold a zero byte in a name")
    return documents.reset_index(drop=True)


def columns_of(frame: Any) -> list[str] | None:
    """Return the column names of a DataFrame; None if columns are only numbered, or for other objects."""
    columns = getattr(frame, "columns", None)
    if columns is None or list(columns) == list(range(len(columns))):
        return None
    return [str(one) for one in columns]


def check_distinct(names: list[str] | None, name: str) -> list[str] | None:
    """Return ``names``. Raises ValueError if a name occurs twice."""
    first: dict[str, int] = {}
    for i, item in enumerate(names or ()):
        if first.setdefault(item, i) != i:
            raise ValueError(f"{name} has {item!r} twice, at {first[item]} and {i}; each name stands for one column")
    return names


def check_names(names: Sequence[str] | None, name: str, length: int) -> list[str] | None:
    """Return the names of columns as texts. Raises ValueError if there are not ``length`` names or one has a line
    break."""
    if names is None:
        return None
    names = [str(one) for one in several(name, names)]
    if len(names) != length:
        raise ValueError(f"{name} has {counted(len(names), 'names')}; needed: {length:,}")
    if any("\n" in one or "\r" in one for one in names):
        raise ValueError(f"{name} has a name with a line break in it")
    return names


def own_index(documents: pd.DataFrame | None, content: Any) -> Any:
    """Return the index of the table ``documents`` or, without this table, of ``content``; None for a default index."""
    if documents is None:
        return content.index if hasattr(content, "iloc") else None
    index: Any = documents.index
    return None if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1) else index


def unit_of(values: np.ndarray) -> Unit:
    """Return the mean and standard deviation of ``values`` (J,), or of each coordinate of ``values`` (J, D)."""
    if values.ndim == 1:
        return _spread(values)
    mean, sd = zip(*map(_spread, values.T), strict=True)
    return mean, sd


def _spread(values: np.ndarray) -> tuple[float, float]:
    """Return the mean (0 if all are missing) and the standard deviation (1 if all are equal) of ``values``."""
    observed = values[~np.isnan(values)]
    if observed.size == 0:
        return 0.0, 1.0
    if observed.min() == observed.max():  # rounding of the mean would give an sd of about 1e-17
        return float(observed[0]), 1.0
    sd = float(observed.std())
    return float(observed.mean()), sd if sd > 0 else 1.0
