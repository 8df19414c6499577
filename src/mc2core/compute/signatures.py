"""Signs from MurmurHash3 and bit signatures: what FastEx proposes from (NIPS12 sections 3.2 and 3.5).

A word's random vector of +-1 signs is read off the bits of MurmurHash3 of its number, so it is never stored: the
128-bit digest (x64 variant) of the word's number as eight little-endian bytes gives 128 signs, and a second one
with the next seed another 128. For v of such signs and the angle between two vectors a and b,

    P(sign <v, a> != sign <v, b>) = angle / pi,

approximately, as v is not Gaussian; the more coordinates share the norm, the closer (the tests measure it).

**Sums.** For integer coordinates the inner product with all signs is  2 (sum over the coordinates whose bit is set)
- (sum over all), so one masked addition for each coordinate serves 64 signs (:func:`add_where_set`), and since integer
sums are exact, adding and removing never drifts.
"""

from __future__ import annotations

import numba
import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.simd import WORD_BITS, above, add_where_set
from mc2core.compute.streams import finish_murmur

#: lengths of a signature that are supported
BITS = (8, 16, 32, 64, 128, 256)

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_EIGHT = np.uint64(8)


def n_signature_words(bits: int) -> int:
    """64-bit words that hold a signature of ``bits`` bits; ValueError for a length that is not supported."""
    if bits not in BITS:
        raise ValueError(f"bits is {bits!r}; allowed: {', '.join(map(str, BITS))}")
    return -(-bits // WORD_BITS)


# -- MurmurHash3, x64 variant, 128 bits (Appleby 2011; public domain) ----------------------------------------------
@numba.njit(inline="always")
def _rotate(x, r):
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@numba.njit(inline="always")
def _close(h1, h2, length):
    h1 ^= length
    h2 ^= length
    h1 += h2
    h2 += h1
    h1 = finish_murmur(h1)
    h2 = finish_murmur(h2)
    h1 += h2
    return h1, h2 + h1


@numba.njit(inline="always")
def digest(word, seed):
    """The two uint64 halves of ``mmh3.mmh3_x64_128_digest`` of the whole number ``word``, eight little-endian bytes."""
    h1 = np.uint64(seed) ^ (_rotate(np.uint64(word) * _C1, 31) * _C2)
    return _close(h1, np.uint64(seed), _EIGHT)


# -- signatures -------------------------------------------------------------------------------------------------------
@kernel
def add_signed(sums, word, value):
    """Add the int32 ``value`` of coordinate ``word`` to ``sums`` ((64 W,) int32) where the word's bit is set."""
    for pair in range(0, sums.size // WORD_BITS, 2):
        h1, h2 = digest(word, pair >> 1)
        add_where_set(sums, pair * WORD_BITS, h1, value)
        if (pair + 1) * WORD_BITS < sums.size:
            add_where_set(sums, (pair + 1) * WORD_BITS, h2, value)


@kernel
def signature_word(sums, total, part, bits):
    """Word ``part`` of the signature: bit b is set where <signs_b, vector> = 2 sums[b] - total > 0, |total| < 2**32."""
    # whole numbers: 2 s > total is s > floor(total / 2), which int32 holds as it holds every s
    word = above(sums, part * WORD_BITS, np.int32(total >> 1))
    if bits < WORD_BITS:
        word &= (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    return word
