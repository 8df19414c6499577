"""Phrases that several captions share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def say_source(name: str, corpus: Mapping[str, Any]) -> str:
    """ "W100: simulated, 0.01 of the paper's size"; ``corpus`` is its entry in the plan."""
    scale = f", {corpus['scale']} of the paper's size" if corpus["source"] == "simulated" else ""
    return f"{name.upper()}: {corpus['source']}{scale}"


def say_sources(corpora: Mapping[str, Mapping[str, Any]]) -> str:
    """A sentence for each corpus."""
    return " ".join(f"{say_source(name, corpus)}." for name, corpus in corpora.items())
