"""A short summary of a fit in Markdown, to paste into a report or a message."""

from __future__ import annotations

import pandas as pd

from mc2core.base.checks import counted
from mc2core.base.pages import plain
from mc2core.explore import coherence, limits
from mc2core.explore.description import Description
from mc2core.explore.tables import Tables
from mc2core.explore.variables import LABEL, variables_of

MAX_ROWS = 20
"""Largest number of clusters, and of topics, in the summary."""


def summary(description: Description, tables: Tables, title: str) -> str:
    """Return a Markdown text with the model, the data, the recommended clusters and the topics.

    Characters with a meaning in Markdown or HTML are escaped.
    """
    values = dict(zip(tables["summary"]["name"], tables["summary"]["value"], strict=True))
    clusters = tables["clusters"].head(MAX_ROWS)
    drawn = "" if description.drawn is None else f", drawn from {description.n_documents}"
    has_groups = not (description.without_clusters or description.no_groups)
    of_clusters = "no clusters"
    if has_groups:
        recommended, of_fit = values["recommended number of clusters"], values["clusters"]
        of_clusters = counted(int(recommended), "clusters")
        of_clusters += "" if of_fit == recommended else f", recommended of the {of_fit} found"
        of_clusters += "".join(f" ({name} clustering: {size})" for name, size in description.other.items())
    documents, of_topics = (counted(int(values[name]), name) for name in ("documents", "topics"))
    head = f"{documents}{drawn}, {of_clusters}, {of_topics}"
    model = f"{values['model']} by {values['engine']}" if "model" in values else ""
    lines = [f"# {plain(title)}", "", f"{head}{f'; {plain(model)}' if model else ''}.", ""]
    lines += [description.no_groups, ""] if description.no_groups else []
    if "arrivals" in tables:
        came = tables["arrivals"].iloc[-1]
        lines += [f"{counted(came['update'], 'updates')} with {counted(came['so_far'], 'documents')}."]
        lines += [f"**The model may no longer fit: {plain(came['warnings'])}.**"] if came["warnings"] else []
        lines += [""]
    if "clusters by run" in values:
        lines += [f"{plain(values['clusters by run'].capitalize())}.", ""]
    for name, value in values.items():
        lines += [f"**{plain(value)}.**", ""] if name.startswith("warning ") else []
    if has_groups:
        columns = {"cluster": clusters["cluster"], "name": clusters["name"], "documents": clusters["documents"]}
        columns["share"] = clusters["share"].map("{:.1%}".format)
        columns |= _words(clusters)
        for variable in variables_of(description):
            if variable.role != LABEL:
                columns[variable.column] = clusters["cluster"].map(_describe_values(tables, variable.name))
        lines += ["## Clusters", "", *_table(pd.DataFrame(columns)), ""]
    lines += ["## Topics", ""]
    if sentence := coherence.in_words(tables["topics"]):
        lines += [sentence, ""]
    topics = tables["topics"].head(MAX_ROWS)
    shares = topics["share"].map("{:.1%}".format)
    topic_columns = {"topic": topics["topic"], "name": topics["name"], "share": shares}
    if "npmi" in topics:
        topic_columns["coherent"] = coherence.is_coherent(topics).map({True: "yes", False: "no"})
    topic_columns |= _words(topics)
    lines += [*_table(pd.DataFrame(topic_columns)), "", f"## {limits.TITLE}", ""]
    return "\n".join([*lines, *(f"- {plain(sentence)}" for sentence in limits.sentences(description, tables)), ""])


def _words(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the column of words; empty for observations, because the names of their topics contain the means."""
    return {"words": table["distinctive_words"]} if "distinctive_words" in table else {}


def _describe_values(tables: Tables, name: str) -> pd.Series:
    """Return a text per cluster: the three commonest values of a variable, or the middle half of its numbers."""
    values, numbers = tables.get("cluster_values"), tables.get("cluster_numbers")
    if values is not None and (values["context"] == name).any():
        common = values[(values["context"] == name) & (values["by_share"] <= 3)].sort_values("by_share", kind="stable")
        texts = common["value"].astype(str) + common["share"].map(" {:.0%}".format)
        return texts.groupby(common["cluster"]).agg(", ".join)
    if numbers is None or not (numbers["context"] == name).any():  # missing in every document
        return pd.Series(dtype=object)
    of_name = numbers[numbers["context"] == name].set_index("cluster")
    least, most = (of_name[f"{one}_quarter"].map("{:.6g}".format) for one in ("lower", "upper"))
    return "middle half " + least + " to " + most


def _table(table: pd.DataFrame) -> list[str]:
    rows = [[plain(str(name)) for name in table.columns], ["---"] * table.shape[1]]
    rows += [["" if pd.isna(cell) else plain(str(cell)) for cell in row] for row in table.itertuples(index=False)]
    return [f"| {' | '.join(row)} |" for row in rows]
