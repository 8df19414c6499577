"""Random streams: uniform, apart from each other, keyed by what they are for; variates against scipy.

Kolmogorov-Smirnov and chi-square tests have a false-alarm rate of 1e-5 each; seeds are fixed.
"""

import math

import numba
import numpy as np
import pytest
from scipy import stats

from mc2core.compute import streams

LEAST = 1e-5
SIZE = 60_000


@numba.njit
def draw_uniform(key, item, out):
    state = np.empty(2, np.uint64)
    streams.seek(state, key, item)
    for i in range(len(out)):
        out[i] = streams.uniform(state)


@numba.njit
def draw_normal(key, out):
    state = np.empty(2, np.uint64)
    streams.seek(state, key, 0)
    for i in range(len(out)):
        out[i] = streams.normal(state)


@numba.njit
def draw_log_gamma(key, shape, out):
    state = np.empty(2, np.uint64)
    streams.seek(state, key, 0)
    for i in range(len(out)):
        out[i] = streams.log_gamma_variate(state, shape)


def uniforms(key, item=0, size=SIZE):
    out = np.empty(size)
    draw_uniform(key, item, out)
    return out


def test_streams_are_uniform_and_uncorrelated():
    u = uniforms(streams.key(0, "test"))
    assert stats.kstest(u, "uniform").pvalue > LEAST
    cells = np.histogram2d(u[:-1:2], u[1::2], bins=16)[0]
    assert stats.chisquare(cells.ravel()).pvalue > LEAST
    low_bits = (u * 2**40).astype(np.int64) & 255
    assert stats.chisquare(np.bincount(low_bits, minlength=256)).pvalue > LEAST


def test_first_draws_over_documents_are_uniform_and_uncorrelated():
    key = streams.key(0, "test")
    first = np.array([uniforms(key, item, 2) for item in range(20_000)])
    assert stats.kstest(first[:, 0], "uniform").pvalue > LEAST
    for one, other in ((first[:, 0], first[:, 1]), (first[:-1, 0], first[1:, 0])):
        assert abs(np.corrcoef(one, other)[0, 1]) * math.sqrt(len(one)) < 4.4  # two-sided 1e-5


def test_uniform_stays_inside_the_open_interval():
    """The generator's extreme words: 64 ones and 64 zeros, put in by inverting the mixing function."""

    def unmix(word):  # inverse of the finaliser
        mask = 2**64 - 1
        for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9)):
            word ^= word >> shift ^ word >> 2 * shift
            word = word * pow(factor, -1, 2**64) & mask
        return word ^ word >> 30 ^ word >> 60

    for target in (0, 2**64 - 1):
        start = unmix(target)
        assert int(streams.mix(np.uint64(start))) == target
        state = np.array([start, 0], dtype=np.uint64)
        assert 0.0 < streams.uniform(state) < 1.0


def test_streams_are_keyed_by_everything_that_names_them():
    keys = {int(streams.key(seed, purpose, i)) for seed in (0, 1) for purpose in ("a", "b") for i in (0, 1, 12)}
    assert len(keys) == 12
    firsts = {uniforms(streams.key(0, "a"), item, 1)[0] for item in range(2000)}
    assert len(firsts) == 2000
    values = {
        streams.generator(*name).random()
        for name in ((0, "a"), (1, "a"), (0, "b"), (0, "a", 1), (0, "a", 0, 1), (0, "a", 1, 1))
    }
    assert len(values) == 6
    assert streams.generator(3, "a", 4, 5).random() == streams.generator(3, "a", 4, 5).random()
    np.testing.assert_array_equal(uniforms(streams.key(3, "a", 4), 9, 50), uniforms(streams.key(3, "a", 4), 9, 50))


def test_streams_of_documents_share_no_draws():
    """4,000 documents, 50 draws each: no value of 52 bits twice (chance of one by accident 4e-6)."""
    key = streams.key(5, "test")
    drawn = np.concatenate([uniforms(key, item, 50) for item in range(4000)])
    assert len(np.unique(drawn)) == drawn.size


def test_compiled_stream_is_splitmix64_of_its_own_start():
    """Twin in Python integers."""
    mask = 2**64 - 1

    def mix(word, shifts, factors):
        for shift, factor in zip(shifts, (*factors, 1), strict=True):
            word = (word ^ word >> shift) * factor & mask
        return word

    key, item = streams.key(7, "twin", 2), 11
    fine = (30, 27, 31), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
    start = mix((int(key) + 0x9E3779B97F4A7C15 * (item + 1)) & mask, *fine)
    step = mix((start + int(key)) & mask, (33, 33, 33), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)) | 1
    expected = [((mix((start + step * (i + 1)) & mask, *fine) >> 12) + 0.5) / 2**52 for i in range(20)]
    np.testing.assert_array_equal(uniforms(key, item, 20), expected)


def test_normal_variates():
    out = np.empty(SIZE)
    draw_normal(streams.key(1, "test"), out)
    assert stats.kstest(out, "norm").pvalue > LEAST
    # the tail has its own branch: P(|x| > 3.2) = 0.00137
    beyond = np.abs(out) > 3.2
    assert stats.binomtest(int(beyond.sum()), SIZE, 2 * stats.norm.sf(3.2)).pvalue > LEAST


@pytest.mark.parametrize("shape", [1e-3, 0.05, 0.9, 1.0, 3.7, 250.0])
def test_gamma_variates(shape):
    out = np.empty(SIZE)
    draw_log_gamma(streams.key(2, "test"), shape, out)
    assert np.isfinite(out).all()  # the variate itself underflows at shape 0.001
    if shape > 0.01:
        assert stats.kstest(np.exp(out), stats.gamma(shape).cdf).pvalue > LEAST
    else:
        # shape ln(x) tends to -Exponential(1); exact: the cdf of small x is x**shape / Gamma(shape + 1)
        tail = out[out < -40]
        power = np.exp(shape * (tail + 40))
        assert tail.size > SIZE / 2
        assert stats.kstest(power, "uniform").pvalue > LEAST


@pytest.mark.parametrize("shape", [0.01, 0.3, 0.49, 0.7])
def test_many_log_gamma_variates_have_their_law(shape):
    """Above exp(-300), where SciPy's distribution function is above 0."""
    logs = np.empty(100_000)
    streams.fill_log_gamma(np.array([5, 7], np.uint64), shape, logs)
    assert np.isfinite(logs).all()
    law = stats.gamma(shape)
    below = law.cdf(np.exp(-300.0))
    assert np.mean(logs < -300.0) == pytest.approx(below, abs=0.008)  # 5 standard errors
    shown = stats.kstest(logs[logs > -300.0], lambda x: (law.cdf(np.exp(x)) - below) / (1.0 - below))
    assert shown.pvalue > LEAST


@numba.njit
def find_index(weights, first, last, u):
    return streams.index_at(weights, first, last, u)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_indices_are_those_of_running_sums(kind):
    """Whole numbers, whose sums are exact; weights of 0 are never found, but for the last by rounding."""
    weights = np.array([9, 0, 3, 1, 0, 5, 0, 7], kind)
    for u in np.arange(0.0, 9.0, 0.5):
        index, rest = find_index(weights, 2, 6, u)
        assert index == 2 + np.searchsorted(np.cumsum(weights[2:6]), u, side="right")
        assert rest == u - weights[2:index].sum()
    assert find_index(weights, 2, 6, 9.0) == (6, 0.0)
