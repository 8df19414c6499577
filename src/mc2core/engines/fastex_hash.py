"""FastEx's sweep: propose a cluster from signatures, accept exactly (NIPS12 sections 3 and 4; MODEL section 6).

With theta_kd = ln(1 + n_kd / a), the parameter of word d in cluster k relative to that of a word the cluster lacks,
the log likelihood of a document x is about <x, theta_k> less a scalar of the cluster. The proposal replaces the inner
product by norms and the angle between signatures (eq. 14). The projection decides what is hashed:

* paper: x and theta_k themselves;
* balanced: (x - n_x p) g and (theta_k - c) / g, with p the corpus' word frequencies, c the mean and g**4 the ratio of
  the spread of theta_kd to that of x_d. As sum_d (x_d - n_x p_d) c_d is the same for all clusters, and n_x <p, theta_k>
  is one exact scalar of the cluster, the product that is approximated is the same; its norms are smaller.

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

from mc2core import rng
from mc2core.engines.fastex_table import MAX_LOAD, add_to, count_at
from mc2core.hashing import WORD_BITS, add_signed, popcount, signature_word

MULTINOMIAL, POISSON = 0, 1
#: a cluster's proposal weight is at least exp(-FLOOR) of the largest: no state is ever out of reach
FLOOR = 20.0
#: <p, theta> is kept as a whole number of 2**-50
OVERLAP_UNIT = 2.0**50
_BLOCK = 64
_F = np.float32
_HALF, _ZERO = _F(0.5), _F(0.0)
_S1, _S3, _S5, _S7, _S9 = (
    _F((-1) ** i * math.pi ** (2 * i + 1) / math.factorial(2 * i + 1)) for i in range(5)
)  # sin(pi u) = pi u - (pi u)**3 / 3! + ...
_LOG2_E, _LN2 = _F(1.4426950408889634), _F(0.6931471805599453)
_E2, _E3, _E4, _E5, _E6 = (_F(1.0 / math.factorial(i)) for i in range(2, 7))
_ONE = _F(1.0)
_ROUND = _F(12582912.0)  # 1.5 * 2**23: adding it leaves a float32's nearest integer in its low bits
_EXPONENT_ONE, _MANTISSA = np.int32(127), np.int32(23)
# arithmetic of proposal weights may be reordered: no NaN or infinity comes in or means anything there
_REORDERED = {"nnan", "ninf", "nsz", "reassoc", "contract"}


class Documents(NamedTuple):
    """The corpus as kernels read it, with what is hashed of each document."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    length: np.ndarray  # (J,) int64, tokens
    signature: np.ndarray  # (J, W) uint64
    norm: np.ndarray  # (J,) float32, of the hashed vector


class Clusters(NamedTuple):
    """Statistics of the K clusters and what is cached of their hashed parameters."""

    n_k: np.ndarray  # (K,) int64, documents
    n_tokens: np.ndarray  # (K,) int64
    sums: np.ndarray  # (K, 64 W) int32: coordinates whose bit is set, see mc2core.hashing
    total: np.ndarray  # (K,) int64: all coordinates
    square: np.ndarray  # (K,) int64: squared norm on the grid
    overlap: np.ndarray  # (K,) int64: <p, theta> in units of 1 / OVERLAP_UNIT
    signature: np.ndarray  # (W, K) uint64
    norm: np.ndarray  # (K,) float32
    constant: np.ndarray  # (K,) float32: part of the proposal's score that is the same for all documents
    slope: np.ndarray  # (K,) float32: part for each token of the document


class Projection(NamedTuple):
    """How word parameters become coordinates: (theta - centre) * grid, rounded."""

    centre: np.ndarray  # (V,) float32
    grid: np.ndarray  # (V,) float32: grid points for one unit of theta
    frequency: np.ndarray  # (V,) float64: p_d * OVERLAP_UNIT; zeros for the paper's projection


class Constants(NamedTuple):
    """Scalars and tables of a run; ``log_gamma[n]`` = ln G(n + a), ``theta[n]`` = ln(1 + n / a) for small n."""

    component: int
    n_words: int
    shift: np.uint64
    word_prior: float
    weight_prior: float
    rate_prior: float
    half_length: float
    norm_unit: float
    bits: int
    slack: float
    flatness: float
    log_gamma: np.ndarray
    theta: np.ndarray


# -- the model -----------------------------------------------------------------------------------------------------
@numba.njit(inline="always")
def log_gamma_of(table, word_prior, n):
    """ln G(n + a), from ``table`` where n is in it."""
    return table[n] if n < table.size else math.lgamma(n + word_prior)


