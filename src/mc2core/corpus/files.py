"""Files of a saved corpus: arrays as .npy that can be memory-mapped, names as text, the table of documents as CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base import npy, storage

FORMAT = "mc2core corpus 1"
#: paths of what is written to the folder of a corpus, by ``Corpus.save`` and ``mc2 import``
CORPUS_FILES = (
    r"corpus\.json|(content|labels|context\.[^/]+)(\.(data|indices|indptr))?\.npy|context\.[^/]+\.names\.txt"
    r"|(label_names|vocabulary)\.txt|documents\.csv|datasheet\.md|bad_rows\.tsv"
)
_META = "corpus.json"
_CHUNK = 1 << 18  # entries that stay in the processor's cache while several things are looked at
_LARGEST = 2**31 - 1
Context: TypeAlias = Any
"""(J,) float64 array, NaN where missing, or (J, A) int32 CSR, an empty row where missing (SciPy is not typed)."""


def _save_sparse(folder: Path, name: str, matrix: sp.csr_matrix) -> None:
    storage.write_array(folder / f"{name}.indptr.npy", matrix.indptr.astype(np.int64))
    storage.write_array(folder / f"{name}.indices.npy", matrix.indices.astype(np.int32))
    storage.write_array(folder / f"{name}.data.npy", matrix.data.astype(np.int32))


def save_context(folder: Path, name: str, context: Context) -> None:
    """Write a context's arrays into ``folder``: NAME.npy of numbers, three arrays of counts."""
    if sp.issparse(context):
        _save_sparse(folder, name, context)
    else:
        storage.write_array(folder / f"{name}.npy", context)


def _map_array(path: Path, dtype: Any, length: int) -> np.ndarray:
    array = npy.open_mapped(path)
    if array.ndim != 1 or array.dtype != dtype or len(array) != length:
        raise ValueError(f"{path} holds {array.shape} {array.dtype}; {length} values of {np.dtype(dtype)} are needed")
    return array


def _load_sparse(folder: Path, name: str, shape: tuple[int, int]) -> sp.csr_matrix:
    indptr = np.array(_map_array(folder / f"{name}.indptr.npy", np.int64, shape[0] + 1))
    if indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{folder / name}.indptr.npy does not rise from 0")
    indices = _map_array(folder / f"{name}.indices.npy", np.int32, int(indptr[-1]))
    data = _map_array(folder / f"{name}.data.npy", np.int32, int(indptr[-1]))
    check_entries(f"{folder / name}", indptr, indices, data, shape[1])
    # the constructor of csr_matrix would read and copy the mapped arrays to check and narrow them
    matrix = sp.csr_matrix(shape, dtype=np.int32)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    matrix.has_canonical_format = True
    return matrix


def check_entries(name: str, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_columns: int) -> None:
    """ValueError unless every row's columns rise and lie in 0..n_columns-1, and every count is at least 1.

    All entries are read once; 60 million of them take 0.4 s once they are in the page cache.
    """
    for first in range(0, len(indices), _CHUNK):
        # one more, for the step to the next chunk
        columns = np.asarray(indices[first : first + _CHUNK + 1])
        counts = np.asarray(data[first : first + _CHUNK])
        lowest, highest = int(columns.min()), int(columns.max())
        if lowest < 0 or highest >= n_columns:
            at = int(np.flatnonzero((columns < 0) | (columns >= n_columns))[0])
            row = _row(indptr, first + at)
            raise ValueError(
                f"{name}.indices.npy has the column {columns[at]} in row {row}; it must lie in 0..{n_columns - 1}"
            )
        if counts.min() < 1:
            at = int(np.flatnonzero(counts < 1)[0])
            raise ValueError(
                f"{name}.data.npy has the count {counts[at]} in row {_row(indptr, first + at)}; it must be at least 1"
            )
        falls = np.flatnonzero(columns[1:] <= columns[:-1]) + first + 1
        starts = np.searchsorted(indptr, falls)
        within = falls[indptr[starts] != falls]
        if len(within):
            raise ValueError(f"{name}.indices.npy has columns that do not rise in row {_row(indptr, within[0])}")


def _row(indptr: np.ndarray, entry: int) -> int:
    return int(np.searchsorted(indptr, entry, side="right")) - 1


def load_context(folder: Path, name: str, rows: int, shape: Any) -> Context:
    """Open a context's arrays, memory-mapped and checked; ``shape`` is that of counts, or None for numbers."""
    if shape is not None:
        if not isinstance(shape, list) or len(shape) != 2 or shape[0] != rows or not isinstance(shape[1], int):
            raise ValueError(f"{folder}/corpus.json gives {name} the shape {shape}, but there are {rows} documents")
        return _load_sparse(folder, name, (rows, shape[1]))
    values = _map_array(folder / f"{name}.npy", np.float64, rows)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(f"{folder / name}.npy is infinite at document {row}; NaN stands for a missing value")
    return values


