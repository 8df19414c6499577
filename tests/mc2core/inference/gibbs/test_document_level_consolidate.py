"""Topics that are joined and dissolved while a start settles."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.inference.gibbs.assignments import Assignments, document_start
from mc2core.inference.gibbs.consolidate import consolidate_topics, log_probabilities, nearest, reassign_tokens
from mc2core.inference.gibbs.tokens import TopicConstants
from mc2core.inference.gibbs.topic_components import Tokens
from mc2core.inference.gibbs.weights import Concentrations

S, OMEGA = 0.3, 2.5
SEEDS = (0, 1, 3)  # of corpora in which no topic of the truth is one that the others do without
DOCUMENT, WORD = np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([0, 1, 3, 0, 2, 2, 3, 3])
TOPIC, CLUSTER = np.array([0, 2, 1, 2, 0, 1, 2, 2]), np.array([0, 1, 0])
TAU = np.array([[0.2, 0.3, 0.4, 0.1], [0.5, 0.2, 0.1, 0.2]])  # the rest last
MEMBERS, START = np.flatnonzero(TOPIC == 2), np.array([0, 3, 5, 8])


def log_of_topics(topic):
    """ln p(l, w | tau) by its factors, less (N_j + omega) of each document."""
    result = 0.0
    for m in range(3):
        n_w = np.bincount(WORD[topic == m], minlength=4)
        result += (gammaln(n_w + S) - gammaln(S)).sum() + gammaln(4 * S) - gammaln(4 * S + n_w.sum())
        for j in range(3):
            a = OMEGA * TAU[CLUSTER[j], m]
            result += gammaln(a + ((j == DOCUMENT) & (topic == m)).sum()) - gammaln(a)
    return result


def kernel_arguments():
    ints = (x.astype(np.int32) for x in (DOCUMENT, WORD, TOPIC, CLUSTER))
    tokens = Tokens(*ints, np.zeros(0, np.int32), *np.zeros((2, 0), np.int64))
    n_wm = np.zeros((4, 3), np.int32)
    np.add.at(n_wm, (WORD, TOPIC), 1)
    return tokens, n_wm, n_wm.sum(axis=0, dtype=np.int64), TopicConstants(OMEGA, 0.0, 0.0, S, 4 * S)


def test_how_likely_words_are_with_their_topic_by_its_factors():
    tokens, n_wm, n_m, constants = kernel_arguments()
    n_w = np.bincount(WORD[MEMBERS], minlength=4)
    known = (gammaln(n_w + S) - gammaln(S)).sum() + gammaln(4 * S) - gammaln(4 * S + 4)
    for j, n in ((0, 1), (1, 1), (2, 2)):
        a = OMEGA * TAU[CLUSTER[j], 2]
        known += gammaln(a + n) - gammaln(a)
    found, chosen = log_probabilities(2, MEMBERS, 4, START, n_wm, n_m, TAU, tokens, constants)
    assert found == pytest.approx(known)
    log_p = 0.0
    for i in MEMBERS:
        changed = [np.where(np.arange(8) == i, m, TOPIC) for m in range(3)]
        log_p += log_of_topics(TOPIC) - logsumexp([log_of_topics(topic) for topic in changed])
    assert chosen == pytest.approx(log_p)


@pytest.mark.slow
def test_words_without_topic_have_the_sum_over_all_others():
    """The estimate's mean is the sum over the 16 ways to share four tokens out."""
    # tau of the topic that is left out goes to all others in proportion
    without = TAU / (1.0 - TAU[:, [2]])
    others = np.where(TOPIC == 2, -1, TOPIC)

    def log_joint(topic):
        result = 0.0
        for m in range(2):
            n_w = np.bincount(WORD[topic == m], minlength=4)
            result += gammaln(n_w + S).sum() - gammaln(4 * S + n_w.sum())
            for j in range(3):
                a = OMEGA * without[CLUSTER[j], m]
                result += gammaln(a + ((j == DOCUMENT) & (topic == m)).sum())
        return result

    ways = []
    for new in product((0, 1), repeat=4):
        topic = others.copy()
        topic[MEMBERS] = new
        ways.append(log_joint(topic) - log_joint(others))
    stream, estimates = np.zeros(2, np.uint64), []
    for item in range(20_000):
        tokens, n_wm, n_m, constants = kernel_arguments()
        streams.seek(stream, np.uint64(5), item)
        new = np.full(4, -1, np.int32)
        estimates.append(reassign_tokens(stream, 2, MEMBERS, 4, START, n_wm, n_m, TAU, tokens, constants, new))
        if item < 10:
            topic = TOPIC.copy()
            topic[MEMBERS] = new
            counted = np.zeros((4, 3), int)
            np.add.at(counted, (WORD, topic), 1)
            np.testing.assert_array_equal(n_wm, counted)
            np.testing.assert_array_equal(n_m, counted.sum(axis=0))
    values = np.exp(np.array(estimates) - logsumexp(ways))
    assert abs(values.mean() - 1.0) < 5.0 * values.std() / np.sqrt(len(values))
    assert values.std() > 0.01


