"""Run a chain of tomotopy: ``benchmarks/tomotopy_chain.py FOLDER KIND TOPICS SEED WORKERS SECONDS``.

:mod:`benchmarks.gibbs` starts this script with an interpreter that has tomotopy. The script reads ``corpus.npz`` in the
folder and trains a model until its processor seconds divided by the workers reach SECONDS. It writes ``psi`` (M, V),
``alpha`` (M,), the processor seconds and the number of iterations to ``found.npz``.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import numpy as np
import tomotopy

_AT_A_TIME = 5


def main() -> None:
    folder, kind, n_topics, seed, workers, seconds = (
        Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6])
    )  # fmt: skip
    content = np.load(folder / "corpus.npz")  # a CSR matrix as scipy writes it
    start, indices, counts = (content[name] for name in ("indptr", "indices", "data"))
    if kind == "LDA":
        model = tomotopy.LDAModel(k=n_topics, alpha=0.1, eta=0.01, seed=seed)
    else:
        model = tomotopy.HDPModel(initial_k=n_topics, alpha=0.1, gamma=0.1, eta=0.01, seed=seed)
    for begin, end in itertools.pairwise(start):
        words = np.repeat(indices[begin:end], counts[begin:end])
        model.add_doc([str(word) for word in words])
    model.train(0)
    started, iterations = time.process_time(), 0
    while (time.process_time() - started) / workers < seconds:
        model.train(_AT_A_TIME, workers=workers)
        iterations += _AT_A_TIME
    processor = time.process_time() - started
    if kind == "LDA":
        used, alpha = list(range(model.k)), np.asarray(model.alpha)
    else:
        used = [m for m in range(model.k) if model.is_live_topic(m)]
        # tomotopy does not expose the weights of topics, so their fractions of the tokens are used
        tokens = np.asarray(model.get_count_by_topics(), dtype=float)[used]
        alpha = model.alpha * tokens / tokens.sum()
    psi = np.zeros((len(used), content["shape"][1]))
    psi[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(m) for m in used]
    np.savez(folder / "found.npz", psi=psi, alpha=alpha, processor=processor, iterations=iterations)


if __name__ == "__main__":
    main()
