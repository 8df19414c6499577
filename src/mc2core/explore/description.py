"""What a fit found in a corpus, brought together once: clusters of documents, their cuts, tokens of topics."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import projection_of
from mc2core.explore.words import Names, check_names
from mc2core.posterior import Posterior
from mc2core.posterior.hierarchy import Hierarchy
from mc2core.posterior.proportions import DocumentTopics
from mc2core.posterior.sample import SparseRows

MAX_GROUPS = 200
"""Cuts are described where they have at most so many clusters."""
EVERY_SIZE = 12
"""Cuts of at most so many clusters are all described; then of each a quarter more, and the recommended one."""
N_SAMPLES = 20
"""Samples, spread evenly, by which it is judged how far the clusters of a document differ."""


@dataclass(frozen=True)
class Description:
    """A posterior and the documents it is asked about.

    A *node* is a cluster of the recommended clustering (0, 1, ...), of the fit where that is another one (next), or of
    one of the cuts (then, the largest cut first); at each size the cluster with most documents of the fit comes first.
    Tables count from 1.

    Attributes
    ----------
    posterior, corpus
    cluster : (J,) int64
        The cluster of each document, and
    probability : (J, K) float64
        how likely it is in each (:meth:`mc2core.Posterior.assign`), both by the numbers of the posterior's arrays.
    recommended : int
        The recommended number of clusters: a cut, or K.
    in_recommended : (J, recommended) float64
        How likely each document is in each cluster of the recommended clustering.
    cuts : dict of (J,) int64
        Clusters of the documents at each smaller size that is described, the largest first; none where the posterior
        keeps no hierarchy and the documents are not those of the fit.
    names : dict of dict of str
        Names that someone gave, {"cluster": {node: name}, "topic": {topic: name}}, all counted from 1; the others are
        named by their words (:func:`mc2core.explore.words.name_of`).
    phrases : dict of str
        Two words that stand in names in place of one of them (:func:`mc2core.explore.texts.phrases_of`).
    without_clusters : bool
        Whether the model has no clusters of documents (HDP); all documents are one then (:func:`as_one_cluster`).
    threads : int
        That work on it; they change nothing.
    drawn : (J,) int64 or None
        Where the documents were drawn from a larger corpus, their numbers there; and
    n_documents : int
        how many it has.
    """

    posterior: Posterior
    corpus: Corpus
    cluster: np.ndarray
    probability: np.ndarray
    cuts: dict[int, np.ndarray]
    recommended: int
    in_recommended: np.ndarray
    names: Names = field(default_factory=dict)
    threads: int = 1
    drawn: np.ndarray | None = None
    n_documents: int = 0
    phrases: Mapping[str, str] = field(default_factory=dict)
    without_clusters: bool = False

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        corpus: Corpus,
        threads: int = 1,
        names: Names | None = None,
        most: int | None = None,
        seed: int = 0,
    ) -> Description:
        """Of a posterior and documents; of more than ``most`` so many, drawn evenly by ``seed``.

        ValueError where the corpus does not fit the posterior, or a name is given to something that is not there.
        """
        without_clusters = posterior.representative.documents_are_clusters
        posterior = as_one_cluster(posterior) if without_clusters else posterior
        sample, n_documents, drawn = posterior.representative, corpus.n_documents, None
        if most is not None and n_documents > most:
            rng = streams.generator(seed, "explore.documents")
            drawn = np.sort(rng.choice(n_documents, most, replace=False))
            posterior, corpus = posterior.of_documents(corpus, drawn)
            sample = posterior.representative
        cluster, probability = posterior.assign(corpus, threads=threads)
        is_of_fit = posterior.was_fitted_on(corpus) and not without_clusters
        kept = posterior.hierarchy or (posterior.find_hierarchy(corpus) if is_of_fit else None)
        cuts: dict[int, np.ndarray] = {}
        recommended, shown = sample.n_clusters, probability[:, np.argsort(posterior.by_size)]
        if kept is not None:
            is_known = is_of_fit and kept.cluster.min() >= 0
            for size in _sizes(kept):
                into = kept.shares(size, sample.cluster, sample.n_clusters)
                found = kept.cut(size) if is_known else (probability @ into).argmax(axis=1)
                cuts[size] = found.astype(np.int64)
                if size == kept.recommended:
                    recommended = size
                    shown = posterior.assign(corpus, cut=size)[1] if is_known else probability @ into
        names = names or {}
        check_names(names, {"cluster": sample.n_clusters + sum(cuts), "topic": sample.n_topics})
        found_in, about = (cluster, probability, cuts, recommended, shown), (threads, drawn, n_documents)
        return cls(posterior, corpus, *found_in, names, *about, without_clusters=without_clusters)

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.posterior.representative.n_clusters

    @property
    def sizes(self) -> list[int]:
        """Sizes of what the HTML report shows, ascending: the cuts, and K where it is not too large or there are
        none."""
        is_shown = self.n_clusters <= MAX_GROUPS or not self.cuts
        return [*reversed(self.cuts), *([self.n_clusters] if is_shown else [])]

    @cached_property
    def first(self) -> dict[int, int]:
        """The number of the first node of each size, in their order; a size's nodes follow each other."""
        sizes = list(dict.fromkeys([self.recommended, self.n_clusters, *self.cuts]))
        return dict(zip(sizes, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))

    @cached_property
    def nodes(self) -> list[int]:
        """All nodes."""
        return list(range(self.n_clusters + sum(self.cuts)))

    @cached_property
    def shown(self) -> set[int]:
        """The nodes of ``sizes``."""
        return {node for size in self.sizes for node in range(self.first[size], self.first[size] + size)}

    @cached_property
    def parent(self) -> np.ndarray:
        """(nodes,): the node of the next smaller size that has most documents of each; -1 for none."""
        parent = np.full(len(self.nodes), -1)
        for size, smaller in itertools.pairwise(sorted(self.first, reverse=True)):
            counts = np.zeros((size, smaller))
            np.add.at(counts, (self.at(size), self.at(smaller)), 1.0)
            nodes = slice(self.first[size], self.first[size] + size)
            parent[nodes] = np.where(counts.any(axis=1), counts.argmax(axis=1) + self.first[smaller], -1)
        return parent

    def at(self, size: int) -> np.ndarray:
        """(J,) int64: clusters of the documents at K or a cut, from 0."""
        return self.posterior.by_size[self.cluster] if size == self.n_clusters else self.cuts[size]

    @cached_property
    def members(self) -> sp.csr_matrix:
        """(nodes, K) CSR: the share of the documents of each of the fit's clusters that are in each node."""
        kept, sample = self.posterior.hierarchy, self.posterior.representative
        parts: list[Any] = []
        for size in self.first:
            if size == self.n_clusters:
                parts.append(sp.identity(size, format="csr")[np.argsort(self.posterior.by_size)])
            else:
                assert kept is not None  # it made the cuts
                parts.append(kept.shares(size, sample.cluster, self.n_clusters).T)
        return sp.csr_matrix(sp.vstack([sp.csr_matrix(part) for part in parts], format="csr"))

    @cached_property
    def documents_of(self) -> sp.csr_matrix:
        """(nodes, J) CSR of 0 and 1: the documents of each node."""
        n, parts = self.corpus.n_documents, []
        for size in self.first:
            parts.append(sp.csr_matrix((np.ones(n), (self.at(size), np.arange(n))), shape=(size, n)))
        return sp.csr_matrix(sp.vstack(parts, format="csr"))

    @cached_property
    def of_samples(self) -> list[tuple[sp.csr_matrix, np.ndarray]]:
        """For each of N_SAMPLES of the posterior at most, (J, k) CSR of ones, the clusters of the documents in it, and
        (k, nodes) float64, the share of the documents of each of these that are in each node; none where there is one
        sample, or where the documents are not those of the fit.
        """
        samples, n = self.posterior.samples, self.corpus.n_documents
        if not self.posterior.was_fitted_on(self.corpus):
            return []
        several = []
        for number in chosen_samples(self.posterior):
            one = samples[number]
            seen = np.flatnonzero(one.cluster >= 0)
            met = sp.csr_matrix((np.ones(len(seen)), (seen, one.cluster[seen])), shape=(n, one.n_clusters))
            counts = (met.T @ self.documents_of.T).toarray()
            size = np.asarray(met.sum(axis=0)).T
            several.append((met, counts / np.maximum(size, 1.0)))
        return several

    @cached_property
    def matched_samples(self) -> list[tuple[sp.csr_matrix, np.ndarray]]:
        """As :attr:`of_samples`, but each cluster of a sample belongs at every size to one node: the one that has most
        of its documents.
        """
        matched = []
        for met, share in self.of_samples:
            whole = np.zeros_like(share)
            for size, first in self.first.items():
                nodes = share[:, first : first + size]
                rows = np.flatnonzero(nodes.any(axis=1))
                whole[rows, first + nodes[rows].argmax(axis=1)] = 1.0
            matched.append((met, whole))
        return matched

    # -- words or observations, and topics -----------------------------------------------------------------
    @property
    def is_of_observations(self) -> bool:
        """Whether topics emit observations in place of words; what follows of words is of none then."""
        return self.posterior.is_of_observations

    @cached_property
    def clusters_are_topics(self) -> bool:
        """Whether each cluster is a topic of its own (FastEx, LDA)."""
        return sp.issparse(self.posterior.representative.topic_given_cluster)

    @cached_property
    def topic_shares(self) -> tuple[Any, np.ndarray]:
        """(nodes, M) dense or CSR and (nodes,): shares of the topics in use, and of those not in use, in each node."""
        sample = self.posterior.representative
        weights = sp.csr_matrix(self.members.multiply(sample.cluster_weights))
        total = np.asarray(weights.sum(axis=1)).ravel()
        even = self.members.multiply(1.0 / np.diff(self.members.indptr)[:, None])
        weights = sp.diags(1.0 / np.where(total > 0, total, 1.0)) @ weights + sp.diags((total == 0) * 1.0) @ even
        known: Any = sample.topic_given_cluster
        known = sp.diags(1.0 - sample.new_topic_weight) @ known if sp.issparse(known) else (
            (1.0 - sample.new_topic_weight)[:, None] * known
        )  # fmt: skip
        return weights @ known, np.asarray(weights @ sample.new_topic_weight)

    def topic_words(self, topics: np.ndarray) -> np.ndarray:
        """(n, V) float64: probabilities of the words in some topics."""
        sample = self.posterior.representative
        table: Any = sample.topic_words[topics]
        table = table.toarray() if sp.issparse(table) else np.asarray(table)
        table = table + np.float64(sample.topic_word_prior)
        return table / table.sum(axis=1, keepdims=True)

    def node_words(self, rows: np.ndarray) -> np.ndarray:
        """(n, V) float64: probabilities of the words in some of the nodes that are described, by row."""
        sample = self.posterior.representative
        shares, new = self.topic_shares
        counts: Any = sample.topic_words
        n_words = counts.shape[1]
        totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel() + n_words * sample.topic_word_prior
        part = shares[rows]
        part = part.multiply(1.0 / totals).tocsr() if sp.issparse(part) else part / totals
        words = part @ counts
        words = words.toarray() if sp.issparse(words) else np.asarray(words)
        prior = np.asarray(part.sum(axis=1)).ravel() * sample.topic_word_prior + new[rows] / n_words
        return words + prior[:, None]

    @cached_property
    def word_share(self) -> np.ndarray:
        """(V,) float64: probability of each word in a token of the documents of the fit; no word is impossible."""
        sample = self.posterior.representative
        counts = np.asarray(sample.topic_words.sum(axis=0), dtype=np.float64).ravel() + sample.topic_word_prior
        return counts / counts.sum()

    @cached_property
    def node_tokens(self) -> np.ndarray:
        """(nodes,) float64: tokens of the documents of the fit in each node, by its weight."""
        sample = self.posterior.representative
        return float(sample.topic_words.sum()) * np.asarray(self.members @ sample.cluster_weights)

    @cached_property
    def all_observations(self) -> tuple[np.ndarray, np.ndarray]:
        """(D,) mean and (D,) sd, of a constant number 1, of all observations of the corpus."""
        values = np.asarray(self.corpus.observations)
        sd = values.std(axis=0)
        return values.mean(axis=0), np.where(sd > 0.0, sd, 1.0)

    @property
    def document_features(self) -> sp.csr_matrix:
        """(J, F) CSR float64, square roots of shares: of each word in a document; of observations of each topic."""
        counts = self.document_topics if self.is_of_observations else self.corpus.content
        root = sp.csr_matrix(counts, dtype=np.float64)
        lengths = np.asarray(root.sum(axis=1)).ravel()
        root = sp.csr_matrix(sp.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ root)
        root.data = np.sqrt(root.data)
        return root

    @cached_property
    def document_vectors(self) -> np.ndarray | None:
        """(J, d) embeddings of length 1, of the model's context of them; 0 where missing. None without."""
        projection = projection_of(self.posterior.imported)
        name = None if projection is None else projection.name
        if projection is None or name not in self.posterior.families or name not in self.corpus.contexts:
            return None
        centre, scale = self.corpus.units.get(projection.name, (0.0, 1.0))
        values = np.asarray(self.corpus.contexts[projection.name]) * np.asarray(scale) + np.asarray(centre)
        vectors: np.ndarray = np.nan_to_num(values) * projection.sd
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)

    def node_features(self, rows: np.ndarray) -> np.ndarray:
        """(n, F): the same of some of the nodes, by row, as they are expected."""
        return np.sqrt(self.topic_shares[0][rows] if self.is_of_observations else self.node_words(rows))

    @cached_property
    def document_topics(self) -> sp.csr_matrix:
        """(J, M) CSR float64: expected tokens of each topic in each document
        (:class:`mc2core.posterior.proportions.DocumentTopics`).
        """
        return DocumentTopics(self.posterior.representative).tokens(self.corpus, self.cluster, self.threads)


