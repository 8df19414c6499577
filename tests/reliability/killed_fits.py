"""Fits killed at random and resumed until they are done: they must write what an undisturbed one does, bit for bit.

A case is an engine of the list below on a random corpus, in one of its variants. It runs undisturbed once; then again
and again, a child process each time, killed by kill -9, SIGTERM or SIGINT at a random moment and started anew, until
one run comes to its end. Children are forked from a process that has all kernels compiled, so that most signals meet
the fit and not the start of Python.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2core.inference.running import files

from .children import Outcome, outcomes
from .corpora import draw_corpus
from .report import Report

FAMILIES = {"year": "normal_gamma", "hits": "gamma_poisson", "tag": "dirichlet"}
SIGNALS = {signal.SIGKILL: "kill -9", signal.SIGTERM: "SIGTERM", signal.SIGINT: "SIGINT"}
#: after so many a run is left to come to its end
MAX_KILLS = 12
SILENCE_SECONDS = 600.0
_PRINTED: dict[str, Any] = {"document_level": False}
_SVI: dict[str, Any] = {"max_clusters": 8, "max_tables": 5, "max_topics": 10}
#: every engine, kernel and proposal: (model, engine, settings)
VARIANTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(("mc2", "gibbs", _PRINTED | {"kernel": kernel}) for kernel in ("collapsed", "blocked", "interleaved")),
    ("hdp", "gibbs", {}),
    ("mc2", "gibbs", {}),
    ("mc2", "gibbs", {"kernel": "parallel"}),
    ("mc2", "svi", _PRINTED | _SVI | {"batch_size": 7}),
    ("mc2", "svi", _PRINTED | _SVI | {"batch_size": None, "initialisation": "random"}),
    ("mc2", "svi", _PRINTED | _SVI | {"batch_size": 7, "initialisation": "gibbs"}),
    *(
        ("mixture", "fastex", {"proposal": proposal, "component": component, "n_clusters": 20})
        for proposal in ("hash", "exact")
        for component in ("multinomial", "poisson", "gaussian")
    ),
    ("mixture", "fastex", {"component": "gauss_wishart", "n_clusters": 20}),
    ("mixture", "fastex", {"proposal": "hash", "projection": "paper", "n_clusters": 20, "documents_per_round": 10}),
)


def draw_case(seed: int, number: int) -> tuple[np.random.Generator, dict[str, Any]]:
    """Generator of the signals, and arguments of :func:`mc2core.inference.running.files.fit_corpus`, of this case."""
    rng = np.random.default_rng([seed, number])
    order = np.random.default_rng(seed).permutation(len(VARIANTS))
    model, engine, settings = VARIANTS[order[number % len(VARIANTS)]]
    corpus = draw_corpus(rng, most_documents=120, most_words=60)
    names = [] if model in ("hdp", "mixture") else [name for name in corpus.contexts if rng.random() < 0.7]
    iterations = int(rng.integers(5, 40))
    keeps_samples = engine == "gibbs"
    thin = int(rng.integers(1, 4)) if keeps_samples else 1
    return rng, {
        "corpus": corpus,
        "model": model,
        "engine": engine,
        "settings": settings,
        "contexts": {name: {"family": FAMILIES[name]} for name in names},
        "iterations": iterations,
        "burn_in": int(rng.integers(0, iterations - thin + 1)) if keeps_samples and rng.random() < 0.5 else None,
        "thin": thin,
        "seed": int(rng.integers(2**31)),
        "threads": int(rng.integers(1, 3)),
        "checkpoint_every": int(rng.integers(1, 6)),
        "snapshots": sorted(rng.uniform(0, iterations, int(rng.integers(0, 3))).tolist()),
        "progress": False,
    }


def describe(arguments: dict[str, Any]) -> str:
    corpus = arguments["corpus"]
    shown = {name: value for name, value in arguments.items() if name not in ("corpus", "progress")}
    return f"{shown} on {corpus.n_documents} x {corpus.n_words}"


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Kill and resume fits for some seconds."""
    report = Report("fits killed and resumed")
    for number, outcome in outcomes(lambda one: try_case(seed, one, scratch), seconds, silence=SILENCE_SECONDS):
        what = describe(draw_case(seed, number)[1])
        report.add(f"killed_fits, seed {seed}, case {number}: {what}", outcome)
    return report


