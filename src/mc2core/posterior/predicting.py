"""Prediction of the clusters of documents, averaged over the samples of a posterior."""

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

# smaller probabilities of clusters are set to 0
_MIN = 1e-12


@dataclass(frozen=True)
class PredictedClusters:
    """Probability of each cluster of several samples for each document.

    Attributes
    ----------
    samples : sequence of Sample
        The S samples.
    shares : (J, C) float64 CSR
        Probabilities of the clusters of all samples, one sample after another, divided by S. Rows sum to 1.
    """

    samples: Sequence[Sample]
    shares: sp.csr_matrix

    def at(self, cluster: np.ndarray, n_found: int) -> np.ndarray:
        """Return the probability of each cluster of a given clustering for each document, (J, n_found) float64.

        ``cluster`` (J',) is the cluster of each fitted document in this clustering, which has ``n_found`` clusters. The
        probability of a cluster of a sample is divided among these clusters in proportion to their common documents.
        """
        into = [shares_of(cluster, n_found, one.cluster, one.n_clusters) for one in self.samples]
        return np.asarray(self.shares @ np.concatenate(into))

    def first(self) -> np.ndarray:
        """Return the probability of each cluster of the first sample for each document, (J, K) float64."""
        shares = self.shares[:, : self.samples[0].n_clusters].toarray()
        return shares / shares.sum(axis=1, keepdims=True)


class Predictors:
    """Computes P(z_j = k | w_j, x_j) for the clusters of each of ``samples``.

    For each sample, ``contexts`` has the natural parameters (K, D) of each context in x_j, by name, or no contexts if
    only words are used. One object can predict the clusters of several corpora.
    """

    def __init__(self, samples: Sequence[Sample], contexts: Sequence[Mapping[str, np.ndarray]]) -> None:
        self.samples = samples
        self._predictors = [_Predictor(*pair, len(samples)) for pair in zip(samples, contexts, strict=True)]

    def __call__(self, corpus: Corpus, stacked: StackedContexts | None, threads: int) -> PredictedClusters:
        """Return the probabilities of clusters. ``stacked`` are the contexts of ``corpus``.

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
    """Computes the probabilities of clusters in one sample; ``n_samples`` is the number of samples to average."""

    def __init__(self, sample: Sample, contexts: Mapping[str, np.ndarray], n_samples: int) -> None:
        self._log_weights = np.log(sample.cluster_weights)
        parts = [np.zeros((sample.n_clusters, 0)), *(contexts[name] for name in sorted(contexts))]
        self._natural = np.hstack(parts)
        self._clusters = ClusterChains(sample, n_samples) if sample.has_document_level else SampleMixture(sample)

    def probabilities(self, corpus: Corpus, stacked: StackedContexts | None, threads: int) -> np.ndarray:
        """Return the probability of each cluster for each document, (J, K) float64; rows sum to 1."""
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
    """Return the distribution over ``found`` (J,) of the documents in each ``cluster`` (J,), (n_clusters, n_found).

    Both arrays are clusterings of the same documents. Documents with -1 in either clustering do not count. Rows sum to
    1. A cluster without documents has the distribution of all documents.
    """
    rows = np.flatnonzero((found >= 0) & (cluster >= 0))
    counts = np.zeros((n_clusters, n_found))
    np.add.at(counts, (cluster[rows], found[rows]), 1.0)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    return counts / counts.sum(axis=1, keepdims=True)
