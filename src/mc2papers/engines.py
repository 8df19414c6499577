"""The engines that the experiments table may name: the engines of the library, and the baseline "uncollapsed"."""

from __future__ import annotations

import importlib
from typing import Any

#: names, and the modules of their classes
ENGINES = {name: f"mc2core.inference.{name}.engine" for name in ("fastex", "gibbs", "svi")} | {
    "uncollapsed": "mc2papers.baselines.uncollapsed"
}
#: those whose posterior averages over samples; their classes say so too, but take a second to load
KEEP_SAMPLES = ("gibbs",)


def engine_of(name: str) -> Any:
    """Return an engine as the library's registry needs it: a name, or the class of an engine outside the library."""
    # loaded by name: what only reads settings of runs need not run again when the engine changes
    return importlib.import_module(ENGINES[name]).Uncollapsed if name == "uncollapsed" else name
