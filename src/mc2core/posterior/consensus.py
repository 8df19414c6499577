"""Consensus clustering of the samples of a posterior, and its certainty.

Binder's loss (1978) between two clusterings is the number of document pairs that one of them puts together and the
other does not. Here it is a share of all pairs, one minus the Rand index, and its expectation over samples is minimised
(Lau and Green 2007). Moving document j to cluster k changes it by 1 / 2 - P(j and i together) for each member i of k.
So the method needs only the labels of S samples, and no table of document pairs.

The consensus starts from the sample with the least expected loss and moves documents one by one to the cluster of that
sample with the least loss (Dahl, Johnson and Mueller 2022). So cluster k of the consensus corresponds to cluster k of a
sample, with its words, topics and contexts. Without this restriction, Binder's loss would open clusters for single
documents (Wade and Ghahramani 2018).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.compute.kernels import kernel

MAX_CELLS = 1 << 28
"""Of the table of clusters of all samples by clusters of one, 4 bytes each: beyond, the consensus is that sample."""

MAIN = 0.95
"""Share of the documents that the main clusters hold."""
COUNTED = {"clusters": "main clusters", "topics": "topics"}
"""Quantity counted in each sample for the interval next to the number of clusters or topics."""


def representative(clusterings: Sequence[np.ndarray], n_topics: Sequence[int]) -> int:
    """Return the number of the clustering (J,) with the least expected loss.

    Ties are resolved by the number of topics nearest to the median, then by the last number.
    """
    if len(clusterings) == 1:
        return 0
    table, losses = _members(clusterings), np.empty(len(clusterings))
    pairs = np.square(_sizes(table)).sum() / len(clusterings)
    with work("representative of the samples", len(clusterings), "samples") as progress:
        for number, clustering in enumerate(clusterings):
            members = _members([clustering])
            shared = np.square((table.T @ members).data.astype(np.float64)).sum() / len(clusterings)
            losses[number] = np.square(_sizes(members)).sum() + pairs - 2.0 * shared
            progress.advance()
    distance = np.where(losses == losses.min(), np.abs(np.asarray(n_topics) - np.median(n_topics)), np.inf)
    return int(np.flatnonzero(distance == distance.min())[-1])


def consensus(clusterings: Sequence[np.ndarray], start: int) -> np.ndarray:
    """Return the consensus, (J,) int32, refined from the clustering ``start``.

    Each document in turn moves to the cluster that lowers the expected loss most, until no document moves. Clusters
    keep their numbers in ``start``; some may become empty. -1, for documents without a cluster, is treated as a
    cluster.
    """
    cluster = np.array(clusterings[start], dtype=np.int32)
    if len(clusterings) == 1:
        return cluster
    members, one_hot = _members(clusterings), _members([cluster])
    if members.shape[1] * one_hot.shape[1] > MAX_CELLS:
        return cluster
    counts = (members.T @ one_hot).toarray().astype(np.int32)
    code, sizes = members.indices.reshape(len(cluster), -1), _sizes(one_hot).astype(np.int64)
    column = one_hot.indices.astype(np.int32)
    with work("consensus of the samples") as progress:
        while _sweep(code, counts, sizes, column):
            progress.advance()
    return column - np.int32(cluster.min(initial=0) < 0)


def shares(clusterings: Sequence[np.ndarray], cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the share of the documents of each cluster that are together with a document, (J, n_clusters) float64.

    It is the mean over ``clusterings`` and over the members of cluster k of ``cluster`` (J,) other than the document
    itself (item consensus, Monti et al. 2003). If a document is alone in its cluster, it is the share of the
    clusterings in which it is alone. Rows need not sum to 1.
    """
    members = _members(clusterings)
    rows = np.flatnonzero(cluster >= 0)
    at = rows, cluster[rows]
    one_hot = sp.csr_matrix((np.ones(len(rows)), at), shape=(len(cluster), n_clusters))
    together = (members @ (members.T @ one_hot)).toarray() / len(clusterings)
    together[at] -= 1.0
    n_others = np.tile(_sizes(one_hot), (len(cluster), 1))
    n_others[at] -= 1.0
    is_alone = (members @ (_sizes(members) == 1)) / len(clusterings)
    together[at] = np.where(n_others[at] > 0, together[at], is_alone[rows])
    return np.clip(together / np.maximum(n_others, 1.0), 0.0, 1.0)


