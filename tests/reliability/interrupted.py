"""Commands that get Ctrl-C (SIGINT) at a random moment: each must end cleanly, and leave nothing half done.

A case is a command and a moment between the start of its work and its usual end. ``fit`` is tried with all kernels
compiled, and with none, so that signals meet the compiler too, with the model that needs the fewest. It must end with
the exit code 130 and one sentence, or with 0 where it was through; what it leaves are whole files under their names,
and no folder that is empty.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import numpy as np

from mc2core import Posterior
from mc2core.base import storage
from mc2core.inference.running import checkpoint

from .children import Outcome, outcomes
from .report import Report

SILENCE_SECONDS = 900.0
_FIT = ["fit", "data/train", "--context", "year:normal_gamma", "--context", "author:dirichlet", "--iterations", "20"]
_LIMITS = (1, 2, 5, 30)
#: what ``fit`` is called where no kernel is compiled yet
_COMPILES = "fit that compiles"
COMMANDS = {
    "fit": [*_FIT, "--out", "out"],
    "describe": ["describe", "known/posterior.npz", "data/train", "--out", "out"],
    "evaluate": ["evaluate", "known/posterior.npz", "data/train"],
    _COMPILES: [*_FIT, "--set", "document_level=false", "--set", "kernel=collapsed", "--out", "out"],
}


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Interrupt commands for some seconds."""
    report = Report("commands interrupted")
    for number, outcome in outcomes(lambda one: try_case(seed, one, scratch), seconds, silence=SILENCE_SECONDS):
        report.add(f"interrupted, seed {seed}, case {number}", outcome)
    return report


def try_case(seed: int, number: int, scratch: Path) -> Outcome:
    """One command, interrupted once."""
    name = list(COMMANDS)[number % len(COMMANDS)]
    usual = _prepare(scratch)[name]
    delay = np.random.default_rng([seed, number]).uniform(0.0, usual)
    shutil.rmtree(scratch / "out", ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=scratch) as empty, (scratch / "stderr").open("w+") as said:
        process = _start(COMMANDS[name], scratch, said, empty if name == _COMPILES else None)
        _wait_for_handler(process)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        code = process.wait()
        seconds = time.monotonic() - began
    outcome = Outcome(counts=[f"{name}: {_spelt(seconds)}" if code else f"{name}: through already"], seconds=seconds)
    text = (scratch / "stderr").read_text()
    outcome.wrong = _wrong(code, text, scratch)
    if outcome.wrong:
        outcome.wrong = f"{name}, after {delay:.2f} of {usual:.1f} s: {outcome.wrong}\n{text}"
    return outcome


def _prepare(scratch: Path) -> dict[str, float]:
    """Make a corpus and a model, once; how long each command takes, by name."""
    if (scratch / "usual.json").is_file():
        return dict(storage.read_json(scratch / "usual.json"))
    usual = {}
    with tempfile.TemporaryDirectory(dir=scratch) as empty, (scratch / "stderr").open("w+") as said:
        _seconds(["corpus", "nips", "--scale", "0.05", "--out", "data"], scratch, said, None, "mc2papers")
        _seconds([*_FIT, "--out", "known"], scratch, said, None)
        for name, arguments in COMMANDS.items():
            for _ in range(1 if name == _COMPILES else 2):  # the first one may compile
                usual[name] = _seconds(arguments, scratch, said, empty if name == _COMPILES else None)
                shutil.rmtree(scratch / "out", ignore_errors=True)
    storage.write_json(scratch / "usual.json", usual)
    return usual


def _seconds(arguments: list[str], folder: Path, said: IO[str], kernels: str | None, package: str = "mc2core") -> float:
    """How long an undisturbed command takes."""
    began, code = time.monotonic(), _start(arguments, folder, said, kernels, package).wait()
    if code:
        raise RuntimeError(f"undisturbed it fails: {(folder / 'stderr').read_text()}")
    return time.monotonic() - began


def _start(
    arguments: list[str], folder: Path, said: IO[str], kernels: str | None, package: str = "mc2core"
) -> subprocess.Popen[str]:
    """The command of a package in its folder; ``kernels`` is where compiled ones are, None the usual place."""
    environment = os.environ | ({} if kernels is None else {"NUMBA_CACHE_DIR": kernels})
    command = [sys.executable, "-m", package, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=said, text=True)


def _wait_for_handler(process: subprocess.Popen[str]) -> None:
    """Until the command catches SIGTERM: before, the interpreter itself starts."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        caught = next((line for line in lines if line.startswith("SigCgt:")), "SigCgt: 0")
        if int(caught.split()[1], 16) & bit:
            return
        time.sleep(0.01)


def _wrong(code: int, text: str, scratch: Path) -> str:
    """What does not hold of a command that has ended; "" if nothing."""
    if code not in (0, 130):
        return f"it ended with exit code {code}"
    if "Traceback" in text or "ignored" in text:
        return "it told more than a sentence"
    if code and text.count("mc2: stopped") != 1:
        return "it did not say that it was stopped"
    left = sorted(path.name for path in scratch.iterdir())
    if any(name.endswith(".part") or name.startswith(".") for name in left):
        return f"it left {left}"
    out = scratch / "out"
    if not out.is_dir():
        return "" if "resumes from" not in text else "there is no checkpoint to resume from"
    names = sorted(path.name for path in out.iterdir())
    if not names:
        return "it left an empty folder"
    if any(name.startswith(".") for name in names):
        return f"it left {names}"
    if code and not set(names) <= {"checkpoint.npz", "posterior.npz", "provenance.json", "trace.tsv"}:
        return f"it left {names}"
    if (out / "checkpoint.npz").is_file():
        checkpoint.load(out / "checkpoint.npz")
        if "starts again" in text:
            return "it says that it starts again, and there is a checkpoint"
    if (out / "posterior.npz").is_file():
        Posterior.load(out / "posterior.npz")
    return ""


def _spelt(seconds: float) -> str:
    return next((f"ended within {limit} s" for limit in _LIMITS if seconds < limit), "later")
