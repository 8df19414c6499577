"""Metadata of documents: contexts (of the model or not), kept columns, and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.corpus.building.cells import parse_date
from mc2core.explore.description import Description

MAX_KINDS = 200
"""Largest number of distinct values of a kept column that is treated as groups of documents."""
LONGEST = 80
"""Largest number of characters in the name of a group."""
_DATE = r"\d{4}-\d{2}(-\d{2}([ T].*)?)?"
MODELLED, CONTEXT, KEPT, LABEL = "context of the model", "context that the model did not see", "kept column", "label"


@dataclass(frozen=True)
class Variable:
    """A variable with its values for the documents.

    Attributes
    ----------
    name : str
        Unique name.
    role : str
        One of MODELLED, CONTEXT, KEPT, LABEL.
    values : (J,) float64 in their own unit, NaN where missing; or (J, V) CSR counts
    names : list of str
        Names of the V columns; empty for numbers.
    is_date : bool
        Whether numbers are dates, given as fractional years.
    """

    name: str
    role: str
    values: Any
    names: list[str]
    is_date: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers or dates rather than groups."""
        return not sp.issparse(self.values)

    @property
    def column(self) -> str:
        """Name of its column in tables such as ``documents.csv``, which cannot clash with our own columns."""
        return f"document_{self.name}" if self.role == KEPT else f"context_{self.name}"


def variables_of(description: Description) -> list[Variable]:
    """Return the contexts by name, then kept columns that are groups or numbers, then labels; vectors are left out.

    Kept columns count as dates if they have at least a month. They count as groups if their texts have at most
    ``LONGEST`` characters, and at most ``MAX_KINDS`` different values (and at most half as many as documents). They
    count as numbers if there are several values, but not a different value per document, as for ids.
    """
    corpus, variables = description.corpus, []
    imported = (corpus.imported or {}).get("settings", {}).get("contexts", ())
    for name, context in sorted(corpus.contexts.items()):
        role = MODELLED if name in description.posterior.families else CONTEXT
        if corpus.context_kinds[name] == "vector":
            continue
        if sp.issparse(context):
            variables.append(Variable(name, role, sp.csr_matrix(context), context_names(corpus, name)))
        else:
            is_date = any(re.fullmatch(rf"{re.escape(name)}(=.*)?:date", one) for one in imported)
            variables.append(Variable(name, role, own_unit(corpus, name), [], is_date))
    names = {one.name for one in variables}
    for name in map(str, corpus.documents.columns):
        variable = None if name in names else _of_column(name, corpus.documents[name])
        variables += [variable] if variable else []
    if corpus.labels is not None:
        name = "label" if all(one.name != "label" for one in variables) else "true label"
        variables.append(Variable(name, LABEL, labels_table(corpus), label_names(corpus)))
    return variables


def _of_column(name: str, column: pd.Series) -> Variable | None:
    text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
    filled = text[text != ""]
    numbers = pd.to_numeric(filled, errors="coerce")
    if len(filled) and numbers.notna().all() and np.isfinite(numbers).all():
        is_measured = numbers.nunique() > 1 and not (numbers.nunique() == len(numbers) and (numbers % 1 == 0).all())
        values = np.full(len(column), np.nan)
        values[np.flatnonzero(text != "")] = numbers
        return Variable(name, KEPT, values, []) if is_measured else None
    if len(filled) and filled.str.fullmatch(_DATE).all():
        dates = np.full(len(column), np.nan)
        try:
            dates[np.flatnonzero(text != "")] = [parse_date(one) for one in filled]
            return Variable(name, KEPT, dates, [], is_date=True)
        except ValueError:  # looks like dates
            pass
    kinds = np.unique(filled)
    if not 1 < len(kinds) <= min(MAX_KINDS, len(column) / 2) or filled.str.len().max() > LONGEST:
        return None
    rows, columns = np.flatnonzero(text != ""), np.searchsorted(kinds, filled)
    table = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(column), len(kinds)))
    return Variable(name, KEPT, table, kinds.tolist())


def context_names(corpus: Corpus, name: str) -> list[str]:
    """Return the names of the columns of a context of counts."""
    return corpus.context_names.get(name) or [f"{name} {i + 1}" for i in range(corpus.contexts[name].shape[1])]


def own_unit(corpus: Corpus, name: str) -> np.ndarray:
    """Return the (J,) values of a context of numbers in the original unit, with NaN for missing values."""
    unit = corpus.units.get(name)
    if unit is None:
        return np.asarray(corpus.contexts[name])
    # whole numbers again, after conversion to the standardised unit and back
    return np.round(np.asarray(corpus.contexts[name]) * unit[1] + unit[0], 9)


def label_names(corpus: Corpus) -> list[str]:
    """Return the names of the labels."""
    labels: Any = corpus.labels
    n = labels.shape[1] if sp.issparse(labels) else int(labels.max(initial=-1)) + 1
    return corpus.label_names or [str(label + 1) for label in range(n)]


def labels_table(corpus: Corpus) -> sp.csr_matrix:
    """Return the labels of each document, (J, labels) CSR."""
    labels: Any = corpus.labels
    if sp.issparse(labels):
        return sp.csr_matrix(labels)
    labelled = np.flatnonzero(labels >= 0)
    shape = (len(labels), len(label_names(corpus)))
    return sp.csr_matrix((np.ones(len(labelled)), (labelled, labels[labelled])), shape)
