"""The state of a Gibbs chain: what those of all models have in common, and that of documents without a level.

An iteration of :class:`SharedState` moves documents and tokens by the kernel asked for, then tables and concentrations:

* ``collapsed``: documents and tokens one by one (:mod:`mc2core.inference.gibbs.collapsed`);
* ``blocked``: the blocked move (:mod:`mc2core.inference.gibbs.blocked`);
* ``interleaved``: the blocked move, then all of ``collapsed``, which is all where topics emit observations
  (:mod:`mc2core.inference.gibbs.observations`).

That of npTOT moves tokens with their contexts (:mod:`mc2core.inference.gibbs.token_contexts`). The state of documents
with proportions of their own is :class:`mc2core.inference.gibbs.document_level.state.DocumentLevelState`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core.base.described import Stored, check
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import State
from mc2core.inference.gibbs.blocked import move_blocked
from mc2core.inference.gibbs.collapsed import sweep_clusters, sweep_topics
from mc2core.inference.gibbs.observations import Observations
from mc2core.inference.gibbs.partition import log_partition, weight_of_new
from mc2core.inference.gibbs.state import (
    Assignments,
    Concentrations,
    WordCells,
    document_start,
    log_words,
    topics_of_words,
    word_cells,
)
from mc2core.inference.gibbs.token_contexts import TokenTimes, sweep_timed_topics
from mc2core.inference.gibbs.weights import ConcentrationPriors, GammaPrior, draw_topic_prior, update_weights
from mc2core.inference.shards import ShardedCorpus
from mc2core.models.base import ROLES, WORDS, TopicModel
from mc2core.posterior import Sample, SparseRows

_DESCRIBED = {
    "topic_weights": Stored("f", "M"),
    "topic": Stored("i", "N", below="M"),
    "cluster": Stored("i", "J", below="J"),
    "scalars": Stored("f", "5"),
}


@dataclass
class GibbsState(State):
    """State of a chain.

    Attributes
    ----------
    model : MC2, HDP or NPTOT
    assignments : Assignments
        z, l, epsilon and their counts.
    concentrations : Concentrations
        alpha, v, eta now.
    topic_word_prior : float
        s now.
    content, contexts, observations
        The counts of the corpus, its contexts as clusters emit them, and its observations as topics do (None where it
        is of words): follow from the corpus, not stored.
    log_joint : float
        ln p(w, x, z, l | epsilon, alpha, v, eta) in nats, with tau, psi, phi and pi integrated out: the law of
        the clusters, the Dirichlet-multinomials of topics in clusters and of words in topics (or the marginal
        likelihood of observations), and the marginal likelihood of the contexts (base measures included). With a
        document level it is given tau and omega too, with theta integrated out.
    """

    model: TopicModel
    assignments: Assignments
    concentrations: Concentrations
    topic_word_prior: float
    content: sp.csr_matrix
    contexts: StackedContexts
    observations: Observations | None
    log_joint: float = 0.0

    @classmethod
    def of(
        cls, model: TopicModel, corpus: Corpus, contexts: StackedContexts, assignments: Assignments, **more: Any
    ) -> Self:
        """The state with these assignments and the concentrations that the model starts from."""
        return cls(
            model,
            assignments,
            Concentrations(
                model.group_concentration, model.table_concentration, model.topic_concentration, model.most_clusters
            ),
            model.topic_word_prior,
            corpus.content,
            contexts,
            None if model.content is None else Observations.of(corpus, model.content),
            **more,
        )

    # -- what depends on whether there is a document level ------------------------------------------------------
    @abstractmethod
    def sweep(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None,
    ) -> None:  # fmt: skip
        """Move all but s, in place; neither ``pool`` nor ``sharded``, for kernels that use Spark, changes a bit."""

    @property
    @abstractmethod
    def seats(self) -> np.ndarray:
        """(K, M) int32: draws from tau_k that are known, tokens or tables of documents."""

    @property
    @abstractmethod
    def omega(self) -> float:
        """The document concentration; infinite without a document level."""

    @abstractmethod
    def log_topics(self, pool: Executor | None = None) -> list[float]:
        """Terms of ln p(l | z, .) in nats; the threads ``pool`` change no bit."""

    # -- what does not ------------------------------------------------------------------------------------------
    @property
    def cluster(self) -> np.ndarray:  # type: ignore[override]
        """(J,) int32: z."""
        return self.assignments.cluster

    @property
    def topic(self) -> np.ndarray:
        """(n_tokens,) int32: l, tokens in CSR order, a count of c giving c tokens in a row."""
        return self.assignments.topic

    @property
    def is_prior_learnt(self) -> bool:
        """Whether s moves."""
        return WORDS in self.model.learn_concentrations

    @property
    def priors(self) -> ConcentrationPriors:
        """Of the concentrations that are learnt."""
        learnt = self.model.learn_concentrations
        return ConcentrationPriors(**{role: GammaPrior(*self.model.prior_of(role)) for role in ROLES if role in learnt})

    def draw_topic_prior(self, seed: int, iteration: int) -> None:
        """Move s."""
        prior = GammaPrior(*self.model.prior_of(WORDS))
        key, rng = streams.key(seed, "words", iteration), streams.generator(seed, "topic_prior", iteration)
        words = np.ascontiguousarray(self.words().T)
        self.topic_word_prior = draw_topic_prior(self.topic_word_prior, words, prior, key, rng)

    def compute_log_joint(self, pool: Executor | None = None) -> float:
        """``log_joint`` of the state as it is now; the threads ``pool`` change no bit."""
        assignments = self.assignments
        result = log_partition(self.concentrations.partition, assignments.n_k) if self.model.has_clusters else 0.0
        for term in self.log_topics(pool):
            result += term
        for term in self.log_content(pool):
            result += term
        for term in self.log_contexts():
            result += term
        return float(result)

    def log_content(self, pool: Executor | None = None) -> list[float]:
        """Terms of ln p(w | l), psi summed out, in nats; the threads ``pool`` change no bit."""
        if self.observations is not None:
            return self.observations.log_marginal(self.assignments)
        assignments, total = self.assignments, self.topic_word_prior * self.content.shape[1]
        return [
            (gammaln(total) - gammaln(total + assignments.n_km.sum(axis=0, dtype=np.int64))).sum(),
            log_words(self.words(pool), self.topic_word_prior),
        ]

    def words(self, pool: Executor | None = None) -> np.ndarray:
        """(V, M) int32 tokens of each word in each topic, counted by the threads ``pool``."""
        return topics_of_words(self.content, self.assignments.topic, self.assignments.n_topics, pool)

    def log_contexts(self) -> list[float]:
        """Terms of the log marginal likelihood of the contexts, in nats."""
        natural = self.contexts.natural(self.assignments.cluster, self.assignments.n_clusters)
        return [self.contexts.log_marginal(natural).sum(), self.contexts.log_base.sum()]

    def report(self) -> dict[str, float]:
        """A row of the trace."""
        return {
            "clusters": self.assignments.n_clusters,
            "topics": self.assignments.n_topics,
            "log_joint": self.log_joint,
            **{f"{role}_concentration": getattr(self.concentrations, role) for role in ROLES},
            **({"document_concentration": self.omega} if self.model.document_level else {}),
            **({"topic_word_prior": self.topic_word_prior} if self.is_prior_learnt else {}),
        }

    def sample(self) -> Sample:
        """The state as scores see it."""
        assignments, law, v = self.assignments, self.concentrations.partition, self.concentrations.table
        n_k, n_documents = assignments.n_k, len(assignments.cluster)
        # E[tau_k | seats, epsilon]: the topics in use, renormalised, and the mass of all others
        mass = self.seats + v * assignments.topic_weights
        new = v * assignments.rest
        total = mass.sum(axis=1, keepdims=True)
        contents = None if self.observations is None else self.observations.contents(assignments)
        if contents is None:
            words = sp.csr_matrix(self.words()).T
        else:
            words = sp.csr_matrix(contents.mean.shape, dtype=np.int32)
        return Sample(
            cluster_weights=(n_k + law.each) / (n_documents + len(n_k) * law.each),
            new_cluster_weight=(
                weight_of_new(law, len(n_k)) / (n_documents + law.alpha) if self.model.has_clusters else 1.0
            ),
            topic_given_cluster=mass / total,
            new_topic_weight=new / (total[:, 0] + new),
            topic_words=sp.csr_matrix(words),
            topic_word_prior=self.topic_word_prior,
            topic_weights=assignments.topic_weights.copy(),
            table_concentration=v,
            contexts=SparseRows.of(self.contexts.natural(assignments.cluster, assignments.n_clusters)),
            cluster=assignments.cluster.copy(),
            log_joint=self.log_joint,
            document_concentration=self.omega,
            contents=contents,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        concentrations = [getattr(self.concentrations, role) for role in ROLES]
        return {
            "cluster": self.assignments.cluster,
            "topic": self.assignments.topic,
            "topic_weights": self.assignments.topic_weights,
            "scalars": np.array([self.assignments.rest, *concentrations, self.log_joint]),
            **({"topic_word_prior": np.array(self.topic_word_prior)} if self.is_prior_learnt else {}),
        }

    @classmethod
    def restore(cls, model: TopicModel, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Self:
        """The inverse of :meth:`arrays`; ValueError where they do not fit model and corpus."""
        check(arrays, _DESCRIBED, {"J": corpus.n_documents, "N": corpus.n_tokens})
        rest, group, table, topic_concentration, log_joint = map(float, arrays["scalars"])
        cluster, topic = arrays["cluster"].astype(np.int32), arrays["topic"].astype(np.int32)
        weights = arrays["topic_weights"].astype(np.float64)
        assignments = Assignments(cluster, topic, document_start(corpus), weights, rest)
        assignments.count()
        state = cls.of(model, corpus, StackedContexts(corpus, model.cluster_contexts), assignments)
        state.concentrations = Concentrations(group, table, topic_concentration, model.most_clusters)
        state.log_joint = log_joint
        if state.is_prior_learnt:
            check(arrays, {"topic_word_prior": Stored("f", "")}, {})
            state.topic_word_prior = float(arrays["topic_word_prior"])
        return state


@dataclass
class SharedState(GibbsState):
    """State of a chain where documents share the topic proportions of their cluster, tau and psi summed out.

    Attributes
    ----------
    times : TokenTimes or None
        The contexts as the tokens of npTOT have them: follow from the corpus, not stored.
    """

    times: TokenTimes | None = None

    @classmethod
    def of(
        cls, model: TopicModel, corpus: Corpus, contexts: StackedContexts, assignments: Assignments, **more: Any
    ) -> Self:
        times = TokenTimes(corpus, model.contexts) if model.has_token_context else None
        return super().of(model, corpus, contexts, assignments, times=times, **more)

    @cached_property
    def cells(self) -> WordCells:
        """The corpus word by word, 12 bytes for each word of a document: made for the kernels that look at it."""
        content = self.content
        return word_cells(content.indptr, content.indices, content.data, content.shape[1])

    @property
    def seats(self) -> np.ndarray:
        return self.assignments.n_km

    @property
    def omega(self) -> float:
        return math.inf

    def log_topics(self, pool: Executor | None = None) -> list[float]:
        v, n_km = self.concentrations.table, self.assignments.n_km
        prior = v * self.assignments.topic_weights
        clusters, topics = np.nonzero(n_km)
        return [
            (gammaln(prior[topics] + n_km[clusters, topics]) - gammaln(prior[topics])).sum(),
            (gammaln(v) - gammaln(v + n_km.sum(axis=1, dtype=np.int64))).sum(),
        ]

    def log_contexts(self) -> list[float]:
        times = [] if self.times is None else [self.times.log_marginal(self.assignments)]
        return times + super().log_contexts()

    def draw_weights(self, seed: int, iteration: int) -> None:
        """Move the tables of clusters, and given these v, eta, alpha and epsilon."""
        key, rng = streams.key(seed, "tables", iteration), streams.generator(seed, "weights", iteration)
        is_fixed = not self.model.has_clusters
        update_weights(self.assignments, self.concentrations, self.priors, key, rng, clusters_are_fixed=is_fixed)

    def sweep(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None,
    ) -> None:  # fmt: skip
        assignments, concentrations, s = self.assignments, self.concentrations, self.topic_word_prior
        if kernel != "collapsed" and self.observations is None:
            move_blocked(
                assignments, corpus.content, self.cells, self.contexts, concentrations, s, seed, iteration, pool,
                clusters_are_fixed=not self.model.has_clusters,
            )  # fmt: skip
        if kernel != "blocked":
            if self.model.has_clusters:
                sweep_clusters(assignments, self.contexts, concentrations, streams.key(seed, "clusters", iteration))
            key = streams.key(seed, "topics", iteration)
            if self.observations is not None:
                shares = np.zeros((0, assignments.n_topics + 1))
                self.observations.sweep(assignments, shares, math.inf, concentrations, key)
            elif self.times is None:
                sweep_topics(assignments, self.cells, concentrations, s, key)
            else:
                sweep_timed_topics(assignments, corpus, self.times, concentrations, s, key)
        self.draw_weights(seed, iteration)
