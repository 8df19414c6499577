"""Kernels of hashed proposals: scores, draws, updates and sweeps (see :mod:`mc2core.inference.fastex.hashed`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.signatures import add_signed, signature_word
from mc2core.compute.simd import BLOCK, NO_CLUSTER, WORD_BITS, score_block, weigh_block
from mc2core.inference.fastex.components import (
    GAUSSIAN,
    linear_terms,
    theta_of,
)
from mc2core.inference.fastex.sparse_counts import (
    MAX_LOAD,
    add_to,
    cell_of,
    count_at,
    fetch_cells,
    log_evidence_in,
    words_in,
)

# -- scores of all clusters, weights, and a draw (NIPS12 eq. 14 and 15) ---------------------------------------------

#: proposal weights are at least exp(-MAX_LOG_WEIGHT_RATIO) times the largest weight, so that all clusters are reachable
MAX_LOG_WEIGHT_RATIO = 20.0
_F = np.float32


def padded(n_clusters: int) -> int:
    """Return the number of columns of arrays over clusters: ``n_clusters`` rounded up to a multiple of BLOCK."""
    return -(-n_clusters // BLOCK) * BLOCK


@inner_kernel
def proposal_scores(columns, signature, norm, mass, bits, slack, inverse_temperature, scores, blocks):
    """Fill ``scores``, (K',) float32, with inverse_temperature * s(x, k) for all clusters k (NIPS12, eq. 14).

    With slack > 0, the upper bound of eq. 15 is computed instead. ``columns`` contains data of clusters; ``signature``,
    ``norm`` and ``mass`` are data of the document. The largest score of each block is written to ``blocks``. The paper
    prints - ln n_y. Here the sign is +, because a larger cluster is more likely.
    """
    signatures, norms, constants, slopes = columns.signature, columns.norm, columns.constant, columns.slope
    factors = _F(1.0 / bits), _F(slack), _F(norm), _F(mass), _F(inverse_temperature)
    for b in range(blocks.size):
        blocks[b] = score_block(signatures, signature, norms, constants, slopes, b * BLOCK, factors, scores)


@inner_kernel
def replace(scores, blocks, k, score):
    """Replace the score of column k, and update the largest score of its block in ``blocks``."""
    scores[k] = score
    first = k // BLOCK * BLOCK
    largest = scores[first]
    for i in range(first + 1, first + BLOCK):
        largest = max(largest, scores[i])
    blocks[k // BLOCK] = largest


@inner_kernel
def weigh(scores, blocks):
    """Convert scores to weights exp(max(score - largest, -MAX_LOG_WEIGHT_RATIO)), in place.

    ``blocks`` contains the largest score of each block. It is overwritten with the sum of weights of each block.
    """
    top = _F(NO_CLUSTER)
    for b in range(blocks.size):
        top = max(top, blocks[b])
    for b in range(blocks.size):
        blocks[b] = weigh_block(scores, b * BLOCK, top, _F(-MAX_LOG_WEIGHT_RATIO))


@inner_kernel
def draw(stream, n_clusters, weights, blocks):
    """Draw an index below ``n_clusters`` with probability proportional to ``weights``, (K',) float32.

    ``blocks`` contains the sums of weights of blocks in float32. Their rounding error is added to the probability of
    the last cluster of each block. Returns -1 if the total is not a positive finite number.
    """
    total = 0.0
    for b in range(blocks.size):
        total += blocks[b]
    if not 0.0 < total < np.inf:
        return -1
    b, u = streams.index_at(blocks, 0, blocks.size - 1, streams.uniform(stream) * total)
    k, _ = streams.index_at(weights, b * BLOCK, min((b + 1) * BLOCK, n_clusters) - 1, u)
    return k


# -- arguments of kernels -------------------------------------------------------------------------------------------


@record
class HashedConstants(NamedTuple):
    """Settings and priors of a run; ``log_gamma[n]`` = ln G(n + a) and ``theta[n]`` are tables for small counts n."""

    component: int
    n_words: int
    shift: np.uint64
    topic_word_prior: float
    weight_prior: float
    rate_prior: float
    half_length: float
    norm_unit: float
    bits: int
    slack: float
    inverse_temperature: float
    n_proposals: int
    log_gamma: np.ndarray
    theta: np.ndarray


_ZERO = _F(0.0)
#: upper limit of numbers in columns, so that no sum or product in a score exceeds the range of float32
MAX_COLUMN_ENTRY = 1e18


@record
class HashedDocuments(NamedTuple):
    """Word counts of the documents in CSR order, with signatures and norms of the hashed vectors."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64: number of tokens; Gaussian: squared length
    signature: np.ndarray  # (J, W) uint64: bit signature of the hashed vector
    norm: np.ndarray  # (J,) float32: norm of the hashed vector


class Columns(NamedTuple):
    """Data of clusters from which proposal scores are computed, one column per cluster.

    Columns beyond the number of clusters have the constant NO_CLUSTER.
    """

    signature: np.ndarray  # (W, K') uint64: bit signature of the hashed parameters
    norm: np.ndarray  # (K',) float32: norm of the hashed parameters, times their factor in the score
    constant: np.ndarray  # (K',) float32: part of the score that is equal for all documents
    slope: np.ndarray  # (K',) float32: part of the score per unit of the document's mass


@record
class HashedClusters(NamedTuple):
    """Statistics of the K clusters and cached values of their hashed parameters."""

    n_k: np.ndarray  # (K,) int64: number of documents
    mass: np.ndarray  # (K,) int64: total mass of the documents
    squares: np.ndarray  # (K,) int64: sum over words of n_kd**2
    sums: np.ndarray  # (K, 64 W) int32: sum of coordinates of words whose bit is set, see mc2core.compute.signatures
    total: np.ndarray  # (K,) int64: sum of coordinates of all words
    square: np.ndarray  # (K,) int64: squared norm of the coordinates
    overlap: np.ndarray  # (K,) int64: <p, theta> over the hashed words, in units of 1 / OVERLAP_UNIT
    columns: Columns


@record
class Projection(NamedTuple):
    """Projection of word parameters to integer coordinates: (theta - centre) * grid, rounded."""

    centre: np.ndarray  # (V,) float32
    grid: np.ndarray  # (V,) float32: number of grid points per unit of theta; 0 for words that are not hashed
    frequency: np.ndarray  # (V,) float64: p_d * OVERLAP_UNIT; zeros for the projection of the paper
    background: np.ndarray  # float64: expected <p, theta> over the words that are not hashed, see linear_terms
    signs: np.ndarray  # (V, W) uint64: random signs of each word, one bit per bit of the signature


class MoveScratch(NamedTuple):
    """Work arrays of :func:`choose` for one thread."""

    sums: np.ndarray  # (64 W,) int32: sums of the current cluster without the document
    left: Columns  # one block, whose first column is the current cluster without the document
    left_score: np.ndarray  # (BLOCK,) float32: scores of ``left``
    left_block: np.ndarray  # (1,) float32: largest score of ``left``
    weights: np.ndarray  # (K',) float32: proposal scores, then weights
    blocks: np.ndarray  # (blocks,) float32: largest score, then sum of weights, of each block


# -- hashed parameters of a cluster ---------------------------------------------------------------------------------
@numba.njit(inline="always")
def coordinate(theta, centre, grid):
    """Return the integer coordinate of a word with parameter ``theta``, int64."""
    return np.int64((theta - centre) * grid)


@numba.njit(inline="always")
def recount(projection, constants, sums, word, before, after):
    """Update ``sums`` in place for a change of a word's count from ``before`` to ``after``.

    Returns the changes of total, square and overlap. The word must be hashed, that is, its grid must not be 0.
    """
    grid, centre, frequency = projection.grid[word], projection.centre[word], projection.frequency[word]
    theta = theta_of(constants.component, constants.theta, constants.topic_word_prior, before)
    theta_new = theta_of(constants.component, constants.theta, constants.topic_word_prior, after)
    old, new = coordinate(theta, centre, grid), coordinate(theta_new, centre, grid)
    add_signed(sums, projection.signs, word, np.int32(new - old))
    return new - old, new * new - old * old, np.int64(frequency * theta_new) - np.int64(frequency * theta)


@inner_kernel
def fill_column(columns, k, constants, background, sums, total, square, sizes, overlap):
    """Compute column k from the sums of a cluster and its ``sizes`` (documents, mass, squares).

    Returns whether all numbers of the column are below MAX_COLUMN_ENTRY.
    """
    for part in range(columns.signature.shape[0]):
        columns.signature[part, k] = signature_word(sums, total, part, constants.bits)
    constant, slope, factor = linear_terms(constants, background, sizes[0], sizes[1], sizes[2], overlap)
    norm = factor * _F(math.sqrt(square) * constants.norm_unit)
    columns.norm[k] = norm
    columns.constant[k] = constant
    columns.slope[k] = slope
    return abs(norm) < MAX_COLUMN_ENTRY and abs(constant) < MAX_COLUMN_ENTRY and abs(slope) < MAX_COLUMN_ENTRY


@inner_kernel
def refresh_column(clusters, projection, constants, k):
    """Recompute the column of cluster k, and return whether all its numbers are below MAX_COLUMN_ENTRY."""
    return fill_column(
        clusters.columns, k, constants, projection.background, clusters.sums[k], clusters.total[k], clusters.square[k],
        (clusters.n_k[k], clusters.mass[k], clusters.squares[k]), clusters.overlap[k],
    )  # fmt: skip


@inner_kernel
def add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign):
    """Add document j to cluster k (sign 1) or remove it (-1): update the table of counts, sizes, sums and the column.

    Returns the result of :func:`refresh_column`.
    """
    words, counts, sums = documents.words, documents.counts, clusters.sums[k]
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    total = square = overlap = squares = np.int64(0)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        word = np.int64(words[cell])
        change = sign * np.int64(counts[cell])
        n = add_to(slots, shift, first_key + np.uint64(word), change, used)
        squares += change * (2 * n + change)
        if projection.grid[word] > _ZERO:
            changes = recount(projection, constants, sums, word, n, n + change)
            total, square, overlap = total + changes[0], square + changes[1], overlap + changes[2]
    clusters.total[k] += total
    clusters.square[k] += square
    clusters.overlap[k] += overlap
    clusters.n_k[k] += sign
    clusters.mass[k] += sign * documents.mass[j]
    clusters.squares[k] += squares
    return refresh_column(clusters, projection, constants, k)


@inner_kernel
def move(documents, clusters, projection, constants, slots, used, cluster, j, new):
    """Move document j from its cluster to ``new``; return whether the columns of both clusters are valid."""
    is_usable = True
    for k, sign in ((np.int64(cluster[j]), -1), (new, 1)):
        is_usable &= add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign)
    cluster[j] = new
    return is_usable


