"""Split and merge moves of topics at the document level (docs/model.md, section 2).

The state is (l, epsilon, tau) given z, omega, v and eta, with theta and psi summed out:

    p(l, epsilon, tau) prop. to eps_new**(eta - 1) prod_m eta / eps_m  prod_k Dir(tau_k; v eps)
                                prod_j prod_m G(omega tau_km + n_jm) / G(omega tau_km)
                                prod_m G(V s) / G(V s + n_m) prod_w G(s + n_mw) / G(s),    k = z_j.

A split divides epsilon_m, tau_km of every cluster k and the tokens of topic m between two components. Let u and u_k be
the shares of component 0 in eps_m and tau_km. The Jacobian of the map (eps_m, tau_m) -> (u, u_k) is eps_m prod_k
tau_km. The densities of epsilon and tau are then eta / (u (1 - u)) prod_k Beta(u_k; v eps_m u, v eps_m (1 - u)).

**Proposals.** A topic and one of its tokens are drawn uniformly. With probability 1/2, the move proposes to split the
topic; otherwise it proposes to merge the topic with another one. The drawn token is in component 0. Sequential
allocation (after Dahl 2005) draws the components of all other tokens. It visits the documents in random order and draws
the component of each token given the tokens before it, with shares estimated from these tokens. For a merge, one such
pass computes the probability of proposing the current state. The partner of a merge is drawn uniformly or, with
probability 1/2, by the similarity of the topics' words. If the tokens are too many for one pass, nothing is proposed.
This keeps detailed balance, because a split and the merge that reverses it have the same number of tokens.

The shares u and u_k are drawn from densities around an estimate that depends only on the components. The probability of
the components can only lower the Metropolis-Hastings ratio of a merge. A merge whose ratio is too low without this
probability is therefore rejected without a pass.

**Threads.** Most proposals are rejected. Threads therefore evaluate several proposals at once, as if all earlier ones
were rejected. After an acceptance, the later proposals are evaluated again. The chain is bit-identical for every number
of threads.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.special import MAX_FACTORS, MIN_POSITIVE, exp
from mc2core.compute.streams import index_of
from mc2core.compute.threads import in_blocks, look_ahead, n_threads
from mc2core.inference.gibbs.assignments import Assignments, topics_of_words
from mc2core.inference.gibbs.tokens import TopicConstants, extended
from mc2core.inference.gibbs.topic_components import (
    SplitComponents,
    Tokens,
    allocate_sequentially,
    count_components,
    draw_shares,
    estimate_components,
    gather,
    list_cells,
    list_tokens,
    log_documents_ratio,
    log_eps_ratio,
    log_tau_ratio,
    log_words_ratio,
    reset_word_counts,
)
from mc2core.inference.gibbs.weights import Concentrations

MAX_ALLOCATED = 5000  # largest number of tokens of a topic to split, or of two topics to merge
_LISTING_BLOCK = 256  # documents per block of work of a thread
SPARE_TOPICS = 32  # spare slots in the arrays for topics that splits add


@record
class TopicSlots(NamedTuple):
    """Counts and weights of the topics, one slot per topic. Slots after the topics in use are spare."""

    n_wm: np.ndarray  # (V, slots) int32: tokens of each word in each topic
    eps: np.ndarray  # (slots,) float64: weight epsilon_m of each topic
    tau: np.ndarray  # (slots, K) float64: proportion tau_km of each topic in each cluster
    norm: np.ndarray  # (slots,) float64: sum over words of (n_wm + s)**2


@inner_kernel
def log_ratio_of(content_ratio, eps, constants, parts):
    """Return ln of the posterior ratio of the split to the merged state, divided by the proposal density of the shares.

    ``content_ratio`` is the log marginal likelihood ratio of words (:func:`log_words_ratio`) or of observations.
    """
    result = log_eps_ratio(constants, parts) + content_ratio
    for k in range(parts.tau.size):
        result += log_tau_ratio(k, eps, constants, parts)
    return result + log_documents_ratio(constants, parts)


@inner_kernel
def _weigh_by_likeness(n_words, m, n_slots, tokens, topics, constants, parts):
    """Weight all topics except m by their similarity to component 0, in ``parts.weights``; return the total weight."""
    weights, n_wm, n_0, total = parts.weights, topics.n_wm, parts.size[0], 0.0
    weights[:n_slots] = 0.0
    for c in range(n_words):
        w = parts.words[c]
        n_w = np.float64(parts.n_w[w, 0])
        if n_w > 0.0:
            for other in range(n_slots):
                weights[other] += n_w * n_wm[w, other]
    norm = _norm(n_words, 0, constants, parts)
    for other in range(n_slots):
        if other == m or tokens.size[other] == 0:
            weights[other] = 0.0
        else:
            product = weights[other] + constants.s * (n_0 + tokens.size[other] + constants.vs)
            weights[other] = _likeness(product, norm, topics.norm[other])
            total += weights[other]
    return total


@inner_kernel
def _norm(n_words, which, constants, parts):
    """Return the sum over all words of (n_w + s)**2 for component ``which``."""
    result = 0.0
    for c in range(n_words):
        result += np.float64(parts.n_w[parts.words[c], which]) ** 2
    return result + constants.s * (2.0 * parts.size[which] + constants.vs)


@kernel
def set_norms(n_slots, tokens, topics, constants):
    """Compute the norm of every topic: the sum over words of (n_wm + s)**2."""
    for m in range(n_slots):
        topics.norm[m] = constants.s * (2.0 * tokens.size[m] + constants.vs)
    for w in range(topics.n_wm.shape[0]):
        for m in range(n_slots):
            topics.norm[m] += np.float64(topics.n_wm[w, m]) ** 2


@numba.njit(inline="always")
def _likeness(product, norm, other):
    """Return the fourth power of the cosine of two topics' words; the power favours halves of one true topic."""
    return (product * product / (norm * other)) ** 2


