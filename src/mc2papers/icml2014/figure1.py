"""ICML 2014 figure 1: plate diagrams."""

from mc2papers.report.diagrams import target_of

TARGET = target_of(
    "icml2014_figure1",
    title="ICML 2014, figure 1: MC2 as plate diagrams",
    shows="plate diagrams",
    caption=(
        "MC2 in its generative form (left) and in its stick-breaking form (right). "
        "Shaded circles are observed, and dots are parameters. Each box is repeated; the number of repeats is in its "
        "corner. After ICML 2014, figure 1. The CSV lists the arrows."
    ),
)
