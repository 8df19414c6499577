"""Topics that emit observations: exact posteriors of tiny corpora, what a fit leaves and what it refuses.

The enumeration sums contents out in closed form, by code of its own (helpers.observed); events and errors as in
test_exact.py.
"""

import io
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.crossed import first
from helpers.document_level_enumeration import document_level_posterior
from helpers.gibbs_chains import CONTEXTS, assert_chain_follows, fixed, log_context_of
from helpers.gibbs_enumeration import log_clusters, partitions, posterior
from helpers.gibbs_twin import CONCENTRATIONS, open_topic, pick
from helpers.observed import crossed_corpus, log_observations, log_values, standardised
from scipy.special import logsumexp
from scipy.stats import t as student

import mc2core
from mc2core import Corpus
from mc2core.compute import streams
from mc2core.families import (
    BetaBernoulliVector,
    DiagonalNormalGamma,
    GammaPoisson,
    GammaPoissonVector,
    GaussWishart,
    NormalGamma,
)
from mc2core.inference import FastEx, Gibbs
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.observations import Observations
from mc2core.inference.running.loop import fit
from mc2core.models import HDP, MC2, NPTOT, Mixture
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.perplexity import log_density

#: without a document level and with it, where a sweep takes four times as long
SWEEPS = {False: 1_600, True: 1_000}
LENGTHS = [3, 2, 1]
DOCUMENT = np.repeat(np.arange(3), LENGTHS)
VALUES = np.array([[0.2, 9.0], [0.3, 8.0], [2.0, 1.0], [2.2, 2.0], [0.1, 8.5], [1.0, 1.5]])
HYPER = (0.2, 0.6, 1.4, 0.5)
FAMILY = DiagonalNormalGamma(*HYPER)
USED = {"visits": GammaPoisson(1.3, 0.8), "year": NormalGamma(0.0, 0.5, 1.5, 0.7)}


COUNTS = np.array([[0, 3], [1, 2], [9, 0], [7, 1], [0, 5], [6, 0]])
ONES = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]])
OF_KIND = {"numbers": VALUES, "counts": COUNTS, "binary": ONES}
OTHERS = [
    pytest.param(family, id=family.name)
    for family in (GaussWishart(*HYPER), GammaPoissonVector(1.3, 0.8), BetaBernoulliVector(0.6, 1.4))
]


def tiny(contexts=(), kind="numbers"):
    return Corpus.from_observations(
        OF_KIND[kind], DOCUMENT, contexts={name: CONTEXTS[name] for name in contexts}, kind=kind
    )


def exact_of(corpus, family=FAMILY):
    """The enumerated posterior of a model: words are all the same and say nothing."""
    words = [[0] * n for n in LENGTHS]

    @cache
    def log_tokens(topics):
        return log_values(family, OF_KIND[family.content_kind], topics)

    def of(model):
        alpha, v, eta = model.group_concentration, model.table_concentration, model.topic_concentration
        log_context, is_hdp = log_context_of(model, corpus), not model.has_clusters
        if model.document_level:
            four = (alpha, v, eta, model.document_concentration)
            return document_level_posterior(words, 1, four, 1.0, log_context, is_hdp, model.most_clusters, log_tokens)
        return posterior(words, 1, alpha, v, eta, 1.0, log_context, is_hdp, log_tokens, model.most_clusters)

    return of


@pytest.mark.parametrize(
    ("model", "settings"),
    first(
        [
            ("mc2", {"contexts": USED}),
            ("mc2", {"document_concentration": 3.0, "contexts": USED}),
            ("mc2", {"n_clusters": 2, "document_concentration": 0.5}),
            ("hdp", {}),
        ],
        number=2,
    ),
)
def test_the_chain_has_the_enumerated_posterior(model, settings):
    """A weight of new clusters wrong by half gives 7 standard errors and more. Densities that count an observation to
    its own topic would take five times as many sweeps: the plain twin finds these."""
    pair = fixed(model, content=FAMILY, **settings)
    corpus = tiny(settings.get("contexts", ()))
    assert_chain_follows(pair, corpus, exact_of(corpus), SWEEPS[pair.model.document_level])


