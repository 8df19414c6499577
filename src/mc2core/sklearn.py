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

from mc2core.corpus import Corpus  # noqa: E402
from mc2core.inference.base import Engine  # noqa: E402
from mc2core.inference.registry import DEFAULT_MODEL, model_class  # noqa: E402
from mc2core.inference.running.loop import fit  # noqa: E402
from mc2core.models import Model  # noqa: E402
from mc2core.posterior import Posterior  # noqa: E402

if TYPE_CHECKING:
    from mc2core.inference import Stream


__all__ = ["MC2Clusterer"]

logger = logging.getLogger(__name__)


def _goes_on(estimator: MC2Clusterer) -> bool:
    """Whether what it fits can go on with new documents (:class:`mc2core.inference.Stream`)."""
    engine: Any = estimator.engine
    return getattr(engine, "name", None) == "svi" and engine.batch_size is not None and engine.n_shards is None


class MC2Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Clusters of documents, and topics, whose numbers are found unless that of clusters is told; words only (contexts:
    :func:`mc2core.fit`).

    Parameters
    ----------
    iterations : int, optional
        Sweeps (gibbs, fastex) or epochs (svi); if not given 60, 60 and 10, those of :func:`mc2core.fit`.
    n_clusters : int, optional
        The most clusters that there can be: ``n_clusters`` of the model, where that is not given. If not given, MC2
        finds their number.
    model : Model, optional
        What is believed, without contexts; ``MC2()`` if not given: documents have topic proportions around those of
        their cluster. ``MC2(document_level=False)`` is that of ICML14.
    engine : Engine, optional
        How it is fitted; ``Gibbs()`` if not given.
    chains : int, optional
        Independent runs whose samples make one posterior, as of :func:`mc2core.fit`; if not given two, side by side on
        the cores there are, and one by SVI.
    n_jobs : int, default 1
        Threads of transform and predict; the result does not depend on their number.
    total_samples : int, optional
        Of partial_fit: documents that the posterior is of (:class:`mc2core.inference.Stream`); as many as the first fit
        has if not given.
    random_state : int, RandomState instance or None, default 0
        An int is the seed of the run.
    vocabulary : V strings, optional
        Words of the columns, in their order; if not given the columns of a DataFrame, dense or sparse, else x0, x1, ...
        A sparse matrix has no names, so in a pipeline words are known once it is fitted:
        ``pipeline[-1].posterior_.vocabulary = list(pipeline[:-1].get_feature_names_out())``.

    Attributes
    ----------
    posterior_ : mc2core.Posterior
    labels_ : (J,) int64
        Cluster of each document in the recommended clustering, from 0, the largest first: one less than the number that
        ``mc2 clusters`` and the HTML report show. It rests on all samples. ``predict`` of the same documents is the
        likeliest one given one of them, which now and then is another. With ``n_clusters``, by engines that have
        ``partial_fit``, and where nothing is recommended, the clusters of the fit.
    probabilities_ : (J,) float64
        How sure these are, in [0, 1]: the share of the document's clusters in all samples that lies in its cluster
        (:meth:`mc2core.Posterior.assign`); NaN of SVI, which keeps one sample.
    n_clusters_ : int
        Those of ``labels_``. ``transform`` has a column for each; by SVI it has one for each cluster of the posterior.
    components_ : (M, V) float64
        Words of each topic; rows sum to 1.
    n_features_in_ : int
        V.

    X, everywhere, is (J, V) counts of words, sparse or dense: whole numbers of at least 0, such as
    ``CountVectorizer`` gives. ValueError for anything else.
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
        self.n_jobs = n_jobs
        self.total_samples = total_samples
        self.random_state = random_state
        self.vocabulary = vocabulary

    def fit(self, X: Any, y: Any = None) -> MC2Clusterer:
        """Fit to counts; ``y`` is not looked at."""
        if self.total_samples is not None and not _goes_on(self):
            raise ValueError(f"total_samples is {self.total_samples}, which needs an engine with partial_fit: SVI()")
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
            from mc2core.inference import Stream  # the kernels of SVI need not be there for other engines

            self._stream = Stream(done, total_samples=self.total_samples, threads=self.n_jobs)
        if self._stream is None:
            try:
                done.posterior.find_hierarchy(done.corpus)
            except ValueError as error:  # each document is a cluster (HDP), or there are too many
                logger.info("no clustering is recommended: %s", error)
        self._keep(done.posterior)
        self.labels_, self.probabilities_ = self.posterior_.cluster.astype(np.int64), self.posterior_.certainty
        if self._cut is not None:
            self.labels_, shares = self.posterior_.assign(corpus, progress=False, cut=self._cut)
            self.probabilities_ = shares[np.arange(len(self.labels_)), self.labels_]
        return self

    @available_if(_goes_on)
    def partial_fit(self, X: Any, y: Any = None) -> MC2Clusterer:
        """Go on with new counts, once through; the first time it is ``fit``. ``y`` is not looked at.

        With the engine SVI and mini-batches only; documents are taken in their order
        (:meth:`mc2core.inference.Stream.partial_fit`). As everywhere in scikit-learn, counts that are given again
        count again: rows have no ids, and two documents may have the same words. ``labels_`` are those that ``predict``
        gives these documents, and ``probabilities_`` how probable they are.
        """
        stream = self._stream
        if stream is None:
            return self.fit(X)
        counts = self._counts(X, reset=False)
        stream.partial_fit(Corpus(counts, self._words(counts.shape[1])))
        words = self.posterior_.vocabulary  # they may have been named since
        self._keep(replace(stream.posterior, vocabulary=words))
        shares = self.posterior_.predict_proba(Corpus(counts, words), threads=self.n_jobs, progress=False)
        self.labels_, self.probabilities_ = shares.argmax(axis=1), shares.max(axis=1)
        return self

    def _keep(self, posterior: Posterior) -> None:
        """What is known of clusters and topics."""
        self.posterior_ = posterior
        hierarchy = posterior.hierarchy
        self._cut = None if hierarchy is None else hierarchy.recommended
        self._n_features_out = len(posterior.cluster_weights) if hierarchy is None else hierarchy.recommended
        self.n_clusters_ = posterior.n_clusters if hierarchy is None else hierarchy.recommended
        self.components_ = posterior.word_given_topic

    def transform(self, X: Any) -> np.ndarray:
        """(J, ``n_clusters_``) float64: probability of each cluster given a document's words; rows sum to 1."""
        corpus = self._corpus(X)
        return self.posterior_.assign(corpus, False, self.n_jobs, progress=False, cut=self._cut)[1]

    def predict(self, X: Any) -> np.ndarray:
        """(J,) int64: the likeliest cluster of each document."""
        return self.transform(X).argmax(axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Log likelihood a word of new documents, in nats: higher is better, -ln V is that of guessing.

        Minus the logarithm of their perplexity, by ``marginal``, or by ``left_to_right`` where documents have topic
        proportions of their own (:mod:`mc2core.posterior.perplexity`); the same each time. ``y`` is not looked at.
        NaN where no document has a word.
        """
        corpus = self._corpus(X)
        if corpus.n_tokens == 0:
            return float("nan")
        return float(self.posterior_.log_likelihood(corpus, threads=self.n_jobs).sum() / corpus.n_tokens)

    def _model(self) -> Model | None:
        """The model that is given, or that of the engine with the number of clusters that is told."""
        if self.n_clusters is None:
            return self.model
        if self.model is not None:
            raise ValueError(f"n_clusters is {self.n_clusters} beside a model; tell it the model instead")
        kind: Any = model_class(DEFAULT_MODEL) if self.engine is None else self.engine.models[0]
        return kind(n_clusters=self.n_clusters)

    def _corpus(self, X: Any) -> Corpus:
        """Documents in the words of the model."""
        check_is_fitted(self)
        return Corpus(self._counts(X, reset=False), self.posterior_.vocabulary)

    def _words(self, n_words: int) -> list[str]:
        """Names of the columns that were given; x0, x1, ... are scikit-learn's own where there are none."""
        columns = list(getattr(self, "feature_names_in_", ()))
        if self.vocabulary is None:
            return columns or [f"x{word}" for word in range(n_words)]
        words = list(self.vocabulary)
        if columns and columns != words:
            raise ValueError("vocabulary and the columns of X are not the same words in the same order")
        return words

    def _counts(self, X: Any, reset: bool) -> Any:
        """X as scikit-learn checks it."""
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=reset, ensure_non_negative=True)
        if sp.issparse(X) and not isinstance(X, sp.csr_matrix):
            X = sp.csr_matrix(X)
        return self._whole(X)

    @staticmethod
    def _whole(X: Any) -> Any:
        """Counts as they are; Corpus refuses what is not whole."""
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
