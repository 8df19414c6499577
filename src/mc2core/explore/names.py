"""Read user-given names of clusters and topics from a file, which may belong to another fit."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from mc2core.explore import clusters, topics
from mc2core.explore.description import Description
from mc2core.explore.words import NAMED

MIN_OVERLAP = 0.5
"""Smallest share of common words at which a name is transferred to a cluster or topic of another fit."""
logger = logging.getLogger(__name__)


def with_names(description: Description, table: pd.DataFrame) -> Description:
    """Return the description with the names of a file (:func:`mc2core.explore.words.read_names`).

    The file contains the words of each named cluster and topic. A name is given to the topic, or to the cluster of the
    same clustering, that has most of these words. A name is left out if no cluster or topic has at least the share
    MIN_OVERLAP of its words. Moved and omitted names are logged and shown in the report. If the file has no words,
    names are given by number.

    Raises ValueError if a cluster or topic that is named by number does not exist.
    """
    names: dict[str, dict[int, str]] = {kind: {} for kind in NAMED}
    notes: list[str] = []
    if not {"level", "default", "words"} <= set(table):
        notes = ["the file of names has no columns level, default and words, so names are given by number"]
        for kind, part in table.groupby("of"):
            names[str(kind)] = dict(zip(part["number"], part["name"], strict=True))
    else:
        table = table[table["name"] != table["default"]]
        current = pd.concat([clusters.names(description), topics.names(description)])
        for kind in NAMED:
            numbers = _numbers_of(table[table["of"] == kind], current[current["of"] == kind])
            for row, number in zip(table[table["of"] == kind].itertuples(), numbers, strict=True):
                subject, same_kind = f"the name {row.name!r} of {kind} {row.number}", "cluster of the same clustering"
                if number:
                    names[kind][number] = str(row.name)
                if not number:
                    whose = same_kind if kind == "cluster" else kind
                    notes.append(f"{subject} is left out: no {whose} in this fit has half of its words ({row.words})")
                elif number != row.number:
                    notes.append(f"{subject} has moved to {kind} {number}, which has most of its words")
    for note in notes:
        logger.warning(note)
    return description.named(names, notes)


def _numbers_of(table: pd.DataFrame, current: pd.DataFrame) -> list[int]:
    """Return the number of the cluster or topic that is matched to each row of ``table``; 0 without a match."""
    overlap = np.array([[_overlap(row, one) for one in current.itertuples()] for row in table.itertuples()])
    numbers = np.zeros(len(table), np.int64)
    if overlap.size:
        rows, columns = linear_sum_assignment(overlap, maximize=True)
        is_found = overlap[rows, columns] >= MIN_OVERLAP
        numbers[rows[is_found]] = current["number"].to_numpy()[columns[is_found]]
    return [int(number) for number in numbers]


def _overlap(row: Any, current: Any) -> float:
    """Return the share of words that two rows have in common, plus a small bonus if their cluster or topic numbers are
    equal; 0 for clusters of different clusterings."""
    words, current_words = row.words.split(), current.words.split()
    if row.level != current.level:
        return 0.0
    is_same = row.words == current.words and (words or row.default == current.default)
    share = 1.0 if is_same else len(set(words) & set(current_words)) / max(len(words), len(current_words), 1)
    return share + 1e-6 * (row.number == current.number)
