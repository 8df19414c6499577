"""Interface of a chain: each proposal of FastEx is a class of states with a method for a sweep."""

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
    cluster : (J,) int32
    clusters : statistics of the clusters, including ``n_k`` (K,) int64, their numbers of documents
    """

    clusters: Any
    #: value of the engine's setting ``proposal``
    proposal: ClassVar[str]
    #: contents of a checkpoint in addition to the assignments
    described: ClassVar[Mapping[str, Stored]] = {}

    def __init__(self, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray) -> None:
        self.settings = settings
        self.cluster = np.ascontiguousarray(cluster, dtype=np.int32)

    @classmethod
    @abstractmethod
    def least_bytes(cls, corpus: Corpus, settings: ChainSettings) -> int:
        """Return the smallest number of bytes of a chain. The corpus may need more, which is known when its tables are
        laid out."""

    @classmethod
    def refuse(cls, corpus: Corpus, settings: ChainSettings) -> None:
        """Raise ValueError if memory is too small for a chain of this corpus, before anything is allocated."""
        refuse_beyond_memory(cls.proposal, cls.least_bytes(corpus, settings), corpus.n_words, settings)

    @classmethod
    def start(
        cls, corpus: Corpus, settings: ChainSettings, cluster: np.ndarray, seed: int, pool: Executor | None
    ) -> Self:
        """Return a chain that starts from these clusters."""
        return cls(corpus, settings, cluster)

    @classmethod
    def restore(cls, corpus: Corpus, settings: ChainSettings, arrays: Mapping[str, np.ndarray]) -> Self:
        """Restore a chain from its :meth:`arrays`, which are as ``described``."""
        return cls(corpus, settings, arrays["cluster"])

    @abstractmethod
    def sweep(self, key: np.uint64, moves: np.ndarray, pool: Executor | None = None) -> None:
        """Visit each document once. Raises ValueError, with the number of a document, if scores are not finite.

        ``moves`` (2,) int64: other clusters proposed, and documents that moved, are added to it. Without proposals,
        documents that moved are added to both.
        """

    def iterate(self, corpus: Corpus, iteration: int, key: np.uint64, moves: np.ndarray, pool: Executor | None) -> None:
        """Run sweep number ``iteration`` of a run, from 1."""
        self.sweep(key, moves, pool)

    @property
    def sizes(self) -> np.ndarray:
        """Number of documents per cluster, (K,) int64."""
        return self.clusters.n_k

    @property
    @abstractmethod
    def log_joint(self) -> float:
        """Return ln p(x, y) in nats, with weights and cluster parameters integrated out (Poisson: without ln x!)."""

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cluster": self.cluster}

    def _refuse_unfinished(self, done: int) -> None:
        """Raise ValueError if a kernel stopped at document -1 - ``done``."""
        if done < 0:
            refuse_scores(self.settings, f"document {-1 - done}")
