"""Gibbs sampling of MC2 (ICML14): collapsed, blocked and interleaved kernels.

An iteration of each kernel, all of which leave the same posterior invariant:

* ``collapsed``: documents (``gibbs_clusters``), tokens (``gibbs_topics``), tables and concentrations
  (``gibbs_weights``);
* ``blocked``: the blocked move (``gibbs_blocked``), tables and concentrations;
* ``interleaved``: the blocked move, then all of ``collapsed``.

The sweep of npTOT over tokens is ``token_contexts``. With a document level an iteration is ``document_level``: tokens,
splits and merges of topics, documents given tau, omega, splits and merges of clusters, tables of documents, documents
given these, tables and concentrations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core.base import memory
from mc2core.base.checks import MOST_LABELS, MOST_PRIOR, choice, whole
from mc2core.base.described import Stored, check
from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import Engine, State
from mc2core.inference.gibbs.blocked import move_blocked
from mc2core.inference.gibbs.collapsed import sweep_clusters, sweep_topics
from mc2core.inference.gibbs.document_level.state import (
    SETTLING,
    SORTING,
    TOPIC_PROPOSALS,
    DocumentLevel,
    log_clustering,
    scatter,
)
from mc2core.inference.gibbs.state import (
    Assignments,
    Concentrations,
    WordCells,
    document_start,
    log_words,
    start_assignments,
    word_cells,
    words_of_topics,
)
from mc2core.inference.gibbs.token_contexts import TokenTimes, sweep_timed_topics
from mc2core.inference.gibbs.weights import ConcentrationPriors, GammaPrior, draw_topic_prior, update_weights
from mc2core.models import HDP, MC2, NPTOT, Model
from mc2core.models.base import DOCUMENT, ROLES, WORDS, TopicModel
from mc2core.posterior import Sample, SparseRows

# topics at the start, at most, where none are set
_TOPICS, _TOPICS_WITH_DOCUMENT_LEVEL = 50, 100
_MOST_TOKENS = 2**31 - 1
KERNELS = ("collapsed", "blocked", "interleaved")
_DESCRIBED = {
    "topic_weights": Stored("f", "M", least=0, most=1),
    "topic": Stored("i", "N", least=0, below="M"),
    "cluster": Stored("i", "J", least=0, below="J"),
    "scalars": Stored("f", "5"),
}
_DESCRIBED_SCALARS = {
    "rest": Stored("f", "", least=0, most=1),
    **{f"{role}_concentration": Stored("f", "", above=0) for role in ROLES},
    "log_joint": Stored("f", ""),
}
_ROUNDING = 1e-6


@dataclass
class GibbsState(State):
    """State of a chain.

    Attributes
    ----------
    model : MC2, HDP or NPTOT
    assignments : Assignments
        z, l, epsilon and their counts.
    concentrations : Concentrations
        alpha, v, eta now.
    log_joint : float
        ln p(w, x, z, l | epsilon, alpha, v, eta) in nats, with tau, psi, phi and pi integrated out: the CRP of
        the clusters, the Dirichlet-multinomials of topics in clusters and of words in topics, and the
        marginal likelihood of the contexts (base measures included). With a document level it is given tau and
        omega too, with theta integrated out.
    cells, contexts, times
        The corpus word by word, its contexts as clusters emit them, and as tokens do (None but for npTOT): follow from
        the corpus, not stored.
    level : DocumentLevel or None
        tau and omega of the document level.
    topic_prior : float
        s now.
    """

    model: TopicModel
    assignments: Assignments
    concentrations: Concentrations
    log_joint: float
    cells: WordCells
    contexts: StackedContexts
    times: TokenTimes | None
    topic_prior: float
    level: DocumentLevel | None = None

    @property
    def is_prior_learnt(self) -> bool:
        """Whether s moves."""
        return WORDS in self.model.learn_concentrations

    @property
    def cluster(self) -> np.ndarray:  # type: ignore[override]
        """(J,) int32: z."""
        return self.assignments.cluster

    @property
    def topic(self) -> np.ndarray:
        """(n_tokens,) int32: l, tokens in CSR order, a count of c giving c tokens in a row."""
        return self.assignments.topic

    def compute_log_joint(self) -> float:
        """``log_joint`` of the state as it is now."""
        assignments, alpha, v = self.assignments, self.concentrations.group, self.concentrations.table
        result = 0.0
        if self.model.has_clusters:
            n_documents = len(assignments.cluster)
            result += assignments.n_clusters * np.log(alpha) + gammaln(assignments.n_k).sum()
            result += gammaln(alpha) - gammaln(alpha + n_documents)
        n_km = assignments.n_km
        if self.level is not None:
            result += self.level.log_joint(assignments)
        else:
            prior = v * assignments.topic_weights
            clusters, topics = np.nonzero(n_km)
            result += (gammaln(prior[topics] + n_km[clusters, topics]) - gammaln(prior[topics])).sum()
            result += (gammaln(v) - gammaln(v + n_km.sum(axis=1, dtype=np.int64))).sum()
        total = self.topic_prior * (len(self.cells.start) - 1)
        result += (gammaln(total) - gammaln(total + n_km.sum(axis=0, dtype=np.int64))).sum()
        result += log_words(self.cells, assignments.topic, assignments.n_topics, self.topic_prior)
        if self.times is not None:
            result += self.times.log_marginal(assignments)
        natural = self.contexts.natural(assignments.cluster, assignments.n_clusters)
        return float(result + self.contexts.log_marginal(natural).sum() + self.contexts.log_base.sum())

    def arrays(self) -> dict[str, np.ndarray]:
        concentrations = [getattr(self.concentrations, role) for role in ROLES]
        return {
            "cluster": self.assignments.cluster,
            "topic": self.assignments.topic,
            "topic_weights": self.assignments.topic_weights,
            "scalars": np.array([self.assignments.rest, *concentrations, self.log_joint]),
            **({"topic_prior": np.array(self.topic_prior)} if self.is_prior_learnt else {}),
            **({} if self.level is None else self.level.arrays()),
        }


class Gibbs(Engine):
    """Gibbs sampler (ICML14, section 3.2) of MC2, the HDP and npTOT.

    Parameters
    ----------
    kernel : {"collapsed", "blocked", "interleaved"}, default "interleaved"
        Collapsed sweeps, blocked moves, or both in turn.
    start_topics : int in [1, 2147483647] or None, default None
        Topics of the starting state, at most; None: 50, with a document_concentration 100.
    start_clusters : int in [1, 2147483647], default 20
        Document clusters of the starting state, at most. With a document_concentration topics settle in one cluster;
        then clusters are found from one and from this number at random, and the likelier of both are the start.
    threads : int in [1, inf), default 1
        Threads of the blocked move, of documents' tables and of weights of clusters; the result does not depend on it.

    Raises
    ------
    ValueError
        A setting outside its range.
    """

    name: ClassVar[str] = "gibbs"
    models = (MC2, HDP, NPTOT)
    keeps_samples: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 60

    def __init__(
        self,
        *,
        kernel: str = "interleaved",
        start_topics: int | None = None,
        start_clusters: int = 20,
        threads: int = 1,
    ) -> None:
        self.kernel = choice("kernel", kernel, KERNELS)
        self.start_topics = None if start_topics is None else whole("start_topics", start_topics, most=MOST_LABELS)
        self.start_clusters = whole("start_clusters", start_clusters, most=MOST_LABELS)
        self.threads = whole("threads", threads)

    # -- the contract --------------------------------------------------------------------------------------
    def supports(self, model: Model) -> None:
        super().supports(model)
        assert isinstance(model, TopicModel)
        if model.document_level and self.kernel == "blocked":
            raise ValueError("kernel is 'blocked'; with a document level it must be 'collapsed' or 'interleaved'")
        if model.has_token_context and self.kernel != "collapsed":
            raise ValueError(f"kernel is {self.kernel!r}; for npTOT it must be 'collapsed'")

    def init(self, model: TopicModel, corpus: Corpus, seed: int) -> GibbsState:
        concentrations = Concentrations(model.group_concentration, model.table_concentration, model.topic_concentration)
        n_clusters = self.start_clusters if model.has_clusters else None
        n_topics = self.start_topics or (_TOPICS_WITH_DOCUMENT_LEVEL if model.document_level else _TOPICS)
        _refuse_too_much(corpus, n_clusters, n_topics, model.document_level, model.has_token_context)
        contexts, rng = StackedContexts(corpus, model.cluster_contexts), streams.generator(seed, "start")
        first = 1 if model.document_level and n_clusters else n_clusters
        assignments = start_assignments(corpus, contexts, first, n_topics, rng)
        state = _state(model, corpus, contexts, assignments, concentrations, 0.0)
        if model.document_level:
            state.level = DocumentLevel.start(assignments, model.document_concentration)
            state = self._settle(corpus, state, state.level, seed)
        else:
            _update_weights(state, seed, 0)
        state.log_joint = state.compute_log_joint()
        return state

    def step(self, corpus: Corpus, state: GibbsState, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        assignments, level = state.assignments, state.level
        if level is not None:
            level.move_tokens(assignments, corpus, state.concentrations, state.topic_prior, seed, iteration)
            self._update_level(state, level, seed, iteration)
        else:
            self._step_shared(corpus, state, seed, iteration)
        if state.is_prior_learnt:
            prior = GammaPrior(*state.model.prior_of(WORDS))
            key, rng = streams.key(seed, "words", iteration), streams.generator(seed, "topic_prior", iteration)
            words = words_of_topics(state.cells, assignments.topic, assignments.n_topics)
            state.topic_prior = draw_topic_prior(state.topic_prior, words, prior, key, rng)
        state.log_joint = state.compute_log_joint()
        return {
            "clusters": assignments.n_clusters,
            "topics": assignments.n_topics,
            "log_joint": state.log_joint,
            "group_concentration": state.concentrations.group,
            "table_concentration": state.concentrations.table,
            "topic_concentration": state.concentrations.topic,
            **({} if level is None else {"document_concentration": level.omega}),
            **({"topic_prior": state.topic_prior} if state.is_prior_learnt else {}),
        }

    def sample(self, corpus: Corpus, state: State) -> Sample:
        assert isinstance(state, GibbsState)
        assignments, v = state.assignments, state.concentrations.table
        n_documents = len(assignments.cluster)
        # E[tau_k | n_k or t_k, epsilon]: the topics in use, renormalised, and the mass of all others
        level = state.level
        mass = (assignments.n_km if level is None else level.tables) + v * assignments.topic_weights
        new = v * assignments.rest
        total = mass.sum(axis=1, keepdims=True)
        alpha = state.concentrations.group
        return Sample(
            cluster_weights=assignments.n_k / n_documents,
            new_cluster_weight=alpha / (n_documents + alpha) if state.model.has_clusters else 1.0,
            topic_given_cluster=mass / total,
            new_topic_weight=new / (total[:, 0] + new),
            topic_words=sp.csr_matrix(words_of_topics(state.cells, assignments.topic, assignments.n_topics)),
            topic_prior=state.topic_prior,
            topic_weights=assignments.topic_weights.copy(),
            table_concentration=v,
            contexts=SparseRows.of(state.contexts.natural(assignments.cluster, assignments.n_clusters)),
            cluster=assignments.cluster.copy(),
            log_joint=state.log_joint,
            document_concentration=math.inf if level is None else level.omega,
        )

    def restore(self, model: TopicModel, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> GibbsState:
        sizes = check(arrays, _DESCRIBED, {"J": corpus.n_documents, "N": corpus.n_tokens})
        scalars = dict(zip(_DESCRIBED_SCALARS, arrays["scalars"], strict=True))
        check(scalars, _DESCRIBED_SCALARS, {})
        rest, group, table, topic_concentration, log_joint = (float(value) for value in scalars.values())
        cluster, topic = arrays["cluster"].astype(np.int32), arrays["topic"].astype(np.int32)
        weights = arrays["topic_weights"].astype(np.float64)
        if abs(weights.sum() + rest - 1.0) > _ROUNDING:
            raise ValueError(f"'topic_weights' and the rest sum to {weights.sum() + rest}, not to 1")
        # no number is left out: K and M are those of the clusters and topics in use
        if not (np.bincount(cluster).all() and np.bincount(topic, minlength=sizes["M"]).all()):
            raise ValueError("'cluster' or 'topic' leaves out a number below its largest")
        if not model.has_clusters and (cluster != np.arange(corpus.n_documents)).any():
            raise ValueError(f"'cluster' does not hold document j in cluster j, as {model.name} has it")
        assignments = Assignments(cluster, topic, document_start(corpus), weights, rest)
        assignments.count()
        concentrations = Concentrations(group, table, topic_concentration)
        contexts = StackedContexts(corpus, model.cluster_contexts)
        state = _state(model, corpus, contexts, assignments, concentrations, log_joint)
        if state.is_prior_learnt:
            check(arrays, {"topic_prior": Stored("f", "", above=0, most=MOST_PRIOR)}, {})
            state.topic_prior = float(arrays["topic_prior"])
        if model.document_level:
            state.level = DocumentLevel.restore(arrays, assignments)
        return state

    # -- inside --------------------------------------------------------------------------------------------
    def _step_shared(self, corpus: Corpus, state: GibbsState, seed: int, iteration: int) -> None:
        """An iteration of MC2, whose documents share the proportions of their cluster."""
        assignments = state.assignments
        if self.kernel != "collapsed":
            with thread_budget(self.threads) as pool:
                move_blocked(
                    assignments, corpus.content, state.cells, state.contexts, state.concentrations, state.topic_prior,
                    seed, iteration, pool, clusters_are_fixed=not state.model.has_clusters,
                )  # fmt: skip
        if self.kernel != "blocked":
            if state.model.has_clusters:
                key = streams.key(seed, "clusters", iteration)
                sweep_clusters(assignments, state.contexts, state.concentrations, key)
            key = streams.key(seed, "topics", iteration)
            if state.times is None:
                sweep_topics(assignments, state.cells, state.concentrations, state.topic_prior, key)
            else:
                concentrations, s = state.concentrations, state.topic_prior
                sweep_timed_topics(assignments, corpus, state.times, concentrations, s, key)
        _update_weights(state, seed, iteration)

    def _settle(self, corpus: Corpus, state: GibbsState, level: DocumentLevel, seed: int) -> GibbsState:
        """Sweeps that hold clusters and omega while topics are still as if at random; then documents given topics."""
        self._update_level(state, level, seed, -SETTLING, is_settled=False)
        with work("topics settle", SETTLING, "sweeps") as told:
            for iteration in range(1 - SETTLING, 1):
                level.move_tokens(state.assignments, corpus, state.concentrations, state.topic_prior, seed, iteration)
                self._update_level(state, level, seed, iteration, is_settled=False)
                told.advance()
        if not state.model.has_clusters:
            return state
        starts = sorted({1, min(self.start_clusters, corpus.n_documents)})
        return max((self._sort(state, level, n, seed) for n in starts), key=self._log_clustering)

    def _sort(self, state: GibbsState, level: DocumentLevel, n_clusters: int, seed: int) -> GibbsState:
        """A state with the topics of ``state``, from this number of clusters."""
        assignments, level = scatter(state.assignments, level, n_clusters, streams.generator(seed, "sort"))
        state = replace(state, assignments=assignments, concentrations=replace(state.concentrations), level=level)
        first = -SETTLING - SORTING * n_clusters
        with work(f"documents into clusters, {n_clusters} at first", SORTING, "sweeps") as told:
            for sweep in range(SORTING):
                self._update_level(state, level, seed, first + sweep, is_settled=sweep > 0)
                told.advance()
        return state

    def _log_clustering(self, state: GibbsState) -> float:
        assert state.level is not None
        priors = {**vars(_learnt_priors(state.model)), DOCUMENT: _omega_prior(state.model)}
        return log_clustering(state.assignments, state.level, state.concentrations, priors, state.contexts)

    def _update_level(
        self, state: GibbsState, level: DocumentLevel, seed: int, iteration: int, *, is_settled: bool = True
    ) -> None:
        omega_prior = _omega_prior(state.model) if is_settled else None
        with thread_budget(self.threads) as pool:
            level.move_all_but_tokens(
                state.assignments, state.contexts, state.concentrations, _learnt_priors(state.model), omega_prior, seed,
                iteration, pool, documents_move=is_settled, clusters_are_fixed=not state.model.has_clusters,
            )  # fmt: skip


def _state(
    model: TopicModel,
    corpus: Corpus,
    contexts: StackedContexts,
    assignments: Assignments,
    concentrations: Concentrations,
    log_joint: float,
) -> GibbsState:
    content = corpus.content
    cells = word_cells(content.indptr, content.indices, content.data, corpus.n_words)
    times = TokenTimes(corpus, model.contexts) if model.has_token_context else None
    return GibbsState(model, assignments, concentrations, log_joint, cells, contexts, times, model.topic_prior)


def _update_weights(state: GibbsState, seed: int, iteration: int) -> None:
    key, rng = streams.key(seed, "tables", iteration), streams.generator(seed, "weights", iteration)
    update_weights(
        state.assignments, state.concentrations, _learnt_priors(state.model), key, rng,
        clusters_are_fixed=not state.model.has_clusters,
    )  # fmt: skip


def _omega_prior(model: TopicModel) -> GammaPrior | None:
    return GammaPrior(*model.prior_of(DOCUMENT)) if model.document_concentration == "learn" else None


def _learnt_priors(model: TopicModel) -> ConcentrationPriors:
    learnt = model.learn_concentrations
    return ConcentrationPriors(**{role: GammaPrior(*model.prior_of(role)) for role in ROLES if role in learnt})


def _refuse_too_much(
    corpus: Corpus, n_clusters: int | None, n_topics: int, has_document_level: bool, has_times: bool
) -> None:
    """ValueError where a start has more tokens than are counted, or takes more memory than there is.

    ``n_clusters``: at most, None: as many as documents; ``has_document_level``: a DP at each document;
    ``has_times``: tokens have contexts.
    """
    n_tokens = corpus.n_tokens
    if n_tokens > _MOST_TOKENS:
        raise ValueError(f"the corpus has {n_tokens} tokens; the Gibbs engine takes at most {_MOST_TOKENS}")
    n_clusters = min(n_clusters or corpus.n_documents, corpus.n_documents)
    # tokens' topics, twice; counts of topics in clusters; weights; the corpus word by word
    n_bytes = 8 * n_tokens + 4 * n_clusters * n_topics + 24 * n_topics + 24 * corpus.content.nnz
    if has_times:
        n_bytes += 4 * corpus.n_words * n_topics
    if has_document_level:  # tokens listed by topic; counts of words in topics; tau and its tables
        n_bytes += 25 * n_tokens + 4 * corpus.n_words * (n_topics + TOPIC_PROPOSALS) + 24 * n_clusters * n_topics
    what = f"a Gibbs run of {n_tokens} tokens from {n_clusters} clusters and {n_topics} topics"
    memory.need(n_bytes, what, "start_topics and start_clusters may be lower")
