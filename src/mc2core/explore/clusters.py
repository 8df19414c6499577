"""Tables of clusters and of the cuts of their hierarchy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.explore import agreement as agreement_of
from mc2core.explore import numbers as of_numbers
from mc2core.explore.associations import Associations
from mc2core.explore.description import Description
from mc2core.explore.variables import LABEL, Variable, label_names, labels_table, variables_of
from mc2core.explore.words import Emitted, names_table, of_words, top_of, tops_of, with_same
from mc2core.posterior import Posterior, clustering

N_DOCUMENTS = 10
"""Number of typical documents per node in the tables."""
N_VALUES = 10
"""Number of the most frequent values, and of the most relevant values, per context and node or topic in the tables."""
_BLOCK = 64


def cluster_tables(description: Description) -> dict[str, pd.DataFrame]:
    """Return the tables of clusters by name.

    The names are clusters, cluster_words (for observations cluster_means), cluster_values, cluster_numbers,
    cluster_documents, cluster_labels, cluster_names, cut_clusters and hierarchy.

    The column ``cluster`` numbers the recommended clusters from 1 in order of decreasing size. Larger numbers are
    clusters of finer and coarser cuts. ``cut_clusters`` maps each larger number to a ``cut`` and the ``number`` of the
    cluster in this cut, also in order of decreasing size. ``joins`` is the cluster of the next coarser cut that
    receives most of the documents. ``certainty``, ``found`` (share of samples) and ``chains`` (number of chains)
    measure the certainty of a cluster (:mod:`mc2core.explore.agreement`). Clusters without documents have no row in
    ``cut_clusters`` and ``clusters``. Columns of contexts are named ``context_NAME``, and kept columns
    ``document_NAME``. A numeric variable has two columns, with ``_mean`` and ``_sd`` appended.
    """
    emitted = _emitted(description)
    variables = variables_of(description)
    values, numbers = _tables_of(description, variables)
    tables = {
        **emitted.tables,
        "cluster_values": values,
        "cluster_numbers": numbers,
        "cluster_documents": _find_typical(description),
        "cluster_labels": _labels(description),
    }
    rows = _rows(description, emitted)
    rows = rows.assign(**_measure_agreement(description))
    for variable in sorted(variables, key=lambda one: (one.is_number, one.name)):
        rows = _with_context(rows, variable, numbers if variable.is_number else values)
    if len(tables["cluster_labels"]):
        first = tables["cluster_labels"].groupby("cluster").first()
        rows["label"] = rows["cluster"].map(first["label"])
        rows["label_share"] = rows["cluster"].map(first["share"])
    is_occupied, is_of_cut = rows["documents"] > 0, rows["cluster"] > description.recommended
    tables["clusters"] = rows[is_occupied & ~is_of_cut].reset_index(drop=True)
    sizes = [size for size in description.first if size != description.recommended]
    keys = [(size, number + 1) for size in sizes for number in range(size)]
    places = pd.DataFrame(keys, columns=["cut", "number"], index=rows.index[is_of_cut])
    tables["cut_clusters"] = places.join(rows)[is_occupied[is_of_cut]].reset_index(drop=True)
    tables["hierarchy"] = _hierarchy(description)
    tables["cluster_names"] = names(description, emitted)[is_occupied]
    return tables


def names(description: Description, emitted: Emitted | None = None) -> pd.DataFrame:
    """Return the names of the clusters of all described clusterings (:func:`mc2core.explore.words.names_table`)."""
    sizes = [size for size in description.first for _ in range(size)]
    levels = ["recommended" if size == description.recommended else str(size) for size in sizes]
    return names_table("cluster", description.names, emitted or _emitted(description), levels)


def _rows(description: Description, emitted: Emitted) -> pd.DataFrame:
    user_names = description.names.get("cluster", {})
    sizes = np.diff(description.documents_of.indptr)
    names = [user_names.get(node + 1) or name for node, name in enumerate(emitted.names)]
    for size, first in description.first.items() if user_names else ():
        for node in chain.from_iterable(with_same(range(first, first + size), names)):
            if node + 1 in user_names:
                names[node] += f" ({emitted.names[node]})"
    return pd.DataFrame(
        {
            "cluster": np.array(description.nodes) + 1,
            "name": names,
            "documents": sizes,
            "share": sizes / description.corpus.n_documents,
            "joins": pd.arrays.IntegerArray(description.parent + 1, description.parent < 0),
            "weight": description.members @ description.posterior.cluster_weights,
            **emitted.columns,
        }
    )


def names_of(posterior: Posterior, corpus: Corpus, cluster: np.ndarray, cut: int | str) -> list[str]:
    """Return the names of the clusters of a ``cut`` (a number of clusters or "all"), as in the tables of clusters.

    ``cluster`` (J,) contains the cluster of each document of ``corpus`` in the cut (:meth:`mc2core.Posterior.assign`).
    """
    k, nobody = posterior.representative.n_clusters, np.zeros((corpus.n_documents, 0))
    size = k if isinstance(cut, str) else cut
    of_fit = np.argsort(posterior.by_size)[cluster] if size == k else np.zeros_like(cluster)
    description = Description(posterior, corpus, of_fit, nobody, {} if size == k else {size: cluster}, size, nobody)
    return _emitted(description).names[:size]


def _emitted(description: Description) -> Emitted:
    if description.is_of_observations:
        return of_numbers.clusters(description)
    cuts = [range(first, first + size) for size, first in description.first.items()]
    # words of the fit, which do not depend on the described documents
    tops = tops_of(description.node_words, np.maximum(description.node_tokens, 1), description.word_share)
    return of_words("cluster", tops, description.corpus.vocabulary, cuts, description.phrases)


def _measure_agreement(description: Description) -> dict[str, np.ndarray]:
    """Return the columns certainty, found and, for several chains, chains (:mod:`mc2core.explore.agreement`).

    The result is empty if the posterior has one sample, if the documents were not fitted, or if the model has no
    clusters.
    """
    if not description.of_samples or description.without_clusters:
        return {}
    occurs = agreement_of.found_clusters(description)
    sure = {"certainty": agreement_of.certainty(description), "found": occurs.mean(axis=0)}
    if len(description.posterior.provenance.get("chains", [])) > 1:
        sure["chains"] = agreement_of.chains_of(description, occurs)
    return sure


def _with_context(rows: pd.DataFrame, variable: Variable, table: pd.DataFrame) -> pd.DataFrame:
    """Add columns with the commonest values of a variable or, for a numeric variable, its mean and sd per cluster."""
    part = table[table["context"] == variable.name]
    if part.empty:
        return rows
    if variable.is_number:
        of_cluster = part.set_index("cluster")
        return rows.join(of_cluster[["mean", "sd"]].add_prefix(f"{variable.column}_"), on="cluster")
    common = part[part["by_share"] <= 5].sort_values(["cluster", "by_share"])
    values = common.groupby("cluster")["value"].agg("; ".join)
    return rows.assign(**{variable.column: rows["cluster"].map(values).fillna("")})


# -- contexts and labels -------------------------------------------------------------------------------------------
def _tables_of(description: Description, variables: Sequence[Variable]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables cluster_values and cluster_numbers for kept columns and contexts, used by the fit or not."""
    values, numbers = [], []
    for variable in variables:
        if variable.is_number:
            numbers += list(_numbers(description, variable))
        elif variable.role != LABEL:
            counts = sp.csr_matrix(description.documents_of @ sp.csr_matrix(variable.values, dtype=np.float64))
            base = np.asarray(variable.values.sum(axis=0), dtype=np.float64).ravel()
            base = base / max(base.sum(), 1.0)
            totals = np.asarray(counts.sum(axis=1)).ravel()
            values += list(values_of(description, "cluster", variable, counts, totals, base))
    shown = ["cluster", "context", "value", "count", "share", "lift", "by_share", "by_relevance", "is_notable"]
    spread = [
        "cluster", "context", "documents", "mean", "sd", "least", "lower_quarter", "median", "upper_quarter", "most",
    ]  # fmt: skip
    return pd.DataFrame(values, columns=shown), with_trends(
        description, "cluster", pd.DataFrame(numbers, columns=spread)
    )


