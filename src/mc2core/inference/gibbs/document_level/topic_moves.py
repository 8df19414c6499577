"""Split and merge moves of topics at the document level (docs/model.md, section 2).

The state is (l, epsilon, tau) given z, omega, v and eta, with theta and psi summed out:

    p(l, epsilon, tau) prop. to eps_new**(eta - 1) prod_m eta / eps_m  prod_k Dir(tau_k; v eps)
                                prod_j prod_m G(omega tau_km + n_jm) / G(omega tau_km)
                                prod_m G(V s) / G(V s + n_m) prod_w G(s + n_mw) / G(s),    k = z_j.

A split shares out epsilon_m, tau_km of every cluster and the tokens of topic m; with u and u_k the shares of the first
side, (eps_m, tau_m) -> (u, u_k) has the Jacobian eps_m prod_k tau_km, and these densities come to
eta / (u (1 - u)) prod_k Beta(u_k; v eps_m u, v eps_m (1 - u)).

**Proposals.** A topic and one of its tokens are drawn evenly, and with probability 1/2 each the topic is to be split,
or merged with another one. That token is on side 0. Of which of two kinds a proposal is, is drawn without regard to the
state, and decides how the sides of all others come about:

* *launched* (after Jain and Neal 2004): side 1 starts with what a few documents have, drawn by tokens. Scans draw the
  side of every token given all others, shares being estimated after each, and a last scan proposes. A merge makes the
  same scans for the probability that the last proposes what is. The topic to merge with is drawn half evenly and half
  by the token's weights. These find small topics within a large one.
* *allocated* (after Dahl 2005): documents come in random order, and the side of every token is drawn given those before
  it, shares being estimated from these too. A merge makes one such pass for the probability of what is. The topic to
  merge with is drawn half evenly and half by the likeness of words. These merge topics of the same words, of which a
  launch never proposes the sides that are. Where there are too many tokens for that, nothing is proposed: their number
  is the same before a split and before the merge that undoes it.

A launch whose sides after the first scan have less than exp(-150) of the density of one topic ends there, in a split
and in a merge alike: what is seen so far is drawn alike in both, so that the one is ended as often as the other. Of
what would have been made that loses a few of a hundred, and of the work on long documents most. In a topic of hundreds
of tokens a launch that has only one or two on a side after the second scan ends too: sweeps make such small topics.

u and u_k are drawn from densities around an estimate that depends on the sides alone, so a merge whose ratio is
hopeless before the probability of its sides, which only lowers it, is known as such without any scan.

**Threads.** Most proposals are refused, so several are looked at side by side as if those before them were. Where one
is made, those after it are looked at again. The chain is that of one thread, to the bit.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import exp, log, log_gamma
from mc2core.compute.threads import in_blocks, look_ahead, n_threads
from mc2core.compute.variates import log_gamma_variate
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.document_level.cluster_moves import copy
from mc2core.inference.gibbs.document_level.sweep import FEW_TOKENS, LEAST, log_rising_factorial
from mc2core.inference.gibbs.document_level.tokens import TopicConstants
from mc2core.inference.gibbs.state import Assignments, Concentrations, topics_of_words

# -- the two sides of a split of a topic, or of a merge of two ------------------------------------------------
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


class Chain(NamedTuple):
    """What proposals are made with."""

    key: np.uint64  # one stream for each proposal
    launched: float  # probability that one is launched
    least: float  # ln of the ratio of sides to one topic, below which a launch ends
    least_share: float  # of the tokens, on the smaller side, below which a launch may end
    most: int  # tokens that are allocated


class Sides(NamedTuple):
    """Tokens that are on side 0 or 1, and what is counted and estimated of the sides."""

    members: np.ndarray  # (N,) int32: tokens, ascending ...
    word: np.ndarray  # (N,) int32: ... their words ...
    end: np.ndarray  # (J,) int64: ... and where those of each of their documents end
    side: np.ndarray  # (N,) int8, of each member
    rows: np.ndarray  # (J,) int64: documents of the members in the order of a sequential pass
    n_w: np.ndarray  # (V, 2) int32: tokens of each word
    size: np.ndarray  # (2,) int64: tokens
    words: np.ndarray  # (V,) int64: words that members have
    # documents of each cluster by their tokens on side 0, on side 1 and on both: short ones are counted together
    few: np.ndarray  # (3, K, FEW_TOKENS + 1) int32: documents of so many tokens ...
    most: np.ndarray  # (3,) int64: ... the largest such number that there is ...
    many: np.ndarray  # (3, J, 2) int32: ... and the cluster and the tokens of each document of more ...
    n_many: np.ndarray  # (3,) int64: ... of which there are so many
    tau: np.ndarray  # (K,) float64: of both sides together
    share: np.ndarray  # (2, K) float64: of tau, estimated
    log_share: np.ndarray  # (2, K) float64: of tau, drawn
    tables: np.ndarray  # (2, K) float64: expected tables ...
    shape: np.ndarray  # (2, K) float64: ... less their variance
    eps_share: np.ndarray  # (2,) float64: of epsilon, estimated
    eps_log_share: np.ndarray  # (2,) float64: of epsilon, drawn
    eps_tables: np.ndarray  # (2,) float64: tables of tables


_LISTING_BLOCK = 256  # documents that a thread takes at a time


@kernel
def list_cells(first, last, indptr, indices, counts, start, document, word):
    """The document and word of every token of documents first..last-1."""
    for j in range(first, last):
        i = start[j]
        for cell in range(indptr[j], indptr[j + 1]):
            for _ in range(counts[cell]):
                document[i], word[i] = j, indices[cell]
                i += 1


@inner_kernel
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


@inner_kernel
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


@inner_kernel(error_model="numpy")
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


@inner_kernel
def forget_words(n_words, sides):
    """Set the counts of all words back to 0."""
    for i in range(n_words):
        sides.n_w[sides.words[i], 0] = 0
        sides.n_w[sides.words[i], 1] = 0


@inner_kernel(forceinline=True)
def _forget_documents(n_sides, sides):
    for which in range(n_sides):
        sides.few[which, :, : sides.most[which] + 1] = 0
        sides.most[which] = sides.n_many[which] = 0


@inner_kernel(forceinline=True)
def _count_document(which, k, n_j, sides):
    if n_j > FEW_TOKENS:
        sides.many[which, sides.n_many[which], 0], sides.many[which, sides.n_many[which], 1] = k, n_j
        sides.n_many[which] += 1
    else:  # none too, which is not looked at: no branch that cannot be foretold
        sides.few[which, k, n_j] += 1
        sides.most[which] = max(sides.most[which], n_j)


@inner_kernel
def count_documents(n, tokens, sides):
    """Count the documents of the first n members by their tokens on each side and on both."""
    _forget_documents(3, sides)
    end, row = 0, 0
    while end < n:
        begin, end, row = end, sides.end[row], row + 1
        k, n_1 = tokens.cluster[tokens.document[sides.members[begin]]], 0
        for i in range(begin, end):
            n_1 += sides.side[i]
        _count_document(0, k, end - begin - n_1, sides)
        _count_document(1, k, n_1, sides)
        _count_document(2, k, end - begin, sides)


@inner_kernel(error_model="numpy")
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
    _forget_documents(2, sides)
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
        _count_document(0, k, np.int64(n_j0), sides)
        _count_document(1, k, np.int64(n_j1), sides)
    sides.size[0], sides.size[1] = np.int64(n_0), np.int64(n_1)
    return result + math.log(product)


@inner_kernel(forceinline=True)
def _expect_tables_of(which, k, n_j, n_documents, constants, sides):
    """Tables of so many documents of cluster k that have n_j tokens on a side."""
    tables = shape = 1.0
    if n_j > 1:
        a = constants.omega * max(sides.tau[k] * sides.share[which, k], LEAST)
        tables += a * log((a + n_j - 0.5) / (a + 0.5))
        shape += a * a * (1.0 / (a + 0.5) - 1.0 / (a + n_j - 0.5))
    sides.tables[which, k] += n_documents * tables
    sides.shape[which, k] += n_documents * shape


@inner_kernel(error_model="numpy")
def _expect_tables(constants, sides):
    """Tables of both sides in each cluster, expected at the estimated shares, and these less their variance."""
    sides.tables[:] = 0.0
    sides.shape[:] = 0.0
    for which in range(2):
        for k in range(sides.tau.size):
            for n_j in range(1, sides.most[which] + 1):
                if sides.few[which, k, n_j] > 0:
                    _expect_tables_of(which, k, n_j, np.int64(sides.few[which, k, n_j]), constants, sides)
        for i in range(sides.n_many[which]):
            of, length = np.int64(sides.many[which, i, 0]), np.int64(sides.many[which, i, 1])
            _expect_tables_of(which, of, length, 1, constants, sides)


@inner_kernel(error_model="numpy")
def estimate_shares(n_passes, eps, constants, sides):
    """Estimate what each side has of epsilon and of every tau, in place, from the tables expected at the last pass."""
    for _ in range(n_passes):
        _expect_tables(constants, sides)
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
def shuffle_documents(stream, n, sides):
    """Put the documents of the first n members into random order, in ``sides.rows``; returns how many."""
    rows, n_documents, end = sides.rows, 0, 0
    while end < n:  # an inside-out shuffle
        r = np.int64(streams.uniform(stream) * (n_documents + 1))
        rows[n_documents], rows[r] = rows[r], n_documents
        end, n_documents = sides.end[n_documents], n_documents + 1
    return n_documents


@inner_kernel(error_model="numpy")
def allocate(stream, n, fixed, first_topic, least, eps, tokens, constants, sides):
    """Draw the sides of all members but ``fixed``, on side 0, in one pass, each given those drawn before it.

    Documents come in random order; the shares are estimated from the tables expected of those before. Returns the
    logarithm of the probability of what is drawn, and how many different words the members have. ``first_topic`` as
    for :func:`scan`; a pass whose result comes to be below ``least`` is broken off.
    """
    side, n_w, word, words, rows = sides.side, sides.n_w, sides.word, sides.words, sides.rows
    s, vs, prior, tables = constants.s, constants.vs, constants.v * eps, sides.tables
    n_documents = shuffle_documents(stream, n, sides)
    tables[:], sides.eps_tables[:] = 0.0, 1.0
    side[fixed], words[0], n_words = 0, word[fixed], 1
    n_w[word[fixed], 0] = 1
    n_0, n_1, result, product = 1.0, 0.0, 0.0, 1.0
    for position in range(n_documents):
        row = rows[position]
        begin, end = sides.end[row - 1] if row > 0 else 0, sides.end[row]
        k = tokens.cluster[tokens.document[sides.members[begin]]]
        u_0 = sides.eps_tables[0] / (sides.eps_tables[0] + sides.eps_tables[1])
        a = constants.omega * max(sides.tau[k], LEAST) / (prior + tables[0, k] + tables[1, k])
        a_0 = max(a * (prior * u_0 + tables[0, k]), LEAST)
        a_1 = max(a * (prior * (1.0 - u_0) + tables[1, k]), LEAST)
        n_j0, n_j1 = np.float64(begin <= fixed < end), 0.0
        for i in range(begin, end):
            if i == fixed:
                continue
            w = word[i]
            if n_w[w, 0] + n_w[w, 1] == 0:
                words[n_words] = w
                n_words += 1
            x_0 = (n_j0 + a_0) * (n_w[w, 0] + s) * (n_1 + vs)
            x_1 = (n_j1 + a_1) * (n_w[w, 1] + s) * (n_0 + vs)
            if first_topic >= 0:
                new = np.int8(tokens.topic[sides.members[i]] != first_topic)
            else:
                new = np.int8(streams.uniform(stream) * (x_0 + x_1) >= x_0)
            product *= (x_1 if new == 1 else x_0) / (x_0 + x_1)
            if product < _SMALL:
                result += math.log(product)
                product = 1.0
            is_1 = np.float64(new)
            n_j0, n_j1, n_0, n_1 = n_j0 + 1.0 - is_1, n_j1 + is_1, n_0 + 1.0 - is_1, n_1 + is_1
            n_w[w, new] += 1
            side[i] = new
        if result < least:
            break
        seat(0, k, n_j0, a_0, prior * u_0, sides)
        seat(1, k, n_j1, a_1, prior * (1.0 - u_0), sides)
    sides.size[0], sides.size[1] = np.int64(n_0), np.int64(n_1)
    return result + math.log(product), n_words


@inner_kernel(forceinline=True, error_model="numpy")
def seat(which, k, n_j, a, prior, sides):
    """Count the tables that n_j tokens of a document are expected to have, and the tables these are expected to."""
    if n_j > 0.0:
        tables = 1.0 + a * log((a + n_j - 0.5) / (a + 0.5))
        before = sides.tables[which, k]
        sides.eps_tables[which] += 1.0 if before == 0.0 else tables * prior / (prior + before)
        sides.tables[which, k] = before + tables


@numba.njit(inline="always")
def _log_beta(a, b):
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


@inner_kernel(error_model="numpy")
def _draw_log_shares(stream, shapes, means, log_share):
    """Logarithms of X / (X + Y) and Y / (X + Y), X and Y Gammas of these shapes and means, in place."""
    for which in range(2):
        shape = max(shapes[which], LEAST)
        log_share[which] = log_gamma_variate(stream, shape) + math.log(max(means[which], LEAST) / shape)
    top = max(log_share[0], log_share[1])
    log_sum = top + math.log(math.exp(log_share[0] - top) + math.exp(log_share[1] - top))
    log_share[0] -= log_sum
    log_share[1] -= log_sum


@inner_kernel(error_model="numpy")
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


@inner_kernel(error_model="numpy")
def log_eps_ratio(constants, sides):
    """ln of the density of epsilon's shares under the prior, eta / (u (1 - u)), over that of the proposal."""
    tables, share = sides.eps_tables, sides.eps_log_share
    result = math.log(constants.eta) + _log_beta(tables[0], tables[1])
    return result - tables[0] * share[0] - tables[1] * share[1]


