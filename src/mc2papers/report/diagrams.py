"""Plate diagrams of MC2 (ICML14 figure 1, UAI16 figure 1) and the variational factorisation (UAI16 figure 2).

Each is drawn once: an SVG in ``assets``, and beside it the table of its arrows: diagram, from, to.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

ASSETS = Path(__file__).parent / "assets"


def read(name: str) -> tuple[str, pd.DataFrame]:
    """The SVG of a figure, and its arrows."""
    return (ASSETS / f"{name}.svg").read_text(encoding="utf-8"), pd.read_csv(ASSETS / f"{name}.csv")
