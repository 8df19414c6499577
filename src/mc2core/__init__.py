"""mc2core: multilevel clustering with group-level contexts (MC2, SVI-MC2, FastEx)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc2core.compute import kernel_cache

if TYPE_CHECKING:
    from mc2core import clustering, perplexity
    from mc2core.corpus import Corpus
    from mc2core.engines.running.loop import Fit, fit
    from mc2core.model import Model

__version__ = "0.1.0"
__all__ = ["Corpus", "Fit", "Model", "__version__", "clustering", "fit", "perplexity"]

kernel_cache.drop_stale(Path(__file__).parent)

# loaded when first asked for: all of them together take seconds, and a command or a job needs a few
_HOME = {
    "Corpus": "corpus",
    "Fit": "engines.running.loop",
    "Model": "model",
    "clustering": "",
    "perplexity": "",
    "fit": "engines.running.loop",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _HOME[name]:
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
