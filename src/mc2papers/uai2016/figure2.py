"""UAI 2016 figure 2: variational factorisation."""

from mc2papers.report.diagrams import target_of

TARGET = target_of(
    "uai2016_figure2",
    title="UAI 2016, figure 2: the variational factorisation",
    shows="variational factorisation",
    caption=(
        "The variational family, in which the cluster and the tables of a document stay coupled, and which variables "
        "are global and local. Shaded circles are observed, dots are parameters, boxes are repeated as often as their "
        "corner says. As UAI 2016, figure 2. The CSV lists the arrows."
    ),
)
