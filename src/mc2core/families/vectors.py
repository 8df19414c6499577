"""Families of vectors of D numbers: contexts with a vector per document, and contents with a vector per observation.

As contents, vectors are in the unit of their family: numbers are standardised over all observations of a corpus, and
rates of counts are relative to the mean count, so that a prior has the same meaning for every column. The statistics of
a topic are the number n of observations and two sums, ``first`` of x and ``second`` of a term that depends on the
family (:mod:`mc2core.families.contents`). Both include the prior, and determine the natural parameters.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.corpus.checks import kind_of
from mc2core.families.base import Family, ScalarFamily


class VectorFamily(Family):
    """Base class of families of one vector per document or observation. A row of NaN is a missing vector."""

    kind: ClassVar[str] = "vector"
    #: kind of observations that it is of (``Corpus.content_kind``)
    content_kind: ClassVar[str] = "numbers"

    @abstractmethod
    def n_parameters(self, length: int) -> int:
        """Return the length of T(x) for vectors of ``length`` numbers."""

    @abstractmethod
    def length(self, size: int) -> int:
        """Return the length of vectors with T(x) of length ``size``, the inverse of :meth:`n_parameters`."""

    @abstractmethod
    def check(self, values: np.ndarray) -> None:
        """Raise OutsideDomain, with the row, if one of (n, D) ``values`` is outside the domain of the family."""

    @abstractmethod
    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the (n, P) statistics of (n, D) values without NaN, in the unit of (D,) ``scale``."""

    @abstractmethod
    def coordinate(self, natural: np.ndarray, number: int) -> tuple[ScalarFamily, np.ndarray]:
        """Return the marginal family of a coordinate, and its (n, S) natural parameters from the (n, P) of vectors."""

    @abstractmethod
    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the standard deviation of observations at the expected parameters, (M, D), in the original unit."""

    def covariance(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the covariance of observations at the expected parameters, (M, D, D), in the original unit."""
        return self.sd(natural, scale)[:, :, None] ** 2 * np.eye(len(scale))

    # -- observations --------------------------------------------------------------------------------------
    def first_alike(self, length: int) -> np.ndarray:
        """Return, for each statistic of vectors of ``length`` numbers, the first that always equals it, (P,) ints."""
        return np.arange(self.n_parameters(length))

    @abstractmethod
    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return n (M,), ``first`` (M, D) and ``second`` (M, D) or (M, D, D) for (M, P) natural parameters."""

    @abstractmethod
    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return (M, P) natural parameters, the inverse of :meth:`parts`."""

    @property
    @abstractmethod
    def prior_sums(self) -> np.ndarray:
        """Return the sums of the prior for kernels, (5,): ``first``, weight, shape, ``second`` and its products."""

    def unit(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the (centre, scale) of the observations of a corpus, (D,) each."""
        return np.zeros(values.shape[1]), np.ones(values.shape[1])

    def in_unit(self, values: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return observations in the unit of the family, as kernels expect them, (n, D) float64."""
        return np.ascontiguousarray((values - centre) / scale)

    def log_base_in(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return ln h(x) of (n, D) values of :meth:`in_unit`, (n,), for densities in the original unit."""
        return self.log_base(values) - float(np.log(scale).sum())

    def features(self, values: np.ndarray) -> np.ndarray:
        """Return features for k-means with similar variances, (n, D), from values of :meth:`in_unit`."""
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
    """Base class of families of vectors with independent coordinates, all with the same family of numbers.

    Natural parameters (..., S D) concatenate those of the coordinates, S of each. NaN is a missing coordinate.
    """

    @property
    @abstractmethod
    def of_coordinate(self) -> ScalarFamily:
        """Return the family of one coordinate."""

    def by_coordinate(self, natural: np.ndarray) -> np.ndarray:
        """Reshape (..., S D) natural parameters or parameters to (..., D, S)."""
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
        """As :meth:`ScalarFamily.check_each`, for coordinates."""

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
