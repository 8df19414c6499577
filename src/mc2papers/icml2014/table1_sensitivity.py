"""ICML 2014 table 1 with choices that the paper does not print, and with the best K word distributions of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2papers.icml2014.choices import open_choices
from mc2papers.icml2014.perplexity_rows import UNIGRAMS, unigram_score
from mc2papers.icml2014.table1 import perplexity_table
from mc2papers.report.captions import counted, say_source
from mc2papers.report.claims import UNMET, Claim, Statistic, judge, under, untestable
from mc2papers.report.extent import extent_of_runs, said
from mc2papers.report.tables import mean_and_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target, options_of

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mc2core.corpus import Corpus

#: estimators by column, in the order of the table
ESTIMATORS = {"marginal": "p(words)", "left_to_right": "p(words), left to right", "icml14": "printed formula"}
#: the table whose claim is judged by the search
_OF = "icml2014_table1"
#: the first row, with the same choices as table 1
_FIRST = "as in table 1: 20 clusters, 50 topics, v ~ Gamma(1, 1)"
#: perplexities of a search by column: documents, type of averaging over solutions, and style of the line
_SEARCHED = {
    "training": ("training papers, averaged per document", "black", "-"),
    "training_by_token": ("training papers, per token (A.4)", "black", "--"),
    "held_out": ("held-out papers, averaged per document", "tab:gray", "-"),
    "held_out_by_token": ("held-out papers, per token (A.4)", "tab:gray", "--"),
}
_HELD_OUT = ["held_out", "held_out_by_token"]
_MODELS = {"mc2": "MC2", "hdp": "HDP", "nptot": "npTOT"}


def sensitivity_table(scores: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Average the scores of each choice over its seeds, in the order of ``scores``.

    Parameters
    ----------
    scores : one per fit, with ``method`` (the choice), ``model``, ``clusters``, ``topics``, ``perplexity`` by
        estimator, ``estimator`` (the estimator of p(words)) and ``in_sample`` (perplexity of the training documents,
        or None)

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


def searched(train: Corpus, test: Corpus, n_clusters: Sequence[int], n_starts: int) -> pd.DataFrame:
    """Return the rows of :func:`mc2papers.icml2014.word_bound.searched_perplexities` for each K."""
    from mc2papers.icml2014.word_bound import searched_perplexities

    sizes = sorted(set(n_clusters))
    return pd.concat([searched_perplexities(train.content, test.content, k, n_starts) for k in sizes])


def conclude(table: pd.DataFrame, found: pd.DataFrame, paper: pd.DataFrame, is_real: bool) -> str:
    """State the conclusion: the best choice compared with the HDP, and the printed numbers that a search reaches.

    paper : printed numbers of MC2 on NIPS, with ``clusters`` and ``perplexity``
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
    first = f"On the same held-out papers and with the same estimator, {'; '.join(said)}."
    if not is_real:
        return f"{first} The data are simulated, so the search cannot be compared with printed perplexities."
    one, most = (_of_printed(found, paper, end) for end in ("first", "last"))
    printed, n = paper["perplexity"].to_numpy(float), f"{most['solutions'].iloc[0]:.0f}"
    held_out = most[_HELD_OUT].min(axis=1).to_numpy()
    ahead = held_out / printed - 1
    return (
        f"{first} A search for as many word distributions as printed clusters reaches, on the training papers, "
        f"{_reached(one['training'], paper)} with one solution, {_reached(most['training'], paper)} with {n} "
        f"solutions averaged per document, and {_reached(most['training_by_token'], paper)} with {n} averaged per "
        f"token. On held-out papers, it reaches {_reached(held_out, paper)}; the differences are "
        f"{100 * ahead.min():+.0f} to {100 * ahead.max():+.0f}%."
    )


def judge_search(dataset: str, found: pd.DataFrame, paper: pd.DataFrame, is_real: bool) -> Claim:
    """Judge whether K word distributions reach the printed perplexities on held-out papers, for each printed K.

    The solutions of the search are local optima, so better solutions may exist. There is only one search, so there is
    no variation over seeds.
    """
    text = (
        "with as many word distributions as printed clusters, a search reaches the printed perplexities on held-out "
        "papers"
    )
    one, most = (_of_printed(found, paper, end) for end in ("first", "last"))
    n, held_out = f"{most['solutions'].iloc[0]:.0f}", most[_HELD_OUT].min(axis=1).to_numpy()
    numbers = (
        f"best found {held_out.min():,.0f} to {held_out.max():,.0f} with {n} solutions averaged, on training papers "
        f"{most['training'].min():,.0f} to {most['training'].max():,.0f}, with one solution "
        f"{one['training'].min():,.0f} to {one['training'].max():,.0f}"
    )
    if not is_real:
        return replace(
            untestable(dataset, text, "the printed perplexities were measured on the real papers", numbers), of=_OF
        )
    statistics = [
        Statistic(
            printed - best,
            printed - best,
            f"printed perplexity {printed:,.1f} for K = {k:.0f}; lowest perplexity found {best:,.0f}, "
            f"{_said(best / printed - 1)} the printed one",
        )
        for printed, k, best in zip(paper["perplexity"], paper["clusters"], held_out, strict=True)
    ]
    return replace(judge(dataset, text, statistics, numbers), of=_OF)


