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
from mc2core.base.checks import MOST_LABELS, choice, finite, prior_count, whole
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import Engine, context_families
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
from mc2core.models.hyperparameters import ROLES, WORDS, concentration_priors_of, learnt_roles, omega_of
from mc2core.posterior import Sample, SparseRows

#: (delay rho, forgetting iota) of the named schedules: rate = (t + rho)**-iota at mini-batch t = 1, 2, ...
SCHEDULES = {"default": (64.0, 0.7), "paper": (1.0, 0.8)}
#: delay of the default schedule where documents have proportions of their own: more of the start is to be learnt anew
OWN_DELAY = 8.0
INITIALISATIONS = ("seeded", "gibbs", "random")
GLOBAL_STEPS = ("sequential", "joint")
# parts of an epoch, at most
_PARTS = 32
# a batch of fewer numbers, distinct words by topics and clusters, is done before its blocks have gone to other threads
_LEAST_FOR_THREADS = 200_000


class SVI(Engine):
    """Stochastic variational inference of MC2 (UAI16); iterations are epochs.

    Parameters
    ----------
    n_clusters : int in [1, 2147483647] or None, default None
        K, a truncation; None is a quarter of the documents, 2 to 320, and 40 with tables. Trace and model report what is
        in use. With a document_concentration None is a cluster for every 25 documents, but a quarter of the documents
        up to 20, 2 to 100.
    n_tables : int in [1, 2147483647] or None, default None
        T, tables of each cluster, a truncation (UAI16); None is direct assignment of tokens to topics, without tables.
    n_topics : int in [1, 2147483647] or None, default None
        M, a truncation; None is 2 K, and 120 with tables. With a document_concentration None is 8 K, but at most one for
        every 1,000 tokens or one more than clusters.
    batch_size : int in [1, inf) or "auto" or None, default "auto"
        Documents of a mini-batch; "auto" is 400, None is the whole corpus at rate 1 (coordinate ascent). With a
        document_concentration "auto" is a 32nd of the corpus, 20 to 400: an epoch of fewer steps hardly leaves its start.
    schedule : {"default", "paper"}, default "default"
        Rates (t + delay)**-forgetting of mini-batches t = 1, 2, ...; paper is delay 1, forgetting 0.8.
    global_step : {"sequential", "joint"}, default "sequential"
        With tables: whether topics follow the tables' new topics, or all globals step at once from where they were
        (UAI16, Algorithm 1), which may lower the ELBO of a full batch. Joint needs n_tables and a batch_size.
    delay : float in [0, inf) or None, default None
        rho, in place of the schedule's. With a document_concentration the default schedule's is 8.
    forgetting : float in (0.5, 1] or None, default None
        iota, in place of the schedule's.
    contexts : mapping of context names to families or None, default None
        Families, or their settings as a plan holds them; the corpus must have contexts of these names.
    group_concentration : float in [1e-10, 1e10], default 1.0
        alpha of ICML14, of document clusters; the start where it is learnt.
    table_concentration : float in [1e-10, 1e10], default 1.0
        v, within a cluster; the start where it is learnt.
    topic_concentration : float in [1e-10, 1e10], default 1.0
        eta, of topics; the start where it is learnt.
    learn_concentrations : bool or list of {"group", "table", "topic", "words"}, default True
        Which concentrations are learnt; True is the first three. Words is topic_prior. Without tables group has a Gamma
        posterior, table and words have point estimates and topic stays as set: a point estimate of epsilon bounds it by
        nothing.
    document_concentration : float in [1e-10, 1e10] or "inf" or "learn", default "inf"
        omega: a document's topic proportions are drawn from DP(omega, those of its cluster). "inf" is MC2, whose
        documents share their cluster's proportions; "learn" has a point estimate, from 10 on. Needs n_tables
        and n_shards None. Documents stay in the clusters where they start until the first epoch is over. What is learnt
        is no estimate so far: it stays near 10, and the clusters and topics in use follow n_clusters and n_topics
        (docs/questions.md). Ask Gibbs for omega and K.
    concentration_priors : dict of {"group", "table", "topic", "words", "document"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each concentration that is learnt; (1, 1) where not given.
    topic_prior : float in [1e-10, 1e10], default 0.01
        s, of the symmetric Dirichlet prior of a topic's words; the start where it is learnt.
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
        contexts: Mapping[str, Any] | None = None,
        topic_prior: float = 0.01,
        group_concentration: float = 1.0,
        table_concentration: float = 1.0,
        topic_concentration: float = 1.0,
        learn_concentrations: Any = True,
        document_concentration: float | str = "inf",
        concentration_priors: Mapping[str, Any] | None = None,
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
        self.document_concentration = omega_of(document_concentration)
        has_own = self.document_concentration != "inf"
        if has_own and self.n_tables is not None:
            raise ValueError(
                f"document_concentration is {document_concentration!r}, which needs n_tables None; "
                f"n_tables is {n_tables}"
            )
        usual_delay, usual_forgetting = SCHEDULES[self.schedule]
        if has_own and self.schedule == "default":
            usual_delay = OWN_DELAY
        self.delay = usual_delay if delay is None else finite("delay", delay)
        self.forgetting = usual_forgetting if forgetting is None else finite("forgetting", forgetting)
        if self.delay < 0:
            raise ValueError(f"delay is {delay!r}; it must be at least 0")
        if not 0.5 < self.forgetting <= 1:
            raise ValueError(f"forgetting is {forgetting!r}; it must lie above 0.5 and at most at 1")
        self.contexts = context_families(contexts)
        self.topic_prior = prior_count("topic_prior", topic_prior)
        self.group_concentration = prior_count("group_concentration", group_concentration)
        self.table_concentration = prior_count("table_concentration", table_concentration)
        self.topic_concentration = prior_count("topic_concentration", topic_concentration)
        self.learn_concentrations = learnt_roles(learn_concentrations, more=(WORDS,))
        self.concentration_priors = concentration_priors_of(concentration_priors, more=(WORDS, "document"))
        if self.n_tables is not None and WORDS in self.learn_concentrations:
            raise ValueError(f"learn_concentrations names {WORDS!r}, which needs n_tables None; n_tables is {n_tables}")
        self.initialisation = choice("initialisation", initialisation, INITIALISATIONS)
        self.n_shards = None if n_shards is None else whole("n_shards", n_shards)
        if has_own and self.n_shards is not None:
            raise ValueError(
                f"n_shards is {n_shards}; with a document_concentration it must be None: Spark's workers know only "
                "documents that share their cluster's proportions"
            )
        self.threads = whole("threads", threads)

    # -- the contract --------------------------------------------------------------------------------------
    def init(self, corpus: Corpus, seed: int) -> Globals:
        contexts = StackedContexts(corpus, self.contexts)
        n_clusters, n_topics = self.part.truncations(corpus)
        own, clusters = self.part.n_numbers(corpus, n_clusters, n_topics)
        # at least three copies of each: parameters, and what a step makes of them
        n_numbers = own + n_clusters * contexts.dimension + corpus.n_words * n_topics
        what = f"an SVI run of {clusters}, {n_topics} topics and {corpus.n_words} words"
        memory.need(24 * n_numbers, what, "n_clusters, n_tables and n_topics may be lower")
        known = copy.copy(self)
        known.n_clusters, known.n_topics = n_clusters, n_topics
        with thread_budget(self.threads):
            return self.part.begin(start.start(known, corpus, contexts, seed), corpus, contexts)

    def truncations(self, corpus: Corpus) -> dict[str, int]:
        return dict(zip(("clusters", "topics"), self.part.truncations(corpus), strict=True))

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        row = None
        while row is None:
            row = self.advance(corpus, state, seed, iteration)
        return row

    def advance(  # type: ignore[override]
        self, corpus: Corpus, state: Globals, seed: int, iteration: int
    ) -> dict[str, float] | None:
        with thread_budget(self.threads) as pool:
            batch_size = self.part.batch_size(corpus.n_documents)
            if batch_size is None:
                state.elbo = self.full_step(corpus, state, pool)
            else:
                part = -(-corpus.n_documents // (batch_size * _PARTS))
                ahead = corpus.batches(batch_size, seed, iteration, first=state.n_visited // batch_size)
                for rows in itertools.islice(ahead, part):
                    rate = (state.n_updates + 1 + self.delay) ** -self.forgetting
                    state.evidence += self.batch_step(corpus, state, rows, rate, pool).documents.log_evidence
                    state.n_visited += len(rows)
                if state.n_visited < corpus.n_documents:
                    return None
                state.fold()
                self.part.tidy(state, pool, is_full=False)
                state.elbo = state.evidence - divergence(state, self.concentrations(state), pool)
                state.n_visited, state.evidence = 0, 0.0
        row = {"clusters": len(clusters_in_use(state)), "topics": len(topics_in_use(state)), "elbo": state.elbo}
        if state.document_concentration < math.inf:
            row["document_concentration"] = state.document_concentration
        return row

    def restore(self, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Globals:
        contexts = StackedContexts(corpus, self.contexts)
        n_clusters, n_topics = self.part.truncations(corpus)
        sizes = {"J": corpus.n_documents, "V": corpus.n_words, "K": n_clusters, "M": n_topics}
        sizes |= {"C": len(contexts.names), "D": contexts.dimension}
        state = self.part.restore(arrays, sizes, contexts)
        batch_size = self.part.batch_size(corpus.n_documents)
        if state.n_visited % (batch_size or corpus.n_documents):
            raise ValueError(f"'n_visited' is {state.n_visited}; mini-batches have {batch_size} documents")
        return state

    def here(self) -> SVI:
        alone = copy.copy(self)
        alone.n_shards = None
        return alone

    def sample(self, corpus: Corpus, state: Globals) -> Sample:  # type: ignore[override]
        """Posterior means of the clusters and topics in use; what the others weigh is left to new ones."""
        clusters, topics = clusters_in_use(state), topics_in_use(state)
        weights = sticks.expected_weights(state.group_sticks)[clusters]
        proportions, topic_weights, v = self.part.proportions(state, state.expectations(), clusters, topics)
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
    @property
    def part(self) -> GlobalPart:
        """Tables, direct assignment, or documents of their own."""
        if self.n_tables is not None:
            return TablePart(self)
        return DirectPart(self) if self.document_concentration == "inf" else OwnPart(self)

    @property
    def concentration_settings(self) -> ConcentrationSettings:
        """The settings of the concentrations with sticks behind them, side by side."""
        priors = np.array([self.concentration_priors[role] for role in ROLES])
        every = ConcentrationSettings(
            start=np.array([self.group_concentration, self.table_concentration, self.topic_concentration]),
            is_learnt=np.array([role in self.learn_concentrations for role in ROLES]),
            shape=priors[:, 0],
            rate=priors[:, 1],
        )
        return self.part.concentration_settings(every)

    def concentrations(self, state: Globals) -> Concentrations:
        """Those with sticks behind them as they are used now."""
        return Concentrations.of(state, self.concentration_settings)

    def batch_step(
        self, corpus: Corpus, state: Globals, rows: np.ndarray, rate: float, pool: Executor | None
    ) -> BatchSums:
        """One natural-gradient step on the documents ``rows``, in place."""
        scale = corpus.n_documents / len(rows)
        batch = local.take_batch(corpus, state.contexts, rows).narrowed()
        concentrations, expected = self.concentrations(state), state.expectations(batch.columns)
        if len(batch.words) * (len(state.n_m) + len(expected.log_group)) < _LEAST_FOR_THREADS:
            pool = None
        likelihoods = self.part.word_likelihoods(state, expected, batch.words, pool)
        found = self.local_step(corpus, rows, batch, likelihoods, expected, pool)
        without = found.cluster < 0
        if without.any():
            raise ValueError(
                f"document {rows[without][0]}: the weights of its clusters have no finite sum above 0; look at its "
                f"contexts, their priors ({self.contexts}), topic_prior ({self.topic_prior:g}) and the concentrations"
            )
        state.cluster[rows] = found.cluster
        known = likelihoods, batch, found.documents
        sums = self.part.step(state, expected, *known, concentrations, scale, rate, pool)
        step_concentrations(state, self.concentration_settings)
        state.n_updates += 1
        return sums

    def local_step(
        self,
        corpus: Corpus,
        rows: np.ndarray,
        batch: local.Batch,
        likelihoods: Any,
        expected: Expectations,
        pool: Executor | None,
    ) -> local.LocalStep:
        """q(z_j) of the documents ``rows``, which are ``batch``, and their statistics."""
        if self.n_shards is None:
            return local.LocalStep.of(*self.part.assign(batch, likelihoods, expected, pool))
        from mc2core.inference.svi import spark

        shards = spark.shards_of(corpus, self.n_shards, self.contexts)
        return local.LocalStep(*self.part.assign(batch, likelihoods, expected, pool, shards.assign(rows)), None)

    def full_step(self, corpus: Corpus, state: Globals, pool: Executor | None) -> float:
        """Coordinate ascent on the whole corpus, in place; returns the ELBO in nats.

        The local posteriors stay those of the old globals, under which sum_j ln Z_j is their part of the ELBO; what the
        new globals change in it is linear in the statistics.
        """
        columns, _ = state.contexts.narrowed()
        before = state.expectations(columns)
        sums = self.batch_step(corpus, state, np.arange(corpus.n_documents), 1.0, pool)
        after = state.expectations(columns)
        change, own = self.part.changes(state, before, after, sums, pool)
        change += float(np.sum(sums.documents.n_k * (after.log_group - before.log_group)))
        change += own
        change += float(np.sum(sums.documents.contexts * (after.contexts - before.contexts)))
        elbo = sums.documents.log_evidence + change - divergence(state, self.concentrations(state), pool)
        self.part.tidy(state, pool, is_full=True)
        return elbo
