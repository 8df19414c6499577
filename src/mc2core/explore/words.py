"""Words that describe clusters and topics, and names of clusters and topics."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mc2core.base.records import delimiter_of

N_WORDS = 20
"""Number of the likeliest words, and of the most relevant words, in the tables of words."""
N_SHOWN = 10
"""Number of words per row in the tables of clusters and topics."""
N_NAME = 3
"""Number of words in a name."""
NAME_WEIGHT = 0.4
"""Exponent of the probability in the score by which words are chosen for names (docs/notes/names.md)."""
SHARED = 0.7
"""Ratio of the scores of a word in two clusters from which on the word does not distinguish the clusters."""
MIN_LIFT = 1.1
"""Lift above which a word is distinctive."""
WEIGHT = 0.3
"""Weight of the log probability in the relevance of a word; the log lift has 1 - WEIGHT (docs/notes/names.md)."""
MIN_TOKENS = 5
"""Smallest expected number of tokens of a word at which its lift is reliable."""
NAMED = ("cluster", "topic")
"""The parts of a fit that have names."""

_BLOCK = 64  # number of word distributions that are computed together

Names = Mapping[str, Mapping[int, str]]
"""Names given by the user, by kind ("cluster" or "topic") and by number in the tables."""


class Top(NamedTuple):
    """Top words of a distribution: columns, probabilities, lifts, and ranks (from 0) by probability and relevance."""

    column: np.ndarray
    probability: np.ndarray
    lift: np.ndarray
    by_probability: np.ndarray
    by_relevance: np.ndarray


class Emitted(NamedTuple):
    """Descriptions of all clusters or topics by words, or by observations (:mod:`mc2core.explore.numbers`).

    Attributes
    ----------
    names : list of str
        Default name of each cluster or topic.
    columns : dict
        Columns of the table of clusters or topics, by name.
    tables : dict of DataFrame
        Tables by name, with one row per cluster or topic and word (or coordinate of the observations).
    """

    names: list[str]
    columns: dict[str, Any]
    tables: dict[str, pd.DataFrame]


def of_words(
    kind: str,
    tops: Sequence[Top],
    vocabulary: Sequence[str],
    siblings: Sequence[Sequence[int]] = (),
    phrases: Mapping[str, str] = MappingProxyType({}),
) -> Emitted:
    """Return names and words of all clusters or all topics (``kind``), in the order of ``tops``.

    ``siblings`` are groups of positions in ``tops``, such as the clusters of a cut. A word that is distinctive of
    several siblings is used in a name only if no other distinctive word is left. If siblings have equal names, further
    words are appended until the names differ.
    """
    columns = {
        "words": [join_names(vocabulary, top, top.by_probability) for top in tops],
        "distinctive_words": [join_names(vocabulary, top, top.by_relevance) for top in tops],
    }
    table = words_table(kind, list(enumerate(tops, start=1)), vocabulary)
    shared: dict[int, set[int]] = {}
    for group in siblings:
        shared |= _find_shared(dict(zip(group, (tops[one] for one in group), strict=True)))

    def name_at(position: int, n: int = N_NAME) -> str:
        return name_of(vocabulary, tops[position], shared.get(position, set()), phrases, n)

    names = [name_at(position) for position in range(len(tops))]
    for group in siblings:
        for namesakes in with_same(group, names):
            for n in range(N_NAME + 1, 2 * N_NAME + 1):
                longer = [name_at(position, n) for position in namesakes]
                if len(set(longer)) == len(namesakes):
                    for position, name in zip(namesakes, longer, strict=True):
                        names[position] = name
                    break
    return Emitted(names, columns, {f"{kind}_words": table})


def with_same(group: Sequence[int], names: Sequence[str]) -> list[list[int]]:
    """Return a list of the members with each name that several members of the group have."""
    by_name: dict[str, list[int]] = {}
    for one in group:
        by_name.setdefault(names[one], []).append(one)
    return [members for members in by_name.values() if len(members) > 1]


def often_enough(expected: np.ndarray) -> np.ndarray:
    """Return whether each expected count is large enough for a reliable lift, (D,) bool.

    The bound is MIN_TOKENS, or a quarter of the largest count if this is smaller.
    """
    return expected >= min(MIN_TOKENS, expected.max() / 4)


def top_of(probability: np.ndarray, base: np.ndarray, possible: np.ndarray, n: int = N_WORDS) -> Top:
    """Return the ``n`` likeliest and the ``n`` most relevant of D columns, in order of decreasing probability.

    lift = probability / base, and relevance = WEIGHT * log probability + (1 - WEIGHT) * log lift, as in LDAvis (Sievert
    and Shirley, 2014). Columns with ``possible`` (D,) False are not considered (see :func:`often_enough`).
    """
    columns = np.flatnonzero(possible)
    p, lift = probability[columns], probability[columns] / base[columns]
    relevance = WEIGHT * np.log(p) + (1.0 - WEIGHT) * np.log(lift)
    by_p, by_relevance = np.lexsort((columns, -p)), np.lexsort((columns, -relevance))
    place_p, place_relevance = np.empty((2, len(columns)), np.int64)
    place_p[by_p], place_relevance[by_relevance] = np.arange(len(columns)), np.arange(len(columns))
    chosen = np.flatnonzero((place_p < n) | (place_relevance < n))
    chosen = chosen[np.argsort(place_p[chosen])]
    return Top(columns[chosen], p[chosen], lift[chosen], place_p[chosen], place_relevance[chosen])


def tops_of(words: Callable[[np.ndarray], np.ndarray], tokens: np.ndarray, base: np.ndarray) -> list[Top]:
    """Return the top words of each of n word distributions.

    ``words`` returns the distributions of some row numbers. ``tokens`` (n,) are the expected numbers of tokens, and
    ``base`` (V,) is the share of each word in all documents.
    """
    tops = []
    for start in range(0, len(tokens), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(tokens)))
        for row, probability in zip(rows, words(rows), strict=True):
            tops.append(top_of(probability, base, often_enough(probability * tokens[row])))
    return tops


def join_names(names: Sequence[str], top: Top, places: np.ndarray) -> str:
    """Return the N_SHOWN names with the lowest ranks ``places``, separated by spaces."""
    order = np.argsort(places)[:N_SHOWN]
    return " ".join(names[top.column[one]] for one in order)


def name_of(
    vocabulary: Sequence[str],
    top: Top,
    shared: Set[int] = frozenset(),
    phrases: Mapping[str, str] = MappingProxyType({}),
    n: int = N_NAME,
) -> str:
    """Return a name: the ``n`` words with the highest scores (:func:`_scores`), separated by commas.

    Distinctive words among the first N_SHOWN come first, unless they are ``shared`` with other clusters. If several
    forms of a word qualify, such as singular and plural, only the first is used. A word in ``phrases`` is replaced by
    its phrase.
    """
    chosen: list[str] = []
    scores = _scores(top)
    order = np.lexsort((top.by_relevance, -scores))
    first = order[:N_SHOWN][scores[order[:N_SHOWN]] > 0.0]
    distinctive = first[~np.isin(top.column[first], list(shared))]
    for position in [*distinctive, *order[~np.isin(order, distinctive)]]:
        word = vocabulary[top.column[position]]
        if not any(_is_form_of(word, other) for name in chosen for other in name.split()):
            chosen.append(phrases.get(word, word))
        if len(chosen) == n:
            break
    return ", ".join(chosen)


def _scores(top: Top) -> np.ndarray:
    """Return the score of each word of ``top`` for names: probability ** NAME_WEIGHT * log lift, or 0 if the lift is at
    most MIN_LIFT."""
    return np.where(top.lift > MIN_LIFT, top.probability**NAME_WEIGHT * np.log(top.lift), 0.0)


def _find_shared(tops: Mapping[int, Top]) -> dict[int, set[int]]:
    """Return, for each key, the columns that are distinctive both of its cluster and of another cluster.

    A column is shared if it is among the first N_SHOWN columns of both clusters, and if its score in the other cluster
    is at least SHARED times its score in the first.
    """
    firsts: dict[int, list[tuple[int, float]]] = {}
    best: dict[int, list[float]] = {}
    for key, top in tops.items():
        scores = _scores(top)
        order = np.lexsort((top.by_relevance, -scores))[:N_SHOWN]
        firsts[key] = [(int(top.column[one]), float(scores[one])) for one in order if scores[one] > 0.0]
        for column, score in firsts[key]:
            best[column] = sorted([*best.get(column, []), score], reverse=True)[:2]
    return {
        key: {column for column, score in first if _of_another(best[column], score) >= SHARED * score}
        for key, first in firsts.items()
    }


def _of_another(best: Sequence[float], score: float) -> float:
    """Return the highest score of a column in another cluster, given the two ``best`` scores, or 0 without another."""
    return best[0] if score < best[0] else best[1] if len(best) > 1 else 0.0


def _is_form_of(one: str, other: str) -> bool:
    """Return whether the longer word extends the shorter by at most two letters (three if it has four or more)."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and len(long) - len(short) <= 2 + (len(short) > 3) and long.startswith(short)


