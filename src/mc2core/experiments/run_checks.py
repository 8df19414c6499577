"""The runs of a plan, built as their jobs would build them, so that none is doomed when the first job starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from mc2core.base.checks import nearest
from mc2core.corpus import parts
from mc2core.engines.base import run_length
from mc2core.engines.registry import make_engine
from mc2core.experiments.plan import MISSING
from mc2core.experiments.schemas import check_keys, check_values
from mc2core.sources.catalogue import contexts_of

#: the target that wants the scores of all runs; it makes no table and no figure
SCORES = "fits"


def check_runs(
    path: str | os.PathLike[str],
    runs: Mapping[str, Mapping[str, Any]],
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    targets: Iterable[str],
) -> None:
    """ValueError for the first run of :func:`mc2core.experiments.plan.read_experiments` that its job could only refuse.

    Looked at are the contexts that its dataset gives, the bounds of its settings, its length, and, for all that
    bounds cannot say, its engine, which is built. A target that is not known is refused too: nothing would want its
    run. Loading the engines takes a second; nothing is compiled.

    Parameters
    ----------
    path : of the sheet, for messages.
    schema : that of ``config``.
    targets : names of tables and figures.
    """
    known = [*targets, SCORES]
    for name, run in runs.items():
        where, fit, dataset = f"{path}, run {name!r}", run["fit"], run["dataset"]
        for target in run["targets"]:
            if target not in known:
                raise ValueError(f"{where}: target {target!r} is not known{nearest(target, known)}")
        engine_schema = schema["properties"]["engines"]["properties"][fit["engine"]]
        check_keys(fit["settings"], engine_schema, f"{where}: settings")
        check_values(fit["settings"], engine_schema, f"{where}: settings")
        _check_contexts(where, dataset, config["corpora"][dataset], fit["contexts"])
        try:
            engine = make_engine(fit["engine"], fit["settings"], fit["contexts"])
            run_length(engine, fit["iterations"], fit["burn_in"], fit["thin"])
            parts.check_share(fit.get(MISSING, 0.0))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _check_contexts(
    where: str, dataset: str, corpus: Mapping[str, Any], families: Mapping[str, Mapping[str, Any]]
) -> None:
    offered = contexts_of(dataset, corpus)
    for context, family in families.items():
        if context not in offered:
            raise ValueError(f"{where}: context {context!r} is not among those of corpora.{dataset}: {list(offered)}")
        # of families of numbers only this one takes those that are standardised, as all are
        wanted = "normal_gamma" if offered[context] == "number" else "dirichlet"
        if family["family"] != wanted:
            raise ValueError(
                f"{where}: context {context!r} has the family {family['family']}, but it is of kind "
                f"{offered[context]!r} in corpora.{dataset}, which takes {wanted}"
            )
