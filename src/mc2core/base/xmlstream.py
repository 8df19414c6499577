"""Reading of huge XML files, one record after another, decompressed in blocks and parsed by expat.

A document with its own declarations is rejected. Therefore no entity is expanded, and nothing outside of the file is
loaded. Names of elements are used as written, without namespaces.

For files of any length, only one block and the selected fields of one record are in memory. If a file is damaged, the
records before the damage are returned, and then :class:`DamagedInput` reports the number of these records.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

BLOCK_BYTES = 1 << 18
#: Beyond this many bytes a file that inflates more than MAX_RATIO times is a bomb: stubs of histories reach about 30.
BOMB_BYTES = 256 * 2**20
MAX_RATIO = 1000
#: Longest stretch of XML without a complete record; whole citations and revisions stay far below.
MAX_RECORD_BYTES = 128 * 2**20
#: Longest text of one element, and longest tag.
MAX_FIELD_BYTES = 10 * 2**20
MAX_LEVELS = 256
_HEAD_BYTES = 1024
_INFLATERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
#: number of first bytes by which :func:`inflater` recognises the compression
LONGEST_MAGIC = max(map(len, _INFLATERS))
_XML_SPACE = b" \t\r\n"


@dataclass
class _Element:
    """Parts of an element to read: its field name ("" if it is not a field), attributes, and elements inside."""

    name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: dict[str, _Element] = field(default_factory=dict)


class Fields:
    """The elements and attributes to read.

    Parameters
    ----------
    names : mapping
        Name of each field, by path below the root, such as ``{"page/title": "title", "siteinfo/namespace@key":
        "key"}``. The value of an element is all text within it. An element with other fields inside has no text; it
        marks the end of the element.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.root = _Element()
        for path, name in names.items():
            elements, _, attribute = path.partition("@")
            node = self.root
            for element in elements.split("/"):
                node = node.children.setdefault(element, _Element())
            if attribute:
                node.attributes[attribute] = name
            else:
                node.name = name


class DamagedInput(ValueError):
    """A file is truncated, damaged or of another kind. The message is one sentence with the file.

    If ``truncated`` is True, everything before the damage was valid and was returned.
    """

    def __init__(self, message: str, truncated: bool = False) -> None:
        super().__init__(message)
        self.truncated = truncated


def inflater(head: bytes) -> Callable[..., Any] | None:
    """Return the function that decompresses a file which begins with ``head`` (gzip, bzip2, xz); None for other
    files."""
    for magic, opener in _INFLATERS.items():
        if head.startswith(magic):
            return opener
    return None


def blocks(
    path: str | os.PathLike[str], start: int = 0, stop: int | None = None, *, text: bool = False
) -> Iterator[bytes]:
    """Yield blocks of the decompressed content of a gz, bz2 or xz file, or of a file that is not compressed.

    Parameters
    ----------
    path : path
        The file. A compressed file may consist of several streams.
    start, stop : int, optional
        Range of bytes of the *compressed* file, which must begin and end at the bounds of streams (multistream bz2).
    text : bool, optional
        Whether a file that is not compressed may be any text. By default, it must be XML.

    Raises
    ------
    DamagedInput
        If the file is missing, empty, an HTML page, truncated or damaged (with ``truncated`` set), or far too large
        when decompressed.
    """
    path = Path(path)
    if not path.is_file():
        raise DamagedInput(f"{path} is missing")
    size = path.stat().st_size
    if size == 0:
        raise DamagedInput(f"{path} is empty")
    with path.open("rb") as stream:
        stream.seek(start)
        head = stream.read(_HEAD_BYTES)
        stream.seek(start)
        part = _Part(stream, size if stop is None else stop)
        inflate = inflater(head)
        if inflate is None:
            _check_beginning(path, head, text)
        n_read = 0
        try:
            inflated = inflate(part) if inflate else part
            while block := inflated.read1(BLOCK_BYTES):
                yield block
                n_read += len(block)
                if n_read > BOMB_BYTES and n_read > MAX_RATIO * (stream.tell() - start):
                    raise DamagedInput(
                        f"{path} inflates to more than {MAX_RATIO} times its size; valid files of this kind do not"
                    )
        except EOFError as error:
            raise DamagedInput(f"{path} is cut off after {n_read} inflated bytes", truncated=n_read > 0) from error
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise DamagedInput(
                f"{path} is damaged after {n_read} inflated bytes: {' '.join(str(error).split())}", truncated=n_read > 0
            ) from error


class _Part:
    """Part of a file, from its current position to ``stop``, with the methods that decompressors call."""

    def __init__(self, stream: IO[bytes], stop: int) -> None:
        self._stream, self._stop = stream, stop

    def read(self, size: int) -> bytes:
        return self._stream.read(min(size, self._stop - self._stream.tell()))

    read1 = read


def _check_beginning(path: Path, head: bytes, text: bool) -> None:
    """Raise DamagedInput unless a file that is not compressed begins like XML or, if ``text`` is True, like text."""
    beginning = head.lstrip(b"\xef\xbb\xbf" + _XML_SPACE).lower()
    if beginning.startswith((b"<!doctype html", b"<html")):
        raise DamagedInput(f"{path} is an HTML page instead of data")
    if head.startswith(b"7z\xbc\xaf\x27\x1c"):
        raise DamagedInput(f"{path} is a 7z archive; give the file in it, or the same packed by gzip, bzip2 or xz")
    if not text and not beginning.startswith(b"<"):
        raise DamagedInput(f"{path} is neither gzip, bzip2, xz nor plain XML; it begins with {head[:8]!r}")


