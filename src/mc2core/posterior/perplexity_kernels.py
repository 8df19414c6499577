"""Compiled estimators of a document's likelihood, for blocks of documents.

Tests compare the kernels with NumPy versions that use the same random streams
(tests/mc2core/posterior/test_perplexity.py). The random stream of a document is keyed by its words. The result for a
document therefore depends neither on other documents nor on the threads.

All kernels process documents first..last - 1 of a block. A block is a CSR matrix over its U distinct words: ``indptr``,
``indices`` into the rows of ``psi``, and ``counts``. ``psi`` (U, M) float64 is the probability of each word in each
topic, and ``words`` (U,) are the columns of the words in the corpus.

Estimators of p(w_j) use C clusters of each document (:class:`Asked`). The result is NaN if the weights of a token's
topics have no finite sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel

_32 = np.uint64(32)


class Asked(NamedTuple):
    """Clusters for which the likelihood of documents is estimated, with their numbers of draws (:func:`start`)."""

    priors: np.ndarray  # (K, M) float64: pseudo-counts of topics in each cluster
    keys: np.ndarray  # (K,) uint64: keys of random streams
    chosen: np.ndarray  # (J, C) int64: clusters of each document
    draws: np.ndarray  # (J, C) float64: number of draws
    b: float = math.inf  # burst concentration


class Particles(NamedTuple):
    """Topics of a document's tokens so far in R particles, and lists of the topics in use with their token counts."""

    topic: np.ndarray  # (R, N) int64: topic of each token; -1 for a token that repeats a word
    n_met: np.ndarray  # (R,) int64: number of topics in use
    met: np.ndarray  # (R, M) int64: list of the topics in use
    place_of: np.ndarray  # (R, M) int64: position of each topic in this list
    n_of: np.ndarray  # (R, M) float64: number of tokens of the topic at each position of the list
    n_drawn: np.ndarray  # (R,) float64: number of tokens with a topic


@inner_kernel
def seek_document(state, key, words, indices, counts, begin, end):
    """Set ``state`` to the start of a document's random stream, which is keyed by a hash of its words and counts.

    The words are ``words[indices[begin:end]]`` (columns in the corpus), and their counts ``counts[begin:end]``.
    """
    item = np.uint64(0)
    for position in range(begin, end):
        word = np.uint64(words[indices[position]])
        item = streams.mix(item ^ (word + (np.uint64(counts[position]) << _32)))
    streams.seek(state, key, item)


#: number of topics in a block, whose weights are summed together
BLOCK = 16
#: fast-math flags with which the compiler may reorder sums, so that it can vectorise them
SUMS = {"contract", "reassoc", "nsz"}


@inner_kernel(fastmath=SUMS)
def weigh(psi, row, prior, sums):
    """Write the sum of psi[row] * prior over each block of topics to ``sums``, and return the total."""
    total = 0.0
    for b in range(sums.size):
        of_block = 0.0
        if (b + 1) * BLOCK <= prior.size:  # a loop of constant length is vectorised
            for m in range(b * BLOCK, (b + 1) * BLOCK):
                of_block += psi[row, m] * prior[m]
        else:
            for m in range(b * BLOCK, prior.size):
                of_block += psi[row, m] * prior[m]
        sums[b] = of_block
        total += of_block
    return total


@inner_kernel
def find(psi, row, prior, sums, u):
    """Return the topic whose interval contains ``u``, for consecutive intervals of lengths psi[row] * prior.

    ``sums`` are the sums over blocks from :func:`weigh`.
    """
    b = 0
    while b < sums.size - 1 and u >= sums[b]:
        u -= sums[b]
        b += 1
    return _find_in_block(psi, row, prior, b, u)


@inner_kernel
def _find_in_block(psi, row, prior, b, u):
    """Return the topic of :func:`find`, given its block ``b``, and ``u`` minus the sums of earlier blocks."""
    m, end = b * BLOCK, min((b + 1) * BLOCK, prior.size) - 1
    while m < end and u >= psi[row, m] * prior[m]:
        u -= psi[row, m] * prior[m]
        m += 1
    # rounding can move past the last positive weight
    while m > 0 and psi[row, m] * prior[m] == 0.0:
        m -= 1
    return m


