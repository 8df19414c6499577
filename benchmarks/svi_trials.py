"""Held-out perplexity of SVI variants on real NIPS, as rows of benchmarks/svi_trials.md.

    python benchmarks/svi_trials.py nips-corpus-20111211.zip [--epochs 3] [--seeds 2] [--only WORD]

90 / 10 split of seed 0, K 40, T 20, M 120, words only, ``marginal`` estimator with posterior means, one thread. The
first rows are settings of the engine; the others are moves that the engine does not have, kept here.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mc2core.corpus import Corpus
from mc2core.engines import seeding
from mc2core.engines.svi import local, sticks
from mc2core.engines.svi.engine import SVI
from mc2core.engines.svi.state import GROUP, TABLE, TOPIC, divergence, step_concentrations
from mc2core.engines.svi.tables import statistics
from mc2core.engines.svi.tables.state import TableGlobals as Globals
from mc2core.engines.svi.tables.state import topic_shares
from mc2core.engines.svi.tables.step import step_tables, step_topics
from mc2core.engines.svi.tables.words import word_tables
from mc2core.sources.collections import nips

_CANDIDATES = 6
# a topic is split off where its cluster has at most this share of its tokens
_NEARLY_ALL = 0.9
# tokens of a topic whose place a new one may take
_UNUSED = 0.5


class Growing(SVI):
    """Mini-batches of ``sizes`` in turn, the last one for every later epoch; None is one step on the whole corpus."""

    sizes: tuple[int | None, ...] = (50,)

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        self.batch_size = self.sizes[min(iteration, len(self.sizes)) - 1]
        return super().step(corpus, state, seed, iteration)


class FullFirst(SVI):
    """One step at rate 1 on the whole corpus before the first mini-batch."""

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        if iteration == 1:
            self.full_step(corpus, state, None)
        return super().step(corpus, state, seed, iteration)


def group_counts(one: np.ndarray, concentration: float) -> np.ndarray:
    """(..., n) counts whose :func:`sticks.stick_posterior` is ``one``: its inverse."""
    return np.concatenate([one[0] - 1.0, one[1][..., -1:] - concentration], axis=-1)


class Memoised(SVI):
    """Incremental statistics (Hughes and Sudderth 2013): fixed mini-batches, each replacing what it said before.

    Before its first visit a mini-batch speaks with its share of the start. What tables think of topics stays as it was
    computed at the last visit. Every step has rate 1.
    """

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        if iteration == 1:
            concentrations, expected = self.concentrations(state).mean, state.expectations()
            self.total = {
                "n_k": group_counts(state.group_sticks, concentrations[GROUP]),
                "n_kt": group_counts(state.table_sticks, concentrations[TABLE]),
                "tables": state.table_topic - expected.log_topic,
                "contexts": state.natural - state.contexts.prior,
            }
            self.start = {name: value.copy() for name, value in self.total.items()}
            self.start_words = state.topic_words.copy()
            self.known: dict[int, Any] = {}
        evidence = 0.0
        for number, rows in enumerate(corpus.batches(self.batch_size, seed, 1)):
            evidence += self.visit(corpus, state, number, rows)
        state.n_m = state.topic_words.sum(axis=0)
        state.elbo = evidence - divergence(state, self.concentrations(state))
        in_use = svi_summary(self, corpus, state)
        return {"clusters": in_use[0], "topics": in_use[1], "elbo": state.elbo}

    def visit(self, corpus: Corpus, state: Globals, number: int, rows: np.ndarray) -> float:
        concentrations, expected = self.concentrations(state), state.expectations()
        batch = local.take_batch(corpus, state.contexts, rows)
        tables = word_tables(state, expected, batch.words, None)
        shares, documents = local.assign_documents(batch, tables.log_likelihood, expected, None)
        state.cluster[rows] = shares.argmax(axis=1)
        mass = statistics.table_mass(tables, documents.word_mass, None)
        n_kt, log_likelihood = statistics.table_statistics(tables, mass, None)
        new = {"n_k": documents.n_k, "n_kt": n_kt, "tables": log_likelihood, "contexts": documents.contexts}
        share = len(rows) / corpus.n_documents
        old, old_words = self.known.get(number, ({name: share * one for name, one in self.start.items()}, None))
        for name, value in new.items():
            self.total[name] += value - old[name]
        total = dataclasses.replace(documents, n_k=np.maximum(self.total["n_k"], 0.0), contexts=self.total["contexts"])
        n_kt_total = np.maximum(self.total["n_kt"], 0.0)
        step_tables(state, expected, concentrations, total, n_kt_total, self.total["tables"], 1.0, 1.0)
        _, table_topic = topic_shares(state.table_topic)
        words = statistics.topic_statistics(tables, mass, table_topic, None)
        if old_words is None:
            state.topic_words -= share * self.start_words
            state.topic_words[batch.words] += words
        else:
            state.topic_words[batch.words] += words - old_words
        np.maximum(state.topic_words, 0.0, out=state.topic_words)
        nothing = np.zeros((0, self.n_topics))
        state.n_m = state.topic_words.sum(axis=0)
        topics = dataclasses.replace(state, topic_words=np.zeros_like(nothing), n_m=state.n_m)
        step_topics(topics, table_topic, concentrations, np.zeros(0, int), nothing, 1.0, 1.0)
        state.topic_sticks = topics.topic_sticks
        step_concentrations(state, self.concentration_settings)
        self.known[number] = new, words
        return documents.log_evidence


class Reordering(SVI):
    """Clusters, their tables and topics in order of size after every epoch, as sticks prefer them."""

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        super().step(corpus, state, seed, iteration)
        reorder(self, state)
        in_use = svi_summary(self, corpus, state)
        return {"clusters": in_use[0], "topics": in_use[1], "elbo": state.elbo}


def reorder(engine: SVI, state: Globals) -> None:
    """Put ``state`` in order of size, in place."""
    concentrations = engine.concentrations(state).mean
    n_k = group_counts(state.group_sticks, concentrations[GROUP])
    n_kt = group_counts(state.table_sticks, concentrations[TABLE])
    _, shares = topic_shares(state.table_topic)
    n_served = shares.sum(axis=(0, 1))
    clusters = np.argsort(-n_k, kind="stable")
    tables = np.argsort(-n_kt[clusters], axis=1, kind="stable")
    topics = np.argsort(-n_served, kind="stable")
    # natural parameters hold E ln eps, which moves with the order
    before = sticks.expected_log_weights(state.topic_sticks)[topics]
    state.topic_sticks = sticks.stick_posterior(n_served[topics], concentrations[TOPIC])
    table_topic = np.take_along_axis(state.table_topic[clusters], tables[:, :, None], axis=1)[:, :, topics]
    state.table_topic = table_topic - before + sticks.expected_log_weights(state.topic_sticks)
    state.group_sticks = sticks.stick_posterior(n_k[clusters], concentrations[GROUP])
    n_kt = np.take_along_axis(n_kt[clusters], tables, axis=1)
    state.table_sticks = sticks.stick_posterior(n_kt, concentrations[TABLE])
    state.natural = state.natural[clusters]
    state.topic_words = np.ascontiguousarray(state.topic_words[:, topics])
    state.n_m = state.n_m[topics]
    state.cluster = np.argsort(clusters).astype(np.int32)[state.cluster]


def bound(engine: SVI, corpus: Corpus, state: Globals) -> float:
    """Exact ELBO of ``state`` with the best local posteriors, in nats."""
    batch = local.take_batch(corpus, state.contexts, np.arange(corpus.n_documents))
    expected = state.expectations()
    tables = word_tables(state, expected, batch.words, None)
    _, documents = local.assign_documents(batch, tables.log_likelihood, expected, None)
    return documents.log_evidence - divergence(state, engine.concentrations(state))


def likest(rows: np.ndarray, is_used: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pairs of used rows (n, V) of counts by how alike their frequencies are (Hellinger), a few; the larger first."""
    size = rows.sum(axis=1)
    roots = np.sqrt(rows / np.maximum(size, 1e-300)[:, None]) * is_used[:, None]
    alike = np.triu(roots @ roots.T, 1)
    for flat in np.argsort(-alike, axis=None)[:_CANDIDATES]:
        a, b = np.unravel_index(flat, alike.shape)
        if is_used[a] and is_used[b]:
            yield (int(a), int(b)) if size[a] >= size[b] else (int(b), int(a))


