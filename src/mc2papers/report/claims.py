"""Claims of the papers, and the one place where numbers become a verdict on them.

A claim is a few statistics that it wants on one side of a bound each. A statistic is taken once for each seed (two
methods compared are paired: same seed, same split), and its interval over the seeds decides: wholly on the claim's
side, wholly on the other, or neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2core.base.checks import nearest
from mc2papers.datasets.origins import Data

HOLDS, FAILS, OPEN, ABSENT, CIRCULAR = (
    "holds", "does not hold", "cannot be told", "not computed", "says nothing here",
)  # fmt: skip
#: what can be said of a claim, and of several
VERDICTS = {HOLDS: "hold", FAILS: "do not hold", OPEN: OPEN, ABSENT: ABSENT, CIRCULAR: "say nothing here"}
#: what a claim favours whose number every simulator is told: how many clusters there are, how much contexts say of them
ANY_SIMULATOR = "any simulator"
#: half an order of magnitude, by which ratios of times are judged
ORDER = 10**0.5
#: share by which a chain is to end below its start before another is measured by where it ends
GAIN = 0.01
#: of every interval
LEVEL = 0.95
COLUMNS = ("dataset", "data", "claim", "verdict", "numbers")
#: for captions and notes, of every target with claims
RULE = (
    f"A claim holds, or does not, where the {LEVEL:.0%} interval of each number that it is about lies wholly on one "
    "side: Student's t over seeds (of 3 seeds: 4.3 standard errors to each side), of differences where methods are "
    "compared, paired by seed; of the logs of ratios, whose mean is then the geometric one; of shares of fits, Clopper "
    "and Pearson's. Else it cannot be told. Seeds share one corpus and one split, and times one job, so intervals are "
    "not of other data or runs; of claims on the bound one in twenty seems decided. It says nothing here where the "
    "data were drawn from the model that it favours, or by a simulator that is told what it is about."
)


@dataclass(frozen=True)
class Statistic:
    """A number that a claim wants on one side of a bound, by how far it is there.

    least, most : ends of the interval of its lead, its distance from the bound, positive on the claim's side; NaN where
        one value leaves no spread to tell.
    said : the number and its interval in words.
    """

    least: float
    most: float
    said: str

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS or OPEN."""
        return HOLDS if self.least > 0 else FAILS if self.most < 0 else OPEN

    @property
    def order(self) -> tuple[int, float]:
        """Sorts first what speaks against the claim, then what cannot be told, and of these the least lead."""
        return (FAILS, OPEN, HOLDS).index(self.verdict), -np.inf if np.isnan(self.least) else self.least


def mean_of(
    name: str,
    values: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    digits: int,
    over: str = "seeds",
    is_difference: bool = False,
) -> Statistic:
    """The mean of a statistic over repeats, with Student's t interval, wanted ``above`` or ``below`` a bound.

    Parameters
    ----------
    values : (n,) float, one for each repeat
    over : what the repeats are
    is_difference : whether it is shown with its sign
    """
    values = np.asarray(values, np.float64)
    sign = "+" if is_difference else ""
    return _bounded(name, values, np.asarray, above=above, below=below, digits=digits, over=over, sign=sign)


def ratio_of(
    name: str,
    ratios: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    digits: int,
    over: str = "seeds",
) -> Statistic:
    """The geometric mean of ratios, such as of times, wanted ``above`` or ``below`` a bound.

    Its interval is Student's t of their logs: that of the ratios themselves would reach below 0 where they spread.

    Parameters
    ----------
    ratios : (n,) positive float, one for each repeat; NaN for one that never arrives. It counts as 1, not sooner, or as
        the least of the others where one of them is later still.
    over : what the repeats are
    """
    ratios = np.asarray(ratios, np.float64)
    ratios = np.where(np.isnan(ratios), np.fmin.reduce(ratios, initial=1.0), ratios)
    return _bounded(name, np.log(ratios), np.exp, above=above, below=below, digits=digits, over=over)


def _bounded(
    name: str,
    values: np.ndarray,
    shown_as: Callable[[Any], np.ndarray],
    *,
    above: float | None,
    below: float | None,
    digits: int,
    over: str,
    sign: str = "",
) -> Statistic:
    """The mean of ``values`` with Student's t interval; what is shown and bounded is ``shown_as`` of them."""
    mean, reach, n = float(values.mean()), np.nan, len(values)
    if n > 1:
        from scipy import stats  # half a second to load, and every job imports this module

        reach = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    ends = [float(one) for one in shown_as([mean, mean - reach, mean + reach])]
    said_mean, low, high = (f"{round(one, digits) + 0.0:{sign},.{digits}f}" for one in ends)  # + 0.0: no "-0.0"
    interval = f"{LEVEL:.0%} {low} to {high}, {n} {over}" if n > 1 else f"one of the {over} only, no interval"
    said = f"{name} {said_mean} ({interval})"
    if below is not None:
        return Statistic(below - ends[2], below - ends[1], said)
    if above is None:
        raise ValueError(f"{name}: a bound is needed, above or below")
    return Statistic(ends[1] - above, ends[2] - above, said)


