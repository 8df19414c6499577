"""UAI 2016 table 1: seconds of SVI on one core and on several cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.report.claims import Claim, judge, not_run, of_order, ratio_of, unmet
from mc2papers.report.tables import PAPER, mean_and_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target, options_of
from mc2papers.uai2016.methods import SVI, about_svi

SPEED_NOTES = (
    "Our numbers: mean ± sd over seeds of the seconds of a fit, without reading, compilation and scoring, timed in a "
    "job that runs alone. Results have the same bits on any number of cores. The paper's data, sizes and "
    "machine differ.",
)


def speed_table(rows: pd.DataFrame, paper: pd.DataFrame) -> tuple[pd.DataFrame, list[Claim]]:
    """Return UAI16 table 1: seconds of SVI on one core and on several cores, one row per dataset and form of SVI.

    Parameters
    ----------
    rows : columns dataset, source, method, documents, iterations, seed, threads and seconds. Each seed is fitted on one
        core and on several cores.
    paper : columns dataset, sequential_seconds, parallel_seconds and cores, as printed.

    Returns
    -------
    table : our means and sds over seeds (NaN if there was only one core), and the printed numbers.
    claims : claims on the speed-up of SVI as printed, for each dataset with a printed time, and the claim that more
        cores save most time on NUS-WIDE.
    """
    table, claims, speedups = [], [], {}
    for (dataset, method), fits in rows.groupby(["dataset", "method"], sort=False):
        seconds = fits.pivot(index="seed", columns="threads", values="seconds")
        cores = int(seconds.columns.max())
        there = paper[(paper["dataset"] == dataset) & (method == SVI)]
        row: dict[str, Any] = {"dataset": dataset, "method": method, "seeds": len(seconds)}
        row |= fits.iloc[0][["source", "documents", "iterations"]]
        for name, kept in (("sequential", seconds[1]), ("parallel", seconds[cores] if cores > 1 else pd.Series())):
            row |= mean_and_sd(kept, f"{name}_seconds")
        row |= {"cores": cores, "speedup": row["sequential_seconds"] / row["parallel_seconds"]}
        for name in ("sequential_seconds", "parallel_seconds", "cores"):
            row[f"paper_{name}"] = there[name].iloc[0] if len(there) else np.nan
        row["paper_speedup"] = row["paper_sequential_seconds"] / row["paper_parallel_seconds"]
        table.append(row)
        if len(there):
            claims.append(_speed_claim(row, seconds))
            speedups[str(dataset)] = seconds[1] / seconds[cores] if cores > 1 else pd.Series(dtype=float)
    gain = _judge_gain(str(rows["dataset"].iloc[0]), speedups, int(rows["threads"].max()), int(paper["cores"].iloc[0]))
    return pd.DataFrame(table), [*claims, gain]


def _judge_gain(dataset: str, speedups: Mapping[str, pd.Series], cores: int, asked: int) -> Claim:
    """Judge whether more cores save more time on NUS-WIDE, which has fewer global parameters, than on NIPS.

    There is no verdict unless ``cores`` equals ``asked``, because on two cores the verdict differed between runs.
    """
    text = "more cores save more time on NUS-WIDE than on NIPS"
    numbers, is_timed = "", {"NIPS", "NUS-WIDE"} <= speedups.keys() and not any(one.empty for one in speedups.values())
    if is_timed:
        dataset, first, second = "NUS-WIDE", speedups["NUS-WIDE"], speedups["NIPS"]
        numbers = f"{first.mean():.2f} against {second.mean():.2f} times on {cores} cores"
    if cores != asked:
        return not_run(dataset, text, _lack(asked, cores), numbers)
    if not is_timed:
        return unmet(dataset, text, "NIPS and NUS-WIDE were not both timed on one core and on several")
    ratio = ratio_of("ratio of speed-ups, NUS-WIDE to NIPS,", first / second, above=1, digits=2)
    return judge("NUS-WIDE", text, [ratio], numbers)


def _lack(asked: int, cores: int) -> str:
    return f"needs {asked} cores; this run timed {counted(cores, 'core')}"


def _speed_claim(row: Mapping[str, Any], seconds: pd.DataFrame) -> Claim:
    asked, cores, speedup = int(row["paper_cores"]), row["cores"], row["speedup"]
    text = f"the speed-up on {asked} cores is about as large as printed"
    numbers = f"{speedup:.2f} times on {cores} cores, {speedup / cores:.0%} of the ideal" if cores > 1 else "one core"
    numbers += f"; printed {row['paper_speedup']:.1f} times on {asked}, {row['paper_speedup'] / asked:.0%} of it"
    if cores != asked:
        return not_run(row["dataset"], text, _lack(asked, cores), numbers)
    size = of_order(row["paper_speedup"]) - 1
    ratio = ratio_of("speed-up", seconds[1] / seconds[cores], above=1, digits=2, size=size)
    return judge(row["dataset"], text, [ratio], numbers)


def format_speed_table(table: pd.DataFrame) -> pd.DataFrame:
    """Format the table of :func:`speed_table` as text."""
    return pd.DataFrame(
        [
            {
                "dataset": row["dataset"],
                "method": row["method"],
                "source": row["source"],
                "documents": number(row["documents"]),
                "epochs": number(row["iterations"]),
                "1 core, s": spread(row, "sequential_seconds", 2),
                "parallel, s": spread(row, "parallel_seconds", 2),
                "cores": number(row["cores"]),
                "speed-up": number(row["speedup"], 2),
                f"{PAPER}1 core, s": number(row["paper_sequential_seconds"]),
                f"{PAPER}parallel, s": number(row["paper_parallel_seconds"]),
                f"{PAPER}cores": number(row["paper_cores"]),
                f"{PAPER}speed-up": number(row["paper_speedup"], 1),
                "seeds": number(row["seeds"]),
            }
            for _, row in table.iterrows()
        ]
    )


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    rows = pd.concat([pd.read_csv(path) for path in files["speed"]])
    table, claims = speed_table(rows, pd.read_csv(files["paper"][0]))
    return Built(table, shown=format_speed_table(table), claims=claims)


def _caption(options: Options) -> str:
    return (
        "Seconds of two epochs of SVI-MC2, as printed and without tables (ours), on one core and on several, on "
        f"{say_data(options['corpora'])} with one context (authors, tags): mean and sd over "
        f"{counted(options['n_seeds'], 'seed')} next to the paper's figures.\n\nBoth numbers of a row are timed in one "
        f"job. The paper reports speed-ups of 7.8 (NIPS) and 12.3 (NUS-WIDE) on 16 cores. {about_svi(50)} "
        f"{say_sources(options['corpora'])}"
    )


TARGET = Target(
    title="UAI 2016, table 1: seconds of SVI-MC2 on one core and on several",
    shows="seconds on one core and on several",
    build=_build,
    caption=_caption,
    inputs={"speed": "speed"},
    datasets=("nips", "nuswide"),
    options=options_of("corpora", n_seeds="seeds"),
    notes=SPEED_NOTES,
    has_paper=True,
)
