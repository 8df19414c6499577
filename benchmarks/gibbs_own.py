"""Documents with proportions of their own beside the HDP on real NIPS, words only: clusters, topics, perplexity, cost.

    python benchmarks/gibbs_own.py path/to/nips-corpus-20111211.zip [--sweeps 80] [--seed 0] [--only own]

Split 90 / 10 of seed 0, samples from half of the sweeps on, four of them. Both start from 150
topics. Perplexity is ``left_to_right`` of the last sample and averaged over the four.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from mc2core import fit
from mc2core.engines.gibbs.engine import Gibbs
from mc2core.sources.collections import nips

SETTINGS = {
    "own": {"document_concentration": "learn"},
    "hdp": {"one_cluster_per_document": True, "kernel": "collapsed"},
}
SHOWN = ["iteration", "clusters", "topics", "log_joint", "table_concentration", "document_concentration"]


def main() -> None:
    """Print the trace at every eighth of the sweeps and the figures at the end as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--sweeps", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=SETTINGS)
    options = parser.parse_args()
    train, test = nips.read(options.path).split(0.1, seed=0)
    every = max(1, options.sweeps // 8)
    for name in [options.only] if options.only else SETTINGS:
        engine = Gibbs(**SETTINGS[name], start_topics=150)
        processor = time.process_time()
        done = fit(
            train, engine, iterations=options.sweeps, burn_in=options.sweeps // 2, thin=every, seed=options.seed,
            progress=False,
        )  # fmt: skip
        processor = time.process_time() - processor
        shown = [column for column in SHOWN if column in done.trace]
        for row in done.trace[shown].iloc[every - 1 :: every].to_dict("records"):
            print(json.dumps({"model": name} | row))
        sizes = np.bincount(done.model.last.cluster)
        figures = {
            "clusters of at least 20 documents": int((sizes >= 20).sum()),
            "processor seconds, start and compilation included": round(processor, 1),
        }
        print(json.dumps({"model": name} | figures), flush=True)
        for samples in (done.model.samples[-1:], done.model.samples):
            value = replace(done.model, samples=samples).perplexity(test, "left_to_right")
            print(json.dumps({"model": name, "samples": len(samples), "left_to_right": round(value, 1)}), flush=True)


if __name__ == "__main__":
    main()
