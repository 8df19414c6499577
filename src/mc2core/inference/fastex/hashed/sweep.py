"""A sweep of FastEx's hashed moves over documents: in order, or by samplers and an updater (NIPS12 section 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.inference.fastex.components import Constants
from mc2core.inference.fastex.evidence import fetch_cells
from mc2core.inference.fastex.hashed.moves import Clusters, Documents, Projection, add_or_remove, choose, workspace
from mc2core.inference.fastex.hashed.proposal import draw, proposal_scores, weigh
from mc2core.inference.fastex.sparse_counts import MAX_LOAD


class Chain(NamedTuple):
    """All that sweeps read and change, but for assignments and the table of counts, which is replaced as it grows."""

    documents: Documents
    clusters: Clusters
    projection: Projection
    constants: Constants


@kernel
def propose_all(key, documents, clusters, constants, proposed):
    """Fill (J,) int32 ``proposed`` with a draw from each document's proposal, given the clusters as they are.

    The document stays in its cluster.
    """
    work = workspace(clusters)
    stream = np.zeros(2, np.uint64)
    for j in range(proposed.size):
        streams.seek(stream, key, j)
        proposal_scores(
            clusters.columns, documents.signature[j], documents.norm[j], documents.mass[j], constants.bits,
            constants.slack, constants.flatness, work.weights, work.blocks,
        )  # fmt: skip
        weigh(work.weights, work.blocks)
        proposed[j] = draw(stream, clusters.n_k.size, work.weights, work.blocks)


@kernel
def choose_all(key, first, last, chain, slots, cluster, chosen, moves):
    """Fill ``chosen[first:last]`` with the moves of these documents given the statistics as they are: a sampler.

    Returns ``last``, or -1 - j where document j has scores that are not finite.
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
    """Carry out the moves of documents first..last - 1: the updater; returns as :func:`sweep`."""
    documents, clusters, projection, constants = chain
    for j in range(first, last):
        old, new = np.int64(cluster[j]), np.int64(chosen[j])
        if new != old:
            if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
                return j
            moves[1] += 1
            is_usable = True
            for k, sign in ((old, -1), (new, 1)):
                is_usable &= add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign)
            cluster[j] = new
            if not is_usable:
                return -1 - j
    return last


@kernel
def sweep(key, first, chain, slots, used, cluster, moves):
    """One move for each document from ``first`` on, in order.

    Returns the number of documents, the document at which the table must grow, or -1 - j where document j or a cluster
    that it leaves or joins has scores that are not finite.
    ``cluster`` (J,) int32 in place; ``moves`` (2,) int64: other clusters proposed, and accepted, are added to it.
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
            is_usable = True
            for k, sign in ((old, -1), (new, 1)):
                is_usable &= add_or_remove(documents, clusters, projection, constants, slots, used, j, k, sign)
            cluster[j] = new
            if not is_usable:
                return -1 - j
    return cluster.size
