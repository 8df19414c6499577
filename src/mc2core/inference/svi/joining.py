"""Unions of topics and of clusters in SVI with a document level: what starts too fine becomes as coarse as it should.

Mean field never leaves a split: two topics that are one take the words of documents in shares that stay, or each its
own words, and documents of two clusters that are one go on to use the topics of their own. At the end of an epoch pairs
are joined whose union does not lower the bound. What a union changes is known given the local posteriors of some
documents, whose shares gamma of the two topics, or mu of the two clusters, are added:

* topics: the marginal likelihoods of words or observations, sum_jk mu_jk ln G(a_m + n_jm) / G(a_m), the divergence of
  the q(tau_k) and the entropy of gamma. Pairs that gain are proposed, of each topic those with the likest words;
* clusters: the marginal likelihoods of their tables, of their contexts and of their documents under the sticks, and the
  entropy of mu. As the bound is convex in E ln tau, and documents change their topics with their cluster, this is far
  below what the bound gains; it says which pairs to propose, in which order.

Pairs without a part in common are taken, the best first, and joined together where the bound is not lower when these
documents are visited anew and omega has made some steps, with and without the unions: fewer clusters need a smaller
omega. Else the better half of the pairs is tried, and so on.
"""

from __future__ import annotations

import copy
import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import betaln, gammaln
from scipy.special import digamma as array_digamma

from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.svi.document_level import (
    MIN_PRIOR,
    MIN_SHARE,
    Cells,
    DocumentLevelGlobals,
    Visit,
    Words,
    log_rising_factorial,
    shares_of,
    step_of_omega,
    tables_of,
    topic_scores,
    visit_batch,
)
from mc2core.inference.svi.local import Batch, take_batch
from mc2core.inference.svi.state import GROUP, divergence

# documents that say what a union changes where mini-batches are used: at most, and at most so many tokens unless few
_MAX_SAMPLE, _MAX_TOKENS, _MIN_SAMPLE = 1000, 100_000, 100
# epochs after which topics are joined: at the start they are mixtures, those of one cluster all alike
_EPOCHS_BEFORE_TOPICS = 3
# nats that a token of the smaller topic may lose by a union; two topics of one size that share no word lose twice as
# many. The bound alone would leave one topic for each cluster
_MAX_LOSS = math.log(2.0)
# steps of omega before the bounds with and without a union are compared
_STEPS_OF_OMEGA = 2
# pairs of topics that are looked at: each with so many of the likest
_NEAR = 4
_DOCUMENT_BLOCK = 16


def rising(prior: np.ndarray | float, n: np.ndarray) -> np.ndarray:
    """ln G(prior + n) - ln G(prior)."""
    return gammaln(prior + n) - gammaln(prior)


