"""Exact scoring inside FastEx: every cluster, word by word, and a draw (collapsed Gibbs).

What a word adds to a cluster's score is taken relative to a cluster that lacks it: ln G(n + a + x) - ln G(n + a), less
the same at n = 0. So a word matters to the clusters that have it, no more of them than its documents. Hence

* a frequent word has its K counts, and a row of K terms for each count x with which it occurs in a document: it is
  scored by the addition of a row, at the speed at which memory delivers it;
* a rare word has a list of the clusters that have it, with its counts there; its terms are looked up one by one.

A document stays in its cluster while clusters are scored; its own cluster's terms are taken at the counts without it,
to the same bits as if it had been taken out. Tables change where a document moves.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import gammaln

from mc2core.compute import special, streams
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import prefetch
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.base import State
from mc2core.inference.fastex.components import (
    GAUSSIAN,
    MULTINOMIAL,
    Settings,
    document_mass,
    log_gaussian,
    log_joint_of_sizes,
    precision_rate,
    precision_shape,
)
from mc2core.inference.fastex.draw import MAX_NATS_BELOW_BEST, argmax, draw_from_logs, select_likely
from mc2core.inference.fastex.hashed.passes import JOINT_UNIT
from mc2core.inference.fastex.limits import refuse_scores
from mc2core.inference.fastex.tables import (
    Cells,
    Tables,
    add_or_remove,
    build_tables,
    count_log_gammas,
    fill_tables,
    is_frequent,
    log_cells,
    term,
)

_PREFETCH_AHEAD = 8  # cells between the one that is scored and the one that is fetched, of which so many lines:
_PREFETCH_LINES = 8
#: two threads share a sweep from so many clusters on; with fewer, handing draws out takes as long as they do
MIN_SHARED_CLUSTERS = 100_000
_HALF = 2  # documents that each draws for ahead; more would more often be in vain
_AHEAD = 2 * _HALF
_ALONE = 16  # documents drawn for by one thread after documents moved early


class Model(NamedTuple):
    """Kind of clusters, sizes and priors: what is the same in a whole run."""

    component: int
    n_words: int
    word_prior: float
    weight_prior: float
    rate_prior: float
    mean_mass: float  # of the documents


class Sizes(NamedTuple):
    """(K,) int64 of the clusters, see :mod:`mc2core.inference.fastex.components`."""

    n_k: np.ndarray
    mass: np.ndarray
    squares: np.ndarray


class Terms(NamedTuple):
    """(K,) float64: what :func:`cluster_terms` returns of every cluster."""

    head: np.ndarray
    slope: np.ndarray
    tail: np.ndarray
    shape: np.ndarray


class Mixture(NamedTuple):
    """All that draws read, but for the assignments."""

    model: Model
    log_gamma: np.ndarray
    cells: Cells
    tables: Tables
    sizes: Sizes
    terms: Terms


# -- a cluster's part ----------------------------------------------------------------------------------------------
@kernel
def cluster_terms(model, n_documents, mass, squares):
    """A cluster's (head, slope, tail, shape), from which ``log_evidence`` of any document follows.

    Multinomial: the evidence is concave in the document's mass m, so its tangent at m = ``model.mean_mass``, which is
    head + slope * m, is never below it; see :func:`excess`.
    """
    component, n_words, word_prior, weight_prior, rate_prior, mean_mass = model
    weight = math.log(n_documents + weight_prior)
    if component == GAUSSIAN:
        strength = word_prior + n_documents + 1.0
        shape = precision_shape(n_words, n_documents + 1)
        head = weight - log_gaussian(n_words, word_prior, rate_prior, n_documents, mass, np.float64(squares))
        head += special.log_gamma(shape) - 0.5 * n_words * math.log(strength)
        return head, 1.0 / strength, precision_rate(rate_prior, word_prior, n_documents + 1, mass, squares), shape
    total = mass + n_words * word_prior
    if component == MULTINOMIAL:
        shape = weight + special.log_gamma(total)
        slope = -special.digamma(total + mean_mass)
        return shape - special.log_gamma(total + mean_mass) - slope * mean_mass, slope, total, shape
    rate = n_documents + rate_prior
    return weight - total * math.log1p(1.0 / rate), -math.log(rate + 1.0), 0.0, 0.0


@numba.njit(inline="always")
def _bound(component, mass, head, slope, tail, shape, score):
    """Log evidence, or a bound of it, of a document of this mass whose terms sum to ``score``."""
    if component != GAUSSIAN:
        return score + (head + mass * slope)
    # what the rate of the precision's posterior becomes with the document
    rate = tail + 0.5 * mass * (1.0 - slope) - score * slope
    # the logarithm is that of a normal number: where rounding or overflow leaves none, the draw is told so
    log_rate = special.log(rate) if 0.0 < rate < math.inf else math.nan
    return head - shape * log_rate


@kernel
def bound_scores(component, mass, terms, scores):
    """Turn (K,) float64 ``scores``, sums of terms of a document of this mass, into its log evidence or bounds of it."""
    head, slope, tail, shape = terms
    for k in range(scores.size):
        scores[k] = _bound(component, mass, head[k], slope[k], tail[k], shape[k], scores[k])


@numba.njit(inline="always")
def excess(component, mass, head, slope, tail, shape):
    """How far the bound of :func:`bound_scores` is above a cluster's log evidence."""
    if component != MULTINOMIAL:
        return 0.0
    return head + mass * slope - shape + special.log_gamma(tail + mass)


