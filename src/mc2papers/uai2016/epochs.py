"""Seconds of an epoch of SVI or a sweep of Gibbs on threads of one process and on Spark (UAI16, section 5.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mc2core.compute import spark
from mc2core.corpus import Corpus
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit

#: number of timed epochs of SVI, so that a ratio of two has an interval; sweeps of Gibbs, on which there is no claim
_TIMED = {"svi": 3, "gibbs": 1}


def epoch_seconds(
    corpus: Corpus,
    *,
    model: str,
    engine: str,
    contexts: Mapping[str, Any],
    settings: Mapping[str, Any],
    batch_sizes: Sequence[int],
    threads: Sequence[int],
    masters: Sequence[str],
    n_shards: int,
    properties: Mapping[str, Any],
) -> pd.DataFrame:
    """Measure the seconds of epochs or sweeps from the second on, for each place and, for SVI, each size of
    mini-batches.

    The first one opens shards and starts processes. Columns: engine, place ("threads", or a master of Spark), workers
    (threads, or :func:`workers_of` the master), batch_size (missing of Gibbs), iteration, seconds. An iteration has the
    same result at every place.
    """
    batches = [{"batch_size": size} for size in batch_sizes] if engine == "svi" else [{}]
    part = corpus.with_contexts({name: corpus.contexts[name] for name in contexts})

    def timed(place: str, workers: int | None, n_threads: int, shards: int | None) -> list[dict[str, Any]]:
        rows = []
        for batch in batches:
            wanted = {**settings, **batch, "n_shards": shards}
            one = specify(model, engine, wanted, contexts, n_threads)
            trace = fit(part, *one, iterations=1 + _TIMED[engine], seed=0).trace
            about = {"engine": engine, "place": place, "workers": workers, **batch}
            timed = zip(trace["iteration"], trace["seconds"].diff(), strict=True)
            rows += [about | {"iteration": at, "seconds": seconds} for at, seconds in timed if at > 1]
        return rows

    rows = [row for number in threads for row in timed("threads", number, number, None)]
    for master in masters:
        with spark.session({**properties, "spark.master": master}):
            rows += timed(master, workers_of(master), 1, n_shards)
    return pd.DataFrame(rows)


def workers_of(master: str) -> int | None:
    """Return the threads or executors of a Spark master such as ``local[2]``; None if its name does not contain
    them."""
    found = re.fullmatch(r"(?:local|local-cluster)\[(\d+)(?:,.*)?\]", master)
    return int(found[1]) if found else None
