"""Batches of documents, the expectations that local steps use, and the statistics that they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mc2core.corpus import Corpus, take_rows
from mc2core.families.stacked import StackedContexts


@dataclass(kw_only=True)
class Expectations:
    """Expectations under the global posteriors that all local steps use.

    log_group : (K,) float64, expected log cluster weights E ln beta
    log_topic_total : (M,) float64, digamma(sum_w lambda_mw); empty if topics emit observations
    contexts : (K, D) float64, E[t(phi_k)], or only some of its columns
    observed : (P, M) float64, E[t(psi_m)] of topics that emit observations; None for words
    """

    log_group: np.ndarray
    log_topic_total: np.ndarray
    contexts: np.ndarray
    observed: np.ndarray | None = None


class Batch(NamedTuple):
    """A batch of B documents, with the U distinct words that occur in it.

    words : (U,) int64, indices of these words (or observations) in the corpus, in ascending order
    indptr, indices, counts : (B + 1,) int64, (cells,) int32 and (cells,) int32, word counts as a CSR matrix whose
        columns are ``words``
    contexts : contexts of the documents
    columns : (D',) int64, indices of the context columns in the corpus, in ascending order
    rows : (B,) int, indices of the documents in the corpus
    """

    words: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray
    contexts: StackedContexts
    columns: np.ndarray
    rows: np.ndarray

    @property
    def n_documents(self) -> int:
        """Number of documents B."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each document, (B,) float64."""
        before = np.append(0, np.cumsum(self.counts, dtype=np.int64))
        return np.diff(before[self.indptr]).astype(np.float64)

    def narrowed(self) -> Batch:
        """Return the batch with only the context columns in which its documents have entries."""
        columns, contexts = self.contexts.narrowed()
        return self._replace(contexts=contexts, columns=self.columns[columns])


def take_batch(corpus: Corpus, contexts: StackedContexts, rows: np.ndarray) -> Batch:
    """Return the documents ``rows`` of a corpus as a batch."""
    taken = take_rows(corpus.content, rows)
    number = np.zeros(corpus.content.shape[1], np.int32)
    number[taken.indices] = 1
    words = np.flatnonzero(number)
    number[words] = np.arange(len(words), dtype=np.int32)
    counts = taken.indptr.astype(np.int64), number[taken.indices], taken.data
    return Batch(words, *counts, contexts.take(rows), np.arange(contexts.dimension), rows)


@dataclass
class DocumentStatistics:
    """Statistics of documents for the global step; ``+`` combines the statistics of two sets of documents.

    cluster : (B,) int32, likeliest cluster of each document; -1 if its responsibilities are not finite
    log_evidence : float, sum_j ln Z_j in nats
    n_k : (K,) float64, expected number of documents per cluster, sum_j mu_jk
    contexts : (K, D) float64, expected context statistics per cluster, sum_j mu_jk T(x_j)
    word_mass : (U, K) float64, R_k(w) = sum_j mu_jk x_jw, the expected number of tokens of each word in each cluster;
        empty with a document level
    shares : (B, K) float64, responsibilities mu_jk; None if they are stored by other processes
    """

    cluster: np.ndarray
    log_evidence: float
    n_k: np.ndarray
    contexts: np.ndarray
    word_mass: np.ndarray
    shares: np.ndarray | None = None

    def __add__(self, other: DocumentStatistics) -> DocumentStatistics:
        return DocumentStatistics(
            np.concatenate([self.cluster, other.cluster]),
            self.log_evidence + other.log_evidence,
            self.n_k + other.n_k,
            self.contexts + other.contexts,
            self.word_mass + other.word_mass,
        )


def statistics_of(
    batch: Batch, shares: np.ndarray, log_evidence: np.ndarray, word_mass: np.ndarray
) -> DocumentStatistics:
    """Return the statistics of a batch, given the responsibilities mu_jk (B, K) and ``log_evidence`` ln Z_j (B,)."""
    return DocumentStatistics(
        cluster=np.where(np.isfinite(shares).all(axis=1), shares.argmax(axis=1), -1).astype(np.int32),
        log_evidence=float(log_evidence.sum()),
        n_k=shares.sum(axis=0),
        contexts=np.asarray(batch.contexts.statistics.T @ shares).T,
        word_mass=word_mass,
        shares=shares,
    )


def sum_by(number: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sum of the rows of ``values`` for each group, (n, ...); ``number`` is the group 0..n-1 of each row."""
    total = np.zeros((int(number.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(total, number, values)
    return total


def renumbered(cluster: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return the new clusters ``number[cluster]`` as int32; -1 remains -1."""
    return np.where(cluster >= 0, number[cluster], np.int32(-1))
