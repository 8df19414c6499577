"""The local step of SVI-MC2 on Spark (UAI16, section 4.3).

Executors process the documents, and this process updates the global parameters. For each mini-batch, it sends the
indices of the documents, the log likelihoods of the words, and the expectations of clusters and contexts to the
executors (:mod:`mc2core.inference.shards`). A task assigns its documents with the kernels of the local engine and
returns sums. They are added in the order of the shards. Therefore, the result depends only on the number of shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mc2core.families import Family, family_from_settings, family_settings
from mc2core.families.stacked import StackedContexts
from mc2core.inference.shards import Shard, ShardedCorpus
from mc2core.inference.svi.assign import Assign, assign_documents
from mc2core.inference.svi.documents import Batch, DocumentStatistics, Expectations, take_batch


class ShardStatistics(NamedTuple):
    """Result of a task for the documents of the batch that are in its shard.

    place : int64, indices of the words of these documents among the words of the batch
    columns : int64, indices of their context columns among the columns of the batch
    documents : statistics over these words and columns, without responsibilities
    """

    place: np.ndarray
    columns: np.ndarray
    documents: DocumentStatistics


def assign_on_shards(sharded: ShardedCorpus, families: Mapping[str, Family], rows: np.ndarray) -> Assign:
    """Return a version of :func:`.assign.assign_documents` that assigns the documents ``rows`` on Spark.

    Its results do not contain responsibilities.
    """
    work = partial(_assign, {name: family_settings(family) for name, family in families.items()})

    def assign(
        batch: Batch, log_likelihood: np.ndarray, expected: Expectations, pool: Executor | None
    ) -> DocumentStatistics:
        arrays: dict[str, Any] = {
            "rows": rows,
            "words": batch.words,
            "log_likelihood": log_likelihood,
            "log_group": expected.log_group,
            "columns": batch.columns,
            "contexts": expected.contexts,
        }
        return _together(sharded.run(arrays, work), log_likelihood, expected.contexts)

    return assign


def _together(
    shards: Iterable[ShardStatistics | None], log_likelihood: np.ndarray, contexts: np.ndarray
) -> DocumentStatistics:
    """Return the sum of the statistics of all shards, for all words and context columns of the batch."""
    total = None
    for one in shards:
        if one is None:
            continue
        word_mass, sums = np.zeros_like(log_likelihood), np.zeros_like(contexts)
        word_mass[one.place], sums[:, one.columns] = one.documents.word_mass, one.documents.contexts
        part = replace(one.documents, word_mass=word_mass, contexts=sums)
        total = part if total is None else total + part
    if total is None:
        raise ValueError("a mini-batch has no documents")
    return total


def _assign(
    families: Mapping[str, Mapping[str, Any]], shard: Shard, step: Mapping[str, np.ndarray]
) -> ShardStatistics | None:
    """Assign the documents of a mini-batch that are in this shard (a task of Spark); None if there are none."""
    name = f"contexts as {json.dumps(families, sort_keys=True)}"
    if name not in shard.kept:
        of = {name: family_from_settings(one) for name, one in families.items()}
        shard.kept[name] = StackedContexts(shard.corpus, of)
    rows = step["rows"]
    first, last = np.searchsorted(rows, (shard.first, shard.last))
    if first == last:
        return None
    batch = take_batch(shard.corpus, shard.kept[name], rows[first:last] - shard.first).narrowed()
    place, columns = np.searchsorted(step["words"], batch.words), np.searchsorted(step["columns"], batch.columns)
    contexts = np.ascontiguousarray(step["contexts"][:, columns])
    expected = Expectations(log_group=step["log_group"], log_topic_total=np.zeros(0), contexts=contexts)
    documents = assign_documents(batch, step["log_likelihood"][place], expected, None)
    return ShardStatistics(place, columns, replace(documents, shares=None))
