"""What came to a fit after it was made: the updates of ``mc2 update``, one after another."""

from __future__ import annotations

import pandas as pd

from mc2core.inference.running.drift import drift
from mc2core.posterior import Posterior

_CHANGES = ("clusters_born", "clusters_gone", "topics_born", "topics_gone")


def arrivals_table(posterior: Posterior) -> pd.DataFrame:
    """A row for each update, the first one first; none where there was none.

    update (from 1), file, documents, so_far (with those of earlier updates), log_likelihood (nats a word, before they
    were learnt from), in_small (share of the documents in clusters that were small or empty), left_out (share of the
    tokens without a column), clusters_born, clusters_gone, topics_born, topics_gone, warnings (sentences on how the
    model no longer fits, one after another).
    """
    stream = posterior.provenance.get("stream", {"updates": []})
    rows, so_far = [], 0
    for number, one in enumerate(stream["updates"], start=1):
        seen = drift(stream["fitted"], stream["updates"][:number])
        so_far += one["documents"]
        row = {"update": number, "file": one["file"], "documents": one["documents"], "so_far": so_far}
        row |= {name: seen[name] for name in ("log_likelihood", "in_small", "left_out")}
        row |= {name: one[name] for name in _CHANGES}
        rows.append(row | {"warnings": "; ".join(seen["warnings"])})
    return pd.DataFrame(rows)