@inner_kernel(error_model="numpy")
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


@inner_kernel(error_model="numpy")
def log_words_ratio(n_words, constants, sides):
    """ln of the marginal likelihood of the words of two sides, over that of both together."""
    n_w, words, s, vs, log_gamma_s = sides.n_w, sides.words, constants.s, constants.vs, log_gamma(constants.s)
    n_0, n_1, result = sides.size[0], sides.size[1], 0.0
    for i in range(n_words):
        a, b = n_w[words[i], 0], n_w[words[i], 1]
        if a > 0 and b > 0:
            result += log_gamma(a + s) + log_gamma(b + s) - log_gamma(a + b + s) - log_gamma_s
    return result - log_gamma(n_0 + vs) - log_gamma(n_1 + vs) + log_gamma(n_0 + n_1 + vs) + log_gamma(vs)


@inner_kernel(error_model="numpy")
def log_documents_ratio(constants, sides):
    """ln of the probability of the members' sides, theta summed out, over that of one topic, at the drawn shares.

    Of the documents that :func:`count_documents` and :func:`scan` have counted.
    """
    result = 0.0
    for which in range(3):
        of_side = 0.0
        for k in range(sides.tau.size):
            if sides.most[which] > 0:
                a = _share_of(which, k, constants, sides)
                for n_j in range(1, sides.most[which] + 1):
                    if sides.few[which, k, n_j] > 0:
                        of_side += sides.few[which, k, n_j] * log_rising_factorial(a, n_j)
        for i in range(sides.n_many[which]):
            a = _share_of(which, np.int64(sides.many[which, i, 0]), constants, sides)
            of_side += log_rising_factorial(a, np.int64(sides.many[which, i, 1]))
        result += -of_side if which == 2 else of_side
    return result


