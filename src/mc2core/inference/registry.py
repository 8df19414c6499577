"""Engines by the name configuration files give them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mc2core import inference
from mc2core.base.checks import choice, did_you_mean
from mc2core.inference.base import Engine

#: name in configuration files, and of the engine's module: class in :mod:`mc2core.inference`, loaded when asked for
ENGINES = {"fastex": "FastEx", "gibbs": "Gibbs", "svi": "SVI"}

#: the engine of a fit that names none: of ``mc2 fit``, :func:`mc2core.fit` and ``MC2Clusterer``
DEFAULT_ENGINE = "gibbs"
#: its model, unless one of these settings asks for another: documents have topic proportions of their own
_DEFAULT_MODEL = {"document_concentration": "learn"}
_OTHER_MODELS = ("kernel", "one_cluster_per_document", "token_contexts")


def with_default_model(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """``settings`` of engine ``name``, and those of the default model if it is the default engine's."""
    is_other = name != DEFAULT_ENGINE or any(settings.get(one) for one in _OTHER_MODELS)
    return dict(settings) if is_other else _DEFAULT_MODEL | dict(settings)


def make_engine(name: str, settings: Mapping[str, Any], contexts: Mapping[str, Any], threads: int = 1) -> Engine:
    """An engine from plain settings, as a configuration file or a command line holds them.

    Parameters
    ----------
    settings : constructor arguments other than ``contexts`` and ``threads``.
    contexts : ``{name: family or {"family": ..., **hyper-parameters}}``.

    Raises
    ------
    ValueError
        Unknown engine or setting (with the nearest known one), a value the engine refuses, or contexts for an engine
        that takes none.
    """
    kind, known = engine_class(name), settings_of(name)
    for setting in settings:
        if setting not in known:
            hint = did_you_mean(setting, known)
            raise ValueError(f"engine {name!r} has no setting {setting!r}; it has: {', '.join(known)}{hint}")
    if takes_contexts(name):
        return kind(**settings, contexts=contexts, threads=threads)
    if contexts:
        raise ValueError(f"engine {name!r} clusters words only; it cannot use context {next(iter(contexts))!r}")
    return kind(**settings, threads=threads)


def takes_contexts(name: str) -> bool:
    """Whether an engine looks at contexts; those that do not cluster words only."""
    return "contexts" in inspect.signature(engine_class(name)).parameters


def settings_of(name: str) -> dict[str, Any]:
    """Settings of an engine with their defaults: constructor arguments other than ``contexts`` and ``threads``."""
    parameters = inspect.signature(engine_class(name)).parameters
    return {one: parameters[one].default for one in parameters if one not in ("contexts", "threads")}


def engine_class(name: str) -> Any:
    """The class of an engine; ValueError names the nearest one."""
    return getattr(inference, ENGINES[choice("engine", name, ENGINES)])
