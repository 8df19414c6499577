"""Storage of compiled kernels: folder, checksums, and locks for processes that compile.

numba's cache does not verify its files. Two processes that store versions of one function at the same time can
overwrite each other's files. A new index next to old versions can refer to a version that was compiled for other types.
Therefore, each version of the package's code has its own folder, with a subfolder for each version of a kernel's source
file. A process removes files that do not match their checksums before it uses its first kernel, and before it stores a
kernel. Several processes can compile at the same time, but only one stores at a time. Fits with the same engine, which
compile the same kernels, compile one after the other.
"""

from __future__ import annotations

import ast
import atexit
import functools
import hashlib
import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import numba

from mc2core.base import progress, stopping, storage

_PACKAGE = Path(__file__).parents[1]
#: folders of the package without kernels; changes in these folders do not invalidate stored kernels
WITHOUT_KERNELS = ("app", "explore")
_CHECKSUMS = "checksums"
_WAIT_SECONDS = 0.05
_PROBE_BYTES, _MIN_FREE_BYTES = 2**20, 2**26
_KEPT_FOLDERS = 3  # number of folders of earlier code versions that are not removed


# -- folder --------------------------------------------------------------------------------------------------------
@functools.cache
def folder() -> Path | None:
    """Return the folder for the compiled kernels of this version of the code; None if nothing can be stored.

    The folder is in ``NUMBA_CACHE_DIR`` if it is set, otherwise next to the package or in the user's cache folder. If
    no place is writable, or the disk is full, a temporary copy of existing kernels is used until the process ends.
    """
    for place in _places():
        if _can_write(place):
            return place / _digest(place)
    if any((place / _digest(None)).is_dir() for place in _places()):
        with suppress(OSError):
            temporary = Path(tempfile.mkdtemp(prefix="mc2-kernels-"))
            atexit.register(shutil.rmtree, temporary, ignore_errors=True)
            if _can_write(temporary):
                return temporary / _digest(None)
    return None


def folder_of(function: FunctionType) -> Path | None:
    """Return the folder for the compiled versions of a kernel; each version of its source file has its own folder."""
    current = folder()
    if current is not None:
        with suppress(OSError):  # the function has no source file, as in a notebook
            about = Path(function.__code__.co_filename).stat()
            return current / f"{about.st_mtime_ns}-{about.st_size}"
    return current


@functools.cache  # cached, because numba's folder setting is changed while a kernel is decorated
def _places() -> list[Path]:
    config: Any = numba.config
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR, "mc2core-kernels").absolute()]
    places = [_PACKAGE / "__pycache__" / "kernels"]
    with suppress(RuntimeError):  # there is no home folder
        places.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "mc2core", "kernels"))
    return places


def _can_write(place: Path) -> bool:
    """Return whether files can be written and locked in ``place``, and whether it has space for all kernels."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(bytes(_PROBE_BYTES))  # fails if a quota is exceeded, which the free space does not reveal
            probe.flush()
        with open(_open(place / "storing.lock")) as lock:
            can_lock = storage.take_lock(lock.fileno(), wait=False) is not None
        return can_lock and shutil.disk_usage(place).free >= _MIN_FREE_BYTES
    except OSError:
        return False


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


# -- digest of the sources -----------------------------------------------------------------------------------------
def _sources() -> list[Path]:
    inside = [path.relative_to(_PACKAGE) for path in sorted(_PACKAGE.rglob("*.py"))]
    return [_PACKAGE / path for path in inside if path.parts[0] not in WITHOUT_KERNELS]


def _digest(place: Path | None) -> str:
    """Return the name of the folder: a digest of the code and of the versions of Python and numba.

    Comments and docstrings do not affect the digest. Parsing all files takes a second, so the result is stored in
    ``place`` under the digest of the file contents.
    """
    contents = hashlib.sha256(f"{platform.python_version()} {numba.__version__}\0".encode())
    for path in _sources():
        contents.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return _code_digest(contents.hexdigest()[:16], place)


@functools.cache
def _code_digest(contents: str, place: Path | None) -> str:
    """Return the digest of the code without comments and docstrings, given the digest ``contents`` of the files."""
    name = f"{contents}.code"
    for known in [place] if place else _places():
        with suppress(OSError):
            kept = (known / name).read_bytes()
            # a damaged digest names a folder that does not exist, so no wrong kernels are loaded
            if len(kept) == 16 and set(kept) <= set(b"0123456789abcdef"):
                return kept.decode()
    digest = hashlib.sha256(f"{platform.python_version()} {numba.__version__}\0".encode())
    for path in _sources():
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
                del node.body[0]
        digest.update(f"{path.relative_to(_PACKAGE)}\0{ast.dump(tree)}\0".encode())
    if place:
        with suppress(OSError), storage.replacing(place / name) as stream:
            stream.write(digest.hexdigest()[:16])
    return digest.hexdigest()[:16]


# -- checksums -----------------------------------------------------------------------------------------------------
def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name in the list of checksums, and the path, of each file that numba has stored."""
    for path in sorted(folder.glob("*/*/*")):
        yield path.relative_to(folder).as_posix(), path


