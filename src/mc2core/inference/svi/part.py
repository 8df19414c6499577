"""What the engine asks of its global part: tables or direct assignment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.svi.local import Assign, Batch, DocumentStatistics, assign_documents
from mc2core.inference.svi.start import Start
from mc2core.inference.svi.state import Concentrations, ConcentrationSettings, Expectations, Globals
from mc2core.models import MC2

#: documents of a mini-batch by rule
BATCH = 400


class BatchSums(NamedTuple):
    """Statistics of a mini-batch, not scaled.

    documents : sums over documents, by cluster
    own : what the global part made of the words' masses, for :meth:`GlobalPart.changes`
    words : (U,) int64, distinct words of the batch
    topic_words : (U, M) float64, expected tokens of each topic
    """

    documents: DocumentStatistics
    own: Any
    words: np.ndarray
    topic_words: np.ndarray


class GlobalPart(ABC):
    """The half of an SVI run that tables and direct assignment do each in its own way; holds model and engine."""

    def __init__(self, model: MC2, engine: Any) -> None:
        self.model = model
        self.engine = engine

    @abstractmethod
    def truncations(self, corpus: Corpus) -> tuple[int, int]:
        """(K, M): those of the settings, or by rule where they are None."""

    def batch_size(self, n_documents: int) -> int | None:
        """Documents of a mini-batch of a corpus of ``n_documents``; None is the whole corpus."""
        size: int | str | None = self.engine.batch_size
        return self.usual_batch(n_documents) if isinstance(size, str) else size

    def usual_batch(self, n_documents: int) -> int:
        """Documents of a mini-batch where the setting is "auto"."""
        return BATCH

    @abstractmethod
    def n_numbers(self, corpus: Corpus, n_clusters: int, n_topics: int) -> tuple[int, str]:
        """Numbers that the clusters' topics take, and the clusters in words for a message."""

    @abstractmethod
    def concentration_settings(self, every: ConcentrationSettings) -> ConcentrationSettings:
        """The settings of the concentrations that have sticks behind them."""

    @abstractmethod
    def begin(self, start: Start, corpus: Corpus, contexts: StackedContexts) -> Globals:
        """The state of a start."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], contexts: StackedContexts) -> Globals:
        """The inverse of ``Globals.arrays``; ``sizes`` are J, V, D and the truncations K, M."""

    @abstractmethod
    def word_likelihoods(self, state: Any, expected: Any, words: np.ndarray, pool: Executor | None) -> Any:
        """lse of the given words: has ``log_likelihood`` (U, K)."""

    def assign(
        self,
        batch: Batch,
        likelihoods: Any,
        expected: Any,
        pool: Executor | None,
        assign: Assign = assign_documents,
    ) -> tuple[np.ndarray, DocumentStatistics]:
        """q(z_j) of every document, or what ``assign`` makes of them, and their statistics."""
        return assign(batch, likelihoods.log_likelihood, expected, pool)

    @abstractmethod
    def step(
        self,
        state: Any,
        expected: Any,
        likelihoods: Any,
        batch: Batch,
        documents: DocumentStatistics,
        concentrations: Concentrations,
        scale: float,
        rate: float,
        pool: Executor | None,
    ) -> BatchSums:
        """Natural-gradient step of all globals but the concentrations with sticks, in place."""

    @abstractmethod
    def changes(
        self, state: Any, before: Any, after: Any, sums: BatchSums, pool: Executor | None
    ) -> tuple[float, float]:
        """How expectations of words, and of tables or proportions, changed under fixed statistics, in nats."""

    @abstractmethod
    def tidy(self, state: Any, pool: Executor | None, is_full: bool) -> None:
        """What is done at the end of an epoch, in place: it may order the state and take out what is not in use."""

    @abstractmethod
    def proportions(
        self, state: Any, expected: Expectations, clusters: np.ndarray, topics: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """(K', M') E[tau] of some clusters and topics, (M',) their E[epsilon], and v."""
