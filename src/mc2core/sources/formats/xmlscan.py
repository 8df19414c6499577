"""XML in one compiled pass: it is checked to be well-formed, and only the text of wanted elements is kept.

Read is what official dumps are made of: UTF-8, elements, attributes, the five entities of XML itself and references to
characters, CDATA, comments, processing instructions, a document type without declarations of its own. All else is an
error, so there is nothing to expand and nothing to load. Names are taken as they are written: a default namespace makes
no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.sources.formats.xmltext import LONGEST_REFERENCE, is_space, put_character, read_reference, utf8_width

MOST_LEVELS = 256
#: Number of the event that tells the root's name.
ROOT = -1
_BEFORE, _INSIDE, _AFTER = 0, 1, 2
_DEPTH, _PHASE, _CAPTURED, _START = 0, 1, 2, 3
_BAD_TAG, _MISMATCH, _BAD_REFERENCE, _BAD_CHARACTER, _DECLARES, _EXTRA, _TOO_DEEP, _CUT = range(1, 9)
REASONS = {
    _BAD_TAG: "a '<' that begins no proper tag",
    _MISMATCH: "an end tag that does not fit the open element",
    _BAD_REFERENCE: "an entity that is not defined",
    _BAD_CHARACTER: "bytes that are no UTF-8 text",
    _DECLARES: "declarations of its own",
    _EXTRA: "content outside of the root element",
    _TOO_DEEP: f"elements more than {MOST_LEVELS} deep",
    _CUT: "the end of the file inside of an element",
}
#: Errors of files that are made to harm, not cut off or damaged.
HARMFUL = (_DECLARES, _TOO_DEEP)
_LESS, _GREATER, _SLASH, _BANG, _QUESTION, _AMPERSAND, _SEMICOLON, _EQUALS = (ord(sign) for sign in "<>/!?&;=")
_DASH, _OPEN_BRACKET, _CLOSE_BRACKET, _QUOTE, _APOSTROPHE, _SPACE, _TAB, _NEWLINE, _RETURN = b"-[]\"' \t\n\r"
# bytes of text that need no care: printable ASCII, tab and line feed, but "<" and "&"
_PLAIN = np.array([(32 <= sign < 128 or sign in b"\t\n") and sign not in b"<&" for sign in range(256)])
_NAME = np.array([sign >= 128 or chr(sign).isalnum() or sign in b"-._:" for sign in range(256)])
_CDATA = np.frombuffer(b"<![CDATA[", np.uint8)
_DOCTYPE = np.frombuffer(b"<!DOCTYPE", np.uint8)


class Scanner:
    """The state between two pieces of a document.

    Parameters
    ----------
    tables : what is wanted, as :class:`mc2core.sources.formats.xmlstream.Fields` packs it.
    """

    def __init__(self, tables: Sequence[np.ndarray]) -> None:
        self._tables = tables
        self._state = np.zeros(4, dtype=np.int64)
        self._hashes = np.zeros(MOST_LEVELS, dtype=np.uint64)
        self._nodes = np.zeros(MOST_LEVELS, dtype=np.int32)
        self._open = np.empty(0, dtype=np.uint8)
        self._rest = b""
        self.place = 0

    @property
    def held(self) -> int:
        """Bytes kept from earlier pieces: of the element or the tag that is still open."""
        return len(self._open) + len(self._rest)

    def feed(self, piece: bytes, is_last: bool = False) -> tuple[list[tuple[int, int, int]], bytes, int]:
        """Scan a piece: (events as (number of the field, start, end), the text they lie in, error or 0).

        Events come in the order in which elements end, attributes before their element. ``place`` is the byte of the
        document that was reached, which is the place of an error.
        """
        data = self._rest + piece if self._rest else piece
        arena = np.empty(len(self._open) + len(data), dtype=np.uint8)
        arena[: len(self._open)] = self._open
        most = len(data) // 4 + 2
        events = np.empty((3, most), dtype=np.int64)
        consumed, n_events, size, error = _scan(
            np.frombuffer(data, np.uint8), is_last, arena, len(self._open), events,
            self._state, self._hashes, self._nodes, *self._tables,
        )  # fmt: skip
        self._rest = data[consumed:]
        self.place += consumed
        self._open = arena[self._state[_START] : size].copy() if self._state[_CAPTURED] else arena[:0]
        self._state[_START] = 0
        if is_last and not error and self._state[_PHASE] != _AFTER:
            error = _CUT
        return list(zip(*events[:, :n_events].tolist(), strict=True)), arena[:size].tobytes(), error


@kernel
def _name(text, start):
    """(hash of the name that begins here, its end)."""
    digest = np.uint64(14695981039346656037)
    i = start
    while i < len(text) and _NAME[text[i]]:
        digest = (digest ^ np.uint64(text[i])) * np.uint64(1099511628211)
        i += 1
    return digest, i


@kernel
def _look_up(node, digest, ends, hashes, values):
    for k in range(ends[node], ends[node + 1]):
        if hashes[k] == digest:
            return values[k]
    return -1


@kernel
def _begins(text, i, prefix):
    """Whether ``prefix`` stands at i as far as there is text."""
    k = 0
    while k < len(prefix) and i + k < len(text) and text[i + k] == prefix[k]:
        k += 1
    return k == len(prefix) or i + k == len(text)


@kernel
def _find_end(text, start, sign):
    """Position behind the first ``sign``, ``sign``, ">" (of "?": one is enough) at or after ``start``; -1: none."""
    least = start + (1 if sign == _QUESTION else 2)
    for i in range(least, len(text)):
        if text[i] == _GREATER and text[i - 1] == sign and (sign == _QUESTION or text[i - 2] == sign):
            return i + 1
    return -1


@kernel
def _scan(
    text, is_last, arena, size, events, state, hashes, nodes,
    child_ends, child_hashes, children, attribute_ends, attribute_hashes, attributes, node_events, is_text,
):  # fmt: skip
    """(bytes consumed, events, bytes of the arena used, error); an unfinished tag at the end is left for later."""
    n, i, n_events, error = len(text), 0, 0, 0
    depth, phase, captured, start = state[_DEPTH], state[_PHASE], state[_CAPTURED], state[_START]
    while i < n:
        sign = text[i]
        if sign != _LESS:
            if phase != _INSIDE:
                if not is_space(sign):
                    error = _EXTRA
                    break
                i += 1
            elif _PLAIN[sign]:
                if captured:
                    while i < n and _PLAIN[text[i]]:
                        arena[size] = text[i]
                        size += 1
                        i += 1
                else:
                    while i < n and _PLAIN[text[i]]:
                        i += 1
            elif sign == _AMPERSAND:
                stop, last = i + 1, min(n, i + LONGEST_REFERENCE)
                while stop < last and text[stop] != _SEMICOLON:
                    stop += 1
                if stop == n and not is_last and n < i + LONGEST_REFERENCE:
                    break
                code = read_reference(text, i + 1, stop) if stop < last else -1
                if code < 0:
                    error = _BAD_REFERENCE
                    break
                if captured:
                    size = put_character(arena, size, code)
                i = stop + 1
            elif sign == _RETURN:
                # line ends are one line feed each, as XML has it
                if i + 1 == n and not is_last:
                    break
                if captured and not (i + 1 < n and text[i + 1] == _NEWLINE):
                    arena[size] = _NEWLINE
                    size += 1
                i += 1
            else:
                width = utf8_width(text, i)
                if width == 0 and not is_last:
                    break
                if width <= 0:
                    error = _BAD_CHARACTER
                    break
                if captured:
                    for k in range(width):
                        arena[size + k] = text[i + k]
                    size += width
                i += width
            continue
        if i + 1 == n:
            break
        following = text[i + 1]
        if following == _SLASH:
            digest, stop = _name(text, i + 2)
            while stop < n and is_space(text[stop]):
                stop += 1
            if stop == n:
                break
            if text[stop] != _GREATER:
                error = _BAD_TAG
                break
            if phase != _INSIDE or hashes[depth - 1] != digest:
                error = _MISMATCH
                break
            depth -= 1
            node = nodes[depth]
            if captured == 0 or captured == depth + 1:
                if node >= 0 and node_events[node] >= 0:
                    events[0, n_events] = node_events[node]
                    events[1, n_events] = start if captured else size
                    events[2, n_events] = size
                    n_events += 1
                captured = 0
            if depth == 0:
                phase = _AFTER
            i = stop + 1
        elif following == _QUESTION:
            stop = _find_end(text, i + 2, _QUESTION)
            if stop < 0:
                break
            i = stop
        elif following == _BANG:
            if i + 2 == n or (text[i + 2] == _DASH and (i + 3 == n or text[i + 3] == _DASH)):
                stop = _find_end(text, i + 4, _DASH)
                if stop < 0:
                    break
                i = stop
            elif phase == _INSIDE and _begins(text, i, _CDATA):
                stop = _find_end(text, i + len(_CDATA), _CLOSE_BRACKET)
                if stop < 0:
                    break
                i += len(_CDATA)
                while i < stop - 3:
                    width = utf8_width(text, i)
                    if width <= 0:
                        error = _BAD_CHARACTER
                        break
                    if captured:
                        for k in range(width):
                            arena[size + k] = text[i + k]
                        size += width
                    i += width
                if error:
                    break
                i = stop
            elif phase == _BEFORE and _begins(text, i, _DOCTYPE):
                stop = i
                while stop < n and text[stop] != _GREATER and text[stop] != _OPEN_BRACKET:
                    stop += 1
                if stop == n:
                    break
                if text[stop] == _OPEN_BRACKET:
                    error = _DECLARES
                    break
                i = stop + 1
            else:
                error = _BAD_TAG
                break
        else:
            digest, stop = _name(text, i + 1)
            if stop == n:
                break
            if stop == i + 1 or following < 58:  # a name never begins with a digit, a dash or a dot
                error = _BAD_TAG
                break
            if phase == _AFTER:
                error = _EXTRA
                break
            if depth == MOST_LEVELS:
                error = _TOO_DEEP
                break
            node, n_before, size_before = np.int64(-1), n_events, size
            if depth == 0:
                node = np.int64(0)
                for k in range(i + 1, stop):
                    arena[size + k - i - 1] = text[k]
                events[0, n_events] = ROOT
                events[1, n_events] = size
                events[2, n_events] = size + stop - i - 1
                size += stop - i - 1
                n_events += 1
            elif captured == 0 and nodes[depth - 1] >= 0:
                node = np.int64(_look_up(nodes[depth - 1], digest, child_ends, child_hashes, children))
            wanted = node >= 0 and attribute_ends[node] < attribute_ends[node + 1]
            is_empty = False
            while True:  # attributes, up to the end of the tag
                before = stop
                while stop < n and is_space(text[stop]):
                    stop += 1
                if stop == n or text[stop] == _GREATER:
                    break
                if text[stop] == _SLASH:
                    stop += 1
                    is_empty = True
                    if stop < n and text[stop] != _GREATER:
                        error = _BAD_TAG
                    break
                name_at = stop
                attribute, stop = _name(text, stop)
                while stop < n and is_space(text[stop]):
                    stop += 1
                if stop == n:
                    break
                if before == name_at or stop == name_at or text[stop] != _EQUALS:
                    error = _BAD_TAG
                    break
                stop += 1
                while stop < n and is_space(text[stop]):
                    stop += 1
                if stop == n:
                    break
                quote = text[stop]
                if quote != _QUOTE and quote != _APOSTROPHE:
                    error = _BAD_TAG
                    break
                stop += 1
                value = stop
                while stop < n and text[stop] != quote and text[stop] != _LESS:
                    stop += 1
                if stop == n:
                    break
                if text[stop] == _LESS:
                    error = _BAD_TAG
                    break
                if wanted:
                    event = _look_up(node, attribute, attribute_ends, attribute_hashes, attributes)
                    if event >= 0:
                        events[0, n_events] = event
                        events[1, n_events] = size
                        for k in range(value, stop):
                            arena[size] = text[k]
                            size += 1
                        events[2, n_events] = size
                        n_events += 1
                stop += 1
            if error or stop == n:
                n_events, size = n_before, size_before
                break
            i = stop + 1
            phase = _INSIDE
            if not is_empty:
                hashes[depth], nodes[depth] = digest, node
                depth += 1
                if node >= 0 and is_text[node] and captured == 0:
                    captured, start = depth, size
            else:
                if node >= 0 and node_events[node] >= 0:
                    events[0, n_events] = node_events[node]
                    events[1, n_events] = size
                    events[2, n_events] = size
                    n_events += 1
                if depth == 0:
                    phase = _AFTER
    if is_last and not error and i < n:
        error = _CUT
    state[_DEPTH], state[_PHASE], state[_CAPTURED], state[_START] = depth, phase, captured, start
    return i, n_events, size, error
