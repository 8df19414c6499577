"""Claims of the papers, and the rules by which numbers become verdicts.

A claim has one or more statistics, each with a bound. A statistic is computed once per seed. If it compares two
methods, they are paired by seed and split. The verdict depends on the interval of the statistic over seeds, which lies
completely on the claim's side of the bound, lies completely on the other side, or contains the bound.
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

REPRODUCED, SUPPORTED = "reproduced", "supported"
NOT_REPRODUCED, CONTRADICTED = "not reproduced", "contradicted"
SMALLER, INCONCLUSIVE, NOT_TESTABLE = "smaller than claimed", "inconclusive", "not testable on these data"
UNMET, NOT_RUN = "precondition not met", "not run"
#: verdicts of a main claim that holds only under a choice that the paper leaves open, by those under that choice
UNDER_CHOICE = {one: f"{one} under an open choice" for one in (REPRODUCED, SUPPORTED)}
#: verdicts, and their meaning
VERDICTS = {
    REPRODUCED: "the interval supports the claim, on the paper's data or on data drawn as the paper draws them",
    SUPPORTED: "the interval supports the claim, on data of another kind",
    UNDER_CHOICE[REPRODUCED]: "reproduced only with some of the tried values of a setting that the paper leaves open",
    UNDER_CHOICE[SUPPORTED]: "supported only with some of the tried values of a setting that the paper leaves open",
    NOT_REPRODUCED: "the interval contradicts the claim, on the paper's data or on data drawn as the paper draws them",
    CONTRADICTED: "the interval contradicts the claim, on data of another kind, which is weaker evidence",
    SMALLER: "the interval has the sign of the claim, but lies below the smallest relevant size or the claimed size",
    INCONCLUSIVE: "the interval includes the bound, or times were measured on a busy machine",
    NOT_TESTABLE: "the simulator determines the answer, the rival method learns nothing, or there are too few data",
    UNMET: "an assumption of the claim does not hold in this run",
    NOT_RUN: "needs Spark, 8 nodes, 16 cores or figures that are not printed",
}
#: verdicts for and against a claim, and as sentences begin with them; the others are none
HOLDS, FAILS = (REPRODUCED, SUPPORTED, *UNDER_CHOICE.values(), SMALLER), (NOT_REPRODUCED, CONTRADICTED, INCONCLUSIVE)
SAID = {
    REPRODUCED: "Reproduced",
    SUPPORTED: "Supported on other data",
    UNDER_CHOICE[REPRODUCED]: "Reproduced under an open choice",
    UNDER_CHOICE[SUPPORTED]: "Supported on other data under an open choice",
    SMALLER: "Smaller than claimed",
    NOT_REPRODUCED: "Not reproduced",
    CONTRADICTED: "Contradicted on other data",
    INCONCLUSIVE: "Inconclusive",
}
#: their colours, on white
_COLOURS = ("#1a7f45", "#16758a", "#3c7a1a", "#2f6b9a", "#5b6b00", "#c0392b", "#b3540b", "#8a5d00")
TONES = dict(zip(SAID, _COLOURS, strict=True))
#: the same outcome on data of another kind
_ELSEWHERE = {REPRODUCED: SUPPORTED, NOT_REPRODUCED: CONTRADICTED}
#: verdicts by an interval, the worst for the claim first
_JUDGED = (NOT_REPRODUCED, INCONCLUSIVE, SMALLER, REPRODUCED)
#: whose claim it is: a paper's, the same under an open choice, or one on a variant or data set that no paper has
PAPERS_OWN, OPEN, OURS = "paper", "open choice", "our variant"
#: ends the reason of a claim under a choice with one fit, which has no interval, if the value is on the claim's side
AGREES = "the value of the only fit agrees"
#: said of a number of one repeat
NO_INTERVAL = "so no interval"
#: reason for claims that the simulator decides, because it determines the number of clusters and the information in
#: contexts
ANY_SIMULATOR = "any simulator"
#: half an order of magnitude, by which ratios of times are judged
ORDER = 10**0.5
#: least relative gain over a start or over unigrams that counts as one
GAIN = 0.01
#: number of cores that other processes may use during a measurement of time; with more, the times decide nothing
OTHER_CORES = 0.25
#: smallest number of documents of a claim, such as those with a context; with fewer, chance decides
FEWEST = 30
#: fewest documents per class or cluster, on average
FEWEST_PER_CLUSTER = 5
#: reason why claims on Spark are not run
NO_SPARK = "Spark is not available"
#: of every interval
LEVEL = 0.95
COLUMNS = ("dataset", "data", "size", "limits", "whose", "claim", "verdict", "numbers", "reason")
#: for captions and notes, of every target with claims
RULE = (
    f"Verdicts use the {LEVEL:.0%} interval over seeds (Student's t, of paired differences or of logs of ratios). A "
    "claim holds if the whole interval supports it, and fails if the whole interval contradicts it. Gains below "
    f"{GAIN:.0%} do not count. Claims about fewer than {FEWEST} documents, or {FEWEST_PER_CLUSTER} per class, are not "
    "tested. All rules: docs/papers/results.md."
)


@dataclass(frozen=True)
class Statistic:
    """A number that must be on one side of a bound for a claim to hold.

    The lead is the distance of the number from the bound, positive on the claim's side.

    least, most : ends of the interval of the lead; NaN for a single value, which has no interval.
    said : the number and its interval as text.
    size : smallest lead that counts, such as a gain of 1%; with 0, only the sign of the lead counts.
    claimed : lead that the paper prints, if it is more than ``size``.
    lead : lead of a single value.
    """

    least: float
    most: float
    said: str
    size: float = 0.0
    claimed: float = 0.0
    lead: float = 0.0

    @property
    def verdict(self) -> str:
        """Verdict by the sign and the size of the lead, as if the data were the paper's data."""
        if self.most < 0 or (self.most < self.size and not self.least > 0):
            return NOT_REPRODUCED
        if self.least > self.size:
            return REPRODUCED
        return SMALLER if self.least > 0 and self.most < max(self.size, self.claimed) else INCONCLUSIVE

    @property
    def order(self) -> tuple[int, float, float]:
        """Sort key: contradicting results first, then inconclusive results; with equal verdicts, by the lead."""
        least = -np.inf if np.isnan(self.least) else self.least - self.size
        return _JUDGED.index(self.verdict), least, self.lead - self.size


