"""Counts (such as citations) and vectors of counts (such as shopping baskets), with Gamma priors."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from mc2core.base.checks import prior_count, prior_scale
from mc2core.compute import variates
from mc2core.families.base import CoordinateFamily, Family, OutsideDomain, ScalarFamily
from mc2core.families.kernels import GAMMA_POISSON

_COUNT_LIMIT = 2.0**31


class _Poisson(Family):
    """Hyper-parameters of a Poisson's rate."""

    code = GAMMA_POISSON

    def __init__(self, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0) -> None:
        super().__init__(strength)
        self.a0 = prior_count(f"{type(self).__name__} a0", a0)
        self.b0 = prior_scale(f"{type(self).__name__} b0", b0)

    def settings(self) -> dict[str, float]:
        return {"a0": self.a0, "b0": self.b0, "strength": self.strength}

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        bad = (observed < 0) | (observed != np.floor(observed)) | (observed >= _COUNT_LIMIT)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            why = "counts are whole numbers of at least 0 and below 2**31 (NaN where missing)"
            raise OutsideDomain(self, documents[first], f"holds {observed[first]}; {why}")


class GammaPoisson(_Poisson, ScalarFamily):
    """Family of counts: x ~ Poisson(rate), and the rate has the prior Gamma(shape a0, rate b0).

    The predictive distribution is negative binomial. As an exponential family (docs/model.md, section 1), T(x) = (x,
    1), t(phi) = (ln rate, -rate), eta = (a, b) and ln h(x) = -ln x!.
    """

    name: ClassVar[str] = "gamma_poisson"
    is_discrete: ClassVar[bool] = True
    n_statistics = 2

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.a0, self.b0])

    def rows(self, observed: np.ndarray) -> np.ndarray:
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


class GammaPoissonVector(_Poisson, CoordinateFamily):
    """Family of vectors of D counts, which are independent given the cluster or topic; each is :class:`GammaPoisson`.

    For observations, a rate is relative to the mean count of its column, so the prior mean ``a0`` / ``b0`` should be 1.
    """

    name: ClassVar[str] = "gamma_poisson_vector"
    content_kind: ClassVar[str] = "counts"

    @cached_property
    def of_coordinate(self) -> GammaPoisson:
        return GammaPoisson(**self.settings())

    def unit(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centre, scale = np.zeros(values.shape[1]), values.mean(axis=0)
        return centre, np.where(scale > 0.0, scale, 1.0)

    def in_unit(self, values: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.array(values, order="C")

    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        of_each = super().rows(values, scale)
        of_each[:, 1::2] = scale  # x ~ Poisson(scale rate)
        return of_each

    def log_base_in(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return self.log_base(values) + values @ np.log(scale)

    def features(self, values: np.ndarray) -> np.ndarray:
        roots = np.sqrt(values)  # whose spread is the same at any rate
        sd = roots.std(axis=0)
        return (roots - roots.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)

    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.sqrt(self.mean(natural) * scale)

    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = np.moveaxis(self.by_coordinate(natural), -1, 0)
        return (b[:, 0] - self.b0) / scale[0], a, b

    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.stack([first, second], axis=-1).reshape(len(first), -1)

    @property
    def prior_sums(self) -> np.ndarray:
        return np.array([self.a0, 0.0, 0.0, self.b0, 0.0])
