"""Hierarchies against log marginals by predictive probabilities, one count, document and value after another."""

import csv
import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from helpers.fits import at_strength, fastex, gibbs, svi
from scipy import stats

from mc2core import Corpus, Posterior
from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.posterior import Sample, SparseRows, clustering, descent, hierarchy, mixture
from mc2core.posterior.descent import find_hierarchy, merge_clusters
from mc2core.posterior.hierarchy import Hierarchy

FAMILIES = {
    "year": NormalGamma(0.2, 0.7, 1.3, 0.9),
    "author": DirichletCategorical(0.3),
    "pages": GammaPoisson(1.5, 0.4),
}
N_DOCUMENTS, N_WORDS, N_TOPICS = 24, 9, 3
V, EPSILON = 1.4, np.array([0.4, 0.3, 0.2])


def small_corpus():
    rng = np.random.default_rng(5)
    near = rng.dirichlet(np.full(N_WORDS, 0.2), 3)
    content = np.array([rng.multinomial(rng.integers(1, 30), near[j % 3]) for j in range(N_DOCUMENTS)])
    year = rng.standard_normal(N_DOCUMENTS) + np.arange(N_DOCUMENTS) % 3
    year[3] = np.nan
    authors = rng.integers(0, 2, (N_DOCUMENTS, 5)) * rng.integers(0, 2, (N_DOCUMENTS, 1))
    pages = rng.poisson(3, N_DOCUMENTS).astype(float)
    return Corpus(content, contexts={"year": year, "author": sp.csr_matrix(authors), "pages": pages})


def drawn(cluster, topic_given_cluster, topic_words, topic_weights, contexts, **more):
    """A sample of as many clusters as have shares of topics."""
    k = len(topic_given_cluster)
    return Sample(
        cluster_weights=np.full(k, 1 / k), new_cluster_weight=0.1, topic_given_cluster=topic_given_cluster,
        new_topic_weight=np.full(k, 0.01), topic_words=topic_words, topic_word_prior=1e-9, topic_weights=topic_weights,
        table_concentration=V, contexts=SparseRows.from_dense(contexts), cluster=cluster.astype(np.int32), **more,
    )  # fmt: skip


def sample_of(cluster, prior, omega=math.inf):
    """A sample whose topic m has the words 3m, 3m + 1 and 3m + 2 and no other, so that tokens' topics are known."""
    k = int(cluster.max()) + 1
    shares = np.random.default_rng(1).dirichlet(np.ones(N_TOPICS), k)
    contexts, topic_words = np.tile(prior, (k, 1)), np.kron(np.eye(N_TOPICS), np.full((1, 3), 1e4))
    return drawn(cluster, shares, topic_words, EPSILON, contexts, document_concentration=omega)


def mc2_of(corpus, seed=0, n_clusters=7, n_samples=1, families=FAMILIES, omega=math.inf):
    """A posterior of MC2 with clusters at random."""
    rng = np.random.default_rng(seed)
    clusters = [rng.permutation(np.arange(N_DOCUMENTS) % n_clusters) for _ in range(n_samples)]
    dimensions = {name: family.dimension(corpus.contexts[name]) for name, family in families.items()}
    prior = np.concatenate([np.zeros(0), *(families[name].prior(dimensions[name]) for name in sorted(families))])
    samples = [sample_of(cluster, prior, omega) for cluster in clusters]
    return Posterior(samples, families, dimensions, corpus.vocabulary)


def two_chains(n_broad, n_fine):
    """Documents of fine clusters within broad ones, and a posterior in which each chain has some of them elsewhere."""
    rng, n_topics = np.random.default_rng(n_fine), 12
    topic, k = np.arange(n_topics), np.arange(n_fine)[:, None]
    own = 1.0 + 20.0 * (topic % n_broad == k % n_broad) + 40.0 * (topic == k)
    label = np.arange(30 * n_fine) % n_fine
    words = np.repeat(np.eye(n_topics), 3, axis=1) / 3
    corpus = Corpus(np.array([rng.multinomial(60, rng.dirichlet(own[k]) @ words) for k in label]))
    k = n_fine
    shares, weights = rng.dirichlet(np.ones(n_topics), k), np.full(n_topics, 0.99 / n_topics)
    sample = drawn(label, shares, 3e4 * words, weights, np.zeros((k, 0)), document_concentration=30.0)
    clusters = [np.where(rng.random(len(label)) < 0.02, rng.integers(0, k, len(label)), label) for _ in range(2)]
    samples = [replace(sample, cluster=one.astype(np.int32)) for one in clusters]
    provenance = {"chains": [1, 1], "corpus": corpus.digest}
    return corpus, Posterior(samples, {}, {}, corpus.vocabulary, provenance=provenance)


def with_own_topics(posterior):
    """The posterior with topics of other words in each sample."""
    moved = [replace(one, topic_words=np.roll(one.topic_words, i, axis=1)) for i, one in enumerate(posterior.samples)]
    return replace(posterior, samples=moved)


