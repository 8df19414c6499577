"""What long work does now, and how far it is: a bar on a terminal or in a notebook, lines elsewhere.

Work says so wherever it is done (:func:`work`); who asked for it decides whether and where that is shown
(:func:`showing`). A thread of its own shows that time passes where a library or compiled code tells nothing.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from mc2core.base import stopping

logger = logging.getLogger(__name__)

#: seconds between two lines. Work is shown from a fifth of that on, so that short work shows nothing
LINE_SECONDS = 10.0


class Work:
    """Work that is done now.

    Parameters
    ----------
    what : str
        What is done, as it is told.
    total : int, optional
        Pieces of it; without, only the time is told.
    unit : str
        What the pieces are, in plural; "B" are bytes.
    initial : int
        Pieces that were done before.
    """

    def __init__(self, display: _Display, what: str, total: int | None, unit: str, initial: int) -> None:
        self._display = display
        self.what, self.total, self.unit, self.initial = what, total, unit, initial
        self.done: float = initial
        self.numbers: dict[str, float] = {}
        self.started = time.monotonic()
        self.bar: Any = None
        self.is_told = False

    def advance(self, pieces: float = 1, numbers: dict[str, float] | None = None) -> None:
        """So many more pieces are done; ``numbers`` are told beside. A signal that was noted stops the work here."""
        self.done += pieces
        self.numbers = numbers or {}
        self._display.moved(self)
        stopping.look()

    def line(self) -> str:
        """What is done, how far it is, and for how long."""
        seconds = time.monotonic() - self.started
        scale, unit = (1e-6, "MB") if self.unit == "B" else (1, self.unit)
        of_all = f" of {scale * self.total:,.0f}" if self.total is not None else ""
        count = f"{scale * self.done:,.0f}{of_all} {unit} in " if self.unit else ""
        said = f"{self.what}: {count}{_spelt(seconds)}"
        if self.total is not None and self.initial < self.done < self.total:
            left = seconds * (self.total - self.done) / (self.done - self.initial)
            said += f", about {_spelt(left)} left"
        numbers = ", ".join(f"{name} {value:.6g}" for name, value in self.numbers.items())
        return f"{said}; {numbers}" if numbers else said


class _Display:
    """Shows nothing; its heirs show the last work that was begun and is not done."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.lock = threading.RLock()
        self.is_stop_told = False

    def begin(self, one: Work) -> None:
        with self.lock:
            self.works.append(one)

    def moved(self, one: Work) -> None:
        pass

    def end(self, one: Work) -> None:
        with self.lock:
            self.works.remove(one)

    def tick(self) -> None:
        """Called now and then by a thread."""
        with self.lock:
            if stopping.is_asked() and not self.is_stop_told:
                self.is_stop_told = True
                self.say("stopping after what is done now; a second Ctrl-C stops at once")
            self.show()

    def say(self, line: str) -> None:
        """A line of its own."""

    def show(self) -> None:
        """What is done now."""


class _Lines(_Display):
    """A line a while after work has begun, and from then on at intervals."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self.write, self.last = write, time.monotonic()

    def say(self, line: str) -> None:
        self.write(line)

    def show(self) -> None:
        if not self.works:
            return
        one, now = self.works[-1], time.monotonic()
        is_new = not one.is_told and now - max(one.started, self.last) >= LINE_SECONDS / 5
        if is_new or now - self.last >= LINE_SECONDS:
            one.is_told, self.last = True, now
            self.say(": ".join([*(work.what for work in self.works[:-1]), one.line()]))


class _Bars(_Display):
    """A bar of tqdm for each work, shown a while after it has begun.

    Widgets of a notebook are made where work begins: they belong to the cell of the thread that makes them.
    """

    def begin(self, one: Work) -> None:
        super().begin(one)
        if _is_notebook():
            self._open(one)

    def moved(self, one: Work) -> None:
        with self.lock:
            if one.bar is not None:
                if one.numbers:
                    one.bar.set_postfix({name: f"{value:.6g}" for name, value in one.numbers.items()}, refresh=False)
                one.bar.update(int(one.done) - one.bar.n)

    def end(self, one: Work) -> None:
        with self.lock:
            super().end(one)
            if one.bar is not None:
                one.bar.close()

    def say(self, line: str) -> None:
        _bar_class().write(line, file=sys.stderr)

    def show(self) -> None:
        for one in self.works:
            if one.bar is None and time.monotonic() - one.started >= LINE_SECONDS / 5:
                self._open(one)
        if self.works and self.works[-1].bar is not None:
            self.works[-1].bar.set_description_str(self.works[-1].what)

    @staticmethod
    def _open(one: Work) -> None:
        unit = one.unit if one.unit == "B" else f" {one.unit}"
        form = None if one.unit else "{desc} [{elapsed}]"
        one.bar = _bar_class()(
            desc=one.what, total=one.total, initial=one.initial, unit=unit, unit_scale=one.unit == "B", leave=None,
            bar_format=form,
        )  # fmt: skip
        one.bar.start_t -= time.monotonic() - one.started
        one.bar.n = int(one.done)


_silent = _Display()
_shown: _Display | None = None


@contextmanager
def showing(progress: bool | None = None, write: Callable[[str], None] | None = None) -> Iterator[None]:
    """Show the work of the block.

    Parameters
    ----------
    progress : bool, optional
        False: nothing. True: a bar on a terminal or in a notebook, else lines on stderr. By default as the caller
        shows its own; where that says nothing, like True, but with lines in the log (INFO).
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
    """Do some work in the block, told as :class:`Work` says where the caller shows it."""
    one = Work(_shown or _silent, what, total, unit, initial)
    one._display.begin(one)
    try:
        yield one
    finally:
        one._display.end(one)


def _display_for(progress: bool | None, write: Callable[[str], None] | None) -> _Display:
    if write is not None:
        return _Lines(write)
    if _is_notebook() or sys.stderr.isatty():
        return _Bars()
    return _Lines(_to_stderr if progress else logger.info)


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # at once: print writes the end of the line by itself
    sys.stderr.flush()


def _is_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and "IPKernelApp" in shell.config


@cache
def _bar_class() -> Any:
    """tqdm's bar for where this process is, with a lock of its own.

    tqdm's lock is shared with forked processes: one of them that is killed while it holds it stops all others for ever.
    """
    import tqdm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tqdm.TqdmExperimentalWarning)
        from tqdm.autonotebook import tqdm as best

    class Bar(best):  # type: ignore[type-arg]  # generic in its stubs only
        pass

    Bar.set_lock(threading.RLock())
    return Bar


def _spelt(seconds: float) -> str:
    """ "80 s", "12 min", "2.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
