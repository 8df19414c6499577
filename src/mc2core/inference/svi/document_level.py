"""SVI-MC2 with a document level: theta_j ~ DP(omega, tau_{z_j}).

As under direct assignment (:mod:`mc2core.inference.svi.direct`), with tables of documents for tokens:
q(tau_k) = Dir(v eps_1 + t_k1, ..., v eps_M + t_kM, v eps_rest), and a point estimate of omega where it is learnt.

The ELBO is (a bound of ln p(w, x | eps, v, omega)) + eta ln eps_rest + (the priors of v and omega relative to their
modes), the added terms being at most 0. In the first epoch documents are held in the clusters where they start: under
topics that are still those of clusters, all would join a few.

**Tables of documents.** With theta_j summed out and n_jkm expected tokens of topic m in document j under cluster k, the
bound holds

    sum_jk mu_jk [ln G(omega) - ln G(omega + N_j) + sum_m (ln G(a_km + n_jkm) - ln G(a_km))]

with a_km = omega exp(E ln tau_km).

It is one of the expectation over l and tau: ln G(a + n) is convex in n, and ln G(a + n) - ln G(a) is convex in ln a for
every whole number n (Jensen twice; Teh, Kurihara and Welling 2008). Its derivative by E ln tau_km are expected tables,

    t_km = sum_j mu_jk a_km (digamma(a_km + n_jkm) - digamma(a_km)).

**Local step**: the tree q(z_j) q(l_j | z_j), theta_j summed out. Under cluster k the tokens of a document have shares
gamma_wm and expected counts n_m = sum_w x_jw gamma_wm; their bound is

    L_jk = sum_wm x_jw gamma_wm (E ln psi_mw - ln gamma_wm)
           + ln G(omega) - ln G(omega + N_j) + sum_m [ln G(a_km + n_m) - ln G(a_km)].

ln G(a + n) lies above its tangents, so that the pass

    gamma_wm prop. to exp(E ln psi_mw + digamma(a_km + n_m))

with the n of the pass before never lowers it. Without counts to start from the first pass leaves gamma to the words
alone: even counts N / M would not do, since where N is below M their digamma is -M / N, and a topic that the prior
prefers would take all of a short document. A document first makes some passes under the clusters' mean prior; the
clusters that its counts then suit best get further passes, each under its prior, over the topics that it uses, and

    mu_jk prop. to exp(E ln beta_k + E ln p(x_j | phi_k) + L_jk)    over these candidates.

There is a q(l_j | z_j) for each candidate: with one q(theta_j) for all of them a document's counts follow the cluster
it is in, and clusters merge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma as array_digamma
from scipy.special import gammaln, softmax

from mc2core.base.checks import MAX_PRIOR as MAX_OMEGA
from mc2core.base.checks import MIN_PRIOR as MIN_OMEGA
from mc2core.base.described import Stored
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import digamma, exp, log, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.observed import quantised
from mc2core.inference.seeding import join_nearest
from mc2core.inference.svi.direct import (
    MIN_FACTOR,
    MIN_SUM,
    STEPS_AT_START,
    STEPS_OF_BATCH,
    STEPS_OF_FULL,
    DirectExpectations,
    DirectGlobals,
    Weights,
    density_of_log,
    fill_weights,
    step_weights,
)
from mc2core.inference.svi.local import WORD_BLOCK, Assign, Batch, DocumentStatistics
from mc2core.inference.svi.local import assign_documents as assign_shared
from mc2core.inference.svi.state import GROUP, BatchStep, RunSettings, Start, blend, change
from mc2core.models import MC2
from mc2core.models.base import DOCUMENT

# -- tables of documents -------------------------------------------------------------------------------------------
#: a_km is at least this: logarithms and digamma of it are numbers
MIN_PRIOR = 1e-100
# from here on differences of log-gamma functions are taken by their series
_LARGE = 1e4
_TABLE_BLOCK = 64
# shares of clusters below this say nothing
MIN_SHARE = 1e-12


@inner_kernel(error_model="numpy")
def log_rising_factorial(a, n):
    """ln G(a + n) - ln G(a) for a > 0, n >= 0."""
    if a < _LARGE:
        return log_gamma(a + n) - log_gamma(a)
    series = 1.0 / (12.0 * (a + n)) - 1.0 / (12.0 * a)
    return (a - 0.5) * np.log1p(n / a) + n * (np.log(a + n) - 1.0) + series


@inner_kernel(error_model="numpy")
def expected_tables(a, n):
    """a (digamma(a + n) - digamma(a)): its derivative by ln a."""
    if a < _LARGE:
        return a * (digamma(a + n) - digamma(a))
    b = a + n
    return a * np.log1p(n / a) + 0.5 * n / b - (a / (b * b) - 1.0 / a) / 12.0


@inner_kernel(error_model="numpy")
def tetragamma(x):
    """Second derivative of digamma for x >= 1: shifted by 6, then the asymptotic series."""
    total = 0.0
    for i in range(6):
        total += 2.0 / ((x + i) * (x + i) * (x + i))
    r = 1.0 / (x + 6.0)
    z = r * r
    return -total - z * (1.0 + r + z * (0.5 - z * (1.0 / 6.0 - z / 6.0)))


class Local(NamedTuple):
    """Local posteriors of some documents, C candidate clusters each.

    cluster : (B, C) int32, -1 where a document has fewer
    share : (B, C) float64, mu_jk
    counts : (B, C, M) float64, n_jkm
    squares : (B, C, M) float64, sum_w x_jw gamma_wm^2
    lengths : (B,) float64, N_j
    """

    cluster: np.ndarray
    share: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    lengths: np.ndarray


@kernel(error_model="numpy")
def sum_rising_factorials(cluster, share, counts, prior, first, last):
    """Sum over documents first..last-1 of mu_jk ln G(a_km + n_jkm) - ln G(a_km)."""
    total = 0.0
    for j in range(first, last):
        for i in range(cluster.shape[1]):
            if share[j, i] < MIN_SHARE:
                continue
            term, one = 0.0, prior[cluster[j, i]]
            for m in range(one.size):
                if counts[j, i, m] > 0.0:
                    term += log_rising_factorial(one[m], counts[j, i, m])
            total += share[j, i] * term
    return total


@inner_kernel(error_model="numpy")
def seated_tables(a, n, square):
    """Expectation of a (digamma(a + N) - digamma(a)) over whole numbers N with mean ``n`` and variance n - ``square``.

    N is 0 as often as a binomial number with these moments; given that it is not, to second order about its mean (Teh,
    Kurihara and Welling 2008).
    """
    p = min(square / n, 1.0 - 1e-12)
    log_none = n * (np.log1p(-p) / p if p > 1e-9 else -1.0)
    seen = -np.expm1(log_none)
    mean = max(n / seen, 1.0)
    variance = max((n - square) / seen - np.exp(log_none) * mean * mean, 0.0)
    return seen * (expected_tables(a, mean) + 0.5 * a * tetragamma(a + mean) * variance)


@kernel(error_model="numpy")
def add_tables(cluster, share, counts, squares, prior, is_seated, tables, of_document):
    """tables[k, m] += mu_jk a (digamma(a + n_jkm) - digamma(a)); to of_document[j] these, or :func:`seated_tables`."""
    for j in range(cluster.shape[0]):
        for i in range(cluster.shape[1]):
            if share[j, i] < MIN_SHARE:
                continue
            k = cluster[j, i]
            for m in range(prior.shape[1]):
                if counts[j, i, m] > 0.0:
                    t = share[j, i] * expected_tables(prior[k, m], counts[j, i, m])
                    tables[k, m] += t
                    if is_seated:
                        t = share[j, i] * seated_tables(prior[k, m], counts[j, i, m], squares[j, i, m])
                    of_document[j] += t


def log_evidence(local: Local, prior: np.ndarray, omega: float, pool: Executor | None) -> float:
    """The sum above in nats, given (K, M) ``prior`` a."""
    terms = in_blocks(
        pool,
        lambda first, last: sum_rising_factorials(local.cluster, local.share, local.counts, prior, first, last),
        len(local.lengths),
        _TABLE_BLOCK,
    )
    return float(sum(terms) + np.sum(gammaln(omega) - gammaln(omega + local.lengths)))


def tables_of(local: Local, prior: np.ndarray, is_seated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(K, M) float64 t_km, and (B,) float64, those of each document, or where ``is_seated`` what omega goes by."""
    tables, of_document = np.zeros_like(prior), np.zeros(len(local.lengths))
    add_tables(local.cluster, local.share, local.counts, local.squares, prior, is_seated, tables, of_document)
    return tables, of_document


