"""The parallel sweep of the document level: its law of psi, its transitions given psi, a plain twin, its posterior."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fits import gibbs
from helpers.gibbs_chains import DOCUMENTS, assert_chain_follows, corpus_of, document_level_exact_of, fixed
from helpers.gibbs_transitions import TopicDraw, assert_invariant, paths, take_lane
from helpers.gibbs_twin import CONCENTRATIONS, assert_counted, assignments_of, draw_or_stay, small_corpus, tokens_of
from scipy.special import gammaln, hyp1f1

from mc2core.compute import streams
from mc2core.compute.simd import LANES, find_equal, weigh_gathered
from mc2core.compute.threads import thread_budget
from mc2core.inference import shards
from mc2core.inference.gibbs import parallel, state, tokens
from mc2core.inference.gibbs.assignments import topics_by_word
from mc2core.inference.gibbs.tokens import DocumentRows
from mc2core.inference.gibbs.weights import Concentrations
from mc2core.inference.shards import ShardedCorpus, step_file, visit, write_shards


# -- psi -----------------------------------------------------------------------------------------------------------
def visible_psi(rows, sums):
    """(V, M): psi where it is visible, 0 elsewhere."""
    psi = np.zeros((len(rows.size), len(sums)))
    for w, size in enumerate(rows.size):
        here = slice(rows.start[w], rows.start[w] + size)
        assert len(np.unique(rows.topic[here])) == size
        psi[w, rows.topic[here]] = rows.x[here] / sums[rows.topic[here]]
    return psi


@pytest.mark.parametrize("s", [0.02, 0.3, 0.8])
def test_what_is_shown_of_psi_has_its_law(s):
    """3,000 draws of five topics, the fourth without tokens and the last not active.

    An entry is Beta(a, A - a), and shown with probability 1 - exp(-lambda psi), so its moments are Kummer functions;
    products of two words of a topic hold its sum too. 6 standard errors, some 150 figures.
    """
    corpus = small_corpus(1)
    topic = assignments_of(corpus).topic
    topic[topic == 3] = 0
    is_active, expected = np.array([True, True, True, True, False]), np.array([30.0, 2.0, 0.4, 0.01, 5.0])
    _, word = tokens_of(corpus)
    n = np.zeros((corpus.n_words, 5))
    np.add.at(n, (word, topic), 1)
    by_word = topics_by_word(corpus.content, topic)
    draws, moments = 3000, []
    for i in range(draws):
        rows, sums = parallel.draw_rows(*by_word, is_active, expected, s, 7, i, None)
        psi = visible_psi(rows, sums)
        moments.append(np.stack([psi > 0, psi, psi**2, psi * np.roll(psi, 1, axis=0)]))
    moments = np.array(moments)
    assert not moments[..., 4].any()
    a, rate = (n + s)[:, :4], parallel.PSEUDO_OBSERVATIONS * (expected + corpus.n_words * s)[:4]
    total = a.sum(axis=0)
    exact = np.stack([
        1 - hyp1f1(a, total, -rate),
        a / total * (1 - hyp1f1(a + 1, total + 1, -rate)),
        a * (a + 1) / (total * (total + 1)) * (1 - hyp1f1(a + 2, total + 2, -rate)),
    ])  # fmt: skip
    # E psi psi' (1 - exp(-lambda psi)) (1 - exp(-lambda psi')): both tilts together are of the sum of the two
    b = np.roll(a, 1, axis=0)
    both = a * b / (total * (total + 1)) * (
        1 - hyp1f1(a + 1, total + 2, -rate) - hyp1f1(b + 1, total + 2, -rate) + hyp1f1(a + b + 2, total + 2, -rate)
    )  # fmt: skip
    exact = np.concatenate([exact, both[None]])
    found, spread = moments.mean(axis=0)[..., :4], moments.std(axis=0)[..., :4]
    known = spread > 0
    np.testing.assert_allclose(found[~known], exact[~known], atol=2e-3)
    error = np.maximum(spread / np.sqrt(draws), exact * 1e-3)
    assert (abs(found - exact)[known] < 6 * error[known]).all()


def test_words_shown_by_an_urn_have_the_share_of_their_dirichlet():
    """Of five words without tokens those that some of R pseudo-observations are of; the mean share of these is exact,
    as is how many they are. 20,000 draws, 6 standard errors.
    """
    n_words, s, n_pseudo, mass, n_draws = 5, 0.8, 3, 2.5, 20_000
    stream, taken, urn = np.zeros(2, np.uint64), np.array([True, *[False] * 5, True]), np.empty(n_pseudo, np.int64)
    found = np.zeros((n_draws, 2))
    visible = parallel.VisibleWords(np.zeros(2, np.int64), np.zeros(1, np.int64), np.empty(5, np.int32), np.empty(5))
    for i in range(n_draws):
        streams.seek(stream, np.uint64(3), i)
        n = parallel.draw_visible(stream, n_pseudo, n_words, s, mass, taken, urn, 0, visible)
        found[i] = n, visible.x[:n].sum() / mass
        assert set(visible.word[:n]) <= set(range(1, 6))
        taken[visible.word[:n]] = False
    total = n_words * s
    unseen = np.exp(gammaln(total) - gammaln(total + n_pseudo) + gammaln(total - s + n_pseudo) - gammaln(total - s))
    number = n_words * (1.0 - unseen)
    exact = number, (s * number + n_pseudo) / (total + n_pseudo)
    assert (abs(found.mean(axis=0) - exact) < 6 * found.std(axis=0) / np.sqrt(n_draws)).all()


def test_new_topics_have_the_prior_of_the_rest():
    """Means over 4,000 draws of what is broken off: of epsilon's rest by GEM(eta), of tau's as epsilon's."""
    assignments = assignments_of(small_corpus(1))
    rng, tau = np.random.default_rng(0), np.array([[0.2, 0.1, 0.1, 0.1, 0.1, 0.4], [0.1, 0.1, 0.1, 0.1, 0.0, 0.6]])
    law, smallest, rows = Concentrations(1.0, 4.0, 2.5), 0.01, []
    for _ in range(4000):
        epsilon, remaining, wider = parallel.instantiate(assignments, tau, law, smallest, rng)
        new = epsilon[5:]
        assert (new > smallest).all()
        assert epsilon.sum() + remaining == pytest.approx(1.0)
        np.testing.assert_allclose(wider.sum(axis=1), 1.0)
        np.testing.assert_array_equal(wider[:, :5], tau[:, :-1])
        # GEM(eta) has eta x**-1 (1 - x)**(eta - 1) dx atoms of relative weight x
        shares = wider[:, 5:-1].sum(axis=1) / tau[:, -1] - new.sum() / assignments.remaining
        rows.append([len(new), new.sum(), *shares])
    rows = np.array(rows)
    x = np.linspace(smallest / assignments.remaining, 1, 200_001)
    x = (x[1:] + x[:-1]) / 2
    density = 2.5 * (1 - x) ** 1.5 * (x[1] - x[0])
    exact = [(density / x).sum(), density.sum() * assignments.remaining, 0.0, 0.0]
    assert (abs(rows.mean(axis=0) - exact) < 5 * rows.std(axis=0) / np.sqrt(4000)).all()


