"""Microseconds a document that FastEx takes, by number of clusters and bits (NIPS12 table 1)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2core.engines.loop import fit
from mc2core.engines.registry import make_engine
from mc2core.sources.categories import Encyclopaedia, simulate
from mc2core.tables import claim

logger = logging.getLogger(__name__)

TOTAL = "total"
#: the paper's own figures grow 1.3 to 1.5 times
HARDLY = 1.5
NOTES = (
    "Microseconds a document on one core, compilation excluded: the median over the sweeps of a chain that starts at "
    "random, after its first sweep. The job runs alone on its machine.",
    "Data: simulated articles of K categories, about 100 distinct words each. The paper's are Wikipedia's, on its own "
    "machine of 2012: compare how the columns grow, not their levels.",
    "total: all that a sweep does, moves of documents and new fits of the projection included. collapsed Gibbs scores "
    "every cluster exactly, from a table.",
)


def time_documents(
    settings: Mapping[str, Any],
    n_clusters: Sequence[int],
    bits: Sequence[int],
    n_documents: int,
    n_words: int,
    sweeps: int,
) -> pd.DataFrame:
    """Time every K with every length of signature, and exact scoring beside them.

    ``settings`` of the engine hold for all cells, but for those that the grid sets. Returns the columns part, method,
    clusters, bits (0 where nothing is hashed) and microseconds_per_document.
    """
    rows = []
    for k in n_clusters:
        corpus = simulate(Encyclopaedia(k, n_documents, n_words), seed=0)
        cells: list[tuple[str, int, dict[str, Any]]] = [("FastEx", b, {"proposal": "hash", "bits": b}) for b in bits]
        for method, b, own in [*cells, ("collapsed Gibbs", 0, {"proposal": "exact"})]:
            engine = make_engine("fastex", {**settings, "n_clusters": k, **own}, {})
            done = fit(corpus, engine, iterations=1 + sweeps, seed=0, progress=False)
            seconds = float(np.median(np.diff(done.trace["seconds"])))
            rows.append((TOTAL, method, k, b, seconds / n_documents * 1e6))
            logger.info("K = %d, %s, %d bits: %.1f microseconds a document", k, method, b, rows[-1][-1])
    return pd.DataFrame(rows, columns=["part", "method", "clusters", "bits", "microseconds_per_document"])


def speed_table(times: pd.DataFrame, paper: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """NIPS12 table 1: ours beside the paper's (columns part, clusters, bits, microseconds_per_document), and its claim.

    The claim: the total hardly grows with K. It is judged by the factor from the least to the largest K at each
    number of bits, which must not exceed :data:`HARDLY` anywhere.
    """
    keys = ["part", "clusters", "bits"]
    printed = paper.rename(columns={"microseconds_per_document": "paper_microseconds_per_document"})
    table = times.merge(printed, on=keys, how="left")
    hashed = times[(times["part"] == TOTAL) & (times["bits"] > 0)]
    wide = hashed.pivot(index="bits", columns="clusters", values="microseconds_per_document").sort_index(axis=1)
    least, most = wide.columns[0], wide.columns[-1]
    text = f"total hardly grows from K = {least:,} to {most:,} (at most {HARDLY:g} times)"
    if least == most:
        return table, [claim("nips2012_table1", "simulated articles", text, None, f"only K = {least:,} was timed")]
    growth = wide[most] / wide[least]
    numbers = ", ".join(f"{bits} bits {times:.2f}" for bits, times in growth.items())
    verdict = bool((growth <= HARDLY).all())
    return table, [claim("nips2012_table1", "simulated articles", text, verdict, f"times: {numbers}")]


def format_speed_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`speed_table` as text for people: a row for each part, method and bits."""
    rows = []
    for (part, method, bits), here in table.groupby(["part", "method", "bits"], sort=False):
        row = {"part": part, "method": method, "bits": f"{bits}" if bits else ""}
        for _, cell in here.iterrows():
            row[f"K = {cell['clusters']:,}, ours"] = f"{cell['microseconds_per_document']:.1f}"
            known = cell["paper_microseconds_per_document"]
            row[f"K = {cell['clusters']:,}, paper"] = "" if pd.isna(known) else f"{known:.1f}"
        rows.append(row)
    return pd.DataFrame(rows).fillna("")
