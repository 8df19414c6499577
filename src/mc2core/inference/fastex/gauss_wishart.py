"""Clusters with full covariance for FastEx: collapsed Gibbs sampling of Gaussians with a Gauss-Wishart prior (NIPS12).

Let a cluster have n documents with count vectors x of length V, the sum s of x, and the scatter C, the sum of x x'. Its
posterior has the parameters

    strength = a + n,    m = s / strength,    Psi = 2 b I + C - s s' / strength.

The Cholesky factor of Psi is updated when a document is added or removed. Log densities of documents are computed from
this factor (:mod:`mc2core.families.factors`).

Sums and scatters are integers, so they do not depend on the order of moves. Factors are recomputed from them after each
sweep, after :data:`.MAX_DOWNDATES` downdates of a cluster, and if a downdate would lose more than four digits.
Therefore, rounding errors do not accumulate, and the factors at the start of a sweep depend only on the assignments.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from scipy.special import multigammaln

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.streams import MAX_NATS_BELOW_BEST, argmax, draw_from_logs, select_likely
from mc2core.corpus import Corpus
from mc2core.families import factors
from mc2core.families.factors import (
    MAX_DOWNDATES,
    change_by_rank_one,
    factorise,
    log_student,
    log_student_without,
    shift_of,
)
from mc2core.inference.fastex.components import ChainSettings, DocumentCells, document_columns, log_joint_of_weights
from mc2core.inference.fastex.state import MixtureState


class Priors(NamedTuple):
    """Parameters of the priors, which are constant during a run."""

    topic_word_prior: float
    weight_prior: float
    rate_prior: float


@record
class FactoredClusters(NamedTuple):
    """Statistics of the K clusters, with Cholesky factors that are computed from them."""

    n_k: np.ndarray  # (K,) int64: number of documents
    sums: np.ndarray  # (K, V) int64: sum of x
    scatter: np.ndarray  # (K, V, V) int64: upper triangle of the sum of x x'
    factor: np.ndarray  # (K, V, V) float64: upper triangle U with U' U = Psi
    head: np.ndarray  # (K,) float64: result of :func:`log_head`
    downdates: np.ndarray  # (K,) int64: number of downdates since the factor was recomputed


@record
class DrawScratch(NamedTuple):
    """Work arrays of a draw."""

    x: np.ndarray  # (V,) float64: counts of the document
    difference: np.ndarray  # (V,) float64
    factor: np.ndarray  # (V, V) float64
    scores: np.ndarray  # (K,) float64
    likely: np.ndarray  # (K,) int64


# -- Cholesky factors of clusters -----------------------------------------------------------------------------------
@inner_kernel
def log_head(priors, n_documents, factor):
    """Return the part of the log evidence of a cluster that is equal for all documents, except V / 2 ln pi."""
    head = factors.log_head(priors.topic_word_prior + n_documents, n_documents + 2, factor)
    return math.log(n_documents + priors.weight_prior) + head


@inner_kernel
def refresh(priors, clusters, zeros, k):
    """Recompute the factor of cluster k from its statistics; ``zeros`` is (V,) float64."""
    n_k, factor = clusters.n_k[k], clusters.factor[k]
    strength, ridge = priors.topic_word_prior + n_k, 2.0 * priors.rate_prior
    factorise(strength, clusters.sums[k], clusters.scatter[k], zeros, ridge, factor)
    clusters.head[k] = log_head(priors, n_k, factor)
    clusters.downdates[k] = 0


@inner_kernel
def refresh_all(priors, clusters):
    """Recompute the factors of all clusters by :func:`refresh`."""
    zeros = np.zeros(clusters.sums.shape[1])
    for k in range(clusters.n_k.size):
        refresh(priors, clusters, zeros, k)


# -- a document -----------------------------------------------------------------------------------------------------
@inner_kernel
def add_statistics(documents, clusters, j, k, sign):
    """Add document j to the statistics of cluster k (sign 1) or remove it (-1); the factor is not updated."""
    indptr, words, counts, _ = documents
    sums, scatter = clusters.sums[k], clusters.scatter[k]
    clusters.n_k[k] += sign
    for cell in range(indptr[j], indptr[j + 1]):
        d, x = words[cell], sign * counts[cell]
        sums[d] += x
        for other in range(indptr[j], indptr[j + 1]):
            if words[other] >= d:
                scatter[d, words[other]] += x * counts[other]


@kernel
def count_documents(documents, clusters, cluster):
    """Add all documents to the statistics of their clusters, which must be 0."""
    for j in range(cluster.size):
        add_statistics(documents, clusters, j, np.int64(cluster[j]), np.int64(1))


@inner_kernel
def add_or_remove(priors, documents, clusters, j, k, sign, work):
    """Add document j to cluster k (sign 1) or remove it (-1), and update the factor; ``work.x`` contains its counts."""
    strength = priors.topic_word_prior + clusters.n_k[k] - (sign < 0)  # strength without the document
    v = work.difference
    shift_of(strength, clusters.sums[k], work.x, sign, v)
    add_statistics(documents, clusters, j, k, sign)
    clusters.downdates[k] += sign < 0
    if clusters.downdates[k] <= MAX_DOWNDATES and change_by_rank_one(clusters.factor[k], v, sign):
        clusters.head[k] = log_head(priors, clusters.n_k[k], clusters.factor[k])
        return
    v[:] = 0.0
    refresh(priors, clusters, v, k)


@inner_kernel
def log_evidence_with(priors, n_documents, sums, factor, head, x, v):
    """Return the log evidence of a document ``x`` (V,) that is not in the cluster, including the cluster weight.

    The constant V / 2 ln pi is omitted.
    """
    return log_student(priors.topic_word_prior + n_documents, n_documents + 2, sums, factor, head, x, v)


@inner_kernel
def log_evidence_without(priors, clusters, k, work):
    """Return :func:`log_evidence_with` of document ``work.x`` for its cluster k without the document."""
    n_others, ridge = clusters.n_k[k] - 1, 2.0 * priors.rate_prior
    log_density = log_student_without(
        priors.topic_word_prior + n_others, n_others + 2, clusters.sums[k], clusters.scatter[k], ridge,
        clusters.factor[k],
        work.x, work.difference, work.factor,
    )  # fmt: skip
    return math.log(n_others + priors.weight_prior) + log_density


@inner_kernel
def weigh_document(priors, clusters, current, work):
    """Fill ``work.scores`` with the log evidence of document ``work.x`` in each cluster, given all other documents.

    The document is in cluster ``current``. Clusters do not change.
    """
    n_k, sums, factor, head = clusters.n_k, clusters.sums, clusters.factor, clusters.head
    for k in range(n_k.size):
        if k != current:
            work.scores[k] = log_evidence_with(priors, n_k[k], sums[k], factor[k], head[k], work.x, work.difference)
    work.scores[current] = log_evidence_without(priors, clusters, current, work)


@inner_kernel
def write_document(documents, j, x):
    """Write the counts of document j to ``x`` (V,), which must contain zeros."""
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        x[documents.words[cell]] = documents.counts[cell]


@kernel
def sweep(key, priors, documents, clusters, cluster, moves, work):
    """Draw the cluster of each document in order and in place, then recompute all factors.

    ``moves`` (2,) int64 is as in :func:`.hashed_kernels.sweep`. Returns the number of documents, or -1 - j if document
    j has scores that are not finite.
    """
    stream = np.zeros(2, np.uint64)
    for j in range(cluster.size):
        old = np.int64(cluster[j])
        work.x[:] = 0.0
        write_document(documents, j, work.x)
        weigh_document(priors, clusters, old, work)
        n = select_likely(work.scores, work.scores[argmax(work.scores)] - MAX_NATS_BELOW_BEST, work.likely)
        streams.seek(stream, key, j)
        drawn = draw_from_logs(stream, work.scores[:n])
        if drawn < 0:
            return -1 - j
        new = work.likely[drawn]
        if new != old:
            moves[0] += 1
            moves[1] += 1
            cluster[j] = new
            for k, sign in ((old, -1), (new, 1)):
                add_or_remove(priors, documents, clusters, j, k, np.int64(sign), work)
    refresh_all(priors, clusters)
    return cluster.size


# -- the state ------------------------------------------------------------------------------------------------------
def no_clusters(n_clusters: int, n_words: int) -> FactoredClusters:
    """Return clusters without documents, whose factors have not been computed."""
    square = n_clusters, n_words, n_words
    return FactoredClusters(
        np.zeros(n_clusters, np.int64), np.zeros((n_clusters, n_words), np.int64), np.zeros(square, np.int64),
        np.zeros(square), np.zeros(n_clusters), np.zeros(n_clusters, np.int64),
    )  # fmt: skip


def workspace(n_clusters: int, n_words: int) -> DrawScratch:
    """Return work arrays of a draw."""
    return DrawScratch(
        np.zeros(n_words), np.zeros(n_words), np.zeros((n_words, n_words)), np.zeros(n_clusters),
        np.zeros(n_clusters, np.int64),
    )  # fmt: skip


class GaussWishartState(MixtureState):
    """State with Gauss-Wishart components: assignments, statistics of the clusters, and Cholesky factors.

    Attributes
    ----------
    priors : Priors
    documents : DocumentCells
    clusters : FactoredClusters
    """

    proposal = "exact"

    def __init__(self, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray) -> None:
        super().__init__(corpus, settings, cluster)
        self.priors = Priors(settings.topic_word_prior, settings.weight_prior, settings.rate_prior)
        self.documents = DocumentCells(**document_columns(corpus, settings.component))
        self.clusters = no_clusters(settings.n_clusters, corpus.n_words)
        count_documents(self.documents, self.clusters, self.cluster)
        refresh_all(self.priors, self.clusters)

    @classmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        return settings.n_clusters * (16 * corpus.n_words**2 + 8 * corpus.n_words + 24)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """Run a sweep as :meth:`MixtureState.sweep`, in the order of documents and on one thread."""
        work = workspace(*self.clusters.sums.shape)
        done = sweep(key, self.priors, self.documents, self.clusters, self.cluster, moves, work)
        self._refuse_unfinished(done)

    @property
    def log_joint(self) -> float:
        n_words = self.clusters.sums.shape[1]
        log_det = 2.0 * np.log(np.diagonal(self.clusters.factor, axis1=1, axis2=2)).sum(axis=1)
        log_p = log_joint_of_weights(self.settings, self.sizes)
        for n, log_det_after in zip(self.sizes, log_det, strict=True):
            log_det_before = n_words * math.log(2.0 * self.settings.rate_prior)
            log_p += self._log_volume(int(n), log_det_after) - self._log_volume(0, log_det_before)
        return float(log_p - 0.5 * len(self.cluster) * n_words * math.log(math.pi))

    def _log_volume(self, n_documents: int, log_det: float) -> float:
        """Return the log normalising constant of a Gauss-Wishart density up to a constant; ``log_det`` is ln |Psi|."""
        n_words = self.clusters.sums.shape[1]
        half = 0.5 * (n_words + 1 + n_documents)
        strength = self.settings.topic_word_prior + n_documents
        return float(multigammaln(half, n_words) - half * log_det - 0.5 * n_words * math.log(strength))
