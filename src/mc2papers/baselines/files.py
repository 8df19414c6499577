"""Fit a baseline and write its files, as a job of the workflow."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mc2core.base import storage
from mc2core.base.provenance import environment
from mc2core.compute.kernels import compile_seconds
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2papers.baselines.base import Baseline, Fitted, load_libraries
from mc2papers.baselines.registry import make_baseline

Path = str | os.PathLike[str]


def fit_baseline(
    corpus: Corpus,
    *,
    engine: str,
    settings: Mapping[str, Any],
    contexts: Sequence[str],
    seed: int,
    output: Path,
    provenance: Path,
    model: Path | None = None,
) -> dict[str, Any]:
    """Fit a baseline, write its model (.npz) or assignments (.tsv), and return the provenance.

    ``engine`` is the name of the baseline, and ``contexts`` are the contexts that it uses. If the baseline clusters the
    result of another run, ``model`` is the file of that run. The provenance records whether each solution converged.
    Raises ValueError if the baseline cannot fit the corpus, or if the corpus lacks a context.
    """
    baseline = make_baseline(engine, settings)
    missing = [name for name in contexts if name not in corpus.contexts]
    if missing:
        raise ValueError(f"the corpus has no context {missing[0]!r}; it has: {', '.join(corpus.contexts) or 'none'}")
    if contexts and not baseline.takes_contexts:
        raise ValueError(f"{baseline.title} clusters words only; it cannot use context {contexts[0]!r}")
    part = corpus.with_contexts({name: corpus.contexts[name] for name in contexts})
    by = None if model is None else Posterior.load(model)
    load_libraries()
    with compile_seconds() as compiled:
        fitted, spent = _timed(baseline, part, seed, by)
    if compiled:  # this time includes compilation, so the fit is measured again
        fitted, spent = _timed(baseline, part, seed, by)
    about = {
        "engine": {"name": engine} | baseline.settings(),
        "seed": seed,
        "corpus": part.digest,
        "iterations": fitted.iterations,
        "converged": fitted.converged,
        "citation": baseline.citation,
    }
    result = fitted.result
    if isinstance(result, Posterior):
        result = replace(result, provenance=about)
    result.save(output)
    complete = about | spent | {"compile_seconds": sum(compiled), "threads": 1} | environment()
    storage.write_json(provenance, complete)
    return complete


def _timed(baseline: Baseline, corpus: Corpus, seed: int, model: Posterior | None) -> tuple[Fitted, dict[str, float]]:
    started, cpu_started = time.perf_counter(), time.process_time()
    fitted = baseline.fit(corpus, seed, model)
    return fitted, {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu_started}
