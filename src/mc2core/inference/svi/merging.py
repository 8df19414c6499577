"""Merge moves of SVI with a document level: scores of merges, and selection of merges (docs/model.md).

Mean-field steps do not merge two copies of one topic or cluster. Therefore, at the end of an epoch, pairs of topics or
clusters are merged if this does not lower the bound. The change of the bound is computed from the local posteriors of
some documents, with the probabilities gamma of the two topics, or mu of the two clusters, added up. For topics, this
change is exact. For clusters, the score (:class:`UnionScore`, also used by birth moves) is far below the true gain of
the bound, because documents of a merged cluster also change their topics. The score only determines which pairs are
proposed, and in which order.

Disjoint pairs are selected, the best first, and merged together. Then the local posteriors and omega are updated, with
and without the merges, because fewer clusters need a smaller omega. If the merges lower the bound, the move is repeated
with the better half of the pairs, until the bound does not fall or no pair is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy.special import betaln
from scipy.special import digamma as array_digamma

from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.svi.concentrations import GROUP
from mc2core.inference.svi.documents import Batch, renumbered, sum_by, take_batch
from mc2core.inference.svi.globals import Globals
from mc2core.inference.svi.local import document_level
from mc2core.inference.svi.local.document_level import MIN_SHARE, BatchCells, Candidates, n_epochs
from mc2core.inference.svi.proportions import MIN_DOCUMENT_PRIOR
from mc2core.inference.svi.rising import log_rising, log_rising_factorial
from mc2core.inference.svi.words import WordScores

# size of the sample that evaluates merges with mini-batches: most documents, most tokens, fewest documents
_MAX_SAMPLE, _MAX_TOKENS, _MIN_SAMPLE = 1000, 100_000, 100
# topics are not merged in the first epochs, because all topics of a cluster are then similar mixtures
_EPOCHS_BEFORE_TOPICS = 3
# largest loss by a merge of topics, in nats per token of the smaller topic. Two topics of equal size without common
# words lose twice as much. Without this limit, the bound would leave one topic per cluster
_MAX_LOSS = math.log(2.0)
# number of steps of omega before the bounds with and without a merge are compared
_STEPS_OF_OMEGA = 2
# number of most similar topics with which each topic is paired
_NEAR = 4
_DOCUMENT_BLOCK = 16


# -- topics --------------------------------------------------------------------------------------------------------
def near_topics(state: Globals) -> np.ndarray:
    """Return the pairs of each topic with its nearest topics, (P, 2), with the smaller index first.

    Topics are near if their word distributions are similar (Hellinger distance), or if merging their observations loses
    little likelihood.
    """
    if state.observed is None:
        roots = np.sqrt(state.topic_words / np.maximum(state.n_m, 1e-300))
        likeness = roots.T @ roots
    else:
        n_topics = len(state.n_m)
        every = np.indices((n_topics, n_topics)).reshape(2, -1).T
        gains = state.observed.gains(state.topic_words, every).reshape(n_topics, n_topics)
        likeness = gains / np.maximum(np.minimum(state.n_m, state.n_m[:, None]), 1e-300)
    np.fill_diagonal(likeness, -np.inf)
    near = np.argsort(-likeness, axis=1, kind="stable")[:, : min(_NEAR, len(likeness) - 1)]
    pairs = np.sort(np.stack([np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()], axis=1), axis=1)
    return np.unique(pairs, axis=0)


@kernel
def add_local_gains(cells, words, candidates, pairs, prior_of_pair, first, last):
    """Return the change of the bound of documents first..last-1 for each merge of two topics, (P,), without words."""
    gains = np.zeros(len(pairs))
    for j in range(first, last):
        for i in range(candidates.cluster.shape[1]):
            share = candidates.share[j, i]
            if share < MIN_SHARE:
                continue
            k, n = candidates.cluster[j, i], candidates.counts[j, i]
            for p in range(len(pairs)):
                one, other = pairs[p]
                if n[one] == 0.0 and n[other] == 0.0:
                    continue
                change = log_rising_factorial(prior_of_pair[k, p], n[one] + n[other])
                change -= log_rising_factorial(candidates.prior[k, one], n[one])
                change -= log_rising_factorial(candidates.prior[k, other], n[other])
                gains[p] += share * change
                if candidates.theta[j, i, one] == 0.0 or candidates.theta[j, i, other] == 0.0:
                    continue
                for c in range(cells.indptr[j], cells.indptr[j + 1]):
                    if candidates.best[c, i] < 0:
                        u, factor = cells.indices[c], candidates.ratio[c, i]
                        g = factor * words.weights[u, one] * candidates.theta[j, i, one]
                        h = factor * words.weights[u, other] * candidates.theta[j, i, other]
                        if g > 0.0 and h > 0.0:
                            gains[p] -= g * np.log1p(h / g) + h * np.log1p(g / h)
    return gains


def topic_gains(
    state: Globals, documents: SampledDocuments, words: WordScores, candidates: Candidates, pairs: np.ndarray
) -> np.ndarray:
    """Return the change of the bound for each merge of two topics, (P,), in nats.

    In the local posteriors, the counts of the two topics are added; otherwise, they do not change.
    """
    own, level = state.tau, state.theta
    s, v, omega, tables = state.topic_word_prior, own.table_concentration, level.document_concentration, own.n_km
    n_words, (one, other) = len(state.topic_words), pairs.T
    gains = np.empty(len(pairs)) if state.observed is None else state.observed.gains(state.topic_words, pairs)
    for p, (m, o) in enumerate(pairs if state.observed is None else ()):
        n, more = state.topic_words[:, m], state.topic_words[:, o]
        both = np.flatnonzero((n > 0) & (more > 0))
        gains[p] = np.sum(log_rising(s + n[both], more[both]) - log_rising(s, more[both]))
        gains[p] -= log_rising(n_words * s + state.n_m[m], state.n_m[o]) - log_rising(n_words * s, state.n_m[o])
    gains[gains < -_MAX_LOSS * np.minimum(state.n_m[one], state.n_m[other])] = -np.inf
    a, log_tau = v * own.topic_weights, own.expected_log_tau()
    a_pair, t_pair = a[one] + a[other], tables[:, one] + tables[:, other]
    log_pair = array_digamma(a_pair + t_pair) - array_digamma(v + tables.sum(axis=1, keepdims=True))
    held, held_pair = log_rising(a, tables) - tables * log_tau, log_rising(a_pair, t_pair) - t_pair * log_pair
    gains += (held_pair - held[:, one] - held[:, other]).sum(axis=0)
    prior = np.maximum(omega * np.exp(log_pair), MIN_DOCUMENT_PRIOR)
    batch = documents.batch
    cells = BatchCells(batch.indptr, batch.indices, batch.counts)
    local = in_blocks(
        documents.pool,
        lambda first, last: add_local_gains(cells, words, candidates, pairs, prior, first, last),
        batch.n_documents,
        _DOCUMENT_BLOCK,
    )
    return gains + documents.scale * sum(local)


# -- clusters ------------------------------------------------------------------------------------------------------
def log_partition(n_k: np.ndarray, alpha: float) -> np.ndarray:
    """Return the log evidence of the expected cluster sizes ``n_k`` (..., K) under the stick-breaking prior, (...,).

    The clusters are sorted by size. A constant term is omitted.
    """
    n_k = -np.sort(-n_k, axis=-1)
    later = np.flip(np.cumsum(np.flip(n_k, -1), -1), -1) - n_k
    return np.asarray(betaln(1.0 + n_k, alpha + later).sum(axis=-1))


class UnionScore:
    """Score of a merge of two clusters: the change of the log marginal likelihood of documents, tables and contexts.

    The arguments are the expected documents ``n_k`` (K,), the expected tables ``n_km`` (K, M) and the natural
    parameters of the contexts, ``natural`` (K, D). If ``natural`` is None, contexts are ignored.
    """

    def __init__(self, state: Globals, n_k: np.ndarray, n_km: np.ndarray, natural: np.ndarray | None = None) -> None:
        own, concentrations = state.tau, state.concentrations()
        self.v, self.a = own.table_concentration, own.table_concentration * own.topic_weights
        self.alpha, self.log_alpha = concentrations.mean[GROUP], concentrations.mean_log[GROUP]
        self.contexts, self.natural = state.contexts, natural if state.contexts.dimension else None
        self.n_k, self.n_km = n_k, n_km
        self._alone, self._partition = self._of(n_km, natural), log_partition(n_k, self.alpha)

    def _of(self, n_km: np.ndarray, natural: np.ndarray | None) -> np.ndarray:
        """Return the log marginal likelihood of the tables and contexts of each of n clusters, (n,)."""
        score = log_rising(self.a, n_km).sum(axis=1) - log_rising(self.v, n_km.sum(axis=1))
        return score if natural is None else score + self.contexts.log_marginal(natural)

    def gains(self, one: int, others: np.ndarray) -> np.ndarray:
        """Return the score of merging cluster ``one`` with each of the n clusters ``others``, (n,)."""
        natural = self.natural
        natural = None if natural is None else natural[others] + natural[one] - self.contexts.prior
        sizes = np.tile(self.n_k, (len(others), 1))
        sizes[:, one] += self.n_k[others]
        sizes[np.arange(len(others)), others] = 0.0
        sizes = -np.sort(-sizes, axis=1)[:, :-1]
        of_documents = log_partition(sizes, self.alpha) - self._partition - self.log_alpha
        return (
            self._of(self.n_km[others] + self.n_km[one], natural)
            - self._alone[others]
            - self._alone[one]
            + of_documents
        )


def cluster_gains(state: Globals, candidates: Candidates, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of clusters, (P, 2), and a lower bound on the gain of each merge in nats, (P,)."""
    shares, score = candidates.shares, UnionScore(state, state.n_k, state.tau.n_km, state.natural)
    pairs, gains = [], []
    for k in range(state.n_clusters - 1):
        others = np.arange(k + 1, state.n_clusters)
        mine, theirs = shares[:, [k]], shares[:, others]
        both = np.where((mine > 0) & (theirs > 0), mine + theirs, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(both > 0, both * np.log(both) - mine * np.log(mine) - theirs * np.log(theirs), 0.0)
        gains.append(score.gains(k, others) - scale * lost.sum(axis=0))
        pairs.append(np.stack([np.full(len(others), k), others], axis=1))
    return np.concatenate(pairs), np.concatenate(gains)


# -- unions --------------------------------------------------------------------------------------------------------
def apart(pairs: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Return disjoint pairs, selected greedily in descending order of ``gains``."""
    taken: set[int] = set()
    chosen = []
    for p in np.argsort(-gains, kind="stable"):
        one, other = pairs[p].tolist()
        if one not in taken and other not in taken:
            taken.update((one, other))
            chosen.append(p)
    return pairs[np.array(chosen, np.int64)]


def numbers(pairs: np.ndarray, size: int) -> np.ndarray:
    """Return the new index of each cluster or topic after merging ``pairs``, (size,), in order of first members."""
    first = np.arange(size)
    first[pairs[:, 1]] = pairs[:, 0]
    return np.unique(first, return_inverse=True)[1]


def merge(state: Globals, cluster_of: np.ndarray, topic_of: np.ndarray) -> np.ndarray:
    """Merge the clusters with equal ``cluster_of`` (K,) and the topics with equal ``topic_of`` (M,), in place.

    Sorts the clusters by size. Returns the new index of each old cluster, (K,) int32.
    """
    own, level = state.tau, state.theta
    n_k = sum_by(cluster_of, state.n_k)
    order = np.argsort(-n_k, kind="stable")
    cluster_of = np.argsort(order, kind="stable")[cluster_of].astype(np.int32)
    own.n_km = sum_by(topic_of, sum_by(cluster_of, own.n_km).T).T.copy()
    state.context_counts = sum_by(cluster_of, state.context_counts.T).T.copy()
    state.context_totals = sum_by(cluster_of, state.context_totals.T).T.copy()
    if not np.array_equal(topic_of, np.arange(len(state.n_m))):  # avoids a copy of the largest array
        state.topic_words = sum_by(topic_of, state.topic_words.T).T.copy()
    own.topic_weights, state.n_m = sum_by(topic_of, own.topic_weights), sum_by(topic_of, state.n_m)
    state.group_weights = state.law.posterior(n_k[order], state.concentrations().mean[GROUP])
    state.cluster = renumbered(state.cluster, cluster_of)
    number = renumbered(level.local_cluster, cluster_of)
    for i in range(1, number.shape[1]):
        number[(number[:, :i] == number[:, [i]]).any(axis=1), i] = -1
    level.local_cluster = number
    shape = (*level.local_counts.shape[:2], len(state.n_m))
    level.local_counts = sum_by(topic_of, level.local_counts.reshape(-1, len(topic_of)).T).T.reshape(shape).copy()
    return cluster_of


@dataclass
class SampledDocuments:
    """Sample of documents on which the bound is evaluated with and without merges.

    Attributes
    ----------
    batch : the sampled documents
    scale : float, number of documents of the corpus per sampled document
    pool : executor of threads, or None
    is_full : bool, whether the sample is a full batch, whose passes continue from the stored local posteriors
    columns : (D',) int64, context columns of ``batch``; None means all columns
    """

    batch: Batch
    scale: float
    pool: Executor | None
    is_full: bool = False
    columns: np.ndarray | None = None

    @classmethod
    def from_corpus(cls, corpus: Corpus, state: Globals, pool: Executor | None) -> Self:
        """Return all documents with full batches; with mini-batches, return an evenly spaced sample."""
        n, is_full = corpus.n_documents, state.settings.batch_size is None
        by_tokens = int(max(_MIN_SAMPLE, _MAX_TOKENS * n / max(corpus.n_tokens, 1)))
        size = n if is_full else min(n, _MAX_SAMPLE, by_tokens)
        return cls(take_batch(corpus, state.contexts, np.arange(size) * n // size), n / size, pool, is_full)

    def local_step(self, state: Globals, of_topics: float | None = None) -> LocalResult:
        """Compute the local posteriors of the documents, and the bound, under the global parameters of ``state``.

        ``of_topics`` is as in :meth:`.Globals.divergence`.
        """
        level, expected = state.theta, state.expectations(self.columns)
        words = state.word_scores(expected, self.batch.words, self.pool)
        kept = (level.local_cluster, level.local_counts) if self.is_full else None
        held = np.full(self.batch.n_documents, -1)
        own = level.prior(state.tau), level.document_concentration, held, kept
        candidates = document_level.update_batch(self.batch, words, expected, *own, self.pool)
        evidence = self.scale * float(candidates.log_evidence.sum())
        return LocalResult(words, candidates, evidence - state.divergence(self.pool, of_topics))

    def with_omega(self, state: Globals) -> Proposal:
        """Return a copy of the state with its bound.

        With mini-batches, omega (if it is learnt) is first updated by a few steps, each followed by a local step.
        """
        trial = state.copy()
        level, result = trial.theta, self.local_step(trial)
        for _ in range(0 if self.is_full or level.omega_prior is None else _STEPS_OF_OMEGA):
            local = result.candidates.local(self.batch.lengths)
            of_document = document_level.tables_of(local, result.candidates.prior, is_uncertain=True)[1]
            omega = level.document_concentration
            step = document_level.step_of_omega(level, omega, local, of_document, self.scale, 1.0)
            level.document_concentration = omega * math.exp(step)
            result = self.local_step(trial)
        return Proposal(trial, result.bound)


class LocalResult(NamedTuple):
    """Result of a local step on sampled documents: word scores, local posteriors, and the bound in nats."""

    words: WordScores
    candidates: Candidates
    bound: float


class Proposal(NamedTuple):
    """A proposed state and its bound in nats."""

    state: Globals
    bound: float


_Bounded = TypeVar("_Bounded", bound=Any)


def best_unions(now: _Bounded, pairs: np.ndarray, merged: Callable[[np.ndarray], _Bounded]) -> _Bounded:
    """Return the first proposal ``merged(pairs)`` whose bound is not lower than the bound of ``now``.

    ``pairs`` is sorted, best first. If a proposal lowers the bound, the number of pairs is halved. If even the merge of
    one pair lowers it, ``now`` is returned.
    """
    while len(pairs):
        proposal = merged(pairs)
        if proposal.bound >= now.bound:
            return proposal
        pairs = pairs[: len(pairs) // 2]
    return now


def merge_pairs(documents: SampledDocuments, now: Proposal, pairs: np.ndarray, of_topics: bool) -> Proposal:
    """Return the state after the merges of topics, or else of clusters, that :func:`best_unions` accepts."""

    def merged(pairs: np.ndarray) -> Proposal:
        trial = now.state.copy()
        parts = [np.arange(trial.n_clusters), np.arange(len(trial.n_m))]
        parts[of_topics] = numbers(pairs, len(parts[of_topics]))
        merge(trial, *parts)
        return documents.with_omega(trial)

    return best_unions(now, pairs, merged)


def merge_alike(corpus: Corpus, state: Globals, pool: Executor | None) -> float:
    """Update omega, then merge topics, then merge clusters unless their number is fixed, in place.

    Returns the bound in nats. With mini-batches, the bound is an estimate from a sample of the documents.
    """
    documents = SampledDocuments.from_corpus(corpus, state, pool)
    now = documents.with_omega(state)
    if len(state.n_m) > 1 and n_epochs(state) >= _EPOCHS_BEFORE_TOPICS:
        pairs = near_topics(state)
        words, candidates, _ = documents.local_step(now.state)
        gains = topic_gains(now.state, documents, words, candidates, pairs)
        now = merge_pairs(documents, now, apart(pairs[gains > 0], gains[gains > 0]), of_topics=True)
    if state.n_clusters > 1 and state.model.n_clusters is None:
        candidates = documents.local_step(now.state).candidates
        pairs = apart(*cluster_gains(now.state, candidates, documents.scale))
        now = merge_pairs(documents, now, pairs, of_topics=False)
    state.replace_by(now.state)
    return now.bound
