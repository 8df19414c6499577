"""Engines by the name configuration files give them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mc2core.engines.base import Engine, choice
from mc2core.engines.gibbs import Gibbs
from mc2core.engines.svi import SVI

ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Gibbs, SVI)}


def make_engine(name: str, settings: Mapping[str, Any], contexts: Mapping[str, Any], threads: int = 1) -> Engine:
    """An engine from plain settings, as a configuration file or a command line holds them.

    Parameters
    ----------
    settings : constructor arguments other than ``contexts`` and ``threads``.
    contexts : ``{name: family or {"family": ..., **hyper-parameters}}``.

    Raises
    ------
    ValueError
        Unknown engine or setting (with the nearest known one), or a value the engine refuses.
    """
    kind: Any = ENGINES[choice("engine", name, ENGINES)]
    known = [one for one in inspect.signature(kind).parameters if one not in ("contexts", "threads")]
    for setting in settings:
        choice(f"a setting of engine {name!r}", setting, known)
    return kind(**settings, contexts=contexts, threads=threads)
