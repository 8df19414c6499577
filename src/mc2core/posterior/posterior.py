"""The posterior, the result of every engine. Scores, tables and figures use only a corpus and a posterior."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.checks import choice, counted
from mc2core.base.progress import showing, work
from mc2core.corpus import Corpus, matching
from mc2core.corpus.checks import CONTENT_KINDS, Unit, check_unit, placeholders
from mc2core.corpus.embeddings import KEY, check_reduction
from mc2core.families import Family, VectorFamily, family_from_settings, family_settings
from mc2core.families.base import ScalarFamily
from mc2core.families.contents import Contents
from mc2core.families.stacked import StackedContexts
from mc2core.posterior import consensus
from mc2core.posterior.sample import Sample, pack_sample, unpack_sample

if TYPE_CHECKING:
    from mc2core.posterior.added import Added
    from mc2core.posterior.contexts import PredictedNames, PredictedNumbers, PredictedVectors
    from mc2core.posterior.hierarchy import Hierarchy
    from mc2core.posterior.predicting import PredictedClusters, Predictors

FORMAT = "mc2core posterior 1"
_COUNTS_OF_UPDATE = ["documents", "tokens", "in_small", "left_out_tokens"]
_COUNTS_OF_UPDATE += ["clusters_born", "clusters_gone", "topics_born", "topics_gone"]
_DESCRIBED = {
    **{"format": str, "n_samples": int, "families": {str: {str: object}}, "dimensions": {str: int}},
    **{"vocabulary": [str], "context_names": {str: [str]}, "units": {str: [object]}, "provenance": {str: object}},
    "imported": (None, {str: object}),
}
_STORED = "dimensions", "vocabulary", "context_names", "provenance", "imported"
#: name of the file of the posterior in the folder of a fit
POSTERIOR = "posterior.npz"
#: largest number of samples whose predictions for new documents are averaged (docs/notes/consensus.md)
N_PREDICTING = 8
#: smallest expected number of tokens of a top word of a topic; fewer tokens mostly come from the prior
FEWEST_TOKENS = 0.01


def posterior_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of a saved posterior, given the file itself or the folder of a fit."""
    path = Path(path)
    return path / POSTERIOR if (path / POSTERIOR).is_file() else path


def _find_largest(row: Any, n: int) -> np.ndarray:
    """Return the columns of the n largest entries of ``row``, (V,) or sparse (1, V), that are at least
    FEWEST_TOKENS."""
    if sp.issparse(row):
        row = sp.csr_matrix(row)
        columns, values = row.indices, row.data
    else:
        columns, values = np.arange(len(row)), row
    is_frequent = values >= FEWEST_TOKENS
    return columns[is_frequent][np.lexsort((columns[is_frequent], -values[is_frequent]))][:n]


