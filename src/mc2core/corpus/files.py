"""The folder of a saved corpus: arrays as .npy, tables as text, and corpus.json with descriptions and digests."""

from __future__ import annotations

import csv
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.checks import choice, counted
from mc2core.corpus.checks import (
    CONTENT_KINDS,
    Context,
    check_context_name,
    check_kind_of_values,
    check_unit,
    csr_of,
)

# pandas is imported on use, because it takes long to load
if TYPE_CHECKING:
    import pandas as pd

    from mc2core.corpus.corpus import Corpus

FORMAT = "mc2core corpus 1"
#: pattern of the names of files that ``Corpus.save`` and ``mc2 import`` write to the folder of a corpus
CORPUS_FILES = (
    r"corpus\.json|index\.csv|(observations|(content|labels|context\.[^/]+)(\.(data|indices|indptr))?)\.npy"
    r"|context\.[^/]+\.names\.txt|(label_names|vocabulary)\.txt|documents\.csv|datasheet\.md|bad_rows\.tsv"
)
#: name of the file that every folder of a corpus has
META = "corpus.json"
_LOADS = 3  # number of attempts to load a folder that another process replaces meanwhile
_CHUNK = 1 << 18  # number of entries that are checked together, which stay in the processor's cache
_LARGEST = 2**31 - 1


