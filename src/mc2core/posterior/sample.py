"""Samples: draws from the posterior, or its mean, as scores use them, and their form on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.storage import Stored
from mc2core.families import ContentFamily, family_from_settings, family_settings
from mc2core.families.contents import Contents


@dataclass(frozen=True)
class SparseRows:
    """A dense (K, D) float64 matrix, stored as the smallest value of each column and all entries above it.

    Natural parameters of a Dirichlet are its prior, which is the smallest value, plus counts. Most counts are 0: of
    12,000 authors, a cluster has only some dozens. The dense matrix is recovered exactly.

    Attributes
    ----------
    least : (D,) float64
    above : (K, D) float64 CSR, the values (not differences) of the entries that are not ``least``
    """

    least: np.ndarray
    above: sp.csr_matrix

    @classmethod
    def of(cls, dense: np.ndarray) -> SparseRows:
        """Build it from a (K, D) matrix with K >= 1."""
        dense = np.asarray(dense, np.float64)
        least = dense.min(axis=0)
        row, column = np.nonzero(dense != least)
        start = np.searchsorted(row, np.arange(len(dense) + 1))
        return cls(least, sp.csr_matrix((dense[row, column], column.astype(np.int32), start), shape=dense.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (K, D)."""
        return self.above.shape

    def dense(self, columns: slice = slice(None)) -> np.ndarray:
        """Return the dense (K, D) float64 matrix, or some of its columns."""
        rows = np.tile(self.least, (self.shape[0], 1))
        # not by a sum: an entry may be 0
        rows[np.repeat(np.arange(self.shape[0]), np.diff(self.above.indptr)), self.above.indices] = self.above.data
        return rows[:, columns]


@dataclass(frozen=True)
class Sample:
    """One draw of the posterior (Gibbs) or the posterior mean (SVI), given which documents are independent.

    Attributes
    ----------
    cluster_weights : (K,) float64, sums to 1
        E[pi_k] over the clusters in use.
    new_cluster_weight : float
        Mass of a new cluster: group_concentration / (J + group_concentration), or 0. It is 1 if every document has
        topic proportions of its own.
    topic_given_cluster : (K, M) float64, rows sum to 1, dense or CSR
        E[tau_km] over the topics in use; with a document level, given the tables of documents. It is sparse if every
        cluster is a topic of its own.
    new_topic_weight : (K,) float64
        Mass of a new topic in each cluster; a new topic is uniform over words.
    topic_words : (M, V) CSR or dense, >= 0
        Counts (or pseudo-counts) of words in topics, without the prior.
    topic_word_prior : float
        s: word_given_topic = (topic_words + s) / (its row sum).
    topic_weights : (M,) float64, sums to less than 1
        epsilon_m; 1 - sum is the mass of topics not in use.
    table_concentration : float
        v: the proportions of a cluster, or of a document in an admixture, are drawn from DP(v, epsilon).
    contexts : SparseRows, (K, D)
        Posterior natural parameters of the stacked contexts of each cluster; :attr:`natural` gives them dense.
    cluster : (J,) int32
        Cluster of each training document.
    log_joint : float
        Log joint (Gibbs) or ELBO (SVI) in nats.
    document_concentration : float
        omega: a document in cluster k draws its proportions from DP(omega, tau_k); inf if it shares tau_k.
    burst_concentration : float
        b: a document draws each word from its topics with probability b / (i + b), i words having gone before, or else
        repeats one of them; inf if words do not repeat. ``topic_words`` then counts draws.
    contents : Contents or None
        Parameters of topics that emit observations; ``topic_words`` is then empty.
    """

    cluster_weights: np.ndarray
    new_cluster_weight: float
    topic_given_cluster: Any
    new_topic_weight: np.ndarray
    topic_words: Any
    topic_word_prior: float
    topic_weights: np.ndarray
    table_concentration: float
    contexts: SparseRows
    cluster: np.ndarray
    log_joint: float = float("nan")
    document_concentration: float = float("inf")
    burst_concentration: float = float("inf")
    contents: Contents | None = None

    @property
    def n_clusters(self) -> int:
        """Number K of clusters in use."""
        return len(self.cluster_weights)

    @property
    def n_topics(self) -> int:
        """Number M of topics in use."""
        return len(self.topic_weights)

    @property
    def natural(self) -> np.ndarray:
        """(K, D) float64: posterior natural parameters of the stacked contexts of each cluster."""
        return self.contexts.dense()

    @property
    def is_admixture(self) -> bool:
        """Whether documents have their own topic proportions and no clusters, as in the HDP and LDA."""
        return self.new_cluster_weight == 1.0

    @property
    def has_document_level(self) -> bool:
        """Whether the proportions of a document are drawn from DP(omega, tau_k) of its cluster k."""
        return self.document_concentration < np.inf

    @property
    def has_repeats(self) -> bool:
        """Whether a document may repeat its words without drawing them from its topics."""
        return self.burst_concentration < np.inf

    @property
    def documents_are_clusters(self) -> bool:
        """Whether each training document is a cluster of its own: the HDP."""
        return self.is_admixture and self.n_clusters == len(self.cluster)

    @property
    def word_given_topic(self) -> np.ndarray:
        """Word distributions of topics, (M, V) float64. Raises ValueError if topics emit observations."""
        self.need_words()
        counts = self.topic_words.toarray() if sp.issparse(self.topic_words) else np.asarray(self.topic_words)
        counts = counts + np.float64(self.topic_word_prior)
        return counts / counts.sum(axis=1, keepdims=True)

    def need_words(self) -> None:
        """Raise ValueError if topics emit observations instead of words."""
        if self.contents is not None:
            raise ValueError("topics emit observations, not words: their numbers are in posterior.contents")