@dataclass(repr=False)
class Posterior:
    """Result of inference: clusters, topics and context parameters, with their uncertainty.

    A posterior has at least one :class:`Sample`. Attributes such as ``cluster_weights`` come from the
    :attr:`representative` sample, and :attr:`cluster` is the consensus of all samples. Clusters and topics are numbered
    from 0 in arrays, and from 1 in tables and reports.

    Attributes
    ----------
    samples : list of Sample
        Samples, one chain after another. Engines that do not sample return one sample.
    families : dict
        Family (likelihood and prior) of each context of the fit, by name.
    vocabulary : list of str
        The words of the fit, or the names of the columns of observations.
    provenance : dict
        Model, engine, seed, versions, digests and running times.
    imported : dict or None
        Settings with which the documents were imported (:class:`mc2core.Corpus`).
    hierarchy : Hierarchy or None
        Clusterings of the documents with every number of clusters (:meth:`find_hierarchy`).
    fingerprints : (n,) int64 or None
        Fingerprints of the documents that ``mc2 fit`` and ``mc2 update`` have used, if the documents have ids
        (:mod:`mc2core.corpus.fingerprints`).
    reservoir : Corpus or None
        For fits by SVI, a random sample of the documents, with which the fit can be continued
        (:mod:`mc2core.corpus.reservoir`).
    added : Added or None
        After ``mc2 update`` of a fit by Gibbs sampling, the clusters that old documents keep
        (:mod:`mc2core.posterior.added`).

    See Also
    --------
    mc2core.Fit : the posterior with its documents, as data frames.

    Examples
    --------
    >>> import mc2core
    >>> corpus = mc2core.Corpus.from_texts(["apple tree leaf", "leaf tree apple", "iron nail", "nail iron forge"])
    >>> posterior = mc2core.fit(corpus, iterations=4).posterior
    >>> posterior.cluster.shape, posterior.word_given_topic.shape[1]
    ((4,), 6)
    >>> posterior.save("posterior.npz")
    >>> mc2core.Posterior.load("posterior.npz").n_words
    6
    """

    samples: list[Sample]
    families: dict[str, Family]
    dimensions: dict[str, int]
    vocabulary: list[str]
    context_names: dict[str, list[str]] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    imported: dict[str, Any] | None = None
    hierarchy: Hierarchy | None = None
    fingerprints: np.ndarray | None = None
    reservoir: Corpus | None = None
    added: Added | None = None

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a posterior needs at least one sample; burn_in must be below the number of iterations")

    def __repr__(self) -> str:
        contexts = ", ".join(sorted(self.families)) or "none"
        return (
            f"Posterior({counted(self.n_clusters, 'clusters')}, {counted(self.representative.n_topics, 'topics')}, "
            f"{self.n_words} {self._columns}, {counted(len(self.samples), 'samples')}, contexts: {contexts})"
        )

    def _repr_html_(self) -> str:
        """Return a table of facts for a notebook."""
        from mc2core.base.pages import facts

        rows: dict[str, Any] = {"topics": f"{self.number('topics'):,}"}
        if not self.samples[0].documents_are_clusters:
            within = f" ({consensus.in_samples(self.interval('main clusters'))})" if len(self.samples) > 1 else ""
            rows = {"clusters": f"{self.number('clusters'):,}{within}", **rows}
        rows |= {"samples": f"{len(self.samples):,}", self._columns: f"{self.n_words:,}"}
        rows["contexts"] = ", ".join(sorted(self.families)) or "none"
        rows |= {part: self.provenance[part]["name"] for part in ("model", "engine") if part in self.provenance}
        rows |= {name: self.provenance[name] for name in ("iterations", "seed") if name in self.provenance}
        return facts("Posterior", rows)

    # -- samples -------------------------------------------------------------------------------------------
    @cached_property
    def representative(self) -> Sample:
        """Sample with the least expected Binder loss. Words and topics in tables are taken from this sample."""
        return self.samples[self._first]

    @cached_property
    def cluster(self) -> np.ndarray:
        """Cluster of each document in the consensus of the samples, (J,) int32.

        Clusters are numbered from 0, as in :attr:`representative`. Some clusters of the representative may have no
        documents in the consensus. Documents without a cluster have -1; this occurs if a run was stopped early.
        """
        if self.samples[0].documents_are_clusters:
            return self.samples[0].cluster
        numbers = self._sample_numbers
        return consensus.consensus([self.samples[one].cluster for one in numbers], numbers.index(self._first))

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters that have documents. For HDP, this is the number of documents."""
        if self.samples[0].documents_are_clusters:
            return self.representative.n_clusters
        return len(np.unique(self.cluster[self.cluster >= 0]))

    @cached_property
    def by_size(self) -> np.ndarray:
        """Rank by size of each cluster in :attr:`cluster`, (K,) int64. The largest cluster has rank 0."""
        from mc2core.posterior.hierarchy import by_size

        return by_size(self.cluster, self.representative.n_clusters)

    @cached_property
    def certainty(self) -> np.ndarray:
        """Certainty with which each document belongs to its :attr:`cluster`, (J,) float64 in [0, 1].

        In a sample, some of the other documents of the cluster are together with the document. The certainty is the
        share of these documents, averaged over samples (:func:`mc2core.posterior.consensus.shares`). The certainty is
        NaN if there is only one sample, for HDP, and for documents without a cluster.
        """
        sure = np.full(len(self.cluster), np.nan)
        if self._is_of_several:
            fitted = np.flatnonzero(self.cluster >= 0)
            shares = consensus.shares(self._clusterings, self.cluster, self.representative.n_clusters)
            sure[fitted] = shares[fitted, self.cluster[fitted]]
        return sure

    @property
    def _is_of_several(self) -> bool:
        return len(self.samples) > 1 and not self.samples[0].documents_are_clusters

    @cached_property
    def _first(self) -> int:
        several = [self.samples[number] for number in self._sample_numbers]
        first = consensus.representative([one.cluster for one in several], [one.n_topics for one in several])
        return self._sample_numbers[first]

    @cached_property
    def _sample_numbers(self) -> list[int]:
        """Indices of the samples that the clustering uses: all samples except those of stuck chains."""
        bounds = np.cumsum([0, *self.provenance.get("chains", [len(self.samples)])]).tolist()
        stuck = self.provenance.get("stuck", [])
        parts = [range(*pair) for number, pair in enumerate(itertools.pairwise(bounds)) if number not in stuck]
        return [number for part in parts for number in part]

    @property
    def clusterings(self) -> list[np.ndarray]:
        """Cluster of each document in each sample of all chains that are not stuck, (J,) int32 each.

        The list is empty if there is only one sample, or if a document has no cluster in one of these samples.
        """
        several = [self.samples[one].cluster for one in self._sample_numbers]
        return several if len(several) > 1 and min(map(np.min, several)) >= 0 else []

    @property
    def _clusterings(self) -> list[np.ndarray]:
        return [sample.cluster for sample in self.samples]

    @cached_property
    def chains(self) -> list[Posterior]:
        """One posterior per chain; the list is empty if there is only one chain."""
        bounds = np.cumsum([0, *self.provenance.get("chains", [])])
        parts = [self.samples[first:last] for first, last in itertools.pairwise(bounds)]
        return [replace(self, samples=part, provenance={}, hierarchy=None) for part in parts]

    def between_chains(self) -> dict[str, Any]:
        """Return the agreement of the chains of the fit as a dict, which is empty for a single chain.

        ``clusters`` and ``topics`` are lists of the numbers of clusters and topics in each chain. ``ari`` (adjusted
        Rand index) and ``vi_bits`` (variation of information) compare the clusters of the chains, averaged over pairs
        (:func:`mc2core.posterior.consensus.agreement_between`). ``recommended`` is the recommended number of clusters,
        if it is above 1. ``recommended_ari`` compares clusterings with this number of clusters, each computed from one
        chain. For HDP, only ``topics`` is returned.
        """
        if not (chains := self.chains):
            return {}
        measures: dict[str, Any] = {"topics": [one.representative.n_topics for one in chains]}
        if not self.samples[0].documents_are_clusters:
            measures["clusters"] = [one.n_clusters for one in chains]
            measures |= consensus.agreement_between([one.cluster for one in chains])
        if self.hierarchy is not None and self.hierarchy.recommended > 1:
            ari = float(self.hierarchy.agreement[self.hierarchy.recommended - 1])
            measures |= {} if np.isnan(ari) else {"recommended": self.hierarchy.recommended, "recommended_ari": ari}
        return measures

    def number(self, what: str) -> int:
        """Return the number of clusters with documents ("clusters") or of topics in the representative ("topics")."""
        return (
            self.n_clusters if choice("what", what, consensus.COUNTED) == "clusters" else self.representative.n_topics
        )

    def interval(self, what: str) -> tuple[int, int]:
        """Return the central 90 % interval over the samples of the number of "clusters", "main clusters" or "topics".

        The main clusters of a sample are the smallest set of clusters with 95 % of its documents
        (:func:`consensus.n_main`). The number of main clusters estimates the number of groups better than the number of
        clusters, because a Dirichlet process adds small clusters (docs/notes/consensus.md). The interval of the number
        of topics is too narrow if the prior of words does not fit.
        """
        if choice("what", what, ("clusters", "main clusters", "topics")) == "main clusters":
            return consensus.interval([consensus.n_main(sample.cluster) for sample in self.samples])
        return consensus.interval([getattr(sample, f"n_{what}") for sample in self.samples])

    @property
    def cluster_weights(self) -> np.ndarray:
        """Weights of the clusters of the representative, (K,) float64, which sum to 1."""
        return self.representative.cluster_weights

    @property
    def topic_given_cluster(self) -> np.ndarray:
        """Topic proportions of each cluster of the representative, (K, M) float64, dense; rows sum to 1."""
        shares = self.representative.topic_given_cluster
        return shares.toarray() if sp.issparse(shares) else shares

    @property
    def word_given_topic(self) -> np.ndarray:
        """Word distribution of each topic of the representative, (M, V) float64; rows sum to 1."""
        return self.representative.word_given_topic

    @property
    def contents(self) -> Contents | None:
        """Parameters of topics that emit observations, with ``mean`` and ``sd``; None if topics emit words."""
        return self.representative.contents

    @property
    def is_of_observations(self) -> bool:
        """Whether topics emit observations rather than words."""
        return self.contents is not None

    @property
    def _columns(self) -> str:
        return "words" if self.contents is None else CONTENT_KINDS[self.content_kind]

    @property
    def content_kind(self) -> str:
        """Kind of the content: "words", or "numbers", "counts" or "binary" if topics emit observations."""
        return "words" if self.contents is None else self.contents.family.content_kind

    @property
    def n_words(self) -> int:
        """Number of words V or, if topics emit observations, the number of coordinates of an observation."""
        return self.samples[0].topic_words.shape[1]

    @property
    def context_kinds(self) -> dict[str, str]:
        """Kind of each context of the fit: "number", "counts" or "vector"."""
        return {name: family.kind for name, family in self.families.items()}

    @property
    def vector_lengths(self) -> dict[str, int]:
        """Number of coordinates of each vector context of the fit, by name."""
        families = self.families.items()
        return {name: one.length(self.dimensions[name]) for name, one in families if isinstance(one, VectorFamily)}

    def context_parameters(self, name: str) -> np.ndarray:
        """Return the natural parameters of the context ``name`` in each cluster of the representative, (K, D)."""
        return self._natural(self.representative, name)

    def _natural(self, sample: Sample, name: str) -> np.ndarray:
        """Return :meth:`context_parameters` of a ``sample``."""
        if name not in self.families:
            listed = ", ".join(sorted(self.families)) or "none"
            raise ValueError(f"context {name!r} is not in the posterior; it has: {listed}")
        start = sum(self.dimensions[context] for context in self.families if context < name)
        return sample.contexts.dense(slice(start, start + self.dimensions[name]))

    def context_mean(self, name: str) -> np.ndarray:
        """Return the posterior mean of the context ``name`` in each cluster of the representative.

        For a context of counts, the means are probabilities of the A names, (K, A). For numbers and vectors, the means
        are in the original unit, (K,) and (K, D).
        """
        parameters = self.context_parameters(name)
        mean = self.families[name].mean(parameters)
        if self.context_kinds[name] == "counts":
            return mean
        centre, sd = map(np.asarray, self.units.get(name, (0.0, 1.0)))
        return mean * sd + centre

    def top_words(self, n: int = 10) -> list[list[str]]:
        """Return the n likeliest words of each topic of the representative."""
        self.representative.need_words()
        if n < 1:
            raise ValueError(f"n is {n}; it must be at least 1")
        return [[self.vocabulary[word] for word in _find_largest(row, n)] for row in self.representative.topic_words]

    # -- documents -----------------------------------------------------------------------------------------
    def check_corpus(self, corpus: Corpus) -> None:
        """Raise ValueError unless ``corpus`` has the words (or columns of observations) of the fit in the same order.

        If the words of the corpus or of the posterior have no names, only the number of words is compared, and a
        warning is logged.
        """
        of_fit, of_corpus = (
            kind if kind == "words" else f"observations ({CONTENT_KINDS[kind]})"
            for kind in (self.content_kind, corpus.content_kind)
        )
        if of_fit != of_corpus:
            raise ValueError(f"the corpus is one of {of_corpus}, but the model was fitted on {of_fit}")
        vocabulary = corpus.vocabulary if corpus.has_vocabulary else None
        sizes, is_fitted = (self.n_words, corpus.n_words), partial(self.was_fitted_on, corpus)
        matching.check_columns("the corpus", self._columns, self.vocabulary, vocabulary, *sizes, is_fitted)

    def check_fitted(self, corpus: Corpus) -> None:
        """Raise ValueError unless ``corpus`` has the words and the number of documents of the fitted corpus."""
        self.check_corpus(corpus)
        fitted = len(self.samples[0].cluster)
        if corpus.n_documents != fitted:
            size = counted(corpus.n_documents, "documents")
            raise ValueError(f"the corpus has {size}, but the model was fitted on {fitted:,}")

    def was_fitted_on(self, corpus: Corpus) -> bool:
        """Return whether ``corpus`` is the fitted corpus, compared in the contexts and units of the posterior."""
        if corpus.content.nnz == 0 and not any(name in corpus.contexts for name in self.families):
            return False
        return self._digest_of(corpus) == self.provenance.get("corpus")

    def _digest_of(self, corpus: Corpus) -> str:
        """Return the digest of a corpus with the contexts and units of the posterior."""
        names = [name for name in self.families if name in corpus.contexts]
        restricted = corpus.with_contexts({name: corpus.contexts[name] for name in names})
        return matching.in_units(restricted, names, self.units).digest

    def of_documents(self, corpus: Corpus, rows: np.ndarray) -> tuple[Posterior, Corpus]:
        """Return the posterior and the corpus, both restricted to the documents ``rows`` (ascending indices).

        If ``corpus`` is not the fitted corpus, only the corpus is restricted. The restriction does not change the
        representative sample, or the clusters and the hierarchy of the remaining documents.
        """
        some = corpus.subset(rows)
        if not self.was_fitted_on(corpus):
            return self, some
        part = replace(
            self,
            samples=[replace(sample, cluster=sample.cluster[rows]) for sample in self.samples],
            provenance=self.provenance | {"corpus": self._digest_of(some)},
            hierarchy=None if self.hierarchy is None else self.hierarchy.of_documents(rows),
            added=None,
        )
        of_all = {"_first": self._first, "n_clusters": self.n_clusters, "by_size": self.by_size}  # not recomputed
        part.__dict__ |= {**of_all, "cluster": self.cluster[rows]}
        return part, some

    def stacked(self, corpus: Corpus, families: Mapping[str, Family] | None = None) -> StackedContexts:
        """Return the contexts of ``corpus`` in the units of the fit: all contexts of the fit, or those in ``families``.

        Raises ValueError if a context is absent or has other columns. If the corpus or the posterior has no names for
        the columns, only their number is compared, and a warning is logged.
        """
        families = self.families if families is None else families
        check_reduction(corpus, (self.imported or {}).get(KEY), families, "the model")
        for name, length in self.vector_lengths.items():
            if name in families:
                matching.check_length(name, corpus.vector_lengths.get(name, length), "the model", length)
        stacked = StackedContexts(matching.in_units(corpus, families, self.units), families)
        for name, family in zip(stacked.names, stacked.families, strict=True):
            if family.kind == "counts":
                matching.check_columns(
                    f"context {name!r}",
                    "columns",
                    self.context_names.get(name),
                    corpus.context_names.get(name),
                    self.dimensions[name],
                    corpus.contexts[name].shape[1],
                    partial(self.was_fitted_on, corpus),
                )
        return stacked

    def assign(
        self,
        corpus: Corpus,
        use_context: bool = True,
        threads: int = 1,
        progress: bool | None = None,
        cut: int | str | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cluster of each document (J,) int64, and the probability of each cluster (J, K) float64.

        If ``corpus`` is the fitted corpus and there are several samples, the first array is :attr:`cluster`. Entry (j,
        k) of the second array is then the probability that document j is in the same cluster as another document of
        cluster k (:func:`mc2core.posterior.consensus.shares`). For other documents, or if ``use_context`` is False, the
        second array is the result of :meth:`predict_proba`, which has the same arguments. The first array is then the
        likeliest cluster.

        ``cut`` is a number of clusters, "recommended", "broad" or "fine"
        (:meth:`mc2core.posterior.hierarchy.Hierarchy.size_of`), or "all" for the clusters of the fit. With a cut, both
        arrays refer to its clusters, numbered by decreasing size. For fitted documents, the second array is the result
        of :meth:`mc2core.posterior.hierarchy.Hierarchy.probability`. For other documents, or if there is one sample,
        the probability of each cluster of the fit is divided among the clusters of the cut. The division is in
        proportion to their common fitted documents. Without a cut, clusters are numbered as in :attr:`representative`.

        Raises ValueError if the cut does not exist, if the posterior has no hierarchy and ``corpus`` is not the fitted
        corpus, or if the model is HDP, which has no clusters of documents.
        """
        if self.representative.documents_are_clusters:
            raise ValueError("this posterior has no clusters to assign to: each document is its own cluster")
        is_of_fit = use_context and self.was_fitted_on(corpus) and min(map(np.min, self._clusterings)) >= 0
        if is_of_fit:  # the fitted corpus is recognised by its numbers alone, so words and names are checked
            self._stacked_to_predict(corpus)
        if cut == "all":
            cluster, probability = self.assign(corpus, use_context, threads, progress)
            return self.by_size[cluster], probability[:, np.argsort(self.by_size)]
        if cut is None and is_of_fit and self._is_of_several:
            cluster = self.cluster.astype(np.int64)
            return cluster, consensus.shares(self._clusterings, cluster, self.representative.n_clusters)
        if cut is None:
            probability = self.predict_proba(corpus, use_context, threads, progress)
            return probability.argmax(axis=1), probability
        if self.hierarchy is None and not is_of_fit:
            raise ValueError(
                "the posterior has no hierarchy; find_hierarchy(corpus) computes it from the fitted documents"
            )
        hierarchy = self.hierarchy or self.find_hierarchy(corpus)
        cut = hierarchy.size_of(cut)
        if is_of_fit:
            if (shares := hierarchy.probability(cut)) is None:
                sample = self.representative
                shares = hierarchy.shares(cut, sample.cluster, sample.n_clusters)[sample.cluster]
            return hierarchy.cut(cut).astype(np.int64), shares
        probability = self.predicted_clusters(corpus, use_context, threads, progress).at(hierarchy.cut(cut), cut)
        return probability.argmax(axis=1), probability

    def find_hierarchy(self, corpus: Corpus) -> Hierarchy:
        """Compute the hierarchy: one clustering of the documents for every number of clusters.

        ``corpus`` is the fitted corpus. The result (:class:`mc2core.posterior.hierarchy.Hierarchy`) is also stored in
        :attr:`hierarchy` and saved with the posterior.

        Raises ValueError if ``corpus`` is not the fitted corpus, if the model is HDP, which has no clusters of
        documents, or if there are too many clusters.
        """
        from mc2core.posterior.descent import find_hierarchy

        self.hierarchy = find_hierarchy(self, corpus)
        return self.hierarchy

    def predict_proba(
        self, corpus: Corpus, use_context: bool = True, threads: int = 1, progress: bool | None = None
    ) -> np.ndarray:
        """Return the probability of each cluster given the words and contexts of each document, (J, K) float64.

        The columns are the clusters of :attr:`cluster`, and rows sum to 1. If there are several samples, the result is
        a mean over at most ``N_PREDICTING`` samples from all chains. The probability of a cluster of a sample is
        divided among the columns in proportion to their common fitted documents.

        With a document level, the probabilities are estimated by Gibbs sampling of the topics and the cluster of each
        document (:mod:`mc2core.posterior.document_level`). Repeated calls give the same result, with any number of
        threads.

        Parameters
        ----------
        corpus : Corpus
            Documents with the vocabulary of the fit.
        use_context : bool
            Whether to use contexts in addition to words.
        threads : int
            Number of threads.
        progress : bool, optional
            Whether to show progress. The default is the same as in :func:`mc2core.fit`.

        Raises
        ------
        ValueError
            If the corpus does not match the posterior.
        """
        clusters = self.predicted_clusters(corpus, use_context, threads, progress)
        if len(clusters.samples) == 1:
            return clusters.shares.toarray()
        return clusters.at(self.cluster, self.representative.n_clusters)

    def predicted_clusters(
        self, corpus: Corpus, use_context: bool = True, threads: int = 1, progress: bool | None = None
    ) -> PredictedClusters:
        """Return the probabilities of the clusters of each sample that :meth:`predict_proba` uses."""
        stacked = self._stacked_to_predict(corpus, use_context)
        with showing(progress):
            return self.predictors(use_context)(corpus, stacked, threads)

    def predict(
        self, corpus: Corpus, use_context: bool = True, threads: int = 1, progress: bool | None = None
    ) -> np.ndarray:
        """Return the likeliest cluster of each document, numbered from 0, by :meth:`predict_proba`."""
        likeliest: np.ndarray = self.predict_proba(corpus, use_context, threads, progress).argmax(axis=1)
        return likeliest

    @cached_property
    def predicting_samples(self) -> list[Sample]:
        """At most ``N_PREDICTING`` samples, evenly spaced over all chains; the representative is the first.

        Chains that are stuck are left out. If documents have no cluster in a sample, only the representative is used.
        """
        numbers = [one for one in self._sample_numbers if one != self._first] if self.clusterings else []
        places = np.linspace(0, len(numbers) - 1, min(N_PREDICTING - 1, len(numbers))).astype(int)
        return [self.representative, *(self.samples[numbers[index]] for index in places.tolist())]

    def predictors(
        self, use_context: bool = True, names: Iterable[str] | None = None, samples: Sequence[Sample] | None = None
    ) -> Predictors:
        """Return an object for predictions, which stores all quantities that do not depend on documents.

        ``samples`` are the samples to use, by default :attr:`predicting_samples`, and ``names`` the contexts to use, by
        default all contexts.
        """
        from mc2core.posterior.predicting import Predictors

        samples = self.predicting_samples if samples is None else samples
        used = list(self.families if names is None else names) if use_context else []
        return Predictors(samples, [{name: self._natural(sample, name) for name in used} for sample in samples])

    def predict_context(
        self, corpus: Corpus, name: str, use_context: bool = True, threads: int = 1, progress: bool | None = None
    ) -> PredictedNames | PredictedNumbers | PredictedVectors:
        """Predict the context ``name`` of documents from their words and other contexts.

        The prediction is averaged over all samples (:mod:`mc2core.posterior.contexts`). Values of this context in
        ``corpus`` are ignored and may be absent. Predictions for fitted documents depend on their own values, because
        these values influenced the parameters of the clusters.

        Parameters
        ----------
        corpus, use_context, threads, progress
            As in :meth:`predict_proba`.
        name : str
            Name of a context of the fit.

        Raises
        ------
        ValueError
            If the fit has no such context, or if the corpus does not match the posterior.
        """
        from mc2core.posterior.contexts import PredictedNames

        other_names, predicted = self.families.keys() - {name}, self.predictive(name, self.samples)
        stacked = self._stacked_to_predict(corpus, use_context, other_names)
        with showing(progress), work(f"predicting {name}"):
            shares = self.predictors(use_context, other_names, self.samples)(corpus, stacked, threads).shares
        if isinstance(predicted, PredictedNames):
            return replace(predicted, shares=shares)
        return replace(predicted, shares=shares, index=corpus.index)

    def predictive(self, name: str, samples: Sequence[Sample]) -> PredictedNames | PredictedNumbers | PredictedVectors:
        """Return the predictive distribution of the context ``name`` in each cluster of each of ``samples``.

        Raises ValueError if the fit has no such context.
        """
        from mc2core.posterior.contexts import PredictedNames, PredictedNumbers, PredictedVectors

        natural = np.concatenate([self._natural(sample, name) for sample in samples])
        family, nobody = self.families[name], sp.csr_matrix((0, len(natural)))
        if isinstance(family, ScalarFamily):
            return PredictedNumbers(nobody, natural, family, self.units.get(name, (0.0, 1.0)))
        if isinstance(family, VectorFamily):
            return PredictedVectors(nobody, natural, family, self.units.get(name, (0.0, 1.0)))
        names = self.context_names.get(name) or placeholders(self.dimensions[name])
        return PredictedNames(names, nobody, family.mean(natural))

    def _stacked_to_predict(
        self, corpus: Corpus, use_context: bool = True, names: Iterable[str] | None = None
    ) -> StackedContexts | None:
        """Return the contexts used for prediction (all, or ``names``). Raises ValueError if the corpus does not match
        the posterior."""
        self.check_corpus(corpus)
        families = self.families if names is None else {name: self.families[name] for name in names}
        if not (use_context and families):
            return None
        try:
            return self.stacked(corpus, families)
        except ValueError as error:
            by_words = "use_context=False (mc2 clusters --no-context) predicts from words alone"
            raise ValueError(f"{error}; {by_words}") from error

    def log_likelihood(
        self, corpus: Corpus, estimator: str | None = None, seed: int = 0, threads: int = 1
    ) -> np.ndarray:
        """Return ln p(w_j) of each document, in nats, by an estimator of :mod:`mc2core.posterior.perplexity`.

        By default, ``estimator`` is ``marginal`` if all documents of a cluster have the same topic proportions, because
        ``marginal`` is then exact. Otherwise, the default is ``left_to_right``. For observations, the result is the log
        density in the original unit.
        """
        from mc2core.posterior import perplexity

        return perplexity.log_likelihood(corpus, self, estimator, seed, threads)

    def perplexity(
        self,
        corpus: Corpus,
        estimator: str | None = None,
        seed: int = 0,
        threads: int = 1,
        progress: bool | None = None,
    ) -> float:
        """Return the perplexity of the words, exp(-sum_j ln p(w_j) / sum_j N_j).

        A uniform model has perplexity V. ``estimator`` has the same values as in :meth:`log_likelihood`.
        """
        from mc2core.posterior import perplexity

        return perplexity.perplexity(corpus, self, estimator, seed, threads, progress)

    def log_density(
        self,
        corpus: Corpus,
        estimator: str | None = None,
        seed: int = 0,
        threads: int = 1,
        progress: bool | None = None,
    ) -> float:
        """Return the mean log density per observation, sum_j ln p(x_j) / sum_j N_j, in nats (higher is better).

        The density is per original unit of the observations. The arguments are the same as for :meth:`perplexity`.
        Raises ValueError for a corpus of words.
        """
        from mc2core.posterior import perplexity

        return perplexity.log_density(corpus, self, estimator, seed, threads, progress)

    # -- disk ----------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the posterior as one .npz file. An existing file is replaced only when the new file is complete."""
        storage.write_arrays(path, self.arrays())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the posterior as a dict of arrays, which can be saved to a file."""
        meta = {
            "format": FORMAT,
            "n_samples": len(self.samples),
            "families": {name: family_settings(family) for name, family in self.families.items()},
            "dimensions": self.dimensions,
            "vocabulary": self.vocabulary,
            "context_names": self.context_names,
            "units": {name: list(unit) for name, unit in self.units.items()},
            "provenance": self.provenance,
            "imported": self.imported,
        }
        arrays: dict[str, np.ndarray] = {"meta": np.array(json.dumps(meta))}
        for i, sample in enumerate(self.samples):
            arrays |= pack_sample(sample, f"{i}.")
        if self.hierarchy is not None:
            from mc2core.posterior.hierarchy import pack_hierarchy

            hierarchy = self.hierarchy
            while (earlier := getattr(hierarchy, "earlier", None)) is not None:
                hierarchy = earlier
            arrays |= pack_hierarchy(hierarchy)
        if self.added is not None:
            arrays |= self.added.arrays()
        if self.fingerprints is not None:
            arrays["fingerprints"] = self.fingerprints
        if self.reservoir is not None:
            from mc2core.corpus.reservoir import pack_reservoir

            arrays |= pack_reservoir(matching.in_units(self.reservoir, self.families, self.units))
        return arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read a saved posterior from its file or from the folder of its fit.

        Raises ValueError if the file is damaged, has been changed or has another format.
        """
        path = posterior_file(path)
        return cls.from_arrays(storage.read_arrays(path), path)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], path: str | os.PathLike[str]) -> Posterior:
        """Build a posterior from the result of :meth:`arrays`; error messages name ``path``."""
        from mc2core.corpus.reservoir import unpack_reservoir
        from mc2core.posterior.added import restored, stored_documents
        from mc2core.posterior.hierarchy import unpack_hierarchy

        try:
            meta = storage.parse_json(str(arrays["meta"]))
            storage.check_json(meta, _DESCRIBED)
            storage.check_format(meta["format"], FORMAT)
            _check_provenance(meta["provenance"], meta["n_samples"])
            dimensions = meta["dimensions"]
            sizes = {"V": len(meta["vocabulary"]), "D": sum(dimensions.values())}
            samples = []
            for i in range(meta["n_samples"]):
                samples.append(unpack_sample(arrays, f"{i}.", sizes))
                sizes["J"] = len(samples[0].cluster)
            families = {name: family_from_settings(one) for name, one in meta["families"].items()}
            if "fingerprints" in arrays:
                storage.check_arrays(arrays, {"fingerprints": storage.Stored("i", "N")}, {})
            posterior = cls(
                samples,
                families,
                **{name: meta.get(name) for name in _STORED},
                fingerprints=arrays.get("fingerprints"),
            )
            lengths = posterior.vector_lengths
            posterior.units = {name: check_unit(unit, lengths.get(name)) for name, unit in meta["units"].items()}
            columns = {name: dimensions[name] if one.kind == "counts" else None for name, one in families.items()}
            if (sample := unpack_reservoir(arrays, sizes["V"], columns)) is not None:
                sample.units = posterior.units
                posterior.reservoir = sample
            posterior.hierarchy = unpack_hierarchy(arrays, stored_documents(arrays, sizes.get("J", 0)))
            if posterior.hierarchy is not None:
                posterior.hierarchy = replace(posterior.hierarchy, samples=posterior.clusterings)
            return restored(posterior, arrays)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved posterior: {error}") from error


def _check_provenance(provenance: Mapping[str, Any], n_samples: int) -> None:
    """Raise ValueError if the provenance of a saved posterior has a wrong form."""
    stream = provenance.get("stream", {"fitted": {}, "updates": []})
    updates, chains = stream["updates"], provenance.get("chains", [n_samples])
    numbers = [one[name] for one in updates for name in (*_COUNTS_OF_UPDATE, "log_evidence")]
    numbers += [stream["fitted"][name] for name in ("tokens", "log_evidence") if updates]
    stuck = provenance.get("stuck", [])
    integers = [provenance.get("seed", 0), provenance.get("iterations", 0), provenance.get("thin", 1), *chains, *stuck]
    texts = [provenance[part]["name"] for part in ("model", "engine") if part in provenance]
    texts += [provenance.get("corpus", ""), *(one["file"] for one in updates)]
    if not (
        all(isinstance(one, int | float | None) for one in numbers)
        and all(isinstance(one, int) and one >= 0 for one in integers)
        and all(isinstance(one, str) for one in texts)
        and sum(chains) == n_samples
        and len(set(stuck)) < len(chains)
    ):
        raise ValueError("the provenance of its fit is damaged")
