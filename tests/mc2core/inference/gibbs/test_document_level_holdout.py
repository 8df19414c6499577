"""Documents kept from a start: how likely a state has them, and how they join it."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.gibbs_twin import small_corpus
from scipy.special import gammaln

from mc2core import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference import Gibbs
from mc2core.inference.gibbs import holdout
from mc2core.inference.gibbs.continued import with_documents
from mc2core.models import MC2

TAU = np.array([[0.6, 0.3, 0.1], [0.05, 0.15, 0.8]])  # of two topics and what is uniform
OMEGA = 1.7


def test_a_tenth_is_kept_back_of_at_most_so_many_tokens():
    short = Corpus(np.ones((109, 4), int))
    kept = holdout.draw_holdout(short, 0)
    assert len(kept) == 10
    assert (np.diff(kept) > 0).all()
    assert not np.array_equal(kept, holdout.draw_holdout(short, 1))
    assert len(holdout.draw_holdout(Corpus(np.ones((99, 4), int)), 0)) == 0
    # documents without tokens are no use, and words would be in none that is left
    empty = np.zeros((500, 4), int)
    empty[::3] = 1
    kept = holdout.draw_holdout(Corpus(empty), 0)
    assert len(kept) == 16
    assert (kept % 3 == 0).all()
    empty[::3] = 0
    empty[:99] = 1
    assert len(holdout.draw_holdout(Corpus(empty), 0)) == 0
    many = Corpus(np.full((600, 4), 225))  # 900 tokens each
    assert len(holdout.draw_holdout(many, 0)) == holdout.MAX_OF_ALL // 900
    long = Corpus(np.full((600, 4), 5000))  # of which 1,000 are looked at
    assert len(holdout.draw_holdout(long, 0)) == holdout.MAX_OF_ALL // holdout.MAX_OF_ONE


def test_probabilities_of_all_documents_of_a_length_sum_to_1():
    psi = np.array([[0.6, 0.1, 0.25], [0.2, 0.1, 0.25], [0.1, 0.2, 0.25], [0.1, 0.6, 0.25]])
    documents = [np.array(words) for words in product(range(4), repeat=4)]
    found = holdout._log_words(documents, psi, np.zeros(4), OMEGA * TAU)
    np.testing.assert_allclose(np.exp(found).sum(axis=0), 1.0)
    repeated = holdout._log_words(documents, psi, np.zeros(4), OMEGA * TAU, 1.3)
    np.testing.assert_allclose(np.exp(repeated).sum(axis=0), 1.0)
    same = [len(set(one)) == 1 for one in documents]
    assert (repeated[same] > found[same] + 0.5).all()
    # of one word it is the mean; after a word the same is likelier
    once, twice = holdout._log_words([np.array([3]), np.array([3, 3])], psi, np.zeros(4), OMEGA * TAU)
    np.testing.assert_allclose(np.exp(once), TAU @ psi[3])
    assert (twice - once > once).all()


def test_words_that_tell_topics_are_dirichlet_multinomial():
    psi = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    documents = [np.array([0, 1, 2, 0]), np.array([3]), np.array([2, 2, 3, 1, 3, 3, 0]), np.array([], int)]
    found = holdout._log_words(documents, psi, np.zeros(4), OMEGA * TAU)
    # densities of 1,000 nats more, as of observations
    further = holdout._log_words(documents, psi, np.full(4, 1000.0), OMEGA * TAU)
    np.testing.assert_allclose(further, found + 1000.0 * np.array([[4.0], [1.0], [7.0], [0.0]]))
    for j, words in enumerate(documents):
        counts = np.array([np.isin(words, (0, 1)).sum(), (words == 2).sum(), (words == 3).sum()])
        exact = (gammaln(OMEGA * TAU + counts) - gammaln(OMEGA * TAU)).sum(axis=1)
        exact += gammaln(OMEGA) - gammaln(OMEGA + len(words)) - counts[0] * np.log(2.0)
        np.testing.assert_allclose(found[j], exact, atol=1e-12)


def twin(sample, corpus, contexts, seed):
    """Token by token, document by document, cluster by cluster."""
    psi = np.vstack([sample.word_given_topic, np.full((1, corpus.n_words), 1.0 / corpus.n_words)])
    out = np.zeros((corpus.n_documents, sample.n_clusters))
    of_contexts = np.zeros_like(out) if contexts is None else contexts.log_predictive(sample.natural)
    for j, k in np.ndindex(*out.shape):
        counts = sample.document_concentration * np.append(
            (1.0 - sample.new_topic_weight[k]) * sample.topic_given_cluster[k], sample.new_topic_weight[k]
        )
        rng = holdout.streams.generator(seed, "order of tokens", document=j)
        row = corpus.content[j]
        out[j, k] = np.log(sample.cluster_weights[k]) + of_contexts[j, k]
        words, b = rng.permutation(np.repeat(row.indices, row.data))[: holdout.MAX_OF_ONE], sample.burst_concentration
        for i, word in enumerate(words):
            likely, before = counts / counts.sum() * psi[:, word], np.count_nonzero(words[:i] == word)
            p = likely.sum()
            out[j, k] += np.log(p if b == np.inf else (before + b * p) / (i + b))
            counts = counts + likely / p * (1.0 if b == np.inf else b * p / (before + b * p))
    return out


@pytest.mark.parametrize(("has_contexts", "burstiness"), [(False, False), (False, None), (True, None)])
def test_equals_its_plain_twin(monkeypatch, has_contexts, burstiness):
    corpus = small_corpus(3)
    names = list(corpus.contexts) if has_contexts else ()
    model = MC2(contexts=names, burstiness=burstiness).for_corpus(corpus)
    state = Gibbs().init(model, corpus, 0)
    stacked = StackedContexts(corpus, model.cluster_contexts) if has_contexts else None
    found = holdout.log_weights(state.sample(), corpus, stacked, 3)
    np.testing.assert_allclose(found, twin(state.sample(), corpus, stacked, 3), rtol=1e-10)
    monkeypatch.setattr(holdout, "_CELLS", 1)  # one document at a time
    np.testing.assert_allclose(holdout.log_weights(state.sample(), corpus, stacked, 3), found, rtol=1e-12)
    monkeypatch.setattr(holdout, "MAX_OF_ONE", 2)
    np.testing.assert_allclose(
        holdout.log_weights(state.sample(), corpus, stacked, 3), twin(state.sample(), corpus, stacked, 3), rtol=1e-10
    )


@pytest.mark.parametrize("burstiness", [False, None])
def test_documents_join_between_those_of_the_state(burstiness):
    """Each of two groups has words of its own, so that the new ones' clusters and topics are known."""
    groups = np.arange(40) % 2
    content = np.zeros((40, 12), int)
    rng = np.random.default_rng(0)
    for j, group in enumerate(groups):
        content[j, 6 * group : 6 * group + 6] = 1 + rng.multinomial(12, np.full(6, 1 / 6))
    corpus = Corpus(sp.csr_matrix(content))
    before = np.setdiff1d(np.arange(40), [0, 7, 8, 20, 39])
    known = corpus.subset(before)
    old = Gibbs().init(MC2(document_concentration=50.0, n_clusters=2, burstiness=burstiness), known, 0)
    assert len(np.unique(np.stack([old.cluster, groups[before]]), axis=1).T) == 2
    weights = holdout.log_weights(old.sample(), corpus.subset(np.setdiff1d(np.arange(40), before)), None, 0)
    topics = old.assignments.topic.copy()
    state = with_documents(old, old.model, corpus, before, np.exp(weights - weights.max(axis=1)[:, None]), 0, None)
    assert len(np.unique(np.stack([state.cluster, groups]), axis=1).T) == 2
    document = np.repeat(np.arange(40), np.diff(state.assignments.document_start))
    of_known = np.isin(document, before)
    assert (state.assignments.topic[of_known] == topics).all()
    of_group = groups[document]
    assert not set(state.assignments.topic[of_group == 0]) & set(state.assignments.topic[of_group == 1])
    assert state.assignments.n_km.sum() == state.content.sum()
    if burstiness is None:
        assert (state.repeats.size[of_known] == old.repeats.size).all()
        assert state.repeats.size.sum() == corpus.n_tokens
    assert state.omega == 50.0


def test_observations_that_were_kept_back_join_where_they_belong():
    """120 documents of two groups, ten standard deviations apart, of which twelve are kept back."""
    groups, rng = np.arange(120) % 2, np.random.default_rng(0)
    document = np.repeat(np.arange(120), 5)
    values = 10.0 * groups[document][:, None] + rng.standard_normal((600, 2))
    corpus = Corpus.from_observations(values, document)
    state = Gibbs().init(MC2(n_clusters=2).for_corpus(corpus), corpus, 0)
    assert len(holdout.draw_holdout(corpus, 0)) == 12
    assert len(np.unique(np.stack([state.cluster, groups]), axis=1).T) == 2
    assert not set(state.topic[groups[document] == 0]) & set(state.topic[groups[document] == 1])
