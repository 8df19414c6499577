"""Predictives of contexts under all clusters at once, against the kernel that takes one cluster."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families import (
    BetaBernoulli,
    BetaBernoulliVector,
    DiagonalNormalGamma,
    DirichletCategorical,
    GammaPoisson,
    GammaPoissonVector,
    GaussWishart,
    NormalGamma,
)
from mc2core.families.columns import add_predictives, add_to_column, empty_column
from mc2core.families.kernels import log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.documents import columns_of, contexts_of


class Geometric(BetaBernoulli):
    """Numbers of failures before a success, with the code that zeros and ones have: statistics (1, x)."""

    def check_each(self, observed, documents):
        pass

    def rows(self, observed):
        return np.stack([np.ones_like(observed), observed], axis=1)


J, K = 24, 6
RNG = np.random.default_rng(0)
BAG = sp.csr_matrix(RNG.poisson(0.4, (J, 30)) * (RNG.random((J, 1)) < 0.8))
VECTOR = RNG.normal(size=(J, 3))
CASES = {
    "names": ({"a": BAG}, DirichletCategorical(0.1)),
    "weak names": ({"a": BAG}, DirichletCategorical(0.1, strength=0.3)),
    "many of a name": ({"a": BAG * 90}, DirichletCategorical(1.0)),
    "tiny concentration": ({"a": BAG * 5}, DirichletCategorical(1e-10)),
    "number": ({"a": np.where(np.arange(J) % 5, RNG.normal(size=J), np.nan)}, NormalGamma()),
    "count": ({"a": RNG.poisson(3.0, J).astype(float)}, GammaPoisson()),
    "yes or no": ({"a": RNG.integers(0, 2, J).astype(float)}, BetaBernoulli()),
    "weak yes or no": ({"a": RNG.integers(0, 2, J).astype(float)}, BetaBernoulli(1e-10, 2.0, strength=0.5)),
    "waiting times": ({"a": np.arange(J) % 4.0}, Geometric(1.7, 0.6, strength=0.5)),
    "counts": ({"a": RNG.poisson(3.0, (J, 4)).astype(float)}, GammaPoissonVector()),
    "twenty answers": ({"a": RNG.integers(0, 2, (J, 20)).astype(float)}, BetaBernoulliVector()),
    "vector": ({"a": VECTOR}, GaussWishart()),
    "vector with gaps": ({"a": np.where(RNG.random((J, 3)) < 0.2, np.nan, VECTOR)}, DiagonalNormalGamma()),
}


@numba.njit
def predictives(contexts, j, natural, totals, product, row, weight):
    add_predictives(contexts, j, natural, totals, weight.size, product, row, weight)


@numba.njit
def move(contexts, j, sign, natural, totals, k):
    add_to_column(contexts, j, sign, natural, totals, k)


@numba.njit
def empty(contexts, natural, totals, k):
    empty_column(contexts, natural, totals, k)


def stacked(*names):
    families = {name.replace(" ", "_"): CASES[name][1] for name in names}
    contexts = {name.replace(" ", "_"): CASES[name][0]["a"] for name in names}
    return StackedContexts(Corpus(np.ones((J, 1), int), contexts=contexts), families)


@pytest.mark.parametrize("names", [*([one] for one in CASES), [*CASES]], ids=[*CASES, "all together"])
def test_all_clusters_at_once_equal_one_by_one(names):
    whole = stacked(*names)
    contexts, cluster = contexts_of(whole), np.arange(J) % (K - 1)
    natural, totals, _ = columns_of(contexts, cluster, K)
    assert natural.flags.c_contiguous
    np.testing.assert_allclose(natural.T, whole.natural(cluster, K), rtol=1e-14)
    product = np.ones(K)
    for j in range(J):
        weight, rows = np.arange(K) * 1.5, np.ascontiguousarray(natural.T)
        predictives(contexts, j, natural, totals, product, np.empty(len(natural)), weight)
        given = contexts.indptr, contexts.indices, contexts.values, j
        known = [
            log_predictive(*given, rows[k], totals[:, k].copy(), contexts.offsets, contexts.codes) for k in range(K)
        ]
        np.testing.assert_allclose(weight, np.arange(K) * 1.5 + known, rtol=1e-12, atol=1e-12)
        assert (product == 1.0).all()


def test_an_empty_slot_without_weight_keeps_none():
    contexts = contexts_of(stacked(*CASES))
    natural, totals, _ = columns_of(contexts, np.arange(J) % (K - 1), K)
    weight = np.append(np.zeros(K - 1), -np.inf)
    predictives(contexts, 0, natural, totals, np.ones(K), np.empty(len(natural)), weight)
    assert np.isfinite(weight[:-1]).all()
    assert weight[-1] == -np.inf


def test_documents_that_came_and_went_leave_nothing():
    """A tiny prior is lost next to counts: without a return to it, the next document would see a cluster of none."""
    contexts = contexts_of(stacked(*CASES))
    natural, totals, _ = columns_of(contexts, np.zeros(J, int), K)
    prior = natural[:, 1].copy()
    for j in range(J):
        move(contexts, j, -1.0, natural, totals, 0)
    empty(contexts, natural, totals, 0)
    np.testing.assert_array_equal(natural[:, 0], prior)
    np.testing.assert_array_equal(totals[:, 0], totals[:, 1])