@pytest.mark.parametrize("family", first(OTHERS))
@pytest.mark.parametrize("omega", first([None, 2.0]))
def test_chains_of_other_families_have_the_enumerated_posterior(family, omega):
    settings = {} if omega is None else {"document_concentration": omega}
    pair, corpus = fixed("mc2", content=family, **settings), tiny(kind=family.content_kind)
    assert_chain_follows(pair, corpus, exact_of(corpus, family), SWEEPS[omega is not None])
    state = pair.init(corpus, 0)
    unit = np.log(VALUES.std(axis=0)).sum() if family.content_kind == "numbers" else 0.0
    of_topics = log_values(family, OF_KIND[family.content_kind], tuple(state.topic))
    assert sum(state.log_content()) == pytest.approx(of_topics - len(DOCUMENT) * unit, rel=1e-10)


def test_of_one_document_the_hdp_is_a_dirichlet_process_mixture():
    """Where eta is large each table of the one restaurant has a topic of its own."""
    corpus = Corpus.from_observations(VALUES, np.zeros(6, int))
    pair = fixed("hdp", content=FAMILY, topic_concentration=1e6)
    x = standardised(VALUES)

    def exact(model):
        logs = {
            ((0,), topics): log_clusters(topics, model.table_concentration) + log_observations(x, topics, *HYPER)
            for topics in partitions(6)
        }
        total = logsumexp(list(logs.values()))
        return {state: np.exp(one - total) for state, one in logs.items()}

    assert_chain_follows(pair, corpus, exact, 1600)


# -- the sweep -----------------------------------------------------------------------------------------------------
def plain_sweep(family, values, assignments, tau, omega, key):
    """Observations in order of documents; weights from scratch for each, by closed forms of all observations."""
    v, eta = CONCENTRATIONS.table, CONCENTRATIONS.topic
    topic, cluster = assignments.topic.astype(int), assignments.cluster
    document = np.repeat(np.arange(len(cluster)), np.diff(assignments.document_start))
    eps, remaining = list(assignments.topic_weights), assignments.remaining
    columns, tau_remaining, state = (
        [column.copy() for column in tau[:, :-1].T],
        tau[:, -1].copy(),
        np.zeros(2, np.uint64),
    )
    for i, j in enumerate(document):
        k = cluster[j]
        if i == 0 or j != document[i - 1]:
            streams.seek(state, key, j)
        among = (document == j) if len(tau) else (cluster[document] == k)
        among[i] = False
        prior = (
            [omega * column[k] for column in [*columns, tau_remaining]]
            if len(tau)
            else [v * e for e in [*eps, remaining]]
        )
        logs = np.empty(len(prior))
        for m in range(len(prior)):
            topic[i], own = m, topic[i]
            logs[m] = log_values(family, values, tuple(topic))
            topic[i] = own
        n = np.bincount(topic[among], minlength=len(prior))
        weights = (n + prior) * np.exp(logs - logs.max())
        chosen = pick(weights, streams.uniform(state) * weights.sum())
        if chosen == len(eps):
            remaining = open_topic(state, k, eps, remaining, columns, tau_remaining, v, eta)
        topic[i] = chosen
    return topic, np.array(eps), remaining, np.column_stack([*columns, tau_remaining])


@pytest.mark.parametrize("has_level", [False, True])
@pytest.mark.parametrize("family", [pytest.param(FAMILY, id=FAMILY.name), *OTHERS])
def test_sweep_equals_its_plain_twin(family, has_level):
    """40 observations of eight documents, of which one has a topic for itself: topics die and are born."""
    rng, born = np.random.default_rng(5), 0
    document = np.repeat(np.arange(8), 5)
    for seed in range(3):
        values = {
            "numbers": rng.standard_normal((40, 2)) + rng.integers(0, 2, (40, 1)),
            "counts": rng.poisson(rng.choice([1.0, 6.0], (40, 2))),
            "binary": (rng.random((40, 3)) < rng.choice([0.2, 0.8], (40, 1))).astype(int),
        }[family.content_kind]
        corpus = Corpus.from_observations(values, document, kind=family.content_kind)
        topic = np.append(rng.integers(0, 4, 39), 4).astype(np.int32)
        before = topic.copy()
        weights = rng.dirichlet([1, 1, 1, 1, 1, 5])
        start = np.arange(0, 41, 5)
        assignments = Assignments((np.arange(8) % 3).astype(np.int32), topic, start, weights[:-1], float(weights[-1]))
        assignments.count()
        tau, omega = rng.dirichlet([1, 1, 1, 1, 1, 5], 3) if has_level else np.zeros((0, 6)), 9.0
        key = streams.key(seed, "test")
        expected, eps, remaining, wider = plain_sweep(family, values, assignments, tau, omega, key)
        used, born = np.unique(expected), born + len(eps) - 5
        found = Observations.from_corpus(corpus, family).sweep(assignments, tau, omega, CONCENTRATIONS, key)
        assert (before != expected).mean() > 0.1
        np.testing.assert_array_equal(assignments.topic, np.searchsorted(used, expected))
        np.testing.assert_allclose(assignments.topic_weights, eps[used], rtol=1e-12)
        assert assignments.remaining == pytest.approx(remaining + eps.sum() - eps[used].sum(), rel=1e-9)
        np.testing.assert_allclose(found[:, :-1], wider[:, used], rtol=1e-9, atol=1e-15)
    assert born > 2


