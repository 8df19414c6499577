"""The one file inside a .7z archive, inflated block by block: how Wikipedia packs its full histories.

Read is what such dumps are: one file, packed by LZMA, LZMA2 or not at all. Sizes that the archive claims are checked
against the bytes that are there, so that a forged header costs neither memory nor time.
Format: 7zFormat.txt of the LZMA SDK (public domain).
"""

from __future__ import annotations

import lzma
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

SIGNATURE = b"7z\xbc\xaf\x27\x1c"
_BLOCK_BYTES = 1 << 18
_MOST_HEADER_BYTES = 2**20
_MOST_DICTIONARY_BYTES = 256 * 2**20
_MOST_NESTED_HEADERS = 4
_END, _HEADER, _MAIN_STREAMS, _PACKED, _UNPACKED, _SUBSTREAMS = 0x00, 0x01, 0x04, 0x06, 0x07, 0x08
_SIZES, _DIGESTS, _FOLDERS, _UNPACK_SIZES, _N_SUBSTREAMS, _ENCODED_HEADER = 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x17
_COPY, _LZMA, _LZMA2 = b"\x00", b"\x03\x01\x01", b"\x21"


class Damage(ValueError):
    """What is wrong with an archive, without its name."""


@dataclass
class _Stream:
    """Where packed bytes lie, how they are packed, and what they must give."""

    start: int = 0
    size: int = -1
    method: bytes = b""
    properties: bytes = b""
    unpacked: int = -1
    crc: int | None = None


def blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the content of the archive's one file. Damage, lzma.LZMAError: not whole, not such an archive."""
    with open(path, "rb") as stream:
        yield from _inflate(stream, _find_file(stream, os.fstat(stream.fileno()).st_size))


def _find_file(stream: IO[bytes], file_size: int) -> _Stream:
    head = stream.read(32)
    if len(head) < 32 or head[:6] != SIGNATURE:
        raise Damage("it has no whole header")
    start_crc, offset, size, crc = struct.unpack("<IQQI", head[8:])
    if zlib.crc32(head[12:]) != start_crc:
        raise Damage("its header has a wrong checksum")
    if 32 + offset + size > file_size:
        raise Damage(f"it has {file_size} bytes, but its index would end at byte {32 + offset + size}")
    if not 0 < size <= _MOST_HEADER_BYTES:
        raise Damage(f"its index has {size} bytes; 1 to {_MOST_HEADER_BYTES} are allowed")
    stream.seek(32 + offset)
    header = stream.read(size)
    if zlib.crc32(header) != crc:
        raise Damage("its index has a wrong checksum")
    for _ in range(_MOST_NESTED_HEADERS):
        reader = _Reader(header)
        kind = reader.byte()
        if kind == _HEADER:
            if reader.byte() != _MAIN_STREAMS:
                raise Damage("it holds no file")
            return reader.streams(file_size)
        if kind != _ENCODED_HEADER:
            break
        packed = reader.streams(file_size)
        if packed.unpacked > _MOST_HEADER_BYTES:
            raise Damage(f"its index unpacks to {packed.unpacked} bytes; {_MOST_HEADER_BYTES} are allowed")
        header = b"".join(_inflate(stream, packed))
    raise Damage("its index is of an unknown kind")


