"""Collapsed sweep over observations, which topics emit in place of words, and their likelihood.

    P(l_ji = m)         prop. to (n_km + v eps_m) p(x_ji | topic m without it)         (counts without it)
    P(l_ji = new topic) prop. to v eps_new p(x_ji | prior)

where documents share their cluster's proportions, and with n_jm + omega tau_km and omega tau_k,new at the document
level. It is the sweep over tokens with predictive densities (:mod:`mc2core.families.contents`) in place of those of
words: all other moves see the topics of observations as they see those of tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp
from mc2core.families.contents import (
    Contents,
    add_observation,
    content_tables,
    log_densities,
    log_density_without,
    log_normal_densities,
    log_normal_without,
    natural_of_topics,
    with_columns,
)
from mc2core.families.kernels import NORMAL_GAMMA
from mc2core.inference.gibbs.collapsed import grown
from mc2core.inference.gibbs.document_level.tokens import DocumentLevelTopics, TopicConstants, open_topic
from mc2core.inference.gibbs.state import Assignments, Concentrations, no_topic
from mc2core.inference.observed import ObservedValues

_DOCUMENT, _OBSERVATION, _TOPICS = 0, 1, 2
_DONE, _FULL, _FAILED = 0, 1, 2
_SPARE = 8  # topics that can be born before tables grow


class SweepWork(NamedTuple):
    """The document and the observation at hand; a column for each topic, and one for a new topic."""

    prior: np.ndarray  # (columns,) float64: v eps_m or omega tau_km
    n: np.ndarray  # (columns,) float64: n_km or n_jm
    log_p: np.ndarray  # (columns,) float64
    weight: np.ndarray  # (columns,) float64
    product: np.ndarray  # (columns,) float64
    shift: np.ndarray  # (D,) float64
    square: np.ndarray  # (D, D) float64


@kernel(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _weigh(n_columns, n, prior, log_p, weight):
    """weight = (n + prior) exp(log_p), as large as they can be together; returns the total."""
    top = log_p[0]
    for m in range(1, n_columns):
        top = max(top, log_p[m])
    total = 0.0
    for m in range(n_columns):
        weight[m] = (n[m] + prior[m]) * exp(log_p[m] - top)
        total += weight[m]
    return total


@kernel(error_model="numpy")
def _sweep(key, stream, position, start, cluster, topic, n_km, values, tables, topics, constants, work):
    """Sweep from ``position`` on; says why it stopped.

    _DONE: after all documents; _FULL: a new topic needs more columns; _FAILED: the weights of observation
    position[_OBSERVATION] have no finite sum above 0. ``position`` (3,) int64 and ``stream`` are left so that a call
    after growing the tables goes on with the very same draw. Without a document level ``topics.tau`` has no rows.
    """
    n_topics = position[_TOPICS]
    eps, rest, tau, tau_rest = topics.eps, topics.rest, topics.tau, topics.tau_rest
    prior, n, log_p, weight, product, shift, square = work
    count, mean, slope, power, constant = tables.n, tables.mean, tables.slope, tables.power, tables.constant
    own_constant, own_ratio, columns, has_level = tables.own_constant, tables.own_ratio, count.size, tau_rest.size > 0
    is_normal = tables.code == NORMAL_GAMMA
    for j in range(position[_DOCUMENT], cluster.size):
        resume, k, begin, end = position[_OBSERVATION], cluster[j], start[j], start[j + 1]
        if resume <= begin:
            streams.seek(stream, key, j)
        for m in range(n_topics):
            n[m] = 0.0 if has_level else n_km[k, m]
            prior[m] = constants.omega * tau[k, m] if has_level else constants.v * eps[m]
        if has_level:
            for i in range(begin, end):
                n[topic[i]] += 1.0
        stopped = _DONE
        for i in range(max(begin, resume), end):
            m = topic[i]
            if is_normal:
                log_normal_densities(values, i, n_topics + 1, product, log_p, mean, slope, power, constant)
            else:
                log_densities(tables, values, i, n_topics + 1, log_p, product, shift)
            if count[m] > 1.0:
                log_p[m] = (
                    log_normal_without(values, i, m, mean, slope, power, own_constant, own_ratio)
                    if is_normal
                    else log_density_without(tables, values, i, m, shift, square)
                )
            else:
                log_p[m] = log_p[n_topics]
            n[m] -= 1.0
            n[n_topics], prior[n_topics] = 0.0, constants.omega * tau_rest[k] if has_level else constants.v * rest[0]
            total = _weigh(n_topics + 1, n, prior, log_p, weight)
            n[m] += 1.0
            if not 0.0 < total < np.inf:
                position[_OBSERVATION] = i
                return _FAILED
            rewind = stream[0]
            u, chosen = streams.uniform(stream) * total, m
            for other in range(n_topics + 1):
                if weight[other] > 0.0:
                    chosen = other
                    if u < weight[other]:
                        break
                    u -= weight[other]
            if chosen == m:
                continue
            if chosen == n_topics:
                if n_topics + 2 > columns:  # the last column stays a new topic's
                    stream[0] = rewind
                    position[_DOCUMENT], position[_OBSERVATION], position[_TOPICS] = j, i, n_topics
                    stopped = _FULL
                    break
                open_topic(chosen, k, stream, topics, constants)
                prior[chosen] = constants.omega * tau[k, chosen] if has_level else constants.v * eps[chosen]
                n_topics += 1
            n[m] -= 1.0
            n[chosen] += 1.0
            add_observation(tables, values, i, m, -1, shift)
            add_observation(tables, values, i, chosen, 1, shift)
            topic[i] = chosen
        if not has_level:
            for m in range(n_topics):
                n_km[k, m] = np.int32(n[m])
        if stopped == _FULL:
            return _FULL
        position[_OBSERVATION], position[_TOPICS] = 0, n_topics
    return _DONE


class Observations(ObservedValues):
    """A corpus' observations, and the topics of a chain that emit them."""

    def natural(self, assignments: Assignments) -> np.ndarray:
        """(M, P): posterior natural parameters of each topic."""
        return natural_of_topics(self.family, self.values, assignments.topic, assignments.n_topics, self.scale)

    def contents(self, assignments: Assignments) -> Contents:
        """What the topics are known to be."""
        return Contents(self.family, self.centre, self.scale, self.natural(assignments))

    def log_marginal(self, assignments: Assignments) -> list[float]:
        """Terms of ln p(x | l) in nats, in the unit of the corpus, topics' parameters integrated out."""
        base = float(self.family.log_base_in(self.values, self.scale).sum())
        return [float(self.family.log_marginal(self.natural(assignments)).sum()), base]

    def sweep(
        self,
        assignments: Assignments,
        tau: np.ndarray,
        omega: float,
        concentrations: Concentrations,
        key: np.uint64,
    ) -> np.ndarray:
        """One sweep over all observations, in place; topics that end empty are dropped.

        Parameters
        ----------
        tau : (K, M + 1) float64
            Topic proportions of the clusters, the rest in the last column; no rows without a document level.
        omega : float
            Concentration of a document's proportions around its cluster's.
        key : one stream for each document (:func:`mc2core.compute.streams.key`)

        Returns
        -------
        (K, M + 1) float64
            tau over the topics now in use, and the rest.
        """
        n_topics = assignments.n_topics
        columns, dimension = n_topics + 1 + _SPARE, self.values.shape[1]
        tables = content_tables(self.family, self.natural(assignments), columns, self.scale, self.log_gammas)
        unused = np.zeros((0, columns), np.int32), np.zeros(0, np.int64)
        topics = DocumentLevelTopics(
            *unused, grown(assignments.topic_weights, columns),
            np.array([assignments.rest]),
            grown(np.ascontiguousarray(tau[:, :-1]), columns), tau[:, -1].copy(),
        )  # fmt: skip
        constants = TopicConstants(float(omega), float(concentrations.table), float(concentrations.topic), 0.0, 0.0)
        n_km, position, stream = grown(assignments.n_km, columns), np.array([0, 0, n_topics]), np.zeros(2, np.uint64)
        stopped = _FULL
        while stopped == _FULL:
            work = SweepWork(*[*np.zeros((5, columns)), np.zeros(dimension), np.zeros((dimension, dimension))])
            stopped = _sweep(
                key, stream, position, assignments.document_start, assignments.cluster, assignments.topic, n_km,
                self.values, tables, topics, constants, work,
            )  # fmt: skip
            if stopped == _FULL:
                columns += _SPARE
                tables = with_columns(tables, self.family, columns)
                n_km, eps, tau = (grown(array, columns) for array in (n_km, topics.eps, topics.tau))
                topics = DocumentLevelTopics(*unused, eps, topics.rest, tau, topics.tau_rest)
        if stopped == _FAILED:
            raise no_topic(assignments.document_of(int(position[_OBSERVATION])), concentrations, self.family)
        n_topics = int(position[_TOPICS])
        assignments.topic_weights, assignments.rest = topics.eps[:n_topics].copy(), float(topics.rest[0])
        used = tables.n[:n_topics] > 0
        left = topics.tau_rest + topics.tau[:, :n_topics][:, ~used].sum(axis=1)
        assignments.count()
        assignments.compact()
        return np.column_stack([topics.tau[:, :n_topics][:, used], left])
