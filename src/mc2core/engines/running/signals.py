"""Stop between two steps when the process is asked to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying in the middle of a step; a second one acts at once."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen  # signals reach the main thread only
        return

    def note(number: int, frame: Any) -> None:
        if seen:
            signal.signal(number, before[signal.Signals(number)])
        seen.append(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, note)
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
