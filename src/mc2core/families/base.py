"""The interface of the likelihood families, which all engines use.

A family is a likelihood of exponential form with its conjugate prior,

    p(x | phi)    = h(x) exp(T(x) . t(phi)),
    p(phi | eta)  = exp(eta . t(phi) - A(eta)),

Everything that an engine needs follows from the sufficient statistics T, the base measure h, the natural parameters eta
of the prior, its log normaliser A and the gradient of A:

* posterior:                eta_n = eta_0 + sum_j T(x_j)                           (every engine)
* log marginal:             A(eta_n) - A(eta_0) + sum_j ln h(x_j)                  (Gibbs, scores)
* log posterior predictive: A(eta_n + T(x)) - A(eta_n) + ln h(x)                   (collapsed Gibbs)
* expected log likelihood:  T(x) . grad A(eta_n) + ln h(x)                         (SVI)
* KL(q || p):               (eta_q - eta_p) . grad A(eta_q) - A(eta_q) + A(eta_p)  (the ELBO)
* log likelihood of a draw: T(x) . t(phi) + ln h(x)                                (blocked Gibbs)

Statistics are the rows of a CSR matrix (J, D). A missing observation is an empty row, so it adds nothing to any of the
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


class OutsideDomain(ValueError):
    """Raised for a value outside the domain of a family.

    Attributes
    ----------
    document : int
        Number of its document.
    why : str
        Rest of the message after the name of the document, such as "holds 0.5; ...".
    """

    def __init__(self, family: Family, document: int, why: str) -> None:
        super().__init__(family, document, why)
        self.document, self.why = int(document), why

    def __str__(self) -> str:
        return f"{type(self.args[0]).__name__}: document {self.document} {self.why}"


class Family(ABC):
    """A likelihood with its conjugate prior. It is immutable and holds only hyper-parameters.

    Attributes
    ----------
    strength : float in [0, 1]
        Power of each document's likelihood: 1 is the model; with 0, the context has no effect on the clusters.
    """

    #: number by which compiled kernels know the family (families/kernels.py)
    code: ClassVar[int]
    #: name in configuration files
    name: ClassVar[str]
    #: kind of the contexts that it is of (``Corpus.context_kinds``): "counts", "number" or "vector"
    kind: ClassVar[str]

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = share(f"{type(self).__name__} strength", strength)

    @abstractmethod
    def settings(self) -> dict[str, float]:
        """Return the hyper-parameters by their names in the constructor."""

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

        ``natural`` may have only some columns of a bag; ``total`` (...,) is then the sum over all columns.
        """

    @abstractmethod
    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Draw one phi for each row of (K, D) natural parameters, and return t(phi), (K, D) float64."""

    @abstractmethod
    def draw_observations(self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator) -> Any:
        """Draw a context of J observations, one for each row of (J, D) ``parameters`` t(phi).

        ``sizes`` (J,) are the numbers of draws in the bags (Dirichlet). For other families, size 0 means missing.
        """

    @abstractmethod
    def mean(self, natural: np.ndarray) -> np.ndarray:
        """Return the posterior mean of the observations: (K, A) probabilities, (K,) values or (K, D) vectors."""

    # -- what follows --------------------------------------------------------------------------------------
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
    """Base class of families of one number per document. D is fixed, and NaN means missing."""

    kind: ClassVar[str] = "number"
    #: whether values are whole numbers
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
        """Raise OutsideDomain for the first value outside the domain; ``documents`` are the document numbers."""

    def _values(self, context: Any) -> np.ndarray:
        if sp.issparse(context) or np.ndim(context) != 1:
            raise ValueError(f"{type(self).__name__} needs one number for each document, not a matrix")
        return np.asarray(context, dtype=np.float64)

    def statistics(self, context: Any) -> sp.csr_matrix:
        values = self._values(context)
        documents = np.flatnonzero(~np.isnan(values))
        observed = values[documents]
        self.check_each(observed, documents)
        lengths = np.zeros(len(values), dtype=np.int64)
        lengths[documents] = self.n_statistics
        # built by hand: a statistic that happens to be 0 is stored like any other
        return sp.csr_matrix(
            (
                self.rows(observed).ravel(),
                np.tile(np.arange(self.n_statistics, dtype=np.int32), len(documents)),
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
            shape=(len(values), self.n_statistics),
        )