def load_labels(folder: Path, rows: int, shape: Any) -> Context:
    """``shape``: that of memberships, or "one" for a label of each document."""
    if shape != "one":
        return load_context(folder, "labels", rows, shape)
    labels = _map_array(folder / "labels.npy", np.int64, rows)
    if rows and labels.min() < 0:
        raise ValueError(f"{folder}/labels.npy holds {labels.min()}; a label is a whole number of at least 0")
    return labels


def read_label_names(folder: Path, labels: Context) -> list[str] | None:
    """None where the labels have no names."""
    path = folder / "label_names.txt"
    if labels is None or not path.exists():
        return None
    if sp.issparse(labels):
        return read_names(path, labels.shape[1])
    names, last = read_names(path, None), int(labels.max(initial=-1))
    if last >= len(names):
        raise ValueError(f"{path} has {len(names)} lines, but there is a label {last}")
    return names


def write_names(path: Path, names: Sequence[str]) -> None:
    """Write names as UTF-8 text, one to a line."""
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def read_names(path: Path, length: int | None) -> list[str]:
    """The inverse of :func:`write_names`; ValueError for a missing or damaged file, or another number of lines."""
    try:
        names = path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    if length is not None and len(names) != length:
        raise ValueError(f"{path} has {len(names)} lines, but {length} are needed")
    return names


def read_documents(folder: Path, rows: int) -> pd.DataFrame:
    """The table of documents with the types it was saved with; ValueError for damage or another number of rows."""
    dtypes = storage.read_json(folder / _META)["documents"]
    text = {name: str for name, dtype in dtypes.items() if dtype in ("object", "str", "string")}
    try:
        table = pd.read_csv(
            folder / "documents.csv",
            dtype=text,
            keep_default_na=False,
            na_values={name: [""] for name in dtypes if name not in text},
        )
    except (ValueError, pd.errors.ParserError) as error:
        raise ValueError(f"{folder}/documents.csv is damaged: {error}") from error
    if len(table) != rows:
        raise ValueError(f"{folder}/documents.csv has {len(table)} rows, but the corpus has {rows} documents")
    return table


# -- corpus.json -------------------------------------------------------------------------------------------------------
def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Write corpus.json: ``meta``, the SHA-256 of every file of the folder, and a checksum of all that."""
    files = {file.name: storage.digest_file(file) for file in sorted(folder.iterdir()) if file.is_file()}
    signed = {**meta, "files": files}
    storage.write_json(folder / _META, signed | {"checksum": storage.digest_value(signed)})


def read_meta(folder: Path) -> dict[str, Any]:
    """corpus.json, its fields of the right types; ValueError for anything else.

    Corpora from before digests of files were written lack "files" and "checksum".
    """
    if not (folder / _META).is_file():
        raise ValueError(f"{folder} holds no corpus: {_META} is missing")
    meta = storage.read_json(folder / _META)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{folder}/{_META} is not of the format {FORMAT!r}")
    try:
        rows, columns = meta["shape"]
        if not all(isinstance(size, int) and 0 <= size <= _LARGEST for size in (rows, columns)):
            raise ValueError(f"the shape is {meta['shape']}")
        names = [*meta["contexts"], *meta["context_names"]]
        if not all(isinstance(name, str) and name.isidentifier() for name in names):
            raise ValueError(f"names of contexts are {names}")
        for name, (mean, sd) in meta["units"].items():
            if name not in meta["contexts"] or not (math.isfinite(mean) and math.isfinite(sd) and sd > 0):
                raise ValueError(f"the unit of {name!r} is {mean, sd}")
        texts = {"digest": meta["digest"], **meta["documents"], **meta.get("files", {})}
        for name, text in texts.items():
            if "/" in name or not isinstance(text, str):
                raise ValueError(f"{name!r} is {text!r}")
        if not (meta["labels"] is None or meta["labels"] == "one" or isinstance(meta["labels"], list)):
            raise ValueError(f"the labels are {meta['labels']!r}")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{folder}/{_META} lacks a field or holds a wrong one: {error}") from error
    return meta


def check_meta(folder: Path, meta: Mapping[str, Any], n_tokens: int) -> None:
    """ValueError where corpus.json is not as it was written, or the counts do not have its sum."""
    told = meta.get("n_tokens", n_tokens)
    if told != n_tokens:
        raise ValueError(f"{folder} was changed after it was saved: it has {n_tokens} tokens, but {_META} says {told}")
    signed = {name: value for name, value in meta.items() if name != "checksum"}
    is_signed = "checksum" in meta or "files" in meta
    if is_signed and meta.get("checksum") != storage.digest_value(signed):
        raise ValueError(f"{folder}/{_META} was changed after it was saved: its checksum is another")


def check_files(folder: Path, meta: Mapping[str, Any]) -> None:
    """ValueError where a file is not as it was saved."""
    for name, digest in meta.get("files", {}).items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} is missing")
        if storage.digest_file(path) != digest:
            raise ValueError(f"{path} was changed after it was saved: its digest is another")
