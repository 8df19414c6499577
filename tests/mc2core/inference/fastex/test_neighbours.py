"""Neighbour proposals: transition matrices against the enumerated posterior, and what would break them."""

import numpy as np
import pytest
from helpers.fastex_twin import (
    STATES,
    TINY,
    A,
    G,
    K,
    assert_invariant,
    log_joint,
    matrices,
    posterior,
    settings_of,
    small_corpus,
    uniforms_of,
)
from helpers.fits import fastex

from mc2core import Corpus
from mc2core.base import memory
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.inference.fastex import engine as fastex_engine
from mc2core.inference.fastex.components import MULTINOMIAL, ProposalSettings
from mc2core.inference.fastex.exact import ExactState
from mc2core.inference.fastex.hashed import HashedState
from mc2core.inference.fastex.neighbours import NeighbourState, _build_index, choose, find_neighbours

#: one document has fewer neighbours than there is room for, one has none, and neighbours are not mutual
GRAPH = np.array([[1, 2], [2, 0], [0, -1], [-1, -1]], np.int32)
EPS = 0.2
DEFECTS = ["own label inside v", "N for N_i", "stop at the first acceptance", "s_cur with the document inside"]


def state_of(cluster, n_proposals=4, graph=GRAPH, corpus=TINY, n_clusters=K, eps=EPS):
    visits = ProposalSettings(graph.shape[1], 100, n_proposals, eps, ())
    return NeighbourState(corpus, settings_of(n_clusters=n_clusters, visits=visits), np.array(cluster), graph)


def scores_without(cluster, j):
    """(K,) ln p(y_j = k, x) but for a constant, from the joint density of the model."""
    moved = np.tile(cluster, (K, 1))
    moved[:, j] = np.arange(K)
    return np.array([log_joint(one, MULTINOMIAL) for one in moved])


def score_with_itself_inside(cluster, j):
    """What the score of the document's own cluster becomes where its counts still hold the document."""
    x = TINY.content.toarray()
    counts, own, size = x[cluster == cluster[j]].sum(axis=0), x[j], np.sum(cluster == cluster[j])

    def predictive(n, n_documents):
        steps = np.log(n_documents + G)
        n, total = n + A, n.sum() + A * len(n)
        for word, times in enumerate(own):
            for i in range(times):
                steps += np.log((n[word] + i) / total)
                total += 1.0
        return steps

    return predictive(counts, size) - predictive(counts - own, size - 1)


def proposal(cluster, j, graph, eps, defect=None):
    """(K,) q: drawn from, and in acceptances."""
    found = graph[j][graph[j] >= 0]
    if defect == "own label inside v":
        found = np.append(found, j)
    if len(found) == 0:
        return np.full(K, 1 / K), np.full(K, 1 / K)
    v = np.bincount(cluster[found], minlength=K)
    divisor = graph.shape[1] if defect == "N for N_i" else len(found)
    return (1 - eps) * v / len(found) + eps / K, (1 - eps) * v / divisor + eps / K


def visit_row(cluster, j, graph, eps, n_proposals, defect=None):
    """(K,) probabilities of document j's cluster after a visit."""
    drawn, q = proposal(cluster, j, graph, eps, defect)
    scores = scores_without(cluster, j)
    if defect == "s_cur with the document inside":
        scores[cluster[j]] += score_with_itself_inside(cluster, j)
    ratio = scores[None, :] - scores[:, None] + np.log(q)[:, None] - np.log(q)[None, :]
    one = drawn * np.exp(np.minimum(ratio, 0.0))
    np.fill_diagonal(one, 0.0)
    stay = 1.0 - one.sum(axis=1)
    if defect != "stop at the first acceptance":
        return np.linalg.matrix_power(one + np.diag(stay), n_proposals)[cluster[j]]
    row, still = np.zeros(K), 1.0
    for _ in range(n_proposals):
        row += still * one[cluster[j]]
        still *= stay[cluster[j]]
    row[cluster[j]] += still
    return row


def visit(key, cluster, j, graph, eps, n_proposals):
    """Cluster after the visit, and other clusters proposed: the twin of :func:`choose`, with its random numbers."""
    uniforms = iter(uniforms_of(key, j, 3 * n_proposals))
    found = graph[j][graph[j] >= 0]
    drawn = []
    for _ in range(n_proposals):
        if len(found) == 0 or next(uniforms) < eps:
            drawn.append(int(next(uniforms) * K))
        else:
            drawn.append(cluster[found[int(next(uniforms) * len(found))]])
    _, q = proposal(cluster, j, graph, eps)
    scores = scores_without(cluster, j)
    now, n_proposed = cluster[j], 0
    for new in drawn:
        if new != now:
            n_proposed += 1
            ratio = scores[new] - scores[now] + np.log(q[now]) - np.log(q[new])
            if ratio >= 0 or next(uniforms) < np.exp(ratio):
                now = new
    return now, n_proposed