def tables_of_lengths(lengths: np.ndarray, omega: float) -> np.ndarray:
    """omega (digamma(omega + N_j) - digamma(omega)): tables expected of documents before their words are seen."""
    return omega * (array_digamma(omega + lengths) - array_digamma(omega))


def backtracked(value: Callable[[float], float], now: float, halvings: int = 30) -> float:
    """The first share 1, 1/2, 1/4, ... of a step at which ``value`` is at least ``now``; 0 where there is none."""
    share = 1.0
    for _ in range(halvings):
        if value(share) >= now:
            return share
        share *= 0.5
    return 0.0


@dataclass(kw_only=True)
class DocumentLevelExpectations(DirectExpectations):
    """With ``prior`` (K, M), omega exp(E ln tau), and ``omega`` itself."""

    prior: np.ndarray
    omega: float


# -- passes over one document --------------------------------------------------------------------------------------
_TOLERANCE = 1e-3  # tokens that change their topics in a pass, relative to all, at which passes end
# sums of products may be taken in any order: vector code
SUMS = {"contract", "reassoc", "nsz"}


class Words(NamedTuple):
    """E ln psi of a batch's words, or expected log densities of its observations: ``scores`` (U, M), ``top`` (U,) their
    maxima, ``weights`` exp(scores - top).

    Those over words and topics are in the state's buffers, until its next step.
    """

    scores: np.ndarray
    top: np.ndarray
    weights: np.ndarray


def topic_scores(
    state: DocumentLevelGlobals, expected: DocumentLevelExpectations, words: np.ndarray, pool: Executor | None
) -> Words:
    """Scores of the given words or observations under the current globals."""
    shape = len(words), len(state.n_m)
    scores, weights = (state.buffers.empty(name, *shape) for name in ("scores", "weights"))
    top = np.empty(len(words))

    def work(first: int, last: int) -> None:
        known = state.topic_words, state.shrink, words, state.topic_word_prior, expected.log_topic_total
        state.fill_scores(expected, words, first, last, scores)
        fill_weights(*known, first, last, scores, top, weights)

    in_blocks(pool, work, len(words), WORD_BLOCK)
    return Words(scores, top, weights)


