"""What SVI-MC2 knows between mini-batches: parameters of q(global variables), their divergences, and what steps share.

q(beta) are sticks, or a Dirichlet where the number of clusters is told, q(psi_m) Dirichlet and q(phi_k) conjugate.
Concentrations that are learnt have Gamma posteriors. There are three kinds of state, which add what they know of
clusters and topics and do the step of a mini-batch: tables (:mod:`mc2core.inference.svi.tables`), direct assignment
(:mod:`mc2core.inference.svi.direct`) and the document level (:mod:`mc2core.inference.svi.document_level`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.base.described import Stored, check
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import State
from mc2core.inference.svi import sticks
from mc2core.inference.svi.local import (
    WORD_BLOCK,
    Assign,
    Batch,
    DocumentStatistics,
    Expectations,
    assign_documents,
    fill_log_psi,
    likeliest,
)
from mc2core.inference.svi.observed import ObservedTopics
from mc2core.models import MC2
from mc2core.models.base import ROLES

GROUP, TABLE, TOPIC = range(3)
# documents of a mini-batch by rule
_BATCH = 400
_SMALLEST_SHRINK = 1e-60
_ROW_BLOCK = 1024
# a topic is in use when half a token is expected in it
_MIN_TOKENS = 0.5


class RunSettings(NamedTuple):
    """The engine's settings that states follow, resolved for a corpus.

    n_clusters, n_topics : int, the truncations K and M
    n_tables : int or None, T; None without tables
    batch_size : int or None, documents of a mini-batch; None is the whole corpus
    is_joint : bool, whether all globals of tables step at once
    total_samples : int or None, documents that mini-batches stand for (:mod:`mc2core.inference.svi.stream`); None: as
    many
        as the corpus has
    """

    n_clusters: int
    n_tables: int | None
    n_topics: int
    batch_size: int | None
    is_joint: bool
    total_samples: int | None = None


@dataclass
class Assignments:
    """A guess at who sits where in the documents that were looked at, as counts.

    cluster : (n,) int, -1 where the document has none
    topic_words : (V, M) float64, tokens of each word in each topic; of observations (P, M), see :class:`Globals`
    table_topic : (K, T) int, the topic that a table serves
    n_kt : (K, T) float64, tokens at each table
    """

    cluster: np.ndarray
    topic_words: np.ndarray
    table_topic: np.ndarray
    n_kt: np.ndarray


@dataclass
class Start:
    """Assignments as statistics of the whole corpus, clusters in order of size, as sticks prefer them.

    scale : float, documents of the corpus for each that was looked at
    order : (K,) int, the assignments' number of each cluster
    n_k : (K,) float64, documents of each cluster, scaled
    contexts : (D, K) float64, statistics of each cluster's contexts, scaled
    cluster : (J,) int32, -1 where a document has none
    assignments : Assignments, neither scaled nor ordered
    observed : ObservedTopics or None, see :class:`Globals`
    """

    scale: float
    order: np.ndarray
    n_k: np.ndarray
    contexts: np.ndarray
    cluster: np.ndarray
    assignments: Assignments
    observed: ObservedTopics | None


class BatchStep(NamedTuple):
    """What a step of a mini-batch went by.

    shares : (B, K) float64, mu_jk under the globals before the step; (B,) int32, the likeliest clusters, where the
        shares stayed with other processes
    documents : DocumentStatistics under the same
    change : nats by which the new globals change the bound of these documents, posteriors and statistics being fixed
    """

    shares: np.ndarray
    documents: DocumentStatistics
    change: Callable[[], float]


@dataclass(kw_only=True)
class Globals(State):
    """Parameters of the global posteriors, the latest cluster of every document, and the steps that change them.

    Attributes
    ----------
    model : MC2
    settings : RunSettings
    group_weights : (2, sticks) float64
        q(beta): see :mod:`mc2core.inference.svi.sticks`; without tables :mod:`mc2core.inference.svi.group_weights`.
    topic_words : (V, M) float64, >= 0
        Expected tokens of word w in topic m, divided by ``shrink``; q(psi_m) = Dir(s + shrink topic_words[:, m]).
        Where topics emit observations (P, M), any numbers: expected sums of their statistics, divided likewise.
    context_counts : (D, K) float64
        Expected statistics of each cluster's contexts, side by side, divided by ``context_shrink``.
    context_totals : (C, K) float64
        Their sums over each context's columns, not divided.
    concentration_rates : (concentrations,) float64
        Rates of the Gamma posteriors of the concentrations behind :meth:`stick_arrays`; of no effect where one is
        fixed.
    cluster : (J,) int32
        Likeliest cluster of each document when it was last visited, or where it was seated at the start; -1 where
        neither was.
    topic_word_prior : float
        s.
    contexts : StackedContexts of the corpus
    observed : ObservedTopics or None
        What topics emit in place of words.
    shrink, context_shrink : float
        1 between epochs. A step that shrinks all counts by 1 - rate changes this one number and the rows of the
        batch's words or columns, not the whole table.
    document_concentration : float
        omega; infinite where documents share the proportions of their cluster.
    n_m : (M,) float64
        Expected tokens of each topic.
    n_updates : int
        Mini-batches so far.
    n_visited : int
        Documents visited so far in the epoch that is under way; 0 between epochs.
    evidence : float
        sum_j ln Z_j of these documents, nats.
    last_evidence : float
        The same of all documents of the last epoch of mini-batches, nats; NaN before its end.
    elbo : float
        Nats; NaN before the first step.
    buffers : Buffers
        Of what a mini-batch computes; they hold nothing between mini-batches.
    """

    #: arrays and numbers of a checkpoint
    described: ClassVar[dict[str, Stored]] = {
        "topic_words": Stored("f", "V M"),
        "context_counts": Stored("f", "D K"),
        "context_totals": Stored("f", "C K"),
        "cluster": Stored("i", "J", below="K"),
        "n_m": Stored("f", "M"),
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "shrink": Stored("f", ""),
        "context_shrink": Stored("f", ""),
        "n_updates": Stored("i", ""),
        "n_visited": Stored("i", "", below="J"),
        "evidence": Stored("f", ""),
        "last_evidence": Stored("f", ""),
        "elbo": Stored("f", ""),
    }

    model: MC2
    settings: RunSettings
    group_weights: np.ndarray
    topic_words: np.ndarray
    context_counts: np.ndarray
    context_totals: np.ndarray
    concentration_rates: np.ndarray
    cluster: np.ndarray
    topic_word_prior: float
    contexts: StackedContexts
    n_m: np.ndarray
    observed: ObservedTopics | None = None
    document_concentration: float = math.inf
    shrink: float = 1.0
    context_shrink: float = 1.0
    n_updates: int = 0
    n_visited: int = 0
    evidence: float = 0.0
    last_evidence: float = float("nan")
    elbo: float = float("nan")
    buffers: Buffers = field(default_factory=Buffers, repr=False, compare=False)

    @property
    def progress(self) -> float:  # type: ignore[override]
        return self.n_visited / len(self.cluster)

    def arrays(self) -> dict[str, np.ndarray]:
        # the shrinkage as it is: folding it in would change bits
        return {name: np.asarray(getattr(self, name)) for name in (*self.described, *self.described_numbers)}

    # -- what each kind of state says for itself -------------------------------------------------------------------
    @classmethod
    @abstractmethod
    def truncations(cls, corpus: Corpus, n_clusters: int | None, n_topics: int | None) -> tuple[int, int]:
        """(K, M): those given, or by rule where they are None."""

    @classmethod
    def usual_batch(cls, n_documents: int) -> int:
        """Documents of a mini-batch of a corpus of so many, by rule."""
        return _BATCH

    @classmethod
    @abstractmethod
    def n_numbers(cls, settings: RunSettings, corpus: Corpus) -> int:
        """Numbers that the clusters' topics take."""

    @classmethod
    @abstractmethod
    def begin(cls, model: MC2, settings: RunSettings, start: Start, corpus: Corpus, contexts: StackedContexts) -> Self:
        """The state of a start."""

    @classmethod
    @abstractmethod
    def sizes(cls, model: MC2, settings: RunSettings, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """K, T and M, as far as the arrays of a checkpoint must have them; ValueError where they cannot be."""

    @abstractmethod
    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Sticks behind the concentrations that have Gamma posteriors, in the order of alpha, v, eta."""

    @abstractmethod
    def expectations(self, columns: np.ndarray | None = None) -> Expectations:
        """Under the posteriors of this state; contexts in these columns (all of those in use), or in all."""

    @abstractmethod
    def step(
        self,
        batch: Batch,
        scale: float,
        rate: float,
        pool: Executor | None,
        assign: Assign = assign_documents,
        since: Mapping[str, Any] | None = None,
    ) -> BatchStep:
        """Natural-gradient step of all globals but the concentrations with sticks, in place.

        ``scale`` is J / B. ``assign`` does the local step given the words' likelihoods. The step goes from the state as
        it is, or from the one ``since`` which the batch was visited before (:meth:`rows_of`): its statistics are
        replaced then, not added.
        """

    def rows_of(self, batch: Batch) -> dict[str, Any]:
        """What steps on ``batch`` change, copied. The state must be folded, so that no other rows change."""
        tables = {"topic_words": batch.words, "context_counts": batch.columns}
        names = {*self.described, *self.described_numbers} - {"cluster", "local_cluster", "local_counts"}
        return {name: np.array(np.asarray(getattr(self, name))[tables.get(name, ...)]) for name in names}

    def go_back(self, batch: Batch, rows: Mapping[str, Any]) -> None:
        """Undo the steps on ``batch`` since :meth:`rows_of`, in place, but where its documents are seated."""
        for name, value in rows.items():
            if name == "topic_words":
                self.topic_words[batch.words] = value
            elif name == "context_counts":
                self.context_counts[batch.columns] = value
            else:
                setattr(self, name, value.item() if name in self.described_numbers else value.copy())

    @abstractmethod
    def tidy(self, pool: Executor | None, is_full: bool) -> None:
        """What is done at the end of an epoch, in place: it may order the state and take out what is not in use."""

    @abstractmethod
    def proportions(self, clusters: np.ndarray, topics: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """(K', M') E[tau] of some clusters and topics, (M',) their E[epsilon], and v."""

    @abstractmethod
    def proportions_divergence(self) -> float:
        """Nats that the ELBO pays for the clusters' topics, sticks not counted."""

    def weigh(self, factor: float) -> None:
        """Let the statistics of the documents so far be those of ``factor`` times as many, in place."""
        self.topic_words *= factor
        self.n_m *= factor
        self.context_counts *= factor
        self.context_totals *= factor

    def follow(self, cluster: np.ndarray) -> None:
        """Know the clusters (n,) of other documents, and nothing else of them, in place."""
        self.cluster = cluster

    def widen(self, contexts: StackedContexts, n_words: int) -> None:
        """Have ``n_words`` words and the columns of ``contexts``, those that are new last and not met yet, in place."""
        more = np.zeros((n_words - len(self.topic_words), len(self.n_m)))
        self.topic_words = np.concatenate([self.topic_words, more])
        counts = np.zeros((contexts.dimension, self.n_clusters))
        for name in contexts.names:
            known = self.context_counts[self.contexts.segment(name)]
            first = contexts.segment(name).start
            counts[first : first + len(known)] = known
        self.context_counts, self.contexts = counts, contexts

    def expected_weights(self) -> np.ndarray:
        """(n,) float64, at least K: E beta, those of clusters not in use last; sums to 1."""
        return sticks.expected_weights(self.group_weights)

    def group_divergence(self) -> float:
        """Nats that the ELBO pays for the clusters' weights beside sticks."""
        return 0.0

    # -- what is the same in all of them ----------------------------------------------------------------------------
    @classmethod
    def restore(
        cls,
        model: MC2,
        settings: RunSettings,
        shape: tuple[int, int],
        contexts: StackedContexts,
        arrays: Mapping[str, np.ndarray],
        observed: ObservedTopics | None = None,
    ) -> Self:
        """The inverse of :meth:`arrays` of (J, V) documents and words; ValueError where they lack sizes or range."""
        described = cls.described | cls.described_numbers
        if observed is not None:
            described, shape = described | {"topic_words": Stored("f", "V M")}, (shape[0], len(observed.prior))
        sizes = {"J": shape[0], "V": shape[1], "C": len(contexts.names), "D": contexts.dimension}
        check(arrays, described, sizes | cls.sizes(model, settings, arrays))
        types = {"i": np.int32, "f": np.float64}
        fields: dict[str, Any] = {"topic_word_prior": model.topic_word_prior}
        fields |= {name: np.array(arrays[name], types[one.kind]) for name, one in cls.described.items()}
        fields |= {name: arrays[name].item() for name in cls.described_numbers}
        return cls(**fields, model=model, settings=settings, contexts=contexts, observed=observed)

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.context_counts.shape[1]

    @property
    def natural(self) -> np.ndarray:
        """(K, D): natural parameters of q(phi_k)."""
        return self.contexts.prior + self.context_shrink * self.context_counts.T

    @property
    def topic_sums(self) -> np.ndarray:
        """(P, M): sums of statistics of topics that emit observations."""
        return self.shrink * self.topic_words

    def topic_sizes(self) -> np.ndarray:
        """(M,): ``n_m`` as ``topic_words`` has it, less ``shrink``."""
        return self.topic_words.sum(axis=0) if self.observed is None else self.observed.sizes(self.topic_words)

    def shared_expectations(self, columns: np.ndarray | None) -> dict[str, Any]:
        """Fields of :class:`.local.Expectations` that every kind of state has, but for ``log_group``."""
        if self.observed is not None:
            of_topics = self.observed.expected(self.topic_sums)
            return {
                "log_topic_total": np.zeros(0),
                "contexts": self._expected_contexts(columns),
                "observed": of_topics,
            }
        return {
            "log_topic_total": array_digamma(self.n_m + self.topic_word_prior * len(self.topic_words)),
            "contexts": self._expected_contexts(columns),
        }

    def _expected_contexts(self, columns: np.ndarray | None) -> np.ndarray:
        if columns is None:
            return self.contexts.expected_parameters(self.natural)
        natural = self.contexts.prior[columns] + self.context_shrink * self.context_counts[columns].T
        totals = self.contexts.sums_by_context(self.contexts.prior) + self.context_totals.T
        return self.contexts.expected_parameters(natural, columns, totals)

    def seat(self, batch: Batch, shares: np.ndarray) -> None:
        """Note the likeliest cluster of each document; ValueError where its weights have no finite sum above 0."""
        cluster = likeliest(shares) if shares.ndim == 2 else shares
        without = cluster < 0
        if without.any():
            raise ValueError(
                f"document {batch.rows[without][0]}: the weights of its clusters have no finite sum above 0; look at "
                f"its contexts, their priors ({self.model.contexts}), topic_word_prior "
                f"({self.model.topic_word_prior:g}) and the "
                "concentrations"
            )
        self.cluster[batch.rows] = cluster

    def expected_topic_words(
        self, expected: Expectations, words: np.ndarray, counts: np.ndarray, pool: Executor | None
    ) -> float:
        """sum_wm counts_wm E ln psi_mw, nats; ``counts`` (U, M) at ``words`` (U,)."""

        def work(first: int, last: int) -> float:
            log_psi = np.empty((last - first, counts.shape[1]))
            block = words[first:last]
            total = expected.log_topic_total
            if self.observed is not None:
                self.fill_scores(expected, block, 0, len(block), log_psi)
            else:
                fill_log_psi(self.topic_words, self.shrink, block, self.topic_word_prior, total, 0, len(block), log_psi)
            return float(np.sum(counts[first:last] * log_psi))

        return sum(in_blocks(pool, work, len(words), WORD_BLOCK))

    def fill_scores(
        self, expected: Expectations, numbers: np.ndarray, first: int, last: int, scores: np.ndarray
    ) -> None:
        """Fill rows first..last-1 of ``scores`` (U, M), of observations ``numbers`` (U,); kernels do those of words."""
        if self.observed is not None and expected.observed is not None:
            scores[first:last] = self.observed.scores(expected.observed, numbers[first:last])

    def concentrations(self) -> Concentrations:
        """Those with sticks behind them as they are used now."""
        return Concentrations.of(self)

    def step_concentrations(self) -> None:
        """q of the concentrations given the sticks behind them, in place: exact, since they depend on globals only."""
        arrays = self.stick_arrays()
        rates = ConcentrationSettings.of(self.model, len(arrays)).rate
        for i, one in enumerate(arrays):
            self.concentration_rates[i] = rates[i] - np.sum(sticks.expected_logs(one)[1])

    def fold(self) -> None:
        """Multiply ``shrink`` into the counts and take their totals anew."""
        if self.shrink != 1.0:
            self.topic_words *= self.shrink
            self.shrink = 1.0
        if self.context_shrink != 1.0:
            self.context_counts *= self.context_shrink
            self.context_shrink = 1.0
        self.n_m = self.topic_sizes()
        self.context_totals = self.contexts.sums_by_context(self.context_counts)

    def blend_topic_words(
        self, words: np.ndarray, counts: np.ndarray, scale: float, rate: float, pool: Executor | None = None
    ) -> None:
        """Move the expected tokens to (1 - rate) of themselves plus rate scale ``counts`` (U, M) at ``words`` (U,).

        Sums of statistics likewise, of observations ``words`` that topics have shares ``counts`` of.
        """
        if self.observed is not None:
            rows, sums = np.arange(len(self.topic_words)), self.observed.sums(words, counts, pool)
            self.shrink, _ = blend_rows(self.topic_words, self.shrink, rows, sums, scale, rate)
            total = counts.sum(axis=0)
        else:
            self.shrink, total = blend_rows(self.topic_words, self.shrink, words, counts, scale, rate, pool)
        self.n_m = (1.0 - rate) * self.n_m + rate * scale * total
        if self.shrink < _SMALLEST_SHRINK:
            self.fold()

    def blend_contexts(self, columns: np.ndarray, sums: np.ndarray, scale: float, rate: float) -> None:
        """The same of the contexts' statistics and ``sums`` (K, columns) of those in use."""
        counts = np.ascontiguousarray(sums.T)
        self.context_shrink, _ = blend_rows(self.context_counts, self.context_shrink, columns, counts, scale, rate)
        totals = self.contexts.sums_by_context(counts, columns)
        self.context_totals = (1.0 - rate) * self.context_totals + rate * scale * totals
        if self.context_shrink < _SMALLEST_SHRINK:
            self.fold()


def blend_rows(
    table: np.ndarray,
    shrink: float,
    rows: np.ndarray,
    counts: np.ndarray,
    scale: float,
    rate: float,
    pool: Executor | None = None,
) -> tuple[float, np.ndarray]:
    """shrink ``table`` to (1 - rate) of itself plus rate scale ``counts`` (R, n) at ``rows`` (R,), in place.

    Returns the new shrink and the sum over the rows of ``counts``.
    """
    if rate == 1.0:
        table[:] = 0.0
        shrink = 1.0
    else:
        shrink *= 1.0 - rate
    factor = rate * scale / shrink

    def work(first: int, last: int) -> np.ndarray:
        return add_rows(table, rows, counts, factor, first, last)

    return shrink, sum(in_blocks(pool, work, len(rows), _ROW_BLOCK), start=np.zeros(counts.shape[1]))


@kernel
def add_rows(table, rows, values, factor, first, last):
    """table[rows[u]] += factor * values[u] for u in first..last-1; returns the sum of these values."""
    total = np.zeros(values.shape[1])
    for u in range(first, last):
        row, value = table[rows[u]], values[u]
        for m in range(value.size):
            row[m] += factor * value[m]
            total[m] += value[m]
    return total


@dataclass(frozen=True)
class ConcentrationSettings:
    """alpha, v and eta (in this order): where they start, which are learnt, and their Gamma(shape, rate) priors.

    Fewer where some have no sticks behind them (direct assignment: alpha alone).
    """

    start: np.ndarray
    is_learnt: np.ndarray
    shape: np.ndarray
    rate: np.ndarray

    @classmethod
    def of(cls, model: MC2, n: int) -> ConcentrationSettings:
        """The first ``n`` of them."""
        start = model.group_concentration, model.table_concentration, model.topic_concentration
        priors = np.array([model.prior_of(role) for role in ROLES[:n]])
        is_learnt = np.array([role in model.learn_concentrations for role in ROLES[:n]])
        return cls(np.array(start[:n]), is_learnt, priors[:, 0], priors[:, 1])


def starting_rates(model: MC2, stick_arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Rates of Gamma posteriors whose means are the starting values, given the sticks behind the concentrations."""
    settings = ConcentrationSettings.of(model, len(stick_arrays))
    return (settings.shape + [one[0].size for one in stick_arrays]) / settings.start


@dataclass
class Concentrations:
    """E[c] and E[ln c] of alpha, v, eta (in this order), and the divergence of what was learnt of them.

    A concentration c with prior Gamma(a, b) behind n Beta(1, c) sticks v_i has the posterior
    Gamma(a + n, b - sum_i E ln(1 - v_i)).
    """

    mean: np.ndarray
    mean_log: np.ndarray
    divergence: float

    @classmethod
    def of(cls, state: Globals) -> Concentrations:
        """Under the posteriors of ``state``; those that are not learnt as they were set."""
        settings = ConcentrationSettings.of(state.model, len(state.stick_arrays()))
        learnt, a0, b0 = settings.is_learnt, settings.shape, settings.rate
        a = a0 + [one[0].size for one in state.stick_arrays()]
        b = state.concentration_rates
        kl = (a - a0) * array_digamma(a) - gammaln(a) + gammaln(a0) + a0 * (np.log(b) - np.log(b0)) + a * (b0 / b - 1.0)
        return cls(
            mean=np.where(learnt, a / b, settings.start),
            mean_log=np.where(learnt, array_digamma(a) - np.log(b), np.log(settings.start)),
            divergence=float(kl[learnt].sum()),
        )


@kernel(error_model="numpy", fastmath={"contract"})
def sum_topic_divergence(topic_words, shrink, prior, log_total, log_gamma_prior, first, last):
    """Sum over words first..last-1 and topics of n E ln psi - lnG(s + n) + lnG(s), n being shrink topic_words."""
    total = 0.0
    for w in range(first, last):
        for m in range(topic_words.shape[1]):
            n = shrink * topic_words[w, m]
            x = prior + n
            total += n * (digamma(x) - log_total[m]) - log_gamma(x) + log_gamma_prior
    return total


def topic_divergence(state: Globals, pool: Executor | None) -> float:
    """Sum over topics of KL of q(psi_m) from its prior, in nats. ``shrink`` must be 1 of observations."""
    if state.observed is not None:
        return state.observed.divergence(state.topic_words)
    s, n_words = state.topic_word_prior, len(state.topic_words)
    totals = state.n_m + s * n_words
    log_total = array_digamma(totals)
    log_gamma_prior = float(gammaln(s))

    def work(first: int, last: int) -> float:
        return sum_topic_divergence(state.topic_words, state.shrink, s, log_total, log_gamma_prior, first, last)

    return float(np.sum(gammaln(totals) - gammaln(s * n_words))) + sum(in_blocks(pool, work, n_words, _ROW_BLOCK))


def change(
    documents: DocumentStatistics, before: Expectations, after: Expectations, words: float, proportions: float
) -> float:
    """How the expectations of all globals changed under fixed statistics, in nats, given that of words and topics."""
    total = words
    total += float(np.sum(documents.n_k * (after.log_group - before.log_group)))
    total += proportions
    return total + float(np.sum(documents.contexts * (after.contexts - before.contexts)))


def divergence(
    state: Globals, concentrations: Concentrations, pool: Executor | None = None, of_topics: float | None = None
) -> float:
    """KL of all global posteriors from their priors, in nats: what the ELBO pays for its globals.

    ``of_topics`` : that of the topics, :func:`topic_divergence`, where it is known.
    """
    total = concentrations.divergence
    for one, mean, mean_log in zip(state.stick_arrays(), concentrations.mean, concentrations.mean_log, strict=True):
        total += sticks.divergence(one, mean, mean_log)
    total += state.group_divergence() + state.proportions_divergence()
    of_topics = topic_divergence(state, pool) if of_topics is None else of_topics
    return total + float(np.sum(state.contexts.kl(state.natural))) + of_topics


def blend(old: np.ndarray, new: np.ndarray, rate: float) -> None:
    """old = (1 - rate) old + rate new, in place; exactly ``new`` at rate 1."""
    old *= 1.0 - rate
    old += rate * new


def clusters_in_use(state: Globals) -> np.ndarray:
    """Clusters that are the likeliest one of some document (visited, or seated at the start), ascending."""
    return np.unique(state.cluster[state.cluster >= 0])


def topics_in_use(state: Globals) -> np.ndarray:
    """Topics in which at least half a token is expected, ascending; the largest one if there is none."""
    largest = state.n_m.max()
    return np.flatnonzero(state.n_m >= min(_MIN_TOKENS, largest)) if largest > 0 else np.zeros(0, np.int64)
