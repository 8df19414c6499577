"""UAI 2016 figure 2: variational factorisation."""

from __future__ import annotations

from mc2papers.targets import Built, Files, Options, Target


def _build(files: Files, options: Options) -> Built:
    from mc2papers.report import diagrams

    picture, arrows = diagrams.read("uai2016_figure2")
    return Built(arrows, figure=picture)


def _caption(options: Options) -> str:
    return (
        "The variational family, in which the cluster and the tables of a document stay coupled. "
        "Shaded circles are observed, dots are parameters, boxes are repeated as often as their corner says. It "
        "stands for UAI 2016, figure 2. The CSV beside it lists the arrows."
    )


TARGET = Target(
    title="UAI 2016, figure 2: the variational factorisation",
    shows="variational factorisation",
    build=_build,
    caption=_caption,
)
