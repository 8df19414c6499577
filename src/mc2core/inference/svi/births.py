"""Births of clusters in a stream of documents, by SVI with a document level.

Clusters of a fit hardly part, so that documents of a new subject would stay in an old one. After the last pass over a
block of a stream (:mod:`mc2core.inference.svi.stream`) this pass is tried again with more clusters: each begins with
the tables of documents of the block that are like each other in their topics, and documents choose among all. Then
clusters that were born are joined with others where the bound of the block is not lower by it, the best unions first,
and what is left is kept where the bound is higher than without births.

Where each of these would lose much as a cluster, before any document is looked at again, nothing is tried.
The bound is that of the block's documents under globals whose statistics count each of them once at most: where a
document stands for many of a population, what it says of a new cluster would count as often, and clusters would be born
of a few that are alike by chance.
"""

from __future__ import annotations

import copy
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.inference.seeding import cluster_rows, members, unit_rows
from mc2core.inference.svi.document_level import DocumentLevelGlobals, Local, Visit
from mc2core.inference.svi.joining import Documents, apart, cluster_gains, log_seats, numbers, rising
from mc2core.inference.svi.local import Batch
from mc2core.inference.svi.state import GROUP, topic_divergence

# documents that a cluster can begin with, at least
_MIN_DOCUMENTS = 2
# nats that a group may lose for each of its tables as a cluster of its own, before it is tried
_MAX_LOSS = 1.0


class Alike(NamedTuple):
    """G groups of documents that are like each other: (G, B) the weight of each in a group, and the sums of these."""

    documents: sp.csr_matrix
    sizes: np.ndarray
    topics: np.ndarray


class Trial(NamedTuple):
    """A state, (K,) the numbers that its clusters have of those before, and what the block's documents say of it.

    ``bound``, of which ``of_topics`` is the divergence of topics, in nats, and ``visit`` are those of ``counted``, in
    which each document of the block counts once at most.
    """

    state: DocumentLevelGlobals
    place: np.ndarray
    counted: DocumentLevelGlobals
    visit: Visit
    bound: float
    of_topics: float

    @property
    def is_born(self) -> np.ndarray:
        """(K',) bool: clusters that were not there before."""
        is_born = np.ones(len(self.state.n_km), bool)
        is_born[self.place] = False
        return is_born


def bear_clusters(
    state: DocumentLevelGlobals,
    batch: Batch,
    local: Local,
    before: dict[str, Any],
    since: dict[str, Any],
    n: int,
    scale: float,
    rate: float,
    pool: Executor | None,
) -> None:
    """Add up to ``n`` clusters where the bound of a block is higher with them, behind those that there are, in place.

    Parameters
    ----------
    state : after the last pass over the block ``batch``, which it is left as where no cluster is born
    local : of that pass
    before, since : :meth:`.state.Globals.rows_of`, before that pass and before the first one
    scale, rate : of the pass
    """
    weight = scale * rate
    alike = _alike(state, local, n, weight)
    if not _may_part(state, batch, alike, weight):
        return
    documents = Documents(batch, min(weight, 1.0), pool, columns=batch.columns)
    plain, n_before = state.rows_of(batch), len(state.n_km)
    without = _tried(documents, state, np.arange(n_before), weight).bound
    trial = copy.copy(state)
    trial.cluster = state.cluster.copy()
    trial.cluster[batch.rows] = -1  # free, however few mini-batches there were
    trial.go_back(batch, before)
    rows = dict(since)
    _suggest(trial, batch, alike, rows)
    trial.step(batch, scale, rate, pool, since=rows)
    taken = np.bincount(trial.cluster[batch.rows], minlength=len(trial.n_km)) > 0
    taken[:n_before] = True
    trial.follow(trial.cluster)
    _keep(trial, np.flatnonzero(taken))
    found = _joined(documents, _tried(documents, trial, np.arange(n_before), weight), weight)
    if found.bound > without and found.is_born.any():
        _keep(found.state, np.append(found.place, np.flatnonzero(found.is_born)))
        vars(state).update(vars(found.state))
        return
    state.go_back(batch, plain)


