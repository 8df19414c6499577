"""Check whether there is enough memory for an allocation."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path


def available_bytes() -> int:
    """Return the bytes that this process may use: the smallest of free memory and limits (control group, ulimit)."""
    return min(_limits())


def _limits() -> Iterator[int]:
    # other systems than Linux do not report free memory
    yield _free() or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        yield address_space
    for line in _lines(Path("/proc/self/cgroup")):
        if line.startswith("0::/"):
            group = Path("/sys/fs/cgroup", line.removeprefix("0::/"))
            for folder in (group, *group.parents):
                yield from (int(limit) for limit in _lines(folder / "memory.max") if limit.isdigit())


def _free() -> int | None:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def need(n_bytes: int, what: str, remedy: str) -> None:
    """Raise ValueError unless ``n_bytes`` of memory are available for ``what``. The message ends with ``remedy``."""
    available = available_bytes()
    if n_bytes > available:
        raise ValueError(
            f"{what} would take {_format(n_bytes)} of memory, but {_format(available)} are available; {remedy}"
        )


def _format(n_bytes: int) -> str:
    return f"{1e-9 * n_bytes:,.1f} GB"
