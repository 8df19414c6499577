"""The HTML report of a fit: tables and charts in one file, with long texts in separate scripts."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import pages
from mc2core.explore import coherence, limits
from mc2core.explore import texts as of_texts
from mc2core.explore.agreement import n_chains
from mc2core.explore.description import Description
from mc2core.explore.predicted import predictions
from mc2core.explore.tables import Tables
from mc2core.explore.variables import KEPT, LABEL, variables_of

MAX_NAMES = 20
"""Largest number of names, such as authors, per document in the HTML report."""
MAX_VALUES = 20
"""Number of the commonest values of a context whose shares the HTML report shows."""
MAX_OF_DOCUMENT = 3
"""Largest number of topics per document in the HTML report."""
MIN_OF_DOCUMENT = 0.05
MAX_OF_TOPIC = 8
"""Number of values of a context per topic in the HTML report: those with the most tokens of the topic."""
MAX_TOPICS = 200
"""Number of the commonest topics whose shares the HTML report shows."""
MIN_SURE = 0.5
"""Probability of a document's cluster below which the HTML report also shows the second likeliest cluster."""
MAX_NODES = 2000
"""Number of the largest clusters of all cuts whose shares the HTML report shows."""
_COLUMNS = {
    "documents": ("document", "title", "label", "tokens", "cluster", "probability", "misfit", "x", "y"),
    "hierarchy": ("clusters", "loss", "moved", "agreement", "recommended", "nmi", "ari", "purity"),
    "cluster_words": ("cluster", "word", "probability", "lift"),
    "cluster_means": None,
    "cluster_values": ("cluster", "context", "value", "count", "share", "lift", "by_share", "is_notable"),
    "cluster_numbers": None,
    "cluster_documents": None,
    "cluster_labels": None,
    "topics": None,
    "topic_words": ("topic", "word", "probability", "lift"),
    "topic_means": None,
    "topic_clusters": None,
    "topic_documents": None,
    "topic_values": ("topic", "context", "value", "share", "lift", "by_share", "is_notable"),
    "topic_numbers": None,
    "document_clusters": None,
    "document_topics": ("document", "topic", "share"),
    "shares": ("of", "number", "context", "value", "documents", "share", "low", "high", "is_notable"),
    "trends": ("of", "number", "context", "start", "end", "period", "documents", "share", "low", "high", "is_notable"),
    "arrivals": None,
}
_SCRIPTS = ("data", "charts", "map", "texts", "relations", "arrivals", "odd", "search", "printed", "panels")
_SHARES = frozenset({"share", "low", "high", "probability", "lift", "share_of_cluster", "overlap"})
"""Columns that the HTML report rounds to four digits."""
MAX_MEANS = 12
"""Largest number of means of observations per topic or cluster in the HTML report."""
_OF_NODES = ("cluster", "name", "cut", "number", "documents", "share", "joins")
_MAYBE = ("words", "distinctive_words", "certainty", "found", "chains", "label", "label_share")


