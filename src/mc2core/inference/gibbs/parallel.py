"""Parallel sweep over tokens at the document level, with psi drawn and theta summed out (docs/model.md, section 2).

Given tau, omega and the word distributions psi of the topics, documents are independent of each other:

    P(l_ji = m) prop. to (n_jm + omega tau_km) psi_m,w,     k = z_j     (counts without the token)

Magnusson et al. (2018) and Terenin, Magnusson and Jonsson (2020) use this sampler for LDA and the HDP. There are
infinitely many topics, and most entries of psi are nearly 0. A token therefore moves only among topics that are
*active* and whose entry psi_mw is *visible*. A token in any other topic keeps its topic.

* A topic is active if epsilon_m is above :func:`smallest_topic`. Unused topics are drawn from the remaining mass of
  epsilon and of every tau_k until less than this weight remains.
* An entry is visible if a Poisson number with mean lambda_m psi_mw is above 0. This number is the count of word w in
  the pseudo-observations of topic m. lambda_m is ``PSEUDO_OBSERVATIONS`` times the expected number of tokens of the
  topic given tau and z.

Both conditions depend only on the measures and on draws given the measures, never on l. The sweep therefore consists of
exact Gibbs steps. Measures and pseudo-observations are drawn again in every sweep.

Pseudo-observations make psi sparse without approximation. Given their counts, psi is a Dirichlet with these counts
added. If a word has neither tokens nor pseudo-observations of a topic, its entry of psi matters only through the sum of
all such entries, which is a Gamma. The rows of words contain the visible entries of psi as Gammas; the sum of each
topic's Gammas is stored separately.

**Threads.** Words, topics and documents are split into fixed blocks. Random streams are keyed by words, topics and
documents, and sums over blocks are added in order, so results do not depend on the number of threads.

**Spark.** Executors can move the tokens of shards of documents (:mod:`mc2core.inference.shards`). Each step sends the
measures and the topics of tokens to the executors, which return the new topics. The driver process stores the state and
makes all other draws. Therefore, shards, executors and faults do not change the chain, and a failed executor loses no
data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.simd import LANES, find_equal, prefetch, weigh_gathered
from mc2core.compute.special import MIN_POSITIVE
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.assignments import Assignments, document_start, topics_by_word
from mc2core.inference.gibbs.blocked import WORD_BLOCK, smallest_atom, split_remaining
from mc2core.inference.gibbs.tokens import DocumentRows, draw_other
from mc2core.inference.gibbs.weights import Concentrations, PartitionLaw, no_topic
from mc2core.inference.shards import Shard, ShardedCorpus, name_of

#: pseudo-observations per expected token: a word with one token of a topic is visible with probability 10 / 11
PSEUDO_OBSERVATIONS = 10.0
# smallest Dirichlet parameter of a topic's words at which all entries of psi are drawn, since most would be visible
_DENSE_PRIOR = 0.5
_TOPIC_BLOCK = 16  # topics per block of work of a thread
_TOKEN_BLOCK = 16_384  # approximate number of tokens per block of documents
_CERTAIN = 37.0  # mean from which a Poisson number is taken to be above 0: exp(-37) is below every uniform draw


def smallest_topic(n_tokens: int, eta: float) -> float:
    """Return the weight above which a topic is active.

    Nearly all topics in use have a larger weight. At most 10 sqrt(n_tokens) topics can be active.
    """
    return smallest_atom(0.1 / math.sqrt(n_tokens), eta)


# -- the visible entries of psi --------------------------------------------------------------------------------------
class WordRows(NamedTuple):
    """Visible entries of psi, one row per word. Rows are padded with zeros to whole SIMD vectors."""

    start: np.ndarray  # (V + 1,) int64: first entry of each row, a multiple of 16
    size: np.ndarray  # (V,) int64: number of topics in each row
    topic: np.ndarray  # (entries,) int32: topic of each entry
    x: np.ndarray  # (entries,) float32: Gamma(n_mw + s); divided by the topic's sum, it is psi_mw


class UsedWords(NamedTuple):
    """Entries of psi whose word has tokens of the topic (all entries if the prior is dense), grouped by word."""

    start: np.ndarray  # (V + 1,) int64: start of the slots reserved for each word
    size: np.ndarray  # (V,) int64: number of entries of each word
    topic: np.ndarray  # (slots,) int32: topic of each entry
    x: np.ndarray  # (slots,) float64: Gamma(n_mw + s)


class VisibleWords(NamedTuple):
    """Visible entries of psi whose word has pseudo-observations but no tokens of the topic, grouped by topic."""

    start: np.ndarray  # (M + 1,) int64: start of the slots reserved for each topic
    size: np.ndarray  # (M,) int64: number of entries of each topic
    word: np.ndarray  # (slots,) int32: word of each entry
    x: np.ndarray  # (slots,) float64: Gamma variate of each entry


@kernel
def _draw_used(key, first, last, start, topic, is_active, s, is_dense, used, sums, n_used):
    """Draw the entries of words first..last-1; add their sum and number per topic to ``sums`` and ``n_used`` (M,)."""
    room, size, topic_of, x_of = used
    stream, n_w = np.zeros(2, np.uint64), np.zeros(is_active.size, np.int64)
    for w in range(first, last):
        streams.seek(stream, key, w)
        begin = end = room[w]
        for i in range(start[w], start[w + 1]):
            m = topic[i]
            if is_active[m]:
                if n_w[m] == 0:
                    topic_of[end] = m
                    end += 1
                n_w[m] += 1
        if is_dense:
            for m in range(is_active.size):
                if is_active[m] and n_w[m] == 0:
                    topic_of[end] = m
                    end += 1
        for c in range(begin, end):
            m = topic_of[c]
            shape = n_w[m] + s
            n_w[m] = 0
            if shape < 1.0:
                x = math.exp(streams.log_gamma_variate(stream, shape))
            else:
                x = streams.gamma_variate(stream, shape)
            x_of[c] = x
            sums[m] += x
            n_used[m] += 1
        size[w] = end - begin


@kernel
def _list_words(used, place, word):
    """Write the words of topic m to ``word`` from index ``place[m]`` on, and advance ``place[m]``."""
    for w in range(used.size.size):
        for c in range(used.start[w], used.start[w] + used.size[w]):
            word[place[used.topic[c]]] = w
            place[used.topic[c]] += 1


@inner_kernel
def draw_visible(stream, n_pseudo, n_words, s, mass, taken, urn, place, visible):
    """Draw a topic's pseudo-observations of words without tokens by a Polya urn, and draw the entries of these words.

    ``taken`` (V,) bool marks the V - ``n_words`` words with tokens; visible words are marked too. ``urn`` is a work
    array with one cell per pseudo-observation. Entries are written to ``visible`` from ``place`` on, and their number
    is returned. The entries of visible and invisible words sum to ``mass``.
    """
    n = 0
    for r in range(n_pseudo):
        u = streams.uniform(stream) * (n_words * s + r)
        if u < r:
            urn[r] = urn[int(u)]
        elif u < r + n * s:
            urn[r] = min(int((u - r) / s), n - 1)
        elif n < n_words:
            w = int(streams.uniform(stream) * taken.size)
            while taken[w]:
                w = int(streams.uniform(stream) * taken.size)
            taken[w] = True
            visible.word[place + n], visible.x[place + n] = w, 0.0
            urn[r] = n
            n += 1
        else:
            urn[r] = n - 1
    for r in range(n_pseudo):
        visible.x[place + urn[r]] += 1.0
    total = 0.0
    if n < n_words:
        total = math.exp(streams.log_gamma_variate(stream, max((n_words - n) * s, MIN_POSITIVE)))
    for c in range(place, place + n):
        visible.x[c] = streams.gamma_variate(stream, visible.x[c] + s)
        total += visible.x[c]
    for c in range(place, place + n):
        visible.x[c] *= mass / total
    return n


@kernel
def _draw_visible_words(key, first, last, word_start, word, n_words, s, mass, n_pseudo, visible):
    """Draw the pseudo-observations of topics first..last-1 and the entries of the words that they make visible."""
    stream, taken = np.zeros(2, np.uint64), np.zeros(n_words, np.bool_)
    most = 0
    for m in range(first, last):
        most = max(most, n_pseudo[m])
    urn = np.empty(most, np.int64)
    for m in range(first, last):
        if n_pseudo[m] == 0:
            continue
        streams.seek(stream, key, m)
        begin, end = word_start[m], word_start[m + 1]
        for c in range(begin, end):
            taken[word[c]] = True
        place = visible.start[m]
        n = draw_visible(stream, n_pseudo[m], n_words - (end - begin), s, mass[m], taken, urn, place, visible)
        visible.size[m] = n
        for c in range(begin, end):
            taken[word[c]] = False
        for c in range(place, place + n):
            taken[visible.word[c]] = False


@kernel
def _count_visible(visible, n_w):
    for m in range(visible.size.size):
        for c in range(visible.start[m], visible.start[m] + visible.size[m]):
            n_w[visible.word[c]] += 1


@kernel
def _fill_visible(visible, rows):
    for m in range(visible.size.size):
        for c in range(visible.start[m], visible.start[m] + visible.size[m]):
            w = visible.word[c]
            place = rows.start[w] + rows.size[w]
            rows.topic[place], rows.x[place] = m, visible.x[c]
            rows.size[w] += 1


@kernel
def _fill_used(key, first, last, used, rate, rows):
    """Add the visible entries of ``used`` to the rows of words first..last-1, and fill the ends of the rows with 0."""
    row_start, row_size, row_topic, row_x = rows
    stream = np.zeros(2, np.uint64)
    for w in range(first, last):
        streams.seek(stream, key, w)
        begin, n = row_start[w], row_size[w]
        for c in range(used.start[w], used.start[w] + used.size[w]):
            m, x = used.topic[c], used.x[c]
            pseudo = rate[m] * x
            if pseudo > _CERTAIN or streams.uniform(stream) > math.exp(-pseudo):
                row_topic[begin + n], row_x[begin + n] = m, x
                n += 1
        for c in range(begin + n, row_start[w + 1]):
            row_topic[c], row_x[c] = 0, 0.0
        row_size[w] = n


def draw_rows(
    start: np.ndarray,
    topic: np.ndarray,
    is_active: np.ndarray,
    expected: np.ndarray,
    topic_word_prior: float,
    seed: int,
    iteration: int,
    pool: Executor | None,
) -> tuple[WordRows, np.ndarray]:
    """Draw the visible entries of psi for the active topics, given the topics of tokens.

    Parameters
    ----------
    start : (V + 1,) int64
        First token of each word in ``topic``.
    topic : (n_tokens,) int32
        Topics of the tokens, grouped by word.
    is_active : (M,) bool
        Whether each topic is active.
    expected : (M,) float64
        Expected number of tokens of each topic; it must not depend on ``topic``.

    Returns
    -------
    WordRows
        Visible entries of psi.
    (M,) float64
        Sum of all Gammas of each topic, visible or not; 1 for topics that are not active.
    """
    n_words, n_topics, s = len(start) - 1, len(is_active), float(topic_word_prior)
    is_dense = s >= _DENSE_PRIOR
    most = np.full(n_words, n_topics) if is_dense else np.minimum(np.diff(start), n_topics)
    room = np.concatenate([[0], np.cumsum(most)])
    used = UsedWords(room, np.zeros(n_words, np.int64), np.empty(room[-1], np.int32), np.empty(room[-1]))
    key = streams.key(seed, "psi", iteration)

    def draw(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        sums, n_used = np.zeros(n_topics), np.zeros(n_topics, np.int64)
        _draw_used(key, first, last, start, topic, is_active, s, is_dense, used, sums, n_used)
        return sums, n_used

    sums, n_used = (np.sum(parts, axis=0) for parts in zip(*in_blocks(pool, draw, n_words, WORD_BLOCK), strict=True))
    # sum of the entries of words without tokens of the topic, and number of pseudo-observations of these words
    rng, n_unused = streams.generator(seed, "phantoms", iteration), np.where(is_active, n_words - n_used, 0)
    mass = rng.standard_gamma(n_unused * s)
    mass[is_active & (n_used == 0)] = 1.0  # psi is normalised, so the sum of a topic without tokens is arbitrary
    sums = np.where(is_active, sums + mass, 1.0)
    rate = PSEUDO_OBSERVATIONS * (expected + n_words * s) / sums
    n_pseudo = np.where(n_unused > 0, rng.poisson(rate * mass), 0)
    word_start = np.concatenate([[0], np.cumsum(n_used)])
    word = np.empty(word_start[-1], np.int32)
    _list_words(used, word_start[:-1].copy(), word)
    room = np.concatenate([[0], np.cumsum(np.minimum(n_pseudo, n_unused))])
    visible = VisibleWords(room, np.zeros(n_topics, np.int64), np.empty(room[-1], np.int32), np.empty(room[-1]))
    visible_key = streams.key(seed, "phantoms", iteration)

    def draw_visible_words(first: int, last: int) -> None:
        _draw_visible_words(visible_key, first, last, word_start, word, n_words, s, mass, n_pseudo, visible)

    in_blocks(pool, draw_visible_words, n_topics, _TOPIC_BLOCK)
    size = np.zeros(n_words, np.int64)
    _count_visible(visible, size)
    room = np.concatenate([[0], np.cumsum(-(-(size + used.size) // LANES) * LANES)])
    rows = WordRows(room, np.zeros(n_words, np.int64), np.empty(room[-1], np.int32), np.empty(room[-1], np.float32))
    _fill_visible(visible, rows)
    used_key = streams.key(seed, "shown", iteration)

    def fill(first: int, last: int) -> None:
        _fill_used(used_key, first, last, used, rate, rows)

    in_blocks(pool, fill, n_words, WORD_BLOCK)
    return rows, sums


# -- tokens given psi and tau --------------------------------------------------------------------------------------
@numba.njit(inline="always")
def _find_place(m, row, n, row_topic):
    """Return the index of topic m in a row of n topics, or -1 if the entry is not visible and the token cannot move."""
    for place in range(0, n, LANES):
        lane = find_equal(row_topic, row + place, m)
        if lane < LANES:
            return place + lane if place + lane < n else -1  # padding of the last vector is not a topic
    return -1


@numba.njit(inline="always")
def _enter(first, last, tau, k, omega, inverse, topic, n_j, prior, scale):
    """Count the topics of a document's tokens first..last-1 and compute the factor ``scale`` of every topic."""
    for m in range(inverse.size):
        prior[m] = omega * tau[k, m]
        scale[m] = prior[m] * inverse[m]
    for i in range(first, last):
        m = topic[i]
        n_j[m] += 1
        scale[m] = (np.float32(n_j[m]) + prior[m]) * inverse[m]


