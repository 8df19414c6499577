"""A corpus in shards on Spark. Executors process the documents; this process does all other work.

Shards are consecutive ranges of the documents of a corpus, saved in a folder that all executors can read. Each shard is
a saved corpus that can be opened independently. A step writes the arrays that the documents need to one file in this
folder and runs a Spark job with one task per shard. The results of the tasks are in the order of the shards, so they
depend at most on the number of shards. If an executor fails, its task is run again with identical results, because
executors store only data computed from the shard.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mc2core.base import storage
from mc2core.compute import spark
from mc2core.corpus import Corpus
from mc2core.corpus.subsets import bare

# -- a corpus in shards --------------------------------------------------------------------------------------------
_FORMAT = "mc2core shards 1"
_INDEX = "shards.json"


class Shards(NamedTuple):
    """Location of the shards of a corpus.

    Attributes
    ----------
    folder : Path
        Folder of the shards.
    bounds : (P + 1,) int64
        Shard p contains documents bounds[p]..bounds[p + 1] - 1.
    digests : tuple of str
        Digest of the words and contexts of each shard.
    """

    folder: Path
    bounds: np.ndarray
    digests: tuple[str, ...]


def write_shards(corpus: Corpus, folder: str | os.PathLike[str], n_shards: int) -> Shards:
    """Split a corpus into shards in a subfolder of ``folder`` named after the corpus digest, unless they already exist.

    Documents are distributed evenly; there are at most as many shards as documents. Shards contain words and contexts,
    but neither labels nor the table of documents. Only one shard at a time is in memory.
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
        part = bare(corpus.subset(np.arange(bounds[p], bounds[p + 1])))
        part.save(folder / name_of(p))
        digests.append(part.digest)
    storage.write_json(folder / _INDEX, about | {"digests": digests})
    return Shards(folder, bounds, tuple(digests))


def open_shard(shards: Shards, p: int) -> Corpus:
    """Open shard ``p``, memory-mapped, after verifying its digest.

    Raises ValueError if the shard is missing or was changed.
    """
    path = shards.folder / name_of(p)
    shard = Corpus.load(path, verify=True)
    if shard.digest != shards.digests[p]:
        raise ValueError(f"{path} was replaced or changed after it was written: its digest differs")
    return shard


def name_of(p: int) -> str:
    """Return the name of the folder of shard ``p``."""
    return f"{p:05d}"


# -- in this process -----------------------------------------------------------------------------------------------
class Shard(NamedTuple):
    """A shard as passed to the work function on an executor.

    Attributes
    ----------
    number : int
        Index of the shard.
    first, last : int
        The shard contains documents first..last - 1 of the corpus.
    corpus : Corpus
        Documents of the shard.
    kept : dict
        Results that the work function stores for the next step, by name; empty on a new executor.
    """

    number: int
    first: int
    last: int
    corpus: Corpus
    kept: dict[str, Any]


#: function that a task runs on a shard and the arrays of a step; at module level, so that executors can import it
Work = Callable[[Shard, Mapping[str, np.ndarray]], Any]


class ShardedCorpus:
    """A corpus distributed to the executors of the running Spark context."""

    def __init__(self, corpus: Corpus, n_shards: int) -> None:
        self.context = spark.context()
        self.shards = write_shards(corpus, spark.folder(), n_shards)
        remove_steps_of_killed_processes(self.shards.folder)
        self.steps = itertools.count()
        self.numbers = self.context.parallelize(range(len(self.shards.digests)), len(self.shards.digests))

    def run(self, arrays: Mapping[str, Any], work: Work) -> list[Any]:
        """Return the results of ``work`` for each shard and the given arrays, in the order of the shards."""
        # each step has a new file name, since executors could read an outdated cached file on a network file system
        path = self.shards.folder / f"step-{socket.gethostname()}-{os.getpid()}-{next(self.steps)}.npz"
        with step_file(path, arrays), spark.in_a_sentence("Spark gave up a step"):
            results: list[Any] = self.numbers.mapPartitions(partial(visit, self.shards, path, work)).collect()
        return results


@contextlib.contextmanager
def step_file(path: Path, arrays: Mapping[str, Any]) -> Iterator[None]:
    """Write the arrays of a step to ``path``; the file exists and is locked only while the block runs."""
    try:
        with path.open("wb") as stream:
            storage.take_lock(stream.fileno(), wait=True)
            write_step(stream, arrays)
            yield
    finally:
        path.unlink(missing_ok=True)


def write_step(stream: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write the arrays of a step and flush them, so that readers find a complete file."""
    np.savez(stream, **arrays)
    stream.flush()


def remove_steps_of_killed_processes(folder: Path) -> None:
    """Remove the step files of processes that have ended; these files can be locked."""
    for path in folder.glob("step-*.npz"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
            if storage.take_lock(stream.fileno(), wait=False):
                path.unlink()


_known: dict[str, Any] = {}


def shards_of(corpus: Corpus, n_shards: int) -> ShardedCorpus:
    """Return ``corpus`` distributed to executors; create the shards and the Spark context at first use."""
    key = corpus.digest, n_shards, spark.context()
    if _known.get("key") != key:
        _known.update(key=key, corpus=ShardedCorpus(corpus, n_shards))
    sharded: ShardedCorpus = _known["corpus"]
    return sharded


# -- on executors --------------------------------------------------------------------------------------------------
# cache of the shards that this process has opened
_open: dict[tuple[str, int, str], Shard] = {}


def visit(shards: Shards, path: Path, work: Work, numbers: Iterator[int]) -> Iterator[Any]:
    """Yield the results of ``work`` for the shards ``numbers`` and the step at ``path``."""
    for p in numbers:  # the iterator is consumed to its end, since Spark otherwise does not reuse this process
        yield spark.marked(partial(_visit_one, shards, path, work, p), f"shard {name_of(p)}")


def _visit_one(shards: Shards, path: Path, work: Work, p: int) -> Any:
    # two shards can have the same content, so the number is part of the key
    key = str(shards.folder), p, shards.digests[p]
    if key not in _open:
        first, last = shards.bounds[p : p + 2].tolist()
        _open[key] = Shard(p, first, last, open_shard(shards, p), {})
    with np.load(path, allow_pickle=False) as step:
        return work(_open[key], step)
