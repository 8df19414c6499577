"""Locks on files. The system drops a lock with the process that holds it: whoever gets one knows the holder is gone."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NOT_SUPPORTED = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


def take(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file until it is closed: True if that worked, False if another process holds it.

    None where the file system has no locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NOT_SUPPORTED:
            return None
        raise
    return True


@contextmanager
def only_one(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Hold the lock of ``path`` while the block runs: a file ``.<name>.lock`` beside it, removed at the end.

    So are folders that were made for it, where they are still empty. ValueError if another process holds it; ``what``
    says what that one does.
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
        if take(handle, wait=False) is False:
            os.close(handle)
            raise ValueError(f"{path} is in use by {what} that has not ended; wait for it or write elsewhere")
        if _is_at(handle, lock):
            break
        os.close(handle)  # its holder ended, and removed it, between the two calls
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
        with suppress(OSError):  # one that is in use, and those it is in
            for folder in new:
                folder.rmdir()


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
