"""What some tests need beyond what the README's test command installs.

Such a test is marked ``needs("spark")``, and skipped with the reason where that is missing. From all others it is
hidden (conftest.py), so that a test that lacks its mark fails on every machine, and not only on a new one.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from mc2core.compute import spark

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _without_browser():
    if not any(shutil.which(name) for name in BROWSERS):
        return "no Chromium is installed (Debian: apt-get install chromium)"
    return None


def _without_bsdtar():
    return None if shutil.which("bsdtar") else "bsdtar is not installed (Debian: libarchive-tools)"


#: what a test may need: a sentence on what is missing, or None
MISSING = {"spark": spark.missing, "browser": _without_browser, "bsdtar": _without_bsdtar}
PROGRAMS = {"spark": ("java",), "browser": BROWSERS, "bsdtar": ("bsdtar",)}
PACKAGES = {"spark": ("pyspark",)}
VARIABLES = {"spark": ("JAVA_HOME",)}

_PATH = os.environ.get("PATH", "")
_variables = {name: os.environ[name] for names in VARIABLES.values() for name in names if name in os.environ}
_packages = {}
_paths = {}


def names_of(item):
    """What a test is marked to need."""
    return frozenset(name for mark in item.iter_markers("needs") for name in mark.args)


def show_only(needed):
    """Hide from this process, and from what it starts, all that is not ``needed``."""
    hidden = set(MISSING) - needed
    programs = frozenset(name for one in hidden for name in PROGRAMS[one])
    if programs not in _paths:
        _paths[programs] = path_without(programs)
    os.environ["PATH"] = _paths[programs]
    for one in MISSING:
        for name in VARIABLES.get(one, ()):
            if one in hidden:
                os.environ.pop(name, None)
            elif name in _variables:
                os.environ[name] = _variables[name]
        for name in PACKAGES.get(one, ()):
            loaded = sys.modules.get(name)
            if one in hidden and loaded is not None:
                _packages[name] = loaded
            if one in hidden:
                sys.modules[name] = None  # import says that there is none
            elif name in sys.modules and loaded is None:
                del sys.modules[name]
                sys.modules.update({name: _packages[name]} if name in _packages else {})


def path_without(programs):
    """PATH with links to all programs but these in place of folders that hold one of them."""
    folders = []
    for folder in _PATH.split(os.pathsep):
        if not any((Path(folder) / name).exists() for name in programs):
            folders.append(folder)
            continue
        links = Path(tempfile.mkdtemp(prefix="mc2-path-"))
        atexit.register(shutil.rmtree, links, ignore_errors=True)
        for program in Path(folder).iterdir():
            if program.name not in programs:
                (links / program.name).symlink_to(program)
        folders.append(str(links))
    return os.pathsep.join(folders)