# -- what a fit leaves ---------------------------------------------------------------------------------------------
def test_log_joint_is_in_the_unit_of_the_observations():
    corpus = tiny()
    state = fixed(content=FAMILY).init(corpus, 0)
    of_standard = log_observations(standardised(VALUES), tuple(state.topic), *HYPER)
    assert sum(state.log_content()) == pytest.approx(of_standard - 6 * np.log(VALUES.std(axis=0)).sum(), rel=1e-10)


@pytest.fixture(scope="module")
def crossed():
    return crossed_corpus()


@pytest.mark.parametrize(("document_level", "seeds"), first([(True, 1), (False, 3)]))
def test_clusters_and_topics_are_found(crossed, document_level, seeds):
    """A chain as printed may stay in fewer clusters, and so the median of three counts."""
    corpus, topic = crossed
    every = [fit(corpus, MC2(document_level=document_level), Gibbs(), iterations=40, seed=i) for i in range(seeds)]
    assert np.median([adjusted_rand_index(found.posterior.cluster, corpus.labels) for found in every]) > 0.8
    assert np.median([adjusted_rand_index(found.state.topic, topic) for found in every]) > 0.8
    found = every[-1]
    posterior = found.posterior
    sample = posterior.representative
    assert sample.contents.mean.shape == sample.contents.sd.shape == (sample.n_topics, 3)
    # topics of many observations are where those are
    of_state = found.state.sample().contents
    for m in np.flatnonzero(np.bincount(found.state.topic) > 100):
        own = corpus.observations[found.state.topic == m]
        np.testing.assert_allclose(of_state.mean[m], own.mean(axis=0), atol=0.7)
        np.testing.assert_allclose(of_state.sd[m], own.std(axis=0), rtol=0.3)


def test_held_out_density_and_clusters_are_those_by_hand(crossed, tmp_path):
    corpus, _ = crossed
    train, test = corpus.subset(np.arange(50)), corpus.subset(np.arange(50, 60))
    found = fit(train, MC2(document_level=False), Gibbs(), iterations=4, seed=3)
    found.posterior.save(tmp_path / "posterior.npz")
    posterior = Posterior.load(tmp_path / "posterior.npz")
    by_cluster, logs = [], []
    for sample in posterior.samples:
        contents = sample.contents
        natural = np.vstack([contents.natural, contents.family.prior(12)])
        mu, kappa, a, b = contents.family.standard(natural)
        law = student(2 * a, mu, np.sqrt(b * (kappa + 1) / (a * kappa)))
        x = (test.observations - contents.centre) / contents.scale
        log_p = law.logpdf(x[:, None]).sum(axis=2) - np.log(contents.scale).sum()
        known = (1 - sample.new_topic_weight)[:, None] * sample.topic_given_cluster
        tau = np.column_stack([known, sample.new_topic_weight])
        of_each = logsumexp(log_p[:, None] + np.log(tau), axis=2)
        by_cluster.append(of_each.reshape(10, 40, -1).sum(axis=1))
        weights = np.log(sample.cluster_weights * (1 - sample.new_cluster_weight))
        logs.append(logsumexp(by_cluster[-1] + weights, axis=1))
    expected = logsumexp(logs, axis=0) - np.log(len(logs))
    # a cluster not seen so far adds to the likelihood, and little
    found = posterior.log_likelihood(test)
    assert (found > expected - 1e-9).all()
    np.testing.assert_allclose(found, expected, atol=0.3)
    assert (posterior.log_likelihood(test) > expected - 0.05).all()
    shown = next(i for i, sample in enumerate(posterior.samples) if sample is posterior.representative)
    log_p = by_cluster[shown] + np.log(posterior.representative.cluster_weights)
    likely = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
    alone = replace(posterior, samples=[posterior.representative])
    np.testing.assert_allclose(alone.predict_proba(test), likely, atol=1e-8)