# -- the words' part -----------------------------------------------------------------------------------------------
@kernel
def score_clusters(model, log_gamma, cells, tables, j, own, scores):
    """Fill (K,) float64 ``scores`` with document j's sums of :func:`.tables.term`; those of ``own`` without it."""
    place, counts, terms, lists = cells.place, cells.counts, tables.terms, tables.lists
    word, table, component, word_prior = tables.word, tables.counts, model.component, model.word_prior
    first, rare, last = cells.indptr[j], cells.rare[j], cells.indptr[j + 1]
    n_clusters = scores.size
    for k in range(n_clusters):
        scores[k] = 0.0
    cell = first
    while cell + 4 <= rare:
        for i in range(cell + _PREFETCH_AHEAD, min(cell + _PREFETCH_AHEAD + 4, rare)):
            prefetch(table, word[place[i]] * n_clusters + own)
            for k in range(0, min(n_clusters, 16 * _PREFETCH_LINES), 16):
                prefetch(terms, place[i] * n_clusters + k)
        a, b, c, d = terms[place[cell]], terms[place[cell + 1]], terms[place[cell + 2]], terms[place[cell + 3]]
        for k in range(n_clusters):
            scores[k] = (((scores[k] + a[k]) + b[k]) + c[k]) + d[k]
        cell += 4
    for i in range(cell, rare):
        a = terms[place[i]]
        for k in range(n_clusters):
            scores[k] += a[k]
    without = 0.0
    for i in range(first, rare):
        x = np.int64(counts[i])
        rounded = np.float32(term(component, log_gamma, word_prior, table[word[place[i]], own] - x, x))
        without += np.float64(rounded)
    scores[own] = without
    # unsigned numbers as indices need no check whether they count from the end
    for i in range(rare, last):
        if i + _PREFETCH_AHEAD < last:
            for k in range(0, 8 * _PREFETCH_LINES, 16):
                prefetch(lists, 2 * place[i + _PREFETCH_AHEAD] + k)
        x, start = np.int64(counts[i]), place[i]
        lacking = 0.0 if component == GAUSSIAN else log_gamma[x] - log_gamma[0]
        for entry in range(np.uint64(start + 1), np.uint64(start + 1 + lists[start, 0])):
            place_k = np.uint64(lists[entry, 0])
            others = np.uint64(lists[entry, 1] - x * (place_k == np.uint64(own)))
            if component == GAUSSIAN:
                scores[place_k] += np.float64(others) * x
            else:
                scores[place_k] += log_gamma[others + np.uint64(x)] - log_gamma[others] - lacking


