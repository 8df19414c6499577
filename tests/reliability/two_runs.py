"""Two writers of one folder at once: both end with the right result, or the second is refused in one sentence.

A case starts two ``mc2 fit`` in one folder, of one seed or of two, a random moment apart; or lets two processes save
corpora to one folder again and again. What lies there in the end must be the whole of one of them, and nothing else.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import shutil
import time
import traceback
from pathlib import Path

import numpy as np
import pandas as pd

from mc2core import Corpus
from mc2core.app.cli import main

from .children import Outcome
from .report import Report

SAVES = 20
FIT = ["--set", "kernel=collapsed", "--chains", "1", "--iterations", "40", "--checkpoint-every", "5"]
SEEDS = (0, 1)
REFUSED = ("is in use by another fit that is still running", "is the checkpoint of another run")
_FORK = multiprocessing.get_context("fork")


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Start pairs for so many seconds; ``scratch``: an empty folder."""
    report = Report("pairs of writers of one folder")
    make_inputs(scratch)
    end, case = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        outcome = try_case(seed, case, scratch)
        report.add(f"two_runs, seed {seed}, case {case}", outcome)
        case += 1
    return report


def try_case(seed: int, case: int, scratch: Path) -> Outcome:
    """One pair."""
    make_inputs(scratch)
    rng = np.random.default_rng([seed, case])
    folder = scratch / "out"
    shutil.rmtree(folder, ignore_errors=True)
    if rng.random() < 0.2:
        return two_saves(scratch, folder)
    seeds = [int(rng.choice(SEEDS)), int(rng.choice(SEEDS))]
    # within a run, which takes about a second, or about at its end
    return two_fits(scratch, folder, seeds, float(rng.choice([0.0, 0.01, rng.random(), 2.0 * rng.random()])))


def make_inputs(scratch: Path) -> None:
    """Corpora, and what a fit of each seed leaves; done once, with every kernel loaded by it."""
    if (scratch / "corpus-0").exists():
        return
    rng = np.random.default_rng(0)
    for number in range(2):
        Corpus(rng.poisson(0.5, (60 + number, 40))).save(scratch / f"corpus-{number}")
    for seed in SEEDS:
        with contextlib.redirect_stdout(io.StringIO()):
            if fit(scratch, scratch / f"fit-{seed}", seed) != 0:
                raise RuntimeError("a fit alone failed")


def fit(scratch: Path, folder: Path, seed: int) -> int:
    return main(["fit", str(scratch / "corpus-0"), *FIT, "--seed", str(seed), "--out", str(folder)])


# -- fits --------------------------------------------------------------------------------------------------------------
def two_fits(scratch: Path, folder: Path, seeds: list[int], delay: float) -> Outcome:
    what = f"seeds {seeds}, {delay:.3f} s apart"
    said = [scratch / f"said-{number}.txt" for number in range(2)]
    children = []
    for seed, file in zip(seeds, said, strict=True):
        children.append(_FORK.Process(target=fit_aside, args=(scratch, folder, seed, file)))
        children[-1].start()
        time.sleep(delay if len(children) == 1 else 0.0)
    for child in children:
        child.join()
    codes = [child.exitcode for child in children]
    for code, file in zip(codes, said, strict=True):
        last = file.read_text().strip().splitlines()[-1:]
        is_sentence = bool(last) and last[0].startswith("mc2: error: ") and any(text in last[0] for text in REFUSED)
        if code != 0 and not (code == 2 and is_sentence and "Traceback" not in file.read_text()):
            return Outcome(f"{what}: ended with {codes}, and one said {file.read_text()}")
    done = [seed for seed, code in zip(seeds, codes, strict=True) if code == 0]
    if not done:
        return Outcome(f"{what}: neither came to its end: {[file.read_text() for file in said]}")
    wrong = differs(folder, [scratch / f"fit-{seed}" for seed in done])
    return Outcome(f"{what}: {wrong}" if wrong else "", ["both ended" if len(done) == 2 else "one refused"])


def fit_aside(scratch: Path, folder: Path, seed: int, said: Path) -> None:
    """A fit in a child process, its messages in a file."""
    with said.open("w") as stream, contextlib.redirect_stderr(stream), contextlib.redirect_stdout(io.StringIO()):
        code = fit(scratch, folder, seed)
    os._exit(code)


def differs(folder: Path, expected: list[Path]) -> str:
    """Empty if all files of ``folder`` are those of one of the expected runs, seconds aside."""
    names = sorted(path.name for path in folder.iterdir())
    if names != ["checkpoint.npz", "posterior.npz", "provenance.json", "trace.tsv"]:
        return f"the folder holds {names}"
    reasons = []
    for one in expected:
        traces = [pd.read_csv(place / "trace.tsv", sep="\t").drop(columns="seconds") for place in (folder, one)]
        provenances = [json.loads((place / "provenance.json").read_text()) for place in (folder, one)]
        same = {
            "model": (folder / "posterior.npz").read_bytes() == (one / "posterior.npz").read_bytes(),
            "trace": traces[0].equals(traces[1]),
            "provenance": provenances[0]["seed"] == provenances[1]["seed"],
        }
        if all(same.values()):
            return ""
        reasons.append(f"of {one.name}: {same}")
    return f"the files are no run's: {reasons}"


# -- saves -------------------------------------------------------------------------------------------------------------
def two_saves(scratch: Path, folder: Path) -> Outcome:
    said = [scratch / f"said-{number}.txt" for number in range(2)]
    children = [
        _FORK.Process(target=save_again_and_again, args=(scratch, folder, number, said[number])) for number in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    if any(child.exitcode for child in children):
        return Outcome(f"saves ended with {[file.read_text() for file in said]}")
    found = Corpus.load(folder, verify=True)
    if found.digest not in [Corpus.load(scratch / f"corpus-{number}").digest for number in range(2)]:
        return Outcome("the corpus that was saved is neither of the two")
    left = [path.name for path in scratch.iterdir() if path.name.startswith(".out.")]
    return Outcome(f"saves left {left}" if left else "", ["two saves"])


def save_again_and_again(scratch: Path, folder: Path, number: int, said: Path) -> None:
    """Saves in a child process, what ends them in a file."""
    said.write_text("")
    corpus = Corpus.load(scratch / f"corpus-{number}")
    try:
        for _ in range(SAVES):
            corpus.save(folder)
    except Exception:
        said.write_text(traceback.format_exc())
        raise
