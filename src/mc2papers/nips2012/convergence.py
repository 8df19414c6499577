"""Measure the distance of clusters from the truth over time, and the speed-up over a baseline (NIPS12, section 4.2).

A curve is the trace of a fit. Each row is a sweep, and ``vi_bits`` is the variation of information between the labels
and the clusters after this sweep. Seconds include the start, but not compilation and scoring.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2papers.engines import engine_of
from mc2papers.report.claims import (
    OURS,
    PAPERS_OWN,
    UNMET,
    Claim,
    difference,
    judge,
    leaves_start,
    of_order,
    ratio_of,
    unless,
    unmet,
)
from mc2papers.report.tables import mean_sd

BASELINE = "baseline"
#: the baseline with the word prior of our variants, because the paper does not print the prior
SAME_PRIOR = "baseline, a = 0.01"
#: methods with hashed proposals: the method of the paper; the same method with plain estimates, because with the bound
#: of the paper all documents end in one cluster; and our variant
FASTEX, PLAIN, BALANCED = HASHED = ("FastEx", "FastEx, plain estimates", "FastEx, balanced (ours)")
#: methods among these with several lengths of signatures
BY_BITS = (FASTEX, PLAIN)
NEIGHBOURS = "FastEx, neighbours (ours)"
EXACT = "exact (collapsed Gibbs)"
#: methods whose claims are judged
JUDGED = (*HASHED, NEIGHBOURS)
#: settings of the paper's method; the bound is in section 3.4, and its failure probability in remark 5
AS_PRINTED = {"projection": "paper", "inverse_temperature": 1.0, "failure_probability": 0.0001}
#: prior of words of the paper's two methods; with a smaller prior, the baseline does not leave its start
WORD_PRIOR = 1.0
#: priors of our variants in the tables and benchmarks of NIPS 2012, as in the recorded runs
OUR_PRIORS: dict[str, Any] = {"topic_word_prior": 0.01, "weight_prior": 1.0}
#: length of signatures in the paper "unless stated otherwise" (section 4.1)
BITS = 32
#: the VI of the baseline counts as reached if the VI is at most this factor times the VI of the baseline
WITHIN = 1.01
_ALLOWED = f"final VI minus {WITHIN} times the final VI of the baseline"
#: reason why chains are not judged: no document moves, and the VI is the VI of one cluster
ONE_CLUSTER = "all documents are in one cluster at the end of every fit"


def read_curves(
    traces: Sequence[str | os.PathLike[str]],
    corpora: Sequence[str | os.PathLike[str]],
    runs: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Read all curves into one long table.

    Parameters
    ----------
    traces : files ``.../<run>/<seed>/trace.tsv``.
    corpora : folders ``.../<dataset>`` with a source.json (:func:`mc2papers.datasets.catalogue.prepare`).
    runs : result of :func:`mc2papers.configuration.read_experiments`.

    Returns
    -------
    Columns dataset (title), source, documents, words, method, clusters, bits (0 for a method without signatures), seed,
    iteration, seconds, vi_bits, in_use (number of clusters with documents after the sweep), proposed and accepted
    (moves to another cluster per document).
    """
    from mc2core.inference.registry import settings_of  # loads the engines
    from mc2core.models import MOST_CLUSTERS

    sources = {Path(folder).name: storage.read_json(Path(folder) / "source.json") for folder in corpora}
    parts = []
    for path in map(Path, traces):
        run = runs[path.parts[-3]]
        about, fit = sources[run["dataset"]], run["fit"]
        settings = settings_of(fit["model"], engine_of(fit["engine"])) | fit["settings"]
        named = {
            "dataset": about["title"],
            "source": about["source"],
            "documents": about["train_documents"],
            "words": about["words"],
            "method": run["method"],
            "clusters": settings["n_clusters"] or MOST_CLUSTERS,
            "bits": settings.get("bits", 0),
            "seed": int(path.parts[-2]),
        }
        trace = pd.read_csv(path, sep="\t")
        moves = {name: trace.get(name, np.nan) for name in ("proposed", "accepted")}
        curve = trace[["iteration", "seconds", "vi_bits"]].assign(in_use=trace["clusters"], **moves)
        parts.append(curve.assign(**named)[[*named, *curve]])
    return pd.concat(parts, ignore_index=True)


def seconds_to(curve: pd.DataFrame, vi_bits: float) -> float:
    """Return the seconds after which the VI of a curve is first at most ``vi_bits``; NaN if it never is."""
    there = curve.loc[curve["vi_bits"] <= vi_bits, "seconds"]
    return float(there.iloc[0]) if len(there) else np.nan


