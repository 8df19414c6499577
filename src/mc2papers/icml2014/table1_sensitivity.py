"""ICML 2014 table 1 under choices that the paper does not print, and the least perplexity of K word distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2papers.report.captions import counted, say_source
from mc2papers.report.claims import Claim, Statistic, judge, untestable
from mc2papers.report.extent import extent_of_runs
from mc2papers.report.tables import mean_and_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target, options_of

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mc2core.corpus import Corpus

#: estimators by column, in the order of the table
ESTIMATORS = {"marginal": "p(words)", "left_to_right": "p(words), left to right", "icml14": "printed formula"}
#: the table whose claim the bound judges
_OF = "icml2014_table1"
_MODELS = {"mc2": "MC2", "hdp": "HDP", "nptot": "npTOT"}


def sensitivity_table(scores: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Average the scores of each choice over its seeds, in the order in which they come.

    Parameters
    ----------
    scores : one per fit, with ``method`` (the choice), ``model``, ``clusters``, ``topics``, ``perplexity`` by
        estimator, ``estimator`` (the one of p(words)) and ``in_sample``, the perplexity of the training documents;
        None for none

    Returns
    -------
    columns choice, model, document_level, fits, and mean and sd of perplexity (of p(words)), in_sample, clusters,
    topics and each of ESTIMATORS.
    """
    rows = []
    for choice in dict.fromkeys(one["method"] for one in scores):
        here = [one for one in scores if one["method"] == choice]
        values = pd.DataFrame(
            [
                {"perplexity": one["perplexity"][one["estimator"]], "in_sample": one["in_sample"]}
                | {"clusters": one["clusters"], "topics": one["topics"]}
                | {name: one["perplexity"].get(name) for name in ESTIMATORS}
                for one in here
            ]
        ).astype(float)
        model, has_level = here[0]["model"], here[0]["estimator"] != "marginal"
        row: dict[str, Any] = {"choice": choice, "model": _MODELS[model], "fits": len(here)}
        row["document_level"] = model == "mc2" and has_level
        for name in values:
            row |= mean_and_sd(values[name], str(name))
        rows.append(row)
    return pd.DataFrame(rows)


def bound_table(corpus: Corpus, n_clusters: Sequence[int], n_starts: int) -> pd.DataFrame:
    """Return the least in-sample perplexity of K word distributions for each K: columns clusters, bound."""
    from mc2papers.icml2014.word_bound import least_perplexity

    found = {k: least_perplexity(corpus.content, k, n_starts) for k in sorted(set(n_clusters))}
    return pd.DataFrame({"clusters": list(found), "bound": list(found.values())})


def conclude(table: pd.DataFrame, bound: pd.DataFrame, paper: pd.DataFrame, is_real: bool) -> str:
    """Draw the conclusion: the best choice against the HDP, and on real data the printed figures against the bound.

    paper : printed figures of MC2 on NIPS, with ``clusters`` and ``perplexity``
    """
    hdp = float(table.loc[table["model"] == "HDP", "perplexity"].iloc[0])
    of_mc2 = table[(table["model"] == "MC2") & table["perplexity"].notna()]
    best = {bool(level): here.nsmallest(1, "perplexity").iloc[0] for level, here in of_mc2.groupby("document_level")}
    said = [
        f"{name} is {_said(best[level]['perplexity'] / hdp - 1)} the HDP at best "
        f'("{best[level]["choice"]}", K {best[level]["clusters"]:,.0f}, M {best[level]["topics"]:,.0f})'
        for level, name in ((False, "MC2 as printed"), (True, "our document level"))
        if level in best
    ]
    first = f"Held out and scored alike, {'; '.join(said)}."
    if not is_real:
        return f"{first} The data are simulated, so that printed perplexities cannot be compared with the bound."
    gaps = below_bound(bound, paper)
    n_below = int((gaps > 0).sum())
    return (
        f"{first} Of the {len(gaps)} printed perplexities {n_below} are below the least that as many word "
        f"distributions reach on the training papers themselves, by {100 * gaps.min():.0f} to {100 * gaps.max():.0f}%."
    )


