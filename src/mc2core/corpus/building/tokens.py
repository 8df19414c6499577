"""Conversion of running text to words, in any script.

A word is a run of letters, marks and digits with at least one letter; an apostrophe inside belongs to it. Text is first
composed (Unicode NFC) and brought to lower case as Unicode maps it. All else separates words, hyphens too.

Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are cut into overlapping pairs of
characters, as in search engines without a dictionary. These pairs are no real words; :class:`Tokeniser` accepts any
other function.

Stop words of English are our list, those of other languages the lists of the package ``stop-words`` (BSD licence).
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import stop_words

from mc2core.base.checks import choice, whole

# Function words and contractions. Words that can be the subject of a text are not included ("system" and "fire", which
# some lists have). The list of the papers' corpora (letters.py) is a part of this list.
ENGLISH = """
    a about above across after again against ain't all almost along already also although always am among an and
    another any anybody anyone anything are aren't around as at be because been before behind being below beneath
    beside between beyond both but by can can't cannot could couldn't d despite did didn't do does doesn't doing
    don't done down during each either else ever every everybody everyone everything few for from further had hadn't
    has hasn't have haven't having he hence her here hers herself him himself his how however i if in into is isn't
    it its itself just least less let's ll m may me might mightn't more most much must mustn't my myself near
    needn't neither never no nobody nor not nothing now o'clock of off often on once one only onto or other others
    ought our ours ourselves out over own per perhaps quite rather re s same shan't she should shouldn't since so
    some somebody someone something still such t than that the their theirs them themselves then thence there
    thereby therefore these they this those though through throughout thus to too toward towards under until up upon
    us using ve versus very via was wasn't we were weren't what when where whereas wherein whether which while who
    whom whose why will with within without won't would wouldn't y'all yet you your yours yourself yourselves
"""


def languages() -> list[str]:
    """Return the languages that have stop words."""
    return sorted(stop_words.AVAILABLE_LANGUAGES)


def stop_words_of(wanted: str | Collection[str] | None) -> frozenset[str]:
    """Stop words of a language, or those given, as running text has them: composed, lower case, straight apostrophes.

    ValueError: an unknown language (the nearest is named), or a word that is no text.
    """
    if wanted is None:
        return frozenset()
    words: Collection[str] = wanted
    if isinstance(wanted, str):
        language = choice("the language of stop words", wanted.lower(), languages())
        words = ENGLISH.split() if language == "english" else stop_words.get_stop_words(language)
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"{word!r} is among the stop words; words are text")
    return frozenset(unicodedata.normalize("NFC", word).lower().strip().replace("\u2019", "'") for word in words)


#: default of :class:`Tokeniser` for running text
MIN_LETTERS = 2
# ASCII characters before words are searched: letters, digits and apostrophes stay, all others separate words
_SEPARATED = bytes(sign if sign > 127 or chr(sign).isalnum() or chr(sign) == "'" else 32 for sign in range(256))
_LETTER = re.compile(r"[^\W\d_]")
#: blocks of scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Han
_UNSPACED = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_JOINERS = "\u200c\u200d"  # characters inside words of Persian and of Indian scripts
_MAX_NGRAM = 5
_LONGEST_WORD = 200

Tokenise = Callable[[str], Iterable[str]]


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns of words, of pieces in one kind of script, and of characters with their marks. Python's ``\\w``
    has no marks."""
    codes = [code for code in range(0x300, 0xE01F0) if unicodedata.category(chr(code))[0] == "M"]
    ends = [code for code in codes if unicodedata.category(chr(code + 1))[0] != "M"]
    starts = [code for code in codes if unicodedata.category(chr(code - 1))[0] != "M"]
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))
    tail = rf"[\w{marks}{_JOINERS}]*"
    piece = rf"[{_UNSPACED}]+|[^{_UNSPACED}]+"
    return re.compile(rf"\w{tail}(?:'\w{tail})*"), re.compile(piece), re.compile(rf"\w[{marks}]*")


