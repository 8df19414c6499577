"""Sentence embeddings as a context: vectors of length 1, reduced to principal components of unit variance.

The projection is stored with the corpus and its fits, in ``imported``, so that embeddings of new documents are reduced
in the same way.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mc2core.base.checks import counted
from mc2core.compute.threads import thread_budget
from mc2core.corpus.checks import check_context_name

if TYPE_CHECKING:
    from mc2core.corpus.corpus import Corpus

#: key of the projection in ``Corpus.imported``, and default name of the context
KEY, NAME = "embeddings", "embedding"
#: largest number of components (docs/notes/embeddings.md)
MAX_COMPONENTS = 20
#: largest number of coordinates of an embedding; principal components of longer vectors need gigabytes
MAX_LENGTH = 16_384
_BLOCK = 4096  # number of vectors with a float64 copy at a time
_NEGLIGIBLE = 1e-9  # share of the largest variance: smaller variances are rounding errors


class Projection(NamedTuple):
    """Projection of an embedding x to the d components of a context: ``(x / |x| - centre) @ basis``.

    ``name`` is the name of the context. ``centre`` (D,) and ``basis`` (D, d) are float32. ``explained`` is the share of
    the variance that the d components explain.
    """

    name: str
    centre: np.ndarray
    basis: np.ndarray
    explained: float

    @classmethod
    def from_vectors(cls, vectors: np.ndarray) -> Projection:
        """Compute the projection to the principal components of ``vectors`` (n, D), checked by :func:`check_vectors`.

        Raises ValueError if all vectors have the same direction.
        """
        length = vectors.shape[1]
        total, products, n = np.zeros(length), np.zeros((length, length)), 0
        with thread_budget(1):  # fixes the order of sums
            for _, rows in _directions(vectors):
                total += rows.sum(axis=0)
                products += rows.T @ rows
                n += len(rows)
            if not n:
                raise ValueError("embeddings: no document has a vector other than zeros")
            centre = total / n
            variance, components = np.linalg.eigh(products / n - np.outer(centre, centre))
        variance, components = variance[::-1], components[:, ::-1]
        sum_of_all = float(np.maximum(variance, 0.0).sum())
        axes = np.flatnonzero(variance > max(_NEGLIGIBLE * variance[0], np.finfo(np.float32).eps ** 2))
        axes = axes[: min(MAX_COMPONENTS, n - 1)]
        if not len(axes):
            raise ValueError(f"embeddings: the vectors of all {n:,} documents point in the same direction")
        components = components[:, axes]
        largest = np.abs(components).argmax(axis=0)
        components *= np.sign(components[largest, np.arange(len(axes))])  # signs must not depend on libraries
        basis = components / np.sqrt(variance[axes])
        explained = float(variance[axes].sum()) / sum_of_all
        return cls(NAME, centre.astype(np.float32), basis.astype(np.float32), round(explained, 6))

    @property
    def length(self) -> int:
        """Number of coordinates D of an embedding."""
        return len(self.centre)

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations of the components before they were scaled to 1, (d,)."""
        sd: np.ndarray = 1.0 / np.linalg.norm(self.basis, axis=0)
        return sd

    def apply(self, vectors: Any) -> np.ndarray:
        """Return the components of each of ``vectors`` (n, D), (n, d) float64, NaN for missing vectors.

        Raises ValueError if the vectors are invalid (:func:`check_vectors`) or have another length.
        """
        checked = check_vectors(vectors)
        if checked.shape[1] != self.length:
            size = counted(checked.shape[1], "numbers")
            raise ValueError(f"embeddings have {size}, but earlier ones have {self.length:,}")
        reduced = np.full((len(checked), self.basis.shape[1]), np.nan)
        centre, basis = self.centre.astype(np.float64), np.ascontiguousarray(self.basis, dtype=np.float64)
        with thread_budget(1):
            for documents, rows in _directions(checked):
                # with einsum, the result for a document does not depend on the number of other documents
                reduced[documents] = np.einsum("nd,dk->nk", rows - centre, basis)
        return reduced

    def stored(self) -> dict[str, Any]:
        """Return the projection in the form that ``imported`` stores."""
        arrays = {
            part: base64.b64encode(getattr(self, part).astype("<f4").tobytes()).decode() for part in ("centre", "basis")
        }
        return {"name": self.name, "length": self.length, "explained": self.explained, **arrays}


