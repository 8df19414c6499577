"""Draws of the random measures that the blocked move conditions on: atoms in use and new ones, topics, clusters."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mc2core.compute import streams, variates
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import LANES
from mc2core.compute.threads import in_blocks
from mc2core.inference.gibbs.cells import WordCells
from mc2core.inference.gibbs.state import Assignments, Concentrations

SMALLEST_TOPIC = 1e-3
SMALLEST_CLUSTER = 1.0  # in documents; at most 0.05 of pi
#: words that one thread takes at a time
WORD_BLOCK = 512
_MEAN_ATOMS = 9_000  # at most
_TINY = np.float32(1e-18)  # of psi
_TAU_UNIT = 2.0**60  # tau is stored in units that keep its product with psi a normal float32 ...
_TINY_TAU = np.float32(1e-20)  # ... where tau is not 0
_SAFE_PRIOR = 5.0  # the sum of V Gamma(s) is below 1e-30 with probability near 1e-30**(V s)


class CutTopics(NamedTuple):
    """G_0's atoms above a weight (*big* topics, a column each), and the small ones that are in use."""

    weights: np.ndarray  # (M',) float64: of the M topics in use, then of new ones
    rest: float  # the weight of all others
    label: np.ndarray  # (columns,) int32: topic of each column; those in use come first
    column: np.ndarray  # (M,) int32: column of each topic in use, -1 for a small one
    small: np.ndarray  # (small topics,) int64: those in use
    place: np.ndarray  # (M,) int32: place of a small topic among them, 0 for a big one


@dataclass(frozen=True)
class Measures:
    """The random measures, as far as the blocked move needs them.

    Attributes
    ----------
    topics : CutTopics
    n_clusters : int
        K', clusters in use and new ones.
    big : (B,) int64
        The big ones among them; all where clusters are fixed.
    pi : (B,) float64
        Their weights; empty where clusters are fixed.
    psi : (V, width) float32
        Gammas, a column for each big topic and zeros up to whole vectors; topics are columns over their sums.
    tau : (B, width) float32
        Weights of big topics in big clusters over the sum of the topic's Gammas, in units of 2**-60.
    tau_small : (B, small topics) float64
    """

    topics: CutTopics
    n_clusters: int
    big: np.ndarray
    pi: np.ndarray
    psi: np.ndarray
    tau: np.ndarray
    tau_small: np.ndarray


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
def draw_psi(key, first, last, cells, topics, topic, topic_prior, psi, sums):
    """Gamma(n_mw + s) for words first..last-1 and the big topics; psi_m is their column over its sum.

    ``psi`` (V, width) float32 is filled, ``sums`` (width,) float64 gets the columns' sums over these words.
    """
    start, token, count, column, n_columns = cells.start, cells.token, cells.counts, topics.column, topics.label.size
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


def cut_topics(assignments: Assignments, eta: float, rng: np.random.Generator) -> CutTopics:
    """Split new topics off the rest until less than ``SMALLEST_TOPIC`` remains."""
    smallest = smallest_atom(SMALLEST_TOPIC, eta)
    new, rest = split_rest(assignments.rest, eta, smallest, rng)
    weights = np.concatenate([assignments.topic_weights, new])
    label = np.flatnonzero(weights > smallest).astype(np.int32)
    n_used = assignments.n_topics
    column, place = np.full(n_used, -1, np.int32), np.zeros(n_used, np.int32)
    used = label[label < n_used]
    column[used] = np.arange(len(used), dtype=np.int32)
    small = np.flatnonzero(column < 0)
    place[small] = np.arange(len(small), dtype=np.int32)
    return CutTopics(weights, rest, label, column, small, place)


