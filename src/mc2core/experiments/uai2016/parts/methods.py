"""What UAI16's tables and figures call their methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: what UAI16 has, and our form of it without tables
SVI, DIRECT = "SVI", "SVI without tables"


def method_of(engine: str, settings: Mapping[str, Any]) -> str:
    """What tables and figures call the engine of a fit: SVI (with tables, as printed), DIRECT, "Gibbs, collapsed"."""
    if engine == "gibbs":
        return f"Gibbs, {settings['kernel']}"
    return DIRECT if settings.get("n_tables") is None else SVI
