"""Blocked draws of tokens' topics given the measures and the documents' clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.simd import LANES, count_passed, weigh_products
from mc2core.inference.gibbs.cells import order_by_cluster


class WordWork(NamedTuple):
    """Tokens of the word at hand that move, cluster by cluster: a run of tokens for each cluster that has some."""

    token: np.ndarray  # (largest + 1,) int64
    run_row: np.ndarray  # (widest,) int64: row of tau
    run_end: np.ndarray  # (widest,) int64: the run's last token is the one before
    sorting: np.ndarray  # (K + 2,) int64 zeros, for order_by_cluster
    order: np.ndarray  # (widest,) int64, likewise


@kernel(error_model="numpy")
def _word_work(first, last, cells, n_rows):
    """Scratch memory for words first..last-1."""
    start, count = cells.start, cells.counts
    largest, widest = 0, 0
    for w in range(first, last):
        n_tokens = 0
        for cell in range(start[w], start[w + 1]):
            n_tokens += count[cell]
        largest, widest = max(largest, n_tokens), max(widest, start[w + 1] - start[w])
    return WordWork(
        np.zeros(largest + 1, np.int64),
        np.zeros(widest, np.int64),
        np.zeros(widest, np.int64),
        np.zeros(n_rows + 2, np.int64),
        np.zeros(widest, np.int64),
    )


@kernel(error_model="numpy")
def _collect_moving(w, cells, column, row_of, topic, work):
    """Fill ``work`` with the tokens of word w that move; returns the number of runs."""
    document, token, count = cells.document, cells.token, cells.counts
    moving, run_row, run_end, order = work.token, work.run_row, work.run_end, work.order
    begin, end = cells.start[w], cells.start[w + 1]
    order_by_cluster(document[begin:end], row_of, work.sorting, order)
    n_moving, n_runs, previous = 0, 0, 0
    for c in range(end - begin):
        cell = begin + order[c]
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
    return n_runs


@kernel(error_model="numpy")
def draw_topics(key, first, last, cells, topics, row_of, tau, psi, topic):
    """l_ji of all tokens in big topics of words first..last-1, in place.

    ``row_of`` (J,) int32: 1 + the document's row of ``tau`` (K, width) float32, 0 where the document stays as it is.
    A word's tokens are drawn cluster by cluster, because those of one cluster share their weights. Returns the first
    token whose weights sum to infinity or no number, or -1.
    """
    column, label = topics.column, topics.label
    stream = np.zeros(2, np.uint64)
    width = psi.shape[1]
    n_blocks = width // LANES
    within = np.zeros(width)  # running sums of weights within each block of 16 ...
    upto = np.full(LANES * (n_blocks // LANES + 1), np.inf)  # ... and of the blocks' sums
    work = _word_work(first, last, cells, tau.shape[0])
    moving, run_row, run_end = work.token, work.run_row, work.run_end
    for w in range(first, last):
        streams.seek(stream, key, w)
        # all that lies far apart in memory is fetched first, in a loop without surprises: misses then overlap
        n_runs = _collect_moving(w, cells, column, row_of, topic, work)
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
