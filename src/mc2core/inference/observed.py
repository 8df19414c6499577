"""Observations in place of words, as every engine takes them: in the unit of their family, and as words."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.families.contents import log_gammas_of
from mc2core.families.vectors import VectorFamily
from mc2core.inference.seeding import cluster_rows

# how far from 0, in units of a standardised observation's length, a plane is that has k-means of directions on it
_FAR = 10.0


@dataclass(frozen=True)
class ObservedValues:
    """A corpus' observations as topics emit them, in the unit of their family, so that its prior shrinks topics to
    what all of them are.

    Attributes
    ----------
    family : VectorFamily
    values : (N, D) float64
    centre, scale : (D,) float64
        Of that unit: ``VectorFamily.unit``.
    log_gammas : (N + D + 1,) float64
        ln G(a0 + i / 2), of Gaussian families; empty of others.
    """

    family: VectorFamily
    values: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    log_gammas: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus, family: VectorFamily) -> Self:
        """ValueError for an observation that the family does not take."""
        table = np.asarray(corpus.observations)
        centre, scale = family.unit(table)
        values = family.in_unit(table, centre, scale)
        try:
            family.check(values)
        except ValueError as error:
            raise ValueError(f"observations: {str(error).replace('document', 'observation')}") from error
        return cls(family, values, centre, scale, log_gammas_of(family, values.shape))

    def start(self, n_topics: int, rng: np.random.Generator) -> np.ndarray:
        """(N,) int32 topics to start from: k-means++ and k-means.

        Of directions to the observations from far below a plane that holds them, which differ as these do.
        """
        features = self.family.features(self.values)
        plane = np.full((len(features), 1), _FAR * np.sqrt(features.shape[1]))
        rows = np.hstack([features, plane])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return cluster_rows(sp.csr_matrix(rows), n_topics, rng).astype(np.int32)


def quantised(corpus: Corpus, topic: np.ndarray) -> Corpus:
    """The corpus whose words are the topics, (N,) int32, that observations start in."""
    counts = sp.csr_matrix(
        (np.ones(len(topic), np.int32), topic.copy(), np.array(corpus.content.indptr)),  # sorted in place below
        shape=(corpus.n_documents, int(topic.max(initial=0)) + 1),
    )
    counts.sum_duplicates()
    seen = copy.copy(corpus)
    seen.content, seen.observations, seen.content_kind = counts, None, "words"
    return seen
