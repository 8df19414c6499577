"""Progress of long work: the bar of tqdm on a terminal or in a notebook, otherwise log lines at intervals.

Any code can report its progress (:func:`work`); the caller decides whether and where it is shown (:func:`showing`). A
thread updates the display, because libraries and compiled code report nothing while they run.
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

#: seconds between two lines. Work is shown in a bar from a fifth of that on, so that short work shows nothing
LINE_SECONDS = 10.0


class Work:
    """Work that is done now: ``total`` pieces if that is known, ``initial`` of them before; ``unit`` names them."""

    def __init__(self, what: str, total: int | None, unit: str, initial: int) -> None:
        self.what, self.total, self.unit, self.initial = what, total, unit, initial
        self.done: float = initial
        self.numbers: dict[str, float] = {}
        self.started = time.monotonic()

    def advance(self, pieces: float = 1, numbers: dict[str, float] | None = None) -> None:
        """Report that so many more pieces are done, with ``numbers`` to show. A signal to stop ends the run."""
        self.done += pieces
        self.numbers = numbers or {}
        stopping.check()


def line(works: list[Work], columns: int | None = None) -> str:
    """Return works as one line; each work is a part of the work before it. If ``columns``, the width of a terminal, is
    given, the line shows the works that fit, and a wide line has a bar.

    The first work with a total has the bar and the remaining time. Parallel chains have works of the same name; the
    first is shown.
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
    """Shows works that have begun and are not done: by ``write`` of a line at intervals, or in tqdm's line."""

    def __init__(self, write: Callable[[str], None] | None) -> None:
        super().__init__(name="mc2core progress", daemon=True)
        self.write, self.works, self.lock, self.ended = write, list[Work](), threading.RLock(), threading.Event()
        self.bar: Any = None
        self.last, self.is_stop_told = time.monotonic(), False

    def run(self) -> None:
        while not self.ended.wait(LINE_SECONDS / 20):
            self.tick()

    def tick(self) -> None:
        """Show how far work is."""
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
    """Show the work of the block.

    ``progress``: False shows nothing; True a bar on a terminal or in a notebook, else lines on stderr. By default as
    the caller shows its own; if the caller says nothing, like True, but with lines in the log (INFO). ``write`` takes
    lines in place of all this.
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
    """Do some work in the block, shown as :class:`Work` says if the caller shows it.

    The time of work ``is_aside``, such as compiling, does not count in the estimates of the work that it interrupts.
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
    """Write a line of its own, above tqdm's."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)


def _columns() -> int:
    """Return the width of the terminal, which may change during a run."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # a notebook
        return 100
