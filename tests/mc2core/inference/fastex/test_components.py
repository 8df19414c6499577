"""FastEx's kernels beside NumPy twins: the Taylor form and Lemma 1, scores of proposals, exact scores."""

import dataclasses

import numba
import numpy as np
import pytest
from helpers import fastex_twin as twin
from helpers.fastex_twin import A, B, G
from scipy.special import gammaln, psi

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.signatures import BITS, n_signature_words
from mc2core.compute.streams import MAX_NATS_BELOW_BEST, argmax, draw_from_logs, select_likely
from mc2core.inference.fastex.components import (
    BACKGROUND_SIZE,
    BACKGROUND_STEPS,
    GAUSSIAN,
    MULTINOMIAL,
    POISSON,
    document_mass,
    expected_background,
    linear_terms,
    log_evidence,
    theta_of,
    word_term,
)
from mc2core.inference.fastex.exact import (
    ExactConstants,
    ExactState,
    Terms,
    bound_scores,
    cluster_terms,
    excess,
    score_clusters,
)
from mc2core.inference.fastex.hashed import HashedState
from mc2core.inference.fastex.hashed_kernels import (
    MAX_LOG_WEIGHT_RATIO,
    NO_CLUSTER,
    Columns,
    HashedConstants,
    choose,
    draw,
    padded,
    proposal_scores,
    replace,
    weigh,
    workspace,
)

COMPONENTS = [MULTINOMIAL, POISSON, GAUSSIAN]


def constants_of(component, n_words):
    small = np.arange(1000)
    theta = small if component == GAUSSIAN else np.log1p(small / A)
    return HashedConstants(
        component,
        n_words,
        np.uint64(8),
        A,
        G,
        B,
        0.0,
        1.0,
        64,
        0.0,
        1.0,
        1,
        gammaln(small + A),
        theta.astype(np.float32),
    )


@numba.njit
def sums_over_words(constants, n, x):
    """Sum of word terms, and <x, theta> of a document of counts x in a cluster of counts n."""
    words = inner = 0.0
    for d in range(x.size):
        words += word_term(constants.component, constants.log_gamma, constants.topic_word_prior, n[d], x[d])
        inner += x[d] * np.float64(theta_of(constants.component, constants.theta, constants.topic_word_prior, n[d]))
    return words, inner


def test_linear_form_errs_by_one_over_n():
    """Lemma 1 of NIPS12: of twice the documents, half the error in what proposals take the log likelihood for."""
    draw_ = np.random.default_rng(0)
    one, x = draw_.poisson(3.0, (10, 6)), np.array([4, 2, 0, 3, 1, 5])
    for component in COMPONENTS:
        constants, errors = constants_of(component, 6), []
        for repeats in (8, 16, 32, 64, 128):
            rows = np.tile(one, (repeats, 1))
            n, indptr = rows.sum(axis=0), np.arange(0, rows.size + 1, 6)
            mass = int(document_mass(component, rows.ravel(), indptr).sum())
            own = int(document_mass(component, x, np.array([0, 6]))[0])
            words, inner = sums_over_words(constants, n, x)
            exact = log_evidence(constants, len(rows), mass, int((n**2).sum()), words, own)
            sizes = len(rows), mass, int((n**2).sum())
            constant, slope, factor = linear_terms(constants, np.zeros(BACKGROUND_SIZE), *sizes, 0)
            linear = float(constant) + own * float(slope) + float(factor) * inner
            # theta is relative to a word that the cluster lacks
            shift = 0.0 if component == GAUSSIAN else x.sum() * np.log(A)
            errors.append(abs(linear + shift - exact))
        ratios = np.array(errors[:-1]) / errors[1:]
        assert errors[0] < 0.5
        np.testing.assert_allclose(ratios, 2.0, rtol=0.15)


def test_digamma_would_miss_rare_words():
    """E[theta | X] of eq. 11 is psi(n + a) where the engine takes ln(n + a): alike for many counts, not for few."""
    few, many = np.arange(3), np.arange(200, 300)
    exact = gammaln(few + A + 1) - gammaln(few + A)
    assert np.array_equal(np.round(np.log(few + A), 12), np.round(exact, 12))
    assert abs(psi(A) - exact[0]) > 2
    assert np.abs(psi(many + A) - np.log(many + A)).max() < 0.003


