"""What long work does now and how far it is: one line that is rewritten on a terminal or in a notebook, else new lines.

Work says so wherever it is done (:func:`work`); the caller decides whether and where that is shown (:func:`showing`).
A thread of its own shows it, since libraries and compiled code report nothing while they run.
"""

from __future__ import annotations

import logging
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mc2core.base import stopping

logger = logging.getLogger(__name__)

#: seconds between two lines. Work is shown from a fifth of that on, so that short work shows nothing
LINE_SECONDS = 10.0
_LEAST_CELLS, _MOST_CELLS = 4, 20  # of a bar
_NARROW = 70  # columns of a terminal that has no room for units


class Work:
    """Work that is done now.

    Parameters
    ----------
    what : str
        What is done, as it is shown.
    total : int, optional
        Number of its pieces; without it, only the time is shown.
    unit : str
        Name of the pieces, in plural; "B" are bytes.
    initial : int
        Pieces that were done before.
    """

    def __init__(self, what: str, total: int | None, unit: str, initial: int) -> None:
        self.what, self.total, self.unit, self.initial = what, total, unit, initial
        self.done: float = initial
        self.numbers: dict[str, float] = {}
        self.started = time.monotonic()
        self.is_told = False

    def advance(self, pieces: float = 1, numbers: dict[str, float] | None = None) -> None:
        """Report that so many more pieces are done, with ``numbers`` to show. A signal that was noted stops here."""
        self.done += pieces
        self.numbers = numbers or {}
        stopping.look()

    def count(self) -> str:
        """How many pieces are done, "12 of 60 iterations"."""
        scale, unit = (1e-6, "MB") if self.unit == "B" else (1, self.unit)
        of_all = f" of {scale * self.total:,.0f}" if self.total is not None else ""
        return f"{scale * self.done:,.0f}{of_all} {unit}" if unit else ""

    def line(self) -> str:
        """What is done, how far it is, for how long, and how long the rest will take."""
        seconds = time.monotonic() - self.started
        count = self.count()
        said = f"{self.what}: {count}{' in ' if count else ''}{_spelt(seconds)}"
        if self.total is not None and self.initial < self.done < self.total:
            left = seconds * (self.total - self.done) / (self.done - self.initial)
            said += f", about {_spelt(left)} left"
        return said

    def told(self) -> list[str]:
        """The numbers, as they are shown."""
        return [f"{name} {value:.6g}" for name, value in self.numbers.items()]


