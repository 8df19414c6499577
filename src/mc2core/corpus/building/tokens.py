"""Splitting of running text into words, in any script.

A word is a sequence of letters, marks and digits with at least one letter. Apostrophes inside a word belong to it. All
other characters, including hyphens, separate words. Text is first composed (Unicode NFC) and converted to lower case.

Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are split into overlapping pairs of
characters, as in search engines without a dictionary. These pairs are not real words. :class:`Tokeniser` accepts
another function for splitting text.

Stop words of English are listed in this module. Stop words of other languages are the lists of the package
``stop-words`` (BSD licence).
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

# Function words and contractions. Words that can be the topic of a text are not included, such as "system" and "fire".
# The stop words of the papers' corpora (letters.py) are a part of this list.
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
    """Return the languages for which there are stop words."""
    return sorted(stop_words.AVAILABLE_LANGUAGES)


def stop_words_of(wanted: str | Collection[str] | None) -> frozenset[str]:
    """Return the stop words of a language, or the given words, in the form of words in text.

    Words are composed (NFC) and in lower case, with straight apostrophes. Raises ValueError if the language is unknown
    (the message names the most similar language), or if a word is not a text.
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


#: default of ``min_letters`` in :class:`Tokeniser`
MIN_LETTERS = 2
# translation of bytes: ASCII characters other than letters, digits and apostrophes become spaces
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
    """Return patterns of words, of parts of words with or without spaces in their script, and of characters with marks.

    Marks are listed, because Python's ``\\w`` does not match them.
    """
    codes = [code for code in range(0x300, 0xE01F0) if unicodedata.category(chr(code))[0] == "M"]
    ends = [code for code in codes if unicodedata.category(chr(code + 1))[0] != "M"]
    starts = [code for code in codes if unicodedata.category(chr(code - 1))[0] != "M"]
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))
    tail = rf"[\w{marks}{_JOINERS}]*"
    piece = rf"[{_UNSPACED}]+|[^{_UNSPACED}]+"
    return re.compile(rf"\w{tail}(?:'\w{tail})*"), re.compile(piece), re.compile(rf"\w[{marks}]*")


class Tokeniser:
    """Splits texts into words.

    Parameters
    ----------
    tokenise : callable, optional
        Function from a text to its words, which replaces the rule of this module. Its words are used unchanged, except
        that ``stop_words`` and ``min_letters`` leave out words.
    stop_words : str, collection of str or None
        A language (:func:`mc2core.corpus.building.tokens.languages`), words, or None for no stop words. The default is
        "english", or None with ``tokenise``. In words with an apostrophe, stop words at both ends are removed: l'homme
        -> homme, dog's -> dog.
    min_letters : int, optional
        Smallest number of letters and digits in a word. The default is 2, or 1 with ``tokenise``.
    max_ngram : int, optional
        Largest number of consecutive words that are also counted as one word, such as "white_house". Words that are
        left out separate such sequences.

    Raises ValueError if the language is unknown or a number is not allowed.
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
        """Return the count of each word and n-gram of a text. Raises ValueError if the user's function does not return
        words."""
        if self._tokenise is not None or self._max_ngram > 1:
            return Counter(_join_words(self.words(text), self._max_ngram))
        counts: Counter[Any] = Counter(itertools.chain.from_iterable(map(self.remembered.__getitem__, _runs(text))))
        counts.pop(None, None)
        return counts

    def _make_words(self, run: bytes) -> list[str | None]:
        """Return the words of a part of a text without spaces, with None for each word that is left out."""
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
    """Cache of the words of ``most`` parts of texts (:func:`_runs`), because most parts recur."""

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
    """Return the parts of a text between ASCII characters that no word contains, such as spaces."""
    return text.lower().encode(errors="replace").translate(_SEPARATED).split()


def _split_pairs(tokens: Iterable[str]) -> list[str]:
    """Return ``tokens`` with words in scripts without spaces split into pairs of characters."""
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
    """Yield the words, and then the n-grams of up to ``max_ngram`` words, joined by underscores."""
    yield from (word for word in words if word is not None)
    for length in range(2, max_ngram + 1):
        for first in range(len(words) - length + 1):
            run = words[first : first + length]
            if None not in run:
                yield "_".join(word for word in run if word is not None)


def _check_words(words: Any) -> list[str]:
    """Return the words that the user's function returned. Raises ValueError if they are not texts."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise ValueError(f"the tokeniser gave {type(words).__name__}; a list of words is needed")
    checked = []
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"the tokeniser gave {word!r} as a word; words are text")
        if plain := " ".join(word.split()):
            checked.append(plain)
    return checked
