"""State and iteration of a Gibbs chain, without and with a document level.

In :class:`SharedState`, documents share the topic proportions of their cluster. An iteration updates the clusters of
documents and the topics of tokens by the chosen kernel, followed by tables and concentrations. The kernels are:

* ``collapsed``: documents (:mod:`mc2core.inference.gibbs.documents`) and tokens (:mod:`mc2core.inference.gibbs.tokens`)
  are updated one by one;
* ``blocked``: the blocked move (:mod:`mc2core.inference.gibbs.blocked`);
* ``interleaved``: the blocked move, followed by the moves of ``collapsed``. If topics emit observations
  (:mod:`mc2core.inference.gibbs.observations`), the blocked move is skipped.

An iteration of npTOT updates the topics of tokens given their contexts (:mod:`mc2core.inference.gibbs.token_contexts`).

An iteration of :class:`DocumentLevelState` has the following steps. All of them leave the posterior invariant.

1. If words repeat (:mod:`mc2core.inference.gibbs.repeats`), move tokens between draws. From then on, a token is a draw.
2. Update the topics of tokens, then split and merge topics.
3. Update the clusters of documents given tau, then omega and the tables of documents.
4. Given the tables of documents, update the clusters of documents, then split and merge clusters.
5. Draw the tables of clusters, the concentrations, epsilon and tau.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core.base.storage import Stored, check_arrays
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import State
from mc2core.inference.gibbs.assignments import Assignments, count_topics, document_start, topics_of_words
from mc2core.inference.gibbs.cluster_moves import split_and_merge_clusters
from mc2core.inference.gibbs.documents import sweep_clusters, sweep_members
from mc2core.inference.gibbs.repeats import Repeats, draws_of_cells, move_draws
from mc2core.inference.gibbs.tokens import WordCells, sweep_document_topics, sweep_topics, word_cells
from mc2core.inference.gibbs.topic_moves import split_and_merge_topics
from mc2core.inference.gibbs.weights import (
    Concentrations,
    GammaPrior,
    draw_omega,
    draw_proportions,
    draw_topic_prior,
    log_documents,
    log_partition,
    log_words,
    sample_document_tables,
    update_weights,
    weight_of_new,
)
from mc2core.models import DOCUMENT, ROLES, WORDS, TopicModel
from mc2core.posterior import Sample, SparseRows

if TYPE_CHECKING:
    from mc2core.inference.gibbs.observations import Observations
    from mc2core.inference.gibbs.token_contexts import TokenTimes
    from mc2core.inference.shards import ShardedCorpus

# split or merge proposals for clusters per iteration; with fewer proposals, fragments of a few documents do not merge
_CLUSTER_PROPOSALS = 50
_DESCRIBED = {
    "topic_weights": Stored("f", "M"),
    "topic": Stored("i", "N", below="M"),
    "cluster": Stored("i", "J", below="J"),
    "scalars": Stored("f", "5"),
}
_DESCRIBED_REPEATS = {"draw_sizes": Stored("i", "N"), "burst_concentration": Stored("f", "")}
_DESCRIBED_LEVEL = {
    "proportions": Stored("f", "K C"),
    "tables": Stored("i", "K M"),
    "document_concentration": Stored("f", ""),
}


def topic_proposals(n_tokens: int) -> int:
    """Return the number of split or merge proposals for topics: one per twenty tokens, at least 6 and at most 150."""
    return min(max(n_tokens // 20, 6), 150)


def observed_proposals(n_tokens: int) -> int:
    """Return the number of proposals for topics of observations: one per twelve, at least 2 and at most 25."""
    return min(max(n_tokens // 12, 2), 25)


@dataclass
class GibbsState(State):
    """State of a Gibbs chain.

    Attributes
    ----------
    model : MC2, HDP or NPTOT
    assignments : Assignments
        Clusters z, topics l, topic weights epsilon, and their counts.
    concentrations : Concentrations
        Current values of alpha, v and eta.
    topic_word_prior : float
        Current value of s.
    content : (J, V) csr_matrix
        Word counts of the corpus. This and the next two attributes are derived from the corpus and are not stored.
    contexts : StackedContexts
        Contexts of the documents, which clusters emit.
    observations : Observations or None
        Observations of the documents, which topics emit; None if the content is words.
    priors : dict
        Gamma priors of the learnt concentrations by role, including "words" (s) and "document" (omega).
    omega : float
        Document concentration; infinite without a document level.
    log_joint : float
        ln p(w, x, z, l | epsilon, alpha, v, eta) in nats, with tau, psi, phi and pi integrated out. It is the sum of
        the log probabilities of the partition, of topics in clusters, of words or observations in topics, and of the
        contexts (with base measures). With a document level, it is also conditional on tau and omega, and theta is
        integrated out.
    """

    model: TopicModel
    assignments: Assignments
    concentrations: Concentrations
    topic_word_prior: float
    content: sp.csr_matrix
    contexts: StackedContexts
    observations: Observations | None
    priors: Mapping[str, GammaPrior]
    omega: float = math.inf
    log_joint: float = 0.0

    @classmethod
    def from_assignments(
        cls, model: TopicModel, corpus: Corpus, contexts: StackedContexts, assignments: Assignments, **more: Any
    ) -> Self:
        """Return the state with the given assignments and the starting concentrations of the model."""
        alpha, v, eta = map(model.start_of, ROLES)
        concentrations = Concentrations(alpha, v, eta, model.most_clusters)
        observations = None
        if model.content is not None:
            from mc2core.inference.gibbs.observations import Observations

            observations = Observations.from_corpus(corpus, model.content)
        roles = [*model.roles, WORDS, *([DOCUMENT] if model.document_level else [])]
        priors = {role: GammaPrior(*model.prior_of(role)) for role in roles if model.is_learnt(role)}
        given = model, assignments, concentrations, model.start_of(WORDS), corpus.content, contexts, observations
        return cls(*given, priors, **more)

    # -- methods that differ with and without a document level --------------------------------------------------
    @abstractmethod
    def sweep(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None
    ) -> np.ndarray | None:  # fmt: skip
        """Update all variables except s, in place. Results depend neither on ``pool`` nor on ``sharded`` (for Spark).

        Returns the counts n_wm, or None if the sweep does not compute them.
        """

    @property
    @abstractmethod
    def table_counts(self) -> np.ndarray:
        """(K, M) int32: number of draws of each topic from tau_k; a draw is a token or a table of a document."""

    @abstractmethod
    def log_topics(self, pool: Executor | None = None) -> list[float]:
        """Return the terms of ln p(l | z, .) in nats; threads in ``pool`` do not change the result."""

    # -- methods that are the same with and without a document level --------------------------------------------
    @property
    def cluster(self) -> np.ndarray:  # type: ignore[override]
        """(J,) int32: cluster z_j of each document."""
        return self.assignments.cluster

    @property
    def topic(self) -> np.ndarray:
        """(n_tokens,) int32: topic of each token, in CSR order; a count of c is c consecutive tokens."""
        return self.assignments.topic

    def step(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None
    ) -> None:  # fmt: skip
        """Run one iteration, in place."""
        n_wm = self.sweep(corpus, kernel, seed, iteration, pool, sharded)
        if WORDS in self.priors:
            n_wm = self.words(pool) if n_wm is None else n_wm
            key, rng = streams.key(seed, "words", iteration), streams.generator(seed, "topic_prior", iteration)
            by_topic = np.ascontiguousarray(n_wm.T)
            self.topic_word_prior = draw_topic_prior(self.topic_word_prior, by_topic, self.priors[WORDS], key, rng)
        self.log_joint = self.compute_log_joint(pool, n_wm)

    def compute_log_joint(self, pool: Executor | None = None, n_wm: np.ndarray | None = None) -> float:
        """Compute ``log_joint`` of the current state; ``n_wm`` is the result of :meth:`words` if it is known."""
        assignments = self.assignments
        result = log_partition(self.concentrations.partition, assignments.n_k) if self.model.has_clusters else 0.0
        for term in [*self.log_topics(pool), *self.log_content(pool, n_wm), *self.log_contexts()]:
            result += term
        return float(result)

    def log_content(self, pool: Executor | None = None, n_wm: np.ndarray | None = None) -> list[float]:
        """Return the terms of ln p(w | l) in nats, with psi summed out."""
        if self.observations is not None:
            return self.observations.log_marginal(self.assignments)
        assignments, total = self.assignments, self.topic_word_prior * self.content.shape[1]
        return [
            (gammaln(total) - gammaln(total + assignments.n_km.sum(axis=0, dtype=np.int64))).sum(),
            log_words(self.words(pool) if n_wm is None else n_wm, self.topic_word_prior),
        ]

    def words(self, pool: Executor | None = None) -> np.ndarray:
        """Return the number of tokens of each word in each topic, (V, M) int32."""
        return topics_of_words(self.content, self.assignments.topic, self.assignments.n_topics, pool)

    def log_contexts(self) -> list[float]:
        """Return the terms of the log marginal likelihood of the contexts, in nats."""
        natural = self.contexts.natural(self.assignments.cluster, self.assignments.n_clusters)
        return [self.contexts.log_marginal(natural).sum(), self.contexts.log_base.sum()]

    def report(self) -> dict[str, float]:
        """Return one row of the trace: sizes, log joint density and learnt concentrations."""
        return {
            "clusters": self.assignments.n_clusters,
            "topics": self.assignments.n_topics,
            "log_joint": self.log_joint,
            **{f"{role}_concentration": getattr(self.concentrations, role) for role in ROLES},
            **({"document_concentration": self.omega} if self.model.document_level else {}),
            **({"topic_word_prior": self.topic_word_prior} if WORDS in self.priors else {}),
        }

    def sample(self) -> Sample:
        """Return the state as a posterior sample."""
        assignments, law, v = self.assignments, self.concentrations.partition, self.concentrations.table
        n_k, n_documents = assignments.n_k, len(assignments.cluster)
        # E[tau_k | tables, epsilon]: topics in use are renormalised, and the mass of all others is separate
        mass = self.table_counts + v * assignments.topic_weights
        new = v * assignments.remaining
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
            contexts=SparseRows.from_dense(self.contexts.natural(assignments.cluster, assignments.n_clusters)),
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
            "scalars": np.array([self.assignments.remaining, *concentrations, self.log_joint]),
            **({"topic_word_prior": np.array(self.topic_word_prior)} if WORDS in self.priors else {}),
        }

    @classmethod
    def restore(cls, model: TopicModel, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Self:
        """Restore a state from its :meth:`arrays`; raise ValueError if they do not fit model and corpus."""
        check_arrays(arrays, _DESCRIBED, {"J": corpus.n_documents, "N": corpus.n_tokens})
        remaining, group, table, topic_concentration, log_joint = map(float, arrays["scalars"])
        cluster, topic = arrays["cluster"].astype(np.int32), arrays["topic"].astype(np.int32)
        weights = arrays["topic_weights"].astype(np.float64)
        assignments = Assignments(cluster, topic, document_start(corpus), weights, remaining)
        assignments.count()
        state = cls.from_assignments(model, corpus, StackedContexts(corpus, model.cluster_contexts), assignments)
        state.concentrations = Concentrations(group, table, topic_concentration, model.most_clusters)
        state.log_joint = log_joint
        if WORDS in state.priors:
            check_arrays(arrays, {"topic_word_prior": Stored("f", "")}, {})
            state.topic_word_prior = float(arrays["topic_word_prior"])
        return state


@dataclass
class SharedState(GibbsState):
    """State of a chain in which documents share the topic proportions of their cluster, with tau and psi summed out.

    Attributes
    ----------
    times : TokenTimes or None
        Contexts of the tokens in npTOT. They are derived from the corpus and are not stored.
    """

    times: TokenTimes | None = None

    @classmethod
    def from_assignments(
        cls, model: TopicModel, corpus: Corpus, contexts: StackedContexts, assignments: Assignments, **more: Any
    ) -> Self:
        times = None
        if model.has_token_context:
            from mc2core.inference.gibbs.token_contexts import TokenTimes

            times = TokenTimes(corpus, model.contexts)
        return super().from_assignments(model, corpus, contexts, assignments, times=times, **more)

    @cached_property
    def cells(self) -> WordCells:
        """The counts of the corpus grouped by word, with 12 bytes per count above 0; computed at first use."""
        content = self.content
        return word_cells(content.indptr, content.indices, content.data, content.shape[1])

    @property
    def table_counts(self) -> np.ndarray:
        return self.assignments.n_km

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
        """Draw the tables of clusters and, given the tables, v, eta, alpha and epsilon."""
        key, rng = streams.key(seed, "tables", iteration), streams.generator(seed, "weights", iteration)
        is_fixed = not self.model.has_clusters
        update_weights(self.assignments, self.concentrations, self.priors, key, rng, clusters_are_fixed=is_fixed)

    def sweep(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None
    ) -> np.ndarray | None:  # fmt: skip
        assignments, concentrations, s = self.assignments, self.concentrations, self.topic_word_prior
        if kernel != "collapsed" and self.observations is None:
            from mc2core.inference.gibbs.blocked import move_blocked

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
                from mc2core.inference.gibbs.token_contexts import sweep_timed_topics

                sweep_timed_topics(assignments, corpus, self.times, concentrations, s, key)
        self.draw_weights(seed, iteration)
        return None


@dataclass
class DocumentLevelState(GibbsState):
    """State of a chain with a document level: document j has the topic proportions theta_j ~ DP(omega, tau_k).

    theta and psi are summed out.

    Attributes
    ----------
    proportions : (K, M + 1) float64
        Topic proportions tau_k. Rows sum to 1; the last column is the mass of all topics not in use.
    tables : (K, M) int32
        Number t_km of tables with topic m in the documents of cluster k, at the last draw of tau.
    repeats : Repeats or None
        Number of tokens of each draw if words repeat. In this case, ``content``, ``topic`` and all counts refer to
        draws instead of tokens.
    """

    proportions: np.ndarray = field(kw_only=True)
    tables: np.ndarray = field(kw_only=True)
    repeats: Repeats | None = field(default=None, kw_only=True)

    @classmethod
    def from_assignments(
        cls, model: TopicModel, corpus: Corpus, contexts: StackedContexts, assignments: Assignments, **more: Any
    ) -> Self:
        """Return the state with the given assignments. With ``repeats``, assignments and ``corpus`` contain draws."""
        nothing = {"proportions": np.zeros((0, 0)), "tables": np.zeros((0, 0), np.int32)}
        state = super().from_assignments(
            model, corpus, contexts, assignments, omega=model.start_of(DOCUMENT), **nothing, **more
        )
        state.start_proportions()
        return state

    def start_proportions(self) -> None:
        """Set tau of every cluster to epsilon, as the starting value of :meth:`move_all_but_tokens`."""
        epsilon = np.append(self.assignments.topic_weights, self.assignments.remaining)
        self.proportions = np.tile(epsilon, (self.assignments.n_clusters, 1))
        self.tables = np.zeros_like(self.assignments.n_km)

    def arrays(self) -> dict[str, np.ndarray]:
        level = {"proportions": self.proportions, "tables": self.tables, "document_concentration": np.array(self.omega)}
        if self.repeats is not None:
            b = np.array(self.repeats.concentration)
            level |= {"draw_sizes": self.repeats.size, "burst_concentration": b}
        return super().arrays() | level

    @classmethod
    def restore(cls, model: TopicModel, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Self:
        repeats = None
        if "draw_sizes" in arrays:
            check_arrays(arrays, _DESCRIBED_REPEATS, {"N": np.size(arrays.get("topic", ()))})
            size, b = arrays["draw_sizes"].astype(np.int32), float(arrays["burst_concentration"])
            repeats = Repeats(corpus.content, size, b)
            corpus = corpus.with_documents(draws_of_cells(corpus.content, size), corpus.contexts)
        state = super().restore(model, corpus, arrays)
        state.repeats = repeats
        n_topics = state.assignments.n_topics
        check_arrays(arrays, _DESCRIBED_LEVEL, {"K": state.assignments.n_clusters, "M": n_topics, "C": n_topics + 1})
        state.proportions, state.tables = arrays["proportions"].astype(np.float64), arrays["tables"].astype(np.int32)
        state.omega = float(arrays["document_concentration"])
        return state

    @property
    def table_counts(self) -> np.ndarray:
        return self.tables

    def log_topics(self, pool: Executor | None = None) -> list[float]:
        counts = count_topics(self.assignments, pool)
        lengths = np.diff(self.assignments.document_start)
        of_repeats = [] if self.repeats is None else self.repeats.log_density(lengths)
        return [log_documents(lengths, self.cluster, counts, self.proportions, self.omega, pool), *of_repeats]

    def report(self) -> dict[str, float]:
        of_repeats = {} if self.repeats is None else {"burst_concentration": self.repeats.concentration}
        return super().report() | of_repeats

    def sample(self) -> Sample:
        sample = super().sample()
        return sample if self.repeats is None else replace(sample, burst_concentration=self.repeats.concentration)

    def sweep(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None
    ) -> np.ndarray | None:  # fmt: skip
        n_wm = self.move_tokens(corpus, kernel, seed, iteration, pool, sharded)
        self.move_all_but_tokens(seed, iteration, pool)
        return n_wm

    def move_tokens(
        self, corpus: Corpus, kernel: str, seed: int, iteration: int, pool: Executor | None,
        sharded: ShardedCorpus | None
    ) -> np.ndarray | None:  # fmt: skip
        """Sweep over all tokens, then split and merge topics, in place; return n_wm, or None if it is not counted."""
        assignments, given, s = self.assignments, (self.omega, self.concentrations), self.topic_word_prior
        key, topic_key = (streams.key(seed, purpose, iteration) for purpose in ("topics", "topic_moves"))
        if self.repeats is not None:
            self._move_draws(self.repeats, seed, iteration, pool)
        tau, n_tokens, n_wm = self.proportions, len(self.topic), None
        if self.observations is not None:
            from mc2core.inference.gibbs.observed_moves import split_and_merge_observed_topics

            tau = self.observations.sweep(assignments, tau, *given, key)
            tau, _ = split_and_merge_observed_topics(
                assignments, self.observations, tau, *given, topic_key, observed_proposals(n_tokens)
            )
        else:
            if kernel == "parallel":
                from mc2core.inference.gibbs.parallel import sweep_documents_apart

                tau = sweep_documents_apart(assignments, corpus, tau, *given, s, seed, iteration, pool, sharded)
            else:
                tau, n_wm = sweep_document_topics(assignments, self.content, tau, *given, s, key, pool)
            tau, _, n_wm = split_and_merge_topics(
                assignments, self.content, tau, *given, s, topic_key, topic_proposals(n_tokens), pool=pool, n_wm=n_wm
            )
        self.proportions = tau
        return n_wm

    def _move_draws(self, repeats: Repeats, seed: int, iteration: int, pool: Executor | None) -> None:
        """Move tokens between draws, then draw the burst concentration b, in place."""
        priors, key = self.omega * self.proportions[:, :-1], streams.key(seed, "draws", iteration)
        given = self.words(pool), self.omega, self.topic_word_prior, key
        self.content, topic = move_draws(repeats, self.content, self.topic, self.cluster, priors, *given)
        n_draws = np.add.reduceat(np.append(self.content.data, 0), self.content.indptr[:-1], dtype=np.int64)
        n_draws[np.diff(self.content.indptr) == 0] = 0
        self.assignments.topic, self.assignments.document_start = topic, np.concatenate([[0], np.cumsum(n_draws)])
        self.assignments.count(self.assignments.n_clusters)
        repeats.draw_concentration(n_draws, streams.generator(seed, "bursts", iteration))

    def move_all_but_tokens(
        self, seed: int, iteration: int, pool: Executor | None, *, is_burn_in: bool = False
    ) -> None:
        """Update all variables except the topics of tokens and s, in place.

        The order is: z given tau; omega; tables of documents; z given these tables; v, eta, alpha and epsilon given
        tables of clusters; tau. The updates of z given tau and of omega sum theta out. All updates after the draw of
        the tables of documents condition on these tables and sum tau out, so tau must be drawn last. During the
        burn-in of the start, z and omega do not change. If clusters are fixed, z never changes.
        """
        assignments, contexts, concentrations = self.assignments, self.contexts, self.concentrations
        documents_move = not is_burn_in and self.model.has_clusters
        counts = count_topics(assignments, pool)
        if documents_move:
            prior, key = self.omega * self.proportions[:, :-1], streams.key(seed, "members", iteration)
            sweep_members(assignments, counts, prior, contexts, concentrations.partition, key, pool)
        rng = streams.generator(seed, "weights", iteration)
        if not is_burn_in and DOCUMENT in self.priors:
            lengths, prior_of_omega = np.diff(assignments.document_start), self.priors[DOCUMENT]
            self.omega = draw_omega(
                lengths, assignments.cluster, counts, self.proportions, self.omega, prior_of_omega, rng, pool
            )
        prior, key = self.omega * self.proportions[:, :-1], streams.key(seed, "document_tables", iteration)
        of_tables = sample_document_tables(assignments, counts, prior, key, pool)
        if documents_move:
            sweep_clusters(of_tables, contexts, concentrations, streams.key(seed, "clusters", iteration))
            key = streams.key(seed, "split_merge", iteration)
            split_and_merge_clusters(of_tables, contexts, concentrations, key, _CLUSTER_PROPOSALS)
        key, is_fixed = streams.key(seed, "tables", iteration), not self.model.has_clusters
        update_weights(of_tables, concentrations, self.priors, key, rng, clusters_are_fixed=is_fixed)
        self.tables = of_tables.n_km
        self.proportions = draw_proportions(of_tables.n_km, of_tables, concentrations, rng)
        assignments.cluster[:] = of_tables.cluster
        assignments.topic_weights, assignments.remaining = of_tables.topic_weights, of_tables.remaining
        assignments.count(counts=counts)
