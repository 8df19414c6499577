"""FastEx: the table against a dict, caches against recomputation, resume, bad settings."""

import numba
import numpy as np
import pytest
from helpers.fastex_twin import TINY, A, B, G, K, hashed_vectors, log_joint, settings_of, small_corpus
from helpers.fits import fastex
from helpers.hashing import signs

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.inference.fastex import engine as fastex_engine
from mc2core.inference.fastex import exact
from mc2core.inference.fastex.components import GAUSSIAN, MULTINOMIAL, OVERLAP_UNIT, POISSON
from mc2core.inference.fastex.exact import ExactState
from mc2core.inference.fastex.hashed import HashedState
from mc2core.inference.fastex.hashed_kernels import add_or_remove, choose, workspace
from mc2core.inference.fastex.sparse_counts import add_to, count_at, count_bits, empty_table, grown
from mc2core.inference.running.loop import fit


class TestProposal:
    @pytest.mark.parametrize("is_balanced", [True, False])
    @pytest.mark.parametrize("component", [MULTINOMIAL, POISSON, GAUSSIAN])
    def test_proposal_does_not_know_where_the_document_is(self, is_balanced, component):
        """The weights of the proposal, bit for bit, for every cluster the document may be in; empty ones included."""
        corpus, _ = small_corpus()
        projection_fit = None
        for j in (0, 7, 19):
            found = []
            for k in range(5):
                cluster = np.arange(corpus.n_documents) % 4
                cluster[j] = k
                state = HashedState(
                    corpus, settings_of(component, 64, is_balanced, n_clusters=6), cluster, projection_fit
                )
                projection_fit = state.centre, state.scale, state.inverse_temperature
                work = workspace(state.clusters)
                stream = np.zeros(2, np.uint64)
                args = state.documents, state.clusters, state.projection, state.constants, state.slots
                choose(*args, j, k, stream, work)
                found.append(work.weights[:6].copy())
            # the first state fitted the projection; all others share it
            assert all(np.array_equal(weights, found[1]) for weights in found[1:])
            assert found[1].min() > 0


class TestTable:
    def test_against_a_dict(self):
        rng = np.random.default_rng(0)
        shift, used, truth = np.uint64(count_bits(40, 50, 1000)), np.zeros(1, np.int64), {}
        slots = empty_table(0)
        for _ in range(20_000):
            key = int(rng.integers(0, 2000))
            before = truth.pop(key, 0)
            grows = before == 0 or rng.random() < 0.45
            change = int(rng.integers(1, 4)) if grows else -int(rng.integers(1, before + 1))
            slots = grown(slots, shift, int(used[0]) + 1)
            assert add_to(slots, shift, np.uint64(key), change, used) == before
            if before + change:
                truth[key] = before + change
            assert used[0] == len(truth)
        twin = self.counts(slots, shift, np.arange(2000, dtype=np.uint64))
        assert np.array_equal(twin, [truth.get(key, 0) for key in range(2000)])

    @staticmethod
    @numba.njit
    def counts(slots, shift, keys):
        return np.array([count_at(slots, shift, key) for key in keys])

    def test_sixteen_bytes_a_cell_for_millions_of_words(self):
        """The table alone, for 10,000 clusters of 5.6 million words, as it grows."""
        shift, used = np.uint64(count_bits(10_000, 5_600_000, 10**7)), np.zeros(1, np.int64)
        slots = empty_table(0)
        for cell in range(20_000):
            slots = grown(slots, shift, int(used[0]) + 1)
            add_to(slots, shift, np.uint64(cell * 2_799_999), 1, used)
            if cell > 1000:
                assert slots.nbytes <= 16 * used[0]

    @pytest.mark.slow
    def test_table_shrinks_to_16_bytes_a_cell_when_clusters_merge(self):
        """100 clusters that share no cell become one: the table gives its room back, and loses nothing."""
        corpus = Corpus(np.ones((100, 300), int))
        state = HashedState(corpus, settings_of(n_clusters=100), np.arange(100))
        assert state.used[0] == 30_000
        for j in range(1, 100):
            move = state.documents, state.clusters, state.projection, state.constants, state.slots, state.used, j
            add_or_remove(*move, j, -1)
            add_or_remove(*move, 0, 1)
            state.cluster[j] = 0
        state.sweep(streams.key(0, "test", 0), np.zeros(2, np.int64))
        assert state.slots.nbytes <= 16 * state.used[0]
        fresh = HashedState(
            corpus, state.settings, state.cluster, (state.centre, state.scale, state.inverse_temperature)
        )
        assert state.used[0] == fresh.used[0]
        assert state.log_joint == fresh.log_joint

    def test_too_large_a_key(self):
        with pytest.raises(ValueError, match="leave 1 bits for a count, but a word occurs 5 times"):
            count_bits(2**32, 2**31, 5)


