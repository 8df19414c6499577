"""ICML 2014 table 1: held-out perplexity with and without contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2core.experiments.report.captions import say_sources
from mc2core.experiments.report.claims import Claim, no_further_than_seeds
from mc2core.experiments.report.tables import mean_and_sd, number, spread
from mc2core.experiments.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2core.experiments.plan import Plan

PERPLEXITY_NOTES = (
    "Ours: mean ± sd over seeds of the fits; (K, M) are clusters and topics in use, averaged over samples and seeds.",
    "perplexity, ours: of p(words of a held-out document) under the method's own model, averaged over samples inside "
    "the logarithm, by the estimator named: marginal is exact, where documents share the proportions of their cluster; "
    "left_to_right is unbiased, where each has its own (HDP). icml14: the paper's own estimator (its appendix A.4), in "
    "which a word helps to choose its topic: optimistic, and not comparable with the other column.",
    "The paper prints one run on its own split and preprocessing: compare the order of its rows with the order of "
    "ours, not the levels. Empty cells: not printed there, or not fitted here.",
    "seconds: sampling only, without compilation and scoring, on the cores given.",
)


_FEATURES = {(): "words", ("title",): "words+title", ("author",): "words+authors", ("year",): "words+timestamp"}


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str]
) -> tuple[pd.DataFrame, list[Claim]]:
    """ICML14 table 1: a row for each method and features the paper or we have.

    Parameters
    ----------
    scores : one for each fit, with ``title``, ``source``, ``documents``, ``method``, ``contexts``, ``perplexity``
        (a number for each estimator), ``estimator`` (the one that suits its model), ``clusters``, ``topics``,
        ``seconds``, ``threads``.
    paper : columns method, features, dataset, perplexity, clusters, topics as printed.
    estimators : of the plan. Column ``perplexity``, by which claims are judged, is of the first one or what stands for
        it in a row, which column ``estimator`` names; the others are columns of their own.

    Returns
    -------
    table : ours as mean and sd over seeds beside the paper's figure; NaN where one side has none.
    claims : on each dataset.
    """
    ours = pd.DataFrame([_flat(one, estimators) for one in scores])
    datasets = list(dict.fromkeys(ours["dataset"]))
    rows = []
    for dataset in datasets:
        printed = paper[paper["dataset"] == dataset]
        keys = [*zip(printed["method"], printed["features"], strict=True)]
        mine = ours[ours["dataset"] == dataset]
        keys += [key for key in zip(mine["method"], mine["features"], strict=True) if key not in keys]
        for method, features in dict.fromkeys(keys):
            fits = mine[(mine["method"] == method) & (mine["features"] == features)]
            there = printed[(printed["method"] == method) & (printed["features"] == features)]
            rows.append(_row(dataset, method, features, fits, there, estimators))
    table = pd.DataFrame(rows)
    return table, [one for dataset in datasets for one in _claims(dataset, table)]


def _flat(score: Mapping[str, Any], estimators: Sequence[str]) -> dict[str, Any]:
    contexts = tuple(sorted(score["contexts"]))
    names = ("source", "documents", "method", "clusters", "topics", "seconds", "threads", "estimator")
    return {
        "dataset": score["title"],
        "features": _FEATURES.get(contexts, "+".join(("words", *contexts))),
        **{name: np.nan if score[name] is None else score[name] for name in names},
        "perplexity": score["perplexity"][score["estimator"]],
        **{name: score["perplexity"].get(name, np.nan) for name in estimators[1:]},
    }


def _row(
    dataset: str, method: str, features: str, fits: pd.DataFrame, there: pd.DataFrame, estimators: Sequence[str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset, "method": method, "features": features, "seeds": len(fits)}
    for name in ("perplexity", *estimators[1:], "clusters", "topics", "seconds"):
        row |= mean_and_sd(fits[name], name)
    for name in ("source", "documents", "threads", "estimator"):
        row[name] = fits[name].iloc[0] if len(fits) else np.nan
    for name in ("perplexity", "clusters", "topics"):
        row[f"paper_{name}"] = there[name].iloc[0] if len(there) else np.nan
    return row


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
            judged.append(Claim(dataset, text, bool(others < one), f"{others:,.0f} against {one:,.0f}"))
    return judged


def format_perplexity_table(table: pd.DataFrame, estimators: Sequence[str]) -> pd.DataFrame:
    """The table of :func:`perplexity_table` as text for people."""

    def sizes(clusters: str, topics: str) -> str:
        return f"({clusters or '-'}, {topics or '-'})" if clusters or topics else ""

    return pd.DataFrame(
        [
            {
                "dataset": row["dataset"],
                "method": row["method"],
                "features": row["features"],
                "perplexity, paper": number(row["paper_perplexity"], 1),
                "perplexity, ours": spread(row, "perplexity"),
                "estimator": "" if pd.isna(row["estimator"]) else row["estimator"],
                **{f"ours, {name}": spread(row, name) for name in estimators[1:]},
                "(K, M), paper": sizes(number(row["paper_clusters"]), number(row["paper_topics"])),
                "(K, M), ours": sizes(number(row["clusters"]), number(row["topics"])),
                "seeds": number(row["seeds"]) if row["seeds"] else "",
                "source": "" if pd.isna(row["source"]) else row["source"],
                "documents": number(row["documents"]),
                "seconds": spread(row, "seconds", 1),
                "cores": number(row["threads"]),
            }
            for _, row in table.iterrows()
        ]
    )


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
        f"Held-out perplexity on {' and '.join(options['corpora']).upper()} (lower is better): ours as mean and sd "
        f"over {options['n_seeds']} seeds beside the paper's figure, with clusters K and topics M in use. Estimators: "
        f"{', '.join(options['estimators'])}; the first one decides the claims, or left_to_right in its place where "
        f"documents have topic proportions of their own (HDP). {say_sources(options['corpora'])} On "
        "simulated data the levels mean nothing beside the paper's; the order of the rows may. Paper: ICML 2014, "
        "table 1."
    )


TARGET = Target(
    title="ICML 2014, table 1: held-out perplexity (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores"},
    datasets=("nips", "pnas"),
    options=_options,
    notes=PERPLEXITY_NOTES,
    has_paper=True,
    has_claims=True,
)
