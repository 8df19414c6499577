"""The engines that the experiments table may name: the engines of the library, and the baseline "uncollapsed"."""

from __future__ import annotations

import importlib
from typing import Any

#: names, and the modules of their classes
ENGINES = {name: f"mc2core.inference.{name}.engine" for name in ("fastex", "gibbs", "svi")} | {
    "uncollapsed": "mc2papers.baselines.uncollapsed"
}
#: engines whose posterior averages over samples; their classes have this as well, but take a second to load
KEEP_SAMPLES = ("gibbs",)


def engine_of(name: str) -> Any:
    """Return an engine as the library's registry needs it: a name, or the class of an engine outside the library."""
    # imported by name, so that jobs that only read the settings of runs do not run again when the engine changes
    return importlib.import_module(ENGINES[name]).Uncollapsed if name == "uncollapsed" else name
