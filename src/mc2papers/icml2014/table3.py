"""ICML 2014 table 3: agreement of clusters with classes if contexts are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from mc2core.base import storage
from mc2papers.datasets.origins import MC2
from mc2papers.report.agreement import MEASURES, solutions_with_agreement
from mc2papers.report.captions import ABOUT_DOCUMENT_LEVEL, DOCUMENT_LEVEL, counted, say_chains, say_data, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, NOT_REPRODUCED, Claim, difference, judge, unmet
from mc2papers.report.tables import PAPER, mean_and_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target, options_of

KEY = "missing_percent"


def agreement_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, measures: Mapping[str, str] = MEASURES
) -> pd.DataFrame:
    """Return ICML14 table 3: one row per percentage of missing contexts in the paper or in our fits, ascending.

    Rows of MC2 with a document level follow, without printed numbers.

    Parameters
    ----------
    scores : one per fit, with ``method``, ``seed``, ``contexts``, ``missing`` (fraction of documents without contexts,
        default 0), ``clusters``, ``source``, ``title`` and the measures. A fit without contexts counts as 100 %
        missing, because its chain is the same as with contexts that are missing in all documents.
    paper : columns missing_percent and the measures, as printed.
    measures : names of the measures.

    Returns
    -------
    columns missing_percent, method, dataset, source, seeds, clusters and, for each measure, mean and sd (n - 1) over
    seeds and the printed number; missing values are NaN.

    Raises
    ------
    ValueError
        If the corpus of a fit has no labels.
    """
    ours = _measured(scores, measures)
    beside = ours["method"] == DOCUMENT_LEVEL
    about = {"dataset": ours["dataset"][0], "source": ours["source"][0]}
    paper = paper.reindex(columns=[KEY, *measures])
    rows = (*_rows(ours[~beside], paper, about, measures), *_rows(ours[beside], paper.iloc[:0], about, measures))
    return pd.DataFrame(rows)


def by_share(scores: Sequence[Mapping[str, Any]], measure: str) -> pd.DataFrame:
    """Return a measure of MC2 as printed, with one row per seed and one column per percentage of missing contexts."""
    ours = _measured(scores, (measure,))
    return ours[ours["method"] != DOCUMENT_LEVEL].pivot(index="seed", columns=KEY, values=measure)


def _measured(scores: Sequence[Mapping[str, Any]], measures: Iterable[str]) -> pd.DataFrame:
    """Return one row per fit: percentage of missing contexts, method, dataset, seed, clusters and measures."""
    rows = []
    for fit in scores:
        (values,) = solutions_with_agreement(fit)
        share = fit.get("missing", 0.0) if fit["contexts"] else 1.0
        about = {"method": fit["method"], "dataset": fit["title"], "source": fit["source"], "seed": fit["seed"]}
        measured = {"clusters": values["clusters"], **{name: values.get(name, float("nan")) for name in measures}}
        rows.append({KEY: round(100.0 * share, 6)} | about | measured)
    return pd.DataFrame(rows)


def _rows(
    ours: pd.DataFrame, paper: pd.DataFrame, about: Mapping[str, Any], measures: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Yield one row per percentage of missing contexts in our fits or in the paper."""
    for percent in sorted({*ours[KEY], *paper[KEY].astype(float)}):
        fits, there = ours[ours[KEY] == percent], paper[paper[KEY] == percent]
        row: dict[str, Any] = {KEY: percent, "method": ours["method"].iloc[0] if len(ours) else "", **about}
        row |= {"seeds": len(fits), **mean_and_sd(fits["clusters"], "clusters")}
        for name in measures:
            row |= mean_and_sd(fits[name], name)
            row[f"paper_{name}"] = there[name].iloc[0] if len(there) else float("nan")
        yield row