class _Display:
    """Shows nothing; its subclasses show the works that have begun and are not done, each part of the one before."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.lock = threading.RLock()
        self.is_stop_told = False

    def begin(self, one: Work) -> None:
        with self.lock:
            self.works.append(one)

    def end(self, one: Work) -> None:
        with self.lock:
            self.works.remove(one)

    def tick(self) -> None:
        """Called now and then by a thread."""
        with self.lock:
            if stopping.is_asked() and not self.is_stop_told:
                self.is_stop_told = True
                self.say("stopping after what is done now; a second Ctrl-C stops at once")
            if self.works:
                self.show()

    def say(self, line: str) -> None:
        """Write a line of its own."""
        _to_stderr(f"{line}\n")

    def show(self) -> None:
        """Show what is done now."""


class _Lines(_Display):
    """A line a while after work has begun, and from then on at intervals."""

    def __init__(self, write: Callable[[str], None] | None) -> None:
        super().__init__()
        self.write, self.last = write or super().say, time.monotonic()

    def say(self, line: str) -> None:
        self.write(line)

    def show(self) -> None:
        one, now = self.works[-1], time.monotonic()
        is_new = not one.is_told and now - max(one.started, self.last) >= LINE_SECONDS / 5
        if is_new or now - self.last >= LINE_SECONDS:
            one.is_told, self.last = True, now
            numbers = ", ".join(one.told())
            self.say(": ".join([*map(_named, self.works[:-1]), one.line()]) + (f"; {numbers}" if numbers else ""))


class _Bar(_Display):
    """One line at the bottom of a terminal: the work that has pieces, with a bar, and what of it is done now."""

    shown = ""

    def end(self, one: Work) -> None:
        with self.lock:
            super().end(one)
            if not self.works:
                self.draw("")

    def say(self, line: str) -> None:
        with self.lock:
            self.draw("")
            super().say(wrapped(line, _columns() - 1))

    def show(self) -> None:
        now = time.monotonic()
        works = [one for one in self.works if now - one.started >= LINE_SECONDS / 5]
        self.draw(in_columns(works, _columns()) if works else "")

    def draw(self, text: str) -> None:
        if text or self.shown:
            _to_stderr(f"\r{text}{' ' * (len(self.shown) - len(text))}" + ("" if text else "\r"))
            self.shown = text


def in_columns(works: list[Work], columns: int) -> str:
    """Works, each part of the one before, in one line of a terminal.

    The first one with a total has the bar, as the time that is left is that of all of it. What does not fit is left
    out: numbers first, then what is done now, the unit, the bar, and the end of a name.
    """
    place = next((i for i, one in enumerate(works) if one.total is not None), len(works) - 1)
    main, room = works[place], columns - 1  # in the last column, some terminals begin a line
    name, rest = ": ".join(one.what for one in works[: place + 1]), main.line()[len(main.what) :]
    if columns < _NARROW:
        rest = rest.replace(f" {main.unit} in ", " in ")
    if len(name) + len(rest) > room:
        name = f"{name[: max(room - len(rest) - 1, 0)]}…"
    said = (name + rest)[:room]
    cells = min(room - len(said) - 1, _MOST_CELLS if columns > 100 else _MOST_CELLS // 2)
    if main.total and cells >= _LEAST_CELLS:
        full = int(cells * min(main.done / main.total, 1.0))
        said = f"{'█' * full}{'░' * (cells - full)} {said}"
    for more in (*map(_named, works[place + 1 :]), *main.told()):
        if len(said) + len(more) + 2 <= room:
            said += f"; {more}"
    return said


def wrapped(line: str, columns: int, mark: str = "") -> str:
    """A line broken between its words, with ``mark`` before each break."""
    parts = textwrap.wrap(
        line, columns - len(mark), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return f"{mark}\n".join(parts)


def _named(one: Work) -> str:
    return f"{one.what}, {one.count()}" if one.total is not None else one.what


_silent = _Display()
_shown: _Display | None = None


class Messages(logging.Handler):
    """Messages of the log on stderr, each on a line of its own above the bar."""

    def emit(self, record: logging.LogRecord) -> None:
        (_shown if isinstance(_shown, _Bar) else _silent).say(self.format(record))


@contextmanager
def showing(progress: bool | None = None, write: Callable[[str], None] | None = None) -> Iterator[None]:
    """Show the work of the block.

    Parameters
    ----------
    progress : bool, optional
        False: nothing. True: a bar on a terminal or in a notebook, else lines on stderr. By default as the caller
        shows its own; if the caller says nothing, like True, but with lines in the log (INFO).
    write : function (line), optional
        Takes lines, in place of all this.
    """
    global _shown
    before = _shown
    if (progress is None and before is not None) or (progress and before not in (None, _silent)):
        yield
        return
    _shown = display = _silent if progress is False else _display_for(progress, write)
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(LINE_SECONDS / 20):
            display.tick()

    thread = threading.Thread(target=tick, name="mc2core progress", daemon=True)
    if display is not _silent:
        thread.start()
    try:
        yield
    finally:
        _shown = before
        ended.set()
        if thread.is_alive():
            thread.join()


@contextmanager
def work(what: str, total: int | None = None, unit: str = "", initial: int = 0) -> Iterator[Work]:
    """Do some work in the block, shown as :class:`Work` says if the caller shows it."""
    one, display = Work(what, total, unit, initial), _shown or _silent
    display.begin(one)
    try:
        yield one
    finally:
        display.end(one)


def _display_for(progress: bool | None, write: Callable[[str], None] | None) -> _Display:
    if write is None and (_is_notebook() or sys.stderr.isatty()):
        return _Bar()
    return _Lines(write or (None if progress else logger.info))


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)  # at once: print writes the end of the line by itself
    sys.stderr.flush()


def _is_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and "IPKernelApp" in shell.config


def _columns() -> int:
    """Width of the terminal, which people change while something runs."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # a notebook
        return 100


def _spelt(seconds: float) -> str:
    """ "80 s", "12 min", "2.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