@inner_kernel(error_model="numpy", fastmath=SUMS)
def _proportions(a, n, log_theta, theta):
    """log_theta = digamma(a + n) less its largest, and its exponential."""
    highest = -np.inf
    for m in range(a.size):
        log_theta[m] = digamma(a[m] + n[m])
    for m in range(a.size):
        highest = max(highest, log_theta[m])
    for m in range(a.size):
        log_theta[m] -= highest
        theta[m] = exp(log_theta[m])
    for m in range(a.size):
        theta[m] = theta[m] if theta[m] > MIN_FACTOR else 0.0


@inner_kernel(error_model="numpy")
def _give_whole(ratio, total, x, u, used, scores, log_theta, best, fresh):
    """Cells whose sum is too small for float64 go to their likeliest topic: ``best`` of one prior, and fresh += x."""
    for c in range(x.size):
        best[c] = -1
        if total[c] >= MIN_SUM:
            ratio[c] = x[c] / total[c]
            continue
        ratio[c] = 0.0
        best[c] = 0
        for i in range(used.size):
            if scores[u[c], used[i]] + log_theta[i] > scores[u[c], used[best[c]]] + log_theta[best[c]]:
                best[c] = i
        fresh[best[c]] += x[c]


@inner_kernel(error_model="numpy")
def settle(p, words, x, u, used, a, n, theta, total, best, n_passes):
    """At most ``n_passes`` passes of one document over the topics ``used`` (A,), under C priors ``a`` (C, A) together.

    ``p`` (A, cells) are the weights of its words ``u``, ``x`` their counts: a pass is two matrix products for all
    priors. ``n`` (C, A) holds the counts it starts from, zeros where there are none, and those of the last pass;
    ``theta`` (C, A), ``total`` (C, cells) and ``best`` (C, cells) are filled. Passes end when the counts under each
    prior have settled. Returns (C,) sum_w x ln sum_m psi theta - sum_m n ln theta.
    """
    n_priors, n_topics = a.shape
    log_theta, theta[:] = np.zeros_like(a), 1.0
    fresh, extra, ratio = np.empty_like(a), np.empty_like(a), np.empty_like(total)
    n_tokens = x.sum()
    for number in range(n_passes):
        for k in range(n_priors):
            if number > 0 or n[k].max() > 0.0:
                _proportions(a[k], n[k], log_theta[k], theta[k])
        np.dot(theta, p, total)
        extra[:] = 0.0
        for k in range(n_priors):
            _give_whole(ratio[k], total[k], x, u, used, words.scores, log_theta[k], best[k], extra[k])
        np.dot(ratio, p.T, fresh)
        most = 0.0
        for k in range(n_priors):
            change = 0.0
            for i in range(n_topics):
                new = fresh[k, i] * theta[k, i] + extra[k, i]
                change += abs(new - n[k, i])
                n[k, i] = new
            most = max(most, change)
        if most < _TOLERANCE * n_tokens:
            break
    value = np.zeros(n_priors)
    for k in range(n_priors):
        for c in range(x.size):
            if best[k, c] < 0:
                value[k] += x[c] * (words.top[u[c]] + log(total[k, c]))
            else:
                value[k] += x[c] * (words.scores[u[c], used[best[k, c]]] + log_theta[k, best[k, c]])
        for i in range(n_topics):
            if n[k, i] > 0.0:
                value[k] -= n[k, i] * log_theta[k, i]
    return value


# -- local step ----------------------------------------------------------------------------------------------------
#: clusters that a document gets passes for
CANDIDATES = 4
#: passes under the mean prior, and of each candidate
SCREENING_PASSES, PASSES = 8, 10
_MIN_COUNT = 2e-4  # a topic is used by a document from this on, relative to its largest
_DOCUMENT_BLOCK = 4


class Cells(NamedTuple):
    """Counts of a batch, document by document."""

    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray


class Visit(NamedTuple):
    """What a visit of the documents is given, and fills.

    log_weights : (B, K) float64, E ln beta_k + E ln p(x_j | phi_k)
    prior, mean_prior : (K, M) and (M,) float64, a and its mean over clusters
    held : (B,) int32, the document's cluster where it is held, else -1
    cluster, share, counts : as of :class:`Local`; on entry candidates to be kept (else -1) and their counts
    squares : as of :class:`Local`
    theta : (B, C, M) float64, exp(digamma(a + n)) of the last pass relative to its largest
    ratio : (cells, C) float64, mu_jk x / sum_m weights theta of each cell; 0 where the pair has no share
    best : (cells, C) int32, the one topic of a cell whose sum vanished, else -1
    log_evidence : (B,) float64, ln Z_j
    """

    log_weights: np.ndarray
    prior: np.ndarray
    mean_prior: np.ndarray
    held: np.ndarray
    cluster: np.ndarray
    share: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    theta: np.ndarray
    ratio: np.ndarray
    best: np.ndarray
    log_evidence: np.ndarray

    def local(self, lengths: np.ndarray) -> Local:
        """What it filled, of documents of (B,) ``lengths``."""
        return Local(self.cluster, self.share, self.counts, self.squares, lengths)


