"""Quantities that the tables, plots and reports of a fit share, each computed once on first use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy import special

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import directions_of
from mc2core.corpus.row_blocks import indicator
from mc2core.explore.words import Names, check_names
from mc2core.posterior import Posterior
from mc2core.posterior.hierarchy import CUTS, Hierarchy
from mc2core.posterior.proportions import DocumentTopics
from mc2core.posterior.sample import SparseRows

Computed = TypeVar("Computed")

MAX_GROUPS = 200
"""Largest number of clusters in a described cut."""
EVERY_SIZE = 12
"""Every cut with at most this number of clusters is described. The sizes of larger described cuts grow by a quarter."""
N_SAMPLES = 20
"""Number of evenly spaced samples from which the uncertainty of clusters is computed."""
N_TOPIC_SAMPLES = 6
"""Number of evenly spaced samples from which the uncertainty of topics is computed."""
_FOLDS, _PRIOR_TOKENS = 5, 1000.0  # number of folds and prior tokens for the prediction of clusters by words
_MIN_PROBABILITY = 1e-4  # smaller probabilities are set to 0


@dataclass(frozen=True)
class Description:
    """A posterior with the documents to be described.

    A *node* is a cluster of one of the described clusterings. Nodes are numbered from 0: first the clusters of the
    recommended clustering, then the clusters of the fit (if the fit is not recommended). The clusters of the other cuts
    follow, from the largest cut to the smallest. The clusters of a clustering are sorted by decreasing number of fitted
    documents. Tables number nodes from 1.

    Attributes
    ----------
    posterior, corpus
    cluster : (J,) int64
        Cluster of each document, numbered as in the arrays of the posterior.
    probability : (J, K) float64
        Probability of each cluster (:meth:`mc2core.Posterior.assign`).
    recommended : int
        Recommended number of clusters: the number of clusters in a cut, or K.
    in_recommended : (J, recommended) float64
        Probability of each cluster of the recommended clustering.
    cuts : dict of (J,) int64
        Cluster of each document in each described cut. The keys are the numbers of clusters in the cuts, all below K
        and in decreasing order. The dict is empty if the posterior has no hierarchy and the documents were not fitted.
    names : dict of dict of str
        Names given by the user, {"cluster": {node: name}, "topic": {topic: name}}, with numbers from 1. Other clusters
        and topics are named by their words (:func:`mc2core.explore.words.name_of`).
    phrases : dict of str
        Phrases of two words that replace a word in names, by this word (:func:`mc2core.explore.texts.phrases_of`).
    without_clusters : bool
        Whether the model has no clusters of documents (HDP). All documents then form one cluster
        (:func:`as_one_cluster`).
    threads : int
        Number of threads, on which the result does not depend.
    drawn : (J,) int64 or None
        Row numbers of the documents in the larger corpus from which they were sampled; None without sampling.
    n_documents : int
        Number of documents of the corpus before sampling.
    notes : sequence of str
        Sentences on names that were transferred from another fit.
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
    notes: Sequence[str] = ()

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior,
        corpus: Corpus,
        threads: int = 1,
        names: Names | None = None,
        most: int | None = None,
        seed: int = 0,
    ) -> Description:
        """Describe a posterior and documents.

        If there are more than ``most`` documents, a random sample of ``most`` documents is described, drawn with
        ``seed``. Raises ValueError if the corpus does not match the posterior, or if a named cluster or topic does not
        exist.
        """
        without_clusters = posterior.representative.documents_are_clusters
        posterior = as_one_cluster(posterior) if without_clusters else posterior
        sample, n_documents, drawn = posterior.representative, corpus.n_documents, None
        if most is not None and n_documents > most:
            rng = streams.generator(seed, "explore.documents")
            drawn = np.sort(rng.choice(n_documents, most, replace=False))
            posterior, corpus = posterior.of_documents(corpus, drawn)
            sample = posterior.representative
        is_of_fit = posterior.was_fitted_on(corpus) and not without_clusters
        predicted = None
        if posterior.was_fitted_on(corpus) and min(one.cluster.min() for one in posterior.samples) >= 0:
            cluster, probability = posterior.assign(corpus, threads=threads)
        else:
            predicted = posterior.predicted_clusters(corpus, threads=threads)
            probability = predicted.at(posterior.cluster, sample.n_clusters)
            cluster = probability.argmax(axis=1)
        hierarchy = posterior.hierarchy or (posterior.find_hierarchy(corpus) if is_of_fit else None)
        cuts: dict[int, np.ndarray] = {}
        recommended, shown = sample.n_clusters, probability[:, np.argsort(posterior.by_size)]
        if hierarchy is not None:
            if hierarchy.recommended == hierarchy.n_clusters == sample.n_clusters and predicted is None:
                shown = posterior.assign(corpus, cut="recommended")[1]
            for size in _sizes(hierarchy):
                cuts[size] = hierarchy.cut(size).astype(np.int64)
                if size == hierarchy.recommended:
                    recommended = size
                    shown = predicted.at(cuts[size], size) if predicted else posterior.assign(corpus, cut=size)[1]
                if predicted is not None:
                    cuts[size] = predicted.at(cuts[size], size).argmax(axis=1)
        clustering, sampling = (cluster, probability, cuts, recommended, shown), (threads, drawn, n_documents)
        return cls(posterior, corpus, *clustering, {}, *sampling, without_clusters=without_clusters).named(names or {})

    def named(self, names: Names, notes: Sequence[str] = ()) -> Description:
        """Return this description with other names. Raises ValueError if a named cluster or topic does not exist."""
        check_names(names, {"cluster": len(self.nodes), "topic": self.posterior.representative.n_topics})
        copy = replace(self, names=names, notes=notes)
        copy.__dict__.update(self.__dict__ | copy.__dict__)  # the copy keeps computed values
        return copy

    @property
    def n_clusters(self) -> int:
        """Number of clusters K of the fit."""
        return self.posterior.representative.n_clusters

    @property
    def levels(self) -> dict[str, int]:
        """Number of clusters of each cut with a name (:data:`CUTS`)."""
        hierarchy = self.posterior.hierarchy
        sizes = {name: 0 if hierarchy is None else hierarchy.size_of(name) for name in CUTS}
        return {name: size if size in self.cuts else self.n_clusters for name, size in sizes.items()}

    @property
    def other(self) -> dict[str, int]:
        """Number of clusters of the broad and of the fine clustering, unless equal to the recommended number."""
        return {
            name: size for name, size in self.levels.items() if name in ("broad", "fine") and size != self.recommended
        }

    @property
    def no_groups(self) -> str:
        """Sentence that is shown if one cluster is recommended although more clusters were possible; "" otherwise."""
        is_one = self.posterior.provenance.get("model", {}).get("n_clusters") == 1
        if self.recommended > 1 or is_one or self.without_clusters:
            return ""
        return "No groups of documents were found."

    @property
    def sizes(self) -> list[int]:
        """Numbers of clusters of the clusterings in the HTML report, ascending: the cuts, and K unless too large."""
        is_shown = self.n_clusters <= MAX_GROUPS or not self.cuts
        return [*reversed(self.cuts), *([self.n_clusters] if is_shown else [])]

    @cached_property
    def first(self) -> dict[int, int]:
        """First node of each clustering, by number of clusters; the nodes of a clustering are consecutive."""
        sizes = list(dict.fromkeys([self.recommended, self.n_clusters, *self.cuts]))
        return dict(zip(sizes, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))

    @cached_property
    def nodes(self) -> list[int]:
        """Numbers of all nodes."""
        return list(range(self.n_clusters + sum(self.cuts)))

    @cached_property
    def shown(self) -> set[int]:
        """Nodes of the clusterings in ``sizes``."""
        return {node for size in self.sizes for node in range(self.first[size], self.first[size] + size)}

    @cached_property
    def parent(self) -> np.ndarray:
        """For each node, the node of the next coarser clustering that contains most of its documents, (nodes,) int64.

        The value is -1 for nodes without documents and for nodes of the coarsest clustering.
        """
        parent = np.full(len(self.nodes), -1)
        for size, smaller in itertools.pairwise(sorted(self.first, reverse=True)):
            counts = np.zeros((size, smaller))
            np.add.at(counts, (self.at(size), self.at(smaller)), 1.0)
            nodes = slice(self.first[size], self.first[size] + size)
            parent[nodes] = np.where(counts.any(axis=1), counts.argmax(axis=1) + self.first[smaller], -1)
        return parent

    def at(self, size: int) -> np.ndarray:
        """Return the cluster of each document in the clustering with ``size`` clusters, (J,) int64, from 0."""
        return self.posterior.by_size[self.cluster] if size == self.n_clusters else self.cuts[size]

    @cached_property
    def members(self) -> sp.csr_matrix:
        """For each cluster of the fit, the share of its documents that are in each node, (nodes, K) CSR."""
        hierarchy, sample = self.posterior.hierarchy, self.posterior.representative
        parts: list[Any] = []
        for size in self.first:
            if size == self.n_clusters:
                parts.append(sp.identity(size, format="csr")[np.argsort(self.posterior.by_size)])
            else:
                assert hierarchy is not None  # cuts come from the hierarchy
                parts.append(hierarchy.shares(size, sample.cluster, self.n_clusters).T)
        return sp.csr_matrix(sp.vstack([sp.csr_matrix(part) for part in parts], format="csr"))

    @cached_property
    def documents_of(self) -> sp.csr_matrix:
        """Indicator of the documents of each node, (nodes, J) CSR of ones."""
        parts = [sp.csr_matrix(indicator(self.at(size), size).T) for size in self.first]
        return sp.csr_matrix(sp.vstack(parts, format="csr"))

    @cached_property
    def of_samples(self) -> list[tuple[sp.csr_matrix, np.ndarray]]:
        """Clusters of at most N_SAMPLES samples, compared with the nodes.

        Each sample is a pair: the indicator of its k clusters, (J, k) CSR of ones, and for each of these clusters the
        share of its documents that are in each node, (k, nodes). The list is empty if the posterior has one sample, or
        if the documents were not fitted.
        """
        if not self.posterior.was_fitted_on(self.corpus):
            return []
        several = []
        for number in chosen_samples(self.posterior):
            sample = self.posterior.samples[number]
            members = indicator(sample.cluster, sample.n_clusters)
            counts = (members.T @ self.documents_of.T).toarray()
            size = np.asarray(members.sum(axis=0)).T
            several.append((members, counts / np.maximum(size, 1.0)))
        return several

    @cached_property
    def matched_samples(self) -> list[tuple[sp.csr_matrix, np.ndarray]]:
        """Like :attr:`of_samples`, with an indicator in place of the shares.

        In each clustering, the indicator assigns a cluster of a sample to the node with most of the cluster's
        documents.
        """
        matched = []
        for members, share in self.of_samples:
            indicator = np.zeros_like(share)
            for size, first in self.first.items():
                nodes = share[:, first : first + size]
                rows = np.flatnonzero(nodes.any(axis=1))
                indicator[rows, first + nodes[rows].argmax(axis=1)] = 1.0
            matched.append((members, indicator))
        return matched

    # -- words or observations, and topics -----------------------------------------------------------------
    @property
    def is_of_observations(self) -> bool:
        """Whether topics emit observations rather than words."""
        return self.posterior.is_of_observations

    @cached_property
    def clusters_are_topics(self) -> bool:
        """Whether each cluster is a topic of its own (FastEx, LDA)."""
        return sp.issparse(self.posterior.representative.topic_given_cluster)

    @cached_property
    def topic_shares(self) -> tuple[Any, np.ndarray]:
        """Probability of each topic in each node, (nodes, M) dense or CSR, and probability of a new topic, (nodes,)."""
        sample = self.posterior.representative
        weights = sp.csr_matrix(self.members.multiply(sample.cluster_weights))
        total = np.asarray(weights.sum(axis=1)).ravel()
        even = self.members.multiply(1.0 / np.diff(self.members.indptr)[:, None])
        weights = sp.diags(1.0 / np.where(total > 0, total, 1.0)) @ weights + sp.diags((total == 0) * 1.0) @ even
        proportions: Any = sample.topic_given_cluster
        proportions = sp.diags(1.0 - sample.new_topic_weight) @ proportions if sp.issparse(proportions) else (
            (1.0 - sample.new_topic_weight)[:, None] * proportions
        )  # fmt: skip
        return weights @ proportions, np.asarray(weights @ sample.new_topic_weight)

    def node_words(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of each word in each node of ``rows`` (n,), (n, V) float64."""
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
        """Probability of each word in the fitted documents, (V,) float64, always positive."""
        sample = self.posterior.representative
        counts = np.asarray(sample.topic_words.sum(axis=0), dtype=np.float64).ravel() + sample.topic_word_prior
        return counts / counts.sum()

    @cached_property
    def node_tokens(self) -> np.ndarray:
        """Expected number of fitted tokens in each node, (nodes,) float64: its weight times the number of tokens."""
        sample = self.posterior.representative
        return float(sample.topic_words.sum()) * np.asarray(self.members @ sample.cluster_weights)

    @cached_property
    def all_observations(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (D,) and standard deviation (D,) of all observations; the deviation of a constant coordinate is set to
        1."""
        values = np.asarray(self.corpus.observations)
        sd = values.std(axis=0)
        return values.mean(axis=0), np.where(sd > 0.0, sd, 1.0)

    @property
    def document_features(self) -> sp.csr_matrix:
        """Square roots of the shares of words or, for observations, of topics in each document, (J, F) CSR float64."""
        counts = self.document_topics if self.is_of_observations else self.corpus.content
        root = sp.csr_matrix(counts, dtype=np.float64)
        lengths = np.asarray(root.sum(axis=1)).ravel()
        root = sp.csr_matrix(sp.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ root)
        root.data = np.sqrt(root.data)
        return root

    @cached_property
    def document_vectors(self) -> np.ndarray | None:
        """Embeddings of the documents scaled to length 1, (J, d), 0 if missing; None if the model has no embeddings."""
        return directions_of(self.corpus, self.posterior.families, self.posterior.imported)

    def node_features(self, rows: np.ndarray) -> np.ndarray:
        """Return the expected features of the nodes ``rows``, (n, F), comparable to :attr:`document_features`."""
        return np.sqrt(self.topic_shares[0][rows] if self.is_of_observations else self.node_words(rows))

    @cached_property
    def document_topics(self) -> sp.csr_matrix:
        """Expected number of tokens of each topic in each document, (J, M) CSR float64
        (:class:`mc2core.posterior.proportions.DocumentTopics`)."""
        return DocumentTopics(self.posterior.representative).tokens(self.corpus, self.cluster, self.threads)

    @cached_property
    def matched_topics(self) -> list[sp.csr_matrix]:
        """Expected number of tokens of each topic in each document, (J, M) CSR, in at most N_TOPIC_SAMPLES samples.

        Each topic of a sample is matched to the topic of the representative with the most similar words (Bhattacharyya
        coefficient). The list is empty if the posterior has one sample, if the documents were not fitted, if topics
        emit observations, or if clusters are topics.
        """
        posterior = self.posterior
        has_words = not self.is_of_observations and posterior.representative.n_topics > 0
        if not has_words or self.clusters_are_topics or not posterior.was_fitted_on(self.corpus):
            return []
        root, matched = np.sqrt(posterior.word_given_topic), []
        for number in chosen_samples(posterior, N_TOPIC_SAMPLES):
            sample = posterior.samples[number]
            best = (np.sqrt(sample.word_given_topic) @ root.T).argmax(axis=1)
            cluster = np.asarray(sample.cluster, np.int64)
            tokens = DocumentTopics(sample).tokens(self.corpus, cluster, self.threads)
            matched.append(sp.csr_matrix(tokens @ indicator(best, len(root))))
        return matched

    # -- contexts ------------------------------------------------------------------------------------------
    @cached_property
    def by_words(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Probabilities of nodes, (J, nodes) CSR, and expected tokens per topic, (J, M) CSR, without use of contexts.

        If the model has contexts other than vectors, the cluster of each document is predicted from its words alone by
        naive Bayes. The predictor of a document is trained on the other four fifths of the documents, so the prediction
        does not depend on the document's contexts. Each observation is replaced by its likeliest topic, used as a word.
        """
        corpus, n, k = self.corpus, self.corpus.n_documents, self.n_clusters
        if set(self.posterior.context_kinds.values()) <= {"vector"} or self.without_clusters:
            return sp.csr_matrix(self.documents_of.T), self.document_topics
        content = sp.csr_matrix(corpus.content, dtype=np.float64)
        if self.posterior.contents is not None:
            topic = self.posterior.contents.log_densities(np.asarray(corpus.observations))[:, :-1].argmax(axis=1)
            content = content @ indicator(topic, self.posterior.representative.n_topics)
        cluster = indicator(self.cluster, k)
        fold = streams.generator(0, "explore.folds").permutation(n) % _FOLDS
        probability = np.zeros((n, k))
        for part in range(_FOLDS):
            test, train = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
            counts = (cluster[train].T @ content[train]).toarray()
            everywhere = counts.sum(axis=0) + 1.0
            counts += _PRIOR_TOKENS * everywhere / everywhere.sum()
            with np.errstate(divide="ignore"):
                weight = np.log(np.asarray(cluster[train].sum(axis=0)).ravel())
            log_p = content[test] @ np.log(counts / counts.sum(axis=1, keepdims=True)).T + weight
            probability[test] = special.softmax(log_p, axis=1) if len(train) else 1.0 / k
        likeliest = probability.argmax(axis=1)
        probability[probability < _MIN_PROBABILITY] = 0.0
        members = sp.csr_matrix(sp.csr_matrix(probability) @ self.members.T)
        return members, DocumentTopics(self.posterior.representative).tokens(corpus, likeliest, self.threads)

    @cached_property
    def _results(self) -> dict[Any, Any]:
        return {}

    def once(self, compute: Callable[[Description], Computed]) -> Computed:
        """Return ``compute(self)``; later calls return the stored result of the first call."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        return self._results[compute]


def as_one_cluster(posterior: Posterior) -> Posterior:
    """Return the posterior of a model without clusters (HDP) with all documents in one cluster.

    In the HDP, the topic proportions of documents are drawn from DP(v, epsilon). The same holds for a document level
    with concentration v in one cluster with topic proportions epsilon.
    """
    samples = []
    for sample in posterior.samples:
        total = sample.topic_weights.sum()
        samples.append(
            replace(
                sample,
                cluster_weights=np.ones(1),
                new_cluster_weight=0.0,
                topic_given_cluster=(sample.topic_weights / total)[None],
                new_topic_weight=np.array([1.0 - total]),
                contexts=SparseRows.from_dense(np.zeros((1, sample.contexts.shape[1]))),
                cluster=np.zeros_like(sample.cluster),
                document_concentration=sample.table_concentration,
            )
        )
    return replace(posterior, samples=samples, hierarchy=None)


def chosen_samples(posterior: Posterior, most: int = N_SAMPLES) -> list[int]:
    """Return the indices of at most ``most`` evenly spaced samples; none if the posterior has only one sample."""
    n = len(posterior.samples)
    return [] if n < 2 else sorted(set(np.linspace(0, n - 1, most).astype(int).tolist()))


def _sizes(hierarchy: Hierarchy) -> list[int]:
    """Return the numbers of clusters of the described cuts, the largest first, without the clustering of the fit."""
    sizes, size = {hierarchy.recommended, hierarchy.other, *range(1, EVERY_SIZE + 1)}, EVERY_SIZE
    while (size := size * 5 // 4) <= MAX_GROUPS:
        sizes.add(size)
    return [size for size in sorted(sizes, reverse=True) if 0 < size < hierarchy.n_clusters and size <= MAX_GROUPS]
