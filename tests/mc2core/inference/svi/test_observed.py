"""SVI of topics that emit observations: closed forms of expected densities, the bound against enumeration and its
gradients, runs and what is refused.
"""

import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fits import svi
from helpers.observed import crossed_corpus, log_values
from helpers.svi_twin import log_evidence_given_weights, resumed_in_parts, states_equal
from scipy.special import digamma, gammaln

from mc2core import Corpus, Fit, fit
from mc2core.families import BetaBernoulliVector, DiagonalNormalGamma, GammaPoissonVector, GaussWishart, NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.inference import SVI, Stream
from mc2core.inference.svi import engine as svi_engine
from mc2core.inference.svi import merging, start
from mc2core.inference.svi.globals import topics_in_use
from mc2core.inference.svi.observed import ObservedTopics
from mc2core.models import MC2
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index

HYPER = (0.2, 0.6, 1.4, 0.5)
NAMED = {
    one.name: one
    for one in (
        DiagonalNormalGamma(*HYPER),
        GaussWishart(*HYPER),
        GammaPoissonVector(1.3, 0.8),
        BetaBernoulliVector(0.6, 1.4),
    )
}
FAMILIES = [pytest.param(one, id=name) for name, one in NAMED.items()]
LEVELS = {"shared": {}, "document level": {"document_concentration": "learn"}}
LENGTHS = [3, 2, 1]
OF_KIND = {
    "numbers": np.array([[0.2, 9.0], [0.3, 8.0], [2.0, 1.0], [2.2, 2.0], [0.1, 8.5], [1.0, 1.5]]),
    "counts": np.array([[0, 3], [1, 2], [9, 0], [7, 1], [0, 5], [6, 0]]),
    "binary": np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]]),
}


def tiny(family):
    kind, year = family.content_kind, np.array([0.5, np.nan, -1.0])
    return Corpus.from_observations(OF_KIND[kind], np.repeat(range(3), LENGTHS), contexts={"year": year}, kind=kind)


def drawn(family, seed=0, n_documents=12):
    """Documents of five observations, of two clusters that prefer other topics."""
    rng = np.random.default_rng(seed)
    topic = (rng.random(5 * n_documents) < np.where(np.arange(5 * n_documents) % 10 < 5, 0.9, 0.2)).astype(int)
    means = np.array([[0.3, 4.0, 2.0], [3.0, 0.5, 2.0]])[topic]
    draw = {
        "numbers": means + rng.standard_normal(means.shape),
        "counts": rng.poisson(means),
        "binary": rng.random(means.shape) < means / 5,
    }
    kind = family.content_kind
    return Corpus.from_observations(draw[kind].astype(float), np.repeat(range(n_documents), 5), kind=kind)


def engine(family, n_clusters=3, n_topics=4, **settings):
    settings = {"batch_size": None, "initialisation": "random"} | settings
    return svi(max_clusters=n_clusters, max_topics=n_topics, content=family, **settings)


def expected_log_density(family, natural, x, scale):
    """E ln p(x | psi) of one topic and (n, D) observations in the unit of the family, by textbook forms."""
    n, first, second = (one[0] for one in family.parts(natural[None], scale))
    if family.name == "beta_bernoulli_vector":
        return (x * digamma(first) + (1 - x) * digamma(second) - digamma(first + second)).sum(axis=1)
    if family.name == "gamma_poisson_vector":
        log_rate = digamma(first) - np.log(second) + np.log(scale)
        return (x * log_rate - scale * first / second - gammaln(x + 1)).sum(axis=1)
    _, kappa0, a0, _ = HYPER
    kappa, size = kappa0 + n, x.shape[1]
    mean = first / kappa
    if family.name == "diagonal_normal_gamma":
        a, b = a0 + n / 2, second - kappa * mean**2 / 2
        terms = digamma(a) - np.log(b) - a / b * (x - mean) ** 2 - 1 / kappa - np.log(2 * np.pi)
    else:  # Bishop 2006, eqs. 10.64 and 10.65
        nu, psi = size - 1 + 2 * a0 + n, second - kappa * np.outer(mean, mean)
        log_det = digamma((nu - np.arange(size)) / 2).sum() + size * np.log(2) - np.linalg.slogdet(psi)[1]
        square = np.einsum("ni,ij,nj->n", x - mean, np.linalg.inv(psi), x - mean)
        terms = (log_det - size / kappa - nu * square - size * np.log(2 * np.pi))[:, None]
    return 0.5 * terms.sum(axis=1) - np.log(scale).sum()


