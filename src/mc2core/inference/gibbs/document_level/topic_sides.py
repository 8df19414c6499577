"""The two sides of a split of a topic, or of a merge of two: their tokens, estimates of their shares, what they weigh.

The formulas are those of :mod:`mc2core.inference.gibbs.document_level.topic_moves`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log, log_gamma
from mc2core.compute.variates import log_gamma_variate
from mc2core.inference.gibbs.document_level.concentration import log_rising
from mc2core.inference.gibbs.document_level.sides import LEAST

_SMALL = 1e-150  # a product of probabilities below it is put into its logarithm


class Tokens(NamedTuple):
    """The tokens, in CSR order; those of topic m in ascending order are ``size[m]`` of ``order``, from ``first[m]``."""

    document: np.ndarray  # (N,) int32
    word: np.ndarray  # (N,) int32
    topic: np.ndarray  # (N,) int32
    cluster: np.ndarray  # (J,) int32, of each document
    order: np.ndarray  # (2 N,) int32
    first: np.ndarray  # (slots,) int64
    size: np.ndarray  # (slots,) int64


class Constants(NamedTuple):
    """What the moves do not change."""

    omega: float
    v: float
    eta: float
    s: float  # prior of a topic's words ...
    vs: float  # ... and its sum over all words


class Sides(NamedTuple):
    """Tokens that are on side 0 or 1, and what is counted and estimated of the sides."""

    members: np.ndarray  # (N,) int32: tokens, ascending ...
    word: np.ndarray  # (N,) int32: ... their words ...
    end: np.ndarray  # (J,) int64: ... and where those of each of their documents end
    side: np.ndarray  # (N,) int8, of each member
    n_w: np.ndarray  # (V, 2) int32: tokens of each word
    size: np.ndarray  # (2,) int64: tokens
    words: np.ndarray  # (V,) int64: words that members have
    tau: np.ndarray  # (K,) float64: of both sides together
    share: np.ndarray  # (2, K) float64: of tau, estimated
    log_share: np.ndarray  # (2, K) float64: of tau, drawn
    tables: np.ndarray  # (2, K) float64: expected tables ...
    shape: np.ndarray  # (2, K) float64: ... less their variance
    eps_share: np.ndarray  # (2,) float64: of epsilon, estimated
    eps_log_share: np.ndarray  # (2,) float64: of epsilon, drawn
    eps_tables: np.ndarray  # (2,) float64: tables of tables


@kernel
def list_tokens(tokens):
    """List the tokens of every topic anew; returns how much of ``order`` that takes."""
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


@kernel
def gather(a, b, tokens, sides):
    """The tokens of topics a and b (of a alone if they are the same), in ascending order; returns how many."""
    order, members, document = tokens.order, sides.members, tokens.document
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
            sides.end[n_documents] = n
            n_documents += 1
        members[n], sides.word[n] = token, tokens.word[token]
        n += 1
    sides.end[n_documents] = n
    return n


@kernel(error_model="numpy")
def count_sides(n, sides):
    """Count the words of the first n members on both sides; returns how many different words there are."""
    side, n_w, words, n_words = sides.side, sides.n_w, sides.words, 0
    sides.size[:] = 0
    for i in range(n):
        w = sides.word[i]
        if n_w[w, 0] + n_w[w, 1] == 0:
            words[n_words] = w
            n_words += 1
        n_w[w, side[i]] += 1
        sides.size[side[i]] += 1
    return n_words


@kernel
def forget_words(n_words, sides):
    """Set the counts of all words back to 0."""
    for i in range(n_words):
        sides.n_w[sides.words[i], 0] = 0
        sides.n_w[sides.words[i], 1] = 0


@kernel(error_model="numpy")
def scan(stream, n, fixed, is_last, first_topic, tokens, constants, sides):
    """Draw the sides of all members but ``fixed``, each given all others.

    ``is_last``: returns the logarithm of the probability of what is drawn, else 0. ``first_topic`` of at least 0:
    nothing is drawn, members go to side 0 where that is their topic, else to side 1.
    """
    members, side, n_w, word, document = sides.members, sides.side, sides.n_w, sides.word, tokens.document
    s, vs, omega = constants.s, constants.vs, constants.omega
    # numbers of tokens as floats, which hold them exactly: no conversion in the loop
    n_0, n_1 = np.float64(sides.size[0]), np.float64(sides.size[1])
    result, product, end, row = 0.0, 1.0, 0, 0
    while end < n:
        begin, end, row = end, sides.end[row], row + 1
        k, on_side_1 = tokens.cluster[document[members[begin]]], 0
        a_0 = omega * max(sides.tau[k] * sides.share[0, k], LEAST)
        a_1 = omega * max(sides.tau[k] * sides.share[1, k], LEAST)
        for i in range(begin, end):
            on_side_1 += side[i]
        n_j0, n_j1 = np.float64(end - begin - on_side_1), np.float64(on_side_1)
        for i in range(begin, end):
            if i == fixed:
                continue
            w, old = word[i], side[i]
            n_w[w, old] -= 1
            was_1 = np.float64(old)
            was_0 = 1.0 - was_1
            n_j0, n_j1, n_0, n_1 = n_j0 - was_0, n_j1 - was_1, n_0 - was_0, n_1 - was_1
            x_0 = (n_j0 + a_0) * (n_w[w, 0] + s) * (n_1 + vs)
            x_1 = (n_j1 + a_1) * (n_w[w, 1] + s) * (n_0 + vs)
            if first_topic >= 0:
                new = np.int8(tokens.topic[members[i]] != first_topic)
            else:
                new = np.int8(streams.uniform(stream) * (x_0 + x_1) >= x_0)
            if is_last:
                product *= (x_1 if new == 1 else x_0) / (x_0 + x_1)
                if product < _SMALL:
                    result += math.log(product)
                    product = 1.0
            is_1 = np.float64(new)
            is_0 = 1.0 - is_1
            n_j0, n_j1, n_0, n_1 = n_j0 + is_0, n_j1 + is_1, n_0 + is_0, n_1 + is_1
            n_w[w, new] += 1
            side[i] = new
    sides.size[0], sides.size[1] = np.int64(n_0), np.int64(n_1)
    return result + math.log(product)


@kernel(error_model="numpy")
def _expect_tables(n, tokens, constants, sides):
    """Tables of both sides in each cluster, expected at the estimated shares, and these less their variance."""
    sides.tables[:] = 0.0
    sides.shape[:] = 0.0
    members, document, end, row = sides.members, tokens.document, 0, 0
    while end < n:
        begin, end, row = end, sides.end[row], row + 1
        k, n_1 = tokens.cluster[document[members[begin]]], 0
        for i in range(begin, end):
            n_1 += sides.side[i]
        for which in range(2):
            n_j = n_1 if which == 1 else end - begin - n_1
            if n_j == 0:
                continue
            sides.tables[which, k] += 1.0
            sides.shape[which, k] += 1.0
            if n_j > 1:
                a = constants.omega * max(sides.tau[k] * sides.share[which, k], LEAST)
                sides.tables[which, k] += a * log((a + n_j - 0.5) / (a + 0.5))
                sides.shape[which, k] += a * a * (1.0 / (a + 0.5) - 1.0 / (a + n_j - 0.5))


@kernel(error_model="numpy")
def estimate_shares(n, n_passes, eps, tokens, constants, sides):
    """Estimate what each side has of epsilon and of every tau, in place, from the tables expected at the last pass."""
    for _ in range(n_passes):
        _expect_tables(n, tokens, constants, sides)
        for which in range(2):
            a, tables = constants.v * eps * sides.eps_share[which], 0.0
            for k in range(sides.tau.size):
                if sides.tables[which, k] > 0.0:
                    tables += 1.0 + a * log((a + sides.tables[which, k] - 0.5) / (a + 0.5))
            sides.eps_tables[which] = max(tables, 1.0)
        total = sides.eps_tables[0] + sides.eps_tables[1]
        for which in range(2):
            sides.eps_share[which] = sides.eps_tables[which] / total
        prior = constants.v * eps
        for k in range(sides.tau.size):
            total = prior + sides.tables[0, k] + sides.tables[1, k]
            for which in range(2):
                sides.share[which, k] = (prior * sides.eps_share[which] + sides.tables[which, k]) / total


@numba.njit(inline="always")
def _log_beta(a, b):
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


@kernel(error_model="numpy")
def _draw_log_shares(stream, shapes, means, log_share):
    """Logarithms of X / (X + Y) and Y / (X + Y), X and Y Gammas of these shapes and means, in place."""
    for which in range(2):
        shape = max(shapes[which], LEAST)
        log_share[which] = log_gamma_variate(stream, shape) + math.log(max(means[which], LEAST) / shape)
    top = max(log_share[0], log_share[1])
    log_sum = top + math.log(math.exp(log_share[0] - top) + math.exp(log_share[1] - top))
    log_share[0] -= log_sum
    log_share[1] -= log_sum


@kernel(error_model="numpy")
def draw_shares(stream, eps, constants, sides):
    """Draw what the sides have of epsilon and of every tau."""
    _draw_log_shares(stream, sides.eps_tables, sides.eps_tables, sides.eps_log_share)
    prior = np.array([constants.v * eps * exp(sides.eps_log_share[0]), constants.v * eps * exp(sides.eps_log_share[1])])
    shapes, means, log_share = np.empty(2), np.empty(2), np.empty(2)
    for k in range(sides.tau.size):
        for which in range(2):
            shapes[which] = max(prior[which], LEAST) + sides.shape[which, k]
            means[which] = prior[which] + sides.tables[which, k]
        _draw_log_shares(stream, shapes, means, log_share)
        sides.log_share[0, k], sides.log_share[1, k] = log_share


@kernel(error_model="numpy")
def log_eps_ratio(constants, sides):
    """ln of the density of epsilon's shares under the prior, eta / (u (1 - u)), over that of the proposal."""
    tables, share = sides.eps_tables, sides.eps_log_share
    result = math.log(constants.eta) + _log_beta(tables[0], tables[1])
    return result - tables[0] * share[0] - tables[1] * share[1]


