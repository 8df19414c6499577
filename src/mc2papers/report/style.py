"""Apply the common style of figures, and write their files: PNG, PDF, and a CSV of the plotted values."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd

from mc2core.base import storage

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

#: in which a picture says what its data are
SOURCE = "#555555"
_PARAMETERS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    # no date and no random ids in the files: the same numbers give the same bytes
    "svg.hashsalt": "mc2core",
}

#: two pixels a unit of an SVG
_SVG_PPI = 144


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure in the common style, with sizes in inches."""
    plt.rcParams.update(_PARAMETERS)
    return plt.figure(figsize=(width, height), layout="constrained")


def mark_source(figure: Figure, text: str) -> None:
    """Write the source of the data into the figure, because simulated and excerpted data must be marked.

    With the text "", nothing is written.
    """
    if text:
        text = f"Data: {text}"
        figure.supxlabel(text, fontsize=8, color=SOURCE, x=0.99, ha="right")


def write_figure(figure: Figure | str, drawn: pd.DataFrame, stem: str | os.PathLike[str]) -> None:
    """Write ``stem``.png, .pdf and .csv, each by an atomic replacement, and close the figure.

    If ``figure`` is a string, it is the text of an SVG.
    """
    stem = Path(stem)
    for kind, content in (_render_svg(figure) if isinstance(figure, str) else _render(figure)).items():
        with storage.replacing(stem.with_suffix(f".{kind}"), "wb") as stream:
            stream.write(content)
    with storage.replacing(stem.with_suffix(".csv")) as stream:
        drawn.to_csv(stream, index=False)


def _render(figure: Figure) -> dict[str, bytes]:
    files = {}
    for kind, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None, "ModDate": None})):
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.06)
        files[kind] = stream.getvalue()
    plt.close(figure)
    return files


def _render_svg(picture: str) -> dict[str, bytes]:
    import vl_convert

    # of one font at most: with two, the bytes of the PDF differ from time to time
    return {"png": vl_convert.svg_to_png(picture, ppi=_SVG_PPI), "pdf": vl_convert.svg_to_pdf(picture)}
