"""Neighbour proposals of FastEx: a document is proposed to move to the clusters of its neighbours (docs/model.md).

The proposal is q(k) = (1 - eps) v_k / N_i + eps / K. Here v_k is the number of neighbours of document i in cluster k,
N_i is its number of neighbours in the graph, and eps is the ``uniform_share``. Without neighbours, the proposal is
uniform. The proposal depends on the fixed graph and on the clusters of other documents. It does not depend on the
cluster of the document itself, because no document is its own neighbour. Therefore, each proposal with its
Metropolis-Hastings step leaves the conditional distribution of the document invariant, and so does any fixed number of
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from mc2core.base import memory
from mc2core.base.storage import Stored
from mc2core.compute import streams
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import record
from mc2core.compute.simd import prefetch
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import (
    ChainSettings,
    ClusterSizes,
    ProposalSettings,
    document_columns,
)
from mc2core.inference.fastex.exact import BYTES_PER_CLUSTER, ExactState, table_bytes
from mc2core.inference.fastex.limits import refuse_large_counts
from mc2core.inference.fastex.sparse_counts import (
    MAX_BYTES_PER_CELL,
    MAX_LOAD,
    CountedState,
    add_to,
    empty_table,
    evidence_constants,
    fetch_cells,
    log_evidence_in,
)

# -- the graph ------------------------------------------------------------------------------------------------------
# Each word has an inverted list of the documents that contain it. For each document, the search reads the lists of its
# words, rarest word first, and stops before the total length exceeds the budget. Words in one or in all documents are
# skipped; equally frequent words are read in a pseudo-random order. Each list adds log(J / df) to the score of its
# documents. The neighbours are the documents with the largest scores, with ties broken by a pseudo-random hash. If even
# the first list exceeds the budget, only a part of it is read: the part that follows the document's own entry, in a
# pseudo-random order of documents. Therefore, the cost per document is bounded, no pair of documents is stored, and the
# result depends only on corpus, settings and seed.

#: value in unused columns of the graph, which come last
MISSING = -1
_SEARCH_BLOCK = 2000  # number of documents per task of the search
_PARTS = 4  # number of tasks that build the index
_PREFETCH_LINES = 4  # number of cache lines of the next list that are prefetched
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: the high bits of its multiples are evenly distributed
_PURPOSE = "fastex neighbours"


@record
class Index(NamedTuple):
    """Inverted lists of documents, for the R words that occur in at least two documents, but not in all.

    Documents are identified by their place in a pseudo-random order.
    """

    order: np.ndarray  # (J,) int32: document at each place
    rank: np.ndarray  # (V,) int32: position of each word by ascending document frequency; -1 without a list
    starts: np.ndarray  # (R + 1,) int64: the word of rank r has the list lists[starts[r]:starts[r + 1]]
    lists: np.ndarray  # (entries,) int32: places of documents, ascending within each list
    gain: np.ndarray  # (R,) float32: log(J / df) of the word of each rank


class Sums(NamedTuple):
    """Hash table (open addressing) of the scores of candidate neighbours; the number of slots S is a power of 2."""

    places: np.ndarray  # (S,) int32: place of the candidate; MISSING in empty slots
    totals: np.ndarray  # (S,) float32: sum of gains of the shared words
    touched: np.ndarray  # (S,) int32: indices of the slots in use, in order of insertion


def index_bytes(content: sp.csr_matrix) -> int:
    """Return an upper bound on the number of bytes of the :class:`Index` of ``content``, (J, V)."""
    return 4 * content.nnz + (24 + 8 * _PARTS) * content.shape[1] + 16 * content.shape[0]


def is_read(frequency: np.ndarray, n_documents: int) -> np.ndarray:
    """Return whether each word has an inverted list, (V,) bool; words in one document or in all documents have none."""
    return (frequency >= 2) & (frequency < n_documents)


def has_rare_words(corpus: Corpus, list_budget: int) -> bool:
    """Return whether at least half of the documents have a word whose inverted list fits into ``list_budget``."""
    content = corpus.content
    frequency = np.bincount(content.indices, minlength=corpus.n_words)
    is_whole = is_read(frequency, corpus.n_documents) & (frequency <= list_budget)
    is_rare = np.concatenate([[0], np.cumsum(is_whole[content.indices])])
    return bool(2 * np.count_nonzero(np.diff(is_rare[content.indptr])) >= corpus.n_documents)


def find_neighbours(
    content: sp.csr_matrix, n_neighbours: int, list_budget: int, seed: int, pool: Executor | None = None
) -> np.ndarray:
    """Return the neighbours of each document, (J, n_neighbours) int32, padded with :data:`MISSING`."""
    index = _build_index(content, seed, pool)
    indptr, words = content.indptr.astype(np.int64), np.ascontiguousarray(content.indices, dtype=np.int32)
    graph = np.full((content.shape[0], n_neighbours), MISSING, np.int32)
    key = streams.key(seed, _PURPOSE)

    def find(first: int, last: int) -> None:
        _find(key, first, last, indptr, words, index, list_budget, graph)

    in_blocks(pool, find, content.shape[0], _SEARCH_BLOCK)
    return graph


def _build_index(content: sp.csr_matrix, seed: int, pool: Executor | None) -> Index:
    n_documents, n_words = content.shape
    indptr, words = content.indptr.astype(np.int64), content.indices
    rng = streams.generator(seed, _PURPOSE)
    order = rng.permutation(n_documents).astype(np.int32)
    part = -(-n_documents // _PARTS)
    ends = np.zeros((_PARTS, n_words), np.int64)  # document frequency per part, later the next free list index

    def count(first: int, last: int) -> None:
        _count_words(first, last, indptr, words, order, ends[first // part])

    def fill(first: int, last: int) -> None:
        _fill_lists(first, last, indptr, words, order, ends[first // part], lists)

    in_blocks(pool, count, n_documents, part)
    frequency = ends.sum(axis=0)
    keyed = np.empty(n_words, np.int64)
    keyed[rng.permutation(n_words)] = np.arange(n_words)
    by_frequency = _in_order(frequency, keyed, n_documents)
    read = by_frequency[is_read(frequency[by_frequency], n_documents)]
    rank = np.full(n_words, -1, np.int32)
    rank[read] = np.arange(len(read))
    starts = np.concatenate([[0], np.cumsum(frequency[read])])
    begin = np.zeros(n_words, np.int64)
    begin[read] = starts[:-1]
    for of_part in ends:
        begin += of_part
        np.subtract(begin, of_part, out=of_part)
    ends[:, rank < 0] = -1
    lists = np.empty(starts[-1], np.int32)
    in_blocks(pool, fill, n_documents, part)
    return Index(order, rank, starts, lists, np.log(n_documents / frequency[read]).astype(np.float32))


@kernel
def _count_words(first, last, indptr, words, order, counts):
    """Add the number of documents at places first..last-1 that contain each word to ``counts`` (V,)."""
    for place in range(first, last):
        j = order[place]
        for cell in range(indptr[j], indptr[j + 1]):
            counts[words[cell]] += 1


@kernel
def _in_order(frequency, keyed, n_documents):
    """Sort words by ascending frequency (counting sort); words of equal frequency are in the order of ``keyed``."""
    ends = np.zeros(n_documents + 2, np.int64)
    for frequency_of_one in frequency:
        ends[frequency_of_one + 1] += 1
    ends = ends.cumsum()
    ordered = np.empty_like(keyed)
    for word in keyed:
        ordered[ends[frequency[word]]] = word
        ends[frequency[word]] += 1
    return ordered


@kernel
def _fill_lists(first, last, indptr, words, order, ends, lists):
    """Append the places first..last-1 to the lists of their words; ``ends`` (V,) is the next index, -1 without list."""
    for place in range(first, last):
        j = order[place]
        for cell in range(indptr[j], indptr[j + 1]):
            entry = ends[words[cell]]
            if entry >= 0:
                lists[entry] = place
                ends[words[cell]] = entry + 1


@kernel
def _find(key, first, last, indptr, words, index, budget, graph):
    """Find the neighbours of the documents at places first..last-1, and write them to ``graph``."""
    order, rank, starts, lists = index.order, index.rank, index.starts, index.lists
    n_neighbours, n_slots = graph.shape[1], 64
    while n_slots < 2 * min(budget, order.size):
        n_slots *= 2
    # a hash table stays in the caches, whereas an array over all documents would not
    sums = Sums(np.full(n_slots, MISSING, np.int32), np.zeros(n_slots, np.float32), np.empty(n_slots, np.int32))
    ranks = np.empty(64, np.int32)
    best, score, tie = np.empty(n_neighbours, np.int64), np.empty(n_neighbours, np.float32), np.empty(n_neighbours)
    for place in range(first, last):
        j = order[place]
        n_cells = indptr[j + 1] - indptr[j]
        if n_cells > ranks.size:
            ranks = np.empty(2 * n_cells, np.int32)
        n_ranks = 0
        for cell in range(indptr[j], indptr[j + 1]):
            r = rank[words[cell]]
            if r >= 0:
                ranks[n_ranks] = r
                n_ranks += 1
        ranks[:n_ranks].sort()
        n_touched = n_entries = 0
        for i in range(n_ranks):
            length = starts[ranks[i] + 1] - starts[ranks[i]]
            if i > 0 and n_entries + length > budget:
                break
            if i + 1 < n_ranks:
                for line in range(0, 16 * _PREFETCH_LINES, 16):
                    prefetch(lists, starts[ranks[i + 1]] + line)
            n_entries += length
            n_touched = _add_list(index, ranks[i], place, budget, sums, n_touched)
        n_best = 0
        for i in range(n_touched):
            slot = sums.touched[i]
            other, total = np.int64(sums.places[slot]), sums.totals[slot]
            sums.places[slot], sums.totals[slot] = MISSING, 0.0
            n_best = _keep_best(key, place, other, total, order.size, best, score, tie, n_best)
        for i in range(n_best):
            graph[j, i] = order[best[i]]


@inner_kernel
def _add_list(index, r, place, budget, sums, n_touched):
    """Add the gain of the word of rank r to all places on its list except ``place``; returns the slots in use."""
    lists, gain, places, totals, touched = index.lists, index.gain[r], sums.places, sums.totals, sums.touched
    mask = np.uint64(places.size - 1)
    begin, end = index.starts[r], index.starts[r + 1]
    entry = begin
    if end - begin > budget:
        entry += np.searchsorted(lists[begin:end], place)
    for _ in range(min(end - begin, budget)):
        if entry == end:
            entry = begin
        other = lists[entry]
        entry += 1
        if other == place:
            continue
        slot = (np.uint64(other) * _SPREAD >> np.uint64(32)) & mask
        while places[slot] != other and places[slot] != MISSING:
            slot = (slot + np.uint64(1)) & mask
        if places[slot] == MISSING:
            places[slot] = other
            touched[n_touched] = slot
            n_touched += 1
        totals[slot] += gain
    return n_touched


@inner_kernel
def _keep_best(key, place, other, total, n_documents, best, score, tie, n_best):
    """Insert ``other`` into ``best`` if its score ``total`` is large enough, and return the new length of ``best``.

    ``best``, ``score`` and ``tie`` are sorted in descending order of score. Ties are broken by a hash.
    """
    full = n_best == best.size
    worst = best.size - 1
    if full and total < score[worst]:
        return n_best
    tie_of_other = np.float64(streams.mix(key + np.uint64(place) * np.uint64(n_documents) + np.uint64(other)))
    if full and total == score[worst] and tie_of_other <= tie[worst]:
        return n_best
    i = worst if full else n_best
    while i > 0 and (score[i - 1] < total or (score[i - 1] == total and tie[i - 1] < tie_of_other)):
        best[i], score[i], tie[i] = best[i - 1], score[i - 1], tie[i - 1]
        i -= 1
    best[i], score[i], tie[i] = other, total, tie_of_other
    return n_best + (not full)


# -- arguments of kernels -------------------------------------------------------------------------------------------


@record
class NeighbourDocuments(NamedTuple):
    """Word counts of the documents in CSR order, and the graph of neighbours."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64: number of tokens
    neighbours: np.ndarray  # (J, N) int32, see :func:`find_neighbours`


