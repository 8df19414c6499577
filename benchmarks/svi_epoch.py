"""Seconds of an SVI epoch on real NIPS on one thread and on two, for benchmarks/svi_scale.md and svi_direct.md.

    python benchmarks/svi_epoch.py nips-corpus-20111211.zip [--batch 50] [--epochs 5]
    python benchmarks/svi_epoch.py nips-corpus-20111211.zip --clusters 40 --topics 120 [--tables 20]

90 % of the papers (split of seed 0), words only, seed 0; truncations by rule where none are given. Epochs of one and of
two threads take turns. Evaluation, compilation and the start are excluded. GEMM is what two threads of independent
700 x 700 products gain, before and after.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mc2core.compute.threads import thread_budget
from mc2core.engines.svi.engine import SVI
from mc2core.sources.collections import nips

SIZE, PRODUCTS = 700, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--batch", type=int, default=50, help="documents in a batch")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--clusters", type=int)
    parser.add_argument("--topics", type=int)
    parser.add_argument("--tables", type=int, help="of a cluster; direct assignment if not given")
    given = parser.parse_args()
    train, _ = nips.read(given.path).with_contexts({}).split(0.1, seed=0)
    sizes = {"n_clusters": given.clusters, "n_topics": given.topics, "n_tables": given.tables}
    runs = {}
    for threads in (1, 2):
        engine = SVI(**sizes, batch_size=given.batch, threads=threads)
        state = engine.init(train, 0)
        engine.step(train, state, 0, 1)  # compiles
        runs[threads] = engine, state
    gained, seconds, processor = [gain_of_gemm()], {1: [], 2: []}, {1: [], 2: []}
    for epoch in range(2, given.epochs + 2):
        for threads, (engine, state) in runs.items():
            started, cpu = time.perf_counter(), time.process_time()
            engine.step(train, state, 0, epoch)
            seconds[threads].append(time.perf_counter() - started)
            processor[threads].append(time.process_time() - cpu)
    gained.append(gain_of_gemm())
    for threads in runs:
        print(
            f"{threads} thread{'s'[: threads > 1]}: {np.median(seconds[threads]):.2f} s an epoch "
            f"({min(seconds[threads]):.2f} to {max(seconds[threads]):.2f}), {np.median(processor[threads]):.2f} CPU"
        )
    ratio = np.median(seconds[1]) / np.median(seconds[2])
    print(f"two threads: {ratio:.2f} times one; GEMM: {gained[0]:.2f}, {gained[1]:.2f}")


def gain_of_gemm() -> float:
    """How many times as fast two threads do independent products as one."""
    rng = np.random.default_rng(0)
    factors = rng.random((2, SIZE, SIZE))
    out = np.empty_like(factors)

    def work(i: int) -> None:
        for _ in range(PRODUCTS):
            np.matmul(factors[i], factors[i], out=out[i])

    with thread_budget(2), ThreadPoolExecutor(2) as pool:
        work(0)
        started = time.perf_counter()
        work(0)
        work(1)
        one = time.perf_counter() - started
        started = time.perf_counter()
        list(pool.map(work, range(2)))
        return one / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