def projection_of(imported: Mapping[str, Any] | None) -> Projection | None:
    """Return the projection that is stored in ``imported``; None without embeddings.

    Raises ValueError if the stored projection is damaged.
    """
    stored = (imported or {}).get(KEY)
    if stored is None:
        return None
    try:
        name, explained = check_context_name(stored["name"]), float(stored["explained"])
        centre, basis = (
            np.frombuffer(base64.b64decode(stored[part], validate=True), "<f4") for part in ("centre", "basis")
        )
        if not len(centre) == stored["length"] > 0 or not len(basis):
            raise ValueError("its arrays are of another length")
        basis = basis.reshape(len(centre), -1)
        if not (np.isfinite(centre).all() and np.isfinite(basis).all()):
            raise ValueError("it holds numbers that are not finite")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the stored reduction of embeddings is damaged: {error}") from error
    return Projection(name, centre, basis, explained)


def directions_of(corpus: Corpus, names: Collection[str], imported: Mapping[str, Any] | None) -> np.ndarray | None:
    """Return the reduced embeddings of documents, unscaled components divided by their length, (J, d), 0 if missing.

    The result is None unless the context of embeddings is in ``names`` and in the corpus.
    """
    projection = projection_of(imported)
    if projection is None or projection.name not in names or projection.name not in corpus.contexts:
        return None
    centre, scale = corpus.units.get(projection.name, (0.0, 1.0))
    values = np.asarray(corpus.contexts[projection.name]) * np.asarray(scale) + np.asarray(centre)
    vectors: np.ndarray = np.nan_to_num(values) * projection.sd
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


def check_reduction(corpus: Corpus, known: Mapping[str, Any] | None, names: Collection[str], what: str) -> None:
    """Raise ValueError if the embeddings of ``corpus`` were not reduced by the projection ``known``.

    Embeddings are checked only if their context is in ``names``. ``what`` is the corpus or model with the projection
    ``known``, for the message.
    """
    record = (corpus.imported or {}).get(KEY)
    name = (known or record or {}).get("name")
    if record == known or name not in names or name not in corpus.contexts:
        return
    option = "--embeddings FILE.npy (in Python embeddings=)" if known else f"--context {name}=FILE.npy:vector"
    raise ValueError(
        f"the vectors of context {name!r} were not reduced like those of {what}; read the documents with --like (in "
        f"Python like=) and give their vectors by {option}"
    )


def check_vectors(vectors: Any, rows: int | None = None) -> np.ndarray:
    """Return ``vectors`` as an (n, D) array without copying.

    Raises ValueError unless ``vectors`` is a matrix of numbers with ``rows`` rows. Values are checked when rows are
    read.
    """
    try:
        array = np.asarray(vectors)
    except ValueError as error:
        raise ValueError(f"embeddings must be a matrix of numbers: {error}") from error
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise ValueError(
            f"embeddings hold {array.ndim}-dimensional {array.dtype}; a dense matrix of numbers with a row for each "
            "document is needed"
        )
    if rows is not None and len(array) != rows:
        raise ValueError(
            f"embeddings have {counted(len(array), 'rows')}, but the corpus has {counted(rows, 'documents')}"
        )
    if not 0 < array.shape[1] <= MAX_LENGTH:
        raise ValueError(f"embeddings have {array.shape[1]:,} columns; 1 to {MAX_LENGTH:,} are allowed")
    return array


def _directions(vectors: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of documents and their vectors scaled to length 1, (n, D) float64, in blocks.

    Missing vectors and zeros, which have no direction, are left out. Raises ValueError, with the document, if a vector
    has infinite numbers or only some missing numbers.
    """
    for first in range(0, len(vectors), _BLOCK):
        rows = np.asarray(vectors[first : first + _BLOCK], dtype=np.float64)
        missing = np.isnan(rows)
        is_missing = missing.all(axis=1)
        wrong = np.flatnonzero(np.isinf(rows).any(axis=1) | (missing.any(axis=1) & ~is_missing))
        if len(wrong):
            kind = "infinite" if np.isinf(rows[wrong[0]]).any() else "NaN"
            raise ValueError(
                f"embeddings: document {first + wrong[0]} has a number that is {kind}; a row of NaN is a missing vector"
            )
        largest = np.where(is_missing, 0.0, np.abs(rows).max(axis=1, initial=0.0))
        nonzero = np.flatnonzero(largest > 0.0)
        rows = rows[nonzero] / largest[nonzero, None]
        yield first + nonzero, rows / np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
