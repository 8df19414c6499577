"""Held-out perplexity of SVI variants on real NIPS, as rows of benchmarks/svi_trials.md.

    python benchmarks/svi_trials.py nips-corpus-20111211.zip [--epochs 3] [--threads 2]

90 / 10 split of seed 0, K 40, T 20, M 120, words only, ``marginal`` estimator with posterior means.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from mc2core.engines.svi import SVI
from mc2core.sources import nips

TRIALS: dict[str, dict[str, Any]] = {
    "default: batch 50, delay 64, forgetting 0.7": {},
    "delay 16": {"delay": 16.0},
    "batch 200, delay 16": {"batch_size": 200, "delay": 16.0},
    "schedule paper (delay 1, forgetting 0.8)": {"schedule": "paper"},
    "full batch": {"batch_size": None},
    "start from 20 Gibbs sweeps, delay 16": {"initialisation": "gibbs", "delay": 16.0},
    "random start, delay 16": {"initialisation": "random", "delay": 16.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    train, test = nips.read(arguments.path).split(0.1, seed=0)
    print("| variant | perplexity after each epoch | clusters | topics | seconds an epoch |\n|---|---|---|---|---|")
    for name, settings in TRIALS.items():
        engine = SVI(n_clusters=40, n_tables=20, n_topics=120, threads=arguments.threads, **settings)
        state = engine.init(train, seed=0)
        perplexities, seconds, row = [], 0.0, {}
        for epoch in range(1, arguments.epochs + 1):
            started = time.perf_counter()
            row = engine.step(train, state, 0, epoch)
            seconds = time.perf_counter() - started  # of the last epoch: the first one compiles
            model = engine.model(train, [engine.sample(train, state)], {})
            perplexities.append(f"{model.perplexity(test):.0f}")
        in_use = f"{row['clusters']:.0f} | {row['topics']:.0f}"
        print(f"| {name} | {' '.join(perplexities)} | {in_use} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