@inner_kernel
def weigh_partners(m, n_slots, tokens, topics, constants, parts):
    """Set ``parts.weights`` of the candidate partners of topic m for a merge; return the sum of the weights."""
    n = gather(m, m, tokens, parts)
    parts.component[:n] = 0
    n_words = count_components(n, parts)
    total = _weigh_by_likeness(n_words, m, n_slots, tokens, topics, constants, parts)
    reset_word_counts(n_words, parts)
    return total


@inner_kernel
def reverse_partner_weights(m, n, n_words, n_slots, tokens, topics, constants, parts):
    """Return the partner weights of the merge that reverses a split: of component 1, and of all other topics in sum."""
    total = _weigh_by_likeness(n_words, m, n_slots, tokens, topics, constants, parts)
    product = constants.s * (n + constants.vs)
    for c in range(n_words):
        w = parts.words[c]
        product += np.float64(parts.n_w[w, 0]) * parts.n_w[w, 1]
    return _likeness(product, _norm(n_words, 0, constants, parts), _norm(n_words, 1, constants, parts)), total


@numba.njit(inline="always")
def partner_share(weight, n, total):
    """Return the probability of drawing a partner of this weight: half uniform over n partners, half by weight."""
    return 0.5 / n + 0.5 * weight / total


@inner_kernel
def _draw_partner(stream, m, n_slots, n, total, tokens, weights):
    """Draw the partner of topic m for a merge; return the partner and its log probability."""
    for other in range(n_slots):
        is_other = other != m and tokens.size[other] > 0
        weights[other] = partner_share(weights[other], n, total) if is_other else 0.0
    chosen = index_of(weights, n_slots, streams.uniform(stream), -1)
    return chosen, math.log(weights[chosen])


@inner_kernel
def draw_token(stream, n_slots, tokens):
    """Draw a topic in use and one of its tokens, both uniformly; return the token and the number of topics in use."""
    n_topics = 0
    for m in range(n_slots):
        n_topics += tokens.size[m] > 0
    r, m = min(int(streams.uniform(stream) * n_topics), n_topics - 1), 0
    while r > 0 or tokens.size[m] == 0:
        r -= tokens.size[m] > 0
        m += 1
    n = tokens.size[m]
    return tokens.order[tokens.first[m] + min(np.int64(streams.uniform(stream) * n), n - 1)], n_topics


@inner_kernel
def index_among(n, token, members):
    """Return the index of a token among the first n members, by binary search."""
    first, last = 0, n - 1
    while first < last:
        middle = (first + last) // 2
        if members[middle] < token:
            first = middle + 1
        else:
            last = middle
    return first


