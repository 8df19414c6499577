"""Two folders of results held against each other: all they hold of data, less what was measured with a clock."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TIMED = re.compile("seconds|speedup|other_cores")  # names of columns and keys: of times, or of what ran beside
TIMED_CLAIM = re.compile(r"\b(?:time|sooner|speed-up)\b")  # its verdict and numbers depend on how fast the machine is
# what says how results were made, not what they are: logs, when and where a fit ran
ASIDE = {"logs", "checkpoints", "warm_kernels"}
PROVENANCE = "provenance.json"


def differences(folder: Path, other: Path) -> list[str]:
    """A sentence for each file of either folder that the other lacks or that holds something else there."""
    ours, theirs = _files(folder), _files(other)
    found = [f"{name} is only in {folder}" for name in sorted(ours - theirs)]
    found += [f"{name} is only in {other}" for name in sorted(theirs - ours)]
    for name in sorted(ours & theirs):
        reason = _difference(folder / name, other / name)
        if reason:
            found.append(f"{name}: {reason}")
    return found


def _files(folder: Path) -> set[str]:
    """Tables, traces, scores, models and corpora; pictures and formatted tables are made of them."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.suffix in READERS and path.name != PROVENANCE and path.relative_to(folder).parts[0] not in ASIDE
    }


def _difference(path: Path, other: Path) -> str:
    ours, theirs = (READERS[path.suffix](one) for one in (path, other))
    if ours.keys() != theirs.keys():
        return f"one has {sorted(ours.keys() - theirs.keys())}, the other {sorted(theirs.keys() - ours.keys())}"
    for name, value in ours.items():
        if value != theirs[name]:
            return f"{name} is {str(value)[:80]} against {str(theirs[name])[:80]}"
    return ""


def _table(path: Path) -> dict:
    rows = pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", dtype=str, keep_default_na=False)
    rows = rows.drop(columns=[name for name in rows if TIMED.search(name)])
    if {"claim", "verdict", "numbers"} <= set(rows):
        judged = rows.columns.intersection(["verdict", "numbers", "reason"])
        rows.loc[rows["claim"].str.contains(TIMED_CLAIM), judged] = ""
    return {f"line {line}": tuple(row) for line, row in enumerate([rows.columns, *rows.to_numpy()], 1)}


def _json(path: Path) -> dict:
    return _less_times(json.loads(path.read_text()))


def _arrays(path: Path) -> dict:
    """Arrays bit for bit, but for the text ``meta``, which says when snapshots were taken, and a digest of all."""
    with np.load(path, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files if name != "digest"}
    meta = _less_times(json.loads(str(held.pop("meta"))) if "meta" in held else {})
    return meta | {name: (value.dtype.str, value.shape, value.tobytes()) for name, value in held.items()}


def _less_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _less_times(inner) for name, inner in value.items() if not TIMED.search(name)}
    return [_less_times(inner) for inner in value] if isinstance(value, list) else value


def _bytes(path: Path) -> dict:
    return {"content": path.read_bytes()}


READERS = {".csv": _table, ".tsv": _table, ".json": _json, ".npz": _arrays, ".npy": _bytes, ".txt": _bytes}
