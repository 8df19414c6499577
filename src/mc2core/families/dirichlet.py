"""Bags of categories (authors, tags, title words) with a symmetric Dirichlet prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln

from mc2core.base.checks import prior_count
from mc2core.compute import variates
from mc2core.corpus.checks import kind_of
from mc2core.families.base import Family
from mc2core.families.kernels import DIRICHLET


class DirichletCategorical(Family):
    """Family of bags: x is a sparse bag of counts over A categories, and phi ~ Dirichlet(concentration, ...).

    The likelihood of a bag is the probability of its items in one given order, so it has no multinomial coefficient
    (docs/model.md, section 1). As an exponential family, T(x) = counts, t(phi) = ln phi and h = 1. An empty bag is a
    missing observation.
    """

    code = DIRICHLET
    name: ClassVar[str] = "dirichlet"
    kind: ClassVar[str] = "counts"

    def __init__(self, concentration: float = 1.0, *, strength: float = 1.0) -> None:
        super().__init__(strength)
        self.concentration = prior_count("DirichletCategorical concentration", concentration)

    def settings(self) -> dict[str, float]:
        return {"concentration": self.concentration, "strength": self.strength}

    def dimension(self, context: Any) -> int:
        if kind_of(context) != "counts":
            raise ValueError(
                f"DirichletCategorical needs a matrix of counts, sparse or of integers, not one {kind_of(context)} for "
                "each document: numbers take NormalGamma (normal_gamma), vectors, which a dense matrix of floats is, "
                "DiagonalNormalGamma (diagonal_normal_gamma)"
            )
        if context.shape[1] == 0:
            raise ValueError("no document has a name there; leave the context out")
        return context.shape[1]

    def prior(self, dimension: int) -> np.ndarray:
        return np.full(dimension, self.concentration)

    def statistics(self, context: Any) -> sp.csr_matrix:
        self.dimension(context)
        return sp.csr_matrix(context, dtype=np.float64)

    def log_base(self, context: Any) -> np.ndarray:
        return np.zeros(context.shape[0])

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        return np.sum(gammaln(natural), axis=-1) - gammaln(np.sum(natural, axis=-1))

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        total = np.sum(natural, axis=-1) if total is None else total
        return digamma(natural) - digamma(total)[..., None]

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        log_gamma = variates.log_gammas(natural, generator)
        top = log_gamma.max(axis=-1, keepdims=True)
        return log_gamma - top - np.log(np.sum(np.exp(log_gamma - top), axis=-1, keepdims=True))

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> sp.csr_matrix:
        probabilities = np.exp(parameters)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return sp.csr_matrix(generator.multinomial(sizes, probabilities).astype(np.int32))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return natural / natural.sum(axis=-1, keepdims=True)