@record
class VisitConstants(NamedTuple):
    """Settings and priors of a run, and a table ``log_gamma[n]`` = ln G(n + a) for small n."""

    component: int
    n_words: int
    shift: np.uint64
    topic_word_prior: float
    weight_prior: float
    rate_prior: float
    log_gamma: np.ndarray
    n_proposals: int
    uniform_share: float


class NeighbourChain(NamedTuple):
    """Arguments of the sweep kernels, except the assignments and the table of counts, which is replaced as it grows."""

    documents: NeighbourDocuments
    clusters: ClusterSizes
    constants: VisitConstants


@record
class Round(NamedTuple):
    """Clusters chosen in advance for the B documents of a round, and the data that the choices depend on.

    On one thread, B is 0.
    """

    chosen: np.ndarray  # (B,) int32: chosen cluster
    proposed: np.ndarray  # (B,) int64: number of proposals of another cluster
    scored: np.ndarray  # (B or 1, n_proposals + 1) int64: clusters whose counts were read, then -1
    has_moved: np.ndarray  # (B,) bool: whether the document has changed its cluster in this round
    changed: np.ndarray  # (K,) int64: 1 + first document of the last round in which the cluster changed


# -- the proposal ---------------------------------------------------------------------------------------------------
@inner_kernel
def count_known(neighbours, j):
    """Return the number of neighbours of document j in the graph."""
    n = neighbours.shape[1]
    while n > 0 and neighbours[j, n - 1] < 0:
        n -= 1
    return n


