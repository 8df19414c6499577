"""Four measures of agreement with classes, for every method, with their spread (ICML14 figure 5)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2core.experiments.report.captions import OWN_DOCUMENTS
from mc2core.experiments.report.claims import Claim, no_further_than_seeds
from mc2core.experiments.report.tables import spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = {"purity": "purity", "nmi": "NMI", "rand_index": "Rand index", "f_score": "F-score"}


def solutions_with_agreement(fit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The clusterings of a file of scores; ValueError where its corpus has no label for each document."""
    from mc2core.model.scores import solutions_of  # half a second to load, for jobs that read no scores

    solutions = list(solutions_of(fit))
    if any("purity" not in solution for solution in solutions):
        raise ValueError(f"run {fit['run']!r} has no agreement: each document of its corpus needs one label")
    return solutions


def summarise(scores: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each method (with the contexts it saw) and measure: mean, sd (n - 1), min, max over its clusterings.

    Parameters
    ----------
    scores : of fits, with ``method``, ``contexts``, ``source``, ``converged`` (by solution) and the clusterings of
        :func:`mc2core.model.scores.solutions_of`.

    Returns
    -------
    columns method, contexts ("tag", "" for none), measure, mean, sd (0 for one clustering), min, max, clusterings,
    clusters (mean number), not_converged (clusterings whose method did not come to rest), source; methods and measures
    in the order in which they come.

    Raises
    ------
    ValueError
        A fit whose corpus has no labels.
    """
    rows = []
    for fit in scores:
        for solution in solutions_with_agreement(fit):
            rest = fit.get("converged", {}).get(solution.get("solution"), True)
            rows += [
                {
                    "method": fit["method"],
                    "contexts": "+".join(fit["contexts"]),
                    "measure": measure,
                    "value": solution[measure],
                    "clusters": solution["clusters"],
                    "not_converged": int(not rest),
                    "source": fit["source"],
                }
                for measure in MEASURES
            ]
    grouped = pd.DataFrame(rows).groupby(["method", "contexts", "measure"], sort=False)
    table = grouped.agg(
        mean=("value", "mean"), sd=("value", "std"), min=("value", "min"), max=("value", "max"),
        clusterings=("value", "size"), clusters=("clusters", "mean"), not_converged=("not_converged", "sum"),
        source=("source", "first"),
    )  # fmt: skip
    return table.fillna({"sd": 0.0}).reset_index()


def claims(points: pd.DataFrame, dataset: str) -> list[Claim]:
    """The paper's claim for each measure: MC2 with tags has the highest mean of the methods that the paper knows."""
    points, judged = points[points["method"] != OWN_DOCUMENTS], []
    for measure, label in MEASURES.items():
        here = points[points["measure"] == measure]
        ours = (here["method"] == "MC2") & (here["contexts"] == "tag")
        text = f"MC2 with tags best in {label}"
        if not ours.any() or ours.all():
            why = "no fit of MC2 with tags" if not ours.any() else "no other method"
            judged.append(Claim(dataset, text, None, why))
            continue
        own, rival = here[ours].iloc[0], here[~ours].sort_values("mean", kind="stable").iloc[-1]
        numbers = f"{_mean_and_sd(own)} against {_mean_and_sd(rival)} of {_name(rival)}"
        lead = own["mean"] - rival["mean"]
        numbers += no_further_than_seeds(lead, max(own["sd"], rival["sd"]), "clusterings", 3)
        judged.append(Claim(dataset, text, bool(lead > 0), numbers))
    return judged


def draw(points: pd.DataFrame) -> Figure:
    """A panel for each measure, a line for each method: mean, one sd (thick), smallest to largest (thin).

    MC2 and documents of their own have a colour and a marker each, all others share theirs.
    """
    from mc2core.experiments.report import style

    methods = points.drop_duplicates(["method", "contexts"]).reset_index(drop=True)
    figure = style.new_figure(7.2, 0.9 + 0.27 * len(methods))
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for ax, (measure, label) in zip(panels, MEASURES.items(), strict=True):
        here = points[points["measure"] == measure].reset_index(drop=True)
        for place, row in here.iterrows():
            look = {"MC2": 1, OWN_DOCUMENTS: 2}.get(row["method"], 0)
            colour = style.COLOURS[look]
            ax.plot([row["min"], row["max"]], [place, place], color=colour, linewidth=0.8)
            reach = [max(row["mean"] - row["sd"], 0.0), min(row["mean"] + row["sd"], 1.0)]
            ax.plot(reach, [place, place], color=colour, linewidth=3.0, alpha=0.45, solid_capstyle="butt")
            ax.plot(row["mean"], place, color=colour, marker=style.MARKERS[look])
        ax.set(title=label, xlim=(0.0, 1.05), xticks=(0.0, 0.5, 1.0))
        ax.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    names = [textwrap.fill(f"{_name(row)} (K {row['clusters']:.0f})", 24) for _, row in methods.iterrows()]
    panels[0].set_yticks(range(len(methods)), names)
    panels[0].set_ylim(len(methods) - 0.5, -0.5)
    sources = set(points["source"]) - {"real"}
    style.mark_source(figure, f"{' and '.join(sorted(sources))} data" if sources else "")
    return figure


def _mean_and_sd(row: Any) -> str:
    return spread({"value": row["mean"], "value_sd": row["sd"]}, "value", 3)


def _name(row: Any) -> str:
    return f"{row['method']}, {row['contexts']}s" if row["contexts"] else str(row["method"])
