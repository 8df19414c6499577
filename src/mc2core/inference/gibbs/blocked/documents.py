"""Blocked draws of documents' clusters given the measures, their tokens' topics summed out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log

_FLOOR = np.float32(1e-37)  # of a word's mass under a cluster
_HOPELESS = 45.0  # nats
_WORDS_AT_ONCE = 16


class Documents(NamedTuple):
    """The corpus document by document."""

    indptr: np.ndarray  # (J + 1,) integers
    words: np.ndarray  # (cells,) integers
    counts: np.ndarray  # (cells,) integers
    start: np.ndarray  # (J + 1,) int64: first token of each document
    topic: np.ndarray  # (n_tokens,) int32


class LogFactors(NamedTuple):
    """Factors of a document's weights that do not depend on its contexts, a column for each big cluster."""

    pi: np.ndarray  # (K,) float64
    small: np.ndarray  # (small topics, K) float64: ln tau
    words: np.ndarray  # (V, K) float32: of a token of the word in big topics, at most 0


class DocumentWork(NamedTuple):
    """The document at hand and its weights."""

    weight: np.ndarray  # (K,) float64
    active: np.ndarray  # (K,) int64: columns that are not left out, as many as there are
    moving: np.ndarray  # (widest,) float64: tokens in big topics of each of its words
    still: np.ndarray  # (longest + 1,) int64: its tokens in small topics


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
def _document_work(first, last, documents, n_clusters):
    """Scratch memory for documents first..last-1."""
    widest, longest = 0, 0
    for j in range(first, last):
        widest = max(widest, documents.indptr[j + 1] - documents.indptr[j])
        longest = max(longest, documents.start[j + 1] - documents.start[j])
    weight, active = np.zeros(n_clusters, np.float64), np.zeros(n_clusters, np.int64)
    return DocumentWork(weight, active, np.zeros(widest, np.float64), np.zeros(longest + 1, np.int64))


@kernel(error_model="numpy", fastmath={"contract"})
def _weigh_small(j, documents, topics, log_small, work):
    """Add ln tau of document j's tokens in small topics to its weights, and count those in big ones: work.moving."""
    indptr, counts, topic = documents.indptr, documents.counts, documents.topic
    column, place = topics.column, topics.place
    weight, moving, still = work.weight, work.moving, work.still
    begin, end = documents.start[j], documents.start[j + 1]
    # tokens in small topics are few: they are listed in a loop without branches, and taken from their words' counts
    n_still = 0
    for i in range(begin, end):
        still[n_still] = i
        if column[topic[i]] < 0:
            n_still += 1
    for i in range(n_still):
        for k in range(weight.size):
            weight[k] += log_small[place[topic[still[i]]], k]
    still[n_still] = end
    past = begin
    i = 0
    for c in range(indptr[j + 1] - indptr[j]):
        moving[c] = counts[indptr[j] + c]
        past += counts[indptr[j] + c]
        while still[i] < past:
            moving[c] -= 1.0
            i += 1


@kernel(error_model="numpy", fastmath={"contract"})
def _weigh_words(words, log_mass, here, work):
    """Add the document's words to its weights; returns the number of columns that are not hopeless.

    Every column starts from ln pi + ln f(x_j) and only falls as words are added, because ``log_mass`` is at most 0.
    So a column that has fallen ``_HOPELESS`` below the document's present cluster, ``here``, is left out from there on:
    its probability is below 1e-19, less than the rounding of the sum.
    """
    weight, active, moving = work.weight, work.active, work.moving
    n_words, n_clusters = words.size, weight.size
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
    return n_active


@kernel(error_model="numpy", fastmath={"contract"})
def _exponentiate(weight, active, n_active):
    """weight = exp(weight - max) of the active columns, in place; returns the sum."""
    top = -np.inf
    for a in range(n_active):
        top = max(top, weight[active[a]])
    total = 0.0
    for a in range(n_active):
        weight[active[a]] = exp(weight[active[a]] - top)
        total += weight[active[a]]
    return total


@kernel(error_model="numpy", fastmath={"contract"})
def draw_clusters(key, first, last, documents, topics, factors, log_context, is_big, cluster):
    """z_j of documents first..last-1 in big clusters: ``cluster`` gets the column drawn, in place.

    Returns the first document whose weights have no finite sum above 0, or -1.

    Parameters
    ----------
    documents : Documents; topics : CutTopics; factors : LogFactors
    log_context : (last - first, K), or (0, K) without contexts; is_big : (K',) int32, column of each cluster, or -1
    """
    stream = np.zeros(2, np.uint64)
    work = _document_work(first, last, documents, factors.pi.size)
    weight, active = work.weight, work.active
    for j in range(first, last):
        here = is_big[cluster[j]]
        if here < 0:
            continue
        # loops: an assignment of arrays makes numba compile the text of its error, which takes seconds
        for k in range(weight.size):
            weight[k] = factors.pi[k]
        if log_context.shape[0] > 0:
            for k in range(weight.size):
                weight[k] += log_context[j - first, k]
        _weigh_small(j, documents, topics, factors.small, work)
        words = documents.words[documents.indptr[j] : documents.indptr[j + 1]]
        n_active = _weigh_words(words, factors.words, here, work)
        total = _exponentiate(weight, active, n_active)
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
