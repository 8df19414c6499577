"""The checks of form: linters, formats and the workflow's lint, each as the tool reports it.

``mypy`` takes as long as many tests and is run once, by ``.ci/run``.
"""

import ast
import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import mc2core

ROOT = Path(__file__).resolve().parents[1]
RULE_FILES = [
    str(path.relative_to(ROOT))
    for path in (ROOT / "Snakefile", ROOT / "workflow/Snakefile", *sorted((ROOT / "workflow/rules").glob("*.smk")))
]


def tool(*command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("ruff", "check", "."), id="ruff"),
        pytest.param(("ruff", "format", "--check", "."), id="ruff-format"),
        pytest.param(("snakefmt", "--check", *RULE_FILES), id="snakefmt"),
    ],
)
def test_tool_finds_nothing(command):
    code, output = tool(*command)
    assert code == 0, output


def test_types_are_checked_and_a_fault_ends_the_run():
    """By its exit code, which ``wait`` passes on under ``set -e``."""
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert "set -euo pipefail" in lines
    started = lines.index(".venv/bin/mypy &")
    assert lines[started + 1] == "types=$!"
    assert 'wait "$types"' in lines[started:]


def test_each_lane_of_tests_has_a_command_and_runs_at_every_push():
    """What the default lane leaves out is run by .ci/run, and the table of lanes names each command."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert options["addopts"].split("-m ")[1].strip() == '"not slow"'
    assert [re.match(r"\w+", one)[0] for one in options["markers"]] == ["needs", "slow", "workflow"]
    run, lanes = (ROOT / ".ci/run").read_text(), (ROOT / "CONTRIBUTING.md").read_text()
    assert 'as_newcomer "$tests"' in run
    assert "&& .venv/bin/pytest -q\n```" in (ROOT / "README.md").read_text()
    assert "| default | `.venv/bin/pytest -q` |" in lanes
    for lane in ("slow", "needs"):
        assert re.search(rf"\.venv/bin/pytest -q -m {lane}\b", run)
        assert f"| {lane} | `.venv/bin/pytest -q -m {lane}` |" in lanes


def test_modules_that_mypy_checks_strictly_are_there():
    """mypy says nothing of a name in its settings that no module has."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (strict,) = [one["module"] for one in settings if one.get("disallow_untyped_defs")]
    files = (path.relative_to(ROOT / "src").with_suffix("") for path in (ROOT / "src").rglob("*.py"))
    modules = {".".join(file.parts).removesuffix(".__init__") for file in files}
    for pattern in strict:
        assert fnmatch.filter(modules, pattern.removesuffix(".*")), pattern


def test_every_mutation_still_finds_its_place():
    """What tests/ is measured by: ``tools/mutations.py``."""
    command = [sys.executable, ROOT / "tools/mutations.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def pins(name):
    """Versions by package of a file of constraints, which names nothing else."""
    found = {}
    for line in (ROOT / name).read_text().splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)", line)
            assert match, f"{name}: {line!r} is not name==version"
            found[canonicalize_name(match[1])] = match[2]
    return found


def requirements():
    """(extra or None, requirement) of pyproject.toml, those of one extra on another left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = {None: project["dependencies"], **project["optional-dependencies"]}
    found = [(extra, Requirement(one)) for extra, listed in lists.items() for one in listed]
    return [(extra, one) for extra, one in found if one.name != "mc2core"]


def test_constraints_pin_every_dependency():
    pinned = pins("constraints.txt")
    for extra, one in requirements():
        assert one.specifier.contains(pinned[canonicalize_name(one.name)]), (extra, one)


def test_constraints_with_hashes_are_the_same_versions():
    lines = (ROOT / "constraints-hashes.txt").read_text().splitlines()[1:]
    found = [re.fullmatch(r"(\S+==\S+) --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert [one[1] for one in found] == (ROOT / "constraints.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize("kind", ["data", "fits", "report"])
def test_conda_environments_have_the_pins_of_constraints(kind):
    packages = yaml.safe_load((ROOT / f"workflow/envs/{kind}.yaml").read_text())["dependencies"][-1]["pip"]
    own, *others = map(Requirement, packages)
    assert str(own.specifier) == f"=={mc2core.__version__}"
    pinned = pins("constraints.txt")
    assert {one.name: str(one.specifier) for one in others} == {
        canonicalize_name(one.name): f"=={pinned[canonicalize_name(one.name)]}"
        for extra, one in requirements()
        if extra in (None, "workflow", "explore", "parquet", "plots", "sklearn", *own.extras)
    }


def test_oldest_constraints_are_the_lower_bounds():
    """Of what the job that tests the oldest versions installs; Spark, clusters and the site have bounds alone."""
    pinned = pins("constraints-oldest.txt")
    for extra, one in requirements():
        if extra == "test":
            assert canonicalize_name(one.name) in pinned, one
            continue
        (bound,) = (part for part in one.specifier if part.operator == ">=")
        if extra not in ("cluster", "docs", "spark"):
            assert Version(bound.version) == Version(pinned[canonicalize_name(one.name)]), one


def test_documents_can_be_read_as_they_are():
    """Rows of tables are the longest lines, since they cannot be broken; commands are left in one piece."""
    for path in (
        *ROOT.glob("*.md"),
        *(path for part in ("docs", "config", "benchmarks") for path in (ROOT / part).rglob("*.md")),
    ):
        text = re.sub(r"^```sh$.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        assert [line for line in text.splitlines() if len(line) > 200] == [], path


def test_no_pickles_and_no_hidden_errors():
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(import|from) pickle|allow_pickle\s*=\s*True|except\s*:", text, re.M), path


def test_names_of_tests_have_at_most_60_letters():
    names = [
        (node.name, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert len(names) > 1000
    for name, place in names:
        assert len(name) <= 60, f"{place}: {name} has {len(name)} letters; shorten it to at most 60, test_ included"