@numba.njit(inline="always")
def _keep_split(m, new, n, n_words, tokens, topics, constants, parts):
    """Apply a split of topic m: component 1 becomes the topic ``new``."""
    place = tokens.first[m]
    tokens.size[m], tokens.size[new] = parts.size[0], parts.size[1]
    tokens.first[new] = place + parts.size[0]
    place_1 = tokens.first[new]
    for i in range(n):
        if parts.component[i] == 0:
            tokens.order[place] = parts.members[i]
            place += 1
        else:
            tokens.order[place_1] = parts.members[i]
            tokens.topic[parts.members[i]] = new
            place_1 += 1
    for i in range(n_words):
        w = parts.words[i]
        topics.n_wm[w, m], topics.n_wm[w, new] = parts.n_w[w, 0], parts.n_w[w, 1]
    topics.norm[m], topics.norm[new] = (
        _norm(n_words, 0, constants, parts),
        _norm(n_words, 1, constants, parts),
    )
    eps = topics.eps[m]
    topics.eps[m], topics.eps[new] = eps * exp(parts.eps_log_share[0]), eps * exp(parts.eps_log_share[1])
    for k in range(parts.tau.size):
        topics.tau[m, k] = max(parts.tau[k] * exp(parts.log_share[0, k]), MIN_POSITIVE)
        topics.tau[new, k] = max(parts.tau[k] * exp(parts.log_share[1, k]), MIN_POSITIVE)


@numba.njit(inline="always")
def keep_merge(a, b, end, n, n_words, tokens, topics, constants, parts):
    """Merge topic b into topic a; return the end of the token lists in ``order``."""
    if end + n > tokens.order.size:
        for i in range(n):
            tokens.topic[parts.members[i]] = a
        end = list_tokens(tokens)
    else:
        tokens.first[a], tokens.size[a], tokens.size[b] = end, n, 0
        for i in range(n):
            tokens.topic[parts.members[i]] = a
            tokens.order[end] = parts.members[i]
            end += 1
    topics.norm[a] += topics.norm[b] - constants.s * constants.vs
    for i in range(n_words):
        w = parts.words[i]
        topics.norm[a] += 2.0 * topics.n_wm[w, a] * topics.n_wm[w, b]
        topics.n_wm[w, a], topics.n_wm[w, b] = topics.n_wm[w, a] + topics.n_wm[w, b], 0
    topics.eps[a], topics.eps[b] = topics.eps[a] + topics.eps[b], 0.0
    for k in range(parts.tau.size):
        topics.tau[a, k], topics.tau[b, k] = topics.tau[a, k] + topics.tau[b, k], 0.0
    return end


@numba.njit(inline="always")
def weigh_merge(a, b, tokens, topics, constants, parts):
    """Return the log ratio of merging topics a and b, the number of their tokens and the sum of their epsilon.

    The ratio is the posterior of the merged to the current state, times the density with which a split draws the
    shares. It leaves out the probability with which a split draws the components.
    """
    n, eps = gather(a, b, tokens, parts), topics.eps[a] + topics.eps[b]
    for c in range(n):
        parts.component[c] = 0 if tokens.topic[parts.members[c]] == a else 1
    parts.eps_log_share[0], parts.eps_log_share[1] = (
        math.log(topics.eps[a] / eps),
        math.log(topics.eps[b] / eps),
    )
    for k in range(parts.tau.size):
        tau_a, tau_b = max(topics.tau[a, k], MIN_POSITIVE), max(topics.tau[b, k], MIN_POSITIVE)
        parts.tau[k] = tau_a + tau_b
        parts.log_share[0, k], parts.log_share[1, k] = (
            math.log(tau_a / parts.tau[k]),
            math.log(tau_b / parts.tau[k]),
        )
    n_words = count_components(n, parts)
    estimate_components(n, eps, tokens, constants, parts)
    log_ratio = -log_ratio_of(log_words_ratio(n_words, constants, parts), eps, constants, parts)
    reset_word_counts(n_words, parts)
    return log_ratio, n, eps


@numba.njit(inline="always")
def _try_split(stream, i, max_allocated, n_topics, new, tokens, topics, constants, parts):
    """Propose to split the topic of token i, with component 1 as topic ``new``; return whether it is accepted."""
    m = np.int64(tokens.topic[i])
    if tokens.size[m] > max_allocated:
        return False
    n, eps = gather(m, m, tokens, parts), topics.eps[m]
    for k in range(parts.tau.size):
        parts.tau[k] = topics.tau[m, k]
    fixed = index_among(n, i, parts.members)
    log_q, n_words = allocate_sequentially(stream, n, fixed, -1, -np.inf, eps, tokens, constants, parts, None)
    if parts.size[1] == 0:
        reset_word_counts(n_words, parts)
        return False
    estimate_components(n, eps, tokens, constants, parts)
    draw_shares(stream, eps, constants, parts)
    log_ratio = log_ratio_of(log_words_ratio(n_words, constants, parts), eps, constants, parts) - log_q
    log_ratio += math.log(n / np.float64(parts.size[0]) * n_topics / (n_topics + 1.0))
    log_u = math.log(streams.uniform(stream))
    is_made = log_u < log_ratio
    if is_made:  # the probability of the reverse merge is computed last because it can only lower the ratio
        weight, total = reverse_partner_weights(m, n, n_words, new, tokens, topics, constants, parts)
        is_made = log_u < log_ratio + math.log(partner_share(weight, n_topics, total + weight))
    if is_made:
        change = parts.change
        change[0], change[1], change[2], change[3] = m, new, n, n_words
    else:
        reset_word_counts(n_words, parts)
    return is_made


