"""Counts of one thing (visits, citations) with a Gamma prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from mc2core.base.checks import prior_count, prior_scale
from mc2core.compute import variates
from mc2core.families.base import ScalarFamily
from mc2core.families.kernels import GAMMA_POISSON

_COUNT_LIMIT = 2.0**31


class GammaPoisson(ScalarFamily):
    """x ~ Poisson(rate); rate ~ Gamma(a0, rate b0). Predictive: negative binomial (docs/model.md, section 1).

    T(x) = (x, 1), t(phi) = (ln rate, -rate), eta = (a, b), ln h(x) = -ln x!.
    """

    code = GAMMA_POISSON
    name: ClassVar[str] = "gamma_poisson"
    is_discrete: ClassVar[bool] = True
    _dimension = 2

    def __init__(self, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0) -> None:
        super().__init__(strength)
        self.a0 = prior_count("GammaPoisson a0", a0)
        self.b0 = prior_scale("GammaPoisson b0", b0)

    def settings(self) -> dict[str, float]:
        return {"a0": self.a0, "b0": self.b0, "strength": self.strength}

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.a0, self.b0])

    def _check(self, observed: np.ndarray, documents: np.ndarray) -> None:
        bad = (observed < 0) | (observed != np.floor(observed)) | (observed >= _COUNT_LIMIT)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"GammaPoisson: document {documents[first]} holds {observed[first]}; "
                "counts are whole numbers of at least 0 and below 2**31 (NaN where missing)"
            )

    def _rows(self, observed: np.ndarray) -> np.ndarray:
        return np.stack([observed, np.ones_like(observed)], axis=1)

    def log_base(self, context: Any) -> np.ndarray:
        values = self._values(context)
        return np.where(np.isnan(values), 0.0, -gammaln(np.nan_to_num(values) + 1.0))

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return gammaln(a) - a * np.log(b)

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return np.stack([digamma(a) - np.log(b), -a / b], axis=-1)

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        log_rate = variates.log_gammas(a, generator) - np.log(b)
        return np.stack([log_rate, -np.exp(log_rate)], axis=-1)

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        values = generator.poisson(-parameters[:, 1]).astype(np.float64)
        return np.where(np.asarray(sizes) > 0, values, np.nan)

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import nbinom  # where it is needed: it takes a third of a second

        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return nbinom(a, b / (b + 1.0))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return a / b
