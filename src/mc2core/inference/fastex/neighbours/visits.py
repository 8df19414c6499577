"""A visit to a document: tries of clusters that its neighbours are in, each accepted exactly (docs/model.md).

The proposal is q(k) = (1 - eps) v_k / N_i + eps / K, with v_k the neighbours now in cluster k, N_i the neighbours found
and eps the ``uniform_share``; without neighbours it is uniform. It reads the graph, which is fixed, and where the other
documents are, never where the document itself is: the graph has no document as its own neighbour. So each try is a
Metropolis-Hastings move that leaves the document's conditional as it is, and so are a fixed number of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.inference.fastex.evidence import fetch_cells, log_evidence_in
from mc2core.inference.fastex.sparse_counts import MAX_LOAD, add_to


class Documents(NamedTuple):
    """The corpus as visits read it, and the graph."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64: tokens
    neighbours: np.ndarray  # (J, N) int32, see mc2core.inference.fastex.neighbours.graph


class Sizes(NamedTuple):
    """(K,) int64 of the clusters."""

    n_k: np.ndarray  # documents
    mass: np.ndarray  # tokens
    squares: np.ndarray  # zeros: only the Gaussian needs them


class Constants(NamedTuple):
    """What is the same in a whole run; ``log_gamma[n]`` = ln G(n + a) for small n."""

    component: int
    n_words: int
    shift: np.uint64
    word_prior: float
    weight_prior: float
    rate_prior: float
    log_gamma: np.ndarray
    tries: int
    uniform_share: float


class Chain(NamedTuple):
    """All that sweeps read and change, but for assignments and the table of counts, which is replaced as it grows."""

    documents: Documents
    clusters: Sizes
    constants: Constants


class Round(NamedTuple):
    """Choices made for documents ahead of their turn, and what they rest on."""

    chosen: np.ndarray  # (B,) int32
    proposed: np.ndarray  # (B,) int64: other clusters proposed
    scored: np.ndarray  # (B, tries + 1) int64: clusters whose counts were read, -1 after the last
    has_moved: np.ndarray  # (B,) bool: documents that changed cluster in this round
    changed: np.ndarray  # (K,) int64: last round in which the cluster changed, from 1


# -- the proposal --------------------------------------------------------------------------------------------------
@kernel
def count_found(neighbours, j):
    """N_i: neighbours found of document j."""
    n = neighbours.shape[1]
    while n > 0 and neighbours[j, n - 1] < 0:
        n -= 1
    return n


@kernel
def propose(stream, neighbours, j, n_found, cluster, n_clusters, uniform_share):
    """A cluster drawn from q."""
    if n_found == 0 or streams.uniform(stream) < uniform_share:
        return np.int64(streams.uniform(stream) * n_clusters)
    return np.int64(cluster[neighbours[j, np.int64(streams.uniform(stream) * n_found)]])


@kernel
def density(neighbours, j, n_found, cluster, n_clusters, uniform_share, k):
    """q(k)."""
    if n_found == 0:
        return 1.0 / n_clusters
    n_inside = 0
    for i in range(n_found):
        n_inside += cluster[neighbours[j, i]] == k
    return (1.0 - uniform_share) * n_inside / n_found + uniform_share / n_clusters


# -- a visit -------------------------------------------------------------------------------------------------------
@kernel
def _score(chain, slots, j, old, k, scored, logs):
    """Place in ``logs`` of document j's log evidence in cluster k without it, computed once in a visit."""
    i = 0
    while scored[i] != k:
        if scored[i] < 0:
            documents, clusters, constants = chain
            logs[i] = log_evidence_in(documents, clusters, slots, constants, j, k, np.int64(k == old))
            scored[i] = k
            break
        i += 1
    return i


@kernel
def choose(chain, slots, cluster, j, stream, drawn, scored, logs):
    """Cluster of document j after all tries; changes nothing but scratch memory.

    ``drawn`` (tries,) int64, ``scored`` and ``logs`` (tries + 1,): the clusters whose evidence was needed, -1 after the
    last. Returns (cluster, how many other clusters were proposed); cluster -1 where scores are not finite.
    """
    documents, clusters, constants = chain
    neighbours, n_clusters, share = documents.neighbours, clusters.n_k.size, constants.uniform_share
    n_found = count_found(neighbours, j)
    old = np.int64(cluster[j])
    is_other = False
    for t in range(drawn.size):
        scored[t] = -1
        drawn[t] = propose(stream, neighbours, j, n_found, cluster, n_clusters, share)
        if drawn[t] != old:
            fetch_cells(documents, slots, constants.n_words, j, drawn[t])
            is_other = True
    scored[drawn.size] = -1
    if not is_other:
        return old, 0
    fetch_cells(documents, slots, constants.n_words, j, old)
    now, n_proposed = old, 0
    for t in range(drawn.size):
        new = drawn[t]
        if new == now:
            continue
        n_proposed += 1
        log_ratio = -logs[_score(chain, slots, j, old, now, scored, logs)]
        log_ratio += logs[_score(chain, slots, j, old, new, scored, logs)]
        log_ratio += math.log(density(neighbours, j, n_found, cluster, n_clusters, share, now))
        log_ratio -= math.log(density(neighbours, j, n_found, cluster, n_clusters, share, new))
        if not abs(log_ratio) < math.inf:
            return np.int64(-1), n_proposed
        if log_ratio >= 0.0 or streams.uniform(stream) < math.exp(log_ratio):
            now = new
    return now, n_proposed


