"""The baseline of NIPS12: an uncollapsed mixture that alternates draws of assignments and of parameters.

Given the assignments, cluster weights and the parameters of all V words in all K clusters are drawn from their
conditionals. Given the parameters, documents are independent, and every cluster is scored for each document. The
posterior of the assignments is the same as for collapsed chains. Random streams are keyed by documents and words in
fixed blocks, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from concurrent.futures import Executor
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core.base import memory
from mc2core.base.checks import whole
from mc2core.compute import special, streams
from mc2core.compute.kernels import inner_kernel
from mc2core.compute.streams import MAX_NATS_BELOW_BEST, argmax, draw_from_logs, select_likely
from mc2core.compute.threads import MAX_THREADS, in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import (
    GAUSSIAN,
    MULTINOMIAL,
    POISSON,
    ChainSettings,
    DocumentCells,
    document_columns,
    log_joint_of_sizes,
    precision_rate,
    precision_shape,
)
from mc2core.inference.fastex.engine import COMPONENTS, MixtureEngine
from mc2core.inference.fastex.state import MixtureState
from mc2core.models import Mixture, Model

_WORD_BLOCK = 4096
_DOCUMENT_BLOCK = 1000
_MIN_TOTAL = 1e-290  # for a larger sum, terms that underflowed are far below its rounding error


@inner_kernel
def draw_parameters(key, first, last, indptr, clusters, counts, topic_word_prior, logs, totals):
    """Draw words ``first`` to ``last - 1`` of all clusters: ln of Gamma(n_kd + a, 1) into (V, K) float32 ``logs``.

    ``indptr``, ``clusters`` and ``counts`` are n_kd in CSR form, with one row per word. The Gamma variates are also
    added to (K,) float64 ``totals``.
    """
    stream = np.zeros(2, np.uint64)
    row = np.empty(totals.size)
    for word in range(first, last):
        streams.seek(stream, key, word)
        streams.fill_log_gamma(stream, topic_word_prior, row)
        for cell in range(indptr[word], indptr[word + 1]):
            row[clusters[cell]] = streams.log_gamma_variate(stream, topic_word_prior + counts[cell])
        for k in range(totals.size):
            logs[word, k] = row[k]
            totals[k] += special.exp(row[k])


@inner_kernel
def draw_precisions(key, n_words, topic_word_prior, rate_prior, n_k, mass, squares, precision):
    """Fill (K,) float64 ``precision`` with draws from the Gaussian clusters' posteriors."""
    stream = np.zeros(2, np.uint64)
    for k in range(n_k.size):
        streams.seek(stream, key, k)
        rate = precision_rate(rate_prior, topic_word_prior, n_k[k], mass[k], squares[k])
        precision[k] = math.exp(streams.log_gamma_variate(stream, precision_shape(n_words, n_k[k]))) / rate


@inner_kernel
def draw_means(key, first, last, indptr, clusters, counts, strength, precision, means, totals):
    """Draw the means of Gaussian clusters into ``means``, and add their squares to ``totals``.

    Other arguments are as in :func:`draw_parameters`. ``strength`` (K,) is a + n_k, so a mean has the distribution
    N(n_kd / strength, 1 / (strength precision)).
    """
    stream = np.zeros(2, np.uint64)
    row = np.empty(totals.size)
    for word in range(first, last):
        streams.seek(stream, key, word)
        for k in range(totals.size):
            row[k] = streams.normal(stream) / math.sqrt(strength[k] * precision[k])
        for cell in range(indptr[word], indptr[word + 1]):
            row[clusters[cell]] += counts[cell] / strength[clusters[cell]]
        for k in range(totals.size):
            means[word, k] = row[k]
            totals[k] += row[k] * row[k]