@inner_kernel
def start(state, draws, key, words, indices, counts, begin, end):
    """Set ``state`` to the start of a document's random stream. Return the number of draws, and their weight.

    ``draws`` is rounded up. If ``draws`` is below one, there is one draw of weight 1 / ``draws`` with probability
    ``draws``, and otherwise no draw. The estimate therefore remains unbiased.
    """
    seek_document(state, key, words, indices, counts, begin, end)
    if draws >= 1.0:
        return math.ceil(draws), 1.0
    if draws > 0.0 and streams.uniform(state) < draws:
        return 1, 1.0 / draws
    return 0, 0.0


@inner_kernel
def _draw(state, cumulative):
    """Draw an index with probability proportional to its weight, given the cumulative sums of the weights."""
    target = streams.uniform(state) * cumulative[-1]
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def likeliest_topic(indptr, indices, psi, tau, cluster, first, last, out):
    """Add max_l tau[k, l] psi[w, l] of each entry (document j, word w) to ``out`` (entries,), as in ICML14, A.4.

    k = ``cluster[j]`` is the cluster of the document. ``tau`` is (K, M) float64, and ``cluster`` (J,) int.
    """
    for j in range(first, last):
        proportions = tau[cluster[j]]
        for position in range(indptr[j], indptr[j + 1]):
            likely = psi[indices[position]]
            best, total = 0.0, 0.0
            for m in range(len(proportions)):
                weight = proportions[m] * likely[m]
                total += weight
                best = max(best, weight)
            out[position] += best if total < math.inf else math.nan


@kernel
def importance(indptr, indices, counts, words, psi, asked, passes, first, last, out):
    """Write the log importance-sampling estimates of p(w_j | psi, theta_j ~ Dirichlet(priors[k])) to ``out`` (J, C).

    The method is that of Wallach et al. 2009, section 4.1, with iterated pseudo-counts. The topics of all tokens are
    drawn independently from q(m | w), which is proportional to psi_mw (alpha_m + expected number of other tokens of
    topic m). A draw has weight p(w, z) / q(z), with theta_j integrated out.

    exp(out) is unbiased for any number of ``draws`` and ``passes``, but usually too low. If alpha is small, p(z | w)
    has several modes, and q covers only one mode. The mass of the other modes is in rare draws with large weights.
    :func:`left_to_right` does not need one q for all tokens.
    """
    priors, keys, chosen, draws, _ = asked
    n_topics = priors.shape[1]
    state = np.empty(2, np.uint64)
    expected, n_m = np.empty(n_topics), np.empty(n_topics)
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        proposal, cumulative = np.empty((end - begin, n_topics)), np.empty((end - begin, n_topics))
        for c in range(chosen.shape[1]):
            alpha, key = priors[chosen[j, c]], keys[chosen[j, c]]
            n_draws, weight = start(state, draws[j, c], key, words, indices, counts, begin, end)
            if n_draws == 0 or begin == end:
                out[j, c] = math.log(weight)
                continue
            total_alpha = alpha.sum()
            log_weights = np.empty(n_draws)
            proposal[:] = 0.0
            expected[:] = 0.0
            impossible, broken = False, False
            for sweep in range(passes + 1):
                for u in range(end - begin):
                    count = counts[begin + u]
                    likely, mine, weights = psi[indices[begin + u]], proposal[u], cumulative[u]
                    # loops without sums are vectorised
                    for m in range(n_topics):
                        expected[m] -= count * mine[m]
                        # the token itself is not counted; max(), because rounding can give a negative number
                        others = max(expected[m] + (count - 1) * mine[m], 0.0) if sweep > 0 else 0.0
                        weights[m] = (alpha[m] + others) * likely[m]
                    total = 0.0
                    for m in range(n_topics):
                        total += weights[m]
                    impossible |= total == 0.0
                    broken |= not total < math.inf
                    for m in range(n_topics):
                        mine[m] = weights[m] / total if total > 0.0 else 0.0
                        expected[m] += count * mine[m]
            for u in range(end - begin):
                running = 0.0
                for m in range(n_topics):
                    running += proposal[u, m]
                    cumulative[u, m] = running
            if impossible or broken:
                out[j, c] = math.nan if broken else -math.inf
                continue
            for draw in range(n_draws):
                n_m[:] = 0.0
                log_weight = 0.0
                n = 0
                for u in range(end - begin):
                    likely = psi[indices[begin + u]]
                    for _ in range(counts[begin + u]):
                        m = _draw(state, cumulative[u])
                        ratio = (alpha[m] + n_m[m]) * likely[m] / (proposal[u, m] * (total_alpha + n))
                        log_weight += math.log(ratio)
                        n_m[m] += 1.0
                        n += 1
                log_weights[draw] = log_weight
            top = log_weights.max()
            total = 0.0
            for draw in range(n_draws):
                total += math.exp(log_weights[draw] - top)
            out[j, c] = math.log(weight) + top + math.log(total / n_draws)


