"""Measure the gain from each context of real corpora, compared with words only and with a random context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2papers.datasets.origins import ORIGINS
from mc2papers.report.agreement import MEASURES
from mc2papers.report.captions import DOCUMENT_LEVEL, counted
from mc2papers.report.claims import FEWEST_PER_CLUSTER, GAIN, LEVEL, OURS, Claim, Statistic, judge, mean_of
from mc2papers.report.extent import extent_of_runs
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mc2papers.configuration import Configuration

#: input of a fit in addition to the words: nothing, the context, or the context of random documents
WORDS, CONTEXT, RANDOM = "words", "context", "random"
KMEANS = "K-means"
#: corpora whose documents have several names as context, as images have tags; on these the papers' claims are judged
TAGGED = ("movies", "cora", "citeseer", "acm")
DATASETS = (*TAGGED, "poliblog", "sotu", "synergy", "twitch", "acl", "wikiimages", "nips")
#: columns of gains: label, and whether it is a change in per cent, for which lower values are better
GAINS = {
    "recommended_ari": ("gain in ARI, recommended", False),
    "recommended_nmi": ("gain in NMI, recommended", False),
    "fixed_ari": ("gain in ARI, K fixed", False),
    "fixed_nmi": ("gain in NMI, K fixed", False),
    "perplexity": ("change of perplexity, %", True),
}
_DRAWN = ("recommended_ari", "fixed_ari", "perplexity")
_CASE = ["dataset", "context", "method"]


def runs_with_contexts(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """Return the experiments that this study fits with and without their context, with the study's length of fits."""
    rows = {run: one for run, one in configuration.runs.items() if "labelled_contexts_help" in one["targets"]}
    length = configuration.config["contexts_help"]["length"]
    return {
        run: {**one, "fit": one["fit"] | (length if one["fit"]["engine"] == "gibbs" else {"iterations": 10})}
        for run, one in rows.items()
    }


def gain(fits: pd.DataFrame, measure: str, of: str = CONTEXT, over: str = WORDS) -> pd.Series:
    """Return, by seed, the gain of fits with the input ``of`` over fits with the input ``over``.

    For perplexity, the gain is the change in per cent.

    fits : rows of :func:`mc2papers.labelled.contexts_help_fits.fits_with_contexts` for one dataset, context and method
    """
    first, second = (fits[fits["given"] == given].set_index("seed")[measure] for given in (of, over))
    return (100 * (first / second - 1) if measure == "perplexity" else first - second).dropna()


def gains(fits: pd.DataFrame) -> pd.DataFrame:
    """Average the gains over seeds, with Student's t interval.

    Returns
    -------
    One row per dataset, context, method, given (CONTEXT or RANDOM) and measure (a key of GAINS), with the columns
    documents, classes, words (mean of the measure with words only), gain, least and most (ends of the interval) and
    seeds. Rows without a gain are omitted.
    """
    from scipy import stats

    rows = []
    for case, part in fits.groupby(_CASE, sort=False):
        entry = dict(zip(_CASE, case, strict=True)) | {name: part[name].iloc[0] for name in ("documents", "classes")}
        for given in (CONTEXT, RANDOM):
            for measure in GAINS:
                values = gain(part, measure, given)
                if values.empty or (measure != "perplexity" and not _has_classes(part)):
                    continue
                n, mean = len(values), values.mean()
                reach = stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
                row = entry | {"given": given, "measure": measure, "words": _words(part, measure), "gain": mean}
                rows.append(row | {"least": mean - reach, "most": mean + reach, "seeds": n})
    return pd.DataFrame(rows)


def _has_classes(fits: pd.DataFrame) -> bool:
    """Return whether a sample has classes, and enough documents per class."""
    return 0 < fits["classes"].iloc[0] <= fits["documents"].iloc[0] / FEWEST_PER_CLUSTER


def _words(fits: pd.DataFrame, measure: str) -> float:
    return float(fits.loc[fits["given"] == WORDS, measure].mean())


def conclude(table: pd.DataFrame) -> str:
    """Return the conclusion in two sentences: on the agreement with classes, and on the words of new documents."""
    sentences = []
    for measure, text, is_gain in (
        (
            "recommended_ari",
            f"the ARI of the recommended clusters is higher ({LEVEL:.0%} interval above zero)",
            _is_higher,
        ),
        (
            "perplexity",
            f"the perplexity of the words of new documents is lower by more than {GAIN:.0%} ({LEVEL:.0%} interval)",
            _is_lower,
        ),
    ):
        part = table[table["measure"] == measure].assign(is_gain=is_gain)
        real, shuffled = (part[part["given"] == given].groupby("method", sort=False) for given in (CONTEXT, RANDOM))
        counts = [f"{one['is_gain'].sum()} of {len(one)} cases for {name}" for name, one in real]
        random = [f"{one['is_gain'].sum()}" for _, one in shuffled]
        of_random = f"with the contexts of random documents in {_join(random)}"
        sentences.append(f"With the context, {text} in {_join(counts)}; {of_random}.")
    return " ".join(sentences)


