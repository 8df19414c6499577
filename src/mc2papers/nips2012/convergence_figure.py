"""NIPS12 figure 1: VI over time, for FastEx and other methods, and for FastEx with different lengths of signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from mc2papers.nips2012.convergence import BITS, moving, usual
from mc2papers.report import palette, style


def draw(curves: pd.DataFrame, source: str) -> Figure:
    """Draw one panel with all methods, and one panel with all lengths of signatures.

    Lines are means over seeds, and bands are ranges. ``curves`` is the table of
    :func:`mc2papers.nips2012.convergence.read_curves` for one dataset. ``source`` is written into the figure
    (:func:`mc2papers.report.style.mark_source`). The second panel shows the method that
    :func:`mc2papers.nips2012.convergence.moving` returns.
    """
    method, _ = moving(curves)
    rows = curves[curves["method"] == method]
    lengths = sorted(rows["bits"].unique())
    figure = style.new_figure(7.4, 4.1)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    methods = {str(name): one for name, one in usual(curves).groupby("method", sort=False)}
    _draw_lines(left, methods, [palette.look(name) for name in methods])
    n_seeds = curves["seed"].nunique()
    said = f"mean and range of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    left.set_title(f"Methods ({BITS} bits if several were run)\n{said}")
    looks = [(palette.CLUSTERS[place], palette.MARKERS[place]) for place in range(len(lengths))]
    _draw_lines(right, {f"{bits} bits": rows[rows["bits"] == bits] for bits in lengths}, looks)
    right.set_title(f"{method}, by length of signature")
    left.set_ylabel("VI to the labels, bits (0 is perfect)")
    left.set_ylim(bottom=0)
    style.mark_source(figure, source)
    return figure


def _draw_lines(ax: Axes, lines: Mapping[str, pd.DataFrame], looks: Sequence[tuple[str, str]]) -> None:
    for (name, rows), (colour, marker) in zip(lines.items(), looks, strict=True):
        sweeps = rows.groupby("iteration")
        seconds = sweeps["seconds"].mean()
        values = sweeps["vi_bits"].agg(["mean", "min", "max"])
        ax.fill_between(seconds, values["min"], values["max"], color=colour, alpha=0.18, linewidth=0)
        ax.plot(seconds, values["mean"], color=colour, marker=marker, markersize=3.5, linewidth=1.3, label=name)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlabel("seconds of one core (log scale)")
    ax.grid(axis="y", color=palette.GRID, linewidth=0.6)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
