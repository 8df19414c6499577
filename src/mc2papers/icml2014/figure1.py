"""ICML 2014 figure 1: plate diagrams."""

from __future__ import annotations

from mc2papers.targets import Built, Files, Options, Target


def _build(files: Files, options: Options) -> Built:
    from mc2papers.report import diagrams

    picture, arrows = diagrams.read("icml2014_figure1")
    return Built(arrows, figure=picture)


def _caption(options: Options) -> str:
    return (
        "MC2 in its generative form (left) and in its stick-breaking form (right). "
        "Shaded circles are observed, dots are parameters, boxes are repeated as often as their corner says. It "
        "stands for ICML 2014, figure 1. The CSV beside it lists the arrows."
    )


TARGET = Target(
    title="ICML 2014, figure 1: MC2 as plate diagrams",
    shows="plate diagrams",
    build=_build,
    caption=_caption,
)
