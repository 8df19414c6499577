"""Without the package that an extra brings, what needs it says in one sentence how to install it."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from helpers.paths import ROOT
from packaging.requirements import Requirement

from mc2core.app.cli import main
from mc2core.base.extras import MissingPackage, lacking, require


@pytest.mark.parametrize(
    ("name", "options", "module", "needs"),
    [
        ("a.parquet", ["--text", "text"], "pyarrow", "pyarrow, which is not installed: pip install 'mc2core[parquet]'"),
        ("a.xlsx", ["--text", "text"], "openpyxl", "openpyxl, which is not installed: pip install 'mc2core[excel]'"),
    ],
)
def test_the_command_line_says_what_a_file_needs(tmp_path, monkeypatch, capsys, name, options, module, needs):
    (tmp_path / name).write_bytes(b"any bytes")
    monkeypatch.setitem(sys.modules, module, None)  # import says that there is none
    assert main(["import", str(tmp_path / name), *options, "--out", str(tmp_path / "corpus")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"mc2: error: {tmp_path / name} needs the package {needs}"
    assert not (tmp_path / "corpus").exists()


def test_parquet_is_asked_for_when_columns_are_looked_at(tmp_path, monkeypatch):
    from mc2core.base.records import columns_of

    (tmp_path / "a.parquet").write_bytes(b"any bytes")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackage, match=re.escape("pip install 'mc2core[parquet]'")):
        columns_of(tmp_path / "a.parquet")


def test_what_is_installed_is_not_asked_for():
    assert lacking("numpy", extra="explore", purpose="the HTML report") is None
    require("numpy", extra="explore", purpose="the HTML report")


def test_every_extra_that_a_message_names_brings_its_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    calls = [
        found
        for path in (ROOT / "src/mc2core").rglob("*.py")
        for found in re.findall(r'(?:require|lacking)\(\s*"(\w+)",\s*extra="(\w+)"', path.read_text())
    ]
    assert {extra for _, extra in calls} >= {"excel", "parquet", "sklearn", "spark"}
    for module, extra in calls:
        package = lacking("no_such_module", extra, "").split("'")[1]
        assert package == f"mc2core[{extra}]"
        names = {re.split(r"[\[<>=~! ]", one)[0] for one in extras[extra]}
        other = {"sklearn": "scikit-learn", "sentence_transformers": "sentence-transformers"}
        assert other.get(module, module) in names, (module, extra)


# -- the base installation ---------------------------------------------------------------------------------------------
HIDING = """from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda cls, name, *rest: None if name in {hidden} else find(name, *rest))
"""
ALL_MODULES = """
import pkgutil
import mc2core
for module in pkgutil.walk_packages(mc2core.__path__, "mc2core."):
    if module.name not in {"mc2core.__main__", "mc2core.sklearn"}:  # runs the command; asks for scikit-learn
        __import__(module.name)
"""
# the codes of commands, and whether they printed anything
RUN_EACH = """
import contextlib, io, json, sys
from mc2core.app.cli import main
found = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = main(command)
    found.append((code, bool(printed.getvalue())))
print(json.dumps(found))
"""


def outside_the_base_installation():
    """Top-level modules of all that is installed here and that `pip install mc2core` does not bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought, new = {"mc2core"}, [Requirement(one) for one in project["dependencies"]]
    while new:
        one = new.pop()
        name = one.name.lower().replace("_", "-")
        if name not in brought and (one.marker is None or one.marker.evaluate({"extra": ""})):
            brought.add(name)
            new += map(Requirement, metadata.requires(name) or [])
    assert len(brought) < 17
    owners = metadata.packages_distributions().items()
    return [module for module, names in owners if not brought & {one.lower().replace("_", "-") for one in names}]


@pytest.mark.slow
def test_the_base_installation_imports_fits_and_reads(tmp_path):
    """All commands on the README's table work, and `mc2 describe` says what it needs, where no extra is installed."""
    hidden = outside_the_base_installation()
    assert {"pyarrow", "matplotlib", "yaml", "requests", "sklearn"} <= set(hidden)
    (tmp_path / "sitecustomize.py").write_text(HIDING.format(hidden=hidden))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}

    def run(*arguments):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("-c", ALL_MODULES) == (0, "", "")
    columns = ["--text", "text", "--context", "year:number", "--context", "author=authors:bag", "--min-df", "2"]
    contexts = ["--context", "year:normal_gamma", "--context", "author:dirichlet"]
    commands = [
        ["import", str(ROOT / "config/example.csv"), *columns, "--out", "corpus"],
        ["fit", "corpus", *contexts, "--set", "start_topics=5", "--iterations", "4", "--out", "fit"],
        ["topics", "fit/posterior.npz"],
        ["clusters", "fit/posterior.npz", "corpus"],
        ["evaluate", "fit/posterior.npz", "corpus"],
        ["verify", "fit/posterior.npz", "corpus"],
    ]
    code, printed, said = run("-c", RUN_EACH, json.dumps(commands))
    assert code == 0, said
    assert json.loads(printed.splitlines()[-1]) == [[0, True]] * len(commands)
    code, _, said = run("-m", "mc2core", "describe", "fit/posterior.npz", "corpus", "--out", "found")
    assert (code, said) == (
        2,
        "mc2: error: the HTML report needs the package scikit-learn, which is not installed: pip install "
        "'mc2core[explore]'\n",
    )
