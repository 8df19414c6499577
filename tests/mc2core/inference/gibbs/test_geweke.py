"""Geweke's joint test (2004) of every kernel with learned concentrations and two contexts, one of them sparse.

Draws of (concentrations, assignments, data) made forwards from the model are compared with a chain that alternates a
step of the sampler with fresh data given the assignments. Errors of the chain's means come from 40 batches. Ten
statistics are compared for each kernel at 5.5 standard errors, nine where tokens have times, twelve where s is
learnt: a false alarm has a chance of about 1e-4 for the file (Student's t with 39 degrees of freedom), and seeds are
fixed.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.gibbs.engine import Gibbs

LENGTHS = (4, 3, 0, 2)
N_WORDS, N_TAGS = 3, 3
TOPIC_PRIOR = 0.4
PRIORS = {"group": (3.0, 3.0), "table": (3.0, 2.0), "topic": (2.0, 2.0)}
FAMILIES = {"year": NormalGamma(0.2, 1.5, 3.0, 2.0), "tag": DirichletCategorical(0.7)}
HAS_YEAR = np.array([True, False, True, True])
TAGS = np.array([2, 1, 1, 0])
FORWARD, SWEEPS, BATCHES, LIMIT = 6_000, 2_000, 40, 5.5


def crp(n, concentration, rng):
    labels, sizes = [], []
    for _ in range(n):
        weights = np.array([*sizes, concentration])
        k = rng.choice(len(weights), p=weights / weights.sum())
        if k == len(sizes):
            sizes.append(0)
        sizes[k] += 1
        labels.append(k)
    return np.array(labels, dtype=int)


def draw_assignments(alpha, v, eta, rng):
    """z by a Chinese restaurant process, l by a Chinese restaurant franchise over clusters."""
    cluster = crp(len(LENGTHS), alpha, rng)
    return cluster, draw_topics(cluster, v, eta, rng)


def draw_topics(cluster, v, eta, rng):
    """l by a Chinese restaurant franchise over clusters."""
    topic, tables, dishes = [], {}, []
    for j, length in enumerate(LENGTHS):
        menu = tables.setdefault(cluster[j], [])  # [customers, dish] of each table
        for _ in range(length):
            weights = np.array([n for n, _ in menu] + [v])
            t = rng.choice(len(weights), p=weights / weights.sum())
            if t == len(menu):
                served = np.array([*dishes, eta])
                dish = rng.choice(len(served), p=served / served.sum())
                if dish == len(dishes):
                    dishes.append(0)
                dishes[dish] += 1
                menu.append([0, dish])
            menu[t][0] += 1
            topic.append(menu[t][1])
    return np.array(topic, dtype=np.int32)


def draw_words(topic, rng, topic_prior=TOPIC_PRIOR):
    """(content, topic in its order of tokens): words given the topics."""
    psi = rng.dirichlet(np.full(N_WORDS, topic_prior), size=topic.max(initial=0) + 1)
    words = np.array([rng.choice(N_WORDS, p=psi[m]) for m in topic], dtype=int)
    content, order, start = np.zeros((len(LENGTHS), N_WORDS), dtype=int), [], 0
    for j, length in enumerate(LENGTHS):
        here = start + np.argsort(words[start : start + length], kind="stable")
        order.extend(here)
        np.add.at(content[j], words[here], 1)
        start += length
    return content, topic[order]


def draw_data(cluster, topic, rng, topic_prior=TOPIC_PRIOR):
    """(corpus, topic in the corpus's order of tokens): words and contexts given the assignments."""
    content, topic = draw_words(topic, rng, topic_prior)
    year, tag = FAMILIES["year"], FAMILIES["tag"]
    n_clusters = cluster.max() + 1
    t_year = year.draw_parameters(np.tile(year.prior(4), (n_clusters, 1)), rng)[cluster]
    t_tag = tag.draw_parameters(np.tile(tag.prior(N_TAGS), (n_clusters, 1)), rng)[cluster]
    contexts = {
        "year": year.draw_observations(t_year, HAS_YEAR.astype(int), rng),
        "tag": tag.draw_observations(t_tag, TAGS, rng),
    }
    return Corpus(sp.csr_matrix(content), contexts=contexts), topic


def statistics(concentrations, cluster, topic, corpus):
    alpha, v, eta = concentrations
    year = np.nan_to_num(corpus.contexts["year"])
    together = cluster[0] == cluster[3]
    return [
        len(np.unique(cluster)),
        len(np.unique(topic)),
        np.log(alpha),
        np.log(v),
        np.log(eta),
        np.bincount(cluster).max(),
        np.bincount(topic).max(),
        float(together),
        np.tanh(year[0] * year[3]) * together,
        float((corpus.content[0].toarray() @ corpus.content[1].toarray().T)[0, 0] * (cluster[0] == cluster[1])),
    ]


def draw_prior(rng):
    return [rng.gamma(shape, 1 / rate) for shape, rate in PRIORS.values()]


@pytest.fixture(scope="module")
def forward():
    """(FORWARD, 10) statistics of draws from the model itself."""
    rng, rows = np.random.default_rng(19), []
    for _ in range(FORWARD):
        concentrations = draw_prior(rng)
        cluster, topic = draw_assignments(*concentrations, rng)
        corpus, topic = draw_data(cluster, topic, rng)
        rows.append(statistics(concentrations, cluster, topic, corpus))
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["collapsed", "blocked", "interleaved"])
def test_forward_draws_and_the_chain_agree(kernel, forward):
    rng = np.random.default_rng(20)
    engine = Gibbs(
        kernel=kernel, contexts=FAMILIES, topic_prior=TOPIC_PRIOR, concentration_priors=PRIORS,
        start_topics=2, start_clusters=2,
    )  # fmt: skip
    concentrations = draw_prior(rng)
    cluster, topic = draw_assignments(*concentrations, rng)
    corpus, topic = draw_data(cluster, topic, rng)
    state = engine.init(corpus, 0)
    chain = []
    for iteration in range(1, SWEEPS + 1):
        engine.step(corpus, state, 0, iteration)
        corpus, topic = draw_data(state.cluster, state.topic, rng)
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        state = engine.restore(corpus, arrays)
        chain.append(statistics(concentrations, state.cluster, topic, corpus))
    chain = np.array(chain[SWEEPS % BATCHES :])

    assert_agree(chain, forward.mean(axis=0), forward.std(axis=0) / np.sqrt(FORWARD))


