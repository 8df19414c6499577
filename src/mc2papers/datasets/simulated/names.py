"""Made-up words and authors: pronounceable, all distinct, the same each time."""

from __future__ import annotations

_SYLLABLES = [
    consonants + vowel
    for consonants in ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "ch", "sh", "tr", "pl")
    for vowel in "aeiou"
]

_STRIDE = 104_729  # a prime that the number of syllables lacks: spreads neighbours, repeats none


def pseudo_words(n: int) -> list[str]:
    """Return n distinct pronounceable words; earlier (more frequent) ones are shorter."""
    words: list[str] = []
    base, length = len(_SYLLABLES), 2
    while len(words) < n:
        for index in range(min(base**length, n - len(words))):
            rest, syllables = index * _STRIDE % base**length, []
            for _ in range(length):
                rest, digit = divmod(rest, base)
                syllables.append(_SYLLABLES[digit])
            words.append("".join(syllables))
        length += 1
    return words


def author_names(n: int) -> list[str]:
    """Return n distinct names in the form of the NIPS authors: Surname_I."""
    return [f"{word.capitalize()}_{'ABCDEFGHIJKLMNOPRSTVWY'[i * 7 % 22]}" for i, word in enumerate(pseudo_words(n))]