@numba.njit(inline="always")
def _try_merge(stream, i, max_allocated, n_topics, n_slots, tokens, topics, constants, parts):
    """Propose to merge the topic of token i with another topic; return whether the merge is accepted."""
    a = np.int64(tokens.topic[i])
    if tokens.size[a] >= max_allocated:
        return False
    total = weigh_partners(a, n_slots, tokens, topics, constants, parts)
    b, log_share = _draw_partner(stream, a, n_slots, n_topics - 1, total, tokens, parts.weights)
    if tokens.size[a] + tokens.size[b] > max_allocated:
        return False
    log_ratio, n, eps = weigh_merge(a, b, tokens, topics, constants, parts)
    log_ratio -= log_share
    log_ratio -= math.log(n / np.float64(parts.size[0]) * (n_topics - 1.0) / n_topics)
    log_u = math.log(streams.uniform(stream))
    # the probability of the components can only lower the ratio; "not <" also rejects a ratio that is NaN
    if not log_u < log_ratio:
        return False
    fixed = index_among(n, i, parts.members)
    log_q, n_words = allocate_sequentially(stream, n, fixed, a, log_u - log_ratio, eps, tokens, constants, parts, None)
    reset_word_counts(n_words, parts)
    if not log_u < log_ratio + log_q:
        return False
    change = parts.change
    change[0], change[1], change[2], change[3] = a, b, n, n_words
    return True


@kernel
def _propose(first, last, n_slots, key, max_allocated, tokens, topics, constants, parts):
    """Make proposals ``first``..``last`` - 1 until one is accepted, and store the accepted one in ``parts``.

    Returns the number of the accepted proposal, or ``last``. Shared arrays are only read, so threads can run this.
    """
    stream = np.zeros(2, np.uint64)
    for proposal in range(first, last):
        streams.seek(stream, key, proposal)
        i, n_topics = draw_token(stream, n_slots, tokens)
        is_made = False
        if streams.uniform(stream) < 0.5:
            is_made = _try_split(stream, i, max_allocated, n_topics, n_slots, tokens, topics, constants, parts)
        elif n_topics > 1:
            is_made = _try_merge(stream, i, max_allocated, n_topics, n_slots, tokens, topics, constants, parts)
        if is_made:
            return proposal
    return last


@kernel
def _keep(n_slots, end, tokens, topics, constants, parts):
    """Apply the proposal stored in ``parts``; return the number of slots in use and the end of the token lists."""
    a, b, n, n_words = parts.change
    if b == n_slots:
        _keep_split(a, b, n, n_words, tokens, topics, constants, parts)
        reset_word_counts(n_words, parts)
        return n_slots + 1, end
    return n_slots, keep_merge(a, b, end, n, n_words, tokens, topics, constants, parts)


def new_components(n_tokens: int, n_documents: int, n_words: int, n_clusters: int, n_slots: int) -> SplitComponents:
    """Return the work arrays of a split or merge, with word counts of 0."""
    return SplitComponents(
        np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32), np.empty(n_documents, np.int64),
        np.empty(n_tokens, np.int8), np.empty(n_documents, np.int64), np.zeros((n_words, 2), np.int32),
        np.zeros(2, np.int64), np.empty(n_words, np.int64), np.zeros((3, n_clusters, MAX_FACTORS + 1), np.int32),
        np.zeros(3, np.int64), np.empty((3, n_documents, 2), np.int32), np.zeros(3, np.int64), np.empty(n_slots),
        np.zeros(4, np.int64), np.empty(n_clusters), *np.empty((4, 2, n_clusters)), *np.empty((3, 2)),
    )  # fmt: skip


def move_bytes(n_tokens: int, n_documents: int, n_words: int, n_clusters: int, n_topics: int) -> int:
    """Return the bytes of the work arrays of each thread of :func:`split_and_merge_topics`."""
    per_cluster = 12 * (MAX_FACTORS + 1) + 72
    return 9 * n_tokens + 40 * n_documents + 16 * n_words + per_cluster * n_clusters + 8 * (n_topics + SPARE_TOPICS)


