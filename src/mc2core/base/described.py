"""What a stored array must be, one description for each, and the one function that checks them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

_KINDS = {
    "f": (np.float64, np.float32),
    "i": (np.int64, np.int32),
    "n": (np.float64, np.float32, np.int64, np.int32),
}
_NAMES = {"f": "floating-point numbers", "i": "whole numbers", "n": "numbers"}


@dataclass(frozen=True)
class Stored:
    """An array as it must be found.

    Attributes
    ----------
    kind : "f" floating-point, "i" whole numbers, "n" either; of 32 or 64 bits
    shape : sizes by number or letter, such as "2 K-1" or "J"; "" for a single value
        A letter whose size is not known gets it from the first array that has it.
    least, above, most, below : range; ``below`` may be a letter
    is_finite : whether NaN and infinity are refused
    """

    kind: str
    shape: str
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float | str = math.inf
    is_finite: bool = True


def check(
    arrays: Mapping[str, np.ndarray], described: Mapping[str, Stored], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Check every described array; returns ``sizes`` with the letters that were not known.

    ValueError names the array, what was found and what is needed.
    """
    sizes = dict(sizes)
    for name, stored in described.items():
        array = get(arrays, name)
        if array.dtype not in _KINDS[stored.kind]:
            raise ValueError(f"{name!r} holds {array.dtype}; {_NAMES[stored.kind]} of 32 or 64 bits are needed")
        sizes = _fit(name, array.shape, stored.shape.split(), sizes)
        _check_range(name, array, stored, sizes)
    return sizes


def check_csr(arrays: Mapping[str, np.ndarray], name: str, stored: Stored, sizes: Mapping[str, int]) -> dict[str, int]:
    """As :func:`check`, of the matrix whose parts are ``<name>.indptr``, ``.indices``, ``.data`` and ``.shape``."""
    parts = [f"{name}.{part}" for part in ("shape", "indptr", "indices", "data")]
    check(arrays, {parts[0]: Stored("i", "2", least=0)}, {})
    rows, columns = (int(length) for length in arrays[parts[0]])
    described = [
        Stored("i", "R", least=0),
        Stored("i", "N", least=0, below=columns),
        replace(stored, shape="N"),
    ]
    entries = check(arrays, dict(zip(parts[1:], described, strict=True)), {"R": rows + 1})["N"]
    indptr = arrays[parts[1]]
    if indptr[0] != 0 or indptr[-1] != entries or (np.diff(indptr) < 0).any():
        raise ValueError(f"{parts[1]!r} does not rise from 0 to {entries}")
    return _fit(name, (rows, columns), stored.shape.split(), sizes)


def get(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """``arrays[name]``; ValueError where it is missing."""
    if name not in arrays:
        raise ValueError(f"{name!r} is missing")
    return arrays[name]


def _fit(name: str, shape: tuple[int, ...], wanted: list[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """``sizes`` and the letters that ``shape`` tells; ValueError where it is another."""
    told = {letter: length for letter, length in zip(wanted, shape, strict=False) if letter.isalpha()}
    sizes = {**told, **sizes}
    expected = tuple(_size(one, sizes) for one in wanted)
    if shape != expected:
        raise ValueError(f"{name!r} has the shape {shape}; {expected} is needed")
    return sizes


def _size(text: str, sizes: Mapping[str, int]) -> int | None:
    letter, _, less = text.partition("-")
    if letter.isdigit():
        return int(letter)
    return sizes[letter] - int(less or 0) if letter in sizes else None


def _check_range(name: str, array: np.ndarray, stored: Stored, sizes: Mapping[str, int]) -> None:
    if array.size == 0:
        return
    # both are NaN if any value is
    lowest, highest = array.min(), array.max()
    if stored.is_finite and not (np.isfinite(lowest) and np.isfinite(highest)):
        raise ValueError(f"{name!r} holds a value that is not finite")
    below = sizes[stored.below] if isinstance(stored.below, str) else stored.below
    for value in (lowest, highest):
        is_inside = stored.least <= value <= stored.most and stored.above < value < below
        if not (is_inside or (not stored.is_finite and np.isnan(value))):
            raise ValueError(f"{name!r} holds {value}; {_range(stored, below)}")


def _range(stored: Stored, below: float) -> str:
    rules = [
        f"at least {stored.least:g}" if stored.least > -math.inf else "",
        f"above {stored.above:g}" if stored.above > -math.inf else "",
        f"at most {stored.most:g}" if stored.most < math.inf else "",
        f"below {below:g}" if below < math.inf else "",
    ]
    return f"it must be {' and '.join(rule for rule in rules if rule)}"
