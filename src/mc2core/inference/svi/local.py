"""Local step of SVI-MC2 and its statistics: exact tree inference of q(z_j, t_j) (UAI16, eq. 1).

lse_k(w), the logarithm of the expected likelihood of a word w in cluster k with the token's table or topic summed out,
is the same in every document. It is computed once for each distinct word of a mini-batch
(:mod:`mc2core.inference.svi.tables`, :mod:`mc2core.inference.svi.direct`); a document needs lse only
(:func:`assign_documents`),

    ln mu_jk = E ln beta_k + E ln p(x_j | phi_k) + sum_w x_jw lse_k(w) - ln Z_j,

and all that the global step needs of the documents is n_k = sum_j mu_jk, R_k(w) = sum_j mu_jk x_jw, the contexts'
statistics and sum_j ln Z_j (:class:`DocumentStatistics`): small sums over documents, which may come from anywhere.

Sums over documents and words are taken in fixed blocks, in their order: bits do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import digamma, exp, log
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus, take_rows
from mc2core.families.stacked import StackedContexts

WORD_BLOCK = 512
_DOCUMENT_BLOCK = 4
# shares below this are lost in the rounding of any sum they could join: a cluster's in a document, a topic's at a table
MIN_SHARE = 1e-18
MIN_SUM = 1e-250


@dataclass(kw_only=True)
class Expectations:
    """Expectations under q of what the local step multiplies; all float64.

    log_group (K,) : E ln beta
    log_topic_total (M,) : digamma(sum_w lambda_mw)
    contexts (K, D) : E[t(phi_k)], or (K, columns) of those asked for
    observed (P, M) : E[t(psi_m)] of topics that emit observations, whose ``log_topic_total`` is empty; None of words
    """

    log_group: np.ndarray
    log_topic_total: np.ndarray
    contexts: np.ndarray
    observed: np.ndarray | None = None


class Batch(NamedTuple):
    """Some documents over their distinct words.

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
        """B."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(B,) float64: tokens of each document."""
        before = np.append(0, np.cumsum(self.counts, dtype=np.int64))
        return np.diff(before[self.indptr]).astype(np.float64)

    def narrowed(self) -> Batch:
        """The same in those columns alone in which its documents have something."""
        columns, contexts = self.contexts.narrowed()
        return self._replace(contexts=contexts, columns=self.columns[columns])


def take_batch(corpus: Corpus, contexts: StackedContexts, rows: np.ndarray) -> Batch:
    """The documents ``rows`` of a corpus whose contexts were stacked before."""
    taken = take_rows(corpus.content, rows)
    number = np.zeros(corpus.content.shape[1], np.int32)
    number[taken.indices] = 1
    words = np.flatnonzero(number)
    number[words] = np.arange(len(words), dtype=np.int32)
    counts = taken.indptr.astype(np.int64), number[taken.indices], taken.data
    return Batch(words, *counts, contexts.take(rows), np.arange(contexts.dimension), rows)


@inner_kernel(error_model="numpy", fastmath={"contract"})
def fill_log_psi(topic_words, shrink, words, prior, log_total, first, last, log_psi):
    """log_psi[u, m] = digamma(shrink n_wm + s) - digamma(total_m) for u in first..last-1."""
    for u in range(first, last):
        counts, out = topic_words[words[u]], log_psi[u]
        for m in range(counts.size):
            out[m] = digamma(shrink * counts[m] + prior) - log_total[m]


# a maximum in any order is the same number, so its loop may be vectorised
@inner_kernel(error_model="numpy", fastmath={"nnan", "ninf", "nsz", "reassoc"})
def row_maxima(scores, first, last, top):
    """top[u] = max scores[u] for u in first..last-1."""
    for u in range(first, last):
        highest = scores[u, 0]
        for d in range(1, scores.shape[1]):
            highest = max(highest, scores[u, d])
        top[u] = highest


@inner_kernel(error_model="numpy")
def exponentiate(scores, top, first, last, weights):
    """weights[u] = exp(scores[u] - top[u]) for u in first..last-1."""
    for u in range(first, last):
        for d in range(scores.shape[1]):
            weights[u, d] = exp(scores[u, d] - top[u])


@kernel(error_model="numpy")
def take_logs(sums, top, scores, row, log_table, first, last, log_likelihood):
    """log_likelihood[u, k] = top[u] + ln sums[u, k]; anew, less the largest of its terms, where it vanished."""
    for u in range(first, last):
        for k in range(sums.shape[1]):
            log_likelihood[u, k] = top[u] + log(max(sums[u, k], MIN_SUM))
        for k in range(sums.shape[1]):
            if sums[u, k] < MIN_SUM:
                highest = -np.inf
                for t in range(row.shape[1]):
                    highest = max(highest, scores[u, row[k, t]] + log_table[k, t])
                total = 0.0
                for t in range(row.shape[1]):
                    total += exp(scores[u, row[k, t]] + log_table[k, t] - highest)
                log_likelihood[u, k] = highest + log(total)


