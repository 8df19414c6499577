"""Clusters merged by hand, after a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mc2core.explore.compare import recommended_names
from mc2core.posterior import Posterior


def merge_clusters(posterior: Posterior, clusters: Sequence[int]) -> Posterior:
    """Return the posterior with recommended ``clusters`` (numbers from 1) merged into one.

    The merged clusters are the recommended clustering of the result, by which tables, reports and predictions go. The
    samples do not change. The merge is noted in the provenance.

    Raises ValueError if the numbers are invalid, if the posterior has no hierarchy, or if documents were added by an
    update.
    """
    hierarchy = posterior.hierarchy
    if hierarchy is None:
        raise ValueError("the posterior keeps no hierarchy, and so no recommended clusters that could be merged")
    names = recommended_names(posterior, hierarchy.cut(hierarchy.recommended))
    merged = hierarchy.merged_by_hand([one - 1 for one in clusters])
    about = {"clusters": sorted(clusters), "of": hierarchy.recommended, "names": [names[one - 1] for one in clusters]}
    before = posterior.provenance.get("merged", [])
    return replace(posterior, hierarchy=merged, provenance={**posterior.provenance, "merged": [*before, about]})
