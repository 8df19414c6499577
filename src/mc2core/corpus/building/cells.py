"""Parsing of single values of a table or a list: numbers, dates, bags of names, and text."""

from __future__ import annotations

import calendar
import datetime
import email.utils
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base.checks import shown
from mc2core.corpus.building.counts import MAX_COUNT, Dropped

_COUNTED = re.compile(r"(.*\S)\s*:\s*([-+]?[0-9][0-9.eE+-]*)")
#: texts that pandas reads as missing by default
MISSING = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_YEAR = re.compile(r"[-+]?\d{1,4}(\.\d*)?")
_OF_MAIL = re.compile(r"(?:[A-Za-z]{3}, *)?\d{1,2} [A-Za-z]{3} \d{4}( .*)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")


def is_null(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    is_one = not isinstance(value, str | list | dict | tuple | set | frozenset | np.ndarray)
    return value is None or value is pd.NA or (is_one and value != value)


def is_missing(value: Any) -> bool:
    """Return whether a value is null or a blank text."""
    return not value.strip() if isinstance(value, str) else is_null(value)


class Missing:
    """Codes that stand for missing values, and how often each code was read, by column.

    ``codes`` are texts. A code that is a number in text form also stands for this number.
    """

    def __init__(self, codes: Iterable[str] = MISSING) -> None:
        self._codes = frozenset(codes)
        self._numbers = {number for code in self._codes if math.isfinite(number := _number_of(code))}
        self.read: dict[str, Counter[str]] = {}

    def code_of(self, value: Any) -> str | None:
        """Return the code that equals a value, or None if the value is not a code."""
        if isinstance(value, Real | Decimal) and not isinstance(value, bool):
            return f"{value:g}" if value in self._numbers else None
        return text if isinstance(value, str) and (text := value.strip()) in self._codes else None

    def blank(self, column: str, value: Any) -> Any:
        """Return the value of a cell, or None if it is a code; codes are counted."""
        if (code := self.code_of(value)) is None:
            return value
        self.read.setdefault(column, Counter())[code] += 1
        return None

    def known(self, column: str, names: Mapping[str, int]) -> Mapping[str, int]:
        """Return the names of a bag without codes."""
        if self._codes.isdisjoint(names):
            return names
        return {name: count for name, count in names.items() if self.blank(column, name) is not None}

    def dropped(self) -> list[Dropped]:
        """Return the numbers of values that were read as missing."""
        return [
            Dropped(
                f"values of {column!r}",
                counts.total(),
                f"read as missing: {', '.join(f'{code!r} ({n:,})' for code, n in counts.most_common())}",
            )
            for column, counts in self.read.items()
        ]


def _number_of(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_number(value: Any, decimal_comma: bool = False) -> float:
    """Parse a finite number; a missing value (:func:`is_missing`) gives NaN. Raises ValueError for other values.

    If ``decimal_comma`` is True, texts may have a decimal comma, as in "3,14".
    """
    if is_missing(value):
        return math.nan
    plain = value
    if decimal_comma and isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
        plain = value.replace(",", ".")
    try:
        number = math.inf if isinstance(value, bool | np.bool_ | list | dict) else float(plain)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"found {shown(value)}; a finite number, an empty cell or a code of --missing is needed")
    return number


def parse_date(value: Any, form: str | None = None) -> float:
    """Parse a date to a fractional year: 2019-07-02 is 2019.4986, and "2019-07" the start of July.

    Years (2019, 2019.5), dates and times in the formats of ISO 8601 and of e-mails, date and time objects, and periods
    are accepted. If ``form`` is given, texts must have this format of ``datetime.strptime``, such as "%d.%m.%Y". Times
    with a zone are converted to UTC. A missing value gives NaN. Raises ValueError for other values.
    """
    if is_missing(value):
        return math.nan
    if isinstance(value, str):
        value = _date_of_text(value.strip(), form)
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        value = str(value)
        value = float(value) if _YEAR.fullmatch(value) else None
    elif isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, pd.Period):
        value = value.start_time
    if isinstance(value, float):
        return value
    if not isinstance(value, datetime.date):
        raise ValueError(f"found {shown(value)}; a date such as 2019, 2019-07 or 2019-07-02 is needed")
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        try:
            value = value.astimezone(datetime.UTC)
        except OverflowError:
            raise ValueError(f"found {shown(str(value))}; in UTC, this is not a date of the years 1 to 9999") from None
    days = value.timetuple().tm_yday - 1.0
    if isinstance(value, datetime.datetime):
        days += (value.hour * 3600 + value.minute * 60 + value.second) / 86400
    return value.year + days / (366 if calendar.isleap(value.year) else 365)