@inner_kernel
def propose(stream, neighbours, j, n_known, cluster, n_clusters, uniform_share):
    """Draw a cluster from the proposal distribution q of document j."""
    if n_known == 0 or streams.uniform(stream) < uniform_share:
        return np.int64(streams.uniform(stream) * n_clusters)
    return np.int64(cluster[neighbours[j, np.int64(streams.uniform(stream) * n_known)]])


@inner_kernel
def density(neighbours, j, n_known, cluster, n_clusters, uniform_share, k):
    """Return the probability q(k) of cluster k in the proposal distribution of document j."""
    if n_known == 0:
        return 1.0 / n_clusters
    n_inside = 0
    for i in range(n_known):
        n_inside += cluster[neighbours[j, i]] == k
    return (1.0 - uniform_share) * n_inside / n_known + uniform_share / n_clusters


# -- the move of a document -----------------------------------------------------------------------------------------
@inner_kernel
def _score(chain, slots, j, old, k, scored, logs):
    """Return the index in ``logs`` of the log evidence of document j in cluster k, which is computed if necessary."""
    i = 0
    while scored[i] != k:
        if scored[i] < 0:
            documents, clusters, constants = chain
            logs[i] = log_evidence_in(documents, clusters, slots, constants, j, k, np.int64(k == old))
            scored[i] = k
            break
        i += 1
    return i


