"""Make up pronounceable words and author names, which are distinct and the same in every run."""

from __future__ import annotations

_SYLLABLES = [
    consonants + vowel
    for consonants in ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "ch", "sh", "tr", "pl")
    for vowel in "aeiou"
]

_STRIDE = 104_729  # a prime that does not divide the number of syllables: neighbours differ, and no word repeats


def pseudo_words(n: int) -> list[str]:
    """Return n distinct pronounceable words; the first words, which are the most frequent, are shorter."""
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
