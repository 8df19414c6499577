"""Log odds of the clusters of a state against one cluster, given the topics of tokens.

Given the topics l of all tokens, the clustering z of a state at the document level has the density

    p(z, l, x | omega) prop. to p(z) prod_k f_k(x) int Dir(tau_k; v eps)
                                prod_j G(omega) / G(omega + N_j) prod_m G(omega tau_km + n_jm) / G(omega tau_km) dtau_k,

where each integral is estimated. The posterior of tau_k is approximated by normalised Gammas with shapes e_m and means
g_m. Here g = (v eps + u) / (v + u.), and u are the expected tables for the parameters omega g. The shape e_m is the
curvature of the log posterior of tau_km at g: v eps_m plus the expectation minus the variance of the tables. The
estimate of the integral is the integrand at g divided by the approximate density. It can compare two clusterings of the
same topics, each with its best omega. It cannot compare states with different topics, because it is the density of a
single assignment of tokens, and with more topics, more assignments have about the same density.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from mc2core.compute.special import MIN_POSITIVE
from mc2core.inference.gibbs.assignments import count_topics
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.gibbs.weights import log_partition

_PASSES = 6  # fixed-point iterations of the estimate g of tau
# bounds of ln omega in the search for the best omega, and tolerance of this search
_LOG_OMEGA, _OMEGA_WITHIN = (-5.0, 10.0), 0.05


def log_clustering(state: DocumentLevelState) -> float:
    """Return ln p(z, x, epsilon, concentrations, l) with theta and tau summed out, up to terms that depend only on l.

    The integral over tau is estimated, with an error of a few nats per cluster.
    """
    assignments, concentrations, omega = state.assignments, state.concentrations, state.omega
    lengths, eta, v = np.diff(assignments.document_start), concentrations.topic, concentrations.table
    result = log_partition(concentrations.partition, np.bincount(assignments.cluster))
    result += float(
        state.contexts.log_marginal(state.contexts.natural(assignments.cluster, assignments.n_clusters)).sum()
    )
    result += log_topics_of_clusters(state) + (gammaln(omega) - gammaln(omega + lengths)).sum()
    result += len(assignments.topic_weights) * math.log(eta) - np.log(assignments.topic_weights).sum()
    result += (eta - 1.0) * math.log(max(assignments.remaining, MIN_POSITIVE))
    values = {"group": concentrations.group, "table": v, "topic": eta, "document": omega}
    for role, value in values.items():
        if (prior := state.priors.get(role)) is not None:
            result += (prior.shape - 1.0) * math.log(value) - prior.rate * value
    return float(result)


def log_topics_of_clusters(state: DocumentLevelState) -> float:
    """Return the sum over clusters of ln int Dir(tau; v eps) prod_jm G(omega tau_m + n_jm) / G(omega tau_m) dtau."""
    assignments, v, omega = state.assignments, state.concentrations.table, state.omega
    counts, shape = count_topics(assignments), (assignments.n_clusters, assignments.n_topics + 1)
    topics = np.maximum(v * np.append(assignments.topic_weights, assignments.remaining), MIN_POSITIVE)
    # documents of a cluster with equal numbers of tokens in a topic have equal terms, so these are computed once
    cluster = np.repeat(assignments.cluster, np.diff(counts.start)).astype(np.int64)
    most = int(counts.n.max(initial=0)) + 1
    code, number = np.unique((cluster * shape[1] + counts.topic) * most + counts.n, return_counts=True)
    cell, n = np.divmod(code, most)

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(cell, number * values, minlength=shape[0] * shape[1]).reshape(shape)

    g = np.maximum(np.tile(topics / v, (shape[0], 1)), MIN_POSITIVE)
    for _ in range(_PASSES):
        a = omega * g.ravel()[cell]
        u = summed(1.0 + a * np.log((a + n - 0.5) / (a + 0.5)))
        g = np.maximum((topics + u) / (v + u.sum(axis=1, keepdims=True)), MIN_POSITIVE)
    a = np.maximum(omega * g.ravel()[cell], MIN_POSITIVE)
    e = topics + summed(1.0 + a * a * (1.0 / (a + 0.5) - 1.0 / (a + n - 0.5)))
    result = summed(gammaln(a + n) - gammaln(a)).sum()
    result += ((topics - e) * np.log(g) - e * np.log(e / g) + gammaln(e) - gammaln(topics)).sum()
    total = e.sum(axis=1)
    return float(result + (gammaln(v) - gammaln(total) + total * np.log(total)).sum())


def log_odds_of_clusters(state: DocumentLevelState) -> float:
    """Return the log odds in nats of the clusters of a state against a single cluster, given the topics of the tokens.

    Each clustering is evaluated at the omega that maximises its density. The topics of the state were drawn given its
    clusters. In expectation, the value is therefore an upper bound of the log odds with the topics summed out.
    """

    def best(cluster: np.ndarray) -> float:
        one = copy.copy(state)
        one.assignments = replace(state.assignments, cluster=cluster)
        one.assignments.count()
        one.start_proportions()  # resizes the proportions to the clusters; the estimate does not depend on them

        def loss(log_omega: float) -> float:
            one.omega = math.exp(log_omega)
            return -log_clustering(one)

        return -float(minimize_scalar(loss, bounds=_LOG_OMEGA, method="bounded", options={"xatol": _OMEGA_WITHIN}).fun)

    own = state.assignments.cluster
    return best(own) - best(np.zeros_like(own))
