"""Digests of the source code on which a rule of the workflow depends, in addition to its files."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import grimp

#: the folder that holds both packages
_FOLDER = Path(__file__).parents[1]


def code_digest(*modules: str, files: Iterable[Path] = ()) -> str:
    """Return a SHA-256 (hex) of source files: the modules, the modules of both packages that they import, the files in
    their ``assets`` folders, and ``files``.

    A workflow notices a changed script, but not a changed module. As a parameter of a rule, this digest shows such
    changes. Sources are read, not imported. Raises ValueError for a module that is not there.
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
    package = path / "__init__.py"  # a folder without __init__.py remains from an older version
    return package if package.is_file() else path.with_suffix(".py")


@functools.cache
def _imports() -> grimp.ImportGraph:
    """Return the graph of imports of both packages, including imports in functions, but not imports for types only."""
    return grimp.build_graph("mc2core", "mc2papers", exclude_type_checking_imports=True, cache_dir=None)
