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
    run: Mapping[str, Any],
    *,
    noise: float,
    repeats: int,
    iterations: int,
    threads: int = 1,
) -> pd.DataFrame:
    """Draw ``repeats`` corpora, fit each with and without its context, and compare clusters with the truth.

    Parameters
    ----------
    n_documents, n_tokens, noise : see :func:`mc2papers.datasets.simulated.letters.simulate`; the seed is the repeat.
    run : ``fit`` of a run of :func:`mc2papers.configuration.read_experiments`; the context is ``number``.

    Returns
    -------
    One row per fit, with the columns n_documents, n_tokens, with_context, repeat, nmi (of the representative sample),
    clusters, topics and seconds. Each repeat is fitted with and without context.
    """
    rows: list[dict[str, Any]] = []
    for repeat in range(repeats):
        corpus, truth = letters.simulate(repeat, n_documents, n_tokens, noise)
        for with_context in (True, False):
            used = run["contexts"] if with_context else {}
            done = fit(
                corpus.with_contexts({name: corpus.contexts[name] for name in used}),
                *specify(run["model"], run["engine"], run["settings"], used, threads),
                iterations=iterations,
                burn_in=iterations - 1,
                seed=repeat,
            )
            sample = done.posterior.representative
            about = {"n_documents": n_documents, "n_tokens": n_tokens, "with_context": with_context, "repeat": repeat}
            found = {"clusters": sample.n_clusters, "topics": sample.n_topics, "seconds": done.provenance["seconds"]}
            rows.append(about | {"nmi": clustering.nmi(truth.cluster, sample.cluster)} | found)
        nmi = [row["nmi"] for row in rows[-2:]]
        logger.info("repeat %d of %d: NMI %.3f with context, %.3f without", repeat + 1, repeats, *nmi)
    return pd.DataFrame(rows)
