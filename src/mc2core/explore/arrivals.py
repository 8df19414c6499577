"""The table of the updates that ``mc2 update`` made to a fit."""

from __future__ import annotations

import pandas as pd

from mc2core.inference.running.drift import drift
from mc2core.posterior import Posterior

_CHANGES = ("clusters_born", "clusters_gone", "topics_born", "topics_gone")


def arrivals_table(posterior: Posterior) -> pd.DataFrame:
    """Return a table with one row per update, in the order of the updates.

    The columns are:

    - update (from 1), file, documents, and so_far (number of documents of this and all earlier updates);
    - log_likelihood (nats per word, before the model learnt from the documents);
    - in_small (share of the documents in clusters that were small or empty) and left_out (share of the tokens that have
      no column in the vocabulary);
    - clusters_born, clusters_gone, topics_born, topics_gone, and warnings (signs that the model no longer fits).
    """
    stream = posterior.provenance.get("stream", {"updates": []})
    rows, so_far = [], 0
    for number, update in enumerate(stream["updates"], start=1):
        measures = drift(stream["fitted"], stream["updates"][:number])
        so_far += update["documents"]
        row = {"update": number, "file": update["file"], "documents": update["documents"], "so_far": so_far}
        row |= {name: measures[name] for name in ("log_likelihood", "in_small", "left_out")}
        row |= {name: update[name] for name in _CHANGES}
        rows.append(row | {"warnings": "; ".join(measures["warnings"])})
    return pd.DataFrame(rows)
