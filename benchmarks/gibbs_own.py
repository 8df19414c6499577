"""Documents with proportions of their own beside the HDP on real NIPS, words only: clusters, topics, perplexity, cost.

    python benchmarks/gibbs_own.py path/to/nips-corpus-20111211.zip [--sweeps 80] [--seed 0] [--only own]

``hdp-own`` is the HDP of three levels, each document its own cluster, with the same splits and merges of topics; it is
scored as the HDP of two levels whose documents vary as much around epsilon. Split 90 / 10 of seed 0, samples from half
of the sweeps on, four of them. Perplexity is ``left_to_right`` of the last sample and averaged over the four.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from mc2core import fit
from mc2core.engines.gibbs.engine import Gibbs
from mc2core.model import Sample
from mc2core.sources.collections import nips

SETTINGS = {
    "own": {"document_concentration": "learn"},
    "hdp": {"one_cluster_per_document": True, "kernel": "collapsed"},
    "hdp-own": {"one_cluster_per_document": True, "document_concentration": "learn"},
}
SHOWN = ["iteration", "clusters", "topics", "log_joint", "table_concentration", "document_concentration"]


def as_two_levels(sample: Sample) -> Sample:
    """The HDP theta_j ~ DP(c, epsilon) with the variances of three levels, tau_j ~ DP(v, epsilon), theta_j ~ DP(omega,
    tau_j): 1 / (c + 1) = 1 / (v + 1) + v / ((v + 1) (omega + 1)). Three levels are scored with one draw of tau for all
    new documents, which says more of that draw than of the topics.
    """
    v, omega = sample.table_concentration, sample.document_concentration
    variance = 1.0 / (v + 1.0) + v / ((v + 1.0) * (omega + 1.0))
    return replace(sample, table_concentration=1.0 / variance - 1.0, document_concentration=np.inf)


def main() -> None:
    """Print the trace at every eighth of the sweeps and the figures at the end as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--sweeps", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=SETTINGS)
    parser.add_argument("--start-topics", type=int, default=150)
    options = parser.parse_args()
    train, test = nips.read(options.path).split(0.1, seed=0)
    every = max(1, options.sweeps // 8)
    for name in [options.only] if options.only else SETTINGS:
        engine = Gibbs(**SETTINGS[name], start_topics=options.start_topics)
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
        scored = [as_two_levels(one) if name == "hdp-own" else one for one in done.model.samples]
        for samples in (scored[-1:], scored):
            value = replace(done.model, samples=samples).perplexity(test, "left_to_right")
            print(json.dumps({"model": name, "samples": len(samples), "left_to_right": round(value, 1)}), flush=True)


if __name__ == "__main__":
    main()
