"""Checks of single values, for constructors, configurations and commands.

A check returns the value, or raises ValueError with a message of one sentence.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

#: Range of concentrations and prior counts. Values outside this range give the same results as its bounds, because
#: counts of data are below 2**31. Log-gamma functions of larger numbers also lose the digits that differences need.
MIN_PRIOR, MAX_PRIOR = 1e-10, 1e10


#: range of values that are proportional to the unit of a number or to the square of the unit
MIN_SCALE, MAX_SCALE = 1e-50, 1e50


def prior_count(name: str, value: Any) -> float:
    """Return ``value`` as a float. Raises ValueError unless it is a number from 1e-10 to 1e10."""
    return _check_range(name, value, MIN_PRIOR, MAX_PRIOR)


def prior_scale(name: str, value: Any) -> float:
    """Return ``value`` as a float. Raises ValueError unless it is a number from 1e-50 to 1e50."""
    return _check_range(name, value, MIN_SCALE, MAX_SCALE)


def _check_range(name: str, value: Any, least: float, most: float) -> float:
    number = positive(name, value)
    if not least <= number <= most:
        raise ValueError(f"{name} is {value!r}; it must lie between {least:g} and {most:g}")
    return number


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float. Raises ValueError unless it is a number from 0 to 1."""
    number = finite(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} is {value!r}; it must lie between 0 and 1")
    return number


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a float. Raises ValueError unless it is a finite number above 0."""
    return finite(name, value, above=0.0)


def finite(name: str, value: Any, above: float = -np.inf) -> float:
    """Return ``value`` as a float. Raises ValueError unless it is a finite number larger than ``above``."""
    if isinstance(value, bool | str) or value is None:
        raise ValueError(f"{name} is {value!r}; it must be a number")
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a number") from None
    if not np.isfinite(number) or number <= above:
        rule = "a finite number" if above == -np.inf else f"a finite number above {above:g}"
        raise ValueError(f"{name} is {value!r}; it must be {rule}")
    return number


#: largest number of clusters or topics, which are numbered with 32 bits
MAX_LABELS = 2**31 - 1


def whole(name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """Return ``value`` as an int. Raises ValueError unless it is a whole number from ``least`` to ``most``."""
    number = finite(name, value)
    if not math.isclose(number, round(number), rel_tol=0, abs_tol=0) or not least <= number <= most:
        limit = f" and at most {most}" if most < math.inf else ""
        raise ValueError(f"{name} is {value!r}; it must be a whole number of at least {least}{limit}")
    return round(number)


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value``. Raises ValueError, with the most similar allowed value, unless it is in ``allowed``."""
    allowed = list(allowed)
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(allowed)}{did_you_mean(value, allowed)}")
    return value


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """Return ``value``. Raises ValueError unless it is a mapping."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is {shown(value)}; a mapping by name is needed, such as {{'year': ...}}")
    return value


def several(name: str, value: Any) -> list[Any]:
    """Return ``value`` as a list. Raises ValueError if it is a single string or not iterable."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ValueError(f"{name} is {shown(value)}; a list is needed")
    return list(value)


def once(pairs: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    """Return pairs (name, value) as a dict. Raises ValueError if a name occurs twice."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{what} {name!r} is given twice")
        values[name] = value
    return values


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Return a clause for an error message: "; did you mean 'x'?", or "" if nothing is similar."""
    near = difflib.get_close_matches(str(name), [str(one) for one in known], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def nearest(name: Any, known: Iterable[Any]) -> str:
    """Return the clause of :func:`did_you_mean`, or the list of known names if nothing is similar."""
    known = list(known)
    return did_you_mean(name, known) or f"; known: {', '.join(map(str, known))}"


def truth_value(name: str, value: Any) -> bool:
    """Return ``value`` as a bool. Raises ValueError unless it is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} is {value!r}; it must be true or false")
    return bool(value)


def shown(value: Any) -> str:
    """Return the text of a value for messages, with at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def counted(number: int, what: str) -> str:
    """Return a number with a noun, such as "1 document" or "2 documents without a word"."""
    first, *words = what.split(" ", 1)
    singular = f"{first[:-3]}y" if first.endswith("ies") else first.removesuffix("s")
    return f"{number:,} {' '.join([singular if number == 1 else first, *words])}"
