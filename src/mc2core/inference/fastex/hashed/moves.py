"""FastEx's sweep: propose a cluster from signatures, accept exactly (NIPS12 section 3, docs/model.md).

With theta_kd = ln(1 + n_kd / a), the parameter of word d in cluster k relative to that of a word the cluster lacks,
the log likelihood of a document x is about <x, theta_k> less a scalar of the cluster. The proposal replaces the inner
product by norms and the angle between signatures (eq. 14). The projection decides what is hashed:

* paper: x and theta_k themselves;
* balanced: (x - n_x p) g and (theta_k - c) / g, with p the corpus' word frequencies, c the mean and g**4 the ratio of
  the spread of theta_kd to that of x_d. As sum_d (x_d - n_x p_d) c_d is the same for all clusters, and n_x <p, theta_k>
  is one exact scalar of the cluster, the product that is approximated is the same; its norms are smaller. Words that
  tell little about clusters are left out: of them, p and the cluster's size tell what to expect (``background``).

The proposal must not know where the document is now: it is taken out of its cluster's counts, sums, norm and
signature before a cluster is drawn. Then Metropolis-Hastings (eq. 17) with the collapsed likelihood (eq. 18) leaves the
posterior invariant, whatever c, g and the hash are, as long as they do not depend on the assignments of this sweep.

Everything cached for a cluster is an integer: coordinates are rounded to a grid before they are summed, so adding and
removing a document gives back the same bits, in any order, and nothing drifts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.signatures import WORD_BITS, add_signed, signature_word
from mc2core.inference.fastex.components import GAUSSIAN, linear_terms, theta_of
from mc2core.inference.fastex.evidence import fetch_cells, log_evidence_in, words_in
from mc2core.inference.fastex.hashed.proposal import draw, proposal_scores, replace, weigh
from mc2core.inference.fastex.hashed.simd import BLOCK, NO_CLUSTER
from mc2core.inference.fastex.sparse_counts import add_to, count_at

_F = np.float32
_ZERO = _F(0.0)
#: columns hold smaller numbers, so that no sum or product in a score leaves the range of float32
MAX_COLUMN_ENTRY = 1e18


class Documents(NamedTuple):
    """The corpus as kernels read it, with what is hashed of each document."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64, tokens; Gaussian: squared length
    signature: np.ndarray  # (J, W) uint64
    norm: np.ndarray  # (J,) float32, of the hashed vector


class Columns(NamedTuple):
    """What proposals read of clusters, a column for each, in whole blocks; no cluster where constant is NO_CLUSTER."""

    signature: np.ndarray  # (W, K') uint64
    norm: np.ndarray  # (K',) float32: of the hashed parameter, times its factor
    constant: np.ndarray  # (K',) float32: part of the proposal's score that is the same for all documents
    slope: np.ndarray  # (K',) float32: part for each unit of the document's mass


class Clusters(NamedTuple):
    """Statistics of the K clusters and what is cached of their hashed parameters."""

    n_k: np.ndarray  # (K,) int64, documents
    mass: np.ndarray  # (K,) int64: of its documents
    squares: np.ndarray  # (K,) int64: sum over words of n_kd**2
    sums: np.ndarray  # (K, 64 W) int32: coordinates whose bit is set, see mc2core.compute.signatures
    total: np.ndarray  # (K,) int64: all coordinates
    square: np.ndarray  # (K,) int64: squared norm on the grid
    overlap: np.ndarray  # (K,) int64: <p, theta> over the words hashed, in units of 1 / OVERLAP_UNIT
    columns: Columns


class Projection(NamedTuple):
    """How word parameters become coordinates: (theta - centre) * grid, rounded."""

    centre: np.ndarray  # (V,) float32
    grid: np.ndarray  # (V,) float32: grid points for one unit of theta; 0 for words that are left out
    frequency: np.ndarray  # (V,) float64: p_d * OVERLAP_UNIT; zeros for the paper's projection
    background: np.ndarray  # float64: <p, theta> to expect of the words left out, see linear_terms


class Work(NamedTuple):
    """Scratch memory of :func:`choose`, one for each thread."""

    sums: np.ndarray  # (64 W,) int32
    own: Columns  # a block for the cluster that the document leaves
    own_score: np.ndarray  # (BLOCK,) float32
    own_block: np.ndarray  # (1,) float32
    weights: np.ndarray  # (K',) float32
    blocks: np.ndarray  # (blocks,) float32


# -- a cluster's hashed parameters ---------------------------------------------------------------------------------
@numba.njit(inline="always")
def coordinate(theta, centre, grid):
    """Hashed coordinate of a word whose parameter is ``theta``, on the grid, int64."""
    return np.int64((theta - centre) * grid)