def difference(
    first: pd.Series,
    second: pd.Series,
    *,
    above: float | None = None,
    below: float | None = None,
    digits: int,
    over: str = "seeds",
    name: str = "difference",
) -> Statistic:
    """``first`` less ``second``, paired by their index (the seed), of which both have; ValueError where none is."""
    paired = (first - second).dropna()
    if paired.empty:
        raise ValueError(f"{name}: no two values are of the same of the {over}")
    return mean_of(name, paired, above=above, below=below, digits=digits, over=over, is_difference=True)


def of_order(times: float) -> float:
    """The least ratio of times that is of the order of a printed one: half an order of magnitude below, but a gain.

    Machines, sizes and implementations differ from the papers', so that the digits of such a ratio say nothing.
    """
    return max(1.0, times / ORDER)


def leaves_start(start: Any, end: Any) -> Any:
    """Whether a chain ends below its start by more than GAIN, of numbers that are better the lower; arrays in parallel.

    One that does not is no measure of another's quality or time: what it has gained, and when, is its own noise.
    """
    return end * (1 + GAIN) < start


def share_of(name: str, happened: Sequence[bool], *, above: float = 0.5, over: str = "fits") -> Statistic:
    """Share of repeats in which something happened, with Clopper and Pearson's interval; wanted ``above`` a share."""
    from scipy.stats import beta

    n, k = len(happened), int(sum(happened))
    low = float(beta.ppf((1 - LEVEL) / 2, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf((1 + LEVEL) / 2, k + 1, n - k)) if k < n else 1.0
    return Statistic(low - above, high - above, f"{name} {k} of {n} {over} ({LEVEL:.0%} {low:.0%} to {high:.0%})")


@dataclass(frozen=True)
class Claim:
    """What is said of a dataset, and what our numbers say of that. Made by :func:`judge` and its like.

    dataset : its title
    text : the claim
    verdict : one of VERDICTS
    numbers : those that decide
    favours : the model that it is in favour of, "" for none: data drawn from that model say nothing of it. Data drawn
        from whatever model say nothing where it is ANY_SIMULATOR
    data : what the dataset is; filled in by :func:`on_data`
    """

    dataset: str
    text: str
    verdict: str
    numbers: str
    favours: str = ""
    data: str = ""


def judge(dataset: str, text: str, statistics: Sequence[Statistic], numbers: str = "", favours: str = "") -> Claim:
    """The verdict on a claim that wants each of its statistics on its side.

    It holds where all do so, and does not where one does not. The numbers end with the statistic that decides: the
    surest against, or the one that can be told least, or the nearest.
    """
    weakest = min(statistics, key=lambda one: one.order)
    return Claim(dataset, text, weakest.verdict, f"{numbers}{': ' if numbers else ''}{weakest.said}", favours)


def not_computed(dataset: str, text: str, why: str) -> Claim:
    """A claim on something that was not computed."""
    return Claim(dataset, text, ABSENT, why)


def on_data(claims: Sequence[Claim], data: Mapping[str, Data]) -> list[Claim]:
    """The claims with what their data are; those that favour the model which drew the data say nothing.

    data : by title of the dataset. ValueError for a claim on another one.
    """
    known = []
    for one in claims:
        if one.dataset not in data:
            hint = nearest(one.dataset, data)
            raise ValueError(f"the claim {one.text!r} is on {one.dataset!r}, which its target does not name{hint}")
        of = data[one.dataset]
        if of.owner and one.favours in (of.owner, ANY_SIMULATOR) and one.verdict != ABSENT:
            why = f"the data were drawn from {of.owner}, which the claim favours"
            if one.favours == ANY_SIMULATOR:
                why = "the simulator is told what the claim is about"
            one = replace(one, verdict=CIRCULAR, numbers=f"{why}; {one.numbers}")
        known.append(replace(one, data=of.label))
    return known


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """The COLUMNS of claims whose data are known."""
    rows = [(one.dataset, one.data, one.text, one.verdict, one.numbers) for one in claims]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_claims(path: str | os.PathLike[str], target: str, claims: Sequence[Claim]) -> None:
    """Write the claims of a target as CSV; its name comes first."""
    table = claims_table(claims)
    table.insert(0, "target", target)
    with storage.replacing(path) as stream:
        table.to_csv(stream, index=False)