@numba.njit(cache=True, nogil=True)
def log_cluster_term(constants, n_documents, n_tokens, length):
    """ln p(y = k) p(x | y = k) but for the factors of single words and what is the same for all clusters.

    Multinomial: NIPS12 eq. 18. Poisson: the negative binomial of every word, with rate prior Gamma(a, rate_prior).
    """
    weight = math.log(n_documents + constants.weight_prior)
    mass = n_tokens + constants.n_words * constants.word_prior
    if constants.component == MULTINOMIAL:
        return weight + math.lgamma(mass) - math.lgamma(mass + length)
    rate = n_documents + constants.rate_prior
    return weight - mass * math.log1p(1.0 / rate) - length * math.log(rate + 1.0)


@numba.njit(cache=True, nogil=True)
def _log_words(documents, slots, constants, j, k):
    """Sum over the document's words of ln G(n_kd + a + x_d) - ln G(n_kd + a)."""
    # arrays of named tuples are bound to names first: each access in a loop would count references, atomically
    words, counts, table, prior = documents.words, documents.counts, constants.log_gamma, constants.word_prior
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    log_p = 0.0
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        n = count_at(slots, shift, first_key + np.uint64(words[cell]))
        log_p += log_gamma_of(table, prior, n + counts[cell]) - log_gamma_of(table, prior, n)
    return log_p


# -- the hashed parameters -----------------------------------------------------------------------------------------
@numba.njit(inline="always")
def theta_of(table, word_prior, n):
    """ln(1 + n / a), float32, from ``table`` where n is in it."""
    return table[n] if n < table.size else _F(math.log1p(n / word_prior))


@numba.njit(inline="always")
def coordinate(theta, centre, grid):
    """Hashed coordinate of a word whose parameter is ``theta``, on the grid, int64."""
    return np.int64((theta - centre) * grid)


@numba.njit(cache=True, nogil=True)
def slope_of(constants, n_documents, n_tokens, overlap):
    """What each token of a document adds to the proposal's score of a cluster, but for the inner product."""
    value = overlap / OVERLAP_UNIT
    if constants.component == MULTINOMIAL:
        # ln G(m) - ln G(m + n_x) = -n_x ln(m + n_x / 2) nearly, so the middle of an average document is added
        return _F(value - math.log(n_tokens + constants.n_words * constants.word_prior + constants.half_length))
    return _F(value - math.log(n_documents + constants.rate_prior + 1.0))


@numba.njit(cache=True, nogil=True)
def constant_of(constants, n_documents, n_tokens):
    """What does not depend on the document in the proposal's score of a cluster."""
    value = math.log(n_documents + constants.weight_prior)
    if constants.component == POISSON:
        mass = n_tokens + constants.n_words * constants.word_prior
        value -= mass * math.log1p(1.0 / (n_documents + constants.rate_prior))
    return _F(value)


@numba.njit(cache=True, nogil=True)
def refresh(clusters, constants, k):
    """Recompute signature, norm and scalars of cluster k from its sums and counts."""
    for part in range(clusters.signature.shape[0]):
        clusters.signature[part, k] = signature_word(clusters.sums[k], clusters.total[k], part, constants.bits)
    clusters.norm[k] = _F(math.sqrt(clusters.square[k]) * constants.norm_unit)
    clusters.constant[k] = constant_of(constants, clusters.n_k[k], clusters.n_tokens[k])
    clusters.slope[k] = slope_of(constants, clusters.n_k[k], clusters.n_tokens[k], clusters.overlap[k])


@numba.njit(cache=True, nogil=True)
def put(documents, clusters, projection, constants, slots, used, j, k, sign):
    """Add document j to cluster k (sign 1) or take it out (-1): table, counts and cached sums."""
    words, counts, table, prior = documents.words, documents.counts, constants.theta, constants.word_prior
    centre, grid, frequency = projection.centre, projection.grid, projection.frequency
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    sums = clusters.sums[k]
    total = square = overlap = np.int64(0)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        word = words[cell]
        change = sign * np.int64(counts[cell])
        n = add_to(slots, shift, first_key + np.uint64(word), change, used)
        theta = theta_of(table, prior, n)
        theta_new = theta_of(table, prior, n + change)
        before = coordinate(theta, centre[word], grid[word])
        after = coordinate(theta_new, centre[word], grid[word])
        total += after - before
        square += after * after - before * before
        overlap += np.int64(frequency[word] * theta_new) - np.int64(frequency[word] * theta)
        if after != before:
            add_signed(sums, word, np.int32(after - before))
    clusters.total[k] += total
    clusters.square[k] += square
    clusters.overlap[k] += overlap
    clusters.n_k[k] += sign
    clusters.n_tokens[k] += sign * documents.length[j]
    refresh(clusters, constants, k)


