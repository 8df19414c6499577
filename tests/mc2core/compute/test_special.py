"""Vector mathematics against scipy, and runs of sixteen lanes against NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.special import gammaln

from mc2core.compute import simd, special


def over(function):
    @numba.njit(error_model="numpy")
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    def call(x):
        out = np.empty_like(x)
        loop(x, out)
        return out

    return call


def spread(low, high, size=200_000):
    return np.exp(np.random.default_rng(0).uniform(np.log(low), np.log(high), size))


def test_log():
    x = np.concatenate([spread(1e-307, 1e308), spread(0.5, 2.0), [1.0]])
    np.testing.assert_allclose(over(special.log)(x), np.log(x), rtol=3e-16, atol=1e-16)


def test_exp():
    x = np.concatenate([np.random.default_rng(0).uniform(-708, 709, 200_000), [0.0, -1e-20]])
    np.testing.assert_allclose(over(special.exp)(x), np.exp(x), rtol=4e-16)
    np.testing.assert_array_equal(over(special.exp)(np.array([-709.0, -1e9, 710.0])), [0.0, 0.0, np.inf])


def test_stirling():
    x = np.concatenate([spread(8.0, 1e12), [8.0]])
    np.testing.assert_allclose(over(special.stirling)(x), gammaln(x), rtol=1e-15, atol=1e-14)


def test_log_gamma():
    x = np.concatenate([spread(1e-30, 1e12), spread(0.5, 9.0), [1.0, 2.0, 8.0]])
    np.testing.assert_allclose(over(special.log_gamma)(x), gammaln(x), rtol=2e-15, atol=1e-13)


@numba.njit
def _counts(counts, row, prior, scale, weights, first):
    return simd.weigh_counts(counts, row, prior, scale, weights, first)


@numba.njit
def _products(left, row, right, other, sums, first):
    return simd.weigh_products(left, row, right, other, sums, first)


@numba.njit
def _find(weights, first, u, left_out):
    return simd.find_lane(weights, first, u, left_out)


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def test_weighing(draw):
    counts = draw.integers(0, 100, (3, 32)).astype(np.int32)
    left, right = draw.random((2, 3, 32)).astype(np.float32)
    weights = np.zeros(32, np.float32)
    total = _counts(counts, 2 * 32, left[0], right[1], weights, 16)
    expected = (counts[2].astype(np.float32) + left[0]) * right[1]
    np.testing.assert_array_equal(weights[:16], 0)
    np.testing.assert_array_equal(weights[16:], expected[16:])
    assert total == pytest.approx(expected[16:].sum(dtype=np.float64), rel=1e-15)
    sums = np.zeros(32)
    total = _products(left, 32, right, 2 * 32, sums, 0)
    np.testing.assert_allclose(sums[:16], np.cumsum((left[1] * right[2])[:16], dtype=np.float64), rtol=1e-14)
    np.testing.assert_array_equal(sums[16:], 0)
    assert total == sums[15]


@numba.njit
def _gathered(values, places, row, dense, weights, first):
    return simd.weigh_gathered(values, places, row, dense, weights, first)


def test_weighing_gathered(draw):
    values, dense = draw.random(64).astype(np.float32), draw.random(100).astype(np.float32)
    places, weights = draw.integers(0, 100, 64).astype(np.int32), np.zeros(32, np.float32)
    total = _gathered(values, places, 32, dense, weights, 16)
    expected = values[48:] * dense[places[48:]]
    np.testing.assert_array_equal(weights[16:], expected)
    np.testing.assert_array_equal(weights[:16], 0)
    assert total == pytest.approx(expected.sum(dtype=np.float64), rel=1e-15)


@numba.njit
def _equal(numbers, first, number):
    return simd.find_equal(numbers, first, np.int32(number))


def test_finding_a_number(draw):
    numbers = draw.permutation(48).astype(np.int32)
    for number in range(-1, 49):
        expected = np.flatnonzero(numbers[16:32] == number)
        assert _equal(numbers, 16, number) == (expected[0] if len(expected) else 16)
    assert _equal(np.zeros(32, np.int32), 16, 0) == 0  # of several the first


@numba.njit
def _passed(sums, first, u):
    return simd.count_passed(sums, first, u)


def test_counting_passed_sums(draw):
    sums = np.cumsum(draw.integers(0, 3, 48)).astype(float)
    for u in np.arange(-1, sums[-1] + 2, 0.5):
        assert _passed(sums, 16, u) == np.searchsorted(sums[16:32], u, side="right")


def test_finding_a_lane(draw):
    weights = np.zeros(48, np.float32)
    for _ in range(300):
        weights[16:32] = draw.integers(0, 3, 16) * (draw.random(16) < draw.random())  # sums are exact
        for left_out in (-1, int(draw.integers(16, 32)), 40):
            kept = np.where(np.arange(48) == left_out, 0, weights)[16:32]
            total = kept.sum()
            for u in (0.0, total / 3, max(total - 0.5, 0.0), total):
                expected = np.searchsorted(np.cumsum(kept), u, side="right")
                assert _find(weights, 16, u, left_out) == expected
