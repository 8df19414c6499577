"""All tables of a fit, as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from mc2core.base import extras, storage
from mc2core.base.checks import choice, counted
from mc2core.base.progress import work
from mc2core.corpus.checks import CONTENT_KINDS
from mc2core.corpus.embeddings import projection_of
from mc2core.explore.agreement import of_runs
from mc2core.explore.arrivals import arrivals_table
from mc2core.explore.clusters import agreement, cluster_tables
from mc2core.explore.description import Description
from mc2core.explore.documents import document_tables, document_topics
from mc2core.explore.methods import merged_by_hand
from mc2core.explore.shares import shares_tables
from mc2core.explore.topics import topic_tables
from mc2core.inference.running.summary import ONE_CHAIN, advice
from mc2core.inference.running.summary import agreement as agreement_of
from mc2core.posterior.consensus import between

Tables = Mapping[str, pd.DataFrame]
_DIGITS = "%.6g"
#: formats of tables in addition to CSV, and the suffixes of their files
FORMS = {"latex": "tex", "html": "html"}
_IN_PAPERS = "clusters", "topics"
_NOT_FOR_PAPERS = {"joins", "chains", "weight", "words", "tokens", "x", "y", "npmi_by_chance", "npmi_by_chance_sd"}
_VALUES = 3  # number of values of a context in a cell
_MOST_DIGITS = 8
_LONGEST = 30  # largest number of characters of a cell that is not broken into lines


def tables_of(description: Description, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Return all tables by name. Empty tables, such as labels if there are none, are left out, except topics."""
    with work("tables of clusters"):
        of_clusters = cluster_tables(description)
    tables = {"summary": _summary(description, of_clusters["clusters"]), **of_clusters}
    with work("tables of topics and shares"):
        tables |= shares_tables(description)
        tables |= topic_tables(description, seed)
    with work("tables of documents"):
        tables |= document_tables(description, seed)
        tables["document_topics"] = document_topics(description)
    tables["arrivals"] = arrivals_table(description.posterior)
    tables["names"] = pd.concat([tables.pop("cluster_names"), tables.pop("topic_names")], ignore_index=True)
    return {name: table for name, table in tables.items() if len(table) or name == "topics"}


def for_paper(table: pd.DataFrame, form: str) -> str:
    """Return a table, for example of clusters or topics, as LaTeX or as HTML that Word opens.

    Numbers have three significant digits, and more if the values of a column differ in later digits, as dates do.
    Columns for diagnostics, such as the position of a topic on the map, are left out. For each context, the three
    commonest values are kept.

    Parameters
    ----------
    table : DataFrame
        Table of a fit, such as ``fit.clusters()``.
    form : "latex" or "html"
        Format of the result. The LaTeX document must load the package booktabs.

    Raises
    ------
    ValueError
        If ``form`` is not a known format.
    MissingPackage
        If Jinja, with which pandas writes LaTeX, is not installed.

    Examples
    --------
    >>> print(for_paper(pd.DataFrame({"cluster": [1], "share": [0.1254]}), "latex"))
    \\begin{tabular}{rr}
    \\toprule
    cluster & share \\\\
    \\midrule
    1 & 0.125 \\\\
    \\bottomrule
    \\end{tabular}
    <BLANKLINE>
    """
    choice("form", form, FORMS)
    shown = table[[name for name in table if name not in _NOT_FOR_PAPERS]]
    for name in shown.columns[shown.columns.str.startswith("context_")]:
        if not is_numeric_dtype(shown[name]):  # the commonest values come first
            shown = shown.assign(**{name: shown[name].str.split("; ").str[:_VALUES].str.join("; ")})
    longest = [0 if is_numeric_dtype(shown[name]) else shown[name].astype(str).str.len().max() for name in shown]
    widths = ["r" if n == 0 else "l" if n <= _LONGEST else "p{5cm}" for n in longest]
    shown = shown.assign(**{str(name): _round(shown[name]) for name in shown.select_dtypes("float")})
    shown = shown.rename(columns=lambda name: name.replace("_", " "))
    if form == "html":
        page = '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Table</title>\n'
        return page + shown.to_html(index=False, na_rep="") + "\n"
    extras.require("jinja2", extra="explore", purpose="a table in LaTeX")
    return shown.to_latex(index=False, na_rep="", escape=True, column_format="".join(widths))


