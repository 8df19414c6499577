"""Contexts of documents as predicted by their clusters, for the HTML report."""

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
_CELLS = 1 << 24  # of tables of clusters by names, over samples


def predictions(description: Description, rows: np.ndarray) -> dict[str, dict[str, Any]]:
    """Return the predictions of each context of the model, except vectors, for the documents ``rows`` (n,).

    For documents of the fit, predictions are averaged over their clusters in at most N_SAMPLES samples; for others,
    over the clusters of the representative, by their probabilities. Fitted documents have influenced their own
    predictions. A prediction that several documents share is stored once. For each context, ``of`` (n,) has the number
    of each document's prediction. A prediction has ``columns`` and ``probability`` of the N_NAMES likeliest ``names``,
    or ``mean``, ``low`` and ``high`` (the central 90 % interval).
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
    """Return samples, (n', C) CSR weights of their clusters, and (n,) the row of each document in it.

    The clusters of all samples are columns next to each other. Documents in the same clusters share a row.
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
