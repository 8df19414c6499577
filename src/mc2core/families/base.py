"""Interface of the likelihood families, which all engines use.

A family consists of a likelihood from an exponential family and its conjugate prior,

    p(x | phi)    = h(x) exp(T(x) . t(phi)),
    p(phi | eta)  = exp(eta . t(phi) - A(eta)).

All quantities that engines need are functions of the sufficient statistics T, the base measure h, the natural
parameters eta of the prior, its log normaliser A and the gradient of A:

* posterior:                eta_n = eta_0 + sum_j T(x_j)                           (every engine)
* log marginal:             A(eta_n) - A(eta_0) + sum_j ln h(x_j)                  (Gibbs, scores)
* log posterior predictive: A(eta_n + T(x)) - A(eta_n) + ln h(x)                   (collapsed Gibbs)
* expected log likelihood:  T(x) . grad A(eta_n) + ln h(x)                         (SVI)
* KL(q || p):               (eta_q - eta_p) . grad A(eta_q) - A(eta_q) + A(eta_p)  (the ELBO)
* log likelihood of a draw: T(x) . t(phi) + ln h(x)                                (blocked Gibbs)

Statistics are the rows of a CSR matrix (J, D). A missing observation is an empty row, so it does not contribute to the
sums above.

A family of strength c raises each document's likelihood to the power c before phi is integrated out: c T(x) and
c ln h(x) replace T(x) and ln h(x) in all formulas. :class:`mc2core.families.stacked.StackedContexts` multiplies the
results of ``statistics`` and ``log_base`` by c.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import share
from mc2core.corpus.checks import kind_of


class OutsideDomain(ValueError):
    """Raised for a value outside the domain of a family.

    Attributes
    ----------
    document : int
        Index of the document with this value.
    why : str
        Part of the message after the document index, such as "holds 0.5; ...".
    """

    def __init__(self, family: Family, document: int, why: str) -> None:
        super().__init__(family, document, why)
        self.document, self.why = int(document), why

    def __str__(self) -> str:
        return f"{type(self.args[0]).__name__}: document {self.document} {self.why}"


class Family(ABC):
    """Base class of likelihoods with conjugate priors. A family is immutable and contains only hyper-parameters.

    Attributes
    ----------
    strength : float in [0, 1]
        Power to which each document's likelihood is raised. With 1, the likelihood is unchanged; with 0, the context
        has no effect on the clusters.
    """

    #: code of the family in compiled kernels (families/kernels.py)
    code: ClassVar[int]
    #: name of the family in configuration files
    name: ClassVar[str]
    #: kind of contexts of the family (``Corpus.context_kinds``): "counts", "number" or "vector"
    kind: ClassVar[str]
    #: whether :func:`mc2core.fit` standardises the numbers of contexts of this family
    is_standardised: ClassVar[bool] = False

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = share(f"{type(self).__name__} strength", strength)

    @abstractmethod
    def settings(self) -> dict[str, float]:
        """Return the hyper-parameters as a dict of constructor arguments."""

    @abstractmethod
    def dimension(self, context: Any) -> int:
        """Return D, the length of T(x), for a context of a corpus."""

    @abstractmethod
    def prior(self, dimension: int) -> np.ndarray:
        """Return eta_0, (D,) float64."""

    @abstractmethod
    def statistics(self, context: Any) -> sp.csr_matrix:
        """Return T(x_j) without the strength, (J, D) float64 CSR; rows of missing observations are empty.

        Raises OutsideDomain if a value is outside the domain of the family.
        """

    @abstractmethod
    def log_base(self, context: Any) -> np.ndarray:
        """Return ln h(x_j) without the strength, (J,) float64; 0 for missing observations."""

    @abstractmethod
    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        """Return A(eta), (...,) float64, for (..., D) natural parameters."""

    @abstractmethod
    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        """Return E[t(phi)] = grad A(eta), (..., D) float64.

        For bags, ``natural`` may contain only some of the columns; ``total`` (...,) is then the sum over all columns.
        """

    @abstractmethod
    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Draw one phi for each row of (K, D) natural parameters, and return t(phi), (K, D) float64."""

    @abstractmethod
    def mean(self, natural: np.ndarray) -> np.ndarray:
        """Return the posterior mean of the observations: (K, A) probabilities, (K,) values or (K, D) vectors."""

    # -- derived quantities --------------------------------------------------------------------------------
    def log_marginal(self, natural: np.ndarray) -> np.ndarray:
        """Return A(eta_n) - A(eta_0), (...,) float64: the log marginal likelihood without the base measure."""
        return self.log_normaliser(natural) - self.log_normaliser(self.prior(natural.shape[-1]))

    def kl(self, natural: np.ndarray) -> np.ndarray:
        """Return the KL divergence of the posterior, given by (..., D) natural parameters, from the prior, in nats."""
        difference = natural - self.prior(natural.shape[-1])
        return np.sum(difference * self.expected_parameters(natural), axis=-1) - self.log_marginal(natural)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and (self.name, self.settings()) == (other.name, other.settings())

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.settings().items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value:g}' for name, value in self.settings().items())})"