# -- the sweep ----------------------------------------------------------------------------------------------------
@kernel
def fill_terms(model, sizes, terms):
    """Fill ``terms`` with those of all clusters as they are."""
    n_k, mass, squares = sizes
    head, slope, tail, shape = terms
    for k in range(n_k.size):
        head[k], slope[k], tail[k], shape[k] = cluster_terms(model, n_k[k], mass[k], squares[k])


@numba.njit(inline="always")
def weigh_document(model, log_gamma, cells, tables, sizes, terms, j, own, scores, likely):
    """Log probabilities, but for a constant, of the clusters of document j, which is in ``own``, given all others.

    (K,) ``scores`` and ``likely`` begin with the clusters that may be drawn; returns how many these are. Nothing else
    is changed.
    """
    head, slope, tail, shape = terms
    component, mass = model.component, cells.mass[j]
    score_clusters(model, log_gamma, cells, tables, j, own, scores)
    words = scores[own]
    # what it adds to its cluster's squares, |n + x|^2 - |n|^2 = 2 <n, x> + |x|^2
    square = np.int64(2.0 * words) + mass if component == GAUSSIAN else np.int64(0)
    without = cluster_terms(model, sizes.n_k[own] - 1, sizes.mass[own] - mass, sizes.squares[own] - square)
    bound_scores(component, mass, terms, scores)
    scores[own] = _bound(component, mass, without[0], without[1], without[2], without[3], words)
    top = argmax(scores)
    h, s, t, g = without if top == own else (head[top], slope[top], tail[top], shape[top])
    least = scores[top] - excess(component, mass, h, s, t, g) - MAX_NATS_BELOW_BEST
    n = select_likely(scores, least, likely)
    for i in range(n):
        one = likely[i]
        h, s, t, g = without if one == own else (head[one], slope[one], tail[one], shape[one])
        scores[i] -= excess(component, mass, h, s, t, g)
    return n


@kernel
def choose_exactly(key, mixture, cluster, j, scores, likely):
    """Cluster drawn for document j given all others, -1 where scores are not finite; changes scratch memory alone.

    (K,) ``scores`` float64 and ``likely`` int64 are scratch.
    """
    model, log_gamma, cells, tables, sizes, terms = mixture
    n = weigh_document(model, log_gamma, cells, tables, sizes, terms, j, np.int64(cluster[j]), scores, likely)
    stream = np.zeros(2, np.uint64)
    streams.seek(stream, key, j)
    drawn = draw_from_logs(stream, scores[:n])
    return likely[drawn] if drawn >= 0 else np.int64(-1)


@kernel
def choose_ahead(key, first, last, mixture, cluster, ahead, scores, likely):
    """Fill (last - first,) int64 ``ahead`` with draws for documents ``first`` to ``last - 1``; no document moves."""
    for j in range(first, last):
        ahead[j - first] = choose_exactly(key, mixture, cluster, j, scores, likely)


@kernel
def sweep_exact(key, first, last, mixture, cluster, moves, ahead, scores, likely):
    """One Gibbs draw for each of documents ``first`` to ``last - 1`` in order, in place.

    ``ahead`` (last - first,) or (0,) int64: draws of :func:`choose_ahead` for them, which hold until a document moves;
    then the sweep stops. The mixture's sizes, tables and terms follow. ``moves`` (2,) int64 as in
    :func:`.hashed.sweep.sweep`. Returns the document after the last one, or -1 - j where document j has scores that are
    not finite.
    """
    model, log_gamma, cells, tables, sizes, terms = mixture
    n_k, sums, squares = sizes
    head, slope, tail, shape = terms
    for j in range(first, last):
        old, mass = np.int64(cluster[j]), cells.mass[j]
        new = ahead[j - first] if ahead.size > 0 else choose_exactly(key, mixture, cluster, j, scores, likely)
        if new < 0:
            return -1 - j
        if new == old:
            continue
        moves[0] += 1
        moves[1] += 1
        cluster[j] = new
        for k, sign in ((old, -1), (new, 1)):
            squares[k] += add_or_remove(model, log_gamma, cells, tables, j, k, sign)
            n_k[k] += sign
            sums[k] += sign * mass
            head[k], slope[k], tail[k], shape[k] = cluster_terms(model, n_k[k], sums[k], squares[k])
        if ahead.size > 0:
            return j + 1
    return last


