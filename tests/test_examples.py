"""The examples of README.md and docs/own_data.md run as they stand."""

import re
import shlex
import shutil

import pytest
from paths import ROOT

from mc2core.app.cli import main


def blocks(name, kind):
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config/example.csv", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["README.md", "docs/own_data.md"])
def test_python_examples_run(checkout, capsys, name):
    scope = {}
    examples = blocks(name, "python")
    for example in examples:
        exec(compile(example, name, "exec"), scope)
    assert len(examples) == {"README.md": 1, "docs/own_data.md": 3}[name]
    assert "ferry" in capsys.readouterr().out


def test_the_guides_commands_run(checkout, capsys):
    commands = [line for block in blocks("docs/own_data.md", "sh") for line in block.splitlines()]
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    assert "counted as '(rare)'" in capsys.readouterr().out