def urn(counts, prior):
    """ln p of a sequence with these whole counts under a Dirichlet: draw after draw."""
    met, total = np.zeros(len(prior)), 0.0
    for item, count in enumerate(counts):
        for _ in range(int(count)):
            total += math.log((prior[item] + met[item]) / (prior.sum() + met.sum()))
            met[item] += 1
    return total


def contexts_one_by_one(corpus, documents):
    """ln p of the contexts of some documents of one cluster, each predicted from those before it, without the base
    measure.
    """
    total, (mu, kappa, a, b) = 0.0, (0.2, 0.7, 1.3, 0.9)
    shape, rate = 1.5, 0.4
    authors = np.zeros(5)
    for j in documents:
        if not np.isnan(x := corpus.contexts["year"][j]):
            total += stats.t.logpdf(x, 2 * a, mu, math.sqrt(b * (kappa + 1) / (a * kappa)))
            total += 0.5 * math.log(2 * math.pi)
            a, b = a + 0.5, b + 0.5 * kappa * (x - mu) ** 2 / (kappa + 1)
            mu, kappa = (kappa * mu + x) / (kappa + 1), kappa + 1
        x = corpus.contexts["pages"][j]
        total += stats.nbinom.logpmf(x, shape, rate / (rate + 1)) + math.lgamma(x + 1)
        shape, rate = shape + x, rate + 1
        authors += corpus.contexts["author"][[j]].toarray().ravel()
    return total + urn(authors, np.full(5, 0.3))


def of_mc2(corpus):
    """ln p of what the documents of one cluster hold, of the corpus under ``mc2_of``."""
    tokens = corpus.content.toarray().reshape(N_DOCUMENTS, N_TOPICS, 3).sum(axis=2)
    prior = V * np.append(EPSILON, 1 - EPSILON.sum())

    def log_marginal(documents):
        return urn(np.append(tokens[documents].sum(axis=0), 0), prior) + contexts_one_by_one(corpus, documents)

    return log_marginal


def joined_alone(found, size):
    """The cut before ``size``, its two clusters joined and no document moved, and all of its clusters."""
    before, after = found.at(size + 1), found.at(size)
    one, other = found.joined[found.n_clusters - 1 - size]
    assert len(np.unique(after)) == size
    return np.unique(before, return_inverse=True)[1], np.where(before == other, one, before)


def check_every_step(found, log_marginal, sweeps_end=True):
    """Scores are those of the labels, each union is the best of all pairs, and no single move is left that gains."""
    assert found.n_clusters >= 3
    known = functools.cache(lambda documents: log_marginal(np.array(documents)))

    def plain_score(cluster):
        return sum(known(tuple(np.flatnonzero(cluster == k).tolist())) for k in np.unique(cluster[cluster >= 0]))

    for size in range(found.n_clusters, 0, -1):
        cluster = found.cut(size)
        score = plain_score(cluster)
        assert found.scores[size - 1] == pytest.approx(score, rel=1e-8, abs=1e-7)
        if size == found.n_clusters:
            continue
        before, joined = joined_alone(found, size)
        unions = [plain_score(np.where(before == b, a, before)) for b in range(size + 1) for a in range(b)]
        assert plain_score(joined) == pytest.approx(max(unions), rel=1e-8, abs=1e-7)
        assert score >= max(unions) - 1e-7
        for j in range(len(cluster)) if sweeps_end else ():
            for k in range(size) if (cluster == cluster[j]).sum() > 1 else ():
                moved = cluster.copy()
                moved[j] = k
                assert plain_score(moved) <= score + 1e-7