def cut_clusters(n_k: np.ndarray, alpha: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw pi, new clusters among it until less than ``SMALLEST_CLUSTER`` remains; and which are big."""
    pi = variates.dirichlet(np.append(n_k, alpha), rng)
    smallest = smallest_atom(min(SMALLEST_CLUSTER / n_k.sum(), 0.05), alpha)
    new, _ = split_rest(pi[-1], alpha, smallest, rng)
    pi = np.concatenate([pi[:-1], new])
    return pi, np.flatnonzero(pi > smallest)


def draw_topic_words(
    topic: np.ndarray,
    cells: WordCells,
    topics: CutTopics,
    topic_prior: float,
    key: np.uint64,
    rng: np.random.Generator,
    pool: Executor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """psi of the big topics, as Gammas (V, width) float32 and their sums (width,)."""
    n_words, n_columns = len(cells.start) - 1, len(topics.label)
    width = max(LANES, -(-n_columns // LANES) * LANES)
    psi = np.zeros((n_words, width), np.float32)

    def fill(first: int, last: int) -> np.ndarray:
        sums = np.zeros(width)
        draw_psi(key, first, last, cells, topics, topic, topic_prior, psi, sums)
        return sums

    sums: np.ndarray = np.sum(in_blocks(pool, fill, n_words, WORD_BLOCK), axis=0)
    if topic_prior * n_words < _SAFE_PRIOR:
        empty = slice(int((topics.label < len(topics.column)).sum()), n_columns)
        psi[:, empty] = draw_sparse_dirichlet(n_words, n_columns - empty.start, topic_prior, rng)
        sums[empty] = 1.0
    return psi, sums


def draw_tau(
    n_km: np.ndarray, topics: CutTopics, sums: np.ndarray, v: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """tau of clusters with counts ``n_km`` (B, M): of the big topics, over ``sums``, and of the small ones in use."""
    label, small, n_columns = topics.label, topics.small, len(topics.label)
    used = label[label < len(topics.column)]
    # big topics, small topics in use, and one entry for all that is left
    shapes = np.empty((len(n_km), n_columns + len(small) + 1))
    prior = v * topics.weights
    shapes[:, :n_columns] = prior[label]
    shapes[:, : len(used)] += n_km[:, used]
    shapes[:, n_columns:-1] = prior[small] + n_km[:, small]
    left = np.setdiff1d(np.arange(len(topics.column), len(topics.weights)), label)
    shapes[:, -1] = v * (topics.rest + topics.weights[left].sum())
    drawn = variates.dirichlet(shapes, rng)
    tau = np.zeros((len(n_km), len(sums)), np.float32)
    # the sum of a topic's Gammas goes here instead of into every entry of psi
    tau[:, :n_columns] = drawn[:, :n_columns] / sums[:n_columns] * _TAU_UNIT
    tau[tau < _TINY_TAU] = 0.0
    return tau, drawn[:, n_columns:-1]


def draw_measures(
    assignments: Assignments,
    cells: WordCells,
    concentrations: Concentrations,
    topic_prior: float,
    key: np.uint64,
    rng: np.random.Generator,
    pool: Executor | None,
    *,
    clusters_are_fixed: bool,
) -> Measures:
    """Draw G_0, pi and tau given the assignments; ``key`` names psi's streams, one for each word."""
    topics = cut_topics(assignments, concentrations.topic, rng)
    n_km, n_clusters = assignments.n_km, assignments.n_clusters
    pi = np.zeros(0)
    big = np.arange(n_clusters)
    if not clusters_are_fixed:
        pi, big = cut_clusters(assignments.n_k, concentrations.group, rng)
        n_clusters, pi = len(pi), pi[big]
        n_km = np.zeros((len(big), assignments.n_topics), np.int32)
        in_use = big < assignments.n_clusters
        n_km[in_use] = assignments.n_km[big[in_use]]
    psi, sums = draw_topic_words(assignments.topic, cells, topics, topic_prior, key, rng, pool)
    tau, tau_small = draw_tau(n_km, topics, sums, concentrations.table, rng)
    return Measures(topics, n_clusters, big, pi, psi, tau, tau_small)
