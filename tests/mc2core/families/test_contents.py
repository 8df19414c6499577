"""Compiled predictive densities of observations against the families' plain forms and distributions of SciPy."""

import numpy as np
import pytest
from scipy import stats

from mc2core.families import BetaBernoulliVector, DiagonalNormalGamma, GammaPoissonVector, GaussWishart
from mc2core.families.contents import (
    Contents,
    add_observation,
    content_tables,
    log_counts_without,
    log_densities,
    log_gammas_of,
    log_normal_without,
    log_ones_without,
    log_vector_anew,
    log_vector_without,
    natural_of_topics,
    renew_all,
    with_columns,
)
from mc2core.families.kernels import BETA_BERNOULLI, GAMMA_POISSON, NORMAL_GAMMA

FAMILIES = [
    pytest.param(family, id=family.name)
    for family in (
        DiagonalNormalGamma(0.3, 0.7, 1.2, 0.4),
        GaussWishart(0.3, 0.7, 1.2, 0.4),
        GammaPoissonVector(1.3, 0.8),
        BetaBernoulliVector(0.6, 1.4),
    )
]


def drawn(family, dimension, n=40, n_topics=3):
    """(values, topics, (D,) unit, natural parameters of the topics)"""
    rng = np.random.default_rng(dimension)
    topic = rng.integers(0, n_topics, n).astype(np.int32)
    if family.content_kind == "numbers":
        values = rng.normal(topic[:, None], 0.3 + 0.2 * topic[:, None], (n, dimension))
        values[:, -1] += values[:, 0]
    elif family.content_kind == "counts":  # to more than are multiplied one by one
        values = rng.poisson(2.0 * topic[:, None] + np.arange(dimension) % 10, (n, dimension)).astype(float)
        values[::5, 0] += 110.0
    else:
        values = (rng.random((n, dimension)) < 0.2 + 0.3 * topic[:, None]).astype(float)
    unit = rng.uniform(0.5, 3.0, dimension) if family.content_kind == "counts" else np.ones(dimension)
    natural = np.tile(family.prior(family.n_parameters(dimension)), (n_topics, 1))
    np.add.at(natural, topic, family.rows(values, unit))
    return values, topic, unit, natural


def densities(tables, values, i, n_columns):
    out = np.empty(tables.n.size)
    log_densities(tables, values, i, n_columns, out, np.empty(tables.n.size))
    return out[:n_columns]


def density_without(tables, values, i, m):
    out, product = np.empty((2, tables.n.size))
    log_densities(tables, values, i, len(out), out, product)
    mean, slope, power, constant, ratio = (
        tables.mean, tables.slope, tables.power, tables.own_constant, tables.own_ratio
    )  # fmt: skip
    if tables.code == NORMAL_GAMMA:
        return log_normal_without(values, i, m, mean, slope, power, constant, ratio)
    if tables.code == GAMMA_POISSON:
        return log_counts_without(values, i, m, tables.first, mean, constant, tables.together)
    if tables.code == BETA_BERNOULLI:
        return log_ones_without(values, i, m, tables.first, tables.second, constant)
    result = log_vector_without(m, product, slope, power, constant, ratio)
    return log_vector_anew(tables, values, i, m) if np.isnan(result) else result


def of_scipy(family, natural, unit, x):
    """ln p(x) under each row of natural parameters, by SciPy's predictive distributions."""
    if isinstance(family, GaussWishart):
        size, found = len(x), []
        for mu, kappa, nu, psi in zip(*family.standard(natural), strict=True):
            df = nu - size + 1
            found.append(stats.multivariate_t(mu, psi * (kappa + 1) / (kappa * df), df).logpdf(x))
        return np.array(found)
    if isinstance(family, DiagonalNormalGamma):
        mu, kappa, a, b = family.standard(natural)
        return stats.t(2 * a, mu, np.sqrt(b * (kappa + 1) / (a * kappa))).logpdf(x).sum(axis=1)
    a, b = np.moveaxis(family.by_coordinate(natural), -1, 0)
    if isinstance(family, GammaPoissonVector):
        return stats.nbinom(a, b / (b + unit)).logpmf(x).sum(axis=1)
    return stats.bernoulli(a / (a + b)).logpmf(x).sum(axis=1)


