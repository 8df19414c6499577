"""What a Gibbs chain carries from move to move: assignments, instantiated weights, concentrations, counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.families.stacked import StackedContexts


@dataclass
class Concentrations:
    """alpha, v and eta of ICML14, in this order (all > 0)."""

    group: float
    table: float
    topic: float


def no_cluster(document: int, contexts: StackedContexts, concentrations: Concentrations) -> ValueError:
    """What to raise where a document's weights over clusters cannot be drawn from."""
    priors = "".join(f", {name}: {family!r}" for name, family in zip(contexts.names, contexts.families, strict=True))
    return ValueError(
        f"document {document}: the weights of the clusters it could be in have no finite sum above 0; look at its "
        f"contexts and the priors (group_concentration {concentrations.group:g}, "
        f"table_concentration {concentrations.table:g}{priors})"
    )


def no_topic(document: int, concentrations: Concentrations, topic_prior: float) -> ValueError:
    """What to raise where the weights of a token's topics cannot be drawn from."""
    return ValueError(
        f"document {document}: the weights of a token's topics have no finite sum above 0; look at the priors "
        f"(table_concentration {concentrations.table:g}, topic_concentration {concentrations.topic:g}, "
        f"topic_prior {topic_prior:g})"
    )


@kernel
def _count(cluster, topic, document_start, n_km):
    for j in range(cluster.size):
        row = n_km[cluster[j]]
        for i in range(document_start[j], document_start[j + 1]):
            row[topic[i]] += 1


@kernel
def _relabel(labels, new_label):
    for i in range(labels.size):
        labels[i] = new_label[labels[i]]


@dataclass
class Assignments:
    """Who sits where: the sampler's state z, l, epsilon, and the counts that follow from z and l.

    Attributes
    ----------
    cluster : (J,) int32
        z_j, each in 0..K-1.
    topic : (n_tokens,) int32
        l_ji in 0..M-1, tokens in CSR order.
    document_start : (J + 1,) int64
        First token of each document.
    topic_weights : (M,) float64, > 0
        epsilon_1..M; they and ``rest`` sum to 1.
    rest : float
        epsilon_new, the weight of all topics not in use.
    n_km : (K, M) int32
        Tokens of topic m in cluster k.
    n_k : (K,) int64
        Documents of cluster k.
    """

    cluster: np.ndarray
    topic: np.ndarray
    document_start: np.ndarray
    topic_weights: np.ndarray
    rest: float
    n_km: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    n_k: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def n_clusters(self) -> int:
        """K, clusters in the tables (after :meth:`compact`: those in use)."""
        return len(self.n_k)

    @property
    def n_topics(self) -> int:
        """M, topics that carry a weight of their own (after :meth:`compact`: those in use)."""
        return len(self.topic_weights)

    def document_of(self, token: int) -> int:
        """The document of a token (both numbers)."""
        return int(np.searchsorted(self.document_start, token, side="right")) - 1

    def count(self, n_clusters: int | None = None) -> None:
        """Recompute n_km and n_k from the assignments, for ``n_clusters`` or all clusters in use."""
        if n_clusters is None:
            n_clusters = int(self.cluster.max(initial=-1)) + 1
        self.n_k = np.bincount(self.cluster, minlength=n_clusters)
        self.n_km = np.zeros((n_clusters, self.n_topics), np.int32)
        _count(self.cluster, self.topic, self.document_start, self.n_km)

    def compact(self) -> np.ndarray:
        """Drop empty clusters and topics, keeping the order of the others; weights of dropped topics go to ``rest``.

        Returns the old numbers of the clusters that stay.
        """
        clusters = np.flatnonzero(self.n_k)
        if len(clusters) < self.n_clusters:
            new_label = np.zeros(self.n_clusters, np.int32)
            new_label[clusters] = np.arange(len(clusters), dtype=np.int32)
            _relabel(self.cluster, new_label)
            self.n_k = self.n_k[clusters]
            self.n_km = self.n_km[clusters]
        used = self.n_km.any(axis=0)
        if not used.all():
            topics = np.flatnonzero(used)
            new_label = np.zeros(self.n_topics, np.int32)
            new_label[topics] = np.arange(len(topics), dtype=np.int32)
            _relabel(self.topic, new_label)
            self.rest += float(self.topic_weights[~used].sum())
            self.topic_weights = self.topic_weights[topics]
            self.n_km = np.ascontiguousarray(self.n_km[:, topics])
        return clusters
