"""Checkpoints: files of arrays from which a stopped run can be resumed with identical results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2core.inference.base import n_samples
from mc2core.posterior import Sample
from mc2core.posterior.sample import pack_sample, unpack_sample

FORMAT = "mc2core checkpoint 3"
_DESCRIBED = {
    **{"format": str, "run": {str: object}, "iteration": int, "seconds": (int, float), "cpu_seconds": (int, float)},
    **{"n_samples": int, "trace": [{str: (int, float)}], "snapshot_times": [{str: (int, float)}]},
}
#: advice in messages about a checkpoint of another run
ELSEWHERE = "write elsewhere, or remove it to start again"


@dataclass
class Checkpoint:
    """Contents of a checkpoint of one chain.

    Attributes
    ----------
    run : JSON-able
        Values that must be the same when the run is resumed: model, engine, seed, corpus digest and thinning. It also
        contains the burn-in after which samples have been stored, which :meth:`drop` may change.
    iteration : int, number of complete iterations; ``state`` may also include a part of the next iteration
    seconds, cpu_seconds : float, elapsed time and processor time so far
    state : arrays of the state of the engine, by name
    samples : samples so far
    trace : rows of the trace so far, one dict per iteration
    snapshots, snapshot_times : snapshots so far, and the iteration and seconds of each snapshot
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

    @property
    def begins_after(self) -> int:
        """Number of iterations at the beginning of the run without stored samples."""
        return min(self.run["burn_in"], self.iteration)

    def lacks(self, burn_in: int) -> bool:
        """Return whether samples after this ``burn_in`` are needed but not stored."""
        return n_samples(self.begins_after, burn_in, self.run["thin"]) > 0

    def drop(self, burn_in: int) -> None:
        """Remove the samples of the first ``burn_in`` iterations, and record the new burn-in."""
        begins, thin = self.begins_after, self.run["thin"]
        if self.lacks(burn_in):
            burn_in = begins
        del self.samples[: n_samples(min(burn_in, self.iteration), begins, thin)]
        self.run["burn_in"] = burn_in


def write(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint to the file ``path`` atomically."""
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
    path: str | os.PathLike[str], run: Mapping[str, Any], sizes: Mapping[str, int] | None = None
) -> Checkpoint | None:
    """Read the checkpoint at ``path``; None if there is no file.

    ``sizes`` contains the numbers of documents J and words V of the corpus. Raises ValueError if the file is damaged or
    has been changed, or if it belongs to a run other than ``run``. The message names the first difference. A different
    burn-in is allowed.
    """
    if not Path(path).exists():
        return None
    sizes = sizes or {}
    with _or_anew():
        arrays, meta = _open(path)
    stored = meta["run"]
    free = {name: stored[name] for name in ("burn_in",) if name in stored and name in run}
    asked = json.loads(json.dumps(run)) | free
    free_names = {name: asked.get(name) for name in ("corpus", "names")}
    difference = first_difference(stored | free_names, asked)
    # this is checked before all array sizes. If only contexts differ, the digests differ, but not the numbers of
    # documents; the difference of the settings is then the better message
    if stored.get("corpus") != asked.get("corpus"):
        n_documents = arrays["state.cluster"].size if "state.cluster" in arrays else None
        if difference is None or n_documents != sizes.get("J"):
            told = "" if n_documents is None else f" ({n_documents:,} documents)"
            raise ValueError(f"{path} is the checkpoint of a run on another corpus{told}; {ELSEWHERE}")
    if stored.get("names") != asked.get("names"):
        raise ValueError(
            f"{path} is the checkpoint of a run on a corpus with the same counts but other words, other names of "
            f"context values or other units; {ELSEWHERE}"
        )
    if difference:
        raise ValueError(f"{path} is the checkpoint of another run: {difference}; {ELSEWHERE}")
    with _or_anew():
        checkpoint = _unpack(path, arrays, meta, sizes)
    checkpoint.run = {**run, **free}
    return checkpoint


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint without comparing it with a run; the engine checks the arrays of the state."""
    return _unpack(path, *_open(path), {})


@contextmanager
def _or_anew() -> Iterator[None]:
    """Add advice to the message about a damaged file: remove it to start again."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error}; remove it to start again") from error


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors in the content of a file to ValueError with the path of the file."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a checkpoint: {error}") from error


def _open(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the verified metadata of a checkpoint file."""
    arrays = storage.read_arrays(path)
    with _reading(path):
        meta = storage.parse_json(str(arrays["meta"]))
        storage.check_json(meta, _DESCRIBED)
        storage.check_format(meta["format"], FORMAT)
        storage.check_json(meta["run"], {name: int for name in ("burn_in", "thin") if name in meta["run"]})
        if len(meta["trace"]) != meta["iteration"]:
            raise ValueError(f"'trace' has {len(meta['trace'])} rows; {meta['iteration']} are needed")
    return arrays, meta


def _unpack(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], sizes: Mapping[str, int]
) -> Checkpoint:
    with _reading(path):
        return Checkpoint(
            run=meta["run"],
            iteration=meta["iteration"],
            seconds=float(meta["seconds"]),
            state={name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")},
            samples=[unpack_sample(arrays, f"{i}.", sizes) for i in range(meta["n_samples"])],
            trace=meta["trace"],
            snapshots=[unpack_sample(arrays, f"snapshot.{i}.", sizes) for i in range(len(meta["snapshot_times"]))],
            snapshot_times=meta["snapshot_times"],
            cpu_seconds=float(meta["cpu_seconds"]),
        )


def is_one(arrays: Mapping[str, np.ndarray]) -> bool:
    """Return whether the arrays of a file belong to a checkpoint."""
    return any(name.startswith("state.") for name in arrays)


def first_difference(stored: Any, asked: Any, names: Sequence[str] = ()) -> str | None:
    """Return the first difference between two JSON values as a phrase, such as "seed was 1, now 2"; None if equal."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        # in the order of ``asked``, so that a different engine is reported before its settings
        for key in dict.fromkeys((*asked, *stored)):
            found = first_difference(stored.get(key), asked.get(key), (*names, key))
            if found:
                return found
        return None
    if stored == asked:
        return None
    return f"{'.'.join(names)} was {stored!r}, now {asked!r}"
