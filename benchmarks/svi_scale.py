"""SVI on a corpus that is larger than the memory it may use: peak resident memory, seconds of an epoch, batch sizes.

    python benchmarks/svi_scale.py FOLDER [--documents 1000000] [--batches 500] [--threads 2] [--limit N] [--tables 20]

A simulated corpus (V 10,000, documents of about 100 distinct words, 40 clusters over 120 topics) is written to FOLDER
once, in pieces, and then read memory-mapped. Each batch size runs in a process of its own, so that the peak is its own;
``--limit`` stops an epoch after that many documents, which is enough for seconds per document.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from mc2core.base import storage
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.corpus.files import FORMAT
from mc2core.engines.svi.engine import SVI

V, K, M = 10_000, 40, 120
PIECE = 20_000


def generate(folder: Path, n_documents: int, distinct: int, seed: int = 0) -> None:
    """Write the corpus as :meth:`Corpus.save` lays it out, never holding more than a piece of it."""
    rng = np.random.default_rng(seed)
    base = (np.arange(V) + 20.0) ** -0.9
    topics = rng.dirichlet(base / base.sum() * 300, size=M)
    clusters = rng.dirichlet(np.full(M, 0.05), size=K) @ topics
    order = np.cumsum(clusters, axis=1)
    order /= order[:, -1:]
    indptr, n_tokens = [0], 0
    folder.mkdir(parents=True)
    with (folder / "words.raw").open("wb") as words, (folder / "counts.raw").open("wb") as counts:
        for first in range(0, n_documents, PIECE):
            size = min(PIECE, n_documents - first)
            cluster = rng.integers(K, size=size)
            length = 1 + rng.poisson(distinct * 1.25, size=size)
            owner = np.repeat(np.arange(size), length)
            token = np.empty(length.sum(), np.int64)
            uniform = rng.random(len(token))
            for k in range(K):
                own = np.repeat(cluster == k, length)
                token[own] = np.searchsorted(order[k], uniform[own])
            cell, count = np.unique(owner * V + token, return_counts=True)
            (cell % V).astype(np.int32).tofile(words)
            count.astype(np.int32).tofile(counts)
            indptr.extend((indptr[-1] + np.cumsum(np.bincount(cell // V, minlength=size))).tolist())
            n_tokens += len(token)
    np.save(folder / "content.indptr.npy", np.array(indptr, np.int64))
    for raw, name in (("words.raw", "indices"), ("counts.raw", "data")):
        source = np.memmap(folder / raw, np.int32, "r")
        target = np.lib.format.open_memmap(folder / f"content.{name}.npy", "w+", np.int32, source.shape)
        target[:] = source
        target.flush()
        (folder / raw).unlink()
    meta = {
        "format": FORMAT, "shape": [n_documents, V], "n_tokens": n_tokens, "digest": f"simulated {n_documents} {seed}",
        "contexts": {}, "context_names": [], "units": {}, "labels": None, "documents": {},
    }  # fmt: skip
    storage.write_json(folder / "corpus.json", meta)


def measure(
    folder: Path, batch_size: int, threads: int, limit: int | None, n_tables: int | None
) -> dict[str, float | None]:
    """One epoch (or its first ``limit`` documents) after a warm-up of two batches."""
    corpus = Corpus.load(folder)
    engine = SVI(n_clusters=K, n_tables=n_tables, n_topics=M, batch_size=batch_size, threads=threads)
    started = time.perf_counter()
    state = engine.init(corpus, 0)
    start_seconds = time.perf_counter() - started
    seen, started, cpu_started = 0, 0.0, 0.0
    with thread_budget(threads) as pool:
        for number, rows in enumerate(corpus.batches(batch_size, 0, 1)):
            if number == 2 or (number == 0 and len(rows) * 4 > corpus.n_documents):
                seen, started, cpu_started = 0, time.perf_counter(), time.process_time()
            engine.batch_step(corpus, state, rows, (number + 17) ** -0.7, pool)
            seen += len(rows)
            if limit is not None and number >= 2 and seen >= limit:
                break
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return {
        "n_tables": n_tables, "batch_size": batch_size, "threads": threads, "documents": seen,
        "start_seconds": start_seconds,
        "seconds": seconds, "cpu_seconds": cpu_seconds, "microseconds_a_document": 1e6 * seconds / seen,
        "epoch_seconds": seconds / seen * corpus.n_documents,
        "peak_rss_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--distinct", type=int, default=100)
    parser.add_argument("--batches", type=int, nargs="+", default=[500])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--tables", type=int, help="none: direct assignment")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measured = measure(arguments.folder, arguments.batches[0], arguments.threads, arguments.limit, arguments.tables)
        print(json.dumps(measured))
        return
    if not arguments.folder.exists():
        generate(arguments.folder, arguments.documents, arguments.distinct)
    for size in arguments.batches:
        command = [sys.executable, __file__, str(arguments.folder), "--one", "--batches", str(size)]
        command += ["--threads", str(arguments.threads)]
        for name in ("limit", "tables"):
            if getattr(arguments, name) is not None:
                command += [f"--{name}", str(getattr(arguments, name))]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
