"""Comparison of fits: matched clusters, splits, merges, agreement, effects of contexts, and robustness."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from mc2core.base.checks import counted
from mc2core.explore.clusters import recommended_names
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index, variation_of_information

if TYPE_CHECKING:
    from mc2core.explore.fit import Fit

#: smallest Jaccard index at which two clusters count as the same cluster
SAME = 0.5
#: a cluster is a part of a cluster of the other fit if at least this share of its documents is in that cluster
PART = 0.5


@dataclass(frozen=True)
class Comparison:
    """Result of :func:`compare`.

    Attributes
    ----------
    agreement : DataFrame
        Agreement of the two fits, with one row per level of the hierarchy: "broad", "recommended", "fine" and "all"
        (:meth:`mc2core.posterior.hierarchy.Hierarchy.size_of`). A level is left out if it equals the recommended
        clustering in both fits. The columns are level, clusters_a, clusters_b, ari (adjusted Rand index) and vi_bits
        (variation of information in bits).
    clusters : DataFrame
        One row per matched pair of recommended clusters, and one row per cluster without a partner. The columns are
        a and b (numbers of the clusters, from 1), name_a, name_b, documents_a, documents_b, shared (number of common
        documents), jaccard and change. ``change`` is "same", "moved" (matched with a Jaccard index below 0.5), "split"
        (a cluster of A with several parts in B), "merged" (a cluster of B with several parts in A), "only in A" or
        "only in B".
    table : DataFrame
        Number of common documents of each cluster of A (rows) and each cluster of B (columns).
    n_documents : tuple of three ints
        Number of documents of A, of B, and of both.
    """

    agreement: pd.DataFrame
    clusters: pd.DataFrame
    table: pd.DataFrame
    n_documents: tuple[int, int, int]
    _fits: tuple[Fit | None, Fit | None] = field(default=(None, None), repr=False)

    def effects(self, contexts: str | list[str]) -> pd.DataFrame:
        """Return the effects of contexts in matched clusters of both fits, side by side.

        The columns are a, b, name_a, name_b, context, value, reference, effect_a, low_a, high_a, effect_b, low_b,
        high_b and agree. ``agree`` is "yes" if both 90 % intervals exclude 0 on the same side, "no" if they exclude 0
        on different sides, and "" if an interval contains 0.

        Raises ValueError if a fit was given without its documents (as a posterior or path), and for the same reasons as
        :meth:`mc2core.Fit.effects`.
        """
        first, second = self._fits
        if first is None or second is None:
            raise ValueError("effects need the documents: give mc2core.Fit(posterior, corpus) for both fits")
        keys = ["context", "value", "reference"]
        parts = []
        for fit, side in ((first, "a"), (second, "b")):
            part = fit.effects(contexts)
            part = part[part["of"] == "cluster"].rename(columns={"number": side, "name": f"name_{side}"})
            part = part.rename(columns={name: f"{name}_{side}" for name in ("effect", "low", "high")})
            parts.append(part[[side, f"name_{side}", *keys, *(f"{name}_{side}" for name in ("effect", "low", "high"))]])
        pairs = self.clusters[["a", "b"]].dropna().astype(int)
        table = pairs.merge(parts[0], on="a").merge(parts[1], on=["b", *keys])
        signs = [np.sign(table[f"low_{one}"]) * (table[f"low_{one}"] * table[f"high_{one}"] > 0) for one in "ab"]
        product = signs[0] * signs[1]
        return table.assign(agree=np.where(product > 0, "yes", np.where(product < 0, "no", "")))

    def __str__(self) -> str:
        a, b, shared = self.n_documents
        lines = [f"{counted(shared, 'documents')} in both fits (A has {a:,}, B {b:,})"]
        for level, of_a, of_b, ari, vi in self.agreement.itertuples(index=False, name=None):
            lines.append(f"{level}: {of_a} and {counted(int(of_b), 'clusters')}, ARI {ari:.2f}, VI {vi:.2f} bits")
        changes = self.clusters["change"].value_counts()
        return "\n".join([*lines, ", ".join(f"{n} {change}" for change, n in changes.items())])


def compare(a: Any, b: Any) -> Comparison:
    """Compare the clusters of two fits, for example with different seeds or models, or before and after an update.

    Parameters
    ----------
    a, b : Fit, Posterior or path
        Two fits of the same documents, or two fits whose documents have ids. Documents are matched by these ids. A path
        is the folder of a fit or the file of its posterior.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If a fit has no clusters of documents, or if the fits have no documents in common.

    Examples
    --------
    >>> import mc2core
    >>> corpus = mc2core.Corpus.from_texts(["apple tree leaf", "leaf tree apple", "iron nail", "nail iron forge"])
    >>> one, other = (mc2core.fit(corpus, iterations=4, seed=seed) for seed in (0, 1))
    >>> mc2core.compare(one, other).n_documents
    (4, 4, 4)
    """
    first, second = _posterior(a), _posterior(b)
    rows_a, rows_b = _match_documents(first, second)
    of_a, of_b = _clusters(first, "recommended"), _clusters(second, "recommended")
    agreement = []
    for level in ("broad", "recommended", "fine", "all"):
        at = _clusters(first, level), _clusters(second, level)
        if level != "recommended" and np.array_equal(at[0], of_a) and np.array_equal(at[1], of_b):
            continue
        partitions = [at[0][rows_a], at[1][rows_b]]
        is_in_both = (partitions[0] >= 0) & (partitions[1] >= 0)
        partitions = [one[is_in_both] for one in partitions]
        numbers = [len(np.unique(one)) for one in partitions]
        agreement.append((level, *numbers, adjusted_rand_index(*partitions), variation_of_information(*partitions)))
    clusters, table = _pairs(of_a, of_b, rows_a, rows_b)
    for side, posterior, numbers_of in (("a", first, of_a), ("b", second, of_b)):
        names = recommended_names(posterior, numbers_of)
        clusters[f"name_{side}"] = [None if pd.isna(number) else names[int(number) - 1] for number in clusters[side]]
    order = [f"{name}_{side}" if name else side for side in "ab" for name in ("", "name", "documents")]
    return Comparison(
        pd.DataFrame(agreement, columns=["level", "clusters_a", "clusters_b", "ari", "vi_bits"]),
        clusters[[*order, "shared", "jaccard", "change"]],
        table,
        (len(of_a), len(of_b), len(rows_a)),
        tuple(one if hasattr(one, "effects") else None for one in (a, b)),  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Robustness:
    """Result of :func:`robustness`.

    Attributes
    ----------
    clusters : DataFrame
        One row per recommended cluster of the first fit. The columns are cluster, name, documents, stands_in (number of
        other fits in which the cluster is found again) and mean_jaccard (mean over the other fits). The other fits are
        numbered from 2. For each other fit N, match_N is the cluster with the largest Jaccard index, and jaccard_N is
        this index.
    comparisons : tuple of Comparison
        The first fit compared with each other fit.
    least : float
        Smallest Jaccard index at which a cluster counts as found again in another fit.
    """

    clusters: pd.DataFrame
    comparisons: tuple[Comparison, ...]
    least: float

    def effects(self, contexts: str | list[str]) -> pd.DataFrame:
        """Return the effects of contexts in the first fit, and the number of other fits that confirm each effect.

        The table has the columns of :meth:`mc2core.Fit.effects`, with number renamed to cluster, and the columns
        same_in and opposite_in. ``same_in`` is the number of other fits in which the cluster is found again and the
        effect has the same sign. ``opposite_in`` is the number of fits in which the effect has the opposite sign. Fits
        are counted only if the 90 % intervals of the effect exclude 0 in both fits.

        Raises ValueError for the same reasons as :meth:`Comparison.effects`.
        """
        keys, parts = ["cluster", "context", "value", "reference"], []
        for comparison in self.comparisons:
            pairs = comparison.clusters.loc[comparison.clusters["jaccard"] >= self.least, ["a", "b"]].astype(int)
            parts.append(comparison.effects(contexts).merge(pairs, on=["a", "b"]).rename(columns={"a": "cluster"}))
        every = pd.concat(parts)
        every = every.assign(same_in=every["agree"] == "yes", opposite_in=every["agree"] == "no")
        counts = every.groupby(keys, dropna=False)[["same_in", "opposite_in"]].sum().reset_index()
        table = self.comparisons[0]._fits[0].effects(contexts)  # type: ignore[union-attr]
        table = table[table["of"] == "cluster"].drop(columns="of").rename(columns={"number": "cluster"})
        table = table.merge(counts.astype(table[keys].dtypes), on=keys, how="left")  # keeps the type of missing values
        return table.fillna({"same_in": 0, "opposite_in": 0}).astype({"same_in": int, "opposite_in": int})

    def __str__(self) -> str:
        n, stands = len(self.comparisons), self.clusters["stands_in"]
        rows = (one.agreement[one.agreement["level"] == "recommended"] for one in self.comparisons)
        ari = ", ".join(f"{float(one['ari'].iloc[0]):.2f}" for one in rows)
        none = f", and {(stands == 0).sum()} in none" if (stands == 0).any() else ""
        return (
            f"{(stands == n).sum()} of {counted(len(stands), 'clusters')} of the first fit were found again in all of "
            f"the {n} other fits{none} (Jaccard index of at least {self.least:g})\n"
            f"recommended clusters of the first and each other fit: ARI {ari}"
        )


def robustness(fits: Sequence[Any], least: float = SAME) -> Robustness:
    """Return the number of other fits in which each recommended cluster of the first fit occurs.

    A cluster occurs in another fit if this fit has a recommended cluster with a Jaccard index of at least ``least``.
    The Jaccard index is computed from the documents that are in both fits. The fits may differ in their seeds, priors,
    models or preprocessing.

    Parameters
    ----------
    fits : sequence of Fit, Posterior or path
        At least two fits, as for :func:`compare`. The clusters of the first fit are looked up in the other fits.
    least : float, optional
        Smallest Jaccard index, above 0 and at most 1. The default is the bound for a "same" cluster in :func:`compare`.

    Returns
    -------
    Robustness

    Raises
    ------
    ValueError
        If there are fewer than two fits, if ``least`` is invalid, or if :func:`compare` cannot compare the fits.

    Examples
    --------
    >>> import mc2core
    >>> corpus = mc2core.Corpus.from_texts(["apple tree leaf", "leaf tree apple", "iron nail", "nail iron forge"])
    >>> fits = [mc2core.fit(corpus, iterations=4, seed=seed) for seed in range(3)]
    >>> len(mc2core.robustness(fits).comparisons)
    2
    """
    if len(fits) < 2:
        raise ValueError("robustness needs at least two fits")
    if not 0.0 < least <= 1.0:
        raise ValueError(f"least is {least:g}; it must be above 0 and at most 1")
    first = fits[0] if hasattr(fits[0], "effects") else _posterior(fits[0])  # a file is read once
    comparisons = tuple(compare(first, other) for other in fits[1:])
    clusters = comparisons[0].clusters.dropna(subset="a").sort_values("a")
    columns: dict[str, Any] = {}
    jaccards = []
    for number, comparison in enumerate(comparisons, start=2):
        jaccard = _jaccard(comparison.table.to_numpy())
        jaccards.append(jaccard.max(axis=1))
        matched = pd.array(jaccard.argmax(axis=1) + 1, dtype="Int64")
        matched[jaccards[-1] == 0.0] = pd.NA
        columns |= {f"match_{number}": matched, f"jaccard_{number}": jaccards[-1]}
    table = pd.DataFrame(
        {
            "cluster": clusters["a"].to_numpy(),
            "name": clusters["name_a"].to_numpy(),
            "documents": clusters["documents_a"].to_numpy(),
            "stands_in": (np.array(jaccards) >= least).sum(axis=0),
            "mean_jaccard": np.mean(jaccards, axis=0),
            **columns,
        }
    )
    return Robustness(table, comparisons, least)


def _posterior(source: Any) -> Posterior:
    source = getattr(source, "posterior", source)
    if isinstance(source, str | os.PathLike):
        source = Posterior.load(source)
    if not isinstance(source, Posterior):
        raise ValueError(f"found {type(source).__name__}; a Fit, a Posterior or the path of a fit is needed")
    if source.representative.documents_are_clusters:
        raise ValueError("a fit has no clusters of documents that could be compared")
    return source


def _match_documents(a: Posterior, b: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers of the common documents in A and in B.

    Documents are matched by ids. Without ids, they are matched by row number if both fits use the same corpus or if one
    fit is an update of the other. Raises ValueError if the fits have no documents in common.
    """
    n_a, n_b = len(a.cluster), len(b.cluster)
    if a.fingerprints is not None and b.fingerprints is not None and len(a.fingerprints) == n_a:
        _, rows_a, rows_b = np.intersect1d(a.fingerprints[:n_a], b.fingerprints[:n_b], return_indices=True)
        if not len(rows_a):
            raise ValueError("the fits have no documents in common: no id is in both")
        return rows_a, rows_b
    before = [one["before"] for one in (*a.provenance.get("updates", []), *b.provenance.get("updates", []))]
    digests = [one.provenance.get("corpus") for one in (a, b)]
    if (n_a == n_b and digests[0] == digests[1]) or min(n_a, n_b) in before:
        rows = np.arange(min(n_a, n_b))
        return rows, rows
    raise ValueError(
        f"the fits have different documents ({n_a:,} and {n_b:,}) and no ids to match them (mc2 import --id COLUMN)"
    )


