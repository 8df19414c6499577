"""SVI-MC2 whose documents have proportions of their own, as the engine asks for it.

theta_j ~ DP(omega, tau_{z_j}). The ELBO is (a bound of ln p(w, x | eps, v, omega)) + eta ln eps_rest + (the priors of
v and omega relative to their modes), the added terms being at most 0. In the first epoch documents are held in the
clusters where they start: under topics that are still those of clusters, all would join a few.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mc2core.base.checks import LEAST_PRIOR as LEAST_OMEGA
from mc2core.base.checks import MOST_PRIOR as MOST_OMEGA
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.seeding import join_nearest
from mc2core.inference.svi.direct.part import STEPS_AT_START, STEPS_OF_BATCH, STEPS_OF_FULL, DirectPart
from mc2core.inference.svi.direct.state import DirectGlobals
from mc2core.inference.svi.direct.weights import Weights, step_weights
from mc2core.inference.svi.document_level.documents import CANDIDATES, OwnStatistics, assign_documents
from mc2core.inference.svi.document_level.passes import Words, topic_scores
from mc2core.inference.svi.document_level.rising import (
    LEAST_SHARE,
    Local,
    log_evidence,
    log_remainder,
    never_lower,
    tables_of,
)
from mc2core.inference.svi.document_level.state import OwnExpectations, OwnGlobals
from mc2core.inference.svi.local import Assign, Batch, DocumentStatistics, expected_topic_words
from mc2core.inference.svi.local import assign_documents as assign_shared
from mc2core.inference.svi.part import BatchSums
from mc2core.inference.svi.start import Start
from mc2core.inference.svi.state import Concentrations, blend

#: omega of the starting state where it is learnt
START = 10.0
# truncations where none are set
_DOCUMENTS_FOR_CLUSTER, _LEAST_CLUSTERS, _MOST_CLUSTERS, _TOPICS_FOR_CLUSTER = 25, 2, 100, 8
_DOCUMENTS_WHERE_FEW, _MOST_WHERE_FEW = 4, 20
_TOKENS_FOR_TOPIC = 1000
# mini-batches of an epoch at least where their size is not set, as far as each has so many documents
_LEAST_BATCHES, _LEAST_BATCH = 32, 20


class OwnSums(NamedTuple):
    """Local posteriors of a batch, and E ln psi (U, M) that they were made with."""

    local: Local
    log_psi: np.ndarray


class OwnWords(NamedTuple):
    """E ln psi of a batch, and the state that it is of."""

    words: Words
    state: OwnGlobals


class OwnPart(DirectPart):
    """q(tau_k) over topics by tables of documents; epsilon, v and omega by points."""

    state_type: ClassVar[type[DirectGlobals]] = OwnGlobals

    def truncations(self, corpus: Corpus) -> tuple[int, int]:
        """By rule a cluster for every 25 documents, up to 20 for every four, 2 to 100; eight topics for every cluster.

        Clusters join others as a run goes on and hardly part; documents share topics
        (docs/notes/svi_document_level.md). Topics of fewer than a thousand tokens each would be fewer in the end, so
        that there is no more than one beside those of clusters.
        """
        few = min(-(-corpus.n_documents // _DOCUMENTS_WHERE_FEW), _MOST_WHERE_FEW)
        by_rule = min(max(-(-corpus.n_documents // _DOCUMENTS_FOR_CLUSTER), few, _LEAST_CLUSTERS), _MOST_CLUSTERS)
        n_clusters = self.engine.n_clusters or by_rule
        most = max(n_clusters + 1, corpus.n_tokens // _TOKENS_FOR_TOPIC)
        return n_clusters, self.engine.n_topics or min(_TOPICS_FOR_CLUSTER * n_clusters, most)

    def usual_batch(self, n_documents: int) -> int:
        """At most a 32nd of the documents: rates suit so many steps an epoch (docs/notes/svi_document_level.md)."""
        return min(super().usual_batch(n_documents), max(-(-n_documents // _LEAST_BATCHES), _LEAST_BATCH))

    def n_numbers(self, corpus: Corpus, n_clusters: int, n_topics: int) -> tuple[int, str]:
        n_documents = min(self.batch_size(corpus.n_documents) or corpus.n_documents, corpus.n_documents)
        return (n_clusters + n_documents * min(CANDIDATES, n_clusters)) * n_topics, f"{n_clusters} clusters"

    def _fixed(self) -> dict[str, Any]:
        prior = None
        if self.engine.document_concentration == "learn":
            shape, rate = self.engine.concentration_priors.get("document", (1.0, 1.0))
            prior = shape, rate
        return {**super()._fixed(), "omega_prior": prior}

    def _beginning(self, corpus: Corpus, n_clusters: int, n_topics: int) -> dict[str, Any]:
        given = self.engine.document_concentration
        omega = START if given == "learn" else float(given)
        n_candidates = min(CANDIDATES, n_clusters) if self.engine.batch_size is None else 0
        return {
            "document_concentration": omega,
            "log_remainder": log_remainder(corpus.document_lengths, omega),
            "local_cluster": np.full((corpus.n_documents, n_candidates), -1, np.int32),
            "local_counts": np.zeros((corpus.n_documents, n_candidates, n_topics)),
        }

    def begin(self, start: Start, corpus: Corpus, contexts: StackedContexts) -> DirectGlobals:
        state = super().begin(start, corpus, contexts)
        assert isinstance(state, OwnGlobals)
        # tokens become tables: each document has those expected of its length, at its cluster's topics
        tables = state.document_concentration * state.log_remainder / corpus.n_documents * state.n_k
        tokens = state.n_km.sum(axis=1)
        state.n_km *= np.divide(tables, tokens, where=tokens > 0, out=np.zeros_like(tables))[:, None]
        state.weights = step_weights(state.objective, state.weights, STEPS_AT_START)
        # those that the start did not look at would be free in the first epoch, and clusters would join
        state.cluster = join_nearest(corpus.content, state.cluster, len(state.n_km))
        return state

    def word_likelihoods(  # type: ignore[override]
        self, state: OwnGlobals, expected: OwnExpectations, words: np.ndarray, pool: Executor | None
    ) -> OwnWords:
        return OwnWords(topic_scores(state, expected, words, pool), state)

    def assign(  # type: ignore[override]
        self,
        batch: Batch,
        likelihoods: OwnWords,
        expected: OwnExpectations,
        pool: Executor | None,
        assign: Assign = assign_shared,
    ) -> tuple[np.ndarray, DocumentStatistics]:
        state = likelihoods.state
        n_batches = -(-len(state.cluster) // (self.batch_size(len(state.cluster)) or len(state.cluster)))
        is_held = state.n_updates < n_batches
        held = state.cluster[batch.rows] if is_held and batch.rows is not None else np.full(batch.n_documents, -1)
        kept = (state.local_cluster, state.local_counts) if self.engine.batch_size is None else None
        return assign_documents(batch, likelihoods.words, expected, held, kept, state.buffers, pool)

    def step(  # type: ignore[override]
        self,
        state: OwnGlobals,
        expected: OwnExpectations,
        likelihoods: OwnWords,
        batch: Batch,
        documents: OwnStatistics,
        concentrations: Concentrations,
        scale: float,
        rate: float,
        pool: Executor | None,
    ) -> BatchSums:
        self.blend_shared(state, batch, documents, documents.topic_words, concentrations, scale, rate, pool)
        local = documents.local
        if self.engine.batch_size is None:
            state.local_cluster = np.where(local.share < LEAST_SHARE, np.int32(-1), local.cluster)
            state.local_counts = local.counts
            raise_all(state, local, pool)
        else:
            blend(state.n_km, scale * tables_of(local, expected.prior), rate)
            state.weights = step_weights(state.objective, state.weights, STEPS_OF_BATCH)
            state.log_remainder *= 1.0 - rate
            state.log_remainder += rate * scale * log_remainder(local.lengths, state.document_concentration)
            if state.omega_prior is not None:
                state.document_concentration = omega_goal(state, state.n_km)
        return BatchSums(documents, OwnSums(local, likelihoods.words.scores), batch.words, documents.topic_words)

    def changes(  # type: ignore[override]
        self,
        state: OwnGlobals,
        before: OwnExpectations,
        after: OwnExpectations,
        sums: BatchSums,
        pool: Executor | None,
    ) -> tuple[float, float]:
        words_before = float(np.sum(sums.topic_words * sums.own.log_psi))
        words_after = expected_topic_words(state, after, sums.words, sums.topic_words, pool)
        local = sums.own.local
        own = [log_evidence(local, one.prior, one.omega, pool) for one in (before, after)]
        return words_after - words_before, own[1] - own[0]


def omega_goal(state: OwnGlobals, tables: np.ndarray) -> float:
    """Where the slope of omega's part of the bound vanishes, given expected tables and remainders, within its range."""
    assert state.omega_prior is not None
    shape, rate = state.omega_prior
    goal = (float(tables.sum()) + shape) / (state.log_remainder + rate)
    return float(np.clip(goal, LEAST_OMEGA, MOST_OMEGA))


