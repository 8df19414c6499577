"""What a run found, and whether its numbers of clusters and topics still move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: names of the trace that are followed
_NAMES = ("clusters", "topics")
#: they move where a line through the last third rises or falls by more than this share of the last value, and by more
#: than this number
MOST_CHANGE, LEAST_CHANGE = 0.05, 2.0
_FEWEST_ITERATIONS = 9


def found(trace: Sequence[Mapping[str, float]], names: Sequence[str] = _NAMES) -> dict[str, Any]:
    """The last numbers of clusters and topics in use, and their trend over the last third of the iterations.

    Parameters
    ----------
    trace : rows of a run, one an iteration.
    names : those of the two that the engine finds; others are left out.

    Returns
    -------
    dict
        ``clusters``, ``topics``: the last of each. ``trend``: for each the change of the least-squares line over the
        last third of the rows, None below 9 of them. ``over``: so many iterations. ``moving``: names of those that
        change by more than 5 % of the last value and by more than 2.
    """
    over = len(trace) // 3
    about: dict[str, Any] = {"over": over, "trend": {}, "moving": []}
    for name in names:
        values = np.array([row[name] for row in trace if name in row], dtype=np.float64)
        if len(values) == 0:
            continue
        about[name] = int(values[-1])
        about["trend"][name] = None
        if len(values) >= _FEWEST_ITERATIONS:
            change = float(np.polyfit(np.arange(over), values[-over:], 1)[0] * (over - 1))
            about["trend"][name] = round(change, 3)
            if abs(change) > max(MOST_CHANGE * values[-1], LEAST_CHANGE):
                about["moving"].append(name)
    return about


def sentence_of_all(about: Sequence[Mapping[str, Any]]) -> str:
    """What :func:`found` says of the fits of one run, one a seed, in a sentence; "" where none reports its numbers."""
    known = [one for one in about if any(name in one for name in _NAMES)]
    if len(known) < 2:
        return sentence(known[0]) if known else ""
    ranges = [_range([one[name] for one in known if name in one], name) for name in _NAMES]
    first = f"found {' and '.join(one for one in ranges if one)} in {len(known)} fits"
    names = [name for name in _NAMES if any(name in one for one in known)]
    times = {name: sum(name in one["moving"] for one in known) for name in names}
    if any(times.values()):
        counts = [f"{name} still move in {n or 'none'} of them" for name, n in times.items()]
        return f"{first}; {' and '.join(counts)}"
    is_short = any(trend is None for one in known for trend in one["trend"].values())
    no_trend = f"no trend in {' or '.join(names)} at the end of any"
    return f"{first}, {'too short to tell whether they still move' if is_short else no_trend}"


def _range(values: Sequence[int], name: str) -> str:
    """ "12 to 15 clusters"; "" of none."""
    if not values:
        return ""
    least, most = min(values), max(values)
    return f"{least} {name}" if least == most else f"{least} to {most} {name}"


def sentence(about: Mapping[str, Any]) -> str:
    """What :func:`found` says, in a sentence or two; "" where the engine reports neither number."""
    names = [name for name in _NAMES if name in about]
    if not names:
        return ""
    first = "found " + " and ".join(f"{about[name]} {name}" for name in names)
    if any(about["trend"][name] is None for name in names):
        return f"{first}; fewer than {_FEWEST_ITERATIONS} iterations do not tell whether they still move"
    last = f"over the last {about['over']} iterations of this one run"
    if not about["moving"]:
        return f"{first}; no trend in {' or '.join(names)} {last}"
    trends = [
        f"{name} still move ({about['trend'][name]:+.1f})" if name in about["moving"] else f"{name} show no trend"
        for name in names
    ]
    return f"{first}; {last} {' and '.join(trends)}"
