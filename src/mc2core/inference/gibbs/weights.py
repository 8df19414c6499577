"""Table counts, topic weights and concentrations given the assignments (ICML14 section 3.2 and appendix A.2, mended).

The concentrations' priors are Gamma(shape, rate); alpha, v, eta are ICML14's names of the concentrations of document
clusters (group), of topics within a cluster (table) and of topics (topic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mc2core.base.checks import MAX_PRIOR, MIN_PRIOR
from mc2core.compute import streams, variates
from mc2core.compute.kernels import kernel
from mc2core.inference.gibbs.state import Assignments, Concentrations


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, rate) prior of a concentration."""

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.shape < math.inf and 0 < self.rate < math.inf):
            raise ValueError(f"a Gamma prior needs shape and rate > 0, not shape {self.shape} and rate {self.rate}")


@kernel(error_model="numpy")
def _draw_tables(key, n_km, prior, tables):
    stream = np.zeros(2, np.uint64)
    for k in range(n_km.shape[0]):
        streams.seek(stream, key, k)
        for m in range(n_km.shape[1]):
            n = n_km[k, m]
            a = prior[m]
            # customer i opens a table with probability a / (a + i)
            opened = np.int64(0)
            if n > 0:
                opened = np.int64(1)
            for i in range(1, n):
                if streams.uniform(stream) * (a + i) < a:
                    opened += 1
            tables[m] += opened


def draw_tables(n_km: np.ndarray, prior: np.ndarray, key: np.uint64) -> np.ndarray:
    """Draw the number of tables of each topic, summed over clusters (o_.m).

    o_km = sum over i < n_km of Bernoulli(v eps_m / (v eps_m + i)) has the law of ICML14 A.2 (Antoniak's) without
    its Stirling numbers.

    Parameters
    ----------
    n_km : (K, M) int32
    prior : (M,) float64, > 0
        v eps_m.
    key : one stream per cluster

    Returns
    -------
    (M,) int64
        Between the number of clusters that use the topic and its tokens.
    """
    tables = np.zeros(n_km.shape[1], np.int64)
    _draw_tables(key, n_km, prior, tables)
    return tables


def draw_topic_weights(assignments: Assignments, tables: np.ndarray, eta: float, rng: np.random.Generator) -> None:
    """epsilon ~ Dir(o_.1, ..., o_.M, eta), in place."""
    weights = variates.dirichlet(np.append(tables, eta), rng)
    assignments.topic_weights, assignments.rest = weights[:-1], float(weights[-1])


def _within_range(concentration: float) -> float:
    """The nearest concentration that settings may hold: beyond them, nothing of the model changes any more."""
    return min(max(float(concentration), MIN_PRIOR), MAX_PRIOR)


def draw_dirichlet_process_concentration(
    concentration: float, n_atoms: int, n_draws: int, prior: GammaPrior, rng: np.random.Generator
) -> float:
    """Escobar and West's update of a Dirichlet process's concentration given its atoms and draws.

    alpha: ``n_atoms`` = K clusters, ``n_draws`` = J documents (A.2 prints Beta(alpha_1 + 1, J)); eta: M topics and
    o_.. tables. Without draws there is no data and the prior is drawn.
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
    """Teh et al.'s (2006) update of v given the tokens of each cluster (n_k.) and all tables (o_..).

    A.2 prints table counts where its own joint has n_k.; tests compare with quadrature of that joint.
    """
    n_tokens = n_tokens[n_tokens > 0]
    rate = prior.rate - float(np.log(rng.beta(concentration + 1.0, n_tokens)).sum())
    outside = int((rng.random(len(n_tokens)) * (n_tokens + concentration) < n_tokens).sum())
    return _within_range(rng.gamma(prior.shape + n_tables - outside, 1.0 / rate))


def draw_topic_prior(
    s: float, topic_words: np.ndarray, prior: GammaPrior, key: np.uint64, rng: np.random.Generator
) -> float:
    """s given (M, V) int32 tokens of each word in each topic: as v, with V tables' menus of mass s in every topic.

    With r_m ~ Beta(V s, n_m) and Antoniak's tables o_mw of n_mw tokens and mass s, s is Gamma given both, since
    G(V s) / G(V s + n_m) is prop. to the integral of r^(V s - 1) (1 - r)^(n_m - 1) over r.

    ``key``: one stream per topic.
    """
    n_words = topic_words.shape[1]
    n_m = topic_words.sum(axis=1, dtype=np.int64)
    n_m = n_m[n_m > 0]
    n_tables = int(draw_tables(topic_words, np.full(n_words, s), key).sum())
    # a Beta in logarithms: of a small V s it would be 0
    shares = variates.log_gammas(np.stack([np.full(len(n_m), n_words * s), n_m.astype(np.float64)]), rng)
    log_r = shares[0] - np.logaddexp(shares[0], shares[1])
    return _within_range(rng.gamma(prior.shape + n_tables, 1.0 / (prior.rate - n_words * float(log_r.sum()))))


@dataclass(frozen=True)
class ConcentrationPriors:
    """Priors of the three concentrations; None keeps that one as it is."""

    group: GammaPrior | None = None
    table: GammaPrior | None = None
    topic: GammaPrior | None = None


def update_weights(
    assignments: Assignments,
    concentrations: Concentrations,
    priors: ConcentrationPriors,
    key: np.uint64,
    rng: np.random.Generator,
    *,
    clusters_are_fixed: bool,
) -> None:
    """Draw tables, eta, v, alpha and epsilon in turn, in place. ``clusters_are_fixed``: z says nothing of alpha."""
    tables = draw_tables(assignments.n_km, concentrations.table * assignments.topic_weights, key)
    total = int(tables.sum())
    # eta, v and alpha given the tables (epsilon integrated out); then epsilon given tables and eta
    if priors.topic is not None:
        concentrations.topic = draw_dirichlet_process_concentration(
            concentrations.topic, assignments.n_topics, total, priors.topic, rng
        )
    if priors.table is not None:
        n_tokens = assignments.n_km.sum(axis=1, dtype=np.int64)
        concentrations.table = draw_table_concentration(concentrations.table, n_tokens, total, priors.table, rng)
    if priors.group is not None and not clusters_are_fixed:
        concentrations.group = draw_dirichlet_process_concentration(
            concentrations.group, assignments.n_clusters, len(assignments.cluster), priors.group, rng
        )
    draw_topic_weights(assignments, tables, concentrations.topic, rng)
