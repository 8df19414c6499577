"""Scores of a posterior: sizes, held-out perplexity, agreement with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mc2core.corpus import Corpus
from mc2core.posterior import Posterior, clustering, perplexity


def evaluate(
    posterior: Posterior, train: Corpus, test: Corpus | None, estimators: Sequence[str] = ("marginal",), seed: int = 0
) -> dict[str, Any]:
    """Scores of a posterior: sizes, held-out perplexity (None without a test part), agreement with labels.

    Perplexity is that of :func:`estimators_of`; ``estimator`` names the first, which is p(words of a document) under
    the model itself where ``marginal`` comes first in ``estimators``: figures of several methods are then on one
    footing. Clusters and topics are those in use, averaged over the samples kept, and clusters None where each document
    is one (HDP); agreement is that of :attr:`Posterior.cluster`, ``scored_clusters`` clusters, with the labels of the
    train part, where it has them and clusters hold more than one document.

    ValueError: a part whose words, or where they are scored contexts, are not the posterior's, or another train part.
    """
    posterior.check_fitted(train)
    names, alone = estimators_of(posterior, estimators), posterior.samples[0].documents_are_clusters
    scores: dict[str, Any] = {
        "clusters": None if alone else float(np.mean([sample.n_clusters for sample in posterior.samples])),
        "topics": float(np.mean([sample.n_topics for sample in posterior.samples])),
        "samples": len(posterior.samples),
        "train_documents": train.n_documents,
        "test_documents": 0 if test is None else test.n_documents,
        "estimator": names[0] if names else None,
        "perplexity": {name: None if test is None else posterior.perplexity(test, name, seed) for name in names},
    }
    if train.labels is not None and not alone:
        cluster = posterior.cluster
        scores |= {"scored_clusters": len(np.unique(cluster))} | agreement_with(train.labels, cluster)
    return scores


def predicted_agreement(
    posterior: Posterior,
    corpus: Corpus,
    threads: int = 1,
    progress: bool | None = None,
    cuts: Sequence[int | str] = ("all",),
) -> dict[str, Any]:
    """Agreement of the clusters of documents, those of the fit or new ones (:meth:`Posterior.assign`), with their
    labels at each of the ``cuts``, by its name; ``{}`` without labels, or where each document is a cluster (HDP).
    ``threads`` and ``progress`` are those of :meth:`Posterior.predict_proba`.
    """
    if corpus.labels is None or posterior.samples[0].documents_are_clusters:
        return {}
    # contexts that the corpus lacks are none of what is judged by
    has_contexts = all(name in corpus.contexts for name in posterior.families)
    agreement: dict[str, Any] = {}
    for cut in cuts:
        cluster = posterior.assign(corpus, has_contexts, threads, progress, cut)[0]
        agreement[str(cut)] = {"clusters": len(np.unique(cluster))} | agreement_with(corpus.labels, cluster)
    return {"agreement": agreement}


def estimators_of(posterior: Posterior, asked: Sequence[str]) -> list[str]:
    """Those of the estimators asked for that suit a posterior.

    With a document level and of admixtures (HDP, LDA), ``marginal`` and ``context``, which weigh clusters
    of documents, are replaced by ``left_to_right``: it is unbiased for the same quantity, p(words of a document).
    ``icml14`` takes the proportions of a document from its cluster; it is left out for such posteriors.
    """
    suited = perplexity.suited(posterior)
    if suited == "marginal":
        return list(asked)
    names = [suited if name in ("marginal", "context") else name for name in asked]
    return [name for name in dict.fromkeys(names) if name != "icml14"]


def solutions_of(scores: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The clusterings that a file of scores tells of, one or several, each with its clusters and agreement, if any."""
    alone = {**scores, "clusters": scores.get("scored_clusters", scores.get("clusters"))}
    return scores.get("solutions", [alone])


def agreement_with(labels: Any, cluster: np.ndarray) -> dict[str, float]:
    """:func:`agreement` with labels of a corpus, one a document; with several of them (J, L), the extended NMI alone,
    of the documents that have any.
    """
    if isinstance(labels, np.ndarray):
        return agreement(labels, cluster)
    known = np.flatnonzero(np.diff(labels.indptr))
    return {"extended_nmi": clustering.extended_nmi(labels[known], cluster[known])} if len(known) else {}


def agreement(labels: np.ndarray, cluster: np.ndarray) -> dict[str, float]:
    """Clustering scores of docs/model.md, section 5 for (J,) ``cluster`` against (J,) true ``labels``."""
    return {
        "purity": clustering.purity(labels, cluster),
        "nmi": clustering.nmi(labels, cluster),
        "rand_index": clustering.rand_index(labels, cluster),
        "f_score": clustering.f_score(labels, cluster),
        "ari": clustering.adjusted_rand_index(labels, cluster),
        "vi_bits": clustering.variation_of_information(labels, cluster),
    }
