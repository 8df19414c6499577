"""Blocked move: all (z_j, l_j) at once given the random measures, drawn from their conditionals first.

Given z, l and epsilon, the measures that the collapsed sampler integrates out are drawn: G_0 (weights epsilon, topics
psi), pi, each cluster's tau_k and phi_k. Then documents are independent, and z_j is drawn with its tokens' topics
summed out:

    P(z_j = k | measures) prop. to pi_k f(x_j | phi_k) prod_i sum_m tau_km psi_m,w_ji,      l_ji ~ tau_{z_j} psi_.,w_ji.

**Births, exactly and without slice variables.** G_0 has infinitely many atoms. Its atoms not in use are split off
``rest`` by GEM(eta) until less than ``SMALLEST_TOPIC`` remains, so every atom above that weight (a *big* one) is known;
likewise every cluster with pi_k above that of ``SMALLEST_CLUSTER`` documents. A token in a small topic stays there
(it enters its document's weight as a factor tau_k,l), a document in a small cluster stays as it is, and everything
else moves among the big atoms. Big and small are properties of the measures, not of z and l, and what moves stays
among the big, so the move is a Gibbs step on the whole model. Collapsed sweeps and the next draw of epsilon move the
rest.

**Threads.** Words, then documents, then words again are cut into fixed blocks; streams of random numbers belong to
words and documents, and sums over blocks are taken in their order, so bits do not depend on the number of threads.

**Zeros.** psi and tau are float32. Gammas of psi below 1e-18 become 0, and so do entries of tau below 1e-38 of their
topic's sum: they carry less than rounding, and subnormal products would cost a hundred cycles each. A token's own
topic always has psi and tau of a Gamma with shape above 1, so the present state never becomes impossible. All Gammas of
a topic or cluster not in use may underflow, if the prior of its words or v is small; they are then drawn in logarithms.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from mc2core.compute import streams, variates
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import LANES, count_passed, weigh_products
from mc2core.compute.special import exp, log
from mc2core.compute.threads import in_blocks
from mc2core.engines.gibbs.measures import draw_psi, draw_sparse_dirichlet, smallest_atom, split_rest
from mc2core.engines.gibbs.state import Assignments, Concentrations, no_cluster, no_topic
from mc2core.engines.gibbs.tokens import WordCells, order_by_cluster
from mc2core.families.stacked import StackedContexts

SMALLEST_TOPIC = 1e-3
SMALLEST_CLUSTER = 1.0  # in documents; at most 0.05 of pi
_WORD_BLOCK = 512
_DOCUMENT_BLOCK = 128
_FLOOR = np.float32(1e-37)  # of a word's mass under a cluster
_TAU_UNIT = 2.0**60  # tau is stored in units that keep its product with psi a normal float32 ...
_TINY_TAU = np.float32(1e-20)  # ... where tau is not 0
_HOPELESS = 45.0  # nats
_WORDS_AT_ONCE = 16
_SAFE_PRIOR = 5.0  # the sum of V Gamma(s) is below 1e-30 with probability near 1e-30**(V s)


@kernel(error_model="numpy", fastmath={"contract"})
def centred_log(mass, log_mass):
    """log_mass (words, K) float32 = ln mass - max_k ln mass: what is common to all clusters of a word cancels."""
    n_clusters = mass.shape[1]
    work = np.zeros(n_clusters, np.float64)
    for w in range(mass.shape[0]):
        row, out = mass[w], log_mass[w]
        for k in range(n_clusters):
            work[k] = log(np.float64(max(row[k], _FLOOR)))
        top = work[0]
        for k in range(1, n_clusters):
            top = max(top, work[k])
        for k in range(n_clusters):
            out[k] = np.float32(work[k] - top)


@kernel(error_model="numpy", fastmath={"contract"})
def _add_row(row, factor, weight):
    # in a function of its own this vectorises
    for k in range(weight.size):
        weight[k] += factor * np.float64(row[k])


@kernel(error_model="numpy", fastmath={"contract"})
def draw_clusters(
    key, first, last, indptr, indices, counts, document_start, topic, column, small, log_small, log_prior, log_context,
    log_mass, is_big, cluster,
):  # fmt: skip
    """z_j of documents first..last-1 in big clusters: ``cluster`` gets the column drawn, in place.

    Returns the first document whose weights have no finite sum above 0, or -1.

    Every column starts from ln pi + ln f(x_j) and only falls as words are added, because ``log_mass`` is at most 0.
    So a column that has fallen ``_HOPELESS`` below the document's present cluster is left out from there on: its
    probability is below 1e-19, less than the rounding of the sum.

    Parameters
    ----------
    column : (M,) int32, -1 for a small topic; small : (M,) int32, its row of ``log_small``
    log_small : (small topics, K) float64, ln tau of the small topics
    log_prior : (K,) float64, ln pi; log_context : (last - first, K), or (0, K) without contexts
    log_mass : (V, K) float32; is_big : (K',) int32, column of each present cluster, or -1
    """
    n_clusters = log_prior.size
    stream = np.zeros(2, np.uint64)
    weight = np.zeros(n_clusters)
    active = np.zeros(n_clusters, np.int64)
    widest, longest = 0, 0
    for j in range(first, last):
        widest = max(widest, indptr[j + 1] - indptr[j])
        longest = max(longest, document_start[j + 1] - document_start[j])
    moving = np.zeros(widest, np.float64)
    still = np.zeros(longest + 1, np.int64)
    for j in range(first, last):
        here = is_big[cluster[j]]
        if here < 0:
            continue
        # loops: an assignment of arrays makes numba compile the text of its error, which takes seconds
        for k in range(n_clusters):
            weight[k] = log_prior[k]
        if log_context.shape[0] > 0:
            for k in range(n_clusters):
                weight[k] += log_context[j - first, k]
        # tokens in small topics are few: they are listed in a loop without branches, and taken from their words' counts
        n_still = 0
        for i in range(document_start[j], document_start[j + 1]):
            still[n_still] = i
            if column[topic[i]] < 0:
                n_still += 1
        for i in range(n_still):
            for k in range(n_clusters):
                weight[k] += log_small[small[topic[still[i]]], k]
        still[n_still] = document_start[j + 1]
        n_words = indptr[j + 1] - indptr[j]
        words = indices[indptr[j] : indptr[j + 1]]
        past = document_start[j]
        i = 0
        for c in range(n_words):
            moving[c] = counts[indptr[j] + c]
            past += counts[indptr[j] + c]
            while still[i] < past:
                moving[c] -= 1.0
                i += 1
        least = weight[here] - _HOPELESS
        for c in range(n_words):
            least += moving[c] * np.float64(log_mass[words[c], here])
        n_active = 0
        for k in range(n_clusters):
            if not weight[k] < least:  # no number stays, for the sum to show it
                active[n_active] = k
                n_active += 1
        c = 0
        while c < n_words:
            stop = min(c + _WORDS_AT_ONCE, n_words)
            if n_active > n_clusters // 4:
                while c < stop:
                    _add_row(log_mass[words[c]], moving[c], weight)
                    c += 1
            else:
                while c < stop:
                    for a in range(n_active):
                        weight[active[a]] += moving[c] * np.float64(log_mass[words[c], active[a]])
                    c += 1
            kept = 0
            for a in range(n_active):
                if not weight[active[a]] < least:
                    active[kept] = active[a]
                    kept += 1
            n_active = kept
        top = -np.inf
        for a in range(n_active):
            top = max(top, weight[active[a]])
        total = 0.0
        for a in range(n_active):
            weight[active[a]] = exp(weight[active[a]] - top)
            total += weight[active[a]]
        if not 0.0 < total < np.inf:
            return j
        streams.seek(stream, key, j)
        u = streams.uniform(stream) * total
        chosen = here
        for a in range(n_active):
            if weight[active[a]] > 0.0:
                chosen = active[a]
                if u < weight[active[a]]:
                    break
                u -= weight[active[a]]
        cluster[j] = chosen
    return -1


@kernel(error_model="numpy")
def draw_topics(
    key, first, last, start, document, token, count, column, label, row_of, tau, psi, topic
):  # fmt: skip
    """l_ji of all tokens in big topics of words first..last-1, in place.

    ``row_of`` (J,) int32: 1 + the document's row of ``tau`` (K, width) float32, 0 where the document stays as it is;
    ``label`` (columns,) int32: topic of each column. A word's tokens are drawn cluster by cluster, because those of
    one cluster share their weights. Returns the first token whose weights sum to infinity or no number, or -1.
    """
    stream = np.zeros(2, np.uint64)
    width = psi.shape[1]
    n_blocks = width // LANES
    within = np.zeros(width)  # running sums of weights within each block of 16 ...
    upto = np.full(LANES * (n_blocks // LANES + 1), np.inf)  # ... and of the blocks' sums
    largest, widest = 0, 0
    for w in range(first, last):
        n_tokens = 0
        for cell in range(start[w], start[w + 1]):
            n_tokens += count[cell]
        largest, widest = max(largest, n_tokens), max(widest, start[w + 1] - start[w])
    moving = np.zeros(largest + 1, np.int64)
    order = np.zeros(widest, np.int64)
    work_count = np.zeros(tau.shape[0] + 2, np.int64)
    run_row = np.zeros(widest, np.int64)
    run_end = np.zeros(widest, np.int64)
    for w in range(first, last):
        streams.seek(stream, key, w)
        # all that lies far apart in memory is fetched first, in a loop without surprises: misses then overlap
        n_cells, n_moving, n_runs = start[w + 1] - start[w], 0, 0
        order_by_cluster(document[start[w] : start[w + 1]], row_of, work_count, order)
        previous = 0
        for c in range(n_cells):
            cell = start[w] + order[c]
            row = row_of[document[cell]]
            if row > 0:
                if row != previous:
                    run_row[n_runs] = row - 1
                    n_runs += 1
                    previous = row
                for i in range(token[cell], token[cell] + count[cell]):
                    moving[n_moving] = i
                    if column[topic[i]] >= 0:
                        n_moving += 1
                run_end[n_runs - 1] = n_moving
        t = 0
        for r in range(n_runs):
            if t == run_end[r]:
                continue
            total = 0.0
            for b in range(n_blocks):
                total += weigh_products(tau, run_row[r] * width, psi, w * width, within, b * LANES)
                upto[b] = total
            if not total < np.inf:
                return moving[t]
            while t < run_end[r]:
                u = streams.uniform(stream) * total
                block = 0
                for b in range(0, n_blocks, LANES):
                    block += count_passed(upto, b, u)
                # what rounding alone takes past the end stays, and so does a token without any mass
                if block < n_blocks:
                    if block > 0:
                        u -= upto[block - 1]
                    lane = count_passed(within, block * LANES, u)
                    if lane < LANES:
                        topic[moving[t]] = label[block * LANES + lane]
                t += 1
    return -1


def _padded(n: int) -> int:
    return max(LANES, -(-n // LANES) * LANES)


def move_blocked(
    assignments: Assignments,
    content: Any,
    cells: WordCells,
    contexts: StackedContexts,
    concentrations: Concentrations,
    topic_prior: float,
    seed: int,
    iteration: int,
    pool: Executor | None = None,
    *,
    clusters_are_fixed: bool = False,
) -> None:
    """One blocked move, in place; clusters and topics that end empty are dropped.

    ``content``: the corpus's CSR counts; ``pool``: threads to use; ``clusters_are_fixed``: move tokens only.
    """
    rng = streams.generator(seed, "measures", iteration)
    n_words, n_documents = len(cells.start) - 1, len(assignments.cluster)
    # G_0: big topics in use, then the new ones
    smallest = smallest_atom(SMALLEST_TOPIC, concentrations.topic)
    weights, rest = split_rest(assignments.rest, concentrations.topic, smallest, rng)
    weights = np.concatenate([assignments.topic_weights, weights])
    n_used = assignments.n_topics
    labels = np.flatnonzero(weights > smallest).astype(np.int32)
    column = np.full(n_used, -1, np.int32)
    used = labels[labels < n_used]
    column[used] = np.arange(len(used), dtype=np.int32)
    n_columns = len(labels)
    width = _padded(n_columns)
    small_topics = np.flatnonzero(column < 0)
    small = np.zeros(n_used, np.int32)
    small[small_topics] = np.arange(len(small_topics), dtype=np.int32)
    # clusters: those in use, then the new ones
    if clusters_are_fixed:
        n_km, big = assignments.n_km, np.arange(assignments.n_clusters)
    else:
        pi = variates.dirichlet(np.append(assignments.n_k, concentrations.group), rng)
        smallest = smallest_atom(min(SMALLEST_CLUSTER / n_documents, 0.05), concentrations.group)
        new, _ = split_rest(pi[-1], concentrations.group, smallest, rng)
        pi = np.concatenate([pi[:-1], new])
        n_km = np.zeros((len(pi), n_used), np.int32)
        n_km[: assignments.n_clusters] = assignments.n_km
        big = np.flatnonzero(pi > smallest)
    # psi, as Gammas and their sums
    psi = np.zeros((n_words, width), np.float32)
    psi_key = streams.key(seed, "psi", iteration)

    def fill_psi(first: int, last: int) -> np.ndarray:
        sums = np.zeros(width)
        draw_psi(
            psi_key, first, last, cells.start, cells.token, cells.count, assignments.topic, column, n_columns,
            topic_prior, psi, sums,
        )  # fmt: skip
        return sums

    sums = np.sum(in_blocks(pool, fill_psi, n_words, _WORD_BLOCK), axis=0)
    if topic_prior * n_words < _SAFE_PRIOR:
        empty = slice(len(used), n_columns)
        psi[:, empty] = draw_sparse_dirichlet(n_words, n_columns - len(used), topic_prior, rng)
        sums[empty] = 1.0
    # tau of the big clusters: big topics, small topics in use, and one entry for all that is left
    shapes = np.empty((len(big), n_columns + len(small_topics) + 1))
    prior = concentrations.table * weights
    shapes[:, :n_columns] = prior[labels]
    shapes[:, : len(used)] += n_km[np.ix_(big, used)]
    shapes[:, n_columns:-1] = prior[small_topics] + n_km[np.ix_(big, small_topics)]
    not_in_use = np.setdiff1d(np.arange(n_used, len(weights)), labels)
    shapes[:, -1] = concentrations.table * (rest + weights[not_in_use].sum())
    tau_all = variates.dirichlet(shapes, rng)
    tau = np.zeros((len(big), width), np.float32)
    # the sum of a topic's Gammas goes here instead of into every entry of psi
    tau[:, :n_columns] = tau_all[:, :n_columns] / sums[:n_columns] * _TAU_UNIT
    tau[tau < _TINY_TAU] = 0.0
    # documents
    if clusters_are_fixed:
        row_of = assignments.cluster + np.int32(1)
    else:
        is_big = np.full(len(pi), -1, np.int32)
        is_big[big] = np.arange(len(big), dtype=np.int32)
        log_mass = np.empty((n_words, len(big)), np.float32)

        def fill_mass(first: int, last: int) -> None:
            centred_log(psi[first:last] @ tau.T, log_mass[first:last])

        in_blocks(pool, fill_mass, n_words, _WORD_BLOCK)
        with np.errstate(divide="ignore"):
            log_small = np.log(np.ascontiguousarray(tau_all[:, n_columns:-1].T))
        log_pi = np.log(pi[big])
        natural = contexts.natural(assignments.cluster, len(pi))[big]
        parameters = contexts.draw_parameters(natural, rng)
        cluster_key = streams.key(seed, "blocked clusters", iteration)
        chosen = assignments.cluster.copy()

        def move_documents(first: int, last: int) -> int:
            log_context = np.zeros((0, len(big)))
            if contexts.dimension:
                log_context = np.asarray(contexts.statistics[first:last] @ parameters.T)
            return draw_clusters(
                cluster_key, first, last, content.indptr, content.indices, content.data, assignments.document_start,
                assignments.topic, column, small, log_small, log_pi, log_context, log_mass, is_big, chosen,
            )  # fmt: skip

        failed = max(in_blocks(pool, move_documents, n_documents, _DOCUMENT_BLOCK))
        if failed >= 0:
            raise no_cluster(failed, contexts, concentrations)
        moves = is_big[assignments.cluster] >= 0
        row_of = np.where(moves, chosen + 1, 0).astype(np.int32)
        cluster = assignments.cluster.copy()
        cluster[moves] = big[chosen[moves]]  # there may be no big cluster at all
        assignments.cluster = cluster
    # tokens
    topic_key = streams.key(seed, "blocked topics", iteration)

    def move_tokens(first: int, last: int) -> int:
        return draw_topics(
            topic_key, first, last, cells.start, cells.document, cells.token, cells.count, column, labels, row_of,
            tau, psi, assignments.topic,
        )  # fmt: skip

    failed = max(in_blocks(pool, move_tokens, n_words, _WORD_BLOCK))
    if failed >= 0:
        raise no_topic(assignments.document_of(failed), concentrations, topic_prior)
    assignments.topic_weights, assignments.rest = weights, rest
    assignments.count(len(n_km))
    assignments.compact()