# -- the state -----------------------------------------------------------------------------------------------------


class ExactState(State):
    """Assignments and the counts of words in clusters.

    Attributes
    ----------
    cluster : (J,) int32
    model : Model
    clusters : Sizes
    cells, tables, log_gamma : what kernels read; log_gamma[n] = ln G(n + a), for all counts of rare words
    """

    def __init__(self, corpus: Corpus, settings: Settings, cluster: np.ndarray) -> None:
        content, n_clusters = corpus.content, settings.n_clusters
        self.settings = settings
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)
        mass = document_mass(settings.component, content.data, content.indptr)
        self.cells, self.tables = build_tables(corpus, settings, mass)
        frequency = np.bincount(content.indices, minlength=corpus.n_words)
        n_log_gammas = count_log_gammas(corpus, is_frequent(frequency, n_clusters))
        self.log_gamma = gammaln(np.arange(n_log_gammas) + settings.word_prior)
        self.model = Model(
            settings.component, corpus.n_words, settings.word_prior, settings.weight_prior, settings.rate_prior,
            float(mass.sum() / corpus.n_documents),
        )  # fmt: skip
        self.clusters = Sizes(
            n_k=np.bincount(self.cluster, minlength=n_clusters).astype(np.int64),
            mass=np.bincount(self.cluster, weights=mass, minlength=n_clusters).astype(np.int64),
            squares=np.zeros(n_clusters, np.int64),
        )
        fill_tables(
            settings.component,
            settings.word_prior,
            self.log_gamma,
            self.cells,
            self.tables,
            self.cluster,
            self.clusters.squares,
        )

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One sweep over all documents in order, with the same bits on any number of threads.

        Of very many clusters, two threads draw for a few documents ahead, and for those after one that moves again.
        Moves are added to both entries of ``moves``. ValueError, with the document, where scores are not finite.
        """
        n_documents, n_clusters = len(self.cluster), self.settings.n_clusters
        terms = Terms(*np.empty((4, n_clusters)))
        fill_terms(self.model, self.clusters, terms)
        mixture = Mixture(self.model, self.log_gamma, self.cells, self.tables, self.clusters, terms)
        scores, likely = np.empty((2, n_clusters)), np.empty((2, n_clusters), np.int64)
        is_shared = pool is not None and n_clusters >= MIN_SHARED_CLUSTERS
        first, is_ahead = 0, is_shared
        while first < n_documents:
            last = min(first + (_AHEAD if is_ahead else _ALONE if is_shared else n_documents), n_documents)
            ahead = np.empty(last - first if is_ahead else 0, np.int64)

            def choose(i: int, stop: int, first: int = first, ahead: np.ndarray = ahead) -> None:
                scratch = scores[i // _HALF], likely[i // _HALF]
                choose_ahead(key, first + i, first + stop, mixture, self.cluster, ahead[i:stop], *scratch)

            if is_ahead:
                in_blocks(pool, choose, last - first, _HALF)
            done = sweep_exact(key, first, last, mixture, self.cluster, moves, ahead, scores[0], likely[0])
            if done < 0:
                refuse_scores(self.settings, f"document {-1 - done}")
            is_ahead = is_shared and (not is_ahead or done - first > _HALF)
            first = done

    @property
    def sizes(self) -> np.ndarray:
        """(K,) int64: documents of each cluster."""
        return self.clusters.n_k

    @property
    def log_joint(self) -> float:
        """As that of :class:`.hashed.state.FastExState`."""
        of_sizes = log_joint_of_sizes(self.settings, self.model.n_words, len(self.cluster), *self.clusters)
        if self.settings.component == GAUSSIAN:
            return of_sizes
        return of_sizes + log_cells(self.tables, self.log_gamma, self.settings.word_prior) / JOINT_UNIT

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cluster": self.cluster}
