"""Registry of models and engines by the names used in experiments tables and command lines, with their defaults."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from mc2core import models
from mc2core.base.checks import choice, nearest
from mc2core.inference.base import Engine
from mc2core.models import Model

#: names of models, and their classes in :mod:`mc2core.models`
MODELS = {"hdp": "HDP", "mc2": "MC2", "mixture": "Mixture", "nptot": "NPTOT"}
#: names of engines, which are also the names of their folders, and their classes in the module ``engine``
ENGINES = {"fastex": "FastEx", "gibbs": "Gibbs", "svi": "SVI"}
#: defaults of ``mc2 fit``, :func:`mc2core.fit`, ``MC2Clusterer`` and the workflow if neither model nor engine is given.
#: If only the engine is given, its first model is used. If only the model is given, :func:`engine_for` selects it.
DEFAULT_MODEL, DEFAULT_ENGINE = "mc2", "gibbs"


def default_names(model: str | None, engine: str | type[Engine] | None) -> tuple[str, str | type[Engine]]:
    """Return the names of model and engine, replacing None by defaults; an engine class is returned unchanged."""
    engine = engine or engine_for(model_class(model or DEFAULT_MODEL))
    return model or engine_class(engine).models[0].name, engine


def engine_for(model: type[Model]) -> str:
    """Return the first engine that fits a class of models, default engine first; raise ValueError if there is none."""
    for name in (DEFAULT_ENGINE, *sorted(ENGINES)):
        if issubclass(model, engine_class(name).models):
            return name
    raise ValueError(f"no engine of mc2core fits {model.__name__}; give an engine of your own")


def specify(
    model: str | None,
    engine: str | type[Engine] | None,
    settings: Mapping[str, Any],
    contexts: Any = None,
    threads: int = 1,
) -> tuple[Model, Engine]:
    """Build a model and an engine from plain settings, as in the experiments table or a command line.

    Parameters
    ----------
    model : str or None
        Name of the model; None for the default.
    engine : str, class or None
        Name of the engine, or the class of an engine of another package; None for the default.
    settings : mapping
        Arguments of both constructors except ``contexts`` and ``threads``. No argument name occurs in both.
    contexts : list, mapping or None
        Contexts of the model: names, or a mapping of names to families, ``{"family": ..., **parameters}`` or None.
    threads : int
        Number of threads of the engine.

    Raises
    ------
    ValueError
        If a model, engine or setting is unknown (the message suggests the nearest name), if a value is invalid, if
        contexts are given for a model without contexts, or if the engine does not support the model.
    """
    model, engine = default_names(model, engine)
    kinds = model_class(model), engine_class(engine)
    known = settings_of(model, engine)
    for setting in settings:
        if setting not in known:
            raise ValueError(f"{model} with {kinds[1].name} has no setting {setting!r}{nearest(setting, known)}")
    of_model, of_engine = ({name: settings[name] for name in kind.defaults() if name in settings} for kind in kinds)
    if takes_contexts(model):
        of_model["contexts"] = contexts
    elif contexts:
        raise ValueError(f"model {model!r} uses words only; it cannot use context {next(iter(contexts))!r}")
    of_engine = kinds[1].defaults_for(kinds[0]) | of_engine
    made = kinds[0](**of_model), kinds[1](**of_engine, threads=threads)
    made[1].supports(made[0])
    return made


def specified_in(provenance: Mapping[str, Any], threads: int = 1) -> tuple[Model, Engine]:
    """Return the model and the engine of a fit from its provenance; raise ValueError if the provenance lacks them."""
    try:
        of_model, of_engine = dict(provenance["model"]), dict(provenance["engine"])
        names, contexts = (of_model.pop("name"), of_engine.pop("name")), of_model.pop("contexts", None)
        return specify(*names, of_model | of_engine, contexts, threads)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the provenance of the fit (model and engine) is damaged: {error!r}") from error


def takes_contexts(model: str) -> bool:
    """Return whether a model has contexts; a model without contexts uses only words."""
    return "contexts" in model_class(model).names()


def settings_of(model: str, engine: str | type[Engine]) -> dict[str, Any]:
    """Return the settings of model and engine with their defaults, without ``contexts`` and ``threads``."""
    both = model_class(model).defaults() | engine_class(engine).defaults()
    return {name: value for name, value in both.items() if name not in ("contexts", "threads")}


def model_class(name: str) -> Any:
    """Return the class of a model; raise ValueError, which suggests the nearest name, if the name is unknown."""
    return getattr(models, MODELS[choice("model", name, MODELS)])


def engine_class(name: str | type[Engine]) -> Any:
    """Return the class of an engine, given its name or the class itself.

    Raises ValueError, which suggests the nearest name, if the name is unknown.
    """
    if not isinstance(name, str):
        return name
    kind = ENGINES[choice("engine", name, ENGINES)]
    return getattr(importlib.import_module(f"mc2core.inference.{name}.engine"), kind)