@inner_kernel
def choose(chain, slots, cluster, j, stream, drawn, scored, logs):
    """Return the cluster of document j after ``n_proposals`` Metropolis-Hastings steps; the state does not change.

    Work arrays: ``drawn`` (n_proposals,) int64 contains the proposed clusters. ``scored`` and ``logs`` (n_proposals +
    1,) contain the clusters whose log evidence was needed, then -1, and their log evidence. Returns the cluster, or -1
    if scores are not finite, and the number of proposals of another cluster.
    """
    documents, clusters, constants = chain
    neighbours, n_clusters, share = documents.neighbours, clusters.n_k.size, constants.uniform_share
    n_known = count_known(neighbours, j)
    old = np.int64(cluster[j])
    is_other = False
    for t in range(drawn.size):
        scored[t] = -1
        drawn[t] = propose(stream, neighbours, j, n_known, cluster, n_clusters, share)
        if drawn[t] != old:
            fetch_cells(documents, slots, constants.n_words, j, drawn[t])
            is_other = True
    scored[drawn.size] = -1
    if not is_other:
        return old, 0
    fetch_cells(documents, slots, constants.n_words, j, old)
    now, n_proposed = old, 0
    for t in range(drawn.size):
        new = drawn[t]
        if new == now:
            continue
        n_proposed += 1
        log_ratio = -logs[_score(chain, slots, j, old, now, scored, logs)]
        log_ratio += logs[_score(chain, slots, j, old, new, scored, logs)]
        log_ratio += math.log(density(neighbours, j, n_known, cluster, n_clusters, share, now))
        log_ratio -= math.log(density(neighbours, j, n_known, cluster, n_clusters, share, new))
        if not abs(log_ratio) < math.inf:
            return np.int64(-1), n_proposed
        if log_ratio >= 0.0 or streams.uniform(stream) < math.exp(log_ratio):
            now = new
    return now, n_proposed


@inner_kernel
def move(chain, slots, used, cluster, j, new):
    """Move document j from its cluster to the cluster ``new``."""
    documents, clusters, constants = chain
    words, counts, shift, mass = documents.words, documents.counts, constants.shift, documents.mass[j]
    old, n_words = np.int64(cluster[j]), np.uint64(constants.n_words)
    fetch_cells(documents, slots, constants.n_words, j, new)
    for k, sign in ((old, np.int64(-1)), (np.int64(new), np.int64(1))):
        first_key = np.uint64(k) * n_words
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            add_to(slots, shift, first_key + np.uint64(words[cell]), sign * np.int64(counts[cell]), used)
        clusters.n_k[k] += sign
        clusters.mass[k] += sign * mass
    cluster[j] = new


