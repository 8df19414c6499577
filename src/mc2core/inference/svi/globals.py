"""Global posteriors of SVI-MC2: parameters, expectations, natural-gradient steps and part of the ELBO (docs/model.md).

:class:`Globals` consists of the weights of clusters, topics, contexts, concentrations and the proportions of clusters.
The three kinds of SVI differ in the proportions, over topics (:class:`TopicProportions`) or tables
(:class:`.tables.TableProportions`), in the document level (:class:`.document_level.DocumentLevel`), and in the local
step, which returns a :class:`LocalStep`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import betaln, gammaln, polygamma
from scipy.special import digamma as array_digamma

from mc2core.base.storage import Stored, check_arrays
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import digamma, exp, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus, take_rows
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import State
from mc2core.inference.svi.observed import ObservedTopics
from mc2core.models import MC2, ROLES, WORDS

if TYPE_CHECKING:
    from mc2core.inference.svi.document_level import DocumentLevel
    from mc2core.inference.svi.tables import TableProportions

GROUP, TABLE, TOPIC = range(3)
WORD_BLOCK = 512
_ROW_BLOCK = 1024
_MIN_SHRINK = 1e-60
# a topic is in use when half a token is expected in it
_MIN_TOKENS = 0.5
# documents or tokens below which leaving a component out changes no full batch's bound
_NOTHING = 1e-9
# smaller factors of products are 0: subnormal numbers take a hundred times as long to multiply
MIN_FACTOR = 1e-150


class RunSettings(NamedTuple):
    """Settings of the engine that a state uses, with defaults resolved for a corpus.

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


# -- sticks --------------------------------------------------------------------------------------------------------
# Weights of n atoms are beta_i = v_i prod_{l<i} (1 - v_l) with v_n = 1. A posterior is one array (2, ..., n - 1),
# float64 > 0: the two parameters of each stick's Beta.
def stick_posterior(counts: np.ndarray, concentration: float) -> np.ndarray:
    """Return Beta(1 + counts_i, concentration + sum_{l>i} counts_l), (2, ..., n - 1), for (..., n) counts (UAI16, eq.
    2).
    """
    later = np.flip(np.cumsum(np.flip(counts, -1), -1), -1)[..., 1:]
    return np.stack([1.0 + counts[..., :-1], concentration + later])


def stick_counts(sticks: np.ndarray, concentration: float) -> np.ndarray:
    """Return the counts behind sticks, (..., n); under another concentration, the last one is at least 0."""
    last = np.maximum(sticks[1, ..., -1:] - concentration, 0.0)
    return np.concatenate([sticks[0] - 1.0, last], -1)


