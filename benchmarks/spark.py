"""SVI on Spark: what a step costs by phase, seconds of an epoch, and the memory of all processes.

    python benchmarks/svi_scale.py CORPUS --documents 1100000 --distinct 80 --limit 1000   # writes the corpus once
    python benchmarks/spark.py CORPUS FOLDER [--workers 1 2] [--batches 500 1000 5000 50000] [--steps 8] [--threads]

A standalone cluster is started on this machine for each number of workers (one core each); there are as many shards as
``--shards`` says. Steps are taken with the engine's own global step, after two that are not counted; without
``--steps`` a whole epoch. ``--threads`` measures the local engine in place of Spark. FOLDER holds shards and logs.
Local work of a step is what the tasks' function takes in this process, for the slowest shard; overhead is all of the
step that is neither local work nor what the local engine does in this process too (words, global step).
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path

import psutil

from mc2core.compute import spark
from mc2core.compute.standalone import Standalone
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.engines import SVI
from mc2core.engines.svi import spark as svi_spark

K, M = 40, 120


class Clock:
    """Seconds of named functions, one list each."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def around(self, name: str, work):
        def timed(*arguments, **more):
            started = time.perf_counter()
            try:
                return work(*arguments, **more)
            finally:
                self.seconds[name].append(time.perf_counter() - started)

        return timed


def memory() -> dict[str, float]:
    """GB of this process (its own pages, without those of mapped files), of its JVM, and of executors and theirs."""

    def own(process) -> float:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 2**20

    sizes = {"driver": own(psutil.Process()), "driver_jvm": 0.0, "executor_jvms": 0.0, "python_workers": 0.0}
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if "CoarseGrainedExecutorBackend" in line:
                sizes["executor_jvms"] += own(process)
            elif "pyspark.daemon" in line:
                sizes["python_workers"] += own(process)
            elif "SparkSubmit" in line:
                sizes["driver_jvm"] += own(process)
        except (psutil.Error, OSError, IndexError):
            continue
    return {name: round(size, 2) for name, size in sizes.items()}


def steps(corpus: Corpus, batch_size: int, n_shards: int | None, n_steps: int | None, threads: int) -> dict:
    engine = SVI(n_clusters=K, n_topics=M, batch_size=batch_size, n_shards=n_shards, threads=threads)
    started = time.perf_counter()
    state = engine.init(corpus, 0)
    start_seconds = time.perf_counter() - started
    clock, seen, whole = Clock(), 0, 0.0
    kept = svi_spark.write_step
    with thread_budget(threads) as pool:
        for number, rows in enumerate(corpus.batches(batch_size, 0, 1)):
            if number == 2:
                seen, clock.seconds = 0, defaultdict(list)
                svi_spark.write_step = clock.around("write", kept)
                epoch_started = time.perf_counter()
            if number >= 2 and n_steps is not None and number >= n_steps + 2:
                break
            clock.around("step", engine.batch_step)(corpus, state, rows, (number + 65) ** -0.7, pool)
            seen += len(rows)
        whole = time.perf_counter() - epoch_started
        svi_spark.write_step = kept
        found = {
            "batch_size": batch_size, "documents": seen, "start_seconds": start_seconds,
            "ms_a_step": 1e3 * statistics.median(clock.seconds["step"]),
            "epoch_seconds": whole / seen * corpus.n_documents,
        }  # fmt: skip
        if n_shards is not None:
            found |= phases(engine, corpus, state, batch_size, pool, clock)
    return found | {"memory_gb": memory()}


def phases(engine: SVI, corpus: Corpus, state, batch_size: int, pool, clock: Clock) -> dict:
    """Milliseconds: driver's own work, local work of the slowest shard, and the rest of a step."""
    from mc2core.engines.svi import local

    documents = svi_spark.shards_of(corpus, engine.n_shards, {})
    rows = next(itertools.islice(corpus.batches(batch_size, 1, 1), 1))
    started = time.perf_counter()
    batch = local.take_batch(corpus, state.contexts, rows).narrowed()
    expected = state.expectations(batch.columns)
    likelihoods = engine.part.word_likelihoods(state, expected, batch.words, pool)
    words = time.perf_counter() - started
    path = documents.shards.folder / "phases.npz"
    arrays = {
        "rows": rows, "words": batch.words, "log_likelihood": likelihoods.log_likelihood,
        "log_group": expected.log_group, "columns": batch.columns, "contexts": expected.contexts,
    }  # fmt: skip
    with path.open("wb") as stream:
        svi_spark.write_step(stream, arrays)
    work, sums = [], []
    for p in range(engine.n_shards):
        best = []
        for _ in range(4):
            started = time.perf_counter()
            one = svi_spark._visit_one(documents.shards, path, {}, p)
            best.append(time.perf_counter() - started)
        work.append(min(best))
        sums.append(one)
    path.unlink()
    started = time.perf_counter()
    _, total = svi_spark._together(sums, likelihoods.log_likelihood, expected.contexts)
    together = time.perf_counter() - started
    started = time.perf_counter()
    known = state, expected, likelihoods, batch, total, engine.concentrations(state)
    engine.part.step(*known, corpus.n_documents / len(rows), 0.01, pool)
    step = time.perf_counter() - started
    workers = len([1 for _ in documents.context._jsc.sc().statusTracker().getExecutorInfos()]) - 1
    slowest = max(sum(work[i::workers]) for i in range(workers))
    wall = statistics.median(clock.seconds["step"])
    return {
        "workers": workers,
        "ms": {
            "words, driver": round(1e3 * words), "write": round(1e3 * statistics.median(clock.seconds["write"])),
            "local work, slowest worker": round(1e3 * slowest), "sums, driver": round(1e3 * together),
            "global step, driver": round(1e3 * step),
            "overhead": round(1e3 * (wall - words - slowest - step)),
        },
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[500, 1000, 5000, 50_000])
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, help="the local engine on so many threads, without Spark")
    arguments = parser.parse_args()
    corpus = Corpus.load(arguments.corpus)
    if arguments.threads:
        for size in arguments.batches:
            print(json.dumps({"threads": arguments.threads} | steps(
                corpus, size, None, arguments.steps, arguments.threads)), flush=True)  # fmt: skip
        return
    for workers in arguments.workers:
        with Standalone(arguments.folder / "cluster", workers, "3g") as cluster:
            properties = {"spark.master": cluster.master, spark.FOLDER: arguments.folder / "shards"}
            with spark.session(properties | {"spark.executor.memory": "1g"}):
                for size in arguments.batches:
                    print(json.dumps(steps(corpus, size, arguments.shards, arguments.steps, 1)), flush=True)


if __name__ == "__main__":
    main()
