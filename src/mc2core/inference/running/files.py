"""Fits that write their results to files, for the workflow and the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import stopping, storage
from mc2core.base.progress import work
from mc2core.corpus import Corpus
from mc2core.inference.base import Engine, State
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import RunResult, checkpoints_of, fit, tell_unused
from mc2core.inference.running.summary import add_hierarchy


def fit_corpus(
    corpus: Corpus,
    folder: str | os.PathLike[str],
    *,
    model: str | None = None,
    engine: str | type[Engine] | None = None,
    contexts: Any = None,
    settings: Mapping[str, Any] | None = None,
    threads: int = 1,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    snapshots_file: str | os.PathLike[str] | None = None,
    follow_labels: bool = False,
    missing: float = 0.0,
    spark: Mapping[str, Any] | None = None,
    keep_all: bool = False,
    keep_checkpoint: bool = False,
    **length: Any,
) -> dict[str, Any]:
    """Fit a model, write the posterior, the trace and the provenance to ``folder``, and return the provenance.

    A killed run is resumed from its checkpoint. By default, the checkpoint is removed after the outputs are written.
    Otherwise, when the workflow repeats a fit because its code has changed, the fit would resume from results of the
    old code. Two fits cannot write to the same folder at the same time.

    Parameters
    ----------
    folder : output folder
    model, engine : names, or None for the default; ``engine`` may also be a class of another package
    contexts : contexts that the model uses; other contexts of the corpus are only mentioned in the log
    checkpoint : file of the checkpoint of the first chain; by default in ``folder``
    snapshots_file : file to which a posterior with the snapshots is written, if the argument ``snapshots`` is given
    follow_labels : whether the trace has a column ``vi_bits``, the variation of information of clusters and labels
    missing : fraction of the documents, drawn at random per context, in which the context is made missing
    spark : Spark properties, for fits that use Spark (``n_shards``)
    keep_all : whether to keep the checkpoint, so that the fit can be continued with more iterations. The posterior then
        also contains its hierarchy, the fingerprints of its documents (:mod:`mc2core.corpus.fingerprints`) and, for
        SVI, a sample of the documents (:mod:`mc2core.corpus.reservoir`) for ``mc2 update``. If a signal stops the run,
        the results so far are written
    keep_checkpoint : whether to keep the checkpoint without the other effects of ``keep_all``
    length : further arguments of :func:`mc2core.inference.running.loop.fit`, such as ``iterations`` and ``chains``

    Raises
    ------
    ValueError
        If another fit is writing to the same folder, or if an argument is invalid.
    """
    folder = Path(folder)
    posterior, checkpoint = folder / "posterior.npz", checkpoint or folder / "checkpoint.npz"
    specified, way = specify(model, engine, settings or {}, contexts, threads)
    if "chains" in length and length["chains"] is None:
        length["chains"] = way.default_chains
    specified = specified.for_corpus(corpus)
    tell_unused(corpus, specified.contexts)
    part = corpus.with_contexts({name: corpus.contexts[name] for name in specified.contexts})
    if missing:
        from mc2core.corpus.subsets import without_contexts

        part = without_contexts(part, missing, seed)

    def leave(done: RunResult) -> None:
        if keep_all:
            _keep_for_later(done, part, way.keeps_documents)
        with work("writing the posterior"):
            done.posterior.save(posterior)
        storage.write_json(folder / "provenance.json", done.provenance | ({"missing": missing} if missing else {}))

    with stopping.install(), storage.exclusive_lock(posterior, "another fit"), _with_spark(spark):
        done = fit(
            part,
            specified,
            way,
            seed=seed,
            checkpoint=checkpoint,
            trace=folder / "trace.tsv",
            callback=_distance_to(corpus.labels) if follow_labels else None,
            on_stop=leave if keep_all else None,
            **length,
        )
        leave(done)
        if snapshots_file is not None and done.snapshots is not None:
            done.snapshots.save(snapshots_file)
        if not (keep_all or keep_checkpoint):
            for path in checkpoints_of(checkpoint, length.get("chains", 1)):
                Path(path).unlink(missing_ok=True)
    return done.provenance | ({"missing": missing} if missing else {})


def _with_spark(properties: Mapping[str, Any] | None) -> AbstractContextManager[None]:
    """Return a context manager with a Spark session, or without a session if there are no properties."""
    if not properties:
        return nullcontext()
    from mc2core.compute import spark

    return spark.session(properties)


def _keep_for_later(done: RunResult, corpus: Corpus, keeps_documents: bool) -> None:
    """Add the hierarchy to the posterior, and the data about documents that ``mc2 update`` needs."""
    add_hierarchy(done.posterior, corpus, done.provenance["inferred"])
    if not corpus.is_of_observations:
        from mc2core.corpus.fingerprints import fingerprints_of

        done.posterior.fingerprints = fingerprints_of(corpus)
    if keeps_documents:
        from mc2core.corpus import reservoir

        done.posterior.reservoir = reservoir.sample(corpus)


def _distance_to(labels: Any) -> Callable[[int, State], dict[str, float]]:
    """Return a callback that computes the variation of information between ``labels`` and the clusters, in bits."""
    if not isinstance(labels, np.ndarray):
        raise ValueError("clusters cannot be compared with labels: each document of the corpus needs a label")
    from mc2core.posterior import clustering

    return lambda iteration, state: {"vi_bits": clustering.variation_of_information(labels, state.cluster)}
