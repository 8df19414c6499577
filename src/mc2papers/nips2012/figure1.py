"""NIPS 2012 figure 1: distance from the truth over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2papers.nips2012.convergence import (
    BY_BITS,
    FASTEX,
    JUDGED,
    SOONER,
    compare,
    judge_bits,
    judge_longer,
    judge_method,
    read_curves,
    usual,
)
from mc2papers.report.captions import counted, say_source
from mc2papers.report.claims import Claim
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration


def figure_claims(curves: pd.DataFrame) -> list[Claim]:
    """What NIPS12 says of its figure 1, held against the curves of one dataset."""
    fits, dataset = compare(curves), curves["dataset"].iloc[0]
    judged = [one for method in JUDGED for one in judge_method(usual(fits), dataset, method, SOONER)]
    for method in [one for one in BY_BITS if one == FASTEX or (curves["method"] == one).any()]:
        judged += [judge_bits(fits, dataset, method), *judge_longer(curves, dataset, method)]
    return judged


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


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    return {
        "runs": {run: configuration.runs[run] for run in configuration.runs_of(name)},
        "corpus": configuration.config["corpora"]["w100"],
        "n_seeds": configuration.config["seeds"],
    }


def _caption(options: Options) -> str:
    seeds = counted(options["n_seeds"], "seed") + (", a line each" if options["n_seeds"] > 1 else "")
    return (
        "Variation of information (bits; 0 is perfect) between the categories of the articles and the clusters, over "
        "seconds of the engine on one core (log scale; start included, compilation and scoring excluded), a point "
        f"after each sweep. Data: {say_source('w100', options['corpus'])}; {seeds}. Left: FastEx as printed "
        "(32 bits, proposals from the upper bound with the failure probability of remark 5, 0.0001) and the paper's "
        "baseline, which draws all parameters, both with word prior a = 1, which no paper prints: with the 0.01 of all "
        "others the baseline does not leave its random start. Ours: FastEx with the balanced projection (128 bits) "
        "and proposals from the clusters of a document's nearest documents (its first point includes the search for "
        "them; all clusters are scored in sweep 5). Beside them exact scores of every cluster (collapsed Gibbs). "
        "Middle: FastEx as printed by length of signature. Right: the same with the paper's projection and estimates "
        "as they are, not their bound, and word prior 0.01. Fits run side by side, one core each. Paper: NIPS 2012, "
        "figure 1: as good as the baseline an order of magnitude sooner, no gain past 64 to 128 bits, and more bits "
        "converge sooner and have a higher acceptance ratio."
    )


TARGET = Target(
    title="NIPS 2012, figure 1: distance from the truth over time, FastEx and its rivals",
    shows="VI over time",
    build=_build,
    caption=_caption,
    inputs={"traces": "traces", "corpora": "corpora"},
    datasets=("w100",),
    options=_options,
    has_claims=True,
)
