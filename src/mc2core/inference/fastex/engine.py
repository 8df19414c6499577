"""FastEx (NIPS12): Markov chain Monte Carlo for finite mixtures with thousands of clusters."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base import memory
from mc2core.base.checks import MAX_LABELS, choice, finite, whole
from mc2core.base.settings import option
from mc2core.base.storage import Stored, check_arrays
from mc2core.compute import streams
from mc2core.compute.signatures import n_signature_words
from mc2core.compute.threads import MAX_THREADS, thread_budget
from mc2core.corpus import Corpus
from mc2core.inference.base import Engine, State
from mc2core.inference.fastex.components import (
    GAUSS_WISHART,
    GAUSSIAN,
    MULTINOMIAL,
    POISSON,
    ChainSettings,
    ProposalSettings,
)
from mc2core.inference.fastex.exact import ExactState, table_bytes
from mc2core.inference.fastex.gauss_wishart import GaussWishartState
from mc2core.inference.fastex.hashed import HashedState
from mc2core.inference.fastex.limits import refuse_prior_sum, refuse_scores, refuse_squares
from mc2core.inference.fastex.neighbours import NeighbourState, has_rare_words
from mc2core.inference.fastex.state import MixtureState
from mc2core.models import Mixture, Model
from mc2core.posterior import Sample, SparseRows

#: number of each component family, by the setting ``component`` of the model
COMPONENTS = {
    "multinomial": MULTINOMIAL,
    "poisson": POISSON,
    "gaussian": GAUSSIAN,
    "gauss_wishart": GAUSS_WISHART,
}
#: class of states by proposal; Gauss-Wishart components have a class of their own
STATES: dict[str, type[MixtureState]] = {one.proposal: one for one in (HashedState, ExactState, NeighbourState)}
#: settings that are used only by hashed proposals, and only by neighbour proposals
_OF_HASH = ("bits", "projection", "failure_probability", "inverse_temperature", "documents_per_round")
_OF_NEIGHBOURS = ("n_neighbours", "list_budget", "n_proposals", "uniform_share", "exact_sweeps")
#: limits of "auto" for exact scoring: memory of the tables, and number of clusters
MAX_EXACT_BYTES = 2**31
MAX_EXACT_CLUSTERS = 2000
#: limit of "auto" for neighbour proposals: memory of the chain
MAX_NEIGHBOUR_BYTES = 2**34
#: Metropolis-Hastings steps per document and sweep with the balanced projection; the paper uses one step
TRIES_PER_VISIT = 2


class MixtureEngine(Engine):
    """Base class of the engines that sample the clusters of a finite mixture."""

    models = (Mixture,)
    keeps_samples: ClassVar[bool] = False
    default_iterations: ClassVar[int] = 60
    several_chains = 2

    @abstractmethod
    def _settings(self, model: Mixture) -> ChainSettings:
        """Return the settings of a chain for ``model``."""

    @abstractmethod
    def _states(self, model: Mixture, corpus: Corpus, stored: Collection[str]) -> type[MixtureState]:
        """Return the class of the states of a chain.

        ``stored`` contains the names of the arrays of a checkpoint; it is empty for a new chain.
        """

    def _checked(self, model: Mixture, corpus: Corpus, stored: Collection[str] = ()) -> type[MixtureState]:
        """Return the result of :meth:`_states`.

        Raises ValueError if the corpus is not suitable or too large, before memory is allocated.
        """
        if corpus.n_tokens == 0:
            raise ValueError(f"{type(self).__name__} clusters documents by their words, but the corpus has none")
        settings, kind = self._settings(model), self._states(model, corpus, stored)
        kind.refuse(corpus, settings)
        refuse_prior_sum("topic_word_prior", model.topic_word_prior, corpus.n_words, "words")
        refuse_prior_sum("weight_prior", model.weight_prior, model.most_clusters, "clusters")
        refuse_squares(corpus, settings)
        return kind

    def need_memory(self, model: Mixture, corpus: Corpus, chains: int = 1) -> None:
        n_bytes = chains * self._checked(model, corpus).least_bytes(corpus, self._settings(model))
        memory.need(n_bytes, f"a run of {chains} chains of {model.n_clusters} clusters", "use fewer chains")

    def init(self, model: Mixture, corpus: Corpus, seed: int) -> State:
        """Return an initial state with random clusters. Raises ValueError if the settings do not fit the corpus."""
        kind = self._checked(model, corpus)
        cluster = streams.generator(seed, "fastex init").integers(
            0, model.most_clusters, corpus.n_documents, dtype=np.int32
        )
        with thread_budget(self.threads) as pool:
            state = kind.start(corpus, self._settings(model), cluster, seed, pool)
        state.model = model
        return state

    def restore(self, model: Mixture, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> State:
        kind, settings = self._checked(model, corpus, arrays), self._settings(model)
        sizes = {"J": corpus.n_documents, "V": corpus.n_words, "K": model.most_clusters}
        sizes["N"] = settings.proposals.n_neighbours
        check_arrays(arrays, {"cluster": Stored("i", "J", below="K"), **kind.described}, sizes)
        with thread_budget(self.threads):
            state = kind.restore(corpus, settings, arrays)
        state.model = model
        return state

    def step(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float]:
        """Run one sweep and return its trace, including the proposed and accepted moves per document."""
        assert isinstance(state, MixtureState)
        moves, key = np.zeros(2, np.int64), streams.key(seed, "fastex sweep", iteration)
        with thread_budget(self.threads) as pool:
            state.iterate(corpus, iteration, key, moves, pool)
        in_use, log_joint = int(np.count_nonzero(state.sizes)), state.log_joint
        if not math.isfinite(log_joint):
            refuse_scores(state.settings, "a cluster")
        return {
            "clusters": in_use,
            "topics": in_use,
            "proposed": moves[0] / corpus.n_documents,
            "accepted": moves[1] / corpus.n_documents,
            "log_joint": log_joint,
        }

    def sample(self, corpus: Corpus, state: State) -> Sample:
        """Return a sample of the clusters in use; each cluster has one topic with the word counts of its documents."""
        assert isinstance(state, MixtureState)
        used = np.flatnonzero(state.sizes)
        label = np.zeros(state.model.most_clusters, np.int64)
        label[used] = np.arange(len(used))
        rows = label[state.cluster]
        members = sp.csr_matrix(
            (np.ones(corpus.n_documents, np.int64), (rows, np.arange(corpus.n_documents))),
            shape=(len(used), corpus.n_documents),
        )
        weights = state.sizes[used] + state.model.weight_prior
        return Sample(
            cluster_weights=weights / weights.sum(),
            new_cluster_weight=0.0,
            topic_given_cluster=sp.identity(len(used), format="csr"),
            new_topic_weight=np.zeros(len(used)),
            topic_words=sp.csr_matrix(members @ corpus.content),
            topic_word_prior=state.model.topic_word_prior,
            topic_weights=np.full(len(used), 1.0 / len(used)),
            table_concentration=1.0,
            contexts=SparseRows.from_dense(np.zeros((len(used), 0))),
            cluster=rows.astype(np.int32),
            log_joint=state.log_joint,
        )


class FastEx(MixtureEngine):
    """Markov chain Monte Carlo for mixtures with many clusters (NIPS12).

    Each sweep visits every document once, in the order of the corpus. The setting ``proposal`` determines which
    clusters are proposed for a document:

    - "exact" scores all clusters (collapsed Gibbs sampling).
    - "neighbours" proposes the clusters of similar documents. These are found once, before the first sweep, by shared
      rare words (our variant).
    - "hash" proposes clusters whose bit signature is similar to the signature of the document, as in the paper.

    Proposals of "neighbours" and "hash" are accepted or rejected by Metropolis-Hastings. All proposals leave the
    posterior invariant, up to rounding in float32. "hash" has two exceptions: ``documents_per_round`` greater than 1,
    and the first 32 sweeps with the projection "balanced", in which the projection is still being fitted.

    Parameters
    ----------
    bits : {8, 16, 32, 64, 128, 256}, default 128
        For "hash": length of a signature in bits. The paper uses 32 bits; with 128 bits, fewer unlikely clusters are
        proposed.
    projection : {"balanced", "paper"}, default "balanced"
        For "hash": vectors that are hashed. "balanced" centres and scales documents and parameters before hashing, and
        makes two moves per visit. "paper" hashes them as in the paper, and makes one move per visit.
    proposal : {"hash", "exact", "neighbours", "auto"}, default "auto"
        Method by which clusters are proposed. "auto" chooses "exact" up to 2,000 clusters if its tables need at most
        2 GiB. For more clusters, "auto" chooses "neighbours" under three conditions: components are multinomial, half
        of the documents have a word that occurs in 2 to ``list_budget`` documents, and at most 16 GiB of memory are
        needed. Otherwise, "auto" chooses "exact" if its tables need at most 2 GiB, and "hash" if not. The choice
        depends only on the corpus and the settings. Settings for other proposals must not be set.
    failure_probability : float in (0, 1) or None, default None
        For "hash": if set, an upper bound replaces the estimates of the scores, and the bound fails with this
        probability (NIPS12, eq. 15). With None, the estimates are used.
    inverse_temperature : float in (0, 1], default 0.8
        For "hash": power to which the proposal distribution is raised. The paper uses 1. Smaller values make the
        sampler less sensitive to errors of the estimated scores.
    documents_per_round : int in [1, inf), default 1
        For "hash": number of documents that are sampled at once. With 1, the chain is exact and uses one thread. With
        larger values, the documents of a round are sampled from the same statistics on all threads, as in NIPS12,
        section 5. This is approximate, so a round should have far fewer documents than the corpus.
    n_neighbours : int in [1, inf), default 8
        For "neighbours": number of similar documents that are stored per document. Each needs 4 bytes.
    list_budget : int in [1, 2147483647], default 4000
        For "neighbours": limit on the search for similar documents. For each word of a document, rarest first, the
        search reads the list of the documents that contain the word. It reads at most this number of entries in total.
    n_proposals : int in [1, 1000], default 4
        For "neighbours": number of Metropolis-Hastings moves per visit.
    uniform_share : float in (0, 1], default 0.05
        For "neighbours": fraction of proposals that are drawn uniformly from all clusters.
    exact_sweeps : list of int in [1, inf), default (5,)
        For "neighbours": sweeps that score all clusters, numbered from 1.
    threads : int in [1, 1024], default 1
        Number of threads. The result does not depend on it. Several threads are used by "neighbours" and by "hash" with
        several documents per round. Exact sweeps use two threads if there are at least 100,000 clusters.

    Raises
    ------
    ValueError
        If a setting is outside its range. :meth:`init` and :meth:`step` raise it if memory is insufficient or scores
        are not finite.

    See Also
    --------
    mc2core.models.Mixture : the model of this engine.

    Examples
    --------
    >>> import mc2core
    >>> from mc2core.inference import FastEx
    >>> from mc2core.models import Mixture
    >>> corpus = mc2core.Corpus.from_texts(["apple tree", "tree leaf apple", "iron nail", "nail iron forge"])
    >>> fit = mc2core.fit(corpus, Mixture(n_clusters=2), FastEx(), iterations=5)
    >>> fit.posterior.cluster.shape
    (4,)
    """

    name: ClassVar[str] = "fastex"
    description: ClassVar[str] = "Markov chain Monte Carlo (FastEx; Ahmed et al., 2012)"

    def __init__(
        self,
        *,
        bits: int = 128,
        projection: str = "balanced",
        proposal: str = "auto",
        failure_probability: float | None = None,
        inverse_temperature: float = 0.8,
        documents_per_round: int = 1,
        n_neighbours: int = 8,
        list_budget: int = 4000,
        n_proposals: int = 4,
        uniform_share: float = 0.05,
        exact_sweeps: Sequence[int] = (5,),
        threads: int = 1,
    ) -> None:
        self.bits = whole("bits", bits)
        n_signature_words(self.bits)
        self.projection = choice("projection", projection, ("balanced", "paper"))
        self.proposal = choice("proposal", proposal, (*STATES, "auto"))
        self.failure_probability = (
            None if failure_probability is None else _fraction("failure_probability", failure_probability)
        )
        if self.failure_probability == 1.0:
            raise ValueError("failure_probability is 1; it must be less than 1")
        self.inverse_temperature = _fraction("inverse_temperature", inverse_temperature)
        self.threads = whole("threads", threads, most=MAX_THREADS)
        self.documents_per_round = whole("documents_per_round", documents_per_round)
        self.n_neighbours = whole("n_neighbours", n_neighbours)
        self.list_budget = whole("list_budget", list_budget, most=MAX_LABELS)
        self.n_proposals = whole("n_proposals", n_proposals, most=1000)
        self.uniform_share = _fraction("uniform_share", uniform_share)
        self.exact_sweeps = _numbers_of_sweeps("exact_sweeps", exact_sweeps)
        if self.proposal != "auto":
            self._refuse_idle(self.proposal)

    def _refuse_idle(self, proposal: str, reads_budget: bool = False) -> None:
        """Raise ValueError if a setting has been set that only another proposal uses.

        ``reads_budget`` allows ``list_budget``, because the choice of "auto" depends on it.
        """
        why = f"; 'auto' chooses {proposal!r} for this corpus" if self.proposal == "auto" else ""
        for kind, names in (("hash", _OF_HASH), ("neighbours", _OF_NEIGHBOURS)):
            if proposal != kind:
                idle = [name for name in names if not (reads_budget and name == "list_budget")]
                self.refuse_idle(dict.fromkeys(idle, option("proposal", kind) + why))

    def supports(self, model: Model) -> None:
        super().supports(model)
        assert isinstance(model, Mixture)
        if self.proposal == "neighbours" and model.component != "multinomial":
            raise ValueError(f"proposal='neighbours' needs component='multinomial', not {model.component!r}")
        if model.component == "gauss_wishart" and self.proposal not in ("auto", "exact"):
            raise ValueError(
                f"component='gauss_wishart' needs proposal='exact', not {self.proposal!r}, because "
                "after each move, all parameters of two clusters would have to be hashed again"
            )
        if model.component == "gauss_wishart":
            self.refuse_idle(dict.fromkeys((*_OF_HASH, *_OF_NEIGHBOURS), "another component than 'gauss_wishart'"))
        if model.component != "multinomial":
            self.refuse_idle(dict.fromkeys(_OF_NEIGHBOURS, option("component", "multinomial")))

    def chosen_proposal(self, model: Mixture, corpus: Corpus) -> str:
        """Return the proposal of the setting or, for "auto", the proposal that is chosen for this corpus."""
        return choose_proposal(corpus, self._settings(model)) if self.proposal == "auto" else self.proposal

    def to_warm(self, model: Mixture, corpus: Corpus) -> tuple[Engine, Sequence[int]]:
        """Return an engine and iterations as :meth:`Engine.to_warm`.

        The engine has the proposal that "auto" chooses. The iterations include one exact sweep.
        """
        engine = copy(self)
        engine.proposal = self.chosen_proposal(model, corpus)
        return engine, (1, 2, *self.exact_sweeps[:1])

    def _settings(self, model: Mixture) -> ChainSettings:
        return ChainSettings(
            model.most_clusters, model.topic_word_prior, model.weight_prior, model.rate_prior,
            COMPONENTS[model.component],
            self.bits, self.projection == "balanced", self.failure_probability, self.inverse_temperature,
            TRIES_PER_VISIT if self.projection == "balanced" else 1, self.documents_per_round,
            ProposalSettings(
                self.n_neighbours, self.list_budget, self.n_proposals, self.uniform_share, tuple(self.exact_sweeps)
            ),
        )  # fmt: skip

    def _states(self, model: Mixture, corpus: Corpus, stored: Collection[str]) -> type[MixtureState]:
        """Return the class of states as :meth:`MixtureEngine._states`.

        With "auto", a resumed chain uses the proposal of its checkpoint.
        """
        if model.component == "gauss_wishart":
            return GaussWishartState
        if self.proposal == "auto" and stored:
            return next((one for one in STATES.values() if one.described and {*one.described} <= {*stored}), ExactState)
        chosen = self.chosen_proposal(model, corpus)
        self._refuse_idle(chosen, reads_budget=model.most_clusters > MAX_EXACT_CLUSTERS)
        return STATES[chosen]


def choose_proposal(corpus: Corpus, settings: ChainSettings) -> str:
    """Return the proposal that "auto" chooses, which depends only on the corpus and the settings."""
    if settings.component == GAUSS_WISHART:
        return ExactState.proposal
    is_small = table_bytes(corpus, settings.n_clusters) <= MAX_EXACT_BYTES
    if is_small and settings.n_clusters <= MAX_EXACT_CLUSTERS:
        return ExactState.proposal
    has_neighbours = settings.component == MULTINOMIAL and has_rare_words(corpus, settings.proposals.list_budget)
    if has_neighbours and NeighbourState.least_bytes(corpus, settings) <= MAX_NEIGHBOUR_BYTES:
        return NeighbourState.proposal
    return ExactState.proposal if is_small else HashedState.proposal


def _fraction(name: str, value: float) -> float:
    number = finite(name, value)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"{name} is {value!r}; it must lie between 0 and 1")
    return number


def _numbers_of_sweeps(name: str, value: Any) -> list[int]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} is {value!r}; it must be a list of numbers of sweeps, from 1")
    return [whole(f"an entry of {name}", one) for one in value]
