"""Split and merge moves of document clusters at the document level (docs/model.md, section 2).

The state is (z, tau) given l, epsilon, v, alpha and omega, with theta summed out; tables are drawn after these moves:

    p(z, tau, l, x) prop. to p(z) prod_k f_k(x) Dir(tau_k; v eps)
                             prod_j prod_m G(omega tau_km + n_jm) / G(omega tau_km)

with p(z) of :mod:`mc2core.inference.gibbs.weights`.

A move draws tau of the clusters that it changes from a scaled Dirichlet that depends only on n_jm of their documents:
Gammas of shape e_m and mean g_m, divided by their sum. g is a fixed point of g = (v eps + u) / (v + u.), where u are
the tables expected at parameters omega g. e_m is the curvature of the log posterior of tau_km there: v eps_m plus the
expectation minus the variance of the tables. With this density q_k, a cluster contributes to the Metropolis-Hastings
ratio the factor

    R_k = alpha G(n_k + b) / G(1 + b) f_k(x) Dir(tau_k; v eps) / q_k(tau_k)
          prod_j prod_m G(omega tau_km + n_jm) / G(omega tau_km).

**Proposals** (after Jain and Neal 2004). A document is drawn and then, with probability 1/2 each, another one from the
same cluster, which is to be split, or one from another cluster, which is to be merged with it. The other cluster is
drawn in proportion to its documents, or to these times the probability of the first document's topics given tau.
Restricted Gibbs starts with the two documents in two components. Three scans draw the components of all others given
those before, and a last scan makes the proposal. A merge makes the same scans to compute the probability of the current
components. R with g in place of tau detects hopeless proposals early: this first decision is corrected by a second one
(Christen and Fox 2005). R is stored for each cluster, exact and approximate (at g). Proposals are evaluated on threads
in the same way as those of topics.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import MIN_POSITIVE, exp, log, log_gamma, log_rising_factorial
from mc2core.compute.streams import index_of, log_gamma_variate
from mc2core.compute.threads import in_blocks, look_ahead, n_threads
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.families.vectors import VectorClusters, describe_cluster, log_marginal, log_odds
from mc2core.inference.gibbs.assignments import Assignments, TopicCounts
from mc2core.inference.gibbs.documents import Contexts, contexts_of
from mc2core.inference.gibbs.weights import Concentrations, PartitionLaw, expect_table_shape, expect_tables

# -- one component of a split or merge: an estimate of its tau, a proposal around it, and what it weighs -----------
ROUGH, FINE = 2, 6  # passes of an estimate of tau: for proposals, and for ratios
FEW = 8  # tokens of a document in a topic: documents with 1, ..., FEW are tallied, those with more gone through


class ClusterConstants(NamedTuple):
    """Constants of the moves."""

    law: PartitionLaw
    v: float
    omega: float
    topics: np.ndarray  # (M + 1,) float64: v eps_m, the rest last
    slack: float  # of the first decision
    min_log_ratio: float  # of components to one cluster, below which restricted Gibbs ends


class ClusterWorkspace(NamedTuple):
    """Workspace for two components of a split and their union."""

    members: np.ndarray  # (J,) int64
    component: np.ndarray  # (J,) int8, of each member: 0 or 1, or 2 of the union
    given: np.ndarray  # (J,) int8: components that others are drawn given
    g: np.ndarray  # (3, M + 1) float64
    shape: np.ndarray  # (3, M + 1) float64: e
    tau: np.ndarray  # (3, M + 1) float64
    sizes: np.ndarray  # (3,) int64, documents of each ...
    tallies: np.ndarray  # (3, M + 1, FEW + 1) int64: ... and of each topic, see :func:`tally`
    terms: np.ndarray  # (M + 1, FEW + 1) float64: of :func:`_term`
    odds: np.ndarray  # (J,) float64: ln of those of component 1, of each member ...
    inverse: np.ndarray  # (J,) float64: ... and one over its probability
    u: np.ndarray  # (M + 1,) float64: expected tables
    natural: np.ndarray  # (2, D) float64
    totals: np.ndarray  # (2, C) float64
    vectors: VectorClusters  # of components 0 and 1
    weights: np.ndarray  # (slots,) float64, of the clusters to merge with
    # a proposal that is to be made: slots a and b are to hold components 0 and 1 of a split, or a 2, of a merge
    slots: np.ndarray  # (2,) int64: a and b
    exact: np.ndarray  # (3,) float64: ln R_k of the components
    approximate: np.ndarray  # (3,) float64: ln R_k at g in place of tau

    @classmethod
    def of(cls, n_documents: int, n_columns: int, contexts: Contexts, n_slots: int) -> ClusterWorkspace:
        """Return uninitialised arrays."""
        component, given = np.empty((2, n_documents), np.int8)
        g, shape, tau = np.empty((3, 3, n_columns))
        odds, inverse = np.empty((2, n_documents))
        return cls(
            np.empty(n_documents, np.int64), component, given, g, shape, tau, np.empty(3, np.int64),
            np.empty((3, n_columns, FEW + 1), np.int64), np.empty((n_columns, FEW + 1)), odds, inverse,
            np.empty(n_columns), np.empty((2, len(contexts.natural))), np.empty((2, len(contexts.codes))),
            contexts.vectors.clusters(contexts.offsets, 2), np.empty(n_slots), np.zeros(2, np.int64), *np.zeros((2, 3)),
        )  # fmt: skip


@numba.njit(inline="always")
def copy(source, target):
    """Copy one array into another."""
    # a loop: an assignment of arrays makes numba compile the text of its error, which takes seconds
    for i in range(target.size):
        target[i] = source[i]


@inner_kernel(error_model="numpy")
def tally(members, n, component, first, last, counts, work):
    """Count the members on components ``first``..``last`` (all are on one of these), and of each those with 1, ..., FEW
    tokens in a topic, in columns 1 to FEW, and, in 0, with more.
    """
    start, topic, count = counts
    tallies, sizes = work.tallies, work.sizes
    for which in range(first, last + 1):
        sizes[which] = 0
        for m in range(tallies.shape[1]):
            for t in range(tallies.shape[2]):
                tallies[which, m, t] = 0
    for i in range(n):
        which = component[i]
        sizes[which] += 1
        for c in range(start[members[i]], start[members[i] + 1]):
            tallies[which, topic[c], count[c] if count[c] <= FEW else 0] += 1


@numba.njit(inline="always")
def _has_many(tallies):
    """Whether a document has more than FEW tokens in a topic."""
    result = False
    for m in range(tallies.shape[0]):
        result |= tallies[m, 0] > 0
    return result


@inner_kernel(error_model="numpy")
def estimate(members, n, component, which, counts, constants, n_passes, work):
    """Estimate tau of one tallied component: g = (v eps + u) / (v + u.), u tables expected at omega g."""
    start, topic, count = counts
    v, omega, topics = constants.v, constants.omega, constants.topics
    tallies, g, u = work.tallies[which], work.g[which], work.u
    has_many = _has_many(tallies)
    for m in range(g.size):
        g[m] = max(topics[m] / v, MIN_POSITIVE)
    for _ in range(n_passes):
        for m in range(g.size):
            a, tables = omega * g[m], np.float64(tallies[m, 0] + tallies[m, 1])
            for t in range(2, FEW + 1):
                if tallies[m, t] > 0:
                    tables += tallies[m, t] * (1.0 + expect_tables(a, t))
            u[m] = tables
        if has_many:
            for i in range(n):
                if component[i] == which:
                    for c in range(start[members[i]], start[members[i] + 1]):
                        if count[c] > FEW:
                            u[topic[c]] += expect_tables(omega * g[topic[c]], count[c])
        total = v
        for m in range(g.size):
            total += u[m]
        for m in range(g.size):
            g[m] = max((topics[m] + u[m]) / total, MIN_POSITIVE)


@inner_kernel(error_model="numpy")
def _find_shapes(members, n, component, which, counts, constants, work):
    """e of one tallied component: v eps_m + sum over its documents of (expected - variance of tables)."""
    start, topic, count = counts
    tallies, g, shape = work.tallies[which], work.g[which], work.shape[which]
    for m in range(g.size):
        a, tables = constants.omega * g[m], np.float64(tallies[m, 0] + tallies[m, 1])
        for t in range(2, FEW + 1):
            if tallies[m, t] > 0:
                tables += tallies[m, t] * (1.0 + expect_table_shape(a, t))
        shape[m] = constants.topics[m] + tables
    if _has_many(tallies):
        for i in range(n):
            if component[i] == which:
                for c in range(start[members[i]], start[members[i] + 1]):
                    if count[c] > FEW:
                        shape[topic[c]] += expect_table_shape(constants.omega * g[topic[c]], count[c])


@inner_kernel(error_model="numpy")
def log_at(members, n, component, which, counts, constants, work, tau):
    """What of ln R_k depends on tau: prior over proposal density, and the documents of one tallied component."""
    start, topic, count = counts
    tallies, g, shape = work.tallies[which], work.g[which], work.shape[which]
    topics, omega, total, scaled, result = constants.topics, constants.omega, 0.0, 0.0, 0.0
    for m in range(tau.size):
        total += shape[m]
        scaled += shape[m] / g[m] * tau[m]
        if shape[m] != topics[m]:
            result += (topics[m] - shape[m]) * log(tau[m])
        a = max(omega * tau[m], MIN_POSITIVE)
        for t in range(1, FEW + 1):
            if tallies[m, t] > 0:
                result += tallies[m, t] * log_rising_factorial(a, t)
        if tallies[m, 0] > 0:
            result -= tallies[m, 0] * log_gamma(a)
    result += total * log(scaled)
    if _has_many(tallies):
        for i in range(n):
            if component[i] == which:
                for c in range(start[members[i]], start[members[i] + 1]):
                    if count[c] > FEW:
                        result += log_gamma(max(omega * tau[topic[c]], MIN_POSITIVE) + count[c])
    return result


@inner_kernel(error_model="numpy")
def evaluate(members, n, component, which, counts, constants, contexts, work):
    """(what of ln R_k does not depend on tau, ln R_k at g) of one tallied component; leaves its g and e."""
    indptr, indices, values, offsets, codes, prior, prior_totals, vectors = contexts
    estimate(members, n, component, which, counts, constants, FINE, work)
    _find_shapes(members, n, component, which, counts, constants, work)
    g, shape, topics = work.g[which], work.shape[which], constants.topics
    natural, totals = work.natural[0], work.totals[0]
    copy(prior, natural)
    copy(prior_totals, totals)
    law = constants.law
    result = log(law.alpha) - law.log_gamma_one + log_gamma(work.sizes[which] + law.each) + log_gamma(constants.v)
    if codes.size > 0:
        for i in range(n):
            if component[i] == which:
                if vectors.n_others > 0:
                    result += log_predictive(
                        indptr, indices, values, members[i], natural, totals, offsets, vectors.codes
                    )
                add_statistics(indptr, indices, values, members[i], 1.0, natural, totals, offsets)
        result += log_marginal(natural, prior, vectors, offsets)
    total = 0.0
    for m in range(g.size):
        total += shape[m]
        result -= shape[m] * log(shape[m] / g[m])
        if shape[m] != topics[m]:
            result += log_gamma(shape[m]) - log_gamma(topics[m])
    result -= log_gamma(total)
    return result, result + log_at(members, n, component, which, counts, constants, work, g)


@inner_kernel(error_model="numpy")
def draw_tau(stream, g, shape, tau):
    """Draw Gammas of these shapes and means, divided by their sum, in place."""
    top, total = -np.inf, 0.0
    for m in range(tau.size):
        tau[m] = log_gamma_variate(stream, max(shape[m], MIN_POSITIVE)) + math.log(g[m] / shape[m])
        top = max(top, tau[m])
    for m in range(tau.size):
        tau[m] = math.exp(tau[m] - top)
        total += tau[m]
    for m in range(tau.size):
        tau[m] = max(tau[m] / total, MIN_POSITIVE)


# -- the moves ------------------------------------------------------------------------------------------------
_SCANS = 3
_MAX_LOG_ODDS = 700.0  # ln of odds: exp of it is a number
_SLACK = 30.0  # nats by which the first decision is kinder than the ratio at g, which errs by a few
_MIN_LOG_RATIO = (
    -100.0
)  # ln of the ratio of the components after a scan to one cluster, below which restricted Gibbs ends


class ClusterSlots(NamedTuple):
    """Stored values of the clusters, one slot each; slots from the number of clusters on are spare."""

    n_k: np.ndarray  # (slots,) int64, documents
    tau: np.ndarray  # (slots, M + 1) float64
    exact: np.ndarray  # (slots,) float64: ln R_k
    approximate: np.ndarray  # (slots,) float64: ln R_k at g in place of tau


@inner_kernel(error_model="numpy")
def _invert(n, odds, inverse):
    """1 / p = 1 + exp(-x) of log odds x, which are bounded: a loop of its own, which compiles to vector code."""
    for i in range(n):
        odds[i] = min(max(odds[i], -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        inverse[i] = 1.0 + exp(-odds[i])


@inner_kernel(error_model="numpy")
def _term(m, n, omega, g):
    """ln G(a_1 + n) G(a_0) / (G(a_1) G(a_0 + n)), a_i = omega g_im, at least 1e-300; n = 0: ln G(a_0) / G(a_1)."""
    a_0, a_1 = max(omega * g[0, m], MIN_POSITIVE), max(omega * g[1, m], MIN_POSITIVE)
    if n == 0:
        return log_gamma(a_0) - log_gamma(a_1)
    return log_rising_factorial(a_1, n) - log_rising_factorial(a_0, n)


@inner_kernel(error_model="numpy")
def _find_odds(members, n, counts, omega, g, terms, odds):
    """Add ln prod_m G(a_1m + n_jm) G(a_0m) / (G(a_1m) G(a_0m + n_jm)) of each member j, a_im = omega g_im."""
    start, topic, count = counts  # here, not for each member: arrays taken out of a tuple are counted as references
    for m in range(terms.shape[0]):
        for t in range(terms.shape[1]):
            terms[m, t] = np.nan  # not known yet
    for i in range(n):
        result = 0.0
        for c in range(start[members[i]], start[members[i] + 1]):
            m, n_jm = topic[c], count[c]
            column = n_jm if n_jm <= FEW else 0
            term = terms[m, column]
            if term != term:
                term = _term(m, column, omega, g)
                terms[m, column] = term
            result += term
            if n_jm > FEW:
                result += log_gamma(max(omega * g[1, m], MIN_POSITIVE) + n_jm)
                result -= log_gamma(max(omega * g[0, m], MIN_POSITIVE) + n_jm)
        odds[i] += result


@inner_kernel(error_model="numpy")
def _scan(stream, members, n, n_given, component, is_drawn, is_last, counts, constants, contexts, work):
    """Draw ``component`` of all but the first two members given the components ``work.given`` of the first ``n_given``.

    ``is_drawn`` False: take the components as they are. ``is_last``: returns ln of their probability, else 0.
    """
    indptr, indices, values, offsets, codes, prior, prior_totals, vectors = contexts
    given, odds, inverse, sizes = work.given, work.odds, work.inverse, work.sizes
    tally(members, n_given, given, 0, 1, counts, work)
    for which in range(2):
        estimate(members, n_given, given, which, counts, constants, ROUGH, work)
        copy(prior, work.natural[which])
        copy(prior_totals, work.totals[which])
    if codes.size > 0:
        for i in range(n_given):
            natural, totals = work.natural[given[i]], work.totals[given[i]]
            add_statistics(indptr, indices, values, members[i], 1.0, natural, totals, offsets)
    odds[:n] = log((sizes[1] + constants.law.each) / (sizes[0] + constants.law.each))
    if codes.size > 0:
        for which in range(2):
            describe_cluster(which, work.natural[which], vectors, offsets, work.vectors)
        for i in range(2, n):
            if vectors.n_others > 0:
                odds[i] += log_predictive(
                    indptr, indices, values, members[i], work.natural[1], work.totals[1], offsets, vectors.codes
                )
                odds[i] -= log_predictive(
                    indptr, indices, values, members[i], work.natural[0], work.totals[0], offsets, vectors.codes
                )
            odds[i] += log_odds(indptr, indices, values, members[i], vectors, offsets, work.vectors)
    _find_odds(members, n, counts, constants.omega, work.g, work.terms, odds)
    _invert(n, odds, inverse)
    result = 0.0
    for i in range(2, n):
        if is_drawn:
            component[i] = np.int8(streams.uniform(stream) * inverse[i] < 1.0)
        if is_last:
            result -= log(inverse[i])
            if component[i] == 0:
                result -= odds[i]
    return result


@inner_kernel(error_model="numpy")
def _restricted_gibbs(stream, members, n, component, merged, counts, constants, contexts, work):
    """Sides from which a split is proposed: of the first two members alone, then of scans.

    False where the components after the first scan have a ratio to one cluster, ``merged`` its ln R_k at g, below
    ``constants.min_log_ratio``: nothing is to be proposed then. What is drawn until then is drawn alike in a split and
    in the merge that undoes it, so that the one is ended as often as the other.
    """
    given, n_given, ratio = work.given, 2, -merged
    component[0], component[1] = 0, 1
    given[0], given[1] = 0, 1
    for number in range(_SCANS):
        _scan(stream, members, n, n_given, component, True, False, counts, constants, contexts, work)
        n_given = n
        for i in range(n):  # one array assigned to another brings code that words an error of shapes
            given[i] = component[i]
        if number == 0:
            tally(members, n, component, 0, 1, counts, work)
            for which in range(2):
                ratio += evaluate(members, n, component, which, counts, constants, contexts, work)[1]
            if ratio < constants.min_log_ratio:
                return False
    return True


@inner_kernel(error_model="numpy")
def _log_partner(i, n_k, tau, counts, omega):
    """ln of n_k times p(l_i | tau_k), less what is common to all clusters."""
    result = log(np.float64(n_k))
    for c in range(counts.start[i], counts.start[i + 1]):
        result += log_rising_factorial(max(omega * tau[counts.topic[c]], MIN_POSITIVE), counts.n[c])
    return result


@inner_kernel(error_model="numpy")
def _weigh_partners(i, k, n_clusters, clusters, counts, omega, weights):
    """Fill in :func:`_log_partner` of document i for all clusters but its own, k; returns the logarithm of the sum."""
    top, total = -np.inf, 0.0
    for c in range(n_clusters):
        weights[c] = -np.inf
        if c != k and clusters.n_k[c] > 0:
            weights[c] = _log_partner(i, clusters.n_k[c], clusters.tau[c], counts, omega)
            top = max(top, weights[c])
    for c in range(n_clusters):
        if weights[c] > -np.inf:
            total += exp(weights[c] - top)
    return top + log(total) if total > 0.0 else -np.inf


@numba.njit(inline="always")
def _partner_share(n_b, n_outside, log_weight, log_sum):
    """Probability that a document of another cluster is merged with b: half by size, half by what suits it."""
    return 0.5 * n_b / n_outside + 0.5 * math.exp(log_weight - log_sum)


@inner_kernel(error_model="numpy")
def _draw_partner(stream, i, k, n_clusters, cluster, clusters, counts, omega, weights):
    """(the cluster that i's, k, is to be merged with, logarithm of its probability)."""
    log_sum = _weigh_partners(i, k, n_clusters, clusters, counts, omega, weights)
    n_outside = cluster.size - clusters.n_k[k]
    for c in range(n_clusters):
        is_other = weights[c] > -np.inf
        weights[c] = _partner_share(clusters.n_k[c], n_outside, weights[c], log_sum) if is_other else 0.0
    chosen = index_of(weights, n_clusters, streams.uniform(stream), -1)
    return chosen, math.log(weights[chosen])


@inner_kernel(error_model="numpy")
def _gather(i, r, other_cluster, cluster, members):
    """Members of i's cluster and ``other_cluster`` (which may be the same): i, the r-th of the latter, all the rest.

    i itself is not counted. Returns how many there are.
    """
    k, other = cluster[i], -1
    for j in range(cluster.size):
        if j != i and cluster[j] == other_cluster:
            if r == 0:
                other = j
            r -= 1
    members[0], members[1], n = i, other, 2
    for j in range(cluster.size):
        if j != i and j != other and (cluster[j] == k or cluster[j] == other_cluster):
            members[n] = j
            n += 1
    return n


@inner_kernel(error_model="numpy")
def _renew(stream, n, which, counts, constants, work):
    """Draw tau of one component; returns what of ln R_k depends on it."""
    draw_tau(stream, work.g[which], work.shape[which], work.tau[which])
    return log_at(work.members, n, work.component, which, counts, constants, work, work.tau[which])


@inner_kernel(error_model="numpy")
def _accepts(stream, log_ratio, approximate, slack):
    """The second decision, the first having been made with ``approximate``, the ratio at g in place of tau."""
    log_ratio += min(0.0, slack - approximate) - min(0.0, slack + approximate)
    return math.log(streams.uniform(stream)) < log_ratio


@inner_kernel(error_model="numpy")
def _log_opening(n_used, law):
    """ln (1 - K / N) of a cluster that K others see opened."""
    return math.log1p(-n_used / law.most)


@numba.njit(inline="always")
def _try_split(stream, n, n_used, n_slots, cluster, clusters, counts, constants, contexts, work):
    """Try to split the cluster of n members; returns whether it is to be."""
    members, component = work.members, work.component
    k = cluster[members[0]]
    if not _restricted_gibbs(stream, members, n, component, clusters.approximate[k], counts, constants, contexts, work):
        return False
    log_q = _scan(stream, members, n, n, component, True, True, counts, constants, contexts, work)
    tally(members, n, component, 0, 1, counts, work)
    exact, approximates, sizes = work.exact, work.approximate, work.sizes
    for which in range(2):
        exact[which], approximates[which] = evaluate(members, n, component, which, counts, constants, contexts, work)
    approximate = approximates[0] + approximates[1] - clusters.approximate[k] - log_q
    if math.log(streams.uniform(stream)) >= constants.slack + approximate:
        return False
    for which in range(2):
        exact[which] += _renew(stream, n, which, counts, constants, work)
    # the pair: one of n - 1 for the split, one of sizes[1] in the partner drawn for the merge
    log_sum = _weigh_partners(members[0], k, n_slots, clusters, counts, constants.omega, work.weights)
    log_weight = _log_partner(members[0], sizes[1], work.tau[1], counts, constants.omega)
    log_sum = max(log_sum, log_weight) + math.log1p(math.exp(-abs(log_sum - log_weight)))
    share = _partner_share(sizes[1], cluster.size - sizes[0], log_weight, log_sum)
    pair = math.log(share / sizes[1] * (n - 1.0)) + _log_opening(n_used, constants.law)
    if not _accepts(stream, exact[0] + exact[1] - clusters.exact[k] - log_q + pair, approximate, constants.slack):
        return False
    work.slots[0], work.slots[1] = k, n_slots
    return True


@numba.njit(inline="always")
def _try_merge(stream, n, n_used, log_share, cluster, clusters, counts, constants, contexts, work):
    """Try to merge the two clusters of n members; returns whether they are to be."""
    members, component = work.members, work.component
    a, b = cluster[members[0]], cluster[members[1]]
    component[:n] = 2
    tally(members, n, component, 2, 2, counts, work)
    exact, merged_approximate = evaluate(members, n, component, 2, counts, constants, contexts, work)
    approximate = merged_approximate - clusters.approximate[a] - clusters.approximate[b]
    log_u = math.log(streams.uniform(stream))
    if log_u >= constants.slack + approximate:
        return False  # the probability of the split can only make it less
    if not _restricted_gibbs(stream, members, n, component, merged_approximate, counts, constants, contexts, work):
        return False
    for i in range(n):
        component[i] = 0 if cluster[members[i]] == a else 1
    log_q = _scan(stream, members, n, n, component, False, True, counts, constants, contexts, work)
    approximate += log_q
    if log_u >= constants.slack + approximate:
        return False
    component[:n] = 2
    exact += _renew(stream, n, 2, counts, constants, work)
    pair = math.log(clusters.n_k[b] / (n - 1.0)) - log_share - _log_opening(n_used - 1, constants.law)
    if not _accepts(stream, exact - clusters.exact[a] - clusters.exact[b] + log_q + pair, approximate, constants.slack):
        return False
    work.slots[0], work.slots[1] = a, b
    work.exact[2], work.approximate[2] = exact, merged_approximate
    return True


@kernel(error_model="numpy")
def _propose(first, last, key, n_slots, n_used, cluster, clusters, counts, constants, contexts, work):
    """Make proposals from number ``first`` on until one is to be made, and leave it in ``work``.

    Returns its number, or ``last``. ``n_slots`` slots are in use, ``n_used`` of them by clusters. All that is shared is
    read alone.
    """
    stream, n_documents = np.zeros(2, np.uint64), cluster.size
    for proposal in range(first, last):
        streams.seek(stream, key, proposal)
        i = min(np.int64(streams.uniform(stream) * n_documents), n_documents - 1)
        splits = streams.uniform(stream) < 0.5
        k, other, log_share = cluster[i], cluster[i], 0.0
        candidates = clusters.n_k[k] - 1
        if not splits and clusters.n_k[k] < n_documents:
            other, log_share = _draw_partner(
                stream, i, k, n_slots, cluster, clusters, counts, constants.omega, work.weights
            )
            candidates = clusters.n_k[other]
        if candidates == 0 or splits != (other == k) or (splits and n_used == constants.law.most):
            continue
        r = min(np.int64(streams.uniform(stream) * candidates), candidates - 1)
        n = _gather(i, r, other, cluster, work.members)
        if splits:
            if _try_split(stream, n, n_used, n_slots, cluster, clusters, counts, constants, contexts, work):
                return proposal
        elif _try_merge(stream, n, n_used, log_share, cluster, clusters, counts, constants, contexts, work):
            return proposal
    return last


@inner_kernel
def _keep_component(k, which, clusters, work):
    clusters.n_k[k], clusters.exact[k], clusters.approximate[k] = (
        work.sizes[which],
        work.exact[which],
        work.approximate[which],
    )
    copy(work.tau[which], clusters.tau[k])


@kernel
def _keep(is_split, cluster, clusters, work):
    """Make the change that is in ``work``."""
    a, b = work.slots
    if is_split:
        for i in range(work.sizes[0] + work.sizes[1]):
            if work.component[i] == 1:
                cluster[work.members[i]] = b
        _keep_component(a, 0, clusters, work)
        _keep_component(b, 1, clusters, work)
    else:
        for i in range(work.sizes[2]):
            cluster[work.members[i]] = a
        _keep_component(a, 2, clusters, work)
        clusters.n_k[b] = 0


# -- all clusters as they are ------------------------------------------------------------------------------------
_CLUSTER_BLOCK = 4


@kernel(error_model="numpy")
def _weigh(first, last, start, members, component, tau, counts, constants, contexts, work, exact, approximate):
    for k in range(first, last):
        n = start[k + 1] - start[k]
        own = members[start[k] : start[k + 1]]
        tally(own, n, component, 0, 0, counts, work)
        fixed, approximate[k] = evaluate(own, n, component, 0, counts, constants, contexts, work)
        exact[k] = fixed + log_at(own, n, component, 0, counts, constants, work, tau[k])


def weigh_clusters(
    cluster: np.ndarray,
    tau: np.ndarray,
    counts: TopicCounts,
    constants: ClusterConstants,
    contexts: Contexts,
    pool: Executor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return ln R_k of all clusters, exact and with g in place of tau, (K,) float64 each.

    Parameters
    ----------
    cluster : (J,) int32
    tau : (K, M + 1) float64, at least ``MIN_POSITIVE``
    contexts : as kernels take them
    """
    n_clusters, columns = tau.shape
    members, n_k = np.argsort(cluster, kind="stable"), np.bincount(cluster, minlength=n_clusters)
    start, component = np.concatenate([[0], np.cumsum(n_k)]), np.zeros(len(cluster), np.int8)
    exact, approximate = np.empty((2, n_clusters))

    def weigh(first: int, last: int) -> None:
        work = ClusterWorkspace.of(0, columns, contexts, 0)
        _weigh(first, last, start, members, component, tau, counts, constants, contexts, work, exact, approximate)

    in_blocks(pool, weigh, n_clusters, _CLUSTER_BLOCK)
    return exact, approximate


def split_and_merge_clusters(
    assignments: Assignments,
    counts: TopicCounts,
    tau: np.ndarray,
    contexts: StackedContexts,
    concentrations: Concentrations,
    omega: float,
    key: np.uint64,
    n_proposals: int,
    slack: float = _SLACK,
    min_log_ratio: float = _MIN_LOG_RATIO,
    pool: Executor | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make ``n_proposals`` proposals. Clusters change in place, and empty ones are dropped.

    Parameters
    ----------
    counts : n_jm
    tau : (K, M + 1) float64
        Topic proportions of the clusters, with the remaining mass in the last column.
    key : one stream for each proposal
    slack : nats, of the first decision; any value is exact
    min_log_ratio : of components after a scan to one cluster, below which restricted Gibbs ends; the same
    pool : threads, which change no bit

    Returns
    -------
    (K, M + 1) float64
        tau of the clusters now in use.
    (2,) int64
        Numbers of accepted splits and merges.
    """
    n_clusters, columns = tau.shape
    slots, cluster = n_clusters + n_proposals, assignments.cluster
    v, topics = float(concentrations.table), np.append(assignments.topic_weights, assignments.remaining)
    constants = ClusterConstants(
        concentrations.partition, v, float(omega), np.maximum(v * topics, MIN_POSITIVE), slack, min_log_ratio
    )
    stacked = contexts_of(contexts)
    clusters = ClusterSlots(np.zeros(slots, np.int64), np.empty((slots, columns)), *np.empty((2, slots)))
    clusters.n_k[:n_clusters], clusters.tau[:n_clusters] = assignments.n_k, np.maximum(tau, MIN_POSITIVE)
    clusters.exact[:n_clusters], clusters.approximate[:n_clusters] = weigh_clusters(
        cluster, clusters.tau[:n_clusters], counts, constants, stacked, pool
    )
    workspaces = [ClusterWorkspace.of(len(cluster), columns, stacked, slots) for _ in range(n_threads(pool))]
    made, proposal = np.zeros(2, np.int64), 0
    while proposal < n_proposals:
        n_slots = n_clusters + made[0]
        n_used = n_slots - made[1]

        def look(thread: int, first: int, last: int, n_slots: int = n_slots, n_used: int = n_used) -> int:
            given = cluster, clusters, counts, constants, stacked, workspaces[thread]
            return _propose(first, last, key, n_slots, n_used, *given)

        proposal, hits = look_ahead(pool, proposal, n_proposals, look)
        if hits:
            work = workspaces[hits[0]]
            is_split = work.slots[1] == n_slots
            _keep(is_split, cluster, clusters, work)
            made[0 if is_split else 1] += 1
            proposal += 1
    assignments.count(n_clusters + made[0], counts)
    return clusters.tau[assignments.compact()], made