class TestExactness:
    @pytest.mark.parametrize("n_proposals", [1, 4])
    def test_visits_are_those_of_the_definition(self, n_proposals):
        """Each document in each of the 81 states, with three sets of random numbers."""
        scratch = np.empty(n_proposals, np.int64), np.empty(n_proposals + 1, np.int64), np.empty(n_proposals + 1)
        stream = np.zeros(2, np.uint64)
        moved = 0
        for cluster in STATES:
            state = state_of(cluster, n_proposals)
            for j in range(TINY.n_documents):
                for t in range(3):
                    key = streams.key(t, "test", n_proposals)
                    streams.seek(stream, key, j)
                    found = choose(state.chain, state.slots, state.cluster, j, stream, *scratch)
                    assert found == visit(key, cluster, j, GRAPH, EPS, n_proposals)
                    moved += found[0] != cluster[j]
        assert moved > 100

    @pytest.mark.parametrize("n_proposals", [1, 2, 4])
    def test_visits_leave_the_posterior_as_it_is(self, n_proposals):
        kernels = matrices(
            lambda cluster: [visit_row(cluster, j, GRAPH, EPS, n_proposals) for j in range(TINY.n_documents)]
        )
        assert_invariant(posterior(MULTINOMIAL), kernels)

    @pytest.mark.parametrize("defect", DEFECTS)
    def test_conditions_of_exactness_are_needed(self, defect):
        """Where one is broken, a document's visit changes the posterior, by more than 0.001 in some state."""
        kernels = matrices(
            lambda cluster: [visit_row(cluster, j, GRAPH, EPS, 4, defect) for j in range(TINY.n_documents)]
        )
        p = posterior(MULTINOMIAL)
        np.testing.assert_allclose([kernel.sum(axis=1) for kernel in kernels], 1.0)
        assert max(np.abs(p @ kernel - p).max() for kernel in kernels) > 1e-3

    @pytest.mark.parametrize("n_proposals", [1, 4])
    @pytest.mark.parametrize("graph", ["made up", "found"])
    def test_sweeps_are_visits_in_order(self, n_proposals, graph):
        """100 sweeps, and the moves that they count."""
        graph = GRAPH if graph == "made up" else find_neighbours(TINY.content, 3, 100, 0)
        assert (graph[:3] >= 0).any(axis=1).all()
        state, moves, made = state_of([0, 1, 2, 0], n_proposals, graph), np.zeros(2, np.int64), np.zeros(2, np.int64)
        cluster = state.cluster.copy()
        for t in range(100):
            key = streams.key(1, "test", t)
            state.sweep(key, moves)
            for j in range(TINY.n_documents):
                new, n_proposed = visit(key, cluster, j, graph, EPS, n_proposals)
                made += n_proposed, new != cluster[j]
                cluster[j] = new
            assert np.array_equal(state.cluster, cluster)
        assert moves.tolist() == made.tolist()
        assert made[1] > 20


def plain_neighbours(content, n_neighbours, budget, seed):
    """The twin of :func:`find_neighbours`; (J, N), and the entries read for each document."""
    x = content.toarray() > 0
    n_documents, n_words = x.shape
    rng = streams.generator(seed, "fastex neighbours")
    order, tie = rng.permutation(n_documents), rng.permutation(n_words)
    key, frequency = int(streams.key(seed, "fastex neighbours")), x.sum(axis=0)
    found, n_read = np.full((n_documents, n_neighbours), -1), np.zeros(n_documents, int)
    for place, j in enumerate(order):
        words = [d for d in np.flatnonzero(x[j]) if 2 <= frequency[d] < n_documents]
        sums = {}
        for i, d in enumerate(sorted(words, key=lambda d: (frequency[d], tie[d]))):
            on_list = [place for place in range(n_documents) if x[order[place], d]]
            if i > 0 and n_read[j] + len(on_list) > budget:
                break
            if len(on_list) > budget:
                on_list = ([one for one in on_list if one >= place] + [one for one in on_list if one < place])[:budget]
            n_read[j] += len(on_list)
            for other in on_list:
                if other != place:
                    sums[other] = np.float32(
                        sums.get(other, np.float32(0)) + np.float32(np.log(n_documents / frequency[d]))
                    )
        with np.errstate(over="ignore"):
            mixed = {o: float(streams.mix(np.uint64((key + place * n_documents + o) % 2**64))) for o in sums}
        best = sorted(sums, key=lambda other: (-sums[other], -mixed[other]))[:n_neighbours]
        found[j, : len(best)] = order[best]
    return found, n_read


