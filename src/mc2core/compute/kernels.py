"""How kernels are compiled: stored on disk, free of the interpreter's lock, once by all processes that need one at the
same time, and without what Python needs to call them where only kernels do.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numba
from numba.core import event, sigutils
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

from mc2core.base import progress, stopping

_PACKAGE = Path(__file__).parents[1]
#: folders of the package of which no kernel uses anything: after an edit there, stored kernels stay valid
WITHOUT_KERNELS = ("app", "explore")
# of a wait for another process that compiles the same: between two looks, and in all, as that one may be held
_LOOK_SECONDS, _MOST_SECONDS = 0.05, 300.0


@functools.cache
def _sources_digest() -> str:
    """SHA-256 (hex) of the sources of this package that a kernel may be made of, read once a process.

    By contents: files that were copied, unpacked or checked out have other times, or the same for other contents.
    """
    total = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        inside = path.relative_to(_PACKAGE)
        if inside.parts[0] not in WITHOUT_KERNELS:
            total.update(str(inside).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


#: kernels that are compiled or loaded now, each for the one before: one thread at a time does so
_open: list[Any] = []


def _is_inner() -> bool:
    """Whether what is compiled or loaded now is for another kernel."""
    return len(_open) > 1


class SharedCache(FunctionCache):
    """numba's store of the compiled versions of one function: stamped with all sources that it may be made of, and
    written to by one process at a time, which others that need the same version wait for.

    numba stamps it with the file of the function alone: after an edit of what the function calls it goes on with the
    old code. It reads the list of versions, chooses a name for the new one and writes the list again: two processes
    that store versions for different types at once choose the same name, and a third one then runs one of them for
    both. Names hold the number of the function's line: files of older sources would stay for ever.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _sources_digest())
        self._lock: IO[str] | None = None  # of the version that this process compiles now

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _is_inner())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        known = super().load_overload(sig, target_context)
        if known is None and not _is_inner() and self._wait_for_others(sig):
            known = super().load_overload(sig, target_context)
        return known

    def _wait_for_others(self, sig: Any) -> bool:
        """Take the lock of a version, until :meth:`release`; whether another process had it, which may have stored it.

        The lock's file is removed with it: who waits for one that is gone looks into the store next, or compiles.
        """
        version = f"{self._py_func.__module__}.{self._py_func.__qualname__} {sig} {_sources_digest()}"
        name = hashlib.sha256(version.encode()).hexdigest()[:16]
        try:
            path = Path(self.cache_path, f"{name}.compiling")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.open("a")
        except OSError:  # nothing can be stored there either
            return False
        if _has_locked(self._lock):
            return False
        with event.trigger_event("numba:compile", data={"dispatcher": _open[-1], "args": sig, "return_type": None}):
            until = time.monotonic() + _MOST_SECONDS
            while not _has_locked(self._lock) and time.monotonic() < until:
                stopping.look()
                time.sleep(_LOOK_SECONDS)
        return True

    def release(self) -> None:
        """What this process was to compile is stored, or was not to be compiled."""
        if self._lock is not None:
            Path(self._lock.name).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    def save_overload(self, sig: Any, data: Any) -> None:
        folder = Path(self.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "kernels.lock", "a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.seek(0)
            if lock.read() != _sources_digest():
                for path in folder.glob("*.nb[ic]"):
                    path.unlink(missing_ok=True)
                lock.truncate(0)
                lock.write(_sources_digest())
            super().save_overload(sig, data)


def _has_locked(lock: IO[str]) -> bool:
    """Whether a file could be locked at once, or its file system knows no locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


class _Compiling(event.Listener):
    """Tells which kernel is compiled now, and stops for a signal between two passes of the compiler."""

    def __init__(self) -> None:
        self._number = 0
        self._names: list[str] = []  # of kernels, each of which calls the next
        self._work = ExitStack()

    def on_start(self, event: event.Event) -> None:
        if event.kind == "numba:run_pass":
            stopping.look()
        elif _is_ours(event):
            self._number += 1
            self._names.append(event.data["dispatcher"].__name__)
            if len(self._names) == 1:
                self._told = self._work.enter_context(progress.work(""))
            self._tell()

    def on_end(self, event: event.Event) -> None:
        if event.kind == "numba:compile" and _is_ours(event):
            self._names.pop()
            if self._names:
                self._tell()
            else:
                self._work.close()

    def _tell(self) -> None:
        self._told.what = f"compiling kernels (once), number {self._number} ({self._names[-1]})"


def _is_ours(event: event.Event) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith(("mc2core.", "mc2papers."))


# numba lets one thread compile at a time
_compiling = _Compiling()
event.register("numba:compile", _compiling)
event.register("numba:run_pass", _compiling)


@contextmanager
def compile_seconds() -> Iterator[list[float]]:
    """The seconds that kernels were compiled in the block, [] of none; there once the block has ended."""
    seconds: list[float] = []
    with event.install_timer("numba:compile", seconds.append):
        yield seconds


def kernel(function: Callable[..., Any] | None = None, *, allocates: bool = True, **options: Any) -> Any:
    """Decorator: ``numba.njit`` with what all kernels share; ``options`` are those of this one.

    ``allocates`` False: it makes no array, nor does what it calls. No reference to an array is counted then, each count
    being an atomic operation: in a short kernel that is called often these take as long as its work.
    """
    if function is None:
        return lambda function: kernel(function, allocates=allocates, **options)
    options["_nrt"] = allocates
    compiled = numba.njit(nogil=True, **options)(function)
    compiled._cache = SharedCache(function)
    compiled.get_call_template = _without_literals(compiled.get_call_template)
    _without_entry(compiled)
    return compiled


def _without_entry(compiled: Any) -> None:
    """Compile what another kernel calls without entry points for Python and C: a fifth of the time.

    A version that Python calls later is compiled again with them, and stored beside the other.
    """
    add, compile_for = compiled.add_overload, compiled.compile

    def customize(flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = _is_inner()
        return flags

    def has_entry(version: Any) -> bool:
        return version.library.get_pointer_to_function(version.fndesc.llvm_cpython_wrapper_name) != 0

    def add_overload(version: Any) -> None:
        if has_entry(version):
            add(version)
        else:  # known to kernels, and not to what looks for a version that Python may call
            compiled.overloads[tuple(version.signature.args)] = version

    def compile_version(signature: Any) -> Any:
        with global_compiler_lock:
            arguments = tuple(sigutils.normalize_signature(signature)[0])
            known = compiled.overloads.get(arguments)
            if not _open and known is not None and not has_entry(known):
                del compiled.overloads[arguments]
            _open.append(compiled)
            try:
                return compile_for(signature)
            finally:
                _open.pop()
                if not _open:
                    compiled._cache.release()

    compiled._compiler._customize_flags = customize
    compiled.add_overload, compiled.compile = add_overload, compile_version


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
