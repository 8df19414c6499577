"""Agreement of samples: which clusters and topics also occur in the other samples of a posterior.

A node is a cluster of a described clustering (:class:`mc2core.explore.description.Description`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import counted
from mc2core.explore.description import Description, chosen_samples
from mc2core.families.contents import Contents
from mc2core.posterior import Posterior

MIN_JACCARD = 0.5
"""Smallest Jaccard index, corrected for chance, at which a node occurs in a sample (Hennig, 2007)."""
MIN_OVERLAP = 0.5
"""Smallest Bhattacharyya coefficient at which two topics of observations count as the same topic."""
N_COMPARED = 10
"""Number of likeliest words of a topic. A topic occurs in a sample if a topic of the sample has half of these words."""
_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


def found_clusters(description: Description) -> np.ndarray:
    """Return whether each node occurs in each sample of :attr:`Description.of_samples`, (S, nodes) bool.

    Clusters of a sample are united if more than half of their documents are in the node. The node occurs in the sample
    if the Jaccard index of the node and this union, corrected for chance, is at least MIN_JACCARD.
    """
    size, n = np.diff(description.documents_of.indptr), max(description.corpus.n_documents, 1)
    occurs = np.zeros((len(description.of_samples), len(size)), bool)
    for row, (members, share) in enumerate(description.of_samples):
        of_sample = np.asarray(members.sum(axis=0)).reshape(-1, 1)
        inside = share > 0.5
        shared, united = (of_sample * share * inside).sum(axis=0), (of_sample * inside).sum(axis=0)
        by_chance = size * united / n
        by_chance = by_chance / np.maximum(size + united - by_chance, 1.0)
        jaccard = shared / np.maximum(size + united - shared, 1.0)
        occurs[row] = jaccard - by_chance >= MIN_JACCARD * (1.0 - by_chance) - 1e-12
    return occurs


def certainty(description: Description) -> np.ndarray:
    """Return the certainty of each node, (nodes,).

    In a sample, some documents of a document's cluster are in the node. The certainty is the share of these documents,
    averaged over the documents of the node and over samples. The certainty is NaN if the posterior has one sample, or
    if the node has no documents.
    """
    size = np.diff(description.documents_of.indptr)
    sums = [
        np.asarray(description.documents_of.multiply((members @ share).T).sum(axis=1)).ravel()
        for members, share in description.of_samples
    ]
    sure = np.full(len(size), np.nan)
    if sums:
        np.divide(np.mean(sums, axis=0), size, where=size > 0, out=sure)
    return sure


def chains_of(description: Description, occurs: np.ndarray) -> np.ndarray:
    """Return the number of chains that contain each cluster or topic, (n,) int.

    A chain contains an item if the item occurs in more than half of its samples, by ``occurs`` (S, n) bool.
    """
    bounds = np.cumsum(description.posterior.provenance.get("chains", [len(description.posterior.samples)]))
    chain = np.searchsorted(bounds, chosen_samples(description.posterior), side="right")
    return sum((occurs[chain == one].mean(axis=0) > 0.5).astype(int) for one in np.unique(chain))


def n_chains(posterior: Posterior) -> int:
    """Return the number of chains of the posterior."""
    return max(len(posterior.provenance.get("chains", [])), 1)


def of_runs(posterior: Posterior, clusters: pd.DataFrame) -> str | None:
    """Return a phrase with the number of clusters that all chains found; None if the table has no column ``chains``."""
    if "chains" not in clusters:
        return None
    n = n_chains(posterior)
    sure = clusters[clusters["chains"] == n]
    runs, every = _NUMBERS.get(n, str(n)), "both" if n == 2 else f"all {_NUMBERS.get(n, str(n))}"
    return (
        f"{runs} runs from different starts: {len(sure)} of the {counted(len(clusters), 'clusters')} "
        f"({counted(int(sure['documents'].sum()), 'documents')}) were found in {every}"
    )


def found_topics(description: Description) -> np.ndarray:
    """Return whether each topic occurs in each sample, (S, M) bool.

    A topic occurs in a sample if a topic of the sample has at least half of its N_COMPARED likeliest words. For
    observations, a topic occurs if its overlap with a topic of the sample is at least MIN_OVERLAP.
    """
    posterior = description.posterior
    samples = chosen_samples(posterior)
    occurs = np.zeros((len(samples), posterior.representative.n_topics), bool)
    if not occurs.size:  # a fit to contexts only
        return occurs
    if posterior.contents is not None:
        for row, number in enumerate(samples):
            contents = posterior.samples[number].contents
            assert contents is not None  # all samples are of one kind
            occurs[row] = (_overlap(posterior.contents, contents) >= MIN_OVERLAP).any(axis=1)
        return occurs
    likeliest = _find_likeliest(posterior.representative.topic_words)
    for row, number in enumerate(samples):
        shared = likeliest @ _find_likeliest(posterior.samples[number].topic_words).T
        occurs[row] = 2 * np.asarray(shared.max(axis=1).todense()).ravel() >= np.asarray(likeliest.sum(axis=1)).ravel()
    return occurs


def _overlap(one: Contents, other: Contents) -> np.ndarray:
    """Return the Bhattacharyya coefficients of Gaussian topics with independent coordinates, (M, M') in [0, 1]."""
    log_overlap = np.zeros((len(one.mean), len(other.mean)))
    for mean, sd, of_other, sd_of_other in zip(one.mean.T, one.sd.T, other.mean.T, other.sd.T, strict=True):
        variances = sd[:, None] ** 2 + sd_of_other**2
        log_overlap += 0.5 * np.log(2.0 * sd[:, None] * sd_of_other / variances)
        log_overlap -= 0.25 * (mean[:, None] - of_other) ** 2 / variances
    return np.exp(log_overlap)


def _find_likeliest(topic_words: Any) -> sp.csr_matrix:
    """Return a table with ones at the N_COMPARED likeliest words of each topic, (M, V) CSR."""
    counts: Any = topic_words.tocsr() if sp.issparse(topic_words) else np.asarray(topic_words)
    rows, columns = [], []
    for topic in range(counts.shape[0]):
        row = counts[[topic]].toarray().ravel() if sp.issparse(counts) else counts[topic]
        best = np.lexsort((np.arange(len(row)), -row))[:N_COMPARED]
        best = best[row[best] > 0]
        rows += [topic] * len(best)
        columns += best.tolist()
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=counts.shape)
