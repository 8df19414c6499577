"""What a FastEx chain carries: assignments, the sparse counts, and the projection with all that is cached for it."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import partial

import numba
import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core.compiling import kernel
from mc2core.corpus import Corpus
from mc2core.engines.base import State
from mc2core.engines.fastex_components import (
    BACKGROUND_SIZE,
    GAUSSIAN,
    OVERLAP_UNIT,
    Constants,
    Plan,
    document_mass,
    expected_background,
    linear_terms,
    log_gamma_of,
    log_joint_of_sizes,
    theta_of,
)
from mc2core.engines.fastex_hash import (
    Clusters,
    Columns,
    Documents,
    Projection,
    apply_moves,
    choose_all,
    coordinate,
    refresh,
    sweep,
    trust,
)
from mc2core.engines.fastex_lanes import NO_CLUSTER
from mc2core.engines.fastex_proposal import padded
from mc2core.engines.fastex_table import MAX_LOAD, add_to, count_at, count_bits, empty_table, grown, shrunk
from mc2core.engines.parallel import in_blocks
from mc2core.hashing import WORD_BITS, add_signed, n_signature_words

_TABLE = 1 << 14  # counts whose logarithms are tabulated; 192 kB stay in the second-level cache
_SAMPLED_TOGETHER = 125  # documents of a round that one thread takes at a time
_GRID = 2.0**29  # no sum of coordinates exceeds this many grid points, so 32 bits hold it
_MOMENT_UNIT = 2.0**20
#: nats by which a document's own cluster must stand out in the words that are hashed
SIGNAL = 25.0
JOINT_UNIT = 2.0**20
_TRUSTED_DOCUMENTS, _TRUSTED_CLUSTERS = 100, 50
#: scores are never trusted less
LEAST_FLATNESS = 1e-3


@kernel
def _count_documents(documents, shift, n_words, slots, used, cluster, first):
    for j in range(first, cluster.size):
        if used[0] + documents.indptr[j + 1] - documents.indptr[j] > MAX_LOAD * slots.size:
            return j
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            key = np.uint64(cluster[j]) * np.uint64(n_words) + np.uint64(documents.words[cell])
            add_to(slots, shift, key, np.int64(documents.counts[cell]), used)
    return cluster.size


@numba.njit(inline="always")
def _cell(slot, shift, n_words):
    """(cluster, word, count) of a slot in use."""
    key = slot >> shift
    n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
    k = key // np.uint64(n_words)
    return np.int64(k), np.int64(key - k * np.uint64(n_words)), n


@kernel
def _moments(slots, constants, factor, first, second):
    """Sums over clusters of factor * theta_kd and its square, (V,) int64 each, in units of 1 / _MOMENT_UNIT."""
    component, table, prior = constants.component, constants.theta, constants.word_prior
    for slot in slots:
        if slot:
            k, word, n = _cell(slot, constants.shift, constants.n_words)
            theta = factor[k] * np.float64(theta_of(component, table, prior, n))
            first[word] += np.int64(theta * _MOMENT_UNIT)
            second[word] += np.int64(theta * theta * _MOMENT_UNIT)


@kernel
def _agreement(documents, slots, constants, factor, cluster, agreement):
    """Add x_jd theta_kd, k the document's cluster without the document, to (V,) float64 ``agreement``."""
    words, counts, table, prior = documents.words, documents.counts, constants.theta, constants.word_prior
    component, shift, indptr = constants.component, constants.shift, documents.indptr
    for j in range(cluster.size):
        first_key = np.uint64(cluster[j]) * np.uint64(constants.n_words)
        for cell in range(indptr[j], indptr[j + 1]):
            n = count_at(slots, shift, first_key + np.uint64(words[cell])) - counts[cell]
            theta = factor[cluster[j]] * np.float64(theta_of(component, table, prior, n))
            agreement[words[cell]] += counts[cell] * theta