# -- the proposal --------------------------------------------------------------------------------------------------
@numba.njit(inline="always")
def cosine(t):
    """cos(pi t) for 0 <= t <= 1, float32; error below 4e-6."""
    u = _HALF - t
    v = u * u
    return u * (_S1 + v * (_S3 + v * (_S5 + v * (_S7 + v * _S9))))


@numba.njit(inline="always")
def exponential(x):
    """exp(x) for -80 < x <= 0, float32; relative error below 1e-6."""
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = x - n * _LN2
    p = _ONE + r * (_ONE + r * (_E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * _E6)))))
    return p * np.int32((np.int32(n) + _EXPONENT_ONE) << _MANTISSA).view(np.float32)


@numba.njit(cache=True, nogil=True, fastmath=_REORDERED)
def proposal_scores(clusters, signature, norm, length, inverse_bits, slack, flatness, work_distance, scores):
    """Fill (K,) float32 ``scores`` with flatness * s(x, k): NIPS12 eq. 14, and with slack > 0 its upper bound, eq. 15.

    [slip] the paper prints - ln n_y; a larger cluster is more likely.
    """
    n_clusters = scores.size
    first = clusters.signature[0]
    query = signature[0]
    for k in range(n_clusters):
        work_distance[k] = np.int32(popcount(first[k] ^ query))
    for part in range(1, signature.size):
        more = clusters.signature[part]
        query = signature[part]
        for k in range(n_clusters):
            work_distance[k] += np.int32(popcount(more[k] ^ query))
    norms, constant, slope = clusters.norm, clusters.constant, clusters.slope
    for k in range(n_clusters):
        t = max(_F(work_distance[k]) * inverse_bits - slack, _ZERO)
        scores[k] = flatness * (constant[k] + length * slope[k] + norm * norms[k] * cosine(t))


@numba.njit(cache=True, nogil=True, fastmath=_REORDERED)
def weigh(scores, blocks):
    """Turn scores into weights exp(max(score - largest, -FLOOR)), in place; sums of 64 go to ``blocks``."""
    top = scores[0]
    for k in range(scores.size):
        top = max(top, scores[k])
    floor = _F(-FLOOR)
    for b in range(blocks.size):
        total = _ZERO
        for k in range(b * _BLOCK, min((b + 1) * _BLOCK, scores.size)):
            scores[k] = exponential(max(scores[k] - top, floor))
            total += scores[k]
        blocks[b] = total


@numba.njit(cache=True, nogil=True)
def draw(stream, weights, blocks):
    """Index drawn in proportion to (K,) float32 ``weights`` > 0 with block sums ``blocks``."""
    total = 0.0
    for b in range(blocks.size):
        total += blocks[b]
    u = rng.uniform(stream) * total
    b = 0
    while b < blocks.size - 1 and u >= blocks[b]:
        u -= blocks[b]
        b += 1
    last = min((b + 1) * _BLOCK, weights.size) - 1
    k = b * _BLOCK
    while k < last and u >= weights[k]:
        u -= weights[k]
        k += 1
    return k


