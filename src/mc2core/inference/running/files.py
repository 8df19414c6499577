"""Fits and scores as files, for the jobs of the workflow and the command line."""

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
    """Fit a model, write posterior, trace and provenance into ``folder``, and return the provenance.

    ``model`` and ``engine`` are names, None for the default; an engine of another package is its class. ``length`` has
    further arguments of :func:`mc2core.inference.running.loop.fit`: ``iterations``, ``chains`` (None is the engine's
    default), ``burn_in`` and so on.

    If there are ``snapshots`` (iterations), a posterior of the samples at these is written to ``snapshots_file``.

    A killed run resumes from ``checkpoint`` (by default in ``folder``; further chains have their own next to it). The
    checkpoint is removed once the outputs are written, because the workflow runs a fit again if its code has changed,
    and must then not resume from the results of older code. With ``keep_checkpoint``, the caller removes it. While a
    fit runs, a second fit that writes the same posterior is refused (ValueError).

    Contexts of the corpus that are not in ``contexts`` are named in the log and not used, so a checkpoint does not
    depend on them. With ``missing``, every context is missing in that share of the documents, drawn with the seed of
    the fit. ``spark`` has properties of
    Spark, for fits that use it (``n_shards``). With ``follow_labels``, each row of the trace has ``vi_bits``, the
    distance of the clusters from the labels.

    With ``keep_all``, the checkpoint is kept, so that the fit can be continued with more iterations. If a signal stops
    the run, posterior and provenance of the completed part are written. The posterior then also contains its hierarchy
    (:meth:`mc2core.Posterior.find_hierarchy`), if it has one, the fingerprints of its documents
    (:mod:`mc2core.corpus.fingerprints`) and, for SVI, a sample of the documents (:mod:`mc2core.corpus.reservoir`),
    which ``mc2 update`` processes again.
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
    """Return a context manager with a Spark session with these properties, or without a session if there are none."""
    if not properties:
        return nullcontext()
    from mc2core.compute import spark

    return spark.session(properties)


def _keep_for_later(done: RunResult, corpus: Corpus, keeps_documents: bool) -> None:
    """Add a hierarchy to the posterior, and the data about its documents that ``mc2 update`` needs."""
    add_hierarchy(done.posterior, corpus, done.provenance["inferred"])
    if not corpus.is_of_observations:
        from mc2core.corpus.fingerprints import fingerprints_of

        done.posterior.fingerprints = fingerprints_of(corpus)
    if keeps_documents:
        from mc2core.corpus import reservoir

        done.posterior.reservoir = reservoir.sample(corpus)


def _distance_to(labels: Any) -> Callable[[int, State], dict[str, float]]:
    """Return a callback that computes the variation of information of ``labels`` and the current clusters, in bits."""
    if not isinstance(labels, np.ndarray):
        raise ValueError("clusters cannot be compared with labels: each document of the corpus needs a label")
    from mc2core.posterior import clustering

    return lambda iteration, state: {"vi_bits": clustering.variation_of_information(labels, state.cluster)}
