"""Collapsed sweep over tokens in npTOT, where topics also emit the document's context (docs/model.md, section 2).

    P(l_ji = m)         prop. to (n_jm + v eps_m) (n_mw + s) / (n_m + V s) f_m(x_j)     (all without the token)
    P(l_ji = new topic) prop. to v eps_new / V f_0(x_j)

f_m is the posterior predictive density of topic m's Normal-Gamma model, a Student t. If x_j is missing, f_m is 1.

**Order.** Tokens are visited document by document, not word by word as in :mod:`mc2core.inference.gibbs.tokens`. All
tokens of a document have the same x_j. While a document is visited, f_m therefore depends only on the number of its
tokens in topic m. The factors f_m of all topics are computed once per document. For topics whose counts change, the
factors are tabulated for 16 counts at a time. This order needs a (V, M) table of word counts.

**Range.** Factors are stored relative to the largest factor. A factor is set to 0 if its topic would have a probability
below 1e-9 for every token of the document, because arithmetic with subnormal products is very slow. If moves reduce the
sum of the weights so far that such factors would matter, all factors are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.simd import LANES, weigh_counts
from mc2core.compute.special import exp, log
from mc2core.corpus import Corpus
from mc2core.families import Family
from mc2core.families.kernels import LAST_DIGIT
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.assignments import Assignments, topics_of_words
from mc2core.inference.gibbs.tokens import (
    DONE,
    FAILED,
    FULL,
    TOKEN,
    TOPICS,
    VISIT,
    DocumentRows,
    TopicConstants,
    break_off,
    draw_other,
    extended,
    run_sweep,
    weigh,
)
from mc2core.inference.gibbs.weights import Concentrations

# smallest relative weight of a topic, and largest sum of weights (the largest float32 is near 1e38)
_NEGLIGIBLE, _MAX_SUM = 1e-9, 1e20
# number of consecutive counts for which the scale of a topic is tabulated at once
_STEPS = 16


@record
class TimedTopics(NamedTuple):
    """Counts and weights of the topics, one column per topic; columns from the number of topics on are spare."""

    n_km: np.ndarray  # (J, columns) int32: tokens of each document (here also a cluster) in each topic
    n_wm: np.ndarray  # (V, columns) int32: tokens of each word in each topic
    n_m: np.ndarray  # (columns,) int64: tokens of each topic
    eps: np.ndarray  # (columns,) float64: weight epsilon_m of each topic
    remaining: np.ndarray  # (1,) float64: eps_new, the weight of all topics not in use
    # (4, columns) float64: T(x) summed over the topic's tokens, without the tokens of the current document
    sums: np.ndarray


@record
class TimedWeights(NamedTuple):
    """Work arrays for the weights of topics, for the current document and word; one column per topic."""

    s: np.ndarray  # (columns,) float32: Dirichlet parameter of a topic's words
    prior: np.ndarray  # (columns,) float32: v eps_m
    scale: np.ndarray  # (columns,) float32: f_m(x_j) / (n_m + V s), relative to the largest f
    steps: np.ndarray  # (columns, 16) float32: scale if first[m], first[m] + 1, ... tokens of the document are in m
    first: np.ndarray  # (columns,) int64: smallest count in each row of ``steps``
    h: np.ndarray  # (columns,) float32: (n_mw + s) scale
    p: np.ndarray  # (columns,) float32: weights of the topics
    block: np.ndarray  # (columns / 16,) float64: sum of the weights of each block of 16 topics
    log_factor: np.ndarray  # (columns,) float64: ln f_m(x_j)
    relative: np.ndarray  # (2,) float64: largest log factor, and the relative factor below which a factor is set to 0


class TokenTimes:
    """The only context in ``contexts``, a number per document, which every token of the document emits.

    Attributes
    ----------
    family : Family
        Normal-Gamma family of the context.
    values : (J,) float64
        Value of each document; NaN if missing.

    Raises
    ------
    ValueError
        If the corpus does not have the context, or if it is not one number per document.
    """

    def __init__(self, corpus: Corpus, contexts: Mapping[str, Family]) -> None:
        stacked = StackedContexts(corpus, contexts)
        [name], [self.family] = stacked.names, stacked.families
        self.values = np.array(corpus.contexts[name], dtype=np.float64)
        self._statistics, self._log_base = stacked.statistics, stacked.log_base

    def sums(self, assignments: Assignments) -> np.ndarray:
        """Return the (4, M) sums of the sufficient statistics T(x) over the tokens of each topic."""
        return np.ascontiguousarray(self._statistics.T @ assignments.n_km)

    def log_marginal(self, assignments: Assignments) -> float:
        """Return ln p(x of all tokens | l), base measure included, with the parameters of topics integrated out."""
        natural = self.family.prior(4) + self.sums(assignments).T
        log_base = self._log_base @ np.diff(assignments.document_start)
        return float(self.family.log_marginal(natural).sum() + log_base)


@numba.njit(inline="always")
def _log_student(x, sum_x, count, half_count, half_square, prior):
    """Return ln of the predictive density of x, plus ln(pi) / 2, given the sums T(x) of earlier observations."""
    kappa, a = prior[1] + count, prior[2] + half_count
    mu = (prior[0] + sum_x) / kappa
    square = prior[3] + half_square
    b = max(square - 0.5 * kappa * mu * mu, LAST_DIGIT * square)
    spread = 2.0 * b * (kappa + 1.0) / kappa
    distance = x - mu
    # G(a + 1/2) / G(a) by its asymptotic series from 8 on; below, the argument is shifted by 8
    is_small = a < 8.0
    top = a * (a + 1.0) * (a + 2.0) * (a + 3.0) * (a + 4.0) * (a + 5.0) * (a + 6.0) * (a + 7.0)
    half = a + 0.5
    below = half * (a + 1.5) * (a + 2.5) * (a + 3.5) * (a + 4.5) * (a + 5.5) * (a + 6.5) * (a + 7.5)
    y = a + 8.0 if is_small else a
    shift = top / below if is_small else 1.0
    r = 1.0 / y
    z = r * r
    series = -r * (1.0 / 8.0 - z * (1.0 / 192.0 - z * (1.0 / 640.0 - z * (17.0 / 14336.0))))
    return series + log(shift * math.sqrt(y / spread)) - half * log(1.0 + distance * distance / spread)


@inner_kernel
def log_student(x, n_km, j, n_topics, sums, prior, out):
    """Set ``out[m]`` to the log predictive of x in topic m, given ``sums`` and its tokens of document j, all at x."""
    half_square = 0.5 * x * x
    for m in range(n_topics):
        n = np.float64(n_km[j, m])
        out[m] = _log_student(
            x, sums[0, m] + n * x, sums[1, m] + n, sums[2, m] + 0.5 * n, sums[3, m] + n * half_square, prior
        )


@inner_kernel
def _move_document(x, j, sign, n_topics, n_km, sums):
    """Add (sign 1) or subtract (sign -1) the statistics of document j; sums of an empty topic are set to exactly 0."""
    if math.isnan(x):
        return
    for m in range(n_topics):
        n = np.float64(sign * n_km[j, m])
        is_left = sums[1, m] + n > 0.0
        sums[0, m] = sums[0, m] + n * x if is_left else 0.0
        sums[1, m] += n
        sums[2, m] += 0.5 * n
        sums[3, m] = sums[3, m] + n * 0.5 * x * x if is_left else 0.0


@inner_kernel
def _scale_all(x, j, n_topics, topics, weights, constants, time_prior):
    """Compute ``scale`` of all topics for document j.

    Returns f_0 relative to the largest factor, and a lower bound of the sum of weights.
    """
    n_km, n_m, scale, log_factor = topics.n_km, topics.n_m, weights.scale, weights.log_factor
    weights.first[:] = -_STEPS  # no step is computed
    largest = new = 0.0
    if math.isnan(x):
        log_factor[:] = 0.0
    else:
        largest = new = _log_student(x, 0.0, 0.0, 0.0, 0.0, time_prior)
        log_student(x, n_km, j, n_topics, topics.sums, time_prior, log_factor)
        for m in range(n_topics):
            largest = max(largest, log_factor[m])
    new = exp(new - largest)
    # bounds of the weight of a topic: none, or all, of the document's tokens and of the word's tokens are in the topic
    most, least = constants.v, constants.v * topics.remaining[0] / topics.n_wm.shape[0] * new
    for m in range(n_topics):
        factor = exp(log_factor[m] - largest)
        scale[m] = np.float32(factor / (n_m[m] + constants.vs))
        least = max(least, np.float64(weights.prior[m]) * weights.s[m] * scale[m])
        most += n_km[j, m]
    negligible = _NEGLIGIBLE * least / (most * (n_topics + 1))
    for m in range(n_topics):
        if exp(log_factor[m] - largest) < negligible:
            scale[m] = np.float32(0.0)
    weights.relative[0], weights.relative[1] = largest, negligible
    return new, least


@inner_kernel
def _compute_steps(m, x, j, topics, weights, constants, time_prior):
    """Tabulate ``scale`` of topic m for numbers of the document's tokens around the current number."""
    steps, sums, prior, half_square = weights.steps, topics.sums, time_prior, 0.5 * x * x
    largest, negligible = weights.relative[0], weights.relative[1]
    now = topics.n_km[j, m]
    first = max(0, now - _STEPS // 2)
    weights.first[m] = first
    others = topics.n_m[m] - now + constants.vs
    sum_x, count, half_count, sum_squares = sums[0, m], sums[1, m], sums[2, m], sums[3, m]
    for step in range(_STEPS):
        n = np.float64(first + step)
        factor = 1.0
        if not math.isnan(x):
            log_factor = _log_student(
                x, sum_x + n * x, count + n, half_count + 0.5 * n, sum_squares + n * half_square, prior
            )
            factor = exp(log_factor - largest)
        steps[m, step] = np.float32(factor / (others + n) if factor >= negligible else 0.0)


@numba.njit(inline="always")
def _weigh_word(n_wm, w, n_km, j, n_blocks, weights, new):
    """Compute the weights of all topics for the tokens of one word; return their sum plus ``new``, for new topics."""
    s, scale, prior, h, p, block = weights.s, weights.scale, weights.prior, weights.h, weights.p, weights.block
    capacity = prior.size
    for b in range(n_blocks):
        weigh_counts(n_wm, w * capacity, s, scale, h, b * LANES)
    return weigh(n_km, j * capacity, j * capacity, prior, h, p, block, n_blocks, new)


@numba.njit(inline="always")
def _count(m, j, w, sign, n_km, n_wm, n_m):
    """Add a token to the counts of topic m (sign 1) or subtract it (sign -1)."""
    n_km[j, m] += sign
    n_wm[w, m] += sign
    n_m[m] += sign


@numba.njit(inline="always")
def _weigh_topic(m, j, w, n_km, n_wm, s, prior, scale, p, block):
    """Compute the weight of topic m from its counts and its scale; return the change of the weight."""
    before = np.float64(p[m])
    p[m] = (np.float32(n_km[j, m]) + prior[m]) * ((np.float32(n_wm[w, m]) + s[m]) * scale[m])
    gain = np.float64(p[m]) - before
    block[m // LANES] += gain
    return gain


@kernel
def _sweep_timed(key, stream, position, documents, time, topic, topics, constants, time_prior, weights):
    """Sweep document by document from ``position`` on; return DONE, FULL or FAILED for :func:`.tokens.run_sweep`.

    ``time`` (J,) float64 contains x_j, NaN if missing. ``time_prior`` (4,) float64 contains the natural parameters of
    the prior.
    """
    n_topics = position[TOPICS]
    indptr, word, counts, start = documents.indptr, documents.word, documents.counts, documents.start
    n_km, n_wm, n_m, remaining, sums = topics.n_km, topics.n_wm, topics.n_m, topics.remaining, topics.sums
    s, prior, scale, steps, first = weights.s, weights.prior, weights.scale, weights.steps, weights.first
    p, block, v, n_words = weights.p, weights.block, constants.v, n_wm.shape[0]
    for j in range(position[VISIT], time.size):
        resume, x, end = position[TOKEN], time[j], start[j]
        if resume <= end:
            streams.seek(stream, key, j)
        _move_document(x, j, -1, n_topics, n_km, sums)
        new_factor, least = _scale_all(x, j, n_topics, topics, weights, constants, time_prior)
        for cell in range(indptr[j], indptr[j + 1]):
            begin, end = max(end, resume), end + counts[cell]
            if end <= begin:
                continue
            w, n_blocks = word[cell], (n_topics + LANES - 1) // LANES
            new = v * remaining[0] / n_words * new_factor
            total = _weigh_word(n_wm, w, n_km, j, n_blocks, weights, new)
            for i in range(begin, end):
                # leave
                m, rewind = topic[i], stream[0]
                _count(m, j, w, -1, n_km, n_wm, n_m)
                if not 0 <= n_km[j, m] - first[m] < _STEPS:
                    _compute_steps(m, x, j, topics, weights, constants, time_prior)
                scale[m] = steps[m, n_km[j, m] - first[m]]
                total += _weigh_topic(m, j, w, n_km, n_wm, s, prior, scale, p, block)
                if not 0.1 * least < total < _MAX_SUM:
                    new_factor, least = _scale_all(x, j, n_topics, topics, weights, constants, time_prior)
                    new = v * remaining[0] / n_words * new_factor
                    total = _weigh_word(n_wm, w, n_km, j, n_blocks, weights, new)
                if not 0.0 < total < np.inf:
                    position[TOKEN] = i
                    return FAILED
                # does the token keep its topic?
                less = np.float64(p[m])
                chosen, is_full = m, False
                u = streams.uniform(stream) * total - less
                if not u < 0.0:
                    chosen = draw_other(p, block, n_blocks, m, less, u)
                    block[m // LANES] += less
                    if chosen < 0 and n_topics < n_m.size:
                        chosen = n_topics
                        break_off(chosen, stream, topics.eps, remaining, constants.eta)
                        prior[chosen] = v * topics.eps[chosen]
                        n_topics += 1
                        if n_topics > n_blocks * LANES:  # the first topic of a block
                            block[n_blocks] = 0.0
                            n_blocks += 1
                        total -= new
                        new = v * remaining[0] / n_words * new_factor
                        total += new
                    elif chosen < 0:
                        chosen, is_full = m, True
                # join
                _count(chosen, j, w, 1, n_km, n_wm, n_m)
                if not 0 <= n_km[j, chosen] - first[chosen] < _STEPS:
                    _compute_steps(chosen, x, j, topics, weights, constants, time_prior)
                scale[chosen] = steps[chosen, n_km[j, chosen] - first[chosen]]
                topic[i] = chosen
                total += _weigh_topic(chosen, j, w, n_km, n_wm, s, prior, scale, p, block)
                if is_full:
                    stream[0] = rewind
                    _move_document(x, j, 1, n_topics, n_km, sums)
                    position[VISIT], position[TOKEN], position[TOPICS] = j, i, n_topics
                    return FULL
        _move_document(x, j, 1, n_topics, n_km, sums)
        position[TOKEN] = 0
    position[TOPICS] = n_topics
    return DONE


def _new_weights(topics: TimedTopics, s: float, v: float) -> TimedWeights:
    columns = len(topics.n_m)
    prior = (v * topics.eps).astype(np.float32)
    scale, h, p = np.zeros((3, columns), np.float32)
    steps, first = np.zeros((columns, _STEPS), np.float32), np.zeros(columns, np.int64)
    s_of, block = np.full(columns, s, np.float32), np.zeros(columns // LANES)
    return TimedWeights(s_of, prior, scale, steps, first, h, p, block, np.zeros(columns), np.zeros(2))


def _add_columns(topics: TimedTopics) -> TimedTopics:
    longer = {
        name: extended(array, array.shape[-1] + LANES)
        for name, array in topics._asdict().items()
        if name != "remaining"
    }
    return topics._replace(**longer)


def sweep_timed_topics(
    assignments: Assignments,
    corpus: Corpus,
    times: TokenTimes,
    concentrations: Concentrations,
    topic_word_prior: float,
    key: np.uint64,
) -> None:
    """Run one collapsed sweep over all tokens, in place, and drop empty topics. Each document is a cluster.

    ``key`` (:func:`mc2core.compute.streams.key`) is the random key of the sweep; each document has its own stream. The
    sums of times are first recomputed from the assignments, so that rounding errors do not accumulate over sweeps.
    """
    content, columns = corpus.content, LANES * (assignments.n_topics // LANES + 1)
    documents = DocumentRows.from_counts(content, assignments.document_start, assignments.cluster)
    n_km = extended(assignments.n_km, columns)
    n_wm = topics_of_words(content, assignments.topic, columns)
    eps, remaining = extended(assignments.topic_weights, columns), np.array([assignments.remaining])
    sums, v = extended(times.sums(assignments), columns), float(concentrations.table)
    topics = TimedTopics(n_km, n_wm, n_km.sum(axis=0, dtype=np.int64), eps, remaining, sums)
    constants = TopicConstants(
        math.inf, v, float(concentrations.topic), float(topic_word_prior), topic_word_prior * corpus.n_words
    )
    time_prior, topic = times.family.prior(4), assignments.topic

    def sweep(topics: TimedTopics, position: np.ndarray, stream: np.ndarray) -> int:
        weights = _new_weights(topics, topic_word_prior, v)
        return _sweep_timed(
            key, stream, position, documents, times.values, topic, topics, constants, time_prior, weights
        )

    topics, n_topics = run_sweep(sweep, topics, _add_columns, assignments, concentrations, topic_word_prior)
    assignments.topic_weights, assignments.remaining = topics.eps[:n_topics].copy(), float(topics.remaining[0])
    assignments.n_km = np.ascontiguousarray(topics.n_km[:, :n_topics])
    assignments.compact()