@pytest.mark.usefixtures("short_starts")
def test_held_out_documents_of_the_document_level_find_clusters(crossed):
    corpus, _ = crossed
    train, test = corpus.subset(np.arange(45)), corpus.subset(np.arange(45, 60))
    found = fit(train, MC2(), Gibbs(), iterations=30, seed=0)
    cluster, probability = found.posterior.assign(test)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert adjusted_rand_index(cluster, test.labels) > 0.7
    # the density of the truth's kind of documents is above that of documents moved away
    moved = Corpus.from_observations(test.observations + 20.0, np.repeat(np.arange(15), 40))
    assert (found.posterior.log_likelihood(test) > found.posterior.log_likelihood(moved)).all()
    assert found.posterior.find_hierarchy(train).cluster.shape[0] == 45


@pytest.mark.usefixtures("short_starts")
def test_a_run_goes_on_to_the_same_bits(crossed, tmp_path):
    corpus, _ = crossed
    corpus.save(tmp_path / "corpus")
    corpus = Corpus.load(tmp_path / "corpus", verify=True)
    for model in (MC2(), MC2(document_level=False)):
        whole = fit(corpus, model, Gibbs(), iterations=6, seed=1)
        path = tmp_path / f"{model.document_level}.npz"
        fit(corpus, model, Gibbs(threads=2), iterations=3, seed=1, checkpoint=path)
        resumed = fit(corpus, model, Gibbs(), iterations=6, seed=1, checkpoint=path)
        for name, array in whole.state.arrays().items():
            np.testing.assert_array_equal(array, resumed.state.arrays()[name])
        assert (whole.trace["log_joint"] == resumed.trace["log_joint"]).all()
        for one, other in zip(whole.posterior.samples, resumed.posterior.samples, strict=True):
            np.testing.assert_array_equal(one.contents.natural, other.contents.natural)


def drawn_of(family):
    """40 documents of 20 observations in two clusters, and the topics of these."""
    rng = np.random.default_rng(1)
    cluster = np.arange(40) % 2
    topic = (rng.random((40, 20)) < np.where(cluster, 0.8, 0.2)[:, None]).astype(int).ravel()
    if family.content_kind == "numbers":
        # two crossed clouds: each number by itself is the same in both
        across = rng.standard_normal((800, 1))
        values = np.hstack([across, np.where(topic, 1.0, -1.0)[:, None] * across]) + 0.2 * rng.standard_normal((800, 2))
    elif family.content_kind == "counts":
        values = rng.poisson(np.array([[1.0, 9.0], [30.0, 2.0]])[topic])
    else:
        values = rng.random((800, 6)) < np.where(topic[:, None] == np.arange(6) % 2, 0.9, 0.1)
    documents = np.repeat(np.arange(40), 20)
    return Corpus.from_observations(values, documents, labels=cluster, kind=family.content_kind), topic


@pytest.mark.parametrize("family", first(OTHERS))
def test_fits_of_other_families_find_clusters_and_are_read_again(family, tmp_path):
    corpus, topic = drawn_of(family)
    corpus.save(tmp_path / "corpus")
    corpus = Corpus.load(tmp_path / "corpus", verify=True)
    one = fit(corpus, MC2(content=family), Gibbs(), iterations=20, seed=2)
    assert adjusted_rand_index(one.posterior.cluster, corpus.labels) > 0.8
    assert adjusted_rand_index(one.state.topic, topic) > 0.5
    one.posterior.save(tmp_path / "posterior.npz")
    again = Posterior.load(tmp_path / "posterior.npz")
    assert again.contents.family == family
    np.testing.assert_array_equal(again.log_likelihood(corpus), one.posterior.log_likelihood(corpus))
    with pytest.raises(ValueError, match="but the model was fitted on observations"):
        again.predict_proba(tiny(kind="counts" if corpus.content_kind == "binary" else "binary"))


@pytest.mark.usefixtures("short_starts")
@pytest.mark.parametrize("family", OTHERS)
def test_fits_of_other_families_are_the_same_bits_on_two_threads(family):
    corpus, _ = drawn_of(family)
    one, two = (fit(corpus, MC2(content=family), Gibbs(threads=n), iterations=4, seed=2) for n in (1, 2))
    for name, array in one.state.arrays().items():
        np.testing.assert_array_equal(array, two.state.arrays()[name])
    np.testing.assert_array_equal(one.posterior.log_likelihood(corpus), two.posterior.log_likelihood(corpus))


