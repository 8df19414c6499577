"""Likelihood of documents with a document level: theta_j ~ DP(omega, tau_k).

    p(w_j) = sum_k pi_k integral Dir(theta; omega tau_k) prod_i (sum_m theta_m psi_m,w_ji)

If words repeat, each factor is (n_ji + b sum_m theta_m psi_m,w_ji) / (i - 1 + b), with n_ji earlier tokens of its word.
The integral has the same form as in the HDP and LDA, with the prior of a cluster, and unbiased estimators exist.
``left_to_right`` is preferable. If omega is small, the distribution of a document's topics has several modes, and
``importance`` is then mostly too low. Only a few clusters are plausible for a document. The integral is estimated for
these clusters only, with fewer draws for less plausible clusters.

These estimates are not accurate enough to determine the cluster of a document: for long documents, their errors exceed
the differences between clusters. Therefore, the cluster is sampled together with the topics of the document. Given its
topics, a document would hardly leave a cluster, because other clusters lack these topics. To avoid this, the tokens are
grouped into tables, each with one topic (Teh et al. 2006). The topics of the tables are summed out,

    P(z_j = k | w_j, tables) ~ pi_k prod_t sum_m tau_km prod_i psi_m,w_ji over the tokens i of t,

and the cluster is drawn, then the topics of the tables. The probabilities are averaged over sweeps. As an
approximation, repeated words count by their expected number of draws (:mod:`mc2core.posterior.repeats`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.base import stopping
from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.compute.buffers import Buffers
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import exp, log, log_gamma
from mc2core.corpus import Corpus
from mc2core.posterior import perplexity_kernels as kernels
from mc2core.posterior.mixture import Block, SampleMixture, blocks, in_chunks
from mc2core.posterior.proportions import add_expected
from mc2core.posterior.repeats import expected_draws
from mc2core.posterior.sample import Sample

CLUSTERS = 8
"""Largest number of clusters for which the likelihood of a document is estimated."""
FIT_PASSES = 4
"""Number of updates of a document's expected topic counts, by which these clusters are chosen."""
SHARED = 0.2
"""Weight of the mean topic proportions of all clusters when clusters are chosen. The mean is mixed with the proportions
of each cluster, because a word whose topic a cluster lacks may have another topic in this cluster."""
SLACK = 3.0
"""Difference in nats to the best cluster at which a cluster gets fewer draws by a factor e."""
SLACK_OF_A_TOKEN = 0.02
"""Replaces ``SLACK`` for long documents: nats per token. The criterion of the choice is rougher for long documents."""
SWEEPS = 100
"""Number of sweeps over a document's tokens to predict its cluster. With S samples, it is divided by sqrt(S)."""
FIRST_SWEEPS, DOUBT = 20, 1e-3
"""Number of first sweeps, and a probability. A quarter of the first sweeps is discarded. Sampling stops after the first
sweeps if all clusters except the likeliest have a total probability below DOUBT."""

# number of documents per task of a thread
_CHUNK = 8
# number of documents processed together
_DRAWN_BLOCK = 256
# number of sums per word and cluster that the chain of a document caches (512 KB)
_REMEMBERED = 1 << 16
_MIN = 1e-300
# largest number of tokens of a topic for which a product of factors replaces log-gammas
_FEW = 8
# blocks of topics with less than this share of a table's likelihood are left out
_FAINT = 1e-10
# number of tokens after which the likelihood of a table is rescaled, to prevent underflow
_SCALED = 8


def priors_of(mixture: SampleMixture) -> tuple[np.ndarray, np.ndarray]:
    """Return the pseudo-counts of topics, (K, M + 1), and log weights, (K,), of the clusters.

    The pseudo-counts are omega tau_k, and the log weights ln pi_k, with a new cluster if the mixture has one. An
    admixture (HDP, LDA) without a document level has one cluster with the pseudo-counts v epsilon.
    """
    omega = mixture.sample.document_concentration
    if omega == np.inf:
        return mixture.alpha[None, :], np.zeros(1)
    tau = mixture.tau.toarray() if sp.issparse(mixture.tau) else mixture.tau
    return np.ascontiguousarray(omega * tau), mixture.log_weights


