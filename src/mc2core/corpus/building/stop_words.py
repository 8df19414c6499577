"""Stop words by language: English of our own, other languages those of the package ``stop-words`` (BSD licence)."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

import stop_words

from mc2core.base.checks import choice

# Function words and contractions; words that can be the subject of a text ("system", "fire", which some lists carry)
# are not here. The papers' corpora have a list of their own (letters.py), of words of three letters or more.
_ENGLISH = """
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
    """Languages that stop words are kept for."""
    return sorted(stop_words.AVAILABLE_LANGUAGES)


def stop_words_of(wanted: str | Collection[str] | None) -> frozenset[str]:
    """Stop words of a language, or those given, as running text has them: composed, lower case, straight apostrophes.

    ValueError: an unknown language (the nearest is named), or a word that is no text.
    """
    if wanted is None:
        return frozenset()
    given: Collection[str] = wanted
    if isinstance(wanted, str):
        language = choice("the language of stop words", wanted.lower(), languages())
        given = _ENGLISH.split() if language == "english" else stop_words.get_stop_words(language)
    for word in given:
        if not isinstance(word, str):
            raise ValueError(f"{word!r} is among the stop words; words are text")
    return frozenset(unicodedata.normalize("NFC", word).lower().strip().replace("\u2019", "'") for word in given)