def words_table(kind: str, parts: Sequence[tuple[int, Top]], names: Sequence[str]) -> pd.DataFrame:
    """Return a table with one row per word of each pair (number, top) in ``parts``; ranks are from 1."""
    return pd.DataFrame(
        {
            kind: np.repeat([number for number, _ in parts], [len(top.column) for _, top in parts]),
            "word": [names[column] for _, top in parts for column in top.column],
            "probability": [one for _, top in parts for one in top.probability],
            "lift": [one for _, top in parts for one in top.lift],
            "by_probability": [rank + 1 for _, top in parts for rank in top.by_probability],
            "by_relevance": [rank + 1 for _, top in parts for rank in top.by_relevance],
        }
    )


# -- names given by the user ---------------------------------------------------------------------------------------
def names_table(kind: str, user_names: Names, emitted: Emitted, levels: Sequence[str]) -> pd.DataFrame:
    """Return a table of the names of all clusters or topics (``kind``), in the form that :func:`read_names` reads.

    The columns are of (kind), number, level, name, default (name by words) and words (the likeliest). The level of a
    cluster is "recommended" or the number of clusters of its clustering.
    """
    renamed, numbers = user_names.get(kind, {}), range(1, len(emitted.names) + 1)
    names = [renamed.get(number) or name for number, name in zip(numbers, emitted.names, strict=True)]
    columns = {"number": numbers, "level": levels, "name": names, "default": emitted.names}
    return pd.DataFrame({"of": kind, **columns, "words": emitted.columns.get("words", "")})


