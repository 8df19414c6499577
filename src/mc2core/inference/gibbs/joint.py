"""The log joint of a chain's state."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.document_level.state import OwnDocuments
from mc2core.inference.gibbs.state import Assignments, Concentrations, WordCells, log_words
from mc2core.inference.gibbs.token_contexts import TokenTimes


def log_joint(
    assignments: Assignments,
    cells: WordCells,
    contexts: StackedContexts,
    concentrations: Concentrations,
    topic_prior: float,
    n_words: int,
    level: OwnDocuments | None,
    times: TokenTimes | None,
    *,
    clusters_are_fixed: bool,
) -> float:
    """ln p(w, x, z, l | epsilon, alpha, v, eta); see :class:`mc2core.inference.gibbs.engine.GibbsState`."""
    alpha, v, s = concentrations.group, concentrations.table, topic_prior
    result = 0.0
    if not clusters_are_fixed:
        n_documents = len(assignments.cluster)
        result += assignments.n_clusters * np.log(alpha) + gammaln(assignments.n_k).sum()
        result += gammaln(alpha) - gammaln(alpha + n_documents)
    n_km = assignments.n_km
    if level is not None:
        result += level.log_joint(assignments)
    else:
        prior = v * assignments.topic_weights
        clusters, topics = np.nonzero(n_km)
        result += (gammaln(prior[topics] + n_km[clusters, topics]) - gammaln(prior[topics])).sum()
        result += (gammaln(v) - gammaln(v + n_km.sum(axis=1, dtype=np.int64))).sum()
    total = s * n_words
    result += (gammaln(total) - gammaln(total + n_km.sum(axis=0, dtype=np.int64))).sum()
    result += log_words(cells, assignments.topic, assignments.n_topics, s)
    if times is not None:
        result += times.log_marginal(assignments)
    natural = contexts.natural(assignments.cluster, assignments.n_clusters)
    return float(result + contexts.log_marginal(natural).sum() + contexts.log_base.sum())
