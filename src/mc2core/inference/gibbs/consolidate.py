"""Merge and remove topics in the burn-in of a start (docs/model.md, section 2).

Topics that start as clusters of words can have two errors, which sweeps of single tokens hardly correct:

* One true topic is split into two, which share its words or its documents. Each topic is paired with the topic of the
  most similar documents and with the topic of the most similar words. A pair is merged if r q > 1. Here r is the
  density ratio of the merged and the current state (:mod:`mc2core.inference.gibbs.topic_moves`), and q is the
  probability of drawing the two current topics by sequential allocation.
* A topic is an artefact that consists of a few words of several other topics. Its tokens are distributed among all
  other topics, one by one, each given the tokens before it. The product of the sums of their weights,

      prod_ji sum_m' (n_jm' + omega tau_km') (n_m'w + s) / (n_m' + V s),    k = z_j,  m' other than m,

  estimates the probability of the tokens' words without topic m, with one particle. The corresponding estimate with
  topic m is the joint probability of the words and of their assignment to m, divided by the product of the
  probabilities of drawing each token into m given all other tokens. The topic is removed if the first estimate is
  larger.

Neither step leaves the posterior invariant, so both are used only in a start.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import MIN_POSITIVE, log_gamma, log_rising_factorial
from mc2core.compute.streams import index_of
from mc2core.inference.gibbs.assignments import Assignments, count_topics, topics_of_words
from mc2core.inference.gibbs.tokens import TopicConstants
from mc2core.inference.gibbs.topic_components import (
    Tokens,
    allocate_sequentially,
    list_cells,
    list_tokens,
    reset_word_counts,
)
from mc2core.inference.gibbs.topic_moves import TopicSlots, keep_merge, new_components, weigh_merge
from mc2core.inference.gibbs.weights import Concentrations


# -- merging duplicate topics ---------------------------------------------------------------------------------
def nearest(counts: sp.csr_matrix) -> np.ndarray:
    """Return, for each column, the other column with the largest cosine, (M,) int64."""
    products = (counts.T @ counts).toarray().astype(np.float64)
    lengths = np.sqrt(np.maximum(products.diagonal(), 1.0))
    cosines = products / lengths / lengths[:, None]
    np.fill_diagonal(cosines, -1.0)
    return cosines.argmax(axis=1)


@kernel
def _merge(key, pairs, end, tokens, topics, constants, parts):
    """Merge the topics of each pair in turn, if both still exist and the merged state is better."""
    stream = np.zeros(2, np.uint64)
    for number in range(len(pairs)):
        a, b = pairs[number]
        if tokens.size[a] == 0 or tokens.size[b] == 0:
            continue
        log_ratio, n, eps = weigh_merge(a, b, tokens, topics, constants, parts)
        if not log_ratio > 0.0:  # the probability of the components can only lower the ratio
            continue
        streams.seek(stream, key, number)
        fixed = min(np.int64(streams.uniform(stream) * n), n - 1)
        first_topic = np.int64(tokens.topic[parts.members[fixed]])
        log_q, n_words = allocate_sequentially(
            stream, n, fixed, first_topic, -log_ratio, eps, tokens, constants, parts, None
        )
        reset_word_counts(n_words, parts)
        if log_ratio + log_q > 0.0:
            end = keep_merge(a, b, end, n, n_words, tokens, topics, constants, parts)


def merge_topics(
    assignments: Assignments, content: sp.csr_matrix, tau: np.ndarray, tokens: Tokens, constants: TopicConstants,
    key: np.uint64
) -> np.ndarray:  # fmt: skip
    """Merge topics in place, drop empty ones, and return tau, (K, M + 1) float64."""
    (n_documents, n_words), n_topics = content.shape, assignments.n_topics
    n_wm = topics_of_words(content, assignments.topic, n_topics)
    rows = count_topics(assignments)
    n_jm = sp.csr_matrix((rows.n.astype(np.int64), rows.topic, rows.start), (n_documents, n_topics))
    partners = np.stack([nearest(n_jm), nearest(sp.csr_matrix(n_wm, dtype=np.int64))], axis=1)
    smallest = np.argsort(n_wm.sum(axis=0), kind="stable")
    pairs = np.stack([smallest.repeat(2), partners[smallest].ravel()], axis=1)
    by_topic, eps = np.ascontiguousarray(tau[:, :-1].T), assignments.topic_weights.copy()
    topics = TopicSlots(n_wm, eps, by_topic, np.zeros(n_topics))
    parts = new_components(len(assignments.topic), n_documents, n_words, len(tau), 0)
    _merge(key, pairs, list_tokens(tokens), tokens, topics, constants, parts)
    used = tokens.size > 0
    assignments.topic_weights = eps
    assignments.count(assignments.n_clusters)
    assignments.compact()
    return np.column_stack([by_topic[used].T, tau[:, -1]])


# -- removing artefacts ---------------------------------------------------------------------------------------
@inner_kernel
def _gather(m, tokens, members):
    """Write the tokens of topic m to ``members`` in ascending order; return their number."""
    n = 0
    for i in range(tokens.topic.size):
        if tokens.topic[i] == m:
            members[n] = i
            n += 1
    return n


@numba.njit(inline="always")
def count_document(j, start, tokens, n_j):
    """Count the tokens of document j in each topic."""
    n_j[:] = 0.0
    for i in range(start[j], start[j + 1]):
        n_j[tokens.topic[i]] += 1.0


@inner_kernel
def log_probabilities(m, members, n, start, n_wm, n_m, tau, tokens, constants):
    """Return two log probabilities of the n ``members`` of topic m, given tau, with theta and psi summed out.

    The first is the log joint probability of their words and of their assignment to m. The second is the sum over
    members of ln of the probability of topic m given the topics of all other tokens. The normalising constants
    (N_j + omega) of documents are left out, because they are the same for all topics.
    """
    omega, s, vs, document = constants.omega, constants.s, constants.vs, tokens.document
    n_j, inverse = np.empty((2, n_m.size))
    for t in range(n_m.size):
        inverse[t] = 1.0 / (n_m[t] + vs) if n_m[t] > 0 and t != m else 0.0
    result, chosen, log_gamma_s, end = log_gamma(vs) - log_gamma(vs + n), 0.0, log_gamma(s), 0
    for w in range(n_wm.shape[0]):
        if n_wm[w, m] > 0:
            result += log_gamma(n_wm[w, m] + s) - log_gamma_s
    while end < n:
        begin, j = end, document[members[end]]
        while end < n and document[members[end]] == j:
            end += 1
        row = tau[tokens.cluster[j]]
        result += log_rising_factorial(max(omega * row[m], MIN_POSITIVE), end - begin)
        count_document(j, start, tokens, n_j)
        for i in range(begin, end):
            w, total = tokens.word[members[i]], 0.0
            for t in range(n_m.size):
                total += (n_j[t] + omega * row[t]) * (n_wm[w, t] + s) * inverse[t]
            own = max(n_j[m] - 1.0 + omega * row[m], MIN_POSITIVE) * (n_wm[w, m] - 1 + s) / (n - 1 + vs)
            chosen += math.log(own / (own + total))
    return result, chosen


@inner_kernel
def reassign_tokens(stream, m, members, n, start, n_wm, n_m, tau, tokens, constants, new):
    """Draw topics other than m for the n ``members`` of topic m, write them to ``new``, and update the counts.

    Returns the sum over members of ln of the total weight of the topics.
    """
    n_j, prior, inverse, weights = np.empty((4, n_m.size))
    for i in range(n):
        n_wm[tokens.word[members[i]], m] -= 1
    n_m[m], other = 0, -1
    for t in range(n_m.size):
        inverse[t] = 1.0 / (n_m[t] + constants.vs) if n_m[t] > 0 else 0.0
        if n_m[t] > 0:
            other = t
    result, end = 0.0, 0
    while end < n:
        begin, j = end, tokens.document[members[end]]
        while end < n and tokens.document[members[end]] == j:
            end += 1
        row = tau[tokens.cluster[j]]
        scale = constants.omega / max(1.0 - row[m], MIN_POSITIVE)
        for t in range(n_m.size):
            prior[t] = max(scale * row[t], MIN_POSITIVE)
        count_document(j, start, tokens, n_j)
        for i in range(begin, end):
            w, total = tokens.word[members[i]], 0.0
            for t in range(n_m.size):
                weights[t] = (n_j[t] + prior[t]) * (n_wm[w, t] + constants.s) * inverse[t]
                total += weights[t]
            chosen = index_of(weights, n_m.size, streams.uniform(stream) * total, other)
            result += math.log(total)
            new[i] = chosen
            n_j[chosen] += 1.0
            n_wm[w, chosen] += 1
            n_m[chosen] += 1
            inverse[chosen] = 1.0 / (n_m[chosen] + constants.vs)
    return result


@inner_kernel
def _put_back(m, members, n, n_wm, n_m, tokens, new):
    """Restore the counts of topic m and of the topics ``new`` after a rejected removal."""
    for i in range(n):
        w = tokens.word[members[i]]
        n_wm[w, new[i]] -= 1
        n_m[new[i]] -= 1
        n_wm[w, m] += 1
    n_m[m] = n


@kernel
def _remove(key, order, most, start, n_wm, n_m, tau, tokens, constants):
    """Try to remove the topics of at most ``most`` tokens, in ``order``; tau is renormalised after each removal."""
    stream, members, new = np.zeros(2, np.uint64), np.empty(most, np.int64), np.empty(most, np.int32)
    for m in order:
        if n_m[m] == 0 or n_m[m] > most:
            continue
        streams.seek(stream, key, m)
        n = _gather(m, tokens, members)
        kept, chosen = log_probabilities(m, members, n, start, n_wm, n_m, tau, tokens, constants)
        shared = reassign_tokens(stream, m, members, n, start, n_wm, n_m, tau, tokens, constants, new)
        if not shared > kept - chosen:
            _put_back(m, members, n, n_wm, n_m, tokens, new)
            continue
        for i in range(n):
            tokens.topic[members[i]] = new[i]
        for k in range(tau.shape[0]):
            others = max(1.0 - tau[k, m], MIN_POSITIVE)
            for t in range(tau.shape[1]):
                tau[k, t] = 0.0 if t == m else tau[k, t] / others


def remove_topics(
    assignments: Assignments, content: sp.csr_matrix, tau: np.ndarray, tokens: Tokens, constants: TopicConstants,
    key: np.uint64
) -> np.ndarray:  # fmt: skip
    """Remove artefacts in place, smallest first and none larger than the mean size; return tau, (K, M + 1) float64."""
    n_topics = assignments.n_topics
    n_wm = topics_of_words(content, assignments.topic, n_topics)
    n_m = n_wm.sum(axis=0, dtype=np.int64)
    tau, order = tau.copy(), np.argsort(n_m, kind="stable")
    _remove(
        key, order, len(assignments.topic) // n_topics, assignments.document_start, n_wm, n_m, tau, tokens, constants
    )  # fmt: skip
    used = n_m > 0
    lost = float(assignments.topic_weights[~used].sum())
    assignments.topic_weights = np.where(used, assignments.topic_weights / (1.0 - lost), 0.0)
    assignments.remaining /= 1.0 - lost
    assignments.count(assignments.n_clusters)
    assignments.compact()
    return np.ascontiguousarray(tau[:, np.append(used, True)])


def consolidate_topics(
    assignments: Assignments, content: sp.csr_matrix, tau: np.ndarray, omega: float, concentrations: Concentrations,
    topic_word_prior: float, seed: int, iteration: int
) -> np.ndarray:  # fmt: skip
    """Merge duplicate topics, then remove artefacts, in place.

    Parameters and result are as in :func:`.tokens.sweep_document_topics`; ``seed`` and ``iteration`` identify the
    random streams.
    """
    start, n_tokens = assignments.document_start, len(assignments.topic)
    document, word = np.empty((2, n_tokens), np.int32)
    list_cells(0, content.shape[0], content.indptr, content.indices, content.data, start, document, word)
    constants = TopicConstants(
        float(omega), float(concentrations.table), float(concentrations.topic), topic_word_prior,
        topic_word_prior * content.shape[1],
    )  # fmt: skip
    tokens = Tokens(
        document, word, assignments.topic, assignments.cluster, np.empty(2 * n_tokens, np.int32),
        *np.zeros((2, assignments.n_topics), np.int64),
    )  # fmt: skip
    given = assignments, content
    if assignments.n_topics > 1:
        tau = merge_topics(*given, tau, tokens, constants, streams.key(seed, "join topics", iteration))
    if assignments.n_topics > 1:
        tau = remove_topics(*given, tau, tokens, constants, streams.key(seed, "dissolve topics", iteration))
    return tau
