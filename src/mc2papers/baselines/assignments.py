"""Assignments of documents to clusters, which are the result of a method without a model of words, and their scores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2core.corpus import Corpus
from mc2core.posterior.scores import agreement

_DOCUMENT = "document"


@dataclass(frozen=True)
class Assignments:
    """Clusters of the training documents, in one or several solutions.

    Attributes
    ----------
    solutions : mapping of names to (J,) int
        Cluster of each document, at least 0. The name of a solution with 10 clusters is "k10". The name is "cluster" if
        the method infers the number of clusters.
    """

    solutions: Mapping[str, np.ndarray]

    @property
    def n_documents(self) -> int:
        """Number J of documents."""
        return len(next(iter(self.solutions.values())))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a tab-separated file by an atomic replacement: one row per document and one column per solution."""
        table = np.column_stack([np.arange(self.n_documents), *self.solutions.values()])
        with storage.replacing(path) as stream:
            stream.write("\t".join((_DOCUMENT, *self.solutions)) + "\n")
            np.savetxt(stream, table, fmt="%d", delimiter="\t")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Assignments:
        """Read a file that :meth:`save` wrote. Raises ValueError with the line number if a line is not valid."""
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        header = lines[0].split("\t") if lines else []
        if header[:1] != [_DOCUMENT] or len(set(header)) < len(header) or len(header) < 2 or len(lines) < 2:
            raise ValueError(f"{path} holds no assignments: a header 'document', solutions and a row for each document")
        table = np.empty((len(lines) - 1, len(header)), np.int64)
        for number, line in enumerate(lines[1:]):
            where, fields = f"{path}, line {number + 2}", line.split("\t")
            if len(fields) != len(header) or not all(one.isascii() and one.isdigit() for one in fields):
                raise ValueError(f"{where}: {line!r} is not {len(header)} whole numbers of at least 0")
            table[number] = [int(one) for one in fields]
            if table[number, 0] != number:
                raise ValueError(f"{where}: found document {table[number, 0]}; document {number} is needed")
        return cls({name: table[:, column] for column, name in enumerate(header) if column})


def evaluate_assignments(assignments: Assignments, train: Corpus, test: Corpus | None) -> dict[str, Any]:
    """Return scores in the form of :func:`mc2core.posterior.scores.evaluate`, without topics and perplexity.

    ``solutions`` has the name and the number of clusters of each solution and, if the train part has labels, its
    agreement with them. Raises ValueError if the assignments do not belong to the train part.
    """
    if assignments.n_documents != train.n_documents:
        raise ValueError(
            f"the corpus has {train.n_documents} documents, but the assignments have {assignments.n_documents}"
        )
    solutions: list[dict[str, Any]] = []
    for name, cluster in assignments.solutions.items():
        solution: dict[str, Any] = {"solution": name, "clusters": len(np.unique(cluster))}
        if isinstance(train.labels, np.ndarray):
            solution |= agreement(train.labels, cluster)
        solutions.append(solution)
    return {
        "clusters": None,
        "topics": None,
        "samples": None,
        "train_documents": train.n_documents,
        "test_documents": 0 if test is None else test.n_documents,
        "estimator": None,
        "perplexity": {},
        "solutions": solutions,
    }
