"""Words of many texts counted at once, compiled: the same words as :func:`mc2core.sources.text.words_of`."""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.compiling import kernel

_FOLDED = 0x20000  # no character beyond decomposes into letters a-z
_MOST_LETTERS_PER_BYTE = 2  # such as the three bytes of "\u33c2", which give "am"; arrays are reserved, not touched


class BlockCounts(NamedTuple):
    """counts : (D, A) int32 CSR, no column twice in a row; words : the A distinct words, in alphabetical order."""

    counts: sp.csr_matrix
    words: list[bytes]


def count_block(texts: list[bytes], min_letters: int = 3) -> BlockCounts:
    """Count the words of each UTF-8 text: runs of a-z after lower case and without accents, stop words included."""
    buffer = np.frombuffer(b"".join(texts), dtype=np.uint8)
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    fold_ends, folded = _fold_table()
    most = _MOST_LETTERS_PER_BYTE * len(buffer)
    arena, word_ends, indptr, indices, data = _count(buffer, ends, fold_ends, folded, min_letters, most)
    packed = arena.tobytes()
    words = [packed[start:end] for start, end in zip(word_ends[:-1].tolist(), word_ends[1:].tolist(), strict=True)]
    order = sorted(range(len(words)), key=words.__getitem__)
    rank = np.empty(len(words), dtype=np.int32)
    rank[order] = np.arange(len(words), dtype=np.int32)
    counts = sp.csr_matrix((data, rank[indices], indptr), shape=(len(texts), len(words)))
    return BlockCounts(counts, [words[i] for i in order])


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
def _count(buffer, ends, fold_ends, folded, min_letters, most_letters):
    """Open addressing over words kept in ``arena``; a slot holds word + 1, 0 where empty."""
    most_words = most_letters // min_letters + 1
    n_slots, n_words, size = 1 << 10, 0, 0
    slots = np.zeros(n_slots, np.int32)
    arena = np.empty(most_letters + 1, np.uint8)
    word_ends = np.empty(most_words + 1, np.int64)
    word_ends[0] = 0
    hashes = np.empty(most_words, np.uint64)
    last_document = np.empty(most_words, np.int32)
    place = np.empty(most_words, np.int64)
    indices = np.empty(most_words, np.int32)
    data = np.empty(most_words, np.int32)
    indptr = np.zeros(len(ends), np.int64)
    for document in range(len(ends) - 1):
        i, stop = ends[document], ends[document + 1]
        begin = word_ends[n_words]
        tail = begin
        digest = np.uint64(14695981039346656037)
        fold, fold_stop = np.int64(0), np.int64(0)
        while True:
            # the next sign: of a character that gives several, else of the text; 32 ends a word
            if fold < fold_stop:
                sign = folded[fold]
                fold += 1
            elif i >= stop:
                sign = np.uint8(32)
            else:
                lead = buffer[i]
                if lead < 128:
                    i += 1
                    sign = lead | np.uint8(32) if 65 <= lead <= 90 else lead
                else:
                    width = 2 if lead < 224 else (3 if lead < 240 else 4)
                    code = np.int64(lead) & (0x3F if width == 2 else (0x1F >> (width - 2)))
                    code &= 0x7F >> width
                    for k in range(1, width):
                        code = (code << 6) | (np.int64(buffer[i + k]) & 0x3F if i + k < stop else 0)
                    i += width
                    if code < len(fold_ends) - 1:
                        fold, fold_stop = np.int64(fold_ends[code]), np.int64(fold_ends[code + 1])
                        continue
                    sign = np.uint8(32)
            if 97 <= sign <= 122:
                arena[tail] = sign
                tail += 1
                digest = (digest ^ np.uint64(sign)) * np.uint64(1099511628211)
                continue
            if tail - begin >= min_letters:
                slot = np.int64((digest ^ (digest >> np.uint64(29))) & np.uint64(n_slots - 1))
                word = -1
                while slots[slot] > 0:
                    other = slots[slot] - 1
                    start = word_ends[other]
                    if hashes[other] == digest and word_ends[other + 1] - start == tail - begin:
                        k = 0
                        while k < tail - begin and arena[start + k] == arena[begin + k]:
                            k += 1
                        if k == tail - begin:
                            word = other
                            break
                    slot = (slot + 1) & (n_slots - 1)
                if word < 0:
                    word = n_words
                    hashes[word], last_document[word] = digest, -1
                    slots[slot] = word + 1
                    n_words += 1
                    word_ends[n_words] = tail
                    begin = tail
                    if 2 * n_words > n_slots:
                        n_slots *= 2
                        slots = np.zeros(n_slots, np.int32)
                        for other in range(n_words):
                            h = hashes[other]
                            slot = np.int64((h ^ (h >> np.uint64(29))) & np.uint64(n_slots - 1))
                            while slots[slot] > 0:
                                slot = (slot + 1) & (n_slots - 1)
                            slots[slot] = other + 1
                if last_document[word] == document:
                    data[place[word]] += 1
                else:
                    last_document[word] = document
                    place[word] = size
                    indices[size] = word
                    data[size] = 1
                    size += 1
            tail = begin
            digest = np.uint64(14695981039346656037)
            if i >= stop and fold >= fold_stop:
                break
        indptr[document + 1] = size
    return arena[: word_ends[n_words]], word_ends[: n_words + 1], indptr, indices[:size].copy(), data[:size].copy()
