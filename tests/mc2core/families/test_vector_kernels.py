"""Predictives of whole vectors under all clusters at once, against differences of log normalisers."""

from __future__ import annotations

import numpy as np
import pytest

from mc2core import Corpus
from mc2core.families import DiagonalNormalGamma, NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.families.vectors import add_log_predictives
from mc2core.inference.gibbs.documents import columns_of, contexts_of

J, K = 12, 5


@pytest.fixture(scope="module", params=[1.0, 1e-3], ids=["usual units", "small b0"])
def stacked(request):
    """Numbers between two contexts of vectors: one of 30 coordinates, a third of which are large, and one of 2."""
    rng = np.random.default_rng(0)
    contexts = {
        "a": rng.normal(size=(J, 30)) * np.tile([1.0, 1e-3, 1e6], 10),
        "b": np.where(np.arange(J) % 3, rng.normal(size=J), np.nan),
        "c": rng.normal(size=(J, 2)),
    }
    contexts["a"][3] = contexts["c"][[3, 5]] = np.nan
    families = {
        "a": DiagonalNormalGamma(0.3, 0.7, 1.2, request.param, strength=0.4),
        "b": NormalGamma(),
        "c": DiagonalNormalGamma(),
    }
    return StackedContexts(Corpus(np.ones((J, 1), int), contexts=contexts), families)


def natural_of(stacked):
    """Of five clusters, the last without documents."""
    return stacked.natural(np.arange(J) % (K - 1), K)


def expected(stacked, natural, j):
    """(K,): A(natural + T_j) - A(natural) of the two contexts of vectors."""
    total = np.zeros(K)
    for name in ("a", "c"):
        part = stacked.segment(name)
        family, statistics = stacked.families[stacked.names.index(name)], stacked.statistics[j, part].toarray()[0]
        total += family.log_normaliser(natural[:, part] + statistics) - family.log_normaliser(natural[:, part])
    return total


def test_predictives_under_all_clusters(stacked):
    contexts, natural = contexts_of(stacked), natural_of(stacked)
    clusters = columns_of(contexts, np.arange(J) % (K - 1), K)[2]
    for j in range(J):
        weight = np.arange(K) * 1.5
        given = contexts.indptr, contexts.indices, contexts.values, j, contexts.vectors, contexts.offsets, clusters
        add_log_predictives(*given, K, weight)
        np.testing.assert_allclose(weight, np.arange(K) * 1.5 + expected(stacked, natural, j), rtol=1e-9, atol=1e-9)


def test_vectors_with_missing_coordinates_use_the_general_kernel():
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    families = {"x": DiagonalNormalGamma()}
    for missing, whole in ((slice(3), True), (1, False)):
        given = vectors.copy()
        given[2, missing] = np.nan
        contexts = StackedContexts(Corpus(np.ones((4, 1), int), contexts={"x": given}), families)
        assert contexts.are_whole_vectors.tolist() == [whole]
        assert contexts.take(np.array([0, 2])).are_whole_vectors.tolist() == [whole]
        assert contexts_of(contexts).vectors.n_others == int(not whole)