def build(
    description: Description,
    tables: Tables,
    title: str,
    summary: str,
    texts: Sequence[str] | None = None,
    in_one_file: bool = False,
) -> dict[str, str]:
    """Return the contents of the files of the report, by file name.

    The report is ``index.html``. Long texts are stored in ``texts_1.js``, ``texts_2.js``, ..., unless ``in_one_file``
    is True. ``tables`` is the result of :func:`mc2core.explore.tables.tables_of`; the report shows a part of these
    tables. ``summary`` is a Markdown text that readers can copy, and ``texts`` (J) are the texts of the documents.
    """
    rows = _shown_documents(description, tables)["document"].to_numpy() - 1
    parts = [] if texts is None else of_texts.in_scripts(texts, rows, description.cluster, in_one_file)
    chunks = [[of_texts.shortened(texts[one]) for one in part] for part in parts] if texts is not None else []
    data = {
        "title": title,
        "summary": tables["summary"].to_numpy().tolist(),
        "markdown": summary,
        "clusters": description.n_clusters,
        "recommended": description.recommended,
        "other": description.other,
        "of_observations": description.is_of_observations,
        "runs": n_chains(description.posterior),
        "without_clusters": description.without_clusters,
        "no_groups": description.no_groups,
        "limits": limits.sentences(description, tables),
        "coherence": coherence.in_words(tables["topics"]),
        "sizes": description.sizes,
        "cuts": _cuts(description, rows),
        "nodes": _pack_table(_nodes(description, tables)),
        "defaults": _defaults(tables["names"]),
        "variables": [
            {"name": one.name, "role": one.role, "number": one.is_number, "date": one.is_date}
            for one in variables_of(description)
        ],
        "contexts": _of_documents(description, tables["documents"]),
        "predicted": _pack_predictions(description, rows),
        "tables": {
            name: _pack_table(part, _SHARES if name != "documents" else frozenset())
            for name, part in _parts(description, tables)
        },
        "texts": {"scripts": [(part + 1).tolist() for part in parts], "inside": chunks if len(chunks) == 1 else None},
    }
    charts = json.loads(_asset("charts.json"))
    vega = f"/*!\n{_asset('vega.LICENSE')}*/\n{_asset('vega.js')}"
    data_scripts = [pages.data_script("DESCRIPTION", data), pages.data_script("CHARTS", charts)]
    body = _asset("html_report.html").replace("{title}", html.escape(title)).replace("{limits}", limits.TITLE)
    # one function, so that no name of theirs meets one of the library's
    script = "\n".join(['"use strict";', "(() => {", *(_asset(f"{name}.js") for name in _SCRIPTS), "})();"])
    scripts = [vega, *data_scripts, script]
    files = {"index.html": pages.page(title, body, _asset("html_report.css"), scripts, beside=len(chunks) > 1)}
    if len(chunks) > 1:
        files |= {
            f"texts_{i}.js": f"TEXTS({i - 1}, {pages.json_text(part)});\n" for i, part in enumerate(chunks, start=1)
        }
    return files


def _asset(name: str) -> str:
    return pages.asset("mc2core.explore", name)


def _nodes(description: Description, tables: Tables) -> pd.DataFrame:
    """Return one table of the clusters of all shown clusterings: ``cut`` is the clustering, by its number of clusters,
    and ``number`` the number of the cluster in this clustering."""
    clusters = tables["clusters"]
    rows = [clusters.assign(cut=description.recommended, number=clusters["cluster"])]
    rows += [tables["cut_clusters"]] if "cut_clusters" in tables else []
    names = [*_OF_NODES, *(name for name in _MAYBE if name in clusters)]
    table = pd.concat([part[names] for part in rows], ignore_index=True)
    return table.loc[table["cluster"].isin({node + 1 for node in description.shown})]


def _defaults(names: pd.DataFrame) -> dict[str, dict[int, str]]:
    """Return the default names of renamed clusters and topics, by kind and number."""
    renamed = names[names["name"] != names["default"]]
    return {str(kind): dict(zip(part["number"], part["default"], strict=True)) for kind, part in renamed.groupby("of")}


def _shown_documents(description: Description, tables: Tables) -> pd.DataFrame:
    """Return the rows of documents that the report shows: documents on the map and typical documents."""
    near, table = tables["cluster_documents"], tables["documents"]
    typical = set(near.loc[near["cluster"].isin({node + 1 for node in description.shown}), "document"])
    if "topic_documents" in tables:
        typical |= set(tables["topic_documents"]["document"])
    return table.loc[table["x"].notna() | table["document"].isin(typical)]


def _cuts(description: Description, rows: np.ndarray) -> dict[int, list[int]]:
    """Return the node of each document of ``rows``, from 1, by number of clusters of the clustering."""
    return {size: (description.at(size)[rows] + description.first[size] + 1).tolist() for size in description.sizes}