class ScalarFamily(Family):
    """Base class of families of one number per document. D is fixed; NaN marks a missing number."""

    kind: ClassVar[str] = "number"
    #: whether values are integers
    is_discrete: ClassVar[bool] = False
    #: D, the length of T(x)
    n_statistics: ClassVar[int]

    @staticmethod
    @abstractmethod
    def predictive(natural: np.ndarray) -> Any:
        """Return the posterior predictive for (..., D) natural parameters: a frozen :mod:`scipy.stats` distribution."""

    def dimension(self, context: Any) -> int:
        self._values(context)
        return self.n_statistics

    @abstractmethod
    def rows(self, observed: np.ndarray) -> np.ndarray:
        """Return the (n, D) statistics of n observed values."""

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        """Raise OutsideDomain for the first value outside the domain; ``documents`` are the documents' indices."""

    def _values(self, context: Any) -> np.ndarray:
        if sp.issparse(context) or np.ndim(context) != 1:
            raise ValueError(f"{type(self).__name__} needs one number for each document, not a matrix")
        return np.asarray(context, dtype=np.float64)

    def statistics(self, context: Any) -> sp.csr_matrix:
        values = self._values(context)
        known = ~np.isnan(values)
        self.check_each(values[known], np.flatnonzero(known))
        return stored_statistics(self.rows(values[known]), known[:, None])


class VectorFamily(Family):
    """Base class of families of one vector per document. A row of NaN marks a missing vector."""

    kind: ClassVar[str] = "vector"

    @abstractmethod
    def n_parameters(self, length: int) -> int:
        """Return the length of T(x) for vectors of ``length`` numbers."""

    @abstractmethod
    def length(self, size: int) -> int:
        """Return the length of vectors with T(x) of length ``size``, the inverse of :meth:`n_parameters`."""

    @abstractmethod
    def coordinate(self, natural: np.ndarray, number: int) -> tuple[ScalarFamily, np.ndarray]:
        """Return the marginal family of a coordinate and its (n, S) natural parameters, given (n, P) of vectors."""

    def _values(self, context: Any) -> np.ndarray:
        if kind_of(context) != "vector":
            raise ValueError(
                f"{type(self).__name__} needs a vector for each document, a dense (J, D) matrix of floats, "
                f"not {'a matrix of counts' if sp.issparse(context) else 'one number'}"
            )
        return np.asarray(context, dtype=np.float64)

    def dimension(self, context: Any) -> int:
        return self.n_parameters(self._values(context).shape[1])