def agreement_between(clusterings: Sequence[np.ndarray]) -> dict[str, float]:
    """Return ``ari`` (adjusted Rand index) and ``vi_bits`` (variation of information), averaged over pairs."""
    from mc2core.posterior.clustering import adjusted_rand_index, variation_of_information

    pairs = list(itertools.combinations(clusterings, 2))
    measures = {"ari": adjusted_rand_index, "vi_bits": variation_of_information}
    return {name: float(np.mean([measure(*pair) for pair in pairs])) for name, measure in measures.items()}


def interval(values: Sequence[float], share: float = 0.9) -> tuple[int, int]:
    """Return the central interval that contains at least the given share of whole numbers."""
    tail = (1.0 - share) / 2.0
    return int(np.quantile(values, tail, method="lower")), int(np.quantile(values, 1.0 - tail, method="higher"))


def n_main(cluster: np.ndarray, share: float = MAIN) -> int:
    """Return the smallest number of clusters that contain at least this share of the documents; ``cluster`` is (J,)
    int.

    >>> n_main(np.repeat([0, 1, 2], [60, 38, 2]))
    2
    """
    sizes = np.sort(np.bincount(cluster[cluster >= 0]))[::-1]
    return int(np.searchsorted(np.cumsum(sizes), round(share * sizes.sum(), 6))) + 1 if sizes.size else 0


def in_samples(bounds: Sequence[int]) -> str:
    """Return the interval of the number of main clusters over the samples, in words."""
    verb = "holds" if tuple(bounds) == (1, 1) else "hold"
    return f"{between(bounds)} {verb} {100 * MAIN:.0f} % of the documents in 90 % of the samples"


def between(bounds: Sequence[int]) -> str:
    """Return the bounds in words: "8 to 9", or "8" if both are 8."""
    return " to ".join(f"{bound:,}" for bound in dict.fromkeys(bounds))


def _members(clusterings: Sequence[np.ndarray]) -> sp.csr_matrix:
    """Return the indicator matrix (J, L) of the clusters of all clusterings, CSR int32 with S ones per row. Documents
    without a cluster (-1) have a column as well."""
    first, columns = 0, []
    for clustering in clusterings:
        labels = np.asarray(clustering, np.int64) + (np.min(clustering, initial=0) < 0)
        columns.append(labels + first)
        first += int(labels.max(initial=-1)) + 1
    n = len(clusterings[0])
    indices = np.stack(columns, axis=1).ravel().astype(np.int32)
    start = np.arange(0, len(indices) + 1, len(clusterings), dtype=np.int32)
    return sp.csr_matrix((np.ones(len(indices), np.int32), indices, start), shape=(n, first))


def _sizes(members: sp.csr_matrix) -> np.ndarray:
    """Return (L,) float64: the number of documents of each cluster."""
    return np.asarray(members.sum(axis=0), np.float64).ravel()


@kernel
def _sweep(code, counts, sizes, cluster):
    """Move each document to the cluster of least expected loss, of equals its own or the first; returns how many moved.

    code : (J, S) int32, the cluster of each document in each sample, numbered over all samples
    counts : (L, K) int32, documents of each of these that are in each cluster now; changed in place
    sizes : (K,) int64, cluster : (J,) int32, changed in place
    """
    n_documents, n_samples = code.shape
    n_clusters, moved = len(sizes), 0
    together = np.empty(n_clusters, np.int64)
    for j in range(n_documents):
        before = cluster[j]
        sizes[before] -= 1
        together[:] = 0
        for s in range(n_samples):
            row = counts[code[j, s]]
            row[before] -= 1
            for k in range(n_clusters):
                together[k] += row[k]
        best, most = before, 2 * together[before] - n_samples * sizes[before]
        for k in range(n_clusters):
            gain = 2 * together[k] - n_samples * sizes[k]
            if gain > most and sizes[k] > 0:
                best, most = k, gain
        sizes[best] += 1
        for s in range(n_samples):
            counts[code[j, s], best] += 1
        moved += best != before
        cluster[j] = best
    return moved
