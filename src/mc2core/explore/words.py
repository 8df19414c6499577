"""Words and values that stand for a cluster or a topic: the likeliest, and those with the largest lift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

N_WORDS = 20
"""Words by probability, and as many by lift, in the tables of words."""
N_SHOWN = 10
"""Words in a row of the tables of clusters and topics."""


LEAST_TOKENS = 5
"""Expected tokens of a word below which its lift is chance."""


class Top(NamedTuple):
    """Columns that stand for a distribution: their numbers, probabilities, lifts, and places by both (0: first)."""

    column: np.ndarray
    probability: np.ndarray
    lift: np.ndarray
    by_probability: np.ndarray
    by_lift: np.ndarray


def often_enough(expected: np.ndarray) -> np.ndarray:
    """Of (D,) expected tokens: those of LEAST_TOKENS, or of a quarter of the commonest where that is less."""
    return expected >= min(LEAST_TOKENS, expected.max() / 4)


def top_of(probability: np.ndarray, base: np.ndarray, possible: np.ndarray, n: int = N_WORDS) -> Top:
    """The ``n`` likeliest of (D,) columns and the ``n`` with the largest lift, likeliest first.

    lift = probability / base, as of LDAvis (Sievert and Shirley, 2014); only ``possible`` (D,) columns count, such as
    those of :func:`often_enough`.
    """
    columns = np.flatnonzero(possible)
    p, lift = probability[columns], probability[columns] / base[columns]
    by_p, by_lift = np.lexsort((columns, -p)), np.lexsort((columns, -lift))
    place_p, place_lift = np.empty((2, len(columns)), np.int64)
    place_p[by_p], place_lift[by_lift] = np.arange(len(columns)), np.arange(len(columns))
    chosen = np.flatnonzero((place_p < n) | (place_lift < n))
    chosen = chosen[np.argsort(place_p[chosen])]
    return Top(columns[chosen], p[chosen], lift[chosen], place_p[chosen], place_lift[chosen])


def said(names: Sequence[str], top: Top, places: np.ndarray, n: int = N_SHOWN) -> str:
    """The first ``n`` names by some places, a space between."""
    order = np.argsort(places)[:n]
    return " ".join(names[top.column[one]] for one in order)


def words_table(what: str, parts: Sequence[tuple[int, Top]], names: Sequence[str]) -> pd.DataFrame:
    """A row for each column of each :class:`Top` of ``parts``, (number, top) each; places count from 1."""
    return pd.DataFrame(
        {
            what: np.repeat([number for number, _ in parts], [len(top.column) for _, top in parts]),
            "word": [names[column] for _, top in parts for column in top.column],
            "probability": np.concatenate([top.probability for _, top in parts]),
            "lift": np.concatenate([top.lift for _, top in parts]),
            "by_probability": np.concatenate([top.by_probability for _, top in parts]) + 1,
            "by_lift": np.concatenate([top.by_lift for _, top in parts]) + 1,
        }
    )
