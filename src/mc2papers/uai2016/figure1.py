"""UAI 2016 figure 1: plate diagram."""

from mc2papers.report.diagrams import target_of

TARGET = target_of(
    "uai2016_figure1",
    title="UAI 2016, figure 1: MC2 with tables as a plate diagram",
    shows="plate diagram",
    caption=(
        "Left: MC2 as documents are generated. Right: its stick-breaking form with the tables of each cluster, "
        "truncated at K clusters, T tables and M topics. Shaded circles are observed, and dots are parameters. Each "
        "box is repeated; the number of repeats is in its corner. After UAI 2016, figure 1. The CSV lists the arrows."
    ),
)