def with_trends(description: Description, kind: str, numbers: pd.DataFrame) -> pd.DataFrame:
    """Add the slopes of :class:`mc2core.explore.associations.Associations` to a table of numeric variables."""
    trends = description.once(Associations).trends
    of = trends[trends["of"] == kind].drop(columns="of").rename(columns={"number": kind})
    table = numbers.merge(of, on=[kind, "context"], how="left")
    return table.assign(is_notable=table["is_notable"].eq(True))


def values_of(
    description: Description, kind: str, variable: Variable, counts: sp.csr_matrix, totals: np.ndarray, base: np.ndarray
) -> Iterator[tuple[Any, ...]]:
    """Yield rows with the most frequent and the most relevant values of a variable in each cluster or topic (``kind``).

    ``counts`` (n, V) CSR are divided by ``totals`` (n,). ``base`` (V,) is the share of each value in all documents or
    tokens, to which the lift refers.
    """
    base, associations = np.where(base > 0, base, 1.0), description.once(Associations)
    for row in np.flatnonzero(totals > 0).tolist():
        part = counts[[row]].toarray().ravel()
        top = top_of(part / totals[row], base, part > 0, N_VALUES)
        notable = associations.is_notable(kind, row, variable.name, top.column, top.lift)
        for i, column in enumerate(top.column):
            places = int(top.by_probability[i]) + 1, int(top.by_relevance[i]) + 1
            shown = part[column], top.probability[i], top.lift[i]
            yield (row + 1, variable.name, variable.names[column], *shown, *places, bool(notable[i]))


