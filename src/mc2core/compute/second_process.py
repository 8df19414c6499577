"""A second process that compiles some kernels while this one compiles others, where a core has nothing to do.

What it compiles it stores, and this process finds it there: results do not depend on it. It is a new process and no
fork, in which a lock that another thread held would stay locked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from numba.core import event

# looks at what runs, and seconds between two of them
_LOOKS, _BETWEEN = 3, 0.01


@contextmanager
def helped_by(function: Callable[[], None] | None) -> Iterator[None]:
    """Have another process call ``function`` from the first kernel on that is compiled in the block, till its end.

    A function at the top level of its module, or None for no help. There is none either where every kernel is stored,
    where no core is free, and where that cannot be told, as on macOS.
    """
    if function is None:
        yield
        return
    helper = _Helper(function)
    event.register("numba:compile", helper)
    try:
        yield
    finally:
        event.unregister("numba:compile", helper)
        helper.end()


class _Helper(event.Listener):
    """Starts the process when a kernel is compiled."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._code = f"from {function.__module__} import {function.__name__}; {function.__name__}()"
        self._is_asked = False
        self._process: subprocess.Popen[bytes] | None = None

    def on_start(self, event: event.Event) -> None:
        if not self._is_asked:
            self._is_asked = True
            if _a_core_is_free():
                self._process = _started(self._code)

    def on_end(self, event: event.Event) -> None:
        pass

    def end(self) -> None:
        """What the process has not stored by now is not needed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _started(code: str) -> subprocess.Popen[bytes] | None:
    """A process that runs ``code`` with the modules of this one, unseen; None where there can be none."""
    command, environment = [sys.executable, "-P", "-c", code], os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except OSError:
        return None


def _a_core_is_free() -> bool:
    """Whether fewer threads run, this one among them, than there are cores for this process."""
    try:
        cores, running = len(os.sched_getaffinity(0)), []
        for _ in range(_LOOKS):
            running.append(int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]))
            time.sleep(_BETWEEN)
    except (AttributeError, OSError):
        return False
    return min(running) < cores
