"""Forward draws of (assignments, data) from MC2 and their statistics, for joint tests (Geweke 2004).

Drawn by code of its own, as plain arrays: a corpus is made of them for the chain alone, which is a tenth of the draws.
"""

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, NormalGamma

LENGTHS = (4, 3, 0, 2)
DOCUMENT = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
N_WORDS, N_TAGS = 3, 3
TOPIC_PRIOR = 0.4
PRIORS = {"group": (3.0, 3.0), "table": (3.0, 2.0), "topic": (2.0, 2.0)}
YEAR, TAG, PLACE = (0.2, 1.5, 3.0, 2.0), 0.7, (-0.3, 1.0, 3.0, 2.0)
FAMILIES = {"year": NormalGamma(*YEAR), "tag": DirichletCategorical(TAG), "place": DiagonalNormalGamma(*PLACE)}
HAS_YEAR = np.array([True, False, True, True])
TAGS = np.array([2, 1, 1, 0])
FORWARD, SWEEPS, BATCHES, LIMIT = 3_000, 2_000, 40, 5.5


def pick(weights, rng):
    """A place in a short list of weights; NumPy's choice takes ten times as long."""
    u = rng.random() * sum(weights)
    for k, weight in enumerate(weights):
        u -= weight
        if u < 0:
            return k
    return len(weights) - 1


def crp(n, concentration, rng):
    labels, sizes = [], []
    for _ in range(n):
        k = pick([*sizes, concentration], rng)
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
        menu = tables.setdefault(cluster[j], [])
        topic += [seat(menu, v, lambda: serve(dishes, eta, rng), rng) for _ in range(length)]
    return np.array(topic, dtype=np.int32)


def serve(dishes, eta, rng):
    """The dish of a new table of a cluster, ``dishes`` the tables of each so far."""
    m = pick([*dishes, eta], rng)
    if m == len(dishes):
        dishes.append(0)
    dishes[m] += 1
    return m


def seat(menu, concentration, dish_of_new, rng):
    """The dish of a customer of a restaurant, ``menu`` of [customers, dish]; a new table's dish comes from above."""
    t = pick([*(n for n, _ in menu), concentration], rng)
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
        return serve(dishes, eta, rng)

    for j, length in enumerate(LENGTHS):
        menu, above = [], clusters.setdefault(cluster[j], [])
        topic += [seat(menu, omega, lambda above=above: seat(above, v, dish, rng), rng) for _ in range(length)]
    return cluster, np.array(topic, dtype=np.int32)


def draw_words(topic, rng, topic_word_prior=TOPIC_PRIOR):
    """((J, V) content, topic in the order of tokens that a corpus of it has): words given the topics."""
    psi = rng.dirichlet(np.full(N_WORDS, topic_word_prior), size=topic.max(initial=0) + 1)
    bounds = np.cumsum(psi[:, :-1], axis=1)
    words = (rng.random(len(topic))[:, None] > bounds[topic]).sum(axis=1)
    content = np.bincount(DOCUMENT * N_WORDS + words, minlength=len(LENGTHS) * N_WORDS)
    return content.reshape(len(LENGTHS), N_WORDS), topic[np.lexsort((words, DOCUMENT))]


def draw_normals(hyper, shape, has, cluster, rng):
    """Values of each document given its cluster's mean and precision, NaN where it has none."""
    mu0, kappa0, a0, b0 = hyper
    precision = rng.gamma(a0, 1 / b0, (cluster.max() + 1, *shape))
    mean = mu0 + rng.standard_normal(precision.shape) / np.sqrt(kappa0 * precision)
    values = mean[cluster] + rng.standard_normal((len(cluster), *shape)) / np.sqrt(precision[cluster])
    values[~has] = np.nan
    return values


def draw_data(cluster, topic, rng, topic_word_prior=TOPIC_PRIOR):
    """(content, contexts, topic in the corpus's order of tokens): words and contexts given the assignments."""
    content, topic = draw_words(topic, rng, topic_word_prior)
    shares = rng.dirichlet(np.full(N_TAGS, TAG), size=cluster.max() + 1)
    contexts = {
        "year": draw_normals(YEAR, (), HAS_YEAR, cluster, rng),
        "tag": rng.multinomial(TAGS, shares[cluster]),
        "place": draw_normals(PLACE, (2,), HAS_YEAR[::-1], cluster, rng),
    }
    return content, contexts, topic


def corpus_of(content, contexts):
    return Corpus(sp.csr_matrix(content), contexts=contexts | {"tag": sp.csr_matrix(contexts["tag"])})


def statistics(concentrations, cluster, topic, content, contexts):
    alpha, v, eta = concentrations
    year, place = np.nan_to_num(contexts["year"]), np.nan_to_num(contexts["place"])
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
        float(content[0] @ content[1]) * (cluster[0] == cluster[1]),
    ]


def assert_agree(chain, mean, error):
    """The chain's means, by batches, are those of forward draws, which have standard errors of their own."""
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    scores = (batches.mean(axis=0) - mean) / np.hypot(batches.std(axis=0, ddof=1) / np.sqrt(BATCHES), error)
    assert np.abs(scores).max() < LIMIT, dict(enumerate(np.round(scores, 1)))
