"""Files that are written whole or not at all, plain arrays, and digests of what a result was made from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path``; on success fsync it and rename it over ``path``.

    A reader sees the old file or the new one, never half of either; after an error the old one stays.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; results are for everyone the folder is for
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder beside ``path``; on success it takes ``path``'s place, on an error ``path`` stays."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
        temporary.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
            os.replace(path, old / "replaced")
            try:
                os.replace(temporary, path)
            except OSError:
                os.replace(old / "replaced", path)
                old.rmdir()
                raise
            shutil.rmtree(old)
        else:
            os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as indented JSON with sorted keys, whole or not at all."""
    with replacing(path) as stream:
        json.dump(value, stream, indent=2, sort_keys=True)
        stream.write("\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file; ValueError names the file and the place of the damage."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as one uncompressed .npz, whole or not at all; object arrays are refused."""
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise ValueError(f"{path}: array {name!r} holds Python objects; only plain numbers and text are stored")
    with replacing(path, "wb") as stream:
        # the stubs take every keyword for `allow_pickle`
        np.savez(stream, **dict(arrays))  # type: ignore[arg-type]


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a .npz written by :func:`write_arrays`; ValueError for one that is damaged, missing or something else."""
    if not Path(path).is_file():
        what = "a folder" if Path(path).is_dir() else "missing"
        raise ValueError(f"{path} is {what}; an array file (.npz) is needed")
    with open(path, "rb") as stream:
        if stream.read(2) != b"PK":
            raise ValueError(f"{path} is not a whole array file: it does not begin as a .npz does")
        stream.seek(0)
        try:
            with np.load(stream, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        # what zipfile raises depends on the damaged byte: a flag reads as encryption, an offset as a failed seek
        except (*_DAMAGE, OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"{path} is not a whole array file: {error}") from error


def digest_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 (hex) of the names, types, shapes and bytes of arrays, independent of their order."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        total.update(memoryview(array.data).cast("B") if array.size else b"")
    return total.hexdigest()


def digest_value(value: Any) -> str:
    """SHA-256 (hex) of a JSON-able value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
