"""The runs of a plan, built as their jobs would build them, so that none is doomed when the first job starts."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from typing import Any

from mc2core.base.checks import choice, nearest, whole
from mc2core.base.kinds import FAMILY_OF_KIND
from mc2core.corpus import subsets
from mc2core.inference.base import run_length
from mc2core.inference.registry import ENGINES, MODELS, engine_class, model_class, specify
from mc2papers.baselines.registry import BASELINES, make_baseline
from mc2papers.datasets.catalogue import contexts_of
from mc2papers.plan import CHAINS, MISSING

#: the target that wants the scores of all runs; it makes no table and no figure
SCORES = "fits"


def check_runs(
    path: str | os.PathLike[str],
    runs: Mapping[str, Mapping[str, Any]],
    config: Mapping[str, Any],
    targets: Iterable[str],
) -> None:
    """ValueError for the first run of :func:`mc2papers.plan.read_experiments` that its job could only refuse.

    Looked at are the contexts that its dataset gives, its length, and its model and engine,
    which are built. A target that is not known is refused too: nothing would want its run. Loading the engines takes a
    second; nothing is compiled.

    Parameters
    ----------
    path : of the sheet, for messages.
    targets : names of tables and figures.
    """
    _check_named(config)
    known = [*targets, SCORES]
    for name, run in runs.items():
        where, fit, dataset = f"{path}, run {name!r}", run["fit"], run["dataset"]
        for target in run["targets"]:
            if target not in known:
                raise ValueError(f"{where}: target {target!r} is not known{nearest(target, known)}")
        _check_contexts(where, dataset, config["corpora"][dataset], fit["contexts"])
        try:
            subsets.check_share(fit.get(MISSING, 0.0))
            if fit["engine"] in BASELINES:
                _check_baseline(run, config["corpora"][dataset], runs)
            else:
                choice("engine", fit["engine"], [*ENGINES, *BASELINES])
                _, engine = specify(fit["model"], fit["engine"], fit["settings"], fit["contexts"])
                run_length(engine, fit["iterations"], fit["burn_in"], fit["thin"])
                whole(CHAINS, fit.get(CHAINS, 1))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _check_named(config: Mapping[str, Any]) -> None:
    """ValueError for a name that is no model, engine or baseline, and for settings that it has not."""
    for part, names in (("models", MODELS), ("engines", ENGINES), ("baselines", BASELINES)):
        for name, settings in config[part].items():
            if name not in names:
                raise ValueError(f"configuration: {part}: {name!r} is not known{nearest(name, names)}")
            kind = {"models": model_class, "engines": engine_class, "baselines": BASELINES.__getitem__}[part](name)
            known = inspect.signature(kind).parameters
            for setting in settings:
                if setting not in known:
                    raise ValueError(
                        f"configuration: {part}, {name}: {setting!r} is not known{nearest(setting, known)}"
                    )


def _check_baseline(run: Mapping[str, Any], corpus: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> None:
    fit = run["fit"]
    baseline = make_baseline(fit["engine"], fit["settings"])
    if fit["contexts"] and not baseline.takes_contexts:
        raise ValueError(f"{baseline.title} clusters words only; it cannot use context {next(iter(fit['contexts']))!r}")
    offered = contexts_of(run["dataset"], corpus)
    for name in fit["contexts"]:
        if offered[name] == "number":
            raise ValueError(f"{baseline.title} takes contexts of counts, but {name!r} is a number for each document")
    if not baseline.models:
        if fit["of"] is not None:
            raise ValueError(f"{baseline.title} uses no model of another run, but of is {fit['of']!r}")
        return
    fitting = [
        name
        for name, one in runs.items()
        if one["dataset"] == run["dataset"] and one["fit"].get("model") in baseline.models
        if one["fit"]["contexts"] == fit["contexts"]
    ]
    if fit["of"] not in fitting:
        raise ValueError(
            f"of is {fit['of']!r}; {baseline.title} needs there a run on {run['dataset']} of the model "
            f"{' or '.join(baseline.models)}: {', '.join(fitting) or 'the sheet has none'}"
        )


def _check_contexts(
    where: str, dataset: str, corpus: Mapping[str, Any], families: Mapping[str, Mapping[str, Any]]
) -> None:
    offered = contexts_of(dataset, corpus)
    for context, family in families.items():
        if context not in offered:
            raise ValueError(f"{where}: context {context!r} is not among those of corpora.{dataset}: {list(offered)}")
        wanted = FAMILY_OF_KIND[offered[context]]
        if family["family"] != wanted:
            raise ValueError(
                f"{where}: context {context!r} has the family {family['family']}, but it is of kind "
                f"{offered[context]!r} in corpora.{dataset}, which takes {wanted}"
            )
