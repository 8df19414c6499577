"""kill -9 of whole runs of the workflow at random moments; what is run again then ends with the same results."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import yaml

from .compare import differences
from .report import Report

ROOT = Path(__file__).resolve().parents[2]
# a fit of every engine, with snapshots and without, of about three seconds each, and what is made of them
RUNS = ("letters", "nips-author", "nips-author-svi", "w100-128bits", "w100-baseline")
TARGETS = ("icml2014_figure2", "icml2014_table1", "uai2016_figure3", "nips2012_table2")
CONFIGURATION = {
    "datasets": ["letters", "nips", "w100"],
    "seeds": 1,
    "corpora": {"letters": {"n_documents": 80, "n_tokens": 30}, "nips": {"scale": 0.06}, "w100": {"scale": 0.001}},
    "fit": {
        "letters": {"iterations": 1000, "burn_in": 500, "thin": 50},
        "nips": {"iterations": 600, "burn_in": 300, "thin": 50},
        "w100": {"iterations": 40},
    },
    "checkpoint_every": 10,
}
SVI_ITERATIONS = 60
MAX_KILLS = 3  # of one run, one after the other
TIME_LIMIT = 900  # seconds for a run that is left alone


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Kill runs until the seconds are over, at least one of them; the undisturbed run that comes first counts too."""
    end = time.monotonic() + seconds
    report = Report("killed runs of the workflow")
    whole, trial_folder = scratch / "whole", scratch / "killed"
    shutil.rmtree(whole, ignore_errors=True)
    _write_checkout(whole)
    _snakemake(whole, *TARGETS)
    # corpora and compiled kernels are there already in a run that is killed, so that it is mostly fits that are hit
    begun = time.monotonic()
    _start_from(whole, trial_folder)
    _snakemake(trial_folder, *TARGETS)
    duration = time.monotonic() - begun
    trials = itertools.count()
    while report.tried == 0 or time.monotonic() < end:
        trial = next(trials)
        chance = random.Random(f"{seed} {trial}")
        _start_from(whole, trial_folder)
        history: list[str] = []
        try:
            n = chance.randint(1, MAX_KILLS)
            while len(history) < n and (killed := _kill_once(trial_folder, duration / n, chance, report)):
                history.append(killed)
            reason = _finish(trial_folder, whole)
        except (subprocess.SubprocessError, psutil.Error) as error:
            reason = str(error)
        report.tried += bool(history or reason)
        if reason:
            report.failures.append(f"seed {seed}, run {trial}, killed {'; then '.join(history) or 'never'}: {reason}")
    return report


def _write_checkout(folder: Path) -> None:
    for part in ("workflow", "config", "profiles"):
        shutil.copytree(ROOT / part, folder / part)
    shutil.copy(ROOT / "Snakefile", folder)
    table = folder / "config" / "experiments.tsv"
    header, *rows = table.read_text().splitlines(keepends=True)
    rows = [row for row in rows if row.split("\t")[0] in RUNS]
    assert len(rows) == len(RUNS), f"config/experiments.tsv lacks one of {RUNS}"
    table.write_text(header + "".join(rows).replace("iterations=2", f"iterations={SVI_ITERATIONS}"))
    (folder / "configuration.yaml").write_text(yaml.safe_dump(CONFIGURATION))


def _start_from(whole: Path, folder: Path) -> None:
    """A new checkout with the corpora and compiled kernels of a whole run, and what Snakemake knows of them."""
    shutil.rmtree(folder, ignore_errors=True)
    aside = set(os.listdir(whole / "results")) - {"corpora", "warm_kernels"}
    shutil.copytree(
        whole,
        folder,
        symlinks=True,
        ignore=lambda parent, names: aside & set(names) if Path(parent) == whole / "results" else set(),
    )


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", "--configfile", "configuration.yaml", "--cores", "2", *arguments]


def _snakemake(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        _command(*arguments), cwd=folder, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
    )
    output = done.stdout + done.stderr
    if done.returncode != 0:
        raise subprocess.SubprocessError(f"snakemake {' '.join(arguments)} ends with {done.returncode}:\n{output}")
    return output


def _kill_once(folder: Path, seconds: float, chance: random.Random, report: Report) -> str:
    """Start a run, kill all of it or Snakemake alone within ``seconds``, then do as the README says.

    Returns what was done, nothing if the run had ended before.
    """
    moment, alone = chance.uniform(0, seconds), chance.random() < 0.5
    # seconds until the jobs left behind are ended too: at once, soon, or by themselves
    patience = chance.choice([0.0, chance.uniform(0, 3), TIME_LIMIT]) if alone else 0.0
    begun = psutil.Popen(
        _command(*TARGETS), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    with contextlib.suppress(psutil.TimeoutExpired):
        begun.wait(timeout=moment)
        report.count("kills that came too late")
        return ""
    begun.suspend()  # it starts no job between the two
    jobs = begun.children(recursive=True)
    in_fit = any(_is_fit(job) for job in jobs)
    if alone:
        begun.kill()
    else:
        os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
    _, left = psutil.wait_procs(jobs, timeout=patience)
    for job in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            job.kill()
    psutil.wait_procs(left, timeout=60)
    report.count("kills of Snakemake alone" if alone else "kills of Snakemake with its jobs")
    if in_fit:
        report.count("kills while a fit ran")
    if any((folder / "results" / "checkpoints").glob("*")):
        report.count("kills that left a checkpoint")
    _snakemake(folder, "--unlock")
    return f"after {moment:.2f} s" + (f", alone, its jobs {patience:.2f} s later" if alone else " with its jobs")


def _is_fit(process: psutil.Process) -> bool:
    try:
        return any(word.endswith(".fits.py") for word in process.cmdline())
    except psutil.Error:
        return False


def _finish(folder: Path, whole: Path) -> str:
    """Run what is missing; in which way that differs from a run that nobody disturbed."""
    _snakemake(folder, *TARGETS)
    if "Nothing to be done" not in _snakemake(folder, "-n", *TARGETS):
        return "there is still something to be done"
    left = [path.name for path in (folder / "results" / "checkpoints").glob("*")]
    if left:
        return f"checkpoints are left: {left}"
    return "; ".join(differences(whole / "results", folder / "results"))
