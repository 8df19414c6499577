"""Settings of constructors, as Python objects and as NAME=VALUE on a command line or in the experiments table."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from mc2core.base.checks import nearest

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Settings:
    """An object that is defined by the keyword arguments of its constructor, which are attributes of the same names.

    An unknown argument raises TypeError, with the most similar known argument.
    """

    #: arguments that never change a result
    excluded: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _check_names(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default values of the constructor's optional arguments by name."""
        parameters = inspect.signature(cls).parameters
        return {name: one.default for name, one in parameters.items() if one.default is not one.empty}

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the constructor's arguments, except the names in ``excluded``."""
        return [name for name in inspect.signature(cls).parameters if name not in cls.excluded]

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments, except those in ``excluded``, as JSON-able values by name."""
        return {name: getattr(self, name) for name in self.names()}

    def refuse_idle(self, idle: Mapping[str, str]) -> None:
        """Raise ValueError if a setting was changed that has no effect.

        The keys of ``idle`` are the settings without effect. The values are the options that these settings need, such
        as ``option("proposal", "hash")``.
        """
        defaults = self.defaults()
        for name, condition in idle.items():
            value, usual = getattr(self, name), defaults[name]
            if value != (list(usual) if isinstance(usual, tuple) else usual):
                raise ValueError(f"{name} needs {condition}")

    def __repr__(self) -> str:
        values, may_be_left_out = {name: getattr(self, name) for name in self.names()}, self.defaults()
        needed = {name: one for name, one in values.items() if name not in may_be_left_out}
        shown = needed
        for name in values:  # some settings follow from earlier ones
            if name not in shown and values[name] != getattr(type(self)(**shown), name):
                shown = shown | {name: values[name]}
        changed = [f"{name}={one!r}" for name, one in values.items() if name in shown]
        return f"{type(self).__name__}({', '.join(changed)})"


def option(name: str, value: Any) -> str:
    """Return a setting in the form for messages, such as "proposal='hash' (--set proposal=hash)"."""
    return f"{name}={value!r} (--set {name}={value if isinstance(value, str) else json.dumps(value)})"


def _check_names(init: Callable[..., None]) -> Callable[..., None]:
    names = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: Any, *positional: Any, **keywords: Any) -> None:
        for name in keywords:
            if name not in names:
                raise TypeError(f"{type(self).__name__} has no setting {name!r}{nearest(name, names)}")
        init(self, *positional, **keywords)

    return checked


def split_settings(text: str, separator: str = r"\s") -> list[str]:
    """Split a text such as ``"kernel=blocked exact_sweeps=[1, 5]"`` into settings, which begin with ``NAME=``."""
    return [part.strip() for part in re.split(rf"{separator}\s*(?=\w[\w.]*=)", text) if part.strip()]


def parse_settings(given: Iterable[str], where: str) -> dict[str, Any]:
    """Parse ``["kernel=collapsed", "exact_sweeps=[1, 5]"]`` to ``{"kernel": "collapsed", "exact_sweeps": [1, 5]}``.

    Values are parsed as JSON if possible, and are texts otherwise. Raises ValueError, with a message that begins with
    ``where``, if a setting does not have the form NAME=VALUE or occurs twice.
    """
    settings: dict[str, Any] = {}
    for part in given:
        name, sign, value = (one.strip() for one in part.partition("="))
        if not name or not sign or not value:
            raise ValueError(f"{where}: {part!r} must have the form name=value")
        if name in settings:
            raise ValueError(f"{where}: {name!r} is set twice")
        settings[name] = _value(value)
    return settings


def _value(text: str) -> Any:
    """Return the value of JSON or of a number in another notation (1., +1, .1); other texts are returned unchanged."""
    if _NUMBER.fullmatch(text):
        return float(text) if {".", "e"} & set(text.lower()) else int(text)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
