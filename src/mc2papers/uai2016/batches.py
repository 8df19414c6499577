"""Agreement of each mini-batch's posteriors with the labels, as SVI passes over the corpus (UAI16, table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus, subsets
from mc2core.inference import SVI
from mc2core.inference.registry import specify
from mc2core.inference.svi.globals import Batch, Globals, LocalStep
from mc2core.posterior import clustering


def agreement_by_batch(
    corpus: Corpus,
    truth: str,
    *,
    model: str,
    contexts: Mapping[str, Any],
    settings: Mapping[str, Any],
    seeds: Sequence[int],
    missing: float = 0.0,
    threads: int = 1,
) -> pd.DataFrame:
    """eNMI of q(z_j) and the names of the count context ``truth``, for each mini-batch of the first epoch of SVI.

    q(z_j) is taken under the globals that the mini-batch is visited with. ``truth`` is that of the whole corpus,
    whatever the fit sees of it: ``missing`` is the share of documents whose contexts it does without. Documents without
    ``truth`` are not compared. Columns: seed, batch (from 1), documents (visited so far), enmi; NaN where none can be
    compared. ValueError where the corpus has no such context of counts.
    """
    names = corpus.contexts.get(truth)
    if not sp.issparse(names):
        raise ValueError(f"agreement of mini-batches needs the count context {truth!r}; the corpus has: "
                         f"{', '.join(corpus.contexts) or 'none'}")  # fmt: skip
    rows = []
    for seed in seeds:
        part = corpus.with_contexts({one: corpus.contexts[one] for one in contexts})
        seen = subsets.without_contexts(part, missing, seed)
        believed, engine = specify(model, "svi", settings, contexts, threads)
        engine = _following(names)(**engine.settings(), threads=threads)
        state = engine.init(believed.for_corpus(seen), seen, seed)
        while engine.advance(seen, state, seed, 1) is None:
            pass
        rows += [{"seed": seed, "batch": number, **one} for number, one in enumerate(engine.noted, 1)]
    table = pd.DataFrame(rows)
    table["documents"] = table.groupby("seed")["documents"].cumsum()
    return table


def _following(truth: sp.csr_matrix) -> Any:
    """The SVI engine that notes eNMI of each mini-batch."""

    class Following(SVI):
        def batch_step(self, corpus: Corpus, state: Globals, rows: np.ndarray, *more: Any) -> tuple[Batch, LocalStep]:
            batch, local = super().batch_step(corpus, state, rows, *more)
            known = np.diff(truth.indptr)[rows] > 0
            shares = np.asarray(local.documents.shares)[known]
            value = clustering.extended_nmi(truth[rows[known]], shares) if known.any() else np.nan
            self.__dict__.setdefault("noted", []).append({"documents": len(rows), "enmi": value})
            return batch, local

    return Following
