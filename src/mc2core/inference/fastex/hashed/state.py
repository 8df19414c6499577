"""What a FastEx chain carries: assignments, the sparse counts, and the projection with all that is cached for it."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import partial

import numpy as np
import scipy.sparse as sp

from mc2core.compute.signatures import WORD_BITS, n_signature_words
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.base import State
from mc2core.inference.fastex.components import (
    BACKGROUND_SIZE,
    GAUSSIAN,
    OVERLAP_UNIT,
    Constants,
    Settings,
    expected_background,
    log_joint_of_sizes,
)
from mc2core.inference.fastex.evidence import N_TABULATED, document_columns, evidence_constants
from mc2core.inference.fastex.hashed.moves import MAX_COLUMN_ENTRY, Clusters, Columns, Documents, Projection, calibrate
from mc2core.inference.fastex.hashed.passes import (
    JOINT_UNIT,
    MOMENT_UNIT,
    add_agreement,
    add_moments,
    add_squares,
    count_documents,
    fill_factors,
    log_cells,
    project_cells,
    project_documents,
    project_empty,
)
from mc2core.inference.fastex.hashed.proposal import padded
from mc2core.inference.fastex.hashed.simd import NO_CLUSTER
from mc2core.inference.fastex.hashed.sweep import Chain, apply_moves, choose_all, sweep
from mc2core.inference.fastex.limits import refuse_scores
from mc2core.inference.fastex.sparse_counts import empty_table, grown, shrunk

_SAMPLE_BLOCK = 125  # documents of a round that one thread takes at a time
_MAX_COORDINATE_SUM = 2.0**29  # no sum of coordinates exceeds this many grid points, so 32 bits hold it
#: nats by which a document's own cluster must stand out in the words that are hashed
REQUIRED_SIGNAL = 25.0
_CALIBRATION_DOCUMENTS, _CALIBRATION_CLUSTERS = 100, 50
#: least power to which the proposal is raised, whatever its scores say of the exact ones
MIN_FLATNESS = 1e-3


class FastExState(State):
    """Assignments of a FastEx chain and the caches that follow from them and from the projection.

    Attributes
    ----------
    cluster : (J,) int32
    centre, scale : (V,) float32
        c_d and g_d of the balanced projection (zeros and ones for the paper's); scale 0 leaves a word out.
    flatness : float
        Power of the proposal: at most the plan's; in the balanced projection the slope that :func:`calibrate` finds.
    documents, clusters, projection, constants : what kernels read, see :mod:`mc2core.inference.fastex.hashed.moves`
    slots, used : the table of counts and its number of non-zero cells, see
    :mod:`mc2core.inference.fastex.sparse_counts`
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        cluster: np.ndarray,
        projection_fit: tuple[np.ndarray, np.ndarray, float] | None = None,
    ) -> None:
        content = corpus.content
        self.settings = settings
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)
        self.word_totals = np.bincount(content.indices, weights=content.data, minlength=corpus.n_words).astype(np.int64)
        n_parts = n_signature_words(settings.bits)
        self.documents = Documents(
            **document_columns(corpus, settings.component),
            signature=np.zeros((corpus.n_documents, n_parts), np.uint64),
            norm=np.zeros(corpus.n_documents, np.float32),
        )
        mass, small, slack = self.documents.mass, np.arange(N_TABULATED), 0.0
        if settings.failure_probability is not None:
            slack = math.sqrt(math.log(settings.n_clusters / settings.failure_probability) / (2.0 * settings.bits))
        self.constants = Constants(
            **evidence_constants(corpus, settings),
            half_length=0.5 * float(mass.mean()) if settings.is_balanced else 0.0,
            norm_unit=1.0,
            bits=settings.bits,
            slack=slack,
            flatness=settings.flatness,
            tries=settings.tries,
            theta=(small if settings.component == GAUSSIAN else np.log1p(small / settings.word_prior)).astype(
                np.float32
            ),
        )
        self.flatness = settings.flatness
        self._count(mass)
        if projection_fit is not None:
            self.centre, self.scale, self.flatness = projection_fit
            self._project()
            self.constants = self.constants._replace(flatness=self.flatness)
        elif settings.is_balanced:
            self.fit_projection()
        else:
            self.centre = np.zeros(corpus.n_words, np.float32)
            self.scale = np.ones(corpus.n_words, np.float32)
            self._project()

    def _count(self, mass: np.ndarray) -> None:
        n_clusters, n_parts = self.settings.n_clusters, self.documents.signature.shape[1]
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
            first = count_documents(
                self.documents, self.constants.shift, self.constants.n_words, self.slots, self.used, self.cluster, first
            )
            if first == len(self.cluster):
                break
            self.make_room(first)
        add_squares(self.slots, self.constants, self.clusters.squares)

    @property
    def chain(self) -> Chain:
        """What kernels take together."""
        return Chain(self.documents, self.clusters, self.projection, self.constants)

    def make_room(self, j: int) -> None:
        """Let the table take in document j's words as new cells."""
        words = int(self.documents.indptr[j + 1] - self.documents.indptr[j])
        self.slots = grown(self.slots, self.constants.shift, int(self.used[0]) + words)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One move for each document; ``moves`` (2,) int64: other clusters proposed, and accepted, are added to it.

        ValueError, with the document, where scores are not finite.
        """
        if self.settings.documents_per_round == 1:
            self._sweep_in_order(key, moves)
        else:
            self._sweep_in_rounds(key, moves, pool)
        self.slots = shrunk(self.slots, self.constants.shift, int(self.used[0]))

    def _sweep_in_order(self, key: np.uint64, moves: np.ndarray) -> None:
        first = 0
        while True:
            first = sweep(key, first, self.chain, self.slots, self.used, self.cluster, moves)
            self._refuse(first)
            if first == len(self.cluster):
                return
            self.make_room(first)

    def _refuse(self, done: int) -> None:
        """ValueError where a kernel gave up at document -1 - ``done``."""
        if done < 0:
            refuse_scores(self.settings, f"document {-1 - done}")

    def _sweep_in_rounds(self, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        """A sweep by many samplers and one updater (NIPS12 section 5), which is approximate.

        The documents of a round are sampled at once, from the statistics at its start; then the updater carries out
        their moves, one by one. So documents of a round do not see each other's moves, and the chain's stationary
        distribution is not the posterior. It depends on the size of a round, but not on the number of threads.
        """
        chosen, chain = np.empty_like(self.cluster), self.chain

        def sample(start: int, first: int, last: int) -> np.ndarray:
            proposed = np.zeros(2, np.int64)
            blocks = key, start + first, start + last
            self._refuse(choose_all(*blocks, chain, self.slots, self.cluster, chosen, proposed))
            return proposed

        round_size = self.settings.documents_per_round
        for start in range(0, len(self.cluster), round_size):
            stop = min(start + round_size, len(self.cluster))
            for proposed in in_blocks(pool, partial(sample, start), stop - start, _SAMPLE_BLOCK):
                moves += proposed
            while (start := apply_moves(start, stop, chain, self.slots, self.used, self.cluster, chosen, moves)) < stop:
                self._refuse(start)
                self.make_room(start)

    @property
    def sizes(self) -> np.ndarray:
        """(K,) int64: documents of each cluster."""
        return self.clusters.n_k

    def fit_projection(self) -> None:
        """Fit the balanced projection to the clusters as they are now, and project anew.

        c is the mean of theta over clusters (Gaussian: 0), and g**4 the ratio of its variance to the documents' mean
        square count. With it the error of the hashed product is in proportion to the sum over words of the product of
        both standard deviations (the noise), while a word helps by the mean of x_jd (theta_kd - c_d) in the document's
        own cluster k, without the document (the signal). Words enter in order of signal / noise while
        (signal - REQUIRED_SIGNAL) / noise, summed over words, rises; the others have scale 0. They
        still count in the exact acceptance. Then the flatness is fitted: the slope of the exact log likelihood over
        the proposal's score. Among clusters drawn at random it is nearly 0, and so proposals are nearly uniform; of
        clusters that stand apart, it is large.
        """
        n_words, n_clusters, n_documents = self.constants.n_words, self.settings.n_clusters, len(self.cluster)
        factor = np.empty(n_clusters)
        fill_factors(self.constants, np.zeros(BACKGROUND_SIZE), self.clusters, factor)
        first, second = np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
        add_moments(self.slots, self.constants, factor, first, second)
        mean = first / (MOMENT_UNIT * n_clusters)
        variance = np.maximum(second / (MOMENT_UNIT * n_clusters) - mean**2, 1e-6)
        counts = self.documents.counts.astype(np.float64)
        spread = np.bincount(self.documents.words, weights=counts**2, minlength=n_words) / n_documents
        agreement = np.zeros(n_words)
        add_agreement(self.documents, self.slots, self.constants, factor, self.cluster, agreement)
        seen = np.flatnonzero(self.word_totals)
        signal = (agreement[seen] - mean[seen] * self.word_totals[seen]) / n_documents
        noise = np.sqrt(variance[seen] * spread[seen])
        order = np.argsort(-signal / noise, kind="stable")
        gain = (np.cumsum(signal[order]) - REQUIRED_SIGNAL) / np.cumsum(noise[order])
        kept = seen[order[: np.argmax(gain) + 1]]
        self.centre = np.zeros(n_words, np.float32)
        self.scale = np.zeros(n_words, np.float32)
        if self.settings.component != GAUSSIAN:  # whose theta_k share no c: they come with factors of their own
            self.centre[kept] = mean[kept]
        self.scale[kept] = (variance[kept] / spread[kept]) ** 0.25
        self._project()
        self.constants = self.constants._replace(flatness=1.0)
        step = -(-n_documents // _CALIBRATION_DOCUMENTS)
        data = self.documents, self.clusters, self.projection, self.constants, self.slots, self.cluster
        slope = calibrate(*data, step, _CALIBRATION_CLUSTERS)
        if not math.isfinite(slope):
            refuse_scores(self.settings, "a document")
        self.flatness = float(np.clip(slope, MIN_FLATNESS, self.settings.flatness))
        self.constants = self.constants._replace(flatness=self.flatness)

    def _project(self) -> None:
        """Recompute all that is hashed of documents and clusters from ``centre`` and ``scale``."""
        clusters, documents = self.clusters, self.documents
        is_used = self.scale > 0
        gaussian = self.settings.component == GAUSSIAN
        largest = self.word_totals if gaussian else np.log1p(self.word_totals / self.settings.word_prior)
        reach = np.maximum(np.abs(self.centre), np.abs(largest - self.centre))
        inverse = np.divide(1.0, self.scale, out=np.zeros(len(self.scale)), where=is_used)
        unit = _MAX_COORDINATE_SUM / max(float(reach @ inverse), 1e-300)
        frequency, background = np.zeros(len(self.scale)), np.zeros(BACKGROUND_SIZE)
        if self.settings.is_balanced:
            all_mass = max(int(documents.mass.sum()), 1)
            frequency = self.word_totals / all_mass
            left_out = self.word_totals[~is_used & (self.word_totals > 0)]
            background = expected_background(self.settings.component, self.settings.word_prior, left_out, all_mass)
        grid = (unit * inverse).astype(np.float32)
        self.projection = Projection(self.centre, grid, frequency * OVERLAP_UNIT, background)
        self.constants = self.constants._replace(norm_unit=1.0 / unit)
        shape = len(self.cluster), len(self.scale)
        content = sp.csr_matrix((documents.counts, documents.words, documents.indptr), shape=shape)
        heaviest = float((content @ self.scale.astype(np.float64)).max(initial=0.0))
        project_documents(
            documents, self.scale, _MAX_COORDINATE_SUM / max(heaviest, 1e-300), frequency, self.settings.bits
        )
        empty = np.zeros(clusters.sums.shape[1], np.int32)
        clusters.total[:], clusters.square[:] = project_empty(self.projection, empty)
        clusters.sums[:] = empty
        clusters.overlap[:] = 0
        project_cells(self.slots, self.constants, self.projection, clusters)
        for column in (clusters.columns.norm, clusters.columns.constant, clusters.columns.slope):
            usable = np.abs(column[: self.settings.n_clusters]) < MAX_COLUMN_ENTRY
            if not usable.all():
                refuse_scores(self.settings, f"cluster {np.argmin(usable)}")

    @property
    def log_joint(self) -> float:
        """ln p(x, y) in nats, weights and cluster parameters integrated out (Poisson: less ln x!)."""
        cells = log_cells(self.slots, self.constants) / JOINT_UNIT
        sizes = self.clusters.n_k, self.clusters.mass, self.clusters.squares
        return log_joint_of_sizes(self.settings, self.constants.n_words, len(self.cluster), *sizes) + cells

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "cluster": self.cluster,
            "centre": self.centre,
            "scale": self.scale,
            "flatness": np.array(self.flatness),
        }