@inner_kernel(forceinline=True)
def _share_of(which, k, constants, sides):
    """omega tau_k of side 0 or 1, or of both together."""
    a = constants.omega * max(sides.tau[k], LEAST)
    return a if which == 2 else max(a * exp(sides.log_share[which, k]), LEAST)


# -- the moves ------------------------------------------------------------------------------------------------
LAUNCHED = 0.4  # share of the proposals
MAX_ALLOCATED = 5000  # tokens of a topic that is split, or of two that are merged, by one pass
SPARE_TOPICS = 32  # for which there is room in the arrays
MIN_LAUNCHED = -150.0  # ln of the ratio of the sides after a scan to one topic, below which a launch ends
MIN_SHARE = 0.01  # of the tokens, on the smaller side after two scans ...
_FEW_LAUNCHED = 3  # ... and so many tokens: a launch with fewer than both ends
_SCANS = 10
_MAX_DOCUMENTS = 12  # with which a launched split starts
_PASSES = 4  # of the estimate around which shares are drawn


class TopicSlots(NamedTuple):
    """What is kept of the topics, a slot for each; those from the number of topics on are spare."""

    n_wm: np.ndarray  # (V, slots) int32
    eps: np.ndarray  # (slots,) float64
    tau: np.ndarray  # (slots, K) float64
    norm: np.ndarray  # (slots,) float64: sum over words of (n_wm + s)**2
    weights: np.ndarray  # (slots,) float64, of the topics to merge with