class TestSteps:
    @pytest.mark.parametrize("omega", [math.inf, 1.3])
    def test_each_joins_the_best_pair_and_moves_documents_to_gain(self, omega, monkeypatch):
        """Of MC2 with three contexts, with a document level and without."""
        monkeypatch.setattr(descent, "SWEEPS", 50)
        corpus = small_corpus()
        found = find_hierarchy(mc2_of(corpus, omega=omega), corpus)
        assert len(found.document) > 5
        check_every_step(found, of_mc2(corpus))

    @pytest.mark.parametrize("strength", [0.0, 0.25])
    def test_contexts_weigh_by_their_strength(self, strength, monkeypatch):
        monkeypatch.setattr(descent, "SWEEPS", 50)
        corpus, plain = small_corpus(), Corpus(small_corpus().content)
        tokens = corpus.content.toarray().reshape(N_DOCUMENTS, N_TOPICS, 3).sum(axis=2)

        def log_marginal(documents):
            result = urn(np.append(tokens[documents].sum(axis=0), 0), V * np.append(EPSILON, 1 - EPSILON.sum()))
            for name, family in FAMILIES.items():
                statistics = family.statistics(corpus.contexts[name])[documents].toarray().sum(axis=0)
                result += float(family.log_marginal(family.prior(len(statistics)) + strength * statistics))
            return result

        found = find_hierarchy(mc2_of(corpus, families=at_strength(FAMILIES, strength)), corpus)
        check_every_step(found, log_marginal)
        alone = find_hierarchy(mc2_of(plain, families={}), plain)
        assert np.allclose(found.scores, alone.scores) == (strength == 0.0)

    def test_those_of_fastex_hold_words(self, monkeypatch):
        monkeypatch.setattr(descent, "SWEEPS", 50)
        corpus = small_corpus().with_contexts({})
        engine = fastex(n_clusters=9, proposal="exact", topic_word_prior=0.2)
        found = find_hierarchy(fit(corpus, *engine, iterations=1, seed=2).posterior, corpus)
        words = corpus.content.toarray()
        check_every_step(found, lambda documents: urn(words[documents].sum(axis=0), np.full(9, 0.2)))

    def test_svi_has_levels_of_the_clusters_of_its_documents(self):
        corpus = small_corpus().with_contexts({})
        engine = svi(max_clusters=5, max_topics=4, batch_size=None, document_concentration=1.3)
        posterior = fit(corpus, *engine, iterations=3, seed=1).posterior
        found = find_hierarchy(posterior, corpus)
        assert found.n_clusters == len(np.unique(posterior.representative.cluster))
        assert clustering.adjusted_rand_index(posterior.representative.cluster, found.cut(found.n_clusters)) == 1.0

    def test_moving_documents_is_never_worse_than_joining_alone(self, monkeypatch):
        corpus = small_corpus()
        for seed in range(5):
            posterior = mc2_of(corpus, seed)
            refined = find_hierarchy(posterior, corpus)
            monkeypatch.setattr(descent, "WORK", 0)
            alone = find_hierarchy(posterior, corpus)
            monkeypatch.undo()
            assert not len(alone.document)
            check_every_step(alone, of_mc2(corpus), sweeps_end=False)
            assert (refined.scores >= alone.scores - 1e-7).all()
            assert (refined.scores > alone.scores + 1.0).any()

    def test_sizes_that_cost_too_much_are_joined_alone(self, monkeypatch):
        corpus = small_corpus()
        posterior = mc2_of(corpus)
        products = corpus.n_tokens + int(corpus.contexts["author"].sum()) + 32 * (4 * 23 + 2 * 24)
        monkeypatch.setattr(descent, "WORK", descent.SWEEPS * products * 4.5**2 / 2)
        moved = find_hierarchy(posterior, corpus).table().set_index("clusters")["moved"]
        assert not moved.loc[5:].any()
        assert moved.loc[:4].any()

    def test_documents_move_after_each_tenth_of_the_clusters(self, monkeypatch):
        corpus, seen, sweep = small_corpus(), [], descent._Clusters.sweep

        def noted(clusters):
            seen.append(clusters.n)
            return sweep(clusters)

        monkeypatch.setattr(descent._Clusters, "sweep", noted)
        products = corpus.n_tokens + int(corpus.contexts["author"].sum()) + 32 * (4 * 23 + 2 * 24)
        monkeypatch.setattr(descent, "WORK", 8 * 23 * products)  # enough for sizes up to sqrt(2 * 8 * 23)
        find_hierarchy(mc2_of(corpus, n_clusters=24), corpus)
        assert seen == [23, *range(20, 1, -1)]

    def test_documents_in_blocks_are_kept_only_where_they_move(self, monkeypatch):
        corpus = small_corpus()
        posterior = mc2_of(corpus, n_samples=3)
        cluster = posterior.samples[0].cluster.copy()
        cluster[[2, 20]] = -1
        posterior = replace(posterior, samples=[replace(posterior.samples[0], cluster=cluster), *posterior.samples[1:]])
        for work, is_kept in ((descent.WORK, True), (0, False)):
            monkeypatch.setattr(descent, "WORK", work)
            whole = find_hierarchy(posterior, corpus)
            monkeypatch.setattr(descent, "blocks", lambda corpus, width: mixture.blocks(corpus, width, 5))
            assert find_hierarchy(posterior, corpus).cut(3).tolist() == whole.cut(3).tolist()
            assert np.allclose(find_hierarchy(posterior, corpus).scores, whole.scores, rtol=1e-12, atol=0)
            workspace = descent.Workspace.from_posterior(posterior, corpus, posterior.representative, posterior.cluster)
            assert (workspace.counts is not None) == is_kept
            assert workspace.numbers.n_documents == (N_DOCUMENTS if is_kept else N_DOCUMENTS % 5)
            monkeypatch.setattr(descent, "blocks", mixture.blocks)

    def test_whole_numbers_keep_the_sums_of_documents(self):
        tokens = np.array([[0.4, 0.4, 0.2], [2.6, 0.3, 1.1], [0.5, 0.5, 2.0], [0.0, 0.0, 0.0]])
        assert descent._round_rows(tokens).tolist() == [[1, 0, 0], [3, 0, 1], [1, 0, 2], [0, 0, 0]]


