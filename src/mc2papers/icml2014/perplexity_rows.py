"""Compare held-out perplexities with the printed perplexities (ICML14, tables 1 and 2; UAI16, table 2)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2papers.report.claims import GAIN, Claim, change, judge, leaves_start, unless, unmet
from mc2papers.report.tables import PAPER, mean_and_sd, number, spread
from mc2papers.targets import Files

NOTES = (
    "K, M: clusters and topics in use. perplexity: p(words of a held-out document), "
    "exact, or by left_to_right (*) if each document has its own topic proportions. icml14: the formula of appendix "
    "A.4, which is not a probability. seconds: sampling only. Compare differences between rows, not levels: the "
    "paper's data differ.",
)

#: names of features in the paper, by the contexts of a fit
FEATURES = {(): "words", ("title",): "words+title", ("author",): "words+authors", ("year",): "words+timestamp"}

_PRINTED = ("perplexity", "clusters", "topics")

#: one distribution over words for all documents; a method that is not better is of no use
UNIGRAMS = "unigrams"
#: pseudo-count of each word for unigrams: 0.01 for each of the 50 topics at the start of chains. With a smaller value,
#: a method could be better than unigrams only because it smooths rare words more
_WORD_PRIOR = 0.5
ABOUT_UNIGRAMS = f"†: not below {UNIGRAMS} (word shares, alike for all documents)."


def unigram_score(folder: str | os.PathLike[str], estimators: Sequence[str]) -> dict[str, Any]:
    """Return the score of UNIGRAMS on a prepared corpus in the form of a fit's score.

    The perplexity has the name of the first estimator.
    """
    from mc2core.corpus import Corpus  # slow to load, and every job imports this module

    folder = Path(folder)
    about, value = storage.read_json(folder / "source.json"), None
    if about["test_documents"]:
        parts = (Corpus.load(folder / part).content for part in ("train", "test"))
        counts, held_out = (np.asarray(words.sum(axis=0), np.float64).ravel() for words in parts)
        share = (counts + _WORD_PRIOR) / (counts.sum() + _WORD_PRIOR * len(counts))
        value = float(np.exp(-(held_out @ np.log(share)) / held_out.sum()))
    nothing = dict.fromkeys(("clusters", "topics", "seconds", "threads"))
    scored = {"perplexity": {estimators[0]: value}, "estimator": estimators[0]}
    return about | nothing | scored | {"method": UNIGRAMS, "contexts": [], "seed": 0}


def read_scores(files: Files, estimators: Sequence[str]) -> list[dict[str, Any]]:
    """Return the scores of the fits of a target, followed by the scores of UNIGRAMS on its corpora."""
    unigrams = [unigram_score(folder, estimators) for folder in files["corpora"]]
    return [*map(storage.read_json, files["scores"]), *unigrams]


def perplexity_rows(
    scores: Sequence[Mapping[str, Any]],
    paper: pd.DataFrame,
    estimators: Sequence[str],
    features: Mapping[tuple[str, ...], str] = FEATURES,
) -> pd.DataFrame:
    """Return one row per method and features, with our mean and sd over seeds and the printed number.

    Parameters
    ----------
    scores : one per fit, with ``title``, ``source``, ``documents``, ``method``, ``seed``, ``contexts``, ``perplexity``
        (by estimator), ``estimator`` (the estimator that suits the model), ``clusters``, ``topics``, ``seconds`` and
        ``threads``.
    paper : columns method, features, dataset and perplexity as printed; clusters and topics if they are printed.
    estimators : estimators of the configuration. The column ``perplexity`` has the first estimator or, if this does not
        suit the model, the estimator in the column ``estimator``. Other estimators have their own columns.
    features : name of the features in the paper, by the sorted contexts of a fit.

    Returns
    -------
    The table. Values that the paper or our fits lack are NaN.
    """
    ours = pd.DataFrame([_flat(one, estimators, features) for one in scores])
    paper = paper.reindex(columns=[*dict.fromkeys([*paper.columns, *_PRINTED])])
    rows = []
    for dataset in ours["dataset"].unique():
        printed = paper[paper["dataset"] == dataset]
        keys = [*zip(printed["method"], printed["features"], strict=True)]
        mine = ours[ours["dataset"] == dataset]
        keys += [key for key in zip(mine["method"], mine["features"], strict=True) if key not in keys]
        for method, seen in dict.fromkeys(keys):
            fits = mine[(mine["method"] == method) & (mine["features"] == seen)]
            there = printed[(printed["method"] == method) & (printed["features"] == seen)]
            rows.append(_row(dataset, method, seen, fits, there, estimators))
    return pd.DataFrame(rows)


def perplexities(
    scores: Sequence[Mapping[str, Any]], estimators: Sequence[str], features: Mapping[tuple[str, ...], str] = FEATURES
) -> dict[str, dict[tuple[str, str], pd.Series]]:
    """Return the perplexities on which claims are judged, ``{dataset: {(method, features): perplexity by seed}}``.

    The arguments are those of :func:`perplexity_rows`. Fits without a perplexity are omitted.
    """
    flat = pd.DataFrame([_flat(one, estimators, features) for one in scores]).dropna(subset="perplexity")
    found: dict[str, dict[tuple[str, str], pd.Series]] = {one["title"]: {} for one in scores}
    for key, fits in flat.groupby(["dataset", "method", "features"], sort=False):
        dataset, method, seen = (str(one) for one in key)
        found[dataset][method, seen] = fits.set_index("seed")["perplexity"]
    return found


def judge_order(
    dataset: str,
    text: str,
    better: tuple[str, Mapping[str, pd.Series]],
    worse: tuple[str, Mapping[str, pd.Series]],
    unigrams: pd.Series | None = None,
    favours: str | None = None,
    no_rival: str = "",
) -> Claim:
    """Judge whether one method has a lower perplexity than another, for all their features.

    Both methods must be better than unigrams by more than GAIN; otherwise, the comparison does not support the claim.
    The same holds if a method is much worse than in the paper (:func:`lost_lead`).

    Parameters
    ----------
    better, worse : name of the method, and its perplexity by seed for each of its features
    unigrams : perplexity of UNIGRAMS on the data
    favours : the method that the claim favours (default: the better method)
    no_rival : reason why a lower perplexity than the other method does not support the claim; "" for no such reason
    """
    (name, low), (other, high) = better, worse
    if absent := [one for one, rows in (better, worse) if not rows]:
        return unmet(dataset, text, f"no fit of {' and '.join(absent)}")
    # the two rows that contradict the claim most, or support it least
    means = max(one.mean() for one in low.values()), min(one.mean() for one in high.values())
    numbers = f"{name} {means[0]:,.1f}, {other} {means[1]:,.1f}"
    leads = [change(low[one], high[two], f"{name} ({one}) against {other}") for one in low for two in high]
    level = np.inf if unigrams is None else float(unigrams.mean())
    numbers += "" if unigrams is None else f"; unigrams {level:,.1f}"
    claim = judge(dataset, text, leads, numbers, name if favours is None else favours)
    idle = [one for one, mean in zip((name, other), means, strict=True) if not leaves_start(level, mean)]
    why = f"the perplexity of {' and of '.join(idle)} is not more than {GAIN:.0%} below the perplexity of unigrams"
    return unless(claim, why if idle else no_rival)


def lost_lead(name: str, rows: Mapping[str, pd.Series], reference: Mapping[str, pd.Series], paper: pd.DataFrame) -> str:
    """Return the reason why a comparison with a method supports no claim; "" if there is no such reason.

    The reason is that the method has a lower perplexity than the HDP in the paper, but a perplexity more than GAIN
    above the HDP in our fits. A lower perplexity than this method is then not what the paper claims.

    Parameters
    ----------
    name, rows : name of the method, and its perplexity by seed for each of its features
    reference : perplexity of the HDP in the same form
    paper : columns method and perplexity as printed, for one dataset
    """
    printed, other = paper.groupby("method")["perplexity"].min(), "HDP"
    if not rows or not reference or not {name, other} <= set(printed.dropna().index):
        return ""
    here = min(one.mean() for one in rows.values()) / min(one.mean() for one in reference.values()) - 1
    there = printed[name] / printed[other] - 1
    if there >= 0 or here <= GAIN:
        return ""
    return (
        f"the perplexity of {name} is {here:.0%} above {other} here, but {-there:.0%} below {other} in the paper, so "
        f"{name} does not count as a rival"
    )


def _flat(
    score: Mapping[str, Any], estimators: Sequence[str], features: Mapping[tuple[str, ...], str]
) -> dict[str, Any]:
    contexts = tuple(sorted(score["contexts"]))
    names = ("source", "documents", "method", "seed", "clusters", "topics", "seconds", "threads", "estimator")
    return {
        "dataset": score["title"],
        "features": features.get(contexts, "+".join(("words", *contexts))),
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
    for name in _PRINTED:
        row[f"paper_{name}"] = there[name].iloc[0] if len(there) else np.nan
    return row


def format_perplexity_table(
    table: pd.DataFrame, estimators: Sequence[str], reference: tuple[str, str] = ("HDP", "words")
) -> pd.DataFrame:
    """Format the table of :func:`perplexity_rows` as text, with our numbers on the left and printed ones on the right.

    Perplexities of different data are not comparable. The table therefore has, for our and for the printed numbers, the
    difference in per cent from the row ``reference`` (method, features) of the same dataset.
    """
    rows = []
    for dataset, here in table.groupby("dataset", sort=False):
        unigrams = here.loc[here["method"] == UNIGRAMS, "perplexity"].mean()
        is_above = (here["perplexity"] >= unigrams) & (here["method"] != UNIGRAMS)
        marks = np.where(is_above, " †", "").tolist()
        ours, paper = (_against(here, column, reference) for column in ("perplexity", "paper_perplexity"))
        rows += [
            {
                "dataset": _say_data(str(dataset), here),
                "method": row["method"],
                "features": row["features"],
                "perplexity": spread(row, "perplexity", 1) + _mark(row["estimator"], estimators) + marks[place],
                f"against {', '.join(reference)}": ours[place],
                **{name: spread(row, name, 1) for name in estimators[1:]},
                "K": number(row["clusters"]),
                "M": number(row["topics"]),
                "seeds": number(row["seeds"] or np.nan),
                "seconds": spread(row, "seconds", 1) + (f" on {row['threads']:g} cores" if row["threads"] > 1 else ""),
                f"{PAPER}against {', '.join(reference)}": paper[place],
                f"{PAPER}K": number(row["paper_clusters"]),
                f"{PAPER}M": number(row["paper_topics"]),
                f"{PAPER}perplexity on its data": number(row["paper_perplexity"], 1),
            }
            for place, (_, row) in enumerate(here.iterrows())
        ]
    return pd.DataFrame(rows)


def _against(here: pd.DataFrame, column: str, reference: tuple[str, str]) -> list[str]:
    """Return the difference of each row from the reference as text, such as "-17.6%".

    The text is "" for the reference and for missing values.
    """
    is_reference = (here["method"] == reference[0]) & (here["features"] == reference[1])
    base = here.loc[is_reference, column].mean()
    change = (100 * (here[column] / base - 1)).mask(is_reference)
    return ["" if pd.isna(one) else f"{one:+.1f}%" for one in change]


def _say_data(dataset: str, here: pd.DataFrame) -> str:
    """Return a description of the data, such as "NIPS-shaped, simulated, 870 documents"."""
    source, documents = (here[name].dropna().iloc[0] for name in ("source", "documents"))
    return f"{dataset}{'-shaped' if source == 'simulated' else ''}, {source}, {number(documents)} documents"


def _mark(estimator: Any, estimators: Sequence[str]) -> str:
    return "" if pd.isna(estimator) or estimator == estimators[0] else " *"
