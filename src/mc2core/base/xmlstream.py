"""Records of huge XML files, one by one: decompressed in blocks and parsed by expat.

A document with its own declarations is rejected, so no entity is expanded, and nothing outside of the file is loaded.
Names are used as written; a default namespace makes no difference.

Memory is one block plus the selected fields of one record, for files of any length. Records before a damage are still
returned; then a :class:`DamagedInput` reports their number. The caller decides whether a part is enough.
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
    """Parts of an element that are read: its own name as a field ("" for none), attributes, and elements inside."""

    name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: dict[str, _Element] = field(default_factory=dict)


class Fields:
    """The wanted elements and attributes.

    Parameters
    ----------
    names : ``{path below the root: name}``, such as ``{"page/title": "title", "siteinfo/namespace@key": "key"}``. An
        element without wanted elements inside gives all text within it; any other gives its end, with no text.
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
    """A file is cut off, damaged or of another kind. The message is one sentence that names the file.

    truncated : everything before the damage was whole and has been delivered, so a caller may settle for it.
    """

    def __init__(self, message: str, truncated: bool = False) -> None:
        super().__init__(message)
        self.truncated = truncated


def inflater(head: bytes) -> Callable[..., Any] | None:
    """Return a function that opens a path or a stream with this beginning (gzip, bzip2, xz) decompressed; None for
    others."""
    for magic, opener in _INFLATERS.items():
        if head.startswith(magic):
            return opener
    return None


def blocks(
    path: str | os.PathLike[str], start: int = 0, stop: int | None = None, *, text: bool = False
) -> Iterator[bytes]:
    """Yield the decompressed content of a gz, bz2 or xz file (of one stream or many), or of a plain one.

    Parameters
    ----------
    start, stop : byte range of the *compressed* file, which must begin and end where a stream does (multistream bz2).
    text : a file that is not compressed may be any text; else it must be XML.

    Raises
    ------
    DamagedInput
        If the file is missing, empty, an HTML page, cut off, damaged (``truncated`` is set), or far too large when
        decompressed.
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
    """Part of a file, from its current position to ``stop``, with the interface that decompressors read."""

    def __init__(self, stream: IO[bytes], stop: int) -> None:
        self._stream, self._stop = stream, stop

    def read(self, size: int) -> bytes:
        return self._stream.read(min(size, self._stop - self._stream.tell()))

    read1 = read


def _check_beginning(path: Path, head: bytes, text: bool) -> None:
    """Check the beginning of a file that is not compressed."""
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
    """Yield (name, fields since the last one) each time one of the fields named in ``ends`` is complete.

    Fields are (name, text) in the order in which their elements end. Messages count the first of
    ``ends``.

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
    """Expat, and the fields that were complete since it was last fed."""

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
        """Bytes of the text or tag that is still open."""
        return len(self._text) + self._n_bytes - self._expat.CurrentByteIndex

    def feed(self, piece: bytes | None) -> tuple[list[tuple[str, bytes]], DamagedInput | str]:
        """Read a piece, None for the end: (the fields that are complete, what is wrong with the document or "")."""
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
