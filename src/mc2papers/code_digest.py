"""Compute digests of the modules that a workflow rule imports, so that a change of a module reruns the rule."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import grimp

#: the folder that holds both packages
_FOLDER = Path(__file__).parents[1]


def code_digest(*modules: str, files: Iterable[Path] = ()) -> str:
    """Return the SHA-256 digest (hexadecimal) of modules and of all modules that they import from both packages.

    The digest includes the files in the ``assets`` folders next to these modules, and ``files``. Snakemake notices
    changed scripts, but not changed modules. A rule therefore has this digest as a parameter. Modules are read, not
    imported. Raises ValueError for an unknown module.
    """
    found = set(modules)
    for name in modules:
        if name not in _imports().modules:
            raise ValueError(f"module {name!r} is not there")
        found |= _imports().find_upstream_modules(name)
    sources = {_source(name) for name in found}
    assets = {asset for path in sources for asset in path.parent.glob("assets/*")}
    named = [(str(path.relative_to(_FOLDER)), path) for path in sorted(sources | assets)]
    total = hashlib.sha256()
    for label, path in [*named, *((path.name, path) for path in files)]:
        total.update(label.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def _source(name: str) -> Path:
    path = _FOLDER.joinpath(*name.split("."))
    package = path / "__init__.py"  # a folder without __init__.py may be left over from an older version
    return package if package.is_file() else path.with_suffix(".py")


@functools.cache
def _imports() -> grimp.ImportGraph:
    """Return the import graph of both packages, with imports inside functions but without imports for type checking."""
    return grimp.build_graph("mc2core", "mc2papers", exclude_type_checking_imports=True, cache_dir=None)
