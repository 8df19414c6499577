"""Runs of SVI-MC2 proved: the bound, the enumerated evidence, and what must not change a bit."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import FIXED, at_strength, svi
from helpers.svi_twin import FAMILIES, engine_of, resumed_in_parts, small_corpus, some_families, states_equal
from scipy.special import betaln, gammaln, logsumexp

from mc2core import Corpus
from mc2core.compute.threads import thread_budget
from mc2core.families import NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import posterior_of
from mc2core.inference.running.loop import fit
from mc2core.inference.svi import start as svi_init
from mc2core.inference.svi.assign import assign_documents
from mc2core.inference.svi.documents import Batch
from mc2core.inference.svi.local.tables import word_tables
from mc2core.inference.svi.settings import RunSettings
from mc2core.inference.svi.sticks import stick_posterior

TRUNCATIONS = [(1, 1, 1), (1, 3, 2), (3, 1, 2), (2, 2, 1), (4, 3, 5)]


def log_evidence(corpus, contexts, n_clusters, n_tables, n_topics, concentrations, topic_word_prior):
    """Evidence of the truncated model: all z, c and t listed, parameters integrated out in closed form."""
    tokens = [np.repeat(np.arange(corpus.n_words), row) for row in corpus.content.toarray()]
    owner = np.repeat(np.arange(len(tokens)), [len(words) for words in tokens])
    words = np.concatenate(tokens)

    def log_sticks(counts, c):
        posterior = stick_posterior(counts, c)
        return float(np.sum(betaln(*posterior) - betaln(1.0, c)))

    alpha, v, eta = concentrations
    terms = []
    for z in itertools.product(range(n_clusters), repeat=len(tokens)):
        z = np.array(z)
        log_z = log_sticks(np.bincount(z, minlength=n_clusters), alpha)
        log_z += contexts.log_base.sum() + contexts.log_marginal(contexts.natural(z, n_clusters)).sum()
        for t in itertools.product(range(n_tables), repeat=len(words)):
            n_kt = np.zeros((n_clusters, n_tables))
            np.add.at(n_kt, (z[owner], list(t)), 1)
            log_t = log_z + sum(log_sticks(row, v) for row in n_kt)
            for flat in itertools.product(range(n_topics), repeat=n_clusters * n_tables):
                c = np.array(flat).reshape(n_clusters, n_tables)
                n_mw = np.full((n_topics, corpus.n_words), topic_word_prior)
                np.add.at(n_mw, (c[z[owner], list(t)], words), 1)
                log_words = np.sum(gammaln(n_mw)) - n_mw.size * gammaln(topic_word_prior)
                log_words += np.sum(gammaln(topic_word_prior * corpus.n_words) - gammaln(n_mw.sum(axis=1)))
                terms.append(log_t + log_sticks(np.bincount(flat, minlength=n_topics), eta) + log_words)
    return logsumexp(terms)


class TestBound:
    @pytest.mark.parametrize(
        ("strength", "concentrations", "initialisation"),
        [(0.25, FIXED, "random"), (0.25, {}, "seeded"), (1.0, FIXED, "seeded"), (1.0, {}, "random")],
    )
    def test_full_batch_never_lowers_the_elbo(self, strength, concentrations, initialisation):
        smallest = np.inf
        for seed, truncations in enumerate([*TRUNCATIONS, *TRUNCATIONS]):
            corpus = small_corpus(seed, n_documents=12, n_words=8, mean_count=1.5)
            contexts = at_strength(some_families(seed % 4), strength)
            engine = engine_of(
                *truncations, contexts=contexts, initialisation=initialisation, topic_word_prior=0.05, **concentrations
            )
            trace = fit(corpus, *engine, iterations=15, seed=seed, progress=False).trace
            smallest = min(smallest, np.diff(trace.elbo).min())
            assert trace.elbo.iloc[-1] > trace.elbo.iloc[0] or truncations == (1, 1, 1)
        assert smallest > -1e-9

    @pytest.mark.parametrize(
        ("truncations", "topic_word_prior", "n_names"),
        # q keeps to one of the 2 x 2**2 x 2 (2 x 2**2) ways to name clusters, tables and topics: their logarithm at
        # most. The small prior makes each topic's divergence larger than that: a bound that leaves it out exceeds the
        # evidence
        [((2, 2, 2), 0.4, 16), ((2, 2, 1), 0.05, 8)],
    )
    @pytest.mark.parametrize("strength", [0.25, 1.0])
    def test_elbo_stays_below_the_enumerated_evidence(self, strength, truncations, topic_word_prior, n_names):
        content = np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]])
        corpus = Corpus(content, contexts={"time": np.array([0.5, np.nan, -1.0])}, units={"time": (0.0, 1.0)})
        families = at_strength({"time": FAMILIES["time"]}, strength)
        known = {"group_concentration": 0.8, "table_concentration": 1.3, "topic_concentration": 0.6}
        evidence = log_evidence(
            corpus, StackedContexts(corpus, families), *truncations, known.values(), topic_word_prior
        )
        best = -np.inf
        for seed in range(4):
            engine = engine_of(*truncations, contexts=families, topic_word_prior=topic_word_prior, **known)
            elbo = fit(corpus, *engine, iterations=40, seed=seed, progress=False).state.elbo
            assert elbo < evidence
            best = max(best, elbo)
        assert evidence - np.log(n_names) < best

    def test_elbo_of_one_cluster_is_the_evidence(self):
        corpus = small_corpus(16)
        engine = engine_of(1, 1, 1, **FIXED)
        state = fit(corpus, *engine, iterations=1, seed=0, progress=False).state
        n_w = np.asarray(corpus.content.sum(axis=0)).ravel() + 0.3
        words = gammaln(n_w).sum() - gammaln(n_w.sum()) - len(n_w) * gammaln(0.3) + gammaln(0.3 * len(n_w))
        contexts = StackedContexts(corpus, FAMILIES)
        everyone = np.zeros(corpus.n_documents, int)
        known = contexts.log_marginal(contexts.natural(everyone, 1)).sum() + contexts.log_base.sum()
        assert state.elbo == pytest.approx(words + known, abs=1e-9)


class TestBits:
    def test_resumed_within_an_epoch(self, tmp_path):
        pair = engine_of(batch_size=4, initialisation="seeded")
        _, seen = resumed_in_parts(pair, small_corpus(9, n_documents=30), tmp_path, 2)
        assert len(seen) == 16  # eight mini-batches an epoch
        assert sum(yet_to_be_rescaled for is_within, yet_to_be_rescaled in seen if is_within) == 14

    def test_snapshots_within_an_epoch_change_nothing(self):
        corpus = small_corpus(9, n_documents=30)
        engine = engine_of(batch_size=4, initialisation="seeded")
        without = fit(corpus, *engine, iterations=2, seed=2, progress=False)
        run = fit(corpus, *engine, iterations=2, seed=2, progress=False, snapshots=[0, 0.2, 1, 1.99, 2])
        assert states_equal(run.state, without.state)
        assert [round(one["iteration"], 3) for one in run.snapshots.provenance["snapshot_times"]] == [0, 0.267, 1, 2]
        state = engine.init(corpus, 2)
        known = [engine.sample(corpus, state)]
        engine.advance(corpus, state, 2, 1)
        engine.advance(corpus, state, 2, 1)
        assert state.shrink < 1
        known.append(engine.sample(corpus, state))
        state.rescale()
        known.append(engine.sample(corpus, state))
        shown = run.snapshots.samples
        for one, other in ((shown[0], known[0]), (shown[1], known[1]), (shown[3], without.posterior.representative)):
            assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("cluster", "topic_words"))
        np.testing.assert_allclose(known[1].topic_words, known[2].topic_words, rtol=1e-12)
        assert np.isfinite([posterior_of(engine.model, corpus, [one], {}).perplexity(corpus) for one in shown]).all()

    def test_a_batch_larger_than_the_corpus_is_the_corpus(self):
        corpus = small_corpus(13)
        states = [
            fit(corpus, *engine_of(batch_size=size), iterations=3, seed=0, progress=False).state for size in (6, 99)
        ]
        assert states_equal(*states)

    def test_parts_of_a_batch_add_up(self):
        """What a distributed runner does: documents in any parts, each needing the words' likelihoods only."""
        corpus = small_corpus(15, n_documents=50)
        state = engine_of().init(corpus, 0)
        expected = state.expectations()
        words = np.arange(corpus.n_words)
        whole = Batch(
            words,
            corpus.content.indptr.astype(np.int64),
            corpus.content.indices,
            corpus.content.data,
            state.contexts,
            np.arange(state.contexts.dimension),
            np.arange(50),
        )
        tables = word_tables(state, expected, words, None)
        once = assign_documents(whole, tables.log_likelihood, expected, None)
        parts = None
        with thread_budget(3) as pool:
            for rows in np.array_split(np.arange(50), 3):
                piece = corpus.subset(rows).content
                counts = piece.indptr.astype(np.int64), piece.indices, piece.data
                batch = Batch(words, *counts, state.contexts.take(rows), whole.columns, rows)
                one = assign_documents(batch, tables.log_likelihood, expected, pool)
                parts = one if parts is None else parts + one
        np.testing.assert_array_equal(parts.cluster, once.cluster)
        assert parts.log_evidence == pytest.approx(once.log_evidence, rel=1e-12)
        for name in ("n_k", "word_mass", "contexts"):
            np.testing.assert_allclose(getattr(parts, name), getattr(once, name), rtol=1e-10, atol=1e-12)


