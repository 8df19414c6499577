"""What SVI-MC2 knows between mini-batches, with tables or without: parameters of q(global variables), divergences.

q(beta) are sticks, q(psi_m) Dirichlet and q(phi_k) conjugate. Tables (:mod:`mc2core.inference.svi.tables`) and
direct assignment (:mod:`mc2core.inference.svi.direct`) add what they know of clusters and topics. Concentrations
that are learnt have Gamma posteriors.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln

from mc2core.base.described import Stored, check
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import kernel
from mc2core.compute.special import digamma, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import State
from mc2core.inference.svi import sticks

GROUP, TABLE, TOPIC = range(3)
_SMALLEST_SHRINK = 1e-60
_WORD_BLOCK = 1024
# a topic is in use when half a token is expected in it
_LEAST_TOKENS = 0.5


@dataclass(kw_only=True)
class Expectations:
    """Expectations under q of what the local step multiplies; all float64.

    log_group (K,) : E ln beta
    log_topic_total (M,) : digamma(sum_w lambda_mw)
    contexts (K, D) : E[t(phi_k)], or (K, columns) of those asked for
    """

    log_group: np.ndarray
    log_topic_total: np.ndarray
    contexts: np.ndarray


@dataclass(kw_only=True)
class Globals(State):
    """Parameters of the global posteriors, and the latest cluster of every document.

    Attributes
    ----------
    group_sticks : (2, sticks) float64
        q(beta): see :mod:`mc2core.inference.svi.sticks`.
    topic_words : (V, M) float64, >= 0
        Expected tokens of word w in topic m, divided by ``shrink``; q(psi_m) = Dir(s + shrink topic_words[:, m]).
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
    topic_prior : float
        s.
    contexts : StackedContexts of the corpus
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
    elbo : float
        Nats; NaN before the first step.
    buffers : Buffers
        Of what a mini-batch computes; they hold nothing between mini-batches.
    """

    #: arrays and numbers of a checkpoint
    described: ClassVar[dict[str, Stored]] = {
        "topic_words": Stored("f", "V M", least=0),
        "context_counts": Stored("f", "D K"),
        "context_totals": Stored("f", "C K"),
        "cluster": Stored("i", "J", least=-1, below="K"),
        "n_m": Stored("f", "M", least=0),
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "shrink": Stored("f", "", above=0, most=1),
        "context_shrink": Stored("f", "", above=0, most=1),
        "n_updates": Stored("i", "", least=0),
        "n_visited": Stored("i", "", least=0, below="J"),
        "evidence": Stored("f", ""),
        "elbo": Stored("f", "", is_finite=False),
    }

    group_sticks: np.ndarray
    topic_words: np.ndarray
    context_counts: np.ndarray
    context_totals: np.ndarray
    concentration_rates: np.ndarray
    cluster: np.ndarray
    topic_prior: float
    contexts: StackedContexts
    n_m: np.ndarray
    document_concentration: float = math.inf
    shrink: float = 1.0
    context_shrink: float = 1.0
    n_updates: int = 0
    n_visited: int = 0
    evidence: float = 0.0
    elbo: float = float("nan")
    buffers: Buffers = field(default_factory=Buffers, repr=False, compare=False)

    @property
    def progress(self) -> float:  # type: ignore[override]
        return self.n_visited / len(self.cluster)

    def arrays(self) -> dict[str, np.ndarray]:
        # the shrinkage as it is: folding it in would change bits
        return {name: np.asarray(getattr(self, name)) for name in (*self.described, *self.described_numbers)}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], contexts: StackedContexts, **more: Any
    ) -> Self:
        """The inverse of :meth:`arrays`; ValueError where they lack their ``sizes`` (J, V, D, ...) or range.

        ``more`` are the fields that checkpoints do not hold.
        """
        if "natural" in arrays:  # (K, D), in place of counts in checkpoints before them
            check(arrays, {"natural": Stored("f", "K D")}, sizes)
            counts = (arrays["natural"] - contexts.prior).T
            totals = contexts.sums_by_context(counts)
            arrays = {**arrays, "context_counts": counts, "context_totals": totals, "context_shrink": np.array(1.0)}
        check(arrays, cls.described | cls.described_numbers, sizes)
        types = {"i": np.int32, "f": np.float64}
        fields: dict[str, Any] = {name: np.array(arrays[name], types[one.kind]) for name, one in cls.described.items()}
        fields |= {name: arrays[name].item() for name in cls.described_numbers}
        state = cls(**fields, contexts=contexts, **more)
        with np.errstate(all="ignore"):
            if not np.isfinite(contexts.kl(state.natural)).all():
                raise ValueError("'context_counts' holds statistics of no distribution")
        return state

    # -- what tables and direct assignment say each for itself ------------------------------------------------------
    @abstractmethod
    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Sticks behind the concentrations that have Gamma posteriors, in the order of alpha, v, eta."""

    @abstractmethod
    def expectations(self, columns: np.ndarray | None = None) -> Expectations:
        """Under the posteriors of this state; contexts in these columns (all of those in use), or in all."""

    @abstractmethod
    def own_divergence(self) -> float:
        """Nats that the ELBO pays for what tables or direct assignment add, sticks not counted."""

    @property
    def natural(self) -> np.ndarray:
        """(K, D): natural parameters of q(phi_k)."""
        return self.contexts.prior + self.context_shrink * self.context_counts.T

    def shared_expectations(self, columns: np.ndarray | None) -> dict[str, np.ndarray]:
        """Fields of :class:`Expectations` that are the same with tables and without, but for ``log_group``."""
        return {
            "log_topic_total": array_digamma(self.n_m + self.topic_prior * len(self.topic_words)),
            "contexts": self._expected_contexts(columns),
        }

    def _expected_contexts(self, columns: np.ndarray | None) -> np.ndarray:
        if columns is None:
            return self.contexts.expected_parameters(self.natural)
        natural = self.contexts.prior[columns] + self.context_shrink * self.context_counts[columns].T
        totals = self.contexts.sums_by_context(self.contexts.prior) + self.context_totals.T
        return self.contexts.expected_parameters(natural, columns, totals)

    def fold(self) -> None:
        """Multiply ``shrink`` into the counts and take their totals anew."""
        if self.shrink != 1.0:
            self.topic_words *= self.shrink
            self.shrink = 1.0
        if self.context_shrink != 1.0:
            self.context_counts *= self.context_shrink
            self.context_shrink = 1.0
        self.n_m = self.topic_words.sum(axis=0)
        self.context_totals = self.contexts.sums_by_context(self.context_counts)

    def blend_topic_words(
        self, words: np.ndarray, counts: np.ndarray, scale: float, rate: float, pool: Executor | None = None
    ) -> None:
        """Move the expected tokens to (1 - rate) of themselves plus rate scale ``counts`` (U, M) at ``words`` (U,)."""
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

    return shrink, sum(in_blocks(pool, work, len(rows), _WORD_BLOCK), start=np.zeros(counts.shape[1]))


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
    def of(cls, state: Globals, settings: ConcentrationSettings) -> Concentrations:
        """Under the posteriors of ``state``; those that are not learnt as they were set."""
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
def sum_topic_divergence(topic_words, prior, log_total, log_gamma_prior, first, last):
    """Sum over words first..last-1 and topics of n E ln psi - lnG(s + n) + lnG(s)."""
    total = 0.0
    for w in range(first, last):
        for m in range(topic_words.shape[1]):
            n = topic_words[w, m]
            x = prior + n
            total += n * (digamma(x) - log_total[m]) - log_gamma(x) + log_gamma_prior
    return total


