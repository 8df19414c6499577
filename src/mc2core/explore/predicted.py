"""Contexts of documents predicted from their clusters, for the HTML report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.explore.description import Description, chosen_samples
from mc2core.posterior.contexts import PredictedNames, PredictedNumbers
from mc2core.posterior.sample import Sample

N_NAMES = 3
"""Number of predicted names of a context per document."""
_CELLS = 1 << 24  # largest number of cells of the tables of clusters by names of all samples


def predictions(description: Description, rows: np.ndarray) -> dict[str, dict[str, Any]]:
    """Return predictions of each context of the model, except vectors, for the documents ``rows`` (n,).

    The prediction for a fitted document is averaged over its clusters in at most N_SAMPLES samples. The prediction for
    another document is averaged over the clusters of the representative, weighted by their probabilities. Fitted
    documents have influenced their own predictions.

    A prediction that several documents share is stored once. The entry of a context has ``of`` (n,), the index of each
    document's prediction. Predictions of names have ``columns`` and ``probability`` of the N_NAMES likeliest ``names``.
    Predictions of numbers have ``mean``, ``low`` and ``high`` (the central 90 % interval).
    """
    posterior = description.posterior
    kinds = {name: kind for name, kind in sorted(posterior.context_kinds.items()) if kind != "vector"}
    if not kinds or not len(rows):
        return {}
    samples, shares, of = _clusters(description, rows)
    tables: dict[str, dict[str, Any]] = {}
    for name in kinds:
        n_samples = max(1, _CELLS // (posterior.dimensions[name] * max(one.n_clusters for one in samples)))
        used = samples[:n_samples]
        part = shares[:, : sum(one.n_clusters for one in used)]
        part = sp.csr_matrix(sp.diags(1.0 / np.asarray(part.sum(axis=1)).ravel()) @ part)
        predicted = replace(posterior.predictive(name, used), shares=part)
        tables[name] = {"of": of}
        if isinstance(predicted, PredictedNames):
            columns, probability = predicted.ranking(N_NAMES)
            tables[name] |= {"columns": columns, "names": predicted.names, "probability": probability}
        elif isinstance(predicted, PredictedNumbers):
            low, high = predicted.interval().T
            tables[name] |= {"mean": predicted.mean, "low": low, "high": high}
    return tables


def _clusters(description: Description, rows: np.ndarray) -> tuple[list[Sample], sp.csr_matrix, np.ndarray]:
    """Return samples, the weights of their clusters, (n', C) CSR, and the row of each document in the weights, (n,).

    The C columns are the clusters of all samples. Documents in the same clusters share a row.
    """
    posterior = description.posterior
    samples = [posterior.samples[number] for number in chosen_samples(posterior)] or [posterior.representative]
    if not posterior.was_fitted_on(description.corpus) or any((one.cluster[rows] < 0).any() for one in samples):
        return [posterior.representative], sp.csr_matrix(description.probability[rows]), np.arange(len(rows))
    table = np.stack([one.cluster[rows] for one in samples], axis=1)
    sets, of = np.unique(table, axis=0, return_inverse=True)
    offsets = np.cumsum([0, *(one.n_clusters for one in samples)])
    columns, start = (sets + offsets[:-1]).ravel(), np.arange(len(sets) + 1) * len(samples)
    weights = sp.csr_matrix((np.ones(len(columns)), columns, start), shape=(len(sets), offsets[-1]))
    return samples, weights, of.ravel()