def compare(curves: pd.DataFrame) -> pd.DataFrame:
    """Compare each fit with the baseline of the same dataset and seed, separately for each number of bits.

    Every seed counts, even if its baseline is poor. A method that ends with one cluster never reaches the baseline.

    Returns
    -------
    One row per dataset, method, bits and seed: the columns of the curves, sweeps, seconds, first_vi_bits, vi_bits,
    in_use (last values), seconds_to_baseline and speedup, NaN if the fit does not reach the baseline.
    """
    rows = []
    for (dataset, seed), here in curves.groupby(["dataset", "seed"], sort=False):
        rival = here[here["method"] == BASELINE]
        target = rival["vi_bits"].iloc[-1] * WITHIN if len(rival) else np.nan
        needed = seconds_to(rival, target)
        for (method, bits), curve in here.groupby(["method", "bits"], sort=False):
            last = curve.iloc[-1]
            arrived = seconds_to(curve, target) if last["in_use"] > 1 or method == BASELINE else np.nan
            rows.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "bits": bits,
                    "seed": seed,
                    **{name: last[name] for name in ("source", "documents", "words", "clusters")},
                    "sweeps": last["iteration"],
                    "seconds": last["seconds"],
                    "first_vi_bits": curve["vi_bits"].iloc[0],
                    "vi_bits": last["vi_bits"],
                    "in_use": last["in_use"],
                    "seconds_to_baseline": arrived,
                    "speedup": needed / arrived,
                }
            )
    return pd.DataFrame(rows)


def judge_method(fits: pd.DataFrame, dataset: str, method: str, times: float) -> list[Claim]:
    """Judge two claims on one method, over seeds.

    The first claim is that the final VI of the method is at most WITHIN times the final VI of the baseline. The second
    claim is that the method reaches the baseline's VI faster, by the order of magnitude of the printed ``times``. A fit
    that does not reach this VI counts as not faster. ``fits`` is the table of :func:`compare`.

    There is no verdict if fits of the method or the baseline are missing, if the baseline ends with one cluster in
    every seed, or if on average it does not improve after its first sweep. If all fits of the method end with one
    cluster, they can be judged worse than the baseline, but not equally good.
    """
    here = fits[fits["dataset"] == dataset].set_index("seed")
    ours, rival = here[here["method"] == method], here[here["method"] == BASELINE]
    name, whose = ("", PAPERS_OWN) if method == FASTEX else (f"{method}: ", OURS)
    quality, speed = (
        f"{name}the final VI is at most {WITHIN - 1:.0%} above the final VI of the baseline",
        f"{name}the final VI of the baseline is reached sooner, by about the printed factor",
    )
    if ours.empty or rival.empty:
        why = "no fit of the method or of the baseline"
        return [unmet(dataset, text, why, whose=whose) for text in (quality, speed)]
    numbers = f"VI {mean_sd(ours['vi_bits'], 2)}, baseline {mean_sd(rival['vi_bits'], 2)} bits"
    one_cluster = int((rival["in_use"] == 1).sum())
    if one_cluster == len(rival) or not leaves_start(rival["first_vi_bits"].mean(), rival["vi_bits"].mean()):
        why = "the baseline ends with one cluster or no better than after its first sweep"
        return [unmet(dataset, text, why, numbers, whose) for text in (quality, speed)]
    if one_cluster:
        numbers += f"; in {one_cluster} of {len(rival)} seeds the baseline ends with one cluster"
    leads = difference(ours["vi_bits"], rival["vi_bits"] * WITHIN, below=0, digits=2, name=_ALLOWED)
    as_good = judge(dataset, quality, [leads], numbers, whose=whose)
    as_good = unless(as_good, ONE_CLUSTER if (ours["in_use"] == 1).all() else "", UNMET)
    reached = ours["speedup"]
    n_missing = int(reached.isna().sum())
    lack = f"{n_missing} of {len(ours)} fits do not reach the baseline's VI"
    said = f"{lack if n_missing else f'{reached.mean():.1f} times'}; printed {times:g} times"
    name = "time of the baseline divided by time of the method"
    sooner = ratio_of(name, reached, above=1, digits=1, size=of_order(times) - 1)
    return [as_good, judge(dataset, speed, [sooner], said, whose=whose)]