class TestCaches:
    @pytest.mark.parametrize("component", [MULTINOMIAL, POISSON, GAUSSIAN])
    @pytest.mark.parametrize("is_balanced", [True, False])
    def test_caches_equal_recomputed_ones_after_thousands_of_moves(self, is_balanced, component):
        noise = np.random.default_rng(0).poisson(0.1, size=(40, 30))  # no clusters to settle in
        corpus = Corpus(noise)
        state = HashedState(corpus, settings_of(component, 128, is_balanced, n_clusters=6), np.arange(40) % 6)
        moves = np.zeros(2, np.int64)
        for t in range(1500):
            state.sweep(streams.key(0, "test", t), moves)
        assert moves[1] > 1000
        fresh = HashedState(
            corpus, state.settings, state.cluster, (state.centre, state.scale, state.inverse_temperature)
        )
        for kind, again in ((state.clusters, fresh.clusters), (state.clusters.columns, fresh.clusters.columns)):
            for name in set(kind._fields) - {"columns"}:
                assert np.array_equal(getattr(kind, name), getattr(again, name)), name
        assert state.log_joint == fresh.log_joint

    @pytest.mark.parametrize("component", [MULTINOMIAL, POISSON, GAUSSIAN])
    def test_exact_tables_equal_recomputed_ones_after_many_moves(self, component):
        corpus = Corpus(np.random.default_rng(0).poisson(0.1, size=(40, 30)))  # no clusters to settle in
        state = ExactState(corpus, settings_of(component, n_clusters=16), np.arange(40) % 16)
        moves = np.zeros(2, np.int64)
        for t in range(800):
            state.sweep(streams.key(0, "test", t), moves)
        assert moves[1] > 1000
        assert len(state.tables.counts) > 0
        assert len(state.tables.starts) > 0
        fresh = ExactState(corpus, state.settings, state.cluster)
        for name in state.clusters._fields:
            assert np.array_equal(getattr(state.clusters, name), getattr(fresh.clusters, name)), name
        assert np.array_equal(state.tables.counts, fresh.tables.counts)
        assert np.array_equal(state.tables.terms, fresh.tables.terms)
        for start in state.tables.starts:
            found = []
            for lists in (state.tables.lists, fresh.tables.lists):
                assert lists[start, 0] > 0
                found.append({tuple(entry) for entry in lists[start + 1 : start + 1 + lists[start, 0]]})
            assert found[0] == found[1]
        assert state.log_joint == fresh.log_joint


