"""Families of vectors of D numbers: of contexts, a vector for each document, and of contents, one for each observation.

As contents, vectors are in a unit of their family: numbers are standardised over all observations of a corpus, and
rates of counts are relative to the mean count, so that a prior says the same of every column. What topics know of
their observations are a number n and two sums, ``first`` of x and ``second`` of what the family needs beside it
(:mod:`mc2core.families.contents`), both with the prior's, of which natural parameters are made.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.corpus.checks import kind_of
from mc2core.families.base import Family, ScalarFamily


class VectorFamily(Family):
    """A family of one vector for each document or observation; a row of NaN is a missing one."""

    kind: ClassVar[str] = "vector"
    #: kind of observations that it is of (``Corpus.content_kind``)
    content_kind: ClassVar[str] = "numbers"

    @abstractmethod
    def n_parameters(self, length: int) -> int:
        """The length of T(x) of vectors of ``length`` numbers."""

    @abstractmethod
    def length(self, size: int) -> int:
        """The inverse of :meth:`n_parameters`."""

    @abstractmethod
    def check(self, values: np.ndarray) -> None:
        """OutsideDomain, naming the row, for one of (n, D) known ``values`` that is outside the family's domain."""

    @abstractmethod
    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(n, P) statistics of (n, D) known values, in the unit of (D,) ``scale``."""

    @abstractmethod
    def coordinate(self, natural: np.ndarray, number: int) -> tuple[ScalarFamily, np.ndarray]:
        """The family of one coordinate by itself, and its (n, S) natural parameters, of (n, P) those of vectors."""

    @abstractmethod
    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(M, D): standard deviation of observations at the expected parameters, in their own unit."""

    def covariance(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(M, D, D): covariance of observations at the expected parameters, in their own unit."""
        return self.sd(natural, scale)[:, :, None] ** 2 * np.eye(len(scale))

    # -- observations --------------------------------------------------------------------------------------
    def first_alike(self, length: int) -> np.ndarray:
        """(P,) ints: for each statistic of vectors of ``length`` numbers the first that is always the same number."""
        return np.arange(self.n_parameters(length))

    @abstractmethod
    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """n (M,), ``first`` (M, D) and ``second`` (M, D) or (M, D, D) of (M, P) natural parameters."""

    @abstractmethod
    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(M, P): the inverse of :meth:`parts`."""

    @property
    @abstractmethod
    def prior_sums(self) -> np.ndarray:
        """(5,) float64, for compiled kernels: ``first``, weight, shape, ``second`` and its products without data."""

    def unit(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(centre, scale), (D,) each, of the observations of a corpus."""
        return np.zeros(values.shape[1]), np.ones(values.shape[1])

    def in_unit(self, values: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(n, D) float64: observations as kernels take them."""
        return np.ascontiguousarray((values - centre) / scale)

    def log_base_in(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(n,): ln h(x) of (n, D) values of :meth:`in_unit`, of densities in their own unit."""
        return self.log_base(values) - float(np.log(scale).sum())

    def features(self, values: np.ndarray) -> np.ndarray:
        """(n, D): values of :meth:`in_unit` for k-means, with like spread."""
        return values

    def _values(self, context: Any) -> np.ndarray:
        if kind_of(context) != "vector":
            raise ValueError(
                f"{type(self).__name__} needs a vector for each document, a dense (J, D) matrix of floats, "
                f"not {'a matrix of counts' if sp.issparse(context) else 'one number'}"
            )
        return np.asarray(context, dtype=np.float64)

    def dimension(self, context: Any) -> int:
        return self.n_parameters(self._values(context).shape[1])


class CoordinateFamily(VectorFamily):
    """A vector whose coordinates are independent, each of the same family of numbers.

    Natural parameters (..., S D) are those of the coordinates side by side, S of each. NaN is a missing coordinate.
    """

    @property
    @abstractmethod
    def of_coordinate(self) -> ScalarFamily:
        """The family of one coordinate."""

    def by_coordinate(self, natural: np.ndarray) -> np.ndarray:
        """(..., D, S) of (..., S D) natural parameters or parameters."""
        natural = np.asarray(natural, dtype=np.float64)
        return natural.reshape(*natural.shape[:-1], -1, self.of_coordinate.n_statistics)

    def n_parameters(self, length: int) -> int:
        return self.of_coordinate.n_statistics * length

    def length(self, size: int) -> int:
        return size // self.of_coordinate.n_statistics

    def prior(self, dimension: int) -> np.ndarray:
        one = self.of_coordinate
        return np.tile(one.prior(one.n_statistics), dimension // one.n_statistics)

    @abstractmethod
    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        """As of :class:`ScalarFamily`, of coordinates."""

    def check(self, values: np.ndarray) -> None:
        self.check_each(values.ravel(), np.repeat(np.arange(len(values)), values.shape[1]))

    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return self.of_coordinate.rows(values.ravel()).reshape(len(values), -1)

    def statistics(self, context: Any) -> sp.csr_matrix:
        values, size = self._values(context), self.of_coordinate.n_statistics
        known = ~np.isnan(values)
        documents, coordinates = np.nonzero(known)
        observed = values[known]
        self.check_each(observed, documents)
        # built by hand: a statistic that happens to be 0 is stored like any other
        return sp.csr_matrix(
            (
                self.of_coordinate.rows(observed).ravel(),
                (size * coordinates.astype(np.int32)[:, None] + np.arange(size, dtype=np.int32)).ravel(),
                np.concatenate([[0], np.cumsum(size * known.sum(axis=1))]),
            ),
            shape=(len(values), size * values.shape[1]),
        )

    def log_base(self, context: Any) -> np.ndarray:
        values = self._values(context)
        return self.of_coordinate.log_base(values.ravel()).reshape(values.shape).sum(axis=1)

    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        return self.of_coordinate.log_normaliser(self.by_coordinate(natural)).sum(axis=-1)

    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        return self.of_coordinate.expected_parameters(self.by_coordinate(natural)).reshape(np.shape(natural))

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        drawn = self.of_coordinate.draw_parameters(self.by_coordinate(natural), generator)
        return drawn.reshape(np.shape(natural))

    def draw_observations(
        self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        of_each = self.by_coordinate(parameters)
        n, dimension, size = of_each.shape
        sizes = np.repeat(sizes, dimension)
        return self.of_coordinate.draw_observations(of_each.reshape(-1, size), sizes, generator).reshape(n, dimension)

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.of_coordinate.mean(self.by_coordinate(natural))

    def coordinate(self, natural: np.ndarray, number: int) -> tuple[ScalarFamily, np.ndarray]:
        return self.of_coordinate, self.by_coordinate(natural)[:, number]
