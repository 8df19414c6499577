"""Baselines against direct calls of scikit-learn, against clusters that are plain to see, and against bad input."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import fastex, gibbs
from scipy.special import rel_entr
from sklearn import cluster, decomposition, mixture
from sklearn.feature_extraction.text import TfidfTransformer

from mc2core import Corpus, clustering
from mc2core.base import memory, storage
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior
from mc2papers.baselines.affinity import Affinity, HDPAffinity, symmetric_kl
from mc2papers.baselines.assignments import Assignments
from mc2papers.baselines.base import random_state
from mc2papers.baselines.cut import Cut
from mc2papers.baselines.files import fit_baseline
from mc2papers.baselines.gaussian_mixture import GaussianMixture
from mc2papers.baselines.kmeans import KMeans
from mc2papers.baselines.lda import LDA
from mc2papers.baselines.nmf import NMF
from mc2papers.baselines.registry import BASELINES, make_baseline
from mc2papers.configuration import LEAVE_MODELS, ON_SPARK

N, GROUPS, WORDS = 36, 3, 12
TRUTH = np.arange(N) % GROUPS


def clear(seed=0, with_tags=False):
    """Documents of three groups; nine of ten words are of the group's own four, and two tags are of one group only."""
    rng = np.random.default_rng(seed)
    shares = np.full((GROUPS, WORDS), 0.1 / WORDS)
    for group in range(GROUPS):
        shares[group, 4 * group : 4 * group + 4] += 0.9 / 4
    content = np.array([rng.multinomial(40, shares[group]) for group in TRUTH])
    tags = sp.csr_matrix((np.full(N, 2), (np.arange(N), TRUTH)), shape=(N, GROUPS))
    return Corpus(content, contexts={"tag": tags} if with_tags else {}, labels=TRUTH)


@pytest.fixture(scope="module")
def hdp():
    engine = gibbs(kernel="collapsed", model="hdp", start_topics=6)
    return fit(clear(), *engine, iterations=40, seed=0, progress=False).posterior


@pytest.fixture(scope="module")
def mixture_of_nine():
    engine = fastex(n_clusters=9, proposal="exact")
    posterior = fit(clear(), *engine, iterations=6, seed=0, progress=False).posterior
    posterior.provenance["model"]["n_clusters"] = None  # a number that was given would be the recommended one
    return posterior


def solve(baseline, corpus=None, seed=0, model=None):
    return baseline.fit(corpus or clear(), seed, model).result


