"""A corpus in shards: consecutive ranges of its documents, each a saved corpus that a process elsewhere opens alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2core.corpus.corpus import Corpus

_FORMAT = "mc2core shards 1"
_INDEX = "shards.json"


class Shards(NamedTuple):
    """Where the shards of a corpus are.

    folder : path
    bounds : (P + 1,) int64; shard p holds documents bounds[p]..bounds[p + 1] - 1
    digests : of the shards' words and contexts
    """

    folder: Path
    bounds: np.ndarray
    digests: tuple[str, ...]


def write_shards(corpus: Corpus, folder: str | os.PathLike[str], n_shards: int) -> Shards:
    """Cut a corpus into shards below ``folder``, in a folder named after its digest, unless they are there already.

    Documents are shared out evenly; there are no more shards than documents. Shards hold words and contexts, and
    neither labels nor what is known of the documents. One shard at a time is in memory.
    """
    n_shards = min(n_shards, corpus.n_documents)
    folder = Path(folder) / f"{corpus.digest[:16]}-{n_shards}"
    bounds = np.array([corpus.n_documents * p // n_shards for p in range(n_shards + 1)], np.int64)
    about = {"format": _FORMAT, "corpus": corpus.digest, "bounds": bounds.tolist()}
    if (folder / _INDEX).is_file():
        there = storage.read_json(folder / _INDEX)
        if {name: there.get(name) for name in about} == about:
            return Shards(folder, bounds, tuple(there["digests"]))
    folder.mkdir(parents=True, exist_ok=True)
    digests = []
    for p in range(n_shards):
        part = _bare(corpus.subset(np.arange(bounds[p], bounds[p + 1])))
        part.save(folder / name_of(p))
        digests.append(part.digest)
    storage.write_json(folder / _INDEX, about | {"digests": digests})
    return Shards(folder, bounds, tuple(digests))


def open_shard(shards: Shards, p: int) -> Corpus:
    """Shard ``p``, memory-mapped. All of it is read and compared with its digest. ValueError where it is not there or
    not as it was written."""
    path = shards.folder / name_of(p)
    shard = Corpus.load(path, verify=True)
    if shard.digest != shards.digests[p]:
        raise ValueError(f"{path} is another corpus than the one that was written there: its digest is another")
    return shard


def name_of(p: int) -> str:
    """The folder of shard ``p``."""
    return f"{p:05d}"


def _bare(part: Corpus) -> Corpus:
    """Words and contexts alone."""
    part.labels, part.label_names, part.context_names = None, None, {}
    part._vocabulary, part._folder, part._origin = None, None, None
    part._documents = pd.DataFrame(index=pd.RangeIndex(part.n_documents))
    return part
