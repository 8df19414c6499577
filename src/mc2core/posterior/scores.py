"""Scores of a posterior: numbers of clusters and topics, held-out perplexity, and agreement with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mc2core.corpus import Corpus
from mc2core.posterior import Posterior, clustering, perplexity


def evaluate(
    posterior: Posterior, train: Corpus, test: Corpus | None, estimators: Sequence[str] = ("marginal",), seed: int = 0
) -> dict[str, Any]:
    """Return scores of a posterior by name: numbers of clusters and topics, held-out perplexity, agreement with labels.

    ``clusters`` and ``topics`` are the numbers in use, averaged over samples; ``clusters`` is None for HDP.
    ``perplexity`` has the perplexity of ``test`` by each estimator of :func:`estimators_of`, or None without ``test``.
    ``estimator`` is the name of the first estimator. If ``marginal`` is the first of ``estimators``, the first
    perplexity is computed from p(words of a document) under the model, so that methods can be compared. If ``train``
    has labels, they are compared with :attr:`Posterior.cluster`, which has ``scored_clusters`` clusters.

    Raises ValueError if words or scored contexts do not match the posterior, or if ``train`` is not the fitted corpus.
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
    posterior: Posterior, corpus: Corpus, threads: int = 1, cuts: Sequence[int | str] = ("all",)
) -> dict[str, Any]:
    """Return the agreement with labels of the clusters of fitted or new documents, for each cut.

    The clusters are assigned by :meth:`Posterior.assign`. The result is empty without labels, or if each document is
    its own cluster (HDP). ``threads`` is as in :meth:`Posterior.predict_proba`.
    """
    if corpus.labels is None or posterior.samples[0].documents_are_clusters:
        return {}
    # contexts are used only if the corpus has all of them
    has_contexts = all(name in corpus.contexts for name in posterior.families)
    agreement: dict[str, Any] = {}
    for cut in cuts:
        cluster = posterior.assign(corpus, has_contexts, threads, cut=cut)[0]
        agreement[str(cut)] = {"clusters": len(np.unique(cluster))} | agreement_with(corpus.labels, cluster)
    return {"agreement": agreement}


def estimators_of(posterior: Posterior, asked: Sequence[str]) -> list[str]:
    """Return the estimators in ``asked`` that suit a posterior, with replacements for estimators that do not.

    With a document level and for admixtures (HDP, LDA), ``marginal`` and ``context`` are replaced by ``left_to_right``,
    an unbiased estimator of p(words of a document). ``icml14`` is then left out, because it assumes that documents have
    the topic proportions of their cluster.
    """
    suited = perplexity.suited(posterior)
    if suited == "marginal":
        return list(asked)
    names = [suited if name in ("marginal", "context") else name for name in asked]
    return [name for name in dict.fromkeys(names) if name != "icml14"]


def solutions_of(scores: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the scored clusterings in a file of scores, each with its number of clusters and agreement with labels."""
    alone = {**scores, "clusters": scores.get("scored_clusters", scores.get("clusters"))}
    return scores.get("solutions", [alone])


def agreement_with(labels: Any, cluster: np.ndarray) -> dict[str, float]:
    """Return the agreement of ``cluster`` (J,) with the labels of a corpus (:func:`agreement`).

    If documents have several labels (J, L), only the extended NMI over the labelled documents is returned.
    """
    if isinstance(labels, np.ndarray):
        return agreement(labels, cluster)
    labelled = np.flatnonzero(np.diff(labels.indptr))
    return {"extended_nmi": clustering.extended_nmi(labels[labelled], cluster[labelled])} if len(labelled) else {}


def agreement(labels: np.ndarray, cluster: np.ndarray) -> dict[str, float]:
    """Return the clustering scores of docs/model.md, section 5, of ``cluster`` (J,) given true ``labels`` (J,)."""
    return {
        "purity": clustering.purity(labels, cluster),
        "nmi": clustering.nmi(labels, cluster),
        "rand_index": clustering.rand_index(labels, cluster),
        "f_score": clustering.f_score(labels, cluster),
        "ari": clustering.adjusted_rand_index(labels, cluster),
        "vi_bits": clustering.variation_of_information(labels, cluster),
    }