def judge_choices(
    scores: Sequence[Mapping[str, Any]],
    choices: Mapping[str, Sequence[str]],
    paper: pd.DataFrame,
    estimators: Sequence[str],
    *about: str,
) -> list[Claim]:
    """Judge the claims of table 1 with the fits of each open choice, if the necessary fits exist.

    Parameters
    ----------
    scores : scores as for table 1, including the HDP and unigrams
    choices : result of :func:`mc2papers.icml2014.choices.open_choices`
    paper : printed numbers of table 1
    about : size and limits of the fits
    """
    others, claims = [one for one in scores if one["method"] in ("HDP", UNIGRAMS)], []
    for choice, methods in choices.items():
        fits = [{**one, "method": "MC2"} for one in scores if one["method"] in methods]
        judged = perplexity_table([*fits, *others], paper, estimators)[1] if fits else []
        claims += under(choice, [one for one in judged if one.verdict != UNMET], _OF, *about)
    return claims


def _said(change: float) -> str:
    """Return a change as text, such as "9.4% below"."""
    return f"{100 * abs(change):.1f}% {'below' if change < 0 else 'above'}"


def _of_printed(found: pd.DataFrame, paper: pd.DataFrame, end: str) -> pd.DataFrame:
    """Return a row per printed number of clusters: with one solution (``end="first"``) or all solutions ("last")."""
    of_k = found.groupby("clusters").nth(0 if end == "first" else -1).set_index("clusters", drop=False)
    return of_k.loc[paper["clusters"].astype(int)]


def _reached(values: Any, paper: pd.DataFrame) -> str:
    """Return a phrase such as "1 of the 4 printed perplexities"."""
    printed = paper["perplexity"].to_numpy(float)
    return f"{int((np.asarray(values) <= printed).sum()) or 'none'} of the {len(printed)} printed perplexities"


