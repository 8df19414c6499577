"""The state of a chain with a document level, and the moves of an iteration.

Tokens, splits and merges of topics, documents given tau, omega, splits and merges of clusters, tables of documents,
documents given these, tables and concentrations. All of them leave the posterior invariant.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mc2core.base.described import Stored, check
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.chain import GibbsState
from mc2core.inference.gibbs.collapsed import sweep_clusters
from mc2core.inference.gibbs.document_level.cluster_moves import split_and_merge_clusters
from mc2core.inference.gibbs.document_level.observed_moves import split_and_merge_observed_topics
from mc2core.inference.gibbs.document_level.parallel import sweep_documents_apart
from mc2core.inference.gibbs.document_level.sweep import (
    count_topics,
    draw_document_tables,
    draw_omega,
    draw_proportions,
    log_documents,
    sweep_members,
)
from mc2core.inference.gibbs.document_level.tokens import sweep_document_topics
from mc2core.inference.gibbs.document_level.topic_moves import split_and_merge_topics
from mc2core.inference.gibbs.state import Assignments, Concentrations
from mc2core.inference.gibbs.weights import ConcentrationPriors, GammaPrior, update_weights
from mc2core.inference.shards import ShardedCorpus
from mc2core.models.base import DOCUMENT, TopicModel

#: omega of the starting state where it is learnt
START_OMEGA = 10.0
_DESCRIBED = {
    "proportions": Stored("f", "K C"),
    "tables": Stored("i", "K M"),
    "document_concentration": Stored("f", ""),
}


def cluster_proposals(n_documents: int) -> int:
    """Proposals to split or merge clusters, an iteration: one for 16 documents, since each looks at whole clusters."""
    return min(max(n_documents // 16, 10), 100)


def topic_proposals(n_tokens: int) -> int:
    """Proposals to split or merge topics, an iteration: 250, and fewer of fewer than 3,000 tokens, one for twelve."""
    return min(max(n_tokens // 12, 10), 250)


def observed_proposals(n_tokens: int) -> int:
    """The same of topics that emit observations: 25, and fewer of fewer than 300 observations, one for twelve."""
    return min(max(n_tokens // 12, 2), 25)


@dataclass
class DocumentLevel:
    """Proportions of clusters and omega; those of documents, theta_j ~ DP(omega, tau_k), are summed out.

    Attributes
    ----------
    proportions : (K, M + 1) float64, rows sum to 1
        tau_k; the last column holds all topics not in use.
    tables : (K, M) int32
        t_km, tables of the documents of cluster k, when tau was drawn.
    omega : float
        The document concentration.
    """

    proportions: np.ndarray
    tables: np.ndarray
    omega: float

    @classmethod
    def start(cls, assignments: Assignments, document_concentration: float | str) -> DocumentLevel:
        """Every cluster at epsilon: the first call of :meth:`move_all_but_tokens` draws from it."""
        omega = START_OMEGA if document_concentration == "learn" else float(document_concentration)
        epsilon = np.append(assignments.topic_weights, assignments.rest)
        return cls(np.tile(epsilon, (assignments.n_clusters, 1)), np.zeros_like(assignments.n_km), omega)

    def arrays(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        return {
            "proportions": self.proportions,
            "tables": self.tables,
            "document_concentration": np.array(self.omega),
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], assignments: Assignments) -> DocumentLevel:
        """The inverse of :meth:`arrays`; ValueError where they do not fit the assignments."""
        n_topics = assignments.n_topics
        check(arrays, _DESCRIBED, {"K": assignments.n_clusters, "M": n_topics, "C": n_topics + 1})
        proportions, tables = arrays["proportions"].astype(np.float64), arrays["tables"].astype(np.int32)
        return cls(proportions, tables, float(arrays["document_concentration"]))

    def move_all_but_tokens(
        self,
        assignments: Assignments,
        contexts: StackedContexts,
        concentrations: Concentrations,
        priors: ConcentrationPriors,
        omega_prior: GammaPrior | None,
        seed: int,
        iteration: int,
        pool: Executor | None,
        *,
        documents_move: bool,
        clusters_are_fixed: bool,
    ) -> None:
        """Draw, in place: z given tau; omega; z and tau by splits and merges; tables of documents; z given these; v,
        eta, alpha, epsilon given tables of clusters; tau last.

        The first three sum theta out. From the tables of documents on all is drawn given these with tau summed out, and
        tau given all of it: one joint draw, of which tau must be the last part. ``omega_prior`` None holds omega;
        ``clusters_are_fixed`` holds z, which says nothing of alpha then.
        """
        documents_move = documents_move and not clusters_are_fixed
        prior, counts = self.omega * self.proportions[:, :-1], count_topics(assignments, pool)
        if documents_move:
            key = streams.key(seed, "members", iteration)
            sweep_members(assignments, counts, prior, contexts, concentrations.partition, key, pool)
        rng = streams.generator(seed, "weights", iteration)
        if omega_prior is not None:
            lengths = np.diff(assignments.document_start)
            self.omega = draw_omega(
                lengths, assignments.cluster, counts, self.proportions, self.omega, omega_prior, rng, pool
            )
        if documents_move:
            key = streams.key(seed, "split_merge", iteration)
            n_proposals = cluster_proposals(len(assignments.cluster))
            self.proportions, _ = split_and_merge_clusters(
                assignments, counts, self.proportions, contexts, concentrations, self.omega, key, n_proposals, pool=pool
            )
        prior = self.omega * self.proportions[:, :-1]
        seated = draw_document_tables(assignments, prior, streams.key(seed, "document_tables", iteration), pool)
        if documents_move:
            sweep_clusters(seated, contexts, concentrations, streams.key(seed, "clusters", iteration))
        key = streams.key(seed, "tables", iteration)
        update_weights(seated, concentrations, priors, key, rng, clusters_are_fixed=clusters_are_fixed)
        self.tables = seated.n_km
        self.proportions = draw_proportions(seated.n_km, seated, concentrations, rng)
        assignments.cluster[:] = seated.cluster
        assignments.topic_weights, assignments.rest = seated.topic_weights, seated.rest
        assignments.count(counts=counts)

    def log_joint(self, assignments: Assignments, pool: Executor | None = None) -> float:
        """ln p(l | z, tau, omega), theta summed out; the threads ``pool`` change no bit."""
        lengths, counts = np.diff(assignments.document_start), count_topics(assignments, pool)
        return log_documents(lengths, assignments.cluster, counts, self.proportions, self.omega, pool)


@dataclass
class DocumentLevelState(GibbsState):
    """State of a chain whose documents have topic proportions of their own, theta and psi summed out.

    Attributes
    ----------
    level : DocumentLevel
        tau and omega.
    """

    level: DocumentLevel = field(kw_only=True)

    @classmethod
    def of(
        cls, model: TopicModel, corpus: Corpus, contexts: StackedContexts, assignments: Assignments, **more: Any
    ) -> Self:
        level = DocumentLevel.start(assignments, model.document_concentration)
        return super().of(model, corpus, contexts, assignments, level=level, **more)

    @classmethod
    def restore(cls, model: TopicModel, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Self:
        state = super().restore(model, corpus, arrays)
        state.level = DocumentLevel.restore(arrays, state.assignments)
        return state

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | self.level.arrays()

    @property
    def seats(self) -> np.ndarray:
        return self.level.tables

    @property
    def omega(self) -> float:
        return self.level.omega

    @property
    def omega_prior(self) -> GammaPrior | None:
        """None where omega is held."""
        return GammaPrior(*self.model.prior_of(DOCUMENT)) if self.model.document_concentration == "learn" else None

    def log_topics(self, pool: Executor | None = None) -> list[float]:
        return [self.level.log_joint(self.assignments, pool)]

    def sweep(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None,
    ) -> None:  # fmt: skip
        self.move_tokens(corpus, kernel, seed, iteration, pool, sharded)
        self.move_all_but_tokens(seed, iteration, pool)

    def move_tokens(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None,
    ) -> None:  # fmt: skip
        """One sweep over all tokens, then splits and merges of topics, in place."""
        level, given = self.level, (self.level.omega, self.concentrations)
        key = streams.key(seed, "topics", iteration)
        if self.observations is not None:
            level.proportions = self.observations.sweep(self.assignments, level.proportions, *given, key)
            level.proportions, _ = split_and_merge_observed_topics(
                self.assignments, self.observations, level.proportions, *given,
                streams.key(seed, "topic_moves", iteration), observed_proposals(corpus.n_tokens),
            )  # fmt: skip
            return
        if kernel == "parallel":
            level.proportions = sweep_documents_apart(
                self.assignments,
                corpus,
                level.proportions,
                *given,
                self.topic_word_prior,
                seed,
                iteration,
                pool,
                sharded,
            )
        else:
            level.proportions = sweep_document_topics(
                self.assignments, corpus, level.proportions, *given, self.topic_word_prior, key, pool
            )
        topic_key = streams.key(seed, "topic_moves", iteration)
        n_proposals = topic_proposals(corpus.n_tokens)
        level.proportions, _ = split_and_merge_topics(
            self.assignments,
            corpus,
            level.proportions,
            *given,
            self.topic_word_prior,
            topic_key,
            n_proposals,
            pool=pool,
        )

    def move_all_but_tokens(self, seed: int, iteration: int, pool: Executor | None, *, is_settled: bool = True) -> None:
        """:meth:`DocumentLevel.move_all_but_tokens` of this state; until it is settled, z and omega are held."""
        self.level.move_all_but_tokens(
            self.assignments, self.contexts, self.concentrations, self.priors,
            self.omega_prior if is_settled else None, seed, iteration, pool, documents_move=is_settled,
            clusters_are_fixed=not self.model.has_clusters,
        )  # fmt: skip
