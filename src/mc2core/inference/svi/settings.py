"""Settings of the SVI engine that are part of its state."""

from __future__ import annotations

from typing import NamedTuple


class RunSettings(NamedTuple):
    """Settings of the SVI engine, after defaults have been replaced by values for a corpus.

    n_clusters, n_topics : int, truncations K of clusters and M of topics
    n_tables : int or None, truncation T of tables per cluster; None without tables
    batch_size : int or None, number of documents per mini-batch; None means the whole corpus
    is_joint : bool, whether all global parameters are updated at once (with tables)
    total_samples : int or None, number of documents in the population (:mod:`mc2core.inference.svi.stream`); None
        means the size of the corpus
    """

    n_clusters: int
    n_tables: int | None
    n_topics: int
    batch_size: int | None
    is_joint: bool
    total_samples: int | None = None
