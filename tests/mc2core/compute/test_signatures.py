"""Signs of words, one by one, and plain twins of the bit kernels."""

import numpy as np
import pytest
from helpers.hashing import signs

from mc2core.compute import signatures


@pytest.mark.parametrize("bits", signatures.BITS)
def test_signs_of_words_are_the_bits_of_their_digests(bits):
    table = signatures.signs_of_words(300, bits)
    assert table.shape == (300, signatures.n_signature_words(bits))
    for word in (0, 1, 255, 299):
        parts = np.unpackbits(table[word].view(np.uint8), bitorder="little")[:bits]
        assert np.array_equal(2 * parts.astype(int) - 1, signs(word, bits))


def test_signs_stay_those_of_stored_checkpoints():
    first = [[f"{part:016x}" for part in row] for row in signatures.signs_of_words(2, 256).tolist()]
    assert first == [
        ["28df63b7cc57c3cb", "f2557dfcc4e8fe52", "73269217e5476f20", "f1fa3fc86728ca0c"],
        ["004403b7fb05c44a", "3d8acdb4d36d9c06", "3d9d8ba8f33bdc48", "fd26c615229c23e9"],
    ]


@pytest.mark.parametrize("bits", signatures.BITS)
def test_sums_and_signature_against_their_twin(bits):
    rng = np.random.default_rng(bits)
    vector = dict(zip(rng.choice(1000, 50).tolist(), rng.integers(-999, 999, 50).tolist(), strict=True))
    sums, table = np.zeros(signatures.n_signature_words(bits) * 64, np.int32), signatures.signs_of_words(1000, bits)
    for word, value in vector.items():
        signatures.add_signed(sums, table, word, np.int32(value))
    product = sum(value * signs(word, bits) for word, value in vector.items())
    total = sum(vector.values())
    assert np.array_equal(2 * sums[:bits].astype(int) - total, product)
    for part in range(signatures.n_signature_words(bits)):
        expected = sum(1 << b for b, value in enumerate(product[64 * part : 64 * part + 64]) if value > 0)
        assert signatures.signature_word(sums, total, part, bits) == expected
    for word, value in vector.items():
        signatures.add_signed(sums, table, word, np.int32(-value))
    assert not sums.any()


def test_differing_bits_follow_the_angle():
    """P(signs differ) = angle / pi. False-alarm rate 1e-4: bound of 3.9 sd on the mean of 200 independent pairs."""
    rng = np.random.default_rng(3)
    n_words, n_pairs, bits = 400, 200, 256
    table = signatures.signs_of_words(n_words * n_pairs, bits)
    for cosine in (0.9, 0.5, 0.0):
        distances = []
        for pair in range(n_pairs):
            a = rng.standard_normal(n_words)
            b = cosine * a + np.sqrt(1 - cosine**2) * rng.standard_normal(n_words)
            words = pair * n_words + np.arange(n_words)
            bit = []
            for vector in (a, b):
                grid = np.rint(vector * 1e5).astype(np.int32)
                sums = np.zeros(bits, np.int32)
                for word, value in zip(words, grid, strict=True):
                    signatures.add_signed(sums, table, word, value)
                bit.append([signatures.signature_word(sums, int(grid.sum()), part, bits) for part in range(bits // 64)])
            angle = np.arccos(a @ b / np.sqrt(a @ a * (b @ b))) / np.pi
            distance = sum((int(x) ^ int(y)).bit_count() for x, y in zip(*bit, strict=True))
            distances.append((distance / bits - angle) / np.sqrt(angle * (1 - angle) / bits))
        assert abs(np.mean(distances)) < 3.9 / np.sqrt(n_pairs)
        assert np.var(distances) == pytest.approx(1.0, abs=0.4)  # binomial


@pytest.mark.parametrize("bits", [0, 7, 12, 512, -8])
def test_lengths_not_supported_are_named(bits):
    with pytest.raises(ValueError, match=f"bits is {bits}; allowed: 8, 16, 32, 64, 128, 256"):
        signatures.n_signature_words(bits)
