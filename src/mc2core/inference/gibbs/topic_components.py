"""The two components of a split of a topic, or of a merge of two topics.

Their counts, the sequential allocation of tokens to them, and the parts of the Metropolis-Hastings ratio that depend on
them. :mod:`mc2core.inference.gibbs.topic_moves` describes the state and the proposals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.special import MAX_FACTORS, MIN_POSITIVE, exp, log_gamma, log_rising_factorial
from mc2core.compute.streams import log_gamma_variate
from mc2core.families.contents import add_observation, log_densities
from mc2core.inference.gibbs.weights import expect_table_shape, expect_tables

_SMALL = 1e-150  # below this value, a product of probabilities is replaced by its logarithm to avoid underflow
_PASSES = 4  # fixed-point iterations of the estimated shares


@record
class Tokens(NamedTuple):
    """Tokens in CSR order. ``order[first[m] : first[m] + size[m]]`` lists the tokens of topic m in ascending order."""

    document: np.ndarray  # (N,) int32: document of each token
    word: np.ndarray  # (N,) int32: word of each token
    topic: np.ndarray  # (N,) int32: topic of each token
    cluster: np.ndarray  # (J,) int32: cluster of each document
    order: np.ndarray  # (2 N,) int32: lists of token indices
    first: np.ndarray  # (slots,) int64: start of each topic's list in ``order``
    size: np.ndarray  # (slots,) int64: number of tokens of each topic


@record
class SplitComponents(NamedTuple):
    """Assignment of the member tokens to components 0 and 1, with counts and estimates per component."""

    members: np.ndarray  # (N,) int32: indices of the member tokens, ascending
    word: np.ndarray  # (N,) int32: word of each member
    end: np.ndarray  # (J,) int64: end of each document's members in ``members``
    component: np.ndarray  # (N,) int8: component (0 or 1) of each member
    rows: np.ndarray  # (J,) int64: documents of the members in the order of a sequential pass
    n_w: np.ndarray  # (V, 2) int32: tokens of each word in each component
    size: np.ndarray  # (2,) int64: tokens of each component
    words: np.ndarray  # (V,) int64: distinct words of the members
    # documents by cluster and number of tokens, for component 0, component 1 and both (axis 0)
    few: np.ndarray  # (3, K, MAX_FACTORS + 1) int32: number of documents per number of tokens, up to MAX_FACTORS
    most: np.ndarray  # (3,) int64: largest number of tokens with a nonzero count in ``few``
    many: np.ndarray  # (3, J, 2) int32: cluster and number of tokens of each document with more than MAX_FACTORS
    n_many: np.ndarray  # (3,) int64: number of rows in use of ``many``
    weights: np.ndarray  # (slots,) float64: weights of the candidate partners of a merge
    # accepted proposal: the two topics of the components, the number of members, the number of distinct words
    change: np.ndarray  # (4,) int64
    tau: np.ndarray  # (K,) float64: tau of both components together
    share: np.ndarray  # (2, K) float64: estimated shares of tau
    log_share: np.ndarray  # (2, K) float64: logarithms of the drawn shares of tau
    tables: np.ndarray  # (2, K) float64: expected tables
    shape: np.ndarray  # (2, K) float64: expected tables minus their variance
    eps_share: np.ndarray  # (2,) float64: estimated shares of epsilon
    eps_log_share: np.ndarray  # (2,) float64: logarithms of the drawn shares of epsilon
    eps_tables: np.ndarray  # (2,) float64: expected tables at the upper level, whose customers are tables


@kernel
def list_cells(first, last, indptr, indices, counts, start, document, word):
    """Write the document and word of every token of documents first..last-1 into ``document`` and ``word``."""
    for j in range(first, last):
        i = start[j]
        for cell in range(indptr[j], indptr[j + 1]):
            for _ in range(counts[cell]):
                document[i], word[i] = j, indices[cell]
                i += 1


@kernel
def list_tokens(tokens):
    """Rebuild the token list of every topic; return the total length of the lists in ``order``."""
    topic, order, first, size = tokens.topic, tokens.order, tokens.first, tokens.size
    size[:] = 0
    for m in topic:
        size[m] += 1
    place = 0
    for m in range(size.size):
        first[m] = place
        place += size[m]
        size[m] = 0
    for i in range(topic.size):
        m = topic[i]
        order[first[m] + size[m]] = i
        size[m] += 1
    return place


@inner_kernel
def gather(a, b, tokens, parts):
    """Write the tokens of topics a and b (a may equal b) into ``members`` in ascending order; return their number."""
    order, members, document = tokens.order, parts.members, tokens.document
    i, j, n, n_documents = tokens.first[a], tokens.first[b], 0, 0
    end_i, end_j = i + tokens.size[a], j + tokens.size[b]
    if a == b:
        j = end_j
    while i < end_i or j < end_j:
        if j == end_j or (i < end_i and order[i] < order[j]):
            token = order[i]
            i += 1
        else:
            token = order[j]
            j += 1
        if n > 0 and document[token] != document[members[n - 1]]:
            parts.end[n_documents] = n
            n_documents += 1
        members[n], parts.word[n] = token, tokens.word[token]
        n += 1
    parts.end[n_documents] = n
    return n


@inner_kernel
def count_components(n, parts):
    """Count the words of the first n members in both components; return the number of distinct words."""
    component, n_w, words, n_words = parts.component, parts.n_w, parts.words, 0
    parts.size[:] = 0
    for i in range(n):
        w = parts.word[i]
        if n_w[w, 0] + n_w[w, 1] == 0:
            words[n_words] = w
            n_words += 1
        n_w[w, component[i]] += 1
        parts.size[component[i]] += 1
    return n_words


@inner_kernel
def reset_word_counts(n_words, parts):
    """Reset the word counts of both components to 0."""
    for i in range(n_words):
        parts.n_w[parts.words[i], 0] = 0
        parts.n_w[parts.words[i], 1] = 0


@inner_kernel(forceinline=True)
def _count_document(which, k, n_j, parts):
    if n_j > MAX_FACTORS:
        parts.many[which, parts.n_many[which], 0], parts.many[which, parts.n_many[which], 1] = k, n_j
        parts.n_many[which] += 1
    else:  # n_j = 0 is counted too but never read; a test for it would be a branch that is hard to predict
        parts.few[which, k, n_j] += 1
        parts.most[which] = max(parts.most[which], n_j)


@inner_kernel
def count_documents(n, tokens, parts):
    """Count the documents of the first n members by their number of tokens in each component and in both."""
    for which in range(3):
        parts.few[which, :, : parts.most[which] + 1] = 0
        parts.most[which] = parts.n_many[which] = 0
    end, row = 0, 0
    while end < n:
        begin, end, row = end, parts.end[row], row + 1
        k, n_1 = tokens.cluster[tokens.document[parts.members[begin]]], 0
        for i in range(begin, end):
            n_1 += parts.component[i]
        _count_document(0, k, end - begin - n_1, parts)
        _count_document(1, k, n_1, parts)
        _count_document(2, k, end - begin, parts)


@inner_kernel(forceinline=True)
def _expect_tables_of(which, k, n_j, n_documents, constants, parts):
    """Add the expected tables of ``n_documents`` documents of cluster k with n_j tokens each in component ``which``."""
    tables = shape = 1.0
    if n_j > 1:
        a = constants.omega * max(parts.tau[k] * parts.share[which, k], MIN_POSITIVE)
        tables += expect_tables(a, n_j)
        shape += expect_table_shape(a, n_j)
    parts.tables[which, k] += n_documents * tables
    parts.shape[which, k] += n_documents * shape


@inner_kernel
def _expect_tables(constants, parts):
    """Compute ``tables`` and ``shape`` of both components in each cluster, at the estimated shares."""
    parts.tables[:] = 0.0
    parts.shape[:] = 0.0
    for which in range(2):
        for k in range(parts.tau.size):
            for n_j in range(1, parts.most[which] + 1):
                if parts.few[which, k, n_j] > 0:
                    _expect_tables_of(which, k, n_j, np.int64(parts.few[which, k, n_j]), constants, parts)
        for i in range(parts.n_many[which]):
            of, length = np.int64(parts.many[which, i, 0]), np.int64(parts.many[which, i, 1])
            _expect_tables_of(which, of, length, 1, constants, parts)


@inner_kernel
def estimate_components(n, eps, tokens, constants, parts):
    """Estimate each component's shares of epsilon and of every tau, in place.

    Each of the ``_PASSES`` passes computes the shares from the tables expected at the shares of the previous pass.
    """
    count_documents(n, tokens, parts)
    parts.share[:] = 0.5
    parts.eps_share[:] = 0.5
    for _ in range(_PASSES):
        _expect_tables(constants, parts)
        for which in range(2):
            a, tables = constants.v * eps * parts.eps_share[which], 0.0
            for k in range(parts.tau.size):
                if parts.tables[which, k] > 0.0:
                    tables += 1.0 + expect_tables(a, parts.tables[which, k])
            parts.eps_tables[which] = max(tables, 1.0)
        total = parts.eps_tables[0] + parts.eps_tables[1]
        for which in range(2):
            parts.eps_share[which] = parts.eps_tables[which] / total
        prior = constants.v * eps
        for k in range(parts.tau.size):
            total = prior + parts.tables[0, k] + parts.tables[1, k]
            for which in range(2):
                parts.share[which, k] = (prior * parts.eps_share[which] + parts.tables[which, k]) / total


@numba.njit(inline="always")
def _shuffle_documents(stream, n, parts):
    """Write the documents of the first n members in random order into ``parts.rows``; return their number."""
    rows, n_documents, end = parts.rows, 0, 0
    while end < n:  # an inside-out shuffle
        r = np.int64(streams.uniform(stream) * (n_documents + 1))
        rows[n_documents], rows[r] = rows[r], n_documents
        end, n_documents = parts.end[n_documents], n_documents + 1
    return n_documents


@inner_kernel
def allocate_sequentially(stream, n, fixed, first_topic, least, eps, tokens, constants, parts, observed):
    """Draw the component of each member in one pass, given the members drawn before it; member ``fixed`` is in 0.

    Documents come in random order. The shares are estimated from the expected tables of the earlier documents. Returns
    the log probability of the components and the number of distinct words of the members. If ``first_topic`` >= 0,
    nothing is drawn: tokens of this topic are in component 0, all others in component 1. The pass stops early if its
    log probability falls below ``least``. ``observed`` is None for words; for observations it is their values and
    empty :class:`.ContentTables` of two topics.
    """
    component, n_w, word, words, members = (
        parts.component,
        parts.n_w,
        parts.word,
        parts.words,
        parts.members,
    )
    s, vs, prior, tables = constants.s, constants.vs, constants.v * eps, parts.tables
    n_documents = _shuffle_documents(stream, n, parts)
    tables[:], parts.eps_tables[:] = 0.0, 1.0
    component[fixed], n_0, n_1, result, product = 0, 1.0, 0.0, 0.0, 1.0
    if observed is None:
        words[0], n_words = word[fixed], 1
        n_w[word[fixed], 0] = 1
    else:
        n_words, log_p, powers = 0, np.empty(2), np.empty(2)
        add_observation(observed[1], observed[0], np.int64(members[fixed]), 0, 1)
    for position in range(n_documents):
        row = parts.rows[position]
        begin, end = parts.end[row - 1] if row > 0 else 0, parts.end[row]
        k = tokens.cluster[tokens.document[members[begin]]]
        u_0 = parts.eps_tables[0] / (parts.eps_tables[0] + parts.eps_tables[1])
        a = constants.omega * max(parts.tau[k], MIN_POSITIVE) / (prior + tables[0, k] + tables[1, k])
        a_0 = max(a * (prior * u_0 + tables[0, k]), MIN_POSITIVE)
        a_1 = max(a * (prior * (1.0 - u_0) + tables[1, k]), MIN_POSITIVE)
        n_j0, n_j1 = np.float64(begin <= fixed < end), 0.0
        for i in range(begin, end):
            if i == fixed:
                continue
            is_known, new = first_topic >= 0, np.int8(tokens.topic[members[i]] != first_topic)
            if observed is None:
                w = word[i]
                if n_w[w, 0] + n_w[w, 1] == 0:
                    words[n_words] = w
                    n_words += 1
                x_0 = (n_j0 + a_0) * (n_w[w, 0] + s) * (n_1 + vs)
                x_1 = (n_j1 + a_1) * (n_w[w, 1] + s) * (n_0 + vs)
                if not is_known:
                    new = np.int8(streams.uniform(stream) * (x_0 + x_1) >= x_0)
                product *= (x_1 if new == 1 else x_0) / (x_0 + x_1)
                if product < _SMALL:
                    result += math.log(product)
                    product = 1.0
                n_w[w, new] += 1
            else:
                log_densities(observed[1], observed[0], np.int64(members[i]), 2, log_p, powers)
                odds = math.log((n_j1 + a_1) / (n_j0 + a_0)) + log_p[1] - log_p[0]
                if not is_known:
                    new = np.int8(streams.uniform(stream) * (1.0 + math.exp(-abs(odds))) < math.exp(min(odds, 0.0)))
                result += min(odds if new == 1 else -odds, 0.0) - math.log1p(math.exp(-abs(odds)))
                add_observation(observed[1], observed[0], np.int64(members[i]), np.int64(new), 1)
            is_1 = np.float64(new)
            n_j0, n_j1, n_0, n_1 = n_j0 + 1.0 - is_1, n_j1 + is_1, n_0 + 1.0 - is_1, n_1 + is_1
            component[i] = new
        if result < least:
            break
        _add_expected_tables(0, k, n_j0, a_0, prior * u_0, parts)
        _add_expected_tables(1, k, n_j1, a_1, prior * (1.0 - u_0), parts)
    parts.size[0], parts.size[1] = np.int64(n_0), np.int64(n_1)
    return result + math.log(product), n_words


@inner_kernel(forceinline=True)
def _add_expected_tables(which, k, n_j, a, prior, parts):
    """Add the expected tables of a document's n_j tokens to ``tables``, and the upper-level ones to ``eps_tables``."""
    if n_j > 0.0:
        tables = 1.0 + expect_tables(a, n_j)
        before = parts.tables[which, k]
        parts.eps_tables[which] += 1.0 if before == 0.0 else tables * prior / (prior + before)
        parts.tables[which, k] = before + tables