@kernel(error_model="numpy")
def log_tau_ratio(k, eps, constants, sides):
    """ln of the density of tau_k's shares under the prior, a Beta, over that of the proposal, 0 if it is the prior.

    The proposal is u = X / (X + Y), X and Y Gammas of shape e and mean g: e of a side is the prior's plus ``shape``,
    and g the estimated share given the share of epsilon that was drawn.
    """
    if sides.shape[0, k] + sides.shape[1, k] == 0.0:
        return 0.0
    prior, log_scaled, top, total, result = constants.v * eps, np.empty(2), -np.inf, 0.0, 0.0
    b = prior * np.array([exp(sides.eps_log_share[0]), exp(sides.eps_log_share[1])])
    expected = b[0] + b[1] + sides.tables[0, k] + sides.tables[1, k]
    for which in range(2):
        b_side = max(b[which], LEAST)
        e = b_side + sides.shape[which, k]
        log_rate = math.log(e * expected / max(b_side + sides.tables[which, k], LEAST))
        result += log_gamma(e) - log_gamma(b_side) - e * log_rate
        result -= sides.shape[which, k] * sides.log_share[which, k]
        log_scaled[which] = log_rate + sides.log_share[which, k]
        top, total = max(top, log_scaled[which]), total + e
    result += log_gamma(b[0] + b[1]) - log_gamma(total)
    return result + total * (top + math.log(exp(log_scaled[0] - top) + exp(log_scaled[1] - top)))