class TestSignatures:
    @pytest.mark.parametrize("is_balanced", [True, False])
    def test_with_norms_against_their_twin(self, is_balanced):
        """Rounding to the grid aside, so signs of sums that are nearly 0 may differ: at most one in a hundred."""
        corpus, truth = small_corpus()
        bits = 128
        state = HashedState(corpus, settings_of(bits=bits, is_balanced=is_balanced, n_clusters=4), truth)
        hashed, parameters = hashed_vectors(corpus, truth, state)
        sign = np.array([signs(word, bits) for word in range(corpus.n_words)])
        for vectors, words, norms in (
            (hashed, state.documents.signature, state.documents.norm),
            (parameters, state.clusters.columns.signature.T[:4], state.clusters.columns.norm[:4]),
        ):
            found = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")[:, :bits]
            assert np.mean(found != (vectors @ sign > 0)) < 0.01
            assert np.allclose(norms, np.linalg.norm(vectors, axis=1), rtol=1e-4)
        if is_balanced:
            x = corpus.content.toarray()
            theta = np.log1p(np.array([x[truth == k].sum(axis=0) for k in range(4)]) / A)
            frequency = np.where(state.scale > 0, x.sum(axis=0) / x.sum(), 0.0)
            assert np.allclose(state.clusters.overlap / OVERLAP_UNIT, theta @ frequency, rtol=1e-6)

    def test_upper_bound_fails_no_more_often_than_it_says(self):
        """Eq. 15 holds for all clusters of a document at once but with probability 0.2; 6,000 documents share
        hashes, so the share is compared with 0.2 itself, from which the bound (Hoeffding) keeps well away."""
        corpus, truth = small_corpus(300, 60, seed=5)
        failure, bits = 0.2, 64
        slack = np.sqrt(np.log(4 / failure) / (2 * bits))
        state = HashedState(corpus, settings_of(bits=bits, failure=failure, n_clusters=4), truth)
        assert state.constants.slack == pytest.approx(slack)
        hashed, parameters = hashed_vectors(corpus, truth, state)
        apart = (
            np.bitwise_count(state.documents.signature[:, None, :] ^ state.clusters.columns.signature.T[:4]).sum(axis=2)
            / bits
        )
        norms = state.documents.norm[:, None] * state.clusters.columns.norm[:4]
        bound = norms * np.cos(np.pi * np.maximum(apart - slack, 0.0))
        assert np.mean(np.any(bound < hashed @ parameters.T - 1e-3, axis=1)) < failure
        plain = norms * np.cos(np.pi * apart)
        assert np.mean(np.any(plain < hashed @ parameters.T - 1e-3, axis=1)) > failure  # the plain estimate is no bound

    def test_correction_of_remark_5(self):
        """128 bits, failure probability 1e-4, 10,000 clusters. The printed 0.38 lacks the 2 below ln(k / d)."""
        corpus, truth = small_corpus(40, 20, seed=5)
        state = HashedState(corpus, settings_of(bits=128, failure=1e-4, n_clusters=10_000), truth)
        assert state.constants.slack == pytest.approx(0.2682, abs=1e-4)
        assert state.constants.slack * np.sqrt(2) == pytest.approx(0.379, abs=1e-3)


