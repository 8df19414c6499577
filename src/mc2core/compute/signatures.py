"""Random signs from MurmurHash3, and bit signatures by which FastEx proposes clusters (NIPS12 sections 3.2 and 3.5).

The random signs (1 or -1) of a word are the bits of the MurmurHash3 digest of its index (package mmh3). The 128-bit
digest (x64 variant) of the index, as eight little-endian bytes, yields 128 signs. A second digest with the next seed
yields another 128 signs. A table contains the bits of all words. For a vector v of one sign per word, and vectors a and
b,

    P(sign <v, a> != sign <v, b>) = angle(a, b) / pi

holds approximately, because v is not Gaussian. The approximation improves if the norms of a and b are spread over more
coordinates (the tests measure it).

**Sums.** For integer coordinates, the inner product with a sign vector is 2 (sum of the coordinates whose bit is set) -
(sum of all coordinates). One masked addition per coordinate therefore updates the sums for 64 sign vectors
(:func:`add_where_set`). Integer sums are exact, so adding and removing causes no rounding errors.
"""

from __future__ import annotations

import functools

import mmh3
import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.simd import WORD_BITS, above, add_where_set

#: supported lengths of a signature in bits
BITS = (8, 16, 32, 64, 128, 256)


def n_signature_words(bits: int) -> int:
    """Return the number of 64-bit words of a signature of ``bits`` bits; raise ValueError if it is not supported."""
    if bits not in BITS:
        raise ValueError(f"bits is {bits!r}; allowed: {', '.join(map(str, BITS))}")
    return -(-bits // WORD_BITS)


@functools.lru_cache(maxsize=1)
def signs_of_words(n_words: int, bits: int) -> np.ndarray:
    """Return the signs of words 0 to n_words - 1 as bits, (n_words, W) uint64; cached for the chains of a fit."""
    n_parts = n_signature_words(bits)
    words = np.arange(n_words, dtype="<u8").view("V8").tolist()
    digests = [
        np.frombuffer(b"".join(mmh3.mmh3_x64_128_digest(word, seed) for word in words), "<u8").reshape(n_words, 2)
        for seed in range(-(-n_parts // 2))
    ]
    return np.hstack(digests)[:, :n_parts].copy()


@kernel
def add_signed(sums, signs, word, value):
    """Add the int32 ``value`` to the entries of ``sums``, (64 W,) int32, whose bit in ``signs[word]`` is set."""
    for part in range(signs.shape[1]):
        add_where_set(sums, part * WORD_BITS, signs[word, part], value)


@kernel
def signature_word(sums, total, part, bits):
    """Return word ``part`` of the signature: bit b is set if <signs_b, vector> = 2 sums[b] - total > 0.

    |total| must be below 2**32.
    """
    # for integers, 2 s > total is equivalent to s > floor(total / 2), which fits into int32
    word = above(sums, part * WORD_BITS, np.int32(total >> 1))
    if bits < WORD_BITS:
        word &= (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    return word
