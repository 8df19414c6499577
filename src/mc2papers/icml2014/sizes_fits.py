"""The fits of ICML14 figure 7: repeatedly draw letters data of a given size and cluster them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pandas as pd

from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit
from mc2core.posterior import clustering
from mc2papers.datasets.simulated import letters

logger = logging.getLogger(__name__)


def letters_of_size(
    n_documents: int,
    n_tokens: int,
    *,
    noise: float,
    repeats: int,
    iterations: int,
    model: str,
    engine: str,
    settings: Mapping[str, Any],
    contexts: Mapping[str, Any],
    threads: int = 1,
) -> pd.DataFrame:
    """Draw ``repeats`` corpora, fit each with and without its context, and compare clusters with the truth.

    Parameters
    ----------
    n_documents, n_tokens, noise : see :func:`mc2papers.datasets.simulated.letters.simulate`; the seed is the repeat.
    model, engine, settings, contexts : see :func:`mc2core.inference.registry.specify`; the context is ``number``.

    Returns
    -------
    One row per fit, with the columns n_documents, n_tokens, with_context, repeat, nmi (of the representative sample),
    clusters, topics and seconds. Each repeat is fitted with and without context.
    """
    rows = []
    for repeat in range(repeats):
        corpus, truth = letters.simulate(repeat, n_documents, n_tokens, noise)
        for with_context in (True, False):
            used = contexts if with_context else {}
            done = fit(
                corpus.with_contexts({name: corpus.contexts[name] for name in used}),
                *specify(model, engine, settings, used, threads),
                iterations=iterations,
                burn_in=iterations - 1,
                seed=repeat,
            )
            sample = done.posterior.representative
            rows.append(
                {
                    "n_documents": n_documents,
                    "n_tokens": n_tokens,
                    "with_context": with_context,
                    "repeat": repeat,
                    "nmi": clustering.nmi(truth.cluster, sample.cluster),
                    "clusters": sample.n_clusters,
                    "topics": sample.n_topics,
                    "seconds": done.provenance["seconds"],
                }
            )
        logger.info("repeat %d of %d: NMI %.3f with context, %.3f without", repeat + 1, repeats, *_nmi(rows[-2:]))
    return pd.DataFrame(rows)


def _nmi(rows: list[dict[str, Any]]) -> list[float]:
    return [row["nmi"] for row in rows]
