"""The local step of SVI-MC2 on Spark (UAI16, section 4.3): documents are processed by executors, global parameters by
this process.

A step of :mod:`mc2core.inference.shards` sends the document numbers of a mini-batch, the log likelihoods of its words,
and the expectations of clusters and contexts. A task assigns its documents with the kernels of the local engine and
returns sums, which are added here in the order of the shards. So the result depends only on the number of shards.
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
    """Result of a task for the documents of its shard; None if the shard has no document of the batch.

    place, columns : int64, its words and the columns of its contexts among the batch's
    documents : DocumentStatistics over these words and columns, without shares
    """

    place: np.ndarray
    columns: np.ndarray
    documents: DocumentStatistics


def assign_on_shards(sharded: ShardedCorpus, families: Mapping[str, Family], rows: np.ndarray) -> Assign:
    """Return :func:`.direct.assign_documents` for the documents ``rows`` on Spark, without their shares."""
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
    """Add the statistics of all shards in order, in the (U, K) words and (K, D') columns of the batch."""
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
    """Assign the documents of a step that are in this shard, as a task of Spark; None if there are none."""
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
