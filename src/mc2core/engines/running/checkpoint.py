"""Checkpoints: all that a run needs to go on after a stop, bit for bit, in one file of plain arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2core.engines.base import n_samples
from mc2core.model import Sample
from mc2core.model.sample import pack_sample, unpack_sample

FORMAT = "mc2core checkpoint 2"
#: what to do about one of another run
ANEW = "remove it to start anew, or choose another --out (checkpoint= from Python)"


@dataclass
class Checkpoint:
    """A run after ``iteration`` whole iterations and maybe a part of the next one, which the state knows of.

    Attributes
    ----------
    run : JSON-able
        What must be the same for the run to go on: engine, settings, seed, corpus digest, thinning; and the burn-in,
        which may be another one if that leaves all samples after it.
    iteration : int
    seconds, cpu_seconds : float, spent so far by the clock and of processors
    state : named arrays of the engine's state
    samples : kept so far
    trace : rows so far, one dict for each iteration
    snapshots, snapshot_times : samples on the way so far, and when each was taken
    """

    run: dict[str, Any]
    iteration: int
    seconds: float
    state: dict[str, np.ndarray]
    samples: list[Sample] = field(default_factory=list)
    trace: list[dict[str, float]] = field(default_factory=list)
    snapshots: list[Sample] = field(default_factory=list)
    snapshot_times: list[dict[str, float]] = field(default_factory=list)
    cpu_seconds: float = 0.0


def write(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all."""
    meta = {
        "format": FORMAT,
        "run": checkpoint.run,
        "iteration": checkpoint.iteration,
        "seconds": checkpoint.seconds,
        "cpu_seconds": checkpoint.cpu_seconds,
        "n_samples": len(checkpoint.samples),
        "trace": checkpoint.trace,
        "snapshot_times": checkpoint.snapshot_times,
    }
    arrays = {"meta": np.array(json.dumps(meta))}
    arrays |= {f"state.{name}": array for name, array in checkpoint.state.items()}
    for i, sample in enumerate(checkpoint.samples):
        arrays |= pack_sample(sample, f"{i}.")
    for i, sample in enumerate(checkpoint.snapshots):
        arrays |= pack_sample(sample, f"snapshot.{i}.")
    storage.write_arrays(path, arrays)


def read(
    path: str | os.PathLike[str],
    run: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Checkpoint | None:
    """The checkpoint at ``path``, or None where there is no file.

    ``sizes``: J and V of the corpus; ``defaults``: of the engine's settings, for those that were not there yet when the
    checkpoint was written. The burn-in becomes that of ``run``, and samples before it are dropped. ValueError if the
    file is damaged, was changed, lacks samples after the burn-in, or belongs to another run than ``run`` (it names the
    first difference).
    """
    if not Path(path).exists():
        return None
    try:
        checkpoint = load(path, sizes)
    except ValueError as error:
        raise ValueError(f"{error}; remove it to start anew") from error
    stored = checkpoint.run
    if isinstance(stored.get("settings"), dict):
        asked_for = run.get("settings", {})
        known = {name: value for name, value in (defaults or {}).items() if name in asked_for}
        stored = stored | {"settings": json.loads(json.dumps(known)) | stored["settings"]}
    burn_in = {name: run[name] for name in ("burn_in",) if name in run}
    difference = first_difference(stored | burn_in, json.loads(json.dumps(run)))
    if difference:
        raise ValueError(f"{path} is the checkpoint of another run: {difference}; {ANEW}")
    if burn_in:
        _drop_samples(path, checkpoint, **burn_in)
    checkpoint.run = dict(run)
    return checkpoint


def _drop_samples(path: str | os.PathLike[str], checkpoint: Checkpoint, burn_in: int) -> None:
    """Leave the samples after another burn-in; ValueError where some of them were never kept."""
    known, thin = checkpoint.run["burn_in"], checkpoint.run["thin"]
    without = min(known, checkpoint.iteration)
    if n_samples(without, burn_in, thin):
        raise ValueError(
            f"{path} has no samples of iterations {burn_in + 1} to {without}: a burn-in of {without} goes on "
            f"(burn_in={without}, or --burn-in {without}; half of the iterations unless given); {ANEW}"
        )
    del checkpoint.samples[: n_samples(min(burn_in, checkpoint.iteration), known, thin)]


def load(path: str | os.PathLike[str], sizes: Mapping[str, int] | None = None) -> Checkpoint:
    """The checkpoint of any run; the arrays of its state are for the engine to check."""
    arrays = storage.read_arrays(path)
    try:
        meta = storage.parse_json(str(arrays["meta"]))
        if meta["format"] != FORMAT:
            raise ValueError(f"its format is {meta['format']!r}, not {FORMAT!r}")
        if "moments" in meta:  # their name in older files
            meta["snapshot_times"] = meta.pop("moments")
        _check_meta(meta)
        return Checkpoint(
            run=meta["run"],
            iteration=meta["iteration"],
            seconds=float(meta["seconds"]),
            state={name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")},
            samples=[unpack_sample(arrays, f"{i}.", sizes or {}) for i in range(meta["n_samples"])],
            trace=meta["trace"],
            snapshots=[
                unpack_sample(arrays, f"snapshot.{i}.", sizes or {}) for i in range(len(meta["snapshot_times"]))
            ],
            snapshot_times=meta["snapshot_times"],
            cpu_seconds=float(meta.get("cpu_seconds", meta["seconds"])),  # older files have those of the clock only
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a checkpoint: {error}") from error


def is_one(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether the arrays of a file are those of a checkpoint, not of a model."""
    return any(name.startswith("state.") for name in arrays)


def _check_meta(meta: Mapping[str, Any]) -> None:
    """ValueError unless progress, trace and numbers of samples belong together."""
    run, iteration, trace = meta["run"], meta["iteration"], meta["trace"]
    if not meta.get("cpu_seconds", 0.0) >= 0:
        raise ValueError(f"it took {meta['cpu_seconds']!r} seconds of processors")
    if not (isinstance(run, dict) and isinstance(iteration, int) and iteration >= 0 and meta["seconds"] >= 0):
        raise ValueError(f"it is at iteration {iteration!r} after {meta['seconds']!r} seconds")
    if len(trace) != iteration or any(row["iteration"] != i for i, row in enumerate(trace, 1)):
        raise ValueError(f"its trace has {len(trace)} rows, not one for each of {iteration} iterations")
    for row in (*trace, *meta["snapshot_times"]):
        if not all(isinstance(value, int | float) for value in row.values()):
            raise ValueError(f"its trace holds {row}; numbers are needed")
    samples = n_samples(iteration, run["burn_in"], run["thin"]) if "thin" in run else 0
    if meta["n_samples"] != samples:
        raise ValueError(f"it has {meta['n_samples']} samples, but its run has kept {samples} so far")


def first_difference(stored: Any, asked: Any, names: Sequence[str] = ()) -> str | None:
    """A phrase such as "seed is 1 there and 2 here", or None if the two JSON values are the same.

    A switch that is off here may be absent there: it came after the run was stored.
    """
    if isinstance(stored, dict) and isinstance(asked, dict):
        # in the order asked: the engine before what only some engines have
        for key in dict.fromkeys((*asked, *stored)):
            found = first_difference(stored.get(key), asked.get(key), (*names, key))
            if found:
                return found
        return None
    if stored == asked or (stored is None and asked is False):
        return None
    return f"{'.'.join(names)} is {stored!r} there and {asked!r} here"
