"""Tables, topic weights and concentrations against exact laws and quadrature.

Chains are compared in units of their standard error (means of 50 batches); the limit 5.3 is passed by chance once in
3e5 comparisons, 7e-5 for the file.
"""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from mc2core.compute import streams
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.weights import (
    Concentrations,
    GammaPrior,
    draw_dirichlet_process_concentration,
    draw_table_concentration,
    draw_tables,
    draw_topic_prior,
    draw_topic_weights,
    update_weights,
)

LIMIT = 5.3
BATCHES = 50


def score(draws, expected):
    """How many standard errors the mean of correlated draws is from ``expected``."""
    means = np.asarray(draws).reshape(BATCHES, -1).mean(axis=1)
    return abs(means.mean() - expected) / (means.std(ddof=1) / np.sqrt(BATCHES))


def antoniak(n, a):
    """P(o tables | n tokens, mass a), o = 0..n, by seating one token after the other."""
    law = np.zeros(n + 1)
    law[0] = 1.0
    for i in range(n):
        opened = a / (a + i)
        law = law * (1 - opened) + np.concatenate([[0.0], law[:-1]]) * opened
    return law


def moments(log_density):
    """Mean of x and of ln x under an unnormalised log density on (0, inf), by quadrature in ln x."""
    grid = np.linspace(-25, 8, 20_001)
    log_p = log_density(np.exp(grid)) + grid
    p = np.exp(log_p - log_p.max())
    total = integrate.simpson(p, x=grid)
    return integrate.simpson(p * np.exp(grid), x=grid) / total, integrate.simpson(p * grid, x=grid) / total


def assert_chain_follows(log_density, step):
    """16,000 steps from 1, each from the one before, against quadrature."""
    value, chain = 1.0, []
    for i in range(16_000):
        value = step(value, i)
        chain.append(value)
    mean, mean_log = moments(log_density)
    assert score(chain, mean) < LIMIT
    assert score(np.log(chain), mean_log) < LIMIT


@pytest.mark.parametrize(("n", "a"), [(1, 0.3), (6, 0.7), (6, 4.0), (25, 0.05)])
def test_tables_follow_antoniaks_law(n, a):
    n_km = np.array([[n]], np.int32)
    drawn = [draw_tables(n_km, np.array([a]), streams.key(1, "test", i))[0] for i in range(20_000)]
    law = antoniak(n, a)
    seen = np.bincount(drawn, minlength=n + 1)
    likely = law * len(drawn) >= 5
    assert seen[law == 0].sum() == 0
    if likely.sum() > 1:
        expected = law[likely] * seen[likely].sum() / law[likely].sum()
        assert stats.chisquare(seen[likely], expected).pvalue > 1e-6


def test_tables_are_summed_over_clusters_and_bounded_by_tokens():
    n_km = np.array([[3, 0, 1], [5, 2, 0]], np.int32)
    for i in range(50):
        tables = draw_tables(n_km, np.array([0.5, 1e-12, 1e6]), streams.key(3, "test", i))
        assert 2 <= tables[0] <= 8
        assert tables[1] == 1  # hardly any mass: one table for all
        assert tables[2] == 1


@pytest.mark.parametrize(("atoms", "draws"), [(1, 1), (4, 7), (13, 400), (3, 1000)])
@pytest.mark.parametrize("prior", [GammaPrior(1.0, 1.0), GammaPrior(0.4, 2.0)])
def test_concentration_of_clusters_and_topics_against_quadrature(atoms, draws, prior):
    def log_density(x):
        return (prior.shape - 1 + atoms) * np.log(x) - prior.rate * x + gammaln(x) - gammaln(x + draws)

    rng = np.random.default_rng(7)
    assert_chain_follows(log_density, lambda x, _: draw_dirichlet_process_concentration(x, atoms, draws, prior, rng))


@pytest.mark.parametrize(("tokens", "tables"), [([5], 3), ([40, 0, 7, 1], 9), ([1000, 1000], 30)])
def test_concentration_of_tables_against_quadrature(tokens, tables):
    prior, tokens = GammaPrior(1.5, 0.5), np.array(tokens)

    def log_density(x):
        seats = sum(gammaln(x) - gammaln(x + n) for n in tokens if n)
        return (prior.shape - 1 + tables) * np.log(x) - prior.rate * x + seats

    rng = np.random.default_rng(8)
    assert_chain_follows(log_density, lambda x, _: draw_table_concentration(x, tokens, tables, prior, rng))


