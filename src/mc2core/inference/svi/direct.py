"""SVI-MC2 with direct assignment of tokens to topics.

q(tau_k) = Dir(v eps_1 + n_k1, ..., v eps_M + n_kM, v eps_rest) with point estimates of epsilon and v; tokens never go
to the rest. Clusters and topics that are not in use are part of the rest: K and M are what is left.

The ELBO is (a bound of ln p(w, x | eps, v)) + eta ln eps_rest + (the prior of v relative to its mode): both added terms
are at most 0, so it bounds the largest ln p(w, x | eps, v) over eps and v from below.

**epsilon and v** are moved by steps that never lower the bound. With q(tau_k) = Dir(v eps + n_k) at its optimum, all of
the ELBO that they enter is

    F(eps, v) = sum_k [ln B(v eps + n_k) - ln B(v eps)],  ln B(a) = sum_i ln G(a_i) - ln G(sum_i a_i),

to which two terms are added that are at most 0: eta ln eps_rest, since the weights of the topics in use have a density
prop. to prod_m eps_m^o_m eps_rest^eta in log-ratio coordinates given numbers of tables o (Teh et al. 2006), and, where
v is learnt, the density of ln v under v ~ Gamma(a, b) relative to its mode, a ln(v b / a) - b v + a.

For given v this is concave in epsilon, since ln G(x + n) - ln G(x) is concave in x. The expected tables
o_m = sum_k v eps_m (digamma(v eps_m + n_km) - digamma(v eps_m)), with eta for the rest, brought to sum 1, are a point
towards which it rises (its slope is the variance of the gradient under epsilon). For whole numbers n_km going there is
a step of EM and never lowers it; below one token that argument does not hold, so steps are halved where they lose.

**s**, of the symmetric Dirichlet prior of topics, has a point estimate by Newton steps that never lower the bound. With
q(psi_m) = Dir(s + n_m) at its optimum, all of the ELBO that s enters is

    L(s) = sum_m [ln G(V s) - ln G(V s + n_m) + sum_w ln G(s + n_mw) - ln G(s)],

to which the density of ln s under s ~ Gamma(a, b) relative to its mode is added, which is at most 0.

**Words** are two dense products forward, two back. With P_m(w) = exp(E ln psi_mw) and W_km = exp(E ln tau_km), the
likelihoods are lse_k(w) = ln sum_m W_km P_m(w), and the documents' masses R_k(w) say, by Q = R / (P W^T),

    n_km = W_km (Q^T P)_km,    tokens of word w in topic m = P_m(w) (Q W)_wm.

P is divided by its largest value of each word and W by that of each cluster, since exp(digamma(.001)) is 0 in float64.
Pairs of a word and a cluster whose sum vanishes all the same (*lost* pairs) have a bound of lse from above at first;
where a document has a share in such a cluster all the same, they are done one by one in logarithms and it is assigned
anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln, logsumexp, polygamma

from mc2core.base.described import Stored
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import digamma, log, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.svi import local
from mc2core.inference.svi.group_weights import GroupWeights
from mc2core.inference.svi.local import (
    WORD_BLOCK,
    Assign,
    Batch,
    DocumentStatistics,
    Expectations,
    exponentiate,
    fill_log_psi,
    row_maxima,
)
from mc2core.inference.svi.state import (
    GROUP,
    BatchStep,
    Globals,
    RunSettings,
    Start,
    blend,
    change,
    clusters_in_use,
    starting_rates,
    topics_in_use,
)
from mc2core.models import MC2
from mc2core.models.base import WORDS

# -- the prior of topics -------------------------------------------------------------------------------------------
_PRIOR_BLOCK = 1024
_NEWTON_STEPS, _HALVINGS = 20, 30
# Newton steps of ln s: longest, and short enough to end
_LONGEST_STEP, _SHORTEST_STEP = 1.0, 1e-4
_MIN_S, _MAX_S = 1e-10, 1e10


@inner_kernel(error_model="numpy")
def trigamma(x):
    """Derivative of digamma for x > 0: shifted by 8, then the asymptotic series."""
    total = 0.0
    for i in range(8):
        total += 1.0 / ((x + i) * (x + i))
    r = 1.0 / (x + 8.0)
    z = r * r
    series = 1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0))))
    return total + r + 0.5 * z + z * r * series


@kernel(error_model="numpy")
def sum_over_words(topic_words, s, first, last):
    """Sums over words first..last-1 and topics of ln G(s + n) - ln G(s) and of its two derivatives by s."""
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
    """L(s) and the density of ln s, in nats, given (V, M) expected tokens, and its two derivatives by ln s."""
    n_words, n_topics = topic_words.shape
    blocks = in_blocks(pool, lambda first, last: sum_over_words(topic_words, s, first, last), n_words, _PRIOR_BLOCK)
    value, slope, curve = (float(sum(terms)) for terms in zip(*blocks, strict=True))
    total, totals = n_words * s, n_words * s + topic_words.sum(axis=0)
    value += float(np.sum(gammaln(total) - gammaln(totals)))
    slope += n_words * float(n_topics * array_digamma(total) - np.sum(array_digamma(totals)))
    curve += n_words**2 * float(n_topics * polygamma(1, total) - np.sum(polygamma(1, totals)))
    value += density_of_log(s, prior)
    return value, s * slope + prior[0] - prior[1] * s, s * slope + s * s * curve - prior[1] * s


def density_of_log(s: float, prior: tuple[float, float]) -> float:
    """ln of the density of ln s under s ~ Gamma(shape, rate), relative to its mode: at most 0."""
    shape, rate = prior
    return shape * float(np.log(s * rate / shape)) - rate * s + shape


def best_topic_prior(topic_words: np.ndarray, s: float, prior: tuple[float, float], pool: Executor | None) -> float:
    """The s, from ``s`` on, at a maximum of the bound given the topics' expected tokens ``topic_words`` (V, M)."""
    now, slope, curve = prior_terms(topic_words, s, prior, pool)
    for _ in range(_NEWTON_STEPS):
        step = -slope / curve if curve < 0 else np.sign(slope) * _LONGEST_STEP
        step = float(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        for _ in range(_HALVINGS):
            new = float(np.clip(s * np.exp(step), _MIN_S, _MAX_S))
            terms = prior_terms(topic_words, new, prior, pool)
            if terms[0] >= now:
                s, (now, slope, curve) = new, terms
                break
            step *= 0.5
        if abs(step) < _SHORTEST_STEP:
            break
    return s


# -- epsilon and v -------------------------------------------------------------------------------------------------
# a topic without tokens keeps this weight until it is folded
_MIN_WEIGHT = 1e-12
_MIN_V, _MAX_V = 1e-8, 1e8


class Weights(NamedTuple):
    """``topics`` (M,) float64 > 0 and ``rest`` > 0, which sum to 1, and ``v`` > 0."""

    topics: np.ndarray
    rest: float
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


class Terms(NamedTuple):
    """F ``f`` and the terms that are at most 0 ``penalty``, in nats; (M,) ``slope``: see :meth:`Objective.terms`."""

    f: float
    penalty: float
    slope: np.ndarray


@dataclass
class Objective:
    """F and the terms beside it, given (K, M) expected tokens ``n_km``.

    ``prior`` is (shape, rate) of the Gamma prior of v, None where v is fixed.
    """

    n_km: np.ndarray
    eta: float
    prior: tuple[float, float] | None
    _latest: tuple[Weights, Terms] | None = field(default=None, init=False, repr=False)

    def terms(self, weights: Weights) -> Terms:
        """F in nats, the terms that are at most 0, and (M,) dF / d(v eps_m) but for what v alone enters.

        Those of the weights asked for last are kept: a step asks several times, and begins where the last one ended.
        """
        if self._latest is None or self._latest[0] is not weights:
            self._latest = weights, self._terms(weights)
        return self._latest[1]

    def _terms(self, weights: Weights) -> Terms:
        value, slope = np.empty((2, len(weights.topics)))
        sum_over_clusters(self.n_km, weights.v * weights.topics, value, slope)
        totals = self.n_km.sum(axis=1)
        f = float(value.sum() - np.sum(gammaln(weights.v + totals) - gammaln(weights.v)))
        penalty = self.eta * float(np.log(weights.rest))
        if self.prior is not None:
            penalty += density_of_log(weights.v, self.prior)
        return Terms(f, penalty, slope)

    def value(self, weights: Weights) -> float:
        """Nats."""
        f, penalty, _ = self.terms(weights)
        return f + penalty

    def gradient(self, weights: Weights) -> tuple[np.ndarray, float, float]:
        """Derivatives with respect to (M,) eps, eps_rest (as if they were free) and ln v."""
        slope = self.terms(weights)[2]
        v, totals = weights.v, self.n_km.sum(axis=1)
        by_v = float(weights.topics @ slope - np.sum(array_digamma(v + totals) - array_digamma(v)))
        if self.prior is not None:
            by_v += self.prior[0] / v - self.prior[1]
        return v * slope, self.eta / weights.rest, v * by_v


def expected_tables(objective: Objective, weights: Weights) -> np.ndarray:
    """(M,): sum_k v eps_m (digamma(v eps_m + n_km) - digamma(v eps_m))."""
    return weights.v * weights.topics * objective.terms(weights)[2]


def step_topics(objective: Objective, weights: Weights) -> Weights:
    """epsilon some way towards the expected tables; never lower."""
    tables = expected_tables(objective, weights)
    total = tables.sum() + objective.eta
    now = objective.value(weights)
    share = 1.0
    for _ in range(_HALVINGS):
        topics = np.maximum((1.0 - share) * weights.topics + share * tables / total, _MIN_WEIGHT)
        rest = max((1.0 - share) * weights.rest + share * objective.eta / total, _MIN_WEIGHT)
        whole = topics.sum() + rest
        new = Weights(topics / whole, rest / whole, weights.v)
        if objective.value(new) >= now:
            return new
        share *= 0.5
    return weights


def step_v(objective: Objective, weights: Weights) -> Weights:
    """v some way towards where its expected tables would put it, in logarithms; never lower."""
    if objective.prior is None:
        return weights
    shape, rate = objective.prior
    lost = np.sum(array_digamma(weights.v + objective.n_km.sum(axis=1)) - array_digamma(weights.v))
    goal = (float(expected_tables(objective, weights).sum()) + shape) / (float(lost) + rate)
    now = objective.value(weights)
    share = 1.0
    for _ in range(_HALVINGS):
        v = float(np.clip(weights.v * (goal / weights.v) ** share, _MIN_V, _MAX_V))
        new = weights._replace(v=v)
        if objective.value(new) >= now:
            return new
        share *= 0.5
    return weights


def step_weights(objective: Objective, weights: Weights, n_steps: int) -> Weights:
    """``n_steps`` steps of epsilon and v in turn."""
    for _ in range(n_steps):
        weights = step_v(objective, step_topics(objective, weights))
    return weights


@dataclass(kw_only=True)
class DirectExpectations(Expectations):
    """With E ln tau: ``log_tau`` (K, M)."""

    log_tau: np.ndarray


# -- words under direct assignment ---------------------------------------------------------------------------------
# Smaller factors of the products are 0: subnormal numbers take a hundred times as long to multiply. Sums of at least
# MIN_SUM lose less than rounding by that, smaller ones are lost
MIN_FACTOR, MIN_SUM = 1e-150, 1e-130
# a block is multiplied as a sparse matrix where fewer than one in this many of its entries are not 0
_SPARSE = 8
# tokens of topics in clusters are summed in this many shares: block b of words belongs to share b % _SHARES
_SHARES = 8


class WordTopics(NamedTuple):
    """What the documents of a batch share, over its U distinct words.

    scores : (U, M) float64, E ln psi, or expected log densities of observations
    weights : (U, M) float64, exp(scores - the word's highest score)
    sums : (U, K) float64, sum_m tau_km weights_m; may vanish
    log_likelihood : (U, K) float64, lse_k(w); of lost pairs that are not ``exact`` something above it
    has_lost : whether there are lost pairs
    exact : set of (word, cluster), lost pairs whose lse is known
    log_tau, tau : (K, M) float64, E ln tau, and its exponential divided by the cluster's largest
    buffers : Buffers of the arrays over words, which are those of the state and last as long as its next step
    """

    scores: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray
    has_lost: bool
    exact: set[tuple[int, int]]
    log_tau: np.ndarray
    tau: np.ndarray
    buffers: Buffers


class _Topics(NamedTuple):
    """The globals that likelihoods read: what :func:`.local.fill_log_psi` takes, (M, K) ``tau`` transposed, and the
    (K,) logarithms it was divided by."""

    topic_words: np.ndarray
    shrink: float
    words: np.ndarray
    prior: float
    log_total: np.ndarray
    by_topic: np.ndarray
    highest: np.ndarray


class _Rows(NamedTuple):
    """Arrays of :class:`WordTopics` to be filled, and (U,) the highest score of each word."""

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    log_likelihood: np.ndarray


@inner_kernel(error_model="numpy")
def fill_weights(topic_words, shrink, words, prior, log_total, first, last, scores, top, weights):
    """Scores of words first..last-1, their maxima, and exp of what they are below them, as of :class:`WordTopics`."""
    for u in range(first, last):  # a row at a time, which stays in the cache
        if log_total.size > 0:  # scores of observations are there already
            fill_log_psi(topic_words, shrink, words, prior, log_total, u, u + 1, scores)
        row_maxima(scores, u, u + 1, top)
        exponentiate(scores, top, u, u + 1, weights)
        for m in range(weights.shape[1]):
            weights[u, m] = weights[u, m] if weights[u, m] >= MIN_FACTOR else 0.0


@kernel(error_model="numpy")
def fill_likelihoods(topics, rows, first, last):
    """Rows first..last-1 of :class:`_Rows`, given :class:`_Topics`; whether a pair of these words is lost."""
    highest = topics.highest
    scores, top, weights, sums, likelihood = rows
    fill_weights(
        topics.topic_words, topics.shrink, topics.words, topics.prior, topics.log_total, first, last,
        scores, top, weights,
    )  # fmt: skip
    np.dot(weights[first:last], topics.by_topic, sums[first:last])
    has_lost = False
    for u in range(first, last):
        for k in range(highest.size):
            has_lost |= sums[u, k] < MIN_SUM
            likelihood[u, k] = log(max(sums[u, k], MIN_SUM)) + (top[u] + highest[k])
    return has_lost


def word_topics(
    state: DirectGlobals, expected: DirectExpectations, words: np.ndarray, pool: Executor | None
) -> WordTopics:
    """E ln psi and lse of the given words under the current globals, in the state's buffers."""
    n_clusters, n_topics = expected.log_tau.shape
    highest = expected.log_tau.max(axis=1)
    tau = np.exp(expected.log_tau - highest[:, None])
    tau[tau < MIN_FACTOR] = 0.0
    topics = _Topics(
        state.topic_words, state.shrink, words, state.topic_word_prior, expected.log_topic_total,
        np.ascontiguousarray(tau.T), highest,
    )  # fmt: skip
    scores, weights = (state.buffers.empty(name, len(words), n_topics) for name in ("scores", "weights"))
    sums, log_likelihood = (state.buffers.empty(name, len(words), n_clusters) for name in ("sums", "log_likelihood"))
    rows = _Rows(scores, np.empty(len(words)), weights, sums, log_likelihood)

    def work(first: int, last: int) -> bool:
        state.fill_scores(expected, words, first, last, scores)
        return fill_likelihoods(topics, rows, first, last)

    has_lost = any(in_blocks(pool, work, len(words), WORD_BLOCK))
    return WordTopics(scores, weights, sums, log_likelihood, has_lost, set(), expected.log_tau, tau, state.buffers)


@kernel(error_model="numpy")
def sum_block(word_mass, sums, weights, tau, first, last, is_there, n_km, topic_words):
    """Words first..last-1: topic_words[u] = P (Q W), and Q^T P is added to ``n_km``, lost pairs left out.

    Rows of ``n_km`` hold something where ``is_there`` (K,) says so.
    """
    n_clusters, n_topics = tau.shape
    n = 0
    for u in range(first, last):
        for k in range(n_clusters):
            if word_mass[u, k] > 0.0:
                n += 1
                if not is_there[k]:
                    is_there[k] = True
                    n_km[k] = 0.0
    # documents of a small batch are in few clusters each, so that most ratios are 0
    is_sparse = _SPARSE * n < (last - first) * n_clusters
    q = np.empty((0 if is_sparse else last - first, n_clusters))
    weight, out = np.empty((2, n_topics))
    for u in range(first, last):
        for m in range(n_topics):
            weight[m], out[m] = weights[u, m], 0.0
        for k in range(n_clusters):
            is_known = word_mass[u, k] > 0.0 and sums[u, k] >= MIN_SUM
            ratio = word_mass[u, k] / sums[u, k] if is_known else 0.0
            if not is_sparse:
                q[u - first, k] = ratio
            elif is_known:
                for m in range(n_topics):
                    out[m] += ratio * tau[k, m]
                for m in range(n_topics):
                    n_km[k, m] += ratio * weight[m]
        if is_sparse:
            for m in range(n_topics):
                topic_words[u, m] = out[m] * weight[m]
    if not is_sparse:
        np.dot(q, tau, topic_words[first:last])
        product = np.dot(q.T, weights[first:last])
        for k in range(n_clusters):
            if is_there[k]:
                n_km[k] += product[k]
        for u in range(first, last):
            for m in range(n_topics):
                topic_words[u, m] *= weights[u, m]


@kernel(error_model="numpy")
def add_shares(sums, is_there, tau, n_km):
    """n_km = W (the sum of ``sums`` (shares, K, M), whose rows hold something where ``is_there`` says so)."""
    for k in range(tau.shape[0]):
        for m in range(tau.shape[1]):
            n_km[k, m] = 0.0
        for share in range(sums.shape[0]):
            if is_there[share, k]:
                for m in range(tau.shape[1]):
                    n_km[k, m] += sums[share, k, m]
        for m in range(tau.shape[1]):
            n_km[k, m] *= tau[k, m]


def lost_pairs(likelihoods: WordTopics, word_mass: np.ndarray) -> list[tuple[int, int]]:
    """(word, cluster) of the lost pairs that have a mass R_k(w)."""
    if not likelihoods.has_lost:
        return []
    words, clusters = np.nonzero((likelihoods.sums < MIN_SUM) & (word_mass > 0))
    return list(zip(words.tolist(), clusters.tolist(), strict=True))


def make_exact(likelihoods: WordTopics, pairs: list[tuple[int, int]]) -> bool:
    """Compute lse of lost pairs in logarithms, in place; whether any was not known before."""
    new = set(pairs) - likelihoods.exact
    for word, k in sorted(new):
        likelihoods.log_likelihood[word, k] = logsumexp(likelihoods.scores[word] + likelihoods.log_tau[k])
    likelihoods.exact.update(new)
    return bool(new)


def assign_documents(
    batch: Batch,
    likelihoods: WordTopics,
    expected: DirectExpectations,
    pool: Executor | None,
    assign: Assign = local.assign_documents,
) -> tuple[np.ndarray, DocumentStatistics]:
    """What ``assign`` does, repeated while documents have a share in lost pairs that are not exact."""
    while True:
        shares, documents = assign(batch, likelihoods.log_likelihood, expected, pool)
        if not make_exact(likelihoods, lost_pairs(likelihoods, documents.word_mass)):
            return shares, documents


def topic_statistics(
    likelihoods: WordTopics, word_mass: np.ndarray, pool: Executor | None
) -> tuple[np.ndarray, np.ndarray]:
    """(K, M) float64 expected tokens of each topic in each cluster, and (U, M) of each word, given R (U, K)."""
    n_words, n_topics = likelihoods.weights.shape
    n_clusters, n_blocks = len(likelihoods.tau), -(-n_words // WORD_BLOCK)
    n_shares = min(_SHARES, n_blocks)
    topic_words = likelihoods.buffers.empty("topic_words", n_words, n_topics)
    sums = likelihoods.buffers.empty("n_km", n_shares, n_clusters, n_topics)
    is_there = np.zeros((n_shares, n_clusters), bool)
    known = word_mass, likelihoods.sums, likelihoods.weights, likelihoods.tau

    def work(share: int, _: int) -> None:
        for block in range(share, n_blocks, n_shares):
            first = block * WORD_BLOCK
            last = min(first + WORD_BLOCK, n_words)
            sum_block(*known, first, last, is_there[share], sums[share], topic_words)

    in_blocks(pool, work, n_shares, 1)
    n_km = np.empty_like(likelihoods.tau)
    add_shares(sums, is_there, likelihoods.tau, n_km)
    for word, k in lost_pairs(likelihoods, word_mass):
        share = likelihoods.scores[word] + likelihoods.log_tau[k] - likelihoods.log_likelihood[word, k]
        n = word_mass[word, k] * np.exp(share)
        n_km[k] += n
        topic_words[word] += n
    return n_km, topic_words


# -- the state -----------------------------------------------------------------------------------------------------
# truncations where none are set
_DOCUMENTS_FOR_CLUSTER, _MIN_CLUSTERS, _MAX_CLUSTERS, _TOPICS_FOR_CLUSTER = 4, 2, 320, 2
# steps of epsilon and v at the start, after a full step and after a mini-batch
STEPS_AT_START, STEPS_OF_FULL, STEPS_OF_BATCH = 30, 5, 1
# documents or tokens below which leaving a component out changes no full batch's bound
_NOTHING = 1e-9
# of Pearson's statistic above its mean, up to which words are taken for those of a topic
_DEVIATIONS = 3.0


@dataclass(kw_only=True)
class DirectGlobals(Globals):
    """q(tau_k) over topics, epsilon and v by points.

    Attributes
    ----------
    group_weights : (2, K) or (1, N) float64
        q(beta), as :mod:`mc2core.inference.svi.group_weights` has it.
    n_km : (K, M) float64, >= 0
        Expected tokens of topic m in cluster k.
    topic_weights : (M,) float64, > 0
        epsilon.
    rest : float
        eps_rest: 1 less their sum.
    table_concentration : float
        v.
    """

    described: ClassVar[dict[str, Stored]] = {
        "group_weights": Stored("f", "B K"),
        "n_km": Stored("f", "K M"),
        "topic_weights": Stored("f", "M"),
        "concentration_rates": Stored("f", "1"),
        **Globals.described,
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "rest": Stored("f", ""),
        "table_concentration": Stored("f", ""),
        "topic_word_prior": Stored("f", ""),
        **Globals.described_numbers,
    }

    #: clusters and topics by rule at most
    most_clusters: ClassVar[int] = _MAX_CLUSTERS
    most_topics: ClassVar[int] = _TOPICS_FOR_CLUSTER * _MAX_CLUSTERS

    n_km: np.ndarray
    topic_weights: np.ndarray
    rest: float
    table_concentration: float

    @classmethod
    def truncations(cls, corpus: Corpus, n_clusters: int | None, n_topics: int | None) -> tuple[int, int]:
        """By rule a cluster for every four documents, 2 to 320 of them, and two topics for every cluster.

        More clusters have lower perplexity on validation documents as far as was tried (docs/notes/svi.md); the
        most is what time allows.
        """
        by_rule = min(max(-(-corpus.n_documents // _DOCUMENTS_FOR_CLUSTER), _MIN_CLUSTERS), _MAX_CLUSTERS)
        n_clusters = n_clusters or by_rule
        return n_clusters, n_topics or _TOPICS_FOR_CLUSTER * n_clusters

    @classmethod
    def n_numbers(cls, settings: RunSettings, corpus: Corpus) -> int:
        return settings.n_clusters * settings.n_topics

    @classmethod
    def begin(cls, model: MC2, settings: RunSettings, start: Start, corpus: Corpus, contexts: StackedContexts) -> Self:
        assignments = start.assignments
        n_topics = assignments.topic_words.shape[1]
        n_km = np.zeros((len(start.order), n_topics))
        np.add.at(n_km, (np.arange(len(n_km))[:, None], assignments.table_topic), assignments.n_kt)
        law = GroupWeights(model.n_clusters)
        group_weights = law.posterior(start.n_k, model.group_concentration)
        topic_words = start.scale * assignments.topic_words
        state = cls(
            model=model,
            settings=settings,
            group_weights=group_weights,
            n_km=start.scale * n_km[start.order],
            topic_weights=np.full(n_topics, 1.0 / (n_topics + 1)),
            rest=1.0 / (n_topics + 1),
            table_concentration=model.table_concentration,
            topic_words=topic_words,
            context_counts=start.contexts,
            context_totals=contexts.sums_by_context(start.contexts),
            concentration_rates=starting_rates(model, (law.sticks(group_weights),)),
            cluster=start.cluster,
            topic_word_prior=model.topic_word_prior,
            contexts=contexts,
            n_m=np.zeros(n_topics),
            observed=start.observed,
            **cls.further_fields(model, settings, corpus),
        )
        state.n_m = state.topic_sizes()
        state.tidy(None, is_full=True)
        state.weights = step_weights(state.objective, state.weights, STEPS_AT_START)
        return state

    @classmethod
    def further_fields(cls, model: MC2, settings: RunSettings, corpus: Corpus) -> dict[str, Any]:
        """Fields of the starting state beside those of direct assignment."""
        return {}

    @classmethod
    def sizes(cls, model: MC2, settings: RunSettings, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """K of a finite mixture; else K and M are what is left of the truncations."""
        shape, most = np.shape(arrays.get("n_km", ())), (settings.n_clusters, settings.n_topics)
        if len(shape) == 2 and not (0 < shape[0] <= most[0] and 0 < shape[1] <= most[1]):
            raise ValueError(f"'n_km' has the shape {shape}; at most {most} is needed, at least (1, 1)")
        return {"B": 2} if model.n_clusters is None else {"B": 1, "K": model.n_clusters}

    def _prior(self, role: str) -> tuple[float, float] | None:
        """(shape, rate) of a concentration with a point estimate, None where it is fixed."""
        return self.model.prior_of(role) if role in self.model.learn_concentrations else None

    @property
    def v_prior(self) -> tuple[float, float] | None:
        """(shape, rate) of v's Gamma prior; None where v is fixed."""
        return self._prior("table")

    @property
    def s_prior(self) -> tuple[float, float] | None:
        """The same of s, ``topic_word_prior``, which topics that emit observations do not have."""
        return self._prior(WORDS) if self.observed is None else None

    @property
    def n_k(self) -> np.ndarray:
        """(K,) float64: expected documents of each cluster."""
        return self.law.n_k(self.group_weights, self.concentrations().mean[GROUP])

    @property
    def weights(self) -> Weights:
        """epsilon and v."""
        return Weights(self.topic_weights, self.rest, self.table_concentration)

    @weights.setter
    def weights(self, new: Weights) -> None:
        self.topic_weights, self.rest, self.table_concentration = new

    @property
    def objective(self) -> Objective:
        """What epsilon and v raise."""
        return Objective(self.n_km, self.model.topic_concentration, self.v_prior)

    @property
    def law(self) -> GroupWeights:
        """Of the clusters' weights."""
        return GroupWeights(self.model.n_clusters)

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        return (self.law.sticks(self.group_weights),)

    def weigh(self, factor: float) -> None:
        super().weigh(factor)
        self.n_km *= factor
        self.group_weights = self.law.posterior(factor * self.n_k, self.concentrations().mean[GROUP])

    def expected_weights(self) -> np.ndarray:
        return self.law.expected(self.group_weights)

    def group_divergence(self) -> float:
        return self.law.divergence(self.group_weights, self.concentrations().mean[GROUP])

    def expectations(self, columns: np.ndarray | None = None) -> DirectExpectations:
        return DirectExpectations(
            log_group=self.law.expected_logs(self.group_weights),
            log_tau=self.expected_log_tau(),
            **self.shared_expectations(columns),
        )

    def expected_log_tau(self) -> np.ndarray:
        """(K, M): E ln tau_km."""
        v = self.table_concentration
        total = array_digamma(v + self.n_km.sum(axis=1, keepdims=True))
        return array_digamma(v * self.topic_weights + self.n_km) - total

    def keep(self, clusters: np.ndarray, topics: np.ndarray) -> None:
        """Leave out all clusters but these, in this order, and topics, whose weights go to the rest, in place.

        The sticks of clusters stay.
        """
        number = np.full(len(self.n_km), -1, np.int32)
        number[clusters] = np.arange(len(clusters), dtype=np.int32)
        self.cluster = np.where(self.cluster >= 0, number[self.cluster], np.int32(-1))
        self.context_counts = np.ascontiguousarray(self.context_counts[:, clusters])
        self.context_totals = self.context_totals[:, clusters]
        self.n_km = self.n_km[np.ix_(clusters, topics)]
        if len(topics) < len(self.n_m):
            left = self.topic_weights[topics]
            self.rest += float(self.topic_weights.sum() - left.sum())
            self.topic_weights = left
            self.topic_words = np.ascontiguousarray(self.topic_words[:, topics])
            self.n_m = self.n_m[topics]

    def add_topics(self, n: int, *rows: dict[str, Any]) -> None:
        """Add ``n`` topics without tokens, each with a share of the weight of the rest, in place.

        They are added to ``rows``, too, which :meth:`rows_of` gave before.
        """
        now = {name: getattr(self, name) for name in ("topic_words", "n_km", "n_m", "topic_weights", "rest")}
        for part in (now, *rows):
            for name in ("topic_words", "n_km", "n_m"):
                part[name] = np.concatenate([part[name], np.zeros((*part[name].shape[:-1], n))], axis=-1)
            part["rest"] = part["rest"] / (n + 1)
            part["topic_weights"] = np.append(part["topic_weights"], np.full(n, part["rest"]))
        for name, value in now.items():
            setattr(self, name, value)
        self.settings = self.settings._replace(n_topics=max(self.settings.n_topics, len(self.n_m)))

    def is_of_one_topic(self, words: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """(n,) bool: whether ``counts`` (U, n) of ``words`` (U,) are what one of the topics gives, but for chance.

        By Pearson's statistic beside the topic that they are likeliest of, at most three standard deviations above its
        mean (both exact for a multinomial distribution, however rare words are).
        """
        n_words, totals = len(self.topic_words), counts.sum(axis=0)
        size = self.n_m + n_words * self.topic_word_prior
        of_words = (self.shrink * self.topic_words[words] + self.topic_word_prior) / size
        topic = (np.log(of_words).T @ counts).argmax(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (counts**2 / of_words[:, topic]).sum(axis=0) / totals - totals
            inverse = (size[topic] / (self.shrink * self.topic_words[:, topic] + self.topic_word_prior)).sum(axis=0)
            variance = 2.0 * (n_words - 1) + (inverse - n_words**2 - 2.0 * n_words + 2.0) / totals
            return np.asarray((totals == 0) | (found <= n_words - 1 + _DEVIATIONS * np.sqrt(variance)))

    def suggest(self, words: np.ndarray, counts: np.ndarray) -> None:
        """Let the last n topics hold ``counts`` (U, n) expected tokens of ``words`` (U,), in place.

        Each cluster then has half as many of their tokens as of a topic in the mean.
        """
        n_topics, n = len(self.n_m), counts.shape[1]
        self.topic_words[words, -n:] = counts / self.shrink
        self.n_m[-n:] = counts.sum(axis=0)
        self.n_km[:, -n:] = 0.5 * self.n_km.sum(axis=1, keepdims=True) / n_topics

    def proportions_divergence(self) -> float:
        """sum_k KL(q(tau_k) || Dir(v eps)), less what eta and the priors of v and s add to the bound."""
        f, penalty, _ = self.objective.terms(self.weights)
        if self.s_prior is not None:
            penalty += density_of_log(self.topic_word_prior, self.s_prior)
        used = self.n_km > 0
        return float(np.sum(self.n_km[used] * self.expected_log_tau()[used])) - f - penalty

    # -- steps ------------------------------------------------------------------------------------------------------
    def step(
        self,
        batch: Batch,
        scale: float,
        rate: float,
        pool: Executor | None,
        assign: Assign = local.assign_documents,
        since: Mapping[str, Any] | None = None,
    ) -> BatchStep:
        before = self.expectations(batch.columns)
        words = word_topics(self, before, batch.words, pool)
        shares, documents = assign_documents(batch, words, before, pool, assign)
        if since is not None:
            self.go_back(batch, since)
        self.seat(batch, shares)
        n_km, topic_words = topic_statistics(words, documents.word_mass, pool)
        self.blend_shared(batch, documents, topic_words, scale, rate, pool)
        blend(self.n_km, scale * n_km, rate)
        self.weights = step_weights(self.objective, self.weights, STEPS_OF_FULL if rate == 1.0 else STEPS_OF_BATCH)

        def changed() -> float:
            after = self.expectations(batch.columns)
            of_words = self.expected_topic_words(after, batch.words, topic_words, pool)
            of_words -= float(np.sum(topic_words * words.scores))
            return change(documents, before, after, of_words, float(np.sum(n_km * (after.log_tau - before.log_tau))))

        return BatchStep(shares, documents, changed)

    def blend_shared(
        self,
        batch: Batch,
        documents: DocumentStatistics,
        topic_words: np.ndarray,
        scale: float,
        rate: float,
        pool: Executor | None,
    ) -> None:
        """The natural-gradient step of the clusters' weights, contexts and topics, in place."""
        target = self.law.posterior(scale * documents.n_k, self.concentrations().mean[GROUP])
        blend(self.group_weights, target, rate)
        self.blend_contexts(batch.columns, documents.contexts, scale, rate)
        self.blend_topic_words(batch.words, topic_words, scale, rate, pool)

    def tidy(self, pool: Executor | None, is_full: bool) -> None:
        """s where it is learnt; clusters in order of size; clusters and topics not in use become part of the rest.

        Not in use are, after a full batch, those with nothing at all (which changes no bound), else those that no
        document likes best and topics with less than half a token. The clusters of a finite mixture all stay.
        """
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
        clusters = clusters[np.argsort(-n_k[clusters], kind="stable")]
        self.keep(clusters, topics)
        alpha = self.concentrations().mean[GROUP]
        self.group_weights = self.law.posterior(n_k[clusters], alpha)
        self.step_concentrations()

    def proportions(self, clusters: np.ndarray, topics: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        v = self.table_concentration
        n_km = self.n_km[clusters]
        known = (v * self.topic_weights + n_km) / (v + n_km.sum(axis=1, keepdims=True))
        return known[:, topics], self.topic_weights[topics], v
