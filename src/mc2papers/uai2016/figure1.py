"""UAI 2016 figure 1: plate diagram."""

from __future__ import annotations

from mc2papers.targets import Built, Files, Options, Target


def _build(files: Files, options: Options) -> Built:
    from mc2papers.report import diagrams

    picture, arrows = diagrams.read("uai2016_figure1")
    return Built(arrows, figure=picture)


def _caption(options: Options) -> str:
    return (
        "MC2 with the tables of each cluster, truncated at K clusters, T tables and M topics. "
        "Shaded circles are observed, dots are parameters, boxes are repeated as often as their corner says. It "
        "stands for UAI 2016, figure 1. The CSV beside it lists the arrows."
    )


TARGET = Target(
    title="UAI 2016, figure 1: MC2 with tables as a plate diagram",
    shows="plate diagram",
    build=_build,
    caption=_caption,
)
