"""Digests of source code: what a rule of the workflow depends on besides its files."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

_IMPORT = re.compile(r"^[ ]*(?:from (mc2core[\w.]*) import (\([^)]*\)|[^\n#]*)|import (mc2core[\w.]*))", re.M)


_FOR_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ ]+.*\n)+", re.M)


_PACKAGE = Path(__file__).parents[1]


def code_digest(*modules: str) -> str:
    """SHA-256 (hex) of the source of modules of this package, of all they import from it, and of files in ``assets``
    folders beside these.

    A workflow sees that a script changed, but not that a module did: this, as a parameter of a rule, tells it.
    Sources are read, not imported. ValueError for a module that is not there.
    """
    found: dict[str, bytes] = {}
    ahead = list(modules)
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        path = _module_path(name)
        if path is None:
            raise ValueError(f"module {name!r} is not there")
        found[name] = path.read_bytes()
        found |= {f"{name}/{one.name}": one.read_bytes() for one in path.parent.glob("assets/*")}
        ahead += _imports(path)
    total = hashlib.sha256()
    for name in sorted(found):
        total.update(name.encode() + b"\0" + found[name] + b"\0")
    return total.hexdigest()


def _module_path(name: str) -> Path | None:
    path = _PACKAGE.joinpath(*name.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@functools.cache
def _imports(path: Path) -> list[str]:
    """Modules of this package that a source file imports, at its top or inside a function, but not for types only."""
    names = []
    for module, members, plain in _IMPORT.findall(_FOR_TYPES_ONLY.sub("", path.read_text(encoding="utf-8"))):
        inside = [f"{module}.{member}" for member in re.findall(r"(\w+)(?: as \w+)?", members)]
        names += [module or plain, *(one for one in inside if module and _module_path(one))]
    return names
