"""ICML 2014 table 2: held-out perplexity of the visual words of images, with and without their tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2core.base import storage
from mc2core.experiments.icml2014.parts.perplexity_rows import NOTES, format_perplexity_table, perplexity_rows
from mc2core.experiments.report.captions import ABOUT_OWN_DOCUMENTS, say_sources
from mc2core.experiments.report.claims import Claim, no_further_than_seeds
from mc2core.experiments.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2core.experiments.plan import Plan

FEATURES = {(): "SIFT", ("tag",): "tags+SIFT"}
#: rows in the order that the paper claims, lowest perplexity first
ORDER = {("MC2", "tags+SIFT"): "MC2 with tags", ("MC2", "SIFT"): "MC2 without", ("HDP", "SIFT"): "HDP"}


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """ICML14 table 2: the rows of :func:`perplexity_rows`, and its claim."""
    table = perplexity_rows(scores, paper, estimators, FEATURES)
    return table, [_claim(dataset, table[table["dataset"] == dataset]) for dataset in table["dataset"].unique()]


def _claim(dataset: str, table: pd.DataFrame) -> Claim:
    text = " < ".join(ORDER.values())
    here = table.dropna(subset="perplexity").set_index(["method", "features"])
    if absent := [name for key, name in ORDER.items() if key not in here.index]:
        return Claim(dataset, text, None, f"no fit of {' and '.join(absent)}")
    rows = here.loc[list(ORDER)]
    values, sds = rows["perplexity"].to_numpy(), rows["perplexity_sd"]
    numbers = []
    for place, (name, value) in enumerate(zip(ORDER.values(), values, strict=True)):
        # each beside the one before it
        close = no_further_than_seeds(value - values[place - 1], sds[place - 1 : place + 1].max(), "seeds", digits=1)
        numbers.append(f"{name} {value:,.1f}{close if place else ''}")
    return Claim(dataset, text, bool((values[:-1] < values[1:]).all()), ", ".join(numbers))


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
        "corpora": plan.corpora_of(("nuswide",)),
    }


def _caption(options: Options) -> str:
    return (
        "Held-out perplexity of the visual words of NUS-WIDE's images (lower is better): ours as mean and sd over "
        f"{options['n_seeds']} seeds beside the paper's figure. SIFT: visual words alone; tags+SIFT: the tags of the "
        "training images are the context of their clusters. Tags of held-out images are not read. Estimators: "
        f"{', '.join(options['estimators'])}; the first one decides the claim, or left_to_right in its place where "
        "images have topic proportions of their own (HDP). "
        f"{ABOUT_OWN_DOCUMENTS} {say_sources(options['corpora'])} On simulated data the levels mean nothing beside the "
        "paper's; the order of the rows may. Paper: ICML 2014, table 2."
    )


TARGET = Target(
    title="ICML 2014, table 2: held-out perplexity of NUS-WIDE's visual words (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores"},
    datasets=("nuswide",),
    options=_options,
    notes=NOTES,
    has_paper=True,
    has_claims=True,
)
