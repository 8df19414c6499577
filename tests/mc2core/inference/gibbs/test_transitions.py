"""Exact transition matrices of the collapsed Gibbs sweeps on finite states, from the weights that the kernels compute.

A kernel runs as plain Python along every path of its draws: where it asks for a uniform number it gets an object that
notes the weights it is compared with and takes one option after the other. A sweep's transition probability is then
the sum over paths of products of the kernel's own weights over their own totals, and pi P = pi can be checked to
rounding: there is no sampling error in which a wrong weight could hide. pi is written out with log-gamma functions.
"""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.gibbs_enumeration import canonical, log_clusters, log_words, partitions
from helpers.gibbs_twin import plain_weigh_counts
from inference.gibbs.test_exact import corpus_of
from scipy.special import gammaln

from mc2core.compute.simd import LANES, find_lane, weigh_counts
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs import documents as gibbs_clusters
from mc2core.inference.gibbs import tokens
from mc2core.inference.gibbs.cells import word_cells
from mc2core.inference.gibbs.state import Assignments, Concentrations

SMALL = (1e-4, 1e-2, 1.3)


class Exhausted(Exception):
    """The draw has no further option."""


class Draw:
    """Stands for a uniform number: takes its ``choice``-th option and notes that option's weight and the total."""

    __array_ufunc__ = None  # NumPy's scalars leave comparisons to this class

    def __init__(self, choice):
        self.choice, self.options, self.total, self.weight = choice, 0, None, None

    def take(self, weight):
        """Whether the next option, of this weight, is the one."""
        if self.options == self.choice:
            self.weight = float(weight)
        self.options += 1
        return self.options == self.choice + 1

    def __mul__(self, total):
        self.total = float(total)
        return self


class ClusterDraw(Draw):
    """u = uniform * total; ``u < weight`` for one option after the other, with ``u -= weight`` between."""

    def __lt__(self, weight):
        return self.take(weight)

    def __sub__(self, weight):
        return self


class TopicDraw(Draw):
    """u = uniform * total - own weight; ``u < 0``: the token stays; else a lane of its block is searched."""

    own = None

    def __sub__(self, weight):
        if self.own is None:
            self.own = weight
        return self

    def __lt__(self, zero):
        return self.take(self.own)

    def __ge__(self, running):
        return False  # all topics are in the first block


def paths(run, module, kernels, monkeypatch, kind):
    """(probability, result of ``run()``) of every path of the draws that ``kernels`` of ``module`` make or compare."""
    script = []
    while True:
        draws = []

        def uniform(stream, script=script, draws=draws):
            draws.append(kind(script[len(draws)] if len(draws) < len(script) else 0))
            return draws[-1]

        plain = type("streams", (), {"seek": staticmethod(lambda *_: None), "uniform": staticmethod(uniform)})
        with monkeypatch.context() as patch:
            patch.setattr(module, "streams", plain)
            for name in kernels:
                patch.setattr(module, name, getattr(module, name).py_func)
            try:
                result = run()
            except Exhausted:
                result = None
        ended = next((i for i, rng in enumerate(draws) if rng.weight is None), None)
        choices = [rng.choice for rng in draws]
        if ended is None:
            yield math.prod(rng.weight / rng.total for rng in draws), result
            script = choices
        else:
            script = choices[:ended]  # every option of this draw was taken
        if not script:
            return
        script[-1] += 1


def assert_invariant(matrix, log_pi, absolute, relative):
    """pi P = pi within both tolerances: the relative one sees states that are hardly ever visited."""
    pi = np.exp(log_pi - log_pi.max())
    pi /= pi.sum()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=relative, atol=0)
    np.testing.assert_allclose(pi @ matrix, pi, rtol=0, atol=absolute)
    np.testing.assert_allclose(pi @ matrix, pi, rtol=relative, atol=0)


# -- documents -----------------------------------------------------------------------------------------------------
CONTEXTS = {
    "visits": np.array([3.0, 0.0, np.nan, 1.0]),
    "tag": sp.csr_matrix(np.array([[2, 0], [0, 0], [1, 1], [0, 1]])),
    "year": np.array([0.3, np.nan, -1.0, 0.4]),
}
FAMILIES = {"visits": GammaPoisson(1.3, 0.8), "tag": DirichletCategorical(0.6), "year": NormalGamma(0.0, 0.5, 1.5, 0.7)}


