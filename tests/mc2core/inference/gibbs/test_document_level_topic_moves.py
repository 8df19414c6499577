"""Splits and merges of topics at the document level, by themselves.

Events and log ratios against enumeration as in test_exact.py, at most 60 a test: a false alarm with probability near
2e-5. Seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.document_level_enumeration import log_document_level_topics
from helpers.document_level_states import assert_splits_and_merges_follow, held_state
from helpers.gibbs_chains import corpus_of, events, log_ratios, one_wrong
from helpers.gibbs_enumeration import log_words, partitions
from helpers.gibbs_twin import assignments_of, small_corpus
from scipy.special import gammaln
from scipy.stats import beta

from mc2core.compute import streams
from mc2core.compute.special import MAX_FACTORS
from mc2core.compute.threads import thread_budget
from mc2core.inference.gibbs import topic_moves
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.tokens import TopicConstants
from mc2core.inference.gibbs.topic_components import (
    Tokens,
    _expect_tables,
    allocate_sequentially,
    count_components,
    count_documents,
    draw_shares,
    estimate_components,
    gather,
    list_tokens,
    log_documents_ratio,
    log_words_ratio,
    reset_word_counts,
)
from mc2core.inference.gibbs.topic_moves import (
    TopicSlots,
    _keep_split,
    keep_merge,
    log_ratio_of,
    new_components,
    reverse_partner_weights,
    set_norms,
    split_and_merge_topics,
    weigh_partners,
)
from mc2core.inference.gibbs.weights import Concentrations

CALLS = 5000
DOCUMENTS = [[0, 0, 1], [1], [], [0, 2]]
DOCUMENT_OF, WORDS = [0, 0, 0, 1, 3, 3], [0, 0, 1, 1, 0, 2]
CLUSTER = np.array([0, 1, 1, 0], np.int32)


def exact_of(v, eta, omega, s):
    """The 203 partitions of six tokens beside that of documents, theta, tau and epsilon summed out."""
    document, words = DOCUMENT_OF, WORDS
    logs = {}
    for topics in partitions(len(words)):
        n_jm = np.zeros((len(DOCUMENTS), max(topics) + 1), int)
        np.add.at(n_jm, (document, list(topics)), 1)
        logs[topics] = log_document_level_topics(n_jm, tuple(CLUSTER), omega, v, eta) + log_words(topics, words, 3, s)
    total = np.logaddexp.reduce(list(logs.values()))
    return {(tuple(CLUSTER), topics): math.exp(value - total) for topics, value in logs.items()}


@pytest.mark.parametrize(("v", "eta", "omega", "s"), [(1.5, 1.2, 2.0, 0.3), (0.4, 3.0, 0.7, 1.0), (2.0, 0.3, 2.0, 1.0)])
def test_splits_and_merges_have_the_exact_posterior(v, eta, omega, s, monkeypatch):
    monkeypatch.setattr(topic_moves, "SPARE_TOPICS", 1)  # arrays are made anew after every split
    exact, corpus = exact_of(v, eta, omega, s), corpus_of(DOCUMENTS, 3)
    wrong = [exact_of(**numbers) for numbers in one_wrong({"v": v, "eta": eta, "omega": omega, "s": s})]
    table = np.vstack([events(exact, 0, 6), log_ratios(exact, wrong)])
    assert 20 < len(table) <= 60
    start = np.concatenate([[0], np.cumsum(corpus.document_lengths)])
    state = Assignments(CLUSTER.copy(), np.zeros(6, np.int32), start, np.array([0.6]), 0.4)
    state.count()
    concentrations = Concentrations(1.0, v, eta)
    chain = held_state(state, corpus, concentrations, omega, np.full((2, 2), 0.5))

    def propose(state, proportions, key):
        return split_and_merge_topics(state, corpus.content, proportions, omega, concentrations, s, key, 10)[:2]

    assert_splits_and_merges_follow(chain, propose, exact, table, CALLS)


def log_target(topic, eps, tau, omega, v, eta, s):
    """ln p(l, epsilon, tau, w | z) with psi and theta summed out, topics unnumbered; the rests come last."""
    document, words = DOCUMENT_OF, WORDS
    n_topics = len(eps) - 1
    n_jm, n_mw = np.zeros((len(DOCUMENTS), n_topics)), np.zeros((n_topics, 3))
    np.add.at(n_jm, (document, topic), 1)
    np.add.at(n_mw, (topic, words), 1)
    result = n_topics * math.log(eta) - np.log(eps[:-1]).sum() + (eta - 1) * math.log(eps[-1])
    for row in tau:
        result += gammaln(v) - gammaln(v * eps).sum() + ((v * eps - 1) * np.log(row)).sum()
    a = omega * tau[CLUSTER, :-1]
    result += (gammaln(a + n_jm) - gammaln(a)).sum()
    result += (gammaln(n_mw + s) - gammaln(s)).sum() - (gammaln(n_mw.sum(axis=1) + 3 * s) - gammaln(3 * s)).sum()
    return float(result)


@pytest.mark.parametrize("v", [1.7, 0.1])
def test_the_ratio_of_a_split_equals_its_plain_twin(v):
    """Density of the split over that of the merge, Jacobian included, over the density of the drawn shares."""
    omega, eta, s = 2.5, 1.3, 0.4
    component = np.array([0, 1, 1, 1, 0, 0])
    eps, tau = np.array([0.7, 0.3]), np.array([[0.6, 0.4], [0.8, 0.2]])
    spare = np.zeros(2, np.int64)
    tokens = Tokens(
        np.array(DOCUMENT_OF, np.int32), np.array(WORDS, np.int32), np.zeros(6, np.int32), CLUSTER,
        np.zeros(12, np.int32), spare, spare,
    )  # fmt: skip
    parts = new_components(6, len(DOCUMENTS), 3, 2, 0)
    parts.members[:], parts.word[:], parts.component[:], parts.end[:3] = (np.arange(6), WORDS, component, [3, 4, 6])
    parts.tau[:] = tau[:, 0]
    constants, stream = TopicConstants(omega, v, eta, s, 3 * s), np.zeros(2, np.uint64)
    n_words = count_components(6, parts)
    estimate_components(6, eps[0], tokens, constants, parts)
    assert parts.eps_share.sum() == pytest.approx(1)
    for item in range(3):
        streams.seek(stream, np.uint64(5), item)
        draw_shares(stream, eps[0], constants, parts)
        u, shares = np.exp(parts.eps_log_share), np.exp(parts.log_share)
        assert u.sum() == pytest.approx(1)
        split = log_target(
            component, np.append(eps[0] * u, eps[1]), np.column_stack([*(tau[:, 0] * shares), tau[:, 1]]),
            omega, v, eta, s,
        )  # fmt: skip
        log_q = beta.logpdf(u[0], *parts.eps_tables)
        for k in range(2):
            e = v * eps[0] * u + parts.shape[:, k]
            g = (v * eps[0] * u + parts.tables[:, k]) / (v * eps[0] + parts.tables[:, k].sum())
            # a scaled Dirichlet of two parts
            log_q += gammaln(e.sum()) - gammaln(e).sum() + (e * np.log(e / g) + (e - 1) * parts.log_share[:, k]).sum()
            log_q -= e.sum() * math.log((e / g * shares[:, k]).sum())
        jacobian = math.log(eps[0]) + np.log(tau[:, 0]).sum()
        expected = split + jacobian - log_target(np.zeros(6, int), eps, tau, omega, v, eta, s) - log_q
        found = log_ratio_of(log_words_ratio(n_words, constants, parts), eps[0], constants, parts)
        assert found == pytest.approx(expected, abs=1e-9)


def state_of_topics(rng, n_topics=4, n_words=9, n_documents=12, slots=6):
    """Topics of 90 tokens at random, and what moves are made with."""
    n_tokens = 90
    document, word = np.sort(rng.integers(n_documents, size=n_tokens)), rng.integers(n_words, size=n_tokens)
    topic = np.append(np.arange(n_topics), rng.integers(n_topics, size=n_tokens - n_topics))
    cluster = rng.integers(2, size=n_documents)
    tokens = Tokens(
        *(x.astype(np.int32) for x in (document, word, topic, cluster)), np.empty(2 * n_tokens, np.int32),
        *np.zeros((2, slots), np.int64),
    )  # fmt: skip
    list_tokens(tokens)
    n_wm = np.zeros((n_words, slots), np.int32)
    np.add.at(n_wm, (word, topic), 1)
    tau = np.zeros((slots, 2))
    tau[:n_topics] = rng.dirichlet(np.ones(n_topics), 2).T
    topics = TopicSlots(n_wm, np.append(rng.dirichlet(np.ones(n_topics)), np.zeros(2)), tau, np.zeros(slots))
    parts = new_components(n_tokens, n_documents, n_words, 2, slots)
    constants = TopicConstants(2.5, 1.7, 1.3, 0.4, n_words * 0.4)
    set_norms(n_topics, tokens, topics, constants)
    return tokens, topics, parts, constants


def test_documents_counted_together_have_the_ratio_of_each_alone():
    """Short and long ones."""
    rng = np.random.default_rng(4)
    tokens, topics, parts, constants = state_of_topics(rng, n_topics=1, n_documents=3)
    n = gather(0, 0, tokens, parts)
    parts.component[:n], parts.tau[:], parts.eps_share[:] = rng.random(n) < 0.3, topics.tau[0], 0.5
    parts.share[:] = shares = np.array([[0.7, 0.2], [0.3, 0.8]])
    parts.log_share[:] = np.log(shares)
    count_documents(n, tokens, parts)
    n_j = np.array(
        [np.bincount(tokens.document[:n], parts.component[:n] == component, minlength=3) for component in range(2)]
    )
    assert n_j.max() > MAX_FACTORS > n_j.min()
    a = constants.omega * parts.tau[tokens.cluster]
    own = [a * shares[part, tokens.cluster] for part in range(2)]
    of_parts = sum(gammaln(own[part] + n_j[part]) - gammaln(own[part]) for part in range(2))
    expected = of_parts - gammaln(a + n_j.sum(axis=0)) + gammaln(a)
    assert log_documents_ratio(constants, parts) == pytest.approx(expected.sum())
    tables = np.zeros((2, 2))
    for component, j in zip(*np.nonzero(n_j), strict=True):
        own, k = a[j] * shares[component, tokens.cluster[j]], tokens.cluster[j]
        tables[component, k] += 1 + own * math.log((own + n_j[component, j] - 0.5) / (own + 0.5))
    _expect_tables(constants, parts)
    assert parts.tables == pytest.approx(tables)


def test_a_split_weighs_the_reverse_merge_as_that_merge_does():
    for seed in range(5):
        rng, stream = np.random.default_rng(seed), np.zeros(2, np.uint64)
        tokens, topics, parts, constants = state_of_topics(rng)
        i = int(rng.integers(90))
        m, eps = tokens.topic[i], topics.eps[tokens.topic[i]]
        n = gather(m, m, tokens, parts)
        parts.tau[:], fixed = topics.tau[m], int(np.flatnonzero(parts.members[:n] == i)[0])
        for item in range(100):
            streams.seek(stream, np.uint64(3), item)
            given = stream, n, fixed, -1
            log_q, n_words = allocate_sequentially(*given, -np.inf, eps, tokens, constants, parts, None)
            if parts.size[1] > 0:
                break
            reset_word_counts(n_words, parts)
        assert log_q < 0 < parts.size[1]
        estimate_components(n, eps, tokens, constants, parts)
        draw_shares(stream, eps, constants, parts)
        weight, others = reverse_partner_weights(m, n, n_words, 4, tokens, topics, constants, parts)
        _keep_split(m, 4, n, n_words, tokens, topics, constants, parts)
        reset_word_counts(n_words, parts)
        total = weigh_partners(m, 5, tokens, topics, constants, parts)
        assert parts.weights[4] == pytest.approx(weight)
        assert total == pytest.approx(others + weight)
        smooth = topics.n_wm[:, :5] + constants.s
        cosine = smooth[:, m] @ smooth / np.linalg.norm(smooth, axis=0) / np.linalg.norm(smooth[:, m])
        assert np.delete(parts.weights[:5], m) == pytest.approx(np.delete(cosine**4, m))
        # the pass of the merge gives the same sides the same probability, and a merge keeps the norms
        n = gather(m, 4, tokens, parts)
        streams.seek(stream, np.uint64(3), item)
        again, n_words = allocate_sequentially(stream, n, fixed, m, -np.inf, eps, tokens, constants, parts, None)
        reset_word_counts(n_words, parts)
        assert again == pytest.approx(log_q)
        parts.component[:n] = tokens.topic[parts.members[:n]] == 4
        n_words = count_components(n, parts)
        keep_merge(m, 4, 90, n, n_words, tokens, topics, constants, parts)
        assert topics.norm[:4] == pytest.approx(((topics.n_wm[:, :4] + constants.s) ** 2).sum(axis=0))


@pytest.mark.parametrize("spare", [1, 64])
def test_proposals_on_several_threads_are_those_of_one(spare, monkeypatch):
    """400 proposals, of which a quarter is made, so that many looked at beside them are looked at again."""
    monkeypatch.setattr(topic_moves, "SPARE_TOPICS", spare)
    corpus, concentrations = small_corpus(2, mean=8), Concentrations(1.0, 4.0, 3.0)
    tau, results = np.random.default_rng(3).dirichlet(np.full(6, 0.7), 3), []
    for threads in (1, 2, 3):
        assignments = assignments_of(corpus)
        with thread_budget(threads) as pool:
            tau_now, made, _ = split_and_merge_topics(
                assignments, corpus.content, tau, 2.0, concentrations, 1.0, streams.key(0, "test"), 400, pool=pool
            )
        results.append((assignments.topic, assignments.topic_weights, tau_now, made))
    assert (results[0][3] > 40).all()
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
