"""Birth moves of topics and clusters in a stream of documents, by SVI (docs/notes/arrivals.md).

**Topics** are proposed after the first pass over a block of a stream. A new topic is initialised with the words of
similar documents of the block. After the next pass, it has only the tokens that the documents assign to it.

**Clusters** of a fit are hardly ever split, so documents on a new subject would stay in an old cluster. Therefore the
last pass over a block is repeated with additional clusters. Each new cluster is initialised with the tables of
documents with similar topics, and documents are then assigned among all clusters. Next, new clusters are merged as in
:mod:`.merging`. The remaining new clusters are accepted if they raise the bound of the block. This trial is skipped if,
by the merge score, every new cluster would lower the bound by a large amount. In the bound, a document counts at most
once, and not as often as in the population. Otherwise, a few documents that are similar by chance would form clusters.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.inference.seeding import cluster_rows, members, unit_rows
from mc2core.inference.svi import merging
from mc2core.inference.svi.concentrations import GROUP
from mc2core.inference.svi.documents import Batch
from mc2core.inference.svi.globals import Globals
from mc2core.inference.svi.local.document_level import Candidates, DocumentPosteriors, local_step
from mc2core.inference.svi.merging import SampledDocuments

# fraction of the tokens of a group of documents with which its new topic is initialised
_SUGGESTED = 0.5
# words fit a topic if Pearson's statistic is at most this number of standard deviations above its mean
_DEVIATIONS = 3.0
# smallest number of documents with which a new cluster is initialised
_MIN_DOCUMENTS = 2
# largest loss of the score by a new cluster, in nats per table, at which the new cluster is tried
_MAX_LOSS = 1.0


# -- topics --------------------------------------------------------------------------------------------------------
def suggest_topics(state: Globals, batch: Batch, since: dict[str, Any], n: int, weight: float) -> None:
    """Add up to ``n`` topics, in place, from groups of similar documents whose words fit no existing topic.

    Each document counts ``weight`` times. Empty topics are also added to the rows ``since`` (:meth:`.Globals.rows_of`).
    """
    counts = sp.csr_matrix((batch.counts, batch.indices, batch.indptr), (batch.n_documents, len(batch.words)))
    group = cluster_rows(unit_rows(counts), n, streams.generator(0, "svi.births", state.n_updates))
    alike = (members(group, n) @ counts).toarray().T
    alike = alike[:, ~is_of_one_topic(state, batch.words, alike)]
    if not alike.size:
        return
    add_topics(state, alike.shape[1], since)
    own, n, words = state.tau, alike.shape[1], _SUGGESTED * weight * alike
    state.topic_words[batch.words, -n:] = words / state.shrink
    state.n_m[-n:] = words.sum(axis=0)
    # in each cluster, a new topic has half as many tokens as the average topic
    own.n_km[:, -n:] = 0.5 * own.n_km.sum(axis=1, keepdims=True) / len(state.n_m)


def is_of_one_topic(state: Globals, words: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return whether each column of ``counts`` (U, n), the counts of ``words`` (U,), fits one of the topics, (n,) bool.

    Counts fit if Pearson's statistic for the likeliest topic is at most three standard deviations above its
    mean. Mean and standard deviation are exact for a multinomial distribution, even for rare words.
    """
    n_words, totals = len(state.topic_words), counts.sum(axis=0)
    size = state.n_m + n_words * state.topic_word_prior
    of_words = (state.shrink * state.topic_words[words] + state.topic_word_prior) / size
    topic = (np.log(of_words).T @ counts).argmax(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (counts**2 / of_words[:, topic]).sum(axis=0) / totals - totals
        inverse = (size[topic] / (state.shrink * state.topic_words[:, topic] + state.topic_word_prior)).sum(axis=0)
        variance = 2.0 * (n_words - 1) + (inverse - n_words**2 - 2.0 * n_words + 2.0) / totals
        return np.asarray((totals == 0) | (found <= n_words - 1 + _DEVIATIONS * np.sqrt(variance)))


def add_topics(state: Globals, n: int, rows: dict[str, Any]) -> None:
    """Add ``n`` topics without tokens to the state and to ``rows``, in place.

    The remaining weight is divided equally among the new topics and all further topics.
    """
    own = state.tau
    holders = {"topic_words": state, "n_m": state, "n_km": own, "topic_weights": own, "remaining": own}
    now = {name: getattr(part, name) for name, part in holders.items()}
    for part in (now, rows):
        for name in ("topic_words", "n_km", "n_m"):
            part[name] = np.concatenate([part[name], np.zeros((*part[name].shape[:-1], n))], axis=-1)
        part["remaining"] = part["remaining"] / (n + 1)
        part["topic_weights"] = np.append(part["topic_weights"], np.full(n, part["remaining"]))
    for name, value in now.items():
        setattr(holders[name], name, value)
    state.settings = state.settings._replace(n_topics=max(state.settings.n_topics, len(state.n_m)))


# -- clusters ------------------------------------------------------------------------------------------------------
class Alike(NamedTuple):
    """G groups of similar documents.

    documents : (G, B) sparse, weight of each document in its group
    sizes : (G,) float64, total weight of the documents of each group
    topics : (G, M) float64, expected tokens of each topic in each group
    """

    documents: sp.csr_matrix
    sizes: np.ndarray
    topics: np.ndarray


class Trial(NamedTuple):
    """A trial state, and its evaluation on the documents of the block.

    state : state with new clusters
    place : (K,) int, index in ``state`` of each cluster that existed before
    counted : copy of ``state`` with scaled statistics, so that each document of the block counts at most once
    candidates, bound : local posteriors of the documents, and the bound in nats, under ``counted``
    of_topics : divergence of the topics of ``counted``, in nats
    """

    state: Globals
    place: np.ndarray
    counted: Globals
    candidates: Candidates
    bound: float
    of_topics: float

    @property
    def is_new(self) -> np.ndarray:
        """Whether each cluster of the trial state is new, (K',) bool."""
        is_new = np.ones(self.state.n_clusters, bool)
        is_new[self.place] = False
        return is_new


def add_new_clusters(
    state: Globals,
    batch: Batch,
    local: DocumentPosteriors,
    before: dict[str, Any],
    since: dict[str, Any],
    n: int,
    scale: float,
    rate: float,
    pool: Executor | None,
) -> None:
    """Add up to ``n`` clusters, in place, if they raise the bound of a block; new clusters come last.

    Parameters
    ----------
    state : state after the last pass over the block ``batch``; it does not change if no cluster is added
    local : local posteriors of the last pass
    before, since : results of :meth:`.Globals.rows_of` before the last pass and before the first pass
    scale, rate : weight of a document and learning rate in the last pass
    """
    weight = scale * rate
    alike = _alike(state, local, n, weight)
    if not _may_part(state, batch, alike, weight):
        return
    documents = SampledDocuments(batch, min(weight, 1.0), pool, columns=batch.columns)
    plain, n_before = state.rows_of(batch), state.n_clusters
    without = _tried(documents, state, np.arange(n_before), weight).bound
    trial = state.copy()
    trial.cluster = state.cluster.copy()
    trial.cluster[batch.rows] = -1  # otherwise, documents might be fixed to their clusters
    trial.undo_steps(batch, before)
    rows = dict(since)
    contexts = (alike.documents @ sp.csr_matrix(batch.contexts.statistics)).toarray()
    add_clusters(trial, alike.sizes, _tables(trial) * alike.topics, contexts, batch, rows)
    trial.step(batch, local_step(trial, batch, pool), scale, rate, pool, since=rows)
    taken = np.bincount(trial.cluster[batch.rows], minlength=trial.n_clusters) > 0
    taken[:n_before] = True
    trial.set_documents(trial.cluster)
    trial.select(np.flatnonzero(taken))
    found = _merged(documents, _tried(documents, trial, np.arange(n_before), weight), weight)
    if found.bound > without and found.is_new.any():
        found.state.select(np.append(found.place, np.flatnonzero(found.is_new)))
        state.replace_by(found.state)
        return
    state.undo_steps(batch, plain)


def _alike(state: Globals, local: DocumentPosteriors, n: int, weight: float) -> Alike:
    """Return up to ``n`` groups of at least two documents with similar topics."""
    topics = np.einsum("bc,bcm->bm", local.share, local.counts)
    rng = streams.generator(0, "svi.births of clusters", state.n_updates)
    group = cluster_rows(unit_rows(sp.csr_matrix(topics)), n, rng)
    sizes = np.bincount(group, minlength=n)
    chosen = np.flatnonzero(sizes >= _MIN_DOCUMENTS)
    own = weight * members(group, n)[chosen]
    return Alike(own, weight * sizes[chosen], own @ topics)


def _may_part(state: Globals, batch: Batch, alike: Alike, weight: float) -> bool:
    """Return whether at least one group loses little likelihood as a new cluster, without contexts.

    The loss is computed from the current tables, because the gain from new tables is unknown before the trial. In all
    trials that added clusters, the best group lost at most 0.6 nats per table.
    """
    factor = min(1.0 / weight, 1.0)
    cluster, n_k, n_km = state.cluster[batch.rows], factor * state.n_k, factor * state.tau.n_km
    tables, sizes, last = factor * _tables(state) * alike.topics, factor * alike.sizes, np.array([len(n_k)])
    for number, of in enumerate(tables):
        k = np.bincount(cluster[alike.documents[number].indices]).argmax()
        parted, n_parted = np.vstack([n_km, of]), np.append(n_k, sizes[number])
        parted[k], n_parted[k] = np.maximum(n_km[k] - of, 0.0), max(n_k[k] - sizes[number], 0.0)
        if merging.UnionScore(state, n_parted, parted).gains(int(k), last)[0] < _MAX_LOSS * of.sum():
            return True
    return False


def _tables(state: Globals) -> float:
    """Return the expected number of tables per token, over all clusters and topics."""
    return float(state.tau.n_km.sum() / max(state.n_m.sum(), 1e-300))


def add_clusters(
    state: Globals, n_k: np.ndarray, n_km: np.ndarray, contexts: np.ndarray, batch: Batch, rows: dict[str, Any]
) -> None:
    """Add n clusters of a Dirichlet process, in place; new clusters come last.

    New clusters are initialised with ``n_k`` (n,) documents, ``n_km`` (n, M) tables and ``contexts`` (n, columns of
    ``batch``) statistics. Clusters without statistics are added to ``rows``, an earlier result of
    :meth:`.Globals.rows_of` for ``batch``.
    """
    n, own, alpha = len(n_k), state.tau, state.concentrations().mean[GROUP]
    counts = np.zeros((len(state.context_counts), n))
    counts[batch.columns] = contexts.T / state.context_shrink
    totals = state.contexts.sums_by_context(contexts.T, batch.columns)
    none = {name: np.zeros((*rows[name].shape[:-1], n)) for name in ("context_counts", "context_totals")}
    none |= {"group_weights": state.law.posterior(np.zeros(n), alpha)}
    for name, more in none.items():
        rows[name] = np.concatenate([rows[name], more], axis=1)
    rows["n_km"] = np.concatenate([rows["n_km"], np.zeros_like(n_km)])
    state.group_weights = state.law.posterior(np.append(state.n_k, n_k), alpha)
    state.context_counts = np.concatenate([state.context_counts, counts], axis=1)
    state.context_totals = np.concatenate([state.context_totals, totals], axis=1)
    own.n_km = np.concatenate([own.n_km, n_km])
    state.settings = state.settings._replace(n_clusters=max(state.settings.n_clusters, len(own.n_km)))


def _tried(
    documents: SampledDocuments, state: Globals, place: np.ndarray, weight: float, of_topics: float | None = None
) -> Trial:
    """Evaluate a trial ``state`` on the sampled documents.

    In ``state``, each document counts ``weight`` times. For the bound, each document counts at most once.
    """
    factor, counted = min(1.0 / weight, 1.0), state.copy()
    counted.shrink, counted.context_shrink = factor * state.shrink, factor * state.context_shrink
    counted.n_m, counted.context_totals = factor * state.n_m, factor * state.context_totals
    counted.tau.n_km = factor * state.tau.n_km
    counted.group_weights = state.law.posterior(factor * state.n_k, state.concentrations().mean[GROUP])
    of_topics = counted.topic_divergence(documents.pool) if of_topics is None else of_topics
    _, candidates, bound = documents.local_step(counted, of_topics)
    return Trial(state, place, counted, candidates, bound, of_topics)


def _merged(documents: SampledDocuments, now: Trial, weight: float) -> Trial:
    """Merge new clusters with new or old clusters as long as this does not lower the bound; return the trial."""

    def merged(pairs: np.ndarray) -> Trial:
        state = now.state.copy()
        number = merging.merge(state, merging.numbers(pairs, state.n_clusters), np.arange(len(state.n_m)))
        return _tried(documents, state, number[now.place], weight, now.of_topics)

    while now.is_new.any():
        pairs, gains = merging.cluster_gains(now.counted, now.candidates, documents.scale)
        is_of_new = now.is_new[pairs].any(axis=1)
        found = merging.best_unions(now, merging.apart(pairs[is_of_new], gains[is_of_new]), merged)
        if found is now:
            break
        now = found
    return now
