"""Make the vocabulary of a sharded corpus: its most frequent words, or a given word list."""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from mc2core.base import storage
from mc2core.corpus.building.letters import STOP_WORDS
from mc2papers.datasets.dumps.shards import MIN_LETTERS, Chosen

#: maximum number of words in memory during counting; more words are written to disk as sorted runs and merged
RUN_WORDS = 2_000_000


def count_vocabulary(
    chosen: Chosen,
    size: int | None,
    scratch: str | os.PathLike[str],
    *,
    min_letters: int = MIN_LETTERS,
    stop_words: Collection[str] = STOP_WORDS,
) -> list[str]:
    """Return the ``size`` most frequent words (None: all words) of the chosen documents, in alphabetical order.

    Frequency is the number of tokens; ties are resolved alphabetically. At most RUN_WORDS words are in memory: sorted
    runs are written to the folder ``scratch`` and merged.
    """
    if min_letters < MIN_LETTERS:
        raise ValueError(f"min_letters is {min_letters}; shards keep words of {MIN_LETTERS} letters or more")
    scratch = Path(scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    totals: Counter[bytes] = Counter()
    runs: list[Path] = []
    try:
        for mask, block in chosen.blocks():
            weights = np.where(np.repeat(mask, np.diff(block["indptr"])), block["data"], 0)
            words = block["words"].tobytes().splitlines()
            tokens = np.bincount(block["indices"], weights=weights, minlength=len(words))
            totals.update({word: n for word, n in zip(words, tokens.astype(np.int64).tolist(), strict=True) if n})
            if len(totals) > RUN_WORDS:
                runs.append(_spill(totals, scratch / f"run-{len(runs):05d}.tsv"))
                totals.clear()
        runs.append(_spill(totals, scratch / f"run-{len(runs):05d}.tsv"))
        totals.clear()
        unwanted = frozenset(word.encode() for word in stop_words)
        wanted = ((-n, word) for word, n in _merge(runs) if len(word) >= min_letters and word not in unwanted)
        best = [word for _, word in (wanted if size is None else heapq.nsmallest(size, wanted))]
    finally:
        for run in runs:
            run.unlink(missing_ok=True)
    return sorted(word.decode() for word in best)


def _spill(totals: Mapping[bytes, int], path: Path) -> Path:
    with storage.replacing(path, "wb") as stream:
        stream.writelines(b"%s\t%d\n" % (word, totals[word]) for word in sorted(totals))
    return path


def _merge(runs: Sequence[Path]) -> Iterator[tuple[bytes, int]]:
    def rows(path: Path) -> Iterator[tuple[bytes, int]]:
        with path.open("rb") as stream:
            for line in stream:
                word, n = line.split(b"\t")
                yield word, int(n)

    current, total = b"", 0
    for word, n in heapq.merge(*map(rows, runs)):
        if word != current:
            if total:
                yield current, total
            current, total = word, 0
        total += n
    if total:
        yield current, total


def read_vocabulary(path: str | os.PathLike[str], min_letters: int = MIN_LETTERS) -> list[str]:
    """Read a vocabulary with one word per line. Raises ValueError if a line is not a valid word."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    # converted to lower case, because the vocabulary of online LDA has "None" for "none"
    words = [line.rstrip("\r").lower() for line in path.read_text(encoding="utf-8", errors="replace").split("\n")]
    if words and not words[-1]:
        words.pop()
    seen: set[str] = set()
    for i, word in enumerate(words):
        if not (word.isascii() and word.isalpha() and len(word) >= min_letters):
            raise ValueError(f"{path}, line {i + 1} is {word[:40]!r}; a word has {min_letters} or more letters a-z")
        if word in seen:
            raise ValueError(f"{path}, line {i + 1} has the word {word!r} for the second time")
        seen.add(word)
    if not words:
        raise ValueError(f"{path} has no words")
    return words
