"""Build corpora from input files that are too large for memory, by way of shards on disk.

1. :class:`ShardWriter` writes the documents of an input file (or of a byte range) to a shard, with the counts of *all*
   their words. A shard consists of independent blocks, so only one block is in memory.
2. :func:`choose` selects the latest version of each document. Then,
   :func:`mc2papers.datasets.dumps.vocabulary.count_vocabulary` reads the selected documents block by block.
3. :func:`gather` builds the corpus, with documents sorted by key.

The result depends only on the input files. It does not depend on the division into shards, the order of shards or the
number of jobs, because the choice of versions uses only the documents and their files.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.xmlstream import DamagedInput
from mc2core.corpus import Corpus, take_rows
from mc2core.corpus.building.letters import words_of
from mc2papers.datasets.words import count_words

FORMAT = "mc2core shard 2"
KEPT = "kept"
BLOCK_BYTES = 16 * 2**20
BLOCK_DOCUMENTS = 50_000
MIN_LETTERS = 3


@dataclass
class Document:
    """One parsed document.

    key : number of the document in the source (page id, PMID); only the latest document of a key is kept
    version : version of the document; a larger version is later
    names : lists of strings by context (categories, writers)
    numbers : numeric values by context, NaN if missing
    """

    key: int
    version: int
    title: str
    text: bytes
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)


class ShardWriter:
    """Write documents to the blocks of a shard; used inside :func:`mc2core.base.storage.replacing_folder`.

    Parameters
    ----------
    folder : an empty folder for the shard.
    source, position : name of the input file, and position in it at which the shard begins; they decide between equal
        versions.
    names, numbers : names of the contexts of documents.
    """

    def __init__(
        self, folder: Path, source: str, position: int, names: Sequence[str], numbers: Sequence[str] = ()
    ) -> None:
        self._folder, self._names, self._numbers = folder, tuple(names), tuple(numbers)
        self._about: dict[str, Any] = {"format": FORMAT, "source": source, "position": position}
        self._waiting: list[Document] = []
        self._dropped: list[tuple[int, int, int]] = []
        self._reasons: dict[str, int] = {}
        self._bytes = self._blocks = self._documents = 0

    def add(self, document: Document) -> None:
        self._waiting.append(document)
        self._bytes += len(document.text) + 1
        if self._bytes >= BLOCK_BYTES or len(self._waiting) >= BLOCK_DOCUMENTS:
            self._flush()

    def drop(self, key: int, version: int, reason: str) -> None:
        """Record that a document is dropped, with the reason. Its version still replaces earlier versions."""
        self._dropped.append((key, version, self._reasons.setdefault(reason, len(self._reasons))))

    def finish(self, **about: Any) -> dict[str, Any]:
        """Write the remaining documents, and ``shard.json`` with the entries of ``about``; return its content."""
        self._flush()
        self._about |= {
            "documents": self._documents,
            "blocks": self._blocks,
            "names": list(self._names),
            "numbers": list(self._numbers),
            **about,
        }
        dropped = np.array(self._dropped, dtype=np.int64).reshape(-1, 3)
        arrays = {name: dropped[:, column] for column, name in enumerate(("key", "version", "reason"))}
        storage.write_arrays(self._folder / "dropped.npz", arrays | {"reasons": pack_lines(self._reasons)})
        storage.write_json(self._folder / "shard.json", self._about)
        return self._about

    def _flush(self) -> None:
        documents, self._waiting, self._bytes = self._waiting, [], 0
        if not documents:
            return
        texts = (document.text.decode("utf-8", "replace") for document in documents)
        counts, names = count_words(words_of(text, MIN_LETTERS, stop_words=()) for text in texts)
        arrays = {
            "key": np.array([document.key for document in documents], dtype=np.int64),
            "version": np.array([document.version for document in documents], dtype=np.int64),
            "title": pack_lines(" ".join(document.title.split()) for document in documents),
            "words": pack_lines(names),
            "indptr": counts.indptr.astype(np.int64),
            "indices": counts.indices.astype(np.int32),
            "data": counts.data,
        }
        for name in self._names:
            members, columns = membership(document.names.get(name, ()) for document in documents)
            arrays[f"{name}.names"] = pack_lines(columns)
            arrays[f"{name}.indptr"] = members.indptr.astype(np.int64)
            arrays[f"{name}.indices"] = members.indices.astype(np.int32)
        for number in self._numbers:
            arrays[number] = np.array([document.numbers.get(number, np.nan) for document in documents])
        storage.write_arrays(self._folder / f"block-{self._blocks:05d}.npz", arrays)
        self._documents += len(documents)
        self._blocks += 1


@contextlib.contextmanager
def reporting_end(allow_truncated: bool, counts: Mapping[str, int], records: str) -> Iterator[list[str]]:
    """Yield a list of warnings, to which the error of a truncated file is added instead of being raised.

    The error is raised if ``allow_truncated`` is false, or if ``counts`` has none of the ``records``.
    """
    warnings: list[str] = []
    try:
        yield warnings
    except DamagedInput as error:
        if not (error.truncated and allow_truncated and counts[records]):
            raise
        warnings.append(str(error))


def pack_lines(lines: Iterable[str]) -> np.ndarray:
    """Return strings without line breaks as the uint8 array of their UTF-8 lines."""
    packed = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    return np.frombuffer(packed, dtype=np.uint8)


def unpack_lines(packed: np.ndarray) -> list[str]:
    """Return the strings that :func:`pack_lines` packed."""
    return packed.tobytes().decode("utf-8").split("\n")[:-1]


def read_about(shard: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``shard.json`` of a shard. Raises ValueError if the folder is not a shard."""
    shard = Path(shard)
    if not (shard / "shard.json").is_file():
        raise ValueError(f"{shard} is not a shard: shard.json is missing")
    about = storage.read_json(shard / "shard.json")
    try:
        storage.check_format(about.get("format") if isinstance(about, dict) else None, FORMAT)
    except ValueError as error:
        raise ValueError(f"{shard}/shard.json cannot be read: {error}") from None
    return about


