"""Tokens of a document that are expected in each topic, where its proportions are its own."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mc2core.base import stopping
from mc2core.base.progress import work
from mc2core.compute.kernels import kernel
from mc2core.posterior.mixture import in_chunks

# documents a thread takes at a time
_CHUNK = 16


@kernel(fastmath={"reassoc"})
def _sum(values):
    """Stores nothing: where a loop does, whether it is vector code, and so the order, may hang on addresses."""
    total = 0.0
    for m in range(values.size):
        total += values[m]
    return total


@kernel(error_model="numpy")
def add_expected(likely, prior, tokens, count, weights, out):
    """Add to ``out`` (M,) what of ``count`` tokens of a word is expected in each topic.

    ``likely`` (M,) is the word's probability in each topic, ``prior`` and ``tokens`` what the document has of each.
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
    content: sp.csr_matrix, psi: np.ndarray, priors: np.ndarray, kind: np.ndarray, passes: int, threads: int = 1
) -> np.ndarray:
    """(J, M) float64: tokens of each document that are expected in each topic, by updates of their pseudo-counts.

    Parameters
    ----------
    content : (J, V) CSR of whole numbers
    psi : (V, M) float64, C order
        Probability of each word in each topic.
    priors : (P, M) float64, C order
        Pseudo-counts before any token; ``kind`` (J,) int is the row of each document.
    passes : updates; after the first, each adds the tokens expected so far to the prior
    threads : change no bit
    """
    out = np.empty((content.shape[0], psi.shape[1]))
    arrays = content.indptr.astype(np.int64), content.indices.astype(np.int64), content.data.astype(np.int64)

    def run(first: int, last: int) -> None:
        _expect(*arrays, psi, priors, kind.astype(np.int64), passes, first, last, out)

    with stopping.noting(), work("topics of documents", len(out), "documents") as told:
        in_chunks(run, len(out), threads, _CHUNK, told.advance)
    return out
