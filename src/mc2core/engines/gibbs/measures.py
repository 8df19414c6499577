"""Draws of the random measures that the blocked move conditions on: atoms not in use, and topics."""

from __future__ import annotations

import math

import numpy as np

from mc2core.compute import streams, variates
from mc2core.compute.kernels import kernel

_MEAN_ATOMS = 9_000  # at most
_TINY = np.float32(1e-18)  # of psi


def smallest_atom(usual: float, concentration: float) -> float:
    """The weight above which atoms are big: ``usual``, or more where this would split off too many atoms.

    Until less than w remains of a measure, GEM(c) splits off 1 + Poisson(c ln(1/w)) atoms. Where c is so large, nearly
    all of them are small at any w.
    """
    return max(usual, math.exp(-_MEAN_ATOMS / concentration))


def split_rest(
    rest: float, concentration: float, smallest: float, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Split the mass ``rest`` by GEM(concentration) until less than ``smallest`` remains.

    Returns the weights of the new atoms and the remaining mass.
    """
    weights = []
    while rest > smallest:
        weights.append(rest * rng.beta(1.0, concentration))
        rest -= weights[-1]
    return np.array(weights), rest


def draw_sparse_dirichlet(n_words: int, n_columns: int, s: float, rng: np.random.Generator) -> np.ndarray:
    """(V, n_columns): columns are draws of Dir(s, ..., s) that stay finite where all Gamma(s) would underflow."""
    logs = variates.log_gammas(np.full((n_words, n_columns), s), rng)
    psi = np.exp(logs - logs.max(axis=0))
    psi /= psi.sum(axis=0)
    return np.where(psi < _TINY, 0.0, psi)


@kernel(error_model="numpy")
def draw_psi(key, first, last, start, token, count, topic, column, n_columns, topic_prior, psi, sums):
    """Gamma(n_mw + s) for words first..last-1 and the big topics; psi_m is their column over its sum.

    ``column`` (M,) int32: column of each topic in use, -1 for a small one. ``psi`` (V, width) float32 is filled,
    ``sums`` (width,) float64 gets the columns' sums over these words.
    """
    stream = np.zeros(2, np.uint64)
    n_w = np.zeros(n_columns, np.int64)
    work = np.zeros(n_columns, np.float64)
    for w in range(first, last):
        streams.seek(stream, key, w)
        n_w[:] = 0
        for cell in range(start[w], start[w + 1]):
            for i in range(token[cell], token[cell] + count[cell]):
                c = column[topic[i]]
                if c >= 0:
                    n_w[c] += 1
        row = psi[w]
        variates.fill_gamma(stream, topic_prior, work, row[:n_columns])
        for c in range(n_columns):
            if row[c] < _TINY:
                row[c] = np.float32(0.0)
            if n_w[c] > 0:
                row[c] = variates.gamma_variate(stream, n_w[c] + topic_prior)
            sums[c] += np.float64(row[c])
