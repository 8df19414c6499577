"""Gibbs sampling of MC2 (ICML14): collapsed, blocked and interleaved kernels.

An iteration of each kernel, all of which leave the same posterior invariant:

* ``collapsed``: documents (``gibbs_clusters``), tokens (``gibbs_topics``), tables and concentrations
  (``gibbs_weights``);
* ``blocked``: the blocked move (``gibbs_blocked``), tables and concentrations;
* ``interleaved``: the blocked move, then all of ``collapsed``.

With ``token_contexts`` the model is npTOT (Dubey et al. 2013), and its sweep over tokens is ``timed_tokens``.
With a finite ``document_concentration`` documents have topic proportions of their own, and an iteration is
``own.documents``: tokens, splits and merges of topics, documents given tau, omega, splits and merges of clusters,
tables of documents, documents given these, tables and concentrations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import MOST_LABELS, MOST_PRIOR, choice, prior_count, truth_value, whole
from mc2core.base.described import Stored, check
from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.families import Family
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import Engine, State, context_families
from mc2core.inference.gibbs.blocked import move_blocked
from mc2core.inference.gibbs.collapsed import sweep_clusters, sweep_topics
from mc2core.inference.gibbs.document_level.state import SETTLING, SORTING, OwnDocuments, log_clustering, scatter
from mc2core.inference.gibbs.joint import log_joint
from mc2core.inference.gibbs.limits import check_token_contexts, refuse_too_much
from mc2core.inference.gibbs.state import (
    Assignments,
    Concentrations,
    WordCells,
    document_start,
    start_assignments,
    word_cells,
    words_of_topics,
)
from mc2core.inference.gibbs.token_contexts import TokenTimes, sweep_timed_topics
from mc2core.inference.gibbs.weights import ConcentrationPriors, GammaPrior, draw_topic_prior, update_weights
from mc2core.models.hyperparameters import ROLES, WORDS, concentration_priors_of, learnt_roles, omega_of
from mc2core.posterior import Sample, SparseRows

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
    assignments : Assignments
        z, l, epsilon and their counts.
    concentrations : Concentrations
        alpha, v, eta now.
    log_joint : float
        ln p(w, x, z, l | epsilon, alpha, v, eta) in nats, with tau, psi, phi and pi integrated out: the CRP of
        the clusters, the Dirichlet-multinomials of topics in clusters and of words in topics, and the
        marginal likelihood of the contexts (base measures included). Where documents have proportions of their
        own it is given tau and omega too, with theta integrated out.
    cells, contexts, times
        The corpus word by word, its contexts as clusters emit them, and as tokens do (None unless ``token_contexts``):
        follow from the corpus, not stored.
    own : OwnDocuments or None
        tau and omega where documents have proportions of their own.
    topic_prior : float
        s now; ``is_prior_learnt`` says whether it moves.
    """

    assignments: Assignments
    concentrations: Concentrations
    log_joint: float
    cells: WordCells
    contexts: StackedContexts
    times: TokenTimes | None
    topic_prior: float
    is_prior_learnt: bool
    own: OwnDocuments | None = None

    @property
    def cluster(self) -> np.ndarray:  # type: ignore[override]
        """(J,) int32: z."""
        return self.assignments.cluster

    @property
    def topic(self) -> np.ndarray:
        """(n_tokens,) int32: l, tokens in CSR order, a count of c giving c tokens in a row."""
        return self.assignments.topic

    def arrays(self) -> dict[str, np.ndarray]:
        concentrations = [getattr(self.concentrations, role) for role in ROLES]
        return {
            "cluster": self.assignments.cluster,
            "topic": self.assignments.topic,
            "topic_weights": self.assignments.topic_weights,
            "scalars": np.array([self.assignments.rest, *concentrations, self.log_joint]),
            **({"topic_prior": np.array(self.topic_prior)} if self.is_prior_learnt else {}),
            **({} if self.own is None else self.own.arrays()),
        }


