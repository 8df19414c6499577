"""ICML 2014 table 2: held-out perplexity of the visual words of images, with and without their tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from mc2papers.datasets.origins import MC2
from mc2papers.icml2014.perplexity_rows import (
    ABOUT_UNIGRAMS,
    NOTES,
    UNIGRAMS,
    format_perplexity_table,
    judge_order,
    perplexities,
    perplexity_rows,
    read_scores,
)
from mc2papers.report.captions import ABOUT_DOCUMENT_LEVEL, counted, say_chains, say_data, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, Claim
from mc2papers.targets import Built, Files, Options, Target, options_of

FEATURES = {(): "SIFT", ("tag",): "tags+SIFT"}
#: rows in the order that the paper claims, lowest perplexity first
ORDER = {("MC2", "tags+SIFT"): "MC2 with tags", ("MC2", "SIFT"): "MC2 without tags", ("HDP", "SIFT"): "HDP"}


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """Return ICML14 table 2: the rows of :func:`perplexity_rows`, and its claims."""
    fits = perplexities(scores, estimators, FEATURES)
    table = perplexity_rows(scores, paper, estimators, FEATURES)
    return table, [claim for dataset in fits for claim in _claims(dataset, fits[dataset])]


def _claims(dataset: str, fits: Mapping[tuple[str, str], pd.Series]) -> Iterator[Claim]:
    """Yield the claims on both steps of ORDER; the first step is the gain from contexts."""
    unigrams = fits.get((UNIGRAMS, "SIFT"))
    for (low, high), favours in zip(pairwise(ORDER), (ANY_SIMULATOR, MC2), strict=True):
        better, worse = ((ORDER[key], {key[1]: fits[key]} if key in fits else {}) for key in (low, high))
        yield judge_order(
            dataset, f"{ORDER[low]} has a lower perplexity than {ORDER[high]}", better, worse, unigrams, favours
        )


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    estimators = options["estimators"]
    table, claims = perplexity_table(read_scores(files, estimators), pd.read_csv(files["paper"][0]), estimators)
    return Built(table, shown=format_perplexity_table(table, estimators, ("HDP", "SIFT")), claims=claims)


def _caption(options: Options) -> str:
    return (
        f"Held-out perplexity of visual words (lower is better), {say_data(options['corpora'])}: our mean and sd over "
        f"{counted(options['n_seeds'], 'seed')} next to the paper's figure. tags+SIFT: the tags of the training images "
        f"are the context. Tags of held-out images are not used.\n\nEstimator of the verdicts: "
        f"{options['estimators'][0]}, or left_to_right if images have their own topic proportions. "
        f"{say_chains(options['lengths'])} {ABOUT_DOCUMENT_LEVEL} {say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="ICML 2014, table 2: held-out perplexity of NUS-WIDE's visual words (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "corpora": "corpora"},
    datasets=("nuswide",),
    options=options_of("corpora", "lengths", estimators="estimators", n_seeds="seeds"),
    notes=(*NOTES, ABOUT_UNIGRAMS),
    has_paper=True,
)