@kernel
def move(chain, slots, used, cluster, j, new):
    """Take document j out of its cluster and put it into ``new``."""
    documents, clusters, constants = chain
    words, counts, shift, mass = documents.words, documents.counts, constants.shift, documents.mass[j]
    old, n_words = np.int64(cluster[j]), np.uint64(constants.n_words)
    fetch_cells(documents, slots, constants.n_words, j, new)
    for k, sign in ((old, np.int64(-1)), (np.int64(new), np.int64(1))):
        first_key = np.uint64(k) * n_words
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            add_to(slots, shift, first_key + np.uint64(words[cell]), sign * np.int64(counts[cell]), used)
        clusters.n_k[k] += sign
        clusters.mass[k] += sign * mass
    cluster[j] = new


# -- sweeps --------------------------------------------------------------------------------------------------------
@kernel
def sweep(key, first, chain, slots, used, cluster, moves):
    """Visit documents from ``first`` on, in order.

    Returns the number of documents, the document at which the table must grow, or -1 - j where document j has scores
    that are not finite. ``cluster`` (J,) int32 in place; ``moves`` (2,) int64: other clusters proposed, and documents
    that moved, are added to it.
    """
    documents, _, constants = chain
    indptr, stream = documents.indptr, np.zeros(2, np.uint64)
    drawn, scored = np.empty(constants.tries, np.int64), np.empty(constants.tries + 1, np.int64)
    logs = np.empty(constants.tries + 1)
    for j in range(first, cluster.size):
        if used[0] + indptr[j + 1] - indptr[j] > MAX_LOAD * slots.size:
            return j
        streams.seek(stream, key, j)
        new, proposed = choose(chain, slots, cluster, j, stream, drawn, scored, logs)
        moves[0] += proposed
        if new < 0:
            return -1 - j
        if new != cluster[j]:
            moves[1] += 1
            move(chain, slots, used, cluster, j, new)
    return cluster.size


@kernel
def choose_ahead(key, start, first, last, chain, slots, cluster, ahead):
    """Choose for documents ``first`` to ``last - 1`` of the round that begins at ``start``, all as they are now."""
    drawn, stream = np.empty(chain.constants.tries, np.int64), np.zeros(2, np.uint64)
    logs = np.empty(chain.constants.tries + 1)
    for j in range(first, last):
        streams.seek(stream, key, j)
        i = j - start
        ahead.chosen[i], ahead.proposed[i] = choose(chain, slots, cluster, j, stream, drawn, ahead.scored[i], logs)
        ahead.has_moved[i] = False


@kernel
def carry_out(key, start, first, last, chain, slots, used, cluster, moves, ahead, redone):
    """Carry out the round's choices in order, and choose anew where what a choice rests on has changed.

    That is where a neighbour of the document, or a cluster that was scored, has changed in this round. So documents go
    where :func:`sweep` sends them. Returns as that does, and adds to ``redone`` (1,) int64 how many were chosen anew.
    """
    documents, _, constants = chain
    indptr, stream = documents.indptr, np.zeros(2, np.uint64)
    drawn, logs = np.empty(constants.tries, np.int64), np.empty(constants.tries + 1)
    chosen, has_moved, changed = ahead.chosen, ahead.has_moved, ahead.changed
    for j in range(first, last):
        if used[0] + indptr[j + 1] - indptr[j] > MAX_LOAD * slots.size:
            return j
        i = j - start
        new, proposed = np.int64(chosen[i]), ahead.proposed[i]
        if not _is_valid(documents.neighbours, j, start, ahead):
            redone[0] += 1
            streams.seek(stream, key, j)
            new, proposed = choose(chain, slots, cluster, j, stream, drawn, ahead.scored[i], logs)
        moves[0] += proposed
        if new < 0:
            return -1 - j
        if new != cluster[j]:
            moves[1] += 1
            has_moved[i] = True
            changed[cluster[j]] = changed[new] = start + 1
            move(chain, slots, used, cluster, j, new)
    return last


@kernel
def _is_valid(neighbours, j, start, ahead):
    """Whether nothing that document j's choice rests on has changed in the round that begins at ``start``."""
    scored, has_moved, changed = ahead.scored, ahead.has_moved, ahead.changed
    for i in range(neighbours.shape[1]):
        neighbour = neighbours[j, i] - start
        if 0 <= neighbour < has_moved.size and has_moved[neighbour]:
            return False
    for i in range(scored.shape[1]):
        k = scored[j - start, i]
        if k < 0:
            return True
        if changed[k] == start + 1:
            return False
    return True