@pytest.mark.parametrize("families", [{}, FAMILIES], ids=["words", "words and contexts"])
@pytest.mark.parametrize(("alpha", "v"), [(1.3, 1.7), *itertools.product(SMALL[:2], repeat=2)])
def test_document_sweep_leaves_its_posterior_invariant(alpha, v, families, monkeypatch):
    """z given l and epsilon, new clusters among it: the 15 partitions of four documents, one of them empty."""
    corpus = corpus_of([[0, 0, 1], [1, 1], [], [0, 2]], 3, CONTEXTS)
    topic, weights = np.array([0, 1, 1, 1, 1, 0, 2], np.int32), np.array([0.5, 0.2, 1e-6])
    document = np.repeat(np.arange(4), corpus.document_lengths)
    start = np.concatenate([[0], np.cumsum(corpus.document_lengths)])
    contexts, concentrations = StackedContexts(corpus, families), Concentrations(alpha, v, 1.0)
    states = list(partitions(4))
    log_pi = np.array([log_clusters(z, alpha) for z in states])
    for i, z in enumerate(states):
        for k in range(max(z) + 1):
            members = np.flatnonzero(np.array(z) == k)
            n = np.bincount(topic[np.isin(document, members)], minlength=3)
            log_pi[i] += gammaln(v) - gammaln(v + n.sum()) + (gammaln(v * weights + n) - gammaln(v * weights)).sum()
            statistics = np.asarray(contexts.statistics[members].sum(axis=0)).ravel()
            log_pi[i] += contexts.log_marginal(contexts.prior + statistics)
    matrix = np.zeros((15, 15))
    for i, z in enumerate(states):

        def run(z=z):
            assignments = Assignments(np.array(z, np.int32), topic.copy(), start, weights, 1 - weights.sum())
            assignments.count()
            gibbs_clusters.sweep_clusters(assignments, contexts, concentrations, np.uint64(0))
            return canonical(assignments.cluster)

        for probability, result in paths(run, gibbs_clusters, ("_sweep", "_choose"), monkeypatch, ClusterDraw):
            matrix[i, states.index(result)] += probability
    assert_invariant(matrix, log_pi, 1e-12, 1e-9)


# -- tokens --------------------------------------------------------------------------------------------------------
class InFloat64:
    """NumPy whose float32 is float64."""

    float32 = np.float64

    def __getattr__(self, name):
        return getattr(np, name)


@numba.njit
def compiled_weigh_counts(counts, row, prior, scale, weights, first):
    return weigh_counts(counts, row, prior, scale, weights, first)


@numba.njit
def compiled_find_lane(weights, first, u, left_out):
    return find_lane(weights, first, u, left_out)


def take_lane(weights, first, rng, left_out):
    """The lane that ``draw`` takes; the compiled search must find it too, unless its float32 sums lose it."""
    below, lost = 0.0, 1e-6 * float(weights[first : first + LANES].sum())
    for place in range(first, first + LANES):
        if weights[place] > 0 and place != left_out:
            if rng.take(weights[place]):
                middle = below + weights[place] / 2
                if weights.dtype == np.float32 and weights[place] > lost:
                    assert compiled_find_lane(weights, first, middle, left_out) == place - first
                return place - first
            below += float(weights[place])
    raise Exhausted


@pytest.mark.parametrize(("precision", "tolerances"), [("float32", (1e-6, 1e-5)), ("float64", (1e-12, 1e-9))])
@pytest.mark.parametrize(("v", "s"), [(1.7, 0.4), *itertools.product(SMALL[:2], repeat=2)])
def test_token_sweep_leaves_its_posterior_invariant(v, s, precision, tolerances, monkeypatch):
    """l given z and epsilon, three topics and no new one; weights in float32 as they are, and the same in float64."""
    documents, cluster, eps = [[0, 0], [1], [0]], np.array([0, 1, 1], np.int32), np.array([0.5, 0.3, 0.2])
    corpus = corpus_of(documents, 2)
    words, document = [0, 0, 1, 0], np.array([0, 0, 1, 2])
    content = corpus.content
    cells = word_cells(content.indptr, content.indices, content.data, 2)
    if precision == "float64":
        monkeypatch.setattr(tokens, "np", InFloat64())
        monkeypatch.setattr(tokens, "_F32_ONE", 1.0)
    compiled = precision == "float32"
    monkeypatch.setattr(tokens, "weigh_counts", compiled_weigh_counts if compiled else plain_weigh_counts)
    monkeypatch.setattr(tokens, "find_lane", take_lane)
    states = list(itertools.product(range(3), repeat=4))
    log_pi = np.array([log_words(topics, words, 2, s) for topics in states])
    for i, topics in enumerate(states):
        n_km = np.zeros((2, 3))
        np.add.at(n_km, (cluster[document], list(topics)), 1)
        log_pi[i] += (gammaln(v * eps + n_km) - gammaln(v * eps)).sum()
    matrix = np.zeros((len(states), len(states)))
    for i, topics in enumerate(states):

        def run(topics=topics):
            assignments = Assignments(cluster, np.array(topics, np.int32), np.array([0, 2, 3, 4]), eps, 0.0)
            assignments.count()
            monkeypatch.setattr(assignments, "compact", lambda: None)  # topics keep their numbers
            tokens.sweep_topics(assignments, cells, Concentrations(1.0, v, 1.0), s, np.uint64(0))
            return tuple(assignments.topic.tolist())

        kernels = "_sweep", "_weights", "_count_word", "weigh", "find_block", "find_topic", "_join"
        for probability, result in paths(run, tokens, kernels, monkeypatch, TopicDraw):
            matrix[i, states.index(result)] += probability
    assert_invariant(matrix, log_pi, *tolerances)
