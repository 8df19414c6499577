"""The tokeniser "a-z", which splits the corpora of the papers into words. Users can also select it by this name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from mc2core.corpus.building.tokens import ENGLISH

# stop words of English that the papers' corpora keep, in addition to contractions and words of one or two letters
_NOT_THERE = """
    anybody anyone anything everybody everyone everything myself nobody nothing somebody someone something yourselves
"""
STOP_WORDS = frozenset(
    {"two", *(word for word in ENGLISH.split() if len(word) >= 3 and word.isalpha())} - {*_NOT_THERE.split()}
)
_WORD = re.compile(r"[a-z]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def words_of(text: str, min_letters: int = 3, stop_words: Iterable[str] = STOP_WORDS) -> list[str]:
    """Return the words of ``text`` in order, in lower case, without stop words.

    A word is a sequence of at least ``min_letters`` letters a-z. Accents are removed first (Schrödinger ->
    schrodinger). Digits, hyphens and other characters separate words.
    """
    plain = text.lower()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = _NOT_ASCII.sub(lambda sign: "" if unicodedata.combining(sign[0]) else " ", plain)
    unwanted = stop_words if isinstance(stop_words, frozenset) else frozenset(stop_words)
    return [word for word in _WORD.findall(plain) if len(word) >= min_letters and word not in unwanted]
