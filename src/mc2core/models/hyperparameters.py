"""The three concentrations of MC2 as constructors take them: which are learnt, under which priors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mc2core.base.checks import choice, prior_count, shown

#: Names of the concentrations alpha, v, eta (ICML14), in this order.
ROLES = ("group", "table", "topic")
#: Name of s, of the topics' words, beside them; learnt only where it is named.
WORDS = "words"


def learnt_roles(learn: Any, more: tuple[str, ...] = ()) -> list[str]:
    """Checked copy of a ``learn_concentrations`` argument: true, false or a list of some of ``ROLES`` and ``more``.

    True is all of ``ROLES`` and none of ``more``.
    """
    if isinstance(learn, bool | np.bool_):
        return list(ROLES) if learn else []
    if isinstance(learn, str | Mapping) or not isinstance(learn, Iterable):
        raise ValueError(f"learn_concentrations is {learn!r}; it must be true, false or a list")
    return [choice("learn_concentrations", role, (*ROLES, *more)) for role in learn]


def concentration_priors_of(priors: Any, more: tuple[str, ...] = ()) -> dict[str, list[float]]:
    """[shape, rate] of each of ``ROLES`` from a ``concentration_priors`` argument; (1, 1) where it has none.

    Those of ``more`` are there where the argument names them.
    """
    allowed = (*ROLES, *more)
    if priors is not None and not isinstance(priors, Mapping):
        raise ValueError(
            f"concentration_priors is {priors!r}; it must map some of {', '.join(allowed)} to (shape, rate)"
        )
    known: dict[str, list[float]] = {role: [1.0, 1.0] for role in ROLES}
    for role, prior in (priors or {}).items():
        choice("concentration_priors", role, allowed)
        if isinstance(prior, str) or not isinstance(prior, Sequence | np.ndarray) or len(prior) != 2:
            raise ValueError(f"concentration_priors[{role!r}] is {prior!r}; it must be (shape, rate)")
        known[role] = [
            prior_count(f"concentration_priors[{role!r}] {part}", value)
            for part, value in zip(("shape", "rate"), prior, strict=True)
        ]
    return known


def omega_of(value: Any) -> float | str:
    """Checked ``document_concentration``, omega: "inf" (the float too), "learn" or a float."""
    if isinstance(value, str) and value in ("inf", "learn"):
        return value
    if isinstance(value, float | np.floating) and value == np.inf:
        return "inf"
    try:
        return prior_count("document_concentration", value)
    except ValueError:
        rule = "a number from 1e-10 to 1e10, 'inf' or 'learn'"
        raise ValueError(f"document_concentration is {shown(value)}; it must be {rule}") from None
