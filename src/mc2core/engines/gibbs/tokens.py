"""Collapsed sweep over tokens: l_ji given everything else (ICML14 section 3.2 and appendix A.2).

    P(l_ji = m)         prop. to (n_km + v eps_m) (n_mw + s) / (n_m + V s)     (counts without the token)
    P(l_ji = new topic) prop. to v eps_new / V

**Order.** Document clusters are fixed during the sweep, so any order of tokens that depends on them alone is valid.
Tokens are visited word by word and, within a word, cluster by cluster: the counts n_mw of the word at hand are
one short vector, counted when the word is entered (no V x M table exists), and all tokens of one
(cluster, word) share one vector of weights, of which a move changes two entries.

**Draw.** A token is first asked whether it stays (the order of the categories in an inverse-CDF draw is free as long
as it does not depend on the uniform number); only tokens that leave search the blocks of 16 weights.

**Rounding.** Weights are float32, recomputed from integer counts whenever a count changes; their sums are float64 and
live only while one (cluster, word) is visited, so nothing drifts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import LANES, find_lane, weigh_counts
from mc2core.engines.gibbs.state import Assignments, Concentrations, no_topic

_F32_ONE = np.float32(1.0)
_WORD, _TOKEN, _TOPICS = 0, 1, 2
_DONE, _FULL, _FAILED = 0, 1, 2


@dataclass(frozen=True)
class WordCells:
    """The corpus seen word by word: cell = one (document, word) pair with a positive count.

    Cells of word w are ``start[w]:start[w + 1]``, in ascending order of documents.
    """

    start: np.ndarray  # (V + 1,) int64
    document: np.ndarray  # (cells,) int32
    token: np.ndarray  # (cells,) int64: its first token in CSR order
    count: np.ndarray  # (cells,) int32: its tokens, which follow each other
    largest: int  # tokens of the most frequent word
    widest: int  # documents of the most widespread word


@kernel
def _transpose(indptr, indices, counts, start, document, token, count):
    n_tokens = 0
    for j in range(indptr.size - 1):
        for cell in range(indptr[j], indptr[j + 1]):
            place = start[indices[cell]]
            start[indices[cell]] += 1
            document[place] = j
            token[place] = n_tokens
            count[place] = counts[cell]
            n_tokens += counts[cell]


def word_cells(indptr: np.ndarray, indices: np.ndarray, counts: np.ndarray, n_words: int) -> WordCells:
    """Transpose a canonical CSR matrix of counts (J, V) into cells grouped by word."""
    documents_of = np.bincount(indices, minlength=n_words)
    tokens_of = np.bincount(indices, weights=counts, minlength=n_words)
    start = np.concatenate([[0], np.cumsum(documents_of, dtype=np.int64)])
    cells = len(indices)
    document, count = np.empty(cells, np.int32), np.empty(cells, np.int32)
    token = np.empty(cells, np.int64)
    _transpose(indptr, indices, counts, start[:-1].copy(), document, token, count)
    largest, widest = int(tokens_of.max(initial=0)), int(documents_of.max(initial=0))
    return WordCells(start, document, token, count, largest, widest)


@kernel
def order_by_cluster(document, cluster, work_count, work_order):
    """Stable counting sort of a word's cells by their documents' clusters, at least 0: ``work_order`` gets the order.

    ``work_count`` (largest cluster + 2,) int64 zeros, left as zeros.
    """
    cells = document.size
    in_order = True
    highest = 0
    for c in range(cells):
        k = cluster[document[c]]
        if c > 0 and k < cluster[document[c - 1]]:
            in_order = False
        highest = max(highest, k)
        work_order[c] = c
    if in_order:
        return
    for c in range(cells):
        work_count[cluster[document[c]] + 1] += 1
    for k in range(1, highest + 1):
        work_count[k] += work_count[k - 1]
    for c in range(cells):
        k = cluster[document[c]]
        work_order[work_count[k]] = c
        work_count[k] += 1
    for k in range(highest + 2):
        work_count[k] = 0


@kernel(error_model="numpy")
def _sweep(
    key, stream, position, start, document, first_token, count, cluster, topic,
    n_km, n_m, eps, rest, table_concentration, topic_concentration, topic_prior, n_words,
    work_count, work_order, run_cluster, run_end, work_token, work_topic,
):  # fmt: skip
    """Sweep from ``position`` on; says why it stopped.

    _DONE: after all words; _FULL: a new topic needs more capacity; _FAILED: the weights of token position[_TOKEN] have
    no finite sum above 0.

    ``position`` (3,) int64: word, token within the word, number of topics; ``stream``: state of the word's random
    numbers. Both are left so that a call after growing the arrays goes on with the very same draw.
    """
    capacity = n_m.size
    n_topics = position[_TOPICS]
    s = np.float32(topic_prior)
    vs = np.float32(topic_prior * n_words)
    prior = np.zeros(capacity, np.float32)  # v eps_m
    inverse = np.zeros(capacity, np.float32)  # 1 / (n_m + V s)
    h = np.zeros(capacity, np.float32)  # (n_mw + s) / (n_m + V s)
    p = np.zeros(capacity, np.float32)
    n_w = np.zeros(capacity, np.int32)
    block = np.zeros(capacity // LANES, np.float64)
    for m in range(n_topics):
        prior[m] = table_concentration * eps[m]
        inverse[m] = _F32_ONE / (np.float32(n_m[m]) + vs)
    for w in range(position[_WORD], n_words):
        resume = position[_TOKEN]
        if resume == 0:
            streams.seek(stream, key, w)
        cells = start[w + 1] - start[w]
        offset = start[w]
        order_by_cluster(document[offset : offset + cells], cluster, work_count, work_order)
        n_w[:n_topics] = 0
        t = 0
        runs = 0
        previous = -1
        for c in range(cells):
            cell = offset + work_order[c]
            k = cluster[document[cell]]
            if k != previous:
                run_cluster[runs] = k
                runs += 1
                previous = k
            i = first_token[cell]
            last = t + count[cell]
            while t < last:
                work_token[t] = i
                work_topic[t] = topic[i]
                i += 1
                t += 1
            run_end[runs - 1] = t
        for i in range(t):
            n_w[work_topic[i]] += 1
        for m in range(n_topics):
            h[m] = (np.float32(n_w[m]) + s) * inverse[m]
        full = False
        for r in range(runs):
            k = run_cluster[r]
            begin = resume if r == 0 else max(run_end[r - 1], resume)
            end = run_end[r]
            if end <= begin:
                continue
            n_blocks = (n_topics + LANES - 1) // LANES
            new = table_concentration * rest[0] / n_words
            total = new
            for b in range(n_blocks):
                block[b] = weigh_counts(n_km, k * capacity, prior, h, p, b * LANES)
                total += block[b]
            for t in range(begin, end):
                m = work_topic[t]
                old = p[m]
                h_less = (np.float32(n_w[m] - 1) + s) / (np.float32(n_m[m] - 1) + vs)
                less = (np.float32(n_km[k, m] - 1) + prior[m]) * h_less
                others = total - np.float64(old)
                rewind = stream[0]
                u = streams.uniform(stream) * (others + np.float64(less)) - np.float64(less)
                if u < 0.0:
                    continue
                if not 0.0 < others + np.float64(less) < np.inf:
                    position[_TOKEN] = work_token[t]
                    return _FAILED
                own = m // LANES
                block[own] -= np.float64(old)
                running = 0.0
                before = 0.0
                b = 0
                for i in range(n_blocks):
                    running += block[i]
                    if running <= u:
                        b = i + 1
                        before = running
                if b == n_blocks and n_topics == capacity:
                    stream[0] = rewind
                    position[_TOKEN] = t
                    full = True
                    break
                # the token leaves topic m ...
                n_km[k, m] -= 1
                n_w[m] -= 1
                n_m[m] -= 1
                inverse[m] = _F32_ONE / (np.float32(n_m[m]) + vs)
                h[m] = h_less
                if b < n_blocks:
                    chosen = b * LANES + find_lane(p, b * LANES, u - before, m)
                    if chosen == (b + 1) * LANES:  # rounding alone went past the block: its last weight
                        chosen -= 1
                        while chosen > b * LANES and (p[chosen] == np.float32(0.0) or chosen == m):
                            chosen -= 1
                    if p[chosen] == np.float32(0.0):  # only rounding was left in the block: the token returns
                        chosen = m
                else:
                    chosen = n_topics
                    n_topics += 1
                    share = 1.0 - (1.0 - streams.uniform(stream)) ** (1.0 / topic_concentration)
                    eps[chosen] = share * rest[0]
                    rest[0] -= eps[chosen]
                    prior[chosen] = table_concentration * eps[chosen]
                    if chosen == n_blocks * LANES:
                        block[n_blocks] = 0.0
                        for i in range(chosen, chosen + LANES):
                            p[i] = np.float32(0.0)
                        n_blocks += 1
                    others -= new
                    new = table_concentration * rest[0] / n_words
                    others += new
                p[m] = less
                block[own] += np.float64(less)
                # ... and joins the chosen one
                before = np.float64(p[chosen])
                n_km[k, chosen] += 1
                n_w[chosen] += 1
                n_m[chosen] += 1
                inverse[chosen] = _F32_ONE / (np.float32(n_m[chosen]) + vs)
                h[chosen] = (np.float32(n_w[chosen]) + s) * inverse[chosen]
                p[chosen] = (np.float32(n_km[k, chosen]) + prior[chosen]) * h[chosen]
                gain = np.float64(p[chosen]) - before
                block[chosen // LANES] += gain
                total = others + np.float64(less) + gain
                topic[work_token[t]] = chosen
                work_topic[t] = chosen
            if full:
                break
        position[_TOPICS] = n_topics
        if full:
            position[_WORD] = w
            return _FULL
        position[_TOKEN] = 0
    return _DONE


def _grown(array: np.ndarray, capacity: int) -> np.ndarray:
    """A copy with ``capacity`` entries along the last axis, zeros after what there was."""
    grown = np.zeros((*array.shape[:-1], capacity), array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def sweep_topics(
    assignments: Assignments, cells: WordCells, concentrations: Concentrations, topic_prior: float, key: np.uint64
) -> None:
    """One collapsed sweep over all tokens, in place; topics that end empty are dropped.

    ``key`` (:func:`mc2core.compute.streams.key`) names the sweep's family of streams: one stream for each word.
    """
    n_words = len(cells.start) - 1
    n_topics = assignments.n_topics
    capacity = LANES * (n_topics // LANES + 1)
    n_km = _grown(assignments.n_km, capacity)
    eps = _grown(assignments.topic_weights, capacity)
    rest = np.array([assignments.rest])
    position = np.array([0, 0, n_topics], np.int64)
    stream = np.zeros(2, np.uint64)
    work = (
        np.zeros(assignments.n_clusters + 1, np.int64),
        np.zeros(cells.widest, np.int64),
        np.zeros(cells.widest, np.int64),
        np.zeros(cells.widest, np.int64),
        np.zeros(cells.largest, np.int64),
        np.zeros(cells.largest, np.int32),
    )
    n_m = n_km.sum(axis=0, dtype=np.int64)
    stopped = _FULL
    while stopped == _FULL:
        stopped = _sweep(
            key, stream, position, cells.start, cells.document, cells.token, cells.count, assignments.cluster,
            assignments.topic, n_km, n_m, eps, rest, concentrations.table, concentrations.topic, topic_prior, n_words,
            *work,
        )  # fmt: skip
        if stopped == _FULL:
            capacity += LANES
            n_km, n_m, eps = (_grown(array, capacity) for array in (n_km, n_m, eps))
    if stopped == _FAILED:
        raise no_topic(assignments.document_of(int(position[_TOKEN])), concentrations, topic_prior)
    n_topics = int(position[_TOPICS])
    assignments.topic_weights, assignments.rest = eps[:n_topics].copy(), float(rest[0])
    assignments.n_km = np.ascontiguousarray(n_km[:, :n_topics])
    assignments.compact()