def _parts(description: Description, tables: Tables) -> list[tuple[str, pd.DataFrame]]:
    """Return the name of each table in the HTML report, with the rows and columns that the report shows."""
    shown, parts = {node + 1 for node in description.shown}, []
    topics = set(tables["topics"]["topic"].head(MAX_TOPICS))
    large = set(_nodes(description, tables).nlargest(MAX_NODES, "documents")["cluster"])
    for name, columns in _COLUMNS.items():
        if name not in tables:
            continue
        table = tables[name]
        if name == "documents":
            table = _shown_documents(description, tables)
        elif name == "document_topics":
            is_large = table["share"] >= MIN_OF_DOCUMENT
            is_shown = table["document"].isin(_shown_documents(description, tables)["document"])
            table = table[is_large & is_shown].groupby("document").head(MAX_OF_DOCUMENT)
        elif name == "document_clusters":
            table = _next_clusters(_shown_documents(description, tables), table)
        elif name.endswith("_means"):
            table = table[table[name.removesuffix("_means")].isin(shown if name.startswith("cluster") else topics)]
            table = table.groupby(name.removesuffix("_means")).head(MAX_MEANS)
        elif name == "topic_values":
            table = table[(table["by_share"] <= MAX_OF_TOPIC) | table["is_notable"]]
        elif "of" in table:
            is_kept = table["number"].isin(large).where(table["of"] == "cluster", table["number"].isin(topics))
            table = table.loc[is_kept]
        elif "cluster" in table:
            table = table.loc[table["cluster"].isin(shown)]
        if name == "shares":
            rank = table.groupby(["of", "number", "context"]).cumcount()
            table = table.loc[rank < MAX_VALUES]
        if name == "document_clusters" and table.empty:
            continue
        parts.append((name, table.loc[:, [one for one in columns or table.columns if one in table]]))
    return parts


def _next_clusters(documents: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the second likeliest cluster of each document whose cluster is less probable than MIN_SURE."""
    unsure = documents.loc[documents["probability"] < MIN_SURE].set_index("document")["cluster"]
    rows = table.loc[table["document"].isin(unsure.index)]
    return rows.loc[rows["cluster"] != rows["document"].map(unsure)].groupby("document").head(1)


def _of_documents(description: Description, documents: pd.DataFrame) -> dict[str, Any]:
    """Return the contexts and kept columns of the documents on the map, by name: numbers, or lists of values."""
    rows = np.flatnonzero(documents["x"].notna())
    contexts: dict[str, Any] = {}
    for variable in variables_of(description):
        if variable.role == LABEL:
            continue
        entry: dict[str, Any] = {"document": (rows + 1).tolist(), "kept": variable.role == KEPT}
        if variable.is_number:
            entry["number"] = [_digits(x) for x in variable.values[rows]]
        else:
            table = variable.values[rows]
            used, index = np.unique(table.indices, return_inverse=True)
            lists = [index[a:b][:MAX_NAMES].tolist() for a, b in zip(table.indptr[:-1], table.indptr[1:], strict=True)]
            entry |= {"names": [variable.names[one] for one in used], "values": lists}
        contexts[variable.name] = entry
    return contexts


def _pack_predictions(description: Description, rows: np.ndarray) -> dict[str, Any]:
    """Return the predicted contexts of the documents ``rows`` (:func:`predictions`), in a form for JSON."""
    tables: dict[str, Any] = {}
    for name, prediction in predictions(description, rows).items():
        tables[name] = {"of": prediction["of"].tolist()}
        if "names" in prediction:
            used, index = np.unique(prediction["columns"], return_inverse=True)
            shares = [[_digits(round(one, 4)) for one in row] for row in prediction["probability"]]
            names = [prediction["names"][one] for one in used]
            tables[name] |= {
                "names": names,
                "likeliest": index.reshape(prediction["columns"].shape).tolist(),
                "share": shares,
            }
        else:
            tables[name] |= {part: [_digits(one) for one in prediction[part]] for part in ("mean", "low", "high")}
    return tables


def _pack_table(table: pd.DataFrame, shares: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the columns of a table by name, in a form for JSON.

    Numbers are rounded to six digits, as in the CSV files, and columns in ``shares`` to four. A column of texts is a
    dict of its distinct texts ("levels") and the index of each row's text ("codes").
    """
    packed: dict[str, Any] = {}
    for name, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            digits = 4 if name in shares else 6
            packed[str(name)] = [_digits(one, digits) for one in column.to_numpy(dtype=np.float64, na_value=np.nan)]
        else:
            codes, levels = pd.factorize(column.astype(object))
            packed[str(name)] = {"levels": [str(one) for one in levels], "codes": codes.tolist()}
    return packed


def _digits(value: float, digits: int = 6) -> float | int | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