class Gibbs(Engine):
    """Gibbs sampler of MC2 (ICML14, section 3.2).

    Parameters
    ----------
    group_concentration : float in [1e-10, 1e10], default 1.0
        alpha of ICML14, of document clusters; the start where it is learnt.
    table_concentration : float in [1e-10, 1e10], default 1.0
        v, within a cluster; the start where it is learnt.
    topic_concentration : float in [1e-10, 1e10], default 1.0
        eta, of topics; the start where it is learnt.
    learn_concentrations : bool or list of {"group", "table", "topic", "words"}, default True
        Which concentrations are sampled; True is the first three. Words is topic_prior.
    document_concentration : float in [1e-10, 1e10] or "inf" or "learn", default "inf"
        omega: a document's topic proportions are drawn from DP(omega, those of its cluster). "inf" is MC2, whose
        documents share their cluster's proportions; "learn" samples omega, from 10 on. Not with the kernel "blocked";
        the other two are then the same. With one_cluster_per_document it is the HDP of three levels.
    concentration_priors : dict of {"group", "table", "topic", "document", "words"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each concentration that is learnt; (1, 1) where not given.
    topic_prior : float in [1e-10, 1e10], default 0.01
        s, of the symmetric Dirichlet prior of a topic's words; the start where it is learnt.
    contexts : mapping of context names to families or None, default None
        Families, or their settings as a plan holds them; the corpus must have contexts of these names.
    kernel : {"collapsed", "blocked", "interleaved"}, default "interleaved"
        Collapsed sweeps, blocked moves, or both in turn.
    start_topics : int in [1, 2147483647] or None, default None
        Topics of the starting state, at most; None: 50, with a document_concentration 100.
    start_clusters : int in [1, 2147483647], default 20
        Document clusters of the starting state, at most. With a document_concentration topics settle in one cluster;
        then clusters are found from one and from this number at random, and the likelier of both are the start.
    one_cluster_per_document : bool, default False
        Hold every document in a cluster of its own, which makes the model the HDP of Teh et al. (2006). Contexts then
        say nothing of the words, and alpha plays no part.
    token_contexts : bool, default False
        Let topics emit the context with every token, which makes the HDP the npTOT of Dubey et al. (2013). Needs
        one_cluster_per_document, the kernel "collapsed" and exactly one context, of the family normal_gamma: the
        document's time, which each of its tokens has. A missing one says nothing. The model keeps no context.
    threads : int in [1, inf), default 1
        Threads of the blocked move, of documents' tables and of weights of clusters; the result does not depend on it.

    Raises
    ------
    ValueError
        A setting outside its range.
    """  # noqa: E501

    name: ClassVar[str] = "gibbs"
    keeps_samples: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 60

    def __init__(
        self,
        *,
        group_concentration: float = 1.0,
        table_concentration: float = 1.0,
        topic_concentration: float = 1.0,
        learn_concentrations: Any = True,
        document_concentration: float | str = "inf",
        concentration_priors: Mapping[str, Any] | None = None,
        topic_prior: float = 0.01,
        contexts: Mapping[str, Family] | None = None,
        kernel: str = "interleaved",
        start_topics: int | None = None,
        start_clusters: int = 20,
        one_cluster_per_document: bool = False,
        token_contexts: bool = False,
        threads: int = 1,
    ) -> None:
        self.group_concentration = prior_count("group_concentration", group_concentration)
        self.table_concentration = prior_count("table_concentration", table_concentration)
        self.topic_concentration = prior_count("topic_concentration", topic_concentration)
        self.learn_concentrations = learnt_roles(learn_concentrations, more=(WORDS,))
        self.document_concentration = omega_of(document_concentration)
        self.concentration_priors = concentration_priors_of(concentration_priors, ("document", WORDS))
        self.topic_prior = prior_count("topic_prior", topic_prior)
        self.contexts = context_families(contexts)
        self.kernel = choice("kernel", kernel, KERNELS)
        if self.document_concentration != "inf" and self.kernel == "blocked":
            raise ValueError(
                "kernel is 'blocked'; with a document_concentration it must be 'collapsed' or 'interleaved'"
            )
        if start_topics is None:
            start_topics = 50 if self.document_concentration == "inf" else 100
        self.start_topics = whole("start_topics", start_topics, most=MOST_LABELS)
        self.start_clusters = whole("start_clusters", start_clusters, most=MOST_LABELS)
        self.one_cluster_per_document = truth_value("one_cluster_per_document", one_cluster_per_document)
        self.finds = ("topics",) if self.one_cluster_per_document else ("clusters", "topics")
        self.token_contexts = truth_value("token_contexts", token_contexts)
        if self.token_contexts:
            check_token_contexts(self.kernel, self.one_cluster_per_document, self.document_concentration, self.contexts)
        self.threads = whole("threads", threads)

    @property
    def cluster_contexts(self) -> dict[str, Family]:
        return {} if self.token_contexts else self.contexts

    # -- the protocol --------------------------------------------------------------------------------------
    def init(self, corpus: Corpus, seed: int) -> GibbsState:
        concentrations = Concentrations(self.group_concentration, self.table_concentration, self.topic_concentration)
        has_own = self.document_concentration != "inf"
        n_clusters = None if self.one_cluster_per_document else self.start_clusters
        refuse_too_much(corpus, n_clusters, self.start_topics, has_own, self.token_contexts)
        contexts, rng = StackedContexts(corpus, self.cluster_contexts), streams.generator(seed, "start")
        first = 1 if has_own and n_clusters else n_clusters
        assignments = start_assignments(corpus, contexts, first, self.start_topics, rng)
        state = self._state(corpus, contexts, assignments, concentrations, 0.0)
        if has_own:
            state.own = OwnDocuments.start(assignments, self.document_concentration)
            state = self._settle(corpus, state, state.own, seed)
        else:
            self._update_weights(state, seed, 0)
        state.log_joint = self.log_joint(corpus, state)
        return state

    def step(self, corpus: Corpus, state: GibbsState, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        assignments, own = state.assignments, state.own
        if own is not None:
            own.move_tokens(assignments, corpus, state.concentrations, state.topic_prior, seed, iteration)
            self._update_own(state, own, seed, iteration)
        else:
            self._step_shared(corpus, state, seed, iteration)
        if state.is_prior_learnt:
            prior = GammaPrior(*self.concentration_priors.get(WORDS, (1.0, 1.0)))
            key, rng = streams.key(seed, "words", iteration), streams.generator(seed, "topic_prior", iteration)
            words = words_of_topics(state.cells, assignments.topic, assignments.n_topics)
            state.topic_prior = draw_topic_prior(state.topic_prior, words, prior, key, rng)
        state.log_joint = self.log_joint(corpus, state)
        return {
            "clusters": assignments.n_clusters,
            "topics": assignments.n_topics,
            "log_joint": state.log_joint,
            "group_concentration": state.concentrations.group,
            "table_concentration": state.concentrations.table,
            "topic_concentration": state.concentrations.topic,
            **({} if own is None else {"document_concentration": own.omega}),
            **({"topic_prior": state.topic_prior} if state.is_prior_learnt else {}),
        }

    def sample(self, corpus: Corpus, state: State) -> Sample:
        assert isinstance(state, GibbsState)
        assignments, v = state.assignments, state.concentrations.table
        n_documents = len(assignments.cluster)
        # E[tau_k | n_k or t_k, epsilon]: the topics in use, renormalised, and the mass of all others
        own = state.own
        mass = (assignments.n_km if own is None else own.tables) + v * assignments.topic_weights
        new = v * assignments.rest
        total = mass.sum(axis=1, keepdims=True)
        alpha = state.concentrations.group
        return Sample(
            cluster_weights=assignments.n_k / n_documents,
            new_cluster_weight=1.0 if self.one_cluster_per_document else alpha / (n_documents + alpha),
            topic_given_cluster=mass / total,
            new_topic_weight=new / (total[:, 0] + new),
            topic_words=sp.csr_matrix(words_of_topics(state.cells, assignments.topic, assignments.n_topics)),
            topic_prior=state.topic_prior,
            topic_weights=assignments.topic_weights.copy(),
            table_concentration=v,
            contexts=SparseRows.of(state.contexts.natural(assignments.cluster, assignments.n_clusters)),
            cluster=assignments.cluster.copy(),
            log_joint=state.log_joint,
            document_concentration=math.inf if own is None else own.omega,
        )

    def restore(self, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> GibbsState:
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
        if self.token_contexts and (cluster != np.arange(corpus.n_documents)).any():
            raise ValueError("'cluster' does not hold document j in cluster j, as one_cluster_per_document does")
        assignments = Assignments(cluster, topic, document_start(corpus), weights, rest)
        assignments.count()
        concentrations = Concentrations(group, table, topic_concentration)
        contexts = StackedContexts(corpus, self.cluster_contexts)
        state = self._state(corpus, contexts, assignments, concentrations, log_joint)
        if state.is_prior_learnt:
            check(arrays, {"topic_prior": Stored("f", "", above=0, most=MOST_PRIOR)}, {})
            state.topic_prior = float(arrays["topic_prior"])
        if self.document_concentration != "inf":
            state.own = OwnDocuments.restore(arrays, assignments)
        return state

    # -- inside --------------------------------------------------------------------------------------------
    def _state(
        self,
        corpus: Corpus,
        contexts: StackedContexts,
        assignments: Assignments,
        concentrations: Concentrations,
        log_joint: float,
    ) -> GibbsState:
        content = corpus.content
        cells = word_cells(content.indptr, content.indices, content.data, corpus.n_words)
        times = TokenTimes(corpus, self.contexts) if self.token_contexts else None
        is_learnt = WORDS in self.learn_concentrations
        return GibbsState(assignments, concentrations, log_joint, cells, contexts, times, self.topic_prior, is_learnt)

    def _step_shared(self, corpus: Corpus, state: GibbsState, seed: int, iteration: int) -> None:
        """An iteration of MC2, whose documents share the proportions of their cluster."""
        assignments = state.assignments
        if self.kernel != "collapsed":
            with thread_budget(self.threads) as pool:
                move_blocked(
                    assignments, corpus.content, state.cells, state.contexts, state.concentrations, state.topic_prior,
                    seed, iteration, pool, clusters_are_fixed=self.one_cluster_per_document,
                )  # fmt: skip
        if self.kernel != "blocked":
            if not self.one_cluster_per_document:
                key = streams.key(seed, "clusters", iteration)
                sweep_clusters(assignments, state.contexts, state.concentrations, key)
            key = streams.key(seed, "topics", iteration)
            if state.times is None:
                sweep_topics(assignments, state.cells, state.concentrations, state.topic_prior, key)
            else:
                concentrations, s = state.concentrations, state.topic_prior
                sweep_timed_topics(assignments, corpus, state.times, concentrations, s, key)
        self._update_weights(state, seed, iteration)

    def _update_weights(self, state: GibbsState, seed: int, iteration: int) -> None:
        key, rng = streams.key(seed, "tables", iteration), streams.generator(seed, "weights", iteration)
        update_weights(
            state.assignments, state.concentrations, self._learnt_priors(), key, rng,
            clusters_are_fixed=self.one_cluster_per_document,
        )  # fmt: skip

    def _settle(self, corpus: Corpus, state: GibbsState, own: OwnDocuments, seed: int) -> GibbsState:
        """Sweeps that hold clusters and omega while topics are still as if at random; then documents given topics."""
        self._update_own(state, own, seed, -SETTLING, is_settled=False)
        with work("topics settle", SETTLING, "sweeps") as told:
            for iteration in range(1 - SETTLING, 1):
                own.move_tokens(state.assignments, corpus, state.concentrations, state.topic_prior, seed, iteration)
                self._update_own(state, own, seed, iteration, is_settled=False)
                told.advance()
        if self.one_cluster_per_document:
            return state
        starts = sorted({1, min(self.start_clusters, corpus.n_documents)})
        return max((self._sort(state, own, n, seed) for n in starts), key=self._log_clustering)

    def _sort(self, state: GibbsState, own: OwnDocuments, n_clusters: int, seed: int) -> GibbsState:
        """A state with the topics of ``state``, from this number of clusters."""
        assignments, own = scatter(state.assignments, own, n_clusters, streams.generator(seed, "sort"))
        state = replace(state, assignments=assignments, concentrations=replace(state.concentrations), own=own)
        first = -SETTLING - SORTING * n_clusters
        with work(f"documents into clusters, {n_clusters} at first", SORTING, "sweeps") as told:
            for sweep in range(SORTING):
                self._update_own(state, own, seed, first + sweep, is_settled=sweep > 0)
                told.advance()
        return state

    def _log_clustering(self, state: GibbsState) -> float:
        assert state.own is not None
        priors = {**vars(self._learnt_priors()), "document": self._omega_prior()}
        return log_clustering(state.assignments, state.own, state.concentrations, priors, state.contexts)

    def _update_own(
        self, state: GibbsState, own: OwnDocuments, seed: int, iteration: int, *, is_settled: bool = True
    ) -> None:
        omega_prior = self._omega_prior() if is_settled else None
        with thread_budget(self.threads) as pool:
            own.move_all_but_tokens(
                state.assignments, state.contexts, state.concentrations, self._learnt_priors(), omega_prior, seed,
                iteration, pool, documents_move=is_settled, clusters_are_fixed=self.one_cluster_per_document,
            )  # fmt: skip

    def _omega_prior(self) -> GammaPrior | None:
        prior = self.concentration_priors.get("document", (1.0, 1.0))
        return GammaPrior(*prior) if self.document_concentration == "learn" else None

    def _learnt_priors(self) -> ConcentrationPriors:
        priors, learnt = self.concentration_priors, self.learn_concentrations
        return ConcentrationPriors(**{role: GammaPrior(*priors[role]) for role in ROLES if role in learnt})

    def log_joint(self, corpus: Corpus, state: GibbsState) -> float:
        """ln p(w, x, z, l | epsilon, alpha, v, eta); see :class:`GibbsState`."""
        return log_joint(
            state.assignments, state.cells, state.contexts, state.concentrations, state.topic_prior, corpus.n_words,
            state.own, state.times, clusters_are_fixed=self.one_cluster_per_document,
        )  # fmt: skip
