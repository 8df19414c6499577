"""Local step where documents have proportions of their own: the tree q(z_j) q(l_j | z_j), theta_j summed out.

Under cluster k the tokens of a document have shares gamma_wm and expected counts n_m = sum_w x_jw gamma_wm; their bound

    L_jk = sum_wm x_jw gamma_wm (E ln psi_mw - ln gamma_wm)
           + ln G(omega) - ln G(omega + N_j) + sum_m [ln G(a_km + n_m) - ln G(a_km)]

(:mod:`mc2core.inference.svi.document_level.rising`). ln G(a + n) lies above its tangents, so that the pass

    gamma_wm prop. to exp(E ln psi_mw + digamma(a_km + n_m))

with the n of the pass before never lowers it. A document first makes some passes under the clusters' mean prior; the
clusters that its counts then suit best get passes of their own, over the topics that it uses, and

    mu_jk prop. to exp(E ln beta_k + E ln p(x_j | phi_k) + L_jk)    over these candidates.

Each candidate has its own q(l_j | z_j): with one q(theta_j) for all of them a document's counts follow the cluster it
is in, and clusters merge.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import kernel
from mc2core.compute.special import log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.document_level.passes import SUMS, Words, settle
from mc2core.inference.svi.document_level.rising import LEAST_SHARE, Local, log_rising
from mc2core.inference.svi.document_level.state import OwnExpectations
from mc2core.inference.svi.local import WORD_BLOCK, Batch, DocumentStatistics

#: clusters of which a document gets passes of their own
CANDIDATES = 4
#: passes under the mean prior, and of each candidate
SCREENING_PASSES, PASSES = 8, 10
_LEAST_COUNT = 2e-4  # a topic is used by a document from this on, relative to its largest
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
    cluster, share, counts : as of :class:`.rising.Local`; on entry candidates to be kept (else -1) and their counts
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
    theta: np.ndarray
    ratio: np.ndarray
    best: np.ndarray
    log_evidence: np.ndarray


@dataclass
class OwnStatistics(DocumentStatistics):
    """With local posteriors, and ``topic_words`` (U, M) float64, expected tokens of each topic."""

    local: Local
    topic_words: np.ndarray


@kernel(error_model="numpy")
def _used(n, least):
    """Numbers of the topics with at least ``least`` of the largest count."""
    highest = n.max()
    return np.flatnonzero(n >= least * highest)


@kernel(error_model="numpy", fastmath=SUMS)
def _suits(a, n):
    """ln of how well a prior suits counts, up to what is the same for all; a choice needs no :func:`.log_rising`."""
    value = 0.0
    for m in range(a.size):
        value += log_gamma(a[m] + n[m]) - log_gamma(a[m])
    return value


@kernel(error_model="numpy")
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


@kernel(error_model="numpy")
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
        a, own = np.empty((2, candidates.size, used.size))
        for i in range(candidates.size):
            a[i] = visit.prior[visit.cluster[j, candidates[i]]][used]
            own[i] = visit.counts[j, candidates[i]][used]
        theta, total = np.empty_like(a), np.empty((candidates.size, x.size))
        best = np.empty((candidates.size, x.size), np.int32)
        score = settle(p, words, x, u, used, a, own, theta, total, best, PASSES) - log_rising(omega, x.sum())
        for i in range(candidates.size):
            place = candidates[i]
            visit.counts[j, place] = 0.0
            visit.theta[j, place] = 0.0
            for t in range(used.size):
                visit.counts[j, place, used[t]] = own[i, t]
                visit.theta[j, place, used[t]] = theta[i, t]
                if own[i, t] > 0.0:
                    score[i] += log_rising(a[i, t], own[i, t])
            score[i] += visit.log_weights[j, visit.cluster[j, place]]
        highest = score.max()
        share = np.exp(score - highest)
        sum_of_shares = share.sum()
        visit.log_evidence[j] = highest + np.log(sum_of_shares)
        for i in range(candidates.size):
            place = candidates[i]
            visit.share[j, place] = share[i] / sum_of_shares
            if visit.share[j, place] < LEAST_SHARE:
                continue
            for c in range(x.size):
                if best[i, c] < 0:
                    visit.ratio[begin + c, place] = visit.share[j, place] * x[c] / total[i, c]
                    visit.best[begin + c, place] = -1
                else:
                    visit.ratio[begin + c, place] = visit.share[j, place] * x[c]
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


def assign_documents(
    batch: Batch,
    words: Words,
    expected: OwnExpectations,
    held: np.ndarray,
    kept: tuple[np.ndarray, np.ndarray] | None,
    buffers: Buffers,
    pool: Executor | None,
) -> tuple[np.ndarray, OwnStatistics]:
    """Local posteriors of every document: (B, K) float64 mu_jk, and statistics.

    Parameters
    ----------
    held : (B,) int, clusters of documents that are held there, else -1
    kept : (cluster, counts) that the documents were left with, as of :class:`.rising.Local`, to go on from over all
        topics; None is from the mean prior
    buffers : of the statistics' ``topic_words``
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
        theta=np.zeros((*shape, n_topics)),
        ratio=np.zeros((len(batch.indices), n_candidates)),
        best=np.full((len(batch.indices), n_candidates), -1, np.int32),
        log_evidence=np.empty(n_documents),
    )
    cells = Cells(batch.indptr, batch.indices, batch.counts)
    least = _LEAST_COUNT if kept is None else 0.0
    in_blocks(
        pool,
        lambda first, last: visit_documents(cells, words, expected.omega, least, visit, first, last),
        n_documents,
        _DOCUMENT_BLOCK,
    )
    topic_words = buffers.empty("topic_words", *words.weights.shape)
    order = np.argsort(batch.indices, kind="stable")
    indptr = np.searchsorted(batch.indices[order], np.arange(len(topic_words) + 1))
    document = np.repeat(np.arange(n_documents), np.diff(batch.indptr))[order]
    in_blocks(
        pool,
        lambda first, last: add_topic_words(indptr, order, document, visit, words.weights, first, last, topic_words),
        len(topic_words),
        WORD_BLOCK,
    )
    shares = np.zeros((n_documents, n_clusters))
    document, place = np.nonzero(visit.cluster >= 0)
    shares[document, visit.cluster[document, place]] = visit.share[document, place]
    lengths = np.asarray(
        sp.csr_matrix((batch.counts, batch.indices, batch.indptr), shape=(n_documents, len(topic_words))).sum(axis=1),
        np.float64,
    ).ravel()
    local = Local(visit.cluster, visit.share, visit.counts, lengths)
    contexts = np.asarray(batch.contexts.statistics.T @ shares).T
    return shares, OwnStatistics(
        n_documents=n_documents,
        log_evidence=float(visit.log_evidence.sum()),
        n_k=shares.sum(axis=0),
        word_mass=np.empty((0, n_clusters)),
        contexts=contexts,
        local=local,
        topic_words=topic_words,
    )
