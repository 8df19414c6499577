"""UAI16 figure 3: held-out perplexity over the seconds of a fit, for SVI and for the kernels of the Gibbs sampler."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from mc2papers.report import palette, style
from mc2papers.report.captions import counted
from mc2papers.report.claims import (
    GAIN,
    OURS,
    PAPERS_OWN,
    Claim,
    difference,
    judge,
    leaves_start,
    mean_of,
    of_order,
    ratio_of,
    under,
    unmet,
)
from mc2papers.uai2016.methods import DIRECT, SVI

_GIBBS = "Gibbs, collapsed"
_ORDER = (SVI, _GIBBS, "Gibbs, blocked", "Gibbs, interleaved", DIRECT)
#: ratio of times for the paper's "one-fourth of the amount of running time"
_QUARTER = 4.0
#: maximum number of letters per line of a panel's title, so that titles do not overlap
_TITLE = 50
#: largest relative change of the perplexity that counts as "only improved a little"; our choice
LITTLE = 0.01


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean, minimum and maximum over seeds for each snapshot, method and dataset.

    Parameters
    ----------
    rows : one row per snapshot, with columns dataset, source, method, seed, threads, iteration, seconds, perplexity,
        averaged and samples
    """
    grouped = rows.groupby(["dataset", "source", "method", "threads", "iteration"], sort=False)
    return grouped.agg(
        seconds=("seconds", "mean"),
        perplexity=("perplexity", "mean"),
        perplexity_least=("perplexity", "min"),
        perplexity_most=("perplexity", "max"),
        averaged=("averaged", "mean"),
        samples=("samples", "max"),
        seeds=("seed", "nunique"),
    ).reset_index()


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per dataset from the table of :func:`summarise`. Lines are means, and bands are ranges.

    The title of a panel describes the data if they are not the data of the paper.
    """
    datasets = list(dict.fromkeys(points["dataset"]))
    figure = style.new_figure(3.6 * len(datasets) + 0.2, 3.5)
    panels = figure.subplots(1, len(datasets), squeeze=False)[0]
    for ax, dataset in zip(panels, datasets, strict=True):
        here = points[points["dataset"] == dataset]
        for method in _ORDER:
            line = here[here["method"] == method].sort_values("iteration")
            if line.empty:
                continue
            (colour, _), seconds, is_svi = palette.look(method), line["seconds"], method in (SVI, DIRECT)
            ax.plot(seconds, line["perplexity"], label=method, color=colour, linestyle="-" if is_svi else "--")
            reach = line["perplexity_least"], line["perplexity_most"]
            ax.fill_between(seconds, *reach, color=colour, alpha=0.2, linewidth=0)
            if not is_svi:
                ax.plot(seconds.iloc[-1], line["averaged"].iloc[-1], "D", color=colour)
            else:
                epochs = line[(line["iteration"] > 0) & (line["iteration"] % 1 == 0)]
                ax.plot(epochs["seconds"], epochs["perplexity"], "o", color=colour)
        late = here[here["iteration"] > 0]
        # poor states at the beginning may be outside the panel, but the last state of every method is inside
        last = late.loc[late.groupby("method")["iteration"].idxmax(), "perplexity_most"].max()
        low, high = here[["perplexity_least", "averaged"]].min().min(), max(late["perplexity_most"].quantile(0.9), last)
        ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        top = ax.get_ylim()[1]
        for method, line in here.groupby("method"):
            if at := _leaves(line.sort_values("iteration"), top):
                ax.plot(at, top, "^", color=palette.look(str(method))[0], clip_on=False, zorder=5)
        threads = "/".join(str(one) for one in sorted(here["threads"].unique()))
        ax.set_xscale("log")
        is_long = here["seconds"].max() > 100 * here["seconds"].min()
        ax.xaxis.set_major_locator(LogLocator(subs=(1,) if is_long else (1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set(xlabel=f"seconds of the fit (log scale, {threads} core{'s' * (threads != '1')})")
        ax.grid(color=palette.GRID, linewidth=0.6)
        source = here["source"].iloc[0]
        look = {"color": style.SOURCE, "fontsize": 8} if source else {}
        ax.set_title(textwrap.fill(source, _TITLE) or dataset, **look)
    panels[0].set_ylabel("held-out perplexity per word")
    handles, labels = panels[0].get_legend_handles_labels()
    n_seeds = points["seeds"].max()
    title = f"mean and range of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    title += "; dots: the ends of SVI's epochs; diamonds: Gibbs' samples averaged; triangles: the line continues above"
    figure.legend(handles, labels, loc="outside upper center", ncols=3, handlelength=2.8, title=title, title_fontsize=8)
    return figure


def _leaves(line: pd.DataFrame, top: float) -> float | None:
    """Return the seconds at which a line falls below ``top`` for the last time; None if it is never above."""
    seconds, values = line["seconds"].to_numpy(), line["perplexity"].to_numpy()
    above = np.flatnonzero(values > top)
    if not len(above):
        return None
    last = int(above[-1])
    if last + 1 == len(line) or seconds[last] <= 0:
        return float(seconds[last]) or None
    share = (values[last] - top) / (values[last] - values[last + 1])
    return float(seconds[last] ** (1 - share) * seconds[last + 1] ** share)  # the axis is logarithmic


def claims(rows: pd.DataFrame, dataset: str) -> list[Claim]:
    """Judge the claims on figure 3 of UAI16 by the curves of each seed, for SVI as printed and without tables.

    Gibbs is the paper's collapsed sampler. Its level is the perplexity of all samples of its fit together. Its time is
    the time at which a state first reaches the mean perplexity of the states in the second half of the run. The paper
    does not state whether its curve shows single states. As an open choice, this mean is also the level.

    The first claim is that the best state of SVI in the first epoch reaches the level of Gibbs. The second claim is
    that SVI needs a quarter of the time of Gibbs for this. The third claim is that SVI is faster by an order of
    magnitude (abstract). These three claims have preconditions (:func:`_idle`). The fourth claim is that the second
    epoch changes the perplexity by less than LITTLE. Claims on SVI without tables are our own.
    """
    here = rows[rows["dataset"] == dataset]
    forms = [form for form in (SVI, DIRECT) if form == SVI or (here["method"] == form).any()]
    judged = [claim for form in forms for claim in _claims_of(here, dataset, form)]
    of_states = _claims_of(here, dataset, SVI, of_states=True)[:3]
    return [*judged, *under("the level of Gibbs is that of single states", of_states, "uai2016_figure3")]


def _claims_of(here: pd.DataFrame, dataset: str, form: str, of_states: bool = False) -> list[Claim]:
    svi, gibbs = _by_seed(here, form), _by_seed(here, _GIBBS)
    reach = (
        f"{form} reaches the perplexity of collapsed Gibbs within one epoch",
        f"{form} reaches the perplexity of collapsed Gibbs in a quarter of the time that Gibbs needs",
        f"{form} reaches the perplexity of collapsed Gibbs about 10 times sooner than Gibbs",
    )
    later = f"the second epoch of {form} changes the perplexity by less than {LITTLE:.0%} (our threshold)"
    whose = PAPERS_OWN if form == SVI else OURS
    seeds = sorted(svi.keys() & gibbs.keys())
    if not seeds:
        why = f"no fit of {form} and of collapsed Gibbs"
        return [unmet(dataset, text, why, whose=whose) for text in (*reach, later)]
    by_seed = pd.DataFrame([_compared(svi[seed], gibbs[seed], of_states) for seed in seeds], index=seeds)
    ends = "; ".join(_level(here, method) for method in _ORDER[1:4] if (here["method"] == method).any())
    levels = f"{form} {by_seed['epoch'].mean():,.1f} within one epoch, Gibbs {by_seed['level'].mean():,.1f}; "
    levels += f"{form} {by_seed['start'].mean():,.1f} at its start; {ends}"
    little = _judge_second(dataset, later, by_seed, whose)
    if why := _idle(by_seed, form):
        return [*(unmet(dataset, text, why, levels, whose) for text in reach), little]
    there = by_seed["svi"].dropna()
    times = f"{form} never reaches the level of Gibbs"
    if len(there):
        times = f"{form} reaches the level of Gibbs after {there.mean():.3g} s"
    if 0 < len(there) < len(seeds):
        times += f" in {len(there)} of {len(seeds)} seeds"
    times += f", Gibbs first reaches the mean perplexity of its later states after {by_seed['gibbs'].mean():.3g} s"
    sooner = by_seed["gibbs"] / by_seed["svi"]
    name = f"difference of perplexity, {form} minus Gibbs,"
    lead = difference(by_seed["epoch"], by_seed["level"], below=0, digits=1, name=name)
    name = f"time of Gibbs divided by time of {form}"
    ratios = [ratio_of(name, sooner, above=1, digits=1, size=least - 1) for least in (_QUARTER, of_order(10))]
    reached = zip(reach, (lead, *ratios), (levels, times, times), strict=True)
    return [*(judge(dataset, text, [one], numbers, whose=whose) for text, one, numbers in reached), little]


def _compared(svi: pd.DataFrame, gibbs: pd.DataFrame, of_states: bool) -> dict[str, float]:
    """Return the compared values of one seed.

    These are both starts, the level and the time of Gibbs, the best perplexity of SVI in the first epoch, the time at
    which SVI reaches the level, and the relative change in the second epoch.
    """
    kept = gibbs[gibbs["iteration"] > gibbs["iteration"].iloc[-1] / 2]
    usual = kept["perplexity"].mean()
    level = usual if of_states else gibbs["averaged"].iloc[-1]
    ends = svi[svi["iteration"].isin([1, 2])].set_index("iteration")["perplexity"]
    return {
        "level": level,
        "gibbs_start": gibbs["perplexity"].iloc[0],
        "start": svi["perplexity"].iloc[0],
        "epoch": svi.loc[(svi["iteration"] > 0) & (svi["iteration"] <= 1), "perplexity"].min(),
        "gibbs": _first_at(gibbs, usual),
        "svi": _first_at(svi, level),
        "later": 1 - ends[2] / ends[1] if len(ends) == 2 else float("nan"),
    }


def _idle(by_seed: pd.DataFrame, form: str) -> str:
    """Return the reason why a comparison with Gibbs is not meaningful, or "" if it is meaningful in every seed.

    If Gibbs hardly improves on its start, its level is easy to reach and its time is noise. If the start of SVI already
    has this level, the steps of SVI are not tested.
    """
    n, why = len(by_seed), []
    if still := int((~leaves_start(by_seed["gibbs_start"], by_seed["level"])).sum()):
        lack = f"is not more than {GAIN:.0%} below its start in {still} of {n} seeds"
        why.append(f"the perplexity of Gibbs {lack}")
    if there := int((by_seed["start"] <= by_seed["level"]).sum()):
        start = f"the perplexity of {form} before its first step"
        why.append(f"in {there} of {n} seeds, {start} is already as low as that of Gibbs")
    return " and ".join(why)


def _judge_second(dataset: str, text: str, by_seed: pd.DataFrame, whose: str) -> Claim:
    if by_seed["later"].isna().any():
        return unmet(dataset, text, "only one epoch was run", whose=whose)
    gain, most, name = 100 * by_seed["later"], 100 * LITTLE, "decrease of perplexity in %"
    bounds = [mean_of(name, gain, below=most, digits=2), mean_of(name, gain, above=-most, digits=2)]
    return judge(dataset, text, bounds, f"{gain.mean():+.2f} %", whose=whose)


def _by_seed(here: pd.DataFrame, method: str) -> dict[Any, pd.DataFrame]:
    """Return the curve of each seed of a method, sorted by time."""
    lines = here[here["method"] == method].groupby("seed")
    return {seed: line.sort_values("iteration") for seed, line in lines}


def _level(here: pd.DataFrame, method: str) -> str:
    """Return a phrase on the perplexities of a method.

    An example is "Gibbs, blocked 2,990.0 at its start, 2,374.0 after 60 sweeps (2,322.0 averaged over 10 samples)".
    """
    lines = here[here["method"] == method]
    first, last = (lines[lines["iteration"] == end(lines["iteration"])] for end in (min, max))
    return (
        f"{method} {first['perplexity'].mean():,.1f} at its start, {last['perplexity'].mean():,.1f} after "
        f"{last['iteration'].iloc[0]:g} sweeps ({last['averaged'].mean():,.1f} averaged over "
        f"{counted(int(last['samples'].max()), 'sample')})"
    )


def _first_at(line: pd.DataFrame, level: float) -> float:
    """Return the seconds of the first snapshot after the start with a perplexity of at most ``level``, or NaN."""
    there = line[(line["iteration"] > 0) & (line["perplexity"] <= level)]
    return float(there["seconds"].iloc[0]) if len(there) else float("nan")
