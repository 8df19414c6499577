"""Binary values (yes or no) and vectors of binary values (such as items in a basket), with Beta priors."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma

from mc2core.base.checks import prior_count
from mc2core.compute import variates
from mc2core.families.base import CoordinateFamily, Family, OutsideDomain, ScalarFamily
from mc2core.families.kernels import BETA_BERNOULLI


class _Bernoulli(Family):
    """Hyper-parameters of a probability."""

    code = BETA_BERNOULLI

    def __init__(self, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0) -> None:
        super().__init__(strength)
        self.a0 = prior_count(f"{type(self).__name__} a0", a0)
        self.b0 = prior_count(f"{type(self).__name__} b0", b0)

    def settings(self) -> dict[str, float]:
        return {"a0": self.a0, "b0": self.b0, "strength": self.strength}

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        bad = (observed != 0.0) & (observed != 1.0)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            why = "values are 0 or 1 (NaN where missing)"
            raise OutsideDomain(self, documents[first], f"holds {observed[first]}; {why}")


class BetaBernoulli(_Bernoulli, ScalarFamily):
    """x is 1 with probability p and else 0; p ~ Beta(a0, b0).

    T(x) = (x, 1 - x), t(phi) = (ln p, ln(1 - p)), eta = (a, b), A(eta) = ln B(a, b), h = 1.
    """

    name: ClassVar[str] = "beta_bernoulli"
    is_discrete: ClassVar[bool] = True
    n_statistics = 2

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.a0, self.b0])

    def rows(self, observed: np.ndarray) -> np.ndarray:
        return np.stack([observed, 1.0 - observed], axis=1)

    def log_base(self, context: Any) -> np.ndarray:
        return np.zeros(len(self._values(context)))

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return betaln(a, b)

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        natural = np.asarray(natural, dtype=np.float64)
        return digamma(natural) - digamma(natural.sum(axis=-1, keepdims=True))

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        log_gamma = variates.log_gammas(natural, generator)
        return log_gamma - np.logaddexp(log_gamma[..., :1], log_gamma[..., 1:])

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        values = (generator.random(len(parameters)) < np.exp(parameters[:, 0])).astype(np.float64)
        return np.where(np.asarray(sizes) > 0, values, np.nan)

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import bernoulli  # where it is needed: it takes a third of a second

        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return bernoulli(a / (a + b))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return a / (a + b)


class BetaBernoulliVector(_Bernoulli, CoordinateFamily):
    """A vector of D zeros and ones, independent given the cluster or topic; each is :class:`BetaBernoulli`."""

    name: ClassVar[str] = "beta_bernoulli_vector"
    content_kind: ClassVar[str] = "binary"

    @cached_property
    def of_coordinate(self) -> BetaBernoulli:
        return BetaBernoulli(**self.settings())

    def features(self, values: np.ndarray) -> np.ndarray:
        sd = values.std(axis=0)
        return (values - values.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)

    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        p = self.mean(natural)
        return np.sqrt(p * (1.0 - p))

    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = np.moveaxis(self.by_coordinate(natural), -1, 0)
        return a[:, 0] + b[:, 0] - self.a0 - self.b0, a, b

    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.stack([first, second], axis=-1).reshape(len(first), -1)

    @property
    def prior_sums(self) -> np.ndarray:
        return np.array([self.a0, 0.0, 0.0, self.b0, 0.0])