@pytest.mark.parametrize(
    ("topic_words", "prior"),
    [
        ([[3, 0, 1], [0, 0, 2]], GammaPrior(1.0, 1.0)),
        ([[40, 0, 7, 1], [0, 0, 0, 0], [1, 1, 1, 1]], GammaPrior(1.5, 0.5)),
        ([[5, 0]], GammaPrior(0.05, 1.0)),  # s below 1e-9 now and then
    ],
)
def test_topic_prior_against_quadrature(topic_words, prior):
    topic_words = np.array(topic_words, np.int32)
    n_words = topic_words.shape[1]

    def log_density(x):
        by_topic = sum(gammaln(n_words * x) - gammaln(n_words * x + n) for n in topic_words.sum(axis=1))
        by_word = sum(gammaln(x + n) - gammaln(x) for n in topic_words.ravel())
        return (prior.shape - 1) * np.log(x) - prior.rate * x + by_topic + by_word

    rng = np.random.default_rng(9)
    assert_chain_follows(
        log_density, lambda x, i: draw_topic_prior(x, topic_words, prior, streams.key(5, "test", i), rng)
    )


def test_without_draws_the_prior_is_drawn():
    rng = np.random.default_rng(9)
    chain = [draw_dirichlet_process_concentration(1.0, 0, 0, GammaPrior(2.0, 4.0), rng) for _ in range(20_000)]
    assert score(chain, 0.5) < LIMIT


def test_topic_weights_are_dirichlet_given_the_tables():
    rng = np.random.default_rng(10)
    assignments = Assignments(
        np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(2, np.int64), np.ones(2) / 3, 1 / 3
    )
    weights = []
    for _ in range(20_000):
        draw_topic_weights(assignments, np.array([4, 1]), 0.5, rng)
        assert assignments.topic_weights.sum() + assignments.remaining == pytest.approx(1.0, abs=1e-12)
        weights.append([*assignments.topic_weights, assignments.remaining])
    for column, expected in zip(np.array(weights).T, np.array([4, 1, 0.5]) / 5.5, strict=True):
        assert score(column, expected) < LIMIT


def test_an_update_draws_each_concentration_from_its_conditional():
    """Tables, eta, v, alpha and epsilon in turn: five documents in two clusters, seven tokens of three topics."""
    cluster, topic = np.array([0, 1, 1, 1, 0], np.int32), np.array([0, 0, 1, 1, 2, 2, 2], np.int32)
    assignments = Assignments(cluster, topic, np.array([0, 2, 3, 5, 6, 7]), np.array([0.4, 0.3, 0.2]), 0.1)
    assignments.count()
    concentrations, key = Concentrations(1.2, 2.5, 0.7), streams.key(4, "test")
    priors = {"topic": GammaPrior(1.0, 2.0), "table": GammaPrior(1.5, 0.5), "group": GammaPrior(0.4, 2.0)}
    rng = np.random.default_rng(11)
    tables = draw_tables(np.array([[2, 0, 1], [0, 2, 2]], np.int32), 2.5 * np.array([0.4, 0.3, 0.2]), key)
    eta = draw_dirichlet_process_concentration(0.7, 3, tables.sum(), priors["topic"], rng)
    v = draw_table_concentration(2.5, np.array([3, 4]), tables.sum(), priors["table"], rng)
    alpha = draw_dirichlet_process_concentration(1.2, 2, 5, priors["group"], rng)
    epsilon = streams.dirichlet(np.append(tables, eta), rng)
    update_weights(assignments, concentrations, priors, key, np.random.default_rng(11), clusters_are_fixed=False)
    assert (concentrations.group, concentrations.table, concentrations.topic) == (alpha, v, eta)
    assert [*assignments.topic_weights, assignments.remaining] == epsilon.tolist()


@pytest.mark.parametrize(("shape", "rate"), [(0, 1), (1, -1), (np.nan, 1), (1, np.inf)])
def test_bad_priors_are_refused(shape, rate):
    with pytest.raises(ValueError, match="a Gamma prior needs shape and rate > 0"):
        GammaPrior(shape, rate)