def expected_log_sticks(sticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (E ln v, E ln(1 - v)), each (..., n - 1)."""
    total = array_digamma(sticks.sum(axis=0))
    return array_digamma(sticks[0]) - total, array_digamma(sticks[1]) - total


def expected_log_weights(sticks: np.ndarray) -> np.ndarray:
    """Return E ln beta_i, (..., n)."""
    log_v, log_remaining = expected_log_sticks(sticks)
    none = np.zeros((*log_v.shape[:-1], 1))
    return np.concatenate([log_v, none], -1) + np.concatenate([none, np.cumsum(log_remaining, -1)], -1)


def expected_weights(sticks: np.ndarray) -> np.ndarray:
    """Return E beta_i, (..., n); the last axis sums to 1."""
    v = sticks[0] / sticks.sum(axis=0)
    one = np.ones((*v.shape[:-1], 1))
    return np.concatenate([v, one], -1) * np.concatenate([one, np.cumprod(1.0 - v, -1)], -1)


def stick_divergence(sticks: np.ndarray, concentration: float, log_concentration: float) -> float:
    """Return the sum over sticks of KL(Beta posterior || Beta(1, c)) in nats, given E[c] and E[ln c]."""
    log_v, log_remaining = expected_log_sticks(sticks)
    log_q = (sticks[0] - 1.0) * log_v + (sticks[1] - 1.0) * log_remaining - betaln(sticks[0], sticks[1])
    return float(np.sum(log_q - log_concentration - (concentration - 1.0) * log_remaining))


class ClusterWeights(NamedTuple):
    """Form of the parameters ``q`` of q(beta): sticks, or the Dirichlet of a finite mixture.

    * ``n_clusters`` N: beta ~ Dir(alpha / N, ..., alpha / N); q is one row (1, N) and all N clusters stay.
    * ``is_truncated`` (UAI16): (2, K - 1) sticks; the last cluster has all that is left.
    * Else (2, K) sticks; what is left behind the last is the weight of all clusters not in use.
    """

    n_clusters: int | None
    is_truncated: bool = False

    @property
    def stored(self) -> Stored:
        """``q`` in a checkpoint."""
        return Stored("f", "2 K-1" if self.is_truncated else "2 K" if self.n_clusters is None else "1 K")

    def posterior(self, n_k: np.ndarray, alpha: float) -> np.ndarray:
        """q given (K,) expected documents."""
        if self.n_clusters is not None:
            return (alpha / self.n_clusters + n_k)[None]
        return stick_posterior(n_k if self.is_truncated else np.append(n_k, 0.0), alpha)

    def n_k(self, q: np.ndarray, alpha: float) -> np.ndarray:
        """(K,) float64: the expected documents behind q."""
        if self.is_truncated:
            return stick_counts(q, alpha)
        return q[0] - (1.0 if self.n_clusters is None else alpha / self.n_clusters)

    def expected_logs(self, q: np.ndarray) -> np.ndarray:
        """(K,) float64: E ln beta_k of the clusters that there are."""
        if self.n_clusters is not None:
            return np.asarray(array_digamma(q[0]) - array_digamma(q[0].sum()))
        logs = expected_log_weights(q)
        return logs if self.is_truncated else logs[:-1]

    def expected(self, q: np.ndarray) -> np.ndarray:
        """(n,) float64, at least K: E beta, that of clusters not in use last; sums to 1."""
        return expected_weights(q) if self.n_clusters is None else q[0] / q[0].sum()

    def sticks(self, q: np.ndarray) -> np.ndarray:
        """(2, sticks): those behind alpha, of which a finite mixture has none."""
        return q if self.n_clusters is None else np.empty((2, 0))

    def divergence(self, q: np.ndarray, alpha: float) -> float:
        """KL(q(beta) || Dir(alpha / N, ...)) in nats; 0 of sticks, whose divergences are counted with the others'."""
        if self.n_clusters is None:
            return 0.0
        each = alpha / self.n_clusters
        log_constants = gammaln(q.sum()) - gammaln(alpha) - np.sum(gammaln(q[0]) - gammaln(each))
        return float(log_constants + np.sum((q[0] - each) * self.expected_logs(q)))


# -- concentrations ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ConcentrationPriors:
    """Starting values and Gamma(shape, rate) priors of the concentrations with sticks, in the order alpha, v, eta.

    A concentration c with prior Gamma(a, b) behind n Beta(1, c) sticks v_i has the posterior
    Gamma(a + n, b - sum_i E ln(1 - v_i)).
    """

    start: np.ndarray
    is_learnt: np.ndarray
    shape: np.ndarray
    rate: np.ndarray

    @classmethod
    def of(cls, model: MC2, n: int) -> ConcentrationPriors:
        """The first ``n`` of them: all with tables, else alpha alone."""
        roles = ROLES[:n]
        priors = np.array([model.prior_of(role) for role in roles])
        start, is_learnt = (np.array([of(role) for role in roles]) for of in (model.start_of, model.is_learnt))
        return cls(start, is_learnt, priors[:, 0], priors[:, 1])

    def starting_rates(self, stick_arrays: tuple[np.ndarray, ...]) -> np.ndarray:
        """Rates of posteriors whose means are the starting values."""
        return (self.shape + [one[0].size for one in stick_arrays]) / self.start

    def posteriors(self, rates: np.ndarray, stick_arrays: tuple[np.ndarray, ...]) -> Concentrations:
        """Given the rates of the posteriors and the sticks; those that are not learnt as they were set."""
        learnt, a0, b0, b = self.is_learnt, self.shape, self.rate, rates
        a = a0 + [one[0].size for one in stick_arrays]
        kl = (a - a0) * array_digamma(a) - gammaln(a) + gammaln(a0) + a0 * (np.log(b) - np.log(b0)) + a * (b0 / b - 1.0)
        return Concentrations(
            mean=np.where(learnt, a / b, self.start),
            mean_log=np.where(learnt, array_digamma(a) - np.log(b), np.log(self.start)),
            divergence=float(kl[learnt].sum()),
        )


class Concentrations(NamedTuple):
    """E[c] and E[ln c] of the concentrations, and the divergence of the learnt ones in nats."""

    mean: np.ndarray
    mean_log: np.ndarray
    divergence: float


def gamma_prior(model: MC2, role: str) -> tuple[float, float] | None:
    """Return (shape, rate) of a concentration with a point estimate; None if it is fixed."""
    return model.prior_of(role) if model.is_learnt(role) else None


def log_density_of_log(s: float, prior: tuple[float, float] | None) -> float:
    """Return the log density of ln s under s ~ Gamma(shape, rate) relative to its mode; 0 if s is fixed."""
    if prior is None:
        return 0.0
    shape, rate = prior
    return shape * float(np.log(s * rate / shape)) - rate * s + shape


def backtracked(value: Callable[[float], float], now: float) -> float:
    """Return the first share 1, 1/2, 1/4, ... of a step at which ``value`` is at least ``now``, or 0."""
    share = 1.0
    for _ in range(30):
        if value(share) >= now:
            return share
        share *= 0.5
    return 0.0


# -- s, the prior of topics ----------------------------------------------------------------------------------------
_NEWTON_STEPS = 20
# Newton steps of ln s: longest, and short enough to end
_LONGEST_STEP, _SHORTEST_STEP = 1.0, 1e-4
_MIN_S, _MAX_S = 1e-10, 1e10


@inner_kernel(error_model="numpy")
def trigamma(x):
    """Return the derivative of digamma for x > 0, by a shift of 8 and the asymptotic series."""
    total = 0.0
    for i in range(8):
        total += 1.0 / ((x + i) * (x + i))
    r = 1.0 / (x + 8.0)
    z = r * r
    series = 1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0))))
    return total + r + 0.5 * z + z * r * series


@kernel(error_model="numpy")
def sum_over_words(topic_words, s, first, last):
    """Return sums over words first..last-1 and topics of ln G(s + n) - ln G(s) and its two derivatives by s."""
    at_s = log_gamma(s), digamma(s), trigamma(s)
    value, slope, curve = 0.0, 0.0, 0.0
    for w in range(first, last):
        for m in range(topic_words.shape[1]):
            n = topic_words[w, m]
            if n > 0.0:
                value += log_gamma(s + n) - at_s[0]
                slope += digamma(s + n) - at_s[1]
                curve += trigamma(s + n) - at_s[2]
    return value, slope, curve


def prior_terms(
    topic_words: np.ndarray, s: float, prior: tuple[float, float], pool: Executor | None
) -> tuple[float, float, float]:
    """Return L(s) plus the log density of ln s given (V, M) expected tokens, with two derivatives by ln s."""
    n_words, n_topics = topic_words.shape
    blocks = in_blocks(pool, lambda first, last: sum_over_words(topic_words, s, first, last), n_words, _ROW_BLOCK)
    value, slope, curve = (float(sum(terms)) for terms in zip(*blocks, strict=True))
    total, totals = n_words * s, n_words * s + topic_words.sum(axis=0)
    value += float(np.sum(gammaln(total) - gammaln(totals)))
    slope += n_words * float(n_topics * array_digamma(total) - np.sum(array_digamma(totals)))
    curve += n_words**2 * float(n_topics * polygamma(1, total) - np.sum(polygamma(1, totals)))
    value += log_density_of_log(s, prior)
    return value, s * slope + prior[0] - prior[1] * s, s * slope + s * s * curve - prior[1] * s