def raise_all(state: OwnGlobals, local: Local, pool: Executor | None) -> None:
    """Steps of q(tau), of epsilon and v, and of omega, in turn and in place, given the documents of a full batch.

    Each is cut until it lowers nothing. Expected tables are where a step of q(tau) would end, and one of EM if all
    counts were whole numbers; below one token that argument does not hold.
    """

    def value() -> float:
        omega = state.document_concentration
        return log_evidence(local, state.document_prior(), omega, pool) - state.own_divergence()

    tables, goal_of_tables = state.n_km, tables_of(local, state.document_prior())

    def move_tables(share: float) -> float:
        state.n_km = (1.0 - share) * tables + share * goal_of_tables
        return value()

    move_tables(never_lower(move_tables, value()))

    weights, goal_of_weights = state.weights, step_weights(state.objective, state.weights, STEPS_OF_FULL)

    def move_weights(share: float) -> float:
        topics = (1.0 - share) * weights.topics + share * goal_of_weights.topics
        rest = (1.0 - share) * weights.rest + share * goal_of_weights.rest
        state.weights = Weights(topics, rest, weights.v * (goal_of_weights.v / weights.v) ** share)
        return value()

    move_weights(never_lower(move_weights, value()))
    if state.omega_prior is None:
        return
    omega = state.document_concentration
    state.log_remainder = log_remainder(local.lengths, omega)
    goal = omega_goal(state, tables_of(local, state.document_prior()))

    def move_omega(share: float) -> float:
        state.document_concentration = omega * (goal / omega) ** share
        return value()

    move_omega(never_lower(move_omega, value()))
