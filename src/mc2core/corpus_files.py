"""Files of a saved corpus: arrays as .npy that can be memory-mapped, names as text, the table of documents as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core import storage

FORMAT = "mc2core corpus 1"
Context: TypeAlias = Any
"""(J,) float64 array, NaN where missing, or (J, A) int32 CSR, an empty row where missing (SciPy is not typed)."""


def _save_sparse(folder: Path, name: str, matrix: sp.csr_matrix) -> None:
    np.save(folder / f"{name}.indptr.npy", matrix.indptr.astype(np.int64), allow_pickle=False)
    np.save(folder / f"{name}.indices.npy", matrix.indices.astype(np.int32), allow_pickle=False)
    np.save(folder / f"{name}.data.npy", matrix.data.astype(np.int32), allow_pickle=False)


def save_context(folder: Path, name: str, context: Context) -> None:
    if sp.issparse(context):
        _save_sparse(folder, name, context)
    else:
        np.save(folder / f"{name}.npy", context, allow_pickle=False)


def _map_array(path: Path, dtype: Any, length: int | None) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except (ValueError, EOFError, OSError) as error:
        # an empty file cannot be mapped, but an empty array needs no mapping
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, EOFError, OSError):
            raise ValueError(f"{path} is not a whole array file: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is an archive; one array is needed")
    if array.ndim != 1 or array.dtype != dtype or (length is not None and len(array) != length):
        raise ValueError(f"{path} holds {array.shape} {array.dtype}; {length} values of {np.dtype(dtype)} are needed")
    return array


def _load_sparse(folder: Path, name: str, shape: tuple[int, int]) -> sp.csr_matrix:
    indptr = _map_array(folder / f"{name}.indptr.npy", np.int64, shape[0] + 1)
    indptr = np.array(indptr)
    if indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{folder / name}.indptr.npy does not rise from 0")
    indices = _map_array(folder / f"{name}.indices.npy", np.int32, int(indptr[-1]))
    data = _map_array(folder / f"{name}.data.npy", np.int32, int(indptr[-1]))
    # the constructor of csr_matrix would read and copy the mapped arrays to check and narrow them
    matrix = sp.csr_matrix(shape, dtype=np.int32)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    matrix.has_canonical_format = True
    return matrix


def load_context(folder: Path, name: str, rows: int, shape: Any) -> Context:
    if shape is not None:
        if not isinstance(shape, list) or len(shape) != 2 or shape[0] != rows:
            raise ValueError(f"{folder}/corpus.json gives {name} the shape {shape}, but there are {rows} documents")
        return _load_sparse(folder, name, (rows, int(shape[1])))
    return _map_array(folder / f"{name}.npy", np.int64 if name == "labels" else np.float64, rows)


def write_names(path: Path, names: Sequence[str]) -> None:
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def read_names(path: Path, length: int | None) -> list[str]:
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
    dtypes = storage.read_json(folder / "corpus.json")["documents"]
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
