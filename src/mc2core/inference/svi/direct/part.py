"""SVI-MC2 with direct assignment of tokens to topics, as the engine asks for it.

The ELBO is (a bound of ln p(w, x | eps, v)) + eta ln eps_rest + (the prior of v relative to its mode): both added terms
are at most 0, so it bounds the largest ln p(w, x | eps, v) over eps and v from below.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.svi import local, sticks
from mc2core.inference.svi.direct.state import DirectExpectations, DirectGlobals
from mc2core.inference.svi.direct.topic_prior import best_topic_prior
from mc2core.inference.svi.direct.weights import step_weights
from mc2core.inference.svi.direct.words import WordTopics, assign_documents, topic_statistics, word_topics
from mc2core.inference.svi.local import Assign, Batch, DocumentStatistics, expected_topic_words
from mc2core.inference.svi.part import BatchSums, GlobalPart
from mc2core.inference.svi.start import Start
from mc2core.inference.svi.state import (
    GROUP,
    Concentrations,
    ConcentrationSettings,
    Expectations,
    blend,
    clusters_in_use,
    step_concentrations,
    topics_in_use,
)

# truncations where none are set
_DOCUMENTS_FOR_CLUSTER, _LEAST_CLUSTERS, _MOST_CLUSTERS, _TOPICS_FOR_CLUSTER = 4, 2, 320, 2
# steps of epsilon and v at the start, after a full step and after a mini-batch
STEPS_AT_START, STEPS_OF_FULL, STEPS_OF_BATCH = 30, 5, 1
# documents or tokens below which leaving a component out changes no full batch's bound
_NOTHING = 1e-9


class DirectSums(NamedTuple):
    """n_km (K, M) of a mini-batch, and E ln psi (U, M) that it was made with."""

    n_km: np.ndarray
    log_psi: np.ndarray


class DirectPart(GlobalPart):
    """q(tau_k) over topics, epsilon and v by points."""

    state_type: ClassVar[type[DirectGlobals]] = DirectGlobals

    def truncations(self, corpus: Corpus) -> tuple[int, int]:
        """By rule a cluster for every four documents, 2 to 320 of them, and two topics for every cluster.

        More clusters have lower perplexity on validation documents as far as was tried (docs/notes/svi.md); the
        most is what time allows.
        """
        by_rule = min(max(-(-corpus.n_documents // _DOCUMENTS_FOR_CLUSTER), _LEAST_CLUSTERS), _MOST_CLUSTERS)
        n_clusters = self.engine.n_clusters or by_rule
        return n_clusters, self.engine.n_topics or _TOPICS_FOR_CLUSTER * n_clusters

    def n_numbers(self, corpus: Corpus, n_clusters: int, n_topics: int) -> tuple[int, str]:
        return n_clusters * n_topics, f"{n_clusters} clusters"

    def concentration_settings(self, every: ConcentrationSettings) -> ConcentrationSettings:
        return ConcentrationSettings(every.start[:1], every.is_learnt[:1], every.shape[:1], every.rate[:1])

    def _prior(self, role: str) -> tuple[float, float] | None:
        """(shape, rate) of a concentration with a point estimate, None where it is fixed."""
        if role not in self.engine.learn_concentrations:
            return None
        shape, rate = self.engine.concentration_priors.get(role, (1.0, 1.0))
        return shape, rate

    def _fixed(self) -> dict[str, Any]:
        """Fields of the state that the settings say."""
        return {
            "eta": self.engine.topic_concentration,
            "v_prior": self._prior("table"),
            "s_prior": self._prior("words"),
        }

    def _beginning(self, corpus: Corpus, n_clusters: int, n_topics: int) -> dict[str, Any]:
        """Fields of the starting state that a kind of state adds."""
        return {}

    def begin(self, start: Start, corpus: Corpus, contexts: StackedContexts) -> DirectGlobals:
        engine, assignments = self.engine, start.assignments
        n_topics = assignments.topic_words.shape[1]
        n_km = np.zeros((len(start.order), n_topics))
        np.add.at(n_km, (np.arange(len(n_km))[:, None], assignments.table_topic), assignments.n_kt)
        group_sticks = sticks.stick_posterior(np.append(start.n_k, 0.0), engine.group_concentration)
        settings = engine.concentration_settings
        topic_words = start.scale * assignments.topic_words
        state = self.state_type(
            group_sticks=group_sticks,
            n_km=start.scale * n_km[start.order],
            topic_weights=np.full(n_topics, 1.0 / (n_topics + 1)),
            rest=1.0 / (n_topics + 1),
            table_concentration=engine.table_concentration,
            topic_words=topic_words,
            context_counts=start.contexts,
            context_totals=contexts.sums_by_context(start.contexts),
            # a Gamma posterior whose mean is the starting value
            concentration_rates=(settings.shape + len(start.n_k)) / settings.start,
            cluster=start.cluster,
            topic_prior=engine.topic_prior,
            contexts=contexts,
            n_m=topic_words.sum(axis=0),
            **self._fixed(),
            **self._beginning(corpus, *n_km.shape),
        )
        self.tidy(state, None, is_full=True)
        state.weights = step_weights(state.objective, state.weights, STEPS_AT_START)
        return state

    def restore(
        self, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], contexts: StackedContexts
    ) -> DirectGlobals:
        found = np.shape(arrays.get("n_km", ()))
        if len(found) == 2 and not (0 < found[0] <= sizes["K"] and 0 < found[1] <= sizes["M"]):
            raise ValueError(
                f"'n_km' has the shape {found}; at most {(sizes['K'], sizes['M'])} is needed, at least (1, 1)"
            )
        sizes = {name: size for name, size in sizes.items() if name not in ("K", "M")}
        return self.state_type.from_arrays(arrays, sizes, contexts, **self._fixed())

    def word_likelihoods(
        self, state: DirectGlobals, expected: DirectExpectations, words: np.ndarray, pool: Executor | None
    ) -> WordTopics:
        return word_topics(state, expected, words, pool)

    def assign(
        self,
        batch: Batch,
        likelihoods: WordTopics,
        expected: DirectExpectations,
        pool: Executor | None,
        assign: Assign = local.assign_documents,
    ) -> tuple[np.ndarray, DocumentStatistics]:
        return assign_documents(batch, likelihoods, expected, pool, assign)

    def step(
        self,
        state: DirectGlobals,
        expected: DirectExpectations,
        likelihoods: WordTopics,
        batch: Batch,
        documents: DocumentStatistics,
        concentrations: Concentrations,
        scale: float,
        rate: float,
        pool: Executor | None,
    ) -> BatchSums:
        n_km, topic_words = topic_statistics(likelihoods, documents.word_mass, pool)
        self.blend_shared(state, batch, documents, topic_words, concentrations, scale, rate, pool)
        blend(state.n_km, scale * n_km, rate)
        n_steps = STEPS_OF_FULL if rate == 1.0 else STEPS_OF_BATCH
        state.weights = step_weights(state.objective, state.weights, n_steps)
        return BatchSums(documents, DirectSums(n_km, likelihoods.scores), batch.words, topic_words)

    def blend_shared(
        self,
        state: DirectGlobals,
        batch: Batch,
        documents: DocumentStatistics,
        topic_words: np.ndarray,
        concentrations: Concentrations,
        scale: float,
        rate: float,
        pool: Executor | None,
    ) -> None:
        """The natural-gradient step of sticks, contexts and topics, in place."""
        n_k = np.append(scale * documents.n_k, 0.0)
        blend(state.group_sticks, sticks.stick_posterior(n_k, concentrations.mean[GROUP]), rate)
        state.blend_contexts(batch.columns, documents.contexts, scale, rate)
        state.blend_topic_words(batch.words, topic_words, scale, rate, pool)

    def changes(
        self,
        state: DirectGlobals,
        before: DirectExpectations,
        after: DirectExpectations,
        sums: BatchSums,
        pool: Executor | None,
    ) -> tuple[float, float]:
        words_before = float(np.sum(sums.topic_words * sums.own.log_psi))
        words_after = expected_topic_words(state, after, sums.words, sums.topic_words, pool)
        return words_after - words_before, float(np.sum(sums.own.n_km * (after.log_tau - before.log_tau)))

    def tidy(self, state: DirectGlobals, pool: Executor | None, is_full: bool) -> None:
        """s where it is learnt; clusters in order of size; clusters and topics not in use become part of the rest.

        Not in use are, after a full batch, those with nothing at all (which changes no bound), else those that no
        document likes best and topics with less than half a token.
        """
        if state.s_prior is not None:
            state.topic_prior = best_topic_prior(state.topic_words, state.topic_prior, state.s_prior, pool)
        n_k = state.n_k
        clusters = np.flatnonzero(n_k > _NOTHING) if is_full else clusters_in_use(state)
        topics = np.flatnonzero(state.n_m > _NOTHING) if is_full else topics_in_use(state)
        clusters = clusters if len(clusters) else np.zeros(1, np.int64)
        topics = topics if len(topics) else np.zeros(1, np.int64)
        clusters = clusters[np.argsort(-n_k[clusters], kind="stable")]
        state.keep(clusters, topics)
        alpha = self.engine.concentrations(state).mean[GROUP]
        state.group_sticks = sticks.stick_posterior(np.append(n_k[clusters], 0.0), alpha)
        step_concentrations(state, self.engine.concentration_settings)

    def proportions(
        self, state: DirectGlobals, expected: Expectations, clusters: np.ndarray, topics: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        v = state.table_concentration
        n_km = state.n_km[clusters]
        known = (v * state.topic_weights + n_km) / (v + n_km.sum(axis=1, keepdims=True))
        return known[:, topics], state.topic_weights[topics], v