def try_case(seed: int, number: int, scratch: Path) -> Outcome:
    """One undisturbed fit and one that is killed until it is done."""
    rng, arguments = draw_case(seed, number)
    whole, disturbed = scratch / "undisturbed", scratch / "disturbed"
    shutil.rmtree(scratch, ignore_errors=True)
    outcome = Outcome()
    try:
        _fit(whole, arguments)  # kernels are compiled here
        began = time.monotonic()
        _fit(whole, arguments)
        usual = time.monotonic() - began
    except Exception as error:
        return Outcome(f"undisturbed it fails: {error!r}")
    for kills in range(MAX_KILLS + 1):
        number_sent = signal.Signals(rng.choice(list(SIGNALS))) if kills < MAX_KILLS else None
        delay = rng.uniform(0.0, 1.2) * usual
        code = _run_child(disturbed, arguments, number_sent, delay)
        if code == 0:
            break
        assert number_sent is not None
        if code not in (-number_sent, 128 + number_sent):
            reason = (disturbed / "error.txt").read_text() if (disturbed / "error.txt").is_file() else ""
            outcome.wrong = f"run {kills + 1} ended with exit code {code}: {reason}"
            return outcome
        outcome.counts.append(SIGNALS[number_sent])
        if (disturbed / "checkpoint.npz").is_file():
            outcome.counts.append("resumed")
    else:
        outcome.wrong = f"it did not end after {MAX_KILLS} kills"
        return outcome
    outcome.wrong = _difference(whole, disturbed)
    if any(one.name not in _NAMES for one in disturbed.iterdir()):
        outcome.counts.append("left a file behind")
    return outcome


_NAMES = ("posterior.npz", "snapshots.npz", "trace.tsv", "provenance.json")


def _fit(folder: Path, arguments: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    of_snapshots = folder / "snapshots.npz" if arguments["snapshots"] else None
    files.fit_corpus(folder=folder, **arguments, snapshots_file=of_snapshots)


def _run_child(folder: Path, arguments: dict[str, Any], number: signal.Signals | None, delay: float) -> int:
    """Exit code of a fit in a child that gets a signal after ``delay`` seconds; less than 0 if a signal ended it."""
    both = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, both)  # Python swallows a KeyboardInterrupt within its own fork
    child = os.fork()
    if child == 0:
        code = 3
        try:
            logging.disable()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
            _fit(folder, arguments)
            code = 0
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
        except SystemExit as stop:
            code = int(str(stop.code))
        except BaseException:
            (folder / "error.txt").write_text(traceback.format_exc())
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
    if number is not None:
        time.sleep(delay)
        os.kill(child, number)  # one that has ended stays until it is waited for
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _difference(whole: Path, disturbed: Path) -> str:
    """The first array of a model, or row of a trace, that is not the same to the bit; "" where none is."""
    for name in ("posterior.npz", "snapshots.npz"):
        if (whole / name).is_file() != (disturbed / name).is_file():
            return f"only one has {name}"
        if not (whole / name).is_file():
            continue
        one, other = storage.read_arrays(whole / name), storage.read_arrays(disturbed / name)
        if one.keys() != other.keys():
            return f"{name}: other arrays: {sorted(one.keys() ^ other.keys())}"
        for array, values in one.items():
            if array == "meta" and name == "snapshots.npz":
                continue  # it tells seconds
            same = values.dtype == other[array].dtype and values.shape == other[array].shape
            if not same or values.tobytes() != other[array].tobytes():
                return f"{name}: {array} differs"
    rows = [_without_seconds(folder / "trace.tsv") for folder in (whole, disturbed)]
    return "" if rows[0] == rows[1] else "trace.tsv differs"


def _without_seconds(path: Path) -> list[list[str]]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    place = rows[0].index("seconds")
    return [row[:place] + row[place + 1 :] for row in rows]
