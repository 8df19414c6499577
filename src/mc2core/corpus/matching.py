"""Check that a corpus has the words and contexts of a model, and convert its contexts to the units of the model.

Names are compared, not only numbers of columns. Otherwise, columns with another meaning would give wrong scores and
clusters without an error.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import counted
from mc2core.corpus.checks import Unit, placeholders

if TYPE_CHECKING:
    from mc2core.corpus import Corpus

logger = logging.getLogger(__name__)
#: largest number of differences that a message shows
_SHOWN = 3
_HELP = "mc2 import --like and, in Python, Corpus.from_dataframe(like=model) read documents in the columns of a model"
_OWN_UNIT = (0.0, 1.0)


def named(names: Sequence[str] | None) -> list[str] | None:
    """Return ``names`` as a list; None if there are no names, or only the placeholders of words without names."""
    if names is None or not len(names):
        return None
    if names[0] == placeholders(1)[0] and list(names) == placeholders(len(names)):
        return None
    return names if isinstance(names, list) else list(names)


def check_columns(
    subject: str,
    what: str,
    fitted: Sequence[str] | None,
    found: Sequence[str] | None,
    n_fitted: int,
    n_found: int,
    is_fitted: Callable[[], bool] = lambda: False,
) -> None:
    """Check that a corpus has the same columns as a model.

    If the model or the corpus has no names of columns, only the numbers of columns are compared, and a warning is
    logged once.

    Parameters
    ----------
    subject, what : str
        Words for messages, such as "the corpus" and "words", or "context 'author'" and "columns".
    fitted, found : sequence of str or None
        Names of the columns of the model and of the corpus; None or placeholders if columns have no names.
    n_fitted, n_found : int
        Number of columns of the model and of the corpus.
    is_fitted : callable
        Function that returns whether the corpus is the fitted corpus, for which no warning is needed.

    Raises
    ------
    ValueError
        If the number or the names of columns differ. The message has the first differences.
    """
    one, other = named(fitted), named(found)
    is_same = found is not None and fitted is not None and list(fitted) == list(found)
    if n_fitted == n_found and (is_same or (one is other and is_fitted())):
        return
    shown = "" if one is None or other is None else f": {_differences(what.removesuffix('s'), one, other)}; {_HELP}"
    if n_fitted != n_found:
        raise ValueError(f"{subject} has {counted(n_found, what)}, but the model was fitted on {n_fitted:,}{shown}")
    if shown:
        raise ValueError(f"{subject} has other {what} than the model was fitted on{shown}")
    side = "either" if one is other else "the model" if one is None else "the corpus"
    compared = f"{subject} and the model were compared by the number of {what} ({n_found:,}) only"
    _warn(f"{compared}, because {what} have no names in {side}")


def _differences(what: str, fitted: Sequence[str], names: Sequence[str]) -> str:
    pairs = ((index, *pair) for index, pair in enumerate(zip_longest(fitted, names)) if pair[0] != pair[1])
    return ", ".join(
        f"{what} {index} is {_show(one)} in the model and {_show(other)} in the corpus"
        for index, one, other in islice(pairs, _SHOWN)
    )


def _show(name: str | None) -> str:
    return "none" if name is None else repr(name) if len(name) <= 40 else repr(name[:37] + "...")


@functools.cache
def _warn(message: str) -> None:
    """Log a warning once per process."""
    logger.warning(message)


def check_length(name: str, found: int, what: str, known: int) -> None:
    """Raise ValueError unless the vectors of context ``name`` have ``known`` coordinates, as in ``what``."""
    if found != known:
        size = counted(found, "numbers")
        raise ValueError(f"context {name!r} has vectors with {size}, but {known:,} in {what}")


def in_units(corpus: Corpus, names: Iterable[str], units: Mapping[str, Unit]) -> Corpus:
    """Return ``corpus`` with its contexts of numbers and vectors in ``names`` converted to the given units.

    ``units`` is {name: (mean, sd)}, as in a corpus. A context without an entry is converted to the original unit.
    """
    moved = {}
    for name in names:
        context = corpus.contexts.get(name)
        (mean, sd), (centre, scale) = corpus.units.get(name, _OWN_UNIT), units.get(name, _OWN_UNIT)
        if context is not None and not sp.issparse(context) and (mean, sd) != (centre, scale):
            values = np.asarray(context) * np.asarray(sd) + np.asarray(mean)
            moved[name] = (values - np.asarray(centre)) / np.asarray(scale)
    if not moved:
        return corpus
    changed = corpus.with_contexts(corpus.contexts | moved)
    unchanged = {name: unit for name, unit in corpus.units.items() if name not in moved}
    changed.units = unchanged | {name: units[name] for name in moved if name in units}
    return changed


def as_stored(part: Corpus, whole: Corpus) -> Corpus:
    """Return ``part``, a subset of ``whole``, with arrays of the same types, for which kernels are already compiled.

    The types differ if ``whole`` is memory-mapped: its arrays are read-only and have 64-bit row pointers.
    """
    pairs = [(part.content, whole.content), *((part.contexts[name], whole.contexts[name]) for name in part.contexts)]
    for table, stored in pairs:
        if sp.issparse(table):
            for name in ("indptr", "indices", "data"):
                array, original = getattr(table, name), getattr(stored, name)
                setattr(table, name, array.astype(original.dtype))
                getattr(table, name).setflags(write=original.flags.writeable)
        else:
            table.setflags(write=stored.flags.writeable)
    return part
