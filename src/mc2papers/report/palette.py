"""Colours and markers of figures: each method has the same colour in all figures, and clusters have other colours."""

from __future__ import annotations

from mc2papers.report.captions import DOCUMENT_LEVEL

#: colour and marker of each method that a figure draws. Two names of one method share them; variants of a method are
#: near each other in hue where there is room
METHODS = {
    "MC2": ("#0072B2", "o"),
    "Gibbs, collapsed": ("#0072B2", "o"),  # MC2 by the sampler that the paper prints
    "Gibbs, interleaved": ("#56B4E9", "D"),
    "Gibbs, blocked": ("#332288", "v"),
    DOCUMENT_LEVEL: ("#D55E00", "s"),
    "SVI": ("#009E73", "^"),
    "SVI without tables": ("#999933", "P"),
    "HDP + AP": ("#AA4499", "^"),
    "AP": ("#CC79A7", "v"),
    "K-means": ("#E69F00", "D"),
    "NMF": ("#7F7F7F", "P"),
    "FastEx": ("#882255", "o"),
    "FastEx, plain estimates": ("#CC6677", "s"),
    "FastEx, balanced (ours)": ("#117733", "^"),
    "FastEx, neighbours (ours)": ("#44AA99", "v"),
    "exact (collapsed Gibbs)": ("#333333", "D"),
    "baseline": ("#8C6D1F", "P"),
    "baseline, a = 0.01": ("#D4BE6A", "X"),
}
#: a method of the experiments table that no paper and no target here knows
OTHER = ("#555555", "*")

#: clusters of a fit, largest first, and classes given with the data: no colour is in both
CLUSTERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B")
CLASSES = (
    "#332288", "#FFD92F", "#AA4499", "#44AA99", "#661100", "#88CCEE", "#000000", "#B5CF6B", "#CC6677", "#637939",
    "#F4A6C0", "#A6761D", "#4D4D4D",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: what is data or an aid to the eye, and no method
DATA, GRID, SOFT = "#BBBBBB", "#E5E5E5", "#555555"


def look(method: str) -> tuple[str, str]:
    """Return the colour and marker of a method."""
    return METHODS.get(method, OTHER)