class TestOtherLibraries:
    def test_kmeans_is_scikit_learns_for_each_number_of_clusters(self):
        corpus, seed = clear(with_tags=True), 4
        found = solve(KMeans(n_clusters=[2, 5], weighting="counts"), corpus, seed).solutions
        table = np.hstack([corpus.content.toarray(), corpus.contexts["tag"].toarray()]).astype(float)
        for k in (2, 5):
            direct = cluster.KMeans(k, n_init=10, random_state=random_state(seed, "kmeans")).fit(sp.csr_matrix(table))
            np.testing.assert_array_equal(found[f"k{k}"], direct.labels_)
        assert list(found) == ["k2", "k5"]

    def test_tfidf_is_scikit_learns(self):
        corpus = clear()
        direct = cluster.KMeans(4, n_init=10, random_state=random_state(0, "kmeans"))
        expected = direct.fit_predict(TfidfTransformer().fit_transform(corpus.content))
        np.testing.assert_array_equal(solve(KMeans(n_clusters=4)).solutions["k4"], expected)

    def test_nmf_is_scikit_learns_with_factors_of_one_length(self):
        corpus = clear()
        direct = decomposition.NMF(4, init="nndsvdar", tol=1e-3, max_iter=500, random_state=random_state(2, "nmf"))
        weights = direct.fit_transform(sp.csr_matrix(corpus.content, dtype=float))
        lengths = [np.sqrt((row**2).sum()) for row in direct.components_]
        expected = [int(np.argmax([w * length for w, length in zip(row, lengths, strict=True)])) for row in weights]
        np.testing.assert_array_equal(solve(NMF(n_clusters=4, weighting="counts"), seed=2).solutions["k4"], expected)

    def test_clusters_in_the_space_of_lsa_use_its_singular_vectors(self):
        corpus, seed = clear(), 5
        left, scale, _ = np.linalg.svd(TfidfTransformer().fit_transform(corpus.content).toarray())
        points = left[:, :4] * scale[:4]
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        for baseline, method in (
            (KMeans(n_clusters=4, dimension=4), cluster.KMeans(4, n_init=10)),
            (GaussianMixture(n_clusters=4, dimension=4), mixture.GaussianMixture(4, covariance_type="diag", n_init=10)),
        ):
            found = solve(baseline, corpus, seed).solutions["k4"]
            expected = method.set_params(random_state=0).fit_predict(points)
            assert clustering.nmi(expected, found) == pytest.approx(1.0)

    def test_affinity_propagation_is_scikit_learns(self):
        corpus = clear()
        direct = cluster.AffinityPropagation(damping=0.7, max_iter=1000, random_state=random_state(0, "affinity"))
        expected = direct.fit_predict(corpus.content.toarray().astype(float))
        np.testing.assert_array_equal(solve(Affinity(damping=0.7, weighting="counts")).solutions["cluster"], expected)

    def test_symmetric_kl_is_scipys_both_ways(self):
        shares = np.random.default_rng(3).dirichlet(np.full(4, 0.4), 6)
        expected = [[rel_entr(p, q).sum() + rel_entr(q, p).sum() for q in shares] for p in shares]
        np.testing.assert_allclose(symmetric_kl(shares), expected, atol=1e-12)

    def test_hdp_ap_propagates_on_the_representatives_proportions(self, hdp):
        sample = hdp.representative
        new = sample.new_topic_weight
        shares = np.array([[*((1 - u) * row), u] for row, u in zip(sample.topic_given_cluster, new, strict=True)])
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
        similar = np.array([[-(rel_entr(p, q).sum() + rel_entr(q, p).sum()) for q in shares] for p in shares])
        settings = {"damping": 0.9, "max_iter": 1000, "random_state": random_state(0, "hdp_affinity")}
        expected = cluster.AffinityPropagation(affinity="precomputed", **settings).fit_predict(similar)
        found = solve(HDPAffinity(), model=hdp).solutions["cluster"]
        assert clustering.nmi(expected, found) == pytest.approx(1.0)  # similarities differ in their last digits

    def test_lda_leaves_scikit_learns_topics_proportions_and_prior(self):
        corpus = clear()
        lda = LDA(n_topics=4, document_prior=0.3, topic_word_prior=0.05, iterations=12, starts=2)
        model = solve(lda, corpus, seed=1)
        settings = {"n_components": 4, "doc_topic_prior": 0.3, "topic_word_prior": 0.05, "max_iter": 12}
        starts = [random_state(1, "lda", start) for start in range(2)]
        ends = [decomposition.LatentDirichletAllocation(**settings, random_state=one) for one in starts]
        direct = min(ends, key=lambda end: end.fit(corpus.content).perplexity(corpus.content))
        shares = direct.transform(corpus.content)
        topics = direct.components_ / direct.components_.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.word_given_topic, topics, rtol=1e-12)
        sample = model.representative
        np.testing.assert_array_equal(sample.cluster, shares.argmax(axis=1))
        np.testing.assert_allclose(sample.table_concentration * sample.topic_weights, np.full(4, 0.3))
        np.testing.assert_array_equal(model.topic_given_cluster, np.eye(4))
        assert sample.topic_words.min() >= 0
        assert sample.is_admixture
        assert not sample.documents_are_clusters


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "settings", "message"),
        [
            ("kmeans", {"n_clusters": []}, "n_clusters is []; it must be a whole number or a list of different ones"),
            ("kmeans", {"start": 3}, "a setting of baseline 'kmeans' is 'start'; allowed:"),
            ("affinity", {"damping": 0.4}, "damping is 0.4; it must be at least 0.5 and below 1"),
            ("kmens", {}, "nmf, affinity, hdp_affinity, cut; did you mean 'kmeans'?"),
        ],
    )
    def test_bad_ones_are_named_in_a_sentence(self, name, settings, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            make_baseline(name, settings)


class TestClusters:
    @pytest.mark.parametrize(
        "baseline",
        [
            *(kind(n_clusters=3, **more) for kind in (KMeans, NMF) for more in ({}, {"weighting": "counts"})),
            *(KMeans(n_clusters=3, dimension=100), GaussianMixture(n_clusters=3), LDA(n_topics=3)),
            *(Affinity(), Affinity(weighting="counts"), HDPAffinity()),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("seed", [0, 1])
    def test_clear_clusters_are_found(self, baseline, seed, hdp):
        """Each cluster is of one group. No false alarm: the groups' words hardly overlap."""
        found = solve(baseline, seed=seed, model=hdp)
        labels = found.representative.cluster if isinstance(found, Posterior) else next(iter(found.solutions.values()))
        assert clustering.purity(TRUTH, labels) == 1.0
        assert clustering.nmi(TRUTH, labels) > (0.99 if not isinstance(baseline, Affinity | HDPAffinity) else 0.6)

    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.needs("spark") if name in ON_SPARK else ()) for name in BASELINES]
    )
    def test_the_same_seed_gives_the_same_bits(self, name, hdp, mixture_of_nine):
        several = {one: {"n_clusters": [3, 7]} for one in ("kmeans", "gaussian_mixture", "nmf")}
        settings = (several | {"lda": {"n_topics": 5}}).get(name, {})
        model = mixture_of_nine if "mixture" in BASELINES[name].models else hdp
        one, other = (make_baseline(name, settings).fit(clear(5), 3, model).result for _ in range(2))
        if isinstance(one, Posterior):
            np.testing.assert_array_equal(one.representative.topic_words, other.representative.topic_words)
            third = make_baseline(name, settings).fit(clear(5), 4, hdp).result
            assert (one.representative.topic_words != third.representative.topic_words).any()
        else:
            for solution in one.solutions:
                np.testing.assert_array_equal(one.solutions[solution], other.solutions[solution])

    def test_the_marked_level_of_many_clusters_is_the_groups(self, mixture_of_nine):
        n_clusters = len(np.unique(mixture_of_nine.cluster))
        assert n_clusters > GROUPS
        found = Cut().fit(clear(), 0, mixture_of_nine)
        assert found.iterations == n_clusters
        assert clustering.adjusted_rand_index(TRUTH, found.result.solutions["cluster"]) == pytest.approx(1.0)

    def test_a_corpus_that_cannot_be_clustered_is_refused(self, monkeypatch, hdp):
        few = clear().subset(np.arange(3))
        for baseline in (KMeans(n_clusters=[2, 4]), NMF(n_clusters=4)):
            with pytest.raises(ValueError, match="n_clusters is 4, but the corpus has 3 documents"):
                solve(baseline, few)
        with pytest.raises(ValueError, match="n_clusters is 13, but the corpus has 12 words and context columns; NMF"):
            solve(NMF(n_clusters=13))
        with pytest.raises(ValueError, match="a table of 3 documents and 1 columns is too small for LSA"):
            solve(KMeans(n_clusters=2, dimension=2), Corpus(np.ones((3, 1), int)))
        empty = Corpus(np.vstack([clear().content.toarray(), np.zeros((1, WORDS), int)]))
        for baseline in (KMeans(n_clusters=2), NMF(n_clusters=2), Affinity()):
            with pytest.raises(ValueError, match="document 36 is empty"):
                solve(baseline, empty)
        with pytest.raises(ValueError, match="context 'year' is a number for each document; K-means takes contexts of"):
            solve(KMeans(n_clusters=2), Corpus(np.ones((3, 2), int), contexts={"year": np.arange(3.0)}))
        with pytest.raises(ValueError, match=r"HDP \+ AP needs the posterior of an HDP, in which each document"):
            solve(HDPAffinity(), model=solve(LDA(n_topics=2)))
        with pytest.raises(ValueError, match="the recommended cut needs the model of another run"):
            solve(Cut())
        with pytest.raises(ValueError, match="the corpus has 3 documents, but the model was fitted on 36"):
            solve(HDPAffinity(), few, model=hdp)
        monkeypatch.setattr(memory, "available_bytes", lambda: 10_000)
        for baseline in (Affinity(), HDPAffinity()):
            with pytest.raises(ValueError, match=r"of 36 documents would take .* take fewer"):
                solve(baseline, model=hdp)

    @pytest.mark.filterwarnings("ignore:Affinity propagation did not converge")
    def test_what_did_not_come_to_rest_is_said(self, tmp_path):
        for most, converged in ((30, True), (14, False)):
            found = Affinity(max_iterations=most, damping=0.5, weighting="counts").fit(clear(), 0)
            assert found.converged == {"cluster": converged}
        with pytest.raises(ValueError, match="affinity propagation found no exemplar in 1 iterations"):
            Affinity(max_iterations=1, damping=0.9, weighting="counts").fit(clear(), 0)


