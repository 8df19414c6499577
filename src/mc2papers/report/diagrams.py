"""Plate diagrams of MC2 (ICML14 figure 1, UAI16 figure 1) and the variational factorisation (UAI16 figure 2).

Each diagram is an SVG file in ``assets``, with a table of its arrows next to it: diagram, from, to.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    import pandas as pd

ASSETS = Path(__file__).parent / "assets"


def read(name: str) -> tuple[str, pd.DataFrame]:
    """Return the SVG of a figure, and the table of its arrows."""
    import pandas as pd

    return (ASSETS / f"{name}.svg").read_text(encoding="utf-8"), pd.read_csv(ASSETS / f"{name}.csv")


def target_of(name: str, title: str, shows: str, caption: str) -> Target:
    """Return the target of the figure ``name``."""

    def build(files: Files, options: Options) -> Built:
        picture, arrows = read(name)
        return Built(arrows, figure=picture)

    return Target(title=title, shows=shows, build=build, caption=lambda options: caption, has_claims=False)