@kernel
def fill_column(columns, k, constants, background, sums, total, square, sizes, overlap):
    """Column k from a cluster's sums and its ``sizes`` (documents, mass, squares); whether its numbers can be used."""
    for part in range(columns.signature.shape[0]):
        columns.signature[part, k] = signature_word(sums, total, part, constants.bits)
    constant, slope, factor = linear_terms(constants, background, sizes[0], sizes[1], sizes[2], overlap)
    norm = factor * _F(math.sqrt(square) * constants.norm_unit)
    columns.norm[k] = norm
    columns.constant[k] = constant
    columns.slope[k] = slope
    return abs(norm) < MAX_COLUMN_ENTRY and abs(constant) < MAX_COLUMN_ENTRY and abs(slope) < MAX_COLUMN_ENTRY


@kernel
def refresh_column(clusters, projection, constants, k):
    """Recompute the column of cluster k; whether its numbers can be used."""
    return fill_column(
        clusters.columns, k, constants, projection.background, clusters.sums[k], clusters.total[k], clusters.square[k],
        (clusters.n_k[k], clusters.mass[k], clusters.squares[k]), clusters.overlap[k],
    )  # fmt: skip


@kernel
def add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign):
    """Add document j to cluster k (sign 1) or take it out (-1): table, counts and cached sums.

    Returns what :func:`refresh_column` does.
    """
    # arrays of named tuples are bound to names first: each access in a loop would count references, atomically
    words, counts, table, prior = documents.words, documents.counts, constants.theta, constants.word_prior
    centre, grid, frequency, component = projection.centre, projection.grid, projection.frequency, constants.component
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    sums = clusters.sums[k]
    total = square = overlap = squares = np.int64(0)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        word = np.int64(words[cell])
        change = sign * np.int64(counts[cell])
        n = add_to(slots, shift, first_key + np.uint64(word), change, used)
        squares += change * (2 * n + change)
        if grid[word] > _ZERO:
            theta = theta_of(component, table, prior, n)
            theta_new = theta_of(component, table, prior, n + change)
            before = coordinate(theta, centre[word], grid[word])
            after = coordinate(theta_new, centre[word], grid[word])
            total += after - before
            square += after * after - before * before
            overlap += np.int64(frequency[word] * theta_new) - np.int64(frequency[word] * theta)
            add_signed(sums, word, np.int32(after - before))
    clusters.total[k] += total
    clusters.square[k] += square
    clusters.overlap[k] += overlap
    clusters.n_k[k] += sign
    clusters.mass[k] += sign * documents.mass[j]
    clusters.squares[k] += squares
    return refresh_column(clusters, projection, constants, k)


# -- a move --------------------------------------------------------------------------------------------------------
@kernel
def _score_without(documents, clusters, projection, constants, slots, j, k, squares, work):
    """The proposal's score, as :func:`proposal_scores` has it, of cluster k, which document j leaves, in scratch.

    NaN where the cluster's column cannot be used without the document.
    """
    words, counts, table, prior = documents.words, documents.counts, constants.theta, constants.word_prior
    centre, grid, frequency, component = projection.centre, projection.grid, projection.frequency, constants.component
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    sums = work.sums
    for b in range(sums.size):
        sums[b] = clusters.sums[k, b]
    total, square, overlap = clusters.total[k], clusters.square[k], clusters.overlap[k]
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        word = np.int64(words[cell])
        if grid[word] > _ZERO:
            n = count_at(slots, shift, first_key + np.uint64(word))
            theta = theta_of(component, table, prior, n)
            theta_new = theta_of(component, table, prior, n - counts[cell])
            before = coordinate(theta, centre[word], grid[word])
            after = coordinate(theta_new, centre[word], grid[word])
            total += after - before
            square += after * after - before * before
            overlap += np.int64(frequency[word] * theta_new) - np.int64(frequency[word] * theta)
            add_signed(sums, word, np.int32(after - before))
    mass = documents.mass[j]
    sizes = clusters.n_k[k] - 1, clusters.mass[k] - mass, clusters.squares[k] - squares
    if not fill_column(work.own, np.int64(0), constants, projection.background, sums, total, square, sizes, overlap):
        return _F(np.nan)
    proposal_scores(
        work.own, documents.signature[j], documents.norm[j], mass, constants.bits, constants.slack, constants.flatness,
        work.own_score, work.own_block,
    )  # fmt: skip
    return work.own_score[0]


