"""Tables: ours beside the paper's, with the claims the numbers bear out or not, as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from mc2core import storage

CLAIM_COLUMNS = ["target", "dataset", "claim", "verdict", "numbers"]
PERPLEXITY_NOTES = (
    "Ours: mean ± sd over seeds of the fits; (K, M) are clusters and topics in use, averaged over samples and seeds.",
    "marginal: exact likelihood of each held-out document, averaged over samples. icml14: the paper's own estimator "
    "(its appendix A.4), in which a word helps to choose its topic: optimistic, and not comparable with marginal.",
    "The paper prints one run on its own split and preprocessing: compare the order of its rows with the order of "
    "ours, not the levels. Empty cells: not printed there, or not fitted here.",
    "seconds: sampling only, without compilation and scoring, on the cores given.",
)
SPEED_NOTES = (
    "Ours: mean ± sd over seeds of the seconds of a fit, start included, without reading, compilation and scoring; "
    "both are timed in one job that has the cores to itself. The result is the same bits on any number of cores.",
    "The paper does not say how many passes its seconds are for; its data, sizes and machine differ from ours.",
)
_FEATURES = {(): "words", ("title",): "words+title", ("author",): "words+authors", ("year",): "words+timestamp"}


def mean_sd(values: Sequence[float], digits: int = 0) -> str:
    """``"2,322 ± 4"``: mean and sd (n - 1) over seeds; the sd is left out where there is one value."""
    mean = f"{np.mean(values):,.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):,.{digits}f}" if len(values) > 1 else mean


def claim(target: str, dataset: str, text: str, holds: bool | None, numbers: str) -> dict[str, str]:
    """One row of a table of claims; ``holds`` is None where what it speaks of was not computed."""
    verdict = "not computed" if holds is None else "holds" if holds else "does not hold"
    return dict(zip(CLAIM_COLUMNS, (target, dataset, text, verdict, numbers), strict=True))


# -- ICML14 table 1 ------------------------------------------------------------------------------------------------
def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """ICML14 table 1: a row for each method and features the paper or we have.

    Parameters
    ----------
    scores : one for each fit, with ``title``, ``source``, ``documents``, ``method``, ``contexts``, ``perplexity``
        (a number for each estimator), ``clusters``, ``topics``, ``seconds``, ``threads``.
    paper : columns method, features, dataset, perplexity, clusters, topics as printed.
    estimators : the first one decides the claims.

    Returns
    -------
    table : ours as mean and sd over seeds beside the paper's figure; NaN where one side has none.
    claims : rows of :func:`claim`.
    """
    ours = pd.DataFrame([_flat(one, estimators) for one in scores])
    datasets = list(dict.fromkeys(ours["dataset"]))
    rows = []
    for dataset in datasets:
        printed = paper[paper["dataset"] == dataset]
        keys = [*zip(printed["method"], printed["features"], strict=True)]
        mine = ours[ours["dataset"] == dataset]
        keys += [key for key in zip(mine["method"], mine["features"], strict=True) if key not in keys]
        for method, features in dict.fromkeys(keys):
            fits = mine[(mine["method"] == method) & (mine["features"] == features)]
            there = printed[(printed["method"] == method) & (printed["features"] == features)]
            rows.append(_row(dataset, method, features, fits, there, estimators))
    table = pd.DataFrame(rows)
    return table, [one for dataset in datasets for one in _claims(dataset, table, estimators[0])]


def _flat(score: Mapping[str, Any], estimators: Sequence[str]) -> dict[str, Any]:
    contexts = tuple(sorted(score["contexts"]))
    names = ("source", "documents", "method", "clusters", "topics", "seconds", "threads")
    return {
        "dataset": score["title"],
        "features": _FEATURES.get(contexts, "+".join(("words", *contexts))),
        **{name: score[name] for name in names},
        **{name: score["perplexity"][name] for name in estimators},
    }


def _row(
    dataset: str, method: str, features: str, fits: pd.DataFrame, there: pd.DataFrame, estimators: Sequence[str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset, "method": method, "features": features, "seeds": len(fits)}
    for name in (*estimators, "clusters", "topics", "seconds"):
        row[name] = fits[name].mean() if len(fits) else np.nan
        row[f"{name}_sd"] = fits[name].std(ddof=1) if len(fits) > 1 else np.nan
    for name in ("source", "documents", "threads"):
        row[name] = fits[name].iloc[0] if len(fits) else np.nan
    for name in ("perplexity", "clusters", "topics"):
        row[f"paper_{name}"] = there[name].iloc[0] if len(there) else np.nan
    return row


def _claims(dataset: str, table: pd.DataFrame, estimator: str) -> list[dict[str, str]]:
    here = table[table["dataset"] == dataset].set_index(["method", "features"])
    rows, sds = here[estimator].dropna(), here[f"{estimator}_sd"]
    mc2 = rows.loc["MC2"] if "MC2" in rows.index.get_level_values(0) else pd.Series(dtype=float)
    target, judged = "icml2014_table1", []
    numbers = ", ".join(f"{features} {value:,.1f}" for features, value in mc2.items())
    if "words+timestamp" in mc2.index and len(mc2) > 1:
        others = mc2.drop("words+timestamp")
        lead = others.min() - mc2["words+timestamp"]
        spread = sds.loc["MC2"][["words+timestamp", others.idxmin()]].max()
        if abs(lead) < spread:
            numbers += f" (no further apart than one sd between seeds, {spread:.1f})"
        judged.append(claim(target, dataset, "timestamp best", bool(lead > 0), numbers))
    else:
        judged.append(claim(target, dataset, "timestamp best", None, numbers))
    for worse, better in (("HDP", "npTOT"), ("npTOT", "MC2")):
        one = rows.loc[worse].min() if worse in rows.index.get_level_values(0) else None
        others = rows.loc[better].max() if better in rows.index.get_level_values(0) else None
        text = f"any MC2 below {worse}" if better == "MC2" else f"{better} below {worse}"
        absent = [name for name, value in ((worse, one), (better, others)) if value is None]
        if one is None or others is None:
            judged.append(claim(target, dataset, text, None, f"no fit of {' and '.join(absent)}"))
        else:
            judged.append(claim(target, dataset, text, bool(others < one), f"{others:,.0f} against {one:,.0f}"))
    return judged


def format_perplexity_table(table: pd.DataFrame, estimators: Sequence[str]) -> pd.DataFrame:
    """The table of :func:`perplexity_table` as text for people."""

    def number(value: Any, digits: int = 0) -> str:
        return "" if pd.isna(value) else f"{value:,.{digits}f}"

    def spread(row: Any, name: str, digits: int = 0) -> str:
        sd = row[f"{name}_sd"]
        return number(row[name], digits) + (f" ± {sd:,.{digits}f}" if pd.notna(sd) else "")

    def sizes(clusters: str, topics: str) -> str:
        return f"({clusters or '-'}, {topics or '-'})" if clusters or topics else ""

    return pd.DataFrame(
        [
            {
                "dataset": row["dataset"],
                "method": row["method"],
                "features": row["features"],
                "perplexity, paper": number(row["paper_perplexity"], 1),
                **{f"ours, {name}": spread(row, name) for name in estimators},
                "(K, M), paper": sizes(number(row["paper_clusters"]), number(row["paper_topics"])),
                "(K, M), ours": sizes(number(row["clusters"]), number(row["topics"])),
                "seeds": number(row["seeds"]) if row["seeds"] else "",
                "source": "" if pd.isna(row["source"]) else row["source"],
                "documents": number(row["documents"]),
                "seconds": spread(row, "seconds", 1),
                "cores": number(row["threads"]),
            }
            for _, row in table.iterrows()
        ]
    )


# -- UAI16 table 1 -------------------------------------------------------------------------------------------------
def speed_table(rows: pd.DataFrame, paper: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """UAI16 table 1: seconds of SVI on one core and on several, a row for each dataset.

    Parameters
    ----------
    rows : dataset, source, documents, iterations, seed, threads, seconds; every seed on one core and on several.
    paper : columns dataset, sequential_seconds, parallel_seconds, cores as printed.

    Returns
    -------
    table : ours as mean and sd over seeds (NaN where only one core was there), the paper's beside it.
    claims : rows of :func:`claim`.
    """
    table, claims = [], []
    for dataset, fits in rows.groupby("dataset", sort=False):
        seconds = fits.pivot(index="seed", columns="threads", values="seconds")
        cores = int(seconds.columns.max())
        there = paper[paper["dataset"] == dataset]
        row = {"dataset": dataset, "seeds": len(seconds), **fits.iloc[0][["source", "documents", "iterations"]]}
        for name, kept in (("sequential", seconds[1]), ("parallel", seconds[cores] if cores > 1 else pd.Series())):
            row |= {f"{name}_seconds": kept.mean(), f"{name}_seconds_sd": kept.std(ddof=1)}
        row |= {"cores": cores, "speedup": row["sequential_seconds"] / row["parallel_seconds"]}
        for name in ("sequential_seconds", "parallel_seconds", "cores"):
            row[f"paper_{name}"] = there[name].iloc[0] if len(there) else np.nan
        row["paper_speedup"] = row["paper_sequential_seconds"] / row["paper_parallel_seconds"]
        table.append(row)
        if len(there):
            claims.append(_speed_claim(row))
    return pd.DataFrame(table), claims


def _speed_claim(row: Mapping[str, Any]) -> dict[str, str]:
    asked, cores, speedup = int(row["paper_cores"]), row["cores"], row["speedup"]
    text = f"{row['paper_speedup']:.1f} times as fast on {asked} cores"
    numbers = "one core only"
    if cores > 1:
        numbers = (
            f"{speedup:.2f} times on {cores} cores, {speedup / cores:.0%} of the ideal; the paper's is "
            f"{row['paper_speedup'] / asked:.0%} of it on {asked}"
        )
    holds = bool(speedup >= row["paper_speedup"]) if cores == asked else None
    return claim("uai2016_table1", row["dataset"], text, holds, numbers)


def format_speed_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`speed_table` as text for people."""

    def number(value: Any, digits: int = 0) -> str:
        return "" if pd.isna(value) else f"{value:,.{digits}f}"

    def spread(row: Any, name: str) -> str:
        sd = row[f"{name}_sd"]
        return number(row[name], 2) + (f" ± {sd:,.2f}" if pd.notna(sd) else "")

    return pd.DataFrame(
        [
            {
                "dataset": row["dataset"],
                "source": row["source"],
                "documents": number(row["documents"]),
                "epochs": number(row["iterations"]),
                "1 core, s, ours": spread(row, "sequential_seconds"),
                "parallel, s, ours": spread(row, "parallel_seconds"),
                "cores, ours": number(row["cores"]),
                "speed-up, ours": number(row["speedup"], 2),
                "1 core, s, paper": number(row["paper_sequential_seconds"]),
                "parallel, s, paper": number(row["paper_parallel_seconds"]),
                "cores, paper": number(row["paper_cores"]),
                "speed-up, paper": number(row["paper_speedup"], 1),
                "seeds": number(row["seeds"]),
            }
            for _, row in table.iterrows()
        ]
    )


