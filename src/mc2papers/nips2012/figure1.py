"""NIPS 2012 figure 1: distance from the truth over time."""

from __future__ import annotations

import pandas as pd

from mc2papers.nips2012.convergence import compare, judge_bits, judge_longer, moving, read_curves
from mc2papers.report.captions import counted, say_data, say_source
from mc2papers.report.claims import Claim
from mc2papers.targets import Built, Files, Options, Target, options_of


def figure_claims(curves: pd.DataFrame) -> list[Claim]:
    """Judge the claims on bits in figure 1 of NIPS12 for one dataset; the other claims are judged with table 2."""
    dataset, shown = curves["dataset"].iloc[0], moving(curves)
    return [judge_bits(compare(curves), dataset, *shown), *judge_longer(curves, dataset, *shown)]


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    from pathlib import Path

    from mc2core.base import storage
    from mc2papers.datasets.catalogue import describe
    from mc2papers.nips2012 import convergence_figure

    (corpus,) = files["corpora"]
    curves = read_curves(files["traces"], [corpus], options["runs"])
    figure = convergence_figure.draw(curves, describe(storage.read_json(Path(corpus) / "source.json")))
    return Built(curves, figure=figure, claims=figure_claims(curves))


def _caption(options: Options) -> str:
    return (
        "Variation of information (bits; 0 is perfect) between categories of articles and clusters, by seconds on one "
        f"core, {say_data({'w100': options['corpus']})}: mean and range over {counted(options['n_seeds'], 'seed')}. "
        "Left: methods. Right: FastEx by length of signature (with plain estimates if FastEx as printed ends with one "
        "cluster).\n\nSeconds exclude compilation and scoring; one point per sweep. Word prior: 1 for the baseline and "
        f"FastEx as printed, 0.01 for others. Data: {say_source('w100', options['corpus'])}."
    )


TARGET = Target(
    title="NIPS 2012, figure 1: distance from the truth over time, FastEx and its rivals",
    shows="VI over time",
    build=_build,
    caption=_caption,
    inputs={"traces": "traces", "corpora": "corpora"},
    datasets=("w100",),
    options=options_of("runs", corpus="corpora.w100", n_seeds="nips2012.seeds"),
    by_classes=True,
)
