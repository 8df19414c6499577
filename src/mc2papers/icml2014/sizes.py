"""ICML14 figure 7: agreement of clusters with the truth by length and number of documents, with and without context."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mc2papers.datasets.origins import MC2
from mc2papers.report import palette, style
from mc2papers.report.claims import Claim, difference, judge, unmet

_AXES = {"n_tokens": "words per document", "n_documents": "number of documents"}
_UNITS = {"n_tokens": "words per document", "n_documents": "documents"}
_OTHER = {"n_tokens": "n_documents", "n_documents": "n_tokens"}


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean and sd (n - 1) of the NMI over repeats by axis, n_tokens, n_documents and with_context."""
    keys = ["axis", "n_tokens", "n_documents", "with_context"]
    grouped = rows.groupby(keys)["nmi"]
    return grouped.agg(nmi="mean", nmi_sd="std", repeats="size").fillna({"nmi_sd": 0.0}).reset_index()


def draw(points: pd.DataFrame) -> Figure:
    """Draw two panels of NMI (means, with bars of one sd) from the table of :func:`summarise`.

    Both lines show MC2: solid with filled markers if it uses the context, dashed with hollow markers if not.
    """
    figure = style.new_figure(7.2, 2.9)
    colour, marker = palette.look("MC2")
    panels = figure.subplots(1, 2, sharey=True)
    repeats = int(points["repeats"].max())
    for ax, (axis, label) in zip(panels, _AXES.items(), strict=True):
        here = points[points["axis"] == axis]
        for with_context, name in ((True, "MC2 with context"), (False, "MC2 without context")):
            line = here[here["with_context"] == with_context].sort_values(axis)
            ax.errorbar(
                # slightly shifted on the log scale, so that the bars of both lines do not overlap
                line[axis] * (1.02 if with_context else 1 / 1.02),
                line["nmi"],
                line["nmi_sd"],
                label=name,
                color=colour,
                marker=marker,
                markerfacecolor=colour if with_context else "white",
                linestyle="-" if with_context else "--",
                capsize=2.5,
                elinewidth=0.9,
            )
        ticks = sorted(here[axis].unique())
        fixed = _OTHER[axis]
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel=label, title=f"{here[fixed].iloc[0]} {_UNITS[fixed]}")
        ax.set_yticks(np.linspace(0.0, 1.0, 6))
        ax.grid(axis="y", color=palette.GRID, linewidth=0.6)
    # from no agreement to perfect agreement, extended if a bar is longer
    reach = points["nmi"] - points["nmi_sd"], points["nmi"] + points["nmi_sd"]
    panels[0].set_ylim(min(0.0, reach[0].min()) - 0.02, max(1.0, reach[1].max()) + 0.02)
    panels[0].set_ylabel(f"NMI (mean and sd of {repeats} repeats)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    style.mark_source(figure, "letters, drawn as in the paper")
    return figure


def judge_sizes(rows: pd.DataFrame) -> list[Claim]:
    """Judge the claims on figure 7 (A.3), with fits paired by repeat. If there are too few sizes, there is no verdict.

    The first claim is that contexts make the recovery more robust: the NMI is higher with contexts at every size. The
    second claim is that longer documents soon add very little. It holds if the NMI rises less from the middle to the
    longest length than from the shortest to the middle length, with and without contexts.
    """
    claims = []
    for axis, label in _AXES.items():
        table = _by_repeat(rows, axis)
        gains = {size: table[size][True] - table[size][False] for size in sorted(table.columns.unique(axis))}
        numbers = "gain in NMI " + ", ".join(f"{gain.mean():+.3f} at {size}" for size, gain in gains.items())
        leads = [
            difference(table[size][True], table[size][False], above=0, digits=3, over="repeats", name=name)
            for size, name in ((size, f"gain in NMI at {size} {_UNITS[axis]}") for size in gains)
        ]
        sizes = label.replace("words per document", "document length")
        text = f"the context makes the recovery of clusters more robust (higher NMI) at every {sizes}"
        claims.append(judge("letters", text, leads, numbers, favours=MC2))
    return [*claims, _judge_lengths(_by_repeat(rows, "n_tokens"))]


def _judge_lengths(table: pd.DataFrame) -> Claim:
    lengths = sorted(table.columns.unique("n_tokens"))
    text = "beyond some length, longer documents raise the NMI very little"
    if len(lengths) < 3:
        return unmet("letters", text, f"only {len(lengths)} lengths of documents were fitted")
    short, middle, long = lengths[0], lengths[len(lengths) // 2], lengths[-1]
    numbers, slower = [], []
    for with_context, name in ((True, "with context"), (False, "without context")):
        first = table[middle][with_context] - table[short][with_context]
        later = table[long][with_context] - table[middle][with_context]
        gains = f"{first.mean():+.3f} from {short} to {middle}, {later.mean():+.3f} from {middle} to {long}"
        numbers.append(f"{name} NMI {gains}")
        said = f"later gain in NMI minus earlier gain in NMI, {name},"
        slower.append(difference(later, first, below=0, digits=3, over="repeats", name=said))
    return judge("letters", text, slower, ", ".join(numbers))


def _by_repeat(rows: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return the NMI with one row per repeat; the columns are pairs of a size on the axis and with_context."""
    return rows[rows["axis"] == axis].pivot(index="repeat", columns=[axis, "with_context"], values="nmi")
