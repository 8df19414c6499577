"""What a stored array must be, one description for each, and the one function that checks them.

A digest says that values are those that were written. Checked are types and sizes, which another version of the program
may have written otherwise, and that indices stay within what kernels follow them into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mc2core import __version__

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
    below : letter of the size that indices stay below; -1 stands for none
    """

    kind: str
    shape: str
    below: str = ""


def check_format(found: object, known: str) -> None:
    """ValueError unless a file's format, "mc2core KIND VERSION", is the one that this version reads and writes."""
    if found == known:
        return
    kind, version = known.rsplit(" ", 1)
    its_kind, _, its_version = str(found).rpartition(" ")
    if its_kind == kind and its_version.isdecimal() and int(its_version) > int(version):
        raise ValueError(
            f"its format is {found!r}, of a newer mc2core than {__version__}, which reads {known!r}: update mc2core"
        )
    raise ValueError(f"its format is {found!r}, not {known!r}")


def check(
    arrays: Mapping[str, np.ndarray], described: Mapping[str, Stored], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Check every described array; returns ``sizes`` with the letters that were not known.

    ValueError names the array, what was found and what is needed.
    """
    sizes = dict(sizes)
    for name, stored in described.items():
        if name not in arrays:
            raise ValueError(f"{name!r} is missing")
        array = arrays[name]
        if array.dtype not in _KINDS[stored.kind]:
            raise ValueError(f"{name!r} holds {array.dtype}; {_NAMES[stored.kind]} of 32 or 64 bits are needed")
        sizes = _fit(name, array.shape, stored.shape, sizes)
        if stored.below and array.size and not -1 <= array.min() <= array.max() < sizes[stored.below]:
            raise ValueError(f"{name!r} holds an index that is not below {sizes[stored.below]}")
    return sizes


def _fit(name: str, shape: tuple[int, ...], wanted: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """``sizes`` and the letters that ``shape`` tells; ValueError unless it is the shape that is ``wanted``."""
    letters = wanted.split()
    told = {letter: length for letter, length in zip(letters, shape, strict=False) if letter.isalpha()}
    sizes = {**told, **sizes}
    expected = tuple(_size(one, sizes) for one in letters)
    if shape != expected:
        raise ValueError(f"{name!r} has the shape {shape}; {expected} is needed")
    return sizes


def _size(text: str, sizes: Mapping[str, int]) -> int | None:
    letter, _, less = text.partition("-")
    if letter.isdigit():
        return int(letter)
    return sizes[letter] - int(less or 0) if letter in sizes else None
