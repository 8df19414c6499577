"""Compiled kernels on disk belong to one state of the source.

numba looks at the file of a kernel alone: after an edit (or an upgrade) of a module that the kernel calls, it goes on
with the old code, or stumbles over names that are gone.
"""

from __future__ import annotations

from pathlib import Path


def drop_stale(package: Path) -> None:
    """Remove the kernels stored below ``package`` if any of its sources has changed since they were stored.

    A folder that cannot be written is left alone.
    """
    sources = [(path, path.stat()) for path in sorted(package.rglob("*.py"))]
    state = "\n".join(f"{path.relative_to(package)} {stat.st_size} {stat.st_mtime_ns}" for path, stat in sources)
    stamp = package / "__pycache__" / "kernels.sources"
    try:
        if stamp.is_file() and stamp.read_text() == state:
            return
        for path in package.rglob("*.nb[ic]"):
            path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(state)
    except OSError:
        return
