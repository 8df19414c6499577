"""Hashed proposals of FastEx: proposals from bit signatures, and exact acceptance (NIPS12 section 3, docs/model.md).

Let theta_kd = ln(1 + n_kd / a) be the parameter of word d in cluster k, relative to a word that does not occur in the
cluster. The log likelihood of a document x is approximately <x, theta_k> minus a scalar of the cluster. The proposal
approximates the inner product by the norms and by the angle between two signatures (eq. 14). There are two projections,
which determine the hashed vectors:

* "paper": x and theta_k.
* "balanced": (x - n_x p) g and (theta_k - c) / g. Here p are the word frequencies of the corpus, c_d is the mean of
  theta_kd, and g_d**4 is the ratio of the variance of theta_kd to the mean square of x_d. This approximates the same
  inner product, because sum_d (x_d - n_x p_d) c_d is equal for all clusters, and n_x <p, theta_k> is computed exactly.
  Its error is smaller, because the norms are smaller. Words that hardly differ between clusters are not hashed. Their
  expected contribution is computed from p and the size of the cluster (``background``).

The proposal must not depend on the current cluster of the document. Therefore, the document is removed from the counts,
sums, norm and signature of its cluster before a cluster is drawn. Metropolis-Hastings (eq. 17) with the collapsed
likelihood (eq. 18) then leaves the posterior invariant, if c, g and the hash do not depend on the assignments of this
sweep.

All cached values of a cluster are integers, because coordinates are rounded to a grid before they are summed. So adding
and removing documents in any order gives identical sums, without rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from mc2core.base.storage import Stored
from mc2core.compute.signatures import n_signature_words, signs_of_words
from mc2core.compute.simd import NO_CLUSTER, WORD_BITS
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.fastex import hashed_kernels as kernels
from mc2core.inference.fastex.components import (
    BACKGROUND_SIZE,
    GAUSSIAN,
    OVERLAP_UNIT,
    ChainSettings,
    document_columns,
    expected_background,
)
from mc2core.inference.fastex.limits import hashed_bytes, refuse_scores
from mc2core.inference.fastex.sparse_counts import (
    N_TABULATED,
    CountedState,
    evidence_constants,
)

_SAMPLE_BLOCK = 125  # number of documents per task within a round
_MAX_COORDINATE_SUM = 2.0**29  # upper limit of sums of coordinates, so that 32 bits suffice
#: required score of the current cluster from the hashed words, relative to the mean over clusters, in nats per document
REQUIRED_SIGNAL = 25.0
_CALIBRATION_DOCUMENTS, _CALIBRATION_CLUSTERS = 100, 50
#: the balanced projection is fitted again after these sweeps, and is fixed after the last one
FIT_PROJECTION_AFTER = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32)
#: smallest power to which the proposal distribution is raised
MIN_INVERSE_TEMPERATURE = 1e-3


class HashedState(CountedState):
    """State with hashed proposals: assignments, the projection, and hashed data of documents and clusters.

    Attributes
    ----------
    centre, scale : (V,) float32
        c_d and g_d of the balanced projection; zeros and ones for the projection of the paper. Words with scale 0 are
        not hashed.
    inverse_temperature : float
        Power to which the proposal distribution is raised. With the balanced projection, it is the slope computed by
        :func:`.hashed_kernels.calibrate`, but at most the setting of the engine.
    projection : arrays by which kernels project word parameters to integer coordinates
    """

    proposal = "hash"
    described: ClassVar[Mapping[str, Stored]] = {
        "centre": Stored("f", "V"),
        "scale": Stored("f", "V"),
        "inverse_temperature": Stored("f", ""),
    }

    def __init__(
        self,
        corpus: Corpus,
        settings: ChainSettings,
        cluster: np.ndarray,
        projection_fit: tuple[np.ndarray, np.ndarray, float] | None = None,
    ) -> None:
        super().__init__(corpus, settings, cluster)
        content = corpus.content
        self.word_totals = np.bincount(content.indices, weights=content.data, minlength=corpus.n_words).astype(np.int64)
        n_parts = n_signature_words(settings.bits)
        self.documents = kernels.HashedDocuments(
            **document_columns(corpus, settings.component),
            signature=np.zeros((corpus.n_documents, n_parts), np.uint64),
            norm=np.zeros(corpus.n_documents, np.float32),
        )
        mass, small, slack = self.documents.mass, np.arange(N_TABULATED), 0.0
        if settings.failure_probability is not None:
            slack = math.sqrt(math.log(settings.n_clusters / settings.failure_probability) / (2.0 * settings.bits))
        self.constants = kernels.HashedConstants(
            **evidence_constants(corpus, settings),
            half_length=0.5 * float(mass.mean()) if settings.is_balanced else 0.0,
            norm_unit=1.0,
            bits=settings.bits,
            slack=slack,
            inverse_temperature=settings.inverse_temperature,
            n_proposals=settings.n_proposals,
            theta=(small if settings.component == GAUSSIAN else np.log1p(small / settings.topic_word_prior)).astype(
                np.float32
            ),
        )
        self.inverse_temperature = settings.inverse_temperature
        self._sum_up()
        if projection_fit is not None:
            self.centre, self.scale, self.inverse_temperature = projection_fit
            self._project()
            self.constants = self.constants._replace(inverse_temperature=self.inverse_temperature)
        elif settings.is_balanced:
            self.fit_projection()
        else:
            self.centre = np.zeros(corpus.n_words, np.float32)
            self.scale = np.ones(corpus.n_words, np.float32)
            self._project()

    @classmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        return hashed_bytes(settings.n_clusters, settings.bits)

    @classmethod
    def restore(cls, corpus: Corpus, settings: ChainSettings, arrays: Mapping[str, np.ndarray]) -> Self:
        centre, scale = (arrays[name].astype(np.float32) for name in ("centre", "scale"))
        return cls(corpus, settings, arrays["cluster"], (centre, scale, float(arrays["inverse_temperature"])))

    def _sum_up(self) -> None:
        """Compute the statistics of the clusters from the current assignments, without hashed parameters."""
        n_clusters, n_parts = self.settings.n_clusters, self.documents.signature.shape[1]
        size = kernels.padded(n_clusters)
        self.clusters = kernels.HashedClusters(
            n_k=np.bincount(self.cluster, minlength=n_clusters).astype(np.int64),
            mass=np.bincount(self.cluster, weights=self.documents.mass, minlength=n_clusters).astype(np.int64),
            squares=np.zeros(n_clusters, np.int64),
            sums=np.zeros((n_clusters, n_parts * WORD_BITS), np.int32),
            total=np.zeros(n_clusters, np.int64),
            square=np.zeros(n_clusters, np.int64),
            overlap=np.zeros(n_clusters, np.int64),
            columns=kernels.Columns(
                np.zeros((n_parts, size), np.uint64),
                np.zeros(size, np.float32),
                np.full(size, NO_CLUSTER, np.float32),
                np.zeros(size, np.float32),
            ),
        )
        self._count()
        kernels.add_squares(self.slots, self.constants, self.clusters.squares)

    @property
    def chain(self) -> kernels.HashedChain:
        return kernels.HashedChain(self.documents, self.clusters, self.projection, self.constants)

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        if self.settings.documents_per_round == 1:
            self._go_through(0, len(self.cluster), lambda first: kernels.sweep(key, first, *self._data, moves))
        else:
            self._sweep_in_rounds(key, moves, pool)
        self._shrink()

    def iterate(self, corpus: Corpus, iteration: int, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        super().iterate(corpus, iteration, key, moves, pool)
        if self.settings.is_balanced and iteration in FIT_PROJECTION_AFTER:
            self.fit_projection()

    def _sweep_in_rounds(self, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        """Run a sweep with many samplers and one updater (NIPS12 section 5). This sweep is approximate.

        The clusters of all documents of a round are sampled from the statistics at the start of the round. The updater
        then moves the documents one by one. So documents of a round ignore each other's moves, and the stationary
        distribution of the chain is not the posterior. It depends on the size of a round, but not on the number of
        threads.
        """
        chosen, chain = np.empty_like(self.cluster), self.chain

        def sample(start: int, first: int, last: int) -> np.ndarray:
            proposed = np.zeros(2, np.int64)
            blocks = key, start + first, start + last
            self._refuse_unfinished(kernels.choose_all(*blocks, chain, self.slots, self.cluster, chosen, proposed))
            return proposed

        round_size = self.settings.documents_per_round
        for start in range(0, len(self.cluster), round_size):
            stop = min(start + round_size, len(self.cluster))
            for proposed in in_blocks(pool, partial(sample, start), stop - start, _SAMPLE_BLOCK):
                moves[:] += proposed

            def carry(first: int, stop: int = stop) -> int:
                return kernels.apply_moves(first, stop, *self._data, chosen, moves)

            self._go_through(start, stop, carry)

    def fit_projection(self) -> None:
        """Fit the balanced projection to the current clusters, and project documents and clusters again.

        c_d is the mean of theta_kd over clusters (Gaussian: 0). g_d**4 is the ratio of the variance of theta_kd to the
        mean square count of the word. The *noise* of a word is the square root of the product of these two numbers. The
        error of the hashed inner product is proportional to the sum of noise over words. The *signal* of a word is the
        mean of x_jd (theta_kd - c_d) over documents j, where k is the cluster of j without the document. Words are
        added in descending order of signal / noise, up to the maximum of (total signal - REQUIRED_SIGNAL) / total
        noise. All other words get scale 0; they are used only for the exact acceptance.

        Finally, the inverse_temperature is set to the slope of the exact log evidence on the proposal score. For random
        clusters, the slope is nearly 0, so proposals are nearly uniform. For well-separated clusters, it is large.
        """
        n_words, n_clusters, n_documents = self.constants.n_words, self.settings.n_clusters, len(self.cluster)
        factor = np.empty(n_clusters)
        kernels.fill_factors(self.constants, np.zeros(BACKGROUND_SIZE), self.clusters, factor)
        first, second = np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
        kernels.add_moments(self.slots, self.constants, factor, first, second)
        mean = first / (kernels.MOMENT_UNIT * n_clusters)
        variance = np.maximum(second / (kernels.MOMENT_UNIT * n_clusters) - mean**2, 1e-6)
        counts = self.documents.counts.astype(np.float64)
        spread = np.bincount(self.documents.words, weights=counts**2, minlength=n_words) / n_documents
        agreement = np.zeros(n_words)
        kernels.add_agreement(self.documents, self.slots, self.constants, factor, self.cluster, agreement)
        seen = np.flatnonzero(self.word_totals)
        signal = (agreement[seen] - mean[seen] * self.word_totals[seen]) / n_documents
        noise = np.sqrt(variance[seen] * spread[seen])
        order = np.argsort(-signal / noise, kind="stable")
        gain = (np.cumsum(signal[order]) - REQUIRED_SIGNAL) / np.cumsum(noise[order])
        kept = seen[order[: np.argmax(gain) + 1]]
        self.centre = np.zeros(n_words, np.float32)
        self.scale = np.zeros(n_words, np.float32)
        if self.settings.component != GAUSSIAN:  # in the Gaussian score, theta_k has a factor that depends on k
            self.centre[kept] = mean[kept]
        self.scale[kept] = (variance[kept] / spread[kept]) ** 0.25
        self._project()
        self.constants = self.constants._replace(inverse_temperature=1.0)
        step = -(-n_documents // _CALIBRATION_DOCUMENTS)
        data = self.documents, self.clusters, self.projection, self.constants, self.slots, self.cluster
        slope = kernels.calibrate(*data, step, _CALIBRATION_CLUSTERS)
        if not math.isfinite(slope):
            refuse_scores(self.settings, "a document")
        self.inverse_temperature = float(np.clip(slope, MIN_INVERSE_TEMPERATURE, self.settings.inverse_temperature))
        self.constants = self.constants._replace(inverse_temperature=self.inverse_temperature)

    def _project(self) -> None:
        """Recompute all hashed data of documents and clusters from ``centre`` and ``scale``."""
        clusters, documents = self.clusters, self.documents
        is_used = self.scale > 0
        gaussian = self.settings.component == GAUSSIAN
        largest = self.word_totals if gaussian else np.log1p(self.word_totals / self.settings.topic_word_prior)
        reach = np.maximum(np.abs(self.centre), np.abs(largest - self.centre))
        inverse = np.divide(1.0, self.scale, out=np.zeros(len(self.scale)), where=is_used)
        unit = _MAX_COORDINATE_SUM / max(float(reach @ inverse), 1e-300)
        frequency, background = np.zeros(len(self.scale)), np.zeros(BACKGROUND_SIZE)
        if self.settings.is_balanced:
            all_mass = max(int(documents.mass.sum()), 1)
            frequency = self.word_totals / all_mass
            left_out = self.word_totals[~is_used & (self.word_totals > 0)]
            background = expected_background(
                self.settings.component, self.settings.topic_word_prior, left_out, all_mass
            )
        grid = (unit * inverse).astype(np.float32)
        signs = signs_of_words(len(self.scale), self.settings.bits)
        self.projection = kernels.Projection(self.centre, grid, frequency * OVERLAP_UNIT, background, signs)
        self.constants = self.constants._replace(norm_unit=1.0 / unit)
        shape = len(self.cluster), len(self.scale)
        content = sp.csr_matrix((documents.counts, documents.words, documents.indptr), shape=shape)
        heaviest = float((content @ self.scale.astype(np.float64)).max(initial=0.0))
        kernels.project_documents(
            documents, signs, self.scale, _MAX_COORDINATE_SUM / max(heaviest, 1e-300), frequency, self.settings.bits
        )
        empty = np.zeros(clusters.sums.shape[1], np.int32)
        clusters.total[:], clusters.square[:] = kernels.project_empty(self.projection, empty)
        clusters.sums[:] = empty
        clusters.overlap[:] = 0
        kernels.project_cells(self.slots, self.constants, self.projection, clusters)
        for column in (clusters.columns.norm, clusters.columns.constant, clusters.columns.slope):
            usable = np.abs(column[: self.settings.n_clusters]) < kernels.MAX_COLUMN_ENTRY
            if not usable.all():
                refuse_scores(self.settings, f"cluster {np.argmin(usable)}")

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {
            "centre": self.centre,
            "scale": self.scale,
            "inverse_temperature": np.array(self.inverse_temperature),
        }
