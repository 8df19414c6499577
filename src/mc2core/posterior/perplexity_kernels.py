"""Compiled estimators of a document's likelihood, for blocks of documents.

Plain twins in NumPy, fed from the same streams: tests/mc2core/posterior/test_perplexity.py. A document's stream starts
from its own words, so its value depends neither on its neighbours nor on how documents are shared among threads.

All take one block of documents as CSR over its distinct words: ``indptr``, ``indices`` into the U rows of ``psi``,
``counts``; ``psi`` (U, M) float64 is the probability of each word in each topic; documents first..last are done.
"""

from __future__ import annotations

import math

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel

_32 = np.uint64(32)


@kernel
def seek_document(state, key, words, indices, counts, begin, end):
    """Set ``state`` to the start of a document's stream, named by a hash of its words and their counts.

    The document is ``words[indices[begin:end]]`` (numbers in the corpus), ``counts[begin:end]``.
    """
    item = np.uint64(0)
    for position in range(begin, end):
        word = np.uint64(words[indices[position]])
        item = streams.mix(item ^ (word + (np.uint64(counts[position]) << _32)))
    streams.seek(state, key, item)


@kernel
def _draw(state, cumulative):
    """Index drawn with the weights whose running sums are given; one of weight 0 is never drawn."""
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
    """Add to ``out`` (entries,) tau[k, l] psi[w, l] of each entry's likeliest topic l, given its document's cluster k.

    Equivalent to ``np.max(tau[cluster[j]] * psi[w])`` for every entry (j, w): ICML14, A.4.
    ``tau`` (K, M) float64; ``cluster`` (J,) ints. NaN where the weights of a token's topics have no finite sum.
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
def importance(indptr, indices, counts, words, psi, alpha, draws, passes, key, first, last, out):
    """ln of the importance-sampling estimate of p(w_j | psi, theta_j ~ Dirichlet(alpha)) into ``out`` (J,).

    Wallach et al. 2009, section 4.1, with their iterated pseudo-counts: the topics of all tokens are drawn
    independently from q(m | w) prop. to psi_mw (alpha_m + expected tokens of m among the other tokens), and weighed by
    p(w, z) / q(z) with theta_j integrated out. exp(out) is unbiased for any number of ``draws`` and ``passes``, but low
    more often than not: where p(z | w) has several modes, as under small alpha, q keeps to one of them, and the mass of
    the others is in rare draws of large weight. :func:`left_to_right` does without one q for all tokens.
    ``words`` (U,) are the words' numbers in the corpus. NaN where the weights of a token's topics have no finite sum.
    """
    n_topics = len(alpha)
    total_alpha = alpha.sum()
    state = np.empty(2, np.uint64)
    expected, n_m = np.empty(n_topics), np.empty(n_topics)
    log_weights = np.empty(draws)
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        if begin == end:
            out[j] = 0.0
            continue
        seek_document(state, key, words, indices, counts, begin, end)
        proposal = np.zeros((end - begin, n_topics))
        cumulative = np.empty((end - begin, n_topics))
        expected[:] = 0.0
        impossible, broken = False, False
        for sweep in range(passes + 1):
            for u in range(end - begin):
                count = counts[begin + u]
                likely, mine, weights = psi[indices[begin + u]], proposal[u], cumulative[u]
                # loops without sums are vector code
                for m in range(n_topics):
                    expected[m] -= count * mine[m]
                    # the token itself does not count; rounding must not make a mass negative
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
            out[j] = math.nan if broken else -math.inf
            continue
        for draw in range(draws):
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
        for draw in range(draws):
            total += math.exp(log_weights[draw] - top)
        out[j] = top + math.log(total / draws)


@kernel
def _resample(state, weights, ancestors):
    """Systematic resampling: particle r is followed by about R weights[r] copies; weights sum to 1."""
    n = len(weights)
    position = streams.uniform(state)
    source, reached = 0, weights[0]
    for r in range(n):
        while reached * n < r + position and source < n - 1:
            source += 1
            reached += weights[source]
        ancestors[r] = source


@kernel
def left_to_right(indptr, indices, counts, words, psi, alpha, particles, moves, key, first, last, out):
    """ln of the left-to-right estimate of p(w_j | psi, theta_j ~ Dirichlet(alpha)) into ``out`` (J,).

    Wallach et al. 2009, section 4.3. Particles hold the topics of the tokens so far. For the next token, each redraws
    ``moves`` of its earlier topics, given all others, and predicts the token; the predictions' mean is a factor of the
    estimate. The printed algorithm redraws every earlier topic (a cost quadratic in N_j) and weighs particles alike,
    which leaves a bias; here particles keep the weights that their predictions earn and are resampled when the
    effective number of them falls below half. exp(out) is then unbiased for any ``particles`` and ``moves``. NaN where
    the weights of a token's topics have no finite sum.
    """
    n_topics = len(alpha)
    total_alpha = alpha.sum()
    state = np.empty(2, np.uint64)
    cumulative = np.empty(n_topics)
    predicted, weights = np.empty(particles), np.empty(particles)
    ancestors = np.empty(particles, np.int64)
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        seek_document(state, key, words, indices, counts, begin, end)
        n_tokens = 0
        for position in range(begin, end):
            n_tokens += counts[position]
        # in random order: with equal words in a row, the first topics would be far from the document's
        tokens = np.empty(n_tokens, np.int64)
        n = 0
        for position in range(begin, end):
            for _ in range(counts[position]):
                i = int(streams.uniform(state) * (n + 1))
                tokens[n] = tokens[i]
                tokens[i] = indices[position]
                n += 1
        topic = np.empty((particles, n_tokens), np.int32)
        n_rm = np.zeros((particles, n_topics))
        other_topic, other_n_rm = np.empty_like(topic), np.empty_like(n_rm)
        weights[:] = 1.0 / particles
        log_p = 0.0
        for n in range(n_tokens):
            for r in range(particles):
                for move in range(min(moves, n) + 1):
                    # the last of the moves is the prediction and the draw of the new token
                    i = n
                    if move < min(moves, n):
                        i = int(streams.uniform(state) * n)
                        n_rm[r, topic[r, i]] -= 1.0
                    likely = psi[tokens[i]]
                    running = 0.0
                    for m in range(n_topics):
                        running += likely[m] * (n_rm[r, m] + alpha[m])
                        cumulative[m] = running
                    if i == n:
                        predicted[r] = running / (total_alpha + n)
                    topic[r, i] = _draw(state, cumulative)
                    n_rm[r, topic[r, i]] += 1.0
            factor = 0.0
            for r in range(particles):
                weights[r] *= predicted[r]
                factor += weights[r]
            if not 0.0 < factor < math.inf:
                log_p = -math.inf if factor == 0.0 else math.nan
                break
            log_p += math.log(factor)
            squares = 0.0
            for r in range(particles):
                weights[r] /= factor
                squares += weights[r] * weights[r]
            if squares * particles < 2.0:
                continue
            _resample(state, weights, ancestors)
            for r in range(particles):
                for i in range(n + 1):
                    other_topic[r, i] = topic[ancestors[r], i]
                for m in range(n_topics):
                    other_n_rm[r, m] = n_rm[ancestors[r], m]
            topic, other_topic = other_topic, topic
            n_rm, other_n_rm = other_n_rm, n_rm
            weights[:] = 1.0 / particles
        out[j] = log_p
