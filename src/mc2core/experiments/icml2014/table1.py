"""ICML 2014 table 1: held-out perplexity with and without contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2core.base import storage
from mc2core.experiments.icml2014.parts.perplexity_rows import (
    NOTES,
    format_perplexity_table,
    perplexities,
    perplexity_rows,
)
from mc2core.experiments.report.captions import ABOUT_OWN_DOCUMENTS, say_chains, say_names, say_sources
from mc2core.experiments.report.claims import Claim, difference, judge, not_computed
from mc2core.experiments.targets import Built, Files, Options, Target
from mc2core.sources.origins import MC2

if TYPE_CHECKING:
    from mc2core.experiments.plan import Plan

_TIME = "words+timestamp"


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """ICML14 table 1: the rows of :func:`perplexity_rows`, and its claims on each dataset."""
    fits = perplexities(scores, estimators)
    claims = [one for dataset in fits for one in _claims(dataset, fits[dataset])]
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
        judged = [judge(dataset, "timestamp best", leads, numbers, favours=MC2)]
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
        judged.append(judge(dataset, text, leads, f"{means[0]:,.1f} against {means[1]:,.1f}", favours=better))
    return judged


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    scores = [storage.read_json(path) for path in files["scores"]]
    estimators = options["estimators"]
    table, claims = perplexity_table(scores, pd.read_csv(files["paper"][0]), estimators)
    return Built(table, shown=format_perplexity_table(table, estimators), claims=claims)


def _options(plan: Plan, name: str) -> dict[str, Any]:
    return {
        "estimators": plan.config["estimators"],
        "n_seeds": plan.config["seeds"],
        "corpora": plan.corpora_of(("nips", "pnas")),
        "lengths": plan.lengths_of(("nips", "pnas")),
    }


def _caption(options: Options) -> str:
    return (
        f"Held-out perplexity on {say_names(options['corpora'])} (lower is better): ours as mean and sd "
        f"over {options['n_seeds']} seeds beside the paper's figure, with clusters K and topics M in use. Estimators: "
        f"{', '.join(options['estimators'])}; the first one decides the claims, or left_to_right in its place where "
        "documents have topic proportions of their own (HDP). "
        f"{say_chains(options['lengths'])} {ABOUT_OWN_DOCUMENTS} "
        f"{say_sources(options['corpora'], MC2)} Paper: ICML 2014, table 1."
    )


TARGET = Target(
    title="ICML 2014, table 1: held-out perplexity (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores"},
    datasets=("nips", "pnas"),
    options=_options,
    notes=NOTES,
    has_paper=True,
    has_claims=True,
)
