"""Scores of a model: sizes, held-out perplexity, agreement with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mc2core.corpus import Corpus
from mc2core.model import Model, clustering


def evaluate(
    model: Model, train: Corpus, test: Corpus | None, estimators: Sequence[str] = ("marginal",), seed: int = 0
) -> dict[str, Any]:
    """Scores of a model: sizes, held-out perplexity (None without a test part), agreement with labels.

    Clusters and topics are those in use, averaged over the samples kept; agreement is that of the last sample's
    clusters with the labels of the train part, where it has them.

    ValueError: a part whose words, or where they are scored contexts, are not the model's, or another train part.
    """
    model.check_fitted(train)
    scores: dict[str, Any] = {
        "clusters": float(np.mean([sample.n_clusters for sample in model.samples])),
        "topics": float(np.mean([sample.n_topics for sample in model.samples])),
        "samples": len(model.samples),
        "train_documents": train.n_documents,
        "test_documents": 0 if test is None else test.n_documents,
        "perplexity": {name: None if test is None else model.perplexity(test, name, seed) for name in estimators},
    }
    if train.labels is not None and isinstance(train.labels, np.ndarray):
        scores |= agreement(train.labels, model.last.cluster)
    return scores


def agreement(labels: np.ndarray, cluster: np.ndarray) -> dict[str, float]:
    """Clustering scores of docs/model.md, section 5 for (J,) ``cluster`` against (J,) true ``labels``."""
    return {
        "purity": clustering.purity(labels, cluster),
        "nmi": clustering.nmi(labels, cluster),
        "rand_index": clustering.rand_index(labels, cluster),
        "f_score": clustering.f_score(labels, cluster),
    }