class TestCorpora:
    def test_missing_contexts_are_absent_contexts(self):
        corpus = small_corpus(10, n_documents=15)
        content, missing = corpus.content, {}
        for name, one in corpus.contexts.items():
            missing[name] = sp.csr_matrix(one.shape, dtype=int) if sp.issparse(one) else np.full(one.shape, np.nan)
        without = fit(Corpus(content), *engine_of(contexts={}), iterations=5, seed=3, progress=False)
        empty = fit(Corpus(content, contexts=missing), *engine_of(), iterations=5, seed=3, progress=False)
        np.testing.assert_allclose(empty.trace.elbo, without.trace.elbo, rtol=1e-12)
        np.testing.assert_array_equal(empty.state.topic_words, without.state.topic_words)

    def test_without_content_it_is_a_mixture_over_contexts(self):
        rng = np.random.default_rng(11)
        truth = rng.integers(2, size=60)
        time = np.where(truth == 1, 4.0, -4.0) + rng.normal(size=60)
        corpus = Corpus(sp.csr_matrix((60, 4), dtype=int), contexts={"time": time})
        engine = engine_of(5, 2, 2, contexts={"time": NormalGamma()}, initialisation="seeded")
        result = fit(corpus, *engine, iterations=60, seed=0, progress=False)
        assert np.diff(result.trace.elbo).min() > -1e-9
        first, second = (set(result.state.cluster[truth == one]) for one in (0, 1))
        assert not first & second
        assert result.trace.topics.iloc[-1] == 0

    @pytest.mark.parametrize("batch_size", [None, 1, 4, 1000])
    @pytest.mark.parametrize(
        "settings",
        [
            *({"initialisation": one} for one in ("seeded", "random", "gibbs")),
            *({"initialisation": "seeded", "document_concentration": omega} for omega in ("learn", 1e-10, 1e10)),
        ],
        ids=str,
    )
    def test_degenerate_sizes(self, batch_size, settings):
        has_level = "document_concentration" in settings
        truncations = [(1, None, 1), (3, None, 2), (2, None, 7)]
        truncations += [] if has_level else [(1, 1, 1), (3, 1, 2), (2, 3, 2)]
        for corpus in (small_corpus(12, n_documents=5), small_corpus(3, n_documents=2)):
            for n_clusters, max_tables, n_topics in truncations:
                engine = engine_of(n_clusters, max_tables, n_topics, batch_size=batch_size, **settings)
                result = fit(corpus, *engine, iterations=3, seed=0, progress=False)
                assert np.isfinite(result.trace.elbo).all()
                sample = result.posterior.representative
                assert sample.n_clusters <= n_clusters
                assert sample.n_topics <= n_topics
                assert sample.cluster_weights.sum() == pytest.approx(1.0)
                np.testing.assert_allclose(sample.topic_given_cluster.sum(axis=1), 1.0, rtol=1e-9)
                assert (sample.topic_words >= 0).all()
                assert set(sample.cluster) == set(range(sample.n_clusters))
                assert has_level or np.isfinite(result.posterior.perplexity(corpus))

    def test_in_use_is_not_the_truncation(self):
        content = np.zeros((40, 6), int)
        content[:20, :3] = 5
        content[20:, 3:] = 5
        engine = engine_of(12, 4, 15, contexts={}, topic_word_prior=0.01, initialisation="seeded")
        result = fit(Corpus(content), *engine, iterations=40, progress=False)
        assert result.trace.clusters.iloc[-1] == 2
        assert result.trace.topics.iloc[-1] <= 6
        assert len(set(result.state.cluster[:20])) == len(set(result.state.cluster[20:])) == 1

    def test_a_spread_token_leaves_a_topic_in_use(self):
        """Topics count as in use from half a token on: with one token over four of them there was none."""
        corpus = Corpus(np.array([[0, 1, 0, 0, 0, 0, 0]]))
        engine = svi(
            max_clusters=9, max_tables=7, max_topics=4, batch_size=3, topic_word_prior=0.8, topic_concentration=400.0
        )
        model = fit(corpus, *engine, iterations=3, progress=False).posterior
        assert len(model.representative.topic_weights) >= 1
        np.testing.assert_allclose(model.topic_given_cluster.sum(axis=1), 1.0, rtol=0, atol=1e-12)

    def test_a_state_of_another_corpus_is_refused(self):
        corpus, other = small_corpus(14), small_corpus(14, n_words=7)
        engine = engine_of()
        arrays = engine.init(corpus, 0).arrays()
        with pytest.raises(ValueError, match=r"'topic_words' has the shape \(5, 3\); \(7, 3\) is needed"):
            engine.restore(other, arrays)


