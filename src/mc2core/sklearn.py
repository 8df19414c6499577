"""MC2 as an estimator of scikit-learn (``pip install 'mc2core[sklearn]'``)."""

from __future__ import annotations

import logging
import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import extras

extras.require("sklearn", extra="sklearn", purpose="mc2core.sklearn")

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402
from sklearn.utils.metaestimators import available_if  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

from mc2core.base.checks import choice  # noqa: E402
from mc2core.corpus import Corpus  # noqa: E402
from mc2core.corpus.checks import widened  # noqa: E402
from mc2core.inference.base import Engine  # noqa: E402
from mc2core.inference.registry import DEFAULT_MODEL, model_class  # noqa: E402
from mc2core.inference.running.loop import fit  # noqa: E402
from mc2core.inference.running.summary import add_hierarchy  # noqa: E402
from mc2core.models import Model  # noqa: E402
from mc2core.posterior import Posterior  # noqa: E402
from mc2core.posterior.hierarchy import CUTS  # noqa: E402

if TYPE_CHECKING:
    from mc2core.inference import Stream


__all__ = ["MC2Clusterer"]

logger = logging.getLogger(__name__)


def _goes_on(estimator: MC2Clusterer) -> bool:
    """Return whether a fit can be updated with new documents (:class:`mc2core.inference.Stream`)."""
    return getattr(estimator.engine, "can_stream", False)