@inner_kernel(error_model="numpy")
def launch(stream, n, fixed, first_topic, chain, eps, tokens, constants, sides):
    """Draw sides at random, scan them, and draw the sides of all members but ``fixed``, on side 0, in a last scan.

    Returns the logarithm of the probability of what that draws, -inf where the launch ends before, and how many
    different words the members have. ``first_topic`` as for :func:`scan`.
    """
    members, side, document = sides.members, sides.side, tokens.document
    side[:n] = 0
    for _ in range(1 + np.int64(streams.uniform(stream) * _MAX_DOCUMENTS)):
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
    count_documents(n, tokens, sides)
    for number in range(_SCANS):
        estimate_shares(1, eps, constants, sides)
        scan(stream, n, fixed, False, -1, tokens, constants, sides)
        if number == 0:
            for k in range(sides.tau.size):
                sides.log_share[0, k], sides.log_share[1, k] = log(sides.share[0, k]), log(sides.share[1, k])
            ratio = log_words_ratio(n_words, constants, sides) + log_documents_ratio(constants, sides)
            if ratio < chain.least:
                return -np.inf, n_words
        if number == 1 and min(sides.size[0], sides.size[1]) < min(_FEW_LAUNCHED, chain.least_share * n):
            return -np.inf, n_words
    estimate_shares(1, eps, constants, sides)
    return scan(stream, n, fixed, True, first_topic, tokens, constants, sides), n_words