def _move(
    pool: Executor | None,
    first: int,
    last: int,
    n_slots: int,
    key: np.uint64,
    max_allocated: int,
    tokens: Tokens,
    topics: TopicSlots,
    constants: TopicConstants,
    workspaces: list[SplitComponents],
    made: np.ndarray,
) -> tuple[int, int]:
    """Make proposals from number ``first`` on until no slot is spare or ``last`` is reached.

    Returns the number of the next proposal and the number of slots in use; adds the splits and merges to ``made``.
    """
    end = list_tokens(tokens)
    set_norms(n_slots, tokens, topics, constants)
    while first < last and n_slots < len(tokens.size):

        def look(thread: int, first: int, last: int, n_slots: int = n_slots) -> int:
            return _propose(first, last, n_slots, key, max_allocated, tokens, topics, constants, workspaces[thread])

        first, hits = look_ahead(pool, first, last, look)
        # not a kernel, because how often this runs depends on timing: only some runs would compile it
        for thread in hits[1:]:
            parts = workspaces[thread]
            parts.n_w[parts.words[: parts.change[3]]] = 0
        if hits:
            parts = workspaces[hits[0]]
            made[0 if parts.change[1] == n_slots else 1] += 1
            n_slots, end = _keep(n_slots, end, tokens, topics, constants, parts)
            first += 1
    return first, n_slots


def split_and_merge_topics(
    assignments: Assignments,
    content: sp.csr_matrix,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    topic_word_prior: float,
    key: np.uint64,
    n_proposals: int,
    max_allocated: int = MAX_ALLOCATED,
    pool: Executor | None = None,
    n_wm: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Make ``n_proposals`` proposals to split or merge topics, in place, and drop the topics that end empty.

    The other parameters are as in :func:`.tokens.sweep_document_topics`. Threads do not change the result.

    Parameters
    ----------
    key : np.uint64
        Key with one random stream per proposal.
    max_allocated : int
        Largest number of tokens of a topic to split, or of two topics to merge.
    n_wm : (V, M) int32 or None
        Tokens of each word in each topic, if they are already counted.

    Returns
    -------
    (K, M + 1) float64
        tau of the topics now in use; the last column is the mass of all other topics.
    (2,) int64
        Numbers of accepted splits and merges.
    (V, M) int32 or None
        n_wm of the topics now in use; None if there are no tokens.
    """
    start, n_tokens, n_clusters = assignments.document_start, len(assignments.topic), len(tau)
    n_documents, n_words = content.shape
    constants = TopicConstants(
        float(omega),
        float(concentrations.table),
        float(concentrations.topic),
        topic_word_prior,
        topic_word_prior * n_words,
    )
    most_slots = assignments.n_topics + n_proposals + SPARE_TOPICS
    workspaces = [
        new_components(n_tokens, n_documents, n_words, n_clusters, most_slots) for _ in range(n_threads(pool))
    ]
    document, word = np.empty((2, n_tokens), np.int32)

    def list_block(first: int, last: int) -> None:
        list_cells(first, last, content.indptr, content.indices, content.data, start, document, word)

    in_blocks(pool, list_block, n_documents, _LISTING_BLOCK)
    order, cluster, topic = np.empty(2 * n_tokens, np.int32), assignments.cluster, assignments.topic
    made, proposal = np.zeros(2, np.int64), 0
    while n_tokens > 0 and proposal < n_proposals:
        n_topics = assignments.n_topics
        slots = n_topics + SPARE_TOPICS
        tokens = Tokens(document, word, topic, cluster, order, *np.zeros((2, slots), np.int64))
        by_topic, eps = np.zeros((slots, n_clusters)), np.zeros(slots)
        by_topic[:n_topics], eps[:n_topics] = tau[:, :-1].T, assignments.topic_weights
        n_wm = topics_of_words(content, topic, slots, pool) if n_wm is None else extended(n_wm, slots)
        topics = TopicSlots(n_wm, eps, by_topic, np.empty(slots))
        proposal, n_slots = _move(
            pool, proposal, n_proposals, n_topics, key, max_allocated, tokens, topics, constants, workspaces, made
        )
        assignments.topic_weights = eps[:n_slots]
        used = tokens.size[:n_slots] > 0
        assignments.count()
        assignments.compact()
        n_wm = np.compress(used, n_wm[:, :n_slots], axis=1)
        # in C order as in other calls, since kernels would be compiled again for another memory layout
        tau = np.ascontiguousarray(np.column_stack([by_topic[:n_slots][used].T, tau[:, -1]]))
    return tau, made, n_wm
