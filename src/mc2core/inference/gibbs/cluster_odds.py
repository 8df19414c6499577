"""How much likelier the clusters of a state are than one cluster, given the topics of tokens.

With the topics l of all tokens given, the clustering z of a state at the document level has the density

    p(z, l, x | omega) prop. to p(z) prod_k f_k(x) int Dir(tau_k; v eps)
                                prod_j G(omega) / G(omega + N_j) prod_m G(omega tau_km + n_jm) / G(omega tau_km) dtau_k,

with the integral by the estimate of :mod:`mc2core.inference.gibbs.cluster_moves`. Two clusterings of the same topics
can be compared by it, each with the omega that suits it best. States that differ in their topics cannot: the density is
that of single assignments of tokens, of which a state with more topics has more that are about as dense.
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
from mc2core.inference.gibbs.cluster_moves import ClusterConstants, weigh_clusters
from mc2core.inference.gibbs.documents import contexts_of
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.gibbs.weights import log_openings

# range of ln omega in which clusterings are compared, and how near to the best it is found
_LOG_OMEGA, _OMEGA_WITHIN = (-5.0, 10.0), 0.05


def log_clustering(state: DocumentLevelState) -> float:
    """Return ln p(z, x, epsilon, concentrations, l) with theta and tau summed out, up to terms of l alone.

    tau is summed out by the estimate of :mod:`mc2core.inference.gibbs.cluster_moves`, within a few nats
    a cluster.
    """
    assignments, concentrations, omega = state.assignments, state.concentrations, state.omega
    counts = count_topics(assignments)
    n_documents, lengths = len(assignments.cluster), np.diff(assignments.document_start)
    alpha, v, eta, law = concentrations.group, concentrations.table, concentrations.topic, concentrations.partition
    topics = v * np.append(assignments.topic_weights, assignments.remaining)
    constants = ClusterConstants(law, v, omega, np.maximum(topics, MIN_POSITIVE), 0.0, 0.0)
    tau = np.maximum(state.proportions, MIN_POSITIVE)
    _, at_estimate = weigh_clusters(assignments.cluster, tau, counts, constants, contexts_of(state.contexts), None)
    result = sum(at_estimate.tolist())
    result += log_openings(law, assignments.n_clusters)
    result += gammaln(alpha) - gammaln(alpha + n_documents) + (gammaln(omega) - gammaln(omega + lengths)).sum()
    result += len(assignments.topic_weights) * math.log(eta) - np.log(assignments.topic_weights).sum()
    result += (eta - 1.0) * math.log(max(assignments.remaining, MIN_POSITIVE))
    for role, value in {"group": alpha, "table": v, "topic": eta, "document": omega}.items():
        if (prior := state.priors.get(role)) is not None:
            result += (prior.shape - 1.0) * math.log(value) - prior.rate * value
    return float(result)


def log_odds_of_clusters(state: DocumentLevelState) -> float:
    """Return by how many nats the clusters of a state are likelier than one cluster, given the same topics of tokens.

    Each clustering is taken with the omega that suits it best. The topics of the state were drawn under its own
    clusters, so in expectation the value is an upper bound of the log odds with the topics summed out.
    """

    def best(cluster: np.ndarray) -> float:
        one = copy.copy(state)
        one.assignments = replace(state.assignments, cluster=cluster)
        one.assignments.count()
        one.start_proportions()  # the estimate does not depend on them

        def loss(log_omega: float) -> float:
            one.omega = math.exp(log_omega)
            return -log_clustering(one)

        return -float(minimize_scalar(loss, bounds=_LOG_OMEGA, method="bounded", options={"xatol": _OMEGA_WITHIN}).fun)

    own = state.assignments.cluster
    return best(own) - best(np.zeros_like(own))
