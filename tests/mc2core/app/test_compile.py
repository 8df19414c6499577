"""``mc2 compile``: what is compiled beforehand is what fits need."""

import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.commands import mc2

import mc2core
from mc2core import Corpus
from mc2core.compute import kernel_store
from mc2core.inference.registry import ENGINES
from mc2core.inference.running import ahead


def test_every_engine_can_be_compiled():
    assert ahead._WORDS.keys() == ENGINES.keys()


def test_an_unknown_engine_is_named(refused):
    refused("compile gibs", "gibs")


def test_it_says_so_if_nothing_can_be_stored(monkeypatch, refused):
    monkeypatch.setattr(kernel_store, "folder", lambda: None)
    refused("compile", "set NUMBA_CACHE_DIR to a folder with 64 MB of free space")


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
def test_kernels_are_found_again_and_commands_compile_nothing(tmp_path, capsys, engine):
    """Compilation for gibbs ended, after some minutes, at nptot, whose posterior has no contexts of documents."""
    for _ in range(2):
        mc2(f"compile {engine}")
    assert f"kernels of {engine}: all compiled before; stored in {kernel_store.folder()}\n" in capsys.readouterr().out
    if engine == "fastex":  # of a mixture, which these commands do not fit
        return
    rng = np.random.default_rng(1)
    contexts = {"year": rng.normal(size=30), "tags": rng.integers(0, 3, (30, 4))}
    usual = np.arange(30)[:, None] % 3 == np.arange(20) % 3
    Corpus(rng.poisson(np.where(usual, 2.0, 0.1)), contexts=contexts).save(tmp_path / "corpus")
    commands = [
        f"fit corpus --engine {engine} --context year --context tags --out fit",
        "evaluate fit corpus",
        "clusters fit corpus",
        "contexts fit corpus year",
        "describe fit corpus --out description",
        f"fit corpus --engine {engine} --out words",
        "evaluate words corpus",
    ]
    command = [sys.executable, "-c", COMMANDS, *commands]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == " ".join("0" * len(commands)) + "\n", done.stderr


FILLED = """
import resource, sys
from mc2core.app.cli import main
from mc2core.compute import kernel_store
assert kernel_store.folder()  # there is room now
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
sys.exit(main(["evaluate", "fit.npz", "corpus"]))
"""


@pytest.mark.slow
def test_a_full_disk_during_compilation_ends_with_one_sentence(tmp_path):
    corpus = Corpus(np.eye(4, dtype=int))
    corpus.save(tmp_path / "corpus")
    mc2core.fit(corpus, iterations=2, chains=1, progress=False).posterior.save(tmp_path / "fit.npz")
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{tmp_path}/kernels"}
    command = [sys.executable, "-c", FILLED]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("mc2: error: ")]
    assert [done.stderr.splitlines()[-1]] == said == ["mc2: error: File too large"]
