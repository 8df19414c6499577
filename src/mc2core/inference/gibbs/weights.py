"""Draws of concentrations, table counts and weights given the assignments (ICML14, 3.2 and A.2, corrected).

The concentrations have Gamma(shape, rate) priors. ICML14 denotes them by alpha for document clusters (group), v for
topics within a cluster (table), and eta for topics (topic). Omega is the concentration of documents around their
cluster, and s is the Dirichlet parameter of words in a topic.

**Clusters of documents** are a Dirichlet process mixture, or a finite mixture of N clusters:

    pi ~ GEM(alpha), or pi ~ Dir(alpha / N, ..., alpha / N);   z_j ~ pi

With pi summed out, K clusters in use and b = alpha / N, a partition of J documents has the probability

    p(z) = N! / (N - K)! G(alpha) / G(alpha + J) prod_k G(n_k + b) / G(b)
         = G(alpha) / G(alpha + J) prod_{i < K} alpha (1 - i / N) prod_k G(n_k + b) / G(1 + b)

Therefore, the next document is in a cluster of n_k documents with a probability proportional to n_k + b. It is in a new
cluster with a probability proportional to alpha (1 - K / N). With N = infinity, the same code computes the Dirichlet
process.

**Tables of documents.** The tokens of document j are seated at tables, and the topics of tables are drawn from tau_k.
t_jm is the number of tables of document j with topic m. Given these numbers, tables have the role that tokens have in
MC2 without a document level. Therefore, z, v, epsilon, eta and alpha are sampled as in MC2 without a document level,
with tables instead of tokens and tau summed out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numba.extending import register_jitable
from scipy.special import gammaln

from mc2core.base.checks import MAX_PRIOR, MIN_PRIOR
from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import MIN_POSITIVE, log, log_gamma, log_rising_factorial
from mc2core.compute.threads import in_blocks
from mc2core.families import Family
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.assignments import Assignments, TopicCounts, close_up


# -- distribution of the partition into clusters --------------------------------------------------------------
class PartitionLaw(NamedTuple):
    """Parameters of the distribution p(z) of the partition, for kernels."""

    alpha: float  # group concentration
    most: float  # N, infinite for a Dirichlet process
    each: float  # b = alpha / N
    log_gamma_one: float  # ln G(1 + b)

    @classmethod
    def from_concentration(cls, alpha: float, most: float = math.inf) -> PartitionLaw:
        """Return the parameters for the group concentration ``alpha`` and at most ``most`` clusters."""
        return cls(float(alpha), float(most), alpha / most, math.lgamma(1.0 + alpha / most))


@register_jitable(error_model="numpy")  # compiled in kernels only; Python calls the plain function
def weight_of_new(law, n_clusters):
    """Return the total weight of all new clusters if ``n_clusters`` are in use; 0 if N are in use."""
    return law.alpha * (1.0 - n_clusters / law.most)


def log_openings(law: PartitionLaw, n_clusters: int) -> float:
    """Return ln prod_{i < K} (1 - i / N), where K is ``n_clusters``; for a Dirichlet process, this is 0."""
    return float(np.log1p(-np.arange(n_clusters) / law.most).sum())


def log_partition(law: PartitionLaw, n_k: np.ndarray) -> float:
    """Return ln p(z) in nats for clusters with (K,) ``n_k`` documents, each at least 1."""
    result = len(n_k) * np.log(law.alpha) + (gammaln(n_k + law.each) - law.log_gamma_one).sum()
    result += log_openings(law, len(n_k))
    return float(result + (gammaln(law.alpha) - gammaln(law.alpha + n_k.sum())))


# -- concentrations -------------------------------------------------------------------------------------------
@dataclass
class Concentrations:
    """The concentrations alpha, v and eta of ICML14 (all > 0), and N, the largest possible number of clusters."""

    group: float
    table: float
    topic: float
    most_clusters: float = math.inf

    @property
    def partition(self) -> PartitionLaw:
        """Distribution of the partition of documents into clusters."""
        return PartitionLaw.from_concentration(self.group, self.most_clusters)


def no_cluster(document: int, contexts: StackedContexts, concentrations: Concentrations) -> ValueError:
    """Return the error for a document whose cluster weights have no finite sum."""
    priors = "".join(f", {name}: {family!r}" for name, family in zip(contexts.names, contexts.families, strict=True))
    return ValueError(
        f"document {document}: the weights of its clusters have no finite sum above 0; check its "
        f"contexts and the priors (group_concentration {concentrations.group:g}, "
        f"table_concentration {concentrations.table:g}{priors})"
    )


def no_topic(document: int, concentrations: Concentrations, prior: float | Family) -> ValueError:
    """Return the error for a token whose topic weights have no finite sum; ``prior`` is s or the content family."""
    of_content = f"content {prior!r}" if isinstance(prior, Family) else f"topic_word_prior {prior:g}"
    return ValueError(
        f"document {document}: the weights of a token's topics have no finite sum above 0; check the priors "
        f"(table_concentration {concentrations.table:g}, topic_concentration {concentrations.topic:g}, "
        f"{of_content})"
    )


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, rate) prior of a concentration."""

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.shape < math.inf and 0 < self.rate < math.inf):
            raise ValueError(f"a Gamma prior needs shape and rate > 0, not shape {self.shape} and rate {self.rate}")