class TestFiles:
    def test_of_a_fit(self, tmp_path, hdp, mixture_of_nine):
        hdp.save(tmp_path / "hdp.npz")
        mixture_of_nine.save(tmp_path / "mixture.npz")
        corpus, provenance = clear(with_tags=True), tmp_path / "about.json"

        def fitted(name, output, contexts=(), settings=None, model=None):
            call = {"engine": name, "settings": settings or {}, "contexts": list(contexts), "seed": 0, "model": model}
            return fit_baseline(corpus, **call, output=output, provenance=provenance)

        for name, more in (
            ("kmeans", {"contexts": ["tag"], "settings": {"n_clusters": [2, 3]}}),
            ("hdp_affinity", {"model": tmp_path / "hdp.npz"}),
            ("cut", {"model": tmp_path / "mixture.npz"}),
        ):
            output = tmp_path / f"{name}.tsv"
            about = fitted(name, output, **more)
            assert storage.read_json(provenance) == about
            assert about["engine"]["name"] == name
            assert 0 < about["cpu_seconds"] < 10
            assert about["converged"] == dict.fromkeys(Assignments.load(output).solutions, True)
        assert list(Assignments.load(tmp_path / "kmeans.tsv").solutions) == ["k2", "k3"]
        fitted("lda", tmp_path / "m.npz")
        assert Posterior.load(tmp_path / "m.npz").provenance["engine"]["name"] == "lda"
        with pytest.raises(ValueError, match="LDA clusters words only; it cannot use context 'tag'"):
            fitted("lda", tmp_path / "n.npz", ["tag"])
        with pytest.raises(ValueError, match="the corpus has no context 'title'; it has: tag"):
            fitted("kmeans", tmp_path / "n.tsv", ["title"])

    def test_the_configuration_knows_which_baselines_leave_a_model(self):
        assert {name for name, kind in BASELINES.items() if kind.leaves_model} == set(LEAVE_MODELS)
