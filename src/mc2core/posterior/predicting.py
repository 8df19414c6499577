"""Predictions of clusters by the samples of a posterior, prepared once for one corpus or for many small ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.base.checks import whole
from mc2core.base.progress import work
from mc2core.compute.threads import MAX_THREADS
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.posterior.document_level import ClusterChains
from mc2core.posterior.mixture import SampleMixture
from mc2core.posterior.sample import Sample

# shares of clusters below this are left out
_MIN = 1e-12


@dataclass(frozen=True)
class PredictedClusters:
    """Probabilities of the clusters of several samples for each document.

    Attributes
    ----------
    samples : the S samples
    shares : (J, C) float64 CSR, probabilities of clusters, one sample after another. Rows sum to 1, and the part of one
        sample to 1 / S
    """

    samples: Sequence[Sample]
    shares: sp.csr_matrix

    def at(self, cluster: np.ndarray, n_found: int) -> np.ndarray:
        """Return the probabilities of the clusters ``cluster`` (J',) of the fitted documents, (J, n_found) float64.

        The probability of a cluster of a sample is divided in proportion to the documents that it shares with them.
        """
        into = [shares_of(cluster, n_found, one.cluster, one.n_clusters) for one in self.samples]
        return np.asarray(self.shares @ np.concatenate(into))

    def first(self) -> np.ndarray:
        """Return the probabilities of the clusters of the first sample, (J, K) float64; rows sum to 1."""
        shares = self.shares[:, : self.samples[0].n_clusters].toarray()
        return shares / shares.sum(axis=1, keepdims=True)


class Predictors:
    """Computes P(z_j = k | w_j, x_j) for the clusters of each of ``samples``.

    ``contexts`` has the (K, D) natural parameters of each context in x_j, per sample; empty if only words are used.
    """

    def __init__(self, samples: Sequence[Sample], contexts: Sequence[Mapping[str, np.ndarray]]) -> None:
        self.samples = samples
        self._predictors = [_Predictor(*pair, len(samples)) for pair in zip(samples, contexts, strict=True)]

    def __call__(self, corpus: Corpus, stacked: StackedContexts | None, threads: int) -> PredictedClusters:
        """Return the probabilities. ``stacked`` are the contexts of ``corpus``.

        Raises ValueError if a document has probability 0 in all clusters, or if ``threads`` is below 1.
        """
        whole("threads", threads, most=MAX_THREADS)
        parts = []
        with work("clusters by samples", len(self._predictors), "samples") as progress:
            for predictor in self._predictors:
                shares = predictor.probabilities(corpus, stacked, threads)
                shares[shares < _MIN] = 0.0
                parts.append(sp.csr_matrix(shares / (len(self._predictors) * shares.sum(axis=1, keepdims=True))))
                progress.advance()
        return PredictedClusters(self.samples, sp.csr_matrix(sp.hstack(parts, format="csr")))


class _Predictor:
    """As :class:`Predictors`, of one sample; ``n_samples`` is the number over which is averaged."""

    def __init__(self, sample: Sample, contexts: Mapping[str, np.ndarray], n_samples: int) -> None:
        self._log_weights = np.log(sample.cluster_weights)
        parts = [np.zeros((sample.n_clusters, 0)), *(contexts[name] for name in sorted(contexts))]
        self._natural = np.hstack(parts)
        self._clusters = ClusterChains(sample, n_samples) if sample.has_document_level else SampleMixture(sample)

    def probabilities(self, corpus: Corpus, stacked: StackedContexts | None, threads: int) -> np.ndarray:
        """Return the probabilities, (J, K) float64; rows sum to 1."""
        of_context = np.zeros((corpus.n_documents, 1))
        if stacked is not None:
            of_context = stacked.log_predictive(self._natural)
        with np.errstate(divide="ignore"):
            if isinstance(self._clusters, ClusterChains):
                log_p = np.log(self._clusters.probabilities(corpus, self._log_weights + of_context, threads))
            else:
                log_p = self._log_weights + self._clusters.log_likelihood_of(corpus) + of_context
        total = logsumexp(log_p, axis=1, keepdims=True)
        if not np.isfinite(total).all():
            wrong = int(np.flatnonzero(~np.isfinite(total[:, 0]))[0])
            raise ValueError(
                f"document {wrong}: its log likelihood in all clusters together is {total[wrong, 0]}; "
                "the posterior's weights, topic_words and natural must be finite"
            )
        return np.exp(log_p - total)


def shares_of(found: np.ndarray, n_found: int, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the distribution of the documents of each ``cluster`` (J,) over ``found`` (J,), (n_clusters, n_found).

    Documents with -1 in either do not count. Rows sum to 1. A cluster without documents has the distribution of all.
    """
    rows = np.flatnonzero((found >= 0) & (cluster >= 0))
    counts = np.zeros((n_clusters, n_found))
    np.add.at(counts, (cluster[rows], found[rows]), 1.0)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    return counts / counts.sum(axis=1, keepdims=True)
