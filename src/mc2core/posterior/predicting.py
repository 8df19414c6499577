"""Predictions of clusters by one sample, prepared once for one corpus or for many small ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp

from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.posterior.document_level import ClusterChains
from mc2core.posterior.mixture import SampleMixture
from mc2core.posterior.sample import Sample


class Predictor:
    """Computes P(z_j = k | w_j, x_j) for the clusters of a ``sample``.

    ``contexts`` has the (K, D) natural parameters of each context in x_j; it is empty for words alone.
    """

    def __init__(self, sample: Sample, contexts: Mapping[str, np.ndarray]) -> None:
        self._log_weights = np.log(sample.cluster_weights)
        parts = [np.zeros((sample.n_clusters, 0)), *(contexts[name] for name in sorted(contexts))]
        self._natural = np.hstack(parts)
        self._clusters = ClusterChains(sample) if sample.has_document_level else SampleMixture(sample)

    def probabilities(self, corpus: Corpus, stacked: StackedContexts | None, threads: int) -> np.ndarray:
        """Return the probabilities, (J, K) float64; rows sum to 1. ``stacked`` are the contexts of ``corpus``.

        Raises ValueError if a document has probability 0 in all clusters, or if ``threads`` is below 1.
        """
        if threads < 1:
            raise ValueError(f"threads is {threads}; it must be at least 1")
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
