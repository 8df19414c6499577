"""Settings of an engine that a state of SVI uses."""

from __future__ import annotations

from typing import NamedTuple


class RunSettings(NamedTuple):
    """Settings of the engine that a state uses, with defaults resolved for a corpus.

    n_clusters, n_topics : int, the truncations K and M
    n_tables : int or None, T; None without tables
    batch_size : int or None, documents of a mini-batch; None is the whole corpus
    is_joint : bool, whether all globals of tables step at once
    total_samples : int or None, number of documents in the population (:mod:`mc2core.inference.svi.stream`); None is
        the size of the corpus
    """

    n_clusters: int
    n_tables: int | None
    n_topics: int
    batch_size: int | None
    is_joint: bool
    total_samples: int | None = None