@kernel
def _project_empty(projection, sums):
    """Sums of a cluster without words; returns (total, square)."""
    total = 0
    square = 0
    centre, grid = projection.centre, projection.grid
    for word in range(centre.size):
        value = coordinate(np.float32(0.0), centre[word], grid[word])
        if value:
            total += value
            square += value * value
            add_signed(sums, word, np.int32(value))
    return total, square


@kernel
def _project_cells(slots, constants, projection, clusters):
    """Add every cell of the table to its cluster's sums, which start as those of an empty cluster."""
    centre, grid, frequency = projection.centre, projection.grid, projection.frequency
    component, table, prior = constants.component, constants.theta, constants.word_prior
    sums, total, square, overlap = clusters.sums, clusters.total, clusters.square, clusters.overlap
    for slot in slots:
        if slot:
            k, word, n = _cell(slot, constants.shift, constants.n_words)
            if grid[word] > 0.0:
                theta = theta_of(component, table, prior, n)
                before = coordinate(np.float32(0.0), centre[word], grid[word])
                after = coordinate(theta, centre[word], grid[word])
                total[k] += after - before
                square[k] += after * after - before * before
                overlap[k] += np.int64(frequency[word] * theta)
                add_signed(sums[k], word, np.int32(after - before))
    for k in range(clusters.n_k.size):
        refresh(clusters, projection, constants, k)


@kernel
def _squares(slots, constants, squares):
    """Add every cell's squared count to its cluster's (K,) int64 ``squares``."""
    for slot in slots:
        if slot:
            k, _, n = _cell(slot, constants.shift, constants.n_words)
            squares[k] += n * n


@kernel
def _factors(constants, background, clusters, factor):
    """Fill (K,) float64 ``factor`` with the third of every cluster's linear terms."""
    for k in range(factor.size):
        sizes = clusters.n_k[k], clusters.mass[k], clusters.squares[k]
        factor[k] = linear_terms(constants, background, *sizes, 0)[2]


