"""NIPS 0-12 as scanned text: ``nips12raw_str602.tgz``, one file ``nipstxt/nipsNN/NNNN.txt`` (latin-1) a paper.

This is the text that the counts of the other two formats were made from, by a rule that was not published. Ours:

* a word broken at the end of a line ("recogni-" / "tion") is joined;
* words are runs of letters a-z, lower case, of three letters or more, no stop words (:func:`text.words_of`);
* a word is in at least six papers, the least that a word of the published counts is in.

So the vocabulary differs: it has more misread words, another list of stop words, and lacks "ai", "em", "eq", "ml",
"rl" and "sv", the six words of two letters in the published counts. The files have no fields: authors, titles and
section labels are in the other formats only, and the year (1987 + NN) is the only context here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import scipy.sparse as sp

from mc2core.corpus.building.counts import CountsBuilder, Dropped, VocabularyRule
from mc2core.sources.formats import archives
from mc2core.sources.text import words as text

MIN_DOCUMENTS = 6
MAX_PAPER_BYTES = 4 * 2**20
_PAPER = re.compile(r"(?:.*/)?(nips[0-9]{2}/[0-9]+\.txt)")
_BROKEN_WORD = re.compile(r"(?<=[a-z])-[ \t]*\r?\n[ \t]*(?=[a-z])")


class PaperCounts(NamedTuple):
    """Words of each paper.

    counts : (J, V) int32 CSR, papers in the order of their names
    words : V strings in alphabetical order
    names : J strings, ``nipsNN/NNNN.txt``
    dropped : words that are in too few papers
    """

    counts: sp.csr_matrix
    words: list[str]
    names: list[str]
    dropped: list[Dropped]


def read_counts(path: str | os.PathLike[str], min_documents: int = MIN_DOCUMENTS) -> PaperCounts:
    """Count the words of each paper.

    ValueError: the archive is damaged or unsafe, holds no paper, or a paper of more than ``MAX_PAPER_BYTES``.
    """
    path = Path(path)
    papers: dict[str, Counter[str]] = {}
    for member, content in archives.iterate_members(
        path, lambda name: bool(_PAPER.fullmatch(name)), max_member_bytes=MAX_PAPER_BYTES
    ):
        match = _PAPER.fullmatch(member)
        name = match[1] if match else member
        if name in papers:
            raise ValueError(f"{path} holds {name} in two folders")
        papers[name] = Counter(text.words_of(_BROKEN_WORD.sub("", content.decode("latin-1"))))
    if not papers:
        raise ValueError(f"{path} has no paper: no member is named nipsNN/NNNN.txt")
    builder = CountsBuilder()
    names = sorted(papers)
    for name in names:
        builder.add(papers[name])
    counts, words = builder.finish()
    kept, kept_words, dropped = VocabularyRule(min_documents).apply(counts, words)
    return PaperCounts(kept, kept_words, names, dropped)
