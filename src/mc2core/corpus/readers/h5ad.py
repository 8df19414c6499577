"""AnnData files (.h5ad): cells as documents, genes as words, columns of ``obs`` and matrices of ``obsm`` as contexts.

The file is HDF5 in the layout of the anndata project (encoding versions 0.1 and 0.2). It is read by h5py alone, which
needs no particular version of pandas. A manipulated file can crash the HDF5 library, and thus Python.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base import extras
from mc2core.base.checks import did_you_mean
from mc2core.corpus import Corpus
from mc2core.corpus.building.cells import Missing, is_null
from mc2core.corpus.building.columns import ContextColumn, Layout
from mc2core.corpus.building.rows import BadRows, corpus_of_rows
from mc2core.corpus.checks import NUMBERS

if TYPE_CHECKING:
    import h5py

#: Data sets that inflate beyond this are bombs; counts of single cells reach about 20.
MAX_RATIO = 1000
_SMALL_BYTES = 2**14
# what h5py reports damage and unexpected types of node by
_DAMAGE = (OSError, KeyError, RuntimeError, AttributeError, TypeError, IndexError, OverflowError, MemoryError)


def read(
    path: str | os.PathLike[str],
    contexts: Mapping[str, ContextColumn] | None = None,
    labels: str | None = None,
    layer: str | None = None,
    optional: Collection[str] = (),
    date_format: str | None = None,
    missing: Missing | None = None,
) -> Corpus:
    """Read the counts of an AnnData file.

    Parameters
    ----------
    contexts : ``{name: column of obs}``; kind "number", "date" (years, or text that is a date: AnnData stores no other
        dates), or "bag" for a column of categories or text (one name a cell); or "vector", a dense matrix of obsm.
    labels : column of obs with the true classes.
    layer : read ``layers[layer]`` instead of X, which often has logarithms rather than counts.
    optional : columns that obs or obsm may lack; their contexts are then left out, and so are labels if a cell lacks
        one.
    date_format : format of dates (:func:`mc2core.corpus.building.cells.parse_date`).
    missing : codes of missing values in obs; by default those of pandas.

    Returns
    -------
    Corpus
        ``documents["id"]`` and the vocabulary are the index names of obs and var.

    Raises
    ------
    ValueError
        If the file is damaged or has another layout, if a part of it is in another file, if a column is missing (the
        nearest is named) or has another kind, or if a value is not a count.
    MissingPackage
        If h5py is not installed.
    """
    path = Path(path)
    contexts = contexts or {}
    for one in contexts.values():
        if one.kind not in ("number", "date", "bag", "vector"):
            raise ValueError(f"context column {one.column!r} of an AnnData file cannot be of kind {one.kind!r}")
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    extras.require("h5py", extra="anndata", purpose=path)
    import h5py

    try:
        with h5py.File(path, "r") as file:
            _refuse_outside(file)
            return _read(path, file, contexts, labels, layer, optional, date_format, missing or Missing())
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is not a whole AnnData file: {reason}") from error


def _refuse_outside(group: h5py.Group) -> None:
    """ValueError where anything below a group lies in another file."""
    import h5py

    for name in group:
        link = group.get(name, getlink=True)
        node = group[name] if isinstance(link, h5py.HardLink) else None
        if isinstance(node, h5py.Group):
            _refuse_outside(node)
        is_apart = isinstance(node, h5py.Dataset) and (node.external or node.is_virtual)
        if is_apart or isinstance(link, h5py.ExternalLink):
            raise ValueError(f"{group.file.filename}: {name!r} lies in another file, which is not read")


def _read(
    path: Path,
    file: h5py.File,
    contexts: Mapping[str, ContextColumn],
    labels: str | None,
    layer: str | None,
    optional: Collection[str],
    date_format: str | None,
    missing: Missing,
) -> Corpus:
    obs, var = file["obs"], file["var"]
    places = {name: file.get("obsm", {}) if one.kind == "vector" else obs for name, one in contexts.items()}
    contexts = {name: one for name, one in contexts.items() if one.column in places[name] or one.column not in optional}
    if labels in optional and labels not in obs:
        labels = None
    cells, genes = _strings(obs[obs.attrs["_index"]]), _strings(var[var.attrs["_index"]])
    content = _matrix(path, _child(path, file["layers"], layer) if layer else file["X"], (len(cells), len(genes)))
    vectors = {name: one for name, one in contexts.items() if one.kind == "vector"}
    of_obs = {name: one for name, one in contexts.items() if one.kind != "vector"}
    # the columns of obs go the way of all tables, beside a word that every cell has
    layout = Layout(
        "id", "bag", of_obs, labels, optional=optional, separators={"": None}, date_format=date_format, missing=missing
    )
    columns = [_cells(path, obs, one.column, one.kind, len(cells)) for one in of_obs.values()]
    columns += [] if labels is None else [_cells(path, obs, labels, "bag", len(cells))]
    rows = zip(itertools.repeat("cell", len(cells)), *columns, strict=True)
    placed = ((f"row {number}", row) for number, row in enumerate(rows, start=1))
    found, _ = corpus_of_rows(Corpus, str(path), placed, layout, bad=BadRows(can_allow=True, can_skip=False))
    known = found.contexts | {name: _vectors(path, file, one.column, len(cells)) for name, one in vectors.items()}
    return Corpus(
        content,
        genes,
        contexts={name: known[name] for name in contexts},
        labels=found.labels,
        documents=pd.DataFrame({"id": cells}),
        context_names=found.context_names,
        label_names=found.label_names,
    )


def _cells(path: Path, obs: Any, name: str, kind: str, length: int) -> list[Any]:
    """The values of a column of obs; names are text."""
    values = _column(path, _child(path, obs, name), name, length).tolist()
    return values if kind in NUMBERS else [None if is_null(value) else str(value) for value in values]


def _matrix(path: Path, node: Any, expected: tuple[int, int]) -> sp.csr_matrix:
    kind = node.attrs.get("encoding-type", "array")
    shape = tuple(map(int, node.shape if kind == "array" else node.attrs.get("shape", ())))
    if shape != expected:
        raise ValueError(f"{path}: the matrix is {shape}, but obs has {expected[0]} rows and var {expected[1]}")
    if kind == "array":
        return sp.csr_matrix(_values(node))
    if kind not in ("csr_matrix", "csc_matrix"):
        raise ValueError(f"{path}: the matrix is encoded as {kind!r}; array, csr_matrix and csc_matrix can be read")
    make = sp.csr_matrix if kind == "csr_matrix" else sp.csc_matrix
    matrix = make(tuple(_values(node[part]) for part in ("data", "indices", "indptr")), shape=shape)
    # the constructor leaves the indices unchecked, and a forged one would be followed into other memory
    matrix.check_format(full_check=True)
    return matrix.tocsr()


def _child(path: Path, group: Any, name: str) -> Any:
    if name not in group:
        raise ValueError(f"{path}: {group.name.strip('/')} has no {name!r}{did_you_mean(name, group)}")
    return group[name]


def _values(node: Any, as_text: bool = False) -> Any:
    """All values of a dataset, unless it claims far more than its file could hold."""
    if node.nbytes > MAX_RATIO * max(os.path.getsize(node.file.filename), _SMALL_BYTES):
        raise OverflowError(f"{node.name} claims {node.nbytes} bytes, more than {MAX_RATIO} times the file")
    return (node.asstr() if as_text else node)[()]


def _strings(node: Any) -> list[str]:
    return [str(one) for one in _values(node, as_text=True)]


def _column(path: Path, node: Any, name: str, length: int) -> np.ndarray:
    """A column of obs: numbers (NaN: missing), or objects (None: missing)."""
    kind = node.attrs.get("encoding-type", "array")
    if kind == "categorical":
        categories = _column(path, node["categories"], name, len(node["categories"]))
        codes = _values(node["codes"])
        if codes.min(initial=-1) < -1 or codes.max(initial=-1) >= len(categories):
            raise ValueError(f"{path}: obs column {name!r} has the category {codes.max()}, but {len(categories)} names")
        text = np.array([str(one) for one in categories.tolist()] + [None], dtype=object)
        column = text[codes]
    elif kind.startswith("nullable"):
        numbers = node["values"]
        is_text = kind.endswith("array")
        column = _values(numbers, as_text=is_text).astype(object)
        column[_values(node["mask"])] = None
    elif kind == "string-array" or node.dtype.kind in "OSU":
        column = np.array(_strings(node), dtype=object)
    else:
        column = np.asarray(_values(node))
    if column.shape != (length,):
        raise ValueError(f"{path}: obs column {name!r} has the shape {column.shape}; {length} values are needed")
    return column


def _vectors(path: Path, file: h5py.File, key: str, length: int) -> np.ndarray:
    """A matrix of obsm as (J, D) float64."""
    if "obsm" not in file:
        raise ValueError(f"{path} has no obsm, where vectors stand")
    node = _child(path, file["obsm"], key)
    kind = node.attrs.get("encoding-type", "array")
    if kind != "array":
        raise ValueError(f"{path}: obsm {key!r} is encoded as {kind!r}; a dense matrix (array) is needed")
    if node.ndim != 2 or node.shape[0] != length or node.dtype.kind not in "iuf":
        raise ValueError(f"{path}: obsm {key!r} holds {node.shape} {node.dtype}; numbers in {length} rows are needed")
    return np.asarray(_values(node), np.float64)
