"""Expected number of tokens of each topic in each document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import stopping
from mc2core.base.progress import work
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.corpus import Corpus
from mc2core.families.contents import relative_densities
from mc2core.posterior.mixture import Block, TopicWords, blocks, in_chunks
from mc2core.posterior.sample import Sample

# number of documents per task of a thread
_CHUNK = 16
_PASSES = 20  # updates of the topic counts of a document with its own proportions


@inner_kernel(fastmath={"reassoc"})
def _sum(values):
    """Return the sum of ``values``. The order of summation is fixed, because a kernel without stores is vectorised
    independently of memory addresses."""
    total = 0.0
    for m in range(values.size):
        total += values[m]
    return total


@inner_kernel
def add_expected(likely, prior, tokens, count, weights, out):
    """Add the expected number of tokens of each topic, among ``count`` tokens of a word, to ``out`` (M,).

    ``likely`` (M,) is the probability of the word in each topic. ``prior`` (M,) are the pseudo-counts of topics, and
    ``tokens`` (M,) the expected topic counts of the document.
    """
    for m in range(prior.size):
        weights[m] = likely[m] * (prior[m] + tokens[m])
    share = count / _sum(weights)
    for m in range(prior.size):
        out[m] += weights[m] * share


@kernel
def _expect(indptr, indices, counts, psi, priors, kind, passes, first, last, out):
    tokens, weights = np.empty(priors.shape[1]), np.empty(priors.shape[1])
    for j in range(first, last):
        out[j] = 0.0
        for _ in range(passes):
            for m in range(tokens.size):
                tokens[m], out[j, m] = out[j, m], 0.0
            for position in range(indptr[j], indptr[j + 1]):
                add_expected(psi[indices[position]], priors[kind[j]], tokens, counts[position], weights, out[j])


def expected_tokens(
    content: sp.csr_matrix,
    psi: np.ndarray,
    priors: np.ndarray,
    kind: np.ndarray,
    passes: int,
    threads: int = 1,
    *,
    done: Callable[[float], None],
) -> np.ndarray:
    """Return the expected number of tokens of each topic in each document, (J, M) float64.

    The expectations are computed by repeated updates, in which the expected counts are added to the pseudo-counts.

    Parameters
    ----------
    content : (J, V) CSR of whole numbers
    psi : (V, M) float64, C order
        Probability of each word in each topic.
    priors : (P, M) float64, C order
        Pseudo-counts of topics.
    kind : (J,) int
        Row of ``priors`` for each document.
    passes : int
        Number of updates. The first update uses the pseudo-counts alone.
    threads : int, optional
        Number of threads, on which the result does not depend.
    done : callable
        Function that is called with the number of completed documents.
    """
    out = np.empty((content.shape[0], psi.shape[1]))
    arrays = content.indptr.astype(np.int64), content.indices.astype(np.int64), content.data.astype(np.int64)

    def run(first: int, last: int) -> None:
        _expect(*arrays, psi, priors, kind.astype(np.int64), passes, first, last, out)

    in_chunks(run, len(out), threads, _CHUNK, done)
    return out


class DocumentTopics:
    """Computes the expected number of tokens of each topic of a ``sample`` in documents, given their clusters.

    With a document level, the topic counts of a document are updated ``_PASSES`` times, starting from the pseudo-counts
    of its cluster. Unused topics are left out.
    """

    def __init__(self, sample: Sample) -> None:
        self._n_topics = sample.n_topics
        self._are_clusters = sp.issparse(sample.topic_given_cluster)  # FastEx, LDA
        if self._are_clusters:
            return
        self._contents = sample.contents
        counts: Any = sample.topic_words
        totals = np.asarray(counts.sum(axis=1), np.float64).ravel() + counts.shape[1] * sample.topic_word_prior
        self._topic_words, self._buffers = TopicWords(counts, sample.topic_word_prior, totals), Buffers()
        self._priors, self._passes = (1.0 - sample.new_topic_weight)[:, None] * sample.topic_given_cluster, 1
        if sample.has_document_level:
            self._priors, self._passes = sample.document_concentration * self._priors, _PASSES

    def tokens(self, corpus: Corpus, cluster: np.ndarray, threads: int) -> sp.csr_matrix:
        """Return the expected number of tokens of each topic in each document, (J, M) float64 CSR.

        ``cluster`` (J,) is the cluster of each document. The result does not depend on ``threads``.
        """
        if self._are_clusters:
            n = len(cluster)
            lengths = corpus.document_lengths.astype(np.float64)
            return sp.csr_matrix((lengths, (np.arange(n), cluster)), shape=(n, self._n_topics))
        parts = []
        with stopping.defer(), work("topics of documents", corpus.n_documents, "documents") as progress:
            for rows in blocks(corpus, self._n_topics):
                block = Block(corpus, rows)
                psi = self._likely(block)
                settings = self._priors, cluster[rows], self._passes, threads
                parts.append(sp.csr_matrix(expected_tokens(block.counts, psi, *settings, done=progress.advance)))
        return sp.csr_matrix(sp.vstack(parts, format="csr"))

    def _likely(self, block: Block) -> np.ndarray:
        """Return the probability of each word, or the relative density of each observation, in each topic, (U, M)."""
        if self._contents is not None:
            return relative_densities(self._contents.log_densities(block.emitted)[:, :-1])[0]
        psi = self._buffers.empty("words", len(block.words), self._n_topics)
        self._topic_words.write(block.words, psi)
        return psi
