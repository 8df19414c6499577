"""Words and values that stand for a cluster or a topic: the likeliest, the most relevant, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

N_WORDS = 20
"""Words by probability, and as many by relevance, in the tables of words."""
N_SHOWN = 10
"""Words in a row of the tables of clusters and topics."""
N_NAME = 3
"""Words in a name."""
WEIGHT = 0.3
"""Of the log probability in the relevance of a word; the rest is that of its log lift (docs/notes/names.md)."""
MIN_TOKENS = 5
"""Expected tokens of a word below which its lift is chance."""
NAMED = ("cluster", "topic")
"""What has names."""

Names = Mapping[str, Mapping[int, str]]
"""Names that someone gave, by what (of ``NAMED``) and by the number in the tables."""


class Top(NamedTuple):
    """Columns that stand for a distribution: their numbers, probabilities, lifts, and places by probability and by
    relevance (0: first).
    """

    column: np.ndarray
    probability: np.ndarray
    lift: np.ndarray
    by_probability: np.ndarray
    by_relevance: np.ndarray


class Emitted(NamedTuple):
    """What all clusters, or all topics, emit: words, or observations (:mod:`mc2core.explore.numbers`).

    Attributes
    ----------
    names : of each, for one that nobody named
    columns : of the table of clusters or topics, by name
    tables : with rows of each word or number of each of them, by name
    """

    names: list[str]
    columns: dict[str, Any]
    tables: dict[str, pd.DataFrame]


def of_words(
    what: str,
    tops: Sequence[Top],
    vocabulary: Sequence[str],
    siblings: Sequence[Sequence[int]] = (),
    phrases: Mapping[str, str] = MappingProxyType({}),
) -> Emitted:
    """The words of each cluster or topic (``what``), in their order; ``siblings`` are groups of them, by place, whose
    names share words only where nothing else tells more, such as the clusters of a cut.
    """
    columns = {
        "words": [said(vocabulary, top, top.by_probability) for top in tops],
        "distinctive_words": [said(vocabulary, top, top.by_relevance) for top in tops],
    }
    table = words_table(what, list(enumerate(tops, start=1)), vocabulary)
    taken: dict[int, set[int]] = {}
    for group in siblings:
        taken |= _of_others(dict(zip(group, (tops[one] for one in group), strict=True)))
    names = [name_of(vocabulary, top, taken.get(place, set()), phrases) for place, top in enumerate(tops)]
    return Emitted(names, columns, {f"{what}_words": table})


def often_enough(expected: np.ndarray) -> np.ndarray:
    """Of (D,) expected tokens: those of MIN_TOKENS, or of a quarter of the commonest where that is less."""
    return expected >= min(MIN_TOKENS, expected.max() / 4)


def top_of(probability: np.ndarray, base: np.ndarray, possible: np.ndarray, n: int = N_WORDS) -> Top:
    """The ``n`` likeliest of (D,) columns and the ``n`` most relevant, likeliest first.

    lift = probability / base, and relevance = WEIGHT * log probability + (1 - WEIGHT) * log lift, as of LDAvis (Sievert
    and Shirley, 2014); only ``possible`` (D,) columns count, such as those of :func:`often_enough`.
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


def said(names: Sequence[str], top: Top, places: np.ndarray, n: int = N_SHOWN) -> str:
    """The first ``n`` names by some places, a space between."""
    order = np.argsort(places)[:n]
    return " ".join(names[top.column[one]] for one in order)


