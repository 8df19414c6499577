"""Without the package that an extra brings, what needs it says in one sentence how to install it."""

import re
import sys
import tomllib

import pytest
from helpers.paths import ROOT

from mc2core.app.cli import main
from mc2core.base.extras import MissingPackage, lacking, require


@pytest.mark.parametrize(
    ("name", "options", "module", "needs"),
    [
        ("a.parquet", ["--text", "text"], "pyarrow", "pyarrow, which is not installed: pip install 'mc2core[parquet]'"),
        ("a.xlsx", ["--text", "text"], "openpyxl", "openpyxl, which is not installed: pip install 'mc2core[excel]'"),
        ("a.h5ad", [], "h5py", "h5py, which is not installed: pip install 'mc2core[anndata]'"),
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
    assert lacking("numpy", extra="explore", purpose="the page") is None
    require("numpy", extra="explore", purpose="the page")


def test_every_extra_that_a_message_names_brings_its_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    calls = [
        found
        for path in (ROOT / "src/mc2core").rglob("*.py")
        for found in re.findall(r'(?:require|lacking)\(\s*"(\w+)",\s*extra="(\w+)"', path.read_text())
    ]
    assert {extra for _, extra in calls} >= {"anndata", "excel", "parquet", "sklearn", "spark"}
    for module, extra in calls:
        package = lacking("no_such_module", extra, "").split("'")[1]
        assert package == f"mc2core[{extra}]"
        names = {re.split(r"[\[<>=~! ]", one)[0] for one in extras[extra]}
        assert {"sklearn": "scikit-learn"}.get(module, module) in names, (module, extra)
