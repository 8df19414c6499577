"""The rule a-z, which splits the corpora of the papers into words. Users may choose it by its name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from mc2core.corpus.building.tokens import ENGLISH

# the rule for the stop words of the papers' corpora: without contractions and most pronouns
_NOT_THERE = """
    anybody anyone anything everybody everyone everything myself nobody nothing somebody someone something yourselves
"""
STOP_WORDS = frozenset(
    {"two", *(word for word in ENGLISH.split() if len(word) >= 3 and word.isalpha())} - {*_NOT_THERE.split()}
)
_WORD = re.compile(r"[a-z]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def words_of(text: str, min_letters: int = 3, stop_words: Iterable[str] = STOP_WORDS) -> list[str]:
    """Return the words of ``text`` in order: runs of the letters a-z, lower case, with at least ``min_letters``
    letters.

    Accents are removed first (Schrödinger -> schrodinger). Digits, hyphens and other characters separate words.
    """
    plain = text.lower()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = _NOT_ASCII.sub(lambda sign: "" if unicodedata.combining(sign[0]) else " ", plain)
    unwanted = stop_words if isinstance(stop_words, frozenset) else frozenset(stop_words)
    return [word for word in _WORD.findall(plain) if len(word) >= min_letters and word not in unwanted]
