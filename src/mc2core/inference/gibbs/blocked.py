"""Blocked Gibbs move: all (z_j, l_j) are drawn at once, given random measures drawn from their full conditionals.

First, the measures that the collapsed sampler integrates out are drawn given z, l and epsilon. They are G_0 (weights
epsilon, topics psi), pi, and tau_k and phi_k of each cluster. Given the measures, documents are independent, and z_j
is drawn with the topics of the document's tokens summed out:

    P(z_j = k | measures) prop. to pi_k f(x_j | phi_k) prod_i sum_m tau_km psi_m,w_ji,      l_ji ~ tau_{z_j} psi_.,w_ji.

**New atoms, exactly and without slice variables.** G_0 has infinitely many atoms. Unused atoms are drawn from the mass
``remaining`` by stick-breaking, GEM(eta), until less than ``SMALLEST_TOPIC`` remains. Every atom above this weight is
then represented and is called *active*. Likewise, a cluster is active if its pi_k exceeds the weight of
``SMALLEST_CLUSTER`` documents, and every such cluster is represented. A token in a small topic keeps its topic and
contributes the factor tau_k,l to the weight of its document. A document in a small cluster keeps its cluster. All other
tokens and documents move among the active atoms. Whether an atom is active depends on the measures, not on z and l.
The move is therefore a Gibbs step of the whole model. Tokens and documents in small atoms move in collapsed sweeps and
after the next draw of epsilon.

**Threads.** Words and documents are split into fixed blocks. Random streams are keyed by words and documents, and sums
over blocks are added in order, so results do not depend on the number of threads.

**Zeros.** psi and tau are float32. Gammas of psi below 1e-18 become 0, and so do entries of tau below 1e-38 of their
topic's sum. Such values are below rounding errors, and arithmetic with subnormal products is very slow. For the current
topic of a token, psi and tau come from a Gamma with a shape above 1, so the current state always has a positive
probability. If the prior of words or v is small, all Gammas of an unused topic or cluster may underflow. In this case,
their logarithms are drawn instead.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.simd import LANES, count_passed, weigh_products
from mc2core.compute.special import exp, log
from mc2core.compute.threads import in_blocks
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.tokens import DocumentRows, WordCells, WordTokens, collect_word
from mc2core.inference.gibbs.weights import Concentrations, PartitionLaw, no_cluster, no_topic, weight_of_new

# -- the measures ---------------------------------------------------------------------------------------------
SMALLEST_TOPIC = 1e-3
SMALLEST_CLUSTER = 1.0  # in documents; the corresponding weight is at most 0.05
#: words per block of work of a thread
WORD_BLOCK = 512
_MEAN_ATOMS = 9_000  # largest expected number of atoms
_TINY = np.float32(1e-18)  # entries of psi below this value become 0
_TAU_UNIT = 2.0**60  # scale of the stored tau: products of psi with tau other than 0 are then normal float32 numbers
_TINY_TAU = np.float32(1e-20)  # entries of the scaled tau below this value become 0
_SAFE_PRIOR = 5.0  # smallest V s without logarithms: the sum of V Gamma(s) is < 1e-30 with probability ~ 1e-30**(V s)


@record
class CutTopics(NamedTuple):
    """Atoms of G_0 above a weight (*active* topics, one column each), and the small topics in use."""

    weights: np.ndarray  # (M',) float64: weights of the M topics in use, followed by the new topics
    remaining: float  # total weight of all other atoms
    label: np.ndarray  # (columns,) int32: topic of each column; topics in use come first
    column: np.ndarray  # (M,) int32: column of each topic in use, -1 for a small topic
    small: np.ndarray  # (small topics,) int64: small topics in use
    place: np.ndarray  # (M,) int32: index of a small topic in ``small``, 0 for an active topic


@dataclass(frozen=True)
class Measures:
    """The parts of the random measures that the blocked move needs.

    Attributes
    ----------
    topics : CutTopics
        Active topics and small topics in use.
    n_clusters : int
        Number K' of clusters, in use or new.
    active : (B,) int64
        Active clusters; all clusters if they are fixed.
    pi : (B,) float64
        Weights of active clusters; empty if clusters are fixed.
    psi : (V, width) float32
        Gammas, one column per active topic, padded with zero columns. A column divided by its sum is the topic.
    tau : (B, width) float32
        Weights of active topics in active clusters, divided by the sum of the topic's Gammas, in units of 2**-60.
    tau_small : (B, small topics) float64
        Weights of small topics in active clusters.
    """

    topics: CutTopics
    n_clusters: int
    active: np.ndarray
    pi: np.ndarray
    psi: np.ndarray
    tau: np.ndarray
    tau_small: np.ndarray


def smallest_atom(usual: float, concentration: float) -> float:
    """Return the weight above which atoms are active: ``usual``, or more if there would be too many atoms.

    GEM(c) has 1 + Poisson(c ln(1/w)) atoms until less than w of the measure remains. If c is so large that ``usual`` is
    raised, nearly all atoms are small for any w.
    """
    return max(usual, math.exp(-_MEAN_ATOMS / concentration))


def split_remaining(
    remaining: float, law: PartitionLaw, n_known: int, smallest: float, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Split the mass ``remaining`` in size-biased order until less than ``smallest`` is left.

    Stick proportions follow GEM(alpha). If there are N atoms in total and ``n_known`` of them are known, they are
    Beta(1 + b, b times the number of other atoms).

    Returns the weights of the new atoms and the remaining mass.
    """
    weights: list[float] = []
    while remaining > smallest:
        others = weight_of_new(law, n_known + len(weights) + 1)
        weights.append(remaining * rng.beta(1.0 + law.each, others) if others > 0.0 else remaining)
        remaining -= weights[-1]
    return np.array(weights), remaining


