"""Split and merge moves of topics where documents have proportions of their own (docs/model.md, section 2).

The state is (l, epsilon, tau) given z, omega, v and eta, with theta and psi summed out:

    p(l, epsilon, tau) prop. to eps_new**(eta - 1) prod_m eta / eps_m  prod_k Dir(tau_k; v eps)
                                prod_j prod_m G(omega tau_km + n_jm) / G(omega tau_km)
                                prod_m G(V s) / G(V s + n_m) prod_w G(s + n_mw) / G(s),    k = z_j.

A split shares out epsilon_m, tau_km of every cluster and the tokens of topic m; with u and u_k the shares of the first
side, (eps_m, tau_m) -> (u, u_k) has the Jacobian eps_m prod_k tau_km, and these densities come to
eta / (u (1 - u)) prod_k Beta(u_k; v eps_m u, v eps_m (1 - u)).

**Proposals** (after Jain and Neal 2004). A topic and one of its tokens are drawn evenly, and with probability 1/2 each
the topic is to be split, or merged with another one, drawn half evenly and half by the token's weights. A split starts
with that token on side 0, and on side 1 all others of a few documents, which are drawn by tokens. Scans draw the side
of every token but the first given all others, shares being estimated after each, and a last scan proposes. A merge
makes the same scans for the probability that the last proposes what is. u and u_k are drawn from densities around an
estimate that depends on the sides alone, so a merge whose ratio is hopeless before that probability, which only lowers
it, is known as such without any scan.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.document_level.sides import LEAST, copy
from mc2core.inference.gibbs.document_level.tokens import Documents, count_words
from mc2core.inference.gibbs.document_level.topic_sides import (
    Constants,
    Sides,
    Tokens,
    count_sides,
    draw_shares,
    estimate_shares,
    forget_words,
    gather,
    list_tokens,
    log_documents_ratio,
    log_eps_ratio,
    log_tau_ratio,
    log_words_ratio,
    scan,
)
from mc2core.inference.gibbs.state import Assignments, Concentrations

_SCANS = 10
_MOST_DOCUMENTS = 12  # with which a split starts
_PASSES = 4  # of the estimate around which shares are drawn


class Topics(NamedTuple):
    """What is kept of the topics, a slot for each; those from the number of topics on are spare."""

    n_wm: np.ndarray  # (V, slots) int32
    eps: np.ndarray  # (slots,) float64
    tau: np.ndarray  # (slots, K) float64
    weights: np.ndarray  # (slots,) float64, of the topics to merge with


@kernel(error_model="numpy")
def _launch(stream, n, fixed, eps, tokens, constants, sides):
    """Sides from which a split is proposed; returns how many different words the members have."""
    members, side, document = sides.members, sides.side, tokens.document
    side[:n] = 0
    for _ in range(1 + np.int64(streams.uniform(stream) * _MOST_DOCUMENTS)):
        first = min(np.int64(streams.uniform(stream) * n), n - 1)
        last, j = first, document[members[first]]
        while first > 0 and document[members[first - 1]] == j:
            first -= 1
        while last < n and document[members[last]] == j:
            last += 1
        side[first:last] = 1
    side[fixed] = 0
    sides.share[:] = 0.5
    sides.eps_share[:] = 0.5
    n_words = count_sides(n, sides)
    for _ in range(_SCANS):
        estimate_shares(n, 1, eps, tokens, constants, sides)
        scan(stream, n, fixed, False, -1, tokens, constants, sides)
    estimate_shares(n, 1, eps, tokens, constants, sides)
    return n_words


@kernel(error_model="numpy")
def _estimate(n, eps, tokens, constants, sides):
    """Estimate the shares given the sides alone."""
    sides.share[:] = 0.5
    sides.eps_share[:] = 0.5
    estimate_shares(n, _PASSES, eps, tokens, constants, sides)


@numba.njit(inline="always")
def _log_ratio(n, n_words, eps, tokens, constants, sides):
    """ln of the density of the split over that of the merge, times the density of the merge's shares over 1."""
    result = log_eps_ratio(constants, sides) + log_words_ratio(n_words, constants, sides)
    for k in range(sides.tau.size):
        result += log_tau_ratio(k, eps, constants, sides)
    return result + log_documents_ratio(n, tokens, constants, sides)