@numba.njit(inline="always")
def _log_beta(a, b):
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


@inner_kernel
def _draw_log_shares(stream, shapes, means, log_share):
    """Draw ln X / (X + Y) and ln Y / (X + Y), in place, for Gamma variables X and Y with these shapes and means."""
    for which in range(2):
        shape = max(shapes[which], MIN_POSITIVE)
        log_share[which] = log_gamma_variate(stream, shape) + math.log(max(means[which], MIN_POSITIVE) / shape)
    top = max(log_share[0], log_share[1])
    log_sum = top + math.log(math.exp(log_share[0] - top) + math.exp(log_share[1] - top))
    log_share[0] -= log_sum
    log_share[1] -= log_sum


@inner_kernel
def draw_shares(stream, eps, constants, parts):
    """Draw the shares of the components in epsilon and in every tau."""
    _draw_log_shares(stream, parts.eps_tables, parts.eps_tables, parts.eps_log_share)
    prior = np.array([constants.v * eps * exp(parts.eps_log_share[0]), constants.v * eps * exp(parts.eps_log_share[1])])
    shapes, means, log_share = np.empty(2), np.empty(2), np.empty(2)
    for k in range(parts.tau.size):
        for which in range(2):
            shapes[which] = max(prior[which], MIN_POSITIVE) + parts.shape[which, k]
            means[which] = prior[which] + parts.tables[which, k]
        _draw_log_shares(stream, shapes, means, log_share)
        parts.log_share[0, k], parts.log_share[1, k] = log_share