@inner_kernel(error_model="numpy")
def estimate_sides(n, eps, tokens, constants, sides):
    """Count documents, and estimate the shares given the sides alone."""
    count_documents(n, tokens, sides)
    sides.share[:] = 0.5
    sides.eps_share[:] = 0.5
    estimate_shares(_PASSES, eps, constants, sides)


@numba.njit(inline="always")
def _log_ratio(n_words, eps, constants, sides):
    """ln of the density of the split over that of the merge, times the density of the merge's shares over 1."""
    result = log_eps_ratio(constants, sides) + log_words_ratio(n_words, constants, sides)
    for k in range(sides.tau.size):
        result += log_tau_ratio(k, eps, constants, sides)
    return result + log_documents_ratio(constants, sides)


@inner_kernel(error_model="numpy")
def _weigh_by_token(i, m, n_slots, start, tokens, topics, constants):
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


@inner_kernel(error_model="numpy")
def _weigh_by_likeness(n_words, m, n_slots, tokens, topics, constants, sides):
    """Weights of all topics but m by their likeness to side 0, left in ``topics.weights``; returns their sum."""
    weights, n_wm, n_0, total = topics.weights, topics.n_wm, sides.size[0], 0.0
    weights[:n_slots] = 0.0
    for c in range(n_words):
        w = sides.words[c]
        n_w = np.float64(sides.n_w[w, 0])
        if n_w > 0.0:
            for other in range(n_slots):
                weights[other] += n_w * n_wm[w, other]
    norm = _norm(n_words, 0, constants, sides)
    for other in range(n_slots):
        if other == m or tokens.size[other] == 0:
            weights[other] = 0.0
        else:
            product = weights[other] + constants.s * (n_0 + tokens.size[other] + constants.vs)
            weights[other] = _likeness(product, norm, topics.norm[other])
            total += weights[other]
    return total


@inner_kernel(error_model="numpy")
def _norm(n_words, which, constants, sides):
    """Sum over all words of (n_w + s)**2 on one side."""
    result = 0.0
    for c in range(n_words):
        result += np.float64(sides.n_w[sides.words[c], which]) ** 2
    return result + constants.s * (2.0 * sides.size[which] + constants.vs)


@kernel(error_model="numpy")
def set_norms(n_slots, tokens, topics, constants):
    """Count the norm of every topic."""
    for m in range(n_slots):
        topics.norm[m] = constants.s * (2.0 * tokens.size[m] + constants.vs)
    for w in range(topics.n_wm.shape[0]):
        for m in range(n_slots):
            topics.norm[m] += np.float64(topics.n_wm[w, m]) ** 2


@numba.njit(inline="always")
def _likeness(product, norm, other):
    """A power of the cosine of two topics' words: those of one true topic stand out from all others."""
    return (product * product / (norm * other)) ** 2


@inner_kernel(error_model="numpy")
def weigh_partners(i, is_launched, n_slots, start, tokens, topics, constants, sides):
    """Weights of the topics that token i's may be merged with, left in ``topics.weights``; returns their sum."""
    m = tokens.topic[i]
    if is_launched:
        return _weigh_by_token(i, m, n_slots, start, tokens, topics, constants)
    n = gather(m, m, tokens, sides)
    sides.side[:n] = 0
    n_words = count_sides(n, sides)
    total = _weigh_by_likeness(n_words, m, n_slots, tokens, topics, constants, sides)
    forget_words(n_words, sides)
    return total


@inner_kernel(error_model="numpy")
def weigh_back(i, is_launched, n, n_words, n_slots, start, tokens, topics, constants, sides):
    """What :func:`weigh_partners` would give side 1 after the split of token i's topic, and all other topics."""
    m = tokens.topic[i]
    if is_launched:
        total, weight = _weigh_by_token(i, m, n_slots, start, tokens, topics, constants), 0.0
        j = tokens.document[i]
        for c in range(n):
            if tokens.document[sides.members[c]] == j:
                weight += sides.side[c]
        k = tokens.cluster[j]
        weight += constants.omega * max(sides.tau[k] * exp(sides.log_share[1, k]), LEAST)
        return weight * (sides.n_w[tokens.word[i], 1] + constants.s) / (sides.size[1] + constants.vs), total
    total = _weigh_by_likeness(n_words, m, n_slots, tokens, topics, constants, sides)
    product = constants.s * (n + constants.vs)
    for c in range(n_words):
        w = sides.words[c]
        product += np.float64(sides.n_w[w, 0]) * sides.n_w[w, 1]
    return _likeness(product, _norm(n_words, 0, constants, sides), _norm(n_words, 1, constants, sides)), total


