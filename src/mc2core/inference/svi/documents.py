"""Batches of documents, the expectations that local steps use, and the statistics that they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mc2core.corpus import Corpus, take_rows
from mc2core.families.stacked import StackedContexts


@dataclass(kw_only=True)
class Expectations:
    """Expectations under q that all local steps use, as float64.

    log_group (K,) : E ln beta log_topic_total (M,) : digamma(sum_w lambda_mw) contexts (K, D) : E[t(phi_k)], or (K,
    columns) for some columns observed (P, M) : E[t(psi_m)] of topics that emit observations, whose ``log_topic_total``
    is empty; None for words
    """

    log_group: np.ndarray
    log_topic_total: np.ndarray
    contexts: np.ndarray
    observed: np.ndarray | None = None


class Batch(NamedTuple):
    """A batch of documents over their distinct words.

    words : (U,) int64, ascending numbers of the words in the corpus, or of its observations
    indptr (B + 1,) int64, indices (cells,) int32, counts (cells,) int32 : CSR of the counts over ``words``
    contexts : StackedContexts of the documents
    columns : (D',) int64, ascending numbers in the corpus of the contexts' columns
    rows : (B,) int, their numbers in the corpus
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
        """Number B of documents."""
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
    """Statistics of documents for the global step; parts are joined by ``+``.

    cluster : (B,) int32, the likeliest cluster of each document; -1 if its weights have no finite sum above 0
    log_evidence : float, sum_j ln Z_j in nats
    n_k : (K,) float64, sum_j mu_jk
    contexts : (K, D) float64, sum_j mu_jk T(x_j)
    word_mass : (U, K), R_k(w) = sum_j mu_jk x_jw; empty with a document level
    shares : (B, K) float64 mu_jk, or None if they are stored by other processes
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
    """Return the statistics of a batch, given (B, K) mu_jk and (B,) ln Z_j."""
    return DocumentStatistics(
        cluster=np.where(np.isfinite(shares).all(axis=1), shares.argmax(axis=1), -1).astype(np.int32),
        log_evidence=float(log_evidence.sum()),
        n_k=shares.sum(axis=0),
        contexts=np.asarray(batch.contexts.statistics.T @ shares).T,
        word_mass=word_mass,
        shares=shares,
    )


def sum_by(number: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return (n, ...) sums of the rows of ``values`` with each number 0..n-1."""
    total = np.zeros((int(number.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(total, number, values)
    return total


def renumbered(cluster: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return ``number[cluster]`` as int32, and -1 where ``cluster`` is -1."""
    return np.where(cluster >= 0, number[cluster], np.int32(-1))
