"""The examples of the documentation run as they stand; those of its gallery run when it is built."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from helpers.paths import ROOT

from mc2core.app.cli import main

START = ("docs/start.md",)
#: in the order in which they are read: the second goes on with the fits of the first
GUIDES = ("docs/how_to/own_texts.md", "docs/how_to/new_documents.md")


def blocks(names, kind):
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    return [block for text in texts for block in re.findall(rf"```{kind}\n(.*?)```", text, re.S)]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config/example.csv", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("names", "number"), [(START, 1), (GUIDES, 6)])
def test_python_examples_run(checkout, capsys, names, number):
    scope = {}
    examples = blocks(names, "python")
    for example in examples:
        exec(compile(example, names[0], "exec"), scope)
    assert len(examples) == number
    assert "ferry" in capsys.readouterr().out


def test_the_guides_commands_run(checkout, capsys):
    commands = [line for block in blocks(GUIDES, "sh") for line in block.splitlines()]
    assert len(commands) == 5
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    assert "counted as '(rare)'" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_compiles_the_kernels_that_it_needs(checkout):
    """Import, fit and describe, each in a process of its own; their seconds are in docs/notes/compile_times.md."""
    commands = [line for block in blocks(START, "sh") for line in block.splitlines() if "results/own" in line]
    commands = [line for line in commands if line.split()[1:2] in (["import"], ["fit"], ["describe"])][:3]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(checkout / "kernels")}
    for command in commands:
        call = [sys.executable, "-m", "mc2core", *shlex.split(command)[1:]]
        subprocess.run(call, env=environment, check=True, capture_output=True)
    assert (checkout / "results/own/description/index.html").is_file()
    stored = [path.name.partition(".")[0] for path in (checkout / "kernels").rglob("*.nbc")]
    assert 20 < len(stored) < 100
    others = {"local", "exact", "visits", "graph", "passes", "uncollapsed"}  # of SVI and FastEx
    assert not others & set(stored)