def best_topic_prior(topic_words: np.ndarray, s: float, prior: tuple[float, float], pool: Executor | None) -> float:
    """Return the s that maximises the bound given (V, M) expected tokens, by Newton steps of ln s."""
    now = prior_terms(topic_words, s, prior, pool)
    for _ in range(_NEWTON_STEPS):
        step = -now[1] / now[2] if now[2] < 0 else np.sign(now[1]) * _LONGEST_STEP
        step = float(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        latest = s, now

        def value(share: float, s: float = s, step: float = step) -> float:
            nonlocal latest
            new = float(np.clip(s * np.exp(share * step), _MIN_S, _MAX_S))
            latest = new, prior_terms(topic_words, new, prior, pool)
            return latest[1][0]

        share = backtracked(value, now[0])
        if share:
            s, now = latest
        if abs(share * step) < _SHORTEST_STEP:
            break
    return s


# -- proportions over topics ---------------------------------------------------------------------------------------
# a topic without tokens keeps this weight until it is left out
_MIN_WEIGHT = 1e-12
_MIN_V, _MAX_V = 1e-8, 1e8
# steps of epsilon and v at the start, after a full step and after a mini-batch
STEPS_AT_START, STEPS_OF_FULL, STEPS_OF_BATCH = 30, 5, 1


class TopicWeights(NamedTuple):
    """``topics`` (M,) float64 > 0 and ``remaining`` > 0, which sum to 1, and ``v`` > 0."""

    topics: np.ndarray
    remaining: float
    v: float


@kernel(error_model="numpy")
def sum_over_clusters(n_km, a, value, slope):
    """value[m] = sum_k ln G(a_m + n_km) - ln G(a_m), and slope[m], its derivative with respect to a_m."""
    n_topics = a.size
    log_gamma_a, digamma_a = np.empty(n_topics), np.empty(n_topics)
    for m in range(n_topics):
        log_gamma_a[m] = log_gamma(a[m])
        digamma_a[m] = digamma(a[m])
        value[m] = 0.0
        slope[m] = 0.0
    for k in range(n_km.shape[0]):
        for m in range(n_topics):
            x = a[m] + n_km[k, m]
            value[m] += log_gamma(x) - log_gamma_a[m]
            slope[m] += digamma(x) - digamma_a[m]


class ObjectiveTerms(NamedTuple):
    """F ``f`` and the terms that are at most 0 ``penalty``, in nats, and (M,) ``slope``: dF / d(v eps_m) but for what v
    alone enters."""

    f: float
    penalty: float
    slope: np.ndarray


@dataclass
class Objective:
    """The objective F with its added terms (docs/model.md), given (K, M) expected tokens or tables ``n_km``.

    ``prior`` is (shape, rate) of the Gamma prior of v, or None if v is fixed.
    """

    n_km: np.ndarray
    eta: float
    prior: tuple[float, float] | None
    _latest: tuple[TopicWeights, ObjectiveTerms] | None = field(default=None, init=False, repr=False)

    def terms(self, weights: TopicWeights) -> ObjectiveTerms:
        """Those of the weights asked for last are kept: a step asks several times, and begins where the last ended."""
        if self._latest is None or self._latest[0] is not weights:
            value, slope = np.empty((2, len(weights.topics)))
            sum_over_clusters(self.n_km, weights.v * weights.topics, value, slope)
            totals = self.n_km.sum(axis=1)
            f = float(value.sum() - np.sum(gammaln(weights.v + totals) - gammaln(weights.v)))
            penalty = self.eta * float(np.log(weights.remaining))
            penalty += log_density_of_log(weights.v, self.prior)
            self._latest = weights, ObjectiveTerms(f, penalty, slope)
        return self._latest[1]

    def value(self, weights: TopicWeights) -> float:
        """Return the objective, in nats."""
        f, penalty, _ = self.terms(weights)
        return f + penalty

    def expected_tables(self, weights: TopicWeights) -> np.ndarray:
        """(M,): sum_k v eps_m (digamma(v eps_m + n_km) - digamma(v eps_m))."""
        return np.asarray(weights.v * weights.topics * self.terms(weights)[2])

    def step_topics(self, weights: TopicWeights) -> TopicWeights:
        """Move epsilon towards the expected tables, without lowering the objective."""
        tables = self.expected_tables(weights)
        total = tables.sum() + self.eta

        def at(share: float) -> TopicWeights:
            topics = np.maximum((1.0 - share) * weights.topics + share * tables / total, _MIN_WEIGHT)
            remaining = max((1.0 - share) * weights.remaining + share * self.eta / total, _MIN_WEIGHT)
            whole = topics.sum() + remaining
            return TopicWeights(topics / whole, remaining / whole, weights.v)

        return self._climbed(at, weights)

    def step_v(self, weights: TopicWeights) -> TopicWeights:
        """Move ln v towards the value for its expected tables, without lowering the objective."""
        if self.prior is None:
            return weights
        shape, rate = self.prior
        lost = np.sum(array_digamma(weights.v + self.n_km.sum(axis=1)) - array_digamma(weights.v))
        goal = (float(self.expected_tables(weights).sum()) + shape) / (float(lost) + rate)

        def at(share: float) -> TopicWeights:
            return weights._replace(v=float(np.clip(weights.v * (goal / weights.v) ** share, _MIN_V, _MAX_V)))

        return self._climbed(at, weights)

    def _climbed(self, at: Callable[[float], TopicWeights], weights: TopicWeights) -> TopicWeights:
        """``at`` the first share of a step that is not lower than ``weights``, else these."""
        now = self.value(weights)

        def value(share: float) -> float:
            return self.value(at(share))

        # the weights tried last are those whose terms are kept
        return self._latest[0] if backtracked(value, now) and self._latest else weights

    def climbed(self, weights: TopicWeights, n_steps: int) -> TopicWeights:
        """Take ``n_steps`` steps of epsilon and v in turn."""
        for _ in range(n_steps):
            weights = self.step_v(self.step_topics(weights))
        return weights


@dataclass(kw_only=True)
class TopicProportions:
    """q(tau_k) = Dir(v eps_1 + n_k1, ..., v eps_M + n_kM, v eps_rest), with point estimates of epsilon and v.

    ``n_km`` (K, M) are expected tokens of topics in clusters, with a document level expected tables of documents;
    ``topic_weights`` (M,) are epsilon, ``remaining`` is eps_rest, 1 less their sum, and ``table_concentration`` v.
    """

    described: ClassVar[dict[str, Stored]] = {"n_km": Stored("f", "K M"), "topic_weights": Stored("f", "M")}
    described_numbers: ClassVar[dict[str, Stored]] = {
        "remaining": Stored("f", ""),
        "table_concentration": Stored("f", ""),
    }
    #: concentrations with sticks behind them
    n_concentrations: ClassVar[int] = 1

    n_km: np.ndarray
    topic_weights: np.ndarray
    remaining: float
    table_concentration: float
    eta: float
    v_prior: tuple[float, float] | None

    @classmethod
    def fixed(cls, model: MC2) -> dict[str, Any]:
        """Fields that no step changes."""
        return {"eta": model.start_of("topic"), "v_prior": gamma_prior(model, "table")}

    @classmethod
    def sizes(cls, model: MC2, settings: RunSettings, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """K of a finite mixture; else K and M are what is left of the truncations."""
        shape, most = np.shape(arrays.get("n_km", ())), (settings.n_clusters, settings.n_topics)
        if len(shape) == 2 and not (0 < shape[0] <= most[0] and 0 < shape[1] <= most[1]):
            raise ValueError(f"'n_km' has the shape {shape}; at most {most} is needed, at least (1, 1)")
        return {} if model.n_clusters is None else {"K": model.n_clusters}

    @property
    def weights(self) -> TopicWeights:
        """epsilon and v."""
        return TopicWeights(self.topic_weights, self.remaining, self.table_concentration)

    @weights.setter
    def weights(self, new: TopicWeights) -> None:
        self.topic_weights, self.remaining, self.table_concentration = new

    @property
    def objective(self) -> Objective:
        """Objective of epsilon and v."""
        return Objective(self.n_km, self.eta, self.v_prior)

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Sticks behind v and eta: none, these have point estimates or stay as set."""
        return ()

    def expected_log_tau(self) -> np.ndarray:
        """(K, M): E ln tau_km."""
        v = self.table_concentration
        total = array_digamma(v + self.n_km.sum(axis=1, keepdims=True))
        return np.asarray(array_digamma(v * self.topic_weights + self.n_km) - total)

    def step_weights(self, n_steps: int) -> None:
        """Take steps of epsilon and v, in place."""
        self.weights = self.objective.climbed(self.weights, n_steps)

    def divergence(self, penalty: float = 0.0) -> float:
        """sum_k KL(q(tau_k) || Dir(v eps)) less the penalties of epsilon and v, and a further ``penalty``, in nats."""
        f, own, _ = self.objective.terms(self.weights)
        used = self.n_km > 0
        return float(np.sum(self.n_km[used] * self.expected_log_tau()[used])) - f - (own + penalty)

    def scale_counts(self, factor: float, concentrations: Concentrations) -> None:
        """Multiply the counts by ``factor``, in place."""
        self.n_km *= factor

    def select(self, topics: np.ndarray) -> None:
        """Keep only these topics, in place; the weights of the others are added to the remaining weight."""
        left = self.topic_weights[topics]
        self.remaining += float(self.topic_weights.sum() - left.sum())
        self.n_km, self.topic_weights = np.ascontiguousarray(self.n_km[:, topics]), left

    def expected(
        self, clusters: np.ndarray, topics: np.ndarray, concentrations: Concentrations
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """(K', M') E[tau] of some clusters and topics, (M',) their epsilon, and v."""
        v, n_km = self.table_concentration, self.n_km[clusters]
        known = (v * self.topic_weights + n_km) / (v + n_km.sum(axis=1, keepdims=True))
        return known[:, topics], self.topic_weights[topics], v


# -- documents of a step -------------------------------------------------------------------------------------------
@dataclass(kw_only=True)
class Expectations:
    """Expectations under q that all local steps use, as float64.

    log_group (K,) : E ln beta
    log_topic_total (M,) : digamma(sum_w lambda_mw)
    contexts (K, D) : E[t(phi_k)], or (K, columns) of those asked for
    observed (P, M) : E[t(psi_m)] of topics that emit observations, whose ``log_topic_total`` is empty; None of words
    """

    log_group: np.ndarray
    log_topic_total: np.ndarray
    contexts: np.ndarray
    observed: np.ndarray | None = None


class Batch(NamedTuple):
    """A batch of documents over their distinct words.

    words : (U,) int64, ascending numbers of the words in the corpus, or of its observations
    indptr (B + 1,) int64, indices (cells,) int32, counts (cells,) int32 : CSR of the counts over ``words``
    contexts : StackedContexts of the documents
    columns : (D',) int64, ascending numbers in the corpus of the contexts' columns
    rows : (B,) int, their numbers in the corpus
    """

    words: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray
    contexts: StackedContexts
    columns: np.ndarray
    rows: np.ndarray

    @property
    def n_documents(self) -> int:
        """B."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(B,) float64: tokens of each document."""
        before = np.append(0, np.cumsum(self.counts, dtype=np.int64))
        return np.diff(before[self.indptr]).astype(np.float64)

    def narrowed(self) -> Batch:
        """Return the batch with only the context columns in which its documents have entries."""
        columns, contexts = self.contexts.narrowed()
        return self._replace(contexts=contexts, columns=self.columns[columns])


def take_batch(corpus: Corpus, contexts: StackedContexts, rows: np.ndarray) -> Batch:
    """Return the documents ``rows`` of a corpus as a batch."""
    taken = take_rows(corpus.content, rows)
    number = np.zeros(corpus.content.shape[1], np.int32)
    number[taken.indices] = 1
    words = np.flatnonzero(number)
    number[words] = np.arange(len(words), dtype=np.int32)
    counts = taken.indptr.astype(np.int64), number[taken.indices], taken.data
    return Batch(words, *counts, contexts.take(rows), np.arange(contexts.dimension), rows)


@dataclass
class DocumentStatistics:
    """Statistics of documents for the global step; parts are joined by ``+``.

    cluster : (B,) int32, the likeliest of each document; -1 where its weights have no finite sum above 0
    log_evidence : float, sum_j ln Z_j in nats
    n_k : (K,) float64, sum_j mu_jk
    contexts : (K, D) float64, sum_j mu_jk T(x_j)
    word_mass : (U, K), R_k(w) = sum_j mu_jk x_jw; empty with a document level
    shares : (B, K) float64 mu_jk, or None where they stayed with other processes
    """

    cluster: np.ndarray
    log_evidence: float
    n_k: np.ndarray
    contexts: np.ndarray
    word_mass: np.ndarray
    shares: np.ndarray | None = None

    def __add__(self, other: DocumentStatistics) -> DocumentStatistics:
        return DocumentStatistics(
            np.concatenate([self.cluster, other.cluster]),
            self.log_evidence + other.log_evidence,
            self.n_k + other.n_k,
            self.contexts + other.contexts,
            self.word_mass + other.word_mass,
        )


def statistics_of(
    batch: Batch, shares: np.ndarray, log_evidence: np.ndarray, word_mass: np.ndarray
) -> DocumentStatistics:
    """Return the statistics of a batch, given (B, K) mu_jk and (B,) ln Z_j."""
    return DocumentStatistics(
        cluster=np.where(np.isfinite(shares).all(axis=1), shares.argmax(axis=1), -1).astype(np.int32),
        log_evidence=float(log_evidence.sum()),
        n_k=shares.sum(axis=0),
        contexts=np.asarray(batch.contexts.statistics.T @ shares).T,
        word_mass=word_mass,
        shares=shares,
    )


@dataclass
class LocalStep(ABC):
    """Result of a local step on a mini-batch.

    before : Expectations that it was done under
    documents : DocumentStatistics
    topic_words : (U, M) float64, expected tokens of each word in each topic; with tables known after :meth:`step`
    """

    before: Expectations
    documents: DocumentStatistics
    topic_words: np.ndarray

    @abstractmethod
    def step(self, state: Globals, scale: float, rate: float, pool: Executor | None) -> None:
        """Take a natural-gradient step of the proportions, in place."""

    @abstractmethod
    def log_words(self) -> float:
        """Return the expected ln p(words) of the tokens under the previous global parameters, in nats."""

    @abstractmethod
    def change_of_proportions(self, state: Globals, pool: Executor | None) -> float:
        """Return the change of the bound of these documents by the step of proportions, in nats."""


# -- scores of words -----------------------------------------------------------------------------------------------
class WordScores(NamedTuple):
    """E ln psi of words, or expected log densities of observations: ``scores`` (U, M), ``top`` (U,) their maxima, and
    ``weights`` exp(scores - top). They are in the state's buffers, until its next step.
    """

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray


@inner_kernel(error_model="numpy", fastmath={"contract"})
def fill_log_psi(topic_words, shrink, words, prior, log_total, first, last, log_psi):
    """log_psi[u, m] = digamma(shrink n_wm + s) - digamma(total_m) for u in first..last-1."""
    for u in range(first, last):
        counts, out = topic_words[words[u]], log_psi[u]
        for m in range(counts.size):
            out[m] = digamma(shrink * counts[m] + prior) - log_total[m]


# a maximum in any order is the same number, so its loop may be vectorised
@inner_kernel(error_model="numpy", fastmath={"nnan", "ninf", "nsz", "reassoc"})
def row_maxima(scores, first, last, top):
    """top[u] = max scores[u] for u in first..last-1."""
    for u in range(first, last):
        highest = scores[u, 0]
        for d in range(1, scores.shape[1]):
            highest = max(highest, scores[u, d])
        top[u] = highest


@inner_kernel(error_model="numpy")
def exponentiate(scores, top, first, last, weights):
    """weights[u] = exp(scores[u] - top[u]) for u in first..last-1."""
    for u in range(first, last):
        for d in range(scores.shape[1]):
            weights[u, d] = exp(scores[u, d] - top[u])


@kernel(error_model="numpy")
def fill_weights(topic_words, shrink, words, prior, log_total, first, last, scores, top, weights):
    """Rows first..last-1 of :class:`WordScores`."""
    for u in range(first, last):  # a row at a time, which stays in the cache
        if log_total.size > 0:  # scores of observations are there already
            fill_log_psi(topic_words, shrink, words, prior, log_total, u, u + 1, scores)
        row_maxima(scores, u, u + 1, top)
        exponentiate(scores, top, u, u + 1, weights)
        for m in range(weights.shape[1]):
            weights[u, m] = weights[u, m] if weights[u, m] >= MIN_FACTOR else 0.0


# -- natural-gradient steps ----------------------------------------------------------------------------------------
def blend(old: np.ndarray, new: np.ndarray, rate: float) -> None:
    """Set old = (1 - rate) old + rate new, in place; exactly ``new`` at rate 1."""
    old *= 1.0 - rate
    old += rate * new


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


def sum_by(number: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(n, ...) sums of the rows of ``values`` with each number 0..n-1."""
    total = np.zeros((int(number.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(total, number, values)
    return total


def renumbered(cluster: np.ndarray, number: np.ndarray) -> np.ndarray:
    """int32 ``number[cluster]``, and -1 where ``cluster`` is -1."""
    return np.where(cluster >= 0, number[cluster], np.int32(-1))


# -- the state -----------------------------------------------------------------------------------------------------
@dataclass(kw_only=True)
class Globals(State):
    """State of SVI: parameters of the global posteriors, and the latest cluster of every document.

    ``group_weights`` are q(beta), as :class:`ClusterWeights` has it. q(psi_m) = Dir(s + shrink topic_words[:, m]); here
    ``topic_words`` (V, M) are expected tokens divided by ``shrink`` and s is ``topic_word_prior``; where topics emit
    observations, (P, M) expected sums of their statistics likewise. ``n_m`` (M,) are expected tokens of each topic.
    ``context_counts`` (D, K) are expected statistics of each cluster's contexts divided by ``context_shrink``, and
    ``context_totals`` (C, K) their sums over each context's columns, not divided. A step that shrinks all counts by
    1 - rate changes ``shrink`` and the rows of the batch's words or columns, not the whole table; both numbers are 1
    between epochs. ``concentration_rates`` are those of Gamma posteriors, of no effect where one is fixed.

    ``cluster`` (J,) int32 is the likeliest cluster of each document when it was last visited, or where it was at the
    start; -1 where neither was. ``n_updates`` counts mini-batches; ``n_visited`` documents of the epoch that is under
    way, 0 between epochs, and ``evidence`` their sum of ln Z_j; ``last_evidence`` is that of the last epoch, and
    ``elbo`` the latest, both in nats and NaN before. ``documents`` is None where documents share the proportions of
    their cluster. ``buffers`` hold nothing between mini-batches.
    """

    #: arrays and numbers of a checkpoint, beside those of the proportions and of the document level
    described: ClassVar[dict[str, Stored]] = {
        "group_weights": Stored("f", ""),  # the shape is that of ``law``
        "concentration_rates": Stored("f", "R"),
        "topic_words": Stored("f", "V M"),
        "context_counts": Stored("f", "D K"),
        "context_totals": Stored("f", "C K"),
        "cluster": Stored("i", "J", below="K"),
        "n_m": Stored("f", "M"),
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "topic_word_prior": Stored("f", ""),
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
    n_m: np.ndarray
    context_counts: np.ndarray
    context_totals: np.ndarray
    concentration_rates: np.ndarray
    topic_word_prior: float
    cluster: np.ndarray
    proportions: TopicProportions | TableProportions
    documents: DocumentLevel | None
    contexts: StackedContexts
    observed: ObservedTopics | None = None
    shrink: float = 1.0
    context_shrink: float = 1.0
    n_updates: int = 0
    n_visited: int = 0
    evidence: float = 0.0
    last_evidence: float = float("nan")
    elbo: float = float("nan")
    buffers: Buffers = field(default_factory=Buffers, repr=False, compare=False)

    def __post_init__(self) -> None:
        model = self.model
        self.law = ClusterWeights(model.n_clusters, is_truncated=self.settings.n_tables is not None)
        self.priors = ConcentrationPriors.of(model, self.proportions.n_concentrations)
        self.s_prior = gamma_prior(model, WORDS)

    # -- checkpoints and copies ------------------------------------------------------------------------------------
    @property
    def progress(self) -> float:  # type: ignore[override]
        return self.n_visited / len(self.cluster)

    def _stored(self) -> dict[str, Any]:
        """The part of the state that holds each array and number of a checkpoint."""
        parts = [self, self.proportions, *([] if self.documents is None else [self.documents])]
        return {name: part for part in parts for name in (*part.described, *part.described_numbers)}

    def arrays(self) -> dict[str, np.ndarray]:
        # the shrinkage as it is: to multiply it in would change bits
        return {name: np.asarray(getattr(part, name)) for name, part in self._stored().items()}

    @classmethod
    def restore(
        cls,
        model: MC2,
        parts: tuple[type[TopicProportions | TableProportions], type[DocumentLevel]],
        settings: RunSettings,
        shape: tuple[int, int],
        contexts: StackedContexts,
        arrays: Mapping[str, np.ndarray],
        observed: ObservedTopics | None = None,
    ) -> Self:
        """The inverse of :meth:`arrays` of (J, V) documents and words; ValueError where they lack sizes or range.

        ``parts`` are the classes of proportions and of a document level, for models that have one.
        """
        proportions, level = parts
        kinds = [cls, proportions, *([level] if model.document_level else [])]
        law = ClusterWeights(model.n_clusters, is_truncated=settings.n_tables is not None)
        described = {name: one for kind in kinds for name, one in kind.described.items()} | {
            "group_weights": law.stored
        }
        numbers = {name: one for kind in kinds for name, one in kind.described_numbers.items()}
        sizes = {"J": shape[0], "V": shape[1], "C": len(contexts.names), "D": contexts.dimension}
        sizes |= {"R": proportions.n_concentrations} | proportions.sizes(model, settings, arrays)
        check_arrays(arrays, described | numbers, sizes if observed is None else sizes | {"V": len(observed.prior)})
        types = {"i": np.int32, "f": np.float64}

        def fields(kind: Any) -> dict[str, Any]:
            known = {name: np.array(arrays[name], types[described[name].kind]) for name in kind.described}
            return known | {name: arrays[name].item() for name in kind.described_numbers}

        return cls(
            **fields(cls),
            model=model,
            settings=settings,
            proportions=proportions(**fields(proportions), **proportions.fixed(model)),
            documents=level(**fields(level), **level.fixed(model)) if model.document_level else None,
            contexts=contexts,
            observed=observed,
        )

    def copy(self) -> Self:
        """Return another state with the same arrays."""
        other = copy.copy(self)
        other.proportions, other.documents = copy.copy(self.proportions), copy.copy(self.documents)
        return other

    def become(self, other: Globals) -> None:
        """Replace all attributes by those of ``other``, in place."""
        vars(self).update(vars(other))

    def rows_of(self, batch: Batch) -> dict[str, Any]:
        """Return copies of the parts that steps on ``batch`` change. The state must be rescaled before."""
        tables = {"topic_words": batch.words, "context_counts": batch.columns}
        of_documents = "cluster", "local_cluster", "local_counts"
        return {
            name: np.array(np.asarray(getattr(part, name))[tables.get(name, ...)])
            for name, part in self._stored().items()
            if name not in of_documents
        }

    def go_back(self, batch: Batch, rows: Mapping[str, Any]) -> None:
        """Undo the steps on ``batch`` since :meth:`rows_of`, in place, except the clusters of its documents."""
        parts = self._stored()
        for name, value in rows.items():
            if name == "topic_words":
                self.topic_words[batch.words] = value
            elif name == "context_counts":
                self.context_counts[batch.columns] = value
            else:
                part = parts[name]
                setattr(part, name, value.item() if name in part.described_numbers else value.copy())

    # -- expectations ----------------------------------------------------------------------------------------------
    @property
    def n_clusters(self) -> int:
        """K."""
        return self.context_counts.shape[1]

    @property
    def n_k(self) -> np.ndarray:
        """(K,) float64: expected documents of each cluster."""
        return self.law.n_k(self.group_weights, self.concentrations().mean[GROUP])

    @property
    def over_topics(self) -> TopicProportions:
        """The proportions of a state without tables."""
        assert isinstance(self.proportions, TopicProportions)
        return self.proportions

    @property
    def level(self) -> DocumentLevel:
        """The document level of a state that has one."""
        assert self.documents is not None
        return self.documents

    @property
    def document_concentration(self) -> float:
        """omega; infinite where documents share the proportions of their cluster."""
        return math.inf if self.documents is None else self.documents.document_concentration

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

    def expected_weights(self) -> np.ndarray:
        """(n,) float64, at least K: E beta, those of clusters not in use last; sums to 1."""
        return self.law.expected(self.group_weights)

    def expectations(self, columns: np.ndarray | None = None) -> Expectations:
        """Return expectations under the posteriors of this state, for all context columns or ``columns``."""
        if columns is None:
            contexts = self.contexts.expected_parameters(self.natural)
        else:
            natural = self.contexts.prior[columns] + self.context_shrink * self.context_counts[columns].T
            totals = self.contexts.sums_by_context(self.contexts.prior) + self.context_totals.T
            contexts = self.contexts.expected_parameters(natural, columns, totals)
        log_group, log_topic_total, observed = self.law.expected_logs(self.group_weights), np.zeros(0), None
        if self.observed is None:
            log_topic_total = array_digamma(self.n_m + self.topic_word_prior * len(self.topic_words))
        else:
            observed = self.observed.expected(self.topic_sums)
        return Expectations(log_group=log_group, log_topic_total=log_topic_total, contexts=contexts, observed=observed)

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Sticks behind the concentrations that have Gamma posteriors, in the order of alpha, v, eta."""
        return self.law.sticks(self.group_weights), *self.proportions.stick_arrays()

    def concentrations(self) -> Concentrations:
        """Return the current values of the concentrations with sticks."""
        return self.priors.posteriors(self.concentration_rates, self.stick_arrays())

    def fill_scores(self, expected: Expectations, words: np.ndarray, first: int, last: int, scores: np.ndarray) -> None:
        """Fill rows first..last-1 of ``scores`` (U, M): E ln psi of ``words`` (U,), or scores of observations."""
        if self.observed is not None and expected.observed is not None:
            scores[first:last] = self.observed.scores(expected.observed, words[first:last])
        else:
            total = expected.log_topic_total
            fill_log_psi(self.topic_words, self.shrink, words, self.topic_word_prior, total, first, last, scores)

    def word_scores(self, expected: Expectations, words: np.ndarray, pool: Executor | None) -> WordScores:
        """Compute the scores of words or observations, in the buffers of the state."""
        scores, weights = (self.buffers.empty(name, len(words), len(self.n_m)) for name in ("scores", "weights"))
        top, total = np.empty(len(words)), expected.log_topic_total
        known = self.topic_words, self.shrink, words, self.topic_word_prior, total

        def work(first: int, last: int) -> None:
            if self.observed is not None:
                self.fill_scores(expected, words, first, last, scores)
            fill_weights(*known, first, last, scores, top, weights)

        in_blocks(pool, work, len(words), WORD_BLOCK)
        return WordScores(scores, top, weights)

    # -- the ELBO --------------------------------------------------------------------------------------------------
    def divergence(self, pool: Executor | None = None, of_topics: float | None = None) -> float:
        """Return the KL divergence of all global posteriors from their priors, in nats.

        ``of_topics`` : that of the topics, :meth:`topic_divergence`, where it is known.
        """
        concentrations = self.concentrations()
        total = concentrations.divergence
        for one, mean, mean_log in zip(self.stick_arrays(), concentrations.mean, concentrations.mean_log, strict=True):
            total += stick_divergence(one, mean, mean_log)
        total += self.law.divergence(self.group_weights, concentrations.mean[GROUP]) + self.proportions_divergence()
        of_topics = self.topic_divergence(pool) if of_topics is None else of_topics
        return total + float(np.sum(self.contexts.kl(self.natural))) + of_topics

    def proportions_divergence(self) -> float:
        """Return the divergence of the proportions minus the terms of all point estimates (at most 0)."""
        of_clusters = self.proportions.divergence(log_density_of_log(self.topic_word_prior, self.s_prior))
        return of_clusters if self.documents is None else of_clusters - self.documents.penalty()

    def topic_divergence(self, pool: Executor | None) -> float:
        """Return the KL divergence of all q(psi_m) from the prior, in nats. For observations, ``shrink`` must be 1."""
        if self.observed is not None:
            return self.observed.divergence(self.topic_words)
        s, n_words = self.topic_word_prior, len(self.topic_words)
        totals = self.n_m + s * n_words
        log_total = array_digamma(totals)
        log_gamma_prior = float(gammaln(s))

        def work(first: int, last: int) -> float:
            return sum_topic_divergence(self.topic_words, self.shrink, s, log_total, log_gamma_prior, first, last)

        return float(np.sum(gammaln(totals) - gammaln(s * n_words))) + sum(in_blocks(pool, work, n_words, _ROW_BLOCK))

    def change(self, batch: Batch, local: LocalStep, pool: Executor | None) -> float:
        """Return the change of the bound of documents by the step after ``local``, in nats, given their posteriors."""
        before, after, documents = local.before, self.expectations(batch.columns), local.documents
        total = self.expected_log_words(after, batch.words, local.topic_words, pool) - local.log_words()
        total += float(np.sum(documents.n_k * (after.log_group - before.log_group)))
        total += local.change_of_proportions(self, pool)
        return total + float(np.sum(documents.contexts * (after.contexts - before.contexts)))

    def expected_log_words(
        self, expected: Expectations, words: np.ndarray, counts: np.ndarray, pool: Executor | None
    ) -> float:
        """sum_wm counts_wm E ln psi_mw, nats; ``counts`` (U, M) at ``words`` (U,)."""

        def work(first: int, last: int) -> float:
            log_psi = np.empty((last - first, counts.shape[1]))
            self.fill_scores(expected, words[first:last], 0, last - first, log_psi)
            return float(np.sum(counts[first:last] * log_psi))

        return sum(in_blocks(pool, work, len(words), WORD_BLOCK))

    # -- the step --------------------------------------------------------------------------------------------------
    def step(
        self,
        batch: Batch,
        local: LocalStep,
        scale: float,
        rate: float,
        pool: Executor | None,
        since: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a natural-gradient step of all parameters except concentrations with sticks, in place; ``scale`` is J /
        B.

        It starts from the current state or, if the batch was visited before, from the rows ``since`` then
        (:meth:`rows_of`), so that its statistics are replaced and not added.
        """
        if since is not None:
            self.go_back(batch, since)
        documents = local.documents
        self._set_clusters(batch, documents.cluster)
        blend(self.group_weights, self.law.posterior(scale * documents.n_k, self.concentrations().mean[GROUP]), rate)
        self.blend_contexts(batch.columns, documents.contexts, scale, rate)
        local.step(self, scale, rate, pool)
        self.blend_topic_words(batch.words, local.topic_words, scale, rate, pool)

    def _set_clusters(self, batch: Batch, cluster: np.ndarray) -> None:
        without = cluster < 0
        if without.any():
            raise ValueError(
                f"document {batch.rows[without][0]}: the weights of its clusters have no finite sum above 0; look at "
                f"its contexts, their priors ({self.model.contexts}), topic_word_prior "
                f"({self.topic_word_prior:g}) and the "
                "concentrations"
            )
        self.cluster[batch.rows] = cluster

    def step_concentrations(self) -> None:
        """Update q of the concentrations with sticks, in place and exactly."""
        for i, one in enumerate(self.stick_arrays()):
            self.concentration_rates[i] = self.priors.rate[i] - np.sum(expected_log_sticks(one)[1])

    def blend_topic_words(
        self, words: np.ndarray, counts: np.ndarray, scale: float, rate: float, pool: Executor | None = None
    ) -> None:
        """Set expected tokens to (1 - rate) times themselves plus rate scale ``counts`` (U, M) at ``words`` (U,).

        For observations ``words``, sums of statistics are updated by the shares ``counts`` of topics.
        """
        if self.observed is not None:
            rows, sums = np.arange(len(self.topic_words)), self.observed.sums(words, counts, pool)
            self.shrink, _ = blend_rows(self.topic_words, self.shrink, rows, sums, scale, rate)
            total = counts.sum(axis=0)
        else:
            self.shrink, total = blend_rows(self.topic_words, self.shrink, words, counts, scale, rate, pool)
        self.n_m = (1.0 - rate) * self.n_m + rate * scale * total
        if self.shrink < _MIN_SHRINK:
            self.rescale()

    def blend_contexts(self, columns: np.ndarray, sums: np.ndarray, scale: float, rate: float) -> None:
        """Update the statistics of contexts in the same way by ``sums`` (K, columns)."""
        counts = np.ascontiguousarray(sums.T)
        self.context_shrink, _ = blend_rows(self.context_counts, self.context_shrink, columns, counts, scale, rate)
        totals = self.contexts.sums_by_context(counts, columns)
        self.context_totals = (1.0 - rate) * self.context_totals + rate * scale * totals
        if self.context_shrink < _MIN_SHRINK:
            self.rescale()

    # -- between steps ---------------------------------------------------------------------------------------------
    def rescale(self) -> None:
        """Multiply the counts by ``shrink``, set it to 1, and compute their totals again."""
        if self.shrink != 1.0:
            self.topic_words *= self.shrink
            self.shrink = 1.0
        if self.context_shrink != 1.0:
            self.context_counts *= self.context_shrink
            self.context_shrink = 1.0
        self.n_m = self.topic_sizes()
        self.context_totals = self.contexts.sums_by_context(self.context_counts)

    def prune(self, pool: Executor | None, is_full: bool) -> None:
        """Update s if it is learnt, sort clusters by size, and remove clusters and topics that are not in use.

        After a full batch, only clusters and topics without any mass are removed, which does not change the bound.
        Otherwise, clusters that are not the likeliest of any document and topics with less than half a token are
        removed. All clusters of a finite mixture are kept. With tables, truncations and order do not change.
        """
        if self.law.is_truncated:
            return
        if self.s_prior is not None:
            self.topic_word_prior = best_topic_prior(self.topic_words, self.topic_word_prior, self.s_prior, pool)
        n_k = self.n_k
        if self.model.n_clusters is not None:
            clusters = np.arange(len(n_k))
        else:
            clusters = np.flatnonzero(n_k > _NOTHING) if is_full else clusters_in_use(self)
        topics = np.flatnonzero(self.n_m > _NOTHING) if is_full else topics_in_use(self)
        clusters = clusters if len(clusters) else np.zeros(1, np.int64)
        topics = topics if len(topics) else np.zeros(1, np.int64)
        self.select(clusters[np.argsort(-n_k[clusters], kind="stable")], topics)
        self.step_concentrations()

    def select(self, clusters: np.ndarray | None = None, topics: np.ndarray | None = None) -> None:
        """Keep only these clusters, with their documents, and these topics, in this order, in place; None keeps all."""
        if clusters is not None:
            number = np.full(self.n_clusters, -1, np.int32)
            number[clusters] = np.arange(len(clusters), dtype=np.int32)
            self.group_weights = self.law.posterior(self.n_k[clusters], self.concentrations().mean[GROUP])
            self.cluster = renumbered(self.cluster, number)
            self.context_counts = np.ascontiguousarray(self.context_counts[:, clusters])
            self.context_totals = self.context_totals[:, clusters]
            self.over_topics.n_km = self.over_topics.n_km[clusters]
            if self.documents is not None:
                self.documents.local_cluster = renumbered(self.documents.local_cluster, number)
        if topics is not None and len(topics) < len(self.n_m):
            self.topic_words = np.ascontiguousarray(self.topic_words[:, topics])
            self.n_m = self.n_m[topics]
            self.over_topics.select(topics)
            if self.documents is not None:
                self.documents.local_counts = np.ascontiguousarray(self.documents.local_counts[:, :, topics])

    def scale_counts(self, factor: float) -> None:
        """Multiply the statistics of the documents so far by ``factor``, in place."""
        concentrations = self.concentrations()
        self.topic_words *= factor
        self.n_m *= factor
        self.context_counts *= factor
        self.context_totals *= factor
        self.group_weights = self.law.posterior(factor * self.n_k, concentrations.mean[GROUP])
        self.proportions.scale_counts(factor, concentrations)
        if self.documents is not None:
            self.documents.omega_information *= factor

    def set_documents(self, cluster: np.ndarray) -> None:
        """Replace the documents by others with the clusters (n,), in place."""
        self.cluster = cluster
        if self.documents is not None:
            self.documents.forget(len(cluster), len(self.n_m))

    def add_columns(self, contexts: StackedContexts, n_words: int) -> None:
        """Extend to ``n_words`` words and the columns of ``contexts``, in place; new ones come last and are empty."""
        more = np.zeros((n_words - len(self.topic_words), len(self.n_m)))
        self.topic_words = np.concatenate([self.topic_words, more])
        counts = np.zeros((contexts.dimension, self.n_clusters))
        for name in contexts.names:
            known = self.context_counts[self.contexts.segment(name)]
            first = contexts.segment(name).start
            counts[first : first + len(known)] = known
        self.context_counts, self.contexts = counts, contexts


def clusters_in_use(state: Globals) -> np.ndarray:
    """Return the clusters that are the likeliest one of at least one document, ascending."""
    return np.unique(state.cluster[state.cluster >= 0])


def topics_in_use(state: Globals) -> np.ndarray:
    """Return the topics in which at least half a token is expected, ascending; the largest one if there is none."""
    largest = state.n_m.max()
    return np.flatnonzero(state.n_m >= min(_MIN_TOKENS, largest)) if largest > 0 else np.zeros(0, np.int64)
