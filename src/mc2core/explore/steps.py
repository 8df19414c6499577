"""Bins of numbers and periods of dates for which shares are computed."""

from __future__ import annotations

import calendar
import datetime
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus.building.cells import parse_date
from mc2core.corpus.row_blocks import indicator
from mc2core.explore.variables import Variable

N_BINS = 20
"""Number of bins of equal width. A short range of whole numbers has one bin per number."""
MAX_PERIODS = 40
"""Largest number of periods of dates."""
_MOMENT = 1e-8  # rounding error of standardised dates, in years


def steps_of(variable: Variable) -> tuple[sp.csr_matrix, dict[str, Any]]:
    """Return the bins of a numeric variable: the indicator of their documents, (J, n) CSR of ones, and their bounds.

    The bounds are a dict of ``start``, ``end`` and ``period`` (None for numbers), each (n,). There are no bins if all
    values are equal.
    """
    observed = np.flatnonzero(~np.isnan(variable.values))
    values = variable.values[observed]
    if len(np.unique(values)) < 2:
        return sp.csr_matrix((len(variable.values), 0)), {}
    periods = periods_of(values) if variable.is_date else []
    bounds = np.array([_start(one) for one in [*periods, periods[-1] + 1]]) if periods else bounds_of(values)
    steps = np.full(len(variable.values), -1)
    steps[observed] = np.searchsorted(bounds - _MOMENT * bool(periods), values, side="right") - 1
    shown: list[Any] = [*periods] or [None] * (len(bounds) - 1)
    columns = {"start": bounds[:-1], "end": bounds[1:], "period": np.array(shown, dtype=object)}
    return indicator(steps, len(bounds) - 1), columns


def bounds_of(values: np.ndarray) -> np.ndarray:
    """Return the bounds of bins for observed ``values`` (n,), from the smallest value to above the largest.

    The bounds of whole numbers are whole numbers.
    """
    distinct = np.unique(values)
    if (distinct == np.floor(distinct)).all():
        width = -(-(distinct[-1] - distinct[0] + 1) // N_BINS) if distinct[-1] - distinct[0] >= 2 * N_BINS else 1
        return np.arange(distinct[0], distinct[-1] + 1 + width, width)[: int((distinct[-1] - distinct[0]) // width) + 2]
    return np.linspace(distinct[0], np.nextafter(distinct[-1], np.inf), N_BINS + 1)


def periods_of(dates: np.ndarray) -> list[pd.Period]:
    """Return the periods from the first to the last of ``dates`` (n,), which are given as fractional years.

    A period is a day, month, quarter, year or group of years: the shortest of these with at most MAX_PERIODS periods.
    The list is empty if a date is outside the years 1 to 9998.
    """
    first, last = float(dates.min()) + _MOMENT, float(dates.max()) + _MOMENT
    if not 1 <= first <= last < 9999:
        return []
    years = [f"{n}Y" for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    for unit in ("D", "M", "Q", *years) if (dates % 1).any() else years:
        begin, end = pd.Period(_day_of(first), freq=unit), pd.Period(_day_of(last), freq=unit)
        if unit in years:  # decades begin with a round year
            begin = pd.Period(year=max(begin.year // (n := int(unit[:-1])) * n, 1), freq=unit)
        periods = pd.period_range(begin, end, freq=unit)
        if len(periods) <= MAX_PERIODS:
            return list(periods)
    return []


def _day_of(date: float) -> datetime.date:
    year = int(date)
    days = (date - year) * (366 if calendar.isleap(year) else 365)
    return datetime.date(year, 1, 1) + datetime.timedelta(days=int(days))


def _start(period: pd.Period) -> float:
    """Return the start of a period as a fractional year."""
    day = period.asfreq("D", how="start")
    return parse_date(datetime.date(day.year, day.month, day.day))
