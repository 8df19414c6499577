"""Read members of zip and tar archives into memory, with limits; nothing is unpacked to disk.

An archive from the network may be truncated. A few kilobytes may unpack to terabytes. An archive may contain links,
duplicate names, or names that lead out of a folder. The declared sizes are not trusted: reading stops at the limit.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import posixpath
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, cast

from mc2core.base.xmlstream import LONGEST_MAGIC, inflater

MAX_MEMBER_BYTES = 256 * 2**20
MAX_TOTAL_BYTES = 1024 * 2**20
MAX_MEMBERS = 100_000
_TAR_END = 1024

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,  # "Invalid data stream" (bz2), "Not a gzipped file" (gzip)
    NotImplementedError,  # a compression method that this Python lacks
    RuntimeError,  # an encrypted zip member
    ValueError,  # negative sizes and offsets in a forged header
    OverflowError,
    IndexError,  # zipfile and tarfile on forged extra fields and headers
    struct.error,
)


class ArchiveError(ValueError):
    """An archive that is damaged, unsafe or too large; the message is one sentence with the name of the file."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise ArchiveError with ``path`` for all errors that libraries raise on a damaged archive."""
    try:
        yield
    except ArchiveError:
        raise
    except _DAMAGE as error:
        raise ArchiveError(f"{path} is damaged or cut off: {_reason(error)}") from error


class _TarInput:
    """The decompressed stream of a tar archive, which stops at ``limit`` bytes and remembers its last bytes."""

    def __init__(self, stream: IO[bytes], path: Path, limit: int) -> None:
        self._stream, self._path, self._limit = stream, path, limit
        self._seen, self._last = 0, b""

    def read(self, size: int) -> bytes:
        block = self._stream.read(size)
        self._seen += len(block)
        if self._seen > self._limit:
            raise _too_large(str(self._path), self._limit)
        self._last = (self._last + block)[-_TAR_END:]
        return block

    def finish(self) -> None:
        """Read to the end, to verify the checksum of a compressed stream and the final zeros of a tar archive."""
        while self.read(1 << 16):
            pass
        if len(self._last) < _TAR_END or any(self._last):
            raise EOFError("the end mark is missing")


def iterate_members(
    path: str | os.PathLike[str],
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    max_member_bytes: int = MAX_MEMBER_BYTES,
    max_total_bytes: int = MAX_TOTAL_BYTES,
    max_members: int = MAX_MEMBERS,
) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each wanted file of a zip or tar (plain, gz, bz2, xz), in the archive's order.

    Parameters
    ----------
    wanted : function of the name of a member ("folder/file.txt"). Unwanted members of a zip are not decompressed.
    max_member_bytes, max_total_bytes : limits of decompressed sizes. Skipped members of a tar count in the total.

    Raises
    ------
    ArchiveError
        (A ValueError.) If the file is not an archive, is cut off, encrypted or above a limit, has a wrong CRC, an
        absolute name, a name with ".." or a duplicate name, or if a requested member is a link or a device.
    """
    path = Path(path)
    if not path.is_file():
        raise ArchiveError(f"{path} is missing")
    walk = _zip_members(path) if _starts_with(path, b"PK") else _tar_members(path, max_total_bytes)
    seen: set[str] = set()
    total = 0
    with reading(path):
        for number, (name, read) in enumerate(walk):
            if number >= max_members:
                raise ArchiveError(f"{path} has more than {max_members} members, the most that is allowed")
            if read is not None:
                name = _safe_name(path, name)
                if name in seen:
                    raise ArchiveError(f"{path} has two members named {name!r}")
                seen.add(name)
                if wanted(name):
                    content = read(min(max_member_bytes, max_total_bytes - total) + 1)
                    total += len(content)
                    if len(content) > max_member_bytes:
                        raise _too_large(f"{path}: {name}", max_member_bytes)
                    if total > max_total_bytes:
                        raise _too_large(str(path), max_total_bytes)
                    yield name, content


def read_members(
    path: str | os.PathLike[str],
    names: Collection[str],
    *,
    max_member_bytes: int = MAX_MEMBER_BYTES,
    max_total_bytes: int = MAX_TOTAL_BYTES,
) -> dict[str, bytes]:
    """Return the contents of the members whose file name is in ``names``, in any folder of the archive.

    Raises ArchiveError like :func:`iterate_members`, and also if a name is missing or occurs in two folders.
    """
    found: dict[str, bytes] = {}
    limits = {"max_member_bytes": max_member_bytes, "max_total_bytes": max_total_bytes}
    for member, content in iterate_members(path, lambda name: posixpath.basename(name) in names, **limits):
        name = posixpath.basename(member)
        if name in found:
            raise ArchiveError(f"{path} holds {name} in two folders")
        found[name] = content
    for name in names:
        if name not in found:
            raise ArchiveError(f"{path} has no member {name}")
    return found


Read = Callable[[int], bytes]


def _zip_members(path: Path) -> Iterator[tuple[str, Read | None]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():

            def read(size: int, info: zipfile.ZipInfo = info) -> bytes:
                with archive.open(info) as stream:
                    return stream.read(size)

            yield info.filename, None if info.filename.endswith("/") else read


def _tar_members(path: Path, limit: int) -> Iterator[tuple[str, Read | None]]:
    with path.open("rb") as stream:
        opener = inflater(stream.read(LONGEST_MAGIC)) or open
    with opener(path, "rb") as stream:
        source = _TarInput(stream, path, limit)
        # "r|" reads forward only, so that skipped members pass through _TarInput and count towards the limit
        with tarfile.open(fileobj=cast(IO[bytes], source), mode="r|") as archive:
            for info in archive:

                def read(size: int, info: tarfile.TarInfo = info) -> bytes:
                    member = archive.extractfile(info) if info.isreg() else None
                    if member is None:
                        raise ArchiveError(f"{path}: {info.name} is a link or a device, not a file")
                    content = member.read(size)
                    if len(content) < min(size, info.size):
                        raise EOFError(f"{info.name} ends early")
                    return content

                yield info.name, None if info.isdir() else read
        source.finish()


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic


def _safe_name(path: Path, name: str) -> str:
    plain = name.replace("\\", "/")
    if plain.startswith("/") or re.match(r"[A-Za-z]:", plain) or ".." in plain.split("/") or "\0" in plain:
        raise ArchiveError(f"{path} has a member with the unsafe name {name!r}")
    return posixpath.normpath(plain)


def _too_large(what: str, limit: int) -> ArchiveError:
    return ArchiveError(f"{what} unpacks to more than {limit} bytes, the most that is allowed")


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