def noise_state():
    corpus = Corpus(np.random.default_rng(0).poisson(0.1, size=(1300, 30)))  # no clusters to settle in
    graph = find_neighbours(corpus.content, 4, 200, 0)
    return corpus, state_of(np.arange(1300), 3, graph, corpus, 20_000)


class TestGraph:
    @pytest.mark.parametrize("budget", [1, 12, 60, 10_000])
    @pytest.mark.parametrize("n_neighbours", [1, 5])
    def test_graph_is_that_of_its_twin(self, n_neighbours, budget):
        corpus = Corpus(np.random.default_rng(3).poisson(0.08, (60, 50)))
        twin, n_read = plain_neighbours(corpus.content, n_neighbours, budget, 5)
        assert n_read.max() <= budget
        assert np.array_equal(find_neighbours(corpus.content, n_neighbours, budget, 5), twin)

    def test_documents_are_not_their_own_neighbours_nor_named_twice(self):
        corpus, _ = small_corpus(300, 40)
        for budget in (1, 30, 10_000):
            found = find_neighbours(corpus.content, 6, budget, 0)
            assert not (found == np.arange(300)[:, None]).any()
            for row in found:
                named = row[row >= 0]
                assert len(set(named)) == len(named)
                assert (row[len(named) :] == -1).all()

    def test_neighbours_share_the_clusters_of_planted_ones(self):
        corpus, truth = small_corpus(400, 200)
        found = find_neighbours(corpus.content, 4, 200, 0)
        assert (found >= 0).mean() > 0.9
        assert np.mean(truth[found] == truth[:, None]) > 0.6  # 0.25 by chance

    def test_does_not_depend_on_threads(self):
        corpus = Corpus(np.random.default_rng(1).poisson(0.05, size=(5000, 60)))
        found = []
        for threads in (1, 2):
            with thread_budget(threads) as pool:
                found.append(find_neighbours(corpus.content, 5, 100, 0, pool))
        assert np.array_equal(*found)

    def test_index_does_not_depend_on_threads(self):
        """Half a million documents of the same few words: parts that wrote to one place would lose much to each
        other."""
        counts = np.ones((500_000, 7), np.int64)
        counts[0, :6] = counts[1:, 6] = 0  # a word of all documents would not be read
        content = Corpus(counts).content
        alone = _build_index(content, 0, None)
        with thread_budget(2) as pool:
            for _ in range(3):
                for ours, theirs in zip(alone, _build_index(content, 0, pool), strict=True):
                    assert np.array_equal(ours, theirs)


class TestSweeps:
    def test_sweeps_do_not_depend_on_threads(self):
        """Moves, proposals and counts; and choices made ahead are both kept and made anew."""
        found = []
        for threads in (1, 2, 3):
            _, state = noise_state()
            moves = np.zeros(2, np.int64)
            with thread_budget(threads) as pool:
                for t in range(4):
                    state.sweep(streams.key(0, "test", t), moves, pool)
            found.append((state.cluster.tolist(), moves.tolist(), state.log_joint))
            assert (0.05 < state.redone[0] / (4 * 1300) < 0.95) == (threads > 1)
        assert found[0] == found[1] == found[2]
        assert found[0][1][1] > 1000

    def test_counts_equal_recomputed_ones_after_thousands_of_moves(self):
        corpus, state = noise_state()
        moves = np.zeros(2, np.int64)
        for t in range(5):
            state.sweep(streams.key(0, "test", t), moves)
        assert moves[1] > 1000
        fresh = state_of(state.cluster, 3, state.chain.documents.neighbours, corpus, 20_000)
        for name in state.chain.clusters._fields:
            assert np.array_equal(getattr(state.chain.clusters, name), getattr(fresh.chain.clusters, name)), name
        assert state.used[0] == fresh.used[0]
        assert state.log_joint == fresh.log_joint

    def test_exact_ones_are_those_of_exact_proposals(self):
        corpus, _ = small_corpus()
        engine = fastex(n_clusters=4, proposal="neighbours", topic_word_prior=A, weight_prior=G, exact_sweeps=[2])
        state = engine.init(corpus, 3)
        for iteration in (1, 2):
            exact = ExactState(corpus, engine._settings(engine.model), state.cluster.copy())
            exact.sweep(streams.key(3, "fastex sweep", iteration), np.zeros(2, np.int64))
            row = engine.step(corpus, state, 3, iteration)
            assert np.array_equal(state.cluster, exact.cluster) == (iteration == 2)
        assert row["log_joint"] == pytest.approx(exact.log_joint, abs=1e-6)