def mean_of(
    name: str,
    values: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    digits: int,
    over: str = "seeds",
    is_difference: bool = False,
    size: float = 0.0,
    claimed: float = 0.0,
    shown_as: Callable[[Any], np.ndarray] = np.asarray,
) -> Statistic:
    """Return the mean of values over repeats, with Student's t interval, which must be ``above`` or ``below`` a bound.

    Parameters
    ----------
    values : (n,) float, one per repeat
    over : name of the repeats, in the plural
    is_difference : whether the mean is shown with its sign
    size, claimed : see :class:`Statistic`
    shown_as : transforms the mean and the interval before they are shown and compared with the bound
    """
    values = np.asarray(values, np.float64)
    mean, reach, n = float(values.mean()), np.nan, len(values)
    if n > 1:
        from scipy import stats  # half a second to load, and every job imports this module

        reach = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    middle, least, most = (float(one) for one in shown_as([mean, mean - reach, mean + reach]))
    form = f"{'+' if is_difference else ''},.{digits}f"
    said_mean, low, high = (f"{round(one, digits) + 0.0:{form}}" for one in (middle, least, most))  # + 0.0: no "-0.0"
    interval = f"{LEVEL:.0%} {low} to {high}, {n} {over}" if n > 1 else f"one {over.removesuffix('s')}, {NO_INTERVAL}"
    text = f"{name} {said_mean} ({interval})"
    if below is not None:
        return Statistic(below - most, below - least, text, size, claimed, lead=below - middle)
    if above is None:
        raise ValueError(f"{name}: a bound is needed, above or below")
    return Statistic(least - above, most - above, text, size, claimed, lead=middle - above)


def ratio_of(name: str, ratios: Any, *, over: str = "seeds", **settings: Any) -> Statistic:
    """Return the geometric mean of ratios, such as ratios of times, which must be ``above`` or ``below`` a bound.

    The interval is Student's t interval of the logs, because an interval of the ratios could include values below 0.

    Parameters
    ----------
    ratios : (n,) positive float, one per repeat; NaN if a method never reaches the result. NaN counts as 1 or, if a
        ratio is less than 1, as the smallest ratio. If all ratios are NaN, no ratio is shown.
    over, settings : see :func:`mean_of`
    """
    ratios = np.asarray(ratios, np.float64)
    n_never, n = int(np.isnan(ratios).sum()), len(ratios)
    if n_never == n:
        return Statistic(-1.0, -1.0, f"none of the {n} {over} reaches the required level")
    ratios = np.where(np.isnan(ratios), np.fmin.reduce(ratios, initial=1.0), ratios)
    ratio = mean_of(name, np.log(ratios), over=over, shown_as=np.exp, **settings)
    never = f"; {n_never} of the {n} {over} never reach the required level and count as not faster"
    return replace(ratio, said=f"{ratio.said}{never}") if n_never else ratio