class TestStart:
    def test_the_only_topic_starts_with_every_token(self):
        corpus = small_corpus(12, n_documents=5)
        state = engine_of(2, 3, 1, initialisation="seeded").init(corpus, 0)
        np.testing.assert_allclose(state.topic_words[:, 0], np.asarray(corpus.content.sum(axis=0)).ravel())

    def test_seeded_topics_that_just_suffice(self):
        # three documents of two kinds: best are two clusters with a topic each (-8.7 nats); 3.5 nats less with one
        corpus = Corpus(sp.csr_matrix([[2, 0], [2, 0], [0, 2]]))
        elbo = {}
        for start in ("seeded", "gibbs"):
            engine = svi(max_clusters=2, max_tables=2, max_topics=2, batch_size=None, initialisation=start)
            elbo[start] = fit(corpus, *engine, iterations=40, progress=False).trace.elbo.iloc[-1]
        assert elbo["seeded"] > max(elbo["gibbs"] - 0.1, -8.8)

    def test_a_cut_gibbs_state_loses_no_token(self):
        corpus = small_corpus(12, n_documents=6, mean_count=3.0)
        rng = np.random.default_rng(12)
        cluster, topic = rng.integers(3, size=6), rng.integers(7, size=corpus.n_tokens)
        n_w = np.asarray(corpus.content.sum(axis=0)).ravel()
        token_cluster = np.repeat(cluster, corpus.document_lengths)
        for truncations in [(3, 2, 7), (3, 3, 4)]:
            assignments = svi_init.assignments_of(corpus, cluster, topic, RunSettings(*truncations, None, False))
            assert assignments.topic_words.sum(axis=1).tolist() == n_w.tolist()
            # by size of the cluster; the last table serves the common topic, and every token of a cluster has a table
            sizes = np.bincount(cluster, minlength=3)
            order = np.argsort(-sizes, kind="stable")
            assert assignments.n_kt.sum(axis=1).tolist() == [(token_cluster == k).sum() for k in order]
            assert (assignments.table_topic[:, -1] == truncations[2] - 1).all()
            assert assignments.n_kt[:, -1].sum() > 0


class TestSettings:
    def test_paper_schedule(self):
        """Rates of the mini-batches t = 1 and 2."""
        for settings, rates in (
            ({"schedule": "paper"}, (2**-0.8, 3**-0.8)),
            ({"schedule": "paper", "learning_offset": 3}, (4**-0.8, 5**-0.8)),
            ({"schedule": "paper", "document_level": True}, (2**-0.8, 3**-0.8)),
            ({}, (65**-0.7, 66**-0.7)),
            ({"document_level": True}, (9**-0.7, 10**-0.7)),
        ):
            model, engine = svi(**settings)
            assert (engine.rate(model, 0), engine.rate(model, 1)) == pytest.approx(rates)
