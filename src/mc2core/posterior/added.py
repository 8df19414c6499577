"""Posteriors to which documents were added: old documents keep their clusters, and clusters keep their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mc2core.base.storage import Stored, check_arrays
from mc2core.posterior import consensus
from mc2core.posterior.hierarchy import Hierarchy
from mc2core.posterior.predicting import shares_of
from mc2core.posterior.sample import Sample

if TYPE_CHECKING:
    from mc2core.posterior.posterior import Posterior

_PREFIX = "added."
_DESCRIBED = {
    "before": Stored("i", "N"),
    "first": Stored("i", ""),
    "cluster": Stored("i", "J"),
    "by_size": Stored("i", "K"),
    "label": Stored("i", "B"),
}


@dataclass(frozen=True)
class Added:
    """Clusters and cluster numbers that updates keep, in addition to the samples of all documents.

    Attributes
    ----------
    before : (N,) int64
        Number of documents before each of N updates.
    first : int
        Index of the representative sample of the first fit.
    cluster : (J,) int32
        Cluster of each document, numbered as in the representative sample. Old documents keep their clusters.
    by_size : (K,) int64
        Number of each cluster in tables, from 0. Old clusters keep their numbers, and new clusters follow.
    label : (J - before[0],) int32
        Index of the new cluster of each added document, from 0; -1 if the document is in an old cluster.
    """

    before: np.ndarray
    first: int
    cluster: np.ndarray
    by_size: np.ndarray
    label: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the attributes as arrays with names that start with "added."."""
        return {f"{_PREFIX}{name}": np.asarray(getattr(self, name)) for name in _DESCRIBED}


@dataclass(frozen=True)
class GrownHierarchy(Hierarchy):
    """The hierarchy of the old documents, extended by added documents and new clusters.

    With L new clusters, the cut into n clusters has the n - L clusters of ``earlier``, then the L new clusters.

    Attributes
    ----------
    earlier : Hierarchy
        Hierarchy of the old documents.
    label : (B,) int32
        Index of the new cluster of each added document, or -1 if the document is in an old cluster.
    of_samples : sequence of (J,) int32
        Cluster of each document in each sample.
    """

    earlier: Hierarchy = field(kw_only=True)
    label: np.ndarray = field(kw_only=True)
    of_samples: Sequence[np.ndarray] = field(kw_only=True, repr=False)

    @classmethod
    def from_hierarchy(
        cls, earlier: Hierarchy, samples: Sequence[np.ndarray], cluster: np.ndarray, label: np.ndarray
    ) -> GrownHierarchy:
        """Return the extended hierarchy. ``cluster`` (B,) is the old cluster of each added document in the largest
        cut."""
        n_new, k = int(label.max(initial=-1)) + 1, earlier.n_clusters
        last = earlier.joined[-1, :1] if k > 1 else np.zeros(1, np.int32)  # the last remaining cluster
        joined = np.column_stack([np.repeat(last, n_new), np.arange(k, k + n_new)]).astype(np.int32)
        return cls(
            cluster=np.concatenate([earlier.cluster, np.where(label < 0, cluster, k + label)]).astype(np.int32),
            joined=np.concatenate([earlier.joined, joined]),
            start=np.append(earlier.start, np.repeat(earlier.start[-1:], n_new)),
            document=earlier.document,
            to=earlier.to,
            scores=np.append(np.repeat(earlier.scores[:1], n_new), earlier.scores),
            agreement=np.append(np.full(n_new, np.nan), earlier.agreement),
            recommended=earlier.recommended + n_new,
            other=earlier.other + n_new if earlier.other else 0,
            merged=earlier.merged,
            earlier=earlier,
            label=label,
            of_samples=samples,
        )

    @property
    def _n_new(self) -> int:
        return int(self.label.max(initial=-1)) + 1

    def cut(self, size: int) -> np.ndarray:
        old = self.earlier.cut(self._old_size(size))
        return np.concatenate([old, self._numbers(old, self._old_size(size), size)])

    def at(self, size: int) -> np.ndarray:
        old = self.earlier.at(self._old_size(size))
        names, labels = np.unique(old, return_inverse=True)
        names = np.append(names, self.earlier.n_clusters + np.arange(self._n_new))
        return np.concatenate([old, names[self._numbers(labels, self._old_size(size), size)]]).astype(np.int32)

    def probability(self, size: int) -> np.ndarray | None:
        old_size = self._old_size(size)
        old = self.earlier.probability(old_size)
        if old is None:
            return None
        new = self.shares_of_added(size)
        return np.vstack([np.hstack([old, np.zeros((len(old), size - old_size))]), new])

    def shares_of_added(self, size: int) -> np.ndarray:
        """Return the probability of each cluster of the cut for each added document, (B, size) float64.

        The probability is a mean over samples. A document in an old cluster of a sample has the distribution of the old
        documents of this cluster over the cut. A document in a new cluster of a sample has the distribution of the
        added documents of this cluster over the new clusters.
        """
        old_size = self._old_size(size)
        return self._shares(self.earlier.cut(old_size), old_size, size)

    def _old_size(self, size: int) -> int:
        self._check_size(size)
        return max(size - self._n_new, 1)

    def _shares(self, cut: np.ndarray, old_size: int, size: int) -> np.ndarray:
        n_old, n_new = len(cut), size - old_size
        label = np.where(self.label < n_new, self.label, -1)
        total = np.zeros((len(label), size))
        for cluster in self.of_samples:
            k = int(cluster.max(initial=0)) + 1
            of_old = np.hstack([shares_of(cut, old_size, cluster[:n_old], k), np.zeros((k, n_new))])
            is_new = np.bincount(cluster[:n_old], minlength=k) == 0
            if n_new and is_new.any() and (label >= 0).any():
                of_new = shares_of(label, n_new, cluster[n_old:], k)
                of_old[is_new] = np.hstack([np.zeros((k, old_size)), of_new])[is_new]
            total += of_old[cluster[n_old:]]
        return total / len(self.of_samples)

    def _numbers(self, cut: np.ndarray, old_size: int, size: int) -> np.ndarray:
        """Return the new cluster, or else the likeliest old cluster, of each added document, (B,) int32."""
        likeliest = self._shares(cut, old_size, size)[:, :old_size].argmax(axis=1)
        is_new = (self.label >= 0) & (self.label < size - old_size)
        return np.where(is_new, old_size + self.label, likeliest).astype(np.int32)


