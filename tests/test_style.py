"""The checks of form: linters, types, formats and the workflow's lint, each as the tool reports it."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        pytest.param(("mypy",), id="mypy", marks=pytest.mark.slow),
        pytest.param(("snakefmt", "--check", *RULE_FILES), id="snakefmt"),
    ],
)
def test_tool_finds_nothing(command):
    code, output = tool(*command)
    assert code == 0, output


def test_constraints_pin_every_dependency_and_name_no_index():
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)", line)
            assert match, f"constraints.txt: {line!r} is not name==version"
            pinned[match[1].lower().replace("_", "-")] = match[2]
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=~! ]", one)[0].lower() for one in wanted}
    assert names - {"mc2core"} <= pinned.keys(), sorted(names - pinned.keys())
    assert not re.search(r"https?://|--\S*index", (ROOT / "constraints.txt").read_text())


def test_no_pickles_and_no_hidden_errors():
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(import|from) pickle|allow_pickle\s*=\s*True|except\s*:", text, re.M), path
