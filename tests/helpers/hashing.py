"""The signs of a word, read off its digests one by one."""

import mmh3
import numpy as np


def mmh3_words(data, seed):
    return tuple(np.frombuffer(mmh3.mmh3_x64_128_digest(data, seed), dtype=np.uint64))


def signs(word, bits):
    """(bits,) of +-1, from mmh3."""
    parts = [mmh3_words(int(word).to_bytes(8, "little"), part // 2)[part % 2] for part in range(-(-bits // 64))]
    unpacked = np.unpackbits(np.array(parts).view(np.uint8), bitorder="little")[:bits]
    return 2 * unpacked.astype(int) - 1
