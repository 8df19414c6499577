"""Writing of files without partial results, locks, and storage and checks of arrays."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import stat
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mc2core import __version__

#: what zipfile and NumPy raise for damaged files: a flag reads as encryption, an offset as a failed seek, and a header
#: is handed to Python's parser
_DAMAGE = (
    *(OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, OverflowError, MemoryError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
_FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
_OCCUPIED = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})
_NOT_SUPPORTED = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_DIGEST = "digest"  # of all other arrays of a .npz
_KINDS = {"f": (np.float64, np.float32), "i": (np.int64, np.int32), "n": (np.float64, np.float32, np.int64, np.int32)}
_NAMES = {"f": "floating-point numbers", "i": "whole numbers", "n": "numbers"}


# -- whole or not at all -----------------------------------------------------------------------------------------------
@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add ``path`` to the errors of a full disk and of a limit on the size of files, which do not name a file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        wrapped = OSError(f"{path} could not be written: {os.strerror(error.errno)}")
        wrapped.errno = error.errno  # a folder that the file is in gives its own name
        raise wrapped from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file next to ``path``. On success, the file is synchronised to disk and renamed to ``path``.

    A reader therefore sees the old file or the complete new file. After an error, the old file is kept. Temporary files
    are locked while their process runs. The files of killed processes are removed when ``path`` is next written. If
    ``path`` is a symbolic link, its target is replaced.
    """
    path = _followed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    with naming(path):
        handle, temporary = _temporary_file(path)
    try:
        with naming(path), os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(handle)
            # mkstemp makes private files; results are for everyone the folder is for
            os.fchmod(handle, 0o666 & ~_umask())
            os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _followed(path: str | os.PathLike[str]) -> Path:
    """Return the target of a symbolic link, which may not exist; other paths are returned as they are."""
    return Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)


def refuse_foreign(path: str | os.PathLike[str], known: str, marker: str = "") -> None:
    """Raise ValueError if ``path`` must not be replaced by a new folder.

    This is the case if ``path`` is not a folder, is or contains the current folder, contains an unknown entry, or
    contains entries but not the file ``marker``, which every output has. ``known`` is a regular expression of the
    relative paths of known entries.
    """
    path = Path(path)
    if Path.cwd().is_relative_to(path.resolve()):
        raise ValueError(f"{path} is or contains the current folder, which cannot be replaced; name another folder")
    while True:
        # one look: between two, another process may put its folder in the place of this one
        try:
            if not stat.S_ISDIR(path.stat().st_mode):
                raise ValueError(f"{path} is not a folder; it will not be replaced")
        except FileNotFoundError:
            return
        try:
            entries = sorted(path.rglob("*"))
            break
        except FileNotFoundError:  # another process moved the folder away meanwhile, so the check is repeated
            continue
    for entry in entries:
        if not re.fullmatch(known, entry.relative_to(path).as_posix()):
            raise ValueError(
                f"{path} holds {entry.relative_to(path)}, which is not part of this output; "
                "the folder will not be replaced"
            )
    if marker and entries and path / marker not in entries:
        raise ValueError(
            f"{path} holds {entries[0].relative_to(path)}, but not {marker}, so it is no earlier output; "
            "the folder will not be replaced"
        )


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike[str], known: str = ".*", marker: str = "") -> Iterator[Path]:
    """Yield a new folder that replaces ``path`` on success. After an error, the old folder is kept.

    Files of killed processes are removed as in :func:`replacing`. Raises ValueError if ``path`` contains entries other
    than ``known``, or entries without ``marker`` (:func:`refuse_foreign`). If ``path`` is a symbolic link, its target
    is replaced.
    """
    refuse_foreign(path, known, marker)
    path = _followed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    with naming(path):
        handle, temporary = _temporary_folder(path)
    try:
        new = temporary / "new"
        with naming(path):
            new.mkdir()
            yield new
            for file in new.rglob("*"):
                if file.is_file():
                    with file.open("rb") as stream:
                        os.fsync(stream.fileno())
        _put_in_place(new, path, temporary)
        _sync_folder(path.parent)
    finally:
        try:
            _remove_folder(temporary)
        finally:
            os.close(handle)


def _remove_folder(temporary: Path) -> None:
    """Remove a temporary folder. Its lock is removed last, so that :func:`remove_leftovers` can complete the
    removal."""
    for entry in temporary.iterdir():
        if entry.name != "lock":
            shutil.rmtree(entry, ignore_errors=True)
    shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(new: Path, path: Path, temporary: Path) -> None:
    """Rename ``new`` to ``path``. The old folder is moved into ``temporary``, and moved back if renaming fails."""
    replaced: list[Path] = []
    while True:
        try:
            os.replace(new, path)
            return
        except OSError as error:
            if error.errno not in _OCCUPIED:
                if replaced and not path.exists():
                    os.replace(replaced[-1], path)
                raise
        # another process has just removed it
        with contextlib.suppress(FileNotFoundError):
            os.replace(path, temporary / f"replaced-{len(replaced)}")
            replaced.append(temporary / f"replaced-{len(replaced)}")