def _within_range(concentration: float) -> float:
    """Clip a concentration to the range of the settings; beyond this range, the model hardly changes."""
    return min(max(float(concentration), MIN_PRIOR), MAX_PRIOR)


def draw_dirichlet_process_concentration(
    concentration: float, n_atoms: int, n_draws: int, prior: GammaPrior, rng: np.random.Generator
) -> float:
    """Draw the concentration of a Dirichlet process given its numbers of atoms and draws (Escobar and West 1995).

    For alpha, ``n_atoms`` is the number K of clusters and ``n_draws`` is the number J of documents; the auxiliary
    variable is the Beta(alpha_1 + 1, J) of A.2. For eta, they are the number M of topics and the number o_.. of tables.
    If ``n_draws`` is 0, the result is a draw from the prior.
    """
    if n_draws == 0:
        return _within_range(rng.gamma(prior.shape, 1.0 / prior.rate))
    rate = prior.rate - math.log(rng.beta(concentration + 1.0, n_draws))
    shape = prior.shape + n_atoms
    odds = (shape - 1.0) / (n_draws * rate)
    if rng.random() * (1.0 + odds) >= odds:
        shape -= 1.0
    return _within_range(rng.gamma(shape, 1.0 / rate))


def draw_table_concentration(
    concentration: float, n_tokens: np.ndarray, n_tables: int, prior: GammaPrior, rng: np.random.Generator
) -> float:
    """Draw v given the number of tokens of each cluster, n_k., and the number of all tables, o_.. (Teh et al. 2006).

    A.2 prints table counts instead of n_k., but its joint density has n_k., which is used here. Tests compare the
    result with quadrature of this density.
    """
    n_tokens = n_tokens[n_tokens > 0]
    rate = prior.rate - float(np.log(rng.beta(concentration + 1.0, n_tokens)).sum())
    outside = int((rng.random(len(n_tokens)) * (n_tokens + concentration) < n_tokens).sum())
    return _within_range(rng.gamma(prior.shape + n_tables - outside, 1.0 / rate))


def draw_topic_prior(
    s: float, topic_words: np.ndarray, prior: GammaPrior, key: np.uint64, rng: np.random.Generator
) -> float:
    """Draw s given the number of tokens of each word in each topic, (M, V) int32, by the same method as v.

    The auxiliary variables are r_m ~ Beta(V s, n_m) and the numbers o_mw of tables of n_mw tokens at mass s (Antoniak).
    Given these variables, s has a Gamma distribution, because G(V s) / G(V s + n_m) is proportional to the integral of
    r^(V s - 1) (1 - r)^(n_m - 1) over r. ``key`` has one random stream per topic.
    """
    n_words = topic_words.shape[1]
    n_m = topic_words.sum(axis=1, dtype=np.int64)
    n_m = n_m[n_m > 0]
    n_tables = int(draw_tables(topic_words, np.full(n_words, s), key).sum())
    # the logarithm of the Beta variate is drawn, because the variate can underflow if V s is small
    shares = streams.log_gammas(np.stack([np.full(len(n_m), n_words * s), n_m.astype(np.float64)]), rng)
    log_r = shares[0] - np.logaddexp(shares[0], shares[1])
    return _within_range(rng.gamma(prior.shape + n_tables, 1.0 / (prior.rate - n_words * float(log_r.sum()))))


# -- omega ----------------------------------------------------------------------------------------------------
_SLICE_WIDTH = 0.1  # width of the slice sampler's first interval, in ln omega
_MAX_STEPS = 200  # largest number of steps by which the interval is extended
_SUMMED_BLOCK = 256  # documents per block of work of a thread


@kernel
def _log_documents(first, last, lengths, cluster, start, topic, count, tau, omega):
    result = 0.0
    for j in range(first, last):
        result -= log_rising_factorial(omega, lengths[j])
        for c in range(start[j], start[j + 1]):
            result += log_rising_factorial(max(omega * tau[cluster[j], topic[c]], MIN_POSITIVE), count[c])
    return result


