"""MATLAB 5 files ("MAT-file format, level 5"), the part that data files need: numbers, text, cells, sparse matrices.

Why not scipy.io.loadmat: it inflates without a limit, believes the sizes in the file, and forged bytes crash the
interpreter (a segmentation fault, found by fuzzing). Here each size is checked against the bytes that are there.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

MAX_BYTES = 512 * 2**20
_MAX_DEPTH = 8
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _CHARACTERS, _SPARSE = 1, 4, 5
_FIRST_NUMERIC, _LAST_NUMERIC = 6, 15
_COMPLEX = 0x0800

Value: TypeAlias = np.ndarray | sp.csc_matrix | str | list


class _Damage(ValueError):
    """What is wrong, without the file's name."""


def read_matlab(
    path: str | os.PathLike[str], names: Collection[str], *, max_bytes: int = MAX_BYTES
) -> dict[str, Value]:
    """Read the named variables of a version 5 file, compressed or not.

    Parameters
    ----------
    max_bytes : most bytes of the file, and of all its variables together after inflating.

    Returns
    -------
    ``{name: value}``: arrays of numbers in MATLAB's shape, sparse matrices as CSC, text of one row or column as str,
    cells as a list in column-major order.

    Raises
    ------
    ValueError
        One sentence: not such a file, cut off, damaged, too large, a variable missing or of an unknown class.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    if path.stat().st_size > max_bytes:
        raise ValueError(f"{path} has {path.stat().st_size} bytes; {max_bytes} are allowed")
    raw = path.read_bytes()
    if raw.startswith((b"\x89HDF\r\n\x1a\n", b"MATLAB 7.3")):
        raise ValueError(f"{path} is a MATLAB 7.3 (HDF5) file; save it with -v7 to make it readable here")
    order = {b"IM": "<", b"MI": ">"}.get(raw[126:128])
    if order is None or not raw.startswith(b"MATLAB 5.0"):
        raise ValueError(f"{path} is neither a MATLAB 5 file nor a zip archive")
    found: dict[str, Value] = {}
    try:
        for matrix in _matrices(memoryview(raw)[128:], order, max_bytes):
            elements = _Elements(matrix, order)
            header = _Header(elements)
            if header.name in names:
                if header.name in found:
                    raise _Damage(f"variable {header.name!r} is there twice")
                found[header.name] = _value(header, elements, 0)
    except _Damage as error:
        raise ValueError(f"{path} is not a whole MATLAB file: {error}") from error
    for name in names:
        if name not in found:
            raise ValueError(f"{path} has no variable {name!r}")
    return found


class _Elements:
    """Reads data elements (a tag of type and size, then data) off a block of bytes."""

    def __init__(self, block: memoryview, order: str) -> None:
        self.block, self.order, self.place = block, order, 0

    def __bool__(self) -> bool:
        return self.place < len(self.block)

    def next(self) -> tuple[int, memoryview]:
        """Type and data of the next element."""
        tag = self._words(self.place, 2)
        kind, size, start = int(tag[0]), int(tag[1]), self.place + 8
        if kind >> 16:  # the small form: type, size and up to four bytes of data in one tag
            kind, size, start = kind & 0xFFFF, kind >> 16, self.place + 4
            if size > 4:
                raise _Damage(f"a small element claims {size} bytes")
        if start + size > len(self.block):
            raise _Damage(f"an element claims {size} bytes, but {max(0, len(self.block) - start)} are left")
        # data is padded to a multiple of eight bytes, compressed elements are not
        end = start + size
        self.place = end if kind == _COMPRESSED else max(self.place + 8, end + -end % 8)
        return kind, self.block[start:end]

    def numbers(self) -> np.ndarray:
        """The next element, which must be numbers, as a flat array."""
        kind, data = self.next()
        if kind not in _NUMBERS:
            raise _Damage(f"an element of type {kind} stands where numbers belong")
        dtype = np.dtype(self.order + _NUMBERS[kind])
        if len(data) % dtype.itemsize:
            raise _Damage(f"{len(data)} bytes are no whole number of {dtype.itemsize}-byte values")
        return np.frombuffer(data, dtype=dtype)

    def _words(self, place: int, n: int) -> np.ndarray:
        if place + 4 * n > len(self.block):
            raise _Damage("it ends in the middle of an element")
        return np.frombuffer(self.block, dtype=self.order + "u4", count=n, offset=place)


class _Header:
    """Class, shape and name: the first three elements of every matrix."""

    def __init__(self, elements: _Elements) -> None:
        flags, shape = elements.numbers(), elements.numbers()
        kind, name = elements.next()
        if len(flags) != 2 or len(shape) < 2 or flags.dtype.kind == "f" or shape.dtype.kind == "f" or kind != 1:
            raise _Damage("a matrix has no proper header")
        if (shape < 0).any():
            raise _Damage(f"a matrix has the shape {shape.tolist()}")
        self.kind, self.is_complex = int(flags[0]) & 0xFF, bool(int(flags[0]) & _COMPLEX)
        self.shape = tuple(int(length) for length in shape)
        self.size = math.prod(self.shape)
        self.name = bytes(name).decode("latin-1")


def _matrices(block: memoryview, order: str, max_bytes: int) -> Iterator[memoryview]:
    """Contents of the top-level matrices, inflated where they are compressed."""
    elements, total = _Elements(block, order), len(block)
    while elements:
        kind, data = elements.next()
        if kind == _COMPRESSED:
            inflater = zlib.decompressobj()
            try:
                inflated = inflater.decompress(data, max_bytes - total + 1)
            except zlib.error as error:
                raise _Damage(str(error)) from error
            total += len(inflated)
            if total > max_bytes:
                raise _Damage(f"it unpacks to more than {max_bytes} bytes, the most that is allowed")
            if not inflater.eof:
                raise _Damage("a compressed variable ends early")
            kind, data = _Elements(memoryview(inflated), order).next()
        if kind != _MATRIX:
            raise _Damage(f"an element of type {kind} stands where a variable belongs")
        yield data


def _value(header: _Header, elements: _Elements, depth: int) -> Value:
    if header.is_complex:
        raise _Damage(f"variable {header.name!r} holds complex numbers")
    if header.kind == _CELL:
        return _cell(header, elements, depth)
    if header.kind == _CHARACTERS:
        return _characters(header, elements)
    if header.kind == _SPARSE:
        return _sparse(header, elements)
    if _FIRST_NUMERIC <= header.kind <= _LAST_NUMERIC:
        numbers = elements.numbers()
        if len(numbers) != header.size:
            raise _Damage(f"variable {header.name!r} has {len(numbers)} values for the shape {header.shape}")
        return numbers.reshape(header.shape, order="F")
    raise _Damage(f"variable {header.name!r} is of class {header.kind}, which is neither numbers, text nor cells")


def _cell(header: _Header, elements: _Elements, depth: int) -> list:
    if depth >= _MAX_DEPTH:
        raise _Damage(f"cells are nested more than {_MAX_DEPTH} deep")
    if 8 * header.size > len(elements.block):
        raise _Damage(f"variable {header.name!r} claims {header.size} cells, more than the file can hold")
    values: list[Value] = []
    for _ in range(header.size):
        kind, data = elements.next()
        if kind != _MATRIX:
            raise _Damage(f"an element of type {kind} stands where a cell belongs")
        if len(data) == 0:
            values.append(np.empty((0, 0)))
        else:
            inner = _Elements(data, elements.order)
            values.append(_value(_Header(inner), inner, depth + 1))
    return values


def _characters(header: _Header, elements: _Elements) -> str:
    kind, data = elements.next()
    if kind not in _TEXT:
        raise _Damage(f"an element of type {kind} stands where text belongs")
    encoding = _TEXT[kind]
    if encoding in ("utf-16", "utf-32"):
        encoding += "-le" if elements.order == "<" else "-be"
    if len(header.shape) > 2 or min(header.shape) > 1:
        raise _Damage(f"a text of the shape {header.shape} has more than one row")
    try:
        return bytes(data).decode(encoding)
    except UnicodeDecodeError as error:
        raise _Damage(f"a text is not {encoding}: {error.reason}") from error


def _sparse(header: _Header, elements: _Elements) -> sp.csc_matrix:
    rows, ends, data = elements.numbers(), elements.numbers(), elements.numbers()
    if len(header.shape) != 2 or len(ends) != header.shape[1] + 1 or "f" in (rows.dtype.kind, ends.dtype.kind):
        raise _Damage(f"sparse variable {header.name!r} does not fit its shape {header.shape}")
    rows, ends = rows.astype(np.int64), ends.astype(np.int64)
    size = int(ends[-1])
    if ends[0] != 0 or (np.diff(ends) < 0).any() or size > min(len(rows), len(data)):
        raise _Damage(f"the columns of sparse variable {header.name!r} do not fit its {len(data)} values")
    if size and not (rows[:size].min() >= 0 and rows[:size].max() < header.shape[0]):
        raise _Damage(f"sparse variable {header.name!r} has an entry outside its {header.shape[0]} rows")
    native = data[:size].astype(data.dtype.newbyteorder("="))
    return sp.csc_matrix((native, rows[:size], ends), shape=header.shape)