def merge_topics(engine: SVI, state: Globals, keep: int, drop: int) -> Globals:
    """A copy in which topic ``drop`` is part of ``keep``."""
    new = copy.copy(state)
    new.topic_words = state.topic_words.copy()
    new.topic_words[:, keep] += new.topic_words[:, drop]
    new.topic_words[:, drop] = 0.0
    new.n_m = new.topic_words.sum(axis=0)
    new.table_topic = state.table_topic.copy()
    new.table_topic[:, :, keep] = np.logaddexp(new.table_topic[:, :, keep], new.table_topic[:, :, drop])
    new.table_topic[:, :, drop] = new.table_topic.max(axis=2) - 50.0
    served = topic_shares(new.table_topic)[1].sum(axis=(0, 1))
    new.topic_sticks = sticks.stick_posterior(served, engine.concentrations(state).mean[TOPIC])
    new.concentration_rates = state.concentration_rates.copy()
    step_concentrations(new, engine.concentration_settings)
    return new


def merge_clusters(engine: SVI, state: Globals, keep: int, drop: int) -> Globals:
    """A copy in which cluster ``drop`` is part of ``keep``, at the largest tables of both."""
    concentrations = engine.concentrations(state).mean
    new = copy.copy(state)
    n_k = group_counts(state.group_sticks, concentrations[GROUP])
    n_kt = group_counts(state.table_sticks, concentrations[TABLE])
    both = np.concatenate([n_kt[keep], n_kt[drop]])
    largest = np.argsort(-both, kind="stable")[: engine.n_tables]
    new.table_topic, new.natural = state.table_topic.copy(), state.natural.copy()
    new.table_topic[keep] = np.concatenate([state.table_topic[keep], state.table_topic[drop]])[largest]
    new.table_topic[drop] = sticks.expected_log_weights(state.topic_sticks)
    new.natural[keep] += new.natural[drop] - state.contexts.prior
    new.natural[drop] = state.contexts.prior
    n_kt[keep], n_kt[drop] = both[largest], 0.0
    n_k[keep], n_k[drop] = n_k[keep] + n_k[drop], 0.0
    new.group_sticks = sticks.stick_posterior(n_k, concentrations[GROUP])
    new.table_sticks = sticks.stick_posterior(n_kt, concentrations[TABLE])
    new.cluster = np.where(state.cluster == drop, np.int32(keep), state.cluster)
    new.concentration_rates = state.concentration_rates.copy()
    step_concentrations(new, engine.concentration_settings)
    return new