def topic_divergence(state: Globals, pool: Executor | None) -> float:
    """Sum over topics of KL(q(psi_m) || Dir(s)), in nats. ``shrink`` must be 1."""
    s, n_words = state.topic_prior, len(state.topic_words)
    totals = state.n_m + s * n_words
    log_total = array_digamma(totals)
    log_gamma_prior = float(gammaln(s))

    def work(first: int, last: int) -> float:
        return sum_topic_divergence(state.topic_words, s, log_total, log_gamma_prior, first, last)

    return float(np.sum(gammaln(totals) - gammaln(s * n_words))) + sum(in_blocks(pool, work, n_words, _WORD_BLOCK))


def divergence(state: Globals, concentrations: Concentrations, pool: Executor | None = None) -> float:
    """KL of all global posteriors from their priors, in nats: what the ELBO pays for its globals."""
    total = concentrations.divergence
    for one, mean, mean_log in zip(state.stick_arrays(), concentrations.mean, concentrations.mean_log, strict=True):
        total += sticks.divergence(one, mean, mean_log)
    total += state.own_divergence()
    return total + float(np.sum(state.contexts.kl(state.natural))) + topic_divergence(state, pool)


def blend(old: np.ndarray, new: np.ndarray, rate: float) -> None:
    """old = (1 - rate) old + rate new, in place; exactly ``new`` at rate 1."""
    old *= 1.0 - rate
    old += rate * new


def step_concentrations(state: Globals, settings: ConcentrationSettings) -> None:
    """q of the concentrations given the sticks behind them, in place: exact, since they depend on globals only."""
    for i, one in enumerate(state.stick_arrays()):
        state.concentration_rates[i] = settings.rate[i] - np.sum(sticks.expected_logs(one)[1])


def clusters_in_use(state: Globals) -> np.ndarray:
    """Clusters that are the likeliest one of some document (visited, or seated at the start), ascending."""
    return np.unique(state.cluster[state.cluster >= 0])


def topics_in_use(state: Globals) -> np.ndarray:
    """Topics in which at least half a token is expected, ascending; the largest one if there is none."""
    largest = state.n_m.max()
    return np.flatnonzero(state.n_m >= min(_LEAST_TOKENS, largest)) if largest > 0 else np.zeros(0, np.int64)