@numba.njit(inline="always")
def partner_share(weight, n, total):
    """Probability that a token's topic is merged with one of this weight."""
    return 0.5 / n + 0.5 * weight / total


@inner_kernel(error_model="numpy")
def _draw_partner(stream, m, n_slots, n, total, tokens, topics):
    """(the topic that m is to be merged with, logarithm of its probability)."""
    u, chosen, share = streams.uniform(stream), -1, 0.0
    for other in range(n_slots):
        if other != m and tokens.size[other] > 0:
            chosen, share = other, partner_share(topics.weights[other], n, total)
            if u < share:
                break
            u -= share
    return chosen, math.log(share)


@inner_kernel(error_model="numpy")
def draw_token(stream, n_slots, tokens):
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


@inner_kernel(error_model="numpy")
def place_of(n, token, members):
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
def _keep_split(m, new, n, n_words, tokens, topics, constants, sides):
    """Make side 1 a new topic."""
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
    topics.norm[m], topics.norm[new] = _norm(n_words, 0, constants, sides), _norm(n_words, 1, constants, sides)
    eps = topics.eps[m]
    topics.eps[m], topics.eps[new] = eps * exp(sides.eps_log_share[0]), eps * exp(sides.eps_log_share[1])
    for k in range(sides.tau.size):
        topics.tau[m, k] = max(sides.tau[k] * exp(sides.log_share[0, k]), LEAST)
        topics.tau[new, k] = max(sides.tau[k] * exp(sides.log_share[1, k]), LEAST)


@numba.njit(inline="always")
def keep_merge(a, b, end, n, n_words, tokens, topics, constants, sides):
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
    topics.norm[a] += topics.norm[b] - constants.s * constants.vs
    for i in range(n_words):
        w = sides.words[i]
        topics.norm[a] += 2.0 * topics.n_wm[w, a] * topics.n_wm[w, b]
        topics.n_wm[w, a], topics.n_wm[w, b] = topics.n_wm[w, a] + topics.n_wm[w, b], 0
    topics.eps[a], topics.eps[b] = topics.eps[a] + topics.eps[b], 0.0
    for k in range(sides.tau.size):
        topics.tau[a, k], topics.tau[b, k] = topics.tau[a, k] + topics.tau[b, k], 0.0
    return end


@numba.njit(inline="always")
def weigh_merge(a, b, tokens, topics, constants, sides):
    """(ln of the density of topics a and b as one over that of both, their tokens, their epsilon).

    Times the density of the shares that a split would draw; of the sides that it would draw nothing is in it.
    """
    n, eps = gather(a, b, tokens, sides), topics.eps[a] + topics.eps[b]
    for c in range(n):
        sides.side[c] = 0 if tokens.topic[sides.members[c]] == a else 1
    sides.eps_log_share[0], sides.eps_log_share[1] = math.log(topics.eps[a] / eps), math.log(topics.eps[b] / eps)
    for k in range(sides.tau.size):
        tau_a, tau_b = max(topics.tau[a, k], LEAST), max(topics.tau[b, k], LEAST)
        sides.tau[k] = tau_a + tau_b
        sides.log_share[0, k], sides.log_share[1, k] = math.log(tau_a / sides.tau[k]), math.log(tau_b / sides.tau[k])
    n_words = count_sides(n, sides)
    estimate_sides(n, eps, tokens, constants, sides)
    log_ratio = -_log_ratio(n_words, eps, constants, sides)
    forget_words(n_words, sides)
    return log_ratio, n, eps


@numba.njit(inline="always")
def _try_split(stream, i, is_launched, chain, n_topics, new, start, tokens, topics, constants, sides, change):
    """Try to split the topic of token i, the second half becoming topic ``new``; returns whether it is to be."""
    m = np.int64(tokens.topic[i])
    if not is_launched and tokens.size[m] > chain.most:
        return False
    n, eps = gather(m, m, tokens, sides), topics.eps[m]
    copy(topics.tau[m], sides.tau)
    fixed = place_of(n, i, sides.members)
    if is_launched:
        log_q, n_words = launch(stream, n, fixed, -1, chain, eps, tokens, constants, sides)
    else:
        log_q, n_words = allocate(stream, n, fixed, -1, -np.inf, eps, tokens, constants, sides)
    if sides.size[1] == 0 or log_q == -np.inf:
        forget_words(n_words, sides)
        return False
    estimate_sides(n, eps, tokens, constants, sides)
    draw_shares(stream, eps, constants, sides)
    log_ratio = _log_ratio(n_words, eps, constants, sides) - log_q
    log_ratio += math.log(n / np.float64(sides.size[0]) * n_topics / (n_topics + 1.0))
    log_u = math.log(streams.uniform(stream))
    is_made = log_u < log_ratio
    if is_made:  # the probability of the merge can only make it less
        weight, total = weigh_back(i, is_launched, n, n_words, new, start, tokens, topics, constants, sides)
        is_made = log_u < log_ratio + math.log(partner_share(weight, n_topics, total + weight))
    if is_made:
        change[0], change[1], change[2], change[3] = m, new, n, n_words
    else:
        forget_words(n_words, sides)
    return is_made


