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
    """Return scores of a posterior: sizes, held-out perplexity (None without a test part), and agreement with labels.

    Perplexities are by the estimators of :func:`estimators_of`, and ``estimator`` is the name of the first. If
    ``marginal`` comes first in ``estimators``, this is p(words of a document) under the model itself, so that methods
    can be compared. Clusters and topics are the numbers in use, averaged over samples; clusters is None if each
    document is one (HDP). Agreement is that of :attr:`Posterior.cluster`, with ``scored_clusters`` clusters, with the
    labels of the train part, if there are any.

    Raises ValueError if words or scored contexts of a part do not match the posterior, or if the train part is not the
    fitted one.
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
    """Return the agreement of clusters of fitted or new documents (:meth:`Posterior.assign`) with labels, per cut.

    It is empty without labels, or if each document is a cluster (HDP). ``threads`` is as in
    :meth:`Posterior.predict_proba`.
    """
    if corpus.labels is None or posterior.samples[0].documents_are_clusters:
        return {}
    # contexts that the corpus lacks are not scored
    has_contexts = all(name in corpus.contexts for name in posterior.families)
    agreement: dict[str, Any] = {}
    for cut in cuts:
        cluster = posterior.assign(corpus, has_contexts, threads, cut=cut)[0]
        agreement[str(cut)] = {"clusters": len(np.unique(cluster))} | agreement_with(corpus.labels, cluster)
    return {"agreement": agreement}


def estimators_of(posterior: Posterior, asked: Sequence[str]) -> list[str]:
    """Return the estimators in ``asked`` that suit a posterior.

    With a document level and for admixtures (HDP, LDA), ``marginal`` and ``context`` are replaced by ``left_to_right``,
    which is unbiased for the same quantity, p(words of a document). ``icml14``, in which a document has the proportions
    of its cluster, is left out.
    """
    suited = perplexity.suited(posterior)
    if suited == "marginal":
        return list(asked)
    names = [suited if name in ("marginal", "context") else name for name in asked]
    return [name for name in dict.fromkeys(names) if name != "icml14"]


def solutions_of(scores: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the clusterings in a file of scores, each with its number of clusters and its agreement, if any."""
    alone = {**scores, "clusters": scores.get("scored_clusters", scores.get("clusters"))}
    return scores.get("solutions", [alone])


def agreement_with(labels: Any, cluster: np.ndarray) -> dict[str, float]:
    """Return :func:`agreement` with the labels of a corpus.

    If documents have several labels (J, L), it is only the extended NMI, over the documents that have labels.
    """
    if isinstance(labels, np.ndarray):
        return agreement(labels, cluster)
    labelled = np.flatnonzero(np.diff(labels.indptr))
    return {"extended_nmi": clustering.extended_nmi(labels[labelled], cluster[labelled])} if len(labelled) else {}


def agreement(labels: np.ndarray, cluster: np.ndarray) -> dict[str, float]:
    """Return the clustering scores of docs/model.md, section 5, for (J,) ``cluster`` and (J,) true ``labels``."""
    return {
        "purity": clustering.purity(labels, cluster),
        "nmi": clustering.nmi(labels, cluster),
        "rand_index": clustering.rand_index(labels, cluster),
        "f_score": clustering.f_score(labels, cluster),
        "ari": clustering.adjusted_rand_index(labels, cluster),
        "vi_bits": clustering.variation_of_information(labels, cluster),
    }
