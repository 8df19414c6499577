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


#: a word of the style guide's table that is left -> the word to use
OLD_WORDS = {
    r"\b(told|found) K\b": "K fixed, K inferred",
    r"\btells? of\b|\b(is|are|was|were|be) told\b|\bnot told\b": "reports, is given",
    r"\bsays? how sure\b": "shows the certainty of",
    r"\b(goes?|gone|went|going) on\b": "continues",
    r"\banew\b": "again",
    r"\b(kept|keeps?) back\b": "held out",
    r"\bbesides?\b": "next to, in addition to",
    r"\bbut for\b": "except",
    r"\bclusters? (are |is )?join(s|ed)?\b|\bdissolv": "merge, remove",
    r"\bborn\b": "new, added",
    r"\bhangs? on\b|\bmay hang\b": "depends on",
    r"\b(data|numbers) bear\b|\bbears? out\b": "support",
    r"\bforet[eo]l|\bputs? right\b": "predict, correct",
    r"\bmirrors?\b": "local data folder",
    r"\b(the|a|its) sheets?\b": "experiments table",
    r"\bmarked level\b": "recommended level",
    r"\bpages? of (a|the) fit\b": "HTML report",
    r"\bis believed\b|\bhow it is fitted\b": "model, inference engine",
    r"\b(words|tokens|nats|draws|particles|microseconds|us|cores|rows?) an? (document|word|token|node|sweep)\b": "per",
    r"(?<!\()\bours\b(?! as)": "our ..., but in a label (ours)",
}
#: (file, word to use): why the old word is right there
RIGHT_WORDS = {
    ("mc2core/corpus/building/tokens.py", "next to, in addition to"): "an English stop word",
    ("mc2core/corpus/building/tokens.py", "our ..., but in a label (ours)"): "an English stop word",
    ("mc2core/inference/gibbs/consolidate.py", "merge, remove"): "the key of a random stream",
    ("mc2core/inference/gibbs/holdout.py", "held out"): "the key of a random stream",
    ("mc2core/base/records.py", "experiments table"): "a sheet of an Excel file",
    ("mc2papers/report/scorecard.py", "our ..., but in a label (ours)"): "the name of a column",
    ("mc2papers/report/reproduction_report.py", "our ..., but in a label (ours)"): "the head of a column",
}


def old_words(source):
    """(line, word to use) of each old word in a string or docstring; ``code`` and roles are left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            text = " ".join(re.sub(r"``.*?``|:\w+:`.*?`", "", node.value, flags=re.S).split())
            yield from ((node.lineno, new) for old, new in OLD_WORDS.items() if re.search(old, text))


def test_old_words_are_not_in_what_the_package_says():
    assert list(old_words('"""It goes on but for ``beside``."""')) == [(1, "continues"), (1, "except")]
    for path in sorted((ROOT / "src").rglob("*.py")):
        name = path.relative_to(ROOT / "src").as_posix()
        found = [(line, new) for line, new in old_words(path.read_text("utf-8")) if (name, new) not in RIGHT_WORDS]
        assert found == [], name