# -- topics --------------------------------------------------------------------------------------------------------
def near_topics(state: DocumentLevelGlobals) -> np.ndarray:
    """(P, 2) pairs of topics, the first the smaller number: each with those whose words are likest (Hellinger), or with
    which its observations, or theirs, lose least.
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


@kernel(error_model="numpy")
def add_local_gains(cells, words, visit, pairs, prior_of_pair, first, last):
    """(P,) change of the bound of documents first..last-1 by each union of topics, their words aside."""
    gains = np.zeros(len(pairs))
    for j in range(first, last):
        for i in range(visit.cluster.shape[1]):
            share = visit.share[j, i]
            if share < MIN_SHARE:
                continue
            k, n = visit.cluster[j, i], visit.counts[j, i]
            for p in range(len(pairs)):
                one, other = pairs[p]
                if n[one] == 0.0 and n[other] == 0.0:
                    continue
                change = log_rising_factorial(prior_of_pair[k, p], n[one] + n[other])
                change -= log_rising_factorial(visit.prior[k, one], n[one])
                change -= log_rising_factorial(visit.prior[k, other], n[other])
                gains[p] += share * change
                if visit.theta[j, i, one] == 0.0 or visit.theta[j, i, other] == 0.0:
                    continue
                for c in range(cells.indptr[j], cells.indptr[j + 1]):
                    if visit.best[c, i] < 0:
                        u, factor = cells.indices[c], visit.ratio[c, i]
                        g = factor * words.weights[u, one] * visit.theta[j, i, one]
                        h = factor * words.weights[u, other] * visit.theta[j, i, other]
                        if g > 0.0 and h > 0.0:
                            gains[p] -= g * np.log1p(h / g) + h * np.log1p(g / h)
    return gains


def topic_gains(
    state: DocumentLevelGlobals, documents: Documents, words: Words, visit: Visit, pairs: np.ndarray
) -> np.ndarray:
    """(P,) nats by which each union changes the bound, local posteriors being fixed but for their sums."""
    s, v, omega, tables = state.topic_word_prior, state.table_concentration, state.document_concentration, state.n_km
    n_words, (one, other) = len(state.topic_words), pairs.T
    gains = np.empty(len(pairs)) if state.observed is None else state.observed.gains(state.topic_words, pairs)
    for p, (m, o) in enumerate(pairs if state.observed is None else ()):
        n, more = state.topic_words[:, m], state.topic_words[:, o]
        both = np.flatnonzero((n > 0) & (more > 0))
        gains[p] = np.sum(rising(s + n[both], more[both]) - rising(s, more[both]))
        gains[p] -= rising(n_words * s + state.n_m[m], state.n_m[o]) - rising(n_words * s, state.n_m[o])
    gains[gains < -_MAX_LOSS * np.minimum(state.n_m[one], state.n_m[other])] = -np.inf
    a, log_tau = v * state.topic_weights, state.expected_log_tau()
    a_pair, t_pair = a[one] + a[other], tables[:, one] + tables[:, other]
    log_pair = array_digamma(a_pair + t_pair) - array_digamma(v + tables.sum(axis=1, keepdims=True))
    held, held_pair = rising(a, tables) - tables * log_tau, rising(a_pair, t_pair) - t_pair * log_pair
    gains += (held_pair - held[:, one] - held[:, other]).sum(axis=0)
    prior = np.maximum(omega * np.exp(log_pair), MIN_PRIOR)
    batch = documents.batch
    cells = Cells(batch.indptr, batch.indices, batch.counts)
    local = in_blocks(
        documents.pool,
        lambda first, last: add_local_gains(cells, words, visit, pairs, prior, first, last),
        batch.n_documents,
        _DOCUMENT_BLOCK,
    )
    return gains + documents.scale * sum(local)


# -- clusters ------------------------------------------------------------------------------------------------------
def log_seats(n: np.ndarray, alpha: float) -> np.ndarray:
    """(...,) the evidence of documents (..., K) in clusters in order of size, by their sticks, up to a constant."""
    later = np.flip(np.cumsum(np.flip(n, -1), -1), -1) - n
    return betaln(1.0 + n, alpha + later).sum(axis=-1)


def cluster_gains(state: DocumentLevelGlobals, visit: Visit, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """(P, 2) all pairs of clusters, the first the smaller number, and (P,) nats at least gained by each union."""
    n_clusters, v = len(state.n_km), state.table_concentration
    concentrations = state.concentrations()
    alpha, log_alpha = concentrations.mean[GROUP], concentrations.mean_log[GROUP]
    a, natural, n_k = v * state.topic_weights, state.natural, state.n_k
    alone = rising(a, state.n_km).sum(axis=1) - rising(v, state.n_km.sum(axis=1))
    contexts, seats = state.contexts.log_marginal(natural), log_seats(n_k, alpha)
    shares = shares_of(visit)
    pairs, gains = [], []
    for k in range(n_clusters - 1):
        others = np.arange(k + 1, n_clusters)
        union = state.n_km[others] + state.n_km[k]
        gain = rising(a, union).sum(axis=1) - rising(v, union.sum(axis=1)) - alone[others] - alone[k]
        if state.contexts.dimension:
            joined = natural[others] + natural[k] - state.contexts.prior
            gain += state.contexts.log_marginal(joined) - contexts[others] - contexts[k]
        sizes = np.tile(n_k, (len(others), 1))
        sizes[:, k] += n_k[others]
        sizes[np.arange(len(others)), others] = 0.0
        sizes = -np.sort(-sizes, axis=1)[:, :-1]
        gain += log_seats(sizes, alpha) - seats - log_alpha
        mine, theirs = shares[:, [k]], shares[:, others]
        both = np.where((mine > 0) & (theirs > 0), mine + theirs, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(both > 0, both * np.log(both) - mine * np.log(mine) - theirs * np.log(theirs), 0.0)
        gains.append(gain - scale * lost.sum(axis=0))
        pairs.append(np.stack([np.full(len(others), k), others], axis=1))
    return np.concatenate(pairs), np.concatenate(gains)


# -- both ----------------------------------------------------------------------------------------------------------
def apart(pairs: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Pairs that have no part in common: the best, the best of those left, and so on."""
    taken: set[int] = set()
    chosen = []
    for p in np.argsort(-gains, kind="stable"):
        one, other = pairs[p].tolist()
        if one not in taken and other not in taken:
            taken.update((one, other))
            chosen.append(p)
    return pairs[np.array(chosen, np.int64)]


