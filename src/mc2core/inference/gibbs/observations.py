"""Collapsed Gibbs sweep and likelihood for topics that emit observations.

If documents share the topic proportions of their cluster, the full conditional of the topic of observation x_ji is

    P(l_ji = m)         prop. to (n_km + v eps_m) p(x_ji | other observations of topic m)       (n_km without x_ji)
    P(l_ji = new topic) prop. to v eps_new p(x_ji | prior)

With a document level, n_jm + omega tau_km and omega tau_k,new replace the first factors. The sweep equals the sweep
over tokens, with predictive densities (:mod:`mc2core.families.contents`) instead of word probabilities. All other moves
depend only on the topics, so they are the same as for tokens.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import exp
from mc2core.compute.streams import index_of
from mc2core.families.contents import (
    Contents,
    add_observation,
    content_tables,
    log_counts,
    log_counts_without,
    log_normal,
    log_normal_without,
    log_ones,
    log_ones_without,
    log_vector_anew,
    log_vector_without,
    log_vectors,
    natural_of_topics,
    with_columns,
)
from mc2core.families.kernels import BETA_BERNOULLI, GAMMA_POISSON, NORMAL_GAMMA
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.tokens import (
    DONE,
    FAILED,
    FULL,
    TOKEN,
    TOPICS,
    VISIT,
    TopicConstants,
    add_columns,
    extended,
    keep_used,
    open_topic,
    run_sweep,
    topics_before,
)
from mc2core.inference.gibbs.weights import Concentrations
from mc2core.inference.observed import ObservedValues

_SPARE = 8  # spare columns for new topics before the arrays are extended


class ObservationWork(NamedTuple):
    """Workspace for a document and an observation, with one column per topic and one for a new topic."""

    prior: np.ndarray  # (columns,) float64: v eps_m or omega tau_km
    n: np.ndarray  # (columns,) float64: n_km or n_jm
    log_p: np.ndarray  # (columns,) float64: log predictive density of the observation in each topic
    weight: np.ndarray  # (columns,) float64: weight of each topic
    product: np.ndarray  # (columns,) float64: scratch for the predictive densities


@inner_kernel(fastmath={"contract", "reassoc", "nsz"})
def _weigh(n_columns, n, prior, log_p, weight):
    """Compute weights proportional to (n + prior) exp(log_p), scaled to avoid underflow; return the total weight."""
    top = log_p[0]
    for m in range(1, n_columns):
        top = max(top, log_p[m])
    total = 0.0
    for m in range(n_columns):
        weight[m] = (n[m] + prior[m]) * exp(log_p[m] - top)
        total += weight[m]
    return total


@inner_kernel
def _sweep_document(k, first, end, stream, position, topic, values, tables, topics, constants, work):
    """Sweep observations ``first`` to ``end`` - 1 of one document of cluster k; return DONE, FULL or FAILED."""
    n_topics, tau, tau_remaining = position[TOPICS], topics.tau, topics.tau_remaining
    prior, n, log_p, weight, product = work
    code, count, sums, others, mean, slope, power = (
        tables.code, tables.n, tables.first, tables.second, tables.mean, tables.slope, tables.power
    )  # fmt: skip
    constant, own_constant, own_ratio, inverse, together = (
        tables.constant, tables.own_constant, tables.own_ratio, tables.inverse, tables.together
    )  # fmt: skip
    has_level = tau_remaining.size > 0
    for i in range(first, end):
        m, columns = topic[i], n_topics + 1
        is_alone = count[m] == 1.0
        if code == NORMAL_GAMMA:
            log_normal(values, i, columns, product, log_p, mean, slope, power, constant)
            if not is_alone:
                log_p[m] = log_normal_without(values, i, m, mean, slope, power, own_constant, own_ratio)
        elif code == GAMMA_POISSON:
            log_counts(values, i, columns, product, log_p, sums, slope, constant, together)
            if not is_alone:
                log_p[m] = log_counts_without(values, i, m, sums, mean, own_constant, together)
        elif code == BETA_BERNOULLI:
            log_ones(values, i, columns, product, log_p, slope, constant)
            if not is_alone:
                log_p[m] = log_ones_without(values, i, m, sums, others, own_constant)
        else:
            log_vectors(values, i, columns, product, log_p, mean, slope, power, constant, inverse)
            if not is_alone:
                log_p[m] = log_vector_without(m, product, slope, power, own_constant, own_ratio)
                if math.isnan(log_p[m]):
                    log_p[m] = log_vector_anew(tables, values, i, m)
        if is_alone:
            log_p[m] = log_p[n_topics]
        n[m] -= 1.0
        n[n_topics] = 0.0
        prior[n_topics] = constants.omega * tau_remaining[k] if has_level else constants.v * topics.remaining[0]
        total = _weigh(columns, n, prior, log_p, weight)
        n[m] += 1.0
        if not 0.0 < total < np.inf:
            position[TOKEN] = i
            return FAILED
        before = stream[0]
        chosen = index_of(weight, columns, streams.uniform(stream) * total, 0)
        if chosen == m:
            continue
        if chosen == n_topics:
            if n_topics + 2 > count.size:  # one column must remain for a new topic
                stream[0], position[TOKEN] = before, i
                return FULL
            open_topic(chosen, k, stream, topics, constants)
            prior[chosen] = constants.omega * tau[k, chosen] if has_level else constants.v * topics.eps[chosen]
            n_topics += 1
            position[TOPICS] = n_topics
        n[m] -= 1.0
        n[chosen] += 1.0
        add_observation(tables, values, i, m, -1)
        add_observation(tables, values, i, chosen, 1)
        topic[i] = chosen
    position[TOKEN] = 0
    return DONE


@kernel
def _sweep_observations(key, stream, position, start, cluster, topic, n_km, values, tables, topics, constants, work):
    """Sweep document by document from ``position`` on; return DONE, FULL or FAILED for :func:`.tokens.run_sweep`.

    Without a document level, ``topics.tau`` has no rows.
    """
    eps, tau, has_level, prior, n = topics.eps, topics.tau, topics.tau_remaining.size > 0, work.prior, work.n
    for j in range(position[VISIT], cluster.size):
        first, k, begin, end = position[TOKEN], cluster[j], start[j], start[j + 1]
        if first <= begin:
            streams.seek(stream, key, j)
        for m in range(position[TOPICS]):
            n[m] = 0.0 if has_level else n_km[k, m]
            prior[m] = constants.omega * tau[k, m] if has_level else constants.v * eps[m]
        if has_level:
            for i in range(begin, end):
                n[topic[i]] += 1.0
        first = max(begin, first)
        stopped = _sweep_document(k, first, end, stream, position, topic, values, tables, topics, constants, work)
        if stopped == FAILED:
            return FAILED
        if not has_level:
            for m in range(position[TOPICS]):
                n_km[k, m] = np.int32(n[m])
        if stopped == FULL:
            position[VISIT] = j
            return FULL
    return DONE


class Observations(ObservedValues):
    """Observations of a corpus, and the computations of a Gibbs chain whose topics emit them."""

    def natural(self, assignments: Assignments) -> np.ndarray:
        """Return the posterior natural parameters of each topic, (M, P)."""
        return natural_of_topics(self.family, self.values, assignments.topic, assignments.n_topics, self.scale)

    def contents(self, assignments: Assignments) -> Contents:
        """Return the posterior parameters of the topics."""
        return Contents(self.family, self.centre, self.scale, self.natural(assignments))

    def log_marginal(self, assignments: Assignments) -> list[float]:
        """Return the terms of ln p(x | l) in nats, with topic parameters integrated out and x in the corpus's unit."""
        base = float(self.family.log_base_in(self.values, self.scale).sum())
        return [float(self.family.log_marginal(self.natural(assignments)).sum()), base]

    def sweep(
        self, assignments: Assignments, tau: np.ndarray, omega: float, concentrations: Concentrations, key: np.uint64
    ) -> np.ndarray:
        """Make one sweep over all observations, in place, and return tau of the topics in use.

        Parameters are as in :func:`.tokens.sweep_document_topics`. Without a document level, ``tau`` has no rows.
        """
        columns, start = assignments.n_topics + 1 + _SPARE, assignments.document_start
        tables = content_tables(self.family, self.natural(assignments), columns, self.scale, self.log_gammas)
        topics = topics_before(assignments, tau, np.zeros((0, columns), np.int32), np.zeros(0, np.int64))
        constants = TopicConstants(float(omega), float(concentrations.table), float(concentrations.topic), 0.0, 0.0)
        cluster, topic, values = assignments.cluster, assignments.topic, self.values

        def sweep(given: tuple[Any, Any, Any], position: np.ndarray, stream: np.ndarray) -> int:
            n_km, tables, topics = given
            work = ObservationWork(*np.zeros((5, n_km.shape[1])))
            return _sweep_observations(
                key, stream, position, start, cluster, topic, n_km, values, tables, topics, constants, work
            )

        def add_room(given: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            n_km, tables, topics = given
            columns = n_km.shape[1] + _SPARE
            return extended(n_km, columns), with_columns(tables, self.family, columns), add_columns(topics, _SPARE)

        given = extended(assignments.n_km, columns), tables, topics
        (_, tables, topics), n_topics = run_sweep(sweep, given, add_room, assignments, concentrations, self.family)
        return keep_used(assignments, topics, tables.n[:n_topics])
