"""SVI-MC2 with tables, as UAI16 prints it.

q(epsilon) and q(tau_k) are truncated sticks, q(c_kt) categorical. K, T, M are truncations: clusters, tables in each,
topics.

**Words under tables.** S_kt(w) = sum_m mu_ktm E ln psi_mw + E ln tau_kt and lse_k(w) = ln sum_t exp S_kt(w).

**Hard tables.** After the first steps nearly every q(c_kt) is a single topic up to rounding. Such a table's row
sum_m mu_ktm E ln psi_mw is a column of E ln psi, and all tables that serve a topic share it, so the K T rows of the
product shrink to M and a few dozen of *soft* tables (:class:`TableRows`). exp is taken of these, and a product with
the tables' weights exp(E ln tau_kt) sums over tables. The result is the same either way; only the cost follows.

**Statistics.** The global step needs sums of N_kt(w) = R_k(w) r_kt(w), the tokens of word w at table t of cluster k,
with a mini-batch's word masses R_k(w). It is made from three small factors where it is summed (:class:`TableMass`).
Sums over words are taken in fixed blocks, in their order: bits do not depend on threads.

**Global step.** Natural-gradient updates of q(global variables) (UAI16, eq. 2-5, mended).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mc2core.base.described import Stored
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.svi import sticks
from mc2core.inference.svi.local import (
    MIN_SHARE,
    MIN_SUM,
    WORD_BLOCK,
    Assign,
    Batch,
    DocumentStatistics,
    Expectations,
    assign_documents,
    exponentiate,
    fill_log_psi,
    row_maxima,
    take_logs,
)
from mc2core.inference.svi.state import (
    GROUP,
    TABLE,
    TOPIC,
    BatchStep,
    Concentrations,
    Globals,
    RunSettings,
    Start,
    blend,
    change,
    starting_rates,
)
from mc2core.models import MC2

# nats between a table's topic and any other at the start: a hard table, which costs least
_TABLE_CONTRAST = 50.0
# truncations where none are set
_CLUSTERS, _TOPICS = 40, 120
# the sums over tables are done in this many shares: cluster k belongs to share k % _SHARES
_SHARES = 8


# -- q(c_kt) ---------------------------------------------------------------------------------------------------------
@kernel(error_model="numpy")
def fill_shares(scores, log_shares, shares):
    """Rows of ``scores`` (rows, M) normalised: ln and value of exp(score) over its row's sum."""
    for i in range(scores.shape[0]):
        highest = -np.inf
        for m in range(scores.shape[1]):
            highest = max(highest, scores[i, m])
        for m in range(scores.shape[1]):
            shares[i, m] = exp(scores[i, m] - highest)
        total = 0.0
        for m in range(scores.shape[1]):
            total += shares[i, m]
        log_total = highest + log(total)
        for m in range(scores.shape[1]):
            shares[i, m] /= total
            log_shares[i, m] = scores[i, m] - log_total


