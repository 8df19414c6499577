"""Measure the seconds per epoch of SVI or per sweep of Gibbs, on threads and on Spark (UAI16, section 5.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mc2core.compute import spark
from mc2core.corpus import Corpus
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit

#: number of timed iterations: three epochs of SVI, so that a ratio of times has an interval; one sweep of Gibbs,
#: because there is no claim on Gibbs
_TIMED = {"svi": 3, "gibbs": 1}


def epoch_seconds(
    corpus: Corpus,
    run: Mapping[str, Any],
    *,
    batch_sizes: Sequence[int],
    threads: Sequence[int],
    masters: Sequence[str],
    n_shards: int,
    properties: Mapping[str, Any],
) -> pd.DataFrame:
    """Measure the seconds per epoch or sweep for each place and, with SVI, for each size of mini-batches.

    The first epoch or sweep is not measured, because it opens shards and starts processes. The columns are engine,
    place ("threads" or a Spark master), workers (number of threads, or :func:`workers_of` the master), batch_size
    (missing for Gibbs), iteration and seconds. The place does not change the result of an iteration.

    run : ``fit`` of a run of :func:`mc2papers.configuration.read_experiments`
    """
    engine = run["engine"]
    batches = [{"batch_size": size} for size in batch_sizes] if engine == "svi" else [{}]
    part = corpus.with_contexts({name: corpus.contexts[name] for name in run["contexts"]})

    def timed(place: str, workers: int | None, n_threads: int, shards: int | None) -> list[dict[str, Any]]:
        rows = []
        for batch in batches:
            settings = {**run["settings"], **batch, "n_shards": shards}
            one = specify(run["model"], engine, settings, run["contexts"], n_threads)
            trace = fit(part, *one, iterations=1 + _TIMED[engine], seed=0).trace
            about = {"engine": engine, "place": place, "workers": workers, **batch}
            seconds = zip(trace["iteration"], trace["seconds"].diff(), strict=True)
            rows += [about | {"iteration": at, "seconds": spent} for at, spent in seconds if at > 1]
        return rows

    rows = [row for number in threads for row in timed("threads", number, number, None)]
    for master in masters:
        with spark.session({**properties, "spark.master": master}):
            rows += timed(master, workers_of(master), 1, n_shards)
    return pd.DataFrame(rows)


def workers_of(master: str) -> int | None:
    """Return the number of threads or executors in a Spark master such as ``local[2]``; None if it has no number."""
    found = re.fullmatch(r"(?:local|local-cluster)\[(\d+)(?:,.*)?\]", master)
    return int(found[1]) if found else None
