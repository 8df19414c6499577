"""Compare our methods and the methods of the papers on real corpora, by agreement with classes and processor time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2papers.datasets.origins import MC2, ORIGINS
from mc2papers.report.captions import DOCUMENT_LEVEL, counted
from mc2papers.report.claims import OURS, UNMET, Claim, degenerate, difference, judge, mean_of, undecided, under, unmet
from mc2papers.report.tables import mean_and_sd, mean_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

DATASETS = ("labelme", "uiucsports", "ohsumed", "stateunion", "cora")
#: column: heading of the table for people
MEASURES = {
    "purity": "purity",
    "nmi": "NMI",
    "ari": "ARI",
    "rand_index": "Rand index",
    "f_score": "F-score",
    "vi_bits": "VI, bits",
}
_OURS, _RIVAL = ("MC2", DOCUMENT_LEVEL), "K-means (K given)"
_CUT = DOCUMENT_LEVEL.replace("(ours)", "(ours, recommended cut)")
# with the number of classes given, as for other methods
_FIXED = DOCUMENT_LEVEL.replace("(ours)", "(ours, K given)")
_TOLD_RIVALS = tuple(
    f"{one} (K given)" for one in ("K-means", "LSA + K-means", "LSA + Gaussian mixture", "NMF", "LDA", "GSDMM")
)
# a rival with K inferred
_FREE_RIVAL = "GSDMM (K at most 300)"

_FIGURE = "icml2014_figure5"
#: rivals of this figure
_FIGURE5 = ("K-means (several K)", "NMF (K given)", "NMF (several K)", "AP", "HDP + AP")
#: share of the ARI of the best other method with K fixed that a method with K inferred should reach
_SHARE = 0.85
#: and how many times more or fewer clusters than classes it may have
_TIMES = 2.0

NOTES = (
    "Mean ± sd over seeds (and numbers of clusters). Settings of our variants were not chosen on these documents. "
    "Classes are used for scores only, and for K if a row says K given. Compare rows of similar K, or by ARI, because "
    "purity rises with K. Recommended cut: clusters of the row without it, merged. not converged: stopped early.",
)


def agreement_table(
    scores: Sequence[Mapping[str, Any]], classes: Mapping[str, int], uses: Mapping[str, str]
) -> pd.DataFrame:
    """Return a table with one row per dataset, method and contexts, in the order of ``scores``.

    Parameters
    ----------
    scores : one per fit, with ``run``, ``seed``, ``title``, ``documents``, ``method``, ``contexts``, ``cpu_seconds``,
        ``converged`` (by solution) and clusterings (:func:`mc2core.posterior.scores.solutions_of`).
    classes : number of classes by title of the dataset.
    uses : other run whose result a run clusters, by run. The processor time of the other run is added. A fit in which
        each document is a cluster (HDP) has no row.

    Returns
    -------
    columns dataset, documents, classes, method, contexts (such as "year"; "" for none), clusterings, not_converged, and
    mean and sd (n - 1) of clusters, MEASURES and cpu_seconds.

    Raises
    ------
    ValueError
        If the corpus of a fit has no labels.
    """
    rows = _measure(scores, classes, uses)
    keys = ["dataset", "documents", "classes", "method", "contexts"]
    table = []
    for key, part in rows.groupby(keys, sort=False):
        row = dict(zip(keys, key, strict=True))
        row |= {"clusterings": len(part), "not_converged": int(part["not_converged"].sum())}
        for name in ("clusters", *MEASURES, "cpu_seconds"):
            row |= mean_and_sd(part[name], name)
        table.append(row)
    ordered = pd.DataFrame(table)
    return ordered.sort_values("dataset", key=lambda column: column.map(list(classes).index), kind="stable")


def _measure(scores: Sequence[Mapping[str, Any]], classes: Mapping[str, int], uses: Mapping[str, str]) -> pd.DataFrame:
    """Return one row per reported clustering, from the arguments of :func:`agreement_table`."""
    from mc2core.posterior.scores import solutions_of
    from mc2papers.report.agreement import solutions_with_agreement

    seconds = {(fit["run"], fit["seed"]): fit["cpu_seconds"] for fit in scores}
    rows = []
    for fit in scores:
        if all(one["clusters"] is None for one in solutions_of(fit)):
            continue
        solutions = solutions_with_agreement(fit)
        spent = fit["cpu_seconds"] + seconds.get((uses.get(fit["run"]), fit["seed"]), 0.0)
        rows += [
            {
                "dataset": fit["title"],
                "documents": fit["documents"],
                "classes": classes[fit["title"]],
                "method": fit["method"],
                "contexts": "+".join(fit["contexts"]),
                "seed": fit["seed"],
                "not_converged": not fit["converged"].get(one.get("solution"), True),
                "clusters": one["clusters"],
                "cpu_seconds": spent / len(solutions),
                **{measure: one[measure] for measure in MEASURES},
            }
            for one in solutions
        ]
    return pd.DataFrame(rows)


def claims(scores: Sequence[Mapping[str, Any]], classes: Mapping[str, int], uses: Mapping[str, str]) -> list[Claim]:
    """Judge our own claims on the labelled corpora, and the claims of ICML14 figure 5 on corpora with contexts.

    Our first claim is that MC2 is at least as good as K-means with K fixed. The second claim is that MC2 with K fixed
    is at least as good as each other method. There are three claims on the recommended cut: it is nearly as good as the
    best method with K fixed, at least as good as GSDMM, and its number of clusters is near the number of classes. The
    last claim is that contexts increase the agreement.

    The arguments are those of :func:`agreement_table`.
    """
    rows, judged = _measure(scores, classes, uses), []
    for dataset in [title for title in classes if title in set(rows["dataset"])]:
        by_method: dict[Any, pd.DataFrame] = {
            key: one.groupby("seed")[["documents", "clusters", *MEASURES]].mean()
            for key, one in rows[rows["dataset"] == dataset].groupby(["method", "contexts"], sort=False)
        }
        compare = partial(_compare, dataset, by_method)
        for method, measure in product([one for one in _OURS if (one, "") in by_method], ("nmi", "ari")):
            text = f"the {MEASURES[measure]} of {method} is at least the {MEASURES[measure]} of K-means with K fixed"
            judged.append(compare(text, measure, (method, ""), (_RIVAL, "")))
        if (_FIXED, "") in by_method:
            text = "with K fixed, the ARI is at least the ARI of"
            judged += [compare(f"{text} {rival}", "ari", (_FIXED, ""), (rival, "")) for rival in _TOLD_RIVALS]
        if (_CUT, "") in by_method:
            judged += _of_cut(dataset, by_method, classes[dataset])
        for method, contexts in by_method:
            if contexts:
                text = f"the NMI of {method} is higher with {contexts} than without"
                judged.append(compare(text, "nmi", (method, contexts), (method, "")))
        judged += _of_figure5(dataset, [one for one in scores if one["title"] == dataset])
    return judged


def _of_figure5(dataset: str, scores: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Judge the claims of ICML14 figure 5, which compare MC2 as printed with other methods, on real data.

    The paper does not say whether the other methods use the contexts. By default, they are compared with and without
    the contexts; without, it is an open choice.
    """
    from mc2papers.report import agreement

    chosen = [one for one in scores if one["method"] in ("MC2", *_FIGURE5)]
    words_only = [one for one in chosen if one["method"] == "MC2" or not one["contexts"]]
    judged = []
    for context in sorted({"+".join(one["contexts"]) for one in chosen} - {""}):
        judged += [replace(one, of=_FIGURE) for one in agreement.claims(chosen, dataset, context)]
        if len(words_only) < len(chosen):
            judged += under("other methods with words only", agreement.claims(words_only, dataset, context), _FIGURE)
    return judged


