"""Forward draws of (assignments, data) from MC2 and their statistics, for joint tests (Geweke 2004)."""

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, NormalGamma

LENGTHS = (4, 3, 0, 2)
N_WORDS, N_TAGS = 3, 3
TOPIC_PRIOR = 0.4
PRIORS = {"group": (3.0, 3.0), "table": (3.0, 2.0), "topic": (2.0, 2.0)}
FAMILIES = {
    "year": NormalGamma(0.2, 1.5, 3.0, 2.0),
    "tag": DirichletCategorical(0.7),
    "place": DiagonalNormalGamma(-0.3, 1.0, 3.0, 2.0),
}
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


def seat(menu, concentration, dish_of_new, rng):
    """The dish of a customer of a restaurant, ``menu`` of [customers, dish]; a new table's dish comes from above."""
    weights = np.array([n for n, _ in menu] + [concentration])
    t = rng.choice(len(weights), p=weights / weights.sum())
    if t == len(menu):
        menu.append([0, dish_of_new()])
    menu[t][0] += 1
    return menu[t][1]


def draw_document_level_assignments(concentrations, n_clusters, rng):
    """z by a Chinese restaurant process or of n_clusters, l by restaurants of three levels."""
    alpha, v, eta, omega = concentrations
    if n_clusters is None:
        cluster = crp(len(LENGTHS), alpha, rng)
    else:
        pi = rng.dirichlet(np.full(n_clusters, alpha / n_clusters))
        cluster = np.unique(rng.choice(n_clusters, len(LENGTHS), p=pi), return_inverse=True)[1]
    topic, clusters, dishes = [], {}, []

    def dish():
        served = np.array([*dishes, eta])
        m = rng.choice(len(served), p=served / served.sum())
        if m == len(dishes):
            dishes.append(0)
        dishes[m] += 1
        return m

    for j, length in enumerate(LENGTHS):
        menu, above = [], clusters.setdefault(cluster[j], [])
        topic += [seat(menu, omega, lambda above=above: seat(above, v, dish, rng), rng) for _ in range(length)]
    return cluster, np.array(topic, dtype=np.int32)


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
    year, tag, place = FAMILIES["year"], FAMILIES["tag"], FAMILIES["place"]
    n_clusters = cluster.max() + 1
    t_year = year.draw_parameters(np.tile(year.prior(4), (n_clusters, 1)), rng)[cluster]
    t_tag = tag.draw_parameters(np.tile(tag.prior(N_TAGS), (n_clusters, 1)), rng)[cluster]
    t_place = place.draw_parameters(np.tile(place.prior(8), (n_clusters, 1)), rng)[cluster]
    contexts = {
        "year": year.draw_observations(t_year, HAS_YEAR.astype(int), rng),
        "tag": tag.draw_observations(t_tag, TAGS, rng),
        "place": place.draw_observations(t_place, HAS_YEAR[::-1].astype(int), rng),
    }
    return Corpus(sp.csr_matrix(content), contexts=contexts), topic


def statistics(concentrations, cluster, topic, corpus):
    alpha, v, eta = concentrations
    year, place = np.nan_to_num(corpus.contexts["year"]), np.nan_to_num(corpus.contexts["place"])
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
        np.tanh(place[0] @ place[1]) * (cluster[0] == cluster[1]),
        float((corpus.content[0].toarray() @ corpus.content[1].toarray().T)[0, 0] * (cluster[0] == cluster[1])),
    ]


def assert_agree(chain, mean, error):
    """The chain's means, by batches, are those of forward draws, which have standard errors of their own."""
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    scores = (batches.mean(axis=0) - mean) / np.hypot(batches.std(axis=0, ddof=1) / np.sqrt(BATCHES), error)
    assert np.abs(scores).max() < LIMIT, dict(enumerate(np.round(scores, 1)))
