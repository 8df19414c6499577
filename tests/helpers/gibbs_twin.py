"""A small corpus and plain twins of the Gibbs kernels: they draw the same random numbers, from weights made anew."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp

from mc2core.compute import streams
from mc2core.compute.simd import LANES
from mc2core.compute.streams import log_gamma_variate
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.tokens import word_cells
from mc2core.inference.gibbs.weights import Concentrations

CONCENTRATIONS = Concentrations(group=1.3, table=4.0, topic=2.5)
PRIOR = 0.05


def assert_counted(assignments):
    """The tables of clusters are those of the assignments."""
    counted = replace(assignments)
    counted.count()
    np.testing.assert_array_equal(assignments.n_km, counted.n_km)


def small_corpus(seed=0, n_documents=12, n_words=9, mean=20):
    rng = np.random.default_rng(seed)
    content = rng.poisson(mean / n_words, (n_documents, n_words)) * (rng.random((n_documents, n_words)) < 0.6)
    content[3] = 0
    year = np.where(np.arange(n_documents) % 4 == 1, np.nan, rng.normal(size=n_documents))
    tags = sp.csr_matrix(rng.poisson(0.5, (n_documents, 4)))
    return Corpus(sp.csr_matrix(content), contexts={"year": year, "tag": tags})


def assignments_of(corpus, n_clusters=3, n_topics=5, seed=1):
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.arange(corpus.n_documents) % n_clusters).astype(np.int32)
    topic = rng.integers(0, n_topics, corpus.n_tokens).astype(np.int32)
    topic[:n_topics] = np.arange(n_topics)
    start = np.concatenate([[0], np.cumsum(corpus.document_lengths)]).astype(np.int64)
    weights = rng.dirichlet(np.ones(n_topics + 1))
    assignments = Assignments(cluster, topic, start, weights[:-1], float(weights[-1]))
    assignments.count()
    return assignments


def cells_of(corpus):
    content = corpus.content
    return word_cells(content.indptr, content.indices, content.data, corpus.n_words)


def tokens_of(corpus):
    """(document, word) of every token in CSR order."""
    content = corpus.content
    documents = np.repeat(np.arange(corpus.n_documents), np.diff(content.indptr))
    return np.repeat(documents, content.data), np.repeat(content.indices, content.data)


def pick(weights, u):
    """First index whose running sum exceeds u."""
    return int(np.searchsorted(np.cumsum(weights), u, side="right"))


def draw_or_stay(weights, own, stream):
    """Index that a token goes to: it stays at its own where the uniform number falls into the weight of that."""
    weights = np.array(weights)
    u = streams.uniform(stream) * weights.sum() - weights[own]
    if u < 0:
        return own
    weights[own] = 0
    return pick(weights, u)


def break_off(eps, remaining, stream):
    """The rest of epsilon once a topic is broken off it."""
    share = 1 - (1 - streams.uniform(stream)) ** (1 / CONCENTRATIONS.topic)
    eps.append(share * remaining)
    return remaining * (1 - share)


# -- collapsed sweeps ----------------------------------------------------------------------------------------------
def plain_topic_sweep(assignments, corpus, key):
    """Tokens by word, then cluster, then document; float64; weights from scratch for every token."""
    document, word = tokens_of(corpus)
    topic, cluster = assignments.topic.astype(int), assignments.cluster
    eps, remaining = list(assignments.topic_weights), assignments.remaining
    v, s, n_words = CONCENTRATIONS.table, PRIOR, corpus.n_words
    state = np.zeros(2, np.uint64)
    for w in range(n_words):
        streams.seek(state, key, w)
        mine = np.flatnonzero(word == w)
        for i in mine[np.lexsort((document[mine], cluster[document[mine]]))]:
            others = np.arange(len(topic)) != i
            same_cluster = others & (cluster[document] == cluster[document[i]])
            weights = []
            for m in range(len(eps)):
                here = others & (topic == m)
                weights.append(
                    (np.sum(here & same_cluster) + v * eps[m]) * (np.sum(here & (word == w)) + s)
                    / (np.sum(here) + n_words * s)
                )  # fmt: skip
            weights.append(v * remaining / n_words)
            topic[i] = draw_or_stay(weights, topic[i], state)
            if topic[i] == len(eps):
                remaining = break_off(eps, remaining, state)
    return topic, np.array(eps), remaining


def plain_timed_sweep(assignments, corpus, values, family, key):
    """Tokens by document; each has the document's value, NaN where missing; float64; weights from scratch."""
    document, word = tokens_of(corpus)
    topic = assignments.topic.astype(int)
    eps, remaining = list(assignments.topic_weights), assignments.remaining
    v, s, n_words = CONCENTRATIONS.table, PRIOR, corpus.n_words
    statistics = family.statistics(values).toarray()[document]
    state = np.zeros(2, np.uint64)
    for i in range(len(topic)):
        if i == 0 or document[i] != document[i - 1]:
            streams.seek(state, key, document[i])
        others = np.arange(len(topic)) != i
        weights = []
        for m in range(len(eps) + 1):
            here = others & (topic == m)
            prior = v * eps[m] if m < len(eps) else v * remaining
            natural = family.prior(4) + statistics[here].sum(axis=0)
            log_time = family.log_normaliser(natural + statistics[i]) - family.log_normaliser(natural)
            weights.append(
                (np.sum(here & (document == document[i])) + prior) * (np.sum(here & (word == word[i])) + s)
                / (np.sum(here) + n_words * s) * np.exp(log_time)
            )  # fmt: skip
        topic[i] = draw_or_stay(weights, topic[i], state)
        if topic[i] == len(eps):
            remaining = break_off(eps, remaining, state)
    return topic, np.array(eps), remaining


