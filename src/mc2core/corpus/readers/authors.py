"""Conversion of authors' names to one standard form.

The result depends only on the name, not on other names of the file. Later files therefore give the same names.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_GROUP = re.compile(
    r"\b(agency|association|cent(er|re)|collaborat\w+|committee|consortium|council|department|foundation|group|"
    r"initiative|institute?|investigators|ministry|network|organi[sz]ation|program(me)?|society|team|university)\b",
    re.IGNORECASE,
)
# at most two initials without dots, because three capitals may be a surname ("Jin GUO")
_INITIALS = re.compile(r"(?:[^\W\d_]\.-?){1,4}|[^\W\d_](?:\.?-?[^\W\d_])?\.?")
_SUFFIX = re.compile(r"[,\s]+(?:jr|sr|ii|iii|iv)\.?(?=,|$)", re.IGNORECASE)


@lru_cache(maxsize=100_000)
def author_of(name: str) -> str:
    """Return a name in the form "Surname, I.", with one initial and without accents.

    Names of groups (in braces, or with a word such as "committee") and single words do not get an initial.

    Examples
    --------
    >>> [author_of(one) for one in ("Jörg Müller", "MÜLLER, J. A.", "Müller JA", "J. van der Berg")]
    ['Muller, J.', 'Muller, J.', 'Muller, J.', 'van der Berg, J.']
    """
    plain = unicodedata.normalize("NFKD", name.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    plain = " ".join(re.sub("[\N{HYPHEN}\N{NON-BREAKING HYPHEN}]", "-", plain).split())
    if plain.startswith("{") or _GROUP.search(plain):
        return plain.strip("{}")
    plain = _SUFFIX.sub("", plain).strip(" ,;")
    surname, comma, given_name = map(str.strip, plain.partition(","))
    if not comma:
        surname, given_name = _parts(plain.split())
    initial = next((sign for sign in given_name if sign.isalpha()), "")
    return f"{_capitalise(surname)}, {initial.upper()}." if initial and surname else _capitalise(surname)


def _parts(words: list[str]) -> tuple[str, str]:
    """Return surname and given names of a name without comma, such as "Muller JA" or "Jan van der Berg"."""
    if len(words) < 2:
        return " ".join(words), ""
    first_word, last_word = words[0], words[-1]
    if _is_initials(last_word):
        # in "LI W" and "W LI", the shorter word is the initial; a dot marks initials
        is_first = _is_initials(first_word) and (_letters(first_word), -first_word.count(".")) < (
            _letters(last_word),
            -last_word.count("."),
        )
        if not is_first:
            return " ".join(words[:-1]), last_word
    first = len(words) - 1
    while first > 1 and words[first - 1].islower():  # van, de la
        first -= 1
    return " ".join(words[first:]), " ".join(words[:first])


def _is_initials(word: str) -> bool:
    return word.isupper() and _INITIALS.fullmatch(word) is not None


def _letters(word: str) -> int:
    return sum(sign.isalpha() for sign in word)


def _capitalise(surname: str) -> str:
    """Return a surname with only first letters in capitals, if the surname or a word of it is all in capitals."""
    is_shouted = surname.isupper() and len(surname) > 2

    def cased(match: re.Match[str]) -> str:
        return match[0].capitalize() if is_shouted or (match[0].isupper() and len(match[0]) > 2) else match[0]

    return re.sub(r"[^\W\d_]+", cased, surname)
