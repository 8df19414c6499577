"""The page of a fit: its tables, and what draws them, in one file."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import pages
from mc2core.explore.description import Description
from mc2core.explore.tables import Tables
from mc2core.explore.variables import context_names, own_unit

MOST_NAMES = 20
"""Names, such as authors, of one document on the page."""
_COLUMNS = {
    "documents": ("document", "title", "label", "tokens", "cluster", "probability", "x", "y"),
    "levels": ("clusters", "loss", "moved", "agreement", "marked", "nmi", "ari", "purity"),
    "cluster_words": ("cluster", "word", "probability", "lift"),
    "cluster_values": ("cluster", "context", "value", "count", "share", "lift", "by_share"),
    "cluster_numbers": None,
    "cluster_documents": None,
    "cluster_labels": None,
    "topics": None,
    "topic_words": ("topic", "word", "probability", "lift"),
    "topic_clusters": None,
    "trends": ("of", "number", "context", "start", "end", "share"),
}
_SCRIPTS = ("data.js", "charts.js", "panels.js")
_OF_NODES = ("cluster", "level", "number", "documents", "share", "words", "distinctive_words")


def build(description: Description, tables: Tables, title: str) -> str:
    """The page as text. ``tables`` are those of :func:`mc2core.explore.tables.tables_of`, of which it shows a part."""
    data = {
        "title": title,
        "summary": tables["summary"].to_numpy().tolist(),
        "clusters": description.n_clusters,
        "sizes": description.sizes,
        "levels": _levels(description, tables),
        "nodes": _packed(_nodes(description, tables)),
        "contexts": _of_documents(description, tables["documents"]),
        "tables": {name: _packed(part) for name, part in _parts(description, tables)},
    }
    charts = json.loads(_asset("charts.json"))
    vega = f"/*!\n{_asset('vega.LICENSE')}*/\n{_asset('vega.js')}"
    given = [pages.data_script("DESCRIPTION", data), pages.data_script("CHARTS", charts)]
    body = _asset("page.html").replace("{title}", html.escape(title))
    # one function, so that no name of theirs meets one of the library's
    script = "\n".join(['"use strict";', "(() => {", *map(_asset, _SCRIPTS), "})();"])
    return pages.page(title, body, _asset("page.css"), [vega, *given, script])


def _asset(name: str) -> str:
    return resources.files("mc2core.explore").joinpath("assets", name).read_text(encoding="utf-8")


def _nodes(description: Description, tables: Tables) -> pd.DataFrame:
    """Clusters of the fit and of levels alike, each with its ``level``, a size, and its ``number`` there."""
    clusters = tables["clusters"]
    rows = [clusters.assign(level=description.n_clusters, number=clusters["cluster"])]
    rows += [tables["level_clusters"]] if "level_clusters" in tables else []
    names = [*_OF_NODES, *(name for name in ("label", "label_share") if name in clusters)]
    table = pd.concat([part[names] for part in rows], ignore_index=True)
    return table.loc[table["cluster"].isin({node + 1 for node in description.shown})]


def _shown_documents(description: Description, tables: Tables) -> pd.DataFrame:
    """Those on the map and the typical ones."""
    near, table = tables["cluster_documents"], tables["documents"]
    typical = set(near.loc[near["cluster"].isin({node + 1 for node in description.shown}), "document"])
    return table.loc[table["x"].notna() | table["document"].isin(typical)]


def _levels(description: Description, tables: Tables) -> dict[int, list[int]]:
    """By size, the node of each document that the page has, from 1."""
    rows = _shown_documents(description, tables)["document"].to_numpy() - 1
    return {size: (description.at(size)[rows] + description.first[size] + 1).tolist() for size in description.sizes}


def _parts(description: Description, tables: Tables) -> list[tuple[str, pd.DataFrame]]:
    """The columns, and the rows of nodes, that the page shows."""
    shown, parts = {node + 1 for node in description.shown}, []
    for name, columns in _COLUMNS.items():
        if name not in tables:
            continue
        table = tables[name]
        if name == "documents":
            table = _shown_documents(description, tables)
        elif name == "trends":
            table = table.loc[(table["of"] == "topic") | table["number"].isin(shown)]
        elif "cluster" in table:
            table = table.loc[table["cluster"].isin(shown)]
        parts.append((name, table.loc[:, [one for one in columns or table.columns if one in table]]))
    return parts


def _of_documents(description: Description, documents: pd.DataFrame) -> dict[str, Any]:
    """Contexts of the documents that have a place on the map, by name: numbers, or names of each."""
    rows = np.flatnonzero(documents["x"].notna())
    contexts: dict[str, Any] = {}
    for name, kind in sorted(description.corpus.context_kinds.items()):
        if kind == "number":
            contexts[name] = {
                "document": (rows + 1).tolist(),
                "number": [_digits(x) for x in own_unit(description.corpus, name)[rows]],
            }
        else:
            table = description.corpus.contexts[name][rows]
            used, place = np.unique(table.indices, return_inverse=True)
            names = context_names(description.corpus, name)
            lists = [place[a:b][:MOST_NAMES].tolist() for a, b in zip(table.indptr[:-1], table.indptr[1:], strict=True)]
            contexts[name] = {"document": (rows + 1).tolist(), "names": [names[one] for one in used], "values": lists}
    return contexts


def _packed(table: pd.DataFrame) -> dict[str, Any]:
    """Columns by name: numbers to six digits, as in the files; texts as {"levels", "codes"}."""
    packed: dict[str, Any] = {}
    for name, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            packed[str(name)] = [_digits(one) for one in column.to_numpy(dtype=np.float64)]
        else:
            codes, levels = pd.factorize(column.astype(object))
            packed[str(name)] = {"levels": [str(one) for one in levels], "codes": codes.tolist()}
    return packed


def _digits(value: float) -> float | int | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
