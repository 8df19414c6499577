"""What a chain of neighbour proposals carries: assignments, the graph and the sparse counts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from mc2core.base import memory
from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.inference.base import State
from mc2core.inference.fastex.components import Settings, log_joint_of_sizes
from mc2core.inference.fastex.evidence import document_columns, evidence_constants
from mc2core.inference.fastex.exact import ExactState
from mc2core.inference.fastex.hashed.passes import JOINT_UNIT, count_documents, log_cells
from mc2core.inference.fastex.limits import refuse_scores
from mc2core.inference.fastex.neighbours.graph import index_bytes
from mc2core.inference.fastex.neighbours.visits import (
    Chain,
    Constants,
    Documents,
    Round,
    Sizes,
    carry_out,
    choose_ahead,
    sweep,
)
from mc2core.inference.fastex.sparse_counts import MAX_BYTES_PER_CELL, empty_table, grown, shrunk
from mc2core.inference.fastex.tables import BYTES_PER_CLUSTER, table_bytes

_ROUND = 1000  # documents that several threads choose for before their moves are carried out
_BLOCK = 125  # documents of a round that one thread takes at a time


@dataclass(frozen=True)
class Visits:
    """Settings of neighbour proposals; see :class:`mc2core.inference.fastex.engine.FastEx`."""

    n_neighbours: int
    list_budget: int
    tries: int
    uniform_share: float
    exact_sweeps: tuple[int, ...]


def bytes_needed(corpus: Corpus, n_clusters: int, visits: Visits) -> dict[str, int]:
    """Most bytes beside the corpus, by what takes them; index, counts and tables of exact sweeps in turn."""
    content = corpus.content
    return {
        "graph": 4 * visits.n_neighbours * corpus.n_documents,
        "index": index_bytes(content),
        "counts": MAX_BYTES_PER_CELL * content.nnz + 24 * n_clusters,
        "exact": table_bytes(corpus, n_clusters) + BYTES_PER_CLUSTER * n_clusters if visits.exact_sweeps else 0,
    }


def refuse_beyond_memory(corpus: Corpus, n_clusters: int, visits: Visits) -> None:
    """ValueError where there is no memory for a chain of this corpus, with what takes less."""
    parts = bytes_needed(corpus, n_clusters, visits)
    largest = max(parts, key=lambda one: parts[one])
    remedy = {"graph": "use a smaller n_neighbours", "exact": "use exact_sweeps=[] or fewer clusters"}
    n_bytes = parts.pop("graph") + max(parts.values())
    what = f"proposal='neighbours' with {corpus.n_documents} documents and {n_clusters} clusters"
    memory.need(n_bytes, what, remedy.get(largest, "use fewer documents"))


class NeighbourState(State):
    """Assignments, the graph and the counts of words in clusters.

    Attributes
    ----------
    cluster : (J,) int32
    chain : Chain, what kernels read, the graph among it
    slots, used : the table of counts and its number of non-zero cells, see
    :mod:`mc2core.inference.fastex.sparse_counts`
    redone : documents of all sweeps on several threads for which a choice made ahead did not hold
    """

    def __init__(
        self, corpus: Corpus, settings: Settings, visits: Visits, cluster: np.ndarray, neighbours: np.ndarray
    ) -> None:
        self.settings = settings
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)
        documents = Documents(
            **document_columns(corpus, settings.component),
            neighbours=np.ascontiguousarray(neighbours, dtype=np.int32),
        )
        constants = Constants(
            **evidence_constants(corpus, settings),
            tries=visits.tries,
            uniform_share=visits.uniform_share,
        )
        self.chain = Chain(documents, Sizes(*np.zeros((3, settings.n_clusters), np.int64)), constants)
        self.redone = np.zeros(1, np.int64)
        self._count()

    def _count(self) -> None:
        """Count all documents where they are now."""
        documents, clusters, constants = self.chain
        n_clusters = len(clusters.n_k)
        clusters.n_k[:] = np.bincount(self.cluster, minlength=n_clusters)
        clusters.mass[:] = np.bincount(self.cluster, weights=documents.mass, minlength=n_clusters)
        self.slots, self.used = empty_table(len(documents.words)), np.zeros(1, np.int64)
        count_documents(documents, constants.shift, constants.n_words, self.slots, self.used, self.cluster, 0)
        self.slots = shrunk(self.slots, constants.shift, int(self.used[0]))

    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One visit to each document in order, with the same bits on any number of threads.

        ``moves`` (2,) int64: other clusters proposed, and documents that moved, are added to it. ValueError, with the
        document, where scores are not finite.
        """
        if pool is None:
            self._go_through(len(self.cluster), 0, lambda first: sweep(key, first, *self._data, moves))
        else:
            self._sweep_in_rounds(key, moves, pool)
        self.slots = shrunk(self.slots, self.chain.constants.shift, int(self.used[0]))

    def _sweep_in_rounds(self, key: np.uint64, moves: np.ndarray, pool: Executor) -> None:
        """As one thread does it: all choose for a round of documents, and one carries it out, document by document."""
        n_documents, tries = len(self.cluster), self.chain.constants.tries
        size = min(_ROUND, n_documents)
        ahead = Round(
            np.zeros(size, np.int32), np.zeros(size, np.int64), np.full((size, tries + 1), -1, np.int64),
            np.zeros(size, np.bool_), np.zeros(self.settings.n_clusters, np.int64),
        )  # fmt: skip
        for start in range(0, n_documents, size):
            stop = min(start + size, n_documents)

            def choose(first: int, last: int, start: int = start) -> None:
                choose_ahead(key, start, start + first, start + last, self.chain, self.slots, self.cluster, ahead)

            def carry(first: int, start: int = start, stop: int = stop) -> int:
                return carry_out(key, start, first, stop, *self._data, moves, ahead, self.redone)

            in_blocks(pool, choose, stop - start, _BLOCK)
            self._go_through(stop, start, carry)

    @property
    def _data(self) -> tuple[Chain, np.ndarray, np.ndarray, np.ndarray]:
        return self.chain, self.slots, self.used, self.cluster

    def _go_through(self, stop: int, first: int, go_on: Callable[[int], int]) -> None:
        """Call ``go_on`` from document ``first`` on until it comes to ``stop``; where it halts, the table grows."""
        while (first := go_on(first)) < stop:
            if first < 0:
                refuse_scores(self.settings, f"document {-1 - first}")
            indptr = self.chain.documents.indptr
            words = int(indptr[first + 1] - indptr[first])
            self.slots = grown(self.slots, self.chain.constants.shift, int(self.used[0]) + words)

    def sweep_exactly(self, corpus: Corpus, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """One sweep of :class:`ExactState`, whose tables take the place of the sparse counts meanwhile."""
        self.slots = empty_table(0)
        exact = ExactState(corpus, self.settings, self.cluster)
        exact.sweep(key, moves, pool)
        self.cluster = exact.cluster
        del exact
        self._count()

    @property
    def sizes(self) -> np.ndarray:
        """(K,) int64: documents of each cluster."""
        return self.chain.clusters.n_k

    @property
    def log_joint(self) -> float:
        """As that of :class:`..hashed.state.FastExState`."""
        n_words, n_documents = self.chain.constants.n_words, len(self.cluster)
        of_sizes = log_joint_of_sizes(self.settings, n_words, n_documents, *self.chain.clusters)
        return of_sizes + log_cells(self.slots, self.chain.constants) / JOINT_UNIT

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cluster": self.cluster, "neighbours": self.chain.documents.neighbours}