class _Reader:
    """Reads the numbers and lists of an index."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, n: int) -> bytes:
        taken = self._data[self._place : self._place + n]
        if len(taken) < n:
            raise Damage("its index ends early")
        self._place += n
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        """One to nine bytes; the leading ones of the first tell how many follow."""
        first = self.byte()
        extra = next((n for n in range(8) if not first & (0x80 >> n)), 8)
        low = int.from_bytes(self.take(extra), "little")
        return low | ((first & ((0x80 >> extra) - 1)) << (8 * extra) if extra < 8 else 0)

    def one(self, what: str) -> None:
        found = self.number()
        if found != 1:
            raise Damage(f"it has {found} {what}; one is needed")

    def digest(self) -> int:
        if self.byte() != 1:
            raise Damage("a checksum is missing")
        return int(struct.unpack("<I", self.take(4))[0])

    def streams(self, file_size: int) -> _Stream:
        """The one packed stream, and what it unpacks to."""
        found = _Stream()
        for kind in iter(self.byte, _END):
            if kind == _PACKED:
                found.start = 32 + self.number()
                self.one("packed streams")
                for part in iter(self.byte, _END):
                    if part == _SIZES:
                        found.size = self.number()
                    elif part == _DIGESTS:
                        self.digest()
                    else:
                        raise Damage("its index is of an unknown kind")
            elif kind == _UNPACKED:
                self._folder(found)
            elif kind == _SUBSTREAMS:
                for part in iter(self.byte, _END):
                    if part == _N_SUBSTREAMS:
                        self.one("files")
                    elif part == _DIGESTS:
                        found.crc = self.digest()
                    else:
                        raise Damage("its index is of an unknown kind")
            else:
                raise Damage("its index is of an unknown kind")
        if found.size < 0 or found.unpacked < 0 or found.start + found.size > file_size:
            raise Damage("its packed bytes do not lie inside of it")
        return found

    def _folder(self, found: _Stream) -> None:
        for part in iter(self.byte, _END):
            if part == _FOLDERS:
                self.one("folders of streams")
                if self.byte() != 0:
                    raise Damage("its index is of an unknown kind")
                self.one("steps of packing")
                flags = self.byte()
                found.method = self.take(flags & 0x0F)
                if flags & 0x10:
                    raise Damage("it is packed in several streams")
                found.properties = self.take(self.number()) if flags & 0x20 else b""
            elif part == _UNPACK_SIZES:
                found.unpacked = self.number()
            elif part == _DIGESTS:
                found.crc = self.digest()
            else:
                raise Damage("its index is of an unknown kind")


def _inflate(stream: IO[bytes], packed: _Stream) -> Iterator[bytes]:
    inflater = None if packed.method == _COPY else lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[_filter(packed)])
    left, given, crc, data = packed.size, 0, 0, b""
    stream.seek(packed.start)
    while given < packed.unpacked:
        if inflater is None or inflater.needs_input:
            data = stream.read(min(_BLOCK_BYTES, left))
            left -= len(data)
            if not data:
                raise Damage(f"its packed bytes give only {given} of {packed.unpacked}")
        block = data if inflater is None else inflater.decompress(data, min(_BLOCK_BYTES, packed.unpacked - given))
        data = b""
        given += len(block)
        crc = zlib.crc32(block, crc)
        yield block
        if inflater is not None and inflater.eof:
            break
    if given != packed.unpacked:
        raise Damage(f"its packed bytes give {given} instead of {packed.unpacked}")
    if packed.crc is not None and crc != packed.crc:
        raise Damage("its content has a wrong checksum")


def _filter(packed: _Stream) -> dict[str, Any]:
    properties = packed.properties
    if packed.method == _LZMA and len(properties) == 5 and properties[0] < 9 * 5 * 5:
        literal, position = properties[0] % 9, properties[0] // 9
        size = int.from_bytes(properties[1:], "little")
        options = {"id": lzma.FILTER_LZMA1, "lc": literal, "lp": position % 5, "pb": position // 5}
    elif packed.method == _LZMA2 and len(properties) == 1 and properties[0] < 40:
        size = (2 | (properties[0] & 1)) << (properties[0] // 2 + 11)
        options = {"id": lzma.FILTER_LZMA2}
    else:
        raise Damage(f"it is packed by the method {packed.method.hex() or '-'}; LZMA and LZMA2 can be read")
    if size > _MOST_DICTIONARY_BYTES:
        raise Damage(f"it needs a dictionary of {size} bytes; {_MOST_DICTIONARY_BYTES} are allowed")
    return options | {"dict_size": max(size, 4096)}
