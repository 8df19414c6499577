"""The runs of a plan, built as their jobs would build them, so that none is doomed when the first job starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from mc2core.base.checks import nearest
from mc2core.corpus import subsets
from mc2core.inference.base import run_length
from mc2core.inference.registry import make_engine
from mc2papers.baselines.registry import make_baseline
from mc2papers.datasets.catalogue import contexts_of
from mc2papers.plan import FAMILY_OF_KIND, MISSING
from mc2papers.schemas import check_keys, check_values

#: the target that wants the scores of all runs; it makes no table and no figure
SCORES = "fits"


def check_runs(
    path: str | os.PathLike[str],
    runs: Mapping[str, Mapping[str, Any]],
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    targets: Iterable[str],
) -> None:
    """ValueError for the first run of :func:`mc2papers.plan.read_experiments` that its job could only refuse.

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
        is_baseline = fit["engine"] in config["baselines"]
        kind = "baselines" if is_baseline else "engines"
        engine_schema = schema["properties"][kind]["properties"][fit["engine"]] | {"definitions": schema["definitions"]}
        check_keys(fit["settings"], engine_schema, f"{where}: settings")
        check_values(fit["settings"], engine_schema, f"{where}: settings")
        _check_contexts(where, dataset, config["corpora"][dataset], fit["contexts"])
        try:
            subsets.check_share(fit.get(MISSING, 0.0))
            if is_baseline:
                _check_baseline(run, config["corpora"][dataset], runs)
            else:
                engine = make_engine(fit["engine"], fit["settings"], fit["contexts"])
                run_length(engine, fit["iterations"], fit["burn_in"], fit["thin"])
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _check_baseline(run: Mapping[str, Any], corpus: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> None:
    fit = run["fit"]
    baseline = make_baseline(fit["engine"], fit["settings"])
    if fit["contexts"] and not baseline.takes_contexts:
        raise ValueError(f"{baseline.title} clusters words only; it cannot use context {next(iter(fit['contexts']))!r}")
    offered = contexts_of(run["dataset"], corpus)
    for name in fit["contexts"]:
        if offered[name] == "number":
            raise ValueError(f"{baseline.title} takes contexts of counts, but {name!r} is a number for each document")
    if not baseline.needs_model:
        if fit["of"] is not None:
            raise ValueError(f"{baseline.title} uses no model of another run, but of is {fit['of']!r}")
        return
    hdp = [
        name
        for name, one in runs.items()
        if one["dataset"] == run["dataset"] and one["fit"]["settings"].get("one_cluster_per_document")
    ]
    if fit["of"] not in hdp:
        raise ValueError(
            f"of is {fit['of']!r}; {baseline.title} needs there a run on {run['dataset']} with "
            f"one_cluster_per_document=true: {', '.join(hdp) or 'the sheet has none'}"
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