def read_names(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read names from a CSV with the columns "of", "number" and "name", such as ``names.csv`` of an HTML report.

    The file may contain some of the clusters and topics. The other columns of :func:`names_table` are optional.

    Raises ValueError, with the line, if "of" is not in NAMED, if a number or name is invalid, or if rows contradict
    each other.
    """
    table = read_texts(path, ("of", "number", "name"), "of, number and name, as in names.csv")
    table["name"] = table["name"].str.split().str.join(" ")
    names: dict[str, dict[int, str]] = {kind: {} for kind in NAMED}
    for line, (kind, number, name) in enumerate(table[["of", "number", "name"]].itertuples(index=False), start=2):
        where = f"{path}, line {line}"
        if kind not in names:
            raise ValueError(f"{where}: 'of' is {kind!r}; it must be one of {', '.join(NAMED)}")
        if not number.isdecimal():
            raise ValueError(f"{where}: {number!r} is not a number of a {kind}")
        if not name:
            raise ValueError(f"{where}: the name of {kind} {number} is empty")
        if names[kind].setdefault(int(number), name) != name:
            raise ValueError(f"{where}: {kind} {number} has another name above")
    return table.assign(number=table["number"].astype(int))


def read_texts(path: str | os.PathLike[str], columns: Sequence[str], needed: str) -> pd.DataFrame:
    """Read a CSV with texts in all columns. Raises ValueError if it is damaged or lacks one of ``columns``.

    ``needed`` lists the columns in the message.
    """
    try:
        table = pd.read_csv(path, sep=delimiter_of(Path(path)), dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV in UTF-8: {error}") from error
    if missing := [name for name in columns if name not in table]:
        raise ValueError(f"{path} has no column {missing[0]!r}; it needs {needed}")
    return table


def check_names(names: Names, most: Mapping[str, int]) -> None:
    """Raise ValueError if ``names`` has unknown kinds, empty names, or numbers outside 1 to ``most``."""
    for kind, part in names.items():
        if kind not in most:
            raise ValueError(f"{kind!r} cannot have names; only these can: {', '.join(NAMED)}")
        for number, name in part.items():
            if not isinstance(number, int | np.integer):
                raise ValueError(f"a name is given to {kind} {number!r}, which is not a whole number")
            if not 1 <= number <= most[kind]:
                raise ValueError(f"a name is given to {kind} {number}, but there are {most[kind]}")
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"the name of {kind} {number} is {name!r}; it must be a text")
