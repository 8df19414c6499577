"""The local step of SVI-MC2 on Spark (UAI16, section 4.3): documents on executors, everything global in this process.

A corpus is cut into shards, consecutive ranges of its documents, in a folder that all executors read; each is a saved
corpus that a process elsewhere opens alone. A step writes what its documents need - their numbers, lse of the batch's
words, expectations of clusters and contexts - to one file there and runs a job of one task for each shard. A task
assigns its documents with the kernels of the local engine and sends back sums; they are added here in the order of the
shards. So the result depends on the number of shards alone. A task that was lost with its executor is done again, and
gives the same bits.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mc2core.base import locks, storage
from mc2core.compute import spark
from mc2core.corpus import Corpus
from mc2core.corpus.subsets import bare
from mc2core.families import Family, family_from_settings, family_settings
from mc2core.families.stacked import StackedContexts
from mc2core.inference.svi import local
from mc2core.inference.svi.local import Expectations

# -- a corpus in shards --------------------------------------------------------------------------------------------
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
        part = bare(corpus.subset(np.arange(bounds[p], bounds[p + 1])))
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


# -- in this process -----------------------------------------------------------------------------------------------
class Sums(NamedTuple):
    """What a task sends back of the documents of its shard, or nothing where it has none of the batch.

    place, columns : int64, its words and the columns of its contexts among the batch's
    cluster : (B',) int32
    documents : DocumentStatistics over these words and columns
    """

    place: np.ndarray
    columns: np.ndarray
    cluster: np.ndarray
    documents: local.DocumentStatistics


class ShardedDocuments:
    """The documents of a corpus on the executors of the Spark context that runs."""

    def __init__(self, corpus: Corpus, n_shards: int, families: Mapping[str, Family]) -> None:
        self.context = spark.context()
        self.shards = write_shards(corpus, spark.folder(), n_shards)
        remove_steps_of_killed_processes(self.shards.folder)
        self.families = {name: family_settings(family) for name, family in families.items()}
        self.steps = itertools.count()
        self.numbers = self.context.parallelize(range(len(self.shards.digests)), len(self.shards.digests))

    def assign(self, rows: np.ndarray) -> local.Assign:
        """:func:`.local.assign_documents` of the documents ``rows``, which gives their clusters in place of shares."""

        def assign(
            batch: local.Batch, log_likelihood: np.ndarray, expected: Expectations, pool: Executor | None
        ) -> tuple[np.ndarray, local.DocumentStatistics]:
            arrays: dict[str, Any] = {
                "rows": rows,
                "words": batch.words,
                "log_likelihood": log_likelihood,
                "log_group": expected.log_group,
                "columns": batch.columns,
                "contexts": expected.contexts,
            }
            return _together(self.run(arrays), log_likelihood, expected.contexts)

        return assign

    def run(self, arrays: Mapping[str, Any]) -> list[Sums | None]:
        """What each shard sends back of a step of these arrays, in the order of the shards."""
        # a new name: on a file system of a network, one that was seen before may be an older file
        path = self.shards.folder / f"step-{socket.gethostname()}-{os.getpid()}-{next(self.steps)}.npz"
        with step_file(path, arrays), spark.in_a_sentence("Spark gave up a mini-batch"):
            sums: list[Sums | None] = self.numbers.mapPartitions(
                partial(visit, self.shards, path, self.families)
            ).collect()
        return sums


@contextlib.contextmanager
def step_file(path: Path, arrays: Mapping[str, Any]) -> Iterator[None]:
    """What documents need, at ``path`` while the block runs. The file is locked as long as its process lives."""
    try:
        with path.open("wb") as stream:
            locks.take(stream.fileno(), wait=True)
            write_step(stream, arrays)
            yield
    finally:
        path.unlink(missing_ok=True)


def write_step(stream: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write a step's arrays; nothing reads them before they are whole."""
    np.savez(stream, **arrays)
    stream.flush()


def remove_steps_of_killed_processes(folder: Path) -> None:
    """Remove the files of steps that can be locked: their processes are gone."""
    for path in folder.glob("step-*.npz"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
            if locks.take(stream.fileno(), wait=False):
                path.unlink()


def _together(
    shards: Iterable[Sums | None], log_likelihood: np.ndarray, contexts: np.ndarray
) -> tuple[np.ndarray, local.DocumentStatistics]:
    """Clusters and sums of all documents, shard after shard; over the (U, K) words and (K, D') columns of the batch."""
    clusters, total = [], None
    for one in shards:
        if one is None:
            continue
        word_mass = np.zeros_like(log_likelihood)
        word_mass[one.place] = one.documents.word_mass
        one.documents.word_mass = word_mass
        sums = np.zeros_like(contexts)
        sums[:, one.columns] = one.documents.contexts
        one.documents.contexts = sums
        total = one.documents if total is None else total + one.documents
        clusters.append(one.cluster)
    if total is None:
        raise ValueError("a mini-batch has no documents")
    return np.concatenate(clusters), total


_known: dict[str, Any] = {}


def shards_of(corpus: Corpus, n_shards: int, families: Mapping[str, Family]) -> ShardedDocuments:
    """The documents of ``corpus`` on executors; cut into shards, and the context started, when they are first used."""
    key = corpus.digest, n_shards, spark.context()
    if _known.get("key") != key:
        _known.update(key=key, documents=ShardedDocuments(corpus, n_shards, families))
    documents: ShardedDocuments = _known["documents"]
    return documents


# -- on executors --------------------------------------------------------------------------------------------------
# The shards that this process has opened. It is a cache and no more: a process that starts anew opens them again
_open: dict[tuple[str, str], tuple[Corpus, StackedContexts]] = {}


def visit(
    shards: Shards, path: Path, families: Mapping[str, Mapping[str, Any]], numbers: Iterator[int]
) -> Iterator[Sums | None]:
    """Sums of the documents of the step at ``path`` that are in the shards ``numbers``."""
    for p in numbers:  # to the end, or Spark does not use this process again
        yield spark.marked(partial(_visit_one, shards, path, families, p), f"shard {name_of(p)}")


def _visit_one(shards: Shards, path: Path, families: Mapping[str, Mapping[str, Any]], p: int) -> Sums | None:
    key = str(shards.folder), shards.digests[p]
    if key not in _open:
        shard = open_shard(shards, p)
        _open[key] = shard, StackedContexts(shard, {name: family_from_settings(one) for name, one in families.items()})
    shard, contexts = _open[key]
    with np.load(path, allow_pickle=False) as step:
        rows = step["rows"]
        first, last = np.searchsorted(rows, shards.bounds[p : p + 2])
        if first == last:
            return None
        batch = local.take_batch(shard, contexts, rows[first:last] - shards.bounds[p]).narrowed()
        place, columns = np.searchsorted(step["words"], batch.words), np.searchsorted(step["columns"], batch.columns)
        expected = Expectations(
            log_group=step["log_group"],
            log_topic_total=np.zeros(0),
            contexts=np.ascontiguousarray(step["contexts"][:, columns]),
        )
        shares, documents = local.assign_documents(batch, step["log_likelihood"][place], expected, None)
    return Sums(place, columns, local.likeliest(shares), documents)
