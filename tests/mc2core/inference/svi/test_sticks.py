"""Sticks against quadrature of their Beta densities, and digamma against SciPy."""

import numba
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import digamma as scipy_digamma

from mc2core.compute import special
from mc2core.inference.svi.sticks import expected_log_weights, expected_weights, stick_divergence, stick_posterior

POSTERIOR = np.array([[1.3, 2.0, 0.7], [0.9, 3.5, 1.1]])


def expectation(function, a, b):
    return integrate.quad(lambda v: stats.beta.pdf(v, a, b) * function(v), 0, 1, limit=200)[0]


def test_expected_weights_and_logs_by_quadrature():
    v = [expectation(lambda v: v, *pair) for pair in POSTERIOR.T]
    log_v = [expectation(np.log, *pair) for pair in POSTERIOR.T]
    log_rest = [expectation(lambda v: np.log1p(-v), *pair) for pair in POSTERIOR.T]
    rest = np.cumprod([1, *(1 - np.array(v))])
    np.testing.assert_allclose(expected_weights(POSTERIOR), np.array([*v, 1.0]) * rest, rtol=1e-7)
    expected = np.array([*log_v, 0.0]) + np.concatenate([[0], np.cumsum(log_rest)])
    np.testing.assert_allclose(expected_log_weights(POSTERIOR), expected, rtol=1e-6)


@pytest.mark.parametrize("concentration", [0.6, 1.0, 4.0])
def test_divergence_by_quadrature(concentration):
    def log_ratio(v, a, b):
        return stats.beta.logpdf(v, a, b) - stats.beta.logpdf(v, 1.0, concentration)

    total = sum(expectation(lambda v, pair=pair: log_ratio(v, *pair), *pair) for pair in POSTERIOR.T)
    assert stick_divergence(POSTERIOR, concentration, np.log(concentration)) == pytest.approx(total, rel=1e-6)


def test_posterior_counts_the_later_atoms():
    counts = np.array([[3.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(stick_posterior(counts, 0.5), [[[4.0, 1.0], [1.0, 1.0]], [[2.5, 2.5], [1.5, 1.5]]])


def test_one_atom_has_all():
    none = stick_posterior(np.array([7.0]), 1.0)
    assert none.shape == (2, 0)
    assert expected_weights(none) == 1.0
    assert expected_log_weights(none) == 0.0
    assert stick_divergence(none, 2.0, np.log(2.0)) == 0.0


@numba.njit
def _digamma(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = special.digamma(x[i])
    return out


def test_digamma():
    x = np.concatenate([np.geomspace(1e-12, 1e9, 20_000), np.linspace(0.5, 12, 20_000)])
    expected = scipy_digamma(x)
    assert np.max(np.abs(_digamma(x) - expected) / (1 + np.abs(expected))) < 1e-14