def log_documents(
    lengths: np.ndarray,
    cluster: np.ndarray,
    counts: TopicCounts,
    tau: np.ndarray,
    omega: float,
    pool: Executor | None = None,
) -> float:
    """Return ln p(l | z, tau, omega) with theta summed out: one Dirichlet-multinomial of a token sequence per document.

    Parameters
    ----------
    lengths : (J,) int64
        Number of tokens of each document.
    cluster : (J,) int32
        Cluster of each document.
    counts : TopicCounts
        Numbers n_jm of tokens of each document in each topic.
    tau : (K, M + 1) float64
        Topic proportions of the clusters.
    omega : float
        Document concentration.
    pool : Executor or None
        Threads; they do not change the result.
    """

    def of_documents(first: int, last: int) -> float:
        return _log_documents(first, last, lengths, cluster, *counts, tau, omega)

    return float(sum(in_blocks(pool, of_documents, len(cluster), _SUMMED_BLOCK)))


def draw_omega(
    lengths: np.ndarray,
    cluster: np.ndarray,
    counts: TopicCounts,
    tau: np.ndarray,
    omega: float,
    prior: GammaPrior,
    rng: np.random.Generator,
    pool: Executor | None = None,
) -> float:
    """Draw omega by one step of a slice sampler (Neal 2003) in ln omega, clipped to the range of the settings.

    Tables are summed out, because omega would hardly change if it were drawn given the tables.
    """

    def log_density(x: float) -> float:
        value = math.exp(x)
        return prior.shape * x - prior.rate * value + log_documents(lengths, cluster, counts, tau, value, pool)

    x = math.log(omega)
    level = log_density(x) + math.log1p(-rng.random())
    low = x - _SLICE_WIDTH * rng.random()
    high = low + _SLICE_WIDTH
    # the number of steps to the left and to the right is limited, so that the loops end for every density
    left = int(rng.random() * _MAX_STEPS)
    right = _MAX_STEPS - 1 - left
    while left > 0 and log_density(low) > level:
        low, left = low - _SLICE_WIDTH, left - 1
    while right > 0 and log_density(high) > level:
        high, right = high + _SLICE_WIDTH, right - 1
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new) > level or new == x:
            return min(max(math.exp(new), MIN_PRIOR), MAX_PRIOR)
        low, high = (new, high) if new < x else (low, new)


@kernel
def log_words(n_wm, s):
    """Return the sum over topics m and words w of ln G(n_wm + s) - ln G(s)."""
    result = 0.0
    at_zero = log_gamma(s)
    for w in range(n_wm.shape[0]):
        for m in range(n_wm.shape[1]):
            if n_wm[w, m] > 0:
                result += log_gamma(n_wm[w, m] + s) - at_zero
    return result


# -- tables, epsilon and tau ----------------------------------------------------------------------------------
@numba.njit(inline="always")
def sample_tables(stream, n, a):
    """Draw the number of tables of n tokens with mass a: token i opens one with probability a / (a + i) (Antoniak)."""
    opened = np.int64(n > 0)
    for i in range(1, n):
        if streams.uniform(stream) * (a + i) < a:
            opened += 1
    return opened


@numba.njit(inline="always")
def expect_tables(a, n):
    """Return the expected number of tables of n >= 1 tokens after the first table; an integral approximates the sum."""
    return a * log((a + n - 0.5) / (a + 0.5))


@numba.njit(inline="always")
def expect_table_shape(a, n):
    """Return the expectation minus the variance of the number of tables after the first table (approximation)."""
    return a * a * (1.0 / (a + 0.5) - 1.0 / (a + n - 0.5))


@kernel
def _draw_tables(key, n_km, prior, tables):
    stream = np.zeros(2, np.uint64)
    for k in range(n_km.shape[0]):
        streams.seek(stream, key, k)
        for m in range(n_km.shape[1]):
            tables[m] += sample_tables(stream, n_km[k, m], prior[m])


def draw_tables(n_km: np.ndarray, prior: np.ndarray, key: np.uint64) -> np.ndarray:
    """Draw the number of tables of each topic, summed over clusters (o_.m).

    o_km has the distribution of ICML14, A.2, but no Stirling numbers are needed.

    Parameters
    ----------
    n_km : (K, M) int32
        Number of tokens of each topic in each cluster.
    prior : (M,) float64, > 0
        v eps_m.
    key : np.uint64
        Key with one random stream per cluster.

    Returns
    -------
    (M,) int64
        Number of tables of each topic: at least the number of clusters with the topic, at most its number of tokens.
    """
    tables = np.zeros(n_km.shape[1], np.int64)
    _draw_tables(key, n_km, prior, tables)
    return tables