class MC2Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Estimator of scikit-learn that clusters documents by their words and finds topics of words.

    The number of topics is inferred, and also the number of clusters unless ``n_clusters`` is set. The estimator does
    not use contexts; use :func:`mc2core.fit` to cluster documents with contexts.

    Parameters
    ----------
    iterations : int, optional
        Number of sweeps (Gibbs, FastEx) or epochs (SVI). The default is 60 sweeps or 10 epochs, as in
        :func:`mc2core.fit`.
    n_clusters : int, optional
        Fixed number of clusters, some of which may stay empty. By default, MC2 infers the number. If ``model`` is
        given, set the number of clusters in the model instead.
    model : Model, optional
        Model without contexts. The default is ``MC2()``, in which the topic proportions of a document vary around the
        proportions of its cluster. ``MC2(document_level=False)`` is the model of ICML14.
    engine : Engine, optional
        Inference engine. The default is ``Gibbs()``.
    chains : int, optional
        Number of independent chains, whose samples form one posterior, as in :func:`mc2core.fit`. By default, two
        chains run in parallel on the available cores; SVI has one chain.
    cut : int or str, default "recommended"
        Clustering that ``labels_`` contains: "recommended", "broad", "fine" or "all", or a number of clusters
        (:meth:`mc2core.posterior.hierarchy.Hierarchy.size_of`). The fit does not depend on ``cut``.
    n_jobs : int, default 1
        Number of threads for transform and predict. The result does not depend on it.
    total_samples : int, optional
        Size of the population that the posterior describes after ``partial_fit`` (:class:`mc2core.inference.Stream`).
        The default is the number of documents in the first fit.
    random_state : int, RandomState instance or None, default 0
        Seed of the run. Pass an int for reproducible results.
    vocabulary : V strings, optional
        Words of the columns, in column order. By default, the words are the column names of a DataFrame, or x0, x1, ...
        for other matrices. In a pipeline, X is often a sparse matrix without names; set its words after the fit:
        ``pipeline[-1].posterior_.vocabulary = list(pipeline[:-1].get_feature_names_out())``.

    Attributes
    ----------
    posterior_ : mc2core.Posterior
    labels_ : (J,) int64
        Cluster of each document in the clustering ``cut``. Clusters are numbered from 0 in order of decreasing size, so
        a number is one less than in ``mc2 clusters`` and the HTML report. ``labels_`` is a consensus of all samples,
        whereas ``predict`` averages predictions over a few samples, so the two may differ for some documents.
        ``labels_`` contains the clusters of the fit in three cases: if ``n_clusters`` is set and ``cut`` is the
        default, if the engine supports ``partial_fit``, or if no clustering is recommended.
    probabilities_ : (J,) float64
        Certainty of ``labels_``, in [0, 1]. For each sample, take the cluster that contains the document, and the share
        of its members with the same label as the document. The certainty is the mean of these shares over samples
        (:meth:`mc2core.Posterior.assign`).
        For SVI, which has one sample, the certainty is NaN.
    n_clusters_ : int
        Number of clusters in ``labels_``. ``transform`` returns one column per cluster. For SVI, ``transform`` also
        returns columns for clusters of the posterior without documents.
    components_ : (M, V) float64
        Word distribution of each topic. Rows sum to 1.
    n_features_in_ : int
        Number of words V.

    In all methods, X is a sparse or dense (J, V) matrix of word counts, such as the result of ``CountVectorizer``. The
    methods raise ValueError if X contains anything but non-negative whole numbers.
    """

    _stream: Stream | None = None

    def __init__(
        self,
        iterations: int | None = None,
        *,
        n_clusters: int | None = None,
        model: Model | None = None,
        engine: Engine | None = None,
        chains: int | None = None,
        cut: int | str = "recommended",
        n_jobs: int = 1,
        total_samples: int | None = None,
        random_state: Any = 0,
        vocabulary: Sequence[str] | None = None,
    ) -> None:
        self.iterations = iterations
        self.n_clusters = n_clusters
        self.model = model
        self.engine = engine
        self.chains = chains
        self.cut = cut
        self.n_jobs = n_jobs
        self.total_samples = total_samples
        self.random_state = random_state
        self.vocabulary = vocabulary

    def fit(self, X: Any, y: Any = None) -> MC2Clusterer:
        """Fit the model to the word counts ``X``. ``y`` is ignored."""
        if self.total_samples is not None and not _goes_on(self):
            raise ValueError(f"total_samples is {self.total_samples}, which needs an engine with partial_fit: SVI()")
        if isinstance(self.cut, str):
            choice("cut", self.cut, CUTS)
        counts = self._counts(X, reset=True)
        corpus = Corpus(counts, self._words(counts.shape[1]))
        seed = self.random_state
        if not isinstance(seed, numbers.Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        done = fit(
            corpus, self._model(), self.engine, iterations=self.iterations, seed=int(seed), chains=self.chains,
            progress=False,
        )  # fmt: skip
        self._stream = None
        if _goes_on(self):
            from mc2core.inference import Stream  # imported here, because other engines do not need the kernels of SVI

            self._stream = Stream(done, total_samples=self.total_samples, threads=self.n_jobs)
        if self._stream is None:
            add_hierarchy(done.posterior, done.corpus, done.provenance["inferred"])
        for warning in done.provenance["inferred"]["warnings"]:
            logger.warning(warning)
        self._keep(done.posterior)
        self.labels_, self.probabilities_ = self.posterior_.cluster.astype(np.int64), self.posterior_.certainty
        if self._cut is not None:
            self.labels_, shares = self.posterior_.assign(corpus, progress=False, cut=self._cut)
            self.probabilities_ = shares[np.arange(len(self.labels_)), self.labels_]
        return self

    @available_if(_goes_on)
    def partial_fit(self, X: Any, y: Any = None) -> MC2Clusterer:
        """Update the fit with new documents. The first call is the same as ``fit``. ``y`` is ignored.

        The engine must be SVI with mini-batches. Documents are processed in the given order
        (:meth:`mc2core.inference.Stream.partial_fit`). Rows have no ids, so documents that are passed twice are counted
        twice, as elsewhere in scikit-learn. After the call, ``labels_`` contains the predicted clusters of the new
        documents, and ``probabilities_`` the probabilities of these clusters.
        """
        stream = self._stream
        if stream is None:
            return self.fit(X)
        counts = self._counts(X, reset=False)
        stream.partial_fit(Corpus(counts, self._words(counts.shape[1])))
        words = self.posterior_.vocabulary  # the user may have set the words after the fit
        self._keep(replace(stream.posterior, vocabulary=words))
        shares = self.posterior_.predict_proba(Corpus(counts, words), threads=self.n_jobs, progress=False)
        self.labels_, self.probabilities_ = shares.argmax(axis=1), shares.max(axis=1)
        return self

    def _keep(self, posterior: Posterior) -> None:
        """Set the attributes that depend on the posterior."""
        self.posterior_ = posterior
        hierarchy = posterior.hierarchy
        self._cut = None if hierarchy is None else hierarchy.size_of(self.cut)
        self._n_features_out = self._cut or len(posterior.cluster_weights)
        self.n_clusters_ = self._cut or posterior.n_clusters
        self.components_ = posterior.word_given_topic

    def transform(self, X: Any) -> np.ndarray:
        """Return the probability of each cluster for each document, (J, ``n_clusters_``) float64; rows sum to 1."""
        corpus = self._corpus(X)
        return self.posterior_.assign(corpus, False, self.n_jobs, progress=False, cut=self._cut)[1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest cluster of each document as a (J,) int64 array."""
        return self.transform(X).argmax(axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log likelihood per word, in nats. Higher values are better; a uniform model has -ln V.

        The score is the negative logarithm of the perplexity. The likelihood is computed by ``marginal``, or by
        ``left_to_right`` if documents have their own topic proportions (:mod:`mc2core.posterior.perplexity`). Repeated
        calls return the same value. The score is NaN if no document has a word. ``y`` is ignored.
        """
        corpus = self._corpus(X)
        if corpus.n_tokens == 0:
            return float("nan")
        return float(self.posterior_.log_likelihood(corpus, threads=self.n_jobs).sum() / corpus.n_tokens)

    def _model(self) -> Model | None:
        """Return the given model, or the default model of the engine with the given number of clusters."""
        if self.n_clusters is None:
            return self.model
        if self.model is not None:
            raise ValueError(f"n_clusters is {self.n_clusters} but a model is given; set it in the model instead")
        kind: Any = model_class(DEFAULT_MODEL) if self.engine is None else self.engine.models[0]
        return kind(n_clusters=self.n_clusters)

    def _corpus(self, X: Any) -> Corpus:
        """Return the documents as a corpus with the words of the model."""
        check_is_fitted(self)
        return Corpus(self._counts(X, reset=False), self.posterior_.vocabulary)

    def _words(self, n_words: int) -> list[str]:
        """Return the given names of the columns, or scikit-learn's names x0, x1, ... if there are none."""
        columns = list(getattr(self, "feature_names_in_", ()))
        if self.vocabulary is None:
            return columns or [f"x{word}" for word in range(n_words)]
        words = list(self.vocabulary)
        if columns and columns != words:
            raise ValueError("vocabulary and the columns of X are not the same words in the same order")
        return words

    def _counts(self, X: Any, reset: bool) -> Any:
        """Return X after the checks of scikit-learn; Corpus rejects values that are not whole numbers."""
        X = validate_data(self, widened(X), accept_sparse="csr", dtype="numeric", reset=reset, ensure_non_negative=True)
        return sp.csr_matrix(X) if sp.issparse(X) else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