def _of_cut(dataset: str, by_method: Mapping[Any, pd.DataFrame], n_classes: int) -> list[Claim]:
    """Judge the three claims on the recommended cut: ARI with K fixed, ARI against GSDMM, and number of clusters."""
    cut = by_method[_CUT, ""]
    ratio = partial(mean_of, "clusters divided by classes", cut["clusters"] / n_classes, digits=2)
    bounds = [ratio(above=1.0 / _TIMES), ratio(below=_TIMES)]
    text = (
        "with K inferred, the number of clusters of the recommended cut is within a factor of "
        f"{_TIMES:.0f} of the number of classes"
    )
    of_size = judge(dataset, text, bounds, f"{mean_sd(cut['clusters'], 1)} for {n_classes}", favours=MC2, whose=OURS)
    text = f"with K inferred, the ARI of the recommended cut is at least the ARI of {_FREE_RIVAL}"
    of_free = _compare(dataset, by_method, text, "ari", (_CUT, ""), (_FREE_RIVAL, ""))
    text = (
        f"with K inferred, the ARI of the recommended cut is at least {_SHARE} times the ARI of the best rival with K "
        "fixed"
    )
    rivals = [one for one in _TOLD_RIVALS if (one, "") in by_method]
    if not rivals:
        return [unmet(dataset, text, "no fit of a rival with K fixed", whose=OURS), of_free, of_size]
    best = max(rivals, key=lambda one: by_method[one, ""]["ari"].mean())
    first, second = cut["ari"], by_method[best, ""]["ari"]
    numbers = f"{mean_sd(first, 3)} against {mean_sd(second, 3)} of {best}"
    name = f"ARI minus {_SHARE} times the ARI of the best rival"
    lead = difference(first, _SHARE * second, above=0, digits=3, name=name)
    return [judge(dataset, text, [lead], numbers, MC2, OURS), of_free, of_size]


