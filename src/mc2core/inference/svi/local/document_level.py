"""Local step and update of omega in SVI-MC2 with a document level, theta_j ~ DP(omega, tau_{z_j}) (docs/model.md).

The posterior of the topic proportions of cluster k is q(tau_k) = Dir(v eps_1 + t_k1, ..., v eps_M + t_kM, v eps_rest).
Here t_km is the expected number of tables of topic m in the documents of cluster k. A document of cluster k has the
Dirichlet parameters a_km = omega exp(E ln tau_km). If omega is learnt, it has a point estimate. In the first epoch,
documents stay in their starting clusters. Otherwise most documents would move to a few clusters, because the first
topics are still inaccurate.

**Local step**: The local posterior is q(z_j) q(l_j | z_j), with theta_j integrated out. Under cluster k, a token with
word w belongs to topic m with probability gamma_wm. The expected topic counts are n_m = sum_w x_jw gamma_wm. A pass

    gamma_wm prop. to exp(E ln psi_mw + digamma(a_km + n_m))

uses n from the previous pass and never lowers the bound. If there are no previous counts, the first pass determines
gamma by the words alone. With equal counts below 1, the digamma would assign a short document to the topic with the
largest prior. Each document first makes some passes under the mean prior of the clusters. The clusters with the largest
evidence for the resulting counts become its candidates. Each candidate then makes further passes under its own prior,
over the topics that the document uses. Each candidate has its own q(l_j | z_j). With one q(theta_j) for all clusters,
the counts would depend on the current cluster of the document, and clusters would merge.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, softmax

from mc2core.base.checks import MAX_PRIOR as MAX_OMEGA
from mc2core.base.checks import MIN_PRIOR as MIN_OMEGA
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.special import digamma, exp, log, log_gamma
from mc2core.compute.threads import in_blocks
from mc2core.inference.svi.documents import Batch, Expectations, statistics_of
from mc2core.inference.svi.empirical_bayes import STEPS_OF_BATCH, STEPS_OF_FULL, TopicWeights, backtracked
from mc2core.inference.svi.globals import Globals, LocalStep
from mc2core.inference.svi.proportions import CANDIDATES, DocumentLevel
from mc2core.inference.svi.rising import expected_tables, log_rising_factorial, tables_of_lengths, uncertain_tables
from mc2core.inference.svi.words import MIN_FACTOR, MIN_SUM, WORD_BLOCK, WordScores, blend

_TABLE_BLOCK = 64
# clusters with a smaller responsibility in a document are ignored
MIN_SHARE = 1e-12
#: largest number of passes under the mean prior, and under the prior of each candidate cluster
SCREENING_PASSES, PASSES = 8, 10
_TOLERANCE = 1e-3  # passes end when a pass changes the topics of a smaller fraction of the tokens
_MIN_COUNT = 2e-4  # smallest count of a topic that a document uses, relative to the document's largest count
_DOCUMENT_BLOCK = 4
# with these flags, the compiler may reorder sums and vectorise the loops
SUMS = {"contract", "reassoc", "nsz"}
#: longest step of ln omega, before multiplication by the learning rate
LONGEST_STEP = 2.0


class DocumentPosteriors(NamedTuple):
    """Local posteriors of B documents with at most C candidate clusters each.

    cluster : (B, C) int32, candidate clusters; unused columns contain -1
    share : (B, C) float64, responsibilities mu_jk of the candidates
    counts : (B, C, M) float64, expected topic counts n_jkm of document j under cluster k
    squares : (B, C, M) float64, sums of squared topic probabilities, sum_w x_jw gamma_wm^2
    lengths : (B,) float64, numbers of tokens N_j
    """

    cluster: np.ndarray
    share: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    lengths: np.ndarray


@kernel
def sum_rising_factorials(cluster, share, counts, prior, first, last):
    """Return the sum of mu_jk (ln G(a_km + n_jkm) - ln G(a_km)) over documents first..last-1, clusters and topics."""
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


@kernel
def add_tables(cluster, share, counts, squares, prior, is_uncertain, tables, of_document):
    """Add the expected tables mu_jk a (digamma(a + n_jkm) - digamma(a)) to tables[k, m] and of_document[j].

    If ``is_uncertain``, of_document[j] instead gets the tables computed by :func:`uncertain_tables`.
    """
    for j in range(cluster.shape[0]):
        for i in range(cluster.shape[1]):
            if share[j, i] < MIN_SHARE:
                continue
            k = cluster[j, i]
            for m in range(prior.shape[1]):
                if counts[j, i, m] > 0.0:
                    t = share[j, i] * expected_tables(prior[k, m], counts[j, i, m])
                    tables[k, m] += t
                    if is_uncertain:
                        t = share[j, i] * uncertain_tables(prior[k, m], counts[j, i, m], squares[j, i, m])
                    of_document[j] += t


def log_evidence(local: DocumentPosteriors, prior: np.ndarray, omega: float, pool: Executor | None) -> float:
    """Return the part of the ELBO that depends on ``prior`` a, (K, M), and on ``omega``, in nats."""
    terms = in_blocks(
        pool,
        lambda first, last: sum_rising_factorials(local.cluster, local.share, local.counts, prior, first, last),
        len(local.lengths),
        _TABLE_BLOCK,
    )
    return float(sum(terms) + np.sum(gammaln(omega) - gammaln(omega + local.lengths)))


def tables_of(
    local: DocumentPosteriors, prior: np.ndarray, is_uncertain: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected tables t_km, (K, M), and the expected tables of each document, (B,).

    With ``is_uncertain``, the tables of documents account for the variance of the topic counts, as the update of omega
    requires.
    """
    tables, of_document = np.zeros_like(prior), np.zeros(len(local.lengths))
    add_tables(local.cluster, local.share, local.counts, local.squares, prior, is_uncertain, tables, of_document)
    return tables, of_document