# -- tokens given psi ----------------------------------------------------------------------------------------------
@numba.njit
def compiled_weigh_gathered(values, places, row, dense, weights, first):
    return weigh_gathered(values, places, row, dense, weights, first)


@numba.njit
def compiled_find_equal(numbers, first, number):
    return find_equal(numbers, first, np.int32(number))


def rows_of(x):
    """Rows with the entries of (V, M) ``x`` above 0."""
    size = (x > 0).sum(axis=1)
    rows = parallel.WordRows(
        np.arange(len(x) + 1) * LANES, size, np.zeros(len(x) * LANES, np.int32), np.zeros(len(x) * LANES, np.float32)
    )
    for w, row in enumerate(x):
        visible = np.flatnonzero(row)
        rows.topic[w * LANES : w * LANES + len(visible)] = visible
        rows.x[w * LANES : w * LANES + len(visible)] = row[visible]
    return rows


@pytest.mark.parametrize("omega", [1e-3, 0.7, 30.0])
def test_sweep_leaves_its_posterior_given_psi_invariant(omega, monkeypatch):
    """Four tokens of one document, four topics of which words show some; the last token's is not visible and stays."""
    corpus = corpus_of([[0, 0, 1, 2]], 3)
    x = np.array([[0.5, 1.5, 0.01, 0.0], [2.0, 0.0, 0.3, 0.0], [0.4, 0.2, 0.0, 0.0]])
    rows = rows_of(x)
    sums, tau, words = np.array([3.0, 2.0, 0.5, 1.0]), np.array([[0.5, 0.2, 0.1, 0.15, 0.05]]), [0, 0, 1, 2]
    documents = DocumentRows.from_counts(corpus.content, np.array([0, 4]), np.zeros(1, np.int32))
    monkeypatch.setattr(parallel, "weigh_gathered", compiled_weigh_gathered)
    monkeypatch.setattr(parallel, "find_equal", compiled_find_equal)
    monkeypatch.setattr(parallel, "_fetch_row", lambda *_: None)
    monkeypatch.setattr(tokens, "find_lane", take_lane)
    for name in ("find_block", "find_topic"):
        monkeypatch.setattr(tokens, name, getattr(tokens, name).py_func)
    states = [
        (*moving, 3) for moving in itertools.product(*(np.flatnonzero(x[w]).tolist() for w in words[:3]))
    ]  # fmt: skip
    log_pi = []
    for topics in states:
        prior, n = omega * tau[0, :-1], np.bincount(topics, minlength=4)
        log_pi.append((gammaln(prior + n) - gammaln(prior)).sum())
        log_pi[-1] += sum(np.log(x[w, m] / sums[m]) for w, m in zip(words[:3], topics[:3], strict=True))
    matrix = np.zeros((len(states), len(states)))
    inverse = (1 / sums).astype(np.float32)
    for i, topics in enumerate(states):

        def run(topics=topics):
            topic = np.array(topics, np.int32)
            assert parallel._sweep_block(np.uint64(0), 0, 1, 0, documents, rows, tau, omega, inverse, topic) == -1
            return tuple(topic.tolist())

        for probability, result in paths(
            run,
            parallel,
            ("_sweep_block", "_enter", "_find_place", "_weigh", "_join", "draw_other"),
            monkeypatch,
            TopicDraw,
        ):
            matrix[i, states.index(result)] += probability
    assert_invariant(matrix, np.array(log_pi), 1e-6, 1e-5)
    assert (matrix > 0).all()