def _clusters(posterior: Posterior, level: str) -> np.ndarray:
    """Return the cluster of each document at a level of the hierarchy, (J,), numbered from 0 in the order of tables."""
    if level == "all" or posterior.hierarchy is None:
        return np.where(posterior.cluster < 0, -1, posterior.by_size[posterior.cluster])
    return posterior.hierarchy.cut(posterior.hierarchy.size_of(level))


def _pairs(
    of_a: np.ndarray, of_b: np.ndarray, rows_a: np.ndarray, rows_b: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of :attr:`Comparison.clusters` without names, and :attr:`Comparison.table`."""
    shape = int(of_a.max()) + 1, int(of_b.max()) + 1
    is_in_both = (of_a[rows_a] >= 0) & (of_b[rows_b] >= 0)
    counts = np.ones(is_in_both.sum(), np.int64)
    table = sp.coo_matrix((counts, (of_a[rows_a][is_in_both], of_b[rows_b][is_in_both])), shape=shape).toarray()
    in_a, in_b = table.sum(axis=1), table.sum(axis=0)
    jaccard = _jaccard(table)
    rows, columns = linear_sum_assignment(jaccard, maximize=True)
    partner = {int(row): int(column) for row, column in zip(rows, columns, strict=True) if table[row, column]}
    # for each cluster of A, the number of clusters of B that are parts of it
    parts_of_a = (table >= PART * np.maximum(in_b, 1)).sum(axis=1)
    parts_of_b = (PART * np.maximum(in_a, 1) <= table.T).sum(axis=1)
    sizes = [np.bincount(one[one >= 0], minlength=n) for one, n in zip((of_a, of_b), shape, strict=True)]
    pairs: list[dict[str, Any]] = []
    for row in range(shape[0]):
        column = partner.get(row)
        pair: dict[str, Any] = {"a": row + 1, "documents_a": sizes[0][row], "b": None, "documents_b": None}
        pair |= {"shared": 0, "jaccard": 0.0, "change": "only in A"}
        if column is not None:
            is_same = jaccard[row, column] >= SAME
            change = "split" if parts_of_a[row] > 1 else "merged" if parts_of_b[column] > 1 else "moved"
            pair |= {"b": column + 1, "documents_b": sizes[1][column], "shared": table[row, column]}
            pair |= {"jaccard": jaccard[row, column], "change": "same" if is_same and change == "moved" else change}
        elif in_a[row] and parts_of_b[table[row].argmax()] > 1:
            pair["change"] = "merged"
        pairs.append(pair)
    for column in np.setdiff1d(np.arange(shape[1]), list(partner.values())).tolist():
        is_part = in_b[column] and parts_of_a[table[:, column].argmax()] > 1
        pair = {"a": None, "documents_a": None, "b": column + 1, "documents_b": sizes[1][column]}
        pairs.append(pair | {"shared": 0, "jaccard": 0.0, "change": "split" if is_part else "only in B"})
    numbers = ["a", "documents_a", "b", "documents_b", "shared"]
    clusters = pd.DataFrame(pairs).astype(dict.fromkeys(numbers, "Int64"))
    index, names = (pd.RangeIndex(1, n + 1, name=side) for n, side in zip(shape, "ab", strict=True))
    return clusters, pd.DataFrame(table, index=index, columns=names)


def _jaccard(table: np.ndarray) -> np.ndarray:
    """Return the Jaccard index of each pair of clusters, from the numbers of common documents."""
    return table / np.maximum(table.sum(axis=1)[:, None] + table.sum(axis=0) - table, 1)
