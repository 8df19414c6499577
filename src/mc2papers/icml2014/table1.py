"""ICML 2014 table 1: held-out perplexity with and without contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2papers.datasets.origins import MC2
from mc2papers.icml2014.perplexity_rows import (
    ABOUT_UNIGRAMS,
    FEATURES,
    NOTES,
    UNIGRAMS,
    format_perplexity_table,
    judge_order,
    lost_lead,
    perplexities,
    perplexity_rows,
    read_scores,
)
from mc2papers.report.captions import ABOUT_DOCUMENT_LEVEL, ABOUT_REPEATS, counted, say_chains, say_data, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, Claim, change, difference, judge, mean_of, unmet
from mc2papers.targets import Built, Files, Options, Target, options_of

_TIME, _WORDS = "words+timestamp", "words"


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """Return ICML14 table 1: the rows of :func:`perplexity_rows`, and its claims on each dataset."""
    fits = perplexities(scores, estimators)
    claims = [
        one
        for dataset in fits
        for one in (*_claims(dataset, fits[dataset], paper), _judge_clusters(dataset, scores, paper))
    ]
    return perplexity_rows(scores, paper, estimators), claims


def _claims(dataset: str, fits: Mapping[tuple[str, str], pd.Series], paper: pd.DataFrame) -> list[Claim]:
    by_method: dict[str, dict[str, pd.Series]] = {"HDP": {}, "npTOT": {}, "MC2": {}}
    for (method, features), values in fits.items():
        by_method.setdefault(method, {})[features] = values
    mc2 = by_method["MC2"]
    contexts = {features: values for features, values in mc2.items() if features != _WORDS}
    numbers = ", ".join(f"{features} {values.mean():,.1f}" for features, values in mc2.items())
    printed = paper[paper["dataset"] == dataset]
    levels = printed[printed["method"] == "MC2"].set_index("features")["perplexity"]
    text = "MC2 has its lowest perplexity with timestamps"
    named = {one: f"difference of perplexity, {_TIME} minus {one}," for one in mc2 if one != _TIME}
    if _TIME in mc2 and named:
        leads = [difference(mc2[_TIME], mc2[one], below=0, digits=1, name=name) for one, name in named.items()]
        best = judge(dataset, text, leads, numbers, favours=ANY_SIMULATOR)
    else:
        best = unmet(dataset, text, "MC2 was not fitted both with and without years", numbers)
    better = []
    for one in dict.fromkeys([*levels.index.drop(_WORDS, errors="ignore"), *contexts]):
        text = f"MC2 with {one.removeprefix('words+')} has a lower perplexity than MC2 without contexts"
        if one in mc2 and _WORDS in mc2:
            size = 100 * (1 - levels.get(one, np.nan) / levels.get(_WORDS, np.nan))
            said = f"{one} {mc2[one].mean():,.1f}, words {mc2[_WORDS].mean():,.1f}; printed {-size:+.1f}%"
            gain = change(mc2[one], mc2[_WORDS], f"{one} against words", claimed=size)
            better.append(judge(dataset, text, [gain], said, favours=ANY_SIMULATOR))
        else:
            better.append(unmet(dataset, text, "MC2 was not fitted both with and without this context", numbers))
    hdp = {features: values for features, values in by_method["HDP"].items() if features == _WORDS}
    words = {features: values for features, values in mc2.items() if features == _WORDS}
    nptot, unigrams = ("npTOT", by_method["npTOT"]), by_method.get(UNIGRAMS, {}).get(_WORDS)
    below = [
        judge_order(dataset, text, low, high, unigrams, no_rival=lost_lead(*high, hdp, printed))
        for text, low, high in (
            ("npTOT has a lower perplexity than HDP", nptot, ("HDP", by_method["HDP"])),
            ("MC2 has a lower perplexity than npTOT, with any features", ("MC2", mc2), nptot),
            ("MC2 without contexts has a lower perplexity than HDP", ("MC2", words), ("HDP", hdp)),
            ("MC2 with any context has a lower perplexity than HDP", ("MC2", contexts), ("HDP", hdp)),
        )
    ]
    return [best, *below, *better]


def _judge_clusters(dataset: str, scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> Claim:
    """Judge whether MC2 finds as many clusters as the paper prints for this dataset, over all features."""
    printed = paper.loc[(paper["method"] == "MC2") & (paper["dataset"] == dataset), "clusters"]
    least, most = int(printed.min()), int(printed.max())
    text = "MC2 finds tens of clusters, as printed"
    found = [one for one in scores if one["title"] == dataset and one["method"] == "MC2"]
    if not found:
        return unmet(dataset, text, "no fit of MC2")
    clusters: dict[str, list[float]] = {}
    for one in found:
        clusters.setdefault(FEATURES[tuple(sorted(one["contexts"]))], []).append(one["clusters"])
    named = {f"K with {_WORDS} only" if name == _WORDS else f"K with {name}": one for name, one in clusters.items()}
    bounds = [mean_of(name, one, above=least, digits=1) for name, one in named.items()]
    bounds += [mean_of(name, one, below=most, digits=1) for name, one in named.items()]
    said = ", ".join(f"{name} {np.mean(one):,.0f}" for name, one in clusters.items())
    return judge(dataset, text, bounds, f"K with {said}; printed {least} to {most}", favours=ANY_SIMULATOR)


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    estimators = options["estimators"]
    table, claims = perplexity_table(read_scores(files, estimators), pd.read_csv(files["paper"][0]), estimators)
    return Built(table, shown=format_perplexity_table(table, estimators), claims=claims)


def _caption(options: Options) -> str:
    return (
        f"Held-out perplexity (lower is better) on {say_data(options['corpora'])}: our mean and sd over "
        f"{counted(options['n_seeds'], 'seed')} next to the paper's figure, with the numbers of clusters K and topics "
        f"M in use.\n\nEstimator of the verdicts: {options['estimators'][0]}, or left_to_right if documents have their "
        f"own topic proportions. {say_chains(options['lengths'])} {ABOUT_DOCUMENT_LEVEL} {ABOUT_REPEATS} "
        f"{say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="ICML 2014, table 1: held-out perplexity (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "corpora": "corpora"},
    datasets=("nips", "pnas"),
    options=options_of("corpora", "lengths", estimators="estimators", n_seeds="seeds"),
    notes=(*NOTES, ABOUT_UNIGRAMS),
    has_paper=True,
)
