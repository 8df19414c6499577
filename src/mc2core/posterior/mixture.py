"""Likelihood of blocks of documents under a sample, with topics summed out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.corpus import Corpus, take_rows
from mc2core.families import DirichletCategorical
from mc2core.families.contents import relative_densities
from mc2core.posterior.sample import Sample

# largest number of cells of a temporary table (documents, or words, by clusters or topics): 32 MB of float64
_CELLS = 1 << 22

_MAX_DOCUMENTS = 1 << 13


class Block:
    """A block of documents with their distinct words.

    ``rows`` (B,) are the indices of the documents, and ``words`` (U,) the columns of the distinct words in the corpus.
    ``counts`` (B, U) CSR and ``by_word`` (the same as CSC) are the word counts. ``emitted`` is the argument of
    :meth:`SampleMixture.likely`: ``words`` or, for a corpus of observations, the observations (U, D).
    """

    def __init__(self, corpus: Corpus, rows: np.ndarray) -> None:
        content = take_rows(corpus.content, rows)
        self.rows = rows
        words, columns = np.unique(content.indices, return_inverse=True)
        self.words = words.astype(np.int64)
        self.emitted = self.words if corpus.observations is None else np.asarray(corpus.observations[words])
        self.counts = sp.csr_matrix((content.data, columns, content.indptr), shape=(len(rows), len(self.words)))
        self.by_word = sp.csc_matrix(self.counts, dtype=np.float64)
        self.arrays = (
            self.counts.indptr.astype(np.int64),
            self.counts.indices.astype(np.int64),
            self.counts.data.astype(np.int64),
        )


def blocks(corpus: Corpus, n_clusters: int, most: int = _MAX_DOCUMENTS) -> list[np.ndarray]:
    """Split the documents into blocks of at most ``most`` documents, so that tables of documents by clusters are small.

    Returns the row numbers of each block.
    """
    size = max(1, min(most, _CELLS // max(n_clusters, 1)))
    return [np.arange(start, min(start + size, corpus.n_documents)) for start in range(0, corpus.n_documents, size)]


def in_chunks(
    run: Callable[[int, int], None], n_documents: int, threads: int, size: int, done: Callable[[float], None]
) -> None:
    """Call ``run(first, last)`` for chunks of ``size`` documents on several threads.

    A call must write only results of its own documents. After each chunk, ``done`` is called with its number of
    documents.
    """

    def run_chunk(start: int) -> int:
        end = min(start + size, n_documents)
        run(start, end)
        return end - start

    with ThreadPoolExecutor(threads) as pool:
        for n_done in pool.map(run_chunk, range(0, n_documents, size)):
            done(n_done)


class TopicWords:
    """Probabilities of words in M topics, from which the rows of some words are requested at a time.

    ``counts`` (M, V) are the counts of words, dense or CSR, to which ``prior`` is added. ``totals`` (M,) are the sums
    over all words, with the prior.
    """

    def __init__(self, counts: Any, prior: float, totals: np.ndarray) -> None:
        by_word = counts.T
        self._by_word: Any = (
            sp.csr_matrix(by_word) if sp.issparse(counts) else np.ascontiguousarray(by_word, np.float64)
        )
        self._prior, self._totals = np.float64(prior), totals

    def write(self, words: np.ndarray, out: np.ndarray) -> None:
        """Write the probability of each of ``words`` (U,) in each topic to ``out`` (U, M)."""
        if sp.issparse(self._by_word):
            out[:] = self._by_word[words].toarray()
        else:
            np.take(self._by_word, words, axis=0, out=out, mode="clip")  # the default mode makes a copy
        out += self._prior
        out /= self._totals


class SampleMixture:
    """A sample as a mixture of clusters, each of which is a mixture of topics.

    The M topics that are not uniform over words are followed by one uniform topic, which represents all unused topics
    and topics without words. Merging equal topics is exact, because sums of components of a Dirichlet are Dirichlet.
    If topics emit observations, the last topic is a new topic.

    Attributes are the log weights of clusters, ``log_weights`` (K,), their topic proportions, ``tau`` (K, M + 1), and
    ``alpha`` (M + 1,), which is v epsilon. ``tau`` is sparse if it is sparse in the sample. If ``seed`` is given and
    the sample has mass for a new cluster, the last row is a new cluster, with proportions drawn from Dir(v epsilon).
    """

    def __init__(self, sample: Sample, seed: int | None = None, number: int = 0) -> None:
        self.sample = sample
        self.number = number
        self.n_words = sample.topic_words.shape[1]
        table: Any = sp.csr_matrix(sample.topic_words) if sp.issparse(sample.topic_words) else sample.topic_words
        totals = np.asarray(table.sum(axis=1), dtype=np.float64).ravel() + self.n_words * sample.topic_word_prior
        if not (totals > 0).all():
            topic = int(np.flatnonzero(~(totals > 0))[0])
            raise ValueError(f"topic {topic} has neither words nor prior mass; topic_word_prior must be above 0")
        high, low = table.max(axis=1), table.min(axis=1)
        if sp.issparse(table):
            high, low = high.toarray().ravel(), low.toarray().ravel()
        uneven = np.full(len(high), sample.contents is not None) | (high > low)
        self._topic_words = TopicWords(table[uneven], sample.topic_word_prior, totals[uneven])
        unused = np.asarray(sample.new_topic_weight)[:, None]
        proportions: Any = sample.topic_given_cluster
        if sp.issparse(proportions):
            proportions = sp.csr_matrix(proportions.multiply(1.0 - unused))
            even = unused + np.asarray(proportions[:, ~uneven].sum(axis=1)).reshape(-1, 1)
            self.tau: Any = sp.hstack([proportions[:, uneven], sp.csr_matrix(even)], format="csr")
        else:
            proportions = (1.0 - unused) * proportions
            self.tau = np.hstack([proportions[:, uneven], unused + proportions[:, ~uneven].sum(axis=1, keepdims=True)])
        weights = np.asarray(sample.topic_weights)
        remainder = max(0.0, 1.0 - float(weights.sum())) + float(weights[~uneven].sum())
        self.alpha = sample.table_concentration * np.append(weights[uneven], remainder)
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(sample.cluster_weights)
        self.has_new_cluster = seed is not None and sample.new_cluster_weight > 0
        if seed is not None and self.has_new_cluster:
            new = np.log(sample.new_cluster_weight)
            with np.errstate(divide="ignore"):  # if this weight is 1, every document has its own cluster
                known_clusters = np.log1p(-sample.new_cluster_weight)
            self.log_weights = np.append(self.log_weights + known_clusters, new)
            new_row = self._new_cluster(seed)[None, :]  # vstack of SciPy 1.13 does not accept vectors
            self.tau = (
                sp.csr_matrix(sp.vstack([self.tau, new_row]))
                if sp.issparse(self.tau)
                else np.vstack([self.tau, new_row])
            )

    def _new_cluster(self, seed: int) -> np.ndarray:
        proportions = np.zeros(len(self.alpha))
        possible = self.alpha > 0
        generator = streams.generator(seed, "perplexity.new_cluster", self.number)
        drawn = DirichletCategorical().draw_parameters(self.alpha[possible], generator)
        proportions[possible] = np.exp(drawn)
        return proportions

    def likely(self, emitted: np.ndarray, out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability (density) of each word (observation) in each topic, up to factors, (U, M + 1).

        The second result, (U,), is the logarithm of the factors. For words, the factors are 1 (:meth:`words`). For
        observations ``emitted`` (U, D), the first result is the density divided by the highest density, because
        densities may exceed the range of float64. The first result is written to ``out`` if given.
        """
        if self.sample.contents is None:
            return self.words(emitted, out), np.zeros(len(emitted))
        return relative_densities(self.sample.contents.log_densities(emitted), out)

    def words(self, words: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the probability of each word in each topic (1 / V in the last), (U, M + 1), in ``out`` if given."""
        psi = np.empty((len(words), len(self.alpha))) if out is None else out
        self._topic_words.write(words, psi[:, :-1])
        psi[:, -1] = 1.0 / self.n_words
        return psi

    def log_likelihood(self, block: Block) -> np.ndarray:
        """Return ln p(w_j | z_j = k) with the topics of tokens summed out, (B, K) float64 in nats."""
        total = np.zeros((len(block.rows), self.tau.shape[0]))
        size = max(1, _CELLS // max(self.tau.shape))
        for start in range(0, len(block.words), size):
            psi, log_scale = self.likely(block.emitted[start : start + size])
            with np.errstate(divide="ignore"):
                log_p = np.log(psi @ self.tau.T) + log_scale[:, None]
            total += block.by_word[:, start : start + size] @ log_p
        return total

    def log_likelihood_of(self, corpus: Corpus) -> np.ndarray:
        """Return :meth:`log_likelihood` of all documents, (J, K) float64 in nats, with about 100 MB of extra memory."""
        out = np.empty((corpus.n_documents, self.tau.shape[0]))
        with work("likelihood of documents in clusters", len(out), "documents") as progress:
            for rows in blocks(corpus, self.tau.shape[0]):
                out[rows] = self.log_likelihood(Block(corpus, rows))
                progress.advance(len(rows))
        return out


def log_likelihood_of_clusters(corpus: Corpus, sample: Sample) -> np.ndarray:
    """Return ln p(w_j | z_j = k) = sum_i ln sum_m tau_km psi_m,w_ji for each document and cluster, (J, K) float64.

    The formula is ICML14, eq. 1-2, with the topics of tokens summed out. The result is in nats, and 0 for an empty
    document. Unused topics are treated as one topic that is uniform over words.
    """
    return SampleMixture(sample).log_likelihood_of(corpus)