@inner_kernel
def log_eps_ratio(constants, parts):
    """Return ln of the ratio of the prior density of epsilon's shares, eta / (u (1 - u)), to their proposal density."""
    tables, share = parts.eps_tables, parts.eps_log_share
    result = math.log(constants.eta) + _log_beta(tables[0], tables[1])
    return result - tables[0] * share[0] - tables[1] * share[1]


@inner_kernel
def log_tau_ratio(k, eps, constants, parts):
    """Return ln of the ratio of the prior density of tau_k's shares, a Beta, to their proposal density.

    The proposal is u = X / (X + Y) with Gamma variables X and Y of shape e and mean g. The shape e of a component is
    its prior parameter plus ``shape``; g is the prior parameter plus the expected tables, given the drawn share of
    epsilon. If ``shape`` is 0, the proposal is the prior and the result is 0.
    """
    if parts.shape[0, k] + parts.shape[1, k] == 0.0:
        return 0.0
    prior, log_scaled, top, total, result = constants.v * eps, np.empty(2), -np.inf, 0.0, 0.0
    b = prior * np.array([exp(parts.eps_log_share[0]), exp(parts.eps_log_share[1])])
    expected = b[0] + b[1] + parts.tables[0, k] + parts.tables[1, k]
    for which in range(2):
        b_own = max(b[which], MIN_POSITIVE)
        e = b_own + parts.shape[which, k]
        log_rate = math.log(e * expected / max(b_own + parts.tables[which, k], MIN_POSITIVE))
        result += log_gamma(e) - log_gamma(b_own) - e * log_rate
        result -= parts.shape[which, k] * parts.log_share[which, k]
        log_scaled[which] = log_rate + parts.log_share[which, k]
        top, total = max(top, log_scaled[which]), total + e
    result += log_gamma(b[0] + b[1]) - log_gamma(total)
    return result + total * (top + math.log(exp(log_scaled[0] - top) + exp(log_scaled[1] - top)))


