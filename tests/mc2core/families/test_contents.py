"""Compiled predictive densities of observations against the family's plain forms and Student's t of SciPy."""

import numpy as np
import pytest
from scipy.stats import t as student

from mc2core.families import DiagonalNormalGamma
from mc2core.families.contents import (
    Contents,
    _renew,
    add_observation,
    content_tables,
    log_densities,
    log_density_without,
    log_gammas_of,
    with_columns,
)

FAMILY = DiagonalNormalGamma(0.3, 0.7, 1.2, 0.4)
LOG_2PI = np.log(2 * np.pi)


def drawn(dimension, n=40, n_topics=3):
    rng = np.random.default_rng(dimension)
    topic = rng.integers(0, n_topics, n)
    values = rng.normal(topic[:, None], 0.3 + 0.2 * topic[:, None], (n, dimension))
    natural = np.tile(FAMILY.prior(4 * dimension), (n_topics, 1))
    np.add.at(natural, topic, FAMILY.statistics(values).toarray())
    return values, topic, natural


def densities(tables, values, i, n_columns):
    out = np.empty(tables.n.size)
    log_densities(values, i, n_columns, np.empty(tables.n.size), out, *tables[3:7])
    return out[:n_columns]


# 16 coordinates are multiplied before a logarithm is taken
@pytest.mark.parametrize("dimension", [1, 10, 16, 37])
def test_densities_are_the_familys_predictives_and_products_of_students_t(dimension):
    values, topic, natural = drawn(dimension)
    tables = content_tables(FAMILY, natural, 5)
    with_prior = np.vstack([natural, FAMILY.prior(4 * dimension)])
    mu, kappa, a, b = FAMILY.standard(with_prior)
    for i in range(len(values)):
        added = with_prior + FAMILY.statistics(values[i : i + 1]).toarray()
        plain = FAMILY.log_normaliser(added) - FAMILY.log_normaliser(with_prior) - 0.5 * dimension * LOG_2PI
        np.testing.assert_allclose(densities(tables, values, i, 4), plain, rtol=1e-11)
        of_scipy = student(2 * a, mu, np.sqrt(b * (kappa + 1) / (a * kappa))).logpdf(values[i]).sum(axis=1)
        np.testing.assert_allclose(densities(tables, values, i, 4), of_scipy, rtol=1e-10)
        m = topic[i]
        rest = natural[m] - FAMILY.statistics(values[i : i + 1]).toarray()[0]
        own = FAMILY.log_normaliser(natural[m]) - FAMILY.log_normaliser(rest) - 0.5 * dimension * LOG_2PI
        assert log_density_without(values, i, m, *tables[3:6], *tables[7:9]) == pytest.approx(own, rel=1e-9)


def test_topics_that_lose_and_gain_observations_are_those_built_anew():
    values, topic, natural = drawn(7)
    tables = content_tables(FAMILY, natural, 4, log_gammas_of(FAMILY, 40))
    for i in np.flatnonzero(topic == 0):
        add_observation(tables, values, i, 0, -1)
        add_observation(tables, values, i, 3, 1)
    assert tables.n.tolist() == [0, *np.bincount(topic)[1:], np.bincount(topic)[0]]
    anew = content_tables(FAMILY, np.vstack([FAMILY.prior(28), natural[1:], natural[0]]), 4)
    for name in ("first", "second", "mean", "slope", "power", "constant"):
        np.testing.assert_allclose(getattr(tables, name), getattr(anew, name), rtol=1e-10)
    for name in ("own_constant", "own_ratio"):  # of topics that have observations
        np.testing.assert_allclose(getattr(tables, name)[1:], getattr(anew, name)[1:], rtol=1e-10)
    np.testing.assert_array_equal(tables.first[:, 0], 0.7 * 0.3)  # to the last bit: nothing stays of what left
    wider = with_columns(tables, FAMILY, 9)
    for name in ("n", "mean", "slope", "power", "constant"):
        one, other = getattr(wider, name)[..., :4], getattr(tables, name)
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert (wider.n[4:] == 0).all()
    _renew(8, *wider)
    np.testing.assert_array_equal(wider.constant[4:], wider.constant[0])


def test_contents_are_in_the_unit_of_the_observations():
    values, _, natural = drawn(4)
    centre, scale = np.array([5.0, -3.0, 0.0, 100.0]), np.array([2.0, 1e-3, 7.0, 50.0])
    contents = Contents(FAMILY, centre, scale, natural)
    plain = Contents(FAMILY, np.zeros(4), np.ones(4), natural)
    other = contents.log_densities(values * scale + centre)
    np.testing.assert_allclose(other, plain.log_densities(values) - np.log(scale).sum(), rtol=1e-8)
    np.testing.assert_allclose(contents.mean, plain.mean * scale + centre)
    np.testing.assert_allclose(contents.sd, plain.sd * scale)
