"""The merge tree: clusters joined two by two, each time those whose union loses least marginal likelihood.

What a cluster holds is independent of the others given the assignments, so that joining k and l changes the log
marginal likelihood by L(k and l) - L(k) - L(l), where L is the log marginal of one cluster's topics, Dirichlet around
v epsilon (docs/model.md, section 2), and of its contexts, by their families. With a document
level, the tables of documents take the place of tokens (section 8); where each cluster is a topic (FastEx, NIPS12
eq. 18), its words do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import stopping
from mc2core.base.progress import Work, work
from mc2core.compute.kernels import kernel
from mc2core.compute.special import log_gamma
from mc2core.families import DirichletCategorical, Family
from mc2core.posterior.posterior import Posterior
from mc2core.posterior.sample import Sample

MOST_CLUSTERS = 5000
"""Clusters of which a tree is made: its table of pairs takes 8 bytes each, 0.2 GB."""
# share by which totals read off a sample's proportions may exceed its tokens
_ROUNDING = 1e-3


@dataclass(frozen=True)
class MergeTree:
    """K clusters and their K - 1 unions, in the order in which they were joined.

    Attributes
    ----------
    pairs : (K - 1, 2) int64
        What union K + i joins: clusters 0..K-1, unions from K on; the one with the smaller first cluster comes first.
    changes : (K - 1,) float64
        Change of the log marginal likelihood in nats by each union, given the assignments; below 0 is a loss.
    """

    pairs: np.ndarray
    changes: np.ndarray

    @property
    def n_clusters(self) -> int:
        """K."""
        return len(self.pairs) + 1

    def cut(self, n_groups: int) -> np.ndarray:
        """(K,) int64: the group of each cluster where ``n_groups`` are left, numbered by their first cluster.

        ValueError unless ``n_groups`` lies between 1 and K.
        """
        if not 1 <= n_groups <= self.n_clusters:
            raise ValueError(
                f"{n_groups} clusters were asked for; there are {self.n_clusters}, and merging leaves 1 at least"
            )
        group = np.arange(self.n_clusters)
        first = np.concatenate([group, np.zeros(len(self.pairs), np.int64)])  # smallest cluster of each node
        for node, (one, other) in enumerate(self.pairs[: self.n_clusters - n_groups], self.n_clusters):
            first[node] = first[one]
            group[group == first[other]] = first[one]
        return np.unique(group, return_inverse=True)[1].astype(np.int64)


def merge_tree(posterior: Posterior) -> MergeTree:
    """The tree of the clusters of a posterior's representative; at each step the first of the best pairs.

    ValueError where each document is a cluster (HDP) or there are more than ``MOST_CLUSTERS``.
    """
    sample = posterior.representative
    if sample.documents_are_clusters:
        raise ValueError("each document is a cluster of its own in this posterior; there is nothing to merge")
    if sample.n_clusters > MOST_CLUSTERS:
        raise ValueError(f"the posterior has {sample.n_clusters} clusters; at most {MOST_CLUSTERS} can be merged")
    parts = [_part_of_content(sample), *_parts_of_contexts(posterior)]
    return _join(sample.n_clusters, parts)


def _join(n_clusters: int, parts: list[_Dirichlet | _Dense]) -> MergeTree:
    with stopping.noting(), work("merge tree", 2 * n_clusters - 1, "rows and unions") as told:
        return _join_nearest(n_clusters, parts, told)


def _join_nearest(n_clusters: int, parts: list[_Dirichlet | _Dense], told: Work) -> MergeTree:
    changes = np.full((n_clusters, n_clusters), -np.inf)
    for one in range(n_clusters):
        changes[one, one + 1 :] = sum(part.changes(one)[one + 1 :] for part in parts)
        told.advance()
    best, partner = changes.max(axis=1), changes.argmax(axis=1)
    node = np.arange(n_clusters)
    pairs, losses = np.empty((n_clusters - 1, 2), np.int64), np.empty(n_clusters - 1)
    for step in range(n_clusters - 1):
        one = int(best.argmax())
        other = int(partner[one])
        pairs[step], losses[step] = (node[one], node[other]), best[one]
        for part in parts:
            part.join(one, other)
        node[one], node[other] = n_clusters + step, -1
        alive = node >= 0
        row = np.where(alive, sum(part.changes(one) for part in parts), -np.inf)
        changes[other, :], changes[:, other] = -np.inf, -np.inf
        changes[one, one + 1 :], changes[:one, one] = row[one + 1 :], row[:one]
        stale = np.flatnonzero(np.isin(partner, (one, other)) | (changes[:, one] > best) | np.isin(node, node[one]))
        best[stale], partner[stale] = changes[stale].max(axis=1), changes[stale].argmax(axis=1)
        best[other] = -np.inf
        told.advance()
    return MergeTree(pairs, losses)


# -- what a cluster holds ------------------------------------------------------------------------------------------
def _part_of_content(sample: Sample) -> _Dirichlet:
    """Its words, where each cluster is a topic; else its tokens, or its documents' tables, of each topic."""
    known: Any = sample.topic_given_cluster
    if sp.issparse(known):
        if known.shape[0] != known.shape[1] or (known != sp.identity(known.shape[0], format="csr")).nnz:
            raise ValueError("clusters with sparse shares of several topics cannot be merged")
        counts: Any = sp.csr_matrix(sample.topic_words, dtype=np.float64)
        return _Dirichlet(counts, np.full(counts.shape[1], sample.topic_prior))
    prior = sample.table_concentration * np.append(sample.topic_weights, max(0.0, 1.0 - sample.topic_weights.sum()))
    shares = np.hstack([(1.0 - sample.new_topic_weight)[:, None] * known, sample.new_topic_weight[:, None]])
    totals = _totals(sample, shares, prior)
    counts = np.maximum(shares * (totals[:, None] + sample.table_concentration) - prior, 0.0)
    counts[:, prior == 0] = 0.0
    # rounding leaves traces of topics that a cluster has not met
    counts[counts < 1e-6 * np.maximum(totals, 1.0)[:, None] / counts.shape[1]] = 0.0
    return _Dirichlet(sp.csr_matrix(counts), prior)