@inner_kernel(fastmath=SUMS)
def _proportions(a, n, log_theta, theta):
    """Write digamma(a + n) minus its maximum to ``log_theta``, and the exponential of ``log_theta`` to ``theta``."""
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


@inner_kernel
def _assign_vanished(ratio, total, x, u, used, scores, log_theta, best, fresh):
    """Assign each word whose sum over topics underflows in float64 to its likeliest topic.

    For such words, ``best`` is the index of this topic in ``used``, and the count is added to ``fresh``. For all other
    words, ``best`` is -1, and ``ratio`` is the count divided by the sum.
    """
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


@inner_kernel
def run_passes(p, words, x, u, used, a, n, theta, total, best, n_passes):
    """Run at most ``n_passes`` passes of one document over the topics ``used`` (A,), under C priors ``a`` (C, A).

    The document has the words ``u`` with counts ``x``; ``p`` (A, cells) contains the weights of these words by topic.
    Each pass consists of two matrix products, which process all priors at once. ``n`` (C, A) contains the initial topic
    counts, or zeros. The counts of the last pass replace them. ``theta`` (C, A), ``total`` (C, cells) and ``best`` (C,
    cells) are output arrays. Passes end when the counts under every prior have converged.
    Returns, for each prior, sum_w x_w ln(sum_m p_mw theta_m) - sum_m n_m ln(theta_m), (C,) float64.
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
            _assign_vanished(ratio[k], total[k], x, u, used, words.scores, log_theta[k], best[k], extra[k])
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


@record
class BatchCells(NamedTuple):
    """Word counts of a batch as a compressed sparse row (CSR) matrix, one row per document."""

    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray


@record
class Candidates(NamedTuple):
    """Input and output arrays of the local step for B documents.

    log_weights : (B, K) float64, E ln beta_k + E ln p(x_j | phi_k)
    prior, mean_prior : (K, M) and (M,) float64, the Dirichlet parameters a and their mean over clusters
    held : (B,) int32, cluster to which the document is fixed; -1 if it is free
    cluster, share, counts, squares : as in :class:`DocumentPosteriors`. Before the step, ``cluster`` and ``counts``
        contain the candidates of the previous step, if any, and their counts
    theta : (B, C, M) float64, exp(digamma(a + n)) of the last pass, divided by its largest value
    ratio : (cells, C) float64, mu_jk x / sum_m weights theta; 0 if mu_jk is negligible
    best : (cells, C) int32, likeliest topic of a cell whose sum underflows; otherwise -1
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

    @property
    def shares(self) -> np.ndarray:
        """Responsibilities mu_jk, (B, K) float64."""
        shares = np.zeros((len(self.share), len(self.prior)))
        document, place = np.nonzero(self.cluster >= 0)
        shares[document, self.cluster[document, place]] = self.share[document, place]
        return shares

    def local(self, lengths: np.ndarray) -> DocumentPosteriors:
        """Return the local posteriors of the documents, which have ``lengths`` (B,) tokens."""
        return DocumentPosteriors(self.cluster, self.share, self.counts, self.squares, lengths)


@inner_kernel
def _used(n, least):
    """Return the indices of the topics whose count is at least ``least`` times the largest count."""
    highest = n.max()
    return np.flatnonzero(n >= least * highest)


