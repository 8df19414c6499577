"""UAI 2016 table 4: agreement of SVI-MC2's clusters with classes of AUA, with no, few and all contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2core.base import storage
from mc2papers.datasets.origins import MC2
from mc2papers.icml2014.table3 import KEY as MISSING_PERCENT
from mc2papers.icml2014.table3 import agreement_table, by_share, format_table
from mc2papers.report.agreement import MEASURES
from mc2papers.report.captions import counted, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, Claim, difference, judge, not_computed
from mc2papers.report.tables import mean_sd
from mc2papers.targets import Built, Files, Options, Target
from mc2papers.uai2016.methods import about_svi

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

KEY = "context_available_percent"


def table_of(scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> pd.DataFrame:
    """UAI16 table 4: the rows of :func:`agreement_table` by the share of contexts that is there, ascending.

    paper : columns context_available_percent and the measures, as printed.
    """
    table = agreement_table(scores, paper.assign(**{MISSING_PERCENT: 100 - paper[KEY]}))
    table.insert(0, KEY, 100 - table.pop(MISSING_PERCENT))
    return table.sort_values(KEY, ignore_index=True)


def judge_contexts(scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame) -> list[Claim]:
    """For each measure, whether it is higher with contexts, few or all of them, than with none."""
    claims = []
    for name, label in MEASURES.items():
        values = by_share(scores, name)
        fitted = {100 - missing: values[missing] for missing in values.columns.to_numpy(float)}
        for share in sorted({*fitted, *paper[KEY].astype(float)} - {0}):
            text = f"{label} higher with {share:.0f}% of contexts than with none"
            if not {0, share} <= set(fitted):
                claims.append(not_computed(scores[0]["title"], text, "no fits with and without them"))
                continue
            few, none = fitted[share], fitted[0]
            numbers = f"{mean_sd(few, 3)} against {mean_sd(none, 3)}"
            lead = difference(few, none, above=0, digits=3)
            claims.append(judge(scores[0]["title"], text, [lead], numbers, favours=ANY_SIMULATOR))
    return claims


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    scores, paper = [storage.read_json(path) for path in files["scores"]], pd.read_csv(files["paper"][0])
    table = table_of(scores, paper)
    return Built(table, shown=format_table(table, "contexts", KEY), claims=judge_contexts(scores, paper))


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    return {"n_seeds": configuration.config["seeds"], "corpora": configuration.corpora_of(("aua",))}


def _caption(options: Options) -> str:
    return (
        "Agreement of SVI-MC2's clusters with the classes of AUA's users (1 is perfect) when no, few or all users "
        "have their context, the other products they use: mean and sd over "
        f"{counted(options['n_seeds'], 'seed')} beside the paper's figures. Which users keep it is drawn with "
        "the seed of the fit. "
        f"{say_sources(options['corpora'], MC2)} Paper: UAI 2016, table 4."
    )


TARGET = Target(
    title="UAI 2016, table 4: agreement with classes of AUA with few or all contexts (higher is better)",
    shows="agreement with classes",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores"},
    datasets=("aua",),
    options=_options,
    notes=(
        "Ours: mean ± sd over seeds; K is the number of clusters in use.",
        about_svi(500),
        "The paper prints one run on its own data, in the last columns: compare how they change with how ours change, "
        "not their levels. Empty cells: not printed there, or not fitted here.",
    ),
    has_paper=True,
    has_claims=True,
)
