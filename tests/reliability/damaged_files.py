"""Damaged files and forged corpora: refused in one sentence, or read as if nothing had happened; no crash, no hang.

A case damages one file of a valid corpus, model, checkpoint or trace (bits flipped, bytes cut, put in, taken out,
zeroed, exchanged; two files or arrays of the folder exchanged), or forges one of the corpus, whose arrays are read
without a digest: numbers replaced. What is damaged must be refused with one sentence or be the same in meaning; what is
forged must be refused or run.
"""

from __future__ import annotations

import json
import shutil
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from helpers.fits import fastex, gibbs, svi

from mc2core import Corpus
from mc2core.base import storage
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running import checkpoint
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior
from mc2core.posterior.sample import pack_sample

from .children import Outcome, outcomes
from .report import Report

LONGEST_SECONDS = 60.0
ITERATIONS = 3
CONTEXTS = {"year": NormalGamma(), "author": DirichletCategorical(0.5)}
ENGINES = {
    "gibbs": gibbs(contexts=CONTEXTS, kernel="collapsed", start_topics=4, start_clusters=3),
    "svi": svi(contexts=CONTEXTS, max_clusters=4, max_tables=3, max_topics=5, batch_size=5),
    "hash": fastex(n_clusters=4, proposal="hash", bits=8),
    "exact": fastex(n_clusters=4, proposal="exact"),
}


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Damage files for so many seconds, after the valid ones are made; ``scratch``: an empty folder."""
    report = Report("damaged and forged files")
    make_files(scratch)
    for case, outcome in outcomes(
        lambda case: try_case(seed, case, scratch),
        seconds,
        prepare=lambda: compile_all(scratch),
        silence=LONGEST_SECONDS,
    ):
        what = (scratch / "case.txt").read_text()  # of a crash, the child tells nothing
        report.add(f"damaged_files, seed {seed}, case {case}, {what}", outcome)
    return report


def try_case(seed: int, case: int, scratch: Path) -> Outcome:
    """Damage or forge one file, read it and judge what came of it."""
    if not (scratch / "valid").exists():
        make_files(scratch)
    rng = np.random.default_rng([seed, case])
    shutil.rmtree(scratch / "work", ignore_errors=True)
    shutil.copytree(scratch / "valid", scratch / "work")
    what, judge = prepare(scratch / "work", rng)
    (scratch / "case.txt").write_text(what)
    began = time.monotonic()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # forged numbers are not reasonable
            outcome = Outcome(counts=[judge()])
    except ValueError as error:
        is_sentence = len(str(error).splitlines()) == 1
        outcome = Outcome("" if is_sentence else f"not one sentence: {error!r}", ["refused"])
    except Exception:
        outcome = Outcome(traceback.format_exc())
    if time.monotonic() - began > LONGEST_SECONDS:
        outcome.wrong = outcome.wrong or f"it took {time.monotonic() - began:.0f} s"
    return outcome


def compile_all(scratch: Path) -> None:
    """Load every kernel before a clock runs."""
    folder = scratch / "warm"
    shutil.copytree(scratch / "valid", folder, dirs_exist_ok=True)
    for name in ENGINES:
        run_on_corpus(folder, name)


# -- valid files -------------------------------------------------------------------------------------------------------
def make_files(scratch: Path) -> None:
    """Valid files in ``scratch / "valid"``."""
    folder = scratch / "valid"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    author = sp.csr_matrix(rng.integers(0, 3, (12, 4)))
    corpus = Corpus(
        rng.poisson(0.7, (12, 9)),
        [f"word{word}" for word in range(9)],
        {"year": np.where(rng.random(12) < 0.2, np.nan, rng.normal(size=12)), "author": author},
        labels=rng.integers(0, 3, 12),
        label_names=["a", "b", "c"],
        context_names={"author": ["p", "q", "r", "s"]},
        documents=pd.DataFrame({"title": [f'"{j}", a title' for j in range(12)], "pages": rng.integers(1, 9, 12)}),
    )
    corpus.standardised("year").save(folder / "corpus")
    corpus = Corpus.load(folder / "corpus")
    for name, engine in ENGINES.items():
        trace = folder / f"{name}.tsv"
        done = fit(corpus, *engine, checkpoint=folder / f"{name}.npz", trace=trace, progress=False, **arguments())
        done.posterior.save(folder / f"model-{name}.npz")
        if name == "svi":  # one in the middle of an epoch, too
            state = engine.restore(corpus, done.state.arrays())
            engine.advance(corpus, state, 1, ITERATIONS + 1)
            kept = checkpoint.load(folder / "svi.npz")
            kept.state = state.arrays()
            checkpoint.write(folder / "svi-part.npz", kept)


def arguments() -> dict[str, Any]:
    return {"iterations": ITERATIONS, "seed": 1}


# -- cases -------------------------------------------------------------------------------------------------------------
def prepare(folder: Path, rng: np.random.Generator) -> tuple[str, Callable[[], str]]:
    """Damage or forge a file of ``folder``; says what was done, and how to judge what is read now."""
    kind = rng.choice(["corpus", "model", "checkpoint", "trace"], p=[0.4, 0.2, 0.35, 0.05])
    names = {
        "corpus": sorted(path.name for path in (folder / "corpus").iterdir()),
        "model": sorted(path.name for path in folder.glob("model-*.npz")),
        "checkpoint": sorted(path.name for path in folder.glob("*.npz") if not path.name.startswith("model")),
        "trace": sorted(path.name for path in folder.glob("*.tsv")),
    }[kind]
    name = names[rng.integers(len(names))]
    path = folder / ("corpus" if kind == "corpus" else "") / name
    if kind == "corpus" and rng.random() < 0.4:
        arrays = [one for one in names if one.endswith(".npy")]
        path = path.with_name(arrays[rng.integers(len(arrays))])
        array, what = forged(np.load(path), rng)
        np.save(path, array)
        return f"{path.name} {what}", lambda: run_on_corpus(folder, list(ENGINES)[rng.integers(len(ENGINES))])
    what = damaged(path, names, rng)
    judges = {"corpus": same_corpus, "model": same_model, "checkpoint": same_checkpoint, "trace": same_trace}
    return f"{path.name} {what}", lambda: judges[kind](folder, path)


def damaged(path: Path, names: list[str], rng: np.random.Generator) -> str:
    """Damage a file; says how."""
    data = bytearray(path.read_bytes())
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 40))
    match rng.integers(7):
        case 0 | 1:
            bits = [(int(rng.integers(len(data))), int(rng.integers(8))) for _ in range(rng.integers(1, 4))]
            for byte, bit in bits:
                data[byte] ^= 1 << bit
            what = f"with bits (byte, bit) {bits} flipped"
        case 2:
            del data[at:]
            what = f"cut at byte {at}"
        case 3:
            data[at:at] = rng.bytes(length)
            what = f"with {length} bytes put in at {at}"
        case 4:
            del data[at : at + length]
            what = f"without bytes {at} to {at + length}"
        case 5:
            data[at : at + length] = bytes(len(data[at : at + length]))
            what = f"with zeros from {at} to {at + length}"
        case _:
            other = path.with_name(names[rng.integers(len(names))])
            data = bytearray(other.read_bytes())
            what = f"exchanged for {other.name}"
    path.write_bytes(data)
    return what


def forged(array: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Another array of the same kind."""
    array = np.array(array)
    match rng.integers(4):
        case 0:
            return array[: array.shape[0] // 2] if array.ndim else np.zeros(0, array.dtype), "cut"
        case 1:
            return np.zeros_like(array), "zeroed"
        case 2:
            return array.reshape(-1)[rng.permutation(array.size)].reshape(array.shape), "shuffled"
    values = [-1, 0, 2**31 - 1, -(2**31), 2**30, 7] if array.dtype.kind == "i" else [np.nan, np.inf, -1.0, 0.0, 1e300]
    value = values[rng.integers(len(values))]
    if array.size:
        with np.errstate(over="ignore"):  # of 32 bits
            array.flat[rng.integers(array.size)] = value
    return array, f"with {value} in one place"


# -- judgements --------------------------------------------------------------------------------------------------------
def valid(folder: Path) -> Path:
    return folder.parent / "valid"


def meaning_of_corpus(folder: Path) -> dict[str, Any]:
    corpus = Corpus.load(folder, verify=True)
    return {
        "digest": corpus.digest,
        "vocabulary": corpus.vocabulary,
        "documents": corpus.documents.to_csv(),
        "names": corpus.context_names,
        "labels": corpus.labels.tolist(),
        "label_names": corpus.label_names,
        "units": corpus.units,
    }


def same_corpus(folder: Path, path: Path) -> str:
    if meaning_of_corpus(folder / "corpus") != meaning_of_corpus(valid(folder) / "corpus"):
        raise AssertionError("it was read as another corpus")
    return "the same"


def meaning_of_model(path: Path) -> dict[str, Any]:
    model = Posterior.load(path)
    samples = [storage.digest_arrays(pack_sample(sample, "")) for sample in model.samples]
    rest = (model.vocabulary, model.dimensions, model.context_names, model.units, model.provenance, str(model.families))
    return {"samples": samples, "rest": json.dumps(rest, sort_keys=True)}


def same_model(folder: Path, path: Path) -> str:
    found = meaning_of_model(path)
    # another engine's model may have taken its place
    if found not in [meaning_of_model(one) for one in valid(folder).glob("model-*.npz")]:
        raise AssertionError("it was read as another model")
    return "the same"


def meaning_of_checkpoint(path: Path) -> dict[str, Any]:
    found = checkpoint.load(path)
    samples = [storage.digest_arrays(pack_sample(sample, "")) for sample in found.samples]
    rest = (found.run, found.iteration, found.seconds, found.trace, found.snapshot_times)
    return {"state": storage.digest_arrays(found.state), "samples": samples, "rest": json.dumps(rest, sort_keys=True)}


def same_checkpoint(folder: Path, path: Path) -> str:
    found = meaning_of_checkpoint(path)
    if found not in [meaning_of_checkpoint(one) for one in valid(folder).glob("*.npz") if "model" not in one.name]:
        raise AssertionError("it was read as another checkpoint")
    return "the same"


def same_trace(folder: Path, path: Path) -> str:
    """A trace is written anew from the checkpoint, whatever it holds."""
    corpus, engine = Corpus.load(folder / "corpus"), ENGINES[path.stem]
    fit(corpus, *engine, checkpoint=path.with_suffix(".npz"), trace=path, progress=False, **arguments())
    if path.read_bytes() != (valid(folder) / path.name).read_bytes():
        raise AssertionError("the trace is another")
    return "written anew"


def run_on_corpus(folder: Path, name: str) -> str:
    corpus = Corpus.load(folder / "corpus")
    fit(corpus, *ENGINES[name], iterations=1, progress=False)
    return "ran"
