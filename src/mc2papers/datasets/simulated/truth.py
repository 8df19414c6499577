"""Store the true parameters of a simulated corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mc2core.base import storage


@dataclass(frozen=True)
class Truth:
    """Parameters from which a simulated corpus was drawn (K clusters, M topics, V words, J documents).

    cluster : (J,) int64
    cluster_weights : (K,) float64, sums to 1
    topic_given_cluster : (K, M) float64, rows sum to 1
    word_given_topic : (M, V) float64, rows sum to 1
    contexts : by name, (K, A) rows that sum to 1 for a count context, or (K, 2) means and sds for a numeric context
    """

    cluster: np.ndarray
    cluster_weights: np.ndarray
    topic_given_cluster: np.ndarray
    word_given_topic: np.ndarray
    contexts: Mapping[str, np.ndarray]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the truth to one .npz file by an atomic replacement."""
        arrays = {name: getattr(self, name) for name in _TRUTH_ARRAYS}
        contexts = {f"context.{name}": value for name, value in self.contexts.items()}
        storage.write_arrays(path, arrays | contexts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Truth:
        """Read a truth written by :meth:`save`. Raises ValueError for a damaged file or a missing array."""
        arrays = storage.read_arrays(path)
        missing = [name for name in _TRUTH_ARRAYS if name not in arrays]
        if missing:
            raise ValueError(f"{path} is not the truth of a simulated corpus: array {missing[0]!r} is missing")
        contexts = {
            name.removeprefix("context."): arrays.pop(name) for name in list(arrays) if name not in _TRUTH_ARRAYS
        }
        return cls(**arrays, contexts=contexts)


_TRUTH_ARRAYS = ("cluster", "cluster_weights", "topic_given_cluster", "word_given_topic")
