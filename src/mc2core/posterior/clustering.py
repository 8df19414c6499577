"""Measures of agreement between a clustering and true labels. The labels are the first argument, ``truth``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import counted


def _labels(values: Any, name: str) -> np.ndarray:
    """Return labels (numbers or text) as integers from 0 to L - 1, (J,)."""
    if sp.issparse(values) or np.ndim(values) != 1:
        raise ValueError(f"{name} must hold one label for each document; memberships suit extended_nmi only")
    array = np.asarray(values)
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one document is needed")
    if array.dtype.kind not in "biuU":
        raise ValueError(f"{name} holds {array.dtype} values; labels are whole numbers or text")
    return pd.factorize(array)[0]


def _table(truth: Any, clusters: Any) -> sp.csr_matrix:
    """Return the number of documents with each label in each cluster, (L, K) CSR."""
    labels_true, labels_pred = _labels(truth, "truth"), _labels(clusters, "clusters")
    if len(labels_true) != len(labels_pred):
        raise ValueError(f"truth has {counted(len(labels_true), 'documents')}, but clusters has {len(labels_pred):,}")
    return sp.csr_matrix(sp.coo_matrix((np.ones(len(labels_true), np.int64), (labels_true, labels_pred))))


def _entropies(table: sp.csr_matrix) -> tuple[float, float, float]:
    """Return the entropies in nats of the rows, of the columns and of the table."""
    return _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0)), _entropy(table.data)


def _pairs(truth: Any, clusters: Any) -> tuple[int, int, int, int]:
    """Return the number of ordered document pairs: all, with equal labels, in the same cluster, and both."""
    table = _table(truth, clusters)
    n = int(table.sum())
    sums = table.sum(axis=1), table.sum(axis=0), table.data
    in_truth, in_clusters, in_both = (int(np.square(np.asarray(s, np.int64)).sum()) - n for s in sums)
    return n * (n - 1), in_truth, in_clusters, in_both


def _entropy(counts: Any) -> float:
    """Return the entropy, in nats, of the distribution proportional to ``counts``."""
    p = np.asarray(counts, dtype=np.float64).ravel()
    p = p / p.sum()
    p = p[p > 0]  # after the division, in which tiny weights may become 0
    return max(float(-np.sum(p * np.log(p))), 0.0)


def _normalise(information: float, h_truth: float, h_clusters: float) -> float:
    """Return 2 I / (H(truth) + H(clusters)), or 1 if both entropies are 0, because the partitions are then equal."""
    return min(max(2.0 * information / (h_truth + h_clusters), 0.0), 1.0) if h_truth + h_clusters > 0 else 1.0


def purity(truth: Any, clusters: Any) -> float:
    """Return the share of documents that have the commonest label of their cluster, in (0, 1].

    Purity is not symmetric in its arguments. As in the other measures, ``truth`` and ``clusters`` are (J,) whole
    numbers or strings. Raises ValueError for other shapes or values.
    """
    table = _table(truth, clusters)
    return float(table.max(axis=0).toarray().sum() / table.sum())


def nmi(truth: Any, clusters: Any) -> float:
    """Return the normalised mutual information 2 I / (H(truth) + H(clusters)) in [0, 1] (UAI16, 5.3).

    UAI16 prints the product of the entropies in the denominator. With their sum, the NMI of a perfect clustering is 1.
    """
    h_truth, h_clusters, h_joint = _entropies(_table(truth, clusters))
    return _normalise(h_truth + h_clusters - h_joint, h_truth, h_clusters)


def rand_index(truth: Any, clusters: Any) -> float:
    """Return the share of document pairs on which both partitions agree, in [0, 1], not adjusted for chance."""
    every, in_truth, in_clusters, in_both = _pairs(truth, clusters)
    return 1.0 - (in_truth + in_clusters - 2 * in_both) / every if every > 0 else 1.0


def adjusted_rand_index(truth: Any, clusters: Any) -> float:
    """Return the Rand index adjusted for chance (Hubert and Arabie, 1985, Comparing partitions, eq. 5).

    The index is at most 1, which is reached by equal partitions. The index is 0 on average for random partitions with
    the same cluster sizes.
    """
    every, in_truth, in_clusters, in_both = _pairs(truth, clusters)
    expected = in_truth * in_clusters / every if every > 0 else 0.0
    largest = (in_truth + in_clusters) / 2
    return (in_both - expected) / (largest - expected) if largest > expected else 1.0


def f_score(truth: Any, clusters: Any) -> float:
    """Return the pairwise F-score in [0, 1]: the harmonic mean of precision and recall over document pairs.

    A pair counts as positive if both documents are in the same cluster. The score is 1 if neither partition has such
    pairs.
    """
    _, in_truth, in_clusters, in_both = _pairs(truth, clusters)
    return 2 * in_both / (in_truth + in_clusters) if in_truth + in_clusters > 0 else 1.0


def variation_of_information(truth: Any, clusters: Any) -> float:
    """Return H(truth) + H(clusters) - 2 I in bits, a metric on partitions (NIPS12, eq. 19)."""
    h_truth, h_clusters, h_joint = _entropies(_table(truth, clusters))
    return max(2.0 * h_joint - h_truth - h_clusters, 0.0) / float(np.log(2.0))


def _memberships(values: Any, name: str) -> sp.csr_matrix:
    """Return memberships with row sums of 1, (J, L) CSR, from labels or non-negative memberships."""
    if not sp.issparse(values) and np.ndim(values) == 1:
        labels = _labels(values, name)
        return sp.csr_matrix((np.ones(len(labels)), labels, np.arange(len(labels) + 1)))
    if not sp.issparse(values) and np.ndim(values) != 2:
        raise ValueError(f"{name} must be one label for each document or a matrix of memberships")
    rows = sp.csr_matrix(values, dtype=np.float64)
    if rows.shape[0] == 0:
        raise ValueError(f"{name} is empty; at least one document is needed")
    bad = ~(np.isfinite(rows.data) & (rows.data >= 0))
    if bad.any():
        position = int(np.flatnonzero(bad)[0])
        document = int(np.searchsorted(rows.indptr, position, side="right")) - 1
        raise ValueError(f"{name}: document {document} holds {rows.data[position]}; memberships must be finite, >= 0")
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if not (sums > 0).all():
        document = int(np.flatnonzero(~(sums > 0))[0])
        raise ValueError(f"{name}: document {document} has no membership at all; leave it out of both")
    return sp.csr_matrix(sp.diags(1.0 / sums) @ rows)


def extended_nmi(truth: Any, clusters: Any) -> float:
    """Return the NMI of soft or multiple memberships, in [0, 1] (eNMI of UAI16, 5.3).

    ``truth`` (J, L) and ``clusters`` (J, K) are non-negative matrices, dense or sparse, or labels (J,). The rows of
    matrices are normalised to sum to 1. The joint distribution of labels and clusters is truth^T clusters / J. For
    labels, the result equals :func:`nmi`. Raises ValueError, with the document, if a membership is negative or
    infinite, or if a document has no membership.
    """
    of_truth, of_clusters = _memberships(truth, "truth"), _memberships(clusters, "clusters")
    if of_truth.shape[0] != of_clusters.shape[0]:
        raise ValueError(f"truth has {of_truth.shape[0]} documents, but clusters has {of_clusters.shape[0]}")
    joint = sp.csr_matrix(of_truth.T @ of_clusters)
    h_truth, h_clusters, h_joint = _entropies(joint)
    return _normalise(h_truth + h_clusters - h_joint, h_truth, h_clusters)
