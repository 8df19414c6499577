"""Read texts that have one class each, one file per text: the Ohsumed abstracts and the State of the Union addresses.

:func:`mc2core.corpus.building.letters.words_of` finds the words. Words in fewer than ``MIN_DOCUMENTS`` texts are
dropped.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mc2core.corpus import Corpus
from mc2core.corpus.building.counts import CountsBuilder, Dropped, VocabularyRule
from mc2core.corpus.building.letters import words_of
from mc2papers.datasets.formats import archives

MIN_DOCUMENTS = 5
MAX_TEXT_BYTES = 4 * 2**20
_ABSTRACT = re.compile(r"(?:.*/)?(training|test)/(C[0-9]{2})/([0-9]+)")
_ADDRESS = re.compile(r"(?:.*/)?(([0-9]{4})-([A-Za-z]+)(?:-[0-9]+)?)\.txt")
_README = re.compile(r"(?:.*/)?README")


class _Text(NamedTuple):
    label: str
    facts: dict[str, Any]
    words: Counter[str]


def read_ohsumed(path: str | os.PathLike[str]) -> tuple[Corpus, list[Dropped]]:
    """Read a tar (or zip) archive of MEDLINE abstracts of 1991, with one file ``{training,test}/Cnn/NUMBER`` each.

    The class is the folder, which is one of the MeSH categories of diseases C01 to C23. There is no context. Documents
    have ``id`` (the number) and ``part`` (the official split, "train" or "test"). Also returns which data were dropped,
    and why.

    Raises ValueError if the archive is damaged or unsafe, if a member has another name, if a text is too large or
    occurs twice, or if there is no text.
    """

    def abstract(match: re.Match[str], content: str) -> _Text:
        facts = {"id": match[3], "part": "train" if match[1] == "training" else "test"}
        return _Text(match[2], facts, Counter(words_of(content)))

    return _corpus(_read(Path(path), _ABSTRACT, "{training,test}/Cnn/NUMBER", abstract))


def read_addresses(path: str | os.PathLike[str]) -> tuple[Corpus, list[Dropped]]:
    """Read a zip (or tar) archive of State of the Union addresses, one latin-1 file ``YEAR-President[-n].txt`` each.

    The class is the president, and ``year`` is a numeric context. The first line of each address, its heading, is
    dropped because it names the president. Documents have ``id`` (the name without ".txt"), ``year`` and ``president``.
    Also returns which data were dropped, and why. A member "README" is ignored. Errors are as in :func:`read_ohsumed`.
    """

    def address(match: re.Match[str], content: str) -> _Text:
        facts = {"id": match[1], "year": int(match[2]), "president": match[3]}
        return _Text(match[3], facts, Counter(words_of(content.partition("\n")[2])))

    texts = _read(Path(path), _ADDRESS, "YEAR-President.txt", address, _README)
    corpus, dropped = _corpus(texts, {"year": np.array([float(one.facts["year"]) for one in texts])})
    return corpus, [*dropped, Dropped("lines", len(texts), "headings, which name the president")]


def _read(
    path: Path,
    form: re.Pattern[str],
    said: str,
    make: Callable[[re.Match[str], str], _Text],
    passed_over: re.Pattern[str] | None = None,
) -> list[_Text]:
    """Read the texts of an archive in the order of their ids; ``said`` describes the form of a name in messages."""
    found: dict[str, _Text] = {}
    for name, content in archives.iterate_members(path, max_member_bytes=MAX_TEXT_BYTES):
        match = form.fullmatch(name)
        if match is None:
            if passed_over is not None and passed_over.fullmatch(name):
                continue
            raise ValueError(f"{path} has the member {name[:80]!r}, not of the form {said}")
        one = make(match, content.decode("latin-1"))
        if one.facts["id"] in found:
            raise ValueError(f"{path} has the text {one.facts['id']!r} twice")
        found[one.facts["id"]] = one
    if not found:
        raise ValueError(f"{path} has no text: no member is of the form {said}")
    return [found[id_] for id_ in sorted(found)]


def _corpus(texts: list[_Text], contexts: Mapping[str, np.ndarray] | None = None) -> tuple[Corpus, list[Dropped]]:
    builder = CountsBuilder()
    for one in texts:
        builder.add(one.words)
    counts, words, dropped = VocabularyRule(MIN_DOCUMENTS).apply(*builder.finish())
    labels, names = pd.factorize(np.array([one.label for one in texts], dtype=object), sort=True)
    documents = pd.DataFrame([one.facts for one in texts])
    corpus = Corpus(counts, words, contexts=contexts, labels=labels, documents=documents, label_names=names.tolist())
    return corpus, dropped
