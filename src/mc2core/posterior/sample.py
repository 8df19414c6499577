"""Samples of a posterior (draws, or a posterior mean), and their form on disk."""

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
    """A (K, D) float64 matrix, stored as the smallest value of each column and all larger entries.

    Natural parameters of a Dirichlet are its prior plus counts, so the smallest value of a column is the prior. Most
    counts are 0: a cluster may have only a few dozen of 12,000 authors. The dense matrix is recovered exactly.

    Attributes
    ----------
    least : (D,) float64
        Smallest value of each column.
    above : (K, D) float64 CSR
        Values of all entries that are larger than ``least``. Values are stored, not differences.
    """

    least: np.ndarray
    above: sp.csr_matrix

    @classmethod
    def from_dense(cls, dense: np.ndarray) -> SparseRows:
        """Convert a dense (K, D) matrix with K >= 1."""
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
        # assigned, not added, because ``above`` stores values
        rows[np.repeat(np.arange(self.shape[0]), np.diff(self.above.indptr)), self.above.indices] = self.above.data
        return rows[:, columns]


@dataclass(frozen=True)
class Sample:
    """One draw from the posterior (Gibbs) or the posterior mean (SVI).

    Attributes
    ----------
    cluster_weights : (K,) float64, sums to 1
        E[pi_k], the weights of the K clusters in use.
    new_cluster_weight : float
        Mass of a new cluster: group_concentration / (J + group_concentration), or 0. The mass is 1 if every document
        has its own topic proportions.
    topic_given_cluster : (K, M) float64, rows sum to 1, dense or CSR
        E[tau_km], the proportions of the M topics in use. With a document level, the expectation is given the tables of
        documents. The matrix is sparse if each cluster is its own topic.
    new_topic_weight : (K,) float64
        Mass of a new topic in each cluster; a new topic is uniform over words.
    topic_words : (M, V) CSR or dense, >= 0
        Counts (or pseudo-counts) of words in topics, without the prior.
    topic_word_prior : float
        s: word_given_topic is topic_words + s with rows normalised to sum to 1.
    topic_weights : (M,) float64, sums to less than 1
        epsilon_m, the weights of the topics in use; the remaining mass belongs to unused topics.
    table_concentration : float
        v: the proportions of a cluster, or of a document in an admixture, are drawn from DP(v, epsilon).
    contexts : SparseRows, (K, D)
        Posterior natural parameters of the stacked contexts of each cluster; :attr:`natural` is the dense matrix.
    cluster : (J,) int32
        Cluster of each training document.
    log_joint : float
        Log joint (Gibbs) or ELBO (SVI) in nats.
    document_concentration : float
        omega: the proportions of a document in cluster k are drawn from DP(omega, tau_k). omega is inf if all documents
        of a cluster have the proportions tau_k.
    burst_concentration : float
        b: after i tokens, the next token is drawn from a topic with probability b / (i + b). Otherwise it repeats an
        earlier token. b is inf if words do not repeat. If words repeat, ``topic_words`` counts only draws.
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
        """Posterior natural parameters of the stacked contexts of each cluster, (K, D) float64."""
        return self.contexts.dense()

    @property
    def is_admixture(self) -> bool:
        """Whether documents have their own topic proportions and no clusters, as in the HDP and LDA."""
        return self.new_cluster_weight == 1.0

    @property
    def has_document_level(self) -> bool:
        """Whether each document has its own topic proportions, drawn from DP(omega, tau_k) given its cluster k."""
        return self.document_concentration < np.inf

    @property
    def has_repeats(self) -> bool:
        """Whether a document may repeat its words without drawing them from its topics."""
        return self.burst_concentration < np.inf

    @property
    def documents_are_clusters(self) -> bool:
        """Whether each training document is its own cluster, as in the HDP."""
        return self.is_admixture and self.n_clusters == len(self.cluster)

    @property
    def word_given_topic(self) -> np.ndarray:
        """Word distribution of each topic, (M, V) float64. Raises ValueError if topics emit observations."""
        self.need_words()
        return self.words_of(slice(None))

    def words_of(self, topics: Any) -> np.ndarray:
        """Return the word distributions of ``topics`` (row numbers, or a slice), (n, V) float64."""
        table = self.topic_words[topics]
        counts = table.toarray() if sp.issparse(table) else np.asarray(table)
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
    """Return a sample as arrays with names that start with ``prefix``."""
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
    """Return a stored CSR matrix. Raises ValueError if an array is missing, or if an index is out of range."""
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
    """Return the parameters of topics that emit observations from stored arrays; None if topics emit words."""
    if "contents.family" not in stored:
        return None
    described = {f"contents.{name}": one for name, one in _DESCRIBED_CONTENTS.items()}
    family = family_from_settings(storage.parse_json(str(stored["contents.family"])))
    if not isinstance(family, ContentFamily):
        raise ValueError(f"'contents' has the family {family!r}, which is not a family of observations")
    storage.check_arrays(stored, described, {**sizes, "P": family.n_parameters(sizes["V"])})
    return Contents(family, *(stored[name] for name in described))


def unpack_sample(arrays: Mapping[str, np.ndarray], prefix: str, sizes: Mapping[str, int]) -> Sample:
    """Return the sample from the arrays of :func:`pack_sample`.

    ``sizes`` contains the dimensions J, V and D that are known. Raises ValueError if an array is missing or has a wrong
    shape or type.
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
