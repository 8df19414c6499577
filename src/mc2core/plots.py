"""Pictures of what a fit found, by matplotlib (public name; see :mod:`mc2core.explore.plots`)."""

from mc2core.explore.plots import (
    agreement,
    clusters_by_context,
    clusters_over_time,
    hierarchy,
    map_of_documents,
    topics_over_time,
    trace,
    words,
)

__all__ = [
    "agreement",
    "clusters_by_context",
    "clusters_over_time",
    "hierarchy",
    "map_of_documents",
    "topics_over_time",
    "trace",
    "words",
]
