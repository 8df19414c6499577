"""Passes over a FastEx chain's table of counts and over its documents, from which its state is set up and projected."""

from __future__ import annotations

import math

import numba
import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.signatures import WORD_BITS, add_signed
from mc2core.inference.fastex.components import GAUSSIAN, linear_terms, log_gamma_of, theta_of
from mc2core.inference.fastex.hashed.moves import coordinate, refresh_column
from mc2core.inference.fastex.sparse_counts import MAX_LOAD, add_to, count_at

#: moments of parameters, and log-gammas of counts, are summed as whole numbers of these units' reciprocals
MOMENT_UNIT = 2.0**20
JOINT_UNIT = 2.0**20


@kernel
def count_documents(documents, shift, n_words, slots, used, cluster, first):
    """Add documents first, first + 1, ... to the counts of their clusters; returns the first that has no room."""
    for j in range(first, cluster.size):
        if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
            return j
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            key = np.uint64(cluster[j]) * np.uint64(n_words) + np.uint64(documents.words[cell])
            add_to(slots, shift, key, np.int64(documents.counts[cell]), used)
    return cluster.size


@numba.njit(inline="always")
def _cell(slot, shift, n_words):
    """(cluster, word, count) of a slot in use."""
    key = slot >> shift
    n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
    k = key // np.uint64(n_words)
    return np.int64(k), np.int64(key - k * np.uint64(n_words)), n


@kernel
def add_moments(slots, constants, factor, first, second):
    """Sums over clusters of factor * theta_kd and its square, (V,) int64 each, in units of 1 / MOMENT_UNIT."""
    component, table, prior = constants.component, constants.theta, constants.word_prior
    for slot in slots:
        if slot:
            k, word, n = _cell(slot, constants.shift, constants.n_words)
            theta = factor[k] * np.float64(theta_of(component, table, prior, n))
            first[word] += np.int64(theta * MOMENT_UNIT)
            second[word] += np.int64(theta * theta * MOMENT_UNIT)


@kernel
def add_agreement(documents, slots, constants, factor, cluster, agreement):
    """Add x_jd theta_kd, k the document's cluster without the document, to (V,) float64 ``agreement``."""
    words, counts, table, prior = documents.words, documents.counts, constants.theta, constants.word_prior
    component, shift, indptr = constants.component, constants.shift, documents.indptr
    for j in range(cluster.size):
        first_key = np.uint64(cluster[j]) * np.uint64(constants.n_words)
        for cell in range(indptr[j], indptr[j + 1]):
            n = count_at(slots, shift, first_key + np.uint64(words[cell])) - counts[cell]
            theta = factor[cluster[j]] * np.float64(theta_of(component, table, prior, n))
            agreement[words[cell]] += counts[cell] * theta


@kernel
def project_empty(projection, sums):
    """Sums of a cluster without words; returns (total, square)."""
    total = 0
    square = 0
    centre, grid = projection.centre, projection.grid
    for word in range(centre.size):
        value = coordinate(np.float32(0.0), centre[word], grid[word])
        if value:
            total += value
            square += value * value
            add_signed(sums, word, np.int32(value))
    return total, square


@kernel
def project_cells(slots, constants, projection, clusters):
    """Add every cell of the table to its cluster's sums, which start as those of an empty cluster."""
    centre, grid, frequency = projection.centre, projection.grid, projection.frequency
    component, table, prior = constants.component, constants.theta, constants.word_prior
    sums, total, square, overlap = clusters.sums, clusters.total, clusters.square, clusters.overlap
    for slot in slots:
        if slot:
            k, word, n = _cell(slot, constants.shift, constants.n_words)
            if grid[word] > 0.0:
                theta = theta_of(component, table, prior, n)
                before = coordinate(np.float32(0.0), centre[word], grid[word])
                after = coordinate(theta, centre[word], grid[word])
                total[k] += after - before
                square[k] += after * after - before * before
                overlap[k] += np.int64(frequency[word] * theta)
                add_signed(sums[k], word, np.int32(after - before))
    for k in range(clusters.n_k.size):
        refresh_column(clusters, projection, constants, k)


@kernel
def add_squares(slots, constants, squares):
    """Add every cell's squared count to its cluster's (K,) int64 ``squares``."""
    for slot in slots:
        if slot:
            k, _, n = _cell(slot, constants.shift, constants.n_words)
            squares[k] += n * n


@kernel
def fill_factors(constants, background, clusters, factor):
    """Fill (K,) float64 ``factor`` with the third of every cluster's linear terms."""
    for k in range(factor.size):
        sizes = clusters.n_k[k], clusters.mass[k], clusters.squares[k]
        factor[k] = linear_terms(constants, background, *sizes, 0)[2]


@kernel
def project_documents(documents, scale, unit, frequency, bits):
    """Signatures and norms of x - mass_j p times ``scale``; ``frequency`` (V,) float64 is p, or zeros."""
    words, counts, signature = documents.words, documents.counts, documents.signature
    n_bits = signature.shape[1] * WORD_BITS
    mean = np.zeros(n_bits)  # <sign, p scale>
    mean_square = 0.0
    sums = np.zeros(n_bits, np.int32)
    for word in range(scale.size):
        if frequency[word] > 0.0 and scale[word] > 0.0:
            for b in range(n_bits):
                sums[b] = 0
            add_signed(sums, word, np.int32(1))
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
            add_signed(sums, d, value)
            hashed = counts[cell] * np.float64(scale[d])
            square += hashed * (hashed - 2.0 * mass * frequency[d] * scale[d])
        documents.norm[j] = math.sqrt(max(square, 0.0))
        for part in range(signature.shape[1]):
            signature[j, part] = 0
        for b in range(bits):
            if 2 * np.int64(sums[b]) - total > mass * mean[b] * unit:
                signature[j, b // WORD_BITS] |= np.uint64(1) << np.uint64(b % WORD_BITS)


@kernel
def log_cells(slots, constants):
    """Sum over cells of ln G(n + a) - ln G(a) in units of 1 / JOINT_UNIT: whole numbers, so the order is free."""
    table, prior, shift = constants.log_gamma, constants.word_prior, constants.shift
    total = np.int64(0)
    if constants.component == GAUSSIAN:
        return total
    for slot in slots:
        if slot:
            n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
            total += np.int64((log_gamma_of(table, prior, n) - table[0]) * JOINT_UNIT)
    return total