@numba.njit(cache=True, nogil=True)
def choose(documents, clusters, projection, constants, slots, j, old, stream, work):
    """Cluster of document j after one Metropolis-Hastings move from ``old``; changes nothing but ``work``.

    Returns (cluster, 1 if another one was proposed).
    """
    sums, signature, distance, weights, blocks = work
    length = documents.length[j]
    # the document leaves its cluster, in scratch
    sums[:] = clusters.sums[old]
    total = clusters.total[old]
    square = clusters.square[old]
    overlap = clusters.overlap[old]
    words, counts, theta_table, log_table = documents.words, documents.counts, constants.theta, constants.log_gamma
    centre, grid, frequency, prior = projection.centre, projection.grid, projection.frequency, constants.word_prior
    shift, first_key = constants.shift, np.uint64(old) * np.uint64(constants.n_words)
    log_old = 0.0
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        word = words[cell]
        with_it = count_at(slots, shift, first_key + np.uint64(word))
        without = with_it - counts[cell]
        log_old += log_gamma_of(log_table, prior, with_it) - log_gamma_of(log_table, prior, without)
        theta = theta_of(theta_table, prior, with_it)
        theta_new = theta_of(theta_table, prior, without)
        before = coordinate(theta, centre[word], grid[word])
        after = coordinate(theta_new, centre[word], grid[word])
        total += after - before
        square += after * after - before * before
        overlap += np.int64(frequency[word] * theta_new) - np.int64(frequency[word] * theta)
        if after != before:
            add_signed(sums, word, np.int32(after - before))
    n_documents = clusters.n_k[old] - 1
    n_tokens = clusters.n_tokens[old] - length

    inverse_bits = _F(1.0 / constants.bits)
    slack = _F(constants.slack)
    flatness = _F(constants.flatness)
    proposal_scores(
        clusters,
        documents.signature[j],
        documents.norm[j],
        _F(length),
        inverse_bits,
        slack,
        flatness,
        distance,
        weights,
    )
    apart = np.int64(0)
    for part in range(signature.size):
        signature[part] = signature_word(sums, total, part, constants.bits)
        apart += popcount(signature[part] ^ documents.signature[j, part])
    t = max(_F(apart) * inverse_bits - slack, _ZERO)
    inner = documents.norm[j] * _F(math.sqrt(square) * constants.norm_unit) * cosine(t)
    linear = constant_of(constants, n_documents, n_tokens)
    linear += _F(length) * slope_of(constants, n_documents, n_tokens, overlap)
    weights[old] = flatness * (linear + inner)
    weigh(weights, blocks)
    new = draw(stream, weights, blocks)
    if new == old:
        return old, 0

    log_old += log_cluster_term(constants, n_documents, n_tokens, length)
    log_new = _log_words(documents, slots, constants, j, new)
    log_new += log_cluster_term(constants, clusters.n_k[new], clusters.n_tokens[new], length)
    log_ratio = log_new - log_old + math.log(weights[old]) - math.log(weights[new])
    if log_ratio >= 0.0 or rng.uniform(stream) < math.exp(log_ratio):
        return new, 1
    return old, 1


@numba.njit(cache=True, nogil=True)
def workspace(clusters):
    """Scratch memory of :func:`choose`, one for each thread."""
    n_parts, n_clusters = clusters.signature.shape
    return (
        np.zeros(n_parts * WORD_BITS, np.int32),
        np.zeros(n_parts, np.uint64),
        np.zeros(n_clusters, np.int32),
        np.zeros(n_clusters, np.float32),
        np.zeros((n_clusters + _BLOCK - 1) // _BLOCK, np.float32),
    )


@numba.njit(cache=True, nogil=True)
def choose_all(key, first, last, documents, clusters, projection, constants, slots, cluster, chosen, moves):
    """Fill ``chosen[first:last]`` with the moves of these documents given the statistics as they are: a sampler."""
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(first, last):
        rng.seek(stream, key, j)
        chosen[j], proposed = choose(documents, clusters, projection, constants, slots, j, cluster[j], stream, work)
        moves[0] += proposed


@numba.njit(cache=True, nogil=True)
def apply_moves(first, last, documents, clusters, projection, constants, slots, used, cluster, chosen, moves):
    """Carry out the moves of documents first..last - 1: the updater; returns where the table must grow, or last."""
    for j in range(first, last):
        old, new = cluster[j], chosen[j]
        if new != old:
            if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
                return j
            moves[1] += 1
            put(documents, clusters, projection, constants, slots, used, j, old, -1)
            put(documents, clusters, projection, constants, slots, used, j, new, 1)
            cluster[j] = new
    return last


@numba.njit(cache=True, nogil=True)
def sweep(key, first, documents, clusters, projection, constants, slots, used, cluster, moves):
    """One move for each document from ``first`` on, in order; returns the document at which the table must grow.

    ``cluster`` (J,) int32 in place; ``moves`` (2,) int64: other clusters proposed, and accepted, are added to it.
    """
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(first, cluster.size):
        if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
            return j
        old = cluster[j]
        rng.seek(stream, key, j)
        new, proposed = choose(documents, clusters, projection, constants, slots, j, old, stream, work)
        moves[0] += proposed
        if new != old:
            moves[1] += 1
            put(documents, clusters, projection, constants, slots, used, j, old, -1)
            put(documents, clusters, projection, constants, slots, used, j, new, 1)
            cluster[j] = new
    return cluster.size
