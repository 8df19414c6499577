"""Local steps of SVI: posteriors of the documents of a mini-batch, for each of the three variants of SVI."""

from __future__ import annotations

from concurrent.futures import Executor

from mc2core.inference.svi.assign import Assign, assign_documents
from mc2core.inference.svi.documents import Batch
from mc2core.inference.svi.globals import Globals, LocalStep
from mc2core.inference.svi.local import direct, document_level, tables


def local_step(state: Globals, batch: Batch, pool: Executor | None, assign: Assign = assign_documents) -> LocalStep:
    """Run the local step of the variant of ``state``.

    Without a document level, the function ``assign`` computes the responsibilities of clusters.
    """
    if state.documents is not None:
        return document_level.local_step(state, batch, pool)
    step = direct.local_step if state.settings.n_tables is None else tables.local_step
    return step(state, batch, pool, assign)
