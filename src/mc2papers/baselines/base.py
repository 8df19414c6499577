"""The contract of the methods that the papers compare with: settings in, a model or assignments out."""

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
    iterations : of all solutions together
    converged : for each solution, whether the method says that it came to rest
    """

    result: Posterior | Assignments
    iterations: int
    converged: dict[str, bool] = field(default_factory=dict)


class Baseline(Settings, ABC):
    """A method to compare with: settings only, no data. Constructors take keywords only.

    The same corpus, settings, seed, kind of processor and library versions give the same result: it runs on one thread.
    """

    #: name in configuration files and in the registry
    name: ClassVar[str]
    #: name in tables and pictures
    title: ClassVar[str]
    citation: ClassVar[str]
    #: whether it leaves a model, with a likelihood of words; else it leaves assignments
    leaves_model: ClassVar[bool] = False
    #: names of the models whose fit (in another run) it uses; () if it needs none
    models: ClassVar[tuple[str, ...]] = ()
    #: whether it can look at contexts
    takes_contexts: ClassVar[bool] = False

    @abstractmethod
    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        """Cluster the documents of ``corpus``; ``model`` where it has :attr:`models`.

        ValueError where the corpus does not fit the method or its settings.
        """


class ByNumber(Baseline):
    """A method with a solution for each of several numbers of clusters, found one by one."""

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


# -- what methods share --------------------------------------------------------------------------------------------
def features(corpus: Corpus, weighting: str, method: str) -> sp.csr_matrix:
    """Return (J, D) float64 features: one row per document with its words and the columns of its count contexts.

    ``counts`` uses the counts directly. ``tfidf`` multiplies them by ln((1 + J) / (1 + J_d)) + 1, where J_d is the
    number of documents with column d, and scales rows to Euclidean length 1 (scikit-learn's TfidfTransformer). We do
    not know which features ICML14 used for the other methods of its section 4.2. The default is tfidf, with which they
    perform better: with counts, the lengths of documents dominate.

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
    """Return (J, D) float64 rows of length 1: the first left singular vectors of a (J, V) table times their singular
    values.

    This is latent semantic analysis (Deerwester et al. 1990). There are ``dimension`` of them, or as many as ARPACK
    finds: one fewer than rows, and than columns. Raises ValueError if there are none.
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
    """Return a whole number of clusters, or several different ones, as a list."""
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    numbers = [whole("n_clusters", one) for one in values]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"n_clusters is {value!r}; it must be a whole number or a list of different ones")
    return numbers


def random_state(seed: int, purpose: str, start: int = 0) -> int:
    """Return a 32-bit seed for scikit-learn. Raises ValueError for an invalid seed."""
    return int(streams.key(seed, purpose, start)) & 0xFFFFFFFF


def load_libraries() -> None:
    """Load the libraries that methods import when they fit, so that their loading time does not count."""
    for name in (
        "sklearn.cluster",
        "sklearn.decomposition",
        "sklearn.feature_extraction.text",
        "sklearn.metrics",
        "sklearn.mixture",
    ):
        importlib.import_module(name)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit all loaded libraries to one thread, so that sums do not depend on the number of cores."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
