"""The hierarchy of a fit: clusterings of the fitted documents with every number of clusters from K down to 1.

:mod:`mc2core.posterior.descent` computes the hierarchy. A cut is the clustering with a given number of clusters, in
which each document is in its likeliest cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mc2core.base.checks import choice
from mc2core.base.storage import Stored, check_arrays
from mc2core.posterior.predicting import shares_of

if TYPE_CHECKING:
    import pandas as pd


CUTS = "recommended", "broad", "fine", "all"
"""Names of cuts."""
MAX_CELLS = 1 << 27
"""Largest number of cells (8 bytes each) of the table of topics or words (and names in contexts) by clusters."""
MIN_SCALE = 50
"""Smallest number of clusters K that is used in the criterion for one chain (:func:`recommend`)."""
HALF = 0.5
"""Smallest gain in score of a recommended clustering, as a share of the largest gain. Without this bound, few clusters
would be recommended, because chains easily agree on few clusters."""
TIE = 0.9
"""Share of the highest agreement above which agreement counts as equally high (docs/notes/recommended.md)."""
STEP = 3.0
"""Smallest ratio of the gain by the last cluster of a broad clustering to the gain by any further cluster."""
MIN_AGREEMENT = 0.7
"""Agreement below which chains count as different."""
_BLOCK = 1 << 14  # number of documents whose probabilities are averaged together


@dataclass(frozen=True)
class Hierarchy:
    """Clusterings of the fitted documents with every number of clusters n from K to 1.

    The clustering with n clusters is computed from the clustering with n + 1 clusters: two clusters are merged, and
    then documents may move to other clusters.

    Attributes
    ----------
    cluster : (J,) int32
        Cluster of each document in the clustering with K clusters, from 0, without empty clusters. Documents without a
        cluster have -1, also in every cut.
    joined : (K - 1, 2) int32
        Clusters that each step merges. Step i merges the second cluster into the first, which keeps its number. K - 1 -
        i clusters remain.
    start : (K,) int64
        ``start[i]:start[i + 1]`` are the moves of step i in ``document`` and ``to``.
    document, to : (N,) int32
        The moved document, and the cluster to which it moves, for each of the N moves.
    scores : (K,) float64
        Log marginal likelihood of the clustering with n clusters, in nats, at index n - 1.
    agreement : (K,) float64
        At index n - 1, the mean adjusted Rand index between the clusterings with n clusters (:meth:`at`) of pairs of
        chains. For one chain, this clustering is compared with clusterings from single samples. If a chain or sample
        has fewer than n clusters, all its clusters are used. The agreement is NaN if there is only one sample.
    recommended : int
        Recommended number of clusters (:func:`recommend`); K if the model fixes the number of clusters.
    samples : sequence of (J,) int32
        Cluster of each document in each sample, from which :meth:`cut` computes likeliest clusters. The sequence is
        empty if there is one sample. Samples are saved with the posterior, not with the hierarchy.
    whole : Hierarchy, optional
        If this hierarchy is restricted to some documents (:meth:`of_documents`), the hierarchy of all documents.
    rows : (n,) int64, optional
        Indices of these documents in the corpus.
    other : int
        A second number of clusters on which chains agree (:func:`recommend`); 0 if there is none.
    merged : tuple of ints
        If clusters were merged by hand (:meth:`merged_by_hand`), the new number of each earlier recommended cluster;
        otherwise empty.
    """

    cluster: np.ndarray
    joined: np.ndarray
    start: np.ndarray
    document: np.ndarray
    to: np.ndarray
    scores: np.ndarray
    agreement: np.ndarray
    recommended: int
    samples: Sequence[np.ndarray] = field(default=(), repr=False)
    whole: Hierarchy | None = field(default=None, repr=False)
    rows: np.ndarray | None = field(default=None, repr=False)
    other: int = 0
    merged: tuple[int, ...] = ()
    _cuts: dict[int, np.ndarray] = field(default_factory=dict, repr=False, init=False)

    @property
    def n_clusters(self) -> int:
        """Number of clusters K of the largest clustering."""
        return len(self.scores)

    @property
    def other_name(self) -> str:
        """Name of the clustering with ``other`` clusters: "broad" or "fine"."""
        return "broad" if self.other < self.recommended else "fine"

    def size_of(self, cut: int | str) -> int:
        """Return the number of clusters of ``cut``, which is a name in :data:`CUTS` or the number itself.

        The broad clustering has the smaller of the numbers ``recommended`` and ``other``, and the fine clustering the
        larger. If ``other`` is 0, both equal the recommended clustering. Raises ValueError if the name does not exist.
        """
        if not isinstance(cut, str):
            return cut
        pair = self.recommended, self.other or self.recommended
        sizes = (self.recommended, min(pair), max(pair), self.n_clusters)
        return dict(zip(CUTS, sizes, strict=True))[choice("cut", cut, CUTS)]

    def cut(self, size: int) -> np.ndarray:
        """Return the cluster of each document in the cut into ``size`` clusters, (J,) int32; -1 for none.

        If there are several samples and ``size`` is below K, each document is in its likeliest cluster
        (:meth:`probability`). Clusters are numbered from 0 in order of decreasing size. Raises ValueError unless
        ``size`` is between 1 and K.
        """
        if self.whole is not None:
            part: np.ndarray = self.whole.cut(size)[self.rows]
            return part
        if self._is_merged(size):
            before = self.cut(len(self.merged))
            return np.where(before < 0, -1, np.array(self.merged)[before]).astype(np.int32)
        if size not in self._cuts:
            numbers = self.at(size)
            has_cluster = numbers >= 0
            labels = np.unique(numbers[has_cluster], return_inverse=True)[1]
            if size < self.n_clusters and self._can_average(size, numbers):
                labels = _find_likeliest(_mean_shares(self.samples, labels, size), labels, size)
            cut = np.full(len(numbers), -1, np.int32)
            cut[has_cluster] = by_size(labels, size)[labels]
            self._cuts[size] = cut
        return self._cuts[size].copy()

    def probability(self, size: int) -> np.ndarray | None:
        """Return the probability of each cluster of the cut for each document, (J, size) float64; rows sum to 1.

        In a sample, the distribution of a document is the distribution over the clusters of :meth:`at` of all documents
        in its cluster. The result is the mean of these distributions over the samples. The result is None if there is
        one sample, or if samples have too many clusters.
        """
        if self.whole is not None:
            of_all = self.whole.probability(size)
            return None if of_all is None else of_all[self.rows]
        if self._is_merged(size):
            before = self.probability(len(self.merged))
            return None if before is None else before @ np.eye(size)[list(self.merged)]
        numbers = self.at(size)
        if not self._can_average(size, numbers):
            return None
        labels = np.unique(numbers, return_inverse=True)[1]
        blocks = list(_mean_shares(self.samples, labels, size))
        if size < self.n_clusters:
            labels = _find_likeliest(blocks, labels, size)
        return np.concatenate([shares for _, shares in blocks])[:, np.argsort(by_size(labels, size))]

    def _is_merged(self, size: int) -> bool:
        return bool(self.merged) and size == self.recommended

    def merged_by_hand(self, clusters: Sequence[int]) -> Hierarchy:
        """Return the hierarchy with ``clusters`` (numbers from 0) of the recommended clustering merged into one.

        The merged clustering replaces the cut with the same number of clusters, and its agreement is NaN. Other cuts do
        not change. Raises ValueError if the numbers are invalid, or if documents were added by an update.
        """
        size = self.recommended
        chosen = np.unique(clusters)
        if len(chosen) < 2 or len(chosen) < len(clusters) or chosen[0] < 0 or chosen[-1] >= size:
            raise ValueError(f"two or more different numbers of clusters from 1 to {size} are needed")
        if hasattr(self, "earlier"):
            raise ValueError("documents were added to this fit; merge clusters before mc2 update")
        label = np.arange(size)
        label[chosen] = chosen[0]
        label = np.unique(label, return_inverse=True)[1]
        cluster, size = self.cut(size), size - len(chosen) + 1
        label = by_size(np.where(cluster < 0, -1, label[cluster]), size)[label]
        agreement = self.agreement.copy()
        agreement[size - 1] = np.nan
        merged = tuple(label[list(self.merged)].tolist() if self.merged else label.tolist())
        other = 0 if self.other == size else self.other
        return replace(self, recommended=size, merged=merged, agreement=agreement, other=other)

    def _can_average(self, size: int, numbers: np.ndarray) -> bool:
        cells = size * sum(int(one.max()) + 1 for one in self.samples)
        return 0 < cells <= MAX_CELLS and int(numbers.min()) >= 0

    def at(self, size: int) -> np.ndarray:
        """Return the clustering with ``size`` clusters by merges and moves alone, (J,) int32.

        Clusters have the numbers that remain of ``cluster`` after the merges (``joined``).
        """
        self._check_size(size)
        step = self.n_clusters - size
        cluster, end = self.cluster.copy(), self.start[step]
        cluster[self.document[:end]] = self.to[:end]  # the last move of a document counts
        joined = np.arange(self.n_clusters)
        for first, second in self.joined[:step][::-1].tolist():
            joined[second] = joined[first]
        return np.where(cluster < 0, -1, joined[cluster]).astype(np.int32)

    def _check_size(self, size: int) -> None:
        if not 1 <= size <= self.n_clusters:
            raise ValueError(f"{size} clusters were requested; a cut has 1 to {self.n_clusters}, the number of the fit")

    def of_documents(self, rows: np.ndarray) -> Hierarchy:
        """Return the hierarchy restricted to the documents ``rows`` (ascending); some clusters may be empty.

        Scores are the scores of all documents, multiplied by the share of the documents in ``rows``.
        """
        position = np.searchsorted(rows, self.document)
        moves = np.flatnonzero(rows[np.minimum(position, len(rows) - 1)] == self.document)
        return Hierarchy(
            cluster=self.cluster[rows],
            joined=self.joined,
            start=np.searchsorted(moves, self.start),
            document=position[moves].astype(np.int32),
            to=self.to[moves],
            scores=self.scores * (len(rows) / len(self.cluster)),
            agreement=self.agreement,
            recommended=self.recommended,
            whole=self,
            rows=rows,
            other=self.other,
            merged=self.merged,
        )

    def table(self) -> pd.DataFrame:
        """Return a table with one row per number of clusters, from 1 to K.

        The columns are:

        - clusters; log_marginal (in nats per document); agreement;
        - loss, the decrease of log_marginal from the clustering with one more cluster (negative if moving documents
          gains more than merging loses);
        - moved, the share of documents that moved to another cluster after the merge;
        - recommended, "yes" for the recommended clustering;
        - level, "broad" or "fine" for the broad and the fine clustering, if both are not the recommended clustering.
        """
        import pandas as pd

        n_documents, size = max(len(self.cluster), 1), np.arange(1, self.n_clusters + 1)
        table = pd.DataFrame(
            {
                "clusters": size,
                "log_marginal": self.scores / n_documents,
                "loss": np.append(np.diff(self.scores), np.nan) / n_documents,
                "moved": np.append(np.diff(self.start)[::-1], 0) / n_documents,
                "agreement": self.agreement,
                "recommended": np.where(size == self.recommended, "yes", ""),
            }
        )
        if self.other:
            table["level"] = ""
            for level in ("broad", "fine"):
                table.loc[self.size_of(level) - 1, "level"] = level
        if self.merged:  # the values belong to the clustering that the merged clustering replaced
            table.loc[self.recommended - 1, ["log_marginal", "loss", "moved"]] = np.nan
        return table

    def shares(self, size: int, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return the distribution over the cut of the documents in each ``cluster`` (J,), (n_clusters, size) float64.

        Rows sum to 1. A cluster without documents has the distribution of all documents.
        """
        return shares_of(self.cut(size), size, cluster, n_clusters)