def moving(curves: pd.DataFrame) -> tuple[str, str]:
    """Return the method that shows the effect of bits, and the reason if it is not FASTEX.

    With the printed algorithm, all documents may end in one cluster, and then no document moves. In this case, PLAIN is
    used, which does not correct the estimates. The paper says that the correction can be reduced in practice.
    """
    ends = curves[curves["method"] == FASTEX].groupby(["bits", "seed"])["in_use"].last()
    if len(ends) and (ends == 1).all() and (curves["method"] == PLAIN).any():
        return PLAIN, "with plain estimates, because with the published method all documents end in one cluster: "
    return FASTEX, ""


def judge_bits(fits: pd.DataFrame, dataset: str, method: str = FASTEX, why: str = "", enough: int = 64) -> Claim:
    """Judge the claim that more than ``enough`` bits lower the final VI by at most 1 %.

    If all chains end with one cluster, or if they do not improve after their first sweep, the claim cannot be tested.

    method, why : result of :func:`moving`
    """
    here = fits[(fits["dataset"] == dataset) & (fits["method"] == method)]
    last = here.pivot(index="seed", columns="bits", values="vi_bits")
    text = f"signatures longer than {enough} bits lower the final VI by at most {WITHIN - 1:.0%}"
    longer = [bits for bits in last.columns.to_numpy(int) if bits > enough]
    if enough not in last or not longer:
        return unmet(dataset, text, f"not fitted both with {enough} bits and with more")
    numbers = f"{why}VI at " + ", ".join(f"{bits} bits {last[bits].mean():.2f}" for bits in last)
    if (here["in_use"] == 1).all():
        return unmet(dataset, text, ONE_CLUSTER, numbers)
    if not leaves_start(here["first_vi_bits"].mean(), here["vi_bits"].mean()):
        return unmet(dataset, text, "the fits end no better than after their first sweep", numbers)
    name = f"final VI with {enough} bits minus {WITHIN} times the final VI with"
    settings = {"below": 0, "digits": 2}
    gains = [difference(last[enough], last[bits] * WITHIN, name=f"{name} {bits} bits,", **settings) for bits in longer]
    return judge(dataset, text, gains, numbers)


def judge_longer(curves: pd.DataFrame, dataset: str, method: str = FASTEX, why: str = "") -> list[Claim]:
    """Judge the claims that chains with the most bits converge faster and accept more than chains with the fewest bits.

    Convergence is compared by the mean VI over the time that all chains of a seed have in common. The acceptance ratio
    is the number of accepted moves to another cluster divided by the number of proposed moves. It is computed in the
    first half of a chain, in which the chain converges. Preconditions and arguments are as in :func:`judge_bits`.
    """
    here = curves[(curves["dataset"] == dataset) & (curves["method"] == method)]
    few, many = (int(end(here["bits"])) for end in (min, max)) if len(here) else (0, 0)
    texts = (
        f"chains converge sooner with {many} bits than with {few} bits (lower mean VI over time)",
        f"chains have a higher acceptance ratio with {many} bits than with {few} bits",
    )
    lacking = "only one number of bits was fitted" if few == many else ""
    if not lacking and (here.groupby(["bits", "seed"])["in_use"].last() == 1).all():
        lacking = ONE_CLUSTER
    if lacking:
        return [unmet(dataset, text, lacking) for text in texts]
    rows = []
    for seed, chains in here[here["bits"].isin([few, many])].groupby("seed"):
        until = chains.groupby("bits")["seconds"].max().min()
        for bits, one in chains.groupby("bits"):
            level = np.interp(np.linspace(0.0, until, 101)[1:], one["seconds"], one["vi_bits"]).mean()
            moves = one[["proposed", "accepted"]].iloc[: max(len(one) // 2, 1)].sum()
            rows.append({"seed": seed, "bits": bits, "level": level, **moves})
    wide = pd.DataFrame(rows).pivot(index="seed", columns="bits")
    level, ratio = wide["level"], wide["accepted"] / wide["proposed"]
    which = f"{many} bits minus {few} bits,"
    sooner = difference(level[many], level[few], below=0, digits=2, name=f"mean VI over time, {which}")
    higher = difference(ratio[many], ratio[few], above=0, digits=2, name=f"acceptance ratio, {which}")
    numbers = [
        f"{why}{what} {one[many].mean():.2f} at {many} bits, {one[few].mean():.2f} at {few}"
        for what, one in (("mean VI over time", level), ("accepted share of proposed moves", ratio))
    ]
    return [judge(dataset, *one) for one in zip(texts, ([sooner], [higher]), numbers, strict=True)]


def usual(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with BITS bits for methods with several lengths, and all rows of other methods."""
    return rows[~rows["method"].isin(BY_BITS) | (rows["bits"] == BITS)]