def with_added(posterior: Posterior, samples: list[Sample], **changed: Any) -> Posterior:
    """Return ``posterior`` extended by added documents.

    ``samples`` has the old and the added documents, with one sample per sample of the posterior. The clusters of added
    documents are taken from the consensus of the samples. ``changed`` are further attributes to replace.
    """
    old, n_before, k = posterior.cluster, len(posterior.cluster), posterior.representative.n_clusters
    first, numbers = posterior._first, posterior._sample_numbers
    several = [samples[one].cluster for one in numbers]
    cluster = consensus.consensus(several, numbers.index(first))
    cluster[:n_before] = old
    new, sizes = np.unique(cluster[n_before:][cluster[n_before:] >= k], return_counts=True)
    new = new[np.argsort(-sizes, kind="stable")]
    number = np.full(samples[first].n_clusters, -1)
    number[new] = np.arange(len(new))
    order = np.concatenate([np.argsort(posterior.by_size), new, np.setdiff1d(np.arange(k, len(number)), new)])
    by_size = np.empty(len(number), np.int64)
    by_size[order] = np.arange(len(number))
    earlier = posterior.added
    label = number[cluster[n_before:]].astype(np.int32)
    added = Added(
        before=np.append([] if earlier is None else earlier.before, n_before).astype(np.int64),
        first=first,
        cluster=cluster,
        by_size=by_size,
        label=label if earlier is None else np.append(earlier.label, label),
    )
    hierarchy = posterior.hierarchy
    if hierarchy is not None:
        hierarchy = _grow(hierarchy, several, added, len(added.before) - 1)
    return _pin(replace(posterior, samples=samples, hierarchy=hierarchy, **changed), added)


def _grow(hierarchy: Hierarchy, several: Sequence[np.ndarray], added: Added, update: int) -> GrownHierarchy:
    """Return the hierarchy extended by the documents of the update with index ``update``."""
    bounds = np.append(added.before, len(added.cluster))
    rows, start = slice(bounds[update], bounds[update + 1]), bounds[0]
    label = added.label[rows.start - start : rows.stop - start]
    old = hierarchy.at(hierarchy.n_clusters)
    samples = [one[: rows.stop] for one in several]
    plain = GrownHierarchy.from_hierarchy(hierarchy, samples, np.zeros(len(label), np.int32), label)
    names, labels = np.unique(old, return_inverse=True)
    cluster = names[plain._numbers(labels, hierarchy.n_clusters, plain.n_clusters).clip(max=len(names) - 1)]
    return GrownHierarchy.from_hierarchy(hierarchy, samples, cluster, label)


def _pin(posterior: Posterior, added: Added) -> Posterior:
    """Set the clusters and cluster numbers of ``added`` in the posterior, and return the posterior."""
    posterior.added = added
    occupied = np.unique(added.cluster[added.cluster >= 0])
    of_all = {"_first": added.first, "cluster": added.cluster, "by_size": added.by_size, "n_clusters": len(occupied)}
    posterior.__dict__ |= of_all
    return posterior


def stored_documents(arrays: Mapping[str, np.ndarray], n_documents: int) -> int:
    """Return the number of documents in the stored hierarchy, which is the number of documents of the first fit."""
    before = arrays.get(f"{_PREFIX}before")
    return n_documents if before is None else int(np.ravel(before)[0])


def restored(posterior: Posterior, arrays: Mapping[str, np.ndarray]) -> Posterior:
    """Return the posterior with updates, if any, restored from :meth:`Added.arrays`. Raises ValueError if invalid."""
    stored = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
    if not stored:
        return posterior
    n_documents, first = len(posterior.samples[0].cluster), int(stored.get("first", -1))
    if not 0 <= first < len(posterior.samples):
        raise ValueError(f"'added.first' is {first}, which is not the number of a sample")
    sizes = {"J": n_documents, "K": posterior.samples[first].n_clusters}
    check_arrays(stored, _DESCRIBED, sizes)
    before = stored["before"]
    if len(stored["label"]) != n_documents - before[0] or not (np.diff(np.append(before, n_documents)) > 0).all():
        raise ValueError("'added.before' does not fit the documents")
    added = Added(before, first, stored["cluster"], stored["by_size"], stored["label"])
    if (hierarchy := posterior.hierarchy) is not None:
        several = [posterior.samples[one].cluster for one in posterior._sample_numbers]
        hierarchy = replace(hierarchy, samples=[one[: before[0]] for one in several] if len(several) > 1 else ())
        for update in range(len(before)):
            hierarchy = _grow(hierarchy, several, added, update)
        posterior.hierarchy = hierarchy
    return _pin(posterior, added)