@inner_kernel
def _resample(state, weights, ancestors):
    """Write the source of each of R resampled particles to ``ancestors``, by systematic resampling.

    Particle r gets about R weights[r] copies. The weights sum to 1.
    """
    n = len(weights)
    position = streams.uniform(state)
    source, reached = 0, weights[0]
    for r in range(n):
        while reached * n < r + position and source < n - 1:
            source += 1
            reached += weights[source]
        ancestors[r] = source


@inner_kernel
def _order(state, counts, begin, end, word):
    """Write the tokens of a document, as indices of its distinct words, to ``word`` in random order.

    In the original order, equal words would be consecutive, and the first topics not typical of the document.
    """
    n = 0
    for u in range(end - begin):
        for _ in range(counts[begin + u]):
            i = int(streams.uniform(state) * (n + 1))
            word[n] = word[i]
            word[i] = u
            n += 1


@inner_kernel
def _draw_topics(state, these, n, particles, moves, word, rows, psi, prior, weighed, repeats, work):
    """Redraw the topics of ``moves`` tokens before token n, then draw the topic of token n, in each particle.

    ``rows`` are the rows of ``psi`` for the document's distinct words. ``prior`` has the pseudo-counts of topics and
    their sum, and ``weighed`` the totals and block sums of :func:`weigh` for each word. ``repeats`` has b, and the
    number of tokens of each word before token n. The probability of token n in each particle is written to
    ``work[0]``.
    """
    # tuples are unpacked once, because taking an array out of a tuple needs an atomic reference count, which is slow
    topic, n_met, met, place_of, n_of, n_drawn = these
    (alpha, total_alpha), (totals, sums) = prior, weighed
    predicted, cumulative = work
    bursts, seen = repeats
    n_moves = min(moves, n)
    for r in range(particles):
        for move in range(n_moves + 1):
            i = n
            if move < n_moves:
                i = int(streams.uniform(state) * n)
                if topic[r, i] < 0:
                    continue
                place = place_of[r, topic[r, i]]
                n_of[r, place] -= 1.0
                if n_of[r, place] == 0.0:
                    n_met[r] -= 1
                    last = n_met[r]
                    m = met[r, last]
                    met[r, place], n_of[r, place], place_of[r, m] = m, n_of[r, last], place
            u, n_here, running = word[i], n_met[r], 0.0
            row = rows[u]
            for place in range(n_here):
                running += psi[row, met[r, place]] * n_of[r, place]
                cumulative[place] = running
            total = running + totals[u]
            if move == n_moves:
                predicted[r] = total / (total_alpha + n_drawn[r])
                if bursts < math.inf:
                    predicted[r] = (seen[u] + bursts * predicted[r]) / (n + bursts)
                    if streams.uniform(state) * (n + bursts) * predicted[r] < seen[u]:
                        topic[r, n] = -1
                        break
                n_drawn[r] += 1.0
            target = streams.uniform(state) * total
            if target < running:
                place = 0
                while cumulative[place] <= target:
                    place += 1
                m = met[r, place]
            else:
                rest, b = target - running, 0
                while b < sums.shape[1] - 1 and rest >= sums[u, b]:
                    rest -= sums[u, b]
                    b += 1
                m = _find_in_block(psi, row, alpha, b, rest)
                place = place_of[r, m]
                if place >= n_here or met[r, place] != m:
                    place = n_here
                    met[r, place], n_of[r, place], place_of[r, m] = m, 0.0, place
                    n_met[r] += 1
            n_of[r, place] += 1.0
            topic[r, i] = m


