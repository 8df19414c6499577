"""How kernels are compiled: stored on disk, free of the interpreter's lock, safe beside others that compile."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Mapping, Sequence
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
    compiled.get_call_template = _without_literals(compiled.get_call_template)
    return compiled


def _without_literals(get_call_template: Callable[..., Any]) -> Callable[..., Any]:
    """Called by another kernel, take constants as any value of their type, and 32-bit integers as 64-bit ones.

    numba compiles one more version of a function, and of all that it calls, for each constant an argument is.
    """

    def general(argument: Any) -> Any:
        argument = numba.types.unliteral(argument)
        return numba.types.int64 if argument == numba.types.int32 else argument

    def get_general_call_template(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        keywords = {name: general(argument) for name, argument in keywords.items()}
        return get_call_template(tuple(general(argument) for argument in arguments), keywords)

    return get_general_call_template