def test_nearest_columns_by_cosine():
    columns = np.array([[9, 3, 0, 1], [0, 0, 5, 0], [1, 1, 1, 0], [0, 8, 1, 7]])
    assert nearest(sp.csr_matrix(columns)).tolist() == [1, 3, 1, 1]


def drawn(seed):
    """60 documents of 100 words, two clusters of six topics: corpus, truth, tau."""
    rng = np.random.default_rng(seed)
    words, tau = rng.dirichlet(np.full(120, 0.05), 6), rng.dirichlet(np.full(6, 2.0), 2)
    cluster, topics, rows = rng.integers(2, size=60), [], []
    for k in cluster:
        tokens = rng.multinomial(rng.multinomial(100, rng.dirichlet(5.0 * tau[k])), words)
        rows.append(tokens.sum(axis=0))
        topics.append(np.tile(np.arange(6), 120).repeat(tokens.T.ravel()))
    return Corpus(np.array(rows)), cluster.astype(np.int32), np.concatenate(topics).astype(np.int32), tau, rng


def consolidated(corpus, cluster, topic, tau):
    """Topics after it, and tau; the counts and weights are held to be those of the topics."""
    n = topic.max() + 1
    level = np.column_stack([tau * 0.99, np.full(2, 0.01)])
    assignments = Assignments(cluster.copy(), topic.copy(), document_start(corpus), level[0, :-1].copy(), 0.01)
    assignments.count()
    assert assignments.n_topics == n
    found = consolidate_topics(assignments, corpus.content, level, 5.0, Concentrations(1.0, 2.0, 2.0), 0.05, 0, 1)
    assert found.shape == (2, assignments.n_topics + 1)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert assignments.topic_weights.sum() + assignments.remaining == pytest.approx(1.0)
    assert (assignments.topic_weights > 0).all()
    assert (np.bincount(assignments.topic) > 0).all()
    n_km = np.zeros((2, assignments.n_topics), int)
    np.add.at(n_km, (cluster.repeat(100), assignments.topic), 1)
    np.testing.assert_array_equal(assignments.n_km, n_km)
    return assignments.topic, found


def is_nearly(found, truth):
    """Whether 97 % of the tokens are in topics as in the truth, one for each."""
    table = np.zeros((found.max() + 1, 6), int)
    np.add.at(table, (found, truth), 1)
    return len(table) == 6 and table.max(axis=0).sum() > 0.97 * len(truth)


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_that_are_right_stay(seed):
    corpus, cluster, truth, tau, _ = drawn(seed)
    found, _ = consolidated(corpus, cluster, truth, tau)
    np.testing.assert_array_equal(found, truth)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by", ["words", "documents", "clusters"])
def test_a_topic_that_is_two_is_joined(seed, by):
    corpus, cluster, truth, _, rng = drawn(seed)
    word = corpus.content.indices.repeat(corpus.content.data)
    m = int(np.bincount(truth).argmax())
    halves = {
        "words": rng.permutation(120)[word] % 2,
        "documents": rng.integers(2, size=60).repeat(100),
        "clusters": cluster.repeat(100),
    }
    topic = np.where((truth == m) & (halves[by] == 1), 6, truth).astype(np.int32)
    share = np.array([np.bincount(topic[cluster.repeat(100) == k], minlength=7) + 1.0 for k in range(2)])
    found, _ = consolidated(corpus, cluster, topic, share / share.sum(axis=1, keepdims=True))
    assert is_nearly(found, truth)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_remnant_of_all_topics_is_dissolved(seed):
    corpus, cluster, truth, _, rng = drawn(seed)
    word = corpus.content.indices.repeat(corpus.content.data)
    some = rng.permutation(120)[:8]
    topic = np.where(np.isin(word, some) & (rng.random(len(word)) < 0.4), 6, truth).astype(np.int32)
    share = np.array([np.bincount(topic[cluster.repeat(100) == k], minlength=7) + 1.0 for k in range(2)])
    found, _ = consolidated(corpus, cluster, topic, share / share.sum(axis=1, keepdims=True))
    assert is_nearly(found, truth)
