"""What a chain carries at the document level, the moves of an iteration, and the clusters of the starting state.

**Start.** Topics settle while all documents are in one cluster; then, with topics held, clusters are found from that
one and from some at random, and the likelier of both are where the chain begins. From one alone, hundreds of topics
leave one or two clusters, since no single split of them pays; from many, those of short documents stay in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from mc2core.base.checks import LEAST_PRIOR, MOST_PRIOR
from mc2core.base.described import Stored, check
from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.collapsed import contexts_of, sweep_clusters
from mc2core.inference.gibbs.document_level.cluster_moves import (
    ClusterConstants,
    SplitWork,
    evaluate,
    split_and_merge_clusters,
)
from mc2core.inference.gibbs.document_level.sweep import (
    LEAST,
    count_topics,
    draw_document_tables,
    draw_omega,
    draw_proportions,
    log_documents,
    sweep_members,
)
from mc2core.inference.gibbs.document_level.tokens import sweep_document_topics
from mc2core.inference.gibbs.document_level.topic_moves import split_and_merge_topics
from mc2core.inference.gibbs.state import Assignments, Concentrations
from mc2core.inference.gibbs.weights import ConcentrationPriors, GammaPrior, update_weights

#: omega of the starting state where it is learnt
START_OMEGA = 10.0
#: proposals to split or merge topics, an iteration
TOPIC_PROPOSALS = 100
_DESCRIBED = {
    "proportions": Stored("f", "K C", least=0, most=1),
    "tables": Stored("i", "K M", least=0),
    "document_concentration": Stored("f", "", least=LEAST_PRIOR, most=MOST_PRIOR),
}
_ROUNDING = 1e-6


def cluster_proposals(n_documents: int) -> int:
    """Proposals to split or merge clusters, an iteration: one for 16 documents, since each looks at whole clusters."""
    return min(max(n_documents // 16, 10), 100)


@dataclass
class DocumentLevel:
    """Proportions of clusters and omega; those of documents, theta_j ~ DP(omega, tau_k), are summed out.

    Attributes
    ----------
    proportions : (K, M + 1) float64, rows sum to 1
        tau_k; the last column holds all topics not in use.
    tables : (K, M) int32
        t_km, tables of the documents of cluster k, when tau was drawn.
    omega : float
        The document concentration.
    """

    proportions: np.ndarray
    tables: np.ndarray
    omega: float

    @classmethod
    def start(cls, assignments: Assignments, document_concentration: float | str) -> DocumentLevel:
        """Every cluster at epsilon: the first call of :meth:`move_all_but_tokens` draws from it."""
        omega = START_OMEGA if document_concentration == "learn" else float(document_concentration)
        epsilon = np.append(assignments.topic_weights, assignments.rest)
        return cls(np.tile(epsilon, (assignments.n_clusters, 1)), np.zeros_like(assignments.n_km), omega)

    def arrays(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        return {
            "proportions": self.proportions,
            "tables": self.tables,
            "document_concentration": np.array(self.omega),
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], assignments: Assignments) -> DocumentLevel:
        """The inverse of :meth:`arrays`; ValueError where they do not fit the assignments."""
        n_topics = assignments.n_topics
        check(arrays, _DESCRIBED, {"K": assignments.n_clusters, "M": n_topics, "C": n_topics + 1})
        proportions, tables = arrays["proportions"].astype(np.float64), arrays["tables"].astype(np.int32)
        in_use = assignments.n_km > 0
        if (abs(proportions.sum(axis=1) - 1.0) > _ROUNDING).any() or (proportions[:, :-1][in_use] <= 0).any():
            raise ValueError("'proportions' do not sum to 1 in every row, or are 0 for a topic that has tokens")
        if ((tables > assignments.n_km) | ((tables > 0) != in_use)).any():
            raise ValueError("'tables' are more than the tokens at them, or none where there are tokens")
        return cls(proportions, tables, float(arrays["document_concentration"]))

    def move_tokens(
        self,
        assignments: Assignments,
        corpus: Corpus,
        concentrations: Concentrations,
        topic_prior: float,
        seed: int,
        iteration: int,
    ) -> None:
        """One sweep over all tokens, then splits and merges of topics, in place."""
        key, topic_key = streams.key(seed, "topics", iteration), streams.key(seed, "topic_moves", iteration)
        self.proportions = sweep_document_topics(
            assignments, corpus, self.proportions, self.omega, concentrations, topic_prior, key
        )
        self.proportions, _ = split_and_merge_topics(
            assignments, corpus, self.proportions, self.omega, concentrations, topic_prior, topic_key, TOPIC_PROPOSALS
        )

    def move_all_but_tokens(
        self,
        assignments: Assignments,
        contexts: StackedContexts,
        concentrations: Concentrations,
        priors: ConcentrationPriors,
        omega_prior: GammaPrior | None,
        seed: int,
        iteration: int,
        pool: Executor | None,
        *,
        documents_move: bool,
        clusters_are_fixed: bool,
    ) -> None:
        """Draw, in place: z given tau; omega; z and tau by splits and merges; tables of documents; z given these; v,
        eta, alpha, epsilon given tables of clusters; tau last.

        The first three sum theta out. From the tables of documents on all is drawn given these with tau summed out, and
        tau given all of it: one joint draw, of which tau must be the last part. ``omega_prior`` None holds omega;
        ``clusters_are_fixed`` holds z, which says nothing of alpha then.
        """
        documents_move = documents_move and not clusters_are_fixed
        prior, counts = self.omega * self.proportions[:, :-1], count_topics(assignments)
        if documents_move:
            sweep_members(assignments, counts, prior, contexts, streams.key(seed, "members", iteration), pool)
        rng = streams.generator(seed, "weights", iteration)
        if omega_prior is not None:
            lengths = np.diff(assignments.document_start)
            self.omega = draw_omega(
                lengths, assignments.cluster, counts, self.proportions, self.omega, omega_prior, rng
            )
        if documents_move:
            key = streams.key(seed, "split_merge", iteration)
            n_proposals = cluster_proposals(len(assignments.cluster))
            self.proportions, _ = split_and_merge_clusters(
                assignments, counts, self.proportions, contexts, concentrations, self.omega, key, n_proposals
            )
        prior = self.omega * self.proportions[:, :-1]
        seated = draw_document_tables(assignments, prior, streams.key(seed, "document_tables", iteration), pool)
        if documents_move:
            sweep_clusters(seated, contexts, concentrations, streams.key(seed, "clusters", iteration))
        key = streams.key(seed, "tables", iteration)
        update_weights(seated, concentrations, priors, key, rng, clusters_are_fixed=clusters_are_fixed)
        self.tables = seated.n_km
        self.proportions = draw_proportions(seated.n_km, seated, concentrations, rng)
        assignments.cluster[:] = seated.cluster
        assignments.topic_weights, assignments.rest = seated.topic_weights, seated.rest
        assignments.count()

    def log_joint(self, assignments: Assignments) -> float:
        """ln p(l | z, tau, omega), theta summed out."""
        lengths, counts = np.diff(assignments.document_start), count_topics(assignments)
        return log_documents(lengths, assignments.cluster, counts, self.proportions, self.omega)


# -- the starting state ---------------------------------------------------------------------------------------
#: sweeps in which documents stay in one cluster ...
SETTLING = 20
#: ... and those after them, in which tokens stay with their topics
SORTING = 40


def scatter(
    assignments: Assignments, level: DocumentLevel, n_clusters: int, rng: np.random.Generator
) -> tuple[Assignments, DocumentLevel]:
    """Every document in one of these many clusters at random, all with the proportions of one; topics are shared."""
    _, cluster = np.unique(rng.integers(n_clusters, size=len(assignments.cluster)), return_inverse=True)
    scattered = replace(assignments, cluster=cluster.astype(np.int32), topic_weights=assignments.topic_weights.copy())
    scattered.count()
    proportions = np.tile(level.proportions[:1], (scattered.n_clusters, 1))
    return scattered, DocumentLevel(proportions, scattered.n_km.copy(), level.omega)


@kernel(error_model="numpy")
def _evaluate_all(cluster, n_clusters, counts, constants, contexts, work):
    result = 0.0
    for k in range(n_clusters):
        n = 0
        for j in range(cluster.size):
            if cluster[j] == k:
                work.members[n], work.side[n] = j, 0
                n += 1
        result += evaluate(work.members, n, work.side, 0, counts, constants, contexts, work, 0)[1]
    return result


def log_clustering(
    assignments: Assignments,
    level: DocumentLevel,
    concentrations: Concentrations,
    priors: Mapping[str, GammaPrior | None],
    contexts: StackedContexts,
) -> float:
    """ln p(z, x, epsilon, concentrations, l), theta and tau summed out, up to what l alone decides.

    tau is summed out by the estimate of :mod:`mc2core.inference.gibbs.document_level.cluster_moves`, within a few nats
    a cluster. ``priors`` are those of "group", "table", "topic" and "document", None where that one is not learnt.
    """
    counts, omega = count_topics(assignments), level.omega
    n_documents, lengths = len(assignments.cluster), np.diff(assignments.document_start)
    alpha, v, eta = concentrations.group, concentrations.table, concentrations.topic
    topics = v * np.append(assignments.topic_weights, assignments.rest)
    constants, stacked = ClusterConstants(alpha, v, omega, np.maximum(topics, LEAST), 0.0), contexts_of(contexts)
    g, shape, tau, base = np.empty((4, 3, len(topics)))
    work = SplitWork(
        np.empty(n_documents, np.int64), np.empty(n_documents, np.int8), g, shape, tau, base, np.empty(len(topics)),
        np.empty((2, len(stacked.natural))), np.empty((2, len(stacked.codes))), np.empty(1),
    )  # fmt: skip
    result = _evaluate_all(assignments.cluster, assignments.n_clusters, counts, constants, stacked, work)
    result += gammaln(alpha) - gammaln(alpha + n_documents) + (gammaln(omega) - gammaln(omega + lengths)).sum()
    result += len(assignments.topic_weights) * math.log(eta) - np.log(assignments.topic_weights).sum()
    result += (eta - 1.0) * math.log(max(assignments.rest, LEAST))
    for role, value in {"group": alpha, "table": v, "topic": eta, "document": omega}.items():
        if (prior := priors[role]) is not None:
            result += (prior.shape - 1.0) * math.log(value) - prior.rate * value
    return float(result)
