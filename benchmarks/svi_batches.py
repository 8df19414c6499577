"""Held-out perplexity of SVI by batch size, on data that no figure of the papers is taken from: rows of svi_trials.md.

    python benchmarks/svi_batches.py nips-corpus-20111211.zip [--ohsumed FILE] [--tables] [--epochs 3] [--seeds 2]
        [--only WORD]

Real NIPS: a tenth of the training documents (split of seed 1 within that of seed 0) is held out, whole and cut to a few
hundred documents. Simulated corpora: one for each seed, a tenth held out. ohsumed: the half that settings are chosen
on, a tenth held out. Direct assignment with truncations by rule or, with ``--tables``, K 40, T 20, M 120; words only,
``marginal`` estimator, one thread. The first column of figures is the start, before any step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mc2core.corpus import Corpus, parts
from mc2core.engines.svi.engine import SVI
from mc2core.sources.collections import labelled_texts, nips
from mc2core.sources.simulated import shapes

BATCHES = (50, 100, 200, 400)
_FEW = 300


def run(train: Corpus, test: Corpus, n_tables: int | None, batch_size: int, seed: int, epochs: int) -> list[float]:
    """Perplexity at the start and after each epoch, then CPU seconds of all epochs."""
    engine = SVI(n_tables=n_tables, batch_size=batch_size)
    state = engine.init(train, seed)
    seconds, perplexities = 0.0, []
    for epoch in range(epochs + 1):
        if epoch:
            started = time.process_time()
            engine.step(train, state, seed, epoch)
            seconds += time.process_time() - started
        perplexities.append(engine.model(train, [engine.sample(train, state)], {}).perplexity(test))
    return [*perplexities, seconds]


def corpora(path: str, ohsumed: str | None) -> dict[str, Callable[[int], tuple[Corpus, Corpus]]]:
    """Name -> (training, validation) documents of a seed."""
    known = nips.read(path).split(0.1, seed=0)[0].split(0.1, seed=1)
    few = known[0].subset(np.sort(np.random.default_rng(0).permutation(known[0].n_documents)[:_FEW]))

    def simulate(shape: shapes.Shape, n_documents: int) -> Callable[[int], tuple[Corpus, Corpus]]:
        return lambda seed: shapes.simulate(replace(shape, n_documents=n_documents), seed)[0].split(0.1, seed=seed)

    labelled: dict[str, Callable[[int], tuple[Corpus, Corpus]]] = {}
    if ohsumed is not None:
        chosen = parts.half(labelled_texts.read_ohsumed(ohsumed)[0], "validation")
        labelled["ohsumed"] = lambda seed: chosen.split(0.1, seed=seed)
    return labelled | {
        "NIPS, 1,409 documents": lambda seed: known,
        "NIPS, 300 documents": lambda seed: (few, known[1]),
        "NUS-WIDE-shaped, 3,070 documents": simulate(shapes.NUSWIDE, shapes.NUSWIDE.n_documents),
        "NUS-WIDE-shaped, 300 documents": simulate(shapes.NUSWIDE, 333),
        "PNAS-shaped, 5,400 documents": simulate(shapes.PNAS, 6000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--ohsumed")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="corpora whose name holds this")
    arguments = parser.parse_args()
    n_tables = 20 if arguments.tables else None
    print("| corpus | batch | perplexity at the start and after each epoch, mean (half range) | CPU seconds |")
    print("|---|---|---|---|")
    for name, pair in corpora(arguments.path, arguments.ohsumed).items():
        if arguments.only not in name:
            continue
        pairs = [pair(seed) for seed in range(arguments.seeds)]
        run(*pairs[0], n_tables, BATCHES[-1], 0, 1)  # compiles
        for batch_size in BATCHES:
            every = [run(*one, n_tables, batch_size, seed, arguments.epochs) for seed, one in enumerate(pairs)]
            mean, half = np.mean(every, axis=0), np.ptp(every, axis=0) / 2
            shown = ", ".join(f"{m:.1f} ({h:.1f})" for m, h in zip(mean[:-1], half[:-1], strict=True))
            print(f"| {name} | {batch_size} | {shown} | {mean[-1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
