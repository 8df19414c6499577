"""Find the choices that a paper does not print, and draw charts with one row per choice and one panel per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mc2papers.report import palette

#: settings that the paper does not print
OPEN = frozenset(
    ("start_clusters", "start_topics", "table_concentration", "group_concentration", "concentration_priors",
     "topic_word_prior")
)  # fmt: skip


def open_choices(runs: Sequence[Mapping[str, Any]], first: str) -> dict[str, list[str]]:
    """Return the open choices of the paper: methods that differ from the method ``first`` only in the settings in OPEN.

    Runs that differ only in their contexts belong to the same choice, which has the name of its first run.

    Parameters
    ----------
    runs : see :func:`mc2papers.configuration.read_experiments`
    first : method with the default choice, which is not an open choice; without its run, the result is empty

    Returns
    -------
    methods by choice
    """

    def parts(run: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        settings, others = run["fit"]["settings"], {key: run["fit"][key] for key in run["fit"].keys() - {"contexts"}}
        chosen = {name: value for name, value in settings.items() if name in OPEN}
        return others | {"settings": {name: settings[name] for name in settings.keys() - OPEN}}, chosen

    printed, default = next((parts(run) for run in runs if run["method"] == first), ({}, {}))
    found: dict[str, list[str]] = {}
    for run in runs:
        others, chosen = parts(run)
        if others == printed and chosen != default:
            found.setdefault(repr(sorted(chosen.items())), []).append(run["method"])
    return {methods[0]: methods for methods in found.values()}


@dataclass(frozen=True)
class Panel:
    """A panel that shows one measure of all choices.

    Attributes
    ----------
    label : label of the axis
    column : column of the table; rows without a value have no point
    hollow : another column on the same axis, drawn with hollow points; "" for none
    printed : value that the paper prints; None for none
    is_log : whether the axis is logarithmic
    is_count : whether the axis has only integers
    """

    label: str
    column: str
    hollow: str = ""
    printed: float | None = None
    is_log: bool = False
    is_count: bool = False


def draw_choices(axes: Sequence[Any], table: pd.DataFrame, panels: Sequence[Panel], colours: Sequence[str]) -> None:
    """Draw one dot per choice in each panel, with bars of one sd; a line in each panel marks the first row.

    Parameters
    ----------
    axes : one per panel, side by side with a shared vertical axis
    table : column ``choice``, and the columns of the panels with their sds (suffix ``_sd``) if there are sds
    colours : one per row
    """
    from matplotlib.ticker import MaxNLocator

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
            at = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
            ax.annotate("published", (panel.printed, 1.0), fontsize=7, **at)
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
