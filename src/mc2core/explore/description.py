"""What a fit found in a corpus, brought together once: clusters of documents, their unions, tokens of topics."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2core.posterior.merging import MergeTree, merge_tree

MOST_GROUPS = 200
"""Unions are described where at most so many groups are left."""
_PASSES = 20  # over a document whose proportions are its own
_ENTRIES = 1 << 22  # of a block: documents' words by topics


@dataclass(frozen=True)
class Description:
    """A posterior and the documents it is asked about.

    A *node* is a cluster (0..K-1) or a union of two nodes (K, K + 1, ...), numbered as in :class:`MergeTree`; tables
    count from 1.

    Attributes
    ----------
    posterior, corpus
    cluster : (J,) int64
        The cluster of each document, and
    probability : (J, K) float64
        how likely it is in each (:meth:`mc2core.Posterior.assign`).
    tree : MergeTree
    """

    posterior: Posterior
    corpus: Corpus
    cluster: np.ndarray
    probability: np.ndarray
    tree: MergeTree

    @classmethod
    def of(cls, posterior: Posterior, corpus: Corpus, threads: int = 1) -> Description:
        """``threads`` are those of :meth:`Posterior.predict`.

        ValueError where the posterior has no clusters of documents, or the corpus does not fit it.
        """
        tree = merge_tree(posterior)
        return cls(posterior, corpus, *posterior.assign(corpus, threads=threads), tree)

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.tree.n_clusters

    @cached_property
    def shown(self) -> set[int]:
        """The nodes that are there when MOST_GROUPS clusters or fewer are left."""
        k = self.n_clusters
        gone = self.tree.pairs[: max(0, k - MOST_GROUPS)].ravel().tolist()
        return set(range(k + len(self.tree.pairs))) - set(gone)

    @cached_property
    def nodes(self) -> list[int]:
        """The nodes that are described: all clusters, and the unions of ``shown``."""
        return [*range(self.n_clusters), *sorted(node for node in self.shown if node >= self.n_clusters)]

    @cached_property
    def members(self) -> sp.csr_matrix:
        """(nodes, K) CSR of 0 and 1: the clusters of each node that is described, a row for each of ``nodes``."""
        parts: list[list[int]] = [[k] for k in range(self.n_clusters)]
        parts += [[] for _ in self.tree.pairs]
        for number, (one, other) in enumerate(self.tree.pairs, self.n_clusters):
            parts[number] = parts[one] + parts[other]
        chosen = [parts[node] for node in self.nodes]
        row = np.repeat(np.arange(len(chosen)), [len(part) for part in chosen])
        column = np.concatenate([np.array(part) for part in chosen])
        return sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(len(chosen), self.n_clusters))

    @cached_property
    def documents_of(self) -> sp.csr_matrix:
        """(nodes, J) CSR of 0 and 1: the documents whose cluster is in each node."""
        n = len(self.cluster)
        alone = sp.csr_matrix((np.ones(n), (self.cluster, np.arange(n))), shape=(self.n_clusters, n))
        return sp.csr_matrix(self.members @ alone)

    # -- words ---------------------------------------------------------------------------------------------
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
        table = table + np.float64(sample.topic_prior)
        return table / table.sum(axis=1, keepdims=True)

    def node_words(self, rows: np.ndarray) -> np.ndarray:
        """(n, V) float64: probabilities of the words in some of the nodes that are described, by row."""
        sample = self.posterior.representative
        shares, new = self.topic_shares
        counts: Any = sample.topic_words
        n_words = counts.shape[1]
        totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel() + n_words * sample.topic_prior
        part = shares[rows]
        part = part.multiply(1.0 / totals).tocsr() if sp.issparse(part) else part / totals
        words = part @ counts
        words = words.toarray() if sp.issparse(words) else np.asarray(words)
        prior = np.asarray(part.sum(axis=1)).ravel() * sample.topic_prior + new[rows] / n_words
        return words + prior[:, None]

    @cached_property
    def word_share(self) -> np.ndarray:
        """(V,) float64: probability of each word in a token of the corpus, by its counts; no word is impossible."""
        counts = (
            np.asarray(self.corpus.content.sum(axis=0), dtype=np.float64).ravel()
            + self.posterior.representative.topic_prior
        )
        return counts / counts.sum()

    @cached_property
    def document_topics(self) -> sp.csr_matrix:
        """(J, M) CSR float64: expected tokens of each topic in each document.

        Given its cluster. With a document level, a document's proportions come from ``_PASSES`` updates of
        their pseudo-counts, from the cluster's. Tokens of topics not in use are left out.
        """
        sample, content = self.posterior.representative, self.corpus.content
        if self.clusters_are_topics:
            n = len(self.cluster)
            lengths = self.corpus.document_lengths.astype(np.float64)
            return sp.csr_matrix((lengths, (np.arange(n), self.cluster)), shape=(n, self.n_clusters))
        psi = np.ascontiguousarray(sample.word_given_topic.T)
        tau = (1.0 - sample.new_topic_weight)[:, None] * sample.topic_given_cluster
        starts, blocks = self._blocks(content, psi.shape[1]), []
        with work("topics of documents", content.shape[0], "documents") as told:
            for first, last in itertools.pairwise(starts):
                part = content[first:last]
                likely = psi[part.indices]
                document = np.repeat(np.arange(last - first), np.diff(part.indptr))
                adds = sp.csr_matrix((part.data, np.arange(part.nnz), part.indptr), shape=(last - first, part.nnz))
                prior = tau[self.cluster[first:last]]
                shares = prior
                for _ in range(_PASSES if sample.has_document_level else 1):
                    of_tokens = likely * shares[document]
                    tokens = adds @ (of_tokens / of_tokens.sum(axis=1, keepdims=True))
                    shares = sample.document_concentration * prior + tokens if sample.has_document_level else shares
                blocks.append(sp.csr_matrix(tokens))
                told.advance(last - first)
        return sp.csr_matrix(sp.vstack(blocks, format="csr"))

    @staticmethod
    def _blocks(content: sp.csr_matrix, n_topics: int) -> list[int]:
        """Bounds of blocks of documents whose words times topics stay small."""
        most, starts = max(1, _ENTRIES // n_topics), [0]
        for document, end in enumerate(content.indptr[1:].tolist()):
            if end - content.indptr[starts[-1]] > most and document > starts[-1]:
                starts.append(document)
        return [*starts, content.shape[0]]