def _totals(sample: Sample, shares: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(K,) tokens, or tables, of each cluster.

    E[tau_km] = (c_km + v epsilon_m) / (c_k. + v), and some topic, new ones at least, has c_km = 0: the largest
    v epsilon_m / E[tau_km] is c_k. + v. Where these sum to more than the tokens, tau is no Dirichlet (SVI with tables),
    and a cluster gets its weight's share of them.
    """
    v = sample.table_concentration
    ratio = np.divide(prior, shares, where=shares > 0, out=np.zeros_like(shares))
    totals = np.maximum(ratio.max(axis=1) - v, 0.0)
    n_tokens = float(sample.topic_words.sum())
    if totals.sum() <= (1.0 + _ROUNDING) * n_tokens:
        return totals
    return sample.cluster_weights * n_tokens


def _parts_of_contexts(posterior: Posterior) -> Iterator[_Dirichlet | _Dense]:
    for name, family in sorted(posterior.families.items()):
        prior, natural = family.prior(posterior.dimensions[name]), posterior.context_parameters(name)
        if isinstance(family, DirichletCategorical):
            yield _Dirichlet(sp.csr_matrix(np.maximum(natural - prior, 0.0)), prior)
        else:
            yield _Dense(family, natural, prior)


class _Dense:
    """A context of few natural parameters."""

    def __init__(self, family: Family, natural: np.ndarray, prior: np.ndarray) -> None:
        self._log_marginal: Callable[[np.ndarray], np.ndarray] = family.log_marginal
        self._natural, self._prior = natural.copy(), prior
        self._alone = self._log_marginal(natural)

    def changes(self, one: int) -> np.ndarray:
        """(K,) change of the log marginal by joining each cluster with ``one``; senseless for those gone and itself."""
        union = self._natural + self._natural[one] - self._prior
        return self._log_marginal(union) - self._alone - self._alone[one]

    def join(self, one: int, other: int) -> None:
        """Put what ``other`` holds into ``one``."""
        self._natural[one] += self._natural[other] - self._prior
        self._alone[one] = self._log_marginal(self._natural[one])


class _Dirichlet:
    """Counts under a Dirichlet prior: rows one after another in a store, a union at its end.

    A union has no more entries than its two parts, so that twice the entries of the start are room enough.
    """

    def __init__(self, counts: sp.csr_matrix, prior: np.ndarray) -> None:
        counts = sp.csr_matrix(counts, dtype=np.float64, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        self._prior, self._total_prior = prior, float(prior.sum())
        self._start, self._end = counts.indptr[:-1].astype(np.int64), counts.indptr[1:].astype(np.int64)
        self._columns = np.zeros(2 * counts.nnz, np.int32)
        self._values = np.zeros(2 * counts.nnz)
        self._columns[: counts.nnz], self._values[: counts.nnz] = counts.indices, counts.data
        self._totals = np.asarray(counts.sum(axis=1)).ravel()
        self._row = np.zeros(len(prior))

    def changes(self, one: int) -> np.ndarray:
        """As of :class:`_Dense`."""
        out = np.empty(len(self._start))
        columns, values = self._entries(one)
        self._row[columns] = values
        rows = self._start, self._end, self._columns, self._values, self._totals
        _fill_changes(*rows, self._row, self._totals[one], self._prior, self._total_prior, out)
        self._row[columns] = 0.0
        return out

    def join(self, one: int, other: int) -> None:
        """As of :class:`_Dense`."""
        (columns, values), (more, further) = self._entries(one), self._entries(other)
        union, place = np.unique(np.concatenate([columns, more]), return_inverse=True)
        sums = np.bincount(place, np.concatenate([values, further]))
        self._totals[one] += self._totals[other]
        self._end[other] = self._start[other]
        self._end[one] = self._start[one]
        begin = int(self._end.max(initial=0))
        if begin + len(union) > len(self._columns):
            begin = self._close_ranks()
        self._start[one], self._end[one] = begin, begin + len(union)
        self._columns[begin : self._end[one]], self._values[begin : self._end[one]] = union, sums

    def _entries(self, one: int) -> tuple[np.ndarray, np.ndarray]:
        place = slice(self._start[one], self._end[one])
        return self._columns[place], self._values[place]

    def _close_ranks(self) -> int:
        """Move the rows to the front of the store; returns where they end."""
        rows = [self._entries(one) for one in range(len(self._start))]
        sizes = np.array([len(columns) for columns, _ in rows])
        end = int(sizes.sum())
        self._columns[:end] = np.concatenate([columns for columns, _ in rows])
        self._values[:end] = np.concatenate([values for _, values in rows])
        self._end = np.cumsum(sizes)
        self._start = self._end - sizes
        return end


@kernel
def _log_ratio(prior, one, other):
    """ln G(a + n + m) - ln G(a + n) - ln G(a + m) + ln G(a)."""
    return log_gamma(prior + one + other) - log_gamma(prior + one) - log_gamma(prior + other) + log_gamma(prior)


@kernel
def _fill_changes(start, end, columns, values, totals, row, total, prior, total_prior, out):
    """Into ``out`` the change of the log marginal by joining each row with ``row`` (D,), whose sum is ``total``."""
    for k in range(len(start)):
        change = -_log_ratio(total_prior, totals[k], total)
        for position in range(start[k], end[k]):
            met = row[columns[position]]
            if met > 0.0:
                change += _log_ratio(prior[columns[position]], values[position], met)
        out[k] = change