def difference(first: pd.Series, second: pd.Series, *, name: str = "difference", **settings: Any) -> Statistic:
    """Return the mean of ``first`` minus ``second``, paired by seed (the index). Raises ValueError without a pair.

    settings : see :func:`mean_of`
    """
    paired = (first - second).dropna()
    if paired.empty:
        raise ValueError(f"{name}: the two sides have none of the {settings.get('over', 'seeds')} in common")
    return mean_of(name, paired, is_difference=True, **settings)


def change(first: pd.Series, second: pd.Series, name: str, claimed: float = 0.0) -> Statistic:
    """Return the change from one perplexity to another in per cent, paired by seed; it must be below -GAIN.

    claimed : decrease that the paper prints, in per cent
    """
    per_cent = (100 * (first / second - 1)).dropna()
    name = f"change of perplexity in %, {name},"
    return mean_of(name, per_cent, below=0, digits=1, is_difference=True, size=100 * GAIN, claimed=claimed)


def of_order(times: float) -> float:
    """Return the smallest ratio that counts as equal to a printed ratio: half an order of magnitude less, at least 1.

    Machines, sizes and implementations differ from the papers, so the digits of such a ratio have no meaning.
    """
    return max(1.0, times / ORDER)


def leaves_start(start: Any, end: Any) -> Any:
    """Return whether a number that should be low decreases by more than GAIN from start to end (elementwise).

    If the number of a chain does not decrease, its gain and the time of its gain are noise, and other chains cannot be
    compared with this chain.
    """
    return end * (1 + GAIN) < start


