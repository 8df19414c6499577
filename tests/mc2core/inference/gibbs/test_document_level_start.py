"""The start of a chain with a document level, and how little is left of it."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.crossed import first
from helpers.document_level_states import assignments_at, corpus_and_state, log_contexts, log_topics_of_cluster
from helpers.fits import gibbs
from helpers.gibbs_enumeration import log_clusters, partitions
from helpers.gibbs_transitions import FAMILIES
from helpers.gibbs_twin import small_corpus
from scipy.special import logsumexp

from mc2core import Corpus
from mc2core.inference import Gibbs
from mc2core.inference.gibbs import assignments as seeding
from mc2core.inference.gibbs import continued, holdout
from mc2core.inference.gibbs import start as starting
from mc2core.inference.gibbs.cluster_odds import log_clustering
from mc2core.inference.gibbs.weights import Concentrations, GammaPrior
from mc2core.inference.running.loop import fit
from mc2core.models import HDP, MC2
from mc2core.posterior import hierarchy

CLUSTERS, DOCUMENTS, TOPICS, WORDS, LENGTH = 6, 150, 10, 100, 60


def simulated():
    """150 documents of 6 clusters, each of two topics of its own ten, and the clusters."""
    rng = np.random.default_rng(4)
    words = rng.dirichlet(np.full(WORDS, 0.05), TOPICS)
    cluster = rng.integers(0, CLUSTERS, DOCUMENTS)
    tau = rng.dirichlet(np.full(TOPICS, 0.2), CLUSTERS) + 1e-9
    content = [rng.multinomial(LENGTH, rng.dirichlet(20.0 * tau[k]) @ words) for k in cluster]
    return Corpus(sp.csr_matrix(np.array(content))), cluster


@pytest.mark.slow
@pytest.mark.parametrize("start", [1, 100])
def test_clusters_do_not_depend_on_how_many_a_chain_starts_from(start):
    corpus, _ = simulated()
    engine = gibbs(document_level=True, start_clusters=start, start_topics=20)
    found = fit(corpus, *engine, iterations=40, seed=0, progress=False).posterior.representative.cluster
    assert abs((np.bincount(found) >= 3).sum() - CLUSTERS) <= 1, np.bincount(found)


@pytest.mark.slow
def test_a_chain_soon_has_the_clusters_of_its_topics():
    corpus, truth = simulated()
    engine = gibbs(document_level=True, start_topics=20)
    for seed in range(2):
        cluster = fit(corpus, *engine, iterations=20, seed=seed, progress=False).posterior.representative.cluster
        # documents of a pair are together in both or apart in both
        together, should = cluster[:, None] == cluster, truth[:, None] == truth
        assert (together == should).mean() > 0.9


@pytest.mark.parametrize("sign", first([1, -1]))
def test_of_several_starts_the_one_that_predicts_best_goes_on(monkeypatch, sign):
    """On documents that none of them has seen, whatever the lead; sign -1 turns the choice round."""
    monkeypatch.setattr(starting, "_LEAD", 0.0)
    monkeypatch.setattr(starting, "_LEAD_ERRORS", 0.0)
    monkeypatch.setattr(starting, "_TOPIC_ERRORS", 0.0)
    corpus, _ = simulated()
    weigh, join, tried, chosen = holdout.log_weights, continued.with_documents, [], []

    def weighed(sample, new, *more):
        weights = weigh(sample, new, *more)
        score = logsumexp(weights, axis=1, keepdims=True)
        tried.append((score.sum(), sample.cluster, new.n_documents))
        return weights + (sign - 1) * score

    def joined(old, *more):
        chosen.append(old.cluster.copy())
        return join(old, *more)

    monkeypatch.setattr(holdout, "log_weights", weighed)
    monkeypatch.setattr(continued, "with_documents", joined)
    state = gibbs(document_level=True).init(corpus, 0)
    scores, clusters, n_new = zip(*tried, strict=True)
    assert len(set(scores)) == 2  # from few and many topics; 150 documents are too few for more clusters
    best = max(range(2), key=lambda i: sign * scores[i])
    assert (chosen[0] == clusters[best]).all()
    assert set(n_new) == {DOCUMENTS // 10}
    assert len(state.cluster) == DOCUMENTS == len(chosen[0]) + DOCUMENTS // 10


def test_documents_of_a_start_have_the_types_of_compiled_kernels(tmp_path, monkeypatch):
    """A loaded corpus has read-only arrays and wide row pointers, which a subset, without those kept back, has not."""
    simulated()[0].save(tmp_path / "corpus")
    corpus, begin, seen = Corpus.load(tmp_path / "corpus"), starting.start_topics, []
    monkeypatch.setattr(
        starting, "start_topics", lambda model, known, *more: (seen.append(known), begin(model, known, *more))[1]
    )
    gibbs(document_level=True).init(corpus, 0)
    known = seen[0]
    assert known.n_documents == DOCUMENTS - DOCUMENTS // 10
    for name in ("indptr", "indices", "data"):
        one, other = getattr(known.content, name), getattr(corpus.content, name)
        assert (one.dtype, one.flags.writeable) == (other.dtype, other.flags.writeable)
    assert not corpus.content.data.flags.writeable


THREE = [starting.Start(20, 9), starting.Start(20, 36), starting.Start(100, 36)]


@pytest.mark.parametrize(
    ("scores", "starts", "chosen"),
    [
        ([-1000.0, -1001.0, -991.0], THREE, 0),  # a lead of less than 1 % is chance
        ([-1000.0, -999.0, -991.0], THREE, 1),
        ([-1000.0, -999.0, -989.5], THREE, 1),
        ([-1000.0, -1001.0, -989.0], THREE, 2),
        ([-1000.0, -999.0], THREE[:2], 1),
        ([-1002.0, -1000.0, -1001.0], [THREE[0], THREE[1], THREE[1]], 1),
        ([-1002.0, -1001.0, -1000.0], [THREE[0]] * 3, 2),
    ],
)
def test_a_start_of_more_clusters_needs_a_lead_of_1_percent(scores, starts, chosen):
    assert starting.best_start([np.full(50, score / 50) for score in scores], starts) == chosen


@pytest.mark.parametrize(
    ("starts", "spread", "chosen"),
    [(THREE[1:], 0.9, 1), (THREE[1:], 1.1, 0), (THREE[:2], 2.9, 1), (THREE[:2], 3.1, 0)],
)
def test_more_must_lead_by_standard_errors(starts, spread, chosen):
    """100 documents that differ by 0.3 on average and by ``spread`` in standard deviation: three errors, or one."""
    of_less = np.full(100, -10.0)
    gains = 0.3 + spread * np.tile([1.0, -1.0], 50)
    assert starting.best_start([of_less, of_less + gains], starts) == chosen


@pytest.mark.parametrize(("sign", "chosen"), [(1, 1), (-1, 0)])
def test_equal_starts_are_compared_by_their_score_alone(sign, chosen):
    gains = sign * 0.01 + 5.0 * np.tile([1.0, -1.0], 50)
    assert starting.best_start([np.full(100, -10.0), -10.0 + gains], THREE[:1] * 2) == chosen


def test_a_few_documents_have_one_start(monkeypatch):
    """Of fewer than a hundred documents none is held out, by which starts could be compared."""
    corpus, begun = simulated()[0].subset(np.arange(99)), []
    begin = starting.start_assignments
    monkeypatch.setattr(starting, "start_assignments", lambda *given: (begun.append(given[2:4]), begin(*given))[1])
    gibbs(document_level=True).init(corpus, 0)
    assert begun == [(20, 18)]  # 18 cubed are the tokens


def test_all_seeds_hold_out_the_same_documents(monkeypatch):
    corpus, before = simulated()[0], []
    monkeypatch.setattr(starting, "start_topics", lambda model, known, *more: before.append(known) or 1 / 0)
    for seed in (0, 1):
        with pytest.raises(ZeroDivisionError):
            gibbs(document_level=True).init(corpus, seed)
    first, second = before
    assert first.n_documents < corpus.n_documents
    assert (first.content != second.content).nnz == 0


def test_starts_follow_from_corpus_and_settings(monkeypatch):
    corpus, few, many = simulated()[0], 21, 84

    def tried(model, clusters=(20, 100), topics=(few, many), dimension=10):
        return [tuple(one) for one in starting.starts_to_try(model, corpus, clusters, topics, dimension)]

    assert tried(MC2()) == [(20, few), (20, many), (100, many)]
    assert tried(MC2(), [1000]) == [(DOCUMENTS, few), (DOCUMENTS, many)]
    assert tried(MC2(), [20], [30]) == [(20, 30)]
    assert tried(MC2(n_clusters=8)) == [(16, few), (16, many), (16, many)]
    assert tried(MC2(n_clusters=100), topics=[30]) == [(DOCUMENTS, 30)] * 3
    assert tried(MC2(n_clusters=8), dimension=hierarchy.MAX_CELLS // 8) == [(8, few), (8, many), (8, many)]
    assert tried(HDP(document_level=True)) == [(None, many)]
    monkeypatch.setattr(starting, "_MAX_TRIED", corpus.n_tokens - 1)
    assert tried(MC2()) == [(20, many)]
    assert tried(MC2(n_clusters=8)) == [(8, many)]


@pytest.mark.parametrize(
    ("n_documents", "start_clusters", "has_embeddings", "tried"),
    [
        (5000, None, False, [20, 100]),
        (500, None, False, [20, 50]),
        (150, None, False, [20]),
        (5000, 40, False, [40]),
        (5000, None, True, [100]),
        (5000, 40, True, [200]),
        (90, None, True, [20]),
    ],
)
def test_clusters_of_starts_follow_the_documents(n_documents, start_clusters, has_embeddings, tried):
    corpus = Corpus(np.ones((n_documents, 1), int))
    assert starting.clusters_to_try(corpus, start_clusters, has_embeddings) == tried


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (np.zeros((3, 5), int), [1, 4]),
        (np.ones((1000, 15), int), [25, 100]),  # 15,000 tokens
        (np.ones((30, 3000), int), [120, 180]),  # 90,000 tokens, 45 to the third: few long documents of many words
        (np.ones((10, 8000), int), [320]),  # longer ones
        (np.full((30, 600), 5), [45, 180]),  # of few words
        (np.ones((900, 100), int), [45, 180]),  # short
        (np.kron(np.eye(30, dtype=int), np.ones((1, 300), int)), [30, 84]),  # 9,000 words, but 300 tokens a document
    ],
)
def test_topics_of_the_start_follow_tokens_words_and_documents(content, known):
    corpus = Corpus(content, contexts={"year": np.zeros(len(content))})
    assert starting.topics_to_try(corpus) == known


@pytest.mark.slow
def test_topics_are_joined_and_dissolved_while_they_settle(monkeypatch):
    """30 documents of 200 words, ten topics: 11 of them are found, 13 or 14 where none are joined and dissolved."""
    rng = np.random.default_rng(1)
    words, tau = rng.dirichlet(np.full(300, 0.02), TOPICS), rng.dirichlet(np.full(TOPICS, 1.0), 2)
    content = [rng.multinomial(200, rng.dirichlet(5.0 * tau[j % 2]) @ words) for j in range(30)]
    corpus, model, found = Corpus(np.array(content)), MC2(burstiness=False), []
    for after in (starting._CONSOLIDATING, ()):
        monkeypatch.setattr(starting, "_CONSOLIDATING", after)
        states = [Gibbs().init(model, corpus, seed) for seed in range(3)]
        found.append([state.assignments.n_topics for state in states])
    assert np.mean(found[0]) <= TOPICS + 2 < np.mean(found[1]), found


@pytest.mark.parametrize(
    ("content", "after"), [(np.ones((900, 100), int), [20, 25, 30, 35, 40]), (np.ones((30, 3000), int), [])]
)
def test_fine_topics_of_few_long_documents_are_left(monkeypatch, content, after):
    numbers = []
    monkeypatch.setattr(starting, "_consolidate_topics", lambda *given: numbers.append(given[-1]))
    state = SimpleNamespace(
        model=MC2(),
        concentrations=SimpleNamespace(most_clusters=math.inf),
        observations=None,
        move_tokens=lambda *of: None,
        move_all_but_tokens=lambda *of, **more: None,
    )
    starting._burn_in(state, Corpus(content), "collapsed", 0, 40, None, None, 4, 20)
    assert numbers == after
    numbers.clear()
    state.observations = object()
    starting._burn_in(state, Corpus(content), "collapsed", 0, 40, None, None, 4, 20)
    assert numbers == []


@pytest.mark.parametrize("told", first([{}, {"n_clusters": CLUSTERS}]))
def test_a_start_has_the_same_bits_on_two_threads(told):
    corpus = simulated()[0].subset(np.arange(100))  # of so many some are kept back
    one, two = (gibbs(document_level=True, threads=n, **told).init(corpus, 3).arrays() for n in (1, 2))
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


def agreement(truth, found):
    """Adjusted Rand index by its definition over pairs of documents."""
    together, should = (np.triu(x[:, None] == x, 1).sum() for x in (found, truth))
    both = np.triu((found[:, None] == found) & (truth[:, None] == truth), 1).sum()
    expected = together * should / (len(truth) * (len(truth) - 1) / 2)
    return (both - expected) / ((together + should) / 2 - expected)


def test_clusters_of_short_documents_are_kept():
    """Ten words a document say little of its topics: clusters found beside settled topics were one to three."""
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(300, 0.02), 12)
    tau = rng.dirichlet(np.full(12, 0.3), 8) + 1e-9
    truth = rng.integers(0, 8, 400)
    content = [rng.multinomial(10, rng.dirichlet(30.0 * tau[k]) @ words) for k in truth]
    agreements = []
    for seed in range(2):
        fitted = fit(
            Corpus(sp.csr_matrix(np.array(content))), *gibbs(document_level=True), iterations=30, seed=seed,
            progress=False,
        )  # fmt: skip
        found = fitted.posterior.cluster
        agreements.append(agreement(truth, found))
    assert np.mean(agreements) > 0.35


@pytest.mark.slow
def test_clusters_that_are_told_are_joined_from_twice_as_many(monkeypatch):
    """All that are told are in use, so that none can be split: where k-means joined two and halved a third, it stays
    so (an agreement of .76). Of twice as many each is of one class.
    """
    truth = np.repeat(np.arange(CLUSTERS), 30)
    wrong = np.where(truth == 1, 0, truth)
    wrong[np.flatnonzero(truth == 2)[::2]] = 1
    halves = 2 * truth + np.arange(len(truth)) % 2

    def clustered(known, contexts, n, rng, directions):
        assert known.n_documents == len(seen)
        return (wrong if n == CLUSTERS else halves)[seen]

    monkeypatch.setattr(seeding, "cluster_documents", clustered)
    join, laws = starting._merge_clusters, []

    def noted(state, corpus):
        before = state.concentrations.partition, state.assignments.n_clusters
        join(state, corpus)
        laws.append((*before, state.concentrations.partition))

    monkeypatch.setattr(starting, "_merge_clusters", noted)
    rng = np.random.default_rng(1)
    words = rng.dirichlet(np.full(300, 0.05), 15)
    tau = rng.dirichlet(np.full(15, 0.5), CLUSTERS) + 1e-9
    corpus = Corpus(np.array([rng.multinomial(100, rng.dirichlet(20.0 * tau[k]) @ words) for k in truth]))
    seen = np.setdiff1d(np.arange(len(truth)), holdout.draw_holdout(corpus, 0))
    state = Gibbs().init(MC2(n_clusters=CLUSTERS).for_corpus(corpus), corpus, 0)
    assert agreement(truth, state.cluster) > 0.9
    # documents join clusters of the same b before and after, and there may be twice as many before
    assert len(laws) == 3
    for before, n_clusters, after in laws:
        assert CLUSTERS < n_clusters <= 2 * CLUSTERS == before.most
        assert (after.most, after.alpha, after.each) == (CLUSTERS, 10.0 * CLUSTERS, before.each)


def test_a_start_that_joins_clusters_warns_of_nothing(caplog):
    """Columns of contexts without names are those of the corpus itself."""
    corpus = small_corpus(2)
    Gibbs().init(MC2(n_clusters=3, contexts=list(corpus.contexts)).for_corpus(corpus), corpus, 0)
    assert not caplog.records


@pytest.mark.parametrize("n_clusters", [math.inf, 5])
def test_a_clusterings_probability_is_the_sum_over_tables(n_clusters):
    """ln p of the 15 partitions of four documents, with two rests of epsilon, up to a constant, tau summed out exactly;
    and the priors.
    """
    contexts, start, n_jm = corpus_and_state(FAMILIES)
    alpha, v, eta, omega = 1.3, 2.0, 0.8, 2.5
    priors = {"group": GammaPrior(2.0, 0.5), "topic": GammaPrior(1.0, 3.0)}
    differences = []
    for z, rest in itertools.product(partitions(4), (0.3, 1e-3)):
        assignments = assignments_at(z, start)
        eps = assignments.topic_weights * (1.0 - rest) / assignments.topic_weights.sum()
        assignments.topic_weights, assignments.remaining = eps, rest
        exact = log_clusters(z, alpha, n_clusters) + log_contexts(contexts, z)
        exact += len(eps) * np.log(eta) - np.log(eps).sum() + (eta - 1.0) * np.log(rest)
        exact += sum(log_topics_of_cluster(n_jm[np.array(z) == k], eps, v, omega) for k in range(max(z) + 1))
        state = SimpleNamespace(
            assignments=assignments,
            concentrations=Concentrations(alpha, v, eta, n_clusters),
            omega=omega,
            proportions=np.zeros((max(z) + 1, 4)),
            contexts=contexts,
            priors={},
        )
        found = log_clustering(state)
        differences.append(found - exact)
        state.priors = priors
        more = log_clustering(state) - found
        assert more == pytest.approx(np.log(alpha) - 0.5 * alpha - 3.0 * eta, abs=1e-9)
    assert np.ptp(differences) < 1.0