def _round(numbers: pd.Series) -> pd.Series:
    """Return numbers as texts with three digits, and more if the values of a column differ in later digits."""

    def integer_digits(number: float) -> int:
        return int(np.floor(np.log10(abs(number)))) + 1 if 0 < abs(number) < np.inf else 1

    spread = numbers.max() - numbers.min()
    places = 3 - integer_digits(spread) if spread > 0 else 0

    def text(number: float) -> str:
        digits = min(max(3, integer_digits(number) + places), _MOST_DIGITS)
        return f"{number:.{digits}g}" if integer_digits(number) <= digits else f"{number:.0f}"

    return numbers.map(text, na_action="ignore").astype(object)


def write_tables(folder: Path, tables: Tables, forms: Sequence[str] = ()) -> None:
    """Write each table to ``folder``/NAME.csv, with six significant digits; clusters and topics also in ``forms``."""
    for form in forms:
        for name in _IN_PAPERS:
            if name in tables:
                with storage.replacing(folder / f"{name}.{FORMS[form]}") as stream:
                    stream.write(for_paper(tables[name], form))
    for name, table in tables.items():
        with storage.replacing(folder / f"{name}.csv") as stream:
            table.to_csv(stream, index=False, float_format=_DIGITS)


def _summary(description: Description, clusters: pd.DataFrame) -> pd.DataFrame:
    """Return a table of facts about the fit, with the columns name and value."""
    corpus, posterior = description.corpus, description.posterior
    provenance: Mapping[str, Any] = posterior.provenance
    has_clusters = not description.without_clusters
    shown = ("clusters", "main clusters") if has_clusters and len(posterior.samples) > 1 else ()
    rows: dict[str, Any] = {
        "documents": corpus.n_documents,
        **({} if description.drawn is None else {"drawn evenly from documents": description.n_documents}),
        **(
            {CONTENT_KINDS[corpus.content_kind]: corpus.n_words, "observations": corpus.n_tokens}
            if description.is_of_observations
            else {"words": corpus.n_words, "tokens": corpus.n_tokens}
        ),
        **(_counts(description) if has_clusters else {}),
        "topics": posterior.representative.n_topics,
        **{f"{quantity} in 90 % of the samples": between(posterior.interval(quantity)) for quantity in shown},
        "contexts of the model": ", ".join(
            name if family.strength == 1.0 else f"{name} (strength {family.strength:g})"
            for name, family in sorted(posterior.families.items())
        )
        or "none",
    }
    if vectors := [name for name, kind in sorted(corpus.context_kinds.items()) if kind == "vector"]:
        rows["contexts of vectors, which have no table"] = ", ".join(vectors)
    if (projection := projection_of(posterior.imported)) is not None and projection.name in posterior.families:
        rows["embeddings"] = (
            f"{counted(projection.length, 'numbers')}, reduced to "
            f"{counted(projection.basis.shape[1], 'components')} with "
            f"{projection.explained:.0%} of the variance; strength {posterior.families[projection.name].strength:g}"
        )
    rows |= {part: provenance[part]["name"] for part in ("model", "engine") if part in provenance}
    rows |= {name: provenance[name] for name in ("seed", "iterations") if name in provenance}
    if has_clusters:
        chains = posterior.between_chains()
        rows["chains"] = agreement_of(chains) if chains else ONE_CHAIN
        if not description.no_groups and (sentence := of_runs(posterior, clusters)) is not None:
            rows["clusters by run"] = sentence
    by_hand = [one.removesuffix(".") for one in merged_by_hand(posterior)]
    warnings = [*by_hand, *advice(posterior, corpus), *description.notes]
    rows |= {f"warning {i}": warning for i, warning in enumerate(warnings, 1)}
    if has_clusters:
        scores = agreement(description, description.n_clusters)
        rows |= {f"{name} of all clusters": value for name, value in scores.items()}
    return pd.DataFrame({"name": list(rows), "value": [str(one) for one in rows.values()]})


def _counts(description: Description) -> dict[str, int]:
    sizes = np.bincount(description.cluster)
    return {
        "recommended number of clusters": description.recommended,
        **{f"{name} number of clusters": size for name, size in description.other.items()},
        "clusters": description.posterior.n_clusters,
        "clusters with a document": int((sizes > 0).sum()),
        "clusters with 1 % of the documents": int((sizes >= 0.01 * description.corpus.n_documents).sum()),
    }