def test_content_must_be_of_the_kind_of_the_observations():
    with pytest.raises(ValueError, match=r"content is GaussWishart, of numbers, but the corpus holds counts; "):
        fit(tiny(kind="counts"), MC2(content=GaussWishart()), iterations=2)
    for kind, family in (("counts", GammaPoissonVector()), ("binary", BetaBernoulliVector())):
        assert MC2().for_corpus(tiny(kind=kind)).content == family


def test_empty_documents_and_a_constant_coordinate():
    values = np.column_stack([np.arange(6.0), np.full(6, 7.0)])
    corpus = Corpus.from_observations(values, [0, 0, 2, 2, 2, 4], n_documents=6)
    found = fit(corpus, MC2(), Gibbs(), iterations=5, seed=0)
    assert found.posterior.predict_proba(corpus).shape[0] == 6
    assert np.isfinite(found.trace["log_joint"]).all()
    np.testing.assert_array_equal(found.posterior.log_likelihood(corpus)[[1, 3, 5]], 0.0)


# -- what does not carry over --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "engine", "said"),
    [
        (Mixture(n_clusters=2), FastEx(), "mixture needs words"),
        (NPTOT(contexts=["year"]), Gibbs(kernel="collapsed"), "nptot needs words"),
        (MC2(document_level=False), Gibbs(kernel="blocked"), "if topics emit observations"),
        (MC2(), Gibbs(kernel="parallel"), "if topics emit observations"),
    ],
)
def test_what_does_not_fit_observations_says_so(model, engine, said):
    with pytest.raises(ValueError, match=said):
        fit(tiny(["year"]), model, engine, iterations=2)


def test_content_and_corpus_must_be_of_observations():
    with pytest.raises(ValueError, match=r"must be one of DiagonalNormalGamma\(\), GaussWishart\(\), "):
        MC2(content=NormalGamma())
    with pytest.raises(ValueError, match="with strength 1"):
        HDP(content=DiagonalNormalGamma(strength=0.5))
    with pytest.raises(ValueError, match="the corpus has words"):
        fit(Corpus(np.eye(3, dtype=int)), MC2(content=FAMILY), Gibbs(), iterations=2)
    assert MC2(**MC2(content=FAMILY).settings()).content == FAMILY


def test_scores_of_words_refuse_observations(crossed):
    corpus, _ = crossed
    posterior = fit(corpus, MC2(document_level=False), Gibbs(), iterations=2, seed=0).posterior
    for asked in (posterior.top_words, lambda: posterior.word_given_topic):
        with pytest.raises(ValueError, match="topics emit observations, not words"):
            asked()
    with pytest.raises(ValueError, match="perplexity needs words"):
        posterior.perplexity(corpus)
    assert posterior.log_density(corpus) == posterior.log_likelihood(corpus).sum() / corpus.n_tokens
    with pytest.raises(ValueError, match="log_density needs observations"):
        posterior.log_density(Corpus(np.eye(3, dtype=int)))
    with pytest.raises(ValueError, match="which needs words"):
        posterior.log_likelihood(corpus, "icml14")
    with pytest.raises(ValueError, match="one of words, but the model was fitted on observations"):
        posterior.predict(Corpus(np.eye(3, dtype=int)))
    with pytest.raises(ValueError, match="has 2 numbers, but the model was fitted on 3"):
        posterior.predict_proba(tiny())
    with pytest.raises(ValueError, match="has 1 number, but the model was fitted on 3"):
        posterior.predict(Corpus.from_observations(np.arange(4.0), [0, 0, 1, 1]))