# -- one topic -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_expected_log_densities(family):
    corpus, rng = tiny(family), np.random.default_rng(0)
    observed = ObservedTopics.from_corpus(corpus, family)
    sums, numbers = observed.sums(np.arange(6), rng.random((6, 3))), np.array([4, 0, 5])
    values, scale = observed.observations.values[numbers], observed.observations.scale
    known = [expected_log_density(family, one, values, scale) for one in observed.natural(sums)]
    np.testing.assert_allclose(observed.scores(observed.expected(sums), numbers), np.array(known).T, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_natural_gradient_of_the_bound_vanishes_after_a_step(family):
    """The slope of sum_i gamma_i E ln p(x_i | psi) - KL by natural parameters is the Fisher information times the way
    to prior and statistics: central differences, and the information as the slope of E t(psi)."""
    corpus, rng = tiny(family), np.random.default_rng(1)
    observed, shares = ObservedTopics.from_corpus(corpus, family), rng.random((6, 1))
    goal = observed.sums(np.arange(6), shares)
    sums = observed.sums(np.arange(6), rng.random((6, 1)))

    def bound(at):
        return float((shares * observed.scores(observed.expected(at), np.arange(6))).sum()) - observed.divergence(at)

    ways = 1e-5 * np.eye(len(sums))[:, :, None]
    slope = np.array([bound(sums + way) - bound(sums - way) for way in ways]) / 2e-5
    information = (
        np.array([(observed.expected(sums + way) - observed.expected(sums - way))[:, 0] for way in ways]) / 2e-5
    )
    np.testing.assert_allclose(slope, information @ (goal - sums)[:, 0], rtol=1e-5, atol=1e-6)
    assert all(bound(goal) >= bound(goal + 1e3 * way) for way in (*ways, *-ways))


@pytest.mark.parametrize("family", FAMILIES)
def test_gains_of_unions_are_those_of_marginal_likelihoods(family):
    corpus, topic = tiny(family), np.array([0, 0, 1, 1, 0, 2])
    observed = ObservedTopics.from_corpus(corpus, family)
    sums = observed.sums_of(np.arange(6), topic, 3)
    np.testing.assert_allclose(observed.sizes(sums), [3, 2, 1])
    gain = observed.gains(sums, np.array([[1, 2]]))
    joined = np.minimum(topic, 1)
    known = [log_values(family, OF_KIND[family.content_kind], tuple(one)) for one in (joined, topic)]
    assert gain[0] == pytest.approx(known[0] - known[1])


def test_statistics_that_are_the_same_number_have_the_same_sum(monkeypatch):
    family, rng = GaussWishart(), np.random.default_rng(0)
    observed = ObservedTopics.from_corpus(
        Corpus.from_observations(rng.standard_normal((500, 3)), np.arange(500)), family
    )
    rows = observed._statistics
    noise = 1.0 + 1e-12 * rng.standard_normal(len(observed.prior))  # as by products that add in another order
    monkeypatch.setattr(ObservedTopics, "_statistics", lambda self, numbers: rows(numbers) * noise)
    sums = observed.sums(np.arange(500), rng.random((500, 4)))
    _, _, second = family.parts(observed.natural(sums), np.ones(3))
    np.testing.assert_array_equal(second, second.transpose(0, 2, 1))


# -- starts, steps and unions ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", FAMILIES)
def test_a_start_sums_observations_of_the_documents_it_looks_at(family, monkeypatch):
    monkeypatch.setattr(start, "_SAMPLE", 5)
    state = engine(family, batch_size=4).init(drawn(family), 0)
    seen, observations = np.repeat(state.cluster >= 0, 5), state.observed.observations
    assert seen.sum() == 25
    total = family.rows(observations.values[seen], observations.scale).sum(axis=0)
    np.testing.assert_allclose(state.topic_sums.sum(axis=1), 12 / 5 * total)


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_blend_sums_and_sizes(family):
    corpus, one, rng = drawn(family), engine(family, batch_size=4), np.random.default_rng(0)
    state = one.init(corpus, 0)
    observations, expected = state.observed.observations, state.topic_sums
    for rate in (0.7, 0.4):
        numbers, shares = rng.permutation(60)[:20], rng.dirichlet(np.ones(4), 20)
        rows = family.rows(observations.values[numbers], observations.scale)
        expected = (1.0 - rate) * expected + rate * 3.0 * rows.T @ shares
        state.blend_topic_words(numbers, shares, 3.0, rate)
    assert state.shrink < 1.0
    for _ in range(2):
        np.testing.assert_allclose(state.topic_sums, expected)
        np.testing.assert_allclose(state.n_m, state.observed.sizes(expected))
        natural = state.observed.natural(expected)[topics_in_use(state)]
        np.testing.assert_allclose(one.sample(corpus, state).contents.natural, natural)
        state.rescale()


def test_topics_are_near_by_what_the_smaller_one_loses(monkeypatch):
    monkeypatch.setattr(merging, "_NEAR", 1)
    values = np.concatenate([np.tile([-0.5, 0.5], 20), np.tile([0.5, 1.5], 20), [4.0]])
    topic = np.repeat([0, 1, 2], [40, 40, 1])
    state = engine(None, 2, 3, document_concentration="learn").init(Corpus.from_observations(values, topic), 0)
    state.topic_words = state.observed.sums_of(np.arange(81), topic, 3)
    state.n_m = state.topic_sizes()
    gains = state.observed.gains(state.topic_words, np.array([[0, 1], [0, 2]]))
    assert gains[0] < gains[1]  # for all observations together the lonely one would be nearer
    np.testing.assert_array_equal(merging.near_topics(state), [[0, 1], [1, 2]])


def test_each_of_many_observations_has_its_own_expected_density():
    values, rng = np.linspace(-1.0, 1.0, 1300), np.random.default_rng(0)
    corpus, shares = Corpus.from_observations(values, np.arange(1300) // 100), rng.dirichlet(np.ones(2), 1300)
    state, numbers = engine(None, 2, 2).init(corpus, 0), rng.permutation(1300)
    expected = state.expectations()
    known = shares * state.observed.scores(expected.observed, numbers)
    assert state.expected_log_words(expected, numbers, shares, None) == pytest.approx(known.sum())
    sums = state.observed.sums(numbers, shares)
    rows = state.observed.family.rows(state.observed.observations.values[numbers], state.observed.observations.scale)
    np.testing.assert_allclose(sums, rows.T @ shares)


# -- the bound -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("family", "level"), crossed(NAMED, LEVELS))
def test_full_batch_never_lowers_the_elbo(family, level):
    for seed, initialisation in enumerate(["random", "seeded"]):
        one = engine(family, initialisation=initialisation, **level)
        trace = fit(drawn(family, seed), *one, iterations=15, seed=seed, progress=False).trace
        assert np.diff(trace.elbo).min() > -1e-7
        assert trace.elbo.iloc[-1] > trace.elbo.iloc[0]


@pytest.mark.parametrize(("family", "omega"), crossed(NAMED, [np.inf, 0.7]))
def test_elbo_stays_below_the_enumerated_evidence(family, omega):
    corpus, contexts = tiny(family), {"year": NormalGamma(0.1, 1.2, 1.5, 0.8)}
    level = {} if omega == np.inf else {"document_concentration": omega}
    values = OF_KIND[family.content_kind]
    unit = len(values) * np.log(values.std(axis=0)).sum() if family.content_kind == "numbers" else 0.0
    logs, gaps = {}, []

    def log_tokens(topic):
        if topic not in logs:
            logs[topic] = log_values(family, values, topic) - unit
        return logs[topic]

    for seed in range(4):
        one = engine(
            family, 2, 2, contexts=contexts, group_concentration=0.8,
            topic_concentration=0.6, **level,
        )  # fmt: skip
        state = fit(corpus, *one, iterations=25, seed=seed, progress=False).state
        stacked = StackedContexts(corpus, contexts)
        known = log_evidence_given_weights(LENGTHS, stacked, 2, 0.8, state.tau.weights, False, log_tokens, omega)
        gaps.append(known + state.tau.objective.terms(state.tau.weights)[1] - state.elbo)
    assert min(gaps) > 0
    # q keeps to one of the 2 x 2 ways to name clusters and topics: at most their logarithm, and mean field's cost
    assert min(gaps) < np.log(4) + 2.0


# -- runs ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("level", "batch_size"), [(False, None), (True, None), (True, 20)], ids=["shared", "level", "level in batches"]
)
def test_clusters_and_topics_are_recovered(level, batch_size, tmp_path):
    corpus, topic = crossed_corpus()
    found = fit(corpus, MC2(document_level=level), SVI(batch_size=batch_size), iterations=12, progress=False)
    assert adjusted_rand_index(corpus.labels, found.state.cluster) > 0.9
    if level:
        assert found.trace.topics.iloc[-1] == 5
        means = found.posterior.contents.mean
        truth = np.array([corpus.observations[topic == m].mean(axis=0) for m in range(5)])
        assert np.linalg.norm(truth[:, None] - means, axis=2).min(axis=1).max() < 1.0
    # the topics are 12 units apart, and one Gaussian of all would give -11.3
    new, _ = crossed_corpus(20)
    assert found.posterior.log_density(corpus) > -9.0
    path = tmp_path / "posterior.npz"
    found.posterior.save(path)
    np.testing.assert_array_equal(Posterior.load(path).log_likelihood(new), found.posterior.log_likelihood(new))


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_threads_do_not_change_a_bit(level, monkeypatch):
    monkeypatch.setattr(svi_engine, "_MIN_FOR_THREADS", 0)
    corpus, _ = crossed_corpus()
    states = [
        fit(
            corpus, *engine(GaussWishart(), 6, 9, batch_size=30, threads=threads, initialisation="seeded", **level),
            iterations=2, progress=False,
        ).state
        for threads in (1, 3)
    ]  # fmt: skip
    assert states_equal(*states)


@pytest.mark.parametrize(("family", "level"), crossed(dict(list(NAMED.items())[:2]), LEVELS))
def test_resumed_within_an_epoch(family, level, tmp_path):
    corpus, one = drawn(family), engine(family, batch_size=1, initialisation="gibbs", **level)
    corpus = Corpus.from_observations(np.tile(corpus.observations, (4, 1)), np.repeat(range(48), 5))
    assert len(resumed_in_parts(one, corpus, tmp_path, 2)[1]) == 48


def test_documents_outside_the_start_join_clusters_by_topics(monkeypatch):
    monkeypatch.setattr(start, "_SAMPLE", 30)
    corpus, _ = crossed_corpus()
    state = engine(None, 3, 8, batch_size=20, initialisation="seeded", document_concentration="learn").init(corpus, 0)
    assert adjusted_rand_index(corpus.labels, state.cluster) > 0.9


# -- what does not carry over --------------------------------------------------------------------------------------
@pytest.mark.parametrize("setting", ["max_tables", "n_shards"])
def test_tables_and_spark_are_of_words(setting):
    with pytest.raises(ValueError, match=f"{setting} is 2; if topics emit observations, it must be None"):
        fit(tiny(DiagonalNormalGamma()), MC2(document_level=False), SVI(**{setting: 2}), iterations=1)


def test_streams_are_of_words():
    corpus, _ = crossed_corpus(20)
    found = fit(corpus, MC2(), SVI(), iterations=1, progress=False)
    assert isinstance(found, Fit)
    with pytest.raises(ValueError, match="the fit is of observations; a stream needs documents of words"):
        Stream(found)
