"""NIPS12 figure 1: VI over time, of FastEx against its rivals (left) and of FastEx by length of signature (right)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from mc2papers.nips2012.convergence import BITS, FASTEX, usual
from mc2papers.report import style


def draw(curves: pd.DataFrame, source: str) -> Figure:
    """Two panels of the table of :func:`mc2papers.nips2012.convergence.read_curves` of one dataset; a line
    for each seed.

    ``source`` is written into the picture (:func:`mc2papers.report.style.mark_source`).
    """
    figure = style.new_figure(7.4, 3.4)
    left, right = figure.subplots(1, 2, sharey=True)
    hashed = curves[curves["method"] == FASTEX]
    _draw_lines(left, {str(method): rows for method, rows in usual(curves).groupby("method", sort=False)})
    _draw_lines(right, {f"{bits} bits": rows for bits, rows in hashed.groupby("bits")})
    left.set_title(f"methods ({FASTEX}: {BITS} bits)")
    right.set_title(f"{FASTEX}, by bits of a signature")
    seeds = curves["seed"].nunique()
    left.set_ylabel("VI to the labels (bits; 0 is perfect)" + (f", {seeds} seeds" if seeds > 1 else ""))
    left.set_ylim(bottom=0)
    style.mark_source(figure, source)
    return figure


def _draw_lines(ax: Axes, lines: dict[str, pd.DataFrame]) -> None:
    for number, (name, rows) in enumerate(lines.items()):
        for position, (_, curve) in enumerate(rows.groupby("seed")):
            ax.plot(
                curve["seconds"],
                curve["vi_bits"],
                color=style.COLOURS[number],
                marker=style.MARKERS[number],
                markersize=3,
                linewidth=1.1,
                label=name if position == 0 else None,
            )
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlabel("seconds of one core (log scale)")
    ax.grid(axis="y", color="#E5E5E5", linewidth=0.6)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