def plain_sweep(assignments, corpus, tau, omega, concentrations, s, seed, iteration):
    """Tokens in order of documents; float64; weights from scratch for every token."""
    document, word = tokens_of(corpus)
    topic, cluster = assignments.topic.copy(), assignments.cluster
    smallest = parallel.smallest_topic(corpus.n_tokens, concentrations.topic)
    rng = streams.generator(seed, "new topics", iteration)
    epsilon, _, tau = parallel.instantiate(assignments, tau, concentrations, smallest, rng)
    expected = tau[cluster[document], :-1].sum(axis=0)
    by_word = topics_by_word(corpus.content, topic)
    rows, sums = parallel.draw_rows(*by_word, epsilon > smallest, expected, s, seed, iteration, None)
    psi, stream = visible_psi(rows, sums), np.zeros(2, np.uint64)
    for j in range(corpus.n_documents):
        streams.seek(stream, streams.key(seed, "topics", iteration), j)
        for i in np.flatnonzero(document == j):
            # in the order of the word's row, which is any
            order = rows.topic[rows.start[word[i]] : rows.start[word[i]] + rows.size[word[i]]]
            if topic[i] not in order or len(order) == 1:
                continue
            n_j = np.bincount(np.delete(topic[document == j], i - np.searchsorted(document, j)), minlength=len(epsilon))
            weights = ((n_j + omega * tau[cluster[j], :-1]) * psi[word[i]])[order]
            topic[i] = order[draw_or_stay(weights, int(np.flatnonzero(order == topic[i])[0]), stream)]
    used = np.unique(topic)
    unused = np.setdiff1d(np.arange(len(epsilon)), used)
    left = tau[:, -1] + tau[:, unused].sum(axis=1)
    return np.searchsorted(used, topic), epsilon[used], np.column_stack([tau[:, used], left]), used


@pytest.mark.parametrize(("omega", "s"), [(0.6, 0.05), (25.0, 0.05), (25.0, 0.7)])
@pytest.mark.parametrize("seed", range(1, 4))
def test_sweep_equals_its_plain_twin(seed, omega, s):
    corpus = small_corpus(seed, mean=40)
    assignments = assignments_of(corpus, seed=seed)
    tau = np.random.default_rng(seed).dirichlet([0.7, 0.7, 0.7, 0.7, 0.7, 3.0], 3)
    before = assignments.topic.copy()
    topic, epsilon, expected, used = plain_sweep(assignments, corpus, tau, omega, CONCENTRATIONS, s, seed, 4)
    found = parallel.sweep_documents_apart(assignments, corpus, tau, omega, CONCENTRATIONS, s, seed, 4, None)
    assert (before != used[topic]).mean() > 0.1
    assert omega < 1 or used[-1] >= 5  # topics are born
    np.testing.assert_array_equal(assignments.topic, topic)
    np.testing.assert_allclose(assignments.topic_weights, epsilon, rtol=1e-12)
    assert assignments.topic_weights.sum() + assignments.remaining == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    assert_counted(assignments)