_SAMPLED_BLOCK = 256  # documents per block of work of a thread


@kernel
def _sample_document_tables(key, first, last, cluster, counts, token_start, prior, tables, n_tables):
    """Draw the tables of documents first..last-1.

    The topics of a document's tables are written to ``tables`` from the index of its first token on, and the number of
    its tables is written to ``n_tables``.
    """
    stream = np.zeros(2, np.uint64)
    start, topic, n = counts.start, counts.topic, counts.n
    for j in range(first, last):
        streams.seek(stream, key, j)
        place = token_start[j]
        for c in range(start[j], start[j + 1]):
            for _ in range(sample_tables(stream, n[c], prior[cluster[j], topic[c]])):
                tables[place] = topic[c]
                place += 1
        n_tables[j] = place - token_start[j]


def sample_document_tables(
    assignments: Assignments, counts: TopicCounts, prior: np.ndarray, key: np.uint64, pool: Executor | None
) -> Assignments:
    """Draw the numbers t_jm of tables given the topics of tokens, and return assignments of tables instead of tokens.

    Parameters
    ----------
    assignments : Assignments
        Assignments of the tokens.
    counts : TopicCounts
        Numbers n_jm of tokens of each document in each topic.
    prior : (K, M) float64
        omega tau_km.
    key : np.uint64
        Key with one random stream per document.
    pool : Executor or None
        Threads; they do not change the result.

    Returns
    -------
    Assignments
        Assignments with t_jm entries of topic m in document j, a copy of the clusters, and the same topic weights.
    """
    start, cluster = assignments.document_start, assignments.cluster
    tables, n_tables = np.empty(len(assignments.topic), np.int32), np.zeros(len(cluster), np.int64)

    def sample(first: int, last: int) -> None:
        _sample_document_tables(key, first, last, cluster, counts, start, prior, tables, n_tables)

    in_blocks(pool, sample, len(cluster), _SAMPLED_BLOCK)
    table_start = np.concatenate([[0], np.cumsum(n_tables)])
    closed = np.empty(table_start[-1], np.int32)
    close_up(start, n_tables, tables, closed)
    weights, remaining = assignments.topic_weights, assignments.remaining
    of_tables = Assignments(cluster.copy(), closed, table_start, weights, remaining)
    of_tables.count(assignments.n_clusters)
    return of_tables


def draw_topic_weights(assignments: Assignments, tables: np.ndarray, eta: float, rng: np.random.Generator) -> None:
    """Draw epsilon ~ Dir(o_.1, ..., o_.M, eta), in place."""
    weights = streams.dirichlet(np.append(tables, eta), rng)
    assignments.topic_weights, assignments.remaining = weights[:-1], float(weights[-1])


def update_weights(
    assignments: Assignments,
    concentrations: Concentrations,
    priors: Mapping[str, GammaPrior],
    key: np.uint64,
    rng: np.random.Generator,
    *,
    clusters_are_fixed: bool,
) -> None:
    """Draw tables, eta, v, alpha and epsilon in turn, in place.

    ``priors`` contains the priors of the learnt concentrations among "topic", "table" and "group". If
    ``clusters_are_fixed``, alpha is not drawn.
    """
    tables = draw_tables(assignments.n_km, concentrations.table * assignments.topic_weights, key)
    total = int(tables.sum())
    # eta, v and alpha given the tables (epsilon integrated out); then epsilon given tables and eta
    if "topic" in priors:
        concentrations.topic = draw_dirichlet_process_concentration(
            concentrations.topic, assignments.n_topics, total, priors["topic"], rng
        )
    if "table" in priors:
        n_tokens = assignments.n_km.sum(axis=1, dtype=np.int64)
        concentrations.table = draw_table_concentration(concentrations.table, n_tokens, total, priors["table"], rng)
    if "group" in priors and not clusters_are_fixed:
        concentrations.group = draw_dirichlet_process_concentration(
            concentrations.group, assignments.n_clusters, len(assignments.cluster), priors["group"], rng
        )
    draw_topic_weights(assignments, tables, concentrations.topic, rng)


def draw_proportions(
    tables: np.ndarray, assignments: Assignments, concentrations: Concentrations, rng: np.random.Generator
) -> np.ndarray:
    """Draw tau_k ~ Dir(v epsilon + t_k) given ``tables`` (K, M); return (K, M + 1), the last column for new topics."""
    prior = concentrations.table * np.append(assignments.topic_weights, assignments.remaining)
    shape = np.tile(prior, (len(tables), 1))
    shape[:, :-1] += tables
    return streams.dirichlet(shape, rng)