@kernel
def _project_documents(documents, scale, unit, frequency, bits):
    """Signatures and norms of x - mass_j p times ``scale``; ``frequency`` (V,) float64 is p, or zeros."""
    words, counts, signature = documents.words, documents.counts, documents.signature
    n_lanes = signature.shape[1] * WORD_BITS
    mean = np.zeros(n_lanes)  # <sign, p scale>
    mean_square = 0.0
    sums = np.zeros(n_lanes, np.int32)
    for word in range(scale.size):
        if frequency[word] > 0.0 and scale[word] > 0.0:
            for b in range(n_lanes):
                sums[b] = 0
            add_signed(sums, word, np.int32(1))
            value = frequency[word] * scale[word]
            mean_square += value * value
            for b in range(bits):
                mean[b] += (2 * sums[b] - 1) * value
    for j in range(documents.mass.size):
        mass = documents.mass[j]
        for b in range(n_lanes):
            sums[b] = 0
        total = np.int64(0)
        square = mass * mass * mean_square
        for cell in range(documents.indptr[j], documents.indptr[j + 1]):
            d = np.int64(words[cell])
            value = np.int32(counts[cell] * scale[d] * unit)
            total += value
            add_signed(sums, d, value)
            hashed = counts[cell] * np.float64(scale[d])
            square += hashed * (hashed - 2.0 * mass * frequency[d] * scale[d])
        documents.norm[j] = math.sqrt(max(square, 0.0))
        for part in range(signature.shape[1]):
            signature[j, part] = 0
        for b in range(bits):
            if 2 * np.int64(sums[b]) - total > mass * mean[b] * unit:
                signature[j, b // WORD_BITS] |= np.uint64(1) << np.uint64(b % WORD_BITS)


@kernel
def _log_cells(slots, constants):
    """Sum over cells of ln G(n + a) - ln G(a) in units of 1 / JOINT_UNIT: whole numbers, so the order is free."""
    table, prior, shift = constants.log_gamma, constants.word_prior, constants.shift
    total = np.int64(0)
    if constants.component == GAUSSIAN:
        return total
    for slot in slots:
        if slot:
            n = np.int64(slot & ((np.uint64(1) << shift) - np.uint64(1)))
            total += np.int64((log_gamma_of(table, prior, n) - table[0]) * JOINT_UNIT)
    return total


class FastExState(State):
    """Assignments of a FastEx chain and the caches that follow from them and from the projection.

    Attributes
    ----------
    cluster : (J,) int32
    centre, scale : (V,) float32
        c_d and g_d of the balanced projection (zeros and ones for the paper's); scale 0 leaves a word out.
    flatness : float
        Power of the proposal: at most the plan's; in the balanced projection what its scores are worth.
    documents, clusters, projection, constants : what kernels read, see :mod:`mc2core.engines.fastex_hash`
    slots, used : the table of counts and its number of non-zero cells, see :mod:`mc2core.engines.fastex_table`
    """

    def __init__(
        self, corpus: Corpus, plan: Plan, cluster: np.ndarray, aim: tuple[np.ndarray, np.ndarray, float] | None = None
    ) -> None:
        content = corpus.content
        self.plan = plan
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)
        self.word_totals = np.bincount(content.indices, weights=content.data, minlength=corpus.n_words).astype(np.int64)
        n_parts = n_signature_words(plan.bits)
        mass = document_mass(plan.component, content.data, content.indptr)
        self.documents = Documents(
            content.indptr.astype(np.int64),
            np.ascontiguousarray(content.indices, dtype=np.int32),
            np.ascontiguousarray(content.data, dtype=np.int32),
            mass,
            np.zeros((corpus.n_documents, n_parts), np.uint64),
            np.zeros(corpus.n_documents, np.float32),
        )
        small = np.arange(_TABLE)
        slack = 0.0
        if plan.failure_probability is not None:
            slack = math.sqrt(math.log(plan.n_clusters / plan.failure_probability) / (2.0 * plan.bits))
        self.constants = Constants(
            component=plan.component,
            n_words=corpus.n_words,
            shift=np.uint64(count_bits(plan.n_clusters, corpus.n_words, int(self.word_totals.max(initial=0)))),
            word_prior=plan.word_prior,
            weight_prior=plan.weight_prior,
            rate_prior=plan.rate_prior,
            half_length=0.5 * float(mass.mean()) if plan.is_balanced else 0.0,
            norm_unit=1.0,
            bits=plan.bits,
            slack=slack,
            flatness=plan.flatness,
            tries=plan.tries,
            log_gamma=gammaln(small + plan.word_prior),
            theta=(small if plan.component == GAUSSIAN else np.log1p(small / plan.word_prior)).astype(np.float32),
        )
        self.flatness = plan.flatness
        self._count(mass)
        if aim is not None:
            self.centre, self.scale, self.flatness = aim
            self._project()
            self.constants = self.constants._replace(flatness=self.flatness)
        elif plan.is_balanced:
            self.aim()
        else:
            self.centre = np.zeros(corpus.n_words, np.float32)
            self.scale = np.ones(corpus.n_words, np.float32)
            self._project()

    def _count(self, mass: np.ndarray) -> None:
        n_clusters, n_parts = self.plan.n_clusters, self.documents.signature.shape[1]
        size = padded(n_clusters)
        self.clusters = Clusters(
            n_k=np.bincount(self.cluster, minlength=n_clusters).astype(np.int64),
            mass=np.bincount(self.cluster, weights=mass, minlength=n_clusters).astype(np.int64),
            squares=np.zeros(n_clusters, np.int64),
            sums=np.zeros((n_clusters, n_parts * WORD_BITS), np.int32),
            total=np.zeros(n_clusters, np.int64),
            square=np.zeros(n_clusters, np.int64),
            overlap=np.zeros(n_clusters, np.int64),
            columns=Columns(
                np.zeros((n_parts, size), np.uint64),
                np.zeros(size, np.float32),
                np.full(size, NO_CLUSTER, np.float32),
                np.zeros(size, np.float32),
            ),
        )
        self.slots = empty_table(0)
        self.used = np.zeros(1, np.int64)
        first = 0
        while True:
            first = _count_documents(
                self.documents, self.constants.shift, self.constants.n_words, self.slots, self.used, self.cluster, first
            )
            if first == len(self.cluster):
                break
            self.make_room(first)
        _squares(self.slots, self.constants, self.clusters.squares)

    def make_room(self, j: int) -> None:
        """Let the table take in document j's words as new cells."""
        words = int(self.documents.indptr[j + 1] - self.documents.indptr[j])
        self.slots = grown(self.slots, self.constants.shift, int(self.used[0]) + words)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One move for each document; ``moves`` (2,) int64: other clusters proposed, and accepted, are added to it."""
        if self.plan.documents_per_round == 1:
            self._sweep_in_order(key, moves)
        else:
            self._sweep_in_rounds(key, moves, pool)
        self.slots = shrunk(self.slots, self.constants.shift, int(self.used[0]))

    def _sweep_in_order(self, key: np.uint64, moves: np.ndarray) -> None:
        first = 0
        while True:
            first = sweep(
                key, first, self.documents, self.clusters, self.projection, self.constants,
                self.slots, self.used, self.cluster, moves,
            )  # fmt: skip
            if first == len(self.cluster):
                return
            self.make_room(first)

    def _sweep_in_rounds(self, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        """A sweep by many samplers and one updater (NIPS12 section 5).

        The documents of a round are sampled at once, from the statistics at its start; then the updater carries out
        their moves, one by one. What comes out depends on the size of a round, but not on the number of threads.
        """
        chosen = np.empty_like(self.cluster)
        shared = self.documents, self.clusters, self.projection, self.constants

        def sample(start: int, first: int, last: int) -> np.ndarray:
            proposed = np.zeros(2, np.int64)
            choose_all(key, start + first, start + last, *shared, self.slots, self.cluster, chosen, proposed)
            return proposed

        round_size = self.plan.documents_per_round
        for start in range(0, len(self.cluster), round_size):
            stop = min(start + round_size, len(self.cluster))
            for proposed in in_blocks(pool, partial(sample, start), stop - start, _SAMPLED_TOGETHER):
                moves += proposed
            while (
                start := apply_moves(start, stop, *shared, self.slots, self.used, self.cluster, chosen, moves)
            ) < stop:
                self.make_room(start)

    @property
    def sizes(self) -> np.ndarray:
        """(K,) int64: documents of each cluster."""
        return self.clusters.n_k

    def aim(self) -> None:
        """Fit the balanced projection to the clusters as they are now, and project anew.

        c is the mean of theta over clusters (Gaussian: 0), and g**4 the ratio of its variance to the documents' mean
        square count. With it the error of the hashed product is in proportion to the sum over words of the product of
        both standard deviations (the noise), while a word helps by the mean of x_jd (theta_kd - c_d) in the document's
        own cluster k, without the document (the signal). Words enter in order of signal / noise while
        (signal - SIGNAL) / noise,
        summed over words, rises; the others have scale 0. They still count in the exact acceptance. Then the flatness
        is fitted: how much a nat of the proposal's score says of the exact log likelihood. Among clusters drawn at
        random it is next to nothing, and proposals are nearly uniform; of clusters that stand apart, it is a lot.
        """
        n_words, n_clusters, n_documents = self.constants.n_words, self.plan.n_clusters, len(self.cluster)
        factor = np.empty(n_clusters)
        _factors(self.constants, np.zeros(BACKGROUND_SIZE), self.clusters, factor)
        first, second = np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
        _moments(self.slots, self.constants, factor, first, second)
        mean = first / (_MOMENT_UNIT * n_clusters)
        variance = np.maximum(second / (_MOMENT_UNIT * n_clusters) - mean**2, 1e-6)
        counts = self.documents.counts.astype(np.float64)
        spread = np.bincount(self.documents.words, weights=counts**2, minlength=n_words) / n_documents
        agreement = np.zeros(n_words)
        _agreement(self.documents, self.slots, self.constants, factor, self.cluster, agreement)
        seen = np.flatnonzero(self.word_totals)
        signal = (agreement[seen] - mean[seen] * self.word_totals[seen]) / n_documents
        noise = np.sqrt(variance[seen] * spread[seen])
        order = np.argsort(-signal / noise, kind="stable")
        gain = (np.cumsum(signal[order]) - SIGNAL) / np.cumsum(noise[order])
        kept = seen[order[: np.argmax(gain) + 1]]
        self.centre = np.zeros(n_words, np.float32)
        self.scale = np.zeros(n_words, np.float32)
        if self.plan.component != GAUSSIAN:  # whose theta_k share no c: they come with factors of their own
            self.centre[kept] = mean[kept]
        self.scale[kept] = (variance[kept] / spread[kept]) ** 0.25
        self._project()
        self.constants = self.constants._replace(flatness=1.0)
        step = -(-n_documents // _TRUSTED_DOCUMENTS)
        data = self.documents, self.clusters, self.projection, self.constants, self.slots, self.cluster
        self.flatness = float(np.clip(trust(*data, step, _TRUSTED_CLUSTERS), LEAST_FLATNESS, self.plan.flatness))
        self.constants = self.constants._replace(flatness=self.flatness)

    def _project(self) -> None:
        """Recompute all that is hashed of documents and clusters from ``centre`` and ``scale``."""
        clusters, documents = self.clusters, self.documents
        is_used = self.scale > 0
        gaussian = self.plan.component == GAUSSIAN
        largest = self.word_totals if gaussian else np.log1p(self.word_totals / self.plan.word_prior)
        reach = np.maximum(np.abs(self.centre), np.abs(largest - self.centre))
        inverse = np.divide(1.0, self.scale, out=np.zeros(len(self.scale)), where=is_used)
        unit = _GRID / max(float(reach @ inverse), 1e-300)
        frequency, background = np.zeros(len(self.scale)), np.zeros(BACKGROUND_SIZE)
        if self.plan.is_balanced:
            all_mass = max(int(documents.mass.sum()), 1)
            frequency = self.word_totals / all_mass
            left_out = self.word_totals[~is_used & (self.word_totals > 0)]
            background = expected_background(self.plan.component, self.plan.word_prior, left_out, all_mass)
        grid = (unit * inverse).astype(np.float32)
        self.projection = Projection(self.centre, grid, frequency * OVERLAP_UNIT, background)
        self.constants = self.constants._replace(norm_unit=1.0 / unit)
        shape = len(self.cluster), len(self.scale)
        content = sp.csr_matrix((documents.counts, documents.words, documents.indptr), shape=shape)
        heaviest = float((content @ self.scale.astype(np.float64)).max(initial=0.0))
        _project_documents(documents, self.scale, _GRID / max(heaviest, 1e-300), frequency, self.plan.bits)
        empty = np.zeros(clusters.sums.shape[1], np.int32)
        clusters.total[:], clusters.square[:] = _project_empty(self.projection, empty)
        clusters.sums[:] = empty
        clusters.overlap[:] = 0
        _project_cells(self.slots, self.constants, self.projection, clusters)

    @property
    def log_joint(self) -> float:
        """ln p(x, y) in nats, weights and cluster parameters integrated out (Poisson: less ln x!)."""
        cells = _log_cells(self.slots, self.constants) / JOINT_UNIT
        sizes = self.clusters.n_k, self.clusters.mass, self.clusters.squares
        return log_joint_of_sizes(self.plan, self.constants.n_words, len(self.cluster), *sizes) + cells

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "cluster": self.cluster,
            "centre": self.centre,
            "scale": self.scale,
            "flatness": np.array(self.flatness),
        }
