"""Unpack members of a RAR archive by bsdtar (libarchive), a free program that reads this format."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, cast

from mc2core.base import storage
from mc2papers.datasets.formats.archives import ArchiveError

MAX_MEMBER_BYTES = 2 * 2**30
_CHUNK = 1 << 20
# maximum length in bytes of an error message of bsdtar that is shown
_MAX_REASON = 300


def unpack(path: str | os.PathLike[str], targets: Iterable[str | os.PathLike[str]]) -> None:
    """Write the members that have the file names of ``targets``, from any folder of the archive, to the targets.

    A target is complete or absent.

    Raises ValueError if bsdtar is not installed, if the archive is damaged, or if a member is missing or has more than
    ``MAX_MEMBER_BYTES``.
    """
    path = Path(path)
    if not path.is_file():
        raise ArchiveError(f"{path} is missing")
    program = shutil.which("bsdtar")
    if program is None:
        raise ArchiveError(
            f"{path} is unpacked by the program bsdtar, which is not installed (Debian: libarchive-tools)"
        )
    for target in map(Path, targets):
        _unpack_one(program, path, target)


def _unpack_one(program: str, path: Path, target: Path) -> None:
    # members are written to standard output, so that no name in the archive becomes a path; a passphrase is given,
    # because bsdtar would otherwise ask the user for the passphrase of an encrypted archive
    command = [program, "-x", "-O", "-q", "--passphrase", "none", "-f", str(path.resolve())]
    command += ["--include", f"*{target.name}"]
    # errors go to a file, because the errors of a damaged archive may fill a pipe, and bsdtar would wait forever
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints) as process,
    ):
        output = cast(IO[bytes], process.stdout)
        with storage.replacing(target, "wb") as stream:
            while block := output.read(_CHUNK):
                stream.write(block)
                if stream.tell() > MAX_MEMBER_BYTES:
                    process.kill()
                    raise ArchiveError(f"{path}: {target.name} has more than {MAX_MEMBER_BYTES} bytes")
            if process.wait() != 0:
                complaints.seek(0)
                reason = " ".join(complaints.read(_MAX_REASON).decode("utf-8", "replace").split())
                raise ArchiveError(f"{path} gives no {target.name}: {reason}")
