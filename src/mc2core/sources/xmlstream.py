"""Records of huge XML files, one after the other: decompressed block by block, parsed without expanding entities.

Memory is one block plus one record, however long the file is. What comes before a damage is still delivered: the
records first, then a :class:`DamagedInput`, which says how many were whole. The caller decides whether a part will do.
"""

from __future__ import annotations

import bz2
import itertools
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

BLOCK_BYTES = 1 << 18
#: Beyond this many bytes a file that inflates more than MAX_RATIO times is a bomb: stubs of histories reach about 30.
BOMB_BYTES = 256 * 2**20
MAX_RATIO = 1000
#: Longest stretch of XML without a complete record; whole citations and revisions stay far below.
MAX_RECORD_BYTES = 128 * 2**20
_MOST_SKIPPED_BYTES = 4 * 2**20
_LONGEST_TAG = 200
_XML_SPACE = b" \t\r\n"
_LIMITS = (etree.ErrorTypes.ERR_RESOURCE_LIMIT, etree.ErrorTypes.ERR_NAME_TOO_LONG, etree.ErrorTypes.ERR_ENTITY_LOOP)


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
    """Yield the decompressed content of a gz, bz2 or xz file (of one stream or many) or of a plain one.

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
                if given > BOMB_BYTES and given > MAX_RATIO * taken:
                    raise DamagedInput(
                        f"{path} inflates to more than {MAX_RATIO} times its size, which no data of this kind does"
                    )
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
        raise DamagedInput(f"{path} is neither gzip, bzip2, xz nor plain XML; it begins with {head[:8]!r}")
    return None


def records(
    path: str | os.PathLike[str],
    root: str,
    tags: Sequence[str],
    *,
    start: int = 0,
    stop: int | None = None,
    skip: Sequence[str] = (),
) -> Iterator[Any]:
    """Yield each element named in ``tags`` (any namespace), complete, in the order in which they end.

    The first of ``tags`` is the record that messages count.

    An element is taken out of the tree when the caller asks for the next one, so it must not be kept.

    Parameters
    ----------
    root : local name that the outermost element must have.
    start, stop : see :func:`blocks`; a range that does not begin at 0 has no root tag of its own, one that does not
        reach the end of the file no end tag, and both are supplied.
    skip : elements (without prefix, never one within another of them) cut out before parsing, see :func:`_without`.

    Raises
    ------
    DamagedInput
        As in :func:`blocks`; also XML that is not well-formed (text that is not UTF-8 and a missing end tag among
        this), another root, and any document that declares entities.
    """
    path = Path(path)
    parser = etree.XMLPullParser(
        events=("end",),
        tag=[f"{{*}}{tag}" for tag in tags],
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,  # keeps libxml2's limits: 256 levels, 10 MB a text, amplification by attributes
        remove_comments=True,
        remove_pis=True,
    )
    count, checked, waiting = 0, False, 0
    ends_early = stop is not None and stop < path.stat().st_size
    pieces = itertools.chain(
        [f"<{root}>".encode()] if start > 0 else [],
        _without(blocks(path, start, stop), skip, tags[0]) if skip else blocks(path, start, stop),
        [f"</{root}>".encode()] if ends_early else [],
        [None],
    )
    try:
        for piece in pieces:
            last, failure = _feed(path, parser, piece)
            waiting += 0 if piece is None else len(piece)
            # what was complete before a failure comes first
            for _, element in parser.read_events():
                waiting = 0
                if not checked:
                    _check_document(path, element, root)
                    checked = True
                count += etree.QName(element).localname == tags[0]
                yield element
                _drop(element)
            if failure and count == 0:
                raise DamagedInput(f"{path} is not well-formed XML: {failure}")
            if failure:
                raise DamagedInput(
                    f"{path} is cut off or damaged after {count} complete records: {failure}", truncated=True
                )
            if waiting > MAX_RECORD_BYTES:
                raise DamagedInput(f"{path} has {waiting} bytes without the end of a <{tags[0]}> after {count} records")
        if not checked:
            _check_document(path, last, root)
    except DamagedInput as error:
        if error.truncated and "complete records" not in str(error):
            raise DamagedInput(f"{error}; {count} complete records come before", truncated=count > 0) from error
        raise


def _without(pieces: Iterable[bytes], skip: Sequence[str], record: str) -> Iterator[bytes]:
    """Cut elements that nobody reads out of XML: what is not parsed costs no time.

    A stretch that holds the beginning of another record, a comment or CDATA is left for the parser to judge, and so is
    one without end; inside of what is cut, nothing is checked.
    """
    opening = re.compile(rb"<(%s)(?: [^<>]*[^<>/])?>" % "|".join(skip).encode())
    foreign = re.compile(rb"<!|<%s[ >]" % record.encode())
    rest = b""
    for piece in pieces:
        data, position, kept, rest = rest + piece, 0, [], b""
        while match := opening.search(data, position):
            end_tag = b"</%s>" % match[1]
            end = data.find(end_tag, match.end())
            if end < 0 and len(data) - match.start() < _MOST_SKIPPED_BYTES:
                rest = data[match.start() :]
                data = data[: match.start()]
                break
            if end < 0 or foreign.search(data, match.end(), end):
                kept.append(data[position : match.end()])
                position = match.end()
            else:
                kept.append(data[position : match.start()])
                position = end + len(end_tag)
        if not rest:
            # a tag may go on in the next piece
            last = data.rfind(b"<", max(position, len(data) - _LONGEST_TAG))
            if last >= 0 and b">" not in data[last:]:
                rest, data = data[last:], data[:last]
        kept.append(data[position:])
        yield b"".join(kept)
    if rest:
        yield rest


def _feed(path: Path, parser: Any, piece: bytes | None) -> tuple[Any, str]:
    """Parse a piece or, without one, the end of the document: (root at the end, what went wrong or "")."""
    root = None
    try:
        if piece is None:
            root = parser.close()
        else:
            parser.feed(piece)
    except etree.XMLSyntaxError as error:
        # after an undeclared entity the parser goes silent and only its log tells why
        first = next((entry for entry in parser.feed_error_log if entry.level == etree.ErrorLevels.FATAL), None)
        if first is None:
            return None, _reason(error)
        if first.type in _LIMITS:
            # elements that the limit closed early look complete: nothing of this piece is to be trusted
            raise DamagedInput(f"{path} is beyond what a record may be: {_reason(first.message)}") from error
        return None, f"{_reason(first.message)} (line {first.line})"
    return root, ""


def parse_fragment(path: Path, content: bytes) -> Any:
    """One small element of XML as a tree, under the same restrictions."""
    try:
        return etree.fromstring(content, etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise DamagedInput(f"{path} is not well-formed XML: {_reason(error)}") from error


def _check_document(path: Path, element: Any, root: str) -> None:
    tree = element.getroottree()
    found = etree.QName(tree.getroot()).localname
    if found != root:
        raise DamagedInput(f"{path} has the root element <{found[:40]}>; <{root}> is needed")
    declarations = tree.docinfo.internalDTD
    if declarations is not None and next(declarations.iterentities(), None) is not None:
        raise DamagedInput(f"{path} declares entities of its own, which data of this kind never does")


def _drop(element: Any) -> None:
    """Free an element that was dealt with; below the root also all that stands before it."""
    parent = element.getparent()
    if parent is None:
        element.clear()
        return
    if parent.getparent() is None:
        while element.getprevious() is not None:
            del parent[0]
        parent.text = None
    element.tail = None
    parent.remove(element)


def _reason(error: BaseException | str) -> str:
    return " ".join(str(error).split())[:200]
