"""UAI 2016 figure 2: variational factorisation."""

from mc2papers.report.diagrams import target_of

TARGET = target_of(
    "uai2016_figure2",
    title="UAI 2016, figure 2: the variational factorisation",
    shows="variational factorisation",
    caption=(
        "The variational family, as in UAI 2016, figure 2, with its global and local variables. The cluster of a "
        "document and its tables depend on each other. Shaded circles are observed, and dots are parameters. Each "
        "box is repeated; the number of repeats is in its corner. The CSV lists the arrows."
    ),
)
