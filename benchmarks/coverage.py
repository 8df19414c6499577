"""How often 90 % intervals of shares and effects hold the truth: ``python -m benchmarks.coverage``.

Corpora are drawn from the model (:mod:`benchmarks.recovery`), and each document belongs to one of two groups that are
unequally common in the clusters. Each cluster that was found is compared with the drawn cluster that it shares most
documents with, one to one, if at least half of the documents of either are in both (Jaccard). A row for each length of
documents and number of chains: coverage of the shares of clusters in groups, and of the effects of the group.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from benchmarks.recovery import Cell, draw
from mc2core import Corpus, fit
from mc2core.explore.description import Description
from mc2core.explore.shares import effects, shares_by_value
from mc2core.explore.variables import variables_of

_MIN_JACCARD = 0.5


def rows(length: int, chains: int, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A row for each interval: what it is of, and whether it holds the truth."""
    for seed in seeds:
        drawn = draw(Cell(6, 300, length, 20.0), seed)
        truth, rng = drawn.cluster, np.random.default_rng([seed, 1])
        in_first = np.linspace(0.2, 0.8, truth.max() + 1)
        group = rng.random(len(truth)) < in_first[truth]
        documents = pd.DataFrame({"group": np.where(group, "first", "second")})
        corpus = Corpus(drawn.corpus.content, drawn.corpus.vocabulary, documents=documents)
        found = fit(corpus, seed=seed, chains=chains, progress=False)
        description = Description.of(found.posterior, corpus)
        sizes = np.bincount(truth) / len(truth)
        shares = np.array([sizes * in_first, sizes * (1.0 - in_first)])
        shares /= shares.sum(axis=1, keepdims=True)
        variable = next(one for one in variables_of(description) if one.name == "group")
        of_shares = shares_by_value(description, variable).query("of == 'cluster'")
        of_effects = effects(description, [variable]).query("of == 'cluster'").set_index("number")
        first = description.first[description.n_clusters]
        for cluster, own in _matched(description.cluster, truth):
            of_cluster = of_shares[of_shares["number"] == first + cluster + 1].set_index("value")
            for value, share in zip(("first", "second"), shares[:, own], strict=True):
                low, high = of_cluster.loc[value, ["low", "high"]]
                yield {"of": "share", "holds": low <= share <= high}
            row = of_effects.loc[first + cluster + 1]
            effect = np.subtract(*shares[:, own]) * (1.0 if row["value"] == "first" else -1.0)
            yield {"of": "effect", "holds": row["low"] <= effect <= row["high"]}


def _matched(cluster: np.ndarray, truth: np.ndarray) -> Iterator[tuple[int, int]]:
    both = np.zeros((cluster.max() + 1, truth.max() + 1))
    np.add.at(both, (cluster, truth), 1.0)
    jaccard = both / (both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both)
    for one, own in zip(*linear_sum_assignment(-jaccard), strict=True):
        if jaccard[one, own] >= _MIN_JACCARD:
            yield int(one), int(own)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coverage", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[15, 40], help="words per document")
    parser.add_argument("--chains", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seeds", type=int, default=20, help="corpora for each row (default 20)")
    given = parser.parse_args()
    print("| words | chains | shares: intervals | cover | effects: intervals | cover |\n|---|---|---|---|---|---|")
    for length in given.lengths:
        for chains in given.chains:
            table = pd.DataFrame(rows(length, chains, range(given.seeds))).groupby("of")["holds"].agg(["size", "mean"])
            cells = [f"{size} | {mean:.2f}" for size, mean in table.loc[["share", "effect"]].itertuples(index=False)]
            print(f"| {length} | {chains} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
