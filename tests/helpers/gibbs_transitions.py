"""Exact transition probabilities of a sweep: its kernels run as plain Python along every path of their draws."""

from __future__ import annotations

import math

import numba
import numpy as np
import scipy.sparse as sp

from mc2core.compute.simd import LANES, find_lane, weigh_counts
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, GammaPoisson, NormalGamma


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
                kernel = getattr(module, name)
                patch.setattr(module, name, getattr(kernel, "py_func", kernel))  # itself without the compiler
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


CONTEXTS = {
    "visits": np.array([3.0, 0.0, np.nan, 1.0]),
    "tag": sp.csr_matrix(np.array([[2, 0], [0, 0], [1, 1], [0, 1]])),
    "year": np.array([0.3, np.nan, -1.0, 0.4]),
    "place": np.array([[0.3, 1.0], [np.nan, np.nan], [-1.0, 0.5], [0.2, -0.7]]),
}
FAMILIES = {
    "visits": GammaPoisson(1.3, 0.8),
    "tag": DirichletCategorical(0.6),
    "year": NormalGamma(0.0, 0.5, 1.5, 0.7),
    "place": DiagonalNormalGamma(0.1, 0.5, 1.5, 0.7, strength=0.5),
}


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