@inner_kernel
def log_total(logs, totals, k):
    """Return ln of the sum over words of exp(logs[:, k]), which is ln ``totals[k]`` unless the total has underflowed.

    With small word priors, all parameters of an empty cluster may underflow in float64.
    """
    if totals[k] > _MIN_TOTAL:
        return math.log(totals[k])
    top = logs[0, k]
    for word in range(logs.shape[0]):
        top = max(top, logs[word, k])
    total = 0.0
    for word in range(logs.shape[0]):
        total += math.exp(np.float64(logs[word, k]) - np.float64(top))
    return np.float64(top) + math.log(total)


@inner_kernel
def weigh_clusters(key, component, n_k, weight_prior, rate_prior, logs, precision, totals, head, slope):
    """Draw cluster weights, and compute (K,) float64 ``head`` and ``slope``, the arguments of :func:`assign`.

    ``logs`` (V, K) float32 are the drawn parameters; ``totals`` are their sums.
    """
    stream = np.zeros(2, np.uint64)
    for k in range(n_k.size):
        streams.seek(stream, key, k)
        head[k] = streams.log_gamma_variate(stream, n_k[k] + weight_prior)
        if component == MULTINOMIAL:
            slope[k] = -log_total(logs, totals, k)
        elif component == POISSON:  # rates are the variates over n_k + rate_prior
            head[k] -= totals[k] / (n_k[k] + rate_prior)
            slope[k] = -math.log(n_k[k] + rate_prior)
        else:
            head[k] += 0.5 * logs.shape[0] * math.log(precision[k]) - 0.5 * precision[k] * totals[k]
            slope[k] = -0.5 * precision[k]


@inner_kernel
def assign(key, first, last, documents, head, slope, factor, parameters, cluster):
    """Draw clusters of documents ``first`` to ``last - 1`` in place, given the parameters.

    The score of document j is head[k] + mass_j slope[k] + factor[k] * (sum over its words of x_d parameters[d, k]).
    Returns the number of documents that moved, or -1 - j if document j has scores that are not finite.
    """
    indptr, words, counts, document_mass = documents
    stream = np.zeros(2, np.uint64)
    scores, likely = np.empty(head.size), np.empty(head.size, np.int64)
    moved = 0
    for j in range(first, last):
        scores[:] = 0.0
        for cell in range(indptr[j], indptr[j + 1]):
            row, x = parameters[words[cell]], np.float64(counts[cell])
            for k in range(scores.size):
                scores[k] += x * row[k]
        for k in range(scores.size):
            scores[k] = head[k] + document_mass[j] * slope[k] + factor[k] * scores[k]
        streams.seek(stream, key, j)
        n = select_likely(scores, scores[argmax(scores)] - MAX_NATS_BELOW_BEST, likely)
        drawn = draw_from_logs(stream, scores[:n])
        if drawn < 0:
            return -1 - j
        new = likely[drawn]
        moved += new != cluster[j]
        cluster[j] = new
    return moved


