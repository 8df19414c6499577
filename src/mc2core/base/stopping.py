"""Stop a process on request (SIGINT, SIGTERM) at a moment that leaves nothing incomplete.

Python's handler raises an exception at any moment. In a call of compiled code, this exception becomes another error
(SystemError), or is lost in a callback. Therefore, long work only records the first signal, and checks for it between
two steps. Other code is stopped at once, and so is long work after a second signal.
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
    """Exception that the handler raises for SIGINT within :func:`install`.

    It replaces KeyboardInterrupt: if a plain KeyboardInterrupt has passed through ``exec`` of a text, as in many
    imports, Python ends the process by the signal, even if the exception was caught and the process has an exit code.
    """


class _State:
    """Signals since :func:`install` began, and how many blocks around this moment do what with them.

    No dataclass: to load that takes longer than all else that a command does before it handles signals.
    """

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.is_installed = False
        self.deferring = 0
        self.flushing = 0


_state = _State()


def stop(number: int) -> NoReturn:
    """End as the signal asks: KeyboardInterrupt, or SystemExit with the code 128 + ``number``."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def check() -> None:
    """Stop here if a signal was noted; not in :func:`flush`, and only in the main thread."""
    if _state.seen and not _state.flushing and _is_main_thread():
        stop(_state.seen[0])


def is_asked() -> bool:
    """Return whether a signal was received to which nothing has reacted yet."""
    return bool(_state.seen)


@contextmanager
def install() -> Iterator[None]:
    """Handle signals in the block. The block ends as :func:`stop` does, whatever error a signal causes."""
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
    """Delay the first signal in the block, so that the block can save its results; yields the signals so far."""
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
    """Send the signal again, because the exception of the handler was lost in a callback or a finaliser."""
    timer = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), _state.seen[0]))
    timer.daemon = True
    timer.start()


def _stop_for(error: BaseException) -> NoReturn:
    """Stop because of the first signal, which caused ``error``."""
    try:
        stop(_state.seen[0])
    except BaseException as ending:
        raise ending from (None if isinstance(error, KeyboardInterrupt) else error)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
