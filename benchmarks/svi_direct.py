"""Held-out perplexity and CPU seconds of SVI without tables beside SVI with tables on real NIPS: rows of svi_direct.md.

    python benchmarks/svi_direct.py nips-corpus-20111211.zip [--epochs 2] [--seeds 3] [--only WORD] [--validation]

Splits are those of benchmarks/svi_trials.py or, with --validation, a tenth of its training documents (split of seed 1).
Words only, ``marginal`` estimator with posterior means, one thread. The first figure is the start's, before any step;
CPU seconds are those of the start and of one epoch, the mean of all. A row ``few`` is fitted to 300 documents.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from mc2core.corpus import Corpus
from mc2core.engines.svi.engine import SVI
from mc2core.sources.collections import nips

_FEW = 300
_WORDS = ["group", "table", "topic", "words"]
ROWS: dict[str, dict[str, Any]] = {
    "tables 40, 20, 120": {"n_tables": 20, "batch_size": 50},
    "tables 80, 40, 200, batch 200": {"n_clusters": 80, "n_tables": 40, "n_topics": 200, "batch_size": 200},
    "direct 40, 120": {"n_clusters": 40, "n_topics": 120, "batch_size": 50},
    "direct 80, 200, batch 200": {"n_clusters": 80, "n_topics": 200, "batch_size": 200},
    "direct by rule": {},
    "direct by rule, batch 50": {"batch_size": 50},
    "direct by rule, batch 200": {"batch_size": 200},
    "direct by rule, s learnt": {"batch_size": 50, "learn_concentrations": _WORDS},
    **{f"direct {k}, {2 * k}": {"n_clusters": k, "n_topics": 2 * k, "batch_size": 50} for k in (80, 160, 320)},
    **{f"direct {k}, {2 * k}, few": {"n_clusters": k, "n_topics": 2 * k, "batch_size": 50} for k in (20, 40, 80, 150)},
}


def run(train: Corpus, test: Corpus, settings: dict[str, Any], seed: int, epochs: int) -> list[float]:
    """Perplexity at the start and after each epoch, then CPU seconds of the start and of an epoch."""
    engine = SVI(**settings)
    started = time.process_time()
    state = engine.init(train, seed)
    start_seconds, seconds, perplexities = time.process_time() - started, 0.0, []
    for epoch in range(epochs + 1):
        if epoch:
            started = time.process_time()
            engine.step(train, state, seed, epoch)
            seconds += time.process_time() - started
        perplexities.append(engine.model(train, [engine.sample(train, state)], {}).perplexity(test))
    return [*perplexities, start_seconds, seconds / epochs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--validation", action="store_true")
    arguments = parser.parse_args()
    train, test = nips.read(arguments.path).split(0.1, seed=0)
    if arguments.validation:
        train, test = train.split(0.1, seed=1)
    few = train.subset(np.sort(np.random.default_rng(0).permutation(train.n_documents)[:_FEW]))
    for tables in (None, 2):  # compiles
        run(few, test, {"n_clusters": 2, "n_tables": tables, "n_topics": 4, "learn_concentrations": True}, 0, 1)
    print("| engine | perplexity at the start and after each epoch, mean (half range) | CPU seconds, start and epoch |")
    print("|---|---|---|")
    for name, settings in ROWS.items():
        if arguments.only not in name:
            continue
        part = few if name.endswith("few") else train
        every = [run(part, test, settings, seed, arguments.epochs) for seed in range(arguments.seeds)]
        mean, half = np.mean(every, axis=0), np.ptp(every, axis=0) / 2
        shown = ", ".join(f"{m:.1f} ({h:.1f})" for m, h in zip(mean[:-2], half[:-2], strict=True))
        print(f"| {name} | {shown} | {mean[-2]:.1f}, {mean[-1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
