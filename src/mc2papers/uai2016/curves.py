"""Measure held-out perplexity over the seconds of a fit, and seconds by threads (UAI16, figure 3 and table 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mc2core.corpus import Corpus
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior
from mc2papers.uai2016.methods import method_of

# fraction of the run at which the first snapshot after the start is taken
_FIRST_SHARE = 1 / 64


def snapshot_times(iterations: int, n_snapshots: int) -> list[float]:
    """Return the iterations of snapshots: the start, and about evenly spaced iterations on a log axis.

    A snapshot that is less than half a step away from the end of an iteration is moved to this end.
    """
    later = np.geomspace(_FIRST_SHARE * iterations, iterations, n_snapshots - 1)
    whole = np.maximum(np.rint(later), 1.0)
    half_step = -np.log(_FIRST_SHARE) / (n_snapshots - 2) / 2
    later = np.where(np.abs(np.log(later / whole)) < half_step, whole, later)
    return [0.0, *np.round(later, 6).tolist()]


def perplexity_curve(snapshots: Posterior, fitted: Posterior, test: Corpus, estimator: str) -> pd.DataFrame:
    """Return one row per snapshot of a fit, with its method, seed, threads, iteration, seconds and perplexity.

    The last row also has ``samples``, the number of samples of ``fitted``, which is the posterior of the same fit, and
    ``averaged``, the perplexity of all of them together. It shows the gain of a sampler from averaging. The seconds do
    not include scoring.
    """
    about = snapshots.provenance
    rows = pd.DataFrame(about["snapshot_times"])
    rows = rows.assign(
        method=method_of(about["engine"]["name"], about["engine"]), seed=about["seed"], threads=about["threads"]
    )
    rows["perplexity"] = [_of(snapshots, [sample]).perplexity(test, estimator) for sample in snapshots.samples]
    rows[["averaged", "samples"]] = np.nan
    rows.loc[rows.index[-1], ["averaged", "samples"]] = fitted.perplexity(test, estimator), len(fitted.samples)
    return rows


def _of(whole: Posterior, samples: list[Any]) -> Posterior:
    return Posterior(samples, whole.families, whole.dimensions, whole.vocabulary, whole.context_names, whole.units)


def seconds_by_threads(
    corpus: Corpus, run: Mapping[str, Any], *, threads: Sequence[int], seeds: Sequence[int]
) -> pd.DataFrame:
    """Fit once per seed and number of threads; return columns threads, seed, seconds (without compilation) and elbo.

    run : ``fit`` of a run of :func:`mc2papers.configuration.read_experiments`
    """
    part = corpus.with_contexts({name: corpus.contexts[name] for name in run["contexts"]})
    rows = []
    for seed in seeds:
        for n_threads in threads:
            one = specify(run["model"], run["engine"], run["settings"], run["contexts"], n_threads)
            done = fit(part, *one, iterations=run["iterations"], seed=seed)
            seconds, elbo = done.provenance["seconds"], done.trace["elbo"].iloc[-1]
            rows.append({"seed": seed, "threads": n_threads, "seconds": seconds, "elbo": elbo})
    return pd.DataFrame(rows)
