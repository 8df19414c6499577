"""Splits and merges of topics that emit observations: the exact posterior, and topics that are copies of another."""

import copy
import math

import numpy as np
import pytest
from helpers.crossed import first
from helpers.document_level_enumeration import log_document_level_topics
from helpers.document_level_states import assert_splits_and_merges_follow, held_state
from helpers.gibbs_chains import events, log_ratios, one_wrong
from helpers.gibbs_enumeration import partitions
from helpers.observed import log_values

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.families import BetaBernoulliVector, DiagonalNormalGamma, GammaPoissonVector, GaussWishart
from mc2core.inference import Gibbs
from mc2core.inference.gibbs import observed_moves
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.observations import Observations
from mc2core.inference.gibbs.observed_moves import split_and_merge_observed_topics
from mc2core.inference.gibbs.weights import Concentrations
from mc2core.inference.observed import quantised
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior.clustering import adjusted_rand_index

CALLS, V, ETA, OMEGA = 2000, 1.5, 1.2, 2.0
DOCUMENT = np.array([0, 0, 0, 1, 3, 3])
CLUSTER = np.array([0, 1, 1, 0], np.int32)
VALUES = {
    "numbers": np.array([[0.2, 9.0], [0.3, 6.0], [2.0, 1.0], [1.2, 2.0], [0.1, 5.5], [1.0, 4.5]]),
    "counts": np.array([[0, 3], [1, 2], [4, 0], [3, 1], [0, 5], [2, 1]]),
    "binary": np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]]),
}


@pytest.mark.parametrize(
    "family",
    first(
        [
            DiagonalNormalGamma(0.2, 0.6, 1.4, 0.5),
            BetaBernoulliVector(0.6, 1.4),
            GaussWishart(0.2, 0.6, 1.4, 0.5),
            GammaPoissonVector(1.3, 0.8),
        ]
    ),
    ids=lambda family: family.name,
)
@pytest.mark.parametrize("most", first([6, 4]))
def test_splits_and_merges_have_the_exact_posterior(family, most, monkeypatch):
    """Against the 203 partitions of six observations, or those whose topics have at most ``most``, which nothing else
    leaves.
    """
    monkeypatch.setattr(observed_moves, "MAX_ALLOCATED", most)
    values, z = VALUES[family.content_kind], tuple(CLUSTER)
    emitted = {topics: log_values(family, values, topics) for topics in partitions(6)}

    def exact_of(omega, v, eta):
        logs = {}
        for topics in emitted:
            if np.bincount(topics).max() > most:
                continue
            n_jm = np.zeros((4, max(topics) + 1), int)
            np.add.at(n_jm, (DOCUMENT, list(topics)), 1)
            logs[z, topics] = log_document_level_topics(n_jm, z, omega, v, eta) + emitted[topics]
        total = np.logaddexp.reduce(list(logs.values()))
        return {state: math.exp(value - total) for state, value in logs.items()}

    numbers = {"omega": OMEGA, "v": V, "eta": ETA}
    exact = exact_of(**numbers)
    table = np.vstack([events(exact, 0, 6), log_ratios(exact, [exact_of(**wrong) for wrong in one_wrong(numbers)])])
    corpus = Corpus.from_observations(values, DOCUMENT, n_documents=4, kind=family.content_kind)
    observations = Observations.from_corpus(corpus, family)
    start = np.concatenate([[0], np.cumsum(corpus.document_lengths)])
    state = Assignments(CLUSTER.copy(), np.arange(6, dtype=np.int32), start, np.full(6, 0.1), 0.4)
    state.count()
    concentrations = Concentrations(1.0, V, ETA)
    chain = held_state(state, corpus, concentrations, OMEGA, np.full((2, 7), 1 / 7))

    def propose(state, proportions, key):
        return split_and_merge_observed_topics(state, observations, proportions, OMEGA, concentrations, key, 3)

    assert_splits_and_merges_follow(chain, propose, exact, table, CALLS)


@pytest.mark.parametrize("family", [DiagonalNormalGamma(0.2, 0.6, 1.4, 0.5), BetaBernoulliVector(0.6, 1.4)])
def test_observations_go_to_sides_by_their_densities(family, monkeypatch):
    """Any probability of a split that is the same both ways leaves the posterior: this one is compared by itself."""
    values, real, seen = VALUES[family.content_kind], observed_moves._allocate_sequentially, []
    corpus = Corpus.from_observations(values, np.zeros(6, int), kind=family.content_kind)
    observations = Observations.from_corpus(corpus, family)
    rows, prior = (
        family.rows(observations.values, observations.scale),
        family.prior(family.n_parameters(values.shape[1])),
    )

    def allocate_sequentially(stream, n, fixed, first_topic, least, eps, tokens, constants, parts, *given):
        found = real(stream, n, fixed, first_topic, -math.inf, eps, tokens, constants, parts, *given)
        members, component, known = [[fixed], []], parts.component[:n], 0.0
        of_part = 0.5 * constants.omega * parts.tau[0]  # the two halves of what the document expects
        for i in set(range(n)) - {fixed}:
            logs = []
            for group in members:
                natural = prior + rows[parts.members[group]].sum(axis=0)
                gained = family.log_marginal(natural + rows[parts.members[i]]) - family.log_marginal(natural)
                logs.append(math.log(len(group) + of_part) + float(gained))
            known += logs[component[i]] - np.logaddexp(*logs)
            members[component[i]].append(i)
        seen.append((n, found[0], known))
        return found

    monkeypatch.setattr(observed_moves, "_allocate_sequentially", allocate_sequentially)
    for i in range(40):
        topic = np.arange(6, dtype=np.int32) % 2
        state = Assignments(np.zeros(1, np.int32), topic, np.array([0, 6]), np.full(2, 0.3), 0.4)
        state.count()
        given = OMEGA, Concentrations(1.0, V, ETA), streams.key(i, "test"), 1
        split_and_merge_observed_topics(state, observations, np.array([[0.3, 0.3, 0.4]]), *given)
    assert max(n for n, _, _ in seen) == 6
    assert len(seen) > 10
    for _, found, known in seen:
        assert found == pytest.approx(known)