def _compare(
    dataset: str,
    by_method: Mapping[Any, pd.DataFrame],
    text: str,
    measure: str,
    one: tuple[str, str],
    other: tuple[str, str],
) -> Claim:
    """Judge whether ``one`` (method, contexts) has at least the measure of the ``other``."""
    names = {key: " with ".join(filter(None, key)) for key in (one, other)}
    if absent := [name for key, name in names.items() if key not in by_method]:
        return unmet(dataset, text, f"no fit of {absent[0]}", whose=OURS)
    first, second = by_method[one][measure], by_method[other][measure]
    numbers = f"{mean_sd(first, 3)} against {mean_sd(second, 3)}"
    lead = difference(first, second, above=0, digits=3, name=f"difference of {MEASURES[measure]}")
    claim = judge(dataset, text, [lead], numbers, MC2, OURS)
    fits = [(by_method[key], name) for key, name in names.items()]
    ends = [degenerate(fit["clusters"], fit["documents"].iloc[0], name) for fit, name in fits]
    return undecided(claim, " and ".join(filter(None, ends)), UNMET)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Format the table of :func:`agreement_table` as text."""
    return pd.DataFrame(
        [
            {
                "dataset": f"{row['dataset']} ({row['documents']:,} documents, {row['classes']} classes)",
                "method": row["method"] + (f", {row['contexts']}" if row["contexts"] else ""),
                "K": spread(row, "clusters", 1),
                **{label: spread(row, measure, 3) for measure, label in MEASURES.items()},
                "CPU seconds": spread(row, "cpu_seconds", 1),
                "clusterings": number(row["clusterings"]),
                "not converged": number(row["not_converged"]) if row["not_converged"] else "",
            }
            for _, row in table.iterrows()
        ]
    )


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    from pathlib import Path

    from mc2core.base import storage
    from mc2core.corpus import Corpus

    folders = {Path(folder).name: Path(folder) for folder in files["corpora"]}
    classes = {}
    for name in options["corpora"]:
        title = storage.read_json(folders[name] / "source.json")["title"]
        labels = Corpus.load(folders[name] / "train").labels
        if not isinstance(labels, np.ndarray):
            raise ValueError(f"{title} has no classes: each document of its corpus needs one label")
        classes[title] = len(np.unique(labels))
    of = [storage.read_json(path) for path in files["scores"]], classes, options["uses"]
    table = agreement_table(*of)
    return Built(table, shown=shown(table), claims=claims(*of))


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    uses = {run: configuration.runs[run]["fit"].get("of") for run in configuration.runs_of(name)}
    return {
        "n_seeds": configuration.config["seeds"],
        "corpora": list(configuration.corpora_of(DATASETS)),
        "uses": {run: of for run, of in uses.items() if of},
    }


def _caption(options: Options) -> str:
    names = ", ".join(ORIGINS[name].title for name in options["corpora"])
    return (
        f"Agreement of clusters with the classes of real corpora ({names}), mean and sd over "
        f"{counted(options['n_seeds'], 'seed')}: our engines and the methods that the papers compare with, with "
        "numbers of clusters and processor time. Each row states whether the method is given the number of "
        "classes.\n\nNo paper has this table. K-means, LSA, NMF and affinity propagation (AP) use tf-idf of the "
        "words. Verdicts answer our own questions, and the questions of ICML 2014, figure 5."
    )


TARGET = Target(
    title="Real labelled corpora, table 1: agreement with classes, and cost",
    shows="agreement with classes",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "corpora": "corpora"},
    datasets=DATASETS,
    options=_options,
    notes=NOTES,
    by_classes=True,
)
