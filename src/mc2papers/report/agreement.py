"""Compare methods by four measures of agreement with classes, and show their spread (ICML14, figure 5)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2papers.report.captions import DOCUMENT_LEVEL
from mc2papers.report.claims import (
    ANY_SIMULATOR,
    FEWEST_PER_CLUSTER,
    UNMET,
    Claim,
    degenerate,
    difference,
    judge,
    undecided,
    unmet,
)
from mc2papers.report.tables import mean_sd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = {"purity": "purity", "nmi": "NMI", "rand_index": "Rand index", "f_score": "F-score"}
BEST = "MC2 with contexts has the highest agreement with the classes in all four measures"
#: lead that counts as the paper's "wide margin"; the numbers are ours
WIDE = {"purity": 0.05, "nmi": 0.05}


def solutions_with_agreement(fit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the clusterings in the scores of a fit. Raises ValueError if a document of the corpus has no label."""
    from mc2core.posterior.scores import solutions_of  # half a second to load, for jobs that read no scores

    solutions = list(solutions_of(fit))
    if any("purity" not in solution for solution in solutions):
        raise ValueError(f"run {fit['run']!r} has no agreement: each document of its corpus needs one label")
    return solutions


def summarise(scores: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per method (with its contexts) and measure: mean, sd (n - 1), min and max over its clusterings.

    Parameters
    ----------
    scores : one per fit, with ``method``, ``seed``, ``contexts``, ``source``, ``converged`` (by solution) and the
        clusterings of :func:`mc2core.posterior.scores.solutions_of`.

    Returns
    -------
    columns method, contexts (such as "tag"; "" for none), measure, mean, sd (0 for one clustering), min, max,
    clusterings (number), clusters (mean number), not_converged (number of clusterings whose method did not converge)
    and source. Methods and measures are in the order of ``scores``.

    Raises
    ------
    ValueError
        If the corpus of a fit has no labels.
    """
    rows = []
    for fit in scores:
        for solution in solutions_with_agreement(fit):
            has_converged = fit.get("converged", {}).get(solution.get("solution"), True)
            rows += [
                {
                    "method": fit["method"],
                    "contexts": "+".join(fit["contexts"]),
                    "measure": measure,
                    "value": solution[measure],
                    "clusters": solution["clusters"],
                    "not_converged": int(not has_converged),
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


def claims(scores: Sequence[Mapping[str, Any]], dataset: str, context: str = "tag") -> list[Claim]:
    """Judge the paper's claims that MC2 with contexts is better than the other methods of the paper.

    It must be better in each of MEASURES, and by a wide margin in the measures of WIDE. The value of a method for a
    seed is the mean over its numbers of clusters. A method is not compared if one of its numbers leaves fewer than
    FEWEST_PER_CLUSTER documents per cluster. There is no verdict if MC2 found no clustering.
    """
    ours = "MC2", context
    table = pd.DataFrame(
        [
            {"method": fit["method"], "contexts": "+".join(fit["contexts"]), "seed": fit["seed"]}
            | {"documents": fit.get("documents", float("inf")), "clusters": solution["clusters"]}
            | {"several": len(solutions_with_agreement(fit)) > 1}
            | {measure: solution[measure] for measure in MEASURES}
            for fit in scores
            if fit["method"] != DOCUMENT_LEVEL
            for solution in solutions_with_agreement(fit)
        ]
    )
    margins = " and ".join(f"{margin:g} in {MEASURES[measure]}" for measure, margin in WIDE.items())
    bounds = {
        BEST: dict.fromkeys(MEASURES, 0.0),
        f"MC2 with contexts leads all other methods by a wide margin (at least {margins}, our thresholds)": WIDE,
    }
    rivals: dict[Any, pd.DataFrame] = {
        key: part.groupby("seed")[list(MEASURES)].mean()
        for key, part in table.groupby(["method", "contexts"], sort=False)
    }
    values = rivals.pop(ours, None)
    if values is None or not rivals:
        lack = f"no fit of MC2 with {context}s" if values is None else "no other method"
        return [unmet(dataset, text, lack) for text in bounds]
    crowded, no_rival = table[table["several"] & (table["clusters"] * FEWEST_PER_CLUSTER > table["documents"])], ""
    if len(crowded):
        name, most, n = crowded.sort_values("clusters")[["method", "clusters", "documents"]].iloc[-1]
        no_rival = f"{name} has {most} clusters for {n} documents, so it does not count as a rival"
    own_fits = table[(table["method"] == ours[0]) & (table["contexts"] == context)]
    why, judged = degenerate(own_fits["clusters"], own_fits["documents"].max(), _name(*ours)), []
    for text, sizes in bounds.items():
        leads, numbers = [], []
        for measure, size in sizes.items():
            label, means = MEASURES[measure], values[measure]
            best = max(rivals, key=lambda key: rivals[key][measure].mean())
            numbers.append(f"{label} {mean_sd(means, 3)} against {mean_sd(rivals[best][measure], 3)} of {_name(*best)}")
            for key, one in rivals.items():
                name = f"lead in {label} over {_name(*key)}"
                leads.append(difference(means, one[measure], above=0, digits=3, name=name, size=size))
        claim = judge(dataset, text, leads, ", ".join(numbers), favours=ANY_SIMULATOR)
        judged.append(undecided(undecided(claim, no_rival), why, UNMET))
    return judged


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per measure and one line per method.

    A point is a mean (hollow without contexts), a thick line is one sd, and a thin line is the range. Colours and
    markers are from :mod:`mc2papers.report.palette`.
    """
    from matplotlib.lines import Line2D

    from mc2papers.report import palette, style

    methods = points.drop_duplicates(["method", "contexts"]).reset_index(drop=True)
    figure = style.new_figure(7.2, 1.2 + 0.27 * len(methods))
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for ax, (measure, label) in zip(panels, MEASURES.items(), strict=True):
        part = points[points["measure"] == measure].reset_index(drop=True)
        for y, row in part.iterrows():
            colour, marker = palette.look(row["method"])
            ax.plot([row["min"], row["max"]], [y, y], color=colour, linewidth=0.8)
            reach = [max(row["mean"] - row["sd"], 0.0), min(row["mean"] + row["sd"], 1.0)]
            ax.plot(reach, [y, y], color=colour, linewidth=3.0, alpha=0.45, solid_capstyle="butt")
            ax.plot(row["mean"], y, color=colour, marker=marker, mfc=colour if row["contexts"] else "white")
        ax.set(title=label[0].upper() + label[1:], xlim=(0.0, 1.05))
        ax.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        ax.grid(axis="x", color=palette.GRID, linewidth=0.6)
    names = [
        textwrap.fill(f"{_name(row['method'], row['contexts'])} (K {row['clusters']:.0f})", 24)
        for _, row in methods.iterrows()
    ]
    panels[0].set_yticks(range(len(methods)), names)
    panels[0].set_ylim(len(methods) - 0.5, -0.5)
    contexts = " and ".join(f"{one}s" for one in sorted(set(points["contexts"]) - {""}))
    shapes = [Line2D([], [], marker="o", ls="none", label=f"mean, with {contexts}")] if contexts else []
    if (points["contexts"] == "").any():
        shapes.append(Line2D([], [], marker="o", ls="none", mfc="white", label="mean, contents alone"))
    shapes += [
        Line2D([], [], linewidth=3.0, alpha=0.45, label="one sd to each side"),
        Line2D([], [], linewidth=0.8, label="smallest to largest"),
    ]
    for shape in shapes:
        shape.set_color(palette.SOFT)
    figure.legend(handles=shapes, loc="outside upper center", ncols=len(shapes))
    style.mark_source(figure, " and ".join(sorted({*points["source"]} - {"real"})))
    return figure


def _name(method: str, contexts: str) -> str:
    return f"{method}, {contexts}s" if contexts else method