class TestHierarchy:
    def test_every_size_is_there_and_the_first_is_the_fits(self):
        corpus = small_corpus()
        posterior = mc2_of(corpus)
        found = posterior.find_hierarchy(corpus)
        assert posterior.hierarchy is found
        assert found.cut(7).tolist() == posterior.representative.cluster.tolist()
        assert [sorted(set(found.cut(size).tolist())) for size in range(1, 8)] == [list(range(n)) for n in range(1, 8)]
        for wrong in (0, 8):
            with pytest.raises(ValueError, match=f"{wrong} clusters were requested; a cut has 1 to 7"):
                found.cut(wrong)

    def test_clusters_are_joined_to_a_size_as_levels_are(self):
        corpus, posterior = small_corpus(), mc2_of(small_corpus(), seed=2)
        known = find_hierarchy(posterior, corpus)
        for size in range(1, 8):
            in_order = np.unique(known.at(size), return_inverse=True)[1]
            assert merge_clusters(posterior, corpus, size).tolist() == in_order.tolist()
        assert merge_clusters(posterior, corpus, 9).tolist() == known.cut(7).tolist()

    def test_a_cut_is_its_steps_one_after_another(self):
        found = find_hierarchy(mc2_of(small_corpus(), seed=3), small_corpus())
        cluster = found.cluster.copy()
        for step, (first, second) in enumerate(found.joined.tolist()):
            cluster[cluster == second] = first
            for move in range(found.start[step], found.start[step + 1]):
                cluster[found.document[move]] = found.to[move]
            used, sizes = np.unique(cluster, return_counts=True)
            largest_first = used[np.argsort(-sizes, kind="stable")].tolist()
            expected = [largest_first.index(one) for one in cluster]
            assert found.cut(found.n_clusters - 1 - step).tolist() == expected

    def test_of_some_documents_they_are_those_of_all(self):
        corpus, rows = small_corpus(), np.array([0, 3, 4, 11, 20, 23])
        found = find_hierarchy(mc2_of(corpus), corpus)
        assert len(found.document) > 5
        part = found.of_documents(rows)
        for size in range(1, 8):
            assert part.cut(size).tolist() == found.cut(size)[rows].tolist()
        assert part.recommended == found.recommended
        assert part.table()["log_marginal"].tolist() == pytest.approx(found.table()["log_marginal"].tolist())

    def test_documents_of_no_cluster_stay_in_none(self):
        corpus = small_corpus()
        posterior = mc2_of(corpus)
        cluster = posterior.samples[0].cluster.copy()
        cluster[[0, 5]] = -1
        found = find_hierarchy(replace(posterior, samples=[replace(posterior.samples[0], cluster=cluster)]), corpus)
        for size in range(1, 8):
            assert np.flatnonzero(found.cut(size) < 0).tolist() == [0, 5]

    def test_agreement_is_that_with_levels_of_other_samples(self):
        corpus = small_corpus()
        posterior = with_own_topics(mc2_of(corpus, n_samples=3))
        found = find_hierarchy(posterior, corpus)
        others = [find_hierarchy(replace(posterior, samples=[one]), corpus) for one in posterior.samples]
        for size in range(1, 8):
            ari = [clustering.adjusted_rand_index(found.at(size), one.at(size)) for one in others]
            assert found.agreement[size - 1] == pytest.approx(np.mean(ari))

    def test_agreement_of_chains_is_that_of_their_own_cuts(self):
        corpus = small_corpus()
        posterior = with_own_topics(mc2_of(corpus, n_samples=4))
        posterior.provenance["chains"] = [1, 3]
        found = find_hierarchy(posterior, corpus)
        one, other = (find_hierarchy(chain, corpus) for chain in posterior.chains)
        for size in range(1, min(one.n_clusters, other.n_clusters) + 1):
            ari = clustering.adjusted_rand_index(one.at(size), other.at(size))
            assert found.agreement[size - 1] == pytest.approx(ari)

    def test_a_number_that_was_fixed_is_recommended(self):
        corpus = small_corpus()
        posterior = mc2_of(corpus)
        assert find_hierarchy(posterior, corpus).recommended < 7
        for name in ("mc2", "mixture"):
            posterior.provenance["model"] = {"name": name, "n_clusters": 7}
            assert find_hierarchy(posterior, corpus).recommended == 7
            posterior.provenance["model"]["n_clusters"] = None
            assert find_hierarchy(posterior, corpus).recommended < 7

    def test_agreement_is_unknown_of_one_sample(self):
        corpus = small_corpus()
        assert np.isnan(find_hierarchy(mc2_of(corpus), corpus).agreement).all()

    def test_a_chain_of_fewer_clusters_keeps_all_of_them(self):
        corpus = small_corpus()
        posterior = mc2_of(corpus, n_samples=2)
        few = replace(posterior.samples[0], cluster=np.arange(N_DOCUMENTS, dtype=np.int32) % 3)
        for samples in ([few, posterior.samples[1]], [posterior.samples[1], few]):
            both = replace(posterior, samples=samples, provenance={"chains": [1, 1]})
            found = find_hierarchy(both, corpus)
            one, other = (find_hierarchy(chain, corpus) for chain in both.chains)
            for size in range(1, found.n_clusters + 1):
                cuts = (each.at(min(size, each.n_clusters)) for each in (one, other))
                assert found.agreement[size - 1] == pytest.approx(clustering.adjusted_rand_index(*cuts))

    @pytest.mark.parametrize(
        ("scores", "agreement", "are_chains", "chosen"),
        [
            # the largest number on which chains agree by nine tenths of the most
            ([0.0, 50.0, 87.0, 97.0, 100.0], [1.0, 0.9, 0.9, 0.9, 0.9], True, 5),
            ([0.0, 50.0, 87.0, 97.0, 100.0], [1.0, 0.9, 0.9, 0.82, 0.8], True, 4),
            # of those that explain half
            ([0.0, 50.0, 87.0, 97.0, 100.0], [1.0, 0.9, 0.4, 0.4, 0.4], True, 2),
            ([0.0, 49.0, 87.0, 97.0, 100.0], [1.0, 0.9, 0.4, 0.4, 0.2], True, 4),
            ([0.0, 30.0, 100.0, 97.0, 90.0], [1.0, 0.9, 0.4, 0.3, 0.2], True, 3),
            # less 0.18, 0.28, 0.35 and 0.41 for their number, where one chain says nothing of the others
            ([0.0, 50.0, 87.0, 97.0, 100.0], [1.0, 0.9, 0.9, 0.9, 0.9], False, 4),
            ([0.0, 50.0, 87.0, 97.0, 100.0], [math.nan] * 5, True, 4),
            ([0.0, 90.0, 98.0, 100.0], [math.nan] * 4, False, 2),
            ([0.0, 50.0, 100.0], [1.0, -0.1, -0.2], True, 1),
            ([0.0, 50.0, 100.0], [1.0, 0.0, 0.0], True, 1),
            ([0.0, -3.0, -9.0], [1.0, 0.9, 0.9], True, 1),
            ([0.0], [1.0], False, 1),
        ],
    )
    def test_the_recommended_cut_is_the_finest_that_chains_agree_on(self, scores, agreement, are_chains, chosen):
        n, scores, agreement = len(scores), np.array(scores), np.array(agreement)
        pairs, none = np.column_stack([np.zeros(n - 1), np.arange(1, n)]).astype(np.int32), np.zeros(0, np.int32)
        recommended, _ = hierarchy.recommend(scores, agreement, are_chains)
        joined = np.arange(n, dtype=np.int32), pairs, np.zeros(n, np.int64), none, none
        made = Hierarchy(*joined, scores, agreement, recommended)
        assert made.recommended == chosen
        table = made.table()
        assert table.loc[table["recommended"] == "yes", "clusters"].tolist() == [chosen]
        assert (table["loss"].iloc[:-1] * n).tolist() == pytest.approx(np.diff(scores))

    @pytest.mark.parametrize(
        ("gains", "agreement", "chosen"),
        [
            ([60.0, 5.0, 5.0, 5.0, 5.0], [0.9, 0.9, 0.9, 0.9, 0.9], (6, 2)),  # an edge of what is gained
            ([60.0, 21.0, 5.0, 5.0, 5.0], [0.9, 0.9, 0.9, 0.9, 0.9], (6, 3)),  # the last of two
            ([60.0, 21.0, 19.0, 5.0, 5.0], [0.9, 0.9, 0.9, 0.9, 0.9], (6, 0)),  # more than half of six
            ([60.0, 21.0, 19.0, 18.0, 17.0], [0.9, 0.9, 0.8, 0.9, 0.9], (6, 3)),  # an edge of the agreement
            ([60.0, 21.0, 19.0, 18.0, 17.0], [0.9, 0.9, 0.82, 0.9, 0.9], (6, 0)),
            ([60.0, 5.0, 5.0, 5.0, 5.0], [0.9, 0.9, 0.8, 0.9, 0.9], (6, 2)),  # what is gained comes first
            ([20.0, 20.0, 20.0, 18.0, 17.0], [0.9, 0.7, 0.9, 0.9, 0.9], (6, 0)),  # two explain too little
            ([60.0, 5.0, 5.0, 5.0, 5.0], [0.69, 0.69, 0.69, 0.69, 0.69], (6, 0)),  # chains differ
            ([60.0, 5.0, 5.0, 5.0, 5.0], [0.95, 0.8, 0.8, 0.71, 0.6], (2, 5)),  # finer, and chains still agree
            ([60.0, 5.0, 5.0, 5.0, 5.0], [0.95, 0.8, 0.6, 0.6, 0.6], (2, 0)),
            ([90.0], [0.9], (2, 0)),
        ],
    )
    def test_another_number_is_half_or_twice_as_large(self, gains, agreement, chosen):
        scores = np.concatenate([[0.0], np.cumsum(gains)])
        assert hierarchy.recommend(scores, np.array([1.0, *agreement]), are_chains=True) == chosen

    @pytest.mark.parametrize(("n_broad", "n_fine", "chosen"), [(4, 12, (12, 4)), (8, 8, (8, 0)), (1, 1, (1, 0))])
    def test_broad_and_fine_are_found_where_both_are(self, n_broad, n_fine, chosen):
        corpus, posterior = two_chains(n_broad, n_fine)
        posterior.provenance["log_odds_of_clusters"] = 100.0 if n_fine > 1 else -100.0
        found = find_hierarchy(posterior, corpus)
        assert (found.recommended, found.other) == chosen
        sizes = {name: found.size_of(name) for name in hierarchy.CUTS}
        assert sizes == {"recommended": n_fine, "broad": n_broad, "fine": n_fine, "all": found.n_clusters}
        assert found.size_of(3) == 3
        with pytest.raises(ValueError, match="cut is 'brood'; allowed: recommended, broad, fine, all; did you mean"):
            found.size_of("brood")
        for name in hierarchy.CUTS[:3]:
            assert posterior.assign(corpus, cut=name)[0].tolist() == found.cut(sizes[name]).tolist()
        levels = dict(found.table().set_index("level")["clusters"]) if found.other else {}
        assert {name: levels[name] for name in levels if name} == ({"broad": 4, "fine": 12} if found.other else {})

    def test_classes_that_are_far_apart_are_marked_and_found(self):
        rng = np.random.default_rng(3)
        classes = np.arange(200) % 5
        words = rng.dirichlet(np.full(60, 0.1), 5)
        corpus = Corpus(np.array([rng.multinomial(30, words[one]) for one in classes]))
        cluster = (2 * classes + rng.integers(0, 2, 200)).astype(np.int32)  # each class in two
        cluster[::20] = rng.integers(0, 10, 10)  # and some documents in another's
        posterior = fit(corpus, *fastex(n_clusters=10, proposal="exact"), iterations=1, seed=0).posterior
        posterior.provenance["model"]["n_clusters"] = None
        counts = np.array([corpus.content[cluster == k].toarray().sum(axis=0) for k in range(10)])
        sample = posterior.samples[0]
        posterior.samples = [
            replace(
                sample, cluster=cluster, topic_words=sp.csr_matrix(counts), cluster_weights=np.full(10, 0.1),
                topic_given_cluster=sp.identity(10, format="csr"), new_topic_weight=np.zeros(10),
                topic_weights=np.full(10, 0.1), contexts=SparseRows.from_dense(np.zeros((10, 0))),
            )
        ]  # fmt: skip
        found = find_hierarchy(posterior, corpus)
        assert found.recommended == 5
        assert clustering.adjusted_rand_index(classes, found.cut(5)) == 1.0

    def test_a_document_is_in_its_likeliest_cluster_by_the_samples(self):
        corpus, posterior = small_corpus(), mc2_of(small_corpus(), n_samples=5)
        found = find_hierarchy(posterior, corpus)
        moved = 0
        for size in range(1, found.n_clusters):
            made, cut, probability = found.at(size), found.cut(size), found.probability(size)
            assert (np.diff(np.bincount(cut, minlength=size)) <= 0).all()
            assert probability.sum(axis=1) == pytest.approx(1.0)
            for j in range(N_DOCUMENTS):
                own = {
                    int(k): np.mean([np.mean(made[one.cluster == one.cluster[j]] == k) for one in posterior.samples])
                    for k in np.unique(made)
                }
                assert sorted(own.values()) == pytest.approx(sorted(probability[j]))
                is_likeliest = probability[j, cut[j]] == pytest.approx(probability[j].max())
                assert is_likeliest or (made == made[j]).sum() == (cut[made == made[j]] == cut[j]).sum()
            moved += clustering.adjusted_rand_index(made, cut) < 1.0
            assert len(np.unique(cut)) == size
        assert moved > 0  # the test is of something
        assert clustering.adjusted_rand_index(posterior.cluster, found.cut(found.n_clusters)) == 1.0

    def test_a_cluster_that_all_would_leave_keeps_its_documents(self):
        raw = np.array([0] * 8 + [1] * 2 + [2] * 2, np.int32)
        none = np.zeros(0, np.int32)
        pairs, samples = np.array([[0, 2], [0, 1]], np.int32), [np.zeros(12, np.int32)] * 2
        made = Hierarchy(raw, pairs, np.zeros(3, np.int64), none, none, np.arange(3.0), np.ones(3), 2, samples)
        assert made.cut(2).tolist() == [0] * 8 + [1] * 2 + [0] * 2
        assert made.probability(2) == pytest.approx(np.tile([10 / 12, 2 / 12], (12, 1)))

    def test_shares_are_those_of_documents(self):
        found = find_hierarchy(mc2_of(small_corpus()), small_corpus())
        cluster, cut = np.arange(N_DOCUMENTS) % 4, found.cut(3)
        shares = found.shares(3, cluster, 5)
        for k in range(4):
            assert shares[k] == pytest.approx(np.bincount(cut[cluster == k], minlength=3) / 6)
        assert shares[4] == pytest.approx(np.bincount(cut, minlength=3) / N_DOCUMENTS)

    def test_what_has_no_levels_is_refused(self, monkeypatch):
        corpus = small_corpus().with_contexts({})
        hdp = fit(corpus, *gibbs(kernel="collapsed", model="hdp", start_topics=2), iterations=1, seed=0)
        with pytest.raises(ValueError, match="each document is its own cluster"):
            hdp.posterior.find_hierarchy(corpus)
        posterior = mc2_of(corpus, families={})
        with pytest.raises(ValueError, match="the corpus has 23 documents, but the model was fitted on 24"):
            posterior.find_hierarchy(corpus.subset(np.arange(23)))
        monkeypatch.setattr(descent, "MAX_CLUSTERS", 6)
        with pytest.raises(ValueError, match="7 clusters of 4 topics, words or names are too many for a hierarchy"):
            posterior.find_hierarchy(corpus)
        none = replace(posterior.samples[0], cluster=np.full(N_DOCUMENTS, -1, np.int32))
        with pytest.raises(ValueError, match="no document is in a cluster"):
            find_hierarchy(replace(posterior, samples=[none]), corpus)

    @pytest.mark.parametrize(
        ("columns", "most"), [(0, 5000), (100, 5000), (10_000, 2621), (50_000, 1172), (2**27, 1), (2**28, 0)]
    )
    def test_clusters_are_limited_by_memory_and_time(self, columns, most):
        assert descent.most_clusters(columns) == most
        assert not descent.are_too_many(most, columns)
        assert descent.are_too_many(most + 1, columns)

    def test_a_fit_has_none_where_a_score_is_no_number(self, monkeypatch, tmp_path):
        """And its files can be read: what is stored is refused by the reader otherwise."""
        corpus = small_corpus()
        monkeypatch.setattr(descent._Clusters, "score", lambda self: np.nan)
        with pytest.raises(ValueError, match="the log marginal likelihood of a cut is not a number"):
            mc2_of(corpus).find_hierarchy(corpus)
        corpus.save(tmp_path / "data")
        mc2(f"fit {tmp_path}/data --iterations 1 --out {tmp_path}/fit")
        assert Posterior.load(tmp_path / "fit").hierarchy is None