def topic_shares(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(ln mu, mu), both (K, T, M), of natural parameters of q(c): log_softmax and softmax of the last axis."""
    log_shares, shares = np.empty((2, *scores.shape))
    rows = -1, scores.shape[-1]
    fill_shares(scores.reshape(rows), log_shares.reshape(rows), shares.reshape(rows))
    return log_shares, shares


@dataclass(kw_only=True)
class TableExpectations(Expectations):
    """With those of tables.

    log_table (K, T), log_topic (M,) : E ln tau, E ln epsilon
    log_table_topic, table_topic (K, T, M) : ln mu_ktm and mu_ktm
    """

    log_table: np.ndarray
    log_topic: np.ndarray
    log_table_topic: np.ndarray
    table_topic: np.ndarray


# -- words under tables --------------------------------------------------------------------------------------------
@kernel(error_model="numpy")
def find_rows(shares):
    """(rows,) int64: the one topic of a hard row of ``shares`` (rows, M); M, M + 1, ... for the soft rows in order."""
    row = np.empty(shares.shape[0], np.int64)
    n_soft = 0
    for i in range(shares.shape[0]):
        n_known = 0
        for m in range(shares.shape[1]):
            if shares[i, m] > MIN_SHARE:
                n_known += 1
                row[i] = m
        if n_known > 1:
            row[i] = shares.shape[1] + n_soft
            n_soft += 1
    return row


class TableRows(NamedTuple):
    """The distinct rows mu_kt. of q(c): row m < M is topic m alone, soft tables have further rows.

    row : (K, T) int64
    soft : (rows - M, M) float64
    """

    row: np.ndarray
    soft: np.ndarray

    @classmethod
    def of(cls, table_topic: np.ndarray) -> TableRows:
        """The rows of (K, T, M) mu."""
        n_topics = table_topic.shape[-1]
        row = find_rows(table_topic.reshape(-1, n_topics))
        soft = table_topic.reshape(-1, n_topics)[row >= n_topics]
        return cls(row.reshape(table_topic.shape[:-1]), np.where(soft > MIN_SHARE, soft, 0.0))


class WordTables(NamedTuple):
    """What the documents of a batch share, over its U distinct words.

    scores : (U, rows) float64, sum_m mu_m E ln psi_mw of every row of ``rows``: the first M columns are E ln psi
    weights : (U, rows) float64, exp(scores - the word's highest score)
    sums : (U, K) float64, sum_t exp(E ln tau_kt) weights[row[k, t]]; may vanish
    log_likelihood : (U, K) float64, lse_k(w)
    rows : TableRows
    log_table : (K, T) float64, E ln tau
    """

    scores: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray
    rows: TableRows
    log_table: np.ndarray


def word_tables(
    state: TableGlobals, expected: TableExpectations, words: np.ndarray, pool: Executor | None
) -> WordTables:
    """E ln psi and lse of the given words under the current globals."""
    rows = TableRows.of(expected.table_topic)
    n_clusters, _, n_topics = expected.table_topic.shape
    n_rows = n_topics + len(rows.soft)
    weight = np.zeros((n_rows, n_clusters))
    np.add.at(weight, (rows.row, np.arange(n_clusters)[:, None]), np.exp(expected.log_table))
    soft = np.ascontiguousarray(rows.soft.T)  # the layout that BLAS is fastest with
    scores, weights = np.empty((2, len(words), n_rows))
    sums, log_likelihood = np.empty((2, len(words), n_clusters))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        total = expected.log_topic_total
        fill_log_psi(state.topic_words, state.shrink, words, state.topic_word_prior, total, first, last, scores)
        np.matmul(scores[first:last, :n_topics], soft, out=scores[first:last, n_topics:])
        row_maxima(scores, first, last, top)
        exponentiate(scores, top, first, last, weights)
        np.matmul(weights[first:last], weight, out=sums[first:last])
        take_logs(sums, top, scores, rows.row, expected.log_table, first, last, log_likelihood)

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return WordTables(scores, weights, sums, log_likelihood, rows, expected.log_table)


# -- statistics of a mini-batch ------------------------------------------------------------------------------------
class TableMass(NamedTuple):
    """N_kt(w) = exp(E ln tau_kt) ratio_k(w) weights[row[k, t]], and where it is not zero.

    ratio : (U, K), R_k(w) / sums; 0 where the sum vanished (*lost* pairs)
    start : (blocks + 1, K) int64, pairs of cluster k in word block b are start[b, k]:start[b + 1, k]
    word : (pairs,) int32, numbers in the batch of the words with R_k(w) > 0, by cluster
    word_mass : (U, K), R_k(w)
    lost : (2, some) int64, word and cluster of pairs whose mass is R_k(w) exp(score + E ln tau - lse) instead
    """

    ratio: np.ndarray
    start: np.ndarray
    word: np.ndarray
    word_mass: np.ndarray
    lost: np.ndarray


@kernel(error_model="numpy")
def fill_ratio(word_mass, sums, first, last, ratio, n_pairs):
    """``ratio`` of words first..last-1 and n_pairs[k], how many of them have R_k(u) > 0; returns how many are lost."""
    n_lost = 0
    for k in range(n_pairs.size):
        n_pairs[k] = 0
    for u in range(first, last):
        for k in range(n_pairs.size):
            is_there = word_mass[u, k] > 0.0
            is_lost = is_there and sums[u, k] < MIN_SUM
            ratio[u, k] = word_mass[u, k] / sums[u, k] if is_there and not is_lost else 0.0
            n_pairs[k] += is_there
            n_lost += is_lost
    return n_lost


@kernel(error_model="numpy")
def fill_pairs(word_mass, first, last, place, word):
    """Write the words of the pairs of words first..last-1 from ``place`` (K,) on; ``place`` moves."""
    for u in range(first, last):
        for k in range(place.size):
            if word_mass[u, k] > 0.0:
                word[place[k]] = u
                place[k] += 1


def table_mass(tables: WordTables, word_mass: np.ndarray, pool: Executor | None) -> TableMass:
    """N_kt(w) = R_k(w) r_kt(w) given R (U, K)."""
    n_words, n_clusters = word_mass.shape
    n_pairs = np.zeros((max(1, -(-n_words // WORD_BLOCK)), n_clusters), np.int64)
    ratio = np.empty_like(word_mass)

    def divide(first: int, last: int) -> int:
        return fill_ratio(word_mass, tables.sums, first, last, ratio, n_pairs[first // WORD_BLOCK])

    n_lost = sum(in_blocks(pool, divide, n_words, WORD_BLOCK))
    ends = np.cumsum(n_pairs.T.ravel()).reshape(n_clusters, -1).T
    start = np.vstack([(ends - n_pairs)[:1], ends])
    word = np.empty(int(n_pairs.sum()), np.int32)

    def fill(first: int, last: int) -> None:
        fill_pairs(word_mass, first, last, start[first // WORD_BLOCK].copy(), word)

    in_blocks(pool, fill, n_words, WORD_BLOCK)
    lost = np.array(np.nonzero((word_mass > 0) & (tables.sums < MIN_SUM))) if n_lost else np.zeros((2, 0), np.int64)
    return TableMass(ratio, start, word, word_mass, lost)


@kernel(error_model="numpy")
def sum_pairs(word, start, first_cluster, ratio, weights, row, table, scores, n_kt, log_likelihood):
    """n_kt[k] = sum_w N_kt(w), log_likelihood[k] = sum_w N_kt(w) E ln psi_mw for clusters k of one share.

    The share is first_cluster, first_cluster + _SHARES, ... Its clusters take turns at each block of words, whose rows
    of ``weights`` and ``scores`` then come from the cache.
    """
    n_clusters, n_tables, n_topics = log_likelihood.shape
    mass, log_psi = np.empty((WORD_BLOCK, n_tables)), np.empty((WORD_BLOCK, n_topics))
    product = np.empty((n_tables, n_topics))
    for block in range(start.shape[0] - 1):
        for k in range(first_cluster, n_clusters, _SHARES):
            first, last = start[block, k], start[block + 1, k]
            if first == last:
                continue
            for p in range(first, last):
                u = word[p]
                weight, score, r = weights[u], scores[u], ratio[u, k]
                for t in range(n_tables):
                    mass[p - first, t] = r * table[k, t] * weight[row[k, t]]
                for m in range(n_topics):
                    log_psi[p - first, m] = score[m]
            np.dot(mass[: last - first].T, log_psi[: last - first], product)
            for p in range(last - first):
                for t in range(n_tables):
                    n_kt[k, t] += mass[p, t]
            for t in range(n_tables):
                for m in range(n_topics):
                    log_likelihood[k, t, m] += product[t, m]


@kernel(error_model="numpy")
def sum_tables(ratio, weights, was, table, now, soft, first, last, topic_words):
    """topic_words[u] = sum_kt mu_kt N_kt(u) for words u in first..last-1; rows of tables: ``was`` then, ``now`` now."""
    n_topics = topic_words.shape[1]
    mass = np.empty(n_topics + soft.shape[0])
    for u in range(first, last):
        for d in range(mass.size):
            mass[d] = 0.0
        weight, out = weights[u], topic_words[u]
        for k in range(now.shape[0]):
            r = ratio[u, k]
            if r > 0.0:
                for t in range(now.shape[1]):
                    mass[now[k, t]] += r * table[k, t] * weight[was[k, t]]
        for m in range(n_topics):
            out[m] = mass[m]
        for d in range(soft.shape[0]):
            n = mass[n_topics + d]
            if n > 0.0:
                for m in range(n_topics):
                    out[m] += n * soft[d, m]


def lost_mass(tables: WordTables, mass: TableMass) -> np.ndarray:
    """(T, lost): N_kt of the lost pairs."""
    word, cluster = mass.lost
    log_share = tables.scores[word, tables.rows.row[cluster].T] + tables.log_table[cluster].T
    return mass.word_mass[word, cluster] * np.exp(log_share - tables.log_likelihood[word, cluster])


def table_statistics(tables: WordTables, mass: TableMass, pool: Executor | None) -> tuple[np.ndarray, np.ndarray]:
    """(K, T) float64 n_kt = sum_w N_kt(w), and (K, T, M) float64 sum_w N_kt(w) E ln psi_mw."""
    n_clusters, n_tables = tables.log_table.shape
    n_topics = tables.rows.soft.shape[1]
    n_kt = np.zeros((n_clusters, n_tables))
    log_likelihood = np.zeros((n_clusters, n_tables, n_topics))
    table = np.exp(tables.log_table)

    def work(share: int, _: int) -> None:
        known = mass.ratio, tables.weights, tables.rows.row, table, tables.scores
        sum_pairs(mass.word, mass.start, share, *known, n_kt, log_likelihood)

    in_blocks(pool, work, min(_SHARES, n_clusters), 1)
    for n, word, k in zip(lost_mass(tables, mass).T, *mass.lost, strict=True):
        n_kt[k] += n
        log_likelihood[k] += n[:, None] * tables.scores[word, :n_topics]
    return n_kt, log_likelihood


def topic_statistics(tables: WordTables, mass: TableMass, table_topic: np.ndarray, pool: Executor | None) -> np.ndarray:
    """(U, M) float64: sum_kt mu_ktm N_kt(w) given (K, T, M) mu, which may have moved since ``tables``."""
    now, table = TableRows.of(table_topic), np.exp(tables.log_table)
    topic_words = np.empty((len(mass.ratio), table_topic.shape[2]))

    def work(first: int, last: int) -> None:
        known = mass.ratio, tables.weights, tables.rows.row, table, now.row, now.soft
        sum_tables(*known, first, last, topic_words)

    in_blocks(pool, work, len(topic_words), WORD_BLOCK)
    for n, word, k in zip(lost_mass(tables, mass).T, *mass.lost, strict=True):
        topic_words[word] += n @ table_topic[k]
    return topic_words


# -- global step ---------------------------------------------------------------------------------------------------
def step_tables(
    state: TableGlobals,
    expected: TableExpectations,
    concentrations: Concentrations,
    statistics: DocumentStatistics,
    columns: np.ndarray,
    n_kt: np.ndarray,
    table_log_likelihood: np.ndarray,
    scale: float,
    rate: float,
) -> None:
    """Natural-gradient step for q(beta), q(tau_k), q(c_kt), q(phi_k), in place (UAI16, eq. 2-5).

    ``columns`` are those of the statistics of contexts, ``n_kt`` (K, T) and ``table_log_likelihood`` (K, T, M) those
    of :func:`table_statistics`; ``scale`` = J / B. The target of q(c_kt) is UAI16's a_ktm (eq. 5): E ln
    eps_m + sum_w N_kt(w) E ln psi_mw.
    """
    blend(state.group_weights, sticks.stick_posterior(scale * statistics.n_k, concentrations.mean[GROUP]), rate)
    blend(state.table_sticks, sticks.stick_posterior(scale * n_kt, concentrations.mean[TABLE]), rate)
    blend(state.table_topic, expected.log_topic + scale * table_log_likelihood, rate)
    state.blend_contexts(columns, statistics.contexts, scale, rate)


def step_topics(
    state: TableGlobals,
    table_topic: np.ndarray,
    concentrations: Concentrations,
    words: np.ndarray,
    counts: np.ndarray,
    scale: float,
    rate: float,
    pool: Executor | None = None,
) -> None:
    """Natural-gradient step for q(psi_m) and q(epsilon), in place, given (K, T, M) mu.

    ``counts`` (U, M) are those of :func:`topic_statistics` at ``words`` (U,). The tables' topics are
    globals themselves, so q(epsilon) is not scaled by J / B: UAI16's eq. 4 prints the sum without the 1/J that would
    undo the scale. Finite differences settle it (tests/mc2core/inference/svi/test_engine.py).
    """
    state.blend_topic_words(words, counts, scale, rate, pool)
    target = sticks.stick_posterior(table_topic.sum(axis=(0, 1)), concentrations.mean[TOPIC])
    blend(state.topic_sticks, target, rate)


# -- the state -----------------------------------------------------------------------------------------------------
@dataclass(kw_only=True)
class TableGlobals(Globals):
    """q(tau_k) over tables, q(c_kt), q(epsilon) by sticks.

    The global step has two halves. Sticks, tables and contexts come first and then, given the tables' new topics, the
    topics. q(c_kt) and q(psi_m) enter each other's targets, so moving both at once, as a joint step does, could lower
    the ELBO even with the whole corpus and rate 1.

    Attributes
    ----------
    group_weights (2, K - 1), topic_sticks (2, M - 1), table_sticks (2, K, T - 1) : float64
        q(beta), q(epsilon), q(tau_k): see :mod:`mc2core.inference.svi.sticks`.
    table_topic : (K, T, M) float64
        Natural parameters of q(c_kt), up to a constant in each row.
    """

    described: ClassVar[dict[str, Stored]] = {
        "group_weights": Stored("f", "2 K-1"),
        "topic_sticks": Stored("f", "2 M-1"),
        "table_sticks": Stored("f", "2 K T-1"),
        "table_topic": Stored("f", "K T M"),
        "concentration_rates": Stored("f", "3"),
        **Globals.described,
    }

    topic_sticks: np.ndarray
    table_sticks: np.ndarray
    table_topic: np.ndarray

    @classmethod
    def truncations(cls, corpus: Corpus, n_clusters: int | None, n_topics: int | None) -> tuple[int, int]:
        return n_clusters or _CLUSTERS, n_topics or _TOPICS

    @classmethod
    def n_numbers(cls, settings: RunSettings, corpus: Corpus) -> int:
        return settings.n_clusters * (settings.n_tables or 0) * settings.n_topics

    @classmethod
    def begin(cls, model: MC2, settings: RunSettings, start: Start, corpus: Corpus, contexts: StackedContexts) -> Self:
        """Tables and topics are put in order of size, as sticks prefer them."""
        assignments = start.assignments
        n_topics = assignments.topic_words.shape[1]
        tables = np.argsort(-assignments.n_kt[start.order], axis=1, kind="stable")
        n_kt = np.take_along_axis(assignments.n_kt[start.order], tables, axis=1)
        topics = np.argsort(-assignments.topic_words.sum(axis=0), kind="stable")
        table_topic = np.argsort(topics)[np.take_along_axis(assignments.table_topic[start.order], tables, axis=1)]
        topic_sticks = sticks.stick_posterior(
            np.bincount(table_topic.ravel(), minlength=n_topics), model.topic_concentration
        )
        scores = np.tile(sticks.expected_log_weights(topic_sticks), (*table_topic.shape, 1))
        np.put_along_axis(scores, table_topic[:, :, None], _TABLE_CONTRAST, axis=2)
        group_weights = sticks.stick_posterior(start.n_k, model.group_concentration)
        table_sticks = sticks.stick_posterior(start.scale * n_kt, model.table_concentration)
        topic_words = np.ascontiguousarray(start.scale * assignments.topic_words[:, topics])
        return cls(
            model=model,
            settings=settings,
            group_weights=group_weights,
            topic_sticks=topic_sticks,
            table_sticks=table_sticks,
            table_topic=scores,
            topic_words=topic_words,
            context_counts=start.contexts,
            context_totals=contexts.sums_by_context(start.contexts),
            concentration_rates=starting_rates(model, (group_weights, table_sticks, topic_sticks)),
            cluster=start.cluster,
            topic_word_prior=model.topic_word_prior,
            contexts=contexts,
            n_m=topic_words.sum(axis=0),
        )

    @classmethod
    def sizes(cls, model: MC2, settings: RunSettings, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        return {"K": settings.n_clusters, "T": settings.n_tables or 0, "M": settings.n_topics}

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        return self.group_weights, self.table_sticks, self.topic_sticks

    def weigh(self, factor: float) -> None:
        """Tables are not documents: their topics' sticks stay, and E ln epsilon counts once in each q(c_kt)."""
        super().weigh(factor)
        alpha, v, _ = self.concentrations().mean
        self.group_weights = sticks.weighed(self.group_weights, alpha, factor)
        self.table_sticks = sticks.weighed(self.table_sticks, v, factor)
        log_topic = sticks.expected_log_weights(self.topic_sticks)
        self.table_topic = log_topic + factor * (self.table_topic - log_topic)

    def expectations(self, columns: np.ndarray | None = None) -> TableExpectations:
        log_table_topic, table_topic = topic_shares(self.table_topic)
        return TableExpectations(
            log_group=sticks.expected_log_weights(self.group_weights),
            log_table=sticks.expected_log_weights(self.table_sticks),
            log_topic=sticks.expected_log_weights(self.topic_sticks),
            log_table_topic=log_table_topic,
            table_topic=table_topic,
            **self.shared_expectations(columns),
        )

    def step(
        self,
        batch: Batch,
        scale: float,
        rate: float,
        pool: Executor | None,
        assign: Assign = assign_documents,
        since: Mapping[str, Any] | None = None,
    ) -> BatchStep:
        before, known = self.expectations(batch.columns), self.concentrations()
        words = word_tables(self, before, batch.words, pool)
        shares, documents = assign(batch, words.log_likelihood, before, pool)
        if since is not None:
            self.go_back(batch, since)
        self.seat(batch, shares)
        mass = table_mass(words, documents.word_mass, pool)
        n_kt, log_likelihood = table_statistics(words, mass, pool)
        step_tables(self, before, known, documents, batch.columns, n_kt, log_likelihood, scale, rate)
        table_topic = before.table_topic if self.settings.is_joint else topic_shares(self.table_topic)[1]
        topic_words = topic_statistics(words, mass, table_topic, pool)
        step_topics(self, table_topic, known, batch.words, topic_words, scale, rate, pool)

        def changed() -> float:
            after = self.expectations(batch.columns)
            of_words = self.expected_topic_words(after, batch.words, topic_words, pool)
            of_words -= float(np.sum(before.table_topic * log_likelihood))
            of_tables = float(np.sum(n_kt * (after.log_table - before.log_table)))
            return change(documents, before, after, of_words, of_tables)

        return BatchStep(shares, documents, changed)

    def tidy(self, pool: Executor | None, is_full: bool) -> None:
        """Sticks and tables keep their truncations and their order."""

    def proportions(self, clusters: np.ndarray, topics: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        tables = sticks.expected_weights(self.table_sticks)[clusters]
        _, share = topic_shares(self.table_topic)
        known = np.einsum("kt,ktm->km", tables, share[clusters][:, :, topics])
        v = float(self.concentrations().mean[TABLE])
        return known, sticks.expected_weights(self.topic_sticks)[topics], v

    def proportions_divergence(self) -> float:
        log_share, share = topic_shares(self.table_topic)
        log_topic = sticks.expected_log_weights(self.topic_sticks)
        return float(np.sum(share * (log_share - log_topic)))