@dataclass
class DocumentLevelStatistics(DocumentStatistics):
    """With local posteriors, and ``topic_words`` (U, M) float64, expected tokens of each topic."""

    local: Local
    topic_words: np.ndarray


@inner_kernel(error_model="numpy")
def _used(n, least):
    """Numbers of the topics with at least ``least`` of the largest count."""
    highest = n.max()
    return np.flatnonzero(n >= least * highest)


@inner_kernel(error_model="numpy", fastmath=SUMS)
def _suits(a, n):
    """ln of how well a prior suits counts, up to what is the same for all.

    A choice needs no :func:`log_rising_factorial`.
    """
    value = 0.0
    for m in range(a.size):
        value += log_gamma(a[m] + n[m]) - log_gamma(a[m])
    return value


@inner_kernel(error_model="numpy")
def _choose(j, n, used, visit):
    """Candidates of document j in its row of ``visit.cluster``, after those to be kept there; they start from ``n``."""
    n_candidates = visit.cluster.shape[1]
    if visit.held[j] >= 0:
        is_kept = visit.cluster[j, 0] == visit.held[j]
        visit.cluster[j, 0] = visit.held[j]
        visit.cluster[j, 1:] = -1
        if not is_kept:
            visit.counts[j, 0] = n
        return
    n_clusters = visit.prior.shape[0]
    score, few = np.empty(n_clusters), n[used]
    for k in range(n_clusters):
        score[k] = visit.log_weights[j, k] + _suits(visit.prior[k][used], few)
    for i in range(n_candidates):
        if visit.cluster[j, i] >= 0:
            score[visit.cluster[j, i]] = -np.inf
    for i in range(n_candidates):
        if visit.cluster[j, i] < 0:
            k = int(np.argmax(score))
            # where every weight vanishes or is no number, one cluster is taken all the same: its share will be none
            if score[k] > -np.inf or visit.cluster[j].max() < 0:
                visit.cluster[j, i] = k
                visit.counts[j, i] = n
                score[k] = -np.inf


@inner_kernel(error_model="numpy")
def _start(j, x, p, words, u, visit):
    """Counts of document j from which clusters are chosen: those it was left with, or those under the mean prior."""
    n_topics = visit.mean_prior.size
    n, n_kept = np.zeros(n_topics), 0
    for i in range(visit.cluster.shape[1]):
        if visit.cluster[j, i] >= 0:
            n += visit.counts[j, i]
            n_kept += 1
    if n_kept > 0:
        return n / n_kept
    every, one, theta = np.arange(n_topics), n.reshape(1, -1), np.empty((1, n_topics))
    total, best = np.empty((1, x.size)), np.empty((1, x.size), np.int32)
    settle(p, words, x, u, every, visit.mean_prior.reshape(1, -1), one, theta, total, best, SCREENING_PASSES)
    return n


@kernel(error_model="numpy")
def visit_documents(cells, words, omega, least, visit, first, last):
    """Documents first..last-1: candidates, passes and shares (see :class:`Visit`).

    Topics with less than ``least`` of a document's largest are left out after the passes under the mean prior.
    """
    for j in range(first, last):
        begin, end = cells.indptr[j], cells.indptr[j + 1]
        u, x = cells.indices[begin:end], cells.counts[begin:end].astype(np.float64)
        p = np.empty((visit.mean_prior.size, x.size))
        for c in range(x.size):
            for m in range(visit.mean_prior.size):
                p[m, c] = words.weights[u[c], m]
        n = _start(j, x, p, words, u, visit)
        used = _used(n, least)
        _choose(j, n, used, visit)
        if used.size < n.size:
            p = p[used]
        candidates = np.flatnonzero(visit.cluster[j] >= 0)
        a, few = np.empty((2, candidates.size, used.size))
        for i in range(candidates.size):
            a[i] = visit.prior[visit.cluster[j, candidates[i]]][used]
            few[i] = visit.counts[j, candidates[i]][used]
        theta, total = np.empty_like(a), np.empty((candidates.size, x.size))
        best = np.empty((candidates.size, x.size), np.int32)
        score = settle(p, words, x, u, used, a, few, theta, total, best, PASSES) - log_rising_factorial(omega, x.sum())
        for i in range(candidates.size):
            place = candidates[i]
            visit.counts[j, place] = 0.0
            visit.theta[j, place] = 0.0
            of_cells = np.where(best[i] < 0, x / (total[i] * total[i]), 0.0)
            for t in range(used.size):
                visit.counts[j, place, used[t]] = few[i, t]
                visit.theta[j, place, used[t]] = theta[i, t]
                square = 0.0
                for c in range(x.size):
                    square += of_cells[c] * p[t, c] * p[t, c]
                visit.squares[j, place, used[t]] = square * theta[i, t] * theta[i, t]
                if few[i, t] > 0.0:
                    score[i] += log_rising_factorial(a[i, t], few[i, t])
            score[i] += visit.log_weights[j, visit.cluster[j, place]]
        highest = score.max()
        share = np.exp(score - highest)
        sum_of_shares = share.sum()
        visit.log_evidence[j] = highest + np.log(sum_of_shares)
        for i in range(candidates.size):
            place = candidates[i]
            visit.share[j, place] = share[i] / sum_of_shares
            if visit.share[j, place] < MIN_SHARE:
                continue
            for c in range(x.size):
                if best[i, c] < 0:
                    visit.ratio[begin + c, place] = visit.share[j, place] * x[c] / total[i, c]
                    visit.best[begin + c, place] = -1
                else:
                    visit.ratio[begin + c, place] = visit.share[j, place] * x[c]
                    visit.squares[j, place, used[best[i, c]]] += x[c]
                    visit.best[begin + c, place] = used[best[i, c]]