def judge_decay(scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> list[Claim]:
    """Judge the claims on table 3, for all measures of MC2 as printed.

    The first claim is that contexts improve the agreement much: at 0% missing, each measure must be higher than at 100%
    by at least the printed difference. The second claim is that quality degrades gracefully up to 50% missing: no step
    to fewer contexts may increase a measure significantly, and at 50% each measure must be higher than at 100%. A
    simulator determines the size of the gain from contexts, but not how this gain decreases.
    """
    printed = {share: paper[paper[KEY] == share].iloc[0] for share in (0, 100)}
    wanted = {name: float(printed[0][name]) - float(printed[100][name]) for name in MEASURES}
    said = ", ".join(f"{label} {wanted[name]:.3f}" for name, label in MEASURES.items())
    texts = (
        f"contexts raise the agreement by at least the printed gains ({said})",
        "all measures degrade gracefully if up to 50% of the contexts are missing",
    )
    dataset, gains, left, rises, numbers = scores[0]["title"], [], [], [], []
    for name, label in MEASURES.items():
        values = by_share(scores, name)
        shares = [*values.columns.to_numpy(float)]
        if not {0.0, 50.0, 100.0} <= set(shares):
            return [unmet(dataset, text, "no fits with 0%, 50% and 100% of the contexts missing") for text in texts]
        means = ", ".join(f"{values[share].mean():.3f} at {share:.0f}%" for share in (0.0, 50.0, 100.0))
        numbers.append(f"{label} {means}")
        about: dict[str, Any] = {"digits": 3, "name": f"gain in {label}", "size": wanted[name]}
        gains.append(difference(values[0.0], values[100.0], above=0, **about))
        about = {"digits": 3, "name": f"{label} with 50% missing minus {label} with 100% missing"}
        left.append(difference(values[50.0], values[100.0], above=0, **about))
        for more, few in pairwise(share for share in shares if share <= 50):
            about = {"digits": 3, "name": f"rise of {label} from {more:.0f}% to {few:.0f}% missing"}
            rises.append(difference(values[few], values[more], below=0, **about))
    said = "; ".join(numbers)
    gained = judge(dataset, texts[0], gains, said, favours=ANY_SIMULATOR)
    if any(one.most < 0 for one in gains):
        why = "contexts do not improve the agreement, so no improvement can be lost"
        return [gained, unmet(dataset, texts[1], why, said)]
    against = [one for one in rises if one.verdict == NOT_REPRODUCED]
    return [gained, judge(dataset, texts[1], [*left, *against], said, favours=MC2)]


def format_table(
    table: pd.DataFrame, label: str = "contexts missing", key: str = KEY, measures: Mapping[str, str] = MEASURES
) -> pd.DataFrame:
    """Format the table of :func:`agreement_table` as text; ``label`` is the new name of the column ``key``."""
    rows = []
    for _, row in table.iterrows():
        shown = {label: f"{row[key]:.0f}%", "method": row["method"], "data": row["source"]}
        shown |= {measure: spread(row, name, 3) for name, measure in measures.items()}
        shown |= {"K": spread(row, "clusters", 1), "seeds": number(row["seeds"] or float("nan"))}
        shown |= {f"{PAPER}{measure}": number(row[f"paper_{name}"], 3) for name, measure in MEASURES.items()}
        rows.append(shown)
    return pd.DataFrame(rows)


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    scores = [storage.read_json(path) for path in files["scores"]]
    paper = pd.read_csv(files["paper"][0])
    table = agreement_table(scores, paper)
    return Built(table, shown=format_table(table), claims=judge_decay(scores, paper))


def _caption(options: Options) -> str:
    return (
        f"Agreement of MC2's clusters with the classes of images (1 is perfect), {say_data(options['corpora'])}, when "
        "the tags of a share of the images are missing: our mean and sd over "
        f"{counted(options['n_seeds'], 'seed')} next to the paper's figure.\n\nAt 100%, the fit has no tags. Decay is "
        "graceful if a measure does not rise up to 50% and is higher at 50% than at 100%. "
        f"{say_chains(options['lengths'])} {ABOUT_DOCUMENT_LEVEL} {say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="ICML 2014, table 3: agreement with classes as contexts go missing (higher is better)",
    shows="missing contexts",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores"},
    datasets=("nuswide",),
    options=options_of("corpora", "lengths", n_seeds="seeds"),
    notes=(
        "Our numbers: mean ± sd over seeds, for the consensus of the samples; K is its number of clusters. Compare how "
        "our columns and the paper's fall, not their levels: the paper's data differ. The Rand index is always high, "
        "because it mostly counts pairs that are apart in both.",
    ),
    has_paper=True,
    by_classes=True,
)
