"""Charts of choices that a paper does not print: a row per choice, a panel per measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from mc2papers.report import palette


@dataclass(frozen=True)
class Panel:
    """A measure of each choice.

    Attributes
    ----------
    label : of the axis
    column : of the table; rows without a value have no point
    hollow : another column on the same axis, drawn hollow; "" for none
    printed : the paper's value; None for none
    is_log : whether the axis is logarithmic
    is_count : whether the axis has whole numbers only
    """

    label: str
    column: str
    hollow: str = ""
    printed: float | None = None
    is_log: bool = False
    is_count: bool = False


def draw_choices(axes: Sequence[Any], table: pd.DataFrame, panels: Sequence[Panel], colours: Sequence[str]) -> None:
    """Draw a dot per choice in each panel, with bars of one sd; the first row is marked by a line in each panel.

    Parameters
    ----------
    axes : one per panel, of one row of a figure with a shared vertical axis
    table : column ``choice``, and columns of the panels, each with its sd (``_sd``) if there is one
    colours : one per row
    """
    place = np.arange(len(table))[::-1]
    for ax, panel in zip(axes, panels, strict=True):
        for column, face in ((panel.hollow, "white"), (panel.column, None)):
            if not column:
                continue
            sd = table.get(f"{column}_sd", pd.Series(0.0, table.index)).fillna(0.0)
            for x, width, y, colour in zip(table[column], sd, place, colours, strict=True):
                ax.errorbar(x, y, xerr=width or None, color=colour, marker="o", markerfacecolor=face or colour)
        ax.axvline(table[panel.column].iloc[0], color=palette.SOFT, linewidth=0.7, linestyle=":", zorder=0)
        if panel.printed is not None:
            ax.axvline(panel.printed, color="black", linewidth=1.0, linestyle="--", zorder=0)
            ax.annotate(
                "published",
                (panel.printed, 1.0),
                xycoords=("data", "axes fraction"),
                fontsize=7,
                ha="center",
                va="bottom",
            )
        if panel.is_log:
            ax.set_xscale("log")
            ax.minorticks_off()
            ax.xaxis.set_major_formatter("{x:g}")
        elif panel.is_count:
            ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        ax.set_xlabel(panel.label)
        ax.set_ylim(-0.7, len(table) - 0.3)
        ax.set_yticks(place, table["choice"], fontsize=7)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=palette.GRID, linewidth=0.6)
