"""Base class of the states of FastEx; each proposal has a subclass with its own sweep."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, ClassVar, Self

import numpy as np

from mc2core.base.storage import Stored
from mc2core.corpus import Corpus
from mc2core.inference.base import State
from mc2core.inference.fastex.components import ChainSettings
from mc2core.inference.fastex.limits import refuse_beyond_memory, refuse_scores


class MixtureState(State):
    """Assignments of documents to the K clusters of a mixture, with statistics of the clusters.

    Attributes
    ----------
    settings : ChainSettings
    cluster : (J,) int32, cluster of each document
    clusters : statistics of the clusters, including ``n_k`` (K,) int64, the number of documents per cluster
    """

    clusters: Any
    #: value of the engine's setting ``proposal``
    proposal: ClassVar[str]
    #: arrays of a checkpoint in addition to the assignments
    described: ClassVar[Mapping[str, Stored]] = {}

    def __init__(self, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray) -> None:
        self.settings = settings
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)

    @classmethod
    @abstractmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        """Return a lower bound on the number of bytes of a chain, which can be computed without its tables."""

    @classmethod
    def refuse(cls, corpus: Corpus, settings: ChainSettings) -> None:
        """Raise ValueError if memory is insufficient for a chain, before memory is allocated."""
        refuse_beyond_memory(cls.proposal, cls.least_bytes(corpus, settings), corpus.n_words, settings)

    @classmethod
    def start(
        cls, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray, seed: int, pool: Executor | None
    ) -> Self:
        """Return the initial state of a chain with the assignments ``cluster``, (J,)."""
        return cls(corpus, settings, cluster)

    @classmethod
    def restore(cls, corpus: Corpus, settings: ChainSettings, arrays: Mapping[str, np.ndarray]) -> Self:
        """Restore a state from its :meth:`arrays`."""
        return cls(corpus, settings, arrays["cluster"])

    @abstractmethod
    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """Sample the cluster of each document once, in place.

        The number of proposals of another cluster and the number of moved documents are added to ``moves``, (2,) int64.
        Without proposals, the number of moved documents is added to both. Raises ValueError, with the index of a
        document, if scores are not finite.
        """

    def iterate(self, corpus: Corpus, iteration: int, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        """Run sweep number ``iteration`` of a run; the first sweep has number 1."""
        self.sweep(key, moves, pool)

    @property
    def sizes(self) -> np.ndarray:
        """Number of documents per cluster, (K,) int64."""
        return self.clusters.n_k

    @property
    @abstractmethod
    def log_joint(self) -> float:
        """Log joint probability ln p(x, y) in nats, with all parameters integrated out (Poisson: without ln x!)."""

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cluster": self.cluster}

    def _refuse_unfinished(self, done: int) -> None:
        """Raise ValueError if a kernel has reported scores that are not finite by a negative ``done``."""
        if done < 0:
            refuse_scores(self.settings, f"document {-1 - done}")