def _temporary_file(path: Path) -> tuple[int, Path]:
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.new-", suffix=".part", dir=path.parent)
        if _is_ours(handle, Path(name)):
            return handle, Path(name)


def _temporary_folder(path: Path) -> tuple[int, Path]:
    """Create a folder with a locked file, because not every file system can lock a folder."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.new-", suffix=".part", dir=path.parent))
        with contextlib.suppress(FileNotFoundError):  # mistaken for the file of a killed process before it was locked
            folder.chmod(0o777 & ~_umask())
            handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if _is_ours(handle, folder / "lock"):
                return handle, folder


def _is_ours(handle: int, path: Path) -> bool:
    """Lock a new file, and return whether it still exists. Another process may have removed it as a leftover; the file
    is then closed."""
    take_lock(handle, wait=True)
    if path.exists():
        return True
    os.close(handle)
    return False


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of killed processes next to ``path``. If a file can be locked, its process has ended.

    If a process was killed after it moved the old folder away, its complete new folder is renamed to ``path``.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.new-[a-z0-9_]{{8}}\.part")
    for entry in sorted(path.parent.iterdir()):
        if not ours.fullmatch(entry.name):
            continue
        is_folder = entry.is_dir()
        is_used = is_folder and any(entry.iterdir())  # after it was locked
        try:
            handle = os.open(entry / "lock" if is_folder else entry, os.O_RDWR)
        except FileNotFoundError:
            if is_used:  # whose removal was interrupted
                shutil.rmtree(entry, ignore_errors=True)
            with contextlib.suppress(OSError):  # only an empty one: nothing was locked there yet
                entry.rmdir()
            continue
        except PermissionError:
            continue  # another user's
        try:
            if take_lock(handle, wait=False):
                if is_folder and any(entry.glob("replaced-*")) and (entry / "new").exists() and not path.exists():
                    os.replace(entry / "new", path)
                _remove_folder(entry) if is_folder else entry.unlink(missing_ok=True)
        finally:
            os.close(handle)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- locks, which the system drops with the process that holds them: whoever gets one knows the holder is gone ---------
def take_lock(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file until it is closed. Return whether it was locked, or None if the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NOT_SUPPORTED:
            return None
        raise
    return True


@contextlib.contextmanager
def exclusive_lock(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Hold the lock of ``path`` within the block.

    The lock is a file ``.<name>.lock`` next to ``path``, which is removed at the end, as are empty folders that were
    created for it. Raises ValueError if another process holds the lock. ``what`` describes such a process.
    """
    path = Path(path)
    new = [folder for folder in path.parents if not folder.exists()]
    lock = path.with_name(f".{path.name}.lock")
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # another holder ended, and removed the folder, between the two calls
        if take_lock(handle, wait=False) is False:
            os.close(handle)
            raise ValueError(f"{path} is in use by {what} that is still running; wait for it or write elsewhere")
        if _is_at(handle, lock):
            break
        os.close(handle)  # its holder ended, and removed it, between the two calls
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
        with contextlib.suppress(OSError):  # one that is in use, and those it is in
            for folder in new:
                folder.rmdir()


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