def assert_agree(chain, mean, error):
    """The chain's means, by batches, are those of forward draws, which have standard errors of their own."""
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    scores = (batches.mean(axis=0) - mean) / np.hypot(batches.std(axis=0, ddof=1) / np.sqrt(BATCHES), error)
    assert np.abs(scores).max() < LIMIT, dict(enumerate(np.round(scores, 1)))


@pytest.mark.slow
def test_forward_draws_and_the_chain_agree_where_s_is_learnt():
    def all_statistics(concentrations, s, cluster, topic, corpus):
        found = statistics(concentrations, cluster, topic, corpus)
        same = float((corpus.content[0].toarray() @ corpus.content[3].toarray().T)[0, 0])
        return [*found, np.log(s), same * np.log(s)]

    rng, rows = np.random.default_rng(23), []
    for _ in range(FORWARD):
        *concentrations, s = [*draw_prior(rng), rng.gamma(2.0, 1 / 3.0)]
        cluster, topic = draw_assignments(*concentrations, rng)
        corpus, topic = draw_data(cluster, topic, rng, s)
        rows.append(all_statistics(concentrations, s, cluster, topic, corpus))
    forward = np.array(rows)

    engine = Gibbs(
        contexts=FAMILIES, concentration_priors={**PRIORS, "words": (2.0, 3.0)}, start_topics=2, start_clusters=2,
        learn_concentrations=["group", "table", "topic", "words"],
    )  # fmt: skip
    state = engine.init(corpus, 0)
    chain = []
    for iteration in range(1, SWEEPS + 1):
        engine.step(corpus, state, 0, iteration)
        s = state.topic_prior
        corpus, topic = draw_data(state.cluster, state.topic, rng, s)
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        state = engine.restore(corpus, arrays)
        chain.append(all_statistics(concentrations, s, state.cluster, topic, corpus))
    chain = np.array(chain[SWEEPS % BATCHES :])
    assert_agree(chain, forward.mean(axis=0), forward.std(axis=0) / np.sqrt(FORWARD))


# -- times of tokens -----------------------------------------------------------------------------------------------
#: of the documents; each of their tokens has it, so that a corpus of such times cannot be drawn: they stay as they are
YEAR = np.array([-0.8, np.nan, 0.0, 1.1])


def log_times(topic):
    """ln p(times of all tokens | l), topics' parameters integrated out."""
    family, year = FAMILIES["year"], np.repeat(YEAR, LENGTHS)
    rows = family.statistics(year).toarray()
    naturals = [family.prior(4) + rows[topic == m].sum(axis=0) for m in np.unique(topic)]
    return sum(family.log_marginal(natural) for natural in naturals)


def timed_statistics(concentrations, topic, content):
    _, v, eta = concentrations
    first, second, last = topic[:4], topic[4:7], topic[7:]
    return [
        len(np.unique(topic)),
        np.bincount(topic).max(),
        np.log(v),
        np.log(eta),
        float(np.mean(first[:, None] == last)),
        float(np.mean(first[:, None] == second)),
        float(np.mean(first[:, None] == first)),
        float(content[0] @ content[3]),
        float(content[0] @ content[1]) * float(np.mean(first[:, None] == last)),
    ]


@pytest.mark.slow
def test_forward_draws_and_the_chain_agree_where_tokens_have_times():
    """Forward draws of all but the times are weighted by the probability of these."""
    rng = np.random.default_rng(21)
    clusters, rows, logs = np.arange(len(LENGTHS)), [], []
    for _ in range(FORWARD):
        concentrations = draw_prior(rng)
        topic = draw_topics(clusters, *concentrations[1:], rng)
        logs.append(log_times(topic))
        content, topic = draw_words(topic, rng)
        rows.append(timed_statistics(concentrations, topic, content))
    forward, weights = np.array(rows), np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > FORWARD / 6
    mean = weights @ forward
    error = np.sqrt(weights**2 @ (forward - mean) ** 2)

    engine = Gibbs(
        kernel="collapsed", one_cluster_per_document=True, token_contexts=True, contexts={"year": FAMILIES["year"]},
        topic_prior=TOPIC_PRIOR, concentration_priors=PRIORS, start_topics=2,
    )  # fmt: skip
    content, _ = draw_words(draw_topics(clusters, 1.0, 1.0, rng), rng)
    corpus = Corpus(sp.csr_matrix(content), contexts={"year": YEAR})
    state, chain = engine.init(corpus, 0), []
    for iteration in range(1, 2 * SWEEPS + 1):
        engine.step(corpus, state, 0, iteration)
        content, topic = draw_words(state.topic, rng)
        corpus = Corpus(sp.csr_matrix(content), contexts={"year": YEAR})
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        state = engine.restore(corpus, arrays)
        chain.append(timed_statistics(concentrations, topic, content))
    assert_agree(np.array(chain), mean, error)