def draw_sparse_dirichlet(n_words: int, n_columns: int, s: float, rng: np.random.Generator) -> np.ndarray:
    """Return draws of Dir(s, ..., s) in columns, (V, n_columns), finite even if all Gamma(s) would underflow."""
    logs = streams.log_gammas(np.full((n_words, n_columns), s), rng)
    psi = np.exp(logs - logs.max(axis=0))
    psi /= psi.sum(axis=0)
    return np.where(psi < _TINY, 0.0, psi)


@kernel
def draw_psi(key, first, last, cells, topics, topic, topic_word_prior, psi, sums):
    """Draw Gamma(n_mw + s) for words first..last-1 and active topics; a column divided by its sum is psi_m.

    The draws are written to ``psi`` (V, width) float32 and added to the column sums ``sums`` (width,) float64.
    """
    start, token, count, column, n_columns = cells.start, cells.token, cells.counts, topics.column, topics.label.size
    stream = np.zeros(2, np.uint64)
    n_w = np.zeros(n_columns, np.int64)
    work = np.zeros(n_columns, np.float64)
    for w in range(first, last):
        streams.seek(stream, key, w)
        n_w[:] = 0
        for cell in range(start[w], start[w + 1]):
            for i in range(token[cell], token[cell] + count[cell]):
                c = column[topic[i]]
                if c >= 0:
                    n_w[c] += 1
        row = psi[w]
        streams.fill_gamma(stream, topic_word_prior, work, row[:n_columns])
        for c in range(n_columns):
            if row[c] < _TINY:
                row[c] = np.float32(0.0)
            if n_w[c] > 0:
                row[c] = streams.gamma_variate(stream, n_w[c] + topic_word_prior)
            sums[c] += np.float64(row[c])