# -- sweeps ---------------------------------------------------------------------------------------------------------
@kernel
def choose_ahead(key, start, first, last, chain, slots, cluster, ahead):
    """Choose clusters for documents first..last-1, given the current state; document ``start`` begins the round."""
    drawn, stream = np.empty(chain.constants.n_proposals, np.int64), np.zeros(2, np.uint64)
    logs = np.empty(chain.constants.n_proposals + 1)
    for j in range(first, last):
        streams.seek(stream, key, j)
        i = j - start
        ahead.chosen[i], ahead.proposed[i] = choose(chain, slots, cluster, j, stream, drawn, ahead.scored[i], logs)
        ahead.has_moved[i] = False


@kernel
def sweep(key, start, first, last, chain, slots, used, cluster, moves, ahead, redone):
    """Move documents first..last-1 in order and in place; document ``start`` begins the round.

    The choice made in advance is used if neither a neighbour of the document nor a scored cluster has changed in this
    round. Otherwise, the choice is repeated. Therefore, the result is the same as without choices in advance.

    Returns ``last``, or the document at which the table must grow, or -1 - j if document j has scores that are not
    finite. The number of proposals of another cluster and of moved documents are added to ``moves`` (2,) int64. The
    number of repeated choices is added to ``redone`` (1,) int64.
    """
    documents, _, constants = chain
    indptr, stream = documents.indptr, np.zeros(2, np.uint64)
    drawn, logs = np.empty(constants.n_proposals, np.int64), np.empty(constants.n_proposals + 1)
    chosen, has_moved, changed = ahead.chosen, ahead.has_moved, ahead.changed
    for j in range(first, last):
        if used[0] + indptr[j + 1] - indptr[j] > MAX_LOAD * slots.size:
            return j
        i = j - start if chosen.size > 0 else 0
        if chosen.size > 0 and _is_valid(documents.neighbours, j, start, ahead):
            new, proposed = np.int64(chosen[i]), ahead.proposed[i]
        else:
            redone[0] += chosen.size > 0
            streams.seek(stream, key, j)
            new, proposed = choose(chain, slots, cluster, j, stream, drawn, ahead.scored[i], logs)
        moves[0] += proposed
        if new < 0:
            return -1 - j
        if new != cluster[j]:
            moves[1] += 1
            if chosen.size > 0:
                has_moved[i] = True
                changed[cluster[j]] = changed[new] = start + 1
            move(chain, slots, used, cluster, j, new)
    return last


@inner_kernel
def _is_valid(neighbours, j, start, ahead):
    """Return whether the choice made in advance for document j is still valid.

    It is invalid if a neighbour or a scored cluster has changed since the round began with document ``start``.
    """
    scored, has_moved, changed = ahead.scored, ahead.has_moved, ahead.changed
    for i in range(neighbours.shape[1]):
        neighbour = neighbours[j, i] - start
        if 0 <= neighbour < has_moved.size and has_moved[neighbour]:
            return False
    for i in range(scored.shape[1]):
        k = scored[j - start, i]
        if k < 0:
            return True
        if changed[k] == start + 1:
            return False
    return True


# -- the state ------------------------------------------------------------------------------------------------------


_ROUND = 1000  # number of documents per round of choices in advance, with several threads
_CHOICE_BLOCK = 125  # number of documents per task within a round


def bytes_needed(corpus: Corpus, n_clusters: int, proposals: ProposalSettings) -> dict[str, int]:
    """Return the largest number of bytes of each data structure, in addition to the corpus.

    Index, counts and exact tables are never in memory at the same time.
    """
    content = corpus.content
    return {
        "graph": 4 * proposals.n_neighbours * corpus.n_documents,
        "index": index_bytes(content),
        "counts": MAX_BYTES_PER_CELL * content.nnz + 24 * n_clusters,
        "exact": table_bytes(corpus, n_clusters) + BYTES_PER_CLUSTER * n_clusters if proposals.exact_sweeps else 0,
    }


def most_at_once(parts: Mapping[str, int]) -> int:
    """Return the peak memory in bytes, given :func:`bytes_needed`: the graph plus the largest other structure."""
    return parts["graph"] + max(n_bytes for part, n_bytes in parts.items() if part != "graph")