@kernel(error_model="numpy")
def add_topic_words(indptr, cell, document, visit, weights, first, last, topic_words):
    """(U, M) expected tokens of words first..last-1; ``cell`` and ``document`` are in the order of words, by indptr."""
    n_topics = topic_words.shape[1]
    ratio, best, theta = visit.ratio, visit.best, visit.theta
    for u in range(first, last):
        out = topic_words[u]
        out[:] = 0.0
        for place in range(indptr[u], indptr[u + 1]):
            j, c = document[place], cell[place]
            for i in range(ratio.shape[1]):
                if ratio[c, i] != 0.0 and best[c, i] < 0:
                    for m in range(n_topics):
                        out[m] += ratio[c, i] * theta[j, i, m]
        for m in range(n_topics):
            out[m] *= weights[u, m]
        for place in range(indptr[u], indptr[u + 1]):
            c = cell[place]
            for i in range(ratio.shape[1]):
                if ratio[c, i] != 0.0 and best[c, i] >= 0:
                    out[best[c, i]] += ratio[c, i]


def visit_batch(
    batch: Batch,
    words: Words,
    expected: DocumentLevelExpectations,
    held: np.ndarray,
    kept: tuple[np.ndarray, np.ndarray] | None,
    pool: Executor | None,
) -> Visit:
    """Local posteriors of every document.

    Parameters
    ----------
    held : (B,) int, clusters of documents that are held there, else -1
    kept : (cluster, counts) that the documents were left with, as of :class:`Local`, to go on from over all
        topics; None is from the mean prior
    """
    n_documents, (n_clusters, n_topics) = batch.n_documents, expected.prior.shape
    n_candidates = min(CANDIDATES, n_clusters) if kept is None else kept[0].shape[1]
    shape = (n_documents, n_candidates)
    visit = Visit(
        log_weights=batch.contexts.log_likelihood(expected.contexts) + expected.log_group,
        prior=expected.prior,
        mean_prior=softmax(expected.log_group) @ expected.prior,
        held=held.astype(np.int32),
        cluster=np.full(shape, -1, np.int32) if kept is None else kept[0].copy(),
        share=np.zeros(shape),
        counts=np.zeros((*shape, n_topics)) if kept is None else kept[1].copy(),
        squares=np.zeros((*shape, n_topics)),
        theta=np.zeros((*shape, n_topics)),
        ratio=np.zeros((len(batch.indices), n_candidates)),
        best=np.full((len(batch.indices), n_candidates), -1, np.int32),
        log_evidence=np.empty(n_documents),
    )
    cells = Cells(batch.indptr, batch.indices, batch.counts)
    least = _MIN_COUNT if kept is None else 0.0
    in_blocks(
        pool,
        lambda first, last: visit_documents(cells, words, expected.omega, least, visit, first, last),
        n_documents,
        _DOCUMENT_BLOCK,
    )
    return visit


def shares_of(visit: Visit) -> np.ndarray:
    """(B, K) float64 mu_jk."""
    shares = np.zeros((len(visit.share), len(visit.prior)))
    document, place = np.nonzero(visit.cluster >= 0)
    shares[document, visit.cluster[document, place]] = visit.share[document, place]
    return shares


def assign_documents(
    batch: Batch,
    words: Words,
    expected: DocumentLevelExpectations,
    held: np.ndarray,
    kept: tuple[np.ndarray, np.ndarray] | None,
    buffers: Buffers,
    pool: Executor | None,
) -> tuple[np.ndarray, DocumentLevelStatistics]:
    """(B, K) float64 mu_jk and statistics of :func:`visit_batch`; ``buffers`` are of their ``topic_words``."""
    visit = visit_batch(batch, words, expected, held, kept, pool)
    topic_words = buffers.empty("topic_words", *words.weights.shape)
    order = np.argsort(batch.indices, kind="stable")
    indptr = np.searchsorted(batch.indices[order], np.arange(len(topic_words) + 1))
    document = np.repeat(np.arange(batch.n_documents), np.diff(batch.indptr))[order]
    in_blocks(
        pool,
        lambda first, last: add_topic_words(indptr, order, document, visit, words.weights, first, last, topic_words),
        len(topic_words),
        WORD_BLOCK,
    )
    shares = shares_of(visit)
    return shares, DocumentLevelStatistics(
        n_documents=batch.n_documents,
        log_evidence=float(visit.log_evidence.sum()),
        n_k=shares.sum(axis=0),
        word_mass=np.empty((0, len(visit.prior))),
        contexts=np.asarray(batch.contexts.statistics.T @ shares).T,
        local=visit.local(batch.lengths),
        topic_words=topic_words,
    )