def test_threads_change_no_bit():
    corpus = small_corpus(1, n_documents=2500, n_words=1200, mean=60)
    tau, results = np.random.default_rng(1).dirichlet(np.full(6, 0.7), 3), []
    for threads in (1, 2, 3):
        assignments = assignments_of(corpus)
        with thread_budget(threads) as pool:
            found = parallel.sweep_documents_apart(assignments, corpus, tau, 5.0, CONCENTRATIONS, 0.05, 0, 1, pool)
        results.append((assignments.topic, assignments.topic_weights, found))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


class ShardsHere(ShardedCorpus):
    """Shards on disk whose tasks are done in this process, one after the other; each opens its shard anew."""

    def __init__(self, corpus, n_shards, folder):
        self.shards = write_shards(corpus, folder, n_shards)

    def run(self, arrays, work):
        path = self.shards.folder / "step-here.npz"
        with step_file(path, arrays):
            return [*visit(self.shards, path, work, range(len(self.shards.digests)))]


@pytest.mark.parametrize("n_shards", [3, 7])
def test_shards_change_no_bit(tmp_path, n_shards):
    corpus = small_corpus(1, n_documents=250, n_words=120, mean=60)
    tau, results = np.random.default_rng(1).dirichlet(np.full(6, 0.7), 3), []
    for sharded in (None, ShardsHere(corpus, n_shards, tmp_path)):
        assignments = assignments_of(corpus)
        before = assignments.topic.copy()
        found = parallel.sweep_documents_apart(assignments, corpus, tau, 5.0, CONCENTRATIONS, 0.05, 0, 1, None, sharded)
        results.append((assignments.topic, assignments.topic_weights, assignments.n_km, found))
    assert (before != assignments.topic).mean() > 0.1
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


SHARDED = {
    "settings": (DOCUMENTS, {"document_concentration": 0.5, "topic_word_prior": 0.4, "topic_concentration": 0.9}),
    "an empty document": ([*DOCUMENTS, [], [2, 2]], {}),
    "of three levels": (DOCUMENTS, {"model": "hdp", "document_level": True}),
    "shards alike": ([[0, 0, 1], [0, 1, 2]] * 6, {}),
    "a tenth is kept from the start": (
        [sorted([j % 3, j % 3, (j + 1) % 3]) for j in range(100)],
        {"start_clusters": 4},
    ),
}


@pytest.mark.parametrize(("case", "n_shards"), crossed(list(SHARDED), [1, 2, 3]))
def test_a_chain_on_shards_is_the_chain_of_this_process(tmp_path, monkeypatch, case, n_shards):
    """Start and all."""
    documents, settings = SHARDED[case]
    corpus, states = corpus_of(documents, 3), []
    monkeypatch.setattr(shards, "shards_of", lambda corpus, n: ShardsHere(corpus, n, tmp_path))
    for n in (None, n_shards):
        pair = gibbs(kernel="parallel", **{"document_level": True} | settings, n_shards=n)
        state = pair.init(corpus, 3)
        rows = [pair.step(corpus, state, 3, iteration) for iteration in range(1, 6)]
        states.append((rows, state.arrays()))
    assert states[0][0] == states[1][0]
    for name, array in states[0][1].items():
        np.testing.assert_array_equal(array, states[1][1][name], err_msg=name)


def test_a_token_without_a_finite_weight_is_found_on_its_shard(tmp_path):
    corpus, messages = small_corpus(1), []
    tau = np.random.default_rng(1).dirichlet(np.full(6, 0.7), 3)
    for sharded in (None, ShardsHere(corpus, 3, tmp_path)):
        with pytest.raises(ValueError, match=r"^document \d+: the weights of a token's topics") as caught:
            parallel.sweep_documents_apart(  # omega is no float32
                assignments_of(corpus), corpus, tau, 1e39, CONCENTRATIONS, 0.9, 0, 1, None, sharded
            )
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.slow
def test_posterior_of_the_sweep_without_splits_and_merges(monkeypatch):
    """The enumerated posterior of a chain in which no other move changes the topics of tokens, and in which many tokens
    stay in a sweep. It fails where topics in use are never small.
    """
    monkeypatch.setattr(state, "topic_proposals", lambda _: 0)
    monkeypatch.setattr(parallel, "PSEUDO_OBSERVATIONS", 0.5)
    monkeypatch.setattr(parallel, "smallest_topic", lambda *_: 0.15)
    corpus = corpus_of(DOCUMENTS, 3)
    engine = fixed(document_concentration=3.0, kernel="parallel", topic_word_prior=0.3, topic_concentration=2.0)
    assert_chain_follows(engine, corpus, document_level_exact_of(DOCUMENTS, 3, corpus), 4000)
