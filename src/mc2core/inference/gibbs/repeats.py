"""Words that repeat within a document: burstiness (docs/model.md, section 2; docs/notes/burstiness.md).

A document's words are drawn from DP(b, sum_m theta_jm psi_m). A token with i tokens before it is a new *draw* from the
document's topics with probability b / (i + b); otherwise, it repeats one of the i tokens. A word that occurs ten times
in a document may thus be a single draw. Only draws have topics. Given the draws, all moves of
:mod:`mc2core.inference.gibbs.state` apply to a corpus that contains each draw once. This module assigns tokens to draws
given the topics of the draws:

    P(token joins a draw of its word)     prop. to the tokens of the draw
    P(token is a new draw, of topic m)    prop. to b (n_jm + omega tau_km) / (N_j + omega) (n_mw + s) / (n_m + V s)

where counts are numbers of draws without this token. A token that is the only draw of its topic does not move, and this
move adds no topic. With this restriction, the move is a Gibbs step. New topics are added by
:mod:`mc2core.inference.gibbs.tokens`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core.base.checks import MAX_PRIOR, MIN_PRIOR
from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.records import record
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.weights import GammaPrior

#: starting value and Gamma prior of b, for documents of hundreds of tokens
START, PRIOR = 100.0, GammaPrior(1.0, 0.001)


@dataclass
class Repeats:
    """Partition of the tokens of a corpus into draws.

    Attributes
    ----------
    content : (J, V) csr_matrix
        Counts of tokens, as in the corpus.
    size : (n_draws,) int32, >= 1
        Number of tokens of each draw; draws are ordered by document and word.
    concentration : float
        Burst concentration b.
    """

    content: sp.csr_matrix
    size: np.ndarray
    concentration: float

    @classmethod
    def first(cls, content: sp.csr_matrix) -> Repeats:
        """Return the starting partition, with one draw per word of a document."""
        return cls(content, content.data.astype(np.int32), START)

    def log_density(self, n_draws: np.ndarray) -> list[float]:
        """Return the terms of ln p(draws | b) in nats, given the number of draws of each document, ``n_draws`` (J,)."""
        b, lengths = self.concentration, np.asarray(self.content.sum(axis=1)).ravel()
        of_documents = (gammaln(b) - gammaln(b + lengths)).sum()
        return [of_documents, n_draws.sum() * math.log(b), gammaln(self.size).sum()]

    def draw_concentration(self, n_draws: np.ndarray, rng: np.random.Generator) -> None:
        """Draw b given the number of draws per document, with the auxiliary variables of Escobar and West (1995)."""
        lengths = np.asarray(self.content.sum(axis=1)).ravel()
        lengths, b = lengths[lengths > 0], self.concentration
        shape = PRIOR.shape + n_draws.sum() - (rng.random(len(lengths)) * (lengths + b) < lengths).sum()
        rate = PRIOR.rate - np.log(np.maximum(rng.beta(b + 1.0, lengths), np.finfo(float).tiny)).sum()
        self.concentration = float(np.clip(rng.gamma(shape) / rate, MIN_PRIOR, MAX_PRIOR))


def distinct(corpus: Corpus) -> Corpus:
    """Return the corpus with all positive counts set to 1."""
    return with_draws(corpus, np.zeros(0, np.int64), corpus.content[:0])


def with_draws(corpus: Corpus, known: np.ndarray, content: sp.csr_matrix) -> Corpus:
    """Return the corpus of draws: ``content`` has the draws of the documents ``known``, in the order of the corpus.

    All other documents have one draw per word.
    """
    draws = np.ones_like(corpus.content.data)
    is_known = np.isin(np.arange(corpus.n_documents), known)
    draws[np.repeat(is_known, np.diff(corpus.content.indptr))] = content.data
    return corpus.with_documents(_like(corpus.content, draws), corpus.contexts)


def _like(content: sp.csr_matrix, data: np.ndarray) -> sp.csr_matrix:
    """Return a matrix with the cells of ``content`` and new values, with the same writability.

    Kernels are compiled separately for writable and for read-only arrays.
    """
    data.setflags(write=content.data.flags.writeable)
    return sp.csr_matrix((data, content.indices, content.indptr), shape=content.shape)


def draws_of_cells(content: sp.csr_matrix, size: np.ndarray) -> sp.csr_matrix:
    """Return the number of draws of each word in each document, (J, V) CSR, given the sizes of all draws in order.

    Raises ValueError if the sizes do not add up to the counts ``content``.
    """
    ends = np.cumsum(content.data, dtype=np.int64)
    until = np.searchsorted(np.cumsum(size, dtype=np.int64), ends)
    draws = np.diff(until, prepend=-1).astype(content.data.dtype)
    if (size < 1).any() or size.sum() != content.data.sum() or not np.array_equal(np.cumsum(size)[until], ends):
        raise ValueError("draw_sizes do not add up to the counts of the corpus")
    return _like(content, draws)


@record
class _Counts(NamedTuple):
    """Counts of draws; moves update them in place."""

    n_j: np.ndarray  # (M,) int32: draws of the current document in each topic
    n_wm: np.ndarray  # (V, M) int32: draws of each word in each topic
    n_m: np.ndarray  # (M,) int64: draws of each topic


class _Constants(NamedTuple):
    b: float
    omega: float
    s: float
    vs: float  # V s


@record
class _Weights(NamedTuple):
    """Weights of the topics for a new draw, and their factors."""

    prior: np.ndarray  # (M,) float64: omega tau_k
    factor: np.ndarray  # (M,) float64: (n_jm + prior) / (n_m + V s)
    of_word: np.ndarray  # (M,) float64: weights, factor * (n_mw + s)


@numba.njit(inline="always")
def _weigh_word(w, n_wm, s, weights):
    """Compute the weights of word w; return their sum. Separate loops let the compiler vectorise the first one."""
    factor, of_word = weights.factor, weights.of_word
    for m in range(of_word.size):
        of_word[m] = factor[m] * (n_wm[w, m] + s)
    one, two, three, four, m = 0.0, 0.0, 0.0, 0.0, 0
    while m + 4 <= of_word.size:
        one, two, three, four = one + of_word[m], two + of_word[m + 1], three + of_word[m + 2], four + of_word[m + 3]
        m += 4
    while m < of_word.size:
        one += of_word[m]
        m += 1
    return (one + two) + (three + four)


@numba.njit(inline="always")
def _add_draw(m, w, sign, counts, constants, weights):
    """Add a draw of word w to topic m (``sign`` 1) or remove it (-1); return the change of the sum of weights."""
    n_j, n_wm, n_m = counts.n_j, counts.n_wm, counts.n_m
    prior, factor, of_word = weights.prior, weights.factor, weights.of_word
    n_j[m] += sign
    n_wm[w, m] += sign
    n_m[m] += sign
    before = of_word[m]
    factor[m] = (n_j[m] + prior[m]) / (n_m[m] + constants.vs)
    of_word[m] = factor[m] * (n_wm[w, m] + constants.s)
    return of_word[m] - before


@numba.njit(inline="always")
def _pick(u, weights, n):
    """Return the index below n at the cumulative weight ``u``; n - 1 if ``u`` exceeds the sum by rounding."""
    i = 0
    while i < n - 1 and u >= weights[i]:
        u -= weights[i]
        i += 1
    return i


@numba.njit(inline="always")
def _move_token(stream, w, j_draws, sizes, topics, n, weights, total, counts, constants):
    """Move a random token of word w to one of the ``n`` draws of the word or to a new draw.

    ``total`` is the sum of the weights. Returns the number of draws of the word, the number of draws of the document,
    and the sum of the weights.
    """
    n_tokens = 0
    for d in range(n):
        n_tokens += sizes[d]
    d = _pick(streams.uniform(stream) * n_tokens, sizes, n)
    m = topics[d]
    is_alone = sizes[d] == 1
    if is_alone and counts.n_m[m] == 1:
        return n, j_draws, total
    sizes[d] -= 1
    if is_alone:
        n, j_draws = n - 1, j_draws - 1
        sizes[d], topics[d] = sizes[n], topics[n]
        total += _add_draw(m, w, -1, counts, constants, weights)
    u = streams.uniform(stream) * (n_tokens - 1 + constants.b * total / (j_draws + constants.omega))
    if u < n_tokens - 1:
        sizes[_pick(u, sizes, n)] += 1
        return n, j_draws, total
    m = _pick(streams.uniform(stream) * total, weights.of_word, weights.of_word.size)
    sizes[n], topics[n] = 1, m
    return n + 1, j_draws + 1, total + _add_draw(m, w, 1, counts, constants, weights)


@kernel
def _sweep(key, cells, before, cluster, priors, counts, constants, after):
    """Move the tokens of repeated words, each once on average; return the number of draws.

    ``cells`` contains indptr, indices and token counts of the corpus. ``before`` contains the number of draws per cell,
    and the sizes and topics of the draws. The new values are written to ``after``, whose last two arrays have room for
    all tokens. ``priors`` (K, M) is omega tau.
    """
    indptr, indices, n_tokens = cells
    draws, size, topic = before
    new_draws, new_size, new_topic = after
    n_j, n_wm, n_m = counts.n_j, counts.n_wm, counts.n_m
    n_topics = n_m.size
    stream, factor, of_word = np.zeros(2, np.uint64), np.empty(n_topics), np.empty(n_topics)
    read, written = 0, 0
    for j in range(cluster.size):
        prior, first = priors[cluster[j]], read
        j_draws = draws[indptr[j] : indptr[j + 1]].sum()
        streams.seek(stream, key, j)
        for i in range(first, first + j_draws):
            n_j[topic[i]] += 1
        for m in range(n_topics):
            factor[m] = (n_j[m] + prior[m]) / (n_m[m] + constants.vs)
        weights = _Weights(prior, factor, of_word)
        for cell in range(indptr[j], indptr[j + 1]):
            n, w = draws[cell], indices[cell]
            for d in range(n):
                new_size[written + d], new_topic[written + d] = size[read + d], topic[read + d]
            read += n
            if n_tokens[cell] > 1:
                total = _weigh_word(w, n_wm, constants.s, weights)
                end = written + n_tokens[cell]
                sizes, topics = new_size[written:end], new_topic[written:end]
                for _ in range(n_tokens[cell]):
                    n, j_draws, total = _move_token(
                        stream, w, j_draws, sizes, topics, n, weights, total, counts, constants
                    )
            new_draws[cell] = n
            written += n
        for i in range(written - j_draws, written):
            n_j[new_topic[i]] = 0
    return written


def move_draws(
    repeats: Repeats, content: sp.csr_matrix, topic: np.ndarray, cluster: np.ndarray, priors: np.ndarray,
    n_wm: np.ndarray, omega: float, topic_word_prior: float, key: np.uint64
) -> tuple[sp.csr_matrix, np.ndarray]:  # fmt: skip
    """Move tokens between draws, and update ``repeats`` in place.

    Parameters
    ----------
    repeats : Repeats
    content : (J, V) csr_matrix
        Number of draws of each word in each document.
    topic : (n_draws,) int32
        Topic of each draw.
    cluster : (J,) int32
        Cluster of each document.
    priors : (K, M) float64
        omega tau.
    n_wm : (V, M) int32
        Draws of each word in each topic; updated in place.

    Returns
    -------
    (J, V) csr_matrix
        New number of draws of each word in each document.
    (n_draws,) int32
        Topic of each draw.
    """
    tokens, n_m = repeats.content, n_wm.sum(axis=0, dtype=np.int64)
    total = int(tokens.data.sum(dtype=np.int64))
    draws, size, found = np.empty_like(content.data), np.empty(total, np.int32), np.empty(total, np.int32)
    constants = _Constants(repeats.concentration, omega, topic_word_prior, topic_word_prior * n_wm.shape[0])
    counts, before = _Counts(np.zeros(len(n_m), np.int32), n_wm, n_m), (content.data, repeats.size, topic)
    cells = tokens.indptr, tokens.indices, tokens.data
    n_draws = _sweep(key, cells, before, cluster, priors, counts, constants, (draws, size, found))
    repeats.size = size[:n_draws].copy()
    return _like(content, draws), found[:n_draws].copy()
