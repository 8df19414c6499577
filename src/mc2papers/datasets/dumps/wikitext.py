"""Convert wiki mark-up to plain text by compiled linear scans over UTF-8 bytes.

Existing parsers of wiki mark-up (mwparserfromhell, wikitextparser) build a tree of every template. On real articles,
they reach a thirtieth of the speed that a dump needs. Only words are needed here, so this scanner keeps the text that a
reader of the page sees and drops the rest. Tests compare its words with the words of mwparserfromhell on real articles.

The scanner drops comments, templates, tables, references, formulas, galleries, code, file and category links, links to
other languages, addresses, tags and behaviour switches. It keeps text, headings, labels of links, link trails
("[[bus]]es"), text between tags, and the content of ``<nowiki>`` and ``<pre>``. As in MediaWiki, templates, links,
tables and tags without an end are text, and comments without an end continue to the end of the article. Time and memory
are linear in the length of the text for any nesting.
"""

# ruff: noqa: SIM109 (in compiled code, two comparisons are faster than a test for membership in a tuple)

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

import numpy as np

from mc2core.compute.kernels import inner_kernel, kernel

#: kinds of links
FILE, CATEGORY = 1, 2


def pack_names(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pack names into an array of bytes and (n + 1,) int64 offsets into it."""
    encoded = [name.encode() for name in names]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum([0, *map(len, encoded)])


class Namespaces:
    """Names of namespaces in links to files and categories: the English names and the names of the wiki.

    Parameters
    ----------
    file : names of the namespaces -2 and 6 in the language of the wiki.
    category : names of the namespace 14 in the language of the wiki.
    """

    def __init__(self, file: Iterable[str] = (), category: Iterable[str] = ()) -> None:
        files, categories = {"file", "image", "media", *file}, {"category", *category}
        names = sorted(
            (name.lower(), kind) for kind, group in ((FILE, files), (CATEGORY, categories)) for name in group
        )
        self.bytes, self.ends = pack_names([name for name, _ in names])
        self.kinds = np.array([kind for _, kind in names], dtype=np.int64)


ENGLISH = Namespaces()

#: Elements whose content is not running text.
HIDDEN_ELEMENTS = (
    "ref", "references", "math", "chem", "ce", "gallery", "timeline", "imagemap", "score", "hiero", "graph", "mapframe",
    "maplink", "source", "syntaxhighlight", "templatedata", "templatestyles", "inputbox", "categorytree",
)  # fmt: skip
#: Elements whose content is text without mark-up.
LITERAL_ELEMENTS = ("nowiki", "pre")
#: Elements that join the text before and after them ("H<sub>2</sub>O"); all other elements separate words.
_INLINE_ELEMENTS = (
    "b", "i", "u", "s", "em", "strong", "sub", "sup", "small", "big", "span", "font", "tt", "abbr", "del", "ins",
    "noinclude", "nowiki", "bdi", "cite", "dfn", "kbd", "mark", "q", "rp", "rt", "ruby", "samp", "strike", "time",
    "var", "wbr",
)  # fmt: skip
_LONGEST_NAME = 60  # maximum length of the name of a template
_LESS, _SLASH, _GREATER, _BANG, _DASH = (ord(sign) for sign in "</>!-")
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET, _PIPE = (ord(sign) for sign in "{}[]|")
_NEWLINE, _SPACE, _COLON, _APOSTROPHE, _UNDERSCORE, _HASH = (ord(sign) for sign in "\n :'_#")
# bytes at which the second and the third pass must stop
_IS_BRACKET = np.array([chr(sign) in "{}[]|" for sign in range(256)])
_IS_MARK = np.array([chr(sign) in "{[]'_:" for sign in range(256)])
_REFERENCE = re.compile(rb"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z0-9]{1,32};?)")


_ELEMENTS = (*HIDDEN_ELEMENTS, *LITERAL_ELEMENTS, *(name for name in _INLINE_ELEMENTS if name != "nowiki"))
_N_HIDDEN, _N_CONTENT = len(HIDDEN_ELEMENTS), len(HIDDEN_ELEMENTS) + len(LITERAL_ELEMENTS)
_ELEMENT_BYTES, _ELEMENT_ENDS = pack_names(_ELEMENTS)


def plain_text(text: bytes, namespaces: Namespaces = ENGLISH) -> tuple[bytes, list[str]]:
    """Return the visible text of an article (UTF-8), and its categories in order.

    White space is not preserved exactly: a dropped element becomes a space or nothing.
    """
    source = np.frombuffer(text, dtype=np.uint8)
    plain, ends = _scan(source, _ELEMENT_BYTES, _ELEMENT_ENDS, namespaces.bytes, namespaces.ends, namespaces.kinds)
    content = plain[: ends[0]].tobytes()
    named = (plain[start:end].tobytes().decode("utf-8", "replace") for start, end in ends[1:].reshape(-1, 2))
    return _REFERENCE.sub(_character, content), [*filter(None, map(category_name, named))]


def _character(reference: re.Match[bytes]) -> bytes:
    return html.unescape(reference[0].decode()).encode("utf-8", "replace")


def template_names(text: bytes, *marks: bytes) -> list[bytes]:
    """Return the names of templates (up to 60 bytes) that contain one of ``marks`` in lower or upper case.

    ``marks`` must be in lower case.
    """
    packed, ends = pack_names([mark.decode() for mark in marks])
    places = _template_names(np.frombuffer(text, dtype=np.uint8), packed, ends)
    return [text[start:end] for start, end in places.tolist()]


def category_name(name: str) -> str:
    """Return the canonical name of a category: single spaces instead of underscores, and a capital first letter."""
    name = " ".join(html.unescape(name).replace("_", " ").split())
    return name[:1].upper() + name[1:]


@inner_kernel
def _is_letter(sign):
    return 97 <= (sign | 32) <= 122


@inner_kernel
def _matches(text, start, names, begin, end):
    """Return whether the packed name ``names[begin:end]`` (in lower-case ASCII) is at ``start`` in ``text``."""
    if start + end - begin > len(text):
        return False
    for i in range(end - begin):
        sign = text[start + i]
        if 65 <= sign <= 90:
            sign |= 32
        if sign != names[begin + i]:
            return False
    return True


@kernel
def _template_names(text, marks, ends):
    """Return the (n, 2) int64 begins and ends of the names of templates that contain one of the packed marks."""
    found = [np.int64(0) for _ in range(0)]
    n, i = len(text), 0
    while i < n - 2:
        while i < n and text[i] != _OPEN_BRACE:
            i += 1
        if i >= n - 2 or text[i + 1] != _OPEN_BRACE or text[i + 2] == _OPEN_BRACE:
            i += 1
            continue
        i += 2
        start, is_marked = i, False
        while i < n and i - start <= _LONGEST_NAME and text[i] != _PIPE and text[i] != _CLOSE_BRACE:
            for k in range(len(ends) - 1):
                # the first letter is compared before the call, because calls are slow
                if not is_marked and (text[i] | 32) == marks[ends[k]]:
                    is_marked = _matches(text, i, marks, ends[k], ends[k + 1])
            i += 1
        if is_marked and i - start <= _LONGEST_NAME:
            found.append(np.int64(start))
            found.append(np.int64(i))
        i = start
    return np.array(found, np.int64).reshape(-1, 2)


@inner_kernel
def _find_close(text, start, names, begin, end):
    """Return the position of ``</name`` at or after ``start``; -1 if there is none."""
    for i in range(start, len(text) - 1):
        if text[i] == _LESS and text[i + 1] == _SLASH and _matches(text, i + 2, names, begin, end):
            after = i + 2 + end - begin
            if after == len(text) or not _is_letter(text[after]):
                return i
    return -1


@inner_kernel
def _element(text, start, names, ends):
    """Return the index of the listed element whose name is at ``start``; -1 if the name is not in the list."""
    stop = start
    while stop < len(text) and (_is_letter(text[stop]) or 48 <= text[stop] <= 57):
        stop += 1
    for k in range(len(ends) - 1):
        if ends[k + 1] - ends[k] == stop - start and _matches(text, start, names, ends[k], ends[k + 1]):
            return k
    return -1


@inner_kernel
def _drop_elements(text, out, names, ends):
    """Copy ``text`` without comments, tags and hidden elements to ``out`` (first pass); return the copied length."""
    n, i, size = len(text), 0, 0
    no_close = np.zeros(
        len(ends) - 1, np.bool_
    )  # True if the element has no further end tag; searched once, so the scan is linear
    while i < n:
        sign = text[i]
        if sign != _LESS:
            out[size] = sign
            size += 1
            i += 1
            continue
        if i + 3 < n and text[i + 1] == _BANG and text[i + 2] == _DASH and text[i + 3] == _DASH:
            i += 4
            while i < n and not (
                text[i] == _GREATER and text[i - 1] == _DASH and text[i - 2] == _DASH
            ):  # an unclosed comment hides the rest
                i += 1
            i += 1
            continue
        name = i + 1
        closing = name < n and text[name] == _SLASH
        if closing:
            name += 1
        stop = name
        if name < n and _is_letter(text[name]):
            while stop < n and text[stop] != _GREATER and text[stop] != _LESS:
                stop += 1
        if stop == name or stop == n or text[stop] != _GREATER:
            out[size] = sign
            size += 1
            i += 1
            continue
        kind = _element(text, name, names, ends)
        i = stop + 1
        if kind < 0 or kind < _N_HIDDEN:
            out[size] = _SPACE
            size += 1
        if closing or text[stop - 1] == _SLASH or kind < 0 or kind >= _N_CONTENT or no_close[kind]:
            continue
        end = _find_close(text, i, names, ends[kind], ends[kind + 1])
        if end < 0:
            no_close[kind] = True
            continue
        if kind >= _N_HIDDEN:
            while i < end:  # literal text, in which mark-up characters become spaces
                sign = text[i]
                if (
                    sign == _OPEN_BRACE or sign == _CLOSE_BRACE or sign == _OPEN_BRACKET or sign == _CLOSE_BRACKET
                    or sign == _PIPE or sign == _LESS or sign == _GREATER or sign == _UNDERSCORE
                ):  # fmt: skip
                    sign = _SPACE
                out[size] = sign
                size += 1
                i += 1
        i = end
        while i < n and text[i] != _GREATER:
            i += 1
        i += 1
    return size


@inner_kernel
def _match_brackets(text, n):
    """Match brackets (second pass); return an (n,) int32 array.

    For each opening bracket of a template, link or table, the array has the position after its closing bracket;
    elsewhere it is 0. Links without an end inside a template or table are ignored. The end of a link must match its
    start.
    """
    close = np.zeros(n + 1, np.int32)
    stack = np.empty(n // 2 + 1, np.int32)
    kinds = np.empty(n // 2 + 1, np.uint8)
    depth, i = 0, 0
    while i < n:
        sign = text[i]
        if not _IS_BRACKET[sign]:
            i += 1
            continue
        following = text[i + 1] if i + 1 < n else 0
        line_start = False
        if (sign == _OPEN_BRACE and following == _PIPE) or (sign == _PIPE and following == _CLOSE_BRACE):
            k = i
            while k > 0 and (text[k - 1] == _SPACE or text[k - 1] == _COLON):
                k -= 1
            line_start = k == 0 or text[k - 1] == _NEWLINE
        is_table = sign == _OPEN_BRACE and following == _PIPE and line_start
        is_table = is_table and (i + 2 == n or text[i + 2] != _CLOSE_BRACE)
        if is_table or (sign == following and (sign == _OPEN_BRACE or sign == _OPEN_BRACKET)):
            stack[depth], kinds[depth] = i, _PIPE if is_table else sign
            depth += 1
            i += 2
        elif following == _CLOSE_BRACE and (sign == _CLOSE_BRACE or (sign == _PIPE and line_start)):
            top = depth
            while top > 0 and kinds[top - 1] == _OPEN_BRACKET:
                top -= 1
            if top > 0 and kinds[top - 1] == (_PIPE if sign == _PIPE else _OPEN_BRACE):
                depth = top - 1
                close[stack[depth]] = i + 2
                i += 2
            else:
                i += 1  # "|}}" ends a template whose last value is empty
        elif sign == _CLOSE_BRACKET and following == _CLOSE_BRACKET:
            if depth > 0 and kinds[depth - 1] == _OPEN_BRACKET:
                depth -= 1
                close[stack[depth]] = i + 2
                i += 2
            else:
                i += 1
        else:
            i += 1
    return close


@inner_kernel
def _link_kind(text, start, end, names, ends, kinds):
    """Return the kind of a link's target by its namespace, and the position at which the name of the target begins.

    Links to other languages have the kind FILE.
    """
    while start < end and (text[start] == _SPACE or text[start] == _UNDERSCORE):
        start += 1
    colon, plain = start, True
    while colon < end and text[colon] != _COLON:
        sign = text[colon]
        if sign == _PIPE or sign == _NEWLINE or sign == _OPEN_BRACKET or colon - start > 40:
            return 0, start
        plain = plain and (97 <= sign <= 122 or sign == _DASH)
        colon += 1
    if colon == end or colon == start:
        return 0, start
    stop = colon
    while stop > start and (text[stop - 1] == _SPACE or text[stop - 1] == _UNDERSCORE):
        stop -= 1
    for k in range(len(kinds)):
        if ends[k + 1] - ends[k] == stop - start and _matches(text, start, names, ends[k], ends[k + 1]):
            return kinds[k], colon + 1
    if plain:  # codes of languages such as de, als and zh-min-nan, and "simple"
        dashed = False
        for i in range(start, colon):
            dashed = dashed or text[i] == _DASH
        length = colon - start
        simple = length == 6 and text[start] == 115 and text[start + 1] == 105 and text[start + 2] == 109
        if (2 <= length <= 3) or (dashed and length <= 12 and text[start] != _DASH) or simple:
            return FILE, start
    return 0, start


@inner_kernel
def _scheme_letters(text, colon):
    """Return the length of the "http", "https" or "ftp" that ends at ``colon``; 0 if there is none."""
    i = colon
    while i > 0 and colon - i < 6 and _is_letter(text[i - 1]):
        i -= 1
    n = colon - i
    if n == 3:
        return 3 if (text[i] | 32) == 102 and (text[i + 1] | 32) == 116 and (text[i + 2] | 32) == 112 else 0
    if n < 4 or n > 5 or (n == 5 and (text[i + 4] | 32) != 115):
        return 0
    is_http = (text[i] | 32) == 104 and (text[i + 1] | 32) == 116 and (text[i + 2] | 32) == 116
    return n if is_http and (text[i + 3] | 32) == 112 else 0


@kernel
def _scan(source, element_names, element_ends, names, ends, kinds):
    """Return (text, marks): plain text in text[:marks[0]], category names in text[marks[1]:marks[2]], ...

    Category names follow the plain text in the same array.
    """
    text = np.empty(len(source), np.uint8)
    n = _drop_elements(source, text, element_names, element_ends)
    close = _match_brackets(text, n)
    out = np.empty(n + 1, np.uint8)
    # categories are written from the end backwards; both parts together are never longer than the text read so far
    back = n + 1
    marks = [np.int64(0)]
    size, i = 0, 0
    while i < n:
        sign = text[i]
        if not _IS_MARK[sign]:
            out[size] = sign
            size += 1
            i += 1
        elif sign == _OPEN_BRACE and close[i] > 0:
            i = close[i]
            out[size] = _SPACE
            size += 1
        elif sign == _OPEN_BRACKET and close[i] > 0:
            end = close[i]
            kind, name = _link_kind(text, i + 2, end - 2, names, ends, kinds)
            if kind > 0:
                if kind == CATEGORY:
                    stop = name
                    while stop < end - 2 and text[stop] != _PIPE and text[stop] != _HASH:
                        stop += 1
                    back -= stop - name
                    out[back : back + stop - name] = text[name:stop]
                    marks.append(np.int64(back))
                    marks.append(np.int64(back + stop - name))
                i = end
                out[size] = _SPACE
                size += 1
                continue
            # a label begins after the first bar; without a label, the target is shown
            i += 2
            j = i
            while j < end - 2 and text[j] != _PIPE and text[j] != _OPEN_BRACKET and text[j] != _OPEN_BRACE:
                j += 1
            if j < end - 2 and text[j] == _PIPE:
                i = j + 1
        elif sign == _CLOSE_BRACKET and i + 1 < n and text[i + 1] == _CLOSE_BRACKET:
            i += 2  # replaced by nothing, so that "[[bus]]es" remains one word
        elif sign == _APOSTROPHE and i + 1 < n and text[i + 1] == _APOSTROPHE:
            while i < n and text[i] == _APOSTROPHE:
                i += 1
        elif sign == _UNDERSCORE and i + 1 < n and text[i + 1] == _UNDERSCORE:
            j = i + 2
            while j < n and 65 <= text[j] <= 90:
                j += 1
            if j > i + 2 and j + 1 < n and text[j] == _UNDERSCORE and text[j + 1] == _UNDERSCORE:
                i = j + 2
            else:
                i += 2
                out[size] = _SPACE
                size += 1
        elif sign == _COLON and i + 1 < n and text[i + 1] == _SLASH and _scheme_letters(text, i) > 0:
            size -= _scheme_letters(text, i)  # these bytes were copied as text
            while (
                i < n and text[i] > _SPACE and text[i] != _CLOSE_BRACKET and text[i] != _PIPE and text[i] != _OPEN_BRACE
            ):
                i += 1
        else:
            out[size] = sign
            size += 1
            i += 1
    marks[0] = np.int64(size)
    return out, np.array(marks)
