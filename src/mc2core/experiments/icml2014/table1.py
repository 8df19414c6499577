"""ICML 2014 table 1: held-out perplexity with and without contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2core.base import storage
from mc2core.experiments.icml2014.parts.perplexity_rows import NOTES, format_perplexity_table, perplexity_rows
from mc2core.experiments.report.captions import ABOUT_OWN_DOCUMENTS, say_names, say_sources
from mc2core.experiments.report.claims import Claim, no_further_than_seeds
from mc2core.experiments.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2core.experiments.plan import Plan


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """ICML14 table 1: the rows of :func:`perplexity_rows`, and its claims on each dataset."""
    table = perplexity_rows(scores, paper, estimators)
    return table, [one for dataset in table["dataset"].unique() for one in _claims(dataset, table)]


def _claims(dataset: str, table: pd.DataFrame) -> list[Claim]:
    here = table[table["dataset"] == dataset].set_index(["method", "features"])
    rows, sds = here["perplexity"].dropna(), here["perplexity_sd"]
    mc2 = rows.loc["MC2"] if "MC2" in rows.index.get_level_values(0) else pd.Series(dtype=float)
    judged = []
    numbers = ", ".join(f"{features} {value:,.1f}" for features, value in mc2.items())
    if "words+timestamp" in mc2.index and len(mc2) > 1:
        others = mc2.drop("words+timestamp")
        lead = others.min() - mc2["words+timestamp"]
        sd = sds.loc["MC2"][["words+timestamp", others.idxmin()]].max()
        numbers += no_further_than_seeds(lead, sd, "seeds", digits=1)
        judged.append(Claim(dataset, "timestamp best", bool(lead > 0), numbers))
    else:
        judged.append(Claim(dataset, "timestamp best", None, numbers))
    for worse, better in (("HDP", "npTOT"), ("npTOT", "MC2")):
        one = rows.loc[worse].min() if worse in rows.index.get_level_values(0) else None
        others = rows.loc[better].max() if better in rows.index.get_level_values(0) else None
        text = f"any MC2 below {worse}" if better == "MC2" else f"{better} below {worse}"
        absent = [name for name, value in ((worse, one), (better, others)) if value is None]
        if one is None or others is None:
            judged.append(Claim(dataset, text, None, f"no fit of {' and '.join(absent)}"))
        else:
            judged.append(Claim(dataset, text, bool(others < one), f"{others:,.1f} against {one:,.1f}"))
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
    }


def _caption(options: Options) -> str:
    return (
        f"Held-out perplexity on {say_names(options['corpora'])} (lower is better): ours as mean and sd "
        f"over {options['n_seeds']} seeds beside the paper's figure, with clusters K and topics M in use. Estimators: "
        f"{', '.join(options['estimators'])}; the first one decides the claims, or left_to_right in its place where "
        "documents have topic proportions of their own (HDP). "
        f"{ABOUT_OWN_DOCUMENTS} {say_sources(options['corpora'])} On simulated data the levels mean nothing beside the "
        "paper's; the order of the rows may. Paper: ICML 2014, table 1."
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