def _numbers(description: Description, variable: Variable) -> Iterator[tuple[Any, ...]]:
    for row, node in enumerate(description.nodes):
        values = variable.values[documents(description, row)]
        values = values[~np.isnan(values)]
        if len(values):
            yield (
                node + 1,
                variable.name,
                len(values),
                values.mean(),
                values.std(),
                *np.quantile(values, (0, 0.25, 0.5, 0.75, 1), method="inverted_cdf"),
            )


def documents(description: Description, row: int) -> np.ndarray:
    """Return the sorted row numbers of the documents in the node ``row``."""
    table = description.documents_of
    return np.sort(table.indices[table.indptr[row] : table.indptr[row + 1]])


def _labels(description: Description) -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = []
    if description.corpus.labels is not None:
        names = label_names(description.corpus)
        counts = (description.documents_of @ labels_table(description.corpus)).toarray()
        sizes = np.diff(description.documents_of.indptr)
        for row, node in enumerate(description.nodes):
            for label in np.argsort(-counts[row], kind="stable"):
                if counts[row, label] > 0:
                    rows.append((node + 1, names[label], int(counts[row, label]), counts[row, label] / sizes[row]))
    return pd.DataFrame(rows, columns=["cluster", "label", "documents", "share"])


def _find_typical(description: Description) -> pd.DataFrame:
    """Return the table of the N_DOCUMENTS documents with the largest overlap with each node.

    The overlap, from 0 to 1, is the sum over words of sqrt(share in the document * probability in the node). For
    observations, the sum is over topics. If the model uses embeddings, the column ``overlap`` is the mean of the
    overlap and the cosine of the document's embedding to the mean embedding of the node.
    """
    root, rows, vectors = description.document_features, [], description.document_vectors
    for start in range(0, len(description.nodes), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(description.nodes)))
        for row, features in zip(block, description.node_features(block), strict=True):
            members = documents(description, int(row))
            overlap = root[members] @ features
            if vectors is not None:
                mean = vectors[members].sum(axis=0)
                overlap = 0.5 * (overlap + vectors[members] @ mean / max(float(np.linalg.norm(mean)), 1e-300))
            best = np.argsort(-overlap, kind="stable")[:N_DOCUMENTS]
            rows += [(description.nodes[row] + 1, i + 1, members[one] + 1, overlap[one]) for i, one in enumerate(best)]
    return pd.DataFrame(rows, columns=["cluster", "rank", "document", "overlap"])


# -- cuts --------------------------------------------------------------------------------------------------------
def agreement(description: Description, size: int) -> dict[str, float]:
    """Return NMI, adjusted Rand index and purity of a cut; empty unless each document has exactly one label."""
    labels = description.corpus.labels
    if not isinstance(labels, np.ndarray):
        return {}
    measures = (clustering.nmi, clustering.adjusted_rand_index, clustering.purity)
    cluster = description.at(size)
    return dict(zip(("nmi", "ari", "purity"), (float(one(labels, cluster)) for one in measures), strict=True))


def _hierarchy(description: Description) -> pd.DataFrame:
    """Return the table of the hierarchy with one row per number of clusters, and the scores of described cuts."""
    hierarchy = description.posterior.hierarchy
    if hierarchy is None or not description.cuts:
        return pd.DataFrame()
    scores = pd.DataFrame([{"clusters": size, **agreement(description, size)} for size in description.first])
    return hierarchy.table().merge(scores, on="clusters", how="left")


def recommended_names(posterior: Posterior, cluster: np.ndarray) -> list[str]:
    """Return the names of the recommended clusters, computed from the words of the fit.

    ``cluster`` (J,) contains the recommended cluster of each document. For observations, the names are numbers.
    """
    if posterior.is_of_observations:
        return [f"cluster {number}" for number in range(1, int(cluster.max()) + 2)]
    nobody = sp.csr_matrix((1, posterior.n_words), dtype=np.int32)
    cut = "all" if posterior.hierarchy is None else posterior.hierarchy.recommended
    return names_of(posterior, Corpus(nobody, posterior.vocabulary), np.zeros(1, np.int64), cut)