def save(folder: str | os.PathLike[str], corpus: Corpus) -> None:
    """Write a corpus to ``folder``, and replace a corpus in this folder.

    Raises ValueError if the folder contains other files than a corpus, or if names of contexts differ only in case.
    """
    alike: dict[str, str] = {}
    for name in corpus.contexts:
        first = alike.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
        if first != name:
            raise ValueError(
                f"contexts {first!r} and {name!r} differ only in case, which some file systems ignore; "
                "rename one of them"
            )
    content, contexts, labels = corpus.content, corpus.contexts, corpus.labels
    meta: dict[str, Any] = {
        "format": FORMAT,
        "shape": list(content.shape),
        "n_tokens": int(content.data.sum(dtype=np.int64)),
        "digest": corpus.digest,
        "contexts": {name: _shape_of(context) for name, context in contexts.items()},
        "context_names": sorted(corpus.context_names),
        "units": {name: list(unit) for name, unit in corpus.units.items()},
        "labels": None if labels is None else (list(labels.shape) if sp.issparse(labels) else "one"),
    }
    if corpus.imported is not None:
        meta["imported"] = corpus.imported
    if corpus.index is not None:
        meta["index"] = str(corpus.index.dtype) if _is_plain(corpus.index) else "object"
        meta["index_name"] = None if corpus.index.name is None else str(corpus.index.name)
    if corpus.observations is not None:
        meta["observations"] = {"kind": corpus.content_kind, "length": corpus.observations.shape[1]}
    documents = corpus.documents
    words = corpus.vocabulary if corpus.has_vocabulary else None
    meta["documents"] = {str(name): str(dtype) for name, dtype in documents.dtypes.items()}
    names = {f"context.{name}.names": column for name, column in corpus.context_names.items()}
    arrays = {"content": content, "observations": corpus.observations, "labels": labels}
    arrays |= {f"context.{name}": context for name, context in contexts.items()}
    with storage.replacing_folder(folder, CORPUS_FILES, META) as new:
        for name, array in arrays.items():
            if array is not None:
                save_context(new, name, array)
        for name, column in (*names.items(), ("label_names", corpus.label_names), ("vocabulary", words)):
            if column is not None:
                write_names(new / f"{name}.txt", column)
        if len(documents.columns):
            # texts are quoted, because a carriage return in a title would end the row
            documents.to_csv(new / "documents.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
        if corpus.index is not None:
            labels_of_rows = corpus.index if _is_plain(corpus.index) else corpus.index.map(str)
            labels_of_rows.to_frame(name="index").to_csv(new / "index.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
        write_meta(new, meta)


def load(folder: str | os.PathLike[str], verify: bool) -> dict[str, Any]:
    """Return the attributes of the corpus in a folder (:meth:`mc2core.Corpus.load`). Arrays are memory-mapped."""
    folder = Path(folder)
    for _ in range(_LOADS):
        meta = read_meta(folder)
        try:
            stored = _open(folder, meta, verify)
        except (OSError, ValueError):
            if _is_in_place(folder, meta):
                raise
        else:
            if _is_in_place(folder, meta):
                return stored
    raise ValueError(f"{folder} was replaced by another process each time it was read; load it again later")


def _open(folder: Path, meta: Mapping[str, Any], verify: bool) -> dict[str, Any]:
    """Return the attributes of the corpus in ``folder`` that corpus.json describes as ``meta``."""
    if verify:
        check_files(folder, meta)
    rows, columns = meta["shape"]
    table = DocumentTable.mapped(folder / "documents.csv", meta["documents"]) if meta["documents"] else None
    content = load_context(folder, "content", rows, [rows, columns])
    observations, kind = None, "words"
    if (described := meta.get("observations")) is not None:
        observations, kind = load_observations(folder, content, described)
    words = folder / "vocabulary.txt"
    has_words = words.name in meta["files"] if "files" in meta else words.exists()
    n_words = columns if observations is None else observations.shape[1]
    vocabulary = read_names(words, n_words) if has_words else None
    contexts = {name: load_context(folder, f"context.{name}", rows, shape) for name, shape in meta["contexts"].items()}
    for name in meta["context_names"]:
        if not isinstance(meta["contexts"].get(name), list):
            raise ValueError(f"{folder}/corpus.json names the columns of {name!r}, which is not a count context")
    context_names = {
        name: read_names(folder / f"context.{name}.names.txt", contexts[name].shape[1])
        for name in meta["context_names"]
    }
    index = read_index(folder, rows, meta["index"], meta.get("index_name")) if "index" in meta else None
    labels = None if meta["labels"] is None else load_labels(folder, rows, meta["labels"])
    label_names = read_label_names(folder, labels)
    units = {
        name: check_unit(unit, shape if isinstance(shape := _shape_of(contexts[name]), int) else None)
        for name, unit in meta["units"].items()
    }
    check_meta(folder, meta, int(content.data.sum(dtype=np.int64)))
    return {
        "content": content, "observations": observations, "content_kind": kind, "contexts": contexts,
        "context_names": context_names, "units": units, "labels": labels, "label_names": label_names, "index": index,
        "imported": meta.get("imported"), "_vocabulary": vocabulary, "_digest": meta["digest"], "_table": table,
        "_documents": None, "_origin": None,
    }  # fmt: skip


# -- arrays ------------------------------------------------------------------------------------------------------------
def _shape_of(context: Context) -> Any:
    """Return the shape of a matrix of counts, the length of vectors, or None for numbers."""
    return list(context.shape) if sp.issparse(context) else context.shape[1] if context.ndim == 2 else None


def save_context(folder: Path, name: str, context: Context) -> None:
    """Write a context into ``folder``: numbers or vectors as NAME.npy, counts as three arrays of CSR."""
    if not sp.issparse(context):
        return storage.write_array(folder / f"{name}.npy", context)
    for part, dtype in (("indptr", np.int64), ("indices", np.int32), ("data", np.int32)):
        storage.write_array(folder / f"{name}.{part}.npy", getattr(context, part).astype(dtype, copy=False))


def _map_array(path: Path, dtype: Any, *shape: int) -> np.ndarray:
    array = storage.map_array(path)
    if array.shape != shape or array.dtype != dtype:
        needed = " x ".join(map(str, shape))
        raise ValueError(f"{path} holds {array.shape} {array.dtype}; {needed} values of {np.dtype(dtype)} are needed")
    return array


def _load_sparse(folder: Path, name: str, shape: tuple[int, int]) -> sp.csr_matrix:
    indptr = np.array(_map_array(folder / f"{name}.indptr.npy", np.int64, shape[0] + 1))
    if indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{folder / name}.indptr.npy does not rise from 0")
    indices = _map_array(folder / f"{name}.indices.npy", np.int32, int(indptr[-1]))
    data = _map_array(folder / f"{name}.data.npy", np.int32, int(indptr[-1]))
    check_entries(f"{folder / name}", indptr, indices, data, shape[1])
    matrix = csr_of(indptr, indices, data, shape[1])
    matrix.has_canonical_format = True
    return matrix


def check_entries(name: str, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_columns: int) -> None:
    """Raise ValueError unless the entries of a CSR matrix are valid.

    In each row, column indices must increase strictly from at least 0 to at most ``n_columns`` - 1. Counts must be at
    least 1. All entries are read once; 60 million entries take 0.4 s if they are in the page cache.
    """
    for first in range(0, len(indices), _CHUNK):
        # one more entry, to compare with the first entry of the next chunk
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
    """Open a context, memory-mapped, and check its values.

    ``shape`` is the shape of a matrix of counts, the length of vectors, or None for numbers.
    """
    is_vector = isinstance(shape, int) and not isinstance(shape, bool) and 0 < shape <= _LARGEST
    if shape is not None and not is_vector:
        if not isinstance(shape, list) or len(shape) != 2 or shape[0] != rows or not isinstance(shape[1], int):
            raise ValueError(f"{folder}/corpus.json gives {name} the shape {shape}, but there are {rows} documents")
        return _load_sparse(folder, name, (rows, shape[1]))
    values = _map_array(folder / f"{name}.npy", np.float64, *((rows, shape) if is_vector else (rows,)))
    if np.isinf(values).any():
        row = int(np.nonzero(np.isinf(values))[0][0])
        raise ValueError(f"{folder / name}.npy is infinite at document {row}; NaN stands for a missing value")
    return values


def load_observations(folder: Path, content: sp.csr_matrix, described: Any) -> tuple[np.ndarray, str]:
    """Return the observations, (N, D) float64, memory-mapped, and their kind, which ``described`` contains.

    Raises ValueError if a value is not of this kind, or if ``content`` does not have one column per observation.
    """
    if not isinstance(described, dict) or described.keys() != {"kind", "length"}:
        raise ValueError(f"{folder}/{META}: observations must have the keys kind and length; found {described!r}")
    n, kind, length = content.shape[1], choice("kind", described["kind"], CONTENT_KINDS), described["length"]
    values = load_context(folder, "observations", n, length)
    if np.ndim(values) != 2 or np.isnan(values).any():
        raise ValueError(f"{folder}/observations.npy holds NaN, or {META} gives its rows the length {length}")
    if content.nnz != n or (content.indices != np.arange(n)).any() or content.data.max(initial=1) > 1:
        raise ValueError(f"{folder}: the content does not count each of {n} observations once, document by document")
    check_kind_of_values(values, kind)
    return values, kind


def load_labels(folder: Path, rows: int, shape: Any) -> Context:
    """Open the labels. ``shape`` is the shape of the membership matrix, or "one" if each document has one label."""
    if shape != "one":
        return load_context(folder, "labels", rows, shape)
    labels = _map_array(folder / "labels.npy", np.int64, rows)
    if rows and labels.min() < 0:
        raise ValueError(f"{folder}/labels.npy holds {labels.min()}; a label is a whole number of at least 0")
    return labels


def read_label_names(folder: Path, labels: Context) -> list[str] | None:
    """Return the names of the labels; None if they have no names."""
    path = folder / "label_names.txt"
    if labels is None or not path.exists():
        return None
    if sp.issparse(labels):
        return read_names(path, labels.shape[1])
    names, last = read_names(path, None), int(labels.max(initial=-1))
    if last >= len(names):
        raise ValueError(f"{path} has {counted(len(names), 'lines')}, but labels go up to {last}")
    return names


def write_names(path: Path, names: Sequence[str]) -> None:
    """Write names as UTF-8 text, one per line."""
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def read_names(path: Path, length: int | None) -> list[str]:
    """Read a file of :func:`write_names`. Raises ValueError if it is missing, damaged, or does not have ``length``
    lines."""
    try:
        names = path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    if length is not None and len(names) != length:
        raise ValueError(f"{path} has {counted(len(names), 'lines')}; needed: {length:,}")
    return names


class DocumentTable(NamedTuple):
    """The table of documents of a saved corpus: the bytes of its file, and the types of its columns."""

    path: Path
    data: np.ndarray
    dtypes: Mapping[str, str]

    @classmethod
    def mapped(cls, path: Path, dtypes: Mapping[str, str]) -> DocumentTable:
        """Memory-map a file, which stays readable if the folder is replaced. Raises ValueError if it is missing."""
        try:
            return cls(path, np.memmap(path, np.uint8, "r"), dtypes)
        except FileNotFoundError:
            raise ValueError(f"{path} is missing") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error

    def blocks(self, rows: int, together: int) -> Iterator[pd.DataFrame]:
        """Yield blocks of ``together`` rows, with the saved types of the columns.

        Raises ValueError if the file is damaged or does not have ``rows`` rows.
        """
        import pandas as pd

        n_rows = 0
        text = {name: str for name, dtype in self.dtypes.items() if dtype in ("object", "str", "string")}
        try:
            with pd.read_csv(
                io.BufferedReader(_Bytes(self.data)),
                dtype=text,
                keep_default_na=False,
                na_values={name: [""] for name in self.dtypes if name not in text},
                chunksize=together,
            ) as blocks:
                for block in blocks:
                    n_rows += len(block)
                    yield block
        except (ValueError, pd.errors.ParserError) as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error
        if n_rows != rows:
            size, needed = counted(n_rows, "rows"), counted(rows, "documents")
            raise ValueError(f"{self.path} has {size}, but the corpus has {needed}")


def _is_plain(index: Any) -> bool:
    """Return whether the type of an index can be restored from text; other indices are restored as texts."""
    kind = getattr(index.dtype, "kind", "O")
    dtype = str(index.dtype)
    is_date = dtype.startswith("datetime64[") and "," not in dtype  # dates without a time zone
    return index.nlevels == 1 and (kind in "iuf" or is_date or dtype in ("str", "string"))


def read_index(folder: Path, rows: int, dtype: Any, name: Any) -> Any:
    """Return the index of the documents. Raises ValueError if it is damaged or does not have ``rows`` entries."""
    import pandas as pd

    path, is_date = folder / "index.csv", str(dtype).startswith("datetime64")
    try:
        kind, missing = str if is_date or dtype == "object" else dtype, [""] if str(dtype).startswith("float") else None
        column = pd.read_csv(path, dtype=kind, keep_default_na=False, na_values=missing)["index"]
        index = pd.Index(pd.to_datetime(column).astype(dtype) if is_date else column).rename(name)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is missing or damaged: {error}") from error
    if len(index) != rows:
        raise ValueError(f"{path} has {counted(len(index), 'rows')}, but the corpus has {counted(rows, 'documents')}")
    return index


class _Bytes(io.RawIOBase):
    """A read-only file object on the bytes of an array, without a copy."""

    def __init__(self, data: np.ndarray) -> None:
        self._data, self._at = data.data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def taken(blocks: Iterable[pd.DataFrame], rows: np.ndarray) -> pd.DataFrame:
    """Return the rows ``rows`` (n,) of a table, in this order. ``blocks`` are the consecutive blocks of the table."""
    import pandas as pd

    order, parts, first = np.argsort(rows, kind="stable"), [], 0
    ascending = rows[order]
    for block in blocks:
        last = first + len(block)
        low, high = np.searchsorted(ascending, [first, last])
        parts.append(block.iloc[ascending[low:high] - first])
        first = last
    return pd.concat(parts).iloc[np.argsort(order)].reset_index(drop=True)


# -- corpus.json -------------------------------------------------------------------------------------------------------
def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Write corpus.json with ``meta``, the SHA-256 of each file in the folder, and a checksum of both."""
    files = {file.name: storage.digest_file(file) for file in sorted(folder.iterdir()) if file.is_file()}
    signed = {**meta, "files": files}
    storage.write_json(folder / META, signed | {"checksum": storage.digest_value(signed)})


def read_meta(folder: Path) -> dict[str, Any]:
    """Read corpus.json. Raises ValueError if a field is missing or has the wrong type.

    The fields "files" and "checksum" may be absent, because older corpora do not have them.
    """
    if not (folder / META).is_file():
        raise ValueError(f"{folder} holds no corpus: {_no_corpus(folder)}")
    meta = storage.read_json(folder / META)
    try:
        storage.check_format(meta.get("format") if isinstance(meta, dict) else None, FORMAT)
    except ValueError as error:
        raise ValueError(f"{folder}/{META} cannot be read: {error}") from None
    try:
        rows, columns = meta["shape"]
        if not all(isinstance(size, int) and 0 <= size <= _LARGEST for size in (rows, columns)):
            raise ValueError(f"the shape is {meta['shape']}")
        for name in (*meta["contexts"], *meta["context_names"]):
            check_context_name(name)
        for name, unit in meta["units"].items():
            shape = meta["contexts"][name]
            check_unit(unit, shape if isinstance(shape, int) else None)
        for name, text in {"digest": meta["digest"], **meta["documents"], **meta.get("files", {})}.items():
            if not isinstance(text, str):
                raise ValueError(f"{name!r} is {text!r}")
        if strange := [name for name in meta.get("files", {}) if not re.fullmatch(CORPUS_FILES, name)]:
            raise ValueError(f"{strange[0]!r} is not a file of a corpus")
        if not (meta["labels"] is None or meta["labels"] == "one" or isinstance(meta["labels"], list)):
            raise ValueError(f"the labels are {meta['labels']!r}")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{folder}/{META} lacks a field or holds a wrong one: {error}") from error
    return meta


def _is_in_place(folder: Path, meta: Mapping[str, Any]) -> bool:
    """Return whether corpus.json has not changed since it was read as ``meta``."""
    try:
        return bool(storage.read_json(folder / META) == meta)
    except (OSError, ValueError):
        return False


def _no_corpus(folder: Path) -> str:
    """Return a phrase on why ``folder`` is not the folder of a corpus."""
    if folder.is_file():
        return "it is a file; mc2 import makes the folder of a corpus of documents"
    is_fit = (folder / "posterior.npz").is_file()
    return f"{META} is missing" + ("; it is the folder of a fit" if is_fit else "")


def check_meta(folder: Path, meta: Mapping[str, Any], n_tokens: int) -> None:
    """Raise ValueError if corpus.json was changed, or if the sum of counts is not the sum in corpus.json."""
    recorded = meta.get("n_tokens", n_tokens)
    if recorded != n_tokens:
        tokens = counted(n_tokens, "tokens")
        raise ValueError(f"{folder} was changed after it was saved: it has {tokens}, but {META} says {recorded}")
    signed = {name: value for name, value in meta.items() if name != "checksum"}
    is_signed = "checksum" in meta or "files" in meta
    if is_signed and meta.get("checksum") != storage.digest_value(signed):
        raise ValueError(f"{folder}/{META} was changed after it was saved: its checksum differs")


def check_files(folder: Path, meta: Mapping[str, Any]) -> None:
    """Raise ValueError if a file was changed after it was saved."""
    for name, digest in meta.get("files", {}).items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} is missing")
        if storage.digest_file(path) != digest:
            raise ValueError(f"{path} was changed after it was saved: its digest differs")