@kernel(error_model="numpy")
def log_words_ratio(n_words, constants, sides):
    """ln of the marginal likelihood of the words of two sides, over that of both together."""
    n_w, words, s, vs, log_gamma_s = sides.n_w, sides.words, constants.s, constants.vs, log_gamma(constants.s)
    n_0, n_1, result = sides.size[0], sides.size[1], 0.0
    for i in range(n_words):
        a, b = n_w[words[i], 0], n_w[words[i], 1]
        if a > 0 and b > 0:
            result += log_gamma(a + s) + log_gamma(b + s) - log_gamma(a + b + s) - log_gamma_s
    return result - log_gamma(n_0 + vs) - log_gamma(n_1 + vs) + log_gamma(n_0 + n_1 + vs) + log_gamma(vs)


@kernel(error_model="numpy")
def log_documents_ratio(n, tokens, constants, sides):
    """ln of the probability of the members' sides, theta summed out, over that of one topic, at the drawn shares."""
    members, document, end, row, result = sides.members, tokens.document, 0, 0, 0.0
    while end < n:
        begin, end, row = end, sides.end[row], row + 1
        k, n_j1 = tokens.cluster[document[members[begin]]], 0
        for i in range(begin, end):
            n_j1 += sides.side[i]
        a = constants.omega * max(sides.tau[k], LEAST)
        n_j0 = end - begin - n_j1
        result -= log_rising(a, end - begin)
        if n_j0 > 0:
            result += log_rising(max(a * exp(sides.log_share[0, k]), LEAST), n_j0)
        if n_j1 > 0:
            result += log_rising(max(a * exp(sides.log_share[1, k]), LEAST), n_j1)
    return result