@numba.njit(inline="always")
def log_acceptance(log_now, log_new, weight_now, weight_new):
    """Logarithm of the ratio that the acceptance of a move is the smaller of 1 and (eq. 17).

    From the log evidence of the document in both clusters, and the weights of both in its proposal.
    """
    # of a float32 the logarithm would be one, too, and forth and back would not balance
    return log_new - log_now + math.log(np.float64(weight_now)) - math.log(np.float64(weight_new))


@kernel
def choose(documents, clusters, projection, constants, slots, j, old, stream, work):
    """Cluster of document j after ``tries`` Metropolis-Hastings moves from ``old``; changes nothing but ``work``.

    Returns (cluster, how many other clusters were proposed); cluster -1 where scores are not finite.
    """
    mass, n_clusters = documents.mass[j], clusters.n_k.size
    squares, inside = np.int64(0), np.int64(1)  # a literal would be a type of its own, and compile kernels twice
    if constants.component == GAUSSIAN:  # whose proposal needs squares, a sum over all words
        _, squares = words_in(documents, slots, constants, j, old, inside)
    own = _score_without(documents, clusters, projection, constants, slots, j, old, squares, work)
    if math.isnan(own):
        return -1, 0
    weights, blocks = work.weights, work.blocks
    proposal_scores(
        clusters.columns, documents.signature[j], documents.norm[j], mass, constants.bits, constants.slack,
        constants.flatness, weights, blocks,
    )  # fmt: skip
    replace(weights, blocks, old, own)
    weigh(weights, blocks)
    # the cluster to start from and all that are proposed are weighed by one and the same exact likelihood
    now, log_now, is_scored, n_proposed = old, 0.0, False, 0
    for _ in range(constants.tries):
        new = draw(stream, n_clusters, weights, blocks)
        if new == now:
            continue
        if new < 0:
            return -1, n_proposed
        n_proposed += 1
        fetch_cells(documents, slots, constants.n_words, j, new)
        if not is_scored:
            log_now = log_evidence_in(documents, clusters, slots, constants, j, old, inside)
            is_scored = True
        log_new = log_evidence_in(documents, clusters, slots, constants, j, new, int(new == old))
        log_ratio = log_acceptance(log_now, log_new, weights[now], weights[new])
        if not abs(log_ratio) < math.inf:
            return -1, n_proposed
        if log_ratio >= 0.0 or streams.uniform(stream) < math.exp(log_ratio):
            now, log_now = new, log_new
    return now, n_proposed


@kernel
def calibrate(documents, clusters, projection, constants, slots, cluster, step, max_clusters):
    """Slope of the regression of the exact log evidence on the proposal's score.

    Over every ``step``-th document and at most ``max_clusters`` clusters of each, its own among them, both centred for
    each document; ``constants`` must have a flatness of 1.
    """
    work = workspace(clusters)
    n_clusters = clusters.n_k.size
    n = min(max_clusters, n_clusters)
    exact, score = np.empty(n), np.empty(n)
    both = square = 0.0
    for j in range(0, cluster.size, step):
        own = np.int64(cluster[j])
        squares = np.int64(0)
        if constants.component == GAUSSIAN:
            _, squares = words_in(documents, slots, constants, j, own, np.int64(1))
        proposal_scores(
            clusters.columns, documents.signature[j], documents.norm[j], documents.mass[j], constants.bits,
            constants.slack, constants.flatness, work.weights, work.blocks,
        )  # fmt: skip
        work.weights[own] = _score_without(documents, clusters, projection, constants, slots, j, own, squares, work)
        for i in range(n):
            k = (own + i * n_clusters // n) % n_clusters
            exact[i] = log_evidence_in(documents, clusters, slots, constants, j, k, int(k == own))
            score[i] = work.weights[k]
        sum_exact = sum_score = product = squared = 0.0
        for i in range(n):
            sum_exact += exact[i]
            sum_score += score[i]
        for i in range(n):
            from_mean = score[i] - sum_score / n
            product += (exact[i] - sum_exact / n) * from_mean
            squared += from_mean * from_mean
        both += product
        square += squared
    return both / square if square > 0.0 else 0.0


@kernel
def workspace(clusters):
    """Scratch memory for one thread."""
    n_parts, size = clusters.columns.signature.shape
    own = Columns(
        np.zeros((n_parts, BLOCK), np.uint64),
        np.zeros(BLOCK, np.float32),
        np.full(BLOCK, np.float32(NO_CLUSTER)),
        np.zeros(BLOCK, np.float32),
    )
    return Work(
        np.zeros(n_parts * WORD_BITS, np.int32),
        own,
        np.zeros(BLOCK, np.float32),
        np.zeros(1, np.float32),
        np.zeros(size, np.float32),
        np.zeros(size // BLOCK, np.float32),
    )