class TestFile:
    @staticmethod
    def saved(folder):
        corpus = small_corpus()
        posterior = mc2_of(corpus, n_samples=2)
        posterior.find_hierarchy(corpus)
        posterior.save(folder / "posterior.npz")
        return posterior

    def test_levels_are_kept(self, tmp_path):
        made = self.saved(tmp_path).hierarchy
        read = Posterior.load(tmp_path / "posterior.npz").hierarchy
        for size in range(1, 8):
            assert read.cut(size).tolist() == made.cut(size).tolist()
        assert read.table().equals(made.table())

    def test_a_second_number_is_kept_and_older_files_have_none(self, tmp_path):
        posterior = self.saved(tmp_path)
        posterior.hierarchy = replace(posterior.hierarchy, recommended=3, other=6)
        posterior.save(tmp_path / "two.npz")
        read = Posterior.load(tmp_path / "two.npz").hierarchy
        assert [read.size_of(name) for name in hierarchy.CUTS] == [3, 3, 6, 7]
        arrays = {name: np.array(array) for name, array in storage.read_arrays(tmp_path / "two.npz").items()}
        del arrays["hierarchy.other"]
        storage.write_arrays(tmp_path / "older.npz", arrays)
        read = Posterior.load(tmp_path / "older.npz").hierarchy
        assert [read.size_of(name) for name in hierarchy.CUTS] == [3, 3, 3, 7]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda arrays: arrays.pop("hierarchy.to"), "'to' is missing"),
            (lambda arrays: arrays["hierarchy.cluster"].__setitem__(3, 7),
            "'cluster' holds an index that is not below 7"),
            (lambda arrays: arrays["hierarchy.to"].__setitem__(0, 7), "'to' holds an index that is not below 7"),
            (lambda arrays: arrays.update({"hierarchy.scores": np.zeros(3)}), "'agreement' has the shape"),
            (lambda arrays: arrays.update({"hierarchy.cluster": np.zeros(23, np.int32)}), "'cluster' has the shape"),
            (lambda arrays: arrays.update({"hierarchy.recommended": np.array(8)}), "'recommended' is 8; it must lie"),
            (lambda arrays: arrays.update({"hierarchy.other": np.array(-1)}), "'other' is -1; it must lie"),
        ],
    )  # fmt: skip
    def test_damaged_levels_are_refused(self, tmp_path, change, said):
        self.saved(tmp_path)
        arrays = {name: np.array(array) for name, array in storage.read_arrays(tmp_path / "posterior.npz").items()}
        change(arrays)
        storage.write_arrays(tmp_path / "forged.npz", arrays)
        with pytest.raises(ValueError, match=f"forged.npz is not a saved posterior: hierarchy: .*{said}"):
            Posterior.load(tmp_path / "forged.npz")


