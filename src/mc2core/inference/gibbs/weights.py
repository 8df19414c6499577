"""Concentrations, table counts and weights given the assignments (ICML14, section 3.2 and appendix A.2, corrected).

The concentrations have Gamma(shape, rate) priors. ICML14 calls them alpha for document clusters (group), v for topics
within a cluster (table), and eta for topics (topic). Omega is the concentration of documents around their cluster, and
s the prior of words in a topic.

**Clusters of documents** are a Dirichlet process, or a finite mixture of N clusters:

    pi ~ GEM(alpha), or pi ~ Dir(alpha / N, ..., alpha / N);   z_j ~ pi

With pi summed out, K clusters in use and b = alpha / N, a partition of J documents has the probability

    p(z) = N! / (N - K)! G(alpha) / G(alpha + J) prod_k G(n_k + b) / G(b)
         = G(alpha) / G(alpha + J) prod_{i < K} alpha (1 - i / N) prod_k G(n_k + b) / G(1 + b)

Therefore, a further document joins a cluster of n_k documents with a probability proportional to n_k + b, and a new
cluster with a probability proportional to alpha (1 - K / N). N = infinity gives the Dirichlet process, with identical
bits.

**Tables of documents.** The tokens of document j sit at tables, and the topics of tables are drawn from tau_k. t_jm is
the number of its tables with topic m. Given these numbers, tables have the same role as tokens in MC2 without a
document level. Therefore, z, v, epsilon, eta and alpha are sampled as in that model, with tables instead of tokens and
tau summed out.
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


# -- the law of the clusters ----------------------------------------------------------------------------------
class PartitionLaw(NamedTuple):
    """Parameters of the partition law for kernels."""

    alpha: float  # group concentration
    most: float  # N, infinite for a Dirichlet process
    each: float  # b
    log_gamma_one: float  # ln G(1 + b)

    @classmethod
    def of(cls, alpha: float, most: float = math.inf) -> PartitionLaw:
        """Return the law for the group concentration ``alpha`` and at most ``most`` clusters."""
        return cls(float(alpha), float(most), alpha / most, math.lgamma(1.0 + alpha / most))


@register_jitable(error_model="numpy")  # Python calls it as it is
def weight_of_new(law, n_clusters):
    """Return the weight of all new clusters together if ``n_clusters`` are in use; 0 if these are N."""
    return law.alpha * (1.0 - n_clusters / law.most)


def log_openings(law: PartitionLaw, n_clusters: int) -> float:
    """Return ln prod_{i < K} (1 - i / N), the factor in addition to the K-th power of alpha."""
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
        """Partition law of the clusters of documents."""
        return PartitionLaw.of(self.group, self.most_clusters)


def no_cluster(document: int, contexts: StackedContexts, concentrations: Concentrations) -> ValueError:
    """Return the error for a document whose cluster weights have no finite sum."""
    priors = "".join(f", {name}: {family!r}" for name, family in zip(contexts.names, contexts.families, strict=True))
    return ValueError(
        f"document {document}: the weights of its clusters have no finite sum above 0; check its "
        f"contexts and the priors (group_concentration {concentrations.group:g}, "
        f"table_concentration {concentrations.table:g}{priors})"
    )


def no_topic(document: int, concentrations: Concentrations, prior: float | Family) -> ValueError:
    """Return the error for a token whose topic weights have no finite sum; ``prior`` is s or the prior of the
    content."""
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
    """Return the nearest concentration that settings allow; beyond these limits, the model practically does not
    change."""
    return min(max(float(concentration), MIN_PRIOR), MAX_PRIOR)


def draw_dirichlet_process_concentration(
    concentration: float, n_atoms: int, n_draws: int, prior: GammaPrior, rng: np.random.Generator
) -> float:
    """Draw the concentration of a Dirichlet process given its atoms and draws (Escobar and West).

    For alpha, ``n_atoms`` is the number K of clusters and ``n_draws`` the number J of documents (A.2 prints
    Beta(alpha_1 + 1, J)). For eta, they are the M topics and o_.. tables. Without draws, the result is a draw from the
    prior.
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
    """Draw v given the tokens of each cluster (n_k.) and all tables (o_..) (Teh et al. 2006).

    A.2 prints table counts, but the joint density there has n_k. instead, which is used here. Tests compare the result
    with quadrature of this density.
    """
    n_tokens = n_tokens[n_tokens > 0]
    rate = prior.rate - float(np.log(rng.beta(concentration + 1.0, n_tokens)).sum())
    outside = int((rng.random(len(n_tokens)) * (n_tokens + concentration) < n_tokens).sum())
    return _within_range(rng.gamma(prior.shape + n_tables - outside, 1.0 / rate))


