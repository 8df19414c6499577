"""Settings as a command line or a sheet writes them: NAME=VALUE, separated by blanks."""

from __future__ import annotations

import json
import re
from typing import Any

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def parse_settings(text: str, where: str) -> dict[str, Any]:
    """``"kernel=collapsed start_topics=10"`` as ``{"kernel": "collapsed", "start_topics": 10}``.

    Values are JSON where they can be, else text. ValueError, beginning with ``where``, for what is no NAME=VALUE.
    """
    settings: dict[str, Any] = {}
    for part in text.split():
        name, sign, value = part.partition("=")
        if not name or not sign or not value:
            raise ValueError(f"{where}: {part!r} must have the form name=value")
        if name in settings:
            raise ValueError(f"{where}: {name!r} is set twice")
        settings[name] = _value(value)
    return settings


def _value(text: str) -> Any:
    """JSON; a number however it is written (1., +1, .1); else text."""
    if _NUMBER.fullmatch(text):
        return float(text) if {".", "e"} & set(text.lower()) else int(text)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