@kernel(error_model="numpy")
def _weigh_partners(i, m, n_slots, start, tokens, topics, constants):
    """Weights of token i's topics but its own, m, left in ``topics.weights``; returns their sum."""
    j, w, weights = tokens.document[i], tokens.word[i], topics.weights
    k, total = tokens.cluster[j], 0.0
    weights[:n_slots] = 0.0
    for other in range(start[j], start[j + 1]):
        weights[tokens.topic[other]] += 1.0
    for other in range(n_slots):
        if other == m or tokens.size[other] == 0:
            weights[other] = 0.0
            continue
        weights[other] += constants.omega * max(topics.tau[other, k], LEAST)
        weights[other] *= (topics.n_wm[w, other] + constants.s) / (tokens.size[other] + constants.vs)
        total += weights[other]
    return total


@numba.njit(inline="always")
def _partner_share(weight, n, total):
    """Probability that a token's topic is merged with one of this weight."""
    return 0.5 / n + 0.5 * weight / total


@kernel(error_model="numpy")
def _draw_partner(stream, m, n_slots, n, total, tokens, topics):
    """(the topic that m is to be merged with, logarithm of its probability)."""
    u, chosen, share = streams.uniform(stream), -1, 0.0
    for other in range(n_slots):
        if other != m and tokens.size[other] > 0:
            chosen, share = other, _partner_share(topics.weights[other], n, total)
            if u < share:
                break
            u -= share
    return chosen, math.log(share)


@kernel(error_model="numpy")
def _draw_token(stream, n_slots, tokens):
    """A token of a topic in use, both drawn evenly; returns how many topics are in use too."""
    n_topics = 0
    for m in range(n_slots):
        n_topics += tokens.size[m] > 0
    r, m = min(int(streams.uniform(stream) * n_topics), n_topics - 1), 0
    while r > 0 or tokens.size[m] == 0:
        r -= tokens.size[m] > 0
        m += 1
    n = tokens.size[m]
    return tokens.order[tokens.first[m] + min(np.int64(streams.uniform(stream) * n), n - 1)], n_topics


@kernel(error_model="numpy")
def _place(n, token, members):
    """Where a token is among the first n members."""
    first, last = 0, n - 1
    while first < last:
        middle = (first + last) // 2
        if members[middle] < token:
            first = middle + 1
        else:
            last = middle
    return first


@numba.njit(inline="always")
def _keep_split(m, new, n, n_words, tokens, topics, sides):
    """Make side 1 a topic of its own."""
    place = tokens.first[m]
    tokens.size[m], tokens.size[new] = sides.size[0], sides.size[1]
    tokens.first[new] = place + sides.size[0]
    place_1 = tokens.first[new]
    for i in range(n):
        if sides.side[i] == 0:
            tokens.order[place] = sides.members[i]
            place += 1
        else:
            tokens.order[place_1] = sides.members[i]
            tokens.topic[sides.members[i]] = new
            place_1 += 1
    for i in range(n_words):
        w = sides.words[i]
        topics.n_wm[w, m], topics.n_wm[w, new] = sides.n_w[w, 0], sides.n_w[w, 1]
    eps = topics.eps[m]
    topics.eps[m], topics.eps[new] = eps * exp(sides.eps_log_share[0]), eps * exp(sides.eps_log_share[1])
    for k in range(sides.tau.size):
        topics.tau[m, k] = max(sides.tau[k] * exp(sides.log_share[0, k]), LEAST)
        topics.tau[new, k] = max(sides.tau[k] * exp(sides.log_share[1, k]), LEAST)


