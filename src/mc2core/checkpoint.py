"""Checkpoints: all that a run needs to go on after a stop, bit for bit, in one file of plain arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mc2core import storage
from mc2core.model import Sample, pack_sample, unpack_sample

FORMAT = "mc2core checkpoint 2"


@dataclass
class Checkpoint:
    """A run after ``iteration`` whole iterations and maybe a part of the next one, which the state knows of.

    Attributes
    ----------
    run : JSON-able
        What must be the same for the run to go on: engine, settings, seed, corpus digest, burn-in, thinning.
    iteration : int
    seconds : float, spent so far
    state : named arrays of the engine's state
    samples : kept so far
    trace : rows so far, one dict for each iteration
    snapshots, moments : samples on the way so far, and when each was taken
    """

    run: dict[str, Any]
    iteration: int
    seconds: float
    state: dict[str, np.ndarray]
    samples: list[Sample] = field(default_factory=list)
    trace: list[dict[str, float]] = field(default_factory=list)
    snapshots: list[Sample] = field(default_factory=list)
    moments: list[dict[str, float]] = field(default_factory=list)


def write(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all."""
    meta = {
        "format": FORMAT,
        "run": checkpoint.run,
        "iteration": checkpoint.iteration,
        "seconds": checkpoint.seconds,
        "n_samples": len(checkpoint.samples),
        "trace": checkpoint.trace,
        "moments": checkpoint.moments,
    }
    arrays = {"meta": np.array(json.dumps(meta))}
    arrays |= {f"state.{name}": array for name, array in checkpoint.state.items()}
    for i, sample in enumerate(checkpoint.samples):
        arrays |= pack_sample(sample, f"{i}.")
    for i, sample in enumerate(checkpoint.snapshots):
        arrays |= pack_sample(sample, f"snapshot.{i}.")
    storage.write_arrays(path, arrays)


def read(path: str | os.PathLike[str], run: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint at ``path``, or None where there is no file.

    ValueError if the file is damaged or belongs to another run than ``run`` (it names the first difference).
    """
    if not Path(path).exists():
        return None
    arrays = storage.read_arrays(path)
    try:
        meta = json.loads(str(arrays["meta"]))
        if meta["format"] != FORMAT:
            raise ValueError(f"its format is {meta['format']!r}, not {FORMAT!r}")
        checkpoint = Checkpoint(
            run=meta["run"],
            iteration=int(meta["iteration"]),
            seconds=float(meta["seconds"]),
            state={name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")},
            samples=[unpack_sample(arrays, f"{i}.") for i in range(int(meta["n_samples"]))],
            trace=meta["trace"],
            snapshots=[unpack_sample(arrays, f"snapshot.{i}.") for i in range(len(meta["moments"]))],
            moments=meta["moments"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a checkpoint: {error}") from error
    difference = first_difference(checkpoint.run, json.loads(json.dumps(run)))
    if difference:
        raise ValueError(f"{path} is the checkpoint of another run: {difference}; remove it to start anew")
    return checkpoint


def first_difference(stored: Any, asked: Any, names: Sequence[str] = ()) -> str | None:
    """A phrase such as "seed is 1 there and 2 here", or None if the two JSON values are the same."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        for key in sorted(stored.keys() | asked.keys()):
            found = first_difference(stored.get(key), asked.get(key), (*names, key))
            if found:
                return found
        return None
    if stored == asked:
        return None
    return f"{'.'.join(names)} is {stored!r} there and {asked!r} here"
