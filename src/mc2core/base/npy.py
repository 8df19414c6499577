"""A strict reader of .npy data: plain numbers and text as NumPy writes them, of exactly the size that is there.

NumPy's own reader hands a damaged header to Python's parser, and allocates what the header claims.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<|][biufSU][0-9]{1,10})', 'fortran_order': (True|False), "
    rb"'shape': \((|[0-9]{1,19},|[0-9]{1,19}(?:, [0-9]{1,19})+)\), \} *\n"
)
_CHUNK = 1 << 24


class Header(NamedTuple):
    """What an array is, and where in its file it begins."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int


def read_header(stream: IO[bytes], size: int) -> Header:
    """The header of .npy data of ``size`` bytes; ValueError unless it is whole and the data have its size."""
    start = stream.read(len(_MAGIC) + 2)
    text = stream.read(int.from_bytes(start[len(_MAGIC) :], "little"))
    match = _HEADER.fullmatch(text)
    if not start.startswith(_MAGIC) or match is None:
        raise ValueError("an array's header is damaged")
    try:
        dtype = np.dtype(match[1].decode())
    except TypeError:
        raise ValueError(f"an array has the unknown type {match[1].decode()!r}") from None
    shape = tuple(int(length) for length in match[3].replace(b",", b" ").split())
    header = Header(dtype, shape, match[2] == b"True", len(start) + len(text))
    needed = header.offset + math.prod(shape) * dtype.itemsize
    if needed != size:
        raise ValueError(f"an array of {size} bytes should have {needed}")
    return header


def read(stream: IO[bytes], size: int) -> np.ndarray:
    """The array in .npy data of ``size`` bytes; ValueError for any other data."""
    header = read_header(stream, size)
    array = np.empty(header.shape, header.dtype, order="F" if header.is_fortran else "C")
    if array.nbytes:
        flat = (array.T if header.is_fortran else array).reshape(-1).view(np.uint8).data
        for first in range(0, len(flat), _CHUNK):
            part = stream.read(min(_CHUNK, len(flat) - first))
            flat[first : first + len(part)] = part
    # a member of an archive is checked once its end has been read
    if stream.read(1):
        raise ValueError("an array has bytes after its end")
    return array


def open_mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, memory-mapped and read-only; ValueError for a missing or damaged file."""
    try:
        with path.open("rb") as stream:
            header = read_header(stream, os.fstat(stream.fileno()).st_size)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a whole array file: {error}") from error
    order = "F" if header.is_fortran else "C"
    if 0 in header.shape:
        # nothing can be mapped
        return np.empty(header.shape, header.dtype, order)  # type: ignore[call-overload]
    return np.memmap(path, header.dtype, "r", header.offset, header.shape, order)  # type: ignore[call-overload]