@functools.cache
def _known_checksum(path: Path, size: int, modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _checksum(path: Path) -> str | None:
    """Return the SHA-256 digest of a file in hexadecimal; None if the file cannot be read."""
    try:
        about = path.stat()
        return _known_checksum(path, about.st_size, about.st_mtime_ns)
    except OSError:
        return None


def _listed(folder: Path) -> dict[str, str]:
    """Return the checksums of the stored files; {} if the list is missing or unreadable."""
    try:
        lines = (folder / _CHECKSUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}


def _write_checksums(folder: Path) -> None:
    """Write the list of the checksums of all files.

    The list is not synchronised to disk, because this is slow. If it is lost, kernels are compiled again.
    """
    stored = [(name, path) for name, path in _files(folder) if path.suffix in (".nbi", ".nbc")]
    lines = [f"{checksum}  {name}\n" for name, path in stored if (checksum := _checksum(path))]
    # if the list cannot be written, as on a full disk, the files are removed before their next use
    with suppress(OSError):
        new = folder / f"{_CHECKSUMS}.new"
        new.write_text("".join(lines), encoding="utf-8")
        new.replace(folder / _CHECKSUMS)


def _remove_damaged(folder: Path) -> None:
    """Remove each file that does not match its checksum or has no checksum, such as a file of a killed process.

    If the index of a kernel is removed, its versions are removed too, because numba would reuse their numbers.
    """
    listed = _listed(folder)
    if not listed:
        _remove(folder / _CHECKSUMS)
    kept = {name for name, path in _files(folder) if name in listed and listed[name] == _checksum(path)}
    for name, path in _files(folder):
        index = f"{name.removesuffix('.nbc').rpartition('.')[0]}.nbi" if name.endswith(".nbc") else name
        if not {name, index} <= kept:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _copy_from(earlier: Path, folder: Path) -> None:
    """Copy the kernels from a folder that is read-only or full, such as the folder of a container image."""
    with suppress(OSError):
        for name, path in ((_CHECKSUMS, earlier / _CHECKSUMS), *_files(earlier)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)


def _remove_old(place: Path, now: Path) -> None:
    """Remove the kernels of earlier code versions, except the most recently used folders."""
    others = [path for path in place.iterdir() if path.is_dir() and path != now]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_KEPT_FOLDERS:]:
        shutil.rmtree(path, ignore_errors=True)
    names = {path.name for path in (now, *others[:_KEPT_FOLDERS])}
    for path in place.glob("*.code"):
        if path.read_text(errors="replace") not in names:
            path.unlink(missing_ok=True)


# -- locks between processes ----------------------------------------------------------------------------------------
class Store:
    """Access of this process to the stored kernels. Its methods are thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._is_checked = False
        self._turns: list[str] = []  # names of the running blocks of :meth:`taking_turns`, in all threads
        self._locks: set[int] = set()  # file descriptors of open lock files
        self._turn: int | None = None  # descriptor of the lock file of the current turn

    def check(self) -> None:
        """Remove damaged files, once per process, before numba reads the first file."""
        if self._is_checked:
            return
        with self._mutex:
            current = folder()
            if current is not None and not self._is_checked:
                with self._locked(current):
                    self._clean(current)
            self._is_checked = True

    def _clean(self, current: Path) -> None:
        current.mkdir(exist_ok=True)
        if not (current / _CHECKSUMS).exists():
            with suppress(OSError):
                _remove_old(current.parent, current)
            for earlier in _places():
                if earlier != current.parent and (earlier / current.name).is_dir():
                    _copy_from(earlier / current.name, current)
        _remove_damaged(current)
        os.utime(current)

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Prevent other processes from storing or removing files while the block runs, then write the checksums.

        Damaged files are removed before the block.
        """
        current = folder()
        assert current is not None
        with self._locked(current):
            _remove_damaged(current)
            yield
            _write_checksums(current)

    @contextmanager
    def _locked(self, current: Path) -> Iterator[None]:
        lock = self._wait_for(current.parent / "storing.lock", "stores kernels")
        try:
            yield
        finally:
            self._close(lock)

    def _wait_for(self, path: Path, does: str) -> int:
        """Lock a file, waiting for other processes, and return its descriptor.

        ``does`` describes the work of the other process in the progress display.
        """
        lock = _open(path)
        self._locks.add(lock)
        try:
            if storage.take_lock(lock, wait=False) is False:
                with progress.work(f"waiting for another process that {does}"):
                    while storage.take_lock(lock, wait=False) is False:
                        stopping.check()
                        time.sleep(_WAIT_SECONDS)
        except BaseException:
            self._close(lock)
            raise
        return lock

    def _close(self, lock: int) -> None:
        os.close(lock)
        self._locks.discard(lock)

    @contextmanager
    def taking_turns(self, what: str) -> Iterator[None]:
        """Make other processes that compile ``what`` wait, from the first compiled kernel to the end of the block.

        The other processes then load the stored kernels instead of compiling them again. ``what`` becomes part of the
        name of the lock file.
        """
        with self._mutex:
            self._turns.append(what)
        try:
            yield
        finally:
            with self._mutex:
                if what in self._turns:  # the list is empty in a forked process
                    self._turns.remove(what)
                if not self._turns and self._turn is not None:
                    self._close(self._turn)
                    self._turn = None

    def await_turn(self) -> None:
        """Wait for other processes before the first kernel of a block :meth:`taking_turns` is compiled."""
        with self._mutex:
            current = folder()
            if current is not None and self._turns and self._turn is None:
                self._turn = self._wait_for(current.parent / f"{self._turns[0]}.lock", "compiles the same kernels")

    def forget(self) -> None:
        """Close all locks in a forked process, because they belong to the parent process."""
        for lock in self._locks:
            os.close(lock)  # the file stays locked by the parent's descriptor
        self._mutex, self._turns, self._locks, self._turn = threading.RLock(), [], set(), None


store = Store()
os.register_at_fork(after_in_child=store.forget)
