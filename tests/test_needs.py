"""Tests that need more than the README's test command installs are skipped without it, each with its reason."""

import os
import re
import subprocess
import sys

import pytest
from helpers import needs
from helpers.paths import ROOT

REASONS = {
    "spark": r"Spark needs the package pyspark, which is not installed: pip install .*",
    "browser": r"no Chromium is installed \(Debian: .*\)",
    "bsdtar": r"bsdtar is not installed \(Debian: .*\)",
}

WITHOUT = """from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda cls, name, *rest: None if name in {packages} else find(name, *rest))
"""


@pytest.mark.slow
def test_without_programs_and_extras_each_is_skipped(tmp_path):
    """In a process that has none of them, all tests with a mark are collected and skipped, for what they name."""
    programs = {name for names in needs.PROGRAMS.values() for name in names}
    packages = [name for names in needs.PACKAGES.values() for name in names]
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(packages=packages))
    environment = os.environ | {"PATH": needs.path_without(programs), "PYTHONPATH": str(tmp_path)}
    environment.pop("JAVA_HOME", None)
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.needs" in path.read_text(encoding="utf-8")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-rs", "--no-fold-skipped", "-m", "needs", *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ skipped, \d+ deselected in ", done.stdout, re.M), done.stdout  # none passed, none failed
    said = re.findall(r"^SKIPPED .*? - Skipped: (.*)$", done.stdout, re.M)
    told = {name for one in said for name, reason in REASONS.items() if re.fullmatch(reason, one)}
    assert all(any(re.fullmatch(reason, one) for reason in REASONS.values()) for one in said), said
    assert told == set(REASONS) == set(needs.MISSING)


def test_what_a_test_has_no_mark_for_is_hidden_from_it():
    for name, lack in needs.MISSING.items():
        assert lack() is not None, name
