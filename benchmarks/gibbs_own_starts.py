"""What a Gibbs chain finds from different starts: documents with proportions of their own, and MC2.

    python benchmarks/gibbs_own_starts.py MIRROR --corpus nips [--documents 300] [--starts 20:50,20:10] [--mc2]

A start is CLUSTERS:TOPICS. After 50, 100 and 200 iterations a JSON line holds the clusters in use, those of at least
1 % of the documents, topics likewise of the tokens, the log joint, omega, and the perplexity of held-out documents by
the state at hand (``left_to_right``, of MC2 ``marginal``). ``nips`` is the real corpus, ``letters`` the simulated one,
``labelme`` the validation half. MIRROR is the folder of real files.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from mc2core.corpus import Corpus, parts
from mc2core.engines.gibbs.engine import Gibbs
from mc2core.model import Model
from mc2core.sources.collections import labelled_images, nips
from mc2core.sources.simulated import letters

SHOWN = (50, 100, 200)


def read(name: str, mirror: Path) -> Corpus:
    """The corpus of this name."""
    if name == "nips":
        return nips.read(mirror / "nips" / "nips-corpus-20111211.zip")
    if name == "letters":
        return letters.simulate(seed=0)[0]
    return parts.half(labelled_images.read_labelme(mirror / "labelled" / "images.tgz"), "validation")


def main() -> None:
    """Print a JSON line for each start and each number of iterations shown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--corpus", choices=["nips", "letters", "labelme"], default="nips")
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--starts", default="20:50,20:1,20:10,20:200,1:50,200:50")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mc2", action="store_true")
    options = parser.parse_args()
    corpus = read(options.corpus, options.mirror)
    chosen = np.random.default_rng(0).permutation(corpus.n_documents)[: options.documents]
    train, test = corpus.subset(np.sort(chosen)).split(0.1, seed=0)
    for start in options.starts.split(","):
        n_clusters, n_topics = (int(part) for part in start.split(":"))
        engine = Gibbs(
            document_concentration="inf" if options.mc2 else "learn", start_clusters=n_clusters, start_topics=n_topics
        )
        processor = time.process_time()
        state = engine.init(train, options.seed)
        for iteration in range(1, options.iterations + 1):
            row = engine.step(train, state, options.seed, iteration)
            if iteration in SHOWN or iteration == options.iterations:
                show(options.corpus, start, iteration, engine, train, test, state, row, time.process_time() - processor)


def show(name, start, iteration, engine, train, test, state, row, seconds):
    """Print the figures of a state."""
    tokens = state.assignments.n_km.sum(axis=0)
    model = Model([engine.sample(train, state)], {}, {}, train.vocabulary)
    estimator = "left_to_right" if state.own is not None else "marginal"
    figures = {
        "corpus": name,
        "model": "own" if state.own is not None else "mc2",
        "start": start,
        "iterations": iteration,
        "clusters": row["clusters"],
        "of 1 %": int((state.assignments.n_k >= 0.01 * train.n_documents).sum()),
        "topics": row["topics"],
        "topics of 1 %": int((tokens >= 0.01 * tokens.sum()).sum()),
        "log joint": round(row["log_joint"]),
        "omega": round(row.get("document_concentration", np.inf), 1),
        "held out": round(model.perplexity(test, estimator), 1),
        "processor seconds": round(seconds, 1),
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
