"""Metadata of documents: contexts (used by the model or not), kept columns, and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.corpus.building.cells import parse_date
from mc2core.corpus.checks import count_labels
from mc2core.corpus.row_blocks import indicator
from mc2core.explore.description import Description

MAX_KINDS = 200
"""Largest number of distinct values of a kept column that is treated as groups of documents."""
LONGEST = 80
"""Largest number of characters in the name of a group."""
_DATE = r"\d{4}-\d{2}(-\d{2}([ T].*)?)?"
MODELLED, CONTEXT, KEPT, LABEL = "context of the model", "context that the model did not see", "kept column", "label"


@dataclass(frozen=True)
class Variable:
    """A metadata variable with its values in the documents.

    Attributes
    ----------
    name : str
        Unique name.
    role : str
        One of MODELLED, CONTEXT, KEPT, LABEL.
    values : (J,) float64 or (J, V) CSR
        Numbers in the original unit, NaN if missing; or the count of each of the V values.
    names : list of str
        Names of the V values; empty for numbers.
    is_date : bool
        Whether the numbers are dates, given as fractional years.
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
        """Name of the variable's column in tables. The prefix keeps it apart from other columns of the table."""
        return f"document_{self.name}" if self.role == KEPT else f"context_{self.name}"


def variables_of(description: Description) -> list[Variable]:
    """Return the contexts in order of their names, then usable kept columns, then labels; vectors are left out.

    A kept column is used if it contains numbers, dates or groups. Dates must include at least the month. Groups are
    texts of at most ``LONGEST`` characters with at most ``MAX_KINDS`` distinct values, and at most half as many values
    as documents. Numbers must have several values. Whole numbers that differ in every document are taken for ids and
    not used.
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
        except ValueError:  # texts that look like dates but are not
            pass
    kinds = np.unique(filled)
    if not 1 < len(kinds) <= min(MAX_KINDS, len(column) / 2) or filled.str.len().max() > LONGEST:
        return None
    kind = np.where(text != "", np.searchsorted(kinds, text), -1)
    return Variable(name, KEPT, indicator(kind, len(kinds)), kinds.tolist())


def context_names(corpus: Corpus, name: str) -> list[str]:
    """Return the names of the values of a context of counts."""
    return corpus.context_names.get(name) or [f"{name} {i + 1}" for i in range(corpus.contexts[name].shape[1])]


def own_unit(corpus: Corpus, name: str) -> np.ndarray:
    """Return the values of a context of numbers in the original unit, (J,), NaN if missing."""
    unit = corpus.units.get(name)
    if unit is None:
        return np.asarray(corpus.contexts[name])
    # twelve digits restore whole numbers, which standardisation and its inverse change slightly
    decimals = 12 - int(np.ceil(np.log10(np.abs(unit).max())))
    return np.round(np.asarray(corpus.contexts[name]) * unit[1] + unit[0], min(decimals, 300))


def label_names(corpus: Corpus) -> list[str]:
    """Return the names of the labels, or their numbers from 1 if they have no names."""
    return corpus.label_names or [str(label + 1) for label in range(count_labels(corpus.labels))]


def labels_table(corpus: Corpus) -> sp.csr_matrix:
    """Return the indicator of the labels of each document, (J, labels) CSR."""
    labels: Any = corpus.labels
    if sp.issparse(labels):
        return sp.csr_matrix(labels)
    return indicator(labels, len(label_names(corpus)))