@inner_kernel
def log_words_ratio(n_words, constants, parts):
    """Return ln of the ratio of the words' marginal likelihood with two components to that with a single topic."""
    n_w, words, s, vs, log_gamma_s = parts.n_w, parts.words, constants.s, constants.vs, log_gamma(constants.s)
    n_0, n_1, result = parts.size[0], parts.size[1], 0.0
    for i in range(n_words):
        a, b = n_w[words[i], 0], n_w[words[i], 1]
        if a > 0 and b > 0:
            result += log_gamma(a + s) + log_gamma(b + s) - log_gamma(a + b + s) - log_gamma_s
    return result - log_gamma(n_0 + vs) - log_gamma(n_1 + vs) + log_gamma(n_0 + n_1 + vs) + log_gamma(vs)


@inner_kernel
def log_documents_ratio(constants, parts):
    """Return ln of the probability of the members' components relative to a single topic, with theta summed out.

    The drawn shares and the document counts of :func:`count_documents` are used.
    """
    result = 0.0
    for which in range(3):
        of_part = 0.0
        for k in range(parts.tau.size):
            if parts.most[which] > 0:
                a = _share_of(which, k, constants, parts)
                for n_j in range(1, parts.most[which] + 1):
                    if parts.few[which, k, n_j] > 0:
                        of_part += parts.few[which, k, n_j] * log_rising_factorial(a, n_j)
        for i in range(parts.n_many[which]):
            a = _share_of(which, np.int64(parts.many[which, i, 0]), constants, parts)
            of_part += log_rising_factorial(a, np.int64(parts.many[which, i, 1]))
        result += -of_part if which == 2 else of_part
    return result


@inner_kernel(forceinline=True)
def _share_of(which, k, constants, parts):
    """Return omega tau_k of component 0 or 1, or of both together (``which`` = 2)."""
    a = constants.omega * max(parts.tau[k], MIN_POSITIVE)
    return a if which == 2 else max(a * exp(parts.log_share[which, k]), MIN_POSITIVE)
