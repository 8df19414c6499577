"""Gibbs sampler for added documents, given a posterior sample of the old documents.

The state of the old documents is fixed. It consists of their clusters, their tables (without a document level: tokens),
the topics of their tokens, and all concentrations. It determines Dirichlet posteriors, which are the priors of the new
documents:

    tau_k ~ Dir(v eps + t_k)   for an old cluster with t_km tables,   tau ~ Dir(v eps) for a new cluster;
    psi_m ~ Dir(s + n_m)       for an old topic with n_mw tokens;
    z_j = k prop. to n_k f_k(x_j),   z_j = new prop. to alpha f(x_j)   (or the weights of a finite mixture).

A sweep first updates the topics of the new documents' tokens given tau, then their clusters given tau, and then their
tables given tau and the clusters. Given the tables, with tau summed out, it updates the clusters again, which adds and
removes new clusters. It draws tau given all tables last. These are the moves of
:class:`mc2core.inference.gibbs.state.DocumentLevelState`, with the counts of the old documents added. If words repeat,
a token is a draw, and tokens first move between draws (:mod:`mc2core.inference.gibbs.repeats`). The weight of a new
topic is drawn from the remaining mass of epsilon and tau. Old clusters and topics keep their numbers. The cost of a
sweep depends on the new documents and the size of tau, but not on the number of old documents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.compute.simd import LANES
from mc2core.compute.special import MIN_POSITIVE
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.families.vectors import VectorClusters
from mc2core.inference.gibbs import documents as of_documents
from mc2core.inference.gibbs import tokens as of_tokens
from mc2core.inference.gibbs.assignments import (
    Assignments,
    TopicCounts,
    count_topics,
    document_start,
    topics_of_words,
)
from mc2core.inference.gibbs.continued import _draw, _topics
from mc2core.inference.gibbs.repeats import Repeats, distinct, move_draws
from mc2core.inference.gibbs.weights import (
    Concentrations,
    draw_proportions,
    no_cluster,
    sample_document_tables,
    weight_of_new,
)
from mc2core.posterior import Sample, SparseRows
from mc2core.posterior.mixture import SampleMixture

#: finite value that replaces an infinite omega in token sweeps; it hardly changes the weights of topics
_SHARED = 2.0**40


@dataclass(frozen=True)
class Held:
    """Counts and parameters of the old documents in one posterior sample.

    Attributes
    ----------
    sample : Sample
        Posterior sample, extended to the words and context columns of the new documents.
    sizes : (K,) int64
        Number of documents of each cluster.
    tables : (K, M) int32
        Number of tables of topic m in cluster k; number of tokens if documents share the proportions of their cluster.
    words : (V, M) int32
        Number of tokens of each word in each topic.
    concentrations : Concentrations
        alpha, v and eta, and the largest number of clusters.
    """

    sample: Sample
    sizes: np.ndarray
    tables: np.ndarray
    words: np.ndarray
    concentrations: Concentrations

    @classmethod
    def from_sample(cls, sample: Sample, most_clusters: float, topic_concentration: float) -> Held:
        """Recover the counts from the means and weights of a sample.

        ``most_clusters`` is the largest possible number of clusters, or infinity. ``topic_concentration`` only affects
        how the remaining mass of epsilon is divided among several new topics. Raises ValueError if the sample has no
        mass for new topics, or if a document has no cluster.
        """
        sizes = np.bincount(sample.cluster[sample.cluster >= 0], minlength=sample.n_clusters)
        n_documents, v = len(sample.cluster), sample.table_concentration
        remaining = 1.0 - float(sample.topic_weights.sum())
        if sample.cluster.min(initial=0) < 0 or not (sample.new_topic_weight > 0).all() or remaining <= 0:
            raise ValueError("a sample has documents without a cluster, or no mass for new topics")
        new = v * remaining
        total = new * (1.0 / sample.new_topic_weight - 1.0)
        shares = sample.topic_given_cluster
        shares = shares.toarray() if sp.issparse(shares) else np.asarray(shares)
        tables = np.rint(shares * total[:, None] - v * sample.topic_weights).astype(np.int32)
        words = sample.topic_words
        words = np.ascontiguousarray((words.toarray() if sp.issparse(words) else np.asarray(words)).T, dtype=np.int32)
        if math.isinf(most_clusters):
            group = sample.new_cluster_weight * n_documents / (1.0 - sample.new_cluster_weight)
        else:  # the cluster whose weight differs most from the mean has the smallest rounding error
            excess = sample.n_clusters * sample.cluster_weights - 1.0
            k = int(np.abs(excess).argmax())
            each = (sizes[k] - sample.cluster_weights[k] * n_documents) / excess[k] if excess[k] else 1.0
            group = max(each, MIN_POSITIVE) * most_clusters
        return cls(sample, sizes, tables, words, Concentrations(group, v, topic_concentration, most_clusters))


def widened(sample: Sample, n_words: int, prior: np.ndarray, columns: np.ndarray) -> Sample:
    """Return a sample extended by further words and further context columns, which have no counts.

    ``prior`` (D,) contains the natural parameters of the prior for all columns. ``columns`` contains the indices of the
    sample's own columns among them.
    """
    words = sp.csr_matrix(sample.topic_words)
    words = sp.csr_matrix((words.data, words.indices, words.indptr), shape=(words.shape[0], n_words))
    natural = np.tile(prior, (sample.n_clusters, 1))
    natural[:, columns] = sample.natural
    return replace(sample, topic_words=words, contexts=SparseRows.from_dense(natural))


class AddedDocuments:
    """A Gibbs chain over the clusters and topics of new documents.

    Parameters
    ----------
    held : Held
        Fixed state of the old documents.
    corpus : Corpus
        New documents, with the words and context columns of ``held.sample``.
    contexts : StackedContexts
        Contexts of the new documents.
    seed : int
        Seed of the random streams.

    Attributes
    ----------
    assignments : Assignments
        Assignments of the new documents. Clusters from K on and topics from M on are new, where K and M are the numbers
        of clusters and topics in ``held``.
    tau : (K', M' + 1) float64
        Topic proportions of the clusters; the last column is the mass of all topics not in use.
    """

    def __init__(self, held: Held, corpus: Corpus, contexts: StackedContexts, seed: int) -> None:
        self.held, self.corpus, self.contexts, self._seed = held, corpus, contexts, seed
        sample, rng = held.sample, streams.generator(seed, "added")
        drawn = distinct(corpus) if sample.has_repeats else corpus
        size = corpus.content.data.astype(np.int32)
        self._repeats = Repeats(corpus.content, size, sample.burst_concentration) if sample.has_repeats else None
        self._content = drawn.content
        mixture = SampleMixture(sample)
        log_p = mixture.log_weights + mixture.log_likelihood_of(drawn) + contexts.log_predictive(sample.natural)
        weights = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        cluster = _draw(weights, rng).astype(np.int32)
        shares = sample.topic_given_cluster
        shares = shares.toarray() if sp.issparse(shares) else np.asarray(shares)
        topic = _topics(drawn, shares[cluster], sample, rng).astype(np.int32)
        unused = sample.new_topic_weight[:, None]
        remaining = 1.0 - float(sample.topic_weights.sum())
        self.tau = np.hstack([(1.0 - unused) * shares, unused])
        self.assignments = Assignments(
            cluster, topic, document_start(drawn), np.array(sample.topic_weights, np.float64), remaining
        )
        self._count()
        self._open_for_unseen()
        columns = LANES * (self.assignments.n_topics // LANES + 1)
        self._n_wm = of_tokens.extended(held.words, columns)
        self._n_wm += topics_of_words(self._content, self.assignments.topic, columns)

    @property
    def _is_shared(self) -> bool:
        return not self.held.sample.has_document_level

    @property
    def _old(self) -> tuple[int, int]:
        """Numbers of old clusters and of old topics."""
        return self.held.tables.shape

    def _count(self) -> None:
        self.assignments.count(max(self._old[0], int(self.assignments.cluster.max(initial=-1)) + 1))

    def _open_for_unseen(self) -> None:
        """Assign all tokens of words unseen in the old documents to one new topic, which sweeps would rarely add."""
        assignments, content = self.assignments, self._content
        unseen = np.repeat(self.held.words.sum(axis=1)[content.indices] == 0, content.data)
        if unseen.sum() < 2:
            return
        share = 1.0 / (1.0 + self.held.concentrations.topic)  # mean of the first stick of GEM(eta)
        assignments.topic[unseen] = assignments.n_topics
        assignments.topic_weights = np.append(assignments.topic_weights, share * assignments.remaining)
        assignments.remaining *= 1.0 - share
        rest = self.tau[:, -1:]
        self.tau = np.hstack([self.tau[:, :-1], share * rest, (1.0 - share) * rest])
        self._count()

    def sweep(self, iteration: int) -> None:
        """Update the clusters of all new documents and the topics of their tokens once."""
        if self._repeats is not None:
            self._move_draws(self._repeats, streams.key(self._seed, "draws", iteration))
        self._move_tokens(streams.key(self._seed, "topics", iteration))
        counts = count_topics(self.assignments)
        tables = self.assignments
        if not self._is_shared:
            self._move_members(counts, streams.key(self._seed, "members", iteration))
            prior = self.held.sample.document_concentration * self.tau[:, :-1]
            key = streams.key(self._seed, "document_tables", iteration)
            tables = sample_document_tables(self.assignments, counts, prior, key, None)
        self._move_clusters(tables, streams.key(self._seed, "clusters", iteration))
        self.assignments.cluster[:] = tables.cluster
        self._drop_empty(tables)
        rng = streams.generator(self._seed, "weights", iteration)
        self._tables = self._with_old(tables.n_km)
        self.tau = draw_proportions(self._tables, self.assignments, self.held.concentrations, rng)

    def _move_draws(self, repeats: Repeats, key: np.uint64) -> None:
        """Move tokens between the draws of their word, and to new draws."""
        assignments, sample = self.assignments, self.held.sample
        n_wm = np.ascontiguousarray(self._n_wm[:, : assignments.n_topics])
        omega, s = sample.document_concentration, sample.topic_word_prior
        priors = np.ascontiguousarray(omega * self.tau[:, :-1])
        self._content, assignments.topic = move_draws(
            repeats, self._content, assignments.topic, assignments.cluster, priors, n_wm, omega, s, key
        )
        n_draws = np.asarray(self._content.sum(axis=1)).ravel()
        assignments.document_start = np.concatenate([[0], np.cumsum(n_draws, dtype=np.int64)])
        self._n_wm = n_wm
        self._count()

    def _move_tokens(self, key: np.uint64) -> None:
        assignments, sample = self.assignments, self.held.sample
        n_old, n_words = self._old[1], self._n_wm.shape[0]
        columns = LANES * (assignments.n_topics // LANES + 1)
        n_wm = of_tokens.extended(self._n_wm[:, : assignments.n_topics], columns)
        topics = of_tokens.topics_before(assignments, self.tau, n_wm, n_wm.sum(axis=0, dtype=np.int64))
        s, vs = np.float32(sample.topic_word_prior), np.float32(sample.topic_word_prior * n_words)
        omega, concentrations = min(sample.document_concentration, _SHARED), self.held.concentrations
        constants = of_tokens.TopicConstants(omega, concentrations.table, concentrations.topic, s, vs)
        rows = of_tokens.DocumentRows.from_counts(self._content, assignments.document_start, assignments.cluster)

        def run(topics: of_tokens.SweptTopics, position: np.ndarray, stream: np.ndarray) -> int:
            weights = of_tokens._new_weights(topics, constants, s, 0.0)
            return of_tokens._sweep_documents(
                key, stream, position, rows, assignments.topic, topics, constants, weights
            )

        topics, n_topics = of_tokens.run_sweep(
            run, topics, lambda one: of_tokens.add_columns(one, LANES), assignments, concentrations, float(s)
        )
        used = np.flatnonzero((topics.n_m[:n_topics] > 0) | (np.arange(n_topics) < n_old))
        number = np.zeros(n_topics, np.int32)
        number[used] = np.arange(len(used), dtype=np.int32)
        assignments.topic[:] = number[assignments.topic]
        assignments.topic_weights = topics.eps[used]
        assignments.remaining = 1.0 - float(assignments.topic_weights.sum())
        tau = topics.tau[:, used]
        self.tau = np.column_stack([tau, topics.tau_remaining + topics.tau[:, :n_topics].sum(axis=1) - tau.sum(axis=1)])
        self._n_wm = np.ascontiguousarray(topics.counts[:, used])
        self._count()

    def _columns(self, cluster: np.ndarray, slots: int) -> tuple[np.ndarray, np.ndarray, VectorClusters]:
        """Return the natural parameters (D, slots) of clusters of old and new documents, their totals and vectors."""
        stacked, old = of_documents.contexts_of(self.contexts), self.held.sample.natural
        natural = np.tile(self.contexts.prior, (slots, 1))
        natural[: len(old)] = old
        totals = np.ascontiguousarray(self.contexts.totals(natural).T)
        natural = np.ascontiguousarray(natural.T)
        clusters = stacked.vectors.clusters(stacked.offsets, slots)
        of_documents._fill_columns(stacked, cluster, natural, totals, clusters)
        return natural, totals, clusters

    def _sizes(self, cluster: np.ndarray, slots: int) -> np.ndarray:
        sizes = np.bincount(cluster, minlength=slots)
        sizes[: self._old[0]] += self.held.sizes
        return sizes

    def _with_old(self, n_km: np.ndarray) -> np.ndarray:
        """Return the tables (K', M') of new and old documents together."""
        tables = n_km.copy()
        tables[: self._old[0], : self._old[1]] += self.held.tables
        return tables

    def _move_members(self, counts: TopicCounts, key: np.uint64) -> None:
        """Draw the clusters of documents given tau, among the existing clusters."""
        cluster, n_clusters = self.assignments.cluster, self.assignments.n_clusters
        if n_clusters == 1:
            return
        prior = self.held.sample.document_concentration * self.tau[:, :-1]
        by_topic = np.maximum(np.ascontiguousarray(prior.T), MIN_POSITIVE)
        kept, scores = np.empty(by_topic.shape), np.zeros((len(cluster), n_clusters))
        of_documents._log_gamma_of_priors(by_topic, kept)
        of_documents._score(0, len(cluster), *counts, by_topic, kept, scores)
        stacked, each = of_documents.contexts_of(self.contexts), self.held.concentrations.partition.each
        columns = self._columns(cluster, n_clusters)
        of_documents._draw_members(key, scores, stacked, *columns, each, self._sizes(cluster, n_clusters), cluster)
        self.assignments.count(n_clusters, counts)

    def _move_clusters(self, tables: Assignments, key: np.uint64) -> None:
        """Draw the clusters of documents given their tables, with tau summed out; this may add clusters."""
        concentrations, n_topics = self.held.concentrations, tables.n_topics
        prior = concentrations.table * tables.topic_weights
        most = float(self._with_old(tables.n_km).sum(axis=1).max(initial=0)) + float(tables.document_start[-1])
        bits = of_documents._exponents(prior, math.log2(concentrations.table + most + 1.0))
        constants = of_documents.DocumentConstants(concentrations.partition, concentrations.table, prior, bits)
        documents = of_documents.DocumentTokens(tables.document_start, tables.topic, tables.cluster)
        stacked = of_documents.contexts_of(self.contexts)
        first, n_clusters = 0, tables.n_clusters
        while first < len(tables.cluster):
            slots = n_clusters + of_documents._SPARE
            tables.count(n_clusters)
            n_mk = np.zeros((n_topics, slots), np.int32)
            n_mk[:, :n_clusters] = self._with_old(tables.n_km).T
            n_tokens = n_mk.sum(axis=0, dtype=np.int64)
            kept_mk, kept_k = np.empty(n_mk.shape), np.empty((1, slots))
            of_documents._log_gamma_table(prior, n_mk, kept_mk)
            of_documents._log_gamma_table(np.array([concentrations.table]), n_tokens[None, :].astype(np.int32), kept_k)
            sizes, columns = self._sizes(tables.cluster, slots), self._columns(tables.cluster, slots)
            clusters = of_documents.ClusterTables(sizes, n_tokens, n_mk, kept_k[0], kept_mk, *columns)
            work = of_documents.ClusterSweepWork(
                counts=np.zeros(n_topics, np.int64),
                present=np.zeros(n_topics, np.int64),
                weight=np.zeros(slots),
                product=np.ones(slots),
                log_gammas=np.zeros(n_topics),
                row=np.empty(self.contexts.dimension),
            )
            first, n_clusters = of_documents._sweep_clusters(
                key, first, n_clusters, documents, stacked, clusters, constants, work
            )
            if first < 0:
                raise no_cluster(-1 - first, self.contexts, concentrations)
        tables.count(n_clusters)

    def _drop_empty(self, tables: Assignments) -> None:
        """Drop new clusters without documents, in place."""
        kept = np.flatnonzero((tables.n_k > 0) | (np.arange(tables.n_clusters) < self._old[0]))
        number = np.zeros(tables.n_clusters, np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        self.assignments.cluster[:] = number[self.assignments.cluster]
        tables.n_km = np.ascontiguousarray(tables.n_km[kept])
        self._count()

    def sample(self) -> Sample:
        """Return a posterior sample of old and new documents together; old documents come first."""
        assignments, old, concentrations = self.assignments, self.held.sample, self.held.concentrations
        law, v = concentrations.partition, concentrations.table
        mass = self._tables + v * assignments.topic_weights
        new, total = v * assignments.remaining, mass.sum(axis=1, keepdims=True)
        n_k = self._sizes(assignments.cluster, assignments.n_clusters)
        natural = self._columns(assignments.cluster, assignments.n_clusters)[0].T
        return replace(
            old,
            cluster_weights=(n_k + law.each) / (n_k.sum() + len(n_k) * law.each),
            new_cluster_weight=weight_of_new(law, len(n_k)) / (n_k.sum() + law.alpha),
            topic_given_cluster=mass / total,
            new_topic_weight=new / (total[:, 0] + new),
            topic_words=sp.csr_matrix(self._n_wm[:, : assignments.n_topics].T),
            topic_weights=assignments.topic_weights.copy(),
            contexts=SparseRows.from_dense(natural),
            cluster=np.concatenate([old.cluster, assignments.cluster]).astype(np.int32),
        )
