"""Expected number of draws of repeated words, for documents that were not fitted (docs/notes/burstiness.md)."""

from __future__ import annotations

import math

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.posterior.proportions import add_expected


@kernel
def _expect_draws(indptr, indices, counts, psi, prior, b, draws):
    expected, weights, none = np.empty(prior.size), np.empty(prior.size), np.zeros(prior.size)
    for j in range(indptr.size - 1):
        expected[:] = 0.0
        for cell in range(indptr[j], indptr[j + 1]):
            add_expected(psi[indices[cell]], prior, none, 1, weights, expected)
        total = prior.sum() + (indptr[j + 1] - indptr[j])
        for cell in range(indptr[j], indptr[j + 1]):
            base, word = 0.0, psi[indices[cell]]
            for m in range(prior.size):
                base += word[m] * (prior[m] + expected[m])
            new, found = b * base / total, 1.0
            for i in range(1, counts[cell]):
                found += new / (new + i)
            draws[cell] = math.floor(found + 0.5) if found < counts[cell] else counts[cell]


def expected_draws(
    cells: tuple[np.ndarray, np.ndarray, np.ndarray], psi: np.ndarray, prior: np.ndarray, burst_concentration: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the expected number of draws of each word of each document, rounded.

    A draw is a token that is drawn from a topic, not a repetition of an earlier token. The expectation follows from the
    Chinese restaurant process and the probability of the word in the document. This probability is estimated with one
    draw per distinct word.

    Parameters
    ----------
    cells : tuple of arrays
        indptr (J + 1,), indices and counts (n,) of the CSR matrix (J, U) of word counts.
    psi : (U, M) float64
        Probability of each word in each topic.
    prior : (M,) float64
        Pseudo-counts of the topics of a document.
    burst_concentration : float
        b; if b is infinite, words do not repeat, and ``cells`` is returned unchanged.

    Returns
    -------
    tuple of arrays
        ``cells`` with the numbers of draws, from 1 to the count, in place of the counts.
    """
    if burst_concentration == np.inf:
        return cells
    draws = np.empty_like(cells[2])
    _expect_draws(*cells, psi, np.ascontiguousarray(prior), burst_concentration, draws)
    return cells[0], cells[1], draws