@numba.njit(inline="always")
def _try_merge(stream, i, is_launched, chain, n_topics, n_slots, start, tokens, topics, constants, sides, change):
    """Try to merge the topic of token i with another; returns whether it is to be."""
    a = np.int64(tokens.topic[i])
    if not is_launched and tokens.size[a] >= chain.most:
        return False
    total = weigh_partners(i, is_launched, n_slots, start, tokens, topics, constants, sides)
    b, log_share = _draw_partner(stream, a, n_slots, n_topics - 1, total, tokens, topics)
    if not is_launched and tokens.size[a] + tokens.size[b] > chain.most:
        return False
    log_ratio, n, eps = weigh_merge(a, b, tokens, topics, constants, sides)
    log_ratio -= log_share
    log_ratio -= math.log(n / np.float64(sides.size[0]) * (n_topics - 1.0) / n_topics)
    log_u = math.log(streams.uniform(stream))
    # the probability of the split can only make it less; a ratio that is no number is refused too
    if not log_u < log_ratio:
        return False
    fixed = place_of(n, i, sides.members)
    if is_launched:
        log_q, n_words = launch(stream, n, fixed, a, chain, eps, tokens, constants, sides)
    else:
        log_q, n_words = allocate(stream, n, fixed, a, log_u - log_ratio, eps, tokens, constants, sides)
    forget_words(n_words, sides)
    if not log_u < log_ratio + log_q:
        return False
    change[0], change[1], change[2], change[3] = a, b, n, n_words
    return True


@kernel(error_model="numpy")
def _propose(first, last, n_slots, chain, start, tokens, topics, constants, sides, change):
    """Make proposals from number ``first`` on until one is to be made, and leave it in ``sides`` and ``change``.

    Returns its number, or ``last``. All that is shared is read alone.
    """
    stream = np.zeros(2, np.uint64)
    for proposal in range(first, last):
        streams.seek(stream, chain.key, proposal)
        i, n_topics = draw_token(stream, n_slots, tokens)
        is_launched = streams.uniform(stream) < chain.launched
        if streams.uniform(stream) < 0.5:
            if _try_split(
                stream, i, is_launched, chain, n_topics, n_slots, start, tokens, topics, constants, sides, change
            ):
                return proposal
        elif n_topics > 1 and _try_merge(
            stream, i, is_launched, chain, n_topics, n_slots, start, tokens, topics, constants, sides, change
        ):
            return proposal
    return last


@kernel(error_model="numpy")
def _keep(n_slots, end, tokens, topics, constants, sides, change):
    """Make the change that is in ``sides``; returns how many slots are in use and the end of what is listed."""
    a, b, n, n_words = change
    if b == n_slots:
        _keep_split(a, b, n, n_words, tokens, topics, constants, sides)
        forget_words(n_words, sides)
        return n_slots + 1, end
    return n_slots, keep_merge(a, b, end, n, n_words, tokens, topics, constants, sides)


def new_sides(n_tokens: int, n_documents: int, n_words: int, n_clusters: int) -> Sides:
    """The arrays of a move of two topics, nothing in them."""
    return Sides(
        np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32), np.empty(n_documents, np.int64),
        np.empty(n_tokens, np.int8), np.empty(n_documents, np.int64), np.zeros((n_words, 2), np.int32),
        np.zeros(2, np.int64), np.empty(n_words, np.int64), np.zeros((3, n_clusters, FEW_TOKENS + 1), np.int32),
        np.zeros(3, np.int64), np.empty((3, n_documents, 2), np.int32), np.zeros(3, np.int64), np.empty(n_clusters),
        *np.empty((4, 2, n_clusters)), *np.empty((3, 2)),
    )  # fmt: skip


def move_bytes(n_tokens: int, n_documents: int, n_words: int, n_clusters: int, n_topics: int) -> int:
    """Bytes of what each thread has to itself in :func:`split_and_merge_topics`."""
    per_cluster = 12 * (FEW_TOKENS + 1) + 72
    return 9 * n_tokens + 40 * n_documents + 16 * n_words + per_cluster * n_clusters + 8 * (n_topics + SPARE_TOPICS)


