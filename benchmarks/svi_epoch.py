"""Seconds of an SVI epoch on real NIPS, for benchmarks/svi_scale.md.

    python benchmarks/svi_epoch.py nips-corpus-20111211.zip [--batch 50] [--epochs 5]

90 % of the papers (split of seed 0), K 40, T 20, M 120, words only, seed 0. Evaluation and compilation are excluded,
and the first epoch, which holds the seeding.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mc2core import fit
from mc2core.engines.svi.engine import SVI
from mc2core.sources.collections import nips


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--batch", type=int, default=50, help="documents in a batch")
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    train, _ = nips.read(arguments.path).with_contexts({}).split(0.1, seed=0)
    for threads in (1, 2):
        engine = SVI(n_clusters=40, n_tables=20, n_topics=120, batch_size=arguments.batch, threads=threads)
        fit(train, engine, iterations=1, seed=0, progress=False)  # compiles
        started = time.process_time()
        done = fit(train, engine, iterations=arguments.epochs, seed=0, progress=False)
        processor = (time.process_time() - started) / arguments.epochs
        seconds = np.diff(done.trace["seconds"].to_numpy())
        print(
            f"{threads} thread{'s'[: threads > 1]}: {np.median(seconds):.2f} s an epoch ({seconds.min():.2f} to "
            f"{seconds.max():.2f}), at most {processor:.2f} s of processor time"
        )


if __name__ == "__main__":
    main()