def test_gaussian_words_are_log_marginals():
    """log_evidence against the density of Student's t is in the enumeration; here that order does not matter."""
    constants = constants_of(GAUSSIAN, 5)
    rows = np.random.default_rng(1).poisson(2.0, (4, 5))
    totals = []
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        n, total, mass = np.zeros(5, np.int64), 0.0, 0
        for i, j in enumerate(order):
            words, _ = sums_over_words(constants, n, rows[j])
            own = int((rows[j] ** 2).sum())
            total += log_evidence(constants, i, mass, int((n**2).sum()), words, own) - np.log(i + G)
            n, mass = n + rows[j], mass + own
        totals.append(total)
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


@pytest.mark.parametrize("component", [MULTINOMIAL, GAUSSIAN])
def test_background_is_the_mean_of_poisson_counts(component):
    totals, steps = np.array([1, 7, 50, 3000]), 17 * BACKGROUND_STEPS
    table = expected_background(component, A, totals, 100_000)
    mean = (2.0 ** (steps / BACKGROUND_STEPS) - 1) * totals / 100_000
    n = np.random.default_rng(0).poisson(mean, (200_000, 4))
    theta = n if component == GAUSSIAN else np.log1p(n / A)
    assert table[steps] == pytest.approx(float((theta.mean(axis=0) * totals).sum() / 100_000), rel=0.05)
    assert np.all(np.diff(table) >= 0)