@dataclass
class DocumentStatistics:
    """Sums over documents; parts are added with ``+``.

    n_documents : int
    log_evidence : float, sum_j ln Z_j in nats
    n_k : (K,) float64, sum_j mu_jk
    word_mass : (U, K), R_k(w)
    contexts : (K, D) float64, sum_j mu_jk T(x_j)
    """

    n_documents: int
    log_evidence: float
    n_k: np.ndarray
    word_mass: np.ndarray
    contexts: np.ndarray

    def __add__(self, other: DocumentStatistics) -> DocumentStatistics:
        return DocumentStatistics(
            self.n_documents + other.n_documents,
            self.log_evidence + other.log_evidence,
            self.n_k + other.n_k,
            self.word_mass + other.word_mass,
            self.contexts + other.contexts,
        )


@kernel(error_model="numpy")
def assign(indptr, indices, counts, log_likelihood, first, last, shares, log_evidence):
    """Documents first..last-1: ``shares`` (B, K) float64 holds ln E p(z) + context and becomes mu_jk.

    Fills ``log_evidence`` (B,).
    """
    n_clusters = shares.shape[1]
    score = np.empty(n_clusters)
    for j in range(first, last):
        for k in range(n_clusters):
            score[k] = shares[j, k]
        for cell in range(indptr[j], indptr[j + 1]):
            x = np.float64(counts[cell])
            u = indices[cell]
            for k in range(n_clusters):
                score[k] += x * log_likelihood[u, k]
        top = -np.inf
        for k in range(n_clusters):
            top = max(top, score[k])
        total = 0.0
        for k in range(n_clusters):
            score[k] = np.exp(score[k] - top)
            total += score[k]
        log_evidence[j] = top + np.log(total)
        for k in range(n_clusters):
            shares[j, k] = score[k] / total


@kernel
def cells_by_word(indptr, indices, counts, n_words):
    """The cells of documents by word: (n_words + 1,) int64 indptr, their documents, ascending, and counts, int32."""
    start = np.zeros(n_words + 1, np.int64)
    for cell in range(indices.size):
        start[indices[cell] + 1] += 1
    for u in range(n_words):
        start[u + 1] += start[u]
    place = start[:-1].copy()
    documents, of_word = np.empty((2, indices.size), np.int32)
    for j in range(indptr.size - 1):
        for cell in range(indptr[j], indptr[j + 1]):
            u = indices[cell]
            documents[place[u]] = j
            of_word[place[u]] = counts[cell]
            place[u] += 1
    return start, documents, of_word


@kernel(error_model="numpy")
def add_word_mass(indptr, documents, counts, start, cluster, share, first, last, word_mass):
    """word_mass[u, k] = sum_j mu_jk x_ju for words u in first..last-1.

    (indptr, documents, counts) are the counts by word; ``cluster`` and ``share`` at start[j]..start[j + 1] - 1 are the
    clusters of document j that count.
    """
    for u in range(first, last):
        for k in range(word_mass.shape[1]):
            word_mass[u, k] = 0.0
        for cell in range(indptr[u], indptr[u + 1]):
            j = documents[cell]
            for i in range(start[j], start[j + 1]):
                word_mass[u, cluster[i]] += counts[cell] * share[i]


def assign_documents(
    batch: Batch, log_likelihood: np.ndarray, expected: Expectations, pool: Executor | None
) -> tuple[np.ndarray, DocumentStatistics]:
    """q(z_j) of every document given lse (U, K): (B, K) float64 mu_jk, rows summing to 1, and their statistics."""
    shares = batch.contexts.log_likelihood(expected.contexts) + expected.log_group
    log_evidence = np.empty(batch.n_documents)
    word_mass = np.empty_like(log_likelihood)

    def work(first: int, last: int) -> None:
        assign(batch.indptr, batch.indices, batch.counts, log_likelihood, first, last, shares, log_evidence)

    in_blocks(pool, work, batch.n_documents, _DOCUMENT_BLOCK)
    by_word = cells_by_word(batch.indptr, batch.indices, batch.counts, len(word_mass))
    document, cluster = np.nonzero(shares > MIN_SHARE)
    start = np.searchsorted(document, np.arange(batch.n_documents + 1))
    share = shares[document, cluster]

    def add(first: int, last: int) -> None:
        add_word_mass(*by_word, start, cluster, share, first, last, word_mass)

    in_blocks(pool, add, len(word_mass), WORD_BLOCK)
    contexts = np.asarray(batch.contexts.statistics.T @ shares).T
    return shares, DocumentStatistics(
        batch.n_documents, float(log_evidence.sum()), shares.sum(axis=0), word_mass, contexts
    )


#: what :func:`assign_documents` does; elsewhere documents may be told by their (B,) int32 likeliest clusters instead
Assign = Callable[[Batch, np.ndarray, Expectations, Executor | None], tuple[np.ndarray, DocumentStatistics]]


def likeliest(shares: np.ndarray) -> np.ndarray:
    """(B,) int32: the likeliest cluster of each document; -1 where its weights have no finite sum above 0."""
    return np.where(np.isfinite(shares).all(axis=1), shares.argmax(axis=1), -1).astype(np.int32)
