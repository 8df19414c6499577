"""A corpus to its folder."""

from __future__ import annotations

import csv
import os
from typing import Any

import scipy.sparse as sp

from mc2core.base import storage
from mc2core.corpus.files import CORPUS_FILES, FORMAT, save_context, write_meta, write_names


def save(corpus: Any, folder: str | os.PathLike[str]) -> None:
    """See :meth:`mc2core.Corpus.save`; a corpus is not imported here, since it imports this."""
    meta: dict[str, Any] = {
        "format": FORMAT,
        "shape": list(corpus.content.shape),
        "n_tokens": corpus.n_tokens,
        "digest": corpus.digest,
        "contexts": {
            name: list(context.shape) if sp.issparse(context) else None for name, context in corpus.contexts.items()
        },
        "context_names": sorted(corpus.context_names),
        "units": {name: list(unit) for name, unit in corpus.units.items()},
        "labels": None
        if corpus.labels is None
        else (list(corpus.labels.shape) if sp.issparse(corpus.labels) else "one"),
    }
    if corpus.imported is not None:
        meta["imported"] = corpus.imported
    documents = corpus.documents
    meta["documents"] = {str(name): str(dtype) for name, dtype in documents.dtypes.items()}
    vocabulary, label_names = corpus.vocabulary if corpus.has_vocabulary else None, corpus.label_names
    with storage.replacing_folder(folder, CORPUS_FILES) as new:
        save_context(new, "content", corpus.content)
        for name, context in corpus.contexts.items():
            save_context(new, f"context.{name}", context)
        for name, names in corpus.context_names.items():
            write_names(new / f"context.{name}.names.txt", names)
        if corpus.labels is not None:
            save_context(new, "labels", corpus.labels)
        if label_names is not None:
            write_names(new / "label_names.txt", label_names)
        if vocabulary is not None:
            write_names(new / "vocabulary.txt", vocabulary)
        if len(documents.columns):
            # quoted, or a carriage return in a title would end the row
            documents.to_csv(new / "documents.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
        write_meta(new, meta)