def _join(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _is_higher(table: pd.DataFrame) -> pd.Series:
    return table["least"] > 0


def _is_lower(table: pd.DataFrame) -> pd.Series:
    return table["most"] < -100 * GAIN


def judge_contexts(fits: pd.DataFrame, printed: Mapping[Any, float]) -> list[Claim]:
    """Judge the gain from contexts: the papers' claims on the corpora in TAGGED, and our own claim on all corpora.

    printed : printed gain by (place, measure)
    """
    claims = []
    cases: Iterable[tuple[Any, pd.DataFrame]] = fits.groupby(_CASE, sort=False)
    for (dataset, context, method), part in cases:
        title = ORIGINS[dataset].title
        if method == "MC2" and dataset in TAGGED:
            at = {name: printed["ICML 14, table 3", name] for name in MEASURES}
            listing = ", ".join(f"{label} {at[name]:.3f}" for name, label in MEASURES.items())
            change, text = (
                printed["ICML 14, table 2", "perplexity"],
                "MC2 with tags has a lower perplexity than MC2 without tags",
            )
            claims.append(_of_perplexity("icml2014_table2", title, text, part, change))
            text = f"contexts raise the agreement by at least the printed gains ({listing})"
            claims.append(_of_measures("icml2014_table3", title, text, part, at))
        elif method == "SVI-MC2" and dataset in TAGGED:
            change = printed["UAI 16, table 2, MeSH", "perplexity"]
            text = "SVI-MC2 with contexts has a lower perplexity than SVI-MC2 without contexts"
            claims.append(_of_perplexity("uai2016_table2", title, text, part, change))
            text = "all four measures are higher with 100% of the contexts than with none"
            claims.append(_of_measures("uai2016_table4", title, text, part, dict.fromkeys(MEASURES, 0.0)))
        elif method == DOCUMENT_LEVEL:
            text = f"{method}: {{}} with {context} than with the words alone"
            claims.append(_mark_ours(_of_perplexity("", title, text.format("the perplexity is lower"), part)))
            if not _has_classes(part):
                continue
            for measure, label in (
                ("recommended_ari", "the ARI of the recommended clusters is higher"),
                ("fixed_ari", "with K fixed, the ARI is higher"),
            ):
                sentence = text.format(label)
                claims.append(_mark_ours(_of_measures("", title, sentence, part, {measure: 0.0})))
            sentence = f"{method}: the ARI of the recommended clusters is higher with {context} "
            sentence += f"than with {context} taken from random documents"
            claims.append(_mark_ours(_of_measures("", title, sentence, part, {"recommended_ari": 0.0}, RANDOM)))
            rival = fits[(fits["dataset"] == dataset) & (fits["context"] == context) & (fits["method"] == KMEANS)]
            rival = rival[rival["given"] == CONTEXT].assign(given=KMEANS)
            if len(rival):
                sentence = f"{method}: with K fixed, the ARI with {context} is at least the ARI of K-means "
                sentence += "with words and context"
                rows = pd.concat([part, rival])
                claims.append(_mark_ours(_of_measures("", title, sentence, rows, {"fixed_ari": 0.0}, KMEANS)))
    return claims


def _mark_ours(claim: Claim) -> Claim:
    return replace(claim, whose=OURS)


def _of_perplexity(target: str, title: str, text: str, fits: pd.DataFrame, printed: float = 0.0) -> Claim:
    label = "change of perplexity in %"
    settings: dict[str, Any] = {"below": 0.0, "digits": 1, "is_difference": True, "size": 100 * GAIN}
    lead = mean_of(label, gain(fits, "perplexity"), **settings, claimed=abs(printed))
    first, second = (fits.loc[fits["given"] == given, "perplexity"].mean() for given in (CONTEXT, WORDS))
    numbers = f"with {fits['context'].iloc[0]} {first:,.1f}, without {second:,.1f}"
    if printed:
        numbers += f"; printed {printed:+.1f}%"
    return replace(judge(title, text, [lead], numbers), of=target)


def _of_measures(
    target: str, title: str, text: str, fits: pd.DataFrame, sizes: Mapping[str, float], over: str = WORDS
) -> Claim:
    leads: list[Statistic] = []
    labels = {**MEASURES, "recommended_ari": "ARI of the recommended clusters", "fixed_ari": "ARI with K fixed"}
    numbers = []
    for name, size in sizes.items():
        gains = gain(fits, name, over=over)
        leads.append(mean_of(f"gain in {labels[name]}", gains, above=0.0, digits=3, is_difference=True, size=size))
        means = (fits.loc[fits["given"] == given, name].mean() for given in (CONTEXT, over))
        numbers.append(f"{labels[name]} " + " against ".join(f"{one:.3f}" for one in means))
    return replace(judge(title, text, leads, ", ".join(numbers)), of=target)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Format the gains as text, one row per corpus, context, method and kind of context (real or random)."""
    rows = []
    cases: Iterable[tuple[Any, pd.DataFrame]] = table.groupby([*_CASE, "given"], sort=False)
    for (dataset, context, method, given), part in cases:
        by = part.set_index("measure")
        size = f"{by['documents'].iloc[0]:,.0f} documents"
        row = {
            "corpus": f"{ORIGINS[dataset].title} ({size}, {counted(int(by['classes'].iloc[0]), 'class', 'classes')})",
            "context": context if given == CONTEXT else f"{context}, of random documents",
            "method": method,
        }
        for measure, (label, is_change) in GAINS.items():
            digits = 1 if is_change else 3
            row[label] = ""
            if measure in by.index:
                values: Any = by.loc[measure]
                mean, least, most = (f"{values[one]:+.{digits}f}" for one in ("gain", "least", "most"))
                row[label] = f"{mean} ({least} to {most}); words {values['words']:,.{digits}f}"
        rows.append(row)
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Draw a forest plot with one panel per measure, one row per corpus and context, and one bar per method."""
    from mc2papers.report import palette, style

    cases = list(dict.fromkeys(zip(table["dataset"], table["context"], strict=True)))
    methods = list(dict.fromkeys(table["method"]))
    figure = style.new_figure(8.2, 1.2 + 0.62 * len(cases))
    axes = figure.subplots(1, len(_DRAWN), sharey=True)
    for ax, measure in zip(axes, _DRAWN, strict=True):
        for _, bar in table[table["measure"] == measure].iterrows():
            colour, marker = palette.look(str(bar["method"]).removesuffix("-MC2"))
            row = cases.index((bar["dataset"], bar["context"]))
            is_random = bar["given"] == RANDOM
            step = 0.8 / (2 * len(methods))
            y = row + step * (2 * methods.index(bar["method"]) + is_random - len(methods) + 0.5)
            label = f"{bar['method']}{', context of random documents' if is_random else ''}"
            ax.errorbar(
                bar["gain"], y, xerr=[[bar["gain"] - bar["least"]], [bar["most"] - bar["gain"]]], color=colour,
                marker=marker, markersize=3.5, linewidth=1, markerfacecolor="white" if is_random else colour,
                alpha=0.6 if is_random else 1.0, linestyle="none", label=label,
            )  # fmt: skip
        ax.axvline(0.0, color=palette.SOFT, linewidth=0.7)
        for row in range(1, len(cases)):
            ax.axhline(row - 0.5, color=palette.GRID, linewidth=0.7)
        ax.set(xlabel=GAINS[measure][0], ylim=(len(cases) - 0.5, -0.5))
    axes[0].set_yticks(range(len(cases)), [f"{ORIGINS[dataset].title},\n{context}" for dataset, context in cases])
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in entries}
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=2)
    return figure


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    fits = pd.concat([pd.read_csv(path) for path in files["fits"]], ignore_index=True)
    printed = pd.read_csv(files["paper"][0]).set_index(["place", "measure"])["gain"].to_dict()
    table = gains(fits)
    claims = judge_contexts(fits, printed)
    return Built(table, shown=shown(table), figure=draw(table), conclusion=conclude(table), claims=claims)


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    return dict(configuration.config["contexts_help"])


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    study = configuration.config["contexts_help"]
    extents = extent_of_runs(replace(configuration, runs=runs_with_contexts(configuration)), name)
    for dataset, extent in extents.items():
        extent["repeats"] = counted(study["seeds"], "seed")
        if study["tokens"].get(dataset) is not None:
            extent["documents"] = f"samples of {study['tokens'][dataset]:,} tokens of all"
            extent["limits"] = ["few documents", *extent["limits"]]
    return extents


def _caption(options: Options) -> str:
    return (
        "Gain from each context of real corpora, compared with words alone: ARI of the recommended clusters, ARI with "
        "as many clusters as classes, and perplexity of held-out words (lower is better). Filled: the context; open: "
        f"contexts of random documents. Means and {LEVEL:.0%} intervals over {options['seeds']} seeds, each with its "
        "own sample, split and chain."
    )


TARGET = Target(
    title="Contexts: gain from each context of real corpora, compared with words alone",
    shows="gain by contexts",
    build=_build,
    caption=_caption,
    inputs={"fits": "contexts help"},
    datasets=DATASETS,
    is_real=True,
    options=_options,
    extent=_extent,
    notes=(
        "Gains: with the context minus without, paired by seed, with 95% intervals (Student's t). K fixed: clusters "
        "merged to as many as there are classes. K-means uses tf-idf of words and names. Agreement with fewer than "
        f"{FEWEST_PER_CLUSTER} documents per class is left out. Held-out words are scored without contexts.",
    ),
    has_paper=True,
    by_classes=True,
    is_study=True,
)