def as_one_cluster(posterior: Posterior) -> Posterior:
    """The posterior of a model without clusters (HDP) with all documents in one: each document draws its proportions
    from DP(v, epsilon), so from those of a cluster with the proportions epsilon at a document level of concentration v.
    """
    samples = []
    for one in posterior.samples:
        total = one.topic_weights.sum()
        samples.append(
            replace(
                one,
                cluster_weights=np.ones(1),
                new_cluster_weight=0.0,
                topic_given_cluster=(one.topic_weights / total)[None],
                new_topic_weight=np.array([1.0 - total]),
                contexts=SparseRows.of(np.zeros((1, one.contexts.shape[1]))),
                cluster=np.zeros_like(one.cluster),
                document_concentration=one.table_concentration,
            )
        )
    return replace(posterior, samples=samples, hierarchy=None)


def chosen_samples(posterior: Posterior) -> list[int]:
    """Numbers of N_SAMPLES samples at most, spread evenly; none where there is one."""
    n = len(posterior.samples)
    return [] if n < 2 else sorted(set(np.linspace(0, n - 1, N_SAMPLES).astype(int).tolist()))


def _sizes(hierarchy: Hierarchy) -> list[int]:
    """Sizes below the fit's own that are described, the largest first."""
    sizes, size = {hierarchy.recommended, *range(1, EVERY_SIZE + 1)}, EVERY_SIZE
    while (size := size * 5 // 4) <= MAX_GROUPS:
        sizes.add(size)
    return [size for size in sorted(sizes, reverse=True) if size < hierarchy.n_clusters and size <= MAX_GROUPS]