_SAMPLE_SCALARS = (
    "new_cluster_weight",
    "topic_word_prior",
    "table_concentration",
    "log_joint",
    "document_concentration",
)
_SHARED = 0.0  # stored value of an infinite document_concentration


_SAMPLE_ARRAYS = ("cluster_weights", "new_topic_weight", "topic_weights", "cluster")


_SAMPLE_TABLES = {"topic_given_cluster": "topic_given_cluster", "topic_words": "words"}  # field: name on disk


def pack_sample(sample: Sample, prefix: str) -> dict[str, np.ndarray]:
    """Return a sample as plain arrays with names that start with ``prefix``."""
    arrays = {f"{prefix}{name}": getattr(sample, name) for name in _SAMPLE_ARRAYS}
    arrays[f"{prefix}scalars"] = np.array([getattr(sample, name) for name in _SAMPLE_SCALARS])
    if sample.document_concentration == np.inf:
        arrays[f"{prefix}scalars"][-1] = _SHARED
    if sample.has_repeats:
        arrays[f"{prefix}burst_concentration"] = np.array(sample.burst_concentration)
    for field_name, name in _SAMPLE_TABLES.items():
        table = getattr(sample, field_name)
        if sp.issparse(table):
            arrays |= _pack_csr(f"{prefix}{name}", sp.csr_matrix(table))
        else:
            arrays[f"{prefix}{name}"] = table
    if (contents := sample.contents) is not None:
        settings = np.array(json.dumps(family_settings(contents.family)))
        arrays |= {f"{prefix}contents.{name}": getattr(contents, name) for name in _DESCRIBED_CONTENTS}
        arrays[f"{prefix}contents.family"] = settings
    arrays[f"{prefix}natural.least"] = sample.contexts.least
    return arrays | _pack_csr(f"{prefix}natural.above", sample.contexts.above)


def _pack_csr(name: str, table: sp.csr_matrix) -> dict[str, np.ndarray]:
    parts = {f"{name}.{part}": getattr(table, part) for part in ("indptr", "indices", "data")}
    return parts | {f"{name}.shape": np.array(table.shape)}


