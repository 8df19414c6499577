"""Measure the agreement of clusters with labels for each mini-batch in an epoch of SVI (UAI16, tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus, subsets
from mc2core.inference import SVI
from mc2core.inference.registry import specify
from mc2core.inference.svi.documents import Batch
from mc2core.inference.svi.globals import Globals, LocalStep
from mc2core.posterior import clustering

#: measures of agreement; table 4 of UAI16 prints exchanged_purity as purity
MEASURES = {
    "purity": clustering.purity,
    "nmi": clustering.nmi,
    "rand_index": clustering.rand_index,
    "f_score": clustering.f_score,
    "exchanged_purity": lambda truth, clusters: clustering.purity(clusters, truth),
}


def agreement_by_batch(
    corpus: Corpus,
    truth: str | None,
    run: Mapping[str, Any],
    *,
    seeds: Sequence[int],
    missing: float = 0.0,
    threads: int = 1,
) -> pd.DataFrame:
    """Return the agreement of the clusters with a truth, for each mini-batch of the first epoch of SVI.

    Clusters are the posteriors q(z_j) given the global parameters before the mini-batch. If ``truth`` is the name of a
    count context, the measure is the eNMI with the names in this context. If ``truth`` is None, the likeliest clusters
    are compared with the labels of the corpus by MEASURES.

    ``run`` is ``fit`` of a run of :func:`mc2papers.configuration.read_experiments`.
    ``missing`` is the fraction of documents whose contexts the fit does not use; the truth always uses all contexts.
    Documents without a truth are not compared. The columns are seed, batch (from 1), documents (visited so far), and
    enmi (NaN if no document can be compared) or clusters and MEASURES. Raises ValueError if the corpus lacks this
    context, or labels.
    """
    names = corpus.labels if truth is None else corpus.contexts.get(truth)
    if truth is None and not isinstance(names, np.ndarray):
        raise ValueError("agreement of mini-batches needs one label for each document")
    if truth is not None and not sp.issparse(names):
        has = ", ".join(corpus.contexts) or "none"
        raise ValueError(f"agreement of mini-batches needs the count context {truth!r}; the corpus has: {has}")
    rows = []
    for seed in seeds:
        part = corpus.with_contexts({one: corpus.contexts[one] for one in run["contexts"]})
        seen = subsets.without_contexts(part, missing, seed)
        believed, engine = specify(run["model"], "svi", run["settings"], run["contexts"], threads)
        engine = _following(names)(**engine.settings(), threads=threads)
        state = engine.init(believed.for_corpus(seen), seen, seed)
        while engine.advance(seen, state, seed, 1) is None:
            pass
        rows += [{"seed": seed, "batch": number, **one} for number, one in enumerate(engine.noted, 1)]
    table = pd.DataFrame(rows)
    table["documents"] = table.groupby("seed")["documents"].cumsum()
    return table


def _following(truth: Any) -> Any:
    """Return a subclass of the SVI engine that records the agreement of each mini-batch."""

    class Following(SVI):
        def batch_step(self, corpus: Corpus, state: Globals, rows: np.ndarray, *more: Any) -> tuple[Batch, LocalStep]:
            batch, local = super().batch_step(corpus, state, rows, *more)
            shares = np.asarray(local.documents.shares)
            found: dict[str, float] = {"documents": len(rows)}
            if sp.issparse(truth):
                known = np.diff(truth.indptr)[rows] > 0
                is_any = known.any()
                found["enmi"] = clustering.extended_nmi(truth[rows[known]], shares[known]) if is_any else np.nan
            else:
                likeliest = shares.argmax(axis=1)
                found |= {name: score(truth[rows], likeliest) for name, score in MEASURES.items()}
                found["clusters"] = len(np.unique(likeliest))
            self.__dict__.setdefault("noted", []).append(found)
            return batch, local

    return Following
