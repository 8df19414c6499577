"""Names that someone gave to clusters and topics, taken from a file that may be of another fit."""

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
"""Share of the words of a name that a cluster or topic of another fit must have, to take over the name."""
logger = logging.getLogger(__name__)


def with_names(description: Description, given: pd.DataFrame) -> Description:
    """Return the description with the names of a file (:func:`mc2core.explore.words.read_names`).

    The file holds the words of each named cluster and topic. If the file belongs to another fit, a name moves to the
    cluster (of the same clustering) or topic that has most of these words. It is left out if none has MIN_OVERLAP of
    them. Both are logged, and shown in the report. A file without words gives names by number.

    Raises ValueError if a cluster or topic that is named by number does not exist.
    """
    names: dict[str, dict[int, str]] = {what: {} for what in NAMED}
    notes: list[str] = []
    if not {"level", "default", "words"} <= set(given):
        notes = ["the file of names has no columns level, default and words, so names are given by number"]
        for what, part in given.groupby("of"):
            names[str(what)] = dict(zip(part["number"], part["name"], strict=True))
    else:
        given = given[given["name"] != given["default"]]
        known = pd.concat([clusters.names(description), topics.names(description)])
        for what in NAMED:
            found = _numbers_of(given[given["of"] == what], known[known["of"] == what])
            for row, number in zip(given[given["of"] == what].itertuples(), found, strict=True):
                said, kind = f"the name {row.name!r} of {what} {row.number}", "cluster of the same clustering"
                if number:
                    names[what][number] = str(row.name)
                if not number:
                    whose = kind if what == "cluster" else what
                    notes.append(f"{said} is left out: no {whose} in this fit has half of its words ({row.words})")
                elif number != row.number:
                    notes.append(f"{said} has moved to {what} {number}, which has most of its words")
    for note in notes:
        logger.warning(note)
    return description.named(names, notes)


def _numbers_of(given: pd.DataFrame, known: pd.DataFrame) -> list[int]:
    """Return the number of the cluster or topic of the fit for each row of a file, each at most once; 0 for none."""
    overlap = np.array([[_overlap(row, one) for one in known.itertuples()] for row in given.itertuples()])
    numbers = np.zeros(len(given), np.int64)
    if overlap.size:
        rows, columns = linear_sum_assignment(overlap, maximize=True)
        is_found = overlap[rows, columns] >= MIN_OVERLAP
        numbers[rows[is_found]] = known["number"].to_numpy()[columns[is_found]]
    return [int(number) for number in numbers]


def _overlap(row: Any, known: Any) -> float:
    """Return the share of common words, slightly increased if the numbers are equal."""
    words, others = row.words.split(), known.words.split()
    if row.level != known.level:
        return 0.0
    same = row.words == known.words and (words or row.default == known.default)
    share = 1.0 if same else len(set(words) & set(others)) / max(len(words), len(others), 1)
    return share + 1e-6 * (row.number == known.number)