@inner_kernel(fastmath=SUMS)
def _suits(a, n):
    """Return the log evidence of topic counts ``n`` under the prior ``a``, up to a constant equal for all priors.

    This is less accurate than :func:`log_rising_factorial`, but accurate enough to rank clusters.
    """
    value = 0.0
    for m in range(a.size):
        value += log_gamma(a[m] + n[m]) - log_gamma(a[m])
    return value


@inner_kernel
def _choose(j, n, used, candidates):
    """Write the candidate clusters of document j to its row of ``candidates.cluster``.

    A document with a fixed cluster has this cluster as its only candidate. New candidates start from the counts ``n``.
    """
    n_candidates = candidates.cluster.shape[1]
    if candidates.held[j] >= 0:
        is_kept = candidates.cluster[j, 0] == candidates.held[j]
        candidates.cluster[j, 0] = candidates.held[j]
        candidates.cluster[j, 1:] = -1
        if not is_kept:
            candidates.counts[j, 0] = n
        return
    n_clusters = candidates.prior.shape[0]
    score, few = np.empty(n_clusters), n[used]
    for k in range(n_clusters):
        score[k] = candidates.log_weights[j, k] + _suits(candidates.prior[k][used], few)
    for i in range(n_candidates):
        if candidates.cluster[j, i] >= 0:
            score[candidates.cluster[j, i]] = -np.inf
    for i in range(n_candidates):
        if candidates.cluster[j, i] < 0:
            k = int(np.argmax(score))
            # even if all scores are -inf or NaN, one candidate is needed for the passes
            if score[k] > -np.inf or candidates.cluster[j].max() < 0:
                candidates.cluster[j, i] = k
                candidates.counts[j, i] = n
                score[k] = -np.inf


@inner_kernel
def _start(j, x, p, words, u, candidates):
    """Return the topic counts of document j that serve to choose its candidates.

    These are the mean counts of the previous candidates, or the counts after passes under the mean prior.
    """
    n_topics = candidates.mean_prior.size
    n, n_kept = np.zeros(n_topics), 0
    for i in range(candidates.cluster.shape[1]):
        if candidates.cluster[j, i] >= 0:
            n += candidates.counts[j, i]
            n_kept += 1
    if n_kept > 0:
        return n / n_kept
    every, one, theta = np.arange(n_topics), n.reshape(1, -1), np.empty((1, n_topics))
    total, best = np.empty((1, x.size)), np.empty((1, x.size), np.int32)
    run_passes(p, words, x, u, every, candidates.mean_prior.reshape(1, -1), one, theta, total, best, SCREENING_PASSES)
    return n


@kernel
def update_documents(cells, words, omega, least, candidates, first, last):
    """Compute the candidates, topic counts and responsibilities of documents first..last-1 (see :class:`Candidates`).

    The passes of the candidates ignore topics whose count is below ``least`` times the largest count of the document.
    """
    for j in range(first, last):
        begin, end = cells.indptr[j], cells.indptr[j + 1]
        u, x = cells.indices[begin:end], cells.counts[begin:end].astype(np.float64)
        p = np.empty((candidates.mean_prior.size, x.size))
        for c in range(x.size):
            for m in range(candidates.mean_prior.size):
                p[m, c] = words.weights[u[c], m]
        n = _start(j, x, p, words, u, candidates)
        used = _used(n, least)
        _choose(j, n, used, candidates)
        if used.size < n.size:
            p = p[used]
        places = np.flatnonzero(candidates.cluster[j] >= 0)
        a, few = np.empty((2, places.size, used.size))
        for i in range(places.size):
            a[i] = candidates.prior[candidates.cluster[j, places[i]]][used]
            few[i] = candidates.counts[j, places[i]][used]
        theta, total = np.empty_like(a), np.empty((places.size, x.size))
        best = np.empty((places.size, x.size), np.int32)
        score = run_passes(p, words, x, u, used, a, few, theta, total, best, PASSES) - log_rising_factorial(
            omega, x.sum()
        )
        for i in range(places.size):
            place = places[i]
            candidates.counts[j, place] = 0.0
            candidates.theta[j, place] = 0.0
            of_cells = np.where(best[i] < 0, x / (total[i] * total[i]), 0.0)
            for t in range(used.size):
                candidates.counts[j, place, used[t]] = few[i, t]
                candidates.theta[j, place, used[t]] = theta[i, t]
                square = 0.0
                for c in range(x.size):
                    square += of_cells[c] * p[t, c] * p[t, c]
                candidates.squares[j, place, used[t]] = square * theta[i, t] * theta[i, t]
                if few[i, t] > 0.0:
                    score[i] += log_rising_factorial(a[i, t], few[i, t])
            score[i] += candidates.log_weights[j, candidates.cluster[j, place]]
        highest = score.max()
        share = np.exp(score - highest)
        sum_of_shares = share.sum()
        candidates.log_evidence[j] = highest + np.log(sum_of_shares)
        for i in range(places.size):
            place = places[i]
            candidates.share[j, place] = share[i] / sum_of_shares
            if candidates.share[j, place] < MIN_SHARE:
                continue
            for c in range(x.size):
                if best[i, c] < 0:
                    candidates.ratio[begin + c, place] = candidates.share[j, place] * x[c] / total[i, c]
                    candidates.best[begin + c, place] = -1
                else:
                    candidates.ratio[begin + c, place] = candidates.share[j, place] * x[c]
                    candidates.squares[j, place, used[best[i, c]]] += x[c]
                    candidates.best[begin + c, place] = used[best[i, c]]