def draw_topic_prior(
    s: float, topic_words: np.ndarray, prior: GammaPrior, key: np.uint64, rng: np.random.Generator
) -> float:
    """Draw s given the tokens of each word in each topic, (M, V) int32, in the same way as v.

    With r_m ~ Beta(V s, n_m) and Antoniak's tables o_mw of n_mw tokens and mass s, s is Gamma given both, since
    G(V s) / G(V s + n_m) is prop. to the integral of r^(V s - 1) (1 - r)^(n_m - 1) over r.

    ``key``: one stream per topic.
    """
    n_words = topic_words.shape[1]
    n_m = topic_words.sum(axis=1, dtype=np.int64)
    n_m = n_m[n_m > 0]
    n_tables = int(draw_tables(topic_words, np.full(n_words, s), key).sum())
    # a Beta in logarithms: of a small V s it would be 0
    shares = streams.log_gammas(np.stack([np.full(len(n_m), n_words * s), n_m.astype(np.float64)]), rng)
    log_r = shares[0] - np.logaddexp(shares[0], shares[1])
    return _within_range(rng.gamma(prior.shape + n_tables, 1.0 / (prior.rate - n_words * float(log_r.sum()))))


# -- omega ----------------------------------------------------------------------------------------------------
_SLICE_WIDTH = 0.1  # of the slice sampler's first interval, in ln omega
_MAX_STEPS = 200
_SUMMED_BLOCK = 256  # documents that a thread takes at a time


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
    """Return ln p(l | z, tau, omega) with theta summed out, a Dirichlet-multinomial of sequences per document.

    Parameters
    ----------
    lengths : (J,) int64, tokens
    cluster : (J,) int32
    counts : n_jm
    tau : (K, M + 1) float64
    pool : threads, which change no bit
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
    """Draw omega by one step of a slice sampler (Neal 2003) in ln omega; given tables, it would hardly move.

    Returns the nearest value that is allowed as a setting.
    """

    def log_density(x: float) -> float:
        value = math.exp(x)
        return prior.shape * x - prior.rate * value + log_documents(lengths, cluster, counts, tau, value, pool)

    x = math.log(omega)
    level = log_density(x) + math.log1p(-rng.random())
    low = x - _SLICE_WIDTH * rng.random()
    high = low + _SLICE_WIDTH
    # steps to the left and to the right share a budget, so that the loop ends for every density
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
    """Return the sum over topics and words of ln G(n_wm + s) - ln G(s)."""
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
    """Draw the tables of n tokens at parameter a: token i opens one with probability a / (a + i) (Antoniak)."""
    opened = np.int64(n > 0)
    for i in range(1, n):
        if streams.uniform(stream) * (a + i) < a:
            opened += 1
    return opened


@numba.njit(inline="always")
def expect_tables(a, n):
    """Return the expected tables of n >= 1 tokens beyond the first, by an integral in place of the sum."""
    return a * log((a + n - 0.5) / (a + 0.5))


@numba.njit(inline="always")
def expect_table_shape(a, n):
    """Return the expected tables minus their variance."""
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

    o_km has the distribution of ICML14, A.2; no Stirling numbers are needed.

    Parameters
    ----------
    n_km : (K, M) int32
    prior : (M,) float64, > 0
        v eps_m.
    key : one stream per cluster

    Returns
    -------
    (M,) int64
        Numbers of tables: at least the number of clusters that use the topic, at most the number of its tokens.
    """
    tables = np.zeros(n_km.shape[1], np.int64)
    _draw_tables(key, n_km, prior, tables)
    return tables


_SAMPLED_BLOCK = 256  # documents that a thread takes at a time


@kernel
def _sample_document_tables(key, first, last, cluster, counts, token_start, prior, tables, n_tables):
    """Draw the topics of the tables of documents first..last-1, each from its first token on, and their numbers."""
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
    """Draw t_jm given l. Returns documents with their tables as tokens: topic m occurs t_jm times.

    Parameters
    ----------
    counts : n_jm
    prior : (K, M) float64
        omega tau_km.
    key : one stream for each document
    pool : threads, which change no bit

    Returns
    -------
    Assignments
        Clusters (copied) and topic weights of ``assignments``, with tables instead of tokens, and their counts.
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

    ``priors`` has the priors of the learnt concentrations among "topic", "table" and "group". With
    ``clusters_are_fixed``, alpha does not depend on z.
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
    """Draw tau_k ~ Dir(v epsilon + t_k) given (K, M) ``tables``: (K, M + 1), the last column for new topics."""
    prior = concentrations.table * np.append(assignments.topic_weights, assignments.remaining)
    shape = np.tile(prior, (len(tables), 1))
    shape[:, :-1] += tables
    return streams.dirichlet(shape, rng)
