"""The numbers of clusters and topics that a run found, and by how much they changed at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: names of the trace that are followed
_NAMES = ("clusters", "topics")


def found(
    trace: Sequence[Mapping[str, float]], names: Sequence[str] = _NAMES, truncations: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The last numbers of clusters and topics in use, and what they were before the last third of the iterations.

    Whether a chain has converged cannot be told from one trace, so nothing is said of that.

    Parameters
    ----------
    trace : rows of a run, one an iteration.
    names : those of the two that the engine finds; others are left out.
    truncations : the most of each that the engine can find, where its numbers follow them.

    Returns
    -------
    dict
        ``clusters``, ``topics``: int, the last of each. ``over``: int, a third of the iterations. ``before``: dict,
        each number that many iterations before the end; empty where the third of a run is no iteration.
        ``truncations``: dict of int, where there are any.
    """
    over = len(trace) // 3
    about: dict[str, Any] = {"over": over, "before": {}}
    for name in names:
        if trace and name in trace[-1]:
            about[name] = int(trace[-1][name])
            if over:
                about["before"][name] = int(trace[-1 - over][name])
    if truncations:
        about["truncations"] = dict(truncations)
    return about


def sentence(about: Mapping[str, Any]) -> str:
    """What :func:`found` says, in a sentence; "" where the engine reports neither number."""
    names = [name for name in _NAMES if name in about]
    first = "found " + " and ".join(f"{about[name]} {name}" for name in names) + _of_at_most([about], names)
    changes = [f"from {about['before'][name]} to {about[name]}" for name in names if name in about["before"]]
    return _with_changes(first, about, names, "went", changes) if names else ""


def sentence_of_all(about: Sequence[Mapping[str, Any]]) -> str:
    """What :func:`found` says of the fits of one run, one a seed, in a sentence; "" where none reports its numbers."""
    known = [one for one in about if any(name in one for name in _NAMES)]
    if len(known) < 2:
        return sentence(known[0]) if known else ""
    names = [name for name in _NAMES if name in known[0]]
    numbers = [f"{_range([one[name] for one in known])} {name}" for name in names]
    first = f"found {' and '.join(numbers)} in {len(known)} fits{_of_at_most(known, names)}"
    changes = [
        f"by {_range([one[name] - one['before'][name] for one in known], '+')}"
        for name in names
        if all(name in one["before"] for one in known)
    ]
    return _with_changes(first, known[0], names, "changed", changes)


def _of_at_most(known: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """The truncations, for engines whose numbers follow them."""
    if not all("truncations" in one for one in known):
        return ""
    most = " and ".join(_range([one["truncations"][name] for one in known]) for name in names)
    return f", of at most {most}: the truncation, which the numbers of this engine follow (docs/questions.md)"


def _with_changes(first: str, about: Mapping[str, Any], names: Sequence[str], verb: str, changes: Sequence[str]) -> str:
    """ "..., topics by +27", with the iterations over which it is so; ``first`` alone without changes."""
    if not changes:
        return first
    told = ", ".join(f"{name} {one}" for name, one in zip(names, [f"{verb} {changes[0]}", *changes[1:]], strict=True))
    over = "iteration" if about["over"] == 1 else f"{about['over']} iterations"
    return f"{first}; over the last {over} {told}"


def _range(values: Sequence[int], sign: str = "") -> str:
    """ "12 to 15", or "12" if they are all the same; with a ``sign`` "+" as "0 to +3"."""
    least, most = (f"{value:{sign if value else ''}d}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"