def numbers(pairs: np.ndarray, size: int) -> np.ndarray:
    """(size,) the number of each part after these unions, in the order of their first parts."""
    first = np.arange(size)
    first[pairs[:, 1]] = pairs[:, 0]
    return np.unique(first, return_inverse=True)[1]


@dataclass
class Documents:
    """The documents that say what unions change.

    Attributes
    ----------
    batch : Batch
    scale : float, documents of the corpus for each of them
    pool : Executor or None
    is_full : whether they are all of a full batch, which go on from the local posteriors that they have
    columns : (columns,) int64, those of ``batch``, where it is narrowed; else None
    """

    batch: Batch
    scale: float
    pool: Executor | None
    is_full: bool = False
    columns: np.ndarray | None = None

    @classmethod
    def of(cls, corpus: Corpus, state: DocumentLevelGlobals, pool: Executor | None) -> Self:
        """All of a full batch, else some that are spread evenly."""
        n, is_full = corpus.n_documents, state.settings.batch_size is None
        by_tokens = int(max(_MIN_SAMPLE, _MAX_TOKENS * n / max(corpus.n_tokens, 1)))
        size = n if is_full else min(n, _MAX_SAMPLE, by_tokens)
        return cls(take_batch(corpus, state.contexts, np.arange(size) * n // size), n / size, pool, is_full)

    def visit(self, state: DocumentLevelGlobals, of_topics: float | None = None) -> Visited:
        """Their local posteriors, under the globals as they are; ``of_topics`` as of :func:`.state.divergence`."""
        expected = state.expectations(self.columns)
        words = topic_scores(state, expected, self.batch.words, self.pool)
        kept = (state.local_cluster, state.local_counts) if self.is_full else None
        held = np.full(self.batch.n_documents, -1)
        visit = visit_batch(self.batch, words, expected, held, kept, self.pool)
        evidence = self.scale * float(visit.log_evidence.sum())
        return Visited(words, visit, evidence - divergence(state, state.concentrations(), self.pool, of_topics))

    def with_omega(self, state: DocumentLevelGlobals) -> Proposal:
        """A copy, and its bound; in mini-batches omega, where it is learnt, makes some steps, with new visits each."""
        trial = copy.copy(state)
        visited = self.visit(trial)
        for _ in range(0 if self.is_full or trial.omega_prior is None else _STEPS_OF_OMEGA):
            local = visited.visit.local(self.batch.lengths)
            of_document = tables_of(local, visited.visit.prior, is_seated=True)[1]
            trial.document_concentration *= math.exp(step_of_omega(trial, local, of_document, self.scale, 1.0))
            visited = self.visit(trial)
        return Proposal(trial, visited.bound)


class Visited(NamedTuple):
    """Local posteriors under some globals, with what they were computed from, and the bound in nats."""

    words: Words
    visit: Visit
    bound: float


class Proposal(NamedTuple):
    """A state, and its bound in nats."""

    state: DocumentLevelGlobals
    bound: float


def best_unions(documents: Documents, now: Proposal, pairs: np.ndarray, of_topics: bool) -> Proposal:
    """With as many of the pairs joined, best first, as do not lower the bound; ``now`` where none is."""
    clusters, topics = np.arange(len(now.state.n_km)), np.arange(len(now.state.n_m))
    while len(pairs):
        trial = copy.copy(now.state)
        if of_topics:
            trial.join(clusters, numbers(pairs, len(topics)))
        else:
            trial.join(numbers(pairs, len(clusters)), topics)
        proposal = documents.with_omega(trial)
        if proposal.bound >= now.bound:
            return proposal
        pairs = pairs[: len(pairs) // 2]
    return now


def join_alike(corpus: Corpus, state: DocumentLevelGlobals, pool: Executor | None) -> float:
    """Steps of omega, unions of topics, then of clusters unless their number is told, in place.

    Returns the bound in nats: of a full batch as it is, else as the documents that are looked at say.
    """
    documents = Documents.of(corpus, state, pool)
    now = documents.with_omega(state)
    if len(state.n_m) > 1 and state.n_epochs >= _EPOCHS_BEFORE_TOPICS:
        pairs = near_topics(state)
        words, visit, _ = documents.visit(now.state)
        gains = topic_gains(now.state, documents, words, visit, pairs)
        now = best_unions(documents, now, apart(pairs[gains > 0], gains[gains > 0]), of_topics=True)
    if len(state.n_km) > 1 and state.model.n_clusters is None:
        visit = documents.visit(now.state).visit
        now = best_unions(documents, now, apart(*cluster_gains(now.state, visit, documents.scale)), of_topics=False)
    for name in (*state.described, *state.described_numbers):
        setattr(state, name, getattr(now.state, name))
    return now.bound
