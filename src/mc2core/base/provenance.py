"""Provenance of a result: versions, git commit and machine."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any


@functools.cache
def environment() -> dict[str, Any]:
    """Return the versions, the git commit and the machine of this process, which are stored with results."""
    packages = ("mc2core", "numpy", "scipy", "numba", "pandas")
    return {
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}},
        "git_commit": commit(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def commit() -> str | None:
    """Return the commit from which the package runs or was built, with "+changes" if files differ; None if unknown."""
    return _commit_of_checkout() or _commit_of_build()


def _commit_of_build() -> str | None:
    """Return the commit that setup.py wrote into the package, or None."""
    file = Path(__file__).resolve().parents[1] / "commit.txt"
    return file.read_text(encoding="ascii").strip() if file.is_file() else None


def _commit_of_checkout() -> str | None:
    folder = Path(__file__).resolve().parent
    try:
        process = subprocess.run(
            ["git", "ls-files", "--error-unmatch", __file__], cwd=folder, capture_output=True, check=False
        )
        if process.returncode:
            return None
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=folder, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+changes" if changed.stdout.strip() else "")
