"""Progress of long work, shown by a bar of tqdm on a terminal or in a notebook, or by log lines at intervals.

Any code can report its progress (:func:`work`). Its caller decides whether and where progress is shown
(:func:`showing`). A thread updates the display, because libraries and compiled code report nothing while they run.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mc2core.base import stopping

logger = logging.getLogger(__name__)

#: seconds between two log lines; a bar is shown after a fifth of this time, so that short work shows nothing
LINE_SECONDS = 10.0


class Work:
    """Work in progress.

    ``total`` is the number of its pieces, or None if unknown, and ``initial`` the number of pieces that were done
    before. ``unit`` is the name of the pieces.
    """

    def __init__(self, what: str, total: int | None, unit: str, initial: int) -> None:
        self.what, self.total, self.unit, self.initial = what, total, unit, initial
        self.done: float = initial
        self.numbers: dict[str, float] = {}
        self.started = time.monotonic()

    def advance(self, pieces: float = 1, numbers: dict[str, float] | None = None) -> None:
        """Report that ``pieces`` more pieces are done, and ``numbers`` to show. If a signal was received, stop."""
        self.done += pieces
        self.numbers = numbers or {}
        stopping.check()


def line(works: list[Work], columns: int | None = None) -> str:
    """Return the progress of nested works as one line; each work is a part of the work before it.

    The first work with a total has the bar and the remaining time. If several works have the same name, as in parallel
    chains, the first of these works is shown. If ``columns``, the width of a terminal, is given, the line contains only
    the works that fit. A wide terminal also has a bar.
    """
    from tqdm import tqdm

    names = [one.what for one in works]
    works = [one for number, one in enumerate(works) if one.what not in names[:number]]
    index = next((i for i, one in enumerate(works) if one.total is not None), len(works) - 1)
    main, parts = works[index], [one.what for one in works[index + 1 :]]
    form = "{desc}: {n_fmt}{unit} [{elapsed}]" if main.unit else "{desc}: [{elapsed}]"
    if main.total is not None:
        bar = "{percentage:3.0f}%|{bar:10}| " if columns and columns >= 70 else ""
        form = f"{{desc}}: {bar}{{n_fmt}}/{{total_fmt}}{{unit}} [{{elapsed}}<{{remaining}}]"
    text = tqdm.format_meter(
        n=int(main.done),
        total=main.total,
        elapsed=time.monotonic() - main.started,
        prefix=": ".join(one.what for one in works[: index + 1]),
        unit="B" if main.unit == "B" else f" {main.unit}",
        unit_scale=main.unit == "B",
        initial=main.initial,
        bar_format=form,
    )
    for part in (*parts, *(f"{name} {value:.6g}" for name, value in main.numbers.items())):
        if columns is None or len(text) + len(part) + 2 <= columns:
            text += f", {part}"
    return text[:columns]


class _Display(threading.Thread):
    """Thread that shows the works in progress, by calling ``write`` with a line at intervals, or in a bar of tqdm."""

    def __init__(self, write: Callable[[str], None] | None) -> None:
        super().__init__(name="mc2core progress", daemon=True)
        self.write, self.works, self.lock, self.ended = write, list[Work](), threading.RLock(), threading.Event()
        self.bar: Any = None
        self.last, self.is_stop_told = time.monotonic(), False

    def run(self) -> None:
        while not self.ended.wait(LINE_SECONDS / 20):
            self.tick()

    def tick(self) -> None:
        """Update the display."""
        with self.lock:
            now = time.monotonic()
            if stopping.is_asked() and not self.is_stop_told:
                self.is_stop_told = True
                (self.write or to_stderr)("stopping after the current step; a second Ctrl-C stops at once")
            if self.write is not None:
                if self.works and now - self.last >= LINE_SECONDS:
                    self.last = now
                    self.write(line(self.works))
            elif works := [one for one in self.works if now - one.started >= LINE_SECONDS / 5]:
                from tqdm.auto import tqdm

                if self.bar is None:
                    self.bar = tqdm(bar_format="{desc}", leave=False, file=sys.stderr)
                self.bar.set_description_str(line(works, _columns() - 1))  # some terminals wrap after the last column
            elif self.bar is not None:
                self.bar.close()
                self.bar = None


_silent = _Display(lambda _: None)
_shown: _Display | None = None


@contextmanager
def showing(progress: bool | None = None, write: Callable[[str], None] | None = None) -> Iterator[None]:
    """Show the progress of work in the block.

    If ``progress`` is False, nothing is shown. If it is True, progress is shown in a bar on a terminal or in a
    notebook, and otherwise in lines on stderr. If it is None, an enclosing block decides. Without such a block, None is
    like True, but lines are written to the log (INFO). If ``write`` is given, it is called with each line instead.
    """
    global _shown
    before = _shown
    if (progress is None and before is not None) or (progress and before not in (None, _silent)):
        yield
        return
    if write is None and not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        write = to_stderr if progress else logger.info
    _shown = display = _silent if progress is False else _Display(write)
    if display is not _silent:
        display.start()
    try:
        yield
    finally:
        _shown = before
        if display is not _silent:
            display.ended.set()
            display.join()


@contextmanager
def work(
    what: str, total: int | None = None, unit: str = "", initial: int = 0, is_aside: bool = False
) -> Iterator[Work]:
    """Report the progress of the work in the block (:class:`Work`), which is shown if the caller shows progress.

    If ``is_aside`` is True, as for compiling, the time of the block is left out of the estimates of enclosing work.
    """
    task, display = Work(what, total, unit, initial), _shown or _silent
    with display.lock:
        display.works.append(task)
    try:
        yield task
    finally:
        with display.lock:
            display.works.remove(task)
            if is_aside:
                for outer in display.works:
                    outer.started += time.monotonic() - max(task.started, outer.started)
            if not display.works and display.bar is not None:
                display.tick()


def to_stderr(text: str) -> None:
    """Write a separate line to stderr, above the bar of tqdm."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)


def _columns() -> int:
    """Return the width of the terminal, which may change during a run."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # a notebook
        return 100
