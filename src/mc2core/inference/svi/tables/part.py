"""SVI-MC2 with tables, as UAI16 prints it, as the engine asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.svi import sticks
from mc2core.inference.svi.local import Batch, DocumentStatistics, expected_topic_words
from mc2core.inference.svi.part import BatchSums, GlobalPart
from mc2core.inference.svi.start import Start
from mc2core.inference.svi.state import TABLE, Concentrations, ConcentrationSettings, Expectations
from mc2core.inference.svi.tables import statistics
from mc2core.inference.svi.tables.state import TableExpectations, TableGlobals, topic_shares
from mc2core.inference.svi.tables.step import step_tables, step_topics
from mc2core.inference.svi.tables.words import WordTables, word_tables

# nats between a table's own topic and any other at the start: a hard table, which costs least
_TABLE_CONTRAST = 50.0
# truncations where none are set
_CLUSTERS, _TOPICS = 40, 120


class TableSums(NamedTuple):
    """n_kt (K, T) and sum_w N_kt(w) E ln psi_mw (K, T, M) of a mini-batch."""

    n_kt: np.ndarray
    log_likelihood: np.ndarray


class TablePart(GlobalPart):
    """q(tau_k) over tables, q(c_kt), q(epsilon) by sticks. The global step has two halves.

    Sticks, tables and contexts come first and then, given the tables' new topics, the topics. q(c_kt) and q(psi_m)
    enter each other's targets, so moving both at once, as the engine's ``global_step`` "joint" does, could lower the
    ELBO even with the whole corpus and rate 1.
    """

    def truncations(self, corpus: Corpus) -> tuple[int, int]:
        return self.engine.n_clusters or _CLUSTERS, self.engine.n_topics or _TOPICS

    def n_numbers(self, corpus: Corpus, n_clusters: int, n_topics: int) -> tuple[int, str]:
        n_tables = self.engine.n_tables
        return n_clusters * n_tables * n_topics, f"{n_clusters} clusters of {n_tables} tables"

    def concentration_settings(self, every: ConcentrationSettings) -> ConcentrationSettings:
        return every

    def begin(self, start: Start, corpus: Corpus, contexts: StackedContexts) -> TableGlobals:
        """Tables and topics are put in order of size, as sticks prefer them."""
        engine, assignments = self.engine, start.assignments
        n_topics = assignments.topic_words.shape[1]
        tables = np.argsort(-assignments.n_kt[start.order], axis=1, kind="stable")
        n_kt = np.take_along_axis(assignments.n_kt[start.order], tables, axis=1)
        topics = np.argsort(-assignments.topic_words.sum(axis=0), kind="stable")
        table_topic = np.argsort(topics)[np.take_along_axis(assignments.table_topic[start.order], tables, axis=1)]
        topic_sticks = sticks.stick_posterior(
            np.bincount(table_topic.ravel(), minlength=n_topics), engine.topic_concentration
        )
        scores = np.tile(sticks.expected_log_weights(topic_sticks), (*table_topic.shape, 1))
        np.put_along_axis(scores, table_topic[:, :, None], _TABLE_CONTRAST, axis=2)
        group_sticks = sticks.stick_posterior(start.n_k, engine.group_concentration)
        table_sticks = sticks.stick_posterior(start.scale * n_kt, engine.table_concentration)
        topic_words = np.ascontiguousarray(start.scale * assignments.topic_words[:, topics])
        settings = engine.concentration_settings
        n_sticks = np.array([one[0].size for one in (group_sticks, table_sticks, topic_sticks)])
        return TableGlobals(
            group_sticks=group_sticks,
            topic_sticks=topic_sticks,
            table_sticks=table_sticks,
            table_topic=scores,
            topic_words=topic_words,
            context_counts=start.contexts,
            context_totals=contexts.sums_by_context(start.contexts),
            # Gamma posteriors whose means are the starting values
            concentration_rates=(settings.shape + n_sticks) / settings.start,
            cluster=start.cluster,
            topic_prior=engine.topic_prior,
            contexts=contexts,
            n_m=topic_words.sum(axis=0),
        )

    def restore(
        self, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], contexts: StackedContexts
    ) -> TableGlobals:
        sizes = {**sizes, "T": self.engine.n_tables}
        return TableGlobals.from_arrays(arrays, sizes, contexts, topic_prior=self.engine.topic_prior)

    def word_likelihoods(
        self, state: TableGlobals, expected: TableExpectations, words: np.ndarray, pool: Executor | None
    ) -> WordTables:
        return word_tables(state, expected, words, pool)

    def step(
        self,
        state: TableGlobals,
        expected: TableExpectations,
        likelihoods: WordTables,
        batch: Batch,
        documents: DocumentStatistics,
        concentrations: Concentrations,
        scale: float,
        rate: float,
        pool: Executor | None,
    ) -> BatchSums:
        mass = statistics.table_mass(likelihoods, documents.word_mass, pool)
        sums = TableSums(*statistics.table_statistics(likelihoods, mass, pool))
        step_tables(
            state, expected, concentrations, documents, batch.columns, sums.n_kt, sums.log_likelihood, scale, rate
        )
        is_joint = self.engine.global_step == "joint"
        table_topic = expected.table_topic if is_joint else topic_shares(state.table_topic)[1]
        topic_words = statistics.topic_statistics(likelihoods, mass, table_topic, pool)
        step_topics(state, table_topic, concentrations, batch.words, topic_words, scale, rate, pool)
        return BatchSums(documents, sums, batch.words, topic_words)

    def changes(
        self,
        state: TableGlobals,
        before: TableExpectations,
        after: TableExpectations,
        sums: BatchSums,
        pool: Executor | None,
    ) -> tuple[float, float]:
        words_before = float(np.sum(before.table_topic * sums.own.log_likelihood))
        words_after = expected_topic_words(state, after, sums.words, sums.topic_words, pool)
        return words_after - words_before, float(np.sum(sums.own.n_kt * (after.log_table - before.log_table)))

    def tidy(self, state: TableGlobals, pool: Executor | None, is_full: bool) -> None:
        """Sticks and tables keep their truncations and their order."""

    def proportions(
        self, state: TableGlobals, expected: Expectations, clusters: np.ndarray, topics: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        tables = sticks.expected_weights(state.table_sticks)[clusters]
        _, share = topic_shares(state.table_topic)
        known = np.einsum("kt,ktm->km", tables, share[clusters][:, :, topics])
        v = float(self.engine.concentrations(state).mean[TABLE])
        return known, sticks.expected_weights(state.topic_sticks)[topics], v
