"""SVI-MC2: stochastic variational inference for MC2 (UAI16), with exact tree inference in the local step.

One mini-batch is a local step, its statistics and a global step. Batches, local step, contexts, sticks of clusters,
start and loop are shared; what a cluster knows of topics is the global part's (:mod:`mc2core.inference.svi.part`).
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, ClassVar

import numpy as np

from mc2core.base import memory
from mc2core.base.checks import MOST_LABELS, choice, finite, whole
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import Engine
from mc2core.inference.svi import local, start, sticks
from mc2core.inference.svi.direct import DirectPart
from mc2core.inference.svi.document_level import OwnPart
from mc2core.inference.svi.part import BatchSums, GlobalPart
from mc2core.inference.svi.state import (
    Concentrations,
    ConcentrationSettings,
    Expectations,
    Globals,
    clusters_in_use,
    divergence,
    step_concentrations,
    topics_in_use,
)
from mc2core.inference.svi.tables import TablePart
from mc2core.models import MC2, Model
from mc2core.models.base import ROLES, WORDS
from mc2core.posterior import Sample, SparseRows

#: (delay rho, forgetting iota) of the named schedules: rate = (t + rho)**-iota at mini-batch t = 1, 2, ...
SCHEDULES = {"default": (64.0, 0.7), "paper": (1.0, 0.8)}
#: delay of the default schedule with a document level: more of the start is to be learnt anew
DOCUMENT_LEVEL_DELAY = 8.0
INITIALISATIONS = ("seeded", "gibbs", "random")
GLOBAL_STEPS = ("sequential", "joint")
# parts of an epoch, at most
_PARTS = 32
# a batch of fewer numbers, distinct words by topics and clusters, is done before its blocks have gone to other threads
_LEAST_FOR_THREADS = 200_000


class SVI(Engine):
    """Stochastic variational inference of MC2 (UAI16); iterations are epochs.

    With a document level, documents stay in the clusters where they start until the first epoch is over. What is learnt of
    omega is no estimate so far: it stays near 10, and the clusters and topics in use follow n_clusters and n_topics
    (docs/questions.md). Ask Gibbs for omega and K. Without tables the group concentration has a Gamma posterior, the
    table concentration and topic_prior have point estimates and the topic concentration stays as set: a point estimate
    of epsilon bounds it by nothing.

    Parameters
    ----------
    n_clusters : int in [1, 2147483647] or None, default None
        K, a truncation; None is a quarter of the documents, 2 to 320, and 40 with tables. Trace and model report what is
        in use. With a document level None is a cluster for every 25 documents, but a quarter of the documents
        up to 20, 2 to 100.
    n_tables : int in [1, 2147483647] or None, default None
        T, tables of each cluster, a truncation (UAI16); None is direct assignment of tokens to topics, without tables.
    n_topics : int in [1, 2147483647] or None, default None
        M, a truncation; None is 2 K, and 120 with tables. With a document level None is 8 K, but at most one for
        every 1,000 tokens or one more than clusters.
    batch_size : int in [1, inf) or "auto" or None, default "auto"
        Documents of a mini-batch; "auto" is 400, None is the whole corpus at rate 1 (coordinate ascent). With a
        document level "auto" is a 32nd of the corpus, 20 to 400: an epoch of fewer steps hardly leaves its start.
    schedule : {"default", "paper"}, default "default"
        Rates (t + delay)**-forgetting of mini-batches t = 1, 2, ...; paper is delay 1, forgetting 0.8.
    global_step : {"sequential", "joint"}, default "sequential"
        With tables: whether topics follow the tables' new topics, or all globals step at once from where they were
        (UAI16, Algorithm 1), which may lower the ELBO of a full batch. Joint needs n_tables and a batch_size.
    delay : float in [0, inf) or None, default None
        rho, in place of the schedule's. With a document level the default schedule's is 8.
    forgetting : float in (0.5, 1] or None, default None
        iota, in place of the schedule's.
    initialisation : {"seeded", "gibbs", "random"}, default "seeded"
        Where to start; seeds among the documents, a short Gibbs run, or noise (:mod:`mc2core.inference.svi.start`).
    n_shards : int in [1, inf) or None, default None
        Parts of the corpus that Spark's executors work on (docs/spark.md); None is this process alone. The result
        depends on it, but not on the executors.
    threads : int in [1, inf), default 1
        Never changes a bit of the result.

    Raises
    ------
    ValueError
        A setting outside its range.

    One step is one epoch, done in at most 32 parts. ``state.elbo`` is exact for a full batch: the ELBO of the state's
    globals with the local posteriors they were computed from. For mini-batches it is sum_j ln Z_j over the epoch's
    documents, each under the globals it was visited with, less the divergences of the globals at the end.
    """  # noqa: E501

    name = "svi"
    models = (MC2,)
    keeps_samples: ClassVar[bool] = False
    default_iterations: ClassVar[int] = 10

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        n_tables: int | None = None,
        n_topics: int | None = None,
        batch_size: int | str | None = "auto",
        schedule: str = "default",
        global_step: str = "sequential",
        delay: float | None = None,
        forgetting: float | None = None,
        initialisation: str = "seeded",
        n_shards: int | None = None,
        threads: int = 1,
    ) -> None:
        self.n_clusters = None if n_clusters is None else whole("n_clusters", n_clusters, most=MOST_LABELS)
        self.n_tables = None if n_tables is None else whole("n_tables", n_tables, most=MOST_LABELS)
        self.n_topics = None if n_topics is None else whole("n_topics", n_topics, most=MOST_LABELS)
        if isinstance(batch_size, str) and batch_size != "auto":
            raise ValueError(f"batch_size is {batch_size!r}; it must be a whole number, 'auto' or None")
        self.batch_size = batch_size if batch_size in (None, "auto") else whole("batch_size", batch_size)
        self.schedule = choice("schedule", schedule, SCHEDULES)
        self.global_step = choice("global_step", global_step, GLOBAL_STEPS)
        if self.global_step == "joint" and (self.n_tables is None or self.batch_size is None):
            raise ValueError(
                "global_step is 'joint', which needs n_tables and mini-batches; "
                f"n_tables is {n_tables}, batch_size {batch_size}"
            )
        self.delay = None if delay is None else finite("delay", delay)
        self.forgetting = None if forgetting is None else finite("forgetting", forgetting)
        if self.delay is not None and self.delay < 0:
            raise ValueError(f"delay is {delay!r}; it must be at least 0")
        if self.forgetting is not None and not 0.5 < self.forgetting <= 1:
            raise ValueError(f"forgetting is {forgetting!r}; it must lie above 0.5 and at most at 1")
        self.initialisation = choice("initialisation", initialisation, INITIALISATIONS)
        self.n_shards = None if n_shards is None else whole("n_shards", n_shards)
        self.threads = whole("threads", threads)

    # -- the contract --------------------------------------------------------------------------------------
    def supports(self, model: Model) -> None:
        super().supports(model)
        assert isinstance(model, MC2)
        if model.document_level and self.n_tables is not None:
            raise ValueError(f"n_tables is {self.n_tables}; with a document level it must be None")
        if model.document_level and self.n_shards is not None:
            raise ValueError(
                f"n_shards is {self.n_shards}; with a document level it must be None: Spark's workers know only "
                "documents that share their cluster's proportions"
            )
        if self.n_tables is not None and WORDS in model.learn_concentrations:
            raise ValueError(
                f"learn_concentrations names {WORDS!r}, which needs n_tables None; n_tables is {self.n_tables}"
            )

    def rate(self, model: MC2, n_updates: int) -> float:
        """Of the mini-batch after so many: (t + delay)**-forgetting at t = 1, 2, ..."""
        delay, forgetting = SCHEDULES[self.schedule]
        if model.document_level and self.schedule == "default":
            delay = DOCUMENT_LEVEL_DELAY
        delay = delay if self.delay is None else self.delay
        return (n_updates + 1 + delay) ** -(forgetting if self.forgetting is None else self.forgetting)

    def init(self, model: MC2, corpus: Corpus, seed: int) -> Globals:
        contexts, part = StackedContexts(corpus, model.contexts), self.part(model)
        n_clusters, n_topics = part.truncations(corpus)
        own, clusters = part.n_numbers(corpus, n_clusters, n_topics)
        # at least three copies of each: parameters, and what a step makes of them
        n_numbers = own + n_clusters * contexts.dimension + corpus.n_words * n_topics
        what = f"an SVI run of {clusters}, {n_topics} topics and {corpus.n_words} words"
        memory.need(24 * n_numbers, what, "n_clusters, n_tables and n_topics may be lower")
        known = copy.copy(self)
        known.n_clusters, known.n_topics = n_clusters, n_topics
        with thread_budget(self.threads):
            state = part.begin(start.start(model, known, corpus, contexts, seed), corpus, contexts)
        state.model = model
        return state

    def truncations(self, model: MC2, corpus: Corpus) -> dict[str, int]:
        return dict(zip(("clusters", "topics"), self.part(model).truncations(corpus), strict=True))

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        row = None
        while row is None:
            row = self.advance(corpus, state, seed, iteration)
        return row

    def advance(  # type: ignore[override]
        self, corpus: Corpus, state: Globals, seed: int, iteration: int
    ) -> dict[str, float] | None:
        with thread_budget(self.threads) as pool:
            model = state.model
            batch_size = self.part(model).batch_size(corpus.n_documents)
            if batch_size is None:
                state.elbo = self.full_step(corpus, state, pool)
            else:
                part = -(-corpus.n_documents // (batch_size * _PARTS))
                ahead = corpus.batches(batch_size, seed, iteration, first=state.n_visited // batch_size)
                for rows in itertools.islice(ahead, part):
                    rate = self.rate(model, state.n_updates)
                    state.evidence += self.batch_step(corpus, state, rows, rate, pool).documents.log_evidence
                    state.n_visited += len(rows)
                if state.n_visited < corpus.n_documents:
                    return None
                state.fold()
                self.part(model).tidy(state, pool, is_full=False)
                state.elbo = state.evidence - divergence(state, self.concentrations(state), pool)
                state.n_visited, state.evidence = 0, 0.0
        row = {"clusters": len(clusters_in_use(state)), "topics": len(topics_in_use(state)), "elbo": state.elbo}
        if state.document_concentration < math.inf:
            row["document_concentration"] = state.document_concentration
        return row

    def restore(self, model: MC2, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Globals:
        contexts, part = StackedContexts(corpus, model.contexts), self.part(model)
        n_clusters, n_topics = part.truncations(corpus)
        sizes = {"J": corpus.n_documents, "V": corpus.n_words, "K": n_clusters, "M": n_topics}
        sizes |= {"C": len(contexts.names), "D": contexts.dimension}
        state = part.restore(arrays, sizes, contexts)
        state.model = model
        batch_size = part.batch_size(corpus.n_documents)
        if state.n_visited % (batch_size or corpus.n_documents):
            raise ValueError(f"'n_visited' is {state.n_visited}; mini-batches have {batch_size} documents")
        return state

    def in_this_process(self) -> SVI:
        alone = copy.copy(self)
        alone.n_shards = None
        return alone

    def sample(self, corpus: Corpus, state: Globals) -> Sample:  # type: ignore[override]
        """Posterior means of the clusters and topics in use; what the others weigh is left to new ones."""
        clusters, topics = clusters_in_use(state), topics_in_use(state)
        weights = sticks.expected_weights(state.group_sticks)[clusters]
        proportions, topic_weights, v = self.part(state.model).proportions(
            state, state.expectations(), clusters, topics
        )
        in_use = proportions.sum(axis=1)
        has_new = len(clusters) < len(sticks.expected_weights(state.group_sticks))
        number = np.full(len(state.natural), -1, np.int32)
        number[clusters] = np.arange(len(clusters), dtype=np.int32)
        known = in_use[:, None] > 0
        return Sample(
            cluster_weights=weights / weights.sum(),
            new_cluster_weight=max(0.0, 1.0 - float(weights.sum())) if has_new else 0.0,
            topic_given_cluster=np.divide(proportions, in_use[:, None], where=known, out=np.zeros_like(proportions)),
            new_topic_weight=np.clip(1.0 - in_use, 0.0, 1.0),
            topic_words=np.ascontiguousarray(state.topic_words[:, topics].T) * state.shrink,
            topic_prior=state.topic_prior,
            topic_weights=topic_weights,
            table_concentration=v,
            contexts=SparseRows.of(state.natural[clusters]),
            cluster=np.where(state.cluster >= 0, number[state.cluster], np.int32(-1)),
            log_joint=state.elbo,
            document_concentration=state.document_concentration,
        )

    # -- one mini-batch ------------------------------------------------------------------------------------
    def part(self, model: MC2) -> GlobalPart:
        """Tables, direct assignment, or a document level."""
        if self.n_tables is not None:
            return TablePart(model, self)
        return OwnPart(model, self) if model.document_level else DirectPart(model, self)

    def concentration_settings(self, model: MC2) -> ConcentrationSettings:
        """The settings of the concentrations with sticks behind them, side by side."""
        priors = np.array([model.prior_of(role) for role in ROLES])
        every = ConcentrationSettings(
            start=np.array([model.group_concentration, model.table_concentration, model.topic_concentration]),
            is_learnt=np.array([role in model.learn_concentrations for role in ROLES]),
            shape=priors[:, 0],
            rate=priors[:, 1],
        )
        return self.part(model).concentration_settings(every)

    def concentrations(self, state: Globals) -> Concentrations:
        """Those with sticks behind them as they are used now."""
        return Concentrations.of(state, self.concentration_settings(state.model))

    def batch_step(
        self, corpus: Corpus, state: Globals, rows: np.ndarray, rate: float, pool: Executor | None
    ) -> BatchSums:
        """One natural-gradient step on the documents ``rows``, in place."""
        model, scale = state.model, corpus.n_documents / len(rows)
        part = self.part(model)
        batch = local.take_batch(corpus, state.contexts, rows).narrowed()
        concentrations, expected = self.concentrations(state), state.expectations(batch.columns)
        if len(batch.words) * (len(state.n_m) + len(expected.log_group)) < _LEAST_FOR_THREADS:
            pool = None
        likelihoods = part.word_likelihoods(state, expected, batch.words, pool)
        found = self.local_step(part, corpus, rows, batch, likelihoods, expected, pool)
        without = found.cluster < 0
        if without.any():
            raise ValueError(
                f"document {rows[without][0]}: the weights of its clusters have no finite sum above 0; look at its "
                f"contexts, their priors ({model.contexts}), topic_prior ({model.topic_prior:g}) and the concentrations"
            )
        state.cluster[rows] = found.cluster
        known = likelihoods, batch, found.documents
        sums = part.step(state, expected, *known, concentrations, scale, rate, pool)
        step_concentrations(state, self.concentration_settings(state.model))
        state.n_updates += 1
        return sums

    def local_step(
        self,
        part: GlobalPart,
        corpus: Corpus,
        rows: np.ndarray,
        batch: local.Batch,
        likelihoods: Any,
        expected: Expectations,
        pool: Executor | None,
    ) -> local.LocalStep:
        """q(z_j) of the documents ``rows``, which are ``batch``, and their statistics."""
        if self.n_shards is None:
            return local.LocalStep.of(*part.assign(batch, likelihoods, expected, pool))
        from mc2core.inference.svi import spark

        shards = spark.shards_of(corpus, self.n_shards, part.model.contexts)
        return local.LocalStep(*part.assign(batch, likelihoods, expected, pool, shards.assign(rows)), None)

    def full_step(self, corpus: Corpus, state: Globals, pool: Executor | None) -> float:
        """Coordinate ascent on the whole corpus, in place; returns the ELBO in nats.

        The local posteriors stay those of the old globals, under which sum_j ln Z_j is their part of the ELBO; what the
        new globals change in it is linear in the statistics.
        """
        columns, _ = state.contexts.narrowed()
        before = state.expectations(columns)
        sums = self.batch_step(corpus, state, np.arange(corpus.n_documents), 1.0, pool)
        after = state.expectations(columns)
        change, own = self.part(state.model).changes(state, before, after, sums, pool)
        change += float(np.sum(sums.documents.n_k * (after.log_group - before.log_group)))
        change += own
        change += float(np.sum(sums.documents.contexts * (after.contexts - before.contexts)))
        elbo = sums.documents.log_evidence + change - divergence(state, self.concentrations(state), pool)
        self.part(state.model).tidy(state, pool, is_full=True)
        return elbo
