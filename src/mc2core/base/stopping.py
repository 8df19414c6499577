"""Stop a process on a signal (SIGINT, SIGTERM) at a moment that leaves nothing incomplete.

Python's handler raises an exception at any moment. If the signal arrives during a call to compiled code, the exception
can turn into a SystemError. If it arrives in a callback, the exception can be lost. Therefore, long work only records
the first signal, and checks for signals between two steps. Other code is stopped at once. Long work is stopped at once
by a second signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_AGAIN_SECONDS = 0.1


class _Interrupted(KeyboardInterrupt):
    """Exception that the handler raises for SIGINT within :func:`install`, in place of KeyboardInterrupt.

    A plain KeyboardInterrupt may pass through ``exec`` of a text, as in many imports. Python then ends the process by
    the signal, even if the exception was caught and the process has an exit code.
    """


class _State:
    """Signals received since :func:`install` began, and numbers of enclosing blocks that defer or flush.

    The class is not a dataclass, because the import of dataclasses would delay the handling of signals.
    """

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.is_installed = False
        self.deferring = 0
        self.flushing = 0


_state = _State()


def stop(number: int) -> NoReturn:
    """Raise KeyboardInterrupt for SIGINT, or SystemExit with the code 128 + ``number`` for other signals."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def check() -> None:
    """Stop if a signal was recorded, except within :func:`flush` and outside of the main thread."""
    if _state.seen and not _state.flushing and _is_main_thread():
        stop(_state.seen[0])


def is_asked() -> bool:
    """Return whether a recorded signal is waiting to be handled."""
    return bool(_state.seen)


@contextmanager
def install() -> Iterator[None]:
    """Handle signals in the block. If a signal causes any error, the block ends with the exception of :func:`stop`."""
    if _state.is_installed or not _is_main_thread():
        yield
        return
    _state.is_installed, before = True, {number: signal.getsignal(number) for number in _NUMBERS}
    hook = sys.unraisablehook
    sys.unraisablehook = lambda lost: _send_again() if _state.seen else hook(lost)
    try:
        for number in _NUMBERS:
            signal.signal(number, _handle)
        yield
    except (_Interrupted, Exception) as error:
        if not _state.seen:
            raise
        _stop_for(error)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        _state.is_installed = False
        _state.seen.clear()


@contextmanager
def defer() -> Iterator[None]:
    """Delay the first signal in the block until :func:`check` is called or the block ends."""
    with install():
        if not _is_main_thread():
            yield
            return
        _state.deferring += 1
        try:
            yield
        finally:
            _state.deferring -= 1
        check()


@contextmanager
def flush() -> Iterator[list[int]]:
    """Delay the first signal beyond the block, so that the block can save its results. Yields the list of signals."""
    with install():
        if not _is_main_thread():
            yield []
            return
        _state.deferring += 1
        _state.flushing += 1
        try:
            yield _state.seen
        finally:
            _state.deferring -= 1
            _state.flushing -= 1


def _handle(number: int, frame: FrameType | None) -> None:
    _state.seen.append(number)
    if len(_state.seen) > 1 or not _state.deferring:
        if number == signal.SIGINT:
            raise _Interrupted
        stop(number)


def _send_again() -> None:
    """Send the first signal again, because the exception of the handler was lost in a callback or finaliser."""
    timer = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), _state.seen[0]))
    timer.daemon = True
    timer.start()


def _stop_for(error: BaseException) -> NoReturn:
    """Raise the exception of :func:`stop` for the first signal, which caused ``error``."""
    try:
        stop(_state.seen[0])
    except BaseException as ending:
        raise ending from (None if isinstance(error, KeyboardInterrupt) else error)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