def plain_weigh_counts(counts, row, prior, scale, weights, first):
    here = slice(first, first + LANES)
    weights[here] = (counts.ravel()[row + first : row + first + LANES] + prior[here]) * scale[here]
    return weights[here].sum()


def plain_cluster_sweep(assignments, corpus, contexts, key, alpha, v, prior):
    document, _ = tokens_of(corpus)
    cluster, topic = assignments.cluster.astype(int), assignments.topic
    state = np.zeros(2, np.uint64)
    for j in range(corpus.n_documents):
        streams.seek(state, key, j)
        own = np.bincount(topic[document == j], minlength=assignments.n_topics)
        cluster[j] = -1
        sizes = np.bincount(cluster[cluster >= 0], minlength=cluster.max() + 1)
        empty = int(np.flatnonzero(np.append(sizes, 0) == 0)[0])
        weights = np.full(max(len(sizes), empty + 1), -np.inf)
        for k in range(len(weights)):
            members = np.flatnonzero(cluster == k)
            if len(members) == 0 and k != empty:
                continue
            n = np.bincount(topic[np.isin(document, members)], minlength=assignments.n_topics)
            weights[k] = np.log(len(members)) if len(members) else np.log(alpha)
            weights[k] += gammaln(v + n.sum()) - gammaln(v + n.sum() + own.sum())
            weights[k] += (gammaln(prior + n + own) - gammaln(prior + n)).sum()
            natural = contexts.prior + np.asarray(contexts.statistics[members].sum(axis=0)).ravel()
            mine = np.asarray(contexts.statistics[[j]].todense()).ravel()
            weights[k] += contexts.log_marginal(natural + mine) - contexts.log_marginal(natural)
        p = np.exp(weights - weights.max())
        cluster[j] = pick(p, streams.uniform(state) * p.sum())
    return cluster


# -- sweeps of the document level ----------------------------------------------------------------------------------
def open_topic(state, k, eps, remaining, columns, tau_remaining, v, eta):
    """A topic broken off the rests of epsilon, whose new rest is returned, and of every tau, picked in cluster k."""
    left = (1 - streams.uniform(state)) ** (1 / eta)
    eps.append((1 - left) * remaining)
    remaining *= left
    column = np.zeros(len(tau_remaining))
    for other in range(len(tau_remaining)):
        x = np.exp(log_gamma_variate(state, v * eps[-1] + (other == k)))
        y = np.exp(log_gamma_variate(state, v * remaining))
        column[other] = tau_remaining[other] * x / (x + y)
        tau_remaining[other] *= y / (x + y)
    columns.append(column)
    return remaining


# -- the blocked move ----------------------------------------------------------------------------------------------
def plain_cluster_draw(assignments, corpus, key, topics, log_prior, log_context, log_small, mass, is_active):
    """Column of each document in a active cluster, the cluster of the others; ``mass`` (V, K): ln of psi tau."""
    document, word = tokens_of(corpus)
    state = np.zeros(2, np.uint64)
    cluster = assignments.cluster.copy()
    for j in range(corpus.n_documents):
        if is_active[assignments.cluster[j]] < 0:
            continue
        weights = log_prior + log_context[j]
        for i in np.flatnonzero(document == j):
            m = assignments.topic[i]
            weights = weights + (mass[word[i]] if topics.column[m] >= 0 else log_small[topics.place[m]])
        streams.seek(state, key, j)
        p = np.exp(weights - logsumexp(weights))
        cluster[j] = pick(p, streams.uniform(state))
    return cluster


def plain_topic_draw(assignments, corpus, key, topics, row_of, tau, psi):
    """Topics of all tokens: new ones where the token is in a active topic and ``row_of`` its document above 0."""
    document, word = tokens_of(corpus)
    state = np.zeros(2, np.uint64)
    topic = assignments.topic.copy()
    for w in range(corpus.n_words):
        streams.seek(state, key, w)
        mine = np.flatnonzero((word == w) & (topics.column[assignments.topic] >= 0) & (row_of[document] > 0))
        for i in mine[np.lexsort((document[mine], row_of[document[mine]]))]:
            p = tau[row_of[document[i]] - 1].astype(float) * psi[w]
            topic[i] = topics.label[pick(p, streams.uniform(state) * p.sum())]
    return topic
