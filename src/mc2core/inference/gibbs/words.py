"""Counts of words in topics, and their likelihood, made anew from the tokens word by word."""

from __future__ import annotations

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.special import log_gamma
from mc2core.inference.gibbs.cells import WordCells


@kernel(error_model="numpy")
def count_words(cells, topic, table):
    """Add the tokens of every topic and word to ``table`` (M, V)."""
    start, token, count = cells.start, cells.token, cells.counts
    for w in range(start.size - 1):
        for cell in range(start[w], start[w + 1]):
            for i in range(token[cell], token[cell] + count[cell]):
                table[topic[i], w] += 1


def words_of_topics(cells: WordCells, topic: np.ndarray, n_topics: int) -> np.ndarray:
    """(M, V) int32 tokens of each word in each topic."""
    table = np.zeros((n_topics, len(cells.start) - 1), np.int32)
    count_words(cells, topic, table)
    return table


@kernel(error_model="numpy")
def log_words(cells, topic, n_topics, s):
    """Sum over topics and words of ln G(n_mw + s) - ln G(s)."""
    start, token, count = cells.start, cells.token, cells.counts
    n_w = np.zeros(n_topics, np.int64)
    result = 0.0
    at_zero = log_gamma(s)
    for w in range(start.size - 1):
        for cell in range(start[w], start[w + 1]):
            for i in range(token[cell], token[cell] + count[cell]):
                n_w[topic[i]] += 1
        for m in range(n_topics):
            if n_w[m] > 0:
                result += log_gamma(n_w[m] + s) - at_zero
                n_w[m] = 0
    return result