@pytest.mark.parametrize("bits", BITS)
def test_proposal_weights_against_their_twin(bits):
    """Distances, cosines, exponentials, the bound and the floor; K is no multiple of a block."""
    generator = np.random.default_rng(bits)
    n_clusters, parts = 1000, n_signature_words(bits)
    size, mask = padded(n_clusters), 2 ** min(bits, 64) - 1
    columns = Columns(
        generator.integers(0, 2**64, (parts, size), dtype=np.uint64) & np.uint64(mask),
        (3 * generator.random(size)).astype(np.float32),
        np.where(np.arange(size) < n_clusters, generator.normal(size=size), NO_CLUSTER).astype(np.float32),
        generator.normal(size=size).astype(np.float32),
    )
    query = columns.signature[:, 7] ^ np.uint64(5)
    norm, mass, slack, inverse_temperature = 9.0, 4, 0.05, 0.8
    scores, blocks = np.empty(size, np.float32), np.empty(size // 64, np.float32)
    proposal_scores(columns, query, np.float32(norm), mass, bits, slack, inverse_temperature, scores, blocks)
    plain = twin.proposal_scores(columns, query, norm, mass, bits, slack, inverse_temperature)
    np.testing.assert_allclose(scores[:n_clusters], plain[:n_clusters], atol=2e-4)
    np.testing.assert_array_equal(blocks, scores.reshape(-1, 64).max(axis=1))
    top = int(np.argmax(scores))
    replace(scores, blocks, top, np.float32(-50.0))
    np.testing.assert_array_equal(blocks, scores.reshape(-1, 64).max(axis=1))
    kept = scores[:n_clusters].astype(float)
    weigh(scores, blocks)
    weights = np.exp(np.maximum(kept - kept.max(), -MAX_LOG_WEIGHT_RATIO))
    np.testing.assert_allclose(scores[:n_clusters], weights, rtol=3e-6)
    assert not scores[n_clusters:].any()
    np.testing.assert_allclose(blocks, scores.reshape(-1, 64).sum(axis=1, dtype=float), rtol=1e-5)


@pytest.mark.parametrize("inverse_temperature", [1.0, 1e-3, 1e-30])
def test_columns_without_a_cluster_have_no_weight(inverse_temperature):
    """They had the least weight, which the last cluster got on top of its own, at a inverse_temperature below 0.1."""
    state = HashedState(
        Corpus(np.eye(4, dtype=int)),
        dataclasses.replace(twin.settings_of(n_clusters=3), inverse_temperature=inverse_temperature),
        np.arange(4) % 3,
    )
    state.constants = state.constants._replace(inverse_temperature=inverse_temperature)
    work = workspace(state.clusters)
    choose(
        state.documents,
        state.clusters,
        state.projection,
        state.constants,
        state.slots,
        0,
        0,
        np.zeros(2, np.uint64),
        work,
    )
    assert work.weights[:3].min() > 0
    assert not work.weights[3:].any()
    assert work.blocks[0] == pytest.approx(work.weights[:3].sum(), rel=3e-7)


def test_draws_follow_the_weights():
    """130 clusters, three blocks; false-alarm rate below 130 * P(|N| > 5.5) = 5e-6."""
    generator = np.random.default_rng(2)
    weights = np.zeros(padded(130), np.float32)
    weights[:130] = generator.random(130)
    blocks, stream = weights.reshape(-1, 64).sum(axis=1), np.zeros(2, np.uint64)
    n, seen = 20_000, np.zeros(130)
    for i in range(n):
        streams.seek(stream, np.uint64(9), i)
        seen[draw(stream, 130, weights, blocks)] += 1
    p = weights[:130] / weights.sum()
    assert np.max(np.abs(seen - n * p) / np.sqrt(n * p * (1 - p) + 1)) < 5.5


@pytest.mark.parametrize("component", COMPONENTS)
def test_exact_scores_against_their_twin(component):
    """Frequent and rare words, counts beyond the table; bit for bit the same wherever the document is."""
    generator = np.random.default_rng(3)
    x = generator.poisson(0.4, (12, 40))
    x[1:5, 0] = 20_000
    x[0, :4] = 1, 2, 30, 7
    corpus = Corpus(x)
    found = []
    for own in range(5):
        cluster = np.arange(12) % 5
        cluster[0] = own
        state = ExactState(corpus, twin.settings_of(component, n_clusters=5), cluster)
        assert len(state.tables.counts) > 0
        assert len(state.tables.starts) > 0
        scores = np.full(5, np.nan)
        score_clusters(state.constants, state.log_gamma, state.cells, state.tables, 0, own, scores)
        found.append(scores)
    n = np.array([x[1:][cluster[1:] == k].sum(axis=0) for k in range(5)])
    np.testing.assert_allclose(found[0], twin.exact_scores(component, n, x[0]), rtol=1e-6)
    assert all(np.array_equal(scores, found[0]) for scores in found)


@pytest.mark.parametrize("component", COMPONENTS)
def test_bounds_are_never_below_the_evidence_and_lead_to_it(component):
    constants = constants_of(component, 50)
    for n, mass, squares, words in ((0, 0, 0, 0.0), (3, 90, 130, 5.0), (1000, 90_000, 40_000_000, 300.0)):
        terms = cluster_terms(ExactConstants(component, 50, A, G, B, 40.0), n, mass, squares)
        for own_mass in (1, 40, 3000):
            scores = np.array([words])
            bound_scores(component, own_mass, Terms(*(np.array([term]) for term in terms)), scores)
            above = excess(component, own_mass, *terms)
            assert above >= -1e-9
            assert above == pytest.approx(0.0, abs=1e-9) or own_mass != 40
            evidence = log_evidence(constants, n, mass, squares, words, own_mass)
            assert scores[0] - above == pytest.approx(evidence, rel=1e-9)


def test_draws_from_logs_follow_them():
    """Of 21 clusters, those near the largest; false-alarm rate below 21 * P(|N| > 5.5) = 1e-6."""
    logs = np.random.default_rng(4).normal(size=21)
    logs[::2] -= 50.0
    stream, n, seen, likely = np.zeros(2, np.uint64), 20_000, np.zeros(21), np.empty(21, np.int64)
    for i in range(n):
        scores = logs.copy()
        assert argmax(scores) == np.argmax(logs)
        n_likely = select_likely(scores, logs.max() - MAX_NATS_BELOW_BEST, likely)
        assert np.array_equal(likely[:n_likely], np.arange(1, 21, 2))
        streams.seek(stream, np.uint64(9), i)
        seen[likely[draw_from_logs(stream, scores[:n_likely])]] += 1
    p = np.exp(logs) / np.exp(logs).sum()
    assert np.max(np.abs(seen - n * p) / np.sqrt(n * p * (1 - p) + 1)) < 5.5