@inner_kernel
def _copy(these, source, others, r, n_tokens):
    """Copy particle ``source`` of ``these`` to particle r of ``others``."""
    others.topic[r, :n_tokens] = these.topic[source, :n_tokens]
    others.n_met[r], others.n_drawn[r] = these.n_met[source], these.n_drawn[source]
    for place in range(these.n_met[source]):
        m = these.met[source, place]
        others.met[r, place], others.n_of[r, place], others.place_of[r, m] = m, these.n_of[source, place], place


@kernel
def left_to_right(indptr, indices, counts, words, psi, asked, moves, first, last, out):
    """Write the log left-to-right estimates of p(w_j | psi, theta_j ~ Dirichlet(priors[k])) to ``out`` (J, C).

    The method is that of Wallach et al. 2009, section 4.3. Each particle stores topics of the tokens so far. Before the
    next token, it redraws ``moves`` of these topics, and predicts the token. The weighted mean of the predictions is a
    factor of the estimate. The published algorithm redraws every earlier topic, at a cost quadratic in N_j, and gives
    all particles equal weights, which causes a bias. Here, particles are weighted by their predictions, and resampled
    when the effective number of particles falls below half. exp(out) is then unbiased for any ``draws`` (particles) and
    ``moves``.

    The weight of a topic is psi (n_m + alpha_m). The sum of psi n_m is computed over the topics of each particle, and
    the sum of psi alpha_m once per word.

    If words repeat (b is finite), a particle also records which tokens are draws. Only draws have topics. Token n + 1
    is a draw with probability b p / (n_w + b p), where p is the probability of its word by topics and n_w the number of
    earlier tokens of the word.
    """
    priors, keys, chosen, draws, b = asked
    n_topics, most = priors.shape[1], max(1, math.ceil(draws[first:last].max()))
    n_blocks = (n_topics + BLOCK - 1) // BLOCK
    state = np.empty(2, np.uint64)
    cumulative = np.empty(n_topics)
    predicted, weights, ancestors = np.empty(most), np.empty(most), np.empty(most, np.int64)
    n_met, met = np.zeros((2, most), np.int64), np.empty((2, most, n_topics), np.int64)
    place_of, n_of = np.zeros((2, most, n_topics), np.int64), np.empty((2, most, n_topics))
    n_drawn = np.empty((2, most))
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        n_tokens = counts[begin:end].sum()
        word = np.empty(n_tokens, np.int64)
        topic = np.empty((2, most, n_tokens), np.int64)
        these = Particles(topic[0], n_met[0], met[0], place_of[0], n_of[0], n_drawn[0])
        others = Particles(topic[1], n_met[1], met[1], place_of[1], n_of[1], n_drawn[1])
        totals, sums, seen = np.empty(end - begin), np.empty((end - begin, n_blocks)), np.empty(end - begin)
        for c in range(chosen.shape[1]):
            alpha, key = priors[chosen[j, c]], keys[chosen[j, c]]
            particles, weight = start(state, draws[j, c], key, words, indices, counts, begin, end)
            log_p = math.log(weight)
            if particles == 0:
                out[j, c] = log_p
                continue
            _order(state, counts, begin, end, word)
            is_impossible, is_broken = False, False
            for u in range(end - begin):
                totals[u] = weigh(psi, indices[begin + u], alpha, sums[u])
                is_impossible |= totals[u] == 0.0
                is_broken |= not totals[u] < math.inf
            if is_impossible or is_broken:
                out[j, c] = math.nan if is_broken else -math.inf
                continue
            total_alpha = alpha.sum()
            these.n_met[:particles], these.n_drawn[:particles], seen[:] = 0, 0.0, 0.0
            weights[:particles] = 1.0 / particles
            for n in range(n_tokens):
                _draw_topics(
                    state, these, n, particles, moves, word, indices[begin:end], psi, (alpha, total_alpha),
                    (totals, sums), (b, seen), (predicted, cumulative),
                )  # fmt: skip
                seen[word[n]] += 1.0
                factor = 0.0
                for r in range(particles):
                    weights[r] *= predicted[r]
                    factor += weights[r]
                log_p += math.log(factor)
                squares = 0.0
                for r in range(particles):
                    weights[r] /= factor
                    squares += weights[r] * weights[r]
                if squares * particles < 2.0:
                    continue
                _resample(state, weights[:particles], ancestors)
                for r in range(particles):
                    _copy(these, ancestors[r], others, r, n + 1)
                these, others = others, these
                weights[:particles] = 1.0 / particles
            out[j, c] = log_p
