"""FastEx: microseconds a document, acceptance and clustering quality, hashed against exact proposals.

    python benchmarks/fastex.py speed   [--documents 20000] [--clusters 100 1000] [--bits 32 128]
    python benchmarks/fastex.py quality [--documents 20000] [--clusters 100 1000] [--bits 128] [--sweeps 30]

The corpus is the simulated encyclopaedia (about 100 distinct words a document). Times are CPU seconds of the thread,
the least of three sweeps, compilation excluded. ``speed`` starts from the true clusters, so documents stay where they
are, as in a chain that has converged; ``quality`` starts at random and prints VI (bits) to the truth over seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mc2core import Corpus, rng
from mc2core.clustering import variation_of_information
from mc2core.engines import FastEx
from mc2core.engines.loop import fit
from mc2core.sources.categories import Encyclopaedia, simulate

N_WORDS = 50_000


def variants(bits: list[int]) -> list[dict]:
    hashed = [{"proposal": "hash", "bits": b, "projection": p} for b in bits for p in ("balanced", "paper")]
    return [{"proposal": "exact"}, *hashed]


def speed(corpus: Corpus, n_clusters: int, bits: list[int]) -> None:
    truth = np.asarray(corpus.labels)
    few = corpus.subset(np.arange(20))
    for settings in variants(bits):
        engine = FastEx(n_clusters=n_clusters, **settings)
        for part in (few, corpus):  # the first compiles
            state = engine._state(part, truth[: part.n_documents].astype(np.int32))
            best, moves = np.inf, np.zeros(2, np.int64)
            for sweep in range(3):
                moves[:] = 0
                started = time.thread_time()
                state.sweep(rng.key(0, "benchmark", sweep), moves)
                best = min(best, time.thread_time() - started)
        hit = 1 - moves[0] / corpus.n_documents
        per_cell = ""
        if settings["proposal"] == "hash":
            per_cell = f"   {state.slots.nbytes / state.used[0]:.1f} bytes a non-zero count"
        print(
            f"K={n_clusters:5d} {settings}: {best / corpus.n_documents * 1e6:7.2f} us a document, "
            f"proposes the true cluster {hit:.3f}{per_cell}",
            flush=True,
        )


def quality(corpus: Corpus, n_clusters: int, bits: list[int], sweeps: int, threads: int) -> None:
    for settings in variants(bits):
        curve: list[float] = []
        result = fit(
            corpus,
            FastEx(n_clusters=n_clusters, threads=threads, **settings),
            iterations=sweeps,
            seed=0,
            callback=lambda _, state: curve.append(variation_of_information(corpus.labels, state.cluster)),  # noqa: B023
        )
        trace = result.trace
        print(f"K={n_clusters} {settings} threads={threads}")
        for i in sorted({0, 1, 2, 4, 9, 19, sweeps - 1} & set(range(sweeps))):
            row = trace.iloc[i]
            print(
                f"  sweep {i + 1:3d} {row.seconds:8.2f} s  VI {curve[i]:6.3f} bits  "
                f"proposed {row.proposed:.3f} accepted {row.accepted:.3f}  log joint {row.log_joint:.0f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "quality"))
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--sweeps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    for n_clusters in given.clusters:
        corpus = simulate(Encyclopaedia(n_clusters, given.documents, N_WORDS), seed=0)
        if given.what == "speed":
            speed(corpus, n_clusters, given.bits)
        else:
            quality(corpus, n_clusters, given.bits, given.sweeps, given.threads)


if __name__ == "__main__":
    main()
