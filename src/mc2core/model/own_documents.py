"""Likelihood of documents with topic proportions of their own around their cluster's: theta_j ~ DP(omega, tau_k).

    p(w_j) = sum_k pi_k integral Dir(theta; omega tau_k) prod_i (sum_m theta_m psi_m,w_ji)

The integral is that of the HDP and of LDA, with a cluster's own prior; it has unbiased estimators (Wallach et al.
2009). A document is hardly ever at home in more than a few clusters, so that only some are estimated with care.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.model import perplexity_kernels as kernels
from mc2core.model.mixture import Block, Mixture, SampleLike, blocks

CLUSTERS = 8
"""Clusters of which a document's likelihood is estimated with care."""
SCREENING_DRAWS = 4
"""Draws of a document's topics, for each cluster, by which these are chosen."""
SCREENING_PASSES = 4
"""Updates of the proposal's pseudo-counts for that."""
PREDICTION_DRAWS = 100
"""Draws of a document's topics, for each cluster, where its cluster is asked for."""

# documents a thread takes at a time
_CHUNK = 4


def _priors(mixture: Mixture) -> np.ndarray:
    """(K, M + 1) omega tau_k, a new cluster's drawn one included where the mixture has it."""
    tau = mixture.tau.toarray() if sp.issparse(mixture.tau) else mixture.tau
    return np.ascontiguousarray(mixture.sample.document_concentration * tau)


def _on_threads(run: Callable[[int], None], n_documents: int, threads: int) -> None:
    """``run(j)`` for the documents of a block, on threads; each writes its own documents' values only."""

    def chunk(start: int) -> None:
        for j in range(start, min(start + _CHUNK, n_documents)):
            run(j)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(chunk, range(0, n_documents, _CHUNK)))


def log_likelihood_of_all(
    block: Block, mixture: Mixture, purpose: str, draws: int, seed: int, threads: int
) -> np.ndarray:
    """(B, K) float64: ln of the importance-sampling estimate of p(w_j | z_j = k); -inf where pi_k is 0.

    ``purpose`` names the random streams, which do not depend on the cluster: what is compared meets the same numbers.
    """
    priors, psi = _priors(mixture), mixture.words(block.words)
    out = np.full((len(priors), len(block.rows)), -np.inf)
    key = streams.key(seed, purpose, mixture.number)
    possible = np.flatnonzero(mixture.log_weights > -np.inf)

    def run(j: int) -> None:
        for k in possible:
            settings = draws, SCREENING_PASSES, key
            kernels.importance(*block.arrays, block.words, psi, priors[k], *settings, j, j + 1, out[k])

    _on_threads(run, len(block.rows), threads)
    return out.T


def log_likelihood(
    kernel: Any, settings: tuple[int, int], name: str, block: Block, mixture: Mixture, seed: int, threads: int
) -> np.ndarray:
    """(B,) float64: ln of an estimate of p(w_j) by ``kernel``, one of :mod:`mc2core.model.perplexity_kernels`.

    Of each document's clusters the ``CLUSTERS`` with the largest estimates of pi_k p(w_j | k) by a few draws are kept;
    these draws are on streams of their own. exp of the result is unbiased for the sum over these clusters; leaving out
    the others only lowers it.
    """
    screened = log_likelihood_of_all(block, mixture, "perplexity.screening", SCREENING_DRAWS, seed, threads)
    screened += mixture.log_weights
    chosen = np.argsort(-screened, axis=1, kind="stable")[:, :CLUSTERS]
    priors, psi = _priors(mixture), mixture.words(block.words)
    keys = [streams.key(seed, f"perplexity.{name}.cluster.{k}", mixture.number) for k in range(len(priors))]
    logs = np.full((chosen.shape[1], len(block.rows)), -np.inf)

    def run(j: int) -> None:
        for place, k in enumerate(chosen[j]):
            if screened[j, k] > -np.inf:
                arguments = block.words, psi, priors[k], *settings, keys[k]
                kernel(*block.arrays, *arguments, j, j + 1, logs[place])
                logs[place, j] += mixture.log_weights[k]

    _on_threads(run, len(block.rows), threads)
    return logsumexp(logs, axis=0)


def log_likelihood_of_clusters(corpus: Corpus, sample: SampleLike) -> np.ndarray:
    """(J, K) float64 nats: ln of an estimate of p(w_j | z_j = k) of every document under every cluster in use.

    By importance sampling with ``PREDICTION_DRAWS`` draws; the random streams are those of seed 0.
    """
    mixture = Mixture(sample)
    out = np.empty((corpus.n_documents, mixture.tau.shape[0]))
    for rows in blocks(corpus, mixture.tau.shape[0]):
        block = Block(corpus, rows)
        out[rows] = log_likelihood_of_all(block, mixture, "prediction", PREDICTION_DRAWS, 0, 1)
    return out