class ContentFamily(VectorFamily):
    """Base class of families of vectors that topics can emit as observations instead of words.

    Observations are in the unit of their family, so that a prior has the same meaning for every column. Numbers are
    standardised over all observations of a corpus, and rates of counts are relative to the mean count. The statistics
    of a topic are the number n of observations and two sums, which include the prior. ``first`` is the sum of x, and
    ``second`` is the sum of a term that depends on the family (:mod:`mc2core.families.contents`, whose kernels have a
    branch for each ``code``). The sums determine the natural parameters.
    """

    #: kind of observations of the family (``Corpus.content_kind``)
    content_kind: ClassVar[str] = "numbers"

    @abstractmethod
    def check(self, values: np.ndarray) -> None:
        """Raise OutsideDomain, with the row index, if one of the (n, D) ``values`` is outside the family's domain."""

    @abstractmethod
    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the (n, P) statistics of (n, D) values without NaN, in the unit of (D,) ``scale``."""

    @abstractmethod
    def sd(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the standard deviation of observations at the expected parameters, (M, D), in the original unit."""

    def covariance(self, natural: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the covariance of observations at the expected parameters, (M, D, D), in the original unit."""
        return self.sd(natural, scale)[:, :, None] ** 2 * np.eye(len(scale))

    def first_alike(self, length: int) -> np.ndarray:
        """Return, for each of the P statistics, the index of the first statistic that is always equal to it, (P,) int.

        ``length`` is the length D of the vectors.
        """
        return np.arange(self.n_parameters(length))

    @abstractmethod
    def parts(self, natural: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return n (M,), ``first`` (M, D) and ``second`` (M, D) or (M, D, D), given (M, P) natural parameters."""

    @abstractmethod
    def natural_of(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return (M, P) natural parameters, the inverse of :meth:`parts`."""

    @property
    @abstractmethod
    def prior_sums(self) -> np.ndarray:
        """Return the constants of the prior for kernels, (5,).

        They are ``first``, kappa0 and a0 (0 for discrete families), ``second`` (for matrices, its diagonal entries) and
        the off-diagonal entries of ``second``.
        """

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
        """Return features with similar variances for k-means, (n, D), given values of :meth:`in_unit`."""
        return values


class CoordinateFamily(VectorFamily):
    """Base class of families of vectors whose coordinates are independent and have the same family of numbers.

    Natural parameters (..., S D) contain the S parameters of the first coordinate, then of the second, and so on. NaN
    marks a missing coordinate.
    """

    @property
    @abstractmethod
    def of_coordinate(self) -> ScalarFamily:
        """Return the family of one coordinate."""

    def by_coordinate(self, natural: np.ndarray) -> np.ndarray:
        """Reshape (..., S D) natural parameters or parameters to (..., D, S)."""
        natural = np.asarray(natural, dtype=np.float64)
        return natural.reshape(*natural.shape[:-1], self.length(natural.shape[-1]), self.of_coordinate.n_statistics)

    def n_parameters(self, length: int) -> int:
        return self.of_coordinate.n_statistics * length

    def length(self, size: int) -> int:
        return size // self.of_coordinate.n_statistics

    def prior(self, dimension: int) -> np.ndarray:
        one = self.of_coordinate
        return np.tile(one.prior(one.n_statistics), dimension // one.n_statistics)

    @abstractmethod
    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        """Check coordinates as :meth:`ScalarFamily.check_each`."""

    def check(self, values: np.ndarray) -> None:
        self.check_each(values.ravel(), np.repeat(np.arange(len(values)), values.shape[1]))

    def rows(self, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return self.of_coordinate.rows(values.ravel()).reshape(len(values), -1)

    def statistics(self, context: Any) -> sp.csr_matrix:
        values = self._values(context)
        known = ~np.isnan(values)
        self.check_each(values[known], np.nonzero(known)[0])
        return stored_statistics(self.of_coordinate.rows(values[known]), known)

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

    def mean(self, natural: np.ndarray) -> np.ndarray:
        return self.of_coordinate.mean(self.by_coordinate(natural))

    def coordinate(self, natural: np.ndarray, number: int) -> tuple[ScalarFamily, np.ndarray]:
        return self.of_coordinate, self.by_coordinate(natural)[:, number]


def stored_statistics(rows: np.ndarray, known: np.ndarray) -> sp.csr_matrix:
    """Return the CSR matrix of T(x), (J, D P), given the statistics (n, P) of the n True entries of ``known`` (J, D).

    Statistics that are 0 are stored explicitly.
    """
    size = rows.shape[1]
    columns = size * np.nonzero(known)[1].astype(np.int32)[:, None] + np.arange(size, dtype=np.int32)
    start = np.concatenate([[0], np.cumsum(size * known.sum(axis=1))])
    return sp.csr_matrix((rows.ravel(), columns.ravel(), start), shape=(len(known), size * known.shape[1]))
