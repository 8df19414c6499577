"""Random streams keyed by what they are for, never by who draws from them.

A stream is named by (seed, purpose, iteration, document). Iteration 400 can therefore be replayed from a
stored state without replaying 1 to 399, and any number of threads draws the same numbers.

Two forms, one rule:

* :func:`generator` gives a NumPy generator (Philox) for work done in Python;
* :func:`key` gives a 64-bit key for compiled kernels, which call :func:`seek` at the start of every document
  (or topic, or cluster) and then draw from a two-word counter state. That generator is SplitMix64 with a
  stream of its own for each document (Steele, Lea and Flood 2014: a start and an odd increment).
"""

from __future__ import annotations

import hashlib

import numba
import numpy as np

from mc2core.compute.kernels import kernel

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MIX_3 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_4 = np.uint64(0xC4CEB9FE1A85EC53)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_S12, _S27, _S30, _S31, _S33 = (np.uint64(shift) for shift in (12, 27, 30, 31, 33))
_TO_UNIT = 1.0 / 4503599627370496.0  # 2**-52


def _words(seed: int, purpose: str, iteration: int, document: int) -> bytes:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}: a seed is a whole number of at least 0")
    return f"{seed}/{purpose}/{iteration}/{document}".encode()


def generator(seed: int, purpose: str, iteration: int = 0, document: int = 0) -> np.random.Generator:
    """NumPy generator of the stream (seed, purpose, iteration, document)."""
    digest = hashlib.blake2b(_words(seed, purpose, iteration, document), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype=np.uint64)))


def key(seed: int, purpose: str, iteration: int = 0) -> np.uint64:
    """64-bit key of the family of streams (seed, purpose, iteration, .) for :func:`seek`."""
    digest = hashlib.blake2b(_words(seed, purpose, iteration, 0), digest_size=8).digest()
    return np.frombuffer(digest, dtype=np.uint64)[0]


@numba.njit(inline="always")
def mix(word):
    """Finaliser of SplitMix64 (Stafford's variant 13): uint64 -> uint64, one to one."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@numba.njit(inline="always")
def finish_murmur(word):
    """MurmurHash3's finaliser: uint64 -> uint64, one to one."""
    word = (word ^ (word >> _S33)) * _MIX_3
    word = (word ^ (word >> _S33)) * _MIX_4
    return word ^ (word >> _S33)


@kernel
def seek(state, key, item):
    """Set ``state`` ((2,) uint64, in place) to the start of item's stream under ``key``."""
    start = mix(key + _GOLDEN * (np.uint64(item) + _ONE))
    state[0] = start
    state[1] = finish_murmur(start + key) | _ONE  # odd: the increment of the stream


@numba.njit(inline="always")
def to_unit(word):
    """A number in (0, 1) of the high 52 bits of a word, float64."""
    return (np.float64(word >> _S12) + 0.5) * _TO_UNIT


@numba.njit(inline="always")
def uniform(state):
    """Next float64 of the stream, uniform on (0, 1): never 0, never 1."""
    state[0] += state[1]
    return to_unit(mix(state[0]))
