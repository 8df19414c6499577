"""Inference: the engines that fit models, and the loop that runs every engine (see ``base``)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mc2core.inference.fastex.engine import FastEx
    from mc2core.inference.gibbs.engine import Gibbs
    from mc2core.inference.svi.engine import SVI
    from mc2core.inference.svi.stream import Stream

__all__ = ["SVI", "FastEx", "Gibbs", "Stream"]

# modules are imported at first use, so that using one engine does not import the kernels of the others
_HOME = {"FastEx": "fastex.engine", "Gibbs": "gibbs.engine", "SVI": "svi.engine", "Stream": "svi.stream"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
