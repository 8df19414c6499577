"""Merge clusters by hand after a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from mc2core.explore.clusters import recommended_names
from mc2core.posterior import Posterior


def merge_clusters(posterior: Posterior, clusters: Sequence[int]) -> Posterior:
    """Return the posterior with recommended ``clusters`` (numbers from 1) merged into one.

    The recommended clustering of the result contains the merged cluster. Tables, reports and predictions use this
    clustering. The samples do not change. The provenance records the merge.

    Raises ValueError if the numbers are invalid, if the posterior has no hierarchy, or if documents were added by an
    update.
    """
    hierarchy = posterior.hierarchy
    if hierarchy is None:
        raise ValueError("the posterior contains no hierarchy, so there are no recommended clusters to merge")
    if not isinstance(clusters, Sequence) or not all(isinstance(one, int | np.integer) for one in clusters):
        raise ValueError(f"clusters to merge are a list of numbers such as [3, 7], got {clusters!r}")
    names = recommended_names(posterior, hierarchy.cut(hierarchy.recommended))
    merged = hierarchy.merged_by_hand([one - 1 for one in clusters])
    record = {"clusters": sorted(clusters), "of": hierarchy.recommended, "names": [names[one - 1] for one in clusters]}
    before = posterior.provenance.get("merged", [])
    return replace(posterior, hierarchy=merged, provenance={**posterior.provenance, "merged": [*before, record]})


def merge_named(posterior: Posterior, names: pd.DataFrame) -> tuple[Posterior, pd.DataFrame]:
    """Merge the clusters that are marked in ``names.csv`` of an HTML report; return the posterior and the names.

    Parameters
    ----------
    posterior : Posterior
    names : DataFrame
        Contents of the file (:func:`mc2core.explore.words.read_names`). Recommended clusters with the same number in
        the column ``merge`` are merged.

    Returns
    -------
    posterior : Posterior
        The posterior after the merges.
    names : DataFrame
        The names given by the user, with cluster numbers after the merges. The columns are of, number and name. A
        merged cluster gets the name of the cluster whose number is in ``merge``, or else the first given name among its
        parts.

    Raises
    ------
    ValueError
        If no clusters are marked, or if :func:`merge_clusters` cannot merge them.
    """
    missing = {"level": "recommended", "default": "", "merge": ""}
    names = names.assign(**{column: value for column, value in missing.items() if column not in names})
    clusters = names[(names["of"] == "cluster") & (names["level"] == "recommended")]
    marks = clusters["merge"].str.strip()
    groups = [part.tolist() for _, part in clusters["number"].groupby(marks[marks != ""])]
    if not groups:
        raise ValueError("no clusters are marked in the column merge; choose them in the HTML report (Merge with)")
    before = posterior
    for group in groups:
        numbers = _numbers(before, posterior)
        posterior = merge_clusters(posterior, [int(numbers[one - 1]) if one <= len(numbers) else one for one in group])
    numbers = _numbers(before, posterior)
    renamed = names[names["name"] != names["default"]]
    is_cluster = renamed["of"] == "cluster"
    rows = renamed[~is_cluster | renamed["number"].isin(clusters["number"]) & (renamed["level"] == "recommended")]
    rows = rows.assign(is_first=rows["number"].astype(str) != rows["merge"])
    rows = rows.sort_values("is_first", kind="stable")  # the named target of a merge comes before its other parts
    number = [numbers[one - 1] if of == "cluster" else one for of, one in zip(rows["of"], rows["number"], strict=True)]
    return posterior, rows.assign(number=number)[["of", "number", "name"]].drop_duplicates(["of", "number"])


def _numbers(before: Posterior, after: Posterior) -> np.ndarray:
    """Return the number, from 1, that each recommended cluster of ``before`` has in ``after``, the merged posterior."""
    first, last = before.hierarchy, after.hierarchy
    if first is None or last is None or first is last:
        return np.arange(1, (first.recommended if first is not None else 0) + 1)
    numbers = np.zeros(first.recommended, np.int64)
    numbers[list(first.merged or range(first.recommended))] = np.array(last.merged) + 1
    return numbers