# -- the move of a document -----------------------------------------------------------------------------------------
@inner_kernel
def _score_without(documents, clusters, projection, constants, slots, j, k, squares, work):
    """Return the proposal score (:func:`proposal_scores`) of cluster k for document j, with the document removed.

    Returns NaN if the column of the cluster without the document is not valid.
    """
    words, counts, sums = documents.words, documents.counts, work.sums
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    for b in range(sums.size):
        sums[b] = clusters.sums[k, b]
    total, square, overlap = clusters.total[k], clusters.square[k], clusters.overlap[k]
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        word = np.int64(words[cell])
        if projection.grid[word] > _ZERO:
            n = count_at(slots, shift, first_key + np.uint64(word))
            changes = recount(projection, constants, sums, word, n, n - np.int64(counts[cell]))
            total, square, overlap = total + changes[0], square + changes[1], overlap + changes[2]
    mass = documents.mass[j]
    sizes = clusters.n_k[k] - 1, clusters.mass[k] - mass, clusters.squares[k] - squares
    if not fill_column(work.left, np.int64(0), constants, projection.background, sums, total, square, sizes, overlap):
        return _F(np.nan)
    proposal_scores(
        work.left, documents.signature[j], documents.norm[j], mass, constants.bits, constants.slack,
        constants.inverse_temperature,
        work.left_score, work.left_block,
    )  # fmt: skip
    return work.left_score[0]