@inner_kernel(fastmath={"contract"})
def _add_topic(prior, n, log_p):
    """Add ln G(prior[k] + n) / G(prior[k]) to log_p[k]."""
    if n > _FEW:
        for k in range(log_p.size):
            log_p[k] += log_gamma(prior[k] + n) - log_gamma(prior[k])
        return
    for k in range(log_p.size):
        product = prior[k]
        for i in range(1, n):
            product *= prior[k] + i
        log_p[k] += log(product)


@kernel
def _fit_clusters(indptr, indices, counts, psi, prior, priors, log_weights, passes, first, last, out):
    """Write ln pi_k p(topic counts of document j | k), with theta summed out, to rows first..last of ``out`` (B, K).

    The topic counts are expected given the pseudo-counts ``prior`` (M,), after ``passes`` updates, and rounded.
    ``priors`` (M, K) has the pseudo-counts of the clusters.
    """
    n_topics, n_clusters = priors.shape
    tokens, expected, weights = np.empty(n_topics), np.zeros(n_topics), np.empty(n_topics)
    for j in range(first, last):
        expected[:] = 0.0
        for _ in range(passes):
            for m in range(n_topics):
                tokens[m], expected[m] = expected[m], 0.0
            for position in range(indptr[j], indptr[j + 1]):
                add_expected(psi[indices[position]], prior, tokens, counts[position], weights, expected)
        for k in range(n_clusters):
            out[j, k] = log_weights[k]
        for m in range(n_topics):
            n = math.floor(expected[m] + 0.5)
            if n > 0:
                _add_topic(priors[m], n, out[j])


