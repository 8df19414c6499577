"""Contexts predicted from words and other contexts, against sums over samples and clusters written out."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.small_posteriors import make_corpus, make_model, word_given_cluster
from scipy import integrate, stats
from scipy.special import gammaln


def log_student(x, mu, kappa, a, b):
    """ln of the predictive of a Normal-Gamma, by its integral over mean and precision."""
    ratio = math.exp(gammaln(a + 0.5) - gammaln(a)) * math.sqrt(kappa / (2 * math.pi * b * (kappa + 1)))
    return math.log(ratio) - (a + 0.5) * math.log1p(kappa * (x - mu) ** 2 / (2 * b * (kappa + 1)))


def terms(sample, corpus, j, hidden, others=True):
    """ln pi_k p(w_j | k) p(y_j | k) for both clusters, y_j the contexts but ``hidden``; one observation at a time."""
    words = corpus.content.toarray()[j]
    found = []
    for k in range(2):
        total = math.log(sample.cluster_weights[k])
        total += sum(n * math.log(p) for n, p in zip(words, word_given_cluster(sample)[k], strict=True))
        natural = sample.natural[k]
        if others and hidden != "author":
            counts, weights = corpus.contexts["author"].toarray()[j], natural[:2].copy()
            for name in range(2):
                for _ in range(int(counts[name])):
                    total += math.log(weights[name] / weights.sum())
                    weights[name] += 1
        if others and hidden != "pages" and not np.isnan(corpus.contexts["pages"][j]):
            a, b = natural[2:4]
            total += stats.nbinom.logpmf(corpus.contexts["pages"][j], a, b / (b + 1))
        if others and hidden != "year" and not np.isnan(corpus.contexts["year"][j]):
            kappa_mu, kappa, a, rest = natural[4:]
            mu = kappa_mu / kappa
            total += log_student((corpus.contexts["year"][j] - 2000) / 5, mu, kappa, a, rest - kappa * mu**2 / 2)
        found.append(total)
    return np.array(found)


def shares_of(model, corpus, hidden, others=True):
    """(J, 4): P_s(z_j = k) / S of the clusters of both samples."""
    rows = []
    for j in range(corpus.n_documents):
        parts = [np.exp(terms(sample, corpus, j, hidden, others)) for sample in model.samples]
        rows.append(np.concatenate([part / part.sum() / 2 for part in parts]))
    return np.array(rows)


@pytest.fixture
def model():
    """Two samples of different words, clusters and contexts."""
    model = make_model()
    first = model.samples[0]
    other = replace(first.contexts, least=first.contexts.least.copy(), above=first.contexts.above * 1.5)
    model.samples[0] = replace(first, cluster_weights=np.array([0.6, 0.4]), contexts=other)
    return model


class TestNames:
    @pytest.mark.parametrize("others", [True, False])
    def test_is_the_sum_over_samples_and_clusters(self, model, others):
        corpus = make_corpus()
        found = model.predict_context(corpus, "author", use_context=others)
        naturals = np.vstack([sample.natural[:, :2] for sample in model.samples])
        expected = shares_of(model, corpus, "author", others) @ (naturals / naturals.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found.of(slice(None)), expected, rtol=1e-10)
        np.testing.assert_allclose(found.of([2, 0]), expected[[2, 0]], rtol=1e-10)
        assert np.ptp(expected[:, 0]) > 0.01

    def test_what_the_corpus_holds_of_it_is_not_looked_at(self, model):
        corpus = make_corpus()
        without = corpus.with_contexts({name: corpus.contexts[name] for name in ("pages", "year")})
        both = [model.predict_context(one, "author").of(slice(None)) for one in (corpus, without)]
        np.testing.assert_array_equal(*both)

    def test_ranking_and_table_name_the_likeliest_first(self, model):
        found = model.predict_context(make_corpus(), "author")
        probability = found.of(slice(None))
        columns, values = found.ranking(5)  # there are two
        np.testing.assert_array_equal(columns, np.argsort(-probability, axis=1))
        np.testing.assert_array_equal(values, -np.sort(-probability, axis=1))
        table = found.table(1)
        assert list(table.columns) == ["document", "rank", "name", "probability"]
        assert table["name"].tolist() == [["p", "q"][best] for best in probability.argmax(axis=1)]
        assert table["document"].tolist() == [1, 2, 3]
        with pytest.raises(ValueError, match="n is 0; it must be at least 1"):
            found.ranking(0)


class TestNumbers:
    def test_density_mean_and_quantiles_of_years(self, model):
        corpus = make_corpus()
        found = model.predict_context(corpus, "year")
        shares = shares_of(model, corpus, "year")
        kappa_mu, kappa, a, rest = np.vstack([sample.natural[:, 4:] for sample in model.samples]).T
        mu = kappa_mu / kappa
        b = rest - kappa * mu**2 / 2
        np.testing.assert_allclose(found.mean, shares @ mu * 5 + 2000, rtol=1e-12)

        def density(year, j):
            logs = [log_student((year - 2000) / 5, *each) for each in zip(mu, kappa, a, b, strict=True)]
            return shares[j] @ np.exp(logs) / 5

        years = np.array([1980.0, 2001.5])
        expected = [[density(year, j) for year in years] for j in range(3)]
        np.testing.assert_allclose(found.density(years), expected, rtol=1e-9)
        low, high = found.interval(0.8).T
        for j in range(3):
            assert integrate.quad(density, -np.inf, low[j], args=(j,))[0] == pytest.approx(0.1, abs=1e-6)
            assert integrate.quad(density, low[j], high[j], args=(j,))[0] == pytest.approx(0.8, abs=1e-6)
        table = found.table(0.8)
        assert list(table.columns) == ["document", "mean", "low", "high"]
        np.testing.assert_array_equal(table["low"], low)

    def test_counts_have_whole_quantiles(self, model):
        corpus = make_corpus()
        found = model.predict_context(corpus, "pages")
        shares = shares_of(model, corpus, "pages")
        a, b = np.vstack([sample.natural[:, 2:4] for sample in model.samples]).T
        np.testing.assert_allclose(found.mean, shares @ (a / b), rtol=1e-12)
        grid = np.arange(500)
        pmf = shares @ stats.nbinom.pmf(grid, a[:, None], (b / (b + 1))[:, None])
        np.testing.assert_allclose(found.density(grid), pmf, rtol=1e-10)
        for share in (0.001, 0.05, 0.5, 0.95):
            expected = (pmf.cumsum(axis=1) < share).sum(axis=1)
            np.testing.assert_array_equal(found.quantile(share), expected)

    @pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
    def test_a_share_outside_is_refused(self, model, share):
        with pytest.raises(ValueError, match="between 0 and 1"):
            model.predict_context(make_corpus(), "year").quantile(share)


def test_an_unknown_context_is_refused(model):
    with pytest.raises(ValueError, match="'place' is not in the posterior; it has: author, pages, year"):
        model.predict_context(make_corpus(), "place")


def test_other_contexts_are_required_unless_only_words_are_asked(model):
    corpus = make_corpus()
    words = corpus.with_contexts({})
    with pytest.raises(ValueError, match=r"context 'pages' is not in the corpus; .*use_context=False"):
        model.predict_context(words, "author")
    one, other = (model.predict_context(which, "author", use_context=False) for which in (words, corpus))
    assert sp.csr_matrix(one.shares - other.shares).nnz == 0


def test_no_documents_give_no_rows(model):
    empty = make_corpus().subset(np.zeros(0, np.int64))
    assert model.predict_context(empty, "author").ranking(3)[0].shape == (0, 2)
    assert model.predict_context(empty, "year").interval().shape == (0, 2)
