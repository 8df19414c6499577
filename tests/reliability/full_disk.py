"""A full disk under every writer: the old file stays whole, one sentence names the new one, and nothing is left over.

Where file systems may be mounted (as root), the disk is a small tmpfs, filled up to a random rest; elsewhere a limit on
the size of files stands in for it. A case leaves a random rest of what a writer needs. With enough of it the writer
succeeds; with less it fails, and what was there before must be there still.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import resource
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus, Posterior
from mc2core.app.cli import main
from mc2core.base import storage
from mc2papers.cli import main as prepare

from .children import Outcome
from .report import Report

DISK_BYTES = 4 << 20
PAGE = 4096
FIT = ["--engine", "fastex", "--chains", "1", "--set", "n_clusters=3", "--iterations", "3", "--checkpoint-every", "1"]
REMOVED = ("checkpoint.npz", "trace.tsv", "provenance.json")  # before a fit, which then starts anew


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Fill the disk for so many seconds; ``scratch``: an empty folder."""
    report = Report("writes on a full disk")
    case, end = 0, None
    with disk(scratch) as folder:
        report.count("a real file system" if folder != scratch else "a limit on the size of files")
        make_inputs(scratch)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            outcome = attempt(seed, case, scratch, folder)
            report.add(f"full_disk, seed {seed}, case {case}", outcome)
            case += 1
    return report


def try_case(seed: int, case: int, scratch: Path) -> Outcome:
    """One case on a disk of its own."""
    with disk(scratch) as folder:
        make_inputs(scratch)
        return attempt(seed, case, scratch, folder)


def attempt(seed: int, case: int, scratch: Path, folder: Path) -> Outcome:
    """Write what is there once more, other than before, with a random rest of the disk."""
    rng = np.random.default_rng([seed, case])
    name = list(WRITERS)[rng.integers(len(WRITERS))]
    writer, target = WRITERS[name], folder / name
    shutil.rmtree(target, ignore_errors=True)
    alone(writer, scratch, target, 0)
    before = files_of(target)
    room = int(rng.integers(0, 2 * sum(map(len, before.values()))))
    what = f"{name} with {room} bytes left"
    said = io.StringIO()
    try:
        with (
            limited(folder, scratch, room),
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            code = writer(scratch, target, 1)
    except OSError as error:
        said.write(f"mc2: error: {error}")
        code = 2
    except Exception:
        return Outcome(f"{what}: {traceback.format_exc()}")
    after = files_of(target)
    whole = {path: content for path, content in after.items() if not is_temporary(path)}
    if code == 0:
        return Outcome("" if whole == after else f"{what}: left {sorted(after.keys() - whole.keys())}", ["written"])
    lines = said.getvalue().strip().splitlines()
    wrong = ""
    is_said = bool(lines) and lines[-1].startswith(("mc2: error: ", "mc2papers: error: ")) and str(target) in lines[-1]
    if code != 2 or not is_said:
        wrong = f"ended with {code} and said {lines[-1:]}"
    elif "Traceback" in said.getvalue():
        wrong = f"said {said.getvalue()}"
    elif lost := before.keys() - whole.keys() - set(REMOVED):
        wrong = f"lost {sorted(lost)}"
    elif whole != after:
        wrong = f"left {sorted(after.keys() - whole.keys())}"
    else:
        wrong = not_whole(before, whole, target)
    return Outcome(f"{what}: {wrong}" if wrong else "", ["refused"])


def not_whole(before: dict[str, bytes], after: dict[str, bytes], target: Path) -> str:
    """Files of a folder are those of before; single files are those of before or whole."""
    changed = [path for path in after if before.get(path) != after[path]]
    for path in changed:
        try:
            if path == "posterior.npz":
                Posterior.load(target / path)
            elif path.endswith(".json"):
                storage.read_json(target / path)
            elif path == "checkpoint.npz":
                storage.read_arrays(target / path)
            elif path != "trace.tsv":  # which grows row by row
                return f"{path} was changed"
        except ValueError as error:
            return f"{path} is no longer whole: {error}"
    return ""


def alone(writer: Callable[[Path, Path, int], int], scratch: Path, target: Path, variant: int) -> None:
    """Write with nothing in the way and nothing printed."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        if writer(scratch, target, variant) != 0:
            raise RuntimeError(f"{target} could not be written on an empty disk")


# -- writers: each writes a folder, in one of two variants, and returns an exit code -----------------------------------
def import_table(scratch: Path, target: Path, variant: int) -> int:
    return main(
        ["import", str(scratch / f"table-{variant}.csv"), "--text", "text", "--overwrite", "--out", str(target)]
    )


def draw_letters(scratch: Path, target: Path, variant: int) -> int:
    return prepare(["corpus", "letters", "--seed", str(variant), "--out", str(target)])


def fit_corpus(scratch: Path, target: Path, variant: int) -> int:
    for name in REMOVED:
        (target / name).unlink(missing_ok=True)
    return main(["fit", str(scratch / "corpus"), *FIT, "--seed", str(variant), "--overwrite", "--out", str(target)])


def save_corpus(scratch: Path, target: Path, variant: int) -> int:
    Corpus.load(scratch / "corpus").subset(np.arange(20 + 5 * variant)).save(target)
    return 0


def save_model(scratch: Path, target: Path, variant: int) -> int:
    Posterior.load(scratch / f"model-{variant}.npz").save(target / "posterior.npz")
    return 0


WRITERS: dict[str, Callable[[Path, Path, int], int]] = {
    "import": import_table,
    "letters": draw_letters,
    "fit": fit_corpus,
    "save": save_corpus,
    "model": save_model,
}


def make_inputs(scratch: Path) -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{chr(97 + a)}{chr(97 + b)}" for a in range(20) for b in range(20)])
    for variant in range(2):
        with (scratch / f"table-{variant}.csv").open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(["text"])
            rows.writerows([" ".join(rng.choice(words, 40))] for _ in range(40))
    Corpus(sp.csr_matrix(rng.poisson(0.3, (60, 200)))).save(scratch / "corpus")
    for variant in range(2):
        alone(fit_corpus, scratch, scratch / "fit", variant)
        shutil.copy(scratch / "fit/posterior.npz", scratch / f"model-{variant}.npz")


# -- the disk ----------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def disk(scratch: Path) -> Iterator[Path]:
    """A small file system where one may be mounted, else ``scratch``."""
    folder = scratch / "disk"
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "mc2core-test", str(folder)]
    try:
        is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_mounted = False
    try:
        yield folder if is_mounted else scratch
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def limited(folder: Path, scratch: Path, room: int) -> Iterator[None]:
    """Leave ``room`` bytes of the disk, or of each file."""
    if folder == scratch:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return
    free = os.statvfs(folder)
    filler = folder / "filler"
    filler.write_bytes(bytes(max(0, (free.f_bavail * free.f_frsize - room) // PAGE * PAGE)))
    try:
        yield
    finally:
        filler.unlink()


def files_of(target: Path) -> dict[str, bytes]:
    """Every file in and beside ``target`` that belongs to it."""
    beside = [path for path in target.parent.iterdir() if path.name.startswith(f".{target.name}.")]
    found = [path for path in (*target.rglob("*"), *beside) if path.is_file() or path in beside]
    return {os.path.relpath(path, target): path.read_bytes() if path.is_file() else b"" for path in found}


def is_temporary(path: str) -> bool:
    return path.endswith((".part", ".lock")) or ".part/" in path
