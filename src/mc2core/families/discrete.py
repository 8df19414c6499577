"""Families of discrete values: bags of names, counts, zeros and ones, vectors of counts, vectors of zeros and ones."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import betaln, digamma, gammaln

from mc2core.base.checks import prior_count, prior_scale
from mc2core.compute import streams
from mc2core.corpus.checks import kind_of
from mc2core.families.base import ContentFamily, CoordinateFamily, Family, OutsideDomain, ScalarFamily
from mc2core.families.kernels import BETA_BERNOULLI, DIRICHLET, GAMMA_POISSON

_COUNT_LIMIT = 2.0**31


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
            raise ValueError("no document has a value; leave the context out")
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
        log_gamma = streams.log_gammas(natural, generator)
        top = log_gamma.max(axis=-1, keepdims=True)
        return log_gamma - top - np.log(np.sum(np.exp(log_gamma - top), axis=-1, keepdims=True))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return natural / natural.sum(axis=-1, keepdims=True)


class _Discrete(Family):
    """Base class of families with two natural parameters per value, a and b."""

    a0: float
    b0: float

    def settings(self) -> dict[str, float]:
        return {"a0": self.a0, "b0": self.b0, "strength": self.strength}


class _DiscreteScalar(_Discrete, ScalarFamily):
    is_discrete: ClassVar[bool] = True
    n_statistics = 2

    def prior(self, dimension: int) -> np.ndarray:
        return np.array([self.a0, self.b0])


class _DiscreteVector(_Discrete, CoordinateFamily, ContentFamily):
    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.stack([first, second], axis=-1).reshape(len(first), -1)

    @property
    def prior_sums(self) -> np.ndarray:
        return np.array([self.a0, 0.0, 0.0, self.b0, 0.0])


class _Poisson(_Discrete):
    """Base class of families of counts, with a Gamma prior of the Poisson rate."""

    code = GAMMA_POISSON

    def __init__(self, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0) -> None:
        super().__init__(strength)
        self.a0 = prior_count(f"{type(self).__name__} a0", a0)
        self.b0 = prior_scale(f"{type(self).__name__} b0", b0)

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        bad = (observed < 0) | (observed != np.floor(observed)) | (observed >= _COUNT_LIMIT)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            why = "counts are whole numbers of at least 0 and below 2**31 (NaN where missing)"
            raise OutsideDomain(self, documents[first], f"holds {observed[first]}; {why}")


class GammaPoisson(_Poisson, _DiscreteScalar):
    """Family of counts: x ~ Poisson(rate), and the rate has the prior Gamma(shape a0, rate b0).

    The predictive distribution is negative binomial. As an exponential family (docs/model.md, section 1), T(x) = (x,
    1), t(phi) = (ln rate, -rate), eta = (a, b) and ln h(x) = -ln x!.
    """

    name: ClassVar[str] = "gamma_poisson"

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
        log_rate = streams.log_gammas(a, generator) - np.log(b)
        return np.stack([log_rate, -np.exp(log_rate)], axis=-1)

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import nbinom  # imported at its first use, because the import takes a third of a second

        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return nbinom(a, b / (b + 1.0))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return a / b


class GammaPoissonVector(_Poisson, _DiscreteVector):
    """Family of vectors of D counts. Given the cluster or topic, counts are independent; each is :class:`GammaPoisson`.

    For observations, the rate is relative to the mean count of the column, so the prior mean ``a0`` / ``b0`` should be
    1.
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
        roots = np.sqrt(values)  # the variance of the square root hardly depends on the rate
        sd = roots.std(axis=0)
        return (roots - roots.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)

    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.sqrt(self.mean(natural) * scale)

    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = np.moveaxis(self.by_coordinate(natural), -1, 0)
        return (b[:, 0] - self.b0) / scale[0], a, b


class _Bernoulli(_Discrete):
    """Base class of families of zeros and ones, with a Beta prior of the probability."""

    code = BETA_BERNOULLI

    def __init__(self, a0: float = 1.0, b0: float = 1.0, *, strength: float = 1.0) -> None:
        super().__init__(strength)
        self.a0 = prior_count(f"{type(self).__name__} a0", a0)
        self.b0 = prior_count(f"{type(self).__name__} b0", b0)

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        bad = (observed != 0.0) & (observed != 1.0)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            why = "values are 0 or 1 (NaN where missing)"
            raise OutsideDomain(self, documents[first], f"holds {observed[first]}; {why}")


class BetaBernoulli(_Bernoulli, _DiscreteScalar):
    """Family of zeros and ones: x is 1 with probability p, and p ~ Beta(a0, b0).

    As an exponential family (docs/model.md, section 1), T(x) = (x, 1 - x), t(phi) = (ln p, ln(1 - p)), eta = (a, b),
    A(eta) = ln B(a, b) and h = 1.
    """

    name: ClassVar[str] = "beta_bernoulli"

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
        log_gamma = streams.log_gammas(natural, generator)
        return log_gamma - np.logaddexp(log_gamma[..., :1], log_gamma[..., 1:])

    @staticmethod
    def predictive(natural: np.ndarray) -> Any:
        from scipy.stats import bernoulli  # imported at its first use, because the import takes a third of a second

        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return bernoulli(a / (a + b))

    def mean(self, natural: np.ndarray) -> np.ndarray:
        a, b = np.moveaxis(np.asarray(natural, dtype=np.float64), -1, 0)
        return a / (a + b)


class BetaBernoulliVector(_Bernoulli, _DiscreteVector):
    """Family of vectors of D zeros and ones. Given the cluster or topic, the coordinates are independent.

    Each coordinate is :class:`BetaBernoulli`.
    """

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
