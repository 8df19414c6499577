"""ICML 2014 table 1: held-out perplexity with and without contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2core.base import storage
from mc2papers.datasets.origins import MC2
from mc2papers.icml2014.perplexity_rows import (
    ABOUT_UNIGRAMS,
    FEATURES,
    NOTES,
    UNIGRAMS,
    format_perplexity_table,
    perplexities,
    perplexity_rows,
    unigram_score,
)
from mc2papers.report.captions import ABOUT_DOCUMENT_LEVEL, counted, say_chains, say_names, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, Claim, difference, judge, mean_of, not_computed
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

_TIME, _WORDS = "words+timestamp", "words"


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """ICML14 table 1: the rows of :func:`perplexity_rows`, and its claims on each dataset."""
    fits = perplexities(scores, estimators)
    claims = [
        one for dataset in fits for one in (*_claims(dataset, fits[dataset]), _judge_clusters(dataset, scores, paper))
    ]
    return perplexity_rows(scores, paper, estimators), claims


def _claims(dataset: str, fits: Mapping[tuple[str, str], pd.Series]) -> list[Claim]:
    by_method: dict[str, dict[str, pd.Series]] = {"HDP": {}, "npTOT": {}, "MC2": {}}
    for (method, features), values in fits.items():
        by_method.setdefault(method, {})[features] = values
    mc2 = by_method["MC2"]
    numbers = ", ".join(f"{features} {values.mean():,.1f}" for features, values in mc2.items())
    others = [one for one in mc2 if one != _TIME]
    if _TIME in mc2 and others:
        leads = [difference(mc2[_TIME], mc2[one], below=0, digits=1, name=f"less {one}") for one in others]
        judged = [judge(dataset, "timestamp best", leads, numbers, favours=ANY_SIMULATOR)]
    else:
        judged = [not_computed(dataset, "timestamp best", numbers)]
    for worse, better in (("HDP", "npTOT"), ("npTOT", "MC2")):
        text = f"any MC2 below {worse}" if better == "MC2" else f"{better} below {worse}"
        if absent := [name for name in (worse, better) if not by_method[name]]:
            judged.append(not_computed(dataset, text, f"no fit of {' and '.join(absent)}"))
            continue
        low, high = by_method[better], by_method[worse]
        leads = [
            difference(low[one], high[other], below=0, digits=1, name=f"{better} {one} less {worse}")
            for one in low
            for other in high
        ]
        means = max(one.mean() for one in low.values()), min(one.mean() for one in high.values())
        numbers = f"{means[0]:,.1f} against {means[1]:,.1f}{_beside(by_method)}"
        judged.append(judge(dataset, text, leads, numbers, favours=better))
    return [*judged, *_judge_words(dataset, by_method)]


def _beside(by_method: Mapping[str, Mapping[str, pd.Series]]) -> str:
    """The perplexity of unigrams, which tells whether the methods of a claim have learnt anything."""
    return f" (unigrams {one[_WORDS].mean():,.1f})" if (one := by_method.get(UNIGRAMS)) else ""


def _judge_words(dataset: str, by_method: Mapping[str, Mapping[str, pd.Series]]) -> list[Claim]:
    """MC2 of words alone: better than the HDP, and worse than with any context."""
    mc2, hdp = by_method["MC2"], by_method["HDP"].get(_WORDS)
    words, contexts = mc2.get(_WORDS), [one for one in mc2 if one != _WORDS]
    texts = "MC2 without contexts below HDP", "every context better than words alone"
    if words is None:
        return [not_computed(dataset, text, "no fit of MC2 on words alone") for text in texts]
    below = not_computed(dataset, texts[0], "no fit of HDP")
    if hdp is not None:
        numbers = f"{words.mean():,.1f} against {hdp.mean():,.1f}{_beside(by_method)}"
        below = judge(dataset, texts[0], [difference(words, hdp, below=0, digits=1)], numbers, favours=MC2)
    if not contexts:
        return [below, not_computed(dataset, texts[1], "no fit of MC2 with a context")]
    gains = [difference(mc2[one], words, below=0, digits=1, name=f"{one} less {_WORDS}") for one in contexts]
    numbers = ", ".join(f"{one} {mc2[one].mean():,.1f}" for one in (_WORDS, *contexts))
    return [below, judge(dataset, texts[1], gains, numbers, favours=ANY_SIMULATOR)]


def _judge_clusters(dataset: str, scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> Claim:
    """Whether MC2 finds as many clusters as the paper prints of its fits to this dataset, whatever its features."""
    printed = paper.loc[(paper["method"] == "MC2") & (paper["dataset"] == dataset), "clusters"]
    least, most = int(printed.min()), int(printed.max())
    text = f"MC2 finds {least} to {most} clusters"
    found = [one for one in scores if one["title"] == dataset and one["method"] == "MC2"]
    if not found:
        return not_computed(dataset, text, "no fit of MC2")
    clusters: dict[str, list[float]] = {}
    for one in found:
        clusters.setdefault(FEATURES[tuple(sorted(one["contexts"]))], []).append(one["clusters"])
    bounds = [mean_of(f"K of {name}", one, above=least, digits=1) for name, one in clusters.items()]
    bounds += [mean_of(f"K of {name}", one, below=most, digits=1) for name, one in clusters.items()]
    return judge(dataset, text, bounds, favours=ANY_SIMULATOR)


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    estimators = options["estimators"]
    scores = [storage.read_json(path) for path in files["scores"]]
    scores += [unigram_score(folder, estimators) for folder in files["corpora"]]
    table, claims = perplexity_table(scores, pd.read_csv(files["paper"][0]), estimators)
    return Built(table, shown=format_perplexity_table(table, estimators), claims=claims)


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    return {
        "estimators": configuration.config["estimators"],
        "n_seeds": configuration.config["seeds"],
        "corpora": configuration.corpora_of(("nips", "pnas")),
        "lengths": configuration.lengths_of(("nips", "pnas")),
    }


def _caption(options: Options) -> str:
    return (
        f"Held-out perplexity on {say_names(options['corpora'])} (lower is better): ours as mean and sd "
        f"over {counted(options['n_seeds'], 'seed')} beside the paper's figure, with clusters K and topics M in "
        "use. Estimators: "
        f"{', '.join(options['estimators'])}; the first one decides the claims, or left_to_right in its place where "
        "documents have topic proportions of their own (HDP). "
        f"{say_chains(options['lengths'])} {ABOUT_DOCUMENT_LEVEL} "
        f"{say_sources(options['corpora'], MC2)} Paper: ICML 2014, table 1."
    )


TARGET = Target(
    title="ICML 2014, table 1: held-out perplexity (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "corpora": "corpora"},
    datasets=("nips", "pnas"),
    options=_options,
    notes=(*NOTES, ABOUT_UNIGRAMS),
    has_paper=True,
    has_claims=True,
)