def judge_bound(dataset: str, bound: pd.DataFrame, paper: pd.DataFrame, is_real: bool) -> Claim:
    """Whether K word distributions can have the printed perplexities, for each printed K.

    A bound has no spread over seeds. It is that of the training papers, which are easier to describe than others.
    """
    text = "the printed perplexities are possible with the printed numbers of clusters"
    by_clusters, gaps = bound.set_index("clusters")["bound"], below_bound(bound, paper)
    least = by_clusters.loc[paper["clusters"].astype(int)].to_numpy(float)
    numbers = f"at least {least.min():,.0f} to {least.max():,.0f} on the training papers"
    if not is_real:
        return replace(untestable(dataset, text, "the printed perplexities are of the real papers", numbers), of=_OF)
    statistics = [
        Statistic(
            printed - at_least,
            printed - at_least,
            f"printed {printed:,.1f} for K = {k:.0f}, {abs(gap):.0%} {'below' if gap > 0 else 'above'} the least of "
            f"{k:.0f} word distributions, {at_least:,.0f}",
        )
        for printed, k, at_least, gap in zip(paper["perplexity"], paper["clusters"], least, gaps, strict=True)
    ]
    return replace(judge(dataset, text, statistics, numbers), of=_OF)


def _said(change: float) -> str:
    """ "9.4% below"."""
    return f"{100 * abs(change):.1f}% {'below' if change < 0 else 'above'}"


def below_bound(bound: pd.DataFrame, paper: pd.DataFrame) -> np.ndarray:
    """Share by which each printed perplexity lies below the bound of its K."""
    by_clusters = bound.set_index("clusters")["bound"]
    return 1.0 - paper["perplexity"].to_numpy(float) / by_clusters.loc[paper["clusters"].astype(int)].to_numpy(float)


