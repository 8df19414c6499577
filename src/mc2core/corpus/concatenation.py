"""Concatenation of corpora, whose words and context values are matched by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import several, shown
from mc2core.corpus import alignment
from mc2core.corpus.checks import Context, count_labels
from mc2core.corpus.embeddings import KEY
from mc2core.corpus.row_blocks import with_columns

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.corpus.building.rows import Make


def concatenate(make: Make, corpora: Iterable[Corpus]) -> Corpus:
    """Implement :meth:`mc2core.Corpus.concatenate`."""
    corpora = several("corpora", corpora)
    for corpus in corpora:
        if not hasattr(corpus, "observations"):
            raise ValueError(f"corpora holds {shown(corpus)}; a list of Corpus is needed")
    if not corpora:
        raise ValueError("there are no corpora to concatenate")
    if any(corpus.observations is not None for corpus in corpora):
        raise ValueError("corpora of observations are not concatenated: give all rows to Corpus.from_observations")
    embeddings = [one for corpus in corpora if (one := (corpus.imported or {}).get(KEY)) is not None]
    if any(one != embeddings[0] for one in embeddings):
        raise ValueError("embeddings of the corpora were reduced differently: read the others with the first as like=")
    schema, units = alignment.schema_of(corpora[0]), dict(corpora[0].units)
    schema = replace(schema, embeddings=embeddings[0] if embeddings else None)
    for corpus in corpora[1:]:
        added = alignment.schema_of(corpus)
        new = [name for name in corpus.contexts if name not in schema.columns and name not in schema.vectors]
        units |= {name: corpus.units[name] for name in new if name in corpus.units}
        schema = replace(
            schema,
            columns={**schema.columns, **{name: added.columns[name] for name in new if name in added.columns}},
            vectors={**schema.vectors, **{name: added.vectors[name] for name in new if name in added.vectors}},
        )
        schema, _ = alignment.extended(replace(schema, units=units), corpus, 1)
    parts = [alignment.reindex_to_schema(make, corpus, schema)[0] for corpus in corpora]
    labels, label_names = _labels(corpora)
    united: Corpus = make(
        sp.vstack([part.content for part in parts], format="csr"),
        schema.words,
        {name: _stack([part.contexts[name] for part in parts]) for name in parts[0].contexts},
        labels,
        _documents([part.documents for part in parts]),
        context_names=parts[0].context_names,
        label_names=label_names,
        units=units,
    )
    united.imported = corpora[0].imported
    if embeddings:
        united.imported = (united.imported or {"form": "", "settings": {}}) | {KEY: embeddings[0]}
    if any(corpus.index is not None for corpus in corpora):
        first, *others = [corpus.documents.index for corpus in corpora]
        united.set_index(first.append(others))
    return united


def _stack(contexts: Sequence[Context]) -> Context:
    return sp.vstack(contexts, format="csr") if sp.issparse(contexts[0]) else np.concatenate(contexts)


def _documents(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables. Texts in columns that a table lacks are empty."""
    table = pd.concat(tables, ignore_index=True)
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].fillna("")
    return table


def _labels(corpora: Sequence[Corpus]) -> tuple[Any, list[str] | None]:
    """Return the labels of all corpora, matched by name, and the names. Raises ValueError if kinds of labels differ."""
    kinds = [_kind(corpus) for corpus in corpora]
    for number, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ValueError(f"corpus {number} has {kind}, but corpus 0 has {kinds[0]}")
    if corpora[0].labels is None:
        return None, None
    names = None
    if corpora[0].label_names is not None:
        names = list(dict.fromkeys(name for corpus in corpora for name in corpus.label_names or ()))
    number_of: Any = pd.Index(names or range(max(count_labels(corpus.labels) for corpus in corpora)))
    numbers = [number_of.get_indexer(number_of if names is None else corpus.label_names) for corpus in corpora]
    pairs = [(corpus.labels, number) for corpus, number in zip(corpora, numbers, strict=True)]
    if not sp.issparse(corpora[0].labels):
        return np.concatenate([number[labels] for labels, number in pairs]), names
    parts = [with_columns(labels, number, len(number_of)) for labels, number in pairs]
    return sp.vstack(parts, format="csr"), names


def _kind(corpus: Corpus) -> str:
    if corpus.labels is None:
        return "no labels"
    phrase = "labels with names" if corpus.label_names is not None else "labels without names"
    return f"several {phrase} per document" if sp.issparse(corpus.labels) else phrase