def share_of(name: str, happened: Sequence[bool]) -> Statistic:
    """Return the fraction of fits with an outcome, with Clopper and Pearson's interval; it must be above one half."""
    from scipy.stats import beta

    n, k = len(happened), int(sum(happened))
    low = float(beta.ppf((1 - LEVEL) / 2, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf((1 + LEVEL) / 2, k + 1, n - k)) if k < n else 1.0
    return Statistic(low - 0.5, high - 0.5, f"{name} {k} of {n} fits ({LEVEL:.0%} {low:.0%} to {high:.0%})")


@dataclass(frozen=True)
class Claim:
    """A claim on a dataset with its verdict, as returned by :func:`judge` and similar functions.

    dataset : title of the dataset
    text : the claim
    verdict : one of VERDICTS; before :func:`on_data`, the verdict as if the data were the paper's data
    numbers : our numbers in short form; may be empty
    reason : the statistic that decides, with its interval, or the reason for no verdict
    favours : model that the claim favours, or "". Data drawn from this model cannot test the claim. With ANY_SIMULATOR,
        no simulated data can test it
    data : kind of the data, set by :func:`on_data`
    size, limits : documents, lengths of chains and repeats, and those that limit the verdict; :func:`on_data` sets both
        if they are empty
    whose : PAPERS_OWN, OPEN or OURS
    of : target to which the claim belongs; "" if it is the target that judges the claim
    agrees : whether a single value without an interval decides, and lies on the claim's side
    """

    dataset: str
    text: str
    verdict: str
    numbers: str
    reason: str = ""
    favours: str = ""
    data: str = ""
    size: str = ""
    limits: str = ""
    whose: str = PAPERS_OWN
    of: str = ""
    agrees: bool = False

    @property
    def said(self) -> str:
        """Text with the numbers and the reason."""
        return ": ".join(filter(None, (self.numbers, self.reason)))


def judge(
    dataset: str,
    text: str,
    statistics: Sequence[Statistic],
    numbers: str = "",
    favours: str = "",
    whose: str = PAPERS_OWN,
) -> Claim:
    """Return a claim with its verdict; the claim holds only if each of its statistics supports it.

    The reason shows the statistic that decides: the statistic that contradicts the claim most, the least certain
    statistic, or the statistic nearest to the bound.
    """
    weakest = min(statistics, key=lambda one: one.order)
    agrees = bool(np.isnan(weakest.least)) and weakest.lead > weakest.size
    return Claim(dataset, text, weakest.verdict, numbers, weakest.said, favours, whose=whose, agrees=agrees)


def unmet(dataset: str, text: str, reason: str, numbers: str = "", whose: str = PAPERS_OWN) -> Claim:
    """Return a claim whose precondition is not met in this run."""
    return Claim(dataset, text, UNMET, numbers, reason, whose=whose)


def untestable(dataset: str, text: str, reason: str, numbers: str = "", whose: str = PAPERS_OWN) -> Claim:
    """Return a claim that the data of this run cannot test, independent of the numbers."""
    return Claim(dataset, text, NOT_TESTABLE, numbers, reason, whose=whose)


def under(choice: str, claims: Sequence[Claim], of: str, size: str = "", limits: str = "") -> list[Claim]:
    """Return claims of the target ``of`` that are judged by fits with a choice that the paper does not print."""
    judged = []
    for one in claims:
        reason = f"{one.reason}; {AGREES}" if one.agrees else one.reason
        text = f"{choice}: {one.text}"
        judged.append(replace(one, text=text, reason=reason, whose=OPEN, of=of, size=size, limits=limits))
    return judged


def not_run(dataset: str, text: str, reason: str, numbers: str = "") -> Claim:
    """Return a claim that needs machines, software or numbers that are not available."""
    return Claim(dataset, text, NOT_RUN, numbers, reason)


def unless(claim: Claim, reason: str, verdict: str = NOT_TESTABLE) -> Claim:
    """Return the claim; if it is supported and ``reason`` is not "", its verdict becomes ``verdict``."""
    return undecided(claim, reason, verdict, (REPRODUCED, SMALLER))


def undecided(claim: Claim, reason: str, verdict: str = NOT_TESTABLE, among: Sequence[str] = _JUDGED) -> Claim:
    """Return the claim; if its verdict is in ``among`` and ``reason`` is not "", its verdict becomes ``verdict``.

    By default, this holds for all verdicts by an interval.
    """
    if claim.verdict not in among or not reason:
        return claim
    return replace(claim, verdict=verdict, reason=f"{reason}; {claim.reason}")


def too_few(claim: Claim, number: float, what: str) -> Claim:
    """Return the claim, with the verdict NOT_TESTABLE if it concerns fewer documents than FEWEST.

    number, what : number of documents and their description, such as 5 and "documents with a context"
    """
    why = f"there are {number:,.0f} {what}, fewer than the required {FEWEST}"
    return undecided(claim, why if number < FEWEST else "")


def degenerate(clusters: Any, documents: float, name: str) -> str:
    """Return the reason why a method found no clustering; "" if it did.

    The reason is that all fits have one cluster, or that all fits have one cluster per document.

    clusters : number of clusters per fit
    """
    if (np.asarray(clusters) == 1).all():
        return f"{name} puts all documents in one cluster"
    if (np.asarray(clusters) >= documents).all():
        return f"{name} puts each of {documents:,.0f} documents in a cluster of its own"
    return ""


def timed_alone(claim: Claim, cores: float) -> Claim:
    """Return a claim on times, INCONCLUSIVE if other programs used more than OTHER_CORES cores or if this is unknown.

    cores : result of :meth:`mc2papers.other_work.OtherWork.cores`
    """
    meanwhile = "while other work may have run" if np.isnan(cores) else f"while other work took {cores:.1f} cores"
    among = [one for one in _JUDGED if one != INCONCLUSIVE]
    return undecided(claim, "" if cores <= OTHER_CORES else f"timed {meanwhile}", INCONCLUSIVE, among)


def on_data(claims: Sequence[Claim], data: Mapping[str, Data]) -> list[Claim]:
    """Return the claims with their data, and with verdicts that depend on the kind of data.

    Claims that are judged by classes need at least FEWEST_PER_CLUSTER documents per class for a verdict.

    data : data by title of the dataset. A claim on another dataset raises ValueError.
    """
    result = []
    for claim in claims:
        if claim.dataset not in data:
            lack = f"its target has no dataset of this name{nearest(claim.dataset, data)}"
            raise ValueError(f"the claim {claim.text!r} is on {claim.dataset!r}, but {lack}")
        of = data[claim.dataset]
        if of.per_class < FEWEST_PER_CLUSTER:
            why = f"there are {of.per_class:.1f} documents per class, fewer than the required {FEWEST_PER_CLUSTER}"
            claim = undecided(claim, why)
        if claim.verdict in _JUDGED:
            if of.owner and claim.favours in (of.owner, ANY_SIMULATOR):
                why = f"the data were drawn from {of.owner}, which the claim favours"
                is_any = claim.favours == ANY_SIMULATOR
                claim = undecided(claim, "the simulator determines the claimed effect" if is_any else why)
            elif not of.is_papers or claim.whose == OURS:
                claim = replace(claim, verdict=_ELSEWHERE.get(claim.verdict, claim.verdict))
        size, limits = (claim.size, claim.limits) if claim.size else (of.size, of.limits)
        result.append(replace(claim, data=of.label, size=size, limits=limits))
    return result


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """Return a table with one row per claim and the columns COLUMNS, from the result of :func:`on_data`."""
    return pd.DataFrame(map(vars, claims)).rename(columns={"text": "claim"}).reindex(columns=COLUMNS)


def write_claims(path: str | os.PathLike[str], target: str, claims: Sequence[Claim]) -> None:
    """Write the claims of a target as CSV.

    The first column has the name of ``target``, or of the other target to which the claim belongs (``Claim.of``).
    """
    table = claims_table(claims)
    table.insert(0, "target", [one.of or target for one in claims])
    with storage.replacing(path) as stream:
        table.to_csv(stream, index=False)