class Tokeniser:
    """Text to words, in their order.

    Parameters
    ----------
    tokenise : function from a text to its words, in place of the module's rule; its words are taken as they are, on one
        line each, except those that ``stop_words`` and ``min_letters`` leave out.
    stop_words : a language (:func:`mc2core.corpus.building.tokens.languages`), words, or None. A stop word at
        either end of a word with an apostrophe is cut off: l'homme -> homme, dog's -> dog. Default: "english", and
        None with ``tokenise``.
    min_letters : shorter words are left out; 2 by default, and 1 with ``tokenise``.
    max_ngram : up to so many words that stand next to each other are counted as one more, "white_house"; a word that is
        left out separates.

    ValueError: an unknown language, or a number that is not allowed.
    """

    def __init__(
        self,
        tokenise: Tokenise | None = None,
        *,
        stop_words: str | Collection[str] | None = "default",
        min_letters: int | None = None,
        max_ngram: int = 1,
    ) -> None:
        if tokenise is not None and not callable(tokenise):
            raise ValueError(f"tokenise is {tokenise!r}; a function from a text to its words is needed")
        if isinstance(stop_words, str) and stop_words == "default":
            stop_words = "english" if tokenise is None else None
        self._tokenise, self._stop_words = tokenise, stop_words_of(stop_words)
        self.min_letters = whole(
            "min_letters", (MIN_LETTERS if tokenise is None else 1) if min_letters is None else min_letters
        )
        self._max_ngram = whole("max_ngram", max_ngram, most=_MAX_NGRAM)
        self.remembered = _WordCache(self._make_words)

    def __str__(self) -> str:
        if self._tokenise is not None:
            return "words by the function that was given"
        return f"words of at least {self.min_letters} letters or digits, stop words left out"

    def for_contexts(self) -> Tokeniser:
        """Return the same tokeniser without n-grams."""
        stop_words = self._stop_words or None
        return Tokeniser(self._tokenise, stop_words=stop_words, min_letters=self.min_letters)

    def words(self, text: str) -> list[str | None]:
        """Return the words of a text in order, with None for each word that is left out."""
        if self._tokenise is not None:
            return [self._filter_word(word) for word in _check_words(self._tokenise(text))]
        return [word for run in _runs(text) for word in self.remembered[run]]

    def count(self, text: str) -> Mapping[str, int]:
        """Count the words and n-grams of a text. Raises ValueError if the user's function returns none."""
        if self._tokenise is not None or self._max_ngram > 1:
            return Counter(_join_words(self.words(text), self._max_ngram))
        counts: Counter[Any] = Counter(itertools.chain.from_iterable(map(self.remembered.__getitem__, _runs(text))))
        counts.pop(None, None)
        return counts

    def _make_words(self, run: bytes) -> list[str | None]:
        """Return the words of a run, with None for each word that is left out."""
        plain = run.decode()
        if not plain.isascii():
            plain = unicodedata.normalize("NFC", plain).lower()
            for sign, replacement in (("\u2019", "'"), ("\u00ad", ""), ("i\u0307", "i")):
                plain = plain.replace(sign, replacement)
        words = _patterns()[0].findall(plain)
        if _HAS_UNSPACED.search(plain):
            words = _split_pairs(words)
        return [self._filter_word(_strip_ends(word, self._stop_words) if "'" in word else word) for word in words]

    def _filter_word(self, word: str) -> str | None:
        """Return the word, or None if it is left out."""
        is_word = self._tokenise is not None or (len(word) <= _LONGEST_WORD and _LETTER.search(word))
        return word if is_word and len(word) >= self.min_letters and word not in self._stop_words else None


class _WordCache(dict[bytes, list[str | None]]):
    """The words of ``most`` runs, since most runs of a text were in an earlier one."""

    most = 1 << 17

    def __init__(self, make: Callable[[bytes], list[str | None]]) -> None:
        self._make = make

    def __missing__(self, run: bytes) -> list[str | None]:
        if len(self) >= self.most:
            self.clear()
        self[run] = words = self._make(run)
        return words


def has_pairs(words: Iterable[str]) -> bool:
    """Return whether any word is in a script without spaces."""
    return any(_HAS_UNSPACED.search(word) for word in words)


def _runs(text: str) -> list[bytes]:
    """Return the runs between ASCII characters that no word contains."""
    return text.lower().encode(errors="replace").translate(_SEPARATED).split()


def _split_pairs(tokens: Iterable[str]) -> list[str]:
    """Return the words; words in scripts without spaces are cut into pairs of characters."""
    _, pieces, characters = _patterns()
    words: list[str] = []
    for word in tokens:
        for piece in pieces.findall(word):
            if not _HAS_UNSPACED.match(piece):
                words.append(piece.strip("'"))
                continue
            letters = characters.findall(piece)
            words += [first + second for first, second in itertools.pairwise(letters)] or letters
    return words


def _strip_ends(word: str, stop_words: Collection[str]) -> str:
    """Remove stop words at the ends of a word with apostrophes, unless nothing is left."""
    if word in stop_words:
        return word
    parts = word.split("'")
    while len(parts) > 1 and (parts[0] in stop_words or f"{parts[0]}'" in stop_words):
        del parts[0]
    while len(parts) > 1 and parts[-1] in stop_words:
        del parts[-1]
    return "'".join(parts)


def _join_words(words: Sequence[str | None], max_ngram: int) -> Iterator[str]:
    """Yield the words and n-grams."""
    yield from (word for word in words if word is not None)
    for length in range(2, max_ngram + 1):
        for first in range(len(words) - length + 1):
            run = words[first : first + length]
            if None not in run:
                yield "_".join(word for word in run if word is not None)


def _check_words(words: Any) -> list[str]:
    """Check the result of the user's function. Raises ValueError for anything else than words."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise ValueError(f"the tokeniser gave {type(words).__name__}; a list of words is needed")
    checked = []
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"the tokeniser gave {word!r} as a word; words are text")
        if plain := " ".join(word.split()):
            checked.append(plain)
    return checked
