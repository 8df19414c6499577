"""What UAI16's tables and figures call their methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: what UAI16 has, and our form of it without tables
SVI, DIRECT = "SVI", "SVI without tables"


def about_svi(batch_size: int) -> str:
    """How SVI-MC2's rows are run, for captions and notes; the settings stand in the sheet of experiments."""
    return (
        f"SVI-MC2 is run as printed: tables, mini-batches of {batch_size}, all globals stepping at once at the rate "
        "(t + 1)^-0.8, concentrations fixed, priors of 0.01 on words and 0.1 on contexts."
    )


def method_of(engine: str, settings: Mapping[str, Any]) -> str:
    """What tables and figures call the engine of a fit: SVI (with tables, as printed), DIRECT, "Gibbs, collapsed"."""
    if engine == "gibbs":
        return f"Gibbs, {settings.get('kernel', 'interleaved')}"
    return DIRECT if settings.get("n_tables") is None else SVI