def _unpack_csr(arrays: Mapping[str, np.ndarray], name: str) -> sp.csr_matrix:
    """Raise ValueError if a part is missing, or if an index lies outside the matrix."""
    storage.check_arrays(arrays, {f"{name}.{part}": one for part, one in _DESCRIBED_CSR.items()}, {})
    data, indices, indptr, shape = (arrays[f"{name}.{part}"] for part in _DESCRIBED_CSR)
    matrix = sp.csr_matrix((data, indices, indptr), shape=tuple(shape))
    if matrix.nnz != len(data):
        raise ValueError(f"{name!r} holds {len(data)} entries; {matrix.nnz} are needed")
    matrix.check_format(full_check=True)
    return matrix


_DESCRIBED_CSR = {
    "data": Stored("n", "N"),
    "indices": Stored("i", "N"),
    "indptr": Stored("i", "R"),
    "shape": Stored("i", "2"),
}
_DESCRIBED = {
    "cluster_weights": Stored("f", "K"),
    "topic_weights": Stored("f", "M"),
    "new_topic_weight": Stored("f", "K"),
    "cluster": Stored("i", "J", below="K"),
    "scalars": Stored("f", str(len(_SAMPLE_SCALARS))),
}
_DESCRIBED_CONTENTS = {"centre": Stored("f", "V"), "scale": Stored("f", "V"), "natural": Stored("f", "M P")}
_DESCRIBED_TABLES = {"topic_given_cluster": Stored("f", "K M"), "words": Stored("n", "M V")}


def _unpack_contents(stored: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Contents | None:
    """Return the contents from stored arrays; None if topics emit words."""
    if "contents.family" not in stored:
        return None
    described = {f"contents.{name}": one for name, one in _DESCRIBED_CONTENTS.items()}
    family = family_from_settings(storage.parse_json(str(stored["contents.family"])))
    if not isinstance(family, ContentFamily):
        raise ValueError(f"'contents' has the family {family!r}, which is not a family of observations")
    storage.check_arrays(stored, described, {**sizes, "P": family.n_parameters(sizes["V"])})
    return Contents(family, *(stored[name] for name in described))


def unpack_sample(arrays: Mapping[str, np.ndarray], prefix: str, sizes: Mapping[str, int]) -> Sample:
    """Return the sample that :func:`pack_sample` packed.

    ``sizes`` contains J, V and D if they are known. Raises ValueError if an array is missing or has a wrong shape or
    type.
    """
    stored = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    try:
        sizes = storage.check_arrays(stored, _DESCRIBED, sizes)
        fields: dict[str, Any] = {name: stored[name] for name in _SAMPLE_ARRAYS}
        fields |= zip(_SAMPLE_SCALARS, map(float, stored["scalars"]), strict=True)
        fields["document_concentration"] = fields["document_concentration"] or np.inf
        if "burst_concentration" in stored:
            storage.check_arrays(stored, {"burst_concentration": Stored("f", "")}, {})
            fields["burst_concentration"] = float(stored["burst_concentration"])
        for field_name, name in _SAMPLE_TABLES.items():
            fields[field_name] = stored[name] if name in stored else _unpack_csr(stored, name)
            sizes = storage.check_arrays({name: fields[field_name]}, {name: _DESCRIBED_TABLES[name]}, sizes)
        natural = {"natural.above": _unpack_csr(stored, "natural.above")}
        sizes = storage.check_arrays(natural, {"natural.above": Stored("f", "K D")}, sizes)
        storage.check_arrays(stored, {"natural.least": Stored("f", "D")}, sizes)
        fields["contexts"] = SparseRows(stored["natural.least"], natural["natural.above"])
        fields["contents"] = _unpack_contents(stored, sizes)
    except ValueError as error:
        raise ValueError(f"sample {prefix.removesuffix('.')}: {error}") from error
    return Sample(**fields)
