"""The concentration of a bag's Dirichlet prior: validation perplexity, agreement with labels; rows of context_prior.md.

    python benchmarks/context_prior.py nips-corpus-20111211.zip [--seeds 2] [--only WORD] [--engine gibbs]

Real NIPS with its authors or the words of its titles as context (a tenth of the training documents held out, split of
seed 1 within that of seed 0), and NUS-WIDE-shaped corpora with tags and labels, one simulated for each seed, a tenth
held out. Two epochs of SVI in batches of 200, all else by default, or 60 sweeps of Gibbs, of
which the second half counts. ``marginal`` is perplexity of held-out words alone,
``context`` of words given the context: of words in both, so that any concentrations may be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from mc2core.corpus import Corpus
from mc2core.engines.gibbs.engine import Gibbs
from mc2core.engines.running.loop import fit
from mc2core.engines.svi.engine import SVI
from mc2core.families import DirichletCategorical
from mc2core.model.clustering import adjusted_rand_index
from mc2core.sources.collections import nips
from mc2core.sources.simulated import shapes

CONCENTRATIONS = (0.01, 0.1, 0.3, 1.0, 3.0)


def run(train: Corpus, test: Corpus, name: str, concentration: float, seed: int, kind: str) -> list[float]:
    """Perplexities by ``marginal`` and ``context``, and the adjusted Rand index of the training documents (NaN)."""
    contexts = {name: DirichletCategorical(concentration)}
    engine, steps = (SVI(batch_size=200, contexts=contexts), 2) if kind == "svi" else (Gibbs(contexts=contexts), 60)
    model = fit(train, engine, iterations=steps, seed=seed, progress=False).model
    agreement = float("nan") if train.labels is None else adjusted_rand_index(train.labels, model.last.cluster)
    return [model.perplexity(test, "marginal"), model.perplexity(test, "context"), agreement]


def corpora(path: str) -> dict[str, tuple[str, Callable[[int], tuple[Corpus, Corpus]]]]:
    """Title -> (context, training and validation documents of a seed)."""
    real = nips.read(path).split(0.1, seed=0)[0].split(0.1, seed=1)
    return {
        "NIPS, authors": ("author", lambda seed: real),
        "NIPS, titles": ("title", lambda seed: real),
        "NUS-WIDE-shaped, tags": ("tag", lambda seed: shapes.simulate(shapes.NUSWIDE, seed)[0].split(0.1, seed=seed)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="corpora whose title holds this")
    parser.add_argument("--engine", choices=("svi", "gibbs"), default="svi")
    arguments = parser.parse_args()
    print("| corpus, context | concentration | marginal | context | adjusted Rand index |")
    print("|---|---|---|---|---|")
    for title, (name, pair) in corpora(arguments.path).items():
        for concentration in CONCENTRATIONS if arguments.only in title else ():
            every = [run(*pair(seed), name, concentration, seed, arguments.engine) for seed in range(arguments.seeds)]
            mean, half = np.mean(every, axis=0), np.ptp(every, axis=0) / 2
            shown = " | ".join(f"{m:.{d}f} ({h:.{d}f})" for m, h, d in zip(mean, half, (1, 1, 3), strict=True))
            print(f"| {title} | {concentration:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