def _move(
    pool: Executor | None,
    first: int,
    last: int,
    n_slots: int,
    chain: Chain,
    start: np.ndarray,
    tokens: Tokens,
    topics: TopicSlots,
    constants: TopicConstants,
    desks: list[tuple[Sides, np.ndarray]],
    made: np.ndarray,
) -> tuple[int, int]:
    """Make proposals from number ``first`` on until no slot is spare.

    Returns the number of the next one and how many slots are in use; ``made`` gains the splits and merges.
    """
    end = list_tokens(tokens)
    set_norms(n_slots, tokens, topics, constants)
    weights = [topics._replace(weights=np.empty_like(topics.weights)) for _ in desks]
    while first < last and n_slots < len(tokens.size):

        def look(desk: int, first: int, last: int, n_slots: int = n_slots) -> int:
            return _propose(first, last, n_slots, chain, start, tokens, weights[desk], constants, *desks[desk])

        first, hits = look_ahead(pool, first, last, look)
        for desk in hits[1:]:
            forget_words(desks[desk][1][3], desks[desk][0])
        if hits:
            sides, change = desks[hits[0]]
            made[0 if change[1] == n_slots else 1] += 1
            n_slots, end = _keep(n_slots, end, tokens, topics, constants, sides, change)
            first += 1
    return first, n_slots


def split_and_merge_topics(
    assignments: Assignments,
    corpus: Corpus,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    topic_word_prior: float,
    key: np.uint64,
    n_proposals: int,
    launched: float = LAUNCHED,
    most_allocated: int = MAX_ALLOCATED,
    least_launched: float = MIN_LAUNCHED,
    least_share: float = MIN_SHARE,
    pool: Executor | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make ``n_proposals`` proposals; topics change in place, and those that end empty are dropped.

    Parameters
    ----------
    tau : (K, M + 1) float64
        Topic proportions of the clusters, the rest in the last column.
    omega : document concentration
    key : one stream for each proposal
    launched : probability that a proposal is of the launched kind, not of the one that allocates tokens in one pass
    most_allocated : tokens of a topic that is split, or of two that are merged, in one pass
    least_launched : logarithm of the ratio of sides after a scan to one topic, below which a launch ends
    least_share : a launch whose smaller side has one or two tokens, and less than this share, ends after two scans
    pool : threads, which change no bit

    Returns
    -------
    (K, M + 1) float64
        tau over the topics now in use, and the rest.
    (2,) int64
        Splits and merges made.
    """
    content, start = corpus.content, assignments.document_start
    n_tokens, n_words, n_clusters = corpus.n_tokens, corpus.n_words, len(tau)
    constants = TopicConstants(
        float(omega),
        float(concentrations.table),
        float(concentrations.topic),
        topic_word_prior,
        topic_word_prior * n_words,
    )
    desks = [
        (new_sides(n_tokens, corpus.n_documents, n_words, n_clusters), np.zeros(4, np.int64))
        for _ in range(n_threads(pool))
    ]
    chain = Chain(key, float(launched), float(least_launched), float(least_share), most_allocated)
    document, word = np.empty((2, n_tokens), np.int32)

    def list_block(first: int, last: int) -> None:
        list_cells(first, last, content.indptr, content.indices, content.data, start, document, word)

    in_blocks(pool, list_block, corpus.n_documents, _LISTING_BLOCK)
    order, cluster = np.empty(2 * n_tokens, np.int32), assignments.cluster
    made, proposal = np.zeros(2, np.int64), 0
    while n_tokens > 0 and proposal < n_proposals:
        n_topics = assignments.n_topics
        slots = n_topics + SPARE_TOPICS
        tokens = Tokens(document, word, assignments.topic, cluster, order, *np.zeros((2, slots), np.int64))
        by_topic, eps = np.zeros((slots, n_clusters)), np.zeros(slots)
        by_topic[:n_topics], eps[:n_topics] = tau[:, :-1].T, assignments.topic_weights
        n_wm = topics_of_words(content, assignments.topic, slots, pool)
        topics = TopicSlots(n_wm, eps, by_topic, *np.empty((2, slots)))
        proposal, n_slots = _move(
            pool, proposal, n_proposals, n_topics, chain, start, tokens, topics, constants, desks, made
        )
        assignments.topic_weights = eps[:n_slots]
        used = tokens.size[:n_slots] > 0
        assignments.count()
        assignments.compact()
        # row by row, as kernels have it from elsewhere: for another order they would be compiled once more
        tau = np.ascontiguousarray(np.column_stack([by_topic[:n_slots][used].T, tau[:, -1]]))
    return tau, made