def records(
    path: str | os.PathLike[str],
    root: str,
    fields: Fields,
    ends: Sequence[str],
    *,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Yield the name and the fields of each record.

    A record ends with an element whose field name is in ``ends``. Its fields are pairs (name, text) in the order in
    which their elements end.

    Parameters
    ----------
    path : path
        The XML file, possibly compressed (:func:`blocks`).
    root : str
        Required name of the root element.
    fields : Fields
        The fields to read.
    ends : sequence of str
        Names of the fields that end a record. Messages count records that end with the first name.
    start, stop : int, optional
        As in :func:`blocks`. If the range is only a part of the file, missing tags of the root element are added.

    Raises
    ------
    DamagedInput
        If :func:`blocks` finds damage, if the XML is not well-formed or not UTF-8, if the root element has another
        name, or if the document has its own declarations, such as entities.
    """
    path = Path(path)
    parser = _Parser(path, root, fields)
    count, waiting = 0, 0
    values: list[tuple[str, bytes]] = []
    ends_early = stop is not None and stop < path.stat().st_size
    pieces = itertools.chain(
        [f"<{root}>".encode()] if start > 0 else [],
        blocks(path, start, stop),
        [f"</{root}>".encode()] if ends_early else [],
        [None],
    )
    try:
        for piece in pieces:
            complete, error = parser.feed(piece)
            waiting += len(piece or b"")
            # complete records before an error are returned first
            for name, content in complete:
                if name not in ends:
                    values.append((name, content))
                    continue
                count += name == ends[0]
                waiting = 0
                yield name, values
                values = []
            if isinstance(error, DamagedInput):
                raise error
            if error and count == 0:
                raise DamagedInput(f"{path} is not well-formed XML: {error}")
            if error:
                raise DamagedInput(
                    f"{path} is cut off or damaged after {count} complete records: {error}", truncated=True
                )
            if waiting > MAX_RECORD_BYTES:
                raise DamagedInput(f"{path} has {waiting} bytes without the end of a <{ends[0]}> after {count} records")
            if parser.held > MAX_FIELD_BYTES:
                raise DamagedInput(
                    f"{path} has a text or tag of more than {MAX_FIELD_BYTES} bytes after {count} complete records"
                )
    except DamagedInput as error:
        if error.truncated and "complete records" not in str(error):
            raise DamagedInput(f"{error}; {count} complete records come before", truncated=count > 0) from error
        raise


class _Parser:
    """Parser of a document by expat, which collects the fields to read."""

    def __init__(self, path: Path, root: str, fields: Fields) -> None:
        self._path, self._root, self._root_element = path, root, fields.root
        self._complete: list[tuple[str, bytes]] = []
        self._open: list[_Element | None] = []  # None: nothing is wanted of it
        self._text = bytearray()
        self._n_bytes = 0
        self._expat = expat.ParserCreate("UTF-8")
        self._expat.buffer_text = True
        self._expat.buffer_size = BLOCK_BYTES
        self._expat.XmlDeclHandler = self._announce
        self._expat.StartDoctypeDeclHandler = self._declare
        self._expat.SkippedEntityHandler = self._skip
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end

    @property
    def held(self) -> int:
        """Number of bytes of the incomplete text or tag."""
        return len(self._text) + self._n_bytes - self._expat.CurrentByteIndex

    def feed(self, piece: bytes | None) -> tuple[list[tuple[str, bytes]], DamagedInput | str]:
        """Parse a piece of the document, or its end (None).

        Returns the fields that are now complete, and an error, or "" if there is none.
        """
        wrong: DamagedInput | str = ""
        try:
            self._expat.Parse(piece or b"", piece is None)
        except DamagedInput as error:
            wrong = error
        except (expat.ExpatError, _Damage) as error:
            wrong = str(error) if piece else "the end of the file inside of an element"
        self._n_bytes += len(piece or b"")
        complete, self._complete = self._complete, []
        return complete, wrong

    # Expat stops at once where one of these raises.
    def _announce(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "us-ascii"):
            raise DamagedInput(f"{self._path} is encoded as {encoding[:40]}; UTF-8 is needed")

    def _declare(self, name: str, system: str | None, public: str | None, has_declarations: bool) -> None:
        if has_declarations:
            raise DamagedInput(f"{self._path} has its own declarations, which are not allowed")

    def _skip(self, name: str, is_parameter: bool) -> None:
        """Reject an entity that an external document type may define."""
        raise _Damage(f"undefined entity {name[:40]!r}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open:
            if name != self._root:
                raise DamagedInput(f"{self._path} has the root element <{name[:40]}>; <{self._root}> is needed")
            self._open.append(self._root_element)
            return
        if len(self._open) == MAX_LEVELS:
            raise DamagedInput(f"{self._path} has elements more than {MAX_LEVELS} deep, which is not allowed")
        outer = self._open[-1]
        element = None if outer is None else outer.children.get(name)
        self._open.append(element)
        if element is None:
            return
        for attribute, key in element.attributes.items():
            if attribute in attributes:
                self._complete.append((key, attributes[attribute].encode()))
        if element.name and not element.children:
            self._expat.CharacterDataHandler = self._add

    def _add(self, text: str) -> None:
        self._text += text.encode()

    def _end(self, name: str) -> None:
        element = self._open.pop()
        if element is not None and element.name:
            self._complete.append((element.name, bytes(self._text)))
            self._text.clear()
            self._expat.CharacterDataHandler = None


class _Damage(ValueError):
    """Damage of a document, without the name of the document."""
