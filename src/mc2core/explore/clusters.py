"""Tables of clusters and of their levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.explore.description import Description
from mc2core.explore.words import often_enough, said, top_of, words_table
from mc2core.posterior import clustering

N_DOCUMENTS = 10
"""Most typical documents of a node in the tables."""
N_VALUES = 10
"""Commonest values of a context, and as many by lift."""
_BLOCK = 64


def cluster_tables(description: Description) -> dict[str, pd.DataFrame]:
    """Tables by name: clusters, cluster_words, cluster_values, cluster_numbers, cluster_documents, cluster_labels,
    level_clusters, levels.

    ``cluster`` counts from 1; numbers above K are clusters of levels, as ``level_clusters`` says. A cluster without a
    document has no row in it, nor in ``clusters``.
    """
    words, lines = _words(description)
    values, numbers = _contexts(description)
    tables = {
        "cluster_words": words,
        "cluster_values": values,
        "cluster_numbers": numbers,
        "cluster_documents": _typical(description),
        "cluster_labels": _labels(description),
    }
    rows = _rows(description, lines)
    for name, table in (("values", values), ("numbers", numbers)):
        if len(table):
            rows = _with_contexts(rows, table, name)
    if len(tables["cluster_labels"]):
        first = tables["cluster_labels"].groupby("cluster").first()
        rows["label"] = rows["cluster"].map(first["label"])
        rows["label_share"] = rows["cluster"].map(first["share"])
    met, is_of_level = rows["documents"] > 0, rows["cluster"] > description.n_clusters
    tables["clusters"] = rows[met & ~is_of_level].reset_index(drop=True)
    place = [(size, number + 1) for size in description.levels for number in range(size)]
    places = pd.DataFrame(place, columns=["level", "number"], index=rows.index[is_of_level])
    tables["level_clusters"] = places.join(rows)[met[is_of_level]].reset_index(drop=True)
    tables["levels"] = _levels(description)
    return tables


def _rows(description: Description, lines: list[tuple[str, str]]) -> pd.DataFrame:
    sizes = np.diff(description.documents_of.indptr)
    return pd.DataFrame(
        {
            "cluster": np.array(description.nodes) + 1,
            "documents": sizes,
            "share": sizes / description.corpus.n_documents,
            "weight": description.members @ description.posterior.cluster_weights,
            "words": [likely for likely, _ in lines],
            "distinctive_words": [lifted for _, lifted in lines],
        }
    )


def _with_contexts(rows: pd.DataFrame, table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """A column for each context: its commonest values, or its mean and sd."""
    for name, part in table.groupby("context", sort=True):
        if kind == "numbers":
            of_cluster = part.set_index("cluster")
            rows = rows.join(of_cluster[["mean", "sd"]].add_prefix(f"{name}_"), on="cluster")
        else:
            common = part[part["by_share"] <= 5].sort_values(["cluster", "by_share"])
            rows[f"{name}"] = rows["cluster"].map(common.groupby("cluster")["value"].agg("; ".join)).fillna("")
    return rows


def _words(description: Description) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    vocabulary, parts, lines = description.corpus.vocabulary, [], []
    tokens = description.documents_of @ description.corpus.document_lengths
    for start in range(0, len(description.nodes), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(description.nodes)))
        for row, probability in zip(rows, description.node_words(rows), strict=True):
            top = top_of(probability, description.word_share, often_enough(probability * max(tokens[row], 1)))
            lines.append((said(vocabulary, top, top.by_probability), said(vocabulary, top, top.by_lift)))
            parts.append((description.nodes[row] + 1, top))
    return words_table("cluster", parts, vocabulary), lines


# -- contexts and labels -------------------------------------------------------------------------------------------
def context_names(corpus: Any, name: str) -> list[str]:
    """What the columns of a context of counts are called."""
    return corpus.context_names.get(name) or [f"{name} {i + 1}" for i in range(corpus.contexts[name].shape[1])]


def own_unit(corpus: Any, name: str) -> np.ndarray:
    """(J,) values of a context of numbers in their own unit, NaN where missing."""
    centre, sd = corpus.units.get(name, (0.0, 1.0))
    return np.asarray(corpus.contexts[name]) * sd + centre


def _contexts(description: Description) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the documents of each node have, whether the fit looked at it or not."""
    values, numbers = [], []
    for name, context in sorted(description.corpus.contexts.items()):
        if sp.issparse(context):
            values += list(_values(description, name, context))
        else:
            numbers += list(_numbers(description, name))
    return (
        pd.DataFrame(values, columns=["cluster", "context", "value", "count", "share", "lift", "by_share", "by_lift"]),
        pd.DataFrame(numbers, columns=["cluster", "context", "documents", "mean", "sd", "least", "most"]),
    )


