"""Compilation of kernels, which release Python's global lock and are stored on disk for later processes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.extending import overload

from mc2core.base import progress, stopping
from mc2core.compute.kernel_store import folder, folder_of, store

# All kernels share these options, since numba compiles an inner function again for each set of options of its callers.
# With the error model "numpy", a division by zero gives inf or nan.
_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
_decorating = threading.Lock()  # numba has a single folder setting for all threads


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorate a function to be compiled by ``numba.njit``, with the options of all kernels and further ``options``."""
    if function is None:
        return lambda function: kernel(function, **options)
    options = {**_OPTIONS, **options}
    if (stored := folder_of(function)) is not None:  # type: ignore[arg-type]
        config: Any = numba.config
        with _decorating:
            given, config.CACHE_DIR = config.CACHE_DIR, str(stored)
            try:
                compiled = numba.njit(cache=True, **options)(function)
                if _is_stored(compiled):
                    return compiled
            except RuntimeError:  # numba cannot write to any folder, or the function has no source file
                pass
            finally:
                config.CACHE_DIR = given
    return numba.njit(**options)(function)


def inner_kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorate a function that only kernels call; it is compiled as part of each kernel that calls it.

    An inner kernel has no entry point for Python and no separate versions for constant arguments. This halves the
    compilation time.
    """
    if function is None:
        return lambda function: inner_kernel(function, **options)
    inner = _Inner(function, options)
    jit_options: Any = {**_OPTIONS, **options}
    overload(inner, jit_options=jit_options, strict=False)(lambda *arguments, **named: function)
    return inner


class _Inner:
    """Wrapper of an inner kernel, which compiles the function as a separate kernel if Python calls it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._options = function, options

    @functools.cached_property
    def _kernel(self) -> Any:
        return kernel(self.py_func, **self._options)

    def __call__(self, *arguments: Any) -> Any:
        return self._kernel(*arguments)


def _is_stored(dispatcher: Any) -> bool:
    stats = getattr(dispatcher, "stats", None)
    return stats is not None and stats.cache_path is not None and folder() in Path(stats.cache_path).parents


class _Compiling(event.Listener):
    """Listener for numba's events: locks the store while a kernel is stored, shows progress and reacts to signals.

    numba stores a compiled version after the end of the event "numba:compile" and before the end of
    "numba:compiler_lock". Signals are checked between two compiler passes.
    """

    def __init__(self) -> None:
        self._here = threading.local()  # depth of the compiler lock, and the depth at which this thread stores a kernel
        self._number = 0
        self._names: list[str] = []  # kernels being compiled; each calls the next
        self._work = ExitStack()

    def on_start(self, event: event.Event) -> None:
        if event.kind == "numba:run_pass":
            stopping.check()
        elif event.kind == "numba:compiler_lock":
            store.check()
            self._here.depth = getattr(self._here, "depth", 0) + 1
        elif _is_ours(event):
            self._number += 1
            self._names.append(event.data["dispatcher"].__name__)
            if len(self._names) == 1:
                self._told = self._work.enter_context(progress.work("", is_aside=True))
            if _is_stored(event.data["dispatcher"]):
                self._told.what = "kernels"  # short, so that a message about waiting fits into a narrow terminal
                store.await_turn()
            self._tell()

    def on_end(self, event: event.Event) -> None:
        if event.kind == "numba:compiler_lock":
            if getattr(self._here, "stored_at", 0) == self._here.depth:
                self._here.stored_at = 0
                self._here.storing.close()
            self._here.depth -= 1
        elif event.kind == "numba:compile" and _is_ours(event):
            self._names.pop()
            if self._names:
                self._tell()
            else:
                self._work.close()
            if _is_stored(event.data["dispatcher"]):
                self._here.storing, self._here.stored_at = ExitStack(), self._here.depth
                self._here.storing.enter_context(store.storing())

    def _tell(self) -> None:
        self._told.what = f"compiling kernels (once), number {self._number} ({self._names[-1]})"


def _is_ours(event: event.Event) -> bool:
    dispatcher = event.data["dispatcher"]
    return _is_stored(dispatcher) or str(dispatcher.py_func.__module__).startswith(("mc2core.", "mc2papers."))


numba.njit(lambda: None)  # initialises numba's compiler before the listener is registered
_compiling = _Compiling()  # needs no lock, since numba compiles in one thread at a time
for _kind in ("numba:compile", "numba:compiler_lock", "numba:run_pass"):
    event.register(_kind, _compiling)


@contextmanager
def compile_seconds() -> Iterator[list[float]]:
    """Yield a list to which, after the block, the total compilation time in seconds is appended, if it is not 0."""
    seconds: list[float] = []
    with event.install_timer("numba:compile", seconds.append):
        yield seconds