# 16 coordinates of numbers are multiplied before a logarithm is taken, 8 or 4 of other values
@pytest.mark.parametrize("dimension", [1, 10, 37])
@pytest.mark.parametrize("family", FAMILIES)
def test_densities_are_the_familys_predictives_and_scipys(family, dimension):
    values, topic, unit, natural = drawn(family, dimension)
    tables = content_tables(family, natural, 5, unit, log_gammas_of(family, values.shape))
    with_prior = np.vstack([natural, family.prior(natural.shape[1])])
    base = family.log_base_in(values, unit) + (family.content_kind == "numbers") * np.log(unit).sum()
    for i in range(len(values)):
        row = family.rows(values[i : i + 1], unit)
        plain = family.log_normaliser(with_prior + row) - family.log_normaliser(with_prior)
        np.testing.assert_allclose(densities(tables, values, i, 4), plain, rtol=1e-10, atol=1e-10)
        expected = of_scipy(family, with_prior, unit, values[i])
        np.testing.assert_allclose(densities(tables, values, i, 4) + base[i], expected, rtol=1e-9, atol=1e-9)
        m = topic[i]
        own = family.log_normaliser(natural[m]) - family.log_normaliser(natural[m] - row[0])
        assert density_without(tables, values, i, m) == pytest.approx(own, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("family", [one for one in FAMILIES if one.id != "gauss_wishart"])
def test_products_over_many_columns_neither_vanish_nor_overflow(family):
    """Of 200 columns, in each of which an observation is far from the other topic."""
    far = {"numbers": 1e6, "counts": 60.0, "binary": 1.0}[family.content_kind]
    values, unit = np.zeros((5001, 200)), np.ones(200)
    values[-1] = far
    topic = np.append(np.zeros(5000, np.int32), np.int32(1))
    natural = natural_of_topics(family, values, topic, 2, unit)
    tables = content_tables(family, natural, 3, unit, log_gammas_of(family, values.shape))
    for i in (0, 5000):
        plain = family.log_normaliser(natural + family.rows(values[i : i + 1], unit)) - family.log_normaliser(natural)
        np.testing.assert_allclose(densities(tables, values, i, 2), plain, rtol=1e-7)
    own = family.log_normaliser(natural[0]) - family.log_normaliser(natural[0] - family.rows(values[:1], unit)[0])
    assert density_without(tables, values, 0, 0) == pytest.approx(own, rel=1e-7, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_natural_parameters_are_sums_of_statistics(family):
    values, topic, unit, natural = drawn(family, 6)
    np.testing.assert_allclose(natural_of_topics(family, values, topic, 3, unit), natural, rtol=1e-12, atol=1e-12)
    again = family.natural_of(*family.parts(natural, unit))
    np.testing.assert_allclose(again, natural, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(family.parts(natural, unit)[0], np.bincount(topic), rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_changed_topics_equal_those_built_anew(family):
    values, topic, unit, natural = drawn(family, 7)
    tables = content_tables(family, natural, 5, unit, log_gammas_of(family, values.shape))
    for i in np.flatnonzero(topic == 0):
        add_observation(tables, values, i, 0, -1)
        add_observation(tables, values, i, 3, 1)
    # there and back, more often than factors follow without being made anew
    other = int(np.flatnonzero(topic == 1)[0])
    for _ in range(110):
        add_observation(tables, values, other, 1, -1)
        add_observation(tables, values, other, 1, 1)
    count = np.bincount(topic)
    assert tables.n.tolist() == [0, *count[1:], count[0], 0]
    moved = np.vstack([family.prior(natural.shape[1]), natural[1:], natural[0]])
    anew = content_tables(family, moved, 5, unit, log_gammas_of(family, values.shape))
    for i in range(40):
        np.testing.assert_allclose(densities(tables, values, i, 5), densities(anew, values, i, 5), rtol=1e-9)
        m = 3 if topic[i] == 0 else topic[i]
        own = density_without(tables, values, i, m), density_without(anew, values, i, m)
        assert own[0] == pytest.approx(own[1], rel=1e-9)
    # to the last bit: nothing stays of what left
    np.testing.assert_array_equal(tables.first[:, 0], tables.first[:, 4])
    np.testing.assert_array_equal(densities(tables, values, 1, 5)[0], densities(tables, values, 1, 5)[4])
    wider = with_columns(tables, family, 9)
    np.testing.assert_allclose(densities(wider, values, 2, 5), densities(tables, values, 2, 5), rtol=1e-10)
    assert (wider.n[5:] == 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_with_fractional_counts_match_log_normalisers(family):
    values, _, unit, natural = drawn(family, 4)
    part = 0.37 * natural + 0.63 * family.prior(natural.shape[1])
    tables = content_tables(family, part, 3, unit)
    renew_all(tables)
    for i in range(5):
        plain = family.log_normaliser(part + family.rows(values[i : i + 1], unit)) - family.log_normaliser(part)
        np.testing.assert_allclose(densities(tables, values, i, 3), plain, rtol=1e-10, atol=1e-10)


def test_contents_are_in_the_unit_of_the_observations():
    for family in (DiagonalNormalGamma(0.3, 0.7, 1.2, 0.4), GaussWishart(0.3, 0.7, 1.2, 0.4)):
        values, _, unit, natural = drawn(family, 4)
        centre, scale = np.array([5.0, -3.0, 0.0, 100.0]), np.array([2.0, 1e-3, 7.0, 50.0])
        contents = Contents(family, centre, scale, natural)
        plain = Contents(family, np.zeros(4), unit, natural)
        other = contents.log_densities(values * scale + centre)
        np.testing.assert_allclose(other, plain.log_densities(values) - np.log(scale).sum(), rtol=1e-8)
        np.testing.assert_allclose(contents.mean, plain.mean * scale + centre)
        np.testing.assert_allclose(contents.sd, plain.sd * scale)
        np.testing.assert_allclose(np.diagonal(contents.covariance, axis1=1, axis2=2), contents.sd**2)


def test_densities_of_counts_are_in_the_unit_of_their_means():
    family = GammaPoissonVector(1.3, 0.8)
    values, _, unit, natural = drawn(family, 5)
    found = Contents(family, np.zeros(5), unit, natural).log_densities(values)
    with_prior = np.vstack([natural, family.prior(10)])
    np.testing.assert_allclose(found, [of_scipy(family, with_prior, unit, x) for x in values], rtol=1e-9)


def test_content_mean_and_sd_match_those_of_the_observations():
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((3, 3))
    for family, values in (
        (DiagonalNormalGamma(), rng.normal([3.0, -1.0, 50.0], [0.5, 2.0, 9.0], (20_000, 3))),
        (GaussWishart(), rng.standard_normal((20_000, 3)) @ mixing + 7.0),
        (GammaPoissonVector(), rng.poisson([0.3, 4.0, 60.0], (20_000, 3)).astype(float)),
        (BetaBernoulliVector(), (rng.random((20_000, 3)) < [0.1, 0.5, 0.8]).astype(float)),
    ):
        centre, scale = family.unit(values)
        in_unit = family.in_unit(values, centre, scale)
        natural = natural_of_topics(family, in_unit, np.zeros(20_000, np.int32), 1, scale)
        contents = Contents(family, centre, scale, natural)
        np.testing.assert_allclose(contents.mean[0], values.mean(axis=0), rtol=1e-3)
        np.testing.assert_allclose(contents.sd[0], values.std(axis=0), rtol=0.02)
        assert contents.n_observations[0] == pytest.approx(20_000, rel=1e-9)
        if isinstance(family, GaussWishart):
            np.testing.assert_allclose(contents.covariance[0], np.cov(values.T), rtol=1e-2, atol=1e-2)


def test_a_constant_coordinate_with_a_rounded_mean_is_not_scaled():
    centre, scale = DiagonalNormalGamma().unit(np.column_stack([np.full(12, 0.7), np.arange(12.0)]))
    assert (centre[0], scale[0]) == (0.7, 1.0)
    assert scale[1] == np.arange(12).std()
