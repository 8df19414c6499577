"""The rule a-z, by which the papers' corpora are cut into words; one of those that a user may name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Function words of English of three letters or more. Words that can be the subject of a paper ("system",
# "computer", "fire", which some lists carry) are not here.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        about above across after again against all almost along already also although always among and
        another any are around because been before behind being below beneath beside between beyond both
        but can cannot could despite did does doing done down during each either else ever every few for
        from further had has have having hence her here hers herself him himself his how however into its
        itself just least less may might more most much must near neither never nor not now off often once
        one only onto other others ought our ours ourselves out over own per perhaps quite rather same she
        should since some still such than that the their theirs them themselves then thence there thereby
        therefore these they this those though through throughout thus too toward towards two under until
        upon using versus very via was were what when where whereas wherein whether which while who whom
        whose why will with within without would yet you your yours yourself
        """,
    )
)
_WORD = re.compile(r"[a-z]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def words_of(text: str, min_letters: int = 3, stop_words: Iterable[str] = STOP_WORDS) -> list[str]:
    """Words of ``text`` in their order: runs of the letters a-z, lower case, at least ``min_letters`` long.

    Accents are dropped first (Schrödinger -> schrodinger); digits, hyphens, other signs separate words.
    """
    plain = text.lower()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = _NOT_ASCII.sub(lambda sign: "" if unicodedata.combining(sign[0]) else " ", plain)
    unwanted = stop_words if isinstance(stop_words, frozenset) else frozenset(stop_words)
    return [word for word in _WORD.findall(plain) if len(word) >= min_letters and word not in unwanted]