def _mean_prior(priors: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean over clusters of the pseudo-counts ``priors`` (K, M), (M,)."""
    weights = np.exp(log_weights)
    return np.asarray(weights @ priors / weights.sum())


def choose_clusters(
    block: Block,
    priors: np.ndarray,
    log_weights: np.ndarray,
    psi: np.ndarray,
    threads: int,
    burst_concentration: float = np.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most plausible clusters of each document, (B, C) int64, and their distances in nats, (B, C) float64.

    At most ``CLUSTERS`` clusters are chosen, by the expected topic counts of the document. The distance of a cluster is
    its difference in log probability to the best cluster. Repeated words count by their expected number of draws.
    ``priors`` (K, M + 1) is omega tau_k, ``log_weights`` (K,) is ln pi_k, and ``psi`` (U, M + 1) has the probability of
    each word in each topic.
    """
    mean = _mean_prior(priors, log_weights)
    cells = expected_draws(block.arrays, psi, mean, burst_concentration)
    mixed = np.maximum(np.ascontiguousarray(((1.0 - SHARED) * priors + SHARED * mean).T), _MIN)
    out = np.empty((len(block.rows), len(priors)))

    def run(first: int, last: int) -> None:
        _fit_clusters(*cells, psi, mean, mixed, log_weights, FIT_PASSES, first, last, out)

    in_chunks(run, len(out), threads, _CHUNK, lambda n_done: stopping.check())
    chosen = np.ascontiguousarray(np.argsort(-out, axis=1, kind="stable")[:, :CLUSTERS])
    fitting = np.take_along_axis(out, chosen, axis=1)
    with np.errstate(invalid="ignore"):  # all may be -inf
        return chosen, fitting[:, :1] - fitting


def log_likelihood(
    kernel: Any,
    settings: tuple[int, int],
    name: str,
    block: Block,
    mixtures: list[SampleMixture],
    seed: int,
    threads: int,
    done: Callable[[float], None],
) -> np.ndarray:
    """Return ln of the mean over samples of estimates of p(w_j), (B,) float64.

    ``kernel`` is an estimator of :mod:`mc2core.posterior.perplexity_kernels`. ``settings`` are its number of draws (or
    particles) and of passes (or moves). Only the clusters of :func:`choose_clusters` are used; leaving out the other
    clusters can only lower the result. The best cluster gets the number of draws divided by the square root of the
    number of samples, because errors of samples cancel. Less plausible clusters get fewer draws (``SLACK``), because
    they contribute little. exp of the result is unbiased for the sum over the used clusters for any number of draws,
    even below one (:func:`mc2core.posterior.perplexity_kernels.start`). After each chunk of documents of a sample,
    ``done`` is called with the number of documents.
    """
    buffers, (of_one, passes) = Buffers(), settings
    most_draws = max(1.0, of_one / math.sqrt(len(mixtures)))
    slack = np.maximum(SLACK, SLACK_OF_A_TOKEN * np.asarray(block.counts.sum(axis=1)).ravel())[:, None]
    total = np.full(len(block.rows), -np.inf)
    for mixture in mixtures:
        priors, log_weights = priors_of(mixture)
        room = buffers.empty("words", len(block.words), priors.shape[1])
        psi, log_scale = mixture.likely(block.emitted, room)
        b = mixture.sample.burst_concentration
        chosen, behind = choose_clusters(block, priors, log_weights, psi, threads, b)
        # the kernel detects documents without a finite weight
        draws = np.nan_to_num(most_draws * np.exp(-behind / slack), nan=most_draws)
        names = (f"perplexity.{name}.cluster.{k}" for k in range(len(priors)))
        keys = np.array([streams.key(seed, one, mixture.number) for one in names])
        arguments = *block.arrays, block.words, psi, kernels.Asked(priors, keys, chosen, draws, b), passes
        estimates = np.empty(chosen.shape)

        def run(first: int, last: int, arguments: Any = arguments, estimates: Any = estimates) -> None:
            kernel(*arguments, first, last, estimates)

        in_chunks(run, len(total), threads, _CHUNK, done)
        log_p = logsumexp(log_weights[chosen] + estimates, axis=1) + block.by_word @ log_scale
        total = np.logaddexp(total, log_p)
    return total - np.log(len(mixtures))


# -- the cluster of a document --------------------------------------------------------------------------------------
@inner_kernel(fastmath=kernels.SUMS)
def _weigh_met(psi, row, met, n_met, n_m):
    """Return the sum of psi[row, m] n_m over the topics of the document's tokens."""
    total = 0.0
    for place in range(n_met):
        total += psi[row, met[place]] * n_m[met[place]]
    return total


@inner_kernel
def _sweep_tokens(state, token, word, topic, psi, prior, number, tokens_of, remembered):
    """Draw the topics of all tokens of a document given its cluster; -1 marks tokens without a topic.

    The weight of a topic is psi (n_m + omega tau_km). The sum of psi n_m is computed over the topics in use, and the
    sum of psi omega tau_km once per word and cluster. ``tokens_of`` has the number of tokens of each topic, the list of
    topics in use, and the position of each topic in this list. ``remembered`` caches the sums of each word: the cluster
    for which they hold, totals, and sums over blocks of topics.

    Returns the number of topics in use, or -1 if the weights of a token have no finite positive sum.
    """
    n_m, met, place_of = tokens_of
    weighed, totals, sums = remembered
    n_met = 0
    for m in range(n_m.size):
        if n_m[m] > 0.0:
            met[n_met], place_of[m] = m, n_met
            n_met += 1
    for i in range(token.size):
        w, row, m = word[i], token[i], topic[i]
        if m >= 0:
            n_m[m] -= 1.0
            if n_m[m] == 0.0:
                n_met -= 1
                met[place_of[m]] = met[n_met]
                place_of[met[n_met]] = place_of[m]
        if weighed[w] != number:
            totals[w], weighed[w] = kernels.weigh(psi, row, prior, sums[w]), number
        of_tokens = _weigh_met(psi, row, met, n_met, n_m)
        total = of_tokens + totals[w]
        if not 0.0 < total < math.inf:
            return -1
        u = streams.uniform(state) * total
        if u < of_tokens:
            place = 0
            while place < n_met - 1 and u >= psi[row, met[place]] * n_m[met[place]]:
                u -= psi[row, met[place]] * n_m[met[place]]
                place += 1
            m = met[place]
        else:
            m = kernels.find(psi, row, prior, sums[w], u - of_tokens)
        topic[i] = m
        if n_m[m] == 0.0:
            met[n_met], place_of[m] = m, n_met
            n_met += 1
        n_m[m] += 1.0
    return n_met


@inner_kernel
def _seat(state, topic, prior, tables_of, seats):
    """Assign tokens to tables, and return the number of tables.

    The tokens of topic m are assigned by a Chinese restaurant process with concentration ``prior[m]``. ``tables_of``
    are work arrays (M,): the newest table and the number of assigned tokens of each topic. ``seats`` are the results,
    (N,) each: the table of each token, and for each table the next older table of its topic (-1 for none), its number
    of tokens, and its first token.
    """
    newest, n_seated = tables_of
    table, older, size, first = seats
    for m in topic:
        newest[m], n_seated[m] = -1, 0.0
    n_tables = 0
    for i in range(topic.size):
        m, t = topic[i], -1
        if n_seated[m] > 0.0:
            u = streams.uniform(state) * (n_seated[m] + prior[m])
            if u < n_seated[m]:
                t = newest[m]
                while older[t] >= 0 and u >= size[t]:
                    u -= size[t]
                    t = older[t]
        if t < 0:
            t = n_tables
            older[t], size[t], first[t], newest[m] = newest[m], 0.0, i, t
            n_tables += 1
        size[t] += 1.0
        n_seated[m] += 1.0
        table[i] = t
    return n_tables


@inner_kernel
def _multiply(likely, s, psi, row):
    for m in range(likely.shape[1]):
        likely[s, m] *= psi[row, m]


@inner_kernel
def _gather(token, table, shared, psi, ones, sums, likely, held):
    """Write the likelihood of the tokens at each table under each topic, up to a factor, to ``likely`` (S, M).

    ``shared`` is the row of each table in ``likely``, or -1 if the table has one token. ``held`` (S,) is a work array.
    """
    held[:] = 0
    for i in range(token.size):
        s = shared[table[i]]
        if s < 0:
            continue
        if held[s] == 0:
            likely[s] = psi[token[i]]
        else:
            _multiply(likely, s, psi, token[i])
        held[s] += 1
        if held[s] % _SCALED == 0:
            scale = 1.0 / kernels.weigh(likely, s, ones, sums)
            for m in range(likely.shape[1]):
                likely[s, m] *= scale


@inner_kernel(fastmath=kernels.SUMS)
def _add_four(likely, s, m, by_topic, out):
    one, two, three, four = likely[s, m], likely[s, m + 1], likely[s, m + 2], likely[s, m + 3]
    for k in range(out.size):
        first = one * by_topic[m, k] + two * by_topic[m + 1, k]
        out[k] += first + (three * by_topic[m + 2, k] + four * by_topic[m + 3, k])


@inner_kernel
def _log_weights(likely, s, ones, sums, by_topic, out):
    """Write ln of the sum over topics of ``likely[s]`` times the prior of each cluster to ``out`` (K,)."""
    bound = _FAINT * kernels.weigh(likely, s, ones, sums)
    out[:] = 0.0
    for b in range(sums.size):
        if sums[b] > bound:
            for m in range(b * kernels.BLOCK, (b + 1) * kernels.BLOCK, 4):
                _add_four(likely, s, m, by_topic, out)
    for k in range(out.size):
        out[k] = log(out[k])


@inner_kernel
def _add(logs, log_p):
    for k in range(log_p.size):
        log_p[k] += logs[k]


@inner_kernel
def _list_tokens(indices, counts, begin, end):
    """Return the row in psi and the position in the document of the word of each token of cells ``begin`` to ``end`` -
    1."""
    n_tokens = counts[begin:end].sum()
    token, word, i = np.empty(n_tokens, np.int64), np.empty(n_tokens, np.int64), 0
    for position in range(begin, end):
        for _ in range(counts[position]):
            token[i], word[i] = indices[position], position - begin
            i += 1
    return token, word


@inner_kernel
def _weigh_clusters(n_tables, shared, opened, token, word, psi, likely, by_topic, sums, alone, is_known, log_p):
    """Add the log likelihood of the tables under each cluster to ``log_p``, with the topics of tables summed out.

    ``sums`` are a vector of ones (M,), and work arrays for sums over blocks of topics and for logarithms.
    """
    ones, own_sums, logs = sums
    for t in range(n_tables):
        w = word[opened[t]]
        if shared[t] >= 0:
            _log_weights(likely, shared[t], ones, own_sums, by_topic, logs)
            _add(logs, log_p)
            continue
        if not is_known[w]:
            _log_weights(psi, token[opened[t]], ones, own_sums, by_topic, alone[w])
            is_known[w] = True
        _add(alone[w], log_p)


@inner_kernel
def _draw_topics(state, number, n_tables, shared, opened, token, word, psi, likely, by_cluster, own_sums, remembered):
    """Draw the topic of each table given the cluster ``number``, and write it to ``opened``."""
    weighed, totals, sums = remembered
    prior, slot = by_cluster[number], number % weighed.shape[0]
    for t in range(n_tables):
        w, row, s = word[opened[t]], token[opened[t]], shared[t]
        if s >= 0:
            total = kernels.weigh(likely, s, prior, own_sums)
            opened[t] = kernels.find(likely, s, prior, own_sums, streams.uniform(state) * total)
            continue
        if weighed[slot, w] != number:
            totals[slot, w], weighed[slot, w] = kernels.weigh(psi, row, prior, sums[slot, w]), number
        opened[t] = kernels.find(psi, row, prior, sums[slot, w], streams.uniform(state) * totals[slot, w])


@inner_kernel
def _mix(log_weights, rows, mean):
    """Write the mean of ``rows``, weighted by exp(``log_weights``), to ``mean``."""
    mean[:] = 0.0
    for k in range(log_weights.size):
        share = exp(log_weights[k])
        for m in range(mean.size):
            mean[m] += share * rows[k, m]


@inner_kernel
def _exponentiate(log_p, p):
    """Write exp of ``log_p`` minus its maximum to ``p``, and return the sum of ``p``."""
    top, total = log_p.max(), 0.0
    for k in range(p.size):
        p[k] = exp(log_p[k] - top)
    for k in range(p.size):
        total += p[k]
    return total


@inner_kernel
def _pick(u, p):
    """Return the index whose interval contains ``u``, for consecutive intervals of lengths ``p``."""
    for k in range(p.size):
        if u < p[k]:
            return k
        u -= p[k]
    return int(p.argmax())


@kernel
def _sample_clusters(block, psi, by_cluster, by_topic, log_prior, sweeps, doubt, key, first, last, out):
    """Write P(z_j | w_j), estimated by one chain per document, to rows first..last of ``out`` (B, K).

    ``out`` is initially 0. A row is NaN if a word of the document is impossible.

    ``block``: indptr, indices, counts, words.
    ``psi``: (U, M); M is a multiple of the block of topics.
    ``by_cluster``, ``by_topic``: omega tau, of shape (K, M) and (M, K).
    ``log_prior``: (B, K); the exponentials of each row sum to 1.
    ``sweeps``: (first, most). The chain stops after ``first`` sweeps if all clusters except the likeliest have a total
    probability below ``doubt``. Otherwise it runs ``most`` sweeps.
    """
    indptr, indices, counts, words = block
    n_clusters, n_topics = by_cluster.shape
    n_blocks = n_topics // kernels.BLOCK
    state = np.zeros(2, np.uint64)
    mean, n_m, ones, own_sums = np.empty(n_topics), np.empty(n_topics), np.ones(n_topics), np.empty(n_blocks)
    met, place_of = np.empty(n_topics, np.int64), np.empty(n_topics, np.int64)
    tables_of = np.empty(n_topics, np.int64), np.empty(n_topics)
    log_p, p = np.empty(n_clusters), np.empty(n_clusters)
    room = ones, own_sums, np.empty(n_clusters)
    likely, held = np.empty((_SCALED, n_topics)), np.empty(_SCALED, np.int64)
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        kernels.seek_document(state, key, words, indices, counts, begin, end)
        token, word = _list_tokens(indices, counts, begin, end)
        n_tokens, n_words = token.size, end - begin
        topic, shared = np.full(n_tokens, -1), np.empty(n_tokens, np.int64)
        table, older, opened = np.empty(n_tokens, np.int64), np.empty(n_tokens, np.int64), np.empty(n_tokens, np.int64)
        size = np.empty(n_tokens)
        # log weights of words that are alone at their table, computed on first use
        alone, is_known = np.empty((n_words, n_clusters)), np.zeros(n_words, np.bool_)
        n_slots = max(1, min(n_clusters, _REMEMBERED // (n_words * n_blocks + 1)))
        weighed = np.full((n_slots, n_words), -1)
        totals = np.empty((n_slots, n_words))
        sums = np.empty((n_slots, n_words, n_blocks))
        n_m[:] = 0.0
        _mix(log_prior[j], by_cluster, mean)  # prior of the first sweep
        prior, number, kept = mean, n_clusters, 0
        enough, most = (sweeps[0], sweeps[1]) if n_tokens > 0 else (1, 1)
        for sweep in range(most):
            slot = number % n_slots
            remembered = weighed[slot], totals[slot], sums[slot]
            n_met = _sweep_tokens(state, token, word, topic, psi, prior, number, (n_m, met, place_of), remembered)
            if n_met < 0:
                out[j] = math.nan
                break
            n_tables, n_shared = _seat(state, topic, prior, tables_of, (table, older, size, opened)), 0
            for t in range(n_tables):
                shared[t] = n_shared if size[t] > 1.0 else -1
                n_shared += size[t] > 1.0
            if n_shared > held.size:
                likely, held = np.empty((2 * n_shared, n_topics)), np.empty(2 * n_shared, np.int64)
            _gather(token, table, shared, psi, ones, own_sums, likely, held)
            for k in range(n_clusters):
                log_p[k] = log_prior[j, k]
            _weigh_clusters(n_tables, shared, opened, token, word, psi, likely, by_topic, room, alone, is_known, log_p)
            total = _exponentiate(log_p, p)
            if sweep >= enough // 4:
                kept += 1
                for k in range(n_clusters):
                    out[j, k] += p[k] / total
                if sweep + 1 == enough and out[j].max() > (1.0 - doubt) * kept:
                    break
            before, number = number, _pick(streams.uniform(state) * total, p)
            if number == before:  # keeping the topics leaves the distribution invariant
                continue
            prior = by_cluster[number]
            _draw_topics(
                state, number, n_tables, shared, opened, token, word, psi, likely, by_cluster, own_sums,
                (weighed, totals, sums),
            )  # fmt: skip
            for place in range(n_met):
                n_m[met[place]] = 0.0
            for i in range(n_tokens):
                topic[i] = opened[table[i]]
                n_m[topic[i]] += 1.0
        for k in range(n_clusters):
            out[j, k] /= kept


class ClusterChains:
    """Computes P(z_j = k | w_j) for the clusters of a sample with a document level.

    A Markov chain per document draws the topics of its tokens given its cluster, the assignment to tables, and the
    cluster given the tables. With more sweeps, the mean of the drawn probabilities converges to the exact probability.
    If probabilities are averaged over ``n_samples`` samples, fewer sweeps are made per sample, because errors cancel.
    """

    def __init__(self, sample: Sample, n_samples: int = 1) -> None:
        self._mixture, self._buffers = SampleMixture(sample), Buffers()
        self._sweeps = FIRST_SWEEPS, max(FIRST_SWEEPS, round(SWEEPS / math.sqrt(n_samples)))
        priors, _ = priors_of(self._mixture)
        n_clusters, self._n_topics = priors.shape
        self._n_columns = kernels.BLOCK * (-(-self._n_topics // kernels.BLOCK))
        by_cluster = np.full((n_clusters, self._n_columns), _MIN)
        by_cluster[:, : self._n_topics] = np.maximum(priors, _MIN)
        self._mean = _mean_prior(by_cluster, self._mixture.log_weights)
        by_topic = np.ascontiguousarray(by_cluster.T)
        self._priors = by_cluster, by_topic

    def probabilities(self, corpus: Corpus, log_prior: np.ndarray, threads: int) -> np.ndarray:
        """Return the probability of each cluster for each document, (J, K) float64, given log prior probabilities.

        Random streams are keyed by seed 0 and the words of the document. The row of a document therefore depends
        neither on other documents nor on ``threads``. The row of a document with probability 0 is NaN.
        """
        log_prior = log_prior - logsumexp(log_prior, axis=1, keepdims=True)
        key, n_clusters = streams.key(0, "prediction"), self._priors[0].shape[0]
        out = np.zeros((corpus.n_documents, n_clusters))
        with stopping.defer(), work("clusters of documents", len(out), "documents") as progress:
            for rows in blocks(corpus, max(n_clusters, self._n_columns), _DRAWN_BLOCK):
                block, probability = Block(corpus, rows), np.zeros((len(rows), n_clusters))
                psi = self._buffers.empty("words", len(block.words), self._n_columns)
                self._mixture.likely(block.emitted, psi[:, : self._n_topics])
                psi[:, self._n_topics :] = 0.0
                cells = expected_draws(block.arrays, psi, self._mean, self._mixture.sample.burst_concentration)
                arguments = (*cells, block.words), psi, *self._priors, log_prior[rows]

                def run(first: int, last: int, arguments: Any = arguments, probability: Any = probability) -> None:
                    _sample_clusters(*arguments, self._sweeps, DOUBT, key, first, last, probability)

                in_chunks(run, len(rows), threads, _CHUNK, progress.advance)
                out[rows] = probability
        return out
