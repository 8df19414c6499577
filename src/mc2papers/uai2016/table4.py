"""UAI 2016 table 4: agreement of SVI-MC2's clusters with the classes of AUA, with no, few and all contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2papers.datasets.origins import MC2, ORIGINS
from mc2papers.icml2014.table3 import KEY as MISSING_PERCENT
from mc2papers.icml2014.table3 import agreement_table, by_share, format_table
from mc2papers.report.agreement import MEASURES
from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, Claim, difference, judge, too_few, unmet
from mc2papers.report.extent import extent_of_one_epoch
from mc2papers.report.tables import by_dataset, mean_sd
from mc2papers.targets import Built, Files, Options, Target, options_of
from mc2papers.uai2016.methods import about_svi

KEY = "context_available_percent"
#: the printed purity is below 0.5, which is possible only if the roles of classes and clusters are exchanged
_SHOWN = MEASURES | {"exchanged_purity": "purity, roles exchanged"}


def table_of(scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> pd.DataFrame:
    """Return UAI16 table 4: the rows of :func:`agreement_table`, sorted by the percentage of available contexts.

    paper : columns context_available_percent and the measures, as printed.
    """
    table = agreement_table(scores, paper.assign(**{MISSING_PERCENT: 100 - paper[KEY]}), _SHOWN)
    table.insert(0, KEY, 100 - table.pop(MISSING_PERCENT))
    return table.sort_values(KEY, ignore_index=True)


def epoch_scores(rows: pd.DataFrame, title: str) -> list[dict[str, Any]]:
    """Return the mean of each measure over the mini-batches of an epoch, weighted by documents, as scores of fits.

    rows : one row per mini-batch and fit of :func:`mc2papers.uai2016.batches.agreement_by_batch`, with columns
        context_available_percent, source, seed, documents (visited so far), clusters and measures.
    """
    scores = []
    for key, here in rows.groupby([KEY, "seed"]):
        percent, seed = np.asarray(key).tolist()
        sizes = np.diff(here["documents"], prepend=0)
        means = {name: float(np.average(here[name], weights=sizes)) for name in ("clusters", *_SHOWN)}
        about = {"run": "", "title": title, "method": "SVI-MC2", "seed": seed, "source": here["source"].iloc[0]}
        about |= {"documents": int(here["documents"].max())}
        scores.append(about | {"contexts": ["product"] if percent else [], "missing": 1 - percent / 100} | means)
    return scores


def judge_contexts(scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> list[Claim]:
    """Judge whether every measure is higher with few or all contexts than with no contexts."""
    dataset, fitted = scores[0]["title"], {}
    for name in MEASURES:
        values = by_share(scores, name)
        fitted[name] = {100 - missing: values[missing] for missing in values.columns.to_numpy(float)}
    shares, claims = set(fitted["purity"]), []
    for share in sorted({*shares, *paper[KEY].astype(float)} - {0}):
        text = f"all four measures are higher with {share:.0f}% of the contexts than with none"
        if not {0, share} <= shares:
            claims.append(unmet(dataset, text, "not fitted both with and without contexts"))
            continue
        numbers = ", ".join(
            f"{label} {mean_sd(fitted[name][share], 3)} against {mean_sd(fitted[name][0], 3)}"
            for name, label in MEASURES.items()
        )
        leads = [
            difference(fitted[name][share], fitted[name][0], above=0, digits=4, name=f"difference in {label}")
            for name, label in MEASURES.items()
        ]
        claim = judge(dataset, text, leads, numbers, favours=ANY_SIMULATOR)
        n_few = np.floor(scores[0].get("documents", np.inf) * share / 100)
        claims.append(too_few(claim, n_few, "users with a context"))
    return claims


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    rows, paper = pd.concat([pd.read_csv(path) for path in files["batches"]]), pd.read_csv(files["paper"][0])
    tables, shown, claims = {}, {}, []
    for title, part in rows.groupby("dataset", sort=False):
        scores = epoch_scores(part, str(title))
        tables[str(title)] = table_of(scores, paper if title == ORIGINS["aua"].title else paper[:0])
        shown[str(title)] = format_table(tables[str(title)], "contexts", KEY, _SHOWN)
        claims += judge_contexts(scores, paper)
    return Built(by_dataset(tables), shown=by_dataset(shown), claims=claims)


def _caption(options: Options) -> str:
    return (
        f"Agreement of the clusters of SVI-MC2 with the classes of users, {say_data(options['corpora'])}; 1 is "
        "perfect. The context of a user is the other products that the user uses. Rows differ in the share of users "
        f"with a context. Values are mean and sd over {counted(options['n_seeds'], 'seed')}, and the published ones."
        f"\n\n{say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="UAI 2016, table 4: agreement with classes of AUA with few or all contexts (higher is better)",
    shows="agreement with classes",
    build=_build,
    caption=_caption,
    inputs={"batches": "batches"},
    datasets=("aua", "twitch"),
    options=options_of("corpora", n_seeds="seeds"),
    extent=extent_of_one_epoch,
    notes=(
        "Means over mini-batches; K is the number of clusters in a mini-batch. "
        "purity, roles exchanged: share of users in the most common cluster of their class, as the printed purity is "
        "impossible for two classes.",
        about_svi(500),
    ),
    has_paper=True,
    by_classes=True,
)
