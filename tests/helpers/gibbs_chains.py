"""Tiny corpora, and a chain held against the exact posterior over them."""

from __future__ import annotations

from copy import copy

import numpy as np
import scipy.sparse as sp
from helpers.document_level_enumeration import document_level_posterior
from helpers.fits import at_strength, gibbs, without_log_joint
from helpers.gibbs_enumeration import canonical, posterior

from mc2core.corpus import Corpus
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, GammaPoisson, NormalGamma

# words of each document in the order of CSR, which is that of state.topic
DOCUMENTS = [[0, 0, 1], [1, 2], [0]]
BATCHES = 50
NUMBERS = *(f"{name}_concentration" for name in ("group", "table", "topic", "document")), "topic_word_prior"


def corpus_of(documents, n_words, contexts=None):
    # the chain has the tokens of a document by word, and the enumeration takes them as they are
    assert all(words == sorted(words) for words in documents)
    content = np.zeros((len(documents), n_words), int)
    for j, words in enumerate(documents):
        np.add.at(content[j], words, 1)
    return Corpus(sp.csr_matrix(content), contexts=contexts)


def log_context_of(model, corpus):
    """Log marginal of the contexts of a set of documents, to their strengths, by the families' closed forms."""

    def log_context(members):
        result = 0.0
        for name, family in model.contexts.items():
            context = corpus.contexts[name]
            statistics = np.asarray(family.statistics(context)[members].sum(axis=0)).ravel()
            prior = family.prior(family.dimension(context))
            result += float(family.log_marginal(prior + family.strength * statistics))
        return result

    return log_context


def events(exact, n_documents, n_tokens):
    """Indicators of events, as a matrix over the exact states: a row for each that is neither rare nor nearly sure."""
    states = list(exact)
    rows = []
    for i in range(1, n_documents + 1):
        rows.append([max(z) + 1 == i for z, _ in states])
    for i in range(1, n_tokens + 1):
        rows.append([max(topics, default=-1) + 1 == i for _, topics in states])
    for a in range(n_documents):
        for b in range(a):
            rows.append([z[a] == z[b] for z, _ in states])
    for a in range(n_tokens):
        for b in range(a):
            rows.append([topics[a] == topics[b] for _, topics in states])
    for state in sorted(exact, key=exact.__getitem__)[-20:]:
        rows.append([other == state for other in states])
    table = np.array(rows, dtype=float)
    probability = table @ np.array(list(exact.values()))
    return table[(probability > 0.04) & (probability < 0.96)]


def log_ratios(exact, wrong):
    """ln of each wrong posterior over the exact one, as rows over the exact states: by Neyman and Pearson, of all
    functions of a state, what tells the two apart in the fewest draws.
    """
    rows = np.array([[np.log(one[state] / probability) for state, probability in exact.items()] for one in wrong])
    return rows[np.ptp(rows, axis=1) > 1e-6]


def one_wrong(numbers):
    """Numbers by name, once for each of them with that one half as large again."""
    return [numbers | {name: 1.5 * value} for name, value in numbers.items()]


def assert_visits_follow(visits, table, probability):
    """Functions of a state, rows over the states, have their expectations; visits: (batches, states) that were counted.

    Means of the batches, in standard errors, but at least in those of independent draws.
    """
    n_batches, n = len(visits), visits.sum() / len(visits)
    expected = table @ probability
    independent = np.sqrt((table**2 @ probability - expected**2) / (n_batches * n))
    means = visits @ table.T / n
    error = np.maximum(means.std(axis=0, ddof=1) / np.sqrt(n_batches), independent)
    score = (means.mean(axis=0) - expected) / error
    assert np.abs(score).max() < 6, np.round(np.column_stack([expected, means.mean(axis=0), score]), 3)


def assert_chain_follows(engine, corpus, exact_of, sweeps, seed=0):
    """``exact_of``: the enumerated posterior of a model on this corpus."""
    model = engine.model
    exact = exact_of(model)
    states = {state: i for i, state in enumerate(exact)}
    of_events = events(exact, corpus.n_documents, corpus.n_tokens)
    assert len(of_events) > 10 or corpus.n_tokens == 0
    numbers = {name: getattr(model, name, None) for name in NUMBERS}  # some models lack one, some learn one
    numbers = one_wrong({name: value for name, value in numbers.items() if isinstance(value, float)})
    ratios = log_ratios(exact, [exact_of(changed(model, wrong)) for wrong in numbers])
    state = without_log_joint(engine.init(corpus, seed))
    visits = np.zeros((BATCHES, len(exact)))
    for iteration in range(1, sweeps + 1):
        engine.step(corpus, state, seed, iteration)
        here = canonical(state.cluster), canonical(state.topic)
        visits[(iteration - 1) * BATCHES // sweeps, states[here]] += 1
    assert_visits_follow(visits, np.vstack([of_events, ratios]), np.array(list(exact.values())))


def changed(model, numbers):
    other = copy(model)
    for name, value in numbers.items():
        setattr(other, name, value)
    return other


def fixed(model="mc2", **settings):
    """Of little content, at concentrations that stay."""
    defaults = {
        **({"group_concentration": 1.2} if model == "mc2" else {}),
        "table_concentration": 1.5,
        "topic_concentration": 0.9,
        **({} if "content" in settings else {"topic_word_prior": 0.4}),
        "start_topics": 2,
        **({"start_clusters": 2} if model == "mc2" and "n_clusters" not in settings else {}),
    }
    return gibbs(model, **(defaults | settings))


def exact_of(documents, n_words, corpus):
    """The posterior of a model without a document level on this corpus, a function of the model."""
    return lambda model: posterior(
        documents, n_words, model.group_concentration, model.table_concentration, model.topic_concentration,
        model.topic_word_prior, log_context_of(model, corpus), not model.has_clusters, n_clusters=model.most_clusters,
    )  # fmt: skip


def document_level_exact_of(documents, n_words, corpus):
    """The same of a model with a document level."""
    return lambda model: document_level_posterior(
        documents, n_words, [getattr(model, name) for name in NUMBERS[:4]], model.topic_word_prior,
        log_context_of(model, corpus), not model.has_clusters, model.most_clusters,
    )  # fmt: skip


CONTEXTS = {
    "visits": np.array([3.0, 0.0, np.nan]),
    "tag": sp.csr_matrix(np.array([[2, 0], [0, 0], [1, 1]])),
    "year": np.array([0.3, np.nan, -1.0]),
}
VECTORS = {  # of one, a document lacks a coordinate; of the other, it has all or none
    "place": np.array([[0.3, 1.0], [np.nan, np.nan], [-1.0, np.nan]]),
    "shade": np.array([[0.5, -0.2], [0.1, 0.4], [np.nan, np.nan]]),
}
ALL = {"visits": GammaPoisson(1.3, 0.8), "tag": DirichletCategorical(0.6), "year": NormalGamma(0.0, 0.5, 1.5, 0.7)}
FAMILIES = {
    "none": ({}, {}),
    "all, some missing": (CONTEXTS, ALL),
    "vectors, some missing": (VECTORS, dict.fromkeys(VECTORS, DiagonalNormalGamma(0.0, 0.5, 1.5, 0.7))),
    "of strength 1/4": (CONTEXTS, at_strength(ALL, 0.25)),
    "of strength 0": (CONTEXTS, at_strength(ALL, 0.0)),
}