@numba.njit(inline="always")
def _keep_merge(a, b, end, n, n_words, tokens, topics, sides):
    """Make topics a and b one; returns the end of what is listed."""
    if end + n > tokens.order.size:
        for i in range(n):
            tokens.topic[sides.members[i]] = a
        end = list_tokens(tokens)
    else:
        tokens.first[a], tokens.size[a], tokens.size[b] = end, n, 0
        for i in range(n):
            tokens.topic[sides.members[i]] = a
            tokens.order[end] = sides.members[i]
            end += 1
    for i in range(n_words):
        w = sides.words[i]
        topics.n_wm[w, a], topics.n_wm[w, b] = topics.n_wm[w, a] + topics.n_wm[w, b], 0
    topics.eps[a], topics.eps[b] = topics.eps[a] + topics.eps[b], 0.0
    for k in range(sides.tau.size):
        topics.tau[a, k], topics.tau[b, k] = topics.tau[a, k] + topics.tau[b, k], 0.0
    return end


@numba.njit(inline="always")
def _try_split(stream, i, n_topics, new, start, tokens, topics, constants, sides):
    """Try to split the topic of token i, the second half becoming topic ``new``; returns whether it was."""
    m = tokens.topic[i]
    n, eps = gather(m, m, tokens, sides), topics.eps[m]
    copy(topics.tau[m], sides.tau)
    fixed = _place(n, i, sides.members)
    n_words = _launch(stream, n, fixed, eps, tokens, constants, sides)
    log_q = scan(stream, n, fixed, True, -1, tokens, constants, sides)
    if sides.size[1] == 0:
        forget_words(n_words, sides)
        return False
    _estimate(n, eps, tokens, constants, sides)
    draw_shares(stream, eps, constants, sides)
    total = _weigh_partners(i, m, new, start, tokens, topics, constants)
    j, weight = tokens.document[i], 0.0
    for c in range(n):
        if tokens.document[sides.members[c]] == j:
            weight += sides.side[c]
    k = tokens.cluster[j]
    weight += constants.omega * max(sides.tau[k] * exp(sides.log_share[1, k]), LEAST)
    weight *= (sides.n_w[tokens.word[i], 1] + constants.s) / (sides.size[1] + constants.vs)
    log_ratio = _log_ratio(n, n_words, eps, tokens, constants, sides) - log_q
    log_ratio += math.log(_partner_share(weight, n_topics, total + weight))
    log_ratio += math.log(n / np.float64(sides.size[0]) * n_topics / (n_topics + 1.0))
    is_made = math.log(streams.uniform(stream)) < log_ratio
    if is_made:
        _keep_split(m, new, n, n_words, tokens, topics, sides)
    forget_words(n_words, sides)
    return is_made


@numba.njit(inline="always")
def _try_merge(stream, i, b, log_share, n_topics, end, tokens, topics, constants, sides):
    """Try to merge topic b with that of token i; returns whether it was, and the end of what is listed."""
    a = tokens.topic[i]
    n, eps = gather(a, b, tokens, sides), topics.eps[a] + topics.eps[b]
    for c in range(n):
        sides.side[c] = 0 if tokens.topic[sides.members[c]] == a else 1
    sides.eps_log_share[0], sides.eps_log_share[1] = math.log(topics.eps[a] / eps), math.log(topics.eps[b] / eps)
    for k in range(sides.tau.size):
        tau_a, tau_b = max(topics.tau[a, k], LEAST), max(topics.tau[b, k], LEAST)
        sides.tau[k] = tau_a + tau_b
        sides.log_share[0, k], sides.log_share[1, k] = math.log(tau_a / sides.tau[k]), math.log(tau_b / sides.tau[k])
    n_words = count_sides(n, sides)
    _estimate(n, eps, tokens, constants, sides)
    log_ratio = -_log_ratio(n, n_words, eps, tokens, constants, sides) - log_share
    log_ratio -= math.log(n / np.float64(sides.size[0]) * (n_topics - 1.0) / n_topics)
    forget_words(n_words, sides)
    log_u = math.log(streams.uniform(stream))
    # the probability of the split can only make it less; a ratio that is no number is refused too
    if not log_u < log_ratio:
        return False, end
    fixed = _place(n, i, sides.members)
    _launch(stream, n, fixed, eps, tokens, constants, sides)
    log_ratio += scan(stream, n, fixed, True, a, tokens, constants, sides)
    forget_words(n_words, sides)
    if not log_u < log_ratio:
        return False, end
    return True, _keep_merge(a, b, end, n, n_words, tokens, topics, sides)