def _mean_shares(samples: Sequence[np.ndarray], labels: np.ndarray, size: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of documents with their probabilities of the clusters ``labels`` (J,), (B, size).

    The probability of a label is its share of the documents in the document's cluster, averaged over samples.
    """
    tables = []
    for cluster in samples:
        counts = np.bincount(cluster.astype(np.int64) * size + labels, minlength=(int(cluster.max()) + 1) * size)
        table = counts.reshape(-1, size).astype(np.float64)
        tables.append(table / np.maximum(table.sum(axis=1, keepdims=True), 1.0))
    for start in range(0, len(labels), _BLOCK):
        block = slice(start, start + _BLOCK)
        shares = np.zeros((len(labels[block]), size))
        for cluster, table in zip(samples, tables, strict=True):
            shares += table[cluster[block]]
        yield block, shares / len(samples)


def _find_likeliest(mean_shares: Iterable[tuple[slice, np.ndarray]], labels: np.ndarray, size: int) -> np.ndarray:
    """Return the likeliest cluster of each document, (J,) int64; among ties, its cluster in ``labels`` (J,).

    ``mean_shares`` are the blocks of :func:`_mean_shares`. A cluster that would lose all of its documents keeps them.
    """
    likeliest = labels.copy()
    for block, shares in mean_shares:
        rows, best = np.arange(len(shares)), shares.argmax(axis=1)
        likeliest[block] = np.where(shares[rows, best] > shares[rows, labels[block]], best, labels[block])
    while len(empty := np.setdiff1d(np.arange(size), likeliest)):
        is_restored = np.isin(labels, empty)
        likeliest[is_restored] = labels[is_restored]
    return likeliest


def recommend(scores: np.ndarray, agreement: np.ndarray, are_chains: bool) -> tuple[int, int]:
    """Return the recommended number of clusters, and a second number of clusters, or 0 if there is none.

    ``scores`` and ``agreement`` are as in :class:`Hierarchy`. Let E_n be the gain in score of n clusters over one
    cluster, divided by the largest gain. One cluster is recommended if more clusters do not raise the score.

    With several chains (``are_chains``), candidates are the numbers n with E_n of at least ``HALF`` and an agreement of
    at least ``TIE`` times the highest agreement. The largest candidate is recommended. Samples of one chain agree at
    any n, so with one chain, the recommended number maximises E_n - ln n / ln max(K, ``MIN_SCALE``).

    The second number differs from the recommended number by a factor of at least two, and has an agreement of at least
    ``MIN_AGREEMENT``. If possible, it is a smaller candidate: the largest whose last cluster gains at least ``STEP``
    times as much as any further cluster, or else the largest after which agreement drops. Otherwise, it is the largest
    number with this agreement.
    """
    explained = scores.max() - scores[0]
    if not explained > 0.0:
        return 1, 0
    share, size, agree = (scores[1:] - scores[0]) / explained, np.arange(2, len(scores) + 1), agreement[1:]
    if not are_chains or np.isnan(agree).all():
        value = share - np.log(size) / math.log(max(len(scores), MIN_SCALE))
        return (int(size[value.argmax()]) if value.max() > 0.0 else 1), 0
    highest = agree[share >= HALF].max()
    if not highest > 0.0:
        return 1, 0
    is_tie = (share >= HALF) & (agree >= TIE * highest)
    recommended = int(size[is_tie].max())
    gain = np.diff(scores)
    later = np.maximum.accumulate(np.maximum(gain, 0.0)[:0:-1])[::-1]
    edges = gain[:-1] >= STEP * later, agree[1:] < TIE * agree[:-1]
    is_agreed = agree >= MIN_AGREEMENT
    is_broad = (is_tie & is_agreed & (2 * size <= recommended))[:-1]
    by_gain, by_agreement = (size[:-1][is_broad & edge].max(initial=0) for edge in edges)
    fine = size[is_agreed & (size >= 2 * recommended)].max(initial=0)
    return recommended, int(by_gain or by_agreement or fine)


def by_size(cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the rank of each cluster by size, (n_clusters,) int64. The largest cluster has rank 0; ties keep order.

    ``cluster`` (J,) is the cluster of each document, or -1 for none.
    """
    sizes = np.bincount(cluster[cluster >= 0], minlength=n_clusters)
    number = np.empty(n_clusters, np.int64)
    number[np.argsort(-sizes, kind="stable")] = np.arange(n_clusters)
    return number


# -- on disk -------------------------------------------------------------------------------------------------------
_PREFIX = "hierarchy."
_DESCRIBED = {
    "scores": Stored("f", "K"),
    "agreement": Stored("f", "K"),
    "recommended": Stored("i", ""),
    "cluster": Stored("i", "J", below="K"),
    "joined": Stored("i", "K-1 2", below="K"),
    "start": Stored("i", "K"),
    "document": Stored("i", "N", below="J"),
    "to": Stored("i", "N", below="K"),
}


def pack_hierarchy(hierarchy: Hierarchy) -> dict[str, np.ndarray]:
    """Return a hierarchy as plain arrays with names that start with "hierarchy."."""
    names = (*_DESCRIBED, "other", *(["merged"] if hierarchy.merged else []))
    return {f"{_PREFIX}{name}": np.asarray(getattr(hierarchy, name)) for name in names}


def unpack_hierarchy(arrays: Mapping[str, np.ndarray], n_documents: int) -> Hierarchy | None:
    """Return the hierarchy from the arrays of :func:`pack_hierarchy`, or None if there are no such arrays.

    Raises ValueError if the arrays are invalid.
    """
    stored = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
    if not stored:
        return None
    try:
        stored.setdefault("other", np.array(0))  # older files do not have it
        stored.setdefault("merged", np.zeros(0, np.int64))
        optional = {"other": Stored("i", ""), "merged": Stored("i", "B", below="K")}
        sizes = check_arrays(stored, _DESCRIBED | optional, {"J": n_documents})
        for name, least in (("recommended", 1), ("other", 0)):
            if not least <= stored[name] <= sizes["K"]:
                raise ValueError(f"{name!r} is {stored[name]}; it must lie within {least}..{sizes['K']}")
        merged, recommended = stored["merged"], int(stored["recommended"])
        if len(merged) and (len(merged) > sizes["K"] or np.unique(merged).tolist() != list(range(recommended))):
            raise ValueError("'merged' does not give the recommended clusters")
    except ValueError as error:
        raise ValueError(f"hierarchy: {error}") from error
    arrays_of: dict[str, Any] = {name: stored[name] for name in _DESCRIBED}
    arrays_of["merged"] = tuple(stored["merged"].tolist())
    return Hierarchy(**arrays_of | {name: int(stored[name]) for name in ("recommended", "other")})