class NeighbourState(CountedState):
    """State with neighbour proposals: assignments, the graph of neighbours, and the word counts of clusters.

    Attributes
    ----------
    redone : (1,) int64, number of choices in advance that had to be repeated, over all sweeps on several threads
    """

    proposal = "neighbours"
    described: ClassVar[Mapping[str, Stored]] = {"neighbours": Stored("i", "J N", below="J")}

    def __init__(self, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray, neighbours: np.ndarray) -> None:
        super().__init__(corpus, settings, cluster)
        self.documents = NeighbourDocuments(
            **document_columns(corpus, settings.component),
            neighbours=np.ascontiguousarray(neighbours, dtype=np.int32),
        )
        self.clusters = ClusterSizes(*np.zeros((3, settings.n_clusters), np.int64))
        self.constants = VisitConstants(
            **evidence_constants(corpus, settings),
            n_proposals=settings.proposals.n_proposals,
            uniform_share=settings.proposals.uniform_share,
        )
        self.redone = np.zeros(1, np.int64)
        self._sum_up()

    @classmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        return most_at_once(bytes_needed(corpus, settings.n_clusters, settings.proposals))

    @classmethod
    def refuse(cls, corpus: Corpus, settings: ChainSettings) -> None:
        parts = bytes_needed(corpus, settings.n_clusters, settings.proposals)
        remedy = {"graph": "use a smaller n_neighbours", "exact": "use exact_sweeps=[] or fewer clusters"}
        what = f"proposal='neighbours' with {corpus.n_documents} documents and {settings.n_clusters} clusters"
        memory.need(most_at_once(parts), what, remedy.get(max(parts, key=parts.__getitem__), "use fewer documents"))
        if settings.proposals.exact_sweeps:
            refuse_large_counts(corpus, cls.proposal)

    @classmethod
    def start(
        cls, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray, seed: int, pool: Executor | None
    ) -> Self:
        proposals = settings.proposals
        graph = find_neighbours(corpus.content, proposals.n_neighbours, proposals.list_budget, seed, pool)
        return cls(corpus, settings, cluster, graph)

    @classmethod
    def restore(cls, corpus: Corpus, settings: ChainSettings, arrays: Mapping[str, np.ndarray]) -> Self:
        return cls(corpus, settings, arrays["cluster"], arrays["neighbours"])

    @property
    def chain(self) -> NeighbourChain:
        return NeighbourChain(self.documents, self.clusters, self.constants)

    def _sum_up(self) -> None:
        """Compute the statistics of the clusters from the current assignments."""
        n_clusters = self.settings.n_clusters
        self.clusters.n_k[:] = np.bincount(self.cluster, minlength=n_clusters)
        self.clusters.mass[:] = np.bincount(self.cluster, weights=self.documents.mass, minlength=n_clusters)
        self._count(len(self.documents.words))
        self._shrink()

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """Run a sweep as :meth:`MixtureState.sweep`, in the order of documents.

        With several threads, all threads choose clusters for a round of documents in advance. One thread then moves the
        documents one by one. The result does not depend on the number of threads.
        """
        n_documents, n_proposals = len(self.cluster), self.constants.n_proposals
        size = n_documents if pool is None else min(_ROUND, n_documents)
        n_ahead = 0 if pool is None else size
        ahead = Round(
            np.zeros(n_ahead, np.int32), np.zeros(n_ahead, np.int64),
            np.full((n_ahead or 1, n_proposals + 1), -1, np.int64), np.zeros(n_ahead, np.bool_),
            np.zeros(self.settings.n_clusters, np.int64),
        )  # fmt: skip
        for start in range(0, n_documents, size):
            stop = min(start + size, n_documents)

            def choose(first: int, last: int, start: int = start) -> None:
                choose_ahead(key, start, start + first, start + last, self.chain, self.slots, self.cluster, ahead)

            def carry(first: int, start: int = start, stop: int = stop) -> int:
                return sweep(key, start, first, stop, *self._data, moves, ahead, self.redone)

            if pool is not None:
                in_blocks(pool, choose, stop - start, _CHOICE_BLOCK)
            self._go_through(start, stop, carry)
        self._shrink()

    def iterate(self, corpus: Corpus, iteration: int, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        """Run an iteration; if it is one of the exact sweeps, :class:`ExactState` runs the sweep.

        During an exact sweep, the tables of exact scores replace the sparse counts to save memory.
        """
        if iteration not in self.settings.proposals.exact_sweeps:
            super().iterate(corpus, iteration, key, moves, pool)
            return
        self.slots = empty_table(0)
        exact = ExactState(corpus, self.settings, self.cluster)
        exact.sweep(key, moves, pool)
        self.cluster = exact.cluster
        del exact
        self._sum_up()

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {"neighbours": self.documents.neighbours}
