"""bzip2, inflated faster than by libbz2: the inverse transform of several blocks is interleaved.

Most of libbz2's time is waiting for memory: the inverse Burrows-Wheeler transform walks through a block of 900,000
entries in random order, each step known only after the one before. Taken in turn, the steps of a dozen blocks wait
together.
Format: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numba
import numpy as np

#: Blocks that are inflated together.
TOGETHER = 12
_BLOCK = 900_000
_READ_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18
_PADDING_WORDS = 64  # zeros behind the data, more than is read before the end is looked for
_WHOLE, _END, _MORE, _DAMAGED, _OVER = range(5)
_STATE, _BITS, _LENGTH, _CRC = range(4)
_MAGIC, _END_MAGIC = 0x314159265359, 0x177245385090
_MOST_SELECTORS, _GROUP, _MOST_BITS, _FAST_BITS, _SYMBOLS = 18002, 50, 20, 10, 258
# zlib's checksum is bzip2's with all bits in reverse order
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass
class _Block:
    """A block without its inverse transform; the last one of a stream knows the stream's checksum."""

    origin: int
    length: int
    crc: int
    stream_crc: int | None = None


class Damage(ValueError):
    """Data that are no whole bzip2; ``is_cut`` where they only end early."""

    def __init__(self, message: str, is_cut: bool = False) -> None:
        super().__init__(message)
        self.is_cut = is_cut


