"""Exact scoring in FastEx: all clusters of a document are scored, and one is drawn (collapsed Gibbs sampling).

The score of a cluster is a sum over the words of the document. The term of a word with count x in the document and
count n in the cluster is ln G(n + a + x) - ln G(n + a), minus the same difference at n = 0. So the term is 0 if the
word does not occur in the cluster. A word has at most as many nonzero terms as its document frequency. Therefore:

* A frequent word has a row of counts over all K clusters, and a row of K terms for each of its counts x in a document.
  Its contribution to all scores is a single addition of a row.
* A rare word has a list of the clusters that contain it, with its counts. Its terms are computed one by one.

While clusters are scored, the document remains in its cluster. The score of this cluster is computed from the counts
without the document, with the same bits as if the document had been removed. Tables change only if a document moves.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import gammaln

from mc2core.compute import special, streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.simd import prefetch
from mc2core.compute.streams import MAX_NATS_BELOW_BEST, argmax, draw_from_logs, select_likely
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import (
    GAUSSIAN,
    JOINT_UNIT,
    MULTINOMIAL,
    ChainSettings,
    ClusterSizes,
    document_mass,
    log_gamma_of,
    log_gaussian,
    log_joint_of_sizes,
    precision_rate,
    precision_shape,
    word_term,
)
from mc2core.inference.fastex.limits import refuse_beyond_memory, refuse_large_counts
from mc2core.inference.fastex.state import MixtureState

# -- tables of counts and terms -------------------------------------------------------------------------------------

#: a word is frequent if it occurs in more than n_clusters / CLUSTERS_PER_DOCUMENT documents; 2 and 16 were slower
CLUSTERS_PER_DOCUMENT = 4

#: number of bytes per cluster, in addition to its word counts
BYTES_PER_CLUSTER = 56

_MIN_TABULATED = 1 << 14  # smallest size of the table of log-gammas


@record
class OrderedCells(NamedTuple):
    """Word counts of the documents in CSR order; in each document, frequent words precede rare words."""

    indptr: np.ndarray  # (J + 1,) int64
    rare: np.ndarray  # (J,) int64: index of the first rare word of the document
    place: np.ndarray  # (cells,) int64: row of Tables.terms for a frequent word; start of the list for a rare word
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64: number of tokens; Gaussian: squared length


@record
class Tables(NamedTuple):
    """Counts n_kd of words in clusters: rows of counts and terms of F frequent words, and lists of rare words."""

    word: np.ndarray  # (R,) int64: frequent word f of each row of ``terms``
    x: np.ndarray  # (R,) int64: count in a document for which each row of ``terms`` is computed
    rows: np.ndarray  # (F + 1,) int64: word f has the rows rows[f] to rows[f + 1] - 1 of ``terms``
    counts: np.ndarray  # (F, K) int32: n_kd of frequent words
    terms: np.ndarray  # (R, K) float32: contributions to the scores of clusters
    starts: np.ndarray  # (rare words,) int64: index in ``lists`` of the list of each rare word
    lists: np.ndarray  # (L, 2) int32: for each rare word (length, 0), then (cluster, count) for each n_kd > 0


def is_frequent(document_frequency: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return whether each word is frequent, that is, has rows over all clusters instead of a list, (V,) bool."""
    return CLUSTERS_PER_DOCUMENT * document_frequency > n_clusters


def count_log_gammas(corpus: Corpus, frequent: np.ndarray) -> int:
    """Return the size of the table of log-gammas, which covers all counts of rare words; ``frequent`` is (V,) bool."""
    totals = np.bincount(corpus.content.indices, weights=corpus.content.data, minlength=corpus.n_words)
    return max(_MIN_TABULATED, int(totals[~frequent].max(initial=0)) + 1)


def table_bytes(corpus: Corpus, n_clusters: int) -> int:
    """Return an upper bound on the number of bytes of the tables of counts and terms.

    The number of rows of a word is at most its document frequency and its largest count. The part of the tables that
    does not depend on the corpus is not included.
    """
    frequency = np.bincount(corpus.content.indices, minlength=corpus.n_words)
    frequent = is_frequent(frequency, n_clusters)
    largest_count = np.zeros(corpus.n_words, np.int64)
    np.maximum.at(largest_count, corpus.content.indices, corpus.content.data)
    rows = np.minimum(frequency, largest_count)[frequent]
    beside_rows = int((frequency[~frequent] + 1).sum()) + count_log_gammas(corpus, frequent) - _MIN_TABULATED
    return 4 * n_clusters * int((rows + 1).sum()) + 8 * beside_rows