def _values(description: Description, name: str, context: Any) -> Iterator[tuple[Any, ...]]:
    counts = sp.csr_matrix(description.documents_of @ sp.csr_matrix(context, dtype=np.float64))
    base = np.asarray(context.sum(axis=0), dtype=np.float64).ravel()
    base, names = base / max(base.sum(), 1.0), context_names(description.corpus, name)
    for row, node in enumerate(description.nodes):
        part = counts[[row]].toarray().ravel()
        if part.any():
            top = top_of(part / part.sum(), np.where(base > 0, base, 1.0), part > 0, N_VALUES)
            for i, column in enumerate(top.column):
                places = int(top.by_probability[i]) + 1, int(top.by_lift[i]) + 1
                yield (node + 1, name, names[column], part[column], top.probability[i], top.lift[i], *places)


def _numbers(description: Description, name: str) -> Iterator[tuple[Any, ...]]:
    values = own_unit(description.corpus, name)
    for row, node in enumerate(description.nodes):
        met = values[documents(description, row)]
        met = met[~np.isnan(met)]
        if len(met):
            yield node + 1, name, len(met), met.mean(), met.std(), met.min(), met.max()


def documents(description: Description, row: int) -> np.ndarray:
    """The documents of the node in this row."""
    table = description.documents_of
    return np.sort(table.indices[table.indptr[row] : table.indptr[row + 1]])


def label_names(corpus: Any) -> list[str]:
    """What the labels are called."""
    n = corpus.labels.shape[1] if sp.issparse(corpus.labels) else int(corpus.labels.max(initial=-1)) + 1
    return corpus.label_names or [str(label + 1) for label in range(n)]


def _labels(description: Description) -> pd.DataFrame:
    labels, rows = description.corpus.labels, []
    if labels is not None:
        names = label_names(description.corpus)
        if not sp.issparse(labels):
            labels = sp.csr_matrix((np.ones(len(labels)), (np.arange(len(labels)), labels)), (len(labels), len(names)))
        counts = (description.documents_of @ sp.csr_matrix(labels)).toarray()
        sizes = np.diff(description.documents_of.indptr)
        for row, node in enumerate(description.nodes):
            for label in np.argsort(-counts[row], kind="stable"):
                if counts[row, label] > 0:
                    rows.append((node + 1, names[label], int(counts[row, label]), counts[row, label] / sizes[row]))
    return pd.DataFrame(rows, columns=["cluster", "label", "documents", "share"])


def _typical(description: Description) -> pd.DataFrame:
    """Overlap: sum over words of sqrt(share in the document * probability in the node), from 0 to 1."""
    content = sp.csr_matrix(description.corpus.content, dtype=np.float64)
    lengths = np.maximum(description.corpus.document_lengths, 1)
    root = sp.csr_matrix(sp.diags(1.0 / lengths) @ content)
    root.data = np.sqrt(root.data)
    rows = []
    for start in range(0, len(description.nodes), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(description.nodes)))
        for row, probability in zip(block, description.node_words(block), strict=True):
            own = documents(description, int(row))
            overlap = root[own] @ np.sqrt(probability)
            best = np.argsort(-overlap, kind="stable")[:N_DOCUMENTS]
            rows += [(description.nodes[row] + 1, i + 1, own[one] + 1, overlap[one]) for i, one in enumerate(best)]
    return pd.DataFrame(rows, columns=["cluster", "rank", "document", "overlap"])


# -- levels --------------------------------------------------------------------------------------------------------
def agreement(description: Description, size: int) -> dict[str, float]:
    """Scores against the labels where there are ``size`` clusters; none where there are no labels of one each."""
    labels = description.corpus.labels
    if not isinstance(labels, np.ndarray):
        return {}
    measures = (clustering.nmi, clustering.adjusted_rand_index, clustering.purity)
    found = description.at(size)
    return dict(zip(("nmi", "ari", "purity"), (float(one(labels, found)) for one in measures), strict=True))


def _levels(description: Description) -> pd.DataFrame:
    """A row for each size (:meth:`mc2core.posterior.levels.Levels.table`), those described with their scores."""
    kept = description.posterior.levels
    if kept is None or not description.levels:
        return pd.DataFrame()
    scores = pd.DataFrame([{"clusters": size, **agreement(description, size)} for size in description.first])
    return kept.table().merge(scores, on="clusters", how="left")