def name_of(
    vocabulary: Sequence[str],
    top: Top,
    taken: Set[int] = frozenset(),
    phrases: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The N_NAME most relevant words, a comma between; of words that differ by an ending of one or two letters, such as
    singular and plural, the first alone. Those of the first N_SHOWN that are commoner here than elsewhere and not
    ``taken`` by others come first; of a word with one of the ``phrases``, the phrase is the name.
    """
    chosen: list[str] = []
    order = np.argsort(top.by_relevance)
    if taken:
        tells = (top.by_relevance < N_SHOWN) & (top.lift > 1.0) & ~np.isin(top.column, list(taken))
        order = order[np.argsort(~tells[order], kind="stable")]
    for one in order:
        word = vocabulary[top.column[one]]
        if not any(_is_form_of(word, other) for said in chosen for other in said.split()):
            chosen.append(phrases.get(word, word))
        if len(chosen) == N_NAME:
            break
    return ", ".join(chosen)


def _of_others(tops: Mapping[int, Top]) -> dict[int, set[int]]:
    """By key: the columns that name another of ``tops``. Each of the N_SHOWN most relevant words that are commoner
    there than elsewhere goes to the one for which it is most relevant, as long as that one has fewer than N_NAME.
    """
    relevance = {key: WEIGHT * np.log(top.probability) + (1.0 - WEIGHT) * np.log(top.lift) for key, top in tops.items()}
    pairs = [
        (-relevance[key][one], key, int(top.column[one]))
        for key, top in tops.items()
        for one in np.argsort(top.by_relevance)[:N_SHOWN]
        if top.lift[one] > 1.0
    ]
    owner: dict[int, int] = {}
    n_owned = dict.fromkeys(tops, 0)
    for _, key, column in sorted(pairs):
        if column not in owner and n_owned[key] < N_NAME:
            owner[column], n_owned[key] = key, n_owned[key] + 1
    return {key: {column for column, other in owner.items() if other != key} for key in tops}


def _is_form_of(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and len(long) - len(short) <= 2 and long.startswith(short)


def words_table(what: str, parts: Sequence[tuple[int, Top]], names: Sequence[str]) -> pd.DataFrame:
    """A row for each column of each :class:`Top` of ``parts``, (number, top) each; places count from 1."""
    return pd.DataFrame(
        {
            what: np.repeat([number for number, _ in parts], [len(top.column) for _, top in parts]),
            "word": [names[column] for _, top in parts for column in top.column],
            "probability": [one for _, top in parts for one in top.probability],
            "lift": [one for _, top in parts for one in top.lift],
            "by_probability": [place + 1 for _, top in parts for place in top.by_probability],
            "by_relevance": [place + 1 for _, top in parts for place in top.by_relevance],
        }
    )


# -- names that someone gave ---------------------------------------------------------------------------------------
def names_table(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Columns of, number, name: all names of the tables, in the form that :func:`read_names` reads."""
    parts = [("cluster", tables[table]) for table in ("clusters", "cut_clusters") if len(tables.get(table, ()))]
    rows = [(what, part[what], part["name"]) for what, part in [*parts, ("topic", tables["topics"])]]
    return pd.concat(
        [pd.DataFrame({"of": what, "number": number, "name": name}) for what, number, name in rows], ignore_index=True
    )


def read_names(path: str | Path) -> Names:
    """Names of a CSV with the columns of, number and name, such as ``names.csv`` beside an HTML report; rows may be
    missing.

    ValueError, with the line, for another "of" than those of NAMED, for what is no number, an empty name, and a row
    that another one contradicts.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV in UTF-8: {error}") from error
    if missing := [name for name in ("of", "number", "name") if name not in table]:
        raise ValueError(f"{path} has no column {missing[0]!r}; it needs of, number and name, as in names.csv")
    names: dict[str, dict[int, str]] = {what: {} for what in NAMED}
    for line, (what, number, name) in enumerate(table[["of", "number", "name"]].itertuples(index=False), start=2):
        where = f"{path}, line {line}"
        if what not in names:
            raise ValueError(f"{where}: 'of' is {what!r}; it must be one of {', '.join(NAMED)}")
        if not number.isdecimal():
            raise ValueError(f"{where}: {number!r} is not a number of a {what}")
        if not name.strip():
            raise ValueError(f"{where}: the name of {what} {number} is empty")
        if names[what].setdefault(int(number), name.strip()) != name.strip():
            raise ValueError(f"{where}: {what} {number} has another name above")
    return names


def check_names(names: Names, most: Mapping[str, int]) -> None:
    """ValueError where ``names`` are of something else than NAMED, or of numbers outside 1 to ``most``."""
    for what, given in names.items():
        if what not in most:
            raise ValueError(f"names are given of {what!r}; they can be of {', '.join(NAMED)}")
        for number, name in given.items():
            if not 1 <= number <= most[what]:
                raise ValueError(f"a name is given to {what} {number}, but there are {most[what]}")
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"the name of {what} {number} is {name!r}; it must be a text")