# -- files ---------------------------------------------------------------------------------------------------------
def write_table(
    stem: str | os.PathLike[str],
    raw: pd.DataFrame,
    shown: pd.DataFrame,
    title: str,
    notes: Sequence[str] = (),
    claims: Sequence[Mapping[str, str]] = (),
) -> None:
    """Write ``stem``.csv (``raw``) and .md, .tex and .html (``shown``, claims and notes), each whole or not at all."""
    stem = Path(stem)
    judged = pd.DataFrame(claims, columns=CLAIM_COLUMNS)[["dataset", "claim", "verdict", "numbers"]]
    tables = [shown, judged] if len(judged) else [shown]

    def rendered(style: str) -> str:
        return "\n\n".join(
            tabulate(table.to_dict("list"), headers="keys", tablefmt=style, disable_numparse=True) for table in tables
        )

    with storage.replacing(stem.with_suffix(".csv")) as stream:
        raw.to_csv(stream, index=False)
    lines = "".join(f"\n- {note}" for note in notes)
    with storage.replacing(stem.with_suffix(".md")) as stream:
        stream.write(f"# {title}\n\n{rendered('github')}\n{lines}\n")
    with storage.replacing(stem.with_suffix(".tex")) as stream:
        comments = "".join(f"% {note}\n" for note in (title, *notes))
        stream.write(f"{comments}{rendered('latex_booktabs')}\n")
    with storage.replacing(stem.with_suffix(".html")) as stream:
        listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        stream.write(_PAGE.format(title=html.escape(title), tables=rendered("html"), notes=listed))


def write_claims(path: str | os.PathLike[str], claims: Sequence[Mapping[str, str]]) -> None:
    """Write rows of :func:`claim` as CSV."""
    with storage.replacing(path) as stream:
        pd.DataFrame(claims, columns=CLAIM_COLUMNS).to_csv(stream, index=False)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px/1.4 sans-serif; margin: 1.5em; color: #111; background: #fff; }}
table {{ border-collapse: collapse; margin: 1em 0; }}
th, td {{ padding: 0.25em 0.7em; text-align: left !important; white-space: nowrap; }}
thead {{ border-bottom: 1.5px solid #111; border-top: 1.5px solid #111; }}
tbody {{ border-bottom: 1.5px solid #111; }}
tbody tr:nth-child(even) {{ background: #f5f5f5; }}
li {{ max-width: 60em; }}
</style>
</head>
<body>
<h1 style="font-size: 1.2em">{title}</h1>
{tables}
<ul>{notes}</ul>
</body>
</html>
"""