# -- JSON and arrays ---------------------------------------------------------------------------------------------------
def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as indented JSON with sorted keys (:func:`replacing`)."""
    with replacing(path) as stream:
        json.dump(value, stream, indent=2, sort_keys=True)
        stream.write("\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value of a JSON file. Raises ValueError, with the file and the place of the damage."""
    try:
        return parse_json(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is damaged."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def check_json(meta: Any, described: Mapping[str, Any]) -> None:
    """Raise ValueError unless ``meta`` is a dict whose values have the forms in ``described``, by key.

    A form is a type, [form] for a list, {str: form} for an object, None, or a tuple of alternative forms.
    """
    if not isinstance(meta, dict):
        raise ValueError(f"its description is {str(meta)[:60]!r}")
    for name, form in described.items():
        if not _has_form(meta.get(name), form):
            raise ValueError(f"{name!r} is {str(meta.get(name))[:60]!r}")


def _has_form(value: Any, form: Any) -> bool:
    if isinstance(form, tuple):
        return any(_has_form(value, one) for one in form)
    if isinstance(form, list):
        return isinstance(value, list) and all(_has_form(one, form[0]) for one in value)
    if isinstance(form, dict):
        return isinstance(value, dict) and all(_has_form(one, form[str]) for one in value.values())
    return value is None if form is None else isinstance(value, form) and not isinstance(value, bool)


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as .npy, like ``numpy.save``. If the disk is full, the error names the file."""
    array = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    with naming(path), path.open("wb") as stream:
        stream.write(header.getvalue())
        stream.write(_bytes_of(array))


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays and their digest as an uncompressed .npz (:func:`replacing`). Object arrays raise
    ValueError."""
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise ValueError(f"{path}: array {name!r} holds Python objects; only plain numbers and text are stored")
    with replacing(path, "wb") as stream:
        # the stubs take every keyword for `allow_pickle`
        np.savez(stream, **{**arrays, _DIGEST: np.array(digest_arrays(arrays))})  # type: ignore[arg-type]


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a file of :func:`write_arrays`. Raises ValueError if the file is damaged or missing."""
    return read_signed(path)[0]


def read_signed(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], str]:
    """Return the arrays of :func:`read_arrays` and their digest."""
    path = Path(path)
    if not path.is_file():
        problem = "a folder" if path.is_dir() else "missing"
        corpus = " that holds a corpus" if (path / "corpus.json").is_file() else ""
        raise ValueError(f"{path} is {problem}{corpus}; the folder of a fit or an array file (.npz) is needed")
    try:
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:  # before NumPy parses damaged data
                raise ValueError(f"{damaged} is damaged")
            arrays = {name.removesuffix(".npy"): _read_member(archive, name) for name in archive.namelist()}
    except _DAMAGE as error:
        raise ValueError(f"{path} is not a complete array file: {error}") from error
    stored, digest = str(arrays.pop(_DIGEST, "")), digest_arrays(arrays)
    if stored != digest:
        raise ValueError(
            f"{path} was changed after it was written, or not written by mc2core: the digest of its arrays differs"
        )
    return arrays, digest


def _read_member(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def map_array(path: Path) -> np.ndarray:
    """Return the array of a .npy file, memory-mapped and read-only. Raises ValueError if it is missing or damaged."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except _DAMAGE as error:
        raise ValueError(f"{path} is not a complete array file: {error}") from error


def _bytes_of(array: np.ndarray) -> memoryview:
    """Return the bytes of an array in C order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).data if flat.nbytes else memoryview(b"")


def digest_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 (hex) of the names, types, shapes and bytes of arrays, independent of their order."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        total.update(_bytes_of(array))
    return total.hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 (hex) of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_path(path: Path) -> str:
    """Return the SHA-256 (hex) of a file, or of the names and contents of all files of a folder."""
    if not path.is_dir():
        return digest_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return digest_value({file.relative_to(path).as_posix(): digest_file(file) for file in files})


def digest_value(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON-able value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# -- what stored arrays must be ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Stored:
    """Required form of a stored array.

    Attributes
    ----------
    kind : str
        "f" for floating-point numbers, "i" for whole numbers, "n" for either, of 32 or 64 bits.
    shape : str
        Size of each dimension, as a number or a letter, such as "2 K-1" or "J"; "" for a single value. The size of a
        letter that is not known is taken from the first array with this letter.
    below : str
        Letter of the size below which all values must be, if they are indices; -1 stands for no index.
    """

    kind: str
    shape: str
    below: str = ""


def check_format(found: object, known: str) -> None:
    """Raise ValueError unless the format ``found`` of a file, "mc2core KIND VERSION", is the ``known`` format."""
    if found == known:
        return
    kind, version = known.rsplit(" ", 1)
    its_kind, _, its_version = str(found).rpartition(" ")
    if its_kind == kind and its_version.isdecimal() and int(its_version) > int(version):
        raise ValueError(
            f"its format is {found!r}, of a newer mc2core than {__version__}, which reads {known!r}: update mc2core"
        )
    raise ValueError(f"its format is {found!r}, not {known!r}")


def check_arrays(
    arrays: Mapping[str, np.ndarray], described: Mapping[str, Stored], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Check the forms of the described arrays, and return ``sizes`` completed by the sizes of further letters.

    Raises ValueError, with the name of the array, its form and the required form.
    """
    sizes = dict(sizes)
    for name, stored in described.items():
        if name not in arrays:
            raise ValueError(f"{name!r} is missing")
        array = arrays[name]
        if array.dtype not in _KINDS[stored.kind]:
            raise ValueError(f"{name!r} holds {array.dtype}; {_NAMES[stored.kind]} of 32 or 64 bits are needed")
        sizes = _fit(name, array.shape, stored.shape, sizes)
        if stored.below and array.size and not -1 <= array.min() <= array.max() < sizes[stored.below]:
            raise ValueError(f"{name!r} holds an index that is not below {sizes[stored.below]}")
    return sizes


def _fit(name: str, shape: tuple[int, ...], required: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return ``sizes`` completed by letters of ``required``. Raises ValueError if ``shape`` does not fit."""
    letters = required.split()
    by_letter = {letter: length for letter, length in zip(letters, shape, strict=False) if letter.isalpha()}
    sizes = {**by_letter, **sizes}
    expected = tuple(_size(one, sizes) for one in letters)
    if shape != expected:
        raise ValueError(f"{name!r} has the shape {shape}; {expected} is needed")
    return sizes


def _size(text: str, sizes: Mapping[str, int]) -> int | None:
    letter, _, offset = text.partition("-")
    if letter.isdigit():
        return int(letter)
    return sizes[letter] - int(offset or 0) if letter in sizes else None