def _alike(state: DocumentLevelGlobals, local: Local, n: int, weight: float) -> Alike:
    """Up to n groups of documents by their topics; none of fewer than two."""
    topics = np.einsum("bc,bcm->bm", local.share, local.counts)
    rng = streams.generator(0, "svi.births of clusters", state.n_updates)
    group = cluster_rows(unit_rows(sp.csr_matrix(topics)), n, rng)
    sizes = np.bincount(group, minlength=n)
    chosen = np.flatnonzero(sizes >= _MIN_DOCUMENTS)
    own = weight * members(group, n)[chosen]
    return Alike(own, weight * sizes[chosen], own @ topics)


def _may_part(state: DocumentLevelGlobals, batch: Batch, alike: Alike, weight: float) -> bool:
    """Whether some group loses little as a cluster of its own, who sits at which table being as it is.

    What documents win when they change their tables is not known before the trial; where clusters were born, the best
    group lost .6 nats a table at most, or won.
    """
    factor = min(1.0 / weight, 1.0)
    a, v, alpha = state.table_concentration * state.topic_weights, state.table_concentration, state.concentrations()
    cluster, n_k, n_km = state.cluster[batch.rows], factor * state.n_k, factor * state.n_km
    tables, sizes = factor * _tables(state) * alike.topics, factor * alike.sizes

    def evidence(of: np.ndarray) -> np.ndarray:
        return np.asarray(rising(a, of).sum(axis=-1) - rising(v, of.sum(axis=-1)))

    def seats(of: np.ndarray) -> float:
        return float(log_seats(-np.sort(-of), alpha.mean[GROUP]))

    for number, of in enumerate(tables):
        k = np.bincount(cluster[alike.documents[number].indices]).argmax()
        left, sizes_left = np.maximum(n_km[k] - of, 0.0), np.append(n_k, sizes[number])
        sizes_left[k] = max(n_k[k] - sizes[number], 0.0)
        gain = evidence(of) + evidence(left) - evidence(n_km[k])
        gain += seats(sizes_left) - seats(n_k) + alpha.mean_log[GROUP]
        if gain > -_MAX_LOSS * of.sum():
            return True
    return False


def _suggest(state: DocumentLevelGlobals, batch: Batch, alike: Alike, rows: dict[str, Any]) -> None:
    """Add clusters of documents that are like each other, in place."""
    contexts = (alike.documents @ sp.csr_matrix(batch.contexts.statistics)).toarray()
    state.add_clusters(alike.sizes, _tables(state) * alike.topics, contexts, batch, rows)


def _tables(state: DocumentLevelGlobals) -> float:
    """Of a token."""
    return float(state.n_km.sum() / max(state.n_m.sum(), 1e-300))


def _keep(state: DocumentLevelGlobals, clusters: np.ndarray) -> None:
    """These clusters alone, in this order, with the weights of their documents, in place."""
    n_k, alpha = state.n_k[clusters], state.concentrations().mean[GROUP]
    state.keep(clusters, np.arange(len(state.n_m)))
    state.group_weights = state.law.posterior(n_k, alpha)


def _tried(
    documents: Documents, state: DocumentLevelGlobals, place: np.ndarray, weight: float, of_topics: float | None = None
) -> Trial:
    """What the documents, which count ``weight`` times in ``state``, say of it where each counts once at most."""
    factor, counted = min(1.0 / weight, 1.0), copy.copy(state)
    counted.shrink, counted.context_shrink = factor * state.shrink, factor * state.context_shrink
    for name in ("n_m", "context_totals", "n_km"):
        setattr(counted, name, factor * getattr(state, name))
    counted.group_weights = state.law.posterior(factor * state.n_k, state.concentrations().mean[GROUP])
    of_topics = topic_divergence(counted, documents.pool) if of_topics is None else of_topics
    _, visit, bound = documents.visit(counted, of_topics)
    return Trial(state, place, counted, visit, bound, of_topics)


def _joined(documents: Documents, now: Trial, weight: float) -> Trial:
    """With as many unions of clusters that were born, with each other or with others, as do not lower the bound."""
    while now.is_born.any():
        pairs, gains = cluster_gains(now.counted, now.visit, documents.scale)
        is_new = now.is_born[pairs].any(axis=1)
        pairs = apart(pairs[is_new], gains[is_new])
        while len(pairs):
            state = copy.copy(now.state)
            number = state.join(numbers(pairs, len(state.n_km)), np.arange(len(state.n_m)))
            trial = _tried(documents, state, number[now.place], weight, now.of_topics)
            if trial.bound >= now.bound:
                now = trial
                break
            pairs = pairs[: len(pairs) // 2]
        else:
            break
    return now
