"""Characters and references of XML, for compiled scanners."""

# ruff: noqa: SIM109 (compiled code: comparing twice is faster than looking into a tuple)

from __future__ import annotations

import numpy as np

from mc2core.compute.kernels import kernel

LONGEST_REFERENCE = 12
_SPACE, _TAB, _NEWLINE, _RETURN = b" \t\n\r"


@kernel(inline="always")
def is_space(sign):
    """Whether a byte is white space in XML."""
    return sign == _SPACE or sign == _NEWLINE or sign == _TAB or sign == _RETURN


@kernel
def utf8_width(text, i):
    """Bytes of the UTF-8 character at i: 0 if it goes on beyond the text, -1 if it is none that XML allows."""
    lead = text[i]
    if lead < 128:
        return 1 if lead >= _SPACE or is_space(lead) else -1
    width = 2 if lead < 224 else (3 if lead < 240 else 4)
    if lead < 194 or lead > 244:
        return -1
    for k in range(1, width):
        if i + k == len(text):
            return 0
        if text[i + k] & 192 != 128:
            return -1
    second = text[i + 1]
    if (lead == 224 and second < 160) or (lead == 240 and second < 144):  # longer than need be
        return -1
    if (lead == 237 and second >= 160) or (lead == 244 and second >= 144):  # surrogates; beyond Unicode
        return -1
    return -1 if lead == 239 and second == 191 and text[i + 2] >= 190 else width


@kernel
def read_reference(text, start, end):
    """Code point that the entity or reference between "&" and ";" stands for; -1 if none."""
    if end - start >= 2 and text[start] == 35:
        is_hex = text[start + 1] == 120
        code, i = np.int64(0), start + 2 if is_hex else start + 1
        if i == end:
            return -1
        while i < end:
            sign = text[i]
            if 48 <= sign <= 57:
                digit = np.int64(sign) - 48
            elif is_hex and 97 <= (sign | 32) <= 102:
                digit = np.int64(sign | 32) - 87
            else:
                return -1
            code = code * (16 if is_hex else 10) + digit
            i += 1
        if code < 32:
            return code if code == 9 or code == 10 or code == 13 else -1
        return code if code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000 else -1
    length = end - start
    first = text[start] if length > 0 else 0
    second = text[start + 1] if length > 1 else 0
    if length == 2 and second == 116:
        return 60 if first == 108 else (62 if first == 103 else -1)  # lt gt
    if length == 3 and first == 97 and second == 109 and text[start + 2] == 112:
        return 38  # amp
    if length == 4 and first == 113 and second == 117 and text[start + 2] == 111 and text[start + 3] == 116:
        return 34  # quot
    if length == 4 and first == 97 and second == 112 and text[start + 2] == 111 and text[start + 3] == 115:
        return 39  # apos
    return -1


@kernel
def put_character(arena, size, code):
    """Write a code point as UTF-8; returns the new size."""
    if code < 0x80:
        arena[size] = code
        return size + 1
    width = 2 if code < 0x800 else (3 if code < 0x10000 else 4)
    for k in range(width - 1, 0, -1):
        arena[size + k] = 0x80 | (code & 0x3F)
        code >>= 6
    arena[size] = ((0xF00 >> width) & 0xFF) | code
    return size + width