class TestRuns:
    @pytest.mark.parametrize("component", [MULTINOMIAL, GAUSSIAN])
    def test_exact_sweeps_do_not_depend_on_threads(self, component, monkeypatch):
        """Draws made ahead are kept, and made anew after a document has moved; both happen to dozens of 101
        documents."""
        monkeypatch.setattr(exact, "MIN_SHARED_CLUSTERS", 16)
        corpus = Corpus(np.random.default_rng(0).poisson(0.1, size=(101, 30)))
        found = []
        for threads in (1, 2, 3):
            state = ExactState(corpus, settings_of(component, n_clusters=16), np.arange(101) % 16)
            moves = np.zeros(2, np.int64)
            with thread_budget(threads) as pool:
                for t in range(5):
                    state.sweep(streams.key(0, "test", t), moves, pool)
            found.append((state.cluster.tolist(), moves.tolist(), state.log_joint))
        assert found[0] == found[1] == found[2]
        assert 100 < moves[1] < 400

    @pytest.mark.parametrize("component", ["multinomial", "poisson", "gaussian"])
    @pytest.mark.parametrize("proposal", ["hash", "exact", "neighbours"])
    def test_log_joint_is_that_of_the_model(self, component, proposal):
        if proposal == "neighbours" and component != "multinomial":
            pytest.skip("neighbours are proposed to multinomial clusters alone")
        more = {} if component == "multinomial" else {"rate_prior": B}
        more |= {"exact_sweeps": [2]} if proposal == "neighbours" else {}
        engine = fastex(
            n_clusters=K, topic_word_prior=A, weight_prior=G, component=component, proposal=proposal, **more
        )
        state = engine.init(TINY, 0)
        for iteration in range(1, 4):
            row = engine.step(TINY, state, 0, iteration)
            code = {"multinomial": MULTINOMIAL, "poisson": POISSON, "gaussian": GAUSSIAN}[component]
            assert row["log_joint"] == pytest.approx(log_joint(state.cluster, code), abs=1e-4)

    @pytest.mark.parametrize(
        "settings",
        [{"proposal": one} for one in ("exact", "hash", "neighbours")] + [{"proposal": "hash", "projection": "paper"}],
    )
    def test_finds_planted_clusters(self, settings):
        corpus, truth = small_corpus()
        result = fit(corpus, *fastex(n_clusters=4, topic_word_prior=0.1, **settings), iterations=60, seed=3)
        pairs = {(int(a), int(b)) for a, b in zip(result.state.cluster, truth, strict=True)}
        assert len(pairs) == len({a for a, _ in pairs})  # no found cluster mixes true ones
        assert result.posterior.predict_proba(corpus).shape == (40, len(result.posterior.cluster_weights))

    def test_rounds_do_not_depend_on_threads_and_find_the_clusters(self):
        corpus, truth = small_corpus(200)
        found = []
        for threads in (1, 2, 3):
            engine = fastex(
                n_clusters=4, topic_word_prior=0.1, bits=128, proposal="hash", documents_per_round=16, threads=threads
            )
            result = fit(corpus, *engine, iterations=40, seed=3)
            found.append((result.state.cluster, result.trace["log_joint"].tolist()))
        assert all(np.array_equal(found[0][0], cluster) and found[0][1] == trace for cluster, trace in found[1:])
        pairs = {(int(a), int(b)) for a, b in zip(found[0][0], truth, strict=True)}
        assert len(pairs) == len({a for a, _ in pairs})


class TestSettings:
    def test_auto_is_exact_while_its_counts_take_2_gib(self, monkeypatch):
        once = Corpus(np.ones((1, 4), int))  # of 3 clusters: rows; of more than 3: lists of one document each
        for n_clusters, n_bytes in ((3, 8 * 3 * 4), (1000, 8 * 2 * 4)):
            monkeypatch.setattr(fastex_engine, "MAX_EXACT_BYTES", n_bytes)
            engine = fastex(n_clusters=n_clusters)
            assert engine.chosen_proposal(once) == "exact"
            assert fastex(n_clusters=n_clusters, proposal="hash").chosen_proposal(once) == "hash"
            assert isinstance(engine.init(once, 0), ExactState)
            monkeypatch.setattr(fastex_engine, "MAX_EXACT_BYTES", n_bytes - 1)
            assert engine.chosen_proposal(once) == "hash"
            assert fastex(n_clusters=n_clusters, proposal="exact").chosen_proposal(once) == "exact"
            state = engine.init(once, 0)
            assert isinstance(state, HashedState)
            assert isinstance(engine.restore(once, state.arrays()), HashedState)
        # a row for each count that a frequent word has: K int32 counts and two rows of K float32 terms
        monkeypatch.setattr(fastex_engine, "MAX_EXACT_BYTES", 3 * 4 * 3)
        assert fastex(n_clusters=3).chosen_proposal(Corpus(np.array([[1], [2]]))) == "exact"
        assert fastex(n_clusters=3).chosen_proposal(Corpus(np.array([[1], [2], [3]]))) == "hash"

    def test_corpora_and_checkpoints_that_do_not_fit(self):
        engine = fastex(n_clusters=3, proposal="hash")
        with pytest.raises(ValueError, match="the corpus has none"):
            engine.init(Corpus(np.zeros((2, 3), int), contexts={"year": np.array([1.0, 2.0])}), 0)
        with pytest.raises(ValueError, match="'cluster' holds an index that is not below 3"):
            engine.restore(TINY, {"cluster": np.array([0, 1, 2, 3])})