# -- the state -----------------------------------------------------------------------------------------------------
#: omega of the starting state where it is learnt
START = 10.0
#: longest step of ln omega, before its rate
LONGEST_STEP = 2.0
# truncations where none are set
_DOCUMENTS_FOR_CLUSTER, _MIN_CLUSTERS, _MAX_CLUSTERS, _TOPICS_FOR_CLUSTER = 25, 2, 100, 8
_DOCUMENTS_WHERE_FEW, _MAX_WHERE_FEW = 4, 20
_TOKENS_FOR_TOPIC = 1000
# mini-batches of an epoch at least where their size is not set, as far as each has so many documents
_MIN_BATCHES, _MIN_BATCH = 32, 20


@dataclass(kw_only=True)
class DocumentLevelGlobals(DirectGlobals):
    """q(tau_k) over topics by tables of documents, ``n_km`` being t_km; epsilon, v and omega by points.

    Attributes
    ----------
    document_concentration : float
        omega.
    omega_information : float
        Sum over documents of the squared slope of their bound by ln omega, as mini-batches told it; 0 before the first.
    local_cluster : (J, A) int32
        Full batches only (else A is 0): candidate clusters of each document, -1 where it has fewer.
    local_counts : (J, A, M) float64
        Expected tokens of the document in each topic under each of them.
    """

    described: ClassVar[dict[str, Stored]] = {
        **DirectGlobals.described,
        "local_cluster": Stored("i", "J A", below="K"),
        "local_counts": Stored("f", "J A M"),
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "document_concentration": Stored("f", ""),
        "omega_information": Stored("f", ""),
        **DirectGlobals.described_numbers,
    }

    most_clusters: ClassVar[int] = _MAX_CLUSTERS
    most_topics: ClassVar[int] = _TOPICS_FOR_CLUSTER * _MAX_CLUSTERS

    omega_information: float = 0.0
    local_cluster: np.ndarray
    local_counts: np.ndarray

    @classmethod
    def truncations(cls, corpus: Corpus, n_clusters: int | None, n_topics: int | None) -> tuple[int, int]:
        """By rule a cluster for every 25 documents, up to 20 for every four, 2 to 100; eight topics for every cluster.

        Clusters join others as a run goes on and hardly part; documents share topics
        (docs/notes/svi_document_level.md). Topics of fewer than a thousand tokens each would be fewer in the end, so
        that there is no more than one beside those of clusters.
        """
        few = min(-(-corpus.n_documents // _DOCUMENTS_WHERE_FEW), _MAX_WHERE_FEW)
        by_rule = min(max(-(-corpus.n_documents // _DOCUMENTS_FOR_CLUSTER), few, _MIN_CLUSTERS), _MAX_CLUSTERS)
        n_clusters = n_clusters or by_rule
        most = max(n_clusters + 1, corpus.n_tokens // _TOKENS_FOR_TOPIC)
        return n_clusters, n_topics or min(_TOPICS_FOR_CLUSTER * n_clusters, most)

    @classmethod
    def usual_batch(cls, n_documents: int) -> int:
        """At most a 32nd of the documents: rates suit so many steps an epoch (docs/notes/svi_document_level.md)."""
        return min(super().usual_batch(n_documents), max(-(-n_documents // _MIN_BATCHES), _MIN_BATCH))

    @classmethod
    def n_numbers(cls, settings: RunSettings, corpus: Corpus) -> int:
        n_documents = min(settings.batch_size or corpus.n_documents, corpus.n_documents)
        return (settings.n_clusters + n_documents * min(CANDIDATES, settings.n_clusters)) * settings.n_topics

    @classmethod
    def begin(cls, model: MC2, settings: RunSettings, start: Start, corpus: Corpus, contexts: StackedContexts) -> Self:
        state = super().begin(model, settings, start, corpus, contexts)
        # tokens become tables: each document has those expected of its length, at its cluster's topics
        tables = tables_of_lengths(corpus.document_lengths, state.document_concentration).mean() * state.n_k
        tokens = state.n_km.sum(axis=1)
        state.n_km *= np.divide(tables, tokens, where=tokens > 0, out=np.zeros_like(tables))[:, None]
        state.weights = step_weights(state.objective, state.weights, STEPS_AT_START)
        # those that the start did not look at would be free in the first epoch, and clusters would join
        content = corpus.content
        if state.observed is not None and (state.cluster < 0).any():
            content = quantised(corpus, state.observed.likeliest(state.topic_sums)).content
        state.cluster = join_nearest(content, state.cluster, len(state.n_km))
        return state

    @classmethod
    def further_fields(cls, model: MC2, settings: RunSettings, corpus: Corpus) -> dict[str, Any]:
        omega = START if model.document_concentration == "learn" else float(model.document_concentration)
        n_candidates = min(CANDIDATES, settings.n_clusters) if settings.batch_size is None else 0
        return {
            "document_concentration": omega,
            "local_cluster": np.full((corpus.n_documents, n_candidates), -1, np.int32),
            "local_counts": np.zeros((corpus.n_documents, n_candidates, settings.n_topics)),
        }

    @property
    def omega_prior(self) -> tuple[float, float] | None:
        """(shape, rate) of omega's Gamma prior; None where omega is fixed."""
        return self.model.prior_of(DOCUMENT) if self.model.document_concentration == "learn" else None

    def expectations(self, columns: np.ndarray | None = None) -> DocumentLevelExpectations:
        direct = super().expectations(columns)
        return DocumentLevelExpectations(**vars(direct), prior=self.document_prior(), omega=self.document_concentration)

    def keep(self, clusters: np.ndarray, topics: np.ndarray) -> None:
        number = np.full(len(self.n_km), -1, np.int32)
        number[clusters] = np.arange(len(clusters), dtype=np.int32)
        self.local_cluster = np.where(self.local_cluster >= 0, number[self.local_cluster], np.int32(-1))
        self.local_counts = np.ascontiguousarray(self.local_counts[:, :, topics])
        super().keep(clusters, topics)

    def weigh(self, factor: float) -> None:
        super().weigh(factor)
        self.omega_information *= factor

    def follow(self, cluster: np.ndarray) -> None:
        super().follow(cluster)
        self.local_cluster = np.empty((len(cluster), 0), np.int32)
        self.local_counts = np.empty((len(cluster), 0, len(self.n_m)))

    def add_clusters(
        self, n_k: np.ndarray, n_km: np.ndarray, contexts: np.ndarray, batch: Batch, rows: dict[str, Any]
    ) -> None:
        """Add n clusters of a Dirichlet process behind those that there are, in place.

        They begin with ``n_k`` (n,) documents, ``n_km`` (n, M) tables and ``contexts`` (n, columns of ``batch``)
        statistics. To ``rows``, which :meth:`rows_of` gave of ``batch`` before, they are added with nothing.
        """
        n, alpha = len(n_k), self.concentrations().mean[GROUP]
        counts = np.zeros((len(self.context_counts), n))
        counts[batch.columns] = contexts.T / self.context_shrink
        totals = self.contexts.sums_by_context(contexts.T, batch.columns)
        none = {name: np.zeros((*rows[name].shape[:-1], n)) for name in ("context_counts", "context_totals")}
        none |= {"group_weights": self.law.posterior(np.zeros(n), alpha)}
        for name, more in none.items():
            rows[name] = np.concatenate([rows[name], more], axis=1)
        rows["n_km"] = np.concatenate([rows["n_km"], np.zeros_like(n_km)])
        self.group_weights = self.law.posterior(np.append(self.n_k, n_k), alpha)
        self.context_counts = np.concatenate([self.context_counts, counts], axis=1)
        self.context_totals = np.concatenate([self.context_totals, totals], axis=1)
        self.n_km = np.concatenate([self.n_km, n_km])
        self.settings = self.settings._replace(n_clusters=max(self.settings.n_clusters, len(self.n_km)))

    def join(self, cluster_of: np.ndarray, topic_of: np.ndarray) -> np.ndarray:
        """Unions, given the (K,) and (M,) new numbers of clusters and topics, from 0 on; clusters by size again.

        Returns (K,) int32, the numbers that clusters then have.
        """
        n_k = sum_by(cluster_of, self.n_k)
        order = np.argsort(-n_k, kind="stable")
        cluster_of = np.argsort(order, kind="stable")[cluster_of].astype(np.int32)
        self.n_km = sum_by(topic_of, sum_by(cluster_of, self.n_km).T).T.copy()
        self.context_counts = sum_by(cluster_of, self.context_counts.T).T.copy()
        self.context_totals = sum_by(cluster_of, self.context_totals.T).T.copy()
        if not np.array_equal(topic_of, np.arange(len(self.n_m))):  # the largest table stays where no topics are joined
            self.topic_words = sum_by(topic_of, self.topic_words.T).T.copy()
        self.topic_weights, self.n_m = sum_by(topic_of, self.topic_weights), sum_by(topic_of, self.n_m)
        self.group_weights = self.law.posterior(n_k[order], self.concentrations().mean[GROUP])
        self.cluster = np.where(self.cluster >= 0, cluster_of[self.cluster], np.int32(-1))
        number = np.where(self.local_cluster >= 0, cluster_of[self.local_cluster], np.int32(-1))
        for i in range(1, number.shape[1]):
            number[(number[:, :i] == number[:, [i]]).any(axis=1), i] = -1
        self.local_cluster = number
        shape = (*self.local_counts.shape[:2], len(self.n_m))
        self.local_counts = sum_by(topic_of, self.local_counts.reshape(-1, len(topic_of)).T).T.reshape(shape).copy()
        return cluster_of

    def document_prior(self) -> np.ndarray:
        """(K, M): omega exp(E ln tau)."""
        return np.maximum(self.document_concentration * np.exp(self.expected_log_tau()), MIN_PRIOR)

    def omega_penalty(self) -> float:
        """The density of ln omega relative to its mode where omega is learnt: at most 0, nats."""
        return 0.0 if self.omega_prior is None else density_of_log(self.document_concentration, self.omega_prior)

    def proportions_divergence(self) -> float:
        return super().proportions_divergence() - self.omega_penalty()

    # -- steps ------------------------------------------------------------------------------------------------------
    def step(
        self,
        batch: Batch,
        scale: float,
        rate: float,
        pool: Executor | None,
        assign: Assign = assign_shared,
        since: Mapping[str, Any] | None = None,
    ) -> BatchStep:
        """``assign`` is of documents that share their cluster's proportions, and not asked."""
        before, is_full = self.expectations(batch.columns), self.settings.batch_size is None
        words = topic_scores(self, before, batch.words, pool)
        kept = (self.local_cluster, self.local_counts) if is_full else None
        shares, documents = assign_documents(batch, words, before, self.held(batch), kept, self.buffers, pool)
        if since is not None:
            self.go_back(batch, since)
        self.seat(batch, shares)
        self.blend_shared(batch, documents, documents.topic_words, scale, rate, pool)
        posteriors = documents.local
        if is_full:
            self.local_cluster = np.where(posteriors.share < MIN_SHARE, np.int32(-1), posteriors.cluster)
            self.local_counts = posteriors.counts
            ascend(self, posteriors, pool)
        else:
            tables, of_document = tables_of(posteriors, before.prior, is_seated=True)
            blend(self.n_km, scale * tables, rate)
            self.weights = step_weights(self.objective, self.weights, STEPS_OF_BATCH)
            if self.omega_prior is not None:
                start, self.document_concentration = self.document_concentration, before.omega
                step = step_of_omega(self, posteriors, of_document, scale, rate)
                self.document_concentration = start * math.exp(rate * step)

        def changed() -> float:
            after = self.expectations(batch.columns)
            of_words = self.expected_topic_words(after, batch.words, documents.topic_words, pool)
            of_words -= float(np.sum(documents.topic_words * words.scores))
            of_tables = log_evidence(posteriors, after.prior, after.omega, pool)
            of_tables -= log_evidence(posteriors, before.prior, before.omega, pool)
            return change(documents, before, after, of_words, of_tables)

        return BatchStep(shares, documents, changed)

    def held(self, batch: Batch) -> np.ndarray:
        """(B,) int: the clusters in which documents are held, as all are in the first epoch; else -1."""
        return self.cluster[batch.rows] if self.n_epochs == 0 else np.full(batch.n_documents, -1)

    @property
    def n_epochs(self) -> int:
        """Epochs that are over."""
        n_documents = len(self.cluster)
        return self.n_updates // -(-n_documents // (self.settings.batch_size or n_documents))


def sum_by(number: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(n, ...) sums of the rows of ``values`` with each number 0..n-1."""
    total = np.zeros((int(number.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(total, number, values)
    return total


def step_of_omega(
    state: DocumentLevelGlobals, local: Local, of_document: np.ndarray, scale: float, rate: float
) -> float:
    """How far ln omega is to go by its natural gradient, given the tables ``of_document`` (B,) of some documents.

    A step of EM, to where the slope given counts vanishes, is short: counts follow omega. The slopes of documents have
    the information of their evidence as variance; it is kept, in place, as mini-batches tell it.
    """
    assert state.omega_prior is not None
    shape, prior_rate = state.omega_prior
    omega = state.document_concentration
    slopes = of_document - tables_of_lengths(local.lengths, omega)
    known, seen = state.omega_information, scale * float(slopes @ slopes)
    state.omega_information = (1.0 - rate) * known + rate * seen if known > 0 else seen
    slope = scale * float(slopes.sum()) + shape - prior_rate * omega
    step = slope / (state.omega_information + prior_rate * omega)
    least, most = math.log(MIN_OMEGA / omega), math.log(MAX_OMEGA / omega)
    return float(np.clip(step, max(-LONGEST_STEP, least), min(LONGEST_STEP, most)))


def ascend(state: DocumentLevelGlobals, local: Local, pool: Executor | None) -> None:
    """Steps of q(tau), of epsilon and v, and of omega, in turn and in place, given the documents of a full batch.

    Each is backtracked until the bound does not fall. Expected tables are where a step of q(tau) would end, and one of
    EM if all counts were whole numbers; below one token that argument does not hold.
    """

    def value() -> float:
        omega = state.document_concentration
        return log_evidence(local, state.document_prior(), omega, pool) - state.proportions_divergence()

    tables, (goal_of_tables, _) = state.n_km, tables_of(local, state.document_prior())

    def move_tables(share: float) -> float:
        state.n_km = (1.0 - share) * tables + share * goal_of_tables
        return value()

    move_tables(backtracked(move_tables, value()))

    weights, goal_of_weights = state.weights, step_weights(state.objective, state.weights, STEPS_OF_FULL)

    def move_weights(share: float) -> float:
        topics = (1.0 - share) * weights.topics + share * goal_of_weights.topics
        rest = (1.0 - share) * weights.rest + share * goal_of_weights.rest
        state.weights = Weights(topics, rest, weights.v * (goal_of_weights.v / weights.v) ** share)
        return value()

    move_weights(backtracked(move_weights, value()))
    if state.omega_prior is None:
        return
    omega = state.document_concentration
    shape, prior_rate = state.omega_prior
    remainder = float(np.sum(tables_of_lengths(local.lengths, omega))) / omega
    goal = (float(tables_of(local, state.document_prior())[0].sum()) + shape) / (remainder + prior_rate)
    goal = float(np.clip(goal, MIN_OMEGA, MAX_OMEGA))

    def move_omega(share: float) -> float:
        state.document_concentration = omega * (goal / omega) ** share
        return value()

    move_omega(backtracked(move_omega, value()))
