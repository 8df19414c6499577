"""Records of huge XML files, one after the other: decompressed block by block, parsed without expanding entities.

Memory is one block plus the wanted fields of one record, however long the file is. What comes before a damage is still
delivered: the records first, then a :class:`DamagedInput`, which says how many were whole. The caller decides whether a
part will do.
"""

from __future__ import annotations

import bz2
import itertools
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.sources.formats import sevenzip, xmlscan

BLOCK_BYTES = 1 << 18
#: Beyond this many bytes a file that inflates more than MAX_RATIO times is a bomb: stubs of histories reach about 30.
BOMB_BYTES = 256 * 2**20
MAX_RATIO = 1000
#: Longest stretch of XML without a complete record; whole citations and revisions stay far below.
MAX_RECORD_BYTES = 128 * 2**20
#: Longest text of one element, and longest tag.
MAX_FIELD_BYTES = 10 * 2**20
_XML_SPACE = b" \t\r\n"
_ENCODING = re.compile(rb"\s*(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"'>]*)")


class Fields:
    """The wanted elements and attributes.

    Parameters
    ----------
    names : ``{path below the root: name}``, such as ``{"page/title": "title", "siteinfo/namespace@key": "key"}``. An
        element without wanted elements inside gives all text within it; any other gives its end, with no text.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = list(names.values())
        children: list[dict[str, int]] = [{}]
        attributes: list[dict[str, int]] = [{}]
        events = [-1]
        for number, path in enumerate(names):
            elements, _, attribute = path.partition("@")
            node = 0
            for element in elements.split("/"):
                if element not in children[node]:
                    children[node][element] = len(children)
                    children.append({})
                    attributes.append({})
                    events.append(-1)
                node = children[node][element]
            if attribute:
                attributes[node][attribute] = number
            else:
                events[node] = number
        self.tables = (
            *_edges(children),
            *_edges(attributes),
            np.array(events, dtype=np.int32),
            np.array([event >= 0 and not inner for event, inner in zip(events, children, strict=True)]),
        )


def _edges(maps: list[dict[str, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((n + 1,) offsets, hashes of names, values) of each node's map."""
    ends = np.cumsum([0, *map(len, maps)], dtype=np.int64)
    hashes = np.array([_hash(name) for one in maps for name in one], dtype=np.uint64)
    return ends, hashes, np.array([value for one in maps for value in one.values()], dtype=np.int32)


def _hash(name: str) -> int:
    """FNV-1a, as in the kernel."""
    digest = 14695981039346656037
    for sign in name.encode():
        digest = ((digest ^ sign) * 1099511628211) % 2**64
    return digest


class DamagedInput(ValueError):
    """A file that is cut off, damaged or not what it should be; the message is one sentence naming the file.

    truncated : everything before the damage was whole and has been delivered, so a caller may settle for it.
    """

    def __init__(self, message: str, truncated: bool = False) -> None:
        super().__init__(message)
        self.truncated = truncated


def blocks(
    path: str | os.PathLike[str], start: int = 0, stop: int | None = None, *, text: bool = False
) -> Iterator[bytes]:
    """Yield the decompressed content of a gz, bz2 or xz file (of one stream or many), a 7z of one file, or a plain one.

    Parameters
    ----------
    start, stop : byte range of the *compressed* file, which must begin and end where a stream does (multistream bz2).
    text : a file that is not compressed may be any text; else it must be XML.

    Raises
    ------
    DamagedInput
        Missing, empty, an HTML page, cut off, damaged (``truncated`` is set), or inflating beyond all measure.
    """
    path = Path(path)
    if not path.is_file():
        raise DamagedInput(f"{path} is missing")
    size = path.stat().st_size
    if size == 0:
        raise DamagedInput(f"{path} is empty")
    with path.open("rb") as stream:
        stream.seek(start)
        left = (size if stop is None else stop) - start
        head = stream.read(min(BLOCK_BYTES, left))
        left -= len(head)
        if head.startswith(sevenzip.SIGNATURE):
            yield from _unpack(path)
            return
        make = _decompressor(path, head, text)

        def read() -> bytes:
            nonlocal left
            block = stream.read(min(BLOCK_BYTES, left))
            left -= len(block)
            return block

        if make is None:
            while head:
                yield head
                head = read()
            return
        yield from _inflate(path, make, head, read)


def _unpack(path: Path) -> Iterator[bytes]:
    given, size = 0, path.stat().st_size
    try:
        for block in sevenzip.blocks(path):
            given += len(block)
            _check_ratio(path, given, size)
            yield block
    except (sevenzip.Damage, lzma.LZMAError) as error:
        raise DamagedInput(
            f"{path} is damaged or cut off after {given} inflated bytes: {' '.join(str(error).split())}",
            truncated=given > 0,
        ) from error


def _check_ratio(path: Path, given: int, taken: int) -> None:
    if given > BOMB_BYTES and given > MAX_RATIO * taken:
        raise DamagedInput(f"{path} inflates to more than {MAX_RATIO} times its size, which no data of this kind does")


def _inflate(path: Path, make: Callable[[], Any], data: bytes, read: Callable[[], bytes]) -> Iterator[bytes]:
    taken, given = len(data), 0
    decompressor, fresh = make(), True  # fresh: nothing of the present stream was read yet
    while True:
        if not data:
            data = read()
            taken += len(data)
            if not data:
                break
        try:
            block = decompressor.decompress(data, BLOCK_BYTES)
            fresh, data = False, b""
            yield block
            given += len(block)
            # zlib may hold back output though it has taken all input: a full block means there may be more
            while not decompressor.eof and (len(block) >= BLOCK_BYTES or not _needs_input(decompressor)):
                block = decompressor.decompress(_rest(decompressor), BLOCK_BYTES)
                yield block
                given += len(block)
                _check_ratio(path, given, taken)
        except (OSError, zlib.error, lzma.LZMAError) as error:
            if given and fresh:
                return  # trailing bytes that are no stream: gzip and bzip2 ignore them too
            raise DamagedInput(
                f"{path} is damaged after {given} inflated bytes: {' '.join(str(error).split())}", truncated=given > 0
            ) from error
        if decompressor.eof:
            data = decompressor.unused_data.lstrip(b"\0")
            decompressor, fresh = make(), True
    if not fresh:
        raise DamagedInput(f"{path} is cut off after {given} inflated bytes", truncated=given > 0)


def _needs_input(decompressor: Any) -> bool:
    if hasattr(decompressor, "unconsumed_tail"):
        return not decompressor.unconsumed_tail
    return bool(decompressor.needs_input)


def _rest(decompressor: Any) -> bytes:
    return decompressor.unconsumed_tail if hasattr(decompressor, "unconsumed_tail") else b""


def _decompressor(path: Path, head: bytes, text: bool) -> Callable[[], Any] | None:
    """What inflates a file that begins like this; None for plain XML or SQL text."""
    if head.startswith(b"\x1f\x8b"):
        return lambda: zlib.decompressobj(wbits=31)
    if head.startswith(b"BZh"):
        return bz2.BZ2Decompressor
    if head.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor
    beginning = head[:1024].lstrip(b"\xef\xbb\xbf" + _XML_SPACE).lower()
    if beginning.startswith((b"<!doctype html", b"<html")):
        raise DamagedInput(f"{path} is an HTML page instead of data")
    if not text and not beginning.startswith(b"<") and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise DamagedInput(f"{path} is neither gzip, bzip2, xz, 7z nor plain XML; it begins with {head[:8]!r}")
    return None


def records(
    path: str | os.PathLike[str],
    root: str,
    fields: Fields,
    ends: Sequence[str],
    *,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Yield (name, fields since the last one) each time one of the fields named in ``ends`` is complete.

    Fields are (name, text) in the order in which their elements end. The first of ``ends`` is the record that messages
    count.

    Parameters
    ----------
    root : name that the outermost element must have.
    start, stop : see :func:`blocks`; a range that does not begin at 0 has no root tag of its own, one that does not
        reach the end of the file no end tag, and both are supplied.

    Raises
    ------
    DamagedInput
        As in :func:`blocks`; also XML that is not well-formed (text that is not UTF-8 and a missing end tag among
        this), another root, and any document with declarations of its own, such as entities.
    """
    path = Path(path)
    scanner = xmlscan.Scanner(fields.tables)
    names = fields.names
    count, waiting = 0, 0
    found: list[tuple[str, bytes]] = []
    ends_early = stop is not None and stop < path.stat().st_size
    pieces = itertools.chain(
        [f"<{root}>".encode()] if start > 0 else [],
        _without_mark(path, blocks(path, start, stop)),
        [f"</{root}>".encode()] if ends_early else [],
        [None],
    )
    try:
        for piece in pieces:
            events, content, error = scanner.feed(piece or b"", is_last=piece is None)
            waiting += len(piece or b"")
            # what was complete before an error comes first
            for number, begin, end in events:
                if number == xmlscan.ROOT:
                    _check_root(path, content[begin:end].decode("utf-8", "replace"), root)
                    continue
                name = names[number]
                if name not in ends:
                    found.append((name, content[begin:end]))
                    continue
                count += name == ends[0]
                waiting = 0
                yield name, found
                found = []
            reason = f"{xmlscan.REASONS[error]} (byte {scanner.place})" if error else ""
            if error in xmlscan.HARMFUL:
                raise DamagedInput(f"{path} has {reason}, which data of this kind never has")
            if error and count == 0:
                raise DamagedInput(f"{path} is not well-formed XML: {reason}")
            if error:
                raise DamagedInput(
                    f"{path} is cut off or damaged after {count} complete records: {reason}", truncated=True
                )
            if waiting > MAX_RECORD_BYTES:
                raise DamagedInput(f"{path} has {waiting} bytes without the end of a <{ends[0]}> after {count} records")
            if scanner.held > MAX_FIELD_BYTES:
                raise DamagedInput(
                    f"{path} has a text or tag of more than {MAX_FIELD_BYTES} bytes after {count} complete records"
                )
    except DamagedInput as error:
        if error.truncated and "complete records" not in str(error):
            raise DamagedInput(f"{error}; {count} complete records come before", truncated=count > 0) from error
        raise


def _without_mark(path: Path, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Drop a byte order mark; refuse what announces itself as another encoding than UTF-8."""
    is_first = True
    for piece in filter(None, pieces):
        if is_first:
            announced = _ENCODING.match(piece)
            if announced and announced[1].lower() not in (b"utf-8", b"us-ascii"):
                raise DamagedInput(f"{path} is encoded as {announced[1].decode('latin-1')[:40]}; UTF-8 is needed")
            piece, is_first = piece.removeprefix(b"\xef\xbb\xbf"), False
        yield piece


def _check_root(path: Path, found: str, root: str) -> None:
    if found != root:
        raise DamagedInput(f"{path} has the root element <{found[:40]}>; <{root}> is needed")
