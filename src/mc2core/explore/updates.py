"""Tables of an update: clusters before and after the update, and added documents."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mc2core.corpus import Corpus
from mc2core.corpus.alignment import reindex_to_schema, schema_of
from mc2core.explore.clusters import names_of
from mc2core.posterior import Posterior


def changed_clusters(before: Posterior, after: Posterior, new: Corpus) -> pd.DataFrame:
    """Return a table with one row per recommended cluster of an updated fit.

    The columns are cluster (from 1), name, before (number of documents before the update), documents (number after the
    update), added (number of added documents), and new ("yes" for a cluster that the update added). Old clusters have
    the same numbers and names as in ``before``. The argument ``new`` contains the added documents (folder ``added`` of
    the update).
    """
    update = after.provenance["updates"][-1]
    old, all_of_them = np.array(update["sizes_before"]), np.array(update["sizes"])
    n_old = update["n_old_clusters"]
    nobody = np.zeros(new.n_documents, np.int64)
    cuts = ["all" if one.hierarchy is None else one.hierarchy.recommended for one in (before, after)]
    names = names_of(after, new, nobody, cuts[1])[: len(all_of_them)]
    if before.vocabulary == after.vocabulary[: before.n_words]:
        in_old_columns, _ = reindex_to_schema(Corpus, new, schema_of(before))
        names[:n_old] = names_of(before, in_old_columns, nobody, cuts[0])[:n_old]
    return pd.DataFrame(
        {
            "cluster": np.arange(1, len(all_of_them) + 1),
            "name": names,
            "before": old,
            "documents": all_of_them,
            "added": all_of_them - old,
            "new": np.where(np.arange(len(all_of_them)) < n_old, "", "yes"),
        }
    )


def added_documents(after: Posterior, new: Corpus, clusters: pd.DataFrame) -> pd.DataFrame:
    """Return a table with one row per added document of an updated fit.

    The columns are document (from 1), cluster and cluster_name (the recommended cluster), new ("yes" if the cluster is
    new), probability, second and second_probability (the second likeliest cluster), and the kept columns of the import.
    """
    n_before = after.provenance["updates"][-1]["before"]
    names, is_new = clusters["name"].to_numpy(), clusters["new"].to_numpy()
    table = {"document": np.arange(1, new.n_documents + 1)}
    if after.hierarchy is None:
        cluster = after.by_size[after.cluster[n_before:]]
        table |= {"cluster": cluster + 1, "cluster_name": names[cluster], "new": is_new[cluster]}
    else:
        size = after.hierarchy.recommended
        cluster, shares = after.hierarchy.cut(size)[n_before:], after.hierarchy.shares_of_added(size)  # type: ignore[attr-defined]
        rows = np.arange(len(cluster))
        table |= {"cluster": cluster + 1, "cluster_name": names[cluster], "new": is_new[cluster]}
        table["probability"] = shares[rows, cluster].round(4)
        if size > 1:
            other_shares = shares.copy()
            other_shares[rows, cluster] = -1.0
            second = other_shares.argmax(axis=1)
            table |= {"second": second + 1, "second_probability": shares[rows, second].round(4)}
    metadata = new.documents.add_prefix("document_").reset_index(drop=True)
    return pd.DataFrame(table).join(metadata)