@kernel(error_model="numpy")
def _move(key, n_proposals, n_slots, start, tokens, topics, constants, sides):
    """Make the proposals; returns the number of slots in use and how many splits and merges were made."""
    stream, made, end = np.zeros(2, np.uint64), np.zeros(2, np.int64), list_tokens(tokens)
    for proposal in range(n_proposals):
        streams.seek(stream, key, proposal)
        i, n_topics = _draw_token(stream, n_slots, tokens)
        if streams.uniform(stream) < 0.5:
            if _try_split(stream, i, n_topics, n_slots, start, tokens, topics, constants, sides):
                n_slots += 1
                made[0] += 1
            continue
        if n_topics > 1:
            m = tokens.topic[i]
            total = _weigh_partners(i, m, n_slots, start, tokens, topics, constants)
            b, log_share = _draw_partner(stream, m, n_slots, n_topics - 1, total, tokens, topics)
            merged, end = _try_merge(stream, i, b, log_share, n_topics, end, tokens, topics, constants, sides)
            made[1] += merged
    return n_slots, made


def split_and_merge_topics(
    assignments: Assignments,
    corpus: Corpus,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    topic_prior: float,
    key: np.uint64,
    n_proposals: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Make ``n_proposals`` proposals; topics change in place, and those that end empty are dropped.

    Parameters
    ----------
    tau : (K, M + 1) float64
        Topic proportions of the clusters, the rest in the last column.
    omega : document concentration
    key : one stream for each proposal

    Returns
    -------
    (K, M + 1) float64
        tau over the topics now in use, and the rest.
    (2,) int64
        Splits and merges made.
    """
    content, n_tokens, n_clusters, n_topics = corpus.content, corpus.n_tokens, len(tau), assignments.n_topics
    if n_tokens == 0:
        return tau, np.zeros(2, np.int64)
    slots, n_words = n_topics + n_proposals, corpus.n_words
    lengths = np.diff(assignments.document_start)
    tokens = Tokens(
        np.repeat(np.arange(len(lengths), dtype=np.int32), lengths), np.repeat(content.indices, content.data),
        assignments.topic, assignments.cluster, np.empty(2 * n_tokens, np.int32), *np.zeros((2, slots), np.int64),
    )  # fmt: skip
    by_topic, eps, n_wm = np.zeros((slots, n_clusters)), np.zeros(slots), np.zeros((n_words, slots), np.int32)
    by_topic[:n_topics], eps[:n_topics] = tau[:, :-1].T, assignments.topic_weights
    count_words(
        Documents(content.indptr, content.indices, content.data, assignments.document_start, assignments.cluster),
        assignments.topic, n_wm,
    )  # fmt: skip
    topics = Topics(n_wm, eps, by_topic, np.empty(slots))
    constants = Constants(
        float(omega), float(concentrations.table), float(concentrations.topic), topic_prior, topic_prior * n_words
    )
    sides = Sides(
        np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32), np.empty(len(lengths), np.int64),
        np.empty(n_tokens, np.int8), np.zeros((n_words, 2), np.int32), np.zeros(2, np.int64),
        np.empty(n_words, np.int64), np.empty(n_clusters),
        *np.empty((4, 2, n_clusters)), *np.empty((3, 2)),
    )  # fmt: skip
    n_slots, made = _move(key, n_proposals, n_topics, assignments.document_start, tokens, topics, constants, sides)
    assignments.topic_weights = eps[:n_slots]
    used = tokens.size[:n_slots] > 0
    assignments.count()
    assignments.compact()
    return np.column_stack([by_topic[:n_slots][used].T, tau[:, -1]]), made
