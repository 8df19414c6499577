"""SVI-MC2: stochastic variational inference for MC2 (UAI16), with exact tree inference in the local step.

Each mini-batch is processed by a local step (:mod:`mc2core.inference.svi.local`) and a global step
(:meth:`mc2core.inference.svi.globals.Globals.step`). The engine chooses truncations, batch sizes and learning rates,
and runs the loop over mini-batches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base import memory
from mc2core.base.checks import MAX_LABELS, choice, finite, whole
from mc2core.base.settings import option
from mc2core.compute.threads import MAX_THREADS, thread_budget
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import Engine
from mc2core.inference.shards import shards_of
from mc2core.inference.svi import start
from mc2core.inference.svi.assign import Assign, assign_documents
from mc2core.inference.svi.documents import Batch, take_batch
from mc2core.inference.svi.globals import Globals, LocalStep, clusters_in_use, topics_in_use
from mc2core.inference.svi.local import local_step
from mc2core.inference.svi.merging import merge_alike
from mc2core.inference.svi.observed import ObservedTopics
from mc2core.inference.svi.proportions import CANDIDATES
from mc2core.inference.svi.settings import RunSettings
from mc2core.inference.svi.spark import assign_on_shards
from mc2core.models import MC2, WORDS, Model
from mc2core.posterior import Sample, SparseRows

#: learning_offset rho and learning_decay iota of each schedule; mini-batch t = 1, 2, ... has rate (t + rho)**-iota
SCHEDULES = {"default": (64.0, 0.7), "paper": (1.0, 0.8)}
#: learning_offset of the default schedule with a document level; early steps are larger to revise the initial state
DOCUMENT_LEVEL_OFFSET = 8.0
INITIALISATIONS = ("seeded", "gibbs", "random")
GLOBAL_STEPS = ("sequential", "joint")
# largest number of parts into which an epoch is divided
_PARTS = 32
# below this number of array elements (distinct words times topics and clusters), several threads take longer than one
_MIN_FOR_THREADS = 200_000
# default number of documents per mini-batch. With a document level, it is at most 1/32 of the corpus and at least 20,
# because the learning rates suit this number of steps per epoch (docs/notes/svi_document_level.md)
_BATCH, _MIN_BATCHES, _MIN_BATCH = 400, 32, 20
# default truncations with tables
_CLUSTERS_OF_TABLES, _TOPICS_OF_TABLES = 40, 120
#: largest default numbers of clusters and topics, without (False) and with (True) a document level
MAX_CLUSTERS = {False: 320, True: 100}
MAX_TOPICS = {False: 640, True: 800}


def truncations_by_rule(
    model: MC2, n_documents: int, n_tokens: int, n_clusters: int | None, max_topics: int | None
) -> tuple[int, int]:
    """Return the truncations (K, M) for SVI without tables; None is replaced by the default.

    The default is one cluster per four documents, up to a maximum, and two topics per cluster. In all trials, more
    clusters gave lower perplexity on validation documents (docs/notes/svi.md). The maximum limits the running time.
    With a document level, the default is one cluster per 25 documents (one per four up to 20 clusters), and eight
    topics per cluster, but at most one topic per thousand tokens (docs/notes/svi_document_level.md). The number of
    clusters is smaller because clusters are merged during a run, but hardly ever split.
    """
    level, n = model.document_level, n_documents
    by_rule = max(-(-n // 25), min(-(-n // 4), 20)) if level else -(-n // 4)
    n_clusters = n_clusters or min(max(by_rule, 2), MAX_CLUSTERS[level])
    most = max(n_clusters + 1, n_tokens // 1000) if level else 2 * n_clusters
    return n_clusters, max_topics or min(8 * n_clusters, most)


class SVI(Engine):
    """Stochastic variational inference (SVI) for MC2 (UAI16). One iteration is one epoch.

    With a document level, documents stay in their starting clusters for the first epoch. At the end of each epoch,
    topics and clusters are merged if this does not lower the evidence lower bound (ELBO). Clusters are not merged if
    their number is fixed. Without tables, group_concentration has a Gamma posterior. table_concentration and
    topic_word_prior have point estimates. topic_concentration is not learnt; it is 1 unless set.

    Parameters
    ----------
    max_clusters : int in [1, 2147483647] or None, default None
        Largest number of clusters (truncation K). None means a quarter of the number of documents, but at least 2 and
        at most 320. With a document level, None means one cluster per 25 documents (one per four up to 20 clusters),
        but at least 2 and at most 100. With tables, None means 40. max_clusters must be None if n_clusters of the model
        is set.
    max_tables : int in [1, 2147483647] or None, default None
        Number of tables per cluster (truncation T), as in UAI16. With None, tokens are assigned to topics directly,
        without tables.
    max_topics : int in [1, 2147483647] or None, default None
        Largest number of topics (truncation M). None means 2 K. With a document level, None means 8 K, but at most one
        topic per 1,000 tokens or K + 1, whichever is larger. With tables, None means 120.
    batch_size : int in [1, inf) or "auto" or None, default "auto"
        Number of documents per mini-batch. "auto" means 400; with a document level, it means 1/32 of the corpus, but
        from 20 to 400. With None, each step uses the whole corpus and has step size 1 (coordinate ascent).
    schedule : {"default", "paper"}, default "default"
        Schedule of the step sizes. Mini-batch t = 1, 2, ... has the step size (t + learning_offset)**-learning_decay.
        "default" has offset 64 and decay 0.7; "paper" has offset 1 and decay 0.8. With batch_size=None, schedule,
        learning_offset and learning_decay must not be set.
    global_step : {"sequential", "joint"}, default "sequential"
        Order of the global updates with tables. "sequential" updates topics after tables. "joint" updates all global
        parameters at once, as in Algorithm 1 of UAI16, which may lower the ELBO. "joint" needs max_tables and
        mini-batches.
    learning_offset : float in [0, inf) or None, default None
        Offset rho of the step sizes. None means the offset of the schedule. With a document level, the offset of the
        default schedule is 8.
    learning_decay : float in (0.5, 1] or None, default None
        Decay iota of the step sizes. None means the decay of the schedule.
    initialisation : {"seeded", "gibbs", "random"}, default "seeded"
        Starting state: from k-means of the documents ("seeded"), from a short Gibbs run ("gibbs"), or random
        ("random"); see :mod:`mc2core.inference.svi.start`.
    n_shards : int in [1, inf) or None, default None
        Number of parts into which Spark splits the corpus (docs/how_to/spark.md). With None, Spark is not used. The
        result depends on n_shards, but not on the number of executors.
    threads : int in [1, 1024], default 1
        Number of threads. The result does not depend on it.

    Raises
    ------
    ValueError
        If a setting is outside its range.

    See Also
    --------
    Gibbs : an engine that returns samples of the posterior.
    Stream : continues a fit by SVI with new documents.

    Notes
    -----
    With batch_size=None, ``state.elbo`` is exact: it is the ELBO of the global parameters with the local posteriors
    from which they were computed. With mini-batches, ``state.elbo`` is an estimate: the sum of ln Z_j over the
    documents of the epoch, minus the KL divergences at the end of the epoch. ln Z_j is the contribution of document j
    to the ELBO (docs/model.md, section 3), under the global parameters at the visit to the document.

    Examples
    --------
    >>> import mc2core
    >>> from mc2core.inference import SVI
    >>> corpus = mc2core.Corpus.from_texts(["apple tree", "tree leaf apple", "iron nail", "nail iron forge"] * 5)
    >>> fit = mc2core.fit(corpus, engine=SVI(max_clusters=4), iterations=2)
    >>> len(fit.posterior.samples)
    1
    """

    name = "svi"
    description: ClassVar[str] = "stochastic variational inference (Huynh et al., 2016)"
    iteration_name: ClassVar[str] = "epochs"
    models = (MC2,)
    keeps_samples: ClassVar[bool] = False
    keeps_documents: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 10

    def __init__(
        self,
        *,
        max_clusters: int | None = None,
        max_tables: int | None = None,
        max_topics: int | None = None,
        batch_size: int | str | None = "auto",
        schedule: str = "default",
        global_step: str = "sequential",
        learning_offset: float | None = None,
        learning_decay: float | None = None,
        initialisation: str = "seeded",
        n_shards: int | None = None,
        threads: int = 1,
    ) -> None:
        self.max_clusters = None if max_clusters is None else whole("max_clusters", max_clusters, most=MAX_LABELS)
        self.max_tables = None if max_tables is None else whole("max_tables", max_tables, most=MAX_LABELS)
        self.max_topics = None if max_topics is None else whole("max_topics", max_topics, most=MAX_LABELS)
        if isinstance(batch_size, str) and batch_size != "auto":
            raise ValueError(f"batch_size is {batch_size!r}; it must be a whole number, 'auto' or None")
        self.batch_size = batch_size if batch_size in (None, "auto") else whole("batch_size", batch_size)
        self.schedule = choice("schedule", schedule, SCHEDULES)
        self.global_step = choice("global_step", global_step, GLOBAL_STEPS)
        if self.global_step == "joint" and (self.max_tables is None or self.batch_size is None):
            raise ValueError(
                "global_step is 'joint', which needs max_tables and mini-batches; "
                f"max_tables is {max_tables}, batch_size {batch_size}"
            )
        self.learning_offset = None if learning_offset is None else finite("learning_offset", learning_offset)
        self.learning_decay = None if learning_decay is None else finite("learning_decay", learning_decay)
        if self.learning_offset is not None and self.learning_offset < 0:
            raise ValueError(f"learning_offset is {learning_offset!r}; it must be at least 0")
        if self.learning_decay is not None and not 0.5 < self.learning_decay <= 1:
            raise ValueError(f"learning_decay is {learning_decay!r}; it must be above 0.5 and at most 1")
        self.initialisation = choice("initialisation", initialisation, INITIALISATIONS)
        self.n_shards = None if n_shards is None else whole("n_shards", n_shards)
        self.threads = whole("threads", threads, most=MAX_THREADS)
        if self.batch_size is None:
            self.refuse_idle(
                dict.fromkeys(("schedule", "learning_offset", "learning_decay"), option("batch_size", "auto"))
            )
        if self.learning_offset is not None and self.learning_decay is not None:
            self.refuse_idle(
                {"schedule": "learning_offset and learning_decay not to be both given, as they replace it"}
            )

    # -- the contract --------------------------------------------------------------------------------------
    def supports(self, model: Model) -> None:
        super().supports(model)
        assert isinstance(model, MC2)
        if model.burstiness:
            raise ValueError("burstiness needs the engine gibbs; for svi it must be None or False")
        for name in ("max_tables", "n_shards"):
            if model.content is not None and getattr(self, name) is not None:
                raise ValueError(f"{name} is {getattr(self, name)}; if topics emit observations, it must be None")
        if model.n_clusters is not None and self.max_tables is not None:
            raise ValueError(
                f"max_tables is {self.max_tables}; with n_clusters it must be None, because tables need "
                "stick-breaking weights"
            )
        if model.n_clusters is not None and self.max_clusters is not None:
            raise ValueError(
                f"max_clusters is {self.max_clusters}; with n_clusters, here {model.n_clusters}, it must be None"
            )
        if model.document_level:
            self.refuse_idle(dict.fromkeys(("max_tables", "n_shards"), option("document_level", False)))
        if self.max_tables is not None and model.is_learnt(WORDS):
            raise ValueError(f"topic_word_prior='learn' needs max_tables None; max_tables is {self.max_tables}")
        if self.max_tables is None and self.initialisation != "gibbs":
            model.refuse_idle_priors({"topic": "max_tables: without tables SVI does not learn topic_concentration"})

    @property
    def can_stream(self) -> bool:
        return self.batch_size is not None and self.n_shards is None

    def rate(self, model: MC2, n_updates: int) -> float:
        """Return the step size after ``n_updates`` mini-batches: (n_updates + 1 + learning_offset)**-learning_decay."""
        learning_offset, learning_decay = SCHEDULES[self.schedule]
        if model.document_level and self.schedule == "default":
            learning_offset = DOCUMENT_LEVEL_OFFSET
        learning_offset = learning_offset if self.learning_offset is None else self.learning_offset
        return (n_updates + 1 + learning_offset) ** -(
            learning_decay if self.learning_decay is None else self.learning_decay
        )

    def init(self, model: MC2, corpus: Corpus, seed: int) -> Globals:
        self.need_memory(model, corpus)
        settings = self.resolved(model, corpus.n_documents, corpus.n_tokens)
        contexts = StackedContexts(corpus, model.contexts)
        with thread_budget(self.threads):
            return start.start(model, settings, self.initialisation, corpus, contexts, seed, self.threads)

    def need_memory(self, model: MC2, corpus: Corpus, chains: int = 1) -> None:
        n_clusters, max_tables, max_topics, batch_size, *_ = self.resolved(model, corpus.n_documents, corpus.n_tokens)
        dimension = StackedContexts(corpus, model.contexts).dimension
        n_rows = model.content.n_parameters(corpus.n_words) if model.content else corpus.n_words
        n_proportions = n_clusters * (max_tables or 1)
        if model.document_level:
            n_documents = min(batch_size or corpus.n_documents, corpus.n_documents)
            n_proportions += n_documents * min(CANDIDATES, n_clusters)
        # each array exists at least three times: as parameters, and as results of a step
        n_numbers = n_proportions * max_topics + n_clusters * dimension + n_rows * max_topics
        clusters = f"{n_clusters} clusters" if max_tables is None else f"{n_clusters} clusters of {max_tables} tables"
        run = "an SVI run" if chains == 1 else f"an SVI run of {chains} chains, each"
        what = f"{run} of {clusters}, {max_topics} topics and {corpus.n_words} words"
        fewer = ", or chains" if chains > 1 else ""
        memory.need(24 * n_numbers * chains, what, f"lower max_clusters, max_tables or max_topics{fewer}")

    def truncations(self, model: MC2, corpus: Corpus) -> dict[str, int]:
        settings = self.resolved(model, corpus.n_documents, corpus.n_tokens)
        # with a document level, merges determine the number of clusters, so the truncation is not reported
        follow = {} if model.document_level or model.n_clusters else {"clusters": settings.n_clusters}
        return follow | {"topics": settings.n_topics}

    def step(self, corpus: Corpus, state: Globals, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        row = None
        while row is None:
            row = self.advance(corpus, state, seed, iteration)
        return row

    def advance(  # type: ignore[override]
        self, corpus: Corpus, state: Globals, seed: int, iteration: int
    ) -> dict[str, float] | None:
        with thread_budget(self.threads) as pool:
            batch_size = state.settings.batch_size
            if batch_size is None:
                state.elbo = self.full_step(corpus, state, pool)
                if state.documents is not None:
                    state.elbo = merge_alike(corpus, state, pool)
            else:
                n_batches = -(-corpus.n_documents // (batch_size * _PARTS))
                ahead = corpus.batches(batch_size, seed, iteration, first=state.n_visited // batch_size)
                for rows in itertools.islice(ahead, n_batches):
                    self.fit_batch(corpus, state, rows, pool)
                if state.n_visited < corpus.n_documents:
                    return None
                self.end_epoch(state, pool)
                if state.documents is not None:
                    merge_alike(corpus, state, pool)
        row = {"clusters": len(clusters_in_use(state)), "topics": len(topics_in_use(state)), "elbo": state.elbo}
        if state.document_concentration < math.inf:
            row["document_concentration"] = state.document_concentration
        return row

    def restore(self, model: MC2, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> Globals:
        settings = self.resolved(model, corpus.n_documents, corpus.n_tokens)
        contexts = StackedContexts(corpus, model.contexts)
        observed = None if model.content is None else ObservedTopics.from_corpus(corpus, model.content)
        return Globals.restore(model, settings, corpus.content.shape, contexts, arrays, observed)

    def sample(self, corpus: Corpus, state: Globals) -> Sample:  # type: ignore[override]
        """Return the posterior means of the clusters and topics in use.

        The weights of a new cluster and of a new topic are the total weights of those that are not in use.
        """
        clusters, topics = clusters_in_use(state), topics_in_use(state)
        weights = state.expected_weights()
        has_new, weights = len(clusters) < len(weights), weights[clusters]
        proportions, topic_weights, v = state.proportions.expected(clusters, topics, state.concentrations())
        in_use = proportions.sum(axis=1)
        counts, contents = np.ascontiguousarray(state.topic_words[:, topics].T) * state.shrink, None
        if state.observed is not None:
            contents = state.observed.contents(state.topic_sums[:, topics])
            counts = sp.csr_matrix(contents.mean.shape, dtype=np.int32)
        number = np.full(state.n_clusters, -1, np.int32)
        number[clusters] = np.arange(len(clusters), dtype=np.int32)
        known = in_use[:, None] > 0
        return Sample(
            cluster_weights=weights / weights.sum(),
            new_cluster_weight=max(0.0, 1.0 - float(weights.sum())) if has_new else 0.0,
            topic_given_cluster=np.divide(proportions, in_use[:, None], where=known, out=np.zeros_like(proportions)),
            new_topic_weight=np.clip(1.0 - in_use, 0.0, 1.0),
            topic_words=counts,
            topic_word_prior=state.topic_word_prior,
            topic_weights=topic_weights,
            table_concentration=v,
            contexts=SparseRows.from_dense(state.natural[clusters]),
            cluster=np.where(state.cluster >= 0, number[state.cluster], np.int32(-1)),
            log_joint=state.elbo,
            document_concentration=state.document_concentration,
            contents=contents,
        )

    # -- the run -------------------------------------------------------------------------------------------
    def resolved(self, model: MC2, n_documents: int, n_tokens: int) -> RunSettings:
        """Return the settings of the run, with defaults replaced by values for a corpus of this size."""
        n_clusters, max_topics, size = model.n_clusters or self.max_clusters, self.max_topics, self.batch_size
        if self.max_tables is None:
            n_clusters, max_topics = truncations_by_rule(model, n_documents, n_tokens, n_clusters, max_topics)
        if isinstance(size, str):
            size = _BATCH
            if model.document_level:
                size = min(size, max(-(-n_documents // _MIN_BATCHES), _MIN_BATCH))
        n_clusters, max_topics = n_clusters or _CLUSTERS_OF_TABLES, max_topics or _TOPICS_OF_TABLES
        return RunSettings(n_clusters, self.max_tables, max_topics, size, self.global_step == "joint")

    def fit_batch(self, corpus: Corpus, state: Globals, rows: np.ndarray, pool: Executor | None) -> float:
        """Update the state in place by the documents ``rows``, the next mini-batch of an epoch.

        Returns the sum of ln Z_j over these documents under the global parameters before the step, in nats.
        """
        rate = self.rate(state.model, state.n_updates)
        evidence = self.batch_step(corpus, state, rows, rate, pool)[1].documents.log_evidence
        state.evidence += evidence
        state.n_visited += len(rows)
        return evidence

    def end_epoch(self, state: Globals, pool: Executor | None) -> None:
        """Finish an epoch: prune the state and sort its clusters in place, and compute the ELBO."""
        state.rescale()
        state.prune(pool, is_full=False)
        state.elbo = state.evidence - state.divergence(pool)
        state.last_evidence, state.n_visited, state.evidence = state.evidence, 0, 0.0

    def batch_step(
        self, corpus: Corpus, state: Globals, rows: np.ndarray, rate: float, pool: Executor | None
    ) -> tuple[Batch, LocalStep]:
        """Update the state in place by one natural-gradient step on the documents ``rows``."""
        batch = take_batch(corpus, state.contexts, rows).narrowed()
        if len(batch.words) * (len(state.n_m) + state.n_clusters) < _MIN_FOR_THREADS:
            pool = None
        assign: Assign = assign_documents
        if self.n_shards is not None:
            assign = assign_on_shards(shards_of(corpus, self.n_shards), state.model.contexts, rows)
        local = local_step(state, batch, pool, assign)
        state.step(batch, local, (state.settings.total_samples or corpus.n_documents) / len(rows), rate, pool)
        state.step_concentrations()
        state.n_updates += 1
        return batch, local

    def full_step(self, corpus: Corpus, state: Globals, pool: Executor | None) -> float:
        """Update the state in place by one step of coordinate ascent on the whole corpus; return the ELBO in nats.

        The local posteriors are computed under the old global parameters. Their part of the ELBO is then sum_j ln Z_j.
        Under the new global parameters, this part changes by an amount that is linear in the statistics.
        """
        batch, local = self.batch_step(corpus, state, np.arange(corpus.n_documents), 1.0, pool)
        elbo = local.documents.log_evidence + state.change(batch, local, pool) - state.divergence(pool)
        state.prune(pool, is_full=True)
        return elbo