@pytest.mark.parametrize("n_topics", [1, 2])
def test_a_split_weighs_as_much_as_the_merge_that_undoes_it_less(n_topics, monkeypatch):
    """The logarithms below which a uniform number accepts the split, and the merge, by bisection: they sum to 0."""
    family, seen = DiagonalNormalGamma(0.2, 0.6, 1.4, 0.5), []
    corpus = Corpus.from_observations(VALUES["numbers"], DOCUMENT, n_documents=4)
    topic, start = (
        np.arange(6, dtype=np.int32) // 3 % n_topics,
        np.concatenate([[0], np.cumsum(corpus.document_lengths)]),
    )
    state = Assignments(CLUSTER.copy(), topic, start, np.full(n_topics, 0.3), 1.0 - 0.3 * n_topics)
    state.count()
    monkeypatch.setattr(observed_moves.ObservedMoves, "propose", lambda one, *_: seen.append(one) or np.zeros(2, int))
    tau = np.random.default_rng(0).dirichlet(np.ones(n_topics + 1), 2)
    given = OMEGA, Concentrations(1.0, V, ETA), streams.key(0, "test"), 1
    split_and_merge_observed_topics(state, Observations.from_corpus(corpus, family), tau, *given)
    assert seen[0].constants == (OMEGA, V, ETA, 0.0, 0.0)  # of the ratio, which a twin checks for topics of words

    def call(moves, name, item, uniforms, *given):
        stream, numbers, moves = np.zeros(2, np.uint64), iter(uniforms), copy.deepcopy(moves)
        streams.seek(stream, streams.key(0, "test"), item)
        monkeypatch.setattr(observed_moves, "_uniform", lambda _: next(numbers))
        return getattr(moves, name)(stream, 0, *given), moves

    def threshold(accepts):
        low, high = -40.0, 40.0
        while high - low > 1e-8:
            middle = (low + high) / 2
            low, high = (middle, high) if accepts(math.exp(middle)) else (low, middle)
        return low

    # the first item that does not leave all in one part; the partner's number is that of the last slot
    item, split = next(
        (item, moves) for item in range(40)
        for made, moves in [call(seen[0], "_split", item, [1e-30], n_topics, n_topics)] if made
    )  # fmt: skip
    after = n_topics + 1, n_topics + 1
    merged = call(split, "_merge", item, [0.999, 1e-30], *after)[1]
    np.testing.assert_array_equal(merged.tokens.topic, seen[0].tokens.topic)
    of_split = threshold(lambda u: call(seen[0], "_split", item, [u], n_topics, n_topics)[0])
    assert of_split == pytest.approx(-threshold(lambda u: call(split, "_merge", item, [0.999, u], *after)[0]), abs=1e-6)


def test_no_topic_is_merged_with_an_empty_slot():
    family = DiagonalNormalGamma()
    corpus = Corpus.from_observations(VALUES["numbers"], DOCUMENT, n_documents=4)
    natural = np.tile(family.prior(family.n_parameters(2)), (3, 1))
    moves = observed_moves.ObservedMoves(Observations.from_corpus(corpus, family), *[None] * 5, natural)
    assert moves._weights(natural[0], 2.0, natural, np.array([2, 0, 1])).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.slow
def test_copies_of_a_topic_become_one():
    """Chains start from more pieces of topics than there are topics; sweeps alone left 7 of them here."""
    rng = np.random.default_rng(0)
    tau, centres = rng.dirichlet(np.full(5, 0.4), 3), 2.0 * rng.standard_normal((5, 6))
    cluster = np.arange(90) % 3
    topic = np.concatenate([rng.choice(5, 20, p=rng.dirichlet(20 * tau[k] + 1e-9)) for k in cluster])
    values = centres[topic] + rng.standard_normal((1800, 6))
    corpus = Corpus.from_observations(values, np.repeat(np.arange(90), 20))
    found = fit(corpus, MC2(), Gibbs(), iterations=20, seed=1, progress=False)
    assert found.posterior.representative.n_topics == 5
    assert adjusted_rand_index(found.state.arrays()["topic"], topic) > 0.85


def test_topics_for_words_stay_in_the_order_of_observations():
    """They were sorted within documents, in place, so that topics began with observations of others."""
    corpus = Corpus.from_observations(np.arange(5.0)[:, None], [0, 0, 0, 1, 1])
    topic = np.array([2, 0, 2, 1, 0])
    given = topic.astype(np.int32)
    quantised(corpus, given)
    np.testing.assert_array_equal(given, topic)