class UncollapsedState(MixtureState):
    """Assignments of documents, and memory for the parameters, which every sweep draws again.

    Attributes
    ----------
    documents : DocumentCells
    parameters : (V, K) float32 parameters of the last sweep: ln of Gamma variates, or means of Gaussian clusters
    """

    def __init__(self, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray) -> None:
        super().__init__(corpus, settings, cluster)
        self.documents = DocumentCells(**document_columns(corpus, settings.component))
        self.by_word = sp.csc_matrix(corpus.content).T
        self.parameters = np.empty((corpus.n_words, settings.n_clusters), np.float32)

    @classmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        return 4 * settings.n_clusters * corpus.n_words

    @classmethod
    def refuse(cls, corpus: Corpus, settings: ChainSettings) -> None:
        what = f"{Uncollapsed.name} with {settings.n_clusters} clusters and {corpus.n_words} words"
        memory.need(cls.least_bytes(corpus, settings), what, "use fewer clusters")

    def _cells(self) -> sp.csr_matrix:
        """Return the counts n_kd, (V, K) CSR."""
        n_documents = len(self.cluster)
        members = np.ones(n_documents, np.int64), self.cluster, np.arange(n_documents + 1)
        cells = sp.csr_matrix(self.by_word @ sp.csr_matrix(members, (n_documents, self.settings.n_clusters)))
        cells.sort_indices()
        return cells

    def _sizes(self, cells: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three (K,) arrays: number of documents (int64), mass and sum of squares (float64) of each cluster."""
        n_clusters = self.settings.n_clusters
        mass = np.bincount(self.cluster, weights=self.documents.mass, minlength=n_clusters)
        squares = np.bincount(cells.indices, weights=cells.data.astype(np.float64) ** 2, minlength=n_clusters)
        return self.sizes, mass, squares

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """Draw weights and parameters, and then all assignments; arguments are as in :meth:`MixtureState.sweep`."""
        settings, cells = self.settings, self._cells()
        by_word = cells.indptr.astype(np.int64), cells.indices.astype(np.int32), cells.data
        n_k, mass, squares = self._sizes(cells)
        n_words, n_clusters = self.parameters.shape
        precision = np.ones(n_clusters)
        if settings.component == GAUSSIAN:
            sizes = n_k, mass, squares
            draw_precisions(
                key + np.uint64(3), n_words, settings.topic_word_prior, settings.rate_prior, *sizes, precision
            )

        def draw(first: int, last: int) -> np.ndarray:
            totals = np.zeros(n_clusters)
            block = key + np.uint64(1), first, last, *by_word
            if settings.component == GAUSSIAN:
                draw_means(*block, settings.topic_word_prior + n_k, precision, self.parameters, totals)
            else:
                draw_parameters(*block, settings.topic_word_prior, self.parameters, totals)
            return totals

        totals = np.sum(in_blocks(pool, draw, n_words, _WORD_BLOCK), axis=0)
        head, slope = np.empty(n_clusters), np.empty(n_clusters)
        arguments = settings.component, n_k, settings.weight_prior, settings.rate_prior, self.parameters
        weigh_clusters(key + np.uint64(2), *arguments, precision, totals, head, slope)

        def move(first: int, last: int) -> int:
            moved = assign(key, first, last, self.documents, head, slope, precision, self.parameters, self.cluster)
            self._refuse_unfinished(moved)
            return moved

        moves += sum(in_blocks(pool, move, len(self.cluster), _DOCUMENT_BLOCK))

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.cluster, minlength=self.settings.n_clusters).astype(np.int64)

    @property
    def log_joint(self) -> float:
        cells = self._cells()
        of_sizes = log_joint_of_sizes(self.settings, len(self.parameters), len(self.cluster), *self._sizes(cells))
        if self.settings.component == GAUSSIAN:
            return of_sizes
        prior = self.settings.topic_word_prior
        return of_sizes + float(np.sum(gammaln(cells.data + prior) - gammaln(prior)))


class Uncollapsed(MixtureEngine):
    """The baseline of NIPS12, which draws all parameters of a mixture and, given these, all assignments.

    Parameters
    ----------
    threads : int in [1, inf), default 1
        Number of threads that share a sweep; it never changes a result.

    Raises
    ------
    ValueError
        If a setting is outside its range; :meth:`init` and :meth:`step` also raise it if memory is too small or scores
        are not finite.
    """

    name: ClassVar[str] = "uncollapsed"

    def __init__(self, *, threads: int = 1) -> None:
        self.threads = whole("threads", threads, most=MAX_THREADS)

    def supports(self, model: Model) -> None:
        super().supports(model)
        assert isinstance(model, Mixture)
        if model.component == "gauss_wishart":
            raise ValueError("component='gauss_wishart' needs engine='fastex'; this baseline cannot draw covariances")

    def _settings(self, model: Mixture) -> ChainSettings:
        priors = model.topic_word_prior, model.weight_prior, model.rate_prior
        return ChainSettings(model.most_clusters, *priors, COMPONENTS[model.component])

    def _states(self, model: Mixture, corpus: Corpus, stored: Collection[str]) -> type[MixtureState]:
        return UncollapsedState
