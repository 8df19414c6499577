"""Words that repeat within a document: their draws, against enumeration, in files, and in fits."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs, svi
from scipy.special import gammaln
from scipy.stats import chisquare

import mc2core
from mc2core import Corpus
from mc2core.compute import streams
from mc2core.inference.gibbs.repeats import Repeats, draws_of_cells, move_draws
from mc2core.models import HDP, MC2
from mc2core.posterior import Posterior
from mc2core.posterior import perplexity_kernels as kernels
from mc2core.posterior.perplexity import perplexity
from mc2core.posterior.repeats import expected_draws

COUNTS, PRIOR, B, OMEGA, S = (3, 2, 1), np.array([0.9, 1.6]), 1.7, 2.5, 0.4
#: draws of each word in each topic of other documents, (V, M)
OTHERS = np.array([[1, 0], [0, 2], [1, 1]])


def partitions(items):
    """All partitions of a list into lists."""
    if not items:
        yield []
        return
    first, *rest = items
    for part in partitions(rest):
        for i in range(len(part)):
            yield [*part[:i], [first, *part[i]], *part[i + 1 :]]
        yield [[first], *part]


def log_rising(a, n):
    return gammaln(a + n) - gammaln(a)


def log_seated(sizes, n_tokens, b):
    """ln p of a seating at tables of these sizes."""
    return len(sizes) * math.log(b) + sum(map(math.lgamma, sizes)) - log_rising(b, n_tokens)


def all_states():
    """All (sizes, topics) of the draws of each word of one document, with their probability: {state: p}."""
    found = Counter()
    of_words = [list(partitions(list(range(n)))) for n in COUNTS]
    for seating in itertools.product(*of_words):
        draws = [(w, len(block)) for w, part in enumerate(seating) for block in part]
        log_seats = log_seated([size for _, size in draws], sum(COUNTS), B)
        for topics in itertools.product(range(2), repeat=len(draws)):
            n_wm, n_j = OTHERS.astype(float), np.bincount(topics, minlength=2)
            log_p = log_seats + log_rising(PRIOR, n_j).sum() - log_rising(OMEGA, len(draws))
            for (w, _), m in zip(draws, topics, strict=True):
                log_p += math.log((n_wm[w, m] + S) / (n_wm[:, m].sum() + 3 * S))
                n_wm[w, m] += 1
            cells = tuple(
                tuple(sorted((size, m) for (word, size), m in zip(draws, topics, strict=True) if word == w))
                for w in range(3)
            )
            found[cells] += math.exp(log_p)
    total = sum(found.values())
    return {state: p / total for state, p in found.items()}


def test_moves_of_draws_leave_the_posterior_invariant():
    """From exact draws of the posterior, after one move: a wrong weight of new draws by half gives p < 1e-9."""
    exact = all_states()
    states, rng, n = list(exact), np.random.default_rng(0), 12_000
    content = sp.csr_matrix(np.array([COUNTS], dtype=np.int32))
    after, moved = Counter(), 0
    for number in rng.choice(len(states), n, p=list(exact.values())):
        draws = [one for cell in states[number] for one in cell]
        size, topic = (np.array(values, np.int32) for values in zip(*draws, strict=True))
        drawn = sp.csr_matrix(np.array([[len(cell) for cell in states[number]]], dtype=np.int32))
        n_wm = OTHERS.astype(np.int32)
        np.add.at(n_wm, (np.repeat(np.arange(3), drawn.toarray()[0]), topic), 1)
        repeats = Repeats(content, size, B)
        key = streams.key(int(rng.integers(1 << 40)), "draws")
        drawn, topic = move_draws(repeats, drawn, topic, np.zeros(1, np.int32), PRIOR[None], n_wm, OMEGA, S, key)
        ends = np.concatenate([[0], np.cumsum(drawn.toarray()[0])])
        pairs = list(zip(repeats.size.tolist(), topic.tolist(), strict=True))
        cells = tuple(tuple(sorted(pairs[a:b])) for a, b in itertools.pairwise(ends))
        after[cells] += 1
        moved += cells != states[number]
        counted = OTHERS.copy()
        np.add.at(counted, (np.repeat(np.arange(3), drawn.toarray()[0]), topic), 1)
        assert np.array_equal(counted, n_wm)
    assert moved > n / 3
    assert set(after) <= set(exact)
    order = sorted(exact, key=exact.__getitem__)
    expected, observed, groups = 0.0, 0, []
    for state in order:  # rare states together
        expected, observed = expected + n * exact[state], observed + after[state]
        if expected > 20:
            groups.append((expected, observed))
            expected, observed = 0.0, 0
    groups[-1] = groups[-1][0] + expected, groups[-1][1] + observed
    assert chisquare([o for _, o in groups], [e for e, _ in groups]).pvalue > 1e-4


def test_left_to_right_is_unbiased_where_words_repeat():
    """Against the sum over all seatings and topics of a document; without repeats it is 0.85 nats higher."""
    psi, prior = np.random.default_rng(0).dirichlet(np.ones(3), 2).T.copy(), np.array([0.5, 0.8])
    exact = 0.0
    for seating in itertools.product(*(list(partitions(list(range(n)))) for n in COUNTS)):
        draws = [(w, len(block)) for w, part in enumerate(seating) for block in part]
        log_seats = log_seated([size for _, size in draws], sum(COUNTS), B)
        for topics in itertools.product(range(2), repeat=len(draws)):
            n_j = np.bincount(topics, minlength=2)
            log_p = log_seats + log_rising(prior, n_j).sum() - log_rising(prior.sum(), len(draws))
            exact += math.exp(log_p) * math.prod(psi[w, m] for (w, _), m in zip(draws, topics, strict=True))
    cells = np.array([0, 3]), np.arange(3), np.array(COUNTS)
    found = []
    for seed in range(20):
        keys, clusters = np.array([streams.key(seed, "test")]), np.zeros((1, 1), np.int64)
        asked = kernels.Asked(prior[None], keys, clusters, np.full((1, 1), 400.0), B)
        out = np.zeros((1, 1))
        kernels.left_to_right(*cells, np.arange(3), psi, asked, 1, 0, 1, out)
        found.append(math.exp(out[0, 0]))
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - exact) < 4 * error
    assert error < 0.02 * exact


def bursty(n_documents, repeats=True):
    """Documents of 60 words, of three classes: words repeat with b = 20, or each is drawn."""
    rng = np.random.default_rng(0)
    psi, content = rng.dirichlet(np.full(200, 0.2), 3), np.zeros((n_documents, 200), int)
    for row, k in zip(content, rng.integers(3, size=n_documents), strict=True):
        words = []
        for i in range(60):
            is_new = not repeats or rng.random() * (i + 20.0) < 20.0
            words.append(rng.choice(200, p=psi[k]) if is_new else words[rng.integers(i)])
        np.add.at(row, words, 1)
    return Corpus(content)


def test_a_fit_of_repeated_words_finds_how_they_repeat():
    """b is 20, and words are predicted better; where none repeat, b is above 200."""
    both = bursty(360)
    corpus, new = both.subset(range(300)), both.subset(range(300, 360))
    fits = [mc2core.fit(corpus, MC2(burstiness=one), iterations=20, chains=1, seed=0) for one in (False, None)]
    assert fits[0].posterior.samples[-1].burst_concentration == np.inf
    assert "burst_concentration" not in fits[0].trace
    assert 17 < fits[1].trace["burst_concentration"].iloc[10:].mean() < 24
    plain, repeated = (perplexity(new, one.posterior) for one in fits)
    assert repeated < 0.95 * plain
    found = mc2core.fit(bursty(300, repeats=False), iterations=20, chains=1, seed=0)
    assert found.trace["burst_concentration"].iloc[10:].mean() > 200


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("repeats") / "c.npz"
    corpus = bursty(60)
    done = mc2core.fit(corpus, iterations=8, chains=1, seed=3, checkpoint=path)
    return corpus, path, done


def test_a_run_of_repeated_words_resumes_with_the_same_bits(fitted, tmp_path):
    corpus, _, done = fitted
    path = tmp_path / "c.npz"
    mc2core.fit(corpus, iterations=5, chains=1, seed=3, checkpoint=path)
    again = mc2core.fit(corpus, iterations=8, chains=1, seed=3, checkpoint=path)
    assert np.array_equal(again.trace.drop(columns="seconds"), done.trace.drop(columns="seconds"))
    for one, other in zip(again.posterior.samples, done.posterior.samples, strict=True):
        assert one.burst_concentration == other.burst_concentration
        assert (one.topic_words != other.topic_words).nnz == 0
        assert other.topic_words.sum() < corpus.n_tokens


def test_a_saved_posterior_keeps_how_words_repeat(fitted, tmp_path):
    corpus, _, done = fitted
    done.posterior.save(tmp_path / "p.npz")
    loaded = Posterior.load(tmp_path / "p.npz")
    b = [one.burst_concentration for one in loaded.samples]
    assert b == [one.burst_concentration for one in done.posterior.samples]
    assert max(b) < np.inf
    assert np.array_equal(loaded.predict(corpus, progress=False), done.posterior.predict(corpus, progress=False))
    with pytest.raises(ValueError, match="estimator is 'importance'; with burstiness it must be left_to_right"):
        perplexity(corpus, done.posterior, "importance")


@pytest.mark.parametrize("wrong", ["longer", "zero", "other cells"])
def test_sizes_of_draws_that_are_not_of_the_corpus_are_refused(wrong):
    content = sp.csr_matrix(np.array([[3, 0, 2], [0, 1, 0]], dtype=np.int32))
    size = np.array([2, 1, 2, 1], np.int32)
    assert draws_of_cells(content, size).toarray().tolist() == [[2, 0, 1], [0, 1, 0]]
    size = {"longer": [2, 1, 2, 2], "zero": [2, 1, 2, 1, 0], "other cells": [2, 2, 1, 1]}[wrong]
    with pytest.raises(ValueError, match="draw_sizes do not add up to the counts of the corpus"):
        draws_of_cells(content, np.array(size, np.int32))


def test_models_and_engines_without_repeats_refuse_them():
    with pytest.raises(ValueError, match=r"burstiness needs document_level"):
        MC2(burstiness=True, document_level=False)
    with pytest.raises(ValueError, match=r"burstiness needs document_level"):
        HDP(burstiness=True)
    corpus = bursty(20)
    with pytest.raises(ValueError, match="burstiness needs kernel 'collapsed' or 'interleaved'"):
        mc2core.fit(corpus, *gibbs(kernel="parallel", document_level=True, burstiness=True))
    with pytest.raises(ValueError, match="burstiness needs the engine gibbs"):
        mc2core.fit(corpus, *svi(document_level=True, burstiness=True))
    done = mc2core.fit(corpus, *svi(document_level=True), iterations=1)
    assert done.posterior.samples[0].burst_concentration == np.inf


def test_expected_draws_are_those_of_the_restaurant():
    """Of a word of probability p, counted c times: the sum of b p / (b p + i) for i below c."""
    counts, psi = np.array([1, 5, 9]), np.array([[0.2], [0.3], [0.5]])
    draws = expected_draws((np.array([0, 3]), np.arange(3), counts), psi, np.array([2.0]), 10.0)[2]
    exact = [sum(10 * p / (10 * p + i) for i in range(c)) for c, p in zip(counts, psi[:, 0], strict=True)]
    assert draws.tolist() == np.round(exact).astype(int).tolist() == [1, 3, 5]
    cells = np.array([0, 3]), np.arange(3), counts
    assert expected_draws(cells, psi, np.array([2.0]), np.inf) is cells