def blocks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield the content of one stream or several, in pieces of at most 256 KiB; what follows and is none is ignored.

    read : gives up to so many bytes, and none at the end.
    """
    tables = np.empty((TOGETHER, _BLOCK), np.uint32)
    texts = np.empty((TOGETHER, _BLOCK), np.uint8)
    data, is_last, bit = b"", False, 0
    words = np.empty(0, np.uint32)
    n_streams, limit = 0, 0  # limit: bytes of a block of the present stream, 0 between streams
    waiting: list[_Block] = []
    stream_crc, is_open = 0, False  # is_open: the present stream has had a block
    while True:
        info = np.zeros(4, np.int64)
        if limit:
            origin = _read_block(words, 8 * len(data), bit, limit, tables[len(waiting)], info)
        else:
            head = data[bit // 8 : bit // 8 + 4]
            if len(head) == 4 and head[:3] == b"BZh" and 49 <= head[3] <= 57:
                bit, limit = bit + 32, (head[3] - 48) * 100_000
                continue
            info[_STATE] = _MORE if len(head) < 4 and not is_last else _OVER
        state = int(info[_STATE])
        if state == _WHOLE:
            is_open = True
            waiting.append(_Block(int(origin), int(info[_LENGTH]), int(info[_CRC])))
            bit += int(info[_BITS])
        elif state == _END:
            bit, limit, n_streams = (bit + int(info[_BITS]) + 7) // 8 * 8, 0, n_streams + 1
            if is_open and waiting:
                waiting[-1].stream_crc = int(info[_CRC])
            elif info[_CRC] != (stream_crc if is_open else 0):
                raise Damage("a stream has a wrong checksum")
            elif is_open:
                stream_crc = 0
            is_open = False
        if len(waiting) == TOGETHER or state in (_DAMAGED, _OVER) or (state == _MORE and is_last):
            if waiting:
                origins, lengths = np.array([[one.origin, one.length] for one in waiting]).T
                _invert(tables, texts, origins, lengths)
            for text, block in zip(texts, waiting, strict=False):
                crc = 0
                for piece in _pieces(text[: block.length]):
                    crc = zlib.crc32(piece.translate(_REVERSED), crc)
                    yield piece
                if _reverse(crc) != block.crc:
                    raise Damage("a block has a wrong checksum")
                stream_crc = ((stream_crc << 1 | stream_crc >> 31) & 0xFFFFFFFF) ^ block.crc
                if block.stream_crc is not None:
                    if block.stream_crc != stream_crc:
                        raise Damage("a stream has a wrong checksum")
                    stream_crc = 0
            waiting = []
        if state == _OVER and n_streams:
            return
        if state in (_DAMAGED, _OVER):
            raise Damage("a block is damaged" if state == _DAMAGED else "it does not begin as bzip2 does")
        if state == _MORE:
            if is_last:
                raise Damage("it is cut off", is_cut=True)
            more = read(_READ_BYTES)
            is_last = not more
            data, bit = data[bit // 8 :] + more, bit % 8
            words = np.zeros(len(data) // 4 + 1 + _PADDING_WORDS, np.uint32)
            words.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
            words.byteswap(inplace=True)


def _reverse(crc: int) -> int:
    return int.from_bytes(crc.to_bytes(4, "little").translate(_REVERSED), "big")


def _pieces(text: np.ndarray) -> Iterator[bytes]:
    """Undo the first step of packing: after four equal bytes comes how often they are repeated."""
    state = np.array([0, 0, -1, 0], np.int64)
    out = np.empty(_PIECE_BYTES, np.uint8)
    while True:
        size = _expand(text, out, state)
        if size == 0:
            return
        yield out[:size].tobytes()


@numba.njit(cache=True, nogil=True, inline="always")
def _peek(words, bit, n):
    """The next n bits, at most 32."""
    k = bit >> 5
    both = (np.uint64(words[k]) << np.uint64(32)) | np.uint64(words[k + 1])
    return np.int64((both << np.uint64(bit & 31)) >> np.uint64(64 - n))


@numba.njit(cache=True, nogil=True)
def _read_block(words, n_bits, start, limit, table, info):
    """Undo Huffman coding, move-to-front and runs of one block; bytes go to ``table``. Returns where its text begins.

    info : state, bits read, length of the block, checksum of the block or, at its end, of the stream.
    """
    info[_STATE] = _MORE
    bit = start
    if n_bits - bit < 80:
        return 0
    magic = (_peek(words, bit, 24) << 24) | _peek(words, bit + 24, 24)
    crc = _peek(words, bit + 48, 32)
    bit += 80
    if magic == _END_MAGIC:
        info[_STATE], info[_BITS], info[_CRC] = _END, 80, crc
        return 0
    if magic != _MAGIC:
        info[_STATE] = _DAMAGED
        return 0
    is_random, origin = _peek(words, bit, 1), _peek(words, bit + 1, 24)
    bit += 25
    front = np.empty(256, np.uint8)
    n_used, groups = 0, _peek(words, bit, 16)
    bit += 16
    for high in range(16):
        if groups >> (15 - high) & 1:
            used = _peek(words, bit, 16)
            bit += 16
            for low in range(16):
                if used >> (15 - low) & 1:
                    front[n_used] = 16 * high + low
                    n_used += 1
    n_tables, n_selectors = _peek(words, bit, 3), _peek(words, bit + 3, 15)
    bit += 18
    if bit > n_bits:
        return 0
    if is_random or n_used == 0 or n_tables < 2 or n_tables > 6 or n_selectors == 0:
        info[_STATE] = _DAMAGED
        return 0
    selectors = np.empty(_MOST_SELECTORS, np.uint8)
    order = np.arange(6)
    for k in range(n_selectors):
        j = 0
        while _peek(words, bit, 1):
            bit += 1
            j += 1
            if j >= n_tables:
                info[_STATE] = _DAMAGED
                return 0
        bit += 1
        if bit > n_bits:
            return 0
        chosen = order[j]
        while j > 0:
            order[j] = order[j - 1]
            j -= 1
        order[0] = chosen
        if k < _MOST_SELECTORS:  # encoders exist that write more than can be used
            selectors[k] = chosen
    n_selectors = min(n_selectors, _MOST_SELECTORS)
    n_symbols = n_used + 2
    lengths = np.empty(_SYMBOLS, np.int64)
    fast = np.zeros((6, 1 << _FAST_BITS), np.int16)
    last = np.full((6, _MOST_BITS + 2), -1, np.int64)  # the largest code of each length, and
    base = np.zeros((6, _MOST_BITS + 2), np.int64)  # what to take from a code for its place among the symbols
    sorted_symbols = np.zeros((6, _SYMBOLS), np.int64)
    for t in range(n_tables):
        length = _peek(words, bit, 5)
        bit += 5
        if bit > n_bits:
            return 0
        for symbol in range(n_symbols):
            while True:
                if length < 1 or length > _MOST_BITS:
                    info[_STATE] = _DAMAGED
                    return 0
                two = _peek(words, bit, 2)
                if two < 2:
                    bit += 1
                    break
                bit += 2
                length += 1 if two == 2 else -1
            if bit > n_bits:
                return 0
            lengths[symbol] = length
        code, place = 0, 0
        for length in range(1, _MOST_BITS + 1):
            base[t, length] = code - place
            for symbol in range(n_symbols):
                if lengths[symbol] == length:
                    sorted_symbols[t, place] = symbol
                    if code >= 1 << length:
                        info[_STATE] = _DAMAGED
                        return 0
                    if length <= _FAST_BITS:
                        first = code << (_FAST_BITS - length)
                        for k in range(first, first + (1 << (_FAST_BITS - length))):
                            fast[t, k] = (symbol << 5) | length
                    code += 1
                    place += 1
            last[t, length] = code - 1
            code <<= 1
    end, size, run, weight = n_symbols - 1, 0, 0, 1
    for selected in range(n_selectors):
        t = selectors[selected]
        for _ in range(_GROUP):
            window = _peek(words, bit, _MOST_BITS)
            entry = fast[t, window >> (_MOST_BITS - _FAST_BITS)]
            if entry:
                bit += entry & 31
                symbol = entry >> 5
            else:
                length = _FAST_BITS + 1
                while length <= _MOST_BITS and window >> (_MOST_BITS - length) > last[t, length]:
                    length += 1
                if length > _MOST_BITS:
                    info[_STATE] = _DAMAGED if bit <= n_bits else _MORE
                    return 0
                bit += length
                symbol = sorted_symbols[t, (window >> (_MOST_BITS - length)) - base[t, length]]
            if symbol <= 1:
                run += weight << symbol
                weight <<= 1
                if run > limit:
                    info[_STATE] = _DAMAGED if bit <= n_bits else _MORE
                    return 0
                continue
            if run:
                if size + run > limit:
                    info[_STATE] = _DAMAGED if bit <= n_bits else _MORE
                    return 0
                repeated = np.uint32(front[0])
                for k in range(size, size + run):
                    table[k] = repeated
                size += run
                run, weight = 0, 1
            if symbol == end:
                if bit > n_bits:
                    return 0
                if origin >= size:
                    info[_STATE] = _DAMAGED
                    return 0
                info[_STATE], info[_BITS], info[_LENGTH], info[_CRC] = _WHOLE, bit - start, size, crc
                return origin
            if size >= limit:
                info[_STATE] = _DAMAGED if bit <= n_bits else _MORE
                return 0
            place = symbol - 1
            byte = front[place]
            while place > 0:
                front[place] = front[place - 1]
                place -= 1
            front[0] = byte
            table[size] = byte
            size += 1
        if bit > n_bits:
            return 0
    info[_STATE] = _DAMAGED
    return 0


@numba.njit(cache=True, nogil=True)
def _invert(tables, texts, origins, lengths):
    """Inverse Burrows-Wheeler transform of up to TOGETHER blocks."""
    n_blocks = len(lengths)
    at = np.zeros(n_blocks, np.uint32)
    starts = np.empty(257, np.int64)
    for b in range(n_blocks):
        table, length = tables[b], lengths[b]
        starts[:] = 0
        for i in range(length):
            starts[(table[i] & 255) + 1] += 1
        for k in range(256):
            starts[k + 1] += starts[k]
        for i in range(length):
            byte = table[i] & 255
            table[starts[byte]] |= np.uint32(i) << np.uint32(8)
            starts[byte] += 1
        at[b] = table[origins[b]] >> np.uint32(8)
    shortest = lengths.min()
    for i in range(shortest):
        for b in range(n_blocks):
            entry = tables[b, at[b]]
            texts[b, i] = entry & 255
            at[b] = entry >> np.uint32(8)
    for b in range(n_blocks):
        for i in range(shortest, lengths[b]):
            entry = tables[b, at[b]]
            texts[b, i] = entry & 255
            at[b] = entry >> np.uint32(8)


@numba.njit(cache=True, nogil=True)
def _expand(text, out, state):
    """Fill ``out``; returns the bytes written. state : place, equal bytes so far, the last one, repeats due."""
    place, equal, last, due = state[0], state[1], state[2], state[3]
    size, most, n = 0, len(out), len(text)
    while True:
        while due > 0 and size < most:
            out[size] = last
            size += 1
            due -= 1
        if size == most or place == n:
            break
        byte = np.int64(text[place])
        place += 1
        if equal == 4:
            due, equal = byte, 0
            continue
        equal = equal + 1 if byte == last else 1
        last = byte
        out[size] = byte
        size += 1
    state[0], state[1], state[2], state[3] = place, equal, last, due
    return size