def cut_topics(assignments: Assignments, eta: float, rng: np.random.Generator) -> CutTopics:
    """Split new topics off the remaining mass until less than ``SMALLEST_TOPIC`` is left."""
    smallest = smallest_atom(SMALLEST_TOPIC, eta)
    new, remaining = split_remaining(
        assignments.remaining, PartitionLaw.from_concentration(eta), assignments.n_topics, smallest, rng
    )
    weights = np.concatenate([assignments.topic_weights, new])
    label = np.flatnonzero(weights > smallest).astype(np.int32)
    n_used = assignments.n_topics
    column, place = np.full(n_used, -1, np.int32), np.zeros(n_used, np.int32)
    used = label[label < n_used]
    column[used] = np.arange(len(used), dtype=np.int32)
    small = np.flatnonzero(column < 0)
    place[small] = np.arange(len(small), dtype=np.int32)
    return CutTopics(weights, remaining, label, column, small, place)


def cut_clusters(n_k: np.ndarray, law: PartitionLaw, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw pi, with new clusters until less than ``SMALLEST_CLUSTER`` remains; return pi and the active clusters."""
    pi = streams.dirichlet(np.append(n_k + law.each, weight_of_new(law, len(n_k))), rng)
    smallest = smallest_atom(min(SMALLEST_CLUSTER / n_k.sum(), 0.05), law.alpha)
    new, _ = split_remaining(pi[-1] if len(n_k) < law.most else 0.0, law, len(n_k), smallest, rng)
    pi = np.concatenate([pi[:-1], new])
    return pi, np.flatnonzero(pi > smallest)


def draw_topic_words(
    topic: np.ndarray,
    cells: WordCells,
    topics: CutTopics,
    topic_word_prior: float,
    key: np.uint64,
    rng: np.random.Generator,
    pool: Executor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw psi of the active topics, as Gammas (V, width) float32 and their sums (width,)."""
    n_words, n_columns = len(cells.start) - 1, len(topics.label)
    width = max(LANES, -(-n_columns // LANES) * LANES)
    psi = np.zeros((n_words, width), np.float32)

    def fill(first: int, last: int) -> np.ndarray:
        sums = np.zeros(width)
        draw_psi(key, first, last, cells, topics, topic, topic_word_prior, psi, sums)
        return sums

    sums: np.ndarray = np.sum(in_blocks(pool, fill, n_words, WORD_BLOCK), axis=0)
    if topic_word_prior * n_words < _SAFE_PRIOR:
        empty = slice(int((topics.label < len(topics.column)).sum()), n_columns)
        psi[:, empty] = draw_sparse_dirichlet(n_words, n_columns - empty.start, topic_word_prior, rng)
        sums[empty] = 1.0
    return psi, sums


def draw_tau(
    n_km: np.ndarray, topics: CutTopics, sums: np.ndarray, v: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw tau of clusters with counts ``n_km`` (B, M).

    Returns the weights of active topics divided by ``sums``, in the unit of ``tau``, and the weights of small topics.
    """
    label, small, n_columns = topics.label, topics.small, len(topics.label)
    used = label[label < len(topics.column)]
    # active topics, small topics in use, and one entry for the remaining mass
    shapes = np.empty((len(n_km), n_columns + len(small) + 1))
    prior = v * topics.weights
    shapes[:, :n_columns] = prior[label]
    shapes[:, : len(used)] += n_km[:, used]
    shapes[:, n_columns:-1] = prior[small] + n_km[:, small]
    left = np.setdiff1d(np.arange(len(topics.column), len(topics.weights)), label)
    shapes[:, -1] = v * (topics.remaining + topics.weights[left].sum())
    drawn = streams.dirichlet(shapes, rng)
    tau = np.zeros((len(n_km), len(sums)), np.float32)
    # the sum of a topic's Gammas is stored here instead of dividing every entry of psi
    tau[:, :n_columns] = drawn[:, :n_columns] / sums[:n_columns] * _TAU_UNIT
    tau[tau < _TINY_TAU] = 0.0
    return tau, drawn[:, n_columns:-1]


def draw_measures(
    assignments: Assignments,
    cells: WordCells,
    concentrations: Concentrations,
    topic_word_prior: float,
    key: np.uint64,
    rng: np.random.Generator,
    pool: Executor | None,
    *,
    clusters_are_fixed: bool,
) -> Measures:
    """Draw G_0, pi and tau given the assignments; ``key`` is the key of the streams of psi, one per word."""
    topics = cut_topics(assignments, concentrations.topic, rng)
    n_km, n_clusters = assignments.n_km, assignments.n_clusters
    pi = np.zeros(0)
    active = np.arange(n_clusters)
    if not clusters_are_fixed:
        pi, active = cut_clusters(assignments.n_k, concentrations.partition, rng)
        n_clusters, pi = len(pi), pi[active]
        n_km = np.zeros((len(active), assignments.n_topics), np.int32)
        in_use = active < assignments.n_clusters
        n_km[in_use] = assignments.n_km[active[in_use]]
    psi, sums = draw_topic_words(assignments.topic, cells, topics, topic_word_prior, key, rng, pool)
    tau, tau_small = draw_tau(n_km, topics, sums, concentrations.table, rng)
    return Measures(topics, n_clusters, active, pi, psi, tau, tau_small)


# -- clusters of documents given the measures -----------------------------------------------------------------
_FLOOR = np.float32(1e-37)  # smallest probability mass of a word in a cluster
_DISCARD_GAP = 45.0  # gap in nats to the current cluster from which a cluster is discarded
_WORDS_AT_ONCE = 16  # number of words between two checks for clusters to discard


@record
class LogFactors(NamedTuple):
    """Factors of a document's weights that do not depend on its contexts, one column per active cluster."""

    pi: np.ndarray  # (K,) float64: ln pi
    small: np.ndarray  # (small topics, K) float64: ln tau
    words: np.ndarray  # (V, K) float32: log factor of a token of the word in active topics, at most 0


@record
class BlockedWork(NamedTuple):
    """Workspace for one document and the weights of the active clusters."""

    weight: np.ndarray  # (K,) float64: weight or log weight of each active cluster
    candidates: np.ndarray  # (K,) int64: columns of the clusters that are not discarded, in the first entries
    moving: np.ndarray  # (widest,) float64: number of tokens in active topics, per word of the document
    still: np.ndarray  # (longest + 1,) int64: tokens of the document in small topics


@kernel(fastmath={"contract"})
def centred_log(mass, log_mass):
    """Write ln mass - max_k ln mass to log_mass (words, K) float32; a constant shared by all clusters cancels."""
    n_clusters = mass.shape[1]
    work = np.zeros(n_clusters, np.float64)
    for w in range(mass.shape[0]):
        row, out = mass[w], log_mass[w]
        for k in range(n_clusters):
            work[k] = log(np.float64(max(row[k], _FLOOR)))
        top = work[0]
        for k in range(1, n_clusters):
            top = max(top, work[k])
        for k in range(n_clusters):
            out[k] = np.float32(work[k] - top)


@inner_kernel(fastmath={"contract"})
def _add_row(row, factor, weight):
    # a separate function, because only then does the compiler vectorise the loop
    for k in range(weight.size):
        weight[k] += factor * np.float64(row[k])


@inner_kernel(fastmath={"contract"})
def _document_work(first, last, documents, n_clusters):
    """Return work arrays for documents first..last-1."""
    widest, longest = 0, 0
    for j in range(first, last):
        widest = max(widest, documents.indptr[j + 1] - documents.indptr[j])
        longest = max(longest, documents.start[j + 1] - documents.start[j])
    weight, candidates = np.zeros(n_clusters, np.float64), np.zeros(n_clusters, np.int64)
    return BlockedWork(weight, candidates, np.zeros(widest, np.float64), np.zeros(longest + 1, np.int64))


@inner_kernel(fastmath={"contract"})
def _weigh_small(j, documents, topic, topics, log_small, work):
    """Add ln tau of document j's tokens in small topics to its weights, and count its tokens in active topics
    (work.moving)."""
    indptr, counts = documents.indptr, documents.counts
    column, place = topics.column, topics.place
    weight, moving, still = work.weight, work.moving, work.still
    begin, end = documents.start[j], documents.start[j + 1]
    # few tokens are in small topics, so a loop without branches lists them, and the counts of their words are reduced
    n_still = 0
    for i in range(begin, end):
        still[n_still] = i
        if column[topic[i]] < 0:
            n_still += 1
    for i in range(n_still):
        for k in range(weight.size):
            weight[k] += log_small[place[topic[still[i]]], k]
    still[n_still] = end
    past = begin
    i = 0
    for c in range(indptr[j + 1] - indptr[j]):
        moving[c] = counts[indptr[j] + c]
        past += counts[indptr[j] + c]
        while still[i] < past:
            moving[c] -= 1.0
            i += 1


@inner_kernel(fastmath={"contract"})
def _weigh_words(words, log_mass, here, work):
    """Add the log factors of the document's words to its weights; return the number of clusters not discarded.

    The weight of a cluster starts at ln pi + ln f(x_j) and only decreases as words are added, because ``log_mass`` is
    at most 0. A cluster is discarded once its weight is ``_DISCARD_GAP`` below the final weight of the current
    cluster, ``here``. Its probability is then below 1e-19, less than the rounding error of the sum.
    """
    weight, candidates, moving = work.weight, work.candidates, work.moving
    n_words, n_clusters = words.size, weight.size
    least = weight[here] - _DISCARD_GAP
    for c in range(n_words):
        least += moving[c] * np.float64(log_mass[words[c], here])
    n_candidates = 0
    for k in range(n_clusters):
        if not weight[k] < least:  # NaN is not discarded, so that the sum of the weights reveals it
            candidates[n_candidates] = k
            n_candidates += 1
    c = 0
    while c < n_words:
        stop = min(c + _WORDS_AT_ONCE, n_words)
        if n_candidates > n_clusters // 4:
            while c < stop:
                _add_row(log_mass[words[c]], moving[c], weight)
                c += 1
        else:
            while c < stop:
                for a in range(n_candidates):
                    weight[candidates[a]] += moving[c] * np.float64(log_mass[words[c], candidates[a]])
                c += 1
        kept = 0
        for a in range(n_candidates):
            if not weight[candidates[a]] < least:
                candidates[kept] = candidates[a]
                kept += 1
        n_candidates = kept
    return n_candidates


@inner_kernel(fastmath={"contract"})
def _exponentiate(weight, candidates, n_candidates):
    """weight = exp(weight - max) for the candidate clusters, in place; return the sum."""
    top = -np.inf
    for a in range(n_candidates):
        top = max(top, weight[candidates[a]])
    total = 0.0
    for a in range(n_candidates):
        weight[candidates[a]] = exp(weight[candidates[a]] - top)
        total += weight[candidates[a]]
    return total


@kernel(fastmath={"contract"})
def draw_clusters(key, first, last, documents, topic, topics, factors, log_context, active_column, cluster):
    """Draw the clusters z_j of documents first..last-1 among the active clusters, and write their columns to
    ``cluster``.

    Returns the first document whose weights have no finite positive sum, or -1.

    Parameters
    ----------
    documents : DocumentRows
    topic : (n_tokens,) int32
        Topic of each token.
    topics : CutTopics
    factors : LogFactors
    log_context : (last - first, K) float64
        Log likelihood of each document's contexts in each active cluster; (0, K) without contexts.
    active_column : (K',) int32
        Column of each active cluster; -1 for small clusters.
    """
    stream = np.zeros(2, np.uint64)
    work = _document_work(first, last, documents, factors.pi.size)
    weight, candidates = work.weight, work.candidates
    for j in range(first, last):
        here = active_column[cluster[j]]
        if here < 0:
            continue
        # loops, since numba also compiles the error message of an array assignment, which takes seconds
        for k in range(weight.size):
            weight[k] = factors.pi[k]
        if log_context.shape[0] > 0:
            for k in range(weight.size):
                weight[k] += log_context[j - first, k]
        _weigh_small(j, documents, topic, topics, factors.small, work)
        words = documents.word[documents.indptr[j] : documents.indptr[j + 1]]
        n_candidates = _weigh_words(words, factors.words, here, work)
        total = _exponentiate(weight, candidates, n_candidates)
        if not 0.0 < total < np.inf:
            return j
        streams.seek(stream, key, j)
        u = streams.uniform(stream) * total
        chosen = here
        for a in range(n_candidates):
            if weight[candidates[a]] > 0.0:
                chosen = candidates[a]
                if u < weight[candidates[a]]:
                    break
                u -= weight[candidates[a]]
        cluster[j] = chosen
    return -1


# -- topics of tokens given the measures and the clusters -----------------------------------------------------
@kernel
def draw_topics(key, first, last, cells, topics, row_of, tau, psi, topic):
    """Draw the topics l_ji of all tokens of words first..last-1 that are in active topics, in place.

    ``row_of`` (J,) int32 is 1 + the row of the document in ``tau`` (K, width) float32, or 0 if the document does not
    move. A word's tokens are drawn cluster by cluster, because all tokens of a word in one cluster have the same
    weights. Returns the first token whose weights have no finite sum, or -1.
    """
    column, label = topics.column, topics.label
    stream = np.zeros(2, np.uint64)
    width = psi.shape[1]
    n_blocks = width // LANES
    within = np.zeros(width)  # cumulative sums of the weights within each block of LANES columns
    upto = np.full(LANES * (n_blocks // LANES + 1), np.inf)  # cumulative sums of the block totals
    word_tokens = WordTokens(
        np.zeros(cells.largest, np.int64), np.zeros(cells.largest, np.int32), np.zeros(cells.widest, np.int64),
        np.zeros(cells.widest, np.int64), np.zeros(tau.shape[0] + 2, np.int64), np.zeros(cells.widest, np.int64),
    )  # fmt: skip
    token_of, topic_of, run_row = word_tokens.token, word_tokens.topic, word_tokens.run_cluster
    run_end = word_tokens.run_end
    for w in range(first, last):
        streams.seek(stream, key, w)
        # scattered memory is read first, in a loop without unpredictable branches, so that cache misses overlap
        n_runs, _ = collect_word(w, cells, row_of, topic, word_tokens)
        t = 0
        for r in range(n_runs):
            total = -1.0
            while t < run_end[r]:
                if run_row[r] == 0 or column[topic_of[t]] < 0:
                    t += 1
                    continue
                if total < 0.0:  # the first token that moves
                    row, total = (run_row[r] - 1) * width, 0.0
                    for b in range(n_blocks):
                        total += weigh_products(tau, row, psi, w * width, within, b * LANES)
                        upto[b] = total
                    if not total < np.inf:
                        return token_of[t]
                u = streams.uniform(stream) * total
                block = 0
                for b in range(0, n_blocks, LANES):
                    block += count_passed(upto, b, u)
                # a token keeps its topic if rounding moves the draw past the end, or if all its weights are 0
                if block < n_blocks:
                    if block > 0:
                        u -= upto[block - 1]
                    lane = count_passed(within, block * LANES, u)
                    if lane < LANES:
                        topic[token_of[t]] = label[block * LANES + lane]
                t += 1
    return -1


# -- the move -------------------------------------------------------------------------------------------------
_DOCUMENT_BLOCK = 128


def _log_factors(measures: Measures, pool: Executor | None) -> LogFactors:
    psi, tau = measures.psi, measures.tau
    log_mass = np.empty((len(psi), len(tau)), np.float32)

    def fill(first: int, last: int) -> None:
        centred_log(psi[first:last] @ tau.T, log_mass[first:last])

    in_blocks(pool, fill, len(psi), WORD_BLOCK)
    with np.errstate(divide="ignore"):
        log_small = np.log(np.ascontiguousarray(measures.tau_small.T))
    return LogFactors(np.log(measures.pi), log_small, log_mass)


def _move_documents(
    assignments: Assignments,
    content: Any,
    contexts: StackedContexts,
    measures: Measures,
    key: np.uint64,
    rng: np.random.Generator,
    pool: Executor | None,
) -> tuple[np.ndarray, int]:
    """Draw the clusters of the documents in active clusters, in place.

    Returns (J,) int32, 1 + the index of each document's cluster among the active clusters, or 0 if the document does
    not move. The second value is a document whose weights have no finite positive sum, or -1. If there is such a
    document, nothing is changed.
    """
    active, n_active = measures.active, len(measures.active)
    active_column = np.full(measures.n_clusters, -1, np.int32)
    active_column[active] = np.arange(n_active, dtype=np.int32)
    factors = _log_factors(measures, pool)
    natural = contexts.natural(assignments.cluster, measures.n_clusters)[active]
    parameters = contexts.draw_parameters(natural, rng)
    documents = DocumentRows.from_counts(content, assignments.document_start, assignments.cluster)
    chosen = assignments.cluster.copy()

    def move(first: int, last: int) -> int:
        log_context = np.zeros((0, n_active))
        if contexts.dimension:
            log_context = np.asarray(contexts.statistics[first:last] @ parameters.T)
        topics = measures.topics
        return draw_clusters(
            key, first, last, documents, assignments.topic, topics, factors, log_context, active_column, chosen
        )

    failed = max(in_blocks(pool, move, len(chosen), _DOCUMENT_BLOCK))
    moves = active_column[assignments.cluster] >= 0
    if failed < 0:
        cluster = assignments.cluster.copy()
        cluster[moves] = active[chosen[moves]]  # indexing by ``moves`` is needed since there may be no active cluster
        assignments.cluster = cluster
    return np.where(moves, chosen + 1, 0).astype(np.int32), failed


def move_blocked(
    assignments: Assignments,
    content: Any,
    cells: WordCells,
    contexts: StackedContexts,
    concentrations: Concentrations,
    topic_word_prior: float,
    seed: int,
    iteration: int,
    pool: Executor | None = None,
    *,
    clusters_are_fixed: bool = False,
) -> None:
    """Make one blocked move, in place, and drop the clusters and topics that end empty.

    ``content`` is the corpus as CSR counts. If ``clusters_are_fixed``, only tokens move.
    """
    rng = streams.generator(seed, "measures", iteration)
    key = streams.key(seed, "psi", iteration)
    measures = draw_measures(
        assignments, cells, concentrations, topic_word_prior, key, rng, pool, clusters_are_fixed=clusters_are_fixed
    )
    if clusters_are_fixed:
        row_of = assignments.cluster + np.int32(1)
    else:
        key = streams.key(seed, "blocked clusters", iteration)
        row_of, failed = _move_documents(assignments, content, contexts, measures, key, rng, pool)
        if failed >= 0:
            raise no_cluster(failed, contexts, concentrations)
    key = streams.key(seed, "blocked topics", iteration)
    topics, tau, psi = measures.topics, measures.tau, measures.psi

    def move_tokens(first: int, last: int) -> int:
        return draw_topics(key, first, last, cells, topics, row_of, tau, psi, assignments.topic)

    failed = max(in_blocks(pool, move_tokens, len(psi), WORD_BLOCK))
    if failed >= 0:
        raise no_topic(assignments.document_of(failed), concentrations, topic_word_prior)
    assignments.topic_weights, assignments.remaining = topics.weights, topics.remaining
    assignments.count(measures.n_clusters)
    assignments.compact()
