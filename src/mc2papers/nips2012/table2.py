"""NIPS 2012 table 2: distance from the truth and speed-up over the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mc2papers.nips2012.convergence import (
    BASELINE,
    FASTEX,
    HASHED,
    JUDGED,
    SAME_PRIOR,
    compare,
    judge_method,
    read_curves,
)
from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.report.claims import Claim, under
from mc2papers.report.tables import PAPER, mean_and_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target, options_of

DATASETS = ("w100", "w1000", "nips", "clinc")
#: corpora of which the paper has no row, and the corpus of the paper whose claims are judged on them
STANDS_FOR = {"CLINC150": "W100"}

NOTES = (
    "to baseline's VI: seconds until VI is at most 1% above the baseline's last value; empty if it is not reached or "
    "all documents end in one cluster. *: above log2(K), the largest VI of a single cluster. Methods: as in table 1. "
    "baseline: draws all parameters, with word prior 1, because with 0.01 it stays at its start "
    "(docs/notes/fastex_scale.md).",
)


def speedup_table(curves: pd.DataFrame, paper: pd.DataFrame) -> tuple[pd.DataFrame, list[Claim]]:
    """Return NIPS12 table 2 with our means and sds over seeds next to the paper's numbers, and its claims.

    The claims on the paper's method are judged for both priors of the baseline.

    ``paper`` has columns dataset, clusters, articles, vocabulary, fastex_vi_bits, baseline_vi_bits, speedup.
    """
    fits = compare(curves)
    rows = []
    for (dataset, method, bits), here in fits.groupby(["dataset", "method", "bits"], sort=False):
        row: dict[str, Any] = {"dataset": dataset, "method": method, "bits": bits, "seeds": len(here)}
        row |= {name: here[name].iloc[0] for name in ("source", "documents", "words", "clusters", "sweeps")}
        for name in ("vi_bits", "seconds", "seconds_to_baseline", "speedup"):
            row |= mean_and_sd(here[name], name)
        there = _printed(paper, str(dataset))
        if method == FASTEX:
            row["paper_vi_bits"], row["paper_speedup"] = there.get("fastex_vi_bits"), there.get("speedup")
        elif method == BASELINE:
            row["paper_vi_bits"] = there.get("baseline_vi_bits")
        rows.append(row)
    printed = {dataset: _printed(paper, STANDS_FOR.get(dataset, dataset)) for dataset in fits["dataset"].unique()}
    claims = [
        one
        for dataset, method in fits[["dataset", "method"]].drop_duplicates().itertuples(index=False)
        if method in JUDGED and printed[dataset]
        for one in judge_method(fits, dataset, method, printed[dataset]["speedup"])
    ]
    other = compare(curves[curves["method"] != BASELINE].replace({"method": {SAME_PRIOR: BASELINE}}))
    for dataset in other.loc[other["method"] == BASELINE, "dataset"].unique():
        if printed[dataset]:
            judged = judge_method(other, dataset, FASTEX, printed[dataset]["speedup"])
            claims += under(SAME_PRIOR, judged, "nips2012_table2")
    return pd.DataFrame(rows), claims


def _printed(paper: pd.DataFrame, dataset: str) -> dict[str, Any]:
    """Return the paper's row for a dataset; {} if there is none."""
    rows = paper[paper["dataset"] == dataset]
    return {str(name): rows[name].iloc[0] for name in rows} if len(rows) else {}


def format_speedup_table(table: pd.DataFrame) -> pd.DataFrame:
    """Format the table of :func:`speedup_table` as text."""
    return pd.DataFrame(
        [
            {
                "dataset": row["dataset"],
                "K": number(row["clusters"]),
                "method": f"{row['method']}, {row['bits']} bits" if row["method"] in HASHED else row["method"],
                f"{PAPER}VI": number(row["paper_vi_bits"], 2)
                + (" *" if row["paper_vi_bits"] > np.log2(row["clusters"]) else ""),
                "VI": spread(row, "vi_bits", 2),
                f"{PAPER}speed-up": number(row["paper_speedup"], 2),
                "speed-up": spread(row, "speedup", 1) if row["method"] != BASELINE else "",
                "seconds to baseline's VI": spread(row, "seconds_to_baseline", 2),
                "seconds": spread(row, "seconds", 2),
                "sweeps": number(row["sweeps"]),
                "seeds": number(row["seeds"]),
                "source": row["source"],
                "documents": number(row["documents"]),
                "words": number(row["words"]),
            }
            for _, row in table.iterrows()
        ]
    )


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    curves = read_curves(files["traces"], files["corpora"], options["runs"])
    table, claims = speedup_table(curves, pd.read_csv(files["paper"][0]))
    return Built(table, shown=format_speedup_table(table), claims=claims)


def _caption(options: Options) -> str:
    corpora = options["corpora"]
    seeds, truth = counted(options["n_seeds"], "seed"), []
    if "w1000" in corpora and len(corpora) > 1:
        seeds += f" ({options['w1000_seeds']} of W1000)"
    if articles := {name: one for name, one in corpora.items() if name in ("w100", "w1000")}:
        truth.append(f"Articles: {say_sources(articles)}")
    if "nips" in corpora:
        is_real = corpora["nips"]["source"] == "real"
        kind = "section of the proceedings" if is_real else "cluster a paper was drawn from"
        truth.append(f"NIPS: the truth is the {kind}; the paper has no such row.")
    if "clinc" in corpora:
        truth.append("CLINC150: the truth is the intent of the question; the paper has no such row.")
    return (
        "Variation of information (bits; 0 is perfect) of each method after its last sweep, and speed-up over the "
        f"baseline in reaching the baseline's last VI, on {say_data(corpora)}; mean and sd over {seeds}.\n\n"
        f"{' '.join(truth)} The paper reports speed-ups of 9.25 and 37.37 on its two corpora."
    )


TARGET = Target(
    title="NIPS 2012, table 2: distance from the truth, and how much sooner than the baseline",
    shows="VI and speed-up",
    build=_build,
    caption=_caption,
    inputs={"traces": "traces", "corpora": "corpora"},
    datasets=DATASETS,
    options=options_of("runs", "corpora", n_seeds="nips2012.seeds", w1000_seeds="seeds"),
    notes=NOTES,
    has_paper=True,
    by_classes=True,
)