def topics_of_clusters(state: Globals, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """(K, M) expected tokens of every cluster's topics, and (K, M, V) by word, each table under its likeliest topic."""
    batch = local.take_batch(corpus, state.contexts, np.arange(corpus.n_documents))
    expected = state.expectations()
    tables = word_tables(state, expected, batch.words, None)
    _, documents = local.assign_documents(batch, tables.log_likelihood, expected, None)
    mass = statistics.table_mass(tables, documents.word_mass, None)
    by_topic = np.zeros((*state.table_topic.shape[::2], corpus.n_words), np.float32)
    for k, rows in enumerate(tables.rows.row):
        n_wt = mass.ratio[:, [k]] * np.exp(tables.log_table[k]) * tables.weights[:, rows]
        for t, m in enumerate(state.table_topic[k].argmax(axis=1)):
            by_topic[k, m, batch.words] += n_wt[:, t]
    return by_topic.sum(axis=2, dtype=np.float64), by_topic


def bear_topic(engine: SVI, state: Globals, cluster: int, topic: int, words: np.ndarray) -> Globals:
    """A copy in which the smallest topic takes the place of ``topic`` in ``cluster``, with its ``words`` (V,) there."""
    new = copy.copy(state)
    free = int(np.argmin(state.n_m))
    new.topic_words = state.topic_words.copy()
    new.topic_words[:, free] += words
    new.topic_words[:, topic] = np.maximum(new.topic_words[:, topic] - words, 0.0)
    new.n_m = new.topic_words.sum(axis=0)
    new.table_topic = state.table_topic.copy()
    moved = np.flatnonzero(state.table_topic[cluster].argmax(axis=1) == topic)
    new.table_topic[cluster, moved, free] = state.table_topic[cluster, moved, topic]
    new.table_topic[cluster, moved, topic] = state.table_topic[cluster, moved, free]
    served = topic_shares(new.table_topic)[1].sum(axis=(0, 1))
    new.topic_sticks = sticks.stick_posterior(served, engine.concentrations(state).mean[TOPIC])
    new.concentration_rates = state.concentration_rates.copy()
    step_concentrations(new, engine.concentration_settings)
    return new


class Moving(SVI):
    """Moves after every epoch, each taken where the exact ELBO over the whole corpus rises by it."""

    moves: tuple[str, ...] = ("topics", "clusters")

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        super().step(corpus, state, seed, iteration)
        tried, taken = 0, 0
        for move in self.moves:
            now = bound(self, corpus, state)
            for new in getattr(self, f"_{move}")(corpus, state, seed, iteration):
                tried += 1
                known = bound(self, corpus, new)
                if known > now:
                    now, taken = known, taken + 1
                    state.__dict__.update(new.__dict__)
        print(f"<!-- epoch {iteration}: {taken} of {tried} moves taken -->")
        in_use = svi_summary(self, corpus, state)
        return {"clusters": in_use[0], "topics": in_use[1], "elbo": state.elbo}

    def _topics(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> Iterator[Globals]:
        dropped: set[int] = set()
        for keep, drop in list(likest(state.topic_words.T, state.n_m > _UNUSED)):
            if keep not in dropped and drop not in dropped:
                new = merge_topics(self, state, keep, drop)
                yield new
                dropped |= {drop} if state.n_m[drop] == 0.0 else set()

    def _clusters(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> Iterator[Globals]:
        words = np.asarray((seeding.members(state.cluster, self.n_clusters) @ corpus.content).todense(), float)
        dropped: set[int] = set()
        for keep, drop in list(likest(words, words.sum(axis=1) > 0)):
            if keep not in dropped and drop not in dropped:
                yield merge_clusters(self, state, keep, drop)
                dropped |= set() if (state.cluster == drop).any() else {drop}

    def _births(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> Iterator[Globals]:
        """Shared topics, each split off in the cluster with most of its tokens (but not nearly all): largest first."""
        n_km, words = topics_of_clusters(state, corpus)
        share = n_km / np.maximum(n_km.sum(axis=0), 1e-300)
        cluster = np.where(share < _NEARLY_ALL, n_km, 0.0).argmax(axis=0)
        size = np.take_along_axis(np.where(share < _NEARLY_ALL, n_km, 0.0), cluster[None], axis=0)[0]
        for m in np.argsort(-size, kind="stable")[:_CANDIDATES]:
            if size[m] > 0 and state.n_m.min() < _UNUSED:
                yield bear_topic(self, state, int(cluster[m]), int(m), words[cluster[m], m])


class MergingTopics(Moving):
    moves = ("topics",)


class BearingTopics(Moving):
    moves = ("births",)


class MergingClusters(Moving):
    moves = ("clusters",)


class Shrinking(Growing):
    sizes = (400, 100, 50)


class FullThenSmall(Growing):
    sizes = (None, 50)


def svi_summary(engine: SVI, corpus: Corpus, state: Globals) -> tuple[int, int]:
    """Clusters and topics in use."""
    sample = engine.sample(corpus, state)
    return sample.n_clusters, sample.n_topics


TRIALS: dict[str, tuple[type[SVI], dict[str, Any]]] = {
    "default: batch 50, delay 64, forgetting 0.7": (SVI, {}),
    "delay 16": (SVI, {"delay": 16.0}),
    "batch 200, delay 16": (SVI, {"batch_size": 200, "delay": 16.0}),
    "schedule paper (delay 1, forgetting 0.8)": (SVI, {"schedule": "paper"}),
    "full batch": (SVI, {"batch_size": None}),
    "start from 20 Gibbs sweeps": (SVI, {"initialisation": "gibbs"}),
    "random start, delay 16": (SVI, {"initialisation": "random", "delay": 16.0}),
    "batch 200": (SVI, {"batch_size": 200}),
    "batch 400": (SVI, {"batch_size": 400}),
    "one full step, then batches of 50": (FullFirst, {}),
    "first epoch one full step, then batches of 50": (FullThenSmall, {}),
    "batches of 400, 100, 50 by epoch": (Shrinking, {}),
    "memoised statistics, batch 50": (Memoised, {}),
    "reordering after each epoch": (Reordering, {}),
    "merges of topics": (MergingTopics, {}),
    "merges of clusters": (MergingClusters, {}),
    "births of topics": (BearingTopics, {}),
}


def run(train: Corpus, test: Corpus, variant: type[SVI], settings: dict[str, Any], seed: int, epochs: int) -> list:
    """Perplexity after each epoch, then clusters, topics and CPU seconds of all epochs."""
    engine = variant(n_clusters=40, n_tables=20, n_topics=120, **settings)
    state = engine.init(train, seed=seed)
    perplexities, seconds, row = [], 0.0, {}
    for epoch in range(1, epochs + 1):
        started = time.process_time()
        row = engine.step(train, state, seed, epoch)
        seconds += time.process_time() - started
        perplexities.append(engine.model(train, [engine.sample(train, state)], {}).perplexity(test))
    return [*perplexities, row["clusters"], row["topics"], seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    arguments = parser.parse_args()
    train, test = nips.read(arguments.path).split(0.1, seed=0)
    run(train, test, SVI, {}, 0, 1)  # compiles
    print("| variant | perplexity after each epoch, mean (half range) | clusters, topics | CPU seconds |")
    print("|---|---|---|---|")
    for name, (variant, settings) in TRIALS.items():
        if arguments.only in name:
            every = [run(train, test, variant, settings, seed, arguments.epochs) for seed in range(arguments.seeds)]
            mean, half = np.mean(every, axis=0), np.ptp(every, axis=0) / 2
            shown = ", ".join(f"{m:.0f} ({h:.0f})" for m, h in zip(mean[:-3], half[:-3], strict=True))
            clusters, topics, seconds = mean[-3:]
            print(f"| {name} | {shown} | {clusters:.0f}, {topics:.0f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
