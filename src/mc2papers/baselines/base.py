"""Base class of the baselines: a baseline has settings, and its fit returns a model or assignments."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import choice, whole
from mc2core.base.settings import Settings
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2papers.baselines.assignments import Assignments

WEIGHTINGS = ("counts", "tfidf")


@dataclass(frozen=True)
class Fitted:
    """Results of a fit.

    Attributes
    ----------
    result : Posterior or Assignments
    iterations : sum of the iterations of all solutions
    converged : for each solution, whether the method reports convergence
    """

    result: Posterior | Assignments
    iterations: int
    converged: dict[str, bool] = field(default_factory=dict)


class Baseline(Settings, ABC):
    """A method that the papers compare with. It stores settings but no data, and its constructor takes only keywords.

    A fit runs on one thread. The same corpus, settings, seed, kind of processor and library versions therefore give the
    same result.
    """

    #: name in configuration files and in the registry
    name: ClassVar[str]
    #: name in tables and figures
    title: ClassVar[str]
    citation: ClassVar[str]
    #: whether a fit returns a model with a likelihood of words; otherwise it returns assignments
    leaves_model: ClassVar[bool] = False
    #: names of models; the baseline clusters the fit of such a model in another run. () if it needs no other fit
    models: ClassVar[tuple[str, ...]] = ()
    #: whether the method can use contexts
    takes_contexts: ClassVar[bool] = False

    @abstractmethod
    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        """Cluster the documents of ``corpus``, given the fitted ``model`` if the method has :attr:`models`.

        Raises ValueError if the method or its settings cannot be used for this corpus.
        """


class ByNumber(Baseline):
    """A method that computes one solution for each of several numbers of clusters."""

    takes_contexts: ClassVar[bool] = True
    n_clusters: list[int]
    weighting: str

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        if max(self.n_clusters) > corpus.n_documents:
            raise ValueError(
                f"n_clusters is {max(self.n_clusters)}, but the corpus has {corpus.n_documents} documents; "
                "it must not exceed their number"
            )
        table = features(corpus, self.weighting, self.title)
        solutions: dict[str, np.ndarray] = {}
        iterations, converged = 0, {}
        with one_thread():
            points = self._points(table, seed)
            for k in self.n_clusters:
                solutions[f"k{k}"], n_iterations, converged[f"k{k}"] = self._solve(k, points, seed)
                iterations += n_iterations
        return Fitted(Assignments(solutions), iterations, converged)

    def _points(self, table: sp.csr_matrix, seed: int) -> Any:
        """Return the data to cluster, from the table of :func:`features`. Raises ValueError if it is not suitable."""
        return table

    @abstractmethod
    def _solve(self, k: int, points: Any, seed: int) -> tuple[np.ndarray, int, bool]:
        """Return the labels for ``k`` clusters, the number of iterations, and whether the method converged."""


# -- functions that several methods use ----------------------------------------------------------------------------
def features(corpus: Corpus, weighting: str, method: str) -> sp.csr_matrix:
    """Return (J, D) float64 features: one row per document with its words and the columns of its count contexts.

    ``counts`` uses the counts directly. ``tfidf`` multiplies them by ln((1 + J) / (1 + J_d)) + 1, where J_d is the
    number of documents with column d, and scales rows to Euclidean length 1 (scikit-learn's TfidfTransformer). ICML14
    does not state which features the other methods of its section 4.2 used. The default is tfidf, because with counts
    the lengths of documents dominate and the methods perform worse.

    Raises ValueError for a context of numbers and for an empty document.
    """
    parts = [corpus.content]
    for name, context in corpus.contexts.items():
        if not sp.issparse(context):
            raise ValueError(f"context {name!r} is a number for each document; {method} takes contexts of counts only")
        parts.append(context)
    table = sp.csr_matrix(sp.hstack(parts, format="csr"), dtype=np.float64)
    empty = np.diff(table.indptr) == 0
    if empty.any():
        raise ValueError(f"document {int(np.argmax(empty))} is empty; {method} needs a word in each document")
    if weighting == "tfidf":
        from sklearn.feature_extraction.text import TfidfTransformer

        table = sp.csr_matrix(TfidfTransformer().fit_transform(table))
    return table


def lsa_space(table: sp.csr_matrix, dimension: int, state: int) -> np.ndarray:
    """Return the (J, D) float64 coordinates of latent semantic analysis (Deerwester et al. 1990).

    The coordinates are the first left singular vectors of the (J, V) table times their singular values, with rows
    scaled to length 1. D is ``dimension``, but less than the numbers of rows and columns, because ARPACK cannot find
    more. Raises ValueError if D would be 0.
    """
    from sklearn import decomposition, preprocessing

    most = min(table.shape) - 1
    if most < 1:
        raise ValueError(f"a table of {table.shape[0]} documents and {table.shape[1]} columns is too small for LSA")
    reduction = decomposition.TruncatedSVD(min(dimension, most), algorithm="arpack", random_state=state)
    return np.asarray(preprocessing.normalize(reduction.fit_transform(table)))


def weighting_of(value: Any) -> str:
    """Check and return the ``weighting`` of :func:`features`."""
    return choice("weighting", value, WEIGHTINGS)


def cluster_numbers(value: Any) -> list[int]:
    """Check and return ``n_clusters``, an integer or a sequence of different integers, as a list."""
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    numbers = [whole("n_clusters", one) for one in values]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"n_clusters is {value!r}; it must be a whole number or a list of different ones")
    return numbers


def random_state(seed: int, purpose: str, start: int = 0) -> int:
    """Return a 32-bit seed for scikit-learn. Raises ValueError for an invalid seed."""
    return int(streams.key(seed, purpose, start)) & 0xFFFFFFFF


def load_libraries() -> None:
    """Import the libraries that fits of baselines use, so that the time of a fit does not include their import."""
    for name in ("cluster", "decomposition", "feature_extraction.text", "metrics", "mixture"):
        importlib.import_module(f"sklearn.{name}")


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit all loaded libraries to one thread, so that sums do not depend on the number of cores."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
