"""How kernels are compiled: stored on disk, free of the interpreter's lock, safe beside others that compile."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache


class SharedCache(FunctionCache):
    """numba's store of the compiled versions of one function, written to by one process at a time.

    numba reads the list of versions, chooses a name for the new one and writes the list again. Two processes that store
    versions for different types at once choose the same name, and a third one then runs one of them for both.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        folder = Path(self.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "kernels.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            super().save_overload(sig, data)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: ``numba.njit`` with what all kernels share; ``options`` are those of this one."""
    if function is None:
        return lambda function: kernel(function, **options)
    compiled = numba.njit(nogil=True, **options)(function)
    compiled._cache = SharedCache(function)
    return compiled
