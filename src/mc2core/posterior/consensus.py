"""Consensus clustering of the samples of a posterior, and its certainty.

Binder's loss (1978) counts the document pairs that are together in one of two clusterings but not in the other. The
consensus minimises the expectation of this loss over the samples (Lau and Green 2007). Moving document j to cluster k
adds 1 / 2 - P(i and j together) to the loss, up to a factor, for each member i of k. The method therefore needs only
the labels of the samples, and no table of document pairs.

The consensus starts from the sample with the least expected loss. Documents then move one by one to the cluster of this
sample with the least loss (Dahl, Johnson and Mueller 2022). Cluster k of the consensus therefore corresponds to cluster
k of this sample, with its words, topics and contexts. If documents could also move to new clusters, Binder's loss would
create clusters of single documents (Wade and Ghahramani 2018).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.compute.kernels import kernel
from mc2core.corpus.row_blocks import indicator

MAX_CELLS = 1 << 28
"""Largest number of cells (4 bytes each) of the table of the clusters of all samples by the clusters of the first
sample. For larger tables, the consensus is the first sample."""

MAIN = 0.95
"""Share of the documents that are in the main clusters."""
COUNTED = {"clusters": "main clusters", "topics": "topics"}
"""Quantity whose interval over samples is shown next to the number of clusters or topics."""


def representative(clusterings: Sequence[np.ndarray], n_topics: Sequence[int]) -> int:
    """Return the index of the clustering with the least expected loss.

    Among ties, the number of topics nearest to the median decides, and then the highest index.
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
    """Return the consensus clustering, (J,) int32, refined from the clustering with index ``start``.

    Each document in turn moves to the cluster that lowers the expected loss most, until no document moves. Clusters are
    numbered as in the starting clustering; some may become empty. The label -1, for documents without a cluster, is
    treated as a cluster.
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
    """Return how often each document is together with the members of each cluster, (J, n_clusters) float64.

    Entry (j, k) is the probability that document j is in the same cluster as another document of cluster k (item
    consensus, Monti et al. 2003). This is a mean over ``clusterings`` and over the documents of cluster k in
    ``cluster`` (J,), except j. If j is alone in cluster k, the entry is the share of clusterings in which j is alone.
    Rows need not sum to 1.
    """
    members = _members(clusterings)
    rows = np.flatnonzero(cluster >= 0)
    at = rows, cluster[rows]
    one_hot = indicator(cluster, n_clusters)
    together = (members @ (members.T @ one_hot)).toarray() / len(clusterings)
    together[at] -= 1.0
    n_others = np.tile(_sizes(one_hot), (len(cluster), 1))
    n_others[at] -= 1.0
    is_alone = (members @ (_sizes(members) == 1)) / len(clusterings)
    together[at] = np.where(n_others[at] > 0, together[at], is_alone[rows])
    return np.clip(together / np.maximum(n_others, 1.0), 0.0, 1.0)


def agreement_between(clusterings: Sequence[np.ndarray]) -> dict[str, float]:
    """Return the adjusted Rand index (``ari``) and variation of information (``vi_bits``), averaged over all pairs."""
    from mc2core.posterior.clustering import adjusted_rand_index, variation_of_information

    pairs = list(itertools.combinations(clusterings, 2))
    measures = {"ari": adjusted_rand_index, "vi_bits": variation_of_information}
    return {name: float(np.mean([measure(*pair) for pair in pairs])) for name, measure in measures.items()}


def interval(values: Sequence[float]) -> tuple[int, int]:
    """Return the central interval of whole numbers that contains at least 90 % of ``values``."""
    tail = (1.0 - 0.9) / 2.0
    return int(np.quantile(values, tail, method="lower")), int(np.quantile(values, 1.0 - tail, method="higher"))


def n_main(cluster: np.ndarray) -> int:
    """Return the smallest number of clusters that together contain at least the share MAIN of the documents.

    ``cluster`` (J,) is the cluster of each document.

    >>> n_main(np.repeat([0, 1, 2], [60, 38, 2]))
    2
    """
    sizes = np.sort(np.bincount(cluster[cluster >= 0]))[::-1]
    return int(np.searchsorted(np.cumsum(sizes), round(MAIN * sizes.sum(), 6))) + 1 if sizes.size else 0


def in_samples(bounds: Sequence[int]) -> str:
    """Return a phrase with ``bounds``, the interval of the number of main clusters over the samples."""
    verb = "holds" if tuple(bounds) == (1, 1) else "hold"
    return f"{between(bounds)} {verb} {100 * MAIN:.0f} % of the documents in 90 % of the samples"


def between(bounds: Sequence[int]) -> str:
    """Return the bounds in words: "8 to 9", or "8" if both are 8."""
    return " to ".join(f"{bound:,}" for bound in dict.fromkeys(bounds))


def _members(clusterings: Sequence[np.ndarray]) -> sp.csr_matrix:
    """Return the indicator of the clusters of all S clusterings, (J, L) CSR int32 with S ones per row.

    If a clustering has documents without a cluster (-1), these documents form a further column.
    """
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
    """Return the number of documents in each cluster, (L,) float64."""
    return np.asarray(members.sum(axis=0), np.float64).ravel()


@kernel
def _sweep(code, counts, sizes, cluster):
    """Move each document to the cluster with the least expected loss, and return the number of documents that moved.

    Among ties, a document stays in its cluster or moves to the first. The arrays except ``code`` change in place.

    code : (J, S) int32, cluster of each document in each sample, numbered from 0 to L - 1 over all samples
    counts : (L, K) int32, number of common documents of each cluster of a sample and each current cluster
    sizes : (K,) int64, number of documents in each current cluster
    cluster : (J,) int32, current cluster of each document
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
