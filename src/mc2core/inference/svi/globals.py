"""Global posteriors of SVI-MC2: parameters, expectations, natural-gradient steps and part of the ELBO (docs/model.md).

:class:`Globals` contains the posteriors of cluster weights, topics, contexts, concentrations and cluster proportions.
There are three variants of SVI. The proportions are over topics (:class:`.TopicProportions`) or over tables
(:class:`.TableProportions`). Proportions over topics may be combined with a document level (:class:`.DocumentLevel`).
Each variant has its own local step (:mod:`mc2core.inference.svi.local`), which returns a :class:`LocalStep`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.base.storage import Stored, check_arrays
from mc2core.compute.buffers import Buffers
from mc2core.compute.threads import in_blocks
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import State
from mc2core.inference.svi.concentrations import (
    GROUP,
    ConcentrationPriors,
    Concentrations,
    gamma_prior,
    log_density_of_log,
)
from mc2core.inference.svi.documents import Batch, DocumentStatistics, Expectations, renumbered
from mc2core.inference.svi.empirical_bayes import best_topic_prior
from mc2core.inference.svi.observed import ObservedTopics
from mc2core.inference.svi.proportions import DocumentLevel, TableProportions, TopicProportions
from mc2core.inference.svi.settings import RunSettings
from mc2core.inference.svi.sticks import ClusterWeights, expected_log_sticks, stick_divergence
from mc2core.inference.svi.words import (
    ROW_BLOCK,
    WORD_BLOCK,
    WordScores,
    blend,
    blend_rows,
    fill_log_psi,
    fill_weights,
    sum_topic_divergence,
)
from mc2core.models import MC2, WORDS

_MIN_SHRINK = 1e-60
# smallest expected number of tokens of a topic in use
_MIN_TOKENS = 0.5
# with full batches, removing a cluster or topic with fewer expected documents or tokens does not change the bound
_NOTHING = 1e-9


@dataclass
class LocalStep(ABC):
    """Result of a local step on a mini-batch.

    before : expectations under the global posteriors before the global step
    documents : statistics of the documents of the mini-batch
    topic_words : (U, M) float64, expected number of tokens of each word in each topic; with tables, :meth:`step`
        computes it
    """

    before: Expectations
    documents: DocumentStatistics
    topic_words: np.ndarray

    @abstractmethod
    def step(self, state: Globals, scale: float, rate: float, pool: Executor | None) -> None:
        """Update the proportions of ``state`` in place by a natural-gradient step with learning rate ``rate``."""

    @abstractmethod
    def log_words(self) -> float:
        """Return the expected log probability of the words under the previous global parameters, in nats."""

    @abstractmethod
    def change_of_proportions(self, state: Globals, pool: Executor | None) -> float:
        """Return the change of the bound of these documents caused by the step of the proportions, in nats."""


@dataclass(kw_only=True)
class Globals(State):
    """State of SVI: parameters of the global posteriors, and the latest cluster of every document.

    ``group_weights`` contains the parameters of q(beta) (:class:`ClusterWeights`). The posterior of topic m is
    Dir(s + shrink topic_words[:, m]), where s is ``topic_word_prior``. ``topic_words`` (V, M) contains expected numbers
    of tokens divided by ``shrink``; ``n_m`` (M,) contains the expected number of tokens per topic. If topics emit
    observations, ``topic_words`` (P, M) contains expected sums of their statistics. ``context_counts`` (D, K) contains
    the expected context statistics per cluster divided by ``context_shrink``. ``context_totals`` (C, K) contains their
    undivided sums over the columns of each context. A step multiplies all counts by 1 - rate. It does so by changing
    ``shrink``, so that only the rows of the batch are modified. Both factors are 1 between epochs.
    ``concentration_rates`` contains the rates of the Gamma posteriors; rates of fixed concentrations are ignored.

    ``cluster`` (J,) int32 is the likeliest cluster of each document in its latest local step, or its starting cluster,
    or -1. ``n_updates`` is the number of mini-batches so far. ``n_visited`` is the number of documents so far in the
    current epoch (0 between epochs), and ``evidence`` is the sum of their ln Z_j. ``last_evidence`` is this sum for the
    last epoch, and ``elbo`` is the latest ELBO. Both are in nats, and NaN before the first epoch. ``documents`` is None
    without a document level. The contents of ``buffers`` are not needed between mini-batches.
    """

    #: arrays and numbers of a checkpoint, except the proportions and the document level
    described: ClassVar[dict[str, Stored]] = {
        "group_weights": Stored("f", "2 K"),  # or the shape given by ``law``
        "concentration_rates": Stored("f", "R"),
        "topic_words": Stored("f", "V M"),
        "context_counts": Stored("f", "D K"),
        "context_totals": Stored("f", "C K"),
        "cluster": Stored("i", "J", below="K"),
        "n_m": Stored("f", "M"),
        "topic_word_prior": Stored("f", ""),
        "shrink": Stored("f", ""),
        "context_shrink": Stored("f", ""),
        "n_updates": Stored("i", ""),
        "n_visited": Stored("i", "", below="J"),
        "evidence": Stored("f", ""),
        "last_evidence": Stored("f", ""),
        "elbo": Stored("f", ""),
    }

    model: MC2
    settings: RunSettings
    group_weights: np.ndarray
    topic_words: np.ndarray
    n_m: np.ndarray
    context_counts: np.ndarray
    context_totals: np.ndarray
    concentration_rates: np.ndarray
    topic_word_prior: float
    cluster: np.ndarray
    proportions: TopicProportions | TableProportions
    documents: DocumentLevel | None
    contexts: StackedContexts
    observed: ObservedTopics | None = None
    shrink: float = 1.0
    context_shrink: float = 1.0
    n_updates: int = 0
    n_visited: int = 0
    evidence: float = 0.0
    last_evidence: float = float("nan")
    elbo: float = float("nan")
    buffers: Buffers = field(default_factory=Buffers, repr=False, compare=False)

    def __post_init__(self) -> None:
        model = self.model
        self.law = ClusterWeights(model.n_clusters, is_truncated=self.settings.n_tables is not None)
        self.priors = ConcentrationPriors.from_model(model, self.proportions.n_concentrations)
        self.s_prior = gamma_prior(model, WORDS)

    # -- checkpoints and copies ------------------------------------------------------------------------------------
    @property
    def progress(self) -> float:  # type: ignore[override]
        return self.n_visited / len(self.cluster)

    def _stored(self) -> dict[str, Any]:
        """Return, for each name in a checkpoint, the object whose attribute is stored under this name."""
        parts = [self, self.proportions, *([] if self.documents is None else [self.documents])]
        return {name: part for part in parts for name in part.described}

    def arrays(self) -> dict[str, np.ndarray]:
        # shrink is stored separately, because multiplying by it would change the last bits
        return {name: np.asarray(getattr(part, name)) for name, part in self._stored().items()}

    @classmethod
    def restore(
        cls,
        model: MC2,
        settings: RunSettings,
        shape: tuple[int, int],
        contexts: StackedContexts,
        arrays: Mapping[str, np.ndarray],
        observed: ObservedTopics | None = None,
    ) -> Self:
        """Restore a state from its :meth:`arrays`; ``shape`` (J, V) is the number of documents and of words.

        Raises ValueError if sizes or values are invalid.
        """
        proportions = TopicProportions if settings.n_tables is None else TableProportions
        kinds = [cls, proportions, *([DocumentLevel] if model.document_level else [])]
        law = ClusterWeights(model.n_clusters, is_truncated=settings.n_tables is not None)
        described = {name: one for kind in kinds for name, one in kind.described.items()}
        described["group_weights"] = law.stored
        sizes = {"J": shape[0], "V": shape[1], "C": len(contexts.names), "D": contexts.dimension}
        sizes |= {"R": proportions.n_concentrations} | proportions.sizes(model, settings, arrays)
        check_arrays(arrays, described, sizes if observed is None else sizes | {"V": len(observed.prior)})
        types = {"i": np.int32, "f": np.float64}

        def fields(kind: Any) -> dict[str, Any]:
            found = {name: np.array(arrays[name], types[described[name].kind]) for name in kind.described}
            return {name: one if described[name].shape else one.item() for name, one in found.items()}

        documents = None
        if model.document_level:
            documents = DocumentLevel(**fields(DocumentLevel), **DocumentLevel.fixed(model))
        own, n_each = fields(cls), settings.batch_size or shape[0]
        if settings.total_samples is None and own["n_visited"] % n_each:
            raise ValueError(f"'n_visited' is {own['n_visited']}; mini-batches have {n_each} documents")
        return cls(
            **own,
            model=model,
            settings=settings,
            proportions=proportions(**fields(proportions), **proportions.fixed(model)),
            documents=documents,
            contexts=contexts,
            observed=observed,
        )

    def copy(self) -> Self:
        """Return a shallow copy: a new state that shares the arrays with this one."""
        other = copy.copy(self)
        other.proportions, other.documents = copy.copy(self.proportions), copy.copy(self.documents)
        return other

    def replace_by(self, other: Globals) -> None:
        """Replace all attributes by the attributes of ``other``, in place."""
        vars(self).update(vars(other))

    def rows_of(self, batch: Batch) -> dict[str, Any]:
        """Return copies of the arrays, or of their rows, that steps on ``batch`` change.

        :meth:`rescale` must be called before.
        """
        tables = {"topic_words": batch.words, "context_counts": batch.columns}
        of_documents = "cluster", "local_cluster", "local_counts"
        return {
            name: np.array(np.asarray(getattr(part, name))[tables.get(name, ...)])
            for name, part in self._stored().items()
            if name not in of_documents
        }

    def undo_steps(self, batch: Batch, rows: Mapping[str, Any]) -> None:
        """Restore, in place, the ``rows`` returned by :meth:`rows_of`; the clusters of the documents do not change."""
        parts = self._stored()
        for name, value in rows.items():
            if name == "topic_words":
                self.topic_words[batch.words] = value
            elif name == "context_counts":
                self.context_counts[batch.columns] = value
            else:
                part = parts[name]
                setattr(part, name, value.copy() if part.described[name].shape else value.item())

    # -- expectations ----------------------------------------------------------------------------------------------
    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return self.context_counts.shape[1]

    @property
    def n_k(self) -> np.ndarray:
        """Expected number of documents per cluster, (K,) float64."""
        return self.law.n_k(self.group_weights, self.concentrations().mean[GROUP])

    @property
    def tau(self) -> TopicProportions:
        """Proportions over topics; only valid without tables."""
        assert isinstance(self.proportions, TopicProportions)
        return self.proportions

    @property
    def theta(self) -> DocumentLevel:
        """Parameters of the document level; only valid if the model has one."""
        assert self.documents is not None
        return self.documents

    @property
    def document_concentration(self) -> float:
        """Document concentration omega; infinite without a document level."""
        return math.inf if self.documents is None else self.documents.document_concentration

    @property
    def natural(self) -> np.ndarray:
        """Natural parameters of the context posteriors q(phi_k), (K, D)."""
        return self.contexts.prior + self.context_shrink * self.context_counts.T

    @property
    def topic_sums(self) -> np.ndarray:
        """Expected sums of the statistics of each topic, (P, M), if topics emit observations."""
        return self.shrink * self.topic_words

    def topic_sizes(self) -> np.ndarray:
        """Return the expected number of tokens or observations per topic, (M,), computed with ``shrink`` = 1."""
        return self.topic_words.sum(axis=0) if self.observed is None else self.observed.sizes(self.topic_words)

    def expected_weights(self) -> np.ndarray:
        """Return the expected cluster weights E beta, (n,) float64 with n >= K and sum 1; unused clusters are last."""
        return self.law.expected(self.group_weights)

    def expectations(self, columns: np.ndarray | None = None) -> Expectations:
        """Return the expectations under the global posteriors, for ``columns`` or for all context columns."""
        if columns is None:
            contexts = self.contexts.expected_parameters(self.natural)
        else:
            natural = self.contexts.prior[columns] + self.context_shrink * self.context_counts[columns].T
            totals = self.contexts.sums_by_context(self.contexts.prior) + self.context_totals.T
            contexts = self.contexts.expected_parameters(natural, columns, totals)
        log_group, log_topic_total, observed = self.law.expected_logs(self.group_weights), np.zeros(0), None
        if self.observed is None:
            log_topic_total = array_digamma(self.n_m + self.topic_word_prior * len(self.topic_words))
        else:
            observed = self.observed.expected(self.topic_sums)
        return Expectations(log_group=log_group, log_topic_total=log_topic_total, contexts=contexts, observed=observed)

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Return the parameters of the sticks that depend on alpha, v and eta, in this order; v and eta need tables."""
        return self.law.sticks(self.group_weights), *self.proportions.stick_arrays()

    def concentrations(self) -> Concentrations:
        """Return the posterior expectations of the concentrations with stick-breaking weights (alpha, v, eta)."""
        return self.priors.posteriors(self.concentration_rates, self.stick_arrays())

    def fill_scores(self, expected: Expectations, words: np.ndarray, first: int, last: int, scores: np.ndarray) -> None:
        """Fill rows first..last-1 of ``scores`` (U, M) with the expected log probabilities of ``words`` (U,)."""
        if self.observed is not None and expected.observed is not None:
            scores[first:last] = self.observed.scores(expected.observed, words[first:last])
        else:
            total = expected.log_topic_total
            fill_log_psi(self.topic_words, self.shrink, words, self.topic_word_prior, total, first, last, scores)

    def word_scores(self, expected: Expectations, words: np.ndarray, pool: Executor | None) -> WordScores:
        """Compute the scores of words or observations; the returned arrays are in the buffers of the state."""
        scores, weights = (self.buffers.empty(name, len(words), len(self.n_m)) for name in ("scores", "weights"))
        top, total = np.empty(len(words)), expected.log_topic_total
        known = self.topic_words, self.shrink, words, self.topic_word_prior, total

        def work(first: int, last: int) -> None:
            if self.observed is not None:
                self.fill_scores(expected, words, first, last, scores)
            fill_weights(*known, first, last, scores, top, weights)

        in_blocks(pool, work, len(words), WORD_BLOCK)
        return WordScores(scores, top, weights)

    # -- the ELBO --------------------------------------------------------------------------------------------------
    def divergence(self, pool: Executor | None = None, of_topics: float | None = None) -> float:
        """Return the KL divergence of all global posteriors from their priors, in nats.

        ``of_topics`` is the result of :meth:`topic_divergence`; with None, it is computed.
        """
        concentrations = self.concentrations()
        total = concentrations.divergence
        for one, mean, mean_log in zip(self.stick_arrays(), concentrations.mean, concentrations.mean_log, strict=True):
            total += stick_divergence(one, mean, mean_log)
        total += self.law.divergence(self.group_weights, concentrations.mean[GROUP]) + self.proportions_divergence()
        of_topics = self.topic_divergence(pool) if of_topics is None else of_topics
        return total + float(np.sum(self.contexts.kl(self.natural))) + of_topics

    def proportions_divergence(self) -> float:
        """Return the divergence of the proportions minus the log priors of the point estimates, in nats.

        Each log prior is relative to its mode and therefore at most 0.
        """
        of_clusters = self.proportions.divergence(log_density_of_log(self.topic_word_prior, self.s_prior))
        return of_clusters if self.documents is None else of_clusters - self.documents.penalty()

    def topic_divergence(self, pool: Executor | None) -> float:
        """Return the KL divergence of all q(psi_m) from the prior, in nats. For observations, ``shrink`` must be 1."""
        if self.observed is not None:
            return self.observed.divergence(self.topic_words)
        s, n_words = self.topic_word_prior, len(self.topic_words)
        totals = self.n_m + s * n_words
        log_total = array_digamma(totals)
        log_gamma_prior = float(gammaln(s))

        def work(first: int, last: int) -> float:
            return sum_topic_divergence(self.topic_words, self.shrink, s, log_total, log_gamma_prior, first, last)

        return float(np.sum(gammaln(totals) - gammaln(s * n_words))) + sum(in_blocks(pool, work, n_words, ROW_BLOCK))

    def change(self, batch: Batch, local: LocalStep, pool: Executor | None) -> float:
        """Return the change of the documents' bound caused by the global step, in nats, with ``local`` fixed."""
        before, after, documents = local.before, self.expectations(batch.columns), local.documents
        total = self.expected_log_words(after, batch.words, local.topic_words, pool) - local.log_words()
        total += float(np.sum(documents.n_k * (after.log_group - before.log_group)))
        total += local.change_of_proportions(self, pool)
        return total + float(np.sum(documents.contexts * (after.contexts - before.contexts)))

    def expected_log_words(
        self, expected: Expectations, words: np.ndarray, counts: np.ndarray, pool: Executor | None
    ) -> float:
        """Return sum_wm counts_wm E ln psi_mw in nats, where ``counts`` (U, M) has one row per word of ``words``."""

        def work(first: int, last: int) -> float:
            log_psi = np.empty((last - first, counts.shape[1]))
            self.fill_scores(expected, words[first:last], 0, last - first, log_psi)
            return float(np.sum(counts[first:last] * log_psi))

        return sum(in_blocks(pool, work, len(words), WORD_BLOCK))

    # -- the step --------------------------------------------------------------------------------------------------
    def step(
        self,
        batch: Batch,
        local: LocalStep,
        scale: float,
        rate: float,
        pool: Executor | None,
        since: Mapping[str, Any] | None = None,
    ) -> None:
        """Update all parameters except the concentrations with sticks, in place, by a natural-gradient step.

        ``scale`` is J / B, the number of documents of the corpus divided by the number of the batch. If an earlier pass
        has already processed the batch, ``since`` contains the rows before that pass (:meth:`rows_of`). The step then
        starts from these rows and replaces the statistics of the earlier pass.
        """
        if since is not None:
            self.undo_steps(batch, since)
        documents = local.documents
        self._set_clusters(batch, documents.cluster)
        blend(self.group_weights, self.law.posterior(scale * documents.n_k, self.concentrations().mean[GROUP]), rate)
        self.blend_contexts(batch.columns, documents.contexts, scale, rate)
        local.step(self, scale, rate, pool)
        self.blend_topic_words(batch.words, local.topic_words, scale, rate, pool)

    def _set_clusters(self, batch: Batch, cluster: np.ndarray) -> None:
        without = cluster < 0
        if without.any():
            raise ValueError(
                f"document {batch.rows[without][0]}: the weights of its clusters have no finite sum above 0; check "
                f"its contexts, their priors ({self.model.contexts}), topic_word_prior "
                f"({self.topic_word_prior:g}) and the "
                "concentrations"
            )
        self.cluster[batch.rows] = cluster

    def step_concentrations(self) -> None:
        """Set the posteriors of the concentrations with sticks to their optimum, in place."""
        for i, one in enumerate(self.stick_arrays()):
            self.concentration_rates[i] = self.priors.rate[i] - np.sum(expected_log_sticks(one)[1])

    def blend_topic_words(
        self, words: np.ndarray, counts: np.ndarray, scale: float, rate: float, pool: Executor | None = None
    ) -> None:
        """Multiply expected tokens by 1 - rate, then add rate scale ``counts`` (U, M) to the rows ``words`` (U,).

        For observations, ``counts`` contains topic probabilities. The sums of statistics are updated instead of tokens.
        """
        if self.observed is not None:
            rows, sums = np.arange(len(self.topic_words)), self.observed.sums(words, counts, pool)
            self.shrink, _ = blend_rows(self.topic_words, self.shrink, rows, sums, scale, rate)
            total = counts.sum(axis=0)
        else:
            self.shrink, total = blend_rows(self.topic_words, self.shrink, words, counts, scale, rate, pool)
        self.n_m = (1.0 - rate) * self.n_m + rate * scale * total
        if self.shrink < _MIN_SHRINK:
            self.rescale()

    def blend_contexts(self, columns: np.ndarray, sums: np.ndarray, scale: float, rate: float) -> None:
        """Multiply context statistics by 1 - rate, then add rate scale ``sums`` (K, columns) to ``columns``."""
        counts = np.ascontiguousarray(sums.T)
        self.context_shrink, _ = blend_rows(self.context_counts, self.context_shrink, columns, counts, scale, rate)
        totals = self.contexts.sums_by_context(counts, columns)
        self.context_totals = (1.0 - rate) * self.context_totals + rate * scale * totals
        if self.context_shrink < _MIN_SHRINK:
            self.rescale()

    # -- between steps ---------------------------------------------------------------------------------------------
    def rescale(self) -> None:
        """Multiply the counts by ``shrink`` and ``context_shrink``, set both to 1, and recompute the totals."""
        if self.shrink != 1.0:
            self.topic_words *= self.shrink
            self.shrink = 1.0
        if self.context_shrink != 1.0:
            self.context_counts *= self.context_shrink
            self.context_shrink = 1.0
        self.n_m = self.topic_sizes()
        self.context_totals = self.contexts.sums_by_context(self.context_counts)

    def prune(self, pool: Executor | None, is_full: bool) -> None:
        """Update s if it is learnt, sort the clusters by size, and remove unused clusters and topics, in place.

        After a full batch, only clusters and topics without documents or tokens are removed, which does not change the
        bound. With mini-batches, a cluster is removed if it is the likeliest cluster of no document. A topic is removed
        if its expected number of tokens is below one half. Clusters of a finite mixture are never removed. With tables,
        the state does not change.
        """
        if self.law.is_truncated:
            return
        if self.s_prior is not None:
            self.topic_word_prior = best_topic_prior(self.topic_words, self.topic_word_prior, self.s_prior, pool)
        n_k = self.n_k
        if self.model.n_clusters is not None:
            clusters = np.arange(len(n_k))
        else:
            clusters = np.flatnonzero(n_k > _NOTHING) if is_full else clusters_in_use(self)
        topics = np.flatnonzero(self.n_m > _NOTHING) if is_full else topics_in_use(self)
        clusters = clusters if len(clusters) else np.zeros(1, np.int64)
        topics = topics if len(topics) else np.zeros(1, np.int64)
        self.select(clusters[np.argsort(-n_k[clusters], kind="stable")], topics)
        self.step_concentrations()

    def select(self, clusters: np.ndarray | None = None, topics: np.ndarray | None = None) -> None:
        """Keep only these clusters and these topics, in this order, in place; None keeps all.

        Documents of removed clusters get cluster -1.
        """
        if clusters is not None:
            number = np.full(self.n_clusters, -1, np.int32)
            number[clusters] = np.arange(len(clusters), dtype=np.int32)
            self.group_weights = self.law.posterior(self.n_k[clusters], self.concentrations().mean[GROUP])
            self.cluster = renumbered(self.cluster, number)
            self.context_counts = np.ascontiguousarray(self.context_counts[:, clusters])
            self.context_totals = self.context_totals[:, clusters]
            self.tau.n_km = self.tau.n_km[clusters]
            if self.documents is not None:
                self.documents.local_cluster = renumbered(self.documents.local_cluster, number)
        if topics is not None and len(topics) < len(self.n_m):
            self.topic_words = np.ascontiguousarray(self.topic_words[:, topics])
            self.n_m = self.n_m[topics]
            self.tau.select(topics)
            if self.documents is not None:
                self.documents.local_counts = np.ascontiguousarray(self.documents.local_counts[:, :, topics])

    def scale_counts(self, factor: float) -> None:
        """Multiply all statistics of documents by ``factor``, in place."""
        concentrations = self.concentrations()
        self.topic_words *= factor
        self.n_m *= factor
        self.context_counts *= factor
        self.context_totals *= factor
        self.group_weights = self.law.posterior(factor * self.n_k, concentrations.mean[GROUP])
        self.proportions.scale_counts(factor, concentrations)
        if self.documents is not None:
            self.documents.omega_information *= factor

    def set_documents(self, cluster: np.ndarray) -> None:
        """Replace the documents by n others, whose clusters are ``cluster`` (n,), in place."""
        self.cluster = cluster
        if self.documents is not None:
            self.documents.forget(len(cluster), len(self.n_m))

    def add_columns(self, contexts: StackedContexts, n_words: int) -> None:
        """Extend the state to ``n_words`` words and the columns of ``contexts``, in place.

        New words and columns come last and have zero counts.
        """
        more = np.zeros((n_words - len(self.topic_words), len(self.n_m)))
        self.topic_words = np.concatenate([self.topic_words, more])
        counts = np.zeros((contexts.dimension, self.n_clusters))
        for name in contexts.names:
            known = self.context_counts[self.contexts.segment(name)]
            first = contexts.segment(name).start
            counts[first : first + len(known)] = known
        self.context_counts, self.contexts = counts, contexts


def clusters_in_use(state: Globals) -> np.ndarray:
    """Return the clusters that are the likeliest cluster of at least one document, in ascending order."""
    return np.unique(state.cluster[state.cluster >= 0])


def topics_in_use(state: Globals) -> np.ndarray:
    """Return the topics with at least half an expected token, in ascending order, or else the largest topic."""
    largest = state.n_m.max()
    return np.flatnonzero(state.n_m >= min(_MIN_TOKENS, largest)) if largest > 0 else np.zeros(0, np.int64)
