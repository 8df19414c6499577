"""``mc2 compile``: what is compiled beforehand is what fits need."""

import subprocess
import sys

import numpy as np
import pytest

from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.compute import kernel_store
from mc2core.inference.registry import ENGINES
from mc2core.inference.running import ahead


def test_every_engine_can_be_compiled():
    assert ahead._WORDS.keys() == ENGINES.keys()


def test_an_unknown_engine_is_named(capsys):
    assert main(["compile", "gibs"]) == 2
    assert "gibs" in capsys.readouterr().err


def test_it_says_so_if_nothing_can_be_stored(monkeypatch, capsys):
    monkeypatch.setattr(kernel_store, "folder", lambda: None)
    assert main(["compile"]) == 2
    assert "set NUMBA_CACHE_DIR to one with 64 MB of free space" in capsys.readouterr().err


# commands, and the kernels that they compile
COMMANDS = """
import contextlib, io, sys
from numba.core import event
from mc2core.app.cli import main

class Named(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Named())
with contextlib.redirect_stdout(io.StringIO()):
    codes = [main(line.split()) for line in sys.argv[1:]]
print(*codes, *Named.names)
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_kernels_of_an_engine_are_compiled_and_found_again(capsys, engine):
    """That of gibbs ended, after some minutes, at nptot, whose posterior has no contexts of documents."""
    for _ in range(2):
        assert main(["compile", engine]) == 0
    assert f"kernels of {engine}: all were compiled before; stored in " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.xfail(reason="the made-up documents end in one cluster: joins and levels are compiled later", strict=False)
@pytest.mark.parametrize("engine", ["gibbs", "svi"])
def test_commands_compile_nothing_then(tmp_path, capsys, engine):
    assert main(["compile", engine]) == 0
    assert f"stored in {kernel_store.folder()}\n" in capsys.readouterr().out
    rng = np.random.default_rng(1)
    contexts = {"year": rng.normal(size=30), "tags": rng.integers(0, 3, (30, 4))}
    Corpus(rng.poisson(0.5, (30, 20)), contexts=contexts).save(tmp_path / "corpus")
    commands = [
        f"fit corpus --engine {engine} --context year --context tags --iterations 3 --out fit",
        "evaluate fit corpus",
        "clusters fit corpus",
        "contexts fit corpus year",
    ]
    command = [sys.executable, "-c", COMMANDS, *commands]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "0 0 0 0\n", done.stderr
