"""Words of many texts counted at once, compiled: the same words as :func:`mc2core.corpus.building.letters.words_of`."""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compute.kernels import kernel

_FOLDED = 0x20000  # no character beyond decomposes into letters a-z
_MOST_LETTERS_PER_BYTE = 2  # such as the three bytes of "\u33c2", which give "am"; arrays are reserved, not touched
_WIDE = 32  # first byte of a character that is not ASCII
_PACKED_LETTERS = 12  # at five bits each, with the highest bit left
_WORDS_AT_ONCE = 128
_NEWLINE, _SPACE = 10, 32
# of each byte: 1-26 for a letter of either case, _WIDE, or 0 for what ends a word
_LETTERS = np.array(
    [(sign & 31) if chr(sign & 0xDF) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else 0 for sign in range(128)] + [_WIDE] * 128,
    dtype=np.uint8,
)
_HIGHEST_BIT = np.int64(-(2**63))
_SPREAD = np.int64(0x9E3779B97F4A7C15 - 2**64)


class BlockCounts(NamedTuple):
    """counts : (D, A) int32 CSR, no column twice in a row; words : the A distinct words, a line each, as uint8.

    Words, and columns within a row, are in the order in which they first come up. Between lines is a line feed.
    """

    counts: sp.csr_matrix
    words: np.ndarray


def count_block(texts: list[bytes], min_letters: int = 3) -> BlockCounts:
    """Count the words of each UTF-8 text: runs of a-z after lower case and without accents, stop words included."""
    buffer = np.frombuffer(b"".join(texts), dtype=np.uint8)
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    letters, letter_ends = _to_letters(buffer, ends, *_fold_table(), _MOST_LETTERS_PER_BYTE * len(buffer))
    words, n_words, indptr, indices, data = _count(letters, letter_ends, min_letters)
    return BlockCounts(sp.csr_matrix((data, indices, indptr), shape=(len(texts), n_words)), words)


@functools.cache
def _fold_table() -> tuple[np.ndarray, np.ndarray]:
    """(_FOLDED + 1,) int32 offsets into uint8 signs: what each code point gives; a space is what is no letter."""
    folded = bytearray()
    ends = [0]
    for code in range(_FOLDED):
        small = chr(code).lower()
        if small.isascii():
            folded += small.encode() if "a" <= small <= "z" else b" "
        elif len(small) > 1 or unicodedata.decomposition(small):
            signs = (sign for sign in unicodedata.normalize("NFKD", small) if not unicodedata.combining(sign))
            folded.extend(ord(sign) if "a" <= sign <= "z" else 32 for sign in signs)
        elif not unicodedata.combining(small):
            folded.append(32)
        ends.append(len(folded))
    return np.array(ends, dtype=np.int32), np.frombuffer(bytes(folded), dtype=np.uint8)


@kernel
def _to_letters(buffer, ends, fold_ends, folded, most_letters):
    """(letters, (D + 1,) ends of documents in them): 1-26, and one 0 for what stands between words or ends a text."""
    letters = np.empty(most_letters + len(ends), np.uint8)
    letter_ends = np.zeros(len(ends), np.int64)
    size = 0
    for document in range(len(ends) - 1):
        i, stop = ends[document], ends[document + 1]
        previous = np.uint8(0)
        while i < stop:
            letter = _LETTERS[buffer[i]]
            if letter != _WIDE:
                letters[size] = letter
                size += (letter | previous) != 0
                previous = letter
                i += 1
                continue
            lead = np.int64(buffer[i])
            width = 2 if lead < 224 else (3 if lead < 240 else 4)
            code = lead & (0x7F >> width)
            for k in range(1, width):
                code <<= 6
                if i + k < stop:
                    code |= np.int64(buffer[i + k]) & 0x3F
            i += width
            if code >= len(fold_ends) - 1:
                code = np.int64(_SPACE)
            for k in range(fold_ends[code], fold_ends[code + 1]):
                letter = _LETTERS[folded[k]]
                letters[size] = letter
                size += (letter | previous) != 0
                previous = letter
        letters[size] = 0
        size += previous != 0
        letter_ends[document + 1] = size
    return letters, letter_ends


