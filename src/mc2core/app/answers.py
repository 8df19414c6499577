"""Output of ``mc2 predict``: predicted cluster, topics and missing contexts of each document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import projection_of
from mc2core.corpus.matching import in_units
from mc2core.families.base import OutsideDomain
from mc2core.posterior import Posterior
from mc2core.posterior.contexts import PredictedNames, PredictedVectors
from mc2core.posterior.proportions import DocumentTopics

_DIGITS = 6
_OF_NUMBER = "mean", "low", "high"
_NONE = np.zeros(0, np.int64)


class Answers:
    """Computes predictions for documents. Quantities that do not depend on the documents are computed once.

    Probabilities of clusters and contexts are averaged over samples. Topics are those of the representative sample. The
    clusters are the recommended clusters, or all clusters of the fit if the posterior has no hierarchy. ``top`` is the
    largest number of topics per document and of names per context.
    """

    def __init__(self, posterior: Posterior, top: int, threads: int) -> None:
        sample = posterior.representative
        if sample.documents_are_clusters:
            raise ValueError("this posterior has no clusters to predict: each document is its own cluster")
        self._posterior, self._top, self._threads = posterior, top, threads
        self._predict, self._topics = posterior.predictors(), DocumentTopics(sample)
        self._contexts = {name: posterior.predictive(name, self._predict.samples) for name in posterior.families}
        projection = projection_of(posterior.imported)
        self._embedding_name = None if projection is None else projection.name
        self._n_clusters, self._cluster = sample.n_clusters, posterior.by_size[posterior.cluster]
        if (hierarchy := posterior.hierarchy) is not None:
            self._n_clusters, self._cluster = hierarchy.recommended, hierarchy.cut(hierarchy.recommended)

    def outside(self, corpus: Corpus) -> dict[int, tuple[str, str]]:
        """Return the documents with invalid context values: the context and the reason, by row number."""
        reasons: dict[int, tuple[str, str]] = {}
        for name, family in self._posterior.families.items():
            rows, values = np.arange(corpus.n_documents), corpus.contexts[name]
            mean, sd = self._posterior.units.get(name, (0.0, 1.0))
            if not sp.issparse(values):  # values that overflow in the units of the fit
                with np.errstate(over="ignore"):
                    is_inf = np.isinf((np.asarray(values) - mean) / sd).reshape(len(rows), -1).any(axis=1)
                reasons |= {j: (name, _explain(values[j], mean, sd)) for j in rows[is_inf].tolist() if j not in reasons}
                rows = rows[~is_inf]
            context = in_units(corpus.subset(rows), [name], self._posterior.units).contexts[name]
            while len(rows):
                try:
                    family.statistics(context)
                    break
                except OutsideDomain as error:
                    j = int(rows[error.document])
                    is_far = np.ndim(values) == 1 and name in self._posterior.units
                    reasons.setdefault(j, (name, _explain(values[j], mean, sd) if is_far else error.why))
                    valid = np.delete(np.arange(len(rows)), error.document)
                    rows, context = rows[valid], context[valid]
        return reasons

    def of(self, corpus: Corpus) -> Iterator[dict[str, Any]]:
        """Yield a dict of predictions for each document."""
        stacked = self._posterior.stacked(corpus) if self._contexts else None
        clusters = self._predict(corpus, stacked, self._threads)
        tokens = self._topics.tokens(corpus, clusters.first().argmax(axis=1), self._threads)
        lengths, contexts = corpus.document_lengths.tolist(), self._of_contexts(corpus, clusters.shares)
        probability = clusters.at(self._cluster, self._n_clusters)
        cluster = probability.argmax(axis=1)
        for j, (k, length) in enumerate(zip(cluster.tolist(), lengths, strict=True)):
            part = slice(tokens.indptr[j], tokens.indptr[j + 1])
            order = np.argsort(-tokens.data[part], kind="stable")[: self._top] if length else _NONE
            topics = zip(tokens.indices[part][order].tolist(), tokens.data[part][order].tolist(), strict=True)
            entry: dict[str, Any] = {"cluster": k + 1, "probability": round(float(probability[j, k]), _DIGITS)}
            entry |= {"tokens": length}
            entry["topics"] = [{"topic": topic + 1, "share": round(share / length, _DIGITS)} for topic, share in topics]
            yield entry | ({"contexts": contexts[j]} if self._contexts else {})

    def _of_contexts(self, corpus: Corpus, shares: sp.csr_matrix) -> list[dict[str, Any]]:
        """Return predictions of missing contexts for each document, by context."""
        answers: list[dict[str, Any]] = [{} for _ in range(corpus.n_documents)]
        for name, predictive in self._contexts.items():
            documents = np.flatnonzero(corpus.missing(name))
            if not len(documents) or name == self._embedding_name:
                continue
            prediction = replace(predictive, shares=shares[documents])
            if isinstance(prediction, PredictedNames):
                columns, shares = prediction.ranking(self._top)
                for j, row, of_names in zip(documents, columns.tolist(), shares.tolist(), strict=True):
                    several = zip(row, of_names, strict=True)
                    answers[j][name] = [
                        {"name": prediction.names[one], "probability": round(share, _DIGITS)} for one, share in several
                    ]
            elif isinstance(prediction, PredictedVectors):
                for j, vector in zip(documents, prediction.mean.tolist(), strict=True):
                    answers[j][name] = [float(f"{one:.6g}") for one in vector]
            else:
                numbers = np.column_stack([prediction.mean, prediction.interval()])
                for j, row in zip(documents, numbers.tolist(), strict=True):
                    answers[j][name] = {part: float(f"{one:.6g}") for part, one in zip(_OF_NUMBER, row, strict=True)}
        return answers


def _explain(value: Any, mean: Any, sd: Any) -> str:
    """Return the reason why a number of a document cannot be scored."""
    if np.ndim(value):
        return "holds a number that is too large"
    return f"holds {value:g}, which is too far from the numbers of the fit (mean {mean:g}, standard deviation {sd:g})"
