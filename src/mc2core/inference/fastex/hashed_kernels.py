"""Compiled moves of hashed proposals (:mod:`mc2core.inference.fastex.hashed`): scores, draws, updates and sweeps.

The proposal must not know where the document is now: it is taken out of its cluster's counts, sums, norm and
signature before a cluster is drawn. Then Metropolis-Hastings (NIPS12, eq. 17) with the collapsed likelihood (eq. 18)
leaves the posterior invariant.
"""

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

#: a cluster's proposal weight is at least exp(-MAX_LOG_WEIGHT_RATIO) of the largest: no state is ever out of reach
MAX_LOG_WEIGHT_RATIO = 20.0
_F = np.float32


def padded(n_clusters: int) -> int:
    """Return the number of columns of arrays over ``n_clusters`` clusters, rounded up to whole blocks."""
    return -(-n_clusters // BLOCK) * BLOCK


@inner_kernel
def proposal_scores(columns, signature, norm, mass, bits, slack, inverse_temperature, scores, blocks):
    """Fill (K',) float32 ``scores`` with inverse_temperature * s(x, k): NIPS12 eq. 14, and with slack > 0 its upper
    bound, eq. 15.

    ``columns``: data of clusters; ``signature``, ``norm``, ``mass``: data of the document. The largest score of each
    block goes to ``blocks``. The paper prints - ln n_y, but a larger cluster is more likely, so the sign here is +.
    """
    signatures, norms, constants, slopes = columns.signature, columns.norm, columns.constant, columns.slope
    factors = _F(1.0 / bits), _F(slack), _F(norm), _F(mass), _F(inverse_temperature)
    for b in range(blocks.size):
        blocks[b] = score_block(signatures, signature, norms, constants, slopes, b * BLOCK, factors, scores)


@inner_kernel
def replace(scores, blocks, k, score):
    """Give column k another score; ``blocks`` keeps the largest of each block."""
    scores[k] = score
    first = k // BLOCK * BLOCK
    largest = scores[first]
    for i in range(first + 1, first + BLOCK):
        largest = max(largest, scores[i])
    blocks[k // BLOCK] = largest


@inner_kernel
def weigh(scores, blocks):
    """Turn scores into weights exp(max(score - largest, -MAX_LOG_WEIGHT_RATIO)); ``blocks`` holds the largest of each.

    In place; blocks' sums go to ``blocks``.
    """
    top = _F(NO_CLUSTER)
    for b in range(blocks.size):
        top = max(top, blocks[b])
    for b in range(blocks.size):
        blocks[b] = weigh_block(scores, b * BLOCK, top, _F(-MAX_LOG_WEIGHT_RATIO))


@inner_kernel
def draw(stream, n_clusters, weights, blocks):
    """Draw an index below ``n_clusters`` in proportion to (K',) float32 ``weights`` with block sums ``blocks``.

    The sums have the precision of float32; the last cluster of a block receives the rounding error. Returns -1 if the
    total is not a positive finite number.
    """
    total = 0.0
    for b in range(blocks.size):
        total += blocks[b]
    if not 0.0 < total < np.inf:
        return -1
    b, u = streams.index_at(blocks, 0, blocks.size - 1, streams.uniform(stream) * total)
    k, _ = streams.index_at(weights, b * BLOCK, min((b + 1) * BLOCK, n_clusters) - 1, u)
    return k


# -- what a chain holds ---------------------------------------------------------------------------------------------


@record
class HashedConstants(NamedTuple):
    """Scalars and tables of a run; ``log_gamma[n]`` = ln G(n + a), ``theta[n]`` the parameter of a count, small n."""

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
#: columns hold smaller numbers, so that no sum or product in a score leaves the range of float32
MAX_COLUMN_ENTRY = 1e18


@record
class HashedDocuments(NamedTuple):
    """Cells of the documents, with their hashed data."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64, tokens; Gaussian: squared length
    signature: np.ndarray  # (J, W) uint64
    norm: np.ndarray  # (J,) float32, of the hashed vector


class Columns(NamedTuple):
    """Data of clusters that proposals read, one column per cluster, in whole blocks. An unused column has the constant
    NO_CLUSTER."""

    signature: np.ndarray  # (W, K') uint64
    norm: np.ndarray  # (K',) float32: of the hashed parameter, times its factor
    constant: np.ndarray  # (K',) float32: part of the proposal's score that is the same for all documents
    slope: np.ndarray  # (K',) float32: part for each unit of the document's mass


@record
class HashedClusters(NamedTuple):
    """Statistics of the K clusters and cached values of their hashed parameters."""

    n_k: np.ndarray  # (K,) int64, documents
    mass: np.ndarray  # (K,) int64: of its documents
    squares: np.ndarray  # (K,) int64: sum over words of n_kd**2
    sums: np.ndarray  # (K, 64 W) int32: coordinates whose bit is set, see mc2core.compute.signatures
    total: np.ndarray  # (K,) int64: all coordinates
    square: np.ndarray  # (K,) int64: squared norm on the grid
    overlap: np.ndarray  # (K,) int64: <p, theta> over the words hashed, in units of 1 / OVERLAP_UNIT
    columns: Columns


@record
class Projection(NamedTuple):
    """Projection of word parameters to integer coordinates: (theta - centre) * grid, rounded."""

    centre: np.ndarray  # (V,) float32
    grid: np.ndarray  # (V,) float32: grid points for one unit of theta; 0 for words that are left out
    frequency: np.ndarray  # (V,) float64: p_d * OVERLAP_UNIT; zeros for the paper's projection
    background: np.ndarray  # float64: <p, theta> to expect of the words left out, see linear_terms
    signs: np.ndarray  # (V, W) uint64: the words' random vectors


class MoveScratch(NamedTuple):
    """Work arrays of :func:`choose` for one thread."""

    sums: np.ndarray  # (64 W,) int32
    left: Columns  # a block for the cluster that the document leaves
    left_score: np.ndarray  # (BLOCK,) float32
    left_block: np.ndarray  # (1,) float32
    weights: np.ndarray  # (K',) float32
    blocks: np.ndarray  # (blocks,) float32


# -- a cluster's hashed parameters ----------------------------------------------------------------------------------
@numba.njit(inline="always")
def coordinate(theta, centre, grid):
    """Return the hashed coordinate of a word with parameter ``theta``, int64."""
    return np.int64((theta - centre) * grid)


@numba.njit(inline="always")
def recount(projection, constants, sums, word, before, after):
    """Bring ``sums`` from a word's count ``before`` to ``after``; returns by how much total, square and overlap change.

    The word is one that is hashed: its grid is not 0.
    """
    grid, centre, frequency = projection.grid[word], projection.centre[word], projection.frequency[word]
    theta = theta_of(constants.component, constants.theta, constants.topic_word_prior, before)
    theta_new = theta_of(constants.component, constants.theta, constants.topic_word_prior, after)
    old, new = coordinate(theta, centre, grid), coordinate(theta_new, centre, grid)
    add_signed(sums, projection.signs, word, np.int32(new - old))
    return new - old, new * new - old * old, np.int64(frequency * theta_new) - np.int64(frequency * theta)


@inner_kernel
def fill_column(columns, k, constants, background, sums, total, square, sizes, overlap):
    """Compute column k from the sums of a cluster and its ``sizes`` (documents, mass, squares); returns whether its
    numbers are finite."""
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
    """Recompute the column of cluster k; returns whether its numbers are finite."""
    return fill_column(
        clusters.columns, k, constants, projection.background, clusters.sums[k], clusters.total[k], clusters.square[k],
        (clusters.n_k[k], clusters.mass[k], clusters.squares[k]), clusters.overlap[k],
    )  # fmt: skip


@inner_kernel
def add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign):
    """Add document j to cluster k (sign 1) or take it out (-1): table, counts and cached sums.

    Returns what :func:`refresh_column` does.
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
    """Take document j out of its cluster and put it into ``new``; whether the columns of both can be used."""
    is_usable = True
    for k, sign in ((np.int64(cluster[j]), -1), (new, 1)):
        is_usable &= add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign)
    cluster[j] = new
    return is_usable


# -- a move ---------------------------------------------------------------------------------------------------------
@inner_kernel
def _score_without(documents, clusters, projection, constants, slots, j, k, squares, work):
    """Return the proposal's score (:func:`proposal_scores`) of cluster k without document j, computed in work arrays.

    Returns NaN if the column is not finite without the document.
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
    """Return the log of the ratio in the acceptance probability min(1, ratio) of a move (eq. 17).

    The ratio follows from the log evidence of the document in both clusters, and the weights of both in the proposal.
    """
    # of a float32 the logarithm would be one, too, and forth and back would not balance
    return log_new - log_now + math.log(np.float64(weight_now)) - math.log(np.float64(weight_new))


@inner_kernel
def choose(documents, clusters, projection, constants, slots, j, old, stream, work):
    """Cluster of document j after ``n_proposals`` Metropolis-Hastings moves from ``old``; changes nothing but ``work``.

    Returns (cluster, how many other clusters were proposed); the cluster is -1 if scores are not finite.
    """
    mass, n_clusters = documents.mass[j], clusters.n_k.size
    squares, inside = np.int64(0), np.int64(1)  # a literal would be a type of its own, and compile kernels twice
    if constants.component == GAUSSIAN:  # whose proposal needs squares, a sum over all words
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
    # the cluster to start from and all that are proposed are weighed by one and the same exact likelihood
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
    """Return the slope of the regression of the exact log evidence on the proposal's score.

    The regression uses every ``step``-th document, with at most ``max_clusters`` clusters per document, including its
    own. Both values are centred per document. ``constants`` must have an inverse_temperature of 1.
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


# -- passes over the table of counts and over all documents, to set up and to project a state -----------------------

#: moments of parameters are summed as whole numbers of this unit's reciprocal
MOMENT_UNIT = 2.0**20


@kernel
def add_moments(slots, constants, factor, first, second):
    """Add factor * theta_kd and its square over clusters to (V,) int64 sums, in units of 1 / MOMENT_UNIT."""
    component, table, prior = constants.component, constants.theta, constants.topic_word_prior
    for slot in slots:
        if slot:
            k, word, n = cell_of(slot, constants.shift, constants.n_words)
            theta = factor[k] * np.float64(theta_of(component, table, prior, n))
            first[word] += np.int64(theta * MOMENT_UNIT)
            second[word] += np.int64(theta * theta * MOMENT_UNIT)


@kernel
def add_agreement(documents, slots, constants, factor, cluster, agreement):
    """Add x_jd theta_kd, k the document's cluster without the document, to (V,) float64 ``agreement``."""
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
    """Write the sums of a cluster without words; returns (total, square)."""
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
    """Add every cell of the table to the sums of its cluster, which start as the sums of an empty cluster."""
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
    """Add every cell's squared count to its cluster's (K,) int64 ``squares``."""
    for slot in slots:
        if slot:
            k, _, n = cell_of(slot, constants.shift, constants.n_words)
            squares[k] += n * n


@kernel
def fill_factors(constants, background, clusters, factor):
    """Fill (K,) float64 ``factor`` with the third of every cluster's linear terms."""
    for k in range(factor.size):
        sizes = clusters.n_k[k], clusters.mass[k], clusters.squares[k]
        factor[k] = linear_terms(constants, background, *sizes, 0)[2]


@kernel
def project_documents(documents, signs, scale, unit, frequency, bits):
    """Compute signatures and norms of x - mass_j p, times ``scale``; ``frequency`` (V,) float64 is p, or zeros."""
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
    """All that sweeps read and change, except assignments and the table of counts, which is replaced as it grows."""

    documents: HashedDocuments
    clusters: HashedClusters
    projection: Projection
    constants: HashedConstants


@kernel
def propose_all(key, documents, clusters, constants, proposed):
    """Fill (J,) int32 ``proposed`` with a draw from each document's proposal, given the current clusters.

    The document stays in its cluster.
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
    """Fill ``chosen[first:last]`` with the moves of these documents given the current statistics, as a sampler of
    NIPS12.

    Returns ``last``, or -1 - j if document j has scores that are not finite.
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
    """Apply the moves of documents first..last - 1, as the updater of NIPS12; returns as :func:`sweep`."""
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
    """Make one move per document, from document ``first`` on, in order.

    Returns the number of documents, the document at which the table must grow, or -1 - j if document j, or a cluster
    that it leaves or joins, has scores that are not finite. ``cluster`` (J,) int32 in place; ``moves`` (2,) int64:
    other clusters proposed, and accepted, are added to it.
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
