"""Expected tokens of documents in each topic, for documents with their own topic proportions."""

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
from mc2core.posterior.mixture import Block, blocks, in_chunks
from mc2core.posterior.sample import Sample

# documents a thread takes at a time
_CHUNK = 16
_PASSES = 20  # over a document whose proportions are its own


@inner_kernel(fastmath={"reassoc"})
def _sum(values):
    """Return the sum of values, in a fixed order. A kernel that stores nothing is vectorised independently of memory
    addresses."""
    total = 0.0
    for m in range(values.size):
        total += values[m]
    return total


@inner_kernel
def add_expected(likely, prior, tokens, count, weights, out):
    """Add the expected number of ``count`` tokens of a word in each topic to ``out`` (M,).

    ``likely`` (M,) is the probability of the word in each topic; ``prior`` and ``tokens`` are the pseudo-counts and
    tokens of the document.
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
    """Return the expected tokens of each document in each topic, (J, M) float64, by updates of pseudo-counts.

    Parameters
    ----------
    content : (J, V) CSR of whole numbers
    psi : (V, M) float64, C order
        Probability of each word in each topic.
    priors : (P, M) float64, C order
        Pseudo-counts before any token; ``kind`` (J,) int is the row of each document.
    passes : updates; after the first, each adds the tokens expected so far to the prior
    threads : the result does not depend on their number
    done : called with the number of completed documents
    """
    out = np.empty((content.shape[0], psi.shape[1]))
    arrays = content.indptr.astype(np.int64), content.indices.astype(np.int64), content.data.astype(np.int64)

    def run(first: int, last: int) -> None:
        _expect(*arrays, psi, priors, kind.astype(np.int64), passes, first, last, out)

    in_chunks(run, len(out), threads, _CHUNK, done)
    return out


class DocumentTopics:
    """Computes the expected tokens of documents in each topic of a ``sample``, given their clusters.

    With a document level, the proportions of a document come from ``_PASSES`` updates of pseudo-counts that start from
    the pseudo-counts of its cluster. Tokens of unused topics are not counted.
    """

    def __init__(self, sample: Sample) -> None:
        self._n_topics = sample.n_topics
        self._are_clusters = sp.issparse(sample.topic_given_cluster)  # FastEx, LDA
        if self._are_clusters:
            return
        self._contents = sample.contents
        counts: Any = sample.topic_words
        self._by_word: Any = (
            sp.csr_matrix(counts.T) if sp.issparse(counts) else np.ascontiguousarray(counts.T, np.float64)
        )
        self._buffers = Buffers()
        self._prior = np.float64(sample.topic_word_prior)
        self._totals = np.asarray(counts.sum(axis=1), np.float64).ravel() + counts.shape[1] * self._prior
        self._priors, self._passes = (1.0 - sample.new_topic_weight)[:, None] * sample.topic_given_cluster, 1
        if sample.has_document_level:
            self._priors, self._passes = sample.document_concentration * self._priors, _PASSES

    def tokens(self, corpus: Corpus, cluster: np.ndarray, threads: int) -> sp.csr_matrix:
        """Return the expected tokens, (J, M) float64 CSR, given ``cluster`` (J,), for any number of ``threads``."""
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
        """Return (U, M) float64: the probability of each word in each topic, or relative densities of observations."""
        if self._contents is not None:
            return relative_densities(self._contents.log_densities(block.emitted)[:, :-1])[0]
        psi = self._buffers.empty("words", len(block.words), self._n_topics)
        if sp.issparse(self._by_word):
            psi[:] = self._by_word[block.words].toarray()
        else:
            np.take(self._by_word, block.words, axis=0, out=psi, mode="clip")  # "raise" would go by a copy
        psi += self._prior
        psi /= self._totals
        return psi