@kernel
def add_topic_words(indptr, cell, document, candidates, weights, first, last, topic_words):
    """Write the expected number of tokens of words first..last-1 in each topic to ``topic_words``, (U, M).

    ``cell`` and ``document`` are sorted by word. Word u has the entries indptr[u] to indptr[u + 1] - 1.
    """
    n_topics = topic_words.shape[1]
    ratio, best, theta = candidates.ratio, candidates.best, candidates.theta
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


def update_batch(
    batch: Batch,
    words: WordScores,
    expected: Expectations,
    prior: np.ndarray,
    omega: float,
    held: np.ndarray,
    kept: tuple[np.ndarray, np.ndarray] | None,
    pool: Executor | None,
) -> Candidates:
    """Compute the local posteriors of all documents of a batch.

    Parameters
    ----------
    prior : (K, M) float64, Dirichlet parameters a
    omega : float, document concentration
    held : (B,) int, cluster to which the document is fixed; -1 if it is free
    kept : candidate clusters and topic counts of the previous step, from which passes continue over all topics; with
        None, they start under the mean prior
    """
    n_documents, (n_clusters, n_topics) = batch.n_documents, prior.shape
    n_candidates = min(CANDIDATES, n_clusters) if kept is None else kept[0].shape[1]
    shape = (n_documents, n_candidates)
    candidates = Candidates(
        log_weights=batch.contexts.log_likelihood(expected.contexts) + expected.log_group,
        prior=prior,
        mean_prior=softmax(expected.log_group) @ prior,
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
    cells = BatchCells(batch.indptr, batch.indices, batch.counts)
    least = _MIN_COUNT if kept is None else 0.0
    in_blocks(
        pool,
        lambda first, last: update_documents(cells, words, omega, least, candidates, first, last),
        n_documents,
        _DOCUMENT_BLOCK,
    )
    return candidates


@dataclass
class DocumentLevelStep(LocalStep):
    """Result of a local step with a document level.

    posteriors : local posteriors of the documents
    prior, omega : Dirichlet parameters a, (K, M), and omega, under which ``posteriors`` were computed
    words : scores of the words of the batch
    """

    posteriors: DocumentPosteriors
    prior: np.ndarray
    omega: float
    words: WordScores

    def step(self, state: Globals, scale: float, rate: float, pool: Executor | None) -> None:
        own, level, local = state.tau, state.theta, self.posteriors
        if state.settings.batch_size is None:
            level.local_cluster = np.where(local.share < MIN_SHARE, np.int32(-1), local.cluster)
            level.local_counts = local.counts
            ascend(state, local, pool)
            return
        tables, of_document = tables_of(local, self.prior, is_uncertain=True)
        blend(own.n_km, scale * tables, rate)
        own.step_weights(STEPS_OF_BATCH)
        if level.omega_prior is not None:
            level.document_concentration *= math.exp(
                rate * step_of_omega(level, self.omega, local, of_document, scale, rate)
            )

    def log_words(self) -> float:
        return float(np.sum(self.topic_words * self.words.scores))

    def change_of_proportions(self, state: Globals, pool: Executor | None) -> float:
        now = state.theta.prior(state.tau), state.document_concentration
        before = log_evidence(self.posteriors, self.prior, self.omega, pool)
        return log_evidence(self.posteriors, *now, pool) - before


def local_step(state: Globals, batch: Batch, pool: Executor | None) -> DocumentLevelStep:
    """Run the local step of a mini-batch with a document level."""
    own, level = state.tau, state.theta
    expected, prior, omega = state.expectations(batch.columns), level.prior(own), level.document_concentration
    words = state.word_scores(expected, batch.words, pool)
    kept = (level.local_cluster, level.local_counts) if state.settings.batch_size is None else None
    found = update_batch(batch, words, expected, prior, omega, held_clusters(state, batch), kept, pool)
    topic_words = state.buffers.empty("topic_words", *words.weights.shape)
    order = np.argsort(batch.indices, kind="stable")
    indptr = np.searchsorted(batch.indices[order], np.arange(len(topic_words) + 1))
    document = np.repeat(np.arange(batch.n_documents), np.diff(batch.indptr))[order]

    def work(first: int, last: int) -> None:
        add_topic_words(indptr, order, document, found, words.weights, first, last, topic_words)

    in_blocks(pool, work, len(topic_words), WORD_BLOCK)
    documents = statistics_of(batch, found.shares, found.log_evidence, np.empty((0, len(prior))))
    return DocumentLevelStep(expected, documents, topic_words, found.local(batch.lengths), prior, omega, words)


def held_clusters(state: Globals, batch: Batch) -> np.ndarray:
    """Return the cluster to which each document is fixed in the first epoch, (B,) int; -1 for all in later epochs."""
    return state.cluster[batch.rows] if n_epochs(state) == 0 else np.full(batch.n_documents, -1)


def n_epochs(state: Globals) -> int:
    """Return the number of completed epochs, computed from the number of updates."""
    n_documents = len(state.cluster)
    return state.n_updates // -(-n_documents // (state.settings.batch_size or n_documents))


def step_of_omega(
    own: DocumentLevel, omega: float, local: DocumentPosteriors, of_document: np.ndarray, scale: float, rate: float
) -> float:
    """Return the natural-gradient step of ln ``omega``, given the expected tables ``of_document`` (B,) of documents.

    An EM step with fixed topic counts would be too short, because the counts depend on omega. The information of the
    documents about ln omega is estimated by the sum of squared derivatives of their evidence. The running average of
    this estimate over mini-batches is stored in ``own``.
    """
    assert own.omega_prior is not None
    shape, prior_rate = own.omega_prior
    slopes = of_document - tables_of_lengths(local.lengths, omega)
    known, seen = own.omega_information, scale * float(slopes @ slopes)
    own.omega_information = (1.0 - rate) * known + rate * seen if known > 0 else seen
    slope = scale * float(slopes.sum()) + shape - prior_rate * omega
    step = slope / (own.omega_information + prior_rate * omega)
    least, most = math.log(MIN_OMEGA / omega), math.log(MAX_OMEGA / omega)
    return float(np.clip(step, max(-LONGEST_STEP, least), min(LONGEST_STEP, most)))


def ascend(state: Globals, local: DocumentPosteriors, pool: Executor | None) -> None:
    """Update q(tau), then epsilon and v, then omega, in place, given the local posteriors of a full batch.

    Each step is halved until it does not lower the bound. The step of q(tau) moves ``n_km`` towards the expected
    tables. If all topic counts are integers, it is an EM step. With counts below one token, it may lower the bound.
    """

    own, level = state.tau, state.theta

    def value() -> float:
        return (
            log_evidence(local, level.prior(own), level.document_concentration, pool) - state.proportions_divergence()
        )

    tables, (goal_of_tables, _) = own.n_km, tables_of(local, level.prior(own))

    def move_tables(share: float) -> float:
        own.n_km = (1.0 - share) * tables + share * goal_of_tables
        return value()

    move_tables(backtracked(move_tables, value()))

    weights, goal_of_weights = own.weights, own.objective.improved(own.weights, STEPS_OF_FULL)

    def move_weights(share: float) -> float:
        topics = (1.0 - share) * weights.topics + share * goal_of_weights.topics
        remaining = (1.0 - share) * weights.remaining + share * goal_of_weights.remaining
        own.weights = TopicWeights(topics, remaining, weights.v * (goal_of_weights.v / weights.v) ** share)
        return value()

    move_weights(backtracked(move_weights, value()))
    if level.omega_prior is None:
        return
    omega = level.document_concentration
    shape, prior_rate = level.omega_prior
    remainder = float(np.sum(tables_of_lengths(local.lengths, omega))) / omega
    goal = (float(tables_of(local, level.prior(own))[0].sum()) + shape) / (remainder + prior_rate)
    goal = float(np.clip(goal, MIN_OMEGA, MAX_OMEGA))

    def move_omega(share: float) -> float:
        level.document_concentration = omega * (goal / omega) ** share
        return value()

    move_omega(backtracked(move_omega, value()))
