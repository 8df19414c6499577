"""Words and values that describe a cluster or a topic, and its name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mc2core.base.records import delimiter_of

N_WORDS = 20
"""Number of words by probability, and by relevance, in the tables of words."""
N_SHOWN = 10
"""Number of words per row in the tables of clusters and topics."""
N_NAME = 3
"""Number of words in a name."""
NAME_WEIGHT = 0.4
"""Exponent of the probability in the score by which words are chosen for names (docs/notes/names.md)."""
SHARED = 0.7
"""If another cluster gives a word at least this share of its score, the word does not distinguish the clusters."""
MIN_LIFT = 1.1
"""Lift above which a word is distinctive."""
WEIGHT = 0.3
"""Weight of the log probability in the relevance of a word; the log lift has the rest (docs/notes/names.md)."""
MIN_TOKENS = 5
"""If fewer tokens of a word are expected, its lift is not reliable."""
NAMED = ("cluster", "topic")
"""The parts of a fit that have names."""

Names = Mapping[str, Mapping[int, str]]
"""Names that the user gave, by kind (see ``NAMED``) and by the number in the tables."""


class Top(NamedTuple):
    """Top columns of a distribution: numbers, probabilities, lifts, and ranks (from 0) by probability and relevance."""

    column: np.ndarray
    probability: np.ndarray
    lift: np.ndarray
    by_probability: np.ndarray
    by_relevance: np.ndarray


class Emitted(NamedTuple):
    """The words of all clusters or topics, or their observations (:mod:`mc2core.explore.numbers`).

    Attributes
    ----------
    names : default name of each cluster or topic
    columns : columns of the table of clusters or topics, by name
    tables : tables by name, with one row per word or number of each
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
    """Return the words of each cluster or topic (``kind``), in their order.

    ``siblings`` are groups of positions, such as the clusters of a cut. Words that are as distinctive of one sibling
    as of another are in their names only if no other words distinguish them. Equal names of siblings are continued by
    their next words, if these differ.
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
    """Return the members of a group that have a name in common, as one list per name."""
    by_name: dict[str, list[int]] = {}
    for one in group:
        by_name.setdefault(names[one], []).append(one)
    return [members for members in by_name.values() if len(members) > 1]


def often_enough(expected: np.ndarray) -> np.ndarray:
    """Return which of (D,) expected counts are at least MIN_TOKENS, or a quarter of the largest if that is less."""
    return expected >= min(MIN_TOKENS, expected.max() / 4)


def top_of(probability: np.ndarray, base: np.ndarray, possible: np.ndarray, n: int = N_WORDS) -> Top:
    """Return the ``n`` likeliest and the ``n`` most relevant of (D,) columns, the likeliest first.

    lift = probability / base, and relevance = WEIGHT * log probability + (1 - WEIGHT) * log lift, as in LDAvis (Sievert
    and Shirley, 2014). Only ``possible`` (D,) columns are considered, such as those of :func:`often_enough`.
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


def join_names(names: Sequence[str], top: Top, places: np.ndarray, n: int = N_SHOWN) -> str:
    """Return the first ``n`` names by the ranks ``places``, separated by spaces."""
    order = np.argsort(places)[:n]
    return " ".join(names[top.column[one]] for one in order)


def name_of(
    vocabulary: Sequence[str],
    top: Top,
    shared: Set[int] = frozenset(),
    phrases: Mapping[str, str] = MappingProxyType({}),
    n: int = N_NAME,
) -> str:
    """Return a name: the ``n`` words with the highest scores (:func:`_scores`), separated by commas.

    Words that are ``shared`` with others come after the other distinctive ones among the first N_SHOWN. Of forms of a
    word, such as singular and plural, only the first is used. ``phrases`` replace their words.
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
    """Return how suitable each word of ``top`` is as a name: probability ** NAME_WEIGHT * log lift, and 0 below
    MIN_LIFT."""
    return np.where(top.lift > MIN_LIFT, top.probability**NAME_WEIGHT * np.log(top.lift), 0.0)


def _find_shared(tops: Mapping[int, Top]) -> dict[int, set[int]]:
    """Return, by key, which of the first N_SHOWN columns are also among the first of another of ``tops``.

    A column counts only if its score in the other one is at least SHARED of its score here.
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
    """Return the highest of the two ``best`` scores that is not this one, or 0."""
    return best[0] if score < best[0] else best[1] if len(best) > 1 else 0.0


def _is_form_of(one: str, other: str) -> bool:
    """Return whether words differ by an ending of at most two letters, or of three after at least four letters."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and len(long) - len(short) <= 2 + (len(short) > 3) and long.startswith(short)


def words_table(kind: str, parts: Sequence[tuple[int, Top]], names: Sequence[str]) -> pd.DataFrame:
    """Return one row per column of each :class:`Top` in ``parts``, which are pairs (number, top); ranks are from 1."""
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


# -- names that someone gave ---------------------------------------------------------------------------------------
def names_table(kind: str, user_names: Names, emitted: Emitted, levels: Sequence[str]) -> pd.DataFrame:
    """Return the names of all clusters or topics (``kind``), as :func:`read_names` reads them.

    The columns are of, number, level (of a cluster: "recommended", or the size of its clustering), name, default (by
    its words) and words (the likeliest).
    """
    renamed, numbers = user_names.get(kind, {}), range(1, len(emitted.names) + 1)
    names = [renamed.get(number) or name for number, name in zip(numbers, emitted.names, strict=True)]
    columns = {"number": numbers, "level": levels, "name": names, "default": emitted.names}
    return pd.DataFrame({"of": kind, **columns, "words": emitted.columns.get("words", "")})


def read_names(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read names from a CSV with columns of, number and name, such as ``names.csv`` of an HTML report.

    Rows may be missing. The other columns of :func:`names_table` are optional.

    Raises ValueError, with the line, if "of" is not in NAMED, if a number or name is invalid, or if rows contradict
    each other.
    """
    try:
        table = pd.read_csv(path, sep=delimiter_of(Path(path)), dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV in UTF-8: {error}") from error
    if missing := [name for name in ("of", "number", "name") if name not in table]:
        raise ValueError(f"{path} has no column {missing[0]!r}; it needs of, number and name, as in names.csv")
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


def check_names(names: Names, most: Mapping[str, int]) -> None:
    """Raise ValueError if ``names`` has other keys than NAMED, or numbers outside 1 to ``most``."""
    for kind, part in names.items():
        if kind not in most:
            raise ValueError(f"{kind!r} cannot have names; only these can: {', '.join(NAMED)}")
        for number, name in part.items():
            if not 1 <= number <= most[kind]:
                raise ValueError(f"a name is given to {kind} {number}, but there are {most[kind]}")
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"the name of {kind} {number} is {name!r}; it must be a text")