class TestCommand:
    def fitted(self, folder):
        """The path of a fit by the command, and documents that are new to it."""
        corpus = small_corpus()
        new = corpus.subset(np.arange(6))
        corpus.save(folder / "corpus")
        new.save(folder / "new")
        fitted = ["fit", str(folder / "corpus"), "--out", str(folder / "fit"), "--iterations", "6", "--seed", "3"]
        start = ["--set", "start_topics=3", "--set", "start_clusters=5", "--set", "document_level=false"]
        mc2([*fitted, *start, "--context", "pages:gamma_poisson"])
        return str(folder / "fit" / "posterior.npz"), new

    def rows(self, capsys):
        return list(csv.DictReader(capsys.readouterr().out.splitlines()))

    def test_levels_are_kept_by_a_fit_and_shown(self, tmp_path, capsys):
        path, new = self.fitted(tmp_path)
        capsys.readouterr()
        kept = Posterior.load(path)
        assert kept.hierarchy is not None
        mc2(f"clusters {path} --hierarchy")
        shown = self.rows(capsys)
        assert [int(row["clusters"]) for row in shown] == list(range(1, kept.hierarchy.n_clusters + 1))
        assert [row["clusters"] for row in shown if row["recommended"]] == [str(kept.hierarchy.recommended)]
        assert float(shown[1]["loss"]) == pytest.approx(np.diff(kept.hierarchy.scores)[1] / N_DOCUMENTS, rel=1e-4)

        mc2(f"clusters {path} {tmp_path}/corpus --cut 2")
        cut, rows = kept.hierarchy.cut(2), self.rows(capsys)
        assert [int(row["cluster"]) - 1 for row in rows] == cut.tolist()
        shown = [float(row["probability"]) for row in rows]
        assert shown == pytest.approx(kept.hierarchy.probability(2)[np.arange(N_DOCUMENTS), cut], abs=1e-6)

        for named, number in (("recommended", kept.hierarchy.recommended), ("all", kept.hierarchy.n_clusters)):
            mc2(f"clusters {path} {tmp_path}/corpus --cut {named}")
            shown = self.rows(capsys)
            assert [int(row["cluster"]) - 1 for row in shown] == kept.hierarchy.cut(number).tolist()
        mc2(f"clusters {path} {tmp_path}/corpus")
        told = capsys.readouterr()
        assert f"the recommended clustering has {kept.hierarchy.recommended} clusters" in told.err
        rows = list(csv.DictReader(told.out.splitlines()))
        assert {int(row["cluster"]) for row in rows} == set(range(1, kept.hierarchy.recommended + 1))

        mc2(f"clusters {path} {tmp_path}/new --cut 2")
        rows, first = self.rows(capsys), kept.representative.cluster
        into = np.array(
            [[np.mean(cut[first == k] == g) for g in (0, 1)] for k in range(kept.representative.n_clusters)]
        )
        expected = kept.predict_proba(new) @ into
        assert [int(row["cluster"]) - 1 for row in rows] == expected.argmax(axis=1).tolist()
        assert [float(row["probability"]) for row in rows] == pytest.approx(expected.max(axis=1), abs=1e-6)

    def test_broad_and_fine_cuts_are_printed(self, tmp_path, capsys):
        path, _ = self.fitted(tmp_path)
        posterior, corpus = Posterior.load(path), str(tmp_path / "corpus")
        two = str(tmp_path / "two.npz")
        replace(posterior, hierarchy=replace(posterior.hierarchy, recommended=2, other=3)).save(two)
        for named, size in (("broad", 2), ("recommended", 2), ("fine", 3)):
            capsys.readouterr()
            mc2(f"clusters {two} {corpus} --cut {named}")
            told = capsys.readouterr()
            rows = list(csv.DictReader(told.out.splitlines()))
            assert [int(row["cluster"]) - 1 for row in rows] == posterior.hierarchy.cut(size).tolist()
            assert f"mc2: the {named} clustering has {size} clusters" in told.err
            assert ("; the fine clustering has 3 (--cut fine)" in told.err) == (size == 2)
        mc2(f"clusters {two} --hierarchy")
        assert [row["level"] for row in self.rows(capsys)][:3] == ["", "broad", "fine"]
        replace(posterior, hierarchy=replace(posterior.hierarchy, recommended=2, other=0)).save(two)
        mc2(f"clusters {two} {corpus} --cut fine")
        assert "it is the recommended one, because only one number of clusters stands out" in capsys.readouterr().err
        with pytest.raises(SystemExit, match="2"):
            main(["clusters", two, corpus, "--cut", "middle"])
        said = "'middle' is neither a number of clusters nor one of recommended, broad, fine, all"
        assert said in capsys.readouterr().err

    def test_what_cannot_be_shown_is_said(self, tmp_path, output_of, refused):
        path, _ = self.fitted(tmp_path)
        n = Posterior.load(path).hierarchy.n_clusters
        error = f"error: {n + 1} clusters were requested; a cut has 1 to {n}"
        refused(["clusters", path, tmp_path / "corpus", "--cut", n + 1], error)
        refused(f"clusters {path}", "error: give a corpus")
        replace(Posterior.load(path), hierarchy=None).save(tmp_path / "without.npz")
        without = str(tmp_path / "without.npz")
        refused(f"clusters {without} --hierarchy", "contains no hierarchy; give the corpus of the fit")
        error = "error: the posterior has no hierarchy; find_hierarchy(corpus)"
        refused(f"clusters {without} {tmp_path}/new --cut 2", error)
        for command in ("--hierarchy", "--cut=2"):
            kept = output_of(f"clusters {path} {tmp_path}/corpus {command}")
            assert output_of(f"clusters {without} {tmp_path}/corpus {command}") == kept
