"""NIPS12 figure 1: VI over time, of FastEx against its rivals, and of FastEx by length of signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from mc2papers.nips2012.convergence import BITS, BY_BITS, usual
from mc2papers.report import palette, style


def draw(curves: pd.DataFrame, source: str) -> Figure:
    """A panel of all methods, and one for each that has several lengths of signatures; a line for each seed.

    ``curves`` is the table of :func:`mc2papers.nips2012.convergence.read_curves` of one dataset; ``source`` is written
    into the picture (:func:`mc2papers.report.style.mark_source`). A method has one colour: lengths are shades of it,
    darker for longer ones, and the length that the first panel has is the method's colour there.
    """
    hashed = {method: rows for method in BY_BITS if len(rows := curves[curves["method"] == method])}
    figure = style.new_figure(3.7 * (1 + len(hashed)), 3.9)
    left, *others = figure.subplots(1, 1 + len(hashed), sharex=True, sharey=True)
    methods = {str(method): rows for method, rows in usual(curves).groupby("method", sort=False)}
    _draw_lines(left, methods, [palette.look(method) for method in methods])
    seeds = curves["seed"].nunique()
    left.set_title(
        f"methods ({BITS} bits where there are several)" + (f"\na line for each of {seeds} seeds" if seeds > 1 else "")
    )
    lengths = sorted(curves.loc[curves["method"].isin(hashed), "bits"].unique())
    for ax, (method, rows) in zip(others, hashed.items(), strict=True):
        # a length has one marker in all panels
        looks = {
            bits: (palette.shade(palette.look(method)[0], np.log2(bits / BITS)), palette.MARKERS[place])
            for place, bits in enumerate(lengths)
            if (rows["bits"] == bits).any()
        }
        _draw_lines(ax, {f"{bits} bits": rows[rows["bits"] == bits] for bits in looks}, [*looks.values()])
        ax.set_title(f"{method}, by bits of a signature")
    left.set_ylabel("VI to the labels, bits (0 is perfect)")
    left.set_ylim(bottom=0)
    style.mark_source(figure, source)
    return figure


def _draw_lines(ax: Axes, lines: Mapping[str, pd.DataFrame], looks: Sequence[tuple[str, str]]) -> None:
    for (name, rows), (colour, marker) in zip(lines.items(), looks, strict=True):
        for position, (_, curve) in enumerate(rows.groupby("seed")):
            ax.plot(
                curve["seconds"],
                curve["vi_bits"],
                color=colour,
                marker=marker,
                markersize=3,
                linewidth=1.1,
                label=name if position == 0 else None,
            )
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlabel("seconds of one core (log scale)")
    ax.grid(axis="y", color=palette.GRID, linewidth=0.6)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
