"""The engines that the experiments table may name: the engines of the library, and the baseline "uncollapsed"."""

from __future__ import annotations

import importlib
from typing import Any

#: module of each engine by name
ENGINES = {name: f"mc2core.inference.{name}.engine" for name in ("fastex", "gibbs", "svi")} | {
    "uncollapsed": "mc2papers.baselines.uncollapsed"
}
#: engines whose posterior averages over samples; their classes also have this, but take a second to load
KEEP_SAMPLES = ("gibbs",)


def engine_of(name: str) -> Any:
    """Return an engine as the library's registry needs it: a name, or a class if the engine is not in the library."""
    # imported by name: code_digest does not follow this import, so jobs that only read settings do not run again
    return importlib.import_module(ENGINES[name]).Uncollapsed if name == "uncollapsed" else name
