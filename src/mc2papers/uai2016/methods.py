"""Names of methods in the tables and figures of UAI16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: the method of UAI16, and our variant without tables
SVI, DIRECT = "SVI", "SVI without tables"
#: experiments for which the paper prints each size of mini-batches (UAI16, section 5.4)
_BATCHES = {50: "figure 3", 500: "the hours on Spark"}


def about_svi(batch_size: int, others: str = "") -> str:
    """Describe the settings of SVI-MC2 in the experiments table, and for which experiments the paper prints them.

    others : text on corpora with other mini-batches
    """
    return (
        f"SVI-MC2 as in the paper: mini-batches of {batch_size} (stated for {_BATCHES[batch_size]}{others}), "
        "learning rate (t + 1)^-0.8 (stated for perplexity), fixed concentrations."
    )


def method_of(engine: str, settings: Mapping[str, Any]) -> str:
    """Return the name of an engine in tables and figures: SVI (as printed), DIRECT or "Gibbs, collapsed"."""
    if engine == "gibbs":
        return f"Gibbs, {settings.get('kernel', 'interleaved')}"
    return DIRECT if settings.get("max_tables") is None else SVI