@numba.njit(inline="always")
def log_acceptance(log_now, log_new, weight_now, weight_new):
    """Return the log Metropolis-Hastings ratio of a move between two clusters (NIPS12, eq. 17).

    The arguments are the log evidence of the document in both clusters, and the proposal weights of both clusters.
    """
    # logarithms in float32 would be too inaccurate for detailed balance
    return log_new - log_now + math.log(np.float64(weight_now)) - math.log(np.float64(weight_new))


@inner_kernel
def choose(documents, clusters, projection, constants, slots, j, old, stream, work):
    """Return the cluster of document j after ``n_proposals`` Metropolis-Hastings steps from ``old``.

    Only ``work`` changes. Returns the cluster, or -1 if scores are not finite, and the number of proposals of another
    cluster.
    """
    mass, n_clusters = documents.mass[j], clusters.n_k.size
    squares, inside = np.int64(0), np.int64(1)  # literals have another type, for which kernels would be compiled again
    if constants.component == GAUSSIAN:  # only the Gaussian proposal needs squares
        _, squares = words_in(documents, slots, constants, j, old, inside)
    score_old = _score_without(documents, clusters, projection, constants, slots, j, old, squares, work)
    if math.isnan(score_old):
        return -1, 0
    weights, blocks = work.weights, work.blocks
    proposal_scores(
        clusters.columns, documents.signature[j], documents.norm[j], mass, constants.bits, constants.slack,
        constants.inverse_temperature, weights, blocks,
    )  # fmt: skip
    replace(weights, blocks, old, score_old)
    weigh(weights, blocks)
    # acceptance uses the exact likelihood for the current cluster and for all proposed clusters
    now, log_now, is_scored, n_proposed = old, 0.0, False, 0
    for _ in range(constants.n_proposals):
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
    """Return the slope of the regression of the exact log evidence on the proposal score.

    The regression uses every ``step``-th document, with at most ``max_clusters`` clusters per document, including its
    current cluster. Evidence and score are centred per document. ``constants`` must have an inverse_temperature of 1.
    """
    work = workspace(clusters)
    n_clusters = clusters.n_k.size
    n = min(max_clusters, n_clusters)
    exact, score = np.empty(n), np.empty(n)
    both = square = 0.0
    for j in range(0, cluster.size, step):
        current = np.int64(cluster[j])
        squares = np.int64(0)
        if constants.component == GAUSSIAN:
            _, squares = words_in(documents, slots, constants, j, current, np.int64(1))
        proposal_scores(
            clusters.columns, documents.signature[j], documents.norm[j], documents.mass[j], constants.bits,
            constants.slack, constants.inverse_temperature, work.weights, work.blocks,
        )  # fmt: skip
        work.weights[current] = _score_without(
            documents, clusters, projection, constants, slots, j, current, squares, work
        )
        for i in range(n):
            k = (current + i * n_clusters // n) % n_clusters
            exact[i] = log_evidence_in(documents, clusters, slots, constants, j, k, int(k == current))
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


@inner_kernel
def workspace(clusters):
    """Allocate work arrays for one thread."""
    n_parts, size = clusters.columns.signature.shape
    left = Columns(
        np.zeros((n_parts, BLOCK), np.uint64),
        np.zeros(BLOCK, np.float32),
        np.full(BLOCK, np.float32(NO_CLUSTER)),
        np.zeros(BLOCK, np.float32),
    )
    return MoveScratch(
        np.zeros(n_parts * WORD_BITS, np.int32),
        left,
        np.zeros(BLOCK, np.float32),
        np.zeros(1, np.float32),
        np.zeros(size, np.float32),
        np.zeros(size // BLOCK, np.float32),
    )


# -- passes over the table of counts and over all documents, which initialise and project a state -------------------

#: moments of parameters are summed as integers, in units of 1 / MOMENT_UNIT
MOMENT_UNIT = 2.0**20


@kernel
def add_moments(slots, constants, factor, first, second):
    """Add the sums over clusters of factor * theta_kd and of its square to ``first`` and ``second``, (V,) int64.

    The sums are in units of 1 / MOMENT_UNIT.
    """
    component, table, prior = constants.component, constants.theta, constants.topic_word_prior
    for slot in slots:
        if slot:
            k, word, n = cell_of(slot, constants.shift, constants.n_words)
            theta = factor[k] * np.float64(theta_of(component, table, prior, n))
            first[word] += np.int64(theta * MOMENT_UNIT)
            second[word] += np.int64(theta * theta * MOMENT_UNIT)


@kernel
def add_agreement(documents, slots, constants, factor, cluster, agreement):
    """Add x_jd factor_k theta_kd of all documents j to ``agreement``, (V,) float64.

    Here k is the cluster of document j, and theta_kd is computed without the document.
    """
    words, counts, table, prior = documents.words, documents.counts, constants.theta, constants.topic_word_prior
    component, shift, indptr = constants.component, constants.shift, documents.indptr
    for j in range(cluster.size):
        first_key = np.uint64(cluster[j]) * np.uint64(constants.n_words)
        for cell in range(indptr[j], indptr[j + 1]):
            n = count_at(slots, shift, first_key + np.uint64(words[cell])) - counts[cell]
            theta = factor[cluster[j]] * np.float64(theta_of(component, table, prior, n))
            agreement[words[cell]] += counts[cell] * theta


@kernel
def project_empty(projection, sums):
    """Write the sums of coordinates of a cluster without words to ``sums``, and return (total, square)."""
    total = 0
    square = 0
    centre, grid = projection.centre, projection.grid
    for word in range(centre.size):
        value = coordinate(np.float32(0.0), centre[word], grid[word])
        if value:
            total += value
            square += value * value
            add_signed(sums, projection.signs, word, np.int32(value))
    return total, square


@kernel
def project_cells(slots, constants, projection, clusters):
    """Add all counts of the table to the sums of their clusters, which must be initialised as empty clusters."""
    for slot in slots:
        if slot:
            k, word, n = cell_of(slot, constants.shift, constants.n_words)
            if projection.grid[word] > _ZERO:
                changes = recount(projection, constants, clusters.sums[k], word, np.int64(0), n)
                clusters.total[k] += changes[0]
                clusters.square[k] += changes[1]
                clusters.overlap[k] += changes[2]
    for k in range(clusters.n_k.size):
        refresh_column(clusters, projection, constants, k)


@kernel
def add_squares(slots, constants, squares):
    """Add the squares of all counts of the table to ``squares`` of their clusters, (K,) int64."""
    for slot in slots:
        if slot:
            k, _, n = cell_of(slot, constants.shift, constants.n_words)
            squares[k] += n * n


@kernel
def fill_factors(constants, background, clusters, factor):
    """Fill ``factor``, (K,) float64, with the third result of :func:`linear_terms` for each cluster."""
    for k in range(factor.size):
        sizes = clusters.n_k[k], clusters.mass[k], clusters.squares[k]
        factor[k] = linear_terms(constants, background, *sizes, 0)[2]


@kernel
def project_documents(documents, signs, scale, unit, frequency, bits):
    """Compute the signatures and norms of the vectors (x_j - mass_j p) * scale of all documents.

    ``frequency`` (V,) float64 is p, or zeros.
    """
    words, counts, signature = documents.words, documents.counts, documents.signature
    n_bits = signature.shape[1] * WORD_BITS
    mean = np.zeros(n_bits)  # <sign, p scale>
    mean_square = 0.0
    sums = np.zeros(n_bits, np.int32)
    for word in range(scale.size):
        if frequency[word] > 0.0 and scale[word] > 0.0:
            for b in range(n_bits):
                sums[b] = 0
            add_signed(sums, signs, word, np.int32(1))
            value = frequency[word] * scale[word]
            mean_square += value * value
            for b in range(bits):
                mean[b] += (2 * sums[b] - 1) * value
    for j in range(documents.mass.size):
        mass = documents.mass[j]
        for b in range(n_bits):
            sums[b] = 0
        total = np.int64(0)
        square = mass * mass * mean_square
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            d = np.int64(words[cell])
            value = np.int32(counts[cell] * scale[d] * unit)
            total += value
            add_signed(sums, signs, d, value)
            hashed = counts[cell] * np.float64(scale[d])
            square += hashed * (hashed - 2.0 * mass * frequency[d] * scale[d])
        documents.norm[j] = math.sqrt(max(square, 0.0))
        for part in range(signature.shape[1]):
            signature[j, part] = 0
        for b in range(bits):
            if 2 * np.int64(sums[b]) - total > mass * mean[b] * unit:
                signature[j, b // WORD_BITS] |= np.uint64(1) << np.uint64(b % WORD_BITS)


# -- sweeps: in order, or by samplers and an updater (NIPS12 section 5) ---------------------------------------------


class HashedChain(NamedTuple):
    """Arguments of the sweep kernels, except the assignments and the table of counts, which is replaced as it grows."""

    documents: HashedDocuments
    clusters: HashedClusters
    projection: Projection
    constants: HashedConstants


@kernel
def propose_all(key, documents, clusters, constants, proposed):
    """Draw a cluster from the proposal distribution of each document, into ``proposed``, (J,) int32.

    Documents are not removed from their clusters.
    """
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(proposed.size):
        streams.seek(stream, key, j)
        proposal_scores(
            clusters.columns, documents.signature[j], documents.norm[j], documents.mass[j], constants.bits,
            constants.slack, constants.inverse_temperature, work.weights, work.blocks,
        )  # fmt: skip
        weigh(work.weights, work.blocks)
        proposed[j] = draw(stream, clusters.n_k.size, work.weights, work.blocks)


@kernel
def choose_all(key, first, last, chain, slots, cluster, chosen, moves):
    """Choose clusters for documents first..last-1, given the current statistics (a sampler of NIPS12, section 5).

    Writes the clusters to ``chosen``. Returns ``last``, or -1 - j if document j has scores that are not finite.
    """
    documents, clusters, projection, constants = chain
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(first, last):
        if j + 1 < last:
            fetch_cells(documents, slots, constants.n_words, j + 1, np.int64(cluster[j + 1]))
        streams.seek(stream, key, j)
        chosen[j], proposed = choose(
            documents, clusters, projection, constants, slots, j, np.int64(cluster[j]), stream, work
        )
        moves[0] += proposed
        if chosen[j] < 0:
            return -1 - j
    return last


@kernel
def apply_moves(first, last, chain, slots, used, cluster, chosen, moves):
    """Move documents first..last-1 to their ``chosen`` clusters (the updater of NIPS12, section 5).

    Returns ``last``, or the document at which the table must grow, or -1 - j (see :func:`sweep`).
    """
    documents, clusters, projection, constants = chain
    for j in range(first, last):
        new = np.int64(chosen[j])
        if new != cluster[j]:
            if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
                return j
            moves[1] += 1
            if not move(documents, clusters, projection, constants, slots, used, cluster, j, new):
                return -1 - j
    return last


@inner_kernel
def sweep(key, first, chain, slots, used, cluster, moves):
    """Move the documents from document ``first`` on, in order and in place.

    Returns the number of documents, or the document at which the table must grow. If scores of document j or of its old
    or new cluster are not finite, returns -1 - j. The number of proposals of another cluster and of moved documents are
    added to ``moves`` (2,) int64.
    """
    documents, clusters, projection, constants = chain
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(first, cluster.size):
        if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
            return j
        if j + 1 < cluster.size:
            fetch_cells(documents, slots, constants.n_words, j + 1, np.int64(cluster[j + 1]))
        old = np.int64(cluster[j])
        streams.seek(stream, key, j)
        new, proposed = choose(documents, clusters, projection, constants, slots, j, old, stream, work)
        moves[0] += proposed
        if new < 0:
            return -1 - j
        if new != old:
            moves[1] += 1
            if not move(documents, clusters, projection, constants, slots, used, cluster, j, new):
                return -1 - j
    return cluster.size
