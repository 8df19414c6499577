"""Whether a corpus matches a model: the same words, context columns and units; and conversions that make it match.

Names are compared, not only sizes, because columns with another meaning would give wrong scores and clusters without an
error.
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
#: differences that a message shows
_SHOWN = 3
_HELP = "mc2 import --like and, in Python, Corpus.from_dataframe(like=model) read documents in the columns of a model"
_OWN_UNIT = (0.0, 1.0)


def named(names: Sequence[str] | None) -> list[str] | None:
    """Return ``names`` as a list; None if there are none, or only the placeholders of a corpus without a vocabulary."""
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
    """Compare the columns of a model with those of a corpus.

    Parameters
    ----------
    subject, what : of the message, "the corpus" and "words", or "context 'author'" and "columns".
    fitted, found : names of the model's and of the corpus' columns; None or placeholders where they have no names:
        sizes are compared then, and a warning is logged, once.
    is_fitted : whether the corpus is the fitted one; without any names, there is no warning then.

    Raises
    ------
    ValueError
        If the number or the names of columns differ; the message has the first difference, with its number from 0.
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
    """Log a warning, each one once in a process."""
    logger.warning(message)


def check_length(name: str, found: int, what: str, known: int) -> None:
    """Raise ValueError unless the vectors of context ``name`` have ``known`` coordinates, as in ``what``."""
    if found != known:
        size = counted(found, "numbers")
        raise ValueError(f"context {name!r} has vectors with {size}, but {known:,} in {what}")


def in_units(corpus: Corpus, names: Iterable[str], units: Mapping[str, Unit]) -> Corpus:
    """Return ``corpus`` with the contexts ``names`` of numbers and vectors in the given units.

    ``units`` : {name: (mean, sd)} as in a corpus; a context without an entry keeps its original unit.
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
    """Return ``part`` of the corpus ``whole`` with arrays of the same types, for which kernels are compiled.

    A memory-mapped corpus has read-only arrays and wide row pointers, but its subsets do not.
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
