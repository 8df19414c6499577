"""New documents given the old state: their exact conditional by enumeration, and what stays as it was."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.crossed import first
from helpers.gibbs_enumeration import stirling

from mc2core import Corpus
from mc2core.families import DirichletCategorical
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.added import AddedDocuments, Held
from mc2core.inference.gibbs.weights import Concentrations
from mc2core.posterior import Sample, SparseRows

ALPHA, V, OMEGA, S = 0.8, 1.5, 0.7, 0.4
SIZES, TABLES, WORDS = np.array([2, 1]), np.array([[3, 0], [1, 2]], np.int32), np.array([[3, 1], [0, 2]], np.int32)
EPS, GAMMA, VALUES = np.array([0.6, 0.4 - 1e-9]), 0.5, np.array([[2.5, 0.5], [0.5, 1.5]])
DOCUMENTS, CONTEXT = [[0, 0, 1], [1, 1]], [0, 1]  # words of each document, and the value of its context


def held(omega, most, b=math.inf):
    """An old state of two clusters and two topics; new topics have no mass to speak of."""
    mass = TABLES + V * EPS
    total = mass.sum(axis=1, keepdims=True)
    sample = Sample(
        cluster_weights=SIZES / 3, new_cluster_weight=0.1, topic_given_cluster=mass / total,
        new_topic_weight=np.full(2, 1e-9), topic_words=sp.csr_matrix(WORDS), topic_word_prior=S, topic_weights=EPS,
        table_concentration=V, contexts=SparseRows.from_dense(VALUES), cluster=np.array([0, 0, 1], np.int32),
        document_concentration=omega, burst_concentration=b,
    )  # fmt: skip
    return Held(sample, SIZES, TABLES, np.ascontiguousarray(WORDS.T), Concentrations(ALPHA, V, 1.0, most))


def log_dirichlet(prior, counts):
    """ln of the probability of a sequence with these counts."""
    prior, counts = np.asarray(prior, float), np.asarray(counts)
    total = sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(prior, counts, strict=True))
    return total + math.lgamma(prior.sum()) - math.lgamma(prior.sum() + counts.sum())


def log_clusters(z, most):
    """ln p(z) of the new documents one after another, with their contexts."""
    sizes, values, result = list(SIZES), [list(row) for row in VALUES], 0.0
    each = 0.0 if math.isinf(most) else ALPHA / most
    for k, x in zip(z, CONTEXT, strict=True):
        n = sum(size > 0 for size in sizes)
        weight = sizes[k] + each if k < len(sizes) else ALPHA * (1.0 - n / most)
        if weight <= 0.0:
            return -math.inf
        if k == len(sizes):
            sizes.append(0)
            values.append([GAMMA, GAMMA])
        result += math.log(weight / (sum(sizes) + ALPHA)) + math.log(values[k][x] / sum(values[k]))
        sizes[k] += 1
        values[k][x] += 1
    return result


def log_topics(z, n_jm, omega):
    """ln p(l | z) with theta and tau summed out, by all tables of the documents."""
    cells = [(j, m) for j, m in zip(*np.nonzero(n_jm), strict=True)]
    terms = []
    several = [range(1, n_jm[cell] + 1) if omega < math.inf else [n_jm[cell]] for cell in cells]
    for tables in itertools.product(*several):
        t_km, value = np.zeros((max(*z, 1) + 1, 2), int), 0.0
        for (j, m), t in zip(cells, tables, strict=True):
            t_km[z[j], m] += t
            if omega < math.inf:
                value += math.log(stirling(int(n_jm[j, m]), t)) + t * math.log(omega)
        for k, row in enumerate(t_km):
            value += log_dirichlet(V * EPS + (TABLES[k] if k < 2 else 0), row)
        terms.append(value)
    result = np.logaddexp.reduce(terms)
    return result + sum(math.lgamma(omega) - math.lgamma(omega + n) for n in n_jm.sum(axis=1) if omega < math.inf)


def draws(b):
    """Ways in which the two cells of two tokens are drawn, as (draws of each document, log probability)."""
    for one, two in itertools.product((1, 2), repeat=2):
        if math.isinf(b):
            if (one, two) == (2, 2):
                yield DOCUMENTS, 0.0
            continue
        value = (one + 1 + two) * math.log(b) + sum(math.lgamma(b) - math.lgamma(b + n) for n in (3, 2))
        yield [[0] * one + [1], [1] * two], value


def exact(omega, most, b):
    """Probability of (clusters, topics of the draws of each cell in order)."""
    logs = {}
    for drawn, log_draws in draws(b):
        words = [word for document in drawn for word in document]
        document_of = [j for j, document in enumerate(drawn) for _ in document]
        for z in itertools.product(range(4), repeat=2):
            if z[0] > 2 or z[1] > max(z[0], 1) + 1:  # new clusters are numbered as they come
                continue
            for topics in itertools.product(range(2), repeat=len(words)):
                n_jm, n_mw = np.zeros((2, 2), int), np.zeros((2, 2), int)
                np.add.at(n_jm, (document_of, topics), 1)
                np.add.at(n_mw, (topics, words), 1)
                of_words = sum(log_dirichlet(S + WORDS[m], n_mw[m]) for m in range(2))
                value = log_draws + log_clusters(z, most) + log_topics(z, n_jm, omega) + of_words
                state = z, by_cell(topics, [len(drawn[0]) - 1, 1, len(drawn[1])])
                logs[state] = np.logaddexp(logs.get(state, -math.inf), value)
    total = np.logaddexp.reduce(list(logs.values()))
    return {state: math.exp(value - total) for state, value in logs.items()}


def by_cell(topics, sizes):
    """Topics of the draws of each cell; the draws of a cell have no order."""
    ends = np.cumsum(sizes)
    return tuple(tuple(sorted(topics[end - n : end])) for n, end in zip(sizes, ends, strict=True))


def named(cluster):
    """Clusters with new ones numbered in the order of documents."""
    names = {}
    return tuple(int(k) if k < 2 else names.setdefault(int(k), 2 + len(names)) for k in cluster)


@pytest.mark.parametrize(
    ("omega", "most", "b"),
    first(
        [
            (OMEGA, math.inf, 1.3),
            (math.inf, math.inf, math.inf),
            (OMEGA, math.inf, math.inf),
            (OMEGA, 3.0, 0.6),
            (math.inf, 2.0, math.inf),
        ],
        2,
    ),
)
def test_draws_have_the_exact_conditional_given_old_ones(omega, most, b):
    content = np.zeros((2, 2), int)
    for j, document in enumerate(DOCUMENTS):
        np.add.at(content[j], document, 1)
    corpus = Corpus(content, contexts={"x": sp.csr_matrix(np.eye(2, dtype=int)[CONTEXT])})
    contexts = StackedContexts(corpus, {"x": DirichletCategorical(GAMMA)})
    chain, seen, n = AddedDocuments(held(omega, most, b), corpus, contexts, 5), Counter(), 3_000
    for iteration in range(n):
        chain.sweep(iteration)
        topics = by_cell(chain.assignments.topic.tolist(), chain._content.data.tolist())
        seen[named(chain.assignments.cluster), topics] += 1
    expected = exact(omega, most, b)
    assert set(seen) <= set(expected)
    for of in (lambda state: state[0], lambda state: state[1], lambda state: (state[0], state[1][0])):
        p, found = Counter(), Counter()
        for state, probability in expected.items():
            p[of(state)] += probability
        for state, times in seen.items():
            found[of(state)] += times
        # draws that follow each other are not independent: the bound is eight standard errors of independent ones
        for value, probability in p.items():
            error = math.sqrt(probability * (1.0 - probability) / n)
            assert abs(found[value] / n - probability) < 8.0 * error + 1e-3, (value, found[value] / n, probability)