def shown(table: pd.DataFrame, found: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Format the choices and, below them, the results of the search for each printed K, averaged over solutions."""
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
    for _, row in found.iterrows():
        k, n = int(row["clusters"]), int(row["solutions"])
        if n > 1 and (k not in printed or n < found["solutions"].max()):
            continue
        about = f" (printed: {printed[k]['perplexity']:,.1f}, {printed[k]['features']})" if k in printed else ""
        for suffix, kind in (("", "document"), ("_by_token", "token"))[: 1 if n == 1 else 2]:
            said = f"{n} solutions averaged per {kind}" if n > 1 else "one solution"
            rows.append(
                {
                    "choice": f"{counted(k, 'word distribution')}, {said}{about}",
                    "K": number(k),
                    "p(words)": number(row[f"held_out{suffix}"]),
                    "training documents": number(row[f"training{suffix}"]),
                }
            )
    return pd.DataFrame(rows).fillna("")


def draw(table: pd.DataFrame, found: pd.DataFrame, paper: pd.DataFrame, averaged_k: int, source: str) -> Figure:
    """Draw three panels: perplexity by K, by number of averaged solutions, and for each unreported setting.

    averaged_k : the K for which solutions are averaged
    """
    from mc2papers.icml2014.choices import Panel, draw_choices
    from mc2papers.report import palette, style
    from mc2papers.report.captions import DOCUMENT_LEVEL

    figure = style.new_figure(7.4, 3.7 + 0.2 * len(table))
    parts: Any = figure.subfigures(2, 1, height_ratios=[3.3, 0.4 + 0.2 * len(table)])
    above, beside = parts[0].subplots(1, 2, sharey=True, width_ratios=[3, 2])
    looks = {"MC2": palette.look("MC2"), "our document level": palette.look(DOCUMENT_LEVEL)}
    names = np.where(table["document_level"], "our document level", table["model"])
    for name, (colour, marker) in looks.items():
        here, shape = table[names == name], {"s": 16, "edgecolors": colour, "marker": marker}
        for column, face, of in (("perplexity", colour, "held out"), ("in_sample", "white", "training documents")):
            if (here[column].notna() & here["clusters"].notna()).any():
                above.scatter(here["clusters"], here[column], label=f"{name}, {of}", facecolors=face, **shape)
    hdp = float(table.loc[table["model"] == "HDP", "perplexity"].iloc[0])
    above.axhline(hdp, color=palette.SOFT, linewidth=0.8, linestyle=":", label="HDP, held out")
    one = found[found["solutions"] == 1]
    for column, name in (("training", "training"), ("held_out", "held-out")):
        label = f"K word distributions, best found,\n{name} papers (one solution)"
        above.plot(one["clusters"], one[column], color=_SEARCHED[column][1], linewidth=1.2, label=label)
    if len(paper):
        above.scatter(paper["clusters"], paper["perplexity"], marker="*", s=60, color="black", label="published")
        for _, pair in paper.iterrows():
            label, at = str(pair["features"]).removeprefix("words+"), (pair["clusters"], pair["perplexity"])
            above.annotate(label, at, (6, -3), textcoords="offset points", fontsize=7)
        printed = paper.set_index("clusters").loc[averaged_k, "perplexity"]
        beside.axhline(printed, color="black", linewidth=1.0, linestyle=":", label="published")
    of_k = found[found["clusters"] == averaged_k]
    for column, (label, colour, line) in _SEARCHED.items():
        beside.plot(of_k["solutions"], of_k[column], color=colour, linestyle=line, marker="o", ms=3, label=label)
    beside.set_xscale("log", base=2)
    beside.set_xticks(of_k["solutions"], [f"{n:.0f}" for n in of_k["solutions"]])
    beside.set(xlabel=f"solutions averaged (K = {averaged_k})")
    above.set_xscale("log")
    above.set(xlabel="clusters K", ylabel="perplexity")
    for ax, n_columns in ((above, 2), (beside, 1)):
        ax.grid(axis="y", color=palette.GRID, linewidth=0.6)
        ax.legend(fontsize=6.5, ncols=n_columns, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    below = parts[1].subplots(1, 3, sharey=True, width_ratios=[2, 1, 1])
    colours = [looks.get(str(name), palette.look(str(name)))[0] for name in names]
    hollow = "in_sample" if table["in_sample"].notna().any() else ""
    panels = (
        Panel("perplexity, held out" + "\n(hollow: training documents)" * bool(hollow), "perplexity", hollow=hollow),
        Panel("K", "clusters", printed=averaged_k, is_log=True),
        Panel("M", "topics", is_count=True),
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
    train, test = (Corpus.load(Path(folder) / part) for part in ("train", "test"))
    scores = []
    for path, model in zip(files["scores"], files["models"], strict=True):
        score = storage.read_json(path)
        # for other models, an estimate takes minutes, and there may be more word distributions than clusters
        is_exact = score["estimator"] == "marginal"
        score["in_sample"] = Posterior.load(model).perplexity(train, "marginal") if is_exact else None
        scores.append(score)
    printed = pd.read_csv(files["paper"][0])
    paper = printed[(printed["dataset"] == "NIPS") & (printed["method"] == "MC2")]
    source, table = scores[0]["source"], sensitivity_table(scores)
    is_real = source != "simulated"
    found = searched(train, test, [*options["n_clusters"], *paper["clusters"].astype(int)], options["n_starts"])
    averaged_k = int(paper.loc[paper["features"] == "words", "clusters"].iloc[0])
    marked = paper if is_real else paper[:0]
    shape = "of" if is_real else "in the shape of"
    data = f"{source}, {train.n_documents:,} training documents {shape} {scores[0]['title']}"
    estimators, about = options["estimators"], said(options["extent"], train.n_documents + test.n_documents)
    known = [*scores, unigram_score(folder, estimators)]
    return Built(
        pd.concat([table, found.assign(choice="word distributions")], ignore_index=True),
        shown=shown(table, found, marked),
        figure=draw(table, found, marked, averaged_k, data),
        conclusion=conclude(table, found, paper, is_real),
        claims=[
            judge_search(scores[0]["title"], found, paper, is_real),
            *judge_choices(known, options["choices"], printed, estimators, *about),
        ],
    )


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    choices = open_choices([configuration.runs[run] for run in configuration.runs_of(name)], _FIRST)
    return options_of(
        n_clusters="table1_sensitivity.n_clusters",
        n_starts="table1_sensitivity.starts",
        n_seeds="table1_sensitivity.seeds",
        length="table1_sensitivity.length",
        corpus="corpora.nips",
        estimators="estimators",
    )(configuration, name) | {
        "choices": choices,
        "extent": extent_of_runs(configuration, name, [*choices])["nips"],
    }


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    starts = counted(configuration.config["table1_sensitivity"]["starts"], "start")
    about = {"length": f"best of {starts}", "repeats": "", "limits": []}
    return {dataset: one | about for dataset, one in extent_of_runs(configuration, name).items()}


def _caption(options: Options) -> str:
    return (
        "Perplexity of MC2 and the HDP by choices that the paper does not print, "
        f"{counted(options['n_seeds'], 'fit')} of {options['length']['iterations']} sweeps per choice unless a row "
        "differs. "
        "Lines: the best K word distributions found in "
        f"{counted(options['n_starts'], 'start')} of a search; right: averages of several solutions. Stars, dotted: "
        f"published, on real data. {say_source('nips', options['corpus'])}."
    )


TARGET = Target(
    title="ICML 2014, table 1: choices that the paper does not print, and a search for K word distributions",
    shows="choices and a search",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "models": "models", "corpora": "corpora"},
    datasets=("nips",),
    options=_options,
    notes=(
        "p(words): held-out perplexity, exact, or by left_to_right for the HDP and the document level. K word "
        "distributions: the best found by hard EM, smoothed by 0.1 for held-out documents; better ones may exist. "
        "Solutions averaged: the probabilities of several solutions are averaged before the logarithm is taken.",
    ),
    extent=_extent,
    has_paper=True,
    is_study=True,
    memory_mb=2000,
)