def shown(table: pd.DataFrame, bound: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Format the choices, and below them the bound of each printed K."""
    hdp = float(table.loc[table["model"] == "HDP", "perplexity"].iloc[0])
    rows = [
        {
            "choice": row["choice"],
            "K": spread(row, "clusters"),
            "M": spread(row, "topics"),
            "p(words)": spread(row, "perplexity"),
            "against HDP": f"{100 * (row['perplexity'] / hdp - 1):+.1f}%" if pd.notna(row["perplexity"]) else "",
            "training documents": spread(row, "in_sample"),
            "printed formula": spread(row, "icml14"),
        }
        for _, row in table.iterrows()
    ]
    printed = {int(one["clusters"]): one for _, one in paper.iterrows()}
    rows += [
        {
            "choice": f"bound: {counted(int(k), 'word distribution')}"
            + (
                f" (printed: {printed[int(k)]['perplexity']:,.1f}, {printed[int(k)]['features']})"
                if k in printed
                else ""
            ),
            "K": number(k),
            "training documents": number(value),
        }
        for k, value in zip(bound["clusters"], bound["bound"], strict=True)
    ]
    return pd.DataFrame(rows).fillna("")


def draw(table: pd.DataFrame, bound: pd.DataFrame, paper: pd.DataFrame, source: str) -> Figure:
    """Draw perplexity over K with the bound, and perplexity of each choice."""
    from mc2papers.icml2014.choices import Panel, draw_choices
    from mc2papers.report import palette, style
    from mc2papers.report.captions import DOCUMENT_LEVEL

    figure = style.new_figure(7.4, 3.1 + 0.2 * len(table))
    parts: Any = figure.subfigures(2, 1, height_ratios=[2.7, 0.4 + 0.2 * len(table)])
    above = parts[0].subplots()
    looks = {"MC2": palette.look("MC2"), "our document level": palette.look(DOCUMENT_LEVEL)}
    names = np.where(table["document_level"], "our document level", table["model"])
    for name, (colour, marker) in looks.items():
        here = table[names == name]
        above.scatter(
            here["clusters"], here["perplexity"], s=16, color=colour, marker=marker, label=f"{name}, held out"
        )
        if here["in_sample"].notna().any():
            about = {"s": 16, "facecolors": "white", "edgecolors": colour, "marker": marker}
            above.scatter(here["clusters"], here["in_sample"], label=f"{name}, training documents", **about)
    hdp = float(table.loc[table["model"] == "HDP", "perplexity"].iloc[0])
    above.axhline(hdp, color=palette.SOFT, linewidth=0.8, linestyle=":", label="HDP, held out")
    above.plot(
        bound["clusters"],
        bound["bound"],
        color="black",
        linewidth=1.2,
        label="least of K word distributions,\ntraining documents",
    )
    if len(paper):
        above.scatter(paper["clusters"], paper["perplexity"], marker="*", s=60, color="black", label="printed")
        for _, one in paper.iterrows():
            label = str(one["features"]).removeprefix("words+")
            above.annotate(label, (one["clusters"], one["perplexity"]), (6, -3), textcoords="offset points", fontsize=7)
    above.set_xscale("log")
    above.set(xlabel="clusters K", ylabel="perplexity")
    above.grid(axis="y", color=palette.GRID, linewidth=0.6)
    above.legend(fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    below = parts[1].subplots(1, 3, sharey=True, width_ratios=[2, 1, 1])
    colours = [looks.get(str(name), palette.look(str(name)))[0] for name in names]
    panels = (
        Panel("perplexity, held out\n(hollow: training documents)", "perplexity", hollow="in_sample"),
        Panel("K", "clusters", is_log=True),
        Panel("M", "topics"),
    )
    draw_choices(below, table, panels, colours)
    style.mark_source(parts[1], source)
    return figure


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    from pathlib import Path

    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior

    (folder,) = files["corpora"]
    train, scores = Corpus.load(Path(folder) / "train"), []
    for path, model in zip(files["scores"], files["models"], strict=True):
        score = storage.read_json(path)
        # of the others an estimate takes minutes, and the bound does not hold for them
        is_exact = score["estimator"] == "marginal"
        score["in_sample"] = Posterior.load(model).perplexity(train, "marginal") if is_exact else None
        scores.append(score)
    paper = pd.read_csv(files["paper"][0])
    paper = paper[(paper["dataset"] == "NIPS") & (paper["method"] == "MC2")]
    source, table = scores[0]["source"], sensitivity_table(scores)
    is_real = source != "simulated"
    bound = bound_table(train, [*options["n_clusters"], *paper["clusters"].astype(int)], options["n_starts"])
    marked = paper if is_real else paper[:0]
    shape = "of" if is_real else "in the shape of"
    data = f"{source}, {train.n_documents:,} training documents {shape} {scores[0]['title']}"
    return Built(
        pd.concat([table, bound.assign(choice="bound")], ignore_index=True),
        shown=shown(table, bound, marked),
        figure=draw(table, bound, marked, data),
        conclusion=conclude(table, bound, paper, is_real),
        claims=[judge_bound(scores[0]["title"], bound, paper, is_real)],
    )


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    starts = counted(configuration.config["table1_sensitivity"]["starts"], "start")
    about = {"length": f"best of {starts}", "repeats": "", "limits": []}
    return {dataset: one | about for dataset, one in extent_of_runs(configuration, name).items()}


def _caption(options: Options) -> str:
    return (
        "Perplexity of MC2 and the HDP by unprinted choices, "
        f"{counted(options['n_seeds'], 'fit')} of 40 sweeps per choice or as a row says. Line: the least "
        "perplexity of the training documents under K word distributions, the best of "
        f"{counted(options['n_starts'], 'start')}. Stars: printed pairs, on real data only. "
        f"{say_source('nips', options['corpus'])}."
    )


TARGET = Target(
    title="ICML 2014, table 1: sensitivity to choices that the paper does not print, and a bound",
    shows="choices and a bound",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "models": "models", "corpora": "corpora"},
    datasets=("nips",),
    options=options_of(
        n_clusters="table1_sensitivity.n_clusters",
        n_starts="table1_sensitivity.starts",
        n_seeds="table1_sensitivity.seeds",
        corpus="corpora.nips",
    ),
    notes=(
        "p(words): held-out perplexity, exact for MC2 as printed, by left_to_right for the HDP and our document level. "
        "Training documents: the same of the documents that the chain has seen. Printed formula: appendix A.4.",
        "bound: the least perplexity of the training documents under K unsmoothed word distributions, one per cluster. "
        "A sample of MC2 as printed has no more of them. It was searched for by hard EM, so that the least may be lower"
        " still. It does not hold for models in which each document has its own proportions (HDP, our document level).",
    ),
    extent=_extent,
    has_paper=True,
    has_claims=True,
    is_study=True,
    memory_mb=2000,
)
