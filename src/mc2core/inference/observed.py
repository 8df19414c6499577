"""Observations of a corpus, standardised for their family or quantised into words, as the engines use them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.families.base import ContentFamily
from mc2core.families.contents import log_gammas_of
from mc2core.inference.seeding import cluster_rows

# distance of the plane of observations from the origin in spherical k-means, relative to sqrt(dimensions)
_FAR = 10.0


@dataclass(frozen=True)
class ObservedValues:
    """Observations of a corpus in the unit of their family, in which the prior shrinks topics to the overall mean.

    Attributes
    ----------
    family : ContentFamily
        Family of the observations.
    values : (N, D) float64
        Observations in the unit of the family.
    centre, scale : (D,) float64
        Centre and scale by which observations x were standardised: ``values`` = (x - centre) / scale. For counts,
        ``values`` = x, and scale is their mean.
    log_gammas : (N + D + 1,) float64
        ln G(a0 + i / 2) for Gaussian families; empty for other families.
    """

    family: ContentFamily
    values: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    log_gammas: np.ndarray

    @classmethod
    def from_corpus(cls, corpus: Corpus, family: ContentFamily) -> Self:
        """Convert the observations of ``corpus``; raise ValueError if one is outside the domain of ``family``."""
        table = np.asarray(corpus.observations)
        centre, scale = family.unit(table)
        values = family.in_unit(table, centre, scale)
        try:
            family.check(values)
        except ValueError as error:
            raise ValueError(f"observations: {str(error).replace('document', 'observation')}") from error
        return cls(family, values, centre, scale, log_gammas_of(family, values.shape))

    def start(self, n_topics: int, rng: np.random.Generator) -> np.ndarray:
        """Return starting topics of the observations by k-means++ and k-means, (N,) int32.

        The observations are placed in a plane far from the origin and scaled to unit length. Spherical k-means of these
        directions then approximates Euclidean k-means of the observations.
        """
        features = self.family.features(self.values)
        plane = np.full((len(features), 1), _FAR * np.sqrt(features.shape[1]))
        rows = np.hstack([features, plane])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return cluster_rows(sp.csr_matrix(rows), n_topics, rng).astype(np.int32)


def quantised(corpus: Corpus, topic: np.ndarray) -> Corpus:
    """Return a corpus whose words are the starting topics of the observations, (N,) int32."""
    counts = sp.csr_matrix(
        (np.ones(len(topic), np.int32), topic.copy(), np.array(corpus.content.indptr)),  # sorted in place below
        shape=(corpus.n_documents, int(topic.max(initial=0)) + 1),
    )
    counts.sum_duplicates()
    seen = copy.copy(corpus)
    seen.content, seen.observations, seen.content_kind = counts, None, "words"
    return seen