@pytest.mark.slow
@pytest.mark.parametrize(("n_numbers", "document_level"), [(1000, True), (1000, False), (400, True)])
def test_of_many_numbers_densities_exceed_the_range_of_floats(n_numbers, document_level, tmp_path):
    """Two clusters without a topic in common, some nats between topics for each number: what is found is stored, read,
    and tells the clusters of new documents, and their log density is near the negative entropy of what drew them.
    """
    centres, sd = np.random.default_rng(0).standard_normal((4, n_numbers)), 0.5

    def drawn(cluster, seed):
        generator = np.random.default_rng(seed)
        shares = generator.random(len(cluster)) if document_level else np.full(len(cluster), 0.5)
        topic = np.concatenate(
            [2 * k + (generator.random(20) < share) for k, share in zip(cluster, shares, strict=True)]
        )
        values = centres[topic] + sd * generator.standard_normal((len(topic), n_numbers))
        return Corpus.from_observations(values, np.repeat(np.arange(len(cluster)), 20))

    corpus, truth = drawn(np.repeat([0, 1], [20, 4]), 1), np.arange(10) % 2
    posterior = fit(corpus, MC2(document_level=document_level), Gibbs(), iterations=4).posterior
    assert np.isfinite(posterior.find_hierarchy(corpus).scores).all()
    posterior.save(tmp_path / "posterior.npz")
    new, posterior = drawn(truth, 2), Posterior.load(tmp_path / "posterior.npz")
    assert posterior.predict_proba(new)[np.arange(10), posterior.cluster[[0, 23]][truth]].min() > 0.95
    of_a_number = log_density(new, posterior) / n_numbers
    assert of_a_number == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * sd**2), abs=0.03)


def test_its_topics_are_shown_by_their_numbers(tmp_path, capsys, output_of):
    rng = np.random.default_rng(0)
    counts, centres = np.array([150, 50]), np.array([[0.0, 10.0], [30.0, -20.0]])
    kind = np.repeat([0, 1], counts)
    values = centres[kind] + rng.standard_normal((200, 2))
    corpus = Corpus.from_observations(values, rng.permutation(200) % 10, names=["maths", "reading"])
    corpus.save(tmp_path / "data")
    command = ["fit", str(tmp_path / "data"), "--iterations", "30", "--out", str(tmp_path / "fit")]
    mc2(command)
    posterior = tmp_path / "fit/posterior.npz"
    said = capsys.readouterr().out
    assert f"next: mc2 describe {posterior} {tmp_path / 'data'} --out {tmp_path / 'fit/description'}\n" in said
    assert (
        f"or: mc2 topics {posterior}; mc2 clusters {posterior} {tmp_path / 'data'}; mc2 evaluate {posterior} " in said
    )
    table = pd.read_csv(io.StringIO(output_of(f"topics {posterior}")))
    assert list(table.columns) == ["topic", "share", "maths_mean", "maths_sd", "reading_mean", "reading_sd"]
    assert table["share"].sum() == pytest.approx(1.0, abs=1e-5)
    first = table.iloc[0]
    assert first["share"] == pytest.approx(0.75, abs=0.02)
    assert first["maths_mean"] == pytest.approx(values[kind == 0, 0].mean(), abs=1.0)
    assert first["reading_mean"] == pytest.approx(values[kind == 0, 1].mean(), abs=1.0)
    done = mc2core.fit(corpus, iterations=4, seed=0, progress=False)
    assert set(table.columns) <= set(done.topics().columns)
    assert "reading_mean" in done._repr_html_()
    assert f"{done.posterior.representative.n_topics} topics, 2 numbers, " in repr(done.posterior)
    label, cell = '<th style="text-align:left">{}</th>', '<td style="text-align:left">{}</td>'
    assert label.format("numbers") + cell.format(2) in done.posterior._repr_html_()
    shown = corpus._repr_html_()
    assert label.format("observations") + cell.format(200) in shown
    assert label.format("numbers") + cell.format(2) in shown
    assert "words" not in shown


def test_texts_are_not_read_like_observations(tmp_path, refused):
    corpus = Corpus.from_observations(VALUES, DOCUMENT, names=["maths", "reading"])
    posterior = fit(corpus, iterations=2, seed=0).posterior
    posterior.save(tmp_path / "posterior.npz")
    corpus.save(tmp_path / "data")
    (tmp_path / "new.csv").write_text("text\nmaths\n")
    for like in (corpus, posterior):
        with pytest.raises(ValueError, match=r"has observations; use Corpus\.from_observations for new ones"):
            Corpus.from_texts(["maths"], like=like)
    new, path = str(tmp_path / "new.csv"), str(tmp_path / "posterior.npz")
    told = ["import", new, "--text", "text"]
    for command in (
        [*told, "--like", path, "--out", str(tmp_path / "out")],
        [*told, "--append", "--out", str(tmp_path / "data")],
        ["predict", path],
    ):
        refused(command, "has observations; use Corpus.from_observations")