def build_tables(corpus: Corpus, settings: ChainSettings, mass: np.ndarray) -> tuple[OrderedCells, Tables]:
    """Return the word counts in the order of the sweep, and tables without documents.

    Raises ValueError if memory is insufficient.
    """
    content, n_clusters = corpus.content, settings.n_clusters
    frequency = np.bincount(content.indices, minlength=corpus.n_words)
    frequent = is_frequent(frequency, n_clusters)
    in_rows = frequent[content.indices]
    unit = int(content.data.max(initial=0)) + 1
    pairs = np.unique(content.indices[in_rows].astype(np.int64) * unit + content.data[in_rows])
    room = np.where(frequent | (frequency == 0), 0, frequency + 1)
    starts = np.cumsum(room) - room
    n_frequent, n_entries = int(frequent.sum()), int(room.sum())
    n_bytes = BYTES_PER_CLUSTER * n_clusters + 4 * n_clusters * (n_frequent + len(pairs))
    n_bytes += 8 * (n_entries + count_log_gammas(corpus, frequent))
    refuse_beyond_memory("exact", n_bytes, corpus.n_words, settings)
    word = np.searchsorted(np.flatnonzero(frequent), pairs // unit)
    cells = OrderedCells(
        content.indptr.astype(np.int64), np.empty(corpus.n_documents, np.int64), np.empty(content.nnz, np.int64),
        np.empty(content.nnz, np.int32), mass,
    )  # fmt: skip
    _order_cells(content.indices, content.data, frequent, pairs, unit, starts, cells)
    tables = Tables(
        word, pairs % unit, np.searchsorted(word, np.arange(n_frequent + 1)),
        np.zeros((n_frequent, n_clusters), np.int32), np.zeros((len(pairs), n_clusters), np.float32),
        starts[room > 0], np.zeros((n_entries, 2), np.int32),
    )  # fmt: skip
    return cells, tables


@kernel
def _order_cells(words, counts, frequent, pairs, unit, starts, cells):
    """Write the words of each document to ``cells``, frequent words first.

    ``pairs`` (R,) int64 contains word * unit + count of each row, ascending. ``starts`` (V,) int64 contains the start
    of each list.
    """
    indptr, rare, place, ordered = cells.indptr, cells.rare, cells.place, cells.counts
    for j in range(rare.size):
        end = indptr[j]
        for in_rows in (True, False):
            rare[j] = end
            for cell in range(indptr[j], indptr[j + 1]):
                d, x = np.int64(words[cell]), np.int64(counts[cell])
                if frequent[d] == in_rows:
                    place[end] = np.searchsorted(pairs, d * unit + x) if in_rows else starts[d]
                    ordered[end] = x
                    end += 1


@numba.njit(inline="always")
def term(component, log_gamma, topic_word_prior, n, x):
    """Return the contribution of a word to the score of a cluster, relative to a cluster without the word.

    The word has count x in the document and count n in the cluster.
    """
    return word_term(component, log_gamma, topic_word_prior, n, x) - word_term(
        component, log_gamma, topic_word_prior, 0, x
    )


@kernel
def fill_tables(component, topic_word_prior, log_gamma, cells, tables, cluster, squares):
    """Add the counts of all documents to empty ``tables``, and the squared counts of clusters to ``squares``, (K,)."""
    place, counts, word, table, lists = cells.place, cells.counts, tables.word, tables.counts, tables.lists
    for j in range(cluster.size):
        for cell in range(cells.indptr[j], cells.rare[j]):
            table[word[place[cell]], cluster[j]] += counts[cell]
        for cell in range(cells.rare[j], cells.indptr[j + 1]):
            start = place[cell]
            lists[start, 0] += 1
            lists[start + lists[start, 0], 0], lists[start + lists[start, 0], 1] = cluster[j], counts[cell]
    rows, x, terms = tables.rows, tables.x, tables.terms
    for f in range(table.shape[0]):
        for k in range(squares.size):
            n = np.int64(table[f, k])
            if n:
                squares[k] += n * n
                for row in range(rows[f], rows[f + 1]):
                    terms[row, k] = term(component, log_gamma, topic_word_prior, n, x[row])
    entry_of = np.full(squares.size, -1)  # latest list entry of each cluster, in this list or an earlier one
    for start in tables.starts:
        last = start
        for i in range(start + 1, start + 1 + lists[start, 0]):
            one, x_one = lists[i, 0], lists[i, 1]
            if entry_of[one] <= start:
                last += 1
                entry_of[one] = last
                lists[last, 0], lists[last, 1] = one, 0
            lists[entry_of[one], 1] += x_one
        lists[start, 0] = last - start
        for i in range(start + 1, last + 1):
            squares[lists[i, 0]] += np.int64(lists[i, 1]) ** 2


@inner_kernel
def add_or_remove(constants, log_gamma, cells, tables, j, k, sign):
    """Add document j to cluster k (sign 1) or remove it (-1); return the change of the sum of squared counts."""
    place, counts, lists, word, x = cells.place, cells.counts, tables.lists, tables.word, tables.x
    rows, table, terms = tables.rows, tables.counts, tables.terms
    component, topic_word_prior = constants.component, constants.topic_word_prior
    squares = np.int64(0)
    for cell in range(cells.indptr[j], cells.rare[j]):
        change = np.int64(sign * counts[cell])
        f = word[place[cell]]
        n = table[f, k] + change
        squares += change * (2 * n - change)
        table[f, k] = n
        for row in range(rows[f], rows[f + 1]):
            terms[row, k] = term(component, log_gamma, topic_word_prior, n, x[row])
    for cell in range(cells.rare[j], cells.indptr[j + 1]):
        change = np.int64(sign * counts[cell])
        start = place[cell]
        last = start + lists[start, 0]
        i = start + 1
        while i <= last and lists[i, 0] != k:
            i += 1
        if i > last:
            lists[start, 0] += 1
            lists[i, 0], lists[i, 1] = k, 0
        n = lists[i, 1] + change
        squares += change * (2 * n - change)
        lists[i, 1] = n
        if n == 0:
            lists[start, 0] -= 1
            lists[i, 0], lists[i, 1] = lists[last, 0], lists[last, 1]
    return squares


@kernel
def log_cells(tables, log_gamma, topic_word_prior):
    """Return the sum of ln G(n + a) - ln G(a) over all counts n, in units of 1 / JOINT_UNIT.

    Terms are rounded to integers, so the sum does not depend on their order.
    """
    table, lists, starts = tables.counts, tables.lists, tables.starts
    total = np.int64(0)
    for f in range(table.shape[0]):
        for k in range(table.shape[1]):
            if table[f, k]:
                total += np.int64((log_gamma_of(log_gamma, topic_word_prior, table[f, k]) - log_gamma[0]) * JOINT_UNIT)
    for start in starts:
        for i in range(start + 1, start + 1 + lists[start, 0]):
            total += np.int64((log_gamma[lists[i, 1]] - log_gamma[0]) * JOINT_UNIT)
    return total


# -- arguments of kernels --------------------------------------------------------------------------------------------


_PREFETCH_AHEAD = 8  # number of cells between the scored cell and the prefetched cell
_PREFETCH_LINES = 8  # number of cache lines that are prefetched per cell
#: smallest number of clusters for which two threads share a sweep; with fewer, communication takes as long as the draws
MIN_SHARED_CLUSTERS = 100_000
_HALF = 2  # number of documents for which each thread draws in advance; with more, more draws would be discarded
_AHEAD = 2 * _HALF
_ALONE = 16  # number of documents that one thread processes after a move has made draws in advance invalid


class ExactConstants(NamedTuple):
    """Kind of components, number of words, and priors, which are constant during a run."""

    component: int
    n_words: int
    topic_word_prior: float
    weight_prior: float
    rate_prior: float
    mean_mass: float  # mean mass of documents


class Terms(NamedTuple):
    """Results of :func:`cluster_terms` for all K clusters; each array is (K,) float64."""

    head: np.ndarray
    slope: np.ndarray
    tail: np.ndarray
    shape: np.ndarray


class ExactChain(NamedTuple):
    """Arguments of the kernels that draw clusters, except the assignments."""

    constants: ExactConstants
    log_gamma: np.ndarray
    cells: OrderedCells
    tables: Tables
    sizes: ClusterSizes
    terms: Terms


# -- terms of the score that depend only on the cluster -------------------------------------------------------------
@inner_kernel
def cluster_terms(constants, n_documents, mass, squares):
    """Return (head, slope, tail, shape) of a cluster, from which the log evidence of any document is computed.

    For multinomial components, the log evidence is concave in the mass m of the document. Its tangent at m =
    ``constants.mean_mass``, head + slope * m, is therefore an upper bound; see :func:`excess`.
    """
    component, n_words, topic_word_prior, weight_prior, rate_prior, mean_mass = constants
    weight = math.log(n_documents + weight_prior)
    if component == GAUSSIAN:
        strength = topic_word_prior + n_documents + 1.0
        shape = precision_shape(n_words, n_documents + 1)
        head = weight - log_gaussian(n_words, topic_word_prior, rate_prior, n_documents, mass, np.float64(squares))
        head += special.log_gamma(shape) - 0.5 * n_words * math.log(strength)
        return head, 1.0 / strength, precision_rate(rate_prior, topic_word_prior, n_documents + 1, mass, squares), shape
    total = mass + n_words * topic_word_prior
    if component == MULTINOMIAL:
        shape = weight + special.log_gamma(total)
        slope = -special.digamma(total + mean_mass)
        return shape - special.log_gamma(total + mean_mass) - slope * mean_mass, slope, total, shape
    rate = n_documents + rate_prior
    return weight - total * math.log1p(1.0 / rate), -math.log(rate + 1.0), 0.0, 0.0


@numba.njit(inline="always")
def _bound(component, mass, head, slope, tail, shape, score):
    """Return the log evidence, or an upper bound, of a document with this mass; ``score`` is the sum of its terms."""
    if component != GAUSSIAN:
        return score + (head + mass * slope)
    # rate of the posterior of the precision, including the document
    rate = tail + 0.5 * mass * (1.0 - slope) - score * slope
    # after overflow or rounding to 0, NaN makes the draw report scores that are not finite
    log_rate = special.log(rate) if 0.0 < rate < math.inf else math.nan
    return head - shape * log_rate


@inner_kernel
def bound_scores(component, mass, terms, scores):
    """Replace the sums of terms in ``scores``, (K,) float64, by the log evidence of a document, or by upper bounds."""
    head, slope, tail, shape = terms
    for k in range(scores.size):
        scores[k] = _bound(component, mass, head[k], slope[k], tail[k], shape[k], scores[k])


@numba.njit(inline="always")
def excess(component, mass, head, slope, tail, shape):
    """Return the difference between the upper bound of :func:`bound_scores` and the log evidence of a cluster."""
    if component != MULTINOMIAL:
        return 0.0
    return head + mass * slope - shape + special.log_gamma(tail + mass)


# -- terms of words -------------------------------------------------------------------------------------------------
@inner_kernel
def score_clusters(constants, log_gamma, cells, tables, j, current, scores):
    """Fill ``scores``, (K,) float64, with the sums of :func:`term` over the words of document j.

    For its current cluster, the counts without the document are used.
    """
    place, counts, terms, lists = cells.place, cells.counts, tables.terms, tables.lists
    word, table, component, topic_word_prior = (
        tables.word,
        tables.counts,
        constants.component,
        constants.topic_word_prior,
    )
    first, rare, last = cells.indptr[j], cells.rare[j], cells.indptr[j + 1]
    n_clusters = scores.size
    for k in range(n_clusters):
        scores[k] = 0.0
    cell = first
    while cell + 4 <= rare:
        for i in range(cell + _PREFETCH_AHEAD, min(cell + _PREFETCH_AHEAD + 4, rare)):
            prefetch(table, word[place[i]] * n_clusters + current)
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
        rounded = np.float32(term(component, log_gamma, topic_word_prior, table[word[place[i]], current] - x, x))
        without += np.float64(rounded)
    scores[current] = without
    # unsigned indices need no test for negative values
    for i in range(rare, last):
        if i + _PREFETCH_AHEAD < last:
            for k in range(0, 8 * _PREFETCH_LINES, 16):
                prefetch(lists, 2 * place[i + _PREFETCH_AHEAD] + k)
        x, start = np.int64(counts[i]), place[i]
        lacking = 0.0 if component == GAUSSIAN else log_gamma[x] - log_gamma[0]
        for entry in range(np.uint64(start + 1), np.uint64(start + 1 + lists[start, 0])):
            place_k = np.uint64(lists[entry, 0])
            others = np.uint64(lists[entry, 1] - x * (place_k == np.uint64(current)))
            if component == GAUSSIAN:
                scores[place_k] += np.float64(others) * x
            else:
                scores[place_k] += log_gamma[others + np.uint64(x)] - log_gamma[others] - lacking


# -- the sweep ------------------------------------------------------------------------------------------------------
@inner_kernel
def fill_terms(constants, sizes, terms):
    """Compute the ``terms`` of all clusters from their ``sizes``."""
    n_k, mass, squares = sizes
    head, slope, tail, shape = terms
    for k in range(n_k.size):
        head[k], slope[k], tail[k], shape[k] = cluster_terms(constants, n_k[k], mass[k], squares[k])


@numba.njit(inline="always")
def weigh_document(constants, log_gamma, cells, tables, sizes, terms, j, current, scores, likely):
    """Compute the log probabilities, up to a constant, of the clusters of document j given all other documents.

    The document is in the cluster ``current``. Clusters that are too unlikely to be drawn are left out. Returns the
    number n of remaining clusters. The first n entries of ``likely`` (K,) are these clusters. The first n entries of
    ``scores`` (K,) are their log probabilities. The state does not change.
    """
    head, slope, tail, shape = terms
    component, mass = constants.component, cells.mass[j]
    score_clusters(constants, log_gamma, cells, tables, j, current, scores)
    words = scores[current]
    # contribution of the document to the squares of its cluster: |n + x|^2 - |n|^2 = 2 <n, x> + |x|^2
    square = np.int64(2.0 * words) + mass if component == GAUSSIAN else np.int64(0)
    without = cluster_terms(
        constants, sizes.n_k[current] - 1, sizes.mass[current] - mass, sizes.squares[current] - square
    )
    bound_scores(component, mass, terms, scores)
    scores[current] = _bound(component, mass, without[0], without[1], without[2], without[3], words)
    top = argmax(scores)
    h, s, t, g = without if top == current else (head[top], slope[top], tail[top], shape[top])
    least = scores[top] - excess(component, mass, h, s, t, g) - MAX_NATS_BELOW_BEST
    n = select_likely(scores, least, likely)
    for i in range(n):
        one = likely[i]
        h, s, t, g = without if one == current else (head[one], slope[one], tail[one], shape[one])
        scores[i] -= excess(component, mass, h, s, t, g)
    return n


@inner_kernel
def choose_exactly(key, chain, cluster, j, scores, likely):
    """Draw a cluster for document j given all other documents; -1 if scores are not finite. The state does not change.

    ``scores`` (K,) float64 and ``likely`` (K,) int64 are work arrays.
    """
    constants, log_gamma, cells, tables, sizes, terms = chain
    n = weigh_document(constants, log_gamma, cells, tables, sizes, terms, j, np.int64(cluster[j]), scores, likely)
    stream = np.zeros(2, np.uint64)
    streams.seek(stream, key, j)
    drawn = draw_from_logs(stream, scores[:n])
    return likely[drawn] if drawn >= 0 else np.int64(-1)


@kernel
def choose_ahead(key, first, last, chain, cluster, ahead, scores, likely):
    """Draw clusters for documents first..last-1 in advance, without moves, into ``ahead``, (last - first,) int64."""
    for j in range(first, last):
        ahead[j - first] = choose_exactly(key, chain, cluster, j, scores, likely)


@inner_kernel
def sweep_exact(key, first, last, chain, cluster, moves, ahead, scores, likely):
    """Draw the clusters of documents first..last-1 in order, and update assignments, sizes, tables and terms in place.

    ``ahead`` contains draws of :func:`choose_ahead`, (last - first,) int64, or is empty. Draws in advance are valid
    until a document moves; the sweep then stops. ``moves`` (2,) int64 is as in :func:`.hashed_kernels.sweep`. Returns
    the next document, or -1 - j if document j has scores that are not finite.
    """
    constants, log_gamma, cells, tables, sizes, terms = chain
    n_k, sums, squares = sizes
    head, slope, tail, shape = terms
    for j in range(first, last):
        old, mass = np.int64(cluster[j]), cells.mass[j]
        new = ahead[j - first] if ahead.size > 0 else choose_exactly(key, chain, cluster, j, scores, likely)
        if new < 0:
            return -1 - j
        if new == old:
            continue
        moves[0] += 1
        moves[1] += 1
        cluster[j] = new
        for k, sign in ((old, -1), (new, 1)):
            squares[k] += add_or_remove(constants, log_gamma, cells, tables, j, k, sign)
            n_k[k] += sign
            sums[k] += sign * mass
            head[k], slope[k], tail[k], shape[k] = cluster_terms(constants, n_k[k], sums[k], squares[k])
        if ahead.size > 0:
            return j + 1
    return last


# -- the state ------------------------------------------------------------------------------------------------------


class ExactState(MixtureState):
    """State with exact scoring: assignments, and the word counts of clusters.

    Attributes
    ----------
    constants : ExactConstants
    clusters : ClusterSizes
    cells, tables : word counts of documents, and of clusters, as the kernels need them
    log_gamma : ln G(n + a) for all counts n of rare words
    """

    proposal = "exact"

    def __init__(self, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray) -> None:
        super().__init__(corpus, settings, cluster)
        content, n_clusters = corpus.content, settings.n_clusters
        mass = document_mass(settings.component, content.data, content.indptr)
        self.cells, self.tables = build_tables(corpus, settings, mass)
        frequency = np.bincount(content.indices, minlength=corpus.n_words)
        n_log_gammas = count_log_gammas(corpus, is_frequent(frequency, n_clusters))
        self.log_gamma = gammaln(np.arange(n_log_gammas) + settings.topic_word_prior)
        self.constants = ExactConstants(
            settings.component, corpus.n_words, settings.topic_word_prior, settings.weight_prior, settings.rate_prior,
            float(mass.sum() / corpus.n_documents),
        )  # fmt: skip
        self.clusters = ClusterSizes(
            n_k=np.bincount(self.cluster, minlength=n_clusters).astype(np.int64),
            mass=np.bincount(self.cluster, weights=mass, minlength=n_clusters).astype(np.int64),
            squares=np.zeros(n_clusters, np.int64),
        )
        fill_tables(
            settings.component,
            settings.topic_word_prior,
            self.log_gamma,
            self.cells,
            self.tables,
            self.cluster,
            self.clusters.squares,
        )

    @classmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        return BYTES_PER_CLUSTER * settings.n_clusters

    @classmethod
    def refuse(cls, corpus: Corpus, settings: ChainSettings) -> None:
        super().refuse(corpus, settings)
        refuse_large_counts(corpus, cls.proposal)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """Run a sweep as :meth:`MixtureState.sweep`, in the order of documents.

        With very many clusters, two threads draw clusters for a few documents in advance. If a document moves, the
        draws for later documents are repeated. The result does not depend on the number of threads.
        """
        n_documents, n_clusters = len(self.cluster), self.settings.n_clusters
        terms = Terms(*np.empty((4, n_clusters)))
        fill_terms(self.constants, self.clusters, terms)
        chain = ExactChain(self.constants, self.log_gamma, self.cells, self.tables, self.clusters, terms)
        scores, likely = np.empty((2, n_clusters)), np.empty((2, n_clusters), np.int64)
        is_shared = pool is not None and n_clusters >= MIN_SHARED_CLUSTERS
        first, is_ahead = 0, is_shared
        while first < n_documents:
            last = min(first + (_AHEAD if is_ahead else _ALONE if is_shared else n_documents), n_documents)
            ahead = np.empty(last - first if is_ahead else 0, np.int64)

            def choose(i: int, stop: int, first: int = first, ahead: np.ndarray = ahead) -> None:
                scratch = scores[i // _HALF], likely[i // _HALF]
                choose_ahead(key, first + i, first + stop, chain, self.cluster, ahead[i:stop], *scratch)

            if is_ahead:
                in_blocks(pool, choose, last - first, _HALF)
            done = sweep_exact(key, first, last, chain, self.cluster, moves, ahead, scores[0], likely[0])
            self._refuse_unfinished(done)
            is_ahead = is_shared and (not is_ahead or done - first > _HALF)
            first = done

    @property
    def log_joint(self) -> float:
        of_sizes = log_joint_of_sizes(self.settings, self.constants.n_words, len(self.cluster), *self.clusters)
        if self.settings.component == GAUSSIAN:
            return of_sizes
        return of_sizes + log_cells(self.tables, self.log_gamma, self.settings.topic_word_prior) / JOINT_UNIT
