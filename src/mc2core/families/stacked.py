"""All contexts of a corpus in one matrix, as engines and scores use them.

The statistics of all contexts form one CSR matrix (J, D), where D is the sum of the dimensions of the families. The
natural parameters of K clusters form one dense matrix (K, D). Contexts are independent given the cluster, so log
likelihoods, log marginals and divergences are summed over contexts.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from mc2core.corpus import Corpus, take_rows
from mc2core.families import kernels
from mc2core.families.base import Family


class StackedContexts:
    """The contexts of a corpus that an engine uses, with their statistics in one matrix.

    Attributes
    ----------
    names : list of str
        Names of the contexts in alphabetical order.
    families : list of Family
        Family of each context, in the same order.
    offsets : (C + 1,) int64
        Context c has the columns offsets[c]:offsets[c + 1].
    codes : (C,) int64
        ``Family.code`` of each context, for compiled kernels.
    statistics : (J, D) float64 CSR
        Statistics of each context, multiplied by the strength of its family.
    log_base : (J,) float64
        Sum of ln h over the contexts, each multiplied by the strength.
    prior : (D,) float64
        Natural parameters of the prior of all contexts.

    Raises
    ------
    ValueError
        If the corpus lacks a context, or if a family does not match its context.
    """

    def __init__(self, corpus: Corpus, families: Mapping[str, Family]) -> None:
        self.names = sorted(families)
        self.families = [families[name] for name in self.names]
        self.n_documents = corpus.n_documents
        parts, log_base, priors = [], np.zeros(corpus.n_documents), []
        for name, family in zip(self.names, self.families, strict=True):
            if name not in corpus.contexts:
                known = ", ".join(sorted(corpus.contexts)) or "none"
                raise ValueError(f"context {name!r} is not in the corpus; it has: {known}")
            if not isinstance(family, Family):
                raise ValueError(f"contexts[{name!r}] is {family!r}; a family such as NormalGamma() is needed")
            if family.code not in kernels.CODES:
                raise ValueError(
                    f"contexts[{name!r}] has the code {family.code}, for which there is no compiled kernel"
                )
            try:
                parts.append(family.strength * family.statistics(corpus.contexts[name]))
                log_base += family.strength * family.log_base(corpus.contexts[name])
            except ValueError as error:
                raise ValueError(f"context {name!r}: {error}") from error
            priors.append(family.prior(family.dimension(corpus.contexts[name])))
        self.statistics = (
            sp.csr_matrix(sp.hstack(parts, format="csr")) if parts else sp.csr_matrix((corpus.n_documents, 0))
        )
        self.log_base = log_base
        self.prior = np.concatenate(priors) if priors else np.zeros(0)
        self.offsets = np.cumsum([0, *(len(prior) for prior in priors)]).astype(np.int64)
        self.codes = np.array([family.code for family in self.families], dtype=np.int64)

    @property
    def dimension(self) -> int:
        """Number D of columns of all contexts."""
        return len(self.prior)

    def segment(self, name: str) -> slice:
        """Return the columns of the context ``name``."""
        c = self.names.index(name)
        return slice(int(self.offsets[c]), int(self.offsets[c + 1]))

    def segments(self, columns: np.ndarray | None = None) -> list[tuple[Family, slice]]:
        """Return the family and the column range of every context.

        If ascending ``columns`` are given, ranges are positions in ``columns``.
        """
        bounds = self.offsets if columns is None else np.searchsorted(columns, self.offsets)
        places = [slice(int(first), int(last)) for first, last in itertools.pairwise(bounds)]
        return list(zip(self.families, places, strict=True))

    @cached_property
    def are_whole_vectors(self) -> np.ndarray:
        """(C,) bool: whether a context has independent Gaussian coordinates, and each document has all or none."""
        statistics, result = self.statistics, np.zeros(len(self.families), bool)
        for c, (family, part) in enumerate(self.segments()):
            length = part.stop - part.start
            if family.code == kernels.NORMAL_GAMMA and length > 4 and family.strength > 0.0:
                filled = np.diff(statistics[:, part].indptr)
                result[c] = ((filled == 0) | (filled == length)).all()
        return result

    def take(self, rows: np.ndarray) -> StackedContexts:
        """Return the contexts of the documents ``rows``, such as a mini-batch."""
        part = object.__new__(StackedContexts)
        part.__dict__.update(self.__dict__)
        part.statistics, part.log_base = take_rows(self.statistics, rows), self.log_base[rows]
        part.n_documents = len(rows)
        return part

    def narrowed(self) -> tuple[np.ndarray, StackedContexts]:
        """Return the columns in use by any document, ascending (D',) int64, and the contexts with only these columns.

        A document has either all or none of the four columns of a number or of a coordinate.
        """
        statistics = self.statistics
        number = np.zeros(self.dimension, statistics.indices.dtype)
        number[statistics.indices] = 1
        columns = np.flatnonzero(number)
        number[columns] = np.arange(len(columns))
        part = copy.copy(self)
        known = statistics.data, number[statistics.indices], statistics.indptr
        part.statistics = sp.csr_matrix(known, shape=(self.n_documents, len(columns)))
        part.prior, part.offsets = self.prior[columns], np.searchsorted(columns, self.offsets)
        return columns, part

    def natural(self, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return the (K, D) posterior natural parameters given (J,) cluster indices; documents with -1 are ignored."""
        natural = np.tile(self.prior, (n_clusters, 1))
        self.add_statistics(cluster, natural)
        return natural

    def add_statistics(self, cluster: np.ndarray, natural: np.ndarray) -> None:
        """Add each document to its cluster's row of ``natural`` (K, D), in place; documents with -1 are ignored."""
        if self.dimension:
            statistics = self.statistics
            kernels.sum_statistics(statistics.indptr, statistics.indices, statistics.data, cluster, natural)

    def sums_by_context(self, values: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """Return the sums of ``values`` (D, ...) per context, (C, ...); ``values`` may have only some ``columns``."""
        parts = [values[part].sum(axis=0) for _, part in self.segments(columns)]
        return np.array(parts) if parts else np.zeros((0, *values.shape[1:]))

    def log_marginal(self, natural: np.ndarray) -> np.ndarray:
        """Return the sum over contexts of A(eta_n) - A(eta_0), (...,)."""
        total = np.zeros(natural.shape[:-1])
        for family, columns in self.segments():
            total += family.log_marginal(natural[..., columns])
        return total

    def kl(self, natural: np.ndarray) -> np.ndarray:
        """Return the KL divergence of the posteriors from the priors, (...,), in nats."""
        total = np.zeros(natural.shape[:-1])
        for family, columns in self.segments():
            total += family.kl(natural[..., columns])
        return total

    def expected_parameters(
        self, natural: np.ndarray, columns: np.ndarray | None = None, totals: np.ndarray | None = None
    ) -> np.ndarray:
        """Return E[t(phi)] of all contexts, (..., D).

        ``natural`` may have only some ``columns`` (ascending), but all or none of the columns of a coordinate. In this
        case, ``totals`` (..., C) are the sums over all columns of each context.
        """
        expected = np.zeros_like(natural)
        for c, (family, part) in enumerate(self.segments(columns)):
            if part.start < part.stop:
                total = None if totals is None else totals[..., c]
                expected[..., part] = family.expected_parameters(natural[..., part], total)
        return expected

    def draw_parameters(self, natural: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Draw phi for each row of ``natural`` (K, D), and return t(phi), (K, D)."""
        drawn = np.zeros_like(natural)
        for family, columns in self.segments():
            drawn[..., columns] = family.draw_parameters(natural[..., columns], generator)
        return drawn

    def log_likelihood(self, parameters: np.ndarray) -> np.ndarray:
        """Return ln p(x_j | phi_k) with strengths, (J, K), given t(phi_k), (K, D).

        Given E[t(phi_k)] instead, the result is the expected log likelihood.
        """
        return np.asarray(self.statistics @ parameters.T) + self.log_base[:, None]

    def log_predictive(self, natural: np.ndarray) -> np.ndarray:
        """Return the log posterior predictive of x_j with strengths, (J, K), for (K, D) natural parameters."""
        out = np.empty((self.n_documents, len(natural)))
        kernels.log_predictive_all(
            self.statistics.indptr.astype(np.int64),
            self.statistics.indices.astype(np.int64),
            self.statistics.data,
            np.ascontiguousarray(natural),
            self.totals(natural),
            self.offsets,
            self.codes,
            out,
        )
        return out + self.log_base[:, None]

    def totals(self, natural: np.ndarray) -> np.ndarray:
        """Return the sums of natural parameters over the columns of each context, (K, C), which Dirichlets need."""
        totals = np.zeros((len(natural), len(self.names)))
        for c in range(len(self.names)):
            totals[:, c] = natural[:, self.offsets[c] : self.offsets[c + 1]].sum(axis=1)
        return totals