def ordered(shards: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the shards sorted by source and position, independent of the order of the arguments.

    Raises ValueError if there are no shards, or two with the same source and position.
    """
    read = ((read_about(shard), Path(shard)) for shard in shards)
    places = sorted((about["source"], about["position"], shard) for about, shard in read)
    if not places:
        raise ValueError("there are no shards to gather")
    for one, other in itertools.pairwise(places):
        if one[:2] == other[:2]:
            raise ValueError(f"{one[2]} and {other[2]} are both made from {one[0]}, byte {one[1]}")
    return [place[2] for place in places]


def blocks(shard: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the arrays of each block; an array is read when it is used."""
    for number in range(read_about(shard)["blocks"]):
        path = shard / f"block-{number:05d}.npz"
        if not path.is_file():
            raise ValueError(f"{path} is missing")
        yield storage.read_arrays(path)


@dataclass
class Chosen:
    """Selection of documents.

    shards : shards in order
    masks : (D,) bool for each block of each shard, in order: which documents are chosen
    repeated : number of documents that were dropped because of a later version
    deleted : number of documents that their source deleted
    fates : number of keys by the result of their latest version, which is KEPT or the reason why it was dropped. Keys
        without a document count only for the reasons ``counted`` of :func:`choose`.
    """

    shards: list[Path]
    masks: list[np.ndarray]
    repeated: int
    deleted: int
    fates: Mapping[str, int]

    @property
    def n_documents(self) -> int:
        return int(sum(mask.sum() for mask in self.masks))

    def blocks(self) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield the mask of chosen documents and the arrays of each block."""
        yield from zip(self.masks, itertools.chain.from_iterable(map(blocks, self.shards)), strict=True)


def choose(
    shards: Iterable[str | os.PathLike[str]], deleted: Collection[int] = (), counted: Collection[str] = ()
) -> Chosen:
    """Choose the latest version of each key, and no version of a deleted key.

    If versions are equal, the last document in the last file is chosen. Versions that the parser dropped are also
    considered. For example, an article that became a redirect is removed. Memory is a few numbers per document.

    counted : reasons for dropping a document with which its key is still counted in ``Chosen.fates``.
    """
    paths = ordered(shards)
    reasons: dict[str, int] = {KEPT: 0}
    keys, versions, codes = [], [], []
    is_document: list[bool] = []
    for path in paths:
        dropped = storage.read_arrays(path / "dropped.npz")
        code_of = np.array([reasons.setdefault(name, len(reasons)) for name in unpack_lines(dropped["reasons"])] or [0])
        for is_dropped, block in itertools.chain([(True, dropped)], ((False, block) for block in blocks(path))):
            keys.append(block["key"])
            versions.append(block["version"])
            codes.append(code_of[block["reason"]] if is_dropped else np.zeros(len(block["key"]), dtype=np.int64))
            is_document.append(not is_dropped)
    lengths = [len(one) for one in keys]
    key, version, code = (np.concatenate([*parts, np.empty(0, dtype=np.int64)]) for parts in (keys, versions, codes))
    order = np.lexsort((np.arange(len(key)), version, key))
    last = np.ones(len(key), dtype=bool)
    last[:-1] = key[order][1:] != key[order][:-1]
    chosen = np.zeros(len(key), dtype=bool)
    chosen[order[last]] = True
    gone = np.isin(key, np.fromiter(deleted, dtype=np.int64, count=len(deleted)))
    kept = chosen & (code == 0) & ~gone
    # a key is counted if any of its versions counts; its fate is the fate of its latest version
    counts = np.isin(code, [reasons[name] for name in (KEPT, *counted) if name in reasons])
    fates = np.bincount(code[chosen & ~gone & np.isin(key, key[counts])], minlength=len(reasons))
    return Chosen(
        paths,
        [part for part, wanted in zip(np.split(kept, np.cumsum(lengths)[:-1]), is_document, strict=True) if wanted],
        repeated=int(((code == 0) & ~chosen & ~gone).sum()),
        deleted=int(((code == 0) & gone).sum()),
        fates={name: int(n) for name, n in zip(reasons, fates, strict=True) if n},
    )


@dataclass
class Gathered:
    """A corpus with all possible contexts, before the contexts to use are chosen.

    content : (J, V) int32
    key : (J,) in ascending order
    title : J strings
    members : {context: ((J, A) membership, A names)}
    numbers : {context: (J,) float64}
    empty : number of documents that were dropped because the vocabulary has none of their words
    outside : number of tokens of chosen documents that are not in the vocabulary
    """

    content: sp.csr_matrix
    vocabulary: list[str]
    key: np.ndarray
    title: list[str]
    members: dict[str, tuple[sp.csr_matrix, list[str]]]
    numbers: dict[str, np.ndarray]
    empty: int
    outside: int

    def corpus(self, contexts: Sequence[str], labels: str | None = None) -> Corpus:
        """Return a Corpus with the named contexts; the memberships in the context ``labels`` are its true classes."""
        known = {**{name: matrix for name, (matrix, _) in self.members.items()}, **self.numbers}
        for name in [*contexts, *([] if labels is None else [labels])]:
            if name not in known:
                raise ValueError(f"context {name!r} is not there; there are {', '.join(sorted(known))}")
        matrix, label_names = (None, None) if labels is None else self.members[labels]
        return Corpus(
            self.content,
            self.vocabulary,
            contexts={name: known[name] for name in contexts},
            labels=matrix,
            documents=pd.DataFrame({"id": self.key, "title": self.title}),
            context_names={name: self.members[name][1] for name in contexts if name in self.members},
            label_names=label_names,
        )


def membership(lists: Iterable[Iterable[str]]) -> tuple[sp.csr_matrix, list[str]]:
    """Return a (J, A) int32 matrix with 1 if row j lists name a, and the A names in alphabetical order."""
    return count_words(set(names) for names in lists)


def gather(chosen: Chosen, vocabulary: Sequence[str]) -> Gathered:
    """Count the words of the vocabulary in the chosen documents, ordered by key.

    Memory contains only the result, which grows with the number of documents, and one block.

    Raises ValueError if no document is left.
    """
    column = {word.encode(): v for v, word in enumerate(vocabulary)}
    if len(column) != len(vocabulary):
        raise ValueError("the vocabulary has a word twice")
    about = read_about(chosen.shards[0])
    keys, contents, empty, outside = [], [], 0, 0
    titles: list[str] = []
    numbers: dict[str, list[np.ndarray]] = {name: [] for name in about["numbers"]}
    members: dict[str, list[sp.csr_matrix]] = {name: [] for name in about["names"]}
    ids: dict[str, dict[str, int]] = {name: {} for name in about["names"]}
    for mask, block in chosen.blocks():
        selected = np.flatnonzero(mask)
        counts = _columns(block, "", block["words"].tobytes().splitlines(), column, len(vocabulary))
        counts = take_rows(counts, selected)
        outside += _tokens(block, selected) - int(counts.data.sum())
        full = np.diff(counts.indptr) > 0
        empty += int((~full).sum())
        selected = selected[full]
        contents.append(counts[full])
        keys.append(block["key"][selected])
        lines = unpack_lines(block["title"])
        titles.extend(lines[row] for row in selected)
        for name in numbers:
            numbers[name].append(block[name][selected])
        for name, parts in members.items():
            strings = unpack_lines(block[f"{name}.names"])
            known = ids[name]
            where = {string: known.setdefault(string, len(known)) for string in strings}
            parts.append(take_rows(_columns(block, f"{name}.", strings, where, len(known)), selected))
    key = np.concatenate([*keys, np.empty(0, dtype=np.int64)])
    if len(key) == 0:
        raise ValueError("no document is left: none has a word of the vocabulary")
    order = np.argsort(key)
    return Gathered(
        _sorted_columns(take_rows(sp.vstack(contents, format="csr"), order)),
        list(vocabulary),
        key[order],
        [titles[row] for row in order],
        {name: _by_name(parts, ids[name], order) for name, parts in members.items()},
        {name: np.concatenate(parts)[order] for name, parts in numbers.items()},
        empty,
        outside,
    )


def _tokens(block: Mapping[str, np.ndarray], rows: np.ndarray) -> int:
    before = np.concatenate([[0], np.cumsum(block["data"], dtype=np.int64)])
    return int((before[block["indptr"][rows + 1]] - before[block["indptr"][rows]]).sum())


def _columns(
    block: Mapping[str, np.ndarray], prefix: str, names: Sequence[Any], column: Mapping[Any, int], n_columns: int
) -> sp.csr_matrix:
    """Return the counts of a block (membership if there is no ``data``) with renumbered columns.

    Names without a column are dropped.
    """
    target = np.array([column.get(name, -1) for name in names] or [-1], dtype=np.int64)
    indices = target[block[f"{prefix}indices"]] if len(block[f"{prefix}indices"]) else np.empty(0, dtype=np.int64)
    keep = indices >= 0
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    data = block["data"][keep] if prefix == "" else np.ones(int(keep.sum()), dtype=np.int32)
    indptr = kept_before[block[f"{prefix}indptr"]]
    return sp.csr_matrix((data, indices[keep], indptr), shape=(len(indptr) - 1, n_columns))


def _by_name(
    parts: Sequence[sp.csr_matrix], ids: Mapping[str, int], order: np.ndarray
) -> tuple[sp.csr_matrix, list[str]]:
    """Stack membership blocks, sort rows by ``order`` and columns by name, without unused names."""
    stacked = sp.vstack(
        [sp.csr_matrix((part.data, part.indices, part.indptr), shape=(part.shape[0], len(ids))) for part in parts],
        format="csr",
    )
    used = np.bincount(stacked.indices, minlength=len(ids)) > 0
    names = sorted(name for name, column in ids.items() if used[column])
    rank = np.zeros(len(ids), dtype=np.int64)
    rank[[ids[name] for name in names]] = np.arange(len(names))
    members = sp.csr_matrix((stacked.data, rank[stacked.indices], stacked.indptr), shape=(stacked.shape[0], len(names)))
    return _sorted_columns(take_rows(members, order)), names


def _sorted_columns(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Sort the entries of each row by column, in place, even if the flags of the matrix claim that they are sorted."""
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    matrix.has_canonical_format = True
    return matrix