class TestAuto:
    def test_reads_neighbours_of_multinomial_clusters_that_are_many(self, monkeypatch):
        """Half of these documents have a word in three documents; no document's words are all common."""
        corpus = Corpus(
            np.repeat(np.eye(4, 3, dtype=int), 3, axis=0) + np.array([0, 0, 1])
        )  # word frequencies 3, 3, 12
        many = fastex_engine.MAX_EXACT_CLUSTERS + 1
        for settings, expected in (
            ({"n_clusters": many - 1}, "exact"),
            ({"n_clusters": many}, "neighbours"),
            ({"n_clusters": many, "list_budget": 2}, "exact"),
            ({"n_clusters": many, "component": "poisson"}, "exact"),
            ({"n_clusters": many, "proposal": "hash"}, "hash"),
        ):
            assert fastex(**settings).chosen_proposal(corpus) == expected, settings
        monkeypatch.setattr(fastex_engine, "MAX_EXACT_BYTES", 0)  # as if exact tables were larger than that
        assert fastex(n_clusters=3).chosen_proposal(corpus) == "neighbours"
        assert fastex(n_clusters=3, component="poisson").chosen_proposal(corpus) == "hash"
        monkeypatch.setattr(fastex_engine, "MAX_NEIGHBOUR_BYTES", 12 * 4 * 8)  # of the graph alone
        assert fastex(n_clusters=3).chosen_proposal(corpus) == "hash"

    def test_goes_on_as_a_stored_chain_began(self, monkeypatch):
        """Checkpoints of before, whose rule was another."""
        corpus, _ = small_corpus()
        monkeypatch.setattr(fastex_engine, "MAX_EXACT_CLUSTERS", 1)
        engine = fastex(n_clusters=5)
        for proposal, kind in (("exact", ExactState), ("hash", HashedState), ("neighbours", NeighbourState)):
            arrays = fastex(n_clusters=5, proposal=proposal).init(corpus, 0).arrays()
            assert isinstance(engine.restore(corpus, arrays), kind)
        assert isinstance(engine.init(corpus, 0), NeighbourState)

    def test_a_fit_compiles_exact_sweeps_before_it_begins(self):
        engine, iterations = fastex(n_clusters=3000, exact_sweeps=[7, 9]).to_warm(small_corpus(400, 200)[0])
        assert (engine.proposal, iterations) == ("neighbours", (1, 2, 7))


class TestRefused:
    def test_graphs_that_do_not_fit(self):
        engine = fastex(n_clusters=3, proposal="neighbours", n_neighbours=2)
        cluster = np.zeros(4, np.int32)
        for graph, message in (
            (np.array([[1, 4], [0, 2], [0, -1], [-1, -1]]), "'neighbours' holds an index that is not below 4"),
            (GRAPH[:, :1], r"'neighbours' has the shape \(4, 1\); \(4, 2\) is needed"),
        ):
            with pytest.raises(ValueError, match=message):
                engine.restore(TINY, {"cluster": cluster, "neighbours": graph})
        with pytest.raises(ValueError, match="'neighbours' is missing"):
            engine.restore(TINY, {"cluster": cluster})
        assert isinstance(engine.restore(TINY, {"cluster": cluster, "neighbours": GRAPH}), NeighbourState)

    def test_memory_is_asked_for_beforehand(self, monkeypatch):
        """Of 1,000 documents the graph alone takes 4 N of them in bytes; the message names what to change."""
        corpus = Corpus(np.ones((1000, 2), int))
        monkeypatch.setattr(memory, "available_bytes", lambda: 4 * 1000 * 1000)
        fastex(n_clusters=3, proposal="neighbours", n_neighbours=900).init(corpus, 0)
        message = (
            r"^proposal='neighbours' with 1000 documents and 3 clusters would take .*; use a smaller n_neighbours$"
        )
        with pytest.raises(ValueError, match=message):
            fastex(n_clusters=3, proposal="neighbours", n_neighbours=1000).init(corpus, 0)