@numba.njit(inline="always")
def _fetch_row(row, n, row_topic, row_x):
    """Prefetch a row of n entries, which is not expected to be in the cache."""
    for place in range(row, row + n, LANES):
        prefetch(row_topic, place)
        prefetch(row_x, place)


@numba.njit(inline="always")
def _weigh(row, n_blocks, row_topic, row_x, scale, p, block):
    """Compute the weights of the topics in the row of a word; return the sum of the weights."""
    total = 0.0
    for b in range(n_blocks):
        block[b] = weigh_gathered(row_x, row_topic, row, scale, p, b * LANES)
        total += block[b]
    return total


@numba.njit(inline="always")
def _join(m, place, x, inverse, n_j, prior, scale, p, block):
    """Add a token to topic m, entry ``place`` of its word's row; return the change of the topic's weight."""
    before = np.float64(p[place])
    n_j[m] += 1
    scale[m] = (np.float32(n_j[m]) + prior[m]) * inverse[m]
    p[place] = scale[m] * x
    gain = np.float64(p[place]) - before
    block[place // LANES] += gain
    return gain


@kernel
def _sweep_block(key, first, last, number, documents, rows, tau, omega, inverse, topic):
    """Sweep over documents first..last-1; document j uses the random stream ``number`` + j.

    Returns the first token whose weights have no finite sum, or -1.
    """
    indptr, word, counts, start = documents.indptr, documents.word, documents.counts, documents.start
    cluster = documents.cluster
    row_start, row_size, row_topic, row_x = rows
    n_topics, widest = inverse.size, 0
    for j in range(first, last):
        for cell in range(indptr[j], indptr[j + 1]):
            widest = max(widest, row_size[word[cell]])
    stream, n_j = np.zeros(2, np.uint64), np.zeros(n_topics, np.int32)
    prior, scale = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
    p, block = np.empty(widest + LANES, np.float32), np.empty(widest // LANES + 1)
    for j in range(first, last):
        streams.seek(stream, key, number + j)
        _enter(start[j], start[j + 1], tau, cluster[j], omega, inverse, topic, n_j, prior, scale)
        end = start[j]
        for cell in range(indptr[j], indptr[j + 1]):
            begin, end, w = end, end + counts[cell], word[cell]
            row = row_start[w]
            if cell + 1 < word.size:
                _fetch_row(row_start[word[cell + 1]], row_size[word[cell + 1]], row_topic, row_x)
            n_blocks = (row_size[w] + LANES - 1) // LANES
            total = _weigh(row, n_blocks, row_topic, row_x, scale, p, block)
            for i in range(begin, end):
                m = topic[i]
                place = _find_place(m, row, row_size[w], row_topic)
                if place < 0:
                    continue
                # does the token keep its topic?
                old = np.float64(p[place])
                scale_less = (np.float32(n_j[m] - 1) + prior[m]) * inverse[m]
                less = scale_less * row_x[row + place]
                others = total - old
                if others <= 0.0:  # no other topic has a positive weight
                    continue
                u = streams.uniform(stream) * (others + np.float64(less)) - np.float64(less)
                if u < 0.0:
                    continue
                if not others + np.float64(less) < np.inf:
                    return i
                # draw among the other topics; if rounding moves the draw past the end, the token keeps its topic
                chosen = draw_other(p, block, n_blocks, place, old, u)
                if chosen < 0 or chosen == place:
                    block[place // LANES] += old
                    continue
                # leave and join
                n_j[m] -= 1
                scale[m], p[place] = scale_less, less
                block[place // LANES] += np.float64(less)
                m = row_topic[row + chosen]
                gain = _join(m, chosen, row_x[row + chosen], inverse, n_j, prior, scale, p, block)
                total = others + np.float64(less) + gain
                topic[i] = m
        for i in range(start[j], start[j + 1]):
            n_j[topic[i]] = 0
    return -1


class TokenSweep(NamedTuple):
    """Measures and random key of a sweep: its arguments that are the same for all shards of documents."""

    key: np.uint64
    rows: WordRows
    inverse: np.ndarray  # (M,) float32: reciprocal of the sum of a topic's Gammas
    tau: np.ndarray  # (K, M + 1) float64: topic proportions of the clusters
    omega: float


def sweep_documents(
    sweep: TokenSweep,
    corpus: Corpus,
    start: np.ndarray,
    cluster: np.ndarray,
    topic: np.ndarray,
    number: int,
    pool: Executor | None,
) -> int:
    """Move the tokens of consecutive documents, in place.

    Parameters
    ----------
    sweep : TokenSweep
    corpus : Corpus
        Corpus of only these documents.
    start : (documents + 1,) int64
        First token of each document.
    cluster : (documents,) int32
        Cluster of each document.
    topic : (n_tokens,) int32
        Topic of each token; updated in place.
    number : int
        Index of the first of these documents in the whole corpus.
    pool : Executor or None
        Threads; they do not change the result.

    Returns
    -------
    int
        The first token whose weights have no finite sum; -1 if there is none.
    """
    key, rows, inverse, tau, omega = sweep
    documents = DocumentRows.from_counts(corpus.content, start, cluster)

    def move(first: int, last: int) -> int:
        return _sweep_block(key, first, last, number, documents, rows, tau, omega, inverse, topic)

    a_block = max(1, _TOKEN_BLOCK * corpus.n_documents // max(1, len(topic)))
    failed = in_blocks(pool, move, corpus.n_documents, a_block)
    return min((token for token in failed if token >= 0), default=-1)


def instantiate(
    assignments: Assignments, tau: np.ndarray, concentrations: Concentrations, smallest: float, rng: np.random.Generator
) -> tuple[np.ndarray, float, np.ndarray]:
    """Draw new topics from the remaining mass of epsilon and of each tau_k, by their priors.

    Given the state, the remaining mass has its prior distribution: GEM(eta) for epsilon, and for each tau_k a DP with
    concentration v around epsilon. New topics with a weight of at most ``smallest`` are returned to the remaining mass.

    Returns
    -------
    epsilon : (M',) float64
        Weights of the topics in use and of the new topics.
    remaining : float
        Weight of all other topics.
    tau : (K, M' + 1) float64
        Proportions of these topics in each cluster; the last column is the remaining mass.
    """
    law = PartitionLaw.from_concentration(concentrations.topic)
    new, remaining = split_remaining(assignments.remaining, law, assignments.n_topics, smallest, rng)
    remaining += float(new[new <= smallest].sum())
    new = new[new > smallest]
    if len(new) == 0:
        return assignments.topic_weights, remaining, tau
    shapes = np.tile(concentrations.table * np.append(new, remaining), (len(tau), 1))
    broken = streams.dirichlet(shapes, rng) * tau[:, -1:]
    return np.append(assignments.topic_weights, new), remaining, np.hstack([tau[:, :-1], broken])


def sweep_documents_apart(
    assignments: Assignments,
    corpus: Corpus,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    topic_word_prior: float,
    seed: int,
    iteration: int,
    pool: Executor | None,
    sharded: ShardedCorpus | None = None,
) -> np.ndarray:
    """Run one sweep over all tokens, in place, and return tau of the topics in use, (K, M + 1) float64.

    Parameters are as in :func:`.tokens.sweep_document_topics`. If ``sharded`` is given, Spark executors move the
    tokens. The result does not depend on executors or threads.
    """
    if corpus.n_tokens == 0:
        return tau
    smallest = smallest_topic(corpus.n_tokens, concentrations.topic)
    rng = streams.generator(seed, "new topics", iteration)
    epsilon, remaining, tau = instantiate(assignments, tau, concentrations, smallest, rng)
    lengths = np.diff(assignments.document_start)
    in_cluster = np.bincount(assignments.cluster, weights=lengths, minlength=len(tau))
    expected = in_cluster @ tau[:, :-1]
    topic = assignments.topic
    by_word = topics_by_word(corpus.content, topic, pool)
    rows, sums = draw_rows(*by_word, epsilon > smallest, expected, topic_word_prior, seed, iteration, pool)
    key, inverse = streams.key(seed, "topics", iteration), (1.0 / sums).astype(np.float32)
    sweep, start = TokenSweep(key, rows, inverse, tau, float(omega)), assignments.document_start
    if sharded is None:
        failed = sweep_documents(sweep, corpus, start, assignments.cluster, topic, 0, pool)
    else:
        failed = sweep_on_shards(sharded, sweep, start, assignments.cluster, topic)
    if failed >= 0:
        raise no_topic(assignments.document_of(failed), concentrations, topic_word_prior)
    used = np.zeros(len(epsilon), bool)
    used[topic] = True
    assignments.topic_weights, assignments.remaining = epsilon, remaining
    assignments.count()
    assignments.compact()
    left = tau[:, -1] + tau[:, :-1][:, ~used].sum(axis=1)
    return np.column_stack([tau[:, :-1][:, used], left])


# -- on executors of Spark -----------------------------------------------------------------------------------------
def sweep_on_shards(
    sharded: ShardedCorpus, sweep: TokenSweep, start: np.ndarray, cluster: np.ndarray, topic: np.ndarray
) -> int:
    """Run :func:`sweep_documents` on the whole corpus, shard by shard."""
    key, rows, inverse, tau, omega = sweep
    arrays: dict[str, Any] = {"key": key, "inverse": inverse, "tau": tau, "omega": omega}
    arrays |= {f"rows.{name}": array for name, array in rows._asdict().items()}
    bounds = sharded.shards.bounds
    tokens = [slice(*start[bounds[p : p + 2]]) for p in range(len(bounds) - 1)]
    # the smallest integer type, because the topic of every token is sent and returned
    short = np.min_scalar_type(max(len(inverse) - 1, 0))
    for p, these in enumerate(tokens):
        arrays |= {f"topic.{name_of(p)}": topic[these].astype(short)}
        arrays |= {f"cluster.{name_of(p)}": cluster[bounds[p] : bounds[p + 1]]}
    failed = -1
    for these, (token, moved) in zip(tokens, sharded.run(arrays, _sweep_shard), strict=True):
        topic[these] = moved
        if failed < 0 <= token:
            failed = these.start + token
    return int(failed)


def _sweep_shard(shard: Shard, step: Mapping[str, np.ndarray]) -> tuple[int, np.ndarray]:
    """Sweep one shard as a Spark task; return the first token that failed (-1 if none) and the topics of all tokens."""
    start = document_start(shard.corpus)
    short, cluster = (step[f"{what}.{name_of(shard.number)}"] for what in ("topic", "cluster"))
    rows = WordRows(*(step[f"rows.{name}"] for name in WordRows._fields))
    sweep = TokenSweep(np.uint64(step["key"]), rows, step["inverse"], step["tau"], float(step["omega"]))
    topic = short.astype(np.int32)
    failed = sweep_documents(sweep, shard.corpus, start, cluster, topic, shard.first, None)
    return failed, topic.astype(short.dtype)