def _date_of_text(text: str, form: str | None) -> float | datetime.date:
    try:
        if form is not None:
            return datetime.datetime.strptime(text, form)
        if _YEAR.fullmatch(text):
            return float(text)
        if re.fullmatch(r"\d{4}-\d{2}", text):
            return datetime.date.fromisoformat(f"{text}-01")
        if _OF_MAIL.fullmatch(text):
            return email.utils.parsedate_to_datetime(text if ":" in text else f"{text} 00:00")
        return datetime.datetime.fromisoformat(text)
    except (ValueError, TypeError, OverflowError):
        example = f"of the form {form!r}" if form else "such as 2019, 2019-07 or 2019-07-02"
        raise ValueError(f"found {shown(text)}; a date {example} is needed, or an empty cell") from None


def parse_bag(value: Any, is_counted: bool, separator: str | None = ";") -> Mapping[str, int]:
    """Parse a bag in any of its forms (:mod:`mc2core.corpus.building.columns`) to ``{name: count}``.

    ``is_counted`` is whether a number after a colon in a text is a count, not a part of the name. ``separator``
    separates the names in a text. If it is None, a text is one name.
    """
    if is_null(value):
        return {}
    if isinstance(value, str):
        bag: Counter[str] = Counter()
        for entry in [value] if separator is None else value.split(separator):
            if entry := entry.strip():
                match = _COUNTED.fullmatch(entry) if is_counted else None
                if match and not (match[2].isdecimal() and len(match[2]) < 12):
                    raise ValueError(f"found {shown(entry)}; the count after a colon is a whole number of at least 0")
                bag[_name(match[1] if match else entry)] += int(match[2]) if match else 1
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        bag = Counter(_name(one) for one in value)
    elif isinstance(value, dict):
        bag = Counter()
        for name, count in value.items():
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
                raise ValueError(f"{shown(name)} has the count {shown(count)}; counts are whole numbers of at least 0")
            bag[_name(name)] += int(count)
    elif _is_whole(value):
        bag = Counter([_name(value)])
    else:
        raise ValueError(f"found {shown(value)}; a list of names or names with counts is needed")
    for name, count in bag.items():
        if count > MAX_COUNT:
            raise ValueError(f"{shown(name)} has the count {count}; the highest allowed is {MAX_COUNT}")
    return bag


def parse_text(value: Any, count: Callable[[str], Mapping[str, int]]) -> Mapping[str, int]:
    """Return ``count(value)`` of a text, or {} for a missing value. Raises ValueError for other types."""
    if is_null(value):
        return {}
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}; text is needed")
    return count(value)


def _is_whole(value: Any) -> bool:
    """Return whether a value is a whole number. In a column with gaps, whole numbers are floats."""
    is_float = isinstance(value, float | np.floating)
    return isinstance(value, int | np.integer | np.bool_) or (is_float and float(value).is_integer())


def _name(name: Any) -> str:
    if _is_whole(name):
        return str(int(name) if isinstance(name, float | np.floating) else name)
    if not isinstance(name, str):
        raise ValueError(f"found the name {shown(name)}; names are text")
    if not (plain := plain_text(name)):
        raise ValueError("found an empty name; leave it out")
    return plain


def plain_text(value: str) -> str:
    """Return text on one line. Raises ValueError for control characters and unpaired surrogates."""
    plain = " ".join(value.split())
    if not plain.isprintable() and any(map(_is_control, plain)):
        raise ValueError(f"found {shown(value)}; text has no control characters")
    return plain


def without_controls(text: str) -> tuple[str, int]:
    """Return the text with U+FFFD in place of characters that :func:`plain_text` rejects, and the number of these
    characters."""
    plain = "".join("\ufffd" if _is_control(sign) else sign for sign in text)
    return plain, sum(map(_is_control, text))


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cs")