@kernel
def _read_words(letters, i, stop, min_letters, slots, shift, begins, lengths, digests, work_held):
    """Read up to as many words as the last four arrays take: (letter reached, their number).

    The digest of a word of up to 12 letters is these letters themselves; that of a longer one is below zero.
    """
    n = 0
    while i < stop and n < len(begins):
        begin, digest = i, np.int64(0)
        while letters[i] != 0:
            digest = ((digest << 5) | ((digest >> 59) & 31)) ^ np.int64(letters[i])
            i += 1
        begins[n], lengths[n] = begin, i - begin
        digests[n] = digest | _HIGHEST_BIT if i - begin > _PACKED_LETTERS else digest
        n += i - begin >= min_letters
        i += 1
    # asks memory for all slots at once: the words' own look-ups would wait for one after the other
    for k in range(n):
        work_held[k] = slots[((digests[k] * _SPREAD) >> shift) & (len(slots) - 1), 1]
    return i, n


@kernel
def _doubled(slots, shift):
    """The slots in a table of twice the size, of which ``shift`` takes the place."""
    larger = np.zeros((2 * len(slots), 2), np.int64)
    for k in range(len(slots)):
        if slots[k, 1] != 0:
            slot = ((slots[k, 0] * _SPREAD) >> shift) & (len(larger) - 1)
            while larger[slot, 1] != 0:
                slot = (slot + 1) & (len(larger) - 1)
            larger[slot, 0], larger[slot, 1] = slots[k, 0], slots[k, 1]
    return larger


@kernel
def _add_words(
    n, begins, lengths, digests, letters, slots, shift, arena, starts, indices, data, first, n_words, used, size
):  # fmt: skip
    """Count the first n words that were read, of a document whose counts begin at ``first``: (n_words, used, size).

    A slot holds (digest, (word + 1) << 32 | place + 1), the second 0 where it is empty: one line of cache tells all.
    """
    for k in range(n):
        begin, end, digest = begins[k], begins[k] + lengths[k], digests[k]
        slot = ((digest * _SPREAD) >> shift) & (len(slots) - 1)
        while slots[slot, 1] != 0:
            if slots[slot, 0] == digest:
                if digest >= 0:
                    break
                other, i = starts[(slots[slot, 1] >> 32) - 1], begin
                while i < end and arena[other] == 96 + letters[i]:
                    other += 1
                    i += 1
                if i == end and arena[other] == _NEWLINE:
                    break
            slot = (slot + 1) & (len(slots) - 1)
        word, place = (slots[slot, 1] >> 32) - 1, (slots[slot, 1] & 0xFFFFFFFF) - 1
        if place >= first:
            data[place] += 1
            continue
        if word < 0:
            word = n_words
            starts[word] = used
            n_words += 1
            for i in range(begin, end):
                arena[used] = 96 + letters[i]
                used += 1
            arena[used] = _NEWLINE
            used += 1
        indices[size], data[size] = word, 1
        size += 1
        slots[slot, 0], slots[slot, 1] = digest, (word + 1) << 32 | size
    return n_words, used, size


@kernel
def _count(letters, ends, min_letters):
    """(words, their number, indptr, indices, data) by open addressing over words kept in ``arena``."""
    most_words = len(letters) // (min_letters + 1) + 1
    slots, shift = np.zeros((1 << 12, 2), np.int64), 64 - 12
    arena = np.empty(len(letters) + 1, np.uint8)
    starts = np.empty(most_words, np.int64)
    indices = np.empty(most_words, np.int32)
    data = np.empty(most_words, np.int32)
    indptr = np.zeros(len(ends), np.int64)
    begins, lengths, digests, work_held = np.empty((4, _WORDS_AT_ONCE), np.int64)
    n_words, used, size = 0, 0, 0
    for document in range(len(ends) - 1):
        i, first = ends[document], size
        while i < ends[document + 1]:
            i, n = _read_words(
                letters, i, ends[document + 1], min_letters, slots, shift, begins, lengths, digests, work_held
            )
            n_words, used, size = _add_words(
                n, begins, lengths, digests, letters, slots, shift, arena, starts, indices, data,
                first, n_words, used, size,
            )  # fmt: skip
            if 2 * n_words > len(slots):
                shift -= 1
                slots = _doubled(slots, shift)
        indptr[document + 1] = size
    return arena[: max(used - 1, 0)].copy(), n_words, indptr, indices[:size].copy(), data[:size].copy()
