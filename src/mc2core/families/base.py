"""What every likelihood family offers, written once for every engine.

A family is a likelihood of exponential form with its conjugate prior,

    p(x | phi)    = h(x) exp(T(x) . t(phi)),
    p(phi | eta)  = exp(eta . t(phi) - A(eta)),

so that everything an engine asks for follows from the sufficient statistics T, the base measure h, the natural
parameters eta of the prior, its log normaliser A and the gradient of A:

* posterior:                eta_n = eta_0 + sum_j T(x_j)                           (every engine)
* log marginal:             A(eta_n) - A(eta_0) + sum_j ln h(x_j)                  (Gibbs, scores)
* log posterior predictive: A(eta_n + T(x)) - A(eta_n) + ln h(x)                   (collapsed Gibbs)
* expected log likelihood:  T(x) . grad A(eta_n) + ln h(x)                         (SVI)
* KL(q || p):               (eta_q - eta_p) . grad A(eta_q) - A(eta_q) + A(eta_p)  (the ELBO)
* log likelihood of a draw: T(x) . t(phi) + ln h(x)                                (blocked Gibbs)

Statistics come as the rows of one CSR matrix (J, D). A missing observation is an empty row: it then adds nothing
to any of the sums above, which is what "missing" means in the model.

A family of strength c raises each document's likelihood to the power c, before phi is integrated out: c T(x) and
c ln h(x) take the place of T(x) and ln h(x) in all of these. :class:`mc2core.families.stacked.StackedContexts` weighs
what ``statistics`` and ``log_base`` give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import share


class OutsideDomain(ValueError):
    """A value that a family does not take.

    Attributes
    ----------
    document : int
        Its number in the context.
    why : str
        "holds 0.5; ...", to follow what names the document.
    """

    def __init__(self, family: Family, document: int, why: str) -> None:
        super().__init__(family, document, why)
        self.document, self.why = int(document), why

    def __str__(self) -> str:
        return f"{type(self.args[0]).__name__}: document {self.document} {self.why}"


class Family(ABC):
    """One likelihood with its conjugate prior; immutable, holds hyper-parameters only.

    Attributes
    ----------
    strength : float in [0, 1]
        Power of each document's likelihood: 1 is the model, and of strength 0 a context says nothing of clusters.
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
        """Hyper-parameters by the names of the constructor."""

    @abstractmethod
    def dimension(self, context: Any) -> int:
        """D, the length of T(x), for a context of a corpus."""

    @abstractmethod
    def prior(self, dimension: int) -> np.ndarray:
        """(D,) float64: eta_0."""

    @abstractmethod
    def statistics(self, context: Any) -> sp.csr_matrix:
        """(J, D) float64 CSR: T(x_j), whatever the strength; the row of a missing observation is empty.

        OutsideDomain for a value outside the family's domain.
        """

    @abstractmethod
    def log_base(self, context: Any) -> np.ndarray:
        """(J,) float64: ln h(x_j), whatever the strength; 0 where missing."""

    @abstractmethod
    def log_normaliser(self, natural: np.ndarray) -> np.ndarray:
        """(...,) float64: A(eta) of (..., D) natural parameters."""

    @abstractmethod
    def expected_parameters(self, natural: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
        """(..., D) float64: E[t(phi)] = grad A(eta).

        ``natural`` may hold some of a bag's columns only; ``total`` (...,) is then the sum over all of them.
        """

    @abstractmethod
    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """(K, D) float64: t(phi) of one phi for each row of (K, D) natural parameters."""

    @abstractmethod
    def draw_observations(self, parameters: np.ndarray, sizes: np.ndarray, generator: np.random.Generator) -> Any:
        """Context of J observations, one for each row of (J, D) ``parameters`` t(phi).

        ``sizes``: (J,) ints, the number of draws in a bag (Dirichlet); other families take size 0 as missing.
        """

    @abstractmethod
    def mean(self, natural: np.ndarray) -> np.ndarray:
        """Posterior mean of the observation's distribution: (K, A) probabilities, (K,) values or (K, D) vectors."""

    # -- what follows --------------------------------------------------------------------------------------
    def log_marginal(self, natural: np.ndarray) -> np.ndarray:
        """(...,) float64: A(eta_n) - A(eta_0), the log marginal likelihood less the base measure."""
        return self.log_normaliser(natural) - self.log_normaliser(self.prior(natural.shape[-1]))

    def kl(self, natural: np.ndarray) -> np.ndarray:
        """(...,) float64 >= 0: KL of the posterior with (..., D) natural parameters from the prior, in nats."""
        difference = natural - self.prior(natural.shape[-1])
        return np.sum(difference * self.expected_parameters(natural), axis=-1) - self.log_marginal(natural)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and (self.name, self.settings()) == (other.name, other.settings())

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.settings().items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value:g}' for name, value in self.settings().items())})"


class ScalarFamily(Family):
    """A family of one number for each document; D is fixed and NaN means missing."""

    kind: ClassVar[str] = "number"
    #: whether values are whole numbers
    is_discrete: ClassVar[bool] = False
    #: D, the length of T(x)
    n_statistics: ClassVar[int]

    @staticmethod
    @abstractmethod
    def predictive(natural: np.ndarray) -> Any:
        """The posterior predictive under (..., D) natural parameters: a frozen distribution of :mod:`scipy.stats`."""

    def dimension(self, context: Any) -> int:
        self._values(context)
        return self.n_statistics

    @abstractmethod
    def rows(self, observed: np.ndarray) -> np.ndarray:
        """(n, D) statistics of n observed values."""

    def check_each(self, observed: np.ndarray, documents: np.ndarray) -> None:
        """OutsideDomain for a value outside the domain, of one of ``documents``."""

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
