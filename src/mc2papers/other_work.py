"""Measure the load of other programs while a job measures times."""

from __future__ import annotations

import os
import time
from pathlib import Path


class OtherWork:
    """Measure from now on how many cores all other processes use.

    Examples
    --------
    >>> other = OtherWork()
    >>> 0 <= other.cores() <= os.cpu_count() or not Path("/proc/stat").is_file()
    True
    """

    def __init__(self) -> None:
        self._start = self._now()

    def cores(self) -> float:
        """Return the mean number of cores that other processes used; NaN if the system does not report it."""
        (wall, others), (first_wall, first_others) = self._now(), self._start
        return max((others - first_others) / max(wall - first_wall, 1e-9), 0.0)

    def _now(self) -> tuple[float, float]:
        """Return the elapsed seconds, and the processor seconds of all processes except this one."""
        own = os.times()
        return time.perf_counter(), _busy_seconds() - own.user - own.system - own.children_user - own.children_system


def _busy_seconds(path: str | os.PathLike[str] = "/proc/stat") -> float:
    """Return the processor seconds of all processes since the machine started; NaN if Linux does not count them."""
    try:
        counts = Path(path).read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, irq, softirq, steal = map(int, counts)
    except (OSError, ValueError):
        return float("nan")
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
